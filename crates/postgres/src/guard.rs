//! The process that starts, stops and removes the cluster. It is there before the directory of the
//! cluster is, since a disk may hold the process that makes it. It ends when its standard input
//! closes, which happens however diskproof ends, also by kill -9. Until then a line on it says that
//! the directory is made, and others restart the server, so that it reads settings that count from
//! its start. It works in the directory under test, and is the program itself with a hidden verb.

use crate::cluster_files::{self, CLUSTER_NAME, DATA_NAME, MADE, RESTART, SUPER_USER};
use crate::programs::ProgramLog;
use crate::user::ServerUser;
use diskproof_device::{ClaimedDirectory, OpenError, ending_signals, report_line};
use rustix::fs::Stat;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};
use std::ffi::OsString;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The verb of the command line that starts the guard; no help shows it.
pub const GUARD_VERB: &str = "postgres-guard";
/// The guard's line once it has started the server.
pub(crate) const STARTED: &str = "started";
/// The guard's last line where the whole directory is gone.
pub(crate) const REMOVED: &str = "removed";
/// Begins the guard's line about an error; the reason follows.
pub(crate) const ERROR: &str = "error: ";
/// Begins the guard's last line where the directory holds what is not of the cluster.
pub(crate) const STAYS: &str = "stays: ";

/// An immediate shutdown (SIGQUIT) takes milliseconds unless the disk hangs; the server itself
/// kills its sessions after 5 s.
const QUIT_WITHIN: Duration = Duration::from_secs(7);
/// A shutdown in order writes what the server has changed.
const SHUT_DOWN_WITHIN: Duration = Duration::from_secs(40);
/// The guard looks for ended processes and orders after this time, and is idle between.
const POLL: Duration = Duration::from_millis(10);

/// Only what keeps the server to itself: no network, nothing outside its directory, no work that
/// the measurement did not ask for. WAL segments are kept and recycled, as on a busy server.
#[rustfmt::skip]
const SETTINGS: [&str; 17] = [
    "listen_addresses=", "unix_socket_directories=.", "unix_socket_permissions=0700", "port=5432",
    "max_connections=40", "shared_buffers=64MB", "dynamic_shared_memory_type=mmap",
    "huge_pages=off", "autovacuum=off", "checkpoint_timeout=1d", "min_wal_size=256MB",
    "max_wal_size=1GB", "log_checkpoints=off", "logging_collector=off", "log_destination=stderr",
    "restart_after_crash=off", "fsync=on",
];

/// Runs the guard with the arguments behind its verb.
pub fn guard(arguments: &[OsString]) -> ExitCode {
    let Some(orders) = GuardOrders::parse(arguments) else {
        return ExitCode::from(2);
    };
    let ended = orders.carry_out();
    if let Ok(Err(why)) = &ended {
        report_line(&format!("{ERROR}{why}"));
    }
    match ended {
        Ok(_) => report_line(REMOVED),
        Err(why) if why.starts_with(STAYS) => report_line(&why),
        Err(why) => report_line(&format!("{ERROR}{why}")),
    }
    ExitCode::SUCCESS
}

/// The guard starts these programs as this user.
struct GuardOrders {
    programs: PathBuf,
    user: Option<ServerUser>,
}

/// A program that has ended.
struct EndedProgram {
    /// `None` where the guard ended it.
    status: Option<ExitStatus>,
    log: ProgramLog,
}

impl GuardOrders {
    fn parse(arguments: &[OsString]) -> Option<Self> {
        let [programs, user] = arguments else {
            return None;
        };
        Some(Self {
            programs: PathBuf::from(programs),
            user: ServerUser::of_argument(user.to_str()?)?,
        })
    }

    /// Serves until the end, then removes everything. The outer error: the cluster is not removed.
    /// The inner one: the server failed.
    fn carry_out(&self) -> Result<Result<(), String>, String> {
        let ending = Ending::listen().map_err(|error| error.to_string())?;
        // Sessions of a server that dies become children of this process.
        let _ = set_child_subreaper(Some(getpid()));
        let is_made = ending.wait_until_made();
        let directory = ClaimedDirectory::claim(Path::new("."), CLUSTER_NAME)
            .map_err(|error| error.to_string())?;
        let Some(claimed) = directory else {
            return if is_made {
                Err("its directory has vanished".to_owned())
            } else {
                Ok(Ok(()))
            };
        };
        if !is_made {
            // No server has run in it.
            return remove(claimed, None).map(Ok);
        }
        let data = claimed
            .open_directory(DATA_NAME)
            .map_err(|error| error.to_string())?;
        let served = match inherited(&data) {
            Ok(inherited_data) => self.serve(&inherited_data, &ending),
            Err(errno) => Err(errno.to_string()),
        };
        end_processes(data.as_fd(), Parent::Guard)?;
        remove(claimed, Some(&data))?;
        Ok(served)
    }

    /// Makes the cluster and runs its server until the end.
    fn serve(&self, data: &OwnedFd, ending: &Ending) -> Result<(), String> {
        let path = path_of(data).display().to_string();
        let flags = ["--pgdata", &path, "--auth=trust", "--username", SUPER_USER];
        // After a failure initdb would empty the directory, whoever made what is in it.
        let more = ["--no-sync", "--no-clean", "--encoding=UTF8", "--no-locale"];
        // Without initdb its server ends in order, and removes its shared memory.
        let initdb = self.run(
            "initdb",
            &[&flags[..], &more].concat(),
            ending,
            Signal::KILL,
            || (),
        )?;
        match initdb.status {
            None => return Ok(()),
            Some(status) if status.success() => {}
            Some(status) => return Err(format!("initdb failed ({status}){}", initdb.log.quoted())),
        }
        let mut server_flags = vec!["-D", &path];
        for setting in SETTINGS {
            server_flags.extend(["-c", setting]);
        }
        loop {
            let server = self.run("postgres", &server_flags, ending, Signal::QUIT, || {
                report_line(STARTED)
            })?;
            match server.status {
                None if ending.is_due() => return Ok(()),
                None => {}
                Some(status) => {
                    let said = server.log.quoted();
                    return Err(format!("it ended unexpectedly ({status}){said}"));
                }
            }
        }
    }

    /// Runs a program until it ends, until the guard has to (then the signal ends the program), or
    /// until a restart is ordered (then it ends in order).
    fn run(
        &self,
        program: &str,
        flags: &[&str],
        ending: &Ending,
        signal: Signal,
        started: impl FnOnce(),
    ) -> Result<EndedProgram, String> {
        let path = self.programs.join(program);
        self.run_path(&path, flags, ending, signal, started)
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    fn run_path(
        &self,
        path: &Path,
        flags: &[&str],
        ending: &Ending,
        signal: Signal,
        started: impl FnOnce(),
    ) -> std::io::Result<EndedProgram> {
        let log = ProgramLog::new()?;
        let mut command = Command::new(path);
        command
            .args(flags)
            .current_dir("/")
            .env_clear()
            .env("LC_ALL", "C")
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(log.output()?)
            .stderr(log.output()?);
        if let Some(user) = self.user {
            command.uid(user.uid).gid(user.gid);
        }
        let mut child = command.spawn()?;
        started();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(EndedProgram {
                    status: Some(status),
                    log,
                });
            }
            if ending.takes_restart() {
                shut_down(&mut child, ending)?;
                if !ending.is_due() {
                    return Ok(EndedProgram { status: None, log });
                }
            }
            if ending.is_due() {
                end_child(&mut child, signal)?;
                return Ok(EndedProgram { status: None, log });
            }
            std::thread::sleep(POLL);
        }
    }
}

fn remove(claimed: ClaimedDirectory, data: Option<&OwnedFd>) -> Result<(), String> {
    cluster_files::remove(claimed, data).map_err(|error| match error {
        OpenError::Stays { what, .. } => format!("{STAYS}{what}"),
        error => error.to_string(),
    })
}

/// Lets a server end in order (SIGINT, a fast shutdown), unless the guard has to end meanwhile.
fn shut_down(child: &mut Child, ending: &Ending) -> std::io::Result<()> {
    let begun = Instant::now();
    send(child, Signal::INT);
    while child.try_wait()?.is_none() && !ending.is_due() {
        if begun.elapsed() >= SHUT_DOWN_WITHIN {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Ends a program that the guard has started.
fn end_child(child: &mut Child, signal: Signal) -> std::io::Result<()> {
    let begun = Instant::now();
    send(child, signal);
    while child.try_wait()?.is_none() {
        if begun.elapsed() >= QUIT_WITHIN {
            child.kill()?;
            break;
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

fn send(child: &Child, signal: Signal) {
    // It may have ended meanwhile.
    let _ = kill_process(Pid::from_child(child), signal);
}

/// The end of the guard: its standard input closes, or a signal comes. And the start of its server.
#[derive(Clone)]
struct Ending {
    due: Arc<AtomicBool>,
    made: Arc<AtomicBool>,
    restart: Arc<AtomicBool>,
}

impl Ending {
    fn listen() -> std::io::Result<Self> {
        let ending = Self {
            due: ending_signals()?,
            made: Arc::default(),
            restart: Arc::default(),
        };
        let theirs = ending.clone();
        std::thread::Builder::new().spawn(move || {
            let orders = std::io::stdin().lines().map_while(Result::ok);
            for order in orders {
                let ordered = match order.as_str() {
                    MADE => &theirs.made,
                    RESTART => &theirs.restart,
                    _ => continue,
                };
                ordered.store(true, Ordering::SeqCst);
            }
            theirs.due.store(true, Ordering::SeqCst);
        })?;
        Ok(ending)
    }

    /// Waits for the directory; false where there is an end instead.
    fn wait_until_made(&self) -> bool {
        while !self.is_due() && !self.made.load(Ordering::SeqCst) {
            std::thread::sleep(POLL);
        }
        self.made.load(Ordering::SeqCst)
    }

    /// True if a restart was ordered; once for each order.
    fn takes_restart(&self) -> bool {
        self.restart.swap(false, Ordering::SeqCst)
    }

    fn is_due(&self) -> bool {
        self.due.load(Ordering::SeqCst)
    }
}

/// The guard, as diskproof starts it. Its own group keeps Ctrl-C of the terminal away from it.
pub(crate) fn command(programs: &Path, user: Option<ServerUser>, target: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(GUARD_VERB)
        .arg(programs)
        .arg(ServerUser::to_argument(user))
        .current_dir(target)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// A directory as a descriptor that the programs inherit. They reach it by [`path_of`] even where
/// the directories above it are closed to their user, and the path of its socket is short.
pub(crate) fn inherited(directory: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    rustix::io::dup(directory)
}

/// The path of an open directory, in this process and in those that inherit it.
pub(crate) fn path_of(directory: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

/// Programs that work in a data directory. A shell that entered it is not one.
const NAMES: [&str; 2] = ["postgres", "postmaster"];
/// Sessions end by themselves when their server has ended, and remove their shared memory.
const ALONE_WITHIN: Duration = Duration::from_millis(1500);
/// Later than this a process waits for a disk that does not answer.
const END_WITHIN: Duration = Duration::from_secs(60);
/// Instead of `POLL` while a disk holds a process, perhaps for hours.
const PATIENT_POLL: Duration = Duration::from_secs(1);

/// Whose children the processes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parent {
    /// This process's, which has no others: all of them must end, also one that has not entered
    /// the data directory yet.
    Guard,
    /// Those of another process.
    Other,
}

/// Ends every process of the server whose data directory this is: all of them work in it.
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
