//! The blocking calls that change a block without data of ours.
#![allow(unsafe_code)]

use super::backend::{BlockCall, completion_result};
use std::os::fd::RawFd;

/// Changes a range; 0 or a negative errno.
pub(crate) fn call_block(fd: RawFd, call: BlockCall, offset: u64, len: u64) -> i32 {
    let returned = match call {
        BlockCall::Ioctl(code) => {
            let range = [offset, len];
            // SAFETY: the kernel reads two numbers, which live until the call returns.
            unsafe { libc::ioctl(fd, code, range.as_ptr()) }
        }
        // SAFETY: takes a file descriptor and numbers.
        BlockCall::Fallocate(mode) => unsafe {
            libc::fallocate(fd, mode, offset as i64, len as i64)
        },
    };
    completion_result(returned as isize)
}
