//! Error numbers of the system, for messages.

use rustix::io::Errno;

/// `EINVAL` for 22, and so on.
pub(crate) fn name(errno: Errno) -> String {
    diskproof_model::errno::name(errno.raw_os_error())
}

/// The error number of a standard library error; EIO where it carries none.
pub(crate) fn of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
