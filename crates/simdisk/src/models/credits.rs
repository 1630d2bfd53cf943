//! Burst credits: a bucket of operations or of bytes that fills at the baseline rate and empties at
//! the burst rate, as cloud volumes have. It refills in every pause and under every smaller load.

/// The numbers of a bucket, in operations or in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credits {
    /// The most that the bucket holds, which it has at the start.
    pub amount: u64,
    /// Rate per second while credits last.
    pub burst_per_s: u64,
    /// Rate per second for ever.
    pub baseline_per_s: u64,
}

/// A bucket in use.
#[derive(Debug, Clone)]
pub struct CreditBucket {
    credits: Credits,
    /// The credits in the bucket at `level_at_ns`.
    level: f64,
    level_at_ns: f64,
    /// The time at which the last operation has passed.
    free_ns: f64,
}

impl CreditBucket {
    /// A bucket that is full.
    pub fn new(credits: Credits) -> Self {
        Self {
            credits,
            level: credits.amount as f64,
            level_at_ns: 0.0,
            free_ns: 0.0,
        }
    }

    /// Returns the time at which so many operations or bytes that arrived at `arrival_ns` have
    /// passed.
    pub fn pass(&mut self, arrival_ns: u64, amount: u64) -> u64 {
        let amount = amount as f64;
        let per_ns = self.credits.baseline_per_s.max(1) as f64 / 1e9;
        let burst_per_ns = self.credits.burst_per_s.max(1) as f64 / 1e9;
        self.free_ns = self.free_ns.max(arrival_ns as f64) + amount / burst_per_ns;
        self.fill(per_ns);
        if self.level < amount {
            self.free_ns += (amount - self.level) / per_ns;
            self.fill(per_ns);
            self.level = self.level.max(amount);
        }
        self.level -= amount;
        self.free_ns.round() as u64
    }

    /// Fills the bucket up to `free_ns` at the baseline rate.
    fn fill(&mut self, per_ns: f64) {
        self.level = (self.level + (self.free_ns - self.level_at_ns) * per_ns)
            .min(self.credits.amount.max(1) as f64);
        self.level_at_ns = self.free_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GP2: Credits = Credits {
        amount: 5000,
        burst_per_s: 3000,
        baseline_per_s: 500,
    };

    /// Operations passed by `until_ns` when asked for as many as possible.
    fn passed(until_ns: u64) -> u64 {
        let mut bucket = CreditBucket::new(GP2);
        (0..)
            .map(|_| bucket.pass(0, 1))
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
        let empty_ns = (0..6100).map(|_| bucket.pass(0, 1)).last().unwrap();
        let later = empty_ns + 3600 * 1_000_000_000;
        let burst = (0..)
            .map(|_| bucket.pass(later, 1))
            .take_while(|ns| *ns <= later + 2_000_000_000)
            .count() as u64;
        assert!(burst.abs_diff(6000) <= 1, "{burst}");
    }

    /// 64 MB at 100 instead of 60 MB/s: 1.6 s, in which 160 MB pass; a block may exceed the level.
    #[test]
    fn credits_in_bytes_fall_to_baseline() {
        let credits = Credits {
            amount: 64_000_000,
            burst_per_s: 100_000_000,
            baseline_per_s: 60_000_000,
        };
        let mut bucket = CreditBucket::new(credits);
        let blocks = (0..)
            .map(|_| bucket.pass(0, 1_000_000))
            .take_while(|ns| *ns <= 11_600_000_000)
            .count() as u64;
        assert!(blocks.abs_diff(160 + 600) <= 2, "{blocks}");
    }
}
