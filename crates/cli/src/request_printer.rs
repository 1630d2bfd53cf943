//! Lines on stdout while a run goes on, and a progress line on stderr below them. A thread of its
//! own writes both: a terminal shows them in order, and a reader that is slow or gone delays no
//! request.

use crate::interrupt::Interrupt;
use crate::stderr::{ProgressLine, Verbosity};
use diskproof_engine::watchdog::{Deferred, Heartbeat, Waited};
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Lines that wait for a slow reader; more are omitted.
const WAITING_MAX: usize = 65_536;
const POLL: Duration = Duration::from_millis(20);
/// After Ctrl-C, a reader that does not read has this long.
const AFTER_INTERRUPT: Duration = Duration::from_millis(1500);

enum PrinterMessage {
    /// For stdout.
    Line(String),
    /// For stderr, redrawn in place.
    Reading(String),
}

#[derive(Debug, Default)]
struct PrinterState {
    /// The reader of stdout has gone.
    closed: AtomicBool,
    omitted: AtomicU64,
}

/// Prints in a separate thread.
pub(crate) struct RequestPrinter {
    sender: SyncSender<PrinterMessage>,
    thread: Deferred<()>,
    state: Arc<PrinterState>,
}

impl RequestPrinter {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (sender, messages) = sync_channel(WAITING_MAX);
        let state = Arc::<PrinterState>::default();
        let theirs = Arc::clone(&state);
        let thread = Deferred::start("diskproof-print", move || print(&messages, &theirs))?;
        Ok(Self {
            sender,
            thread,
            state,
        })
    }

    /// Prints a line, with its newline, on stdout.
    pub(crate) fn line(&self, text: String) {
        if self.sender.try_send(PrinterMessage::Line(text)).is_err() {
            self.state.omitted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Shows the progress line. One that finds no room is not missed.
    pub(crate) fn reading(&self, text: String) {
        let _ = self.sender.try_send(PrinterMessage::Reading(text));
    }

    /// Whether the reader of stdout has gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.closed.load(Ordering::Relaxed)
    }

    /// Waits until everything is printed. After Ctrl-C, the rest is skipped if its reader stopped
    /// reading.
    pub(crate) fn finish(self, interrupt: &Interrupt, heartbeat: &Heartbeat, verbosity: Verbosity) {
        drop(self.sender);
        let mut interrupted: Option<Instant> = None;
        while let Waited::TimedOut(_) = self.thread.poll(POLL) {
            heartbeat.beat();
            if interrupt.signal().is_some()
                && interrupted.get_or_insert_with(Instant::now).elapsed() >= AFTER_INTERRUPT
            {
                break;
            }
        }
        let omitted = self.state.omitted.load(Ordering::Relaxed);
        if omitted > 0 && !self.state.closed.load(Ordering::Relaxed) {
            verbosity.note(&format!(
                "{omitted} lines were not printed, because the reader of stdout is slower than the \
                 requests. The figures and the record are complete"
            ));
        }
    }
}

fn print(messages: &Receiver<PrinterMessage>, state: &PrinterState) {
    let (mut line, mut reading) = (ProgressLine::default(), None);
    for message in messages {
        match message {
            PrinterMessage::Line(text) => {
                line.clear();
                let mut stdout = io::stdout().lock();
                let written = stdout.write_all(text.as_bytes());
                if written.and_then(|()| stdout.flush()).is_err() {
                    state.closed.store(true, Ordering::Relaxed);
                    break;
                }
            }
            PrinterMessage::Reading(text) => {
                reading = Some(text);
                if !line.is_due() {
                    continue;
                }
            }
        }
        if let Some(reading) = &reading {
            line.show(reading);
        }
    }
    line.clear();
}
