//! Directories above a target that its path does not show: a bind mount shows a part of a
//! filesystem elsewhere, and the way up from there misses the directory of a server that holds it.
//! The root field of mountinfo names that part. An overlay writes to a directory elsewhere, too.
//! Judges nothing but a mounted file.

use super::ancestry::Ancestry;
use super::refusal::RefusalReasons;
use crate::held::Held;
use crate::mounts::{self, MountEntry, holding};
use crate::sysroot::SysRoot;
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::fs::{fstat, lstat};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// The directories above a target within its filesystem.
pub(super) enum Outside {
    /// Its path shows them all.
    None,
    /// Another mount shows them.
    Seen(Ancestry),
    /// No mount shows all of them; the part of the filesystem that is mounted.
    Hidden(PathBuf),
}

impl Outside {
    /// Of the target, whose inode is `id`.
    pub(super) fn of(root: &SysRoot, identity: &TargetIdentity, id: (u64, u64)) -> Self {
        let (mounts, path) = (mounts::read(root, "self"), Path::new(&identity.path));
        let Some(mount) = holding(&mounts, &identity.device, path) else {
            return Self::None;
        };
        if let Some(above) = above_overlay(mount, path, identity.kind) {
            return Self::Seen(above);
        }
        if is_whole(mount) {
            return Self::None;
        }
        let Some(inside) = mount.inside(path) else {
            return Self::None;
        };
        let inside = Path::new("/").join(inside);
        let wholes = mounts.iter().filter(|other| {
            other.device == mount.device && is_whole(other) && inside.starts_with(&other.root)
        });
        for other in wholes {
            let below = inside.strip_prefix(&other.root).unwrap_or(&inside);
            // Another mount may cover the place, so the inode decides.
            if let Ok(above) = ancestry(&Path::new(&other.point).join(below), identity.kind, id) {
                return Self::Seen(above);
            }
        }
        Self::Hidden(PathBuf::from(&mount.root))
    }
}

/// Refuses a file that is itself mounted somewhere: it has that name, too, and a container or a
/// server uses it there.
pub(super) fn judge_mounted_file(
    root: &SysRoot,
    identity: &TargetIdentity,
    reasons: &mut RefusalReasons,
) {
    let (mounts, path) = (mounts::read(root, "self"), Path::new(&identity.path));
    let Some(mount) = holding(&mounts, &identity.device, path) else {
        return;
    };
    let inside = mount.inside(path).map(|inside| Path::new("/").join(inside));
    let mounted = mounts.iter().find(|other| {
        other.device == mount.device
            && other.root != "/"
            && inside.as_deref() == Some(Path::new(&other.root))
    });
    if let Some(mounted) = mounted {
        reasons.add(
            format!("it is mounted at {} (bind mount of a file)", mounted.point),
            format!(
                "umount {}, or copy the file and name the copy",
                diskproof_model::shell::quoted(&mounted.point)
            ),
        );
    }
}

/// The directories above the upper directory of an overlay, which takes all writes; none where a
/// container does not show it.
fn above_overlay(mount: &MountEntry, path: &Path, kind: TargetKind) -> Option<Ancestry> {
    let upper = Path::new(mount.option("upperdir")?).join(mount.inside(path)?);
    let stat = lstat(&upper).ok()?;
    ancestry(&upper, kind, (stat.st_dev, stat.st_ino)).ok()
}

/// Whether a mount shows its filesystem from the top. A btrfs subvolume has its own top.
fn is_whole(mount: &MountEntry) -> bool {
    mount.root == "/" || mount.option("subvol") == Some(mount.root.as_str())
}

fn ancestry(path: &Path, kind: TargetKind, id: (u64, u64)) -> Result<Ancestry, Errno> {
    if kind == TargetKind::File {
        let path = path.to_str().ok_or(Errno::NOENT)?;
        return Ancestry::of_file(path, id).map_err(|_| Errno::STALE);
    }
    let held = Held::at(path)?;
    let stat = fstat(held.fd())?;
    if (stat.st_dev, stat.st_ino) != id {
        return Err(Errno::STALE);
    }
    Ancestry::of_directory(held.fd(), path)
}
