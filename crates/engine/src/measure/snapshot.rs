//! What a worker has measured so far, published for the supervisor. If the target never answers,
//! this becomes the worker's result. Knows no clock, no backend and no thread.

use crate::io::clock::ProcessorWait;
use crate::io::errno::errno_name;
use crate::load::slots::PendingRequest;
use crate::measure::read_check::ReadVerdict;
use crate::measure::result::{EndReason, WorkerResult};
use diskproof_model::measurement::{
    ByteCount, Interruption, OpKind, OpMeasurement, PerOp, SERIES_CELLS_MAX, ZeroSample,
};
use diskproof_model::plan::{EngineKind, Workload};
use diskproof_model::series::{Cell, TimeSeries};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A worker whose target hangs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StuckWorker<'a> {
    /// Its workload.
    pub workload: &'a Workload,
    /// What carries it.
    pub engine: EngineKind,
    /// When it started.
    pub start_ns: u64,
    /// From when on it measured.
    pub measure_ns: u64,
    /// Why and when it should have ended.
    pub ending: (EndReason, u64),
    /// [`Hang::late`].
    pub late: bool,
}

/// How often a worker publishes its latencies; it publishes its counts with every cell. A copy
/// takes some microseconds and displaces data from the CPU's caches.
pub(crate) const PUBLISH_NS: u64 = 250_000_000;

/// The snapshot that a worker and its supervisor share. The worker never holds the lock while it
/// waits for the target.
pub(crate) type SharedSnapshot = Arc<Mutex<WorkerSnapshot>>;

/// What a worker has measured so far.
#[derive(Debug, Default)]
pub(crate) struct WorkerSnapshot {
    /// Series, counts and bytes up to the last cell; latencies and errors as published last.
    pub ops: PerOp<OpMeasurement>,
    /// Bytes moved, warm-up included.
    pub asked: ByteCount,
    /// Times in flight of completed requests, summed over the measured time up to the last cell.
    pub busy_ns: u128,
    /// When the last request completed.
    pub last_ns: u64,
    /// End of the last cell.
    pub rolled_ns: u64,
    /// When the rest was published last.
    pub published_ns: Option<u64>,
    /// Requests in flight then.
    pub in_flight: Vec<PendingRequest>,
    /// Sampled blocks, and how many of them were all zero.
    pub zero_blocks: ZeroSample,
    /// What its reads found, where they are checked.
    pub read_verdict: Option<ReadVerdict>,
    /// Open-loop operations that started late.
    pub late: u64,
    /// [`crate::io::Backend::done_before_wait`].
    pub done_before_wait: Option<f64>,
    /// [`WorkerResult::processor_wait`], up to then.
    pub processor_wait: ProcessorWait,
    /// When the process did not run; their starts on CLOCK_MONOTONIC.
    pub interruptions: Vec<Interruption>,
    /// The kernel's thread id.
    pub thread: Option<i32>,
    /// Why and when its measured time ended, and [`WorkerResult::busy_ns`], while it still waits
    /// for what is in flight.
    pub ended: Option<(EndReason, u64, u128)>,
    /// Whether the worker has ended and took its counts from here.
    pub is_taken: bool,
}

/// Locks a snapshot. It is consistent even after a panic: every update is complete.
pub(crate) fn lock_snapshot(snapshot: &Mutex<WorkerSnapshot>) -> MutexGuard<'_, WorkerSnapshot> {
    snapshot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WorkerSnapshot {
    /// Adds a finished cell.
    pub(crate) fn add(&mut self, kind: OpKind, at_ns: u64, cell: &Cell) {
        let op = self.ops.entry(kind).or_default();
        op.count += cell.ops;
        op.bytes += cell.bytes;
        op.series.add(at_ns, cell, SERIES_CELLS_MAX);
    }

    /// Ends the series after `length_ns` and pads them with empty cells.
    pub(crate) fn close_series(&mut self, length_ns: u64) {
        for op in self
            .ops
            .values_mut()
            .filter(|op| length_ns > 0 && !op.series.cells.is_empty())
        {
            op.series
                .add(length_ns - 1, &Cell::default(), SERIES_CELLS_MAX);
        }
    }

    /// Takes counts, bytes and series of a kind, which only the snapshot keeps.
    pub(crate) fn take(&mut self, kind: OpKind) -> (u64, u64, TimeSeries) {
        self.is_taken = true;
        let op = self.ops.remove(&kind).unwrap_or_default();
        (op.count, op.bytes, op.series)
    }

    /// The result so far of a worker that measures from `measure_ns` on; `None` once it has ended.
    pub(crate) fn result_so_far(&self, measure_ns: u64) -> Option<WorkerResult> {
        let stop_ns = self.rolled_ns.max(measure_ns);
        let so_far = WorkerResult {
            ops: self.ops.clone(),
            asked: self.asked,
            stop_ns,
            busy_ns: self.busy_ns,
            last_ns: self.last_ns.max(measure_ns),
            zero_blocks: self.zero_blocks,
            late: self.late,
            done_before_wait: self.done_before_wait,
            processor_wait: self.processor_wait,
            interruptions: self.interruptions.clone(),
            windows: Vec::new(),
            overtime: false,
            steady: None,
            read_verdict: self.read_verdict.clone(),
            ending: EndReason::Time,
        };
        (!self.is_taken).then_some(so_far)
    }

    /// The result of a worker that measured from `measure_ns` on, and that was to end as `asked`.
    /// Its requests in flight were never answered; they count as failed unless they are `late`.
    pub(crate) fn take_unanswered(
        &mut self,
        in_flight: &[PendingRequest],
        measure_ns: u64,
        asked: (EndReason, u64),
        late: bool,
    ) -> WorkerResult {
        let (ending, stop_ns) = match self.ended {
            Some((ending, stop_ns, _)) => (ending, stop_ns),
            None => asked,
        };
        let stop_ns = stop_ns.max(measure_ns);
        self.close_series(stop_ns - measure_ns);
        let mut ops = std::mem::take(&mut self.ops);
        let timed_out = errno_name(libc::ETIMEDOUT);
        for request in in_flight {
            let op = ops.entry(request.kind).or_default();
            if !late {
                *op.errors.entry(timed_out.clone()).or_default() += 1;
            }
        }
        let waiting = in_flight
            .iter()
            .map(|request| u128::from(stop_ns.saturating_sub(request.since_ns.max(measure_ns))))
            .sum::<u128>();
        WorkerResult {
            ops,
            asked: self.asked,
            stop_ns,
            busy_ns: match self.ended {
                Some((.., busy_ns)) => busy_ns,
                None => self.busy_ns + waiting,
            },
            last_ns: self.last_ns.max(measure_ns),
            zero_blocks: self.zero_blocks,
            late: self.late,
            done_before_wait: self.done_before_wait,
            processor_wait: self.processor_wait,
            interruptions: std::mem::take(&mut self.interruptions),
            windows: Vec::new(),
            overtime: false,
            steady: None,
            read_verdict: self.read_verdict.clone(),
            ending,
        }
    }
}
