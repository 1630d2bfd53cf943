//! Finds the processes of a server by the directory that they work in, and ends them.

use rustix::fs::Stat;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

/// The time for a server to end after SIGQUIT. An immediate shutdown takes milliseconds unless the
/// disk hangs, and the server itself kills its sessions after 5 s.
pub(crate) const QUIT_WITHIN: Duration = Duration::from_secs(7);
/// The pause before the guard looks again for ended processes and for orders. A longer one would
/// delay every start of a server, a shorter one would use the processor beside the measurement.
pub(crate) const POLL: Duration = Duration::from_millis(10);
/// The names of the processes that belong to a server. A shell that entered its data directory has
/// another name.
const NAMES: [&str; 2] = ["postgres", "postmaster"];
/// The time for sessions to end by themselves once their server has ended. They remove their shared
/// memory then.
const ALONE_WITHIN: Duration = Duration::from_millis(1500);
/// The time for all processes to end. One that takes longer waits for a disk that does not answer.
const END_WITHIN: Duration = Duration::from_secs(60);
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
    let place = rustix::fs::fstat(data).map_err(|errno| errno.to_string())?;
    let begun = Instant::now();
    let mut quit_sent = false;
    loop {
        let has_children = parent == Parent::Guard && has_children_after_reaping();
        let processes = processes_in(&place);
        if processes.is_empty() && !has_children {
            return Ok(());
        }
        let age = begun.elapsed();
        if age >= END_WITHIN && parent == Parent::Other {
            let list: Vec<String> = processes.iter().map(|pid| pid.to_string()).collect();
            return Err(format!("processes {} do not end", list.join(", ")));
        }
        if age >= QUIT_WITHIN {
            send_to_all(&processes, Signal::KILL)?;
        } else if age >= ALONE_WITHIN && !quit_sent {
            quit_sent = true;
            send_to_all(&processes, Signal::QUIT)?;
        }
        std::thread::sleep(if age < END_WITHIN { POLL } else { PATIENT_POLL });
    }
}

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

/// Processes of a server whose working directory is this one.
fn processes_in(place: &Stat) -> Vec<Pid> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(number) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let Ok(cwd) = std::fs::metadata(entry.path().join("cwd")) else {
            continue;
        };
        let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let is_here = (cwd.dev(), cwd.ino()) == (place.st_dev, place.st_ino);
        if is_here && NAMES.contains(&name.trim_end()) {
            pids.extend(Pid::from_raw(number));
        }
    }
    pids
}
