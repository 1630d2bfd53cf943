//! Every error of a history, with the file and the remedy. The only place that interprets SQLite's
//! result codes, above all which of them mean damage.

use diskproof_model::units::format_bytes;
use rusqlite::{ErrorCode, ffi};
use rustix::process::{Resource, getrlimit};
use std::io;
use std::path::{Path, PathBuf};

/// Less free space than this, in bytes, counts as a full disk. SQLite reports an I/O error when it
/// cannot extend the shared memory of a log. Where blocks are smaller than pages, as on a small
/// ext4, it allocates only one block of each page, and a full disk ends the program by SIGBUS
/// (`unixShmMap` of SQLite 3.53). That memory grows by 32 KiB; the limit is several times as much.
const FREE_BYTES_MIN: u64 = 256 << 10;

/// The reason why a history could not be used, in words for the user.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The folder or the file of the history cannot be made or reached.
    #[error(
        "cannot open the history {path}: {source}. Name a writable file with --history FILE, or \
         use --no-history"
    )]
    Unreachable {
        /// The folder or the file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The path names something that is no regular file.
    #[error(
        "the history {0} is not a regular file and was not touched. Name another file with \
         --history FILE"
    )]
    NotAFile(PathBuf),
    /// The path is a symlink to nothing.
    #[error(
        "the history {path} is a symbolic link to {target}, which does not exist. Remove the link, \
         or name another file with --history FILE"
    )]
    DanglingLink {
        /// The symlink at that place.
        path: PathBuf,
        /// The place to which it points.
        target: PathBuf,
    },
    /// Other processes held the lock for too long.
    #[error(
        "another process held the history {0} for 20 s. Find it with 'fuser -v {0}', and try \
         again"
    )]
    Busy(PathBuf),
    /// The filesystem of the history does not answer.
    #[error(
        "the filesystem of the history {path} did not answer for {seconds} s. Check its server or \
         mount, or name another file with --history FILE"
    )]
    NoAnswer {
        /// The file.
        path: PathBuf,
        /// Seconds that the caller waited.
        seconds: u64,
    },
    /// No room for one more run.
    #[error(
        "the disk of the history {0} is full. Free some space, remove old runs with 'diskproof \
         history prune', or name another file with --history FILE"
    )]
    Full(PathBuf),
    /// The file can be read but not written.
    #[error(
        "the history {0} is not writable. Name another file with --history FILE, or use \
         --no-history"
    )]
    ReadOnly(PathBuf),
    /// A write failed with EFBIG while this process has a limit on the size of its files.
    #[error(
        "a file of the history {path} cannot grow: this process may write files of at most {} \
         (EFBIG). Raise the limit (ulimit -f), or name another file with --history FILE",
        format_bytes(*limit_bytes)
    )]
    FileSizeLimit {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        limit_bytes: u64,
    },
    /// The disk below failed.
    #[error(
        "the disk of the history {path} failed ({what}). See the kernel log (dmesg), and name \
         another file with --history FILE"
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        what: String,
    },
    /// The content of the history makes no sense.
    #[error(
        "the history {path} is damaged ({what}). The next saved run renames it and starts a new \
         one; the sqlite3 program's .recover may still read old runs"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        what: String,
    },
    /// A file that diskproof did not make.
    #[error(
        "{0} is not a diskproof history and was not touched. Name another file with --history \
         FILE"
    )]
    Foreign(PathBuf),
    /// A file of the history, or one with the name that such a file needs, is not this program's.
    #[error(
        "{path} {why}, so it was not touched. Name another history with --history FILE, or use \
         --no-history"
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// The fault, as the rest of a sentence.
        why: &'static str,
    },
    /// A history whose version was overwritten.
    #[error(
        "the history {path} contains tables, but its format version is {found}, so it was not \
         touched. Restore it from a backup, or name another file with --history FILE"
    )]
    NoVersion {
        /// The file.
        path: PathBuf,
        /// Version in its header: zero or less.
        found: i64,
    },
    /// A later version of this program made it.
    #[error(
        "a newer diskproof created the history {path} (format {found}; this one supports up to \
         {known}), so it was not touched. Use that diskproof, or name another file with --history \
         FILE"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Version of its format.
        found: i64,
        /// The latest version that this program reads.
        known: i64,
    },
    /// A record that cannot be saved or read back.
    #[error("cannot use the record of run {run_id}: {what}")]
    Record {
        /// Id of the run.
        run_id: String,
        /// The fault, as a clause.
        what: String,
    },
    /// Any other error of SQLite.
    #[error("cannot use the history {path}: {what}")]
    Other {
        /// The file.
        path: PathBuf,
        /// SQLite's words, without the statement.
        what: String,
    },
}

impl HistoryError {
    /// True if the history was refused because of what has its name: a file that is not this
    /// program's or of a later version of it, something that is no file, or a symlink to nothing.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Foreign(_)
                | Self::NotOurs { .. }
                | Self::NotAFile(_)
                | Self::DanglingLink { .. }
                | Self::Newer { .. }
        )
    }

    /// True if a folder on the way to the history does not exist: the user mistyped it, or its
    /// disk is not mounted.
    pub fn lacks_folder(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ),
            _ => false,
        }
    }

    /// A file of the history that is not this program's, and why as the rest of a sentence.
    pub(crate) fn not_ours(path: &Path, why: &'static str) -> Self {
        Self::NotOurs {
            path: path.to_owned(),
            why,
        }
    }

    /// A file with the name of one of the history's, which another program made.
    pub(crate) fn made_by_others(path: &Path) -> Self {
        Self::not_ours(path, "exists, but was not made by diskproof")
    }

    /// The error of SQLite, classified.
    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let what = match error {
            // Its text quotes the statement, which means nothing to a user.
            rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
            // That of a failed opening quotes the URI; the path is named anyway.
            rusqlite::Error::SqliteFailure(_, Some(text)) => match text.split_once(": file:") {
                Some((cause, _)) => cause.to_owned(),
                None => error.to_string(),
            },
            other => other.to_string(),
        };
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged { path, what }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy(path),
            Some(ErrorCode::DiskFull) => Self::Full(path),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly(path),
            Some(ErrorCode::CannotOpen) => Self::Unreachable {
                path,
                source: io::Error::other(what),
            },
            Some(ErrorCode::SystemIoFailure) if is_full(&path) => Self::Full(path),
            Some(ErrorCode::SystemIoFailure) => match limit_met(error) {
                Some(limit_bytes) => Self::FileSizeLimit { path, limit_bytes },
                None => Self::Io { path, what },
            },
            _ => Self::Other { path, what },
        }
    }

    /// The error of the kernel, classified.
    pub(crate) fn kernel(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(path),
            io::ErrorKind::WouldBlock => Self::Busy(path),
            io::ErrorKind::FileTooLarge if size_limit().is_some() => Self::FileSizeLimit {
                path,
                limit_bytes: size_limit().unwrap_or_default(),
            },
            _ => Self::Unreachable { path, source },
        }
    }
}

/// Says which file an operation of the kernel or of SQLite was about.
pub(crate) trait WithPath<T> {
    /// The result as it is, or an error that names the file.
    fn with_path(self, path: &Path) -> Result<T, HistoryError>;
}

impl<T> WithPath<T> for io::Result<T> {
    fn with_path(self, path: &Path) -> Result<T, HistoryError> {
        self.map_err(|error| HistoryError::kernel(path, error))
    }
}

impl<T> WithPath<T> for rusqlite::Result<T> {
    fn with_path(self, path: &Path) -> Result<T, HistoryError> {
        self.map_err(|error| HistoryError::sqlite(path, &error))
    }
}

/// The limit on file sizes of this process, in bytes; `None` without one.
fn size_limit() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// The limit on file sizes, where a write may have met it; `None` for other errors, and without a
/// limit. SQLite hides the error number, so a disk that fails to write looks the same; it fails to
/// sync or to read sooner or later, and is then named as the cause.
fn limit_met(error: &rusqlite::Error) -> Option<u64> {
    const WRITES: [i32; 4] = [
        ffi::SQLITE_IOERR_WRITE,
        ffi::SQLITE_IOERR_TRUNCATE,
        ffi::SQLITE_IOERR_SHMSIZE,
        ffi::SQLITE_IOERR_SHMOPEN,
    ];
    if WRITES.contains(&error.sqlite_error()?.extended_code) {
        size_limit()
    } else {
        None
    }
}

/// The folder of a file, as the kernel takes it.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// True if the filesystem of this file has no room left; false when unknown.
pub(crate) fn is_full(path: &Path) -> bool {
    match rustix::fs::statvfs(folder_of(path)) {
        Ok(space) => space.f_bavail.saturating_mul(space.f_frsize) < FREE_BYTES_MIN,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classified(code: i32) -> HistoryError {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        HistoryError::sqlite(Path::new("/history.db"), &error)
    }

    #[test]
    fn only_corruption_codes_count_as_damage() {
        use ffi::*;
        let is_damage = |code| matches!(classified(code), HistoryError::Damaged { .. });
        for code in [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_CORRUPT_INDEX] {
            assert!(is_damage(code), "{code}");
        }
        for code in [
            [SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT, SQLITE_LOCKED],
            [SQLITE_FULL, SQLITE_IOERR, SQLITE_IOERR_READ],
            [SQLITE_IOERR_SHORT_READ, SQLITE_IOERR_LOCK, SQLITE_CANTOPEN],
            [SQLITE_READONLY, SQLITE_PERM, SQLITE_NOMEM],
            [SQLITE_PROTOCOL, SQLITE_ERROR, SQLITE_MISUSE],
        ]
        .concat()
        {
            assert!(!is_damage(code), "{code}");
        }
    }
}
