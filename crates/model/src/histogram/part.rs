//! The latencies of a part of a distribution, such as those of one window of time: only its filled
//! buckets, because most are empty in a short time.

use super::buckets::{VALUE_MAX, index_of};

/// A latency distribution that holds its filled buckets only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyPart {
    /// Index in [`LatencyHistogram::counts`] and count, ascending.
    pub(super) buckets: Vec<(u32, u64)>,
    pub(super) count: u64,
    pub(super) sum_ns: u128,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
}

impl Default for LatencyPart {
    fn default() -> Self {
        Self {
            buckets: Vec::new(),
            count: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }
}

impl LatencyPart {
    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all latencies in nanoseconds, exact.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Replaces the ends of the range, known to their bucket only, by the exact ones.
    pub fn with_range(mut self, min_ns: u64, max_ns: u64) -> Self {
        if self.count > 0 {
            (self.min_ns, self.max_ns) = (min_ns, max_ns);
        }
        self
    }

    /// Adds a latency that several operations had.
    pub fn record_many(&mut self, ns: u64, times: u64) {
        self.merge(&Self {
            buckets: vec![(index_of(ns.min(VALUE_MAX)) as u32, times)],
            count: times,
            sum_ns: u128::from(ns) * u128::from(times),
            min_ns: ns,
            max_ns: ns,
        });
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        let mut all = Vec::with_capacity(self.buckets.len() + other.buckets.len());
        let (mut mine, mut theirs) = (
            self.buckets.iter().copied().peekable(),
            other.buckets.iter().copied().peekable(),
        );
        loop {
            let next = match (mine.peek(), theirs.peek()) {
                (None, None) => break,
                (Some(one), Some(two)) if one.0 == two.0 => {
                    let (index, count) = (one.0, one.1 + two.1);
                    mine.next();
                    theirs.next();
                    Some((index, count))
                }
                (Some(one), Some(two)) if one.0 < two.0 => mine.next(),
                (Some(_), None) => mine.next(),
                (_, Some(_)) => theirs.next(),
            };
            all.extend(next);
        }
        self.buckets = all;
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
    }
}
