//! Carries out a plan of operations on many small files: makes their directory, shows the progress,
//! keeps what is measured, and removes the directory.

use super::bench::Bench;
use super::running::{Running, Stepped};
use super::sink::{AFTER_END, EarlyEnd, Leftover, Sink};
use crate::failure::Failure;
use crate::flags::SECOND_NS;
use crate::progress_display::{ProgressDisplay, RecentRates};
use crate::stdio::{ProgressLine, Verbosity, eprint_line};
use diskproof_device::{FileTree, OpenError, Pulse, StartedTree};
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_engine::{ENDED_NS, FilesEnding, RunError};
use diskproof_model::files::{FileStepMeasurement, FilesMeasurement, FilesPlan};
use diskproof_model::progress::{Control, Phase, Progress, Watch};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{counted, format_duration, format_percent, format_rate};
use std::sync::Arc;
use std::time::Duration;

/// The shown rate is that of this last time.
const SHOWN_RATE_TIME: Duration = Duration::from_millis(500);
/// A run that is over waits so long for the removal of its files. Chosen, not measured.
const REMOVED_TIMEOUT: Duration = Duration::from_secs(3);
/// It waits no longer than this after the announced end, so that the watchdog, which takes a disk
/// that is silent then for one that does not answer, does not end it before.
const REMOVED_BY: Duration = AFTER_END.saturating_sub(Duration::from_millis(300));
/// The interval at which the wait for the directory checks whether it should end.
const START_POLL: Duration = Duration::from_millis(100);

/// A disk that has answered nothing for so long, when the run ends, is told as silent, as in the
/// engine.
const SILENCE_MIN: Duration = Duration::from_nanos(ENDED_NS);
/// What becomes of the files when a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilesFate {
    Removed,
    /// The disk needs longer than the run may last: another process removes them.
    RemovedLater,
    /// They could not be removed, or the disk does not answer.
    Stay,
}

impl FilesFate {
    /// The sentence for a run that ends with an error, without its full stop.
    fn sentence(self) -> &'static str {
        match self {
            Self::Removed => "The files of the test are removed",
            Self::RemovedLater => "Another process goes on removing the files of the test",
            Self::Stay => "Files of the test stay in .diskproof-files",
        }
    }
}

/// The first line about a pass that is not measured comes after this time, each further one after
/// twice the time. Chosen, not measured.
const FIRST_LINE: Duration = Duration::from_secs(10);

/// Operations on many small files while they are measured, in one step.
pub(super) struct FilesRun<'p> {
    plan: &'p FilesPlan,
    /// Their directory. After a hang the workers still hold it.
    tree: Arc<FileTree>,
    /// Files that an earlier run had left there.
    leftover_files: Option<u64>,
    /// True once operations have failed: the reason then says what becomes of the files.
    has_failed: bool,
}

impl<'p> FilesRun<'p> {
    /// Makes the directory of the files. What an earlier run left there is removed first. The run
    /// ends here where the disk needs longer than it may last.
    pub(super) fn start(
        plan: &'p FilesPlan,
        bench: &mut Bench,
        sink: &mut Sink,
    ) -> Result<Self, EarlyEnd> {
        let Some(admission) = bench.file_tree.take() else {
            let path = bench.facts.plan.targets.join(", ");
            return Err(Failure::Open(OpenError::NotScratch { path }).into());
        };
        let folders = plan.directories;
        let bytes_max = plan.file_bytes_max.max(plan.file_bytes_min);
        let starting = Deferred::start("diskproof-start", move || {
            FileTree::start(admission, folders, bytes_max)
        })
        .map_err(not_started)?;
        sink.results().leftover = Some(Leftover::Files);
        let StartedTree {
            tree,
            leftover_files,
        } = match wait_for_tree(&starting, &bench.facts.targets[0], sink)? {
            Ok(started) => started,
            Err(error) => {
                sink.results().leftover = None;
                return Err(Failure::Open(error).into());
            }
        };
        if let Some(files) = leftover_files {
            sink.verbosity.note(&format!(
                "removed {}, left by a killed run with {}",
                tree.path().display(),
                counted(files, "file")
            ));
        }
        Ok(Self {
            plan,
            tree: Arc::new(tree),
            leftover_files,
            has_failed: false,
        })
    }
}

/// Waits until the directory is made, unless the run is over before. Without counters of the disk,
/// slow is not told from silent.
fn wait_for_tree(
    starting: &Deferred<Result<StartedTree, OpenError>>,
    identity: &TargetIdentity,
    sink: &mut Sink,
) -> Result<Result<StartedTree, OpenError>, EarlyEnd> {
    let mut pulse = Pulse::start(identity);
    let is_counted = identity.disks().next().is_some();
    let mut answered = Duration::ZERO;
    loop {
        sink.progress.heartbeat().beat();
        match starting.poll(START_POLL) {
            Waited::Done(started) => return Ok(started),
            Waited::TimedOut(elapsed) if sink.progress.is_over() => {
                sink.progress.look_at_end();
                let silence = elapsed.saturating_sub(answered);
                let usual = Duration::from_nanos(pulse.usual_silence_ns());
                if !is_counted || silence < SILENCE_MIN.max(usual) {
                    return Err(EarlyEnd::interrupted());
                }
                return Err(EarlyEnd::from(RunError::Unanswered {
                    path: identity.path.clone(),
                    workload: "the start of files".to_owned(),
                    seconds: silence.as_secs(),
                }));
            }
            Waited::TimedOut(elapsed) => {
                if pulse.beats() {
                    answered = elapsed;
                }
            }
            Waited::Lost => {
                let error = std::io::Error::other("a thread ended unexpectedly");
                return Err(not_started(error).into());
            }
        }
    }
}

fn not_started(error: std::io::Error) -> Failure {
    Failure::Run(RunError::Thread(error))
}

impl Running for FilesRun<'_> {
    fn step(&mut self, bench: &mut Bench, sink: &mut Sink) -> Result<Stepped, EarlyEnd> {
        let plan = self.plan;
        let verbosity = sink.verbosity;
        let results = sink.shared_results();
        sink.begin_step("files");
        let (display, mut keeper) = sink.display_and_keeper();
        let mut watch = FilesProgress {
            display,
            line: ProgressLine::new(verbosity),
            pass_lines: PassLines::new(verbosity),
        };
        let mut printed_line = None;
        let ending = bench
            .session
            .files(plan, &self.tree, &mut watch, &mut |measured| {
                let line = ended_step_line(plan, measured);
                if verbosity == Verbosity::Lines
                    && let Some(line) = &line
                    && printed_line.as_ref() != Some(line)
                {
                    eprint_line(line);
                }
                printed_line = line.or(printed_line.take());
                let measured = FilesMeasurement {
                    leftover_files: self.leftover_files,
                    ..measured.clone()
                };
                if keeper.may_keep() {
                    keeper.keep_files(&measured);
                }
                results.lock().data.files = Some(measured);
            });
        watch.line.clear();
        match ending? {
            FilesEnding::Complete => Ok(Stepped::Over),
            FilesEnding::Interrupted => Err(EarlyEnd::interrupted()),
            FilesEnding::Errors => {
                self.has_failed = true;
                let path = self.tree.path().display().to_string();
                let files = sink.results().data.files.clone();
                Err(files_failed(&path, files.as_ref()).into())
            }
        }
    }

    /// Removes the directory. After a hang the removal would hang, too.
    fn end(
        self: Box<Self>,
        ended: Result<(), EarlyEnd>,
        _: &mut Bench,
        sink: &mut Sink,
    ) -> Result<(), EarlyEnd> {
        let Self {
            tree, has_failed, ..
        } = *self;
        let fate = remove(tree, sink);
        match ended {
            Err(EarlyEnd::Reason(why)) if has_failed => {
                Err(format!("{why}. {}", fate.sentence()).into())
            }
            ended => ended,
        }
    }
}

/// Removes the directory, unless a worker that hangs still holds it.
fn remove(tree: Arc<FileTree>, sink: &mut Sink) -> FilesFate {
    let path = tree.path().display().to_string();
    let Some(tree) = Arc::into_inner(tree) else {
        return FilesFate::Stay;
    };
    let removal = Deferred::start_or_run("diskproof-remove", move || tree.remove());
    let Some(removed) = wait_for_removal(&removal, sink) else {
        sink.verbosity.note(&format!(
            "another process goes on removing {path}: the disk needs longer for it"
        ));
        sink.results().leftover = Some(Leftover::SlowFiles);
        return FilesFate::RemovedLater;
    };
    sink.results().leftover = None;
    match removed {
        Ok(()) => FilesFate::Removed,
        Err(error @ OpenError::Stays { .. }) => {
            eprint_line(&format!("warning: {error}"));
            FilesFate::Stay
        }
        Err(error) => {
            eprint_line(&format!(
                "warning: cannot remove {path} ({error}); the next 'diskproof files' removes it"
            ));
            FilesFate::Stay
        }
    }
}

/// Waits until the directory is removed; `None` where the run is over before, and the disk needs
/// longer. Its files are then left to another process.
fn wait_for_removal(
    removal: &Deferred<Result<(), OpenError>>,
    sink: &Sink,
) -> Option<Result<(), OpenError>> {
    let mut over_for = Duration::ZERO;
    loop {
        let late = match sink.progress.announced_end() {
            Some(end) => end.elapsed(),
            None => Duration::ZERO,
        };
        match removal.poll(START_POLL) {
            Waited::Done(removed) => return Some(removed),
            Waited::TimedOut(_) if sink.progress.is_over() => over_for += START_POLL,
            Waited::TimedOut(_) => {}
            Waited::Lost => return None,
        }
        // Behind a look at it: it may be done however late the run is.
        if is_left_to_another_process(over_for, late) {
            return None;
        }
    }
}

/// True once a removal has had its time: the run has been over for long enough, or its announced
/// time has, which the removal of the files before may have used up.
fn is_left_to_another_process(over_for: Duration, late: Duration) -> bool {
    over_for >= REMOVED_TIMEOUT || late >= REMOVED_BY
}

/// Names the operation that failed, and what the user can do.
fn files_failed(path: &str, measured: Option<&FilesMeasurement>) -> String {
    let failed = match measured {
        Some(files) => files.steps.iter().find(|step| !step.op.errors.is_empty()),
        None => None,
    };
    let Some(failed) = failed else {
        return format!("{path}: operations failed");
    };
    let mut counts = Vec::new();
    let mut names = Vec::new();
    for (errno, count) in &failed.op.errors {
        counts.push(format!("{count} × {errno}"));
        names.push(errno.as_str());
    }
    format!(
        "{path}: '{}' failed after {} ({}); {}",
        failed.step.name(),
        counted(failed.op.count, "file"),
        counts.join(", "),
        remedy(&names)
    )
}

/// A clause that tells the user what to do about errors.
fn remedy(names: &[&str]) -> String {
    if names.contains(&"ENOSPC") {
        "no space or no inodes left: free some, or use a smaller --count".to_owned()
    } else if names.contains(&"EEXIST") || names.contains(&"ENOENT") {
        "another program creates, renames or removes files in this directory".to_owned()
    } else {
        diskproof_model::errno::remedy(names.iter().copied())
    }
}

/// The newest step, where it has had its last round: `create-sequential: 12,300/s`.
fn ended_step_line(plan: &FilesPlan, files: &FilesMeasurement) -> Option<String> {
    let newest = files.steps.iter().max_by_key(|step| last_start_ns(step))?;
    if newest.rounds.len() != plan.rounds as usize {
        return None;
    }
    let rate = newest.op.count as f64 * SECOND_NS as f64 / newest.wall_ns.max(1) as f64;
    Some(format!("{}: {}/s", newest.step.name(), format_rate(rate)))
}

fn last_start_ns(step: &FileStepMeasurement) -> Option<u64> {
    Some(step.rounds.last()?.start_ns)
}

/// Shows the progress of the steps.
struct FilesProgress<'a> {
    display: &'a mut ProgressDisplay,
    line: ProgressLine,
    pass_lines: PassLines,
}

/// The lines about passes that are not measured, where no terminal shows their progress.
struct PassLines {
    is_wanted: bool,
    next: Duration,
}

impl PassLines {
    fn new(verbosity: Verbosity) -> Self {
        Self {
            is_wanted: verbosity == Verbosity::Lines,
            next: FIRST_LINE,
        }
    }

    /// `write-back 62 % after 20 s`, where it is time for one.
    fn line(&mut self, progress: &Progress<'_>) -> Option<String> {
        let elapsed = Duration::from_nanos(progress.elapsed_ns);
        if progress.phase != Phase::Layout || elapsed < FIRST_LINE {
            self.next = FIRST_LINE;
            return None;
        }
        if !self.is_wanted || elapsed < self.next {
            return None;
        }
        self.next *= 2;
        let share = format_percent(progress.done.unwrap_or(0.0));
        let whole_seconds = format_duration(progress.elapsed_ns / SECOND_NS * SECOND_NS);
        Some(format!("{} {share} after {whole_seconds}", progress.name))
    }
}

impl FilesProgress<'_> {
    /// `create-random 62 %, 12,300/s, at most 31 s left`.
    fn line_text(&self, progress: &Progress<'_>) -> String {
        let share = format_percent(progress.done.unwrap_or(0.0));
        let mut figures = vec![format!("{} {share}", progress.name)];
        if progress.phase == Phase::Measure {
            let rates = RecentRates::over(progress.series, SHOWN_RATE_TIME);
            figures.push(format!("{}/s", format_rate(rates.iops)));
        }
        if let Some(left_ns) = self.display.announced_left_ns() {
            let whole_seconds = format_duration(left_ns / SECOND_NS * SECOND_NS);
            figures.push(format!("at most {whole_seconds} left"));
        }
        figures.extend(self.display.silence_text(progress));
        figures.join(", ")
    }
}

impl Watch for FilesProgress<'_> {
    fn tick(&mut self, progress: &Progress<'_>) -> Control {
        if self.line.is_due() {
            let text = self.line_text(progress);
            self.line.show(&text);
        }
        if let Some(line) = self.pass_lines.line(progress) {
            eprint_line(&line);
        }
        self.display.tick_silently(progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::series::TimeSeries;

    #[test]
    fn removal_is_left_to_another_process_before_the_watchdog_ends_the_run() {
        let ms = Duration::from_millis;
        assert!(!is_left_to_another_process(ms(2900), ms(2900)));
        assert!(is_left_to_another_process(ms(3000), ms(0)));
        // The removal of the files has taken three seconds after the announced end.
        assert!(is_left_to_another_process(ms(1000), ms(4000)));
        assert!(REMOVED_BY + START_POLL < AFTER_END);
    }

    #[test]
    fn long_pass_that_is_not_measured_has_a_line_now_and_then() {
        let series = TimeSeries::new(SECOND_NS);
        let mut lines = PassLines::new(Verbosity::Lines);
        let mut printed = |phase, seconds: u64| {
            let elapsed_ns = seconds * SECOND_NS;
            let progress = Progress {
                done: Some(0.5),
                ..Progress::new("write-back", phase, elapsed_ns, &series)
            };
            lines.line(&progress).is_some()
        };
        assert_eq!(
            [9, 10, 11, 19, 20, 39, 40].map(|seconds| printed(Phase::Layout, seconds)),
            [false, true, false, false, true, false, true]
        );
        // The next pass begins anew, and steps have lines of their own.
        assert!(!printed(Phase::Layout, 1));
        assert!(printed(Phase::Layout, 10) && !printed(Phase::Measure, 20));
        assert_eq!(PassLines::new(Verbosity::Quiet).next, FIRST_LINE);
    }
}
