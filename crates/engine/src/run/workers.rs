//! Starts the threads of one workload, or of several that run together, at one time. Module
//! `division` divides the work among them, and `follow` waits until the last one has ended.

mod follow;

use crate::io::clock::{Clock as _, MonotonicClock};
use crate::io::sync::SharedSync;
use crate::load::holds::{Flow, FlowPart};
use crate::load::pacer::Pacer;
use crate::load::pattern::SharedCursors;
use crate::measure::result::{SharedSnapshot, WorkerResult};
use crate::measure::turnover::MeasureStart;
use crate::measure::worker::WorkerSchedule;
use crate::run::block_calls::device_call;
use crate::run::division::WorkDivision;
use crate::run::error::{RunError, worker_error};
use crate::run::limits::{schedule_of, shared_measure_start};
use crate::run::prepare::PreparedTarget;
use crate::run::silence_log::SilenceLog;
use crate::run::spawn::{ThreadConfig, WorkerFiles, WorkerReport, WorkerStart, spawn};
use crate::run::supervise::{CHECK_EVERY, StallTimeout};
use diskproof_device::{OpenTarget, Pulse, WriteDurability};
use diskproof_model::group::Group;
use diskproof_model::measurement::{CpuTime, Hang, SERIES_INTERVAL_NS};
use diskproof_model::plan::{SyncPolicy, Workload, WriteFlag};
use diskproof_model::progress::{Phase, Progress, Watch};
use diskproof_model::request_log::LOGGED_MAX;
use diskproof_model::series::TimeSeries;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The time from the decision to start to the common start: long enough for every thread to wake
/// up. Chosen, not measured; a thread that wakes up later starts later.
const LEAD_NS: u64 = 300_000;

/// The start of all workers of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartTime {
    /// As soon as all of them can wake up.
    Soon,
    /// At this time of CLOCK_MONOTONIC, in nanoseconds.
    At(u64),
}

/// A workload on a target: what the workers of one measurement carry out.
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

/// Gives up a target that hangs. None of its descriptors is ever closed, since that could block
/// this thread, too. Later steps skip a target that [is left open](OpenTarget::is_left_open).
pub(crate) fn abandon_target(assignments: &[Assignment<'_>], target: usize) {
    for assignment in assignments {
        if assignment.target == target {
            assignment.open.leave_open();
        }
    }
}

/// The threads of all assignments.
pub(crate) struct WorkerGroup<'a> {
    /// The workloads.
    pub group: Group<'a>,
    /// Start of the run, on the clock.
    origin_ns: u64,
    stall_timeout: StallTimeout,
    assignments: &'a [Assignment<'a>],
    reports: Receiver<WorkerReport>,
    /// Wakes the threads up, in the order of `handles`; empty once they are released.
    starts: Vec<Sender<WorkerStart>>,
    /// Decides when the measured time starts, where the schedule does not.
    measure_start: Option<Arc<MeasureStart>>,
    /// When the first thread began, on CLOCK_MONOTONIC; [`u64::MAX`] before.
    began_ns: Arc<AtomicU64>,
    /// For each target, set when its threads must end.
    stops: Vec<Arc<AtomicBool>>,
    /// For each target with workers, its silences outside of the measured time.
    pub silences: Vec<SilenceLog<Pulse>>,
    /// For each workload, the published series of all targets.
    published: Vec<Arc<Mutex<TimeSeries>>>,
    /// One state for each assignment.
    pub states: Vec<AssignmentState>,
    /// The threads by their number in the run, which [`ThreadConfig::number`] is.
    handles: Vec<WorkerHandle>,
    /// The requests that each worker keeps that logs them.
    logged_max: usize,
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

/// The requests that each worker keeps that logs them.
fn logged_max(assignments: &[Assignment<'_>]) -> usize {
    let mut logging = 0;
    for assignment in assignments {
        if assignment.workload.shape.logs_requests {
            logging += assignment.workload.workers as usize;
        }
    }
    LOGGED_MAX / logging.max(1)
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
        watch: &mut dyn Watch,
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
            measure_start: None,
            began_ns: Arc::new(AtomicU64::new(u64::MAX)),
            stops: (0..targets).map(|_| Arc::default()).collect(),
            silences: silence_logs(assignments, targets),
            published,
            states,
            handles: Vec::new(),
            logged_max: logged_max(assignments),
        };
        for (index, flow) in flow_parts(assignments).into_iter().enumerate() {
            let configs = workers.thread_configs(seed, index, flow);
            let mut descriptions = WorkerDescriptions::default();
            let spawned = workers.spawn_workers(index, configs, &mut descriptions, &sender);
            // Also where one could not be spawned: the other threads use the descriptions until
            // they are ready.
            let ready = workers.await_ready(index, watch);
            spawned.and(ready)?;
        }
        Ok(workers)
    }

    /// Starts the threads of an assignment. Each worker has its own open file description, which
    /// its threads share; the caller keeps `descriptions` until the threads are ready. `configs`
    /// has the threads by worker.
    fn spawn_workers(
        &mut self,
        index: usize,
        configs: Vec<Vec<ThreadConfig>>,
        descriptions: &mut WorkerDescriptions,
        sender: &Sender<WorkerReport>,
    ) -> Result<(), RunError> {
        let Assignment { open, workload, .. } = self.assignments[index];
        if matches!(workload.sync, SyncPolicy::OtherDescriptor { .. }) {
            descriptions.synced = open.files_for_worker(WriteDurability::BySync)?;
        }
        let durability = durability_of(workload);
        let is_shared = configs.len() == 1 && durability == WriteDurability::BySync;
        for threads in configs {
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
                claim: claim_for_calls(open, workload),
            };
            files.drop_own_claim();
            for config in threads {
                debug_assert_eq!(config.number, self.handles.len());
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

    /// The configuration of each thread of an assignment, by worker.
    fn thread_configs(
        &self,
        seed: u64,
        assignment: usize,
        flow: Option<Arc<FlowPart>>,
    ) -> Vec<Vec<ThreadConfig>> {
        let Assignment {
            workload,
            prepared,
            member,
            target,
            ..
        } = self.assignments[assignment];
        let division = WorkDivision::new(workload, prepared, seed, assignment);
        let first_number = self.handles.len();
        let mut shared_sync = None;
        if matches!(workload.sync, SyncPolicy::Shared { .. }) {
            shared_sync = Some(Arc::<SharedSync>::default());
        }
        let mut configs = Vec::new();
        for worker in 0..division.workers {
            let worker_cursors = SharedCursors::default();
            let worker_part = division.part_of_worker(worker);
            let mut threads = Vec::new();
            for index in division.threads_of(worker) {
                let part = division.part_of_thread(&worker_part, index);
                threads.push(ThreadConfig {
                    number: first_number + index as usize,
                    prepared: Arc::clone(prepared),
                    threads: division.threads(),
                    pattern: division.pattern(worker, index, part.extent, &worker_cursors),
                    shared_sync: shared_sync.clone(),
                    depth: division.depth,
                    budget: part.budget,
                    pacer: self.states[assignment].pacer.clone(),
                    flow: flow.clone(),
                    seed,
                    random_stream: division.random_stream(index),
                    logged_max: self.logged_max,
                    stop: Arc::clone(&self.stops[target]),
                    published: Arc::clone(&self.published[member]),
                    snapshot: SharedSnapshot::default(),
                });
            }
            configs.push(threads);
        }
        configs
    }

    /// Waits for every thread of an assignment, also where one has failed: until then they use
    /// descriptors that belong to the caller. Gigabytes of buffers take seconds, which the watcher
    /// sees as a phase of its own: the target has no request yet.
    fn await_ready(&mut self, assignment: usize, watch: &mut dyn Watch) -> Result<(), RunError> {
        let mut outcome = Ok(());
        let begun = Instant::now();
        let nothing_yet = TimeSeries::new(SERIES_INTERVAL_NS);
        let name = &self.assignments[assignment].workload.name;
        let mut awaited = self.states[assignment].working;
        while awaited > 0 {
            let failure = match self.reports.recv_timeout(CHECK_EVERY) {
                Err(RecvTimeoutError::Timeout) => {
                    let elapsed_ns = begun.elapsed().as_nanos() as u64;
                    watch.tick(&Progress::new(name, Phase::SetUp, elapsed_ns, &nothing_yet));
                    continue;
                }
                Ok(WorkerReport::Ready { features }) => {
                    self.states[assignment].features = features;
                    awaited -= 1;
                    continue;
                }
                Ok(WorkerReport::Failed { thread, error }) => self.thread_error(thread, error),
                // Neither happens: a thread is done only after its start, and `start` holds a
                // sender meanwhile.
                Ok(WorkerReport::Done { .. }) | Err(RecvTimeoutError::Disconnected) => {
                    self.lost_worker()
                }
            };
            awaited -= 1;
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

    /// The error of the run where this thread failed.
    fn thread_error(&self, thread: usize, source: io::Error) -> RunError {
        let assignment = self.handles[thread].assignment;
        worker_error(
            self.assignments[assignment].workload,
            self.assignments[assignment].open,
            source,
        )
    }

    /// Starts all threads at one time: as soon as they can wake up, or at an instant of
    /// CLOCK_MONOTONIC. Fails with [`RunError::NotReady`] where that instant is past or too near.
    /// Workers that begin at an instant also measure from an instant on, since other hosts have the
    /// same schedule.
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
        self.measure_start = match start {
            StartTime::Soon => shared_measure_start(self.group, schedule, self.handles.len()),
            StartTime::At(_) => None,
        };
        debug_assert_eq!(self.starts.len(), self.handles.len());
        for (sender, handle) in self.starts.drain(..).zip(&self.handles) {
            let workload = self.assignments[handle.assignment].workload;
            // A worker that has ended has reported why.
            let _ = sender.send(WorkerStart {
                schedule: schedule.for_workload(workload, self.group),
                measure_start: self.measure_start.clone(),
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

    /// The schedule as far as it is decided at `now`. Until the workers have decided the start of
    /// the measured time, its latest start counts.
    pub(crate) fn schedule_decided_by(&self, schedule: WorkerSchedule, now: u64) -> WorkerSchedule {
        match &self.measure_start {
            Some(measure_start) => schedule.measuring_from(
                measure_start
                    .start_ns(now)
                    .unwrap_or(measure_start.latest_ns),
            ),
            None => schedule,
        }
    }
}

/// A log for each target with workers.
fn silence_logs(assignments: &[Assignment<'_>], targets: usize) -> Vec<SilenceLog<Pulse>> {
    let mut logs = Vec::new();
    for target in 0..targets {
        if let Some(first) = assignments
            .iter()
            .find(|assignment| assignment.target == target)
        {
            logs.push(SilenceLog::of_target(target, first.open));
        }
    }
    logs
}

/// The claim on a device whose blocks a workload changes by a call of the device.
fn claim_for_calls<'a>(open: &'a OpenTarget, workload: &Workload) -> Option<BorrowedFd<'a>> {
    device_call(workload, open)?;
    Some(open.claim())
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
