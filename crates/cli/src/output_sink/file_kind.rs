//! Tells kinds of files apart: what may be written, what is the same file, and what stdout leads
//! to.

use super::error::{OutputError, REPLACED_TEXT};
use rustix::fs::{FileType, Stat, fstat, stat};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

/// True if both are the same file.
pub(super) fn is_same(stat: &Stat, other: &Stat) -> bool {
    stat.st_dev == other.st_dev && stat.st_ino == other.st_ino
}

/// True if two descriptors hold the same file; false where that cannot be known.
pub(super) fn is_same_file(descriptor: impl AsFd, other: impl AsFd) -> bool {
    let Ok(stat) = fstat(descriptor) else {
        return false;
    };
    let Ok(other_stat) = fstat(other) else {
        return false;
    };
    is_same(&stat, &other_stat)
}

pub(super) fn is_null_device(held: &OwnedFd) -> bool {
    match fstat(held) {
        Ok(stat) => is_null(stat.st_rdev),
        Err(_) => false,
    }
}

/// A path that leads to what a descriptor holds, and to nothing else (proc_pid_fd(5)).
pub(super) fn proc_path(held: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", held.as_raw_fd())
}

pub(super) fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Refuses what must never be written by a mistyped name, such as a disk behind a symlink.
pub(super) fn check_type(stat: &Stat) -> Result<(), OutputError> {
    let rdev = stat.st_rdev;
    Err(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => return Ok(()),
        FileType::CharacterDevice if is_null(rdev) || is_standard_terminal(rdev) => return Ok(()),
        FileType::Directory => OutputError::is_directory(),
        FileType::BlockDevice => {
            OutputError::refused("is a block device, and would be overwritten; name a file")
        }
        FileType::CharacterDevice => OutputError::refused("is a character device; name a file"),
        FileType::Symlink => OutputError::refused(REPLACED_TEXT),
        _ => OutputError::refused("is a socket; name a file"),
    })
}

/// True for /dev/null (Linux, Documentation/admin-guide/devices.txt).
fn is_null(rdev: u64) -> bool {
    rustix::fs::major(rdev) == 1 && rustix::fs::minor(rdev) == 3
}

/// The files that stdout and stderr lead to.
pub(super) fn standard_streams() -> impl Iterator<Item = Stat> {
    ["/proc/self/fd/1", "/proc/self/fd/2"]
        .into_iter()
        .filter_map(|path| stat(path).ok())
}

/// True for the terminal on stdout or stderr.
fn is_standard_terminal(rdev: u64) -> bool {
    for stream in standard_streams() {
        let kind = FileType::from_raw_mode(stream.st_mode);
        if kind == FileType::CharacterDevice && stream.st_rdev == rdev {
            return true;
        }
    }
    false
}

/// True if stdout or stderr goes to this file: replacing it would lose what is printed.
pub(super) fn is_standard_stream(stat: &Stat) -> bool {
    standard_streams().any(|stream| is_same(&stream, stat))
}
