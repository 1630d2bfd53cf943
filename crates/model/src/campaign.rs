//! The part of a campaign that a record keeps. A campaign is a series of short measurements whose
//! order follows from the results of the earlier ones.

use crate::series::TimeSeries;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A record's part in a live comparison. Slice number n of one side and slice number n of another
/// belong to one block: they followed each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignPart {
    /// The campaign's own id; the records of all its sides have the same.
    pub id: String,
    /// The side that the record holds: A is the baseline.
    pub side: String,
    /// The command that ran before each slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<String>,
    /// The end of each workload, in the order of the plan; empty where the campaign ended early.
    pub decisions: Vec<CampaignDecision>,
    /// Load of the other sides on the disk of this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<MovedBeside>,
}

/// The end that a campaign gave to a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignDecision {
    /// Name of the workload.
    pub workload: String,
    /// Blocks that were measured; each holds one slice of every side.
    pub blocks: u64,
    /// The reason for the end.
    pub ended: CampaignEnd,
}

/// The reason for which a campaign ended a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CampaignEnd {
    /// The answer is certain.
    Decided,
    /// The ratio is known precisely.
    Precise,
    /// The workload has moved its bytes.
    Bytes,
    /// The time was over.
    Time,
}

/// Load that another side of a comparison put on the disk that this side is on, in one slice or in
/// the warm-up before it. It used the same burst credit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MovedBeside {
    /// The start, in nanoseconds after the start of the run.
    pub start_ns: u64,
    /// Nanoseconds for which it did.
    pub wall_ns: u64,
    /// Reads and writes of the other side.
    pub requests: u64,
    /// Bytes that they moved.
    pub bytes: u64,
}

/// A slice that counts in no row any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DroppedSlice {
    /// Index of the target, or of the side.
    pub target: usize,
    /// Name of the workload.
    pub workload: String,
    /// Start of its measured time, in nanoseconds after the start of the run.
    pub start_ns: u64,
    /// The warm-up before it.
    pub warmup_ns: u64,
    /// Reads and writes over time.
    pub moved: TimeSeries,
    /// The longest pause of the disk in it; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<SlicePause>,
}

/// A time in a slice, or over its end, in which no request completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlicePause {
    /// Its length in nanoseconds.
    pub length_ns: u64,
    /// Requests that waited.
    pub requests: u64,
}

impl DroppedSlice {
    /// The end of its last cell in which something was moved, in nanoseconds after the start of the
    /// run.
    pub fn end_ns(&self) -> u64 {
        let cells = self.moved.cells.len() as u64;
        self.start_ns
            .saturating_add(self.moved.start_ns)
            .saturating_add(self.moved.interval_ns.saturating_mul(cells))
    }
}
