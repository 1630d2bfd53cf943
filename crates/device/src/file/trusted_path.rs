//! Walks a path without following a symlink that another user may have placed. The kernel applies
//! such a rule in directories like /tmp only, and not on every machine (fs.protected_symlinks of
//! proc_sys_fs(5)); a walk that ends in a file to be written needs it for every component.
//! openat2(2) could refuse all symlinks at once, but not follow some of them, and is missing before
//! Linux 5.6 and under older seccomp filters: this walk serves every kernel.

use crate::kernel::naming::{errno_name, errno_of};
use diskproof_model::errno;
use rustix::fs::{
    AtFlags, Mode, OFlags, PROC_SUPER_MAGIC, Stat, fstat, fstatfs, open, openat, readlinkat, statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

/// As many symlinks as the kernel follows (path_resolution(7)).
const SYMLINKS_MAX: usize = 40;
/// Flags that open a directory as a place to walk from, without permission to read it.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// The permission bit of a directory with which every user may rename every name in it, unless
/// [`STICKY`] is set too.
const WRITABLE_BY_ALL: u32 = 0o002;
/// The permission bit of /tmp: only the owner of a name may rename it (inode(7)).
const STICKY: u32 = 0o1000;

/// The reason why a path was not walked to its end, in words for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A symlink that another user made, or may exchange. Members of a group to which root or this
    /// user opened the directory are trusted: many systems give each user a group, and a umask of
    /// 002.
    #[error(
        "{} is a symlink of another user, or lies in a directory that another user may change{}; \
         name the destination itself",
        .0.display(),
        unseen_owners()
    )]
    ForeignLink(PathBuf),
    /// The kernel's answer at a component.
    #[error(
        "cannot open {}: {} ({name})",
        .path.display(),
        errno::text(&errno_name(*.errno)),
        name = errno_name(*.errno)
    )]
    Kernel {
        /// The path up to that component.
        path: PathBuf,
        /// The error.
        errno: Errno,
    },
}

/// The words about owners whom this user namespace does not show: root of the host is none of its
/// users, and cannot be distinguished from any other (user_namespaces(7)).
fn unseen_owners() -> &'static str {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    if shows_all_owners(&map) {
        ""
    } else {
        " (this user namespace, as of a rootless container, does not show whether it is root's)"
    }
}

/// True if the users of a namespace are those of the machine, as one line of its map says: all
/// numbers, each for itself. True also without a map: the kernel has no user namespaces then.
fn shows_all_owners(uid_map: &str) -> bool {
    let words: Vec<&str> = uid_map.split_whitespace().collect();
    words.is_empty() || words == ["0", "0", "4294967295"]
}

impl PathError {
    /// The kernel's error number; `None` where the rule about symlinks ended the walk.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::ForeignLink(_) => None,
            Self::Kernel { errno, .. } => Some(*errno),
        }
    }
}

/// The end of a walk.
#[derive(Debug)]
pub enum TrustedPath {
    /// At a name in a directory. The name is no symlink, and need not exist.
    Name(TrustedPlace),
    /// At a directory without a name: the root, or a path that ends with `.` or `..`.
    Directory(TrustedDirectory),
    /// At an object that procfs names, such as /dev/fd/1 (a descriptor with O_PATH).
    Object(OwnedFd),
}

/// A directory that is held open (O_PATH).
#[derive(Debug)]
pub struct TrustedDirectory {
    /// Opened for its place only: it cannot be read through this descriptor.
    pub folder: OwnedFd,
    /// The absolute path without symlinks.
    pub path: PathBuf,
}

/// A name in a directory that is held open.
#[derive(Debug)]
pub struct TrustedPlace {
    /// The directory that has the name, or would have it.
    pub directory: TrustedDirectory,
    /// The last component.
    pub name: OsString,
}

impl TrustedPlace {
    /// The absolute path without symlinks.
    pub fn path(&self) -> PathBuf {
        self.directory.path.join(&self.name)
    }
}

impl TrustedDirectory {
    /// Walks to an existing directory.
    pub fn open(path: &Path) -> Result<Self, PathError> {
        match TrustedPath::walk_to(path, LastName::Directory)? {
            TrustedPath::Directory(directory) => Ok(directory),
            TrustedPath::Name(_) | TrustedPath::Object(_) => Err(PathError::Kernel {
                path: path.to_owned(),
                errno: Errno::NOTDIR,
            }),
        }
    }

    fn start(is_absolute: bool) -> Result<Self, PathError> {
        let path = if is_absolute {
            PathBuf::from("/")
        } else {
            std::env::current_dir().map_err(|error| PathError::Kernel {
                path: PathBuf::from("."),
                errno: errno_of(&error),
            })?
        };
        let start = if is_absolute { "/" } else { "." };
        let folder = open(start, FOLDER, Mode::empty()).map_err(|errno| PathError::Kernel {
            path: path.clone(),
            errno,
        })?;
        Ok(Self { folder, path })
    }

    fn failed(&self, name: &OsStr, errno: Errno) -> PathError {
        PathError::Kernel {
            path: self.path.join(name),
            errno,
        }
    }

    /// Steps into a directory that no symlink may stand for.
    fn enter(&mut self, name: &OsStr) -> Result<(), PathError> {
        let flags = FOLDER | OFlags::NOFOLLOW;
        let entered = openat(&self.folder, name, flags, Mode::empty());
        self.folder = entered.map_err(|errno| self.failed(name, errno))?;
        if name == ".." {
            self.path.pop();
        } else {
            self.path.push(name);
        }
        Ok(())
    }

    fn open_behind_link(&self, name: &OsStr) -> Result<OwnedFd, PathError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let opened = openat(&self.folder, name, flags, Mode::empty());
        opened.map_err(|errno| self.failed(name, errno))
    }

    /// The path that the symlink of this name holds; `None` where the name is no symlink. An error
    /// where the symlink may not be followed.
    fn link_target(&self, name: &OsStr) -> Result<Option<PathBuf>, PathError> {
        let Ok(target) = readlinkat(&self.folder, name, Vec::new()) else {
            return Ok(None);
        };
        let link = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| self.failed(name, errno))?;
        let directory = fstat(&self.folder).map_err(|errno| self.failed(name, errno))?;
        if !may_follow(&link, &directory) {
            return Err(PathError::ForeignLink(self.path.join(name)));
        }
        Ok(Some(PathBuf::from(OsString::from_vec(target.into_bytes()))))
    }
}

/// True if nobody but root and this user made the symlink, or may put another one in its place. The
/// group of the directory may: it was chosen by root or this user.
fn may_follow(link: &Stat, directory: &Stat) -> bool {
    let trusted = [0, geteuid().as_raw()];
    let mode = directory.st_mode;
    let is_open_to_all = mode & WRITABLE_BY_ALL != 0 && mode & STICKY == 0;
    trusted.contains(&link.st_uid) && trusted.contains(&directory.st_uid) && !is_open_to_all
}

/// True in procfs, where the kernel alone knows what a link leads to: its text may name nothing.
fn is_procfs(folder: BorrowedFd<'_>) -> bool {
    fstatfs(folder).is_ok_and(|found| found.f_type == PROC_SUPER_MAGIC)
}

/// The caller's use of the last name of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastName {
    /// A name that is looked at.
    Any,
    /// A directory that is entered.
    Directory,
}

impl TrustedPath {
    /// Walks along the path to its last name, which need not exist.
    pub fn walk(path: &Path) -> Result<Self, PathError> {
        Self::walk_to(path, LastName::Any)
    }

    /// Walks along the path. `rest` is the stack of names that are left, and a symlink puts its own
    /// on top.
    fn walk_to(path: &Path, last: LastName) -> Result<Self, PathError> {
        if path.as_os_str().is_empty() {
            return Err(PathError::Kernel {
                path: PathBuf::new(),
                errno: Errno::NOENT,
            });
        }
        let mut directory = TrustedDirectory::start(path.is_absolute())?;
        let mut rest = Vec::new();
        push_components(&mut rest, path);
        let mut links = 0;
        while let Some(name) = rest.pop() {
            let target = match name.as_bytes() {
                b".." => None,
                _ => directory.link_target(&name)?,
            };
            let Some(target) = target else {
                if rest.is_empty() && last == LastName::Any && name != ".." {
                    return Ok(Self::Name(TrustedPlace { directory, name }));
                }
                directory.enter(&name)?;
                continue;
            };
            links += 1;
            if links > SYMLINKS_MAX {
                return Err(directory.failed(&name, Errno::LOOP));
            }
            if is_procfs(directory.folder.as_fd()) {
                let object = directory.open_behind_link(&name)?;
                if rest.is_empty() && last == LastName::Any {
                    return Ok(Self::Object(object));
                }
                directory = TrustedDirectory {
                    folder: object,
                    path: directory.path.join(target),
                };
                continue;
            }
            if target.is_absolute() {
                directory = TrustedDirectory::start(true)?;
            }
            push_components(&mut rest, &target);
        }
        Ok(Self::Directory(directory))
    }
}

/// Puts the components on the stack, the first one on top.
fn push_components(rest: &mut Vec<OsString>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => rest.push(name.to_owned()),
            Component::ParentDir => rest.push(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
}

/// The absolute path without symlinks. What does not exist yet is taken as it is written.
pub fn without_symlinks(path: &Path) -> Result<PathBuf, PathError> {
    match TrustedPath::walk(path) {
        Ok(TrustedPath::Name(place)) => Ok(place.path()),
        Ok(TrustedPath::Directory(directory)) => Ok(directory.path),
        Ok(TrustedPath::Object(_)) => Ok(path.to_owned()),
        Err(error) => match (error.errno(), path.parent(), path.file_name()) {
            (Some(Errno::NOENT), Some(parent), Some(name)) if !parent.as_os_str().is_empty() => {
                Ok(without_symlinks(parent)?.join(name))
            }
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    fn may_reach(path: &Path) -> bool {
        match TrustedPath::walk(path) {
            Ok(_) => true,
            Err(PathError::ForeignLink(_)) => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// `real/` and `data`, and a link to each.
    fn place_with_links() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let directory = |name: &str| place.path().join(name);
        std::fs::create_dir(directory("real")).unwrap();
        std::fs::write(directory("real/data"), "data").unwrap();
        symlink("real", directory("folder")).unwrap();
        symlink(directory("real/data"), directory("file")).unwrap();
        place
    }

    #[test]
    fn walk_follows_own_links_in_every_component() {
        let place = place_with_links();
        let real = place.path().canonicalize().unwrap().join("real");
        for (given, name) in [
            ("folder/data", "data"),
            ("folder/new", "new"),
            ("folder/../file", "data"),
            ("./real/./data", "data"),
        ] {
            let path = place.path().join(given);
            match TrustedPath::walk(&path).unwrap() {
                TrustedPath::Name(place) => assert_eq!(place.path(), real.join(name), "{given}"),
                other => panic!("{given}: {other:?}"),
            }
            assert_eq!(without_symlinks(&path).unwrap(), real.join(name), "{given}");
        }
        let opened = TrustedDirectory::open(&place.path().join("folder")).unwrap();
        assert_eq!(opened.path, real);
        let missing = place.path().join("folder/a/b");
        assert_eq!(without_symlinks(&missing).unwrap(), real.join("a/b"));
        let file = TrustedDirectory::open(&place.path().join("file"));
        assert_eq!(file.unwrap_err().errno(), Some(Errno::NOTDIR));
    }

    #[test]
    fn namespace_of_few_users_hides_owners() {
        assert!(shows_all_owners("         0          0 4294967295\n"));
        assert!(!shows_all_owners("         0          0          1\n"));
        assert!(!shows_all_owners("0 1000 1\n1 100000 65536\n"));
        // Without /proc nothing tells.
        assert!(shows_all_owners(""));
    }

    #[test]
    fn walk_ends_where_a_loop_or_a_missing_name_is() {
        let place = tempfile::tempdir().unwrap();
        symlink("loop", place.path().join("loop")).unwrap();
        let errno = |name: &str| {
            let walked = TrustedPath::walk(&place.path().join(name));
            walked.unwrap_err().errno()
        };
        assert_eq!(errno("loop"), Some(Errno::LOOP));
        assert_eq!(errno("missing/name"), Some(Errno::NOENT));
    }

    #[test]
    fn walk_leaves_the_links_of_procfs_to_the_kernel() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = std::fs::File::open(file.path()).unwrap();
        std::fs::remove_file(file.path()).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        let walked = TrustedPath::walk(Path::new(&format!("/dev/fd/{number}"))).unwrap();
        let TrustedPath::Object(object) = walked else {
            panic!("{walked:?}");
        };
        let (named, held) = (fstat(&object).unwrap(), fstat(&open).unwrap());
        assert_eq!((named.st_dev, named.st_ino), (held.st_dev, held.st_ino));
        assert!(may_reach(Path::new("/proc/self/cwd/anything")));
    }

    #[test]
    fn walk_follows_no_link_that_another_user_made_or_may_exchange() {
        if !geteuid().is_root() {
            eprintln!("SKIPPED: walk_follows_no_link_that_another_user_made_or_may_exchange: root");
            return;
        }
        let place = place_with_links();
        let paths = ["folder/data", "folder/new", "file"];
        let reached = |mode: u32, owner: u32, link_owner: u32| {
            let mode = PermissionsExt::from_mode(mode);
            std::fs::set_permissions(place.path(), mode).unwrap();
            chown(place.path(), Some(owner), None).unwrap();
            for link in ["folder", "file"] {
                lchown(place.path().join(link), Some(link_owner), None).unwrap();
            }
            paths.map(|path| may_reach(&place.path().join(path)))
        };
        assert_eq!(reached(0o755, 0, 0), [true; 3]);
        assert_eq!(reached(0o1777, 0, 0), [true; 3]);
        for (mode, owner, link_owner) in [
            (0o755, 0, 65534),
            (0o1777, 0, 65534),
            (0o777, 0, 0),
            (0o755, 65534, 0),
            (0o1777, 65534, 65534),
        ] {
            let found = reached(mode, owner, link_owner);
            assert_eq!(found, [false; 3], "{mode:o} {owner} {link_owner}");
        }
        // Without a link nobody leads elsewhere.
        assert!(may_reach(&place.path().join("real/data")));
    }
}
