//! The file `X.lock` next to the history `X`. Every open history holds it shared; making the file
//! and moving a damaged one need it alone. SQLite's own locks belong to the file that is moved, so
//! they cannot do this. The lock file also carries the mark that X was made by diskproof: it is
//! made before X, and beside no other file. A lock file that this process did not make is never
//! written.

use crate::error::{HistoryError, WithPath as _};
use crate::place::{LOCK_SUFFIX, exists, open_own, start_of, with_suffix};
use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest wait for other processes, here and for SQLite's own locks; the text of
/// [`HistoryError::Busy`] states it. A save takes milliseconds; slow disks and a queue of savers
/// take seconds. Chosen, not measured.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(20);
/// A save takes milliseconds, so a waiting process looks as often.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The longest that a process may take between making a lock file and marking it: two system calls.
/// Chosen, not measured.
const MARK_WAIT: Duration = Duration::from_secs(1);
/// Content of a lock file. Every version of the program looks for it: a history whose lock file has
/// another content is refused.
const MARK: &[u8] = b"diskproof history\n";

/// The lock of the files of one history, held until dropped.
#[derive(Debug)]
pub(crate) struct PlaceLock {
    file: File,
    path: PathBuf,
    is_new: bool,
    /// The error of marking a new file; `None` where it has its mark.
    unmarked: Option<io::Error>,
}

impl PlaceLock {
    /// Waits until no other process holds the lock alone.
    pub(crate) fn shared(history: &Path) -> Result<Self, HistoryError> {
        Self::take(history, File::try_lock_shared)
    }

    /// Waits until no other process holds the lock.
    pub(crate) fn exclusive(history: &Path) -> Result<Self, HistoryError> {
        Self::take(history, File::try_lock)
    }

    fn take(
        history: &Path,
        try_lock: fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, HistoryError> {
        let started = Instant::now();
        loop {
            let lock = Self::open(history)?;
            match try_lock(&lock.file) {
                Ok(()) => {
                    let is_current = lock.is_current().with_path(history)?;
                    if is_current {
                        return Ok(lock);
                    }
                    // Another process removed the lock file before this lock was taken.
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => {
                    return Err(HistoryError::kernel(history, error));
                }
            }
            if started.elapsed() >= LOCK_WAIT {
                return Err(HistoryError::Busy(history.to_owned()));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Opens the lock file, or makes it.
    fn open(history: &Path) -> Result<Self, HistoryError> {
        let path = with_suffix(history, LOCK_SUFFIX);
        let mut options = File::options();
        options.read(true).write(true).mode(0o600);
        match options.clone().create_new(true).open(&path) {
            Ok(mut file) => {
                // A history that exists can be used without the mark, as on a full disk.
                let unmarked = file.write_all(MARK).err();
                Ok(Self {
                    file,
                    path,
                    is_new: true,
                    unmarked,
                })
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                read_mark(history)?;
                match open_own(&path, &options)? {
                    Some(file) => Ok(Self {
                        file,
                        path,
                        is_new: false,
                        unmarked: None,
                    }),
                    None => Self::open(history),
                }
            }
            Err(error) => Err(HistoryError::kernel(history, error)),
        }
    }

    fn is_current(&self) -> io::Result<bool> {
        let held = self.file.metadata()?;
        let named = match std::fs::metadata(&self.path) {
            Ok(named) => named,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let is_same_device = named.dev() == held.dev();
        let is_same_file = named.ino() == held.ino();
        Ok(is_same_device && is_same_file)
    }

    /// Removes a lock file that this process made for a history that it then could not make.
    pub(crate) fn discard(self) {
        let is_current = self.is_current().unwrap_or(false);
        if self.is_new && is_current && self.file.try_lock().is_ok() {
            // A lock file that stays behind does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// True if the lock file of this history has the mark; false also for an empty one, which is locked
/// and never written. Any other content is that of another program, as in `Cargo.lock` of a history
/// `Cargo`, and is an error.
pub(crate) fn read_mark(history: &Path) -> Result<bool, HistoryError> {
    let path = with_suffix(history, LOCK_SUFFIX);
    match start_of(&path)? {
        Some(content) if content == MARK => Ok(true),
        Some(content) if !content.is_empty() => Err(HistoryError::made_by_others(&path)),
        _ => Ok(false),
    }
}

/// Makes the file, empty, if it is missing. Needs the lock alone: closing any descriptor of a file
/// drops all POSIX locks that this process has on it, those of another thread's SQLite included
/// (<https://www.sqlite.org/howtocorrupt.html>, 2.2).
pub(crate) fn make_file(path: &Path) -> Result<(), HistoryError> {
    if exists(path)? {
        return Ok(());
    }
    let mut lock = PlaceLock::exclusive(path)?;
    if let Some(error) = lock.unmarked.take() {
        // An empty database without the mark would count as the file of another program.
        lock.discard();
        return Err(HistoryError::kernel(path, error));
    }
    // The process that made the lock file marks it in the next moment, if it was not killed.
    let started = Instant::now();
    while !read_mark(path)? && started.elapsed() < MARK_WAIT {
        std::thread::sleep(POLL_INTERVAL);
    }
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => {
            lock.discard();
            Err(HistoryError::kernel(path, error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_a_busy_history_states_the_wait() {
        let error = HistoryError::Busy(PathBuf::from("history")).to_string();
        let wait = format!(" for {} s.", LOCK_WAIT.as_secs());
        assert!(error.contains(&wait), "{error}");
    }
}
