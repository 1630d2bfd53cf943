//! Makes our own directory with a name inside an admitted directory, and files in it: for a test
//! that goes on after a power cut, and for tests of many small files. Every file in it is a new
//! one. Also opens a target that is a file of ours with a name that stays, new or from an earlier
//! run.

use crate::admit::{Admission, Consent, Grant, Intent, Overwriting, Permit, admit_requests};
use crate::failure::{OpenError, changed};
use crate::file::own_mark;
use crate::identity::probe::probe;
use crate::open::released;
use crate::open::target::{KeptFiles, OpenTarget, PAGE_BYTES, PartOfFile, open_directory};
use crate::own_files::claimed_directory::{
    self, CLAIM, ClaimContent, OwnDirectory, TRIAL, UNFINISHED, remove_emptied,
};
use crate::own_files::criteria::{OwnFileCriteria, create_with_mode, open_own};
use crate::own_files::removal::{Entry, entry_names, is_same, open_folder};
use diskproof_model::target::TargetIdentity;
use rustix::fs::{
    AtFlags, Gid, Mode, RenameFlags, Uid, fchmod, fchown, fstat, fsync, ftruncate, mkdirat,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::path::Arg;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Our own directory, and the names that it holds.
#[derive(Debug)]
pub struct KeptDirectory {
    own: OwnDirectory,
    identity: TargetIdentity,
    permit: Arc<Permit>,
    /// The flags with which a rename replaces no file; empty where the filesystem has none.
    no_replace: RenameFlags,
}

impl KeptDirectory {
    /// Makes the directory `name` inside a directory that was admitted for a scratch file, and
    /// makes its entry durable. A name that exists is an error: nothing is taken over.
    pub fn create(admission: Admission, name: &str) -> Result<Self, OpenError> {
        Self::create_in(admission, name, |_| Ok(())).map(|(kept, ())| kept)
    }

    /// As [`Self::create`], after `before` has looked at the open parent directory. Returns also
    /// the result of `before`.
    pub(crate) fn create_in<T>(
        admission: Admission,
        name: &str,
        before: impl FnOnce(BorrowedFd<'_>) -> Result<T, OpenError>,
    ) -> Result<(Self, T), OpenError> {
        let (identity, permit) = admitted_for_scratch(admission)?;
        let path = &identity.path;
        let held = open_directory(&identity, permit.size_bytes())?;
        let parent = open_folder(held.as_fd(), ".")
            .map_err(|errno| OpenError::from_errno(path, "open it", errno))?;
        let result_before = before(parent.as_fd())?;
        mkdirat(&parent, name, Mode::RWXU)
            .map_err(|errno| OpenError::from_errno(path, "make a directory in it", errno))?;
        let directory = open_new(parent.as_fd(), name)
            .map_err(|errno| OpenError::from_errno(path, "open the new directory in it", errno))?;
        claimed_directory::lock_new(directory.as_fd());
        let making = match prepare(&directory, &parent, path) {
            Ok(making) => making,
            Err(error) => {
                // The first error is the one that matters. One that is not empty stays.
                let _ = remove_emptied(parent.as_fd(), name, directory.as_fd());
                return Err(error);
            }
        };
        let own = OwnDirectory {
            directory,
            parent,
            name: name.to_owned(),
            criteria: making.criteria,
        };
        let kept = Self {
            own,
            permit: Arc::new(permit),
            identity,
            no_replace: making.no_replace,
        };
        Ok((kept, result_before))
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> PathBuf {
        Path::new(&self.identity.path).join(&self.own.name)
    }

    /// A new, empty file in it, to be written like a scratch file, but one that keeps its name.
    pub fn create_target(&self, name: &str) -> Result<OpenTarget, OpenError> {
        let file = self.create_new(name)?;
        Ok(OpenTarget::from_kept_file(
            Arc::new(file),
            &self.identity,
            &self.permit,
        ))
    }

    /// Makes the content of a file durable under another name and then renames it to `name`, which
    /// may be that of a file of ours. The rename is durable after [`Self::sync`].
    pub fn replace_file(&self, name: &str, content: &[u8]) -> Result<(), OpenError> {
        let file = self.create_new(UNFINISHED)?;
        let mut unwritten = content;
        while !unwritten.is_empty() {
            let written =
                rustix::io::write(&file, unwritten).map_err(self.failed("write a file"))?;
            unwritten = &unwritten[written..];
        }
        fsync(&file).map_err(self.failed("sync a file"))?;
        let folder = self.own.directory.as_fd();
        let renamed = match self.is_own(folder, name) {
            Ok(true) => renameat(folder, UNFINISHED, folder, name),
            Ok(false) => Err(Errno::EXIST),
            Err(Errno::NOENT) => self.rename_new(folder, UNFINISHED, name),
            Err(errno) => Err(errno),
        };
        renamed.map_err(self.failed("rename a file"))
    }

    /// Renames a file to a name that no file has.
    pub(crate) fn rename_new(
        &self,
        folder: BorrowedFd<'_>,
        old: impl Arg,
        new: impl Arg,
    ) -> Result<(), Errno> {
        if self.can_rename_over() {
            // Kernels before 3.15 have only this call.
            renameat(folder, old, folder, new)
        } else {
            renameat_with(folder, old, folder, new, self.no_replace)
        }
    }

    /// True where a rename can replace a file of another program.
    pub(crate) fn can_rename_over(&self) -> bool {
        self.no_replace.is_empty()
    }

    /// True if a name in it or below is that of a file that we made.
    pub(crate) fn is_own(&self, folder: BorrowedFd<'_>, name: impl Arg) -> Result<bool, Errno> {
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(self.own.criteria.matches(&stat))
    }

    #[cfg(test)]
    pub(crate) fn forget_mark(&mut self) {
        self.own.criteria = self.own.criteria.unmarked();
    }

    /// True where the filesystem keeps the mark of our files.
    pub(crate) fn marks_files(&self) -> bool {
        self.own.criteria.requires_mark()
    }

    /// True if this directory's own calls may have made a file in it.
    pub fn may_have_made(&self, entry: &Entry<'_>) -> bool {
        self.own.criteria.matches(entry.stat())
    }

    /// Makes a new, empty file. Its entry is durable after [`Self::sync`]. Without a journal, a
    /// sync of the directory does not write the inode of the file, so it is synced here.
    pub fn create_file(&self, name: &str) -> Result<(), OpenError> {
        let file = self.create_new(name)?;
        fsync(&file).map_err(self.failed("sync a file"))
    }

    /// Removes a file that it has made.
    pub fn remove_file(&self, name: &str) -> Result<(), OpenError> {
        self.remove_own(self.own.directory.as_fd(), name)
            .map_err(self.failed("remove a file"))
    }

    /// Removes a file in it or below; EEXIST where another program made it.
    pub(crate) fn remove_own(
        &self,
        folder: BorrowedFd<'_>,
        name: impl Arg + Copy,
    ) -> Result<(), Errno> {
        if self.is_own(folder, name)? {
            unlinkat(folder, name, AtFlags::empty())
        } else {
            Err(Errno::EXIST)
        }
    }

    /// Writes the file that proves the directory to be ours, so that [`ClaimedDirectory`] finds it
    /// again after a crash.
    ///
    /// [`ClaimedDirectory`]: crate::ClaimedDirectory
    pub fn write_claim(&self) -> Result<(), OpenError> {
        self.write_claim_with(ClaimContent {
            file_bytes_max: None,
        })
    }

    fn write_claim_with(&self, content: ClaimContent) -> Result<(), OpenError> {
        self.replace_file(CLAIM, content.to_text().as_bytes())?;
        self.sync()
    }

    /// As [`Self::write_claim`], and shows until the result is closed that this process uses the
    /// directory. Where the filesystem has no locks, a later run refuses to remove the directory.
    /// Its files have at most `file_bytes_max` bytes.
    pub(crate) fn claim_while_used(&self, file_bytes_max: u64) -> Result<OwnedFd, OpenError> {
        self.write_claim_with(ClaimContent {
            file_bytes_max: Some(file_bytes_max),
        })?;
        let claim = open_own(self.own.directory.as_fd(), CLAIM).map_err(self.failed("lock it"))?;
        match claimed_directory::lock(&claim, &self.path().display().to_string()) {
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
        let directory = &self.own.directory;
        let made = make_and_open(directory.as_fd(), name)
            .map_err(self.failed("create a directory of the test"))?;
        if let Some((user, group)) = owner {
            // Others may pass, and see nothing.
            fchmod(directory, Mode::RWXU | Mode::XGRP | Mode::XOTH)
                .map_err(self.failed("create a directory of the test"))?;
            fchown(&made, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))
                .map_err(self.failed("give a directory to the user of the server"))?;
        }
        Ok(made)
    }

    /// Makes its entries durable.
    pub fn sync(&self) -> Result<(), OpenError> {
        fsync(&self.own.directory).map_err(self.failed("sync the directory"))
    }

    /// Removes it with its claim and with what `is_ours` accepts in it. Anything else stays, and
    /// the directory with it: [`OpenError::Stays`].
    pub fn remove(&self, is_ours: &dyn Fn(&Entry<'_>) -> bool) -> Result<(), OpenError> {
        self.own.remove(&self.path().display().to_string(), is_ours)
    }

    /// Returns the identity of the directory around this one.
    pub(crate) fn identity(&self) -> &TargetIdentity {
        &self.identity
    }

    fn create_new(&self, name: &str) -> Result<OwnedFd, OpenError> {
        self.create_in_folder(self.own.directory.as_fd(), name)
            .map_err(self.failed("create a file of the test"))
    }

    /// A new, empty file in it or below.
    pub(crate) fn create_in_folder(
        &self,
        folder: BorrowedFd<'_>,
        name: impl Arg,
    ) -> Result<OwnedFd, Errno> {
        self.own.criteria.create_file(folder, name)
    }

    /// Makes errors of a step in this directory; `doing` completes "cannot …".
    pub(crate) fn failed(&self, doing: &'static str) -> impl Fn(Errno) -> OpenError + use<> {
        let path = self.path().display().to_string();
        move |errno| OpenError::from_errno(&path, doing, errno)
    }
}

impl OpenTarget {
    /// Makes a file with this name in a directory that was admitted for a scratch file, to be
    /// written like one; it keeps its name. A file of our own that nothing has changed grows. Any
    /// other existing file is refused. At the end of the run the file has `file_bytes`, if these
    /// end inside of its last page.
    pub fn create_named(
        admission: Admission,
        name: &str,
        file_bytes: u64,
    ) -> Result<Self, OpenError> {
        let (identity, permit) = admitted_for_scratch(admission)?;
        let held = open_directory(&identity, permit.size_bytes())?;
        let permit = Arc::new(permit);
        let mut own = create_or_open_own(held.as_fd(), &identity, name)?;
        own.end_at_page();
        let only = KeptFiles {
            file_bytes,
            ..KeptFiles::default()
        };
        let mut target = Self::from_kept_files(own.file, only, &identity, &permit);
        target.mark_written(own.size_bytes);
        Ok(target)
    }

    /// A target of several files of `file_bytes`, of which each holds a part of it.
    pub fn create_all_named(
        admission: Admission,
        names: &[String],
        part: PartOfFile,
        file_bytes: u64,
    ) -> Result<Self, OpenError> {
        let (identity, permit) = admitted_for_scratch(admission)?;
        let held = open_directory(&identity, permit.size_bytes())?;
        let permit = Arc::new(permit);
        let mut files = Vec::new();
        let mut are_whole = true;
        let mut largest_bytes = file_bytes;
        for name in names {
            let own = create_or_open_own(held.as_fd(), &identity, name)?;
            are_whole &= own.size_bytes >= part.start.saturating_add(part.bytes);
            largest_bytes = largest_bytes.max(own.size_bytes);
            files.push(own.file);
        }
        if files.is_empty() {
            return Err(OpenError::NotScratch {
                path: identity.path,
            });
        }
        let first = files.remove(0);
        let kept_files = KeptFiles {
            others: files,
            part,
            file_bytes,
            largest_bytes,
        };
        let mut target = Self::from_kept_files(first, kept_files, &identity, &permit);
        if are_whole {
            target.mark_written(target.capacity_bytes());
        }
        Ok(target)
    }
}

/// A file of our own, open for writing.
struct OwnFile {
    file: Arc<OwnedFd>,
    /// Bytes that it has; 0 if it is new.
    size_bytes: u64,
}

impl OwnFile {
    /// Lengthens a file to whole pages, where an earlier run cut it inside of its last page. What
    /// is laid out behind its content begins at a page, and would overwrite the rest of the last
    /// one.
    fn end_at_page(&mut self) {
        let whole_pages = self.size_bytes.next_multiple_of(PAGE_BYTES);
        if whole_pages > self.size_bytes && ftruncate(&self.file, whole_pages).is_ok() {
            self.size_bytes = whole_pages;
        }
    }
}

/// A new file of this name in a directory, or one of our own that nothing has changed.
fn create_or_open_own(
    directory: BorrowedFd<'_>,
    identity: &TargetIdentity,
    name: &str,
) -> Result<OwnFile, OpenError> {
    match create_with_mode(directory, name, Mode::from_raw_mode(0o666)) {
        Ok(file) => Ok(OwnFile {
            file: Arc::new(file),
            size_bytes: 0,
        }),
        Err(Errno::EXIST) => open_own_again(directory, identity, name),
        Err(errno) => Err(OpenError::from_errno(
            &identity.path,
            "create a file in it",
            errno,
        )),
    }
}

/// The identity and the permit of a directory that was admitted for a scratch file; an error for
/// any other admission.
fn admitted_for_scratch(admission: Admission) -> Result<(TargetIdentity, Permit), OpenError> {
    match admission.into_parts() {
        (identity, Grant::Scratch(permit)) => Ok((identity, permit)),
        (TargetIdentity { path, .. }, _) => Err(OpenError::NotScratch { path }),
    }
}

/// A file of our own in the directory, admitted as one that is overwritten.
fn open_own_again(
    directory: BorrowedFd<'_>,
    identity: &TargetIdentity,
    name: &str,
) -> Result<OwnFile, OpenError> {
    let path = Path::new(&identity.path).join(name);
    let shown = path.display().to_string();
    let there = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|errno| OpenError::from_errno(&shown, "read its metadata", errno))?;
    let mut probed = probe(&path).map_err(|_| changed(&shown, "it has vanished"))?;
    // The reserve that the user has named for the directory.
    if let (Some(file), Some(directory)) = (&mut probed.filesystem, &identity.filesystem) {
        file.kept_free_bytes = directory.kept_free_bytes;
    }
    let own_consent = Consent {
        overwriting: Overwriting::Own,
        ..Consent::default()
    };
    // It grows, so it may be empty: a run that ended before its layout leaves it so.
    let admission = admit_requests(probed, Intent::Overwrite(&own_consent), 0)?;
    let (found, grant) = admission.into_parts();
    let Grant::Overwrite(permit, consent) = grant else {
        return Err(OpenError::NotScratch { path: shown });
    };
    let file = released::open(&found, &consent, &permit)?.fd;
    let opened =
        fstat(&file).map_err(|errno| OpenError::from_errno(&shown, "read its metadata", errno))?;
    if is_same(&opened, &there) {
        Ok(OwnFile {
            file,
            size_bytes: permit.size_bytes(),
        })
    } else {
        Err(changed(&shown, "another file has its name"))
    }
}

/// True if the path names a file of our own that nothing has changed. Opens nothing.
pub fn is_own_file(path: &Path) -> bool {
    own_mark::is_valid_at(path)
}

/// Bytes in the unit in which stat(2) counts the blocks of a file.
const STAT_BLOCK_BYTES: u64 = 512;

/// The space that a file of our own that nothing has changed has on its filesystem, in bytes: less
/// than its size where it has holes; 0 of any other file. Opens nothing.
pub fn own_allocated_bytes(path: &Path) -> u64 {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if is_own_file(path) => metadata.blocks().saturating_mul(STAT_BLOCK_BYTES),
        Ok(_) | Err(_) => 0,
    }
}

/// The ways in which files are made in a directory, and renamed there.
struct FileMaking {
    criteria: OwnFileCriteria,
    /// The flags with which a rename replaces no file; empty where the filesystem has none.
    no_replace: RenameFlags,
}

/// Tries how files are made in the new directory, and makes its entry durable.
fn prepare(directory: &OwnedFd, parent: &OwnedFd, path: &str) -> Result<FileMaking, OpenError> {
    let making = probe_file_making(directory.as_fd())
        .map_err(|errno| OpenError::from_errno(path, "create a file in it", errno))?;
    for changed in [directory, parent] {
        fsync(changed)
            .map_err(|errno| OpenError::from_errno(path, "make a new directory durable", errno))?;
    }
    Ok(making)
}

/// Makes a directory for this user alone, and opens it.
fn make_and_open(parent: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    mkdirat(parent, name, Mode::RWXU)?;
    open_new(parent, name)
}

/// Opens a directory that was just made.
fn open_new(parent: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let directory = open_folder(parent, name)?;
    check_new(&directory)?;
    Ok(directory)
}

/// Fails for a directory that is not the one just made. One that another process put in its place
/// between both calls belongs to another user or holds files, which would be removed at the end.
fn check_new(directory: &OwnedFd) -> Result<(), Errno> {
    if fstat(directory)?.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Errno::PERM);
    }
    if entry_names(directory.as_fd())?.is_empty() {
        Ok(())
    } else {
        Err(Errno::NOTEMPTY)
    }
}

/// Tries how to make files and rename them there. Leaves nothing.
fn probe_file_making(directory: BorrowedFd<'_>) -> Result<FileMaking, Errno> {
    let criteria = OwnFileCriteria::probe_mark(directory, UNFINISHED)?;
    let flags = RenameFlags::NOREPLACE;
    let renamed = renameat_with(directory, UNFINISHED, directory, TRIAL, flags);
    let name = match renamed {
        Ok(()) => TRIAL,
        Err(_) => UNFINISHED,
    };
    unlinkat(directory, name, AtFlags::empty())?;
    let no_replace = match renamed {
        Ok(()) => flags,
        // NFS, many FUSE servers, kernels before 3.15, and containers that do not know the call.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::PERM) => RenameFlags::empty(),
        Err(errno) => return Err(errno),
    };
    Ok(FileMaking {
        criteria,
        no_replace,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admit::admit;
    use crate::kernel::sysroot::list;
    use diskproof_simdisk::testbed::{self, Loop, Mount};
    use std::process::Command;

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
        assert_eq!(check_new(&kept.own.directory), Err(Errno::NOTEMPTY));
        kept.remove(&|entry| kept.may_have_made(entry)).unwrap();
        let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
    }

    /// ext2 has no journal that would write the inode of a new file with its name. A copy of the
    /// device is what a power cut leaves.
    #[test]
    fn created_file_survives_a_power_cut_without_a_journal() {
        let test = "created_file_survives_a_power_cut_without_a_journal";
        if !testbed::can_run(test, &["losetup", "mkfs.ext2", "e2fsck"]) {
            return;
        }
        let place = testbed::place_in_memory();
        let image = place.path().join("image");
        let device = Loop::sparse(&image, 16 << 20, &[]);
        let node = device.node.to_str().unwrap();
        testbed::run("mkfs.ext2", &["-q", node]);
        let mount = Mount::new("ext2", node, &place.path().join("mnt"), "defaults");
        let identity = probe(&mount.point).unwrap();
        let size_bytes = 1 << 20;
        let admission = admit(identity, Intent::Scratch { size_bytes }).unwrap();
        let kept = KeptDirectory::create(admission, "kept").unwrap();
        let names: Vec<String> = (10..40).map(|number| format!("entry-{number}")).collect();
        for name in &names {
            kept.create_file(name).unwrap();
            kept.sync().unwrap();
        }
        let cut = place.path().join("cut");
        std::fs::copy(&image, &cut).unwrap();
        // Its exit code says that it repaired something.
        Command::new("e2fsck")
            .args(["-f", "-y", cut.to_str().unwrap()])
            .output()
            .unwrap();
        let after = Loop::over(&cut, &["--read-only"]);
        let node = after.node.to_str().unwrap();
        let remounted = Mount::new("ext2", node, &place.path().join("after"), "ro");
        assert_eq!(list(&remounted.point.join("kept")), names);
    }

    /// A run that ends before its first write leaves one, where files are not lengthened first.
    #[test]
    fn empty_file_of_our_own_is_used_again() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let open = || {
            let identity = probe(place.path()).unwrap();
            let size_bytes = 2 << 20;
            let admission = admit(identity, Intent::Scratch { size_bytes }).unwrap();
            OpenTarget::create_named(admission, "own", 0)
        };
        let target = open().unwrap();
        rustix::fs::ftruncate(target.fd(), 0).unwrap();
        target.mark_own();
        drop(target);
        if !is_own_file(&place.path().join("own")) {
            println!("SKIPPED: empty_file_of_our_own_is_used_again: no xattrs");
            return;
        }
        assert_eq!(open().unwrap().capacity_bytes(), 2 << 20);
        // One that is not ours stays as it is.
        std::fs::remove_file(place.path().join("own")).unwrap();
        std::fs::write(place.path().join("own"), "").unwrap();
        assert!(open().is_err());
        assert_eq!(std::fs::read(place.path().join("own")).unwrap(), b"");
    }

    #[test]
    fn space_of_own_file_is_that_of_its_blocks() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let identity = probe(place.path()).unwrap();
        let size_bytes = 8 << 20;
        let admission = admit(identity, Intent::Scratch { size_bytes }).unwrap();
        let target = OpenTarget::create_named(admission, "own", 0).unwrap();
        rustix::io::pwrite(target.fd(), &[1; 1 << 20], 0).unwrap();
        fsync(target.fd()).unwrap();
        // A hole.
        rustix::fs::ftruncate(target.fd(), size_bytes).unwrap();
        target.mark_own();
        drop(target);
        let path = place.path().join("own");
        if !is_own_file(&path) {
            println!("SKIPPED: space_of_own_file_is_that_of_its_blocks: no xattrs");
            return;
        }
        let allocated_bytes = own_allocated_bytes(&path);
        assert!(
            (1 << 20..2 << 20).contains(&allocated_bytes),
            "{allocated_bytes}"
        );
        std::fs::write(&path, [2; 8192]).unwrap();
        assert_eq!(own_allocated_bytes(&path), 0, "it was changed");
    }

    #[test]
    fn own_file_is_cut_only_inside_of_its_last_page() {
        let size_bytes = 4 * 4096;
        for (file_bytes, length) in [
            (size_bytes - 1, size_bytes - 1),
            (size_bytes - 4095, size_bytes - 4095),
            (size_bytes - 4096, size_bytes),
            (100, size_bytes),
            (0, size_bytes),
            (size_bytes + 1, size_bytes),
        ] {
            let place = tempfile::tempdir_in("/var/tmp").unwrap();
            let identity = probe(place.path()).unwrap();
            let admission = admit(identity, Intent::Scratch { size_bytes }).unwrap();
            let target = OpenTarget::create_named(admission, "own", file_bytes).unwrap();
            rustix::fs::ftruncate(target.fd(), size_bytes).unwrap();
            target.mark_own();
            if !target.is_marked_own() {
                println!("SKIPPED: own_file_is_cut_only_inside_of_its_last_page: no xattrs");
                return;
            }
            target.set_final_lengths(size_bytes);
            assert!(target.is_marked_own(), "{file_bytes}");
            let path = place.path().join("own");
            assert_eq!(path.metadata().unwrap().len(), length, "{file_bytes}");
            // A file that somebody has changed keeps its length.
            std::fs::write(&path, [1; 4 * 4096]).unwrap();
            target.set_final_lengths(size_bytes);
            assert_eq!(path.metadata().unwrap().len(), size_bytes, "{file_bytes}");
        }
    }

    #[test]
    fn named_file_grows_only_if_it_is_our_own_and_unchanged() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let open = |name: &str| {
            let identity = probe(place.path()).unwrap();
            let size_bytes = 2 << 20;
            let admission = admit(identity, Intent::Scratch { size_bytes }).unwrap();
            OpenTarget::create_named(admission, name, 0)
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
        // A run that ended before its layout leaves an empty file.
        let empty = open("empty").unwrap();
        empty.mark_own();
        drop(empty);
        assert_eq!(open("empty").unwrap().usable_bytes(), 0);
        let again = open("own").unwrap();
        assert_eq!(again.usable_bytes(), 4096);
        assert_eq!(again.capacity_bytes(), 2 << 20);
        assert!(open("own").is_err(), "another run uses it");
        drop(again);
        std::fs::write(path("other"), "data").unwrap();
        std::os::unix::fs::symlink(path("own"), path("link")).unwrap();
        std::fs::copy(path("own"), path("copy")).unwrap();
        for name in ["other", "link", "copy"] {
            assert!(open(name).is_err(), "{name}");
        }
        let writer = std::fs::File::options().write(true).open(path("own"));
        assert!(open("own").is_err(), "another program writes to it");
        drop(writer);
        assert!(open("own").is_ok());
        std::fs::write(path("own"), [2; 4096]).unwrap();
        assert!(open("own").is_err(), "its data changed");
        assert_eq!(std::fs::read(path("own")).unwrap(), [2; 4096]);
    }
}
