//! Answers questions about a limiter from the rows of a record: for how long the highest rate was
//! kept, whether the run ended with a fall, and how much credit a fall had used.

use super::collapse::collapse;
use super::credit::spent_before;
use super::held::{HeldRate, held_rate_of_rows};
use super::late_fall::{LateFall, late_fall};
use super::row_stretches::{
    RowKind, RowTimes, planned_warmup_ns, requests_of_disk, role_of, uses_credit, waits_for_disk,
};
use super::stretch::{Role, Unit, in_order};
use crate::estimate;
use crate::moved::filled_from_ns;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;

/// The highest rate of a run on a target, and the longest time without a pause for which it kept
/// about that rate. One slice is one cell. `None` where nothing ran in a closed loop.
pub(crate) fn held_by_rows(record: &Record, target: usize, unit: Unit) -> Option<HeldRate> {
    let mut rows = Vec::new();
    for row in &record.measurements {
        let is_closed = !row.data.workload.is_paced() && row.figures.ping.is_none();
        if row.data.target == target && is_closed && waits_for_disk(&row.data) {
            rows.push(row);
        }
    }
    held_rate_of_rows(&rows, unit)
}

/// The fall of a target within the last second of its rows, or its collapse at their end; see
/// [`late_fall`] and [`collapse`].
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
    let ordered = in_order(stretches);
    late_fall(&ordered).or_else(|| collapse(&ordered))
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
        let share = requests_of_disk(&row.data);
        for mut stretch in kind.stretches(&times, &series) {
            stretch.scale_requests(share);
            stretches.push(stretch);
        }
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
