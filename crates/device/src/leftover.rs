//! The directory that a killed test of many small files left behind. Everything in it is checked to
//! be of that test before anything is removed; one strange entry keeps all of it. Every step goes
//! through a descriptor, so that no exchange of a name leads out of the directory.

use crate::claimed::{CLAIM, ClaimedDirectory, not_ours};
use crate::failure::OpenError;
use crate::file_names::{is_file_name, is_folder_name};
use crate::tree::{Entry, count_ours};
use rustix::fs::FileType;
use std::os::fd::BorrowedFd;

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
    let made = claimed.files();
    let is_ours = |entry: &Entry<'_>| match entry.kind() {
        FileType::Directory => entry.depth == 0 && is_folder_name(entry.name_bytes()),
        _ => entry.depth == 1 && is_file_name(entry.name_bytes()) && made.accept(entry.stat()),
    };
    let (files, foreign) = count_ours(claimed.directory(), CLAIM, &is_ours).map_err(|errno| {
        OpenError::from_errno(path, "list the remains of an earlier run", errno)
    })?;
    match foreign.text() {
        Some(what) => Err(not_ours(path, &what)),
        None => claimed.remove(&is_ours).map(|()| Some(files)),
    }
}
