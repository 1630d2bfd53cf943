//! IOPS and latency over depth, where measurements of a record differ in depth only. Of the matrix
//! of a sweep, operations over the depth, a line for each block size, and bytes over the block
//! size, a line for each depth; measured cells only.

use super::types::{Axis, AxisSide, Chart, Guide, Scale, Series, SeriesMark, latency_unit, slug};
use crate::labels;
use diskproof_model::digits::rounded;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Access;
use diskproof_model::plan::{EngineChoice, Stop, Workload};
use diskproof_model::record::Record;
use diskproof_model::row::{OpRow, Row};
use diskproof_model::sweep::{CellState, SweepCell, SweepMatrix, SweepRecord};
use diskproof_model::units::format_bytes;
use std::collections::BTreeSet;

/// Fewer depths cannot show a knee.
const DEPTHS_LEAST: usize = 3;

/// One chart for each group and kind of operation.
pub(super) fn charts(record: &Record) -> Vec<Chart> {
    let mut charts = Vec::new();
    for group in groups(record) {
        for (kind, _) in group[0].headline_ops() {
            charts.extend(chart(record, &group, kind));
        }
    }
    charts
}

/// Measurements that differ in depth only.
fn groups(record: &Record) -> Vec<Vec<&Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    let measurements = record.measurements.iter();
    for m in measurements.filter(|m| m.data.workload.rate.is_none()) {
        let alike = |group: &&mut Vec<&Row>| group.iter().all(|other| differ_in_depth(other, m));
        match groups.iter_mut().find(alike) {
            Some(group) => group.push(m),
            None => groups.push(vec![m]),
        }
    }
    groups
}

fn differ_in_depth(a: &Row, b: &Row) -> bool {
    a.data.target == b.data.target
        && a.data.span_start_bytes == b.data.span_start_bytes
        && a.data.span_bytes == b.data.span_bytes
        && a.data.cache.used == b.data.cache.used
        && a.figures.together_with == b.figures.together_with
        && in_flight(&a.data.workload) != in_flight(&b.data.workload)
        && without_depth(&a.data.workload) == without_depth(&b.data.workload)
}

/// Names always differ, and when it ends may. So may the engine: a depth of one needs no queue.
fn without_depth(workload: &Workload) -> Workload {
    Workload {
        depth: 0,
        workers: 0,
        name: String::new(),
        stop: Stop::default(),
        engine: EngineChoice::Auto,
        ..workload.clone()
    }
}

fn in_flight(w: &Workload) -> u64 {
    u64::from(w.depth) * u64::from(w.workers)
}

fn chart(record: &Record, group: &[&Row], kind: OpKind) -> Option<Chart> {
    let points = group.iter().filter_map(|m| {
        let op = m.op(kind).filter(|op| op.data.count > 0)?;
        Some((in_flight(&m.data.workload), op))
    });
    let mut points: Vec<(u64, OpRow<'_>)> = points.collect();
    points.sort_by_key(|(depth, _)| *depth);
    if points.len() < DEPTHS_LEAST {
        return None;
    }
    let longest = &points.last()?.1.figures.latency;
    let (latency, ns) = latency_unit(longest.p99.map_or(longest.mean, |ns| ns as f64));
    let at = || points.iter().map(|(depth, op)| (*depth as f64, *op));
    let iops = at().map(|(depth, op)| (depth, &op.figures.iops));
    let mean = at().map(|(depth, op)| (depth, op.figures.latency.mean / ns));
    let p99 = at().filter_map(|(depth, op)| Some((depth, op.figures.latency.p99? as f64 / ns)));
    let rates = points.iter().map(|(_, op)| &op.figures.iops);
    let best = rates.max_by(|a, b| a.value.total_cmp(&b.value))?;
    let best = rounded(best.value, best.half_width_95);
    let what = what(record, group[0], kind);
    let knee = knee(&points);
    let caption = knee.as_ref().map_or(NO_KNEE_CAPTION, |_| KNEE_CAPTION);
    Some(Chart {
        id: format!("depth-{}", slug(&what)),
        title: format!("IOPS and latency over depth: {what}, at most {best} IOPS"),
        caption: caption.to_owned(),
        x: depth_axis(at().map(|(depth, _)| depth)),
        y: Axis::new("rate", "IOPS").starting_at_zero(),
        y_right: Some(Axis::new("latency", latency).starting_at_zero()),
        series: vec![
            Series::estimates("IOPS", SeriesMark::Line, iops, 1.0),
            Series::new("mean latency", SeriesMark::Line, mean.collect()).on_the_right(),
            Series::new("p99 latency", SeriesMark::Dots, p99.collect()).on_the_right(),
        ],
        guides: knee.into_iter().collect(),
    })
}

fn depth_axis(depths: impl Iterator<Item = f64>) -> Axis {
    let axis = Axis::new("requests in flight", "").scaled(Scale::Log);
    axis.labelled_at(depths)
}

const KNEE_CAPTION: &str = "More requests in flight give more IOPS up to the knee; beyond it they \
                            wait longer. The knee is where IOPS over latency is largest.";

const NO_KNEE_CAPTION: &str = "More requests in flight give more IOPS until the disk is busy; then \
                               they wait longer. These depths and intervals show no knee.";

/// Block size, order and kind of operation, with what makes it durable: `8 KiB random reads`,
/// `8 KiB commits (write+fdatasync)`.
fn what(record: &Record, m: &Row, kind: OpKind) -> String {
    let order = match m.data.workload.access {
        Access::Random { .. } | Access::Zoned { .. } => "random ",
        Access::Sequential | Access::Backward | Access::Stride { .. } => "",
    };
    let streams = &m.data.workload.streams;
    let reads = f64::from(streams.permille(OpKind::Read)) / 10.0;
    let mixed = streams.is_mix().then(|| format!(" at {reads} % reads"));
    let target = record.targets.get(m.data.target);
    let target = target.filter(|_| record.targets.len() > 1);
    let target = target.map(|target| format!(" on {}", target.path));
    let block = format_bytes(u64::from(m.data.workload.block_bytes));
    let sync = match kind {
        OpKind::Commit => labels::sync(m.data.workload.sync),
        _ => None,
    };
    let method = sync.map_or(String::new(), |sync| format!(" ({sync})"));
    format!(
        "{block} {order}{}s{method}{}{}",
        kind.as_str(),
        mixed.unwrap_or_default(),
        target.unwrap_or_default()
    )
}

/// The depth of the largest power, which is throughput over response time (Kleinrock, ICC 1979). By
/// Little's law power is the square of the rate over the depth. A disk that serves `n` requests in
/// parallel has its knee at depth `n`. `None` where the intervals leave open which depth that is,
/// and at the smallest and the largest depth, beyond which there may be more.
fn knee(points: &[(u64, OpRow<'_>)]) -> Option<Guide> {
    let power = |(depth, op): &(u64, OpRow<'_>)| op.figures.iops.value.powi(2) / *depth as f64;
    let best = points.iter().max_by(|a, b| power(a).total_cmp(&power(b)))?;
    let (depth, _) = best;
    // A square has twice the relative error.
    let width = |(_, op): &(u64, OpRow<'_>)| Some(2.0 * op.figures.iops.relative_half_width()?);
    let low = power(best) * (1.0 - width(best)?);
    for other in points.iter().filter(|(other, _)| other != depth) {
        if power(other) * (1.0 + width(other)?) >= low {
            return None;
        }
    }
    let is_end = points.first()?.0 == *depth || points.last()?.0 == *depth;
    let label = format!("knee at {depth}");
    (!is_end).then(|| Guide::new(AxisSide::X, label, *depth as f64))
}

/// Bytes in the unit of the axis.
const KIB: f64 = 1024.0;

/// Two charts for each operation.
pub(super) fn sweep_charts(sweep: &SweepRecord) -> Vec<Chart> {
    let charts = |matrix| [over_depth(matrix), over_size(matrix)];
    sweep.matrices.iter().flat_map(charts).collect()
}

fn measured(matrix: &SweepMatrix) -> impl Iterator<Item = &SweepCell> {
    let cells = matrix.cells.iter();
    cells.filter(|cell| cell.state == CellState::Measured)
}

/// The values of an axis, without repetition, in order.
fn values(matrix: &SweepMatrix, of: fn(&SweepCell) -> u32) -> BTreeSet<u32> {
    measured(matrix).map(of).collect()
}

fn over_depth(matrix: &SweepMatrix) -> Chart {
    let words = matrix.operation.words();
    let line = |size: u32| {
        let cells = measured(matrix).filter(|cell| cell.block_bytes == size);
        let rates = cells.filter_map(|cell| Some((f64::from(cell.depth), cell.iops.as_ref()?)));
        Series::estimates(format_bytes(u64::from(size)), SeriesMark::Line, rates, 1.0)
    };
    let sizes = values(matrix, |cell| cell.block_bytes).into_iter();
    let depths = values(matrix, |cell| cell.depth).into_iter();
    let knee = matrix.knee.as_ref().map(|knee| {
        let label = format!("knee at {}", knee.depth);
        Guide::new(AxisSide::X, label, f64::from(knee.depth))
    });
    Chart {
        id: format!("depth-{}", slug(words)),
        title: format!("IOPS over depth: {words}, by block size"),
        caption: KNEE_CAPTION.to_owned(),
        x: depth_axis(depths.map(f64::from)),
        y: Axis::new("rate", "IOPS").scaled(Scale::Log),
        series: sizes.map(line).collect(),
        guides: knee.into_iter().collect(),
        ..Chart::default()
    }
}

fn over_size(matrix: &SweepMatrix) -> Chart {
    let words = matrix.operation.words();
    let place = |bytes: u32| f64::from(bytes) / KIB;
    let line = |depth: u32| {
        let cells = measured(matrix).filter(|cell| cell.depth == depth);
        let rates =
            cells.filter_map(|cell| Some((place(cell.block_bytes), cell.throughput.as_ref()?)));
        Series::estimates(format!("depth {depth}"), SeriesMark::Line, rates, 1e6)
    };
    let sizes = values(matrix, |cell| cell.block_bytes).into_iter();
    let depths = values(matrix, |cell| cell.depth).into_iter();
    let size_axis = Axis::new("block size", "KiB").scaled(Scale::Log);
    let limit = matrix.bandwidth_limit.as_ref().map(|limit| {
        let bytes = limit.block_bytes;
        let label = format!("bandwidth limits from {}", format_bytes(u64::from(bytes)));
        Guide::new(AxisSide::X, label, place(bytes))
    });
    Chart {
        id: format!("size-{}", slug(words)),
        title: format!("Throughput over block size: {words}, by depth"),
        caption: "Larger blocks move more bytes until bandwidth is the limit; beyond it, a block \
                  takes longer in proportion to its size."
            .to_owned(),
        x: size_axis.labelled_at(sizes.map(place)),
        y: Axis::new("throughput", "MB/s").starting_at_zero(),
        series: depths.map(line).collect(),
        guides: limit.into_iter().collect(),
        ..Chart::default()
    }
}
