//! Creates scratch files: without a name (or unlinked at once), and gone when the last descriptor
//! closes. The engine decides their sizes and content.

use crate::admit::Permit;
use crate::failure::OpenError;
use crate::kernel::syscalls::SignalsHeld;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, ftruncate, openat, unlinkat};
use rustix::io::Errno;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::{BorrowedFd, OwnedFd};

/// Names tried before the creation fails; with 64 random bits in the name even the second try means
/// that something else is wrong.
const NAME_TRIES: usize = 4;

/// An empty, nameless, writable file in `directory`. The permit is the proof that the directory was
/// admitted.
pub(crate) fn create(
    directory: BorrowedFd<'_>,
    path: &str,
    _permit: &Permit,
) -> Result<OwnedFd, OpenError> {
    match create_nameless(directory) {
        Err(errno) if means_no_tmpfile(errno) => create_named(directory),
        result => result,
    }
    .map_err(|errno| OpenError::from_errno(path, "create a scratch file in it", errno))
}

/// O_TMPFILE; with O_EXCL, so that the file can never be linked into the filesystem (open(2)).
fn create_nameless(directory: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    openat(
        directory,
        ".",
        OFlags::TMPFILE | OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC,
        owner_only(),
    )
}

/// True of the answers of kernels and filesystems without O_TMPFILE: EOPNOTSUPP (vfat, NFS, FUSE),
/// EISDIR (kernels that do not know the flag), and EINVAL or ENOSYS from FUSE servers.
fn means_no_tmpfile(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS
    )
}

/// A new file under a name of ours, unlinked at once. Signals wait until the name is gone, so that
/// Ctrl-C cannot leave it behind.
fn create_named(directory: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    for _ in 0..NAME_TRIES {
        let name = format!(".diskproof-{}-{:016x}", std::process::id(), random_u64());
        let _held = SignalsHeld::begin();
        match openat(directory, &name, flags, owner_only()) {
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
            Ok(file) => {
                unlinkat(directory, &name, AtFlags::empty())?;
                return Ok(file);
            }
        }
    }
    Err(Errno::EXIST)
}

/// Makes a file at least `size_bytes` long, without content, where that is cheap and spares its
/// first writes from going one by one. It is only an optimization: a failure leaves everything as
/// it was.
///
/// A direct write that makes a file longer holds all others up until it is done
/// (ext4_dio_write_iter, xfs_file_write_checks and fuse_dio_wr_exclusive_lock in Linux 6.x), so no
/// queue would ever reach the disk. btrfs writes one by one either way; FAT would write the zeros.
pub(crate) fn extend_if_cheap(file: BorrowedFd<'_>, filesystem: &str, size_bytes: u64) {
    let is_cheap = matches!(filesystem, "ext4" | "xfs" | "overlay" | "fuse")
        || filesystem.starts_with("fuse.");
    if is_cheap && fstat(file).is_ok_and(|stat| (stat.st_size as u64) < size_bytes) {
        let _ = ftruncate(file, size_bytes);
    }
}

/// Read and write for the owner.
pub(crate) fn owner_only() -> Mode {
    Mode::RUSR | Mode::WUSR
}

/// A number that cannot be guessed: the standard library seeds its hash maps from the kernel's
/// random source.
pub(crate) fn random_u64() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn both_ways_leave_no_name_and_open_to_the_owner_only() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let handle = std::fs::File::open(directory.path()).unwrap();
        for create in [create_nameless, create_named] {
            let file = create(handle.as_fd()).unwrap();
            let stat = fstat(&file).unwrap();
            assert_eq!(stat.st_nlink, 0);
            assert_eq!(stat.st_size, 0);
            assert_eq!(stat.st_mode & 0o777, 0o600);
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
            assert_eq!(rustix::io::pwrite(&file, b"x", 0), Ok(1));
        }
    }

    #[test]
    fn signals_are_delivered_again_afterwards() {
        let mask = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("SigBlk"));
            line.unwrap().to_owned()
        };
        let before = mask();
        let held = SignalsHeld::begin();
        assert_ne!(mask(), before);
        drop(held);
        assert_eq!(mask(), before);
    }
}
