//! An open history: the connection, the lock that keeps the file in place, and changes to saved
//! runs.

use crate::damage::first_fault;
use crate::error::{HistoryError, is_full};
use crate::filesystem::{JournalMode, journal_for};
use crate::lock::{LOCK_WAIT, PlaceLock, make_file};
use crate::migrations::migrate;
use crate::ours::Checked;
use crate::place::{HistoryPlace, exists, with_suffix};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The path has no symlink: what is one now has just replaced the file that was checked.
const WRITABLE: OpenFlags =
    OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NOFOLLOW);

/// Runs deleted in one transaction.
const DELETED_AT_ONCE: usize = 16;

/// An open history.
#[derive(Debug)]
pub struct History {
    // Fields drop in this order: the connection closes before the lock is released.
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    _lock: Option<PlaceLock>,
    _checked: Checked,
}

impl History {
    /// Opens an existing history, which may be read-only; `None` when there is no file.
    pub fn open(place: &HistoryPlace) -> Result<Option<Self>, HistoryError> {
        let Some(path) = place.existing() else {
            return Ok(None);
        };
        let path = path?;
        let checked = Checked::new(&path)?;
        // Where no lock can be made, no process can move the file either.
        let lock = match PlaceLock::shared(&path) {
            Err(HistoryError::Unreachable { .. }) => None,
            other => Some(other?),
        };
        let sharing = if is_full(&path) {
            Sharing::Alone
        } else {
            Sharing::Shared
        };
        let connection = match connect(&path, sharing) {
            Err(HistoryError::Unreachable { .. }) if !has_log(&path) => connect_frozen(&path),
            other => other,
        };
        Ok(Some(Self {
            connection: connection?,
            path,
            _lock: lock,
            _checked: checked,
        }))
    }

    /// Opens the file, or makes a new one.
    pub(crate) fn open_or_make(path: &Path) -> Result<Self, HistoryError> {
        if is_full(path) {
            return Err(HistoryError::Full {
                path: path.to_owned(),
            });
        }
        let checked = Checked::new(path)?;
        let started = Instant::now();
        let lock = loop {
            make_file(path)?;
            let lock = PlaceLock::shared(path)?;
            // Another process may have moved a damaged file while this one waited for the lock.
            if exists(path)? {
                break lock;
            }
            if started.elapsed() > LOCK_WAIT {
                return Err(HistoryError::Busy {
                    path: path.to_owned(),
                });
            }
        };
        Ok(Self {
            connection: connect(path, Sharing::Shared)?,
            path: path.to_owned(),
            _lock: Some(lock),
            _checked: checked,
        })
    }

    /// Sets or removes the label of a run.
    pub fn label(&mut self, run_id: &str, label: Option<&str>) -> Result<(), HistoryError> {
        let update = "UPDATE runs SET label = ?2 WHERE run_id = ?1";
        self.change(|transaction| transaction.execute(update, params![run_id, label]))?;
        Ok(())
    }

    /// Deletes runs and returns how many there were. Deletes a few at a time and empties the log in
    /// between: on a full disk, one log for all of them would not fit.
    pub fn delete(&mut self, run_ids: &[String]) -> Result<usize, HistoryError> {
        let mut removed = 0;
        for few in run_ids.chunks(DELETED_AT_ONCE) {
            removed += self.change(|transaction| {
                let mut statement = transaction.prepare("DELETE FROM runs WHERE run_id = ?1")?;
                few.iter()
                    .try_fold(0, |sum, run_id| Ok(sum + statement.execute([run_id])?))
            })?;
            // While a reader is active the log stays; nothing is lost.
            let _ = self
                .connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
        Ok(removed)
    }

    /// Checks the whole file for damage.
    pub(crate) fn vet(&self) -> Result<(), HistoryError> {
        match first_fault(&self.connection, "quick_check").map_err(|error| self.failed(&error))? {
            Some(what) => Err(HistoryError::Damaged {
                path: self.path.clone(),
                what,
            }),
            None => Ok(()),
        }
    }

    /// Runs `change` in a transaction that takes the write lock first, so that it waits its turn
    /// instead of failing halfway.
    pub(crate) fn change<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, HistoryError> {
        let changed = || {
            let immediate = TransactionBehavior::Immediate;
            let transaction = self.connection.transaction_with_behavior(immediate)?;
            let value = change(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        changed().map_err(|error| self.failed(&error))
    }

    pub(crate) fn failed(&self, error: &rusqlite::Error) -> HistoryError {
        HistoryError::sqlite(&self.path, error)
    }
}

/// Whether other processes may use the file while this connection is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// They may.
    Shared,
    /// They may not. SQLite then needs no shared memory for a log, for which a full disk has no
    /// space.
    Alone,
}

/// Opens and migrates the database.
fn connect(path: &Path, sharing: Sharing) -> Result<Connection, HistoryError> {
    let failed = |error| HistoryError::sqlite(path, &error);
    let journal = journal_for(path.parent().unwrap_or(Path::new("/")));
    let mut connection = Connection::open_with_flags(path, WRITABLE).map_err(failed)?;
    if sharing == Sharing::Alone {
        connection
            .pragma_update(None, "locking_mode", "EXCLUSIVE")
            .map_err(failed)?;
    }
    set_up(&connection, journal).map_err(failed)?;
    migrate(&mut connection, path)?;
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)
        .map_err(failed)?;
    if journal == JournalMode::Wal && !connection.is_readonly("main").map_err(failed)? {
        // Needs the file alone for a moment. If that fails, the rollback journal is as safe, and
        // the next connection tries again.
        let _ = connection.pragma_update(None, "journal_mode", "WAL");
    }
    Ok(connection)
}

/// Sets what must be set before the first read.
fn set_up(connection: &Connection, journal: JournalMode) -> rusqlite::Result<()> {
    connection.busy_timeout(LOCK_WAIT)?;
    // Closing must not change a file that turns out to be of a newer version.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // FULL syncs the log at every commit; EXTRA also syncs the folder after deleting a rollback
    // journal (<https://www.sqlite.org/pragma.html#pragma_synchronous>). Without that, a power cut
    // may bring the journal back and roll the saved run back.
    connection.pragma_update(None, "synchronous", "EXTRA")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    if journal == JournalMode::Delete {
        // A file with a log may have been copied here. With an exclusive lock SQLite reads a log
        // without shared memory.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
        if mode == "wal" {
            connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
        }
        connection.pragma_update(None, "locking_mode", "NORMAL")?;
        // The next transaction releases the exclusive lock.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    }
    if connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0))? == 0 {
        // Deleted runs then shrink the file. In an existing file this would write and change
        // nothing.
        connection.pragma_update(None, "auto_vacuum", "FULL")?;
    }
    Ok(())
}

/// Opens a history on a read-only filesystem, where SQLite cannot make shared memory for a log and
/// needs none.
fn connect_frozen(path: &Path) -> Result<Connection, HistoryError> {
    let failed = |error| HistoryError::sqlite(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let mut connection = Connection::open_with_flags(frozen_uri(path), flags).map_err(failed)?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// A `file:` URI with every special character escaped (<https://www.sqlite.org/uri.html>).
fn frozen_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte))
            }
            // Writing to a String cannot fail.
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri + "?immutable=1"
}

/// Whether the log may hold runs that are not yet in the file.
fn has_log(path: &Path) -> bool {
    std::fs::metadata(with_suffix(path, "-wal")).is_ok_and(|log| log.len() > 0)
}
