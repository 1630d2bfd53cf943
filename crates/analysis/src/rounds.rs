//! Decides whether the rate of a load fell over its rounds, and by which share. Rates are in the
//! order of the rounds, all in one unit.

use crate::estimate::student::{multiple_95, quantile};
use crate::estimate::{LastingFall, mean, variance};

/// A fall without a step is at least a third: a healthy disk wanders by less. Chosen, not measured.
const GRADUAL_SHARE_MIN: f64 = 1.0 / 3.0;
/// A load ends evenly if this many rounds at its end are even. This number and the next one are
/// those of the steady state (sustain/steady_state.rs).
const EVEN_ROUNDS: usize = 5;
/// Rounds are even if their highest and lowest rate differ by at most this share of their mean.
const EVEN_RANGE_MAX: f64 = 0.2;
/// The number of rounds at the start, and at the end, whose means show the fall. Fewer would have
/// no variance.
pub(crate) const DROP_ROUNDS: usize = 3;

/// The probability for each end of a 99.9 % interval.
const SURE_PROBABILITY: f64 = 0.9995;
/// A decline counts if it is sure this many times, each after three more rounds: a rate that
/// wanders comes back.
const SURE_LOOKS: usize = 3;

/// The fall of a rate as a share of the rate before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DropShare {
    /// Negative where the rate rose.
    pub(crate) share: f64,
    /// Half of its 95 % interval.
    half_width: f64,
}

impl DropShare {
    /// The lower end of its interval.
    pub(crate) fn low(&self) -> f64 {
        self.share - self.half_width
    }

    /// The upper end of its interval.
    pub(crate) fn high(&self) -> f64 {
        self.share + self.half_width
    }
}

/// The share by which a rate fell: that of `fall` where one was found, else from the first rounds
/// to the last. `None` of too few rounds.
pub(crate) fn drop_share(rates: &[f64], fall: Option<&LastingFall>) -> Option<DropShare> {
    if let Some(fall) = fall {
        return Some(share_of_fall(rates, fall));
    }
    decline(rates)
}

/// Returns `true` if a rate surely fell by more than a share from the first rounds to the last, and
/// had already three and six rounds before. A load is judged after each of its rounds: at 95 %, one
/// look of many would show a fall that chance makes.
pub(crate) fn has_surely_declined(rates: &[f64], share: f64) -> bool {
    for look in 0..SURE_LOOKS {
        let Some(seen) = rates.len().checked_sub(look * DROP_ROUNDS) else {
            return false;
        };
        match sure_decline(&rates[..seen]) {
            Some(least) if least > share => {}
            _ => return false,
        }
    }
    true
}

/// The least share by which a rate surely fell from the first rounds to the last; `None` of too few
/// rounds. Neighbours among all rounds show the scatter, which a decline hardly adds to: six rounds
/// alone would leave it too uncertain.
fn sure_decline(rates: &[f64]) -> Option<f64> {
    let drop = decline(rates)?;
    let before = mean(&rates[..DROP_ROUNDS]);
    let mut squares = 0.0;
    for pair in rates.windows(2) {
        squares += (pair[1] - pair[0]).powi(2);
    }
    let pairs = (rates.len() - 1) as f64;
    // Successive differences overlap: they have two thirds of the degrees of freedom.
    let error = (squares / (2.0 * pairs) * 2.0 / DROP_ROUNDS as f64).sqrt();
    Some(drop.share - quantile(SURE_PROBABILITY, pairs * 2.0 / 3.0) * error / before)
}

/// The share by which a rate fell from the first rounds to the last. `None` of too few rounds.
fn decline(rates: &[f64]) -> Option<DropShare> {
    if rates.len() < 2 * DROP_ROUNDS {
        return None;
    }
    let first = &rates[..DROP_ROUNDS];
    let last = &rates[rates.len() - DROP_ROUNDS..];
    let before = mean(first);
    if before <= 0.0 {
        return None;
    }
    let rounds = DROP_ROUNDS as f64;
    let error = ((variance(first) + variance(last)) / rounds).sqrt();
    Some(DropShare {
        share: 1.0 - mean(last) / before,
        half_width: multiple_95(2.0 * (rounds - 1.0)) * error / before,
    })
}

/// The share of a fall that was found. Its interval follows from how much the rounds before and
/// after it scatter, as shares of their levels. Rounds of one side that are too few to show that
/// scatter as much as the others.
fn share_of_fall(rates: &[f64], fall: &LastingFall) -> DropShare {
    let ratio = fall.after / fall.before;
    let middle = (fall.before * fall.after).sqrt();
    let first_after = rates.iter().take_while(|rate| **rate >= middle).count();
    // The fall lies within a round: in the first one after it, or in the last one before it.
    let before = &rates[..first_after.saturating_sub(1)];
    let after = rates.get(first_after + 1..).unwrap_or_default();
    let mut squares = 0.0;
    let mut freedom = 0.0;
    for side in [before, after] {
        if side.len() >= 2 {
            let side_freedom = (side.len() - 1) as f64;
            squares += variance(side) / mean(side).powi(2) * side_freedom;
            freedom += side_freedom;
        }
    }
    let mut half_width = 0.0;
    if freedom > 0.0 && squares.is_finite() {
        let rounds = 1.0 / before.len().max(1) as f64 + 1.0 / after.len().max(1) as f64;
        half_width = multiple_95(freedom) * ratio * (squares / freedom * rounds).sqrt();
    }
    DropShare {
        share: 1.0 - ratio,
        half_width,
    }
}

/// A fall from some rounds to those that end a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FallOfRounds {
    /// The index of the first round after the fall.
    pub(crate) first_after: usize,
    /// Mean rate of the rounds before.
    pub(crate) before: f64,
    /// Mean rate of the rounds after it.
    pub(crate) after: f64,
}

/// A gradual fall from the first rounds to the last, dated to the first round below the middle, or
/// a fall to rounds that are even until the end; `None` where there is neither.
pub(crate) fn fall_of_rounds(rates: &[f64]) -> Option<FallOfRounds> {
    if !is_gradual_fall(rates) {
        return fall_to_even_rounds(rates);
    }
    let before = mean(&rates[..DROP_ROUNDS]);
    let after = mean(&rates[rates.len() - DROP_ROUNDS..]);
    let middle = (before * after).sqrt();
    Some(FallOfRounds {
        first_after: rates.iter().take_while(|rate| **rate >= middle).count(),
        before,
        after,
    })
}

/// The fall by at least a third to rounds that are even until the end, whatever was before: a rate
/// that wandered first leaves no other trace of its fall.
fn fall_to_even_rounds(rates: &[f64]) -> Option<FallOfRounds> {
    let last = rates.last_chunk::<EVEN_ROUNDS>()?;
    let highest = last.iter().copied().fold(0.0, f64::max);
    let lowest = last.iter().copied().fold(f64::INFINITY, f64::min);
    if highest - lowest > EVEN_RANGE_MAX * mean(last) {
        return None;
    }
    let limit = highest * (1.0 + EVEN_RANGE_MAX);
    let last_high = rates.iter().rposition(|rate| *rate > limit)?;
    let first_after = last_high + 1;
    let before = mean(&rates[..first_after]);
    let after = mean(&rates[first_after..]);
    if after > before * (1.0 - GRADUAL_SHARE_MIN) {
        return None;
    }
    Some(FallOfRounds {
        first_after,
        before,
        after,
    })
}

/// Returns `true` if the rate fell from the first rounds to the last by at least a third: flash
/// approaches its steady state without a step.
fn is_gradual_fall(rates: &[f64]) -> bool {
    match drop_share(rates, None) {
        Some(drop) => drop.low() >= GRADUAL_SHARE_MIN,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::test_rng::TestRng;

    #[test]
    fn wandering_rate_that_ends_evenly_below_has_fallen() {
        let rates = [59e3, 38e3, 22e3, 306.0, 306.0, 305.0, 306.0, 306.0, 306.0];
        // Too uneven for the first rounds against the last.
        assert!(!is_gradual_fall(&rates));
        let fall = fall_to_even_rounds(&rates).unwrap();
        assert_eq!(fall.first_after, 3);
        assert!((fall.after - 306.0).abs() < 1.0, "{fall:?}");
        assert!((fall.before - 39_667.0).abs() < 1.0, "{fall:?}");
    }

    #[test]
    fn fall_is_as_uncertain_as_its_rounds_scatter() {
        let fall = LastingFall {
            at_ns: 0,
            before: 100.0,
            after: 69.6,
        };
        let rates = [
            98.0, 102.0, 97.0, 103.0, 100.0, 80.0, 66.0, 73.0, 67.0, 72.0, 70.0,
        ];
        let drop = drop_share(&rates, Some(&fall)).unwrap();
        assert!((drop.share - 0.304).abs() < 1e-9, "{drop:?}");
        // 30 % is neither exceeded for certain nor kept.
        assert!(drop.low() < 0.3 && drop.high() > 0.31, "{drop:?}");
        assert!(drop.low() > 0.2, "{drop:?}");
        // The fall is within the only round, whose scatter is unknown.
        let drop = drop_share(&[100.0, 69.0], Some(&fall)).unwrap();
        assert_eq!(drop.low(), drop.high());
    }

    /// Rounds that scatter by a tenth, looked at after each of 120: 1000 loads that do not fall.
    #[test]
    fn load_that_only_scatters_is_not_ended() {
        let mut ended = 0;
        for seed in 0..1000 {
            let mut rng = TestRng(seed + 1);
            let rates: Vec<f64> = (0..120).map(|_| 100.0 + 10.0 * rng.normal()).collect();
            let looks = 2 * DROP_ROUNDS..=rates.len();
            ended += usize::from(
                looks
                    .into_iter()
                    .any(|rounds| has_surely_declined(&rates[..rounds], 0.1)),
            );
        }
        assert!(ended <= 5, "{ended}");
    }

    #[test]
    fn gradual_fall_is_seen_three_rounds_later() {
        let rates: Vec<f64> = (0..30).map(|round| 100.0 - f64::from(round)).collect();
        let first = (1..=rates.len()).find(|rounds| has_surely_declined(&rates[..*rounds], 0.1));
        assert!(first.is_some_and(|rounds| rounds < 26), "{first:?}");
        assert!(!has_surely_declined(&rates, 0.25));
    }

    #[test]
    fn even_wandering_and_rising_rates_have_not_fallen() {
        for rates in [
            &[100.0, 101.0, 99.0, 100.0, 98.0, 102.0, 100.0][..],
            &[120.0, 90.0, 125.0, 100.0, 95.0, 98.0, 102.0, 100.0],
            &[50.0, 60.0, 100.0, 100.0, 100.0, 100.0, 100.0],
            &[300.0, 300.0, 100.0, 100.0, 100.0, 100.0],
            &[300.0, 100.0, 140.0, 100.0, 80.0, 100.0],
        ] {
            assert_eq!(fall_to_even_rounds(rates), None, "{rates:?}");
        }
    }
}
