//! The flags of an open file description that can change (F_SETFL of fcntl(2)).

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::os::fd::AsFd;

/// Takes flags away, and leaves the others.
pub(crate) fn clear(fd: impl AsFd, flags: OFlags) -> Result<(), Errno> {
    fcntl_setfl(&fd, fcntl_getfl(&fd)?.difference(flags))
}

/// Whether it bypasses the page cache.
pub(crate) fn is_direct(fd: impl AsFd) -> bool {
    fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
}
