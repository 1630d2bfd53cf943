//! Computes the figures of a burst credit with their intervals.

use crate::estimate::{self, Settling};
use crate::limiter::Unit;
use diskproof_model::limiter::BurstCredit;
use diskproof_model::record::Estimate;
use diskproof_model::row::Row;
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::sustain::{BucketFigures, RateDrop};

/// A credit counts as used up once the measured requests used this share of it: requests outside
/// of the measured time use some of it, too. Chosen, not measured.
pub(super) const CREDIT_USED_SHARE: f64 = 0.97;

/// The figures of a credit with their intervals, which are unknown if too few cells lie on one side
/// of its end. Counts of the load are exact, so the credit is as uncertain as the refill meanwhile
/// and the cell in which it ended.
pub(super) fn bucket_figures(row: &Row, credit: &BurstCredit, drop: &RateDrop) -> BucketFigures {
    let series = headline_series(row).unwrap_or_else(|| TimeSeries::new(1));
    let cell_ns = series.interval_ns.max(1);
    let end = (drop.at_ns.saturating_sub(series.start_ns) / cell_ns) as usize;
    let burst_cells = series.cells.get(..end.saturating_sub(1));
    // The base rate counts from where a little of the credit was left.
    let left_ns = 2.0 * (1.0 - CREDIT_USED_SHARE) * credit.burst_ns as f64;
    let left_cells = (left_ns / cell_ns as f64).ceil() as usize;
    let base_cells = series.cells.get(end + left_cells + 1..);
    let burst_width = half_width_of(burst_cells, cell_ns, credit.burst, &credit.unit);
    let base_width = half_width_of(base_cells, cell_ns, credit.base, &credit.unit);
    let cell_s = cell_ns as f64 / 1e9;
    let mut credit_width = None;
    let mut refill_width = None;
    if let Some(base_width) = base_width {
        let width = base_width * end as f64 * cell_s + (credit.burst - credit.base) * cell_s;
        let share = width / credit.credit + base_width / credit.base;
        credit_width = Some(width);
        refill_width = Some(credit.refill_ns as f64 * share);
    }
    let amount_unit = match Unit::of_credit(credit) {
        Unit::Bytes => "B",
        Unit::Requests => "1",
    };
    BucketFigures {
        base: Estimate::new(1, credit.base, base_width, &credit.unit),
        burst: Estimate::new(1, credit.burst, burst_width, &credit.unit),
        credit: Estimate::new(1, credit.credit, credit_width, amount_unit),
        credit_is_lower_bound: credit.credit_is_lower_bound,
        refill: Estimate::new(1, credit.refill_ns as f64, refill_width, "ns"),
    }
}

/// Half of the 95 % interval of a limiter's rate by the cells of a part of the load, plus the
/// difference between their mean and the figure, which other cells decided, too.
fn half_width_of(cells: Option<&[Cell]>, cell_ns: u64, figure: f64, unit: &str) -> Option<f64> {
    let mut part = TimeSeries::new(cell_ns);
    part.cells = cells?.to_vec();
    let part_ns = cell_ns * part.cells.len() as u64;
    let rates = estimate::rate_after(&part, part_ns, Settling::WHOLE);
    let rate = match unit {
        "B/s" => rates.bytes,
        _ => rates.ops,
    };
    Some(rate.half_width_95? + (rate.value - figure).abs())
}

/// The operations of the row's headline over time.
pub(super) fn headline_series(row: &Row) -> Option<TimeSeries> {
    let ops = row.headline_ops();
    estimate::summed(ops.iter().map(|(_, op)| &op.data.series))
}
