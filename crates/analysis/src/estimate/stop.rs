//! Decides whether a run may end early: its rate is known, and has been for long enough.

use super::batches::{batch_means, burst};
use super::fall;
use super::settle::{WarmUp, settle, starts_off_level};
use diskproof_model::series::TimeSeries;

/// A run may stop early if the warm-up was at most one of this many parts of it: the end of a slow
/// ramp is only seen well after it.
const SETTLING_PARTS_MIN: usize = 3;
/// A run may stop early with at least this many batches. With fewer, correlation hides in the noise
/// and a run stops at the first lucky moment: ten instead of twenty cover 82 % instead of 92 % of
/// noise with ρ = 0.9 at a goal of 5 % (simulated as in the tests).
pub(super) const STOP_BATCHES_MIN: usize = 20;

/// A run that lasted so long may end as soon as its rate is known. The table of [`may_end`] is the
/// reason.
pub const LONG_ENOUGH_NS: u64 = 7_500_000_000;
/// A run whose rate is suspiciously even may not end before this, or before its whole time: a
/// limiter that still has credit is even, and the rate after it is unknown.
pub const EVEN_LONG_ENOUGH_NS: u64 = 30_000_000_000;
/// A run with little time in all may end after this share of it, if that is earlier than
/// [`LONG_ENOUGH_NS`]: its user accepted the risk. Chosen, not measured.
const LONG_ENOUGH_SHARE: f64 = 0.25;

/// Returns `true` if a workload that has run for `elapsed_ns` of at most `time_ns` may end because
/// its rate is known to `goal`, the relative half-width of its 95 % interval.
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

/// Returns `true` if the rate is more even than a medium's. The last cell, which may not be full,
/// is ignored.
pub fn is_suspiciously_even(series: &TimeSeries) -> bool {
    fall::is_even(&full_cells(series))
}

/// The operations of every cell but the last, which may not be full.
fn full_cells(series: &TimeSeries) -> Vec<f64> {
    let full = series.cells.len().saturating_sub(1);
    series.cells[..full]
        .iter()
        .map(|cell| cell.ops as f64)
        .collect()
}

/// Returns `true` if the rate of a running workload is known well enough to end it: the warm-up
/// ended long ago, and the relative half-width of the rate is at most `goal`. It is fast enough for
/// several calls a second.
///
/// A rule that is evaluated often stops at the first lucky moment, and the interval then covers the
/// truth too seldom. The half-width falls with the root of time, so that the first half of the run
/// must have reached √2 times the goal already.
pub fn precise_enough(series: &TimeSeries, goal: f64) -> bool {
    // The last cell is still being filled.
    let counts = full_cells(series);
    let half = &counts[..counts.len() / 2];
    let dropped_max = counts.len() / SETTLING_PARTS_MIN;
    is_precise(&counts, dropped_max, goal)
        && is_precise(half, dropped_max, goal * std::f64::consts::SQRT_2)
}

/// Returns `true` if counts settle within `dropped_max` cells, and their mean is then known to
/// `goal`.
fn is_precise(counts: &[f64], dropped_max: usize, goal: f64) -> bool {
    let dropped = match settle(counts) {
        WarmUp::Settled { dropped } if dropped <= dropped_max => dropped,
        WarmUp::Settled { .. } | WarmUp::Unsettled | WarmUp::Unknown => return false,
    };
    let steady = &counts[dropped..];
    let Some(means) = batch_means(steady) else {
        return false;
    };
    // On a disk that does nothing, one operation is more than any share.
    let grain = burst(steady).max(1.0) / means.cells as f64;
    means.n >= STOP_BATCHES_MIN
        && means.half_width.max(grain) <= goal * means.mean
        && !starts_off_level(steady)
}
