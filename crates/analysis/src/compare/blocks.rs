//! Slices of two sides that followed each other in a live comparison. Each block holds one slice of
//! either side, in random order: what changes over time is in both and cancels in their ratio.

use super::comparable::Measured;
use super::figures::Told;
use super::ratio::{SideFigure, Within};
use super::sides::is_live_pair;
use crate::estimate::{PairedDifference, mean};
use diskproof_model::comparison::Figure;
use diskproof_model::measurement::OpKind;
use diskproof_model::window::{SliceOp, TimeSlice};

/// The blocks of a workload.
pub(super) struct Blocks<'a> {
    blocks: Vec<(&'a TimeSlice, &'a TimeSlice)>,
    /// The operations that a rate of all operations counts.
    headline: Vec<OpKind>,
}

impl<'a> Blocks<'a> {
    /// Of two runs that were measured in alternation; `None` of others.
    pub(super) fn of(a: &[Measured<'a>], b: &[Measured<'a>]) -> Option<Self> {
        let ([a], [b]) = (a, b) else {
            return None;
        };
        if !is_live_pair(a.run.record, b.run.record) {
            return None;
        }
        let (x, y) = (a.measurement(), b.measurement());
        let headline = x.headline_ops().iter().map(|(kind, _)| *kind).collect();
        let blocks = x.data.slices.iter().zip(&y.data.slices).collect();
        Some(Self { blocks, headline })
    }

    /// The logarithms of a figure in the slices of each side; `None` where a slice has none.
    fn logs(&self, op: Option<OpKind>, figure: Figure) -> Option<(Vec<f64>, Vec<f64>)> {
        let log = |slice: &TimeSlice| {
            let value = match op {
                Some(op) => figure_of(slice.ops.get(&op)?, figure)?,
                None => {
                    let ops = self.headline.iter().filter_map(|kind| slice.ops.get(kind));
                    ops.map(|op| figure_of(op, figure)).sum::<Option<f64>>()?
                }
            };
            (value > 0.0).then(|| value.ln())
        };
        let logs = |(a, b): &(&TimeSlice, &TimeSlice)| Some((log(a)?, log(b)?));
        let pairs: Option<Vec<(f64, f64)>> = self.blocks.iter().map(logs).collect();
        Some(pairs?.into_iter().unzip())
    }

    /// How well the ratio of a figure is known by its differences within the blocks. Rates and mean
    /// latencies of both sides become the geometric means of the slices, whose ratio is the mean
    /// ratio of the blocks; percentiles stay those of the merged latencies.
    pub(super) fn replace(
        &self,
        (op, figure): (Option<OpKind>, Figure),
        (of_a, of_b): (&mut Told, &mut Told),
    ) -> Option<PairedDifference> {
        let (a, b) = self.logs(op, figure)?;
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
        let difference = PairedDifference::of(&differences)?;
        if matches!(figure, Figure::Iops | Figure::Throughput | Figure::Mean) {
            for (told, logs) in [(of_a, a), (of_b, b)] {
                *told = geometric_mean(logs, &told.estimate.unit);
            }
        }
        Some(difference)
    }
}

fn geometric_mean(logs: Vec<f64>, unit: &str) -> Told {
    let count = logs.len() as u64;
    let sample = SideFigure::of_runs(mean(&logs).exp(), logs, Within::Unknown);
    Told::of(sample, count, unit)
}

fn figure_of(op: &SliceOp, figure: Figure) -> Option<f64> {
    let latency = op.latency;
    match figure {
        Figure::Iops => Some(op.iops),
        Figure::Throughput => Some(op.bytes_per_second),
        Figure::Mean => latency.map(|latency| latency.mean_ns),
        Figure::P50 => latency?.p50_ns.map(|ns| ns as f64),
        Figure::P99 => latency?.p99_ns.map(|ns| ns as f64),
        Figure::P99_9 => latency?.p99_9_ns.map(|ns| ns as f64),
        _ => None,
    }
}
