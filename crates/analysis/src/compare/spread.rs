//! How much a figure varies from run to run: the runs of both sides and earlier runs of the same
//! target and plan, pooled. Works on logarithms of figures; does not know metrics or ratios.
//!
//! Each group of runs has its own mean, as it may be another disk or setting. The squares about the
//! means over the runs less one of each group are the pooled variance, with as many degrees of
//! freedom (Student 1908; Snedecor & Cochran 1989, 6.7). It holds what varies within the runs, too;
//! what is left without that is the component between runs (one-way analysis of variance, Snedecor
//! & Cochran 1989, 13.3).

use crate::estimate::mean;
use statrs::distribution::{ContinuousCDF as _, FisherSnedecor};

/// The fewest degrees of freedom that earlier runs alone must give: with one, an interval is 12.7
/// standard errors wide and tells less than that nothing is known.
const EARLIER_FREEDOM_MIN: usize = 2;
/// Sides whose runs vary differently with a probability of chance below this keep their own
/// variance each.
const UNEQUAL: f64 = 0.05;

/// How a figure varies from run to run. Standard deviations of its logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RunSpread {
    /// Of a run's figure.
    pub deviation: f64,
    /// Of the part that the intervals of the runs do not explain.
    pub component: f64,
    /// Degrees of freedom.
    pub freedom: f64,
    /// Earlier runs among those that show it.
    pub earlier_runs: u64,
}

/// The figures of runs that repeat one experiment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Repetitions<'a> {
    /// Logarithm of the figure in each run.
    pub logs: &'a [f64],
    /// Variance of one of them by what varies within it.
    pub variance_within: f64,
}

impl Repetitions<'_> {
    fn freedom(self) -> usize {
        self.logs.len().saturating_sub(1)
    }

    fn squares(self) -> f64 {
        if self.logs.is_empty() {
            return 0.0;
        }
        let centre = mean(self.logs);
        self.logs.iter().map(|log| (log - centre).powi(2)).sum()
    }
}

/// Of one side alone; `None` of one run.
pub(super) fn of_one(runs: Repetitions<'_>) -> Option<RunSpread> {
    of_groups(&[runs])
}

/// Of both sides and groups of earlier runs together. `None` where nothing tells it, and where the
/// sides vary differently.
pub(super) fn pooled(
    a: Repetitions<'_>,
    b: Repetitions<'_>,
    earlier: &[Repetitions<'_>],
) -> Option<RunSpread> {
    let of_sides = a.freedom() + b.freedom();
    let of_earlier: usize = earlier.iter().map(|group| group.freedom()).sum();
    if (of_sides == 0 && of_earlier < EARLIER_FREEDOM_MIN) || differ(a, b) {
        return None;
    }
    let groups: Vec<Repetitions<'_>> = [a, b].into_iter().chain(earlier.iter().copied()).collect();
    let showing = earlier.iter().filter(|group| group.freedom() > 0);
    Some(RunSpread {
        earlier_runs: showing.map(|group| group.logs.len() as u64).sum(),
        ..of_groups(&groups)?
    })
}

fn of_groups(groups: &[Repetitions<'_>]) -> Option<RunSpread> {
    let freedom: usize = groups.iter().map(|group| group.freedom()).sum();
    if freedom == 0 {
        return None;
    }
    let squares: f64 = groups.iter().map(|group| group.squares()).sum();
    let of_group = |group: &Repetitions<'_>| group.freedom() as f64 * group.variance_within;
    let within: f64 = groups.iter().map(of_group).sum();
    let freedom = freedom as f64;
    Some(RunSpread {
        deviation: (squares / freedom).sqrt(),
        component: ((squares - within) / freedom).max(0.0).sqrt(),
        freedom,
        earlier_runs: 0,
    })
}

/// Whether the variances of two sides differ by more than chance explains (the two-sided F test).
fn differ(a: Repetitions<'_>, b: Repetitions<'_>) -> bool {
    if a.freedom() == 0 || b.freedom() == 0 {
        return false;
    }
    let (fa, fb) = (a.freedom() as f64, b.freedom() as f64);
    let (va, vb) = (a.squares() / fa, b.squares() / fb);
    if va == 0.0 || vb == 0.0 {
        return va != vb;
    }
    let distribution = FisherSnedecor::new(fa, fb).expect("degrees of freedom are positive");
    let below = distribution.cdf(va / vb);
    2.0 * below.min(1.0 - below) < UNEQUAL
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
        let spread = pooled(runs(&a, 0.5), runs(&b, 1.0), &[]).unwrap();
        assert_eq!(spread.deviation, 2.5_f64.sqrt());
        assert_eq!(spread.component, 1.75_f64.sqrt());
        assert_eq!((spread.freedom, spread.earlier_runs), (4.0, 0));
        // Earlier runs add squares of 0.5 about 0.5 and one degree of freedom; a single one adds
        // none.
        let earlier = [runs(&[0.0, 1.0], 0.0), runs(&[7.0], 9.0)];
        let spread = pooled(runs(&a, 0.5), runs(&b, 1.0), &earlier).unwrap();
        assert_eq!(spread.deviation, (10.5_f64 / 5.0).sqrt());
        assert_eq!(spread.component, (7.5_f64 / 5.0).sqrt());
        assert_eq!((spread.freedom, spread.earlier_runs), (5.0, 2));
        // What varies within the runs may explain all of it.
        let spread = pooled(runs(&a, 4.0), runs(&b, 4.0), &[]).unwrap();
        assert_eq!((spread.component, spread.deviation), (0.0, 2.5_f64.sqrt()));
    }

    #[test]
    fn variation_is_unknown_from_single_runs() {
        let one = runs(&[1.0], 0.0);
        assert_eq!(of_one(one), None);
        assert_eq!(of_one(runs(&[], 0.0)), None);
        assert_eq!(pooled(one, one, &[one, one]), None);
        // One degree of freedom: of a side it counts, of earlier runs alone it does not.
        let two = runs(&[1.0, 2.0], 0.0);
        assert_eq!(pooled(one, one, &[two]), None);
        assert_eq!(pooled(one, two, &[]).unwrap().freedom, 1.0);
        assert_eq!(pooled(one, one, &[two, two]).unwrap().freedom, 2.0);
    }

    /// scipy.stats.f, `2 * min(cdf, sf)` at the ratio of the variances with 2 and 2 degrees of
    /// freedom: p = 0.0163 for 1, 2, 3 against 10, 20, 32, and p = 0.0638 against 10, 15, 21.
    #[test]
    fn sides_that_vary_differently_are_not_pooled() {
        let a = [1.0, 2.0, 3.0];
        assert_eq!(
            pooled(runs(&a, 0.0), runs(&[10.0, 20.0, 32.0], 0.0), &[]),
            None
        );
        assert_eq!(
            pooled(runs(&[10.0, 20.0, 32.0], 0.0), runs(&a, 0.0), &[]),
            None
        );
        assert!(pooled(runs(&a, 0.0), runs(&[10.0, 15.0, 21.0], 0.0), &[]).is_some());
        assert_eq!(
            pooled(runs(&a, 0.0), runs(&[5.0, 5.0, 5.0], 0.0), &[]),
            None
        );
        assert!(pooled(runs(&[5.0; 3], 0.0), runs(&[6.0; 3], 0.0), &[]).is_some());
    }
}
