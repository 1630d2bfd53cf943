//! The real load of devices over some time, as `watch --record` saves it and `run --like` repeats
//! it.

use crate::estimate::Estimate;
use crate::op::{OpKind, PerOp};
use crate::postgres::ObservedServer;
use crate::series::TimeSeries;
use crate::watch::SeekMethod;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The load that other programs made while their disks were watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedRecord {
    /// Length of a step in nanoseconds.
    pub interval_ns: u64,
    /// The devices that were seen, in the order of the targets.
    pub devices: Vec<ObservedDevice>,
    /// Things that could not be seen, with the reason, each a clause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// Counters of a PostgreSQL server over the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ObservedServer>,
}

/// The load of one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedDevice {
    /// Index into `targets`.
    pub target: usize,
    /// Kernel name.
    pub name: String,
    /// Time for which it was seen, in nanoseconds.
    pub wall_ns: u64,
    /// Reads and writes that other programs made.
    pub ops: PerOp<ObservedOps>,
    /// Flushes, where the kernel counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush_ops: Option<u64>,
    /// Requests in flight, averaged over the time.
    pub queue_depth: f64,
    /// The most requests in flight at the end of a step, or on average over one.
    pub queue_depth_max: f64,
    /// The way in which the share of seeks is known; absent without requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeks: Option<SeekMethod>,
    /// The threads that sent most requests, the busiest first; empty where they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ObservedProcess>,
    /// Figures of the disk in an earlier run, where the history has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<MeasuredCapacity>,
    /// The load over that capacity, averaged over the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_share: Option<f64>,
}

impl ObservedDevice {
    /// Requests of both directions.
    pub fn requests(&self) -> u64 {
        self.ops.values().map(|op| op.count).sum()
    }

    /// Random requests over all requests; `None` without requests.
    pub fn seek_share(&self) -> Option<f64> {
        let requests = self.requests();
        let ops = self.ops.values();
        let weighted: f64 = ops.map(|op| op.seek_share * op.count as f64).sum();
        (requests > 0).then(|| (weighted / requests as f64).min(1.0))
    }

    /// Reads over all requests; `None` without requests.
    pub fn read_share(&self) -> Option<f64> {
        let reads = self.ops.get(&OpKind::Read).map_or(0, |op| op.count);
        let requests = self.requests();
        (requests > 0).then(|| reads as f64 / requests as f64)
    }

    /// Reads and writes per second.
    pub fn rate(&self) -> f64 {
        self.requests() as f64 * 1e9 / self.wall_ns.max(1) as f64
    }
}

/// One direction of the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedOps {
    /// Requests that the device completed.
    pub count: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Requests that were merged into others before they were sent.
    pub merges: u64,
    /// Requests per second.
    pub iops: Estimate,
    /// Bytes per second.
    pub throughput: Estimate,
    /// Mean time of a request in nanoseconds; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_mean_ns: Option<f64>,
    /// Random requests over all requests.
    pub seek_share: f64,
    /// Sizes of requests: of those that were traced, else the mean size of each step.
    pub sizes: Vec<ObservedSize>,
    /// Requests and bytes in each step.
    pub series: TimeSeries,
}

/// Requests of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedSize {
    /// Bytes of a request.
    pub block_bytes: u32,
    /// Requests at a random position.
    pub random: u64,
    /// Requests that continue another one.
    pub sequential: u64,
}

/// A thread that sent requests to a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedProcess {
    /// Process id.
    pub pid: u32,
    /// Short name (comm), of at most 15 bytes.
    pub name: String,
    /// Requests that were traced.
    pub requests: u64,
    /// Bytes that it read.
    pub read_bytes: u64,
    /// Bytes that it wrote.
    pub write_bytes: u64,
}

/// The most that a disk did in a run of the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredCapacity {
    /// Id of the run that measured it.
    pub run_id: String,
    /// Start of that run in UTC, RFC 3339.
    pub started: String,
    /// Verb of that run.
    pub verb: String,
    /// Reads per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<f64>,
    /// Bytes read per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes_per_second: Option<f64>,
    /// Writes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<f64>,
    /// Bytes written per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bytes_per_second: Option<f64>,
}

/// The observed load that a plan repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LikePlan {
    /// The run of `watch` that it was seen in.
    pub run_id: String,
    /// Kernel name of the device.
    pub device: String,
    /// Requests per second that it offers.
    pub rate: f64,
    /// Reads over all requests.
    pub read_share: f64,
    /// Random requests over all requests.
    pub seek_share: f64,
    /// Mean bytes of a request.
    pub block_mean_bytes: f64,
    /// Requests in flight, averaged over the time.
    pub queue_depth: f64,
}
