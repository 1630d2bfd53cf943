//! The supervisor of a run: it holds the deadline, and takes the partial results where the run
//! hangs. The engine itself stops waiting for requests that hang; this covers every other call that
//! may never return: layout, truncation, flush and close of a target, and saving to a filesystem
//! that does not answer.

use super::run::{EndedEarly, PartialResults, SharedResults, TargetRun};
use crate::failure::Failure;
use crate::live::Live;
use crate::stderr::Verbosity;
use diskproof_device::Pulse;
use diskproof_engine::RunError;
use diskproof_model::record::Stalled;
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_duration;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

const POLL_EVERY: Duration = Duration::from_millis(100);
/// The engine reports progress twenty times a second. Other signs of life count only where that
/// stopped this long ago.
const QUIET: Duration = Duration::from_secs(1);
/// A process that uses this share of a processor computes, such as buffer contents, and does not
/// wait for a disk.
const BUSY_SHARE: f64 = 0.2;
/// The first note about a silence; each further one comes after twice the time.
const FIRST_NOTE: Duration = Duration::from_secs(10);

/// How a run ended.
pub struct RunEnd {
    /// What was measured.
    pub results: PartialResults,
    /// Why it ended before its plan did, or the error that ended it.
    pub ended: Result<EndedEarly, RunError>,
    /// Paths of the targets that hang.
    pub hung: Vec<String>,
    /// Where the targets hung between two measured requests.
    pub stalled: Option<Stalled>,
}

/// How long the watchdog waits, and where it says so.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    /// The longest silence of a target.
    pub stall_timeout: Duration,
    /// How much goes to stderr.
    pub verbosity: Verbosity,
}

/// Messages of the run's thread.
enum RunMessage {
    /// Nothing more is measured.
    Ended(Result<EndedEarly, RunError>),
    /// All targets are closed but these, which hang.
    Closed(Vec<String>),
}

/// Runs on a thread of its own, and waits for the end or for a silence longer than the stall
/// timeout.
pub fn run(
    work: TargetRun,
    live: Live,
    identities: &[TargetIdentity],
    deadline: Deadline,
) -> Result<RunEnd, Failure> {
    let watchdog = Watchdog {
        results: Arc::clone(&work.results),
        ticks: live.ticks(),
        deadline,
        identities,
    };
    let (sender, messages) = channel();
    std::thread::Builder::new()
        .name("diskproof-run".to_owned())
        .spawn(move || run_and_close(work, live, deadline.verbosity, &sender))
        .map_err(|error| Failure::Run(RunError::Thread(error)))?;
    Ok(watchdog.wait(&messages))
}

fn run_and_close(
    mut work: TargetRun,
    mut live: Live,
    verbosity: Verbosity,
    messages: &Sender<RunMessage>,
) {
    let ended = work.run(&mut live);
    live.finish();
    // After a timeout nothing receives these messages.
    let _ = messages.send(RunMessage::Ended(ended));
    let hung = work.close(verbosity);
    let _ = messages.send(RunMessage::Closed(hung));
}

struct Watchdog<'a> {
    results: SharedResults,
    ticks: Arc<AtomicU64>,
    deadline: Deadline,
    identities: &'a [TargetIdentity],
}

impl Watchdog<'_> {
    fn wait(self, messages: &Receiver<RunMessage>) -> RunEnd {
        let mut ended = None;
        let mut heartbeat = Heartbeat::new(self.identities);
        let mut next_note = FIRST_NOTE;
        loop {
            match messages.recv_timeout(POLL_EVERY) {
                Ok(RunMessage::Ended(how)) => ended = Some(how),
                Ok(RunMessage::Closed(hung)) => return self.end(ended.unwrap_or(Ok(None)), hung),
                Err(RecvTimeoutError::Disconnected) => {
                    let died = std::io::Error::other("the thread of the run ended unexpectedly");
                    return self.end(Err(RunError::Thread(died)), Vec::new());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let silence = heartbeat.silence(self.ticks.load(Ordering::Relaxed));
            if silence < FIRST_NOTE {
                next_note = FIRST_NOTE;
            } else if silence >= next_note {
                next_note *= 2;
                let text = format!("{}: no answer for {}", self.paths(), seconds(silence));
                self.deadline.verbosity.note(&text);
            }
            if silence > self.deadline.stall_timeout {
                return self.end_stalled(ended, silence);
            }
        }
    }

    /// Ends without the run's thread, which hangs.
    fn end_stalled(self, ended: Option<Result<EndedEarly, RunError>>, silence: Duration) -> RunEnd {
        let around = self.step();
        let ended = ended.unwrap_or_else(|| {
            Ok(Some(format!(
                "{} stopped answering around '{around}', between its requests; diskproof stopped \
                 waiting after {}. See the kernel log (dmesg)",
                self.paths(),
                seconds(silence)
            )))
        });
        let hung = self.identities.iter().map(|one| one.path.clone()).collect();
        RunEnd {
            stalled: Some(Stalled {
                around,
                lasted_ns: silence.as_nanos() as u64,
            }),
            ..self.end(ended, hung)
        }
    }

    fn end(&self, ended: Result<EndedEarly, RunError>, hung: Vec<String>) -> RunEnd {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let stalled = match &ended {
            Err(RunError::Stalled {
                workload, seconds, ..
            }) => Some(Stalled {
                around: workload.clone(),
                lasted_ns: seconds.saturating_mul(1_000_000_000),
            }),
            _ => None,
        };
        RunEnd {
            results: std::mem::take(&mut *results),
            ended,
            hung,
            stalled,
        }
    }

    fn paths(&self) -> String {
        let paths: Vec<&str> = self
            .identities
            .iter()
            .map(|one| one.path.as_str())
            .collect();
        paths.join(", ")
    }

    fn step(&self) -> String {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let step = results.step.clone();
        step.unwrap_or_else(|| "the first workload".to_owned())
    }
}

fn seconds(duration: Duration) -> String {
    format_duration(duration.as_secs() * 1_000_000_000)
}

/// Signs of life of a run: progress of the engine, completions of the disks, and processor time of
/// this process.
struct Heartbeat {
    ticks: u64,
    pulses: Vec<Pulse>,
    last_beat: Instant,
    last_look: Instant,
    processor_time: Duration,
}

impl Heartbeat {
    fn new(identities: &[TargetIdentity]) -> Self {
        let now = Instant::now();
        Self {
            ticks: 0,
            pulses: identities.iter().map(Pulse::of).collect(),
            last_beat: now,
            last_look: now,
            processor_time: processor_time(),
        }
    }

    /// Time since the last sign of life.
    fn silence(&mut self, ticks: u64) -> Duration {
        let now = Instant::now();
        if self.ticks != ticks {
            self.ticks = ticks;
            self.last_beat = now;
        }
        let elapsed = now - self.last_look;
        if now - self.last_beat > QUIET && elapsed > QUIET {
            let used = processor_time();
            let busy = (used - self.processor_time).as_secs_f64();
            let mut is_alive = busy >= BUSY_SHARE * elapsed.as_secs_f64();
            for pulse in &mut self.pulses {
                // Each one counts from here on, so none may be skipped.
                is_alive |= pulse.beats();
            }
            self.last_look = now;
            self.processor_time = used;
            if is_alive {
                self.last_beat = now;
            }
        }
        now - self.last_beat
    }
}

/// Processor time of all threads of this process.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
