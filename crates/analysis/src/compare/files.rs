//! Compares runs on many small files: gives the rate of each step that both sides did, or the
//! reasons why a step does not measure the same thing in two runs. The number of rounds and the
//! time may differ, because rounds are repetitions.

use super::comparable::fault_of_stop;
use super::differing::Differing;
use super::earlier::EarlierRuns;
use super::pair::{Pair, PartOnSides};
use super::pending_metric::{ComparedFigure, PendingMetric};
use super::reasons::{Compared, Reasons, add_findings};
use super::sides::{Run, Sides, unmatched_entry};
use diskproof_model::comparison::{Figure, Unmatched};
use diskproof_model::files::{CacheState, FileOperation, FileOrder, FileStep, FileSync, FilesPlan};
use diskproof_model::files_record::{FileStepRow, FilesRecord};
use diskproof_model::measurement::StopReason;
use diskproof_model::record::Record;
use diskproof_model::units::{counted, format_bytes};

/// A metric for each step that both sides did. Other steps are added to `unmatched`.
pub(super) fn step_metrics(
    sides: &Sides<'_>,
    earlier: &EarlierRuns<'_>,
    unmatched: &mut Vec<Unmatched>,
) -> Vec<PendingMetric> {
    let mut metrics = Vec::new();
    for step in steps_of_sides(sides) {
        let subject = step.name();
        match Pair::find(sides, earlier, |name, run| StepOfRun::find(name, run, step)) {
            PartOnSides::Both(pair) => metrics.extend(step_metric(&subject, &pair)),
            PartOnSides::OneSide(holder) => unmatched.push(unmatched_entry(&subject, holder)),
            PartOnSides::Neither => {}
        }
    }
    metrics
}

/// The metric of a step: files per second; `None` where a run has no rate of it.
fn step_metric(subject: &str, pair: &Pair<StepOfRun<'_>>) -> Option<PendingMetric> {
    let estimates = pair.estimates_of_runs(|run| Some(run.step().figures.iops.clone()))?;
    let ratio = estimates.ratio();
    let wall_times_ns = pair.parts().map(|part| part.step().data.wall_ns);
    let measured_ns = wall_times_ns.max();
    let mut pending = PendingMetric::new(
        format!("{subject}.{}", Figure::Iops.as_str()),
        ComparedFigure {
            subject,
            figure: Figure::Iops,
            estimates,
            ratio,
            measured_ns,
            reasons: &pair.reasons,
        },
    );
    pending.metric.headline = true;
    Some(pending)
}

/// The steps of both sides, each once, the baseline's first.
fn steps_of_sides(sides: &Sides<'_>) -> Vec<FileStep> {
    let mut steps = Vec::new();
    for named in sides.runs() {
        let Some(files) = named.run.record.files() else {
            continue;
        };
        for row in &files.steps {
            if !steps.contains(&row.data.step) {
                steps.push(row.data.step);
            }
        }
    }
    steps
}

/// A step in one run.
#[derive(Clone, Copy)]
pub(super) struct StepOfRun<'a> {
    /// The side, or one of its runs: `A`, `B` or `A2`.
    pub name: &'a str,
    pub run: &'a Run<'a>,
    pub plan: &'a FilesPlan,
    pub files: &'a FilesRecord,
    /// The index of the step in the record.
    pub index: usize,
}

impl<'a> StepOfRun<'a> {
    /// The step in a run; `None` where the run did not begin it.
    pub(super) fn find(name: &'a str, run: &'a Run<'a>, step: FileStep) -> Option<Self> {
        let files = run.record.files()?;
        Some(Self {
            name,
            run,
            plan: run.record.plan.files()?,
            files,
            index: files.steps.iter().position(|row| row.data.step == step)?,
        })
    }

    /// Its row in the record.
    pub(super) fn step(self) -> &'a FileStepRow {
        &self.files.steps[self.index]
    }
}

impl Compared for StepOfRun<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn record(&self) -> &Record {
        self.run.record
    }

    fn add_differences(self, other: Self, reasons: &mut Reasons) {
        let mut pair = reasons.between(self, other);
        pair.add_if_different(Differing::Count, |part| part.plan.count, count_text);
        pair.add_if_different(
            Differing::FileSize,
            |part| FileSizes::planned(part.plan),
            sizes_text,
        );
        pair.add_if_different(
            Differing::Directories,
            |part| part.plan.directories,
            directories_text,
        );
        pair.add_if_different(Differing::Threads, |part| part.plan.threads, threads_text);
        pair.add_if_different(Differing::Fsync, |part| part.plan.sync, sync_text);
        pair.add_if_different(
            Differing::Order,
            |part| part.plan.orders.as_slice(),
            order_text,
        );
        // One run may have emptied a cache that the other kept.
        let operation = self.step().data.step.operation;
        if matches!(operation, FileOperation::Stat | FileOperation::Read) {
            pair.add_if_different(
                Differing::Cache,
                |part| part.files.caches.names,
                |state| format!("names {}", state_text(state)),
            );
        }
        if operation == FileOperation::Read {
            pair.add_if_different(
                Differing::Cache,
                |part| part.files.caches.pages,
                |state| format!("content {}", state_text(state)),
            );
        }
    }

    /// Only alternation makes findings harmless, and steps on files take no turns.
    fn add_faults(self, _harmless: &[&str], reasons: &mut Reasons) {
        let (name, step) = (self.name, self.step());
        let is_ended_by_errors = step.data.stopped == StopReason::Errors;
        if !is_ended_by_errors && let Some(fault) = fault_of_stop(step.data.stopped) {
            reasons.add(fault.code, format!("{name} {}", fault.predicate));
        }
        if is_ended_by_errors || !step.data.op.errors.is_empty() {
            reasons.add("io-errors", format!("operations failed in {name}"));
        }
        let path = format!("/results/0/steps/{}/", self.index);
        add_findings(reasons, self.name, self.run.record, &[&path], &[]);
    }
}

fn count_text(count: u64) -> String {
    counted(count, "file")
}

fn directories_text(count: u32) -> String {
    match count {
        1 => "1 directory".to_owned(),
        n => format!("{n} directories"),
    }
}

fn threads_text(count: u32) -> String {
    counted(u64::from(count), "thread")
}

fn order_text(orders: &[FileOrder]) -> String {
    let names: Vec<&str> = orders.iter().map(|order| order.as_str()).collect();
    format!("{} order", names.join(" and "))
}

/// The sizes of the smallest and of the largest file of a plan.
#[derive(PartialEq)]
struct FileSizes {
    min_bytes: u64,
    max_bytes: u64,
}

impl FileSizes {
    fn planned(plan: &FilesPlan) -> Self {
        Self {
            min_bytes: plan.file_bytes_min,
            max_bytes: plan.file_bytes_max,
        }
    }
}

fn sizes_text(sizes: FileSizes) -> String {
    let min = format_bytes(sizes.min_bytes);
    if sizes.min_bytes == sizes.max_bytes {
        format!("files of {min}")
    } else {
        format!("files of {min} to {}", format_bytes(sizes.max_bytes))
    }
}

fn sync_text(sync: FileSync) -> String {
    match sync {
        FileSync::None => "no fsync",
        FileSync::File => "fsync of each new file",
        FileSync::Directory => "fsync of the directory",
        FileSync::Both => "fsync of each new file and of the directory",
    }
    .to_owned()
}

fn state_text(state: CacheState) -> &'static str {
    match state {
        CacheState::Kept => "kept in memory",
        CacheState::Dropped => "dropped from memory",
    }
}
