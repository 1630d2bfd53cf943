//! ioping's statistics over requests.

use diskproof_model::ping::{IgnoredBecause, SingleRequest};

/// Requests before a single one is called fast or slow.
const KNOWN_FROM: u64 = 5;

/// Which requests count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ValidTimes {
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
}

/// A sum over requests.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct RequestSum {
    /// When it began, in nanoseconds after the start of the run.
    pub(super) start_ns: u64,
    /// All requests.
    pub(super) count: u64,
    pub(super) valid: u64,
    pub(super) too_fast: u64,
    pub(super) too_slow: u64,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
    pub(super) sum_ns: f64,
    sum2: f64,
}

/// What follows from a sum when it ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RequestFigures {
    pub(super) sum: RequestSum,
    pub(super) avg_ns: f64,
    pub(super) mdev_ns: f64,
    pub(super) iops: f64,
    pub(super) speed: f64,
    pub(super) size: f64,
    pub(super) load_ns: u64,
    pub(super) load_iops: f64,
    pub(super) load_speed: f64,
    pub(super) load_size: f64,
}

impl RequestSum {
    /// Nothing has been counted.
    pub(super) fn from(start_ns: u64) -> Self {
        Self {
            start_ns,
            ..Self::default()
        }
    }

    /// Counts a request; the remark about it, and whether it is valid.
    pub(super) fn add(
        &mut self,
        request: &SingleRequest,
        valid: ValidTimes,
    ) -> (Option<&'static str>, bool) {
        self.count += 1;
        let ns = request.latency_ns;
        if let Some(why) = request.ignored {
            let remark = match why {
                IgnoredBecause::Warmup => "warmup",
                IgnoredBecause::Interrupted => "interrupted",
                IgnoredBecause::Late => "late",
            };
            return (Some(remark), false);
        }
        if ns < valid.min_ns {
            self.too_fast += 1;
            return (Some("too fast"), false);
        }
        if ns > valid.max_ns {
            self.too_slow += 1;
            return (Some("too slow"), false);
        }
        self.merge(&Self {
            valid: 1,
            min_ns: ns,
            max_ns: ns,
            sum_ns: ns as f64,
            sum2: (ns as f64).powi(2),
            ..Self::default()
        });
        let mean_ns = (self.sum_ns / self.valid as f64) as u64;
        match self.valid > KNOWN_FROM {
            true if ns * 2 < mean_ns => (Some("fast"), true),
            true if ns > mean_ns * 2 => (Some("slow"), true),
            _ => (None, true),
        }
    }

    /// Adds what another sum counted.
    pub(super) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.too_fast += other.too_fast;
        self.too_slow += other.too_slow;
        if other.valid > 0 {
            self.min_ns = match self.valid {
                0 => other.min_ns,
                _ => self.min_ns.min(other.min_ns),
            };
            self.max_ns = self.max_ns.max(other.max_ns);
            self.valid += other.valid;
            self.sum_ns += other.sum_ns;
            self.sum2 += other.sum2;
        }
    }

    /// The figures at this time, for requests of this size.
    pub(super) fn figures(&self, end_ns: u64, block_bytes: u64) -> RequestFigures {
        let per_second = |count: u64, ns: f64| {
            if ns > 0.0 {
                1e9 * count as f64 / ns
            } else {
                0.0
            }
        };
        let load_ns = end_ns.saturating_sub(self.start_ns);
        let (valid, bytes) = (self.valid.max(1) as f64, block_bytes as f64);
        let avg_ns = self.sum_ns / valid;
        let iops = per_second(self.valid, self.sum_ns);
        let load_iops = per_second(self.count, load_ns as f64);
        RequestFigures {
            sum: *self,
            avg_ns,
            // Rounding may make the difference negative.
            mdev_ns: (self.sum2 / valid - avg_ns * avg_ns).max(0.0).sqrt(),
            iops,
            speed: iops * bytes,
            size: self.valid as f64 * bytes,
            load_ns,
            load_iops,
            load_speed: load_iops * bytes,
            load_size: self.count as f64 * bytes,
        }
    }
}
