//! Whether a workload in slices apart in time has settled, and from which slice on.
//! Within such a series the level changes from slice to slice by chance, which a test on its cells
//! would take for a drift. Works on one rate per slice.

use super::stats::{mean, variance};
use super::student;

/// The fewest slices that tell a trend from chance.
const SETTLING_SLICES_MIN: usize = 5;
/// A warm-up is at most one part in this many of a run.
const WARMUP_PARTS_MIN: usize = 3;
/// Levels that differ by less than this share of their mean count as alike, however sure the
/// difference is.
const DRIFT_MIN: f64 = 0.01;
/// A fall is found to a batch of 50 ms and the batch after it.
const FALL_EDGE_NS: u64 = 100_000_000;
/// Both tests err in one of a hundred steady runs.
const PROBABILITY: f64 = 0.995;

/// The slices to drop at the beginning, and whether the rate settled; `None` of too few.
pub(super) fn settle_slices(rates: &[f64]) -> (usize, Option<bool>) {
    if rates.len() < SETTLING_SLICES_MIN {
        return (0, None);
    }
    let most = rates.len() / WARMUP_PARTS_MIN;
    let first_alike = (0..=most).find(|cut| !begins_off(&rates[*cut..]));
    match first_alike {
        Some(cut) if !halves_differ(&rates[cut..]) => (cut, Some(true)),
        _ => (0, Some(false)),
    }
}

/// Whether a fall at `at_ns` of the measured time may be chance: it lies between two slices, and
/// the level before it or after it is that of a single slice. `ends_ns` are the ends of all slices.
pub(crate) fn falls_by_chance(at_ns: u64, ends_ns: &[u64]) -> bool {
    let Some((_, [first, .., last])) = ends_ns.split_last() else {
        return ends_ns.len() > 1;
    };
    let mut ends = [first, last].into_iter();
    ends.any(|end| at_ns.abs_diff(*end) <= FALL_EDGE_NS)
}

/// Whether the first slice lies outside of what the others predict for one more.
fn begins_off(rates: &[f64]) -> bool {
    let Some((first, others)) = rates.split_first() else {
        return false;
    };
    let n = others.len() as f64;
    let error = (variance(others) * (1.0 + 1.0 / n)).sqrt();
    let most = student::quantile(PROBABILITY, n - 1.0) * error;
    differ(*first, mean(others), most)
}

/// Whether the first half of the slices has another mean than the second (Student's t).
fn halves_differ(rates: &[f64]) -> bool {
    let size = rates.len() / 2;
    let (first, second) = (&rates[..size], &rates[rates.len() - size..]);
    let error = ((variance(first) + variance(second)) / size as f64).sqrt();
    let freedom = (2 * size - 2) as f64;
    let most = student::quantile(PROBABILITY, freedom) * error;
    differ(mean(first), mean(second), most)
}

/// Whether two levels differ by more than `error` and by more than counts as alike.
fn differ(a: f64, b: f64, error: f64) -> bool {
    (a - b).abs() > error && (a - b).abs() > DRIFT_MIN * b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::test_rng::TestRng;

    #[test]
    fn steady_slices_are_settled() {
        assert_eq!(settle_slices(&[100.0; 8]), (0, Some(true)));
        let uneven = [98.0, 104.0, 101.0, 96.0, 103.0, 99.0, 100.0, 102.0];
        assert_eq!(settle_slices(&uneven), (0, Some(true)));
        assert_eq!(settle_slices(&uneven[..4]), (0, None));
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
        assert_eq!(with_first(111.7), (0, Some(true)));
        assert_eq!(with_first(111.8), (1, Some(true)));
        assert_eq!(with_first(90.2), (1, Some(true)));
    }

    #[test]
    fn two_slices_of_eight_may_be_warm_up() {
        let rates = [150.0, 120.0, 101.0, 98.0, 103.0, 99.0, 98.0, 102.0];
        assert_eq!(settle_slices(&rates), (2, Some(true)));
    }

    #[test]
    fn drift_over_all_slices_has_not_settled() {
        let rates = [100.0, 97.0, 95.0, 92.0, 90.0, 87.0, 85.0, 82.0];
        assert_eq!(settle_slices(&rates), (0, Some(false)));
    }

    #[test]
    fn differences_below_one_percent_are_none() {
        let rates = [500.8, 500.7, 500.6, 500.5, 500.4, 500.3, 500.2, 500.1];
        assert_eq!(settle_slices(&rates), (0, Some(true)));
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
                settle_slices(&rates) != (0, Some(true))
            })
            .count();
        assert!(unsettled <= 35, "{unsettled} of 1000");
    }
}
