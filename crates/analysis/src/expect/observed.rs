//! A figure of a record with its interval, as thresholds see it. Knows no thresholds.

use diskproof_model::digits::positive_interval;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::record::{Estimate, OpRecord};
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
        total(std::iter::once(estimate))
    }

    pub(super) fn interval(self) -> Option<[f64; 2]> {
        match self.spread {
            Uncertainty::Interval(ends) => Some(ends),
            Uncertainty::Exact | Uncertainty::Unknown => None,
        }
    }
}

/// The sum of estimates. Reads and writes of a mix vary together, so their half-widths add up.
pub(super) fn total<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> Observed {
    let (mut value, mut half_width) = (0.0, Some(0.0));
    for estimate in estimates {
        value += estimate.value;
        half_width = half_width.zip(estimate.half_width_95).map(|(a, b)| a + b);
    }
    let spread = half_width.map_or(Uncertainty::Unknown, |width| {
        Uncertainty::around(value, width)
    });
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

/// The interval of a quantile from the order statistics around it (Hahn and Meeker, Statistical
/// Intervals, 1991, 5.2).
pub(super) fn quantile_spread(histogram: &LatencyHistogram, quantile: f64) -> Uncertainty {
    let width = NORMAL_95 * (quantile * (1.0 - quantile) / histogram.count() as f64).sqrt();
    let at = |quantile: f64| histogram.value_at(quantile) as f64;
    Uncertainty::Interval([at(quantile - width), at(quantile + width)])
}
