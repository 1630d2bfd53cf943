//! The end of a run: the record, its files, the history, the page on stdout, and the exit code.

use super::watchdog::RunEnd;
use crate::deferred::{Deferred, TimedOut};
use crate::failure::{Exit, Failure};
use crate::flags::MeasuringFlags;
use crate::interrupt::Interrupt;
use crate::output_files::{OutputFiles, save_record, temporary_path};
use crate::saved::{self, SaveNote};
use crate::stderr::{Verbosity, eprint_line};
use crate::stdout::{
    close_stdout, commands_page, ignore_closed_pipe, record_page, to_stdout, write_page,
};
use diskproof_analysis::judge::{RunFacts, judge};
use diskproof_engine::RunError;
use diskproof_model::plan::Plan;
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::units::format_duration;
use diskproof_report::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What came of saving and printing.
struct SaveResult {
    outcome: anyhow::Result<()>,
    /// Files on filesystems that hang.
    hung: Vec<String>,
}

/// Judges, saves and prints what was measured, and returns how the run ended.
pub fn conclude(
    mut facts: RunFacts,
    end: RunEnd,
    files: &OutputFiles<'_>,
    flags: &MeasuringFlags,
    stall_timeout: Duration,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    facts.ended_early = match &end.ended {
        Ok(ended_early) => ended_early.clone(),
        Err(error) => Some(error.to_string()),
    };
    facts.partial = facts.ended_early.is_some();
    facts.stalled = end.stalled;
    let results = &end.results;
    let record = judge(
        facts,
        &results.measurements,
        results.surface.as_ref(),
        &flags.expected,
    );
    let record = Arc::new(record);
    let saved = save_and_print(&record, files, flags, stall_timeout);
    let hung = [&end.hung[..], &saved.hung].concat();
    if !hung.is_empty() {
        flags
            .verbosity()
            .note(&process_may_stay(&hung, &record.plan));
        close_stdout();
    }
    let failure = end.ended.err().map(Failure::Run);
    let ended = exit_of(&record, failure, &end.hung, interrupt);
    match (saved.outcome, ended) {
        (Ok(()), ended) => ended,
        (Err(error), Ok(exit)) if !matches!(exit, Exit::Signal(_)) => Err(error),
        // How the run ended decides.
        (Err(error), ended) => {
            eprint_line(&format!("error: {error:#}"));
            ended
        }
    }
}

/// Saves the record to its files and to the history, then prints it. Each save has a thread of its
/// own, so that one that fails or hangs does not keep the others from being done.
fn save_and_print(
    record: &Arc<Record>,
    files: &OutputFiles<'_>,
    flags: &MeasuringFlags,
    limit: Duration,
) -> SaveResult {
    let verbosity = flags.verbosity();
    let page = page(record, flags);
    // Saved before it is printed: a reader that goes away, such as `head`, must not cost the
    // record.
    let saves: Vec<_> = files
        .paths()
        .iter()
        .map(|path| (path, start_save(record, path, verbosity)))
        .collect();
    let history = {
        let (record, page, options) = (Arc::clone(record), page.clone(), flags.history.clone());
        Deferred::start(move || saved::keep(&record, &page, &options))
    };
    let (mut outcome, mut hung) = (Ok(()), Vec::new());
    for (path, save) in saves {
        outcome = outcome.and(save.wait(limit).unwrap_or_else(|TimedOut| {
            hung.push(path.display().to_string());
            Err(save_timed_out(path, limit))
        }));
    }
    let remarks = history.wait(limit).unwrap_or_else(|TimedOut| {
        hung.push("the history".to_owned());
        vec![SaveNote::Warning(format!(
            "the run is not saved: the history did not answer for {}",
            shown(limit)
        ))]
    });
    let printed = to_stdout(|out| match flags.json {
        true => json::write_record(record, out),
        false => write_page(&page, flags.color, out),
    });
    saved::print_notes(&remarks, verbosity);
    SaveResult {
        outcome: outcome.and(ignore_closed_pipe(printed)),
        hung,
    }
}

fn start_save(
    record: &Arc<Record>,
    path: &Path,
    verbosity: Verbosity,
) -> Deferred<anyhow::Result<()>> {
    let (record, path) = (Arc::clone(record), path.to_owned());
    Deferred::start(move || save_record(&record, &path, verbosity))
}

fn save_timed_out(path: &Path, limit: Duration) -> anyhow::Error {
    anyhow::anyhow!(
        "-o {}: the record is not saved there, because its filesystem did not answer for {}; {} \
         may be left behind",
        path.display(),
        shown(limit),
        temporary_path(path).display()
    )
}

fn shown(duration: Duration) -> String {
    format_duration(duration.as_nanos() as u64)
}

/// What a run prints: its page, and the commands with `--commands`.
fn page(record: &Record, flags: &MeasuringFlags) -> String {
    let page = record_page(record);
    if flags.commands {
        format!("{page}\n{}", commands_page(record))
    } else {
        page
    }
}

/// The work is done, and the process may last all the same.
fn process_may_stay(hung: &[String], plan: &Plan) -> String {
    let scratch = if plan.scratch_bytes.is_some() {
        " Its scratch file has no name and vanishes with the process."
    } else {
        ""
    };
    format!(
        "{} has not answered yet. The results are complete. The process cannot exit until the \
         kernel finishes the I/O (state D in ps; not even kill -9 ends it).{scratch}",
        hung.join(", ")
    )
}

/// The exit code of a run that has been printed.
fn exit_of(
    record: &Record,
    failure: Option<Failure>,
    hung: &[String],
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    match (failure, interrupt.signal()) {
        (None, _) => {}
        // The user ended the wait.
        (Some(failure @ Failure::Run(RunError::Stalled { .. })), Some(signal)) => {
            eprint_line(&format!("error: {failure}"));
            return Ok(Exit::Signal(signal));
        }
        (Some(failure), _) => return Err(failure.into()),
    }
    let has_errors = record.partial
        || !hung.is_empty()
        || has_surface_errors(record)
        || record.measurements.iter().any(has_measured_errors);
    Ok(match interrupt.signal() {
        Some(signal) if record.partial => Exit::Signal(signal),
        _ if has_errors => Exit::Failed,
        _ if record.expectations.iter().any(|e| !e.met) => Exit::ThresholdMissed,
        _ => Exit::Done,
    })
}

fn has_measured_errors(measured: &MeasurementRecord) -> bool {
    let verify = measured.verify.as_ref();
    measured.errors_total() > 0 || verify.is_some_and(|verify| verify.bad_blocks > 0)
}

fn has_surface_errors(record: &Record) -> bool {
    let surface = record.surface.as_ref();
    let scan = surface.and_then(|surface| surface.scan.as_ref());
    record.curve.iter().any(|point| point.errors > 0)
        || surface.is_some_and(|surface| !surface.access_errors.is_empty())
        || scan.is_some_and(|scan| scan.unreadable_bytes > 0)
}
