//! Runs programs, each in its own process group, which ends with diskproof. No wait for what a
//! program prints is longer than a deadline: a disk that hangs keeps a program that queries it in
//! the kernel, where no signal reaches it.

use crate::programs::descriptor_limit::spawn_with_limit_of_user;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Directories where distributions put such programs; users who are not root often lack them in
/// PATH.
const PLACES: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/sbin"];
/// A report has some tens of KiB; longer output is not a report.
const REPORT_BYTES_MAX: u64 = 4 << 20;
/// The interval at which a program that should end is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The longest wait for the end of a program that was killed. Chosen, not measured: a process that
/// is not stuck in the kernel ends within milliseconds.
const REAP_FOR: Duration = Duration::from_millis(200);

/// The groups whose programs have not ended, in no order.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

fn groups() -> MutexGuard<'static, Vec<Pid>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills every program that runs, with what it started: this process is about to end.
pub fn kill_programs() {
    for group in groups().iter() {
        // It may have ended meanwhile.
        let _ = kill_process_group(*group, Signal::KILL);
    }
}

/// A program in its own process group, so that Ctrl-C does not cut it short. Dropped before its
/// end, it is killed with what it started.
#[derive(Debug)]
pub struct ProgramGroup {
    child: Child,
    group: Pid,
}

impl ProgramGroup {
    /// Starts a program as the leader of a new process group.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        // Locked until the group is listed: a signal in between would miss it.
        let mut groups = groups();
        let child = spawn_with_limit_of_user(command.process_group(0))?;
        let group = Pid::from_child(&child);
        groups.push(group);
        Ok(Self { child, group })
    }

    /// The program itself.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The exit status of the program; `None` while it runs. What it started may outlive it.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let ended = self.child.try_wait()?;
        if ended.is_some() {
            self.forget();
        }
        Ok(ended)
    }

    /// True while a signal has stopped the program. The terminal sends one to a program that wants
    /// to read from it.
    pub fn is_stopped(&self) -> bool {
        let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let state = waitid(WaitId::Pid(self.group), look);
        matches!(state, Ok(Some(state)) if state.stopped())
    }

    /// Ends the program and what it started by SIGTERM, and kills what still runs after this time.
    pub fn end(mut self, within: Duration) {
        let deadline = Instant::now() + within;
        // It may have ended meanwhile.
        let _ = kill_process_group(self.group, Signal::TERM);
        while Instant::now() < deadline {
            let _ = self.child.try_wait();
            if test_kill_process_group(self.group).is_err() {
                self.forget();
                return;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Removes it from the groups that [`kill_programs`] kills: nothing of it is left, or may be
    /// ended.
    fn forget(&self) {
        groups().retain(|group| *group != self.group);
    }

    /// Waits for the end of the program. Returns false if it still runs after `limit`.
    fn has_ended_within(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            if !matches!(self.try_wait(), Ok(None)) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for ProgramGroup {
    fn drop(&mut self) {
        if groups().contains(&self.group) {
            let _ = kill_process_group(self.group, Signal::KILL);
            // One that hangs in the kernel may never end; init reaps it when it does.
            self.has_ended_within(REAP_FOR);
            self.forget();
        }
    }
}

/// The reason why a program printed no text.
#[derive(Debug)]
pub enum NoAnswer {
    /// Nothing came in time; the program was ended.
    Late,
    /// The program could not be started or read.
    Failed(io::Error),
}

/// The program, in the directories of `search_path` (relative ones skipped), then where
/// distributions put it.
pub(crate) fn find_program(name: &str, search_path: Option<&OsStr>) -> Option<PathBuf> {
    let mut places = Vec::new();
    for place in std::env::split_paths(search_path.unwrap_or_default()) {
        if place.is_absolute() {
            places.push(place);
        }
    }
    places.extend(PLACES.map(PathBuf::from));
    places
        .into_iter()
        .map(|place| place.join(name))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    match path.metadata() {
        Ok(metadata) => metadata.is_file() && metadata.permissions().mode() & 0o111 != 0,
        Err(_) => false,
    }
}

/// Runs a program, and returns its standard output as text, whatever its exit status.
pub fn output_of(command: Command, limit: Duration) -> Result<String, NoAnswer> {
    output_with_input(command, Stdio::null(), limit)
}

/// As [`output_of`], with this standard input.
pub(crate) fn output_with_input(
    mut command: Command,
    input: Stdio,
    limit: Duration,
) -> Result<String, NoAnswer> {
    let deadline = Instant::now() + limit;
    command
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut program = ProgramGroup::start(&mut command).map_err(NoAnswer::Failed)?;
    let Some(stdout) = program.child().stdout.take() else {
        return Err(NoAnswer::Failed(io::ErrorKind::BrokenPipe.into()));
    };
    let (sender, receiver) = mpsc::channel();
    // The thread ends with the program, also where this function has returned before.
    let reader = std::thread::Builder::new().name("diskproof-report".to_owned());
    let started = reader.spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout
            .take(REPORT_BYTES_MAX)
            .read_to_end(&mut bytes)
            .map(|_| bytes);
        // No caller waits any more when it is late.
        let _ = sender.send(read);
    });
    let read = match started {
        Ok(_) => receiver.recv_timeout(limit),
        Err(error) => Ok(Err(error)),
    };
    if read.is_ok() {
        program.has_ended_within(deadline.saturating_duration_since(Instant::now()));
    }
    drop(program);
    match read {
        Ok(Ok(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Ok(Err(error)) => Err(NoAnswer::Failed(error)),
        Err(_) => Err(NoAnswer::Late),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    /// True while the process whose number is in a file runs.
    fn is_running(file: &std::path::Path) -> bool {
        let number = std::fs::read_to_string(file).unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", number.trim()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    fn wait_until(condition: impl Fn() -> bool) {
        while !condition() {
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    #[test]
    fn program_that_is_dropped_ends_with_its_children() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("child");
        let script = format!("sleep 600 & echo $! > {}; wait", file.display());
        let program = ProgramGroup::start(&mut shell(&script)).unwrap();
        let group = program.group;
        wait_until(|| std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')));
        assert!(groups().contains(&group) && is_running(&file));
        drop(program);
        assert!(!groups().contains(&group));
        wait_until(|| !is_running(&file));
    }

    #[test]
    fn program_that_ignores_the_end_is_killed_after_its_time() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("child");
        let child = format!("trap '' TERM; echo $$ > {}; sleep 600", file.display());
        let script = format!("sh -c \"{}\"; true", child.replace('$', "\\$"));
        let program = ProgramGroup::start(&mut shell(&script)).unwrap();
        let group = program.group;
        wait_until(|| std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')));
        program.end(Duration::from_millis(50));
        assert!(!groups().contains(&group));
        wait_until(|| !is_running(&file));
    }

    #[test]
    fn program_that_has_ended_leaves_what_it_started() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("child");
        let script = format!("sleep 600 & echo $! > {}", file.display());
        let mut program = ProgramGroup::start(&mut shell(&script)).unwrap();
        assert!(program.has_ended_within(Duration::from_secs(600)));
        let group = program.group;
        assert!(!groups().contains(&group));
        drop(program);
        assert!(is_running(&file));
        kill_process_group(group, Signal::KILL).unwrap();
    }

    #[test]
    fn late_program_has_no_answer() {
        let late = output_of(shell("sleep 600"), Duration::from_millis(10));
        assert!(matches!(late, Err(NoAnswer::Late)), "{late:?}");
        let text = output_of(shell("echo so; exit 3"), Duration::from_secs(600)).unwrap();
        assert_eq!(text, "so\n");
    }
}
