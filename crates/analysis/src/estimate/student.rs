//! Student's t distribution: the only place that asks for it. Does not know what is estimated.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// More degrees of freedom change a quantile by less than 2 parts in 100,000. The search of
/// [`StudentsT::inverse_cdf`] does not end beyond some 10⁷ of them, and a record may claim 2⁵⁰.
const FREEDOM_MAX: f64 = 1e5;

fn student(freedom: f64) -> StudentsT {
    // The interval of one degree of freedom is already so wide that it shows how little is known.
    let freedom = if freedom > 1.0 {
        freedom.min(FREEDOM_MAX)
    } else {
        1.0
    };
    StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive")
}

/// Standard errors below which the share `probability` lies, at this many degrees of freedom.
pub(crate) fn quantile(probability: f64, freedom: f64) -> f64 {
    student(freedom).inverse_cdf(probability)
}

/// Standard errors to either end of a 95 % interval.
pub(crate) fn multiple_95(freedom: f64) -> f64 {
    quantile(0.975, freedom)
}

/// Probability of being at least this many standard errors off, either way.
pub(crate) fn two_sided(multiple: f64, freedom: f64) -> f64 {
    (2.0 * student(freedom).sf(multiple)).min(1.0)
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
