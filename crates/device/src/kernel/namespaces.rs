//! Reads the mounts of every mount namespace that can be reached: our own, those in which a process
//! or a thread lives, and those that only a descriptor of a process or a mount of the namespace
//! itself keeps (`unshare --mount=FILE`, snapd). A disk that is mounted in any of them is in use.

use crate::kernel::mounts::{self, MountEntry};
use crate::kernel::naming::errno_of;
use crate::kernel::syscalls::enter_mounts;
use crate::kernel::sysroot::{SysRoot, list, read_text, try_list};
use rustix::fs::{Mode, OFlags, fstatfs, open, openat};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
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
    name: PathBuf,
    /// A path that leads there from here.
    path: PathBuf,
    /// The path that the user sees.
    shown: PathBuf,
}

impl MountTables {
    /// Reads the mounts of all namespaces. Needs root to see those of other users.
    pub(crate) fn read(root: &SysRoot) -> Self {
        let mut seen = Seen::new();
        seen.extend(std::fs::read_link(root.proc.join("self/ns/mnt")));
        let own = MountTable {
            namespace: Namespace::Own,
            mounts: mounts::read_mounts(root, "self"),
        };
        let mut namespaces = Self {
            tables: vec![own],
            unreadable: Vec::new(),
        };
        let mut unread = HashMap::new();
        let names = try_list(&root.proc).unwrap_or_else(|error| {
            namespaces.unreadable.push(UnreadableNamespace {
                path: root.proc.clone(),
                errno: errno_of(&error),
            });
            Vec::new()
        });
        for name in names {
            if let Ok(pid) = name.parse::<u32>() {
                namespaces.add_process(root, pid, &mut seen, &mut unread);
            }
        }
        for (name, namespace) in unread {
            if !seen.contains(&name) {
                namespaces.unreadable.push(namespace);
            }
        }
        namespaces.add_kept(root, &mut seen);
        namespaces
    }

    /// The namespaces of a process and of its threads: a thread may have left that of the process.
    /// A namespace whose mounts this process cannot show goes to `unread`: another process may
    /// live in it, and show them.
    fn add_process(
        &mut self,
        root: &SysRoot,
        pid: u32,
        seen: &mut Seen,
        unread: &mut HashMap<PathBuf, UnreadableNamespace>,
    ) {
        let process = root.proc.join(pid.to_string());
        let tasks = process.join("task");
        let mut directories = vec![process.clone()];
        for task in list(&tasks) {
            directories.push(tasks.join(task));
        }
        for directory in directories {
            let Ok(name) = std::fs::read_link(directory.join("ns/mnt")) else {
                continue;
            };
            if seen.contains(&name) {
                continue;
            }
            let text = match std::fs::read(directory.join("mountinfo")) {
                Ok(text) => text,
                Err(error) => {
                    let errno = errno_of(&error);
                    // It has just ended. EINVAL is the kernel's answer for a process that has left
                    // its namespaces already (mounts_open_common in linux/fs/proc_namespace.c).
                    if !matches!(errno, Errno::NOENT | Errno::SRCH | Errno::INVAL) {
                        let path = directory.join("ns/mnt");
                        unread.insert(name, UnreadableNamespace { path, errno });
                    }
                    continue;
                }
            };
            // The root of this process may be a directory without mounts.
            if text.is_empty() {
                continue;
            }
            seen.insert(name);
            self.tables.push(MountTable {
                namespace: Namespace::Process {
                    pid,
                    name: read_text(&process.join("comm")).unwrap_or_default(),
                },
                mounts: mounts::parse_mountinfo(&String::from_utf8_lossy(&text)),
            });
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
            if !seen.insert(keeper.name) {
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
                name: PathBuf::from(&mount.root),
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
            let Ok(name) = std::fs::read_link(&path) else {
                continue;
            };
            if name.to_str().is_some_and(is_mount_namespace) {
                keepers.push(Keeper {
                    name,
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
            Ok(mounts::parse_mountinfo(&String::from_utf8_lossy(&text)))
        })
        .map_err(|error| errno_of(&error))?;
    reader.join().unwrap_or(Err(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fake_sysfs::FakeSysfs;
    use rustix::fs::{CWD, FileType, mknodat};

    fn join_namespace(root: &SysRoot, pid: u32, name: &str) {
        let directory = root.proc.join(pid.to_string()).join("ns");
        std::fs::create_dir_all(&directory).unwrap();
        std::os::unix::fs::symlink(name, directory.join("mnt")).unwrap();
    }

    /// 101 stands before 77 in the order of /proc, as a health check may before its server.
    #[test]
    fn process_that_has_just_ended_does_not_hide_the_mounts_of_its_namespace() {
        let sysfs = FakeSysfs::new();
        let root = sysfs.root();
        for (pid, name) in [(101, "mnt:[5]"), (66, "mnt:[5]"), (77, "mnt:[5]")] {
            join_namespace(&root, pid, name);
        }
        std::fs::create_dir_all(root.proc.join("66")).unwrap();
        std::fs::write(root.proc.join("66/mountinfo"), "").unwrap();
        sysfs.write_attribute(
            "proc/77/mountinfo",
            "3 0 8:1 /srv/f /data/f rw - ext4 /dev/sda1 rw",
        );
        let found = MountTables::read(&root);
        let points: Vec<&str> = found
            .tables
            .iter()
            .flat_map(|table| &table.mounts)
            .map(|mount| mount.point.as_str())
            .collect();
        assert_eq!(points, ["/data/f"]);
        assert!(found.unreadable.is_empty(), "{:?}", found.unreadable);
    }

    #[test]
    fn namespace_whose_mounts_no_process_shows_is_unreadable() {
        let sysfs = FakeSysfs::new();
        let root = sysfs.root();
        join_namespace(&root, 77, "mnt:[5]");
        // A directory in its place cannot be read (EISDIR).
        std::fs::create_dir_all(root.proc.join("77/mountinfo")).unwrap();
        let found = MountTables::read(&root);
        let [namespace] = &found.unreadable[..] else {
            panic!("{found:?}");
        };
        assert_eq!(namespace.errno, Errno::ISDIR);
        assert_eq!(namespace.path, root.proc.join("77/ns/mnt"));
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
