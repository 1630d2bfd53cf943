//! The live comparison: two or more sides in random alternation, until the ratio of each workload
//! is decided. Decides only: docs/compare.md explains the statistics.
//!
//! A block holds one slice of every side in random order. Every round takes one block of each
//! workload that is still open, again in random order. The logarithms of the ratios within the
//! blocks are independent of what changes from block to block, so that Student's t applies.
//!
//! A look after each block would call one equal pair in five different at a level of 5 %. A
//! workload therefore ends early only at the level of 0.1 %, which leaves the last look its 5 %
//! (Haybittle 1971; Peto et al. 1976).

use super::decision::{
    Campaign, CampaignCell, CampaignRow, MeasuredCell, RandomOrder, SideCredit, SideDisks,
};
use crate::estimate::PairedDifference;
use diskproof_model::campaign::{CampaignDecision, CampaignEnd};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{LivePlan, Plan, Sides, Workload};
use diskproof_model::target::TargetIdentity;
use diskproof_model::window::SliceOp;

/// Blocks of each workload that the time is divided into. With eight, Student's t makes an interval
/// 1.2 times as wide as many would.
const BLOCKS: u64 = 8;
/// Limits of a slice: a shorter one consists of its beginning, a longer one leaves time for the
/// disk to change within a block.
const SLICE_NS_MIN: u64 = 250_000_000;
const SLICE_NS_MAX: u64 = 2_000_000_000;
/// Blocks without which a time is too short.
const BLOCKS_MIN: u64 = 3;
/// A slice holds this many latencies, as far as the time allows: fewer measure how a queue fills.
const LATENCIES: f64 = 20.0;
/// The most of the time that one slice of a slow disk takes is that of this many blocks.
const BLOCKS_SLOW: u64 = 4;
/// Share of a slice that is its warm-up.
const WARMUP_PARTS: u64 = 10;
/// Times are whole cells of the series.
const CELL_NS: u64 = 10_000_000;
/// Confidence at which a workload ends early.
const CONFIDENCE_EARLY: f64 = 0.999;
/// A ratio known to this share of the margin is known precisely.
const NARROW: f64 = 0.1;

/// What a live comparison measures.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveSetup {
    /// The workloads; their limits in bytes hold for each side.
    pub workloads: Vec<Workload>,
    /// Number of sides; the first is the baseline.
    pub sides: usize,
    /// Which of them use one credit.
    pub disks: SideDisks,
    /// Share by which figures may differ and count as the same.
    pub margin: f64,
    /// Time for everything, in nanoseconds.
    pub time_ns: u64,
    /// Of the random order.
    pub seed: u64,
}

impl LiveSetup {
    /// What a plan compares on these targets. The campaign has its own time for each slice.
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

    /// The least time that can decide anything, in nanoseconds.
    pub fn time_ns_min(workloads: usize, sides: usize) -> u64 {
        (workloads * sides) as u64 * BLOCKS_MIN * SLICE_NS_MIN
    }

    /// Time of a slice of each workload, when the time is divided into this many blocks.
    fn slice_ns(&self, blocks: u64) -> u64 {
        let slices = (self.workloads.len() * self.sides) as u64 * blocks;
        self.time_ns / slices.max(1)
    }
}

/// A workload of the comparison.
#[derive(Debug, Clone)]
struct Contest {
    slice_ns: u64,
    blocks: u64,
    left_bytes: Option<u64>,
    ended: Option<CampaignEnd>,
    /// The number of cells that were done when its blocks began to count.
    counted_from: usize,
    /// How often its blocks were dropped.
    drops: usize,
}

/// The blocks of a workload are dropped so often at most.
const DROPS_MAX: usize = 2;

/// A live comparison.
#[derive(Debug, Clone)]
pub struct LiveComparison {
    setup: LiveSetup,
    /// For each workload.
    contests: Vec<Contest>,
    /// Workloads that are left in the present round, the next one last.
    round: Vec<usize>,
    /// Cells that are left in the present block, the next one last.
    block: Vec<CampaignCell>,
    /// The workload of the present block.
    current: Option<usize>,
    order: RandomOrder,
    /// For each side, the credit that ended, as the cells so far show it.
    credits: Vec<Option<SideCredit>>,
    /// The rows that were dropped since the program asked last.
    dropped: Vec<CampaignRow>,
}

impl LiveComparison {
    /// Nothing is measured yet.
    pub fn new(setup: LiveSetup) -> Self {
        let slice_ns = setup.slice_ns(BLOCKS).clamp(SLICE_NS_MIN, SLICE_NS_MAX);
        let mut contests = Vec::new();
        for workload in &setup.workloads {
            contests.push(Contest {
                slice_ns,
                blocks: 0,
                left_bytes: workload.stop.bytes,
                ended: None,
                counted_from: 0,
                drops: 0,
            });
        }
        Self {
            contests,
            order: RandomOrder::new(setup.seed),
            round: Vec::new(),
            block: Vec::new(),
            current: None,
            credits: vec![None; setup.sides],
            dropped: Vec::new(),
            setup,
        }
    }

    /// The workload of the next block; `None` where all have ended.
    fn next_workload(&mut self) -> Option<usize> {
        let contests = &self.contests;
        self.round.retain(|index| contests[*index].ended.is_none());
        if self.round.is_empty() {
            self.round.extend(0..contests.len());
            self.round.retain(|index| contests[*index].ended.is_none());
            self.order.shuffle(&mut self.round);
        }
        self.round.pop()
    }

    /// One slice of every side, in random order.
    fn new_block(&mut self, index: usize) {
        let (contest, asked) = (&self.contests[index], &self.setup.workloads[index]);
        let mut workload = asked.clone();
        if contest.blocks > 0 {
            workload.warmup_ns = asked.warmup_ns.min(contest.slice_ns / WARMUP_PARTS);
        }
        workload.warmup_ns = workload.warmup_ns.min(contest.slice_ns / 2) / CELL_NS * CELL_NS;
        let measured_ns = (contest.slice_ns - workload.warmup_ns) / CELL_NS * CELL_NS;
        workload.warmup_ns = workload.warmup_ns.max(self.spent_ns());
        workload.stop.time_ns = Some(measured_ns.max(CELL_NS));
        workload.stop.precision = None;
        workload.stop.bytes = contest.left_bytes.map(|bytes| {
            let block = u64::from(asked.block_bytes);
            let parts = BLOCKS.saturating_sub(contest.blocks).max(1);
            (bytes / parts / block).max(1) * block
        });
        let mut sides: Vec<usize> = (0..self.setup.sides).collect();
        self.order.shuffle(&mut sides);
        self.block = sides
            .into_iter()
            .map(|side| CampaignCell::row(side, workload.clone()))
            .collect();
        self.current = Some(index);
    }

    /// Takes a complete block into account.
    fn end_block(&mut self, index: usize, done: &[MeasuredCell]) {
        let name = &self.setup.workloads[index].name;
        let of_it: Vec<&MeasuredCell> = done
            .iter()
            .skip(self.contests[index].counted_from)
            .filter(|measured| measured.cell.workload.name == *name)
            .collect();
        let longest_ns = self.setup.slice_ns(BLOCKS_SLOW);
        let contest = &mut self.contests[index];
        contest.blocks += 1;
        let latest = &of_it[of_it.len().saturating_sub(self.setup.sides)..];
        let latency_ns = latest.iter().map(|measured| latency_ns(measured));
        let needed_ns = (latency_ns.fold(0.0, f64::max) * LATENCIES) as u64;
        contest.slice_ns = contest.slice_ns.max(needed_ns.min(longest_ns));
        let moved = latest.iter().map(|measured| moved_bytes(measured)).max();
        if let Some(left) = &mut contest.left_bytes {
            *left = left.saturating_sub(moved.unwrap_or(0));
            if *left < u64::from(self.setup.workloads[index].block_bytes) {
                contest.ended = Some(CampaignEnd::Bytes);
            }
        }
        let ratios = (1..self.setup.sides).map(|side| ratio(&of_it, side));
        let known = ratios.map(|ratio| is_known(ratio?, self.setup.margin));
        let known: Option<Vec<CampaignEnd>> = known.collect();
        if let Some(known) = known {
            contest.ended = known.into_iter().next();
        }
    }
}

impl LiveComparison {
    /// Drops the blocks of the workloads that a credit which ended made faster than they stay: as
    /// far as time allows they are measured again.
    fn drop_bursts(&mut self, done: &[MeasuredCell]) {
        let names: Vec<String> = self
            .setup
            .workloads
            .iter()
            .map(|one| one.name.clone())
            .collect();
        for side in 0..self.setup.sides {
            self.credits[side] = SideCredit::shown(done, side, &self.setup.disks, &names);
        }
        let left_ns = self.setup.time_ns.saturating_sub(elapsed_ns(done));
        for (index, name) in names.iter().enumerate() {
            let contest = &self.contests[index];
            let mut counted = done
                .iter()
                .skip(contest.counted_from)
                .filter(|one| one.cell.workload.name == *name);
            let is_burst = counted.any(|one| {
                let credit = self.credits[one.cell.side].as_ref();
                credit.is_some_and(|credit| credit.is_burst(one))
            });
            let needed_ns = contest.slice_ns * self.setup.sides as u64 * BLOCKS_MIN;
            if !is_burst || contest.drops >= DROPS_MAX || needed_ns > left_ns {
                continue;
            }
            self.drop_blocks(index, done.len());
        }
    }

    fn drop_blocks(&mut self, index: usize, done: usize) {
        let contest = &mut self.contests[index];
        contest.counted_from = done;
        contest.drops += 1;
        contest.blocks = 0;
        if contest.ended != Some(CampaignEnd::Bytes) {
            contest.ended = None;
        }
        for side in 0..self.setup.sides {
            self.dropped.push(CampaignRow {
                side,
                workload: self.setup.workloads[index].name.clone(),
            });
        }
    }

    /// The warm-up that spends what the credits of all sides refilled.
    fn spent_ns(&self) -> u64 {
        self.credits
            .iter()
            .flatten()
            .map(SideCredit::warmup_ns)
            .max()
            .unwrap_or(0)
    }
}

impl Campaign for LiveComparison {
    fn next(&mut self, done: &[MeasuredCell]) -> Option<CampaignCell> {
        if self.block.is_empty() {
            if let Some(index) = self.current.take() {
                self.end_block(index, done);
                self.drop_bursts(done);
            }
            if let Some(index) = self.next_workload() {
                let slice_ns = self.contests[index].slice_ns + self.spent_ns();
                let block_ns = slice_ns * self.setup.sides as u64;
                // The first block of a workload shows at least something.
                let fits = elapsed_ns(done) + block_ns <= self.setup.time_ns;
                if fits || self.contests[index].blocks == 0 {
                    self.new_block(index);
                }
            }
        }
        self.block.pop()
    }

    fn take_dropped(&mut self) -> Vec<CampaignRow> {
        std::mem::take(&mut self.dropped)
    }

    fn decisions(&self) -> Vec<CampaignDecision> {
        let mut decisions = Vec::new();
        for (workload, contest) in std::iter::zip(&self.setup.workloads, &self.contests) {
            decisions.push(CampaignDecision {
                workload: workload.name.clone(),
                blocks: contest.blocks,
                ended: contest.ended.unwrap_or(CampaignEnd::Time),
            });
        }
        decisions
    }
}

/// Time since the first cell began.
fn elapsed_ns(done: &[MeasuredCell]) -> u64 {
    let (Some(first), Some(last)) = (done.first(), done.last()) else {
        return 0;
    };
    let warmup_ns = first.cell.workload.warmup_ns;
    let begin_ns = first.slice.start_ns.saturating_sub(warmup_ns);
    (last.slice.start_ns + last.slice.wall_ns).saturating_sub(begin_ns)
}

/// What counts for the rate.
fn counted(measured: &MeasuredCell) -> Vec<&SliceOp> {
    OpKind::headline(&measured.slice.ops)
        .map(|(_, op)| op)
        .collect()
}

fn latency_ns(measured: &MeasuredCell) -> f64 {
    let mut longest_ns: f64 = 0.0;
    for op in counted(measured) {
        if let Some(latency) = op.latency {
            longest_ns = longest_ns.max(latency.mean_ns);
        }
    }
    longest_ns
}

fn log_rate(measured: &MeasuredCell) -> f64 {
    let rate: f64 = counted(measured).into_iter().map(|op| op.iops).sum();
    rate.ln()
}

fn moved_bytes(measured: &MeasuredCell) -> u64 {
    counted(measured).into_iter().map(|op| op.bytes).sum()
}

/// The logarithm of a side's rate over the baseline's, by blocks.
fn ratio(of_workload: &[&MeasuredCell], side: usize) -> Option<PairedDifference> {
    let baseline = log_rates(of_workload, 0);
    let other = log_rates(of_workload, side);
    let mut differences = Vec::new();
    for (a, b) in std::iter::zip(baseline, other) {
        differences.push(b - a);
    }
    PairedDifference::from_sample(&differences)
}

/// The logarithms of the rates of a side, by blocks.
fn log_rates(of_workload: &[&MeasuredCell], side: usize) -> Vec<f64> {
    of_workload
        .iter()
        .filter(|measured| measured.cell.side == side)
        .map(|measured| log_rate(measured))
        .collect()
}

/// Whether more blocks would change nothing, and why.
fn is_known(ratio: PairedDifference, margin: f64) -> Option<CampaignEnd> {
    let (margin, distance) = ((1.0 + margin).ln(), ratio.mean.abs());
    let early = ratio.half_width(CONFIDENCE_EARLY);
    let is_different = distance > margin && distance > early;
    if is_different || distance + early <= margin {
        Some(CampaignEnd::Decided)
    } else if ratio.half_width(0.95) <= NARROW * margin {
        Some(CampaignEnd::Precise)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
