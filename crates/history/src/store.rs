//! An open history: the connection, the lock that keeps the file in place, and changes to saved
//! runs.

use crate::error::{HistoryError, WithPath as _, is_full};
use crate::lock::{LOCK_WAIT, PlaceLock, make_file};
use crate::migrations::migrate;
use crate::ours::Checked;
use crate::place::{HistoryPlace, exists, with_suffix};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The flags of a connection that may write. The path has no symlink: what is one now has just
/// replaced the file that was checked.
const WRITABLE: OpenFlags =
    OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NOFOLLOW);

/// The most runs that one transaction deletes. The log of a transaction holds the pages of all its
/// runs, and has to fit on a full disk. Chosen, not measured: with one run, each would cost its own
/// syncs.
const DELETED_AT_ONCE: usize = 16;

/// The `f_type` of statfs(2) of the filesystems where shared memory and locks are those of one
/// machine; values from linux/magic.h, ZFS from OpenZFS, bcachefs and exFAT from their sources.
/// Everything else (NFS, SMB, 9p, FUSE, Ceph, future ones) counts as shared between machines.
const LOCAL: [u64; 14] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // btrfs
    0xf2f5_2010, // F2FS
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
    0x2fc1_2fc1, // ZFS
    0xca45_1a4e, // bcachefs
    0x3153_464a, // JFS
    0x5265_4973, // ReiserFS
    0x3434,      // NILFS
    0x4d44,      // FAT
    0x2011_bab0, // exFAT
];

/// An open history: a SQLite database with a row for each run.
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
        let others = if is_full(&path) {
            OtherUsers::LockedOut
        } else {
            OtherUsers::Allowed
        };
        let connection = match connect(&path, others) {
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
            return Err(HistoryError::Full(path.to_owned()));
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
                return Err(HistoryError::Busy(path.to_owned()));
            }
        };
        Ok(Self {
            connection: connect(path, OtherUsers::Allowed)?,
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
                let mut count = 0;
                for run_id in few {
                    count += statement.execute([run_id])?;
                }
                Ok(count)
            })?;
            // While a reader is active the log stays; nothing is lost.
            let _ = self
                .connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
        Ok(removed)
    }

    /// Checks the whole file, and returns an error if it is damaged.
    pub(crate) fn refuse_damaged(&self) -> Result<(), HistoryError> {
        match first_fault(&self.connection, "quick_check") {
            Ok(None) => Ok(()),
            Ok(Some(what)) => Err(HistoryError::Damaged {
                path: self.path.clone(),
                what,
            }),
            Err(error) => Err(self.history_error(&error)),
        }
    }

    /// Runs `change` in a transaction that takes the write lock first, so that it waits its turn
    /// instead of failing halfway.
    pub(crate) fn change<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, HistoryError> {
        self.change_at_once(change)
            .map_err(|error| self.history_error(&error))
    }

    fn change_at_once<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = change(&transaction)?;
        transaction.commit()?;
        Ok(value)
    }

    /// The error of this history for one of SQLite.
    pub(crate) fn history_error(&self, error: &rusqlite::Error) -> HistoryError {
        HistoryError::sqlite(&self.path, error)
    }
}

/// Other processes that may use the database while this one has it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OtherUsers {
    Allowed,
    /// SQLite then needs no shared memory for a log, for which a full disk has no space.
    LockedOut,
}

/// The journal that a database has in its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JournalKind {
    WriteAheadLog,
    Rollback,
}

/// Opens and migrates the database.
fn connect(path: &Path, others: OtherUsers) -> Result<Connection, HistoryError> {
    let journal = if is_local(path.parent().unwrap_or(Path::new("/"))) {
        JournalKind::WriteAheadLog
    } else {
        JournalKind::Rollback
    };
    let mut connection = connect_unmigrated(path, others, journal).with_path(path)?;
    migrate(&mut connection, path)?;
    finish_set_up(&connection, journal).with_path(path)?;
    Ok(connection)
}

/// Opens the database, whatever its version is.
fn connect_unmigrated(
    path: &Path,
    others: OtherUsers,
    journal: JournalKind,
) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, WRITABLE)?;
    if others == OtherUsers::LockedOut {
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    }
    set_up(&connection, journal)?;
    Ok(connection)
}

/// Sets what may be set once the database has this program's version.
fn finish_set_up(connection: &Connection, journal: JournalKind) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    if journal == JournalKind::WriteAheadLog && !connection.is_readonly("main")? {
        // Needs the file alone for a moment. If that fails, the rollback journal is as safe, and
        // the next connection tries again.
        let _ = connection.pragma_update(None, "journal_mode", "WAL");
    }
    Ok(())
}

/// True if a write-ahead log is safe in this folder. With one, readers and a writer do not wait for
/// each other, but its index is shared memory, so all processes must be on one machine
/// (<https://www.sqlite.org/wal.html>, "disadvantages"). A rollback journal needs only locks.
fn is_local(folder: &Path) -> bool {
    match rustix::fs::statfs(folder) {
        // The type is a signed or an unsigned word, by architecture; magic numbers have 32 bits.
        Ok(facts) => LOCAL.contains(&(facts.f_type as u64 & 0xffff_ffff)),
        Err(_) => false,
    }
}

/// Sets what must be set before the first read.
fn set_up(connection: &Connection, journal: JournalKind) -> rusqlite::Result<()> {
    connection.busy_timeout(LOCK_WAIT)?;
    // Closing must not change a file that turns out to be of a newer version.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // FULL syncs the log at every commit; EXTRA also syncs the folder after deleting a rollback
    // journal (<https://www.sqlite.org/pragma.html#pragma_synchronous>). Without that, a power cut
    // may bring the journal back and roll the saved run back.
    connection.pragma_update(None, "synchronous", "EXTRA")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    if journal == JournalKind::Rollback {
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
    let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
    if pages == 0 {
        // Deleted runs then shrink the file. In an existing file this would write and change
        // nothing.
        connection.pragma_update(None, "auto_vacuum", "FULL")?;
    }
    Ok(())
}

/// Opens a history on a read-only filesystem, where SQLite cannot make shared memory for a log and
/// needs none.
fn connect_frozen(path: &Path) -> Result<Connection, HistoryError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let mut connection = Connection::open_with_flags(frozen_uri(path), flags).with_path(path)?;
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

/// True if the log may hold runs that are not yet in the file.
fn has_log(path: &Path) -> bool {
    std::fs::metadata(with_suffix(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// The first fault that a check of SQLite finds, as one line; `None` where there is none.
pub(crate) fn first_fault(
    connection: &Connection,
    check: &str,
) -> rusqlite::Result<Option<String>> {
    let query = format!("PRAGMA {check}(1)");
    let verdict: String = connection.query_row(&query, [], |row| row.get(0))?;
    // A line before the fault names the database.
    let fault = verdict
        .lines()
        .find(|line| !line.starts_with("***"))
        .unwrap_or(&verdict)
        .trim();
    if fault == "ok" {
        Ok(None)
    } else {
        Ok(Some(fault.to_owned()))
    }
}
