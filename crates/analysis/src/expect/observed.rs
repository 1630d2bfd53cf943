//! The figures that thresholds name, each with its uncertainty.

use super::parse::is_cpu;
use crate::estimate::sum_of;
use diskproof_model::figure::{Metric, Part, part_figure};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::record::{Estimate, Record, positive_interval};
use diskproof_model::row::OpRow;
use diskproof_model::surface::CurvePoint;

/// The 97.5 % quantile of the normal distribution.
const NORMAL_95: f64 = 1.96;
/// The certainty of each end of a 95 % interval: 2.5 % lie beyond either.
const ONE_SIDED: f64 = 0.975;

/// A measured figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Observed {
    /// In the unit of the metric.
    pub(super) value: f64,
    /// How well it is known.
    pub(super) uncertainty: Uncertainty,
}

/// How well a figure is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Uncertainty {
    /// It is what happened, such as the longest latency.
    Exact,
    /// From the lower to the upper end of the 95 % interval.
    Interval([f64; 2]),
    /// Too little was measured for an interval.
    Unknown,
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

    pub(super) fn exact(value: f64) -> Self {
        Self::new(value, Uncertainty::Exact)
    }

    fn from_estimate(estimate: &Estimate) -> Self {
        Self::within(estimate.value, estimate.half_width_95)
    }

    /// A figure with the half-width of its interval, where that is known.
    fn within(value: f64, half_width: Option<f64>) -> Self {
        match half_width {
            Some(half_width) => Self::new(value, Uncertainty::around(value, half_width)),
            None => Self::new(value, Uncertainty::Unknown),
        }
    }

    pub(super) fn interval(self) -> Option<[f64; 2]> {
        match self.uncertainty {
            Uncertainty::Interval(ends) => Some(ends),
            Uncertainty::Exact | Uncertainty::Unknown | Uncertainty::AtLeast => None,
        }
    }
}

/// A figure of a part of a survey, or of the answer of a search. `None` where the run has none.
pub(super) fn figure_of_part(record: &Record, part: Part, metric: &Metric) -> Option<Observed> {
    let figure = part_figure(record, part, metric.threshold)?;
    Some(match part {
        Part::Curve if figure.n.is_none() => figure_at_point(figure.value, record.curve()),
        // One access after the other: the rate is the inverse of the mean time.
        Part::Access(_) if metric.unit == "1/s" => {
            let mean = part_figure(record, part, "mean")?.estimate();
            let half_width = mean.relative_half_width().map(|width| figure.value * width);
            Observed::within(figure.value, half_width)
        }
        Part::Load => Observed::within(figure.value, figure.half_width_95),
        _ if figure.n.is_none() => Observed::exact(figure.value),
        _ => Observed::from_estimate(&figure.estimate()),
    })
}

/// A figure of a workload. `cpu_share` is that of all its operations; `ops` are those that the
/// threshold names. `None` where too little was measured, and for a latency of several kinds.
pub(super) fn figure_of_operations(
    metric: &Metric,
    cpu_share: f64,
    ops: &[OpRow<'_>],
) -> Option<Observed> {
    if is_cpu(metric) {
        return Some(Observed::exact(cpu_share * 100.0));
    }
    if metric.unit == "ns" {
        // Reads and writes of a mix have no common latency.
        return match ops {
            [op] if op.data.count > 0 => latency_figure(metric, *op),
            _ => None,
        };
    }
    let mut estimates = Vec::new();
    for op in ops {
        estimates.push(metric.of_operation(*op)?);
    }
    Some(Observed::from_estimate(&sum_of(estimates)?))
}

/// A percentile, the mean or the longest of the latencies.
fn latency_figure(metric: &Metric, op: OpRow<'_>) -> Option<Observed> {
    let Some(quantile) = metric.quantile() else {
        return Some(match metric.threshold {
            "mean" => mean_latency_figure(op),
            _ => Observed::exact(metric.of_operation(op)?.value),
        });
    };
    let histogram = &op.data.latency;
    match histogram.percentile(quantile) {
        Some(ns) => {
            let uncertainty = quantile_interval(histogram, quantile);
            Some(Observed::new(ns as f64, uncertainty))
        }
        None => quantile_at_least(histogram, quantile),
    }
}

/// The fastest or slowest rate of a curve, with the interval of its point where that has one.
fn figure_at_point(rate: f64, points: &[CurvePoint]) -> Observed {
    let point = points.iter().find(|point| point.bytes_per_second == rate);
    if let Some(point) = point
        && let Some(error) = point.standard_error
    {
        return Observed::within(rate, Some(NORMAL_95 * error * rate));
    }
    Observed::exact(rate)
}

/// The mean latency, with the wider of two intervals. In a closed loop the mean varies as the rate
/// does (Little's law). At a fixed rate only the scatter of the latencies shows how it varies.
fn mean_latency_figure(op: OpRow<'_>) -> Observed {
    let value = op.figures.latency.mean;
    let deviation = op.data.latency.deviation_ns(value);
    let by_latencies = NORMAL_95 * deviation / (op.data.count as f64).sqrt();
    let half_width = op
        .figures
        .iops
        .relative_half_width()
        .map(|by_rate| (value * by_rate).max(by_latencies));
    Observed::within(value, half_width)
}

/// The interval of a quantile from the order statistics around it (Hahn and Meeker, Statistical
/// Intervals, 1991, 5.2).
fn quantile_interval(histogram: &LatencyHistogram, quantile: f64) -> Uncertainty {
    let width = NORMAL_95 * (quantile * (1.0 - quantile) / histogram.count() as f64).sqrt();
    let low_ns = histogram.value_at(quantile - width);
    let high_ns = histogram.value_at(quantile + width);
    Uncertainty::Interval([low_ns as f64, high_ns as f64])
}

/// The lower end of the interval of a quantile that has too few operations beyond it for an upper
/// end. It is the highest order statistic that lies at or below the quantile in 97.5 of 100 cases.
/// `None` where even the fastest operation does not.
fn quantile_at_least(histogram: &LatencyHistogram, quantile: f64) -> Option<Observed> {
    let count = histogram.count() as f64;
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
        quantile_at_least(&histogram, quantile).map(|seen| seen.value as u64)
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

    #[test]
    fn quantiles_have_intervals_from_the_samples_around_them() {
        let mut histogram = LatencyHistogram::new();
        (1..=1000_u64).for_each(|us| histogram.record(us * 1000));
        // 95 % ± 1.96 × √(0.95 × 0.05 ÷ 1000) = 93.65 % to 96.35 %.
        let Uncertainty::Interval([low, high]) = quantile_interval(&histogram, 0.95) else {
            panic!("an interval")
        };
        assert!((936_000.0..=938_500.0).contains(&low), "{low}");
        assert!((963_000.0..=965_500.0).contains(&high), "{high}");
    }
}
