//! A made-up /sys for tests, with devices, symlinks and attributes laid out as the kernel does, and
//! a /proc beside it.

use crate::kernel::sysroot::SysRoot;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A temporary directory with the tree; it is removed at the end of the test.
pub(crate) struct FakeSysfs {
    tree: TempDir,
}

impl FakeSysfs {
    /// A tree without devices.
    pub(crate) fn new() -> Self {
        let tree = tempfile::tempdir().unwrap();
        for directory in ["dev/block", "class/block", "devices"] {
            std::fs::create_dir_all(tree.path().join(directory)).unwrap();
        }
        Self { tree }
    }

    /// The root under which the code under test finds the tree, and files of `proc/` in it.
    pub(crate) fn root(&self) -> SysRoot {
        SysRoot {
            sys: self.tree.path().to_owned(),
            proc: self.tree.path().join("proc"),
        }
    }

    /// Makes a block device at `devices/PATH`, with its numbers, such as `8:0`, and attributes. The
    /// path of a partition begins with that of its disk.
    pub(crate) fn add_block_device(&self, path: &str, numbers: &str, attributes: &[(&str, &str)]) {
        let directory = self.tree.path().join("devices").join(path);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("dev"), format!("{numbers}\n")).unwrap();
        let name = directory.file_name().unwrap();
        for index in [
            self.tree.path().join("dev/block").join(numbers),
            self.tree.path().join("class/block").join(name),
        ] {
            symlink(&directory, index).unwrap();
        }
        for (attribute, text) in attributes {
            self.write_attribute(&format!("devices/{path}/{attribute}"), text);
        }
    }

    /// Makes a writable partition of this many sectors, the first one of its disk by its attribute.
    pub(crate) fn add_partition(&self, path: &str, numbers: &str, sectors: u64) {
        let size = sectors.to_string();
        let attributes = [("partition", "1"), ("size", &size), ("ro", "0")];
        self.add_block_device(path, numbers, &attributes);
    }

    /// Writes an attribute, or another file, anywhere in the tree.
    pub(crate) fn write_attribute(&self, path: &str, text: &str) {
        let path = self.make_parent(path);
        std::fs::write(path, format!("{text}\n")).unwrap();
    }

    /// Makes a symlink from one path of the tree to another.
    pub(crate) fn add_link(&self, from: &str, to: &str) {
        let from = self.make_parent(from);
        symlink(self.tree.path().join(to), from).unwrap();
    }

    /// Makes the directories above a path of the tree, and returns the path in the real one.
    fn make_parent(&self, path: &str) -> PathBuf {
        let path = self.tree.path().join(Path::new(path));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}
