//! The ratio of two figures: its interval, its p-value and its verdict. Works on logarithms, so
//! that B over A and A over B are exact inverses in everything.
//!
//! Intervals of the two sides are joined by the method of variance estimates recovery (Zou & Donner
//! 2008), which keeps their asymmetry; for symmetric ones this is Student's or Welch's t. The
//! degrees of freedom are those of the variance between runs, or as Satterthwaite has them.
//! P-values are made from the same intervals and adjusted as Holm (1979) does.
//!
//! The variation of a figure from run to run follows from the runs of both sides and earlier runs
//! of the same target and plan, pooled. Each group of runs has its own mean, as it may be another
//! disk or setting. The pooled variance is the sum of squares about the group means, divided by its
//! degrees of freedom: the runs less one for each group (Student 1908; Snedecor & Cochran 1989,
//! 6.7). It contains the variation within runs; the rest is the component between runs (one-way
//! analysis of variance, Snedecor & Cochran 1989, 13.3).

use super::distribution::LatencyDistribution;
use crate::estimate::{PairedDifference, mean, student};
use diskproof_model::comparison::{Basis, Direction, Needed, Ratio, RunVariation, Verdict};
use statrs::distribution::{ContinuousCDF as _, FisherSnedecor};

/// The probability that chance alone gives any of the metrics that are compared together a verdict
/// of better or worse.
pub(super) const ALPHA: f64 = 0.05;
/// Intervals narrower than this share of the margin decide by their middle: a ratio just on the
/// margin would otherwise stay undecided however long one measures.
const NARROW: f64 = 0.1;
/// The advice how much longer to measure includes so many standard errors in reserve, so that four
/// of five such measurements decide (80 % quantile of the normal distribution). Without it, every
/// second one would miss.
const SPARE: f64 = 0.84;
/// The advice where each side has one run, and the variation between runs is unknown.
pub(super) const RUNS_NEEDED: Needed = Needed {
    times: 3.0,
    measure_ns: None,
    runs: Some(3),
};
/// A statistic beyond this many standard errors counts as certain.
const MULTIPLES_MAX: f64 = 1e6;

/// A figure of one side, and its uncertainty. Errors are those of its natural logarithm, which are
/// relative errors as long as they are small.
#[derive(Debug, Clone)]
pub(super) struct SideFigure {
    /// The figure; positive.
    pub value: f64,
    /// The logarithm of the figure in each run.
    pub logs: Vec<f64>,
    /// Its variation from run to run; `None` of a single run.
    pub spread: Option<RunSpread>,
    /// The uncertainty that the runs themselves show.
    pub within: Within,
}

/// The uncertainty of a figure from within its runs.
#[derive(Debug, Clone)]
pub(super) enum Within {
    /// A standard error.
    Error {
        /// Standard error of the logarithm.
        error: f64,
        /// Degrees of freedom.
        freedom: f64,
    },
    /// The ranks of a distribution.
    Ranks {
        /// The latencies of all runs.
        distribution: LatencyDistribution,
        /// The quantile that is the figure.
        quantile: f64,
        /// The number of independent latencies that they are worth.
        effective: f64,
        /// Degrees of freedom of that number.
        freedom: f64,
    },
    /// Unknown: the runs were too short.
    Unknown,
}

/// One of the two arms of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arm {
    /// From the figure down to the lower end.
    Below,
    /// From the figure up to the upper end.
    Above,
}

impl SideFigure {
    /// A figure from runs in which it has these logarithms.
    pub(super) fn from_runs(value: f64, logs: Vec<f64>, within: Within) -> Self {
        let mut figure = Self {
            value,
            logs,
            spread: None,
            within,
        };
        figure.spread = spread_of_side(figure.repetitions());
        figure
    }

    /// The length of an arm of the interval at `multiple` standard errors, in logarithms; infinite
    /// where nothing bounds it.
    pub(super) fn arm(&self, arm: Arm, multiple: f64) -> f64 {
        let Some(spread) = self.spread else {
            return self.within_arm(arm, multiple);
        };
        let root = (self.logs.len() as f64).sqrt();
        let between_runs = multiple * spread.deviation / root;
        if matches!(self.within, Within::Unknown) {
            return between_runs;
        }
        // The variation between runs is added to that within them. The arm is never shorter than
        // the figures of the runs suggest: the interval of one run may be too narrow by chance.
        let component = multiple * spread.component / root;
        component
            .hypot(self.within_arm(arm, multiple))
            .max(between_runs)
    }

    /// The arm by the uncertainty within the runs alone.
    fn within_arm(&self, arm: Arm, multiple: f64) -> f64 {
        match &self.within {
            Within::Error { error, .. } => multiple * error,
            Within::Ranks {
                distribution,
                quantile,
                effective,
                ..
            } => {
                let (low, high) = rank_bounds(*quantile, *effective, multiple);
                let bound = match arm {
                    Arm::Below => distribution.quantile_ns(low),
                    // The longest latency bounds nothing, because another run has a longer one.
                    Arm::Above if (1.0 - high) * distribution.count() as f64 >= 1.0 => {
                        distribution.quantile_ns(high)
                    }
                    Arm::Above => return f64::INFINITY,
                };
                ((bound.max(1) as f64).ln() - self.value.ln()).abs()
            }
            Within::Unknown => f64::INFINITY,
        }
    }

    /// Its runs, as repetitions that show its variation.
    pub(super) fn repetitions(&self) -> Repetitions<'_> {
        Repetitions {
            logs: &self.logs,
            variance_within: self.variance_within(),
        }
    }

    /// The variance of one run's figure due to variation within it; 0 where that is unknown.
    pub(super) fn variance_within(&self) -> f64 {
        let below = self.within_arm(Arm::Below, 1.0);
        let above = self.within_arm(Arm::Above, 1.0);
        let error = if above.is_finite() {
            0.5 * (below + above)
        } else {
            below
        };
        if error.is_finite() {
            error * error * self.logs.len() as f64
        } else {
            0.0
        }
    }

    /// The degrees of freedom of its error.
    pub(super) fn freedom(&self) -> f64 {
        match (&self.within, self.spread) {
            (_, Some(spread)) => spread.freedom,
            (Within::Error { freedom, .. } | Within::Ranks { freedom, .. }, None) => *freedom,
            (Within::Unknown, None) => 1.0,
        }
    }

    pub(super) fn is_known(&self) -> bool {
        self.spread.is_some() || !matches!(self.within, Within::Unknown)
    }
}

/// Wilson's interval (1927) for a share of which `quantile` was observed among `n`.
fn rank_bounds(quantile: f64, n: f64, multiple: f64) -> (f64, f64) {
    let square = multiple * multiple;
    let scale = 1.0 + square / n;
    let centre = (quantile + square / (2.0 * n)) / scale;
    let half = multiple / scale * (quantile * (1.0 - quantile) / n + square / (4.0 * n * n)).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

/// The ratio of a figure on two sides.
#[derive(Debug, Clone)]
pub(super) struct Joined {
    a: SideFigure,
    b: SideFigure,
    /// The logarithm of B over A.
    log: f64,
    freedom: f64,
    /// Standard error of that logarithm by the blocks of a live comparison; `None` of other runs.
    block_error: Option<f64>,
}

impl Joined {
    /// Joins the figures of two sides; `None` where one of them is unknown or zero. `earlier` are
    /// groups of earlier runs, which show the variation from run to run.
    pub(super) fn from_sides(
        a: &SideFigure,
        b: &SideFigure,
        earlier: &[SideFigure],
    ) -> Option<Self> {
        let (mut a, mut b) = (a.clone(), b.clone());
        let groups: Vec<Repetitions<'_>> = earlier.iter().map(SideFigure::repetitions).collect();
        let pooled = pooled(a.repetitions(), b.repetitions(), &groups);
        if let Some(spread) = pooled {
            (a.spread, b.spread) = (Some(spread), Some(spread));
        }
        if !(a.is_known() && b.is_known() && a.value > 0.0 && b.value > 0.0) {
            return None;
        }
        let freedom = pooled.map_or_else(|| satterthwaite(&a, &b), |spread| spread.freedom);
        // A difference of logarithms, not the logarithm of a ratio, is exactly reversed when the
        // sides are swapped. Figures from histograms may be equal to the last bit, and a rounding
        // error would then decide the p-value.
        let log = b.value.ln() - a.value.ln();
        Some(Self {
            a,
            b,
            log,
            freedom,
            block_error: None,
        })
    }

    /// Joins the figures of a live comparison, whose blocks show the uncertainty of the ratio.
    pub(super) fn from_blocks(
        a: &SideFigure,
        b: &SideFigure,
        difference: PairedDifference,
    ) -> Option<Self> {
        if !(a.value > 0.0 && b.value > 0.0) {
            return None;
        }
        Some(Self {
            log: b.value.ln() - a.value.ln(),
            freedom: difference.freedom,
            block_error: Some(difference.error),
            a: a.clone(),
            b: b.clone(),
        })
    }

    /// The distance from the ratio to an end of the interval at `multiple` standard errors.
    fn reach(&self, arm: Arm, multiple: f64) -> f64 {
        if let Some(error) = self.block_error {
            return multiple * error;
        }
        // The ratio is low where B is low and A is high.
        let opposite = match arm {
            Arm::Below => Arm::Above,
            Arm::Above => Arm::Below,
        };
        self.a
            .arm(opposite, multiple)
            .hypot(self.b.arm(arm, multiple))
    }

    /// The lengths of the lower and the upper arm of the 95 % interval.
    pub(super) fn arms_95(&self) -> (f64, f64) {
        let multiple = student::quantile(1.0 - ALPHA / 2.0, self.freedom);
        (
            self.reach(Arm::Below, multiple),
            self.reach(Arm::Above, multiple),
        )
    }

    /// The distance between the ratio and 1 in standard errors: the multiple at which the interval
    /// begins to contain 1.
    pub(super) fn statistic(&self) -> f64 {
        let arm = if self.log > 0.0 {
            Arm::Below
        } else {
            Arm::Above
        };
        let (mut low, mut high) = (0.0, MULTIPLES_MAX);
        if self.log == 0.0 || self.reach(arm, high) < self.log.abs() {
            return if self.log == 0.0 { 0.0 } else { high };
        }
        // Sixty halvings of a million leave less than the precision of a double.
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.reach(arm, middle) < self.log.abs() {
                low = middle
            } else {
                high = middle
            }
        }
        low
    }

    /// The probability of a ratio this far from 1 in either direction, if the truth is 1.
    pub(super) fn p_value(&self) -> f64 {
        student::two_sided(self.statistic(), self.freedom)
    }

    /// The ratio with its 95 % interval.
    pub(super) fn ratio(&self) -> Ratio {
        let (below, above) = self.arms_95();
        Ratio {
            value: self.log.exp(),
            low_95: (self.log - below).exp(),
            high_95: finite((self.log + above).exp()),
        }
    }

    /// The source of the interval.
    pub(super) fn basis(&self) -> Basis {
        match (self.block_error, self.a.spread) {
            (Some(_), _) => Basis::Blocks,
            (None, Some(_)) => Basis::BetweenRuns,
            (None, None) => Basis::WithinRuns,
        }
    }

    /// The variation of the figure from run to run; `None` where it is unknown.
    pub(super) fn variation(&self) -> Option<RunVariation> {
        if self.block_error.is_some() {
            return None;
        }
        // If the sides vary differently, the larger variation is reported.
        let (a, b) = (self.a.spread?, self.b.spread?);
        let spread = if b.deviation > a.deviation { b } else { a };
        Some(RunVariation {
            deviation: spread.deviation,
            component: spread.component,
            freedom: self.freedom,
            earlier_runs: spread.earlier_runs,
        })
    }
}

/// The degrees of freedom of the ratio after Satterthwaite, at least those of the weaker side.
fn satterthwaite(a: &SideFigure, b: &SideFigure) -> f64 {
    let (freedom_a, freedom_b) = (a.freedom(), b.freedom());
    let variance_a = a.arm(Arm::Below, 1.0).powi(2);
    let variance_b = b.arm(Arm::Below, 1.0).powi(2);
    let variance = variance_a + variance_b;
    let least = freedom_a.min(freedom_b);
    if variance > 0.0 {
        let squares = variance_a * variance_a / freedom_a + variance_b * variance_b / freedom_b;
        (variance.powi(2) / squares).max(least)
    } else {
        least
    }
}

/// Holm's adjusted p-values: the probability of any false one stays below [`ALPHA`], whatever the
/// dependence among them (rates and latencies depend on each other).
pub(crate) fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|i, j| p_values[*i].total_cmp(&p_values[*j]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut most: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        let p = p_values[index] * (p_values.len() - rank) as f64;
        most = most.max(p).min(1.0);
        adjusted[index] = most;
    }
    adjusted
}

fn finite(value: f64) -> Option<f64> {
    if value.is_finite() { Some(value) } else { None }
}

/// The verdict on a ratio, and how many times as much measuring would decide it; `None` where it is
/// decided, or where no amount is known. Better or worse: beyond the margin, and surely not 1.
/// Same: the whole interval is within the margin, or so narrow that its middle decides. If each
/// side has one run and the variation between runs is unknown, a difference holds for these two
/// runs only.
pub(super) fn judge(
    joined: &Joined,
    p_adjusted: f64,
    margin: f64,
    better: Direction,
    family: usize,
) -> (Verdict, Option<f64>) {
    let (margin_log, distance) = ((1.0 + margin).ln(), joined.log.abs());
    let (below, above) = joined.arms_95();
    let longer = below.max(above);
    if distance <= margin_log {
        let (low, high) = (joined.log - below, joined.log + above);
        if low.abs().max(high.abs()) <= margin_log || longer <= NARROW * margin_log {
            return (Verdict::Same, None);
        }
        let room = (margin_log - distance).max(NARROW * margin_log);
        let multiple = student::quantile(1.0 - ALPHA / 2.0, joined.freedom);
        let times = (longer / room * (1.0 + SPARE / multiple)).powi(2);
        return (Verdict::Undecided, finite(times));
    }
    if p_adjusted < ALPHA {
        let is_better = (joined.log > 0.0) == (better == Direction::Higher);
        let is_proven = matches!(joined.basis(), Basis::BetweenRuns | Basis::Blocks);
        let verdict = if is_proven && is_better {
            Verdict::Better
        } else if is_proven {
            Verdict::Worse
        } else if is_better {
            Verdict::FasterOnce
        } else {
            Verdict::SlowerOnce
        };
        return (verdict, None);
    }
    let alpha = ALPHA / (2.0 * family.max(1) as f64);
    let wanted = student::quantile(1.0 - alpha, joined.freedom.max(3.0));
    let times = ((wanted + SPARE) / joined.statistic()).powi(2);
    (Verdict::Undecided, finite(times))
}

/// Earlier runs alone must give at least this many degrees of freedom. With one, an interval is
/// 12.7 standard errors wide, which is worse than no statement.
const EARLIER_FREEDOM_MIN: usize = 2;
/// Each side keeps its own variance if chance makes two variances so different with less than this
/// probability.
const UNEQUAL: f64 = 0.05;

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

/// The variation on one side alone; `None` of a single run.
pub(super) fn spread_of_side(runs: Repetitions<'_>) -> Option<RunSpread> {
    spread_of_groups(&[runs])
}

/// The variation on both sides and in groups of earlier runs together. `None` where too few runs
/// repeat, and where the sides vary differently.
pub(super) fn pooled(
    a: Repetitions<'_>,
    b: Repetitions<'_>,
    earlier: &[Repetitions<'_>],
) -> Option<RunSpread> {
    let side_freedom = a.freedom() + b.freedom();
    let earlier_freedom: usize = earlier.iter().map(|group| group.freedom()).sum();
    if (side_freedom == 0 && earlier_freedom < EARLIER_FREEDOM_MIN) || differ(a, b) {
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

fn spread_of_groups(groups: &[Repetitions<'_>]) -> Option<RunSpread> {
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
    let (freedom_a, freedom_b) = (a.freedom() as f64, b.freedom() as f64);
    let (variance_a, variance_b) = (a.squares() / freedom_a, b.squares() / freedom_b);
    if variance_a == 0.0 || variance_b == 0.0 {
        return variance_a != variance_b;
    }
    let distribution =
        FisherSnedecor::new(freedom_a, freedom_b).expect("degrees of freedom are positive");
    let below = distribution.cdf(variance_a / variance_b);
    2.0 * below.min(1.0 - below) < UNEQUAL
}

/// Exact values, from the definitions with scipy 1.16 (`scipy.stats.t`).
#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::histogram::LatencyHistogram;

    fn close(value: f64, truth: f64) {
        assert!(
            (value - truth).abs() <= 1e-7 * truth.abs(),
            "{value:?} is not {truth:?}"
        );
    }

    fn single(value: f64, error: f64, freedom: f64) -> SideFigure {
        SideFigure::from_runs(value, vec![value.ln()], Within::Error { error, freedom })
    }

    fn several(values: [f64; 3], error: f64) -> SideFigure {
        let logs = values.map(f64::ln).to_vec();
        let value = (logs.iter().sum::<f64>() / 3.0).exp();
        let freedom = 30.0;
        SideFigure::from_runs(value, logs, Within::Error { error, freedom })
    }

    /// 100 known to 2 % with 19 degrees of freedom, and 110 known to 3 % with 9.
    fn pair() -> Joined {
        Joined::from_sides(&single(100.0, 0.02, 19.0), &single(110.0, 0.03, 9.0), &[]).unwrap()
    }

    #[test]
    fn single_runs_are_joined_by_welch_and_satterthwaite() {
        let joined = pair();
        close(joined.freedom, 17.171122994652407);
        close(joined.statistic(), 2.643428771986046);
        close(joined.p_value(), 0.016971978861011632);
        let (below, above) = joined.arms_95();
        close(below, 0.07601277434578096);
        close(above, below);
        let ratio = joined.ratio();
        close(ratio.value, 1.1);
        close(ratio.low_95, (1.1_f64.ln() - below).exp());
        close(ratio.high_95.unwrap(), (1.1_f64.ln() + below).exp());
        assert_eq!(
            (joined.basis(), joined.variation()),
            (Basis::WithinRuns, None)
        );
    }

    /// Pooled variance 0.000492652 with 4 degrees of freedom.
    #[test]
    fn several_runs_are_joined_by_the_pooled_variance() {
        let (a, b) = ([98.0, 100.0, 103.0], [108.0, 112.0, 111.0]);
        for error in [0.001, 0.01] {
            let joined = Joined::from_sides(&several(a, error), &several(b, error), &[]).unwrap();
            close(joined.log, 0.09509788228111482);
            close(joined.p_value(), 0.006308253636635366);
            close(joined.arms_95().0, 0.05031687653727134);
            assert_eq!((joined.freedom, joined.basis()), (4.0, Basis::BetweenRuns));
        }
        let variation = |error| {
            let joined = Joined::from_sides(&several(a, error), &several(b, error), &[]);
            joined.unwrap().variation().unwrap()
        };
        close(variation(0.001).deviation, 0.022195769823828974);
        close(variation(0.001).component, 0.02212808618187296);
        close(variation(0.01).component, 0.0001926521980723969_f64.sqrt());
        // A side whose runs vary within them by more than the pooled variance keeps that.
        let mixed = Joined::from_sides(&several(a, 0.001), &several(b, 0.02), &[]).unwrap();
        close(mixed.p_value(), 0.01608225625819867);
        close(mixed.arms_95().1, 0.0659496247229976);
    }

    /// A single run alongside several varies as they do, and so does a pair alongside earlier runs.
    #[test]
    fn single_run_borrows_the_variance_of_others() {
        let runs = several([98.0, 100.0, 103.0], 0.001);
        let deviation = runs.spread.unwrap().deviation;
        let of_b = Joined::from_sides(&runs, &single(110.0, 0.001, 9.0), &[]).unwrap();
        let multiple = student::multiple_95(2.0);
        close(
            of_b.arms_95().0,
            multiple * deviation * (4.0_f64 / 3.0).sqrt(),
        );
        let (a, b) = (single(100.0, 0.001, 9.0), single(110.0, 0.001, 9.0));
        let of_pair = Joined::from_sides(&a, &b, std::slice::from_ref(&runs)).unwrap();
        close(of_pair.arms_95().0, multiple * deviation * 2.0_f64.sqrt());
        assert_eq!(of_pair.variation().unwrap().earlier_runs, 3);
    }

    /// Variances of 1 and 10,000 are not pooled: Welch with Satterthwaite's degrees of freedom, at
    /// least those of the lesser side. The variation is that of the side that varies more.
    #[test]
    fn sides_that_vary_differently_keep_their_own_variance() {
        let a = several([99.9, 100.0, 100.1], 1e-5);
        let b = several([90.0, 100.0, 110.0], 1e-5);
        let joined = Joined::from_sides(&a, &b, &[]).unwrap();
        let (sa, sb) = (a.spread.unwrap().deviation, b.spread.unwrap().deviation);
        close(
            joined.reach(Arm::Above, 1.0),
            (sa / 3.0_f64.sqrt()).hypot(sb / 3.0_f64.sqrt()),
        );
        assert!(
            joined.freedom > 2.0 && joined.freedom < 2.01,
            "{}",
            joined.freedom
        );
        close(joined.variation().unwrap().deviation, sb);
        let back = Joined::from_sides(&b, &a, &[]).unwrap();
        close(back.variation().unwrap().deviation, sb);
    }

    #[test]
    fn figures_without_an_error_are_joined_by_their_runs_alone() {
        let unknown = |logs: Vec<f64>| SideFigure::from_runs(100.0, logs, Within::Unknown);
        let one = unknown(vec![1.0]);
        assert!(Joined::from_sides(&one, &pair().a, &[]).is_none());
        assert!(Joined::from_sides(&pair().a, &one, &[]).is_none());
        assert_eq!((one.freedom(), one.is_known()), (1.0, false));
        let runs = unknown(vec![1.0, 2.0, 3.0]);
        close(runs.arm(Arm::Below, 3.0), 3.0_f64.sqrt());
        assert!(Joined::from_sides(&runs, &runs, &[]).is_some());
        let zero = single(0.0, 0.1, 9.0);
        assert!(Joined::from_sides(&zero, &pair().a, &[]).is_none());
        assert!(Joined::from_sides(&pair().a, &zero, &[]).is_none());
    }

    /// 0.9455 and 0.99823 are the bounds of 0.99 among 100 at 1.96: 1000 and 4000 ns of these
    /// latencies, whose 99th percentile is 2000 ns. Where less than one latency lies beyond the
    /// upper bound, nothing bounds the percentile.
    #[test]
    fn arms_of_a_percentile_are_those_of_its_rank() {
        let figure = |scale: u64| {
            let mut latencies = LatencyHistogram::new();
            for (ns, times) in [(1000, 96), (2000, 3), (4000, 1)] {
                latencies.record_many(ns, times * scale);
            }
            let within = Within::Ranks {
                distribution: LatencyDistribution::merged([&latencies]).unwrap(),
                quantile: 0.99,
                effective: 100.0,
                freedom: 9.0,
            };
            SideFigure::from_runs(2000.0, vec![2000.0_f64.ln()], within)
        };
        let near = |value: f64| (value - 2.0_f64.ln()).abs() < 1e-3;
        let many = figure(10);
        assert!(near(many.arm(Arm::Below, 1.96)) && near(many.arm(Arm::Above, 1.96)));
        let few = figure(1);
        assert!(near(few.arm(Arm::Below, 1.96)));
        assert_eq!(few.arm(Arm::Above, 1.96), f64::INFINITY);
    }

    /// The 99th percentile is 2000 ns: 1900 ns begin far below it, 8000 ns right above it. The arm
    /// that reaches towards the other side decides.
    #[test]
    fn statistic_looks_towards_the_other_side() {
        let mut latencies = LatencyHistogram::new();
        for (ns, times) in [(1900, 960), (2000, 30), (8000, 10)] {
            latencies.record_many(ns, times);
        }
        let within = Within::Ranks {
            distribution: LatencyDistribution::merged([&latencies]).unwrap(),
            quantile: 0.99,
            effective: 100.0,
            freedom: 9.0,
        };
        let percentile = SideFigure::from_runs(2000.0, vec![2000.0_f64.ln()], within);
        let statistic = |value: f64| {
            let other = single(value, 0.0, 9.0);
            Joined::from_sides(&other, &percentile, &[])
                .unwrap()
                .statistic()
        };
        assert!(statistic(1980.0) > 1.0, "{}", statistic(1980.0));
        assert!(statistic(2020.0) < 0.1, "{}", statistic(2020.0));
    }

    /// scipy.stats.t 1.17 with 3 degrees of freedom and a standard error of 0.01.
    #[test]
    fn ratio_of_blocks_is_student_of_their_differences() {
        let difference = PairedDifference {
            mean: 0.0,
            error: 0.01,
            freedom: 3.0,
        };
        let of = |a: f64, b: f64| {
            let sides = [a, b].map(|value| single(value, 0.5, 19.0));
            Joined::from_blocks(&sides[0], &sides[1], difference)
        };
        for (joined, sign) in [(of(100.0, 103.0), 1.0), (of(103.0, 100.0), -1.0)] {
            let joined = joined.unwrap();
            close(joined.log, sign * 0.029_558_802_241_544_43);
            close(joined.statistic(), 2.955_880_224_154_442_6);
            close(joined.p_value(), 0.059_741_422_459_821_614);
            close(joined.arms_95().0, 0.031_824_463_052_837_08);
            close(joined.arms_95().1, 0.031_824_463_052_837_08);
            assert_eq!((joined.basis(), joined.variation()), (Basis::Blocks, None));
        }
        assert!(of(0.0, 1.0).is_none() && of(1.0, 0.0).is_none());
    }

    #[test]
    fn wilson_bounds_are_those_of_the_definition() {
        let (low, high) = rank_bounds(0.5, 100.0, 1.96);
        close(low, 0.40382982859014716);
        close(high, 0.5961701714098528);
        let (low, high) = rank_bounds(0.99, 200.0, 2.0);
        close(low, 0.9634679642140862);
        close(high, 0.9973163495114039);
    }

    #[test]
    fn equal_figures_have_no_distance() {
        let side = single(100.0, 0.02, 19.0);
        let joined = Joined::from_sides(&side, &side, &[]).unwrap();
        assert_eq!((joined.statistic(), joined.p_value()), (0.0, 1.0));
        let sure =
            Joined::from_sides(&single(100.0, 0.0, 9.0), &single(101.0, 0.0, 9.0), &[]).unwrap();
        assert_eq!(sure.statistic(), MULTIPLES_MAX);
    }

    #[test]
    fn holm_adjusts_in_the_order_of_the_values() {
        let adjusted = holm(&[0.03, 0.01, 0.5, 0.02]);
        for (found, truth) in adjusted.into_iter().zip([0.06, 0.04, 0.5, 0.06]) {
            close(found, truth);
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }

    #[test]
    fn verdicts_follow_margin_certainty_and_what_is_known_of_runs() {
        let verdict = |joined: &Joined, p: f64, margin: f64, better: Direction| {
            judge(joined, p, margin, better, 2).0
        };
        let sides = [[98.0, 100.0, 103.0], [108.0, 112.0, 111.0]].map(|runs| several(runs, 0.001));
        let (once, known) = (
            pair(),
            Joined::from_sides(&sides[0], &sides[1], &[]).unwrap(),
        );
        use Direction::{Higher, Lower};
        assert_eq!(verdict(&once, 0.0499, 0.02, Higher), Verdict::FasterOnce);
        assert_eq!(verdict(&once, 0.0499, 0.02, Lower), Verdict::SlowerOnce);
        assert_eq!(verdict(&known, 0.0499, 0.02, Higher), Verdict::Better);
        assert_eq!(verdict(&known, 0.0499, 0.02, Lower), Verdict::Worse);
        assert_eq!(verdict(&known, 0.05, 0.02, Higher), Verdict::Undecided);
        // 0.0953 + 0.0760 = 0.1713 = ln 1.18688.
        assert_eq!(verdict(&once, 0.01, 0.187, Higher), Verdict::Same);
        assert_eq!(verdict(&once, 0.01, 0.1868, Higher), Verdict::Undecided);
        // Narrower than a tenth of the margin, the middle decides.
        let narrow = |error: f64| {
            let sides = [100.0, 101.99].map(|value| single(value, error, 1e5));
            Joined::from_sides(&sides[0], &sides[1], &[]).unwrap()
        };
        assert_eq!(verdict(&narrow(0.0007), 0.01, 0.02, Higher), Verdict::Same);
        assert_eq!(
            verdict(&narrow(0.0008), 0.01, 0.02, Higher),
            Verdict::Undecided
        );
    }

    #[test]
    fn advice_how_much_more_to_measure_is_that_of_the_definition() {
        let times = |p: f64, margin: f64| {
            let judged = judge(&pair(), p, margin, Direction::Higher, 2);
            judged.1.unwrap()
        };
        close(times(0.01, 0.15), 5.718520676386231);
        close(times(0.01, 0.1001), 124.1523778605403);
        close(times(0.05, 0.02), 1.5543917098736804);
        let of_five = judge(&pair(), 0.05, 0.02, Direction::Higher, 5);
        close(of_five.1.unwrap(), 1.9960324411224541);
    }
}

#[cfg(test)]
mod spread_tests {
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
        assert_eq!(spread_of_side(one), None);
        assert_eq!(spread_of_side(runs(&[], 0.0)), None);
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
        for (a, b, are_pooled) in [
            (a, [10.0, 20.0, 32.0], false),
            ([10.0, 20.0, 32.0], a, false),
            (a, [10.0, 15.0, 21.0], true),
            (a, [5.0; 3], false),
            ([5.0; 3], [6.0; 3], true),
        ] {
            let spread = pooled(runs(&a, 0.0), runs(&b, 0.0), &[]);
            assert_eq!(spread.is_some(), are_pooled, "{a:?} {b:?}");
        }
    }
}
