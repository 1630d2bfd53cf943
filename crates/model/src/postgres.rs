//! INSERTs of a temporary PostgreSQL server: what is planned, what a slice measured, and what the
//! record says. Knows no server.

use crate::estimate::Estimate;
use crate::histogram::LatencyHistogram;
use crate::trial::{TrialMeasurement, TrialPlan, TrialRecord};
use serde::{Deserialize, Serialize};

/// What a temporary server is to measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostgresPlan {
    /// The directory of the server's programs.
    pub programs: String,
    /// The server's version, such as `15.8`.
    pub version: String,
    /// Its loads. Each is measured once a round, in random order.
    pub loads: Vec<PostgresLoad>,
    /// Rounds before the workloads of the plan, and as many after them.
    pub rounds: u32,
    /// Time of each load in a round, in nanoseconds. pgbench needs a second at least.
    pub slice_ns: u64,
    /// Settings that it tries afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialPlan>,
}

/// pgbench counts its time in seconds.
const PGBENCH_NS_MIN: u64 = 1_000_000_000;
/// To make a cluster, to start its server and to remove both.
pub const SERVER_START_NS: u64 = 5_000_000_000;

impl PostgresPlan {
    /// Time of its start, of all its slices and of the settings that it tries, in nanoseconds.
    pub fn time_ns(&self) -> u64 {
        let slice_ns = |load: &PostgresLoad| {
            if load.pgbench {
                self.slice_ns.max(PGBENCH_NS_MIN)
            } else {
                self.slice_ns
            }
        };
        let round_ns: u64 = self.loads.iter().map(slice_ns).sum();
        let trial_ns = self.trial.as_ref().map_or(0, |trial| trial.time_ns);
        let loads_ns = round_ns.saturating_mul(2 * u64::from(self.rounds));
        loads_ns
            .saturating_add(trial_ns)
            .saturating_add(SERVER_START_NS)
    }
}

/// INSERTs of single rows, each a separate transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostgresLoad {
    /// Its name, such as `fdatasync-c4`.
    pub name: String,
    /// Sessions at the same time.
    pub clients: u32,
    /// Whether a commit waits until it is durable (synchronous_commit).
    pub synchronous_commit: bool,
    /// The server's wal_sync_method.
    pub wal_sync_method: String,
    /// Whether pgbench inserts, instead of diskproof.
    pub pgbench: bool,
}

/// A load in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostgresSlice {
    /// INSERTs that the server acknowledged.
    pub commits: u64,
    /// Their number per second.
    pub rate: f64,
    /// Bytes of WAL that the server made for them.
    pub wal_bytes: u64,
    /// Syncs of the WAL, where the server counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wal_syncs: Option<u64>,
    /// CPU time of the sessions of diskproof, in nanoseconds; absent for pgbench.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu_ns: Option<u64>,
}

/// What the slices of a load measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadMeasurement {
    /// The load.
    pub load: PostgresLoad,
    /// Its slices, in order.
    pub slices: Vec<PostgresSlice>,
    /// The latency of all INSERTs; empty for pgbench.
    #[serde(with = "crate::packed")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub latency: LatencyHistogram,
}

/// What a temporary server measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostgresMeasurement {
    /// The server's version, such as `15.8`.
    pub version: String,
    /// Its loads, in the order of the plan.
    pub loads: Vec<LoadMeasurement>,
    /// Settings that it tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<TrialMeasurement>,
}

/// What the record says of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostgresRecord {
    /// The server's version, such as `15.8`.
    pub version: String,
    /// Its loads, in the order of the plan.
    pub loads: Vec<LoadRecord>,
    /// Settings that it tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<TrialRecord>,
}

/// A load and its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadRecord {
    /// The load.
    pub load: PostgresLoad,
    /// INSERTs per second.
    pub iops: Estimate,
    /// Median latency of an INSERT, in nanoseconds; absent for pgbench, and with fewer than ten
    /// samples beyond it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_p50_ns: Option<u64>,
    /// 99 % are not longer, in nanoseconds; absent likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_p99_ns: Option<u64>,
    /// Longest latency, in nanoseconds; absent for pgbench.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_max_ns: Option<u64>,
    /// The whole distribution: HdrHistogram V2, deflated, base64; absent for pgbench.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hdr: Option<String>,
    /// Bytes of WAL that the server makes for one INSERT.
    pub wal_bytes_per_commit: f64,
    /// INSERTs that share a sync of the WAL, where the server counts syncs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits_per_sync: Option<f64>,
    /// CPU time of diskproof for one INSERT, in nanoseconds, a part of its latency; absent for
    /// pgbench.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu_ns: Option<f64>,
    /// The row of this run's own commits that it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnCommits>,
    /// The parts of the time of an INSERT; absent with several sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<InsertTime>,
    /// Its slices, in order.
    pub slices: Vec<PostgresSlice>,
}

/// A row of commits without a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnCommits {
    /// Its workload.
    pub workload: String,
    /// Commits per second.
    pub iops: Estimate,
}

/// Where the time of an INSERT goes, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InsertTime {
    /// From one INSERT of a session to its next.
    pub insert_ns: f64,
    /// A commit of 8 kB without a server.
    pub disk_ns: f64,
    /// The same INSERT with synchronous_commit off: the server without the disk.
    pub server_ns: f64,
    /// Share of the time of an INSERT that the two explain.
    pub explained: f64,
}
