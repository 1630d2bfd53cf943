//! Finds limiters with a burst credit: puts what a run moved on each target into the order of the
//! clock, and looks for the credit that it shows. Rows, findings, the verdict and campaigns use
//! this module, so that all of them have the same bursts.

mod bucket;
mod credit;
mod held;
mod late_fall;
mod plateau;
mod stretch;
pub(crate) mod words;

pub(crate) use bucket::{Bucket, find_bucket, find_buckets, sustained_from_ns, tokens};
pub(crate) use credit::spent_before;
pub(crate) use held::{HeldRate, held_rate, held_rate_of_rows};
pub(crate) use late_fall::{LateFall, late_fall};
pub(crate) use stretch::{Role, Stretch, Unit, counts_in};

use crate::estimate;
use crate::moved::filled_from_ns;
use diskproof_model::campaign::{DroppedSlice, MovedBeside};
use diskproof_model::data::RunData;
use diskproof_model::limiter::BurstCredit;
use diskproof_model::measurement::{Measurement, MovedTotal, OpKind};
use diskproof_model::plan::{CachePolicy, EngineKind, Plan, SyncPolicy, Workload};
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::slice::WARMUP_PARTS;
use diskproof_model::target::TargetIdentity;
use diskproof_model::window::TimeSlice;
use std::collections::BTreeSet;

/// A later slice spends a ninth of its measured time on the warm-up before it: one tenth of its
/// whole time. The first slice has the whole warm-up of the workload.
const LATER_WARMUP_PARTS: u64 = WARMUP_PARTS - 1;
/// A warm-up has no series of its own. The first cells after it, up to this many, give its rate: a
/// tenth of a second in the finest cells.
const WARMUP_CELLS: usize = 10;

/// A credit that ended on a target during the run, and all that moved on that target's disk.
pub(crate) struct FoundCredit {
    pub(crate) target: usize,
    pub(crate) bucket: Bucket,
    stretches: Vec<Stretch>,
}

impl FoundCredit {
    /// The measured time after which a row used no credit; see [`sustained_from_ns`].
    pub(crate) fn sustained_from_ns(&self, row: usize) -> Option<u64> {
        sustained_from_ns(&self.stretches, row, &self.bucket).map(|ns| ns as u64)
    }

    /// The credit as records store it. `rows` are all rows of the run: those above the base rate
    /// are listed as `in_burst`.
    pub(crate) fn record(&self, rows: &[Row]) -> BurstCredit {
        let bucket = &self.bucket;
        let mut in_burst = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            if row.data.target == self.target
                && waits_for_disk(&row.data)
                && bucket.is_above(rate_of(row, bucket.unit))
            {
                in_burst.push(index);
            }
        }
        BurstCredit {
            target: self.target,
            unit: bucket.unit.per_second().to_owned(),
            base: bucket.base,
            burst: bucket.burst,
            credit: bucket.credit,
            credit_is_lower_bound: !bucket.is_whole,
            burst_ns: bucket.burst_ns() as u64,
            refill_ns: bucket.refill_ns() as u64,
            at_base: bucket.rows.clone(),
            in_burst,
            has_reads: bucket.has_reads,
            has_refilled: bucket.has_refilled,
        }
    }
}

/// Reads and writes of a row per second, in requests or in bytes.
pub(crate) fn rate_of(row: &Row, unit: Unit) -> f64 {
    let ops = OpKind::TRANSFERS.iter().filter_map(|kind| row.op(*kind));
    match unit {
        Unit::Requests => ops.map(|op| op.figures.iops.value).sum(),
        Unit::Bytes => ops.map(|op| op.figures.throughput.value).sum(),
    }
}

/// The burst credits that ended during the run, at most one in each unit for each measured target.
pub(crate) fn found_credits(
    data: &RunData,
    plan: &Plan,
    targets: &[TargetIdentity],
) -> Vec<FoundCredit> {
    let measured: BTreeSet<usize> = data.measurements.iter().map(|row| row.target).collect();
    let mut credits = Vec::new();
    for target in measured {
        let stretches = stretches_of(data, plan, &TargetsOfDisk::new(target, targets));
        for bucket in find_buckets(&stretches) {
            credits.push(FoundCredit {
                target,
                bucket,
                stretches: stretches.clone(),
            });
        }
    }
    credits
}

/// A target, and those that lie on the same disk: they use one credit.
struct TargetsOfDisk<'a> {
    target: usize,
    targets: &'a [TargetIdentity],
}

impl<'a> TargetsOfDisk<'a> {
    fn new(target: usize, targets: &'a [TargetIdentity]) -> Self {
        Self { target, targets }
    }

    fn is_on_disk(&self, other: usize) -> bool {
        if other == self.target {
            return true;
        }
        match (self.targets.get(self.target), self.targets.get(other)) {
            (Some(identity), Some(other_identity)) => identity.shares_disk(other_identity),
            (None, _) | (_, None) => false,
        }
    }

    /// The [`Role`] of a row. A row of another target may wait for something else, so it only uses
    /// credit.
    fn role_of(&self, row: &Measurement, plan: &Plan) -> Role {
        if row.target == self.target {
            role_of(&row.workload, plan)
        } else {
            Role::Shared
        }
    }
}

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
fn uses_credit(row: &Measurement) -> bool {
    let is_passed_on = row.cache.used != CachePolicy::Cached || row.workload.sync.is_ongoing();
    is_passed_on && row.engine.used != EngineKind::Null
}

/// The reads and writes on the disk of a target in the order of time: warm-ups, the filling of
/// scratch files and dropped slices included, since all of them use credit.
fn stretches_of(data: &RunData, plan: &Plan, disk: &TargetsOfDisk<'_>) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    for (index, row) in data.measurements.iter().enumerate() {
        if !disk.is_on_disk(row.target) || !uses_credit(row) {
            continue;
        }
        let series = requests_of(row);
        let role = if waits_for_disk(row) {
            disk.role_of(row, plan)
        } else {
            Role::Shared
        };
        let kind = RowKind::new(index, &row.workload, role);
        let times = RowTimes {
            start_ns: row.start_ns,
            wall_ns: row.wall_ns,
            slices: &row.slices,
            warmup_ns: planned_warmup_ns(plan, &row.workload.name),
        };
        stretches.extend(kind.stretches(&times, &series));
        if let Some(filled) = row.laid_out {
            let from_ns = filled_from_ns(data.measurements.iter(), row.start_ns);
            stretches.extend(kind.filling(filled, from_ns, &times));
        }
        for slice in &data.dropped {
            if slice.target == row.target && slice.workload == row.workload.name {
                stretches.extend(kind.dropped(slice));
            }
        }
    }
    for moved in &data.beside {
        stretches.push(stretch_beside(moved));
    }
    in_order(stretches)
}

/// The warm-up of the workload with this name; 0 where the plan has none of this name.
fn planned_warmup_ns(plan: &Plan, name: &str) -> u64 {
    let mut workloads = plan.workloads().iter();
    match workloads.find(|workload| workload.name == name) {
        Some(workload) => workload.warmup_ns,
        None => 0,
    }
}

/// The slices of another side of a comparison as one cell: nothing finer is recorded.
fn stretch_beside(moved: &MovedBeside) -> Stretch {
    let (start_ns, wall_ns) = (moved.start_ns as f64, moved.wall_ns as f64);
    let cell = Cell {
        ops: moved.requests,
        bytes: moved.bytes,
        ..Cell::default()
    };
    Stretch {
        is_in_row: false,
        ..RowKind::of_traffic(OTHER_SIDE, Role::Shared).stretch(
            Role::Shared,
            start_ns,
            wall_ns,
            &[cell],
        )
    }
}

/// Stands for the number of a row where no row of the record shows what moved.
const OTHER_SIDE: usize = usize::MAX;

/// The reads and writes of one side of a comparison, slice by slice with the warm-ups, for the
/// record of another side on the same disk. `data` holds all sides as its targets.
pub fn moved_by_side(data: &RunData, side: usize, plan: &Plan) -> Vec<MovedBeside> {
    stretches_of(data, plan, &TargetsOfDisk::new(side, &[]))
        .iter()
        .map(|stretch| MovedBeside {
            start_ns: stretch.start_ns as u64,
            wall_ns: (stretch.cell_ns * stretch.requests.len() as f64) as u64,
            requests: stretch.requests.iter().sum::<f64>() as u64,
            bytes: stretch.bytes.iter().sum::<f64>() as u64,
        })
        .collect()
}

/// The traffic of one cell of a campaign.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MovedInCell<'a> {
    /// Names the row, and has its depth, block size and warm-up.
    pub(crate) workload: &'a Workload,
    /// Start and length of the measured time.
    pub(crate) slice: &'a TimeSlice,
    /// Reads and writes over the measured time.
    pub(crate) moved: &'a TimeSeries,
    /// True if it is a cell of the side in question, not of another one on the same disk.
    pub(crate) is_own: bool,
}

/// The reads and writes of a campaign's cells on the disk of a side, in the order of time. The row
/// is the index of the workload in `names`; cells of other workloads are skipped.
pub(crate) fn stretches_of_cells<'a>(
    cells: impl Iterator<Item = MovedInCell<'a>>,
    names: &[String],
) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    for cell in cells {
        let Some(row) = names.iter().position(|name| *name == cell.workload.name) else {
            continue;
        };
        let times = RowTimes {
            start_ns: cell.slice.start_ns,
            wall_ns: cell.slice.wall_ns,
            slices: &[],
            warmup_ns: cell.workload.warmup_ns,
        };
        let role = if cell.is_own && !cell.workload.is_paced() {
            Role::Closed
        } else {
            Role::Shared
        };
        let mut cell_stretches =
            RowKind::new(row, cell.workload, role).stretches(&times, cell.moved);
        for stretch in &mut cell_stretches {
            stretch.is_in_row &= cell.is_own;
        }
        stretches.extend(cell_stretches);
    }
    in_order(stretches)
}

/// The stretches by their start.
fn in_order(mut stretches: Vec<Stretch>) -> Vec<Stretch> {
    stretches.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
    stretches
}

/// Reads and writes of a measurement over time, without their latencies.
pub(crate) fn requests_of(row: &Measurement) -> TimeSeries {
    let series = OpKind::TRANSFERS
        .iter()
        .filter_map(|kind| row.ops.get(kind));
    let Some(sum) = estimate::summed(series.map(|op| &op.series)) else {
        return TimeSeries::new(1);
    };
    TimeSeries {
        cells: sum
            .cells
            .iter()
            .map(|cell| Cell {
                ops: cell.ops,
                bytes: cell.bytes,
                ..Cell::default()
            })
            .collect(),
        ..sum
    }
}

/// The [`Role`] of a workload: it shows a limiter where only the disk delays its next request.
fn role_of(workload: &Workload, plan: &Plan) -> Role {
    let is_alone = plan
        .group_of(&workload.name)
        .is_none_or(|group| group.is_alone());
    if !workload.is_paced() && plan.ping().is_none() && is_alone {
        Role::Closed
    } else {
        Role::Shared
    }
}

/// The times at which a row ran.
struct RowTimes<'a> {
    start_ns: u64,
    wall_ns: u64,
    /// Empty where it ran without a break.
    slices: &'a [TimeSlice],
    warmup_ns: u64,
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
struct RowKind {
    row: usize,
    family: String,
    depth: f64,
    has_writes: bool,
    block_bytes: f64,
    role: Role,
}

impl RowKind {
    /// The properties of the row with this index.
    fn new(row: usize, workload: &Workload, role: Role) -> Self {
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
            depth: f64::from(workload.depth) * f64::from(workload.workers),
            has_writes: !only_reads || workload.sync != SyncPolicy::None,
            block_bytes: f64::from(workload.block_sizes().fold(0, u32::max)),
            role,
        }
    }

    /// The properties of a row of which only the credit that it uses counts.
    fn of_traffic(row: usize, role: Role) -> Self {
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
    fn stretch(&self, role: Role, start_ns: f64, cell_ns: f64, cells: &[Cell]) -> Stretch {
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
    fn stretches(&self, times: &RowTimes<'_>, series: &TimeSeries) -> Vec<Stretch> {
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
    fn filling(&self, filled: MovedTotal, from_ns: u64, times: &RowTimes<'_>) -> Option<Stretch> {
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
    fn dropped(&self, slice: &DroppedSlice) -> Vec<Stretch> {
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

/// The highest rate of a run on a target, and the longest time without a pause for which it kept
/// about that rate. One slice is one cell. `None` where nothing ran in a closed loop.
pub(crate) fn held_by_rows(record: &Record, target: usize, unit: Unit) -> Option<HeldRate> {
    let mut stretches = Vec::new();
    for (index, row) in record.measurements.iter().enumerate() {
        let is_closed = !row.data.workload.is_paced() && row.figures.ping.is_none();
        if row.data.target != target || !is_closed || !waits_for_disk(&row.data) {
            continue;
        }
        for slice in &row.data.slices {
            let per_second = slice_rate(slice, unit);
            stretches.push(stretch_at_rate(
                index,
                slice.start_ns,
                slice.wall_ns,
                per_second,
            ));
        }
        if row.data.slices.is_empty() {
            let (start_ns, wall_ns) = (row.data.start_ns, row.data.wall_ns);
            stretches.push(stretch_at_rate(
                index,
                start_ns,
                wall_ns,
                rate_of(row, unit),
            ));
        }
    }
    held_rate(&stretches, unit)
}

/// A stretch of one cell that moved so much per second, in requests as in bytes: [`held_rate`]
/// reads only one of the two.
fn stretch_at_rate(row: usize, start_ns: u64, wall_ns: u64, per_second: f64) -> Stretch {
    let moved = vec![per_second * wall_ns as f64 / 1e9];
    Stretch {
        requests: moved.clone(),
        bytes: moved,
        ..RowKind::of_traffic(row, Role::Closed).stretch(
            Role::Closed,
            start_ns as f64,
            wall_ns as f64,
            &[],
        )
    }
}

/// The fall of a target within the last second of its rows; see [`late_fall`].
pub(crate) fn late_fall_of(record: &Record, target: usize) -> Option<LateFall> {
    let mut stretches = Vec::new();
    for (index, row) in record.measurements.iter().enumerate() {
        if row.data.target != target || !waits_for_disk(&row.data) {
            continue;
        }
        let ops = OpKind::TRANSFERS.iter().filter_map(|kind| row.op(*kind));
        let Some(series) = estimate::summed(ops.map(|op| op.data.series.clone())) else {
            continue;
        };
        let workload = &row.data.workload;
        let kind = RowKind::new(index, workload, role_of(workload, &record.plan));
        let times = RowTimes {
            start_ns: row.data.start_ns,
            wall_ns: row.data.wall_ns,
            slices: &row.data.slices,
            warmup_ns: 0,
        };
        stretches.extend(kind.stretches(&times, &series));
    }
    late_fall(&in_order(stretches))
}

/// Reads and writes of a slice per second, in requests or in bytes.
pub(crate) fn slice_rate(slice: &TimeSlice, unit: Unit) -> f64 {
    let ops = OpKind::TRANSFERS
        .iter()
        .filter_map(|kind| slice.ops.get(kind));
    match unit {
        Unit::Requests => ops.map(|op| op.iops).sum(),
        Unit::Bytes => ops.map(|op| op.bytes_per_second).sum(),
    }
}

/// The requests or bytes that a run used beyond the refill on the target of row `fallen`, until a
/// moment in that row at which its credit is assumed to have ended.
pub(crate) fn credit_before(
    record: &Record,
    fallen: usize,
    moment_ns: f64,
    base: f64,
    unit: Unit,
) -> f64 {
    let target = record.measurements[fallen].data.target;
    let mut stretches = Vec::new();
    for (index, row) in record.measurements.iter().enumerate() {
        if row.data.target != target || !uses_credit(&row.data) {
            continue;
        }
        let ops = OpKind::TRANSFERS.iter().filter_map(|kind| row.op(*kind));
        let Some(series) = estimate::summed(ops.map(|op| op.data.shown_series())) else {
            continue;
        };
        let kind = RowKind::of_traffic(index, Role::Closed);
        let times = RowTimes {
            start_ns: row.data.start_ns,
            wall_ns: row.data.wall_ns,
            slices: &row.data.slices,
            warmup_ns: planned_warmup_ns(&record.plan, &row.data.workload.name),
        };
        stretches.extend(kind.stretches(&times, &series));
        if let Some(filled) = row.data.laid_out {
            let rows = record.measurements.iter().map(|row| &row.data);
            let from_ns = filled_from_ns(rows, row.data.start_ns);
            stretches.extend(kind.filling(filled, from_ns, &times));
        }
    }
    // A row that had not ended by then ran at the same time, if at all.
    stretches.retain(|stretch| stretch.row == fallen || stretch.end_ns() <= moment_ns);
    spent_before(&in_order(stretches), moment_ns, base, unit)
}

#[cfg(test)]
mod tests;
