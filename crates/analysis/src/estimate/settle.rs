//! Finds the end of the warm-up of a rate, if the rate settles at all, by MSER-5 (White 1997;
//! White, Cobb & Spratt 2000) with tests for drifts, steps and slow ramps.
//!
//! [`settle`] takes counts per cell of time. [`settle_slices`] takes one rate for each slice of a
//! workload whose slices lie apart in time. The level of such a workload changes from slice to
//! slice by chance, which a test on cells would take for a drift.

use super::batches::{BATCHES_MIN, widening};
use super::fall::last_fall;
use super::stats::{largest, mean, median, variance};
use super::student;

/// Cells per batch of the warm-up statistic: the 5 of MSER-5.
const WARMUP_BATCH_CELLS: usize = 5;
/// The tail after the warm-up, and each side of a step, has at least this many batches: the
/// variance of fewer is too often small by chance (Hoad, Robinson & Davies 2010).
const SIDE_BATCHES_MIN: usize = 5;
/// A drift or a step is at least this share of the mean. A smaller difference does not count,
/// however significant it is.
const DRIFT_MIN: f64 = 0.01;
/// A warm-up differs from the rest by more than this share. A smaller difference does not count,
/// however significant it is: on a disk that does exactly as many operations in every cell, one
/// more or less is "significant", and chance decides where the variance is smallest.
const LEVEL_MIN: f64 = 0.001;
/// Where most cells are empty, a head that has at most so many of the fullest cells more or less
/// than the tail is chance.
const SPARSE_CELLS: f64 = 2.0;
/// The number of batches in which [`starts_off_level`] compares levels: four in the first fifth,
/// ten in the last half.
const LEVEL_BATCHES: usize = 20;
/// A step is larger than this many standard errors. That is more than the two or three of an
/// ordinary test, because the largest step is chosen from the data (Hawkins 1977) and correlated
/// noise wanders. At 4, fewer than 3 % of the steady runs in the tests count as unsettled.
const STEP_ERRORS: f64 = 4.0;
/// A warm-up is at most one of this many parts of a run. Chosen: a longer one would leave too
/// little to show that the rate settled.
const WARMUP_DIVISOR: usize = 3;
/// A head that is too long for a warm-up has the pace of the tail if it differs by at most this
/// share. Chosen, not measured.
const SAME_PACE_MAX: f64 = 0.05;
/// The cut moves in steps of one of this many parts of a run while the tail starts off its level.
const CUT_STEP_DIVISOR: usize = 20;
/// With fewer slices a trend may be chance (docs/compare.md, "Slices").
const SETTLING_SLICES_MIN: usize = 5;
/// The moment of a fall is known to a batch of 50 ms and the next batch.
const FALL_EDGE_NS: u64 = 100_000_000;
/// The quantile of the two-sided tests whether halves, or slices, differ: each errs in one of a
/// hundred steady runs.
const DIFFERENCE_PROBABILITY: f64 = 0.995;

/// The warm-up at the beginning of some values: counts of cells, or rates of slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WarmUp {
    /// There are too few values to find one.
    Unknown,
    /// The rate settles after this many values, which are to be dropped; 0 where the rate is level
    /// from the start.
    Settled { dropped: usize },
    /// The rate does not settle: it drifts, or changes its level where no warm-up can end.
    Unsettled,
}

impl WarmUp {
    /// No value needs to be dropped.
    const NONE: Self = Self::Settled { dropped: 0 };
}

/// Finds the warm-up in counts per cell.
///
/// The order of the questions matters. A lasting fall comes first: the level after it is the rate
/// of the disk, however late the disk fell to it, and all later questions would find the run
/// unsettled. Only then is MSER-5 asked for a cut, and at last [`judge_cut`] whether that cut ends
/// a warm-up.
///
/// A minimum of MSER-5 in the second half means that there is no steady tail, but only if the rate
/// drifts or steps there: on counts, the statistic is also smallest where a few batches happen to
/// be equal. Otherwise the best cut in the first half is used.
pub(super) fn settle(values: &[f64]) -> WarmUp {
    let batches: Vec<f64> = values.chunks_exact(WARMUP_BATCH_CELLS).map(mean).collect();
    if batches.len() < BATCHES_MIN {
        return WarmUp::Unknown;
    }
    if let Some(cell) = last_fall(values) {
        return WarmUp::Settled { dropped: cell };
    }
    let statistics = mser(&batches);
    let half = batches.len() / 2;
    if smallest_index(&statistics) > half && (halves_differ(values) || has_late_step(&batches)) {
        return WarmUp::Unsettled;
    }
    let best_cut = smallest_index(&statistics[..=half.min(statistics.len() - 1)]);
    judge_cut(values, moved_cut(values, best_cut))
}

/// Moves a cut on while the tail after it starts off its later level, at most to the half of the
/// run: MSER balances bias against variance, and cuts a slow ramp too early for an interval that
/// must cover. Cuts are in batches.
fn moved_cut(values: &[f64], first_cut: usize) -> usize {
    let batches = values.len() / WARMUP_BATCH_CELLS;
    let half = batches / 2;
    let mut cut = first_cut;
    while cut < half && starts_off_level(&values[cut * WARMUP_BATCH_CELLS..]) {
        cut = half.min(cut + batches.div_ceil(CUT_STEP_DIVISOR));
    }
    cut
}

/// The warm-up that ends at a cut, in batches.
///
/// The order of the questions matters: only a head that differs from the tail can be a warm-up, an
/// idle tail has no level of which a share could be taken, and only the head of a tail with a level
/// is short or long.
fn judge_cut(values: &[f64], cut: usize) -> WarmUp {
    let batches = values.len() / WARMUP_BATCH_CELLS;
    let (head, tail) = values.split_at(cut * WARMUP_BATCH_CELLS);
    let difference = (mean(head) - mean(tail)).abs();
    if cut == 0 || difference <= LEVEL_MIN * mean(tail) {
        return WarmUp::NONE;
    }
    // A disk that stops doing anything has not warmed up.
    if mean(tail) == 0.0 {
        return WarmUp::Unsettled;
    }
    // If most cells are empty, a single cell more or less is not another level.
    let is_mostly_empty = median(values) == 0.0;
    if is_mostly_empty && difference * head.len() as f64 <= SPARSE_CELLS * largest(values) {
        return WarmUp::NONE;
    }
    if cut <= batches / WARMUP_DIVISOR {
        // The end of a ramp hides in the noise: half as much again is dropped.
        let safe_cut = (cut + cut / 2).min(batches / 2);
        return WarmUp::Settled {
            dropped: safe_cut * WARMUP_BATCH_CELLS,
        };
    }
    // The head is too long for a warm-up. If it has the pace of the tail, nothing needs to be
    // dropped. Otherwise the disk, or another user of it, changed its pace in the middle of the
    // run, and the calmer part alone would flatter it.
    if difference <= SAME_PACE_MAX * mean(tail) {
        WarmUp::NONE
    } else {
        WarmUp::Unsettled
    }
}

/// The statistic of MSER for each cut d that leaves a tail long enough: Σ_{j>d}(Z_j −
/// Z̄_d)²/(k−d)².
fn mser(batches: &[f64]) -> Vec<f64> {
    let count = batches.len();
    let centre = mean(batches);
    let mut sum = 0.0;
    let mut squares = 0.0;
    let mut statistics = vec![0.0; count];
    for cut in (0..count).rev() {
        let deviation = batches[cut] - centre;
        sum += deviation;
        squares += deviation * deviation;
        let tail = (count - cut) as f64;
        statistics[cut] = (squares - sum * sum / tail).max(0.0) / (tail * tail);
    }
    statistics.truncate(count - SIDE_BATCHES_MIN + 1);
    statistics
}

/// The index of the smallest value, the first of several.
fn smallest_index(values: &[f64]) -> usize {
    let mut best = 0;
    for (index, value) in values.iter().enumerate() {
        // Rounding must not make a later, equal value look smaller.
        if *value < values[best] - 1e-9 * values[best].abs() {
            best = index;
        }
    }
    best
}

/// Returns `true` if the means of the first and the second half of a run differ by more than
/// [`DRIFT_MIN`], and significantly at 1 % (Welch's t on five batches each).
fn halves_differ(values: &[f64]) -> bool {
    let batch_cells = values.len() / BATCHES_MIN;
    let full_batches = &values[values.len() % BATCHES_MIN..];
    let batches: Vec<f64> = full_batches.chunks_exact(batch_cells).map(mean).collect();
    let (first, second) = batches.split_at(BATCHES_MIN / 2);
    let difference = (mean(first) - mean(second)).abs();
    let error = ((variance(first) + variance(second)) / first.len() as f64).sqrt();
    difference > DRIFT_MIN * mean(&batches)
        && difference > student::quantile(DIFFERENCE_PROBABILITY, (BATCHES_MIN - 2) as f64) * error
}

/// Returns `true` if the largest step lies in the second half and is real: larger than
/// [`DRIFT_MIN`], and than [`STEP_ERRORS`] standard errors of the residuals, widened for their
/// correlation. This finds a cliff near the end, which hardly changes the mean of its half.
fn has_late_step(batches: &[f64]) -> bool {
    let cut = largest_step_cut(batches);
    let (before, after) = batches.split_at(cut);
    let mut residuals = Vec::new();
    for part in [before, after] {
        let level = mean(part);
        residuals.extend(part.iter().map(|value| value - level));
    }
    let shares = 1.0 / before.len() as f64 + 1.0 / after.len() as f64;
    let error = (variance(&residuals) * widening(&residuals) * shares).sqrt();
    let difference = (mean(before) - mean(after)).abs();
    cut > batches.len() / 2
        && difference > DRIFT_MIN * mean(batches)
        && difference > STEP_ERRORS * error
}

/// The cut at which one step explains most of the variance, with at least [`SIDE_BATCHES_MIN`]
/// batches on either side.
fn largest_step_cut(batches: &[f64]) -> usize {
    let count = batches.len() as f64;
    let centre = mean(batches);
    let mut sum = 0.0;
    // For each cut from 1 on, what it leaves unexplained, but for a constant and a factor: a cut
    // explains sum² × count / (before × (count − before)) of the squares.
    let mut unexplained = Vec::new();
    for (index, value) in batches.iter().enumerate() {
        sum += value - centre;
        let before = (index + 1) as f64;
        unexplained.push(-(sum * sum) / (before * (count - before)));
    }
    let first_cut = SIDE_BATCHES_MIN;
    let last_cut = batches.len() - SIDE_BATCHES_MIN;
    first_cut + smallest_index(&unexplained[first_cut - 1..last_cut])
}

/// Returns `true` if the first fifth of a run differs from its last half by more than
/// [`LEVEL_MIN`], and significantly at 5 % by the variance of the latter (Geweke 1992).
pub(super) fn starts_off_level(values: &[f64]) -> bool {
    let batch_cells = values.len() / LEVEL_BATCHES;
    if batch_cells == 0 {
        return false;
    }
    let full_batches = &values[values.len() % LEVEL_BATCHES..];
    let batches: Vec<f64> = full_batches.chunks_exact(batch_cells).map(mean).collect();
    let first = &batches[..batches.len() / 5];
    let last = &batches[batches.len() / 2..];
    let inverse_counts = 1.0 / first.len() as f64 + 1.0 / last.len() as f64;
    let error = (variance(last) * inverse_counts).sqrt();
    let significant = student::multiple_95((last.len() - 1) as f64) * error;
    let difference = (mean(first) - mean(last)).abs();
    difference > LEVEL_MIN * mean(last) && difference > significant
}

/// Finds the warm-up in the rates of slices: the slices before the first one that is like those
/// after it, unless these still drift.
pub(super) fn settle_slices(rates: &[f64]) -> WarmUp {
    if rates.len() < SETTLING_SLICES_MIN {
        return WarmUp::Unknown;
    }
    for dropped in 0..=rates.len() / WARMUP_DIVISOR {
        let kept = &rates[dropped..];
        if first_slice_is_off(kept) {
            continue;
        }
        if slice_halves_differ(kept) {
            return WarmUp::Unsettled;
        }
        return WarmUp::Settled { dropped };
    }
    WarmUp::Unsettled
}

/// Returns `true` if a fall at `at_ns` of the measured time may be chance: it lies between two
/// slices, and the level before or after it is that of a single slice. `ends_ns` has the ends of
/// all slices.
pub(crate) fn falls_by_chance(at_ns: u64, ends_ns: &[u64]) -> bool {
    let Some((_, boundaries)) = ends_ns.split_last() else {
        return false;
    };
    match boundaries {
        [] => false,
        // Of two slices, either level is that of a single one.
        [_] => true,
        [first, .., last] => {
            at_ns.abs_diff(*first) <= FALL_EDGE_NS || at_ns.abs_diff(*last) <= FALL_EDGE_NS
        }
    }
}

/// Returns `true` if the first slice lies outside of the range that the others predict for one more
/// slice.
fn first_slice_is_off(rates: &[f64]) -> bool {
    let Some((first, others)) = rates.split_first() else {
        return false;
    };
    let count = others.len() as f64;
    let error = (variance(others) * (1.0 + 1.0 / count)).sqrt();
    let by_chance = student::quantile(DIFFERENCE_PROBABILITY, count - 1.0) * error;
    levels_differ(*first, mean(others), by_chance)
}

/// Returns `true` if the two halves of the slices have different means (Student's t).
fn slice_halves_differ(rates: &[f64]) -> bool {
    let size = rates.len() / 2;
    let (first, second) = (&rates[..size], &rates[rates.len() - size..]);
    let error = ((variance(first) + variance(second)) / size as f64).sqrt();
    let freedom = (2 * size - 2) as f64;
    let by_chance = student::quantile(DIFFERENCE_PROBABILITY, freedom) * error;
    levels_differ(mean(first), mean(second), by_chance)
}

/// Returns `true` if two levels differ by more than chance explains, and by more than
/// [`DRIFT_MIN`] of the second.
fn levels_differ(a: f64, b: f64, by_chance: f64) -> bool {
    (a - b).abs() > by_chance && (a - b).abs() > DRIFT_MIN * b
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, truth: f64) {
        assert!((value - truth).abs() < 1e-12, "{value:?} is not {truth:?}");
    }

    /// numpy, from the definition: Σ (Z_j − mean)²/m² over the m batches from each cut on.
    #[test]
    fn mser_statistics_are_those_of_the_definition() {
        let batches = [1.0, 5.0, 4.0, 6.0, 5.0, 4.0, 6.0, 5.0, 5.0, 4.0];
        let expected = [
            0.185,
            0.06035665294924553,
            0.076171875,
            0.08163265306122448,
            0.07870370370370369,
            0.112,
        ];
        let found = mser(&batches);
        assert_eq!(found.len(), expected.len());
        found
            .into_iter()
            .zip(expected)
            .for_each(|(a, b)| close(a, b));
        assert_eq!(smallest_index(&mser(&batches)), 1);
    }

    #[test]
    fn smallest_is_the_first_of_equal_ones() {
        assert_eq!(smallest_index(&[3.0, 1.0, 1.0 - 1e-12, 2.0]), 1);
        assert_eq!(smallest_index(&[3.0, 1.0, 1.0 - 1e-6, 2.0]), 2);
        assert_eq!(smallest_index(&[-1.0, -1.0 - 1e-12, -2.0]), 2);
        assert_eq!(smallest_index(&[-2.0, -2.0 - 1e-12, -1.0]), 0);
        assert_eq!(smallest_index(&[5.0]), 0);
        assert_eq!(smallest_index(&[1000.0, 1000.0 - 1e-8]), 0);
    }

    /// Five values about each mean with variance 1: error √(2/5) = 0.632456, times t(0.995, 8) =
    /// 3.355387 (scipy): 2.122133. A hundredth of the mean of 101 is less.
    #[test]
    fn halves_differ_from_the_critical_value_on() {
        let with = |difference: f64, padding: &[f64]| {
            let mut values = padding.to_vec();
            for level in [100.0, 100.0 + difference] {
                values.extend([1.0, -1.0, 1.0, -1.0, 0.0].map(|noise| level + noise));
            }
            halves_differ(&values)
        };
        assert!(!with(2.1221, &[]) && with(2.1222, &[]));
        assert!(!with(-2.1221, &[]) && with(-2.1222, &[]));
        assert!(with(2.1222, &[900.0; 3]) && !with(2.1221, &[900.0; 3]));
        // However sure, less than a hundredth of the mean is none: 1.005 and 1.0051.
        let even = |second: f64| halves_differ(&[[100.0; 5], [second; 5]].concat());
        assert!(!even(101.0) && !even(101.005) && even(101.006));
        assert!(!halves_differ(&[[199.0; 5], [201.0; 5]].concat()));
    }

    /// numpy: 12 and 8 batches that vary by one up and down; the step looks largest after 13 of
    /// them at 1.8 (3.97 errors) and 1.87 (4.09 errors).
    #[test]
    fn step_counts_from_four_errors_on() {
        let with = |step: f64, before: usize, after: usize| {
            let noise = |i: usize| [1.0, -1.0][i % 2];
            let mut batches: Vec<f64> = (0..before).map(|i| 100.0 + noise(i)).collect();
            batches.extend((0..after).map(|i| 100.0 - step + noise(i)));
            has_late_step(&batches)
        };
        assert!(!with(1.8, 12, 8) && with(1.87, 12, 8) && with(-5.0, 12, 8));
        // In the first half it may be a warm-up.
        assert!(!with(8.0, 10, 10) && with(8.0, 11, 9) && !with(8.0, 8, 12));
        // However sure, less than a hundredth of the mean is none.
        let even = |second: f64| has_late_step(&[vec![100.0; 12], vec![second; 8]].concat());
        assert!(!even(99.004) && even(99.003) && !even(101.0) && even(101.01));
        assert!(!has_late_step(&[vec![1004.0; 12], vec![994.0; 8]].concat()));
        // Five batches after a cliff are enough (5.4 errors; 3.5 from one batch earlier), three are
        // too few (3.1 errors after the 15th; 12 where it is).
        assert!(with(3.0, 15, 5) && !with(8.0, 17, 3));
    }

    /// numpy: residuals that stay for two batches are correlated; 2.19 after 14 batches is 3.2
    /// errors, 2.5 after 12 is 4.7 (widened by their correlation).
    #[test]
    fn correlated_noise_is_no_step() {
        let with = |step: f64| {
            let noise = |i: usize| [1.0, 1.0, -1.0, -1.0][i % 4];
            let mut batches: Vec<f64> = (0..12).map(|i| 100.0 + noise(i)).collect();
            batches.extend((0..8).map(|i| 100.0 - step + noise(i)));
            has_late_step(&batches)
        };
        assert!(!with(2.0) && with(2.5));
    }
}

#[cfg(test)]
mod settle_slices_tests {
    use super::*;
    use crate::fixture::test_rng::TestRng;

    #[test]
    fn steady_slices_are_settled() {
        assert_eq!(settle_slices(&[100.0; 8]), WarmUp::NONE);
        let uneven = [98.0, 104.0, 101.0, 96.0, 103.0, 99.0, 100.0, 102.0];
        assert_eq!(settle_slices(&uneven), WarmUp::NONE);
        assert_eq!(settle_slices(&uneven[..4]), WarmUp::Unknown);
    }

    /// The last seven: mean 101, s² = 44/6; 99.5 % of Student's t with 6 degrees of freedom is
    /// 3.707428 (scipy), so one more lies within 3.707428 × √(44/6 × 8/7) = 10.733 of it.
    #[test]
    fn first_slice_outside_of_what_the_others_predict_is_warm_up() {
        let with_first = |first: f64| {
            let others = [104.0, 101.0, 98.0, 103.0, 99.0, 98.0, 104.0];
            let mut rates = vec![first];
            rates.extend(others);
            settle_slices(&rates)
        };
        assert_eq!(with_first(111.7), WarmUp::NONE);
        assert_eq!(with_first(111.8), WarmUp::Settled { dropped: 1 });
        assert_eq!(with_first(90.2), WarmUp::Settled { dropped: 1 });
    }

    #[test]
    fn two_slices_of_eight_may_be_warm_up() {
        let rates = [150.0, 120.0, 101.0, 98.0, 103.0, 99.0, 98.0, 102.0];
        assert_eq!(settle_slices(&rates), WarmUp::Settled { dropped: 2 });
    }

    #[test]
    fn drift_over_all_slices_has_not_settled() {
        let rates = [100.0, 97.0, 95.0, 92.0, 90.0, 87.0, 85.0, 82.0];
        assert_eq!(settle_slices(&rates), WarmUp::Unsettled);
    }

    #[test]
    fn differences_below_one_percent_are_none() {
        let rates = [500.8, 500.7, 500.6, 500.5, 500.4, 500.3, 500.2, 500.1];
        assert_eq!(settle_slices(&rates), WarmUp::NONE);
    }

    #[test]
    fn fall_between_slices_counts_where_both_levels_have_more_than_one() {
        let ends: Vec<u64> = (1..=5).map(|slice| slice * 400_000_000).collect();
        let by_chance = |ms: u64| falls_by_chance(ms * 1_000_000, &ends);
        assert!(by_chance(400) && by_chance(450) && by_chance(1600));
        assert!(!by_chance(600) && !by_chance(800) && !by_chance(1250));
    }

    /// 2 of 100 by the design of both tests.
    #[test]
    fn slices_that_differ_by_chance_are_settled() {
        let mut rng = TestRng(11);
        let unsettled = (0..1000)
            .filter(|_| {
                let rates: Vec<f64> = (0..8)
                    .map(|_| 1000.0 * (1.0 + 0.1 * rng.normal()))
                    .collect();
                settle_slices(&rates) != WarmUp::NONE
            })
            .count();
        assert!(unsettled <= 35, "{unsettled} of 1000");
    }

    /// So many cells with one count, then so many with another.
    fn two_levels(head: (usize, f64), tail: (usize, f64)) -> Vec<f64> {
        let mut values = vec![head.1; head.0];
        values.extend(vec![tail.1; tail.0]);
        values
    }

    /// Forty batches: a warm-up has at most a third of them, 13, and half as much again is dropped.
    #[test]
    fn head_of_another_level_is_warm_up_up_to_a_third_of_the_run() {
        let values = two_levels((65, 30.0), (135, 100.0));
        assert_eq!(judge_cut(&values, 13), WarmUp::Settled { dropped: 95 });
        let values = two_levels((70, 30.0), (130, 100.0));
        assert_eq!(judge_cut(&values, 14), WarmUp::Unsettled);
    }

    /// A head that is too long for a warm-up has the pace of the tail within 5 %.
    #[test]
    fn long_head_within_five_percent_of_the_tail_is_no_other_pace() {
        for (level, expected) in [
            (104.9, WarmUp::NONE),
            (95.1, WarmUp::NONE),
            (105.1, WarmUp::Unsettled),
            (94.9, WarmUp::Unsettled),
        ] {
            let values = two_levels((100, level), (100, 100.0));
            assert_eq!(judge_cut(&values, 20), expected, "{level}");
        }
    }

    /// One operation more or less in a thousand is another level only by chance.
    #[test]
    fn head_within_a_thousandth_of_the_tail_is_level() {
        for (level, expected) in [
            (1000.9, WarmUp::NONE),
            (1001.1, WarmUp::Settled { dropped: 75 }),
        ] {
            let values = two_levels((50, level), (150, 1000.0));
            assert_eq!(judge_cut(&values, 10), expected, "{level}");
        }
    }

    /// Fifteen full cells of 150 are five of 50: one more in the head is chance, three more are
    /// not.
    #[test]
    fn few_full_cells_more_are_chance_where_most_are_empty() {
        for (full_cells, expected) in [
            (4, WarmUp::NONE),
            (6, WarmUp::NONE),
            (8, WarmUp::Settled { dropped: 75 }),
        ] {
            let mut values = two_levels((full_cells, 1.0), (50 - full_cells, 0.0));
            values.extend(two_levels((15, 1.0), (135, 0.0)));
            assert_eq!(judge_cut(&values, 10), expected, "{full_cells}");
        }
    }

    #[test]
    fn disk_that_stops_has_not_warmed_up() {
        let values = two_levels((50, 100.0), (150, 0.0));
        assert_eq!(judge_cut(&values, 10), WarmUp::Unsettled);
    }
}
