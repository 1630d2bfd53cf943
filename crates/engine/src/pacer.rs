//! The schedule of an open loop: operation k should start at start + k / rate, whoever is free to start it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A schedule shared by all workers of a workload.
#[derive(Debug, Clone)]
pub struct Pacer {
    start_ns: u64,
    interval_ns: f64,
    next: Arc<AtomicU64>,
}

impl Pacer {
    /// `rate` operations per second from `start_ns` on.
    pub fn new(start_ns: u64, rate: f64) -> Self {
        Self { start_ns, interval_ns: 1e9 / rate, next: Arc::new(AtomicU64::new(0)) }
    }

    /// The same schedule, counted from another start. Only before the first operation.
    pub fn starting_at(mut self, start_ns: u64) -> Self {
        self.start_ns = start_ns;
        self
    }

    fn time_of(&self, ticket: u64) -> u64 {
        self.start_ns + (ticket as f64 * self.interval_ns) as u64
    }

    /// The intended start of the next operation, when it is due; taken by the caller.
    pub fn take_due(&self, now_ns: u64) -> Option<u64> {
        let mut ticket = self.next.load(Ordering::Relaxed);
        loop {
            let intended = self.time_of(ticket);
            if intended > now_ns {
                return None;
            }
            match self.next.compare_exchange_weak(ticket, ticket + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(intended),
                Err(seen) => ticket = seen,
            }
        }
    }

    /// The intended start of the next operation, due or not; taken by the caller.
    pub fn take_next(&self) -> u64 {
        self.time_of(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// When the next operation is due.
    pub fn next_due_ns(&self) -> u64 {
        self.time_of(self.next.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_does_not_drift_and_is_shared() {
        let pacer = Pacer::new(1_000, 3.0);
        let other = pacer.clone();
        assert_eq!(pacer.take_due(999), None);
        assert_eq!(pacer.take_due(1_000), Some(1_000));
        assert_eq!(other.take_due(1_000), None);
        assert_eq!(other.next_due_ns(), 1_000 + 333_333_333);
        // After a stall every missed start is still handed out, with the time at which it should have been.
        assert_eq!(pacer.clone().take_next(), 333_334_333);
        let late: Vec<u64> = std::iter::from_fn(|| other.take_due(1_000_001_000)).collect();
        assert_eq!(late, [666_667_666, 1_000_001_000]);
    }
}
