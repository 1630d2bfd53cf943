//! A temporary cluster as diskproof sees it: made in an admitted directory, connected to, given
//! other settings in whichever way its server accepts them, ended. The guard does the rest and
//! outlives diskproof, so that the cluster is removed in every case.

use crate::client::PostgresClient;
use crate::cluster_files::{self, CLUSTER_NAME, DATA_NAME, MADE, RESTART, SUPER_USER};
use crate::error::PostgresError;
use crate::guard::{self, ERROR, Parent, REMOVED, STARTED, STAYS, end_processes};
use crate::programs::Programs;
use crate::stream::StopCheck;
use crate::user::ServerUser;
use diskproof_device::{Admission, ClaimedDirectory, KeptDirectory, OpenError, reported_lines};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// initdb writes 40 MB; a slow disk may take a minute.
const START_WITHIN: Duration = Duration::from_secs(120);
/// A server whose disk answers has ended by then. The guard goes on for as long as it takes.
const END_WITHIN: Duration = Duration::from_secs(75);
/// The guard of a run that was killed needs a moment.
const IN_USE_FOR: Duration = Duration::from_secs(10);
/// Waits for the guard and for its end look after this time.
const POLL: Duration = Duration::from_millis(20);

/// A cluster that runs in a directory of the target, until it is ended or dropped.
#[derive(Debug)]
pub struct Cluster {
    guard: Child,
    /// The guard ends when this closes.
    lifeline: Option<ChildStdin>,
    lines: Receiver<String>,
    data: OwnedFd,
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
        let mut guard = guard::command(&programs.folder, user, &target)
            .spawn()
            .map_err(|error| PostgresError::program("diskproof postgres-guard", error))?;
        let lines = reported_lines(&mut guard)?;
        let lifeline = guard.stdin.take();
        let data = make_directory(admission, user)?;
        let cluster = Self {
            guard,
            lifeline,
            lines,
            data,
            path: target.join(CLUSTER_NAME),
            programs,
            user,
        };
        match cluster.start_server(stop) {
            Ok(()) => Ok(cluster),
            Err(error) => Err(cluster.end_after(error, deadline)),
        }
    }

    fn start_server(&self, stop: &StopCheck) -> Result<(), PostgresError> {
        self.order(MADE)?;
        self.wait_until_ready(stop)
    }

    fn wait_until_ready(&self, stop: &StopCheck) -> Result<(), PostgresError> {
        let (begun, mut is_started) = (Instant::now(), false);
        while begun.elapsed() < START_WITHIN {
            if stop() {
                return Err(PostgresError::Stopped);
            }
            if !is_started {
                is_started = match self.lines.recv_timeout(POLL) {
                    Ok(line) if line == STARTED => true,
                    Ok(line) => return Err(server_error(&line)),
                    Err(RecvTimeoutError::Timeout) => false,
                    Err(RecvTimeoutError::Disconnected) => return Err(guard_ended()),
                };
                continue;
            }
            self.check()?;
            match self.connect(stop) {
                Ok(_) => return Ok(()),
                // It is starting: there is no socket yet, or it refuses connections.
                Err(PostgresError::Connection(_) | PostgresError::Statement { .. }) => {}
                Err(error) => return Err(error),
            }
            std::thread::sleep(POLL);
        }
        Err(PostgresError::Server(format!(
            "it did not start within {} s",
            START_WITHIN.as_secs()
        )))
    }

    /// Restarts the server with its changed settings. All sessions end.
    pub fn restart(&self, stop: &StopCheck) -> Result<(), PostgresError> {
        self.order(RESTART)?;
        self.wait_until_ready(stop)
    }

    /// A line to the guard.
    fn order(&self, order: &str) -> Result<(), PostgresError> {
        let Some(mut lifeline) = self.lifeline.as_ref() else {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        };
        writeln!(lifeline, "{order}")?;
        Ok(())
    }

    /// An error that says how the server ended, if it does not run any more.
    pub fn check(&self) -> Result<(), PostgresError> {
        match self.lines.try_recv() {
            Ok(line) => Err(server_error(&line)),
            Err(std::sync::mpsc::TryRecvError::Empty) => Ok(()),
            Err(std::sync::mpsc::TryRecvError::Disconnected) => Err(guard_ended()),
        }
    }

    /// The reason of an error: if the server has ended, how.
    pub fn explain(&self, error: PostgresError) -> PostgresError {
        // The guard notices the end of the server within moments.
        match self.lines.recv_timeout(Duration::from_secs(2)) {
            Ok(line) => server_error(&line),
            Err(_) => error,
        }
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
        match self.end(deadline) {
            Err(not_removed @ PostgresError::NotRemoved { .. }) => not_removed,
            Err(PostgresError::Open(stays @ OpenError::Stays { .. })) => PostgresError::Stays {
                first: Box::new(error),
                stays,
            },
            _ => error,
        }
    }

    /// Stops the server and removes the cluster. Waits for that until `deadline` at most: a disk
    /// may hold the server's processes for long, and the guard removes the cluster once it has let
    /// go of them, also after this process has ended.
    pub fn end(mut self, deadline: Option<Instant>) -> Result<(), PostgresError> {
        drop(self.lifeline.take());
        let target = self.path.parent().unwrap_or(Path::new("."));
        let longest = Instant::now() + END_WITHIN;
        let end = match deadline {
            Some(deadline) => deadline.min(longest),
            None => longest,
        };
        let mut last = String::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => last = line,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(PostgresError::removed_later(target));
                }
            }
        }
        let _ = self.guard.wait();
        let path = self.path.display().to_string();
        if last == REMOVED {
            Ok(())
        } else if let Some(why) = last.strip_prefix(ERROR) {
            let why = why.to_owned();
            Err(PostgresError::NotRemoved { path, why })
        } else if let Some(what) = last.strip_prefix(STAYS) {
            let what = what.to_owned();
            Err(OpenError::Stays { path, what }.into())
        } else {
            // The guard was killed.
            remove_leftover(target)?;
            Ok(())
        }
    }
}

/// Makes the directory of the cluster and that of its data, or nothing.
fn make_directory(
    admission: Admission,
    user: Option<ServerUser>,
) -> Result<OwnedFd, PostgresError> {
    let directory = KeptDirectory::create(admission, CLUSTER_NAME)?;
    match make_data(&directory, user) {
        Ok(data) => Ok(data),
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

fn server_error(line: &str) -> PostgresError {
    PostgresError::Server(line.strip_prefix(ERROR).unwrap_or(line).to_owned())
}

fn guard_ended() -> PostgresError {
    PostgresError::Server("its guard process was killed".to_owned())
}

/// Removes the cluster that an earlier run could not remove, as after a power cut. Returns its path
/// if there was one.
pub fn remove_leftover(target: &Path) -> Result<Option<PathBuf>, PostgresError> {
    let begun = Instant::now();
    let claimed = loop {
        match ClaimedDirectory::claim(target, CLUSTER_NAME) {
            Ok(Some(claimed)) => break claimed,
            Ok(None) => return Ok(None),
            Err(OpenError::InUse { .. }) if begun.elapsed() < IN_USE_FOR => {
                std::thread::sleep(POLL);
            }
            Err(error) => return Err(error.into()),
        }
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

/// A changed file of settings is read within moments.
const READ_WITHIN: Duration = Duration::from_secs(10);
/// The server is asked again after this time whether it has read them.
const READ_POLL: Duration = Duration::from_millis(5);

/// The server accepts a new value at one of these moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingScope {
    /// A session sets it (`SET`).
    Session,
    /// The server takes it when it reads its settings again.
    Reload,
    /// The server takes it when it starts.
    Restart,
}

/// A setting of a running server.
#[derive(Debug, Clone)]
pub struct ServerSetting {
    /// The name of the setting.
    pub name: String,
    /// The server accepts a new value at this moment.
    pub scope: SettingScope,
    /// The setting accepts these words; `None` where it accepts numbers or any text.
    pub words: Option<Vec<String>>,
}

impl Cluster {
    /// A setting; `None` where this server has none of that name.
    pub fn setting(
        &self,
        name: &str,
        stop: &StopCheck,
    ) -> Result<Option<ServerSetting>, PostgresError> {
        let mut session = self.connect(stop)?;
        let rows = session.query(&format!(
            "SELECT context, array_to_string(enumvals, ' ') FROM pg_settings WHERE name = '{name}'"
        ))?;
        let Some([Some(context), words]) = rows.first().and_then(|row| row.first_chunk()) else {
            return Ok(None);
        };
        let scope = match context.as_str() {
            "user" | "superuser" => SettingScope::Session,
            "sighup" => SettingScope::Reload,
            _ => SettingScope::Restart,
        };
        Ok(Some(ServerSetting {
            name: name.to_owned(),
            scope,
            words: words
                .as_ref()
                .map(|text| text.split(' ').map(str::to_owned).collect()),
        }))
    }

    /// Changes a setting of the whole server; one of a session stays as it is.
    pub fn change(
        &self,
        setting: &ServerSetting,
        value: &str,
        stop: &StopCheck,
    ) -> Result<(), PostgresError> {
        let name = &setting.name;
        if setting.scope == SettingScope::Session {
            return Ok(());
        }
        let mut session = self.connect(stop)?;
        if session.value(&format!("SHOW {name}"))? == value {
            return Ok(());
        }
        session.query(&format!("ALTER SYSTEM SET {name} = '{value}'"))?;
        if setting.scope == SettingScope::Restart {
            drop(session);
            return self.restart(stop);
        }
        session.query("SELECT pg_reload_conf()")?;
        drop(session);
        let begun = Instant::now();
        while !self.has_value(name, value, stop)? {
            if begun.elapsed() > READ_WITHIN {
                let what = format!("{name} did not become {value}");
                return Err(PostgresError::Protocol(what));
            }
            std::thread::sleep(READ_POLL);
        }
        Ok(())
    }

    fn has_value(&self, name: &str, value: &str, stop: &StopCheck) -> Result<bool, PostgresError> {
        let mut session = self.connect(stop)?;
        let is_set = session.value(&format!("SHOW {name}"))? == value;
        if !is_set || name != "io_workers" {
            return Ok(is_set);
        }
        // The server starts and ends them one by one.
        let running = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'io worker'";
        Ok(session.value(running)? == value)
    }
}

impl ServerSetting {
    /// Changes it in a session; one of the whole server stays as it is.
    pub fn set(&self, session: &mut PostgresClient, value: &str) -> Result<(), PostgresError> {
        match self.scope {
            SettingScope::Session => session
                .query(&format!("SET {} = '{value}'", self.name))
                .map(drop),
            SettingScope::Reload | SettingScope::Restart => Ok(()),
        }
    }
}
