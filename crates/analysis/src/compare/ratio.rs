//! Computes the ratio of two figures with its interval and its p-value. All of it works on
//! logarithms, so that B over A and A over B are exact inverses in everything.
//!
//! An interval has two *arms*: the distances from the figure to its lower and upper end. Those of
//! the two sides are combined by the method of variance estimates recovery (Zou & Donner 2008),
//! which keeps their asymmetry; for symmetric ones this is Student's or Welch's t. The degrees of
//! freedom are those of the variance between runs, or as Satterthwaite has them. P-values are made
//! from the same intervals.

use super::distribution::{LatencyDistribution, bucket_width_log};
use super::run_spread::{Repetitions, RunSpread, pooled_spread, spread_of_side};
use crate::estimate::{PairedDifference, mean, student};
use diskproof_model::comparison::{Basis, Ratio, RunVariation};

/// The probability that chance alone gives any of the metrics that are compared together a verdict
/// of better or worse.
pub(super) const ALPHA: f64 = 0.05;
/// A statistic beyond this many standard errors counts as certain: the search for it ends here,
/// where even one degree of freedom leaves a probability of less than a millionth.
const MULTIPLES_MAX: f64 = 1e6;
/// The degrees of freedom of an interval that a search states: that of a posterior distribution,
/// which estimates no variance.
const STATED_FREEDOM: f64 = 1e6;

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
    /// The arms of a 95 % interval that the run states, of which one may have no end.
    Stated(Arms),
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
        let extension = extension(arm, self.value.ln(), mean(&self.logs));
        extension + self.arm_by_spread(spread, arm, multiple)
    }

    /// The arm by the variation between the runs, and within them where that is known.
    fn arm_by_spread(&self, spread: RunSpread, arm: Arm, multiple: f64) -> f64 {
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
                let bounds = rank_bounds(*quantile, *effective, multiple);
                let bound_ns = match arm {
                    Arm::Below => distribution.quantile_ns(bounds.low),
                    // The longest latency bounds nothing, because another run has a longer one.
                    Arm::Above if (1.0 - bounds.high) * distribution.count() as f64 >= 1.0 => {
                        distribution.quantile_ns(bounds.high)
                    }
                    Arm::Above => return f64::INFINITY,
                };
                let distance = ((bound_ns.max(1) as f64).ln() - self.value.ln()).abs();
                // The percentiles of two sides may be a bucket apart though their latencies are
                // not. Half of the square of that error belongs to each side.
                let error_least = bucket_width_log(self.value) / std::f64::consts::SQRT_2;
                distance.max(multiple * error_least)
            }
            Within::Stated(arms) => {
                let arm_95 = match arm {
                    Arm::Below => arms.below,
                    Arm::Above => arms.above,
                };
                if arm_95.is_infinite() {
                    return f64::INFINITY;
                }
                arm_95 * multiple / student::multiple_95(STATED_FREEDOM)
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

    /// The standard error of the figure due to variation within its runs; `None` where that is
    /// unknown.
    pub(super) fn error_within(&self) -> Option<f64> {
        match self.within {
            Within::Unknown => None,
            Within::Error { .. } | Within::Ranks { .. } | Within::Stated(_) => {
                Some(self.variance_within().sqrt())
            }
        }
    }

    /// The variance of one run's figure due to variation within it. It is 0 where that is unknown,
    /// so that all variation between runs counts as theirs.
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
            (Within::Stated(_), None) => STATED_FREEDOM,
            // Nothing shows its error: `is_known` keeps such a figure from any ratio.
            (Within::Unknown, None) => 1.0,
        }
    }

    /// Returns `true` if its runs, or their variation, show its uncertainty.
    fn is_known(&self) -> bool {
        self.spread.is_some() || !matches!(self.within, Within::Unknown)
    }
}

/// The further length of an arm where the error of a figure is that of the mean of its parts, and
/// the figure is another one: the percentile of the latencies of all parts together may be that of
/// the slowest part. The interval then covers both. All are logarithms.
fn extension(arm: Arm, figure: f64, mean_of_parts: f64) -> f64 {
    match arm {
        Arm::Below => (figure - mean_of_parts).max(0.0),
        Arm::Above => (mean_of_parts - figure).max(0.0),
    }
}

/// The interval of a quantile, as quantiles.
#[derive(Debug, Clone, Copy)]
struct RankBounds {
    low: f64,
    high: f64,
}

/// Wilson's interval (1927) at `multiple` standard errors for a share of which `quantile` was
/// observed among `n`.
fn rank_bounds(quantile: f64, n: f64, multiple: f64) -> RankBounds {
    debug_assert!((0.0..=1.0).contains(&quantile) && n > 0.0, "{quantile} {n}");
    let square = multiple * multiple;
    let scale = 1.0 + square / n;
    let centre = (quantile + square / (2.0 * n)) / scale;
    let half = multiple / scale * (quantile * (1.0 - quantile) / n + square / (4.0 * n * n)).sqrt();
    RankBounds {
        low: (centre - half).max(0.0),
        high: (centre + half).min(1.0),
    }
}

/// The distances from a ratio to the ends of its interval, in logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Arms {
    pub below: f64,
    pub above: f64,
}

/// The ratio of a figure on two sides.
#[derive(Debug, Clone)]
pub(super) struct RatioEstimate {
    a: SideFigure,
    b: SideFigure,
    /// The logarithm of B over A.
    pub(super) log: f64,
    /// Degrees of freedom of its error.
    pub(super) freedom: f64,
    /// The difference within the blocks of a live comparison; `None` of other runs.
    blocks: Option<PairedDifference>,
}

impl RatioEstimate {
    /// The ratio of the figures of two sides; `None` where one of them is unknown or zero.
    /// `earlier` are groups of earlier runs, which show the variation from run to run.
    pub(super) fn from_sides(
        a: &SideFigure,
        b: &SideFigure,
        earlier: &[SideFigure],
    ) -> Option<Self> {
        let mut a = a.clone();
        let mut b = b.clone();
        let groups: Vec<Repetitions<'_>> = earlier.iter().map(SideFigure::repetitions).collect();
        let pooled = pooled_spread(a.repetitions(), b.repetitions(), &groups);
        if pooled.is_some() {
            a.spread = pooled;
            b.spread = pooled;
        }
        if !(a.is_known() && b.is_known() && a.value > 0.0 && b.value > 0.0) {
            return None;
        }
        let freedom = match pooled {
            Some(spread) => spread.freedom,
            None => satterthwaite(&a, &b),
        };
        // A difference of logarithms, not the logarithm of a ratio, is exactly reversed when the
        // sides are swapped. Figures from histograms may be equal to the last bit, and a rounding
        // error would then decide the p-value.
        let log = b.value.ln() - a.value.ln();
        Some(Self {
            a,
            b,
            log,
            freedom,
            blocks: None,
        })
    }

    /// The ratio of the figures of a live comparison, whose blocks show its uncertainty; `None`
    /// where one of them is zero.
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
            blocks: Some(difference),
            a: a.clone(),
            b: b.clone(),
        })
    }

    /// The distance from the ratio to an end of the interval at `multiple` standard errors. It
    /// grows with the multiple: [`Self::statistic`] searches it by halving.
    fn reach(&self, arm: Arm, multiple: f64) -> f64 {
        if let Some(blocks) = self.blocks {
            return multiple * blocks.error + extension(arm, self.log, blocks.mean);
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

    /// Returns `true` if its 95 % interval has an end at least on one side.
    pub(super) fn is_bounded(&self) -> bool {
        let Arms { below, above } = self.arms_95();
        below.is_finite() || above.is_finite()
    }

    /// The arms of the 95 % interval.
    pub(super) fn arms_95(&self) -> Arms {
        let multiple = student::quantile(1.0 - ALPHA / 2.0, self.freedom);
        Arms {
            below: self.reach(Arm::Below, multiple),
            above: self.reach(Arm::Above, multiple),
        }
    }

    /// The distance between the ratio and 1 in standard errors: the multiple at which the interval
    /// begins to contain 1.
    pub(super) fn statistic(&self) -> f64 {
        let arm = if self.log > 0.0 {
            Arm::Below
        } else {
            Arm::Above
        };
        if self.log == 0.0 {
            return 0.0;
        }
        if self.reach(arm, MULTIPLES_MAX) < self.log.abs() {
            return MULTIPLES_MAX;
        }
        let (mut low, mut high) = (0.0, MULTIPLES_MAX);
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
        let Arms { below, above } = self.arms_95();
        let high = (self.log + above).exp();
        Ratio {
            value: self.log.exp(),
            low_95: (self.log - below).exp(),
            high_95: if high.is_finite() { Some(high) } else { None },
        }
    }

    /// The source of the interval.
    pub(super) fn basis(&self) -> Basis {
        match (self.blocks, self.a.spread) {
            (Some(_), _) => Basis::Blocks,
            (None, Some(_)) => Basis::BetweenRuns,
            (None, None) => Basis::WithinRuns,
        }
    }

    /// The variation of the figure from run to run; `None` where it is unknown.
    pub(super) fn variation(&self) -> Option<RunVariation> {
        if self.blocks.is_some() {
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

/// The degrees of freedom of the ratio after Satterthwaite, at least those of the weaker side. The
/// lower arms stand for the variances: an upper one may have no end.
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

/// Exact values, from the definitions with scipy 1.16 (`scipy.stats.t`).
#[cfg(test)]
mod tests {
    use super::super::test_figures::{assert_close, figure_of_run, figure_of_three_runs, pair};
    use super::*;
    use diskproof_model::histogram::LatencyHistogram;

    #[test]
    fn single_runs_are_joined_by_welch_and_satterthwaite() {
        let joined = pair();
        assert_close(joined.freedom, 17.171122994652407);
        assert_close(joined.statistic(), 2.643428771986046);
        assert_close(joined.p_value(), 0.016971978861011632);
        let Arms { below, above } = joined.arms_95();
        assert_close(below, 0.07601277434578096);
        assert_close(above, below);
        let ratio = joined.ratio();
        assert_close(ratio.value, 1.1);
        assert_close(ratio.low_95, (1.1_f64.ln() - below).exp());
        assert_close(ratio.high_95.unwrap(), (1.1_f64.ln() + below).exp());
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
            let joined = RatioEstimate::from_sides(
                &figure_of_three_runs(a, error),
                &figure_of_three_runs(b, error),
                &[],
            )
            .unwrap();
            assert_close(joined.log, 0.09509788228111482);
            assert_close(joined.p_value(), 0.006308253636635366);
            assert_close(joined.arms_95().below, 0.05031687653727134);
            assert_eq!((joined.freedom, joined.basis()), (4.0, Basis::BetweenRuns));
        }
        let variation = |error| {
            let joined = RatioEstimate::from_sides(
                &figure_of_three_runs(a, error),
                &figure_of_three_runs(b, error),
                &[],
            );
            joined.unwrap().variation().unwrap()
        };
        assert_close(variation(0.001).deviation, 0.022195769823828974);
        assert_close(variation(0.001).component, 0.02212808618187296);
        assert_close(variation(0.01).component, 0.0001926521980723969_f64.sqrt());
        // A side whose runs vary within them by more than the pooled variance keeps that.
        let mixed = RatioEstimate::from_sides(
            &figure_of_three_runs(a, 0.001),
            &figure_of_three_runs(b, 0.02),
            &[],
        )
        .unwrap();
        assert_close(mixed.p_value(), 0.01608225625819867);
        assert_close(mixed.arms_95().above, 0.0659496247229976);
    }

    /// A single run alongside several varies as they do, and so does a pair alongside earlier runs.
    #[test]
    fn single_run_borrows_the_variance_of_others() {
        let runs = figure_of_three_runs([98.0, 100.0, 103.0], 0.001);
        let deviation = runs.spread.unwrap().deviation;
        let of_b =
            RatioEstimate::from_sides(&runs, &figure_of_run(110.0, 0.001, 9.0), &[]).unwrap();
        let multiple = student::multiple_95(2.0);
        assert_close(
            of_b.arms_95().below,
            multiple * deviation * (4.0_f64 / 3.0).sqrt(),
        );
        let (a, b) = (
            figure_of_run(100.0, 0.001, 9.0),
            figure_of_run(110.0, 0.001, 9.0),
        );
        let of_pair = RatioEstimate::from_sides(&a, &b, std::slice::from_ref(&runs)).unwrap();
        assert_close(
            of_pair.arms_95().below,
            multiple * deviation * 2.0_f64.sqrt(),
        );
        assert_eq!(of_pair.variation().unwrap().earlier_runs, 3);
    }

    /// Variances of 1 and 10,000 are not pooled: Welch with Satterthwaite's degrees of freedom, at
    /// least those of the lesser side. The variation is that of the side that varies more.
    #[test]
    fn sides_that_vary_differently_keep_their_own_variance() {
        let a = figure_of_three_runs([99.9, 100.0, 100.1], 1e-5);
        let b = figure_of_three_runs([90.0, 100.0, 110.0], 1e-5);
        let joined = RatioEstimate::from_sides(&a, &b, &[]).unwrap();
        let (sa, sb) = (a.spread.unwrap().deviation, b.spread.unwrap().deviation);
        assert_close(
            joined.reach(Arm::Above, 1.0),
            (sa / 3.0_f64.sqrt()).hypot(sb / 3.0_f64.sqrt()),
        );
        assert!(
            joined.freedom > 2.0 && joined.freedom < 2.01,
            "{}",
            joined.freedom
        );
        assert_close(joined.variation().unwrap().deviation, sb);
        let back = RatioEstimate::from_sides(&b, &a, &[]).unwrap();
        assert_close(back.variation().unwrap().deviation, sb);
    }

    #[test]
    fn figures_without_an_error_are_joined_by_their_runs_alone() {
        let unknown =
            |logs: Vec<f64>| SideFigure::from_runs(mean(&logs).exp(), logs, Within::Unknown);
        let one = unknown(vec![1.0]);
        assert!(RatioEstimate::from_sides(&one, &pair().a, &[]).is_none());
        assert!(RatioEstimate::from_sides(&pair().a, &one, &[]).is_none());
        assert_eq!((one.freedom(), one.is_known()), (1.0, false));
        let runs = unknown(vec![1.0, 2.0, 3.0]);
        assert_close(runs.arm(Arm::Below, 3.0), 3.0_f64.sqrt());
        assert!(RatioEstimate::from_sides(&runs, &runs, &[]).is_some());
        let zero = figure_of_run(0.0, 0.1, 9.0);
        assert!(RatioEstimate::from_sides(&zero, &pair().a, &[]).is_none());
        assert!(RatioEstimate::from_sides(&pair().a, &zero, &[]).is_none());
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
            let other = figure_of_run(value, 0.0, 9.0);
            RatioEstimate::from_sides(&other, &percentile, &[])
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
            let difference = PairedDifference {
                mean: if a > 0.0 && b > 0.0 {
                    b.ln() - a.ln()
                } else {
                    0.0
                },
                ..difference
            };
            let sides = [a, b].map(|value| figure_of_run(value, 0.5, 19.0));
            RatioEstimate::from_blocks(&sides[0], &sides[1], difference)
        };
        for (joined, sign) in [(of(100.0, 103.0), 1.0), (of(103.0, 100.0), -1.0)] {
            let joined = joined.unwrap();
            assert_close(joined.log, sign * 0.029_558_802_241_544_43);
            assert_close(joined.statistic(), 2.955_880_224_154_442_6);
            assert_close(joined.p_value(), 0.059_741_422_459_821_614);
            assert_close(joined.arms_95().below, 0.031_824_463_052_837_08);
            assert_close(joined.arms_95().above, 0.031_824_463_052_837_08);
            assert_eq!((joined.basis(), joined.variation()), (Basis::Blocks, None));
        }
        assert!(of(0.0, 1.0).is_none() && of(1.0, 0.0).is_none());
    }

    /// The latencies of three runs together have the percentile of the one bad run.
    #[test]
    fn one_bad_run_of_three_decides_no_percentile() {
        let side = |value: f64, logs: [f64; 3]| {
            SideFigure::from_runs(value, logs.to_vec(), Within::Unknown)
        };
        let bad = 2.0_f64;
        // The variances of the sides differ in the first pair, and are pooled in the second.
        for good in [[0.0; 3], [0.0, 1.0, 0.0]] {
            let a = side(1.0, good);
            let b = side(bad.exp(), [0.0, bad, 0.0]);
            for joined in [
                RatioEstimate::from_sides(&a, &b, &[]).unwrap(),
                RatioEstimate::from_sides(&b, &a, &[]).unwrap(),
            ] {
                assert_close(joined.log.abs(), bad);
                assert!(joined.p_value() > 0.2, "{good:?}: {}", joined.p_value());
            }
        }
    }

    /// The interval covers the figure and the mean of the blocks, on either side of the figure.
    #[test]
    fn interval_of_blocks_covers_figure_and_mean() {
        let sides = [
            figure_of_run(100.0, 0.0, 9.0),
            figure_of_run(110.0, 0.0, 9.0),
        ];
        let log = 110.0_f64.ln() - 100.0_f64.ln();
        for (mean, below, above) in [(log - 0.05, 0.05, 0.0), (log + 0.02, 0.0, 0.02)] {
            let difference = PairedDifference {
                mean,
                error: 0.01,
                freedom: 3.0,
            };
            let joined = RatioEstimate::from_blocks(&sides[0], &sides[1], difference).unwrap();
            let half = 0.031_824_463_052_837_08;
            assert_close(joined.log, log);
            assert_close(joined.arms_95().below, half + below);
            assert_close(joined.arms_95().above, half + above);
        }
    }

    #[test]
    fn wilson_bounds_are_those_of_the_definition() {
        let middle = rank_bounds(0.5, 100.0, 1.96);
        assert_close(middle.low, 0.40382982859014716);
        assert_close(middle.high, 0.5961701714098528);
        let tail = rank_bounds(0.99, 200.0, 2.0);
        assert_close(tail.low, 0.9634679642140862);
        assert_close(tail.high, 0.9973163495114039);
    }

    #[test]
    fn equal_figures_have_no_distance() {
        let side = figure_of_run(100.0, 0.02, 19.0);
        let joined = RatioEstimate::from_sides(&side, &side, &[]).unwrap();
        assert_eq!((joined.statistic(), joined.p_value()), (0.0, 1.0));
        let sure = RatioEstimate::from_sides(
            &figure_of_run(100.0, 0.0, 9.0),
            &figure_of_run(101.0, 0.0, 9.0),
            &[],
        )
        .unwrap();
        assert_eq!(sure.statistic(), MULTIPLES_MAX);
    }
}
