//! Supervises a run: it holds the deadline, and takes the partial results where the run hangs. The
//! engine itself stops waiting for requests that hang; this covers every other call that may never
//! return: layout, truncation, flush and close of a target.

use super::bench::Bench;
use super::drive::drive;
use super::ended_run::{EndedRun, failed_call};
use super::open::OpenRun;
use super::sink::{
    AFTER_END, EarlyEnd, Leftover, SharedResults, Sink, end_with_leftover, late_text,
};
use crate::failure::Failure;
use crate::flags::SECOND_NS;
use crate::interrupt;
use crate::progress_display::{SharedDeadline, lock_deadline};
use crate::stdio::Verbosity;
use diskproof_analysis::judge::RunFacts;
use diskproof_device::{
    GuardedWriteCache, MachineCpuTime, OpenTarget, TargetFailure, start_files_remover,
};
use diskproof_engine::watchdog::{Deferred, SignsOfLife, Waited};
use diskproof_engine::{ENDED_NS, RunError};
use diskproof_model::plan::Task;
use diskproof_model::record::Stalled;
use diskproof_model::target::TargetIdentity;
use diskproof_postgres::PostgresError;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The interval at which the watchdog looks for the end of the run, and for a silence.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// After the end of the run a target is silent that has not answered for this time.
const SILENCE_AFTER_END: Duration = Duration::from_secs(1);
/// The longest that a run may go on where the target still answers, such as one request a second.
const AFTER_END_MAX: Duration = Duration::from_millis(4600);
/// A silence of this length at the end of a run is one of the disk: it needs less to empty its own
/// cache. The engine waits as long.
const LATE_SILENCE: Duration = Duration::from_nanos(ENDED_NS);
/// The first note about a silence comes after this time, each further one after twice the time.
/// Chosen, not measured.
const FIRST_NOTE: Duration = Duration::from_secs(10);
/// The longest wait for the length and the marks of files, which take microseconds.
const MARKED_TIMEOUT: Duration = Duration::from_secs(1);

/// Measures on a thread of its own, and waits for the end or for a silence longer than the stall
/// timeout. What the run has given is taken from its results, whether or not it came to its end.
/// Fails where nothing was measured because a target or server could not be made ready, unless the
/// target failed: that is a fact of the run.
pub(super) fn supervise(open: OpenRun) -> Result<EndedRun, Failure> {
    let OpenRun {
        mut bench,
        mut sink,
        own_files,
        stall_timeout,
        cpu_time,
    } = open;
    let shared_facts = Arc::clone(&bench.facts);
    let session = bench.session;
    let targets = &shared_facts.targets;
    let journals = sink.journal().handles();
    let test_journal = sink.journal().test().cloned();
    let watchdog = Watchdog {
        results: sink.shared_results(),
        stall_timeout,
        verbosity: sink.verbosity,
        tasks: &shared_facts.plan.tasks,
        identities: targets,
        run_end: sink.progress.deadline(),
    };
    let mut signs = SignsOfLife::new(sink.progress.heartbeat(), targets);
    let run = Deferred::start("diskproof-run", move || {
        let ended = drive(&mut bench, &mut sink);
        end_on_thread(ended, bench, sink);
    })
    .map_err(|error| Failure::Run(RunError::Thread(error)))?;
    let waited = watchdog.wait(&run, &mut signs);
    // A run that hangs cannot give the terminal back.
    crate::full_screen::close();
    let mut results = std::mem::take(&mut *watchdog.results.lock());
    results.hung.extend(waited.hung);
    let reported = results.ended.take().unwrap_or(waited.ended);
    let ended = leave_behind(results.leftover, reported, targets, watchdog.verbosity);
    let failed = failure_of_target(&ended)
        .or(results.write_back_failure.take())
        .map(|failure| failed_call(failure, targets, results.step_target));
    let ended = match ended {
        Err(EarlyEnd::NotStarted(failure)) if !results.data.has_results() && failed.is_none() => {
            return Err(failure);
        }
        ended => ended,
    };
    let cpu_time_now = MachineCpuTime::now();
    let mut facts = RunFacts::clone(&shared_facts);
    facts.partial = ended.is_err();
    facts.ended_early = ended.as_ref().err().map(ToString::to_string);
    facts.failed = failed;
    facts.stalled = waited
        .stalled
        .or_else(|| stalled_in_request(&ended, targets, &mut signs));
    facts.silences = std::mem::take(&mut results.silences);
    facts.first_answers = std::mem::take(&mut results.first_answers);
    // The share of the machine's CPU time that its hypervisor gave to others.
    if let (Some(start), Some(now)) = (cpu_time, cpu_time_now) {
        facts.host.stolen_share = now.stolen_share_since(start);
    }
    if let Some(wall) = &mut facts.clock.wall {
        wall.gained_ns = Some(session.wall_gained_ns());
    }
    finish_own_files(own_files, &facts);
    Ok(EndedRun {
        facts,
        results,
        ended,
        stall_timeout,
        is_cleaned_up: true,
        journals,
        test_journal,
    })
}

/// Restores what the run has changed, reports how it ended, and closes the targets.
fn end_on_thread(driven: Result<(), EarlyEnd>, mut bench: Bench, mut sink: Sink) {
    let mut ended = driven;
    sink.finish_tool();
    if let Some(Err(error)) = bench.write_cache.take().map(GuardedWriteCache::restore) {
        ended = Err(error.to_string().into());
        sink.results().cache_error = Some(error);
    }
    sink.progress.finish();
    if let Err(early_end) = &mut ended
        && let Some(cause) = cause_of_interruption(&sink, &bench.facts.plan.tasks)
    {
        early_end.name_cause(&cause);
    }
    let unclaimed = bench.silences();
    sink.results().silences = unclaimed.silences;
    sink.results().first_answers = unclaimed.first_answers;
    sink.results().ended = Some(ended);
    sink.set_step_target(None);
    let hung = bench.close(&sink);
    sink.results().hung = hung;
}

/// The cause of an early end by request: the end of the announced time, or a signal; `None` where
/// it was neither.
fn cause_of_interruption(sink: &Sink, tasks: &[Task]) -> Option<String> {
    if sink.progress.is_late() {
        return Some(late_text(tasks));
    }
    interrupt::end_text()
}

/// Leaves to other processes what a run could not remove, and returns how it ended with that.
fn leave_behind(
    leftover: Option<Leftover>,
    ended: Result<(), EarlyEnd>,
    targets: &[TargetIdentity],
    verbosity: Verbosity,
) -> Result<(), EarlyEnd> {
    match leftover {
        Some(Leftover::Files | Leftover::SlowFiles) => {
            remove_later(targets, verbosity);
            ended
        }
        Some(Leftover::Server) => {
            let leftover_error = PostgresError::removed_later(Path::new(&targets[0].path));
            end_with_leftover(ended, &leftover_error)
        }
        None => ended,
    }
}

/// The failure of a target that ended a run; `None` where it ended otherwise.
fn failure_of_target(ended: &Result<(), EarlyEnd>) -> Option<TargetFailure> {
    match ended {
        Ok(()) | Err(EarlyEnd::Reason(_) | EarlyEnd::Unanswered { .. }) => None,
        Err(EarlyEnd::Error(error)) => error.of_target(),
        Err(EarlyEnd::NotStarted(failure)) => failure.of_target(),
    }
}

/// The silence in which the engine has stopped waiting for a request: since it lasted too long, or
/// since the run was to end.
fn stalled_in_request(
    ended: &Result<(), EarlyEnd>,
    targets: &[TargetIdentity],
    signs: &mut SignsOfLife,
) -> Option<Stalled> {
    let Err(early_end) = ended else {
        return None;
    };
    let (path, workload, seconds, late) = match early_end {
        EarlyEnd::Error(RunError::Stalled {
            path,
            workload,
            seconds,
        }) => (path, workload, seconds, false),
        EarlyEnd::Unanswered {
            path,
            workload,
            seconds,
            ..
        } => (path, workload, seconds, true),
        EarlyEnd::Reason(_) | EarlyEnd::Error(_) | EarlyEnd::NotStarted(_) => return None,
    };
    let target = targets.iter().position(|target| target.path == *path);
    Some(Stalled {
        around: workload.clone(),
        lasted_ns: seconds.saturating_mul(SECOND_NS),
        late,
        has_answered: signs.has_answered(target),
        target,
    })
}

/// Gives files of this program their length. Those of other tools get their whole one, as these
/// tools make them: their jobs may write to a part only. A target that hangs keeps its files
/// unmarked, and later runs refuse to overwrite them.
fn finish_own_files(files: Vec<OpenTarget>, facts: &RunFacts) {
    if files.is_empty() {
        return;
    }
    let is_of_tool = match &facts.plan.scratch {
        Some(scratch) => scratch.has_own_files(),
        None => false,
    };
    // A write that hangs may hold the lock of the file's inode.
    let marking = Deferred::start_or_run("diskproof-mark", move || {
        for file in &files {
            let size_bytes = if is_of_tool { file.capacity_bytes() } else { 0 };
            file.set_final_lengths(size_bytes);
        }
    });
    marking.wait(MARKED_TIMEOUT);
}

/// Has another process remove the files of the test, which threads of this process still hold.
fn remove_later(identities: &[TargetIdentity], verbosity: Verbosity) {
    for identity in identities {
        if let Err(error) = start_files_remover(&identity.path) {
            verbosity.note(&format!("{error}. The next 'diskproof files' removes them"));
        }
    }
}

fn paths_of(identities: &[TargetIdentity]) -> Vec<String> {
    identities
        .iter()
        .map(|identity| identity.path.clone())
        .collect()
}

/// Waits for a run, but not for one that hangs.
struct Watchdog<'a> {
    results: SharedResults,
    stall_timeout: Duration,
    verbosity: Verbosity,
    tasks: &'a [Task],
    identities: &'a [TargetIdentity],
    run_end: SharedDeadline,
}

/// The end of the wait for a run.
struct WaitEnd {
    /// The end of a run that has not reported its own.
    ended: Result<(), EarlyEnd>,
    /// Paths of the targets that hang.
    hung: Vec<String>,
    /// Where they hang.
    stalled: Option<Stalled>,
}

impl WaitEnd {
    /// The end of a run that does not hang.
    fn without_hang(ended: Result<(), EarlyEnd>) -> Self {
        Self {
            ended,
            hung: Vec::new(),
            stalled: None,
        }
    }
}

impl Watchdog<'_> {
    /// Waits for the end of a run, or until it hangs.
    fn wait(&self, run: &Deferred<()>, signs: &mut SignsOfLife) -> WaitEnd {
        let mut next_note = FIRST_NOTE;
        loop {
            match run.poll(POLL_INTERVAL) {
                Waited::Done(()) => return WaitEnd::without_hang(Ok(())),
                Waited::Lost => {
                    let error = std::io::Error::other("the thread of the run ended unexpectedly");
                    return WaitEnd::without_hang(Err(RunError::Thread(error).into()));
                }
                Waited::TimedOut(_) => {}
            }
            signs.count_only(self.results.lock().step_target);
            let silence = signs.silence();
            let paths = self.silent_paths();
            if silence < FIRST_NOTE {
                next_note = FIRST_NOTE;
            } else if silence >= next_note {
                next_note *= 2;
                let text = format!(
                    "{}: no answer for {}",
                    paths.join(", "),
                    whole_seconds(silence)
                );
                self.verbosity.note(&text);
            }
            if silence > self.stall_timeout {
                return self.end_of_stalled(silence, paths, signs);
            }
            let late = match *lock_deadline(&self.run_end) {
                Some(end) => end.elapsed(),
                None => Duration::ZERO,
            };
            if is_overdue(late, silence) {
                return WaitEnd {
                    ended: Err(self.end_of_late(silence, &paths)),
                    hung: paths,
                    stalled: self.stalled_late(silence, signs),
                };
            }
        }
    }

    /// The end of a run whose thread hangs.
    fn end_of_stalled(
        &self,
        silence: Duration,
        hung: Vec<String>,
        signs: &mut SignsOfLife,
    ) -> WaitEnd {
        let around = self.current_step();
        let target = self.results.lock().step_target;
        let ended = format!(
            "{} stopped answering near '{around}', between requests; diskproof stopped waiting \
             after {}. What is missing is undecided. See the kernel log (dmesg)",
            hung.join(", "),
            whole_seconds(silence)
        );
        let lasted_ns = silence.as_nanos() as u64;
        WaitEnd {
            ended: Err(ended.into()),
            hung,
            stalled: Some(Stalled {
                around,
                lasted_ns,
                late: false,
                has_answered: signs.has_answered(target),
                target,
            }),
        }
    }

    /// The end of a run whose thread waits for a target that may be slow and not faulty.
    fn end_of_late(&self, silence: Duration, paths: &[String]) -> EarlyEnd {
        let mut ended = format!("{}: {}", paths.join(", "), late_text(self.tasks));
        if silence > SILENCE_AFTER_END {
            ended.push_str(&format!(
                ". Its last request, near '{}', had waited for {}",
                self.current_step(),
                whole_seconds(silence)
            ));
        }
        ended.into()
    }

    /// A silence at the end that is long enough to tell of, and longer than the disks need by their
    /// own rate. They have to be known: without their counters, slow is not told from silent.
    fn stalled_late(&self, silence: Duration, signs: &mut SignsOfLife) -> Option<Stalled> {
        let is_counted = self
            .identities
            .iter()
            .all(|identity| identity.disks().next().is_some());
        let target = self.results.lock().step_target;
        let has_answered = signs.has_answered(target);
        if silence < LATE_SILENCE.max(signs.usual_silence(target)) || !is_counted {
            return None;
        }
        Some(Stalled {
            around: self.current_step(),
            lasted_ns: silence.as_nanos() as u64,
            late: true,
            has_answered,
            target,
        })
    }

    /// The paths of the targets that may be silent: that of the step's target, where it has one.
    fn silent_paths(&self) -> Vec<String> {
        let only = self.results.lock().step_target;
        match only.and_then(|target| self.identities.get(target)) {
            Some(identity) => vec![identity.path.clone()],
            None => paths_of(self.identities),
        }
    }

    /// The current step of the run.
    fn current_step(&self) -> String {
        match &self.results.lock().step {
            Some(step) => step.clone(),
            None => "the first workload".to_owned(),
        }
    }
}

/// True if a run whose announced end has passed by `late` is waited for no longer.
fn is_overdue(late: Duration, silence: Duration) -> bool {
    let is_silent = silence > SILENCE_AFTER_END;
    (late > AFTER_END && is_silent) || late > AFTER_END_MAX
}

/// A duration in whole seconds.
fn whole_seconds(duration: Duration) -> String {
    diskproof_model::units::format_duration(duration.as_secs() * SECOND_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_device::OpenError;

    fn identity(path: &str) -> TargetIdentity {
        TargetIdentity {
            path: path.to_owned(),
            ..diskproof_analysis::fixture::record().targets[0].clone()
        }
    }

    /// A write-back that the disk fails is a fact of the run; a full filesystem is none.
    #[test]
    fn call_that_a_target_failed_is_kept_with_its_target() {
        let targets = [identity("/a"), identity("/b")];
        let failed = |path: &str, errno: &str| {
            let error = OpenError::System {
                path: path.to_owned(),
                doing: "write it back (fdatasync)",
                errno: errno.to_owned(),
            };
            let failure = failure_of_target(&Err(EarlyEnd::from(error)))?;
            Some(failed_call(failure, &targets, None))
        };
        let call = failed("/b/.diskproof-files", "EIO").unwrap();
        assert_eq!((call.errno.as_str(), call.target), ("EIO", Some(1)));
        assert_eq!(failed("/b", "ENOMEM"), None);
        let full = Failure::Open(OpenError::NoSpace {
            path: "/a".to_owned(),
            doing: "create a scratch file in it",
        });
        assert_eq!(failure_of_target(&Err(full.into())), None);
    }

    #[test]
    fn target_that_answers_gets_a_little_longer_than_a_silent_one() {
        let (answered, silent) = (Duration::from_millis(900), Duration::from_millis(1100));
        let ms = Duration::from_millis;
        assert_eq!(
            [answered, silent].map(|last| is_overdue(ms(4300), last)),
            [false; 2]
        );
        assert_eq!(
            [answered, silent].map(|last| is_overdue(ms(4301), last)),
            [false, true]
        );
        assert_eq!(
            [answered, silent].map(|last| is_overdue(ms(4601), last)),
            [true; 2]
        );
    }
}
