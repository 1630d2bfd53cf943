//! The hot loop in virtual time, on disks that complete in full, short, late, with errors or not
//! yet.

use super::*;
use crate::io::buffers::Buffers;
use crate::io::{Op, Request, RequestSource};
use crate::load::budget::{Budget, SharedBudget};
use crate::load::generator::GeneratorOptions;
use crate::load::group_sync::GroupSync;
use crate::load::pattern::Pattern;
use crate::random::Random;
use crate::testing::loads::{UNIFORM, extent, requests, schedule};
use crate::testing::simulate::{FakeClock, FakeDisk, simulate};
use diskproof_model::measurement::{Interruption, InterruptionKind};
use diskproof_model::plan::{Access, SyncCall, SyncPolicy};
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::shape::{FloorUnit, RateFloor};
use diskproof_model::stream::Streams;
use proptest::prelude::*;

const BLOCK: u32 = 4096;
const DEPTH: u32 = 4;

/// Completes each request after a microsecond; notes where the page cache was dropped.
struct Prompt {
    buffers: Buffers,
    clock: FakeClock,
    waiting: Vec<Request>,
    /// The result of a request, whose number counts from 1.
    answer: fn(u64, &Request) -> i32,
    asked: u64,
    full: u64,
    short: u64,
    failed: u64,
    is_exhausted: u64,
    /// Waits with a slot free.
    thin_waits: u64,
    dropped_after: Vec<(u64, Option<Extent>)>,
}

impl Prompt {
    fn new(depth: u32, answer: fn(u64, &Request) -> i32) -> Self {
        Self {
            buffers: Buffers::new(depth as usize, BLOCK as usize).unwrap(),
            clock: FakeClock::default(),
            waiting: Vec::new(),
            answer,
            asked: 0,
            full: 0,
            short: 0,
            failed: 0,
            is_exhausted: 0,
            thin_waits: 0,
            dropped_after: Vec::new(),
        }
    }
}

/// In full, short, with an error, and with the end of the file, in turn.
fn moody(number: u64, request: &Request) -> i32 {
    match number % 17 {
        3 | 4 if request.len == BLOCK => BLOCK as i32 / 4,
        7 => -libc::EIO,
        11 => 0,
        _ => request.len as i32,
    }
}

impl Backend for &mut Prompt {
    fn enqueue(&mut self, source: &mut impl RequestSource) -> io::Result<()> {
        while let Some(request) = source(&mut self.buffers) {
            self.waiting.push(request);
        }
        Ok(())
    }

    fn wait(&mut self, _patience: WaitMode) -> io::Result<()> {
        self.thin_waits += u64::from(self.waiting.len() < DEPTH as usize);
        self.clock.move_to(self.clock.now() + 1000);
        Ok(())
    }

    fn reap(&mut self, sink: &mut impl FnMut(u32, i32)) {
        for request in std::mem::take(&mut self.waiting) {
            self.asked += 1;
            let result = (self.answer)(self.asked, &request);
            *match result {
                0 => &mut self.is_exhausted,
                ..0 => &mut self.failed,
                _ if result as u32 == request.len => &mut self.full,
                _ => &mut self.short,
            } += 1;
            sink(request.slot, result);
        }
    }

    fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    fn drop_cache(&mut self, extent: Option<Extent>) {
        let begun = self.asked + self.waiting.len() as u64;
        self.dropped_after.push((begun, extent));
    }
}

struct Patient;

impl Watch for Patient {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        Control::Continue
    }
}

/// With one request in each cell, a floor is checked in the cell of the last one.
#[test]
fn cell_that_reaches_a_limit_is_part_of_the_measured_time() {
    let disk = FakeDisk {
        service_ns: 50_000_000,
        jitter_ns: 0,
        channels: 1,
        size_bytes: 1 << 30,
    };
    let mut workload = reads(1, UNIFORM);
    workload.stop.time_ns = Some(20_000_000_000);
    workload.shape.ends.rate_floors = vec![RateFloor {
        of_writes: false,
        floor: 100.0,
        unit: FloorUnit::Ops,
        over_ns: 1_000_000_000,
    }];
    let measured = simulate(&workload, disk, 1, &mut Patient).unwrap();
    assert!(measured.wall_ns < 5_000_000_000, "{}", measured.wall_ns);
    let op = &measured.ops[&OpKind::Read];
    // A request each 50 ms. The one whose end shows the time comes after the measured time.
    assert_eq!(op.count, measured.wall_ns / 50_000_000 - 1);
}

fn reads(depth: u32, access: Access) -> Workload {
    Workload {
        streams: Streams::with_reads(1000),
        access,
        block_bytes: BLOCK,
        depth,
        ..Workload::named("reads")
    }
}

/// What a worker found out by its end, and what it published.
fn finish<B: Backend, C: Clock>(mut worker: Worker<B, C>) -> (WorkerResult, TimeSeries) {
    let published = Arc::clone(&worker.published);
    while worker.advance().unwrap() == AdvanceOutcome::Running {}
    (worker.finish(), lock(&published).clone())
}

fn series() -> Arc<Mutex<TimeSeries>> {
    Arc::new(Mutex::new(TimeSeries::new(SERIES_INTERVAL_NS)))
}

/// Plain reads from a faulty disk; the disk afterwards, and the worker's result.
fn read_moodily<C: Clock>(
    budget: Budget,
    schedule: WorkerSchedule,
    clock_of: impl FnOnce(FakeClock) -> C,
) -> (Prompt, WorkerResult) {
    let generator = requests(&reads(DEPTH, UNIFORM), extent(0, 1 << 30), budget);
    let mut disk = Prompt::new(DEPTH, moody);
    let (clock, stop) = (clock_of(disk.clock.clone()), Arc::default());
    let worker = Worker::new(&mut disk, clock, generator, schedule, stop, series());
    let (home, _) = finish(worker);
    (disk, home)
}

#[test]
fn worker_drops_the_page_cache_with_the_first_step_of_each_lap() {
    for access in [UNIFORM, Access::Sequential, Access::Backward] {
        let mut workload = reads(1, access);
        workload.shape.order.each_block_once = true;
        let extent = extent(0, 50 * u64::from(BLOCK));
        let generator = requests(&workload, extent, Budget::with_steps(150));
        let mut disk = Prompt::new(1, |_, request| request.len as i32);
        let (clock, times) = (disk.clock.clone(), schedule(0, u64::MAX / 2));
        let worker = Worker::new(&mut disk, clock, generator, times, Arc::default(), series());
        finish(worker.cache_handling(CacheHandling::DropEachLap(extent)));
        let expected = [(51, Some(extent)), (101, Some(extent))];
        assert_eq!(disk.dropped_after, expected, "{:?}", workload.access);
    }
}

/// Every third sync fails; the rest is in full.
fn every_third_sync_fails(number: u64, request: &Request) -> i32 {
    match request.op {
        Op::Sync(_) if number.is_multiple_of(15) => -libc::EIO,
        Op::Sync(_) => 0,
        _ => request.len as i32,
    }
}

#[test]
fn failed_sync_of_a_group_fails_every_commit_that_it_served() {
    let workload = Workload {
        streams: Streams::with_reads(0),
        sync: SyncPolicy::Shared {
            call: SyncCall::Fdatasync,
        },
        ..reads(DEPTH, UNIFORM)
    };
    let writes = 3000;
    let group_sync = GroupSync::for_worker(&workload, DEPTH);
    let pattern = Pattern::new(&workload, extent(0, 1 << 30), 1, 0);
    let after_write = AfterWrite::Sync(SyncCall::Fdatasync);
    let budget = Budget::with_steps(writes);
    let generator =
        RequestGenerator::new(pattern, DEPTH, after_write, budget).with_options(GeneratorOptions {
            group_sync,
            ..GeneratorOptions::default()
        });
    let mut disk = Prompt::new(DEPTH, every_third_sync_fails);
    let (clock, times) = (disk.clock.clone(), schedule(0, u64::MAX / 2));
    let worker = Worker::new(&mut disk, clock, generator, times, Arc::default(), series());
    let (found, _) = finish(worker);
    // Four writes, and one sync for them.
    let syncs = writes / u64::from(DEPTH);
    assert_eq!(disk.asked, writes + syncs);
    assert_eq!(disk.failed, syncs / 3);
    let failed = disk.failed * u64::from(DEPTH);
    assert_eq!(found.ops[&OpKind::Sync].errors["EIO"], failed);
    let commits = found.ops[&OpKind::Commit].latency.count();
    assert_eq!(commits, writes - failed);
}

/// Stands on the run queue a tenth of all time, in turns of a microsecond.
#[derive(Clone)]
struct Contended(FakeClock);

impl Clock for Contended {
    fn now(&self) -> u64 {
        self.0.now()
    }

    fn wait_until(&self, until_ns: u64) {
        self.0.wait_until(until_ns);
    }

    fn processor_wait(&self) -> ProcessorWait {
        ProcessorWait {
            ns: self.now() / 10,
            turns: self.now() / 10_000,
        }
    }
}

#[test]
fn processor_wait_counts_from_the_end_of_the_warm_up() {
    let times = schedule(20_000_000, 60_000_000);
    let (_, home) = read_moodily(Budget::with_steps(1_000_000), times, Contended);
    assert_eq!(home.processor_wait.ns, 4_000_000);
    assert_eq!(home.processor_wait.turns, 4_000);
}

#[test]
fn plain_reads_handle_short_and_failed_reads() {
    let times = schedule(0, 35_000_000);
    let (disk, home) = read_moodily(Budget::with_steps(1_000_000), times, |clock| clock);
    let read = &home.ops[&OpKind::Read];
    assert!(disk.asked > 100_000);
    assert!(disk.short > 1000 && disk.failed > 1000 && disk.is_exhausted > 1000);
    assert_eq!(read.latency.count(), disk.full);
    assert_eq!(read.short, disk.short);
    assert_eq!(read.errors.len(), 2);
    assert_eq!(read.errors["EIO"], disk.failed);
    assert_eq!(read.errors["EOF"], disk.is_exhausted);
    // A remainder is requested a microsecond later, and the whole counts from the first request.
    assert_eq!((read.latency.min_ns(), read.latency.max_ns()), (1000, 2000));
    assert_eq!(home.ending, EndReason::Time);
}

#[test]
fn plain_reads_continue_with_the_next_portion_without_a_gap() {
    // It uses the budget of all three workers, as the others do nothing.
    let budget = Budget {
        steps: Some(SharedBudget::new(100_003, 3)),
        ..Budget::default()
    };
    let (disk, home) = read_moodily(budget, schedule(0, u64::MAX), |clock| clock);
    assert_eq!(disk.full + disk.failed + disk.is_exhausted, 100_003);
    assert_eq!(home.ending, EndReason::Budget);
    // The queue was full at each wait but the last, or the last two where a remainder was
    // requested.
    assert!(disk.thin_waits <= 2, "{}", disk.thin_waits);
    // The first of a portion starts now, not when the last began.
    let latency = &home.ops[&OpKind::Read].latency;
    assert_eq!((latency.min_ns(), latency.max_ns()), (1000, 2000));
}

/// Completes each request after a random time, mostly in full.
#[derive(Debug, Clone)]
struct Whim {
    service_ns: u64,
    jitter_ns: u64,
    /// Of a thousand completions: short, failed, at the end of the file.
    odd_permille: [u64; 3],
    /// Of a thousand waits: those that last for `nap_ns` at most, mostly without a completion.
    interrupted_permille: u64,
    nap_ns: u64,
    /// The largest number of requests taken at a time, as by a kernel with a full completion queue.
    takes: usize,
    /// The worker is stopped.
    told_ns: u64,
    seed: u64,
}

struct Whimsical {
    whim: Whim,
    buffers: Buffers,
    clock: FakeClock,
    random: Random,
    stop: Arc<AtomicBool>,
    /// Completion time, number, slot and result; the earliest last.
    in_flight: Vec<(u64, usize, u32, i32)>,
    /// Where each request began, and its length.
    asked: Vec<(u64, u32)>,
}

impl Whimsical {
    fn new(whim: &Whim, depth: u32) -> Self {
        Self {
            whim: whim.clone(),
            buffers: Buffers::new(depth as usize, BLOCK as usize).unwrap(),
            clock: FakeClock::default(),
            random: Random::new(whim.seed, 1),
            stop: Arc::default(),
            in_flight: Vec::new(),
            asked: Vec::new(),
        }
    }

    fn answer(&mut self, request: &Request) -> i32 {
        let [short, failed, is_exhausted] = self.whim.odd_permille;
        match self.random.below(1000) {
            drawn if drawn < short && request.len > 512 => {
                (1 + self.random.below(u64::from(request.len) / 512 - 1)) as i32 * 512
            }
            drawn if (short..short + failed).contains(&drawn) => -libc::EIO,
            drawn if (short + failed..short + failed + is_exhausted).contains(&drawn) => 0,
            _ => request.len as i32,
        }
    }
}

impl Backend for &mut Whimsical {
    fn enqueue(&mut self, source: &mut impl RequestSource) -> io::Result<()> {
        while self.in_flight.len() < self.whim.takes
            && let Some(request) = source(&mut self.buffers)
        {
            let result = self.answer(&request);
            let late_ns = self.random.below(self.whim.jitter_ns + 1);
            let done_ns = self.clock.now() + self.whim.service_ns + late_ns;
            let number = self.asked.len();
            self.in_flight.push((done_ns, number, request.slot, result));
            self.asked.push((request.offset, request.len));
        }
        self.in_flight.sort_unstable_by(|a, b| b.cmp(a));
        Ok(())
    }

    fn wait(&mut self, _patience: WaitMode) -> io::Result<()> {
        let now = self.clock.now();
        let until = match self.in_flight.last() {
            Some((soonest, ..)) if self.random.below(1000) >= self.whim.interrupted_permille => {
                *soonest
            }
            _ => now + self.whim.nap_ns,
        };
        self.clock.move_to(until);
        let is_told = self.clock.now() >= self.whim.told_ns;
        self.stop.store(is_told, Ordering::Relaxed);
        Ok(())
    }

    fn reap(&mut self, sink: &mut impl FnMut(u32, i32)) {
        let now = self.clock.now();
        while let Some((.., slot, result)) = self.in_flight.pop_if(|(done_ns, ..)| *done_ns <= now)
        {
            sink(slot, result);
        }
    }

    fn buffers(&self) -> &Buffers {
        &self.buffers
    }
}

/// Whether plain reads have their own loop.
#[derive(Debug, Clone, Copy)]
enum ReadLoop {
    UniformReads,
    General,
}

/// Everything observable of a worker's reads: the requests, the result except for the sampled
/// zeros, and the published series.
fn seen(
    by: ReadLoop,
    whim: &Whim,
    depth: u32,
    steps: Option<u64>,
    schedule: WorkerSchedule,
) -> (Vec<(u64, u32)>, String, TimeSeries) {
    let pattern = Pattern::new(&reads(depth, UNIFORM), extent(0, 1 << 30), whim.seed, 0);
    let budget = Budget {
        steps: steps.map(|steps| SharedBudget::new(steps, 3)),
        ..Budget::default()
    };
    let generator = RequestGenerator::new(pattern, depth, AfterWrite::Nothing, budget);
    let generator = match by {
        ReadLoop::General => generator.without_batches(),
        ReadLoop::UniformReads => generator,
    };
    let mut disk = Whimsical::new(whim, depth);
    let (clock, stop) = (disk.clock.clone(), Arc::clone(&disk.stop));
    let worker = Worker::new(&mut disk, clock, generator, schedule, stop, series());
    let (mut home, published) = finish(worker);
    home.zero_blocks = ZeroSample::default();
    // Equality of histograms ignores the shortest latency, and their debug output lacks the counts.
    let latencies = home.ops.values().map(|op| &op.latency).map(|latency| {
        let buckets: Vec<_> = latency.buckets().collect();
        (latency.min_ns(), latency.sum_ns(), buckets)
    });
    let latencies: Vec<_> = latencies.collect();
    (disk.asked, format!("{home:?} {latencies:?}"), published)
}

fn whim() -> impl Strategy<Value = Whim> {
    let odd = (0u64..60, 0u64..60, 0u64..20)
        .prop_map(|(short, failed, is_exhausted)| [short, failed, is_exhausted]);
    // Sometimes all requests of a queue take equally long, sometimes each takes its own time,
    // sometimes more than one or two cells.
    let times = (
        prop_oneof![Just(0u64), 1_000u64..200_000, 4_000_000u64..25_000_000],
        prop_oneof![Just(0u64), 1u64..300_000],
    );
    let (told_ns, takes) = (
        prop_oneof![Just(u64::MAX), 1_000_000u64..60_000_000],
        prop_oneof![Just(usize::MAX), 1usize..8],
    );
    (times, odd, 0u64..100, takes, told_ns, any::<u64>()).prop_map(
        |((service_ns, jitter_ns), odd, interrupted_permille, takes, told_ns, seed)| {
            let (service_ns, odd_permille) = (
                service_ns.max(20_000),
                if seed % 3 == 0 { [0; 3] } else { odd },
            );
            Whim {
                service_ns,
                jitter_ns,
                odd_permille,
                interrupted_permille,
                nap_ns: 700,
                takes,
                told_ns,
                seed,
            }
        },
    )
}

proptest! {
    /// The loop of plain reads and the general one give the same results on any disk.
    #[test]
    fn plain_read_loop_equals_general_loop(
        whim in whim(),
        depth in 1u32..40,
        steps in prop_oneof![Just(None), (0u64..3000).prop_map(Some)],
        measure_ns in prop_oneof![Just(0u64), 1u64..30_000_000],
        time_ns in 1u64..50_000_000,
    ) {
        let schedule = WorkerSchedule { start_ns: 0, measure_ns, end_ns: measure_ns + time_ns };
        let (plain, home, published) = seen(ReadLoop::UniformReads, &whim, depth, steps, schedule);
        let (general, expected, others) = seen(ReadLoop::General, &whim, depth, steps, schedule);
        // Only the slot differs where a request of a batch was short.
        prop_assert!(plain == general, "other requests");
        prop_assert_eq!((home, published), (expected, others));
    }
}

/// A clock that jumps by `ahead_ns` at `leap_ns`, until it is compared with its reference.
#[derive(Clone)]
struct Leaping {
    right: FakeClock,
    leap_ns: u64,
    ahead_ns: u64,
    is_believed: bool,
}

impl Clock for Leaping {
    fn now(&self) -> u64 {
        let right = self.right.now();
        if self.is_believed && right >= self.leap_ns {
            right + self.ahead_ns
        } else {
            right
        }
    }

    fn wait_until(&self, until_ns: u64) {
        self.right.wait_until(until_ns);
    }

    fn anchor(&mut self, now: u64) -> u64 {
        self.is_believed = self.is_believed && now <= self.right.now();
        if self.is_believed {
            now
        } else {
            self.right.now()
        }
    }
}

#[test]
fn clock_jump_leaves_run_and_latencies_intact() {
    // A machine that slept for an hour; a counter that went back.
    for ahead_ns in [3_600_000_000_000, u64::MAX / 4] {
        let leaping = |right| Leaping {
            right,
            leap_ns: 33_333_000,
            ahead_ns,
            is_believed: true,
        };
        let (disk, home) = read_moodily(Budget::default(), schedule(0, 60_000_000), leaping);
        let read = &home.ops[&OpKind::Read];
        assert_eq!(home.ending, EndReason::Time);
        assert_eq!(home.stop_ns, 60_000_000);
        assert_eq!(read.latency.count(), disk.full, "{ahead_ns}");
        assert_eq!(read.latency.min_ns(), 1000);
        assert_eq!(read.latency.max_ns(), 2000, "{ahead_ns}");
    }
}

/// A process that was stopped just before the start learns of it after the start.
#[test]
fn interruption_before_the_start_does_not_move_the_start() {
    const MILLISECOND_NS: u64 = 1_000_000;
    let interrupted = |clock: FakeClock| {
        let stop = Interruption {
            start_ns: 400 * MILLISECOND_NS,
            length_ns: 500 * MILLISECOND_NS,
            kind: InterruptionKind::Stopped,
            requests: 0,
        };
        clock.move_to(1000 * MILLISECOND_NS);
        clock.with_interruption(stop)
    };
    let schedule = WorkerSchedule {
        start_ns: 1000 * MILLISECOND_NS,
        measure_ns: 1000 * MILLISECOND_NS,
        end_ns: u64::MAX / 2,
    };
    let (_, done) = read_moodily(Budget::with_steps(500), schedule, interrupted);
    let read = &done.ops[&OpKind::Read];
    let errors: u64 = read.errors.values().sum();
    assert_eq!(read.count + errors, 500, "nothing counts as warm-up");
}

/// Each request takes a second; the user ends the run after 4.5 s.
#[test]
fn stopped_worker_with_few_operations_ends_with_the_next_one() {
    let whim = Whim {
        service_ns: LONG_NS,
        jitter_ns: 0,
        odd_permille: [0; 3],
        interrupted_permille: 1000,
        nap_ns: LONG_NS / 10,
        takes: 1,
        told_ns: 9 * LONG_NS / 2,
        seed: 1,
    };
    let generator = requests(&reads(1, UNIFORM), extent(0, 1 << 30), Budget::default());
    let mut disk = Whimsical::new(&whim, 1);
    let (clock, stop) = (disk.clock.clone(), Arc::clone(&disk.stop));
    let times = schedule(0, 60 * LONG_NS);
    let worker = Worker::new(&mut disk, clock, generator, times, stop, series());
    let (home, _) = finish(worker);
    assert_eq!(home.ending, EndReason::Stopped);
    assert_eq!(home.stop_ns, 5 * LONG_NS);
    let counts: u64 = home.ops.values().map(|op| op.latency.count()).sum();
    assert_eq!(counts, 5);
}
