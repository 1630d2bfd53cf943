//! Adds runs to the history that ended before they were saved, from their journals, before a verb
//! reads it: `latest` is the newest run also where that run was killed.

use super::place::{empty_text, history_answer, history_place, open_if_there};
use super::reference::short_id;
use crate::failure::Failure;
use crate::stdio::{colored_record_page, eprint_line};
use diskproof_analysis::again::judged_quietly;
use diskproof_history::{
    History, HistoryPlace, LeftRecord, LeftRun, NewRun, runs_left_behind, save,
};
use diskproof_model::document::DocumentError;
use diskproof_model::record::Record;
use diskproof_report::terminal::Detail;
use std::path::Path;

/// Opens the history with the runs that were killed in it. Fails where there is no history yet.
pub(crate) fn open(history: Option<&Path>) -> Result<History, Failure> {
    let place = history_place(history)?;
    match open_recovered(&place)? {
        Some(history) => Ok(history),
        None => Err(Failure::Usage(empty_text(&place.path))),
    }
}

/// Opens the history with the runs that were killed in it; `None` when there is no file.
pub(crate) fn open_recovered(place: &HistoryPlace) -> Result<Option<History>, Failure> {
    match recover_unsaved_runs(place) {
        Ok(notes) => {
            for note in notes {
                eprint_line(&note);
            }
        }
        // Another user's history may be readable in a folder that cannot be listed.
        Err(error) => eprint_line(&format!(
            "runs that were killed are not looked for: {error}"
        )),
    }
    open_if_there(place)
}

/// Adds the runs that were killed, or could not be saved at their end, to the history as far as
/// they got. Returns notes for the user: a run that cannot be added hides no other one.
fn recover_unsaved_runs(place: &HistoryPlace) -> Result<Vec<String>, Failure> {
    let left = history_answer(place, runs_left_behind)?;
    let mut notes = Vec::new();
    for error in left.errors {
        notes.push(format!("a run that had not been saved stays: {error}"));
    }
    for run in left.runs {
        let id = short_id(&run.run_id).to_owned();
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
    }
    Ok(notes)
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
    let page = colored_record_page(&record, Detail::Whole);
    history_answer(place, move |place| {
        let new = NewRun {
            record: &record,
            page: Some(&page),
            label: run.label.as_deref(),
        };
        save(place, &new)?;
        run.end()
    })?;
    Ok(Recovered::Saved)
}
