//! The lock beside a history, which keeps it in its place: whoever has the database open holds it
//! shared, whoever makes the file or moves a damaged one aside holds it alone. SQLite's own locks
//! are on the file that is moved, so that they cannot do this.

use crate::error::HistoryError;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long others are waited for, here and for SQLite's own locks. A save takes milliseconds; slow
/// disks and a queue of savers take seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(5);

/// Held until dropped.
#[derive(Debug)]
pub(crate) struct PlaceLock {
    _file: File,
}

impl PlaceLock {
    /// Together with others.
    pub(crate) fn shared(history: &Path) -> Result<Self, HistoryError> {
        Self::take(history, File::try_lock_shared)
    }

    /// Alone.
    pub(crate) fn exclusive(history: &Path) -> Result<Self, HistoryError> {
        Self::take(history, File::try_lock)
    }

    fn take(
        history: &Path,
        attempt: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, HistoryError> {
        let failed = |error: io::Error| HistoryError::kernel(history, error);
        let path = lock_path(history);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let begun = Instant::now();
        loop {
            match attempt(&file) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE)
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(HistoryError::Busy {
                        path: history.to_owned(),
                    });
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }
}

fn lock_path(history: &Path) -> PathBuf {
    let mut name = history.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}
