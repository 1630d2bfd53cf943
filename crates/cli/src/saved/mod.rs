//! Saved runs: the flags of the history, the messages of a save, and the record that an argument
//! names. Independent of SQL.

mod anonymous;
mod document;
mod earlier;
mod journals;
mod place;
mod stream;
mod unfinished;

use crate::failure::Failure;
use crate::stdio::{Verbosity, colored_record_page, eprint_line};
pub(crate) use anonymous::anonymize;
use diskproof_analysis::again::judged_quietly;
use diskproof_history::{
    History, HistoryError, HistoryPlace, Journal, LeftRecord, LeftRun, NewRun, SaveOutcome,
    SaveReport, StoredRun, refuse_foreign, runs_left_behind, save,
};
use diskproof_model::document::DocumentError;
use diskproof_model::record::Record;
use diskproof_model::target::TargetIdentity;
use diskproof_report::terminal::Detail;
pub(crate) use document::{
    SavedDocument, find_within_limit, judged_record, open_document, read_document, read_page,
    saved_record,
};
use document::{from_file, is_file, judged};
pub(crate) use earlier::{RunKey, capacities, disk_access, earlier_runs, runs_before};
use jiff::{SignedDuration, Timestamp};
pub(crate) use journals::{Journals, KILLED, LeftInJournal, end_journals, leave_in_journal};
use place::{Destination, HistoryEnvironment, NOWHERE, history_answer, reached};
pub(crate) use place::{
    empty_text, history_place, make_history, open, open_if_there, register_history, state_folder,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
pub(crate) use stream::{RefusedPart, Streamed, read_stream};
pub(crate) use unfinished::{DiskKey, InHistory, TestJournal};

/// Digits of a shortened run id: unique among millions of runs, and narrow enough for a list.
pub(crate) const SHORT_ID_DIGITS: usize = 8;
/// Fewer digits are more likely a mistyped label.
const ID_PREFIX_DIGITS_MIN: usize = 4;
/// A clock that is set while a run is saved may be so much behind its start.
const CLOCK_STEP: SignedDuration = SignedDuration::from_secs(60);
/// Digits of a whole run id.
const RUN_ID_DIGITS: usize = 32;

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
        Destination::At(place) => match reached(place) {
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
    };
    match save(&place, &run) {
        Ok(saved) => {
            let mut notes = Vec::new();
            notes.extend(damage_warning(&place.path, &saved));
            let id = short_id(&record.run_id);
            notes.push(SaveNote::Saved(match label {
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

/// Refuses, before anything is measured, a history that the user named and that is no file, or
/// would need one which diskproof did not make. Any other trouble with it is reported when the run
/// is saved.
pub(crate) fn refuse_foreign_history(options: &HistoryOptions) -> Result<(), Failure> {
    if options.no_history {
        return Ok(());
    }
    let Destination::At(place) = HistoryEnvironment::real().place(options.history.as_deref())
    else {
        return Ok(());
    };
    match history_answer(&reached(place)?, refuse_foreign) {
        Err(Failure::History(error)) if error.is_refusal() => Err(Failure::History(error)),
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
    let real_place = reached(place).ok()?;
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
    TestJournal::beside(&reached(place)?, identity).map(Some)
}

/// Adds the runs that were killed, or could not be saved at their end, to the history as far as
/// they got. Returns notes for the user: a run that cannot be added hides no other one.
pub(crate) fn recover_unsaved_runs(place: &HistoryPlace) -> Result<Vec<String>, Failure> {
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

/// The first digits of a run's id, as lists show it.
pub(crate) fn short_id(run_id: &str) -> &str {
    run_id.get(..SHORT_ID_DIGITS).unwrap_or(run_id)
}

/// The record that `reference` names: a file, `latest`, `latest~N`, a label (its newest run) or the
/// beginning of a run's id.
pub(crate) fn load(reference: &str, history: Option<&Path>) -> Result<Record, Failure> {
    if let Some(record) = record_of_file(reference)? {
        return Ok(record);
    }
    let history = open(history)?;
    let id = run_id(&history, reference)?;
    Ok(get(&history, &id)?.record)
}

/// Loads a file, also one that is named like a run, such as `latest`.
pub(crate) fn load_file(file: &str) -> Result<Record, Failure> {
    if file == "-" || Path::new(file).is_absolute() {
        load(file, None)
    } else {
        load(&format!("./{file}"), None)
    }
}

/// Every record that `reference` names, without its data: all runs of a label, the newest first;
/// otherwise the one that [`load`] finds.
pub(crate) fn load_all(reference: &str, history: Option<&Path>) -> Result<Vec<Record>, Failure> {
    if let Some(record) = record_of_file(reference)? {
        return Ok(vec![record.figures_only()]);
    }
    let history = open(history)?;
    let mut records = Vec::new();
    for id in &ids_named(&history, reference)? {
        records.push(get(&history, id)?.record.figures_only());
    }
    Ok(records)
}

/// The runs of a label, the newest first; otherwise the one that `reference` names.
fn ids_named(history: &History, reference: &str) -> Result<Vec<String>, Failure> {
    let mut ids = match parse_latest(reference) {
        Some(_) => Vec::new(),
        None => history.labelled(reference)?,
    };
    if ids.is_empty() {
        ids.push(run_id(history, reference)?);
    }
    Ok(ids)
}

/// Every record of the history that `reference` names, with its data: all runs of a label, the
/// newest first; otherwise one run.
pub(crate) fn load_all_whole(
    reference: &str,
    history: Option<&Path>,
) -> Result<Vec<Record>, Failure> {
    let history = open(history)?;
    let mut records = Vec::new();
    for id in &ids_named(&history, reference)? {
        records.push(get(&history, id)?.record);
    }
    Ok(records)
}

/// The run or the comparison that `reference` names.
pub(crate) fn find(reference: &str, history: Option<&Path>) -> Result<SavedDocument, Failure> {
    if let Some(saved) = from_file(reference)? {
        return Ok(saved);
    }
    let history = open(history)?;
    let id = run_id(&history, reference)?;
    Ok(SavedDocument::Run(Box::new(get(&history, &id)?)))
}

/// The record in a file; `None` when `reference` does not look like a file.
fn record_of_file(reference: &str) -> Result<Option<Record>, Failure> {
    match from_file(reference)? {
        None => Ok(None),
        Some(SavedDocument::Run(stored)) => Ok(Some(stored.record)),
        Some(SavedDocument::Comparison(_)) => Err(Failure::Usage(format!(
            "{reference} is a comparison, not a run. 'diskproof show' prints it and names its runs"
        ))),
        Some(SavedDocument::Fleet(_)) => Err(Failure::Usage(format!(
            "{reference} is a fleet of runs, not a run. 'diskproof show' prints it and names its \
             runs"
        ))),
    }
}

/// The run with this id as this program judges it.
fn get(history: &History, id: &str) -> Result<StoredRun, Failure> {
    match history.get(id)? {
        Some(stored) => Ok(judged(stored, short_id(id))),
        None => Err(Failure::Usage(format!(
            "another process has just removed run {id} from the history"
        ))),
    }
}

/// The complete id of the run that `reference` names.
pub(crate) fn run_id(history: &History, reference: &str) -> Result<String, Failure> {
    if let Some(latest) = parse_latest(reference) {
        let Latest::RunsBack(back) = latest else {
            let why = "not a number after latest~; latest~1 is the run before the newest";
            return Err(no_such_run(reference, why));
        };
        return match history.nth_newest(back)? {
            Some(id) => Ok(id),
            None => Err(no_such_run(reference, "the history has fewer runs")),
        };
    }
    if let Some(id) = history.labelled(reference)?.into_iter().next() {
        return Ok(id);
    }
    if reference.len() < ID_PREFIX_DIGITS_MIN || !is_hex(reference) {
        let why = "no run has this label, and an id is at least 4 hexadecimal digits";
        return Err(no_such_run(reference, why));
    }
    let ids = history.ids(&reference.to_ascii_lowercase())?;
    match &ids[..] {
        [] => Err(no_such_run(reference, "no run has this id or label")),
        [id] => Ok(id.clone()),
        _ => {
            let count = ids.len();
            let why = format!("{count} run ids start with this; write more of the id");
            Err(no_such_run(reference, &why))
        }
    }
}

fn no_such_run(reference: &str, why: &str) -> Failure {
    Failure::Usage(format!(
        "'{reference}': {why}. 'diskproof history' lists the runs"
    ))
}

/// True if the name refers to a saved run. False where the history cannot be read.
pub(crate) fn names_run(name: &str, history: Option<&Path>) -> bool {
    let Ok(place) = history_place(history) else {
        return false;
    };
    match open_if_there(&place) {
        Ok(Some(history)) => run_id(&history, name).is_ok(),
        Ok(None) | Err(_) => false,
    }
}

/// Longer labels would not fit into a list.
const LABEL_CHARS_MAX: usize = 40;
/// The reference to the newest run.
const LATEST: &str = "latest";

/// Reads a label, which must not look like anything else that names a run.
pub(crate) fn parse_label(text: &str) -> Result<String, String> {
    let problem = if text.is_empty() {
        "is empty"
    } else if text.chars().count() > LABEL_CHARS_MAX {
        "is longer than 40 characters"
    } else if text.contains(|c: char| c.is_control() || c == '/') {
        "contains a slash or a control character"
    } else if text.trim() != text {
        "begins or ends with a space"
    } else if text == LATEST || text.starts_with("latest~") {
        "already names the newest run"
    } else if text == "-" || is_file(text) {
        "looks like a file"
    } else if text.len() == RUN_ID_DIGITS && is_hex(text) {
        "looks like the id of a run"
    } else {
        return Ok(text.to_owned());
    };
    Err(format!(
        "the label {problem}. Use a word or two, such as before-upgrade"
    ))
}

/// A reference to a run by its age: `latest`, `latest~2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Latest {
    /// This many runs before the newest one.
    RunsBack(u64),
    /// The text after `latest~` is no number.
    NotANumber,
}

/// The age that `reference` states; `None` for another kind of reference.
fn parse_latest(reference: &str) -> Option<Latest> {
    let suffix = reference.strip_prefix(LATEST)?;
    if suffix.is_empty() {
        return Some(Latest::RunsBack(0));
    }
    match suffix.strip_prefix('~')?.parse() {
        Ok(back) => Some(Latest::RunsBack(back)),
        Err(_) => Some(Latest::NotANumber),
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The targets of the command line; without any those that the record was measured on: the
/// directory of a file that was made for the run.
pub(crate) fn named_or_recorded(targets: &[PathBuf], record: &Record) -> Vec<PathBuf> {
    match targets {
        [] => record
            .targets
            .iter()
            .map(|target| PathBuf::from(&target.path))
            .collect(),
        targets => targets.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_that_looks_like_another_reference_is_refused() {
        for label in ["before-upgrade", "2026", "cafe", "PM9A3 neu", "v1.2"] {
            assert_eq!(parse_label(label).as_deref(), Ok(label));
        }
        let id = "0123456789abcdef0123456789abcdef";
        for label in [
            "",
            "latest",
            "latest~1",
            "a.json",
            "a/b",
            "-",
            " x",
            "a\u{1b}b",
            id,
            &"x".repeat(41),
        ] {
            assert!(parse_label(label).is_err(), "{label}");
        }
    }

    #[test]
    fn latest_with_an_optional_number_names_the_newest_runs() {
        for (reference, expected) in [
            ("latest", Some(Latest::RunsBack(0))),
            ("latest~2", Some(Latest::RunsBack(2))),
            ("latest~x", Some(Latest::NotANumber)),
            ("latest2", None),
            ("late", None),
        ] {
            assert_eq!(parse_latest(reference), expected, "{reference}");
        }
    }
}
