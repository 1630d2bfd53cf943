//! Estimates the rates of a workload on one side of a comparison, each with its uncertainty.
//! Assumes that the runs are comparable.
//!
//! A rate has the record's own interval: batch means of the finest series, widened for correlation.
//! Of several runs the run is the unit: their rates vary from run to run.

use super::side_estimate::SideEstimate;
use crate::estimate::{self, Settling};
use crate::slices;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Estimate;
use diskproof_model::row::{OpRow, Row};
use diskproof_model::window::SliceOp;

/// What a rate counts each second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RateUnit {
    Operations,
    Bytes,
}

/// The rate of one kind of operation, or of all headline kinds together where `op` is `None`, over
/// the runs of a side; `None` where a run lacks it.
pub(super) fn rate_estimate(
    runs: &[&Row],
    op: Option<OpKind>,
    unit: RateUnit,
) -> Option<SideEstimate> {
    let mut estimates = Vec::new();
    for row in runs {
        estimates.push(rate_of_run(row, op, unit)?);
    }
    SideEstimate::from_estimates(&estimates)
}

fn rate_of_run(row: &Row, op: Option<OpKind>, unit: RateUnit) -> Option<Estimate> {
    match op {
        Some(op) => Some(rate_of_kind(row.op(op)?, unit)),
        None => total_rate(row, unit),
    }
}

fn rate_of_kind(op: OpRow<'_>, unit: RateUnit) -> Estimate {
    match unit {
        RateUnit::Operations => op.figures.iops.clone(),
        RateUnit::Bytes => op.figures.throughput.clone(),
    }
}

/// The rate of all headline operations. Chance decides whether the next one reads or writes, so
/// reads and writes by themselves vary more than their sum: the interval comes from the sum of
/// their series. Where that is too short, their errors are added in full.
pub(super) fn total_rate(row: &Row, unit: RateUnit) -> Option<Estimate> {
    let ops = row.headline_ops();
    let rates_of_kinds = ops.iter().map(|(_, op)| rate_of_kind(*op, unit));
    let sum = estimate::sum_of(rates_of_kinds)?;
    let mut series = ops.first()?.1.data.shown_series();
    if series.interval_ns == 0 {
        return Some(sum);
    }
    for (_, op) in &ops {
        if op.data.shown_series().interval_ns != series.interval_ns {
            return Some(sum);
        }
    }
    for (_, op) in &ops[1..] {
        series.merge(&op.data.shown_series());
    }
    let rates = estimate::rate_after(&series, row.data.wall_ns, Settling::of_row(row));
    let rate_of_sum = match unit {
        RateUnit::Operations => rates.ops,
        RateUnit::Bytes => rates.bytes,
    };
    if ops.len() == 1 || rate_of_sum.half_width_95.is_none() {
        return Some(sum);
    }
    let mut total = Estimate {
        value: sum.value,
        ..rate_of_sum
    };
    let count = ops.iter().map(|(_, op)| op.data.count).sum();
    slices::widen_estimate(&mut total, &slice_rates(row, unit), count);
    Some(total)
}

/// The rate of all headline operations in each slice of the steady part.
fn slice_rates(row: &Row, unit: RateUnit) -> Vec<f64> {
    let kinds: Vec<OpKind> = row.headline_ops().iter().map(|(kind, _)| *kind).collect();
    let mut rates = Vec::new();
    for slice in slices::after(&row.data.slices, row.figures.settling_ns) {
        let rate: f64 = kinds
            .iter()
            .filter_map(|kind| slice.ops.get(kind))
            .map(|op| slice_rate(op, unit))
            .sum();
        rates.push(rate);
    }
    rates
}

fn slice_rate(op: &SliceOp, unit: RateUnit) -> f64 {
    match unit {
        RateUnit::Operations => op.iops,
        RateUnit::Bytes => op.bytes_per_second,
    }
}
