//! The result of the search for the greatest depth at which most requests meet a latency limit.

use crate::finding::Cause;
use crate::measurement::{Measurement, OpKind};
use crate::shape::LatencyTarget;
use crate::window::LateRequests;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of the search for the greatest depth that keeps a latency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySearch {
    /// The latency that the requests had to keep to.
    pub target: LatencyTarget,
    /// The greatest depth at which they did; `null` where they did at none.
    pub depth: Option<u32>,
    /// True if the depth is known to be the greatest: the next greater depth was measured and the
    /// requests missed the latency there, or no greater depth was allowed. False where the disk
    /// stopped answering.
    pub is_settled: bool,
    /// The greatest depth that was allowed.
    pub depth_max: u32,
    /// The depths that were measured, ascending.
    pub trials: Vec<DepthTrial>,
    /// What answered instead of the disk, or why nothing shows that the disk did, as a finding on
    /// the trials that decide says; absent where the answer is the disk's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objection: Option<Cause>,
}

/// The requests of all kinds together, from those of each kind; a write that is synced counts with
/// its sync.
pub fn timed_requests(requests_of: impl Fn(OpKind) -> Option<LateRequests>) -> LateRequests {
    let commits = requests_of(OpKind::Commit);
    let mut sum = LateRequests::default();
    for kind in OpKind::REQUESTS {
        let requests = match commits {
            Some(commits) if kind == OpKind::Write => Some(commits),
            Some(_) | None => requests_of(kind),
        };
        sum = sum.plus(requests.unwrap_or_default());
    }
    sum
}

impl LatencySearch {
    /// Judges the measurements of these depths, which ascend. `measurements` may have any order,
    /// and may lack depths that were not reached. A depth at which nothing completed is no trial,
    /// and a disk that stopped answering settles nothing.
    pub fn judge(target: LatencyTarget, depths: &[u32], measurements: &[Measurement]) -> Self {
        let mut trials: Vec<DepthTrial> = measurements
            .iter()
            .map(|measurement| DepthTrial::judge(&target, measurement))
            .filter(|trial| trial.requests > 0)
            .collect();
        trials.sort_by_key(|trial| trial.depth);
        let depth = trials
            .iter()
            .take_while(|trial| trial.holds)
            .map(|trial| trial.depth)
            .max();
        let is_settled = match depths.iter().find(|planned| Some(**planned) > depth) {
            Some(next) => trials.iter().any(|trial| trial.depth == *next),
            None => true,
        };
        let has_hung = measurements
            .iter()
            .any(|measurement| measurement.hang.is_some());
        Self {
            target,
            depth,
            is_settled: is_settled && !has_hung,
            depth_max: depths.last().copied().unwrap_or_default(),
            trials,
            objection: None,
        }
    }

    /// True if the greatest depth is known, or that there is none, and the disk decided it.
    pub fn is_decided(&self) -> bool {
        self.is_settled && self.objection.is_none()
    }

    /// The trial at the depth that was found.
    pub fn found(&self) -> Option<&DepthTrial> {
        let depth = self.depth?;
        self.trials.iter().find(|trial| trial.depth == depth)
    }

    /// The shallowest trial at which the latency was not kept to.
    pub fn first_miss(&self) -> Option<&DepthTrial> {
        self.trials.iter().find(|trial| !trial.holds)
    }
}

/// A depth that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DepthTrial {
    /// The name of its workload.
    pub workload: String,
    /// Requests in flight of each job.
    pub depth: u32,
    /// Reads and writes that completed.
    pub requests: u64,
    /// Requests that took longer than the target.
    pub late: u64,
    /// True if that is no more than allowed.
    pub holds: bool,
}

impl DepthTrial {
    /// Compares the requests of a measurement with the target.
    pub fn judge(target: &LatencyTarget, measurement: &Measurement) -> Self {
        let LateRequests { requests, late } = timed_requests(|kind| {
            let op = measurement.ops.get(&kind)?;
            let latencies = op.seen_latencies();
            Some(LateRequests::count(latencies, target))
        });
        Self {
            workload: measurement.workload.name.clone(),
            depth: measurement.workload.depth,
            requests,
            late,
            holds: target.holds(requests, late),
        }
    }
}
