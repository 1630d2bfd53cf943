//! Metrics of a survey: transfer rate, access times, short strokes and the scan.

use super::family::{Labels, MetricFamily, gauge, target_labels, with};
use diskproof_model::record::Record;
use diskproof_model::surface::{Scan, SeekSummary, SurfaceRecord};

pub(super) fn of_surface(record: &Record) -> Vec<MetricFamily> {
    let Some(surface) = &record.surface else {
        return Vec::new();
    };
    let labels = with(
        &target_labels(record, surface.target),
        "op",
        surface.operation.as_str(),
    );
    let seeks = |figure: fn(&SeekSummary) -> f64| -> Vec<(Labels, f64)> {
        let seeks = surface.seeks.iter();
        seeks
            .map(|(seek, summary)| (with(&labels, "seek", seek.as_str()), figure(summary)))
            .collect()
    };
    let scan = |figure: fn(&Scan) -> f64| -> Vec<(Labels, f64)> {
        let scan = surface.scan.iter();
        scan.map(|scan| (labels.clone(), figure(scan))).collect()
    };
    let burst = surface.burst.iter();
    let burst = burst.map(|burst| (labels.clone(), burst.throughput.value));
    vec![
        gauge(
            "diskproof_curve_bytes_per_second",
            "Transfer rate by position: min, average and max.",
            rates(surface, &labels),
        ),
        gauge(
            "diskproof_burst_bytes_per_second",
            "Rate of repeated reads of the same bytes.",
            burst.collect(),
        ),
        gauge(
            "diskproof_access_time_seconds",
            "Mean access time by seek pattern.",
            seeks(|seek| seek.mean.value / 1e9),
        ),
        gauge(
            "diskproof_access_time_max_seconds",
            "Longest access time by seek pattern.",
            seeks(|seek| seek.max_ns as f64 / 1e9),
        ),
        gauge(
            "diskproof_short_stroke_iops",
            "Random reads per second within the first part of the disk.",
            short_strokes(surface, &labels),
        ),
        gauge(
            "diskproof_scan_slow_blocks",
            "Slow blocks.",
            scan(|scan| scan.slow_blocks as f64),
        ),
        gauge(
            "diskproof_scan_unreadable_bytes",
            "Unreadable bytes.",
            scan(|scan| scan.unreadable_bytes as f64),
        ),
    ]
}

fn rates(surface: &SurfaceRecord, labels: &Labels) -> Vec<(Labels, f64)> {
    let Some(rate) = &surface.rate else {
        return Vec::new();
    };
    let figures = [
        ("min", rate.min),
        ("average", rate.average.value),
        ("max", rate.max),
    ];
    figures
        .map(|(figure, value)| (with(labels, "figure", figure), value))
        .to_vec()
}

fn short_strokes(surface: &SurfaceRecord, labels: &Labels) -> Vec<(Labels, f64)> {
    let mut samples = Vec::new();
    for stroke in &surface.short_strokes {
        let labels = with(labels, "percent", &stroke.percent.to_string());
        samples.push((labels, stroke.iops.value));
    }
    samples
}
