//! The attributes of ATA disks, as smartctl tells them. Their numbers and units differ from vendor
//! to vendor: they are recognised by the names that smartctl's database of disks gives them. Does
//! not know other protocols.

use super::document::{Report, ended, running, telling};
use diskproof_model::health::{DiskHealth, SelfTest};
use diskproof_model::units::SECTOR_BYTES;

/// A disk that was this long under power has written more than this; less means that its unit is
/// not what its name says (seen on rebranded disks whose `Total_LBAs_Written` counts GiB).
const SETTLED_HOURS: u64 = 500;
const SETTLED_BYTES: u64 = 1 << 30;
/// Normalized values go down from 100; vendors that begin elsewhere (200, 253) do not mean percent.
const FULL: u64 = 100;

/// One attribute of the table.
struct Attribute<'a> {
    id: u64,
    name: &'a str,
    /// Normalized: 100 or so when new, the alarm at the threshold.
    value: u64,
    threshold: u64,
    /// The count that it holds.
    raw: u64,
    /// Whether it is at or under its threshold now.
    fails: bool,
    /// Whether the vendor takes that for the sign of a near end, and not of age.
    is_grave: bool,
}

/// Adds what the attributes and the self-test log say.
pub(super) fn complete(health: DiskHealth, report: Report<'_>) -> DiskHealth {
    let table = report.list("/ata_smart_attributes/table");
    let table: Vec<Attribute<'_>> = table.filter_map(read_attribute).collect();
    let count = |ids: &[u64], names: &[&str]| {
        table
            .iter()
            .find(|a| ids.contains(&a.id) && names.iter().any(|name| a.name.contains(name)))
            .map(|attribute| attribute.raw)
    };
    // Spare blocks are reported for flash; of rotating disks newer smartctl gives the normalized
    // count of reallocations that name.
    let spare = table
        .iter()
        .find(|a| a.name.starts_with("Available_Reservd_Space") && a.value <= FULL)
        .filter(|_| is_flash(&health));
    let is_hot = |a: &&Attribute<'_>| a.fails && a.name.contains("Temperature");
    DiskHealth {
        temperature_alarm: (!table.is_empty()).then(|| table.iter().any(|a| is_hot(&a))),
        alarms: table
            .iter()
            .filter(|a| a.fails && a.is_grave && !is_hot(a))
            .map(alarm)
            .collect(),
        wear_percent: wear(&table, report).filter(|_| is_flash(&health)),
        spare_percent: spare.and_then(|a| a.value.try_into().ok()),
        spare_threshold_percent: spare
            .filter(|a| a.threshold > 0)
            .and_then(|a| a.threshold.try_into().ok()),
        reallocated_sectors: count(&[5], &["Reallocated_Sector", "Retired_Block"]),
        pending_sectors: count(&[197], &["Pending_Sector"]),
        uncorrectable_sectors: count(&[198], &["Offline_Uncorrectable"]),
        media_errors: count(&[187], &["Reported_Uncorrect", "Uncorrectable_Error"]),
        link_errors: count(&[199, 218], &["CRC_Error"]),
        unsafe_shutdowns: count(
            &[174, 192, 235],
            &["Unsafe_Shutdown", "Unexpect_Power_Loss", "POR_Recovery"],
        ),
        written_bytes: written_bytes(&table, report, health.power_on_hours),
        self_test: self_test(report, health.power_on_hours),
        ..health
    }
}

fn is_flash(health: &DiskHealth) -> bool {
    health.rotation_rpm == Some(0)
}

fn read_attribute(entry: Report<'_>) -> Option<Attribute<'_>> {
    // The text holds what the raw bytes mean: `2111 (12437 0)` packs three numbers into one.
    let text = entry.text("/raw/string").unwrap_or_default();
    let digits = &text[..text.bytes().take_while(u8::is_ascii_digit).count()];
    Some(Attribute {
        id: entry.count("/id")?,
        name: entry.text("/name").unwrap_or_default(),
        value: entry.count("/value")?,
        threshold: entry.count("/thresh").unwrap_or_default(),
        raw: digits.parse().ok().or_else(|| entry.count("/raw/value"))?,
        fails: entry.text("/when_failed") == Some("now"),
        is_grave: entry.flag("/flags/prefailure") == Some(true),
    })
}

fn alarm(attribute: &Attribute<'_>) -> String {
    format!(
        "{} is at {}, its threshold at {}",
        attribute.name, attribute.value, attribute.threshold
    )
}

/// The greatest wear that any indicator tells. Most count the normalized value down from 100; two
/// write what is left into the raw value and keep the normalized one at 100.
fn wear(table: &[Attribute<'_>], report: Report<'_>) -> Option<u32> {
    const LEFT: [&str; 6] = [
        "Media_Wearout_Indicator",
        "Wear_Leveling_Count",
        "SSD_Life_Left",
        "Percent_Life",
        "Remaining_Lifetime",
        "Lifetime_Remain",
    ];
    const LEFT_RAW: [&str; 2] = ["SSD_Life_Left", "Remaining_Lifetime"];
    let worn = |a: &Attribute<'_>| {
        let named = |names: &[&str]| names.iter().any(|name| a.name.starts_with(name));
        let has_raw = named(&LEFT_RAW) && (1..=FULL).contains(&a.raw);
        let left = a.value.min(if has_raw { a.raw } else { FULL });
        (named(&LEFT) && a.value <= FULL).then(|| FULL - left)
    };
    let told = report.percent("/endurance_used/current_percent");
    table
        .iter()
        .filter_map(worn)
        .filter_map(|worn| worn.try_into().ok())
        .chain(told)
        .max()
}

/// By units that the database knows: a disk that is not in it may count in any. Names with a unit
/// come first.
fn written_bytes(table: &[Attribute<'_>], report: Report<'_>, hours: Option<u64>) -> Option<u64> {
    if report.flag("/in_smartctl_database") != Some(true) {
        return None;
    }
    let units = [
        ("Host_Writes_32MiB", 32 << 20),
        ("Host_Writes_MiB", 1 << 20),
        ("Host_Writes_GiB", 1 << 30),
        ("Lifetime_Writes_GiB", 1 << 30),
        (
            "Total_LBAs_Written",
            report.count("/logical_block_size").unwrap_or(SECTOR_BYTES),
        ),
    ];
    let (bytes_each, attribute) = units
        .iter()
        .find_map(|(name, bytes)| Some((bytes, table.iter().find(|a| a.name == *name)?)))?;
    let bytes = attribute.raw.checked_mul(*bytes_each)?;
    (bytes >= SETTLED_BYTES || hours.is_none_or(|hours| hours < SETTLED_HOURS)).then_some(bytes)
}

/// The log of self-tests, newest first. A test that runs now stands only in the status, whose upper
/// half is then 15 (ACS-3, table 66).
fn self_test(report: Report<'_>, power_on_hours: Option<u64>) -> Option<SelfTest> {
    let status = report.at("/ata_smart_data/self_test/status");
    let now = status.filter(|status| status.count("/value").is_some_and(|value| value >> 4 == 15));
    let now = now.map(|now| running(now.text("/string"), now.percent("/remaining_percent")));
    let logged = report.list("/ata_smart_self_test_log/standard/table");
    let logged = logged.map(|entry| {
        let (kind, status) = (entry.text("/type/string"), entry.text("/status/string"));
        let hours = entry.hours("/lifetime_hours");
        let hours = hours.map(|hours| unwrapped(hours, power_on_hours));
        ended(kind, status, entry.flag("/status/passed"), hours)
    });
    telling(now, logged)
}

/// The log has 16 bits for hours, which are full after seven and a half years; the disk's own count
/// tells which round it is.
fn unwrapped(logged: u64, now: Option<u64>) -> u64 {
    const ROUND: u64 = 1 << 16;
    match now {
        Some(now) if logged < ROUND && now >= logged => now - (now - logged) % ROUND,
        _ => logged,
    }
}
