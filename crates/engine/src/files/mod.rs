//! Creates, looks up, reads, renames and deletes many small files, and measures how fast that goes.
//! Every file belongs to our own directory, which the caller makes and removes.

mod pass;
mod set;

use crate::load::pattern::Permutation;
use crate::random::Random;
use crate::run::error::RunError;
use crate::run::session::Session;
use crate::run::supervise::{CHECK_EVERY, Event, Inbox as _, Supervisor, WaitLimits};
use crate::run::watchdog::Deferred;
use diskproof_device::{FileTree, Snapshot};
use diskproof_model::errno::is_of_disk;
use diskproof_model::files::{
    CacheDrop, CacheState, FileCaches, FileOperation, FileOrder, FileRound, FileStep,
    FileStepMeasurement, FilesMeasurement, FilesPlan, FilesStall,
};
use diskproof_model::measurement::{ByteCount, StopReason};
use diskproof_model::progress::{Control, Phase, Progress, Watch};
use diskproof_model::series::TimeSeries;
use pass::{Pass, PassResult, PassSignals, TRANSFER_BYTES, Task};
use set::FileSet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Shares of the time by operation: creates write, reads read, and both take longer than a look at
/// a name. Chosen, not measured. Time that a step does not need goes to the later ones.
const WEIGHTS: [(FileOperation, u64); 5] = [
    (FileOperation::Create, 3),
    (FileOperation::Stat, 1),
    (FileOperation::Read, 2),
    (FileOperation::Rename, 1),
    (FileOperation::Delete, 1),
];
/// The distance between the seeds of two sets: an odd number, whose multiples are all different.
/// This one is 2⁶⁴ divided by the golden ratio, the step of splitmix64.
const SET_SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15;
/// Threads that write content back and remove files, alongside those of the plan: on a disk with a
/// queue several go faster, and nothing is measured meanwhile.
const HELPERS_MIN: u32 = 4;

/// The reason why [`Session::files`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesEnding {
    /// All steps were carried out, as far as their time went.
    Complete,
    /// The user ended them.
    Interrupted,
    /// Operations failed.
    Errors,
}

/// Receives what was measured so far, after each step.
pub type KeepFiles<'a> = &'a mut dyn FnMut(&FilesMeasurement);

impl Session {
    /// Carries out the steps of a plan. `keep` receives what was measured so far after each of
    /// them. No file is left, unless the target hangs.
    pub fn files(
        &self,
        plan: &FilesPlan,
        tree: &Arc<FileTree>,
        watch: &mut dyn Watch,
        keep: KeepFiles<'_>,
    ) -> Result<FilesEnding, RunError> {
        let weight_of_set: u64 = WEIGHTS.iter().map(|(_, weight)| weight).sum();
        let mut run = FilesRun {
            session: self,
            plan,
            tree,
            content: random_content(self.seed),
            watch,
            keep,
            measured: FilesMeasurement::default(),
            weights_left: u64::from(plan.rounds) * plan.orders.len() as u64 * weight_of_set,
            page_drops: CacheDrops::Untried,
            name_drops: CacheDrops::Untried,
            set_count: plan.count,
            created: 0,
            unmeasured_ns: 0,
        };
        for round in 0..plan.rounds {
            let mut orders = plan.orders.clone();
            // Whatever the filesystem keeps from one set to the next affects both orders.
            if round % 2 == 1 {
                orders.reverse();
            }
            for (place, order) in orders.into_iter().enumerate() {
                let number = u64::from(round) * plan.orders.len() as u64 + place as u64;
                let ending = run.measure_set(order, number)?;
                if ending != FilesEnding::Complete {
                    return Ok(ending);
                }
            }
        }
        Ok(FilesEnding::Complete)
    }
}

/// The content of all files: bytes that no filesystem can compress. Each file begins elsewhere in
/// it.
fn random_content(seed: u64) -> Arc<Vec<u8>> {
    let mut random = Random::new(seed, 1);
    let mut bytes = Vec::with_capacity(2 * TRANSFER_BYTES);
    while bytes.len() < 2 * TRANSFER_BYTES {
        bytes.extend_from_slice(&random.bits().to_le_bytes());
    }
    Arc::new(bytes)
}

/// The outcome of the attempts to drop a cache so far.
enum CacheDrops {
    Untried,
    /// Every attempt succeeded.
    Dropped,
    /// An attempt failed, for this reason: the cache may have answered.
    Failed(String),
}

impl CacheDrops {
    /// Adds an attempt. The first one that failed counts for all.
    fn add_attempt(&mut self, attempt: Result<(), String>) {
        if matches!(self, Self::Failed(_)) {
            return;
        }
        *self = match attempt {
            Ok(()) => Self::Dropped,
            Err(why) => Self::Failed(why),
        };
    }

    /// The state of the cache, for the record.
    fn state(&self) -> CacheState {
        match self {
            Self::Dropped => CacheState::Dropped,
            Self::Untried | Self::Failed(_) => CacheState::Kept,
        }
    }
}

/// The end of an attempt to drop the caches of the machine.
enum MachineDrop {
    /// The attempt has ended, with the reason where it failed.
    Attempted(Result<(), String>),
    /// The user ended the run meanwhile. The kernel finishes alone.
    Interrupted,
}

/// The end of the run, if the user ended a pass that ended for this reason.
fn interruption_of(stopped: StopReason) -> Option<FilesEnding> {
    (stopped == StopReason::Interrupted).then_some(FilesEnding::Interrupted)
}

/// Adds those of these errors that are the disk's to a step, or to the last one where that step is
/// not among them. Returns whether there are any.
fn add_disk_errors(
    steps: &mut [FileStepMeasurement],
    step: FileStep,
    errors: &BTreeMap<String, u64>,
) -> bool {
    let place = steps
        .iter()
        .position(|known| known.step == step)
        .unwrap_or(steps.len().saturating_sub(1));
    let Some(failed) = steps.get_mut(place) else {
        return false;
    };
    let mut has_failed = false;
    for (errno, count) in errors {
        if is_of_disk(errno) {
            *failed.op.errors.entry(errno.clone()).or_default() += count;
            failed.stopped = StopReason::Errors;
            has_failed = true;
        }
    }
    has_failed
}

/// A pass that is measured.
struct MeasuredPass {
    limit_ns: u64,
    /// The seed of its random order; `None` in the order of the names.
    shuffled_by: Option<u64>,
}

/// The passes over the files of a set.
enum PassKind {
    Measured(MeasuredPass),
    /// Over all files that exist, as far as so many nanoseconds go.
    Within(u64),
    /// Over these files alone.
    Only(Vec<u32>),
    /// Over all files that exist.
    Unmeasured,
}

struct FilesRun<'a> {
    session: &'a Session,
    plan: &'a FilesPlan,
    tree: &'a Arc<FileTree>,
    content: Arc<Vec<u8>>,
    watch: &'a mut dyn Watch,
    keep: KeepFiles<'a>,
    measured: FilesMeasurement,
    /// Shares of the time that no step has had yet.
    weights_left: u64,
    page_drops: CacheDrops,
    name_drops: CacheDrops,
    /// The files of the next set, at most.
    set_count: u64,
    /// The files that the present set got.
    created: u64,
    /// The time of the passes over the present set that are not measured, in nanoseconds.
    unmeasured_ns: u64,
}

/// Writing the files of a set back, checking and removing them may take so many times the measured
/// time of the run, and at least [`UNMEASURED_NS_MIN`]. Where it takes longer, the next sets are
/// smaller. Chosen, not measured: only memory cards and the like need more.
const UNMEASURED_TIMES: u64 = 2;
/// See [`UNMEASURED_TIMES`].
const UNMEASURED_NS_MIN: u64 = 10_000_000_000;
/// A set has at least so many files, unless the plan has fewer.
const SET_COUNT_MIN: u64 = 100;

/// The time that the passes over a set may take that are not measured, of a run of so much measured
/// time.
fn allowed_unmeasured_ns(time_ns: u64) -> u64 {
    time_ns
        .saturating_mul(UNMEASURED_TIMES)
        .max(UNMEASURED_NS_MIN)
}

/// The files of the next set, where the passes over one of so many files that are not measured took
/// `unmeasured_ns`.
fn next_set_count(count: u64, created: u64, unmeasured_ns: u64, time_ns: u64) -> u64 {
    let allowed_ns = allowed_unmeasured_ns(time_ns);
    if unmeasured_ns <= allowed_ns {
        return count;
    }
    let fitting = created as f64 * allowed_ns as f64 / unmeasured_ns as f64;
    (fitting as u64).max(SET_COUNT_MIN).min(count)
}

impl FilesRun<'_> {
    /// Measures all steps on one set of files, which are removed afterwards.
    fn measure_set(&mut self, order: FileOrder, number: u64) -> Result<FilesEnding, RunError> {
        let seed = self
            .session
            .seed
            .wrapping_add(number.wrapping_mul(SET_SEED_STEP));
        let plan = FilesPlan {
            count: self.set_count,
            ..self.plan.clone()
        };
        let set = Arc::new(FileSet::new(&plan, order, seed));
        (self.created, self.unmeasured_ns) = (0, 0);
        self.tree.expect_files(true);
        let ending = self.measure_steps(&set, order, seed);
        // On a disk that does not answer, every further call would hang, too. Interrupted is a pass
        // whose disk was still silent some seconds after the user ended it.
        let is_silent = matches!(
            ending,
            Err(RunError::Stalled { .. }
                | RunError::Interrupted { .. }
                | RunError::Unanswered { .. })
        );
        if !is_silent {
            let removed =
                self.run_pass(&set, "removal of files", Task::Remove, PassKind::Unmeasured)?;
            let is_cut_short = removed.stopped == StopReason::Interrupted;
            self.tree
                .expect_files(!removed.op.errors.is_empty() || is_cut_short);
            self.set_count = next_set_count(
                self.set_count,
                self.created,
                self.unmeasured_ns,
                self.plan.time_ns,
            );
            let step = FileStep {
                operation: FileOperation::Delete,
                order,
            };
            // Also of a pass that Ctrl-C has ended: an error of the disk counts wherever it comes.
            let has_failed = self.count_errors(step, &removed.op.errors);
            if let Ok(FilesEnding::Complete) = ending
                && has_failed
            {
                return Ok(FilesEnding::Errors);
            }
            if let Ok(FilesEnding::Complete) = ending
                && is_cut_short
            {
                return Ok(FilesEnding::Interrupted);
            }
        }
        ending
    }

    /// Adds the errors of the disk in a pass that is not measured to the errors of a step; of the
    /// last one, where that step has measured nothing. Returns whether there are any.
    fn count_errors(&mut self, step: FileStep, errors: &BTreeMap<String, u64>) -> bool {
        let has_failed = add_disk_errors(&mut self.measured.steps, step, errors);
        if has_failed {
            (self.keep)(&self.measured);
        }
        has_failed
    }

    /// Measures each operation on the set, with the caches in the state that the plan wants.
    fn measure_steps(
        &mut self,
        set: &Arc<FileSet>,
        order: FileOrder,
        seed: u64,
    ) -> Result<FilesEnding, RunError> {
        for (operation, weight) in WEIGHTS {
            let step = FileStep { operation, order };
            if let Some(ending) = self.recheck(set, step)? {
                return Ok(ending);
            }
            if let Some(ending) = self.drop_caches(set, step)? {
                return Ok(ending);
            }
            let limit_ns = self.take_share_ns(weight);
            // New files of a random set have random names, in any order. Every other operation has
            // an order of its own, so that none meets the files in the order of the one before.
            let is_shuffled = order == FileOrder::Random && operation != FileOperation::Create;
            let shuffled_by = if is_shuffled {
                Some(seed ^ operation as u64)
            } else {
                None
            };
            let measured = MeasuredPass {
                limit_ns,
                shuffled_by,
            };
            let stopped = self.measure_step(set, step, measured)?;
            if stopped == StopReason::Interrupted {
                return Ok(FilesEnding::Interrupted);
            }
            if stopped == StopReason::Errors {
                return Ok(FilesEnding::Errors);
            }
        }
        Ok(FilesEnding::Complete)
    }

    /// Takes the time of the next step, in nanoseconds, from what is left: its share by weight. To
    /// be called once for each step of [`WEIGHTS`], in their order.
    fn take_share_ns(&mut self, weight: u64) -> u64 {
        let spent_ns: u64 = self.measured.steps.iter().map(|step| step.wall_ns).sum();
        let left_ns = self.plan.time_ns.saturating_sub(spent_ns);
        let share_ns =
            u128::from(left_ns) * u128::from(weight) / u128::from(self.weights_left.max(1));
        self.weights_left = self.weights_left.saturating_sub(weight);
        share_ns as u64
    }

    /// Looks for files that another program has replaced, before they are renamed or deleted. A
    /// look at each within these steps would change their rates. Returns how the run ends, if it
    /// cannot go on.
    fn recheck(
        &mut self,
        set: &Arc<FileSet>,
        step: FileStep,
    ) -> Result<Option<FilesEnding>, RunError> {
        if !matches!(
            step.operation,
            FileOperation::Rename | FileOperation::Delete
        ) {
            return Ok(None);
        }
        let checked = self.run_pass(set, "check of files", Task::Recheck, PassKind::Unmeasured)?;
        if self.count_errors(step, &checked.op.errors) {
            return Ok(Some(FilesEnding::Errors));
        }
        Ok(interruption_of(checked.stopped))
    }

    /// Empties the caches that would answer an operation, as the plan says. Dirty pages
    /// cannot be dropped, so the content is written back first: the files are created only then.
    /// Returns how the run ends, if it cannot go on.
    fn drop_caches(
        &mut self,
        set: &Arc<FileSet>,
        step: FileStep,
    ) -> Result<Option<FilesEnding>, RunError> {
        let drops_all = self.plan.caches == FileCaches::DropAll;
        let is_looked_up = match step.operation {
            FileOperation::Read => true,
            FileOperation::Stat => drops_all,
            FileOperation::Create | FileOperation::Rename | FileOperation::Delete => false,
        };
        if !is_looked_up || self.tree.is_in_memory() {
            return Ok(None);
        }
        let created = FileStep {
            operation: FileOperation::Create,
            ..step
        };
        let written = self.write_back(set)?;
        if let Some(ending) = self.add_page_drop(created, written) {
            return Ok(Some(ending));
        }
        let dropped = self.run_pass(set, "write-back", Task::DropPages, PassKind::Unmeasured)?;
        if let Some(ending) = self.add_page_drop(created, dropped) {
            return Ok(Some(ending));
        }
        if drops_all {
            match self.drop_machine_caches()? {
                MachineDrop::Attempted(dropped) => self.name_drops.add_attempt(dropped),
                MachineDrop::Interrupted => return Ok(Some(FilesEnding::Interrupted)),
            }
        }
        Ok(None)
    }

    /// Writes the content of a set back. Where the disk needs longer than the run may spend on it,
    /// the files that it has not written by then leave the set: removed, they need not be written.
    fn write_back(&mut self, set: &Arc<FileSet>) -> Result<PassResult, RunError> {
        let existing = set.existing();
        let within = PassKind::Within(allowed_unmeasured_ns(self.plan.time_ns));
        let mut written = self.run_pass(set, "write-back", Task::WriteBack, within)?;
        if written.stopped == StopReason::Time {
            let tried = written.op.count + written.op.errors.values().sum::<u64>();
            let rest = existing[(tried as usize).min(existing.len())..].to_vec();
            self.created = tried;
            let removed = self.run_pass(set, "write-back", Task::Remove, PassKind::Only(rest))?;
            for (errno, count) in removed.op.errors {
                *written.op.errors.entry(errno).or_default() += count;
            }
            written.stopped = removed.stopped;
        }
        Ok(written)
    }

    /// Adds an attempt to drop the pages of the content that `created` wrote. Returns how the run
    /// ends, if it cannot go on.
    fn add_page_drop(&mut self, created: FileStep, dropped: PassResult) -> Option<FilesEnding> {
        if self.count_errors(created, &dropped.op.errors) {
            return Some(FilesEnding::Errors);
        }
        let interruption = interruption_of(dropped.stopped);
        if interruption.is_some() {
            return interruption;
        }
        let outcome = match dropped.op.errors.keys().next() {
            Some(errno) => Err(format!("{errno} while the content was dropped")),
            None => Ok(()),
        };
        self.page_drops.add_attempt(outcome);
        None
    }

    /// Drops the caches of the machine in a thread of its own, because no signal ends the system
    /// calls.
    fn drop_machine_caches(&mut self) -> Result<MachineDrop, RunError> {
        let caches = match self.tree.machine_caches() {
            Ok(caches) => caches,
            Err(error) => return Ok(MachineDrop::Attempted(Err(error.to_string()))),
        };
        let dropping = Deferred::start("diskproof-caches", move || caches.drop_all())
            .map_err(RunError::Thread)?;
        let series = TimeSeries::new(CHECK_EVERY.as_nanos() as u64);
        let start_ns = dropping.now();
        // The kernel drops the caches of the whole machine: only the user knows how long is too
        // long.
        let mut supervisor = Supervisor::new(start_ns, 0, WaitLimits::default());
        loop {
            match supervisor.next(&dropping) {
                Event::Report(dropped) => {
                    let outcome = dropped.map_err(|error| error.to_string());
                    return Ok(MachineDrop::Attempted(outcome));
                }
                Event::Lost => return Err(RunError::lost("cache drop")),
                Event::Check(now) => {
                    let elapsed_ns = now.saturating_sub(start_ns);
                    let progress = Progress::new("cache drop", Phase::Layout, elapsed_ns, &series);
                    if self.watch.tick(&progress) == Control::Interrupt {
                        return Ok(MachineDrop::Interrupted);
                    }
                }
                // No target is waited for.
                Event::Overdue(_) => {}
            }
        }
    }

    /// Measures a step once and adds it to what was measured.
    fn measure_step(
        &mut self,
        set: &Arc<FileSet>,
        step: FileStep,
        measured: MeasuredPass,
    ) -> Result<StopReason, RunError> {
        let name = step.name();
        let snapshot = Snapshot::take(self.tree.identity());
        let task = Task::Measure(step.operation);
        let result = self.run_pass(set, &name, task, PassKind::Measured(measured))?;
        let device = snapshot.finish(ByteCount::default());
        let mut disk = None;
        if device.unresolved.is_none() {
            disk = Some(ByteCount {
                read_bytes: device.read_bytes,
                write_bytes: device.write_bytes,
                ..ByteCount::default()
            });
        }
        let stopped = result.stopped;
        self.add_round(step, result, disk);
        self.measured.caches = CacheDrop {
            pages: self.page_drops.state(),
            names: self.name_drops.state(),
            failed: match (&self.page_drops, &self.name_drops) {
                (CacheDrops::Failed(why), _) | (_, CacheDrops::Failed(why)) => Some(why.clone()),
                _ => None,
            },
        };
        (self.keep)(&self.measured);
        Ok(stopped)
    }

    /// Adds a round to its step. Its series continues where that of the round before ended.
    fn add_round(&mut self, step: FileStep, result: PassResult, disk: Option<ByteCount>) {
        let round = FileRound {
            start_ns: result.begin_ns.saturating_sub(self.session.origin_ns),
            wall_ns: result.wall_ns,
            count: result.op.count,
        };
        let steps = &mut self.measured.steps;
        let Some(known) = steps.iter_mut().find(|known| known.step == step) else {
            steps.push(FileStepMeasurement {
                step,
                wall_ns: result.wall_ns,
                cpu: result.cpu,
                op: result.op,
                sync: result.sync,
                rounds: vec![round],
                disk,
                stopped: result.stopped,
            });
            return;
        };
        known.op.merge(result.op, known.wall_ns);
        known.wall_ns += result.wall_ns;
        known.sync += result.sync;
        known.cpu += result.cpu;
        known.rounds.push(round);
        // Without the counters of one round, the sum is unknown.
        match (&mut known.disk, disk) {
            (Some(sum), Some(more)) => *sum += more,
            (Some(_) | None, None) | (None, Some(_)) => known.disk = None,
        }
        known.stopped = result.stopped;
    }

    /// Makes one pass over the files of a set. One that is not measured has at least
    /// [`HELPERS_MIN`] threads.
    fn run_pass(
        &mut self,
        set: &Arc<FileSet>,
        name: &str,
        task: Task,
        kind: PassKind,
    ) -> Result<PassResult, RunError> {
        let mut files = None;
        let mut count = set.count();
        if task != Task::Measure(FileOperation::Create) {
            let mut existing = match &kind {
                PassKind::Only(files) => files.clone(),
                PassKind::Measured(_) | PassKind::Within(_) | PassKind::Unmeasured => {
                    set.existing()
                }
            };
            if task == Task::Remove {
                // A slow disk writes the oldest ones first, and what is removed before is not
                // written.
                existing.reverse();
            }
            count = existing.len() as u64;
            files = Some(existing);
        }
        let mut limit_ns = None;
        let mut shuffled = None;
        let mut threads = self.plan.threads.max(HELPERS_MIN);
        let is_measured = matches!(kind, PassKind::Measured(_));
        match kind {
            PassKind::Measured(measured) => {
                threads = self.plan.threads;
                limit_ns = Some(measured.limit_ns);
                if let Some(seed) = measured.shuffled_by {
                    shuffled = Some(Permutation::new(count, seed));
                }
            }
            PassKind::Within(within_ns) => limit_ns = Some(within_ns),
            PassKind::Only(_) | PassKind::Unmeasured => {}
        }
        let pass = Pass {
            tree: Arc::clone(self.tree),
            set: Arc::clone(set),
            task,
            sync: self.plan.sync,
            files,
            shuffled,
            content: Arc::clone(&self.content),
            limit_ns,
            signals: PassSignals::default(),
        };
        let result = pass.run(threads, name, self.session.stall_timeout, self.watch)?;
        if let Some(stall) = result.stall {
            self.measured.add_stall(FilesStall {
                around: name.to_owned(),
                since_ns: stall.since_ns.saturating_sub(self.session.origin_ns),
                lasted_ns: stall.lasted_ns,
            });
            (self.keep)(&self.measured);
        }
        if task == Task::Measure(FileOperation::Create) {
            self.created = result.op.count;
        }
        if !is_measured {
            self.unmeasured_ns += result.wall_ns;
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::files::FileSyncTime;
    use diskproof_model::measurement::{CpuTime, OpMeasurement};

    const SECOND_NS: u64 = 1_000_000_000;

    /// A memory card of 6 MB/s wrote 430 MiB back and removed them in three minutes, for a run of
    /// 8 s: the next sets need at most 16 s. A hard disk that needs 12 s keeps its files.
    #[test]
    fn sets_of_a_slow_disk_become_smaller() {
        let next =
            |created, seconds| next_set_count(16_384, created, seconds * SECOND_NS, 8 * SECOND_NS);
        assert_eq!(next(16_384, 12), 16_384);
        assert_eq!(next(11_000, 160), 1100);
        // Of those, the next set needs the allowed time, and stays as it is.
        assert_eq!(
            next_set_count(1100, 1100, 16 * SECOND_NS, 8 * SECOND_NS),
            1100
        );
        assert_eq!(next(11_000, 16_000), SET_COUNT_MIN);
        assert_eq!(next_set_count(10, 10, 160 * SECOND_NS, SECOND_NS), 10);
    }

    fn measured(operation: FileOperation) -> FileStepMeasurement {
        FileStepMeasurement {
            step: step(operation),
            wall_ns: 1,
            cpu: CpuTime::default(),
            op: OpMeasurement::default(),
            sync: FileSyncTime::default(),
            rounds: Vec::new(),
            disk: None,
            stopped: StopReason::Ops,
        }
    }

    fn step(operation: FileOperation) -> FileStep {
        FileStep {
            operation,
            order: FileOrder::Sequential,
        }
    }

    #[test]
    fn error_of_the_disk_in_the_write_back_is_one_of_the_creates() {
        let mut steps = [FileOperation::Create, FileOperation::Stat].map(measured);
        let removed_by_others = BTreeMap::from([("ENOENT".to_owned(), 1)]);
        let created = step(FileOperation::Create);
        assert!(!add_disk_errors(&mut steps, created, &removed_by_others));
        assert_eq!(steps[0].stopped, StopReason::Ops);
        let errors = BTreeMap::from([("EIO".to_owned(), 3), ("ENOENT".to_owned(), 1)]);
        assert!(add_disk_errors(&mut steps, created, &errors));
        assert_eq!(steps[0].op.errors, BTreeMap::from([("EIO".to_owned(), 3)]));
        assert_eq!(steps[0].stopped, StopReason::Errors);
        // The files are removed before any was deleted.
        let deleted = step(FileOperation::Delete);
        assert!(add_disk_errors(&mut steps, deleted, &errors));
        assert_eq!(steps[1].op.errors["EIO"], 3);
    }
}
