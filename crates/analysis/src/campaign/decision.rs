//! What a campaign is: results in, the next measurement out, and at the end its decisions. And the
//! random order in which campaigns measure, which follows from a seed: splitmix64 (Steele, Lea &
//! Flood 2014).

use crate::limiter::{Bucket, MovedInCell, Unit, bucket, requests_of, stretches_of_cells, tokens};
use diskproof_model::campaign::{CampaignDecision, DroppedSlice};
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::{Decide, Plan, Sides, Workload};
use diskproof_model::rate::{RateCellKind, RateTrial};
use diskproof_model::series::TimeSeries;
use diskproof_model::target::TargetIdentity;
use diskproof_model::window::TimeSlice;

/// A campaign.
pub trait Campaign: Send {
    /// What comes next after these measurements, which are those of all cells so far in order;
    /// `None` when it is over.
    fn next(&mut self, done: &[MeasuredCell]) -> Option<CampaignCell>;

    /// How long nothing is sent before the cell that was asked for last, in nanoseconds.
    fn pause_ns(&self) -> u64 {
        0
    }

    /// The rows whose cells so far do not count any more, since it was asked last: what they gave
    /// was that of a burst.
    fn take_dropped(&mut self) -> Vec<CampaignRow> {
        Vec::new()
    }

    /// What it has decided when it is over, where its record keeps that.
    fn decisions(&self) -> Vec<CampaignDecision> {
        Vec::new()
    }
}

/// The smallest measurement of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct CampaignCell {
    /// On which side, from 0: a target, or a setting of one.
    pub side: usize,
    /// What to run, with its time.
    pub workload: Workload,
    /// What becomes of its measurement.
    pub purpose: CellPurpose,
}

impl CampaignCell {
    /// A cell of the row of this workload on this side.
    pub fn row(side: usize, workload: Workload) -> Self {
        Self {
            side,
            workload,
            purpose: CellPurpose::Row,
        }
    }
}

/// What becomes of the measurement of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellPurpose {
    /// It joins the row of its workload.
    Row,
    /// It is a trial of a rate of the workload at this place of the plan. That of a hold and of a
    /// control is a row, too, in place of an earlier one.
    Trial(usize, RateCellKind),
}

/// All cells of one workload on one side.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CampaignRow {
    /// On which side.
    pub side: usize,
    /// The name of the workload.
    pub workload: String,
}

/// A cell and what it gave.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredCell {
    /// What was asked.
    pub cell: CampaignCell,
    /// What was measured.
    pub slice: TimeSlice,
    /// Reads and writes over its measured time.
    pub moved: TimeSeries,
    /// What it says of the rate that it was offered, where it is a trial.
    pub trial: Option<RateTrial>,
}

/// The most cells of time that are kept of a measured cell.
const MOVED_CELLS_MAX: usize = 500;

impl MeasuredCell {
    /// What a measurement gave.
    pub fn new(cell: CampaignCell, measurement: &Measurement) -> Self {
        let trial = match cell.purpose {
            CellPurpose::Row => None,
            CellPurpose::Trial(place, kind) => RateTrial::measured(place, kind, measurement),
        };
        Self {
            cell,
            trial,
            slice: TimeSlice::from_measurement(measurement),
            moved: requests_of(measurement).thinned(1, MOVED_CELLS_MAX),
        }
    }

    /// Whether it belongs to a row.
    pub fn is_of(&self, row: &CampaignRow) -> bool {
        self.cell.side == row.side && self.cell.workload.name == row.workload
    }

    /// What is kept of it where no row counts it.
    pub fn dropped(&self) -> DroppedSlice {
        DroppedSlice {
            target: self.cell.side,
            workload: self.cell.workload.name.clone(),
            start_ns: self.slice.start_ns,
            warmup_ns: self.cell.workload.warmup_ns,
            moved: self.moved.clone(),
        }
    }

    /// When it ended, in nanoseconds after the start of the run.
    pub(super) fn end_ns(&self) -> u64 {
        self.slice.start_ns + self.slice.wall_ns
    }
}

/// A warm-up beyond what spends the credit.
const SPENT_PARTS: u64 = 10;
const SPENT_NS_MIN: u64 = 50_000_000;

/// Which sides of a campaign are on one disk, and use one credit.
#[derive(Debug, Clone, PartialEq)]
pub enum SideDisks {
    /// There is one side, or the sides are settings or layers of one disk.
    One,
    /// For each side, a number that the sides on one disk have in common.
    Several(Vec<usize>),
}

impl SideDisks {
    /// Reads it from the plan of a comparison of these targets.
    pub fn planned(plan: &Plan, targets: &[TargetIdentity]) -> Self {
        let Some(workloads) = plan.workload_task() else {
            return Self::One;
        };
        match &workloads.decide {
            Decide::Compare(live) => Self::from_sides(&live.sides, targets),
            Decide::AsPlanned
            | Decide::Sweep(_)
            | Decide::Depth
            | Decide::Until(_)
            | Decide::Rate(_) => Self::One,
        }
    }

    /// Tells which sides of a comparison of these targets share a disk.
    pub fn from_sides(sides: &Sides, targets: &[TargetIdentity]) -> Self {
        match sides {
            Sides::Targets { .. } => Self::from_targets(targets),
            Sides::Layers(_) | Sides::Settings { .. } => Self::One,
        }
    }

    fn from_targets(targets: &[TargetIdentity]) -> Self {
        let mut disks = Vec::new();
        for target in targets {
            let first = targets
                .iter()
                .position(|other| other.shares_disk(target))
                .expect("a target shares its own disk");
            disks.push(first);
        }
        Self::Several(disks)
    }

    /// Whether two sides are on one disk.
    pub fn share(&self, side: usize, other: usize) -> bool {
        match self {
            Self::One => true,
            Self::Several(disks) => side == other || disks.get(side) == disks.get(other),
        }
    }
}

/// A limiter with a credit on one side of a campaign, and how much it can have refilled.
#[derive(Debug, Clone)]
pub(super) struct SideCredit {
    pub(super) bucket: Bucket,
    tokens: f64,
}

impl SideCredit {
    /// What the cells of a side, and of others on its disk, show so far; `None` without a credit
    /// that ended. The workloads of the campaign have these names.
    pub(super) fn shown(
        done: &[MeasuredCell],
        side: usize,
        disks: &SideDisks,
        names: &[String],
    ) -> Option<Self> {
        let cells = done
            .iter()
            .filter(|one| disks.share(one.cell.side, side))
            .map(|one| MovedInCell {
                workload: &one.cell.workload,
                slice: &one.slice,
                moved: &one.moved,
                is_own: one.cell.side == side,
            });
        let stretches = stretches_of_cells(cells, names);
        let bucket = bucket(&stretches)?;
        let now_ns = done.last().map_or(0, MeasuredCell::end_ns);
        let tokens = tokens(&stretches, &bucket, now_ns as f64);
        Some(Self { bucket, tokens })
    }

    /// Whether a cell was measured wholly or partly in a burst.
    pub(super) fn is_burst(&self, cell: &MeasuredCell) -> bool {
        let kinds = [OpKind::Read, OpKind::Write];
        let ops = kinds.iter().filter_map(|kind| cell.slice.ops.get(kind));
        let rate = match self.bucket.unit {
            Unit::Requests => ops.map(|op| op.iops).sum(),
            Unit::Bytes => ops.map(|op| op.bytes_per_second).sum(),
        };
        self.bucket.is_above(rate)
    }

    /// The warm-up that spends what was refilled meanwhile, so that a cell after it shows the base
    /// rate.
    pub(super) fn warmup_ns(&self) -> u64 {
        let spent_ns = self.tokens / (self.bucket.burst - self.bucket.base) * 1e9;
        let spent_ns = spent_ns as u64;
        match spent_ns {
            0..SPENT_NS_MIN => 0,
            _ => (spent_ns + spent_ns / SPENT_PARTS + SPENT_NS_MIN) / CELL_NS * CELL_NS,
        }
    }
}

/// Times are whole cells of the series.
const CELL_NS: u64 = 10_000_000;

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(super) struct RandomOrder(u64);

impl RandomOrder {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Every order with the same probability (Fisher & Yates 1938).
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let bound = last as u128 + 1;
            let other = ((u128::from(self.bits()) * bound) >> 64) as usize;
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_order_holds_every_item_once_and_follows_from_the_seed() {
        let order = |seed: u64| {
            let mut items: Vec<u32> = (0..20).collect();
            RandomOrder::new(seed).shuffle(&mut items);
            items
        };
        let mut sorted = order(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<u32>>());
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn random_order_puts_each_of_two_first_equally_often() {
        let mut random = RandomOrder::new(7);
        let mut first = 0;
        for _ in 0..10_000 {
            let mut pair = [0, 1];
            random.shuffle(&mut pair);
            first += u32::from(pair[0] == 0);
        }
        // Four standard deviations of √(10,000/4).
        assert!((4800..=5200).contains(&first), "{first}");
    }
}
