//! Saved runs: the path of the history, the messages of a save, and the record that an argument
//! names. Reads the environment; knows no SQL.

use crate::failure::Failure;
use crate::stderr::{Verbosity, eprint_line};
use diskproof_analysis::verdict::verdict;
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_history::{
    Folders, History, HistoryError, HistoryPlace, NewRun, SaveOutcome, SaveReport, StoredRun, save,
};
use diskproof_model::comparison::Comparison;
use diskproof_model::document::{AnyDocument, DocumentError};
use diskproof_model::limits::DOCUMENT_BYTES_MAX;
use diskproof_model::record::Record;
use rustix::process::geteuid;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Digits of a shortened run id: unique among millions of runs, and narrow enough for a list.
pub const SHORT_ID: usize = 8;
/// Fewer digits are more likely a mistyped label.
const PREFIX_MIN: usize = 4;
/// Longer labels would not fit into a list.
const LABEL_MAX: usize = 40;
/// Opening takes milliseconds, except for a pipe without a writer and a dead network filesystem.
const OPEN_LIMIT: Duration = Duration::from_secs(5);
/// 64 MiB over a slow network.
const READ_LIMIT: Duration = Duration::from_secs(60);
/// A pipe, as in `show <(diskproof check --json)`, answers when the run before it is over.
const PIPE_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Waiting for the lock of a history takes up to 20 s, checking a large one a few more.
const HISTORY_LIMIT: Duration = Duration::from_secs(60);
/// Name of the threads that read and write what is saved.
const THREAD: &str = "diskproof-saved";
/// Names the newest run.
const LATEST: &str = "latest";

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

/// The flag of verbs that read the history.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Kept {
    /// History file [default: $DISKPROOF_HISTORY, or diskproof/history.db in $XDG_STATE_HOME or
    /// ~/.local/state]
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
}

impl Kept {
    /// The flag's value.
    pub fn file(&self) -> Option<&Path> {
        self.history.as_deref()
    }
}

/// A message of a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaveNote {
    /// Printed unless --quiet.
    Note(String),
    /// The run is in the history; printed unless --quiet.
    Saved(String),
    /// Something failed.
    Warning(String),
}

/// Prints the notes of a save on stderr; warnings also with `--quiet`.
pub fn print_notes(notes: &[SaveNote], verbosity: Verbosity) {
    for note in notes {
        match note {
            SaveNote::Note(text) | SaveNote::Saved(text) => verbosity.note(text),
            SaveNote::Warning(text) => eprint_line(&format!("warning: {text}")),
        }
    }
}

/// Checks a label: it must not look like anything else that names a run.
pub fn parse_label(text: &str) -> Result<String, String> {
    let wrong = match () {
        () if text.is_empty() => "is empty",
        () if text.chars().count() > LABEL_MAX => "is longer than 40 characters",
        () if text.contains(|c: char| c.is_control() || c == '/') => {
            "holds a slash or a control character"
        }
        () if text.trim() != text => "begins or ends with a space",
        () if text == LATEST || text.starts_with("latest~") => "already names the newest run",
        () if text == "-" || is_file(text) => "looks like a file",
        () if text.len() == 32 && is_hex(text) => "looks like the id of a run",
        () => return Ok(text.to_owned()),
    };
    Err(format!(
        "the label {wrong}. Use a word or two, such as before-upgrade"
    ))
}

/// Saves a complete or partial run. Never an error: a measurement does not fail because of its
/// history.
pub fn keep(record: &Record, page: &str, options: &HistoryOptions) -> Vec<SaveNote> {
    if options.no_history {
        return Vec::new();
    }
    let place = match HistoryEnvironment::real().place(options.history.as_deref()) {
        Destination::At(place) => place,
        Destination::Off if options.label.is_none() => return Vec::new(),
        Destination::Off => {
            return vec![SaveNote::Warning(
                "--label: DISKPROOF_NO_HISTORY is set, so the run was not saved".to_owned(),
            )];
        }
        Destination::Nowhere => {
            return vec![SaveNote::Note(format!("the run was not saved: {NOWHERE}"))];
        }
    };
    let label = options.label.as_deref();
    match save(
        &place,
        &NewRun {
            record,
            page: Some(page),
            label,
        },
    ) {
        Ok(saved) => {
            let id = short(&record.run_id);
            let moved = moved(&place.path, &saved);
            let name = label.map_or(String::new(), |label| format!(", label {label}"));
            let note = SaveNote::Saved(format!(
                "saved as {id}{name}; 'diskproof show {id}' prints it again"
            ));
            moved.into_iter().chain([note]).collect()
        }
        Err(error) => vec![SaveNote::Warning(format!("the run was not saved: {error}"))],
    }
}

/// Saves a record from another machine.
pub fn import(
    record: Record,
    label: Option<&str>,
    history: Option<&Path>,
) -> Result<(SaveOutcome, Option<SaveNote>), Failure> {
    let place = place(history)?;
    let (label, there) = (label.map(str::to_owned), place.clone());
    let record = Arc::new(record);
    let saved = history_answer(&place, move || {
        save(
            &there,
            &NewRun {
                record: &record,
                page: None,
                label: label.as_deref(),
            },
        )
    })?;
    Ok((saved.outcome, moved(&place.path, &saved)))
}

/// The result of work on a history, in bounded time.
fn history_answer<T: Send + 'static>(
    place: &HistoryPlace,
    work: impl FnOnce() -> Result<T, HistoryError> + Send + 'static,
) -> Result<T, Failure> {
    match Deferred::start_or_run(THREAD, work).wait(HISTORY_LIMIT) {
        Waited::Done(result) => Ok(result?),
        Waited::TimedOut(_) | Waited::Lost => Err(Failure::History(HistoryError::NoAnswer {
            path: place.path.clone(),
            seconds: HISTORY_LIMIT.as_secs(),
        })),
    }
}

/// The warning after a damaged history was renamed.
fn moved(path: &Path, saved: &SaveReport) -> Option<SaveNote> {
    let aside = saved.set_aside.as_ref()?;
    let begun = match saved.rescued {
        0 => "The new history holds none of the old runs: no run could be read".to_owned(),
        1 => "The new history holds the one run that could still be read".to_owned(),
        n => format!("The new history holds the {n} runs that could still be read"),
    };
    let (path, moved) = (path.display(), aside.path.display());
    Some(SaveNote::Warning(format!(
        "the history {path} was damaged ({}) and is now {moved}. {begun}",
        aside.what
    )))
}

/// A run's id, shortened.
pub fn short(run_id: &str) -> &str {
    run_id.get(..SHORT_ID).unwrap_or(run_id)
}

/// The record that `reference` names: a file, `latest`, `latest~N`, a label (its newest run) or the
/// beginning of a run's id.
pub fn load(reference: &str, history: Option<&Path>) -> Result<Record, Failure> {
    if let Some(record) = record_of_file(reference)? {
        return Ok(record);
    }
    let history = open(history)?;
    let id = run_id(&history, reference)?;
    Ok(get(&history, &id)?.record)
}

/// Every record that `reference` names: all runs of a label, the newest first; otherwise the one
/// that [`load`] finds.
pub fn load_all(reference: &str, history: Option<&Path>) -> Result<Vec<Record>, Failure> {
    if let Some(record) = record_of_file(reference)? {
        return Ok(vec![record]);
    }
    let history = open(history)?;
    let ids = match is_latest(reference) {
        Some(_) => Vec::new(),
        None => history.labelled(reference)?,
    };
    let ids = if ids.is_empty() {
        vec![run_id(&history, reference)?]
    } else {
        ids
    };
    ids.iter().map(|id| Ok(get(&history, id)?.record)).collect()
}

/// A saved document.
#[derive(Debug)]
pub enum SavedDocument {
    /// A run; from the history, with its printed result.
    Run(Box<StoredRun>),
    /// A comparison; only files hold these.
    Comparison(Box<Comparison>),
}

/// The run or the comparison that `reference` names.
pub fn find(reference: &str, history: Option<&Path>) -> Result<SavedDocument, Failure> {
    let found = match from_file(reference)? {
        Some(saved) => saved,
        None => {
            let history = open(history)?;
            let id = run_id(&history, reference)?;
            SavedDocument::Run(Box::new(get(&history, &id)?))
        }
    };
    Ok(with_verdict(found))
}

/// Adds the verdict to a record of an earlier version, which has none.
fn with_verdict(mut saved: SavedDocument) -> SavedDocument {
    if let SavedDocument::Run(stored) = &mut saved
        && stored.record.verdict.is_none()
    {
        stored.record.verdict = Some(verdict(&stored.record));
    }
    saved
}

/// The record in a file; `None` when `reference` does not look like a file.
fn record_of_file(reference: &str) -> Result<Option<Record>, Failure> {
    match from_file(reference)? {
        None => Ok(None),
        Some(SavedDocument::Run(stored)) => Ok(Some(stored.record)),
        Some(SavedDocument::Comparison(_)) => Err(Failure::Usage(format!(
            "{reference} is a comparison, and a run is needed. 'diskproof show' prints the \
                 comparison and names its runs"
        ))),
    }
}

fn get(history: &History, id: &str) -> Result<StoredRun, Failure> {
    history.get(id)?.ok_or_else(|| {
        Failure::Usage(format!(
            "another process has just removed run {id} from the history"
        ))
    })
}

/// The complete id of the run that `reference` names.
pub fn run_id(history: &History, reference: &str) -> Result<String, Failure> {
    let unknown = |why: &str| {
        Err(Failure::Usage(format!(
            "'{reference}': {why}. 'diskproof history' lists the runs"
        )))
    };
    if let Some(back) = is_latest(reference) {
        let Some(back) = back else {
            return unknown("not a number after latest~; latest~1 is the run before the newest");
        };
        return match history.nth_newest(back)? {
            Some(id) => Ok(id),
            None => unknown("the history has fewer runs"),
        };
    }
    if let Some(id) = history.labelled(reference)?.into_iter().next() {
        return Ok(id);
    }
    if reference.len() < PREFIX_MIN || !is_hex(reference) {
        return unknown("no run has this label, and an id is at least 4 hexadecimal digits");
    }
    let ids = history.ids(&reference.to_ascii_lowercase())?;
    match &ids[..] {
        [] => unknown("no run has this id or label"),
        [id] => Ok(id.clone()),
        _ => unknown(&format!(
            "{} run ids begin with this; write more of the id",
            ids.len()
        )),
    }
}

/// How many runs before the newest; `Some(None)` when that is not a number.
fn is_latest(reference: &str) -> Option<Option<u64>> {
    let back = reference.strip_prefix(LATEST)?;
    match back.strip_prefix('~') {
        Some(back) => Some(back.parse().ok()),
        None if back.is_empty() => Some(Some(0)),
        None => None,
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Opens the history to read it.
pub fn open(history: Option<&Path>) -> Result<History, Failure> {
    let place = place(history)?;
    open_if_there(&place)?.ok_or_else(|| Failure::Usage(empty_text(&place.path)))
}

/// Opens the history to read it; `None` when there is no file.
pub fn open_if_there(place: &HistoryPlace) -> Result<Option<History>, Failure> {
    let there = place.clone();
    history_answer(place, move || History::open(&there))
}

/// The message for a history that does not exist or is empty.
pub fn empty_text(path: &Path) -> String {
    format!(
        "the history {} is empty. Each run is saved there; start with 'diskproof check'",
        path.display()
    )
}

const NOWHERE: &str =
    "neither HOME nor XDG_STATE_HOME is set. Name a file with --history FILE or DISKPROOF_HISTORY";

/// The place of the history, for verbs that need one.
pub fn place(history: Option<&Path>) -> Result<HistoryPlace, Failure> {
    // DISKPROOF_NO_HISTORY prevents saving, not reading.
    match (HistoryEnvironment {
        off: false,
        ..HistoryEnvironment::real()
    })
    .place(history)
    {
        Destination::At(place) => Ok(place),
        Destination::Off | Destination::Nowhere => {
            Err(Failure::Usage(format!("there is no history: {NOWHERE}")))
        }
    }
}

/// The environment variables that decide where the history lies.
#[derive(Debug, Clone)]
struct HistoryEnvironment {
    /// DISKPROOF_HISTORY.
    named: Option<OsString>,
    /// DISKPROOF_NO_HISTORY.
    off: bool,
    /// XDG_STATE_HOME.
    state_home: Option<OsString>,
    /// HOME.
    home: Option<OsString>,
    /// Root's own home, where this is root.
    root_home: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Destination {
    At(HistoryPlace),
    Off,
    Nowhere,
}

impl HistoryEnvironment {
    fn real() -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            named: set("DISKPROOF_HISTORY"),
            off: set("DISKPROOF_NO_HISTORY").is_some(),
            state_home: set("XDG_STATE_HOME"),
            home: set("HOME"),
            root_home: geteuid().is_root().then(root_home),
        }
    }

    fn place(&self, flag: Option<&Path>) -> Destination {
        let named = |path: &Path| {
            Destination::At(HistoryPlace {
                path: path.to_owned(),
                folders: Folders::Expected,
            })
        };
        if let Some(path) = flag {
            return named(path);
        }
        if self.off {
            return Destination::Off;
        }
        if let Some(path) = &self.named {
            return named(Path::new(path));
        }
        match self.state_folder() {
            Some(folder) => Destination::At(HistoryPlace {
                path: folder.join("diskproof/history.db"),
                folders: Folders::Made,
            }),
            None => Destination::Nowhere,
        }
    }

    /// The state folder of the XDG base directory specification, which ignores relative paths.
    fn state_folder(&self) -> Option<PathBuf> {
        let absolute = |value: &Option<OsString>| {
            value
                .as_ref()
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let state =
            absolute(&self.state_home).or_else(|| Some(absolute(&self.home)?.join(".local/state")));
        match &self.root_home {
            // Under sudo these variables may still name the user's folder. Files of root there would
            // lock the user out of their own history.
            Some(own) if state.as_ref().is_some_and(|folder| belongs_to_user(folder)) => {
                Some(own.join(".local/state"))
            }
            _ => state,
        }
    }
}

/// Whether the folder, or its nearest existing ancestor, belongs to a user other than root.
fn belongs_to_user(folder: &Path) -> bool {
    folder
        .ancestors()
        .find_map(|path| path.metadata().ok())
        .is_some_and(|facts| facts.uid() != 0)
}

/// Root's home by passwd(5), otherwise `/root`.
fn root_home() -> PathBuf {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let home = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2) == Some(&"0")).then(|| fields.get(5).copied())?
    });
    home.filter(|home| home.starts_with('/'))
        .unwrap_or("/root")
        .into()
}

fn is_file(reference: &str) -> bool {
    reference.contains('/')
        || [".json", ".html"]
            .iter()
            .any(|extension| reference.ends_with(extension))
}

/// The document in a file or on stdin (`-`); `None` when `reference` does not look like a file.
fn from_file(reference: &str) -> Result<Option<SavedDocument>, Failure> {
    let unreadable = |error: io::Error| Failure::Usage(format!("cannot read {reference}: {error}"));
    let text = if reference == "-" {
        // The program before the pipe decides how long this takes.
        read_up_to_max(std::io::stdin().lock())
    } else if is_file(reference) {
        read_document(Path::new(reference))
    } else {
        return Ok(None);
    };
    parse(&text.map_err(unreadable)?)
        .map(Some)
        .map_err(|why| Failure::Usage(format!("{reference}: {why}")))
}

/// Reads a file or a named pipe, in bounded time: a pipe without a writer and a network filesystem
/// without a server never answer.
pub(crate) fn read_document(path: &Path) -> io::Result<String> {
    let name = path.to_owned();
    let file = answer(OPEN_LIMIT, move || File::open(name))?;
    let limit = match file.metadata()?.is_file() {
        true => READ_LIMIT,
        false => PIPE_LIMIT,
    };
    let file = Arc::new(file);
    answer(limit, move || read_up_to_max(&*file))
}

/// The result of work that a filesystem may hold up for ever.
fn answer<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match Deferred::start_or_run(THREAD, work).wait(limit) {
        Waited::Done(result) => result,
        Waited::TimedOut(_) | Waited::Lost => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer within {} s", limit.as_secs()),
        )),
    }
}

/// Reads text up to the limit of a document: a device such as /dev/zero never ends.
fn read_up_to_max(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    let most = DOCUMENT_BYTES_MAX as u64;
    if from.take(most + 1).read_to_string(&mut text)? as u64 > most {
        Err(io::Error::other(DocumentError::TooLarge))
    } else {
        Ok(text)
    }
}

/// Reads a record or comparison from JSON or from a report page.
fn parse(text: &str) -> Result<SavedDocument, String> {
    let is_page = text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('<');
    let page = if is_page {
        Some(diskproof_report::html::page_json(text).map_err(|error| error.to_string())?)
    } else {
        None
    };
    let json = page.as_deref().unwrap_or(text);
    match AnyDocument::from_json(json).map_err(|error| error.to_string())? {
        AnyDocument::Record(record) => Ok(SavedDocument::Run(Box::new(StoredRun {
            record: *record,
            page: None,
            label: None,
        }))),
        AnyDocument::Comparison(comparison) => Ok(SavedDocument::Comparison(comparison)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> HistoryEnvironment {
        HistoryEnvironment {
            named: None,
            off: false,
            state_home: None,
            home: None,
            root_home: None,
        }
    }

    fn value(text: &str) -> Option<OsString> {
        Some(text.into())
    }

    fn at(path: &str, folders: Folders) -> Destination {
        Destination::At(HistoryPlace {
            path: path.into(),
            folders,
        })
    }

    #[test]
    fn the_flag_beats_the_variables_and_they_beat_the_home() {
        let home = HistoryEnvironment {
            home: value("/home/ann"),
            ..environment()
        };
        let made = at("/home/ann/.local/state/diskproof/history.db", Folders::Made);
        assert_eq!(home.place(None), made);
        let state = HistoryEnvironment {
            state_home: value("/state"),
            ..home.clone()
        };
        assert_eq!(
            state.place(None),
            at("/state/diskproof/history.db", Folders::Made)
        );
        assert_eq!(
            HistoryEnvironment {
                state_home: value("state"),
                ..home.clone()
            }
            .place(None),
            made,
            "a relative one is to be ignored"
        );
        let named = HistoryEnvironment {
            named: value("h.db"),
            ..state
        };
        assert_eq!(named.place(None), at("h.db", Folders::Expected));
        assert_eq!(
            HistoryEnvironment {
                off: true,
                ..named.clone()
            }
            .place(None),
            Destination::Off
        );
        assert_eq!(
            HistoryEnvironment { off: true, ..named }.place(Some(Path::new("other.db"))),
            at("other.db", Folders::Expected)
        );
        assert_eq!(environment().place(None), Destination::Nowhere);
        assert_eq!(
            HistoryEnvironment {
                home: value(""),
                ..environment()
            }
            .place(None),
            Destination::Nowhere
        );
    }

    #[test]
    fn root_does_not_write_into_the_home_of_another() {
        if !geteuid().is_root() {
            eprintln!("SKIPPED: root_does_not_write_into_the_home_of_another: root");
            return;
        }
        let home = std::env::temp_dir().join(format!("diskproof-home-{}", std::process::id()));
        std::fs::create_dir(&home).unwrap();
        let sudo = HistoryEnvironment {
            home: Some(home.clone().into()),
            root_home: Some("/root".into()),
            ..environment()
        };
        let own = sudo.place(None);
        std::os::unix::fs::chown(&home, Some(65534), None).unwrap();
        let anothers = sudo.place(None);
        std::fs::remove_dir(&home).unwrap();
        assert_eq!(
            own,
            Destination::At(HistoryPlace {
                path: home.join(".local/state/diskproof/history.db"),
                folders: Folders::Made
            })
        );
        assert_eq!(
            anothers,
            at("/root/.local/state/diskproof/history.db", Folders::Made)
        );
    }

    #[test]
    fn a_label_looks_like_nothing_else() {
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
    fn what_is_no_record_is_told_from_a_damaged_and_a_newer_one() {
        assert!(parse("<html>").unwrap_err().contains("no record"));
        assert!(
            parse("{\"schema\": \"diskproof.record/2\"}")
                .unwrap_err()
                .contains("newer")
        );
        for text in ["", "[]", "{}", "{\"schema\": 1}", "{\"plan\": {}}"] {
            assert!(
                parse(text).unwrap_err().contains("not a diskproof record"),
                "{text}"
            );
        }
        assert!(
            parse("{\"schema\": \"diskproof.record/1\"}")
                .unwrap_err()
                .contains("damaged")
        );
        assert!(
            parse("{\"fio version\" : \"diskproof-0.1.0\"}")
                .unwrap_err()
                .contains("this is fio's JSON")
        );
    }

    #[test]
    fn only_the_word_latest_means_the_newest() {
        assert_eq!(
            (is_latest("latest"), is_latest("latest~2")),
            (Some(Some(0)), Some(Some(2)))
        );
        assert_eq!(
            (
                is_latest("latest~x"),
                is_latest("latest2"),
                is_latest("late")
            ),
            (Some(None), None, None)
        );
    }
}
