//! A row of a record: what was measured of one workload on one target, and the figures that follow
//! from it. Both are stored; on reading, the figures are derived again.

use crate::estimate::Estimate;
use crate::finding::LimitedBy;
use crate::histogram::LatencyHistogram;
use crate::measurement::{Measurement, OpMeasurement};
use crate::op::{OpKind, PerOp};
use crate::ping::PingFigures;
use crate::trend::RunToRun;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One workload on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The measurement: the time that the figures are about, and what came before it.
    pub data: Measurement,
    /// Variation of the rate from run to run; absent where the history does not show it. It is an
    /// input of the figures: their intervals cover it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_to_run: Option<RunToRun>,
    /// The figures, which follow from both.
    pub figures: RowFigures,
}

/// The figures of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowFigures {
    /// Prefix of the measured time that the estimates skip because the rate had not settled, in
    /// nanoseconds.
    pub settling_ns: u64,
    /// True if the rate settled at all within the measured time; `null` when there was too little
    /// to tell.
    pub settled: Option<bool>,
    /// The phases of the workload, in order; empty where it was one. The first write of a new file
    /// is before the measured time. The figures of the row are those of the last phase, except for
    /// errors, short transfers and verification, which count over the whole time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseRecord>,
    /// Names of the workloads that ran at the same time on the same target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together_with: Vec<String>,
    /// Per kind of operation.
    pub ops: PerOp<OpFigures>,
    /// Figures of single requests; present in the row of a ping only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping: Option<PingFigures>,
    /// The thing that limited the rate, where the record shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<LimitedBy>,
    /// A one-line command of a well-known tool that shows the same figure.
    pub reproduce: String,
}

/// The figures of one kind of operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpFigures {
    /// Operations per second.
    pub iops: Estimate,
    /// Bytes per second.
    pub throughput: Estimate,
    /// Latency from before the submission to the reaping.
    pub latency: LatencySummary,
    /// Latency from the intended start (open loop only). Operations that were never started count
    /// with what they had waited at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_intended: Option<LatencySummary>,
}

impl OpFigures {
    /// The latency that counts and that pages show: that from the intended start, where the load
    /// was offered, not from when a free slot admitted the request (coordinated omission).
    pub fn seen_latency(&self) -> &LatencySummary {
        match &self.latency_intended {
            Some(intended) => intended,
            None => &self.latency,
        }
    }
}

/// One kind of operation of a row: what was measured of it, and its figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpRow<'a> {
    /// The counts and latencies.
    pub data: &'a OpMeasurement,
    /// The figures, which follow from them.
    pub figures: &'a OpFigures,
}

impl Row {
    /// The kinds of operations that occurred, with their figures.
    pub fn ops(&self) -> impl Iterator<Item = (OpKind, OpRow<'_>)> + Clone {
        self.data.ops.iter().filter_map(|(kind, data)| {
            let figures = self.figures.ops.get(kind)?;
            Some((*kind, OpRow { data, figures }))
        })
    }

    /// One kind of operation; `None` where it did not occur.
    pub fn op(&self, kind: OpKind) -> Option<OpRow<'_>> {
        Some(OpRow {
            data: self.data.ops.get(&kind)?,
            figures: self.figures.ops.get(&kind)?,
        })
    }
}

impl<'a> OpRow<'a> {
    /// The latencies that count: those from the intended start, where the load was offered.
    pub fn seen_latencies(self) -> &'a LatencyHistogram {
        self.data.seen_latencies()
    }
}

/// A part of the measured time with its own rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRecord {
    /// The kind of part of the time.
    pub name: PhaseKind,
    /// The start, in nanoseconds after the start of the run.
    pub start_ns: u64,
    /// The end, in nanoseconds after the start of the run.
    pub end_ns: u64,
    /// Per kind of operation; only kinds that occurred in it.
    pub ops: PerOp<PhaseOp>,
}

/// The kind of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseKind {
    /// The rate had not reached its level yet.
    Settling,
    /// The disk was faster than it stays: burst credit, or a cache that filled.
    Burst,
    /// The blocks of a new file were written, and allocated, for the first time.
    FirstWrite,
    /// The rate kept its level.
    Steady,
}

impl PhaseKind {
    /// The word of records and text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Settling => "settling",
            Self::Burst => "burst",
            Self::FirstWrite => "first-write",
            Self::Steady => "steady",
        }
    }
}

/// One kind of operation in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseOp {
    /// Operations that succeeded in it.
    pub count: u64,
    /// Bytes that these operations moved.
    pub bytes: u64,
    /// Operations per second.
    pub rate: Estimate,
    /// Bytes per second.
    pub throughput: Estimate,
    /// Latency from before the submission to the reaping.
    pub latency: LatencySummary,
}

/// A latency distribution in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Always `ns`.
    pub unit: String,
    /// Mean of all latencies.
    pub mean: f64,
    /// The shortest latency.
    pub min: u64,
    /// Median; like every percentile `null` when fewer than ten samples lie beyond it.
    pub p50: Option<u64>,
    /// 90th percentile; `null` when fewer than ten samples lie beyond it.
    pub p90: Option<u64>,
    /// 99th percentile; `null` when fewer than ten samples lie beyond it.
    pub p99: Option<u64>,
    /// 99.9th percentile; `null` when fewer than ten samples lie beyond it.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<u64>,
    /// 99.99th percentile; `null` when fewer than ten samples lie beyond it.
    #[serde(rename = "p99.99")]
    pub p99_99: Option<u64>,
    /// The longest latency.
    pub max: u64,
}
