//! Runs workloads on open targets, from preparation to `Measurement`: page cache, layout, span, I/O
//! engine, counters, verification. Workloads run one at a time, or several together; then every
//! figure covers the time in which all of them ran.

use crate::io::clock::{ActiveClock, Clock, MonotonicClock, StartInstant};
use crate::measure::usage;
use crate::measure::worker::WorkerSchedule;
use crate::run::assemble::{FinalSync, RunContext, assemble, common_time, measured_schedule};
use crate::run::calibrate::max_iops;
use crate::run::error::RunError;
use crate::run::first_request::{EarlyErrors, FIRST_BYTES, find_slow};
use crate::run::layout::{
    LAYOUT_BLOCK_BYTES, LayoutEnd, LayoutGoal, LayoutWay, layout_workload, split_at_file_ends,
};
use crate::run::limits::{extent_of, in_flight_max};
use crate::run::prepare::{
    PreparedTarget, check_alignment, check_writable, prepare_target, prove_direct, set_cache,
};
use crate::run::silence_log::SilenceLog;
use crate::run::supervise::{STALL_NS, StallTimeout};
use crate::run::totals::{CounterLog, ProcessTotal, count_devices, divide_cpu_time};
use crate::run::watched_call::Patience;
use crate::run::workers::{Assignment, StartTime, WorkerGroup};
use diskproof_device::{OpenTarget, Pulse, Snapshot};
use diskproof_model::errno::remedy;
use diskproof_model::group::{Group, page_cache_clash};
use diskproof_model::measurement::{
    CacheUse, CpuTime, Measurement, OpKind, OpMeasurement, PAUSE_LATENCIES_MIN, PerOp, StopReason,
};
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, Layout, SyncPolicy, Workload,
};
use diskproof_model::progress::{Control, Phase, Watch};
use diskproof_model::row::usual_latency_ns;
use diskproof_model::slice::{EarlierSlices, SliceSpan};
use diskproof_model::stream::Streams;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A layout begins and ends at a multiple of a page, which direct I/O takes on every filesystem.
const LAYOUT_UNIT_BYTES: u64 = 4096;
/// The distance between the seeds of two slices: an odd number, whose multiples are all different.
/// This one is 2⁶⁴ divided by the golden ratio, the step of splitmix64.
const SLICE_SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// One run of the engine: its time zero, and how its next workloads start. Each slice of a run has
/// its own copy, with its own seed.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    pub(crate) origin_ns: u64,
    /// The origin on the wall clock.
    pub(crate) started: SystemTime,
    /// `origin_ns` and `started` were read within this many nanoseconds of each other.
    pub(crate) paired_within_ns: u64,
    /// When the next workloads start; what prepares a target for them never waits.
    pub(crate) start: StartTime,
    /// The seed of all random choices of the next workloads.
    pub(crate) seed: u64,
    /// The seed of random orders that go on from one slice to the next.
    pub(crate) order_seed: u64,
    /// The silence after which a target counts as hung.
    pub(crate) stall_timeout: StallTimeout,
    /// The end of workloads whose target refuses the direct I/O that they want.
    pub(crate) refused_direct: RefusedDirect,
}

/// The answer to a target that refuses direct I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusedDirect {
    /// The page cache is used, and the measurement says so.
    UsesPageCache,
    /// The run fails.
    Fails,
}

impl Session {
    /// Time zero is now.
    pub fn new(seed: u64) -> Self {
        crate::io::interruptions::start();
        let origin = StartInstant::now();
        Self {
            origin_ns: origin.monotonic_ns,
            started: origin.wall,
            paired_within_ns: origin.gap_ns,
            start: StartTime::Soon,
            seed,
            order_seed: seed,
            stall_timeout: StallTimeout::from_ns(STALL_NS),
            refused_direct: RefusedDirect::UsesPageCache,
        }
    }

    /// The start of the run on the wall clock, to about a microsecond. Every time of the record is
    /// an offset from it.
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// The time between the readings of the wall clock and the monotonic clock at the start, in
    /// nanoseconds.
    pub fn paired_within_ns(&self) -> u64 {
        self.paired_within_ns
    }

    /// The gain of the wall clock on the monotonic clock since the start of the run, in
    /// nanoseconds: it was set, or its rate was corrected.
    pub fn wall_gained_ns(&self) -> i64 {
        let now = StartInstant::now();
        let monotonic_ns = now.monotonic_ns.saturating_sub(self.origin_ns);
        let wall_ns = match now.wall.duration_since(self.started) {
            Ok(elapsed) => elapsed.as_nanos() as i64,
            Err(back) => -(back.duration().as_nanos() as i64),
        };
        wall_ns.saturating_sub(monotonic_ns as i64)
    }

    /// The run, whose next workloads start at this instant, in nanoseconds after the start of the
    /// run. They fail with [`RunError::NotReady`] where their preparation takes longer.
    pub fn starting_at(self, start_ns: u64) -> Self {
        Self {
            start: StartTime::At(self.origin_ns.saturating_add(start_ns)),
            ..self
        }
    }

    /// The run with another seed.
    pub fn with_seed(self, seed: u64) -> Self {
        Self {
            seed,
            order_seed: seed,
            ..self
        }
    }

    /// The run, which fails with [`RunError::DirectRefused`] where a target refuses the direct I/O
    /// that a workload wants.
    pub fn failing_without_direct(self) -> Self {
        Self {
            refused_direct: RefusedDirect::Fails,
            ..self
        }
    }

    /// Time since the start of the run, in nanoseconds.
    pub fn elapsed_ns(&self) -> u64 {
        MonotonicClock.now().saturating_sub(self.origin_ns)
    }

    /// The run for the slice with this number, from 0: each has random numbers of its own.
    pub fn for_slice(self, number: u64) -> Self {
        Self {
            seed: self.seed.wrapping_add(number.wrapping_mul(SLICE_SEED_STEP)),
            ..self
        }
    }

    /// The run, where a target counts as hung that does not answer for this long after the order to
    /// end; 45 s by default.
    pub fn with_stall_timeout(self, stall_ns: u64) -> Self {
        Self {
            stall_timeout: StallTimeout::from_ns(stall_ns),
            ..self
        }
    }

    /// Runs one workload on all targets at the same time. One measurement per target, in order.
    pub fn run(
        &self,
        workload: &Workload,
        targets: &mut [OpenTarget],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Measurement>, RunError> {
        self.run_together(Group::alone(workload), targets, watch)
    }

    /// Runs the workloads of a group on all targets at the same time. They start together and warm
    /// up equally long. On each target, the first workload to finish ends the others, unless its
    /// plan lets it end alone, or end those of all targets.
    ///
    /// All scratch files get their content first, then every target is prepared, then pages are
    /// loaded into memory: a preparation may empty the page cache.
    ///
    /// Returns measurements workload by workload, in the order of the targets.
    pub fn run_together(
        &self,
        group: Group<'_>,
        targets: &mut [OpenTarget],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Measurement>, RunError> {
        let whole: Vec<SliceSpan> = group.workloads.iter().map(SliceSpan::whole).collect();
        self.run_slices(group, &whole, &[], targets, watch)
    }

    /// Prepares the target of each descriptor, and then loads the pages into memory that workloads
    /// want there, since some preparations empty the page cache. Returns an entry for each
    /// descriptor.
    fn prepare_all(
        &self,
        group: Group<'_>,
        earlier: &[EarlierSlices],
        descriptors: &mut [WorkloadDescriptor],
        targets: &mut [OpenTarget],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Arc<PreparedTarget>>, RunError> {
        let requests_max = in_flight_max(group, targets.len());
        let mut ready = Vec::new();
        for descriptor in descriptors.iter_mut() {
            let workload = &group.workloads[descriptor.member];
            let target_index = descriptor.target;
            let target = descriptor.open_target(targets);
            let earlier = earlier.get(target_index).copied().unwrap_or_default();
            let next = earlier.apply_to(workload);
            let mut prepared = self.prepare(&next, target, requests_max, watch)?;
            prepared.known.target = target_index;
            prepared.earlier = earlier;
            prepared.order_seed = self.order_seed;
            ready.push(prepared);
        }
        let mut prepared = Vec::new();
        for (mut prepared_target, descriptor) in ready.into_iter().zip(descriptors) {
            let target = descriptor.open_target(targets);
            self.hold_in_memory(&mut prepared_target, target, watch)?;
            prepared.push(Arc::new(prepared_target));
        }
        Ok(prepared)
    }

    /// Runs a slice of each workload of a group together; `slices` has one for each workload, in
    /// order, and `earlier` what the slices before have done on each target, in order; empty before
    /// the first. A sequential workload continues where it was on each target. Of several
    /// sequential workers, each passes over an equal share of the bytes: one that was faster than
    /// the others repeats some blocks.
    ///
    /// The measurements name the whole workloads, not the shorter ones that ran for the slices.
    pub fn run_slices(
        &self,
        group: Group<'_>,
        slices: &[SliceSpan],
        earlier: &[EarlierSlices],
        targets: &mut [OpenTarget],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Measurement>, RunError> {
        let sliced = sliced_workloads(group, slices, earlier);
        let running = Group::new(group.first, &sliced);
        if let Some(clash) = running.clash() {
            return Err(RunError::from(clash));
        }
        self.give_content_to_all(running, targets, watch)?;
        let mut descriptors = open_descriptors(running, targets)?;
        let prepared = self.prepare_all(running, earlier, &mut descriptors, targets, watch)?;
        refuse_page_cache_clash(&prepared, targets.len())?;
        let mut assignments = Vec::new();
        for (descriptor, prepared) in descriptors.iter().zip(&prepared) {
            assignments.push(Assignment {
                workload: &running.workloads[descriptor.member],
                member: descriptor.member,
                target: descriptor.target,
                open: descriptor
                    .own
                    .as_ref()
                    .unwrap_or(&targets[descriptor.target]),
                prepared,
            });
        }
        let opens: Vec<&OpenTarget> = targets.iter().collect();
        let mut measurements =
            self.measure(running, &opens, &assignments, Phase::Measure, watch)?;
        mark_content(&measurements, &prepared, targets);
        name_whole_workloads(&mut measurements, group);
        Ok(measurements)
    }

    /// Fills the scratch files for the workloads of a group. A preparation writes only what its own
    /// workload needs, and a later one on the same target may need more.
    fn give_content_to_all(
        &self,
        group: Group<'_>,
        targets: &mut [OpenTarget],
        watch: &mut dyn Watch,
    ) -> Result<(), RunError> {
        if group.is_alone() {
            return Ok(());
        }
        for workload in group.workloads {
            for (index, target) in targets.iter_mut().enumerate() {
                if workload.runs_on(index) {
                    self.give_content(workload, target, watch)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the scratch file where it is not written yet.
    pub fn lay_out(
        &self,
        target: &mut OpenTarget,
        goal: LayoutGoal,
        watch: &mut dyn Watch,
    ) -> Result<LayoutEnd, RunError> {
        let LayoutGoal {
            upto_bytes,
            way,
            time_ns,
            content,
        } = goal;
        if upto_bytes <= target.usable_bytes() {
            return Ok(LayoutEnd::NothingToWrite);
        }
        // A span or an earlier buffered workload may have ended at an offset that direct I/O does
        // not take; the file itself has whole MiB.
        let from = target.usable_bytes() / LAYOUT_UNIT_BYTES * LAYOUT_UNIT_BYTES;
        let wanted = (upto_bytes - from).next_multiple_of(LAYOUT_UNIT_BYTES);
        // Whole blocks, where there is room: a workload leaves a rest of less than one.
        let room = target.capacity_bytes().max(upto_bytes) - from;
        let length = wanted
            .next_multiple_of(u64::from(LAYOUT_BLOCK_BYTES))
            .min(room);
        let mut workload =
            split_at_file_ends(way.adapt(layout_workload(from, length, time_ns)), target);
        workload.shape.content.written = content;
        let measured = self.run_preparation(&workload, target, watch)?;
        // With errors, this marks nothing as written.
        mark_laid_out(target, &measured);
        refuse_errors(&measured, target)?;
        // What is in memory ends where the content ends, which was marked just now.
        if way == LayoutWay::Cached {
            let was_in_memory = target.is_in_memory(&(0..from));
            let start = if was_in_memory { 0 } else { from };
            target.mark_in_memory(start..target.usable_bytes());
        }
        if measured.stopped == StopReason::Interrupted {
            return Ok(LayoutEnd::Interrupted(Box::new(measured)));
        }
        Ok(LayoutEnd::Written(Box::new(measured)))
    }

    /// Runs a workload that prepares a target for others: its figures are no result of the run. A
    /// hang ends the run with [`RunError::Stalled`].
    pub(crate) fn run_preparation(
        &self,
        workload: &Workload,
        target: &mut OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<Measurement, RunError> {
        let group = Group::alone(workload);
        // Earlier errors are no errors of this preparation.
        let earlier = EarlyErrors::take_from(target);
        let prepared = self.prepare(workload, target, in_flight_max(group, 1), watch)?;
        earlier.leave_to(target);
        let assignment = Assignment {
            workload,
            member: 0,
            target: 0,
            open: target,
            prepared: &Arc::new(prepared),
        };
        let measured = self
            .measure(group, &[&*target], &[assignment], Phase::Layout, watch)?
            .remove(0);
        if let Some(hang) = measured.hang
            && !hang.late
        {
            let silence = Duration::from_nanos(hang.lasted_ns);
            let path = &target.identity().path;
            return Err(RunError::stalled(path, &workload.name, silence));
        }
        Ok(measured)
    }

    /// Estimates the time that a slow target needs to write so many bytes, in nanoseconds; `None`
    /// where it is not slow. Changes the page cache policy of the target and writes one or two
    /// small blocks. The next workload counts the errors of the disk on them.
    pub fn estimate_slow_write_ns(
        &self,
        bytes: u64,
        target: &mut OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<Option<u64>, RunError> {
        let writes = Workload {
            block_bytes: FIRST_BYTES,
            depth: 2,
            streams: Streams::with_reads(0),
            ..Workload::named("first write")
        };
        let mut errors = prove_direct(&writes, target, self.patience(watch))?;
        set_cache(&writes, target, self.patience(watch))?;
        let first = find_slow(&writes, target, self.patience(watch))?;
        errors.append(first.errors);
        errors.leave_to(target);
        Ok(first.slow.map(|slow| slow.transfer_ns(bytes)))
    }

    /// Bypasses the page cache of a target from now on, and empties it. The next workload is told
    /// of a long time without an answer.
    pub fn bypass_cache(
        &self,
        target: &mut OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<(), RunError> {
        let direct = Workload {
            cache: CachePolicy::Direct,
            ..Workload::named("comparison of the content")
        };
        set_cache(&direct, target, self.patience(watch))?;
        Ok(())
    }

    /// Fails where the target refused the direct I/O that a workload wants and the run needs it. A
    /// memory mapping wants none, and a filesystem that takes O_DIRECT and uses the page cache all
    /// the same refuses nothing.
    fn check_direct(
        &self,
        workload: &Workload,
        cache: &CacheUse,
        target: &OpenTarget,
    ) -> Result<(), RunError> {
        let is_mapped = workload.engine == EngineChoice::Fixed(EngineKind::Mmap);
        match &cache.why {
            Some(why)
                if self.refused_direct == RefusedDirect::Fails
                    && cache.asked == CachePolicy::Direct
                    && !is_mapped
                    && !target.ignores_direct() =>
            {
                Err(RunError::DirectRefused {
                    path: target.identity().path.clone(),
                    is_request: target.refuses_direct_requests(),
                    why: why.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Makes a target ready for a workload: page cache, content, span and I/O engine.
    pub(crate) fn prepare(
        &self,
        workload: &Workload,
        target: &mut OpenTarget,
        in_flight_max: u64,
        watch: &mut dyn Watch,
    ) -> Result<PreparedTarget, RunError> {
        check_writable(workload, target)?;
        let mut errors = EarlyErrors::take_from(target);
        errors.append(prove_direct(workload, target, self.patience(watch))?);
        let cache = set_cache(workload, target, self.patience(watch))?;
        self.check_direct(workload, &cache, target)?;
        let size_bytes = target.capacity_bytes().max(target.usable_bytes());
        check_alignment(
            workload,
            cache.used,
            extent_of(workload.span, size_bytes),
            target,
        )?;
        let bytes_before = target.usable_bytes();
        self.give_content(workload, target, watch)?;
        if target.usable_bytes() != bytes_before {
            // The layout has set the page cache in its own way.
            set_cache(workload, target, self.patience(watch))?;
        }
        let first = find_slow(workload, target, self.patience(watch))?;
        let mut prepared = prepare_target(
            workload,
            target,
            cache,
            in_flight_max,
            first.slow,
            self.seed,
            self.patience(watch),
        )?;
        errors.append(first.errors);
        errors.count_in(&mut prepared.known.ops);
        Ok(prepared)
    }

    /// The patience with a target before a workload.
    pub(crate) fn patience<'a>(&self, watch: &'a mut dyn Watch) -> Patience<'a> {
        Patience {
            stall_timeout: self.stall_timeout,
            watch,
        }
    }

    /// Writes the part of a scratch file that a workload needs and that is not written yet.
    fn give_content(
        &self,
        workload: &Workload,
        target: &mut OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<(), RunError> {
        let end = extent_of(workload.span, target.capacity_bytes()).end();
        if workload.layout == Layout::Provides
            || !target.is_scratch()
            || end <= target.usable_bytes()
        {
            return Ok(());
        }
        let goal = LayoutGoal {
            upto_bytes: end,
            way: LayoutWay::for_workload(workload, end),
            time_ns: None,
            content: workload.shape.content.laid_out.clone(),
        };
        let layout_end = self.lay_out(target, goal, watch)?;
        if layout_end.is_interrupted() || target.usable_bytes() < end {
            return Err(RunError::interrupted(&workload.name));
        }
        Ok(())
    }

    /// Measures the assignments, which are in the order of the workloads and, for each of them, of
    /// the targets. The order of the steps counts:
    ///
    /// 1. Counters are read before any thread starts, and again when the last worker has ended: the
    ///    last window of the workers ends there.
    /// 2. The CPU time of the process is taken next, so that it excludes syncs and read-backs.
    /// 3. The final syncs follow, and one more reading of the counters, since a sync writes.
    /// 4. The read-back of verified blocks comes last: no figure contains its reads.
    fn measure(
        &self,
        group: Group<'_>,
        targets: &[&OpenTarget],
        assignments: &[Assignment<'_>],
        phase: Phase,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Measurement>, RunError> {
        let snapshots: Vec<Snapshot> = targets
            .iter()
            .map(|target| Snapshot::take(target.identity()))
            .collect();
        let mut workers = WorkerGroup::start(
            self.seed,
            self.origin_ns,
            self.stall_timeout,
            group,
            assignments,
            watch,
        )?;
        let cpu_before = usage::process();
        let clock = ActiveClock::new();
        let start = if phase == Phase::Measure {
            self.start
        } else {
            StartTime::Soon
        };
        let planned = workers.release(start)?;
        let mut counter_log = CounterLog::new(&snapshots);
        let control = workers.follow(phase, planned, &clock, &mut counter_log, watch)?;
        counter_log.read(clock.now());
        let schedule = workers.schedule_decided_by(planned, clock.now());
        let total = ProcessTotal::since(cpu_before, schedule.start_ns, clock.now());
        let thread_times: Vec<CpuTime> = workers.states.iter().map(|state| state.cpu).collect();
        let began_ns = workers.began_ns();
        let silences = std::mem::take(&mut workers.silences);
        let syncs = self.sync_at_end(assignments, watch)?;
        let contexts = self.contexts(assignments, &mut workers, schedule, control, &syncs);
        let mut measurements = Vec::new();
        for (context, state) in contexts.into_iter().zip(workers.states) {
            measurements.push(assemble(context, state.results));
        }
        counter_log.read(clock.now());
        divide_cpu_time(&mut measurements, &thread_times, total);
        counter_log.fill(&mut measurements, self.origin_ns);
        let warmup_ns = schedule.measure_ns - schedule.start_ns;
        count_devices(&mut measurements, targets, snapshots, warmup_ns);
        for (index, measurement) in measurements.iter_mut().enumerate() {
            self.verify_written(measurement, assignments, index, watch)?;
            measurement.ceiling_iops = max_iops(measurement);
            measurement.began_ns = began_ns;
        }
        keep_silences(&mut measurements, targets, &silences, phase);
        Ok(measurements)
    }

    /// Makes durable what the workloads wrote, where they want a final sync, with one sync for each
    /// target. A target that hangs is not synced. Returns an entry for each assignment.
    fn sync_at_end(
        &self,
        assignments: &[Assignment<'_>],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Option<FinalSync>>, RunError> {
        let mut syncs: Vec<Option<FinalSync>> = vec![None; assignments.len()];
        for (index, assignment) in assignments.iter().enumerate() {
            if !wants_final_sync(assignment.workload, assignment.prepared.known.cache.used) {
                continue;
            }
            // One call makes the writes of all workloads durable, and none is durable before it. So
            // its time counts in full for each of them, and their rates add up to what the disk
            // wrote.
            let shared = others_on_target(assignments, index)
                .into_iter()
                .find_map(|other| syncs[other]);
            if shared.is_some() {
                syncs[index] = shared;
            } else if !assignment.open.is_left_open() {
                syncs[index] = Some(self.final_sync(assignments, index, watch)?);
            }
        }
        Ok(syncs)
    }

    /// The context of each assignment in which the results of its workers become a measurement.
    /// `syncs` has the final sync of each.
    fn contexts(
        &self,
        assignments: &[Assignment<'_>],
        workers: &mut WorkerGroup<'_>,
        schedule: WorkerSchedule,
        control: Control,
        syncs: &[Option<FinalSync>],
    ) -> Vec<RunContext> {
        let mut schedules: Vec<WorkerSchedule> = Vec::new();
        let mut ends_ns: Vec<u64> = Vec::new();
        for (state, assignment) in workers.states.iter_mut().zip(assignments) {
            let planned = schedule.for_workload(assignment.workload, workers.group);
            let measured = measured_schedule(planned, &mut state.results);
            let common = common_time(&state.results, measured.measure_ns);
            ends_ns.push(measured.measure_ns + common.ns);
            schedules.push(measured);
        }
        let mut contexts = Vec::new();
        for (index, assignment) in assignments.iter().enumerate() {
            let companions_end_ns = others_on_target(assignments, index)
                .into_iter()
                .filter(|other| !assignments[*other].workload.ends_alone)
                .map(|other| ends_ns[other].saturating_sub(schedules[index].measure_ns))
                .min();
            let state = &mut workers.states[index];
            let WorkerSchedule {
                start_ns,
                measure_ns,
                ..
            } = schedules[index];
            let mut context = RunContext {
                pacer: state.pacer.take().map(|pacer| pacer.starting_at(start_ns)),
                final_sync: syncs[index],
                hang: state.hang,
                companions_end_ns,
                measure_ns,
                ..assignment.context(schedule, self.origin_ns, control)
            };
            context.known.engine.features = std::mem::take(&mut state.features);
            contexts.push(context);
        }
        contexts
    }
}

/// The workloads of a group as they run in these slices, behind those before.
fn sliced_workloads(
    group: Group<'_>,
    slices: &[SliceSpan],
    earlier: &[EarlierSlices],
) -> Vec<Workload> {
    debug_assert_eq!(slices.len(), group.workloads.len());
    let before = earlier.first().copied().unwrap_or_default();
    let mut sliced = Vec::new();
    for (workload, slice) in group.workloads.iter().zip(slices) {
        let part = slice.apply_to(workload);
        // The schedule of all targets is that of the group.
        sliced.push(Workload {
            shape: before.apply_to(&part).shape,
            ..part
        });
    }
    sliced
}

/// Lets the measurements of slices name the whole workloads of their group.
fn name_whole_workloads(measurements: &mut [Measurement], group: Group<'_>) {
    for measurement in measurements {
        if let Some(whole) = group
            .workloads
            .iter()
            .find(|workload| workload.name == measurement.workload.name)
        {
            measurement.workload.clone_from(whole);
            measurement.engine.asked = whole.engine;
        }
    }
}

/// Fails where workloads on one target would disturb each other's use of the page cache.
fn refuse_page_cache_clash(
    prepared: &[Arc<PreparedTarget>],
    targets: usize,
) -> Result<(), RunError> {
    for target in 0..targets {
        let used = prepared
            .iter()
            .map(|prepared| &prepared.known)
            .filter(|known| known.target == target)
            .map(|known| (known.workload.name.as_str(), known.cache.used));
        if let Some(clash) = page_cache_clash(used) {
            return Err(RunError::from(clash));
        }
    }
    Ok(())
}

/// Hands the silences of each target, which no measured time contains, to its measurements; after a
/// layout, which is no result, to the next workload. The very first answer belongs to the first
/// workload.
fn keep_silences(
    measurements: &mut [Measurement],
    targets: &[&OpenTarget],
    silences: &[SilenceLog<Pulse>],
    phase: Phase,
) {
    for log in silences {
        let open = targets[log.target];
        log.note_answers(open);
        let around_ns = log.around_ns();
        if phase == Phase::Layout {
            // What its own preparation took is for the next workload, too.
            for layout in measurements
                .iter()
                .filter(|layout| layout.target == log.target)
            {
                open.return_silences(layout.silence_before_ns, layout.first_answer_ns);
            }
            // Without counters, a page cache that is written back is not told from a silent disk.
            let is_seen = open.identity().disks().next().is_some()
                || measurements
                    .iter()
                    .all(|layout| layout.cache.used == CachePolicy::Direct);
            let usual_ns = measurements
                .iter()
                .map(|layout| {
                    let depth = layout.workload.total_depth();
                    usual_layout_ns(&layout.ops, depth, open.usual_silence_ns())
                })
                .fold(0.0, f64::max);
            // Requests of a layout are large: the disks themselves know how long such ones take.
            let is_pause = around_ns as f64 >= PAUSE_LATENCIES_MIN * usual_ns
                && around_ns >= log.usual_silence_ns();
            if around_ns > 0 && is_seen && is_pause {
                open.note_silence(around_ns);
            }
            continue;
        }
        for measurement in measurements.iter_mut() {
            if measurement.target == log.target {
                measurement.silence_around_ns = around_ns;
                let first_ns = open.take_first_answer_ns();
                measurement.first_answer_ns = measurement.first_answer_ns.max(first_ns);
            }
        }
    }
}

/// The usual latency of a layout, in nanoseconds. Where it was cut short, all of its requests may
/// have waited in one silence: then the quickest counts, or an answer before it. `usual_ns` is the
/// silence that is usual for the target by these, 0 where it is unknown.
fn usual_layout_ns(ops: &PerOp<OpMeasurement>, depth: u64, usual_ns: u64) -> f64 {
    let answered: u64 = ops.values().map(|op| op.latency.count()).sum();
    if answered > 2 * depth {
        return usual_latency_ns(ops.values());
    }
    let quickest_ns = ops
        .values()
        .filter(|op| op.latency.count() > 0)
        .map(|op| op.latency.min_ns())
        .min()
        .unwrap_or(0) as f64;
    if usual_ns > 0 {
        quickest_ns.min(usual_ns as f64 / PAUSE_LATENCIES_MIN)
    } else {
        quickest_ns
    }
}

/// The indices of the other assignments on the target of this one.
fn others_on_target(assignments: &[Assignment<'_>], index: usize) -> Vec<usize> {
    let target = assignments[index].target;
    (0..assignments.len())
        .filter(|other| *other != index && assignments[*other].target == target)
        .collect()
}

/// Fails with [`RunError::Layout`] where a part of the content could not be written.
pub(crate) fn refuse_errors(measured: &Measurement, target: &OpenTarget) -> Result<(), RunError> {
    let errors: Vec<&str> = measured
        .ops
        .values()
        .flat_map(|op| op.errors.keys())
        .map(String::as_str)
        .collect();
    if errors.is_empty() {
        return Ok(());
    }
    Err(RunError::Layout {
        path: target.identity().path.clone(),
        errno: errors.join(", "),
        remedy: remedy(errors),
    })
}

/// The open file description that a workload uses on a target.
struct WorkloadDescriptor {
    /// Index of the workload in its group.
    member: usize,
    /// Index of the target.
    target: usize,
    /// An open file description for this workload alone, where another one uses that of the target.
    own: Option<OpenTarget>,
}

impl WorkloadDescriptor {
    fn open_target<'a>(&'a mut self, targets: &'a mut [OpenTarget]) -> &'a mut OpenTarget {
        match &mut self.own {
            Some(own) => own,
            None => &mut targets[self.target],
        }
    }
}

/// Opens what the workloads of a group need, workload by workload, in the order of the targets.
/// Page cache mode and read-ahead belong to an open file description, so each workload has its own.
fn open_descriptors(
    group: Group<'_>,
    targets: &[OpenTarget],
) -> Result<Vec<WorkloadDescriptor>, RunError> {
    let mut descriptors: Vec<WorkloadDescriptor> = Vec::new();
    for (member, workload) in group.workloads.iter().enumerate() {
        for (target, open) in targets.iter().enumerate() {
            if !workload.runs_on(target) {
                continue;
            }
            let is_used = descriptors.iter().any(|other| other.target == target);
            let own = if is_used { Some(open.reopen()?) } else { None };
            descriptors.push(WorkloadDescriptor {
                member,
                target,
                own,
            });
        }
    }
    Ok(descriptors)
}

/// Marks which parts of scratch files have content now. A trim leaves no content from the start of
/// its span on: a workload that needs content there writes it again. `measurements` and `prepared`
/// hold one entry for each assignment.
fn mark_content(
    measurements: &[Measurement],
    prepared: &[Arc<PreparedTarget>],
    targets: &mut [OpenTarget],
) {
    for (measurement, prepared) in measurements.iter().zip(prepared) {
        let target = &mut targets[measurement.target];
        if measurement.workload.leaves_no_content() {
            target.mark_unwritten(prepared.extent.start);
        }
        if measurement.workload.layout == Layout::Provides {
            mark_laid_out(target, measurement);
        }
    }
}

/// Marks what a measurement wrote as content, where that is certain: one ordered pass without an
/// error has written everything from the start of its span on.
fn mark_laid_out(target: &mut OpenTarget, measurement: &Measurement) {
    let failed = measurement.ops.values().any(|op| !op.errors.is_empty());
    let one_pass = matches!(measurement.workload.access, Access::Sequential)
        && measurement.workload.workers == 1;
    if one_pass && !failed && measurement.span_start_bytes <= target.usable_bytes() {
        let written = measurement.asked.write_bytes.min(measurement.span_bytes);
        target.mark_written(measurement.span_start_bytes + written);
    }
}

/// True if a sync after the last write belongs to the workload: its plan has one, or its buffered
/// writes would otherwise end in memory.
fn wants_final_sync(workload: &Workload, cache: CachePolicy) -> bool {
    workload.sync == SyncPolicy::AtEnd
        || workload.shape.final_sync
        || (cache == CachePolicy::Buffered && workload.makes(OpKind::Write))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Eight writes are in flight at a time.
    fn usual_ms(latencies_ms: &[(u64, u64)], usual_ms: u64) -> u64 {
        let mut writes = OpMeasurement::default();
        for (ms, count) in latencies_ms {
            writes.latency.record_many(ms * MS, *count);
        }
        let ops = PerOp::from([(OpKind::Write, writes)]);
        (usual_layout_ns(&ops, 8, usual_ms * MS) / MS as f64).round() as u64
    }

    /// A layout is cut short after the first requests of a disk that was silent for 20 s.
    #[test]
    fn silence_of_a_layout_does_not_make_itself_usual() {
        assert!(usual_ms(&[(5, 2), (20_000, 8)], 0) < 10);
        assert_eq!(usual_ms(&[(20_000, 8)], 50), 5);
        // Each request of the disk takes so long.
        assert!(usual_ms(&[(3000, 8)], 30_000) >= 2900);
        assert!(usual_ms(&[(3000, 8)], 0) >= 2900);
        // One of many that waited.
        assert!(usual_ms(&[(400, 100), (20_000, 8)], 0) >= 380);
    }
}
