//! Finds whether a path, a descriptor or a device number belongs to the subject: the device or file
//! that must not be in use. Each `find_…` returns the name by which the user knows the part that
//! was found: the target itself, a partition, the file behind a loop device; `None` for anything
//! else.

use super::family::{DeviceFamily, Member};
use crate::kernel::file_id::FileId;
use crate::kernel::naming::device_number;
use rustix::fs::{FileType, Stat};
use std::path::Path;

/// A target that must not be in use.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject<'a> {
    /// A block device with all its relatives.
    Device(&'a DeviceFamily),
    /// A regular file.
    File {
        /// The path that the user named, absolute.
        path: &'a str,
        /// Device and inode of the file.
        id: FileId,
    },
}

/// A regular file that must not be in use.
#[derive(Debug, Clone, Copy)]
pub(super) struct SubjectFile<'a> {
    pub(super) path: &'a Path,
    pub(super) id: FileId,
}

impl<'a> Subject<'a> {
    /// The file itself, or those behind a loop device that can be looked at from here.
    pub(super) fn files(&self) -> Vec<SubjectFile<'a>> {
        match *self {
            Self::File { path, id } => vec![SubjectFile {
                path: Path::new(path),
                id,
            }],
            Self::Device(family) => {
                let mut files = Vec::new();
                for file in family.all_files() {
                    if let Some(id) = file.id {
                        let path = file.path.as_path();
                        files.push(SubjectFile { path, id });
                    }
                }
                files
            }
        }
    }
}

impl Subject<'_> {
    /// True for a loop device of this name that lies below the subject.
    pub(super) fn lies_on_loop(&self, name: &str) -> bool {
        match self {
            Self::Device(family) => family.loops_below.iter().any(|below| below == name),
            Self::File { .. } => false,
        }
    }

    /// The devices that share blocks with the target, which comes first; none of a file.
    pub(super) fn members(&self) -> &[Member] {
        match self {
            Self::Device(family) => &family.members,
            Self::File { .. } => &[],
        }
    }

    /// Finds the part that a path or a descriptor leads to.
    pub(super) fn find_node(&self, node: &Node) -> Option<String> {
        match node.kind {
            NodeKind::Block => self.find_device(&device_number(node.device)),
            NodeKind::Character => self.find_by_character_node(&device_number(node.device)),
            NodeKind::Other => self.find_file(|_, id| id == Some(node.id)),
        }
    }

    /// Finds the disk behind a character device of this number; the name says which device that is.
    fn find_by_character_node(&self, device: &str) -> Option<String> {
        for member in self.members() {
            if let Some(node) = (member.character_nodes.iter()).find(|node| node.device == device) {
                return Some(format!("{} (as {})", member.node(), node.name));
            }
        }
        None
    }

    /// Finds the file whose path, or whose device and inode, are wanted. These are `None` where the
    /// file cannot be looked at from here.
    pub(super) fn find_file(
        &self,
        is_wanted: impl Fn(&Path, Option<FileId>) -> bool,
    ) -> Option<String> {
        match self {
            Self::Device(family) => {
                let behind = family
                    .all_files()
                    .find(|file| is_wanted(&file.path, file.id))?;
                Some(behind.path.display().to_string())
            }
            Self::File { path, id } => {
                if is_wanted(Path::new(path), Some(*id)) {
                    Some((*path).to_owned())
                } else {
                    None
                }
            }
        }
    }

    /// Finds a file, or the node of a device, with the same last component of its path. For a path
    /// of which nothing else is known.
    pub(super) fn find_by_file_name(&self, name: &Path) -> Option<String> {
        let wanted = Some(name.as_os_str());
        if let Some(file) = self.find_file(|path, _| path.file_name() == wanted) {
            return Some(file);
        }
        self.members()
            .iter()
            .map(Member::node)
            .find(|node| Path::new(node).file_name() == wanted)
    }

    /// Finds the device with this number, `major:minor`.
    pub(super) fn find_device(&self, device: &str) -> Option<String> {
        self.members()
            .iter()
            .find(|member| member.device == device)
            .map(Member::node)
    }

    /// Finds the disk of an NVMe controller whose character device has this number. Programs that
    /// monitor the disk hold that device open, so an open one alone does not mean that the disk is
    /// in use.
    pub(super) fn find_controlled_disk(&self, device: &str) -> Option<String> {
        self.members()
            .iter()
            .find(|member| member.is_controlled_by(device))
            .map(Member::node)
    }

    /// Finds the device whose node in /dev has this path, by its name alone: for paths that cannot
    /// be looked at from here.
    pub(super) fn find_by_node_path(&self, path: &Path) -> Option<String> {
        let name = path.strip_prefix("/dev").ok()?.to_str()?.replace('/', "!");
        self.members()
            .iter()
            .find(|member| member.name == name)
            .map(Member::node)
    }
}

/// The file or device to which a path or a descriptor leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    /// Number of the device, where it is one.
    pub(super) device: u64,
    pub(super) id: FileId,
}

/// The kinds of node that are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeKind {
    Block,
    Character,
    Other,
}

impl From<FileType> for NodeKind {
    fn from(file: FileType) -> Self {
        match file {
            FileType::BlockDevice => Self::Block,
            FileType::CharacterDevice => Self::Character,
            FileType::RegularFile
            | FileType::Directory
            | FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::Unknown => Self::Other,
        }
    }
}

impl From<&Stat> for Node {
    fn from(stat: &Stat) -> Self {
        Self {
            kind: FileType::from_raw_mode(stat.st_mode).into(),
            device: stat.st_rdev,
            id: FileId::from(stat),
        }
    }
}
