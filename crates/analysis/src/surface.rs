//! Derives the figures of a survey: rates, access times by pattern, the gain of short strokes. The
//! folder computes the average of the curve, and judges second readings.

mod average;
mod second_reading;

pub use second_reading::points_to_confirm;
pub(crate) use second_reading::{SecondReading, second_reading};

use crate::estimate::student;
use average::rate_summary;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Estimate;
use diskproof_model::row::Row;
use diskproof_model::surface::{
    AccessPoint, SeekPattern, SeekSummary, ShortStroke, SurfaceFigures, SurfaceMeasurement,
    SurfaceRecord,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// The name of the workload that measures random reads in the first `percent` of a span. Records
/// have this name, so a change of it hides the short strokes of saved runs.
pub fn short_stroke_name(percent: f64) -> String {
    format!("{SHORT_STROKE}{percent}")
}

/// The percentage of a span that a workload of this name measures; `None` of any other workload.
pub fn short_stroke_percent(workload: &str) -> Option<f64> {
    let percent: f64 = workload.strip_prefix(SHORT_STROKE)?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent)
}

/// True if a workload belongs to the survey as a short stroke.
pub(crate) fn is_short_stroke(workload: &str) -> bool {
    workload.starts_with(SHORT_STROKE)
}

/// The prefix of their names; the percentage follows.
const SHORT_STROKE: &str = "short-stroke-";

/// The survey with its derived figures. `measurements` contain its short strokes.
pub fn surface_record(survey: &SurfaceMeasurement, measurements: &[Row]) -> SurfaceRecord {
    let curve_bytes = survey.curve.iter().map(|point| point.bytes).sum();
    let cpu_ns = survey.curve_cpu.user_ns + survey.curve_cpu.system_ns;
    let figures = SurfaceFigures {
        curve_bytes,
        curve_share: share(curve_bytes as f64, survey.span_bytes as f64).min(1.0),
        curve_cpu_share: share(cpu_ns as f64, survey.curve_ns as f64),
        rate: rate_summary(&survey.curve, span(survey)),
        seeks: seek_summaries(&survey.access),
        short_strokes: short_strokes(survey, measurements),
        starved_share: share(survey.starved_ns as f64, survey.wall_ns as f64),
        reproduce: String::new(),
    };
    SurfaceRecord {
        data: survey.clone(),
        figures,
    }
}

/// The surveyed bytes of the target.
fn span(survey: &SurfaceMeasurement) -> Range<u64> {
    survey.span_start_bytes..survey.span_start_bytes.saturating_add(survey.span_bytes)
}

/// The part as a share of the whole; 0 of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
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

/// The figures of accesses of one pattern; `None` without any. The median of an even number is the
/// upper of the two in the middle.
fn seek_summary(points: &[&AccessPoint]) -> Option<SeekSummary> {
    let mut latencies: Vec<u64> = points.iter().map(|point| point.latency_ns).collect();
    latencies.sort_unstable();
    let values: Vec<f64> = latencies.iter().map(|ns| *ns as f64).collect();
    let mean = mean_estimate(&values)?;
    let distances: f64 = points.iter().map(|point| point.distance_bytes as f64).sum();
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
        let squares: f64 = values.iter().map(|other| (other - value).powi(2)).sum();
        let variance = squares / (n - 1) as f64;
        Some(student::multiple_95((n - 1) as f64) * (variance / n as f64).sqrt())
    } else {
        None
    };
    Some(Estimate::new(n as u64, value, half_width_95, "ns"))
}

/// The short strokes among these measurements, the longest span first.
fn short_strokes(survey: &SurfaceMeasurement, measurements: &[Row]) -> Vec<ShortStroke> {
    let mut strokes = Vec::new();
    for (index, row) in measurements.iter().enumerate() {
        strokes.extend(short_stroke(survey, index, row));
    }
    strokes.sort_by(|one, other| other.percent.total_cmp(&one.percent));
    let whole = match strokes.first() {
        Some(longest) => longest.iops.value,
        None => return strokes,
    };
    for stroke in &mut strokes {
        stroke.gain = share(stroke.iops.value, whole);
    }
    strokes
}

/// The figures of a row that is a short stroke of this survey; `None` of any other. `index` is that
/// of the row in the record.
fn short_stroke(survey: &SurfaceMeasurement, index: usize, row: &Row) -> Option<ShortStroke> {
    let percent = short_stroke_percent(&row.data.workload.name)?;
    let read = row.op(OpKind::Read)?;
    if row.data.target != survey.target {
        return None;
    }
    let start_bytes = row.data.span_start_bytes;
    let stroke = start_bytes..start_bytes.saturating_add(row.data.span_bytes);
    let mut within = survey.curve.clone();
    within.retain(|point| stroke.contains(&point.offset_bytes));
    Some(ShortStroke {
        percent,
        span_bytes: row.data.span_bytes,
        measurement: index,
        iops: read.figures.iops.clone(),
        gain: 1.0,
        latency_mean_ns: read.figures.latency.mean,
        latency_max_ns: read.figures.latency.max,
        throughput: rate_summary(&within, stroke).map(|rate| rate.average.value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{SurveyedDisk, rotating};
    use crate::fixture::test_rng::TestRng;
    use diskproof_model::surface::CurvePoint;

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
