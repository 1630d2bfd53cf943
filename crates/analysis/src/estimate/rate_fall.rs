//! Lasting falls of the rate of a series, in time and operations per second. `fall` finds them in
//! counts per cell.

use super::stats::{mean, variance};
use super::{fall, per_cell, settling};
use diskproof_model::series::TimeSeries;

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

/// A fall lasts if the rate stays low for at least this time.
const FALL_TAIL_NS: u64 = 1_000_000_000;
/// The part after a fall has at least this many cells, however long they are: with fewer its level
/// is unknown.
const FALL_TAIL_CELLS_MIN: u64 = 5;
/// The rate after a fall varies by at most this share (standard deviation over mean).
const FALL_TAIL_SCATTER_MAX: f64 = 0.15;

/// The fall of a rate that then kept its lower level for at least a second to the end. The series
/// need not have settled: the fall may be shortly before the end of a run.
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
