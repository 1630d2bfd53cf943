//! What a record keeps of the data that it was derived from, and that data again. Nothing stands in
//! a record twice: what its rows show as it was measured is taken from them.

use diskproof_model::data::RunData;
use diskproof_model::histogram::{LatencyHistogram, LatencyPart};
use diskproof_model::measurement::{DeviceUse, Measurement, OpMeasurement};
use diskproof_model::record::{LatencySummary, MeasurementRecord, OpRecord, Record};
use diskproof_model::series::TimeSeries;
use diskproof_model::surface::SurfaceMeasurement;
use diskproof_model::window::{Window, joined};

/// Shortest cell of a series in a row: finer ones serve the estimates only.
const SERIES_INTERVAL_NS_MIN: u64 = 100_000_000;

/// A series as rows show it.
pub(crate) fn shown_series(series: &TimeSeries, cells_max: usize) -> TimeSeries {
    let mut shown = series.thinned(SERIES_INTERVAL_NS_MIN, cells_max);
    for cell in &mut shown.cells {
        cell.latency_sum_ns = 0;
    }
    shown
}

/// The data that a record keeps; `None` where its rows do not show all that was measured, as those
/// of a ping with more requests than a record holds.
pub(crate) fn kept(data: &RunData, record: &Record) -> Option<RunData> {
    let rows = data.measurements.iter().zip(&record.measurements);
    let measurements = rows.map(|(m, row)| kept_of(m, row));
    let whole = RunData {
        completes_rows: false,
        measurements: measurements.collect::<Option<_>>()?,
        dropped: data.dropped.clone(),
        surface: data.surface.as_ref().map(|surface| SurfaceMeasurement {
            curve: Vec::new(),
            access: Vec::new(),
            scan: None,
            ..surface.clone()
        }),
        postgres: data.postgres.clone(),
        files: data.files.clone(),
        layer_places: Vec::new(),
        observed: None,
    };
    let mut rest = whole.clone();
    rest.completes_rows = true;
    let all_shown = share(&mut rest, record, Way::Remove);
    Some(all_shown.map_or(whole, |()| rest))
}

/// What becomes of the parts of data that rows show.
#[derive(Clone, Copy)]
enum Way {
    Remove,
    Restore,
}

/// Removes what the rows show from the data, or restores it. `None` where the rows show something
/// else.
fn share(data: &mut RunData, record: &Record, way: Way) -> Option<()> {
    for (m, row) in data.measurements.iter_mut().zip(&record.measurements) {
        if row.settling_ns == 0 {
            m.device = match way {
                Way::Remove => DeviceUse::default(),
                Way::Restore => row.device.clone(),
            };
        }
        for (kind, op) in &mut m.ops {
            let row_op = row.ops.get(kind)?;
            way.op(op, row_op)?;
            if row.settling_ns == 0 {
                continue;
            }
            // The row shows the last window alone.
            let (steady, earlier) = m.windows.split_last_mut()?;
            for latency in earlier.iter().filter_map(|window| window.ops.get(kind)) {
                way.counts(&mut op.latency, &histogram(&latency.latency))?;
            }
            if let Some(window) = steady.ops.get_mut(kind) {
                let mut latency = histogram(&window.latency);
                way.latency(&mut latency, &row_op.latency)?;
                window.latency = latency.to_part();
            }
        }
        let first = m.first_write.iter_mut().flat_map(|first| &mut first.ops);
        first.for_each(|(_, op)| without_latencies(op));
    }
    let steps = data.files.iter_mut().flat_map(|files| &mut files.steps);
    let rows = record.files().into_iter().flat_map(|files| &files.steps);
    steps
        .zip(rows)
        .try_for_each(|(step, row)| way.op(&mut step.op, &row.figures))
}

fn histogram(part: &LatencyPart) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    histogram.add_part(part);
    histogram
}

impl Way {
    fn op(self, op: &mut OpMeasurement, row: &OpRecord) -> Option<()> {
        self.latency(&mut op.latency, &row.latency)?;
        if let (Some(intended), Some(shown)) = (&mut op.latency_intended, &row.latency_intended) {
            self.latency(intended, shown)?;
        }
        without_latencies(op);
        if let Self::Restore = self {
            let step = row.series.interval_ns / op.series.interval_ns.max(1);
            let first_of_each = op.series.cells.iter_mut().step_by(step.max(1) as usize);
            for (cell, shown) in first_of_each.zip(&row.series.cells) {
                cell.latency_max_ns = shown.latency_max_ns;
            }
        }
        Some(())
    }

    fn latency(self, of: &mut LatencyHistogram, shown: &LatencySummary) -> Option<()> {
        self.counts(of, &LatencyHistogram::from_hdr_base64(&shown.hdr).ok()?)
    }

    fn counts(self, of: &mut LatencyHistogram, shown: &LatencyHistogram) -> Option<()> {
        match self {
            Self::Remove => of.remove_counts(shown),
            Self::Restore => {
                of.add_counts(shown);
                Some(())
            }
        }
    }
}

/// Estimates take rates from the cells; rows show the longest latency of coarser ones.
fn without_latencies(op: &mut OpMeasurement) {
    for cell in &mut op.series.cells {
        (cell.latency_max_ns, cell.latency_sum_ns) = (0, 0);
    }
}

fn kept_of(m: &Measurement, row: &MeasurementRecord) -> Option<Measurement> {
    let shown = row.ping.as_ref().map_or(0, |ping| ping.requests.len());
    (m.requests.len() == shown).then(|| Measurement {
        windows: kept_windows(m, row),
        first_write: m.first_write.as_ref().map(|first| {
            Box::new(Measurement {
                windows: Vec::new(),
                slices: Vec::new(),
                ..(**first).clone()
            })
        }),
        slices: Vec::new(),
        requests: Vec::new(),
        ..m.clone()
    })
}

/// Windows serve to tell a steady part from what came before it: those before it stay as they are,
/// and it becomes one. Without phases there is nothing to tell.
fn kept_windows(m: &Measurement, row: &MeasurementRecord) -> Vec<Window> {
    let is_earlier = |window: &&Window| window.start_ns < row.settling_ns;
    let earlier = m.windows.iter().take_while(is_earlier).count();
    let (earlier, steady) = m.windows.split_at(earlier);
    if row.phases.is_empty() {
        return Vec::new();
    }
    let steady = (!steady.is_empty()).then(|| joined(steady));
    earlier.iter().cloned().chain(steady).collect()
}

/// The data that the record was derived from; `None` where it keeps none.
pub(crate) fn measured(record: &Record) -> Option<RunData> {
    let mut data = RunData::clone(record.data.as_deref()?);
    if data.measurements.len() != record.measurements.len() {
        return None;
    }
    if data.completes_rows {
        share(&mut data, record, Way::Restore)?;
        data.completes_rows = false;
    }
    for (m, row) in data.measurements.iter_mut().zip(&record.measurements) {
        m.slices.clone_from(&row.slices);
        if let Some(ping) = &row.ping {
            m.requests.clone_from(&ping.requests);
        }
    }
    if let Some(surface) = &mut data.surface {
        surface.curve = record.curve().to_vec();
        surface.access = record.access().to_vec();
        surface.scan = record.surface().and_then(|s| s.scan.clone());
    }
    if let Some(layers) = record.layers() {
        data.layer_places.clone_from(&layers.places);
    }
    data.observed = record.observed().cloned();
    Some(data)
}
