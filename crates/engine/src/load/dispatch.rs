//! This program's own delay in an open loop: how long after its intended start it sends an
//! operation that found a slot free then.

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

    /// Counts an operation that was sent `delay_ns` after its intended start, and took `total_ns`
    /// from there on.
    pub(crate) fn count_late(&mut self, delay_ns: u64, total_ns: u64, limit_ns: u64) {
        let undelayed_ns = total_ns.saturating_sub(delay_ns);
        self.late += u64::from(total_ns > limit_ns && undelayed_ns <= limit_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
