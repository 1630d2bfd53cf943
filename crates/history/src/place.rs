//! Where a history lies, and how its file comes into being: readable by its owner only, since
//! records hold names of machines and disks.

use crate::error::HistoryError;
use crate::lock::PlaceLock;
use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Where a history lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// What is done about missing folders.
    pub folders: Folders,
}

/// What is done about missing folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folders {
    /// They are made, for their owner only, as the XDG base directory specification wants it.
    Made,
    /// They must be there: a name that the user typed may be mistyped, or its disk not mounted.
    Expected,
}

impl Place {
    /// The file with its folder resolved, so that the path stays true wherever the program goes,
    /// and a symlink's target is what gets replaced.
    pub(crate) fn resolved(&self) -> Result<PathBuf, HistoryError> {
        let failed = |error| HistoryError::kernel(&self.path, error);
        if let Ok(path) = self.path.canonicalize() {
            return Ok(path);
        }
        let name = self
            .path
            .file_name()
            .ok_or_else(|| HistoryError::NotAFile {
                path: self.path.clone(),
            })?;
        let folder = self
            .path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        if self.folders == Folders::Made {
            make_folders(folder).map_err(failed)?;
        }
        Ok(folder.canonicalize().map_err(failed)?.join(name))
    }
}

/// Whether there is a file; anything but a regular file is an error.
pub(crate) fn exists(path: &Path) -> Result<bool, HistoryError> {
    match std::fs::metadata(path).as_ref().map(Metadata::is_file) {
        Ok(true) => Ok(true),
        Ok(false) => Err(HistoryError::NotAFile {
            path: path.to_owned(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(HistoryError::kernel(path, io::Error::from(error.kind()))),
    }
}

/// Makes the file, empty, if it is missing. Alone, because closing a file drops all POSIX locks
/// that this process has on it, those of another thread's SQLite included (<https://www.sqlite.org/howtocorrupt.html>, 2.2).
pub(crate) fn make_file(path: &Path) -> Result<(), HistoryError> {
    if exists(path)? {
        return Ok(());
    }
    let _alone = PlaceLock::exclusive(path)?;
    match File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(HistoryError::kernel(path, error))
        }
        _ => Ok(()),
    }
}

/// With everything above them, each made durable in its parent.
fn make_folders(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_folders(parent)?;
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => File::open(parent)?.sync_all()?,
        }
    }
    Ok(())
}
