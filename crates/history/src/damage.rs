//! Moves a damaged history and its log out of the way; never deletes it. Moves only a file that
//! diskproof made.

use crate::error::HistoryError;
use crate::lock::PlaceLock;
use crate::ours::{SQLITE_SUFFIXES, check};
use crate::place::{exists, with_suffix};
use rusqlite::{Connection, OpenFlags};
use std::io;
use std::path::{Path, PathBuf};

/// The files of a history, by what their names add to its own; the history itself comes last.
fn suffixes() -> impl Iterator<Item = &'static str> {
    SQLITE_SUFFIXES.into_iter().chain([""])
}

/// A damaged history that was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedHistory {
    /// Where it is now; its log and its shared memory lie next to it.
    pub path: PathBuf,
    /// What is wrong with it, in SQLite's words.
    pub what: String,
}

/// Moves the file if it really is damaged. `None` when it is not, because another process was
/// faster.
pub(crate) fn move_damaged(path: &Path) -> Result<Option<MovedHistory>, HistoryError> {
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
    let is_taken = |name: &Path| {
        let mut files = suffixes().map(|suffix| with_suffix(name, suffix));
        files.any(|file| file.symlink_metadata().is_ok())
    };
    while is_taken(&name) {
        number += 1;
        name = with_suffix(path, &format!(".corrupt-{stamp}.{number}"));
    }
    name
}

/// What is wrong with the file, by a separate read-only connection; an error when the file cannot
/// be checked now.
fn damage(path: &Path) -> Result<Option<String>, HistoryError> {
    let look = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        // Unlike quick_check, this one also compares tables with their indexes.
        first_fault(&connection, "integrity_check")
    };
    match look().map_err(|error| HistoryError::sqlite(path, &error)) {
        Err(HistoryError::Damaged { what, .. }) => Ok(Some(what)),
        other => other,
    }
}

/// The first fault that a check of SQLite finds, as one line; `None` where there is none.
pub(crate) fn first_fault(
    connection: &Connection,
    check: &str,
) -> rusqlite::Result<Option<String>> {
    let check = format!("PRAGMA {check}(1)");
    let verdict: String = connection.query_row(&check, [], |row| row.get(0))?;
    // A line before the fault names the database.
    let mut lines = verdict.lines();
    let fault = lines.find(|line| !line.starts_with("***"));
    let fault = fault.unwrap_or(&verdict).trim();
    Ok((fault != "ok").then(|| fault.to_owned()))
}
