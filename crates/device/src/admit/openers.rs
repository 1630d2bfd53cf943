//! Finds the processes that hold a part of the subject open, have it registered in an io_uring, or
//! have it mapped into memory. Reads fd, fdinfo and maps of /proc/PID and its threads.

use super::reasons::{RAISE_DESCRIPTOR_LIMIT, RefusalReason, Step};
use super::subject::{Node, Subject};
use crate::kernel::file_id::FileId;
use crate::kernel::mounts::unescape;
use crate::kernel::naming::{errno_name, errno_of};
use crate::kernel::syscalls::have_one_file_table;
use crate::kernel::sysroot::{SysRoot, read_text, try_list, value_of};
use rustix::fs::{AtFlags, CWD, FileType, OFlags, Statx, StatxFlags, makedev, statx};
use rustix::io::Errno;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The result of a look at all processes.
#[derive(Debug, Default)]
pub(super) struct FoundOpeners {
    /// One reason for each use of a part of the subject by a process.
    pub(super) reasons: Vec<RefusalReason>,
    /// The number of processes whose files this user may not see.
    pub(super) hidden: u32,
    /// Processes with files that /proc does not list.
    pub(super) unseen: Vec<String>,
}

impl FoundOpeners {
    /// True if nothing was found that a later look has to confirm.
    pub(super) fn is_empty(&self) -> bool {
        self.reasons.is_empty() && self.unseen.is_empty()
    }

    /// What is left of it by a later look: the uses that this one found, and of the processes with
    /// unlisted files those that had some at each look, since a message between two processes is
    /// read the next moment.
    pub(super) fn confirmed_by(self, later: Self) -> Self {
        let mut unseen = self.unseen;
        unseen.retain(|process| later.unseen.contains(process));
        Self { unseen, ..later }
    }
}

/// Looks at every process but our own.
pub(super) fn find(root: &SysRoot, subject: &Subject<'_>) -> FoundOpeners {
    let mut openers = FoundOpeners::default();
    let pids = root.try_other_processes().unwrap_or_else(|error| {
        openers.reasons.extend(unlisted(&error));
        Vec::new()
    });
    for pid in pids {
        let directory = root.proc.join(pid.to_string());
        if let Err(error) = std::fs::read_dir(directory.join("fd")) {
            openers.hidden += u32::from(error.kind() == ErrorKind::PermissionDenied);
            openers.reasons.extend(unlisted(&error));
            continue;
        }
        let process = ProcessFiles::inspect(subject, &directory, pid);
        openers.hidden += u32::from(process.is_denied);
        for error in &process.errors {
            openers.reasons.extend(unlisted(error));
        }
        if process.uses.is_empty() && !process.has_unseen {
            continue;
        }
        let name = read_text(&directory.join("comm")).unwrap_or_default();
        for Use { what, how } in process.uses {
            openers.reasons.push(RefusalReason {
                text: format!("{what} is {how} by process {pid} ({name})"),
                step: Step::clause(format!(
                    "end process {pid} ({name}), or have it close {what}"
                )),
            });
        }
        if process.has_unseen {
            openers.unseen.push(format!("{pid} ({name})"));
        }
    }
    openers
}

/// A process that may change a file: it holds it open for writing, or has it mapped for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// The id of the process.
    pub pid: u32,
    /// The name of its program.
    pub name: String,
}

/// The first other process that may change a file; `None` where there is none, and where this user
/// may not see it. The programs that started this one do not count: they passed it the name, as a
/// script does that had the file made for this output (mkstemp).
pub(super) fn find_writer(root: &SysRoot, id: FileId) -> Option<Writer> {
    let subject = Subject::File { path: "it", id };
    let callers = callers(root);
    for pid in root.try_other_processes().unwrap_or_default() {
        let directory = root.proc.join(pid.to_string());
        if !callers.contains(&pid) && may_write(&subject, &directory, pid) {
            let name = read_text(&directory.join("comm")).unwrap_or_default();
            return Some(Writer { pid, name });
        }
    }
    None
}

/// The processes that started this one, the nearest first. The first process of a machine or
/// container is none of them: it is the caller of every service.
fn callers(root: &SysRoot) -> Vec<u32> {
    let mut pids = Vec::new();
    let mut pid = std::process::id();
    loop {
        let status = read_text(&root.proc.join(pid.to_string()).join("status"));
        let parent = status
            .as_deref()
            .and_then(|text| value_of(text, "PPid", ':'))
            .and_then(|text| text.parse().ok());
        match parent {
            Some(parent) if parent > 1 && !pids.contains(&parent) => pids.push(parent),
            _ => return pids,
        }
        pid = parent.unwrap_or_default();
    }
}

/// True if a process, whose directory in /proc is `directory`, holds the subject open for writing
/// or has it mapped so that its writes reach it.
fn may_write(subject: &Subject<'_>, directory: &Path, pid: u32) -> bool {
    let own_table = || vec![directory.join("fd")];
    for table in descriptor_tables(directory, pid).unwrap_or_else(|_| own_table()) {
        for descriptor in std::fs::read_dir(&table).into_iter().flatten().flatten() {
            let Ok(stat) = look_at(&descriptor.path()) else {
                continue;
            };
            let info = table.with_file_name("fdinfo").join(descriptor.file_name());
            if subject.find_node(&node(&stat)).is_some() && is_open_for_writing(&info) {
                return true;
            }
        }
    }
    let maps = std::fs::read(directory.join("maps")).unwrap_or_default();
    String::from_utf8_lossy(&maps)
        .lines()
        .filter(|line| is_shared_and_writable(line))
        .filter_map(Mapping::parse)
        .any(|mapping| mapped_at(subject, directory, &mapping).is_some())
}

/// The bits of the flags of a descriptor that say whether it reads or writes (`O_ACCMODE`).
const ACCESS_MODE: u32 = 0o3;
/// Their value where it only reads.
const READ_ONLY: u32 = 0;

/// True if the flags of a descriptor in its fdinfo (proc_pid_fdinfo(5)) let it write.
fn is_open_for_writing(info: &Path) -> bool {
    let text = std::fs::read_to_string(info).unwrap_or_default();
    let flags = value_of(&text, "flags", ':')
        .and_then(|octal| u32::from_str_radix(octal, 8).ok())
        .map(OFlags::from_bits_retain);
    match flags {
        // A descriptor for the place alone neither reads nor writes.
        Some(flags) if flags.contains(OFlags::PATH) => false,
        Some(flags) => flags.bits() & ACCESS_MODE != READ_ONLY,
        None => false,
    }
}

/// True for a line of /proc/PID/maps with the permissions `rw-s`: writes to it reach the file.
fn is_shared_and_writable(line: &str) -> bool {
    match line.split(' ').nth(1) {
        Some(permissions) => permissions.contains('w') && permissions.contains('s'),
        None => false,
    }
}

/// The reason where the files of a process could not be listed; `None` where it has just ended, and
/// where this user may not look at it, which is counted elsewhere. What remains is, for example,
/// that this process has no descriptor left.
fn unlisted(error: &std::io::Error) -> Option<RefusalReason> {
    let errno = errno_of(error);
    let step = match errno {
        Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM => return None,
        Errno::MFILE | Errno::NFILE => RAISE_DESCRIPTOR_LIMIT,
        _ => "try again",
    };
    // The same text for all processes, so that it is a reason once.
    Some(RefusalReason {
        text: format!(
            "the open files of other processes cannot be listed ({})",
            errno_name(errno)
        ),
        step: Step::clause(step),
    })
}

/// A part of the subject, and the way in which a process has it.
#[derive(Debug, PartialEq, Eq)]
struct Use {
    what: String,
    how: &'static str,
}

/// The files of one process, as far as they concern the subject.
#[derive(Debug, Default)]
struct ProcessFiles {
    uses: Vec<Use>,
    /// True where this user may not see all of its files.
    is_denied: bool,
    /// True where it has files that /proc does not list.
    has_unseen: bool,
    /// The reasons why some of its files could not be listed.
    errors: Vec<std::io::Error>,
}

impl ProcessFiles {
    /// Looks at all files of the process whose directory in /proc is `directory`.
    fn inspect(subject: &Subject<'_>, directory: &Path, pid: u32) -> Self {
        let mut process = Self::default();
        let tables = descriptor_tables(directory, pid).unwrap_or_else(|error| {
            process.errors.push(error);
            vec![directory.join("fd")]
        });
        for table in tables {
            process.add_descriptors(subject, &table);
        }
        match mapped(subject, directory) {
            Ok(parts) => {
                for what in parts {
                    let how = "mapped into memory";
                    process.uses.push(Use { what, how });
                }
            }
            Err(error) => process.add_error(error),
        }
        process
    }

    /// Adds the uses by the descriptors of one table, a directory `fd`.
    fn add_descriptors(&mut self, subject: &Subject<'_>, table: &Path) {
        let descriptors = match std::fs::read_dir(table) {
            Ok(descriptors) => descriptors,
            Err(error) => return self.add_error(error),
        };
        for descriptor in descriptors.flatten() {
            let stat = match look_at(&descriptor.path()) {
                Ok(stat) => stat,
                // Root without CAP_SYS_PTRACE, as in most containers, sees that there are
                // descriptors, and not of what.
                Err(errno) => {
                    self.is_denied |= matches!(errno, Errno::ACCESS | Errno::PERM);
                    continue;
                }
            };
            if let Some(what) = subject.find_node(&node(&stat)) {
                let how = "held open";
                self.uses.push(Use { what, how });
            }
            let info = table.with_file_name("fdinfo").join(descriptor.file_name());
            self.add_files_behind(subject, &stat, &descriptor.path(), &info);
        }
    }

    fn add_error(&mut self, error: std::io::Error) {
        self.is_denied |= error.kind() == ErrorKind::PermissionDenied;
        self.errors.push(error);
    }

    /// Adds the uses by files that a descriptor holds indirectly: those registered in an io_uring,
    /// and those in messages that nobody has received yet. `link` is the descriptor in a directory
    /// `fd`, and `info` the same in `fdinfo`.
    fn add_files_behind(&mut self, subject: &Subject<'_>, stat: &Statx, link: &Path, info: &Path) {
        let text = match FileType::from_raw_mode(stat.stx_mode.into()) {
            FileType::Socket => std::fs::read_to_string(info).unwrap_or_default(),
            FileType::RegularFile
            | FileType::Directory
            | FileType::Symlink
            | FileType::Fifo
            | FileType::CharacterDevice
            | FileType::BlockDevice => return,
            FileType::Unknown => {
                let name = std::fs::read_link(link).unwrap_or_default();
                if name != Path::new("anon_inode:[io_uring]") {
                    return;
                }
                let Ok(text) = read_ring(info) else {
                    self.has_unseen = true;
                    return;
                };
                text
            }
        };
        self.has_unseen |= has_unseen_files(&text);
        for what in registered(subject, &text) {
            let how = "registered in an io_uring";
            self.uses.push(Use { what, how });
        }
    }
}

/// A ring is read so many times, a millisecond apart: the kernel leaves the list of files out while
/// a request is being submitted to the ring. Chosen, not measured: a submission takes microseconds.
const RING_LOOKS: u32 = 20;

/// The kernel's description of a ring (`io_uring_show_fdinfo` in linux/io_uring/fdinfo.c), with the
/// list of its files.
fn read_ring(info: &Path) -> std::io::Result<String> {
    for _ in 0..RING_LOOKS {
        let text = std::fs::read_to_string(info)?;
        if text.lines().any(|line| line.starts_with("UserFiles:")) {
            return Ok(text);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Err(ErrorKind::WouldBlock.into())
}

/// Parts of the subject among the files that are registered in a ring: lines of a number and a path
/// behind `UserFiles`. Before Linux 6.9 the kernel prints the last part of the path only.
fn registered(subject: &Subject<'_>, text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with("UserFiles:"));
    for line in lines.skip(1) {
        let Some((number, path)) = line.trim_start().split_once(": ") else {
            break;
        };
        if number.parse::<u32>().is_err() {
            break;
        }
        let path = PathBuf::from(unescape(path));
        parts.extend(if path.is_absolute() {
            find_by_path(subject, &path)
        } else {
            subject.find_by_file_name(&path)
        });
    }
    parts
}

/// The part of the subject that a path leads to, or that it names where it cannot be looked at.
fn find_by_path(subject: &Subject<'_>, path: &Path) -> Option<String> {
    if let Ok(stat) = look_at(path)
        && let Some(what) = subject.find_node(&node(&stat))
    {
        return Some(what);
    }
    subject.find_by_node_path(path)
}

/// True if a ring has requests in flight, whose files are not listed, or if a socket holds
/// descriptors that nobody has received yet (`scm_fds`, unix_show_fdinfo in
/// linux/net/unix/af_unix.c).
fn has_unseen_files(text: &str) -> bool {
    let in_messages = matches!(number(text, "scm_fds"), Some(1..));
    let in_requests = match (number(text, "CachedSqHead"), number(text, "CachedCqTail")) {
        (Some(taken), Some(completed)) => taken != completed,
        _ => false,
    };
    in_messages || in_requests
}

/// The number behind a key of fdinfo; `None` where the kernel does not print the key.
fn number(text: &str, key: &str) -> Option<u32> {
    value_of(text, key, ':')?.parse().ok()
}

/// Looks at a path without asking a server: a hanging NFS must not hang us.
fn look_at(path: &Path) -> Result<Statx, Errno> {
    statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS)
}

fn node(stat: &Statx) -> Node {
    Node {
        kind: FileType::from_raw_mode(stat.stx_mode.into()).into(),
        device: makedev(stat.stx_rdev_major, stat.stx_rdev_minor),
        id: FileId {
            device: makedev(stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
        },
    }
}

/// The parts of the subject that a process has mapped into its memory: a mapping outlives the
/// descriptor that it was made of.
fn mapped(subject: &Subject<'_>, process: &Path) -> std::io::Result<Vec<String>> {
    let bytes = std::fs::read(process.join("maps"))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut looked_at = HashSet::new();
    let mut parts = Vec::new();
    for line in text.lines() {
        let Some(mapping) = Mapping::parse(line) else {
            continue;
        };
        // A library is mapped in several pieces: one look for all.
        if looked_at.insert((mapping.device, mapping.inode, mapping.path)) {
            parts.extend(mapped_at(subject, process, &mapping));
        }
    }
    Ok(parts)
}

/// The kernel's own link to what is mapped leads to it whatever it is called
/// (proc_pid_map_files(5)), for root alone; else the path, where it still is the same inode, and
/// for a file its number, which btrfs reports with another device.
fn mapped_at(subject: &Subject<'_>, process: &Path, mapping: &Mapping<'_>) -> Option<String> {
    if let Some(link) = mapping.link()
        && let Ok(stat) = look_at(&process.join("map_files").join(link))
    {
        return subject.find_node(&node(&stat));
    }
    let mapped_id = Some(FileId {
        device: mapping.device,
        inode: mapping.inode,
    });
    if let Some(what) = subject.find_file(|_, id| id == mapped_id) {
        return Some(what);
    }
    let inside = PathBuf::from(format!("{}/root{}", process.display(), mapping.path));
    let stat = match look_at(&inside) {
        Ok(stat) => stat,
        Err(_) => look_at(Path::new(mapping.path)).ok()?,
    };
    if stat.stx_ino != mapping.inode {
        return None;
    }
    subject.find_node(&node(&stat))
}

/// A line of /proc/PID/maps (proc_pid_maps(5)) that stands for a file or a device.
#[derive(Debug, PartialEq, Eq)]
struct Mapping<'a> {
    /// `start-end`, filled up with zeros.
    range: &'a str,
    /// Number of the filesystem that the file or node lies on.
    device: u64,
    inode: u64,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let range = fields.next()?;
        let (major, minor) = fields.nth(2)?.split_once(':')?;
        let inode = fields.next()?.parse().ok()?;
        if inode == 0 {
            return None;
        }
        let major = u32::from_str_radix(major, 16).ok()?;
        let minor = u32::from_str_radix(minor, 16).ok()?;
        // The kernel fills up with blanks before the path.
        Some(Self {
            range,
            device: makedev(major, minor),
            inode,
            path: fields.next().unwrap_or_default().trim_start_matches(' '),
        })
    }

    /// The name in map_files, which has no leading zeros (dname_to_vma_addr in
    /// linux/fs/proc/base.c).
    fn link(&self) -> Option<String> {
        let (start_text, end_text) = self.range.split_once('-')?;
        let start = u64::from_str_radix(start_text, 16).ok()?;
        let end = u64::from_str_radix(end_text, 16).ok()?;
        Some(format!("{start:x}-{end:x}"))
    }
}

/// The directories that show all descriptors of a process, its own first; `process` is its
/// directory in /proc.
///
/// Most processes have one table for all threads, which /proc/PID/fd shows. But a thread may have
/// left it (unshare(2), CLONE_FILES), and the first thread may have ended before the others.
fn descriptor_tables(process: &Path, pid: u32) -> std::io::Result<Vec<PathBuf>> {
    let mut owners = vec![pid];
    let mut directories = vec![process.join("fd")];
    let tasks = process.join("task");
    for name in try_list(&tasks)? {
        let Ok(thread) = name.parse::<u32>() else {
            continue;
        };
        // Where the kernel cannot compare (no CONFIG_KCMP), all threads are assumed to share one
        // table, as in nearly all programs.
        if thread != pid
            && !owners
                .iter()
                .any(|owner| have_one_file_table(*owner, thread))
        {
            owners.push(thread);
            directories.push(tasks.join(name).join("fd"));
        }
    }
    Ok(directories)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fake_sysfs::FakeSysfs;
    use std::sync::mpsc::channel;

    #[test]
    fn later_look_decides_about_uses_and_each_about_unlisted_files() {
        let found = |use_of: &str, unseen: &[&str]| FoundOpeners {
            reasons: vec![RefusalReason {
                text: use_of.to_owned(),
                step: Step::clause(""),
            }],
            hidden: unseen.len() as u32,
            unseen: unseen.iter().map(ToString::to_string).collect(),
        };
        let confirmed = found("first", &["1", "2"]).confirmed_by(found("later", &["2", "3", "4"]));
        assert_eq!(confirmed.reasons.len(), 1);
        assert_eq!(confirmed.reasons[0].text, "later");
        assert_eq!(confirmed.unseen, ["2"]);
        assert_eq!(confirmed.hidden, 3);
        assert!(FoundOpeners::default().is_empty() && !confirmed.is_empty());
    }

    /// A process that has just ended has no files. One whose files we fail to list may have ours.
    #[test]
    fn files_that_cannot_be_listed_are_a_reason() {
        let subject = Subject::File {
            path: "/data/x",
            id: FileId {
                device: 1,
                inode: 2,
            },
        };
        let reasons_of = |file: &str| {
            let sysfs = FakeSysfs::new();
            let root = sysfs.root();
            std::fs::create_dir_all(root.proc.join("77/task")).unwrap();
            if file != "proc/77/fd" {
                std::fs::create_dir_all(root.proc.join("77/fd")).unwrap();
            }
            std::fs::create_dir_all(root.proc.join("78/fd")).unwrap();
            sysfs.write_attribute(file, "");
            find(&root, &subject).reasons
        };
        assert_eq!(reasons_of("proc/77/comm"), []);
        // A file stands where a directory is expected.
        for file in ["proc/77/fd", "proc/78/task"] {
            let [reason] = &reasons_of(file)[..] else {
                panic!("{file}");
            };
            let expected = "the open files of other processes cannot be listed (ENOTDIR)";
            assert_eq!(reason.text, expected);
        }
    }

    #[test]
    fn mappings_of_files_and_devices_are_read() {
        let read = |line: &'static str| {
            let mapping = Mapping::parse(line)?;
            Some((mapping.range, mapping.device, mapping.inode, mapping.path))
        };
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
        let stat = look_at(&file).unwrap();
        let path = file.to_str().unwrap();
        let subject = Subject::File {
            path,
            id: FileId {
                device: makedev(stat.stx_dev_major, stat.stx_dev_minor),
                inode: stat.stx_ino,
            },
        };
        let is_mapped = |device: (u32, u32), inode: u64, path: &str| {
            let line = format!(
                "7f00-7f10 rw-s 00000000 {:02x}:{:02x} {inode}    {path}\n",
                device.0, device.1
            );
            std::fs::write(process.join("maps"), line).unwrap();
            mapped(&subject, &process).unwrap() == [file.to_str().unwrap()]
        };
        assert!(is_mapped(
            (stat.stx_dev_major, stat.stx_dev_minor),
            stat.stx_ino,
            "/elsewhere"
        ));
        assert!(
            is_mapped((0, 0x2a), stat.stx_ino, path),
            "btrfs reports another device"
        );
        assert!(
            !is_mapped((0, 0x2a), stat.stx_ino + 1, path),
            "another file of this name, in another namespace or of another time"
        );
        assert!(!is_mapped((0, 0x2a), stat.stx_ino, "/elsewhere"));
    }

    #[test]
    #[allow(unsafe_code)]
    fn a_thread_that_left_the_table_has_one_of_its_own() {
        let (report, reported) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: unshare takes a number; the thread opens and closes nothing that others know
            // of.
            let (left, own) = unsafe { (libc::unshare(libc::CLONE_FILES), libc::gettid()) };
            report.send((left, own)).unwrap();
            let _ = ended.recv();
        });
        let (left, own) = reported.recv().unwrap();
        assert_eq!(left, 0);
        let found = descriptor_tables(Path::new("/proc/self"), std::process::id()).unwrap();
        assert_eq!(found[0], Path::new("/proc/self/fd"));
        assert!(
            found.contains(&PathBuf::from(format!("/proc/self/task/{own}/fd"))),
            "{found:?}"
        );
        drop(end);
        thread.join().unwrap();
    }
}
