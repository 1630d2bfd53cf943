//! The directory that a killed test of many small files left behind. Everything in it is checked to
//! be of that test before anything is removed; one strange entry keeps all of it. Every step goes
//! through a descriptor, so that no exchange of a name leads out of the directory.

use crate::failure::OpenError;
use crate::file_names::{is_file_name, is_folder_name};
use crate::kept::{CLAIM, ClaimedDirectory, not_ours, open_folder};
use crate::tree::entry_names;
use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsFd as _, BorrowedFd};

/// Removes the directory `name`, shown as `path`, if a killed test left it. Returns how many files
/// it held; `None` where there is no such directory, or one without a file.
pub(crate) fn remove(
    parent: BorrowedFd<'_>,
    name: &str,
    path: &str,
) -> Result<Option<u64>, OpenError> {
    let Some(claimed) = ClaimedDirectory::claim_in(parent, name, path)? else {
        return Ok(None);
    };
    let files = count_files(claimed.directory(), path)?;
    claimed.remove()?;
    Ok(Some(files))
}

/// Counts the files of the test. Anything else in the directory is an error.
fn count_files(folder: BorrowedFd<'_>, path: &str) -> Result<u64, OpenError> {
    let failed = |errno| OpenError::from_errno(path, "list the remains of an earlier run", errno);
    let mut files = 0;
    for name in entry_names(folder).map_err(failed)? {
        if name.as_bytes() == CLAIM.as_bytes() {
            continue;
        }
        let kind = kind(folder, &name).map_err(failed)?;
        if kind != FileType::Directory || !is_folder_name(name.as_bytes()) {
            return Err(strange(path, &name));
        }
        let inner = open_folder(folder, name.as_c_str()).map_err(failed)?;
        for file in entry_names(inner.as_fd()).map_err(failed)? {
            let kind = self::kind(inner.as_fd(), &file).map_err(failed)?;
            if kind != FileType::RegularFile || !is_file_name(file.as_bytes()) {
                return Err(strange(path, &file));
            }
            files += 1;
        }
    }
    Ok(files)
}

fn kind(folder: BorrowedFd<'_>, name: &CStr) -> Result<FileType, Errno> {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

fn strange(path: &str, name: &CStr) -> OpenError {
    let name = name.to_string_lossy();
    not_ours(path, &format!("diskproof did not create '{name}' in it"))
}
