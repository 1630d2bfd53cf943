//! The health log of NVMe (base specification 1.4, 5.14.1.2), as smartctl tells it. Does not know
//! other protocols.

use super::document::{Report, celsius, ended, running, telling};
use diskproof_model::health::{DiskHealth, SelfTest};

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
pub(super) fn complete(health: DiskHealth, report: Report<'_>) -> DiskHealth {
    let health = DiskHealth {
        rotation_rpm: Some(0),
        ..health
    };
    let Some(log) = report.at("/nvme_smart_health_information_log") else {
        return health;
    };
    let warning = log.count("/critical_warning");
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
        temperature_celsius: health
            .temperature_celsius
            .or_else(|| celsius(log, "/temperature")),
        temperature_limit_celsius: health
            .temperature_limit_celsius
            .or_else(|| celsius(report, "/nvme_composite_temperature_threshold/warning")),
        power_on_hours: health
            .power_on_hours
            .or_else(|| log.hours("/power_on_hours")),
        wear_percent: log.percent("/percentage_used"),
        spare_percent: log.percent("/available_spare"),
        spare_threshold_percent: log.percent("/available_spare_threshold"),
        media_errors: log.count("/media_errors"),
        unsafe_shutdowns: log.count("/unsafe_shutdowns"),
        written_bytes: log
            .count("/data_units_written")
            .and_then(|units| units.checked_mul(DATA_UNIT_BYTES)),
        self_test: self_test(report),
        ..health
    }
}

/// The log page 6, newest first (smartctl 7.4 and later). Results: 0 passed, 5 to 7 failed, others
/// aborted.
fn self_test(report: Report<'_>) -> Option<SelfTest> {
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
