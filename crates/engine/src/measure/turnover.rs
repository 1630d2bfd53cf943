//! Decides when the measured time starts, for all workers of a run: after the warm-up, and not
//! before every request of the first fill of every queue has completed. Until then more requests
//! start than complete, and the first queue-full would lower the rate and the latency.

use diskproof_model::measurement::SERIES_INTERVAL_NS;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A warm-up is extended by a quarter of the measured time at most. Chosen, not measured, as is the
/// longest extension.
const EXTENSION_DIVISOR: u64 = 4;
/// The least extension that is allowed, however short the measured time is: a disk with 70
/// operations a second turns a queue of 32 over in 460 ms, and the slices of a short check are
/// shorter than that.
const EXTENSION_NS_MIN: u64 = 500_000_000;
/// The longest extension, also of a measurement without a time limit.
const EXTENSION_NS_MAX: u64 = 20_000_000_000;

/// Decides once for all workers when the measured time starts.
#[derive(Debug)]
pub(crate) struct MeasureStart {
    planned_ns: u64,
    /// The latest start.
    pub latest_ns: u64,
    /// Workers whose first requests have not completed.
    filling: AtomicUsize,
    /// The decision; 0 before it: no measurement starts with its run.
    decided_ns: AtomicU64,
}

impl MeasureStart {
    /// For this many workers, a warm-up that ends at `planned_ns`, and a measured time of
    /// `time_ns`.
    pub(crate) fn new(workers: usize, planned_ns: u64, time_ns: Option<u64>) -> Self {
        let extension_ns = match time_ns {
            Some(time_ns) => {
                (time_ns / EXTENSION_DIVISOR).clamp(EXTENSION_NS_MIN, EXTENSION_NS_MAX)
            }
            None => EXTENSION_NS_MAX,
        };
        Self {
            planned_ns,
            latest_ns: planned_ns + extension_ns,
            filling: AtomicUsize::new(workers),
            decided_ns: AtomicU64::new(0),
        }
    }

    /// Notes that a worker's first requests have completed by `now`, the end of one of its cells.
    /// To be called once by each worker.
    pub(crate) fn note_first_fill(&self, now: u64) {
        if self.filling.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.decide(self.planned_ns.max(now + SERIES_INTERVAL_NS));
        }
    }

    /// The start, once it is decided; at the latest shortly before the latest one. It is never
    /// within a cell that a worker has begun before it could know it.
    pub(crate) fn start_ns(&self, now: u64) -> Option<u64> {
        if now + SERIES_INTERVAL_NS >= self.latest_ns {
            self.decide(self.latest_ns);
        }
        match self.decided_ns.load(Ordering::Acquire) {
            0 => None,
            start_ns => Some(start_ns),
        }
    }

    /// Sets the start, unless it is set.
    fn decide(&self, wanted_ns: u64) {
        // Another worker may have been faster; its decision holds.
        let _ = self.decided_ns.compare_exchange(
            0,
            wanted_ns.min(self.latest_ns),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: u64 = SERIES_INTERVAL_NS;
    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn measured_time_starts_as_planned_where_queues_turn_over_in_the_warm_up() {
        let measure_start = MeasureStart::new(2, SECOND_NS, Some(8 * SECOND_NS));
        measure_start.note_first_fill(CELL);
        assert_eq!(measure_start.start_ns(CELL), None);
        measure_start.note_first_fill(2 * CELL);
        assert_eq!(measure_start.start_ns(2 * CELL), Some(SECOND_NS));
    }

    #[test]
    fn measured_time_waits_for_the_slowest_queue() {
        let measure_start = MeasureStart::new(2, SECOND_NS, Some(8 * SECOND_NS));
        measure_start.note_first_fill(CELL);
        assert_eq!(measure_start.start_ns(2 * SECOND_NS), None);
        measure_start.note_first_fill(2 * SECOND_NS);
        assert_eq!(
            measure_start.start_ns(2 * SECOND_NS),
            Some(2 * SECOND_NS + CELL)
        );
        assert_eq!(
            measure_start.start_ns(9 * SECOND_NS),
            Some(2 * SECOND_NS + CELL)
        );
    }

    #[test]
    fn measured_time_does_not_wait_for_ever() {
        let measure_start = MeasureStart::new(2, SECOND_NS, Some(8 * SECOND_NS));
        assert_eq!(measure_start.start_ns(3 * SECOND_NS - CELL - 1), None);
        assert_eq!(
            measure_start.start_ns(3 * SECOND_NS - CELL),
            Some(3 * SECOND_NS)
        );
        assert_eq!(
            MeasureStart::new(1, SECOND_NS, None).latest_ns,
            21 * SECOND_NS
        );
        // A slice of 160 ms on a disk that turns its queue over in 460 ms.
        let short = MeasureStart::new(1, 20 * CELL, Some(16 * CELL));
        assert_eq!(short.latest_ns, 20 * CELL + SECOND_NS / 2);
    }
}
