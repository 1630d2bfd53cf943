//! Removes what is ours in our own directory, and drops files in it from the page cache. The caller
//! decides what is ours. Enters no mount and follows no symlink.

use crate::kernel::file_id::FileId;
use crate::kernel::sysroot::{read_text, value_of};
use rustix::fs::{
    Advice, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fadvise, fstat, openat,
    openat2, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::path::Arg;
use std::cmp::Reverse;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Deeper than any tree that a program of ours makes: PostgreSQL's has five levels. What lies
/// deeper stays, as foreign.
const DEPTH_MAX: usize = 32;

/// Flags that open a directory for reading, and fail where a symlink stands for it.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A directory that is not reached through a symlink.
pub(crate) fn open_folder(parent: BorrowedFd<'_>, name: impl Arg) -> Result<OwnedFd, Errno> {
    openat(parent, name, FOLDER, Mode::empty())
}

/// The names in a directory, those of the newest files first, as far as inode numbers show: a slow
/// disk writes the oldest ones first, and what is removed before is not written. Neighbours share
/// blocks of inodes, so that their removal writes less than one in the order of the directory.
pub(crate) fn entry_names(directory: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            entries.push((entry.ino(), entry.file_name().to_owned()));
        }
    }
    entries.sort_unstable_by_key(|(inode, _)| Reverse(*inode));
    Ok(entries.into_iter().map(|(_, name)| name).collect())
}

/// Drops the clean pages of a file in a directory from the page cache.
pub fn drop_cached_pages(directory: impl AsFd, path: &str) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, path, flags, Mode::empty())?;
    fadvise(file, 0, None, Advice::DontNeed)
}

/// Something in a directory of ours.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Directories between it and ours: 0 of what lies right in ours.
    pub depth: usize,
    /// The last component of its path.
    pub name: &'a CStr,
    stat: &'a Stat,
}

impl Entry<'_> {
    /// The name as bytes, which need not be UTF-8.
    pub fn name_bytes(&self) -> &[u8] {
        self.name.to_bytes()
    }

    /// File, directory or other; a symlink is not followed.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Number of the user that it belongs to.
    pub fn owner(&self) -> u32 {
        self.stat.st_uid
    }

    /// True if `open` is this very file or directory; false also where the kernel does not say.
    pub fn is_same_as(&self, open: impl AsFd) -> bool {
        fstat(open).is_ok_and(|open| is_same(&open, self.stat))
    }

    pub(crate) fn stat(&self) -> &Stat {
        self.stat
    }
}

/// Files and directories that stay, because diskproof did not make them.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    /// The first one, below the directory.
    pub(crate) first: Option<PathBuf>,
    pub(crate) count: u64,
}

impl Foreign {
    /// `diskproof did not create 'x' and 2 more in it`; `None` where there is none.
    pub(crate) fn text(&self) -> Option<String> {
        let first = self.first.as_ref()?.display();
        let more = match self.count - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!("diskproof did not create '{first}'{more} in it"))
    }

    fn add(&mut self, below: &Path, name: &CStr) {
        self.count += 1;
        self.first
            .get_or_insert_with(|| below.join(OsStr::from_bytes(name.to_bytes())));
    }
}

/// Walks through a directory of ours, and counts or removes everything that `is_ours` accepts,
/// except for the name `spared` in the directory itself. Everything else stays, with the
/// directories around it, and is counted as foreign.
pub(crate) fn walk<'a>(
    directory: BorrowedFd<'_>,
    action: WalkAction,
    spared: &'a str,
    is_ours: &'a dyn Fn(&Entry<'_>) -> bool,
) -> Result<Walk<'a>, Errno> {
    let mut walk = Walk {
        action,
        spared,
        is_ours,
        device: fstat(directory)?.st_dev,
        files: 0,
        foreign: Foreign::default(),
    };
    walk.visit(directory, Path::new(""), 0)?;
    Ok(walk)
}

/// The purpose of a walk for the files that are ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkAction {
    /// Leaves everything as it is.
    Count,
    /// Linux removes a name, not an open file: what another process exchanges between the look and
    /// the removal, within microseconds, is removed in its place.
    Remove,
}

/// A walk through a directory of ours, with what it has found so far.
pub(crate) struct Walk<'a> {
    action: WalkAction,
    spared: &'a str,
    is_ours: &'a dyn Fn(&Entry<'_>) -> bool,
    /// The device of the directory: a part of another one is not entered.
    device: u64,
    /// Files, not directories, that were ours; those that were removed, with
    /// [`WalkAction::Remove`].
    pub(crate) files: u64,
    pub(crate) foreign: Foreign,
}

impl Walk<'_> {
    /// Goes through the entries of a directory, which lies at `path` below the first one.
    fn visit(&mut self, directory: BorrowedFd<'_>, path: &Path, depth: usize) -> Result<(), Errno> {
        for name in entry_names(directory)? {
            if depth == 0 && name.to_bytes() == self.spared.as_bytes() {
                continue;
            }
            let stat = match statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
                // A program that is ending removed it.
                Err(Errno::NOENT) => continue,
                stat => stat?,
            };
            let entry = Entry {
                depth,
                name: &name,
                stat: &stat,
            };
            let removed = if !(self.is_ours)(&entry) {
                Err(Errno::EXIST)
            } else if entry.kind() == FileType::Directory {
                self.visit_folder(directory, &entry, path)?
            } else {
                self.files += 1;
                self.action.unlink(directory, &name, AtFlags::empty())
            };
            match removed {
                Ok(()) | Err(Errno::NOENT) => {}
                // Something is mounted on it, or it is not ours.
                Err(Errno::EXIST | Errno::BUSY | Errno::XDEV | Errno::ISDIR | Errno::NOTDIR) => {
                    self.foreign.add(path, &name);
                }
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Goes through a directory of ours. The inner error says why it is not ours to remove.
    fn visit_folder(
        &mut self,
        parent: BorrowedFd<'_>,
        entry: &Entry<'_>,
        path: &Path,
    ) -> Result<Result<(), Errno>, Errno> {
        let inner = match open_unmounted(parent, entry.name) {
            Err(errno @ (Errno::XDEV | Errno::NOENT)) => return Ok(Err(errno)),
            opened => opened?,
        };
        let opened = fstat(&inner)?;
        if !is_same(&opened, entry.stat) || opened.st_dev != self.device || entry.depth >= DEPTH_MAX
        {
            return Ok(Err(Errno::XDEV));
        }
        let before = self.foreign.count;
        let inner_path = path.join(OsStr::from_bytes(entry.name_bytes()));
        self.visit(inner.as_fd(), &inner_path, entry.depth + 1)?;
        if self.foreign.count > before {
            return Ok(Ok(()));
        }
        match self.action.unlink(parent, entry.name, AtFlags::REMOVEDIR) {
            // Another process has put something into it since.
            Err(Errno::NOTEMPTY) => Ok(Err(Errno::EXIST)),
            removed => Ok(removed),
        }
    }
}

impl WalkAction {
    fn unlink(self, directory: BorrowedFd<'_>, name: &CStr, flags: AtFlags) -> Result<(), Errno> {
        match self {
            Self::Count => Ok(()),
            Self::Remove => unlinkat(directory, name, flags),
        }
    }
}

/// True if both are the same file or directory, under whatever names.
pub(crate) fn is_same(one: &Stat, other: &Stat) -> bool {
    FileId::from(one) == FileId::from(other)
}

/// Opens a directory; EXDEV where something is mounted on it, also a part of the same filesystem.
fn open_unmounted(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let here = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    match openat2(directory, name, FOLDER, Mode::empty(), here) {
        // Before Linux 5.6, and in containers that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => open_on_same_mount(directory, name),
        opened => opened,
    }
}

/// As [`open_unmounted`], by the numbers of the mounts. Where /proc does not show them, nothing is
/// entered.
fn open_on_same_mount(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let inner = open_folder(directory, name)?;
    match (mount_number(directory), mount_number(inner.as_fd())) {
        (Some(outer_mount), Some(inner_mount)) if outer_mount == inner_mount => Ok(inner),
        _ => Err(Errno::XDEV),
    }
}

/// The number of the mount through which a file was opened (proc_pid_fdinfo(5)).
fn mount_number(file: BorrowedFd<'_>) -> Option<u64> {
    let text = read_text(Path::new(&format!(
        "/proc/self/fdinfo/{}",
        file.as_raw_fd()
    )))?;
    value_of(&text, "mnt_id", ':')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mount of the same filesystem differs in nothing else.
    #[test]
    fn folder_is_entered_on_the_same_mount_only() {
        let root = openat(rustix::fs::CWD, "/", FOLDER, Mode::empty()).unwrap();
        let refused = open_on_same_mount(root.as_fd(), c"proc").map(drop);
        assert_eq!(refused, Err(Errno::XDEV));
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("inner")).unwrap();
        let place = openat(rustix::fs::CWD, place.path(), FOLDER, Mode::empty()).unwrap();
        assert!(open_on_same_mount(place.as_fd(), c"inner").is_ok());
    }
}
