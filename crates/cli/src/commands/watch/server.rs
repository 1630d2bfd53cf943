//! The PostgreSQL server alongside the disks. Its queries run in a separate thread, so that a slow
//! server delays no counter; each reading is taken together with the counters of the disks.

use crate::commands::check::layers::highest_layers;
use crate::failure::Failure;
use crate::stdio::Verbosity;
use diskproof_analysis::watch::{ServerObserver, ServerReading};
use diskproof_device::{probe, read_disks};
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_model::postgres::{ObservedServer, ServerView};
use diskproof_postgres::{ConnectInfo, PostgresError, StatSession, StopCheck, WatchedServer};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// The shortest time between two readings: the server collects its counters about once a second.
const PERIOD_MIN: Duration = Duration::from_secs(1);
/// The server is read this long before the end of a step, so that its answer is there in time.
const LEAD_MAX: Duration = Duration::from_millis(200);
/// The lead of a short step is a fifth of it.
const LEAD_DIVISOR: u32 = 5;
/// The thread looks so often whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time for the thread to see that it is to end, and to end its session.
const LEAVE_WITHIN: Duration = Duration::from_millis(300);
/// Time to find the devices of the data, which takes milliseconds.
const PROBE_WITHIN: Duration = Duration::from_secs(1);
/// Time between two attempts to connect again.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// After this many periods without an answer, the last step is not shown as the present one.
const SILENT_PERIODS: u32 = 2;

/// A server that is watched.
pub(super) struct ServerWatch {
    messages: Receiver<ServerMessage>,
    /// Sends the start of the steps to the thread; `None` once it is sent.
    begin: Option<Sender<Instant>>,
    /// Set when the thread is to end.
    stop: Arc<AtomicBool>,
    /// Time between two readings.
    period: Duration,
    /// The devices that the user named.
    named: Vec<String>,
    observer: ServerObserver,
    /// The server of the newest session.
    server: WatchedServer,
    /// Why its devices are not known.
    unknown_devices: Option<String>,
    view: ServerView,
    /// When the thread sent its last message.
    heard: Instant,
}

/// Messages of the thread of the server.
enum ServerMessage {
    Connected(Box<WatchedServer>),
    Reading(Box<ServerReading>),
    Lost { why: String, is_retried: bool },
    Refused(PostgresError),
}

impl ServerWatch {
    /// Connects to the server that `text`, a connection string, names. `named` are the devices that
    /// the user named.
    pub(super) fn connect(
        text: &str,
        interval: Duration,
        named: &[String],
        verbosity: Verbosity,
    ) -> anyhow::Result<Self> {
        let info = ConnectInfo::parse(text, &|name| std::env::var(name).ok())
            .map_err(|error| Failure::Usage(format!("--postgres: {error}")))?;
        if ConnectInfo::has_password(text) {
            verbosity.note(
                "every user of this machine can see the password of --postgres in the process \
                 list; use ~/.pgpass or PGPASSWORD instead",
            );
        }
        let described = info.describe();
        let period = interval.max(PERIOD_MIN);
        let (sender, messages) = channel();
        let (begin, begun) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let thread = ServerThread {
            info,
            stop: Arc::clone(&stop),
            messages: sender,
            period,
        };
        std::thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || thread.run(&begun))?;
        let server = match messages.recv() {
            Ok(ServerMessage::Connected(server)) => *server,
            Ok(ServerMessage::Refused(error)) => {
                anyhow::bail!("--postgres ({described}): {error}{}", remedy(&error))
            }
            _ => anyhow::bail!("the thread of the PostgreSQL server ended unexpectedly"),
        };
        let mut watch = Self {
            messages,
            begin: Some(begin),
            stop,
            period,
            named: named.to_vec(),
            observer: ServerObserver::new(period.as_nanos() as u64),
            server: server.clone(),
            unknown_devices: None,
            view: ServerView::Waiting,
            heard: Instant::now(),
        };
        watch.connected(server);
        Ok(watch)
    }

    /// Steps are counted from here on.
    pub(super) fn begin(&mut self, started: Instant) {
        if let Some(begin) = self.begin.take() {
            // A thread that has ended reports nothing, and that is shown.
            let _ = begin.send(started);
        }
        self.heard = started;
    }

    /// Begins with a new session, whose server may have other devices.
    fn connected(&mut self, server: WatchedServer) {
        let devices = match devices_in_time(server.clone()) {
            Ok(devices) => {
                self.unknown_devices = None;
                devices
            }
            // The user chose the devices to compare with.
            Err(why) if server.is_local && !self.named.is_empty() => {
                let named = self.named.join(" and ");
                self.unknown_devices = Some(format!(
                    "{why}; it is compared with {named}, which may not be its disk"
                ));
                self.named.clone()
            }
            Err(why) => {
                self.unknown_devices = Some(why);
                Vec::new()
            }
        };
        self.observer.connected(devices);
        self.server = server;
        self.view = ServerView::Waiting;
    }

    /// Returns what is known of the server now. Never waits.
    pub(super) fn view(&mut self) -> ServerView {
        while let Ok(message) = self.messages.try_recv() {
            self.heard = Instant::now();
            match message {
                ServerMessage::Connected(server) => self.connected(*server),
                ServerMessage::Reading(reading) => {
                    self.view = match self.observer.add(*reading) {
                        Some(step) => ServerView::Step(step),
                        None => ServerView::Waiting,
                    };
                }
                ServerMessage::Lost { why, is_retried } => {
                    self.view = ServerView::Lost { why, is_retried };
                }
                ServerMessage::Refused(_) => {}
            }
        }
        let silence = self.heard.elapsed();
        match &self.view {
            ServerView::Step(_) | ServerView::Waiting if silence > self.period * SILENT_PERIODS => {
                ServerView::Lost {
                    why: format!("no answer for {} s", silence.as_secs()),
                    is_retried: true,
                }
            }
            view => view.clone(),
        }
    }

    /// Names the server, and what cannot be seen of it. The view states this once.
    pub(super) fn facts(&self) -> Vec<String> {
        let mut facts = vec![format!(
            "PostgreSQL {} at {}; its bytes are compared with those of its disks over the last \
             30 s",
            self.server.version, self.server.address
        )];
        facts.extend(self.missing());
        facts
    }

    /// What cannot be seen of the server, each in a sentence.
    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        missing.extend(self.unknown_devices.clone());
        missing.extend(self.server.missing.clone());
        missing
    }

    /// The load so far; `None` before the second reading.
    pub(super) fn observed(&self) -> Option<ObservedServer> {
        self.observer
            .observed(&self.server.address, &self.server.version, self.missing())
    }
}

impl Drop for ServerWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.begin = None;
        // The thread takes leave of the server, which else logs a broken connection. A resolver may
        // keep it longer than anyone wants to wait.
        let end = Instant::now() + LEAVE_WITHIN;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if self.messages.recv_timeout(left).is_err() {
                break;
            }
        }
    }
}

/// Says what to do about errors that the server words for its own administrator.
fn remedy(error: &PostgresError) -> &'static str {
    let text = error.to_string();
    if text.contains("no encryption") || text.contains("SSL off") {
        ". The server demands TLS: use sslmode=prefer or require, or its Unix socket"
    } else if text.contains("Peer authentication failed") {
        ". On a Unix socket the server expects the operating system user of the same name: run as \
         root, or as that user"
    } else {
        ""
    }
}

/// Does as [`data_devices`], but does not wait for a disk that hangs: that is a reason to watch it.
fn devices_in_time(server: WatchedServer) -> Result<Vec<String>, String> {
    let search = Deferred::start_or_run("diskproof-probe", move || data_devices(&server));
    match search.wait(PROBE_WITHIN) {
        Waited::Done(devices) => devices,
        _ => Err("the disk of the data does not answer, so it is not compared".to_owned()),
    }
}

/// The devices directly below the data, the log and the tablespaces.
fn data_devices(server: &WatchedServer) -> Result<Vec<String>, String> {
    if !server.is_local {
        return Err(
            "the server runs on another machine, so its bytes are not compared with these disks"
                .to_owned(),
        );
    }
    let Some(directory) = &server.data_directory else {
        return Err(
            "the role may not see where the data is, so the server is not compared with a disk; \
             GRANT pg_monitor to the role"
                .to_owned(),
        );
    };
    let mut devices = devices_below(directory)?;
    // Both may be elsewhere. Without root the log is not visible, and counts as alongside the data.
    let mut places = vec![directory.join("pg_wal")];
    places.extend(server.tablespaces.clone());
    for place in places {
        if !place.exists() {
            continue;
        }
        for device in devices_below(&place)? {
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
    }
    Ok(devices)
}

/// The highest devices below a path. Fails where none is known.
fn devices_below(path: &Path) -> Result<Vec<String>, String> {
    let resolved = path
        .canonicalize()
        .map_err(|error| format!("{}: the data is not visible here: {error}", path.display()))?;
    let identity = probe(&resolved).map_err(|error| error.to_string())?;
    let highest = highest_layers(&identity.layers);
    if highest.is_empty() {
        let why = match &identity.unresolved {
            Some(why) => why,
            None => "sysfs does not show one",
        };
        return Err(format!(
            "{}: no block device is known below the data ({why})",
            resolved.display()
        ));
    }
    Ok(highest
        .into_iter()
        .map(|layer| layer.name.clone())
        .collect())
}

/// The thread that queries the server.
struct ServerThread {
    info: ConnectInfo,
    stop: Arc<AtomicBool>,
    messages: Sender<ServerMessage>,
    period: Duration,
}

impl ServerThread {
    /// Reads the server in each step, until the view has ended. The steps count from the time that
    /// `begun` brings.
    fn run(self, begun: &Receiver<Instant>) {
        let mut session = match self.connect() {
            Ok(session) => Some(session),
            Err(error) => {
                let _ = self.messages.send(ServerMessage::Refused(error));
                return;
            }
        };
        let Ok(started) = begun.recv() else { return };
        let mut step = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let wait = match self.read_or_reconnect(&mut session, started) {
                Ok(()) => Duration::ZERO,
                Err(PostgresError::Stopped) => return,
                Err(error) => {
                    session = None;
                    let is_retried = error.is_transient();
                    let why = error.to_string();
                    let lost = ServerMessage::Lost { why, is_retried };
                    if self.messages.send(lost).is_err() || !is_retried {
                        return;
                    }
                    RETRY_AFTER
                }
            };
            let earliest = Instant::now() + wait;
            let due = loop {
                step += 1;
                let lead = LEAD_MAX.min(self.period / LEAD_DIVISOR);
                let due = started + self.period.saturating_mul(step) - lead;
                if due > Instant::now() && due >= earliest {
                    break due;
                }
            };
            self.sleep_until(due);
        }
    }

    /// Reads the server, by a new session where there is none.
    fn read_or_reconnect(
        &self,
        session: &mut Option<StatSession>,
        started: Instant,
    ) -> Result<(), PostgresError> {
        if let Some(session) = session {
            return self.read(session, started);
        }
        let mut new_session = self.connect()?;
        self.read(&mut new_session, started)?;
        *session = Some(new_session);
        Ok(())
    }

    fn sleep_until(&self, due: Instant) {
        while !self.stop.load(Ordering::Relaxed) {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(LOOK_EVERY));
        }
    }

    /// Opens a session, and reports its server.
    fn connect(&self) -> Result<StatSession, PostgresError> {
        let stop = Arc::clone(&self.stop);
        let stop_check: StopCheck = Arc::new(move || stop.load(Ordering::Relaxed));
        let session = StatSession::connect(&self.info, &stop_check)?;
        let server = Box::new(session.server().clone());
        self.send(ServerMessage::Connected(server))?;
        Ok(session)
    }

    /// Reads the server and the disks. The server comes first: its answer may take a while, and the
    /// disks are to be read at its end.
    fn read(&self, session: &mut StatSession, started: Instant) -> Result<(), PostgresError> {
        let counters = session.read()?;
        let disks = read_disks()?;
        let reading = ServerReading {
            at_ns: started.elapsed().as_nanos() as u64,
            counters,
            disks,
        };
        self.send(ServerMessage::Reading(Box::new(reading)))
    }

    fn send(&self, message: ServerMessage) -> Result<(), PostgresError> {
        self.messages
            .send(message)
            .map_err(|_| PostgresError::Stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn server_elsewhere_or_without_rights_has_no_devices() {
        let server = WatchedServer {
            address: String::new(),
            version: "18.4".to_owned(),
            is_local: false,
            data_directory: Some(PathBuf::from("/")),
            tablespaces: Vec::new(),
            missing: Vec::new(),
        };
        let why = data_devices(&server).unwrap_err();
        assert!(why.contains("another machine"), "{why}");
        let hidden = WatchedServer {
            is_local: true,
            data_directory: None,
            ..server.clone()
        };
        let why = data_devices(&hidden).unwrap_err();
        assert!(why.contains("GRANT pg_monitor"), "{why}");
        let absent = WatchedServer {
            is_local: true,
            data_directory: Some(PathBuf::from("/no-such-directory")),
            ..server
        };
        assert!(data_devices(&absent).is_err());
    }
}
