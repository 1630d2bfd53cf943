//! Charts over depth. Measurements that differ in depth only have a chart of IOPS and latency. Each
//! matrix of a sweep has two, of its measured cells: operations over the depth, with a line for
//! each block size, and bytes over the block size, with a line for each depth.

use super::naming::{slug, target_among_several};
use super::types::{Axis, AxisSide, Chart, Guide, Scale, Series, SeriesMark};
use super::units::latency_unit;
use crate::labels;
use diskproof_model::digits::rounded;
use diskproof_model::knee::{KNEE_POINTS_MIN, KneePoint, find_knee};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Access, EngineChoice, Stop, Workload};
use diskproof_model::record::Record;
use diskproof_model::row::{OpRow, Row};
use diskproof_model::sweep::{CellState, SweepCell, SweepMatrix, SweepRecord};
use diskproof_model::units::format_bytes;
use std::collections::BTreeSet;

/// One chart for each group and kind of operation.
pub(super) fn charts(record: &Record) -> Vec<Chart> {
    let mut charts = Vec::new();
    for group in depth_groups(record) {
        for (kind, _) in group[0].headline_ops() {
            charts.extend(depth_chart(record, &group, kind));
        }
    }
    charts
}

/// Groups of measurements that differ in depth only. Those under an offered load have no fixed
/// depth, and are in none.
fn depth_groups(record: &Record) -> Vec<Vec<&Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in &record.measurements {
        if row.data.workload.rate.is_some() {
            continue;
        }
        match groups.iter_mut().find(|group| belongs_to(row, group)) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// True if a measurement differs from each of a group in depth only.
fn belongs_to(row: &Row, group: &[&Row]) -> bool {
    group.iter().all(|other| differ_only_in_depth(other, row))
}

fn differ_only_in_depth(a: &Row, b: &Row) -> bool {
    a.data.target == b.data.target
        && a.data.span_start_bytes == b.data.span_start_bytes
        && a.data.span_bytes == b.data.span_bytes
        && a.data.cache.used == b.data.cache.used
        && a.figures.together_with == b.figures.together_with
        && requests_in_flight(&a.data.workload) != requests_in_flight(&b.data.workload)
        && without_depth(&a.data.workload) == without_depth(&b.data.workload)
}

/// The workload without what may differ in a group: the depth, the name, the limits that end it,
/// and the engine, because a depth of one needs no queue.
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

fn requests_in_flight(workload: &Workload) -> u32 {
    workload.depth.saturating_mul(workload.workers)
}

/// An operation as it was measured at one depth.
struct DepthPoint<'a> {
    depth: u32,
    op: OpRow<'a>,
}

impl<'a> DepthPoint<'a> {
    fn rate(&self) -> KneePoint<'a> {
        KneePoint {
            offered: self.depth,
            rate: &self.op.figures.iops,
        }
    }
}

/// The depths of a group at which this operation happened, ascending.
fn depth_points<'a>(group: &[&'a Row], kind: OpKind) -> Vec<DepthPoint<'a>> {
    let mut points = Vec::new();
    for row in group {
        if let Some(op) = row.op(kind)
            && op.data.count > 0
        {
            let depth = requests_in_flight(&row.data.workload);
            points.push(DepthPoint { depth, op });
        }
    }
    points.sort_by_key(|point| point.depth);
    points
}

/// The chart of an operation of a group; `None` with too few depths.
fn depth_chart(record: &Record, group: &[&Row], kind: OpKind) -> Option<Chart> {
    let points = depth_points(group, kind);
    if points.len() < KNEE_POINTS_MIN {
        return None;
    }
    let deepest = &points.last()?.op.figures.latency;
    let longest_ns = match deepest.p99 {
        Some(p99) => p99 as f64,
        None => deepest.mean,
    };
    let (latency, unit_ns) = latency_unit(longest_ns);
    let best = points
        .iter()
        .map(|point| &point.op.figures.iops)
        .max_by(|a, b| a.value.total_cmp(&b.value))?;
    let best_iops = rounded(best.value, best.half_width_95);
    let name = group_name(record, group[0], kind);
    let mut guides = Vec::new();
    let mut caption = NO_KNEE_CAPTION;
    if let Some(depth) = certain_knee_depth(&points) {
        guides.push(knee_guide(depth));
        caption = KNEE_CAPTION;
    }
    Some(Chart {
        id: format!("depth-{}", slug(&name)),
        title: format!("IOPS and latency over depth: {name}, at most {best_iops} IOPS"),
        caption: caption.to_owned(),
        x: depth_axis(points.iter().map(|point| f64::from(point.depth))),
        y: Axis::new("rate", "IOPS").starting_at_zero(),
        y_right: Some(Axis::new("latency", latency).starting_at_zero()),
        series: depth_series(&points, unit_ns).into(),
        guides,
    })
}

/// The rate, the mean latency and its 99th percentile, over depth.
fn depth_series(points: &[DepthPoint<'_>], unit_ns: f64) -> [Series; 3] {
    let mut rates = Vec::new();
    let mut means = Vec::new();
    let mut p99s = Vec::new();
    for point in points {
        let depth = f64::from(point.depth);
        let latency = &point.op.figures.latency;
        rates.push((depth, &point.op.figures.iops));
        means.push((depth, latency.mean / unit_ns));
        if let Some(p99) = latency.p99 {
            p99s.push((depth, p99 as f64 / unit_ns));
        }
    }
    [
        Series::estimates("IOPS", SeriesMark::Line, rates, 1.0),
        Series::new("mean latency", SeriesMark::Line, means).on_the_right(),
        Series::new("p99 latency", SeriesMark::Dots, p99s).on_the_right(),
    ]
}

fn depth_axis(depths: impl Iterator<Item = f64>) -> Axis {
    Axis::new("requests in flight", "")
        .scaled(Scale::Log)
        .labelled_at(depths)
}

/// Says how to read a chart with a knee.
const KNEE_CAPTION: &str = "More requests in flight give more IOPS up to the knee; beyond it they \
                            wait longer. The knee is where IOPS over latency is largest.";

/// Says how to read a chart without a knee.
const NO_KNEE_CAPTION: &str = "More requests in flight give more IOPS until the disk is busy; then \
                               they wait longer. These depths and intervals show no knee.";

/// Block size, order and kind of operation, with what makes it durable: `8 KiB random reads`,
/// `8 KiB commits (write+fdatasync)`.
fn group_name(record: &Record, row: &Row, kind: OpKind) -> String {
    let workload = &row.data.workload;
    let order = match workload.access {
        Access::Random { .. } | Access::Zoned { .. } => "random ",
        Access::Sequential | Access::Backward | Access::Stride { .. } => "",
    };
    let block = format_bytes(u64::from(workload.block_bytes));
    let mut name = format!("{block} {order}{}s", kind.as_str());
    if kind == OpKind::Commit
        && let Some(sync) = labels::sync(workload.sync)
    {
        name += &format!(" ({sync})");
    }
    if workload.streams.is_mix() {
        let reads = f64::from(workload.streams.permille(OpKind::Read)) / 10.0;
        name += &format!(" at {reads} % reads");
    }
    if let Some(target) = target_among_several(record, row) {
        name += &format!(" on {}", target.path);
    }
    name
}

/// The depth of the knee. `None` where the intervals leave open which depth that is, and at the
/// smallest depth, if that is above one: the knee may be below it.
fn certain_knee_depth(points: &[DepthPoint<'_>]) -> Option<u32> {
    let rates: Vec<KneePoint<'_>> = points.iter().map(DepthPoint::rate).collect();
    let knee = find_knee(&rates)?;
    let is_first = knee.offered > 1 && knee.offered == rates.first()?.offered;
    if is_first || knee.low != knee.offered || knee.high != Some(knee.offered) {
        return None;
    }
    Some(knee.offered)
}

fn knee_guide(depth: u32) -> Guide {
    Guide::new(AxisSide::X, format!("knee at {depth}"), f64::from(depth))
}

/// Two charts for each operation.
pub(super) fn sweep_charts(sweep: &SweepRecord) -> Vec<Chart> {
    let mut charts = Vec::new();
    for matrix in &sweep.matrices {
        charts.push(iops_over_depth_chart(matrix));
        charts.push(throughput_over_size_chart(matrix));
    }
    charts
}

/// The measured cells of a matrix, and the lines through them.
struct MeasuredCells<'a>(Vec<&'a SweepCell>);

impl<'a> MeasuredCells<'a> {
    fn new(matrix: &'a SweepMatrix) -> Self {
        let cells = matrix
            .cells
            .iter()
            .filter(|cell| cell.state == CellState::Measured)
            .collect();
        Self(cells)
    }

    /// The block sizes, each once, ascending.
    fn sizes(&self) -> BTreeSet<u32> {
        self.0.iter().map(|cell| cell.block_bytes).collect()
    }

    /// The depths, each once, ascending.
    fn depths(&self) -> BTreeSet<u32> {
        self.0.iter().map(|cell| cell.depth).collect()
    }

    /// Operations per second over the depth.
    fn line_of_size(&self, block_bytes: u32) -> Series {
        let mut rates = Vec::new();
        for cell in &self.0 {
            if cell.block_bytes == block_bytes
                && let Some(iops) = &cell.iops
            {
                rates.push((f64::from(cell.depth), iops));
            }
        }
        let name = format_bytes(u64::from(block_bytes));
        Series::estimates(name, SeriesMark::Line, rates, 1.0)
    }

    /// Bytes per second over the block size.
    fn line_of_depth(&self, depth: u32) -> Series {
        let mut rates = Vec::new();
        for cell in &self.0 {
            if cell.depth == depth
                && let Some(throughput) = &cell.throughput
            {
                rates.push((kib(cell.block_bytes), throughput));
            }
        }
        Series::estimates(format!("depth {depth}"), SeriesMark::Line, rates, 1e6)
    }
}

/// A block size in the unit of its axis.
fn kib(bytes: u32) -> f64 {
    f64::from(bytes) / 1024.0
}

fn iops_over_depth_chart(matrix: &SweepMatrix) -> Chart {
    let words = matrix.operation.words();
    let cells = MeasuredCells::new(matrix);
    let depths = cells.depths().into_iter();
    let sizes = cells.sizes().into_iter();
    let mut guides = Vec::new();
    let mut caption = NO_KNEE_CAPTION;
    if let Some(knee) = &matrix.knee {
        guides.push(knee_guide(knee.depth));
        caption = KNEE_CAPTION;
    }
    Chart {
        id: format!("depth-{}", slug(words)),
        title: format!("IOPS over depth: {words}, by block size"),
        caption: caption.to_owned(),
        x: depth_axis(depths.map(f64::from)),
        y: Axis::new("rate", "IOPS").scaled(Scale::Log),
        series: sizes.map(|size| cells.line_of_size(size)).collect(),
        guides,
        ..Chart::default()
    }
}

fn throughput_over_size_chart(matrix: &SweepMatrix) -> Chart {
    let words = matrix.operation.words();
    let cells = MeasuredCells::new(matrix);
    let depths = cells.depths().into_iter();
    let sizes = cells.sizes().into_iter();
    let mut guides = Vec::new();
    if let Some(limit) = &matrix.bandwidth_limit {
        let size = format_bytes(u64::from(limit.block_bytes));
        let label = format!("bandwidth limits from {size}");
        guides.push(Guide::new(AxisSide::X, label, kib(limit.block_bytes)));
    }
    Chart {
        id: format!("size-{}", slug(words)),
        title: format!("Throughput over block size: {words}, by depth"),
        caption: "Larger blocks move more bytes until bandwidth is the limit; beyond it, a block \
                  takes longer in proportion to its size."
            .to_owned(),
        x: Axis::new("block size", "KiB")
            .scaled(Scale::Log)
            .labelled_at(sizes.map(kib)),
        y: Axis::new("throughput", "MB/s").starting_at_zero(),
        series: depths.map(|depth| cells.line_of_depth(depth)).collect(),
        guides,
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::record::Estimate;
    use diskproof_model::sweep::{DepthKnee, SweepOperation};

    fn cell(depth: u32, iops: f64) -> SweepCell {
        SweepCell {
            block_bytes: 8192,
            depth,
            state: CellState::Measured,
            why: None,
            iops: Some(Estimate::new(30, iops, Some(0.01 * iops), "1/s")),
            throughput: Some(Estimate::new(30, 8192.0 * iops, None, "B/s")),
            latency_mean_ns: None,
            latency_p50_ns: None,
            latency_p99_ns: None,
            latency_max_ns: None,
        }
    }

    #[test]
    fn caption_and_guide_of_a_sweep_follow_its_knee() {
        let mut predicted = cell(16, 9000.0);
        predicted.state = CellState::Predicted;
        let mut matrix = SweepMatrix {
            operation: SweepOperation::RandRead,
            cells: vec![cell(1, 1000.0), cell(4, 4000.0), predicted],
            knee: None,
            bandwidth_limit: None,
            cost_model: None,
        };
        let chart = iops_over_depth_chart(&matrix);
        assert_eq!(chart.caption, NO_KNEE_CAPTION);
        assert!(chart.guides.is_empty());
        assert_eq!(chart.series[0].points.len(), 2, "only what was measured");
        matrix.knee = Some(DepthKnee {
            block_bytes: 8192,
            depth: 4,
            depth_low: 4,
            depth_high: Some(4),
            iops: Estimate::new(30, 4000.0, Some(40.0), "1/s"),
            iops_single: None,
        });
        let chart = iops_over_depth_chart(&matrix);
        assert_eq!(chart.caption, KNEE_CAPTION);
        assert_eq!(chart.guides[0].value, 4.0);
        // 8 KiB × 4000/s are 32.77 MB/s.
        let sizes = throughput_over_size_chart(&matrix);
        assert!((sizes.series[1].points[0].y - 32.768).abs() < 1e-9);
    }
}
