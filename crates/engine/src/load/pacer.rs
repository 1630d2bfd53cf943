//! The schedule of an open loop: operation k starts at start + k / rate, on any free worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// At most this many groups of starts that no worker made: an error of a millionth of a run does
/// not distort a latency.
const WAITING_GROUPS: u64 = 1_000_000;

/// A schedule shared by all workers of a workload.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    start_ns: u64,
    interval_ns: f64,
    next: Arc<AtomicU64>,
}

impl Pacer {
    /// `rate` operations per second from `start_ns` on.
    pub(crate) fn new(start_ns: u64, rate: f64) -> Self {
        Self {
            start_ns,
            interval_ns: 1e9 / rate,
            next: Arc::new(AtomicU64::new(0)),
        }
    }

    /// The same schedule, counted from another start. Only before the first operation.
    pub(crate) fn starting_at(mut self, start_ns: u64) -> Self {
        self.start_ns = start_ns;
        self
    }

    fn time_of(&self, ticket: u64) -> u64 {
        self.start_ns + (ticket as f64 * self.interval_ns) as u64
    }

    /// The intended start of the next operation, when it is due; taken by the caller.
    pub(crate) fn take_due(&self, now_ns: u64) -> Option<u64> {
        let mut ticket = self.next.load(Ordering::Relaxed);
        loop {
            let intended = self.time_of(ticket);
            if intended > now_ns {
                return None;
            }
            match self.next.compare_exchange_weak(
                ticket,
                ticket + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(intended),
                Err(seen) => ticket = seen,
            }
        }
    }

    /// The intended start of the next operation, due or not; taken by the caller.
    pub(crate) fn take_next(&self) -> u64 {
        self.time_of(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// The starts from `from_ns` to `until_ns` that no worker has taken: for each group how long it
    /// has waited, and its size.
    pub(crate) fn waiting(
        &self,
        from_ns: u64,
        until_ns: u64,
    ) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ticket_at =
            |ns: u64| (ns.saturating_sub(self.start_ns) as f64 / self.interval_ns).ceil() as u64;
        let (first, end) = (
            self.next.load(Ordering::Relaxed).max(ticket_at(from_ns)),
            ticket_at(until_ns),
        );
        let group = end.saturating_sub(first).div_ceil(WAITING_GROUPS).max(1);
        (first..end).step_by(group as usize).map(move |ticket| {
            let count = group.min(end - ticket);
            // The start in the middle stands for its group.
            (
                until_ns.saturating_sub(self.time_of(ticket + count / 2)),
                count,
            )
        })
    }

    /// When the next operation is due.
    pub(crate) fn next_due_ns(&self) -> u64 {
        self.time_of(self.next.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pacer_schedule_does_not_drift_and_is_shared() {
        let pacer = Pacer::new(1_000, 3.0);
        let other = pacer.clone();
        assert_eq!(pacer.take_due(999), None);
        assert_eq!(pacer.take_due(1_000), Some(1_000));
        assert_eq!(other.take_due(1_000), None);
        assert_eq!(other.next_due_ns(), 1_000 + 333_333_333);
        // After a stall the pacer still returns every missed start, with its intended time.
        assert_eq!(pacer.clone().take_next(), 333_334_333);
        let late: Vec<u64> = std::iter::from_fn(|| other.take_due(1_000_001_000)).collect();
        assert_eq!(late, [666_667_666, 1_000_001_000]);
    }

    #[test]
    fn pacer_reports_starts_no_worker_made() {
        let pacer = Pacer::new(1_000, 1e9);
        assert_eq!(
            [pacer.take_next(), pacer.take_next(), pacer.take_next()],
            [1_000, 1_001, 1_002]
        );
        // Starts 0 to 2 are taken, 3 is before the measured time, 8 is not due yet.
        assert_eq!(
            pacer.waiting(1_004, 1_008).collect::<Vec<_>>(),
            [(4, 1), (3, 1), (2, 1), (1, 1)]
        );
        assert_eq!(pacer.waiting(0, 1_003).count(), 0);
        let many: Vec<(u64, u64)> = pacer.waiting(0, 3_000_001_000).collect();
        assert_eq!(
            many.iter().map(|(_, count)| count).sum::<u64>(),
            3_000_000_000 - 3
        );
        assert!(many.len() <= 1_000_000 && many.is_sorted_by(|a, b| a.0 > b.0));
    }
}
