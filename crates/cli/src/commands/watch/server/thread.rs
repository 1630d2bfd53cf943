//! Queries a PostgreSQL server on a thread of its own, and sends its readings as messages.

use diskproof_analysis::watch::ServerReading;
use diskproof_device::read_disks;
use diskproof_postgres::{ConnectInfo, PostgresError, StatSession, StopCheck, WatchedServer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

/// The server is read this long before the end of a step, so that its answer is there in time.
const LEAD_MAX: Duration = Duration::from_millis(200);
/// The lead of a short step is a fifth of it.
const LEAD_DIVISOR: u32 = 5;
/// Time between two looks at the order to end: a small part of the time that it has for that.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time between two attempts to connect again. Chosen, not measured.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// A message of the thread.
pub(super) enum ServerMessage {
    /// A session has begun, also after the loss of an earlier one.
    Connected(Box<WatchedServer>),
    Reading(Box<ServerReading>),
    /// A session was lost. The thread connects again where `is_retried`, and has ended otherwise.
    Lost {
        why: String,
        is_retried: bool,
    },
    /// The first session was refused, and the thread has ended.
    Refused(PostgresError),
}

/// The thread that queries the server. It sends [`ServerMessage::Connected`] or `Refused` first.
pub(super) struct ServerThread {
    pub info: ConnectInfo,
    /// True once the thread is to end.
    pub stop: Arc<AtomicBool>,
    pub messages: Sender<ServerMessage>,
    /// Time between two readings.
    pub period: Duration,
}

impl ServerThread {
    /// Connects, waits for the start of the steps, which `start` brings, and then reads the server
    /// shortly before the end of each period. Ends when `stop` is set, or when nothing receives its
    /// messages any more.
    pub(super) fn run(self, start: &Receiver<Instant>) {
        let mut session = match self.connect() {
            Ok(session) => Some(session),
            Err(error) => {
                let _ = self.messages.send(ServerMessage::Refused(error));
                return;
            }
        };
        let Ok(started) = start.recv() else { return };
        let mut period_number = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let pause = match self.read_or_reconnect(&mut session, started) {
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
            let earliest = Instant::now() + pause;
            let due = loop {
                period_number += 1;
                let due = self.due(started, period_number);
                if due > Instant::now() && due >= earliest {
                    break due;
                }
            };
            self.sleep_until(due);
        }
    }

    /// The time of the reading in the period of this number, from 1.
    fn due(&self, started: Instant, period_number: u32) -> Instant {
        let lead = LEAD_MAX.min(self.period / LEAD_DIVISOR);
        started + self.period.saturating_mul(period_number) - lead
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
            let time_left = due.saturating_duration_since(Instant::now());
            if time_left.is_zero() {
                return;
            }
            std::thread::sleep(time_left.min(POLL_INTERVAL));
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
