//! Puts what one row moved into stretches: its slices, the warm-ups before them, the edges of the
//! slices, and the filling of its scratch file. All of them use credit, but only whole cells of
//! measured time can show a limiter.

use super::stretch::{Role, Stretch};
use diskproof_model::campaign::DroppedSlice;
use diskproof_model::measurement::{Measurement, MovedTotal, OpKind};
use diskproof_model::plan::{CachePolicy, EngineKind, Plan, SyncPolicy, Workload};
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::slice::WARMUP_PARTS;
use diskproof_model::window::TimeSlice;

/// A later slice spends a ninth of its measured time on the warm-up before it: one tenth of its
/// whole time. The first slice has the whole warm-up of the workload.
const LATER_WARMUP_PARTS: u64 = WARMUP_PARTS - 1;
/// A warm-up has no series of its own. The first cells after it, up to this many, give its rate: a
/// tenth of a second in the finest cells.
const WARMUP_CELLS: usize = 10;

/// Returns `true` if the requests of a row waited for the disk, so that they show what a limiter
/// allows.
pub(crate) fn waits_for_disk(row: &Measurement) -> bool {
    uses_credit(row)
        && (row.cache.used != CachePolicy::Buffered
            || row.workload.sync.is_ongoing()
            || row.workload.streams.is_only(OpKind::Read))
}

/// Returns `true` if the requests of a row reach the disk while it runs, at once or when the page
/// cache is written back: those that only move through the page cache use no credit.
pub(super) fn uses_credit(row: &Measurement) -> bool {
    let is_passed_on = row.cache.used != CachePolicy::Cached || row.workload.sync.is_ongoing();
    is_passed_on && row.engine.used != EngineKind::Null
}

/// True if commits of a row may be one request of the disk: the kernel joins what several sessions
/// write through the page cache.
pub(crate) fn joins_commits(row: &Measurement) -> bool {
    row.cache.used != CachePolicy::Direct
        && !row.workload.streams.is_only(OpKind::Read)
        && row.workload.total_depth() > 1
}

/// The requests that the disk got for each one that a row counts, at most 1. Where the kernel joins
/// commits and the disk has no counters, all that wait at a time may be one request.
pub(super) fn requests_of_disk(row: &Measurement) -> f64 {
    if !joins_commits(row) {
        return 1.0;
    }
    let device = &row.device;
    let disk_requests = device.read_ops.saturating_add(device.write_ops);
    let mut counted: u64 = 0;
    for kind in OpKind::TRANSFERS {
        if let Some(op) = row.ops.get(&kind) {
            counted = counted.saturating_add(op.count);
        }
    }
    if device.unresolved.is_some() || device.accounted.is_none() || disk_requests == 0 {
        return 1.0 / row.workload.total_depth() as f64;
    }
    (disk_requests as f64 / counted.max(1) as f64).min(1.0)
}

/// The [`Role`] of a workload: it shows a limiter where only the disk delays its next request.
pub(super) fn role_of(workload: &Workload, plan: &Plan) -> Role {
    let is_alone = plan
        .group_of(&workload.name)
        .is_none_or(|group| group.is_alone());
    if !workload.is_paced() && plan.ping().is_none() && is_alone {
        Role::Closed
    } else {
        Role::Shared
    }
}

/// The warm-up of the workload with this name; 0 where the plan has none of this name.
pub(super) fn planned_warmup_ns(plan: &Plan, name: &str) -> u64 {
    let mut workloads = plan.workloads().iter();
    match workloads.find(|workload| workload.name == name) {
        Some(workload) => workload.warmup_ns,
        None => 0,
    }
}

/// The times at which a row ran.
pub(super) struct RowTimes<'a> {
    /// By the clock of the run.
    pub(super) start_ns: u64,
    pub(super) wall_ns: u64,
    /// Empty where it ran without a break.
    pub(super) slices: &'a [TimeSlice],
    /// The planned warm-up before it.
    pub(super) warmup_ns: u64,
}

/// A part of a row without a break, and what it moved.
struct UnbrokenPart {
    start_ns: u64,
    wall_ns: u64,
    /// In all, as one cell.
    moved: Cell,
}

impl RowTimes<'_> {
    /// The slices; of a row without slices all of it, with what its series has moved.
    fn unbroken_parts(&self, series: &TimeSeries) -> Vec<UnbrokenPart> {
        if self.slices.is_empty() {
            return vec![UnbrokenPart {
                start_ns: self.start_ns,
                wall_ns: self.wall_ns,
                moved: series.total(),
            }];
        }
        let mut parts = Vec::new();
        for slice in self.slices {
            parts.push(UnbrokenPart {
                start_ns: slice.start_ns,
                wall_ns: slice.wall_ns,
                moved: moved_in_slice(slice),
            });
        }
        parts
    }
}

/// The sums of a slice, as one cell.
fn moved_in_slice(slice: &TimeSlice) -> Cell {
    let mut moved = Cell::default();
    for kind in OpKind::TRANSFERS {
        if let Some(op) = slice.ops.get(&kind) {
            moved.merge(&Cell {
                ops: op.count,
                bytes: op.bytes,
                ..Cell::default()
            });
        }
    }
    moved
}

/// The rest of a sum, without a part of it.
fn without(all: Cell, part: Cell) -> Cell {
    Cell {
        ops: all.ops.saturating_sub(part.ops),
        bytes: all.bytes.saturating_sub(part.bytes),
        ..Cell::default()
    }
}

/// The cells of a series that belong to one slice only, and the times of the slice around them.
struct WholeCells<'a> {
    cells: &'a [Cell],
    /// The time of the slice before the first cell; all of it where there is no cell.
    head_ns: u64,
    /// The time after the last cell.
    tail_ns: u64,
}

impl<'a> WholeCells<'a> {
    /// Those of a slice that begins after so much measured time.
    fn of_slice(series: &'a TimeSeries, offset_ns: u64, wall_ns: u64) -> Self {
        let cell_ns = series.interval_ns.max(1);
        let begin_ns = offset_ns.saturating_sub(series.start_ns);
        let end_ns = offset_ns
            .saturating_add(wall_ns)
            .saturating_sub(series.start_ns);
        let first = begin_ns.div_ceil(cell_ns) as usize;
        let last = ((end_ns / cell_ns) as usize).min(series.cells.len());
        let cells = series.cells.get(first..last).unwrap_or_default();
        let head_ns = match cells {
            [] => wall_ns,
            _ => (first as u64 * cell_ns).saturating_sub(begin_ns),
        };
        Self {
            cells,
            head_ns,
            tail_ns: (wall_ns - head_ns).saturating_sub(cells.len() as u64 * cell_ns),
        }
    }

    /// Their sums, as one cell.
    fn moved(&self) -> Cell {
        let mut moved = Cell::default();
        for cell in self.cells {
            moved.merge(cell);
        }
        moved
    }

    /// The part of what the slice has moved around them that lies before the first one.
    fn head_of(&self, around: Cell) -> Cell {
        let around_ns = self.head_ns + self.tail_ns;
        let share = self.head_ns as f64 / around_ns.max(1) as f64;
        Cell {
            ops: (around.ops as f64 * share) as u64,
            bytes: (around.bytes as f64 * share) as u64,
            ..Cell::default()
        }
    }
}

/// The properties that all stretches of a row share.
pub(super) struct RowKind {
    row: usize,
    family: String,
    depth: f64,
    has_writes: bool,
    block_bytes: f64,
    role: Role,
}

impl RowKind {
    /// The properties of the row with this index.
    pub(super) fn new(row: usize, workload: &Workload, role: Role) -> Self {
        let only_reads = workload.streams.is_only(OpKind::Read);
        Self {
            row,
            // Compared within one run only, so that its text may change.
            family: format!(
                "{:?} {:?} {} {:?} {:?}",
                workload.access,
                workload.streams,
                workload.block_bytes,
                workload.block_mix,
                workload.sync
            ),
            depth: workload.total_depth() as f64,
            has_writes: !only_reads || workload.sync != SyncPolicy::None,
            block_bytes: f64::from(workload.block_sizes().fold(0, u32::max)),
            role,
        }
    }

    /// The properties of a row of which only the credit that it uses counts.
    pub(super) fn of_traffic(row: usize, role: Role) -> Self {
        Self {
            row,
            family: String::new(),
            depth: 0.0,
            has_writes: false,
            block_bytes: 0.0,
            role,
        }
    }

    /// A stretch of this row with these cells.
    pub(super) fn stretch(
        &self,
        role: Role,
        start_ns: f64,
        cell_ns: f64,
        cells: &[Cell],
    ) -> Stretch {
        Stretch {
            row: self.row,
            family: self.family.clone(),
            depth: self.depth,
            has_writes: self.has_writes,
            block_bytes: self.block_bytes,
            role,
            is_in_row: role != Role::Unmeasured,
            start_ns,
            cell_ns,
            requests: cells.iter().map(|cell| cell.ops as f64).collect(),
            bytes: cells.iter().map(|cell| cell.bytes as f64).collect(),
        }
    }

    /// The stretches of each slice of the row, and one for the warm-up before it. A cell that only
    /// partly belongs to a slice is in no stretch of cells; what a slice has moved besides its
    /// whole cells lies at its edges, and used credit like the rest.
    pub(super) fn stretches(&self, times: &RowTimes<'_>, series: &TimeSeries) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        let cell_ns = series.interval_ns.max(1);
        let mut offset_ns: u64 = 0;
        for (number, part) in times.unbroken_parts(series).into_iter().enumerate() {
            let whole = WholeCells::of_slice(series, offset_ns, part.wall_ns);
            offset_ns = offset_ns.saturating_add(part.wall_ns);
            let around = without(part.moved, whole.moved());
            let head = whole.head_of(around);
            if whole.cells.is_empty() {
                stretches.extend(self.edge(part.start_ns, whole.head_ns, head));
                continue;
            }
            let warmup_ns = match number {
                0 => times.warmup_ns,
                _ => times.warmup_ns.min(part.wall_ns / LATER_WARMUP_PARTS),
            };
            let from_ns = part.start_ns.saturating_add(whole.head_ns);
            let tail_ns = part.start_ns.saturating_add(part.wall_ns - whole.tail_ns);
            stretches.extend(self.warmup(part.start_ns, warmup_ns, cell_ns, whole.cells));
            stretches.extend(self.edge(part.start_ns, whole.head_ns, head));
            stretches.push(self.stretch(self.role, from_ns as f64, cell_ns as f64, whole.cells));
            stretches.extend(self.edge(tail_ns, whole.tail_ns, without(around, head)));
        }
        stretches
    }

    /// The part of a slice before or after its whole cells; `None` where it has no length.
    fn edge(&self, start_ns: u64, length_ns: u64, moved: Cell) -> Option<Stretch> {
        if length_ns == 0 {
            return None;
        }
        Some(self.stretch(Role::Shared, start_ns as f64, length_ns as f64, &[moved]))
    }

    /// A warm-up, assumed to run at the rate of the cells after it; `None` where it takes no time.
    fn warmup(
        &self,
        end_ns: u64,
        planned_ns: u64,
        cell_ns: u64,
        after: &[Cell],
    ) -> Option<Stretch> {
        let warmup_ns = planned_ns.min(end_ns);
        let first = &after[..after.len().min(WARMUP_CELLS)];
        let ops: u64 = first.iter().map(|cell| cell.ops).sum();
        let bytes: u64 = first.iter().map(|cell| cell.bytes).sum();
        let share = warmup_ns as f64 / (first.len() as f64 * cell_ns as f64);
        let cell = Cell {
            ops: (ops as f64 * share) as u64,
            bytes: (bytes as f64 * share) as u64,
            ..Cell::default()
        };
        if warmup_ns == 0 {
            return None;
        }
        let start_ns = end_ns - warmup_ns;
        Some(self.stretch(Role::Unmeasured, start_ns as f64, warmup_ns as f64, &[cell]))
    }

    /// The filling of the scratch file, from `from_ns` until the row begins.
    pub(super) fn filling(
        &self,
        filled: MovedTotal,
        from_ns: u64,
        times: &RowTimes<'_>,
    ) -> Option<Stretch> {
        let end_ns = times.start_ns.saturating_sub(times.warmup_ns);
        // A warm-up that was planned longer than it was ends before it began.
        let start_ns = if from_ns < end_ns { from_ns } else { 0 };
        let length_ns = end_ns - start_ns;
        let cell = Cell {
            ops: filled.requests,
            bytes: filled.bytes,
            ..Cell::default()
        };
        if length_ns == 0 {
            return None;
        }
        Some(self.stretch(Role::Unmeasured, start_ns as f64, length_ns as f64, &[cell]))
    }

    /// A slice that no longer counts in the row, and its warm-up. It still used credit.
    pub(super) fn dropped(&self, slice: &DroppedSlice) -> Vec<Stretch> {
        let times = RowTimes {
            start_ns: slice.start_ns,
            wall_ns: slice.moved.cells.len() as u64 * slice.moved.interval_ns,
            slices: &[],
            warmup_ns: slice.warmup_ns,
        };
        let mut stretches = self.stretches(&times, &slice.moved);
        for stretch in &mut stretches {
            stretch.is_in_row = false;
        }
        stretches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL_NS: u64 = 10_000_000;

    /// A series of cells of 10 ms with these requests of 1 KiB.
    fn series(requests: &[u64]) -> TimeSeries {
        let mut series = TimeSeries::new(CELL_NS);
        for ops in requests {
            series.cells.push(Cell {
                ops: *ops,
                bytes: ops * 1024,
                ..Cell::default()
            });
        }
        series
    }

    fn kind() -> RowKind {
        RowKind::new(3, &Workload::named("reads"), Role::Closed)
    }

    #[test]
    fn commits_that_the_kernel_joins_count_as_what_the_disk_got() {
        let record = crate::fixture::record();
        let row = record
            .measurements
            .iter()
            .find(|row| row.data.workload.name == "commit-fdatasync")
            .unwrap();
        let mut commits = row.data.clone();
        commits.cache.used = CachePolicy::Cached;
        assert_eq!(requests_of_disk(&commits), 1.0);
        commits.workload.workers = 16;
        let count = commits.ops[&OpKind::Write].count;
        commits.device.unresolved = None;
        commits.device.accounted = Some(1.0);
        (commits.device.read_ops, commits.device.write_ops) = (0, count / 4);
        assert!((requests_of_disk(&commits) - 0.25).abs() < 0.01);
        // The journal of the filesystem makes them more, which the row does not count either.
        commits.device.write_ops = 2 * count;
        assert_eq!(requests_of_disk(&commits), 1.0);
        commits.device.accounted = None;
        assert_eq!(requests_of_disk(&commits), 1.0 / 16.0);
    }

    /// The start and length of a stretch in milliseconds, and the requests of its cells.
    fn shown(stretches: &[Stretch], role: Role) -> Vec<(f64, f64, Vec<f64>)> {
        let mut shown = Vec::new();
        for stretch in stretches {
            if stretch.role == role {
                let length_ms = stretch.length_ns() / 1e6;
                shown.push((stretch.start_ns / 1e6, length_ms, stretch.requests.clone()));
            }
        }
        shown
    }

    /// A slice of so many requests, in milliseconds.
    fn slice(start_ms: u64, wall_ms: u64, count: u64) -> TimeSlice {
        let wall_ns = wall_ms * 1_000_000;
        let op = diskproof_model::window::SliceOp::from_counts(count, count * 1024, wall_ns);
        TimeSlice {
            start_ns: start_ms * 1_000_000,
            wall_ns,
            ops: [(OpKind::Read, op)].into_iter().collect(),
            slot: None,
        }
    }

    /// The warm-up of 300 ms ran as its first tenth of a second shows: 10 requests in a cell, not
    /// the 40 of the later ones.
    #[test]
    fn warm_up_has_the_rate_of_the_first_ten_cells_after_it() {
        let mut requests = vec![10; 10];
        requests.extend([40; 10]);
        let series = series(&requests);
        let times = RowTimes {
            start_ns: 1_000_000_000,
            wall_ns: 200_000_000,
            slices: &[],
            warmup_ns: 300_000_000,
        };
        let stretches = kind().stretches(&times, &series);
        assert_eq!(
            shown(&stretches, Role::Unmeasured),
            [(700.0, 300.0, vec![300.0])]
        );
        assert!(!stretches[0].is_in_row && stretches[1].is_in_row);
        // It cannot begin before the run.
        let early = RowTimes {
            start_ns: 100_000_000,
            ..times
        };
        assert_eq!(
            shown(&kind().stretches(&early, &series), Role::Unmeasured),
            [(0.0, 100.0, vec![100.0])]
        );
    }

    /// A later slice warms up for a tenth of its whole time, which is a ninth of the measured one,
    /// and for no longer than planned.
    #[test]
    fn warm_up_of_later_slices_is_a_ninth_of_their_time() {
        let series = series(&[10; 18]);
        let slices = [slice(1000, 90, 90), slice(2000, 90, 90)];
        for (planned_ms, first_ms, later_ms) in [(50, 50.0, 10.0), (4, 4.0, 4.0)] {
            let times = RowTimes {
                start_ns: slices[0].start_ns,
                wall_ns: 180_000_000,
                slices: &slices,
                warmup_ns: planned_ms * 1_000_000,
            };
            let stretches = kind().stretches(&times, &series);
            let warmups: Vec<(f64, f64)> = shown(&stretches, Role::Unmeasured)
                .into_iter()
                .map(|(start_ms, length_ms, _)| (start_ms, length_ms))
                .collect();
            let expected = [(1000.0 - first_ms, first_ms), (2000.0 - later_ms, later_ms)];
            assert_eq!(warmups, expected);
        }
    }

    /// The second slice begins and ends within cells. Its first 5 ms and its last 5 ms moved what
    /// is not in its two whole cells, in equal parts.
    #[test]
    fn edges_of_a_slice_have_what_lies_outside_of_its_whole_cells() {
        let series = series(&[10, 10, 20, 20, 20, 20]);
        let slices = [slice(1000, 25, 30), slice(2000, 30, 60)];
        let times = RowTimes {
            start_ns: slices[0].start_ns,
            wall_ns: 55_000_000,
            slices: &slices,
            warmup_ns: 0,
        };
        let stretches = kind().stretches(&times, &series);
        assert_eq!(
            shown(&stretches, Role::Closed),
            [
                (1000.0, 20.0, vec![10.0, 10.0]),
                (2005.0, 20.0, vec![20.0, 20.0])
            ]
        );
        assert_eq!(
            shown(&stretches, Role::Shared),
            [
                (1020.0, 5.0, vec![10.0]),
                (2000.0, 5.0, vec![10.0]),
                (2025.0, 5.0, vec![10.0])
            ]
        );
    }

    /// A slice within one cell shows no rate, but used credit.
    #[test]
    fn slice_without_a_whole_cell_is_all_edge() {
        let slices = [slice(1000, 15, 30)];
        let times = RowTimes {
            start_ns: slices[0].start_ns,
            wall_ns: 15_000_000,
            slices: &slices,
            warmup_ns: 0,
        };
        let mut long_cells = TimeSeries::new(20_000_000);
        long_cells.cells = series(&[30]).cells;
        let stretches = kind().stretches(&times, &long_cells);
        assert_eq!(
            shown(&stretches, Role::Shared),
            [(1000.0, 15.0, vec![30.0])]
        );
        assert_eq!(stretches.len(), 1);
    }

    /// The filling of the first row begins with the run and ends where its warm-up begins.
    #[test]
    fn filling_lies_between_the_row_before_and_the_warm_up() {
        let times = RowTimes {
            start_ns: 1_000_000_000,
            wall_ns: 1,
            slices: &[],
            warmup_ns: 200_000_000,
        };
        let filled = MovedTotal {
            requests: 7,
            bytes: 7 << 20,
        };
        for (from_ms, start_ms, length_ms) in [
            (500, 500.0, 300.0),
            // The planned warm-up is longer than the gap: the filling lies somewhere before it.
            (900, 0.0, 800.0),
        ] {
            let filling = kind().filling(filled, from_ms * 1_000_000, &times).unwrap();
            assert_eq!(
                shown(&[filling], Role::Unmeasured),
                [(start_ms, length_ms, vec![7.0])]
            );
        }
        let at_once = RowTimes {
            start_ns: 200_000_000,
            ..times
        };
        assert!(kind().filling(filled, 0, &at_once).is_none());
    }

    /// Rows of one family differ only in their requests in flight; pure reads cannot fill a cache.
    #[test]
    fn properties_of_a_row_are_those_of_its_workload() {
        let reads = Workload {
            depth: 8,
            workers: 4,
            ..Workload::named("reads")
        };
        let kind = RowKind::new(0, &reads, Role::Closed);
        assert_eq!(kind.depth, 32.0);
        assert!(!kind.has_writes);
        let single = RowKind::new(1, &Workload::named("single"), Role::Closed);
        assert_eq!(kind.family, single.family);
        let synced = Workload {
            sync: SyncPolicy::AtEnd,
            ..reads
        };
        assert!(RowKind::new(0, &synced, Role::Closed).has_writes);
    }
}
