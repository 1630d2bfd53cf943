//! Everything that can go wrong with a history, each with the file and what to do. Which of
//! SQLite's result codes means what is known here and nowhere else; above all what is damage and
//! what only looks like it.

use rusqlite::ErrorCode;
use std::io;
use std::path::{Path, PathBuf};

/// Less room than this, in bytes, is a full disk. SQLite calls it an I/O error where it cannot
/// extend the shared memory of a log; and where blocks are smaller than pages, as on a small ext4,
/// it allocates one block of each page only, so that a full disk ends the program by SIGBUS
/// (`unixShmMap` of SQLite 3.53).
const ROOM_BYTES_LEAST: u64 = 256 << 10;

/// Why a history could not be used.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Its folder or the file cannot be made or reached.
    #[error("the history {} cannot be opened: {source}; name a file that you may write to with --history FILE, or use --no-history", path.display())]
    Unreachable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The path names something that is no regular file.
    #[error("the history {} is no regular file, and nothing else is touched; name another file with --history FILE", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Others held it for too long.
    #[error("the history {} was in use by another process all the time; see who with 'fuser -v' on it, and try again", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// No room for one more run.
    #[error("the disk of the history {} is full; free some space, remove old runs with 'diskproof history prune', or name another file with --history FILE", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// It may be read, not written.
    #[error("the history {} may not be written to; name another file with --history FILE, or use --no-history", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The disk below failed.
    #[error("the disk of the history {} gave an error ({what}); see the kernel log (dmesg), and name another file with --history FILE", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        what: String,
    },
    /// Its content makes no sense.
    #[error("the history {} is damaged ({what}); the next run that is saved moves it aside and begins a new one with all runs that can still be read", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        what: String,
    },
    /// A file that is no database and does not even look like one of ours by its name.
    #[error("{} is no history of diskproof, and was not touched; name another file with --history FILE", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A later version of this program made it.
    #[error("the history {} was made by a newer diskproof (version {found} of its format, this one knows {SCHEMA_VERSION}) and was not touched; use that diskproof, or name another file with --history FILE", path.display(), SCHEMA_VERSION = crate::SCHEMA_VERSION)]
    Newer {
        /// The file.
        path: PathBuf,
        /// Version of its format.
        found: i64,
    },
    /// A record that cannot be kept or read back.
    #[error("the record of run {run_id} cannot be used: {what}")]
    Record {
        /// The run.
        run_id: String,
        /// What is wrong with it.
        what: String,
    },
    /// Anything else that SQLite may say.
    #[error("the history {} cannot be used: {what}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        what: String,
    },
}

impl HistoryError {
    /// What an error of SQLite means for this file.
    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let (path, what) = (path.to_owned(), error.to_string());
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged { path, what }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path },
            Some(ErrorCode::CannotOpen) => Self::Unreachable {
                path,
                source: io::Error::other(what),
            },
            Some(ErrorCode::SystemIoFailure) if is_full(&path) => Self::Full { path },
            Some(ErrorCode::SystemIoFailure) => Self::Io { path, what },
            _ => Self::Other { path, what },
        }
    }

    /// What an error of the kernel means for this file.
    pub(crate) fn kernel(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            io::ErrorKind::WouldBlock => Self::Busy { path },
            _ => Self::Unreachable { path, source },
        }
    }
}

/// Whether the filesystem of this file has no room; unknown is no.
pub(crate) fn is_full(path: &Path) -> bool {
    let folder = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    rustix::fs::statvfs(folder)
        .is_ok_and(|space| space.f_bavail.saturating_mul(space.f_frsize) < ROOM_BYTES_LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    fn meaning(code: i32) -> HistoryError {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        HistoryError::sqlite(Path::new("/history.db"), &error)
    }

    #[test]
    fn only_damage_is_taken_for_damage() {
        for code in [
            ffi::SQLITE_CORRUPT,
            ffi::SQLITE_NOTADB,
            ffi::SQLITE_CORRUPT_INDEX,
        ] {
            assert!(
                matches!(meaning(code), HistoryError::Damaged { .. }),
                "{code}"
            );
        }
        let others = [
            ffi::SQLITE_BUSY,
            ffi::SQLITE_BUSY_SNAPSHOT,
            ffi::SQLITE_LOCKED,
            ffi::SQLITE_FULL,
            ffi::SQLITE_IOERR,
            ffi::SQLITE_IOERR_READ,
            ffi::SQLITE_IOERR_SHORT_READ,
            ffi::SQLITE_IOERR_LOCK,
            ffi::SQLITE_CANTOPEN,
            ffi::SQLITE_READONLY,
            ffi::SQLITE_PERM,
            ffi::SQLITE_NOMEM,
            ffi::SQLITE_PROTOCOL,
            ffi::SQLITE_ERROR,
        ];
        for code in others {
            assert!(
                !matches!(meaning(code), HistoryError::Damaged { .. }),
                "{code}"
            );
        }
    }
}
