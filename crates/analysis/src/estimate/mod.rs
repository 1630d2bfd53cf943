//! Estimates rates with an honest 95 % interval: finds the end of the warm-up, the rate after it,
//! and its uncertainty.
//!
//! A *cell* is a short, fixed part of the measured time, in which a series counts operations and
//! bytes. A *batch* is several cells in a row. This file and `stop` take series, the others
//! counts per cell.
//!
//! * `settle`: the end of the warm-up; `fall`: lasting falls, and rates as even as a limiter's.
//! * `batches`: means with their interval; `slow`: changes that batches do not show; `student`,
//!   `stats`, `family`: the statistics that these share.
//! * `stop`: whether a run may end early.

mod batches;
mod fall;
mod family;
mod settle;
mod slow;
mod stats;
mod stop;
pub(crate) mod student;

pub(crate) use batches::{BATCHES_MIN, mean_latency, mean_rate, widening};
pub(crate) use fall::{
    EVEN_SCATTER_MAX, LIMITER_FALL_MIN, evenness, is_of_limiter, scatter, step_down,
};
pub(crate) use family::adjusted_for_family;
pub(crate) use settle::falls_by_chance;
pub(crate) use stats::{largest_by, mean, smallest_by, variance};
pub use stop::{
    EVEN_LONG_ENOUGH_NS, LONG_ENOUGH_NS, is_suspiciously_even, may_end, precise_enough,
};
pub(crate) use student::PairedDifference;

use batches::{batch_means, burst};
use diskproof_model::record::Estimate;
use diskproof_model::row::Row;
use diskproof_model::series::{Cell, TimeSeries};
use settle::{WarmUp, settle, settle_slices};
use slow::SlowChanges;
use std::borrow::Borrow;

/// A rate counts as known if the relative half-width of its 95 % interval is at most this. Beyond
/// it, two measurements of the same disk may differ by more than half. Grades, advice and
/// accusations of a disk need a known rate.
pub(crate) const HALF_WIDTH_MAX: f64 = 0.25;

/// The rates of operations and bytes after the warm-up.
#[derive(Debug, Clone, PartialEq)]
pub struct RateEstimate {
    /// Operations per second, unit `1/s`.
    pub ops: Estimate,
    /// Bytes per second, unit `B/s`.
    pub bytes: Estimate,
    /// The warm-up that was skipped, in nanoseconds after the start of the measured time.
    pub settling_ns: u64,
    /// True if the rate settled; `None` where too little was measured to decide.
    pub settled: Option<bool>,
}

/// The sum of several series, cell by cell; `None` of no series.
pub(crate) fn summed<T: Borrow<TimeSeries>>(
    all_series: impl IntoIterator<Item = T>,
) -> Option<TimeSeries> {
    let mut sum: Option<TimeSeries> = None;
    for series in all_series {
        match &mut sum {
            Some(sum) => sum.merge(series.borrow()),
            None => sum = Some(series.borrow().clone()),
        }
    }
    sum
}

/// The end of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settling {
    /// The warm-up to skip, in nanoseconds after the start of the measured time.
    pub settling_ns: u64,
    /// True if the rate settled; `None` where too little was measured to decide.
    pub settled: Option<bool>,
}

impl Settling {
    /// A measurement that counts as a whole, without a warm-up.
    pub(crate) const WHOLE: Self = Self::new(0, None);

    /// A warm-up with its fields in their order.
    pub(crate) const fn new(settling_ns: u64, settled: Option<bool>) -> Self {
        Self {
            settling_ns,
            settled,
        }
    }

    /// The warm-up that a row already skipped.
    pub(crate) fn of_row(row: &Row) -> Self {
        Self::new(row.figures.settling_ns, row.figures.settled)
    }

    /// The end of a warm-up. `end_ns` is the end of so many dropped values in the measured time; it
    /// is called with at least one.
    fn from_warm_up(warm_up: WarmUp, end_ns: impl Fn(usize) -> u64) -> Self {
        match warm_up {
            WarmUp::Unknown => Self::new(0, None),
            WarmUp::Settled { dropped: 0 } => Self::new(0, Some(true)),
            WarmUp::Settled { dropped } => Self::new(end_ns(dropped), Some(true)),
            WarmUp::Unsettled => Self::new(0, Some(false)),
        }
    }
}

/// The sum of rates that vary together, such as those of a mix: their half-widths are added. `None`
/// of no rate; without an interval as soon as one has none.
pub(crate) fn sum_of(estimates: impl IntoIterator<Item = Estimate>) -> Option<Estimate> {
    let mut estimates = estimates.into_iter();
    let mut sum = estimates.next()?;
    for estimate in estimates {
        sum.n = sum.n.min(estimate.n);
        sum.value += estimate.value;
        sum.half_width_95 = match (sum.half_width_95, estimate.half_width_95) {
            (Some(a), Some(b)) => Some(a + b),
            _ => None,
        };
    }
    Some(sum)
}

/// The rates of a series whose measured time was `wall_ns`.
pub fn rate(series: &TimeSeries, wall_ns: u64) -> RateEstimate {
    rate_after(series, wall_ns, settling(series, wall_ns))
}

/// The end of the warm-up, judged by the operation rate of a series.
pub fn settling(series: &TimeSeries, wall_ns: u64) -> Settling {
    let warm_up = settle(&per_cell(series, wall_ns, |cell| cell.ops));
    Settling::from_warm_up(warm_up, |dropped| {
        series.start_ns + dropped as u64 * series.interval_ns
    })
}

/// The end of the warm-up of a workload in slices that lie apart in time. After a lasting fall it
/// is the cell of the fall, otherwise the end of a slice. `rates` has the rate of each slice, and
/// `ends_ns` their ends in the measured time.
pub(crate) fn settling_of_slices(
    series: &TimeSeries,
    wall_ns: u64,
    rates: &[f64],
    ends_ns: &[u64],
) -> Settling {
    if let Some(cut) = fall::last_fall(&per_cell(series, wall_ns, |cell| cell.ops)) {
        let settling_ns = series.start_ns + cut as u64 * series.interval_ns;
        if !falls_by_chance(settling_ns, ends_ns) {
            return Settling::new(settling_ns, Some(true));
        }
    }
    Settling::from_warm_up(settle_slices(rates), |dropped| ends_ns[dropped - 1])
}

/// The rates of a series after a warm-up that was found on another series: reads and writes of a
/// mix settle together.
pub fn rate_after(series: &TimeSeries, wall_ns: u64, settling: Settling) -> RateEstimate {
    let dropped = settling
        .settling_ns
        .saturating_sub(series.start_ns)
        .div_ceil(series.interval_ns) as usize;
    let steady = SteadyCells {
        series,
        wall_ns,
        dropped,
    };
    let total = series.total();
    let bytes_per_op = total.bytes as f64 / total.ops.max(1) as f64;
    RateEstimate {
        ops: steady.estimate(|cell| cell.ops, 1.0, "1/s"),
        bytes: steady.estimate(|cell| cell.bytes, bytes_per_op, "B/s"),
        settling_ns: settling.settling_ns,
        settled: settling.settled,
    }
}

/// The cells of a series after the warm-up.
struct SteadyCells<'a> {
    series: &'a TimeSeries,
    wall_ns: u64,
    /// The number of cells before the first of these.
    dropped: usize,
}

impl SteadyCells<'_> {
    /// The rate of a count, which takes the last cell into account even where it is not whole. Its
    /// uncertainty is that of the whole cells. `count_per_op` is the mean count of one operation.
    fn estimate(&self, count: fn(&Cell) -> u64, count_per_op: f64, unit: &str) -> Estimate {
        let value = self.per_second(count);
        let counts = per_cell(self.series, self.wall_ns, count);
        let steady = counts.get(self.dropped..).unwrap_or_default();
        let total = self.series.total();
        // One operation, such as a final sync, has no rate that another run would repeat.
        let has_rate = total.ops > 1 && count(&total) > 0;
        match batch_means(steady) {
            Some(means) if has_rate => {
                // A rate is known at best to one operation, or to one burst where operations
                // complete in bursts, even if every batch holds the same number.
                let grain = count_per_op.max(burst(steady)) / means.cells as f64;
                let scale = 1e9 / self.series.interval_ns as f64;
                let half_width = means.half_width.max(grain) * scale;
                Estimate::new(means.n as u64, value, Some(half_width), unit)
            }
            _ => Estimate::new(1, value, None, unit),
        }
    }

    /// The mean count per second of these cells; 0 where the warm-up took all the time.
    fn per_second(&self, count: fn(&Cell) -> u64) -> f64 {
        let begin_ns = self.series.start_ns + self.dropped as u64 * self.series.interval_ns;
        let time_ns = self.wall_ns.saturating_sub(begin_ns);
        if time_ns == 0 {
            return 0.0;
        }
        let steady = self.series.cells.iter().skip(self.dropped);
        let counted: u64 = steady.map(count).sum();
        counted as f64 * 1e9 / time_ns as f64
    }
}

/// The effect of slow changes on the operation rate after the warm-up; `None` of too few cells.
pub(crate) fn slow_changes(
    series: &TimeSeries,
    wall_ns: u64,
    settling_ns: u64,
) -> Option<SlowChanges> {
    let counts = per_cell(series, wall_ns, |cell| cell.ops);
    let skipped = settling_ns.saturating_sub(series.start_ns) / series.interval_ns.max(1);
    slow::slow_changes_in_counts(counts.get(skipped as usize..)?)
}

/// A lasting fall of a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LastingFall {
    /// The moment of the fall, in nanoseconds after the start of the measured time.
    pub(crate) at_ns: u64,
    /// Operations per second before it.
    pub(crate) before: f64,
    /// Operations per second after it.
    pub(crate) after: f64,
}

/// The smallest factor by which the rate must fall to count as a fall to the part of the measured
/// time from `start_ns` on. It is smaller where that part is as even as a limiter's.
pub(crate) fn least_fall_to(series: &TimeSeries, start_ns: u64, wall_ns: u64) -> f64 {
    let skipped = start_ns.saturating_sub(series.start_ns) / series.interval_ns.max(1);
    let values = per_cell(series, wall_ns, |cell| cell.ops);
    fall::least_fall(values.get(skipped as usize..).unwrap_or_default())
}

/// A fall lasts if the rate stays low for at least this time. Chosen, not measured: a shorter low
/// rate is a pause.
const FALL_TAIL_NS: u64 = 1_000_000_000;
/// The part after a fall has at least this many cells, however long they are: with fewer its level
/// is unknown.
const FALL_TAIL_CELLS_MIN: u64 = 5;
/// The rate after a fall varies by at most this share (standard deviation over mean): it is a
/// level. Chosen, not measured.
const FALL_TAIL_SCATTER_MAX: f64 = 0.15;

/// The fall of a rate that then kept its lower level for at least a second to the end; `None`
/// without one. The series need not have settled: the fall may be shortly before the end of a run.
pub(crate) fn lasting_fall(series: &TimeSeries, wall_ns: u64) -> Option<LastingFall> {
    let values = per_cell(series, wall_ns, |cell| cell.ops);
    let tail_min = FALL_TAIL_NS
        .div_ceil(series.interval_ns.max(1))
        .max(FALL_TAIL_CELLS_MIN) as usize;
    let cut = fall::largest_step(&values, tail_min / 2, tail_min)?;
    // The cell of the fall itself belongs to neither level.
    let tail = &values[(cut + 1).min(values.len())..];
    let level = mean(tail);
    let is_even = variance(tail).sqrt() <= FALL_TAIL_SCATTER_MAX * level;
    if !is_even || !fall::falls(&values, cut, fall::FALL_MIN) {
        return None;
    }
    let per_second = 1e9 / series.interval_ns.max(1) as f64;
    Some(LastingFall {
        at_ns: series.start_ns + cut as u64 * series.interval_ns,
        before: mean(&values[..cut]) * per_second,
        after: level * per_second,
    })
}

/// The fall of a rate to the level that lasts: one step, or a slope down to it; `None` without one.
pub(crate) fn rate_fall(series: &TimeSeries, wall_ns: u64) -> Option<LastingFall> {
    if let Some(fall) = lasting_fall(series, wall_ns) {
        return Some(fall);
    }
    let warmup = settling(series, wall_ns);
    if warmup.settling_ns == 0 || warmup.settled != Some(true) {
        return None;
    }
    let at_ns = warmup.settling_ns;
    let before = per_second(series, 0, at_ns);
    let after = per_second(series, at_ns, wall_ns);
    let least = least_fall_to(series, at_ns, wall_ns);
    if after > 0.0 && before >= least * after {
        Some(LastingFall {
            at_ns,
            before,
            after,
        })
    } else {
        None
    }
}

/// Operations per second in a part of the measured time.
pub(crate) fn per_second(series: &TimeSeries, from_ns: u64, to_ns: u64) -> f64 {
    let ops = series.total_between(from_ns, to_ns).ops;
    ops as f64 * 1e9 / to_ns.saturating_sub(from_ns).max(1) as f64
}

/// The counts of the cells that `wall_ns` covers fully. A cell that is missing, because nothing
/// completed in it, counts as zero.
fn per_cell(series: &TimeSeries, wall_ns: u64, count: impl Fn(&Cell) -> u64) -> Vec<f64> {
    let full = wall_ns.saturating_sub(series.start_ns) / series.interval_ns;
    let mut counts: Vec<f64> = series
        .cells
        .iter()
        .take(full as usize)
        .map(|cell| count(cell) as f64)
        .collect();
    counts.resize(full as usize, 0.0);
    counts
}

#[cfg(test)]
mod exact_tests;
#[cfg(test)]
mod tests;
