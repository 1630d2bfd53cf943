//! The rates of a curve: slowest, fastest, and the average over position with its interval.

use crate::estimate::student;
use diskproof_model::record::Estimate;
use diskproof_model::surface::{CurvePoint, RateSummary};
use std::ops::Range;

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
    let mut min = f64::INFINITY;
    let mut max = 0.0_f64;
    let mut samples = Vec::new();
    for point in points {
        min = min.min(point.bytes_per_second);
        max = max.max(point.bytes_per_second);
        samples.push(CurveSample::from_point(point));
    }
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
        min,
        max,
        average: Estimate::new(samples.len() as u64, value, half_width_95, "B/s"),
    })
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
