//! Finds the processes of a server by the directory that they work in, and ends them, by signals
//! that follow each other ([`EndingTimes`]). The guard ends its own children in the same way
//! (`guard`).

use rustix::fs::Stat;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The pause before the guard looks again for ended processes and for orders. A longer one would
/// delay every start of a server, a shorter one would use the processor during the measurement.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The names of the processes that belong to a server. A shell that entered its data directory has
/// another name.
const PROCESS_NAMES: [&str; 2] = ["postgres", "postmaster"];
/// The pause in place of [`POLL_INTERVAL`] while a disk holds a process, perhaps for hours.
const PATIENT_POLL: Duration = Duration::from_secs(1);

/// The times at which the processes of a server are ended by force. Each begins where the one
/// before it ends: nothing is done, then SIGQUIT is sent once, then SIGKILL again and again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndingTimes {
    /// The time for sessions to end by themselves once their server has ended. They remove their
    /// shared memory then.
    pub by_themselves: Duration,
    /// The time for a server to end after SIGQUIT.
    pub after_quit: Duration,
    /// The time for all processes to end, from the beginning on. One that takes longer waits for a
    /// disk that does not answer.
    pub give_up_after: Duration,
}

/// The times for the server of a cluster. By themselves: chosen, not measured; an idle session
/// notices the end at once. After SIGQUIT: an immediate shutdown takes milliseconds unless the disk
/// hangs, and the server itself kills its sessions after 5 s. To give up: chosen, longer than the
/// kernel's timeout of a SCSI command (30 s).
pub(crate) const ENDING_TIMES: EndingTimes = EndingTimes {
    by_themselves: Duration::from_millis(1500),
    after_quit: Duration::from_secs(7),
    give_up_after: Duration::from_secs(60),
};

/// What is done with processes that still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndingStep {
    Wait,
    /// SIGQUIT, once: a second one would interrupt the shutdown.
    Quit,
    /// SIGKILL.
    Kill,
    /// The caller gets an error.
    GiveUp,
}

impl EndingTimes {
    /// The step for processes that still run so long after the first look at them. The guard waits
    /// without end, since it has nothing else to do and no other process would come after it.
    fn step_at(&self, age: Duration, parent: Parent) -> EndingStep {
        if age >= self.give_up_after && parent == Parent::Other {
            EndingStep::GiveUp
        } else if age >= self.by_themselves + self.after_quit {
            EndingStep::Kill
        } else if age >= self.by_themselves {
            EndingStep::Quit
        } else {
            EndingStep::Wait
        }
    }
}

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
/// they get time to end by themselves, then they get SIGQUIT, then SIGKILL ([`ENDING_TIMES`]). The
/// guard waits without end; any other caller gets an error after a minute.
pub(crate) fn end_processes(data: BorrowedFd<'_>, parent: Parent) -> Result<(), String> {
    end_processes_by(&ENDING_TIMES, data, parent)
}

fn end_processes_by(
    times: &EndingTimes,
    data: BorrowedFd<'_>,
    parent: Parent,
) -> Result<(), String> {
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
        match times.step_at(age, parent) {
            EndingStep::Wait => {}
            EndingStep::Quit => {
                if !quit_sent {
                    send_to_all(&processes, Signal::QUIT)?;
                    quit_sent = true;
                }
            }
            EndingStep::Kill => send_to_all(&processes, Signal::KILL)?,
            EndingStep::GiveUp => {
                let list: Vec<String> = processes.iter().map(|pid| pid.to_string()).collect();
                return Err(format!("processes {} do not end", list.join(", ")));
            }
        }
        std::thread::sleep(if age < times.give_up_after {
            POLL_INTERVAL
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
    use std::io::{BufRead as _, BufReader};
    use std::os::fd::AsFd as _;
    use std::os::unix::process::ExitStatusExt as _;
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};

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
    fn server_gets_time_then_sigquit_then_sigkill_and_only_the_guard_waits_on() {
        use EndingStep::{GiveUp, Kill, Quit, Wait};
        for (age_ms, step) in [
            (0, Wait),
            (1_499, Wait),
            (1_500, Quit),
            (8_499, Quit),
            (8_500, Kill),
            (59_999, Kill),
        ] {
            let age = Duration::from_millis(age_ms);
            for parent in [Parent::Guard, Parent::Other] {
                assert_eq!(ENDING_TIMES.step_at(age, parent), step, "{age_ms} ms");
            }
        }
        let minute = Duration::from_secs(60);
        assert_eq!(ENDING_TIMES.step_at(minute, Parent::Other), GiveUp);
        assert_eq!(ENDING_TIMES.step_at(minute, Parent::Guard), Kill);
    }

    /// Long enough that no test waits for it.
    const NEVER: Duration = Duration::from_secs(1 << 20);

    /// A shell that has the name of a server and works in the data directory. It runs these
    /// commands, and then waits for its standard input.
    fn server(data: &Path, commands: &str) -> Child {
        let program = data.join("postgres");
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
        let mut server = Command::new(program)
            .args(["-c", &format!("ulimit -c 0; {commands} echo; read line")])
            .current_dir(data)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = server.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        server
    }

    /// The signal that ended a server of these commands; the error instead where none did.
    fn ending_signal(commands: &str, times: EndingTimes) -> Result<Option<i32>, String> {
        let here = tempfile::tempdir().unwrap();
        let data = here.path().join("cluster/data");
        std::fs::create_dir_all(&data).unwrap();
        let mut server = server(&data, commands);
        let ended = end_processes_by(&times, File::open(&data).unwrap().as_fd(), Parent::Other);
        if ended.is_err() {
            assert!(server.try_wait().unwrap().is_none(), "it was ended");
            server.kill().unwrap();
        }
        let status = server.wait().unwrap();
        ended.map(|()| status.signal())
    }

    #[test]
    fn server_that_ignores_sigquit_is_killed() {
        let times = EndingTimes {
            by_themselves: Duration::ZERO,
            after_quit: NEVER,
            give_up_after: NEVER,
        };
        let (quit, kill) = (Signal::QUIT.as_raw(), Signal::KILL.as_raw());
        assert_eq!(ending_signal("", times), Ok(Some(quit)));
        let at_once = EndingTimes {
            after_quit: Duration::from_millis(50),
            ..times
        };
        assert_eq!(ending_signal("trap '' QUIT;", at_once), Ok(Some(kill)));
        let giving_up = EndingTimes {
            give_up_after: Duration::ZERO,
            ..times
        };
        assert!(ending_signal("", giving_up).is_err());
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
