//! The blocking calls that drop the content of a block: of a device, and of a file.
#![allow(unsafe_code)]

use super::backend::{TrimCall, completion_result};
use std::os::fd::RawFd;

/// BLKDISCARD of linux/fs.h: `_IO(0x12, 119)`.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// The hole leaves the size of the file as it is.
pub(super) const PUNCH_HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

/// Drops the content of a range; 0 or a negative errno.
pub(crate) fn trim(fd: RawFd, call: TrimCall, offset: u64, len: u64) -> i32 {
    let returned = match call {
        TrimCall::Discard => {
            let range = [offset, len];
            // SAFETY: the kernel reads two numbers, which live until the call returns.
            unsafe { libc::ioctl(fd, BLKDISCARD, range.as_ptr()) }
        }
        // SAFETY: takes a file descriptor and numbers.
        TrimCall::PunchHole => unsafe {
            libc::fallocate(fd, PUNCH_HOLE, offset as i64, len as i64)
        },
    };
    completion_result(returned as isize)
}
