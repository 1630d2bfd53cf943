//! Decides whether the average of the curve is known well enough. `ragged` reports an uneven
//! surface, whose average is uncertain for that reason alone.

use super::super::ragged::is_curve_ragged;
use super::super::rule::*;
use super::super::starved::is_survey_starved;
use super::workloads::WIDTH_NOTE;
use diskproof_model::surface::CurvePoint;

/// Reports a curve whose average is known too roughly.
pub(super) fn check(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    let average = &surface.figures.rate.as_ref()?.average;
    if is_curve_ragged(record) {
        return None;
    }
    let half_width = average.half_width_95?;
    let width = average.relative_half_width()?;
    if width <= WIDTH_NOTE {
        return None;
    }
    let mut claim = format!(
        "The average of the curve is known only to ±{}.",
        format_percent(width)
    );
    // What a thread did not read while it waited for a processor is not the disk's rate.
    if !is_survey_starved(surface)
        && let Some(worst) = worst_point(record)
    {
        claim.push_str(&format!(
            " The point at {} differs most from its neighbours: {} instead of about {}.",
            gigabytes(worst.offset_bytes),
            format_throughput(worst.rate),
            format_throughput(worst.expected)
        ));
    }
    let path = first_result_path("figures/rate/average/half_width_95");
    let evidence = evidence_at(path, half_width, WIDTH_NOTE * average.value, "B/s");
    Some(
        Diagnosis::new(warning_if(width > HALF_WIDTH_MAX), claim, [evidence]).with_remedy(
            "Measure the curve again with more points (diskproof curve --points 400) while \
             nothing else uses the disk.",
        ),
    )
}

/// A point, and the rate that its neighbours suggest.
struct OddPoint {
    offset_bytes: u64,
    expected: f64,
    rate: f64,
}

impl OddPoint {
    /// The distance from what its neighbours let expect, as a factor's logarithm.
    fn distance(&self) -> f64 {
        (self.rate / self.expected).ln().abs()
    }
}

/// The point that is furthest from what its neighbours suggest. One that is off pulls the interval
/// open more than the average itself.
fn worst_point(record: &Record) -> Option<OddPoint> {
    let mut points: Vec<&CurvePoint> = record.curve().iter().collect();
    points.retain(|point| point.errors == 0 && point.bytes_per_second > 0.0);
    points.sort_by_key(|point| point.offset_bytes);
    let mut odd_points: Vec<OddPoint> = Vec::new();
    for neighbours in points.windows(3) {
        let [before, point, after] = neighbours else {
            continue;
        };
        let low = before.bytes_per_second.min(after.bytes_per_second);
        let high = before.bytes_per_second.max(after.bytes_per_second);
        odd_points.push(OddPoint {
            offset_bytes: point.offset_bytes,
            expected: point.bytes_per_second.clamp(low, high),
            rate: point.bytes_per_second,
        });
    }
    odd_points.retain(|point| point.distance() > WIDTH_NOTE);
    largest_by(odd_points, OddPoint::distance)
}
