//! The counts that `watch` reads from the kernel, and the figures of one of its steps.

use crate::postgres::ServerView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kernel's counters of one block device at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskReading {
    /// Kernel name, such as `sda`.
    pub name: String,
    /// Major and minor number.
    pub device: (u32, u32),
    /// Counters of reads since boot.
    pub read: DirectionCounters,
    /// Counters of writes since boot.
    pub write: DirectionCounters,
    /// Requests in flight now.
    pub in_flight: u64,
    /// Time in which a request was in flight, in milliseconds.
    pub busy_ms: u64,
    /// The times of all requests together, in milliseconds.
    pub queued_ms: u64,
    /// Flushes since boot; `None` on kernels that do not count them (before 5.5).
    pub flush_ops: Option<u64>,
}

/// The counters of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirectionCounters {
    /// Requests that completed.
    pub ops: u64,
    /// Requests that were merged into a neighbouring one before they were sent.
    pub merges: u64,
    /// Sectors of 512 bytes.
    pub sectors: u64,
    /// The times of all requests together, in milliseconds.
    pub ms: u64,
}

/// A request as the block layer sent it to a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedRequest {
    /// Major and minor number of the whole disk.
    pub device: (u32, u32),
    /// The direction of the transfer.
    pub direction: RequestDirection,
    /// First sector of 512 bytes on the disk.
    pub sector: u64,
    /// Length in sectors of 512 bytes.
    pub sectors: u32,
    /// The thread that sent it: of the program, or of the kernel where it writes back later.
    pub pid: u32,
    /// The name of that thread.
    pub name: String,
}

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestDirection {
    /// A read: from the device.
    Read,
    /// A write: to the device.
    Write,
}

/// One step of `watch`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WatchStep {
    /// End of the step, in nanoseconds after the start.
    pub elapsed_ns: u64,
    /// Length of the step in nanoseconds.
    pub length_ns: u64,
    /// The devices, in the kernel's order.
    pub devices: Vec<DeviceStep>,
    /// Devices that have vanished in this step.
    pub vanished: Vec<String>,
    /// Processes by the bytes that they moved on all disks together, the busiest first.
    pub processes: Vec<BusyProcess>,
    /// The PostgreSQL server; `None` where none is watched.
    pub server: Option<ServerView>,
}

/// The load of one device in a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceStep {
    /// Kernel name.
    pub name: String,
    /// Reads in the step.
    pub read: DirectionStep,
    /// Writes in the step.
    pub write: DirectionStep,
    /// Flushes, where the kernel counts them.
    pub flush_ops: Option<u64>,
    /// Requests in flight at the end of the step.
    pub in_flight: u64,
    /// Requests in flight, averaged over the step.
    pub depth: f64,
    /// Share of the requests that are seeks; `None` without requests.
    pub seeks: Option<SeekShare>,
    /// The threads that sent most requests; empty where they are not known.
    pub processes: Vec<BusyProcess>,
    /// The load over what the disk can do; `None` where that was never measured.
    pub load_share: Option<f64>,
}

impl DeviceStep {
    /// True if nothing happened.
    pub fn is_idle(&self) -> bool {
        self.read.ops == 0
            && self.write.ops == 0
            && self.in_flight == 0
            && self.flush_ops.unwrap_or(0) == 0
    }
}

/// One direction of a device in a step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DirectionStep {
    /// Requests that completed.
    pub ops: u64,
    /// Requests that were merged into others.
    pub merges: u64,
    /// Bytes that these requests moved.
    pub bytes: u64,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Mean time of a request, in nanoseconds; `None` without one.
    pub latency_ns: Option<f64>,
}

/// The share of seeks, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeekShare {
    /// Random requests over all requests.
    pub share: f64,
    /// The way in which it is known.
    pub method: SeekMethod,
}

/// The way in which the share of seeks is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SeekMethod {
    /// Counted from the position of each request, which the kernel's tracing reports.
    Traced,
    /// Estimated from the sizes of requests and from merges.
    Estimated,
}

/// A process and what it moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusyProcess {
    /// Process id.
    pub pid: u32,
    /// Short name (comm), of at most 15 bytes.
    pub name: String,
    /// Requests that were traced; `None` where bytes were counted instead.
    pub requests: Option<u64>,
    /// Bytes that it read in the step.
    pub read_bytes: u64,
    /// Bytes that it wrote in the step.
    pub write_bytes: u64,
}

impl BusyProcess {
    /// Bytes in both directions.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.write_bytes)
    }
}
