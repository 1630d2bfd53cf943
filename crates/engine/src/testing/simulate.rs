//! Runs the whole measuring path in virtual time: the same worker, a fake clock, and a disk with a
//! fixed service time. Exact, so that tests compare records and reports to the last digit.

use crate::io::any_backend::write_shift;
use crate::io::buffers::Buffers;
use crate::io::clock::Clock;
use crate::io::{Backend, BlockCall, Extent, Op, RequestSource, WAIT_MAX_NS, WaitMode};
use crate::load::block_calls::BlockCalls;
use crate::load::generator::{GeneratorOptions, RequestGenerator};
use crate::load::group_sync::GroupSync;
use crate::load::pacer::Pacer;
use crate::load::pattern::Pattern;
use crate::load::transaction::{Log, SplitSpan, Transactions};
use crate::lock::lock;
use crate::measure::load_limits::LoadLimits;
use crate::measure::sampler::Sampler;
use crate::measure::worker::{AdvanceOutcome, Worker};
use crate::random::Random;
use crate::run::assemble::{RunContext, assemble, measured_schedule};
use crate::run::limits::{
    after_write_of, budget_of, largest_block, schedule_of, shared_measure_start,
};
use diskproof_model::group::Group;
use diskproof_model::measurement::{
    CacheUse, DeviceUse, EngineUse, Interruption, MeasuredSpan, Measurement, OpKind,
    SERIES_INTERVAL_NS,
};
use diskproof_model::plan::{EngineKind, Workload};
use diskproof_model::progress::{Control, Phase, Progress, Watch};
use diskproof_model::request_log::LOGGED_MAX;
use diskproof_model::series::TimeSeries;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The time of a look at the queue that finds nothing there. Without it a worker that polls would
/// never see time pass.
const LOOK_NS: u64 = 1000;

/// A clock that moves only on request, so that tests are exact.
#[derive(Debug, Clone, Default)]
pub struct FakeClock {
    now_ns: Rc<Cell<u64>>,
    /// The time in which the process does not run; `None` once it was reported.
    interruption: Option<Interruption>,
    /// The time that this clone skips, in nanoseconds.
    skipped_ns: u64,
}

impl FakeClock {
    /// The same clock in a process that is interrupted once.
    pub fn with_interruption(self, interruption: Interruption) -> Self {
        Self {
            interruption: Some(interruption),
            ..self
        }
    }

    /// Moves the time forward to `now_ns`, never back; over the whole interruption, where that
    /// begins before.
    pub fn move_to(&self, now_ns: u64) {
        let before_ns = self.now_ns.get();
        let mut now_ns = (now_ns + self.skipped_ns).max(before_ns);
        if let Some(Interruption {
            start_ns,
            length_ns,
            ..
        }) = self.interruption
            && (before_ns..now_ns).contains(&start_ns)
        {
            now_ns = now_ns.max(start_ns + length_ns);
        }
        self.now_ns.set(now_ns);
    }
}

impl Clock for FakeClock {
    fn now(&self) -> u64 {
        self.now_ns.get() - self.skipped_ns
    }

    fn wait_until(&self, until_ns: u64) {
        self.move_to(until_ns);
    }

    fn interruptions(&mut self, now: u64, since_ns: impl FnOnce() -> u64) -> Vec<Interruption> {
        let found = self
            .interruption
            .take_if(|interruption| interruption.start_ns < now);
        if let Some(Interruption {
            start_ns,
            length_ns,
            ..
        }) = found
        {
            let end_ns = (start_ns + length_ns).min(now);
            self.skipped_ns = end_ns.saturating_sub(start_ns.max(since_ns()));
        }
        found.into_iter().collect()
    }
}

/// A disk that serves `channels` requests at a time.
#[derive(Debug, Clone, Copy)]
pub struct FakeDisk {
    /// Time for one request once it is served.
    pub service_ns: u64,
    /// Random extra time, uniform from 0 to this.
    pub jitter_ns: u64,
    /// Requests served at the same time.
    pub channels: usize,
    /// Its size.
    pub size_bytes: u64,
}

/// The disk as a backend.
#[derive(Debug)]
pub struct FakeBackend {
    disk: FakeDisk,
    clock: FakeClock,
    buffers: Buffers,
    random: Random,
    free_at_ns: Vec<u64>,
    /// The requests as completion time, slot and result, the earliest last.
    in_flight: Vec<(u64, u32, i32)>,
}

impl Backend for FakeBackend {
    fn enqueue(&mut self, source: &mut impl RequestSource) -> io::Result<()> {
        while let Some(request) = source(&mut self.buffers) {
            let extra = if self.disk.jitter_ns == 0 {
                0
            } else {
                self.random.below(self.disk.jitter_ns)
            };
            let Some(channel) = self.free_at_ns.iter_mut().min() else {
                return Ok(());
            };
            *channel = (*channel).max(self.clock.now()) + self.disk.service_ns + extra;
            // These move no data.
            let result = match request.op {
                Op::Call(_) | Op::Sync(_) | Op::SyncRange(_) => 0,
                Op::Read | Op::Write => request.len as i32,
            };
            self.in_flight.push((*channel, request.slot, result));
        }
        self.in_flight.sort_unstable_by(|a, b| b.cmp(a));
        Ok(())
    }

    fn wait(&mut self, patience: WaitMode) -> io::Result<()> {
        let Some((soonest, ..)) = self.in_flight.last() else {
            return Ok(());
        };
        let latest = match patience {
            WaitMode::Completion => self.clock.now() + WAIT_MAX_NS,
            WaitMode::AtMost(ns) => self.clock.now() + ns,
            WaitMode::Poll => self.clock.now() + LOOK_NS,
        };
        self.clock.move_to((*soonest).min(latest));
        Ok(())
    }

    fn reap(&mut self, sink: &mut impl FnMut(u32, i32)) {
        let now = self.clock.now();
        while let Some((_, slot, result)) = self.in_flight.pop_if(|(done_ns, ..)| *done_ns <= now) {
            sink(slot, result);
        }
    }

    fn buffers(&self) -> &Buffers {
        &self.buffers
    }
}

impl FakeBackend {
    fn new(disk: FakeDisk, clock: FakeClock, buffers: Buffers, seed: u64) -> Self {
        Self {
            disk,
            clock,
            buffers,
            random: Random::new(seed, 99),
            free_at_ns: vec![0; disk.channels],
            in_flight: Vec::new(),
        }
    }
}

/// A sampler on a fake disk, in virtual time.
pub type FakeSampler = Sampler<FakeBackend, FakeClock>;

/// A sampler on `disk` for up to `depth` requests in flight of at most `request_bytes` each.
pub fn simulate_sampler(
    disk: FakeDisk,
    depth: u32,
    request_bytes: u32,
    seed: u64,
) -> io::Result<FakeSampler> {
    let clock = FakeClock::default();
    let buffers = Buffers::for_fake_disk(depth as usize, request_bytes as usize)?;
    let backend = FakeBackend::new(disk, clock.clone(), buffers, seed);
    Ok(Sampler::new(backend, clock, depth, seed))
}

/// Runs one workload with one worker on `disk` in virtual time. Calls `watch` every 50 virtual
/// milliseconds, as in a real run.
pub fn simulate(
    workload: &Workload,
    disk: FakeDisk,
    seed: u64,
    watch: &mut dyn Watch,
) -> io::Result<Measurement> {
    simulate_on(&FakeClock::default(), workload, disk, seed, watch)
}

/// Like [`simulate`], on a clock that may be interrupted.
pub fn simulate_on(
    clock: &FakeClock,
    workload: &Workload,
    disk: FakeDisk,
    seed: u64,
    watch: &mut dyn Watch,
) -> io::Result<Measurement> {
    let shift = write_shift(workload, workload.depth);
    let buffers = Buffers::for_fake_disk(
        (workload.depth + shift) as usize,
        largest_block(workload) as usize,
    )?;
    let extent = Extent {
        start: workload.span.start_bytes,
        length: workload.span.length_bytes.unwrap_or(disk.size_bytes),
    };
    let schedule = schedule_of(Group::alone(workload), 0);
    let pacer = Pacer::for_workload(workload, seed);
    let generator = simulated_generator(workload, extent, seed, &pacer, schedule.measure_ns)?
        .with_buffers(shift, seed);
    let stop = Arc::new(AtomicBool::new(false));
    let published = Arc::new(Mutex::new(TimeSeries::new(SERIES_INTERVAL_NS)));
    let mut worker = Worker::new(
        FakeBackend::new(disk, clock.clone(), buffers, seed),
        clock.clone(),
        generator,
        schedule,
        Arc::clone(&stop),
        Arc::clone(&published),
    );
    let measure_start = shared_measure_start(Group::alone(workload), schedule, 1);
    let ends = &workload.shape.ends;
    worker = worker
        .within_limits(LoadLimits::from_ends(
            ends,
            OpKind::Write,
            schedule.start_ns,
            1,
        ))
        .with_measure_start(measure_start.clone())
        .counting_as(ends)
        .logging_requests(&workload.shape, LOGGED_MAX);
    let mut control = Control::Continue;
    let mut next_tick = 0;
    while worker.advance()? == AdvanceOutcome::Running {
        if clock.now() < next_tick || control != Control::Continue {
            continue;
        }
        next_tick = clock.now() + 50_000_000;
        let series = lock(&published).clone();
        control = watch.tick(&progress(workload, clock, schedule.measure_ns, &series));
        stop.store(control != Control::Continue, Ordering::Relaxed);
    }
    let decided_ns = match &measure_start {
        Some(start) => start.start_ns(clock.now()).unwrap_or(start.latest_ns),
        None => schedule.measure_ns,
    };
    let mut results = vec![worker.finish()];
    let decided = schedule.measuring_from(decided_ns);
    let measure_ns = measured_schedule(decided, &mut results).measure_ns;
    let context = RunContext {
        pacer,
        ..RunContext::new(simulated(workload, extent), measure_ns, 0, control)
    };
    Ok(assemble(context, results))
}

/// The requests of a workload on a disk of this extent, measured for so long.
fn simulated_generator(
    workload: &Workload,
    extent: Extent,
    seed: u64,
    pacer: &Option<Pacer>,
    measure_ns: u64,
) -> io::Result<RequestGenerator> {
    let (data, transactions) = simulated_transactions(workload, extent)?;
    let generator = RequestGenerator::new(
        Pattern::new(workload, data, seed, 0),
        workload.depth,
        after_write_of(workload, workload.cache),
        budget_of(workload, 1),
    );
    let target = workload.shape.latency_target;
    Ok(generator.with_options(GeneratorOptions {
        pacer: pacer.clone(),
        measure_ns,
        calls: BlockCalls::for_workload(workload, |_| Some(BlockCall::Discard)),
        overload_ns: workload.shape.ends.overload_ns,
        limit_ns: target.map(|target| target.latency_ns),
        group_sync: GroupSync::for_worker(workload, workload.depth),
        transactions,
        ..GeneratorOptions::default()
    }))
}

/// The blocks that a workload reads and writes, and its transactions, where it has some.
fn simulated_transactions(
    workload: &Workload,
    extent: Extent,
) -> io::Result<(Extent, Option<Transactions>)> {
    let Some(shape) = workload.transaction else {
        return Ok((extent, None));
    };
    let SplitSpan { data, log } =
        Log::split_span(extent, shape).ok_or(io::ErrorKind::InvalidInput)?;
    let (block_bytes, depth) = (workload.block_bytes, workload.depth);
    let transactions = Transactions::new(shape, block_bytes, log, depth);
    Ok((data, Some(transactions)))
}

/// The progress of a workload, as the watcher of a real run sees it.
fn progress<'a>(
    workload: &'a Workload,
    clock: &FakeClock,
    measure_ns: u64,
    series: &'a TimeSeries,
) -> Progress<'a> {
    Progress {
        name: &workload.name,
        phase: if clock.now() < measure_ns {
            Phase::Warmup
        } else {
            Phase::Measure
        },
        elapsed_ns: clock.now(),
        done: None,
        series,
        silence: None,
        resume_bytes: None,
    }
}

/// The measurement of a workload on a simulated disk before its run.
pub(crate) fn simulated(workload: &Workload, extent: Extent) -> Measurement {
    let engine = EngineUse {
        asked: workload.engine,
        used: EngineKind::Null,
        fallbacks: Vec::new(),
        features: Vec::new(),
        depth: None,
        done_before_wait: None,
    };
    let cache = CacheUse {
        asked: workload.cache,
        used: workload.cache,
        why: None,
    };
    Measurement {
        device: DeviceUse {
            unresolved: Some("a simulated disk has no counters".to_owned()),
            ..DeviceUse::default()
        },
        unwritten_bytes: Some(0),
        ..Measurement::unmeasured(
            workload.clone(),
            MeasuredSpan::new(extent.start, extent.length),
            engine,
            cache,
        )
    }
}
