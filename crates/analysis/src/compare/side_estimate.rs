//! The figure of one side of a comparison: as the table shows it, and as the ratio needs it.

use super::ratio::{Arm, SideFigure, Within};
use crate::estimate::mean;
use crate::estimate::student::multiple_95;
use diskproof_model::record::Estimate;

/// A figure of one side.
pub(super) struct SideEstimate {
    /// As the table shows it.
    pub estimate: Estimate,
    /// As the ratio needs it.
    pub sample: SideFigure,
}

impl SideEstimate {
    /// The estimate from `n` runs, or from one run with `n` independent values.
    pub(super) fn from_sample(sample: SideFigure, n: u64, unit: &str) -> Self {
        Self {
            estimate: estimate_of_sample(&sample, n, unit),
            sample,
        }
    }

    /// The figure of a side from the estimates of its runs; `None` where one of them is not
    /// positive.
    pub(super) fn from_estimates(estimates: &[Estimate]) -> Option<Self> {
        let first = estimates.first()?;
        if !estimates.iter().all(is_known) {
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
                    freedom: (first.n.max(2) - 1) as f64,
                }
            }
            None => Within::Unknown,
        };
        let sample = SideFigure::from_runs(value, logs, within);
        let n = match estimates.len() {
            1 => first.n,
            n => n as u64,
        };
        Some(Self::from_sample(sample, n, &first.unit))
    }
}

fn is_known(estimate: &Estimate) -> bool {
    estimate.value > 0.0 && estimate.value.is_finite()
}

/// The standard error as a share of the value; `None` where the estimate has no interval.
pub(super) fn relative_error(estimate: &Estimate) -> Option<f64> {
    Some(estimate.half_width_95? / multiple_95((estimate.n.max(2) - 1) as f64) / estimate.value)
}

/// The estimate for the table. Its half-width is the longer arm of the interval.
fn estimate_of_sample(sample: &SideFigure, n: u64, unit: &str) -> Estimate {
    let multiple = multiple_95(sample.freedom());
    let longer = match sample.within {
        // This repeats the record; by logarithms it would be a little more.
        Within::Error { error, .. } if sample.spread.is_none() => error * multiple,
        Within::Error { .. } | Within::Ranks { .. } | Within::Unknown => {
            let below = sample.arm(Arm::Below, multiple);
            let above = sample.arm(Arm::Above, multiple);
            (1.0 - (-below).exp()).max(above.exp() - 1.0)
        }
    };
    let half_width = longer * sample.value;
    let half_width_95 = if half_width.is_finite() {
        Some(half_width)
    } else {
        None
    };
    Estimate::new(n, sample.value, half_width_95, unit)
}
