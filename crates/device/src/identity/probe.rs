//! Finds out what a path leads to: its [`TargetIdentity`], from stat, statvfs, mountinfo and sysfs.
//! Never opens the target, so it works where opening is forbidden. `admit` decides what may be done
//! with it.

use crate::identity::disk;
use crate::identity::layers::{self, Stack};
use crate::kernel::file_id::FileId;
use crate::kernel::mounts::{self, MountEntry, find_mount};
use crate::kernel::naming::{device_number, errno_name, errno_of};
use crate::kernel::steps::{self, GateStep};
use crate::kernel::sysroot::SysRoot;
use diskproof_model::target::{Filesystem, TargetIdentity, TargetKind};
use rustix::fs::{FileType, Stat, lstat, stat, statvfs};
use rustix::io::Errno;
use std::path::Path;

/// The reason why a path could not be inspected, or cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// A part of the path does not exist (ENOENT).
    #[error(
        "{path}: {} does not exist (ENOENT); check the spelling, or create it first",
        phrase_for_part(path, component)
    )]
    Missing {
        /// The user named this path.
        path: String,
        /// The first part of it that is missing.
        component: String,
    },
    /// A symlink whose target is missing.
    #[error(
        "{path}: {} is a symlink to {points_to}, which does not exist (ENOENT); repair the link, \
         or name the destination itself",
        phrase_for_part(path, link)
    )]
    Dangling {
        /// The user named this path.
        path: String,
        /// The symlink.
        link: String,
        /// The symlink points here.
        points_to: String,
    },
    /// A link that the kernel itself does not follow (fs.protected_symlinks of proc_sys_fs(5)).
    #[error(
        "{path}: {} is a symlink of another user in a world-writable directory, which the kernel \
         does not follow (EACCES); name the destination itself",
        phrase_for_part(path, link)
    )]
    ForeignLink {
        /// The user named this path.
        path: String,
        /// The symlink.
        link: String,
    },
    /// The path led to two places within a moment.
    #[error("{path}: it has changed since the first check; run again when no process changes it")]
    Moving {
        /// The user named this path.
        path: String,
    },
    /// A directory of the path may not be entered (EACCES).
    #[error(
        "{path}: this user may not access {} (EACCES); run as a user who may, or name another \
         target",
        phrase_for_part(path, component)
    )]
    NotPermitted {
        /// The user named this path.
        path: String,
        /// The first directory that may not be entered.
        component: String,
    },
    /// The path uses a file as a directory (ENOTDIR).
    #[error(
        "{path}: {} is not a directory (ENOTDIR); check the spelling",
        phrase_for_part(path, component)
    )]
    NotDirectory {
        /// The user named this path.
        path: String,
        /// The path uses this file as a directory.
        component: String,
    },
    /// Something that has no content on a disk.
    #[error("{path}: it is a {what}; name a directory, a regular file or a block device")]
    WrongKind {
        /// The user named this path.
        path: String,
        /// The path leads to this kind of file, such as `character device`.
        what: &'static str,
    },
    /// A name that records could not hold.
    #[error(
        "{path}: the path is not valid UTF-8, which records require; rename it, or bind-mount it \
         under a valid name"
    )]
    NotUtf8 {
        /// The path, with replacement characters.
        path: String,
    },
    /// Any other answer of the kernel.
    #[error("{path}: cannot inspect it: {errno}; see dmesg")]
    System {
        /// The user named this path.
        path: String,
        /// Name of the error number.
        errno: String,
    },
}

/// Names a part of a path in an error that has named the path already.
fn phrase_for_part(path: &str, part: &str) -> String {
    // Compared as paths: one of them may end with a slash.
    if Path::new(path) == Path::new(part) {
        "it".to_owned()
    } else {
        format!("'{part}'")
    }
}

/// Returns the identity of what `path` leads to. Never opens it.
pub fn probe(path: &Path) -> Result<TargetIdentity, ProbeError> {
    probe_in(&SysRoot::default(), path)
}

fn probe_in(root: &SysRoot, path: &Path) -> Result<TargetIdentity, ProbeError> {
    // The kernel goes first: it does not follow every link that can be read.
    steps::before(GateStep::Probe);
    let followed = stat(path).map_err(|error| explain(path, error))?;
    steps::before(GateStep::Probe);
    let resolved = path
        .canonicalize()
        .map_err(|error| explain(path, errno_of(&error)))?;
    let text = resolved
        .to_str()
        .ok_or_else(|| ProbeError::NotUtf8 {
            path: resolved.display().to_string(),
        })?
        .to_owned();
    steps::before(GateStep::Probe);
    let stat = stat(&resolved).map_err(|error| explain(path, error))?;
    if FileId::from(&stat) != FileId::from(&followed) {
        return Err(ProbeError::Moving {
            path: path.display().to_string(),
        });
    }
    // Empty where /proc is not mounted: then the filesystem is unknown, which `admit` refuses for
    // writing.
    let mounts = mounts::read_mounts(root, "self");
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => {
            let device = device_number(stat.st_rdev);
            let stack = layers::layers_below_device(root, &mounts, &device);
            return Ok(block_identity(root, text, device, stat.st_ino, stack));
        }
        FileType::Directory => TargetKind::Directory,
        FileType::RegularFile => TargetKind::File,
        other => {
            return Err(ProbeError::WrongKind {
                path: path.display().to_string(),
                what: describe_kind(other),
            });
        }
    };
    probe_on_filesystem(root, &mounts, text, &stat, kind)
}

/// The identity of a block device (`major:minor`).
pub(crate) fn block_identity(
    root: &SysRoot,
    path: String,
    device: String,
    inode: u64,
    stack: Stack,
) -> TargetIdentity {
    let size_bytes = match root.block_device(&device) {
        Some(sysfs) => disk::size_bytes(&sysfs).unwrap_or(0),
        None => 0,
    };
    TargetIdentity {
        path,
        kind: TargetKind::BlockDevice,
        size_bytes,
        free_bytes: None,
        device,
        inode,
        filesystem: None,
        layers: stack.layers,
        unresolved: stack.unresolved,
    }
}

/// The identity of a file or directory, whose resolved path and stat these are.
fn probe_on_filesystem(
    root: &SysRoot,
    mounts: &[MountEntry],
    path: String,
    stat: &Stat,
    kind: TargetKind,
) -> Result<TargetIdentity, ProbeError> {
    let device = device_number(stat.st_dev);
    steps::before(GateStep::Probe);
    let space = statvfs(&path).map_err(|error| explain(Path::new(&path), error))?;
    let size_bytes = space.f_blocks.saturating_mul(space.f_frsize);
    let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
    let filesystem = find_mount(mounts, &device, Path::new(&path)).map(|mount| Filesystem {
        kind: mount.kind.clone(),
        mount_point: mount.point.clone(),
        source: mount.source.clone(),
        options: mount.options.clone(),
        size_bytes,
        free_bytes,
        kept_free_bytes: None,
    });
    let stack = layers::layers_below_path(root, mounts, &device, Path::new(&path));
    Ok(TargetIdentity {
        path,
        kind,
        size_bytes: if kind == TargetKind::File {
            stat.st_size.unsigned_abs()
        } else {
            size_bytes
        },
        free_bytes: Some(free_bytes),
        device,
        inode: stat.st_ino,
        filesystem,
        layers: stack.layers,
        unresolved: stack.unresolved,
    })
}

fn describe_kind(kind: FileType) -> &'static str {
    match kind {
        FileType::CharacterDevice => "character device",
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        _ => "file of an unknown kind",
    }
}

/// Mode bits of a directory such as /tmp (inode(7)).
const STICKY_AND_WORLD_WRITABLE: u32 = 0o1002;

/// A link in a directory with the sticky bit that is neither the user's own nor the directory's
/// owner's (may_follow_link in linux/fs/namei.c).
fn is_foreign(link: &Stat, path: &Path) -> bool {
    let Some(parent) = path.parent() else {
        return false;
    };
    let parent_stat = if parent.as_os_str().is_empty() {
        stat(".")
    } else {
        stat(parent)
    };
    let Ok(directory) = parent_stat else {
        return false;
    };
    FileType::from_raw_mode(link.st_mode) == FileType::Symlink
        && directory.st_mode & STICKY_AND_WORLD_WRITABLE == STICKY_AND_WORLD_WRITABLE
        && directory.st_uid != link.st_uid
        && link.st_uid != rustix::process::geteuid().as_raw()
}

/// A path as an error shows it.
fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return "''".to_owned();
    }
    path.display().to_string()
}

fn is_symlink(path: &Path) -> bool {
    match lstat(path) {
        Ok(found) => FileType::from_raw_mode(found.st_mode) == FileType::Symlink,
        Err(_) => false,
    }
}

/// The error for a path that could not be inspected, with the part of it that causes the error.
fn explain(named: &Path, errno: Errno) -> ProbeError {
    let path = shown(named);
    // From the root to the whole, the first part that cannot be followed.
    let failed_part = named
        .ancestors()
        .filter(|part| !part.as_os_str().is_empty() && stat(*part).is_err())
        .last()
        .unwrap_or(named);
    let component = shown(failed_part);
    let parent = match failed_part.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.display().to_string(),
        _ => ".".to_owned(),
    };
    match errno {
        // A directory that was removed while a process works in it is no link.
        Errno::NOENT if is_symlink(failed_part) => {
            let points_to = std::fs::read_link(failed_part).unwrap_or_default();
            ProbeError::Dangling {
                path,
                link: component,
                points_to: points_to.display().to_string(),
            }
        }
        Errno::NOENT => ProbeError::Missing { path, component },
        // Where the right to search is missing, the link itself cannot be seen either.
        Errno::ACCESS if lstat(failed_part).is_ok_and(|link| is_foreign(&link, failed_part)) => {
            let link = component;
            ProbeError::ForeignLink { path, link }
        }
        Errno::ACCESS => {
            let component = parent;
            ProbeError::NotPermitted { path, component }
        }
        Errno::NOTDIR => {
            // A slash at the end asks for a directory, too.
            let file = match component.trim_end_matches('/') {
                named if named.len() < component.len() => named.to_owned(),
                _ => parent,
            };
            ProbeError::NotDirectory {
                path,
                component: file,
            }
        }
        other => {
            let errno = errno_name(other);
            ProbeError::System { path, errno }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};

    /// The rule of fs.protected_symlinks, which is a setting of the whole machine and not a test's
    /// to change.
    #[test]
    fn links_of_others_in_a_shared_directory_are_foreign() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: links_of_others_in_a_shared_directory_are_foreign: root");
            return;
        }
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("data"), "x").unwrap();
        for name in ["shared", "own"] {
            std::fs::create_dir(at(name)).unwrap();
            for (link, owner) in [("mine", 0), ("theirs", 65534)] {
                symlink(at("data"), at(name).join(link)).unwrap();
                lchown(at(name).join(link), Some(owner), None).unwrap();
            }
        }
        std::fs::set_permissions(at("shared"), std::fs::Permissions::from_mode(0o1777)).unwrap();
        let foreign = |path: &str| is_foreign(&lstat(at(path)).unwrap(), &at(path));
        assert!(foreign("shared/theirs"));
        assert!(!foreign("shared/mine") && !foreign("own/theirs") && !foreign("data"));
        std::os::unix::fs::chown(at("shared"), Some(65534), None).unwrap();
        // The owner of the directory decides where it leads.
        assert!(!foreign("shared/theirs"));
        let identity = probe(&at("shared/theirs")).unwrap();
        assert_eq!(Path::new(&identity.path), at("data"));
    }
}
