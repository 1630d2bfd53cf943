//! Counts what a worker does: for each kind of operation a histogram, a series and errors.

use crate::io::errno_name;
use crate::lock::lock;
use crate::measure::result::WorkerSnapshot;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{ByteCount, OpKind, OpMeasurement, PerOp, SERIES_CELLS_MAX};
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::window::WindowLatency;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Consecutive operations of the same kind, size and latency: those of a batch that started in one
/// call and were reaped at one time. They are counted together.
#[derive(Debug, Clone, Copy)]
struct Streak {
    kind: OpKind,
    latency_ns: u64,
    /// Length of each operation.
    bytes: u32,
    ops: u64,
}

impl Streak {
    const NONE: Self = Self {
        kind: OpKind::Read,
        latency_ns: 0,
        bytes: 0,
        ops: 0,
    };
}

/// The counts of one kind of operation.
#[derive(Debug)]
struct OpCounters {
    /// The running cell. Its end adds its sum of latencies to the histogram.
    cell: Cell,
    /// Shortest latency in the running cell.
    latency_min_ns: u64,
    /// The latencies in the window, up to the last cell.
    window_range: LatencyRange,
    /// The latencies up to the last window; `None` before the first one.
    seen: Option<Box<SeenLatencies>>,
    op: OpMeasurement,
}

impl OpCounters {
    /// Nothing counted yet; `intended` is as for [`Counters::new`].
    fn new(intended: Option<&LatencyHistogram>) -> Self {
        Self {
            cell: Cell::default(),
            latency_min_ns: u64::MAX,
            window_range: LatencyRange::EMPTY,
            seen: None,
            op: OpMeasurement {
                latency_intended: intended.cloned(),
                ..OpMeasurement::default()
            },
        }
    }
}

/// The distributions of an operation at the end of a window.
#[derive(Debug, Default)]
struct SeenLatencies {
    latency: LatencyHistogram,
    intended: LatencyHistogram,
}

/// Counts of a worker before its measured time, for one that has no other.
#[derive(Debug, Default)]
struct WarmupCells {
    /// Start of the warm-up.
    start_ns: u64,
    cells: WorkerSnapshot,
}

/// The shortest and the longest of some latencies, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct LatencyRange {
    min_ns: u64,
    max_ns: u64,
}

impl LatencyRange {
    /// Of no latencies: any latency replaces both.
    const EMPTY: Self = Self {
        min_ns: u64::MAX,
        max_ns: 0,
    };
}

/// The counts of one worker.
#[derive(Debug)]
pub(crate) struct Counters {
    /// By [`OpKind`] in its order.
    by_kind: [OpCounters; OpKind::ALL.len()],
    /// Not added yet.
    streak: Streak,
    /// The end of the warm-up; moves only while that is not over.
    pub measure_ns: u64,
    /// True once the warm-up is over.
    pub is_measuring: bool,
    /// True once later completions are not added to the series.
    is_series_closed: bool,
    cell_start_ns: u64,
    /// When the last operation was done.
    pub last_ns: u64,
    /// Bytes moved up to the last cell, warm-up included.
    pub moved: ByteCount,
    /// Failures by errno, those of the warm-up included: unlike rates, errors do not settle.
    errnos: BTreeMap<(OpKind, i32), u64>,
    /// The cells of the warm-up, from its start on, until that is over.
    warmup: Option<Box<WarmupCells>>,
    failures_in_row: u32,
    /// The time in flight of requests that failed or were interrupted, which no latency contains.
    uncounted_ns: u128,
    last_errno: i32,
    /// The slot of the newest data that was read.
    last_read: Option<u32>,
}

/// Errors after which a worker ends at once, because every later request would fail too: full,
/// quota, read-only, gone, no such descriptor.
pub(crate) const FATAL_ERRNOS: [i32; 6] = [
    libc::ENOSPC,
    libc::EDQUOT,
    libc::EROFS,
    libc::ENODEV,
    libc::ENXIO,
    libc::EBADF,
];

impl Counters {
    /// Nothing counted yet; what completes between `start_ns` and `measure_ns` is warm-up.
    /// `intended` is an empty distribution in an open loop, where latencies count from the intended
    /// start, too.
    pub(crate) fn new(start_ns: u64, measure_ns: u64, intended: Option<&LatencyHistogram>) -> Self {
        let mut warmup = None;
        if measure_ns > start_ns {
            warmup = Some(Box::new(WarmupCells {
                start_ns,
                ..WarmupCells::default()
            }));
        }
        Self {
            by_kind: OpKind::ALL.map(|_| OpCounters::new(intended)),
            streak: Streak::NONE,
            measure_ns,
            is_measuring: false,
            is_series_closed: false,
            cell_start_ns: 0,
            last_ns: 0,
            moved: ByteCount::default(),
            errnos: BTreeMap::new(),
            warmup,
            failures_in_row: 0,
            uncounted_ns: 0,
            last_errno: 0,
            last_read: None,
        }
    }

    /// The events of the running cell, by kind.
    pub(crate) fn cell(&mut self) -> impl Fn(OpKind) -> Cell {
        self.add_streak();
        let cells = OpKind::ALL.map(|kind| self.by_kind[kind as usize].cell);
        move |kind| cells[kind as usize]
    }

    /// Counts one completed operation.
    #[inline(always)]
    pub(crate) fn record(&mut self, kind: OpKind, bytes: u32, latency_ns: u64, now: u64) {
        if latency_ns != self.streak.latency_ns
            || kind != self.streak.kind
            || bytes != self.streak.bytes
        {
            self.add_streak();
            (self.streak.kind, self.streak.latency_ns, self.streak.bytes) =
                (kind, latency_ns, bytes);
        }
        self.streak.ops += 1;
        self.last_ns = now;
    }

    /// Adds the operations since the last change of kind, size or latency.
    #[inline(always)]
    fn add_streak(&mut self) {
        let Streak {
            kind,
            latency_ns,
            bytes,
            ops,
        } = std::mem::replace(&mut self.streak, Streak::NONE);
        self.record_run(kind, bytes, latency_ns, ops, self.last_ns);
    }

    /// Counts `ops` operations of one kind, size and latency, of which the last completed at `now`.
    #[inline(always)]
    pub(crate) fn record_run(
        &mut self,
        kind: OpKind,
        bytes: u32,
        latency_ns: u64,
        ops: u64,
        now: u64,
    ) {
        self.last_ns = now;
        if ops == 0 {
            return;
        }
        let counters = &mut self.by_kind[kind as usize];
        counters.cell.ops += ops;
        counters.cell.bytes += u64::from(bytes) * ops;
        counters.cell.latency_max_ns = counters.cell.latency_max_ns.max(latency_ns);
        counters.latency_min_ns = counters.latency_min_ns.min(latency_ns);
        counters.cell.latency_sum_ns += latency_ns * ops;
        counters.op.latency.bump(latency_ns, ops);
        self.failures_in_row = 0;
    }

    /// Counts the same operation from its intended start, `waited_ns` before its real one. Nothing
    /// in a closed loop.
    #[inline(always)]
    pub(crate) fn record_waited(&mut self, kind: OpKind, latency_ns: u64, waited_ns: u64) {
        if let Some(intended) = &mut self.by_kind[kind as usize].op.latency_intended {
            intended.record(latency_ns + waited_ns);
        }
    }

    /// Counts one completed operation from both starts.
    #[inline(always)]
    pub(crate) fn record_both(
        &mut self,
        kind: OpKind,
        bytes: u32,
        latency_ns: u64,
        waited_ns: u64,
        now: u64,
    ) {
        self.record(kind, bytes, latency_ns, now);
        self.record_waited(kind, latency_ns, waited_ns);
    }

    /// Counts a failure after `latency_ns` in flight. Failures have no latency.
    #[cold]
    pub(crate) fn fail(&mut self, kind: OpKind, errno: i32, latency_ns: u64, now: u64) {
        self.add_streak();
        self.uncounted_ns += u128::from(latency_ns);
        self.by_kind[kind as usize].cell.errors += 1;
        *self.errnos.entry((kind, errno)).or_default() += 1;
        self.failures_in_row += 1;
        self.last_errno = errno;
        self.last_ns = now;
    }

    /// Counts a request that was in flight while the process did not run: as bytes moved only.
    #[cold]
    pub(crate) fn skip(&mut self, kind: OpKind, bytes: u32, in_flight_ns: u64, now: u64) {
        self.add_streak();
        self.uncounted_ns += u128::from(in_flight_ns);
        self.moved.add(kind, u64::from(bytes));
        self.failures_in_row = 0;
        self.last_ns = now;
    }

    /// Counts a short transfer.
    pub(crate) fn count_short(&mut self, kind: OpKind) {
        self.by_kind[kind as usize].op.short += 1;
    }

    /// Remembers the slot of the newest data.
    #[inline(always)]
    pub(crate) fn note_read(&mut self, slot: u32) {
        self.last_read = Some(slot);
    }

    /// Takes the slot of the newest data.
    pub(crate) fn take_last_read(&mut self) -> Option<u32> {
        self.last_read.take()
    }

    /// The errno that ends the worker, if one does: a fatal one, or the last of `failures_max` in a
    /// row.
    pub(crate) fn fatal_errno(&self, failures_max: u32) -> Option<i32> {
        let is_fatal = self.failures_in_row > 0 && FATAL_ERRNOS.contains(&self.last_errno);
        if is_fatal || self.failures_in_row >= failures_max {
            Some(self.last_errno)
        } else {
            None
        }
    }

    /// Sum of the latencies of all operations up to the last cell, failed ones included. What
    /// consists of others counts with them.
    pub(crate) fn busy_ns(&self) -> u128 {
        let mut busy_ns = self.uncounted_ns;
        for kind in OpKind::ALL {
            if !kind.is_made_of_others() {
                busy_ns += self.by_kind[kind as usize].op.latency.sum_ns();
            }
        }
        busy_ns
    }

    /// Completed operations of the measured time, up to now; `writes` is the kind that counts
    /// writes.
    #[cold]
    pub(crate) fn operations(&mut self, writes: OpKind) -> u64 {
        self.add_streak();
        if !self.is_measuring {
            return 0;
        }
        let mut done = 0;
        for kind in OpKind::REQUESTS {
            let counted = match kind {
                OpKind::Write => writes,
                other => other,
            };
            let counters = &self.by_kind[counted as usize];
            done += counters.op.latency.count() + counters.cell.ops;
        }
        done
    }

    /// Ends the current cell, which goes to `snapshot`; `now` begins the next. The first cell after
    /// the warm-up discards all of the warm-up but its errors.
    pub(crate) fn end_cell(
        &mut self,
        now: u64,
        published: &Mutex<TimeSeries>,
        snapshot: &mut WorkerSnapshot,
    ) {
        self.add_streak();
        let mut total = Cell::default();
        for (counters, kind) in self.by_kind.iter_mut().zip(OpKind::ALL) {
            let cell = std::mem::take(&mut counters.cell);
            counters.op.latency.add_totals(
                cell.ops,
                cell.latency_sum_ns,
                counters.latency_min_ns,
                cell.latency_max_ns,
            );
            let range = &mut counters.window_range;
            range.min_ns = range.min_ns.min(counters.latency_min_ns);
            range.max_ns = range.max_ns.max(cell.latency_max_ns);
            counters.latency_min_ns = u64::MAX;
            self.moved.add(kind, cell.bytes);
            if !self.is_measuring || self.is_series_closed {
                if let Some(warmup) = &mut self.warmup
                    && cell != Cell::default()
                {
                    let at_ns = self.cell_start_ns.saturating_sub(warmup.start_ns);
                    warmup.cells.add(kind, at_ns, &cell);
                }
                continue;
            }
            if cell != Cell::default() {
                snapshot.add(kind, self.cell_start_ns - self.measure_ns, &cell);
            }
            if kind.is_request() {
                total.merge(&cell);
            }
        }
        if self.is_measuring && !self.is_series_closed {
            let at_ns = self.cell_start_ns - self.measure_ns;
            lock(published).add(at_ns, &total, SERIES_CELLS_MAX);
        }
        if !self.is_measuring && now >= self.measure_ns {
            self.is_measuring = true;
            self.forget_warmup();
        }
        self.cell_start_ns = now;
    }

    /// Takes the warm-up for the measured time, because nothing follows it.
    #[cold]
    pub(crate) fn keep_warmup(&mut self, snapshot: &mut WorkerSnapshot) {
        if let Some(warmup) = self.warmup.take() {
            self.is_measuring = true;
            self.measure_ns = warmup.start_ns;
            self.cell_start_ns = self.cell_start_ns.max(warmup.start_ns);
            snapshot.so_far.ops = warmup.cells.so_far.ops;
        }
    }

    /// Discards what the warm-up has counted, except for errors.
    fn forget_warmup(&mut self) {
        self.warmup = None;
        self.uncounted_ns = 0;
        for counters in &mut self.by_kind {
            if counters.op.latency.count() > 0 {
                clear_latencies(&mut counters.op);
            }
            counters.op.short = 0;
            counters.window_range = LatencyRange::EMPTY;
        }
    }

    /// The latencies since the last window, or since the warm-up. Only after a
    /// [`Counters::end_cell`].
    #[cold]
    pub(crate) fn take_window(&mut self) -> PerOp<WindowLatency> {
        let mut ops = BTreeMap::new();
        for (counters, kind) in self.by_kind.iter_mut().zip(OpKind::ALL) {
            let range = std::mem::replace(&mut counters.window_range, LatencyRange::EMPTY);
            if counters.op.latency.count() == 0 {
                continue;
            }
            let seen = counters.seen.get_or_insert_default();
            let latency = seen.latency.take_since(&counters.op.latency);
            if latency.count() == 0 {
                continue;
            }
            let mut window = WindowLatency {
                latency: latency.with_range(range.min_ns, range.max_ns),
                ..WindowLatency::default()
            };
            if let Some(intended) = &counters.op.latency_intended {
                window.intended = seen.intended.take_since(intended);
            }
            ops.insert(kind, window);
        }
        ops
    }

    /// Ends the series at `now` and pads it with empty cells. Later completions are not added.
    pub(crate) fn close_series(&mut self, now: u64, snapshot: &mut WorkerSnapshot) {
        if self.is_measuring {
            self.is_series_closed = true;
            snapshot.close_series(now.saturating_sub(self.measure_ns));
        }
    }

    /// Publishes the latencies of the measured time, and all errors. Only after a
    /// [`Counters::end_cell`].
    pub(crate) fn publish_to(&self, snapshot: &mut WorkerSnapshot) {
        for ((kind, errno), count) in &self.errnos {
            let op = snapshot.so_far.ops.entry(*kind).or_default();
            op.errors.insert(errno_name(*errno), *count);
        }
        if !self.is_measuring {
            return;
        }
        for kind in OpKind::ALL {
            let counters = &self.by_kind[kind as usize];
            if counters.op.latency.count() == 0 {
                continue;
            }
            let op = snapshot.so_far.ops.entry(kind).or_default();
            op.latency.catch_up_with(&counters.op.latency);
            op.short = counters.op.short;
            if let Some(intended) = &counters.op.latency_intended {
                op.latency_intended
                    .get_or_insert_with(LatencyHistogram::new)
                    .catch_up_with(intended);
            }
        }
    }

    /// The counts of all kinds. Kinds that never occurred are skipped; kinds that occurred only in
    /// the warm-up, or completed after the end, are kept. Only after a last [`Counters::end_cell`].
    pub(crate) fn finish(self, snapshot: &mut WorkerSnapshot) -> (PerOp<OpMeasurement>, ByteCount) {
        let mut ops = BTreeMap::new();
        for (counters, kind) in self.by_kind.into_iter().zip(OpKind::ALL) {
            let mut op = counters.op;
            let counted = snapshot.take_op(kind);
            op.count = counted.count;
            op.bytes = counted.bytes;
            op.series = counted.series;
            op.errors = BTreeMap::new();
            for ((failed_kind, errno), count) in &self.errnos {
                if *failed_kind == kind {
                    op.errors.insert(errno_name(*errno), *count);
                }
            }
            if op.count > 0 || op.latency.count() > 0 || !op.errors.is_empty() {
                ops.insert(kind, op);
            }
        }
        (ops, self.moved)
    }
}

fn clear_latencies(op: &mut OpMeasurement) {
    op.latency.clear();
    if let Some(intended) = &mut op.latency_intended {
        intended.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sinks() -> (Mutex<TimeSeries>, WorkerSnapshot) {
        let published = Mutex::new(TimeSeries::new(10_000_000));
        (published, WorkerSnapshot::default())
    }

    #[test]
    fn counters_add_streaks_like_single_operations() {
        let (published, mut snapshot) = sinks();
        let mut counters = Counters::new(0, 0, None);
        counters.end_cell(0, &published, &mut snapshot);
        let (read, write) = (OpKind::Read, OpKind::Write);
        let kinds = [read, read, write, read, read, read, write, write, write];
        let latencies = [500, 500, 500, 500, 0, 0, 700, 700, 300];
        let sizes = [512, 4096, 4096, 512, 512, 512, 4096, 512, 512];
        for ((kind, latency_ns), bytes) in kinds.into_iter().zip(latencies).zip(sizes) {
            counters.record(kind, bytes, latency_ns, 1000);
        }
        counters.end_cell(2000, &published, &mut snapshot);
        let (ops, asked) = counters.finish(&mut snapshot);
        assert_eq!(asked.read_bytes, 4096 + 4 * 512);
        assert_eq!(asked.write_bytes, 2 * 4096 + 2 * 512);
        for kind in [read, write] {
            let mut expected = LatencyHistogram::new();
            let steps = kinds.iter().zip(latencies).filter(|(of, _)| **of == kind);
            steps.for_each(|(_, latency_ns)| expected.record(latency_ns));
            assert_eq!(ops[&kind].latency, expected);
            assert_eq!(ops[&kind].latency.min_ns(), expected.min_ns());
            assert_eq!(ops[&kind].count, expected.count());
        }
    }

    #[test]
    fn failed_requests_count_in_depth_and_late_ones_in_latency() {
        let (published, mut snapshot) = sinks();
        let mut counters = Counters::new(0, 0, None);
        counters.end_cell(0, &published, &mut snapshot);
        counters.record(OpKind::Read, 512, 300, 1000);
        counters.fail(OpKind::Read, libc::EIO, 700, 1000);
        counters.end_cell(2000, &published, &mut snapshot);
        assert_eq!(counters.busy_ns(), 1000);
        counters.close_series(2000, &mut snapshot);
        counters.record(OpKind::Write, 512, 9_000, 11_000);
        counters.end_cell(11_000, &published, &mut snapshot);
        let (ops, _) = counters.finish(&mut snapshot);
        assert_eq!(ops[&OpKind::Write].count, 0);
        assert_eq!(ops[&OpKind::Write].latency.max_ns(), 9_000);
    }

    #[test]
    fn warm_up_that_uses_the_budget_up_counts() {
        let (published, mut snapshot) = sinks();
        let mut counters = Counters::new(0, 1_000_000, Some(&LatencyHistogram::new()));
        counters.record(OpKind::Read, 512, 300, 1000);
        counters.record_waited(OpKind::Read, 300, 40);
        counters.fail(OpKind::Read, libc::EIO, 700, 1000);
        counters.end_cell(2000, &published, &mut snapshot);
        counters.keep_warmup(&mut snapshot);
        let (ops, asked) = counters.finish(&mut snapshot);
        let read = &ops[&OpKind::Read];
        assert_eq!(
            (read.count, read.bytes, read.series.total().ops),
            (1, 512, 1)
        );
        assert_eq!(read.latency.count(), 1);
        assert_eq!(read.latency_intended.as_ref().unwrap().count(), 1);
        assert_eq!((read.errors.len(), asked.read_bytes), (1, 512));
    }

    #[test]
    fn errors_of_warm_up_count_without_its_operations() {
        let (published, mut snapshot) = sinks();
        let mut counters = Counters::new(0, 1_000_000, None);
        counters.record(OpKind::Read, 512, 300, 1000);
        counters.fail(OpKind::Read, libc::EIO, 700, 2000);
        counters.end_cell(500_000, &published, &mut snapshot);
        // A worker that hangs in its warm-up leaves only what it has published.
        counters.publish_to(&mut snapshot);
        assert_eq!(snapshot.so_far.ops[&OpKind::Read].errors["EIO"], 1);
        counters.end_cell(1_000_000, &published, &mut snapshot);
        counters.fail(OpKind::Read, libc::EIO, 700, 1_500_000);
        counters.record(OpKind::Read, 512, 400, 1_600_000);
        counters.end_cell(2_000_000, &published, &mut snapshot);
        assert_eq!(counters.busy_ns(), 700 + 400);
        let (ops, _) = counters.finish(&mut snapshot);
        let read = &ops[&OpKind::Read];
        assert_eq!((read.count, read.latency.count()), (1, 1));
        assert_eq!((read.series.total().errors, read.errors["EIO"]), (1, 2));
    }

    #[test]
    fn success_resets_consecutive_failures() {
        let mut counters = Counters::new(0, 0, None);
        let fail = |counters: &mut Counters| counters.fail(OpKind::Read, libc::EIO, 1, 1);
        (0..3).for_each(|_| fail(&mut counters));
        assert_eq!(counters.fatal_errno(3), Some(libc::EIO));
        counters.record(OpKind::Read, 512, 9, 2);
        (0..2).for_each(|_| fail(&mut counters));
        assert_eq!(counters.fatal_errno(3), None);
        fail(&mut counters);
        assert_eq!(counters.fatal_errno(3), Some(libc::EIO));
    }
}
