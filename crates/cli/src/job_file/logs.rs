//! Which of fio's logs `as fio` can write: rates and latencies at intervals. No single request is
//! recorded. Pure.

use super::error::JobFileError;
use super::notes::TranslationNotes;
use super::sections::{Section, Setting, last_by_name};

/// Refuses logs that would be missing at the end.
pub(crate) fn check(section: &Section, notes: &mut TranslationNotes) -> Result<(), JobFileError> {
    let given = last_by_name(&section.settings);
    let interval = given
        .get("log_avg_msec")
        .and_then(|setting| setting.option.value.as_deref())
        .filter(|value| *value != "0");
    if let Some(setting) = given.get("write_iolog") {
        return Err(setting.error("single requests are not recorded; remove it"));
    }
    for name in ["write_bw_log", "write_iops_log", "write_lat_log"] {
        if let Some(setting) = given.get(name) {
            if interval.is_none() {
                notes.add(
                    "without log_avg_msec the logs have a line per 100 ms, not per request",
                    &section.name,
                );
            }
            check_place(setting)?;
        }
    }
    if let Some(setting) = given.get("write_hist_log") {
        check_place(setting)?;
    }
    if let Some(setting) = given.get("unified_rw_reporting")
        && setting
            .option
            .value
            .as_deref()
            .is_some_and(|value| matches!(value, "2" | "both"))
    {
        return Err(setting.error("use 0 or 1"));
    }
    Ok(())
}

/// A job file may name no file outside the current directory.
fn check_place(setting: &Setting) -> Result<(), JobFileError> {
    let has_path = setting
        .option
        .value
        .as_deref()
        .is_some_and(|value| value.contains('/'));
    match has_path && !setting.source.is_on_command_line() {
        true => Err(setting.error(
            "a job file may name logs only in the current directory; write the option on the \
             command line, before the file",
        )),
        false => Ok(()),
    }
}
