//! The directory that a killed test of many small files left behind. Everything in it is checked to
//! be of that test before anything is removed; one strange entry keeps all of it. Every step goes
//! through a descriptor, so that no exchange of a name leads out of the directory.

use crate::errno;
use crate::failure::OpenError;
use crate::file_names::{MARKER, is_file_name, is_folder_name};
use crate::kept::{open_folder, open_own};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, flock, fstat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Removes the directory `name`, shown as `path`, if a killed test left it. Returns how many files
/// it held; `None` where there is no such directory.
pub(crate) fn remove(
    parent: BorrowedFd<'_>,
    name: &str,
    path: &str,
) -> Result<Option<u64>, OpenError> {
    let failed = |doing| move |errno| OpenError::from_errno(path, doing, errno);
    let folder = match open_folder(parent, name) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(not_ours(path, "it is not a directory")),
        Err(errno) => return Err(failed("look at what an earlier run left")(errno)),
    };
    let stat = fstat(&folder).map_err(failed("look at what an earlier run left"))?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(not_ours(path, "it belongs to another user"));
    }
    let content = LeftoverContent::of(&folder, path)?;
    let _lock = match content.marker {
        // The kill came before the first file.
        None if content.is_empty() => None,
        None => return Err(not_ours(path, "it does not hold the file that marks it")),
        Some(()) => Some(lock(&folder, path)?),
    };
    let mut removed = 0;
    for folder_name in &content.folders {
        let inner = open_folder(folder.as_fd(), folder_name.as_c_str())
            .map_err(failed("open a directory that an earlier run left"))?;
        for file in names(&inner).map_err(failed("list what an earlier run left"))? {
            unlinkat(&inner, file.as_c_str(), AtFlags::empty())
                .map_err(failed("remove a file that an earlier run left"))?;
            removed += 1;
        }
        unlinkat(&folder, folder_name.as_c_str(), AtFlags::REMOVEDIR)
            .map_err(failed("remove a directory that an earlier run left"))?;
    }
    if content.marker.is_some() {
        unlinkat(&folder, MARKER, AtFlags::empty())
            .map_err(failed("remove a file that an earlier run left"))?;
    }
    unlinkat(parent, name, AtFlags::REMOVEDIR)
        .map_err(failed("remove the directory that an earlier run left"))?;
    Ok(Some(removed))
}

/// The running test holds the lock. Without locks it is unknown whether one runs.
fn lock(folder: &OwnedFd, path: &str) -> Result<OwnedFd, OpenError> {
    let opened = open_own(folder.as_fd(), MARKER)
        .map_err(|errno| OpenError::from_errno(path, "open the file that marks it", errno))?;
    match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(opened),
        Err(Errno::WOULDBLOCK) => Err(OpenError::InUse {
            path: path.to_owned(),
        }),
        Err(errno) => Err(not_ours(
            path,
            &format!(
                "this filesystem has no locks ({}) that show whether a test still runs in it",
                errno::name(errno)
            ),
        )),
    }
}

/// What the directory holds, all of it checked.
struct LeftoverContent {
    marker: Option<()>,
    folders: Vec<CString>,
}

impl LeftoverContent {
    fn of(folder: &OwnedFd, path: &str) -> Result<Self, OpenError> {
        let failed = |errno| OpenError::from_errno(path, "list what an earlier run left", errno);
        let mut content = Self {
            marker: None,
            folders: Vec::new(),
        };
        for name in names(folder).map_err(failed)? {
            let kind = kind(folder, &name).map_err(failed)?;
            if kind == FileType::RegularFile && name.as_bytes() == MARKER.as_bytes() {
                content.marker = Some(());
                continue;
            }
            if kind != FileType::Directory || !is_folder_name(name.as_bytes()) {
                return Err(strange(path, &name));
            }
            let inner = open_folder(folder.as_fd(), name.as_c_str()).map_err(failed)?;
            for file in names(&inner).map_err(failed)? {
                let kind = self::kind(&inner, &file).map_err(failed)?;
                if kind != FileType::RegularFile || !is_file_name(file.as_bytes()) {
                    return Err(strange(path, &file));
                }
            }
            content.folders.push(name);
        }
        Ok(content)
    }

    fn is_empty(&self) -> bool {
        self.marker.is_none() && self.folders.is_empty()
    }
}

fn kind(folder: &OwnedFd, name: &CStr) -> Result<FileType, Errno> {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// The entries of a directory. They are listed before the first is removed: POSIX leaves open what
/// a listing shows of a directory that changes meanwhile.
fn names(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

fn not_ours(path: &str, what: &str) -> OpenError {
    OpenError::NotOurs {
        path: path.to_owned(),
        what: what.to_owned(),
    }
}

fn strange(path: &str, name: &CStr) -> OpenError {
    let name = name.to_string_lossy();
    not_ours(path, &format!("diskproof did not make '{name}' in it"))
}
