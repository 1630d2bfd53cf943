//! Rates over time: with the longest latency over the measured time of each measurement, and those
//! of an observed load.

use super::types::{Axis, AxisSide, Chart, Guide, Series, SeriesMark, latency_unit, slug, subject};
use diskproof_model::finding::Finding;
use diskproof_model::measurement::OpKind;
use diskproof_model::observed::{ObservedDevice, ObservedOps, ObservedRecord};
use diskproof_model::record::{MeasurementRecord, OpRecord, Record};
use diskproof_model::series::Cell;
use diskproof_model::units::format_duration;

/// From a rate of this workload to the unit of the axis.
fn scale(m: &MeasurementRecord) -> f64 {
    if m.is_rated_in_bytes() { 1e-6 } else { 1.0 }
}

/// Of more measurements, only those in which something changes have a picture: the others would
/// hide them.
const ALL_MAX: usize = 16;
/// Findings on what happens over time.
const OVER_TIME: [&str; 3] = ["burst-exhausted", "ragged", "stalled"];

/// One chart for each measurement with more than one cell. The rate of single requests is the
/// user's.
pub(super) fn charts(record: &Record) -> Vec<Chart> {
    let all = record.measurements.iter().enumerate();
    let is_few = record.measurements.len() <= ALL_MAX;
    let others = (!is_few).then(|| format!(" {OTHERS}"));
    let caption = CAPTION.to_owned() + &others.unwrap_or_default();
    let is_shown = |index: usize, m: &MeasurementRecord| {
        m.ping.is_none() && (is_few || index == 0 || changes(record, index, m))
    };
    let shown = all.filter(|(index, m)| is_shown(*index, m));
    let shown = shown.filter_map(|(_, m)| chart(record, m, &caption));
    shown.collect()
}

fn changes(record: &Record, index: usize, m: &MeasurementRecord) -> bool {
    let place = format!("/measurements/{index}/");
    let is_here = |finding: &Finding| {
        let mut evidence = finding.evidence.iter();
        OVER_TIME.contains(&finding.code.as_str())
            && evidence.any(|one| one.path.starts_with(&place))
    };
    m.steady_from_ns() > 0
        || m.settled == Some(false)
        || m.hang.is_some()
        || !m.interruptions.is_empty()
        || record.findings.iter().any(is_here)
}

fn chart(record: &Record, m: &MeasurementRecord, caption: &str) -> Option<Chart> {
    let ops: Vec<(OpKind, &OpRecord)> = m.headline_ops();
    if ops.iter().all(|(_, op)| m.cells_over_time(op).count() < 2) {
        return None;
    }
    let group = cells_per_point(m, &ops);
    let longest = ops.iter().map(|(_, op)| op.series.total().latency_max_ns);
    let (latency_unit, ns) = latency_unit(longest.max()? as f64);
    let (label, unit) = if m.is_rated_in_bytes() {
        ("throughput", "MB/s")
    } else {
        ("rate", "IOPS")
    };
    let mut series = Vec::new();
    let mut guides = Vec::new();
    let mut figures = Vec::new();
    for (kind, op) in &ops {
        let estimate = m.rate(op);
        let is_of_ops = estimate.unit == "1/s";
        let rate = estimate
            .text()
            .replacen("/s ", " IOPS ", usize::from(is_of_ops));
        let kind = kind.as_str();
        let (prefix, figure) = match ops.len() {
            2.. => (format!("{kind}s: "), format!("{kind}s {rate}")),
            _ => (String::new(), rate.clone()),
        };
        series.extend(op_series(m, op, &prefix, label, ns, group));
        let at = estimate.value * scale(m);
        guides.push(Guide::new(AxisSide::Left, format!("{prefix}{rate}"), at));
        figures.push(figure);
    }
    if m.steady_from_ns() > 0 {
        let at = m.steady_from_ns() as f64 / 1e9;
        guides.push(Guide::new(AxisSide::X, "the figures begin".to_owned(), at));
    }
    Some(Chart {
        id: format!("time-{}", slug(&m.workload.name)),
        title: format!("{} over time: {}", subject(record, m), figures.join(", ")),
        caption: caption.to_owned(),
        x: Axis::new("time", "s").between(Some(0.0), Some(m.wall_ns as f64 / 1e9)),
        y: Axis::new(label, unit).starting_at_zero(),
        y_right: Some(Axis::new("longest latency", latency_unit).starting_at_zero()),
        series,
        guides,
    })
}

const CAPTION: &str = "Line: rate in each cell of the measured time; dots: longest latency in it \
                       (right axis). A level line is a steady disk; steps are caches that fill, \
                       notches are pauses. Cells with few operations are merged; the legend then \
                       names the length of a point.";

const OTHERS: &str = "Of the many workloads of this run the first has a picture, and each that \
                      changes while it is measured.";

/// A rate over fewer operations is mostly noise: of this many it has a standard error of 20 %.
const OPERATIONS_PER_POINT: u64 = 25;
/// Fewer points show no course.
const POINTS_LEAST: usize = 4;

/// How many neighbouring cells a point joins: the same number everywhere, so that a pause stays
/// a pause.
fn cells_per_point(m: &MeasurementRecord, ops: &[(OpKind, &OpRecord)]) -> usize {
    let per_point = ops.iter().map(|(_, op)| {
        let cells = m.cells_over_time(op).count();
        let count: u64 = m.cells_over_time(op).map(|(_, _, cell)| cell.ops).sum();
        let needed = (OPERATIONS_PER_POINT * cells as u64).div_ceil(count.max(1)) as usize;
        needed.clamp(1, (cells / POINTS_LEAST).max(1))
    });
    per_point.max().unwrap_or(1)
}

/// A stretch of neighbouring cells: its middle and its length in seconds, and all of them as one.
type Point = (f64, f64, Cell);

/// The points of the chart. A rest of less than half a point belongs to the one before.
fn points(m: &MeasurementRecord, op: &OpRecord, group: usize) -> Vec<Point> {
    let cells = m.cells_over_time(op);
    let cells = cells.map(|(at, seconds, cell)| (at, seconds, *cell));
    let cells: Vec<Point> = cells.collect();
    let rest = cells.len() % group;
    let whole = cells.len() - rest;
    let last = if rest * 2 < group && whole >= group {
        whole - group
    } else {
        whole
    };
    let (even, tail) = cells.split_at(last);
    let all = even.chunks(group).chain((!tail.is_empty()).then_some(tail));
    all.map(joined).collect()
}

fn joined(cells: &[Point]) -> Point {
    let seconds: f64 = cells.iter().map(|(_, seconds, _)| seconds).sum();
    let weighted: f64 = cells.iter().map(|(at, seconds, _)| at * seconds).sum();
    let mut all = Cell::default();
    cells.iter().for_each(|(.., cell)| all.merge(cell));
    (weighted / seconds, seconds, all)
}

/// The rate and the longest latency of one kind of operation.
fn op_series(
    m: &MeasurementRecord,
    op: &OpRecord,
    prefix: &str,
    label: &str,
    ns: f64,
    group: usize,
) -> [Series; 2] {
    let points = points(m, op, group);
    let in_bytes = m.is_rated_in_bytes();
    let rates = points.iter().map(|(at, seconds, cell)| {
        let events = if in_bytes { cell.bytes } else { cell.ops };
        (*at, events as f64 / seconds * scale(m))
    });
    let answered = points.iter().filter(|(.., cell)| cell.latency_max_ns > 0);
    let latencies = answered.map(|(at, _, cell)| (*at, cell.latency_max_ns as f64 / ns));
    let longest = format!("{prefix}longest latency");
    let label = match (group, points.first()) {
        (2.., Some((_, seconds, _))) => {
            let length = format_duration((seconds * 1e9).round() as u64);
            format!("{label}, points of {length}")
        }
        _ => label.to_owned(),
    };
    let label = format!("{prefix}{label}");
    [
        Series::new(label, SeriesMark::Line, rates.collect()),
        Series::new(longest, SeriesMark::Dots, latencies.collect()).on_the_right(),
    ]
}

/// Fewer steps show no course.
const STEPS_LEAST: usize = 3;

const LOAD_CAPTION: &str = "Each point is one step. The load shows what programs request, not what \
                            the disk can do.";

/// The charts of an observed load: requests and bytes per second of each device.
pub(super) fn observed_charts(observed: &ObservedRecord) -> Vec<Chart> {
    let devices = observed.devices.iter();
    let both = devices.flat_map(|device| {
        let rate = observed_chart(
            (device, "requests"),
            ("rate", "IOPS"),
            |cell| cell.ops as f64,
            |ops| ops.iops.value_text().replacen("/s", " IOPS", 1),
        );
        let throughput = observed_chart(
            (device, "bytes"),
            ("throughput", "MB/s"),
            |cell| cell.bytes as f64 / 1e6,
            |ops| ops.throughput.value_text(),
        );
        [rate, throughput].into_iter().flatten()
    });
    both.collect()
}

/// `of_step` is the value of a step in the unit of the axis times seconds, `text` that of the whole
/// time.
fn observed_chart(
    (device, what): (&ObservedDevice, &str),
    (label, unit): (&str, &str),
    of_step: fn(&Cell) -> f64,
    text: fn(&ObservedOps) -> String,
) -> Option<Chart> {
    let ops = || device.ops.iter().filter(|(_, ops)| ops.count > 0);
    let count = ops().map(|(_, ops)| ops.series.cells.len()).max()?;
    if count < STEPS_LEAST {
        return None;
    }
    let series =
        ops().map(|(kind, ops)| Series::new(kind.plural(), SeriesMark::Line, steps(ops, of_step)));
    let figures = ops().map(|(kind, ops)| format!("{} {}", kind.plural(), text(ops)));
    let figures: Vec<String> = figures.collect();
    Some(Chart {
        id: format!("observed-{what}-{}", slug(&device.name)),
        title: format!("Load of {} over time: {}", device.name, figures.join(", ")),
        caption: LOAD_CAPTION.to_owned(),
        x: Axis::new("time", "s").between(Some(0.0), Some(device.wall_ns as f64 / 1e9)),
        y: Axis::new(label, unit).starting_at_zero(),
        series: series.collect(),
        ..Chart::default()
    })
}

/// The rate of each step at its middle.
fn steps(ops: &ObservedOps, of_step: fn(&Cell) -> f64) -> Vec<(f64, f64)> {
    let (start, step) = (ops.series.start_ns as f64, ops.series.interval_ns as f64);
    let cells = ops.series.cells.iter().enumerate();
    let steps = cells.map(|(number, cell)| {
        let middle = start + (number as f64 + 0.5) * step;
        (middle / 1e9, of_step(cell) * 1e9 / step.max(1.0))
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::measurement::OpKind;
    use diskproof_model::record::Estimate;
    use diskproof_model::series::TimeSeries;
    use std::collections::BTreeMap;

    /// A record of `check`, its first measurement with `ops` operations in every cell.
    fn measured(ops: u64) -> MeasurementRecord {
        let mut m = crate::fixture::record().measurements.swap_remove(2);
        for cell in m.ops.values_mut().flat_map(|op| &mut op.series.cells) {
            cell.ops = ops;
        }
        m
    }

    #[test]
    fn cells_with_few_operations_are_joined_and_pauses_stay() {
        let (m, few) = (measured(100), measured(6));
        let op = |m: &MeasurementRecord| m.headline_ops()[0].1.clone();
        let cells = m.cells_over_time(&op(&m)).count();
        assert_eq!(cells_per_point(&m, &m.headline_ops()), 1);
        assert_eq!(points(&m, &op(&m), 1).len(), cells);
        let group = cells_per_point(&few, &few.headline_ops());
        assert_eq!(group, 5.min(cells / POINTS_LEAST), "of {cells} cells");
        let joined = points(&few, &op(&few), group);
        let total: u64 = joined.iter().map(|point| point.2.ops).sum();
        assert_eq!(total, 6 * cells as u64);
        let whole = &joined[..joined.len() - 1];
        assert!(whole.iter().all(|point| point.2.ops == 6 * group as u64));
        let mut paused = measured(100);
        for op in paused.ops.values_mut() {
            op.series.cells[1].ops = 0;
        }
        let points = points(&paused, &op(&paused), 1);
        assert_eq!(points[1].2.ops, 0);
        let [rate, _] = op_series(&few, &op(&few), "", "rate", 1e6, group);
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
        assert_eq!(charts[0].series[0].points, points);
        // Of 1 MB each.
        assert_eq!(charts[1].series[0].points, points);
    }
}
