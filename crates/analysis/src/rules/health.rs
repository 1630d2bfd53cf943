//! The nine rules on what disks report about themselves: one table, one row per finding. Each row
//! names its threshold and where it comes from. Knows the figures of `DiskHealth`, nothing of a
//! measurement.

use super::rule::*;
use diskproof_model::health::DiskHealth;

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "health-failing",
        check: Check::Health(failing),
        says: Meaning::Health,
        #[cfg(test)]
        examples: Examples::of(tests::failing_disk, tests::quiet_disks),
    },
    Rule {
        code: "self-test-failed",
        check: Check::Health(self_test_failed),
        says: Meaning::Health,
        #[cfg(test)]
        examples: Examples::of(
            || tests::faulty(tests::failed_self_test),
            || tests::faulty(tests::passed_self_test),
        ),
    },
    Rule {
        code: "sectors-pending",
        check: Check::Health(sectors_pending),
        says: Meaning::Health,
        #[cfg(test)]
        examples: Examples::of(tests::disk_with_pending_sectors, tests::quiet_disks),
    },
    Rule {
        code: "worn-out",
        check: Check::Health(worn_out),
        says: Meaning::Health,
        #[cfg(test)]
        examples: Examples::of(
            || tests::faulty(|disk| disk.wear_percent = Some(85)),
            || {
                tests::faulty(|disk| {
                    disk.wear_percent = Some(79);
                    disk.spare_percent = Some(11);
                })
            },
        ),
    },
    Rule {
        code: "media-errors",
        check: Check::Health(media_errors),
        says: Meaning::Health,
        #[cfg(test)]
        examples: Examples::of(
            || tests::faulty(|disk| disk.media_errors = Some(7)),
            tests::quiet_disks,
        ),
    },
    Rule {
        code: "sectors-reallocated",
        check: Check::Health(sectors_reallocated),
        says: Meaning::Health,
        #[cfg(test)]
        examples: Examples::of(
            || tests::faulty_rotating(|disk| disk.reallocated_sectors = Some(304)),
            || tests::faulty(|disk| disk.reallocated_sectors = Some(4)),
        ),
    },
    Rule {
        code: "link-errors",
        check: Check::Health(link_errors),
        says: Meaning::Health,
        #[cfg(test)]
        examples: Examples::of(
            || tests::faulty_rotating(|disk| disk.link_errors = Some(3_118_119)),
            || tests::faulty_rotating(|disk| disk.link_errors = Some(24)),
        ),
    },
    Rule {
        code: "too-hot",
        check: Check::Health(too_hot),
        says: Meaning::Doubtful,
        #[cfg(test)]
        examples: Examples::of(
            || tests::faulty(|disk| disk.temperature_celsius = Some(71)),
            || tests::faulty(|disk| disk.temperature_celsius = Some(64)),
        ),
    },
    Rule {
        code: "self-test-running",
        check: Check::Health(self_test_running),
        says: Meaning::OtherLoad {
            used: SharedResource::Disk,
        },
        #[cfg(test)]
        examples: Examples::of(
            || tests::faulty(tests::running_self_test),
            || tests::faulty(tests::passed_self_test),
        ),
    },
];

/// One sector is enough. After the first pending one, rotating disks were 16 times as likely to
/// fail within 60 days, and 21 times after the first that a background scan found; after the first
/// reallocated one 14 times (Pinheiro, Weber, Barroso: Failure Trends in a Large Disk Drive
/// Population, FAST '07). Backblaze investigates any count above zero (What SMART Stats Tell Us
/// About Hard Drives, 2016).
const SECTORS_MAX: u64 = 0;
/// One error is enough: hardly a disk of Backblaze's failed while it had none (Hard Drive SMART
/// Stats, 2014, attribute 187). For NVMe each is lost data (NVMe 1.4, 5.14.1.2, "Media and Data
/// Integrity Errors").
const MEDIA_ERRORS_MAX: u64 = 0;
/// The count never goes down, and every touch of a cable may add to it. Of 150 server disks whose
/// reports are public, a dozen had 1 to 24; those with a fault had hundreds to millions.
const LINK_ERRORS_MIN: u64 = 100;
/// Time to order another one: a disk that took four years to get here has one left.
const WEAR_PERCENT: u32 = 80;
/// The endurance that the vendor warrants is consumed (NVMe 1.4, 5.14.1.2, "Percentage Used"; JEDEC
/// JESD218): the disk need no longer keep data without power for the months that JESD218 demands.
const WORN_OUT_PERCENT: u32 = 100;
/// Load adds 5 to 20 °C to the temperature at rest, and the disk is asked before the load.
const MARGIN_CELSIUS: i32 = 5;
/// Where the disk reports no limit. Data sheets of rotating disks end at 60 °C (Seagate Exos, WD
/// Ultrastar, Toshiba MG), those of SATA and SAS flash at 70 °C (Intel D3-S4510, Samsung PM883,
/// Micron 5300).
const ROTATING_LIMIT_CELSIUS: i32 = 60;
const FLASH_LIMIT_CELSIUS: i32 = 70;

/// An observation at this place of the disk.
fn seen_at(
    place: &str,
    observed: impl Into<f64>,
    threshold: impl Into<f64>,
    unit: &str,
) -> Evidence {
    evidence_at(place, observed.into(), threshold.into(), unit)
}

fn counted_at(place: &str, observed: u64, threshold: u64) -> Evidence {
    evidence_at(place, observed as f64, threshold as f64, "1")
}

/// A count above the most that is no issue.
fn over(count: Option<u64>, most: u64) -> Option<u64> {
    count.filter(|count| *count > most)
}

fn is_flash(disk: &DiskHealth) -> bool {
    disk.rotation_rpm == Some(0)
}

fn failing(disk: &DiskHealth) -> Option<Diagnosis> {
    let failed = disk.passed == Some(false);
    if !failed && disk.alarms.is_empty() {
        return None;
    }
    let alarms = disk.alarms.join(", ");
    let predicate = match failed {
        true if alarms.is_empty() => "reports that it is failing".to_owned(),
        true => format!("reports that it is failing: {alarms}"),
        false => format!("raises an alarm: {alarms}"),
    };
    let place = if failed { "passed" } else { "alarms" };
    Some(Diagnosis::new(
        Severity::Failure,
        predicate,
        [seen_at(place, 0.0, 1.0, "1")],
    ))
}

fn self_test_failed(disk: &DiskHealth) -> Option<Diagnosis> {
    let test = disk.self_test.as_ref();
    let test = test.filter(|test| test.passed == Some(false))?;
    let hours = disk.power_on_hours.zip(test.hours);
    let age = hours.and_then(|(now, then)| now.checked_sub(then));
    let ago = age.map_or_else(String::new, |hours| format!(", {hours} power-on hours ago"));
    Some(Diagnosis::new(
        Severity::Failure,
        format!("failed its last self-test ({}{ago})", test.status),
        [seen_at("self_test/passed", 0.0, 1.0, "1")],
    ))
}

fn sectors_pending(disk: &DiskHealth) -> Option<Diagnosis> {
    let (mut parts, mut evidence) = (Vec::new(), Vec::new());
    let (pending, uncorrectable) = (disk.pending_sectors, disk.uncorrectable_sectors);
    for (place, count, what) in [
        ("pending_sectors", pending, "it currently cannot read"),
        (
            "uncorrectable_sectors",
            uncorrectable,
            "its own scan could not correct",
        ),
    ] {
        if let Some(count) = over(count, SECTORS_MAX) {
            parts.push(format!("{} that {what}", counted(count, "sector")));
            evidence.push(counted_at(place, count, SECTORS_MAX));
        }
    }
    // Flash rewrites a page that was hard to read; some firmware counts it here for a moment.
    (!evidence.is_empty()).then(|| {
        Diagnosis::new(
            failure_if(!is_flash(disk)),
            format!("has {}", parts.join(" and ")),
            evidence,
        )
    })
}

fn worn_out(disk: &DiskHealth) -> Option<Diagnosis> {
    let mut parts = Vec::new();
    let mut evidence = Vec::new();
    let mut severity = Severity::Warning;
    if let Some(wear) = disk.wear_percent.filter(|wear| *wear >= WEAR_PERCENT) {
        let is_used_up = wear >= WORN_OUT_PERCENT;
        let threshold = if is_used_up {
            WORN_OUT_PERCENT
        } else {
            WEAR_PERCENT
        };
        if is_used_up {
            severity = Severity::Failure;
        }
        parts.push(format!("has used {wear} % of its rated endurance"));
        evidence.push(seen_at("wear_percent", wear, threshold, "%"));
    }
    let spare = disk.spare_percent.zip(disk.spare_threshold_percent);
    if let Some((left, alarm)) = spare.filter(|(left, alarm)| left <= alarm) {
        severity = Severity::Failure;
        parts.push(format!(
            "has {left} % of its spare blocks left (alarm at {alarm} %)"
        ));
        evidence.push(seen_at("spare_percent", left, alarm, "%"));
    }
    (!evidence.is_empty()).then(|| Diagnosis::new(severity, parts.join(" and "), evidence))
}

fn media_errors(disk: &DiskHealth) -> Option<Diagnosis> {
    let count = over(disk.media_errors, MEDIA_ERRORS_MAX)?;
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "has reported {} that it could not correct",
            counted(count, "error")
        ),
        [counted_at("media_errors", count, MEDIA_ERRORS_MAX)],
    ))
}

/// Flash retires blocks all its life (30 to 80 % of disks within four years; Schroeder, Lagisetty,
/// Merchant: Flash Reliability in Production, FAST '16). `worn-out` examines its spare blocks.
fn sectors_reallocated(disk: &DiskHealth) -> Option<Diagnosis> {
    let count = over(disk.reallocated_sectors, SECTORS_MAX)?;
    (!is_flash(disk)).then(|| {
        Diagnosis::new(
            Severity::Warning,
            format!("has replaced {}", counted(count, "sector")),
            [counted_at("reallocated_sectors", count, SECTORS_MAX)],
        )
    })
}

fn link_errors(disk: &DiskHealth) -> Option<Diagnosis> {
    let count = disk.link_errors.filter(|count| *count >= LINK_ERRORS_MIN)?;
    Some(Diagnosis::new(
        Severity::Warning,
        format!("has counted {count} damaged transfers on its link"),
        [counted_at("link_errors", count, LINK_ERRORS_MIN)],
    ))
}

fn too_hot(disk: &DiskHealth) -> Option<Diagnosis> {
    if disk.temperature_alarm == Some(true) {
        let degrees = disk.temperature_celsius;
        let at = degrees.map_or_else(String::new, |degrees| format!(" at {degrees} °C"));
        return Some(Diagnosis::new(
            Severity::Warning,
            format!("reports that it is too hot{at}"),
            [seen_at("temperature_alarm", 1.0, 0.0, "1")],
        ));
    }
    let (degrees, limit) = (disk.temperature_celsius?, temperature_limit(disk)?);
    if degrees < limit - MARGIN_CELSIUS {
        return None;
    }
    let (severity, place) = if degrees >= limit {
        (Severity::Warning, "at or over")
    } else {
        (Severity::Note, "near")
    };
    Some(Diagnosis::new(
        severity,
        format!("has {degrees} °C, {place} its limit of {limit} °C"),
        [seen_at(
            "temperature_celsius",
            degrees,
            limit - MARGIN_CELSIUS,
            "°C",
        )],
    ))
}

/// The disk's own, or else the usual one. NVMe has no usual limit (70 to 85 °C) but raises its own
/// alarm.
fn temperature_limit(disk: &DiskHealth) -> Option<i32> {
    let usual = match disk.protocol.as_deref() {
        Some("NVMe") => None,
        _ if is_flash(disk) => Some(FLASH_LIMIT_CELSIUS),
        _ => Some(ROTATING_LIMIT_CELSIUS),
    };
    disk.temperature_limit_celsius.or(usual)
}

fn self_test_running(disk: &DiskHealth) -> Option<Diagnosis> {
    let remaining = disk.self_test.as_ref()?.remaining_percent?;
    Some(Diagnosis::new(
        Severity::Warning,
        format!("runs a self-test; {remaining} % are left"),
        [seen_at("self_test/remaining_percent", remaining, 0.0, "%")],
    ))
}

#[cfg(test)]
mod tests;
