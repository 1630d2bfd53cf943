//! Saves a run, in one piece: makes the file if there is none, and moves a damaged one out of the
//! way, which is never deleted. When [`save`] returns, the run survives a power cut.

use crate::error::{HistoryError, WithPath as _};
use crate::lock::PlaceLock;
use crate::ours::check;
use crate::place::{HistoryPlace, SQLITE_SUFFIXES, exists, with_suffix};
use crate::store::{History, first_fault};
use diskproof_model::document::DocumentError;
use diskproof_model::limits::DOCUMENT_BYTES_MAX;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, ToSql, params};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The effect of saving a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveReport {
    /// The effect: a run that is saved twice is there already, or an earlier state of it.
    pub outcome: SaveOutcome,
    /// The damaged history that was moved.
    pub moved: Option<MovedHistory>,
}

/// Saves a run.
///
/// The whole file is checked first: SQLite can add a run to a damaged file and then never find it
/// again. The check reads the file once (about 10 ms for a hundred runs).
pub fn save(place: &HistoryPlace, run: &NewRun<'_>) -> Result<SaveReport, HistoryError> {
    let path = place.resolved()?;
    match save_in(&path, run) {
        Ok(outcome) => Ok(SaveReport {
            outcome,
            moved: None,
        }),
        Err(HistoryError::Damaged { .. }) => {
            let moved = move_damaged(&path)?;
            let outcome = save_in(&path, run)?;
            Ok(SaveReport { outcome, moved })
        }
        Err(error) => Err(error),
    }
}

/// Makes the history where there is none. Fails where no run could be saved in it.
pub fn make_writable(place: &HistoryPlace) -> Result<(), HistoryError> {
    let mut history = match History::open_or_make(&place.resolved()?) {
        // The first run that is saved replaces it.
        Err(HistoryError::Damaged { .. }) => return Ok(()),
        other => other?,
    };
    match history.change(|_| Ok(())) {
        Err(HistoryError::Damaged { .. }) => Ok(()),
        other => other,
    }
}

/// Saves a run in the file at `path`, if that is not damaged.
fn save_in(path: &Path, run: &NewRun<'_>) -> Result<SaveOutcome, HistoryError> {
    let mut history = History::open_or_make(path)?;
    history.refuse_damaged()?;
    history.add(run)
}

/// A run to be saved.
#[derive(Debug, Clone, Copy)]
pub struct NewRun<'a> {
    /// The record of the run.
    pub record: &'a Record,
    /// The printed result, ANSI text; `None` for an imported record.
    pub page: Option<&'a str>,
    /// The user's name for the run.
    pub label: Option<&'a str>,
    /// The place from which the record comes.
    pub source: RunSource<'a>,
}

/// The place from which the record of a new run comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunSource<'a> {
    /// This program measured it here.
    Measured {
        /// Identifies the command line, where that saves several runs.
        command: Option<&'a str>,
    },
    /// The journal of a run that did not save itself.
    Left,
    /// A file, which another machine may have written.
    Imported,
}

/// The effect of a save on the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveOutcome {
    /// The run was added.
    Added,
    /// The run took the place of an earlier state of its own, from its journal.
    Replaced,
    /// A run with this id was already there and is unchanged.
    Known,
}

impl History {
    /// Adds one run. Packing takes milliseconds and happens before the lock is taken.
    fn add(&mut self, new: &NewRun<'_>) -> Result<SaveOutcome, HistoryError> {
        let mut run = SavedRun::from_record(new.record, new.label);
        match new.source {
            RunSource::Measured { command } => run.command = command.map(str::to_owned),
            RunSource::Left => {}
            RunSource::Imported => run.imported = true,
        }
        let earlier = self
            .earlier_state(new)
            .map_err(|error| self.history_error(&error))?;
        if let Some(earlier) = &earlier {
            run.imported &= earlier.imported;
            run.command = run.command.or_else(|| earlier.command.clone());
            run.label = earlier.label.clone().or(run.label);
        }
        let packed = PackedRun::new(new, &run).map_err(|what| HistoryError::Record {
            run_id: new.record.run_id.clone(),
            what,
        })?;
        self.change(|transaction| {
            // Another process may have replaced it, too, by the whole run.
            let removed = match earlier {
                Some(_) => transaction.execute(
                    "DELETE FROM runs WHERE run_id = ?1 AND partial",
                    [&run.run_id],
                )?,
                None => 0,
            };
            let row = params![
                run.run_id,
                packed.start_s,
                run.verb,
                run.host,
                run.label,
                run.note,
                run.partial,
                run.method,
                packed.summary,
                packed.record,
                packed.page
            ];
            Ok(match insert(transaction, &run, row)? {
                SaveOutcome::Added if removed > 0 => SaveOutcome::Replaced,
                outcome => outcome,
            })
        })
    }

    /// The earlier state of a run in the history that this one replaces. Its journal may have been
    /// read while the run went on, or before its record came from a file. A run that saves itself
    /// has measured all that its journal has; of the others only a whole one is surely more.
    fn earlier_state(&self, new: &NewRun<'_>) -> rusqlite::Result<Option<SavedRun>> {
        let replaces = match new.source {
            RunSource::Measured { .. } => true,
            RunSource::Left | RunSource::Imported => !new.record.partial,
        };
        if !replaces {
            return Ok(None);
        }
        let query = "SELECT label, summary FROM runs WHERE run_id = ?1 AND partial";
        let found = self
            .connection
            .query_row(query, [&new.record.run_id], |row| {
                Ok((row.get(0)?, row.get::<_, String>(1)?))
            })
            .optional()?;
        let Some((label, summary)) = found else {
            return Ok(None);
        };
        // One of another version stays.
        Ok(SavedRun::from_json(&summary)
            .ok()
            .map(|run| SavedRun { label, ..run }))
    }
}

/// The columns of a run beside its names.
struct PackedRun {
    /// Seconds since 1970.
    start_s: i64,
    /// Its short form in JSON.
    summary: String,
    /// Compressed JSON.
    record: Vec<u8>,
    /// Compressed text.
    page: Option<Vec<u8>>,
}

impl PackedRun {
    /// Packs a run; the error says what is wrong with its record.
    fn new(new: &NewRun<'_>, run: &SavedRun) -> Result<Self, String> {
        let started: jiff::Timestamp = run.started.parse().map_err(|error| {
            let start = &run.started;
            format!("its start '{start}' is not a time: {error}")
        })?;
        let json = serde_json::to_vec(new.record).map_err(|error| error.to_string())?;
        if json.len() > DOCUMENT_BYTES_MAX {
            return Err(DocumentError::TooLarge.to_string());
        }
        let summary = serde_json::to_string(run).map_err(|error| error.to_string())?;
        let record = deflate(&json).map_err(|error| error.to_string())?;
        let page = match new.page {
            Some(page) => {
                let packed = deflate(page.as_bytes()).map_err(|error| error.to_string())?;
                Some(packed)
            }
            None => None,
        };
        Ok(Self {
            start_s: started.as_second(),
            summary,
            record,
            page,
        })
    }
}

/// Inserts the row of a run, then those of its targets and disks.
fn insert(
    transaction: &Connection,
    run: &SavedRun,
    row: &[&dyn ToSql],
) -> rusqlite::Result<SaveOutcome> {
    let added = transaction.execute(
        "INSERT INTO runs (run_id, started, verb, host, label, note, partial, method, summary, \
         record, page)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (run_id) DO NOTHING",
        row,
    )?;
    if added == 0 {
        return Ok(SaveOutcome::Known);
    }
    let seq = transaction.last_insert_rowid();
    for path in &run.targets {
        let insert = "INSERT INTO run_targets (run, path) VALUES (?1, ?2)";
        transaction.execute(insert, params![seq, path])?;
    }
    for disk in &run.disks {
        let row = params![seq, disk.name, disk.model, disk.serial];
        let insert = "INSERT INTO run_disks (run, name, model, serial) VALUES (?1, ?2, ?3, ?4)";
        transaction.execute(insert, row)?;
    }
    Ok(SaveOutcome::Added)
}

fn deflate(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// The files of a history, by what their names add to its own; the history itself comes last.
fn suffixes() -> impl Iterator<Item = &'static str> {
    SQLITE_SUFFIXES.into_iter().chain([""])
}

/// A damaged history that was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedHistory {
    /// The new name; its log and its shared memory lie next to it.
    pub path: PathBuf,
    /// The damage, in SQLite's words.
    pub what: String,
}

/// Moves the file if it really is damaged, and only one that diskproof made. `None` when it is not,
/// because another process was faster.
fn move_damaged(path: &Path) -> Result<Option<MovedHistory>, HistoryError> {
    let _lock = PlaceLock::exclusive(path)?;
    if !exists(path)? {
        return Ok(None);
    }
    let Some(what) = damage(path)? else {
        return Ok(None);
    };
    check(path)?;
    let moved = free_name(path);
    // The file goes last: until then its log still belongs to it, should the program end here.
    for suffix in suffixes() {
        match std::fs::rename(with_suffix(path, suffix), with_suffix(&moved, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(HistoryError::kernel(path, error));
            }
            _ => {}
        }
    }
    Ok(Some(MovedHistory { path: moved, what }))
}

/// `X.corrupt-TIME`, with a number where one of its files exists.
fn free_name(path: &Path) -> PathBuf {
    let stamp = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    let mut name = with_suffix(path, &format!(".corrupt-{stamp}"));
    let mut number = 0;
    while is_taken(&name) {
        number += 1;
        name = with_suffix(path, &format!(".corrupt-{stamp}.{number}"));
    }
    name
}

/// True if one of the files of a history with this name exists.
fn is_taken(name: &Path) -> bool {
    suffixes().any(|suffix| with_suffix(name, suffix).symlink_metadata().is_ok())
}

/// Checks the file by a separate read-only connection and returns the damage, `None` of a sound
/// one; an error when the file cannot be checked now.
fn damage(path: &Path) -> Result<Option<String>, HistoryError> {
    match first_fault_of_file(path).with_path(path) {
        Err(HistoryError::Damaged { what, .. }) => Ok(Some(what)),
        other => other,
    }
}

fn first_fault_of_file(path: &Path) -> rusqlite::Result<Option<String>> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    // Unlike quick_check, this one also compares tables with their indexes.
    first_fault(&connection, "integrity_check")
}
