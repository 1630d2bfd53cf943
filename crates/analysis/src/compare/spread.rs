//! How much a figure varies from run to run: the runs of both sides and earlier runs of the same
//! target and plan, pooled. Works on logarithms of figures; knows nothing of metrics or ratios.
//!
//! Each group of runs has a mean of its own, as it may be another disk or setting. The squares
//! about the means over the runs less one of each group are the pooled variance, with as many
//! degrees of freedom (Student 1908; Snedecor & Cochran 1989, 6.7). It holds what varies within the
//! runs, too; what is left without that is the component between runs (one-way analysis of
//! variance, Snedecor & Cochran 1989, 13.3).

use crate::estimate::mean;
use statrs::distribution::{ContinuousCDF as _, FisherSnedecor};

/// Fewest degrees of freedom that earlier runs alone must give: with one, an interval is 12.7
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
    let within: f64 = groups
        .iter()
        .map(|group| group.freedom() as f64 * group.variance_within)
        .sum();
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
