//! Holds what a path leads to, by a descriptor without the right to read or write (O_PATH). It can
//! be checked before anything is opened, and opened without resolving the path again. Whatever
//! another process renames, exchanges or links meanwhile, the descriptor stays with the inode.

use crate::failure::{OpenError, changed, open_failed};
use crate::kernel::file_id::FileId;
use crate::kernel::naming::{device_number, is_device};
use crate::kernel::steps::{self, GateStep};
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat2};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// A path is resolved so many times. Where another process exchanges the target with something else
/// all the time, half of the looks find the target: 16 looks miss the exchange once in 65,000 times
/// (2⁻¹⁶).
const LOOKS: u32 = if cfg!(test) { 2 } else { 16 };
/// The pause between two looks, so that they meet an exchange at different points. Tests exchange
/// the target before a look, not by chance: two looks without a pause are enough.
const LOOK_PAUSE: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 2 });

/// A file, directory or node that a path led to when it was held.
#[derive(Debug)]
pub(crate) struct Held {
    fd: OwnedFd,
    stat: Stat,
}

impl Held {
    /// Follows no symlink, not even in the middle of the path: an identity's path had its symlinks
    /// resolved, so one that is there now is new.
    pub(crate) fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = rustix::fs::CWD;
        steps::before(GateStep::Resolve);
        let fd = match openat2(root, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            // Before Linux 5.6, and under the seccomp filters of older container runtimes.
            Err(Errno::NOSYS | Errno::PERM) => open(path, flags, Mode::empty()),
            result => result,
        }?;
        steps::before(GateStep::Compare);
        let stat = fstat(&fd)?;
        Ok(Self { fd, stat })
    }

    /// Holds what an identity names, if that still has its path.
    pub(crate) fn identified(identity: &TargetIdentity) -> Result<Self, OpenError> {
        let held = Self::open(Path::new(&identity.path))
            .map_err(|errno| open_failed(&identity.path, errno))?;
        if held.matches(identity) {
            return Ok(held);
        }
        let what = match FileType::from_raw_mode(held.stat.st_mode) {
            FileType::Symlink => "a symlink took its place",
            _ => "something else replaced it",
        };
        Err(changed(&identity.path, what))
    }

    /// Looks along the path repeatedly: it must lead to the same each time.
    pub(crate) fn check_steady(&self, path: &str) -> Result<(), OpenError> {
        for _ in 0..LOOKS {
            std::thread::sleep(LOOK_PAUSE);
            let now = Self::open(Path::new(path)).map_err(|errno| open_failed(path, errno))?;
            if now.id() != self.id() || now.stat.st_rdev != self.stat.st_rdev {
                return Err(changed(path, "another process keeps replacing it"));
            }
        }
        Ok(())
    }

    fn matches(&self, identity: &TargetIdentity) -> bool {
        let kind = FileType::from_raw_mode(self.stat.st_mode);
        let is_inode = device_number(self.stat.st_dev) == identity.device
            && self.stat.st_ino == identity.inode;
        match identity.kind {
            TargetKind::BlockDevice => is_device(&self.stat, &identity.device),
            TargetKind::File => kind == FileType::RegularFile && is_inode,
            TargetKind::Directory => kind == FileType::Directory && is_inode,
        }
    }

    /// Opens it with these rights.
    pub(crate) fn reopen(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        steps::before(GateStep::Open);
        let fd = open(self.proc_path(), flags | OFlags::CLOEXEC, Mode::empty());
        steps::before(GateStep::Check);
        fd
    }

    /// A path that leads to it and to nothing else, whatever happens to its name.
    pub(crate) fn proc_path(&self) -> String {
        proc_path(self.fd.as_fd())
    }

    /// Device and inode of what is held.
    pub(crate) fn id(&self) -> FileId {
        FileId::from(&self.stat)
    }

    /// The descriptor, with which nothing can be read.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The descriptor, for the caller to keep.
    pub(crate) fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

/// A path that leads to what a descriptor has open and to nothing else (proc_pid_fd(5)).
pub(crate) fn proc_path(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, RenameFlags, renameat_with};

    #[test]
    fn held_path_stays_with_its_inode_and_notices_an_exchange() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let (one, other) = (place.path().join("one"), place.path().join("other"));
        std::fs::write(&one, "one").unwrap();
        std::fs::write(&other, "other").unwrap();
        let held = Held::open(&one).unwrap();
        assert!(held.check_steady(one.to_str().unwrap()).is_ok());
        renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
        assert_eq!(std::fs::read_to_string(held.proc_path()).unwrap(), "one");
        assert!(held.check_steady(one.to_str().unwrap()).is_err());
    }

    #[test]
    fn held_path_follows_no_symlink_anywhere() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let directory = place.path().join("directory");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("file"), "x").unwrap();
        std::os::unix::fs::symlink(&directory, place.path().join("link")).unwrap();
        assert!(Held::open(&directory.join("file")).is_ok());
        let error = Held::open(&place.path().join("link/file")).unwrap_err();
        assert_eq!(error, Errno::LOOP);
    }
}
