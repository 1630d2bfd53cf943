//! The types by which a worker reports: its result, the reason of its end, and the snapshot that it
//! publishes for the supervisor. If the target never answers, the snapshot becomes the result.

use crate::io::clock::ProcessorWait;
use crate::io::errno_name;
use crate::load::dispatch::Dispatch;
use crate::load::slots::PendingRequest;
use crate::measure::read_check::ReadVerdict;
use diskproof_model::measurement::{
    ByteCount, Interruption, OpKind, OpMeasurement, PerOp, SERIES_CELLS_MAX, SteadyOutcome,
    ZeroSample,
};
use diskproof_model::plan::{EngineKind, Workload};
use diskproof_model::request_log::RequestLog;
use diskproof_model::series::Cell;
use diskproof_model::window::Window;
use std::sync::{Arc, Mutex};

/// The reason why a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum EndReason {
    /// The time of the worker was over.
    #[default]
    Time,
    /// The supervisor stopped it.
    Stopped,
    /// The operations or bytes of the worker were used up.
    Budget,
    /// The target failed too often; the last errno.
    Errors(i32),
    /// A request took longer than allowed.
    TooSlow,
    /// The rate fell below its least.
    BelowFloor,
    /// A start of the open loop was due for too long.
    Overloaded,
    /// The rate was steady.
    Steady,
}

impl EndReason {
    /// True if the worker ended with its last completion, which is part of the measured time.
    pub(crate) fn is_after_last(self) -> bool {
        matches!(self, Self::Budget | Self::TooSlow)
    }

    /// True if the load failed.
    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Self::Errors(_) | Self::TooSlow | Self::BelowFloor)
    }
}

/// The reason and the time of the end of a worker's measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkerEnding {
    pub reason: EndReason,
    /// The end of the measured time; completions may follow it.
    pub at_ns: u64,
}

/// The measured time of a worker that still waits for what is in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedTime {
    pub ending: WorkerEnding,
    /// [`WorkerResult::busy_ns`].
    pub busy_ns: u128,
}

/// The measurement of a worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkerResult {
    /// Per kind of operation.
    pub ops: PerOp<OpMeasurement>,
    /// Bytes moved, warm-up included.
    pub moved: ByteCount,
    /// End of its measured time: it started no request after it.
    pub stop_ns: u64,
    /// Requests in flight, integrated over the measured time: their number times nanoseconds.
    pub busy_ns: u128,
    /// When its last request completed.
    pub last_ns: u64,
    /// Blocks that were sampled, and those of them that were all zero.
    pub zero_blocks: ZeroSample,
    /// Open-loop operations that started late.
    pub late: u64,
    /// This program's own delays; empty in a closed loop.
    pub dispatch: Dispatch,
    /// [`crate::io::Backend::done_before_wait`].
    pub done_before_wait: Option<f64>,
    /// From the end of the warm-up to [`WorkerResult::stop_ns`].
    pub processor_wait: ProcessorWait,
    /// When the process did not run; their starts on CLOCK_MONOTONIC.
    pub interruptions: Vec<Interruption>,
    /// The measured time in windows, the last one up to [`WorkerResult::stop_ns`]; empty where it
    /// timed out.
    pub windows: Vec<Window>,
    /// True if its measured time ended with a completion after its planned end.
    pub ended_in_overtime: bool,
    /// True if its operations or bytes were used up in the warm-up, which then is its measured
    /// time.
    pub is_warmup: bool,
    /// The test for a steady rate, where that ends the worker.
    pub steady: Option<SteadyOutcome>,
    /// The verdict on its reads, where they are checked.
    pub read_verdict: Option<ReadVerdict>,
    /// Its requests one by one, where the workload keeps them; their times on the clock.
    pub request_log: Option<Box<RequestLog>>,
    /// The end of its measured time.
    pub ending: EndReason,
}

/// A worker whose target hangs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StuckWorker<'a> {
    pub workload: &'a Workload,
    /// The I/O engine that carries its requests.
    pub engine: EngineKind,
    /// The start of its warm-up.
    pub start_ns: u64,
    /// The start of its measured time.
    pub measure_ns: u64,
    /// The end that it would have had, had its requests completed.
    pub ending: WorkerEnding,
    /// [`diskproof_model::measurement::Hang::late`].
    pub is_late: bool,
}

/// A worker publishes its latencies at this interval, its counts with every cell. A copy takes some
/// microseconds and displaces data from the CPU's caches. Chosen, not measured: four times a
/// second.
pub(crate) const PUBLISH_NS: u64 = 250_000_000;

/// The snapshot that a worker and its supervisor share. The worker never holds the lock while it
/// waits for the target.
pub(crate) type SharedSnapshot = Arc<Mutex<WorkerSnapshot>>;

/// The measurement of a worker so far.
#[derive(Debug, Default)]
pub(crate) struct WorkerSnapshot {
    /// Series, counts, bytes and [`WorkerResult::busy_ns`] up to the last cell; the rest as it was
    /// published last. Without windows.
    pub so_far: WorkerResult,
    /// End of the last cell.
    pub rolled_ns: u64,
    /// When the rest was published last.
    pub published_ns: Option<u64>,
    /// Requests in flight then.
    pub in_flight: Vec<PendingRequest>,
    /// The kernel's thread id.
    pub thread: Option<i32>,
    /// Set once its measured time has ended, while it still waits for what is in flight.
    pub ended: Option<EndedTime>,
    /// True once the worker has ended and took its counts from here.
    pub is_taken: bool,
}

impl WorkerSnapshot {
    /// Adds a finished cell.
    pub(crate) fn add(&mut self, kind: OpKind, at_ns: u64, cell: &Cell) {
        let op = self.so_far.ops.entry(kind).or_default();
        op.count += cell.ops;
        op.bytes += cell.bytes;
        op.series.add(at_ns, cell, SERIES_CELLS_MAX);
    }

    /// Ends the series after `length_ns` and pads them with empty cells.
    pub(crate) fn close_series(&mut self, length_ns: u64) {
        if length_ns == 0 {
            return;
        }
        for op in self.so_far.ops.values_mut() {
            if !op.series.cells.is_empty() {
                op.series
                    .add(length_ns - 1, &Cell::default(), SERIES_CELLS_MAX);
            }
        }
    }

    /// Takes what is known of a kind. Only the snapshot keeps its counts, bytes and series.
    pub(crate) fn take_op(&mut self, kind: OpKind) -> OpMeasurement {
        self.is_taken = true;
        self.so_far.ops.remove(&kind).unwrap_or_default()
    }

    /// The result so far of a worker that measures from `measure_ns` on; `None` once it has ended.
    pub(crate) fn result_so_far(&self, measure_ns: u64) -> Option<WorkerResult> {
        if self.is_taken {
            return None;
        }
        Some(WorkerResult {
            stop_ns: self.rolled_ns.max(measure_ns),
            last_ns: self.so_far.last_ns.max(measure_ns),
            ..self.so_far.clone()
        })
    }

    /// The result of a worker whose requests in flight were never answered; they count as failed
    /// unless they are late.
    pub(crate) fn take_unanswered(
        &mut self,
        in_flight: &[PendingRequest],
        worker: StuckWorker<'_>,
    ) -> WorkerResult {
        let measure_ns = worker.measure_ns;
        let ending = match self.ended {
            Some(ended) => ended.ending,
            None => worker.ending,
        };
        let stop_ns = ending.at_ns.max(measure_ns);
        self.close_series(stop_ns - measure_ns);
        let mut so_far = std::mem::take(&mut self.so_far);
        let timed_out = errno_name(libc::ETIMEDOUT);
        for request in in_flight {
            let op = so_far.ops.entry(request.kind).or_default();
            if !worker.is_late {
                *op.errors.entry(timed_out.clone()).or_default() += 1;
            }
        }
        let waiting = in_flight
            .iter()
            .map(|request| u128::from(stop_ns.saturating_sub(request.since_ns.max(measure_ns))))
            .sum::<u128>();
        WorkerResult {
            stop_ns,
            busy_ns: match self.ended {
                Some(ended) => ended.busy_ns,
                None => so_far.busy_ns + waiting,
            },
            last_ns: so_far.last_ns.max(measure_ns),
            ending: ending.reason,
            ..so_far
        }
    }
}
