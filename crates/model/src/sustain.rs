//! A sustained load: what it does, round after round and after pauses, and what it found of the
//! rate that lasts.

use crate::estimate::Estimate;
use crate::health::CountedDisk;
use crate::window::MovedTotal;
use crate::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A load without a pause, and the same again after pauses where its rate fell. The list of
/// workloads holds, in order: the precondition where there is one, the load, and one for each
/// pause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SustainPlan {
    /// The time of a round, in nanoseconds. The load has one round after the other.
    pub round_ns: u64,
    /// The pauses after a fall, in nanoseconds, each followed by its workload.
    pub pauses_ns: Vec<u64>,
    /// Bytes that the precondition writes at random before the load; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition_bytes: Option<u64>,
    /// The share by which the rate may fall before the load ends, such as 0.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_at_drop: Option<f64>,
    /// Bytes that all workloads may move together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_bytes: Option<u64>,
}

impl SustainPlan {
    /// The workload that writes the whole disk before the load.
    pub fn precondition<'a>(&self, list: &'a [Workload]) -> Option<&'a Workload> {
        self.precondition_bytes?;
        list.first()
    }

    /// The workload in this list that is the load; `None` where the list has none of its name.
    pub fn load<'a>(&self, list: &'a [Workload]) -> Option<&'a Workload> {
        list.get(usize::from(self.precondition_bytes.is_some()))
    }

    /// The pauses, each with the workload after it.
    pub fn after_pauses<'a>(&self, list: &'a [Workload]) -> Vec<AfterPause<'a>> {
        let first = 1 + usize::from(self.precondition_bytes.is_some());
        let workloads = list.get(first..).unwrap_or_default();
        let mut pauses = Vec::new();
        for (pause_ns, workload) in self.pauses_ns.iter().zip(workloads) {
            pauses.push(AfterPause {
                pause_ns: *pause_ns,
                workload,
            });
        }
        pauses
    }

    /// The longest that the pauses and what follows them take, in nanoseconds.
    pub fn recovery_ns(&self, list: &[Workload]) -> u64 {
        self.after_pauses(list)
            .iter()
            .map(|pause| pause.pause_ns + pause.workload.stop.time_ns.unwrap_or(0))
            .sum()
    }
}

/// A pause, and the workload after it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AfterPause<'a> {
    /// Nanoseconds for which nothing is sent.
    pub pause_ns: u64,
    /// The load that is measured after the pause.
    pub workload: &'a Workload,
}

/// The course of a sustained load: its falls, its recoveries and its steady state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SustainRecord {
    /// The workload of the load.
    pub workload: String,
    /// Nanoseconds for which it ran.
    pub time_ns: u64,
    /// Bytes and operations that it moved.
    pub moved: MovedTotal,
    /// Everything that the run had moved on its target until the end of the load, with what filled
    /// the scratch file: a larger burst credit would not have shown. Absent in what older
    /// versions saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_in_all: Option<MovedTotal>,
    /// Operations per second that last: those after the fall, or of the whole time.
    pub lasting: Estimate,
    /// The fall of the rate; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<RateDrop>,
    /// A fall of the rate while other programs used the disk, the processors were busy, the page
    /// cache answered, or the load came to slower places of a rotating disk, so that it may not be
    /// the disk's; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubtful_drop: Option<RateDrop>,
    /// The limiter that the fall shows; absent where it shows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<BucketFigures>,
    /// The rate after each pause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recoveries: Vec<Recovery>,
    /// The steadiness of the load at its end.
    pub steady_state: SteadyState,
    /// Writes before the load; absent where nothing was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition: Option<Precondition>,
    /// Counters of the disks before and after the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<CountedDisk>,
}

impl SustainRecord {
    /// The largest burst credit that would have shown, in requests and bytes.
    pub fn tested_credit(&self) -> MovedTotal {
        self.moved_in_all.unwrap_or(self.moved)
    }
}

/// A fall of the rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateDrop {
    /// Measured time of the load until it, in nanoseconds.
    pub at_ns: u64,
    /// Everything that the run had moved until it, with what filled the scratch file.
    pub moved: MovedTotal,
    /// Operations per second before it.
    pub before: f64,
    /// Operations per second after it.
    pub after: f64,
    /// The explanation of the fall.
    pub cause: DropCause,
}

impl RateDrop {
    /// The rate before the fall over that after it; `None` where nothing was done any more.
    pub fn factor(&self) -> Option<f64> {
        if self.after > 0.0 {
            Some(self.before / self.after)
        } else {
            None
        }
    }
}

/// The explanation of a fall of the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DropCause {
    /// A limiter had used up its credit: the rate after it is even, and all that passed later fits
    /// its refill.
    BurstCredit,
    /// A full write cache: the load only wrote, and was fast again after a pause.
    WriteCache,
    /// The disk throttled itself: its counters of that rose during the run.
    Heat,
    /// The control group limits the rate to what was left.
    ControlGroup,
    /// The link to the disk became slower during the run.
    Link,
    /// An EBS volume reports that its limit was exceeded.
    VolumeLimit,
    /// An EBS volume reports that the limit of its instance was exceeded.
    InstanceLimit,
    /// Nothing proves a cause.
    Unknown,
}

impl DropCause {
    /// The word for it in a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BurstCredit => "burst credit",
            Self::WriteCache => "write cache",
            Self::Heat => "heat",
            Self::ControlGroup => "control group",
            Self::Link => "link",
            Self::VolumeLimit => "limit of the volume",
            Self::InstanceLimit => "limit of the instance",
            Self::Unknown => "cause unknown",
        }
    }
}

/// A limiter with a credit, with the intervals of its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BucketFigures {
    /// The rate for ever.
    pub base: Estimate,
    /// The rate while there is credit.
    pub burst: Estimate,
    /// The credit beyond the refill: requests or bytes.
    pub credit: Estimate,
    /// True if the bucket may hold more than this credit; see `burst_credits`.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub credit_is_lower_bound: bool,
    /// The time in which the credit refills in a pause, in nanoseconds.
    pub refill: Estimate,
}

/// The rate after a pause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recovery {
    /// The workload that was measured after it.
    pub workload: String,
    /// The pause, in nanoseconds.
    pub pause_ns: u64,
    /// Operations per second of its first second or tenth.
    pub iops: f64,
    /// True if that is nearer to the rate before the fall than to that after it.
    pub is_back: bool,
    /// Bytes and operations until the rate fell again; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasted: Option<MovedTotal>,
}

/// Rounds of which the last decide whether a load is in its steady state, by the Performance Test
/// Specification of SNIA: the rates of five rounds differ by at most 20 % of their mean, and the
/// line through them by at most 10 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyState {
    /// The time of a round, in nanoseconds.
    pub round_ns: u64,
    /// Rounds that were measured.
    pub rounds: u64,
    /// The number, from 1, of the round that completed the first five steady rounds. Every later
    /// five rounds in a row are steady, too. Absent if the last five rounds are not steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached_at: Option<u64>,
    /// Highest minus lowest rate of the last five rounds, as a share of their mean; absent of
    /// fewer rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<f64>,
    /// Fall or rise of the line through the last five rounds, as a share of their mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slope: Option<f64>,
    /// True if the last five rounds are steady.
    pub is_steady: bool,
    /// The least further time that can decide it, in nanoseconds; absent where it is steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_ns: Option<u64>,
    /// Bytes that the load moves in that time at its last rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_bytes: Option<u64>,
}

/// The writes before the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Precondition {
    /// Bytes that one pass over the physical capacity writes.
    pub needed_bytes: u64,
    /// Bytes that this program wrote.
    pub written_bytes: u64,
    /// Bytes that the disk counted during the run; absent where it does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_bytes: Option<u64>,
}

impl Precondition {
    /// True if the whole pass was written.
    pub fn is_complete(&self) -> bool {
        self.written_bytes >= self.needed_bytes
    }
}
