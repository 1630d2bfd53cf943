//! Saves runs in the history, and says how that went. The folder also finds saved runs, by the name
//! that the user gives or as the earlier ones of a run. Nothing here knows SQL.

mod anonymous;
mod document;
mod earlier;
mod journals;
mod place;
mod recovery;
mod reference;
mod short_id;
mod stream;
mod unfinished;

use crate::failure::Failure;
use crate::stdio::{Verbosity, eprint_line};
pub(crate) use anonymous::anonymize;
use diskproof_history::{
    HistoryError, Journal, NewRun, RunSource, SaveOutcome, SaveReport, refuse_foreign, save,
};
use diskproof_model::record::Record;
use diskproof_model::target::TargetIdentity;
pub(crate) use document::{
    SavedDocument, compressed, find_within_limit, judged_record, open_document, read_document,
    read_page, saved_record,
};
pub(crate) use earlier::{RunKey, capacities, disk_access, earlier_runs, runs_before};
use jiff::{SignedDuration, Timestamp};
pub(crate) use journals::{Journals, KILLED, LeftInJournal, end_journals, leave_in_journal};
use place::{Destination, HistoryEnvironment, NOWHERE, history_answer, resolve_folder};
pub(crate) use place::{empty_text, history_place, make_history, register_history, state_folder};
pub(crate) use recovery::{RecoveredHistory, UnsavedRun, open, open_recovered};
pub(crate) use reference::{
    find, load, load_all, load_all_whole, load_file, named_or_recorded, names_run, parse_label,
    run_id,
};
pub(crate) use short_id::short_id;
use std::path::{Path, PathBuf};
use std::sync::Arc;
pub(crate) use stream::{RefusedPart, Streamed, read_stream};
pub(crate) use unfinished::{DiskKey, InHistory, TestJournal};

/// A clock that is set while a run is saved may be so much behind its start. Chosen, not measured.
const CLOCK_STEP: SignedDuration = SignedDuration::from_secs(60);

/// Returns `true` if a saved start lies after this time, which only a wrong clock explains.
pub(crate) fn is_after(started: &str, time: Timestamp) -> bool {
    match started.parse::<Timestamp>() {
        Ok(started) => started.duration_since(time) > CLOCK_STEP,
        Err(_) => false,
    }
}

/// Flags of measuring verbs: whether and where to save a run.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct HistoryOptions {
    /// Label of this run, for 'show' and 'compare'; several runs may share one
    #[arg(long, value_name = "LABEL", value_parser = parse_label, conflicts_with = "no_history")]
    pub label: Option<String>,
    /// History file [default: $DISKPROOF_HISTORY, or diskproof/history.db in $XDG_STATE_HOME or
    /// ~/.local/state]
    #[arg(long, value_name = "FILE", conflicts_with = "no_history")]
    pub history: Option<PathBuf>,
    /// Do not save the run; DISKPROOF_NO_HISTORY=1 does the same
    #[arg(long)]
    pub no_history: bool,
    /// Identifies the command line, where that saves several runs; the program sets it.
    #[arg(skip)]
    pub command: Option<String>,
}

impl HistoryOptions {
    /// The file that `--history` names.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.history.as_deref()
    }
}

/// The flag of verbs that read the history.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct HistoryFileFlag {
    /// History file [default: $DISKPROOF_HISTORY, or diskproof/history.db in $XDG_STATE_HOME or
    /// ~/.local/state]
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
}

impl HistoryFileFlag {
    /// The file that `--history` names.
    pub fn file(&self) -> Option<&Path> {
        self.history.as_deref()
    }
}

/// A message of a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SaveNote {
    /// Printed unless --quiet.
    Note(String),
    /// The run is in the history; printed unless --quiet.
    Saved(String),
    /// The history could not take the run: why; printed even with --quiet.
    Unsaved(String),
    /// The run was not saved as usual; printed even with --quiet.
    Warning(String),
}

/// The proof that the run is in the history, by the notes of its save; `None` where it is not.
pub(crate) fn in_history(notes: &[SaveNote]) -> Option<InHistory> {
    for note in notes {
        if let SaveNote::Saved(_) = note {
            return Some(InHistory::new());
        }
    }
    None
}

/// True if the notes of a save say that the history could not take the run.
pub(crate) fn is_unsaved(notes: &[SaveNote]) -> bool {
    notes
        .iter()
        .any(|note| matches!(note, SaveNote::Unsaved(_)))
}

/// Prints the notes of a save on stderr, each behind `prefix`; warnings also with `--quiet`.
pub(crate) fn print_notes(prefix: &str, notes: &[SaveNote], verbosity: Verbosity) {
    for note in notes {
        match note {
            SaveNote::Note(text) | SaveNote::Saved(text) => {
                verbosity.note(&format!("{prefix}{text}"));
            }
            SaveNote::Unsaved(why) => {
                eprint_line(&format!("warning: {prefix}the run was not saved: {why}"));
            }
            SaveNote::Warning(text) => eprint_line(&format!("warning: {prefix}{text}")),
        }
    }
}

/// Saves a complete or partial run. Never an error: a measurement does not fail because of its
/// history.
pub(crate) fn keep(record: &Record, page: &str, options: &HistoryOptions) -> Vec<SaveNote> {
    if options.no_history {
        return Vec::new();
    }
    let place = match HistoryEnvironment::real().place(options.history.as_deref()) {
        Destination::At(place) => match resolve_folder(place) {
            Ok(place) => place,
            Err(error) => return vec![not_saved(&error)],
        },
        Destination::Off if options.label.is_none() => return Vec::new(),
        Destination::Off => {
            return vec![SaveNote::Warning(
                "--label: DISKPROOF_NO_HISTORY is set, so the run was not saved".to_owned(),
            )];
        }
        Destination::Nowhere => {
            let text = format!("the run was not saved: {NOWHERE}");
            return vec![if options.label.is_some() {
                SaveNote::Warning(text)
            } else {
                SaveNote::Note(text)
            }];
        }
    };
    let label = options.label.as_deref();
    let run = NewRun {
        record,
        page: Some(page),
        label,
        source: RunSource::Measured {
            command: options.command.as_deref(),
        },
    };
    match save(&place, &run) {
        Ok(saved) => {
            let mut notes = Vec::new();
            notes.extend(damage_warning(&place.path, &saved));
            let id = short_id(&record.run_id);
            notes.push(SaveNote::Saved(match label {
                _ if saved.outcome == SaveOutcome::Known => {
                    format!("the history had the whole run {id} already, and is unchanged")
                }
                Some(label) => {
                    format!("saved as {id}, label {label}; 'diskproof show {id}' prints it again")
                }
                None => format!("saved as {id}; 'diskproof show {id}' prints it again"),
            }));
            notes
        }
        Err(error) => vec![not_saved(&error)],
    }
}

fn not_saved(error: &HistoryError) -> SaveNote {
    SaveNote::Unsaved(error.to_string())
}

/// Refuses, before anything is measured, a history that the user named and that is no file, lies in
/// a folder that does not exist, or would need a file which diskproof did not make. Any other
/// trouble with it is reported when the run is saved.
pub(crate) fn refuse_foreign_history(options: &HistoryOptions) -> Result<(), Failure> {
    if options.no_history {
        return Ok(());
    }
    let Destination::At(place) = HistoryEnvironment::real().place(options.history.as_deref())
    else {
        return Ok(());
    };
    match history_answer(&resolve_folder(place)?, refuse_foreign) {
        Err(Failure::History(error)) if error.is_refusal() => Err(Failure::History(error)),
        // As of an output: a mistyped path costs no run. That of the environment was typed long
        // ago, and its mount may be missing tonight: the run is measured, and warns.
        Err(Failure::History(error)) if options.history.is_some() && error.lacks_folder() => {
            Err(Failure::Usage(error.to_string()))
        }
        _ => Ok(()),
    }
}

/// Begins a journal for each of these records, by their ids; none where one cannot be begun.
pub(crate) fn start_journals(options: &HistoryOptions, run_ids: &[String]) -> Journals {
    let mut journals = Vec::new();
    for run_id in run_ids {
        journals.extend(start_journal(options, run_id).map(Arc::new));
    }
    // The reader of the history removes those that hold nothing.
    if journals.len() < run_ids.len() {
        journals.clear();
    }
    Journals::new(journals)
}

/// Begins the journal of a run, in bounded time; `None` where no history is kept. Trouble with it
/// is reported when the run is saved.
fn start_journal(options: &HistoryOptions, run_id: &str) -> Option<Journal> {
    if options.no_history {
        return None;
    }
    let Destination::At(place) = HistoryEnvironment::real().place(options.history.as_deref())
    else {
        return None;
    };
    let real_place = resolve_folder(place).ok()?;
    let id = run_id.to_owned();
    let label = options.label.clone();
    history_answer(&real_place, move |place| {
        Journal::start(place, &id, label.as_deref())
    })
    .ok()
}

/// The journal from which an acceptance test of this disk goes on; `None` where no history is kept.
pub(crate) fn test_journal(
    options: &HistoryOptions,
    identity: &TargetIdentity,
) -> Result<Option<TestJournal>, Failure> {
    if options.no_history {
        return Ok(None);
    }
    let Destination::At(place) = HistoryEnvironment::real().place(options.history.as_deref())
    else {
        return Ok(None);
    };
    TestJournal::beside(&resolve_folder(place)?, identity).map(Some)
}

/// Saves a record from another machine. Returns whether it was new, and a warning where a damaged
/// history was renamed.
pub(crate) fn import(
    record: Record,
    label: Option<&str>,
    history: Option<&Path>,
) -> Result<(SaveOutcome, Option<SaveNote>), Failure> {
    let place = history_place(history)?;
    let run_label = label.map(str::to_owned);
    let saved = history_answer(&place, move |place| {
        let run = NewRun {
            record: &record,
            page: None,
            label: run_label.as_deref(),
            source: RunSource::Imported,
        };
        save(place, &run)
    })?;
    Ok((saved.outcome, damage_warning(&place.path, &saved)))
}

/// The warning after a damaged history was renamed.
fn damage_warning(path: &Path, saved: &SaveReport) -> Option<SaveNote> {
    let damaged = saved.moved.as_ref()?;
    Some(SaveNote::Warning(format!(
        "the history {} was damaged ({}) and is now {}. A new one begins with this run; the \
         sqlite3 program's .recover may still read old runs",
        path.display(),
        damaged.what,
        damaged.path.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_is_in_the_future_only_beyond_the_step_of_a_clock() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        assert!(!is_after("2026-11-30T12:01:00Z", now));
        assert!(is_after("2026-11-30T12:01:01Z", now));
        assert!(!is_after("unreadable", now));
    }
}
