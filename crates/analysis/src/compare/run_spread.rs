//! Estimates the variation of a figure from run to run.
//!
//! It follows from the runs of both sides and earlier runs of the same target and plan, pooled.
//! Each group of runs has its own mean, as it may be another disk or setting. The pooled variance
//! is the sum of squares about the group means, divided by its degrees of freedom: the runs less
//! one for each group (Student 1908; Snedecor & Cochran 1989, 6.7). It contains the variation
//! within runs; the rest is the component between runs (one-way analysis of variance, Snedecor &
//! Cochran 1989, 13.3).

use crate::estimate::mean;
use statrs::distribution::{ContinuousCDF as _, FisherSnedecor};

/// Earlier runs alone must give at least this many degrees of freedom. With one, an interval is
/// 12.7 standard errors wide, which is worse than no statement.
const EARLIER_FREEDOM_MIN: usize = 2;
/// Two variances differ if chance alone makes them so different with less than this probability:
/// the usual 5 %.
const UNEQUAL_P_MAX: f64 = 0.05;

/// The variation of a figure from run to run, as standard deviations of its logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RunSpread {
    /// Standard deviation of a run's figure.
    pub deviation: f64,
    /// The part of it that the intervals of the runs do not explain.
    pub component: f64,
    /// Degrees of freedom of both.
    pub freedom: f64,
    /// The number of earlier runs among those that show it.
    pub earlier_runs: u64,
}

/// The figures of runs that repeat one experiment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Repetitions<'a> {
    /// The logarithm of the figure in each run.
    pub logs: &'a [f64],
    /// The variance of one of them due to variation within the run.
    pub variance_within: f64,
}

impl Repetitions<'_> {
    /// Degrees of freedom of its variance.
    fn freedom(self) -> usize {
        self.logs.len().saturating_sub(1)
    }

    /// The sum of squares about its mean.
    fn sum_of_squares(self) -> f64 {
        if self.logs.is_empty() {
            return 0.0;
        }
        let centre = mean(self.logs);
        self.logs.iter().map(|log| (log - centre).powi(2)).sum()
    }
}

/// The variation on one side alone; `None` of a single run.
pub(super) fn spread_of_side(runs: Repetitions<'_>) -> Option<RunSpread> {
    spread_of_groups(&[runs])
}

/// The variation on both sides and in groups of earlier runs together. `None` where too few runs
/// repeat, and where the variances of the sides differ.
pub(super) fn pooled_spread(
    a: Repetitions<'_>,
    b: Repetitions<'_>,
    earlier: &[Repetitions<'_>],
) -> Option<RunSpread> {
    let side_freedom = a.freedom() + b.freedom();
    let earlier_freedom: usize = earlier.iter().map(|group| group.freedom()).sum();
    if (side_freedom == 0 && earlier_freedom < EARLIER_FREEDOM_MIN) || variances_differ(a, b) {
        return None;
    }
    let groups: Vec<Repetitions<'_>> = [a, b].into_iter().chain(earlier.iter().copied()).collect();
    let mut spread = spread_of_groups(&groups)?;
    for group in earlier {
        if group.freedom() > 0 {
            spread.earlier_runs += group.logs.len() as u64;
        }
    }
    Some(spread)
}

/// The pooled variation of these groups; `None` where none of them has two runs.
fn spread_of_groups(groups: &[Repetitions<'_>]) -> Option<RunSpread> {
    let freedom: usize = groups.iter().map(|group| group.freedom()).sum();
    if freedom == 0 {
        return None;
    }
    let squares: f64 = groups.iter().map(|group| group.sum_of_squares()).sum();
    let squares_within: f64 = groups
        .iter()
        .map(|group| group.freedom() as f64 * group.variance_within)
        .sum();
    let freedom = freedom as f64;
    Some(RunSpread {
        deviation: (squares / freedom).sqrt(),
        component: ((squares - squares_within) / freedom).max(0.0).sqrt(),
        freedom,
        earlier_runs: 0,
    })
}

/// Returns `true` if the variances of two sides differ by more than chance explains (the two-sided
/// F test).
fn variances_differ(a: Repetitions<'_>, b: Repetitions<'_>) -> bool {
    if a.freedom() == 0 || b.freedom() == 0 {
        return false;
    }
    let (freedom_a, freedom_b) = (a.freedom() as f64, b.freedom() as f64);
    let (variance_a, variance_b) = (
        a.sum_of_squares() / freedom_a,
        b.sum_of_squares() / freedom_b,
    );
    if variance_a == 0.0 || variance_b == 0.0 {
        return variance_a != variance_b;
    }
    let distribution =
        FisherSnedecor::new(freedom_a, freedom_b).expect("degrees of freedom are positive");
    let below = distribution.cdf(variance_a / variance_b);
    2.0 * below.min(1.0 - below) < UNEQUAL_P_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(logs: &[f64], variance_within: f64) -> Repetitions<'_> {
        Repetitions {
            logs,
            variance_within,
        }
    }

    /// By hand: squares of 2 about the mean 2 and of 8 about the mean 12; 2 + 2 degrees of freedom;
    /// variance (2 + 8)/4 = 2.5. Within: (2 × 0.5 + 2 × 1)/4 = 0.75, which leaves 1.75.
    #[test]
    fn pooled_variance_is_the_one_computed_by_hand() {
        let (a, b) = ([1.0, 2.0, 3.0], [10.0, 12.0, 14.0]);
        let spread = pooled_spread(runs(&a, 0.5), runs(&b, 1.0), &[]).unwrap();
        assert_eq!(spread.deviation, 2.5_f64.sqrt());
        assert_eq!(spread.component, 1.75_f64.sqrt());
        assert_eq!((spread.freedom, spread.earlier_runs), (4.0, 0));
        // Earlier runs add squares of 0.5 about 0.5 and one degree of freedom; a single one adds
        // none.
        let earlier = [runs(&[0.0, 1.0], 0.0), runs(&[7.0], 9.0)];
        let spread = pooled_spread(runs(&a, 0.5), runs(&b, 1.0), &earlier).unwrap();
        assert_eq!(spread.deviation, (10.5_f64 / 5.0).sqrt());
        assert_eq!(spread.component, (7.5_f64 / 5.0).sqrt());
        assert_eq!((spread.freedom, spread.earlier_runs), (5.0, 2));
        // What varies within the runs may explain all of it.
        let spread = pooled_spread(runs(&a, 4.0), runs(&b, 4.0), &[]).unwrap();
        assert_eq!((spread.component, spread.deviation), (0.0, 2.5_f64.sqrt()));
    }

    #[test]
    fn variation_is_unknown_from_single_runs() {
        let one = runs(&[1.0], 0.0);
        assert_eq!(spread_of_side(one), None);
        assert_eq!(spread_of_side(runs(&[], 0.0)), None);
        assert_eq!(pooled_spread(one, one, &[one, one]), None);
        // One degree of freedom: of a side it counts, of earlier runs alone it does not.
        let two = runs(&[1.0, 2.0], 0.0);
        assert_eq!(pooled_spread(one, one, &[two]), None);
        assert_eq!(pooled_spread(one, two, &[]).unwrap().freedom, 1.0);
        assert_eq!(pooled_spread(one, one, &[two, two]).unwrap().freedom, 2.0);
    }

    /// scipy.stats.f, `2 * min(cdf, sf)` at the ratio of the variances with 2 and 2 degrees of
    /// freedom: p = 0.0163 for 1, 2, 3 against 10, 20, 32, and p = 0.0638 against 10, 15, 21.
    #[test]
    fn sides_that_vary_differently_are_not_pooled() {
        let a = [1.0, 2.0, 3.0];
        for (a, b, are_pooled) in [
            (a, [10.0, 20.0, 32.0], false),
            ([10.0, 20.0, 32.0], a, false),
            (a, [10.0, 15.0, 21.0], true),
            (a, [5.0; 3], false),
            ([5.0; 3], [6.0; 3], true),
        ] {
            let spread = pooled_spread(runs(&a, 0.0), runs(&b, 0.0), &[]);
            assert_eq!(spread.is_some(), are_pooled, "{a:?} {b:?}");
        }
    }
}
