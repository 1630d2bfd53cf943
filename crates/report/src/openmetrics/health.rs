//! The disks' health as metrics.

use super::family::{Labels, MetricFamily, gauge};
use diskproof_model::health::DiskHealth;
use diskproof_model::record::Record;

/// Name, help, and the figure of a disk.
type HealthMetric = (&'static str, &'static str, fn(&DiskHealth) -> Option<f64>);

/// The disks' own health values. A value that a disk does not report has no series, because a zero
/// would be wrong.
const HEALTH: [HealthMetric; 16] = [
    (
        "diskproof_health_known",
        "1 if the disk reported its health, 0 if it did not.",
        |d| flag(Some(d.source.is_some())),
    ),
    (
        "diskproof_health_passed",
        "The disk's own verdict: 1 healthy, 0 failing.",
        |d| flag(d.passed),
    ),
    (
        "diskproof_health_alarms",
        "Alarms raised by the disk.",
        |d| d.source.as_ref().map(|_| d.alarms.len() as f64),
    ),
    (
        "diskproof_health_temperature_celsius",
        "Temperature of the disk.",
        |d| d.temperature_celsius.map(f64::from),
    ),
    (
        "diskproof_health_temperature_limit_celsius",
        "Temperature at which the disk raises an alarm or slows down.",
        |d| d.temperature_limit_celsius.map(f64::from),
    ),
    (
        "diskproof_health_endurance_used_ratio",
        "Share of the rated endurance used.",
        |d| share(d.wear_percent),
    ),
    (
        "diskproof_health_spare_ratio",
        "Share of spare blocks left.",
        |d| share(d.spare_percent),
    ),
    (
        "diskproof_health_spare_threshold_ratio",
        "Share of spare blocks at which the disk raises an alarm.",
        |d| share(d.spare_threshold_percent),
    ),
    (
        "diskproof_health_power_on_seconds",
        "Power-on time over the disk's life.",
        |d| count(d.power_on_hours).map(|hours| hours * 3600.0),
    ),
    (
        "diskproof_health_written_bytes",
        "Bytes written over the disk's life.",
        |d| count(d.written_bytes),
    ),
    (
        "diskproof_health_reallocated_sectors",
        "Reallocated sectors.",
        |d| count(d.reallocated_sectors),
    ),
    (
        "diskproof_health_pending_sectors",
        "Sectors pending reallocation.",
        |d| count(d.pending_sectors),
    ),
    (
        "diskproof_health_uncorrectable_sectors",
        "Uncorrectable sectors.",
        |d| count(d.uncorrectable_sectors),
    ),
    (
        "diskproof_health_media_errors",
        "Uncorrected errors of the medium.",
        |d| count(d.media_errors),
    ),
    ("diskproof_health_link_errors", "Errors of the link.", |d| {
        count(d.link_errors)
    }),
    (
        "diskproof_health_unsafe_shutdowns",
        "Unsafe shutdowns.",
        |d| count(d.unsafe_shutdowns),
    ),
];

fn flag(flag: Option<bool>) -> Option<f64> {
    flag.map(|flag| f64::from(u8::from(flag)))
}

fn share(percent: Option<u32>) -> Option<f64> {
    percent.map(|percent| f64::from(percent) / 100.0)
}

fn count(count: Option<u64>) -> Option<f64> {
    count.map(|count| count as f64)
}

pub(super) fn of_health(record: &Record) -> Vec<MetricFamily> {
    let labels = |disk: &DiskHealth| -> Labels {
        let known = [
            ("disk", Some(&disk.disk)),
            ("serial", disk.serial.as_ref()),
            ("model", disk.model.as_ref()),
        ];
        known
            .into_iter()
            .map(|(name, value)| (name, value.cloned().unwrap_or_default()))
            .collect()
    };
    let family = |(name, help, figure): HealthMetric| {
        gauge(
            name,
            help,
            record
                .health
                .iter()
                .filter_map(|disk| Some((labels(disk), figure(disk)?)))
                .collect(),
        )
    };
    HEALTH.map(family).into()
}
