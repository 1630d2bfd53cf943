//! The verdict on a ratio, and the advice how much more to measure.

use super::ratio::{ALPHA, Arms, RatioEstimate};
use crate::estimate::student;
use diskproof_model::comparison::{Basis, Direction, Needed, Verdict};

/// Intervals narrower than this share of the margin decide by their middle: a ratio just on the
/// margin would otherwise stay undecided however long one measures.
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
/// The adjusted p-values of Holm (1979), in the order of `p_values`: the probability of any false
/// one stays below [`ALPHA`], whatever the dependence among them (rates and latencies depend on
/// each other).
pub(crate) fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|i, j| p_values[*i].total_cmp(&p_values[*j]));
    let mut adjusted = vec![1.0; p_values.len()];
    // An adjusted value is never below that of a smaller p-value.
    let mut largest: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        let p = p_values[index] * (p_values.len() - rank) as f64;
        largest = largest.max(p).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
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
    /// A verdict without advice.
    pub(super) fn of(verdict: Verdict) -> Self {
        Self {
            verdict,
            times_needed: None,
        }
    }

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
/// runs only. `family_size` is the number of comparisons for which the p-value was adjusted.
pub(super) fn judge(
    ratio: &RatioEstimate,
    p_adjusted: f64,
    margin: f64,
    better: Direction,
    family_size: usize,
) -> Judgement {
    let log_margin = (1.0 + margin).ln();
    if ratio.log.abs() <= log_margin {
        return judge_within_margin(ratio, log_margin);
    }
    if p_adjusted < ALPHA {
        let is_better = (ratio.log > 0.0) == (better == Direction::Higher);
        let is_proven = matches!(ratio.basis(), Basis::BetweenRuns | Basis::Blocks);
        return Judgement::of(if is_proven && is_better {
            Verdict::Better
        } else if is_proven {
            Verdict::Worse
        } else if is_better {
            Verdict::FasterOnce
        } else {
            Verdict::SlowerOnce
        });
    }
    let alpha = ALPHA / (2.0 * family_size.max(1) as f64);
    let wanted = student::quantile(1.0 - alpha, ratio.freedom.max(ADVICE_FREEDOM_MIN));
    Judgement::undecided(((wanted + RESERVE_ERRORS) / ratio.statistic()).powi(2))
}

fn judge_within_margin(ratio: &RatioEstimate, log_margin: f64) -> Judgement {
    let Arms { below, above } = ratio.arms_95();
    let longer = below.max(above);
    let low = ratio.log - below;
    let high = ratio.log + above;
    let is_within = low.abs().max(high.abs()) <= log_margin;
    if is_within || longer <= NARROW_SHARE * log_margin {
        return Judgement::of(Verdict::Same);
    }
    let room = (log_margin - ratio.log.abs()).max(NARROW_SHARE * log_margin);
    let multiple = student::quantile(1.0 - ALPHA / 2.0, ratio.freedom);
    Judgement::undecided((longer / room * (1.0 + RESERVE_ERRORS / multiple)).powi(2))
}

/// Exact values, from the definitions with scipy 1.16 (`scipy.stats.t`).
#[cfg(test)]
mod tests {
    use super::super::test_figures::{close, pair, several, single};
    use super::*;

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
        let verdict = |ratio: &RatioEstimate, p: f64, margin: f64, better: Direction| {
            judge(ratio, p, margin, better, 2).verdict
        };
        let sides = [[98.0, 100.0, 103.0], [108.0, 112.0, 111.0]].map(|runs| several(runs, 0.001));
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
            let sides = [100.0, 101.99].map(|value| single(value, error, 1e5));
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
            let judged = judge(&pair(), p, margin, Direction::Higher, 2);
            judged.times_needed.unwrap()
        };
        close(times(0.01, 0.15), 5.718520676386231);
        close(times(0.01, 0.1001), 124.1523778605403);
        close(times(0.05, 0.02), 1.5543917098736804);
        let of_five = judge(&pair(), 0.05, 0.02, Direction::Higher, 5);
        close(of_five.times_needed.unwrap(), 1.9960324411224541);
    }
}
