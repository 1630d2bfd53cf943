//! Derived figures of a survey: rates, access times by pattern, the gain of short strokes. And
//! second readings of dips at the end of a survey: the points to read again, and whether a dip is
//! confirmed. Another program that uses the disk for a while also makes a stretch slow. Later the
//! dip is gone, or the sides are slow, too.

use crate::estimate::{mean, student};
use crate::shape::{Dip, Reach, Shape};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Estimate;
use diskproof_model::row::Row;
use diskproof_model::surface::{
    AccessPoint, CurvePoint, RateSummary, SeekPattern, SeekSummary, ShortStroke, SurfaceFigures,
    SurfaceMeasurement, SurfaceRecord,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// The name of the workload that measures random reads in the first `percent` of a span.
pub fn short_stroke_name(percent: f64) -> String {
    format!("{SHORT_STROKE}{percent}")
}

/// Whether a workload belongs to the survey as a short stroke.
pub(crate) fn is_short_stroke(workload: &str) -> bool {
    workload.starts_with(SHORT_STROKE)
}

/// The prefix of their names; the percentage follows.
const SHORT_STROKE: &str = "short-stroke-";

/// The survey with its derived figures. `measurements` contain its short strokes.
pub fn surface_record(s: &SurfaceMeasurement, measurements: &[Row]) -> SurfaceRecord {
    let curve_bytes = s.curve.iter().map(|p| p.bytes).sum();
    let cpu_ns = s.curve_cpu.user_ns + s.curve_cpu.system_ns;
    let figures = SurfaceFigures {
        curve_bytes,
        curve_share: share(curve_bytes as f64, s.span_bytes as f64).min(1.0),
        curve_cpu_share: share(cpu_ns as f64, s.curve_ns as f64),
        rate: rate_summary(&s.curve, span(s)),
        seeks: seek_summaries(&s.access),
        short_strokes: short_strokes(s, measurements),
        starved_share: share(s.starved_ns as f64, s.wall_ns as f64),
        reproduce: String::new(),
    };
    SurfaceRecord {
        data: s.clone(),
        figures,
    }
}

fn span(s: &SurfaceMeasurement) -> Range<u64> {
    s.span_start_bytes..s.span_start_bytes.saturating_add(s.span_bytes)
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The slowest, the fastest and the average rate. The average is over position: every byte of the
/// span takes the time per byte of the nearest sample, and the average is the span over the sum of
/// these times. So samples need not be evenly spaced, and neighbours stand in for a point that
/// failed.
fn rate_summary(curve: &[CurvePoint], span: Range<u64>) -> Option<RateSummary> {
    let mut points = Vec::new();
    for point in curve {
        if point.bytes_per_second > 0.0 && point.bytes_per_second.is_finite() {
            points.push(point);
        }
    }
    points.sort_by_key(|point| point.offset_bytes);
    let (mut min, mut max) = (f64::INFINITY, 0.0_f64);
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

fn seek_summaries(access: &[AccessPoint]) -> BTreeMap<SeekPattern, SeekSummary> {
    let mut by_pattern: BTreeMap<SeekPattern, Vec<&AccessPoint>> = BTreeMap::new();
    for point in access {
        by_pattern.entry(point.seek).or_default().push(point);
    }
    let mut summaries = BTreeMap::new();
    for (seek, points) in by_pattern {
        if let Some(summary) = seek_summary(&points) {
            summaries.insert(seek, summary);
        }
    }
    summaries
}

fn seek_summary(points: &[&AccessPoint]) -> Option<SeekSummary> {
    let mut latencies: Vec<u64> = points.iter().map(|p| p.latency_ns).collect();
    latencies.sort_unstable();
    let values: Vec<f64> = latencies.iter().map(|ns| *ns as f64).collect();
    let mean = mean_estimate(&values)?;
    let distances: f64 = points.iter().map(|p| p.distance_bytes as f64).sum();
    Some(SeekSummary {
        n: latencies.len() as u64,
        min_ns: latencies[0],
        p50_ns: latencies[latencies.len() / 2],
        max_ns: latencies[latencies.len() - 1],
        distance_mean_bytes: distances / points.len() as f64,
        iops: share(1e9, mean.value),
        mean,
    })
}

/// The mean of independent values with Student's t interval; `None` without values.
fn mean_estimate(values: &[f64]) -> Option<Estimate> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let value = values.iter().sum::<f64>() / n as f64;
    let half_width_95 = if n > 1 {
        let squares: f64 = values.iter().map(|v| (v - value).powi(2)).sum();
        let variance = squares / (n - 1) as f64;
        Some(student::multiple_95((n - 1) as f64) * (variance / n as f64).sqrt())
    } else {
        None
    };
    Some(Estimate::new(n as u64, value, half_width_95, "ns"))
}

/// The short strokes among these measurements, the longest span first.
fn short_strokes(s: &SurfaceMeasurement, measurements: &[Row]) -> Vec<ShortStroke> {
    let mut strokes = Vec::new();
    for (index, m) in measurements.iter().enumerate() {
        strokes.extend(short_stroke(s, index, m));
    }
    strokes.sort_by(|a, b| b.percent.total_cmp(&a.percent));
    let whole = match strokes.first() {
        Some(longest) => longest.iops.value,
        None => return strokes,
    };
    for stroke in &mut strokes {
        stroke.gain = share(stroke.iops.value, whole);
    }
    strokes
}

fn short_stroke(s: &SurfaceMeasurement, measurement: usize, m: &Row) -> Option<ShortStroke> {
    let w = &m.data.workload;
    let percent: f64 = w.name.strip_prefix(SHORT_STROKE)?.parse().ok()?;
    let read = m.op(OpKind::Read)?;
    if !percent.is_finite() || m.data.target != s.target {
        return None;
    }
    let start_bytes = m.data.span_start_bytes;
    let stroke = start_bytes..start_bytes.saturating_add(m.data.span_bytes);
    let mut within = s.curve.clone();
    within.retain(|point| stroke.contains(&point.offset_bytes));
    Some(ShortStroke {
        percent,
        span_bytes: m.data.span_bytes,
        measurement,
        iops: read.figures.iops.clone(),
        gain: 1.0,
        latency_mean_ns: read.figures.latency.mean,
        latency_max_ns: read.figures.latency.max,
        throughput: rate_summary(&within, stroke).map(|rate| rate.average.value),
    })
}

/// At most this many dips are read again: the deepest ones.
const DIPS_MAX: usize = 3;
/// This many points of a dip are read again: its ends and its middle.
const INSIDE: usize = 3;
/// This many points on each side of a dip are read again.
const BESIDE: usize = 2;
/// A dip is confirmed if the second reading shows at least this share of its depth.
const DEPTH_SHARE: f64 = 0.5;

/// The result of a second reading of a dip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SecondReading {
    /// The dip was not read again.
    Missing,
    /// The stretch was as fast as its sides.
    Refuted,
    /// The stretch was slow again, at this rate in bytes per second.
    Confirmed(f64),
}

/// Indices of the points of a curve that are worth a second reading.
pub fn points_to_confirm(curve: &[CurvePoint]) -> Vec<usize> {
    // The reach does not matter: a point too many costs only a moment.
    let Some(shape) = Shape::from_curve(curve, Reach::Whole) else {
        return Vec::new();
    };
    let mut dips: Vec<&Dip> = shape.dips.iter().collect();
    dips.sort_by(|a, b| (a.rate / a.neighbours_rate).total_cmp(&(b.rate / b.neighbours_rate)));
    let mut points: Vec<usize> = Vec::new();
    for dip in dips.into_iter().take(DIPS_MAX) {
        let last_step = (dip.last - dip.first).min(INSIDE - 1);
        points.extend((0..=last_step).map(|step| {
            let distance = (dip.last - dip.first) * step;
            dip.first + distance / last_step.max(1)
        }));
        let (left, right) = sides_of_dip(&shape, dip);
        points.extend(left.into_iter().take(BESIDE));
        points.extend(right.into_iter().take(BESIDE));
    }
    let mut indices: Vec<usize> = points
        .iter()
        .map(|point| shape.points[*point].index)
        .collect();
    indices.sort_unstable();
    indices.dedup();
    indices
}

/// The points on both sides of a dip that belong to no dip, the nearest first.
fn sides_of_dip(shape: &Shape, dip: &Dip) -> (Vec<usize>, Vec<usize>) {
    let mut left: Vec<usize> = (0..dip.first).rev().collect();
    let mut right: Vec<usize> = (dip.last + 1..shape.points.len()).collect();
    left.retain(|point| !is_in_dip(shape, *point));
    right.retain(|point| !is_in_dip(shape, *point));
    (left, right)
}

fn is_in_dip(shape: &Shape, point: usize) -> bool {
    shape
        .dips
        .iter()
        .any(|dip| (dip.first..=dip.last).contains(&point))
}

/// Whether the second reading of `curve` confirms a dip of its shape.
pub(crate) fn second_reading(curve: &[CurvePoint], shape: &Shape, dip: &Dip) -> SecondReading {
    let (left, right) = sides_of_dip(shape, dip);
    let mut beside = Vec::new();
    for side in [left, right] {
        beside.extend(later_level(curve, shape, side.into_iter().take(BESIDE)));
    }
    let Some(inside) = later_level(curve, shape, dip.first..=dip.last) else {
        return SecondReading::Missing;
    };
    if beside.is_empty() {
        return SecondReading::Missing;
    }
    let depth = mean(&beside) - inside;
    if depth >= DEPTH_SHARE * (dip.neighbours_rate / dip.rate).ln() {
        SecondReading::Confirmed(inside.exp())
    } else {
        SecondReading::Refuted
    }
}

/// The mean logarithm of the rates of the second reading, over the first of these points; `None`
/// where none was read again.
fn later_level(
    curve: &[CurvePoint],
    shape: &Shape,
    points: impl Iterator<Item = usize>,
) -> Option<f64> {
    let mut logs = Vec::new();
    for point in points {
        match curve[shape.points[point].index].later_bytes_per_second {
            Some(rate) if rate > 0.0 => logs.push(rate.ln()),
            _ => {}
        }
    }
    if logs.is_empty() {
        return None;
    }
    logs.truncate(INSIDE.max(BESIDE));
    Some(mean(&logs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{SurveyedDisk, rotating};
    use crate::fixture::test_rng::TestRng;

    fn point(offset_bytes: u64, bytes_per_second: f64) -> CurvePoint {
        CurvePoint {
            bytes_per_second,
            ..CurvePoint::read_once(offset_bytes, 0, 1)
        }
    }

    /// The average over all bytes of the surface.
    fn truth(disk: &SurveyedDisk) -> f64 {
        const PLACES: usize = 5_000;
        PLACES as f64
            / (0..PLACES)
                .map(|i| 1.0 / disk.rate_at((i as f64 + 0.5) / PLACES as f64))
                .sum::<f64>()
    }

    #[test]
    fn the_average_is_over_bytes_not_over_points() {
        // 30 of 90 bytes lie nearest to the point at 10, 60 to the one at 50.
        let summary = rate_summary(&[point(10, 100.0), point(50, 50.0)], 0..90).unwrap();
        let average = 90.0 / (30.0 / 100.0 + 60.0 / 50.0);
        assert!(
            (summary.average.value - average).abs() < 1e-9,
            "{summary:?}"
        );
        assert_eq!((summary.min, summary.max), (50.0, 100.0));
        assert_eq!(summary.average.half_width_95, None);
    }

    #[test]
    fn neighbours_stand_in_for_points_that_failed() {
        let disk = rotating(|disk| disk.noise = 0.0);
        let mut survey = disk.survey(1);
        for point in &mut survey.curve[100..120] {
            (point.bytes_per_second, point.bytes, point.errors) = (0.0, 0, 3);
        }
        let average = rate_summary(&survey.curve, span(&survey)).unwrap().average;
        assert!(
            (average.value / truth(&disk) - 1.0).abs() < 0.005,
            "{average:?}"
        );
        assert_eq!(average.n, 180);
    }

    #[test]
    fn an_interrupted_curve_has_the_average_of_what_was_seen() {
        let disk = rotating(|disk| (disk.noise, disk.zones) = (0.0, 2));
        let mut survey = disk.survey(1);
        survey.curve.truncate(20);
        let average = rate_summary(&survey.curve, span(&survey)).unwrap().average;
        assert!((average.value / 92e6 - 1.0).abs() < 1e-9, "{average:?}");
        survey.curve = disk.survey(1).curve.split_off(60);
        let average = rate_summary(&survey.curve, span(&survey)).unwrap().average;
        assert!(average.value < truth(&disk), "{average:?}");
    }

    #[test]
    fn the_interval_holds_the_true_average_as_often_as_it_says() {
        let mut rng = TestRng(5);
        let (mut inside, mut narrow) = (0, 0);
        for seed in 0..100 {
            let ragged = (rng.share() < 0.3)
                .then(|| (rng.whole(1, 200) * 10_000_000, rng.between(0.0, 0.4)));
            let disk = rotating(|disk| {
                (
                    disk.zones,
                    disk.points,
                    disk.noise,
                    disk.ragged,
                    disk.accesses,
                ) = (
                    rng.whole(2, 40) as u32,
                    rng.whole(20, 300) as u32,
                    rng.between(0.0, 0.05),
                    ragged,
                    0,
                )
            });
            let survey = disk.survey(seed);
            let average = rate_summary(&survey.curve, span(&survey)).unwrap().average;
            inside +=
                usize::from((average.value - truth(&disk)).abs() <= average.half_width_95.unwrap());
            narrow += usize::from(average.relative_half_width().unwrap() < 0.02);
        }
        // 98 % when this was written: a zone's step is counted twice, as noise of the samples on
        // both sides.
        assert!(inside >= 93, "{inside} of 100");
        assert!(narrow >= 80, "the interval is of use: {narrow} of 100");
    }

    #[test]
    fn nothing_and_nonsense_have_no_figures() {
        let average = |points: &[(u64, f64)], span: std::ops::Range<u64>| {
            let points = points.iter().map(|(at, rate)| point(*at, *rate));
            let summary = rate_summary(&points.collect::<Vec<_>>(), span)?;
            Some((summary.average.value, summary.average.half_width_95))
        };
        assert_eq!(average(&[], 0..100), None);
        assert_eq!(
            average(&[(0, 0.0), (1, f64::NAN), (2, f64::INFINITY)], 0..100),
            None
        );
        assert_eq!(average(&[(5, 70.0)], 0..0), Some((70.0, None)));
        let (same, half_width) = average(&[(5, 70.0); 3], 0..10).unwrap();
        assert!(
            (same - 70.0).abs() < 1e-9 && half_width == Some(0.0),
            "{same}"
        );
        let (beside, _) = average(&[(500, 70.0), (510, 70.0)], 0..10).unwrap();
        assert!((beside - 70.0).abs() < 1e-9, "{beside}");
        let mut survey = SurveyedDisk::rotating().survey(1);
        for p in &mut survey.curve {
            (p.bytes_per_second, p.bytes, p.busy_ns, p.errors) = (0.0, 0, 0, 1);
        }
        survey.access.clear();
        (survey.span_bytes, survey.curve_ns) = (0, 0);
        let record = surface_record(&survey, &[]);
        assert_eq!((record.figures.rate, record.figures.seeks.len()), (None, 0));
        assert_eq!(
            (record.figures.curve_share, record.figures.curve_cpu_share),
            (0.0, 0.0)
        );
    }

    #[test]
    fn access_times_are_reported_by_pattern() {
        let survey = rotating(|disk| disk.accesses = 1000).survey(3);
        let seeks = surface_record(&survey, &[]).figures.seeks;
        let random = &seeks[&SeekPattern::Random];
        let near = &seeks[&SeekPattern::TrackToTrack];
        assert_eq!((random.n, near.n), (1000, 250));
        assert!(
            (random.mean.value / 14.9e6 - 1.0).abs() < 0.03,
            "{random:?}"
        );
        assert!((random.iops - 1e9 / random.mean.value).abs() < 1e-9);
        assert!(near.mean.value < random.mean.value / 2.0);
        assert!(random.min_ns <= random.p50_ns && random.p50_ns <= random.max_ns);
    }
}
