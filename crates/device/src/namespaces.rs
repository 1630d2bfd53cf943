//! The mounts of every mount namespace that can be reached: our own, those in which a process or a
//! thread lives, those that a descriptor of a process or a mount of the namespace itself keeps
//! (`unshare --mount=FILE`, snapd).

use crate::mounts::{self, MountEntry};
use crate::naming::errno_of;
use crate::syscalls::enter_mounts;
use crate::sysroot::{SysRoot, list, read_text};
use rustix::fs::{Mode, OFlags, fstatfs, open, openat};
use rustix::io::Errno;
use std::collections::HashSet;
use std::io::Read as _;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// The filesystem of namespaces (linux/magic.h).
const NSFS_MAGIC: rustix::fs::FsWord = 0x6e73_6673;

/// A mount namespace, by what keeps it in existence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Namespace {
    /// We live in it.
    Own,
    /// A process lives in it.
    Process {
        pid: u32,
        /// The name of the process, such as `postgres`.
        name: String,
    },
    /// A mount or a descriptor keeps it, and no process lives in it.
    Kept {
        /// The path of the mount or descriptor.
        path: PathBuf,
    },
}

/// The mounts of one namespace, oldest first.
#[derive(Debug)]
pub(crate) struct MountTable {
    pub(crate) namespace: Namespace,
    pub(crate) mounts: Vec<MountEntry>,
}

/// A namespace that exists, and whose mounts cannot be read.
#[derive(Debug)]
pub(crate) struct UnreadableNamespace {
    /// The path that leads to it.
    pub(crate) path: PathBuf,
    pub(crate) errno: Errno,
}

/// Every mount namespace that can be reached.
#[derive(Debug)]
pub(crate) struct MountTables {
    /// Our own first; its mounts are empty where /proc does not show them.
    pub(crate) tables: Vec<MountTable>,
    pub(crate) unreadable: Vec<UnreadableNamespace>,
}

/// The namespaces that were read, by the text of their links in /proc, such as `mnt:[4026531841]`.
type Seen = HashSet<PathBuf>;

/// A mount or a descriptor that keeps a namespace.
struct Keeper {
    /// The text of the namespace's link in /proc.
    link: PathBuf,
    /// A path that leads there from here.
    path: PathBuf,
    /// The path that the user sees.
    shown: PathBuf,
}

impl MountTables {
    pub(crate) fn read(root: &SysRoot) -> Self {
        let mut seen = Seen::new();
        seen.extend(std::fs::read_link(root.proc.join("self/ns/mnt")));
        let own = MountTable {
            namespace: Namespace::Own,
            mounts: mounts::read(root, "self"),
        };
        let mut namespaces = Self {
            tables: vec![own],
            unreadable: Vec::new(),
        };
        for name in list(&root.proc) {
            if let Ok(pid) = name.parse::<u32>() {
                namespaces.add_process(root, pid, &mut seen);
            }
        }
        namespaces.add_kept(root, &mut seen);
        namespaces
    }

    /// The namespaces of a process and of its threads: a thread may have left that of the process.
    fn add_process(&mut self, root: &SysRoot, pid: u32, seen: &mut Seen) {
        let process = root.proc.join(pid.to_string());
        let tasks = process.join("task");
        let mut directories = vec![process.clone()];
        for task in list(&tasks) {
            directories.push(tasks.join(task));
        }
        for directory in directories {
            let path = directory.join("ns/mnt");
            let Ok(link) = std::fs::read_link(&path) else {
                continue;
            };
            if seen.contains(&link) {
                continue;
            }
            match read_mounts(&directory) {
                Ok(Some(mounts)) => {
                    seen.insert(link);
                    self.tables.push(MountTable {
                        namespace: Namespace::Process {
                            pid,
                            name: read_text(&process.join("comm")).unwrap_or_default(),
                        },
                        mounts,
                    });
                }
                // Another process of the namespace may show its mounts.
                Ok(None) => {}
                Err(errno) => self.unreadable.push(UnreadableNamespace { path, errno }),
            }
        }
    }

    /// Namespaces without a process that descriptors and the mounts of the others lead to.
    fn add_kept(&mut self, root: &SysRoot, seen: &mut Seen) {
        let mut keepers = keepers_in_descriptors(root);
        for table in &self.tables {
            let inside = match &table.namespace {
                Namespace::Own => PathBuf::from("/"),
                Namespace::Process { pid, .. } => root.proc.join(pid.to_string()).join("root"),
                Namespace::Kept { .. } => continue,
            };
            keepers.extend(keepers_in_mounts(&table.mounts, &inside));
        }
        for keeper in keepers {
            if !seen.insert(keeper.link) {
                continue;
            }
            let opened = open_namespace(&keeper.path);
            match opened.and_then(|namespace| read_inside(root, namespace)) {
                Ok(mounts) => self.tables.push(MountTable {
                    namespace: Namespace::Kept { path: keeper.shown },
                    mounts,
                }),
                Err(errno) => self.unreadable.push(UnreadableNamespace {
                    path: keeper.shown,
                    errno,
                }),
            }
        }
    }
}

/// The mounts that a process or thread sees; `None` where it has ended, or sees none.
fn read_mounts(directory: &Path) -> Result<Option<Vec<MountEntry>>, Errno> {
    match std::fs::read(directory.join("mountinfo")) {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => Ok(Some(mounts::parse(&String::from_utf8_lossy(&text)))),
        Err(error) => match errno_of(&error) {
            // The kernel answers EINVAL for a process that is just ending (mounts_open_common in
            // Linux's fs/proc_namespace.c).
            Errno::NOENT | Errno::SRCH | Errno::INVAL => Ok(None),
            errno => Err(errno),
        },
    }
}

/// True for the link of a mount namespace, and not of one of another kind.
fn is_mount_namespace(name: &str) -> bool {
    name.starts_with("mnt:[")
}

/// Mounts of namespaces; `inside` is the root of the namespace that shows them.
fn keepers_in_mounts(mounts: &[MountEntry], inside: &Path) -> Vec<Keeper> {
    let mut keepers = Vec::new();
    for mount in mounts {
        if mount.kind == "nsfs" && is_mount_namespace(&mount.root) {
            let point = Path::new(&mount.point);
            keepers.push(Keeper {
                link: PathBuf::from(&mount.root),
                path: inside.join(point.strip_prefix("/").unwrap_or(point)),
                shown: point.to_owned(),
            });
        }
    }
    keepers
}

/// Descriptors of namespaces that processes hold.
fn keepers_in_descriptors(root: &SysRoot) -> Vec<Keeper> {
    let mut keepers = Vec::new();
    for pid in root.other_processes() {
        let table = root.proc.join(pid.to_string()).join("fd");
        for descriptor in list(&table) {
            let path = table.join(descriptor);
            let Ok(link) = std::fs::read_link(&path) else {
                continue;
            };
            if link.to_str().is_some_and(is_mount_namespace) {
                keepers.push(Keeper {
                    link,
                    shown: path.clone(),
                    path,
                });
            }
        }
    }
    keepers
}

/// Opens a namespace. Another user may have mounted something else over it, such as a FIFO, whose
/// opening waits for ever, or a device, whose opening does something.
fn open_namespace(path: &Path) -> Result<OwnedFd, Errno> {
    let held = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if fstatfs(&held)?.f_type != NSFS_MAGIC {
        return Err(Errno::INVAL);
    }
    let held = format!("/proc/self/fd/{}", held.as_raw_fd());
    open(held, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// The mounts of a namespace, as a thread of ours sees them from inside. /proc is opened before,
/// because none may be mounted there.
fn read_inside(root: &SysRoot, namespace: OwnedFd) -> Result<Vec<MountEntry>, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = open(&root.proc, flags, Mode::empty())?;
    let reader = std::thread::Builder::new()
        .spawn(move || {
            enter_mounts(namespace.as_fd())?;
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let file = openat(&proc, "thread-self/mountinfo", flags, Mode::empty())?;
            let mut text = Vec::new();
            std::fs::File::from(file)
                .read_to_end(&mut text)
                .map_err(|error| errno_of(&error))?;
            Ok(mounts::parse(&String::from_utf8_lossy(&text)))
        })
        .map_err(|error| errno_of(&error))?;
    reader.join().unwrap_or(Err(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, mknodat};

    /// A process that ends while it is looked at must not hide the mounts of its namespace.
    #[test]
    fn ended_process_leaves_its_namespace_to_the_next_one() {
        let proc = tempfile::tempdir().unwrap();
        let mounts = "21 1 8:1 / /srv rw - ext4 /dev/sda1 rw\n";
        for (pid, mountinfo) in [("self", None), ("101", None), ("77", Some(mounts))] {
            let directory = proc.path().join(pid);
            std::fs::create_dir_all(directory.join("ns")).unwrap();
            let link = if pid == "self" { "mnt:[1]" } else { "mnt:[2]" };
            std::os::unix::fs::symlink(link, directory.join("ns/mnt")).unwrap();
            if let Some(text) = mountinfo {
                std::fs::write(directory.join("mountinfo"), text).unwrap();
            }
        }
        let root = SysRoot {
            proc: proc.path().to_owned(),
            ..SysRoot::default()
        };
        let found = MountTables::read(&root);
        let points: Vec<&str> = found
            .tables
            .iter()
            .flat_map(|table| &table.mounts)
            .map(|mount| mount.point.as_str())
            .collect();
        assert_eq!(points, ["/srv"]);
        assert!(found.unreadable.is_empty());
    }

    #[test]
    fn opening_of_a_namespace_never_waits_for_a_fifo_in_its_place() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("namespace");
        let mode = Mode::from_raw_mode(0o600);
        mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap();
        assert_eq!(open_namespace(&path).unwrap_err(), Errno::INVAL);
        assert_eq!(open_namespace(place.path()).unwrap_err(), Errno::INVAL);
        assert!(open_namespace(Path::new("/proc/self/ns/mnt")).is_ok());
    }
}
