//! The place of a history: its path with symlinks resolved, its files, and its folders, which are
//! readable by their owner only because records name machines and disks.

use crate::error::{HistoryError, WithPath as _, folder_of};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The bytes that are read of a file to see who made it: the header of a SQLite database.
const HEADER_BYTES: u64 = 100;
/// Ends the name of the lock file beside a history.
pub(crate) const LOCK_SUFFIX: &str = ".lock";
/// The ends of the names of the files that SQLite puts beside a database.
pub(crate) const SQLITE_SUFFIXES: [&str; 3] = ["-journal", "-shm", "-wal"];
/// The most symlinks that are followed, as many as the kernel follows (path_resolution(7)).
const SYMLINKS_MAX: usize = 40;

/// The file of a history, and the treatment of its folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryPlace {
    /// The path as given, absolute or relative to the working directory.
    pub path: PathBuf,
    /// The treatment of missing folders.
    pub folders: Folders,
}

/// The treatment of missing folders on the way to the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folders {
    /// Make them, for their owner only, as the XDG base directory specification requires.
    Made,
    /// They must exist: the user may have mistyped the path, or not mounted its disk.
    Expected,
}

impl HistoryPlace {
    /// The history and the files beside it that belong to it.
    pub fn files(&self) -> Vec<PathBuf> {
        ["", LOCK_SUFFIX]
            .into_iter()
            .chain(SQLITE_SUFFIXES)
            .map(|suffix| with_suffix(&self.path, suffix))
            .collect()
    }

    /// The path of the file, as [`Self::resolved`] finds it; `None` where there is no file.
    pub(crate) fn existing(&self) -> Option<Result<PathBuf, HistoryError>> {
        match exists(&self.path) {
            Ok(true) => Some(self.resolved()),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// The absolute path with all symlinks resolved: of a symlink, its target is used and replaced.
    /// The symlinks must be this user's or root's.
    pub(crate) fn resolved(&self) -> Result<PathBuf, HistoryError> {
        refuse_foreign_link(&self.path)?;
        if let Ok(path) = self.path.canonicalize() {
            return Ok(path);
        }
        refuse_dangling_link(&self.path)?;
        let Some(name) = self.path.file_name() else {
            return Err(HistoryError::NotAFile(self.path.clone()));
        };
        match self.resolved_folder() {
            Ok(folder) => Ok(folder.join(name)),
            Err(error) => Err(HistoryError::kernel(&self.path, error)),
        }
    }

    /// The absolute path of the folder, which is made where it may be.
    fn resolved_folder(&self) -> io::Result<PathBuf> {
        let folder = folder_of(&self.path);
        if self.folders == Folders::Made {
            make_folders(folder)?;
        }
        folder.canonicalize()
    }
}

/// True if there is a file; anything but a regular file is an error.
pub(crate) fn exists(path: &Path) -> Result<bool, HistoryError> {
    match std::fs::metadata(path).as_ref().map(Metadata::is_file) {
        Ok(true) => Ok(true),
        Ok(false) => Err(HistoryError::NotAFile(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            refuse_dangling_link(path)?;
            Ok(false)
        }
        Err(error) => Err(HistoryError::kernel(path, io::Error::from(error.kind()))),
    }
}

/// Refuses a dangling symlink: following it would make a file at a place that the user did not
/// name.
fn refuse_dangling_link(path: &Path) -> Result<(), HistoryError> {
    match std::fs::read_link(path) {
        Ok(target) if !path.exists() => Err(HistoryError::DanglingLink {
            path: path.to_owned(),
            target,
        }),
        _ => Ok(()),
    }
}

/// Refuses a symlink of another user: it may lead anywhere, and the kernel follows it outside of
/// directories like /tmp.
fn refuse_foreign_link(path: &Path) -> Result<(), HistoryError> {
    let mut path = path.to_owned();
    for _ in 0..SYMLINKS_MAX {
        let Ok(target) = std::fs::read_link(&path) else {
            break;
        };
        let link = std::fs::symlink_metadata(&path).with_path(&path)?;
        if link.uid() != 0 && link.uid() != geteuid().as_raw() {
            let why = "is a symbolic link that belongs to another user";
            return Err(HistoryError::not_ours(&path, why));
        }
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    Ok(())
}

/// The first bytes of a file of the history; `None` where there is no file.
pub(crate) fn start_of(path: &Path) -> Result<Option<Vec<u8>>, HistoryError> {
    let Some(file) = open_own(path, File::options().read(true))? else {
        return Ok(None);
    };
    let mut start = Vec::new();
    file.take(HEADER_BYTES)
        .read_to_end(&mut start)
        .with_path(path)?;
    Ok(Some(start))
}

/// Opens a file of the history; `None` where there is none. Refuses a symlink, and everything but
/// a regular file of this user with one name.
pub(crate) fn open_own(
    path: &Path,
    options: &std::fs::OpenOptions,
) -> Result<Option<File>, HistoryError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = options
        .clone()
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Err(HistoryError::not_ours(path, "is a symbolic link"));
        }
        Err(error) => return Err(HistoryError::kernel(path, error)),
    };
    let facts = file.metadata().with_path(path)?;
    match why_foreign(&facts) {
        None => Ok(Some(file)),
        Some(why) => Err(HistoryError::not_ours(path, why)),
    }
}

/// The reason why a file cannot be one of the history, as a clause; `None` where it can.
fn why_foreign(facts: &Metadata) -> Option<&'static str> {
    if !facts.is_file() {
        return Some("is not a regular file");
    }
    if facts.uid() != geteuid().as_raw() {
        return Some("belongs to another user");
    }
    if facts.nlink() > 1 {
        return Some("has more than one name (hard links)");
    }
    None
}

/// The path with something added to its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Makes a folder and every missing one above it, and syncs each into its parent.
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
