//! Runs of many hosts that measure at the same instants: when each host's slots were, by which
//! clock, and how well that clock is known.

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

/// The precision of the wall clock of the machine, of a run that measured together with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WallClock {
    /// The most by which it may have been wrong at the start of the run, in nanoseconds; `null`
    /// where nothing tells.
    pub bound_ns: Option<u64>,
    /// The source of that precision.
    pub source: WallSource,
    /// Start of the run on the wall clock and on the monotonic clock were read within so many
    /// nanoseconds.
    pub paired_within_ns: u64,
    /// The time by which the wall clock gained on the monotonic clock during the run, in
    /// nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gained_ns: Option<i64>,
    /// The time by which this program saw another time than the kernel, in nanoseconds: programs
    /// such as faketime(1) cause that.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub apart_ns: u64,
    /// Identifies the clock: the boot id of the kernel. Runs with the same one read the same clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
}

/// The wall clock as the kernel judges it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelClock {
    /// True if a time service keeps it synchronised.
    pub is_synchronised: bool,
    /// The most by which it may be wrong, in nanoseconds.
    pub error_max_ns: u64,
    /// The time by which this process sees another time than the kernel, in nanoseconds: programs
    /// such as faketime(1) cause that.
    pub apart_ns: u64,
}

/// The source of the bound of a wall clock's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WallSource {
    /// The user said it (`--clock-bound`).
    Given,
    /// The kernel, which a time service keeps synchronised: `maxerror` of adjtimex(2).
    Adjtimex,
    /// The time service chrony.
    Chronyc,
    /// Nobody: the clock is not synchronised.
    Nobody,
}
