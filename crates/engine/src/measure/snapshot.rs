//! What a worker has measured so far, where others can see it: should the target never answer, this
//! is what comes home of the worker. Knows no clock, no backend and no thread.

use crate::io::clock::ProcessorWait;
use crate::io::errno::errno_name;
use crate::load::slots::PendingRequest;
use crate::measure::result::{EndReason, WorkerResult};
use diskproof_model::measurement::{
    ByteCount, OpKind, OpMeasurement, SERIES_CELLS_MAX, ZeroSample,
};
use diskproof_model::series::{Cell, TimeSeries};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often a worker shows its latencies; its counts it shows with every cell. A copy takes some
/// microseconds, and leaves traces in the CPU's caches.
pub const PUBLISH_NS: u64 = 250_000_000;

/// An interim result that a worker and whoever waits for it share. The worker never holds it while
/// it waits for the target.
pub type SharedSnapshot = Arc<Mutex<WorkerSnapshot>>;

/// What a worker has measured so far.
#[derive(Debug, Default)]
pub struct WorkerSnapshot {
    /// Series, counts and bytes up to the end of the last cell; latencies and errors as they were
    /// shown last.
    pub ops: BTreeMap<OpKind, OpMeasurement>,
    /// Bytes moved, warm-up included.
    pub asked: ByteCount,
    /// Requests in flight, summed over the measured time up to the last cell: what is done of
    /// them.
    pub busy_ns: u128,
    /// When the last request was done.
    pub last_ns: u64,
    /// End of the last cell.
    pub rolled_ns: u64,
    /// When the rest was shown last.
    pub published_ns: Option<u64>,
    /// Requests in flight then.
    pub in_flight: Vec<PendingRequest>,
    /// A look at what was read.
    pub zero_blocks: ZeroSample,
    /// Open-loop operations that started late.
    pub late: u64,
    /// [`crate::io::Backend::done_before_wait`].
    pub done_before_wait: Option<f64>,
    /// [`WorkerResult::processor_wait`], up to then.
    pub processor_wait: ProcessorWait,
    /// The thread's number in the kernel.
    pub thread: Option<i32>,
}

/// The interim result behind the lock; whole even where somebody panicked with it.
pub fn lock_snapshot(snapshot: &Mutex<WorkerSnapshot>) -> MutexGuard<'_, WorkerSnapshot> {
    snapshot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WorkerSnapshot {
    /// A cell is over.
    pub fn add(&mut self, kind: OpKind, at_ns: u64, cell: &Cell) {
        let op = self.ops.entry(kind).or_default();
        op.count += cell.ops;
        op.bytes += cell.bytes;
        op.series.add(at_ns, cell, SERIES_CELLS_MAX);
    }

    /// The series end after `length_ns`: their last cells are filled up with nothing.
    pub fn close_series(&mut self, length_ns: u64) {
        for op in self
            .ops
            .values_mut()
            .filter(|op| length_ns > 0 && !op.series.cells.is_empty())
        {
            op.series
                .add(length_ns - 1, &Cell::default(), SERIES_CELLS_MAX);
        }
    }

    /// Counts, bytes and series of a kind, for whoever knows the rest: these are kept here alone.
    pub fn take(&mut self, kind: OpKind) -> (u64, u64, TimeSeries) {
        let op = self.ops.remove(&kind).unwrap_or_default();
        (op.count, op.bytes, op.series)
    }

    /// What comes home of a worker that waits for its target for good. It measured from
    /// `measure_ns` on until it was told to end at `stop_ns`, or its time was over; what it has
    /// in flight fails.
    pub fn take_timed_out(
        &mut self,
        in_flight: &[PendingRequest],
        measure_ns: u64,
        (ending, stop_ns): (EndReason, u64),
    ) -> WorkerResult {
        let stop_ns = stop_ns.max(measure_ns);
        self.close_series(stop_ns - measure_ns);
        let mut ops = std::mem::take(&mut self.ops);
        let timed_out = errno_name(libc::ETIMEDOUT);
        for request in in_flight {
            *ops.entry(request.kind)
                .or_default()
                .errors
                .entry(timed_out.clone())
                .or_default() += 1;
        }
        let waiting = in_flight
            .iter()
            .map(|request| u128::from(stop_ns.saturating_sub(request.since_ns.max(measure_ns))))
            .sum::<u128>();
        WorkerResult {
            ops,
            asked: self.asked,
            stop_ns,
            busy_ns: self.busy_ns + waiting,
            last_ns: self.last_ns.max(measure_ns),
            zero_blocks: self.zero_blocks,
            late: self.late,
            done_before_wait: self.done_before_wait,
            processor_wait: self.processor_wait,
            ending,
        }
    }
}
