//! Evaluates Student's t distribution (Student 1908), and estimates the mean of paired differences.
//! Both members of a pair are measured one after the other, so that changes over time affect both
//! and cancel out.

use super::stats::{mean, variance};
use statrs::distribution::ContinuousCDF as _;
use statrs::distribution::StudentsT;

/// More degrees of freedom change a quantile by less than 2 parts in 100,000. The search of
/// [`StudentsT::inverse_cdf`] does not end beyond some 10⁷ of them, and a record may claim 2⁵⁰.
const FREEDOM_MAX: f64 = 1e5;

/// The distribution at this many degrees of freedom, limited to those that its functions answer.
fn distribution(freedom: f64) -> StudentsT {
    // The interval of one degree of freedom is already so wide that it shows how little is known.
    let freedom = if freedom > 1.0 {
        freedom.min(FREEDOM_MAX)
    } else {
        1.0
    };
    StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive")
}

/// The quantile of a probability in standard errors, at this many degrees of freedom.
pub(crate) fn quantile(probability: f64, freedom: f64) -> f64 {
    distribution(freedom).inverse_cdf(probability)
}

/// The half-width of a 95 % interval in standard errors, at this many degrees of freedom.
pub(crate) fn multiple_95(freedom: f64) -> f64 {
    quantile(0.975, freedom)
}

/// The two-sided p-value: the probability of being at least this many standard errors off by
/// chance, either way.
pub(crate) fn two_sided(multiple: f64, freedom: f64) -> f64 {
    (2.0 * distribution(freedom).sf(multiple)).min(1.0)
}

/// The fewest pairs for an interval. With two, it would be 13 standard errors wide to either side.
const PAIRS_MIN: usize = 3;

/// The mean of differences, and its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PairedDifference {
    /// The mean, in the unit of the differences.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom.
    pub freedom: f64,
}

impl PairedDifference {
    /// The mean of these differences; `None` of fewer than three, and where one is not finite.
    pub(crate) fn from_sample(differences: &[f64]) -> Option<Self> {
        let count = differences.len() as f64;
        let is_finite = differences.iter().all(|difference| difference.is_finite());
        if differences.len() < PAIRS_MIN || !is_finite {
            return None;
        }
        Some(Self {
            mean: mean(differences),
            error: (variance(differences) / count).sqrt(),
            freedom: count - 1.0,
        })
    }

    /// Half the width of an interval that holds the true mean with this probability.
    pub(crate) fn half_width(self, confidence: f64) -> f64 {
        quantile(0.5 + confidence / 2.0, self.freedom) * self.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_tables() {
        for (freedom, multiple) in [(1.0, 12.706), (9.0, 2.262), (30.0, 2.042), (1e6, 1.960)] {
            assert!((multiple_95(freedom) - multiple).abs() < 1e-3, "{freedom}");
            assert!(
                (two_sided(multiple, freedom) - 0.05).abs() < 1e-4,
                "{freedom}"
            );
        }
        for freedom in [1e7, 2.0_f64.powi(26), 2.0_f64.powi(50), f64::INFINITY] {
            assert!((multiple_95(freedom) - 1.959_964).abs() < 5e-5, "{freedom}");
        }
        assert_eq!(two_sided(0.0, 5.0), 1.0);
        assert_eq!(multiple_95(0.0), multiple_95(1.0));
    }
}

#[cfg(test)]
mod paired_tests {
    use super::*;

    /// By hand: 1, 2, 3 and 6 have the mean 3 and the squares 4 + 1 + 0 + 9 = 14, so the standard
    /// error is √(14/3/4) = 1.080123. scipy.stats.t.ppf(0.975, 3) = 3.182446: 3.437434.
    #[test]
    fn paired_difference_is_the_one_computed_by_hand() {
        let difference = PairedDifference::from_sample(&[1.0, 2.0, 3.0, 6.0]).unwrap();
        assert_eq!((difference.mean, difference.freedom), (3.0, 3.0));
        assert!((difference.error - 1.080_123_449_7).abs() < 1e-9);
        assert!((difference.half_width(0.95) - 3.437_434_5).abs() < 1e-6);
    }

    #[test]
    fn paired_difference_needs_three_numbers() {
        assert_eq!(PairedDifference::from_sample(&[1.0, 2.0]), None);
        assert_eq!(
            PairedDifference::from_sample(&[1.0, 2.0, f64::NEG_INFINITY]),
            None
        );
        assert!(PairedDifference::from_sample(&[1.0, 2.0, 3.0]).is_some());
    }
}
