//! What must not be in use, and whether a path, a descriptor or a device number belongs to it.
//! Opens nothing; does not look for users.

use super::family::{DeviceFamily, Member};
use crate::naming::device_number;
use rustix::fs::{FileType, Stat, stat};
use std::path::Path;

/// What must not be in use.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject<'a> {
    /// A block device with all its relatives.
    Device(&'a DeviceFamily),
    /// A regular file.
    File {
        /// Its path.
        path: &'a str,
        /// Device and inode.
        id: (u64, u64),
    },
}

impl Subject<'_> {
    /// The name by which what `path` names belongs to the subject: the target itself, a partition,
    /// the file behind a loop device.
    pub(super) fn owns_path(&self, path: &Path) -> Option<String> {
        self.owns(&Node::from(&stat(path).ok()?))
    }

    /// The same for what was looked at already.
    pub(super) fn owns(&self, node: &Node) -> Option<String> {
        match self {
            Self::Device(family) if node.is_block => {
                family.member(&device_number(node.device)).map(Member::node)
            }
            Self::Device(family) => {
                let mut files = family.backing_files.iter();
                let behind = files.find(|file| file.id == Some(node.id));
                behind.map(|file| file.path.display().to_string())
            }
            Self::File { path, id } => {
                (!node.is_block && *id == node.id).then(|| (*path).to_owned())
            }
        }
    }

    pub(super) fn owns_device(&self, device: &str) -> Option<String> {
        match self {
            Self::Device(family) => family.member(device).map(Member::node),
            Self::File { .. } => None,
        }
    }

    /// For paths that cannot be looked at from here: by the last part of their name.
    pub(super) fn owns_node_name(&self, path: &Path) -> Option<String> {
        let name = path.strip_prefix("/dev").ok()?.to_str()?.replace('/', "!");
        match self {
            Self::Device(family) => family
                .members
                .iter()
                .find(|member| member.name == name)
                .map(Member::node),
            Self::File { .. } => None,
        }
    }
}

/// What a path or a descriptor leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) is_block: bool,
    /// Number of the device that it is.
    pub(super) device: u64,
    /// Device that it lies on, and its inode.
    pub(super) id: (u64, u64),
}

impl From<&Stat> for Node {
    fn from(stat: &Stat) -> Self {
        let is_block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
        Self {
            is_block,
            device: stat.st_rdev,
            id: (stat.st_dev, stat.st_ino),
        }
    }
}
