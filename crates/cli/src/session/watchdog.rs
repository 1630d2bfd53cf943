//! The supervisor of a run: it holds the deadline, and takes the partial results where the run
//! hangs. The engine itself stops waiting for requests that hang; this covers every other call that
//! may never return: layout, truncation, flush and close of a target.

use super::run::{EndedEarly, INTERRUPTED, LATE, PartialResults, SharedResults, Steps, TargetRun};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::live::{Live, SharedDeadline, lock_deadline};
use crate::stderr::Verbosity;
use diskproof_device::{GuardedWriteCache, start_files_remover};
use diskproof_engine::RunError;
use diskproof_engine::watchdog::{Deferred, SignsOfLife, Waited};
use diskproof_model::record::Stalled;
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_duration;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

const POLL_EVERY: Duration = Duration::from_millis(100);
/// The longest that a run may go on after its end, such as while it tries engines, if its target is
/// silent. A little more than the engine waits, which knows more.
const AFTER_END: Duration = Duration::from_millis(4300);
const SILENCE_AFTER_END: Duration = Duration::from_secs(1);
/// The same where the target still answers, such as one request a second.
const AFTER_END_MAX: Duration = Duration::from_millis(4600);
/// The first note about a silence; each further one comes after twice the time.
const FIRST_NOTE: Duration = Duration::from_secs(10);

/// What the watchdog returns: the results of a run, and how it ended.
pub(crate) struct WatchdogResult {
    /// What was measured.
    pub results: PartialResults,
    /// Why it ended before its plan did, or the error that ended it.
    pub ended: Result<EndedEarly, RunError>,
    /// Paths of the targets that hang.
    pub hung: Vec<String>,
    /// Where the targets hung between two measured requests.
    pub stalled: Option<Stalled>,
}

impl WatchdogResult {
    /// The end of a run that was stopped before anything was measured.
    pub(super) fn stopped(interrupt: &Interrupt) -> Self {
        let why = match interrupt.signal() {
            Some(_) => INTERRUPTED,
            None => LATE,
        };
        Self {
            results: PartialResults::default(),
            ended: Ok(Some(why.to_owned())),
            hung: Vec::new(),
            stalled: None,
        }
    }

    /// The same of a run whose directory the disk does not let it make.
    pub(super) fn without_files(
        identities: &[TargetIdentity],
        verbosity: Verbosity,
        interrupt: &Interrupt,
    ) -> Self {
        remove_later(identities, verbosity);
        Self {
            hung: identities.iter().map(|one| one.path.clone()).collect(),
            ..Self::stopped(interrupt)
        }
    }
}

/// How long the watchdog waits, and where it says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    /// The longest silence of a target.
    pub stall_timeout: Duration,
    /// How much goes to stderr.
    pub verbosity: Verbosity,
}

/// Runs on a separate thread, and waits for the end or for a silence longer than the stall timeout.
pub(super) fn run(
    (work, steps): (TargetRun, Steps),
    live: Live,
    identities: &[TargetIdentity],
    deadline: Deadline,
) -> Result<WatchdogResult, Failure> {
    let watchdog = Watchdog {
        results: Arc::clone(&work.results),
        deadline,
        identities,
        run_end: live.deadline(),
    };
    let signs = SignsOfLife::new(live.heartbeat(), identities);
    let has_files = Arc::clone(&work.has_files);
    let work = move || run_and_close(work, steps, live, deadline.verbosity);
    let run = Deferred::start("diskproof-run", work)
        .map_err(|error| Failure::Run(RunError::Thread(error)))?;
    let end = watchdog.wait(&run, signs);
    if has_files.load(Ordering::Relaxed) {
        remove_later(identities, deadline.verbosity);
    }
    Ok(end)
}

/// The disk still holds threads of this process, and with them the files of its test.
fn remove_later(identities: &[TargetIdentity], verbosity: Verbosity) {
    for identity in identities {
        if let Err(error) = start_files_remover(&identity.path) {
            verbosity.note(&format!("{error}. The next 'diskproof files' removes them"));
        }
    }
}

/// Returns the paths of the targets that hang.
fn run_and_close(
    mut work: TargetRun,
    steps: Steps,
    mut live: Live,
    verbosity: Verbosity,
) -> Vec<String> {
    let mut ended = steps(&mut work, &mut live);
    if let Some(Err(error)) = work.write_cache.take().map(GuardedWriteCache::restore) {
        ended = Ok(Some(error.to_string()));
        work.results().not_restored = Some(error);
    }
    live.finish();
    work.results().ended = Some(explain_late(ended, &live));
    work.close(verbosity)
}

/// Says why a run ended that the end of its announced time interrupted, not the user.
fn explain_late(ended: Result<EndedEarly, RunError>, live: &Live) -> Result<EndedEarly, RunError> {
    match ended {
        Ok(Some(why)) if live.is_late() => Ok(Some(why.replace(INTERRUPTED, LATE))),
        other => other,
    }
}

struct Watchdog<'a> {
    results: SharedResults,
    deadline: Deadline,
    identities: &'a [TargetIdentity],
    run_end: SharedDeadline,
}

impl Watchdog<'_> {
    fn wait(self, run: &Deferred<Vec<String>>, mut signs: SignsOfLife) -> WatchdogResult {
        let mut next_note = FIRST_NOTE;
        loop {
            match run.poll(POLL_EVERY) {
                Waited::Done(hung) => return self.end(Ok(None), hung),
                Waited::Lost => {
                    let died = io::Error::other("the thread of the run ended unexpectedly");
                    return self.end(Err(RunError::Thread(died)), Vec::new());
                }
                Waited::TimedOut(_) => {}
            }
            let silence = signs.silence();
            if silence < FIRST_NOTE {
                next_note = FIRST_NOTE;
            } else if silence >= next_note {
                next_note *= 2;
                let text = format!("{}: no answer for {}", self.paths(), seconds(silence));
                self.deadline.verbosity.note(&text);
            }
            let end = *lock_deadline(&self.run_end);
            let late = end.map_or(Duration::ZERO, |end| end.elapsed());
            if silence > self.deadline.stall_timeout {
                return self.end_stalled(silence);
            }
            let is_silent = late > AFTER_END && silence > SILENCE_AFTER_END;
            if is_silent || late > AFTER_END_MAX {
                return self.end_late(silence);
            }
        }
    }

    /// Ends without the run's thread, which hangs.
    fn end_stalled(self, silence: Duration) -> WatchdogResult {
        let around = self.step();
        let ended = format!(
            "{} stopped answering near '{around}', between requests; diskproof stopped waiting \
             after {}. What is missing is undecided. See the kernel log (dmesg)",
            self.paths(),
            seconds(silence)
        );
        WatchdogResult {
            stalled: Some(Stalled {
                around,
                lasted_ns: silence.as_nanos() as u64,
            }),
            ..self.end(Ok(Some(ended)), self.all_paths())
        }
    }

    /// Ends without the run's thread, which waits for a target that may be slow and not faulty.
    fn end_late(self, silence: Duration) -> WatchdogResult {
        let mut ended = format!("{}: {LATE}", self.paths());
        if silence > SILENCE_AFTER_END {
            let (step, silence) = (self.step(), seconds(silence));
            ended.push_str(&format!(
                ". Its last request, near '{step}', had waited for {silence}"
            ));
        }
        self.end(Ok(Some(ended)), self.all_paths())
    }

    fn all_paths(&self) -> Vec<String> {
        self.identities.iter().map(|one| one.path.clone()).collect()
    }

    /// Takes the results; `otherwise` is the end of a run that has not reported its own.
    fn end(&self, otherwise: Result<EndedEarly, RunError>, hung: Vec<String>) -> WatchdogResult {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = results.ended.take().unwrap_or(otherwise);
        let stalled = match &ended {
            Err(RunError::Stalled {
                workload, seconds, ..
            }) => Some(Stalled {
                around: workload.clone(),
                lasted_ns: seconds.saturating_mul(1_000_000_000),
            }),
            _ => None,
        };
        WatchdogResult {
            results: std::mem::take(&mut *results),
            ended,
            hung,
            stalled,
        }
    }

    fn paths(&self) -> String {
        self.all_paths().join(", ")
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
