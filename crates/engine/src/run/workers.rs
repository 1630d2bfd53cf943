//! The threads of one workload, or of several that run together: started at one time, and
//! supervised until the last has ended.

use crate::io::clock::{ActiveClock, Clock, MonotonicClock};
use crate::load::pacer::Pacer;
use crate::load::pattern::{Pattern, SharedCursors};
use crate::measure::result::{EndReason, WorkerResult};
use crate::measure::snapshot::{SharedSnapshot, lock_snapshot};
use crate::run::error::{RunError, worker_error};
use crate::run::hang::{StuckWorker, join, silence_ns, time_out};
use crate::run::limits::{
    after_write_of, budget_of, largest_block, schedule_of, threads_per_worker, within_part,
};
use crate::run::prepare::PreparedTarget;
use crate::run::spawn::{StartSignal, WorkerConfig, WorkerReport, spawn};
use crate::run::watchdog::{CHECK_EVERY, Orders, StallDeadline, StallTimeout};
use diskproof_device::OpenTarget;
use diskproof_model::group::Group;
use diskproof_model::measurement::{CpuTime, Hang, SERIES_INTERVAL_NS};
use diskproof_model::plan::{Access, Workload};
use diskproof_model::progress::{Control, Phase, Progress, Silence, Watch};
use diskproof_model::series::TimeSeries;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// From the decision to start to the common start: long enough for every thread to wake up.
const LEAD_NS: u64 = 300_000;

/// A workload on a target.
#[derive(Clone, Copy)]
pub struct Assignment<'a> {
    /// What to do.
    pub workload: &'a Workload,
    /// Its place in the group.
    pub member: usize,
    /// Index of the target.
    pub target: usize,
    /// The target, with the open file description of this workload.
    pub open: &'a OpenTarget,
    /// The prepared target.
    pub prepared: &'a PreparedTarget,
}

/// The threads of all assignments.
pub struct WorkerGroup<'a> {
    group: Group<'a>,
    stall_timeout: StallTimeout,
    assignments: &'a [Assignment<'a>],
    reports: Receiver<WorkerReport>,
    starts: Vec<Sender<StartSignal>>,
    /// For each target, set when its threads must end.
    stops: Vec<Arc<AtomicBool>>,
    /// For each workload, the published series of all targets.
    published: Vec<Arc<Mutex<TimeSeries>>>,
    /// For each assignment, the active features of its backends, for the record.
    pub features: Vec<Vec<String>>,
    /// For each assignment, the results of its threads.
    pub results: Vec<Vec<WorkerResult>>,
    /// For each assignment in an open loop, its schedule, from time zero on.
    pub pacers: Vec<Option<Pacer>>,
    /// For each assignment, the CPU time of its threads.
    pub cpu: Vec<CpuTime>,
    /// For each assignment, the hang of its target.
    pub hangs: Vec<Option<Hang>>,
    /// For each assignment, the number of running threads.
    working: Vec<usize>,
    handles: Vec<WorkerHandle>,
}

/// A worker thread, as the supervisor sees it.
struct WorkerHandle {
    assignment: usize,
    snapshot: SharedSnapshot,
    state: WorkerState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerState {
    Running,
    /// Its result has arrived, or it has timed out.
    Finished,
}

impl<'a> WorkerGroup<'a> {
    /// Starts all threads, and waits until each has its backend. `assignments` holds, workload by
    /// workload, one per target.
    pub fn start(
        seed: u64,
        stall_timeout: StallTimeout,
        group: Group<'a>,
        assignments: &'a [Assignment<'a>],
    ) -> Result<Self, RunError> {
        let (sender, reports) = channel();
        let targets = assignments.len() / group.workloads.len();
        let mut workers = Self {
            group,
            stall_timeout,
            assignments,
            reports,
            starts: Vec::new(),
            stops: (0..targets)
                .map(|_| Arc::new(AtomicBool::new(false)))
                .collect(),
            published: group
                .workloads
                .iter()
                .map(|_| Arc::new(Mutex::new(TimeSeries::new(SERIES_INTERVAL_NS))))
                .collect(),
            features: vec![Vec::new(); assignments.len()],
            results: assignments.iter().map(|_| Vec::new()).collect(),
            pacers: assignments
                .iter()
                .map(|assignment| assignment.workload.rate.map(|rate| Pacer::new(0, rate)))
                .collect(),
            cpu: vec![CpuTime::default(); assignments.len()],
            hangs: vec![None; assignments.len()],
            working: vec![0; assignments.len()],
            handles: Vec::new(),
        };
        let workloads: Vec<Arc<Workload>> = group
            .workloads
            .iter()
            .map(|workload| Arc::new(workload.clone()))
            .collect();
        for (index, assignment) in assignments.iter().enumerate() {
            let config = workers.configs_for(seed, &workloads[assignment.member], index);
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
        let open = self.assignments[index].open;
        let is_alone = config.len() == 1;
        let (mut descriptions, mut outcome) = (Vec::new(), Ok(()));
        for worker in config {
            if !is_alone && outcome.is_ok() {
                outcome = open
                    .for_worker()
                    .map(|fd| descriptions.push(fd))
                    .map_err(RunError::from);
            }
            let fd = descriptions.last().map_or(open.fd(), AsFd::as_fd);
            for mut config in worker {
                config.number = self.handles.len();
                let snapshot = Arc::clone(&config.snapshot);
                let (start, started) = channel();
                outcome = outcome.and_then(|()| {
                    spawn(config, fd, started, sender.clone()).map_err(RunError::Thread)
                });
                if outcome.is_ok() {
                    self.starts.push(start);
                    self.working[index] += 1;
                    self.handles.push(WorkerHandle {
                        assignment: index,
                        snapshot,
                        state: WorkerState::Running,
                    });
                }
            }
        }
        let ready = self.await_ready(index);
        outcome.and(ready)
    }

    /// The configuration of each thread, by worker.
    fn configs_for(
        &self,
        seed: u64,
        workload: &Arc<Workload>,
        assignment: usize,
    ) -> Vec<Vec<WorkerConfig>> {
        let Assignment {
            member,
            target,
            prepared,
            ..
        } = self.assignments[assignment];
        let threads_per_worker = threads_per_worker(workload, prepared.selection.kind);
        let depth = workload.depth / threads_per_worker;
        let threads = u64::from(workload.workers) * u64::from(threads_per_worker);
        let block = u64::from(largest_block(workload));
        let budget = budget_of(workload, threads);
        let mut all = Vec::new();
        for worker in 0..u64::from(workload.workers) {
            let cursors = SharedCursors::default();
            let of_worker =
                prepared
                    .extent
                    .share(&workload.access, worker, u64::from(workload.workers), block);
            let of_worker = within_part(&budget, workload, of_worker, prepared.extent);
            let mut threads_of_worker = Vec::new();
            for slot in 0..u64::from(threads_per_worker) {
                let index = worker * u64::from(threads_per_worker) + slot;
                let stream = (assignment as u64) << 32 | index;
                let ordered = matches!(workload.access, Access::Sequential);
                let (part, parts) = if ordered {
                    (worker, u64::from(workload.workers))
                } else {
                    (index, threads)
                };
                let extent = prepared.extent.share(&workload.access, part, parts, block);
                let mut pattern = Pattern::new(workload, extent, seed, stream);
                if threads_per_worker > 1 {
                    pattern = pattern.with_cursors(&cursors, extent);
                }
                threads_of_worker.push(WorkerConfig {
                    assignment,
                    number: 0,
                    workload: Arc::clone(workload),
                    kind: prepared.selection.kind,
                    cache: prepared.cache.used,
                    pattern,
                    extent: prepared.extent,
                    journal: prepared.journal.clone(),
                    depth,
                    // The threads of a worker share its part of an ordered pattern.
                    budget: if ordered {
                        of_worker.clone()
                    } else {
                        within_part(&budget, workload, extent, prepared.extent)
                    },
                    after_write: after_write_of(workload, prepared.cache.used),
                    pacer: self.pacers[assignment].clone(),
                    seed,
                    stream,
                    stop: Arc::clone(&self.stops[target]),
                    published: Arc::clone(&self.published[member]),
                    snapshot: SharedSnapshot::default(),
                });
            }
            all.push(threads_of_worker);
        }
        all
    }

    /// Waits for every thread of an assignment, also where one has failed: until then they use
    /// descriptors that belong to the caller.
    fn await_ready(&mut self, assignment: usize) -> Result<(), RunError> {
        let mut outcome = Ok(());
        for _ in 0..self.working[assignment] {
            let failure = match self.reports.recv() {
                Ok(WorkerReport::Ready(assignment, features)) => {
                    self.features[assignment] = features;
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
            .working
            .iter()
            .position(|working| *working > 0)
            .unwrap_or(0);
        RunError::Lost {
            workload: self.assignments[assignment].workload.name.clone(),
        }
    }

    fn error(&self, number: usize, source: io::Error) -> RunError {
        let assignment = self.handles[number].assignment;
        worker_error(
            self.assignments[assignment].workload,
            self.assignments[assignment].open,
            source,
        )
    }

    /// Gives the common start.
    pub fn release(&mut self) -> StartSignal {
        let at_ns = MonotonicClock.now() + LEAD_NS;
        let start = StartSignal {
            at_ns,
            schedule: schedule_of(self.group, at_ns),
        };
        for sender in self.starts.drain(..) {
            // A worker that has ended has reported why.
            let _ = sender.send(start);
        }
        start
    }

    /// Waits for all workers and calls the watcher meanwhile. Returns the watcher's last answer.
    pub fn follow(
        &mut self,
        phase: Phase,
        start: StartSignal,
        clock: &ActiveClock,
        watch: &mut dyn Watch,
    ) -> Result<Control, RunError> {
        let (mut control, mut failure) = (Control::Continue, None);
        let mut deadlines = vec![StallDeadline::default(); self.stops.len()];
        let mut known = vec![false; self.group.workloads.len()];
        while self.working.iter().any(|working| *working > 0) {
            match self.reports.recv_timeout(CHECK_EVERY) {
                // A report after the timeout is too late.
                Ok(WorkerReport::Done(number, ..) | WorkerReport::Failed(number, _))
                    if self.handles[number].state == WorkerState::Finished => {}
                Ok(WorkerReport::Done(number, done, cpu)) => self.on_finished(number, *done, cpu),
                Ok(WorkerReport::Failed(number, source)) => {
                    failure.get_or_insert(self.error(number, source));
                    self.mark_finished(number);
                    self.stop_all();
                }
                Ok(WorkerReport::Ready(..)) | Err(RecvTimeoutError::Timeout) => {}
                // The results of the others are not the whole result.
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(failure.unwrap_or_else(|| self.lost_worker()));
                }
            }
            let now = clock.now();
            // Also after the stop: the user should see what the end waits for.
            let wanted = self.tick(phase, start, now, &mut known, watch);
            if control == Control::Continue && wanted != Control::Continue {
                control = wanted;
                self.stop_all();
            }
            self.end_stalled(start, now, &mut deadlines);
        }
        failure.map_or(Ok(control), Err)
    }

    fn stop_all(&self) {
        self.stops
            .iter()
            .for_each(|stop| stop.store(true, Ordering::Relaxed));
    }

    /// Marks a thread as finished; returns its assignment.
    fn mark_finished(&mut self, number: usize) -> usize {
        let handle = &mut self.handles[number];
        handle.state = WorkerState::Finished;
        self.working[handle.assignment] -= 1;
        handle.assignment
    }

    /// An assignment is over with its last thread. If it ended before its time, by budget or
    /// errors, the other workloads on its target end, too: their figures would belong to another
    /// load from here on.
    fn on_finished(&mut self, number: usize, done: WorkerResult, cpu: CpuTime) {
        let assignment = self.mark_finished(number);
        self.results[assignment].push(done);
        self.cpu[assignment].user_ns += cpu.user_ns;
        self.cpu[assignment].system_ns += cpu.system_ns;
        let is_early =
            |y: &WorkerResult| matches!(y.ending, EndReason::Budget | EndReason::Errors(_));
        let is_over =
            self.working[assignment] == 0 && self.results[assignment].iter().all(is_early);
        if is_over && !self.group.is_alone() {
            self.stops[self.assignments[assignment].target].store(true, Ordering::Relaxed);
        }
    }

    /// Ends the workers of each target that hangs, and takes their last snapshots as their results.
    /// No further request goes to such a target.
    fn end_stalled(&mut self, start: StartSignal, now: u64, deadlines: &mut [StallDeadline]) {
        for (target, deadline) in deadlines.iter_mut().enumerate() {
            let is_stopping =
                now >= start.schedule.end_ns || self.stops[target].load(Ordering::Relaxed);
            let orders = if is_stopping {
                Orders::End
            } else if self.is_endless() {
                let silence_ns = self.silence_of(target, start, now);
                Orders::ContinueWithoutDeadline { silence_ns }
            } else {
                Orders::Continue
            };
            if let Some(since_ns) = deadline.check(now, orders, self.stall_timeout) {
                let ending = if since_ns >= start.schedule.end_ns {
                    (EndReason::Time, start.schedule.end_ns)
                } else {
                    (EndReason::Stopped, since_ns)
                };
                self.end_target(target, start, now, ending);
            }
        }
    }

    /// Takes the snapshots of the workers that still run on this target as their results.
    fn end_target(
        &mut self,
        target: usize,
        start: StartSignal,
        now: u64,
        ending: (EndReason, u64),
    ) {
        let is_stuck = |handle: &WorkerHandle| {
            handle.state == WorkerState::Running
                && self.assignments[handle.assignment].target == target
        };
        let stuck: Vec<usize> = (0..self.handles.len())
            .filter(|number| is_stuck(&self.handles[*number]))
            .collect();
        if stuck.is_empty() {
            return;
        }
        self.stops[target].store(true, Ordering::Relaxed);
        for assignment in self.assignments {
            if assignment.target == target {
                assignment.open.leave_open();
            }
        }
        for number in stuck {
            let assignment = self.mark_finished(number);
            let Assignment {
                workload, prepared, ..
            } = self.assignments[assignment];
            let worker = StuckWorker {
                workload,
                engine: prepared.selection.kind,
                start_ns: start.at_ns,
                measure_ns: start.schedule.measure_ns,
                ending,
            };
            let (done, hang) = time_out(&self.handles[number].snapshot, worker, now);
            self.hangs[assignment] = Some(join(self.hangs[assignment], hang));
            self.results[assignment].push(done);
        }
    }

    /// Shows the watcher every workload, and combines its answers.
    fn tick(
        &self,
        phase: Phase,
        start: StartSignal,
        now: u64,
        known: &mut [bool],
        watch: &mut dyn Watch,
    ) -> Control {
        let silence = self.silence(start, now);
        for (member, known) in known.iter_mut().enumerate() {
            match self.tick_one(member, (phase, silence), start, now, watch) {
                Control::Interrupt => return Control::Interrupt,
                Control::Enough => *known = true,
                Control::Continue => {}
            }
        }
        if self.group.is_known(known) {
            Control::Enough
        } else {
            Control::Continue
        }
    }

    /// Whether only a budget of operations or bytes ends the run.
    fn is_endless(&self) -> bool {
        self.group.time_ns().is_none()
    }

    /// How long requests of a target have been in flight without any completion; 0 where none is in
    /// flight.
    fn silence_of(&self, target: usize, start: StartSignal, now: u64) -> u64 {
        let handles = self.handles.iter().filter(|handle| {
            self.working[handle.assignment] > 0
                && self.assignments[handle.assignment].target == target
        });
        silence_ns(
            handles.map(|handle| lock_snapshot(&handle.snapshot)),
            start.at_ns,
            now,
        )
        .unwrap_or(0)
    }

    /// The target with the longest silence.
    fn silence(&self, start: StartSignal, now: u64) -> Option<Silence> {
        let of_target = |target| Silence {
            target,
            length_ns: self.silence_of(target, start, now),
        };
        (0..self.stops.len())
            .map(of_target)
            .filter(|silence| silence.length_ns > 0)
            .max_by_key(|silence| silence.length_ns)
    }

    fn tick_one(
        &self,
        member: usize,
        (phase, silence): (Phase, Option<Silence>),
        start: StartSignal,
        now: u64,
        watch: &mut dyn Watch,
    ) -> Control {
        let workload = &self.group.workloads[member];
        let series = self.published[member]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let (phase, since) = match phase {
            Phase::Measure if now < start.schedule.measure_ns => (Phase::Warmup, start.at_ns),
            other => (other, start.schedule.measure_ns),
        };
        let elapsed_ns = now.saturating_sub(since);
        let total = series.total();
        let share =
            |part: u64, whole: Option<u64>| whole.map(|whole| part as f64 / whole.max(1) as f64);
        // Bytes and operations are counted over all targets, but limited for each.
        let all = |each: Option<u64>| each.map(|each| each.saturating_mul(self.stops.len() as u64));
        let limits = [
            share(elapsed_ns, self.group.time_ns()),
            share(total.bytes, all(workload.stop.bytes)),
            share(total.ops, all(workload.stop.ops)),
        ];
        let done = limits
            .into_iter()
            .flatten()
            .reduce(f64::max)
            .map(|share| share.min(1.0));
        watch.tick(&Progress {
            name: &workload.name,
            phase,
            elapsed_ns,
            done,
            series: &series,
            silence,
            resume_bytes: None,
        })
    }
}
