//! Creates, reads, renames and deletes many small files in our own directory with a known name, and
//! removes all of them in the end. Files are named by numbers, and every operation goes through the
//! descriptor of a directory that this program made: no name given from outside can lead elsewhere.
//!
//! The next test removes what a killed one left. Where a hanging disk keeps the process of a test
//! from ending, a process that outlives it removes the files: the program itself with a hidden
//! verb, which works in the directory under test.

use crate::admit::Admission;
use crate::failure::OpenError;
use crate::kernel::file_id::FileId;
use crate::kernel::mounts::is_in_memory;
use crate::kernel::naming::errno_of;
use crate::kernel::syscalls::{drop_all_caches, write_pages};
use crate::own_files::claimed_directory::{CLAIM, ClaimedDirectory, not_ours};
use crate::own_files::kept_directory::KeptDirectory;
use crate::own_files::removal::{Entry, WalkAction, open_folder, walk};
use crate::programs::descriptor_limit::spawn_with_limit_of_user;
use diskproof_model::files::FILES_DIRECTORY;
use diskproof_model::target::TargetIdentity;
use rustix::fs::{
    Advice, AtFlags, FileType, Mode, OFlags, fadvise, fstat, fsync, openat, statat, syncfs,
    unlinkat,
};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A directory with its files, made by this process. It is removed with all that this process made
/// in it when its last user drops it, however a run ends.
#[derive(Debug)]
pub struct FileTree {
    kept: KeptDirectory,
    folders: Vec<OwnedFd>,
    is_removed: bool,
    /// True while files of a set may exist.
    has_files: AtomicBool,
    /// Held until it is closed.
    lock: Option<OwnedFd>,
}

/// A tree, and what an earlier run had left in its place.
#[derive(Debug)]
pub struct StartedTree {
    /// The new tree.
    pub tree: FileTree,
    /// Files of an earlier run that were removed; `None` where there was no such directory.
    pub leftover_files: Option<u64>,
}

/// The caches of the machine, and the filesystem that is written first.
#[derive(Debug)]
pub struct MachineCaches {
    folder: Option<OwnedFd>,
    path: String,
}

impl MachineCaches {
    /// Drops clean pages, names and inodes of the whole machine, after everything on the filesystem
    /// was written. Both may take minutes, and a signal does not end them.
    pub fn drop_all(self) -> Result<(), OpenError> {
        if let Some(folder) = &self.folder
            && let Err(errno) = syncfs(folder)
        {
            return Err(OpenError::from_errno(
                &self.path,
                "sync its filesystem",
                errno,
            ));
        }
        drop_all_caches().map_err(|errno| {
            OpenError::from_errno(&self.path, "drop the caches of the machine", errno)
        })
    }
}

impl FileTree {
    /// Makes the directory with its known name inside a directory that was admitted for a scratch
    /// file, and so many directories in it, for files of at most `file_bytes_max` bytes. What a
    /// killed run left there is removed first.
    pub fn start(
        admission: Admission,
        folders: u32,
        file_bytes_max: u64,
    ) -> Result<StartedTree, OpenError> {
        let path = Path::new(&admission.identity().path)
            .join(FILES_DIRECTORY)
            .display()
            .to_string();
        let (kept, leftover_files) =
            KeptDirectory::create_in(admission, FILES_DIRECTORY, |parent| {
                remove_leftover(parent, FILES_DIRECTORY, &path)
            })?;
        let lock = match kept.claim_while_used(file_bytes_max) {
            Ok(lock) => lock,
            Err(error @ OpenError::InUse { .. }) => return Err(error),
            Err(error) => {
                // The first error is the one that matters.
                let _ = kept.remove(&|_| false);
                return Err(error);
            }
        };
        let mut tree = Self {
            kept,
            folders: Vec::new(),
            is_removed: false,
            has_files: AtomicBool::new(false),
            lock: Some(lock),
        };
        for index in 0..folders as usize {
            let made = tree.kept.create_directory(&folder_name(index), None)?;
            tree.folders.push(made);
        }
        Ok(StartedTree {
            tree,
            leftover_files,
        })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> PathBuf {
        self.kept.path()
    }

    /// Returns the identity of the directory around this one.
    pub fn identity(&self) -> &TargetIdentity {
        self.kept.identity()
    }

    /// True where the files exist in memory only.
    pub fn is_in_memory(&self) -> bool {
        let filesystem = self.identity().filesystem.as_ref();
        filesystem.is_some_and(|filesystem| is_in_memory(&filesystem.kind))
    }

    fn folder(&self, name: FileName) -> BorrowedFd<'_> {
        self.folders[name.folder].as_fd()
    }

    /// A new, empty file, open for writing.
    pub fn create(&self, name: FileName) -> Result<OwnedFd, Errno> {
        self.kept
            .create_in_folder(self.folder(name), text(&name.bytes()))
    }

    /// An existing file, open for reading.
    pub fn open(&self, name: FileName) -> Result<OwnedFd, Errno> {
        // Another program may have put a pipe there, whose opening would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(self.folder(name), text(&name.bytes()), flags, Mode::empty())
    }

    /// The size of a file in bytes.
    pub fn stat(&self, name: FileName) -> Result<u64, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let stat = statat(self.folder(name), text(&name.bytes()), flags)?;
        Ok(stat.st_size as u64)
    }

    /// Gives a file its second name, unless another program has put a file there.
    pub fn rename(&self, name: FileName) -> Result<(), Errno> {
        let (old, new) = (name.bytes(), name.renamed().bytes());
        self.kept
            .rename_new(self.folder(name), text(&old), text(&new))
    }

    /// True if the file is still ours and its second name free, as far as a rename does not check
    /// that itself.
    pub fn is_untouched(&self, name: FileName) -> Result<bool, Errno> {
        let (folder, bytes) = (self.folder(name), name.bytes());
        let is_ours = self.kept.is_own(folder, text(&bytes))?;
        if !is_ours || name.state == NameState::Renamed || !self.kept.can_rename_over() {
            return Ok(is_ours);
        }
        let second = name.renamed().bytes();
        match statat(folder, text(&second), AtFlags::SYMLINK_NOFOLLOW) {
            Err(errno) => Ok(errno == Errno::NOENT),
            Ok(_) => Ok(false),
        }
    }

    /// Removes a file, whoever made it: the caller has looked at it before.
    pub fn delete(&self, name: FileName) -> Result<(), Errno> {
        unlinkat(self.folder(name), text(&name.bytes()), AtFlags::empty())
    }

    /// Removes a file, if it is ours still. One that another program has removed is no error.
    pub fn delete_own(&self, name: FileName) -> Result<(), Errno> {
        let removed = self.kept.remove_own(self.folder(name), text(&name.bytes()));
        match removed {
            // It stays, and the end of the run names it.
            Err(Errno::NOENT | Errno::EXIST) => Ok(()),
            removed => removed,
        }
    }

    /// Notes that files may exist, or no longer, that the end of the run must remove. Where no file
    /// has a mark, one with our name is ours only then.
    pub fn expect_files(&self, may_exist: bool) {
        self.has_files.store(may_exist, Ordering::Relaxed);
    }

    /// Makes the names in the directory of a file durable.
    pub fn sync_folder(&self, name: FileName) -> Result<(), Errno> {
        fsync(self.folder(name))
    }

    /// Writes the content of a file to the disk.
    pub fn write_back(&self, name: FileName) -> Result<(), Errno> {
        write_pages(self.open(name)?.as_fd())
    }

    /// Drops the content of a file from the page cache, as far as it is on the disk.
    pub fn drop_pages(&self, name: FileName) -> Result<(), Errno> {
        fadvise(self.open(name)?, 0, None, Advice::DontNeed)
    }

    /// The caches of the machine, which another thread may drop while this tree is removed.
    pub fn machine_caches(&self) -> Result<MachineCaches, OpenError> {
        let copied = self.folders.first().map(OwnedFd::try_clone).transpose();
        let failed = self.kept.failed("copy a descriptor");
        Ok(MachineCaches {
            folder: copied.map_err(|error| failed(errno_of(&error)))?,
            path: self.kept.path().display().to_string(),
        })
    }

    /// Removes it with all that this process made in it. Anything else stays:
    /// [`OpenError::Stays`].
    pub fn remove(mut self) -> Result<(), OpenError> {
        self.is_removed = true;
        let removed = self.remove_ours();
        if removed.is_ok() {
            return removed;
        }
        // NFS and some FUSE servers keep the name of a file as long as it is open.
        drop(self.lock.take());
        self.remove_ours()
    }

    fn remove_ours(&self) -> Result<(), OpenError> {
        let mut folders = HashSet::new();
        for folder in &self.folders {
            if let Ok(stat) = fstat(folder) {
                folders.insert(FileId::from(&stat));
            }
        }
        let has_files = self.has_files.load(Ordering::Relaxed) || self.kept.marks_files();
        self.kept.remove(&|entry: &Entry<'_>| match entry.kind() {
            FileType::Directory => {
                entry.depth == 0 && folders.contains(&FileId::from(entry.stat()))
            }
            _ => {
                has_files
                    && entry.depth == 1
                    && is_file_name(entry.name_bytes())
                    && self.kept.may_have_made(entry)
            }
        })
    }
}

impl Drop for FileTree {
    fn drop(&mut self) {
        if !self.is_removed {
            // An error ended the run, and it is the one that matters.
            let _ = self.remove_ours();
        }
    }
}

/// The hidden verb with which the program runs [`remove_files`].
pub const FILES_REMOVER_VERB: &str = "files-remover";
/// The interval at which the remover checks whether the test has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Starts the process that removes the files in this directory. Its own group keeps Ctrl-C of the
/// terminal away from it.
pub fn start_files_remover(directory: &str) -> Result<(), OpenError> {
    let mut remover = Command::new("/proc/self/exe");
    remover
        .arg(FILES_REMOVER_VERB)
        .current_dir(directory)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = spawn_with_limit_of_user(&mut remover).map_err(|error| {
        let path = Path::new(directory).join(FILES_DIRECTORY);
        let errno = crate::kernel::naming::errno_of(&error);
        OpenError::from_errno(&path.display().to_string(), "start its removal", errno)
    })?;
    // Closes with the last thread of this process, which may be making the directory.
    let _ = child.stdin.take().map(IntoRawFd::into_raw_fd);
    Ok(())
}

/// Waits until its input is closed and no process uses the files of the present directory, and
/// removes them.
pub fn remove_files() -> ExitCode {
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    let Ok(parent) = open_folder(rustix::fs::CWD, ".") else {
        return ExitCode::FAILURE;
    };
    loop {
        match remove_leftover(parent.as_fd(), FILES_DIRECTORY, FILES_DIRECTORY) {
            Err(OpenError::InUse { .. }) => std::thread::sleep(POLL_INTERVAL),
            Err(_) => return ExitCode::FAILURE,
            Ok(_) => return ExitCode::SUCCESS,
        }
    }
}

/// Removes the directory `name`, shown as `path`, if a killed test left it. Returns the number of
/// files in it; `None` where there is no such directory.
///
/// Everything in it is checked to be of that test before anything is removed; one strange entry
/// keeps all of it. Every step goes through a descriptor, so that no exchange of a name leads out
/// of the directory.
pub(crate) fn remove_leftover(
    parent: BorrowedFd<'_>,
    name: &str,
    path: &str,
) -> Result<Option<u64>, OpenError> {
    let Some(claimed) = ClaimedDirectory::claim_in(parent, name, path)? else {
        return Ok(None);
    };
    let criteria = claimed.file_criteria();
    let is_ours = |entry: &Entry<'_>| match entry.kind() {
        FileType::Directory => entry.depth == 0 && is_folder_name(entry.name_bytes()),
        _ => entry.depth == 1 && is_file_name(entry.name_bytes()) && criteria.matches(entry.stat()),
    };
    let content =
        walk(claimed.directory(), WalkAction::Count, CLAIM, &is_ours).map_err(|errno| {
            OpenError::from_errno(path, "list the remains of an earlier run", errno)
        })?;
    if let Some(what) = content.foreign.text() {
        return Err(not_ours(path, &what));
    }
    claimed.remove(&is_ours)?;
    Ok(Some(content.files))
}

// Names in the directory. A later run removes only what is named so: a change here leaves the files
// of earlier versions in place.

/// The name of a directory begins with it.
const FOLDER_PREFIX: u8 = b'd';
/// Decimal digits of a directory's name.
const FOLDER_DIGITS: usize = 7;
const DIGITS: &[u8; 16] = b"0123456789abcdef";
/// A letter, 16 digits and the zero byte.
const NAME_BYTES: usize = 18;

/// A file has one of two names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameState {
    /// The one with which it was created.
    First,
    /// The one that it got by a rename.
    Renamed,
}

/// The name of a file: its directory, a number and which of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileName {
    /// Index of its directory.
    pub folder: usize,
    /// The number sorts as the name does.
    pub number: u64,
    /// The file has this one of its names.
    pub state: NameState,
}

impl FileName {
    /// Returns the name that the file has after its rename.
    pub(crate) fn renamed(self) -> Self {
        Self {
            state: NameState::Renamed,
            ..self
        }
    }

    /// The name: a letter for its state, 16 hexadecimal digits and a zero byte.
    pub(crate) fn bytes(self) -> [u8; NAME_BYTES] {
        let mut name = [0; NAME_BYTES];
        name[0] = match self.state {
            NameState::First => b'a',
            NameState::Renamed => b'b',
        };
        for (place, byte) in name[1..NAME_BYTES - 1].iter_mut().enumerate() {
            *byte = DIGITS[(self.number >> (60 - 4 * place)) as usize & 15];
        }
        name
    }
}

/// The name as system calls take it; `name` comes from [`FileName::bytes`].
pub(crate) fn text(name: &[u8; NAME_BYTES]) -> &CStr {
    CStr::from_bytes_until_nul(name).expect("the last byte of a name stays zero")
}

/// The name of a directory inside.
pub(crate) fn folder_name(index: usize) -> String {
    format!("{}{index:0FOLDER_DIGITS$}", char::from(FOLDER_PREFIX))
}

/// True for the name that a directory of ours has.
pub(crate) fn is_folder_name(name: &[u8]) -> bool {
    matches!(name, [FOLDER_PREFIX, digits @ ..]
        if digits.len() == FOLDER_DIGITS && digits.iter().all(u8::is_ascii_digit))
}

/// True for the names that a file of ours has.
pub(crate) fn is_file_name(name: &[u8]) -> bool {
    matches!(name, [b'a' | b'b', digits @ ..]
        if digits.len() == 16 && digits.iter().all(|digit| DIGITS.contains(digit)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Intent;
    use crate::admit;
    use crate::identity::probe::probe;
    use crate::own_files::claimed_directory::CLAIM;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    const FILE_BYTES_MAX: u64 = 4096;

    fn start(place: &Path) -> Result<StartedTree, OpenError> {
        let identity = probe(place).unwrap();
        let (size_bytes, count) = (1 << 20, 100);
        let admission = admit(identity, Intent::Files { size_bytes, count }).unwrap();
        FileTree::start(admission, 2, FILE_BYTES_MAX)
    }

    fn name(folder: usize, number: u64) -> FileName {
        FileName {
            folder,
            number,
            state: NameState::First,
        }
    }

    fn place() -> tempfile::TempDir {
        tempfile::tempdir_in("/var/tmp").unwrap()
    }

    fn end_as_by_kill(mut started: StartedTree) {
        started.tree.is_removed = true;
    }

    #[test]
    fn tree_creates_renames_and_removes_only_its_own_files() {
        let place = place();
        std::fs::write(place.path().join("other"), "data").unwrap();
        let started = start(place.path()).unwrap();
        assert_eq!(started.leftover_files, None);
        let tree = started.tree;
        let one = name(1, 7);
        let file = tree.create(one).unwrap();
        rustix::io::write(&file, b"content").unwrap();
        assert_eq!(tree.create(one).unwrap_err(), Errno::EXIST);
        assert_eq!(tree.stat(one), Ok(7));
        tree.write_back(one).unwrap();
        tree.drop_pages(one).unwrap();
        tree.rename(one).unwrap();
        assert_eq!(tree.stat(one), Err(Errno::NOENT));
        let renamed = FileName {
            state: NameState::Renamed,
            ..one
        };
        tree.sync_folder(renamed).unwrap();
        tree.delete(renamed).unwrap();
        tree.remove().unwrap();
        let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn tree_without_users_is_removed_with_its_files() {
        let place = place();
        let started = start(place.path()).unwrap();
        started.tree.create(name(1, 3)).unwrap();
        drop(started);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    /// A bind mount has the device number of the directory that it shows.
    #[test]
    fn removal_enters_no_mount() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: removal_enters_no_mount: root");
            return;
        }
        let (place, outside) = (place(), place());
        let precious = outside.path().join("precious");
        std::fs::write(&precious, "data").unwrap();
        let tree = start(place.path()).unwrap().tree;
        let point = tree.path().join("d0000001/point");
        std::fs::create_dir(&point).unwrap();
        rustix::mount::mount_bind(outside.path(), &point).unwrap();
        let removed = tree.remove();
        rustix::mount::unmount(&point, rustix::mount::UnmountFlags::empty()).unwrap();
        assert!(removed.is_err() && precious.exists(), "{removed:?}");
    }

    fn first_file(tree: &Path) -> PathBuf {
        tree.join("d0000000/a0000000000000001")
    }

    /// Puts something into the tree's directory, with a path outside. Returns what must stay.
    type Act = fn(&Path, &Path) -> PathBuf;

    /// What another program may do in the directory of a run that has made one file in it.
    const ACTS: [Act; 11] = [
        |tree, _| write(tree.join("notes")),
        |tree, _| write(tree.join("trial")),
        |tree, _| write(tree.join("d0000000/notes")),
        // A name that a run gives, too.
        |tree, _| write(tree.join("d0000001/b000000000000abcd")),
        // In the place of a file that the run has made.
        |tree, _| {
            let there = first_file(tree);
            std::fs::remove_file(&there).unwrap();
            write(there)
        },
        |tree, outside| {
            std::fs::rename(write(outside.join("moved")), first_file(tree)).unwrap();
            first_file(tree)
        },
        |tree, outside| {
            let name = tree.join("d0000000/a000000000000abcd");
            std::fs::hard_link(write(outside.join("linked")), &name).unwrap();
            name
        },
        |tree, outside| {
            let name = tree.join("d0000000/a000000000000abcd");
            std::os::unix::fs::symlink(outside, &name).unwrap();
            name
        },
        |tree, _| {
            let name = tree.join("d0000000/a000000000000abcd");
            std::fs::create_dir(&name).unwrap();
            name
        },
        |tree, _| {
            let name = tree.join("d0000003");
            std::fs::create_dir(&name).unwrap();
            name
        },
        // In the place of a directory that the run has made.
        |tree, outside| {
            std::fs::rename(tree.join("d0000000"), outside.join("away")).unwrap();
            std::fs::create_dir(tree.join("d0000000")).unwrap();
            tree.join("d0000000")
        },
    ];

    fn write(path: PathBuf) -> PathBuf {
        std::fs::write(&path, "data").unwrap();
        path
    }

    /// All paths below a directory, with their content.
    fn content(of: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(of).unwrap() {
            let (path, kind) = entry.map(|e| (e.path(), e.file_type().unwrap())).unwrap();
            all.push((path.clone(), std::fs::read(&path).ok()));
            if kind.is_dir() {
                all.extend(content(&path));
            }
        }
        all.sort();
        all
    }

    #[test]
    fn run_removes_nothing_that_it_did_not_make() {
        for (number, act) in ACTS.into_iter().enumerate() {
            for is_dropped in [false, true] {
                let (here, outside) = (place(), place());
                let tree = start(here.path()).unwrap().tree;
                tree.create(name(0, 1)).unwrap();
                tree.create(name(1, 2)).unwrap();
                let kept = act(&tree.path(), outside.path());
                let there = std::fs::symlink_metadata(&kept).unwrap();
                tree.expect_files(true);
                match is_dropped {
                    true => drop(tree),
                    false => {
                        let removed = tree.remove().unwrap_err();
                        assert!(matches!(removed, OpenError::Stays { .. }), "{number}");
                    }
                }
                let stayed = std::fs::symlink_metadata(&kept).unwrap();
                assert_eq!((there.dev(), there.ino()), (stayed.dev(), stayed.ino()));
                let ours = here.path().join(FILES_DIRECTORY);
                let second = ours.join("d0000001/a0000000000000002");
                assert!(!second.exists(), "{number}");
                let left = content(&ours).into_iter().map(|(path, _)| path);
                let left: Vec<_> = left.filter(|path| !kept.starts_with(path)).collect();
                assert_eq!(left, [ours.join(CLAIM)], "{number}");
                // Its owner takes it away: the next run removes the rest.
                std::fs::rename(&kept, outside.path().join("saved")).unwrap();
                start(here.path()).unwrap().tree.remove().unwrap();
                assert!(!ours.exists(), "{number}");
            }
        }
    }

    #[test]
    fn leftover_stays_whole_after_each_act_of_another_program() {
        for (number, act) in ACTS.into_iter().enumerate() {
            let (here, outside) = (place(), place());
            let started = start(here.path()).unwrap();
            started.tree.create(name(0, 1)).unwrap();
            started.tree.create(name(1, 2)).unwrap();
            act(&started.tree.path(), outside.path());
            end_as_by_kill(started);
            let before = content(here.path());
            let next = start(here.path());
            // An empty directory with a name of ours is no data.
            let is_taken = [9, 10].contains(&number);
            assert_eq!(next.is_ok(), is_taken, "{number}");
            if !is_taken {
                assert!(matches!(next, Err(OpenError::NotOurs { .. })), "{number}");
                assert_eq!(content(here.path()), before, "{number}");
            }
        }
    }

    #[test]
    fn file_larger_than_those_of_the_run_is_none_of_its_leftover() {
        let here = place();
        let started = start(here.path()).unwrap();
        let file = started.tree.create(name(0, 1)).unwrap();
        rustix::fs::ftruncate(file, FILE_BYTES_MAX + 1).unwrap();
        end_as_by_kill(started);
        let next = start(here.path());
        assert!(matches!(next, Err(OpenError::NotOurs { .. })), "{next:?}");
    }

    #[test]
    fn directory_in_the_place_of_the_tree_stays() {
        let (here, outside) = (place(), place());
        let tree = start(here.path()).unwrap().tree;
        tree.create(name(0, 1)).unwrap();
        let path = tree.path();
        std::fs::rename(&path, outside.path().join("away")).unwrap();
        std::fs::create_dir(&path).unwrap();
        let removed = tree.remove();
        assert!(matches!(removed, Err(OpenError::Stays { .. })));
        assert!(path.exists());
        assert_eq!(content(&outside.path().join("away")), []);
    }

    #[test]
    fn rename_and_deletion_spare_files_of_other_programs() {
        let here = place();
        let tree = start(here.path()).unwrap().tree;
        let [one, two] = [1, 2].map(|number| name(0, number));
        for name in [one, two] {
            tree.create(name).unwrap();
            assert_eq!(tree.is_untouched(name), Ok(true));
        }
        let second = write(tree.path().join("d0000000/b0000000000000001"));
        assert_eq!(tree.rename(one), Err(Errno::EXIST));
        assert_eq!(std::fs::read(&second).unwrap(), b"data");
        std::fs::remove_file(first_file(&tree.path())).unwrap();
        assert_eq!(tree.is_untouched(one), Err(Errno::NOENT));
        write(first_file(&tree.path()));
        assert_eq!(tree.is_untouched(one), Ok(false));
        assert_eq!(tree.delete_own(one), Ok(()));
        assert_eq!(std::fs::read(first_file(&tree.path())).unwrap(), b"data");
        assert_eq!(tree.delete_own(two), Ok(()));
        assert_eq!(tree.is_untouched(two), Err(Errno::NOENT));
    }

    /// Where a filesystem keeps no mark, a name of ours is a file of ours only while there are any.
    #[test]
    fn files_without_a_mark_go_only_while_the_run_has_files() {
        for may_exist in [false, true] {
            let here = place();
            let mut tree = start(here.path()).unwrap().tree;
            tree.kept.forget_mark();
            tree.expect_files(may_exist);
            write(first_file(&tree.path()));
            assert_eq!(tree.remove().is_ok(), may_exist);
            assert_eq!(here.path().join(FILES_DIRECTORY).exists(), !may_exist);
        }
    }

    #[test]
    fn leftover_is_removed_unless_a_run_holds_it() {
        let place = place();
        let started = start(place.path()).unwrap();
        for number in 0..3 {
            started.tree.create(name(0, number)).unwrap();
        }
        let second = start(place.path()).unwrap_err();
        assert!(matches!(second, OpenError::InUse { .. }), "{second}");
        end_as_by_kill(started);
        let next = start(place.path()).unwrap();
        assert_eq!(next.leftover_files, Some(3));
        next.tree.remove().unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn leftover_with_strange_content_stays_whole() {
        let outside = place();
        let precious = outside.path().join("precious");
        std::fs::write(&precious, "data").unwrap();
        let spoil: [fn(&Path, &Path); 5] = [
            |ours, _| std::fs::write(ours.join("notes"), "data").unwrap(),
            |ours, _| std::fs::write(ours.join("d0000000/notes"), "data").unwrap(),
            |ours, outside| {
                std::os::unix::fs::symlink(outside, ours.join("d0000005")).unwrap();
            },
            |ours, outside| {
                let file = outside.join("precious");
                let name = ours.join("d0000000/a0000000000000009");
                std::os::unix::fs::symlink(file, name).unwrap();
            },
            |ours, _| std::fs::remove_file(ours.join(CLAIM)).unwrap(),
        ];
        for spoil in spoil {
            let place = place();
            let started = start(place.path()).unwrap();
            started.tree.create(name(0, 1)).unwrap();
            end_as_by_kill(started);
            let ours = place.path().join(FILES_DIRECTORY);
            spoil(&ours, outside.path());
            let refused = start(place.path()).unwrap_err();
            assert!(matches!(refused, OpenError::NotOurs { .. }), "{refused}");
            assert!(ours.join("d0000000/a0000000000000001").exists());
            assert!(precious.exists());
        }
        let place = place();
        std::os::unix::fs::symlink(outside.path(), place.path().join(FILES_DIRECTORY)).unwrap();
        let refused = start(place.path()).unwrap_err();
        assert!(matches!(refused, OpenError::NotOurs { .. }));
        assert!(precious.exists());
    }

    #[test]
    fn names_sort_as_their_numbers_and_are_recognised() {
        let of = |number| {
            let name = name(0, number);
            text(&name.bytes()).to_owned()
        };
        assert_eq!(of(0x12ab).to_str(), Ok("a00000000000012ab"));
        assert!(of(9) < of(10) && of(u64::MAX - 1) < of(u64::MAX));
        assert!(is_file_name(of(7).as_bytes()) && is_folder_name(folder_name(3).as_bytes()));
        for wrong in ["", "a", "a12", "c0000000000000000", "a000000000000000G"] {
            assert!(!is_file_name(wrong.as_bytes()), "{wrong}");
        }
        for wrong in ["", "d", "d00000001", "d000000x", "e0000001"] {
            assert!(!is_folder_name(wrong.as_bytes()), "{wrong}");
        }
    }
}
