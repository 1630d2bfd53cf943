//! Reads smartctl's JSON document. What is missing, of another type or impossible for a disk is
//! `None`, never an error. Also chooses the self-test to report, as for all protocols.

use diskproof_model::health::SelfTest;
use serde_json::Value;

/// smartctl's document, with access that never fails.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report<'a>(pub(super) &'a Value);

impl<'a> Report<'a> {
    /// The part of the document at a JSON pointer.
    pub(super) fn below(self, pointer: &str) -> Option<Report<'a>> {
        self.0.pointer(pointer).map(Report)
    }

    /// A whole number that is not negative.
    pub(super) fn count(self, pointer: &str) -> Option<u64> {
        self.below(pointer)?.0.as_u64()
    }

    /// A whole number.
    pub(super) fn number(self, pointer: &str) -> Option<i64> {
        self.below(pointer)?.0.as_i64()
    }

    /// Text without blanks around it; `None` when there is none.
    pub(super) fn text(self, pointer: &str) -> Option<&'a str> {
        let text = self.below(pointer)?.0.as_str()?.trim();
        if text.is_empty() { None } else { Some(text) }
    }

    /// True or false.
    pub(super) fn flag(self, pointer: &str) -> Option<bool> {
        self.below(pointer)?.0.as_bool()
    }

    /// The elements of an array.
    pub(super) fn list(self, pointer: &str) -> impl Iterator<Item = Report<'a>> {
        let elements = match self.below(pointer) {
            Some(found) => found.0.as_array(),
            None => None,
        };
        elements.into_iter().flatten().map(Report)
    }

    /// Hours under power.
    pub(super) fn hours(self, pointer: &str) -> Option<u64> {
        let hours = self.count(pointer)?;
        if hours > HOURS_MAX {
            return None;
        }
        Some(hours)
    }

    /// Revolutions per minute.
    pub(super) fn rpm(self, pointer: &str) -> Option<u32> {
        let rpm = self.count(pointer)?.try_into().ok()?;
        if rpm > RPM_MAX {
            return None;
        }
        Some(rpm)
    }

    /// A share in percent.
    pub(super) fn percent(self, pointer: &str) -> Option<u32> {
        let percent = self.count(pointer)?.try_into().ok()?;
        if percent > PERCENT_MAX {
            return None;
        }
        Some(percent)
    }
}

/// A hundred years: a counter in another unit, or a register that was never filled.
const HOURS_MAX: u64 = 100 * 8766;
/// The fastest disks ever sold made 15,000 turns a minute.
const RPM_MAX: u32 = 30_000;
/// Wear may exceed 100 percent; its byte ends at 255 (NVM Express, SMART log).
const PERCENT_MAX: u32 = 255;
/// More than any disk can write in its life: an exabyte.
const WRITTEN_BYTES_MAX: u64 = 1_000_000_000_000_000_000;

/// Bytes written over a disk's life; `None` of a counter that cannot be true.
pub(super) fn written(bytes: Option<u64>) -> Option<u64> {
    match bytes {
        Some(bytes) if bytes <= WRITTEN_BYTES_MAX => Some(bytes),
        _ => None,
    }
}

/// Readings outside of this range are no temperatures: a register that was never filled, or a unit
/// that is not Celsius.
const CELSIUS: std::ops::RangeInclusive<i64> = -40..=150;

/// A temperature in degrees Celsius. SCSI reports 0 and 255 where it knows none.
pub(super) fn celsius(report: Report<'_>, pointer: &str) -> Option<i32> {
    let celsius = report.number(pointer)?;
    if celsius == 0 || !CELSIUS.contains(&celsius) {
        return None;
    }
    celsius.try_into().ok()
}

/// The self-test to report, of the one that runs and all that are logged, newest first, each with
/// the name of its kind. An extended one that failed comes before all, for a short one that passes
/// afterwards has not looked where that one failed.
pub(super) fn test_to_report(
    running: Option<SelfTest>,
    logged: &[(&str, SelfTest)],
) -> Option<SelfTest> {
    let newest_long = logged
        .iter()
        .find(|(kind, test)| is_long(kind) && test.passed.is_some());
    if let Some((_, test)) = newest_long
        && test.passed == Some(false)
    {
        return Some(test.clone());
    }
    if running.is_some() {
        return running;
    }
    let (_, newest) = logged.first()?;
    Some(newest.clone())
}

/// "Extended" in ATA and NVMe, "Background long" and "Foreground long" in SCSI.
fn is_long(kind: &str) -> bool {
    kind.contains("Extended") || kind.contains("long")
}

/// A self-test that runs.
pub(super) fn running(status: Option<&str>, remaining_percent: Option<u32>) -> SelfTest {
    SelfTest {
        status: status.unwrap_or("in progress").to_owned(),
        passed: None,
        hours: None,
        remaining_percent: Some(remaining_percent.unwrap_or(100)),
    }
}

/// A self-test that has ended, with the name of its kind.
pub(super) fn ended<'a>(
    kind: Option<&'a str>,
    status: Option<&str>,
    passed: Option<bool>,
    hours: Option<u64>,
) -> (&'a str, SelfTest) {
    let name = kind.unwrap_or("Self-test");
    let test = SelfTest {
        status: format!("{name}: {}", status.unwrap_or("no result")),
        passed,
        hours,
        remaining_percent: None,
    };
    (name, test)
}
