//! Decides whether a file in a directory of our own is ours, so that it may be deleted. Other
//! programs may have put theirs there. The owner, the mode and the size decide.

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

/// What a file in a directory of ours must show to be one that we made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnFileCriteria {
    owner: u32,
    needs_mark: bool,
    bytes_max: u64,
}

impl OwnFileCriteria {
    /// The criteria of a run that made this file: its owner, its mark if it has one, any size.
    pub(crate) fn from_file(made: &Stat) -> Self {
        Self {
            owner: made.st_uid,
            needs_mark: is_marked(made),
            bytes_max: u64::MAX,
        }
    }

    /// Makes the first file of a directory, and asks for the mark only if this file has kept it:
    /// FAT has no modes.
    pub(crate) fn probe_mark(folder: BorrowedFd<'_>, name: &str) -> Result<Self, Errno> {
        let made = match create_with_mode(folder, name, MARKED) {
            // A server may keep the bit for directories or for root.
            Err(Errno::INVAL | Errno::PERM | Errno::NOTSUP) => {
                create_with_mode(folder, name, UNMARKED)
            }
            made => made,
        };
        Ok(Self::from_file(&fstat(made?)?))
    }

    /// The same criteria for a run whose files have at most this size in bytes.
    pub(crate) fn with_bytes_max(self, bytes_max: u64) -> Self {
        Self { bytes_max, ..self }
    }

    /// True if a file of ours must have the mark: another program's file, even under one of our
    /// names, does not match then.
    pub(crate) fn requires_mark(self) -> bool {
        self.needs_mark
    }

    /// True if the file may be one of ours. Callers delete a file that matches and keep every
    /// other one, so an uncertain file does not match.
    pub(crate) fn matches(self, file: &Stat) -> bool {
        FileType::from_raw_mode(file.st_mode) == FileType::RegularFile
            && file.st_uid == self.owner
            && (!self.needs_mark || is_marked(file))
            && file.st_size.unsigned_abs() <= self.bytes_max
    }

    /// Creates an empty file that matches, for the owner only. An existing name is an error, even
    /// that of a symlink.
    pub(crate) fn create_file(
        self,
        folder: BorrowedFd<'_>,
        name: impl Arg,
    ) -> Result<OwnedFd, Errno> {
        let mode = if self.needs_mark { MARKED } else { UNMARKED };
        create_with_mode(folder, name, mode)
    }
}

fn is_marked(file: &Stat) -> bool {
    Mode::from_raw_mode(file.st_mode).contains(Mode::SVTX)
}

/// Creates an empty file. An existing name is an error, even that of a symlink.
pub(crate) fn create_with_mode(
    folder: BorrowedFd<'_>,
    name: impl Arg,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    openat(folder, name, flags, mode)
}

/// Opens a file of ours again, with the rights that a lock needs on network filesystems. A symlink
/// is an error.
pub(crate) fn open_own(folder: BorrowedFd<'_>, name: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}

#[cfg(test)]
impl OwnFileCriteria {
    pub(crate) fn unmarked(self) -> Self {
        Self {
            needs_mark: false,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{fchmod, ftruncate};
    use std::fs::File;
    use std::os::fd::AsFd as _;

    const BYTES_MAX: u64 = 4096;

    /// A directory of ours with its first file, and the criteria of that file.
    struct Fixture {
        folder: tempfile::TempDir,
        first: Stat,
        criteria: OwnFileCriteria,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir_in("/var/tmp").unwrap();
            let opened = File::open(folder.path()).unwrap();
            let file = create_with_mode(opened.as_fd(), "first", MARKED).unwrap();
            let first = fstat(&file).unwrap();
            assert!(is_marked(&first), "/var/tmp keeps modes");
            Self {
                folder,
                first,
                criteria: OwnFileCriteria::from_file(&first).with_bytes_max(BYTES_MAX),
            }
        }

        /// A file as a run of ours makes it, after this change.
        fn changed_file(&self, name: &str, change: fn(&OwnedFd)) -> Stat {
            let folder = File::open(self.folder.path()).unwrap();
            let file = self.criteria.create_file(folder.as_fd(), name).unwrap();
            change(&file);
            fstat(&file).unwrap()
        }
    }

    #[test]
    fn criteria_match_files_of_the_run_up_to_the_largest_size() {
        let fixture = Fixture::new();
        assert!(fixture.criteria.matches(&fixture.first));
        let full = fixture.changed_file("full", |file| ftruncate(file, BYTES_MAX).unwrap());
        assert!(fixture.criteria.matches(&full));
        let long = fixture.changed_file("long", |file| ftruncate(file, BYTES_MAX + 1).unwrap());
        assert!(!fixture.criteria.matches(&long));
    }

    #[test]
    fn criteria_refuse_another_owner() {
        let fixture = Fixture::new();
        let mut of_another = fixture.first;
        of_another.st_uid += 1;
        assert!(!fixture.criteria.matches(&of_another));
    }

    #[test]
    fn criteria_refuse_a_missing_mark_unless_the_filesystem_keeps_none() {
        let fixture = Fixture::new();
        let unmarked = fixture.changed_file("unmarked", |file| fchmod(file, UNMARKED).unwrap());
        assert!(!fixture.criteria.matches(&unmarked));
        let without_modes = OwnFileCriteria::from_file(&unmarked);
        assert!(!without_modes.requires_mark());
        assert!(without_modes.matches(&unmarked), "as on FAT");
    }

    #[test]
    fn criteria_refuse_directories_and_symlinks() {
        let fixture = Fixture::new();
        let folder = File::open(fixture.folder.path()).unwrap();
        assert!(
            !fixture
                .criteria
                .unmarked()
                .matches(&fstat(&folder).unwrap())
        );
        let link = fixture.folder.path().join("link");
        std::os::unix::fs::symlink("first", &link).unwrap();
        let link_stat = rustix::fs::lstat(&link).unwrap();
        assert!(!fixture.criteria.unmarked().matches(&link_stat));
    }

    #[test]
    fn existing_name_is_never_opened_as_a_new_file() {
        let fixture = Fixture::new();
        let folder = File::open(fixture.folder.path()).unwrap();
        let existing = fixture.criteria.create_file(folder.as_fd(), "first");
        assert_eq!(existing.map(drop), Err(Errno::EXIST));
        let link = fixture.folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", link).unwrap();
        let linked = fixture.criteria.create_file(folder.as_fd(), "link");
        assert_eq!(linked.map(drop), Err(Errno::EXIST));
        assert_eq!(open_own(folder.as_fd(), "link").map(drop), Err(Errno::LOOP));
    }
}
