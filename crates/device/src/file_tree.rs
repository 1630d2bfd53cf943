//! Many small files in our own directory with a known name. Files are named by numbers, and every
//! operation goes through the descriptor of a directory that this program made: no name given from
//! outside can lead elsewhere. Measures nothing.

use crate::admit::Admission;
use crate::failure::OpenError;
use crate::file_names::{FileName, NameState, folder_name, text};
use crate::filesystems::is_in_memory;
use crate::kept::{KeptDirectory, create_new_in};
use crate::leftover;
use crate::write_back::{drop_all_caches, write_pages};
use diskproof_model::files::FILES_DIRECTORY;
use diskproof_model::target::TargetIdentity;
use rustix::fs::{
    Advice, AtFlags, Mode, OFlags, fadvise, fsync, openat, renameat, statat, syncfs, unlinkat,
};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A directory with its files, made by this process. It is removed with everything in it when its
/// last user drops it, however a run ends.
#[derive(Debug)]
pub struct FileTree {
    kept: KeptDirectory,
    folders: Vec<OwnedFd>,
    is_removed: bool,
    _lock: OwnedFd,
}

/// A tree, and what an earlier run had left in its place.
#[derive(Debug)]
pub struct StartedTree {
    /// The new tree.
    pub tree: FileTree,
    /// Files of an earlier run that were removed; `None` where there was no such directory.
    pub leftover_files: Option<u64>,
}

impl FileTree {
    /// Makes the directory with its known name inside a directory that was admitted for a scratch
    /// file, and so many directories in it. What a killed run left there is removed first.
    pub fn start(admission: Admission, folders: u32) -> Result<StartedTree, OpenError> {
        let path = Path::new(&admission.identity().path).join(FILES_DIRECTORY);
        let path = path.display().to_string();
        let (kept, leftover_files) =
            KeptDirectory::create_in(admission, FILES_DIRECTORY, |parent| {
                leftover::remove(parent, FILES_DIRECTORY, &path)
            })?;
        let lock = match kept.mark_as_used() {
            Ok(lock) => lock,
            Err(error @ OpenError::InUse { .. }) => return Err(error),
            Err(error) => {
                // The first error is the one that matters.
                let _ = kept.remove();
                return Err(error);
            }
        };
        let mut tree = Self {
            kept,
            folders: Vec::new(),
            is_removed: false,
            _lock: lock,
        };
        for index in 0..folders as usize {
            tree.folders
                .push(tree.kept.create_folder(&folder_name(index))?);
        }
        Ok(StartedTree {
            tree,
            leftover_files,
        })
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.kept.path()
    }

    /// Who the directory around it is.
    pub fn identity(&self) -> &TargetIdentity {
        self.kept.identity()
    }

    /// Whether its files are only memory.
    pub fn is_in_memory(&self) -> bool {
        let filesystem = self.identity().filesystem.as_ref();
        filesystem.is_some_and(|filesystem| is_in_memory(&filesystem.kind))
    }

    fn folder(&self, name: FileName) -> BorrowedFd<'_> {
        self.folders[name.folder].as_fd()
    }

    /// A new, empty file, open for writing.
    pub fn create(&self, name: FileName) -> Result<OwnedFd, Errno> {
        create_new_in(self.folder(name), text(&name.bytes()))
    }

    /// An existing file, open for reading.
    pub fn open(&self, name: FileName) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(self.folder(name), text(&name.bytes()), flags, Mode::empty())
    }

    /// The size of a file in bytes.
    pub fn stat(&self, name: FileName) -> Result<u64, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let stat = statat(self.folder(name), text(&name.bytes()), flags)?;
        Ok(stat.st_size as u64)
    }

    /// Gives a file its second name.
    pub fn rename(&self, name: FileName) -> Result<(), Errno> {
        let renamed = FileName {
            state: NameState::Renamed,
            ..name
        };
        let (old, new) = (name.bytes(), renamed.bytes());
        renameat(self.folder(name), text(&old), self.folder(name), text(&new))
    }

    /// Removes a file.
    pub fn delete(&self, name: FileName) -> Result<(), Errno> {
        unlinkat(self.folder(name), text(&name.bytes()), AtFlags::empty())
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

    /// Drops the caches of the whole machine, after everything on this filesystem was written.
    pub fn drop_all_caches(&self) -> Result<(), OpenError> {
        let failed = |doing| {
            let path = self.path().display().to_string();
            move |errno| OpenError::from_errno(&path, doing, errno)
        };
        let folder = self.folders.first();
        folder
            .map_or(Ok(()), syncfs)
            .map_err(failed("sync its filesystem"))?;
        drop_all_caches().map_err(failed("drop the caches of the machine"))
    }

    /// Removes it with everything in it.
    pub fn remove(mut self) -> Result<(), OpenError> {
        self.is_removed = true;
        self.kept.remove()
    }
}

impl Drop for FileTree {
    fn drop(&mut self) {
        if !self.is_removed {
            // An error ended the run, and it is the one that matters.
            let _ = self.kept.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::CLAIM;
    use crate::{Intent, admit, probe};
    use std::path::Path;

    fn start(place: &Path) -> Result<StartedTree, OpenError> {
        let identity = probe(place).unwrap();
        let (size_bytes, count) = (1 << 20, 100);
        let admission = admit(identity, Intent::Files { size_bytes, count }).unwrap();
        FileTree::start(admission, 2)
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
        let StartedTree {
            tree,
            leftover_files,
        } = start(place.path()).unwrap();
        assert_eq!(leftover_files, None);
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
        assert!(matches!(
            start(place.path()),
            Err(OpenError::NotOurs { .. })
        ));
        assert!(precious.exists());
    }
}
