//! The files that we make in directories of our own, and how they are told from those that another
//! program puts there: by their owner and by their mode.

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;
use rustix::path::Arg;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Read and write for the owner, and the bit that means nothing for a regular file on Linux
/// (inode(7), S_ISVTX): no other program sets it. Unlike an extended attribute it costs no call,
/// and a killed run leaves it on every file.
const MARKED: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::SVTX);
/// The mode where the filesystem does not keep the mark.
const UNMARKED: Mode = Mode::RUSR.union(Mode::WUSR);

/// The criteria by which the files in a directory of ours are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnFiles {
    owner: u32,
    is_marked: bool,
    bytes_max: u64,
}

impl OwnFiles {
    /// The criteria that a file of ours shows.
    pub(crate) fn like(made: &Stat) -> Self {
        Self {
            owner: made.st_uid,
            is_marked: is_marked(made),
            bytes_max: u64::MAX,
        }
    }

    /// Makes the first file, which shows whether the filesystem keeps the mark: FAT has no modes.
    pub(crate) fn try_out(folder: BorrowedFd<'_>, name: &str) -> Result<Self, Errno> {
        let made = match create(folder, name, MARKED) {
            // A server may keep the bit for directories or for root.
            Err(Errno::INVAL | Errno::PERM | Errno::NOTSUP) => create(folder, name, UNMARKED),
            made => made,
        };
        Ok(Self::like(&fstat(made?)?))
    }

    /// The criteria for a run whose files have at most so many bytes.
    pub(crate) fn up_to(self, bytes_max: u64) -> Self {
        Self { bytes_max, ..self }
    }

    /// True where a file with our name and without the mark is another program's.
    pub(crate) fn are_marked(self) -> bool {
        self.is_marked
    }

    /// True for a file that may be one of ours. The callers delete such files, so what is not
    /// certain is not accepted.
    pub(crate) fn accept(self, file: &Stat) -> bool {
        FileType::from_raw_mode(file.st_mode) == FileType::RegularFile
            && file.st_uid == self.owner
            && (!self.is_marked || is_marked(file))
            && file.st_size.unsigned_abs() <= self.bytes_max
    }

    /// A new, empty file for the owner only. A name that exists is an error, even that of a
    /// symlink.
    pub(crate) fn create(self, folder: BorrowedFd<'_>, name: impl Arg) -> Result<OwnedFd, Errno> {
        let mode = if self.is_marked { MARKED } else { UNMARKED };
        create(folder, name, mode)
    }
}

fn is_marked(file: &Stat) -> bool {
    Mode::from_raw_mode(file.st_mode).contains(Mode::SVTX)
}

/// A new, empty file. A name that exists is an error, even that of a symlink.
pub(crate) fn create(folder: BorrowedFd<'_>, name: impl Arg, mode: Mode) -> Result<OwnedFd, Errno> {
    let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    openat(folder, name, new, mode)
}

/// A file of our own again, with the rights that a lock needs on network filesystems. It must not
/// be a symlink.
pub(crate) fn open_own(folder: BorrowedFd<'_>, name: impl Arg) -> Result<OwnedFd, Errno> {
    let again = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(folder, name, again, Mode::empty())
}

#[cfg(test)]
impl OwnFiles {
    pub(crate) fn unmarked(self) -> Self {
        Self {
            is_marked: false,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{fchmod, ftruncate};
    use std::os::fd::AsFd as _;

    /// A new file of ours in this folder, as its callers see it.
    fn seen(folder: &tempfile::TempDir, name: &str, change: fn(&OwnedFd)) -> Stat {
        let opened = std::fs::File::open(folder.path()).unwrap();
        let file = create(opened.as_fd(), name, MARKED).unwrap();
        change(&file);
        fstat(&file).unwrap()
    }

    #[test]
    fn only_a_short_marked_file_of_the_owner_is_accepted() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let like = seen(&folder, "first", |_| {});
        let own = OwnFiles::like(&like).up_to(4096);
        if !own.are_marked() {
            println!("SKIPPED: only_a_short_marked_file_of_the_owner_is_accepted: no mark here");
            return;
        }
        assert!(own.accept(&like));
        assert!(own.accept(&seen(&folder, "full", |file| {
            ftruncate(file, 4096).unwrap()
        })));
        assert!(!own.accept(&seen(&folder, "long", |file| {
            ftruncate(file, 4097).unwrap()
        })));
        let unmarked = seen(&folder, "unmarked", |file| fchmod(file, UNMARKED).unwrap());
        assert!(!own.accept(&unmarked));
        assert!(own.unmarked().accept(&unmarked), "FAT keeps no mark");
        let mut of_another = like;
        of_another.st_uid += 1;
        assert!(!own.accept(&of_another));
        let opened = std::fs::File::open(folder.path()).unwrap();
        assert!(!own.accept(&fstat(&opened).unwrap()), "a directory");
    }
}
