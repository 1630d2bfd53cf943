//! Finds the processes of a server by the directory that they work in, and ends them.

use rustix::fs::Stat;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time for a server to end after SIGQUIT. An immediate shutdown takes milliseconds unless the
/// disk hangs, and the server itself kills its sessions after 5 s.
pub(crate) const QUIT_WITHIN: Duration = Duration::from_secs(7);
/// The pause before the guard looks again for ended processes and for orders. A longer one would
/// delay every start of a server, a shorter one would use the processor during the measurement.
pub(crate) const POLL: Duration = Duration::from_millis(10);
/// The names of the processes that belong to a server. A shell that entered its data directory has
/// another name.
const PROCESS_NAMES: [&str; 2] = ["postgres", "postmaster"];
/// The time for sessions to end by themselves once their server has ended. They remove their shared
/// memory then. Chosen, not measured: an idle session notices the end at once.
const SIGQUIT_AFTER: Duration = Duration::from_millis(1500);
/// The time for all processes to end. One that takes longer waits for a disk that does not answer.
/// Chosen: longer than the kernel's timeout of a SCSI command (30 s).
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);
/// The pause in place of [`POLL`] while a disk holds a process, perhaps for hours.
const PATIENT_POLL: Duration = Duration::from_secs(1);

/// The parent of the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parent {
    /// This process, which has no other children: all of them must end, also one that has not
    /// entered the data directory yet.
    Guard,
    /// Another process.
    Other,
}

/// Ends every process of the server whose data directory this is: all of them work in it. First
/// they get time to end by themselves, then they get SIGQUIT, then SIGKILL. The guard waits without
/// end, since it has nothing else to do and no other process would come after it; any other caller
/// gets an error after a minute.
pub(crate) fn end_processes(data: BorrowedFd<'_>, parent: Parent) -> Result<(), String> {
    let place = DataPlace::new(data).map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let mut quit_sent = false;
    loop {
        let has_children = parent == Parent::Guard && has_children_after_reaping();
        let processes = processes_in(&place);
        if processes.is_empty() && !has_children {
            return Ok(());
        }
        let age = begun.elapsed();
        if age >= GIVE_UP_AFTER && parent == Parent::Other {
            let list: Vec<String> = processes.iter().map(|pid| pid.to_string()).collect();
            return Err(format!("processes {} do not end", list.join(", ")));
        }
        if age >= SIGQUIT_AFTER + QUIT_WITHIN {
            send_to_all(&processes, Signal::KILL)?;
        } else if age >= SIGQUIT_AFTER && !quit_sent {
            quit_sent = true;
            send_to_all(&processes, Signal::QUIT)?;
        }
        std::thread::sleep(if age < GIVE_UP_AFTER {
            POLL
        } else {
            PATIENT_POLL
        });
    }
}

/// Sends a signal to each of these processes; the error names one that may not be signalled.
fn send_to_all(processes: &[Pid], signal: Signal) -> Result<(), String> {
    for pid in processes {
        match kill_process(*pid, signal) {
            // It has ended meanwhile.
            Ok(()) | Err(Errno::SRCH) => {}
            Err(errno) => return Err(format!("cannot end process {pid}: {errno}")),
        }
    }
    Ok(())
}

/// Reaps the children that have ended, and returns true if others still run. Sessions whose server
/// has died, and what initdb has started, become children of the guard.
fn has_children_after_reaping() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// The data directory of a server, as its processes are recognised by it.
struct DataPlace {
    stat: Stat,
    /// The end of its path ([`path_end`]).
    path_end: Vec<OsString>,
}

impl DataPlace {
    fn new(data: BorrowedFd<'_>) -> std::io::Result<Self> {
        let link = format!("/proc/self/fd/{}", data.as_raw_fd());
        Ok(Self {
            stat: rustix::fs::fstat(data)?,
            path_end: path_end(&std::fs::read_link(link)?),
        })
    }

    /// True if the process with this directory in /proc is one of a server that works in the data
    /// directory. Only the links of such processes are followed: that is a request to the
    /// filesystem of the working directory, which may be that of another program and may not
    /// answer.
    fn has_server(&self, process: &Path) -> bool {
        if !self.may_have_server(process) {
            return false;
        }
        match std::fs::metadata(process.join("cwd")) {
            Ok(cwd) => (cwd.dev(), cwd.ino()) == (self.stat.st_dev, self.stat.st_ino),
            Err(_) => false,
        }
    }

    /// True if the name of the process and the end of the path in which it works fit.
    fn may_have_server(&self, process: &Path) -> bool {
        let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
        if !PROCESS_NAMES.contains(&name.trim_end()) {
            return false;
        }
        match std::fs::read_link(process.join("cwd")) {
            Ok(cwd) => path_end(&cwd) == self.path_end,
            Err(_) => false,
        }
    }
}

/// The directories of a path that are compared: the data directory and that of its cluster.
const DIRECTORIES_COMPARED: usize = 2;

/// The names of the last directories of a path in /proc, the last one first. The paths of two
/// processes in a directory differ only where other filesystems are mounted above it.
fn path_end(path: &Path) -> Vec<OsString> {
    path.iter()
        .rev()
        .take(DIRECTORIES_COMPARED)
        .map(OsStr::to_owned)
        .collect()
}

/// The processes of a server that works in this directory.
fn processes_in(place: &DataPlace) -> Vec<Pid> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(number) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        if place.has_server(&entry.path()) {
            pids.extend(Pid::from_raw(number));
        }
    }
    pids
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd as _;
    use std::path::PathBuf;

    /// A process that only resembles one: its working directory does not exist, so that it cannot
    /// be asked.
    fn process(folder: &Path, name: &str, cwd: &str) -> PathBuf {
        let process = folder.join(format!("{name} {}", cwd.replace('/', " ")));
        std::fs::create_dir(&process).unwrap();
        std::fs::write(process.join("comm"), format!("{name}\n")).unwrap();
        std::os::unix::fs::symlink(cwd, process.join("cwd")).unwrap();
        process
    }

    #[test]
    fn only_processes_of_servers_in_a_directory_of_its_name_are_asked_for_theirs() {
        let here = tempfile::tempdir().unwrap();
        let data = here.path().join("cluster/data");
        std::fs::create_dir_all(&data).unwrap();
        let place = DataPlace::new(File::open(&data).unwrap().as_fd()).unwrap();
        let may_serve = |name, cwd| place.may_have_server(&process(here.path(), name, cwd));
        assert!(may_serve("postgres", "/seen/elsewhere/cluster/data"));
        assert!(may_serve("postmaster", "/seen/elsewhere/cluster/data"));
        assert!(!may_serve("bash", "/seen/elsewhere/cluster/data"));
        assert!(!may_serve("postgres", "/nfs/16/data"));
        assert!(!may_serve("postgres", "/"));
    }

    #[test]
    fn server_is_known_by_its_directory_and_not_by_its_path() {
        let here = tempfile::tempdir().unwrap();
        let (data, same) = (here.path().join("cluster/data"), here.path().join("same"));
        std::fs::create_dir_all(&data).unwrap();
        std::fs::create_dir_all(same.join("cluster/data")).unwrap();
        let place = DataPlace::new(File::open(&data).unwrap().as_fd()).unwrap();
        let has_server = |cwd: &Path| {
            let cwd = cwd.to_str().unwrap();
            place.has_server(&process(here.path(), "postgres", cwd))
        };
        assert!(has_server(&data));
        assert!(!has_server(&same.join("cluster/data")));
    }
}
