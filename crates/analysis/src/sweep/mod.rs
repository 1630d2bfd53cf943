//! The matrix of a sweep, from the measurements of its cells: rates with their intervals, the knee
//! over the depth, the block size at which bandwidth becomes the limit, the cost model and what it
//! predicts. docs/sweep.md explains them.

mod cost_model;
mod knee;

use crate::checked::PAGE_BYTES;
use crate::estimate::smallest_by;
use crate::estimate::student::multiple_95;
use cost_model::{CellLatency, fitted};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Plan;
use diskproof_model::record::{Estimate, MeasurementRecord, OpRecord};
use diskproof_model::sweep::{
    BandwidthLimit, CellState, CostModel, DepthKnee, SpanRate, SweepCell, SweepMatrix,
    SweepOperation, SweepPlan, SweepRecord, span_name,
};
use knee::{KneePoint, knee};

/// A slice of this many turns of the queue is hardly affected by where it begins.
const TURNS_MIN: f64 = 50.0;
/// Bandwidth limits a block that reaches less than this share of the most operations per second, or
/// more than it of the highest bandwidth. Where the transfer takes as long as everything else, both
/// are half; where the disk has a limit of operations, all of them are reached.
const LIMITED: f64 = 0.75;
/// With fewer operations not even a rough interval is known.
const OPERATIONS_MIN: u64 = 3;

/// The result of a sweep; `None` of a run that was none.
pub(crate) fn sweep_record(plan: &Plan, measurements: &[MeasurementRecord]) -> Option<SweepRecord> {
    let sweep = plan.sweep.as_ref()?;
    let found = FoundCells { plan, measurements };
    let operations = sweep.operations.iter();
    let matrices = operations.map(|operation| matrix(*operation, sweep, &found));
    Some(SweepRecord {
        matrices: matrices.collect(),
        spans: spans(sweep, &found),
    })
}

/// The measurements by name, and why others are missing.
struct FoundCells<'a> {
    plan: &'a Plan,
    measurements: &'a [MeasurementRecord],
}

impl FoundCells<'_> {
    fn named(&self, name: &str) -> Option<&MeasurementRecord> {
        self.measurements.iter().find(|m| m.workload.name == name)
    }

    fn cell(&self, operation: SweepOperation, block_bytes: u32, depth: u32) -> SweepCell {
        let name = operation.cell_name(block_bytes, depth);
        let mut cell = SweepCell {
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
        };
        if let Some(m) = self.named(&name) {
            fill(&mut cell, m);
        } else if let Some(skipped) = self.plan.skipped.iter().find(|one| one.workload == name) {
            cell.state = CellState::Impossible;
            cell.why = Some(skipped.why.clone());
        } else {
            cell.why = Some("the run ended before this cell was measured".to_owned());
        }
        cell
    }
}

/// Reads and writes, without syncs.
fn counted(m: &MeasurementRecord) -> Vec<&OpRecord> {
    let kinds = [OpKind::Read, OpKind::Write];
    let found = kinds.iter().filter_map(|kind| m.ops.get(kind));
    found.filter(|op| op.count > 0).collect()
}

fn fill(cell: &mut SweepCell, m: &MeasurementRecord) {
    let ops = counted(m);
    let count: u64 = ops.iter().map(|op| op.count).sum();
    if count == 0 {
        cell.why = Some(match m.errors_total() {
            0 => "no request completed in the time of this cell".to_owned(),
            errors => format!("{errors} requests failed and none completed"),
        });
        return;
    }
    if m.engine.depth.is_some() {
        cell.state = CellState::Impossible;
        let why = "the disk is so slow that a queue of this depth would outlast the cell";
        cell.why = Some(why.to_owned());
        return;
    }
    cell.state = CellState::Measured;
    let mean_sum: f64 = ops.iter().map(|op| op.latency.mean * op.count as f64).sum();
    cell.latency_mean_ns = Some(mean_sum / count as f64);
    cell.latency_max_ns = ops.iter().map(|op| op.latency.max).max();
    // The percentiles of two kinds together are not known from those of each.
    if let [only] = ops.as_slice() {
        (cell.latency_p50_ns, cell.latency_p99_ns) = (only.latency.p50, only.latency.p99);
    }
    let sum = |of: fn(&OpRecord) -> &Estimate| {
        let all = ops.iter().map(|op| of(op).clone());
        let sum = all.reduce(|a, b| added(&a, &b))?;
        Some(with_interval(sum, count))
    };
    let convoy = convoy_error(m, count);
    cell.iops = sum(|op| &op.iops).map(|rate| widened(rate, convoy));
    cell.throughput = sum(|op| &op.throughput).map(|rate| widened(rate, convoy));
}

/// A slice that holds few turns of the queue counts one convoy of requests too few or too many,
/// each time alike: the slices agree, and are off. The latencies are not. By Little's law the depth
/// over their mean is a rate, too; the share by which it differs is an error of both.
fn convoy_error(m: &MeasurementRecord, count: u64) -> f64 {
    let slices = m.slices.len().max(1) as f64;
    let ops = counted(m);
    let latency_ns: f64 = ops.iter().map(|op| op.latency.mean * op.count as f64).sum();
    let rate: f64 = ops.iter().map(|op| op.iops.value).sum();
    let turns = count as f64 / (f64::from(m.workload.depth.max(1)) * slices);
    if turns >= TURNS_MIN || latency_ns <= 0.0 || rate <= 0.0 {
        return 0.0;
    }
    let by_latency = f64::from(m.workload.depth) * 1e9 * count as f64 / latency_ns;
    (by_latency / rate - 1.0).abs()
}

/// The estimate with a further error, which is independent of its scatter.
fn widened(estimate: Estimate, relative: f64) -> Estimate {
    let error = relative * estimate.value;
    Estimate {
        half_width_95: estimate.half_width_95.map(|half| half.hypot(error)),
        ..estimate
    }
}

/// The sum of the rates of a mix, which vary together.
fn added(a: &Estimate, b: &Estimate) -> Estimate {
    let widths = a.half_width_95.zip(b.half_width_95);
    Estimate {
        n: a.n.min(b.n),
        value: a.value + b.value,
        half_width_95: widths.map(|(a, b)| a + b),
        unit: a.unit.clone(),
    }
}

/// Where too little was measured for batches, the interval that so many independent requests have
/// if their times vary as much as they last, and one more or less is counted.
fn with_interval(estimate: Estimate, count: u64) -> Estimate {
    if estimate.half_width_95.is_some() || count < OPERATIONS_MIN {
        return estimate;
    }
    let n = count as f64;
    let relative = multiple_95(n - 1.0) / n.sqrt() + 1.0 / n;
    Estimate {
        n: count,
        half_width_95: Some(relative * estimate.value),
        ..estimate
    }
}

fn matrix(operation: SweepOperation, sweep: &SweepPlan, found: &FoundCells<'_>) -> SweepMatrix {
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
        predict(&mut matrix.cells, &model);
    }
    matrix
}

fn depth_knee(matrix: &SweepMatrix, sweep: &SweepPlan) -> Option<DepthKnee> {
    let measured = |block_bytes: u32| -> Vec<&SweepCell> {
        let depths = sweep.depths.iter();
        let cells = depths.filter_map(|depth| matrix.cell(block_bytes, *depth));
        cells.filter(|cell| cell.iops.is_some()).collect()
    };
    // The size nearest to a page.
    let distance = |bytes: &u32| (f64::from(*bytes) / f64::from(PAGE_BYTES)).ln().abs();
    let sizes = sweep.block_bytes.iter();
    let sizes = sizes.filter(|bytes| measured(**bytes).len() >= knee::POINTS_MIN);
    let block_bytes = *smallest_by(sizes, |bytes| distance(bytes))?;
    let cells = measured(block_bytes);
    let points = cells.iter().filter_map(|cell| {
        Some(KneePoint {
            at: cell.depth,
            rate: cell.iops.as_ref()?,
        })
    });
    let points: Vec<KneePoint<'_>> = points.collect();
    let found = knee(&points)?;
    let single = points.iter().find(|point| point.at == 1);
    Some(DepthKnee {
        block_bytes,
        depth: found.at,
        depth_low: found.low,
        depth_high: found.high,
        iops: found.rate.clone(),
        iops_single: single.map(|point| point.rate.clone()),
    })
}

fn bandwidth_limit(matrix: &SweepMatrix, sweep: &SweepPlan) -> Option<BandwidthLimit> {
    // The best of all depths: what the disk can do with blocks of this size.
    let best = |block_bytes: &u32| {
        let cells = matrix.cells.iter();
        let of_size = cells.filter(|cell| cell.block_bytes == *block_bytes);
        let rates = of_size.filter_map(|cell| cell.throughput.as_ref());
        let rate = rates.max_by(|a, b| a.cmp_certain(b))?;
        Some(KneePoint {
            at: *block_bytes,
            rate,
        })
    };
    let points: Vec<KneePoint<'_>> = sweep.block_bytes.iter().filter_map(best).collect();
    let found = knee(&points)?;
    let highest = points.iter().map(|point| point.rate);
    let highest = highest.max_by(|a, b| a.cmp_certain(b))?;
    let operations = |point: &KneePoint<'_>| point.rate.value / f64::from(point.at.max(1));
    let most = points.iter().map(operations).fold(0.0, f64::max);
    let largest = points.last().map_or(0, |point| point.at);
    // Of a disk with a limit of operations the knee is the last size that reaches it.
    let starts_at = |size: u32| {
        let is_limited = |point: &&KneePoint<'_>| {
            let is_near_highest = point.rate.value >= LIMITED * highest.value;
            let is_limited =
                operations(point) <= LIMITED * most || (is_near_highest && point.at < largest);
            point.at >= size && is_limited
        };
        points.iter().find(is_limited).map(|point| point.at)
    };
    Some(BandwidthLimit {
        block_bytes: starts_at(found.at)?,
        block_bytes_low: starts_at(found.low)?,
        block_bytes_high: found.high.and_then(starts_at),
        throughput: highest.clone(),
    })
}

fn cost_model(matrix: &SweepMatrix) -> Option<CostModel> {
    let cells = matrix.cells.iter().filter_map(|cell| {
        Some(CellLatency {
            block_bytes: cell.block_bytes,
            depth: cell.depth,
            latency_ns: cell.latency_mean_ns.filter(|ns| *ns > 0.0)?,
        })
    });
    fitted(&cells.collect::<Vec<_>>())
}

/// Gives cells that were not measured what the model predicts. Twice the typical error is its
/// interval.
fn predict(cells: &mut [SweepCell], model: &CostModel) {
    let unknown = |cell: &&mut SweepCell| cell.state == CellState::Unknown;
    for cell in cells.iter_mut().filter(unknown) {
        let latency_ns = model.latency_ns(cell.block_bytes, cell.depth);
        if !(latency_ns.is_finite() && latency_ns > 0.0) {
            continue;
        }
        let estimate = |value: f64, unit: &str| Estimate {
            n: model.cells_fitted,
            value,
            half_width_95: Some(2.0 * model.model_error * value),
            unit: unit.to_owned(),
        };
        let iops = f64::from(cell.depth) * 1e9 / latency_ns;
        cell.state = CellState::Predicted;
        cell.iops = Some(estimate(iops, "1/s"));
        cell.throughput = Some(estimate(iops * f64::from(cell.block_bytes), "B/s"));
        cell.latency_mean_ns = Some(latency_ns);
    }
}

fn spans(sweep: &SweepPlan, found: &FoundCells<'_>) -> Vec<SpanRate> {
    let Some(block_bytes) = span_block_bytes(sweep) else {
        return Vec::new();
    };
    let mut spans = Vec::new();
    for span_bytes in &sweep.span_bytes {
        let measured = found.named(&span_name(block_bytes, *span_bytes));
        let op = measured.and_then(|m| counted(m).into_iter().next());
        spans.push(SpanRate {
            span_bytes: *span_bytes,
            iops: op.map(|op| with_interval(op.iops.clone(), op.count)),
            latency_mean_ns: op.map(|op| op.latency.mean),
            gain: None,
        });
    }
    let whole = spans.last().and_then(|span| span.iops.clone());
    if let Some(whole) = whole.filter(|whole| whole.value > 0.0) {
        for span in &mut spans {
            span.gain = span.iops.as_ref().map(|iops| iops.value / whole.value);
        }
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

    /// The limit of a disk that does this many operations of each size (in KiB) per second.
    fn limit(rates: &[(u32, f64)]) -> Option<(u32, u32, Option<u32>)> {
        let cell = |(kib, rate): &(u32, f64)| {
            let estimate = |value: f64| Estimate {
                n: 30,
                value,
                half_width_95: Some(0.01 * value),
                unit: "1/s".to_owned(),
            };
            SweepCell {
                block_bytes: kib << 10,
                depth: 16,
                state: CellState::Measured,
                why: None,
                iops: Some(estimate(*rate)),
                throughput: Some(estimate(rate * f64::from(kib << 10))),
                latency_mean_ns: None,
                latency_p50_ns: None,
                latency_p99_ns: None,
                latency_max_ns: None,
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
