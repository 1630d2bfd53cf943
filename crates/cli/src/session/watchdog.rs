//! The supervisor of a run: it holds the deadline, and takes the partial results where the run
//! hangs. The engine itself stops waiting for requests that hang; this covers every other call that
//! may never return: layout, truncation, flush and close of a target.

use super::prepare::ReadyRun;
use super::run::{EarlyEnd, INTERRUPTED, LATE, PartialResults, SharedResults, TargetRun};
use crate::failure::Failure;
use crate::live::{Live, SharedDeadline, lock_deadline};
use crate::stdio::Verbosity;
use diskproof_analysis::judge::RunFacts;
use diskproof_device::{GuardedWriteCache, MachineCpuTime, OpenTarget, start_files_remover};
use diskproof_engine::RunError;
use diskproof_engine::watchdog::{Deferred, SignsOfLife, Waited};
use diskproof_history::Journal;
use diskproof_model::record::Stalled;
use diskproof_model::target::TargetIdentity;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
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
/// An extended attribute takes microseconds.
const MARKED_WITHIN: Duration = Duration::from_secs(1);

/// Removing a few files takes microseconds.
const JOURNAL_ENDED_WITHIN: Duration = Duration::from_secs(1);

/// A run that has ended.
pub(crate) struct EndedRun {
    /// The record's facts, without how it ended.
    pub facts: RunFacts,
    /// What was measured.
    pub results: PartialResults,
    /// Why it ended before its plan did.
    pub ended: Result<(), EarlyEnd>,
    /// Paths of the targets that hang.
    pub hung: Vec<String>,
    /// The longest silence of a target.
    pub stall_timeout: Duration,
    /// What was saved meanwhile, for the case that the run is killed.
    journal: Option<Arc<Journal>>,
}

impl EndedRun {
    /// Removes what was saved meanwhile: the run is in the history now, or is not to be there.
    pub(crate) fn end_journal(&self) {
        if let Some(journal) = self.journal.clone() {
            // What stays is found by the next reader of the history, which knows the run.
            let ending = Deferred::start_or_run("diskproof-journal", move || journal.end());
            let _ = ending.wait(JOURNAL_ENDED_WITHIN);
        }
    }

    /// The record's facts.
    pub(crate) fn facts(&self) -> RunFacts {
        RunFacts {
            partial: self.ended.is_err(),
            ended_early: self.ended.as_ref().err().map(ToString::to_string),
            ..self.facts.clone()
        }
    }
}

impl ReadyRun {
    /// Carries it out on a separate thread, and waits for the end or for a silence longer than the
    /// stall timeout.
    pub(super) fn run(
        mut self,
        steps: impl FnOnce(&mut TargetRun, &mut Live) -> Result<(), EarlyEnd> + Send + 'static,
    ) -> Result<EndedRun, Failure> {
        let (mut work, mut live) = (self.work, self.live);
        let journal = work.journal.handle();
        let watchdog = Watchdog {
            results: Arc::clone(&work.results),
            stall_timeout: self.stall_timeout,
            verbosity: work.verbosity,
            identities: &self.facts.targets,
            run_end: live.deadline(),
        };
        let signs = SignsOfLife::new(live.heartbeat(), &self.facts.targets);
        let (has_files, verbosity) = (Arc::clone(&work.has_files), work.verbosity);
        let carry_out = move || {
            let mut ended = steps(&mut work, &mut live);
            if let Some(Err(error)) = work.write_cache.take().map(GuardedWriteCache::restore) {
                ended = Err(error.to_string().into());
                work.results().not_restored = Some(error);
            }
            live.finish();
            // The end of its announced time interrupted it, not the user.
            if let Err(EarlyEnd::Reason(why)) = &mut ended
                && live.is_late()
            {
                *why = why.replace(INTERRUPTED, LATE);
            }
            work.results().ended = Some(ended);
            work.close()
        };
        let run = Deferred::start("diskproof-run", carry_out)
            .map_err(|error| Failure::Run(RunError::Thread(error)))?;
        let (otherwise, hung, mut stalled) = watchdog.wait(&run, signs);
        if has_files.load(Ordering::Relaxed) {
            remove_later(watchdog.identities, verbosity);
        }
        let mut results = std::mem::take(&mut *watchdog.results());
        let ended = results.ended.take().unwrap_or(otherwise);
        if let Err(EarlyEnd::Error(RunError::Stalled {
            workload, seconds, ..
        })) = &ended
        {
            stalled.get_or_insert_with(|| Stalled {
                around: workload.clone(),
                lasted_ns: seconds.saturating_mul(1_000_000_000),
            });
        }
        self.facts.stalled = stalled;
        let scratch = self.facts.plan.scratch.as_ref();
        if scratch.is_some_and(|scratch| !scratch.sizes_bytes.is_empty()) {
            // As other tools make their files, whose jobs may write to a part of them only.
            for file in &self.own_files {
                file.lengthen(file.capacity_bytes());
            }
        }
        mark_own(self.own_files);
        // The share of the machine's CPU time that its hypervisor gave to others.
        let cpu_time = MachineCpuTime::now().zip(self.start);
        self.facts.host.stolen_share =
            cpu_time.and_then(|(end, start)| end.stolen_share_since(start));
        Ok(EndedRun {
            facts: self.facts,
            results,
            ended,
            hung,
            stall_timeout: self.stall_timeout,
            journal,
        })
    }
}

/// A target that hangs keeps its files unmarked, and later runs refuse to overwrite them.
fn mark_own(files: Vec<OpenTarget>) {
    if !files.is_empty() {
        let mark = move || files.iter().for_each(OpenTarget::mark_own);
        Deferred::start_or_run("diskproof-mark", mark).wait(MARKED_WITHIN);
    }
}

/// The disk still holds threads of this process, and with them the files of its test.
fn remove_later(identities: &[TargetIdentity], verbosity: Verbosity) {
    for identity in identities {
        if let Err(error) = start_files_remover(&identity.path) {
            verbosity.note(&format!("{error}. The next 'diskproof files' removes them"));
        }
    }
}

fn paths(identities: &[TargetIdentity]) -> Vec<String> {
    identities.iter().map(|one| one.path.clone()).collect()
}

struct Watchdog<'a> {
    results: SharedResults,
    stall_timeout: Duration,
    verbosity: Verbosity,
    identities: &'a [TargetIdentity],
    run_end: SharedDeadline,
}

/// The end of a run that has not reported its own, the paths that hang, and where.
type WaitEnd = (Result<(), EarlyEnd>, Vec<String>, Option<Stalled>);

impl Watchdog<'_> {
    fn wait(&self, run: &Deferred<Vec<String>>, mut signs: SignsOfLife) -> WaitEnd {
        let mut next_note = FIRST_NOTE;
        loop {
            match run.poll(POLL_EVERY) {
                Waited::Done(hung) => return (Ok(()), hung, None),
                Waited::Lost => {
                    let died = std::io::Error::other("the thread of the run ended unexpectedly");
                    return (Err(RunError::Thread(died).into()), Vec::new(), None);
                }
                Waited::TimedOut(_) => {}
            }
            let silence = signs.silence();
            let paths = paths(self.identities);
            if silence < FIRST_NOTE {
                next_note = FIRST_NOTE;
            } else if silence >= next_note {
                next_note *= 2;
                let text = format!("{}: no answer for {}", paths.join(", "), seconds(silence));
                self.verbosity.note(&text);
            }
            let end = *lock_deadline(&self.run_end);
            let late = end.map_or(Duration::ZERO, |end| end.elapsed());
            if silence > self.stall_timeout {
                return self.stalled(silence, paths);
            }
            let is_silent = late > AFTER_END && silence > SILENCE_AFTER_END;
            if is_silent || late > AFTER_END_MAX {
                return (Err(self.late(silence, &paths)), paths, None);
            }
        }
    }

    /// The run's thread hangs.
    fn stalled(&self, silence: Duration, hung: Vec<String>) -> WaitEnd {
        let around = self.step();
        let ended = format!(
            "{} stopped answering near '{around}', between requests; diskproof stopped waiting \
             after {}. What is missing is undecided. See the kernel log (dmesg)",
            hung.join(", "),
            seconds(silence)
        );
        let lasted_ns = silence.as_nanos() as u64;
        (Err(ended.into()), hung, Some(Stalled { around, lasted_ns }))
    }

    /// The run's thread waits for a target that may be slow and not faulty.
    fn late(&self, silence: Duration, paths: &[String]) -> EarlyEnd {
        let mut ended = format!("{}: {LATE}", paths.join(", "));
        if silence > SILENCE_AFTER_END {
            let (step, silence) = (self.step(), seconds(silence));
            ended.push_str(&format!(
                ". Its last request, near '{step}', had waited for {silence}"
            ));
        }
        ended.into()
    }

    fn results(&self) -> MutexGuard<'_, PartialResults> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self) -> String {
        let step = self.results().step.clone();
        step.unwrap_or_else(|| "the first workload".to_owned())
    }
}

fn seconds(duration: Duration) -> String {
    diskproof_model::units::format_duration(duration.as_secs() * 1_000_000_000)
}
