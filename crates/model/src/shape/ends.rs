//! The conditions that end a workload before its time, bytes or operations do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Conditions that end a workload early.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct EarlyEnds {
    /// A longer latency ends the workload as failed, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_limit_ns: Option<u64>,
    /// The workload ends when a start of its open loop has been due for so long, in nanoseconds:
    /// more is offered than the target serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload_ns: Option<u64>,
    /// A lower rate ends the workload as failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_floors: Vec<RateFloor>,
    /// Ends it once its rate is steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyEnd>,
    /// A limit of operations counts those after the warm-up only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ops_after_warmup: bool,
    /// Its end also ends the workloads that run together with it on other targets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_group: bool,
    /// If it fails, the workloads that run together with it end, too, on all targets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failure_ends_group: bool,
    /// A block that is read and found bad ends the workload. Requests in flight still count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_bad_block: bool,
}

impl EarlyEnds {
    /// The settings in words: conditions of every figure.
    pub(super) fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        if self.steady.is_some() {
            facts.push("until the rate or the latency is steady".to_owned());
        }
        facts
    }
}

/// The least that each worker must reach in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateFloor {
    /// True of a floor for writes, false of one for reads.
    pub of_writes: bool,
    /// The least rate, per second.
    pub floor: f64,
    /// The unit of the rate.
    pub unit: FloorUnit,
    /// The time over which it is taken, in nanoseconds.
    pub over_ns: u64,
}

/// The unit of a rate per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FloorUnit {
    /// Bytes.
    Bytes,
    /// Operations.
    Ops,
}

/// The condition of a steady rate or mean latency, which ends each worker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyEnd {
    /// The rate, or the latency.
    pub figure: SteadyFigure,
    /// The test, and with it the value that is compared with the limit.
    pub test: SteadyTest,
    /// The limit: of the rate per second, of the latency in nanoseconds, or in percent of the mean.
    pub limit: f64,
    /// True of a limit in percent.
    pub is_percent: bool,
    /// The newest rates over so many nanoseconds count.
    pub over_ns: u64,
    /// Rates before this time do not count, in nanoseconds after the start.
    pub settle_ns: u64,
    /// A rate is taken each time after so many nanoseconds.
    pub every_ns: u64,
}

impl SteadyEnd {
    /// Number of rates that count.
    pub fn samples(&self) -> usize {
        (self.over_ns / self.every_ns.max(1)) as usize
    }
}

/// The figure that becomes steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SteadyFigure {
    /// Operations per second.
    Ops,
    /// Bytes per second.
    Bytes,
    /// The mean latency.
    Latency,
}

/// The test that tells that a rate is steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SteadyTest {
    /// The largest deviation from the mean.
    Deviation,
    /// The slope of the regression line, for each interval.
    Slope,
}
