//! Estimates the latencies of a workload on one side of a comparison, each figure with its
//! uncertainty. Assumes that the runs are comparable.
//!
//! * The latencies of a run depend on each other, so its figures have the error of fewer
//!   independent ones: their number is `independent_latencies`. It is smaller where the rate varies
//!   more than independent latencies would make it vary, and where long latencies cluster in time.
//!   The smaller of these two numbers counts.
//! * The mean latency of a closed loop is the number in flight over the rate (Little 1961), so it
//!   has the relative error of the rate. In a mix the rate does not say how the kinds share the
//!   queue, and in an open loop the rate is given. Their means have the error of a mean of
//!   `independent_latencies`.
//! * A percentile has the interval of its rank among `independent_latencies`.
//! * Where a side has several runs, its figures vary by run. Its percentiles are those of the
//!   merged histograms.

use super::distribution::{LatencyDistribution, cluster_size};
use super::rates::{RateUnit, total_rate};
use super::ratio::{Arm, SideFigure, Within};
use super::side_estimate::{SideEstimate, relative_error};
use crate::estimate;
use crate::estimate::student::multiple_95;
use diskproof_model::files_record::FileStepRow;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Estimate;
use diskproof_model::row::{OpRow, Row};

/// Fewer latencies do not show how far they vary: their mean has no interval. Chosen, not measured.
const LATENCIES_MIN: u64 = 10;
/// Below this dispersion all latencies are in one bucket of the histogram: two neighbouring buckets
/// of equal weight have one of 2 × 10^-7.
const DISPERSION_MIN: f64 = 1e-9;

/// From this quantile on a percentile is about long latencies, below it about typical ones. The
/// mean varies by the long ones, so its error is computed at this quantile. Chosen: of the compared
/// percentiles p50 lies below it, p99 and p99.9 beyond.
const TAIL_QUANTILE_MIN: f64 = 0.9;

/// The disk stalled in a cell of the series that has less than this share of the median number of
/// operations. Chosen, not measured: it must lie below the usual variation of cells.
const STALLED_SHARE: f64 = 0.8;

/// A figure of a latency distribution.
#[derive(Debug, Clone, Copy)]
pub(super) enum LatencyFigure {
    /// The mean.
    Mean,
    /// The latency that this share of the operations do not exceed.
    Quantile(f64),
}

/// A latency figure of one kind of operation; `None` where there are no such operations, or too few
/// requests lie beyond it.
pub(super) fn latency_estimate(
    runs: &[&Row],
    op: OpKind,
    figure: LatencyFigure,
) -> Option<SideEstimate> {
    let mut op_runs = Vec::new();
    for row in runs {
        op_runs.push(OpLatencies::find(row, op)?);
    }
    match figure {
        LatencyFigure::Mean => {
            let means: Vec<Estimate> = op_runs.iter().map(OpLatencies::mean_estimate).collect();
            SideEstimate::from_estimates(&means)
        }
        LatencyFigure::Quantile(quantile) => percentile_estimate(&op_runs, quantile),
    }
}

/// The latencies of all runs, merged; `None` where a run has none of this kind.
pub(super) fn merged_latencies(runs: &[&Row], op: OpKind) -> Option<LatencyDistribution> {
    let mut latencies = Vec::new();
    for row in runs {
        latencies.push(row.op(op)?.seen_latencies());
    }
    LatencyDistribution::merged(latencies)
}

/// The latencies of one kind of operation of one run: under an offered load from the intended
/// start, else from the submission.
pub(crate) struct OpLatencies<'a> {
    op: OpRow<'a>,
    distribution: LatencyDistribution,
    is_open_loop: bool,
    /// All operations in flight together; `None` where these are the only ones.
    shared: Option<SharedLoad>,
}

/// The 95 % interval of a percentile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PercentileInterval {
    pub(crate) low_ns: f64,
    /// `None` where too few independent latencies lie beyond the percentile: another run may have
    /// much longer ones.
    pub(crate) high_ns: Option<f64>,
}

/// Operations of several kinds that share a queue.
struct SharedLoad {
    /// Operations per second of all kinds.
    rate: Estimate,
    /// Operations of all kinds.
    count: u64,
}

impl<'a> OpLatencies<'a> {
    /// The latencies of this kind; `None` where the run made no such operation.
    pub(crate) fn find(row: &'a Row, kind: OpKind) -> Option<Self> {
        let op = row.op(kind)?;
        let distribution = LatencyDistribution::merged([op.seen_latencies()])?;
        let together = row.headline_ops();
        let mut count = 0_u64;
        for (_, op) in &together {
            count = count.saturating_add(op.data.count);
        }
        let is_alone = together.len() == 1 && kind != OpKind::Sync;
        let shared = if is_alone {
            None
        } else {
            total_rate(row, RateUnit::Operations).map(|rate| SharedLoad { rate, count })
        };
        Some(Self {
            op,
            distribution,
            is_open_loop: row.data.workload.is_paced(),
            shared,
        })
    }

    /// The latencies of a step on files, whose operations are the only ones in flight.
    pub(crate) fn of_files_step(step: &'a FileStepRow) -> Option<Self> {
        let op = step.op();
        Some(Self {
            op,
            distribution: LatencyDistribution::merged([op.seen_latencies()])?,
            is_open_loop: false,
            shared: None,
        })
    }

    /// The distribution itself.
    pub(crate) fn histogram(&self) -> &'a LatencyHistogram {
        self.op.seen_latencies()
    }

    /// The longest latency, in nanoseconds.
    pub(crate) fn longest_ns(&self) -> u64 {
        self.op.figures.seen_latency().max
    }

    /// The 95 % interval of a percentile; `None` where too little was measured for one.
    pub(crate) fn percentile_interval(&self, quantile: f64) -> Option<PercentileInterval> {
        let figure = percentile_estimate(std::slice::from_ref(self), quantile)?.figure;
        if matches!(figure.within, Within::Unknown) {
            return None;
        }
        let multiple = multiple_95(figure.freedom());
        let above = figure.arm(Arm::Above, multiple);
        Some(PercentileInterval {
            low_ns: figure.value * (-figure.arm(Arm::Below, multiple)).exp(),
            high_ns: if above.is_finite() {
                Some(figure.value * above.exp())
            } else {
                None
            },
        })
    }

    /// The rate of all operations in flight.
    fn rate(&self) -> &Estimate {
        match &self.shared {
            Some(shared) => &shared.rate,
            None => &self.op.figures.iops,
        }
    }

    /// The relative standard error of that rate; `None` under an offered load, whose rate says
    /// nothing about latencies.
    fn rate_error(&self) -> Option<f64> {
        let rate = self.rate();
        if !self.is_open_loop && rate.value > 0.0 {
            relative_error(rate)
        } else {
            None
        }
    }

    /// The degrees of freedom with which the error of its latencies is known.
    fn degrees_of_freedom(&self) -> f64 {
        let batches = if self.is_open_loop {
            self.op.data.shown_series().cells.len() as u64
        } else {
            self.rate().n
        };
        (batches.max(2) - 1) as f64
    }

    /// The number of latencies that are worth one independent latency at `quantile`; `None` where
    /// too little was measured.
    fn latencies_per_independent(&self, quantile: f64) -> Option<f64> {
        let cluster_latencies = cluster_size(self.op, &self.distribution, quantile);
        if self.is_open_loop {
            if self.op.data.shown_series().cells.len() > 1 {
                return Some(cluster_latencies.max(1.0));
            }
            return None;
        }
        // Independent latencies make the rate of a closed loop vary by their dispersion over their
        // number (renewal theory). A few stalls hide how typical latencies wander. Below the tail
        // all variation of the rate is therefore attributed to the typical ones.
        let dispersion = if quantile < TAIL_QUANTILE_MIN {
            self.distribution.typical_dispersion()
        } else {
            self.distribution.dispersion()
        };
        let count = match &self.shared {
            Some(shared) => shared.count,
            None => self.distribution.count(),
        };
        let per_independent_by_rate = if dispersion > DISPERSION_MIN {
            self.rate_error()?.powi(2) * count.max(1) as f64 / dispersion
        } else {
            1.0
        };
        let by_rate = per_independent_by_rate.min(self.latencies_per_cell());
        Some(cluster_latencies.max(by_rate).max(1.0))
    }

    /// The number of independent latencies whose figure at `quantile` has the same error; `None`
    /// where too little was measured.
    pub(crate) fn independent_latencies(&self, quantile: f64) -> Option<f64> {
        Some(self.distribution.count() as f64 / self.latencies_per_independent(quantile)?)
    }

    /// An upper limit of [`Self::latencies_per_independent`]: all latencies in a cell of the series
    /// are alike, and cells are as correlated as their counts. Counts are examined with and without
    /// the cells in which the disk stalled, because a few of these hide how the others wander.
    fn latencies_per_cell(&self) -> f64 {
        let cells = &self.op.data.shown_series().cells;
        let counts: Vec<f64> = cells.iter().map(|cell| cell.ops as f64).collect();
        if counts.len() < 2 {
            return f64::INFINITY;
        }
        let mut sorted = counts.clone();
        sorted.sort_by(f64::total_cmp);
        let flowing_min = STALLED_SHARE * sorted[sorted.len() / 2];
        let mut flowing = counts.clone();
        flowing.retain(|count| *count >= flowing_min);
        let flowing_widening = match flowing.len() {
            ..=1 => 1.0,
            _ => estimate::widening(&flowing),
        };
        let widening = flowing_widening.max(estimate::widening(&counts));
        self.distribution.count() as f64 / counts.len() as f64 * widening
    }

    /// The mean with its interval, in nanoseconds.
    pub(crate) fn mean_estimate(&self) -> Estimate {
        let mean_ns = self.op.figures.seen_latency().mean;
        let freedom = self.degrees_of_freedom();
        let half_width_ns = self
            .relative_error_of_mean()
            .map(|error| error * multiple_95(freedom) * mean_ns);
        Estimate::new(freedom as u64 + 1, mean_ns, half_width_ns, "ns")
    }

    /// The relative standard error of the mean; `None` where too little was measured.
    fn relative_error_of_mean(&self) -> Option<f64> {
        // A closed loop with one kind of operation: the mean follows from the rate.
        if self.shared.is_none()
            && let Some(error) = self.rate_error()
        {
            return Some(error);
        }
        // A mix, an open loop, or a rate without an interval: the mean is one of latencies.
        let count = self.distribution.count();
        if count < LATENCIES_MIN {
            return None;
        }
        let error_if_independent = (self.distribution.dispersion() / count as f64).sqrt();
        let latencies_per_independent = self.latencies_per_independent(TAIL_QUANTILE_MIN)?;
        Some(error_if_independent * latencies_per_independent.sqrt())
    }
}

/// A percentile of the merged latencies of all runs, with the uncertainty that they show; `None`
/// where too few latencies lie beyond it.
fn percentile_estimate(runs: &[OpLatencies<'_>], quantile: f64) -> Option<SideEstimate> {
    let merged = LatencyDistribution::merged(runs.iter().map(|run| run.op.seen_latencies()))?;
    let value = merged.percentile(quantile)?.max(1) as f64;
    // A latency of 0 ns has no logarithm.
    let mut logs = Vec::new();
    for run in runs {
        let ns = run.distribution.quantile_ns(quantile).max(1) as f64;
        logs.push(ns.ln());
    }
    // `None` as soon as one run has too few.
    let independent: Option<f64> = runs
        .iter()
        .map(|run| run.independent_latencies(quantile))
        .sum();
    let freedom = runs
        .iter()
        .map(OpLatencies::degrees_of_freedom)
        .fold(f64::INFINITY, f64::min);
    let within = match independent {
        Some(independent) => Within::Ranks {
            distribution: merged,
            quantile,
            effective: independent,
            freedom,
        },
        None => Within::Unknown,
    };
    let sample_count = match independent {
        Some(independent) if runs.len() == 1 => independent as u64,
        Some(_) | None => runs.len() as u64,
    };
    let figure = SideFigure::from_runs(value, logs, within);
    Some(SideEstimate::new(figure, sample_count, "ns"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::series::{Cell, TimeSeries};

    const SECOND_NS: u64 = 1_000_000_000;

    /// Fifty reads of 1 µs and fifty of 3 µs have a mean of 2 µs and a standard deviation of 1 µs:
    /// a dispersion of a quarter.
    const SHORT_NS: u64 = 1_000;
    const LONG_NS: u64 = 3_000;
    const EACH: u64 = 50;
    const MEAN_NS: f64 = 2_000.0;

    /// A run with these reads in seconds of ten, each with a read of the longest latency.
    fn row() -> Row {
        let mut record = fixture::record();
        let mut row = fixture::measured(&mut record, "random-read-d32").clone();
        let data = row.data.ops.get_mut(&OpKind::Read).unwrap();
        data.latency = LatencyHistogram::new();
        data.latency.record_many(SHORT_NS, EACH);
        data.latency.record_many(LONG_NS, EACH);
        data.series = TimeSeries::new(SECOND_NS);
        for second in 0..10 {
            let cell = Cell {
                ops: 10,
                latency_max_ns: LONG_NS,
                ..Cell::default()
            };
            data.series.add(second * SECOND_NS, &cell, 100);
        }
        let figures = row.figures.ops.get_mut(&OpKind::Read).unwrap();
        figures.latency.mean = MEAN_NS;
        // With ten values t is 2.26216: a relative standard error of 5 %.
        figures.iops = Estimate::new(10, 100.0, Some(0.05 * 2.26216 * 100.0), "1/s");
        row
    }

    fn latencies<'a>(
        row: &'a Row,
        is_open_loop: bool,
        shared: Option<SharedLoad>,
    ) -> OpLatencies<'a> {
        let op = row.op(OpKind::Read).unwrap();
        OpLatencies {
            op,
            distribution: LatencyDistribution::merged([op.seen_latencies()]).unwrap(),
            is_open_loop,
            shared,
        }
    }

    #[track_caller]
    fn assert_near(estimate: &Estimate, relative_half_width: f64) {
        let half_width = estimate.half_width_95.unwrap() / estimate.value;
        let ratio = half_width / relative_half_width;
        assert!(
            (ratio - 1.0).abs() < 0.01,
            "{half_width} is not {relative_half_width}"
        );
    }

    #[test]
    fn mean_of_a_closed_loop_has_the_relative_error_of_the_rate() {
        let row = row();
        let mean = latencies(&row, false, None).mean_estimate();
        assert_eq!((mean.n, mean.value), (10, MEAN_NS));
        assert_near(&mean, 0.05 * 2.26216);
    }

    /// By hand: 300 operations with a relative error of their rate of 5 % and a dispersion of a
    /// quarter are worth one independent latency for each 0.05² × 300 ÷ 0.25 = 3. A hundred
    /// independent ones have an error of √(0.25 ÷ 100) = 5 %, so that these have √3 × 5 % = 8.66 %.
    #[test]
    fn mean_in_a_mix_has_the_error_of_the_independent_latencies() {
        let row = row();
        let rate = Estimate::new(10, 300.0, Some(0.05 * 2.26216 * 300.0), "1/s");
        let shared = SharedLoad { rate, count: 300 };
        let mean = latencies(&row, false, Some(shared)).mean_estimate();
        assert_near(&mean, 0.0866 * 2.26216);
    }

    /// By hand: ten cells give nine degrees of freedom, whatever the error of the rate.
    #[test]
    fn mean_of_an_open_loop_has_the_error_of_its_latencies() {
        let mut row = row();
        let figures = row.figures.ops.get_mut(&OpKind::Read).unwrap();
        figures.iops.half_width_95 = Some(0.0);
        let mean = latencies(&row, true, None).mean_estimate();
        assert_eq!(mean.n, 10);
        assert_near(&mean, 0.05 * 2.26216);
    }

    /// By hand: a hundred reads in ten equal seconds are ten a cell. So few equal counts may hide a
    /// correlation of (1/10) ÷ (1 − 3/10) = 1/7, which widens by 1.3382.
    #[test]
    fn reads_of_equal_cells_are_at_most_as_alike_as_a_cell() {
        let row = row();
        let per_cell = latencies(&row, false, None).latencies_per_cell();
        assert!((per_cell - 13.382).abs() < 0.001, "{per_cell}");
    }

    #[test]
    fn single_cell_limits_nothing() {
        let mut row = row();
        let data = row.data.ops.get_mut(&OpKind::Read).unwrap();
        data.series.cells.truncate(1);
        let per_cell = latencies(&row, false, None).latencies_per_cell();
        assert_eq!(per_cell, f64::INFINITY);
    }

    #[test]
    fn mean_of_too_few_latencies_has_no_interval() {
        let mut row = row();
        let data = row.data.ops.get_mut(&OpKind::Read).unwrap();
        data.latency = LatencyHistogram::new();
        data.latency.record_many(SHORT_NS, LATENCIES_MIN - 1);
        assert_eq!(
            latencies(&row, true, None).mean_estimate().half_width_95,
            None
        );
    }
}
