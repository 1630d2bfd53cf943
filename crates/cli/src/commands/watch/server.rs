//! Watches the PostgreSQL server alongside the disks. Its queries run in a separate thread, so that
//! a slow server delays no counter; each reading is taken together with the counters of the disks.

mod data_devices;
mod thread;

use crate::failure::Failure;
use crate::stdio::Verbosity;
use data_devices::find_data_devices;
use diskproof_analysis::watch::ServerObserver;
use diskproof_model::postgres::{ObservedServer, ServerView};
use diskproof_postgres::{ConnectInfo, PostgresError, WatchedServer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use thread::{ServerMessage, ServerThread};

/// The shortest time between two readings: the server collects its counters about once a second.
const PERIOD_MIN: Duration = Duration::from_secs(1);
/// Time for the thread to see that it is to end, and to end its session.
const LEAVE_WITHIN: Duration = Duration::from_millis(300);
/// After this many periods without an answer, the last step is not shown as the present one.
const SILENT_PERIODS: u32 = 2;

/// A server that is watched.
pub(super) struct ServerWatch {
    messages: Receiver<ServerMessage>,
    /// Sends the start of the steps to the thread; `None` once it is sent.
    start: Option<Sender<Instant>>,
    /// True once the thread is to end.
    stop: Arc<AtomicBool>,
    /// Time between two readings.
    period: Duration,
    /// The devices that the user named.
    named: Vec<String>,
    observer: ServerObserver,
    /// The server of the newest session.
    server: WatchedServer,
    /// Why its devices are not known; `None` where they are.
    unknown_devices: Option<String>,
    view: ServerView,
    /// When the last message of the thread was taken.
    last_message: Instant,
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
        let (start_sender, start_receiver) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let thread = ServerThread {
            info,
            stop: Arc::clone(&stop),
            messages: sender,
            period,
        };
        std::thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || thread.run(&start_receiver))?;
        let server = match messages.recv() {
            Ok(ServerMessage::Connected(server)) => *server,
            Ok(ServerMessage::Refused(error)) => {
                anyhow::bail!("--postgres ({described}): {error}{}", remedy_text(&error))
            }
            _ => anyhow::bail!("the thread of the PostgreSQL server ended unexpectedly"),
        };
        let mut watch = Self {
            messages,
            start: Some(start_sender),
            stop,
            period,
            named: named.to_vec(),
            observer: ServerObserver::new(period.as_nanos() as u64),
            server: server.clone(),
            unknown_devices: None,
            view: ServerView::Waiting,
            last_message: Instant::now(),
        };
        watch.begin_session(server);
        Ok(watch)
    }

    /// The first step begins at `started`: the thread reads the server from there on.
    pub(super) fn begin_steps(&mut self, started: Instant) {
        if let Some(sender) = self.start.take() {
            // A thread that has ended reports nothing, and that is shown.
            let _ = sender.send(started);
        }
        self.last_message = started;
    }

    /// Begins with a new session, whose server may have other devices.
    fn begin_session(&mut self, server: WatchedServer) {
        let devices = match find_data_devices(server.clone()) {
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
        self.observer.begin_session(devices);
        self.server = server;
        self.view = ServerView::Waiting;
    }

    /// Takes the messages of the thread, and returns what is known of the server now. Never waits.
    pub(super) fn view(&mut self) -> ServerView {
        while let Ok(message) = self.messages.try_recv() {
            self.last_message = Instant::now();
            match message {
                ServerMessage::Connected(server) => self.begin_session(*server),
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
        let silence = self.last_message.elapsed();
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

    /// Sentences that name the server and say what cannot be seen of it. The view states them once.
    pub(super) fn facts(&self) -> Vec<String> {
        let mut facts = vec![format!(
            "PostgreSQL {} at {}; its bytes are compared with those of its disks over the last \
             30 s",
            self.server.version, self.server.address
        )];
        facts.extend(self.hidden_facts());
        facts
    }

    /// Sentences that say what cannot be seen of the server.
    fn hidden_facts(&self) -> Vec<String> {
        let mut hidden = Vec::new();
        hidden.extend(self.unknown_devices.clone());
        hidden.extend(self.server.missing.clone());
        hidden
    }

    /// The load so far; `None` before the second reading.
    pub(super) fn observed(&self) -> Option<ObservedServer> {
        self.observer.summary(
            &self.server.address,
            &self.server.version,
            self.hidden_facts(),
        )
    }
}

impl Drop for ServerWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.start = None;
        // The thread drops its sender when it has ended its session; without that the server logs a
        // broken connection. A name lookup may hold the thread longer, and is not waited for.
        let end = Instant::now() + LEAVE_WITHIN;
        loop {
            let time_left = end.saturating_duration_since(Instant::now());
            if self.messages.recv_timeout(time_left).is_err() {
                break;
            }
        }
    }
}

/// The end of a sentence: what to do about an error that the server words for its administrator.
fn remedy_text(error: &PostgresError) -> &'static str {
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
