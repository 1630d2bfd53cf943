//! Finds the burst credit that the cells of a campaign show on one side, together with the other
//! sides that use the same credit.

use super::decision::{MeasuredCell, whole_series_cells_ns};
use crate::limiter::{Bucket, MovedInCell, Unit, find_bucket, stretches_of_cells, tokens};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Decide, Plan, Sides};
use diskproof_model::target::TargetIdentity;

/// The sides of a campaign that are on one disk, and use one credit.
#[derive(Debug, Clone, PartialEq)]
pub enum SideDisks {
    /// There is one side, or the sides are settings or layers of one disk.
    One,
    /// For each side, a number that the sides on one disk have in common.
    Several(Vec<usize>),
}

impl SideDisks {
    /// The disks of the sides of a plan on these targets.
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

    /// The disks of the sides of a comparison of these targets.
    pub fn from_sides(sides: &Sides, targets: &[TargetIdentity]) -> Self {
        match sides {
            Sides::Targets { .. } => Self::from_targets(targets),
            Sides::Layers(_) | Sides::Settings { .. } => Self::One,
        }
    }

    /// The disks of sides that are these targets.
    fn from_targets(targets: &[TargetIdentity]) -> Self {
        let mut disks = Vec::new();
        for target in targets {
            let first_on_disk = targets
                .iter()
                .position(|other| other.shares_disk(target))
                .expect("a target shares its own disk");
            disks.push(first_on_disk);
        }
        Self::Several(disks)
    }

    /// Returns `true` if both sides are on one disk.
    pub fn are_on_one_disk(&self, side: usize, other: usize) -> bool {
        match self {
            Self::One => true,
            Self::Several(disks) => side == other || disks.get(side) == disks.get(other),
        }
    }
}

/// A warm-up is longer than the refilled credit lasts by one of this many parts, because the credit
/// is only estimated. With a larger number more cells begin before the credit is spent. Chosen, not
/// measured.
const WARMUP_MARGIN_PARTS: u64 = 10;
/// Every such warm-up is longer by this time, too. A refill that lasts for less than it gets no
/// warm-up of its own.
const WARMUP_MARGIN_NS: u64 = 50_000_000;

/// A limiter with a credit on one side of a campaign, and how much of the credit has refilled.
#[derive(Debug, Clone)]
pub(super) struct SideCredit {
    pub(super) bucket: Bucket,
    /// Tokens in the bucket at the end of the last cell, in the unit of the bucket.
    tokens: f64,
}

impl SideCredit {
    /// The credit that the cells of a side, and of other sides on its disk, show so far; `None`
    /// where no credit ended. `names` are those of the campaign's workloads.
    pub(super) fn from_cells(
        done: &[MeasuredCell],
        side: usize,
        disks: &SideDisks,
        names: &[String],
    ) -> Option<Self> {
        let cells = done
            .iter()
            .filter(|measured| disks.are_on_one_disk(measured.cell.side, side))
            .map(|measured| MovedInCell {
                workload: &measured.cell.workload,
                slice: &measured.slice,
                moved: &measured.moved,
                is_own: measured.cell.side == side,
            });
        let stretches = stretches_of_cells(cells, names);
        let bucket = find_bucket(&stretches)?;
        let now_ns = done.last().map_or(0, MeasuredCell::end_ns);
        let tokens = tokens(&stretches, &bucket, now_ns as f64);
        Some(Self { bucket, tokens })
    }

    /// Returns `true` if the mean rate of a cell is above the base rate of the limiter: the cell
    /// was measured wholly or partly in a burst.
    pub(super) fn is_burst(&self, measured: &MeasuredCell) -> bool {
        let mut rate = 0.0;
        for kind in OpKind::TRANSFERS {
            if let Some(op) = measured.slice.ops.get(&kind) {
                rate += match self.bucket.unit {
                    Unit::Requests => op.iops,
                    Unit::Bytes => op.bytes_per_second,
                };
            }
        }
        self.bucket.is_above(rate)
    }

    /// The warm-up that spends the refilled credit, so that the cell after it shows the base rate,
    /// in nanoseconds. 0 where hardly anything was refilled.
    pub(super) fn warmup_ns(&self) -> u64 {
        // The burst of a bucket is at least a tenth above its base.
        let surplus = self.bucket.burst - self.bucket.base;
        let lasts_ns = (self.tokens / surplus * 1e9) as u64;
        if lasts_ns < WARMUP_MARGIN_NS {
            return 0;
        }
        whole_series_cells_ns(lasts_ns + lasts_ns / WARMUP_MARGIN_PARTS + WARMUP_MARGIN_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2000 tokens a second are spent beyond the refill.
    fn with_tokens(tokens: f64) -> SideCredit {
        SideCredit {
            bucket: Bucket {
                unit: Unit::Requests,
                base: 1000.0,
                burst: 3000.0,
                credit: 10_000.0,
                is_whole: true,
                has_refilled: false,
                spent_ns: 0.0,
                rows: Vec::new(),
                has_reads: true,
            },
            tokens,
        }
    }

    /// 200 tokens last for 100 ms: a tenth and 50 ms are added.
    #[test]
    fn warm_up_spends_what_was_refilled_and_a_margin() {
        assert_eq!(with_tokens(200.0).warmup_ns(), 160_000_000);
        assert_eq!(with_tokens(100.0).warmup_ns(), 100_000_000);
        assert_eq!(with_tokens(99.0).warmup_ns(), 0);
    }

    #[test]
    fn sides_of_one_disk_share_its_credit() {
        assert!(SideDisks::One.are_on_one_disk(0, 1));
        let several = SideDisks::Several(vec![0, 1, 0]);
        assert!(several.are_on_one_disk(0, 2));
        assert!(!several.are_on_one_disk(0, 1));
    }
}
