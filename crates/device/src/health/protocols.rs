//! Adds the health data that only one protocol has, as smartctl reports it: the attributes of ATA,
//! the health log of NVMe (base specification 1.4, 5.14.1.2), the log pages of SCSI and SAS
//! (SPC-4). The numbers and units of ATA attributes differ from vendor to vendor, so they are
//! recognised by the names that smartctl's database of disks gives them.

use super::report::{Report, celsius, ended, running, test_to_report};
use diskproof_model::health::{DiskHealth, SelfTest};
use diskproof_model::units::SECTOR_BYTES;

/// A disk that was this long under power has written at least [`SETTLED_BYTES`]. Less means that
/// the unit of the counter is not what its name says (seen on rebranded disks whose
/// `Total_LBAs_Written` counts GiB). Both numbers are chosen, not measured: 500 hours are three
/// weeks, in which even the log of an idle system is longer than a GiB.
const SETTLED_HOURS: u64 = 500;
/// The least that such a disk has written.
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
    /// True if the value is at or under its threshold now.
    fails: bool,
    /// True if the vendor says that this predicts a failure (prefailure), and not only age.
    predicts_failure: bool,
}

impl Attribute<'_> {
    fn is_hot(&self) -> bool {
        self.fails && self.name.contains("Temperature")
    }

    fn alarm(&self) -> String {
        format!(
            "{} is at {}, its threshold at {}",
            self.name, self.value, self.threshold
        )
    }

    /// The wear in percent; `None` of an attribute that counts something else.
    fn worn_percent(&self) -> Option<u64> {
        if !self.is_named(&LIFE_LEFT) || self.value > FULL {
            return None;
        }
        let has_raw = self.is_named(&LIFE_LEFT_IN_RAW) && (1..=FULL).contains(&self.raw);
        let percent_left = if has_raw {
            self.value.min(self.raw)
        } else {
            self.value
        };
        Some(FULL - percent_left)
    }

    fn is_named(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.name.starts_with(name))
    }
}

/// Adds the figures of the attributes and of the self-test log.
pub(super) fn complete_ata(health: DiskHealth, report: Report<'_>) -> DiskHealth {
    let mut table = Vec::new();
    for entry in report.list("/ata_smart_attributes/table") {
        table.extend(read_attribute(entry));
    }
    let mut alarms = Vec::new();
    for attribute in &table {
        if attribute.fails && attribute.predicts_failure && !attribute.is_hot() {
            alarms.push(attribute.alarm());
        }
    }
    let spare = spare(&table, &health);
    DiskHealth {
        temperature_alarm: if table.is_empty() {
            None
        } else {
            Some(table.iter().any(Attribute::is_hot))
        },
        alarms,
        wear_percent: if is_flash(&health) {
            wear(&table, report)
        } else {
            None
        },
        spare_percent: spare.and_then(|attribute| attribute.value.try_into().ok()),
        spare_threshold_percent: match spare {
            Some(attribute) if attribute.threshold > 0 => attribute.threshold.try_into().ok(),
            _ => None,
        },
        reallocated_sectors: count(&table, &[5], &["Reallocated_Sector", "Retired_Block"]),
        pending_sectors: count(&table, &[197], &["Pending_Sector"]),
        uncorrectable_sectors: count(&table, &[198], &["Offline_Uncorrectable"]),
        media_errors: count(
            &table,
            &[187],
            &["Reported_Uncorrect", "Uncorrectable_Error"],
        ),
        link_errors: count(&table, &[199, 218], &["CRC_Error"]),
        unsafe_shutdowns: count(
            &table,
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

/// Finds the attribute of the spare blocks, which are reported for flash. Of rotating disks newer
/// smartctl gives the normalized count of reallocations that name.
fn spare<'a>(table: &'a [Attribute<'a>], health: &DiskHealth) -> Option<&'a Attribute<'a>> {
    if !is_flash(health) {
        return None;
    }
    table.iter().find(|attribute| {
        attribute.name.starts_with("Available_Reservd_Space") && attribute.value <= FULL
    })
}

/// The count of the first attribute with one of these numbers and one of these names.
fn count(table: &[Attribute<'_>], ids: &[u64], names: &[&str]) -> Option<u64> {
    for attribute in table {
        if ids.contains(&attribute.id) && names.iter().any(|name| attribute.name.contains(name)) {
            return Some(attribute.raw);
        }
    }
    None
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
        predicts_failure: entry.flag("/flags/prefailure") == Some(true),
    })
}

/// Names of attributes whose normalized value counts down from 100.
const LIFE_LEFT: [&str; 6] = [
    "Media_Wearout_Indicator",
    "Wear_Leveling_Count",
    "SSD_Life_Left",
    "Percent_Life",
    "Remaining_Lifetime",
    "Lifetime_Remain",
];
/// Attributes that have what is left in the raw value, too, and may keep the normalized one at 100.
const LIFE_LEFT_IN_RAW: [&str; 2] = ["SSD_Life_Left", "Remaining_Lifetime"];

/// The greatest wear in percent that any indicator reports.
fn wear(table: &[Attribute<'_>], report: Report<'_>) -> Option<u32> {
    let mut greatest = report.percent("/endurance_used/current_percent");
    for attribute in table {
        if let Some(worn) = attribute.worn_percent() {
            greatest = greatest.max(worn.try_into().ok());
        }
    }
    greatest
}

/// The bytes that hosts wrote; `None` for a disk that is not in smartctl's database, because its
/// counter may have any unit. Names with a unit come first.
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
    for (name, bytes_each) in units {
        if let Some(attribute) = table.iter().find(|attribute| attribute.name == name) {
            return plausible_bytes(attribute.raw.checked_mul(bytes_each)?, hours);
        }
    }
    None
}

/// The written bytes, unless they are too few for a disk with so many hours.
fn plausible_bytes(bytes: u64, hours: Option<u64>) -> Option<u64> {
    match hours {
        Some(SETTLED_HOURS..) if bytes < SETTLED_BYTES => None,
        _ => Some(bytes),
    }
}

/// The upper half of the status while a self-test runs (ACS-3, table 66).
const ATA_TEST_RUNS: u64 = 15;

/// The log of self-tests, newest first. A test that runs now stands only in the status.
fn ata_self_test(report: Report<'_>, power_on_hours: Option<u64>) -> Option<SelfTest> {
    let mut now = None;
    if let Some(status) = report.below("/ata_smart_data/self_test/status")
        && let Some(value) = status.count("/value")
        && value >> 4 == ATA_TEST_RUNS
    {
        now = Some(running(
            status.text("/string"),
            status.percent("/remaining_percent"),
        ));
    }
    let mut logged = Vec::new();
    for entry in report.list("/ata_smart_self_test_log/standard/table") {
        logged.push(ended(
            entry.text("/type/string"),
            entry.text("/status/string"),
            entry.flag("/status/passed"),
            entry
                .hours("/lifetime_hours")
                .map(|hours| unwrapped(hours, power_on_hours)),
        ));
    }
    test_to_report(now, &logged)
}

/// The log has 16 bits for hours, which are full after seven and a half years; the disk's own count
/// shows which round it is.
fn unwrapped(logged: u64, now: Option<u64>) -> u64 {
    /// Hours after which the log's counter begins anew.
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

/// Adds the figures of log page 2, the health log.
pub(super) fn complete_nvme(health: DiskHealth, report: Report<'_>) -> DiskHealth {
    let health = DiskHealth {
        rotation_rpm: Some(0),
        ..health
    };
    let Some(log) = report.below("/nvme_smart_health_information_log") else {
        return health;
    };
    let warning = log.count("/critical_warning");
    let limit = celsius(report, "/nvme_composite_temperature_threshold/warning");
    let mut alarms = Vec::new();
    for (bit, text) in ALARMS {
        if warning.unwrap_or(0) & bit != 0 {
            alarms.push(text.to_owned());
        }
    }
    DiskHealth {
        // smartctl's verdict is that no bit is set; heat is reported separately.
        passed: match warning {
            Some(bits) => Some(bits & !TEMPERATURE == 0),
            None => health.passed,
        },
        temperature_alarm: warning.map(|bits| bits & TEMPERATURE != 0),
        alarms,
        temperature_celsius: health.temperature_celsius.or(celsius(log, "/temperature")),
        temperature_limit_celsius: health.temperature_limit_celsius.or(limit),
        temperature_sensors_celsius: sensors(log),
        hot_minutes: log.count("/warning_temp_time"),
        critical_minutes: log.count("/critical_comp_time"),
        power_on_hours: health.power_on_hours.or(log.hours("/power_on_hours")),
        wear_percent: log.percent("/percentage_used"),
        spare_percent: log.percent("/available_spare"),
        spare_threshold_percent: log.percent("/available_spare_threshold"),
        media_errors: log.count("/media_errors"),
        unsafe_shutdowns: log.count("/unsafe_shutdowns"),
        written_bytes: match log.count("/data_units_written") {
            Some(units) => units.checked_mul(DATA_UNIT_BYTES),
            None => None,
        },
        self_test: nvme_self_test(report),
        ..health
    }
}

/// The temperatures of all sensors that exist.
fn sensors(log: Report<'_>) -> Vec<i32> {
    log.list("/temperature_sensors")
        .filter_map(|sensor| celsius(sensor, ""))
        .collect()
}

/// The log page 6, newest first (smartctl 7.4 and later). Results: 0 passed, 5 to 7 failed, others
/// aborted.
fn nvme_self_test(report: Report<'_>) -> Option<SelfTest> {
    let log = report.below("/nvme_self_test_log")?;
    let now = match log.count("/current_self_test_operation/value") {
        None | Some(0) => None,
        Some(_) => Some(running(
            log.text("/current_self_test_operation/string"),
            log.percent("/current_self_test_completion_percent")
                .map(|done| 100_u32.saturating_sub(done)),
        )),
    };
    let mut logged = Vec::new();
    for entry in log.list("/table") {
        let passed = match entry.count("/self_test_result/value") {
            Some(0) => Some(true),
            Some(5..=7) => Some(false),
            _ => None,
        };
        logged.push(ended(
            entry.text("/self_test_code/string"),
            entry.text("/self_test_result/string"),
            passed,
            entry.hours("/power_on_hours"),
        ));
    }
    test_to_report(now, &logged)
}

/// Additional sense code 0x0B with qualifier 0x01: "warning - specified temperature exceeded"
/// (SPC-4, annex F).
const TOO_HOT: (u64, u64) = (0x0b, 0x01);
/// Logged self-tests (SPC-4, 7.3.21).
const SELF_TESTS: usize = 20;

/// Adds the figures that only SCSI has.
pub(super) fn complete_scsi(health: DiskHealth, report: Report<'_>) -> DiskHealth {
    let is_hot = match (
        report.count("/smart_status/scsi/asc"),
        report.count("/smart_status/scsi/ascq"),
    ) {
        (Some(code), Some(qualifier)) => (code, qualifier) == TOO_HOT,
        _ => false,
    };
    let limit = celsius(report, "/temperature/drive_trip");
    let mut alarms = Vec::new();
    if health.passed == Some(false)
        && !is_hot
        && let Some(text) = report.text("/smart_status/scsi/ie_string")
    {
        alarms.push(format!("it says: {text}"));
    }
    let errors = ["read", "write", "verify"].map(|kind| {
        report.count(&format!(
            "/scsi_error_counter_log/{kind}/total_uncorrected_errors"
        ))
    });
    DiskHealth {
        passed: if is_hot { Some(true) } else { health.passed },
        temperature_alarm: health.passed.map(|_| is_hot),
        alarms,
        temperature_limit_celsius: health.temperature_limit_celsius.or(limit),
        wear_percent: report
            .percent("/endurance_used/current_percent")
            .or_else(|| report.percent("/scsi_percentage_used_endurance_indicator")),
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
    if (0.0..1e9).contains(&gigabytes) {
        Some((gigabytes * 1e9).round() as u64)
    } else {
        None
    }
}

/// Results of SPC-4, table 294: 0 passed, 3 to 7 failed, 1 and 2 aborted, 15 in progress.
fn scsi_self_test(report: Report<'_>) -> Option<SelfTest> {
    /// The result of a test that is in progress.
    const RUNNING: u64 = 15;
    let mut runs = report.flag("/scsi_self_test_status/in_progress") == Some(true);
    let mut logged = Vec::new();
    for index in 0..SELF_TESTS {
        let Some(entry) = report.below(&format!("/scsi_self_test_{index}")) else {
            break;
        };
        let result = entry.count("/result/value");
        if result == Some(RUNNING) {
            // Only the newest one can run.
            runs |= index == 0;
            continue;
        }
        let passed = match result {
            Some(0) => Some(true),
            Some(3..=7) => Some(false),
            _ => None,
        };
        logged.push(ended(
            entry.text("/code/string"),
            entry.text("/result/string"),
            passed,
            entry.hours("/power_on_time/hours"),
        ));
    }
    let now = if runs {
        let percent_left = report
            .percent("/scsi_self_test_status/completion_percent")
            .map(|done| 100_u32.saturating_sub(done));
        Some(running(None, percent_left))
    } else {
        None
    };
    test_to_report(now, &logged)
}
