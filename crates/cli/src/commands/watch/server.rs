//! Watches the PostgreSQL server alongside the disks. Its queries run in a separate thread, so that
//! a slow server delays no counter; each reading is taken together with the counters of the disks.

mod data_devices;
mod thread;

use crate::failure::Failure;
use crate::input_files::{InputRole, register};
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
/// Time for the thread to see that it is to end, and to end its session. It looks every 50 ms
/// (`POLL_INTERVAL` of `thread`).
const LEAVE_TIMEOUT: Duration = Duration::from_millis(300);
/// After this many periods without an answer, the last step is not shown as the present one. One
/// period always lies between two readings.
const SILENT_PERIODS: u32 = 2;

/// A server that is watched.
pub(super) struct ServerWatch {
    messages: Receiver<ServerMessage>,
    /// Sends the start of the steps to the thread; `None` once it is sent.
    start_sender: Option<Sender<Instant>>,
    /// True once the thread is to end.
    stop: Arc<AtomicBool>,
    /// Time between two readings.
    period: Duration,
    /// The devices that the user named.
    named_devices: Vec<String>,
    observer: ServerObserver,
    /// The server of the newest session.
    server: WatchedServer,
    /// Why its devices are not known; `None` where they are.
    why_devices_unknown: Option<String>,
    view: ServerView,
    /// When the last message of the thread was taken.
    last_message: Instant,
}

/// From now on no file that a connection reads is an output: passwords, certificates, keys.
pub(super) fn register_files(connection_string: &str) -> Result<(), Failure> {
    let files = ConnectInfo::files(connection_string, &|name| std::env::var(name).ok())
        .map_err(unusable_connection_string)?;
    for file in files {
        register(&file, InputRole::Document);
    }
    Ok(())
}

fn unusable_connection_string(error: PostgresError) -> Failure {
    Failure::Usage(format!("--postgres: {error}"))
}

impl ServerWatch {
    /// Connects to the server of a connection string.
    pub(super) fn connect(
        connection_string: &str,
        interval: Duration,
        named_devices: &[String],
        verbosity: Verbosity,
    ) -> anyhow::Result<Self> {
        let info = ConnectInfo::parse(connection_string, &|name| std::env::var(name).ok())
            .map_err(unusable_connection_string)?;
        if ConnectInfo::has_password(connection_string) {
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
            // The other messages follow one of these two.
            _ => anyhow::bail!("the thread of the PostgreSQL server ended unexpectedly"),
        };
        let mut watch = Self {
            messages,
            start_sender: Some(start_sender),
            stop,
            period,
            named_devices: named_devices.to_vec(),
            observer: ServerObserver::new(period.as_nanos() as u64),
            server: server.clone(),
            why_devices_unknown: None,
            view: ServerView::Waiting,
            last_message: Instant::now(),
        };
        watch.begin_session(server);
        Ok(watch)
    }

    /// The first step begins at `started`: the thread reads the server from there on.
    pub(super) fn begin_steps(&mut self, started: Instant) {
        if let Some(sender) = self.start_sender.take() {
            // A thread that has ended reports nothing, and that is shown.
            let _ = sender.send(started);
        }
        self.last_message = started;
    }

    /// Begins with a new session, whose server may have other devices.
    fn begin_session(&mut self, server: WatchedServer) {
        let found = find_data_devices(server.clone());
        let compared = devices_to_compare(found, server.is_local, &self.named_devices);
        self.why_devices_unknown = compared.why_unknown;
        self.observer.begin_session(compared.devices);
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
                // Only the first message can be this one, and `connect` took it.
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
        hidden.extend(self.why_devices_unknown.clone());
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
        self.start_sender = None;
        // The thread drops its sender when it has ended its session; without that the server logs a
        // broken connection. A name lookup may hold the thread longer, and is not waited for.
        let end = Instant::now() + LEAVE_TIMEOUT;
        loop {
            let time_left = end.saturating_duration_since(Instant::now());
            if self.messages.recv_timeout(time_left).is_err() {
                break;
            }
        }
    }
}

/// The devices with whose counters a server is compared.
#[derive(Debug, PartialEq)]
struct ComparedDevices {
    /// Their kernel names; empty where the server is compared with none.
    devices: Vec<String>,
    /// Why its own devices are not known; `None` where they are.
    why_unknown: Option<String>,
}

/// The devices that were found below the data; else those that the user named, which a server of
/// this machine may be on.
fn devices_to_compare(
    found: Result<Vec<String>, String>,
    is_local: bool,
    named_devices: &[String],
) -> ComparedDevices {
    match found {
        Ok(devices) => ComparedDevices {
            devices,
            why_unknown: None,
        },
        Err(why) if is_local && !named_devices.is_empty() => {
            let named = named_devices.join(" and ");
            ComparedDevices {
                devices: named_devices.to_vec(),
                why_unknown: Some(format!(
                    "{why}; it is compared with {named}, which may not be its disk"
                )),
            }
        }
        Err(why) => ComparedDevices {
            devices: Vec::new(),
            why_unknown: Some(why),
        },
    }
}

/// The end of a sentence: what to do about an error that the server words for its administrator.
fn remedy_text(error: &PostgresError) -> &'static str {
    remedy_of_refusal(&error.to_string())
}

fn remedy_of_refusal(text: &str) -> &'static str {
    if text.contains("no encryption") || text.contains("SSL off") {
        ". The server demands TLS: use sslmode=prefer or require, or its Unix socket"
    } else if text.contains("Peer authentication failed") {
        ". On a Unix socket the server expects the operating system user of the same name: run as \
         root, or as that user"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_compared_with_its_own_devices_or_with_those_named() {
        let named = ["sdb".to_owned()];
        let found = devices_to_compare(Ok(vec!["sda".to_owned()]), true, &named);
        assert_eq!(
            (found.devices, found.why_unknown),
            (vec!["sda".to_owned()], None)
        );

        let hidden = Err("no answer".to_owned());
        let chosen = devices_to_compare(hidden.clone(), true, &named);
        assert_eq!(chosen.devices, named);
        let why = chosen.why_unknown.unwrap();
        assert!(why.starts_with("no answer") && why.contains("sdb"), "{why}");

        for (is_local, named) in [(false, &named[..]), (true, &[]), (false, &[])] {
            let unknown = devices_to_compare(hidden.clone(), is_local, named);
            assert_eq!(unknown.devices, Vec::<String>::new());
            assert_eq!(unknown.why_unknown.as_deref(), Some("no answer"));
        }
    }

    #[test]
    fn refusal_of_the_server_has_a_remedy() {
        let tls = "FATAL:  no pg_hba.conf entry for host \"::1\", user \"x\", no encryption";
        assert!(remedy_of_refusal(tls).contains("sslmode=prefer"));
        let peer = "FATAL:  Peer authentication failed for user \"x\"";
        assert!(remedy_of_refusal(peer).contains("run as root"));
        assert_eq!(
            remedy_of_refusal("FATAL:  database \"x\" does not exist"),
            ""
        );
    }
}
