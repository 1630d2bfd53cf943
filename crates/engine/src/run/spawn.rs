//! Starts worker threads. Each makes its own backend (a ring belongs to the thread that made it),
//! reports ready, waits for the common start, and works.
#![allow(unsafe_code)]

use crate::io::aio::AioBackend;
use crate::io::any_backend::write_shift;
use crate::io::buffers::Buffers;
use crate::io::clock::{Clock, MonotonicClock, WorkerClock};
use crate::io::files::TargetFiles;
use crate::io::mmap::MmapBackend;
use crate::io::null::NullBackend;
use crate::io::sync::{SharedSync, SyncBackend, SyncRoute};
use crate::io::uring::UringBackend;
use crate::io::{Backend, Extent, SubmitPolicy};
use crate::load::budget::Budget;
use crate::load::content::ContentWriter;
use crate::load::generator::{GeneratorOptions, RequestGenerator};
use crate::load::group_sync::GroupSync;
use crate::load::holds::{FlowMember, FlowPart, Pauses};
use crate::load::lead::Lead;
use crate::load::pacer::Pacer;
use crate::load::pattern::Pattern;
use crate::load::transaction::Transactions;
use crate::lock::lock;
use crate::measure::load_limits::LoadLimits;
use crate::measure::read_check::ReadCheck;
use crate::measure::result::{SharedSnapshot, WorkerResult};
use crate::measure::turnover::MeasureStart;
use crate::measure::usage;
use crate::measure::worker::{AdvanceOutcome, CacheHandling, Worker, WorkerSchedule};
use crate::random::Random;
use crate::run::error::WorkerPanic;
use crate::run::limits::{after_write_of, largest_block};
use crate::run::prepare::PreparedTarget;
use crate::run::thread::{own_descriptors, schedule_thread};
use diskproof_device::PartOfFile;
use diskproof_model::measurement::CpuTime;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{Access, CachePolicy, EngineKind, SyncPolicy, Workload, WriteFlag};
use diskproof_model::series::TimeSeries;
use diskproof_model::shape::{AccessAdvice, Arrivals, KindRate, ThinkTime};
use rustix::io::ReadWriteFlags;
use rustix::mm::{Advice, ProtFlags};
use std::any::Any;
use std::io;
use std::num::NonZero;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};

/// The buffers of a workload that only trims: the smallest, since trims have no data.
const TRIM_BUFFER_BYTES: u32 = 4096;
/// A worker that starts later than others sleeps for at most this long before it checks whether the
/// run is over. Chosen: as often as the supervisor looks (`CHECK_EVERY`).
const START_CHECK_NS: u64 = 50_000_000;
/// The stack of a worker thread: there may be hundreds of threads, and their buffers are mappings.
/// Chosen, not measured; the default of 2 MiB would be 16 GiB of addresses for 8192 threads.
const STACK_BYTES: usize = 256 << 10;

/// The configuration of one thread.
pub(crate) struct ThreadConfig {
    /// Number of the thread among all of the run; its reports carry it.
    pub number: usize,
    /// The workload on its target, shared by all.
    pub prepared: Arc<PreparedTarget>,
    /// The threads of its workload on its target.
    pub threads: u64,
    /// The part of the target that its steps cover.
    pub pattern: Pattern,
    /// Requests in flight in this thread.
    pub depth: u32,
    /// The budget, shared with the other threads.
    pub budget: Budget,
    /// The schedule of an open loop; its start is set at the common start.
    pub pacer: Option<Pacer>,
    /// The part of a flow that all threads of its workload on its target are.
    pub flow: Option<Arc<FlowPart>>,
    /// The sync that the threads of its worker share, where they do.
    pub shared_sync: Option<Arc<SharedSync>>,
    /// Seed of its data.
    pub seed: u64,
    /// Number of its random numbers, which no other thread of the run has.
    pub random_stream: u64,
    /// The requests that it keeps, where its workload logs them.
    pub logged_max: usize,
    /// Set when the thread must end.
    pub stop: Arc<AtomicBool>,
    /// The series to which the thread adds its counts, for the progress display.
    pub published: Arc<Mutex<TimeSeries>>,
    /// The snapshot that it updates, for the supervisor.
    pub snapshot: SharedSnapshot,
}

impl ThreadConfig {
    /// Threads of each worker: several where the depth comes from threads with one request each.
    fn threads_per_worker(&self) -> u64 {
        (self.threads / u64::from(self.prepared.known.workload.workers).max(1)).max(1)
    }

    /// The place of this thread among those of its worker, from 0.
    fn place_in_worker(&self) -> u64 {
        // The upper half of the number is that of the assignment.
        u64::from(self.random_stream as u32) % self.threads_per_worker()
    }
}

/// The common start of all threads.
pub(crate) struct WorkerStart {
    /// The times of all threads that start together.
    pub schedule: WorkerSchedule,
    /// Decides when the measured time starts, where the schedule does not.
    pub measure_start: Option<Arc<MeasureStart>>,
    /// When the first thread began, on CLOCK_MONOTONIC; [`u64::MAX`] before.
    pub began_ns: Arc<AtomicU64>,
}

/// A message of a worker thread.
pub(crate) enum WorkerReport {
    /// It has its backend and waits for the start.
    Ready {
        /// The active features of its backend, for the record.
        features: Vec<String>,
    },
    /// It is done.
    Done {
        /// [`ThreadConfig::number`].
        thread: usize,
        result: Box<WorkerResult>,
        /// Its CPU time since the start.
        cpu: CpuTime,
    },
    /// It stopped with an error.
    Failed {
        /// [`ThreadConfig::number`].
        thread: usize,
        error: io::Error,
    },
}

/// The open files of a thread, which must stay open until it has reported ready.
#[derive(Clone)]
pub(crate) struct WorkerFiles<'a> {
    /// Descriptors of the target, of which there is one at least.
    pub target: Vec<BorrowedFd<'a>>,
    /// The part of each of several files that belongs to the target.
    pub part: Option<PartOfFile>,
    /// The descriptions that it syncs, one for each of those, where they are others.
    pub synced: Vec<BorrowedFd<'a>>,
    /// The description that has the claim on a device, for its trims.
    pub claim: Option<BorrowedFd<'a>>,
}

impl WorkerFiles<'_> {
    /// Drops the claim where it is the description of the target itself, because the thread owns
    /// each of its descriptors once.
    pub(crate) fn drop_own_claim(&mut self) {
        if let Some(claim) = self.claim {
            let is_target = |file: &BorrowedFd<'_>| file.as_raw_fd() == claim.as_raw_fd();
            if self.target.iter().any(is_target) {
                self.claim = None;
            }
        }
    }
}

/// Starts one thread. A thread that panics has failed: otherwise the supervisor would wait for
/// ever, or take the results of the others for all of them.
pub(crate) fn spawn(
    config: ThreadConfig,
    files: &WorkerFiles<'_>,
    start: Receiver<WorkerStart>,
    reports: Sender<WorkerReport>,
) -> io::Result<()> {
    let part = files.part.unwrap_or_default();
    let own_files = files.target.len();
    let has_claim = files.claim.is_some();
    let numbers: Vec<RawFd> = files
        .target
        .iter()
        .chain(&files.synced)
        .chain(&files.claim)
        .map(|file| file.as_raw_fd())
        .collect();
    std::thread::Builder::new()
        .name(format!("diskproof-{}", config.random_stream))
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let thread = config.number;
            // Shared data is a number, or behind a lock that recovers from a panic (crate::lock).
            let worked = catch_unwind(AssertUnwindSafe(|| {
                let mut own = own_descriptors(&numbers)?;
                let mut synced = own.split_off(own_files.min(own.len()));
                let claim = if has_claim { synced.pop() } else { None };
                let others = OtherDescriptions { synced, claim };
                let further = own.split_off(1.min(own.len()));
                let first = own.pop().ok_or(io::ErrorKind::NotFound)?;
                let files = TargetFiles::several(first, further, part);
                work(config, files, others, &start, &reports)
            }));
            let report = match worked.unwrap_or_else(|panic| Err(panic_error(&*panic))) {
                Ok((result, cpu)) => WorkerReport::Done {
                    thread,
                    result: Box::new(result),
                    cpu,
                },
                Err(error) => WorkerReport::Failed { thread, error },
            };
            // The receiver is gone when the run has timed out.
            let _ = reports.send(report);
        })?;
    Ok(())
}

/// The error of a thread that panicked.
fn panic_error(panic: &(dyn Any + Send)) -> io::Error {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    io::Error::other(WorkerPanic(text.unwrap_or("without a message").to_owned()))
}

/// The descriptions of a thread besides those that it reads and writes.
struct OtherDescriptions {
    synced: Vec<OwnedFd>,
    claim: Option<OwnedFd>,
}

/// Schedules the thread, makes its backend, and works with it until the worker is done.
fn work(
    config: ThreadConfig,
    files: TargetFiles,
    others: OtherDescriptions,
    start: &Receiver<WorkerStart>,
    reports: &Sender<WorkerReport>,
) -> io::Result<(WorkerResult, CpuTime)> {
    let known = &config.prepared.known;
    let (workload, cache, depth) = (&known.workload, known.cache.used, config.depth);
    if let Some(scheduling) = &workload.shape.threads.scheduling {
        schedule_thread(scheduling)?;
    }
    let shift = write_shift(workload, depth);
    let buffers = filled_buffers(&config, depth + shift)?;
    let submission = SubmitPolicy::for_access(&workload.access, cache);
    match known.engine.used {
        EngineKind::Uring => {
            let backend = UringBackend::new(files, buffers, depth, cache, submission)?;
            run_worker(config, backend, start, reports)
        }
        EngineKind::Aio => {
            let backend = AioBackend::new(files, buffers, depth, submission.in_aio(cache))?;
            run_worker(config, backend, start, reports)
        }
        EngineKind::Sync => {
            let sync_route = match &config.shared_sync {
                _ if !others.synced.is_empty() => SyncRoute::Other(others.synced),
                Some(shared) => SyncRoute::Shared(Arc::clone(shared)),
                None => SyncRoute::Own,
            };
            let rwf_dsync = SyncPolicy::WithWrite {
                flag: WriteFlag::RwfDsync,
            };
            let write_flags = if workload.sync == rwf_dsync {
                ReadWriteFlags::DSYNC
            } else {
                ReadWriteFlags::empty()
            };
            let mut backend = SyncBackend::new(files, buffers);
            (backend.write_flags, backend.sync_route) = (write_flags, sync_route);
            backend.claim = others.claim;
            run_worker(config, backend, start, reports)
        }
        EngineKind::Mmap => {
            let protection = if workload.writes() {
                ProtFlags::READ | ProtFlags::WRITE
            } else {
                ProtFlags::READ
            };
            // As in fio, advice to a mapping follows the order of the workload, or there is none.
            let advice = match workload.shape.threads.advice {
                Some(AccessAdvice::Normal) => Advice::Normal,
                _ if matches!(workload.access, Access::Sequential) => Advice::Sequential,
                _ => Advice::Random,
            };
            // The whole span, also where this thread has a part of it.
            let length = config.prepared.extent.end();
            let backend = MmapBackend::new(files, buffers, length, protection, advice)?;
            run_worker(config, backend, start, reports)
        }
        EngineKind::Null => {
            let backend = NullBackend::new(buffers, depth as usize);
            run_worker(config, backend, start, reports)
        }
    }
}

/// The kind of operation that stands for the writes of a workload: the last of each step.
fn kind_of_writes(workload: &Workload) -> OpKind {
    let mut last = OpKind::Write;
    for kind in workload.streams.iter().flat_map(|stream| &stream.does) {
        if kind.changes_blocks() {
            last = *kind;
        }
    }
    last
}

/// Buffers with the data of the first writes.
fn filled_buffers(config: &ThreadConfig, slots: u32) -> io::Result<Buffers> {
    let workload = &config.prepared.known.workload;
    // Nothing is read into those of trims.
    let largest = if workload.leaves_no_content() {
        TRIM_BUFFER_BYTES
    } else {
        largest_block(workload)
    };
    let mut buffers = if workload.shape.threads.ordinary_pages {
        Buffers::in_ordinary_pages(slots as usize, largest as usize)?
    } else {
        Buffers::new(slots as usize, largest as usize)?
    };
    buffers.fill_random(&mut Random::new(config.seed, !config.random_stream));
    if let Some(mut content) = content_of(config) {
        content.fill_all(&mut buffers, slots as usize);
    }
    Ok(buffers)
}

/// Makes the data of writes, where it is not new random data.
fn content_of(config: &ThreadConfig) -> Option<ContentWriter> {
    let content = config
        .prepared
        .known
        .workload
        .shape
        .content
        .written
        .clone()?;
    Some(ContentWriter::new(
        content,
        config.seed,
        config.random_stream,
    ))
}

/// The transactions of a worker, where its steps are such.
fn transactions_of(config: &ThreadConfig) -> Option<Transactions> {
    let workload = &config.prepared.known.workload;
    let log = config.prepared.transaction_span.clone()?.log;
    let shape = workload.transaction?;
    Some(Transactions::new(
        shape,
        workload.block_bytes,
        log,
        config.depth,
    ))
}

/// The options of a worker's generator.
fn options_of(config: &ThreadConfig, schedule: WorkerSchedule) -> GeneratorOptions {
    let workload = &config.prepared.known.workload;
    GeneratorOptions {
        pacer: config
            .pacer
            .as_ref()
            .map(|pacer| pacer.clone().starting_at(schedule.start_ns)),
        kind_pacer: kind_pacer(config, schedule),
        measure_ns: schedule.measure_ns,
        journal: config.prepared.journal.clone(),
        pauses: pauses_of(config, schedule),
        writes_unsynced: writes_unsynced(config),
        content: content_of(config),
        lead: lead_of(config),
        flow: config.flow.clone().map(FlowMember::new),
        calls: config.prepared.calls.clone(),
        overload_ns: workload.shape.ends.overload_ns,
        limit_ns: workload
            .shape
            .latency_target
            .map(|target| target.latency_ns),
        transactions: transactions_of(config),
        group_sync: GroupSync::for_worker(workload, config.depth),
        ..GeneratorOptions::default()
    }
}

/// The pauses of a thread, which go on where the slices before have left them. The threads are
/// assumed to have started equally many requests.
fn pauses_of(config: &ThreadConfig, schedule: WorkerSchedule) -> Option<Pauses> {
    let think = config.prepared.known.workload.shape.starts.think?;
    let earlier = &config.prepared.earlier;
    let requests = earlier.requests / config.threads;
    let own_think = think_of_thread(think, config.threads_per_worker());
    let pauses = Pauses::new(own_think, schedule.start_ns).after(requests, earlier.ran_ns);
    match config.place_in_worker() {
        0 => Some(pauses),
        // They take turns where a pause is longer for each of them.
        place if own_think.pause_ns > think.pause_ns => {
            let turn_ns = place.saturating_mul(think.pause_ns);
            Some(pauses.held_until(schedule.start_ns.saturating_add(turn_ns)))
        }
        _ => Some(pauses),
    }
}

/// The pauses of each thread of a worker, so that all of them together start as much as the worker
/// would: each pauses after its share of the operations, or for longer.
fn think_of_thread(worker: ThinkTime, threads: u64) -> ThinkTime {
    let mut own = worker;
    if worker.pause_ops.is_multiple_of(threads) {
        own.pause_ops /= threads;
    } else if worker.busy_ns.is_none() {
        own.pause_ns = worker.pause_ns.saturating_mul(threads);
    }
    own
}

/// The writes of a worker since the last sync in the slices before, where one follows several of
/// them.
fn writes_unsynced(config: &ThreadConfig) -> u32 {
    match config.prepared.known.workload.sync {
        SyncPolicy::Every { writes, .. } if writes > 1 => {
            let own_writes = config.prepared.earlier.writes / config.threads;
            (own_writes % u64::from(writes)) as u32
        }
        _ => 0,
    }
}

/// The schedule of one kind of a thread's operations, where that alone has a rate. Each thread has
/// its share of it, and chance of its own.
fn kind_pacer(config: &ThreadConfig, schedule: WorkerSchedule) -> Option<(OpKind, Pacer)> {
    let starts = &config.prepared.known.workload.shape.starts;
    let KindRate { kind, per_second } = starts.kind_rate?;
    let rate = per_second / config.threads as f64;
    let seed = config.seed ^ config.random_stream;
    // The threads of a worker take turns at its even starts.
    let turn_ns = match starts.arrivals {
        Arrivals::Even => {
            let workers = config.threads / config.threads_per_worker();
            config.place_in_worker() as f64 * workers as f64 * 1e9 / per_second
        }
        Arrivals::Poisson => 0.0,
    };
    let start_ns = schedule.start_ns.saturating_add(turn_ns as u64);
    Some((kind, Pacer::new(start_ns, rate, starts.arrivals, seed)))
}

/// The time between a worker's waking up and a start.
fn lead_of(config: &ThreadConfig) -> Lead {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    Lead::for_worker(config.depth, processors)
}

/// The end of a wait for a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartWait {
    /// The start is here, by the clock and by its reference.
    Begun,
    /// The run ended before.
    Stopped,
}

/// Waits for the start, which may be long after that of the others; ends early with the run. The
/// clock is compared with its reference at every look: without that, a rate that is wrong by some
/// millionths lets a thread begin before an instant that is minutes away.
fn wait_for_start<C: Clock>(
    clock: &mut C,
    start_ns: u64,
    stop: &AtomicBool,
    snapshot: &SharedSnapshot,
) -> StartWait {
    loop {
        let read_ns = clock.now();
        clock.anchor(read_ns);
        let now_ns = clock.now();
        if now_ns >= start_ns {
            // The counter may be some nanoseconds ahead of its reference, which others see.
            clock.spin_until(start_ns);
            return StartWait::Begun;
        }
        if stop.load(Ordering::Relaxed) {
            return StartWait::Stopped;
        }
        clock.wait_until(start_ns.min(now_ns + START_CHECK_NS));
        // Otherwise the supervisor takes the silence for a hang.
        lock(snapshot).rolled_ns = clock.now();
    }
}

/// The treatment of the page cache by a worker.
fn cache_handling(workload: &Workload, cache: CachePolicy, extent: Extent) -> CacheHandling {
    match cache {
        CachePolicy::Buffered if workload.writes_partial_blocks(cache) => CacheHandling::Keep,
        CachePolicy::Buffered => CacheHandling::Drop,
        CachePolicy::Cached if workload.drops_cache_first => CacheHandling::DropEachLap(extent),
        CachePolicy::Cached | CachePolicy::Direct => CacheHandling::Keep,
    }
}

/// The check of the blocks that a worker reads, where they are checked.
fn read_check_of(prepared: &PreparedTarget) -> Option<ReadCheck> {
    let workload = &prepared.known.workload;
    if !workload.checks_reads() || prepared.known.engine.used == EngineKind::Null {
        return None;
    }
    let check = ReadCheck::new(workload.shape.content.known.clone());
    Some(check.ending_as(&workload.shape.ends))
}

/// The kernel may let a thread sleep 50 µs longer, to wake several at once (PR_SET_TIMERSLACK in
/// prctl(2)); scheduled starts need more precision.
fn wake_up_exactly() {
    // SAFETY: concerns the calling thread's timers only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// The error of a thread whose supervisor is gone before the common start.
const ENDED_EARLY: &str = "the run ended before it started";

/// Reports ready with this backend, waits for the start, and works until the worker is done.
fn run_worker<B: Backend>(
    config: ThreadConfig,
    backend: B,
    start: &Receiver<WorkerStart>,
    reports: &Sender<WorkerReport>,
) -> io::Result<(WorkerResult, CpuTime)> {
    reports
        .send(WorkerReport::Ready {
            features: backend.features(),
        })
        .map_err(|_| io::Error::other(ENDED_EARLY))?;
    // Made before the start is known, so that the clock notices every interruption from then on.
    let mut clock = WorkerClock::new();
    let common = start.recv().map_err(|_| io::Error::other(ENDED_EARLY))?;
    let schedule = common.schedule;
    lock(&config.snapshot).thread = Some(rustix::thread::gettid().as_raw_nonzero().get());
    let before = usage::thread();
    let PreparedTarget { known, extent, .. } = &*config.prepared;
    let (workload, cache) = (&known.workload, known.cache.used);
    if config.pacer.is_some() {
        wake_up_exactly();
    }
    let options = options_of(&config, schedule);
    let threads_per_worker = config.threads_per_worker();
    let generator = RequestGenerator::new(
        config.pattern,
        config.depth,
        after_write_of(workload, cache),
        config.budget,
    )
    .with_options(options)
    .with_buffers(
        write_shift(workload, config.depth),
        config.seed ^ (config.random_stream << 48),
    );
    let read_check = read_check_of(&config.prepared);
    let limits = LoadLimits::from_ends(
        &workload.shape.ends,
        kind_of_writes(workload),
        schedule.start_ns,
        threads_per_worker,
    );
    let waited = wait_for_start(
        &mut clock,
        schedule.start_ns,
        &config.stop,
        &config.snapshot,
    );
    if waited == StartWait::Begun {
        let now_ns = MonotonicClock.now();
        common.began_ns.fetch_min(now_ns, Ordering::Relaxed);
    }
    let mut worker = Worker::new(
        backend,
        clock,
        generator,
        schedule,
        config.stop,
        config.published,
    )
    .cache_handling(cache_handling(workload, cache, *extent))
    .checking_reads(read_check)
    .counting_as(&workload.shape.ends)
    .logging_requests(&workload.shape, config.logged_max)
    .within_limits(limits)
    .with_measure_start(common.measure_start);
    worker.snapshot = config.snapshot;
    if waited == StartWait::Stopped {
        worker.end_before_start();
    }
    while worker.advance()? == AdvanceOutcome::Running {}
    let done = worker.finish();
    Ok((done, usage::thread_since(before)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::shape::ThinkCount;

    /// A counter that gains one part in a hundred until it is compared with its reference.
    #[derive(Debug, Clone, Default)]
    struct FastCounter {
        reference_ns: std::rc::Rc<std::cell::Cell<u64>>,
        anchored_ns: u64,
    }

    impl Clock for FastCounter {
        fn now(&self) -> u64 {
            let reference_ns = self.reference_ns.get();
            reference_ns + (reference_ns - self.anchored_ns) / 100
        }

        fn wait_until(&self, until_ns: u64) {
            self.reference_ns.set(self.reference_ns.get().max(until_ns));
        }

        fn anchor(&mut self, now: u64) -> u64 {
            self.anchored_ns = self.reference_ns.get();
            now
        }
    }

    #[test]
    fn worker_never_begins_before_its_instant() {
        const SECOND: u64 = 1_000_000_000;
        let stop = AtomicBool::new(false);
        for start_ns in [10, SECOND, 30 * SECOND, 30 * SECOND + 17] {
            let mut clock = FastCounter::default();
            let reference_ns = std::rc::Rc::clone(&clock.reference_ns);
            let waited = wait_for_start(&mut clock, start_ns, &stop, &SharedSnapshot::default());
            assert_eq!((waited, reference_ns.get()), (StartWait::Begun, start_ns));
        }
        // A run that was told to end before the start never begins.
        let mut clock = FastCounter::default();
        stop.store(true, Ordering::Relaxed);
        let waited = wait_for_start(&mut clock, SECOND, &stop, &SharedSnapshot::default());
        assert_eq!(waited, StartWait::Stopped);
    }

    #[test]
    fn threads_of_a_worker_pause_as_it_would() {
        for (pause_ops, threads, own_ops, own_ms) in [
            (1, 1, 1, 10),
            (1, 16, 1, 160),
            (32, 16, 2, 10),
            (10, 4, 10, 40),
            (0, 4, 0, 10),
        ] {
            let think = ThinkTime {
                pause_ns: 10_000_000,
                pause_ops,
                counted: ThinkCount::Started,
                busy_ns: None,
            };
            let own = think_of_thread(think, threads);
            let expected = (own_ops, own_ms * 1_000_000);
            assert_eq!((own.pause_ops, own.pause_ns), expected, "{pause_ops}");
        }
    }

    #[test]
    fn worker_panic_becomes_run_error() {
        let number = |text: &str| text.parse::<u32>().map_err(io::Error::other);
        let panic = catch_unwind(|| panic!("slot {} is not there", number("9").unwrap()));
        let source = panic_error(&*panic.unwrap_err());
        let said = source.to_string();
        assert!(
            source
                .get_ref()
                .is_some_and(|inner| inner.is::<WorkerPanic>())
        );
        assert!(said.contains("slot 9"), "{said}");
    }
}
