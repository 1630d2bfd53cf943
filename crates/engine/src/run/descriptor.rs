//! A file descriptor and a descriptor table of a thread's own.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

/// The thread's own descriptors of one or two files. It also gets its own descriptor table: in a
/// shared table each system call counts a reference up and down by locked instructions, which costs
/// a fast disk 2 % (fdget() in Linux's fs/file.c). So a thread that is stuck keeps the files open,
/// too.
pub(crate) fn own_descriptors(
    fd: RawFd,
    other: Option<RawFd>,
) -> io::Result<(OwnedFd, Option<OwnedFd>)> {
    // SAFETY: unsharing the table changes nothing for other threads; this one makes no assumption
    // on theirs.
    if unsafe { libc::unshare(libc::CLONE_FILES) } == 0 {
        close_others(fd, other);
        // SAFETY: the table is this thread's alone now, and so are its entries for these files,
        // which were open when the table was copied.
        let own = |fd: RawFd| unsafe { OwnedFd::from_raw_fd(fd) };
        return Ok((own(fd), other.map(own)));
    }
    // SAFETY: the owner keeps the files open until this thread has reported ready.
    let duplicate = |fd: RawFd| unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
    Ok((duplicate(fd)?, other.map(duplicate).transpose()?))
}

/// Empties a table of the thread's own but for these files and standard error: a thread that is
/// stuck in the kernel would keep everything else open, too, other targets and the pipe that a
/// program reads the result from.
fn close_others(fd: RawFd, other: Option<RawFd>) {
    let mut kept = [fd, other.unwrap_or(fd), libc::STDERR_FILENO].map(|fd| fd as libc::c_uint);
    kept.sort_unstable();
    let mut first = 0;
    for fd in kept {
        close_range(first, fd.checked_sub(1));
        first = fd + 1;
    }
    close_range(first, Some(libc::c_uint::MAX));
}

/// Closes descriptors of a table of the thread's own.
fn close_range(first: libc::c_uint, last: Option<libc::c_uint>) {
    if let Some(last) = last.filter(|last| *last >= first) {
        // SAFETY: nothing in this thread uses these descriptors. Before Linux 5.9 there is no such
        // call, and all stay open.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}
