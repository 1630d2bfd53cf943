//! Rates over time: with the longest latency over the measured time of each measurement, and those
//! of an observed load.

use super::types::{Axis, AxisSide, Chart, Guide, Series, SeriesMark, latency_unit, slug, subject};
use diskproof_model::finding::Finding;
use diskproof_model::measurement::OpKind;
use diskproof_model::observed::{ObservedDevice, ObservedOps, ObservedRecord};
use diskproof_model::record::Record;
use diskproof_model::row::{OpRow, Row};
use diskproof_model::series::Cell;
use diskproof_model::summary::CellOverTime;
use diskproof_model::units::format_duration;

/// From a rate of this workload to the unit of the axis.
fn scale(m: &Row) -> f64 {
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
    let is_shown = |index: usize, m: &Row| {
        m.figures.ping.is_none() && (is_few || index == 0 || changes(record, index, m))
    };
    let shown = all.filter(|(index, m)| is_shown(*index, m));
    let shown = shown.filter_map(|(_, m)| chart(record, m, &caption));
    shown.collect()
}

fn changes(record: &Record, index: usize, m: &Row) -> bool {
    let place = format!("/measurements/{index}/");
    let is_here = |finding: &Finding| {
        let mut evidence = finding.evidence.iter();
        OVER_TIME.contains(&finding.code.as_str())
            && evidence.any(|one| one.path.starts_with(&place))
    };
    m.steady_from_ns() > 0
        || m.figures.settled == Some(false)
        || m.data.hang.is_some()
        || !m.data.interruptions.is_empty()
        || record.findings.iter().any(is_here)
}

fn chart(record: &Record, m: &Row, caption: &str) -> Option<Chart> {
    let ops: Vec<(OpKind, OpRow<'_>)> = m.headline_ops();
    if ops.iter().all(|(_, op)| m.cells_over_time(*op).len() < 2) {
        return None;
    }
    let group = cells_per_point(m, &ops);
    let longest = ops
        .iter()
        .map(|(_, op)| op.data.series.total().latency_max_ns);
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
        let estimate = m.rate(*op);
        let is_of_ops = estimate.unit == "1/s";
        let rate = estimate
            .text()
            .replacen("/s ", " IOPS ", usize::from(is_of_ops));
        let kind = kind.as_str();
        let (prefix, figure) = match ops.len() {
            2.. => (format!("{kind}s: "), format!("{kind}s {rate}")),
            _ => (String::new(), rate.clone()),
        };
        series.extend(op_series(m, *op, &prefix, label, ns, group));
        let at = estimate.value * scale(m);
        guides.push(Guide::new(AxisSide::Left, format!("{prefix}{rate}"), at));
        figures.push(figure);
    }
    if m.steady_from_ns() > 0 {
        let at = m.steady_from_ns() as f64 / 1e9;
        guides.push(Guide::new(AxisSide::X, "the figures begin".to_owned(), at));
    }
    Some(Chart {
        id: format!("time-{}", slug(&m.data.workload.name)),
        title: format!("{} over time: {}", subject(record, m), figures.join(", ")),
        caption: caption.to_owned(),
        x: Axis::new("time", "s").between(Some(0.0), Some(m.data.wall_ns as f64 / 1e9)),
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
fn cells_per_point(m: &Row, ops: &[(OpKind, OpRow<'_>)]) -> usize {
    let mut most = 1;
    for (_, op) in ops {
        let cells = m.cells_over_time(*op);
        let count: u64 = cells.iter().map(|of| of.cell.ops).sum();
        let needed = (OPERATIONS_PER_POINT * cells.len() as u64).div_ceil(count.max(1)) as usize;
        most = most.max(needed.min(cells.len() / POINTS_LEAST));
    }
    most
}

/// The points of the chart: stretches of neighbouring cells, each as one. A rest of less than half
/// a point belongs to the one before.
fn points(m: &Row, op: OpRow<'_>, group: usize) -> Vec<CellOverTime> {
    let cells = m.cells_over_time(op);
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

fn joined(cells: &[CellOverTime]) -> CellOverTime {
    let mut length_s = 0.0;
    let mut weighted = 0.0;
    let mut all = Cell::default();
    for of in cells {
        length_s += of.length_s;
        weighted += of.middle_s * of.length_s;
        all.merge(&of.cell);
    }
    CellOverTime {
        middle_s: weighted / length_s,
        length_s,
        cell: all,
    }
}

/// The rate and the longest latency of one kind of operation.
fn op_series(
    m: &Row,
    op: OpRow<'_>,
    prefix: &str,
    label: &str,
    ns: f64,
    group: usize,
) -> [Series; 2] {
    let points = points(m, op, group);
    let in_bytes = m.is_rated_in_bytes();
    let mut rates = Vec::new();
    let mut latencies = Vec::new();
    for point in &points {
        let cell = &point.cell;
        let events = if in_bytes { cell.bytes } else { cell.ops };
        rates.push((point.middle_s, events as f64 / point.length_s * scale(m)));
        if cell.latency_max_ns > 0 {
            latencies.push((point.middle_s, cell.latency_max_ns as f64 / ns));
        }
    }
    let longest = format!("{prefix}longest latency");
    let label = match (group, points.first()) {
        (2.., Some(first)) => {
            let length = format_duration((first.length_s * 1e9).round() as u64);
            format!("{label}, points of {length}")
        }
        _ => label.to_owned(),
    };
    let label = format!("{prefix}{label}");
    [
        Series::new(label, SeriesMark::Line, rates),
        Series::new(longest, SeriesMark::Dots, latencies).on_the_right(),
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

    #[test]
    fn cells_with_few_operations_are_joined_and_pauses_stay() {
        let (m, few) = (measured(100), measured(6));
        let cells = m.cells_over_time(m.headline_ops()[0].1).len();
        assert_eq!(cells_per_point(&m, &m.headline_ops()), 1);
        assert_eq!(points(&m, m.headline_ops()[0].1, 1).len(), cells);
        let group = cells_per_point(&few, &few.headline_ops());
        assert_eq!(group, 5.min(cells / POINTS_LEAST), "of {cells} cells");
        let joined = points(&few, few.headline_ops()[0].1, group);
        let total: u64 = joined.iter().map(|point| point.cell.ops).sum();
        assert_eq!(total, 6 * cells as u64);
        let whole = &joined[..joined.len() - 1];
        assert!(whole.iter().all(|point| point.cell.ops == 6 * group as u64));
        let mut paused = measured(100);
        for op in paused.data.ops.values_mut() {
            op.series.cells[1].ops = 0;
        }
        let points = points(&paused, paused.headline_ops()[0].1, 1);
        assert_eq!(points[1].cell.ops, 0);
        let [rate, _] = op_series(&few, few.headline_ops()[0].1, "", "rate", 1e6, group);
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
