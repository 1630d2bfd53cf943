//! Starts, stops and removes the cluster, in a process of its own: the guard. It is there before
//! the directory of the cluster is, since a disk may hold the process that makes it. It ends when
//! its standard input closes, however diskproof ends, also by kill -9. Until then it takes orders,
//! each a line: that the directory is made, and to restart the server, which then reads settings
//! that count from its start. It works in the directory under test, and is the program itself with
//! a hidden verb. When it holds which lock is told in `claim`.

use crate::claim::{IN_USE_FOR, claim_left, claim_made, claim_within};
use crate::cluster_files::{self, DATA_NAME};
use crate::program_log::ProgramLog;
use crate::server_processes::{ENDING_TIMES, POLL_INTERVAL, Parent, end_processes};
use crate::user::{GuardUser, ServerUser};
use diskproof_device::{
    ClaimedDirectory, OpenError, ending_signals, report_line, spawn_with_limit_of_user,
};
use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use std::ffi::OsString;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The verb of the command line that starts the guard; no help shows it.
pub const GUARD_VERB: &str = "postgres-guard";
/// The superuser and only user of the cluster.
pub(crate) const SUPER_USER: &str = "diskproof";
/// The order to start a server in the directory, which is made; a line to the guard.
pub(crate) const MADE: &str = "made";
/// The order to restart the server; a line to the guard.
pub(crate) const RESTART: &str = "restart";
/// The guard's line once it has started the server.
pub(crate) const STARTED: &str = "started";
/// The guard's last line where the whole directory is gone.
pub(crate) const REMOVED: &str = "removed";
/// Begins the guard's line about an error; the reason follows.
pub(crate) const ERROR: &str = "error: ";
/// Begins the guard's last line where the directory holds what is not of the cluster.
pub(crate) const STAYS: &str = "stays: ";

/// The time for a server to end in order. It writes to the disk what it has changed: at most the
/// shared buffers of 64 MB. Chosen, not measured.
const SHUT_DOWN_TIMEOUT: Duration = Duration::from_secs(40);

/// The settings of the server. They keep it to itself: no network, nothing outside its directory,
/// no work beside the measured one. WAL segments are kept and recycled, as on a busy server.
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
    let Some(arguments) = GuardArguments::parse(arguments) else {
        return ExitCode::from(USAGE_CODE);
    };
    match arguments.run_guard() {
        Ok(ServerEnd::Ordered) => report_line(REMOVED),
        Ok(ServerEnd::Failed(why)) => {
            report_line(&format!("{ERROR}{why}"));
            report_line(REMOVED);
        }
        Err(NotRemoved::Foreign(what)) => report_line(&format!("{STAYS}{what}")),
        Err(NotRemoved::Failed(why)) => report_line(&format!("{ERROR}{why}")),
    }
    ExitCode::SUCCESS
}

/// The exit code for arguments that are not those of [`start`].
const USAGE_CODE: u8 = 2;

/// The end of the server of a cluster that is removed.
enum ServerEnd {
    /// The guard ended it, or it never started.
    Ordered,
    /// It failed; a clause with the reason.
    Failed(String),
}

/// The reason why the cluster is not removed.
enum NotRemoved {
    /// Its directory holds these files of another program.
    Foreign(String),
    /// A clause with the error.
    Failed(String),
}

impl From<String> for NotRemoved {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// The guard starts these programs as this user; `None` for the user that runs the guard.
struct GuardArguments {
    programs: PathBuf,
    user: Option<ServerUser>,
}

/// A program that has ended.
struct EndedProgram {
    end: ProgramEnd,
    log: ProgramLog,
}

/// The cause of a program's end.
enum ProgramEnd {
    /// The program ended by itself.
    Own(ExitStatus),
    /// The guard ended it, as it was ordered to.
    Ordered,
}

impl GuardArguments {
    /// Reads the arguments that [`start`] gives to the guard.
    fn parse(arguments: &[OsString]) -> Option<Self> {
        let [programs, user] = arguments else {
            return None;
        };
        Some(Self {
            programs: PathBuf::from(programs),
            user: GuardUser::parse(user.to_str()?)?.user,
        })
    }

    /// Serves until the end, then removes everything. The order matters: the guard listens before
    /// the directory exists, so that it cannot miss its end; the directory is claimed before the
    /// server starts; and every process has ended before anything is removed.
    fn run_guard(&self) -> Result<ServerEnd, NotRemoved> {
        let orders = GuardOrders::listen().map_err(|error| error.to_string())?;
        // Sessions of a server that dies become children of this process.
        let _ = set_child_subreaper(Some(getpid()));
        let first = orders.wait_for_first();
        let claim = claim_after(first, Path::new(".")).map_err(|error| error.to_string())?;
        let Some(claimed) = claim else {
            return match first {
                FirstOrder::Made => Err("its directory has vanished".to_owned().into()),
                FirstOrder::End => Ok(ServerEnd::Ordered),
            };
        };
        if first == FirstOrder::End {
            // No server has run in it.
            remove(claimed, None)?;
            return Ok(ServerEnd::Ordered);
        }
        let data = claimed
            .open_directory(DATA_NAME)
            .map_err(|error| error.to_string())?;
        let served = match inherited(&data) {
            Ok(inherited_data) => self.serve(&inherited_data, &orders),
            Err(errno) => Err(errno.to_string()),
        };
        end_processes(data.as_fd(), Parent::Guard)?;
        remove(claimed, Some(&data))?;
        Ok(match served {
            Ok(()) => ServerEnd::Ordered,
            Err(why) => ServerEnd::Failed(why),
        })
    }

    /// Makes the cluster and runs its server until the end.
    fn serve(&self, data: &OwnedFd, orders: &GuardOrders) -> Result<(), String> {
        let path = path_of(data).display().to_string();
        let flags = ["--pgdata", &path, "--auth=trust", "--username", SUPER_USER];
        // After a failure initdb would empty the directory, whoever made what is in it.
        let more = ["--no-sync", "--no-clean", "--encoding=UTF8", "--no-locale"];
        // Without initdb its server ends in order, and removes its shared memory.
        let initdb = self.run(
            "initdb",
            &[&flags[..], &more].concat(),
            orders,
            Signal::KILL,
            || (),
        )?;
        match initdb.end {
            ProgramEnd::Ordered => return Ok(()),
            ProgramEnd::Own(status) if status.success() => {}
            ProgramEnd::Own(status) => {
                return Err(format!(
                    "initdb failed ({status}){}",
                    initdb.log.into_quote()
                ));
            }
        }
        let mut server_flags = vec!["-D", &path];
        for setting in SETTINGS {
            server_flags.extend(["-c", setting]);
        }
        loop {
            let server = self.run("postgres", &server_flags, orders, Signal::QUIT, || {
                report_line(STARTED)
            })?;
            match server.end {
                // The end, or a restart, was ordered. The disk may have failed the server before.
                ProgramEnd::Ordered => {
                    if let Some(line) = server.log.into_disk_failure() {
                        return Err(format!("its disk failed a request: {line}"));
                    }
                    if orders.is_end_due() {
                        return Ok(());
                    }
                }
                ProgramEnd::Own(status) => {
                    let quote = server.log.into_quote();
                    return Err(format!("it ended unexpectedly ({status}){quote}"));
                }
            }
        }
    }

    /// Runs a program until it ends, until the guard has to (then the signal ends the program), or
    /// until a restart is ordered (then it ends in order). Calls `started` once it runs.
    fn run(
        &self,
        program: &str,
        flags: &[&str],
        orders: &GuardOrders,
        signal: Signal,
        started: impl FnOnce(),
    ) -> Result<EndedProgram, String> {
        let path = self.programs.join(program);
        self.run_path(&path, flags, orders, signal, started)
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    fn run_path(
        &self,
        path: &Path,
        flags: &[&str],
        orders: &GuardOrders,
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
                let end = ProgramEnd::Own(status);
                return Ok(EndedProgram { end, log });
            }
            if orders.takes_restart() {
                shut_down(&mut child, orders, SHUT_DOWN_TIMEOUT)?;
                if !orders.is_end_due() {
                    let end = ProgramEnd::Ordered;
                    return Ok(EndedProgram { end, log });
                }
            }
            if orders.is_end_due() {
                end_child(&mut child, signal, ENDING_TIMES.after_quit)?;
                let end = ProgramEnd::Ordered;
                return Ok(EndedProgram { end, log });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Claims the directory of the cluster in `target` after the first order; `None` where there is
/// none. Waits a while for another process that holds it: a run that looks for leftovers, or the
/// run of this guard that was killed, whose end the guard notices before the kernel has closed the
/// descriptor with the lock.
fn claim_after(first: FirstOrder, target: &Path) -> Result<Option<ClaimedDirectory>, OpenError> {
    claim_within(IN_USE_FOR, || match first {
        FirstOrder::Made => claim_made(target),
        // What is there may be the cluster of another run.
        FirstOrder::End => claim_left(target),
    })
}

/// Removes the cluster, as [`cluster_files::remove`].
fn remove(claimed: ClaimedDirectory, data: Option<&OwnedFd>) -> Result<(), NotRemoved> {
    cluster_files::remove(claimed, data).map_err(|error| match error {
        OpenError::Stays { what, .. } => NotRemoved::Foreign(what),
        error => NotRemoved::Failed(error.to_string()),
    })
}

/// Lets a server end in order (SIGINT, a fast shutdown), unless the guard has to end meanwhile. One
/// that takes longer than `within` is left to the caller: a timeout.
fn shut_down(child: &mut Child, orders: &GuardOrders, within: Duration) -> std::io::Result<()> {
    let begun = Instant::now();
    send(child, Signal::INT);
    while child.try_wait()?.is_none() && !orders.is_end_due() {
        if begun.elapsed() >= within {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Ends a program that the guard has started, by this signal, and by SIGKILL after `within`.
fn end_child(child: &mut Child, signal: Signal, within: Duration) -> std::io::Result<()> {
    let begun = Instant::now();
    send(child, signal);
    while child.try_wait()?.is_none() {
        if begun.elapsed() >= within {
            child.kill()?;
            break;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

fn send(child: &Child, signal: Signal) {
    // It may have ended meanwhile.
    let _ = kill_process(Pid::from_child(child), signal);
}

/// The orders that the guard has got so far, by lines on its standard input, by its end, or by a
/// signal.
#[derive(Clone)]
struct GuardOrders {
    /// The guard has to end: its standard input was closed, or a signal came.
    end: Arc<AtomicBool>,
    /// The directory of the cluster is made, so that the server may start in it.
    made: Arc<AtomicBool>,
    /// The server has to restart. The guard takes this order back when it carries it out.
    restart: Arc<AtomicBool>,
}

/// The order that decides if a server starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstOrder {
    /// The directory is made.
    Made,
    /// The guard has to end before it was.
    End,
}

impl GuardOrders {
    /// Takes orders from now on.
    fn listen() -> std::io::Result<Self> {
        let orders = Self {
            end: ending_signals()?,
            made: Arc::default(),
            restart: Arc::default(),
        };
        let orders_of_thread = orders.clone();
        std::thread::Builder::new().spawn(move || {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                let order = match line.as_str() {
                    MADE => &orders_of_thread.made,
                    RESTART => &orders_of_thread.restart,
                    _ => continue,
                };
                order.store(true, Ordering::SeqCst);
            }
            orders_of_thread.end.store(true, Ordering::SeqCst);
        })?;
        Ok(orders)
    }

    /// Waits until the directory is made or the guard has to end. If both orders came, the
    /// directory is made.
    fn wait_for_first(&self) -> FirstOrder {
        while !self.is_end_due() && !self.made.load(Ordering::SeqCst) {
            std::thread::sleep(POLL_INTERVAL);
        }
        if self.made.load(Ordering::SeqCst) {
            FirstOrder::Made
        } else {
            FirstOrder::End
        }
    }

    /// True if a restart was ordered. Takes the order, so that it is carried out once.
    fn takes_restart(&self) -> bool {
        self.restart.swap(false, Ordering::SeqCst)
    }

    fn is_end_due(&self) -> bool {
        self.end.load(Ordering::SeqCst)
    }
}

/// Starts the guard in the target. Its own group keeps Ctrl-C of the terminal away from it. The
/// server inherits its limit on descriptors, and plans by it how many files it may keep open.
pub(crate) fn start(
    programs: &Path,
    user: Option<ServerUser>,
    target: &Path,
) -> std::io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(GUARD_VERB)
        .arg(programs)
        .arg(GuardUser { user }.to_argument())
        .current_dir(target)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    spawn_with_limit_of_user(&mut command)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_files::CLUSTER_NAME;
    use diskproof_device::{Intent, KeptDirectory, admit, probe};
    use std::io::{BufRead as _, BufReader, ErrorKind};
    use std::os::unix::process::ExitStatusExt as _;

    /// A shell that ignores this signal and waits for its standard input.
    fn stubborn_child(signal: &str) -> Child {
        let mut child = Command::new("/bin/sh")
            .args(["-c", &format!("trap '' {signal}; echo; read line")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        child
    }

    #[test]
    fn child_that_ignores_the_signal_is_killed() {
        let long = Duration::from_secs(1 << 20);
        for (ignored, within, signal) in [
            ("INT", long, Signal::QUIT),
            ("QUIT", Duration::ZERO, Signal::KILL),
        ] {
            let mut child = stubborn_child(ignored);
            end_child(&mut child, Signal::QUIT, within).unwrap();
            let status = child.wait().unwrap();
            assert_eq!(status.signal(), Some(signal.as_raw()), "{ignored}");
        }
    }

    fn no_orders() -> GuardOrders {
        GuardOrders {
            end: Arc::default(),
            made: Arc::default(),
            restart: Arc::default(),
        }
    }

    /// A run that is killed right after its order has made the directory, whose claim is its own.
    #[test]
    fn directory_that_was_made_counts_also_where_the_end_came_with_it() {
        let orders = no_orders();
        orders.end.store(true, Ordering::SeqCst);
        assert_eq!(orders.wait_for_first(), FirstOrder::End);
        orders.made.store(true, Ordering::SeqCst);
        assert_eq!(orders.wait_for_first(), FirstOrder::Made);
        orders.restart.store(true, Ordering::SeqCst);
        assert!(orders.takes_restart() && !orders.takes_restart());
    }

    /// The order to end ends the wait for a shutdown; without it the time does.
    #[test]
    fn shutdown_ends_with_the_server_with_its_time_and_with_an_order() {
        let orders = no_orders();
        let long = Duration::from_secs(1 << 20);
        let mut obedient = stubborn_child("QUIT");
        shut_down(&mut obedient, &orders, long).unwrap();
        let status = obedient.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::INT.as_raw()));
        let mut stubborn = stubborn_child("INT");
        let error = shut_down(&mut stubborn, &orders, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        orders.end.store(true, Ordering::SeqCst);
        shut_down(&mut stubborn, &orders, long).unwrap();
        assert!(stubborn.try_wait().unwrap().is_none());
        stubborn.kill().unwrap();
        stubborn.wait().unwrap();
    }

    /// The kernel closes the descriptors of a killed run one after the other: the guard's pipe
    /// before the directory that was made after it.
    #[test]
    fn guard_of_a_killed_run_waits_for_the_lock_on_its_directory() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let identity = probe(place.path()).unwrap();
        let size_bytes = 1 << 20;
        let admission = admit(identity, Intent::Scratch { size_bytes }).unwrap();
        let made = KeptDirectory::create(admission, CLUSTER_NAME).unwrap();
        made.write_claim().unwrap();
        let held_for = Duration::from_millis(100);
        let holder = std::thread::spawn(move || {
            std::thread::sleep(held_for);
            drop(made);
        });
        let claimed = claim_after(FirstOrder::End, place.path()).unwrap().unwrap();
        holder.join().unwrap();
        remove(claimed, None).map_err(|_| "not removed").unwrap();
        assert!(!place.path().join(CLUSTER_NAME).exists());
        let nothing = claim_after(FirstOrder::End, place.path()).unwrap();
        assert!(nothing.is_none());
    }
}
