//! Reads the time and waits for it. Real time is CLOCK_MONOTONIC, as in the kernel's block traces.
//! Workers read it through the CPU's time stamp counter where that is reliable.
#![allow(unsafe_code)]

use crate::io::interruptions::SkippedTime;
use diskproof_model::measurement::Interruption;
use diskproof_model::record::ClockFacts;
use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

/// Nanoseconds from an arbitrary zero.
pub trait Clock: Clone {
    /// The time now, in nanoseconds.
    fn now(&self) -> u64;
    /// Waits until the time is `until_ns`, as exactly as the clock can.
    fn wait_until(&self, until_ns: u64);
    /// Waits for a near time without sleeping.
    fn spin_until(&self, until_ns: u64) {
        self.wait_until(until_ns);
    }
    /// Sleeps until about `until_ns`. The thread wakes up as any other does, at most a little late:
    /// nothing keeps the processor awake meanwhile.
    fn sleep_until(&self, until_ns: u64) {
        self.wait_until(until_ns);
    }

    /// Compares the clock with its reference, from time to time, outside the hot loop. Returns the
    /// corrected time for the reading `now`, just taken: the same, unless the clock has jumped. The
    /// next reading may be a few nanoseconds earlier.
    fn anchor(&mut self, now: u64) -> u64 {
        now
    }

    /// The times since the last call in which this process did not run. From here on the clock
    /// skips their part between `since_ns()`, an earlier reading, and the reading `now`.
    fn interruptions(&mut self, _now: u64, _since_ns: impl FnOnce() -> u64) -> Vec<Interruption> {
        Vec::new()
    }

    /// Waits of this thread for processors so far; zeros where they are unknown.
    fn processor_wait(&self) -> ProcessorWait {
        ProcessorWait::default()
    }

    /// Nanoseconds for which this thread was ready to run and got no processor so far; 0 where that
    /// is unknown.
    fn starved_ns(&self) -> u64 {
        self.processor_wait().ns
    }
}

/// A thread's waiting for processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessorWait {
    /// Nanoseconds for which it was ready to run and got none.
    pub ns: u64,
    /// Times that it was put on one.
    pub turns: u64,
}

impl ProcessorWait {
    /// The increase since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            ns: self.ns.saturating_sub(before.ns),
            turns: self.turns.saturating_sub(before.turns),
        }
    }
}

/// CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Default)]
pub struct MonotonicClock;

/// A sleeping thread may wake up this much late: 50 µs of timer slack (PR_SET_TIMERSLACK of
/// prctl(2)), and scheduling. The rest of a wait spins.
const SPIN_NS: u64 = 80_000;

impl Clock for MonotonicClock {
    #[inline(always)]
    fn now(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    fn wait_until(&self, until_ns: u64) {
        let left = until_ns.saturating_sub(self.now());
        if left > SPIN_NS {
            std::thread::sleep(std::time::Duration::from_nanos(left - SPIN_NS));
        }
        self.spin_until(until_ns);
    }

    fn spin_until(&self, until_ns: u64) {
        while self.now() < until_ns {
            std::hint::spin_loop();
        }
    }

    fn sleep_until(&self, until_ns: u64) {
        let left = until_ns.saturating_sub(self.now());
        std::thread::sleep(std::time::Duration::from_nanos(left));
    }
}

/// The clock of a worker: the CPU's time stamp counter where it runs at a constant rate, else
/// CLOCK_MONOTONIC. Both have the times of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
pub struct WorkerClock {
    counter: Option<Counter>,
    skipped: SkippedTime,
    /// When the clock was made: an interruption before that is not in its time, even if it is
    /// detected later.
    made_ns: u64,
}

/// CLOCK_MONOTONIC without the times in which this process did not run: for waits for a disk that
/// end after a while.
#[derive(Debug)]
pub struct ActiveClock {
    skipped: Cell<SkippedTime>,
    read_ns: Cell<u64>,
}

impl ActiveClock {
    /// A clock that has the time of CLOCK_MONOTONIC until the next interruption.
    pub fn new() -> Self {
        crate::io::interruptions::start();
        Self {
            skipped: Cell::new(SkippedTime::from_now()),
            read_ns: Cell::new(MonotonicClock.now()),
        }
    }

    /// The time now, in nanoseconds.
    pub fn now(&self) -> u64 {
        let now = MonotonicClock.now();
        let (before_ns, mut skipped) = (self.read_ns.replace(now), self.skipped.get());
        skipped.update(now, || before_ns);
        self.skipped.set(skipped);
        now - skipped.ns
    }

    /// As [`Self::now`], as a duration since the zero of CLOCK_MONOTONIC.
    pub fn uptime(&self) -> Duration {
        Duration::from_nanos(self.now())
    }
}

impl Default for ActiveClock {
    fn default() -> Self {
        Self::new()
    }
}

/// A counter calibrated against CLOCK_MONOTONIC, again at every [`Clock::anchor`], so that it
/// cannot drift away.
#[derive(Debug, Clone, Copy)]
struct Counter {
    first: ClockReading,
    base: ClockReading,
    /// Nanoseconds per tick, times 2³².
    ns_per_tick: u64,
}

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy)]
struct ClockReading {
    ns: u64,
    ticks: u64,
}

/// Two readings this far apart give the counter's rate to some millionths. The first anchors
/// improve it.
const CALIBRATION_NS: u64 = 3_000_000;
/// A counter that deviates from CLOCK_MONOTONIC by more than this, and by more than [`DRIFT_PARTS`]
/// allows, has jumped. An interrupt between the two readings is far shorter.
const JUMP_NS: u64 = 100_000;
/// The counter may deviate by one part in so many. CLOCK_MONOTONIC itself may run a tenth faster or
/// slower while NTP corrects it (`tick` of adjtimex(2)).
const DRIFT_PARTS: u128 = 8;
/// Readings of both clocks of which the tightest counts.
const READING_TRIES: u32 = 5;

impl ClockReading {
    /// The tightest of several tries: an interrupt between the two readings would distort one.
    fn take() -> Self {
        let tries = (0..READING_TRIES).map(|_| {
            let before = ticks();
            let ns = MonotonicClock.now();
            (ticks().wrapping_sub(before), Self { ns, ticks: before })
        });
        let (width, reading) = tries
            .min_by_key(|(width, _)| *width)
            .unwrap_or((0, Self { ns: 0, ticks: 0 }));
        Self {
            ticks: reading.ticks.wrapping_add(width / 2),
            ..reading
        }
    }
}

impl WorkerClock {
    /// Calibrates the counter, which takes 3 ms once per process; uses CLOCK_MONOTONIC where the
    /// counter is not reliable.
    pub fn new() -> Self {
        static COUNTER: OnceLock<Option<Counter>> = OnceLock::new();
        let calibrated = COUNTER.get_or_init(|| runs_evenly().then(Counter::calibrate));
        // The calibration may be old.
        Self {
            counter: calibrated.and_then(|counter| counter.anchored(ClockReading::take())),
            skipped: SkippedTime::from_now(),
            made_ns: MonotonicClock.now(),
        }
    }
}

impl Default for WorkerClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Counter {
    fn calibrate() -> Self {
        let first = ClockReading::take();
        MonotonicClock.wait_until(first.ns + CALIBRATION_NS);
        Self::between(first, ClockReading::take())
    }

    /// Continues from `base`, with the rate since `first`.
    fn between(first: ClockReading, base: ClockReading) -> Self {
        let (ns, ticks) = (base.ns - first.ns, base.ticks.wrapping_sub(first.ticks));
        Self {
            first,
            base,
            ns_per_tick: ((u128::from(ns) << 32) / u128::from(ticks.max(1))) as u64,
        }
    }

    /// Calibrates again with a reading of both clocks. `None` where the counter has jumped since
    /// the last one: a CPU whose counter is behind, a migrated virtual machine, a machine that
    /// slept (CLOCK_MONOTONIC stops meanwhile). Its rate would stay wrong.
    fn anchored(&self, reading: ClockReading) -> Option<Self> {
        let elapsed_ns = i128::from(reading.ns) - i128::from(self.base.ns);
        let ticks = reading.ticks.wrapping_sub(self.base.ticks) as i64;
        let counted_ns = (i128::from(ticks) * i128::from(self.ns_per_tick)) >> 32;
        let allowed_ns = u128::from(JUMP_NS) + elapsed_ns.unsigned_abs() / DRIFT_PARTS;
        if counted_ns.abs_diff(elapsed_ns) > allowed_ns {
            return None;
        }
        Some(Self::between(self.first, reading))
    }

    /// The time of the counter value `ticks`. A counter that has gone back gives a time centuries
    /// ahead, which [`Clock::anchor`] detects.
    #[inline(always)]
    fn ns_at(&self, ticks: u64) -> u64 {
        let ticks_since_base = u128::from(ticks.wrapping_sub(self.base.ticks));
        let since_base_ns = (ticks_since_base * u128::from(self.ns_per_tick)) >> 32;
        self.base.ns.wrapping_add(since_base_ns as u64)
    }
}

impl Clock for WorkerClock {
    #[inline(always)]
    fn now(&self) -> u64 {
        let now = match &self.counter {
            Some(counter) => counter.ns_at(ticks()),
            None => MonotonicClock.now(),
        };
        now.wrapping_sub(self.skipped.ns)
    }

    fn wait_until(&self, until_ns: u64) {
        MonotonicClock.wait_until(until_ns + self.skipped.ns);
    }

    fn spin_until(&self, until_ns: u64) {
        MonotonicClock.spin_until(until_ns + self.skipped.ns);
    }

    fn sleep_until(&self, until_ns: u64) {
        MonotonicClock.sleep_until(until_ns + self.skipped.ns);
    }

    fn interruptions(&mut self, now: u64, since_ns: impl FnOnce() -> u64) -> Vec<Interruption> {
        let skipped_ns = self.skipped.ns;
        self.skipped.update(now + skipped_ns, || {
            self.made_ns.max(since_ns() + skipped_ns)
        })
    }

    /// The second figure of schedstat is the time on a run queue, the third the number of time
    /// slices (Linux, Documentation/scheduler/sched-stats.rst).
    fn processor_wait(&self) -> ProcessorWait {
        let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let mut figures = schedstat
            .split_ascii_whitespace()
            .skip(1)
            .map(|figure| figure.parse().unwrap_or(0));
        ProcessorWait {
            ns: figures.next().unwrap_or(0),
            turns: figures.next().unwrap_or(0),
        }
    }

    fn anchor(&mut self, now: u64) -> u64 {
        let Some(counter) = self.counter else {
            return now;
        };
        let reading = ClockReading::take();
        let reading_ns = reading.ns - self.skipped.ns;
        self.counter = counter.anchored(reading);
        // The counters of two CPUs may differ: `now` may be wrong though this CPU's is right.
        if now > reading_ns + JUMP_NS {
            self.counter = None;
        }
        if self.counter.is_some() {
            now
        } else {
            reading_ns
        }
    }
}

/// True where the counter runs at a constant rate, also in sleep states and on all CPUs: then the
/// kernel uses it as its clock.
fn runs_evenly() -> bool {
    let source =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    cfg!(target_arch = "x86_64") && source.is_ok_and(|name| name.trim() == "tsc")
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ticks() -> u64 {
    // SAFETY: reading the time stamp counter has no other effect.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

/// One instant on the monotonic clock and on the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartInstant {
    /// CLOCK_MONOTONIC in nanoseconds.
    pub monotonic_ns: u64,
    /// The wall clock.
    pub wall: SystemTime,
    /// Both were read within so many nanoseconds.
    pub gap_ns: u64,
}

/// Readings of both clocks that lie this close together suffice: hosts are compared to the
/// millisecond. Chosen, not measured, as are the numbers of pairs.
const PAIR_GAP_NS: u64 = 50_000;
/// Pairs of readings that are tried even if an earlier one suffices.
const PAIRS_MIN: u32 = 8;
/// After so many pairs the closest counts, whatever its gap.
const PAIRS_MAX: u32 = 200;

impl StartInstant {
    /// Reads both clocks. A thread that loses its processor between the two readings would place
    /// the run milliseconds away, so the closest of several pairs counts.
    pub fn now() -> Self {
        let mut closest = Self::read();
        for pairs in 1..PAIRS_MAX {
            if pairs >= PAIRS_MIN && closest.gap_ns < PAIR_GAP_NS {
                break;
            }
            let pair = Self::read();
            if pair.gap_ns < closest.gap_ns {
                closest = pair;
            }
        }
        closest
    }

    fn read() -> Self {
        let before_ns = MonotonicClock.now();
        let wall = SystemTime::now();
        let gap_ns = MonotonicClock.now().saturating_sub(before_ns);
        Self {
            monotonic_ns: before_ns + gap_ns / 2,
            wall,
            gap_ns,
        }
    }
}

/// Measures resolution (the smallest step seen) and cost (per reading) of the workers' clock, in a
/// few milliseconds.
pub fn measure() -> ClockFacts {
    const READINGS: u64 = 20_000;
    let clock = WorkerClock::new();
    let start = clock.now();
    let (mut last, mut resolution_ns) = (start, u64::MAX);
    for _ in 0..READINGS {
        let now = clock.now();
        if now > last {
            resolution_ns = resolution_ns.min(now - last);
        }
        last = now;
    }
    ClockFacts {
        source: match clock.counter {
            Some(_) => "TSC, calibrated with CLOCK_MONOTONIC",
            None => "CLOCK_MONOTONIC",
        }
        .to_owned(),
        resolution_ns,
        cost_ns: (last - start) as f64 / READINGS as f64,
        wall: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_never_ends_a_wait_early() {
        let until = MonotonicClock.now() + 300_000;
        MonotonicClock.wait_until(until);
        assert!(MonotonicClock.now() >= until);
    }

    #[test]
    fn worker_clock_agrees_with_monotonic_clock() {
        let mut clock = WorkerClock::new();
        for _ in 0..20 {
            let (before, now, after) = (MonotonicClock.now(), clock.now(), MonotonicClock.now());
            // Calibrated to ten millionths and anchored within the last seconds: a microsecond is
            // far too much.
            let near = before.saturating_sub(1_000)..=after + 1_000;
            assert!(near.contains(&now), "{before} {now} {after}");
            MonotonicClock.wait_until(after + 1_000_000);
            let read = clock.now();
            assert_eq!(clock.anchor(read), read);
        }
    }

    #[test]
    fn clock_rejects_counter_that_jumped() {
        const SECOND_NS: u64 = 1_000_000_000;
        // Two ticks a nanosecond.
        let reading = |ns: u64, ahead: i64| ClockReading {
            ns,
            ticks: (2 * ns).wrapping_add_signed(ahead),
        };
        let counter = Counter::between(reading(SECOND_NS, 0), reading(2 * SECOND_NS, 0));
        assert_eq!(counter.ns_at(10 * SECOND_NS), 5 * SECOND_NS);
        // An hour later at the same rate, a thousandth off, and shortly afterwards.
        for (ns, ahead) in [
            (3602 * SECOND_NS, 0),
            (3602 * SECOND_NS, 7 * SECOND_NS as i64),
            (2 * SECOND_NS + 700, 300),
            (2 * SECOND_NS, -300),
        ] {
            let later = counter.anchored(reading(ns, ahead)).unwrap();
            assert_eq!(later.ns_at(reading(ns, ahead).ticks), ns);
        }
        // The machine slept for an hour, the counter restarted, or it belongs to another CPU.
        for ahead in [
            7200 * SECOND_NS as i64,
            -5 * SECOND_NS as i64,
            -10_000_000,
            10_000_000,
        ] {
            let later = counter.anchored(reading(2 * SECOND_NS + 10_000_000, ahead));
            assert!(later.is_none(), "{ahead}");
        }
        // Until then, a counter that has gone back never gives a time before the last one.
        assert!(counter.ns_at(4 * SECOND_NS - 1_000) > 1000 * SECOND_NS);
    }

    #[test]
    fn clock_corrects_reading_of_another_cpu() {
        let mut clock = WorkerClock {
            counter: Some(Counter::calibrate()),
            ..WorkerClock::new()
        };
        let before = MonotonicClock.now();
        let right = clock.anchor(before + 1_000_000_000_000);
        assert!((before..=MonotonicClock.now()).contains(&right) && clock.counter.is_none());
        assert_eq!(clock.anchor(7), 7, "it is its own reference now");
    }

    #[test]
    fn clock_counts_turns_on_a_processor() {
        if !std::fs::exists("/proc/thread-self/schedstat").unwrap() {
            eprintln!("SKIPPED: clock_counts_turns_on_a_processor: a kernel with schedstat");
            return;
        }
        let (clock, before) = (WorkerClock::new(), WorkerClock::new().processor_wait());
        // Each sleep releases the processor and gets one again.
        (0..10).for_each(|_| std::thread::sleep(std::time::Duration::from_millis(1)));
        assert!(clock.processor_wait().since(before).turns >= 10);
    }

    #[test]
    fn clock_resolution_and_cost_are_measured() {
        let facts = measure();
        assert!(facts.resolution_ns >= 1 && facts.cost_ns > 0.0, "{facts:?}");
    }

    /// A clock that has skipped time is behind CLOCK_MONOTONIC, by which it waits.
    #[test]
    fn clock_waits_until_its_own_time() {
        const SKIPPED_NS: u64 = 5_000_000;
        /// The counter follows the other clock as closely as that.
        const CLOCKS_DIFFER_NS: u64 = 100_000;
        let mut clock = WorkerClock::new();
        clock.skipped.ns = SKIPPED_NS;
        let waits: [fn(&WorkerClock, u64); 3] = [
            WorkerClock::wait_until,
            WorkerClock::spin_until,
            WorkerClock::sleep_until,
        ];
        for (number, wait) in waits.into_iter().enumerate() {
            let begun_ns = MonotonicClock.now();
            let until_ns = begun_ns - SKIPPED_NS + 2_000_000;
            wait(&clock, until_ns);
            assert!(MonotonicClock.now() >= begun_ns + 2_000_000, "{number}");
            assert!(clock.now() + CLOCKS_DIFFER_NS >= until_ns, "{number}");
        }
        let before = MonotonicClock.now();
        assert!(clock.now() + SKIPPED_NS + CLOCKS_DIFFER_NS >= before);
        assert!(clock.now() + SKIPPED_NS <= MonotonicClock.now() + CLOCKS_DIFFER_NS);
    }

    /// Also a reading that has jumped is corrected to the time without what was skipped.
    #[test]
    fn corrected_reading_leaves_out_what_was_skipped() {
        const SKIPPED_NS: u64 = 1_000_000;
        let mut clock = WorkerClock {
            counter: Some(Counter::calibrate()),
            ..WorkerClock::new()
        };
        clock.skipped.ns = SKIPPED_NS;
        let before = MonotonicClock.now();
        let corrected = clock.anchor(before + 1_000_000_000_000);
        let after = MonotonicClock.now();
        assert!((before - SKIPPED_NS..=after - SKIPPED_NS).contains(&corrected));
    }

    /// The wall clock is read between two readings of the other, the middle of which counts.
    #[test]
    fn start_lies_between_the_readings_around_it() {
        let before = MonotonicClock.now();
        let start = StartInstant::now();
        let after = MonotonicClock.now();
        assert!(before + start.gap_ns / 2 <= start.monotonic_ns);
        assert!(start.monotonic_ns + start.gap_ns / 2 <= after);
    }
}
