//! Which of fio's logs `as fio` can write: rates and latencies at intervals. No single request is
//! recorded. Pure.

use super::environment::Environment;
use super::error::JobFileError;
use super::notes::TranslationNotes;
use super::sections::{Section, Setting, last_by_name};
use std::path::{Component, Path};

/// Refuses logs that would be missing at the end.
pub(crate) fn check(
    section: &Section,
    output: Option<&Path>,
    environment: &dyn Environment,
    notes: &mut TranslationNotes,
) -> Result<(), JobFileError> {
    let given = last_by_name(&section.settings);
    let interval = given.get("log_avg_msec");
    let interval = interval.and_then(|setting| setting.option.value.as_deref());
    if let Some(setting) = given.get("write_iolog") {
        return Err(setting.error("single requests are not recorded; remove it"));
    }
    for name in [
        "write_bw_log",
        "write_iops_log",
        "write_lat_log",
        "write_hist_log",
    ] {
        if let Some(setting) = given.get(name) {
            if name != "write_hist_log" && interval.is_none_or(|value| value == "0") {
                notes.add(
                    "without log_avg_msec the logs have a line per 100 ms, not per request",
                    &section.name,
                );
            }
            check_place(setting, output, environment)?;
        }
    }
    Ok(())
}

/// A job file may name files below the current directory and that of the output, which the user
/// chose.
fn check_place(
    setting: &Setting,
    output: Option<&Path>,
    environment: &dyn Environment,
) -> Result<(), JobFileError> {
    let Some(given) = setting.option.value.as_deref().map(Path::new) else {
        return Ok(());
    };
    let is_below = |directory: &Path| {
        let directory = environment.absolute(directory);
        environment.absolute(given).starts_with(directory)
    };
    let climbs = given.components().any(|part| part == Component::ParentDir);
    let is_below_any = is_below(Path::new(".")) || output.is_some_and(is_below);
    if (!climbs && is_below_any) || setting.source.is_on_command_line() {
        Ok(())
    } else {
        Err(setting.error(
            "a job file may name logs only below the current directory and that of --output; \
         start in the directory of the logs, or write the option on the command line, before \
         the file",
        ))
    }
}
