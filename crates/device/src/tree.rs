//! Removes what is in our own directory, and drops files in it from the page cache. Enters no mount
//! and follows no symlink. Does not know who made it.

use rustix::fs::{
    Advice, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, fadvise, fstat, openat, openat2,
    statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Deeper than any tree that a program of ours makes.
const DEPTH_MAX: usize = 32;

/// The names in a directory.
pub(crate) fn entry_names(directory: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

/// Drops the clean pages of a file in a directory from the page cache.
pub fn drop_cached_pages(directory: impl AsFd, path: &str) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, path, flags, Mode::empty())?;
    fadvise(file, 0, None, Advice::DontNeed)
}

/// Removes everything in a directory.
pub(crate) fn remove_entries(directory: BorrowedFd<'_>) -> Result<(), Errno> {
    remove_below(directory, fstat(directory)?.st_dev, DEPTH_MAX)
}

fn remove_below(directory: BorrowedFd<'_>, device: u64, depth: usize) -> Result<(), Errno> {
    for name in entry_names(directory)? {
        let stay = AtFlags::SYMLINK_NOFOLLOW;
        let found = match statat(directory, &name, stay) {
            // A program that is ending removed it.
            Err(Errno::NOENT) => continue,
            found => found?,
        };
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            ignore_gone(unlinkat(directory, &name, AtFlags::empty()))?;
            continue;
        }
        let inner = open_unmounted(directory, &name)?;
        if fstat(&inner)?.st_dev != device || depth == 0 {
            return Err(Errno::XDEV);
        }
        remove_below(inner.as_fd(), device, depth - 1)?;
        ignore_gone(unlinkat(directory, &name, AtFlags::REMOVEDIR))?;
    }
    Ok(())
}

/// Opens a directory; EXDEV where something is mounted on it, also a part of the same filesystem.
fn open_unmounted(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let here = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    match openat2(directory, name, flags, Mode::empty(), here) {
        // Before Linux 5.6, and in containers that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => openat(directory, name, flags, Mode::empty()),
        opened => opened,
    }
}

fn ignore_gone(removed: Result<(), Errno>) -> Result<(), Errno> {
    match removed {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}
