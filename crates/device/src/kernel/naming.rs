//! The names that Linux gives to block devices (by number and by node) and to errors. Reads
//! nothing.

use rustix::fs::{FileType, Stat, major, minor};
use rustix::io::Errno;

/// A device number as `major:minor`.
pub(crate) fn device_number(number: u64) -> String {
    format!("{}:{}", major(number), minor(number))
}

/// True for the block device of that number.
pub(crate) fn is_device(stat: &Stat, number: &str) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice
        && device_number(stat.st_rdev) == number
}

/// True for the character device of that number.
pub(crate) fn is_character_device(stat: &Stat, number: &str) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
        && device_number(stat.st_rdev) == number
}

/// `/dev/NAME`, where the node of a kernel name usually stands; the kernel writes an exclamation
/// mark for a slash.
pub(crate) fn node(name: &str) -> String {
    format!("/dev/{}", name.replace('!', "/"))
}

/// The name of an errno, such as `EINVAL`.
pub(crate) fn errno_name(errno: Errno) -> String {
    diskproof_model::errno::name(errno.raw_os_error())
}

/// The error number of a standard library error; EIO where it carries none.
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
