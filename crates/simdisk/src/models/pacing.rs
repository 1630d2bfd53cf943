//! A hard limit of operations per second: one queue, evenly spaced.

/// A server that takes 1/`iops` for each operation, one after the other.
#[derive(Debug, Clone)]
pub struct Pacing {
    interval_ns: f64,
    /// The time at which the last operation has passed.
    free_ns: f64,
}

impl Pacing {
    /// `iops` operations per second (at least one).
    pub fn new(iops: u64) -> Self {
        Self {
            interval_ns: 1e9 / iops.max(1) as f64,
            free_ns: 0.0,
        }
    }

    /// Returns the time at which an operation that arrived at `arrival_ns` has passed.
    pub fn pass(&mut self, arrival_ns: u64) -> u64 {
        self.free_ns = self.free_ns.max(arrival_ns as f64) + self.interval_ns;
        self.free_ns.round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pacing_rate_is_exact_for_fractional_interval() {
        let mut pacing = Pacing::new(3000);
        let last = (0..30_000).map(|_| pacing.pass(0)).last();
        assert!(
            last.is_some_and(|ns| ns.abs_diff(10_000_000_000) <= 1),
            "{last:?}"
        );
    }

    #[test]
    fn pacing_does_not_accumulate_idle_time() {
        let mut pacing = Pacing::new(1000);
        assert_eq!(pacing.pass(0), 1_000_000);
        assert_eq!(pacing.pass(10_000_000), 11_000_000);
        assert_eq!(pacing.pass(10_000_000), 12_000_000);
    }
}
