//! The matrix of a sweep, from the measurements of its cells: rates with their intervals, the knee
//! over the depth, the block size at which bandwidth becomes the limit, and a cost model that
//! predicts the cells that were not measured. docs/sweep.md explains them.

mod cost_model;

use crate::checked::PAGE_BYTES;
use crate::estimate::student::multiple_95;
use crate::estimate::{smallest_by, sum_of};
use crate::rules::has_many_failures;
use cost_model::{CellLatency, fitted_model};
use diskproof_model::knee::{KNEE_POINTS_MIN, KneePoint, find_knee};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Plan;
use diskproof_model::record::Estimate;
use diskproof_model::row::{OpRow, Row};
use diskproof_model::sweep::{
    BandwidthLimit, CellState, CostModel, DepthKnee, SpanRate, SweepCell, SweepMatrix,
    SweepOperation, SweepPlan, SweepRecord, span_name,
};

/// In a slice of this many turns of the queue, one convoy of requests more or less changes the rate
/// by 2 % at most.
const TURNS_MIN: f64 = 50.0;
/// Bandwidth limits a block size that reaches at most this share of the most operations per second,
/// or at least this share of the highest bandwidth. Where the transfer takes as long as everything
/// else, both shares are half. Where the disk has a limit of operations, the first share is all.
const LIMITED_SHARE: f64 = 0.75;
/// With fewer operations not even a rough interval is known.
const OPERATIONS_MIN: u64 = 3;

/// The result of a sweep; `None` of a run that was none.
pub(crate) fn sweep_record(plan: &Plan, measurements: &[Row]) -> Option<SweepRecord> {
    let sweep = plan.sweep()?;
    let found = FoundCells { plan, measurements };
    Some(SweepRecord {
        matrices: sweep
            .operations
            .iter()
            .map(|operation| sweep_matrix(*operation, sweep, &found))
            .collect(),
        spans: span_rates(sweep, &found),
    })
}

/// The measurements of a run by the name of their workload, with the plan, which has the reasons
/// why others are missing.
struct FoundCells<'a> {
    plan: &'a Plan,
    measurements: &'a [Row],
}

impl FoundCells<'_> {
    fn row_named(&self, name: &str) -> Option<&Row> {
        self.measurements
            .iter()
            .find(|row| row.data.workload.name == name)
    }

    fn cell(&self, operation: SweepOperation, block_bytes: u32, depth: u32) -> SweepCell {
        let name = operation.cell_name(block_bytes, depth);
        let mut cell = empty_cell(block_bytes, depth);
        if let Some(row) = self.row_named(&name) {
            fill_cell(&mut cell, row);
        } else if let Some(skipped) = self.plan.skipped.iter().find(|one| one.workload == name) {
            cell.state = CellState::Impossible;
            cell.why = Some(skipped.why.clone());
        } else {
            cell.why = Some("the run ended before this cell was measured".to_owned());
        }
        cell
    }
}

/// A cell of which nothing is known yet.
fn empty_cell(block_bytes: u32, depth: u32) -> SweepCell {
    SweepCell {
        block_bytes,
        depth,
        state: CellState::Unknown,
        why: None,
        iops: None,
        throughput: None,
        latency_mean_ns: None,
        latency_p50_ns: None,
        latency_p99_ns: None,
        latency_max_ns: None,
    }
}

/// The operations of a cell: reads and writes, without syncs.
struct CellOps<'a> {
    ops: Vec<OpRow<'a>>,
    count: u64,
}

impl<'a> CellOps<'a> {
    fn from_row(row: &'a Row) -> Self {
        let mut ops = Vec::new();
        for kind in OpKind::TRANSFERS {
            if let Some(op) = row.op(kind)
                && op.data.count > 0
            {
                ops.push(op);
            }
        }
        Self {
            count: ops.iter().map(|op| op.data.count).sum(),
            ops,
        }
    }

    /// The sum of all latencies.
    fn latency_ns(&self) -> f64 {
        self.ops
            .iter()
            .map(|op| op.figures.latency.mean * op.data.count as f64)
            .sum()
    }

    /// Operations per second.
    fn iops(&self) -> Option<Estimate> {
        let rates = self.ops.iter().map(|op| op.figures.iops.clone());
        Some(with_interval(sum_of(rates)?, self.count))
    }

    /// Bytes per second.
    fn throughput(&self) -> Option<Estimate> {
        let rates = self.ops.iter().map(|op| op.figures.throughput.clone());
        Some(with_interval(sum_of(rates)?, self.count))
    }
}

/// Fills a cell with the figures of its row, or with the reason why it has none. The rate of a cell
/// in which the disk stopped answering, or in which many requests failed, shows the failures: it is
/// no figure of the disk, and neither knee nor cost model rests on it.
fn fill_cell(cell: &mut SweepCell, row: &Row) {
    let ops = CellOps::from_row(row);
    if let Some(hang) = row.data.hang {
        cell.state = CellState::Failed;
        cell.why = Some(hang.clause().to_owned());
        return;
    }
    let errors = row.errors_total();
    if errors > 0 && (ops.count == 0 || has_many_failures(row)) {
        cell.state = CellState::Failed;
        cell.why = Some(match ops.count {
            0 => format!("{errors} requests failed and none completed"),
            count => format!("{errors} requests failed and {count} completed"),
        });
        return;
    }
    if ops.count == 0 {
        cell.why = Some("no request completed in the time of this cell".to_owned());
        return;
    }
    if row.data.limited_depth().is_some() {
        cell.state = CellState::Impossible;
        let why = "the disk is so slow that a queue of this depth would outlast the cell";
        cell.why = Some(why.to_owned());
        return;
    }
    cell.state = CellState::Measured;
    cell.latency_mean_ns = Some(ops.latency_ns() / ops.count as f64);
    cell.latency_max_ns = ops.ops.iter().map(|op| op.figures.latency.max).max();
    // The percentiles of two kinds together are not known from those of each.
    if let [only] = ops.ops.as_slice() {
        cell.latency_p50_ns = only.figures.latency.p50;
        cell.latency_p99_ns = only.figures.latency.p99;
    }
    let convoy = convoy_error(row, &ops);
    cell.iops = ops.iops().map(|rate| with_further_error(rate, convoy));
    cell.throughput = ops
        .throughput()
        .map(|rate| with_further_error(rate, convoy));
}

/// The relative error of the rate by a convoy at the edges of the slices; 0 where it does not
/// matter.
///
/// A slice that has few turns of the queue counts one convoy of requests too few or too many. Every
/// slice has the same error, so their agreement hides it. The latencies do not have it. By Little's
/// law the depth over their mean is a rate, too. The share by which the two rates differ is the
/// error.
fn convoy_error(row: &Row, ops: &CellOps<'_>) -> f64 {
    let slices = row.data.slices.len().max(1) as f64;
    let count = ops.count as f64;
    let latency_ns = ops.latency_ns();
    let rate: f64 = ops.ops.iter().map(|op| op.figures.iops.value).sum();
    let turns = count / (f64::from(row.data.workload.depth.max(1)) * slices);
    if turns >= TURNS_MIN || latency_ns <= 0.0 || rate <= 0.0 {
        return 0.0;
    }
    let by_latency = f64::from(row.data.workload.depth) * 1e9 * count / latency_ns;
    (by_latency / rate - 1.0).abs()
}

/// The estimate with a further error, which is independent of its scatter.
fn with_further_error(estimate: Estimate, relative_error: f64) -> Estimate {
    let error = relative_error * estimate.value;
    Estimate {
        half_width_95: estimate.half_width_95.map(|half| half.hypot(error)),
        ..estimate
    }
}

/// The estimate with an interval, even where too little was measured for batches. That interval
/// assumes independent requests whose times vary as much as they last, and one request more or
/// less.
fn with_interval(estimate: Estimate, count: u64) -> Estimate {
    if estimate.half_width_95.is_some() || count < OPERATIONS_MIN {
        return estimate;
    }
    let requests = count as f64;
    let relative = multiple_95(requests - 1.0) / requests.sqrt() + 1.0 / requests;
    Estimate {
        n: count,
        half_width_95: Some(relative * estimate.value),
        ..estimate
    }
}

/// The matrix of one operation. Knee, limit and model use measured cells only, so the cells that
/// were not measured are predicted last.
fn sweep_matrix(
    operation: SweepOperation,
    sweep: &SweepPlan,
    found: &FoundCells<'_>,
) -> SweepMatrix {
    let mut cells = Vec::new();
    for block_bytes in &sweep.block_bytes {
        for depth in &sweep.depths {
            cells.push(found.cell(operation, *block_bytes, *depth));
        }
    }
    let mut matrix = SweepMatrix {
        operation,
        cells,
        knee: None,
        bandwidth_limit: None,
        cost_model: None,
    };
    matrix.knee = depth_knee(&matrix, sweep);
    matrix.bandwidth_limit = bandwidth_limit(&matrix, sweep);
    matrix.cost_model = cost_model(&matrix);
    if let Some(model) = matrix.cost_model {
        predict_cells(&mut matrix.cells, &model);
    }
    matrix
}

/// The knee over the depth, for the block size closest to a page that has enough points. `None`
/// where none has, and where the knee may lie below the first measured depth.
fn depth_knee(matrix: &SweepMatrix, sweep: &SweepPlan) -> Option<DepthKnee> {
    let sizes = sweep
        .block_bytes
        .iter()
        .copied()
        .filter(|size| depth_points(matrix, sweep, *size).len() >= KNEE_POINTS_MIN);
    let block_bytes = smallest_by(sizes, |size| distance_to_page(*size))?;
    let points = depth_points(matrix, sweep, block_bytes);
    let found = find_knee(&points)?;
    // Where the first depth may be the knee, so may a smaller one that was not measured.
    if found.low > 1 && found.low == points.first()?.offered {
        return None;
    }
    let single = points.iter().find(|point| point.offered == 1);
    Some(DepthKnee {
        block_bytes,
        depth: found.offered,
        depth_low: found.low,
        depth_high: found.high,
        iops: found.rate.clone(),
        iops_single: single.map(|point| point.rate.clone()),
    })
}

/// The measured rates of blocks of this size, by depth.
fn depth_points<'a>(
    matrix: &'a SweepMatrix,
    sweep: &SweepPlan,
    block_bytes: u32,
) -> Vec<KneePoint<'a>> {
    let mut points = Vec::new();
    for depth in &sweep.depths {
        if let Some(cell) = matrix.cell(block_bytes, *depth)
            && let Some(rate) = &cell.iops
        {
            points.push(KneePoint {
                offered: cell.depth,
                rate,
            });
        }
    }
    points
}

/// The distance of a block size from that of a page: the absolute logarithm of their ratio.
fn distance_to_page(block_bytes: u32) -> f64 {
    (f64::from(block_bytes) / f64::from(PAGE_BYTES)).ln().abs()
}

/// The block sizes from which on bandwidth limits, with the range that the intervals allow; `None`
/// where no measured size is limited.
fn bandwidth_limit(matrix: &SweepMatrix, sweep: &SweepPlan) -> Option<BandwidthLimit> {
    let mut points = Vec::new();
    for block_bytes in &sweep.block_bytes {
        if let Some(rate) = best_throughput(matrix, *block_bytes) {
            points.push(KneePoint {
                offered: *block_bytes,
                rate,
            });
        }
    }
    let found = find_knee(&points)?;
    let highest = points
        .iter()
        .map(|point| point.rate)
        .max_by(|one, other| one.cmp_certain(other))?;
    let high = match found.high {
        Some(size) => limited_from(&points, size, highest.value),
        None => None,
    };
    Some(BandwidthLimit {
        block_bytes: limited_from(&points, found.offered, highest.value)?,
        block_bytes_low: limited_from(&points, found.low, highest.value)?,
        block_bytes_high: high,
        throughput: highest.clone(),
    })
}

/// The highest throughput of all depths with blocks of this size.
fn best_throughput(matrix: &SweepMatrix, block_bytes: u32) -> Option<&Estimate> {
    matrix
        .cells
        .iter()
        .filter(|cell| cell.block_bytes == block_bytes)
        .flat_map(|cell| &cell.throughput)
        .max_by(|one, other| one.cmp_certain(other))
}

/// The first block size from this one on that bandwidth limits. Of a disk with a limit of
/// operations the knee is the last size that reaches it.
fn limited_from(points: &[KneePoint<'_>], size: u32, highest: f64) -> Option<u32> {
    let highest_operations = points.iter().map(KneePoint::operations).fold(0.0, f64::max);
    let largest = points.last()?.offered;
    for point in points {
        let is_near_highest = point.rate.value >= LIMITED_SHARE * highest;
        let is_limited = point.operations() <= LIMITED_SHARE * highest_operations
            || (is_near_highest && point.offered < largest);
        if point.offered >= size && is_limited {
            return Some(point.offered);
        }
    }
    None
}

/// The model that fits the mean latencies of the measured cells; `None` of too few.
fn cost_model(matrix: &SweepMatrix) -> Option<CostModel> {
    let mut cells = Vec::new();
    for cell in &matrix.cells {
        if let Some(latency_ns) = cell.latency_mean_ns
            && latency_ns > 0.0
        {
            cells.push(CellLatency {
                block_bytes: cell.block_bytes,
                depth: cell.depth,
                latency_ns,
            });
        }
    }
    fitted_model(&cells)
}

/// Fills cells that were not measured with the predictions of the model. Their interval is twice
/// the typical error of the model.
fn predict_cells(cells: &mut [SweepCell], model: &CostModel) {
    for cell in cells {
        if cell.state != CellState::Unknown {
            continue;
        }
        let latency_ns = model.latency_ns(cell.block_bytes, cell.depth);
        if !(latency_ns.is_finite() && latency_ns > 0.0) {
            continue;
        }
        let iops = f64::from(cell.depth) * 1e9 / latency_ns;
        let throughput = iops * f64::from(cell.block_bytes);
        cell.state = CellState::Predicted;
        cell.iops = Some(predicted_rate(model, iops, "1/s"));
        cell.throughput = Some(predicted_rate(model, throughput, "B/s"));
        cell.latency_mean_ns = Some(latency_ns);
    }
}

/// A rate that the model predicts. Its interval is twice the typical error of the model.
fn predicted_rate(model: &CostModel, rate: f64, unit: &str) -> Estimate {
    let half_width = 2.0 * model.model_error * rate;
    Estimate::new(model.cells_fitted, rate, Some(half_width), unit)
}

/// The rate of each span, with its gain over the last one, which is the whole.
fn span_rates(sweep: &SweepPlan, found: &FoundCells<'_>) -> Vec<SpanRate> {
    let Some(block_bytes) = span_block_bytes(sweep) else {
        return Vec::new();
    };
    let mut spans = Vec::new();
    for span_bytes in &sweep.span_bytes {
        let mut span = SpanRate {
            span_bytes: *span_bytes,
            iops: None,
            latency_mean_ns: None,
            gain: None,
        };
        if let Some(row) = found.row_named(&span_name(block_bytes, *span_bytes))
            && let Some(op) = CellOps::from_row(row).ops.first()
        {
            span.iops = Some(with_interval(op.figures.iops.clone(), op.data.count));
            span.latency_mean_ns = Some(op.figures.latency.mean);
        }
        spans.push(span);
    }
    let whole = match spans.last() {
        Some(SpanRate {
            iops: Some(whole), ..
        }) if whole.value > 0.0 => whole.value,
        _ => return spans,
    };
    for span in &mut spans {
        span.gain = span.iops.as_ref().map(|iops| iops.value / whole);
    }
    spans
}

/// The block size of the reads over spans: a page, where it is among the sizes, else the smallest.
pub fn span_block_bytes(sweep: &SweepPlan) -> Option<u32> {
    let sizes = &sweep.block_bytes;
    let page = sizes.iter().find(|bytes| **bytes == PAGE_BYTES);
    page.or(sizes.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::measurement::Hang;

    /// The limit of a disk that does this many operations of each size (in KiB) per second.
    fn limit(rates: &[(u32, f64)]) -> Option<(u32, u32, Option<u32>)> {
        let cell = |(kib, rate): &(u32, f64)| {
            let estimate = |value: f64| Estimate::new(30, value, Some(0.01 * value), "1/s");
            SweepCell {
                state: CellState::Measured,
                iops: Some(estimate(*rate)),
                throughput: Some(estimate(rate * f64::from(kib << 10))),
                ..empty_cell(kib << 10, 16)
            }
        };
        let sweep = SweepPlan {
            operations: vec![SweepOperation::RandRead],
            block_bytes: rates.iter().map(|(kib, _)| kib << 10).collect(),
            depths: vec![16],
            span_bytes: Vec::new(),
            view: None,
        };
        let matrix = SweepMatrix {
            operation: SweepOperation::RandRead,
            cells: rates.iter().map(cell).collect(),
            knee: None,
            bandwidth_limit: None,
            cost_model: None,
        };
        let found = bandwidth_limit(&matrix, &sweep)?;
        let kib = |bytes: u32| bytes >> 10;
        let high = found.block_bytes_high.map(kib);
        Some((kib(found.block_bytes), kib(found.block_bytes_low), high))
    }

    /// The depth of the knee at these rates, with an interval of 2 %, of blocks of a page.
    fn knee(rates: &[(u32, f64)]) -> Option<u32> {
        let mut cells = Vec::new();
        for (depth, rate) in rates {
            let mut cell = empty_cell(PAGE_BYTES, *depth);
            cell.state = CellState::Measured;
            cell.iops = Some(Estimate::new(30, *rate, Some(0.02 * rate), "1/s"));
            cells.push(cell);
        }
        let sweep = SweepPlan {
            operations: vec![SweepOperation::RandRead],
            block_bytes: vec![PAGE_BYTES],
            depths: cells.iter().map(|cell| cell.depth).collect(),
            span_bytes: Vec::new(),
            view: None,
        };
        let matrix = SweepMatrix {
            operation: SweepOperation::RandRead,
            cells,
            knee: None,
            bandwidth_limit: None,
            cost_model: None,
        };
        Some(depth_knee(&matrix, &sweep)?.depth)
    }

    #[test]
    fn knee_below_the_first_depth_is_unknown() {
        // One request at a time.
        let serial = |depths: [u32; 3]| depths.map(|depth| (depth, 1000.0));
        assert_eq!(knee(&serial([1, 2, 4])), Some(1));
        assert_eq!(knee(&serial([8, 16, 32])), None);
        // Four at a time, sixteen, and 32.
        assert_eq!(knee(&[(2, 2000.0), (4, 4000.0), (8, 4000.0)]), Some(4));
        assert_eq!(knee(&[(16, 4000.0), (32, 4000.0), (64, 4000.0)]), None);
        assert_eq!(knee(&[(16, 16e3), (32, 32e3), (64, 32e3)]), Some(32));
    }

    /// A first request that was slow before one slice of several limits the depth of that slice.
    #[test]
    fn cell_is_impossible_where_its_depth_was_not_reached() {
        let state = |achieved_depth: f64| {
            let mut record = fixture::record();
            let mut row = fixture::measured(&mut record, "random-read-d32").clone();
            (row.data.engine.depth, row.data.achieved_depth) = (Some(18), achieved_depth);
            let mut cell = empty_cell(PAGE_BYTES, 32);
            fill_cell(&mut cell, &row);
            cell.state
        };
        assert_eq!(state(17.9), CellState::Impossible);
        assert_eq!(state(21.0), CellState::Impossible);
        assert_eq!(state(28.5), CellState::Measured);
    }

    /// A cell that the disk cannot read, or in which it stopped answering, is not one that nobody
    /// measured: the cost model says nothing of it.
    #[test]
    fn cell_whose_requests_all_failed_or_hung_is_not_predicted() {
        let model = CostModel {
            base_ns: 1000.0,
            request_ns: 1000.0,
            bytes_per_second: 1e9,
            model_error: 0.1,
            cells_fitted: 9,
        };
        let state = |errors: u64, hangs: bool| {
            let mut record = fixture::record();
            let mut row = fixture::measured(&mut record, "random-read-d32").clone();
            for op in row.data.ops.values_mut() {
                op.count = 0;
                if errors > 0 {
                    op.errors.insert("EIO".to_owned(), errors);
                }
            }
            row.data.hang = hangs.then_some(HANG);
            let mut cells = [empty_cell(PAGE_BYTES, 32)];
            fill_cell(&mut cells[0], &row);
            predict_cells(&mut cells, &model);
            assert!(cells[0].why.is_some());
            (cells[0].state, cells[0].iops.is_some())
        };
        assert_eq!(state(10, false), (CellState::Failed, false));
        assert_eq!(state(0, true), (CellState::Failed, false));
        assert_eq!(state(0, false), (CellState::Predicted, true));
    }

    const HANG: Hang = Hang {
        since_ns: 0,
        lasted_ns: 1,
        requests: 32,
        late: true,
    };

    /// Above some requests in flight every second request fails after a long wait: those depths
    /// show no knee. One failure in a thousand changes no rate.
    #[test]
    fn cell_in_which_many_requests_failed_is_no_point_of_the_knee() {
        let cell = |errors: u64, hangs: bool| {
            let mut record = fixture::record();
            let mut row = fixture::measured(&mut record, "random-read-d32").clone();
            let count: u64 = row.data.ops.values().map(|op| op.count).sum();
            assert!(count > 10_000);
            for op in row.data.ops.values_mut() {
                op.errors.insert("EIO".to_owned(), errors);
            }
            row.data.hang = hangs.then_some(HANG);
            let mut cell = empty_cell(PAGE_BYTES, 32);
            fill_cell(&mut cell, &row);
            (cell.state, cell.iops.is_some())
        };
        assert_eq!(cell(10, false), (CellState::Measured, true));
        assert_eq!(cell(10_000, false), (CellState::Failed, false));
        assert_eq!(cell(0, true), (CellState::Failed, false));
    }

    /// 20,000/s or 256 MiB/s, whichever is less: 8 KiB still reach 20,000/s.
    #[test]
    fn size_that_operations_limit_is_below_the_bandwidth_limit() {
        let capped = [4, 8, 32, 128, 1024].map(|kib| {
            let by_bytes = 256.0 * 1024.0 / f64::from(kib);
            (kib, by_bytes.min(20_000.0))
        });
        assert_eq!(limit(&capped), Some((32, 32, Some(32))));
        // No size reaches the bandwidth.
        assert_eq!(limit(&[4, 8, 16, 32].map(|kib| (kib, 20_000.0))), None);
    }

    /// 100 µs and 1 GB/s: at 128 KiB the transfer takes longer than the rest.
    #[test]
    fn size_whose_transfer_takes_as_long_as_the_rest_is_the_limit() {
        let of = |kib: u32| (kib, 1.0 / (100e-6 + f64::from(kib << 10) / 1e9));
        assert_eq!(limit(&[4, 16, 64, 128, 256, 1024].map(of)).unwrap().0, 128);
        // All of these sizes are beyond it.
        assert_eq!(limit(&[512, 1024, 2048, 4096].map(of)).unwrap().0, 512);
    }
}
