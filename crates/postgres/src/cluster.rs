//! Makes a temporary cluster in an admitted directory, connects to it, and ends it, by orders to
//! its guard. The guard does the rest and outlives diskproof, so that the cluster is removed in
//! every case. Which of the two holds the directory at which time: head of `claim`.

use crate::claim::{IN_USE_FOR, claim_left, claim_within};
use crate::client::PostgresClient;
use crate::cluster_files::{self, CLUSTER_NAME, DATA_NAME};
use crate::error::PostgresError;
use crate::guard::{self, ERROR, MADE, REMOVED, RESTART, STARTED, STAYS, SUPER_USER};
use crate::programs::Programs;
use crate::server_processes::{Parent, end_processes};
use crate::stream::StopCheck;
use crate::user::ServerUser;
use diskproof_device::{Admission, KeptDirectory, OpenError, reported_lines};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The longest that a start may take, with initdb. That writes 40 MB, for which a slow disk may
/// take a minute.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest wait for the end of a cluster. A server whose disk answers has ended by then; the
/// guard goes on for as long as it takes. Chosen, not measured.
const END_TIMEOUT: Duration = Duration::from_secs(75);
/// The time for the guard to notice that its server has ended, and to say how. Chosen: many of
/// its looks.
const EXPLAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause before a wait for the guard or for its server looks again: a user does not notice it.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A cluster that runs in a directory of the target, until it is ended or dropped.
#[derive(Debug)]
pub struct Cluster {
    guard: Child,
    /// The guard ends when this closes.
    lifeline: Option<ChildStdin>,
    /// The lines that the guard prints.
    lines: Receiver<String>,
    /// The data directory.
    data: OwnedFd,
    /// The directory of the cluster until the guard has claimed it. It is locked, so that no other
    /// run takes it for one that a crash left.
    unclaimed: Option<KeptDirectory>,
    /// The path of the cluster's directory.
    path: PathBuf,
    programs: Programs,
    user: Option<ServerUser>,
}

impl Cluster {
    /// Makes a cluster in an admitted directory and starts its server. `stop` ends the wait; the
    /// removal is then waited for until `deadline`. A disk may hold the calling thread for as long
    /// as it holds the new directory.
    pub fn start(
        admission: Admission,
        programs: Programs,
        stop: &StopCheck,
        deadline: Option<Instant>,
    ) -> Result<Self, PostgresError> {
        let user = ServerUser::needed();
        let target = PathBuf::from(&admission.identity().path);
        let mut guard = guard::start(&programs.folder, user, &target)
            .map_err(|error| PostgresError::program("diskproof postgres-guard", error))?;
        let lines = reported_lines(&mut guard)?;
        let lifeline = guard.stdin.take();
        let made = make_directory(admission, user)?;
        let mut cluster = Self {
            guard,
            lifeline,
            lines,
            data: made.data,
            unclaimed: Some(made.directory),
            path: target.join(CLUSTER_NAME),
            programs,
            user,
        };
        match cluster.start_server(stop) {
            Ok(()) => {
                cluster.unclaimed = None;
                Ok(cluster)
            }
            Err(error) => Err(cluster.end_after(error, deadline)),
        }
    }

    fn start_server(&self, stop: &StopCheck) -> Result<(), PostgresError> {
        self.send_order(MADE)?;
        self.wait_until_ready(stop)
    }

    /// Waits until the guard has started the server, then until the server accepts a session.
    fn wait_until_ready(&self, stop: &StopCheck) -> Result<(), PostgresError> {
        let deadline = Instant::now() + START_TIMEOUT;
        self.wait_for_process(stop, deadline)?;
        while Instant::now() < deadline {
            if stop() {
                return Err(PostgresError::Stopped);
            }
            self.check()?;
            match self.connect(stop) {
                Ok(_) => return Ok(()),
                // It is starting: there is no socket yet, or it refuses connections.
                Err(PostgresError::Connection(_) | PostgresError::Statement { .. }) => {}
                Err(error) => return Err(error),
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Err(not_started())
    }

    /// Waits for the guard's line that it has started the process of the server.
    fn wait_for_process(&self, stop: &StopCheck, deadline: Instant) -> Result<(), PostgresError> {
        while Instant::now() < deadline {
            if stop() {
                return Err(PostgresError::Stopped);
            }
            match self.lines.recv_timeout(POLL_INTERVAL) {
                Ok(line) if line == STARTED => return Ok(()),
                Ok(line) => return Err(server_error(&line)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(guard_ended()),
            }
        }
        Err(not_started())
    }

    /// Restarts the server with its changed settings. All sessions end.
    pub fn restart(&self, stop: &StopCheck) -> Result<(), PostgresError> {
        self.send_order(RESTART)?;
        self.wait_until_ready(stop)
    }

    /// Sends an order to the guard, which is a line.
    fn send_order(&self, order: &str) -> Result<(), PostgresError> {
        let Some(mut lifeline) = self.lifeline.as_ref() else {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        };
        writeln!(lifeline, "{order}")?;
        Ok(())
    }

    /// Fails if the server does not run any more; the error says how it ended. Takes a line of the
    /// guard, so that a later call has nothing to report.
    pub fn check(&self) -> Result<(), PostgresError> {
        match self.lines.try_recv() {
            Ok(line) => Err(server_error(&line)),
            Err(std::sync::mpsc::TryRecvError::Empty) => Ok(()),
            Err(std::sync::mpsc::TryRecvError::Disconnected) => Err(guard_ended()),
        }
    }

    /// Returns the cause of an error: the end of the server if it has ended, else the error itself.
    pub fn explain(&self, error: PostgresError) -> PostgresError {
        cause(error, &self.lines)
    }

    /// A new session over the cluster's own socket.
    pub fn connect(&self, stop: &StopCheck) -> Result<PostgresClient, PostgresError> {
        let socket = guard::path_of(&self.data).join(".s.PGSQL.5432");
        PostgresClient::connect(&socket, SUPER_USER, StopCheck::clone(stop))
    }

    /// The programs of the server.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    pub(crate) fn data(&self) -> &OwnedFd {
        &self.data
    }

    pub(crate) fn user(&self) -> Option<ServerUser> {
        self.user
    }

    /// Ends the cluster after an error, which is returned; one of the removal is as important.
    pub fn end_after(self, error: PostgresError, deadline: Option<Instant>) -> PostgresError {
        // The first error is the one that matters.
        error.before_end(self.end(deadline).map(drop))
    }

    /// Stops the server and removes the cluster. Waits for that until `deadline` at most: a disk
    /// may hold the server's processes for long, and the guard removes the cluster once it has let
    /// go of them, also after this process has ended. Returns the error of a server that had failed
    /// before, unless it was told of that.
    pub fn end(
        mut self,
        deadline: Option<Instant>,
    ) -> Result<Option<PostgresError>, PostgresError> {
        // The guard removes the directory only where no run holds it to make a cluster.
        drop(self.unclaimed.take());
        drop(self.lifeline.take());
        let target = self.path.parent().unwrap_or(Path::new("."));
        let longest = Instant::now() + END_TIMEOUT;
        let end = match deadline {
            Some(deadline) => deadline.min(longest),
            None => longest,
        };
        let mut failure = None;
        let mut last_line = String::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    // The last line is about the removal.
                    if last_line.starts_with(ERROR) {
                        failure = Some(server_error(&last_line));
                    }
                    last_line = line;
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(PostgresError::removed_later(target));
                }
            }
        }
        let _ = self.guard.wait();
        let path = self.path.display().to_string();
        if last_line == REMOVED {
            Ok(failure)
        } else if let Some(why) = last_line.strip_prefix(ERROR) {
            let why = why.to_owned();
            Err(PostgresError::NotRemoved { path, why })
        } else if let Some(what) = last_line.strip_prefix(STAYS) {
            let what = what.to_owned();
            Err(OpenError::Stays { path, what }.into())
        } else {
            // The guard was killed.
            remove_leftover(target)?;
            Ok(failure)
        }
    }
}

/// A new directory of a cluster, and that of its data.
struct MadeDirectory {
    directory: KeptDirectory,
    data: OwnedFd,
}

/// Makes the directory of the cluster and that of its data, or nothing.
fn make_directory(
    admission: Admission,
    user: Option<ServerUser>,
) -> Result<MadeDirectory, PostgresError> {
    let directory = KeptDirectory::create(admission, CLUSTER_NAME)?;
    match make_data(&directory, user) {
        Ok(data) => Ok(MadeDirectory { directory, data }),
        Err(error) => {
            // The first error says why.
            let _ = directory
                .remove(&|entry| entry.depth == 0 && entry.name_bytes() == DATA_NAME.as_bytes());
            Err(error.into())
        }
    }
}

fn make_data(directory: &KeptDirectory, user: Option<ServerUser>) -> Result<OwnedFd, OpenError> {
    directory.write_claim()?;
    directory.create_directory(DATA_NAME, user.map(|user| (user.uid, user.gid)))
}

/// The error that a line of the guard reports.
fn server_error(line: &str) -> PostgresError {
    PostgresError::Server(line.strip_prefix(ERROR).unwrap_or(line).to_owned())
}

fn not_started() -> PostgresError {
    PostgresError::Server(format!(
        "it did not start within {} s",
        START_TIMEOUT.as_secs()
    ))
}

fn guard_ended() -> PostgresError {
    PostgresError::Server("its guard process was killed".to_owned())
}

/// Removes the cluster that an earlier run could not remove, as after a power cut. Returns its path
/// if there was one.
pub fn remove_leftover(target: &Path) -> Result<Option<PathBuf>, PostgresError> {
    remove_leftover_within(target, IN_USE_FOR)
}

fn remove_leftover_within(
    target: &Path,
    in_use_for: Duration,
) -> Result<Option<PathBuf>, PostgresError> {
    let Some(claimed) = claim_within(in_use_for, || claim_left(target))? else {
        return Ok(None);
    };
    let path = target.join(CLUSTER_NAME);
    if let Ok(data) = claimed.open_directory(DATA_NAME) {
        end_processes(data.as_fd(), Parent::Other).map_err(|why| PostgresError::NotRemoved {
            path: path.display().to_string(),
            why,
        })?;
    }
    cluster_files::remove(claimed, None)?;
    Ok(Some(path))
}

/// The cause of an error, by what the guard says next. An error of the server is a line of the
/// guard already, and what it says then is about the removal.
fn cause(error: PostgresError, lines: &Receiver<String>) -> PostgresError {
    if matches!(error, PostgresError::Server(_)) {
        return error;
    }
    match lines.recv_timeout(EXPLAIN_TIMEOUT) {
        Ok(line) => server_error(&line),
        Err(_) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_device::{Intent, admit, probe};

    #[test]
    fn cluster_that_another_run_makes_is_no_leftover() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let identity = probe(place.path()).unwrap();
        let size_bytes = 1 << 20;
        let admission = admit(identity, Intent::Scratch { size_bytes }).unwrap();
        // Its guard has not claimed it yet.
        let made = make_directory(admission, None).unwrap();
        let error = remove_leftover_within(place.path(), Duration::ZERO).unwrap_err();
        assert!(
            matches!(error, PostgresError::Open(OpenError::InUse { .. })),
            "{error}"
        );
        let path = place.path().join(CLUSTER_NAME);
        assert!(path.join(DATA_NAME).exists());
        // As after kill -9.
        drop(made);
        let removed = remove_leftover_within(place.path(), Duration::ZERO).unwrap();
        assert_eq!(removed, Some(path.clone()));
        assert!(!path.exists());
    }
}
