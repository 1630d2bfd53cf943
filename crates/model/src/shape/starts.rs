//! The times at which operations start.

use crate::op::OpKind;
use crate::units::format_duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rules for the starts of the operations of a workload.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StartTimes {
    /// The spacing of the starts of an open loop.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub arrivals: Arrivals,
    /// The greatest rate of one kind of operation of a mix. Where none of it is due, one of the
    /// other kind starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind_rate: Option<KindRate>,
    /// Pauses between operations; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<ThinkTime>,
    /// Nanoseconds by which it starts later than the others of its group.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub delay_ns: u64,
    /// The share of the operations of the workloads that run together with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowShare>,
    /// Its warm-up is its own; without it, a group has the longest one of its workloads.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_warmup: bool,
}

impl StartTimes {
    /// The settings in words: conditions of every figure.
    pub(super) fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        if self.arrivals == Arrivals::Poisson {
            facts.push("Poisson arrivals".to_owned());
        }
        if let Some(KindRate { kind, per_second }) = self.kind_rate {
            facts.push(format!("at most {per_second} {} per second", kind.plural()));
        }
        if let Some(think) = self.think {
            facts.push(think.fact());
        }
        if let Some(flow) = self.flow {
            facts.push(format!("weight {} in flow {}", flow.weight, flow.number));
        }
        if self.delay_ns > 0 {
            let delay = format_duration(self.delay_ns);
            facts.push(format!("started {delay} after the others"));
        }
        facts
    }
}

/// The greatest rate of a kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KindRate {
    /// The kind of operation.
    pub kind: OpKind,
    /// Operations per second, of all workers together.
    pub per_second: f64,
}

/// The spacing of the starts of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Starts come at equal intervals.
    #[default]
    Even,
    /// Independent of each other: a Poisson process.
    Poisson,
}

/// Pauses of each worker. Before a pause it waits for its requests in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkTime {
    /// Length of a pause in nanoseconds.
    pub pause_ns: u64,
    /// Operations from pause to pause; 0 where only time decides.
    pub pause_ops: u64,
    /// The operations that are counted until a pause.
    pub counted: ThinkCount,
    /// A pause also follows so many nanoseconds after the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<u64>,
}

impl ThinkTime {
    fn fact(&self) -> String {
        let pause = format_duration(self.pause_ns);
        match (self.pause_ops, self.busy_ns) {
            (0, Some(ns)) => format!("pauses of {pause} every {}", format_duration(ns)),
            (1, _) => format!("pauses of {pause} after each operation"),
            (ops, _) => format!("pauses of {pause} after every {ops} operations"),
        }
    }
}

/// The operations that lead to a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkCount {
    /// Operations that completed.
    Completed,
    /// Operations that started.
    Started,
}

/// A share of the operations that several workloads start together: each starts no more than its
/// share of those so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowShare {
    /// Number of the flow: workloads with the same number have shares of one another.
    pub number: u32,
    /// The weight of each worker.
    pub weight: u32,
    /// Nanoseconds for which a worker that is ahead pauses once nothing is in flight; with 0 it
    /// goes on as soon as it is not ahead any more.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub pause_ns: u64,
}
