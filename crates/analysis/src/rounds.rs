//! How far the rate of a load fell from its first rounds to its last, with an interval.

use crate::estimate::student::multiple_95;
use crate::estimate::{LastingFall, mean, variance};

/// A fall without a step is at least a third: a healthy disk wanders by less.
const GRADUAL_SHARE_MIN: f64 = 1.0 / 3.0;
/// Rounds at the start and at the end that show how far a rate fell.
pub(crate) const DROP_ROUNDS: usize = 3;

/// How far a rate fell, as a share of what it was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DropShare {
    pub(crate) share: f64,
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

/// How far a rate fell: by the fall that was found, or from the first rounds to the last. `None` of
/// too few rounds.
pub(crate) fn drop_share(rates: &[f64], fall: Option<&LastingFall>) -> Option<DropShare> {
    if let Some(fall) = fall {
        return Some(DropShare {
            share: 1.0 - fall.after / fall.before,
            half_width: 0.0,
        });
    }
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

/// Whether the rate fell from the first rounds to the last by at least a third: flash approaches
/// its steady state without a step.
pub(crate) fn is_gradual_fall(rates: &[f64]) -> bool {
    match drop_share(rates, None) {
        Some(drop) => drop.low() >= GRADUAL_SHARE_MIN,
        None => false,
    }
}
