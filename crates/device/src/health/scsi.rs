//! The health of SCSI and SAS disks (SPC-4 log pages), as smartctl tells it. Does not know other
//! protocols.

use super::document::{Report, celsius, ended, running, telling};
use diskproof_model::health::{DiskHealth, SelfTest};

/// Additional sense code 0x0B with qualifier 0x01: "warning - specified temperature exceeded"
/// (SPC-4, annex F).
const TOO_HOT: (u64, u64) = (0x0b, 0x01);
/// Logged self-tests (SPC-4, 7.3.21).
const SELF_TESTS: usize = 20;

/// Adds what SCSI has of its own.
pub(super) fn complete(health: DiskHealth, report: Report<'_>) -> DiskHealth {
    let sense = report
        .count("/smart_status/scsi/asc")
        .zip(report.count("/smart_status/scsi/ascq"));
    let is_hot = sense == Some(TOO_HOT);
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
        temperature_limit_celsius: health
            .temperature_limit_celsius
            .or_else(|| celsius(report, "/temperature/drive_trip")),
        wear_percent: [
            "/endurance_used/current_percent",
            "/scsi_percentage_used_endurance_indicator",
        ]
        .iter()
        .find_map(|pointer| report.percent(pointer)),
        reallocated_sectors: report.count("/scsi_grown_defect_list"),
        pending_sectors: report.count("/scsi_pending_defects/count"),
        media_errors: errors.into_iter().flatten().reduce(u64::saturating_add),
        written_bytes: written_bytes(report),
        self_test: self_test(report),
        ..health
    }
}

/// smartctl writes units of 10⁹ bytes as text with three decimals: `"127551.260"`.
fn written_bytes(report: Report<'_>) -> Option<u64> {
    let gigabytes: f64 = report
        .text("/scsi_error_counter_log/write/gigabytes_processed")?
        .parse()
        .ok()?;
    (0.0..1e9)
        .contains(&gigabytes)
        .then_some((gigabytes * 1e9).round() as u64)
}

/// Results of SPC-4, table 294: 0 passed, 3 to 7 failed, 1 and 2 aborted, 15 in progress.
fn self_test(report: Report<'_>) -> Option<SelfTest> {
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
