//! Derived figures of a survey: rates, access times by pattern, what short strokes gain.

use diskproof_model::measurement::OpKind;
use diskproof_model::record::{Estimate, MeasurementRecord};
use diskproof_model::surface::{
    AccessPoint, CurvePoint, RateSummary, SeekPattern, SeekSummary, ShortStroke, SurfaceMeasurement, SurfaceRecord,
};
use statrs::distribution::{ContinuousCDF as _, StudentsT};
use std::collections::BTreeMap;

/// Name of the workload that measures random reads in the first `percent` of a span.
pub fn short_stroke_name(percent: f64) -> String {
    format!("{SHORT_STROKE}{percent}")
}

const SHORT_STROKE: &str = "short-stroke-";

/// The survey with its derived figures.
pub fn surface_record(s: &SurfaceMeasurement, measurements: &[MeasurementRecord]) -> SurfaceRecord {
    let curve_bytes = s.curve.iter().map(|p| p.bytes).sum();
    let cpu_ns = s.curve_cpu.user_ns + s.curve_cpu.system_ns;
    SurfaceRecord {
        target: s.target,
        operation: s.survey.operation,
        span_start_bytes: s.span_start_bytes,
        span_bytes: s.span_bytes,
        curve_bytes,
        curve_share: share(curve_bytes as f64, s.span_bytes as f64).min(1.0),
        start_ns: s.start_ns,
        wall_ns: s.wall_ns,
        curve_ns: s.curve_ns,
        curve_cpu_share: share(cpu_ns as f64, s.curve_ns as f64),
        engine: s.engine,
        cache: s.cache.used,
        rate: rate_summary(&s.curve),
        burst: s.burst.clone(),
        seeks: seek_summaries(&s.access),
        access_errors: s.access_errors.clone(),
        short_strokes: short_strokes(s, measurements),
        scan: s.scan.clone(),
        asked: s.asked,
        device: s.device.clone(),
        reproduce: String::new(),
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The average is over position: the time that the whole span would take is the mean of the points' times per byte.
fn rate_summary(curve: &[CurvePoint]) -> Option<RateSummary> {
    let rates: Vec<f64> = curve.iter().map(|p| p.bytes_per_second).filter(|rate| *rate > 0.0).collect();
    let (min, max) = rates.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
    let seconds_per_byte: Vec<f64> = rates.iter().map(|rate| 1.0 / rate).collect();
    let mean = mean_estimate(&seconds_per_byte, "s/B")?;
    let value = 1.0 / mean.value;
    // To first order the relative error of an inverse is that of the value.
    let half_width_95 = mean.relative_half_width().map(|relative| relative * value);
    Some(RateSummary { min, max, average: Estimate { n: mean.n, value, half_width_95, unit: "B/s".to_owned() } })
}

fn seek_summaries(access: &[AccessPoint]) -> BTreeMap<SeekPattern, SeekSummary> {
    let mut by_pattern: BTreeMap<SeekPattern, Vec<&AccessPoint>> = BTreeMap::new();
    for point in access {
        by_pattern.entry(point.seek).or_default().push(point);
    }
    by_pattern.into_iter().filter_map(|(seek, points)| Some((seek, seek_summary(&points)?))).collect()
}

fn seek_summary(points: &[&AccessPoint]) -> Option<SeekSummary> {
    let mut latencies: Vec<u64> = points.iter().map(|p| p.latency_ns).collect();
    latencies.sort_unstable();
    let mean = mean_estimate(&latencies.iter().map(|ns| *ns as f64).collect::<Vec<_>>(), "ns")?;
    Some(SeekSummary {
        n: latencies.len() as u64,
        min_ns: latencies[0],
        p50_ns: latencies[latencies.len() / 2],
        max_ns: latencies[latencies.len() - 1],
        distance_mean_bytes: points.iter().map(|p| p.distance_bytes as f64).sum::<f64>() / points.len() as f64,
        iops: share(1e9, mean.value),
        mean,
    })
}

/// Mean of independent values with Student's t interval; `None` of nothing.
fn mean_estimate(values: &[f64], unit: &str) -> Option<Estimate> {
    let n = values.len();
    let value = (n > 0).then(|| values.iter().sum::<f64>() / n as f64)?;
    let variance = values.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (n.max(2) - 1) as f64;
    let t = StudentsT::new(0.0, 1.0, (n.max(2) - 1) as f64).ok().map(|t| t.inverse_cdf(0.975));
    let half_width_95 = t.filter(|_| n > 1).map(|t| t * (variance / n as f64).sqrt());
    Some(Estimate { n: n as u64, value, half_width_95, unit: unit.to_owned() })
}

/// From the measurements that carry the name of a short stroke, the longest span first.
fn short_strokes(s: &SurfaceMeasurement, measurements: &[MeasurementRecord]) -> Vec<ShortStroke> {
    let mut strokes: Vec<ShortStroke> = measurements.iter().enumerate().filter_map(|(index, m)| short_stroke(s, index, m)).collect();
    strokes.sort_by(|a, b| b.percent.total_cmp(&a.percent));
    let whole = strokes.first().map_or(0.0, |longest| longest.iops.value);
    strokes.iter_mut().for_each(|stroke| stroke.gain = share(stroke.iops.value, whole));
    strokes
}

fn short_stroke(s: &SurfaceMeasurement, measurement: usize, m: &MeasurementRecord) -> Option<ShortStroke> {
    let percent = m.workload.name.strip_prefix(SHORT_STROKE)?.parse().ok()?;
    let read = m.ops.get(&OpKind::Read)?;
    let end = m.workload.span_start_bytes + m.workload.span_bytes;
    let within: Vec<CurvePoint> = s.curve.iter().filter(|p| p.offset_bytes < end).cloned().collect();
    Some(ShortStroke {
        percent,
        span_bytes: m.workload.span_bytes,
        measurement,
        iops: read.iops.clone(),
        gain: 1.0,
        latency_mean_ns: read.latency.mean,
        latency_max_ns: read.latency.max,
        throughput: rate_summary(&within).map(|rate| rate.average.value),
    })
}
