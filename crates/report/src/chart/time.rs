//! Charts over time: rate and longest latency of each measurement, and the rates of an observed
//! load.

use super::naming::{slug, subject_name};
use super::types::{Axis, AxisSide, Chart, Guide, Series, SeriesMark};
use super::units::latency_unit;
use diskproof_model::finding::Finding;
use diskproof_model::measurement::OpKind;
use diskproof_model::observed::{ObservedDevice, ObservedOps, ObservedRecord};
use diskproof_model::record::{Estimate, Record};
use diskproof_model::row::CellOverTime;
use diskproof_model::row::{OpRow, Row};
use diskproof_model::series::Cell;
use diskproof_model::units::format_duration;

/// With more measurements than this, only the first one and those that change over time have a
/// chart: the others would hide them.
const MEASUREMENTS_MAX: usize = 16;
/// The codes of findings about changes over time. The rules are in `analysis`, which this crate
/// does not know: a test looks these codes up in docs/findings.md.
const CHANGE_CODES: [&str; 4] = ["burst-exhausted", "ragged", "reads-fell", "stalled"];

/// Says how to read the chart of a measurement.
const CAPTION: &str = "Line: rate in each cell of the measured time; dots: longest latency in it \
                       (right axis). A level line is a steady disk; steps are caches that fill, \
                       notches are pauses. Cells with few operations are merged; the legend then \
                       names the length of a point.";

/// Says that not every workload has a chart.
const SELECTION_CAPTION: &str = "Of the many workloads of this run the first has a picture, and \
                                 each that changes while it is measured.";

/// One chart for each measurement with more than one cell. Pings have none, because the user sets
/// their rate.
pub(super) fn charts(record: &Record) -> Vec<Chart> {
    let are_few = record.measurements.len() <= MEASUREMENTS_MAX;
    let caption = if are_few {
        CAPTION.to_owned()
    } else {
        format!("{CAPTION} {SELECTION_CAPTION}")
    };
    let mut charts = Vec::new();
    for (index, row) in record.measurements.iter().enumerate() {
        if row.figures.ping.is_some() {
            continue;
        }
        if are_few || index == 0 || changes_over_time(record, index, row) {
            charts.extend(row_chart(record, row, &caption));
        }
    }
    charts
}

/// True if a measurement shows a change over time by itself or by a finding.
fn changes_over_time(record: &Record, index: usize, row: &Row) -> bool {
    let place = format!("/measurements/{index}/");
    row.steady_from_ns() > 0
        || row.figures.settled == Some(false)
        || row.data.hang.is_some()
        || !row.data.interruptions.is_empty()
        || record
            .findings
            .iter()
            .any(|finding| is_change_at(finding, &place))
}

/// True if a finding says that the measurement at this place of the record changed over time.
fn is_change_at(finding: &Finding, place: &str) -> bool {
    CHANGE_CODES.contains(&finding.code.as_str())
        && finding
            .evidence
            .iter()
            .any(|evidence| evidence.path.starts_with(place))
}

/// The rate by which a workload is judged, in the unit of its axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RateUnit {
    Operations,
    Megabytes,
}

impl RateUnit {
    fn from_row(row: &Row) -> Self {
        if row.is_rated_in_bytes() {
            Self::Megabytes
        } else {
            Self::Operations
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Operations => "rate",
            Self::Megabytes => "throughput",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Operations => "IOPS",
            Self::Megabytes => "MB/s",
        }
    }

    /// Converts operations or bytes per second to this unit.
    fn scaled(self, per_second: f64) -> f64 {
        match self {
            Self::Operations => per_second,
            Self::Megabytes => per_second * 1e-6,
        }
    }

    /// The rate in a stretch of time.
    fn in_cell(self, cell: &CellOverTime) -> f64 {
        let events = match self {
            Self::Operations => cell.counts.ops,
            Self::Megabytes => cell.counts.bytes,
        };
        self.scaled(events as f64 / cell.length_s)
    }
}

/// The scales that all operations of a workload share in a chart.
struct Drawing {
    rate: RateUnit,
    /// One unit of latency, in nanoseconds.
    unit_ns: f64,
    /// The number of neighbouring cells that become one point.
    cells_per_point: usize,
}

/// The chart of a measurement; `None` where no operation has two points.
fn row_chart(record: &Record, row: &Row, caption: &str) -> Option<Chart> {
    let ops = row.headline_ops();
    if ops.iter().all(|(_, op)| row.cells_over_time(*op).len() < 2) {
        return None;
    }
    let longest_ns = ops
        .iter()
        .map(|(_, op)| op.data.series.total().latency_max_ns)
        .max()?;
    let (latency, unit_ns) = latency_unit(longest_ns as f64);
    let drawing = Drawing {
        rate: RateUnit::from_row(row),
        unit_ns,
        cells_per_point: cells_per_point(row, &ops),
    };
    let drawn = DrawnOps::new(row, &ops, &drawing);
    let mut guides = drawn.guides;
    if row.steady_from_ns() > 0 {
        let start_s = row.steady_from_ns() as f64 / 1e9;
        let label = "the figures begin".to_owned();
        guides.push(Guide::new(AxisSide::X, label, start_s));
    }
    Some(Chart {
        id: format!("time-{}", slug(&row.data.workload.name)),
        title: format!(
            "{} over time: {}",
            subject_name(record, row),
            drawn.figures.join(", ")
        ),
        caption: caption.to_owned(),
        x: time_axis(row.data.wall_ns),
        y: Axis::new(drawing.rate.label(), drawing.rate.unit()).starting_at_zero(),
        y_right: Some(Axis::new("longest latency", latency).starting_at_zero()),
        series: drawn.series,
        guides,
    })
}

/// The operations of a workload in its chart.
struct DrawnOps {
    /// Two of each kind: the rate, and the longest latency.
    series: Vec<Series>,
    /// One of each kind, at its rate.
    guides: Vec<Guide>,
    /// The rate of each kind in words, for the title.
    figures: Vec<String>,
}

impl DrawnOps {
    fn new(row: &Row, ops: &[(OpKind, OpRow<'_>)], drawing: &Drawing) -> Self {
        let mut drawn = Self {
            series: Vec::new(),
            guides: Vec::new(),
            figures: Vec::new(),
        };
        for (kind, op) in ops {
            let estimate = row.rate(*op);
            let rate = rate_text(estimate);
            // A single kind needs no name.
            let (prefix, figure) = match ops {
                [_] => (String::new(), rate.clone()),
                _ => {
                    let name = kind.as_str();
                    (format!("{name}s: "), format!("{name}s {rate}"))
                }
            };
            drawn.figures.push(figure);
            let cells = row.cells_over_time(*op);
            drawn.series.extend(op_series(&cells, &prefix, drawing));
            drawn.guides.push(Guide::new(
                AxisSide::Left,
                format!("{prefix}{rate}"),
                drawing.rate.scaled(estimate.value),
            ));
        }
        drawn
    }
}

/// The rate with its interval: `13,700 IOPS ±6 %`, `512 MB/s ±1 %`.
fn rate_text(estimate: &Estimate) -> String {
    if estimate.unit == "1/s" {
        estimate.text().replacen("/s ", " IOPS ", 1)
    } else {
        estimate.text()
    }
}

/// An axis over the whole measured time.
fn time_axis(wall_ns: u64) -> Axis {
    Axis::new("time", "s").between(Some(0.0), Some(wall_ns as f64 / 1e9))
}

/// A rate over fewer operations is mostly noise: of this many it has a standard error of 20 %.
const OPERATIONS_PER_POINT: u64 = 25;
/// Cells are not merged to fewer points than this: fewer show no course.
const POINTS_MIN: usize = 4;

/// The number of neighbouring cells that become one point. It is the same everywhere, so that a
/// pause remains visible.
fn cells_per_point(row: &Row, ops: &[(OpKind, OpRow<'_>)]) -> usize {
    let mut cells_max = 1;
    for (_, op) in ops {
        let cells = row.cells_over_time(*op);
        let count: u64 = cells.iter().map(|cell| cell.counts.ops).sum();
        let needed = (OPERATIONS_PER_POINT * cells.len() as u64).div_ceil(count.max(1)) as usize;
        cells_max = cells_max.max(needed.min(cells.len() / POINTS_MIN));
    }
    cells_max
}

/// The points of a chart, each from several neighbouring cells. A remainder of less than half a
/// point belongs to the last one.
fn joined_points(cells: &[CellOverTime], cells_per_point: usize) -> Vec<CellOverTime> {
    let rest = cells.len() % cells_per_point;
    let mut whole = cells.len() - rest;
    if rest * 2 < cells_per_point && whole >= cells_per_point {
        whole -= cells_per_point;
    }
    let (even, last) = cells.split_at(whole);
    let mut points: Vec<CellOverTime> = even.chunks(cells_per_point).map(joined_cell).collect();
    if !last.is_empty() {
        points.push(joined_cell(last));
    }
    points
}

/// Joins neighbouring cells to one.
fn joined_cell(cells: &[CellOverTime]) -> CellOverTime {
    let mut length_s = 0.0;
    let mut weighted = 0.0;
    let mut merged = Cell::default();
    for cell in cells {
        length_s += cell.length_s;
        weighted += cell.middle_s * cell.length_s;
        merged.merge(&cell.counts);
    }
    CellOverTime {
        middle_s: weighted / length_s,
        length_s,
        counts: merged,
    }
}

/// The rate and the longest latency of one kind of operation.
fn op_series(cells: &[CellOverTime], prefix: &str, drawing: &Drawing) -> [Series; 2] {
    let points = joined_points(cells, drawing.cells_per_point);
    let mut rates = Vec::new();
    let mut latencies = Vec::new();
    for point in &points {
        rates.push((point.middle_s, drawing.rate.in_cell(point)));
        let latency_ns = point.counts.latency_max_ns;
        if latency_ns > 0 {
            latencies.push((point.middle_s, latency_ns as f64 / drawing.unit_ns));
        }
    }
    let mut name = format!("{prefix}{}", drawing.rate.label());
    if let Some(first) = points.first()
        && drawing.cells_per_point > 1
    {
        let length_ns = (first.length_s * 1e9).round() as u64;
        name += &format!(", points of {}", format_duration(length_ns));
    }
    let latency_name = format!("{prefix}longest latency");
    [
        Series::new(name, SeriesMark::Line, rates),
        Series::new(latency_name, SeriesMark::Dots, latencies).on_the_right(),
    ]
}

/// An observed load needs at least this many steps for a chart: fewer show no course.
const STEPS_MIN: usize = 3;

/// Says how to read the chart of an observed load.
const LOAD_CAPTION: &str = "Each point is one step. The load shows what programs request, not what \
                            the disk can do.";

/// The charts of an observed load: requests and bytes per second of each device.
pub(super) fn observed_charts(observed: &ObservedRecord) -> Vec<Chart> {
    let mut charts = Vec::new();
    for device in &observed.devices {
        charts.extend(observed_chart(device, RateUnit::Operations));
        charts.extend(observed_chart(device, RateUnit::Megabytes));
    }
    charts
}

fn observed_chart(device: &ObservedDevice, rate: RateUnit) -> Option<Chart> {
    let mut steps_max = 0;
    let mut series = Vec::new();
    let mut figures = Vec::new();
    for (kind, ops) in &device.ops {
        if ops.count == 0 {
            continue;
        }
        let name = kind.plural();
        let figure = match rate {
            RateUnit::Operations => ops.iops.value_text().replacen("/s", " IOPS", 1),
            RateUnit::Megabytes => ops.throughput.value_text(),
        };
        steps_max = steps_max.max(ops.series.cells.len());
        series.push(Series::new(name, SeriesMark::Line, rate_points(ops, rate)));
        figures.push(format!("{name} {figure}"));
    }
    if steps_max < STEPS_MIN {
        return None;
    }
    let counted = match rate {
        RateUnit::Operations => "requests",
        RateUnit::Megabytes => "bytes",
    };
    Some(Chart {
        id: format!("observed-{counted}-{}", slug(&device.name)),
        title: format!("Load of {} over time: {}", device.name, figures.join(", ")),
        caption: LOAD_CAPTION.to_owned(),
        x: time_axis(device.wall_ns),
        y: Axis::new(rate.label(), rate.unit()).starting_at_zero(),
        series,
        ..Chart::default()
    })
}

/// The rate of each step, at the middle of its time.
fn rate_points(ops: &ObservedOps, rate: RateUnit) -> Vec<(f64, f64)> {
    let start_ns = ops.series.start_ns as f64;
    let step_ns = ops.series.interval_ns as f64;
    let mut points = Vec::new();
    for (number, cell) in ops.series.cells.iter().enumerate() {
        let middle_ns = start_ns + (number as f64 + 0.5) * step_ns;
        let events = match rate {
            RateUnit::Operations => cell.ops as f64,
            RateUnit::Megabytes => cell.bytes as f64 / 1e6,
        };
        points.push((middle_ns / 1e9, events * 1e9 / step_ns.max(1.0)));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::series::TimeSeries;
    use std::collections::BTreeMap;

    /// A record of `check`, its first measurement with `ops` operations in every cell.
    fn measured(ops: u64) -> Row {
        let mut m = crate::fixture::record().measurements.swap_remove(2);
        for op in m.data.ops.values_mut() {
            op.series = op.shown_series();
            for cell in &mut op.series.cells {
                cell.ops = ops;
            }
        }
        m
    }

    /// The cells of the first operation that a reader looks at.
    fn first_cells(row: &Row) -> Vec<CellOverTime> {
        row.cells_over_time(row.headline_ops()[0].1)
    }

    #[test]
    fn cells_with_few_operations_are_joined_and_pauses_stay() {
        let (m, few) = (measured(100), measured(6));
        let cells = first_cells(&m).len();
        assert_eq!(cells_per_point(&m, &m.headline_ops()), 1);
        assert_eq!(joined_points(&first_cells(&m), 1).len(), cells);
        let group = cells_per_point(&few, &few.headline_ops());
        assert_eq!(group, 5.min(cells / POINTS_MIN), "of {cells} cells");
        let joined = joined_points(&first_cells(&few), group);
        let total: u64 = joined.iter().map(|point| point.counts.ops).sum();
        assert_eq!(total, 6 * cells as u64);
        let whole = &joined[..joined.len() - 1];
        assert!(
            whole
                .iter()
                .all(|point| point.counts.ops == 6 * group as u64)
        );
        let mut paused = measured(100);
        for op in paused.data.ops.values_mut() {
            op.series.cells[1].ops = 0;
        }
        assert_eq!(joined_points(&first_cells(&paused), 1)[1].counts.ops, 0);
        let drawing = Drawing {
            rate: RateUnit::Operations,
            unit_ns: 1e6,
            cells_per_point: group,
        };
        let [rate, _] = op_series(&first_cells(&few), "", &drawing);
        assert!(rate.name.starts_with("rate, points of "), "{}", rate.name);
    }

    fn estimate(value: f64, unit: &str) -> Estimate {
        Estimate {
            n: 3,
            value,
            half_width_95: None,
            unit: unit.to_owned(),
        }
    }

    #[test]
    fn codes_of_changes_are_those_of_findings() {
        let findings = include_str!("../../../../docs/findings.md");
        for code in CHANGE_CODES {
            assert!(findings.contains(&format!("\n| `{code}` | ")), "{code}");
        }
    }

    #[test]
    fn each_step_is_a_point_at_its_middle() {
        let mut series = TimeSeries::new(2_000_000_000);
        for (number, count) in [10, 20, 60].into_iter().enumerate() {
            let cell = Cell {
                ops: count,
                bytes: count * 1_000_000,
                ..Cell::default()
            };
            series.add(number as u64 * 2_000_000_000, &cell, 100);
        }
        let reads = ObservedOps {
            count: 90,
            bytes: 90_000_000,
            merges: 0,
            iops: estimate(15.0, "1/s"),
            throughput: estimate(15e6, "B/s"),
            latency_mean_ns: None,
            seek_share: 1.0,
            sizes: Vec::new(),
            series,
        };
        let device = ObservedDevice {
            target: 0,
            name: "sda".to_owned(),
            wall_ns: 6_000_000_000,
            ops: BTreeMap::from([(OpKind::Read, reads)]),
            flush_ops: None,
            queue_depth: 1.0,
            queue_depth_max: 1.0,
            seeks: None,
            processes: Vec::new(),
            capacity: None,
            load_share: None,
        };
        let observed = ObservedRecord {
            interval_ns: 2_000_000_000,
            devices: vec![device],
            hidden: Vec::new(),
            server: None,
        };
        let charts = observed_charts(&observed);
        assert_eq!(charts.len(), 2);
        assert_eq!(charts[0].id, "observed-requests-sda");
        assert!(charts[0].title.contains("15 IOPS"), "{}", charts[0].title);
        let points = [(1.0, 5.0), (3.0, 10.0), (5.0, 30.0)];
        let expected = Series::new("rate", SeriesMark::Line, points.to_vec()).points;
        assert_eq!(charts[0].series[0].points, expected);
        // Of 1 MB each.
        assert_eq!(charts[1].series[0].points, expected);
    }
}
