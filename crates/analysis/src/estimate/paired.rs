//! Differences of pairs that were measured one after the other: changes over time affect both
//! members of a pair and cancel out (Student 1908). Does not know what is paired.

use super::stats::{mean, variance};
use super::student;

/// The fewest pairs for a standard error.
const PAIRS_MIN: usize = 3;

/// The mean of differences, and its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PairedDifference {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom.
    pub freedom: f64,
}

impl PairedDifference {
    /// Of these differences; `None` where they are too few, or one of them is not a number.
    pub(crate) fn of(differences: &[f64]) -> Option<Self> {
        let count = differences.len() as f64;
        let is_known = differences.len() >= PAIRS_MIN && differences.iter().all(|d| d.is_finite());
        is_known.then(|| Self {
            mean: mean(differences),
            error: (variance(differences) / count).sqrt(),
            freedom: count - 1.0,
        })
    }

    /// Half the width of an interval that holds the true mean with this probability.
    pub(crate) fn half_width(self, confidence: f64) -> f64 {
        student::quantile(0.5 + confidence / 2.0, self.freedom) * self.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 1, 2, 3 and 6 have the mean 3 and the squares 4 + 1 + 0 + 9 = 14, so the standard
    /// error is √(14/3/4) = 1.080123. scipy.stats.t.ppf(0.975, 3) = 3.182446: 3.437434.
    #[test]
    fn paired_difference_is_the_one_computed_by_hand() {
        let difference = PairedDifference::of(&[1.0, 2.0, 3.0, 6.0]).unwrap();
        assert_eq!((difference.mean, difference.freedom), (3.0, 3.0));
        assert!((difference.error - 1.080_123_449_7).abs() < 1e-9);
        assert!((difference.half_width(0.95) - 3.437_434_5).abs() < 1e-6);
    }

    #[test]
    fn paired_difference_needs_three_numbers() {
        assert_eq!(PairedDifference::of(&[1.0, 2.0]), None);
        assert_eq!(PairedDifference::of(&[1.0, 2.0, f64::NEG_INFINITY]), None);
        assert!(PairedDifference::of(&[1.0, 2.0, 3.0]).is_some());
    }
}
