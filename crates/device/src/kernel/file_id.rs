//! The identity of a file, directory or node, whatever its names: two paths or descriptors that
//! lead to the same one have the same device and inode.

use rustix::fs::Stat;

/// The device that a file lies on, and its inode there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Number of the device (`st_dev`).
    pub device: u64,
    /// Number of the inode (`st_ino`).
    pub inode: u64,
}

impl From<&Stat> for FileId {
    fn from(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}
