//! Adds runs to the history that ended before they were saved, from their journals, before a verb
//! reads it: `latest` is the newest run also where that run was killed.

use super::place::{empty_text, history_answer, history_place, open_if_there};
use super::short_id::short_id;
use crate::failure::Failure;
use crate::stdio::{colored_style, eprint_line};
use diskproof_analysis::again::judged_quietly;
use diskproof_history::{
    History, HistoryPlace, LeftRecord, LeftRun, NewRun, RunSource, runs_left_behind, save,
};
use diskproof_model::document::DocumentError;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use diskproof_report::terminal::{Detail, record_page};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Opens the history with the runs that were killed in it. Fails where there is no history yet.
pub(crate) fn open(history: Option<&Path>) -> Result<History, Failure> {
    let place = history_place(history)?;
    match open_recovered(&place)?.history {
        Some(history) => Ok(history),
        None => Err(Failure::Usage(empty_text(&place.path))),
    }
}

/// A history to which the runs that were killed were added.
pub(crate) struct RecoveredHistory {
    /// `None` when there is no file.
    pub(crate) history: Option<History>,
    /// The runs that could not be added.
    pub(crate) unsaved: Vec<UnsavedRun>,
}

/// A run that is not in the history, although it may be the newest one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UnsavedRun {
    /// Names it in a message: its id, or the error that hides it.
    pub(crate) name: String,
    /// What its journal holds; `None` where that cannot be read.
    pub(crate) run: Option<Box<SavedRun>>,
}

/// Opens the history with the runs that were killed in it.
pub(crate) fn open_recovered(place: &HistoryPlace) -> Result<RecoveredHistory, Failure> {
    let recovery = match recover_unsaved_runs(place) {
        Ok(recovery) => recovery,
        // Another user's history may be readable in a folder that cannot be listed.
        Err(error) => Recovery {
            notes: vec![format!("runs that were killed are not looked for: {error}")],
            unsaved: vec![UnsavedRun {
                name: format!("a run that was killed ({error})"),
                run: None,
            }],
        },
    };
    for note in recovery.notes {
        note_once(note);
    }
    Ok(RecoveredHistory {
        history: open_if_there(place)?,
        unsaved: recovery.unsaved,
    })
}

/// Prints a note, unless this process has: a command that reads several runs opens the history for
/// each, and a journal that cannot be taken stays.
fn note_once(note: String) {
    static NOTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !noted.contains(&note) {
        eprint_line(&note);
        noted.insert(note);
    }
}

/// The outcome for all runs that were killed.
struct Recovery {
    /// For the user.
    notes: Vec<String>,
    unsaved: Vec<UnsavedRun>,
}

/// Adds the runs that were killed, or could not be saved at their end, to the history as far as
/// they got. A run that cannot be added hides no other one.
fn recover_unsaved_runs(place: &HistoryPlace) -> Result<Recovery, Failure> {
    let left = history_answer(place, runs_left_behind)?;
    let mut notes = Vec::new();
    let mut unsaved = Vec::new();
    for error in left.errors {
        notes.push(format!("a run that had not been saved stays: {error}"));
        unsaved.push(UnsavedRun {
            name: format!("a run that cannot be read ({error})"),
            run: None,
        });
    }
    for run in left.runs {
        let id = short_id(&run.run_id).to_owned();
        let stays = UnsavedRun {
            name: format!("run {id}"),
            run: short_form(&run).map(Box::new),
        };
        let journal = run.path();
        let why = match recover(place, run) {
            Ok(Recovered::Nothing) => continue,
            Ok(Recovered::Saved) => {
                notes.push(format!(
                    "run {id} had not been saved at its end; what it had measured is saved now"
                ));
                continue;
            }
            // Its own program can save it.
            Ok(Recovered::Unreadable(error @ DocumentError::OtherVersion { .. })) => {
                error.to_string()
            }
            Ok(Recovered::Unreadable(error)) => format!("it is damaged ({error}). Remove it"),
            Err(error) => error.to_string(),
        };
        notes.push(format!(
            "run {id} had not been saved at its end, and what it had measured stays in {}: {why}",
            journal.display()
        ));
        unsaved.push(stays);
    }
    Ok(Recovery { notes, unsaved })
}

/// The short form of a run that was killed; `None` where its journal cannot be read.
fn short_form(run: &LeftRun) -> Option<SavedRun> {
    match &run.measured {
        LeftRecord::Record(record) => Some(SavedRun::from_record(record, run.label.as_deref())),
        LeftRecord::Nothing | LeftRecord::Unreadable(_) => None,
    }
}

/// What a run that had not been saved left.
enum Recovered {
    /// It had not measured anything.
    Nothing,
    /// The run is in the history now.
    Saved,
    /// Its journal cannot be read, by this program at least.
    Unreadable(DocumentError),
}

/// Adds a run to the history, and removes its journal.
fn recover(place: &HistoryPlace, run: LeftRun) -> Result<Recovered, Failure> {
    let stored = match &run.measured {
        LeftRecord::Record(stored) => Record::clone(stored),
        LeftRecord::Unreadable(error) => return Ok(Recovered::Unreadable(error.clone())),
        LeftRecord::Nothing => {
            history_answer(place, move |_| run.end())?;
            return Ok(Recovered::Nothing);
        }
    };
    let record = judged_quietly(stored);
    let page = record_page(&record, Detail::Whole, &colored_style());
    history_answer(place, move |place| {
        let new = NewRun {
            record: &record,
            page: Some(&page),
            label: run.label.as_deref(),
            source: RunSource::Left,
        };
        save(place, &new)?;
        run.end()
    })?;
    Ok(Recovered::Saved)
}
