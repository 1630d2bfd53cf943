//! A figure of a target from run to run.

use serde::Serialize;

/// A figure from run to run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trend {
    /// The workload, or the part of a survey.
    pub subject: String,
    /// What was done, such as `read`, or `create` of files.
    pub operation: String,
    /// `1/s`, `B/s` or `ns`.
    pub unit: String,
    /// The runs that have it, the oldest first.
    pub points: Vec<TrendPoint>,
}

/// A run in a trend.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendPoint {
    /// The run.
    pub run_id: String,
    /// Its start in UTC, RFC 3339.
    pub started: String,
    /// The figure.
    pub value: f64,
    /// Half of its 95 % interval.
    pub half_width_95: Option<f64>,
    /// The change; `None` of the first run.
    pub change: Option<TrendChange>,
}

/// A figure against the median of the runs before it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TrendChange {
    /// −0.05 is 5 % less.
    pub share: f64,
    /// Whether it lies outside of what 95 of 100 runs like those before would give; `None` with
    /// fewer than three of them.
    pub is_beyond_chance: Option<bool>,
}

impl Trend {
    /// The figure's name in conditions: `iops`, `throughput` or `mean`.
    pub fn metric(&self) -> &'static str {
        match self.unit.as_str() {
            "B/s" => "throughput",
            "ns" => "mean",
            _ => "iops",
        }
    }
}
