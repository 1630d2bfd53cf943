//! Computes the rates of a curve: slowest, fastest, and the average over position with its
//! interval.

use crate::estimate::student;
use diskproof_model::record::Estimate;
use diskproof_model::surface::{CurvePoint, RateSummary};
use std::ops::Range;

/// The slowest and the fastest rate are those of at least this time, in seconds: a wake-up that
/// comes 1 ms late makes a point of 2 ms seem half as fast, and the next one twice as fast.
const EXTREME_S_MIN: f64 = 0.02;

/// The slowest, the fastest and the average rate. The average is over position: every byte of the
/// span takes the time per byte of the nearest sample, and the average is the span over the sum of
/// these times. So samples need not be evenly spaced, and neighbours stand in for a point that
/// failed.
pub(super) fn rate_summary(curve: &[CurvePoint], span: Range<u64>) -> Option<RateSummary> {
    let mut points = Vec::new();
    for point in curve {
        if point.bytes_per_second > 0.0 && point.bytes_per_second.is_finite() {
            points.push(point);
        }
    }
    points.sort_by_key(|point| point.offset_bytes);
    let rates = rates_of_stretches(&points);
    let min = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let max = rates.iter().copied().fold(0.0, f64::max);
    let samples: Vec<CurveSample> = points
        .iter()
        .map(|point| CurveSample::from_point(point))
        .collect();
    let weights = weights(&samples, span);
    let seconds_per_byte: f64 = std::iter::zip(&samples, &weights)
        .map(|(sample, weight)| weight * sample.seconds_per_byte)
        .sum();
    if seconds_per_byte.is_nan() || seconds_per_byte <= 0.0 {
        return None;
    }
    let value = 1.0 / seconds_per_byte;
    // To first order the relative error of an inverse is that of the value.
    let half_width_95 =
        half_width_95(&samples, &weights).map(|width| width / seconds_per_byte * value);
    Some(RateSummary {
        // A span that is one stretch has its rate by bytes, and its average by position.
        min: min.min(value),
        max: max.max(value),
        average: Estimate::new(samples.len() as u64, value, half_width_95, "B/s"),
    })
}

/// Neighbouring points with the time that they took.
struct Stretch {
    bytes: f64,
    seconds: f64,
    bytes_per_second: f64,
}

impl Stretch {
    /// True if it took too short a time. That of a point without bytes is unknown.
    fn is_short(&self) -> bool {
        self.bytes > 0.0 && self.seconds < EXTREME_S_MIN
    }

    fn add(&mut self, bytes: f64, seconds: f64) {
        self.bytes += bytes;
        self.seconds += seconds;
        self.bytes_per_second = self.bytes / self.seconds;
    }
}

/// The rate of each stretch of neighbouring points that together took long enough to know it, in
/// order: of each point, unless the span is small and the disk fast.
fn rates_of_stretches(points: &[&CurvePoint]) -> Vec<f64> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for point in points {
        let bytes = point.bytes as f64;
        let seconds = bytes / point.bytes_per_second;
        match stretches.last_mut() {
            Some(stretch) if stretch.is_short() => stretch.add(bytes, seconds),
            _ => stretches.push(Stretch {
                bytes,
                seconds,
                bytes_per_second: point.bytes_per_second,
            }),
        }
    }
    // What is left at the end belongs to the stretch before it.
    if let [.., before, last] = &mut stretches[..]
        && last.is_short()
    {
        before.add(last.bytes, last.seconds);
        stretches.pop();
    }
    stretches
        .iter()
        .map(|stretch| stretch.bytes_per_second)
        .collect()
}

/// A point of the curve as a sample of the time per byte.
struct CurveSample {
    middle_bytes: f64,
    seconds_per_byte: f64,
}

impl CurveSample {
    fn from_point(point: &CurvePoint) -> Self {
        Self {
            middle_bytes: point.offset_bytes as f64 + point.bytes as f64 / 2.0,
            seconds_per_byte: 1.0 / point.bytes_per_second,
        }
    }
}

/// The share of the span that is nearest to each sample; the shares add up to 1.
fn weights(samples: &[CurveSample], span: Range<u64>) -> Vec<f64> {
    let (first, last) = match samples {
        [first, .., last] => (first.middle_bytes, last.middle_bytes),
        [only] => (only.middle_bytes, only.middle_bytes),
        [] => return Vec::new(),
    };
    // The outermost samples stand for no more than the others: a curve that was interrupted says
    // nothing about the rest of the span.
    let step = match samples.len() {
        1 => f64::INFINITY,
        n => (last - first) / (n - 1) as f64,
    };
    let start = (span.start as f64).max(first - step);
    let end = (span.end as f64).min(last + step).max(start);
    let mut bounds = vec![start];
    for pair in samples.windows(2) {
        bounds.push((pair[0].middle_bytes + pair[1].middle_bytes) / 2.0);
    }
    bounds.push(end);
    // Samples outside of the span have no share of it.
    let shares: Vec<f64> = bounds
        .windows(2)
        .map(|pair| pair[1].clamp(start, end) - pair[0].clamp(start, end))
        .map(|share_bytes| share_bytes.max(0.0))
        .collect();
    let total: f64 = shares.iter().sum();
    if total > 0.0 {
        shares
            .iter()
            .map(|share_bytes| share_bytes / total)
            .collect()
    } else {
        // Without a span, or with all samples at one place of it, each counts the same.
        vec![1.0 / shares.len() as f64; shares.len()]
    }
}

/// Half-width of the 95 % interval of the weighted mean time per byte: the error of reading samples
/// only. The points of a falling curve are not draws of one value, so their spread does not show
/// the error. The error of a sample is its distance from the line between its two neighbours. It
/// contains both noise and what the surface does between the samples (steps between zones,
/// raggedness). `None` of fewer than three samples.
fn half_width_95(samples: &[CurveSample], weights: &[f64]) -> Option<f64> {
    let surprises: Vec<f64> = samples
        .windows(3)
        .map(|three| surprise(&three[0], &three[1], &three[2]))
        .collect();
    if surprises.is_empty() {
        return None;
    }
    let variance = surprises.iter().sum::<f64>() / surprises.len() as f64;
    let multiple = student::multiple_95(surprises.len() as f64);
    let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
    Some(multiple * (variance * squares).sqrt())
}

/// The squared distance of a sample from the line between its neighbours, as the variance of one
/// sample.
fn surprise(before: &CurveSample, sample: &CurveSample, after: &CurveSample) -> f64 {
    let width = after.middle_bytes - before.middle_bytes;
    let share = if width > 0.0 {
        (sample.middle_bytes - before.middle_bytes) / width
    } else {
        0.5
    };
    let line = before.seconds_per_byte * (1.0 - share) + after.seconds_per_byte * share;
    // Three independent errors add up: the sample's own, and the neighbours' in their shares.
    (sample.seconds_per_byte - line).powi(2) / (1.0 + share * share + (1.0 - share) * (1.0 - share))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of 8 MiB each that took so many milliseconds.
    fn rates(point_ms: &[u64]) -> RateSummary {
        const POINT_BYTES: u64 = 8 << 20;
        let mut curve = Vec::new();
        for (number, ms) in (0u64..).zip(point_ms) {
            curve.push(CurvePoint::read_once(
                number * POINT_BYTES,
                POINT_BYTES,
                ms * 1_000_000,
            ));
        }
        let end = POINT_BYTES * curve.len() as u64;
        rate_summary(&curve, 0..end).unwrap()
    }

    #[test]
    fn late_wake_up_makes_no_extreme_of_a_short_point() {
        let mut point_ms = vec![2; 60];
        (point_ms[17], point_ms[18]) = (3, 1);
        let even = rates(&point_ms);
        assert!(even.max <= 1.06 * even.min, "{even:?}");
        // A place that stays slow is seen.
        point_ms[20..40].fill(4);
        let slow = rates(&point_ms);
        assert!((slow.max / slow.min - 2.0).abs() < 0.12, "{slow:?}");
        // The last points are too few for a rate of their own.
        point_ms.extend([1, 1]);
        assert!(rates(&point_ms).max <= 1.1 * slow.max);
    }

    #[test]
    fn average_lies_between_the_extremes() {
        // Two points that are one stretch, of which the first stands for most of the span.
        let curve = [
            CurvePoint::read_once(0, 1 << 20, 1_000_000),
            CurvePoint::read_once(63 << 20, 1 << 20, 3_000_000),
        ];
        let rates = rate_summary(&curve, 0..64 << 20).unwrap();
        let average = rates.average.value;
        assert!(rates.min <= average && average <= rates.max, "{rates:?}");
        let reversed = [
            CurvePoint::read_once(0, 1 << 20, 3_000_000),
            CurvePoint::read_once(1 << 20, 8 << 20, 1_000_000),
        ];
        let rates = rate_summary(&reversed, 0..64 << 20).unwrap();
        let average = rates.average.value;
        assert!(rates.min <= average && average <= rates.max, "{rates:?}");
    }

    #[test]
    fn long_point_is_an_extreme_by_itself() {
        let long = rates(&[200, 200, 400, 200, 100, 200]);
        assert!((long.max / long.min - 4.0).abs() < 1e-9, "{long:?}");
    }
}
