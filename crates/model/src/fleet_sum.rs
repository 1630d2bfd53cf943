//! The sums over hosts that measured at the same instants, as a part of a fleet.

use crate::estimate::Estimate;
use crate::metric::{PercentilePoint, Reason};
use crate::op::OpKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sum over the hosts whose slots overlap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetSum {
    /// The sum in a sentence.
    pub summary: String,
    /// The runs in it.
    pub members: Vec<SumMember>,
    /// Runs that are not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The number of slots of the timetable.
    pub slots: u32,
    /// The members' storage. With shared storage the sum is what that gives, and rows are hosts,
    /// not disks.
    pub storage: SumStorage,
    /// The sum for each workload and kind of operation, in the order of the plan.
    pub workloads: Vec<WorkloadSum>,
    /// Workloads without a sum: what a member measured in them is not the figure of its disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<UndecidedSum>,
    /// Earlier launches among the runs, of which this is no sum: the start of each, the oldest
    /// first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_launches: Vec<EarlierLaunch>,
    /// The time between the first and the last start within a slot; absent where no slot counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<StartSpread>,
}

/// A run that is in a sum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SumMember {
    /// The host, and its rank where it has one.
    pub name: String,
    /// Id of the run.
    pub run_id: String,
    /// The most by which its clock may differ from that of the first member, in nanoseconds, after
    /// what is known of the difference was taken away.
    pub bound_ns: u64,
    /// The source of the offset between its clock and that of the first member.
    pub clock: ClockBasis,
    /// Slots that it did not measure on all of its targets, which are in no sum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<u32>,
    /// Paths of the targets that did not measure a slot which another of its targets did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_targets: Vec<String>,
    /// Bytes that its disks counted as a share of those that it asked for, of the workload where
    /// both differ most; absent where its disks count nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounted: Option<f64>,
}

/// The source of the offset between two clocks.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ClockBasis {
    /// Both times come from the same clock.
    SameClock,
    /// Fences of a launcher: nobody leaves one before the last has entered it.
    Fences,
    /// The bounds of both wall clocks.
    WallClocks,
}

/// A run that is not in a sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// The host, and its rank where it has one.
    pub name: String,
    /// The reason for leaving it out.
    pub reason: Reason,
}

/// The storage of the members of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SumStorage {
    /// Each member has its own disks.
    #[default]
    Separate,
    /// All of them use one storage.
    Shared,
}

/// Figures of all members together in the slots of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSum {
    /// Name of the workload.
    pub workload: String,
    /// The kind of operation.
    pub op: OpKind,
    /// Slots in the sum: those that all members measured at the same time.
    pub slots: usize,
    /// Operations per second of all members; the interval is Student's t over the slots.
    pub iops: Estimate,
    /// Bytes per second of all members.
    pub throughput: Estimate,
    /// The part of the slots in which surely all members measured: the rates are of that part.
    pub overlap: f64,
    /// The latencies of whole slots of all members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latencies: Option<FleetLatencies>,
}

/// A workload that has no sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UndecidedSum {
    /// Name of the workload.
    pub workload: String,
    /// The host with such a figure, and its rank where it has one.
    pub name: String,
    /// The objection to its figure; the code is that of the finding.
    pub reason: Reason,
}

/// A launch before the one of a sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EarlierLaunch {
    /// The start of its first run in UTC, RFC 3339.
    pub started: String,
    /// The number of its runs.
    pub runs: usize,
}

/// The time between the first and the last start within a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartSpread {
    /// Nanoseconds from the first to the last start: the median over the slots.
    pub median_ns: u64,
    /// The longest of all slots, in nanoseconds.
    pub longest_ns: u64,
}

/// The latencies of one kind of operation, of several rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetLatencies {
    /// The kind of operation.
    pub op: OpKind,
    /// The number of latencies.
    pub count: u64,
    /// Percentiles, ascending; only those with at least ten latencies beyond.
    pub percentiles: Vec<PercentilePoint>,
}
