//! The health that a disk reports, as labels and values and in one line. Findings judge it.

use super::target::LabeledValue;
use crate::text::{joined, list};
use diskproof_model::health::DiskHealth;
use diskproof_model::units::format_bytes;

/// Hours of an average year.
const YEAR_HOURS: f64 = 8766.0;

/// Every reported health value of one disk.
pub(crate) fn health_facts(disk: &DiskHealth) -> Vec<LabeledValue> {
    let count = |count: Option<u64>| count.map(|count| count.to_string());
    let rotation = disk.rotation_rpm.map(|rpm| match rpm {
        0 => "none".to_owned(),
        rpm => format!("{rpm} rpm"),
    });
    vec![
        ("not available", disk.unavailable.clone()),
        ("model", disk.model.clone()),
        ("serial", disk.serial.clone()),
        ("firmware", disk.firmware.clone()),
        ("protocol", disk.protocol.clone()),
        ("verdict", verdict(disk).map(str::to_owned)),
        ("alarms", joined(disk.alarms.clone(), "; ")),
        ("temperature", temperature(disk)),
        (
            "endurance used",
            disk.wear_percent.map(|percent| format!("{percent} %")),
        ),
        ("spare blocks left", spare(disk)),
        ("reallocated sectors", count(disk.reallocated_sectors)),
        ("pending sectors", count(disk.pending_sectors)),
        ("uncorrectable sectors", count(disk.uncorrectable_sectors)),
        ("media errors", count(disk.media_errors)),
        ("link errors", count(disk.link_errors)),
        ("power-on time", disk.power_on_hours.map(power_on)),
        ("unsafe shutdowns", count(disk.unsafe_shutdowns)),
        ("written in total", disk.written_bytes.map(format_bytes)),
        ("last self-test", self_test(disk)),
        ("rotation", rotation),
        ("source", disk.source.clone()),
    ]
}

/// The health of one disk in a line.
pub(crate) fn health_text(disk: &DiskHealth) -> String {
    let name = &disk.disk;
    if let Some(why) = &disk.unavailable {
        return format!("{name} unknown: {why}");
    }
    let counted = |count: Option<u64>, what: &str| {
        let count = count.filter(|count| *count > 0)?;
        Some(format!("{count} {what}"))
    };
    let written = disk.written_bytes.map(format_bytes);
    let facts = [
        Some(verdict(disk).map_or(name.clone(), |verdict| format!("{name} {verdict}"))),
        temperature(disk),
        disk.wear_percent
            .map(|percent| format!("{percent} % of endurance used")),
        counted(disk.reallocated_sectors, "reallocated sectors"),
        counted(disk.pending_sectors, "pending sectors"),
        counted(disk.uncorrectable_sectors, "uncorrectable sectors"),
        counted(disk.media_errors, "media errors"),
        counted(disk.link_errors, "link errors"),
        disk.power_on_hours.map(power_on),
        written.map(|bytes| format!("{bytes} written")),
    ];
    list(facts.into_iter().flatten())
}

fn verdict(disk: &DiskHealth) -> Option<&'static str> {
    Some(if disk.passed? { "passed" } else { "FAILING" })
}

fn temperature(disk: &DiskHealth) -> Option<String> {
    let degrees = disk.temperature_celsius?;
    Some(match disk.temperature_limit_celsius {
        Some(limit) => format!("{degrees} °C (limit {limit} °C)"),
        None => format!("{degrees} °C"),
    })
}

fn spare(disk: &DiskHealth) -> Option<String> {
    let left = disk.spare_percent?;
    Some(match disk.spare_threshold_percent {
        Some(threshold) => format!("{left} % (alarm at {threshold} %)"),
        None => format!("{left} %"),
    })
}

fn self_test(disk: &DiskHealth) -> Option<String> {
    let test = disk.self_test.as_ref()?;
    let then = test.hours.map(|hours| format!(", at {hours} h"));
    Some(format!("{}{}", test.status, then.unwrap_or_default()))
}

/// `65592 h (7.5 years)`
fn power_on(hours: u64) -> String {
    match hours as f64 / YEAR_HOURS {
        years if years < 1.0 => format!("{hours} h"),
        years => format!("{hours} h ({years:.1} years)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> DiskHealth {
        DiskHealth {
            disk: "nvme0n1".to_owned(),
            passed: Some(true),
            temperature_celsius: Some(38),
            temperature_limit_celsius: Some(70),
            wear_percent: Some(3),
            power_on_hours: Some(65_592),
            written_bytes: Some(3 << 40),
            media_errors: Some(0),
            ..DiskHealth::default()
        }
    }

    #[test]
    fn line_lists_known_values_without_zeros() {
        let text = |disk: &DiskHealth| health_text(disk).replace('\u{a0}', " ");
        assert_eq!(
            text(&disk()),
            "nvme0n1 passed, 38 °C (limit 70 °C), 3 % of endurance used, 65592 h (7.5 years), 3 \
             TiB written"
        );
        let failing = DiskHealth {
            passed: Some(false),
            pending_sectors: Some(8),
            power_on_hours: Some(40),
            ..DiskHealth::default()
        };
        assert_eq!(
            text(&DiskHealth {
                disk: "sda".to_owned(),
                ..failing
            }),
            "sda FAILING, 8 pending sectors, 40 h"
        );
        assert_eq!(
            text(&DiskHealth::unknown("vda", "a virtual disk")),
            "vda unknown: a virtual disk"
        );
    }

    #[test]
    fn facts_list_reported_zeros() {
        let facts = health_facts(&disk());
        assert!(
            facts.contains(&("media errors", Some("0".to_owned())))
                && facts.contains(&("link errors", None))
        );
    }
}
