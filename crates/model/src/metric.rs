//! What comparisons and fleets say of a metric: which figure it is, which direction is better, why
//! two of them do not measure the same thing, and points of a distribution.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure of a metric.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Figure {
    /// Operations per second.
    #[serde(rename = "iops")]
    Iops,
    /// Bytes per second.
    #[serde(rename = "throughput")]
    Throughput,
    /// Mean latency.
    #[serde(rename = "mean")]
    Mean,
    /// Median latency.
    #[serde(rename = "p50")]
    P50,
    /// 99 % of the latencies.
    #[serde(rename = "p99")]
    P99,
    /// 99.9 % of the latencies.
    #[serde(rename = "p99.9")]
    P99_9,
    /// Average rate of a curve.
    #[serde(rename = "average")]
    CurveAverage,
    /// Slowest point of a curve.
    #[serde(rename = "min")]
    CurveMin,
    /// Fastest point of a curve.
    #[serde(rename = "max")]
    CurveMax,
    /// Mean access time of a pattern.
    #[serde(rename = "access-time")]
    AccessTime,
    /// The highest rate that keeps a promise about latency.
    #[serde(rename = "rate")]
    PromisedRate,
}

impl Figure {
    /// Every figure.
    pub const ALL: [Self; 11] = [
        Self::Iops,
        Self::Throughput,
        Self::Mean,
        Self::P50,
        Self::P99,
        Self::P99_9,
        Self::CurveAverage,
        Self::CurveMin,
        Self::CurveMax,
        Self::AccessTime,
        Self::PromisedRate,
    ];

    /// The word used in records and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::Throughput => "throughput",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::P99_9 => "p99.9",
            Self::CurveAverage => "average",
            Self::CurveMin => "min",
            Self::CurveMax => "max",
            Self::AccessTime => "access-time",
            Self::PromisedRate => "rate",
        }
    }
}

/// The direction in which a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// More is better: rates.
    Higher,
    /// Less is better: times.
    Lower,
}

/// The reason why two figures do not measure the same thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Stable name, such as `span-differs`.
    pub code: String,
    /// A clause with the facts of both sides.
    pub why: String,
}

/// A point of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PercentilePoint {
    /// Share of the latencies that are not longer, in percent. Ends where fewer than ten lie
    /// beyond.
    pub percent: f64,
    /// The latency, in nanoseconds.
    pub latency_ns: u64,
}
