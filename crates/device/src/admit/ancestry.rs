//! Finds the directories above a target, in which the gate looks for database servers. Each is held
//! by a descriptor, so that a process that exchanges directories meanwhile changes their names, not
//! what the gate inspects.
//!
//! A target can have other directories above it than its path shows. A bind mount shows a part of a
//! filesystem elsewhere, and the way up from there misses the directory of a server that holds that
//! part; the root field of mountinfo names it. An overlay writes to a directory elsewhere, too.

use crate::failure::{OpenError, changed, open_failed};
use crate::file::held::{Held, proc_path};
use crate::kernel::file_id::FileId;
use crate::kernel::mounts::{self, MountEntry, find_mount};
use crate::kernel::naming::device_number;
use crate::kernel::steps::{self, GateStep};
use crate::kernel::sysroot::SysRoot;
use diskproof_model::target::TargetKind;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, accessat, fstat, lstat, openat, statat};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The longest way up that is climbed. No path has more directories: PATH_MAX of Linux has room for
/// 2,048.
const DEPTH_MAX: usize = 4096;

/// One directory.
#[derive(Debug)]
pub(crate) struct Ancestor {
    fd: OwnedFd,
    id: FileId,
    /// The name that it had when it was held.
    pub(crate) path: PathBuf,
}

impl Ancestor {
    /// Holds the directory to which `name` leads from another one.
    fn open(from: BorrowedFd<'_>, name: &str) -> Result<Self, Errno> {
        steps::before(GateStep::Climb);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(from, name, flags, Mode::empty())?;
        let stat = fstat(&fd)?;
        let path = std::fs::read_link(proc_path(fd.as_fd()))
            .map_err(|error| crate::kernel::naming::errno_of(&error))?;
        Ok(Self {
            fd,
            id: FileId::from(&stat),
            path,
        })
    }

    /// True if it holds something of this name, which may be a path with directories, or may hold
    /// it behind a directory that this user may not search.
    pub(crate) fn holds(&self, name: &str) -> bool {
        let exists = rustix::fs::Access::EXISTS;
        match accessat(&self.fd, name, exists, AtFlags::empty()) {
            Ok(()) => true,
            Err(errno) => errno == Errno::ACCESS,
        }
    }

    /// True if it surely holds something of this name.
    pub(crate) fn shows(&self, name: &str) -> bool {
        accessat(&self.fd, name, rustix::fs::Access::EXISTS, AtFlags::empty()).is_ok()
    }

    /// Up to so many names in it. Fails where they may not be read. Needs no /proc.
    pub(crate) fn names(&self, at_most: usize) -> std::io::Result<Vec<String>> {
        // Its own descriptor may stand for the path alone, by which nothing is read.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = openat(&self.fd, ".", flags, Mode::empty())?;
        let mut names = Vec::new();
        let mut count = 0;
        for entry in Dir::new(readable)? {
            let entry = entry?;
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            if count == at_most {
                break;
            }
            count += 1;
            if let Ok(name) = name.to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// The last component of its path.
    pub(crate) fn name(&self) -> Option<&str> {
        self.path.file_name()?.to_str()
    }
}

/// The directories from the one that holds the target up to the root.
#[derive(Debug)]
pub(crate) struct Ancestry {
    pub(crate) nearest_first: Vec<Ancestor>,
}

impl Ancestry {
    /// Returns a directory and those above it, each with the name that `path` gives it. Fails with
    /// ESTALE where a directory was moved since, even if it came back: otherwise the way up could
    /// lead through directories that were put there for the moment of the check.
    pub(crate) fn above_directory(directory: BorrowedFd<'_>, path: &Path) -> Result<Self, Errno> {
        let ancestry = Self::climb(directory)?;
        let present_paths = ancestry
            .nearest_first
            .iter()
            .map(|ancestor| ancestor.path.as_path());
        if present_paths.eq(path.ancestors()) {
            return Ok(ancestry);
        }
        Err(Errno::STALE)
    }

    /// The directories above one that is held, with the names that they have now.
    pub(crate) fn climb(directory: BorrowedFd<'_>) -> Result<Self, Errno> {
        let mut nearest_first = vec![Ancestor::open(directory, ".")?];
        for _ in 0..DEPTH_MAX {
            let Some(last) = nearest_first.last() else {
                break;
            };
            let above = Ancestor::open(last.fd.as_fd(), "..")?;
            if above.id == last.id {
                return Ok(Self { nearest_first });
            }
            nearest_first.push(above);
        }
        Err(Errno::LOOP)
    }

    /// The directories above a file, in the nearest of which it has its name.
    pub(crate) fn above_file(path: &str, id: FileId) -> Result<Self, OpenError> {
        let (Some(parent), Some(name)) = (Path::new(path).parent(), Path::new(path).file_name())
        else {
            return Err(open_failed(path, Errno::NOENT));
        };
        let directory = Held::open(parent).map_err(|errno| open_failed(path, errno))?;
        steps::before(GateStep::FindName);
        let entry = statat(directory.fd(), name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| open_failed(path, errno))?;
        if FileId::from(&entry) != id {
            return Err(changed(path, "something else replaced it"));
        }
        Self::above_directory(directory.fd(), parent).map_err(|errno| match errno {
            Errno::STALE => changed(path, "another process renamed a directory above it"),
            errno => open_failed(path, errno),
        })
    }

    /// True if both are the same directories with the same names.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        if self.nearest_first.len() != other.nearest_first.len() {
            return false;
        }
        for (ours, theirs) in self.nearest_first.iter().zip(&other.nearest_first) {
            if ours.id != theirs.id || ours.path != theirs.path {
                return false;
            }
        }
        true
    }
}

/// For tests: of a path in their own directory.
#[cfg(test)]
pub(super) fn above(path: &Path) -> Ancestry {
    Ancestry::above_directory(Held::open(path).expect("it exists").fd(), path)
        .expect("it has ancestors")
}

/// One way to a target: its own path, or where a mount shows the same thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    path: PathBuf,
    kind: TargetKind,
    id: FileId,
    /// `major:minor` of the filesystem in mountinfo; empty where no mount shows it.
    device: String,
    /// The path within the filesystem.
    inside: PathBuf,
    /// True where the mount shows the filesystem from its top.
    is_whole: bool,
}

/// The search for places ends after so many, because a circle of mounts would not end. Chosen, not
/// measured: more than a few mounts of one file are rare. The gate refuses a target with more.
const PLACES_MAX: usize = 64;

impl Place {
    fn new(mounts: &[MountEntry], path: &Path, kind: TargetKind, id: FileId) -> Self {
        let mount = find_mount(mounts, &device_number(id.device), path);
        let inside = mount.and_then(|mount| mount.inside(path));
        Self {
            path: path.to_owned(),
            kind,
            id,
            device: mount.map(|mount| mount.device.clone()).unwrap_or_default(),
            inside: Path::new("/").join(inside.unwrap_or_default()),
            is_whole: mount.is_none_or(is_whole),
        }
    }

    /// True if a mount shows this file alone.
    pub(super) fn is_mounted_by(&self, mount: &MountEntry) -> bool {
        self.kind == TargetKind::File
            && mount.device == self.device
            && mount.root != "/"
            && Path::new(&mount.root) == self.inside
    }

    /// The places to which one mount translates this one.
    fn translated(&self, mounts: &[MountEntry]) -> Vec<Self> {
        let Some(mount) = find_mount(mounts, &device_number(self.id.device), &self.path) else {
            return Vec::new();
        };
        let mut places: Vec<Self> = self.in_upper_directory(mounts, mount).into_iter().collect();
        for other in mounts {
            let root = Path::new(&other.root);
            if other.device != mount.device || !self.inside.starts_with(root) {
                continue;
            }
            let is_wider = root.components().count() < Path::new(&mount.root).components().count();
            let below = self.inside.strip_prefix(root).unwrap_or(&self.inside);
            let path = Path::new(&other.point).join(below);
            // Another mount may cover the place, so the inode decides.
            if is_wider && lstat(&path).is_ok_and(|stat| FileId::from(&stat) == self.id) {
                places.push(Self::new(mounts, &path, self.kind, self.id));
            }
        }
        places
    }

    /// The upper directory of an overlay takes all writes: the file there, or the directory in
    /// which a write makes it. None where a container does not show it.
    fn in_upper_directory(&self, mounts: &[MountEntry], mount: &MountEntry) -> Option<Self> {
        let upper = Path::new(mount.option("upperdir")?);
        let path = upper.join(mount.inside(&self.path)?);
        for path in path.ancestors().take_while(|path| path.starts_with(upper)) {
            // The option may name it by a symlink.
            let Ok(path) = path.canonicalize() else {
                continue;
            };
            let stat = lstat(&path).ok()?;
            let kind = match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => TargetKind::Directory,
                _ => TargetKind::File,
            };
            return Some(Self::new(mounts, &path, kind, FileId::from(&stat)));
        }
        None
    }
}

/// The places of one target.
pub(super) struct Places {
    /// Its own path first.
    pub(super) list: Vec<Place>,
    /// False if there are more than the list has.
    pub(super) are_all: bool,
}

/// A target by its own path and by everything that the mounts translate it to, until nothing new
/// appears: a bind mount below an overlay, a part of a btrfs subvolume.
pub(super) fn find_places(
    mounts: &[MountEntry],
    path: &Path,
    kind: TargetKind,
    id: FileId,
) -> Places {
    let mut places = Places {
        list: vec![Place::new(mounts, path, kind, id)],
        are_all: true,
    };
    let mut next = 0;
    while let Some(place) = places.list.get(next).cloned() {
        for other in place.translated(mounts) {
            if places.list.contains(&other) {
                continue;
            }
            if places.list.len() == PLACES_MAX {
                places.are_all = false;
                return places;
            }
            places.list.push(other);
        }
        next += 1;
    }
    places
}

/// The directories above a target that its own path does not show.
pub(super) struct OtherAncestries {
    /// The ways up from other mounts of the target.
    pub(super) shown: Vec<Ancestry>,
    /// The part of a filesystem that is mounted, where no mount shows what is above it.
    pub(super) part_without_top: Option<PathBuf>,
    /// False if the target is mounted in more places than were looked at.
    pub(super) are_all: bool,
}

impl OtherAncestries {
    /// Looks for the directories above the target, whose inode is `id`.
    pub(super) fn find(root: &SysRoot, path: &Path, kind: TargetKind, id: FileId) -> Self {
        let mounts = mounts::read_mounts(root, "self");
        let places = find_places(&mounts, path, kind, id);
        let mut others = Self {
            shown: Vec::new(),
            part_without_top: None,
            are_all: places.are_all,
        };
        for place in &places.list {
            let is_shown = places
                .list
                .iter()
                .any(|other| other.device == place.device && other.is_whole);
            if !is_shown {
                others.part_without_top = Some(mounted_part(&mounts, place));
            }
            // The way up from its own path is judged already.
            if place.path != path {
                match find_ancestry(&place.path, place.kind, place.id) {
                    Ok(above) => others.shown.push(above),
                    Err(_) => others.part_without_top = Some(mounted_part(&mounts, place)),
                }
            }
        }
        others
    }
}

/// The part of its filesystem that the mount at a place shows.
fn mounted_part(mounts: &[MountEntry], place: &Place) -> PathBuf {
    match find_mount(mounts, &device_number(place.id.device), &place.path) {
        Some(mount) => PathBuf::from(&mount.root),
        None => place.path.clone(),
    }
}

/// True if a mount shows its filesystem from the top. A btrfs subvolume has its own top.
fn is_whole(mount: &MountEntry) -> bool {
    mount.root == "/" || mount.option("subvol") == Some(mount.root.as_str())
}

/// The directories above a file or directory, if `path` still leads to the inode `id`; ESTALE
/// otherwise.
fn find_ancestry(path: &Path, kind: TargetKind, id: FileId) -> Result<Ancestry, Errno> {
    if kind == TargetKind::File {
        let text = path.to_str().ok_or(Errno::NOENT)?;
        return Ancestry::above_file(text, id).map_err(|_| Errno::STALE);
    }
    let held = Held::open(path)?;
    let stat = fstat(held.fd())?;
    if FileId::from(&stat) != id {
        return Err(Errno::STALE);
    }
    Ancestry::above_directory(held.fd(), path)
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
        assert_eq!(before.nearest_first[0].names(9).unwrap(), ["mark"]);
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
        let held = Held::open(&file).unwrap();
        let id = held.id();
        assert!(Ancestry::above_file(path, id).is_ok());
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(Ancestry::above_file(path, id).is_err());
    }
    /// A file that a bind mount of `/a` shows, and so many mounts of the whole filesystem. Each has
    /// its own path to the same inode.
    fn are_all_places_of_mounts(wider_mounts: usize) -> bool {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let top = place.path();
        std::fs::create_dir(top.join("a")).unwrap();
        let file = top.join("a/file");
        std::fs::write(&file, "").unwrap();
        let id = Held::open(&file).unwrap().id();
        let (device, shown) = (device_number(id.device), top.display());
        let mut text = format!("1 0 {device} /a {shown}/a rw - ext4 /dev/vda rw\n");
        for number in 0..wider_mounts {
            std::os::unix::fs::symlink(".", top.join(format!("mount{number}"))).unwrap();
            text += &format!("2 0 {device} / {shown}/mount{number} rw - ext4 /dev/vda rw\n");
        }
        let mounts = mounts::parse_mountinfo(&text);
        let places = find_places(&mounts, &file, TargetKind::File, id);
        assert_eq!(places.list.len(), PLACES_MAX.min(1 + wider_mounts));
        places.are_all
    }

    #[test]
    fn places_beyond_the_limit_are_not_taken_for_none() {
        assert!(are_all_places_of_mounts(PLACES_MAX - 1));
        assert!(!are_all_places_of_mounts(PLACES_MAX));
    }
}
