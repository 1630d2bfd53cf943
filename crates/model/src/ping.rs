//! Single requests, one after the other: what a ping plans, and what it saw of each request.

use crate::estimate::Estimate;
use crate::op::{OpKind, PerOp};
use crate::workload::Stop;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests of one target that a record keeps: the newest.
pub const REQUESTS_MAX: usize = 10_000;

/// The sequence of requests of a ping. Size, place, cache and sync of a request are those of the
/// plan's only workload; where that reads and writes, reads and writes alternate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PingPlan {
    /// The time from the start of a request to the start of the next, in nanoseconds; longer where
    /// the request itself takes longer. 0: the next starts when one ends.
    pub interval_ns: u64,
    /// Requests at the start of each target that do not count.
    pub warmup_requests: u64,
    /// The ping ends when a request takes longer than this, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort_above_ns: Option<u64>,
    /// The idle time before each request, in order, in nanoseconds, where the ping measures how
    /// long the first request after an idle time takes. Empty where `interval_ns` sets the pace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle_ns: Vec<u64>,
}

impl PingPlan {
    /// The longest that requests with these limits take, apart from their own time, in nanoseconds;
    /// `None` without a limit.
    pub fn time_ns_max(&self, stop: &Stop) -> Option<u64> {
        if !self.idle_ns.is_empty() {
            return Some(self.idle_ns.iter().sum());
        }
        let counted = stop.ops.filter(|_| self.interval_ns > 0);
        let counted_ns = counted.map(|ops| ops.saturating_mul(self.interval_ns));
        counted_ns.into_iter().chain(stop.time_ns).min()
    }
}

/// A request as it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SingleRequest {
    /// Count of the requests on its target, from 1.
    pub number: u64,
    /// Nanoseconds from the start of the run until it was sent.
    pub at_ns: u64,
    /// A read, a write, or a write with what makes it durable.
    pub op: OpKind,
    /// Byte of the target at which it begins.
    pub offset_bytes: u64,
    /// Nanoseconds from before it was sent to the receipt of its completion.
    pub latency_ns: u64,
    /// The idle time that was planned before it, in nanoseconds; absent where an interval sets the
    /// pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<u64>,
    /// The errno of a request that failed, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The reason why it does not count; absent for one that does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoredBecause>,
}

impl SingleRequest {
    /// True if its latency counts in the figures.
    pub fn counts(&self) -> bool {
        self.ignored.is_none() && self.error.is_none()
    }
}

/// The reason why a request does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IgnoredBecause {
    /// It was one of the first of the run.
    Warmup,
    /// The process was stopped or suspended while it was in flight.
    Interrupted,
    /// The idle time before it became longer than planned, because the machine was busy.
    Late,
}

impl IgnoredBecause {
    /// The word used in records and in text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warmup => "warm-up",
            Self::Interrupted => "interrupted",
            Self::Late => "late",
        }
    }
}

/// Figures of the single requests to one target, beyond those that every measurement has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PingFigures {
    /// Latencies of the requests that count, by kind of operation.
    pub latency: PerOp<PingLatency>,
    /// Latency of the first request after each idle time, the shortest first; empty where an
    /// interval set the pace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_idle: Vec<IdlePoint>,
    /// A latency above this is far longer than requests without an idle time usually take, in
    /// nanoseconds; absent where an interval set the pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_from_ns: Option<u64>,
}

impl PingFigures {
    /// The requests right after another one, which a disk that is awake answers; `None` where an
    /// interval set the pace, and where reads and writes took turns.
    pub fn awake(&self) -> Option<&IdlePoint> {
        let is_mixed = self.latency.contains_key(&OpKind::Read) && self.latency.len() > 1;
        let mut points = self.after_idle.iter().filter(|_| !is_mixed);
        points.find(|point| point.idle_ns == 0)
    }
}

/// The mean latency of single requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PingLatency {
    /// The mean, unit `ns`.
    pub mean: Estimate,
    /// Standard deviation of single latencies, in nanoseconds.
    pub deviation_ns: f64,
}

/// Requests after one idle time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdlePoint {
    /// The idle time before them, in nanoseconds; 0: right after another request.
    pub idle_ns: u64,
    /// The mean latency, unit `ns`.
    pub mean: Estimate,
    /// The median latency, in nanoseconds.
    pub p50_ns: u64,
    /// The shortest latency, in nanoseconds.
    pub min_ns: u64,
    /// The longest latency, in nanoseconds.
    pub max_ns: u64,
    /// Requests that took far longer than those without an idle time usually do.
    pub slow: u64,
}
