//! What the disks of each protocol tell, as smartctl reports it: the attributes of ATA, the health
//! log of NVMe (base specification 1.4, 5.14.1.2), the log pages of SCSI and SAS (SPC-4). The
//! numbers and units of ATA attributes differ from vendor to vendor: they are recognised by the
//! names that smartctl's database of disks gives them.

use super::report::{Report, celsius, ended, running, telling};
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
pub(super) fn complete_ata(health: DiskHealth, report: Report<'_>) -> DiskHealth {
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
        written_bytes: ata_written_bytes(&table, report, health.power_on_hours),
        self_test: ata_self_test(report, health.power_on_hours),
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
fn ata_written_bytes(
    table: &[Attribute<'_>],
    report: Report<'_>,
    hours: Option<u64>,
) -> Option<u64> {
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
fn ata_self_test(report: Report<'_>, power_on_hours: Option<u64>) -> Option<SelfTest> {
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

/// Data units are thousands of 512 bytes.
const DATA_UNIT_BYTES: u64 = 512_000;
/// Bit 1 of the critical warning, which concerns heat or cold and no data.
const TEMPERATURE: u64 = 1 << 1;
/// The other bits of the critical warning.
const ALARMS: [(u64, &str); 5] = [
    (1 << 0, "its spare blocks are at or below their threshold"),
    (
        1 << 2,
        "its reliability is degraded by media or internal errors",
    ),
    (1 << 3, "it has become read-only"),
    (
        1 << 4,
        "the backup of its volatile memory (power-loss protection) has failed",
    ),
    (1 << 5, "its persistent memory region is unreliable"),
];

/// Adds what the log page 2 says.
pub(super) fn complete_nvme(health: DiskHealth, report: Report<'_>) -> DiskHealth {
    let health = DiskHealth {
        rotation_rpm: Some(0),
        ..health
    };
    let Some(log) = report.at("/nvme_smart_health_information_log") else {
        return health;
    };
    let warning = log.count("/critical_warning");
    let limit = celsius(report, "/nvme_composite_temperature_threshold/warning");
    DiskHealth {
        // smartctl's verdict is that no bit is set; heat is reported separately.
        passed: warning
            .map(|bits| bits & !TEMPERATURE == 0)
            .or(health.passed),
        temperature_alarm: warning.map(|bits| bits & TEMPERATURE != 0),
        alarms: ALARMS
            .iter()
            .filter(|(bit, _)| warning.is_some_and(|bits| bits & bit != 0))
            .map(|(_, text)| (*text).to_owned())
            .collect(),
        temperature_celsius: health.temperature_celsius.or(celsius(log, "/temperature")),
        temperature_limit_celsius: health.temperature_limit_celsius.or(limit),
        power_on_hours: health.power_on_hours.or(log.hours("/power_on_hours")),
        wear_percent: log.percent("/percentage_used"),
        spare_percent: log.percent("/available_spare"),
        spare_threshold_percent: log.percent("/available_spare_threshold"),
        media_errors: log.count("/media_errors"),
        unsafe_shutdowns: log.count("/unsafe_shutdowns"),
        written_bytes: log
            .count("/data_units_written")
            .and_then(|units| units.checked_mul(DATA_UNIT_BYTES)),
        self_test: nvme_self_test(report),
        ..health
    }
}

/// The log page 6, newest first (smartctl 7.4 and later). Results: 0 passed, 5 to 7 failed, others
/// aborted.
fn nvme_self_test(report: Report<'_>) -> Option<SelfTest> {
    let log = report.at("/nvme_self_test_log")?;
    let runs = log
        .count("/current_self_test_operation/value")
        .is_some_and(|operation| operation != 0);
    let left = log
        .percent("/current_self_test_completion_percent")
        .map(|done| 100_u32.saturating_sub(done));
    let now = runs.then(|| running(log.text("/current_self_test_operation/string"), left));
    let logged = log.list("/table").map(|entry| {
        let passed = match entry.count("/self_test_result/value") {
            Some(0) => Some(true),
            Some(5..=7) => Some(false),
            _ => None,
        };
        let kind = entry.text("/self_test_code/string");
        let status = entry.text("/self_test_result/string");
        ended(kind, status, passed, entry.hours("/power_on_hours"))
    });
    telling(now, logged)
}

/// Additional sense code 0x0B with qualifier 0x01: "warning - specified temperature exceeded"
/// (SPC-4, annex F).
const TOO_HOT: (u64, u64) = (0x0b, 0x01);
/// Logged self-tests (SPC-4, 7.3.21).
const SELF_TESTS: usize = 20;

/// Adds what SCSI has of its own.
pub(super) fn complete_scsi(health: DiskHealth, report: Report<'_>) -> DiskHealth {
    let sense = |part: &str| report.count(&format!("/smart_status/scsi/{part}"));
    let is_hot = sense("asc").zip(sense("ascq")) == Some(TOO_HOT);
    let limit = celsius(report, "/temperature/drive_trip");
    let complaint = report
        .text("/smart_status/scsi/ie_string")
        .filter(|_| health.passed == Some(false) && !is_hot);
    let errors = ["read", "write", "verify"].map(|kind| {
        report.count(&format!(
            "/scsi_error_counter_log/{kind}/total_uncorrected_errors"
        ))
    });
    DiskHealth {
        passed: if is_hot { Some(true) } else { health.passed },
        temperature_alarm: health.passed.map(|_| is_hot),
        alarms: complaint
            .into_iter()
            .map(|text| format!("it says: {text}"))
            .collect(),
        temperature_limit_celsius: health.temperature_limit_celsius.or(limit),
        wear_percent: [
            "/endurance_used/current_percent",
            "/scsi_percentage_used_endurance_indicator",
        ]
        .iter()
        .find_map(|pointer| report.percent(pointer)),
        reallocated_sectors: report.count("/scsi_grown_defect_list"),
        pending_sectors: report.count("/scsi_pending_defects/count"),
        media_errors: errors.into_iter().flatten().reduce(u64::saturating_add),
        written_bytes: scsi_written_bytes(report),
        self_test: scsi_self_test(report),
        ..health
    }
}

/// smartctl writes units of 10⁹ bytes as text with three decimals: `"127551.260"`.
fn scsi_written_bytes(report: Report<'_>) -> Option<u64> {
    let gigabytes: f64 = report
        .text("/scsi_error_counter_log/write/gigabytes_processed")?
        .parse()
        .ok()?;
    (0.0..1e9)
        .contains(&gigabytes)
        .then_some((gigabytes * 1e9).round() as u64)
}

/// Results of SPC-4, table 294: 0 passed, 3 to 7 failed, 1 and 2 aborted, 15 in progress.
fn scsi_self_test(report: Report<'_>) -> Option<SelfTest> {
    const RUNNING: u64 = 15;
    let logged: Vec<Report<'_>> = (0..SELF_TESTS)
        .map_while(|index| report.at(&format!("/scsi_self_test_{index}")))
        .collect();
    let result = |entry: &Report<'_>| entry.count("/result/value");
    let runs = report.flag("/scsi_self_test_status/in_progress") == Some(true)
        || logged.first().and_then(result) == Some(RUNNING);
    let left = report
        .percent("/scsi_self_test_status/completion_percent")
        .map(|done| 100_u32.saturating_sub(done));
    let ended = logged
        .iter()
        .filter(|entry| result(entry) != Some(RUNNING))
        .map(|entry| {
            let passed = match result(entry) {
                Some(0) => Some(true),
                Some(3..=7) => Some(false),
                _ => None,
            };
            let (kind, status) = (entry.text("/code/string"), entry.text("/result/string"));
            ended(kind, status, passed, entry.hours("/power_on_time/hours"))
        });
    telling(runs.then(|| running(None, left)), ended)
}
