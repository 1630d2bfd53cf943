//! A file descriptor and a descriptor table of a thread's own.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

/// The thread's own descriptor of the file. It also gets a descriptor table of its own: in a shared
/// table each system call counts a reference up and down by locked instructions, which costs a fast
/// disk 2 % (fdget() in Linux's fs/file.c). So a thread that is stuck keeps the file open, too.
pub(crate) fn own_descriptor(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: unsharing the table changes nothing for other threads; this one makes no assumption
    // on theirs.
    if unsafe { libc::unshare(libc::CLONE_FILES) } == 0 {
        close_others(fd);
        // SAFETY: the table is this thread's alone now, and so is its entry for `fd`, which was
        // open when the table was copied.
        return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
    }
    // SAFETY: the owner keeps `fd` open until this thread has reported ready.
    unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
}

/// Empties a table of the thread's own but for `fd` and standard error: a thread that is stuck in
/// the kernel would keep everything else open, too, other targets and the pipe that a program reads
/// the result from.
fn close_others(fd: RawFd) {
    let fd = fd as libc::c_uint;
    for (first, last) in [
        (0, 1),
        (3, fd.saturating_sub(1)),
        (fd + 1, libc::c_uint::MAX),
    ] {
        if first <= last && !(first..=last).contains(&fd) {
            // SAFETY: nothing in this thread uses another descriptor than `fd`. Before Linux 5.9
            // there is no such call, and all stay open.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
}
