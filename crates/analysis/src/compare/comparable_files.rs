//! Whether a step on many small files measures the same in two runs. The number of rounds and the
//! time may differ: rounds are repetitions.

use super::reasons::{Reasons, busy, method, tainted};
use super::sides::Run;
use diskproof_model::comparison::Reason;
use diskproof_model::files::{CacheState, FileOperation, FileStep, FileSync, FilesPlan};
use diskproof_model::measurement::StopReason;
use diskproof_model::record::{FileStepRecord, FilesRecord};
use diskproof_model::units::{counted, format_bytes};

/// A step in one run.
#[derive(Clone, Copy)]
pub(super) struct StepOfRun<'a> {
    /// `A`, `B`, or which of its runs: `A2`.
    pub name: &'a str,
    pub run: &'a Run<'a>,
    pub plan: &'a FilesPlan,
    pub files: &'a FilesRecord,
    pub index: usize,
}

impl<'a> StepOfRun<'a> {
    /// The step in a run; `None` where the run did not begin it.
    pub(super) fn find(name: &'a str, run: &'a Run<'a>, step: FileStep) -> Option<Self> {
        let files = run.record.files.as_ref()?;
        Some(Self {
            name,
            run,
            plan: run.record.plan.files.as_ref()?,
            files,
            index: files.steps.iter().position(|of| of.step == step)?,
        })
    }

    pub(super) fn step(self) -> &'a FileStepRecord {
        &self.files.steps[self.index]
    }
}

/// Why a step does not compare: every run is compared with the first, and examined by itself.
pub(super) fn of_step(runs: &[StepOfRun<'_>]) -> Vec<Reason> {
    let mut reasons = Reasons::default();
    if let Some(first) = runs.first() {
        runs[1..]
            .iter()
            .for_each(|other| step_conditions(&mut reasons, *first, *other));
    }
    runs.iter().for_each(|run| step_faults(&mut reasons, *run));
    let records: Vec<_> = runs.iter().map(|run| (run.name, run.run.record)).collect();
    busy(&mut reasons, &records);
    reasons.done()
}

/// Whether a step of `other` measured the same as that of `first`, without a fault.
pub(super) fn repeats(first: StepOfRun<'_>, other: StepOfRun<'_>) -> bool {
    let mut reasons = Reasons::default();
    step_conditions(&mut reasons, first, other);
    step_faults(&mut reasons, other);
    reasons.done().is_empty()
}

fn step_conditions(reasons: &mut Reasons, a: StepOfRun<'_>, b: StepOfRun<'_>) {
    method(reasons, (a.name, a.run.record), (b.name, b.run.record));
    let (x, y) = (a.plan, b.plan);
    let count = |n: &u64| counted(*n, "file");
    reasons.differ("count-differs", (a.name, x.count), (b.name, y.count), count);
    reasons.differ(
        "file-size-differs",
        (a.name, (x.file_bytes_min, x.file_bytes_max)),
        (b.name, (y.file_bytes_min, y.file_bytes_max)),
        |size| size_text(*size),
    );
    reasons.differ(
        "directories-differ",
        (a.name, x.directories),
        (b.name, y.directories),
        |n| match n {
            1 => "1 directory".to_owned(),
            n => format!("{n} directories"),
        },
    );
    reasons.differ(
        "threads-differ",
        (a.name, x.threads),
        (b.name, y.threads),
        |n| counted(u64::from(*n), "thread"),
    );
    reasons.differ("fsync-differs", (a.name, x.sync), (b.name, y.sync), |s| {
        sync_text(*s).to_owned()
    });
    reasons.differ(
        "order-differs",
        (a.name, &x.orders),
        (b.name, &y.orders),
        |orders| {
            let names: Vec<&str> = orders.iter().map(|order| order.as_str()).collect();
            format!("{} order", names.join(" and "))
        },
    );
    caches(reasons, a, b);
}

/// A cache that one run emptied and the other did not.
fn caches(reasons: &mut Reasons, a: StepOfRun<'_>, b: StepOfRun<'_>) {
    let operation = a.step().step.operation;
    let (x, y) = (&a.files.caches, &b.files.caches);
    if matches!(operation, FileOperation::Stat | FileOperation::Read) {
        let text = |state: &CacheState| format!("names {}", state_text(*state));
        reasons.differ("cache-differs", (a.name, x.names), (b.name, y.names), text);
    }
    if operation == FileOperation::Read {
        let text = |state: &CacheState| format!("content {}", state_text(*state));
        reasons.differ("cache-differs", (a.name, x.pages), (b.name, y.pages), text);
    }
}

fn step_faults(reasons: &mut Reasons, run: StepOfRun<'_>) {
    let (name, step) = (run.name, run.step());
    let stopped = match step.stopped {
        StopReason::Interrupted => Some(("interrupted", "was cut short by an interrupt")),
        StopReason::Hung => Some(("hung", "timed out: the target stopped answering")),
        _ => None,
    };
    if let Some((code, what)) = stopped {
        reasons.add(code, format!("{name} {what}"));
    }
    if !step.figures.errors.is_empty() || step.stopped == StopReason::Errors {
        reasons.add("io-errors", format!("operations failed in {name}"));
    }
    let place = format!("/files/steps/{}/", run.index);
    tainted(reasons, (name, run.run.record), &[&place], &[]);
}

fn size_text((min, max): (u64, u64)) -> String {
    match min == max {
        true => format!("files of {}", format_bytes(min)),
        false => format!("files of {} to {}", format_bytes(min), format_bytes(max)),
    }
}

fn sync_text(sync: FileSync) -> &'static str {
    match sync {
        FileSync::None => "no fsync",
        FileSync::File => "fsync of each new file",
        FileSync::Directory => "fsync of the directory",
        FileSync::Both => "fsync of each new file and of the directory",
    }
}

fn state_text(state: CacheState) -> &'static str {
    match state {
        CacheState::Kept => "kept in memory",
        CacheState::Dropped => "dropped from memory",
    }
}
