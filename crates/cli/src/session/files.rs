//! Carries out a plan of operations on many small files: makes their directory, shows the progress,
//! keeps what is measured, and removes the directory.

use super::run::{EarlyEnd, TargetRun};
use crate::failure::Failure;
use crate::live::Live;
use crate::stdio::{ProgressLine, Verbosity, eprint_line};
use diskproof_device::{FileTree, OpenError, StartedTree};
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_engine::{FilesEnding, RunError};
use diskproof_model::files::{FileStepMeasurement, FilesMeasurement, FilesPlan};
use diskproof_model::progress::{Control, Phase, Progress, Watch};
use diskproof_model::units::{counted, format_duration, format_percent, format_rate};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Part of a second over which the shown rate is taken.
const READING: Duration = Duration::from_millis(500);
/// How often the wait for the directory looks whether it should end.
const START_POLL: Duration = Duration::from_millis(100);

impl TargetRun {
    /// Makes the directory of the files. What an earlier run left there is removed first. `None`
    /// where the disk needs longer than the run may last, or the user ended it.
    pub(super) fn start_files(
        &mut self,
        plan: &FilesPlan,
        live: &Live,
    ) -> Result<Option<StartedTree>, Failure> {
        let folders = plan.directories;
        let bytes_max = plan.file_bytes_max.max(plan.file_bytes_min);
        let Some(admission) = self.file_tree.take() else {
            let path = self.plan.targets.join(", ");
            return Err(Failure::Open(OpenError::NotScratch { path }));
        };
        let failed = |error| Failure::Run(RunError::Thread(error));
        let start = move || FileTree::start(admission, folders, bytes_max);
        let starting = Deferred::start("diskproof-start", start).map_err(failed)?;
        self.has_files.store(true, Ordering::Relaxed);
        let started = loop {
            match starting.poll(START_POLL) {
                Waited::Done(started) => break started,
                Waited::TimedOut(_) if live.is_over() => return Ok(None),
                Waited::TimedOut(_) => {}
                Waited::Lost => {
                    return Err(failed(std::io::Error::other("a thread ended unexpectedly")));
                }
            }
        };
        self.has_files.store(started.is_ok(), Ordering::Relaxed);
        let started = started.map_err(Failure::Open)?;
        if let Some(files) = started.leftover_files {
            self.verbosity.note(&format!(
                "removed {}, left by a killed run with {}",
                started.tree.path().display(),
                counted(files, "file")
            ));
        }
        Ok(Some(started))
    }

    /// Carries out the steps.
    pub(super) fn files(&mut self, live: &mut Live, started: StartedTree) -> Result<(), EarlyEnd> {
        let (plan, verbosity) = (Arc::clone(&self.plan), self.verbosity);
        let Some(plan) = plan.files() else {
            return Ok(());
        };
        let leftover_files = started.leftover_files;
        let tree = Arc::new(started.tree);
        let path = tree.path().display().to_string();
        let results = Arc::clone(&self.results);
        let mut keep = |measured: &FilesMeasurement| {
            let files = FilesMeasurement {
                leftover_files,
                ..measured.clone()
            };
            if let (Verbosity::Lines, Some(line)) = (verbosity, step_line(plan, &files)) {
                eprint_line(&line);
            }
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results.data.files = Some(files);
        };
        self.results().step = Some("files".to_owned());
        let mut watch = FilesLive {
            plan,
            live,
            line: ProgressLine::of(verbosity),
            started: Instant::now(),
        };
        let ending = self.session.files(plan, &tree, &mut watch, &mut keep);
        watch.line.clear();
        // After a hang the workers still hold it, and the removal would hang, too.
        if let Some(tree) = Arc::into_inner(tree) {
            match tree.remove() {
                Ok(()) => {}
                Err(error @ OpenError::Stays { .. }) => eprint_line(&format!("warning: {error}")),
                Err(error) => verbosity.note(&format!(
                    "cannot remove {path} ({error}); the next 'diskproof files' removes it"
                )),
            }
            self.has_files.store(false, Ordering::Relaxed);
        }
        match ending? {
            FilesEnding::Complete => Ok(()),
            FilesEnding::Interrupted => Err(EarlyEnd::interrupted()),
            FilesEnding::Errors => Err(self.files_failed(&path).into()),
        }
    }

    /// The operation that failed, and what to do.
    fn files_failed(&self, path: &str) -> String {
        let results = self.results();
        let mut steps = results.data.files.iter().flat_map(|files| &files.steps);
        let Some(failed) = steps.find(|step| !step.op.errors.is_empty()) else {
            return format!("{path}: operations failed");
        };
        let errors = failed.op.errors.iter();
        let errors: Vec<String> = errors.map(|(errno, n)| format!("{n} × {errno}")).collect();
        format!(
            "{path}: '{}' failed after {} ({}); {}. The files of the test are removed",
            failed.step.name(),
            counted(failed.op.count, "file"),
            errors.join(", "),
            what_to_do(failed.op.errors.keys().map(String::as_str))
        )
    }
}

/// What to do about errors, a clause.
fn what_to_do<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let any = |wanted| names.clone().any(|name| name == wanted);
    if any("ENOSPC") {
        return "no space or no inodes left: free some, or use a smaller --count".to_owned();
    }
    if any("EEXIST") || any("ENOENT") {
        "another program creates, renames or removes files in this directory".to_owned()
    } else {
        diskproof_model::errno::remedy(names)
    }
}

/// A step that has had its last round: `create-sequential: 12,300/s`.
fn step_line(plan: &FilesPlan, files: &FilesMeasurement) -> Option<String> {
    let rounds = plan.rounds as usize;
    let newest_end = |step: &&FileStepMeasurement| step.rounds.last().map(|round| round.start_ns);
    let step = files.steps.iter().max_by_key(newest_end)?;
    let rate = step.op.count as f64 * 1e9 / step.wall_ns.max(1) as f64;
    let is_over = step.rounds.len() == rounds;
    is_over.then(|| format!("{}: {}/s", step.step.name(), format_rate(rate)))
}

/// Watches the steps.
struct FilesLive<'a> {
    plan: &'a FilesPlan,
    live: &'a mut Live,
    line: ProgressLine,
    started: Instant,
}

impl FilesLive<'_> {
    /// `create-random 62 %, 12,300/s, at most 31 s left`.
    fn reading(&self, progress: &Progress<'_>) -> String {
        let share = format_percent(progress.done.unwrap_or(0.0));
        let mut figures = vec![format!("{} {share}", progress.name)];
        if progress.phase == Phase::Measure {
            let interval_ns = progress.series.interval_ns.max(1);
            let cells = (READING.as_nanos() as u64 / interval_ns).max(1) as usize;
            let recent: Vec<_> = progress.series.cells.iter().rev().take(cells).collect();
            let seconds = recent.len().max(1) as f64 * interval_ns as f64 / 1e9;
            let ops: u64 = recent.iter().map(|cell| cell.ops).sum();
            figures.push(format!("{}/s", format_rate(ops as f64 / seconds)));
        }
        let spent_ns = self.started.elapsed().as_nanos() as u64;
        let left_ns = self.plan.time_ns.saturating_sub(spent_ns);
        let left_ns = left_ns / 1_000_000_000 * 1_000_000_000;
        figures.push(format!("at most {} left", format_duration(left_ns)));
        figures.extend(self.live.silence_text(progress));
        figures.join(", ")
    }
}

impl Watch for FilesLive<'_> {
    fn tick(&mut self, progress: &Progress<'_>) -> Control {
        if self.line.is_due() {
            let text = self.reading(progress);
            self.line.show(&text);
        }
        self.live.tick_silently(progress)
    }
}
