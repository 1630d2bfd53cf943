//! How much the rate of a workload varies from run to run, as far as the history shows it.

use serde::{Deserialize, Serialize};

/// The total rate of a workload in this run and in earlier ones that did the same on the same
/// target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunToRun {
    /// Earlier runs.
    pub earlier_runs: u64,
    /// The lowest rate among the earlier runs, in operations per second.
    pub lowest_iops: f64,
    /// The highest rate among the earlier runs, in operations per second.
    pub highest_iops: f64,
    /// Lower end of the interval in which the next run's rate lies with a probability of 95 %, in
    /// operations per second.
    pub next_low_iops: f64,
    /// Upper end of that interval, in operations per second.
    pub next_high_iops: f64,
    /// Half-width of the 95 % interval by what varied within this run alone, in operations per
    /// second; absent where it was too short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_iops: Option<f64>,
}

impl RunToRun {
    /// Half-width of the interval of the next run, relative to its middle.
    pub fn relative_half_width(&self) -> f64 {
        let middle = (self.next_low_iops * self.next_high_iops).sqrt();
        (self.next_high_iops - self.next_low_iops) / (2.0 * middle)
    }
}
