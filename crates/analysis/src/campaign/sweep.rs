//! Chooses the slices of a sweep over block size × depth × operation, coarse to fine. docs/sweep.md
//! explains the order.
//!
//! A *cell* is a square of the matrix here: a block size, a depth and an operation. A *slice* is
//! one measurement of a cell: what other campaigns call a cell.
//!
//! The first pass takes one slice of each cell of a coarse matrix, the second pass one of every
//! other cell. Both passes have a random order, so that a change over time does not look like an
//! effect of size or depth. Then the cell with the widest interval gets the next slice, until all
//! are known to the precision or the time is over. Part of that time is kept for the knees, which
//! need three slices each.

mod cell;
mod setup;

use super::decision::{Campaign, CampaignCell, CampaignRow, CampaignStep, MeasuredCell};
use super::decision::{SERIES_CELL_NS, whole_series_cells_ns};
use super::random_order::RandomOrder;
use super::side_credit::{SideCredit, SideDisks};
use cell::SweptCell;
use diskproof_model::plan::Workload;
use diskproof_model::window::SLICES_MIN;
pub use setup::{SweepCellSetup, SweepPass, SweepSetup};
use std::collections::VecDeque;

/// The time is divided into this many slices of each cell: three that every cell gets, and two more
/// on average for the cells with the widest intervals.
const PLANNED_SLICES: u64 = 5;
/// The shortest usual slice; one of the coarse matrix may take half of it. It has ten series cells,
/// the fewest from which an interval is estimated (`BATCHES_MIN`). In a shorter one the slices
/// alone would show how the rate varies.
const SLICE_NS_MIN: u64 = 10 * SERIES_CELL_NS;
/// The longest usual slice. Long slices leave no time for others. Chosen, not measured.
const SLICE_NS_MAX: u64 = 1_000_000_000;
/// A slice of the coarse matrix takes one of this many parts of a usual one, so that the whole
/// matrix is measured soon.
const COARSE_PARTS: u64 = 2;
/// A slice lasts for this many latencies where time allows: a shorter one measures how a queue
/// fills. Chosen, not measured.
const SLICE_LATENCIES: f64 = 4.0;
/// A slice of a slow cell takes at most half of the time that this many waiting cells share.
const SLOW_SHARES: u64 = 4;
/// At most one of this many parts of the time is kept for the knees.
const KNEE_PARTS: u64 = 10;
/// The assumed gap between two slices, for threads, queues and counters. Measured gaps replace it.
const GAP_NS: u64 = 30_000_000;
/// Within this time processors and queues reach their pace. Chosen, not measured.
const WARMUP_NS: u64 = 30_000_000;
/// Cells with more bytes in flight come last in their pass. The largest cells of the default matrix
/// have as many. 64 blocks of 64 MiB take two seconds at 2 GB/s.
const IN_FLIGHT_BYTES_MAX: u64 = 256 << 20;
/// A queue is warm after this multiple of the latency: one turn, and a tenth more.
const QUEUE_TURN: f64 = 1.1;

/// The campaign of a sweep.
#[derive(Debug, Clone)]
pub struct Sweep {
    cells: Vec<SweptCell>,
    /// Indices of the cells of the first pass that have no slice yet, in order.
    coarse: VecDeque<usize>,
    /// Indices of the cells of the second pass that have no slice yet, in order.
    fine: VecDeque<usize>,
    /// True if some cells are not part of the coarse matrix.
    has_fine: bool,
    /// When the last slice ends, in nanoseconds after the start of the run.
    time_ns: u64,
    precision: f64,
    /// The index of the cell of the latest slice.
    latest: Option<usize>,
    /// The start of the first slice, in nanoseconds after the start of the run.
    begin_ns: Option<u64>,
    /// The measured gaps between slices, in nanoseconds.
    gaps_ns: Vec<u64>,
    /// The burst credit that the slices so far show.
    credit: Option<SideCredit>,
    /// Rows that were dropped since the last step.
    dropped: Vec<CampaignRow>,
}

impl Sweep {
    /// Puts the cells of each pass into random order.
    pub fn new(setup: &SweepSetup) -> Self {
        let mut order: Vec<usize> = (0..setup.cells.len()).collect();
        RandomOrder::new(setup.seed).shuffle(&mut order);
        // A queue that takes seconds to fill and to drain must not use up the time of all others.
        order.sort_by_key(|index| {
            in_flight_bytes(&setup.cells[*index].workload) > IN_FLIGHT_BYTES_MAX
        });
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

    /// Adds the latest slice to its cell, then looks for bursts in all slices.
    fn end_slice(&mut self, done: &[MeasuredCell]) {
        let (Some(index), Some(measured)) = (self.latest, done.last()) else {
            return;
        };
        self.begin_ns.get_or_insert(measured.begin_ns());
        if let [.., before, after] = done {
            let gap_ns = after.begin_ns().saturating_sub(before.end_ns());
            self.gaps_ns.push(gap_ns);
        }
        self.cells[index].add_slice(measured, self.precision);
        self.mark_bursts(done);
    }

    /// Marks the cells that were measured in a burst. All slices are examined when the credit first
    /// shows, later only the latest one.
    fn mark_bursts(&mut self, done: &[MeasuredCell]) {
        let credit_was_known = self.credit.is_some();
        let names: Vec<String> = self
            .cells
            .iter()
            .map(|cell| cell.workload.name.clone())
            .collect();
        self.credit = SideCredit::from_cells(done, 0, &SideDisks::One, &names);
        let Some(credit) = &self.credit else {
            return;
        };
        let first_new = if credit_was_known { done.len() - 1 } else { 0 };
        for slice in &done[first_new..] {
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

    /// Remembers the cell of the next slice. Drops its earlier slices if they were measured in a
    /// burst.
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

    /// The latency of a cell, in nanoseconds. Before its first slice it is expected from the
    /// nearest measured cell of the same operation; 0 where there is none.
    fn expected_latency_ns(&self, index: usize) -> f64 {
        let cell = &self.cells[index];
        if let Some(known_ns) = cell.latency_ns {
            return known_ns;
        }
        let workload = &cell.workload;
        let mut nearest = f64::INFINITY;
        let mut expected_ns = 0.0;
        for other in &self.cells {
            let known_ns = match other.latency_ns {
                Some(known_ns) if cell.has_same_operation(other) => known_ns,
                _ => continue,
            };
            let depth_ratio = f64::from(workload.depth) / f64::from(other.workload.depth.max(1));
            let size_ratio =
                f64::from(workload.block_bytes) / f64::from(other.workload.block_bytes.max(1));
            let distance = depth_ratio.ln().abs() + size_ratio.ln().abs();
            if distance < nearest {
                nearest = distance;
                // The latency of a busy disk grows in proportion to the depth. With the block size
                // only the transfer grows, so that the whole grows by less than in proportion.
                let by_depth = known_ns * depth_ratio.max(1.0);
                expected_ns = by_depth * size_ratio.max(1.0).sqrt();
            }
        }
        expected_ns
    }

    /// The time from the end of a slice of this cell to the start of the next slice, in
    /// nanoseconds. Requests in flight complete, and the next slice is prepared.
    fn after_slice_ns(&self, index: usize) -> u64 {
        self.expected_latency_ns(index) as u64 + GAP_NS
    }

    /// When the next slice can begin, in nanoseconds after the start of the run.
    fn now_ns(&self, done: &[MeasuredCell]) -> u64 {
        let Some(last) = done.last() else {
            return 0;
        };
        let after_ns = match self.latest {
            Some(index) => self.after_slice_ns(index),
            None => 0,
        };
        last.end_ns() + after_ns
    }

    /// The time of a slice, warm-up included, if every cell gets [`PLANNED_SLICES`].
    fn usual_slice_ns(&self) -> u64 {
        let shared_ns = self.time_ns.saturating_sub(self.begin_ns.unwrap_or(0));
        let gap_ns = match self.gaps_ns.len() {
            0 => GAP_NS,
            gaps => self.gaps_ns.iter().sum::<u64>() / gaps as u64,
        };
        let each_ns = shared_ns / (PLANNED_SLICES * self.cells.len().max(1) as u64);
        each_ns
            .saturating_sub(gap_ns)
            .clamp(SLICE_NS_MIN, SLICE_NS_MAX)
    }

    /// The next slice of a cell, if it fits into the time that is left.
    fn plan_slice(&self, index: usize, now_ns: u64) -> Option<CampaignCell> {
        let cell = &self.cells[index];
        let latency_ns = self.expected_latency_ns(index);
        let measured_ns = self.planned_measure_ns(index, now_ns);
        // The engine extends the warm-up where a turn of the queue takes longer.
        let turn_ns = whole_series_cells_ns((latency_ns * QUEUE_TURN) as u64);
        let queue_ns = turn_ns.clamp(WARMUP_NS, (measured_ns / 2).max(WARMUP_NS));
        let credit_ns = match &self.credit {
            Some(credit) => credit.warmup_ns(),
            None => 0,
        };
        let warmup_ns = queue_ns.max(credit_ns);
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
        // Where no cell is fine, short slices would save nothing.
        let is_coarse = self.has_fine && self.coarse.contains(&index);
        let usual_ns = if is_coarse {
            self.usual_slice_ns() / COARSE_PARTS
        } else {
            self.usual_slice_ns()
        };
        let needed_ns = (self.expected_latency_ns(index) * SLICE_LATENCIES) as u64;
        let wanted_ns = usual_ns.max(needed_ns.min(self.slow_slice_ns_max(now_ns)));
        whole_series_cells_ns(wanted_ns).max(SERIES_CELL_NS)
    }

    /// The longest time of a slice of a slow cell, in nanoseconds: half of the time left that
    /// [`SLOW_SHARES`] of the waiting cells share.
    fn slow_slice_ns_max(&self, now_ns: u64) -> u64 {
        let left_ns = self.time_ns.saturating_sub(now_ns);
        let waiting = (self.coarse.len() + self.fine.len()) as u64;
        left_ns / waiting.max(SLOW_SHARES) * SLOW_SHARES / 2
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

    /// Returns `true` if a cell is the knee of its operation: the one with the most power at the
    /// block size nearest to a page.
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
            let is_as_near = other.distance_to_page() == distance;
            if is_nearer || (is_as_near && other.power() > cell.power()) {
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
        // The last slice of another cell may begin just before the time that is kept for the knees,
        // and takes up to SLICE_NS_MAX of it.
        let kept_ns = (needed_ns + SLICE_NS_MAX).min(self.time_ns / KNEE_PARTS);
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
        measured_ns + self.after_slice_ns(index)
    }

    /// A slice of the cell with the widest interval. It is not the cell that was just measured,
    /// unless no other is left.
    fn next_worst(&mut self, now_ns: u64) -> Option<CampaignCell> {
        let mut open: Vec<usize> = (0..self.cells.len()).collect();
        open.retain(|index| !self.cells[*index].is_over);
        if open.len() > 1 {
            open.retain(|index| self.latest != Some(*index));
        }
        open.sort_by(|a, b| {
            let half_width_a = self.cells[*a].relative_half_width();
            let half_width_b = self.cells[*b].relative_half_width();
            half_width_b.total_cmp(&half_width_a)
        });
        let (index, cell) = self.first_slice(open, now_ns)?;
        self.begin_slice(index);
        Some(cell)
    }
}

/// The bytes that the workload keeps in flight.
fn in_flight_bytes(workload: &Workload) -> u64 {
    u64::from(workload.block_bytes) * u64::from(workload.depth)
}

impl Campaign for Sweep {
    fn next(&mut self, done: &[MeasuredCell]) -> CampaignStep {
        self.end_slice(done);
        let now_ns = self.now_ns(done);
        let cell = self
            .next_knee(now_ns)
            .or_else(|| self.next_unmeasured(now_ns))
            .or_else(|| self.next_worst(now_ns));
        CampaignStep {
            dropped: std::mem::take(&mut self.dropped),
            cell,
        }
    }
}

#[cfg(test)]
mod tests;
