//! Our own directory that has a name: for a test that goes on after a power cut, and for tests of
//! many small files. It is made inside an admitted directory, and every file in it is a new one.
//! Knows no workload.

use crate::admit::{Admission, Consent, Grant, Intent, Overwriting, Permit, admit};
use crate::failure::OpenError;
use crate::held::changed;
use crate::open::{OpenTarget, open_directory};
use crate::own_mark;
use crate::probe::probe;
use crate::released;
use crate::scratch;
use crate::tree::{entry_names, remove_entries};
use diskproof_model::target::TargetIdentity;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, Uid, chownat, fchmod, flock, fstat,
    fsync, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::path::Arg;
use std::ffi::CString;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name under which a file is written before it gets its own.
const UNFINISHED: &str = "unfinished";
/// The file that proves a directory to be ours. Its lock shows that a process uses the directory.
pub(crate) const CLAIM: &str = "claim";
const CLAIM_TEXT: &[u8] = b"This directory belongs to diskproof, which removes it.\n";
const TAKE_OVER: &str = "take over the remains of an earlier run";
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Our own directory, and the names that it holds.
#[derive(Debug)]
pub struct KeptDirectory {
    directory: OwnedFd,
    parent: OwnedFd,
    name: String,
    identity: TargetIdentity,
    permit: Arc<Permit>,
}

impl KeptDirectory {
    /// Makes the directory `name` inside a directory that was admitted for a scratch file, and
    /// makes its entry durable. A name that exists is an error: nothing is taken over.
    pub fn create(admission: Admission, name: &str) -> Result<Self, OpenError> {
        Self::create_in(admission, name, |_| Ok(())).map(|(kept, ())| kept)
    }

    /// The same, after `before` has looked at the open parent directory.
    pub(crate) fn create_in<T>(
        admission: Admission,
        name: &str,
        before: impl FnOnce(BorrowedFd<'_>) -> Result<T, OpenError>,
    ) -> Result<(Self, T), OpenError> {
        let (identity, grant) = admission.into_parts();
        let Grant::Scratch(permit) = grant else {
            return Err(OpenError::NotScratch {
                path: identity.path,
            });
        };
        let failed = |doing| {
            let path = identity.path.clone();
            move |errno: Errno| OpenError::from_errno(&path, doing, errno)
        };
        let held = open_directory(&identity, permit.size_bytes())?;
        let parent = open_folder(held.as_fd(), ".").map_err(failed("open it"))?;
        let found = before(parent.as_fd())?;
        mkdirat(&parent, name, Mode::RWXU).map_err(failed("make a directory in it"))?;
        let opened = open_folder(parent.as_fd(), name)
            .map_err(failed("open the new directory in it"))
            .and_then(|directory| {
                is_new(&directory).map_err(failed("use the new directory in it"))?;
                fsync(&directory)
                    .and_then(|()| fsync(&parent))
                    .map_err(failed("make a new directory durable"))?;
                Ok(directory)
            });
        let directory = opened.inspect_err(|_| {
            // The first error is the one that matters. One that is not empty stays.
            let _ = unlinkat(&parent, name, AtFlags::REMOVEDIR);
        })?;
        let kept = Self {
            directory,
            parent,
            name: name.to_owned(),
            permit: Arc::new(permit),
            identity,
        };
        Ok((kept, found))
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        Path::new(&self.identity.path).join(&self.name)
    }

    /// A new, empty file in it, to be written like a scratch file, but one that keeps its name.
    pub fn create_target(&self, name: &str) -> Result<OpenTarget, OpenError> {
        let file = self.create_new(name)?;
        Ok(OpenTarget::of_kept_file(
            Arc::new(file),
            &self.identity,
            &self.permit,
        ))
    }

    /// Makes the content of a file durable under another name and then renames it to `name`. The
    /// rename is durable after [`Self::sync`].
    pub fn replace_file(&self, name: &str, content: &[u8]) -> Result<(), OpenError> {
        let file = self.create_new(UNFINISHED)?;
        let mut rest = content;
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest).map_err(self.failed("write a file"))?;
            rest = &rest[written..];
        }
        fsync(&file).map_err(self.failed("sync a file"))?;
        renameat(&self.directory, UNFINISHED, &self.directory, name)
            .map_err(self.failed("rename a file"))
    }

    /// A new, empty file. Its entry is durable after [`Self::sync`].
    pub fn create_file(&self, name: &str) -> Result<(), OpenError> {
        self.create_new(name).map(drop)
    }

    /// Removes a file.
    pub fn remove_file(&self, name: &str) -> Result<(), OpenError> {
        unlinkat(&self.directory, name, AtFlags::empty()).map_err(self.failed("remove a file"))
    }

    /// Writes the file that proves the directory to be ours, so that [`ClaimedDirectory`] finds it
    /// again after a crash.
    pub fn mark(&self) -> Result<(), OpenError> {
        self.replace_file(CLAIM, CLAIM_TEXT)?;
        self.sync()
    }

    /// The same, and shows until the result is closed that this process uses the directory. Where
    /// the filesystem has no locks, a later run refuses to remove the directory.
    pub(crate) fn mark_as_used(&self) -> Result<OwnedFd, OpenError> {
        self.mark()?;
        let claim = open_own(self.directory.as_fd(), CLAIM).map_err(self.failed("lock it"))?;
        match lock(&claim, &self.path().display().to_string()) {
            Err(error @ OpenError::InUse { .. }) => Err(error),
            _ => Ok(claim),
        }
    }

    /// Makes a directory in it, for a program that writes there as the user and group `owner`;
    /// `None`: as the same user.
    pub fn create_directory(
        &self,
        name: &str,
        owner: Option<(u32, u32)>,
    ) -> Result<OwnedFd, OpenError> {
        let failed = || self.failed("create a directory of the test");
        mkdirat(&self.directory, name, Mode::RWXU).map_err(failed())?;
        let made = openat(&self.directory, name, FOLDER, Mode::empty()).map_err(failed())?;
        if let Some((user, group)) = owner {
            // Others may pass, and see nothing.
            fchmod(&self.directory, Mode::RWXU | Mode::XGRP | Mode::XOTH).map_err(failed())?;
            let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
            let stay = AtFlags::SYMLINK_NOFOLLOW;
            chownat(&self.directory, name, Some(user), Some(group), stay)
                .map_err(self.failed("give a directory to the user of the server"))?;
        }
        Ok(made)
    }

    /// Makes its entries durable.
    pub fn sync(&self) -> Result<(), OpenError> {
        fsync(&self.directory).map_err(self.failed("sync the directory"))
    }

    /// Removes it with everything in it.
    pub fn remove(&self) -> Result<(), OpenError> {
        remove_entries(self.directory.as_fd())
            .and_then(|()| unlinkat(&self.parent, self.name.as_str(), AtFlags::REMOVEDIR))
            .map_err(self.failed("remove the files of the test"))
    }

    /// A new directory in it.
    pub(crate) fn create_folder(&self, name: &str) -> Result<OwnedFd, OpenError> {
        mkdirat(&self.directory, name, Mode::RWXU)
            .and_then(|()| open_folder(self.directory.as_fd(), name))
            .map_err(self.failed("create a directory of the test"))
    }

    /// Who its parent is.
    pub(crate) fn identity(&self) -> &TargetIdentity {
        &self.identity
    }

    fn create_new(&self, name: &str) -> Result<OwnedFd, OpenError> {
        create_new_in(self.directory.as_fd(), name)
            .map_err(self.failed("create a file of the test"))
    }

    fn failed(&self, doing: &'static str) -> impl Fn(Errno) -> OpenError + use<> {
        let path = self.path().display().to_string();
        move |errno| OpenError::from_errno(&path, doing, errno)
    }
}

impl OpenTarget {
    /// A new file with this name in a directory that was admitted for a scratch file, to be written
    /// like one; it keeps its name. A file of our own that nothing has changed grows; every other
    /// one is refused: nothing is taken over.
    pub fn create_named(admission: Admission, name: &str) -> Result<Self, OpenError> {
        let (identity, grant) = admission.into_parts();
        let Grant::Scratch(permit) = grant else {
            return Err(OpenError::NotScratch {
                path: identity.path,
            });
        };
        let held = open_directory(&identity, permit.size_bytes())?;
        let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
        let permit = Arc::new(permit);
        match openat(&held, name, new, Mode::from_raw_mode(0o666)) {
            Ok(file) => Ok(Self::of_kept_file(Arc::new(file), &identity, &permit)),
            Err(Errno::EXIST) => {
                let (file, written_bytes) = open_own_again(held.as_fd(), &identity, name)?;
                let mut target = Self::of_kept_file(file, &identity, &permit);
                target.mark_written(written_bytes);
                Ok(target)
            }
            Err(errno) => Err(OpenError::from_errno(
                &identity.path,
                "create a file in it",
                errno,
            )),
        }
    }
}

/// A file of our own in the directory, admitted as one that is overwritten, and its size.
fn open_own_again(
    directory: BorrowedFd<'_>,
    identity: &TargetIdentity,
    name: &str,
) -> Result<(Arc<OwnedFd>, u64), OpenError> {
    let path = Path::new(&identity.path).join(name);
    let shown = path.display().to_string();
    let failed = |errno| OpenError::from_errno(&shown, "read its metadata", errno);
    let there = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
    let found = probe(&path).map_err(|_| changed(&shown, "it has vanished"))?;
    let consent = Consent {
        overwriting: Overwriting::Own,
        ..Consent::default()
    };
    let (found, grant) = admit(found, Intent::Overwrite(&consent))?.into_parts();
    let Grant::Overwrite(permit, consent) = grant else {
        return Err(OpenError::NotScratch { path: shown });
    };
    let file = released::open(&found, &consent, &permit)?.fd;
    let opened = fstat(&file).map_err(failed)?;
    match (opened.st_dev, opened.st_ino) == (there.st_dev, there.st_ino) {
        true => Ok((file, permit.size_bytes())),
        false => Err(changed(&shown, "another file has its name")),
    }
}

/// Whether the path names a file of our own that nothing has changed. Opens nothing.
pub fn is_own_file(path: &Path) -> bool {
    own_mark::is_valid_at(path)
}

/// A new, empty file for the owner only. A name that exists is an error, even that of a symlink.
pub(crate) fn create_new_in(folder: BorrowedFd<'_>, name: impl Arg) -> Result<OwnedFd, Errno> {
    let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    openat(folder, name, new, scratch::owner_only())
}

/// A file of our own again, with the rights that a lock needs on network filesystems. It must not
/// be a symlink.
pub(crate) fn open_own(folder: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let again = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(folder, name, again, Mode::empty())
}

/// A directory that is not reached through a symlink.
pub(crate) fn open_folder(parent: BorrowedFd<'_>, name: impl Arg) -> Result<OwnedFd, Errno> {
    openat(parent, name, FOLDER, Mode::empty())
}

/// Whether it is the directory just made. One that another process put in its place between both
/// calls belongs to another user or holds files, which would be removed at the end.
fn is_new(directory: &OwnedFd) -> Result<(), Errno> {
    if fstat(directory)?.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Errno::PERM);
    }
    match entry_names(directory.as_fd())?.is_empty() {
        true => Ok(()),
        false => Err(Errno::NOTEMPTY),
    }
}

/// A marked directory, found again under its name and locked.
#[derive(Debug)]
pub struct ClaimedDirectory {
    directory: OwnedFd,
    parent: OwnedFd,
    name: String,
    /// Locked until it is closed.
    claim: File,
}

impl ClaimedDirectory {
    /// The directory `name` in `parent`; `None` where there is none. What a crash left before the
    /// directory was marked is removed: it holds nothing.
    pub fn claim(parent: &Path, name: &str) -> Result<Option<Self>, OpenError> {
        let path = parent.join(name).display().to_string();
        let parent = openat(rustix::fs::CWD, parent, FOLDER, Mode::empty())
            .map_err(|errno| OpenError::from_errno(&path, TAKE_OVER, errno))?;
        Self::claim_in(parent.as_fd(), name, &path)
    }

    /// The same in an open directory; errors show `path`.
    pub(crate) fn claim_in(
        parent: BorrowedFd<'_>,
        name: &str,
        path: &str,
    ) -> Result<Option<Self>, OpenError> {
        let failed = |errno| OpenError::from_errno(path, TAKE_OVER, errno);
        let directory = match open_folder(parent, name) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(not_ours(path, "it is no directory")),
            opened => opened.map_err(failed)?,
        };
        let found = fstat(&directory).map_err(failed)?;
        if found.st_uid != own_user() {
            let owner = format!("it belongs to user {}", found.st_uid);
            return Err(not_ours(path, &owner));
        }
        if Mode::from_raw_mode(found.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
            return Err(not_ours(path, "other users may write to it"));
        }
        let claim = match open_own(directory.as_fd(), CLAIM) {
            Err(Errno::NOENT) => {
                remove_unmarked(parent, name, directory.as_fd(), path)?;
                return Ok(None);
            }
            Err(Errno::LOOP) => {
                return Err(not_ours(path, &format!("its '{CLAIM}' is a symlink")));
            }
            opened => File::from(opened.map_err(failed)?),
        };
        if !is_claim(&claim) {
            let what = format!("its file '{CLAIM}' was not written by diskproof");
            return Err(not_ours(path, &what));
        }
        lock(&claim, path)?;
        Ok(Some(Self {
            parent: open_folder(parent, ".").map_err(failed)?,
            directory,
            name: name.to_owned(),
            claim,
        }))
    }

    /// Its descriptor.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// A directory in it, to be entered and read.
    pub fn open_directory(&self, name: &str) -> Result<OwnedFd, OpenError> {
        openat(&self.directory, name, FOLDER, Mode::empty())
            .map_err(|errno| OpenError::from_errno(name, "enter it", errno))
    }

    /// Removes it with everything in it, and releases the lock.
    pub fn remove(self) -> Result<(), OpenError> {
        let removed = remove_entries(self.directory.as_fd())
            .and_then(|()| unlinkat(&self.parent, self.name.as_str(), AtFlags::REMOVEDIR));
        drop(self.claim);
        removed.map_err(|errno| OpenError::from_errno(&self.name, "remove it", errno))
    }
}

/// Removes a directory that a crash left before it was marked.
fn remove_unmarked(
    parent: BorrowedFd<'_>,
    name: &str,
    directory: BorrowedFd<'_>,
    path: &str,
) -> Result<(), OpenError> {
    let failed = |errno| OpenError::from_errno(path, TAKE_OVER, errno);
    let names = entry_names(directory).map_err(failed)?;
    let is_ours = |name: &CString| name.as_bytes() == UNFINISHED.as_bytes();
    if !names.iter().all(is_ours) {
        return Err(not_ours(path, &format!("it lacks the file '{CLAIM}'")));
    }
    remove_entries(directory)
        .and_then(|()| unlinkat(parent, name, AtFlags::REMOVEDIR))
        .map_err(failed)
}

/// The process that uses the directory holds this lock.
fn lock(claim: impl AsFd, path: &str) -> Result<(), OpenError> {
    let path = path.to_owned();
    match flock(claim, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(OpenError::InUse { path }),
        // Without locks it is unknown whether a process uses it.
        Err(errno) => Err(OpenError::from_errno(&path, "lock it", errno)),
    }
}

/// A directory of our name that is kept, and what speaks against its removal.
pub(crate) fn not_ours(path: &str, what: &str) -> OpenError {
    OpenError::NotOurs {
        path: path.to_owned(),
        what: what.to_owned(),
    }
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether a file says that diskproof made it, as this user.
fn is_claim(file: &File) -> bool {
    let Ok(found) = fstat(file) else {
        return false;
    };
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    let mut text = Vec::new();
    let most = CLAIM_TEXT.len() as u64 + 1;
    is_file
        && found.st_uid == own_user()
        && file.take(most).read_to_end(&mut text).is_ok()
        && text == CLAIM_TEXT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_directory_takes_nothing_over_and_removes_only_itself() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::write(place.path().join("other"), "data").unwrap();
        let admitted = || {
            let identity = probe(place.path()).unwrap();
            let size_bytes = 1 << 20;
            admit(identity, Intent::Scratch { size_bytes }).unwrap()
        };
        let kept = KeptDirectory::create(admitted(), "kept").unwrap();
        assert!(KeptDirectory::create(admitted(), "kept").is_err());
        kept.replace_file("one", b"first").unwrap();
        kept.replace_file("one", b"second").unwrap();
        kept.create_file("entry").unwrap();
        assert!(kept.create_file("entry").is_err());
        kept.remove_file("entry").unwrap();
        kept.sync().unwrap();
        let target = kept.create_target("pages").unwrap();
        assert!(target.is_writable());
        assert_eq!(std::fs::read(kept.path().join("one")).unwrap(), b"second");
        assert_eq!(is_new(&kept.directory), Err(Errno::NOTEMPTY));
        kept.remove().unwrap();
        let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn named_file_grows_only_if_it_is_our_own_and_unchanged() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let open = |name: &str| {
            let identity = probe(place.path()).unwrap();
            let size_bytes = 2 << 20;
            let admission = admit(identity, Intent::Scratch { size_bytes }).unwrap();
            OpenTarget::create_named(admission, name)
        };
        let path = |name: &str| place.path().join(name);
        let target = open("own").unwrap();
        rustix::io::write(target.fd(), &[1; 4096]).unwrap();
        target.mark_own();
        drop(target);
        if !is_own_file(&path("own")) {
            println!("SKIPPED: named_file_grows_only_if_it_is_our_own_and_unchanged: no xattrs");
            return;
        }
        let again = open("own").unwrap();
        assert_eq!(
            (again.usable_bytes(), again.capacity_bytes()),
            (4096, 2 << 20)
        );
        assert!(open("own").is_err(), "another run uses it");
        drop(again);
        std::fs::write(path("other"), "data").unwrap();
        std::os::unix::fs::symlink(path("own"), path("link")).unwrap();
        std::fs::copy(path("own"), path("copy")).unwrap();
        for name in ["other", "link", "copy"] {
            assert!(open(name).is_err(), "{name}");
        }
        let writer = File::options().write(true).open(path("own")).unwrap();
        assert!(open("own").is_err(), "another program writes to it");
        drop(writer);
        assert!(open("own").is_ok());
        std::fs::write(path("own"), [2; 4096]).unwrap();
        assert!(open("own").is_err(), "its data changed");
        assert_eq!(std::fs::read(path("own")).unwrap(), [2; 4096]);
    }

    #[test]
    fn marked_directory_is_claimed_once_and_removed_with_its_tree() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let claim = || ClaimedDirectory::claim(place.path(), "kept");
        assert!(claim().unwrap().is_none());
        let identity = probe(place.path()).unwrap();
        let size_bytes = 1 << 20;
        let admitted = admit(identity, Intent::Scratch { size_bytes }).unwrap();
        let kept = KeptDirectory::create(admitted, "kept").unwrap();
        kept.create_directory("data", None).unwrap();
        let deep = place.path().join("kept/data/a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("file"), "x").unwrap();
        std::fs::write(place.path().join("mine"), "x").unwrap();
        std::os::unix::fs::symlink(place.path().join("mine"), deep.join("link")).unwrap();
        assert!(
            matches!(claim(), Err(OpenError::NotOurs { .. })),
            "no mark yet"
        );
        kept.mark().unwrap();
        drop(kept);
        let claimed = claim().unwrap().unwrap();
        assert!(matches!(claim(), Err(OpenError::InUse { .. })));
        claimed.remove().unwrap();
        assert!(claim().unwrap().is_none());
        assert!(place.path().join("mine").exists(), "links are not followed");
    }

    #[test]
    fn directory_of_the_known_name_that_is_not_ours_stays() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let claim = || ClaimedDirectory::claim(place.path(), "kept");
        let kept = place.path().join("kept");
        std::fs::write(&kept, "a file").unwrap();
        assert!(matches!(claim(), Err(OpenError::NotOurs { .. })));
        std::fs::remove_file(&kept).unwrap();
        std::fs::create_dir(&kept).unwrap();
        std::fs::write(kept.join("claim"), "something else").unwrap();
        assert!(matches!(claim(), Err(OpenError::NotOurs { .. })));
        assert!(kept.join("claim").exists());
        std::fs::remove_file(kept.join("claim")).unwrap();
        // A crash before it was marked.
        assert!(claim().unwrap().is_none() && !kept.exists());
    }
}
