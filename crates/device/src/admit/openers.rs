//! Which processes hold something open or have it mapped into memory, from /proc/PID/fd,
//! /proc/PID/task/*/fd and /proc/PID/maps. Does not know what follows.

use super::family::{Node, Subject};
use crate::syscalls::share_table;
use crate::sysroot::{SysRoot, list, read_text};
use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, makedev, statx};
use rustix::io::Errno;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A reason and a step for each process that has a part of the subject open or in its memory, and
/// how many processes cannot be looked at.
pub(super) fn find(root: &SysRoot, subject: &Subject<'_>) -> (Vec<(String, String)>, u32) {
    let (mut found, mut hidden) = (Vec::new(), 0);
    for pid in root.other_processes() {
        let directory = root.proc.join(pid.to_string());
        let mut add = |what: String, how: &str| {
            let name = read_text(&directory.join("comm")).unwrap_or_default();
            found.push((
                format!("{what} is {how} by process {pid} ({name})"),
                format!("end process {pid} ({name}), or have it close {what}"),
            ));
        };
        if let Err(error) = std::fs::read_dir(directory.join("fd")) {
            // Any other error: it has just ended.
            hidden += u32::from(error.kind() == ErrorKind::PermissionDenied);
            continue;
        }
        let mut denied = false;
        for table in tables(&directory, pid) {
            for descriptor in std::fs::read_dir(table).into_iter().flatten().flatten() {
                match look_at(&descriptor.path()) {
                    Ok(told) => subject
                        .owns(&node(&told))
                        .into_iter()
                        .for_each(|what| add(what, "held open")),
                    // Root without CAP_SYS_PTRACE, as in most containers, sees that there are
                    // descriptors, and not of what.
                    Err(errno) => denied |= matches!(errno, Errno::ACCESS | Errno::PERM),
                }
            }
        }
        hidden += u32::from(denied);
        mapped(subject, &directory)
            .into_iter()
            .for_each(|what| add(what, "mapped into memory"));
    }
    (found, hidden)
}

/// Without asking a server: a hanging NFS must not hang us.
fn look_at(path: &Path) -> Result<Statx, Errno> {
    statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS)
}

fn node(told: &Statx) -> Node {
    Node {
        is_block: FileType::from_raw_mode(told.stx_mode.into()) == FileType::BlockDevice,
        device: makedev(told.stx_rdev_major, told.stx_rdev_minor),
        id: (
            makedev(told.stx_dev_major, told.stx_dev_minor),
            told.stx_ino,
        ),
    }
}

/// What a process has in its memory of the subject's parts: a mapping outlives the descriptor that
/// it was made of.
fn mapped(subject: &Subject<'_>, process: &Path) -> Vec<String> {
    let text = std::fs::read(process.join("maps")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    // A library is mapped in several pieces: one look for all.
    let mut seen = HashSet::new();
    let pieces = text
        .lines()
        .filter_map(Mapping::parse)
        .filter(|mapping| seen.insert((mapping.device, mapping.inode, mapping.path)));
    pieces
        .filter_map(|mapping| mapped_at(subject, process, &mapping))
        .collect()
}

/// The kernel's own link to what is mapped leads to it whatever it is called
/// (proc_pid_map_files(5)), for root alone; else the path, where it still is the same inode, and
/// for a file its number, which btrfs reports with another device.
fn mapped_at(subject: &Subject<'_>, process: &Path, mapping: &Mapping<'_>) -> Option<String> {
    if let Some(told) = mapping
        .link()
        .and_then(|link| look_at(&process.join("map_files").join(link)).ok())
    {
        return subject.owns(&node(&told));
    }
    let mapped_id = Some((mapping.device, mapping.inode));
    if let Some(what) = subject.owns_file(|_, id| id == mapped_id) {
        return Some(what);
    }
    let inside = PathBuf::from(format!("{}/root{}", process.display(), mapping.path));
    let told = [inside.as_path(), Path::new(mapping.path)]
        .into_iter()
        .find_map(|path| look_at(path).ok())
        .filter(|told| told.stx_ino == mapping.inode)?;
    subject.owns(&node(&told))
}

/// A line of /proc/PID/maps (proc_pid_maps(5)) that stands for a file or a device.
#[derive(Debug, PartialEq, Eq)]
struct Mapping<'a> {
    /// `start-end`, filled up with zeros.
    range: &'a str,
    /// Of the filesystem that the file or node lies on.
    device: u64,
    inode: u64,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let range = fields.next()?;
        let (major, minor) = fields.nth(2)?.split_once(':')?;
        let hex = |text: &str| u32::from_str_radix(text, 16).ok();
        let inode = fields.next()?.parse().ok().filter(|inode| *inode != 0)?;
        // The kernel fills up with blanks before the path.
        Some(Self {
            range,
            device: makedev(hex(major)?, hex(minor)?),
            inode,
            path: fields.next().unwrap_or_default().trim_start_matches(' '),
        })
    }

    /// Its name in map_files, which has no leading zeros (dname_to_vma_addr in
    /// linux/fs/proc/base.c).
    fn link(&self) -> Option<String> {
        let (start, end) = self.range.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        Some(format!("{:x}-{:x}", number(start)?, number(end)?))
    }
}

/// The directories that show all descriptors of a process, its own first; `process` is its
/// directory in /proc.
///
/// Most processes have one table for all threads, which /proc/PID/fd shows. But a thread may have
/// left it (unshare(2), CLONE_FILES), and the first thread may have ended before the others.
fn tables(process: &Path, pid: u32) -> Vec<PathBuf> {
    let mut owners = vec![pid];
    let tasks = process.join("task");
    let threads = list(&tasks);
    for thread in threads
        .iter()
        .filter_map(|name| name.parse::<u32>().ok())
        .filter(|thread| *thread != pid)
    {
        // Where the kernel cannot compare (no CONFIG_KCMP), all threads are taken to share, as all
        // but a few programs have it.
        if !owners.iter().any(|owner| share_table(*owner, thread)) {
            owners.push(thread);
        }
    }
    let directory = |owner: &u32| {
        if *owner == pid {
            process.join("fd")
        } else {
            tasks.join(owner.to_string()).join("fd")
        }
    };
    owners.iter().map(directory).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn mappings_of_files_and_devices_are_read() {
        let read =
            |line: &'static str| Mapping::parse(line).map(|m| (m.range, m.device, m.inode, m.path));
        let library = "7f00-7f10 r-xp 00000000 08:01 42                 /usr/lib/libx.so";
        assert_eq!(
            read(library),
            Some(("7f00-7f10", makedev(8, 1), 42, "/usr/lib/libx.so"))
        );
        assert_eq!(
            read("7f20-7f30 r--s 00000000 00:1f 43  /data/my file"),
            Some(("7f20-7f30", makedev(0, 31), 43, "/data/my file"))
        );
        for none in [
            "7f10-7f20 rw-p 00000000 00:00 0 ",
            "7f10-7f20 rw-p 00000000 00:00 0    [heap]",
            "garbage",
            "",
        ] {
            assert_eq!(read(none), None, "{none}");
        }
        let program = Mapping::parse("00400000-00bfe000 r-xp 00000000 08:01 42   /bin/x").unwrap();
        assert_eq!(program.link().as_deref(), Some("400000-bfe000"));
    }

    /// Without the right to follow the kernel's own links, as a user's own processes are looked at.
    #[test]
    fn mappings_are_found_without_the_kernels_links() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = place.path().join("my file");
        std::fs::write(&file, "x").unwrap();
        let process = place.path().join("1");
        std::fs::create_dir(&process).unwrap();
        let told = look_at(&file).unwrap();
        let path = file.to_str().unwrap();
        let subject = Subject::File {
            path,
            id: (
                makedev(told.stx_dev_major, told.stx_dev_minor),
                told.stx_ino,
            ),
        };
        let is_mapped = |device: (u32, u32), inode: u64, path: &str| {
            let line = format!(
                "7f00-7f10 rw-s 00000000 {:02x}:{:02x} {inode}    {path}\n",
                device.0, device.1
            );
            std::fs::write(process.join("maps"), line).unwrap();
            mapped(&subject, &process) == [file.to_str().unwrap()]
        };
        assert!(is_mapped(
            (told.stx_dev_major, told.stx_dev_minor),
            told.stx_ino,
            "/elsewhere"
        ));
        assert!(
            is_mapped((0, 0x2a), told.stx_ino, path),
            "btrfs reports another device"
        );
        assert!(
            !is_mapped((0, 0x2a), told.stx_ino + 1, path),
            "another file of this name, in another namespace or of another time"
        );
        assert!(!is_mapped((0, 0x2a), told.stx_ino, "/elsewhere"));
    }

    #[test]
    #[allow(unsafe_code)]
    fn a_thread_that_left_the_table_has_one_of_its_own() {
        let (tell, told) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: unshare takes a number; the thread opens and closes nothing that others know
            // of.
            let (left, own) = unsafe { (libc::unshare(libc::CLONE_FILES), libc::gettid()) };
            tell.send((left, own)).unwrap();
            let _ = ended.recv();
        });
        let (left, own) = told.recv().unwrap();
        assert_eq!(left, 0);
        let found = tables(Path::new("/proc/self"), std::process::id());
        assert_eq!(found[0], Path::new("/proc/self/fd"));
        assert!(
            found.contains(&PathBuf::from(format!("/proc/self/task/{own}/fd"))),
            "{found:?}"
        );
        drop(end);
        thread.join().unwrap();
    }
}
