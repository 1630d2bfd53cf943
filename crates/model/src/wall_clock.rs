//! The wall clock of a host that measures together with others, and how well it is known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// The wall clock as the kernel judges it: what a [`WallClock`] is made of. No record has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelClock {
    /// True if a time service keeps it synchronised.
    pub is_synchronised: bool,
    /// The most by which it may be wrong, in nanoseconds.
    pub error_max_ns: u64,
    /// As [`WallClock::apart_ns`].
    pub apart_ns: u64,
}
