//! Opens a second file description of an open target, with its own flags and advice (O_DIRECT,
//! read-ahead) and no more rights than the first. It goes through the first one's entry in /proc,
//! never by a path, so that it is always the same file.

use crate::failure::{OpenError, changed};
use crate::file::direct_io::clear_flags;
use crate::file::held::proc_path;
use crate::kernel::file_id::FileId;
use rustix::fs::{Mode, OFlags, Stat, fcntl_getfl, fstat, open};
use std::os::fd::{BorrowedFd, OwnedFd};

/// Opens what `first` has open once more, with the same right to write or without, and with flags
/// that only an open can set (`O_DSYNC`, `O_SYNC`: F_SETFL ignores them, fcntl(2)); `path` is for
/// messages.
pub(crate) fn reopen(
    first: BorrowedFd<'_>,
    extra: OFlags,
    path: &str,
) -> Result<OwnedFd, OpenError> {
    let failed =
        |errno| OpenError::from_errno(path, "open it a second time (/proc/self/fd)", errno);
    let right = fcntl_getfl(first).map_err(failed)? & OFlags::RWMODE;
    // Not O_EXCL: the kernel's claim on a device is the first description's, and a second claim
    // would be refused (blkdev_open() in Linux's block/fops.c). NONBLOCK, as everywhere:
    // nothing that took its place could hang us.
    let flags = right | extra | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = open(proc_path(first), flags, Mode::empty()).map_err(failed)?;
    let first_stat = fstat(first).map_err(failed)?;
    let reopened_stat = fstat(&fd).map_err(failed)?;
    if !is_same_node(&first_stat, &reopened_stat)
        || fcntl_getfl(&fd).map_err(failed)? & OFlags::RWMODE != right
    {
        return Err(changed(path, "/proc/self/fd points to something else"));
    }
    clear_flags(&fd, OFlags::NONBLOCK).map_err(failed)?;
    Ok(fd)
}

/// True if both are the same inode, and it is still the same device with the same mode.
fn is_same_node(first: &Stat, reopened: &Stat) -> bool {
    FileId::from(first) == FileId::from(reopened)
        && first.st_rdev == reopened.st_rdev
        && first.st_mode == reopened.st_mode
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{fcntl_setfl, unlink};
    use std::os::fd::AsFd as _;

    #[test]
    fn a_second_description_has_flags_of_its_own_and_no_more_rights() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "content").unwrap();
        for right in [OFlags::RDONLY, OFlags::RDWR] {
            let first = open(&path, right | OFlags::CLOEXEC, Mode::empty()).unwrap();
            let again = reopen(first.as_fd(), OFlags::empty(), "x").unwrap();
            fcntl_setfl(&again, OFlags::NOATIME).unwrap();
            // Another description.
            assert!(!fcntl_getfl(&first).unwrap().contains(OFlags::NOATIME));
            assert_eq!(fcntl_getfl(&again).unwrap() & OFlags::RWMODE, right);
            let is_written = rustix::io::pwrite(&again, b"C", 0).is_ok();
            assert_eq!(is_written, right == OFlags::RDWR);
        }
    }

    #[test]
    fn what_has_lost_its_name_is_found_and_what_took_the_name_is_not() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "first").unwrap();
        let first = open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        unlink(&path).unwrap();
        std::fs::write(&path, "other").unwrap();
        let again = reopen(first.as_fd(), OFlags::empty(), "x").unwrap();
        let mut content = [0; 5];
        assert_eq!(rustix::io::pread(&again, &mut content[..], 0), Ok(5));
        assert_eq!(&content, b"first");
    }
}
