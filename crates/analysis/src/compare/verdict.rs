//! Decides the verdict on a ratio, and gives the advice how much more to measure.

use super::ratio::{ALPHA, Arms, RatioEstimate};
use crate::estimate::student;
use diskproof_model::comparison::{Basis, Direction, Needed, Verdict};

/// Intervals narrower than this share of the margin decide by their middle: a ratio just on the
/// margin would otherwise stay undecided however long one measures. Chosen, not measured: with the
/// default margin of 2 % it is 0.2 %.
const NARROW_SHARE: f64 = 0.1;
/// The advice how much longer to measure includes so many standard errors in reserve, so that four
/// of five such measurements decide (80 % quantile of the normal distribution). Without it, every
/// second one would miss.
const RESERVE_ERRORS: f64 = 0.84;
/// The advice assumes at least this many degrees of freedom: with more runs there will be more.
const ADVICE_FREEDOM_MIN: f64 = 3.0;
/// The advice where each side has one run, and the variation between runs is unknown.
pub(super) const RUNS_NEEDED: Needed = Needed {
    times: 3.0,
    measure_ns: None,
    runs: Some(3),
};

/// The p-value of a ratio after the correction for all comparisons of its family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AdjustedP {
    pub value: f64,
    /// The number of comparisons in the family.
    pub family_size: usize,
}

/// A verdict with advice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judgement {
    pub verdict: Verdict,
    /// An undecided ratio is probably decided by this many times as much measuring; `None` of a
    /// decided one, and where no amount is known.
    pub times_needed: Option<f64>,
}

impl Judgement {
    pub(super) fn without_advice(verdict: Verdict) -> Self {
        Self {
            verdict,
            times_needed: None,
        }
    }

    /// The advice is to measure this many times as much; an infinite amount is no advice.
    fn undecided(times_needed: f64) -> Self {
        Self {
            verdict: Verdict::Undecided,
            times_needed: Some(times_needed).filter(|times| times.is_finite()),
        }
    }
}

/// Judges a ratio. It is better or worse if it is beyond the margin, and surely not 1. It is the
/// same if the whole interval is within the margin, or so narrow that its middle decides. If each
/// side has one run and the variation between runs is unknown, a difference holds for these two
/// runs only.
pub(super) fn judge(
    ratio: &RatioEstimate,
    p_value: AdjustedP,
    margin: f64,
    better: Direction,
) -> Judgement {
    let log_margin = (1.0 + margin).ln();
    if ratio.log.abs() <= log_margin {
        judge_within_margin(ratio, log_margin)
    } else if p_value.value < ALPHA {
        Judgement::without_advice(verdict_of_difference(ratio, better))
    } else {
        Judgement::undecided(times_to_be_certain(ratio, p_value.family_size))
    }
}

/// The verdict on a ratio that is surely beyond the margin.
fn verdict_of_difference(ratio: &RatioEstimate, better: Direction) -> Verdict {
    let is_better = (ratio.log > 0.0) == (better == Direction::Higher);
    match ratio.basis() {
        Basis::BetweenRuns | Basis::Blocks if is_better => Verdict::Better,
        Basis::BetweenRuns | Basis::Blocks => Verdict::Worse,
        Basis::WithinRuns | Basis::Positions if is_better => Verdict::FasterOnce,
        Basis::WithinRuns | Basis::Positions => Verdict::SlowerOnce,
    }
}

/// How many times as much to measure until this ratio is probably certain.
///
/// `statistic` is its distance from 1 in standard errors. With `times` as much data the error falls
/// to 1/√times, so the distance grows to `statistic`·√times. It must reach the critical value of
/// the most severe step of the correction, and the reserve.
fn times_to_be_certain(ratio: &RatioEstimate, family_size: usize) -> f64 {
    let alpha_of_one = ALPHA / family_size.max(1) as f64;
    let freedom = ratio.freedom.max(ADVICE_FREEDOM_MIN);
    let critical = student::quantile(1.0 - alpha_of_one / 2.0, freedom);
    ((critical + RESERVE_ERRORS) / ratio.statistic()).powi(2)
}

fn judge_within_margin(ratio: &RatioEstimate, log_margin: f64) -> Judgement {
    let Arms { below, above } = ratio.arms_95();
    let longer_arm = below.max(above);
    let low = ratio.log - below;
    let high = ratio.log + above;
    let is_within = low.abs().max(high.abs()) <= log_margin;
    if is_within || longer_arm <= NARROW_SHARE * log_margin {
        return Judgement::without_advice(Verdict::Same);
    }
    Judgement::undecided(times_to_be_the_same(ratio, longer_arm, log_margin))
}

/// How many times as much to measure until the interval of this ratio probably fits the margin.
///
/// An arm is `critical` standard errors long, so that the error is `longer_arm`/`critical`. With
/// `times` as much data, the arm and the reserve, (`critical` + reserve)·error/√times, must fit the
/// room between the ratio and the margin.
fn times_to_be_the_same(ratio: &RatioEstimate, longer_arm: f64, log_margin: f64) -> f64 {
    let room = (log_margin - ratio.log.abs()).max(NARROW_SHARE * log_margin);
    let critical = student::quantile(1.0 - ALPHA / 2.0, ratio.freedom);
    (longer_arm / room * (1.0 + RESERVE_ERRORS / critical)).powi(2)
}

/// Exact values, from the definitions with scipy 1.16 (`scipy.stats.t`).
#[cfg(test)]
mod tests {
    use super::super::test_figures::{assert_close, figure_of_run, figure_of_three_runs, pair};
    use super::*;

    fn judged(ratio: &RatioEstimate, p: f64, margin: f64, better: Direction) -> Judgement {
        let p_value = AdjustedP {
            value: p,
            family_size: 2,
        };
        judge(ratio, p_value, margin, better)
    }

    #[test]
    fn verdicts_follow_margin_certainty_and_what_is_known_of_runs() {
        let verdict = |ratio: &RatioEstimate, p: f64, margin: f64, better: Direction| {
            judged(ratio, p, margin, better).verdict
        };
        let sides = [[98.0, 100.0, 103.0], [108.0, 112.0, 111.0]]
            .map(|runs| figure_of_three_runs(runs, 0.001));
        let (once, known) = (
            pair(),
            RatioEstimate::from_sides(&sides[0], &sides[1], &[]).unwrap(),
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
            let sides = [100.0, 101.99].map(|value| figure_of_run(value, error, 1e5));
            RatioEstimate::from_sides(&sides[0], &sides[1], &[]).unwrap()
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
            let advised = judged(&pair(), p, margin, Direction::Higher);
            advised.times_needed.unwrap()
        };
        assert_close(times(0.01, 0.15), 5.718520676386231);
        assert_close(times(0.01, 0.1001), 124.1523778605403);
        assert_close(times(0.05, 0.02), 1.5543917098736804);
        let p_of_five = AdjustedP {
            value: 0.05,
            family_size: 5,
        };
        let of_five = judge(&pair(), p_of_five, 0.02, Direction::Higher);
        assert_close(of_five.times_needed.unwrap(), 1.9960324411224541);
    }
}
