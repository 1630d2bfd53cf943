//! Parts of the time in which a workload was measured, and what is counted in them: slices, which
//! lie apart in time, and windows, which follow each other. A window has its own latencies,
//! counters and CPU time, so that every figure of a row can cover the same part. Counts over time
//! are in the series of each operation.

use crate::histogram::{LatencyHistogram, LatencyPart};
use crate::op::{BlockUse, OpKind, PerOp};
use crate::shape::LatencyTarget;
use crate::together::SliceSlot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Length of the windows of a short measurement, ten cells of its series. Longer measurements have
/// longer ones, by [`WINDOWS_MAX`].
pub const WINDOW_NS: u64 = 100_000_000;
/// The most windows. When there are this many, neighbours are merged and the length doubles.
pub const WINDOWS_MAX: usize = 64;

/// One part of the measured time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Start in nanoseconds after the start of the measured time.
    pub start_ns: u64,
    /// End in nanoseconds after the start of the measured time.
    pub end_ns: u64,
    /// Latencies of the operations that completed in it, per kind.
    pub ops: PerOp<WindowLatency>,
    /// Requests in flight, integrated over the window, all workers.
    pub busy_ns: u64,
    /// Nanoseconds for which threads that were ready to run waited for a processor, summed.
    pub waited_ns: u64,
    /// Times that one of them was put on a processor.
    pub turns: u64,
    /// Worker threads that the two above are of.
    pub threads: u64,
    /// CPU time, shared out as in [`crate::measurement::Measurement::cpu`].
    pub cpu: CpuTime,
    /// Bytes that this program requested from the disks below. In a record, those of the first of
    /// several windows include the warm-up.
    pub asked: ByteCount,
    /// Load of the disks below; `None` where it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disks: Option<DiskCounts>,
}

/// Latencies of one kind of operation in a window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WindowLatency {
    /// Latencies from before the submission to the reaping.
    #[serde(
        default,
        with = "diskproof_samples::packed",
        skip_serializing_if = "LatencyPart::is_empty"
    )]
    #[schemars(with = "String")]
    pub latency: LatencyPart,
    /// Latencies from the intended start; empty in a closed loop.
    #[serde(
        default,
        with = "diskproof_samples::packed",
        skip_serializing_if = "LatencyPart::is_empty"
    )]
    #[schemars(with = "String")]
    pub intended: LatencyPart,
}

/// Load of the disks below a target, by the kernel's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DiskCounts {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Read requests completed.
    pub read_ops: u64,
    /// Write requests completed.
    pub write_ops: u64,
    /// Flushes completed, where the kernel counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush_ops: Option<u64>,
    /// Bytes that were trimmed:
    /// [`DeviceUse::trim_bytes`](crate::measurement::DeviceUse::trim_bytes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim_bytes: Option<u64>,
    /// Milliseconds that requests spent in the disks' queues, summed, where the kernel times them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_ms: Option<u64>,
}

impl DiskCounts {
    /// Combines each field of two with a function.
    /// A field that one of them lacks is absent.
    fn zip(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            read_bytes: combine(self.read_bytes, other.read_bytes),
            write_bytes: combine(self.write_bytes, other.write_bytes),
            read_ops: combine(self.read_ops, other.read_ops),
            write_ops: combine(self.write_ops, other.write_ops),
            flush_ops: combine_known(self.flush_ops, other.flush_ops, &combine),
            trim_bytes: combine_known(self.trim_bytes, other.trim_bytes, &combine),
            queued_ms: combine_known(self.queued_ms, other.queued_ms, &combine),
        }
    }

    /// The sum of both.
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// The increase since `before`.
    pub fn since(self, before: Self) -> Self {
        self.zip(before, u64::saturating_sub)
    }

    /// Scales each field by a factor, rounded.
    pub fn times(self, factor: f64) -> Self {
        self.zip(self, |count, _| (count as f64 * factor).round() as u64)
    }
}

/// Combines two numbers; `None` where one of them is unknown.
fn combine_known(
    one: Option<u64>,
    other: Option<u64>,
    combine: impl Fn(u64, u64) -> u64,
) -> Option<u64> {
    Some(combine(one?, other?))
}

impl WindowLatency {
    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.intended.merge(&other.intended);
    }
}

impl Window {
    /// End minus start.
    pub fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Requests in flight, averaged over it.
    pub fn depth(&self) -> f64 {
        self.busy_ns as f64 / self.length_ns().max(1) as f64
    }

    /// Ends it earlier or later. What is cut off had the same depth; what is added was idle.
    pub fn end_at(&mut self, end_ns: u64) {
        let new_end_ns = end_ns.max(self.start_ns);
        if new_end_ns < self.end_ns {
            let share_kept = (new_end_ns - self.start_ns) as f64 / self.length_ns() as f64;
            self.busy_ns = (self.busy_ns as f64 * share_kept).round() as u64;
        }
        self.end_ns = new_end_ns;
    }

    /// Extends it by the window that follows it.
    pub fn append(&mut self, next: &Self) {
        self.busy_ns += next.busy_ns;
        self.end_ns = next.end_ns;
        self.merge_latencies(next);
        self.waited_ns += next.waited_ns;
        self.turns += next.turns;
        self.threads = self.threads.max(next.threads);
        self.cpu += next.cpu;
        self.asked += next.asked;
        self.disks = match (self.disks, next.disks) {
            (Some(disks), Some(next_disks)) => Some(disks.plus(next_disks)),
            (None, _) | (_, None) => None,
        };
    }

    /// Adds the window of another worker over the same time.
    pub fn add_worker(&mut self, other: &Self) {
        self.merge_latencies(other);
        self.busy_ns += other.busy_ns;
        self.waited_ns += other.waited_ns;
        self.turns += other.turns;
        self.threads += other.threads;
    }

    fn merge_latencies(&mut self, other: &Self) {
        for (kind, latency) in &other.ops {
            self.ops.entry(*kind).or_default().merge(latency);
        }
    }
}

/// Merges each pair of neighbours.
pub fn merge_pairs(windows: &[Window]) -> Vec<Window> {
    windows.chunks(2).map(joined).collect()
}

/// One window in place of consecutive ones. The caller must pass at least one.
pub fn joined(windows: &[Window]) -> Window {
    debug_assert!(!windows.is_empty());
    let mut sum = windows[0].clone();
    for next in &windows[1..] {
        sum.append(next);
    }
    sum
}

/// CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CpuTime {
    /// Time in user mode, in nanoseconds.
    pub user_ns: u64,
    /// Time in the kernel, in nanoseconds.
    pub system_ns: u64,
}

impl AddAssign for CpuTime {
    fn add_assign(&mut self, other: Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
    }
}

/// Bytes by direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ByteCount {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes trimmed. A trim moves no data.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub trim_bytes: u64,
}

impl ByteCount {
    /// Adds the bytes of operations of this kind.
    pub fn add(&mut self, kind: OpKind, bytes: u64) {
        match kind.blocks() {
            BlockUse::Reads => self.read_bytes += bytes,
            BlockUse::Writes => self.write_bytes += bytes,
            BlockUse::Drops => self.trim_bytes += bytes,
            BlockUse::Keeps => {}
        }
    }

    /// Bytes moved and trimmed.
    pub fn moved_or_trimmed(self) -> u64 {
        self.total() + self.trim_bytes
    }

    /// Bytes moved in both directions.
    pub fn total(self) -> u64 {
        self.read_bytes + self.write_bytes
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.write_bytes = self.write_bytes.saturating_add(other.write_bytes);
        self.trim_bytes = self.trim_bytes.saturating_add(other.trim_bytes);
    }
}

/// Requests and the bytes that they moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MovedTotal {
    /// Requests, as this program sent them.
    pub requests: u64,
    /// Bytes that were moved.
    pub bytes: u64,
}

/// The fewest slices whose variance shows how well a rate is known.
pub const SLICES_MIN: usize = 3;

/// One of the parts, apart in time, in which a workload is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeSlice {
    /// Start of its measured time, in nanoseconds after the start of the run.
    pub start_ns: u64,
    /// Measured time of the slice in nanoseconds.
    pub wall_ns: u64,
    /// Per kind of operation; only kinds that occurred.
    pub ops: PerOp<SliceOp>,
    /// The slot of the timetable, of a run together with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<SliceSlot>,
}

/// One kind of operation in a slice.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
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
    /// Operations that took longer than the workload's latency target; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateRequests>,
}

/// Requests, and how many of them took too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LateRequests {
    /// Requests of the slice, including those in flight at the end.
    pub requests: u64,
    /// Requests that took longer than the target.
    pub late: u64,
}

impl LateRequests {
    /// Counts those that took longer than the target.
    pub fn count(latencies: &LatencyHistogram, target: &LatencyTarget) -> Self {
        let mut late = 0;
        for bucket in latencies.buckets() {
            if bucket.low_ns > target.latency_ns {
                late += bucket.count;
            }
        }
        Self {
            requests: latencies.count(),
            late,
        }
    }

    /// The sum of two slices.
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            late: self.late.saturating_add(other.late),
        }
    }
}

/// Latencies of one kind of operation in a slice. A percentile with fewer than ten samples beyond
/// it is `null`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SliceLatency {
    /// Mean latency in nanoseconds.
    pub mean_ns: f64,
    /// Median latency in nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99 % are not longer, in nanoseconds.
    pub p99_ns: Option<u64>,
    /// 99.9 % are not longer, in nanoseconds.
    pub p99_9_ns: Option<u64>,
}

impl SliceLatency {
    /// The figures of a distribution; `None` without a latency.
    pub fn from_histogram(latencies: &LatencyHistogram) -> Option<Self> {
        if latencies.count() == 0 {
            return None;
        }
        Some(Self {
            mean_ns: latencies.mean_ns(),
            p50_ns: latencies.percentile(0.50),
            p99_ns: latencies.percentile(0.99),
            p99_9_ns: latencies.percentile(0.999),
        })
    }
}

impl SliceOp {
    /// The rates of so many operations and bytes in this time.
    pub fn from_counts(count: u64, bytes: u64, wall_ns: u64) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::OpKind;

    fn window(index: u64, ns: u64) -> Window {
        let mut latency = WindowLatency::default();
        latency.latency.record_many(ns, 1);
        Window {
            start_ns: index * WINDOW_NS,
            end_ns: (index + 1) * WINDOW_NS,
            ops: PerOp::from([(OpKind::Read, latency)]),
            busy_ns: index * WINDOW_NS,
            waited_ns: 5,
            turns: 1,
            threads: 2,
            disks: Some(DiskCounts {
                read_bytes: 7,
                ..DiskCounts::default()
            }),
            ..Window::default()
        }
    }

    #[test]
    fn merged_windows_keep_sums() {
        let all: Vec<Window> = (0..5).map(|index| window(index, 100 + index)).collect();
        let merged = merge_pairs(&all);
        assert_eq!(merged.len(), 3);
        let first = &merged[0];
        assert_eq!((first.start_ns, first.end_ns), (0, 2 * WINDOW_NS));
        assert_eq!(first.depth(), 0.5);
        assert_eq!(first.waited_ns, 10);
        assert_eq!(first.threads, 2);
        assert_eq!(first.ops[&OpKind::Read].latency.count(), 2);
        assert_eq!(first.disks.map(|disks| disks.read_bytes), Some(14));
        assert_eq!(merged[2], all[4]);
    }

    #[test]
    fn workers_of_a_window_add_up() {
        let mut both = window(3, 100);
        both.add_worker(&window(3, 200));
        assert_eq!((both.depth(), both.waited_ns, both.threads), (6.0, 10, 4));
        assert_eq!(both.ops[&OpKind::Read].latency.sum_ns(), 300);
    }

    #[test]
    fn counts_of_disks_scale_with_time() {
        let counts = DiskCounts {
            read_ops: 9,
            flush_ops: Some(4),
            trim_bytes: None,
            ..DiskCounts::default()
        };
        let half = counts.plus(counts).since(counts).times(0.5);
        assert_eq!(half.read_ops, 5);
        assert_eq!(half.flush_ops, Some(2));
        assert_eq!(half.queued_ms, None);
    }
}
