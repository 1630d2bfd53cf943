//! A latency that most requests must meet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A latency that a share of the requests must meet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyTarget {
    /// The latency in nanoseconds.
    pub latency_ns: u64,
    /// The share, in percent of the requests.
    pub percent: f64,
    /// Nanoseconds for which a depth is measured at a time.
    pub window_ns: u64,
}

impl LatencyTarget {
    /// True if so many late ones of these requests are allowed. False without requests.
    pub fn holds(&self, requests: u64, late: u64) -> bool {
        // 100 - 99.9 is not exactly 0.1.
        const ROUNDING: f64 = 1e-9;
        let allowed = requests as f64 * (100.0 - self.percent) / 100.0;
        requests > 0 && late as f64 <= allowed * (1.0 + ROUNDING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_all_requests() {
        let target = |percent| LatencyTarget {
            latency_ns: 1,
            percent,
            window_ns: 1,
        };
        assert!(target(99.9).holds(1000, 1) && !target(99.9).holds(1000, 2));
        assert!(target(99.9).holds(7_000_000, 7000) && !target(99.9).holds(7_000_000, 7001));
        assert!(target(100.0).holds(5, 0) && !target(100.0).holds(5_000_000, 1));
        assert!(!target(50.0).holds(0, 0), "nothing was seen");
    }
}
