//! Figures with known errors, for the tests of ratios and verdicts.

use super::ratio::{RatioEstimate, SideFigure, Within};

/// Fails unless `value` is `truth` to seven digits.
#[track_caller]
pub(super) fn assert_close(value: f64, truth: f64) {
    assert!(
        (value - truth).abs() <= 1e-7 * truth.abs(),
        "{value:?} is not {truth:?}"
    );
}

/// The figure of one run. `error` is the standard error of its logarithm, which is known with
/// `freedom` degrees of freedom.
pub(super) fn figure_of_run(value: f64, error: f64, freedom: f64) -> SideFigure {
    SideFigure::from_runs(value, vec![value.ln()], Within::Error { error, freedom })
}

/// The geometric mean of three runs. `error` is the standard error that the runs themselves state
/// of it, as a logarithm, with 30 degrees of freedom: more than three runs have.
pub(super) fn figure_of_three_runs(values: [f64; 3], error: f64) -> SideFigure {
    let logs = values.map(f64::ln).to_vec();
    let value = (logs.iter().sum::<f64>() / 3.0).exp();
    let freedom = 30.0;
    SideFigure::from_runs(value, logs, Within::Error { error, freedom })
}

/// 100 known to 2 % with 19 degrees of freedom, and 110 known to 3 % with 9.
pub(super) fn pair() -> RatioEstimate {
    RatioEstimate::from_sides(
        &figure_of_run(100.0, 0.02, 19.0),
        &figure_of_run(110.0, 0.03, 9.0),
        &[],
    )
    .unwrap()
}
