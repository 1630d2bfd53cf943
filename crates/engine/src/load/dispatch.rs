//! Counts this program's own delay in an open loop: how long after its intended start it sends an
//! operation, if a slot was free at that start.
//!
//! A worker that was kept off its processor finds many starts due at once, and the completions of
//! the same time. Only as many of the starts as there were free slots before would have been sent
//! in time; the others would have waited for these completions.

use diskproof_model::histogram::LatencyHistogram;

/// The delays of a worker, or of several.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dispatch {
    /// One delay for each operation that found a slot free, zero included.
    pub delays: LatencyHistogram,
    /// Operations that took longer than the limit, and would not have without their delay.
    pub late: u64,
}

impl Dispatch {
    /// Adds those of another worker.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.delays.merge(&other.delays);
        self.late += other.late;
    }

    /// Counts an operation that was sent `delay_ns` after its intended start, and ended `total_ns`
    /// after it, if it exceeds `limit_ns` only by its delay.
    pub(crate) fn count_late(&mut self, delay_ns: u64, total_ns: u64, limit_ns: u64) {
        let undelayed_ns = total_ns.saturating_sub(delay_ns);
        self.late += u64::from(total_ns > limit_ns && undelayed_ns <= limit_ns);
    }
}

/// The slots of a worker that are known to be free since before it looked for completions.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SpareSlots {
    left: usize,
    /// `None` before the first look.
    looked_ns: Option<u64>,
}

impl SpareSlots {
    /// Notes that the worker looks for completions, or for starts, at `now`, and that so many slots
    /// are free before that. Only the first look of an instant counts: what the worker finds then
    /// was not free before.
    #[inline(always)]
    pub(crate) fn look(&mut self, now: u64, free: usize) {
        if self.looked_ns.is_none_or(|looked_ns| now > looked_ns) {
            (self.left, self.looked_ns) = (free, Some(now));
        }
    }

    /// Notes that an operation starts at `now`, when so many slots are free. Returns true if one of
    /// them was free before the worker looked.
    pub(crate) fn take(&mut self, now: u64, free: usize) -> bool {
        self.look(now, free);
        let was_free = self.left > 0;
        self.left = self.left.saturating_sub(1);
        was_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slots_that_were_free_before_a_look_are_spare() {
        let mut spare = SpareSlots::default();
        // Four slots, three of them in use; then two of these become free at one look.
        assert!(spare.take(10, 4) && spare.take(10, 3) && spare.take(10, 2));
        spare.look(20, 1);
        spare.look(20, 2);
        assert!(spare.take(20, 3));
        assert!(!spare.take(20, 2) && !spare.take(20, 1));
        // All are in use when the next one becomes free.
        spare.look(30, 0);
        assert!(!spare.take(30, 1));
        // It stays free, so that a later start finds it.
        spare.look(40, 0);
        assert!(spare.take(50, 1));
    }

    #[test]
    fn operation_that_is_late_by_itself_is_not_this_programs() {
        let mut dispatch = Dispatch::default();
        dispatch.count_late(10, 100, 95);
        assert_eq!(dispatch.late, 1);
        dispatch.count_late(10, 110, 95);
        dispatch.count_late(10, 95, 95);
        assert_eq!(dispatch.late, 1);
    }
}
