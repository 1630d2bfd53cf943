//! What a record keeps of the data that it was derived from, and that data again. Nothing stands in
//! a record twice: what its rows show as it was measured is taken from them.

use diskproof_model::data::RunData;
use diskproof_model::measurement::Measurement;
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::surface::SurfaceMeasurement;
use diskproof_model::window::{Window, joined};

/// The data that a record keeps; `None` where its rows do not show all that was measured, as those
/// of a ping with more requests than a record holds.
pub(crate) fn kept(data: &RunData, record: &Record) -> Option<RunData> {
    let rows = data.measurements.iter().zip(&record.measurements);
    let measurements = rows.map(|(m, row)| kept_of(m, row));
    Some(RunData {
        measurements: measurements.collect::<Option<_>>()?,
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
    })
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
    for (m, row) in data.measurements.iter_mut().zip(&record.measurements) {
        m.slices.clone_from(&row.slices);
        if let Some(ping) = &row.ping {
            m.requests.clone_from(&ping.requests);
        }
    }
    if let Some(surface) = &mut data.surface {
        surface.curve.clone_from(&record.curve);
        surface.access.clone_from(&record.access);
        surface.scan = record.surface.as_ref().and_then(|s| s.scan.clone());
    }
    if let Some(layers) = &record.layers {
        data.layer_places.clone_from(&layers.places);
    }
    data.observed.clone_from(&record.observed);
    Some(data)
}
