//! Proves by a file in it, the claim, that a directory is ours, and removes the directory: for the
//! run that made it, or for a later one that finds what a crash or kill -9 left.

use crate::failure::OpenError;
use crate::own_files::criteria::{OwnFileCriteria, open_own};
use crate::own_files::removal::{
    Entry, Foreign, WalkAction, entry_names, is_same, open_folder, walk,
};
use rustix::fs::{AtFlags, FlockOperation, Mode, flock, fstat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::CString;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// The file that proves a directory to be ours. Its lock shows that a process uses the directory.
pub(crate) const CLAIM: &str = "claim";
/// The name under which a file is written before it gets its own.
pub(crate) const UNFINISHED: &str = "unfinished";
/// The second name of the first file, which tries the filesystem.
pub(crate) const TRIAL: &str = "trial";
/// The claim is read up to here; none is longer.
const CLAIM_BYTES_MAX: u64 = 256;
/// The first line of each claim. Claims stay on disks after a crash: with another text, later
/// versions would not remove what earlier ones left.
const CLAIM_LINE: &str = "This directory belongs to diskproof, which removes it.\n";
/// The beginning and the end of the second line, around the number of bytes. It stays on disks,
/// too.
const SIZE_LINE: [&str; 2] = ["Its files have at most ", " bytes.\n"];
/// The step in errors about a directory that an earlier run left.
const TAKE_OVER: &str = "take over the remains of an earlier run";

/// The content of the file [`CLAIM`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClaimContent {
    /// The largest size of the files in the directory, in bytes; `None` where it is not limited.
    pub file_bytes_max: Option<u64>,
}

impl ClaimContent {
    /// The text of the file.
    pub(crate) fn to_text(self) -> String {
        let [before, after] = SIZE_LINE;
        match self.file_bytes_max {
            Some(bytes) => format!("{CLAIM_LINE}{before}{bytes}{after}"),
            None => CLAIM_LINE.to_owned(),
        }
    }

    /// The content with this text; `None` where diskproof did not write it.
    fn parse(text: &str) -> Option<Self> {
        let size_line = text.strip_prefix(CLAIM_LINE)?;
        if size_line.is_empty() {
            return Some(Self {
                file_bytes_max: None,
            });
        }
        let [before, after] = SIZE_LINE;
        let bytes = size_line.strip_prefix(before)?.strip_suffix(after)?;
        Some(Self {
            file_bytes_max: Some(bytes.parse().ok()?),
        })
    }
}

/// True for the names that a file has before it gets its own.
fn is_temporary_name(name: &[u8]) -> bool {
    [UNFINISHED, TRIAL].map(str::as_bytes).contains(&name)
}

/// A directory of ours, to be removed.
#[derive(Debug)]
pub(crate) struct OwnDirectory {
    pub(crate) directory: OwnedFd,
    pub(crate) parent: OwnedFd,
    pub(crate) name: String,
    pub(crate) criteria: OwnFileCriteria,
}

impl OwnDirectory {
    /// Removes what `is_ours` accepts, then the claim, then the directory. Where something stays,
    /// the claim stays, too: once that is moved away, a later run removes the directory.
    pub(crate) fn remove(
        &self,
        path: &str,
        is_ours: &dyn Fn(&Entry<'_>) -> bool,
    ) -> Result<(), OpenError> {
        let foreign = self
            .remove_content(is_ours)
            .map_err(|errno| removal_failed(path, errno))?;
        if let Some(what) = foreign.text() {
            return Err(stays(path, &what));
        }
        match remove_emptied(self.parent.as_fd(), &self.name, self.directory.as_fd()) {
            Ok(()) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::BUSY) => Err(stays(path, "another program uses it")),
            Err(Errno::NOENT | Errno::EXIST) if self.is_removed() => Ok(()),
            Err(Errno::NOENT | Errno::EXIST) => Err(stays(path, "another program has renamed it")),
            Err(errno) => Err(removal_failed(path, errno)),
        }
    }

    /// True if another program has removed the directory meanwhile: it has no name any more.
    fn is_removed(&self) -> bool {
        fstat(&self.directory).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Removes what `is_ours` accepts, then the claim; returns what stays.
    fn remove_content(&self, is_ours: &dyn Fn(&Entry<'_>) -> bool) -> Result<Foreign, Errno> {
        let directory = self.directory.as_fd();
        let foreign = walk(directory, WalkAction::Remove, CLAIM, &|entry| {
            self.is_unfinished(entry) || is_ours(entry)
        })?
        .foreign;
        if foreign.count > 0 {
            return Ok(foreign);
        }
        Ok(walk(directory, WalkAction::Remove, "", &|entry| {
            entry.name_bytes() == CLAIM.as_bytes() && self.criteria.matches(entry.stat())
        })?
        .foreign)
    }

    /// True for a file of ours that has not got its own name yet.
    fn is_unfinished(&self, entry: &Entry<'_>) -> bool {
        entry.depth == 0
            && is_temporary_name(entry.name_bytes())
            && self.criteria.matches(entry.stat())
    }
}

fn removal_failed(path: &str, errno: Errno) -> OpenError {
    OpenError::from_errno(path, "remove the files of the test", errno)
}

fn take_over_failed(path: &str, errno: Errno) -> OpenError {
    OpenError::from_errno(path, TAKE_OVER, errno)
}

/// Removes an empty directory, if the name still leads to it: EEXIST where it leads to another.
pub(crate) fn remove_emptied(
    parent: BorrowedFd<'_>,
    name: &str,
    directory: BorrowedFd<'_>,
) -> Result<(), Errno> {
    let named = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if is_same(&named, &fstat(directory)?) {
        unlinkat(parent, name, AtFlags::REMOVEDIR)
    } else {
        Err(Errno::EXIST)
    }
}

/// The error for our own directory that stays because of foreign content, which `what` names.
fn stays(path: &str, what: &str) -> OpenError {
    OpenError::Stays {
        path: path.to_owned(),
        what: what.to_owned(),
    }
}

/// A directory with a claim, found again under its name. Its claim is locked.
#[derive(Debug)]
pub struct ClaimedDirectory {
    own: OwnDirectory,
    /// For messages.
    path: String,
    /// Locked until it is closed.
    claim: File,
    file_bytes_max: Option<u64>,
}

impl ClaimedDirectory {
    /// The directory `name` in `parent`; `None` where there is none. What a crash left before the
    /// directory had a claim is removed: it holds nothing.
    pub fn claim(parent: &Path, name: &str) -> Result<Option<Self>, OpenError> {
        let path = parent.join(name).display().to_string();
        let parent =
            open_folder(rustix::fs::CWD, parent).map_err(|errno| take_over_failed(&path, errno))?;
        Self::claim_in(parent.as_fd(), name, &path)
    }

    /// As [`Self::claim`], in an open directory; errors show `path`.
    pub(crate) fn claim_in(
        parent: BorrowedFd<'_>,
        name: &str,
        path: &str,
    ) -> Result<Option<Self>, OpenError> {
        let directory = match open_folder(parent, name) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(not_ours(path, "it is no directory")),
            Err(errno) => return Err(take_over_failed(path, errno)),
        };
        let stat = fstat(&directory).map_err(|errno| take_over_failed(path, errno))?;
        if stat.st_uid != own_user() {
            let owner = format!("it belongs to user {}", stat.st_uid);
            return Err(not_ours(path, &owner));
        }
        if Mode::from_raw_mode(stat.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
            return Err(not_ours(path, "other users may write to it"));
        }
        let claim = match open_own(directory.as_fd(), CLAIM) {
            Ok(claim) => File::from(claim),
            Err(Errno::NOENT) => {
                remove_unclaimed(parent, name, directory.as_fd(), path)?;
                return Ok(None);
            }
            Err(Errno::LOOP) => {
                return Err(not_ours(path, &format!("its '{CLAIM}' is a symlink")));
            }
            Err(errno) => return Err(take_over_failed(path, errno)),
        };
        let Some(read) = read_claim(&claim, stat.st_uid) else {
            let what = format!("its file '{CLAIM}' was not written by diskproof");
            return Err(not_ours(path, &what));
        };
        if !lock_named(&claim, path)? {
            return Ok(None);
        }
        let own = OwnDirectory {
            parent: open_folder(parent, ".").map_err(|errno| take_over_failed(path, errno))?,
            directory,
            name: name.to_owned(),
            criteria: read.criteria,
        };
        Ok(Some(Self {
            own,
            path: path.to_owned(),
            claim,
            file_bytes_max: read.content.file_bytes_max,
        }))
    }

    /// The criteria for files of the run that made the directory.
    pub(crate) fn file_criteria(&self) -> OwnFileCriteria {
        let bytes_max = self.file_bytes_max.unwrap_or(u64::MAX);
        self.own.criteria.with_bytes_max(bytes_max)
    }

    /// The descriptor, for opening what lies in it.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.own.directory.as_fd()
    }

    /// A directory in it, to be entered and read.
    pub fn open_directory(&self, name: &str) -> Result<OwnedFd, OpenError> {
        open_folder(self.own.directory.as_fd(), name)
            .map_err(|errno| OpenError::from_errno(name, "enter it", errno))
    }

    /// Removes it with its claim and with what `is_ours` accepts in it, and releases the lock.
    /// Anything else stays, and the directory with it: [`OpenError::Stays`].
    pub fn remove(self, is_ours: &dyn Fn(&Entry<'_>) -> bool) -> Result<(), OpenError> {
        let removed = self.own.remove(&self.path, is_ours);
        if removed.is_ok() {
            return removed;
        }
        // NFS and some FUSE servers keep the name of a file as long as it is open.
        drop(self.claim);
        self.own.remove(&self.path, is_ours)
    }
}

/// Removes a directory that a crash left before it had a claim. A run that is about to write its
/// claim holds the directory locked ([`lock_new`]).
fn remove_unclaimed(
    parent: BorrowedFd<'_>,
    name: &str,
    directory: BorrowedFd<'_>,
    path: &str,
) -> Result<(), OpenError> {
    let names = entry_names(directory).map_err(|errno| take_over_failed(path, errno))?;
    if !names.iter().all(|name| begins_claim(directory, name)) {
        return Err(not_ours(path, &format!("it lacks the file '{CLAIM}'")));
    }
    // Where directories cannot be locked, no other run has locked this one.
    if let Err(error @ OpenError::InUse { .. }) = lock(directory, path) {
        return Err(error);
    }
    for file in &names {
        unlinkat(directory, file.as_c_str(), AtFlags::empty())
            .map_err(|errno| take_over_failed(path, errno))?;
    }
    remove_emptied(parent, name, directory).map_err(|errno| take_over_failed(path, errno))
}

/// True for the file in which the claim was being written.
fn begins_claim(directory: BorrowedFd<'_>, name: &CString) -> bool {
    if !is_temporary_name(name.as_bytes()) {
        return false;
    }
    match open_own(directory, name.as_c_str()) {
        Ok(file) => is_part_of_claim(&File::from(file)),
        Err(_) => false,
    }
}

/// Locks a new directory until its descriptor is closed, so that no other run takes it for one that
/// a crash left before its claim was written. NFS locks no directories; there the claim follows
/// some milliseconds later.
pub(crate) fn lock_new(directory: BorrowedFd<'_>) {
    let _ = flock(directory, FlockOperation::NonBlockingLockExclusive);
}

/// Takes the lock that a process holds while it uses a directory: that of the claim, or of the
/// directory itself before there is one.
pub(crate) fn lock(file: impl AsFd, path: &str) -> Result<(), OpenError> {
    let path = path.to_owned();
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(OpenError::InUse { path }),
        // Without locks it is unknown whether a process uses it.
        Err(errno) => Err(OpenError::from_errno(&path, "lock it", errno)),
    }
}

/// Takes the lock of a claim. Returns false if the claim has no name any more: the run that held
/// the lock has removed it with its directory since the claim was opened.
fn lock_named(claim: &File, path: &str) -> Result<bool, OpenError> {
    lock(claim, path)?;
    let stat = fstat(claim).map_err(|errno| take_over_failed(path, errno))?;
    Ok(stat.st_nlink > 0)
}

/// The error for a directory with a name of ours that stays: `what` says why it is not ours.
pub(crate) fn not_ours(path: &str, what: &str) -> OpenError {
    OpenError::NotOurs {
        path: path.to_owned(),
        what: what.to_owned(),
    }
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A claim that was read.
struct Claim {
    /// The criteria for files of the run that wrote it.
    criteria: OwnFileCriteria,
    content: ClaimContent,
}

/// Reads the file that proves its directory to be ours, as one of this user; `None` where it does
/// not.
fn read_claim(file: &File, owner: u32) -> Option<Claim> {
    let stat = fstat(file).ok()?;
    let criteria = OwnFileCriteria::from_file(&stat);
    if !criteria.matches(&stat) || stat.st_uid != owner {
        return None;
    }
    Some(Claim {
        criteria,
        content: ClaimContent::parse(&own_text(file)?)?,
    })
}

/// True for a claim that was being written when its process ended.
fn is_part_of_claim(file: &File) -> bool {
    let Ok(stat) = fstat(file) else {
        return false;
    };
    if !OwnFileCriteria::from_file(&stat).matches(&stat) {
        return false;
    }
    match own_text(file) {
        Some(text) => CLAIM_LINE.starts_with(&text) || text.starts_with(CLAIM_LINE),
        None => false,
    }
}

/// The content of a file of this user.
fn own_text(file: &File) -> Option<String> {
    if fstat(file).ok()?.st_uid != own_user() {
        return None;
    }
    let mut text = String::new();
    file.take(CLAIM_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Intent;
    use crate::KeptDirectory;
    use crate::admit;
    use crate::identity::probe::probe;

    /// Claims stay on disks after a crash, where later versions must know them.
    #[test]
    fn claims_that_lie_on_disks_are_read() {
        let claim = "This directory belongs to diskproof, which removes it.\n";
        let of_size = |file_bytes_max| Some(ClaimContent { file_bytes_max });
        assert_eq!(ClaimContent::parse(claim), of_size(None));
        let sized = format!("{claim}Its files have at most 4096 bytes.\n");
        assert_eq!(ClaimContent::parse(&sized), of_size(Some(4096)));
        assert_eq!(of_size(Some(4096)).unwrap().to_text(), sized);
        assert_eq!(ClaimContent::parse(&format!("{claim}\n")), None);
    }

    #[test]
    fn directory_with_claim_is_taken_over_once_and_removed_with_its_tree() {
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
        // No claim yet.
        assert!(matches!(claim(), Err(OpenError::NotOurs { .. })));
        kept.write_claim().unwrap();
        drop(kept);
        let claimed = claim().unwrap().unwrap();
        assert!(matches!(claim(), Err(OpenError::InUse { .. })));
        claimed.remove(&|_| true).unwrap();
        assert!(claim().unwrap().is_none());
        assert!(place.path().join("mine").exists(), "links are not followed");
    }

    #[test]
    fn claim_that_was_removed_before_its_lock_is_no_claim() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = place.path().join(CLAIM);
        std::fs::write(&path, CLAIM_LINE).unwrap();
        let claim = File::open(&path).unwrap();
        assert!(lock_named(&claim, CLAIM).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(!lock_named(&claim, CLAIM).unwrap());
    }

    #[test]
    fn new_directory_of_a_running_process_stays() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let identity = probe(place.path()).unwrap();
        let size_bytes = 1 << 20;
        let admitted = admit(identity, Intent::Scratch { size_bytes }).unwrap();
        let kept = KeptDirectory::create(admitted, "kept").unwrap();
        let claim = || ClaimedDirectory::claim(place.path(), "kept");
        assert!(matches!(claim(), Err(OpenError::InUse { .. })));
        assert!(kept.path().exists());
        // As after kill -9.
        drop(kept);
        assert!(claim().unwrap().is_none());
        assert!(!place.path().join("kept").exists());
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
        // A crash before the claim was written.
        assert!(claim().unwrap().is_none() && !kept.exists());
    }
}
