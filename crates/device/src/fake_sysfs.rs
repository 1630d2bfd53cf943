//! A made-up /sys for tests, with devices, symlinks and attributes laid out as the kernel does.

use crate::sysroot::SysRoot;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) struct FakeSysfs {
    place: TempDir,
}

impl FakeSysfs {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for directory in ["dev/block", "class/block", "devices"] {
            std::fs::create_dir_all(place.path().join(directory)).unwrap();
        }
        Self { place }
    }

    pub(crate) fn root(&self) -> SysRoot {
        SysRoot {
            sys: self.place.path().to_owned(),
            proc: self.place.path().join("proc"),
        }
    }

    /// A block device at `devices/PATH`, with its number and attributes; a partition has its disk's
    /// path in front.
    pub(crate) fn block(&self, path: &str, device: &str, attributes: &[(&str, &str)]) {
        let sysfs = self.place.path().join("devices").join(path);
        std::fs::create_dir_all(&sysfs).unwrap();
        std::fs::write(sysfs.join("dev"), format!("{device}\n")).unwrap();
        let name = sysfs.file_name().unwrap();
        symlink(&sysfs, self.place.path().join("dev/block").join(device)).unwrap();
        symlink(&sysfs, self.place.path().join("class/block").join(name)).unwrap();
        for (attribute, text) in attributes {
            self.file(&format!("devices/{path}/{attribute}"), text);
        }
    }

    /// An attribute anywhere in the tree.
    pub(crate) fn file(&self, path: &str, text: &str) {
        let path = self.make_parent(path);
        std::fs::write(path, format!("{text}\n")).unwrap();
    }

    /// A symlink from one place of the tree to another.
    pub(crate) fn link(&self, from: &str, to: &str) {
        let from = self.make_parent(from);
        symlink(self.place.path().join(to), from).unwrap();
    }

    /// A partition: number and size in sectors.
    pub(crate) fn partition(&self, path: &str, device: &str, sectors: u64) {
        let size = sectors.to_string();
        let attributes = [("partition", "1"), ("size", &size), ("ro", "0")];
        self.block(path, device, &attributes);
    }

    fn make_parent(&self, path: &str) -> PathBuf {
        let path = self.place.path().join(Path::new(path));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}
