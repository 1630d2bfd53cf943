//! Write-back of a file's content without a commit of the filesystem's journal, and the caches of
//! the whole machine.
#![allow(unsafe_code)]

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Writes the pages of a file to the disk and waits for them. Unlike fdatasync(2) it writes neither
/// the inode nor the journal, which for thousands of small files would take minutes on a rotating
/// disk. The data is not durable afterwards (sync_file_range(2)), but the pages are clean.
pub(crate) fn write_pages(file: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the descriptor is open as long as it is borrowed; the call takes no memory of ours.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) };
    match result {
        0 => Ok(()),
        _ => Err(crate::errno::of(&std::io::Error::last_os_error())),
    }
}

/// Drops clean pages, names and inodes of the whole machine (proc_sys_vm(5)). Only root may.
pub(crate) fn drop_all_caches() -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(DROP_CACHES, flags, rustix::fs::Mode::empty())?;
    rustix::io::write(&file, b"3").map(drop)
}
