//! The part of one host in a measurement of several at the same instants: its slots of the
//! timetable, and the fences of the launcher that gave the instant of the first one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part that a run had in a measurement of several. Its times are nanoseconds after the start
/// of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TogetherRecord {
    /// The number of slots of the timetable.
    pub slots: u32,
    /// The planned start of the first slot; negative where the run began after it.
    pub first_slot_ns: i64,
    /// The source of that instant.
    pub origin: SlotOrigin,
    /// The time at which the scratch files had their content and the first slot could begin; absent
    /// where that never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_ns: Option<u64>,
    /// The fences of the launcher, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fences: Vec<Fence>,
    /// The reason why there are no further fences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence_failure: Option<FenceFailure>,
    /// Slots that were not measured, because the run was not ready for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedSlot>,
}

/// The source of the instant at which the first slot starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlotOrigin {
    /// A time that the user gave to all hosts.
    GivenTime,
    /// The last fence of the launcher.
    Fence,
    /// This host's own clock, because a rank did not come to a fence.
    OwnClock,
}

/// A fence: no rank leaves it before the last one has entered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fence {
    /// The time at which this rank entered it.
    pub entered_ns: u64,
    /// The time at which this rank left it.
    pub left_ns: u64,
}

/// The reason why a launcher's fences ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FenceFailure {
    /// The launcher does not speak the first version of PMI.
    Refused,
    /// A rank did not enter the fence within ten seconds.
    NoAnswer,
    /// The launcher closed the connection.
    Closed,
}

/// A slot that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedSlot {
    /// Number in the timetable, from 0.
    pub slot: u32,
    /// Name of its workload; of the first of those that run together.
    pub workload: String,
    /// Nanoseconds by which its instant had passed when that was noticed.
    pub late_ns: u64,
}

/// The slot of the timetable in which a slice was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SliceSlot {
    /// Number in the timetable, from 0.
    pub number: u32,
    /// The time at which the first worker began, warm-up included, in nanoseconds after the start
    /// of the run.
    pub began_ns: u64,
}
