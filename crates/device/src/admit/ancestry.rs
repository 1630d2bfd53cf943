//! The directories above a target, each held by a descriptor. A process that exchanges directories
//! meanwhile changes their names, not what the gate inspects.
//!
//! A bind mount shows a part of a filesystem elsewhere, and the way up from there misses the
//! directory of a server that holds it: the root field of mountinfo names that part. An overlay
//! writes to a directory elsewhere, too. Judges nothing but a mounted file.

use super::refusal::RefusalReasons;
use crate::failure::{OpenError, open_failed};
use crate::held::{Held, changed, proc_path};
use crate::mounts::{self, MountEntry, holding};
use crate::steps::{self, GateStep};
use crate::sysroot::SysRoot;
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::fs::{AtFlags, Mode, OFlags, accessat, fstat, lstat, openat, statat};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// More directories than any path has (PATH_MAX of Linux has room for 2,048).
const DEPTH_MAX: usize = 4096;

/// One directory.
#[derive(Debug)]
pub(crate) struct Ancestor {
    fd: OwnedFd,
    /// Device and inode.
    id: (u64, u64),
    /// The name that it had when it was held.
    pub(crate) path: PathBuf,
}

impl Ancestor {
    fn new(fd: OwnedFd) -> Result<Self, Errno> {
        let stat = fstat(&fd)?;
        let path = std::fs::read_link(proc_path(fd.as_fd()))
            .map_err(|error| crate::naming::errno_of(&error))?;
        Ok(Self {
            fd,
            id: (stat.st_dev, stat.st_ino),
            path,
        })
    }

    /// Whether it holds something of this name, which may be a path with directories.
    pub(crate) fn holds(&self, name: &str) -> bool {
        accessat(&self.fd, name, rustix::fs::Access::EXISTS, AtFlags::empty()).is_ok()
    }

    /// Up to so many names in it; none where they may not be read.
    pub(crate) fn names(&self, at_most: usize) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(proc_path(self.fd.as_fd())) else {
            return Vec::new();
        };
        let names = entries.flatten().take(at_most);
        names
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }

    /// Its own name, without the directories above.
    pub(crate) fn name(&self) -> Option<&str> {
        self.path.file_name()?.to_str()
    }
}

/// All directories from the one that holds the target up to the root.
#[derive(Debug)]
pub(crate) struct Ancestry {
    pub(crate) nearest_first: Vec<Ancestor>,
}

impl Ancestry {
    /// A directory and those above it, each with the name that `path` gives it: ESTALE where a
    /// directory was moved since, even if it came back. Else the way up could lead through
    /// directories that only lent themselves to it.
    pub(crate) fn of_directory(directory: BorrowedFd<'_>, path: &Path) -> Result<Self, Errno> {
        let ancestry = Self::climb(directory)?;
        let found = ancestry.nearest_first.iter();
        if found.map(|at| at.path.as_path()).eq(path.ancestors()) {
            return Ok(ancestry);
        }
        Err(Errno::STALE)
    }

    fn climb(directory: BorrowedFd<'_>) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let up = |from: BorrowedFd<'_>, name: &str| {
            steps::before(GateStep::Climb);
            openat(from, name, flags, Mode::empty()).and_then(Ancestor::new)
        };
        let mut nearest_first = vec![up(directory, ".")?];
        for _ in 0..DEPTH_MAX {
            let Some(last) = nearest_first.last() else {
                break;
            };
            let above = up(last.fd.as_fd(), "..")?;
            if above.id == last.id {
                return Ok(Self { nearest_first });
            }
            nearest_first.push(above);
        }
        Err(Errno::LOOP)
    }

    /// The directories above a file, in the nearest of which it has its name.
    pub(crate) fn of_file(path: &str, id: (u64, u64)) -> Result<Self, OpenError> {
        let failed = |errno| open_failed(path, errno);
        let (Some(parent), Some(name)) = (Path::new(path).parent(), Path::new(path).file_name())
        else {
            return Err(failed(Errno::NOENT));
        };
        let directory = Held::at(parent).map_err(failed)?;
        steps::before(GateStep::FindName);
        let entry = statat(directory.fd(), name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        if (entry.st_dev, entry.st_ino) != id {
            return Err(changed(path, "something else replaced it"));
        }
        Self::of_directory(directory.fd(), parent).map_err(|errno| match errno {
            Errno::STALE => changed(path, "another process renamed a directory above it"),
            errno => failed(errno),
        })
    }

    /// Whether both are the same directories with the same names.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let (one, two) = (&self.nearest_first, &other.nearest_first);
        let is_same = |(a, b): (&Ancestor, &Ancestor)| (a.id, &a.path) == (b.id, &b.path);
        one.len() == two.len() && one.iter().zip(two).all(is_same)
    }
}

/// For tests: of a path in their own directory.
#[cfg(test)]
pub(super) fn above(path: &Path) -> Ancestry {
    Ancestry::of_directory(Held::at(path).expect("it exists").fd(), path).expect("it has ancestors")
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestry_reaches_the_root_and_stays_with_renamed_directories() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let inner = place.path().join("outer/inner");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(inner.join("mark"), "").unwrap();
        let before = above(&inner);
        assert_eq!(before.nearest_first[0].path, inner);
        assert_eq!(before.nearest_first.last().unwrap().path, Path::new("/"));
        assert!(
            before.nearest_first[0].holds("mark") && before.nearest_first[1].holds("inner/mark")
        );
        assert_eq!(before.nearest_first[0].names(9), ["mark"]);
        assert!(before.is_same(&above(&inner)));
        std::fs::rename(place.path().join("outer"), place.path().join("moved")).unwrap();
        assert!(before.nearest_first[0].holds("mark"));
        assert!(!before.is_same(&above(&place.path().join("moved/inner"))));
    }

    #[test]
    fn ancestry_of_a_file_needs_its_name_to_lead_to_it() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, "").unwrap();
        let path = file.to_str().unwrap();
        // Held, so that the directory cannot get its inode number.
        let held = Held::at(&file).unwrap();
        let id = held.id();
        assert!(Ancestry::of_file(path, id).is_ok());
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(Ancestry::of_file(path, id).is_err());
    }
}
