//! An open history: the connection, the lock that keeps the file in its place, and what may be
//! changed about runs that are saved.

use crate::damage::first_fault;
use crate::error::{HistoryError, is_full};
use crate::filesystem::{Journal, journal_for};
use crate::lock::{PATIENCE, PlaceLock};
use crate::migrations::migrate;
use crate::place::{Place, exists, make_file};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Runs that are removed in one transaction.
const DELETED_AT_ONCE: usize = 16;

/// An open history.
#[derive(Debug)]
pub struct History {
    // Closed before the lock is let go: fields are dropped in this order.
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    _lock: Option<PlaceLock>,
}

impl History {
    /// Opens what is there; `None` when there is no file. One that may only be read can be opened
    /// too.
    pub fn open(place: &Place) -> Result<Option<Self>, HistoryError> {
        if !exists(&place.path)? {
            return Ok(None);
        }
        let path = place.resolved()?;
        // Where no lock can be made, nobody can move the file either.
        let lock = match PlaceLock::shared(&path) {
            Err(HistoryError::Unreachable { .. }) => None,
            other => Some(other?),
        };
        let connection = match connect(
            &path,
            if is_full(&path) {
                Sharing::Alone
            } else {
                Sharing::Shared
            },
        ) {
            Err(HistoryError::Unreachable { .. }) if !has_log(&path) => connect_frozen(&path)?,
            other => other?,
        };
        Ok(Some(Self {
            connection,
            path,
            _lock: lock,
        }))
    }

    /// Opens the file, or makes a new one.
    pub(crate) fn open_or_make(path: &Path) -> Result<Self, HistoryError> {
        if is_full(path) {
            return Err(HistoryError::Full {
                path: path.to_owned(),
            });
        }
        let lock = loop {
            make_file(path)?;
            let lock = PlaceLock::shared(path)?;
            // While this one waited for the lock, a damaged file may have been moved aside.
            if exists(path)? {
                break lock;
            }
        };
        Ok(Self {
            connection: connect(path, Sharing::Shared)?,
            path: path.to_owned(),
            _lock: Some(lock),
        })
    }

    /// Gives a run a label, or takes it away.
    pub fn label(&mut self, run_id: &str, label: Option<&str>) -> Result<(), HistoryError> {
        self.change(|transaction| {
            transaction.execute(
                "UPDATE runs SET label = ?2 WHERE run_id = ?1",
                params![run_id, label],
            )
        })?;
        Ok(())
    }

    /// Removes runs for good; how many there were. A few at a time, with the log emptied in
    /// between: that is how room is made on a full disk, where a log of all of it would not
    /// fit.
    pub fn delete(&mut self, run_ids: &[String]) -> Result<usize, HistoryError> {
        let mut removed = 0;
        for few in run_ids.chunks(DELETED_AT_ONCE) {
            removed += self.change(|transaction| {
                let mut statement = transaction.prepare("DELETE FROM runs WHERE run_id = ?1")?;
                few.iter()
                    .try_fold(0, |sum, run_id| Ok(sum + statement.execute([run_id])?))
            })?;
            // Where a reader is in the way the log stays for now, and nothing is lost.
            let _ = self
                .connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
        Ok(removed)
    }

    /// An error where the file is damaged anywhere, not only where the next step leads.
    pub(crate) fn vet(&self) -> Result<(), HistoryError> {
        match first_fault(&self.connection, "quick_check").map_err(|error| self.failed(&error))? {
            Some(what) => Err(HistoryError::Damaged {
                path: self.path.clone(),
                what,
            }),
            None => Ok(()),
        }
    }

    /// In a transaction that has the lock from its beginning, so that it waits its turn instead of
    /// failing halfway.
    pub(crate) fn change<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, HistoryError> {
        let changed = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .and_then(|transaction| {
                let value = change(&transaction)?;
                transaction.commit()?;
                Ok(value)
            });
        changed.map_err(|error| self.failed(&error))
    }

    pub(crate) fn failed(&self, error: &rusqlite::Error) -> HistoryError {
        HistoryError::sqlite(&self.path, error)
    }
}

/// With whom a connection shares the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// With everybody.
    Shared,
    /// With nobody as long as it is open: SQLite then needs no shared memory for a log, for which a
    /// full disk has no room.
    Alone,
}

/// The connection, ready for use.
fn connect(path: &Path, sharing: Sharing) -> Result<Connection, HistoryError> {
    let failed = |error| HistoryError::sqlite(path, &error);
    let journal = journal_for(path.parent().unwrap_or(Path::new("/")));
    let mut connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
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
    if journal == Journal::Wal && !connection.is_readonly("main").map_err(failed)? {
        // Needs to be alone for a moment. Where others are in the way the rollback journal does as
        // well, and the next one tries again.
        let _ = connection.pragma_update(None, "journal_mode", "WAL");
    }
    Ok(connection)
}

/// Before the first look at the file.
fn set_up(connection: &Connection, journal: Journal) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    // A file that turns out to be of a newer version is closed as it was.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // FULL syncs the log at every commit; EXTRA, with a rollback journal, also the folder in which
    // it was deleted (<https://www.sqlite.org/pragma.html#pragma_synchronous>): without that a power cut may bring the journal back and take the run away.
    connection.pragma_update(None, "synchronous", "EXTRA")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    if journal == Journal::Delete {
        // A file with a log may have been copied here. With exclusive locks SQLite reads a log
        // without shared memory.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
        if mode == "wal" {
            connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
        }
        connection.pragma_update(None, "locking_mode", "NORMAL")?;
        // Locks are let go at the end of the next transaction.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    }
    if connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0))? == 0 {
        // What is deleted makes the file smaller. Only while it is new: in an old file this would
        // write, and change nothing.
        connection.pragma_update(None, "auto_vacuum", "FULL")?;
    }
    Ok(())
}

/// On a filesystem that may only be read, SQLite cannot make the shared memory of a log, and needs
/// none.
fn connect_frozen(path: &Path) -> Result<Connection, HistoryError> {
    let failed = |error| HistoryError::sqlite(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let mut connection = Connection::open_with_flags(frozen_uri(path), flags).map_err(failed)?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// `file:` with everything escaped that is no plain letter: <https://www.sqlite.org/uri.html>.
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

/// Whether runs may be in the log that are not yet in the file.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
}
