//! Moves a damaged history and its log out of the way; never deletes it. Moves only a file that
//! diskproof made.

use crate::error::HistoryError;
use crate::lock::PlaceLock;
use crate::migrations::APPLICATION_ID;
use crate::place::{exists, with_suffix};
use rusqlite::{Connection, OpenFlags};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// First bytes of every SQLite file, and the length of its header:
/// <https://www.sqlite.org/fileformat.html#the_database_header>.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const HEADER_BYTES: usize = 100;
/// Where the header holds the application id, big-endian.
const APPLICATION_ID_AT: std::ops::Range<usize> = 68..72;

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
    let lock = PlaceLock::exclusive(path)?;
    if !exists(path)? {
        return Ok(None);
    }
    let Some(what) = damage(path)? else {
        return Ok(None);
    };
    if !is_ours(path, &lock).map_err(|error| HistoryError::kernel(path, error))? {
        lock.discard();
        return Err(HistoryError::Foreign {
            path: path.to_owned(),
        });
    }
    let moved = free_name(path);
    // The file goes last: until then its log still belongs to it, should the program end here.
    for suffix in ["-journal", "-shm", "-wal", ""] {
        match std::fs::rename(with_suffix(path, suffix), with_suffix(&moved, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(HistoryError::kernel(path, error));
            }
            _ => {}
        }
    }
    Ok(Some(MovedHistory { path: moved, what }))
}

/// `X.corrupt-TIME`, with a number where that exists.
fn free_name(path: &Path) -> PathBuf {
    let stamp = jiff::Timestamp::now()
        .strftime("%Y%m%dT%H%M%SZ")
        .to_string();
    let mut name = with_suffix(path, &format!(".corrupt-{stamp}"));
    let mut number = 0;
    while name.symlink_metadata().is_ok() {
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
    let verdict: String =
        connection.query_row(&format!("PRAGMA {check}(1)"), [], |row| row.get(0))?;
    // A line before the fault names the database.
    let fault = verdict
        .lines()
        .find(|line| !line.starts_with("***"))
        .unwrap_or(&verdict)
        .trim();
    Ok((fault != "ok").then(|| fault.to_owned()))
}

/// Whether diskproof made the file: by the application id of a database, and for a file whose
/// header is destroyed by the mark in its lock file. The name of a file proves nothing.
fn is_ours(path: &Path, lock: &PlaceLock) -> io::Result<bool> {
    let mut header = Vec::with_capacity(HEADER_BYTES);
    File::open(path)?
        .take(HEADER_BYTES as u64)
        .read_to_end(&mut header)?;
    if header.starts_with(MAGIC) {
        let id = header.get(APPLICATION_ID_AT);
        return Ok(id.is_some_and(|id| id == (APPLICATION_ID as u32).to_be_bytes()));
    }
    lock.is_marked()
}
