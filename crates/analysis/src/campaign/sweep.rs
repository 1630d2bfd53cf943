//! The sweep: block size × depth × operation, coarse to fine. Decides only: docs/sweep.md explains
//! the order.
//!
//! The first pass takes one slice of each cell of a coarse matrix, the second one of every other
//! cell, each in random order, so that what changes over time does not look like an effect of size
//! or depth. Then the cell that is known worst gets the next slice, until all are known to the
//! precision or the time is over. Of that time as much is kept as the knees need for three slices.

use super::decision::{
    Campaign, CampaignCell, CampaignRow, MeasuredCell, RandomOrder, SideCredit, SideDisks,
};
use crate::checked::PAGE_BYTES;
use crate::estimate::student::multiple_95;
use crate::estimate::{mean, variance};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Plan, Workload};
use diskproof_model::sweep::SweepPlan;
use diskproof_model::window::SLICES_MIN;
use std::collections::VecDeque;

/// The time is divided into this many slices of each cell: three that every cell gets, and two more
/// on average for the cells with the widest intervals.
const SLICES: u64 = 5;
/// The most slices of a cell: one more hardly narrows the interval of a rate that varies so much.
const SLICES_MAX: usize = 12;
/// The shortest slice: a shorter one holds too few cells of the series.
const SLICE_NS_MIN: u64 = 100_000_000;
/// The longest slice. Long slices leave no time for others.
const SLICE_NS_MAX: u64 = 1_000_000_000;
/// A slice of the coarse matrix takes one of this many parts of a later one, so that the whole
/// matrix is there soon.
const COARSE_PARTS: u64 = 2;
/// A slice lasts for this many latencies where time allows: a shorter one measures how a queue
/// fills.
const LATENCIES: f64 = 4.0;
/// A slice of a slow cell takes at most this many times half of its share of the time left.
const SLOW_PARTS: u64 = 4;
/// At most one of this many parts of the time is kept for the knees.
const KEPT_PARTS: u64 = 10;
/// The assumed gap between two slices, for threads, queues and counters. Measured gaps replace it.
const GAP_NS: u64 = 30_000_000;
/// Within this time processors and queues reach their pace.
const WARMUP_NS: u64 = 30_000_000;
/// Cells with more bytes in flight come last in their pass: the largest of the default matrix have
/// as many, and 64 blocks of 64 MiB take two seconds at 2 GB/s.
const IN_FLIGHT_MAX: u64 = 256 << 20;
/// A queue is warm after this multiple of the latency: one turn, and some more.
const QUEUE_TURN: f64 = 1.1;
/// Half-width of a 95 % interval in standard errors (normal distribution).
const NORMAL_95: f64 = 1.96;
/// Times are whole cells of the series.
const CELL_NS: u64 = 10_000_000;

/// The cells and limits of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepSetup {
    /// The cells. A limit in bytes holds for all slices of a cell together.
    pub cells: Vec<SweepCellSetup>,
    /// When the last slice ends, in nanoseconds after the start of the run.
    pub time_ns: u64,
    /// A cell is complete when the relative half-width of its 95 % interval reaches this.
    pub precision: f64,
    /// Seed of the random order.
    pub seed: u64,
}

/// Share of the time of a sweep that is left for what is in flight at the end, and for saving.
const END_PARTS: u64 = 40;
/// An axis with fewer values belongs to the coarse matrix as a whole.
const AXIS_MIN: usize = 4;

/// The time at which the last slice of a sweep ends, in nanoseconds after its start.
fn sweep_end_ns(time_ns: u64) -> u64 {
    time_ns - time_ns / END_PARTS
}

impl SweepSetup {
    /// The sweep of a plan. Each workload of `list` is a cell.
    pub fn planned(plan: &Plan, list: &[Workload], spec: &SweepPlan) -> Self {
        let mut cells = Vec::new();
        let mut precision = 0.0;
        for workload in list {
            cells.push(SweepCellSetup {
                pass: SweepPass::of_cell(workload, spec),
                workload: workload.clone(),
            });
            precision = workload.stop.precision.unwrap_or(precision);
        }
        Self {
            cells,
            time_ns: sweep_end_ns(plan.time_limit_ns.unwrap_or(u64::MAX)),
            precision,
            seed: plan.seed,
        }
    }
}

impl SweepPass {
    /// The coarse matrix has every second block size and depth. All other cells are fine, spans and
    /// mixed sizes included.
    fn of_cell(cell: &Workload, spec: &SweepPlan) -> Self {
        let size = spec
            .block_bytes
            .iter()
            .position(|bytes| *bytes == cell.block_bytes);
        let depth = spec.depths.iter().position(|depth| *depth == cell.depth);
        let is_of_matrix = spec
            .operations
            .iter()
            .any(|operation| cell.name == operation.cell_name(cell.block_bytes, cell.depth));
        match (size, depth) {
            (Some(size), Some(depth))
                if is_of_matrix
                    && is_coarse(size, spec.block_bytes.len(), 1)
                    && is_coarse(depth, spec.depths.len(), 0) =>
            {
                Self::Coarse
            }
            _ => Self::Fine,
        }
    }
}

/// Whether an index on an axis belongs to the coarse matrix: every second one from `first` on does.
fn is_coarse(index: usize, length: usize, first: usize) -> bool {
    length < AXIS_MIN || index % 2 == first
}

/// A cell of a sweep, before it is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepCellSetup {
    /// The workload with this cell's block size, depth and operation.
    pub workload: Workload,
    /// The pass in which its first slice is measured.
    pub pass: SweepPass,
}

/// The pass in which a cell is first measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepPass {
    /// The first pass: a coarse matrix.
    Coarse,
    /// The second pass: all other cells.
    Fine,
}

/// The slices of a cell so far.
#[derive(Debug, Clone)]
struct SweptCell {
    workload: Workload,
    rates: Vec<f64>,
    operations: u64,
    latency_ns: Option<f64>,
    left_bytes: Option<u64>,
    is_over: bool,
    /// A slice was measured in a burst. The cell is measured again as soon as time allows.
    is_burst: bool,
    /// The number of times that its slices were dropped.
    drops: usize,
}

/// The slices of a cell are dropped at most this often, so that a sweep of a disk whose rate keeps
/// falling still ends.
const DROPS_MAX: usize = 3;

impl SweptCell {
    fn new(setup: &SweepCellSetup) -> Self {
        Self {
            left_bytes: setup.workload.stop.bytes,
            workload: setup.workload.clone(),
            rates: Vec::new(),
            operations: 0,
            latency_ns: None,
            is_over: false,
            is_burst: false,
            drops: 0,
        }
    }

    /// Mean operations per second over its slices; 0 before the first.
    fn rate(&self) -> f64 {
        if self.rates.is_empty() {
            0.0
        } else {
            mean(&self.rates)
        }
    }

    /// Marks it as measured in a burst, wholly or partly.
    fn mark_burst(&mut self) {
        if self.drops < DROPS_MAX {
            self.is_burst = true;
            self.is_over = match self.left_bytes {
                Some(left) => left < u64::from(self.workload.block_bytes),
                None => false,
            };
        }
    }

    /// Forgets its slices, which were those of a burst.
    fn drop_slices(&mut self) {
        self.rates.clear();
        self.operations = 0;
        self.is_burst = false;
        self.drops += 1;
    }

    /// The bytes that the next slice may move; `None` where the cell has no limit.
    fn slice_bytes(&self) -> Option<u64> {
        let left_bytes = self.left_bytes?;
        let missing = SLICES_MIN.saturating_sub(self.rates.len());
        let slices = missing.max(1) as u64;
        let block = u64::from(self.workload.block_bytes);
        Some((left_bytes / slices / block).max(1) * block)
    }

    /// The distance of its block size from a page, as a logarithm.
    fn distance_to_page(&self) -> f64 {
        let size = f64::from(self.workload.block_bytes.max(1));
        (size / f64::from(PAGE_BYTES)).ln().abs()
    }

    /// Kleinrock's power: throughput over response time. It is highest at the knee.
    fn power(&self) -> f64 {
        self.rate().powi(2) / f64::from(self.workload.depth.max(1))
    }

    /// Whether it has too few slices for an interval.
    fn lacks_interval(&self) -> bool {
        self.rates.len() < SLICES_MIN
    }

    fn has_same_operation(&self, other: &Self) -> bool {
        let (asked, other) = (&self.workload, &other.workload);
        other.access == asked.access && other.streams == asked.streams
    }

    /// Relative half-width of the 95 % interval of its rate. With too few slices, or in a burst, it
    /// counts as larger than any useful interval, and the fewer operations the larger.
    fn error(&self) -> f64 {
        let count = self.rates.len() as f64;
        let rate = self.rate();
        let operations = self.operations.max(1) as f64;
        if self.lacks_interval() || self.is_burst || rate <= 0.0 {
            return 1.0 + NORMAL_95 / operations.sqrt();
        }
        let half_width = multiple_95(count - 1.0) * (variance(&self.rates) / count).sqrt();
        (half_width / rate).max(1.0 / operations)
    }

    fn add(&mut self, measured: &MeasuredCell, precision: f64) {
        let (mut rate, mut bytes, mut latency_ns) = (0.0, 0, None);
        for kind in [OpKind::Read, OpKind::Write] {
            let Some(op) = measured.slice.ops.get(&kind) else {
                continue;
            };
            rate += op.iops;
            bytes += op.bytes;
            self.operations += op.count;
            if let Some(latency) = op.latency {
                latency_ns = Some(latency.mean_ns.max(latency_ns.unwrap_or(0.0)));
            }
        }
        self.rates.push(rate);
        // Without a completion, the latency is longer than the slice: twice its time is assumed.
        let unanswered_ns = 2.0 * measured.slice.wall_ns as f64;
        self.latency_ns = Some(latency_ns.unwrap_or(unanswered_ns));
        if let Some(left) = &mut self.left_bytes {
            *left = left.saturating_sub(bytes);
            self.is_over |= *left < u64::from(self.workload.block_bytes);
        }
        let is_known = self.error() <= precision || self.rates.len() >= SLICES_MAX;
        self.is_over |= is_known && !self.is_burst;
    }
}

/// The campaign of a sweep, with what its slices showed so far.
#[derive(Debug, Clone)]
pub struct Sweep {
    cells: Vec<SweptCell>,
    /// Cells of the two passes that have no slice yet.
    coarse: VecDeque<usize>,
    fine: VecDeque<usize>,
    /// Some cells are not part of the coarse matrix.
    has_fine: bool,
    time_ns: u64,
    precision: f64,
    /// The cell of the latest slice.
    latest: Option<usize>,
    /// The start of the first slice, in nanoseconds after the start of the run.
    begin_ns: Option<u64>,
    /// The time between each two slices, in nanoseconds.
    gaps_ns: Vec<u64>,
    /// The burst credit that the slices so far show.
    credit: Option<SideCredit>,
    /// Rows that were dropped since [`Campaign::take_dropped`] was last called.
    dropped: Vec<CampaignRow>,
}

impl Sweep {
    /// Puts the cells of each pass into random order.
    pub fn new(setup: &SweepSetup) -> Self {
        let mut order: Vec<usize> = (0..setup.cells.len()).collect();
        RandomOrder::new(setup.seed).shuffle(&mut order);
        // A queue that takes seconds to fill and to drain must not use up the time of all others.
        order.sort_by_key(|index| in_flight_bytes(&setup.cells[*index].workload) > IN_FLIGHT_MAX);
        let (coarse, fine): (VecDeque<usize>, VecDeque<usize>) = order
            .into_iter()
            .partition(|index| setup.cells[*index].pass == SweepPass::Coarse);
        Self {
            cells: setup.cells.iter().map(SweptCell::new).collect(),
            has_fine: !fine.is_empty(),
            coarse,
            fine,
            time_ns: setup.time_ns,
            precision: setup.precision,
            latest: None,
            begin_ns: None,
            gaps_ns: Vec::new(),
            credit: None,
            dropped: Vec::new(),
        }
    }

    /// Takes the latest slice into account.
    fn end_slice(&mut self, done: &[MeasuredCell]) {
        let (Some(index), Some(measured)) = (self.latest, done.last()) else {
            return;
        };
        self.begin_ns.get_or_insert(start_ns(measured));
        if let [.., before, after] = done {
            let end_ns = before.slice.start_ns + before.slice.wall_ns;
            self.gaps_ns.push(start_ns(after).saturating_sub(end_ns));
        }
        self.cells[index].add(measured, self.precision);
        self.mark_bursts(done);
    }

    /// Marks the cells that a burst credit made faster than they stay. All cells are examined when
    /// the credit first shows, later only the one that was just measured.
    fn mark_bursts(&mut self, done: &[MeasuredCell]) {
        let was_known = self.credit.is_some();
        let names: Vec<String> = self
            .cells
            .iter()
            .map(|cell| cell.workload.name.clone())
            .collect();
        self.credit = SideCredit::shown(done, 0, &SideDisks::One, &names);
        let Some(credit) = &self.credit else {
            return;
        };
        let from = if was_known { done.len() - 1 } else { 0 };
        for slice in &done[from..] {
            if !credit.is_burst(slice) {
                continue;
            }
            let measured = self
                .cells
                .iter_mut()
                .find(|cell| cell.workload.name == slice.cell.workload.name);
            if let Some(cell) = measured {
                cell.mark_burst();
            }
        }
    }

    /// Notes the cell of the next slice. Drops its earlier slices if they were measured in a burst.
    fn begin_slice(&mut self, index: usize) {
        self.latest = Some(index);
        if self.cells[index].is_burst {
            self.cells[index].drop_slices();
            self.dropped.push(CampaignRow {
                side: 0,
                workload: self.cells[index].workload.name.clone(),
            });
        }
    }

    /// The latency of a cell; before its first slice, the one expected from the nearest cell of the
    /// same operation.
    fn latency_ns(&self, index: usize) -> f64 {
        let cell = &self.cells[index];
        if let Some(known_ns) = cell.latency_ns {
            return known_ns;
        }
        let asked = &cell.workload;
        let mut nearest = f64::INFINITY;
        let mut expected_ns = 0.0;
        for other in &self.cells {
            let known_ns = match other.latency_ns {
                Some(known_ns) if cell.has_same_operation(other) => known_ns,
                _ => continue,
            };
            let deeper = f64::from(asked.depth) / f64::from(other.workload.depth.max(1));
            let larger =
                f64::from(asked.block_bytes) / f64::from(other.workload.block_bytes.max(1));
            let distance = deeper.ln().abs() + larger.ln().abs();
            if distance < nearest {
                nearest = distance;
                // A disk that is busy takes in proportion to the depth. A larger block takes longer
                // as far as its transfer does.
                let by_depth = known_ns * deeper.max(1.0);
                expected_ns = by_depth * larger.max(1.0).sqrt();
            }
        }
        expected_ns
    }

    /// The time from the end of a slice of this cell to the start of the next slice: what is in
    /// flight completes, and the next slice is prepared.
    fn end_ns(&self, index: usize) -> u64 {
        self.latency_ns(index) as u64 + GAP_NS
    }

    /// When the next slice can begin, in nanoseconds after the start of the run.
    fn now_ns(&self, done: &[MeasuredCell]) -> u64 {
        let Some(last) = done.last() else {
            return 0;
        };
        let after_ns = match self.latest {
            Some(index) => self.end_ns(index),
            None => 0,
        };
        last.slice.start_ns + last.slice.wall_ns + after_ns
    }

    /// The time of a slice, warm-up included, when every cell gets as many as are planned.
    fn slice_ns(&self) -> u64 {
        let shared_ns = self.time_ns.saturating_sub(self.begin_ns.unwrap_or(0));
        let gap_ns = match self.gaps_ns.len() {
            0 => GAP_NS,
            gaps => self.gaps_ns.iter().sum::<u64>() / gaps as u64,
        };
        let each_ns = shared_ns / (SLICES * self.cells.len().max(1) as u64);
        each_ns
            .saturating_sub(gap_ns)
            .clamp(SLICE_NS_MIN, SLICE_NS_MAX)
    }

    /// The next slice of a cell, if it fits into the time that is left.
    fn plan_slice(&self, index: usize, now_ns: u64) -> Option<CampaignCell> {
        let cell = &self.cells[index];
        let latency_ns = self.latency_ns(index);
        let measured_ns = self.planned_measure_ns(index, now_ns);
        // One turn of the queue, and a tenth more. The engine extends the warm-up where that takes
        // longer.
        let turn_ns = (latency_ns * QUEUE_TURN) as u64 / CELL_NS * CELL_NS;
        let queue_ns = turn_ns.clamp(WARMUP_NS, (measured_ns / 2).max(WARMUP_NS));
        let spent_ns = match &self.credit {
            Some(credit) => credit.warmup_ns(),
            None => 0,
        };
        let warmup_ns = queue_ns.max(spent_ns);
        let whole_ns = warmup_ns + measured_ns + latency_ns as u64;
        let is_first = self.latest.is_none();
        if !is_first && now_ns + whole_ns > self.time_ns {
            return None;
        }
        let mut workload = cell.workload.clone();
        workload.warmup_ns = warmup_ns;
        workload.stop.time_ns = Some(measured_ns);
        workload.stop.precision = None;
        workload.stop.bytes = cell.slice_bytes();
        Some(CampaignCell::row(0, workload))
    }

    /// The measured time of the next slice of a cell.
    fn planned_measure_ns(&self, index: usize, now_ns: u64) -> u64 {
        // A matrix that is coarse as a whole is measured at once.
        let is_coarse = self.has_fine && self.coarse.contains(&index);
        let usual_ns = self.slice_ns() / if is_coarse { COARSE_PARTS } else { 1 };
        let needed_ns = (self.latency_ns(index) * LATENCIES) as u64;
        let wanted_ns = usual_ns.max(needed_ns.min(self.longest_ns(now_ns)));
        (wanted_ns / CELL_NS * CELL_NS).max(CELL_NS)
    }

    /// The longest time of a slice of a slow cell: half of its share of the time left, if at least
    /// [`SLOW_PARTS`] cells are waiting.
    fn longest_ns(&self, now_ns: u64) -> u64 {
        let left_ns = self.time_ns.saturating_sub(now_ns);
        let waiting = (self.coarse.len() + self.fine.len()).max(1) as u64;
        left_ns / waiting.max(SLOW_PARTS) * SLOW_PARTS / 2
    }

    /// The first of these cells whose next slice fits into the time left, with that slice.
    fn first_slice(&self, cells: Vec<usize>, now_ns: u64) -> Option<(usize, CampaignCell)> {
        for index in cells {
            if let Some(slice) = self.plan_slice(index, now_ns) {
                return Some((index, slice));
            }
        }
        None
    }

    /// The next slice of a cell that has none yet, in the order of the passes.
    fn next_unmeasured(&mut self, now_ns: u64) -> Option<CampaignCell> {
        let waiting: Vec<usize> = self.coarse.iter().chain(&self.fine).copied().collect();
        let (index, cell) = self.first_slice(waiting, now_ns)?;
        self.coarse.retain(|other| *other != index);
        self.fine.retain(|other| *other != index);
        self.begin_slice(index);
        Some(cell)
    }

    /// Whether a cell is the knee of its operation: the one with the most power at the block size
    /// nearest to a page.
    fn is_knee(&self, index: usize) -> bool {
        let cell = &self.cells[index];
        if cell.rate() <= 0.0 {
            return false;
        }
        let distance = cell.distance_to_page();
        for other in &self.cells {
            if !cell.has_same_operation(other) {
                continue;
            }
            let is_nearer = other.distance_to_page() < distance;
            let is_of_size = other.distance_to_page() == distance;
            if is_nearer || (is_of_size && other.power() > cell.power()) {
                return false;
            }
        }
        true
    }

    /// A slice of a knee without an interval, once all of the time left is needed for such slices.
    fn next_knee(&mut self, now_ns: u64) -> Option<CampaignCell> {
        if !self.coarse.is_empty() {
            return None;
        }
        let mut open = Vec::new();
        let mut needed_ns = 0;
        for (index, cell) in self.cells.iter().enumerate() {
            if cell.lacks_interval() && !cell.is_over && self.is_knee(index) {
                open.push(index);
                let missing = SLICES_MIN - cell.rates.len();
                needed_ns += missing as u64 * self.slice_cost_ns(index, now_ns);
            }
        }
        // One more slice of another cell fits before them.
        let kept_ns = (needed_ns + SLICE_NS_MAX).min(self.time_ns / KEPT_PARTS);
        if now_ns + kept_ns < self.time_ns {
            return None;
        }
        let index = open
            .into_iter()
            .min_by_key(|index| self.cells[*index].rates.len())?;
        let cell = self.plan_slice(index, now_ns)?;
        self.begin_slice(index);
        Some(cell)
    }

    /// The time from the start of a slice of this cell until the next one can begin.
    fn slice_cost_ns(&self, index: usize, now_ns: u64) -> u64 {
        let measured_ns = match self.plan_slice(index, now_ns) {
            Some(slice) => slice.workload.warmup_ns + slice.workload.stop.time_ns.unwrap_or(0),
            None => 0,
        };
        measured_ns + self.end_ns(index)
    }

    /// A slice of the cell with the widest interval. It is not the cell that was just measured,
    /// unless no other is left.
    fn next_worst(&mut self, now_ns: u64) -> Option<CampaignCell> {
        let mut open: Vec<usize> = (0..self.cells.len()).collect();
        open.retain(|index| !self.cells[*index].is_over);
        if open.len() > 1 {
            open.retain(|index| self.latest != Some(*index));
        }
        open.sort_by(|a, b| self.cells[*b].error().total_cmp(&self.cells[*a].error()));
        let (index, cell) = self.first_slice(open, now_ns)?;
        self.begin_slice(index);
        Some(cell)
    }
}

fn in_flight_bytes(workload: &Workload) -> u64 {
    u64::from(workload.block_bytes) * u64::from(workload.depth)
}

/// The start of a slice, warm-up included, in nanoseconds after the start of the run.
fn start_ns(measured: &MeasuredCell) -> u64 {
    let warmup_ns = measured.cell.workload.warmup_ns;
    measured.slice.start_ns.saturating_sub(warmup_ns)
}

impl Campaign for Sweep {
    fn next(&mut self, done: &[MeasuredCell]) -> Option<CampaignCell> {
        self.end_slice(done);
        let now_ns = self.now_ns(done);
        self.next_knee(now_ns)
            .or_else(|| self.next_unmeasured(now_ns))
            .or_else(|| self.next_worst(now_ns))
    }

    fn take_dropped(&mut self) -> Vec<CampaignRow> {
        std::mem::take(&mut self.dropped)
    }
}

#[cfg(test)]
mod tests;
