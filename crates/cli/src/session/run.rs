//! The steps of a run on its open targets: survey, layout, workloads, close. Does not know the
//! watchdog that waits for it.

use super::journal::RunJournal;
use super::slices::{self, SHARE_MIN, SliceSchedule};
use crate::live::Live;
use crate::stdio::Verbosity;
use diskproof_analysis::surface::points_to_confirm;
use diskproof_device::{Admission, GuardedWriteCache, OpenError, OpenTarget, WriteCacheError};
use diskproof_engine::{LayoutOrder, LayoutWay, RunError, Session};
use diskproof_model::campaign::CampaignDecision;
use diskproof_model::data::RunData;
use diskproof_model::group::Group;
use diskproof_model::measurement::{Measurement, MovedTotal, OpKind, StopReason};
use diskproof_model::plan::{Access, CachePolicy, Fill, Layout, Plan, SyncPolicy, Workload};
use diskproof_model::progress::Control;
use diskproof_model::target::TargetIdentity;
use diskproof_postgres::PostgresError;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(super) const LATE: &str = "the target is too slow for the announced time: what is missing is \
                               undecided. Measure longer (--time), or less (smaller --bs, --size)";
pub(super) const INTERRUPTED: &str = "interrupted by the user";

/// What was measured so far.
#[derive(Default)]
pub(crate) struct PartialResults {
    /// What has ended.
    pub data: RunData,
    /// What a campaign has decided, once it is over.
    pub decisions: Vec<CampaignDecision>,
    /// By the number of a side that is a setting of the target, the target after the first command.
    pub sides: BTreeMap<usize, TargetIdentity>,
    /// The current step, or the last one.
    pub step: Option<String>,
    /// How the run ended; `None` while it lasts.
    pub ended: Option<Result<(), EarlyEnd>>,
    /// Why there was no PostgreSQL server.
    pub no_server: Option<PostgresError>,
    /// Whether there is a cluster of a PostgreSQL server, or something of one.
    pub has_server: bool,
    /// The write cache of a disk that could not be restored.
    pub not_restored: Option<WriteCacheError>,
}

/// Results that the watchdog can take while the run is stuck.
pub(crate) type SharedResults = Arc<Mutex<PartialResults>>;

/// Why a run ended before its plan did.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EarlyEnd {
    /// A sentence.
    #[error("{0}")]
    Reason(String),
    /// The error of the engine.
    #[error(transparent)]
    Error(RunError),
}

impl EarlyEnd {
    pub(super) fn interrupted() -> Self {
        Self::Reason(INTERRUPTED.to_owned())
    }
}

impl From<String> for EarlyEnd {
    fn from(why: String) -> Self {
        Self::Reason(why)
    }
}

impl From<RunError> for EarlyEnd {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Interrupted { .. } => Self::interrupted(),
            error => Self::Error(error),
        }
    }
}

impl From<OpenError> for EarlyEnd {
    fn from(error: OpenError) -> Self {
        Self::Error(error.into())
    }
}

/// A run on open targets.
pub(crate) struct TargetRun {
    /// The engine.
    pub session: Session,
    /// What to do.
    pub plan: Arc<Plan>,
    /// The targets, in the order of the plan.
    pub targets: Vec<OpenTarget>,
    /// Leave to make a directory for many small files, where the plan has them in place of targets.
    pub file_tree: Option<Admission>,
    /// Whether that directory exists.
    pub has_files: Arc<AtomicBool>,
    /// Where results go.
    pub results: SharedResults,
    /// The switch of the disks' write cache, where workloads name its state.
    pub write_cache: Option<GuardedWriteCache>,
    /// How the last layout went, with the number of its target.
    pub first_writes: Vec<(usize, Measurement)>,
    /// Saves what was measured, for the case that the run is killed.
    pub journal: RunJournal,
    /// How much goes to stderr.
    pub verbosity: Verbosity,
}

impl TargetRun {
    /// The survey, then all workloads.
    pub(crate) fn run(&mut self, live: &mut Live) -> Result<(), EarlyEnd> {
        let plan = Arc::clone(&self.plan);
        let targets = self.targets.iter().map(|target| target.identity().clone());
        let targets: Vec<_> = targets.collect();
        let limit_ns = plan.time_limit_ns.and(plan.expected_ns(&targets));
        let limit_ns = limit_ns.or(plan.time_limit_ns);
        let end = limit_ns.map(|ns| Instant::now() + Duration::from_nanos(ns));
        self.survey(live)?;
        let mut blocks = slices::blocks(&plan);
        for number in 0..blocks.len() {
            let mut round = 0;
            while blocks[number].iter().any(|sliced| sliced.left > 0) {
                for index in slices::turn(&blocks[number], plan.seed, round) {
                    self.lay_out_for(&blocks[number][index], live)?;
                    slices::join(&mut blocks, |rest| slices::share(end, rest));
                    let share = slices::share(end, slices::rest(&blocks));
                    let sliced = &mut blocks[number][index];
                    match share {
                        None if sliced.done > 0 => self.cut(sliced, live),
                        share => self.slice(sliced, share.unwrap_or(SHARE_MIN), live)?,
                    }
                    if live.is_complete() {
                        return Ok(());
                    }
                }
                round += 1;
            }
        }
        Ok(())
    }

    /// Ends a group that has been measured, because the time of the run is over.
    fn cut(&self, sliced: &mut SliceSchedule<'_>, live: &mut Live) {
        sliced.cut();
        live.begin(sliced.group, Some(0));
        live.end_slice(true);
        live.end(&self.mark_shortened(sliced));
    }

    /// Notes that a group which is over got less time than planned. Returns its measurements.
    fn mark_shortened(&self, sliced: &SliceSchedule<'_>) -> Vec<Measurement> {
        let mut own = Vec::new();
        let workloads = sliced.group.workloads;
        let is_own = |m: &&mut Measurement| workloads.iter().any(|w| w.name == m.workload.name);
        for measurement in self.results().data.measurements.iter_mut().filter(is_own) {
            let planned_ns = measurement.workload.stop.time_ns;
            measurement.shortened_from_ns = planned_ns.filter(|_| sliced.is_shortened());
            own.push(measurement.clone());
        }
        own
    }

    /// Fills the scratch files that the next slice of a group needs.
    fn lay_out_for(&mut self, sliced: &SliceSchedule<'_>, live: &mut Live) -> Result<(), EarlyEnd> {
        live.begin(sliced.group, None);
        for workload in sliced.group.workloads {
            self.results().step = Some(workload.name.clone());
            if workload.layout == Layout::Needed {
                self.lay_out(workload, live)?;
            }
        }
        Ok(())
    }

    /// The next slice of a group, or all of one that has no slices, in this share of its planned
    /// time.
    fn slice(
        &mut self,
        sliced: &mut SliceSchedule<'_>,
        share: f64,
        live: &mut Live,
    ) -> Result<(), EarlyEnd> {
        let asked = sliced.group;
        let is_whole = sliced.is_whole();
        let next = if is_whole {
            sliced.shortened(share).unwrap_or(asked.workloads.to_vec())
        } else {
            vec![sliced.next(share)]
        };
        let group = Group {
            workloads: &next,
            ..asked
        };
        live.begin(asked, (!is_whole).then(|| SliceSchedule::time_ns(&next[0])));
        self.results().step = next.first().map(|first| first.name.clone());
        if let (Some(cache), Some(state)) = (&mut self.write_cache, next[0].write_cache) {
            cache.set(state).map_err(|error| error.to_string())?;
        }
        let session = self.session.for_slice(sliced.done, sliced.moved_bytes);
        let begin = Instant::now();
        let mut measured = session.run_together(group, &mut self.targets, live)?;
        sliced.took(share, begin.elapsed());
        self.attach_first_writes(&mut measured);
        if live.is_late() {
            measured.iter_mut().for_each(keep_whole);
        }
        let ended = self.check(&measured);
        for measurement in &mut measured {
            let name = &measurement.workload.name;
            if let Some(workload) = asked.workloads.iter().find(|w| w.name == *name) {
                measurement.workload = workload.clone();
                measurement.engine.asked = workload.engine;
            }
        }
        if is_whole {
            sliced.left = 0;
        } else {
            sliced.measured(&next[0], &measured);
        }
        let mut so_far = self.add(measured);
        let is_known = |m: &Measurement| {
            let goal = m.workload.stop.precision;
            goal.is_some_and(|goal| diskproof_analysis::slices::may_end(m, goal))
        };
        if sliced.left > 0 && sliced.may_end() && so_far.iter().all(is_known) {
            sliced.left = 0;
        }
        let is_over = sliced.left == 0 || ended.is_err();
        live.end_slice(is_over);
        if is_over && sliced.is_shortened() {
            so_far = self.mark_shortened(sliced);
        }
        if is_over {
            live.end(&so_far);
        }
        ended
    }

    /// Adds measurements to the results: in the order of the plan, slices to those before them.
    /// Returns all that is known of the same workloads.
    pub(super) fn add(&mut self, measured: Vec<Measurement>) -> Vec<Measurement> {
        let so_far = self.add_to_results(measured);
        self.keep_results();
        so_far
    }

    /// Saves what was measured so far, where that is due. The results stay unlocked meanwhile.
    pub(super) fn keep_results(&mut self) {
        if self.journal.is_due() {
            let data = self.results().data.clone();
            self.journal.keep(&data);
        }
    }

    fn add_to_results(&self, measured: Vec<Measurement>) -> Vec<Measurement> {
        let mut results = self.results();
        let place = |m: &Measurement| {
            let names = self.plan.workloads().iter().map(|w| w.name.as_str());
            names.take_while(|name| *name != m.workload.name).count()
        };
        let mut so_far = Vec::new();
        for next in measured {
            let is_same = |m: &&mut Measurement| {
                m.target == next.target && m.workload.name == next.workload.name
            };
            let all = &mut results.data.measurements;
            if let Some(known) = all.iter_mut().find(is_same) {
                known.append(next);
                so_far.push(known.clone());
            } else {
                so_far.push(next.clone());
                let at = all.partition_point(|m| place(m) <= place(&next));
                all.insert(at, next);
            }
        }
        so_far
    }

    /// What was measured so far.
    pub(crate) fn results(&self) -> MutexGuard<'_, PartialResults> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Surveys the first target.
    fn survey(&mut self, live: &mut Live) -> Result<(), EarlyEnd> {
        if self.plan.survey().is_some() {
            self.results().step = Some("the survey".to_owned());
        }
        let (Some(survey), Some(target)) = (self.plan.survey(), self.targets.first_mut()) else {
            return Ok(());
        };
        let session = self.session;
        let surface = session.survey((survey, points_to_confirm), (0, target), live)?;
        live.surveyed(&surface);
        let ended = crate::resume::ended_early(&surface, target.identity(), INTERRUPTED);
        self.results().data.surface = Some(surface);
        self.keep_results();
        ended.map_or(Ok(()), |why| Err(why.into()))
    }

    /// Fills scratch files before a workload that reads or overwrites them. With limits, this
    /// writes what the layout workload had no time for, up to the smallest useful size, and then
    /// cuts the file to what was written.
    pub(super) fn lay_out(&mut self, workload: &Workload, live: &mut Live) -> Result<(), EarlyEnd> {
        let fill = match &self.plan.scratch {
            Some(scratch) => scratch.fill,
            None => Fill::Whole,
        };
        for (index, target) in self.targets.iter_mut().enumerate() {
            let (written, capacity) = (target.usable_bytes(), target.capacity_bytes());
            if !target.is_scratch() || !workload.runs_on(index) {
                continue;
            }
            // A file cut to what its layout had time for may be too small for a later workload.
            let mut least = match fill {
                Fill::Whole => 0,
                Fill::Within { .. } => workload.span.start_bytes + u64::from(workload.block_bytes),
            };
            if written < capacity {
                let (wanted, time_ns) = match fill {
                    Fill::Whole => {
                        let length = workload.span.length_bytes;
                        let end = length.map(|length| workload.span.start_bytes + length);
                        least = end.unwrap_or(capacity).min(capacity);
                        (least, self.plan.fill_ns_max())
                    }
                    Fill::Within { time_ns, .. } if written == 0 => (capacity, Some(time_ns)),
                    Fill::Within { bytes_min, time_ns } => (bytes_min, Some(time_ns)),
                };
                let wanted = wanted.min(capacity);
                if wanted > written {
                    live.laying_out(&workload.name, wanted - written);
                }
                let order = LayoutOrder {
                    upto_bytes: wanted,
                    way: LayoutWay::for_workload(workload, wanted),
                    time_ns,
                };
                let (control, first) = self.session.lay_out(target, order, live)?;
                if control == Control::Interrupt {
                    return Err(EarlyEnd::interrupted());
                }
                self.first_writes.extend(first.map(|first| (index, first)));
                if matches!(fill, Fill::Within { .. }) {
                    target.trim_to_written()?;
                }
            }
            if target.usable_bytes() < least {
                live.end_late();
                return Err(EarlyEnd::interrupted());
            }
        }
        Ok(())
    }

    /// Gives the first write of a file to the sequential write that overwrites it. Of other
    /// workloads it only says what moved before them.
    fn attach_first_writes(&mut self, measured: &mut [Measurement]) {
        let first_writes = std::mem::take(&mut self.first_writes);
        for (target, first) in first_writes {
            if let Some(next) = measured.iter_mut().find(|m| m.target == target) {
                next.laid_out = first.ops.get(&OpKind::Write).map(|op| MovedTotal {
                    requests: op.count,
                    bytes: op.bytes,
                });
            }
            // One through the page cache is not comparable.
            if first.cache.asked != CachePolicy::Direct {
                continue;
            }
            let rewrite = measured.iter_mut().find(|m| {
                let is_write = !m.workload.reads();
                m.target == target && is_write && m.workload.access == Access::Sequential
            });
            if let Some(rewrite) = rewrite.filter(|m| m.workload.sync == SyncPolicy::AtEnd) {
                rewrite.first_write = Some(Box::new(first));
            }
        }
    }

    /// Closes the targets, and returns the paths of those that hang. Files and devices of the user
    /// are flushed first: no write of ours may be in flight when another program opens them. A
    /// target that hangs would hang the flush, too.
    pub(crate) fn close(self) -> Vec<String> {
        let mut hung = Vec::new();
        if self.has_files.load(Ordering::Relaxed) {
            hung.extend(self.plan.targets.iter().cloned());
        }
        for target in &self.targets {
            if target.is_left_open() {
                hung.push(target.identity().path.clone());
            } else if !target.is_scratch()
                && let Err(error) = target.write_back()
            {
                self.verbosity.note(&error.to_string());
            }
        }
        hung
    }

    fn path(&self, measurement: &Measurement) -> &str {
        let target = self.targets.get(measurement.target);
        target.map_or("", |target| target.identity().path.as_str())
    }

    /// Whether the run can go on after these measurements; a hang explains the most.
    pub(super) fn check(&self, measured: &[Measurement]) -> Result<(), EarlyEnd> {
        for measurement in measured {
            if let Some(hang) = measurement.hang.filter(|hang| !hang.late) {
                return Err(EarlyEnd::Reason(format!(
                    "{} stopped answering during '{}'; diskproof stopped waiting after {}. See \
                     the kernel log (dmesg)",
                    self.path(measurement),
                    measurement.workload.name,
                    diskproof_model::units::format_duration(hang.lasted_ns)
                )));
            }
        }
        for measurement in measured {
            return Err(EarlyEnd::Reason(match measurement.stopped {
                StopReason::Interrupted => INTERRUPTED.to_owned(),
                StopReason::Errors => self.too_many_errors(measurement),
                // A ping that ends so has measured what it was asked for.
                StopReason::TooSlow if self.plan.ping().is_none() => {
                    failed(measurement, "a request took longer")
                }
                StopReason::BelowFloor => failed(measurement, "the rate was lower"),
                _ => continue,
            }));
        }
        // No further request goes to a target that still has some.
        if measured.iter().any(|m| m.hang.is_some()) {
            Err(EarlyEnd::Reason(LATE.to_owned()))
        } else {
            Ok(())
        }
    }

    fn too_many_errors(&self, measurement: &Measurement) -> String {
        let errors = measurement.ops.values().flat_map(|op| &op.errors);
        let errors = errors.map(|(errno, count)| (format!("{count} × {errno}"), errno.as_str()));
        let (counts, names): (Vec<_>, Vec<_>) = errors.unzip();
        format!(
            "{} returned too many errors during '{}' ({}); {}",
            self.path(measurement),
            measurement.workload.name,
            counts.join(", "),
            diskproof_model::errno::remedy(names)
        )
    }
}

/// A workload that had its whole time when the run became late is complete.
fn keep_whole(measured: &mut Measurement) {
    let had_its_time = |ns| measured.wall_ns >= ns;
    if measured.stopped == StopReason::Interrupted
        && measured.workload.stop.time_ns.is_some_and(had_its_time)
    {
        measured.stopped = StopReason::Time;
    }
}

/// A limit of the workload itself ended it.
fn failed(measurement: &Measurement, why: &str) -> String {
    let name = &measurement.workload.name;
    format!("'{name}' failed: {why} than its limit allows")
}
