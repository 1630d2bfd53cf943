//! The processes of a server: all of them work in its data directory. Ends them.

use rustix::fs::Stat;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

/// Programs that work in a data directory. A shell that entered it is not one.
const NAMES: [&str; 2] = ["postgres", "postmaster"];
/// Sessions end by themselves when their server has ended, and remove their shared memory.
const ALONE_WITHIN: Duration = Duration::from_millis(1500);
/// An immediate shutdown (SIGQUIT) takes milliseconds unless the disk hangs; the server itself
/// kills its sessions after 5 s.
const QUIT_WITHIN: Duration = Duration::from_secs(7);
/// Later than this a process waits for a disk that does not answer.
const END_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);
/// The same while a disk holds a process, perhaps for hours.
const PATIENT_POLL: Duration = Duration::from_secs(1);

/// Whose children the processes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parent {
    /// This process's, which has no others: all of them must end, also one that has not entered
    /// the data directory yet.
    Guard,
    /// Another one's.
    Other,
}

/// Ends every process of the server whose data directory this is.
pub(crate) fn end_processes(data: BorrowedFd<'_>, parent: Parent) -> Result<(), String> {
    let place = rustix::fs::fstat(data).map_err(|errno| errno.to_string())?;
    let (begun, mut quit_sent) = (Instant::now(), false);
    loop {
        let has_children = parent == Parent::Guard && has_children();
        let processes = processes_in(&place);
        if processes.is_empty() && !has_children {
            return Ok(());
        }
        let age = begun.elapsed();
        // The guard has nothing else to do, and nobody would come after it.
        if age >= END_WITHIN && parent == Parent::Other {
            let list: Vec<String> = processes.iter().map(|pid| pid.to_string()).collect();
            return Err(format!("processes {} do not end", list.join(", ")));
        }
        let signal = match quit_sent {
            _ if age >= QUIT_WITHIN => Some(Signal::KILL),
            false if age >= ALONE_WITHIN => Some(Signal::QUIT),
            _ => None,
        };
        quit_sent |= signal.is_some();
        for pid in signal.map_or(&[][..], |_| &processes) {
            let sent = signal.map_or(Ok(()), |signal| kill_process(*pid, signal));
            if let Err(errno) = sent
                && errno != Errno::SRCH
            {
                return Err(format!("cannot end process {pid}: {errno}"));
            }
        }
        std::thread::sleep(if age < END_WITHIN { POLL } else { PATIENT_POLL });
    }
}

/// Sessions whose server has died, and what initdb has started, become children of the guard.
fn has_children() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

fn processes_in(place: &Stat) -> Vec<Pid> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let is_here = std::fs::metadata(entry.path().join("cwd"))
            .is_ok_and(|cwd| (cwd.dev(), cwd.ino()) == (place.st_dev, place.st_ino));
        let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if is_here && NAMES.contains(&name.trim_end()) {
            found.extend(Pid::from_raw(number));
        }
    }
    found
}
