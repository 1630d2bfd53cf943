//! The measurement of one workload on one target by the engine: counts, distributions and counters,
//! without judgement.

use crate::divisor::greatest_common_divisor;
use crate::histogram::LatencyHistogram;
use crate::ping::SingleRequest;
use crate::request_log::RequestLog;
use crate::series::TimeSeries;
use crate::window::{TimeSlice, Window};
use crate::workload::{CachePolicy, EngineChoice, EngineKind, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

pub use crate::op::{OpKind, PerOp};
pub use crate::window::{ByteCount, CpuTime, MovedTotal};

/// From this share of the requested depth on, the depth was reached: starting, ending and reaping
/// in batches cost a little of it.
pub const DEPTH_HELD_MIN: f64 = 0.8;

/// One workload on one target, as it went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Index into the plan's targets.
    pub target: usize,
    /// The workload of the plan.
    pub workload: Workload,
    /// The span that was really used: first byte and length.
    pub span_start_bytes: u64,
    /// Length of the span that was really used.
    pub span_bytes: u64,
    /// The engine that carried the operations, and those that could not.
    pub engine: EngineUse,
    /// The cache policy that was asked for, and the one that was used.
    pub cache: CacheUse,
    /// Start of the measured time, nanoseconds after the start of the run.
    pub start_ns: u64,
    /// Measured time in nanoseconds: from the end of the warm-up until no more requests were
    /// started (exactly the time asked for; to whole cells where it was told to end, by
    /// precision or the user) or the last one was done (bytes, operations); a final sync included.
    /// Workloads that ran together on a target have one final sync between them: it is among the
    /// operations of each, and its time counts for each in full, as that of the writes before
    /// it does.
    pub wall_ns: u64,
    /// CPU time over warm-up and measured time, scaled to the measured time: that of its own
    /// threads, and of what else the process used (the kernel's threads that work for
    /// io_uring, this program's display) the part of its operations among all.
    pub cpu: CpuTime,
    /// Per kind of operation; only kinds that occurred.
    pub ops: PerOp<OpMeasurement>,
    /// Bytes that this program requested from the disks below between the two snapshots of their
    /// counters. Includes the warm-up, and what other targets on the same disks and workloads that
    /// ran together with it requested in that time.
    pub asked: ByteCount,
    /// Load of the devices and of other processes in the same time.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub device: DeviceUse,
    /// Requests in flight, averaged over the measured time, all workers: the latencies within it
    /// over its length. Of those in flight at either end, only the part within counts.
    pub achieved_depth: f64,
    /// Time between the end of one request and the start of the next at depth 1 that no latency
    /// covers, in nanoseconds per operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_time_ns: Option<f64>,
    /// Waits of the workers' threads for processors; zeros where the system does not tell.
    pub starved: Starvation,
    /// Operations per second that the same workers reach with no I/O at all; `None` where the
    /// target is so far below that it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_iops: Option<f64>,
    /// Read blocks that were looked at, and those of them that contained only zeros.
    pub zero_blocks: ZeroSample,
    /// Unwritten bytes (holes, preallocated extents) in the span before the workload began; `None`
    /// where it cannot be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten_bytes: Option<u64>,
    /// Open loop only: operations that started more than 1 ms after their intended time, or were
    /// that late and not started when the measured time ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_starts: Option<u64>,
    /// Open loop only: 99 % of the operations that found one of its requests free at their intended
    /// time were sent within this time after it, in nanoseconds. It is this program's own delay;
    /// absent where fewer than 1000 found one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_p99_ns: Option<u64>,
    /// Open loop with a latency target only: operations that were late by this program's own delay,
    /// and would not have been without it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub dispatch_late: u64,
    /// True if io_uring hands this target's I/O to worker threads, or would, where another
    /// interface was taken for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub punted: Option<bool>,
    /// Blocks whose content was not what had been written; at most the first 100 offsets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifyResult>,
    /// The hang of the target that ended the wait for its requests; absent where it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hang: Option<Hang>,
    /// The longest time in which the target answered nothing while it was made ready for the
    /// workload, or for one of its slices, in nanoseconds; 0 where none was as long as
    /// [`SILENCE_NS_MIN`]. Its very first answer of the run does not count, which
    /// `first_answer_ns` has.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub silence_before_ns: u64,
    /// The longest time in which requests of the workload were in flight and the target answered
    /// nothing, of those that began in the warm-up, or that lasted beyond the measured time of a
    /// slice, in nanoseconds; 0 where none was as long as [`SILENCE_NS_MIN`].
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub silence_around_ns: u64,
    /// The time that the target took for its very first answer of the run, in nanoseconds: a disk
    /// may have slept before. 0 where it was shorter than [`SILENCE_NS_MIN`], or where another
    /// workload has had that answer.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub first_answer_ns: u64,
    /// Times in which this program did not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interruptions: Vec<Interruption>,
    /// The first write of the file that this workload overwrites, where it came just before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_write: Option<Box<Measurement>>,
    /// The writes that filled the file just before; absent where it was full already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub laid_out: Option<MovedTotal>,
    /// The measured time in consecutive windows; empty where a worker timed out. A window ends
    /// where a cell does, the last one with the measured time. In a record there are some only
    /// where the figures are about a later part of the time: the windows before that part, and
    /// it, without its latencies, which are those of `ops`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// The parts, apart in time, in which it was measured; empty where it was measured in one go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<TimeSlice>,
    /// The time at which its first worker began, warm-up included, in nanoseconds after the start
    /// of the run; `None` before. In a record, `slices` have it.
    #[serde(skip)]
    pub began_ns: Option<u64>,
    /// The time from the end of the measured time until the last of its operations was done, in
    /// nanoseconds: requests in flight at the end are waited for, and count. In no record.
    #[serde(skip)]
    pub overrun_ns: u64,
    /// The measured time that was planned, in nanoseconds, where the time limit of the run or its
    /// early end left clearly less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened_from_ns: Option<u64>,
    /// The newest requests of a ping, in order; empty for every other workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<SingleRequest>,
    /// Its requests one by one, where the workload keeps them. In no record.
    #[serde(skip)]
    pub request_log: Option<Arc<RequestLog>>,
    /// The steadiness of the rate, where that ends the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyOutcome>,
    /// The reason why the workload ended.
    pub stopped: StopReason,
}

impl Measurement {
    /// The time until its last operation was done, in nanoseconds. Tools that look at the clock
    /// between two operations divide by it.
    pub fn time_to_last_done_ns(&self) -> u64 {
        self.wall_ns.saturating_add(self.overrun_ns)
    }

    /// Returns `true` if it ended because the reader of its output had gone.
    pub fn is_unread(&self) -> bool {
        self.stopped == StopReason::Unread
    }

    /// Bytes of all requests. A commit is a write and its sync, whose bytes are those of the write.
    pub fn moved_bytes(&self) -> u64 {
        let mut moved_bytes = 0;
        for (kind, op) in &self.ops {
            if kind.is_request() {
                moved_bytes += op.bytes;
            }
        }
        moved_bytes
    }

    /// The requests that each worker kept in flight where the target was too slow for the depth of
    /// the workload; `None` where that depth was reached. One slow first request limits the slice
    /// after it, not the others.
    pub fn limited_depth(&self) -> Option<u32> {
        let limit = self.engine.depth?;
        let held = self.achieved_depth / f64::from(self.workload.workers.max(1));
        if held <= f64::from(limit) {
            return Some(limit);
        }
        if held >= DEPTH_HELD_MIN * f64::from(self.workload.depth) {
            return None;
        }
        Some(held.round() as u32)
    }

    /// A workload on target 0 over this span, of which nothing is measured yet.
    pub fn unmeasured(
        workload: Workload,
        span: MeasuredSpan,
        engine: EngineUse,
        cache: CacheUse,
    ) -> Self {
        Self {
            target: 0,
            workload,
            span_start_bytes: span.start_bytes,
            span_bytes: span.length_bytes,
            engine,
            cache,
            start_ns: 0,
            wall_ns: 0,
            cpu: CpuTime::default(),
            ops: PerOp::new(),
            asked: ByteCount::default(),
            device: DeviceUse::default(),
            achieved_depth: 0.0,
            dead_time_ns: None,
            starved: Starvation::default(),
            ceiling_iops: None,
            zero_blocks: ZeroSample::default(),
            unwritten_bytes: None,
            missed_starts: None,
            dispatch_p99_ns: None,
            dispatch_late: 0,
            punted: None,
            verify: None,
            hang: None,
            silence_before_ns: 0,
            silence_around_ns: 0,
            first_answer_ns: 0,
            interruptions: Vec::new(),
            first_write: None,
            laid_out: None,
            windows: Vec::new(),
            slices: Vec::new(),
            began_ns: None,
            overrun_ns: 0,
            shortened_from_ns: None,
            requests: Vec::new(),
            request_log: None,
            steady: None,
            stopped: StopReason::Ops,
        }
    }

    /// Keeps what pages show, and not all that the figures follow from.
    pub fn keep_what_is_shown(&mut self) {
        self.windows.clear();
        self.first_write = None;
        for op in self.ops.values_mut() {
            op.keep_what_is_shown();
        }
    }

    /// True if requests failed.
    pub fn has_errors(&self) -> bool {
        self.ops.values().any(|op| !op.errors.is_empty())
    }
}

/// The span that a workload really uses, as [`Measurement::unmeasured`] takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredSpan {
    start_bytes: u64,
    length_bytes: u64,
}

impl MeasuredSpan {
    /// The span from this byte of the target on, with this length.
    pub const fn new(start_bytes: u64, length_bytes: u64) -> Self {
        Self {
            start_bytes,
            length_bytes,
        }
    }
}

/// A healthy disk that sleeps answers its first request within this time. Chosen: disks need five
/// to ten seconds to start their motor.
pub const WAKE_UP_NS: u64 = 15_000_000_000;

/// Shorter silences of a target that is made ready are not kept: a busy machine makes such, and a
/// disk's own housekeeping. Chosen, not measured.
pub const SILENCE_NS_MIN: u64 = 500_000_000;

/// A pause is at least this many times the usual latency: where requests take 400 ms each, half a
/// second without a completion is no exception. Chosen, not measured.
pub const PAUSE_LATENCIES_MIN: f64 = 10.0;

/// Requests that were never answered: the target hung, or the run ended before that could be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hang {
    /// The time at which the oldest of the requests without an answer was sent, in nanoseconds
    /// after the start of the run; for threads that wait in a system call up to 10 ms before that.
    pub since_ns: u64,
    /// Nanoseconds from then until the wait ended.
    pub lasted_ns: u64,
    /// Requests that were never answered; they count as failed with `ETIMEDOUT`, except in a run
    /// that ended first.
    pub requests: u64,
    /// The run ended before the target had been silent long enough to count as hung: the requests
    /// took longer than the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

impl Hang {
    /// The hang as a clause. Of a late one nothing tells whether the target is slow or hangs.
    pub fn clause(&self) -> &'static str {
        if self.late {
            "requests had no answer when the run ended"
        } else {
            "the disk stopped answering"
        }
    }
}

/// The place of an instant of the run in a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasuredPlace {
    /// Before its first measured request.
    WarmUp,
    /// After so much measured time, in nanoseconds. The time between its slices is that of others.
    After {
        /// The measured time.
        measured_ns: u64,
    },
    /// When its measured time was over.
    End,
}

impl Measurement {
    /// The place of an instant, in nanoseconds after the start of the run.
    pub fn place_of(&self, instant_ns: u64) -> MeasuredPlace {
        let whole = [(self.start_ns, self.wall_ns)];
        let slices: Vec<(u64, u64)> = match self.slices.as_slice() {
            [] => whole.to_vec(),
            slices => slices
                .iter()
                .map(|slice| (slice.start_ns, slice.wall_ns))
                .collect(),
        };
        let mut place = MeasuredPlace::WarmUp;
        let mut before_ns = 0;
        for (index, (start_ns, wall_ns)) in slices.iter().enumerate() {
            let Some(into_ns) = instant_ns.checked_sub(*start_ns) else {
                break;
            };
            let is_over = into_ns >= *wall_ns;
            place = if is_over && index + 1 == slices.len() {
                MeasuredPlace::End
            } else {
                MeasuredPlace::After {
                    measured_ns: before_ns + into_ns.min(*wall_ns),
                }
            };
            before_ns += wall_ns;
        }
        place
    }
}

/// A time in which this program did not run. Every figure excludes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interruption {
    /// Start, in nanoseconds after the start of the run; up to 10 ms early.
    pub start_ns: u64,
    /// Length in nanoseconds.
    pub length_ns: u64,
    /// The kind of interruption, as the clocks tell it.
    pub kind: InterruptionKind,
    /// Requests in flight across it. They count neither as operations nor as latencies.
    pub requests: u64,
}

/// The kind of an interruption of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InterruptionKind {
    /// A signal stopped the process (SIGSTOP, Ctrl-Z), and SIGCONT continued it.
    Stopped,
    /// The process got no processor and did not wait for one: a paused container or virtual
    /// machine.
    Frozen,
    /// The whole machine was suspended.
    Suspended,
}

/// One kind of operation of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpMeasurement {
    /// Operations that succeeded within the measured time.
    pub count: u64,
    /// Bytes that the operations moved.
    pub bytes: u64,
    /// Failed operations by errno name (`EIO`), or `EOF` where a read found the end too early.
    /// Failures in the warm-up count, too.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Transfers that moved less than asked and were continued.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub short: u64,
    /// Latencies from before the submission to the reaping. Requests in flight when the time is
    /// over are waited for and counted here alone, so that a stall at the end is not lost.
    pub latency: LatencyHistogram,
    /// Latencies from the intended start (open loop only). Operations that never started count with
    /// what they had waited when the measured time ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_intended: Option<LatencyHistogram>,
    /// Events over time, finest cells kept. In a record the longest latency stands in the first
    /// cell of each 100 ms.
    #[serde(with = "diskproof_samples::packed")]
    #[schemars(with = "crate::series::PackedSeries")]
    pub series: TimeSeries,
}

impl OpMeasurement {
    /// The latencies that count: those from the intended start, where the load was offered.
    pub fn seen_latencies(&self) -> &LatencyHistogram {
        match &self.latency_intended {
            Some(intended) => intended,
            None => &self.latency,
        }
    }

    /// The series as charts and tables show it: in cells of at least 100 ms.
    pub fn shown_series(&self) -> TimeSeries {
        self.series.thinned(SHOWN_INTERVAL_NS_MIN, SERIES_CELLS_MAX)
    }

    /// Keeps what records hold of its series: rates follow from the finest cells, and of latencies
    /// the longest in each cell that is shown.
    pub fn keep_longest_latencies(&mut self) {
        let shown = self.shown_series();
        let cells_each = shown.interval_ns / self.series.interval_ns.max(1);
        for cell in &mut self.series.cells {
            cell.latency_max_ns = 0;
            cell.latency_sum_ns = 0;
        }
        let first_of_each = self
            .series
            .cells
            .iter_mut()
            .step_by(cells_each.max(1) as usize);
        for (cell, shown) in first_of_each.zip(&shown.cells) {
            cell.latency_max_ns = shown.latency_max_ns;
        }
    }

    /// Keeps the cells that are shown alone.
    pub fn keep_what_is_shown(&mut self) {
        self.series = self.shown_series();
    }
}

/// The shortest cell of a series that is shown, in nanoseconds. Finer ones serve the estimates.
const SHOWN_INTERVAL_NS_MIN: u64 = 100_000_000;

impl Default for OpMeasurement {
    fn default() -> Self {
        Self {
            count: 0,
            bytes: 0,
            errors: BTreeMap::new(),
            short: 0,
            latency: LatencyHistogram::new(),
            latency_intended: None,
            series: TimeSeries::new(SERIES_INTERVAL_NS),
        }
    }
}

/// The finest cell of a series, in nanoseconds. With 10 ms even a workload of two seconds gives the
/// statistics 200 cells.
pub const SERIES_INTERVAL_NS: u64 = 10_000_000;
/// The most cells of a series, which cover 10 s at the finest. More time merges neighbours. Records
/// keep all of them, so that a larger number makes records longer.
pub const SERIES_CELLS_MAX: usize = 1024;

/// Waits of threads that were ready to run for a processor.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Starvation {
    /// Share of the measured time, on average over the threads.
    pub share: f64,
    /// Nanoseconds that one of them had waited, on average, each time that it was put on a
    /// processor.
    pub mean_wait_ns: f64,
}

/// The feature of an I/O engine whose buffers lie in huge pages, which raises the rates of large
/// blocks on devices that split requests in scattered pages.
pub const HUGE_PAGES: &str = "huge-pages";

/// The engine that carried the operations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineUse {
    /// The wish of the plan.
    pub asked: EngineChoice,
    /// The engine that ran.
    pub used: EngineKind,
    /// Interfaces that were tried before and did not serve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Fallback>,
    /// Features that were on: `fixed-buffers`, `fixed-files`, `defer-taskrun` …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// Requests that each worker kept in flight at most, where the first requests to the target
    /// were too slow for the depth of the workload. Of several slices, the fewest: others may have
    /// had more in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Linux AIO: share of the waits that found something done already. Near 1 on a processor that
    /// is not busy, the kernel carried out the requests one by one while they were submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_before_wait: Option<f64>,
}

/// An interface that would have been taken and was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fallback {
    /// The engine that was tried.
    pub from: EngineKind,
    /// The kind of reason.
    pub cause: FallbackCause,
    /// The reason in words: with the errno, or with the rates of the trial.
    pub why: String,
}

/// The kind of reason for which an engine was not taken.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FallbackCause {
    /// The kernel has it and does not let this program use it.
    Refused,
    /// The kernel does not have it.
    Missing,
    /// There is none left to be had: contexts, memory or descriptors.
    Exhausted,
    /// The engine does not work on this target.
    Unusable,
    /// The engine works, and another was faster in a trial.
    Slower,
}

/// The treatment of the page cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheUse {
    /// The wish of the plan.
    pub asked: CachePolicy,
    /// The policy that was used.
    pub used: CachePolicy,
    /// The reason why they differ, or what the kernel did beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The kernel's counters of the disks at the bottom of the stack over one measurement.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUse {
    /// Kernel names of the disks counted.
    pub disks: Vec<String>,
    /// Bytes that the disks read.
    pub read_bytes: u64,
    /// Bytes that the disks wrote.
    pub write_bytes: u64,
    /// Read requests that the disks completed.
    pub read_ops: u64,
    /// Write requests that the disks completed.
    pub write_ops: u64,
    /// Flushes that the disks completed, where the kernel counts them.
    pub flush_ops: Option<u64>,
    /// Bytes that the target discarded (trims), where it is a block device and the kernel counts
    /// them (Linux 4.18). A filesystem decides itself whether and when a hole in a file becomes a
    /// discard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim_bytes: Option<u64>,
    /// Requests in the disks' queues, averaged over the time between the two snapshots, as the
    /// kernel counted them (merged ones once); `None` where its times are too coarse (devices
    /// without request queues) or it does not count.
    #[serde(default)]
    pub queue_depth: Option<f64>,
    /// Merged requests and the times of the requests; absent where the kernel does not time each
    /// request, and where a warm-up was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<DiskTimes>,
    /// Bytes moved by the disks over bytes asked by us, both directions, with discards where
    /// `trim_bytes` is known; `None` when it cannot be known, see `unresolved`.
    pub accounted: Option<f64>,
    /// The reason why the disks could not be found or counted, or why their counts confirm nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unresolved: Option<String>,
    /// Bytes that all other disks of the machine moved meanwhile. Where these are few, the I/O of
    /// `others` went to the disks of the target; `None` where that is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere_bytes: Option<u64>,
    /// Other processes that read from or wrote to storage meanwhile (any disk), the busiest first,
    /// at most ten.
    pub others: Vec<OtherProcess>,
    /// True if the kernel reported each process that ended meanwhile (taskstats, which needs
    /// CAP_NET_ADMIN). If not, `others` lacks short-lived processes, or has their bytes at the
    /// process that waited for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exits_reported: bool,
    /// Processes whose I/O the kernel would not show us (other users', without root).
    pub others_hidden: u32,
}

/// The kernel's counters of requests besides their number and size, summed over the disks
/// (Documentation/block/stat.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DiskTimes {
    /// Reads that were merged with another one.
    pub read_merges: u64,
    /// Writes that were merged with another one.
    pub write_merges: u64,
    /// Time from the queue to the completion of reads, summed over them, in milliseconds.
    pub read_ms: u64,
    /// Time from the queue to the completion of writes, summed over them, in milliseconds.
    pub write_ms: u64,
    /// Time from the queue to the completion of all requests, summed over them, in milliseconds.
    pub queued_ms: u64,
    /// Time in which a disk had a request, in milliseconds.
    pub busy_ms: u64,
    /// Time between the two readings of the counters, in milliseconds.
    pub elapsed_ms: u64,
}

/// The kernel's counters of one block device, whatever requested it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskTotals {
    /// Kernel name of the device.
    pub name: String,
    /// Kernel names of the devices that it is made of, where it is a volume or an array.
    pub members: Vec<String>,
    /// Read requests that it completed.
    pub read_ops: u64,
    /// Write requests that it completed.
    pub write_ops: u64,
    /// Merged requests and times.
    pub times: DiskTimes,
}

impl DiskTimes {
    /// The share of the time in which a disk had a request, in percent.
    pub fn busy_percent(&self) -> f64 {
        let percent = self.busy_ms as f64 * 100.0 / self.elapsed_ms.max(1) as f64;
        percent.min(100.0)
    }

    /// Returns the sum of these times and those of a later measurement.
    pub fn followed_by(self, later: Self) -> Self {
        Self {
            read_merges: self.read_merges.saturating_add(later.read_merges),
            write_merges: self.write_merges.saturating_add(later.write_merges),
            read_ms: self.read_ms.saturating_add(later.read_ms),
            write_ms: self.write_ms.saturating_add(later.write_ms),
            queued_ms: self.queued_ms.saturating_add(later.queued_ms),
            busy_ms: self.busy_ms.saturating_add(later.busy_ms),
            elapsed_ms: self.elapsed_ms.saturating_add(later.elapsed_ms),
        }
    }
}

impl DeviceUse {
    /// True if the counters cover all bytes that were `asked` of the disks, which may be none.
    pub fn is_counted(&self, asked: ByteCount) -> bool {
        let has_share = self.accounted.is_some() || self.share_of(asked).is_none();
        self.unresolved.is_none() && has_share
    }

    /// Bytes that the disks moved or discarded over those that were `asked` of them; `None` where
    /// nothing was.
    pub fn share_of(&self, asked: ByteCount) -> Option<f64> {
        let (trimmed, asked_trims) = match self.trim_bytes {
            Some(bytes) => (bytes, asked.trim_bytes),
            None => (0, 0),
        };
        let asked_bytes = asked.total() + asked_trims;
        if asked_bytes == 0 {
            return None;
        }
        let moved = self.read_bytes as f64 + self.write_bytes as f64 + trimmed as f64;
        Some(moved / asked_bytes as f64)
    }
}

/// The kernel thread that writes the inode tables of a new ext4 filesystem, for minutes, and after
/// each mount reads its block bitmaps. Its bytes count for no process (linux: fs/ext4/super.c,
/// ext4_lazyinit_thread).
pub const LAZY_INIT_THREAD: &str = "ext4lazyinit";

/// The threads of the kernel by whose names findings decide. Such a name identifies nobody, and a
/// record without it would be judged otherwise.
pub const KERNEL_THREADS_THAT_DECIDE: [&str; 1] = [LAZY_INIT_THREAD];

/// A process that used storage while we measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherProcess {
    /// Process id; the kernel may have given it to another process since.
    pub pid: u32,
    /// Short name (comm), of at most 15 bytes.
    pub name: String,
    /// Bytes it made storage read.
    pub read_bytes: u64,
    /// Bytes it made storage write.
    pub write_bytes: u64,
    /// True if it ended meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
}

impl OtherProcess {
    /// Returns `true` for the kernel thread that initialises an ext4 filesystem after its mount.
    pub fn is_lazy_init(&self) -> bool {
        self.name == LAZY_INIT_THREAD
    }
}

/// A look at the content of read blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ZeroSample {
    /// Blocks that were looked at.
    pub sampled: u64,
    /// Blocks that contained only zeros.
    pub zero: u64,
}

/// The outcome of reading back what was written, after the workload or by it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VerifyResult {
    /// Blocks that were checked.
    pub blocks: u64,
    /// Blocks that were to be checked: all that were written and not failed. More than `blocks`
    /// where the check was cut short; `None` in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_written: Option<u64>,
    /// Blocks that do not have the content they were checked for: damaged ones, and, where the data
    /// of earlier runs was checked, those of the next two fields.
    pub bad_blocks: u64,
    /// Checked blocks that carry no signature, as never written: zeros, or the data of something
    /// else. Only where the data of earlier runs was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsigned_blocks: Option<u64>,
    /// Checked blocks that were written in blocks of another size. Only where the data of earlier
    /// runs was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_size_blocks: Option<u64>,
    /// One of these sizes in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_size_bytes: Option<u32>,
    /// Blocks that the page cache still held, or may have held, when they were to be read: whether
    /// the disk has them is not proved. Absent where reads go past the page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_blocks: Option<u64>,
    /// Runs that wrote the others, at most 100. Only where the data of earlier runs was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// The reads themselves; `None` where they were those of the workload. Not saved.
    #[serde(skip)]
    pub read_back: Option<ReadBack>,
    /// Places of damaged blocks with the damage; the first 100. In older records also blocks
    /// without a signature.
    pub bad: Vec<BadBlock>,
    /// Places of intact and damaged blocks.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub places: CheckedPlaces,
}

/// Places of intact and damaged blocks in a target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedPlaces {
    /// End of the last intact block, in bytes.
    pub intact_end_bytes: u64,
    /// Bytes of the intact blocks; one that was checked twice counts twice.
    #[serde(default)]
    pub intact_bytes: u64,
    /// Offset of the first damaged block, in bytes; `null` where none is damaged.
    pub damaged_from_bytes: Option<u64>,
    /// End of the last damaged block, in bytes.
    #[serde(default)]
    pub damaged_end_bytes: u64,
    /// Bytes of the damaged blocks; one that was checked twice counts twice.
    #[serde(default)]
    pub damaged_bytes: u64,
    /// Blocks that hold what was written to another offset.
    pub displaced_blocks: u64,
    /// The greatest common divisor of the distances to those offsets, in bytes.
    pub displaced_by_bytes: u64,
}

/// The fewest damaged blocks that show how much a device holds. Fewer are a defect.
const SIZE_BLOCKS_MIN: u64 = 8;
/// The least distance of displaced blocks that shows how much a device holds. Chips of flash are
/// larger, so that blocks displaced by less are a defect.
const SIZE_BYTES_MIN: u64 = 1 << 20;

/// A check reaches the end of a device if it leaves less than this part of it, as a divisor.
const END_PARTS: u64 = 100;

/// The size of a device that holds less than it claims, as its damaged blocks show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RealSize {
    /// Blocks beyond this many bytes land lower by a multiple of it.
    Wraps(u64),
    /// All checked blocks from this offset in bytes on are lost.
    Ends(u64),
}

impl RealSize {
    /// The size in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Wraps(bytes) | Self::Ends(bytes) => bytes,
        }
    }
}

/// Reads after the workload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadBack {
    /// Bytes that were read.
    pub bytes: u64,
    /// Nanoseconds from the first read to the last.
    pub wall_ns: u64,
    /// The latency of each read.
    pub latency: LatencyHistogram,
}

impl CheckedPlaces {
    /// Counts the place of an intact block of this many bytes.
    pub fn add_intact(&mut self, offset_bytes: u64, block_bytes: u64) {
        self.intact_end_bytes = self.intact_end_bytes.max(offset_bytes + block_bytes);
        self.intact_bytes += block_bytes;
    }

    /// Counts the place of a damaged block of this many bytes.
    pub fn add_damaged(&mut self, bad: &BadBlock, block_bytes: u64) {
        let end_bytes = bad.offset_bytes + block_bytes;
        self.damaged_end_bytes = self.damaged_end_bytes.max(end_bytes);
        self.damaged_bytes += block_bytes;
        let first = self.damaged_from_bytes.unwrap_or(bad.offset_bytes);
        self.damaged_from_bytes = Some(first.min(bad.offset_bytes));
        if let Some(written_to) = bad.written_to_bytes {
            let distance = written_to.abs_diff(bad.offset_bytes);
            self.displaced_blocks += 1;
            self.displaced_by_bytes = greatest_common_divisor(self.displaced_by_bytes, distance);
        }
    }

    /// Adds the places of blocks that were checked elsewhere, or later.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            intact_end_bytes,
            intact_bytes,
            damaged_from_bytes,
            damaged_end_bytes,
            damaged_bytes,
            displaced_blocks,
            displaced_by_bytes,
        } = *other;
        self.intact_end_bytes = self.intact_end_bytes.max(intact_end_bytes);
        self.intact_bytes += intact_bytes;
        self.damaged_end_bytes = self.damaged_end_bytes.max(damaged_end_bytes);
        self.damaged_bytes += damaged_bytes;
        self.damaged_from_bytes = match (self.damaged_from_bytes, damaged_from_bytes) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.displaced_blocks += displaced_blocks;
        self.displaced_by_bytes =
            greatest_common_divisor(self.displaced_by_bytes, displaced_by_bytes);
    }

    /// Bytes that every intact block lies within, where every checked block behind them is damaged.
    fn lost_from_bytes(&self) -> Option<u64> {
        let from_bytes = self.damaged_from_bytes?;
        if self.intact_bytes > 0 && self.intact_end_bytes <= from_bytes {
            Some(from_bytes)
        } else {
            None
        }
    }

    /// True if the checked blocks reach almost to the end of the device.
    fn reaches_end(&self, device_bytes: u64) -> bool {
        let end_bytes = self.intact_end_bytes.max(self.damaged_end_bytes);
        device_bytes.saturating_sub(end_bytes) < device_bytes.div_ceil(END_PARTS)
    }

    /// The size of a device that stores a block and those behind it by multiples of that size at
    /// the same place. Such a device keeps at most its size intact, and no other one loses that
    /// much.
    fn wraps_at_bytes(&self, device_bytes: u64) -> Option<u64> {
        let size_bytes = self.displaced_by_bytes;
        if self.displaced_blocks < SIZE_BLOCKS_MIN || size_bytes < SIZE_BYTES_MIN {
            return None;
        }
        let checked_bytes = self.intact_bytes + self.damaged_bytes;
        let is_enough = checked_bytes > size_bytes || self.reaches_end(device_bytes);
        if is_enough && self.intact_bytes > 0 && self.intact_bytes <= size_bytes {
            Some(size_bytes)
        } else {
            None
        }
    }
}

/// A check proves something about the disk with up to this part of its intact blocks, as a divisor,
/// from the page cache. A lost write could hide only there.
const UNPROVEN_DIVISOR: u64 = 100;

impl VerifyResult {
    /// Blocks that are damaged: the others were never written, or in another size.
    pub fn wrong_blocks(&self) -> u64 {
        let other = [self.unsigned_blocks, self.other_size_blocks];
        let unknown = other.into_iter().flatten().sum();
        self.bad_blocks.saturating_sub(unknown)
    }

    /// The real size of a device that claims `device_bytes`; `None` where the damaged blocks do not
    /// show it. Blocks that were not checked may be intact, so a check that does not reach the end
    /// of the device shows no end.
    pub fn real_size(&self, device_bytes: u64) -> Option<RealSize> {
        let size = match self.places.wraps_at_bytes(device_bytes) {
            Some(bytes) => RealSize::Wraps(bytes),
            None if self.places.reaches_end(device_bytes) => RealSize::Ends(self.lost_from()?),
            None => return None,
        };
        if size.bytes() < device_bytes {
            Some(size)
        } else {
            None
        }
    }

    /// The offset in bytes from which on every checked block is lost, and before which none is.
    pub fn lost_from(&self) -> Option<u64> {
        if self.wrong_blocks() < SIZE_BLOCKS_MIN {
            return None;
        }
        self.places.lost_from_bytes()
    }

    /// Blocks that were checked and have the right content.
    pub fn good_blocks(&self) -> u64 {
        self.blocks.saturating_sub(self.bad_blocks)
    }

    /// Blocks that were checked, have the right content, and came from the disk: not those that the
    /// page cache may still have held.
    pub fn proven_blocks(&self) -> u64 {
        self.good_blocks()
            .saturating_sub(self.cached_blocks.unwrap_or(0))
    }

    /// True if the blocks with the right content say something about the disk: at most one in a
    /// hundred may have come from the page cache. A page that another program reads at that moment
    /// cannot be dropped, and is no reason to repeat a check of terabytes.
    pub fn proves_disk(&self) -> bool {
        let unproven = self.good_blocks() - self.proven_blocks();
        unproven.saturating_mul(UNPROVEN_DIVISOR) <= self.good_blocks()
    }

    /// Blocks that were written and not checked since.
    pub fn unchecked(&self) -> u64 {
        self.blocks_written
            .map_or(0, |written| written.saturating_sub(self.blocks))
    }
}

/// A block with the wrong content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BadBlock {
    /// Offset in the target.
    pub offset_bytes: u64,
    /// The damage, in words.
    pub why: String,
    /// The offset that its content was written to, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_to_bytes: Option<u64>,
}

/// The newest rates of a workload that ends once its rate is steady.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SteadyOutcome {
    /// True if the rate was steady at the end.
    pub is_attained: bool,
    /// The value that was compared with the limit; `None` where there were too few rates.
    pub criterion: Option<f64>,
    /// Operations per second, the oldest first.
    pub iops_samples: Vec<u64>,
    /// Bytes per second, the oldest first.
    pub rate_samples: Vec<u64>,
    /// Mean latencies in nanoseconds, the oldest first.
    pub latency_samples: Vec<u64>,
}

/// The reason why a workload ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The precision asked for was reached.
    Precision,
    /// The time that it was given was over.
    Time,
    /// The bytes that it was given were moved.
    Bytes,
    /// The operations that it was given were done.
    Ops,
    /// A workload that ran together with it was over.
    Companion,
    /// The user ended it.
    Interrupted,
    /// The target failed too often.
    Errors,
    /// The target did not answer any more.
    Hung,
    /// A request took longer than the user allowed.
    TooSlow,
    /// The rate fell below the least that the user set.
    BelowFloor,
    /// More was offered than the target served: starts waited for too long.
    Overloaded,
    /// The rate was steady, as its plan defines that.
    Steady,
    /// The reader of the output has gone.
    Unread,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_proves_the_disk_with_at_most_one_block_in_a_hundred_from_the_cache() {
        for (blocks, bad_blocks, cached, proven, proves) in [
            (1000, 0, None, 1000, true),
            (1000, 0, Some(0), 1000, true),
            (1000, 0, Some(10), 990, true),
            (1000, 0, Some(11), 989, false),
            (1, 0, Some(1), 0, false),
            // An interrupted check has read fewer blocks than the cache held.
            (10, 0, Some(16), 0, false),
            (1000, 1000, Some(0), 0, true),
        ] {
            let result = VerifyResult {
                blocks,
                bad_blocks,
                cached_blocks: cached,
                ..VerifyResult::default()
            };
            assert_eq!(result.proven_blocks(), proven, "{result:?}");
            assert_eq!(result.proves_disk(), proves, "{result:?}");
        }
    }
}
