//! A slice: one of the parts, apart in time, in which a workload is measured.

use crate::histogram::LatencyHistogram;
use crate::latency_target::LatencyTarget;
use crate::op::PerOp;
use serde::{Deserialize, Serialize};

/// The fewest slices whose variance says how well a rate is known.
pub const SLICES_MIN: usize = 3;

/// One of the parts, apart in time, in which a workload is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeSlice {
    /// Start of its measured time, in nanoseconds after the start of the run.
    pub start_ns: u64,
    /// Its measured time in nanoseconds.
    pub wall_ns: u64,
    /// Per kind of operation; only kinds that occurred.
    pub ops: PerOp<SliceOp>,
}

/// One kind of operation in a slice.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SliceOp {
    /// Operations that succeeded.
    pub count: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Latencies; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<SliceLatency>,
    /// Those that took longer than the workload's latency target; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateRequests>,
}

/// Requests, and how many of them took too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LateRequests {
    /// All of them, including those in flight at the end.
    pub requests: u64,
    /// Those that took too long.
    pub late: u64,
}

impl LateRequests {
    /// Of these latencies.
    pub fn of(latencies: &LatencyHistogram, target: &LatencyTarget) -> Self {
        let late = latencies.buckets();
        let late = late.filter(|(low, ..)| *low > target.latency_ns);
        Self {
            requests: latencies.count(),
            late: late.map(|(.., count)| count).sum(),
        }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            late: self.late + other.late,
        }
    }
}

/// Latencies of one kind of operation in a slice. A percentile with fewer than ten samples beyond
/// it is `null`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SliceLatency {
    /// Mean, in nanoseconds.
    pub mean_ns: f64,
    /// Median, in nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99 % are not longer, in nanoseconds.
    pub p99_ns: Option<u64>,
    /// 99.9 % are not longer, in nanoseconds.
    pub p99_9_ns: Option<u64>,
}

impl SliceLatency {
    /// Of these latencies; `None` of none.
    pub fn of(latencies: &LatencyHistogram) -> Option<Self> {
        (latencies.count() > 0).then(|| Self {
            mean_ns: latencies.mean_ns(),
            p50_ns: latencies.percentile(0.50),
            p99_ns: latencies.percentile(0.99),
            p99_9_ns: latencies.percentile(0.999),
        })
    }
}

impl SliceOp {
    /// So many in a time.
    pub fn of(count: u64, bytes: u64, wall_ns: u64) -> Self {
        let seconds = wall_ns.max(1) as f64 / 1e9;
        Self {
            count,
            bytes,
            iops: count as f64 / seconds,
            bytes_per_second: bytes as f64 / seconds,
            ..Self::default()
        }
    }
}
