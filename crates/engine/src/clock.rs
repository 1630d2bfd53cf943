//! The clock, and what it is worth. Real time is CLOCK_MONOTONIC, which shares its base with the kernel's block traces.

use diskproof_model::record::ClockFacts;
use std::cell::Cell;
use std::rc::Rc;

/// Nanoseconds that never go back. The zero is the clock's own.
pub trait Clock: Clone {
    /// The time now, in nanoseconds.
    fn now(&self) -> u64;
    /// Waits until the time is `until_ns`, as exactly as the clock can.
    fn wait_until(&self, until_ns: u64);
}

/// CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Default)]
pub struct MonotonicClock;

/// A sleeping thread wakes up to this much too late (timer slack, scheduling); the rest of a wait is spun.
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
        while self.now() < until_ns {
            std::hint::spin_loop();
        }
    }
}

/// A clock that stands still until it is moved: makes the whole pipeline exact in tests.
#[derive(Debug, Clone, Default)]
pub struct FakeClock {
    now_ns: Rc<Cell<u64>>,
}

impl FakeClock {
    /// Moves the time forward to `now_ns`; never back.
    pub fn move_to(&self, now_ns: u64) {
        self.now_ns.set(self.now_ns.get().max(now_ns));
    }
}

impl Clock for FakeClock {
    fn now(&self) -> u64 {
        self.now_ns.get()
    }

    fn wait_until(&self, until_ns: u64) {
        self.move_to(until_ns);
    }
}

/// Measures resolution (the smallest step seen) and cost (per reading) of the real clock, in about a millisecond.
pub fn measure() -> ClockFacts {
    const READINGS: u64 = 20_000;
    let clock = MonotonicClock;
    let start = clock.now();
    let (mut last, mut resolution_ns) = (start, u64::MAX);
    for _ in 0..READINGS {
        let now = clock.now();
        if now > last {
            resolution_ns = resolution_ns.min(now - last);
        }
        last = now;
    }
    ClockFacts { source: "CLOCK_MONOTONIC".to_owned(), resolution_ns, cost_ns: (last - start) as f64 / READINGS as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_never_ends_early() {
        let until = MonotonicClock.now() + 300_000;
        MonotonicClock.wait_until(until);
        assert!(MonotonicClock.now() >= until);
    }

    #[test]
    fn the_clock_is_measured() {
        let facts = measure();
        assert!(facts.resolution_ns >= 1 && facts.cost_ns > 0.0, "{facts:?}");
    }
}
