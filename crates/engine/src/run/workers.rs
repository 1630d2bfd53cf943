//! The threads of one workload, or of several that run together, and their common start. The child
//! follows them until the last has ended.

mod follow;

use crate::io::clock::{Clock as _, MonotonicClock};
use crate::io::sync::SharedSync;
use crate::load::holds::{Flow, FlowPart};
use crate::load::pacer::Pacer;
use crate::load::pattern::{Pattern, SharedCursors, order_key};
use crate::measure::result::{SharedSnapshot, WorkerResult};
use crate::measure::turnover::MeasureGate;
use crate::measure::worker::WorkerSchedule;
use crate::run::error::{RunError, worker_error};
use crate::run::limits::{
    budget_of, gate_of, largest_block, schedule_of, threads_per_worker, within_part,
};
use crate::run::prepare::PreparedTarget;
use crate::run::spawn::{WorkerConfig, WorkerFiles, WorkerReport, WorkerStart, spawn};
use crate::run::supervise::StallTimeout;
use diskproof_device::{OpenTarget, WriteDurability};
use diskproof_model::group::Group;
use diskproof_model::measurement::{CpuTime, Hang, SERIES_INTERVAL_NS};
use diskproof_model::op::OpKind;
use diskproof_model::plan::{Access, SyncPolicy, Workload, WriteFlag};
use diskproof_model::series::TimeSeries;
use diskproof_model::target::TargetKind;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// The time from the decision to start to the common start: long enough for every thread to wake
/// up.
const LEAD_NS: u64 = 300_000;

/// The start of all workers of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartTime {
    /// As soon as all of them can wake up.
    Soon,
    /// At this time of CLOCK_MONOTONIC, in nanoseconds.
    At(u64),
}

/// A workload on a target.
#[derive(Clone, Copy)]
pub(crate) struct Assignment<'a> {
    pub workload: &'a Workload,
    /// Index of the workload in its group.
    pub member: usize,
    /// Index of the target.
    pub target: usize,
    /// The target, with the open file description of this workload.
    pub open: &'a OpenTarget,
    /// The target's preparation for this workload.
    pub prepared: &'a Arc<PreparedTarget>,
}

/// No further request goes to this target, through any of its descriptors.
pub(crate) fn leave_open(assignments: &[Assignment<'_>], target: usize) {
    for assignment in assignments {
        if assignment.target == target {
            assignment.open.leave_open();
        }
    }
}

/// The threads of all assignments.
pub(crate) struct WorkerGroup<'a> {
    group: Group<'a>,
    /// Start of the run, on the clock.
    origin_ns: u64,
    stall_timeout: StallTimeout,
    assignments: &'a [Assignment<'a>],
    reports: Receiver<WorkerReport>,
    starts: Vec<Sender<WorkerStart>>,
    gate: Option<Arc<MeasureGate>>,
    /// When the first thread began, on CLOCK_MONOTONIC; [`u64::MAX`] before.
    began_ns: Arc<AtomicU64>,
    /// For each target, set when its threads must end.
    stops: Vec<Arc<AtomicBool>>,
    /// For each workload, the published series of all targets.
    published: Vec<Arc<Mutex<TimeSeries>>>,
    /// One state for each assignment.
    pub states: Vec<AssignmentState>,
    handles: Vec<WorkerHandle>,
}

/// The results of the threads of an assignment so far.
#[derive(Default)]
pub(crate) struct AssignmentState {
    /// The active features of its backends, for the record.
    pub features: Vec<String>,
    /// The results of its threads.
    pub results: Vec<WorkerResult>,
    /// The schedule of an open loop, from time zero on.
    pub pacer: Option<Pacer>,
    /// The CPU time of its threads.
    pub cpu: CpuTime,
    /// The hang of its target.
    pub hang: Option<Hang>,
    /// The number of running threads.
    working: usize,
}

/// The claim on a device that a workload trims.
fn claim_for_trims<'a>(open: &'a OpenTarget, workload: &Workload) -> Option<BorrowedFd<'a>> {
    let is_device = open.identity().kind == TargetKind::BlockDevice;
    if is_device && workload.makes(OpKind::Trim) {
        Some(open.claim())
    } else {
        None
    }
}

/// A worker thread, as the supervisor sees it.
struct WorkerHandle {
    assignment: usize,
    snapshot: SharedSnapshot,
    /// True until its result arrives, or until it times out.
    is_running: bool,
}

/// The open file descriptions that the threads of an assignment take their descriptors from.
#[derive(Default)]
struct WorkerDescriptions {
    /// The files of each worker that has its own; empty where all use those of the target.
    own_files: Vec<Vec<OwnedFd>>,
    /// The descriptions that sync what the others wrote, one for each file.
    synced: Vec<OwnedFd>,
}

impl<'a> WorkerGroup<'a> {
    /// Starts all threads, and waits until each has its backend. `assignments` holds, workload by
    /// workload, one per target.
    pub(crate) fn start(
        seed: u64,
        origin_ns: u64,
        stall_timeout: StallTimeout,
        group: Group<'a>,
        assignments: &'a [Assignment<'a>],
    ) -> Result<Self, RunError> {
        let (sender, reports) = channel();
        let mut states = Vec::new();
        let mut targets = 0;
        for (index, assignment) in assignments.iter().enumerate() {
            targets = targets.max(assignment.target + 1);
            states.push(AssignmentState {
                pacer: Pacer::for_workload(assignment.workload, seed ^ index as u64),
                ..AssignmentState::default()
            });
        }
        let published = group
            .workloads
            .iter()
            .map(|_| Arc::new(Mutex::new(TimeSeries::new(SERIES_INTERVAL_NS))))
            .collect();
        let mut workers = Self {
            group,
            origin_ns,
            stall_timeout,
            assignments,
            reports,
            starts: Vec::new(),
            gate: None,
            began_ns: Arc::new(AtomicU64::new(u64::MAX)),
            stops: (0..targets).map(|_| Arc::default()).collect(),
            published,
            states,
            handles: Vec::new(),
        };
        for (index, flow) in flow_parts(assignments).into_iter().enumerate() {
            let config = workers.configs_for(seed, index, flow);
            workers.spawn_workers(index, config, &sender)?;
        }
        Ok(workers)
    }

    /// Starts the threads of an assignment, and waits until each has its backend. Each worker has
    /// its own open file description, which its threads share.
    fn spawn_workers(
        &mut self,
        index: usize,
        config: Vec<Vec<WorkerConfig>>,
        sender: &Sender<WorkerReport>,
    ) -> Result<(), RunError> {
        let Assignment { open, workload, .. } = self.assignments[index];
        let mut descriptions = WorkerDescriptions::default();
        if matches!(workload.sync, SyncPolicy::OtherDescriptor { .. }) {
            descriptions.synced = open.files_for_worker(WriteDurability::BySync)?;
        }
        let spawned = self.spawn_each(index, config, &mut descriptions, sender);
        // Until then the threads use the descriptions.
        let ready = self.await_ready(index);
        spawned.and(ready)
    }

    fn spawn_each(
        &mut self,
        index: usize,
        config: Vec<Vec<WorkerConfig>>,
        descriptions: &mut WorkerDescriptions,
        sender: &Sender<WorkerReport>,
    ) -> Result<(), RunError> {
        let Assignment { open, workload, .. } = self.assignments[index];
        let durability = durability_of(workload);
        let is_shared = config.len() == 1 && durability == WriteDurability::BySync;
        for worker in config {
            if !is_shared {
                let own = open.files_for_worker(durability)?;
                descriptions.own_files.push(own);
            }
            let mut files = WorkerFiles {
                target: match descriptions.own_files.last() {
                    Some(own) => own.iter().map(AsFd::as_fd).collect(),
                    None => open.files().collect(),
                },
                part: open.part_of_file(),
                synced: descriptions.synced.iter().map(AsFd::as_fd).collect(),
                claim: claim_for_trims(open, workload),
            };
            files.drop_own_claim();
            for mut config in worker {
                config.number = self.handles.len();
                let snapshot = Arc::clone(&config.snapshot);
                let (start, started) = channel();
                spawn(config, &files, started, sender.clone()).map_err(RunError::Thread)?;
                self.starts.push(start);
                self.states[index].working += 1;
                self.handles.push(WorkerHandle {
                    assignment: index,
                    snapshot,
                    is_running: true,
                });
            }
        }
        Ok(())
    }

    /// The configuration of each thread, by worker.
    fn configs_for(
        &self,
        seed: u64,
        assignment: usize,
        flow: Option<Arc<FlowPart>>,
    ) -> Vec<Vec<WorkerConfig>> {
        let own = self.assignments[assignment];
        let (workload, prepared) = (own.workload, own.prepared);
        let engine = &prepared.known.engine;
        let in_flight = engine.depth.unwrap_or(workload.depth);
        let per_worker = threads_per_worker(in_flight, engine.used);
        let depth = in_flight / per_worker;
        let workers = u64::from(workload.workers);
        let threads = workers * u64::from(per_worker);
        let block = u64::from(largest_block(workload));
        let budget = budget_of(workload, threads);
        let mut configs = Vec::new();
        let mut shared_sync = None;
        if matches!(workload.sync, SyncPolicy::Shared { .. }) {
            shared_sync = Some(Arc::<SharedSync>::default());
        }
        let order = SharedCursors::default();
        let first_stream = (assignment as u64) << 32;
        let whole = prepared.extent;
        let is_ordered = matches!(workload.access, Access::Sequential);
        for worker in 0..workers {
            let cursors = SharedCursors::default();
            let part_of_worker = whole.share(&workload.access, worker, workers, block);
            let budget_of_worker = within_part(&budget, workload, part_of_worker, whole);
            let mut threads_of_worker = Vec::new();
            for slot in 0..u64::from(per_worker) {
                let index = worker * u64::from(per_worker) + slot;
                // The threads of a worker share its part of an ordered pattern.
                let (extent, own_budget) = if is_ordered {
                    (part_of_worker, budget_of_worker.clone())
                } else {
                    let extent = whole.share(&workload.access, index, threads, block);
                    (extent, within_part(&budget, workload, extent, whole))
                };
                let data = match &prepared.transaction_span {
                    Some(split) => split.data,
                    None => extent,
                };
                let mut pattern = Pattern::new(workload, data, seed, first_stream | index);
                pattern.skip(prepared.skip_bytes / workers);
                if per_worker > 1 {
                    let key = order_key(seed, first_stream | worker);
                    pattern = pattern.with_cursors(&cursors, extent, key);
                }
                if prepared.journal.is_some() {
                    pattern = pattern.with_each_write_once(&order, seed);
                } else if workload.checks_reads() {
                    pattern = pattern.with_each_block_once(&order, seed);
                }
                threads_of_worker.push(WorkerConfig {
                    assignment,
                    number: 0,
                    prepared: Arc::clone(prepared),
                    pattern,
                    shared_sync: shared_sync.clone(),
                    depth,
                    budget: own_budget,
                    pacer: self.states[assignment].pacer.clone(),
                    flow: flow.clone(),
                    seed,
                    stream: first_stream | index,
                    stop: Arc::clone(&self.stops[own.target]),
                    published: Arc::clone(&self.published[own.member]),
                    snapshot: SharedSnapshot::default(),
                });
            }
            configs.push(threads_of_worker);
        }
        configs
    }

    /// Waits for every thread of an assignment, also where one has failed: until then they use
    /// descriptors that belong to the caller.
    fn await_ready(&mut self, assignment: usize) -> Result<(), RunError> {
        let mut outcome = Ok(());
        for _ in 0..self.states[assignment].working {
            let failure = match self.reports.recv() {
                Ok(WorkerReport::Ready(assignment, features)) => {
                    self.states[assignment].features = features;
                    continue;
                }
                Ok(WorkerReport::Failed(number, source)) => self.error(number, source),
                Ok(WorkerReport::Done(..)) | Err(_) => self.lost_worker(),
            };
            outcome = outcome.and(Err(failure));
        }
        outcome
    }

    /// The error of a thread that ended without a report.
    fn lost_worker(&self) -> RunError {
        let assignment = self
            .states
            .iter()
            .position(|state| state.working > 0)
            .unwrap_or(0);
        RunError::lost(&self.assignments[assignment].workload.name)
    }

    fn error(&self, number: usize, source: io::Error) -> RunError {
        let assignment = self.handles[number].assignment;
        worker_error(
            self.assignments[assignment].workload,
            self.assignments[assignment].open,
            source,
        )
    }

    /// Starts all threads at one time: as soon as they can wake up, or at an instant of
    /// CLOCK_MONOTONIC. Fails where that is over, or too near. What begins at an instant also
    /// measures from an instant on: the schedule is that of other hosts, too.
    pub(crate) fn release(&mut self, start: StartTime) -> Result<WorkerSchedule, RunError> {
        let soonest_ns = MonotonicClock.now() + LEAD_NS;
        let schedule = match start {
            StartTime::Soon => schedule_of(self.group, soonest_ns),
            StartTime::At(start_ns) if start_ns < soonest_ns => {
                return Err(RunError::NotReady {
                    late_ns: soonest_ns - start_ns,
                });
            }
            StartTime::At(start_ns) => schedule_of(self.group, start_ns),
        };
        self.gate = match start {
            StartTime::Soon => gate_of(self.group, schedule, self.handles.len()),
            StartTime::At(_) => None,
        };
        for (sender, handle) in self.starts.drain(..).zip(&self.handles) {
            let workload = self.assignments[handle.assignment].workload;
            // A worker that has ended has reported why.
            let _ = sender.send(WorkerStart {
                schedule: schedule.delayed(workload),
                gate: self.gate.clone(),
                began_ns: Arc::clone(&self.began_ns),
            });
        }
        Ok(schedule)
    }

    /// When the first thread began, in nanoseconds after the start of the run; `None` where none
    /// has.
    pub(crate) fn began_ns(&self) -> Option<u64> {
        match self.began_ns.load(Ordering::Relaxed) {
            u64::MAX => None,
            began_ns => Some(began_ns.saturating_sub(self.origin_ns)),
        }
    }

    /// The schedule as far as it is decided at `now`; before that, the measured time is taken to
    /// start as late as it may.
    pub(crate) fn decided(&self, schedule: WorkerSchedule, now: u64) -> WorkerSchedule {
        match &self.gate {
            Some(gate) => schedule.measuring_from(gate.start_ns(now).unwrap_or(gate.latest_ns)),
            None => schedule,
        }
    }
}

/// One entry for each assignment: its part of a flow, where it belongs to one.
fn flow_parts(assignments: &[Assignment<'_>]) -> Vec<Option<Arc<FlowPart>>> {
    let mut flows: BTreeMap<u32, Arc<Flow>> = BTreeMap::new();
    let mut parts = Vec::new();
    for assignment in assignments {
        let Some(share) = assignment.workload.shape.starts.flow else {
            parts.push(None);
            continue;
        };
        let flow = flows.entry(share.number).or_default();
        let part = FlowPart::new(flow, share, assignment.workload.workers);
        parts.push(Some(Arc::new(part)));
    }
    parts
}

/// The durability of a workload's writes, by the flag with which its workers open the target.
pub(crate) fn durability_of(workload: &Workload) -> WriteDurability {
    let flag = match workload.sync {
        SyncPolicy::WithWrite { flag } => Some(flag),
        _ => workload.shape.threads.opened_with,
    };
    match flag {
        Some(WriteFlag::OpenDsync) => WriteDurability::Data,
        Some(WriteFlag::OpenSync) => WriteDurability::File,
        Some(WriteFlag::RwfDsync) | None => WriteDurability::BySync,
    }
}
