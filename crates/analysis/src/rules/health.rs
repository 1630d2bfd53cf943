//! The nine rules on what disks report about themselves: one table, one row per finding. Each row
//! names its threshold and where it comes from. Knows the figures of `DiskHealth`, nothing of a
//! measurement.

use super::evidence::evidence_at;
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::{Evidence, Severity};
use diskproof_model::health::DiskHealth;
use diskproof_model::units::counted;

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "health-failing",
        title: "The disk reports that it is failing",
        meaning: "The disk reports that it is failing, or that a component that protects its data \
                  has failed.",
        taints: None,
        check: Check::Health(|health| {
            let remedy = "Save the data now, before any other load, and replace the disk. Do not \
                          rely on its figures.";
            diagnosis(health, failing, "It may lose data at any time.", remedy)
        }),
        #[cfg(test)]
        examples: Examples {
            fires: tests::failing_disk,
            silent: tests::quiet_disks,
        },
    },
    Rule {
        code: "self-test-failed",
        title: "The disk failed its self-test",
        meaning: "The disk's own self-test found an unreadable sector or a defective component.",
        taints: None,
        check: Check::Health(|health| {
            let remedy = "Save the data and replace the disk. If only one sector was unreadable, \
                          overwrite it; smartctl -t long must then pass.";
            diagnosis(
                health,
                self_test_failed,
                "Some of the data may be lost.",
                remedy,
            )
        }),
        #[cfg(test)]
        examples: Examples {
            fires: || tests::faulty(tests::failed_self_test),
            silent: || tests::faulty(tests::passed_self_test),
        },
    },
    Rule {
        code: "sectors-pending",
        title: "The disk has unreadable sectors",
        meaning: "The disk has sectors that it could not read. Their content is lost unless a \
                  later attempt succeeds, and each attempt stalls for seconds.",
        taints: None,
        check: Check::Health(|health| {
            let remedy = "Save the data, then run the disk's self-test (smartctl -t long). Replace \
                          the disk unless the count falls.";
            let consequence = "A query that reads them stalls for seconds or fails.";
            diagnosis(health, sectors_pending, consequence, remedy)
        }),
        #[cfg(test)]
        examples: Examples {
            fires: tests::disk_with_pending_sectors,
            silent: tests::quiet_disks,
        },
    },
    Rule {
        code: "worn-out",
        title: "The flash nears its rated endurance",
        meaning: "The flash has used most or all of its rated writes or spare blocks.",
        taints: None,
        check: Check::Health(|health| {
            let remedy = "Plan the replacement, and do it now if the endurance is used up. Find \
                          out what writes so much: WAL, temporary files, checkpoints.";
            let consequence =
                "A worn disk slows down, turns read-only or loses data without power.";
            diagnosis(health, worn_out, consequence, remedy)
        }),
        #[cfg(test)]
        examples: Examples {
            fires: || tests::faulty(|disk| disk.wear_percent = Some(85)),
            silent: || {
                tests::faulty(|disk| {
                    disk.wear_percent = Some(79);
                    disk.spare_percent = Some(11);
                })
            },
        },
    },
    Rule {
        code: "media-errors",
        title: "The disk has returned uncorrectable errors",
        meaning: "The disk has returned errors for data that its error correction could not \
                  recover.",
        taints: None,
        check: Check::Health(|health| {
            let remedy = "Verify the backup, then read all data (pg_checksums --check). Replace \
                          the disk if the count grows.";
            diagnosis(
                health,
                media_errors,
                "Pages of the database may be damaged.",
                remedy,
            )
        }),
        #[cfg(test)]
        examples: Examples {
            fires: || tests::faulty(|disk| disk.media_errors = Some(7)),
            silent: tests::quiet_disks,
        },
    },
    Rule {
        code: "sectors-reallocated",
        title: "The disk has reallocated sectors",
        meaning: "A rotating disk has replaced sectors with spare ones elsewhere. Its surface is \
                  wearing out, and sequential reads need seeks.",
        taints: None,
        check: Check::Health(|health| {
            let remedy = "Verify the backup. Note the count and compare it in a few days \
                          (diskproof info); replace the disk if it grows.";
            let consequence = "More sectors may follow, and sequential reads need seeks there.";
            diagnosis(health, sectors_reallocated, consequence, remedy)
        }),
        #[cfg(test)]
        examples: Examples {
            fires: || tests::faulty_rotating(|disk| disk.reallocated_sectors = Some(304)),
            silent: || tests::faulty(|disk| disk.reallocated_sectors = Some(4)),
        },
    },
    Rule {
        code: "link-errors",
        title: "The link damages transfers",
        meaning: "Many transfers between disk and host were damaged and repeated, which costs \
                  time. The usual cause is the cable or the backplane.",
        taints: None,
        check: Check::Health(|health| {
            let remedy = "Compare the count after some load (diskproof info). If it grows, reseat \
                          or replace the cable, or change the slot.";
            let consequence = "Each one is repeated, so no data is lost but requests take longer.";
            diagnosis(health, link_errors, consequence, remedy)
        }),
        #[cfg(test)]
        examples: Examples {
            fires: || tests::faulty_rotating(|disk| disk.link_errors = Some(3_118_119)),
            silent: || tests::faulty_rotating(|disk| disk.link_errors = Some(24)),
        },
    },
    Rule {
        code: "too-hot",
        title: "The disk is near its temperature limit",
        meaning: "The disk was near or above its temperature limit when the measurement began. A \
                  disk slows down there to cool.",
        taints: None,
        check: Check::Health(|health| {
            let remedy = "Improve the airflow (fans, dust, a heat sink) and measure again.";
            diagnosis(health, too_hot, "A hot disk slows down to cool.", remedy)
        }),
        #[cfg(test)]
        examples: Examples {
            fires: || tests::faulty(|disk| disk.temperature_celsius = Some(71)),
            silent: || tests::faulty(|disk| disk.temperature_celsius = Some(64)),
        },
    },
    Rule {
        code: "self-test-running",
        title: "A self-test ran during the measurement",
        meaning: "The disk was running a self-test when the measurement began. The self-test slows \
                  the measured operations.",
        taints: None,
        check: Check::Health(|health| {
            let remedy = "Measure again when the self-test has ended. smartctl -a shows its \
                          progress.";
            let consequence = "The self-test slows the measured operations.";
            diagnosis(health, self_test_running, consequence, remedy)
        }),
        #[cfg(test)]
        examples: Examples {
            fires: || tests::faulty(tests::running_self_test),
            silent: || tests::faulty(tests::passed_self_test),
        },
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

/// A disk and its place in the record.
#[derive(Clone, Copy)]
struct ReportedDisk<'a> {
    index: usize,
    health: &'a DiskHealth,
}

impl ReportedDisk<'_> {
    /// An observation at `/health/INDEX/PLACE`.
    fn evidence(
        self,
        place: &str,
        observed: impl Into<f64>,
        threshold: impl Into<f64>,
        unit: &str,
    ) -> Evidence {
        evidence_at(
            format!("/health/{}/{place}", self.index),
            observed.into(),
            threshold.into(),
            unit,
        )
    }

    fn count(self, place: &str, observed: u64, threshold: u64) -> Evidence {
        self.evidence(place, observed as f64, threshold as f64, "1")
    }
}

/// What one rule reports about one disk.
struct Issue {
    severity: Severity,
    /// What follows the disk's name: `has 8 pending sectors`.
    predicate: String,
    evidence: Vec<Evidence>,
}

/// One diagnosis for all disks that have the issue; `None` when none has.
fn diagnosis(
    health: &[DiskHealth],
    issue_of: fn(ReportedDisk<'_>) -> Option<Issue>,
    consequence: &str,
    remedy: &str,
) -> Option<Diagnosis> {
    let mut severity = None;
    let mut claims = Vec::new();
    let mut evidence = Vec::new();
    for (index, health) in health.iter().enumerate() {
        if let Some(issue) = issue_of(ReportedDisk { index, health }) {
            severity = severity.max(Some(issue.severity));
            claims.push(format!("{} {}", name(health), issue.predicate));
            evidence.extend(issue.evidence);
        }
    }
    Some(Diagnosis::new(
        severity?,
        format!("{}. {consequence}", claims.join("; ")),
        evidence,
        remedy,
    ))
}

/// `sda (Hitachi HDS721050DLE630)`: the label on the disk, for the person who pulls it out.
fn name(disk: &DiskHealth) -> String {
    let label = [&disk.model, &disk.serial].into_iter().flatten();
    let label: Vec<&str> = label.map(String::as_str).collect();
    if label.is_empty() {
        disk.disk.clone()
    } else {
        format!("{} ({})", disk.disk, label.join(", "))
    }
}

/// A count above the most that is no issue.
fn over(count: Option<u64>, most: u64) -> Option<u64> {
    count.filter(|count| *count > most)
}

fn is_flash(disk: &DiskHealth) -> bool {
    disk.rotation_rpm == Some(0)
}

fn failing(disk: ReportedDisk<'_>) -> Option<Issue> {
    let health = disk.health;
    let failed = health.passed == Some(false);
    if !failed && health.alarms.is_empty() {
        return None;
    }
    let alarms = health.alarms.join(", ");
    let predicate = match failed {
        true if alarms.is_empty() => "reports that it is failing".to_owned(),
        true => format!("reports that it is failing: {alarms}"),
        false => format!("raises an alarm: {alarms}"),
    };
    let place = if failed { "passed" } else { "alarms" };
    Some(Issue {
        severity: Severity::Failure,
        predicate,
        evidence: vec![disk.evidence(place, 0.0, 1.0, "1")],
    })
}

fn self_test_failed(disk: ReportedDisk<'_>) -> Option<Issue> {
    let test = disk
        .health
        .self_test
        .as_ref()
        .filter(|test| test.passed == Some(false))?;
    let hours = disk.health.power_on_hours.zip(test.hours);
    let age = hours.and_then(|(now, then)| now.checked_sub(then));
    let ago = age.map_or_else(String::new, |hours| format!(", {hours} power-on hours ago"));
    Some(Issue {
        severity: Severity::Failure,
        predicate: format!("failed its last self-test ({}{ago})", test.status),
        evidence: vec![disk.evidence("self_test/passed", 0.0, 1.0, "1")],
    })
}

fn sectors_pending(disk: ReportedDisk<'_>) -> Option<Issue> {
    let health = disk.health;
    let mut parts = Vec::new();
    let mut evidence = Vec::new();
    if let Some(count) = over(health.pending_sectors, SECTORS_MAX) {
        parts.push(format!(
            "{} that it currently cannot read",
            counted(count, "sector")
        ));
        evidence.push(disk.count("pending_sectors", count, SECTORS_MAX));
    }
    if let Some(count) = over(health.uncorrectable_sectors, SECTORS_MAX) {
        parts.push(format!(
            "{} that its own scan could not correct",
            counted(count, "sector")
        ));
        evidence.push(disk.count("uncorrectable_sectors", count, SECTORS_MAX));
    }
    // Flash rewrites a page that was hard to read; some firmware counts it here for a moment.
    let severity = if is_flash(health) {
        Severity::Warning
    } else {
        Severity::Failure
    };
    (!evidence.is_empty()).then(|| Issue {
        severity,
        predicate: format!("has {}", parts.join(" and ")),
        evidence,
    })
}

fn worn_out(disk: ReportedDisk<'_>) -> Option<Issue> {
    let health = disk.health;
    let mut parts = Vec::new();
    let mut evidence = Vec::new();
    let mut severity = Severity::Warning;
    if let Some(wear) = health.wear_percent.filter(|wear| *wear >= WEAR_PERCENT) {
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
        evidence.push(disk.evidence("wear_percent", wear, threshold, "%"));
    }
    let spare = health.spare_percent.zip(health.spare_threshold_percent);
    if let Some((left, alarm)) = spare.filter(|(left, alarm)| left <= alarm) {
        severity = Severity::Failure;
        parts.push(format!(
            "has {left} % of its spare blocks left (alarm at {alarm} %)"
        ));
        evidence.push(disk.evidence("spare_percent", left, alarm, "%"));
    }
    (!evidence.is_empty()).then(|| Issue {
        severity,
        predicate: parts.join(" and "),
        evidence,
    })
}

fn media_errors(disk: ReportedDisk<'_>) -> Option<Issue> {
    let count = over(disk.health.media_errors, MEDIA_ERRORS_MAX)?;
    Some(Issue {
        severity: Severity::Warning,
        predicate: format!(
            "has reported {} that it could not correct",
            counted(count, "error")
        ),
        evidence: vec![disk.count("media_errors", count, MEDIA_ERRORS_MAX)],
    })
}

/// Flash retires blocks all its life (30 to 80 % of disks within four years; Schroeder, Lagisetty,
/// Merchant: Flash Reliability in Production, FAST '16). `worn-out` examines its spare blocks.
fn sectors_reallocated(disk: ReportedDisk<'_>) -> Option<Issue> {
    let count = over(disk.health.reallocated_sectors, SECTORS_MAX)?;
    (!is_flash(disk.health)).then(|| Issue {
        severity: Severity::Warning,
        predicate: format!("has replaced {}", counted(count, "sector")),
        evidence: vec![disk.count("reallocated_sectors", count, SECTORS_MAX)],
    })
}

fn link_errors(disk: ReportedDisk<'_>) -> Option<Issue> {
    let count = disk
        .health
        .link_errors
        .filter(|count| *count >= LINK_ERRORS_MIN)?;
    Some(Issue {
        severity: Severity::Warning,
        predicate: format!("has counted {count} damaged transfers on its link"),
        evidence: vec![disk.count("link_errors", count, LINK_ERRORS_MIN)],
    })
}

fn too_hot(disk: ReportedDisk<'_>) -> Option<Issue> {
    let health = disk.health;
    if health.temperature_alarm == Some(true) {
        let degrees = health.temperature_celsius;
        let at = degrees.map_or_else(String::new, |degrees| format!(" at {degrees} °C"));
        return Some(Issue {
            severity: Severity::Warning,
            predicate: format!("reports that it is too hot{at}"),
            evidence: vec![disk.evidence("temperature_alarm", 1.0, 0.0, "1")],
        });
    }
    let (degrees, limit) = (health.temperature_celsius?, temperature_limit(health)?);
    if degrees < limit - MARGIN_CELSIUS {
        return None;
    }
    let (severity, place) = if degrees >= limit {
        (Severity::Warning, "at or over")
    } else {
        (Severity::Note, "near")
    };
    Some(Issue {
        severity,
        predicate: format!("has {degrees} °C, {place} its limit of {limit} °C"),
        evidence: vec![disk.evidence("temperature_celsius", degrees, limit - MARGIN_CELSIUS, "°C")],
    })
}

/// The disk's own, or else the usual one. NVMe has no usual limit (70 to 85 °C) but raises its own
/// alarm.
fn temperature_limit(health: &DiskHealth) -> Option<i32> {
    let usual = match health.protocol.as_deref() {
        Some("NVMe") => None,
        _ if is_flash(health) => Some(FLASH_LIMIT_CELSIUS),
        _ => Some(ROTATING_LIMIT_CELSIUS),
    };
    health.temperature_limit_celsius.or(usual)
}

fn self_test_running(disk: ReportedDisk<'_>) -> Option<Issue> {
    let remaining = disk.health.self_test.as_ref()?.remaining_percent?;
    Some(Issue {
        severity: Severity::Warning,
        predicate: format!("runs a self-test; {remaining} % are left"),
        evidence: vec![disk.evidence("self_test/remaining_percent", remaining, 0.0, "%")],
    })
}

#[cfg(test)]
mod tests;
