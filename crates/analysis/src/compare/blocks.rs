//! Derives the difference of two sides from the slices of a live comparison that followed each
//! other. Each block holds one slice of either side, in random order, so that slow changes affect
//! both and cancel in their ratio.

use super::comparable::MeasuredWorkload;
use super::distribution::bucket_width_log;
use super::pair::PairEstimates;
use super::ratio::{SideFigure, Within};
use super::side_estimate::SideEstimate;
use super::sides::is_live_pair;
use crate::estimate::{PairedDifference, mean};
use diskproof_model::comparison::Figure;
use diskproof_model::measurement::OpKind;
use diskproof_model::window::{SliceOp, TimeSlice};

/// The blocks of a workload.
pub(super) struct Blocks<'a> {
    blocks: Vec<Block<'a>>,
    /// The operations that a rate of all operations counts.
    headline_kinds: Vec<OpKind>,
}

/// One slice of either side.
struct Block<'a> {
    a: &'a TimeSlice,
    b: &'a TimeSlice,
}

/// The logarithms of a figure in the slices of each side.
#[derive(Default)]
struct BlockLogs {
    a: Vec<f64>,
    b: Vec<f64>,
}

impl<'a> Blocks<'a> {
    /// The blocks of two runs that were measured in alternation; `None` of other runs.
    pub(super) fn from_runs(
        a: &[MeasuredWorkload<'a>],
        b: &[MeasuredWorkload<'a>],
    ) -> Option<Self> {
        let ([a], [b]) = (a, b) else {
            return None;
        };
        if !is_live_pair(a.run.record, b.run.record) {
            return None;
        }
        let (row_a, row_b) = (a.row(), b.row());
        let mut headline_kinds = Vec::new();
        for (kind, _) in row_a.headline_ops() {
            headline_kinds.push(kind);
        }
        let mut blocks = Vec::new();
        // The last block of a run that was interrupted may lack its second slice.
        for (a, b) in std::iter::zip(&row_a.data.slices, &row_b.data.slices) {
            blocks.push(Block { a, b });
        }
        Some(Self {
            blocks,
            headline_kinds,
        })
    }

    /// The logarithms of a figure in the slices of each side; `None` where a slice lacks it.
    fn block_logs(&self, op: Option<OpKind>, figure: Figure) -> Option<BlockLogs> {
        let mut logs = BlockLogs::default();
        for block in &self.blocks {
            logs.a.push(self.slice_log(block.a, op, figure)?);
            logs.b.push(self.slice_log(block.b, op, figure)?);
        }
        Some(logs)
    }

    /// The logarithm of a figure in a slice; `None` where the slice lacks it, or it is not
    /// positive. Without an operation, the figures of all headline kinds are added: only rates are
    /// asked so.
    fn slice_log(&self, slice: &TimeSlice, op: Option<OpKind>, figure: Figure) -> Option<f64> {
        let value = match op {
            Some(op) => slice_figure(slice.ops.get(&op)?, figure)?,
            None => self
                .headline_kinds
                .iter()
                .flat_map(|kind| slice.ops.get(kind))
                .map(|op| slice_figure(op, figure))
                .sum::<Option<f64>>()?,
        };
        if value > 0.0 { Some(value.ln()) } else { None }
    }

    /// Returns the difference of the logarithms within the blocks, and replaces the estimates of
    /// both sides where they would contradict it. Rates and mean latencies become the geometric
    /// means of the slices, whose ratio is the mean ratio of the blocks. Percentiles stay those of
    /// the merged latencies. Without a difference (`None`), all estimates stay as they are.
    pub(super) fn apply(
        &self,
        op: Option<OpKind>,
        figure: Figure,
        estimates: &mut PairEstimates,
    ) -> Option<PairedDifference> {
        let logs = self.block_logs(op, figure)?;
        let mut differences = Vec::new();
        for (log_a, log_b) in std::iter::zip(&logs.a, &logs.b) {
            differences.push(log_b - log_a);
        }
        let mut difference = PairedDifference::from_sample(&differences)?;
        if matches!(figure, Figure::Iops | Figure::Throughput | Figure::Mean) {
            estimates.a = geometric_mean(logs.a, &estimates.a.shown.unit);
            estimates.b = geometric_mean(logs.b, &estimates.b.shown.unit);
        } else {
            let shorter_ns = estimates.a.figure.value.min(estimates.b.figure.value);
            difference.error = difference.error.max(bucket_width_log(shorter_ns));
        }
        Some(difference)
    }
}

/// The geometric mean of the slices of a side. What varies within a slice shows in their
/// differences already.
fn geometric_mean(logs: Vec<f64>, unit: &str) -> SideEstimate {
    let count = logs.len() as u64;
    let figure = SideFigure::from_runs(mean(&logs).exp(), logs, Within::Unknown);
    SideEstimate::new(figure, count, unit)
}

/// The figure of one kind of operation in a slice; `None` where the slice has too few latencies for
/// it, and of the figures of surveys and searches.
fn slice_figure(op: &SliceOp, figure: Figure) -> Option<f64> {
    let latency = op.latency;
    match figure {
        Figure::Iops => Some(op.iops),
        Figure::Throughput => Some(op.bytes_per_second),
        Figure::Mean => latency.map(|latency| latency.mean_ns),
        Figure::P50 => latency?.p50_ns.map(|ns| ns as f64),
        Figure::P99 => latency?.p99_ns.map(|ns| ns as f64),
        Figure::P99_9 => latency?.p99_9_ns.map(|ns| ns as f64),
        Figure::CurveAverage
        | Figure::CurveMin
        | Figure::CurveMax
        | Figure::AccessTime
        | Figure::PromisedRate => None,
    }
}
