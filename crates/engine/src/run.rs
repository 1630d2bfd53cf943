//! One workload on open targets, from preparation to `Measurement`: layout, counters, threads, the watcher, the sum of what they bring home.

use crate::clock::{Clock, MonotonicClock};
use crate::ledger::{BLOCKS_MAX, Ledger};
use crate::pacer::Pacer;
use crate::pattern::{Cursors, Extent, Pattern};
use crate::select::{Selection, select};
use crate::spawn::{Orders, Report, Start, spawn};
use crate::trial::ceiling;
use crate::verify::verify;
use crate::worker::{AfterWrite, Allowance, Ending, Schedule, Yield};
use diskproof_model::measurement::{
    ByteCount, CacheUse, CpuTime, DeviceUse, EngineUse, Measurement, OpKind, OpMeasurement, SERIES_CELLS_MAX, SERIES_INTERVAL_NS,
    StopReason, ZeroSample,
};
use diskproof_model::plan::{Access, CachePolicy, EngineChoice, EngineKind, Layout, Span, Stop, SyncCall, SyncPolicy, Verify, Workload};
use diskproof_model::progress::{Control, Phase, Progress, Watch};
use diskproof_model::series::{Cell, TimeSeries};

use diskproof_target::{OpenError, OpenTarget, Snapshot};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often the watcher is asked.
const TICK: Duration = Duration::from_millis(50);
/// A target that does not answer for this long after everything was told to end is given up. Longer than the kernel's own timeout for SCSI
/// commands (30 s), so that its error arrives first.
const STALL_NS: u64 = 45_000_000_000;
/// From the decision to start to the common start: long enough for every thread to wake up.
const LEAD_NS: u64 = 300_000;
/// Block size and depth with which the scratch file gets its content.
const LAYOUT_BLOCK_BYTES: u32 = 1 << 20;
const LAYOUT_DEPTH: u32 = 8;

/// Why a workload could not be run. An I/O error of the target is none of these: it is counted.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The target could not be prepared.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// No kernel interface serves.
    #[error("{path}: cannot be measured with --engine {}: {why}. Use --engine auto, which takes what works here", kind.as_str())]
    Engine {
        /// The last one tried.
        kind: EngineKind,
        /// The target.
        path: String,
        /// Why.
        why: String,
    },
    /// The span holds no block.
    #[error(
        "{path}: workload '{workload}' needs at least {block_bytes} bytes, but the span has {span_bytes}. Use a smaller block or a larger span"
    )]
    Span {
        /// The target.
        path: String,
        /// The workload.
        workload: String,
        /// Its block.
        block_bytes: u32,
        /// What there is.
        span_bytes: u64,
    },
    /// Direct I/O goes in whole units.
    #[error(
        "{path}: workload '{workload}': {what} of {bytes} bytes is not a multiple of {unit}, which direct I/O needs here. Use a multiple, or --buffered"
    )]
    Alignment {
        /// The target.
        path: String,
        /// The workload.
        workload: String,
        /// `block size`, `start of the span` or `stride`.
        what: &'static str,
        /// Its value.
        bytes: u64,
        /// The unit.
        unit: u32,
    },
    /// A verified workload that cannot be.
    #[error("{path}: workload '{workload}' cannot be verified: {why}")]
    Unverifiable {
        /// The target.
        path: String,
        /// The workload.
        workload: String,
        /// Why.
        why: String,
    },
    /// A writing workload on a target opened for reading.
    #[error("{path}: workload '{workload}' writes, but the target is open for reading only. Give a directory instead")]
    ReadOnly {
        /// The target.
        path: String,
        /// The workload.
        workload: String,
    },
    /// The kernel refused to go on.
    #[error("{path}: {source} while '{workload}' ran. Try another --engine")]
    Worker {
        /// The target.
        path: String,
        /// The workload.
        workload: String,
        /// Why.
        source: io::Error,
    },
    /// The target hangs.
    #[error("{path}: no answer for {seconds} s while '{workload}' ran: the device or the path to it hangs. See the kernel log (dmesg)")]
    Stalled {
        /// The target.
        path: String,
        /// The workload.
        workload: String,
        /// For how long.
        seconds: u64,
    },
    /// No thread could be started.
    #[error("a thread could not be started: {0}. Use fewer workers or a smaller depth, or raise the limit of processes (ulimit -u)")]
    Thread(io::Error),
}

/// A run: its time zero and its seed.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    origin_ns: u64,
    seed: u64,
}

struct Prepared {
    extent: Extent,
    ledger: Option<Arc<Ledger>>,
    cache: CacheUse,
    selection: Selection,
    unwritten_bytes: Option<u64>,
}

impl Session {
    /// Time zero is now.
    pub fn new(seed: u64) -> Self {
        Self { origin_ns: MonotonicClock.now(), seed }
    }

    /// Runs one workload on all targets at the same time. One measurement per target, in order.
    pub fn run(&self, workload: &Workload, targets: &mut [OpenTarget], watch: &mut dyn Watch) -> Result<Vec<Measurement>, RunError> {
        let mut prepared = Vec::new();
        for target in targets.iter_mut() {
            prepared.push(self.prepare(workload, target, watch)?);
        }
        let measurements = self.measure(workload, targets, &prepared, Phase::Measure, watch)?;
        if workload.layout == Layout::Provides {
            for (target, measurement) in targets.iter_mut().zip(&measurements) {
                mark_laid_out(target, measurement);
            }
        }
        Ok(measurements)
    }

    /// Writes the scratch file up to `upto_bytes`, where it is not written yet, for at most `time_ns`. Returns whether the watcher interrupted.
    pub fn lay_out(
        &self,
        target: &mut OpenTarget,
        upto_bytes: u64,
        time_ns: Option<u64>,
        watch: &mut dyn Watch,
    ) -> Result<Control, RunError> {
        let from = target.usable_bytes();
        if upto_bytes <= from {
            return Ok(Control::Continue);
        }
        let workload = layout_workload(from, upto_bytes - from, time_ns);
        let targets = std::slice::from_mut(target);
        let prepared = self.prepare(&workload, &mut targets[0], watch)?;
        let measurements = self.measure(&workload, targets, &[prepared], Phase::Layout, watch)?;
        mark_laid_out(&mut targets[0], &measurements[0]);
        Ok(if measurements[0].stopped == StopReason::Interrupted { Control::Interrupt } else { Control::Continue })
    }

    fn prepare(&self, workload: &Workload, target: &mut OpenTarget, watch: &mut dyn Watch) -> Result<Prepared, RunError> {
        let path = || target.identity().path.clone();
        if workload.writes() && !target.is_writable() {
            return Err(RunError::ReadOnly { path: path(), workload: workload.name.clone() });
        }
        if workload.layout == Layout::Needed && target.is_scratch() {
            let end = workload.span.length_bytes.map_or(target.capacity_bytes(), |length| workload.span.start_bytes + length);
            self.lay_out(target, end.min(target.capacity_bytes()), None, watch)?;
        }
        let cache = set_cache(workload, target)?;
        let limit = if workload.layout == Layout::Provides { target.capacity_bytes() } else { target.usable_bytes() };
        let extent = extent_of(workload, limit);
        let block_bytes = largest_block(workload);
        if extent.length < u64::from(block_bytes) {
            let path = target.identity().path.clone();
            return Err(RunError::Span { path, workload: workload.name.clone(), block_bytes, span_bytes: extent.length });
        }
        check_alignment(workload, cache.used, extent, target)?;
        if matches!(workload.access, Access::Sequential) {
            target.advise_sequential()
        } else {
            target.advise_random()
        }
        let unwritten_bytes = if workload.reads() { target.unwritten_bytes(extent.start, extent.length) } else { None };
        let selection = select(workload, cache.used, target)?;
        let ledger = self.ledger_for(workload, extent, target)?;
        Ok(Prepared { extent, ledger, cache, selection, unwritten_bytes })
    }

    fn ledger_for(&self, workload: &Workload, extent: Extent, target: &OpenTarget) -> Result<Option<Arc<Ledger>>, RunError> {
        if workload.verify == Verify::Off {
            return Ok(None);
        }
        let unverifiable =
            |why: String| RunError::Unverifiable { path: target.identity().path.clone(), workload: workload.name.clone(), why };
        let block = workload.block_bytes;
        if !workload.writes() {
            return Err(unverifiable("it writes nothing".to_owned()));
        }
        if !workload.block_mix.is_empty() || !block.is_multiple_of(8) || block < 64 {
            return Err(unverifiable("blocks must have one size, at least 64 bytes and a multiple of 8".to_owned()));
        }
        if matches!(workload.access, Access::Stride { stride_bytes } if stride_bytes % u64::from(block) != 0) {
            return Err(unverifiable("a stride that is no multiple of the block makes blocks overlap".to_owned()));
        }
        if extent.length / u64::from(block) > BLOCKS_MAX {
            return Err(unverifiable(format!("the span has more than {BLOCKS_MAX} blocks; use a smaller --span or a larger block")));
        }
        Ok(Some(Arc::new(Ledger::new(self.seed, extent.start, extent.length, block))))
    }

    fn measure(
        &self,
        workload: &Workload,
        targets: &[OpenTarget],
        prepared: &[Prepared],
        phase: Phase,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Measurement>, RunError> {
        let snapshots: Vec<Snapshot> = targets.iter().map(|target| Snapshot::take(target.identity())).collect();
        let mut crew = Crew::start(self, workload, targets, prepared)?;
        let cpu_before = crate::usage::process();
        let start = crew.release(workload);
        let told = crew.follow(workload, targets, phase, start, watch)?;
        let (cpu, end_ns) = (cpu_since(cpu_before), MonotonicClock.now());
        let total_ns = end_ns.saturating_sub(start.at_ns).max(1);
        let mut measurements = Vec::new();
        for (index, ((target, prepared), snapshot)) in targets.iter().zip(prepared).zip(snapshots).enumerate() {
            let yields = std::mem::take(&mut crew.yields[index]);
            let final_sync = final_sync(workload, prepared.cache.used, target);
            let closing = Closing {
                target: index,
                workload: workload.clone(),
                extent: prepared.extent,
                engine: EngineUse {
                    asked: workload.engine,
                    used: prepared.selection.kind,
                    fallbacks: prepared.selection.fallbacks.clone(),
                    features: crew.features.clone(),
                },
                cache: prepared.cache.clone(),
                measure_ns: start.schedule.measure_ns,
                origin_ns: self.origin_ns,
                cpu,
                device: DeviceUse::default(),
                final_sync,
                punted: prepared.selection.punted,
                unwritten_bytes: prepared.unwritten_bytes,
                told,
            };
            let mut measurement = assemble(closing, yields);
            measurement.device = snapshot.finish(measurement.asked);
            self.check(&mut measurement, prepared, target, watch)?;
            measurement.ceiling_iops = ceiling(&measurement);
            measurement.cpu = scale(measurement.cpu, measurement.wall_ns as f64 / total_ns as f64);
            measurements.push(measurement);
        }
        Ok(measurements)
    }
}

impl Session {
    /// Reads back what a verified workload wrote.
    fn check(
        &self,
        measurement: &mut Measurement,
        prepared: &Prepared,
        target: &OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<(), RunError> {
        let Some(ledger) = &prepared.ledger else { return Ok(()) };
        if prepared.selection.kind == EngineKind::Null {
            return Ok(());
        }
        if prepared.cache.used != CachePolicy::Direct {
            // What the page cache still holds must come from the disk.
            crate::backend::sync::sync(target.fd().as_raw_fd(), SyncCall::Fdatasync);
            target.drop_cache();
        }
        let workload = &measurement.workload;
        let checked = verify(&workload.name, target, ledger, workload.block_bytes, watch);
        let (result, told) = checked.map_err(|source| worker_error(workload, target, source))?;
        measurement.verify = Some(result);
        if told == Control::Interrupt {
            measurement.stopped = StopReason::Interrupted;
        }
        Ok(())
    }
}

fn layout_workload(start_bytes: u64, length_bytes: u64, time_ns: Option<u64>) -> Workload {
    Workload {
        name: "layout".to_owned(),
        read_permille: 0,
        access: Access::Sequential,
        block_bytes: LAYOUT_BLOCK_BYTES.min(length_bytes.min(u64::from(u32::MAX)) as u32),
        block_mix: Vec::new(),
        depth: LAYOUT_DEPTH,
        workers: 1,
        span: Span { start_bytes, length_bytes: Some(length_bytes) },
        stop: Stop { bytes: Some(length_bytes), time_ns, ..Stop::default() },
        warmup_ns: 0,
        rate: None,
        sync: SyncPolicy::AtEnd,
        cache: CachePolicy::Direct,
        engine: EngineChoice::Auto,
        layout: Layout::Provides,
        verify: Verify::Off,
    }
}

/// One ordered pass without an error has written everything from the start of its span on.
fn mark_laid_out(target: &mut OpenTarget, measurement: &Measurement) {
    let failed = measurement.ops.values().any(|op| !op.errors.is_empty());
    let one_pass = matches!(measurement.workload.access, Access::Sequential) && measurement.workload.workers == 1;
    if one_pass && !failed && measurement.span_start_bytes <= target.usable_bytes() {
        let written = measurement.asked.write_bytes.min(measurement.span_bytes);
        target.mark_written(measurement.span_start_bytes + written);
    }
}

fn set_cache(workload: &Workload, target: &mut OpenTarget) -> Result<CacheUse, RunError> {
    let mmap = workload.engine == EngineChoice::Fixed(EngineKind::Mmap);
    if mmap && workload.cache == CachePolicy::Direct {
        let used = target.set_cache(CachePolicy::Buffered)?.used;
        let why = Some("a memory mapping always goes through the page cache".to_owned());
        return Ok(CacheUse { asked: CachePolicy::Direct, used, why });
    }
    Ok(target.set_cache(workload.cache)?)
}

fn extent_of(workload: &Workload, limit: u64) -> Extent {
    let start = workload.span.start_bytes.min(limit);
    let length = workload.span.length_bytes.map_or(limit - start, |length| length.min(limit - start));
    Extent { start, length }
}

fn largest_block(workload: &Workload) -> u32 {
    workload.block_mix.iter().map(|share| share.block_bytes).fold(workload.block_bytes, u32::max)
}

fn check_alignment(workload: &Workload, cache: CachePolicy, extent: Extent, target: &OpenTarget) -> Result<(), RunError> {
    if cache != CachePolicy::Direct {
        return Ok(());
    }
    let unit = target.alignment_bytes();
    let stride = if let Access::Stride { stride_bytes } = workload.access { stride_bytes } else { 0 };
    let blocks = workload.block_mix.iter().map(|share| ("block size", u64::from(share.block_bytes)));
    let all = blocks.chain([("block size", u64::from(workload.block_bytes)), ("start of the span", extent.start), ("stride", stride)]);
    for (what, bytes) in all {
        if bytes % u64::from(unit) != 0 {
            let path = target.identity().path.clone();
            return Err(RunError::Alignment { path, workload: workload.name.clone(), what, bytes, unit });
        }
    }
    Ok(())
}

/// When a workload that starts at `start_ns` measures and ends.
pub fn schedule_of(workload: &Workload, start_ns: u64) -> Schedule {
    let measure_ns = start_ns + workload.warmup_ns;
    Schedule { measure_ns, end_ns: workload.stop.time_ns.map_or(u64::MAX / 2, |time| measure_ns.saturating_add(time)) }
}

/// The share of thread `index` of `threads` in the workload's limits.
pub fn allowance_of(workload: &Workload, index: u64, threads: u64) -> Allowance {
    let share = |total: Option<u64>, unit: u64| match total {
        None => u64::MAX / 2,
        // In whole units, the remainder to the first threads.
        Some(total) => (total / unit / threads + u64::from(index < total / unit % threads)) * unit,
    };
    Allowance { ops: share(workload.stop.ops, 1), bytes: share(workload.stop.bytes, u64::from(largest_block(workload))) }
}

/// What follows each write, given the cache mode that holds.
pub fn after_write_of(workload: &Workload, cache: CachePolicy) -> AfterWrite {
    match workload.sync {
        SyncPolicy::Every { writes: 0 | 1, call } => AfterWrite::Sync(call),
        SyncPolicy::Every { writes, call } => AfterWrite::SyncEvery(writes, call),
        SyncPolicy::None | SyncPolicy::AtEnd if cache == CachePolicy::Buffered => AfterWrite::WriteBack,
        SyncPolicy::None | SyncPolicy::AtEnd => AfterWrite::Nothing,
    }
}

/// The threads of a workload.
struct Crew {
    reports: Receiver<Report>,
    starts: Vec<Sender<Start>>,
    stop: Arc<AtomicBool>,
    published: Arc<Mutex<TimeSeries>>,
    features: Vec<String>,
    /// Per target.
    yields: Vec<Vec<Yield>>,
    working: usize,
}

impl Crew {
    fn start(session: &Session, workload: &Workload, targets: &[OpenTarget], prepared: &[Prepared]) -> Result<Self, RunError> {
        let (sender, reports) = channel();
        let mut crew = Self {
            reports,
            starts: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            published: Arc::new(Mutex::new(TimeSeries::new(SERIES_INTERVAL_NS))),
            features: Vec::new(),
            yields: targets.iter().map(|_| Vec::new()).collect(),
            working: 0,
        };
        let workload = Arc::new(workload.clone());
        let pacer = workload.rate.map(|rate| Pacer::new(0, rate));
        for (index, (target, prepared)) in targets.iter().zip(prepared).enumerate() {
            for orders in crew.orders_for(session, &workload, index, prepared, pacer.as_ref()) {
                let (start, started) = channel();
                spawn(orders, target.fd(), started, sender.clone()).map_err(RunError::Thread)?;
                crew.starts.push(start);
                crew.working += 1;
            }
        }
        crew.await_ready(&workload, targets)?;
        Ok(crew)
    }

    fn orders_for(
        &self,
        session: &Session,
        workload: &Arc<Workload>,
        target: usize,
        prepared: &Prepared,
        pacer: Option<&Pacer>,
    ) -> Vec<Orders> {
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
                let mut pattern = Pattern::new(workload, extent, session.seed, stream);
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
                    seed: session.seed,
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

    fn release(&mut self, workload: &Workload) -> Start {
        let at_ns = MonotonicClock.now() + LEAD_NS;
        let start = Start { at_ns, schedule: schedule_of(workload, at_ns) };
        for sender in self.starts.drain(..) {
            // A worker that is gone has reported why.
            let _ = sender.send(start);
        }
        start
    }

    /// Waits for all workers; asks the watcher meanwhile. Returns what the watcher said last.
    fn follow(
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
        let limits =
            [share(elapsed_ns, workload.stop.time_ns), share(total.bytes, workload.stop.bytes), share(total.ops, workload.stop.ops)];
        let done = limits.into_iter().flatten().reduce(f64::max).map(|share| share.min(1.0));
        watch.tick(&Progress { name: &workload.name, phase, elapsed_ns, done, series: &series })
    }
}

fn worker_error(workload: &Workload, target: &OpenTarget, source: io::Error) -> RunError {
    RunError::Worker { path: target.identity().path.clone(), workload: workload.name.clone(), source }
}

/// The sync after the last write: (duration, 0 or errno).
fn final_sync(workload: &Workload, cache: CachePolicy, target: &OpenTarget) -> Option<(u64, i32)> {
    let wanted = workload.sync == SyncPolicy::AtEnd || (cache == CachePolicy::Buffered && workload.writes());
    wanted.then(|| {
        let start = MonotonicClock.now();
        let result = crate::backend::sync::sync(target.fd().as_raw_fd(), SyncCall::Fdatasync);
        (MonotonicClock.now() - start, -result)
    })
}

fn cpu_since(before: CpuTime) -> CpuTime {
    let now = crate::usage::process();
    CpuTime { user_ns: now.user_ns.saturating_sub(before.user_ns), system_ns: now.system_ns.saturating_sub(before.system_ns) }
}

fn scale(cpu: CpuTime, by: f64) -> CpuTime {
    let scaled = |ns: u64| (ns as f64 * by.min(1.0)) as u64;
    CpuTime { user_ns: scaled(cpu.user_ns), system_ns: scaled(cpu.system_ns) }
}

/// Everything about a workload that its workers do not know.
pub struct Closing {
    /// Index of the target.
    pub target: usize,
    /// What was asked.
    pub workload: Workload,
    /// The span that was used.
    pub extent: Extent,
    /// What carried it.
    pub engine: EngineUse,
    /// How the cache was treated.
    pub cache: CacheUse,
    /// End of the warm-up, on the clock.
    pub measure_ns: u64,
    /// Start of the run, on the clock.
    pub origin_ns: u64,
    /// CPU time used.
    pub cpu: CpuTime,
    /// What the counters say; may be filled in later.
    pub device: DeviceUse,
    /// The sync after the last write.
    pub final_sync: Option<(u64, i32)>,
    /// Whether io_uring hands the I/O to worker threads.
    pub punted: Option<bool>,
    /// Unwritten bytes in the span before.
    pub unwritten_bytes: Option<u64>,
    /// What the watcher said last.
    pub told: Control,
}

/// Sums up what the workers of one target brought home.
pub fn assemble(closing: Closing, yields: Vec<Yield>) -> Measurement {
    let Closing { workload, extent, measure_ns, .. } = closing;
    let mut ops: BTreeMap<OpKind, OpMeasurement> = BTreeMap::new();
    let (mut asked, mut zero_blocks, mut late) = (ByteCount::default(), ZeroSample::default(), 0);
    let (mut stop_ns, mut last_ns) = (measure_ns, measure_ns);
    let stopped = stop_reason(&workload, closing.told, &yields);
    let used_up = yields.iter().any(|y| y.ending == Ending::Allowance);
    for part in yields {
        part.ops.into_iter().for_each(|(kind, op)| merge_op(ops.entry(kind).or_default(), op));
        asked.read_bytes += part.asked.read_bytes;
        asked.write_bytes += part.asked.write_bytes;
        zero_blocks.sampled += part.zero_blocks.sampled;
        zero_blocks.zero += part.zero_blocks.zero;
        late += part.late;
        (stop_ns, last_ns) = (stop_ns.max(part.stop_ns), last_ns.max(part.last_ns));
    }
    let busy_ns: u128 = ops.iter().filter(|(kind, _)| **kind != OpKind::Commit).map(|(_, op)| op.latency.sum_ns()).sum();
    // What is in flight when the time is over is waited for, but that wait is not part of the flow.
    let flow_ns = if used_up { stop_ns.max(last_ns) } else { stop_ns } - measure_ns;
    let done: u64 = ops.iter().filter(|(kind, _)| **kind != OpKind::Commit).map(|(_, op)| op.latency.count()).sum();
    let alone = workload.depth * workload.workers == 1 && workload.rate.is_none() && done > 0;
    let dead_time_ns = alone.then(|| ((last_ns - measure_ns) as f64 - busy_ns as f64).max(0.0) / done as f64);
    let wall_ns = flow_ns + closing.final_sync.map_or(0, |(ns, _)| ns);
    if let Some((ns, errno)) = closing.final_sync {
        add_final_sync(&mut ops, flow_ns, ns, errno);
    }
    Measurement {
        target: closing.target,
        span_start_bytes: extent.start,
        span_bytes: extent.length,
        engine: closing.engine,
        cache: closing.cache,
        start_ns: measure_ns - closing.origin_ns,
        wall_ns,
        cpu: closing.cpu,
        ops,
        asked,
        device: closing.device,
        achieved_depth: busy_ns as f64 / flow_ns.max(1) as f64,
        dead_time_ns,
        ceiling_iops: None,
        zero_blocks,
        unwritten_bytes: closing.unwritten_bytes,
        missed_starts: workload.rate.map(|_| late),
        punted: closing.punted,
        verify: None,
        stopped,
        workload,
    }
}

fn merge_op(sum: &mut OpMeasurement, part: OpMeasurement) {
    sum.count += part.count;
    sum.bytes += part.bytes;
    sum.short += part.short;
    part.errors.into_iter().for_each(|(errno, n)| *sum.errors.entry(errno).or_default() += n);
    sum.latency.merge(&part.latency);
    match (&mut sum.latency_intended, part.latency_intended) {
        (Some(mine), Some(theirs)) => mine.merge(&theirs),
        (mine @ None, theirs) => *mine = theirs,
        (Some(_), None) => {}
    }
    sum.series.merge(&part.series);
}

/// The final sync belongs to the writes' time: their series goes on to its end, empty.
fn add_final_sync(ops: &mut BTreeMap<OpKind, OpMeasurement>, flow_ns: u64, sync_ns: u64, errno: i32) {
    if let Some(writes) = ops.get_mut(&OpKind::Write) {
        writes.series.add(flow_ns + sync_ns, &Cell::default(), SERIES_CELLS_MAX);
    }
    let sync = ops.entry(OpKind::Sync).or_default();
    if errno == 0 {
        sync.count += 1;
        sync.latency.record(sync_ns);
        sync.series.add(flow_ns + sync_ns, &Cell { ops: 1, bytes: 0, errors: 0, latency_max_ns: sync_ns }, SERIES_CELLS_MAX);
    } else {
        *sync.errors.entry(crate::tally::errno_name(errno)).or_default() += 1;
    }
}

fn stop_reason(workload: &Workload, told: Control, yields: &[Yield]) -> StopReason {
    let any = |wanted: fn(&Ending) -> bool| yields.iter().any(|y| wanted(&y.ending));
    match told {
        Control::Interrupt => StopReason::Interrupted,
        _ if any(|e| matches!(e, Ending::Errors(_))) => StopReason::Errors,
        _ if any(|e| matches!(e, Ending::Time)) => StopReason::Time,
        Control::Enough if any(|e| matches!(e, Ending::Told)) => StopReason::Precision,
        _ if workload.stop.ops.is_some() && workload.stop.bytes.is_none() => StopReason::Ops,
        _ => StopReason::Bytes,
    }
}
