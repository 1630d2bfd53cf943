//! Finds limiters with a burst credit: puts what a run moved on each target into the order of the
//! clock, and looks for the credit that it shows. Rows, findings, the verdict and campaigns use
//! this module, so that all of them have the same bursts.
//!
//! This file collects what moved: of a run as it was measured, of a side of a comparison, of the
//! cells of a campaign. `row_stretches` divides one row into stretches without a break. From these,
//! `plateau` takes even rates after a fall, `credit` accounts for what was used and refilled,
//! `bucket` decides, and `sustained` says from when on a row ran at its base. `held` and
//! `late_fall` ask what a run shows that ends no credit, and `collapse` whether nearly nothing is
//! left at its end. `recorded` asks the same of the rows of a
//! record, and `words` has the sentences. What a user is told of it stands in the head of
//! `rules/bursts.rs`.

mod bucket;
mod collapse;
mod credit;
mod held;
mod late_fall;
mod plateau;
mod recorded;
mod row_stretches;
mod stretch;
mod sustained;
pub(crate) mod words;

pub(crate) use bucket::{Bucket, find_bucket, find_buckets, tokens};
pub(crate) use held::held_rate_of_rows;
pub(crate) use late_fall::LateFall;
pub(crate) use recorded::{credit_before, held_by_rows, late_fall_of};
pub(crate) use row_stretches::{joins_commits, waits_for_disk};
pub(crate) use stretch::{Role, Stretch, Unit, evenness_counts_in, rate_of, slice_rate};

use crate::estimate;
use crate::moved::filled_from_ns;
use diskproof_model::campaign::{DroppedSlice, MovedBeside};
use diskproof_model::data::RunData;
use diskproof_model::limiter::BurstCredit;
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::{Plan, Workload};
use diskproof_model::row::Row;
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::target::TargetIdentity;
use diskproof_model::window::TimeSlice;
use row_stretches::{RowKind, RowTimes, planned_warmup_ns, requests_of_disk, role_of, uses_credit};
use std::collections::BTreeSet;
use stretch::in_order;
use sustained::sustained_from_ns;

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

    /// The rows of the record that ran at the base rate, of so many in all, ascending. The dropped
    /// slices of other workloads have no row there.
    fn rows_at_base(&self, row_count: usize) -> Vec<usize> {
        let rows = self.bucket.rows.iter().copied();
        rows.filter(|row| *row < row_count).collect()
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
            at_base: self.rows_at_base(rows.len()),
            in_burst,
            has_reads: bucket.has_reads,
            has_refilled: bucket.has_refilled,
        }
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
            let found = FoundCredit {
                target,
                bucket,
                stretches: stretches.clone(),
            };
            // No figure of the record has the base rate of the others.
            if !found.rows_at_base(data.measurements.len()).is_empty() {
                credits.push(found);
            }
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
        let share = requests_of_disk(row);
        for mut stretch in kind.stretches(&times, &series) {
            stretch.scale_requests(share);
            stretches.push(stretch);
        }
        if let Some(filled) = row.laid_out {
            let from_ns = filled_from_ns(data.measurements.iter(), row.start_ns);
            stretches.extend(kind.filling(filled, from_ns, &times));
        }
    }
    for slice in &data.dropped {
        if disk.is_on_disk(slice.target)
            && let Some(kind) = kind_of_dropped(slice, data, plan, disk)
        {
            stretches.extend(kind.dropped(slice));
        }
    }
    for moved in &data.beside {
        stretches.push(stretch_beside(moved));
    }
    in_order(stretches)
}

/// The properties of a dropped slice: those of its row, or of the planned workload that has no row
/// any more, as a search drops the depths that were measured in a burst. `None` where its requests
/// may not have reached the disk, or where no row of its kind tells.
fn kind_of_dropped(
    slice: &DroppedSlice,
    data: &RunData,
    plan: &Plan,
    disk: &TargetsOfDisk<'_>,
) -> Option<RowKind> {
    let own = data
        .measurements
        .iter()
        .position(|row| row.target == slice.target && row.workload.name == slice.workload);
    let (index, workload, sibling) = match own {
        Some(index) => {
            let row = &data.measurements[index];
            (index, &row.workload, row)
        }
        None => {
            let place = plan
                .workloads()
                .iter()
                .position(|workload| workload.name == slice.workload)?;
            let workload = &plan.workloads()[place];
            let sibling = data
                .measurements
                .iter()
                .find(|row| row.target == slice.target && runs_alike(&row.workload, workload))?;
            (data.measurements.len() + place, workload, sibling)
        }
    };
    if !uses_credit(sibling) {
        return None;
    }
    let role = if slice.target == disk.target && waits_for_disk(sibling) {
        role_of(workload, plan)
    } else {
        Role::Shared
    };
    Some(RowKind::new(index, workload, role))
}

/// Returns `true` if the requests of one workload reach the disk in the same way as those of the
/// other, so that the row of the one tells how the other was measured.
fn runs_alike(one: &Workload, other: &Workload) -> bool {
    one.cache == other.cache
        && one.engine == other.engine
        && one.sync == other.sync
        && one.streams.is_only(OpKind::Read) == other.streams.is_only(OpKind::Read)
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

#[cfg(test)]
mod tests;
