//! Whether another process has a file open for writing: the kernel grants a lease only where none
//! has.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd};

/// What the kernel knows of other writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writers {
    /// There are none.
    None,
    /// There are some.
    Some,
    /// The filesystem has no leases (NFS, FUSE), or this user may not have one.
    Unknown,
}

/// Takes a write lease on a descriptor that is open for writing, and gives it back at once
/// (fcntl(2), F_SETLEASE).
pub(crate) fn writers_beside(fd: BorrowedFd<'_>) -> Writers {
    // SAFETY: F_SETLEASE takes a number; the descriptor is open for the length of the borrow.
    let lease = |kind: i32| unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, kind) };
    if lease(libc::F_WRLCK) == 0 {
        lease(libc::F_UNLCK);
        return Writers::None;
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EAGAIN) => Writers::Some,
        _ => Writers::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn another_writer_is_known_and_none_is_known_too() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        assert_eq!(writers_beside(file.as_file().as_fd()), Writers::None);
        let other = std::fs::File::options()
            .write(true)
            .open(file.path())
            .unwrap();
        assert_eq!(writers_beside(file.as_file().as_fd()), Writers::Some);
        drop(other);
        assert_eq!(writers_beside(file.as_file().as_fd()), Writers::None);
    }
}
