//! Chooses the slices of a live comparison: of two or more sides in random alternation, until the
//! ratio of each workload is decided. docs/compare.md explains the statistics.
//!
//! A *slice* is one cell of the campaign. A *block* has one slice of every side, in random order.
//! A *round* has one block of each workload that is still open, also in random order. Changes from
//! block to block do not affect the logarithms of the ratios within the blocks, so that Student's t
//! applies to them.
//!
//! A test after each block would call one equal pair in five different at a level of 5 %. A
//! workload therefore ends early only at the level of 0.1 %, which leaves the last test its 5 %
//! (Haybittle 1971; Peto et al. 1976).

use super::decision::{Campaign, CampaignCell, CampaignRow, CampaignStep, MeasuredCell};
use super::decision::{SERIES_CELL_NS, whole_series_cells_ns};
use super::random_order::RandomOrder;
use super::side_credit::{SideCredit, SideDisks};
use crate::estimate::PairedDifference;
use diskproof_model::campaign::{CampaignDecision, CampaignEnd};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{LivePlan, Plan, Sides, Workload};
use diskproof_model::target::TargetIdentity;
use diskproof_model::window::SliceOp;

/// The number of blocks of each workload for which the time is divided. With eight, Student's t
/// makes an interval 1.2 times as wide as with many.
const PLANNED_BLOCKS: u64 = 8;
/// The shortest slice, warm-up included: most of a shorter one is the start of its threads and
/// queues.
const SLICE_NS_MIN: u64 = 250_000_000;
/// The longest slice of a disk that is not slow: in a longer one the disk has time to change within
/// a block.
const SLICE_NS_MAX: u64 = 2_000_000_000;
/// The fewest blocks of each workload: Student's t needs three ratios.
const BLOCKS_MIN: u64 = 3;
/// A slice lasts for at least this many mean latencies, as far as the time allows. A shorter one
/// measures how a queue fills. Chosen, not measured.
const SLICE_LATENCIES: f64 = 20.0;
/// The slices of a slow disk become so long at most that the time suffices for this many blocks.
const SLOW_BLOCKS_MIN: u64 = 4;
/// The warm-up of every slice but the first is at most one of this many parts of it: the threads
/// start anew, but the disk is in use already.
const WARMUP_PARTS: u64 = 10;
/// The confidence at which a workload ends early: the level of 0.1 % at the head of this file.
const CONFIDENCE_EARLY: f64 = 0.999;
/// A workload also ends if the half-width of its ratio is at most this share of the margin: a
/// difference that is still undecided then is about as large as the margin itself.
const PRECISE_SHARE: f64 = 0.1;
/// The blocks of a workload are dropped at most this often, so that the comparison of a disk that
/// keeps becoming slower still ends.
const DROPS_MAX: usize = 2;

/// The workloads and limits of a live comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveSetup {
    /// The workloads. A limit in bytes applies to each side.
    pub workloads: Vec<Workload>,
    /// The number of sides. The first is the baseline.
    pub sides: usize,
    /// The sides that are on one disk, and use one burst credit.
    pub disks: SideDisks,
    /// Figures that differ by at most this share count as the same.
    pub margin: f64,
    /// The time for all slices together, in nanoseconds.
    pub time_ns: u64,
    /// Seed of the random order.
    pub seed: u64,
}

impl LiveSetup {
    /// The comparison of a plan on these targets. The times of the workloads in `list` are ignored:
    /// the campaign chooses the time of each slice.
    pub fn planned(
        plan: &Plan,
        list: &[Workload],
        live: &LivePlan,
        targets: &[TargetIdentity],
    ) -> Self {
        Self {
            workloads: list.to_vec(),
            sides: match &live.sides {
                Sides::Targets { paths } => paths.len(),
                Sides::Layers(layers) => layers.measured().count(),
                Sides::Settings { prepare, .. } => prepare.len(),
            },
            disks: SideDisks::from_sides(&live.sides, targets),
            margin: live.margin,
            time_ns: live.cells_ns,
            seed: plan.seed,
        }
    }

    /// The shortest time in which a comparison can decide anything, in nanoseconds.
    pub fn time_ns_min(workloads: usize, sides: usize) -> u64 {
        (workloads * sides) as u64 * BLOCKS_MIN * SLICE_NS_MIN
    }

    /// The time of a slice if each workload gets this many blocks, in nanoseconds.
    fn slice_ns_for(&self, blocks: u64) -> u64 {
        let slices = (self.workloads.len() * self.sides) as u64 * blocks;
        self.time_ns / slices.max(1)
    }
}

/// The state of the comparison of one workload.
#[derive(Debug, Clone)]
struct WorkloadProgress {
    /// The time of its next slice, warm-up included.
    slice_ns: u64,
    /// Complete blocks that count.
    blocks: u64,
    /// The bytes that each side may still move; `None` without a limit.
    left_bytes: Option<u64>,
    /// `None` while it is open.
    ended: Option<CampaignEnd>,
    /// The number of cells that were done when its blocks began to count.
    counted_from: usize,
    /// The number of times that its blocks were dropped.
    drops: usize,
}

/// The campaign of a live comparison.
#[derive(Debug, Clone)]
pub struct LiveComparison {
    setup: LiveSetup,
    /// One for each workload of the setup.
    progress: Vec<WorkloadProgress>,
    /// Indices of the workloads that are left in the present round, the next one last.
    round: Vec<usize>,
    /// Cells that are left in the present block, the next one last.
    block: Vec<CampaignCell>,
    /// The index of the workload of the present block.
    current: Option<usize>,
    order: RandomOrder,
    /// For each side, the burst credit that the cells so far show.
    credits: Vec<Option<SideCredit>>,
    /// Rows that were dropped since the last step.
    dropped: Vec<CampaignRow>,
}

impl LiveComparison {
    /// A comparison before its first slice.
    pub fn new(setup: LiveSetup) -> Self {
        let slice_ns = setup
            .slice_ns_for(PLANNED_BLOCKS)
            .clamp(SLICE_NS_MIN, SLICE_NS_MAX);
        let mut progress = Vec::new();
        for workload in &setup.workloads {
            progress.push(WorkloadProgress {
                slice_ns,
                blocks: 0,
                left_bytes: workload.stop.bytes,
                ended: None,
                counted_from: 0,
                drops: 0,
            });
        }
        Self {
            progress,
            order: RandomOrder::new(setup.seed),
            round: Vec::new(),
            block: Vec::new(),
            current: None,
            credits: vec![None; setup.sides],
            dropped: Vec::new(),
            setup,
        }
    }

    /// The index of the workload of the next block; `None` where all have ended.
    fn next_workload(&mut self) -> Option<usize> {
        let progress = &self.progress;
        self.round.retain(|index| progress[*index].ended.is_none());
        if self.round.is_empty() {
            self.round.extend(0..progress.len());
            self.round.retain(|index| progress[*index].ended.is_none());
            self.order.shuffle(&mut self.round);
        }
        self.round.pop()
    }

    /// The index of an open workload of which no block counts.
    fn workload_without_block(&self) -> Option<usize> {
        self.progress
            .iter()
            .position(|progress| progress.ended.is_none() && progress.blocks == 0)
    }

    /// Plans the slices of the next block of a workload.
    fn begin_block(&mut self, index: usize) {
        let workload = self.slice_workload(index);
        let mut sides: Vec<usize> = (0..self.setup.sides).collect();
        self.order.shuffle(&mut sides);
        self.block = sides
            .into_iter()
            .map(|side| CampaignCell::row(side, workload.clone()))
            .collect();
        self.current = Some(index);
    }

    /// The workload of each slice of the next block: its warm-up, time and bytes.
    fn slice_workload(&self, index: usize) -> Workload {
        let progress = &self.progress[index];
        let planned = &self.setup.workloads[index];
        let longest_warmup_ns = if progress.blocks == 0 {
            progress.slice_ns / 2
        } else {
            progress.slice_ns / WARMUP_PARTS
        };
        let warmup_ns = whole_series_cells_ns(planned.warmup_ns.min(longest_warmup_ns));
        let measured_ns = whole_series_cells_ns(progress.slice_ns - warmup_ns);
        let mut workload = planned.clone();
        workload.warmup_ns = warmup_ns.max(self.credit_warmup_ns());
        workload.stop.time_ns = Some(measured_ns.max(SERIES_CELL_NS));
        workload.stop.precision = None;
        workload.stop.bytes = match progress.left_bytes {
            Some(left_bytes) => {
                let blocks_left = PLANNED_BLOCKS.saturating_sub(progress.blocks).max(1);
                let block_bytes = u64::from(planned.block_bytes);
                Some((left_bytes / blocks_left / block_bytes).max(1) * block_bytes)
            }
            None => None,
        };
        workload
    }

    /// Counts a complete block: the latest cells are its slices. A workload whose ratios are known
    /// ends as decided or precise even where its bytes are used up, too.
    fn end_block(&mut self, index: usize, done: &[MeasuredCell]) {
        let cells = self.counted_cells(index, done);
        let slices = &cells[cells.len().saturating_sub(self.setup.sides)..];
        let known = self.known_end(&cells);
        let longest_ns = self.setup.slice_ns_for(SLOW_BLOCKS_MIN);
        let block_bytes = u64::from(self.setup.workloads[index].block_bytes);
        let progress = &mut self.progress[index];
        progress.blocks += 1;
        let needed_ns = (longest_latency_ns(slices) * SLICE_LATENCIES) as u64;
        progress.slice_ns = progress.slice_ns.max(needed_ns.min(longest_ns));
        if let Some(left_bytes) = &mut progress.left_bytes {
            let asked = slices.iter().map(|slice| slice.asked_bytes).max();
            *left_bytes = left_bytes.saturating_sub(asked.unwrap_or(0));
            if *left_bytes < block_bytes {
                progress.ended = Some(CampaignEnd::Bytes);
            }
        }
        if known.is_some() {
            progress.ended = known;
        }
    }

    /// The measured cells of a workload that were not dropped.
    fn counted_cells<'a>(&self, index: usize, done: &'a [MeasuredCell]) -> Vec<&'a MeasuredCell> {
        let name = &self.setup.workloads[index].name;
        done.iter()
            .skip(self.progress[index].counted_from)
            .filter(|measured| measured.cell.workload.name == *name)
            .collect()
    }

    /// The reason why more blocks of a workload would change nothing: that of the first candidate.
    /// `None` where the ratio of any candidate is not known yet.
    fn known_end(&self, cells: &[&MeasuredCell]) -> Option<CampaignEnd> {
        let mut first = None;
        for side in 1..self.setup.sides {
            let ratio = log_ratio(cells, side)?;
            let end = end_of_known(ratio, self.setup.margin)?;
            first.get_or_insert(end);
        }
        first
    }

    /// Drops the blocks of the workloads that were measured in a burst, wholly or partly, where the
    /// time suffices to measure them again.
    fn drop_bursts(&mut self, done: &[MeasuredCell]) {
        let names: Vec<String> = self
            .setup
            .workloads
            .iter()
            .map(|workload| workload.name.clone())
            .collect();
        for side in 0..self.setup.sides {
            self.credits[side] = SideCredit::from_cells(done, side, &self.setup.disks, &names);
        }
        let left_ns = self.setup.time_ns.saturating_sub(elapsed_ns(done));
        for index in 0..names.len() {
            let progress = &self.progress[index];
            let needed_ns = progress.slice_ns * self.setup.sides as u64 * BLOCKS_MIN;
            // Without bytes it could not be measured again.
            let has_bytes = progress.ended != Some(CampaignEnd::Bytes);
            let may_drop = progress.drops < DROPS_MAX && needed_ns <= left_ns && has_bytes;
            if may_drop && self.has_burst(index, done) {
                self.drop_blocks(index, done.len());
            }
        }
    }

    /// Returns `true` if a slice of a workload that counts was measured in a burst.
    fn has_burst(&self, index: usize, done: &[MeasuredCell]) -> bool {
        for measured in self.counted_cells(index, done) {
            if let Some(credit) = &self.credits[measured.cell.side]
                && credit.is_burst(measured)
            {
                return true;
            }
        }
        false
    }

    /// Drops the blocks of a workload so far, and opens it again. `done` is the number of measured
    /// cells.
    fn drop_blocks(&mut self, index: usize, done: usize) {
        let progress = &mut self.progress[index];
        progress.counted_from = done;
        progress.drops += 1;
        progress.blocks = 0;
        progress.ended = None;
        for side in 0..self.setup.sides {
            self.dropped.push(CampaignRow {
                side,
                workload: self.setup.workloads[index].name.clone(),
            });
        }
    }

    /// The warm-up that spends the refilled credits of all sides, in nanoseconds.
    fn credit_warmup_ns(&self) -> u64 {
        self.credits
            .iter()
            .flatten()
            .map(SideCredit::warmup_ns)
            .max()
            .unwrap_or(0)
    }

    /// Returns `true` if a block of a workload may begin. The first one begins even where its time
    /// is over, so that each workload has a result.
    fn may_begin_block(&self, index: usize, done: &[MeasuredCell]) -> bool {
        let progress = &self.progress[index];
        let slice_ns = progress.slice_ns + self.credit_warmup_ns();
        let planned_ns = slice_ns * self.setup.sides as u64;
        let block_ns = planned_ns.max(self.longest_block_ns(index, done));
        progress.blocks == 0 || elapsed_ns(done) + block_ns <= self.setup.time_ns
    }

    /// The longest time from the start of a block of a workload to the start of the next block, or
    /// to its own end if it is the latest. On a slow disk a slice goes on until its last requests
    /// are answered.
    fn longest_block_ns(&self, index: usize, done: &[MeasuredCell]) -> u64 {
        let name = &self.setup.workloads[index].name;
        let mut longest_ns = 0;
        for (position, block) in done.chunks(self.setup.sides).enumerate() {
            if block[0].cell.workload.name != *name {
                continue;
            }
            let lasted_ns = match done.get((position + 1) * self.setup.sides) {
                Some(next) => next.begin_ns().saturating_sub(block[0].begin_ns()),
                None => elapsed_ns(block),
            };
            longest_ns = longest_ns.max(lasted_ns);
        }
        longest_ns
    }
}

impl Campaign for LiveComparison {
    fn next(&mut self, done: &[MeasuredCell]) -> CampaignStep {
        if self.block.is_empty() {
            // The credits that `drop_bursts` finds decide the warm-up of the next block.
            if let Some(index) = self.current.take() {
                self.end_block(index, done);
                self.drop_bursts(done);
            }
            let next = self
                .next_workload()
                .filter(|index| self.may_begin_block(*index, done));
            // Where the time is over for the next one, another may still lack a result: its blocks
            // were dropped.
            if let Some(index) = next.or_else(|| self.workload_without_block()) {
                self.begin_block(index);
            }
        }
        CampaignStep {
            dropped: std::mem::take(&mut self.dropped),
            cell: self.block.pop(),
        }
    }

    fn limit_time(&mut self, left_ns: u64) {
        self.setup.time_ns = self.setup.time_ns.min(left_ns);
    }

    fn decisions(&self) -> Vec<CampaignDecision> {
        let mut decisions = Vec::new();
        for (workload, progress) in std::iter::zip(&self.setup.workloads, &self.progress) {
            decisions.push(CampaignDecision {
                workload: workload.name.clone(),
                blocks: progress.blocks,
                ended: progress.ended.unwrap_or(CampaignEnd::Time),
            });
        }
        decisions
    }
}

/// The time from the start of the first cell to the end of the last one, in nanoseconds.
fn elapsed_ns(done: &[MeasuredCell]) -> u64 {
    match (done.first(), done.last()) {
        (Some(first), Some(last)) => last.end_ns().saturating_sub(first.begin_ns()),
        _ => 0,
    }
}

/// The operations whose rate represents the workload.
fn headline_ops(measured: &MeasuredCell) -> Vec<&SliceOp> {
    OpKind::headline(&measured.slice.ops)
        .map(|(_, op)| op)
        .collect()
}

/// The longest mean latency of any operation in these slices, in nanoseconds.
fn longest_latency_ns(slices: &[&MeasuredCell]) -> f64 {
    let mut longest_ns: f64 = 0.0;
    for slice in slices {
        for op in headline_ops(slice) {
            if let Some(latency) = op.latency {
                longest_ns = longest_ns.max(latency.mean_ns);
            }
        }
    }
    longest_ns
}

/// The logarithm of the rate of a slice, over all headline operations.
fn log_rate(measured: &MeasuredCell) -> f64 {
    let rate: f64 = headline_ops(measured).into_iter().map(|op| op.iops).sum();
    rate.ln()
}

/// The logarithm of a side's rate over the baseline's, from the blocks of one workload; `None` of
/// fewer than [`BLOCKS_MIN`] blocks.
fn log_ratio(cells: &[&MeasuredCell], side: usize) -> Option<PairedDifference> {
    let baseline_logs = log_rates(cells, 0);
    let side_logs = log_rates(cells, side);
    let mut differences = Vec::new();
    for (baseline_log, side_log) in std::iter::zip(baseline_logs, side_logs) {
        differences.push(side_log - baseline_log);
    }
    PairedDifference::from_sample(&differences)
}

/// The logarithms of the rates of a side, one for each block.
fn log_rates(cells: &[&MeasuredCell], side: usize) -> Vec<f64> {
    cells
        .iter()
        .filter(|measured| measured.cell.side == side)
        .map(|measured| log_rate(measured))
        .collect()
}

/// The reason why more blocks would not change the verdict on this ratio; `None` where they might.
fn end_of_known(log_ratio: PairedDifference, margin: f64) -> Option<CampaignEnd> {
    let log_margin = (1.0 + margin).ln();
    let distance = log_ratio.mean.abs();
    let half_width = log_ratio.half_width(CONFIDENCE_EARLY);
    let is_different = distance > log_margin && distance > half_width;
    let is_same = distance + half_width <= log_margin;
    if is_different || is_same {
        Some(CampaignEnd::Decided)
    } else if log_ratio.half_width(0.95) <= PRECISE_SHARE * log_margin {
        Some(CampaignEnd::Precise)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
