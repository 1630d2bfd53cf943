//! The threads of a workload: made together, started at one instant, followed until the last is home.

use crate::clock::{Clock, MonotonicClock};
use crate::failure::RunError;
use crate::limits::{after_write_of, allowance_of, largest_block, schedule_of};
use crate::pacer::Pacer;
use crate::pattern::{Cursors, Pattern};
use crate::run::Prepared;
use crate::spawn::{Orders, Report, Start, spawn};
use crate::worker::Yield;
use diskproof_model::measurement::SERIES_INTERVAL_NS;
use diskproof_model::plan::{Access, EngineKind, Workload};
use diskproof_model::progress::{Control, Phase, Progress, Watch};
use diskproof_model::series::TimeSeries;
use diskproof_target::OpenTarget;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often the watcher is asked.
pub const TICK: Duration = Duration::from_millis(50);
/// A target that does not answer for this long after everything was told to end is given up. Longer than the kernel's own timeout for SCSI
/// commands (30 s), so that its error arrives first.
pub const STALL_NS: u64 = 45_000_000_000;
/// From the decision to start to the common start: long enough for every thread to wake up.
const LEAD_NS: u64 = 300_000;

/// The threads of a workload.
pub struct Crew {
    reports: Receiver<Report>,
    starts: Vec<Sender<Start>>,
    stop: Arc<AtomicBool>,
    published: Arc<Mutex<TimeSeries>>,
    /// What the backends have on, for the record.
    pub features: Vec<String>,
    /// What the threads brought home, per target.
    pub yields: Vec<Vec<Yield>>,
    /// The schedule of each target, in an open loop; from time zero on.
    pub pacers: Vec<Option<Pacer>>,
    working: usize,
}

impl Crew {
    /// Starts all threads, and waits until each has its backend.
    pub fn start(seed: u64, workload: &Workload, targets: &[OpenTarget], prepared: &[Prepared]) -> Result<Self, RunError> {
        let (sender, reports) = channel();
        let mut crew = Self {
            reports,
            starts: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            published: Arc::new(Mutex::new(TimeSeries::new(SERIES_INTERVAL_NS))),
            features: Vec::new(),
            yields: targets.iter().map(|_| Vec::new()).collect(),
            pacers: targets.iter().map(|_| workload.rate.map(|rate| Pacer::new(0, rate))).collect(),
            working: 0,
        };
        let workload = Arc::new(workload.clone());
        for (index, (target, prepared)) in targets.iter().zip(prepared).enumerate() {
            for orders in crew.orders_for(seed, &workload, index, prepared, crew.pacers[index].as_ref()) {
                let (start, started) = channel();
                spawn(orders, target.fd(), started, sender.clone()).map_err(RunError::Thread)?;
                crew.starts.push(start);
                crew.working += 1;
            }
        }
        crew.await_ready(&workload, targets)?;
        Ok(crew)
    }

    fn orders_for(&self, seed: u64, workload: &Arc<Workload>, target: usize, prepared: &Prepared, pacer: Option<&Pacer>) -> Vec<Orders> {
        let one_at_a_time = matches!(prepared.selection.kind, EngineKind::Sync | EngineKind::Mmap);
        let (threads_per_worker, depth) = if one_at_a_time { (workload.depth, 1) } else { (1, workload.depth) };
        let threads = u64::from(workload.workers) * u64::from(threads_per_worker);
        let block = u64::from(largest_block(workload));
        let mut all = Vec::new();
        for worker in 0..u64::from(workload.workers) {
            let cursors = Cursors::default();
            for slot in 0..u64::from(threads_per_worker) {
                let index = worker * u64::from(threads_per_worker) + slot;
                let stream = (target as u64) << 32 | index;
                let ordered = matches!(workload.access, Access::Sequential);
                let (part, parts) = if ordered { (worker, u64::from(workload.workers)) } else { (index, threads) };
                let extent = prepared.extent.share(&workload.access, part, parts, block);
                let mut pattern = Pattern::new(workload, extent, seed, stream);
                if threads_per_worker > 1 {
                    pattern = pattern.together(&cursors, extent);
                }
                all.push(Orders {
                    target,
                    workload: Arc::clone(workload),
                    kind: prepared.selection.kind,
                    cache: prepared.cache.used,
                    pattern,
                    extent: prepared.extent,
                    ledger: prepared.ledger.clone(),
                    depth,
                    allowance: allowance_of(workload, index, threads),
                    after_write: after_write_of(workload, prepared.cache.used),
                    pacer: pacer.cloned(),
                    seed,
                    stream,
                    stop: Arc::clone(&self.stop),
                    published: Arc::clone(&self.published),
                });
            }
        }
        all
    }

    fn await_ready(&mut self, workload: &Workload, targets: &[OpenTarget]) -> Result<(), RunError> {
        for _ in 0..self.working {
            match self.reports.recv() {
                Ok(Report::Ready(features)) => self.features = features,
                Ok(Report::Failed(target, source)) => return Err(worker_error(workload, &targets[target], source)),
                Ok(Report::Done(..)) | Err(_) => return Err(RunError::Thread(io::Error::other("a worker ended before it began"))),
            }
        }
        Ok(())
    }

    /// Gives the common start.
    pub fn release(&mut self, workload: &Workload) -> Start {
        let at_ns = MonotonicClock.now() + LEAD_NS;
        let start = Start { at_ns, schedule: schedule_of(workload, at_ns) };
        for sender in self.starts.drain(..) {
            // A worker that is gone has reported why.
            let _ = sender.send(start);
        }
        start
    }

    /// Waits for all workers; asks the watcher meanwhile. Returns what the watcher said last.
    pub fn follow(
        &mut self,
        workload: &Workload,
        targets: &[OpenTarget],
        phase: Phase,
        start: Start,
        watch: &mut dyn Watch,
    ) -> Result<Control, RunError> {
        let (mut told, mut ending_since, mut failure) = (Control::Continue, None::<u64>, None);
        while self.working > 0 {
            match self.reports.recv_timeout(TICK) {
                Ok(Report::Done(target, done)) => {
                    self.yields[target].push(*done);
                    self.working -= 1;
                }
                Ok(Report::Failed(target, source)) => {
                    failure.get_or_insert(worker_error(workload, &targets[target], source));
                    self.working -= 1;
                    self.stop.store(true, Ordering::Relaxed);
                }
                Ok(Report::Ready(_)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = MonotonicClock.now();
            if told == Control::Continue {
                told = self.tick(workload, phase, start, now, watch);
                self.stop.fetch_or(told != Control::Continue, Ordering::Relaxed);
            }
            if ending_since.is_none() && (now >= start.schedule.end_ns || self.stop.load(Ordering::Relaxed)) {
                ending_since = Some(now);
            }
            if ending_since.is_some_and(|since| now - since > STALL_NS) {
                let path = targets.first().map_or(String::new(), |t| t.identity().path.clone());
                return Err(RunError::Stalled { path, workload: workload.name.clone(), seconds: STALL_NS / 1_000_000_000 });
            }
        }
        failure.map_or(Ok(told), Err)
    }

    fn tick(&self, workload: &Workload, phase: Phase, start: Start, now: u64, watch: &mut dyn Watch) -> Control {
        let series = self.published.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (phase, since) = match phase {
            Phase::Measure if now < start.schedule.measure_ns => (Phase::Warmup, start.at_ns),
            other => (other, start.schedule.measure_ns),
        };
        let elapsed_ns = now.saturating_sub(since);
        let total = series.total();
        let share = |part: u64, whole: Option<u64>| whole.map(|whole| part as f64 / whole.max(1) as f64);
        // Bytes and operations are counted over all targets, but limited for each.
        let all = |each: Option<u64>| each.map(|each| each.saturating_mul(self.yields.len() as u64));
        let limits = [
            share(elapsed_ns, workload.stop.time_ns),
            share(total.bytes, all(workload.stop.bytes)),
            share(total.ops, all(workload.stop.ops)),
        ];
        let done = limits.into_iter().flatten().reduce(f64::max).map(|share| share.min(1.0));
        watch.tick(&Progress { name: &workload.name, phase, elapsed_ns, done, series: &series, resume_bytes: None })
    }
}

/// A worker could not go on.
pub fn worker_error(workload: &Workload, target: &OpenTarget, source: io::Error) -> RunError {
    RunError::Worker { path: target.identity().path.clone(), workload: workload.name.clone(), source }
}
