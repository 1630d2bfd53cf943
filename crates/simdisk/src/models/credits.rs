//! Burst credits: a bucket of operations that fills at the baseline rate and empties at the burst
//! rate, as cloud volumes have. Must not know what the operations do.

/// The numbers of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credits {
    /// Operations in the full bucket, which it is at the start.
    pub operations: u64,
    /// Operations per second while credits last.
    pub burst_iops: u64,
    /// Operations per second for ever.
    pub baseline_iops: u64,
}

/// A bucket in use.
#[derive(Debug, Clone)]
pub struct CreditBucket {
    credits: Credits,
    level: f64,
    level_at_ns: f64,
    free_ns: f64,
}

impl CreditBucket {
    /// A full bucket.
    pub fn new(credits: Credits) -> Self {
        Self {
            credits,
            level: credits.operations as f64,
            level_at_ns: 0.0,
            free_ns: 0.0,
        }
    }

    /// When an operation that arrived at `arrival_ns` has passed.
    pub fn pass(&mut self, arrival_ns: u64) -> u64 {
        let per_ns = self.credits.baseline_iops.max(1) as f64 / 1e9;
        self.free_ns =
            self.free_ns.max(arrival_ns as f64) + 1e9 / self.credits.burst_iops.max(1) as f64;
        self.fill(per_ns);
        if self.level < 1.0 {
            self.free_ns += (1.0 - self.level) / per_ns;
            self.fill(per_ns);
            self.level = self.level.max(1.0);
        }
        self.level -= 1.0;
        self.free_ns.round() as u64
    }

    fn fill(&mut self, per_ns: f64) {
        self.level = (self.level + (self.free_ns - self.level_at_ns) * per_ns)
            .min(self.credits.operations.max(1) as f64);
        self.level_at_ns = self.free_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GP2: Credits = Credits {
        operations: 5000,
        burst_iops: 3000,
        baseline_iops: 500,
    };

    /// Operations passed by `until_ns` when asked for as many as possible.
    fn passed(until_ns: u64) -> u64 {
        let mut bucket = CreditBucket::new(GP2);
        (0..)
            .map(|_| bucket.pass(0))
            .take_while(|ns| *ns <= until_ns)
            .count() as u64
    }

    #[test]
    fn credits_allow_burst_until_spent() {
        // 5000 credits lose 3000 − 500 each second: 2 s at 3000.
        assert_eq!(passed(1_000_000_000), 3000);
        assert!(passed(2_000_000_000).abs_diff(6000) <= 1);
    }

    #[test]
    fn credits_fall_to_baseline() {
        assert!((passed(12_000_000_000) - passed(2_000_000_000)).abs_diff(5000) <= 1);
    }

    #[test]
    fn credits_refill_up_to_capacity() {
        let mut bucket = CreditBucket::new(GP2);
        let empty_ns = (0..6100).map(|_| bucket.pass(0)).last().unwrap();
        let later = empty_ns + 3600 * 1_000_000_000;
        let burst = (0..)
            .map(|_| bucket.pass(later))
            .take_while(|ns| *ns <= later + 2_000_000_000)
            .count() as u64;
        assert!(burst.abs_diff(6000) <= 1, "{burst}");
    }
}
