//! Results that need earlier runs: a figure of a target from run to run, how much the rate of a
//! workload varies, and how long an access takes across all of a rotating disk.

use crate::estimate::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure from run to run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trend {
    /// The workload, or the part of a survey.
    pub subject: String,
    /// The operation, such as `read`, or `create` of files; empty where a condition does not say.
    pub operation: String,
    /// The path of the target; `None` of a figure that an older version saved without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The figure's name in conditions, such as `iops` or `p99`.
    pub metric: String,
    /// `1/s`, `B/s`, `ns`, or `1` of a share.
    pub unit: String,
    /// The runs that have it, the oldest first.
    pub points: Vec<TrendPoint>,
    /// The newest run that measured for the figure, where it has none: too few operations, none
    /// that succeeded, an early end, or a record that cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_without_figure: Option<String>,
}

/// A run in a trend.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendPoint {
    /// Id of the run.
    pub run_id: String,
    /// Start of the run in UTC, RFC 3339.
    pub started: String,
    /// The figure of that run, in the unit of the trend.
    pub value: f64,
    /// Half of its 95 % interval.
    pub half_width_95: Option<f64>,
    /// The change; `None` of the first run.
    pub change: Option<TrendChange>,
    /// The finding by which the figure is not the disk's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objection: Option<String>,
    /// The best figure that the disk may have had, in the unit of the trend, where the program
    /// waited for a processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_waits: Option<f64>,
}

/// A figure that would be better by more than this factor without waits says too little of its disk
/// to compare others with. Chosen, not measured: what waiting for a fifth of the time adds.
const HIDDEN_TIMES_MAX: f64 = 1.25;

impl TrendPoint {
    /// Returns `true` if later figures are compared with this one: it is the disk's, above zero,
    /// and waiting for processors did not hide it.
    pub fn is_measure(&self) -> bool {
        self.objection.is_none() && self.value > 0.0 && !self.is_hidden_by_waits()
    }

    /// Returns `true` if waiting for processors may explain most of the figure.
    pub fn is_hidden_by_waits(&self) -> bool {
        match self.without_waits {
            Some(best) if best < self.value => self.value > HIDDEN_TIMES_MAX * best,
            Some(best) => best > HIDDEN_TIMES_MAX * self.value,
            None => false,
        }
    }
}

/// A figure against the median of the runs before it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TrendChange {
    /// −0.05 is 5 % less.
    pub share: f64,
    /// True if it lies outside of what 95 of 100 runs like those before would give; `None` with
    /// fewer than three of them.
    pub is_beyond_chance: Option<bool>,
}

/// The total rate of a workload in this run and in earlier ones that did the same on the same
/// target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunToRun {
    /// The number of earlier runs that it follows from.
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

/// Random accesses across a whole disk, measured by an earlier run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskAccess {
    /// The run that measured it.
    pub run_id: String,
    /// Start of the run in UTC, RFC 3339.
    pub started: String,
    /// Kernel name of the disk in this run.
    pub disk: String,
    /// Mean time of a random access, in nanoseconds.
    pub mean: Estimate,
}

/// A mean latency at a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LatencyPoint {
    /// Seconds since 1970.
    pub at_s: i64,
    /// Latency in nanoseconds.
    pub latency_ns: f64,
}

/// The change of a latency with time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drift {
    /// Change in a day, as a share of the mean latency.
    pub per_day: f64,
    /// Half of its 95 % interval.
    pub half_width_95: f64,
    /// The hour of the day (UTC) that is slow, where one is.
    pub slow_hour: Option<SlowHour>,
}

/// An hour of the day in which a latency is higher than in the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SlowHour {
    /// Hour of the day from 0 to 23, in UTC.
    pub hour: u32,
    /// The latency in it less that of the others, as a share of the mean latency.
    pub change: f64,
}

/// The answer that the points give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriftAnswer {
    /// The whole interval of the line rises.
    Worse,
    /// The whole interval of the line falls.
    Better,
    /// The interval includes no change.
    NoTrend,
}

impl Drift {
    /// The answer to the question whether the latency gets worse.
    pub fn answer(&self) -> DriftAnswer {
        if self.per_day - self.half_width_95 > 0.0 {
            DriftAnswer::Worse
        } else if self.per_day + self.half_width_95 < 0.0 {
            DriftAnswer::Better
        } else {
            DriftAnswer::NoTrend
        }
    }
}
