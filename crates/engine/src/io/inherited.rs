//! Takes over the descriptor that a launcher of several processes left open, such as the socket of
//! its fences.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

/// An own descriptor of the file that the parent process left open under this number. Fails where
/// none is open.
pub fn inherited_descriptor(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers, and fails for one that is not open.
    let own = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if own < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us, and no other code knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(own) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_that_is_not_open_is_an_error() {
        assert!(inherited_descriptor(1_000_000).is_err());
        assert!(inherited_descriptor(2).is_ok());
    }
}
