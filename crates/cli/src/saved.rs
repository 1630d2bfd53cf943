//! Saved runs: where the history lies, what is said when a run is saved, and which record a word
//! means. Knows the environment, not SQL.

use crate::failure::Failure;
use crate::stderr::{Verbosity, eprint_line};
use diskproof_analysis::verdict::verdict;
use diskproof_history::{Folders, History, NewRun, Outcome, Place, Stored, save};
use diskproof_model::comparison::{COMPARISON_SCHEMA, Comparison};
use diskproof_model::record::{RECORD_SCHEMA, Record};
use rustix::process::geteuid;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Digits of a run's id that tell it from all others of a lifetime, and fit into a list.
pub const SHORT_ID: usize = 8;
/// Fewer digits are too likely to be a mistake.
const PREFIX_MIN: usize = 4;
/// Longer labels would not fit into a list.
const LABEL_MAX: usize = 40;
/// Longer files are no records: those of hours, with every series and histogram, have a few
/// megabytes.
const RECORD_BYTES_MAX: u64 = 256 << 20;
/// Names the newest run.
const LATEST: &str = "latest";

/// Flags of measuring verbs: whether and where a run is saved.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct HistoryOptions {
    /// A name for this run in the history, for 'show' and 'compare'; several runs may share one
    #[arg(long, value_name = "LABEL", value_parser = parse_label, conflicts_with = "no_history")]
    pub label: Option<String>,
    /// Save the run there [default: $DISKPROOF_HISTORY, or diskproof/history.db in $XDG_STATE_HOME
    /// or ~/.local/state]
    #[arg(long, value_name = "FILE", conflicts_with = "no_history")]
    pub history: Option<PathBuf>,
    /// Do not save the run; so does DISKPROOF_NO_HISTORY=1
    #[arg(long)]
    pub no_history: bool,
}

/// Flag of the verbs that read what is saved.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Kept {
    /// The history [default: $DISKPROOF_HISTORY, or diskproof/history.db in $XDG_STATE_HOME or
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

/// What there is to say once a run has been saved, or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// Good to know.
    Note(String),
    /// Something did not work.
    Warning(String),
}

/// Prints remarks on stderr; warnings also with `--quiet`.
pub fn print_remarks(remarks: &[Remark], verbosity: Verbosity) {
    for remark in remarks {
        match remark {
            Remark::Note(text) => verbosity.note(text),
            Remark::Warning(text) => eprint_line(&format!("warning: {text}")),
        }
    }
}

/// A label must not look like anything else that names a run.
pub fn parse_label(text: &str) -> Result<String, String> {
    let wrong = match () {
        () if text.is_empty() => "is empty",
        () if text.chars().count() > LABEL_MAX => "is longer than 40 characters",
        () if text.contains(|c: char| c.is_control() || c == '/') => {
            "holds a slash or a control character"
        }
        () if text.trim() != text => "begins or ends with a space",
        () if text == LATEST || text.starts_with("latest~") => "names the newest run already",
        () if text == "-" || is_file(text) => "looks like a file",
        () if text.len() == 32 && is_hex(text) => "looks like the id of a run",
        () => return Ok(text.to_owned()),
    };
    Err(format!(
        "the label {wrong}; take a word or two, such as before-upgrade"
    ))
}

/// Saves a run that is complete or partial. Never an error: a measurement does not fail because of
/// its history.
pub fn keep(record: &Record, page: &str, options: &HistoryOptions) -> Vec<Remark> {
    if options.no_history {
        return Vec::new();
    }
    let place = match Surroundings::real().place(options.history.as_deref()) {
        Where::At(place) => place,
        Where::Off if options.label.is_none() => return Vec::new(),
        Where::Off => {
            return vec![Remark::Warning(
                "--label: DISKPROOF_NO_HISTORY is set, so the run was not saved".to_owned(),
            )];
        }
        Where::Nowhere => return vec![Remark::Note(format!("the run was not saved: {NOWHERE}"))],
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
            let note = Remark::Note(format!(
                "saved as {id}{name}; 'diskproof show {id}' prints it again"
            ));
            moved.into_iter().chain([note]).collect()
        }
        Err(error) => vec![Remark::Warning(format!("the run was not saved: {error}"))],
    }
}

/// Saves a record from elsewhere.
pub fn import(
    record: &Record,
    label: Option<&str>,
    history: Option<&Path>,
) -> Result<(Outcome, Option<Remark>), Failure> {
    let place = place(history)?;
    let saved = save(
        &place,
        &NewRun {
            record,
            page: None,
            label,
        },
    )?;
    Ok((saved.outcome, moved(&place.path, &saved)))
}

/// What there is to say where a damaged history had to make room.
fn moved(path: &Path, saved: &diskproof_history::Saved) -> Option<Remark> {
    let aside = saved.set_aside.as_ref()?;
    let begun = match saved.rescued {
        0 => "a new one was begun, and none of the old runs could be taken over".to_owned(),
        1 => "a new one was begun with the one run that could still be read".to_owned(),
        n => format!("a new one was begun with the {n} runs that could still be read"),
    };
    let (path, moved) = (path.display(), aside.path.display());
    Some(Remark::Warning(format!(
        "the history {path} was damaged ({}) and is now {moved}; {begun}",
        aside.what
    )))
}

/// The beginning of a run's id.
pub fn short(run_id: &str) -> &str {
    run_id.get(..SHORT_ID).unwrap_or(run_id)
}

/// The record that a word means: a file, `latest`, `latest~N`, a label (the newest run of it) or
/// the beginning of a run's id.
pub fn load(reference: &str, history: Option<&Path>) -> Result<Record, Failure> {
    if let Some(record) = record_of_file(reference)? {
        return Ok(record);
    }
    let history = open(history)?;
    let id = run_id(&history, reference)?;
    Ok(get(&history, &id)?.record)
}

/// All records that a word means: every run of a label, the newest first; the one that [`load`]
/// finds for any other word.
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

/// Something that was saved.
#[derive(Debug)]
pub enum Saved {
    /// A run, with what was printed then where it comes from the history.
    Run(Box<Stored>),
    /// A comparison, which only files hold.
    Comparison(Box<Comparison>),
}

/// The run or the comparison that a word means.
pub fn find(reference: &str, history: Option<&Path>) -> Result<Saved, Failure> {
    let found = match from_file(reference)? {
        Some(saved) => saved,
        None => {
            let history = open(history)?;
            let id = run_id(&history, reference)?;
            Saved::Run(Box::new(get(&history, &id)?))
        }
    };
    Ok(with_verdict(found))
}

/// Adds the verdict to a record of an earlier version, which has none.
fn with_verdict(mut saved: Saved) -> Saved {
    if let Saved::Run(stored) = &mut saved
        && stored.record.verdict.is_none()
    {
        stored.record.verdict = Some(verdict(&stored.record));
    }
    saved
}

/// The record in a file; `None` for a word that names no file.
fn record_of_file(reference: &str) -> Result<Option<Record>, Failure> {
    match from_file(reference)? {
        None => Ok(None),
        Some(Saved::Run(stored)) => Ok(Some(stored.record)),
        Some(Saved::Comparison(_)) => {
            let why = "is a comparison, and a run is needed; 'diskproof show' prints it, and \
                       names the runs that it compared";
            Err(Failure::Usage(format!("{reference}: {why}")))
        }
    }
}

fn get(history: &History, id: &str) -> Result<Stored, Failure> {
    history
        .get(id)?
        .ok_or_else(|| Failure::Usage(format!("run {id} has just been removed from the history")))
}

/// The whole id of the run that a word means.
pub fn run_id(history: &History, reference: &str) -> Result<String, Failure> {
    let unknown = |why: &str| {
        Err(Failure::Usage(format!(
            "'{reference}': {why}; 'diskproof history' lists what there is"
        )))
    };
    if let Some(back) = is_latest(reference) {
        let Some(back) = back else {
            return unknown("write latest~1 for the run before the newest");
        };
        return match history.nth_newest(back)? {
            Some(id) => Ok(id),
            None => unknown("there are not so many runs"),
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
            "{} runs begin like this; write more of the id",
            ids.len()
        )),
    }
}

/// `Some(None)` for a number that cannot be read.
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
    History::open(&place)?.ok_or_else(|| Failure::Usage(empty_text(&place.path)))
}

/// What to do about a history that does not exist or holds nothing.
pub fn empty_text(path: &Path) -> String {
    format!(
        "the history {} is empty; every run is saved there: begin with 'diskproof check'",
        path.display()
    )
}

const NOWHERE: &str =
    "neither HOME nor XDG_STATE_HOME is set; name a file with --history FILE or DISKPROOF_HISTORY";

/// Where the history lies, for verbs that need one.
pub fn place(history: Option<&Path>) -> Result<Place, Failure> {
    // DISKPROOF_NO_HISTORY keeps runs from being saved, and nobody from looking at what was saved
    // before.
    match (Surroundings {
        off: false,
        ..Surroundings::real()
    })
    .place(history)
    {
        Where::At(place) => Ok(place),
        Where::Off | Where::Nowhere => {
            Err(Failure::Usage(format!("there is no history: {NOWHERE}")))
        }
    }
}

/// What decides where the history lies.
#[derive(Debug, Clone)]
struct Surroundings {
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
enum Where {
    At(Place),
    Off,
    Nowhere,
}

impl Surroundings {
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

    fn place(&self, flag: Option<&Path>) -> Where {
        let named = |path: &Path| {
            Where::At(Place {
                path: path.to_owned(),
                folders: Folders::Expected,
            })
        };
        if let Some(path) = flag {
            return named(path);
        }
        if self.off {
            return Where::Off;
        }
        if let Some(path) = &self.named {
            return named(Path::new(path));
        }
        match self.state_folder() {
            Some(folder) => Where::At(Place {
                path: folder.join("diskproof/history.db"),
                folders: Folders::Made,
            }),
            None => Where::Nowhere,
        }
    }

    /// The XDG base directory specification: a relative path there is to be ignored.
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
            // Under sudo these may still be the user's; files of root there would lock the user out
            // of the own history.
            Some(own) if state.as_ref().is_some_and(|folder| is_anothers(folder)) => {
                Some(own.join(".local/state"))
            }
            _ => state,
        }
    }
}

/// Whether the folder, or what is there of it, belongs to somebody else than root.
fn is_anothers(folder: &Path) -> bool {
    folder
        .ancestors()
        .find_map(|path| path.metadata().ok())
        .is_some_and(|facts| facts.uid() != 0)
}

/// From passwd(5); `/root` where that does not tell.
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

/// What is in a file, or comes through stdin (`-`); `None` for a word that names no file.
fn from_file(reference: &str) -> Result<Option<Saved>, Failure> {
    let unreadable =
        |error: io::Error| Failure::Usage(format!("{reference} cannot be read: {error}"));
    let text = if reference == "-" {
        read_up_to_max(std::io::stdin().lock())
    } else if is_file(reference) {
        File::open(reference).and_then(read_up_to_max)
    } else {
        return Ok(None);
    };
    parse(&text.map_err(unreadable)?)
        .map(Some)
        .map_err(|why| Failure::Usage(format!("{reference}: {why}")))
}

/// Something without an end, such as a device, must not fill the memory.
fn read_up_to_max(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    let read = from.take(RECORD_BYTES_MAX + 1).read_to_string(&mut text)? as u64;
    if read > RECORD_BYTES_MAX {
        Err(io::Error::other("it is larger than any record"))
    } else {
        Ok(text)
    }
}

/// The record or comparison in JSON, or in the raw-data block of a report page.
fn parse(text: &str) -> Result<Saved, String> {
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
    let schema: Schema = serde_json::from_str(json)
        .map_err(|error| format!("this is no record of diskproof: {error}"))?;
    match schema.schema.as_deref() {
        Some(RECORD_SCHEMA) => {
            let record = serde_json::from_str(json)
                .map_err(|error| format!("the record is damaged: {error}"))?;
            Ok(Saved::Run(Box::new(Stored {
                record,
                page: None,
                label: None,
            })))
        }
        Some(COMPARISON_SCHEMA) => serde_json::from_str(json)
            .map(|comparison| Saved::Comparison(Box::new(comparison)))
            .map_err(|error| format!("the comparison is damaged: {error}")),
        Some(other)
            if other.starts_with("diskproof.record/")
                || other.starts_with("diskproof.comparison/") =>
        {
            Err(format!(
                "of the format {other}; this diskproof reads {RECORD_SCHEMA} and \
                 {COMPARISON_SCHEMA}, so use a newer one"
            ))
        }
        None if schema.fio.is_some() => Err("this is JSON as fio prints it, which holds a part \
                                             of a record only; take the record, which -o \
                                             FILE.json makes"
            .to_owned()),
        _ => {
            Err("this is no record of diskproof; one is made by -o FILE.json or --json".to_owned())
        }
    }
}

#[derive(serde::Deserialize)]
struct Schema {
    schema: Option<String>,
    /// What the JSON of fio begins with.
    #[serde(rename = "fio version")]
    fio: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings() -> Surroundings {
        Surroundings {
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

    fn at(path: &str, folders: Folders) -> Where {
        Where::At(Place {
            path: path.into(),
            folders,
        })
    }

    #[test]
    fn the_flag_beats_the_variables_and_they_beat_the_home() {
        let home = Surroundings {
            home: value("/home/ann"),
            ..surroundings()
        };
        let made = at("/home/ann/.local/state/diskproof/history.db", Folders::Made);
        assert_eq!(home.place(None), made);
        let state = Surroundings {
            state_home: value("/state"),
            ..home.clone()
        };
        assert_eq!(
            state.place(None),
            at("/state/diskproof/history.db", Folders::Made)
        );
        assert_eq!(
            Surroundings {
                state_home: value("state"),
                ..home.clone()
            }
            .place(None),
            made,
            "a relative one is to be ignored"
        );
        let named = Surroundings {
            named: value("h.db"),
            ..state
        };
        assert_eq!(named.place(None), at("h.db", Folders::Expected));
        assert_eq!(
            Surroundings {
                off: true,
                ..named.clone()
            }
            .place(None),
            Where::Off
        );
        assert_eq!(
            Surroundings { off: true, ..named }.place(Some(Path::new("other.db"))),
            at("other.db", Folders::Expected)
        );
        assert_eq!(surroundings().place(None), Where::Nowhere);
        assert_eq!(
            Surroundings {
                home: value(""),
                ..surroundings()
            }
            .place(None),
            Where::Nowhere
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
        let sudo = Surroundings {
            home: Some(home.clone().into()),
            root_home: Some("/root".into()),
            ..surroundings()
        };
        let own = sudo.place(None);
        std::os::unix::fs::chown(&home, Some(65534), None).unwrap();
        let anothers = sudo.place(None);
        std::fs::remove_dir(&home).unwrap();
        assert_eq!(
            own,
            Where::At(Place {
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
                parse(text).unwrap_err().contains("no record of diskproof"),
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
                .contains("as fio prints it")
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
