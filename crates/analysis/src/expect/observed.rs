//! Looks up the figures that thresholds name in a record, each with its uncertainty.

use super::parse::is_cpu;
use crate::compare::OpLatencies;
use crate::estimate::sum_of;
use diskproof_model::figure::{Metric, Part, part_figure};
use diskproof_model::files_record::FileStepRow;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::Hang;
use diskproof_model::op::OpKind;
use diskproof_model::record::{Estimate, Record, positive_interval};
use diskproof_model::row::{OpRow, Row};
use diskproof_model::surface::CurvePoint;

/// The half-width of a 95 % interval in standard errors, for normal values.
const NORMAL_MULTIPLE_95: f64 = 1.96;
/// Equal runs without an interval differ by less than this factor, if they have more operations
/// than [`FACTORS_OF_FEW`]. Chosen: it continues that list, whose next factor is 2.09.
const FACTOR_OF_MANY: f64 = 2.0;
/// The same of 0, 1, 2 … operations: the wider arm of the 95 % interval of a rate whose operations
/// come as a Poisson process (2n / χ² of 2n degrees of freedom at 2.5 %).
const FACTORS_OF_FEW: [f64; 10] = [
    f64::INFINITY,
    39.5,
    8.26,
    4.85,
    3.67,
    3.08,
    2.72,
    2.49,
    2.32,
    2.19,
];
/// The certainty of each end of a 95 % interval: 2.5 % lie beyond either.
const ONE_SIDED: f64 = 0.975;

/// A measured figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Observed {
    /// In the unit of the metric.
    pub(super) value: f64,
    pub(super) uncertainty: Uncertainty,
}

/// The uncertainty of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Uncertainty {
    /// It is what happened, such as the longest latency.
    Exact,
    /// From the lower to the upper end of the 95 % interval.
    Interval([f64; 2]),
    /// Too little was measured for an interval: the next run may show up to this multiple of the
    /// value, or as small a part of it.
    Factor(f64),
    /// The value is the lower end of the interval; too little was measured for the upper end.
    AtLeast,
}

impl Uncertainty {
    /// Rates and latencies are positive: the lower end approaches zero and never reaches it.
    fn around(value: f64, half_width: f64) -> Self {
        Self::Interval(positive_interval(value, half_width))
    }
}

impl Observed {
    fn new(value: f64, uncertainty: Uncertainty) -> Self {
        Self { value, uncertainty }
    }

    /// A figure that is what happened.
    pub(super) fn exact(value: f64) -> Self {
        Self::new(value, Uncertainty::Exact)
    }

    /// A figure with the interval of its estimate, where that has one.
    pub(super) fn from_estimate(estimate: &Estimate) -> Self {
        Self::within(estimate.value, estimate.half_width_95)
    }

    /// A figure with the half-width of its interval, where that is known.
    fn within(value: f64, half_width: Option<f64>) -> Self {
        match half_width {
            Some(half_width) => Self::new(value, Uncertainty::around(value, half_width)),
            None => Self::new(value, Uncertainty::Factor(FACTOR_OF_MANY)),
        }
    }

    /// The ends between which the figure may have lain with its waits for processors. A figure
    /// without an interval has none of its own.
    pub(super) fn ends_of_waits(self) -> [f64; 2] {
        match self.uncertainty {
            Uncertainty::Interval(ends) => ends,
            Uncertainty::Exact | Uncertainty::Factor(_) | Uncertainty::AtLeast => [self.value; 2],
        }
    }

    /// The ends of its 95 % interval; `None` where it has none, or only one end.
    pub(super) fn interval(self) -> Option<[f64; 2]> {
        match self.uncertainty {
            Uncertainty::Interval(ends) => Some(ends),
            Uncertainty::Exact | Uncertainty::Factor(_) | Uncertainty::AtLeast => None,
        }
    }
}

/// A figure of a part of a survey, or of the answer of a search. `None` where the run has none.
pub(super) fn figure_of_part(record: &Record, part: Part, metric: &Metric) -> Option<Observed> {
    let figure = part_figure(record, part, metric.threshold)?;
    let is_estimate = figure.n.is_some();
    match part {
        Part::Access(_) if metric.unit == "1/s" => rate_of_accesses(record, part, figure.value),
        Part::Curve if !is_estimate => Some(figure_at_point(figure.value, record.curve())),
        Part::Load => Some(match rate_without_upper_end(record, metric) {
            Some(low) => Observed::new(low, Uncertainty::AtLeast),
            None => Observed::within(figure.value, figure.half_width_95),
        }),
        Part::Workload
        | Part::Curve
        | Part::Burst
        | Part::Access(_)
        | Part::FileStep
        | Part::Observed
        | Part::Other => Some(if is_estimate {
            Observed::from_estimate(&figure.estimate())
        } else {
            Observed::exact(figure.value)
        }),
    }
}

/// The rate of accesses of which one follows the other: it is the inverse of their mean time, and
/// as uncertain.
fn rate_of_accesses(record: &Record, part: Part, rate: f64) -> Option<Observed> {
    let mean_time = part_figure(record, part, "mean")?.estimate();
    let half_width = mean_time
        .relative_half_width()
        .map(|relative_width| rate * relative_width);
    Some(Observed::within(rate, half_width))
}

/// The lower end of a promised rate, where no rate that was offered broke the promise.
fn rate_without_upper_end(record: &Record, metric: &Metric) -> Option<f64> {
    let answer = &record.load()?.figures;
    if metric.threshold == "rate" && !answer.outcome.has_both_ends() {
        Some(answer.low)
    } else {
        None
    }
}

/// The operations that a threshold names.
pub(super) enum NamedOps<'a> {
    /// Some kinds of operations of a workload, each of which occurred.
    Workload { row: &'a Row, kinds: Vec<OpKind> },
    /// The operation of a step on files.
    FilesStep(&'a FileStepRow),
}

impl<'a> NamedOps<'a> {
    /// The operations of this kind of a workload; the headline ones if it is `None`.
    pub(super) fn in_workload(row: &'a Row, kind: Option<OpKind>) -> Self {
        let kinds = match kind {
            Some(kind) if row.op(kind).is_some() => vec![kind],
            Some(_) => Vec::new(),
            None => row.headline_ops().iter().map(|(kind, _)| *kind).collect(),
        };
        Self::Workload { row, kinds }
    }

    /// The rows of these operations.
    fn ops(&self) -> Vec<OpRow<'a>> {
        match self {
            Self::Workload { row, kinds } => {
                kinds.iter().filter_map(|kind| row.op(*kind)).collect()
            }
            Self::FilesStep(step) => vec![step.op()],
        }
    }

    /// The latencies that a threshold judges: under an offered load from the intended start, else
    /// from the submission. `None` if there are several kinds, as in a mix: reads and writes have
    /// no common latency.
    pub(super) fn latencies(&self) -> Option<OpLatencies<'a>> {
        match self {
            Self::Workload { row, kinds } => match kinds.as_slice() {
                [kind] => OpLatencies::find(row, *kind),
                _ => None,
            },
            Self::FilesStep(step) => OpLatencies::of_files_step(step),
        }
    }

    /// The requests of the workload that were never answered; `None` without any.
    fn hang(&self) -> Option<Hang> {
        match self {
            Self::Workload { row, .. } => row.data.hang,
            Self::FilesStep(_) => None,
        }
    }

    /// The number of operations.
    fn count(&self) -> u64 {
        self.ops().iter().map(|op| op.data.count).sum()
    }

    /// The CPU time of this program, which all operations of the workload share.
    fn cpu_share(&self) -> f64 {
        match self {
            Self::Workload { row, .. } => row.cpu_share(),
            Self::FilesStep(step) => step.cpu_share(),
        }
    }
}

/// A figure of the operations that a threshold names. `None` where too little was measured, and for
/// a latency of several kinds.
pub(super) fn figure_of_operations(metric: &Metric, named: &NamedOps<'_>) -> Option<Observed> {
    if is_cpu(metric) {
        return Some(Observed::exact(named.cpu_share() * 100.0));
    }
    let mut figure = if metric.unit == "ns" {
        let Some(latencies) = named.latencies() else {
            return longest_wait(metric, named);
        };
        latency_figure(metric, &latencies)?
    } else {
        let mut estimates = Vec::new();
        for op in named.ops() {
            estimates.push(metric.of_operation(op)?);
        }
        Observed::from_estimate(&sum_of(estimates)?)
    };
    let few = usize::try_from(named.count())
        .ok()
        .and_then(|count| FACTORS_OF_FEW.get(count));
    if let (Uncertainty::Factor(_), Some(factor)) = (figure.uncertainty, few) {
        figure.uncertainty = Uncertainty::Factor(*factor);
    }
    Some(match named.hang() {
        Some(hang) => with_unanswered(figure, metric, hang),
        None => figure,
    })
}

/// The longest latency where no request was answered; `None` of any other figure, and without such
/// requests.
fn longest_wait(metric: &Metric, named: &NamedOps<'_>) -> Option<Observed> {
    let hang = named.hang()?;
    let is_longest = metric.threshold == "max" && named.count() == 0;
    is_longest.then(|| Observed::exact(hang.lasted_ns as f64))
}

/// A figure of a workload with requests that were never answered, which are in no histogram: the
/// longest latency is at least their wait, any other one is longer than that of the answered, and
/// the rate says nothing of the next run.
fn with_unanswered(figure: Observed, metric: &Metric, hang: Hang) -> Observed {
    if metric.unit != "ns" {
        return Observed::new(figure.value, Uncertainty::Factor(f64::INFINITY));
    }
    match figure.uncertainty {
        Uncertainty::Exact => Observed::exact(figure.value.max(hang.lasted_ns as f64)),
        Uncertainty::Interval([low, _]) => Observed::new(low, Uncertainty::AtLeast),
        Uncertainty::Factor(_) | Uncertainty::AtLeast => {
            Observed::new(figure.value, Uncertainty::AtLeast)
        }
    }
}

/// A percentile, the mean or the longest of the latencies.
fn latency_figure(metric: &Metric, latencies: &OpLatencies<'_>) -> Option<Observed> {
    match metric.quantile() {
        Some(quantile) => percentile_figure(latencies, quantile),
        None if metric.threshold == "mean" => {
            Some(Observed::from_estimate(&latencies.mean_estimate()))
        }
        None => Some(Observed::exact(latencies.longest_ns() as f64)),
    }
}

/// A percentile. Long latencies come in clusters, so its interval is that of the independent
/// latencies that they are worth. `None` where even the fastest operation may be slower than it.
fn percentile_figure(latencies: &OpLatencies<'_>, quantile: f64) -> Option<Observed> {
    let histogram = latencies.histogram();
    let Some(ns) = histogram.percentile(quantile) else {
        let independent = latencies.independent_latencies(quantile);
        return quantile_at_least(histogram, quantile, independent);
    };
    let value = ns as f64;
    Some(match latencies.percentile_interval(quantile) {
        None => Observed::new(value, Uncertainty::Factor(FACTOR_OF_MANY)),
        Some(interval) => match interval.high_ns {
            Some(high_ns) => {
                Observed::new(value, Uncertainty::Interval([interval.low_ns, high_ns]))
            }
            None => Observed::new(interval.low_ns, Uncertainty::AtLeast),
        },
    })
}

/// The fastest or slowest rate of a curve, with the interval of its point where that has one.
fn figure_at_point(rate: f64, points: &[CurvePoint]) -> Observed {
    let point = points.iter().find(|point| point.bytes_per_second == rate);
    if let Some(point) = point
        && let Some(error) = point.standard_error
    {
        return Observed::within(rate, Some(NORMAL_MULTIPLE_95 * error * rate));
    }
    Observed::exact(rate)
}

/// The lower end of the interval of a quantile that has too few operations beyond it for an upper
/// end. It is the highest order statistic that lies at or below the quantile in 97.5 of 100 cases.
/// `independent` is the number of independent latencies that the histogram is worth; where it is
/// unknown, all are independent. `None` where even the fastest operation is not such a statistic.
fn quantile_at_least(
    histogram: &LatencyHistogram,
    quantile: f64,
    independent: Option<f64>,
) -> Option<Observed> {
    let count = match independent {
        Some(independent) => independent.floor().max(1.0),
        None => histogram.count() as f64,
    };
    // From the top: the chance that exactly so many of the operations lie at or below it.
    let mut rank = count;
    let mut exactly = quantile.powf(count);
    let mut at_least = exactly;
    while at_least < ONE_SIDED && rank >= 1.0 {
        exactly *= rank / (count - rank + 1.0) * (1.0 - quantile) / quantile;
        at_least += exactly;
        rank -= 1.0;
    }
    if rank < 1.0 {
        return None;
    }
    // Half a rank keeps the division from reaching the next one.
    let value_ns = histogram.value_at((rank - 0.5) / count);
    Some(Observed::new(value_ns as f64, Uncertainty::AtLeast))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_least(latencies: u64, quantile: f64) -> Option<u64> {
        let mut histogram = LatencyHistogram::new();
        (1..=latencies).for_each(|ns| histogram.record(ns));
        quantile_at_least(&histogram, quantile, None).map(|seen| seen.value as u64)
    }

    #[test]
    fn lower_end_of_a_quantile_is_the_order_statistic_of_the_binomial_distribution() {
        // One of one lies at or below the 99 % quantile in 99 of 100 cases, and at or below the
        // median in one of two.
        assert_eq!(at_least(1, 0.99), Some(1));
        assert_eq!(at_least(1, 0.5), None);
        // 1 - 0.5^5 = 0.969 and 1 - 0.5^6 = 0.984.
        assert_eq!((at_least(5, 0.5), at_least(6, 0.5)), (None, Some(1)));
        // 0.99^2 = 0.980, 0.99^3 = 0.970, 0.99^100 = 0.366: with one above, 0.736, with two, 0.921,
        // with three, 0.982.
        assert_eq!((at_least(2, 0.99), at_least(3, 0.99)), (Some(2), Some(2)));
        assert_eq!(at_least(100, 0.99), Some(97));
    }

    #[test]
    fn wide_intervals_of_positive_figures_stay_above_zero() {
        let low = |half_width: f64| match Uncertainty::around(1000.0, half_width) {
            Uncertainty::Interval([low, _]) => low,
            _ => panic!("an interval"),
        };
        assert_eq!([low(100.0), low(500.0)], [900.0, 500.0]);
        // 1000 ÷ (1 + 2 × 1.5)
        assert_eq!([low(1500.0), low(0.0)], [250.0, 1000.0]);
        assert!(low(1e9) > 0.0);
    }
}
