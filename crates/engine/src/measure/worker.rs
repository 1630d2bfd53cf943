//! Runs the hot loop of a worker: takes the next steps, submits them, waits, and records the
//! completions. One worker has one thread and one queue. The loop has no allocation, no lock and no
//! system call except for the I/O, and reads the clock once per batch. Every 10 ms the worker ends
//! a cell; only then it checks the stop flag and publishes its counts.

use crate::io::clock::{Clock, ProcessorWait};
use crate::io::{Backend, Extent, WaitMode};
use crate::load::generator::{AfterWrite, RequestGenerator};
use crate::load::slots::Stage;
use crate::lock::lock;
use crate::measure::counters::Counters;
use crate::measure::load_limits::LoadLimits;
use crate::measure::read_check::ReadCheck;
use crate::measure::result::{EndReason, EndedTime, WorkerEnding, WorkerResult};
use crate::measure::result::{PUBLISH_NS, SharedSnapshot};
use crate::measure::turnover::MeasureStart;
use crate::measure::windows::{WindowLog, WindowTotals};
use diskproof_model::group::Group;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{OpKind, SERIES_INTERVAL_NS, ZeroSample};
use diskproof_model::plan::Workload;
use diskproof_model::request_log::RequestLog;
use diskproof_model::series::TimeSeries;
use diskproof_model::shape::{EarlyEnds, LoadShape};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A worker ends after this many consecutive failures. Chosen, not measured: a target that answers
/// so often with an error has nothing to measure.
const FAILURES_MAX: u32 = 1000;
/// A worker with nothing in flight sleeps for at most this long before it checks the stop flag.
/// Chosen, not measured: a user does not notice the delay.
const IDLE_NS: u64 = 50_000_000;
/// A measured time of at least [`LONG_NS`] with fewer operations than this ends with the next
/// completion: the fraction of an operation that is in flight at the end would be a large error.
/// A shorter one does so only where it has no operation at all.
const FEW_OPS: u64 = 10;
/// The shortest measured time to which [`FEW_OPS`] applies.
const LONG_NS: u64 = 1_000_000_000;

/// The times at which a worker starts, measures and ends, on its clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerSchedule {
    /// The start of the warm-up, the same for all workers.
    pub start_ns: u64,
    /// End of the warm-up.
    pub measure_ns: u64,
    /// No request starts at or after this.
    pub end_ns: u64,
}

impl WorkerSchedule {
    /// The schedule of a workload of the group, which may start later and end earlier than the
    /// others.
    pub(crate) fn for_workload(self, workload: &Workload, group: Group<'_>) -> Self {
        let delay_ns = workload.shape.starts.delay_ns;
        let measure_ns = if workload.shape.starts.own_warmup {
            self.start_ns.saturating_add(workload.warmup_ns)
        } else {
            self.measure_ns
        };
        let end_ns = match group.time_of(workload) {
            Some(time_ns) => measure_ns.saturating_add(time_ns),
            None => self.end_ns,
        };
        Self {
            start_ns: self.start_ns.saturating_add(delay_ns),
            measure_ns: measure_ns.saturating_add(delay_ns),
            end_ns: end_ns.saturating_add(delay_ns),
        }
    }

    /// The schedule with the same measured time, from another start on.
    pub(crate) fn measuring_from(self, measure_ns: u64) -> Self {
        let time_ns = self.end_ns - self.measure_ns;
        Self {
            measure_ns,
            end_ns: measure_ns.saturating_add(time_ns),
            ..self
        }
    }
}

/// The state of a worker after [`Worker::advance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdvanceOutcome {
    /// A cell is finished, and there is more to do.
    Running,
    /// Everything is over, and nothing is in flight.
    Done,
}

/// The reason and the time at which a series of plain reads stopped.
enum ReadsStopped {
    /// After a wait. Where the cell is over, its completions are not reaped yet.
    Waited(u64),
    /// Plain reads are not possible, or the portion is used up.
    Idle(u64),
}
use ReadsStopped::{Idle, Waited};

/// A worker with its queue.
pub(crate) struct Worker<B, C> {
    backend: B,
    clock: C,
    generator: RequestGenerator,
    counters: Counters,
    schedule: WorkerSchedule,
    cell_end_ns: u64,
    /// The time at which the last cell ended: the clock may go back by nanoseconds, time does not.
    last_now_ns: u64,
    stop: Arc<AtomicBool>,
    published: Arc<Mutex<TimeSeries>>,
    /// The place where it publishes its snapshots.
    pub snapshot: SharedSnapshot,
    cache_handling: CacheHandling,
    /// The lap of the last step, where its end drops the page cache.
    lap: u64,
    zero_blocks: ZeroSample,
    /// Time in flight, before the end of the warm-up, of the requests in flight then.
    warmup_in_flight_ns: u64,
    ending: Option<WorkerEnding>,
    /// The number of requests in flight when the worker's time was over, from then on, where it
    /// waits for the operation that ends its measured time; `None` otherwise.
    overtime_in_flight: Option<usize>,
    /// The time for which it had waited for its first completion when the measured time began; 0 if
    /// that came before.
    unanswered_ns: u64,
    /// [`WorkerResult::busy_ns`], once that is known.
    busy_ns: Option<u128>,
    /// [`Clock::processor_wait`] until the warm-up was over.
    wait_before_measuring: ProcessorWait,
    /// Waits for processors from there to the end.
    wait_while_measuring: ProcessorWait,
    windows: WindowLog,
    /// Set while the start of the measured time is not decided.
    measure_start: Option<Arc<MeasureStart>>,
    first_fill: FirstFill,
    /// Limits that end the worker early.
    limits: Option<Box<LoadLimits>>,
    /// True once a request has taken longer than it may: nothing more starts.
    is_too_slow: bool,
    /// Checks what it reads.
    read_check: Option<Box<ReadCheck>>,
    /// True where the operations of the warm-up do not count towards its limit.
    restarts_budget: bool,
    /// Its requests one by one, where the workload keeps them.
    request_log: Option<Box<RequestLog>>,
    /// The number of them that it keeps.
    logged_max: usize,
}

/// The requests with which a worker fills its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstFill {
    /// None is in flight yet.
    Pending,
    /// The last of them started at this time.
    InFlight(u64),
    /// Every request has completed.
    Completed,
}

/// The treatment of the page cache by a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheHandling {
    /// Nothing: direct I/O, or the page cache may serve requests.
    Keep,
    /// Drops what was read and written, at the end of each cell.
    Drop,
    /// Drops this part of the target at the start of each lap over it but the first.
    DropEachLap(Extent),
}

impl<B: Backend, C: Clock> Worker<B, C> {
    /// A worker that has not begun.
    pub(crate) fn new(
        backend: B,
        clock: C,
        generator: RequestGenerator,
        schedule: WorkerSchedule,
        stop: Arc<AtomicBool>,
        published: Arc<Mutex<TimeSeries>>,
    ) -> Self {
        let intended = generator.is_paced().then(LatencyHistogram::new);
        Self {
            backend,
            clock,
            counters: Counters::new(schedule.start_ns, schedule.measure_ns, intended.as_ref()),
            generator,
            schedule,
            cell_end_ns: 0,
            last_now_ns: schedule.start_ns,
            stop,
            published,
            snapshot: SharedSnapshot::default(),
            cache_handling: CacheHandling::Keep,
            lap: 0,
            zero_blocks: ZeroSample::default(),
            warmup_in_flight_ns: 0,
            ending: None,
            overtime_in_flight: None,
            unanswered_ns: 0,
            busy_ns: None,
            wait_before_measuring: ProcessorWait::default(),
            wait_while_measuring: ProcessorWait::default(),
            windows: WindowLog::new(),
            measure_start: None,
            first_fill: FirstFill::Pending,
            limits: None,
            is_too_slow: false,
            read_check: None,
            restarts_budget: false,
            request_log: None,
            logged_max: 0,
        }
    }

    /// Lets the operations count from the end of the warm-up on, where the shape says so.
    pub(crate) fn counting_as(mut self, ends: &EarlyEnds) -> Self {
        self.restarts_budget = ends.ops_after_warmup;
        self
    }

    /// Gives the worker limits that end it early. Where one is about single requests, it looks at
    /// every completion.
    pub(crate) fn within_limits(mut self, limits: Option<Box<LoadLimits>>) -> Self {
        if limits
            .as_ref()
            .is_some_and(|limits| limits.limits_latency())
        {
            self.generator = self.generator.without_batches();
        }
        self.limits = limits;
        self
    }

    /// Gives the worker a check of what it reads.
    pub(crate) fn checking_reads(mut self, check: Option<ReadCheck>) -> Self {
        if let Some(check) = check {
            self.generator = self.generator.without_batches();
            self.read_check = Some(Box::new(check));
        }
        self
    }

    /// Keeps the first requests, up to so many, where the shape says so.
    pub(crate) fn logging_requests(mut self, shape: &LoadShape, logged_max: usize) -> Self {
        self.logged_max = logged_max;
        if shape.logs_requests {
            self.generator = self.generator.without_batches();
            self.request_log = Some(Box::default());
        }
        self
    }

    /// Sets how it treats the page cache at the end of each cell.
    pub(crate) fn cache_handling(mut self, cache_handling: CacheHandling) -> Self {
        self.cache_handling = cache_handling;
        self.lap = self.generator.pattern.lap();
        self
    }

    /// Starts the measured time when all workers together decide it, which may extend the warm-up.
    pub(crate) fn with_measure_start(mut self, measure_start: Option<Arc<MeasureStart>>) -> Self {
        if let Some(measure_start) = &measure_start {
            self.measure_from(measure_start.latest_ns);
        }
        self.measure_start = measure_start;
        self
    }

    /// Moves the measured time to another start.
    fn measure_from(&mut self, measure_ns: u64) {
        self.schedule = self.schedule.measuring_from(measure_ns);
        self.counters.measure_ns = measure_ns;
    }

    /// Learns, or helps to decide, when the measured time starts.
    #[cold]
    fn settle_measure_start(&mut self, now: u64) {
        let Some(measure_start) = self.measure_start.clone() else {
            return;
        };
        let slots = &self.generator.slots;
        if self.first_fill == FirstFill::Pending {
            self.first_fill = FirstFill::InFlight(slots.last_began_ns());
        }
        if let FirstFill::InFlight(fill_ns) = self.first_fill
            && slots
                .first_began_ns()
                .is_none_or(|oldest_ns| oldest_ns > fill_ns)
        {
            self.first_fill = FirstFill::Completed;
            measure_start.note_first_fill(now);
        }
        if let Some(measure_ns) = measure_start.start_ns(now) {
            self.measure_from(measure_ns);
            self.measure_start = None;
        }
    }

    /// Ends the worker before its first request: the run was stopped before its start.
    pub(crate) fn end_before_start(&mut self) {
        self.end(EndReason::Stopped, self.schedule.start_ns);
    }

    /// Works until the end of a cell, or until everything is done.
    pub(crate) fn advance(&mut self) -> io::Result<AdvanceOutcome> {
        let mut now = self.clock.now().max(self.last_now_ns);
        if now >= self.cell_end_ns {
            now = self.resync_clock(now);
        }
        loop {
            now = match self.run_plain_reads(now)? {
                Waited(now) => now,
                Idle(now) => match self.step(now)? {
                    Some(now) => now,
                    None => return Ok(AdvanceOutcome::Done),
                },
            };
            let rolled = now >= self.cell_end_ns;
            if rolled {
                now = self.resync_clock(now);
                self.end_cell(now);
            }
            let (generator, counters) = (&mut self.generator, &mut self.counters);
            if self.read_check.is_none() {
                self.backend
                    .reap(&mut |slot, result| counters.complete(generator, slot, result, now));
            } else {
                now = self.reap_checked(now);
            }
            if let Some(in_flight) = self.overtime_in_flight {
                self.end_overtime(now, in_flight);
            }
            if self.limits.is_some() {
                self.note_slow_requests();
            }
            if rolled {
                self.sample_cell(now);
                self.last_now_ns = now;
                return Ok(AdvanceOutcome::Running);
            }
        }
    }

    /// Starts nothing more once a request has taken longer than it may. That request counts, and so
    /// do those in flight.
    #[cold]
    fn note_slow_requests(&mut self) {
        let Some(limits) = &self.limits else {
            return;
        };
        if !self.is_too_slow && limits.is_too_slow(self.counters.cell()) {
            self.is_too_slow = true;
            self.generator.end();
        }
    }

    /// Reaps, and checks what was read before its buffers are in use again. Returns the time after
    /// it: the checks are in no request's latency.
    #[cold]
    fn reap_checked(&mut self, now: u64) -> u64 {
        let (generator, counters) = (&mut self.generator, &mut self.counters);
        let Some(check) = &mut self.read_check else {
            return now;
        };
        self.backend.reap(&mut |slot, result| {
            if let Some((offset, len)) = generator.slots.read_completed(slot, result) {
                check.note(slot, offset, len);
            }
            counters.complete(generator, slot, result, now);
        });
        let buffers = self.backend.buffers();
        if !check.look(|slot, len| buffers.bytes(slot, len)) {
            return now;
        }
        if check.is_at_end() {
            self.generator.end();
        }
        self.clock.now().max(now)
    }

    /// Plain reads, until the cell ends or a read is short or fails: the loop of
    /// [`Worker::advance`] without everything that plain reads do not need. A separate function,
    /// because after each system call its code comes from the CPU's slower caches: the shorter, the
    /// better.
    #[inline(never)]
    fn run_plain_reads(&mut self, now: u64) -> io::Result<ReadsStopped> {
        let Some(mut read_batch) = self.generator.read_batch(now) else {
            return Ok(Idle(now));
        };
        let counters = &mut self.counters;
        // Short and failed reads.
        let mut irregular = Vec::new();
        loop {
            self.backend.enqueue(&mut |_| read_batch.next())?;
            if read_batch.is_short() {
                let now = read_batch.now;
                read_batch.end();
                return Ok(Idle(now));
            }
            self.backend.wait(WaitMode::Completion)?;
            read_batch.now = self.clock.now().max(read_batch.now);
            if read_batch.now >= self.cell_end_ns {
                break;
            }
            let (len, now) = (read_batch.len(), read_batch.now);
            let (mut start_ns, mut reads) = (now, 0);
            self.backend.reap(&mut |slot, result| {
                if result != len as i32 {
                    irregular.push((slot, result));
                    return;
                }
                let began_ns = read_batch.free(slot);
                if began_ns != start_ns {
                    counters.record_run(OpKind::Read, len, now - start_ns, reads, now);
                    (start_ns, reads) = (began_ns, 0);
                }
                reads += 1;
            });
            counters.record_run(OpKind::Read, len, now - start_ns, reads, now);
            if !irregular.is_empty() {
                break;
            }
        }
        let now = read_batch.now;
        read_batch.end();
        for (slot, result) in irregular {
            counters.complete(&mut self.generator, slot, result, now);
        }
        Ok(Waited(now))
    }

    /// Submits what may start, and keeps it.
    #[cold]
    fn enqueue_logged(&mut self, now: u64) -> io::Result<()> {
        let generator = &mut self.generator;
        let log = &mut self.request_log;
        let logged_max = self.logged_max;
        self.backend.enqueue(&mut |buffers| {
            let request = generator.next(now, buffers)?;
            if let Some(log) = log {
                log.add(request.logged(now), logged_max);
            }
            Some(request)
        })
    }

    /// Submits what may start, and waits for completions or for the next start. Returns the time;
    /// `None` when everything is done.
    #[inline(always)]
    fn step(&mut self, now: u64) -> io::Result<Option<u64>> {
        if self.request_log.is_some() {
            self.enqueue_logged(now)?;
        } else {
            let generator = &mut self.generator;
            self.backend
                .enqueue(&mut |buffers| generator.next(now, buffers))?;
        }
        let generator = &self.generator;
        if let CacheHandling::DropEachLap(extent) = self.cache_handling
            && generator.pattern.lap() != self.lap
        {
            self.lap = generator.pattern.lap();
            self.backend.drop_cache(Some(extent));
        }
        if self.generator.slots.in_flight() == 0 {
            if self.generator.is_exhausted() {
                self.end(
                    match self.overtime_in_flight {
                        Some(_) => EndReason::Time,
                        None if self.is_too_slow => EndReason::TooSlow,
                        None => EndReason::Budget,
                    },
                    now,
                );
                return Ok(None);
            }
            let due_ns = self.generator.reserve().unwrap_or(now);
            self.wait_idle(due_ns, now);
        } else {
            if self.generator.has_options() {
                self.wait_by_schedule(now)?;
            } else {
                self.backend.wait(WaitMode::Completion)?;
            }
        }
        // An anchored clock may step back by nanoseconds; time does not.
        Ok(Some(self.clock.now().max(now)))
    }

    /// Waits with nothing in flight for the next start, or until the worker must look up. Only the
    /// wait for a start is exact, and the others are few: a hundred idle workers that spin before
    /// the end of each cell, all of them at the same moment, delay the starts.
    #[cold]
    fn wait_idle(&mut self, due_ns: u64, now: u64) {
        let look_up_ns = self.look_up_ns(now);
        if due_ns > look_up_ns {
            self.clock.sleep_until(look_up_ns);
            return;
        }
        let wake_ns = due_ns.saturating_sub(self.generator.lead_ns());
        if wake_ns > now {
            self.clock.sleep_until(wake_ns);
            self.generator.note_wake_up(wake_ns, self.clock.now());
        }
        self.clock.spin_until(due_ns);
    }

    /// Waits for completions, with requests in flight, or until the next start is near.
    fn wait_by_schedule(&mut self, now: u64) -> io::Result<()> {
        let wait_mode = self.generator.wait_mode(now);
        self.backend.wait(wait_mode)?;
        if let WaitMode::AtMost(ns) = wait_mode {
            self.generator.note_wake_up(now + ns, self.clock.now());
        }
        Ok(())
    }

    /// When a worker with nothing in flight looks up at the latest. A cell in which nothing happens
    /// may end late, but not the warm-up, the run, or a cell that decides when they end.
    fn look_up_ns(&self, now: u64) -> u64 {
        if self.measure_start.is_some() || self.limits.is_some() {
            return self.cell_end_ns.max(now);
        }
        let phase_end_ns = if now < self.schedule.measure_ns {
            self.schedule.measure_ns
        } else {
            self.schedule.end_ns
        };
        phase_end_ns.min(now + IDLE_NS).max(self.cell_end_ns)
    }

    /// Compares the time `now`, beyond the cell, with the clock's reference. Returns another time
    /// where the clock has jumped, but none before the start of a request in flight.
    #[cold]
    fn resync_clock(&mut self, now: u64) -> u64 {
        let mut anchored_ns = self.clock.anchor(now);
        if anchored_ns != now {
            anchored_ns = anchored_ns
                .max(self.last_now_ns)
                .max(self.generator.slots.last_began_ns());
        }
        self.exclude_interruptions(anchored_ns)
    }

    /// Excludes the times up to `now` in which the process did not run, so that they are in no
    /// cell, schedule or latency. Requests in flight across them do not count: the disk completed
    /// them at an unknown time. Returns the time then.
    fn exclude_interruptions(&mut self, now: u64) -> u64 {
        let slots = &self.generator.slots;
        let seen_ns = self.last_now_ns.max(self.counters.last_ns);
        let mut interruptions = self
            .clock
            .interruptions(now, || seen_ns.max(slots.last_began_ns()));
        if interruptions.is_empty() {
            return now;
        }
        let requests = self.generator.slots.mark_all_interrupted();
        for interruption in &mut interruptions {
            interruption.requests = requests;
        }
        lock(&self.snapshot)
            .so_far
            .interruptions
            .append(&mut interruptions);
        self.clock
            .now()
            .max(seen_ns)
            .max(self.generator.slots.last_began_ns())
    }

    /// Ends a cell at `now`.
    #[cold]
    fn end_cell(&mut self, now: u64) {
        self.settle_measure_start(now);
        let limit_reached = self.check_limits(now);
        let was_measuring = self.counters.is_measuring;
        let is_stopped = self.stop.load(Ordering::Relaxed);
        let is_over = now >= self.schedule.end_ns || (is_stopped && was_measuring);
        let is_sparse = is_over && limit_reached.is_none() && self.is_sparse();
        // In overtime, what completes at `now` is part of the measured time, which ends then.
        let cell_end_ns = now - u64::from(is_sparse);
        self.counters
            .end_cell(cell_end_ns, &self.published, &mut lock(&self.snapshot));
        if !was_measuring && self.counters.is_measuring {
            self.begin_measuring();
        } else if was_measuring && self.ending.is_none() {
            self.end_windows(now.min(self.schedule.end_ns));
        }
        self.cell_end_ns = self.next_cell_end_ns(now);
        if let Some(reason) = limit_reached {
            // Only now: the cell that reached the limit is part of the measured time.
            self.end(reason, now);
        } else if is_sparse && self.overtime_in_flight.is_none() {
            self.generator.end();
            self.overtime_in_flight = Some(self.generator.slots.in_flight());
        } else if is_sparse {
            // Waits on: it starts nothing, and only the supervisor can end the wait.
        } else if now >= self.schedule.end_ns {
            // The scheduled end, not `now`: the completion that woke the worker up comes after it
            // and does not count.
            self.end(EndReason::Time, self.schedule.end_ns);
        } else if is_stopped {
            self.end(EndReason::Stopped, now);
        }
        self.publish_snapshot(now);
    }

    /// Notes the state of the worker at the start of its measured time, for the figures that begin
    /// there.
    fn begin_measuring(&mut self) {
        if self.restarts_budget {
            self.generator.restart_budget();
        }
        self.warmup_in_flight_ns = self.generator.slots.in_flight_ns(self.schedule.measure_ns);
        self.wait_before_measuring = self.clock.processor_wait();
        if self.counters.last_ns == 0 {
            self.unanswered_ns = self.schedule.measure_ns - self.schedule.start_ns;
        }
    }

    /// The end of the cell that begins at `now`. Cells end at multiples of their length from the
    /// start of the measured time on, and none reaches beyond that start or the end of the run.
    fn next_cell_end_ns(&self, now: u64) -> u64 {
        let schedule = &self.schedule;
        let next_ns = if now < schedule.measure_ns {
            (now + SERIES_INTERVAL_NS).min(schedule.measure_ns)
        } else {
            let cells = (now - schedule.measure_ns) / SERIES_INTERVAL_NS + 1;
            schedule.measure_ns + cells * SERIES_INTERVAL_NS
        };
        if self.ending.is_none() {
            next_ns.min(schedule.end_ns.max(now + 1))
        } else {
            next_ns
        }
    }

    /// The limit of the load that the cell which ends at `now` has reached, if any.
    fn check_limits(&mut self, now: u64) -> Option<EndReason> {
        if self.ending.is_some() {
            return None;
        }
        if let Some(limits) = &mut self.limits
            && let Some(reason) = limits.check(self.counters.cell(), now)
        {
            return Some(reason);
        }
        self.generator
            .is_overloaded(now)
            .then_some(EndReason::Overloaded)
    }

    /// True if the measured time has too few operations to end without the next completion. An open
    /// loop is never sparse: it has starts to make meanwhile.
    fn is_sparse(&mut self) -> bool {
        let is_long = self.schedule.end_ns - self.schedule.measure_ns >= LONG_NS;
        let ops_min = if is_long { FEW_OPS } else { 1 };
        let after_write = self.generator.after_write;
        // A write that is synced counts when its sync is done.
        let writes = match after_write {
            AfterWrite::Durable | AfterWrite::Sync(_) => OpKind::Commit,
            _ => OpKind::Write,
        };
        self.ending.is_none()
            && !self.generator.is_paced()
            && self.generator.slots.in_flight() > 0
            && self.counters.operations(writes) < ops_min
    }

    /// Ends the measured time with the first operation that ends in overtime. If nothing had
    /// completed when the measured time began, the wait before it counts, too.
    #[cold]
    fn end_overtime(&mut self, now: u64, in_flight: usize) {
        if self.ending.is_some() || self.generator.slots.in_flight() == in_flight {
            return;
        }
        let mut snapshot = lock(&self.snapshot);
        self.counters.end_cell(now, &self.published, &mut snapshot);
        drop(snapshot);
        if self.unanswered_ns > 0 {
            self.warmup_in_flight_ns = 0;
        }
        let reason = if now < self.schedule.end_ns {
            EndReason::Stopped
        } else {
            EndReason::Time
        };
        let ending = WorkerEnding {
            reason,
            at_ns: now + self.unanswered_ns,
        };
        self.end(ending.reason, ending.at_ns);
        self.publish_ending(ending, now);
    }

    /// Tells the supervisor how the measured time ended, with the time in flight until `until_ns`.
    /// Requests may still be in flight then, perhaps for longer than the run.
    fn publish_ending(&mut self, ending: WorkerEnding, until_ns: u64) {
        let busy_ns = self.busy_until(until_ns);
        self.busy_ns = Some(busy_ns);
        lock(&self.snapshot).ended = Some(EndedTime { ending, busy_ns });
    }

    /// Ends the windows that are over at `until_ns`. A request that took longer than a window ends
    /// several at once, in each of which it was in flight.
    fn end_windows(&mut self, until_ns: u64) {
        while self.schedule.measure_ns + self.windows.end_ns() <= until_ns {
            let at_ns = self.schedule.measure_ns + self.windows.end_ns();
            let totals = WindowTotals {
                busy_ns: self.busy_until(at_ns),
                wait: self
                    .clock
                    .processor_wait()
                    .since(self.wait_before_measuring),
            };
            self.windows.end_window(self.counters.take_window(), totals);
        }
    }

    /// Publishes what the supervisor needs if the next request never completes.
    #[cold]
    fn publish_snapshot(&self, now: u64) {
        let mut snapshot = lock(&self.snapshot);
        snapshot.rolled_ns = now;
        snapshot.so_far.last_ns = self.counters.last_ns;
        snapshot.so_far.moved = self.counters.moved;
        if self.counters.is_measuring {
            snapshot.so_far.busy_ns = self
                .counters
                .busy_ns()
                .saturating_sub(u128::from(self.warmup_in_flight_ns));
        }
        if snapshot
            .published_ns
            .is_some_and(|shown| now < shown + PUBLISH_NS)
        {
            return;
        }
        snapshot.published_ns = self.counters.is_measuring.then_some(now);
        snapshot.in_flight = self.generator.slots.pending_requests();
        let so_far = &mut snapshot.so_far;
        so_far.zero_blocks = self.zero_blocks;
        so_far.read_verdict = self.read_check.as_ref().map(|check| check.verdict.clone());
        so_far.late = self.generator.late();
        so_far.done_before_wait = self.backend.done_before_wait();
        so_far.processor_wait = match self.ending {
            None if self.counters.is_measuring => self
                .clock
                .processor_wait()
                .since(self.wait_before_measuring),
            _ => self.wait_while_measuring,
        };
        self.counters.publish_to(&mut snapshot);
    }

    /// Looks at the content of the last read, at the failures and at the page cache, after a cell.
    /// Runs after the last batch was reaped, while the freed slots are not in use again. The slot
    /// of the last read may have carried another request since.
    #[cold]
    fn sample_cell(&mut self, now: u64) {
        if let Some(slot) = self.counters.take_last_read()
            && self.generator.slots.peek() == Some(slot)
            && self.generator.slots.stage(slot) == Stage::Transfer(OpKind::Read)
        {
            let len = self.generator.slots.get(slot).len;
            self.zero_blocks.sampled += 1;
            self.zero_blocks.zero +=
                u64::from(self.backend.buffers().is_zero(slot as usize, len as usize));
        }
        if let Some(errno) = self.counters.fatal_errno(FAILURES_MAX) {
            self.end(EndReason::Errors(errno), now);
        }
        if self.cache_handling == CacheHandling::Drop {
            match self.generator.pattern.take_passed() {
                Some(extents) => extents
                    .iter()
                    .filter(|extent| extent.length > 0)
                    .for_each(|extent| self.backend.drop_cache(Some(*extent))),
                None => self.backend.drop_cache(None),
            }
        }
    }

    /// Ends the measured time at `at_ns`, unless it has ended; nothing more starts.
    fn end(&mut self, reason: EndReason, at_ns: u64) {
        self.generator.end();
        if self.ending.is_none() {
            let ending = WorkerEnding { reason, at_ns };
            self.ending = Some(ending);
            if self.counters.is_measuring {
                self.wait_while_measuring = self
                    .clock
                    .processor_wait()
                    .since(self.wait_before_measuring);
            }
            // Requests that complete after such an end still count, but not towards the rate.
            if !reason.is_after_last() {
                self.publish_ending(ending, at_ns);
                self.counters.close_series(at_ns, &mut lock(&self.snapshot));
            }
        }
    }

    /// Requests in flight, integrated from the end of the warm-up to `at_ns`: all latencies,
    /// without the part before, and with the part of the requests still in flight.
    fn busy_until(&self, at_ns: u64) -> u128 {
        if !self.counters.is_measuring {
            return 0;
        }
        (self.counters.busy_ns() + u128::from(self.generator.slots.in_flight_ns(at_ns)))
            .saturating_sub(u128::from(self.warmup_in_flight_ns))
    }

    /// Ends the worker and returns its measurement. Only after [`AdvanceOutcome::Done`].
    pub(crate) fn finish(mut self) -> WorkerResult {
        let now = self.clock.now().max(self.last_now_ns);
        let WorkerEnding {
            reason: ending,
            at_ns: stop_ns,
        } = self.ending.unwrap_or(WorkerEnding {
            reason: EndReason::Stopped,
            at_ns: now,
        });
        let mut snapshot = lock(&self.snapshot);
        let is_warmup = ending == EndReason::Budget
            && !self.counters.is_measuring
            && stop_ns < self.schedule.measure_ns;
        if is_warmup {
            self.counters.keep_warmup(&mut snapshot);
            self.schedule.measure_ns = self.schedule.start_ns;
        }
        self.counters.end_cell(now, &self.published, &mut snapshot);
        let last_ns = self.counters.last_ns.max(self.schedule.measure_ns);
        let stop_ns = stop_ns.max(self.schedule.measure_ns);
        let busy_ns = self.busy_ns.unwrap_or_else(|| self.busy_until(last_ns));
        let window_end_ns = if ending.is_after_last() {
            stop_ns.max(last_ns)
        } else {
            stop_ns
        };
        let totals = WindowTotals {
            busy_ns,
            wait: self.wait_while_measuring,
        };
        let ops = if self.counters.is_measuring {
            self.counters.take_window()
        } else {
            Default::default()
        };
        let windows = self
            .windows
            .finish(window_end_ns - self.schedule.measure_ns, ops, totals);
        let (ops, moved) = self.counters.finish(&mut snapshot);
        let interruptions = std::mem::take(&mut snapshot.so_far.interruptions);
        drop(snapshot);
        WorkerResult {
            steady: self.limits.and_then(|limits| limits.steady()),
            ops,
            moved,
            stop_ns,
            busy_ns,
            last_ns,
            zero_blocks: self.zero_blocks,
            late: self.generator.late(),
            dispatch: self.generator.take_dispatch(),
            done_before_wait: self.backend.done_before_wait(),
            processor_wait: self.wait_while_measuring,
            interruptions,
            windows,
            ended_in_overtime: self.overtime_in_flight.is_some(),
            is_warmup,
            read_verdict: self.read_check.map(|check| check.verdict),
            request_log: self.request_log,
            ending,
        }
    }
}

#[cfg(test)]
mod tests;
