//! Estimates a figure of one side of a comparison from its runs: for the table, and for the ratio.

use super::ratio::{Arm, SideFigure, Within};
use crate::estimate::mean;
use crate::estimate::student::multiple_95;
use diskproof_model::record::Estimate;

/// A figure of one side in both of its forms.
pub(super) struct SideEstimate {
    /// The value and its symmetric interval, as the table shows them.
    pub shown: Estimate,
    /// The figure with the uncertainty that the ratio needs.
    pub figure: SideFigure,
}

impl SideEstimate {
    /// The estimate from `n` runs, or from one run with `n` independent values.
    pub(super) fn new(figure: SideFigure, n: u64, unit: &str) -> Self {
        Self {
            shown: shown_estimate(&figure, n, unit),
            figure,
        }
    }

    /// The figure of a side from the estimates of its runs; `None` without runs, and where one of
    /// them is not positive.
    pub(super) fn from_estimates(estimates: &[Estimate]) -> Option<Self> {
        let first = estimates.first()?;
        if !estimates.iter().all(is_positive) {
            return None;
        }
        let logs: Vec<f64> = estimates
            .iter()
            .map(|estimate| estimate.value.ln())
            .collect();
        let value = mean(&logs).exp();
        let errors: Option<Vec<f64>> = estimates.iter().map(relative_error).collect();
        let within = match errors {
            Some(errors) => {
                let squares: f64 = errors.iter().map(|error| error * error).sum();
                Within::Error {
                    error: squares.sqrt() / errors.len() as f64,
                    // Only that of a single run counts: several have the freedom of their spread.
                    freedom: freedom(first),
                }
            }
            None => Within::Unknown,
        };
        let figure = SideFigure::from_runs(value, logs, within);
        let n = match estimates.len() {
            1 => first.n,
            runs => runs as u64,
        };
        Some(Self::new(figure, n, &first.unit))
    }
}

/// Returns `true` if an estimate has a logarithm.
fn is_positive(estimate: &Estimate) -> bool {
    estimate.value > 0.0 && estimate.value.is_finite()
}

/// The degrees of freedom of an estimate from `n` values: one less, but at least one, because a
/// record may state an interval with fewer.
fn freedom(estimate: &Estimate) -> f64 {
    (estimate.n.max(2) - 1) as f64
}

/// The standard error as a share of the value; `None` where the estimate has no interval.
pub(super) fn relative_error(estimate: &Estimate) -> Option<f64> {
    Some(estimate.half_width_95? / multiple_95(freedom(estimate)) / estimate.value)
}

/// The estimate for the table. Its half-width is the longer arm of the interval; without one where
/// nothing bounds the figure.
fn shown_estimate(figure: &SideFigure, n: u64, unit: &str) -> Estimate {
    let multiple = multiple_95(figure.freedom());
    let longer = match figure.within {
        // This repeats the record; by logarithms it would be a little more.
        Within::Error { error, .. } if figure.spread.is_none() => error * multiple,
        Within::Error { .. } | Within::Ranks { .. } | Within::Stated(_) | Within::Unknown => {
            let below = figure.arm(Arm::Below, multiple);
            let above = figure.arm(Arm::Above, multiple);
            (1.0 - (-below).exp()).max(above.exp() - 1.0)
        }
    };
    let half_width = longer * figure.value;
    let half_width_95 = if half_width.is_finite() {
        Some(half_width)
    } else {
        None
    };
    Estimate::new(n, figure.value, half_width_95, unit)
}

/// Exact values of Student's t at 97.5 %: 2.0930240544 with 19 degrees of freedom, 12.7062047362
/// with one (scipy 1.16, `scipy.stats.t`).
#[cfg(test)]
mod tests {
    use super::super::test_figures::assert_close;
    use super::*;

    fn estimate(value: f64, half_width_95: Option<f64>) -> Estimate {
        Estimate::new(20, value, half_width_95, "1/s")
    }

    #[test]
    fn relative_error_is_the_half_width_over_its_multiple() {
        let error = relative_error(&estimate(100.0, Some(5.0))).unwrap();
        assert_close(error, 0.05 / 2.0930240544);
        let single = Estimate::new(1, 100.0, Some(5.0), "1/s");
        assert_close(relative_error(&single).unwrap(), 0.05 / 12.7062047362);
        assert_eq!(relative_error(&estimate(100.0, None)), None);
    }

    #[test]
    fn one_run_is_shown_as_its_record_states_it() {
        let side = SideEstimate::from_estimates(&[estimate(100.0, Some(5.0))]).unwrap();
        assert_close(side.shown.value, 100.0);
        assert_close(side.shown.half_width_95.unwrap(), 5.0);
        assert_eq!(side.shown.n, 20);
        assert_close(side.figure.freedom(), 19.0);
        assert_close(side.figure.error_within().unwrap(), 0.05 / 2.0930240544);
    }

    /// The geometric mean of 100 and 121 is 110. The standard error of its logarithm is half of
    /// their distance, ln 1.1, with one degree of freedom.
    #[test]
    fn two_runs_are_shown_with_their_spread() {
        let runs = [estimate(100.0, None), estimate(121.0, None)];
        let side = SideEstimate::from_estimates(&runs).unwrap();
        assert_close(side.shown.value, 110.0);
        let above = (12.7062047362 * 1.1_f64.ln()).exp() - 1.0;
        assert_close(side.shown.half_width_95.unwrap(), 110.0 * above);
        assert_eq!(side.shown.n, 2);
        assert_close(side.figure.freedom(), 1.0);
        assert_eq!(side.figure.error_within(), None);
    }

    #[test]
    fn figure_that_is_not_positive_has_no_estimate() {
        assert!(SideEstimate::from_estimates(&[]).is_none());
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let runs = [estimate(100.0, None), estimate(value, None)];
            assert!(SideEstimate::from_estimates(&runs).is_none(), "{value}");
        }
    }
}
