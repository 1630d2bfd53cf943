//! The metrics of many small files: the rate of every step that both sides did, and whether a step
//! measures the same in two runs. The number of rounds and the time may differ: rounds are
//! repetitions.

use super::earlier::EarlierRuns;
use super::pair::{ComparedRow, Pair};
use super::ratio::Joined;
use super::reasons::{Compared, Reasons, tainted};
use super::sides::{Run, Sides};
use diskproof_model::comparison::{Figure, Unmatched};
use diskproof_model::files::{CacheState, FileOperation, FileOrder, FileStep, FileSync, FilesPlan};
use diskproof_model::measurement::StopReason;
use diskproof_model::record::{FileStepRow, FilesRecord, Record};
use diskproof_model::units::{counted, format_bytes};

/// A row for each step; those that only one side did go to `unmatched`.
pub(super) fn rows(
    sides: &Sides<'_>,
    earlier: &EarlierRuns<'_>,
    unmatched: &mut Vec<Unmatched>,
) -> Vec<ComparedRow> {
    let row = |step: FileStep| {
        let subject = step.name();
        let find = |name, run| StepOfRun::find(name, run, step);
        let pair = Pair::of(sides, earlier, (&subject, unmatched), find)?;
        // Files per second.
        let (a, b, earlier) = pair.figures(|run| Some(run.step().figures.iops.clone()))?;
        let joined = Joined::of(&a.sample, &b.sample, &earlier);
        let wall_ns = pair
            .all()
            .map(|run| run.step().data.wall_ns)
            .max()
            .unwrap_or(0);
        let name = (
            format!("{subject}.{}", Figure::Iops.as_str()),
            subject.as_str(),
        );
        let mut row = ComparedRow::new(name, Figure::Iops, (a, b), joined, wall_ns, &pair.reasons);
        row.metric.headline = true;
        Some(row)
    };
    steps(sides).into_iter().filter_map(row).collect()
}

/// Every step of either side, the baseline's first.
fn steps(sides: &Sides<'_>) -> Vec<FileStep> {
    let runs = sides.a.iter().chain(&sides.b);
    let files = runs.filter_map(|(_, run)| run.record.files());
    let mut all = Vec::new();
    for step in files.flat_map(|files| &files.steps).map(|of| of.data.step) {
        if !all.contains(&step) {
            all.push(step);
        }
    }
    all
}

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
        let files = run.record.files()?;
        Some(Self {
            name,
            run,
            plan: run.record.plan.files()?,
            files,
            index: files.steps.iter().position(|of| of.data.step == step)?,
        })
    }

    pub(super) fn step(self) -> &'a FileStepRow {
        &self.files.steps[self.index]
    }
}

impl Compared for StepOfRun<'_> {
    fn run(&self) -> (&str, &Record) {
        (self.name, self.run.record)
    }

    fn conditions(self, other: Self, reasons: &mut Reasons) {
        let mut pair = reasons.between(&self, &other);
        let (x, y) = (self.plan, other.plan);
        pair.differ("count-differs", x.count, y.count, |n| counted(*n, "file"));
        let sizes = |plan: &FilesPlan| (plan.file_bytes_min, plan.file_bytes_max);
        pair.differ("file-size-differs", sizes(x), sizes(y), size_text);
        let directories = |n: &u32| match n {
            1 => "1 directory".to_owned(),
            n => format!("{n} directories"),
        };
        let (of_x, of_y) = (x.directories, y.directories);
        pair.differ("directories-differ", of_x, of_y, directories);
        let threads = |n: &u32| counted(u64::from(*n), "thread");
        pair.differ("threads-differ", x.threads, y.threads, threads);
        pair.differ("fsync-differs", x.sync, y.sync, sync_text);
        let order = |orders: &&Vec<FileOrder>| {
            let names: Vec<&str> = orders.iter().map(|order| order.as_str()).collect();
            format!("{} order", names.join(" and "))
        };
        pair.differ("order-differs", &x.orders, &y.orders, order);
        // A cache that one run emptied and the other did not.
        let (x, y) = (&self.files.caches, &other.files.caches);
        let mut cache = |what: &str, x: CacheState, y: CacheState| {
            let text = |state: &CacheState| format!("{what} {}", state_text(*state));
            pair.differ("cache-differs", x, y, text);
        };
        let operation = self.step().data.step.operation;
        if matches!(operation, FileOperation::Stat | FileOperation::Read) {
            cache("names", x.names, y.names);
        }
        if operation == FileOperation::Read {
            cache("content", x.pages, y.pages);
        }
    }

    fn faults(self, _harmless: &[&str], reasons: &mut Reasons) {
        let (name, step) = (self.name, self.step());
        let stopped = match step.data.stopped {
            StopReason::Interrupted => Some(("interrupted", "was cut short by an interrupt")),
            StopReason::Hung => Some(("hung", "timed out: the target stopped answering")),
            _ => None,
        };
        if let Some((code, what)) = stopped {
            reasons.add(code, format!("{name} {what}"));
        }
        if !step.data.op.errors.is_empty() || step.data.stopped == StopReason::Errors {
            reasons.add("io-errors", format!("operations failed in {name}"));
        }
        let place = format!("/results/0/steps/{}/", self.index);
        tainted(reasons, self.run(), &[&place], &[]);
    }
}

fn size_text(&(min, max): &(u64, u64)) -> String {
    if min == max {
        format!("files of {}", format_bytes(min))
    } else {
        format!("files of {} to {}", format_bytes(min), format_bytes(max))
    }
}

fn sync_text(sync: &FileSync) -> String {
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
