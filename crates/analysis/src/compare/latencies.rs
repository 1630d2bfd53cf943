//! The latencies of a workload on one side of a comparison, each figure with its uncertainty.
//! Assumes that the runs are comparable.
//!
//! * A mean latency in a closed loop is the number in flight over the rate (Little 1961), so it has
//!   the rate's relative error. Reads and writes of a mix, and open loops, have at least that of as
//!   many independent latencies as theirs are worth.
//! * A percentile has the interval of its rank among as many independent latencies as its own are
//!   worth: fewer where the rate varies more than independent latencies would make it vary, and
//!   where long ones cluster in time. The wider of both counts.
//! * Of several runs the run is the unit: percentiles are those of the merged histograms.

use super::distribution::{LatencyDistribution, cluster_size};
use super::rates::total_rate;
use super::ratio::{Arm, SideFigure, Within};
use super::side_estimate::{SideEstimate, relative_error};
use crate::estimate;
use crate::estimate::student::multiple_95;
use diskproof_model::comparison::Figure;
use diskproof_model::files_record::FileStepRow;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Estimate;
use diskproof_model::row::{LatencySummary, OpRow, Row};

/// Fewer latencies do not show how far they vary.
const LATENCIES_MIN: u64 = 10;
/// Below this dispersion all latencies are in one bucket of the histogram.
const DISPERSION_MIN: f64 = 1e-9;

/// From this quantile on a percentile is about long latencies, below it about typical ones.
const TAIL_FROM: f64 = 0.9;

/// The disk stalled in a cell of the series that has less than this share of the median number of
/// operations.
const STALLED_BELOW: f64 = 0.8;

/// A latency figure of one kind of operation; `None` where there are no such operations, or too few
/// requests lie beyond it.
pub(super) fn latency_estimate(runs: &[&Row], op: OpKind, figure: Figure) -> Option<SideEstimate> {
    let mut op_runs = Vec::new();
    for row in runs {
        op_runs.push(OpLatencies::find(row, op)?);
    }
    match figure {
        Figure::Mean => {
            let means: Vec<Estimate> = op_runs.iter().map(OpLatencies::mean_estimate).collect();
            SideEstimate::from_estimates(&means)
        }
        Figure::P50 => percentile_estimate(&op_runs, 0.50),
        Figure::P99 => percentile_estimate(&op_runs, 0.99),
        Figure::P99_9 => percentile_estimate(&op_runs, 0.999),
        _ => None,
    }
}

/// The latencies of all runs, merged.
pub(super) fn merged_latencies(runs: &[&Row], op: OpKind) -> Option<LatencyDistribution> {
    let mut latencies = Vec::new();
    for row in runs {
        latencies.push(row.op(op)?.seen_latencies());
    }
    LatencyDistribution::merged(latencies)
}

/// The latency that counts: under an offered load from the intended start, else from the
/// submission.
fn latency_of(op: OpRow<'_>) -> &LatencySummary {
    op.figures
        .latency_intended
        .as_ref()
        .unwrap_or(&op.figures.latency)
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
            total_rate(row, Figure::Iops).map(|rate| SharedLoad { rate, count })
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

    pub(crate) fn longest_ns(&self) -> u64 {
        latency_of(self.op).max
    }

    /// The 95 % interval of a percentile; `None` where too little was measured for one.
    pub(crate) fn percentile_interval(&self, quantile: f64) -> Option<PercentileInterval> {
        let sample = percentile_estimate(std::slice::from_ref(self), quantile)?.sample;
        if matches!(sample.within, Within::Unknown) {
            return None;
        }
        let multiple = multiple_95(sample.freedom());
        let above = sample.arm(Arm::Above, multiple);
        Some(PercentileInterval {
            low_ns: sample.value * (-sample.arm(Arm::Below, multiple)).exp(),
            high_ns: if above.is_finite() {
                Some(sample.value * above.exp())
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

    /// Degrees of freedom of the error of its latencies.
    fn freedom(&self) -> f64 {
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
        let clusters = cluster_size(self.op, &self.distribution, quantile);
        if self.is_open_loop {
            if self.op.data.shown_series().cells.len() > 1 {
                return Some(clusters.max(1.0));
            }
            return None;
        }
        // Independent latencies make the rate of a closed loop vary by their dispersion over their
        // number (renewal theory). A few stalls hide how typical latencies wander. Below the tail
        // all variation of the rate is therefore attributed to the typical ones.
        let dispersion = if quantile < TAIL_FROM {
            self.distribution.typical_dispersion()
        } else {
            self.distribution.dispersion()
        };
        let count = match &self.shared {
            Some(shared) => shared.count,
            None => self.distribution.count(),
        };
        let by_rate = if dispersion > DISPERSION_MIN {
            self.rate_error()?.powi(2) * count.max(1) as f64 / dispersion
        } else {
            1.0
        };
        let per_one = clusters.max(by_rate.min(self.latencies_per_cell()));
        Some(per_one.max(1.0))
    }

    /// The number of independent latencies that its latencies are worth at `quantile`.
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
        let flowing_min = STALLED_BELOW * sorted[sorted.len() / 2];
        let mut flowing = counts.clone();
        flowing.retain(|count| *count >= flowing_min);
        let flowing_widening = match flowing.len() {
            ..=1 => 1.0,
            _ => estimate::widening(&flowing),
        };
        let wide = flowing_widening.max(estimate::widening(&counts));
        self.distribution.count() as f64 / counts.len() as f64 * wide
    }

    /// The mean with its interval, in nanoseconds.
    pub(crate) fn mean_estimate(&self) -> Estimate {
        let value = latency_of(self.op).mean;
        let (dispersion, count) = (self.distribution.dispersion(), self.distribution.count());
        let independent = (dispersion / count as f64).sqrt();
        let error = match self.rate_error() {
            Some(error) if self.shared.is_none() => Some(error),
            _ if count < LATENCIES_MIN => None,
            _ => self
                .latencies_per_independent(TAIL_FROM)
                .map(|per_one| independent * per_one.sqrt()),
        };
        let n = self.freedom() as u64 + 1;
        let half_width = error.map(|error| error * multiple_95((n - 1) as f64) * value);
        Estimate::new(n, value, half_width, "ns")
    }
}

fn percentile_estimate(runs: &[OpLatencies<'_>], quantile: f64) -> Option<SideEstimate> {
    let merged = LatencyDistribution::merged(runs.iter().map(|run| run.op.seen_latencies()))?;
    let value = merged.percentile(quantile)? as f64;
    let mut logs = Vec::new();
    for run in runs {
        let ns = run.distribution.quantile_ns(quantile).max(1) as f64;
        logs.push(ns.ln());
    }
    let effective: Option<f64> = runs
        .iter()
        .map(|run| run.independent_latencies(quantile))
        .sum();
    let freedom = runs
        .iter()
        .map(OpLatencies::freedom)
        .fold(f64::INFINITY, f64::min);
    let within = match effective {
        Some(effective) => Within::Ranks {
            distribution: merged,
            quantile,
            effective,
            freedom,
        },
        None => Within::Unknown,
    };
    let n = match (runs.len(), effective) {
        (1, Some(effective)) => effective as u64,
        (n, _) => n as u64,
    };
    let sample = SideFigure::from_runs(value.max(1.0), logs, within);
    Some(SideEstimate::from_sample(sample, n, "ns"))
}
