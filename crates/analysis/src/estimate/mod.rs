//! Rates with an honest 95 % interval: the end of the warm-up, the rate after it, and its
//! uncertainty. Works on counts per cell of time.

mod batches;
mod fall;
mod settle;
mod slow;
mod stats;
pub(crate) mod student;

pub(crate) use batches::{BATCHES_MIN, mean_latency, mean_rate, widening};
pub(crate) use fall::{is_of_limiter, scatter, step_down};
pub(crate) use settle::falls_by_chance;
pub(crate) use stats::{largest_by, mean, smallest_by, variance};
pub(crate) use student::PairedDifference;

use batches::{batch_means, burst};
use diskproof_model::record::Estimate;
use diskproof_model::row::Row;
use diskproof_model::series::{Cell, TimeSeries};
use settle::{begins_off, settle, settle_slices};
use slow::SlowChanges;
use std::borrow::Borrow;

/// A rate counts as known if the relative half-width of its 95 % interval is at most this. Beyond
/// it, two measurements of the same disk may differ by more than half. Grades, advice and
/// accusations of a disk need a known rate.
pub(crate) const HALF_WIDTH_MAX: f64 = 0.25;
/// A run may stop early if the warm-up was at most one of this many parts of it: the end of a slow
/// ramp is only seen well after it.
const SETTLING_PARTS_MIN: usize = 3;
/// A run may stop early with at least this many batches. With fewer, correlation hides in the noise
/// and a run stops at the first lucky moment: ten instead of twenty cover 82 % instead of 92 % of
/// noise with ρ = 0.9 at a goal of 5 % (simulated as in the tests).
const STOP_BATCHES_MIN: usize = 20;

/// A run that lasted so long may end as soon as its rate is known, see [`may_end`].
pub const LONG_ENOUGH_NS: u64 = 7_500_000_000;
/// A run whose rate is suspiciously even may not end before this, or before its whole time: a
/// limiter that still has credit is even, and the rate after it is unknown.
pub const EVEN_LONG_ENOUGH_NS: u64 = 30_000_000_000;
/// A run with less time in all may end after this share of it: its user accepted the risk.
const LONG_ENOUGH_SHARE: f64 = 0.25;

/// The rates of operations and bytes after the warm-up.
#[derive(Debug, Clone, PartialEq)]
pub struct RateEstimate {
    /// Operations per second, unit `1/s`.
    pub ops: Estimate,
    /// Bytes per second, unit `B/s`.
    pub bytes: Estimate,
    /// The warm-up that was skipped, in nanoseconds after the start of the measured time.
    pub settling_ns: u64,
    /// Whether the rate settled; `None` when too little was measured to tell.
    pub settled: Option<bool>,
}

/// The sum of several series, cell by cell; `None` where there is none.
pub(crate) fn summed<T: Borrow<TimeSeries>>(
    all: impl IntoIterator<Item = T>,
) -> Option<TimeSeries> {
    let mut sum: Option<TimeSeries> = None;
    for series in all {
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
    /// Whether the rate settled; `None` when too little was measured to tell.
    pub settled: Option<bool>,
}

impl Settling {
    /// A measurement that counts as a whole, without a warm-up.
    pub(crate) const WHOLE: Self = Self::new(0, None);

    pub(crate) const fn new(settling_ns: u64, settled: Option<bool>) -> Self {
        Self {
            settling_ns,
            settled,
        }
    }

    /// The warm-up that a row already skipped.
    pub(crate) fn of_row(m: &Row) -> Self {
        Self::new(m.figures.settling_ns, m.figures.settled)
    }
}

/// The sum of rates that vary together, such as those of a mix: their half-widths are added.
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
    let (dropped, settled) = settle(&per_cell(series, wall_ns, |cell| cell.ops));
    let settling_ns = match dropped {
        0 => 0,
        _ => series.start_ns + dropped as u64 * series.interval_ns,
    };
    Settling::new(settling_ns, settled)
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
    match settle_slices(rates) {
        (0, settled) => Settling::new(0, settled),
        (dropped, settled) => Settling::new(ends_ns[dropped - 1], settled),
    }
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
    let bytes_each = total.bytes as f64 / total.ops.max(1) as f64;
    RateEstimate {
        ops: steady.estimate(|cell| cell.ops, 1.0, "1/s"),
        bytes: steady.estimate(|cell| cell.bytes, bytes_each, "B/s"),
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
    /// The count over the time that it took, the end of the last cell included. Whole cells give
    /// its uncertainty. `one` is the number of units in one operation.
    fn estimate(&self, count: fn(&Cell) -> u64, one: f64, unit: &str) -> Estimate {
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
                let grain = one.max(burst(steady)) / means.cells as f64;
                let scale = 1e9 / self.series.interval_ns as f64;
                let half_width = means.half_width.max(grain) * scale;
                Estimate::new(means.n as u64, value, Some(half_width), unit)
            }
            _ => Estimate::new(1, value, None, unit),
        }
    }

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
    slow::of_counts(counts.get(skipped as usize..)?)
}

/// Whether a workload that has run for `elapsed_ns` of at most `time_ns` may end because its rate
/// is known to `goal`.
///
/// A perfectly even disk is known to 2 % within a second, and so is a disk that has merely not
/// shown its disturbances yet: only time distinguishes them. The table is from 120 simulated runs
/// of at most 30 s each (benches/stopping_study.rs, which says how to repeat it). Runs were allowed
/// to end from the given second on. `a of b`: b per cent of the runs were ended by a goal of 2 %,
/// and a per cent were ended with a larger error. A cell is 10 ms long, and a disk that falls is
/// judged by its rate at the end:
///
/// | disk | 1 s | 2 s | 3 s | 5 s | 7.5 s |
/// |---|---|---|---|---|---|
/// | even | 0 of 100 | 0 of 100 | 0 of 100 | 0 of 100 | 0 of 100 |
/// | independent noise of 10 % per cell | 3 of 100 | 0 of 100 | 0 of 100 | 0 of 100 | 0 of 100 |
/// | independent noise of 50 % | 8 of 70 | 8 of 70 | 8 of 70 | 8 of 70 | 8 of 70 |
/// | 32 requests in one convoy | 0 of 100 | 0 of 100 | 0 of 100 | 0 of 100 | 0 of 100 |
/// | wanders by 10 %, forgets in 0.1 s | 13 of 81 | 13 of 81 | 13 of 81 | 13 of 81 | 13 of 80 |
/// | wanders by 5 %, in 0.5 s | 14 of 22 | 6 of 12 | 2 of 8 | 1 of 6 | 0 of 5 |
/// | wanders by 3 %, in 1 s | 28 of 64 | 21 of 48 | 10 of 29 | 2 of 7 | 0 of 1 |
/// | wanders by 3 %, in 2 s | 39 of 84 | 31 of 66 | 18 of 44 | 7 of 15 | 1 of 2 |
/// | wanders by 5 %, in 2 s | 33 of 45 | 17 of 26 | 5 of 9 | 1 of 2 | 0 of 0 |
/// | wanders by 5 %, in 5 s | 50 of 73 | 40 of 57 | 22 of 32 | 5 of 8 | 0 of 0 |
/// | falls by 10 % in 30 s | 0 of 100 | 0 of 100 | 0 of 100 | 0 of 100 | 0 of 62 |
/// | falls by 20 % in 30 s | 0 of 100 | 0 of 99 | 0 of 97 | 1 of 53 | 1 of 2 |
/// | one step of 20 % within 20 s | 0 of 100 | 0 of 100 | 0 of 100 | 1 of 100 | 2 of 86 |
/// | warm-up of 1 s from half its rate | 0 of 99 | 0 of 99 | 0 of 99 | 0 of 99 | 0 of 99 |
/// | pauses of 50 ms, about one a second | 40 of 80 | 26 of 77 | 12 of 72 | 7 of 71 | 7 of 71 |
/// | pauses of 200 ms, about one in 3 s | 79 of 79 | 64 of 64 | 51 of 51 | 28 of 28 | 13 of 13 |
///
/// The worst at 7.5 s are pauses of 200 ms and noise with a memory of 0.1 s. No rule can see a
/// pause that did not happen: with one in three seconds on average, 8 % of all runs (e^-2.5) have
/// none in 7.5 s. 120 runs show these shares to about 6 %.
///
/// A token bucket with credit left is as even as the even disk of the first line, and falls to a
/// fraction of its rate when the credit is used up. So a rate that is more even than a medium's
/// ends a run only after [`EVEN_LONG_ENOUGH_NS`], however precise it is.
pub fn may_end(series: &TimeSeries, elapsed_ns: u64, time_ns: Option<u64>, goal: f64) -> bool {
    let share_ns = match time_ns {
        Some(time_ns) => (time_ns as f64 * LONG_ENOUGH_SHARE) as u64,
        None => LONG_ENOUGH_NS,
    };
    elapsed_ns >= share_ns.min(LONG_ENOUGH_NS)
        && precise_enough(series, goal)
        && (elapsed_ns >= EVEN_LONG_ENOUGH_NS || !is_suspiciously_even(series))
}

/// Whether the rate is more even than a medium's. The last cell, which may not be full, is ignored.
pub fn is_suspiciously_even(series: &TimeSeries) -> bool {
    fall::is_even(&full_cells(series))
}

/// The operations of every cell but the last, which may not be full.
fn full_cells(series: &TimeSeries) -> Vec<f64> {
    let full = series.cells.len().saturating_sub(1);
    series.cells[..full].iter().map(|c| c.ops as f64).collect()
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

/// The smallest factor between the rate before a part of the measured time and the rate in it that
/// counts as a fall: less where the part is as even as a limiter's.
pub(crate) fn least_fall_to(series: &TimeSeries, start_ns: u64, wall_ns: u64) -> f64 {
    let skipped = start_ns.saturating_sub(series.start_ns) / series.interval_ns.max(1);
    let values = per_cell(series, wall_ns, |cell| cell.ops);
    fall::least_fall(values.get(skipped as usize..).unwrap_or_default())
}

/// A fall lasts if the rate stays low for at least this time.
const FALL_TAIL_NS: u64 = 1_000_000_000;
/// The rate after a fall varies by at most this share (standard deviation over mean).
const FALL_TAIL_SCATTER: f64 = 0.15;

/// The fall of a rate that then kept its lower level for at least a second to the end. The series
/// need not have settled: the fall may be shortly before the end of a run.
pub(crate) fn lasting_fall(series: &TimeSeries, wall_ns: u64) -> Option<LastingFall> {
    let values = per_cell(series, wall_ns, |cell| cell.ops);
    let tail_min = FALL_TAIL_NS.div_ceil(series.interval_ns.max(1)).max(5) as usize;
    let cut = fall::largest_step(&values, tail_min / 2, tail_min)?;
    let tail = &values[(cut + 1).min(values.len())..];
    let level = mean(tail);
    let is_even = variance(tail).sqrt() <= FALL_TAIL_SCATTER * level;
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

/// The fall of a rate to the level that lasts: one step, or a slope down to it.
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

/// Whether the rate of a running workload is known well enough to end it: the warm-up ended long
/// ago, and the relative half-width of the rate is at most `goal`. Fast enough for several calls a
/// second.
///
/// A rule that is evaluated often stops at the first lucky moment, and the interval then covers the
/// truth too seldom. So the first half of the run must have reached √2 times the goal already, as
/// the half-width falls with the root of time.
pub fn precise_enough(series: &TimeSeries, goal: f64) -> bool {
    // The last cell is still being filled.
    let counts = full_cells(series);
    let half = &counts[..counts.len() / 2];
    let settled_max = counts.len() / SETTLING_PARTS_MIN;
    is_precise(&counts, settled_max, goal)
        && is_precise(half, settled_max, goal * std::f64::consts::SQRT_2)
}

/// Whether counts settle within so many cells, and their mean is then known to `goal`.
fn is_precise(counts: &[f64], settled_max: usize, goal: f64) -> bool {
    let (dropped, settled) = settle(counts);
    if settled != Some(true) || dropped > settled_max {
        return false;
    }
    let steady = &counts[dropped..];
    let Some(means) = batch_means(steady) else {
        return false;
    };
    // On a disk that does nothing, one operation is more than any share.
    let grain = burst(steady).max(1.0) / means.cells as f64;
    means.n >= STOP_BATCHES_MIN
        && means.half_width.max(grain) <= goal * means.mean
        && !begins_off(steady)
}

/// The counts of the cells that `wall_ns` covers fully. A cell that is missing, because nothing
/// completed in it, counts as zero.
fn per_cell(series: &TimeSeries, wall_ns: u64, count: impl Fn(&Cell) -> u64) -> Vec<f64> {
    let full = wall_ns.saturating_sub(series.start_ns) / series.interval_ns;
    let counts = series.cells.iter().map(|c| count(c) as f64);
    let endless = counts.chain(std::iter::repeat(0.0));
    endless.take(full as usize).collect()
}

#[cfg(test)]
mod exact_tests;
#[cfg(test)]
mod tests;
