//! The figures of a workload on one side of a comparison, each with its uncertainty. Takes
//! comparability for granted.
//!
//! * A rate has the record's own interval: batch means of the finest series, widened for
//!   correlation.
//! * A mean latency in a closed loop is the number in flight over the rate (Little 1961), so it has
//!   the rate's relative error. Reads and writes of a mix, and open loops, have at least that of as
//!   many independent latencies as theirs are worth.
//! * A percentile has the interval of its rank among as many independent latencies as its own are
//!   worth: fewer where the rate varies more than independent latencies would make it vary, and
//!   where long ones cluster in time. The wider of both counts.
//! * Of several runs the run is the unit: their figures vary from run to run, and percentiles are
//!   those of the merged histograms.

use super::distribution::{LatencyDistribution, cluster_size};
use super::ratio::{Arm, SideFigure, Within};
use crate::estimate::student::multiple_95;
use crate::estimate::{self, Settling, mean};
use crate::slices;
use diskproof_model::comparison::Figure;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Estimate;
use diskproof_model::row::{LatencySummary, OpRow, Row};
use diskproof_model::window::SliceOp;

/// A dispersion below this is that of one bucket: all latencies are alike.
const DISPERSION_MIN: f64 = 1e-9;

/// Percentiles from here on are those of long latencies; below of typical ones.
const TAIL_FROM: f64 = 0.9;

/// A cell of the series with less than this share of the usual number of operations is one in which
/// the disk stalled.
const STALLED: f64 = 0.8;

/// The same workload in every run of a side.
pub(super) type Runs<'a> = [&'a Row];

/// A figure, for the table and for the ratio.
pub(super) struct SideEstimate {
    pub estimate: Estimate,
    pub sample: SideFigure,
}

impl SideEstimate {
    /// The estimate of `n` runs, or of one that is worth so many.
    pub(super) fn from_sample(sample: SideFigure, n: u64, unit: &str) -> Self {
        Self {
            estimate: estimate_of(&sample, n, unit),
            sample,
        }
    }
}

/// The rate of one kind of operation, or of all headline kinds together.
pub(super) fn rate(runs: &Runs<'_>, op: Option<OpKind>, figure: Figure) -> Option<SideEstimate> {
    let mut estimates = Vec::new();
    for measurement in runs {
        estimates.push(rate_of(measurement, op, figure)?);
    }
    of_estimates(&estimates)
}

/// A latency figure of one kind of operation; `None` where there is none or too few requests lie
/// beyond it.
pub(super) fn latency(runs: &Runs<'_>, op: OpKind, figure: Figure) -> Option<SideEstimate> {
    let mut op_runs = Vec::new();
    for measurement in runs {
        op_runs.push(OpRun::find(measurement, op)?);
    }
    match figure {
        Figure::Mean => {
            let means: Vec<Estimate> = op_runs.iter().map(OpRun::mean).collect();
            of_estimates(&means)
        }
        Figure::P50 => percentile(&op_runs, 0.50),
        Figure::P99 => percentile(&op_runs, 0.99),
        Figure::P99_9 => percentile(&op_runs, 0.999),
        _ => None,
    }
}

/// The latencies of all runs together.
pub(super) fn distribution(runs: &Runs<'_>, op: OpKind) -> Option<LatencyDistribution> {
    let mut latencies = Vec::new();
    for measurement in runs {
        latencies.push(measurement.op(op)?.seen_latencies());
    }
    LatencyDistribution::merged(latencies)
}

fn rate_of(measurement: &Row, op: Option<OpKind>, figure: Figure) -> Option<Estimate> {
    match op {
        Some(op) => Some(of_operation(measurement.op(op)?, figure)),
        None => total_rate(measurement, figure),
    }
}

fn of_operation(op: OpRow<'_>, figure: Figure) -> Estimate {
    match figure {
        Figure::Throughput => op.figures.throughput.clone(),
        _ => op.figures.iops.clone(),
    }
}

/// The rate of all headline operations. Whether the next one reads or writes is drawn by lot, so
/// reads and writes by themselves vary more than both together: the interval comes from the sum of
/// their series. Where that is too short, their errors are taken to add up in full.
fn total_rate(measurement: &Row, figure: Figure) -> Option<Estimate> {
    let ops = measurement.headline_ops();
    let parts = ops.iter().map(|(_, op)| of_operation(*op, figure));
    let sum = estimate::sum_of(parts)?;
    let mut series = ops.first()?.1.data.shown_series();
    if series.interval_ns == 0 {
        return Some(sum);
    }
    for (_, op) in &ops {
        if op.data.shown_series().interval_ns != series.interval_ns {
            return Some(sum);
        }
    }
    for (_, op) in &ops[1..] {
        series.merge(&op.data.shown_series());
    }
    let rates = estimate::rate_after(&series, measurement.data.wall_ns, Settling::of(measurement));
    let together = match figure {
        Figure::Throughput => rates.bytes,
        _ => rates.ops,
    };
    if ops.len() == 1 || together.half_width_95.is_none() {
        return Some(sum);
    }
    let mut total = Estimate {
        value: sum.value,
        ..together
    };
    let count = ops.iter().map(|(_, op)| op.data.count).sum();
    slices::widen_estimate(&mut total, &slice_rates(measurement, figure), count);
    Some(total)
}

/// The rate of all headline operations in each slice of the steady part.
fn slice_rates(measurement: &Row, figure: Figure) -> Vec<f64> {
    let kinds: Vec<OpKind> = measurement
        .headline_ops()
        .iter()
        .map(|(kind, _)| *kind)
        .collect();
    let mut rates = Vec::new();
    for slice in slices::after(&measurement.data.slices, measurement.figures.settling_ns) {
        let rate: f64 = kinds
            .iter()
            .filter_map(|kind| slice.ops.get(kind))
            .map(|op| slice_rate(op, figure))
            .sum();
        rates.push(rate);
    }
    rates
}

fn slice_rate(op: &SliceOp, figure: Figure) -> f64 {
    match figure {
        Figure::Throughput => op.bytes_per_second,
        _ => op.iops,
    }
}

/// From the estimates of several runs, or of one.
pub(super) fn of_estimates(estimates: &[Estimate]) -> Option<SideEstimate> {
    let first = estimates.first()?;
    if !estimates.iter().all(is_known) {
        return None;
    }
    let logs: Vec<f64> = estimates.iter().map(|e| e.value.ln()).collect();
    let value = mean(&logs).exp();
    let errors: Option<Vec<f64>> = estimates.iter().map(relative_error).collect();
    let within = match errors {
        Some(errors) => Within::Error {
            error: errors.iter().map(|e| e * e).sum::<f64>().sqrt() / errors.len() as f64,
            freedom: (first.n.max(2) - 1) as f64,
        },
        None => Within::Unknown,
    };
    let sample = SideFigure::of_runs(value, logs, within);
    let n = match estimates.len() {
        1 => first.n,
        n => n as u64,
    };
    Some(SideEstimate::from_sample(sample, n, &first.unit))
}

fn is_known(estimate: &Estimate) -> bool {
    estimate.value > 0.0 && estimate.value.is_finite()
}

/// Standard error over value.
fn relative_error(estimate: &Estimate) -> Option<f64> {
    Some(estimate.half_width_95? / multiple_95((estimate.n.max(2) - 1) as f64) / estimate.value)
}

/// For the table: the half-width is the longer arm.
fn estimate_of(sample: &SideFigure, n: u64, unit: &str) -> Estimate {
    let multiple = multiple_95(sample.freedom());
    let longer = match sample.within {
        // Exactly what the record says; by logarithms it would be a little more.
        Within::Error { error, .. } if sample.spread.is_none() => error * multiple,
        _ => {
            let below = sample.arm(Arm::Below, multiple);
            let above = sample.arm(Arm::Above, multiple);
            (1.0 - (-below).exp()).max(above.exp() - 1.0)
        }
    };
    let half_width = longer * sample.value;
    let half_width_95 = if half_width.is_finite() {
        Some(half_width)
    } else {
        None
    };
    Estimate::new(n, sample.value, half_width_95, unit)
}

/// Under an offered load the time from the intended start counts, else that from the submission.
fn latency_of(op: OpRow<'_>) -> &LatencySummary {
    op.figures
        .latency_intended
        .as_ref()
        .unwrap_or(&op.figures.latency)
}

/// One kind of operation of one run.
struct OpRun<'a> {
    op: OpRow<'a>,
    distribution: LatencyDistribution,
    is_open_loop: bool,
    /// Rate and number of all operations that share the requests in flight.
    shared: Option<(Estimate, u64)>,
}

impl<'a> OpRun<'a> {
    /// The operations of this kind; `None` where the run made none.
    fn find(measurement: &'a Row, kind: OpKind) -> Option<Self> {
        let op = measurement.op(kind)?;
        let distribution = LatencyDistribution::merged([op.seen_latencies()])?;
        let together = measurement.headline_ops();
        let mut count = 0_u64;
        for (_, op) in &together {
            count = count.saturating_add(op.data.count);
        }
        let is_alone = together.len() == 1 && kind != OpKind::Sync;
        let shared = if is_alone {
            None
        } else {
            total_rate(measurement, Figure::Iops).map(|rate| (rate, count))
        };
        Some(Self {
            op,
            distribution,
            is_open_loop: measurement.data.workload.rate.is_some(),
            shared,
        })
    }

    /// The rate of everything in flight.
    fn rate(&self) -> &Estimate {
        match &self.shared {
            Some((rate, _)) => rate,
            None => &self.op.figures.iops,
        }
    }

    /// The rate's relative standard error; it says nothing of latencies where the load is offered.
    fn rate_error(&self) -> Option<f64> {
        let rate = self.rate();
        if !self.is_open_loop && rate.value > 0.0 {
            relative_error(rate)
        } else {
            None
        }
    }

    fn freedom(&self) -> f64 {
        let batches = if self.is_open_loop {
            self.op.data.shown_series().cells.len() as u64
        } else {
            self.rate().n
        };
        (batches.max(2) - 1) as f64
    }

    /// How many latencies make one independent one, at `quantile`; `None` where too little was
    /// measured to tell.
    fn latencies_per_one(&self, quantile: f64) -> Option<f64> {
        let clusters = cluster_size(self.op, &self.distribution, quantile);
        if self.is_open_loop {
            if self.op.data.shown_series().cells.len() > 1 {
                return Some(clusters.max(1.0));
            }
            return None;
        }
        // Independent latencies make the rate of a closed loop vary by their dispersion over their
        // number (renewal theory). How typical ones wander is hidden behind the stalls of a
        // few; so all that the rate varies is put down to the typical ones where one of them is
        // asked for.
        let dispersion = if quantile < TAIL_FROM {
            self.distribution.typical_dispersion()
        } else {
            self.distribution.dispersion()
        };
        let count = match &self.shared {
            Some((_, count)) => *count,
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

    /// How many independent latencies its own are worth, at `quantile`.
    fn independent_latencies(&self, quantile: f64) -> Option<f64> {
        Some(self.distribution.count() as f64 / self.latencies_per_one(quantile)?)
    }

    /// How many make one if all in a cell of the series are alike, and cells as correlated as their
    /// counts: it cannot be worse. Cells in which the disk stalled are looked at and looked
    /// away from: a few of them hide how the others wander.
    fn latencies_per_cell(&self) -> f64 {
        let cells = &self.op.data.shown_series().cells;
        let counts: Vec<f64> = cells.iter().map(|cell| cell.ops as f64).collect();
        if counts.len() < 2 {
            return f64::INFINITY;
        }
        let mut sorted = counts.clone();
        sorted.sort_by(f64::total_cmp);
        let usual = STALLED * sorted[sorted.len() / 2];
        let mut flowing = counts.clone();
        flowing.retain(|count| *count >= usual);
        let of_flowing = match flowing.len() {
            ..=1 => 1.0,
            _ => estimate::widening(&flowing),
        };
        let wide = of_flowing.max(estimate::widening(&counts));
        self.distribution.count() as f64 / counts.len() as f64 * wide
    }

    fn mean(&self) -> Estimate {
        let value = latency_of(self.op).mean;
        let (dispersion, count) = (self.distribution.dispersion(), self.distribution.count());
        let independent = (dispersion / count as f64).sqrt();
        let error = match self.rate_error() {
            Some(error) if self.shared.is_none() => Some(error),
            _ => self
                .latencies_per_one(TAIL_FROM)
                .map(|per_one| independent * per_one.sqrt()),
        };
        let n = self.freedom() as u64 + 1;
        let half_width = error.map(|e| e * multiple_95((n - 1) as f64) * value);
        Estimate::new(n, value, half_width, "ns")
    }
}

fn percentile(runs: &[OpRun<'_>], quantile: f64) -> Option<SideEstimate> {
    let merged = LatencyDistribution::merged(runs.iter().map(|run| run.op.seen_latencies()))?;
    let value = merged.percentile(quantile)? as f64;
    let mut each = Vec::new();
    for run in runs {
        let ns = run.distribution.quantile_ns(quantile).max(1) as f64;
        each.push(ns.ln());
    }
    let effective: Option<f64> = runs
        .iter()
        .map(|run| run.independent_latencies(quantile))
        .sum();
    let freedom = runs
        .iter()
        .map(OpRun::freedom)
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
    let sample = SideFigure::of_runs(value.max(1.0), each, within);
    Some(SideEstimate::from_sample(sample, n, "ns"))
}
