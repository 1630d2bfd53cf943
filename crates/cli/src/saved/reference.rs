//! Finds the run that an argument names: by a file, `latest`, a label, or the beginning of its id.

use super::document::{SavedDocument, from_file, is_file, judged};
use super::place::{history_place, open_if_there};
use super::recovery::open;
use super::short_id::short_id;
use crate::failure::Failure;
use diskproof_history::{History, StoredRun};
use diskproof_model::record::Record;
use std::path::{Path, PathBuf};

/// Fewer digits are more likely a mistyped label.
const ID_PREFIX_DIGITS_MIN: usize = 4;
/// Digits of a whole run id.
const RUN_ID_DIGITS: usize = 32;

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
