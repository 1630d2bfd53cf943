//! A figure of a record with its interval, as thresholds see it. Knows no thresholds.

use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::record::{Estimate, OpRecord, positive_interval};
use diskproof_model::surface::CurvePoint;

/// A measured figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Observed {
    /// In the unit of the metric.
    pub(super) value: f64,
    /// How well it is known.
    pub(super) spread: Uncertainty,
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
    pub(super) fn around(value: f64, half_width: f64) -> Self {
        Self::Interval(positive_interval(value, half_width))
    }
}

impl Observed {
    pub(super) fn exact(value: f64) -> Self {
        Self {
            value,
            spread: Uncertainty::Exact,
        }
    }

    pub(super) fn of(estimate: &Estimate) -> Self {
        total(std::slice::from_ref(estimate))
    }

    pub(super) fn interval(self) -> Option<[f64; 2]> {
        match self.spread {
            Uncertainty::Interval(ends) => Some(ends),
            Uncertainty::Exact | Uncertainty::Unknown | Uncertainty::AtLeast => None,
        }
    }
}

/// The sum of estimates. Reads and writes of a mix vary together, so their half-widths add up.
pub(super) fn total(estimates: &[Estimate]) -> Observed {
    let (mut value, mut half_width) = (0.0, Some(0.0));
    for estimate in estimates {
        value += estimate.value;
        half_width = half_width.zip(estimate.half_width_95).map(|(a, b)| a + b);
    }
    let around = |width| Uncertainty::around(value, width);
    let spread = half_width.map_or(Uncertainty::Unknown, around);
    Observed { value, spread }
}

/// The fastest or slowest rate of a curve, as well as its point is known.
pub(super) fn at_point(rate: f64, points: &[CurvePoint]) -> Observed {
    let mut at = points.iter().filter(|p| p.bytes_per_second == rate);
    let spread = match at.next().and_then(|point| point.standard_error) {
        Some(error) => Uncertainty::around(rate, NORMAL_95 * error * rate),
        None => Uncertainty::Exact,
    };
    Observed {
        value: rate,
        spread,
    }
}

pub(super) fn histogram(op: &OpRecord) -> Option<LatencyHistogram> {
    LatencyHistogram::from_hdr_base64(&op.latency.hdr).ok()
}

/// In a closed loop, the mean latency varies as the rate does (Little's law). At a fixed rate the
/// latencies themselves tell, and the wider of both counts.
pub(super) fn mean_latency(op: &OpRecord) -> Observed {
    let value = op.latency.mean;
    let by_rate = op.iops.relative_half_width().map(|width| value * width);
    let by_latencies = histogram(op).map(|histogram| {
        let deviation = histogram.deviation_ns(value);
        NORMAL_95 * deviation / (op.count as f64).sqrt()
    });
    let spread = match (by_rate, by_latencies) {
        (Some(one), Some(other)) => Uncertainty::around(value, one.max(other)),
        _ => Uncertainty::Unknown,
    };
    Observed { value, spread }
}

/// The 97.5 % quantile of the normal distribution.
const NORMAL_95: f64 = 1.96;
/// How certain each end of a 95 % interval is.
const ONE_SIDED: f64 = 0.975;

/// The interval of a quantile from the order statistics around it (Hahn and Meeker, Statistical
/// Intervals, 1991, 5.2).
pub(super) fn quantile_spread(histogram: &LatencyHistogram, quantile: f64) -> Uncertainty {
    let width = NORMAL_95 * (quantile * (1.0 - quantile) / histogram.count() as f64).sqrt();
    let at = |quantile: f64| histogram.value_at(quantile) as f64;
    Uncertainty::Interval([at(quantile - width), at(quantile + width)])
}

/// What few operations say about a quantile. The slowest of them is no upper limit of it, but the
/// lower end of its interval needs none beyond it: the highest order statistic that lies at or
/// below the quantile in 97.5 of 100 cases. `None` where even the fastest does not.
pub(super) fn quantile_at_least(histogram: &LatencyHistogram, quantile: f64) -> Option<Observed> {
    let count = histogram.count() as f64;
    // From the top: the chance that exactly so many of the operations lie at or below it.
    let (mut rank, mut exactly) = (count, quantile.powf(count));
    let mut at_least = exactly;
    while at_least < ONE_SIDED && rank >= 1.0 {
        exactly *= rank / (count - rank + 1.0) * (1.0 - quantile) / quantile;
        at_least += exactly;
        rank -= 1.0;
    }
    // Half a rank keeps the division from reaching the next one.
    (rank >= 1.0).then(|| Observed {
        value: histogram.value_at((rank - 0.5) / count) as f64,
        spread: Uncertainty::AtLeast,
    })
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
}
