//! PostgreSQL servers: INSERTs of a temporary one (what is planned, what a slice measured, what the
//! record says), the settings that it tries, and what the user's own server counts of its I/O.

use crate::estimate::Estimate;
use crate::histogram::LatencyHistogram;
use crate::series::TimeSeries;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The major version in a server's version, such as 15 in `15.8` and 19 in `19beta1`; `None` where
/// it begins with no number.
pub fn major_version(version: &str) -> Option<u32> {
    let digits = version.split(|sign: char| !sign.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// The loads and trials of a temporary server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PostgresPlan {
    /// The directory of the server's programs.
    pub programs: String,
    /// The server's version, such as `15.8`.
    pub version: String,
    /// Each is measured once a round, in random order.
    pub loads: Vec<PostgresLoad>,
    /// Rounds before the workloads of the plan, and as many after them.
    pub rounds: u32,
    /// Time of each load in a round, in nanoseconds. pgbench needs a second at least.
    pub slice_ns: u64,
    /// Settings that it tries afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialPlan>,
}

/// PostgreSQL's default of wal_sync_method on Linux (documentation of wal_sync_method).
pub const DEFAULT_SYNC_METHOD: &str = "fdatasync";
/// pgbench counts its time in seconds.
const PGBENCH_NS_MIN: u64 = 1_000_000_000;
/// Time to make a cluster, to start its server and to remove both.
pub const SERVER_START_NS: u64 = 5_000_000_000;

/// Room that a cluster needs: 40 MB of its own, up to 16 kept WAL segments, and the table.
const CLUSTER_BYTES: u64 = 512 << 20;
/// Room that trying settings needs in addition: a table of 256 MiB, its index, and WAL of INSERTs.
const TRIAL_BYTES: u64 = 512 << 20;

/// Room that a temporary server needs in the target, in bytes.
pub const fn server_room_bytes(tries_settings: bool) -> u64 {
    if tries_settings {
        CLUSTER_BYTES + TRIAL_BYTES
    } else {
        CLUSTER_BYTES
    }
}

impl PostgresPlan {
    /// Room that its server needs in the target, in bytes.
    pub fn room_bytes(&self) -> u64 {
        server_room_bytes(self.trial.is_some())
    }

    /// Time of its start, of all its slices and of the settings that it tries, in nanoseconds.
    pub fn time_ns(&self) -> u64 {
        let mut round_ns: u64 = 0;
        for load in &self.loads {
            round_ns += if load.pgbench {
                self.slice_ns.max(PGBENCH_NS_MIN)
            } else {
                self.slice_ns
            };
        }
        let trial_ns = self.trial.as_ref().map_or(0, |trial| trial.time_ns);
        let loads_ns = round_ns.saturating_mul(2 * u64::from(self.rounds));
        loads_ns
            .saturating_add(trial_ns)
            .saturating_add(SERVER_START_NS)
    }
}

/// INSERTs of single rows, each a separate transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PostgresLoad {
    /// Name in records and tables, such as `fdatasync-c4`.
    pub name: String,
    /// Sessions at the same time.
    pub clients: u32,
    /// True if a commit waits until it is durable (synchronous_commit).
    pub synchronous_commit: bool,
    /// The server's wal_sync_method while it runs.
    pub wal_sync_method: String,
    /// True if pgbench inserts, instead of diskproof.
    pub pgbench: bool,
}

impl PostgresLoad {
    /// The name of its figures in tables, comparisons and thresholds: `postgres-fdatasync-c4`.
    pub fn subject(&self) -> String {
        subject_of_load(&self.name)
    }
}

impl PostgresRecord {
    /// The load whose figures have this name; `None` without one.
    pub fn load_named(&self, subject: &str) -> Option<&LoadRow> {
        self.loads
            .iter()
            .find(|row| row.data.load.subject() == subject)
    }
}

/// The operation of a load in tables and labels. No kind of operation of a disk has this name, so
/// no threshold names it.
pub const INSERT: &str = "insert";

/// The name of the figures of a load of this name.
pub fn subject_of_load(load: &str) -> String {
    format!("postgres-{load}")
}

/// A load in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostgresSlice {
    /// INSERTs that the server acknowledged.
    pub commits: u64,
    /// INSERTs per second.
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

/// The slices of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadMeasurement {
    /// The load that they belong to.
    pub load: PostgresLoad,
    /// The slices in the order of time.
    pub slices: Vec<PostgresSlice>,
    /// The latency of all INSERTs; empty for pgbench.
    pub latency: LatencyHistogram,
}

/// The measurements of a temporary server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostgresMeasurement {
    /// The server's version, such as `15.8`.
    pub version: String,
    /// The loads in the order of the plan.
    pub loads: Vec<LoadMeasurement>,
    /// Settings that it tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<TrialMeasurement>,
    /// The time at which its last load ended, in nanoseconds after the start of the run; absent in
    /// records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
    /// Requests to the disk for which the server ended, by errno name, as its log tells them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// The longest time without an answer, in nanoseconds, that no latency of the loads has: before
    /// the server started, while its disk was tried, and while the server was started, wrote a
    /// checkpoint, tried a setting or ran pgbench. 0 below 0.5 s.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub silence_before_ns: u64,
}

/// The server of a record, and its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostgresRecord {
    /// The server's version, such as `15.8`.
    pub version: String,
    /// The loads in the order of the plan.
    pub loads: Vec<LoadRow>,
    /// Settings that it tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<TrialRow>,
    /// The time at which its last load ended, in nanoseconds after the start of the run; absent in
    /// records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
    /// Requests to the disk for which the server ended, by errno name, as its log tells them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// The longest time without an answer, in nanoseconds, that no latency of the loads has: before
    /// the server started, while its disk was tried, and while the server was started, wrote a
    /// checkpoint, tried a setting or ran pgbench. 0 below 0.5 s.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub silence_before_ns: u64,
}

/// A load of the server: what was measured, and its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadRow {
    /// The slices, from which the figures follow.
    pub data: LoadMeasurement,
    /// The figures, which follow from the slices and from this run's own commits.
    pub figures: LoadFigures,
}

/// The figures of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFigures {
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
}

/// A row of commits without a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnCommits {
    /// Name of the workload.
    pub workload: String,
    /// Commits per second.
    pub iops: Estimate,
}

/// The parts of the time of an INSERT, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InsertTime {
    /// Nanoseconds from one INSERT of a session to its next.
    pub insert_ns: f64,
    /// A commit of 8 kB without a server.
    pub disk_ns: f64,
    /// The time of an INSERT with synchronous_commit off: the server without the disk.
    pub server_ns: f64,
    /// Share of the time of an INSERT that the two explain.
    pub explained: f64,
}

/// The settings that a server tries, and the time for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialPlan {
    /// The settings, in order. Each gets the same share of the time that is left.
    pub trials: Vec<PlannedTrial>,
    /// Longest time of all of them with the making of the table, in nanoseconds.
    pub time_ns: u64,
    /// The most pairs of a setting.
    pub pairs_max: u32,
    /// Size of the table that is scanned.
    pub table_bytes: u64,
}

/// A setting and its two values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedTrial {
    /// The name in postgresql.conf.
    pub setting: String,
    /// The server's default value.
    pub default: String,
    /// The other value; absent where the INSERTs of the same run decide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
    /// The load that is measured with either value.
    pub load: TrialLoad,
    /// Sessions at the same time.
    pub clients: u32,
}

/// A load that a setting acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialLoad {
    /// Bitmap heap scans of 256 rows on as many pages.
    BitmapScan,
    /// ANALYZE, which samples pages of the whole table.
    Analyze,
    /// A join with half of the table, which the planner makes by index or by a scan.
    Join,
    /// The whole table in order.
    SequentialScan,
    /// INSERTs of single rows, each committed.
    Inserts,
}

impl TrialLoad {
    /// True if it reads a table that is larger than the server's cache.
    pub fn is_scan(self) -> bool {
        self != Self::Inserts
    }

    /// The unit of its rate, for tables.
    pub fn unit(self) -> &'static str {
        match self {
            Self::BitmapScan | Self::Analyze | Self::SequentialScan => "pages/s",
            Self::Join => "joins/s",
            Self::Inserts => "INSERTs/s",
        }
    }

    /// The load as words of a sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::BitmapScan => "bitmap heap scan",
            Self::Analyze => "ANALYZE",
            Self::Join => "join",
            Self::SequentialScan => "sequential scan",
            Self::Inserts => "INSERTs",
        }
    }
}

/// Rates with the two values, one slice after the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialPair {
    /// Rate with the default, per second.
    pub default_rate: f64,
    /// Rate with the other value, per second.
    pub candidate_rate: f64,
}

/// The pairs of a setting: one slice with the default, one with the other value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialMeasurement {
    /// The setting, with the value that was tried.
    pub trial: PlannedTrial,
    /// The pairs in the order of time.
    pub pairs: Vec<TrialPair>,
    /// The reason why it was not tried; absent where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
    /// Bytes that the server read from files.
    pub asked_bytes: u64,
    /// Bytes that the disks read meanwhile; `None` where they cannot be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// The server's plan for the join, with the default and with the other value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plans: Option<[String; 2]>,
}

/// The answer for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialOutcome {
    /// The other value is faster, by more than the margin.
    Faster,
    /// The two differ by less than the margin.
    Same,
    /// The other value is slower, by more than the margin.
    Slower,
    /// The interval leaves it open.
    Undecided,
    /// The reads did not all come from the disk, or nothing tells.
    Unproven,
    /// No answer: it was not tried.
    Untested,
}

/// The speed with the other value over that with the default.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialGain {
    /// The ratio of the rates: the geometric mean over pairs.
    pub value: f64,
    /// Lower end of its 95 % interval.
    pub low_95: f64,
    /// Upper end of the interval.
    pub high_95: f64,
}

/// A setting that the server tried: what was measured, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRow {
    /// The pairs, from which the figures follow.
    pub data: TrialMeasurement,
    /// The answer, which follows from the pairs.
    pub figures: TrialFigures,
}

/// The answer for a setting, with the gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialFigures {
    /// The answer.
    pub outcome: TrialOutcome,
    /// The speed with the other value over that with the default; absent with fewer than three
    /// pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<TrialGain>,
    /// Bytes that the disk read for each byte that the server read from files; absent for INSERTs,
    /// and where the disk's reads cannot be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_share: Option<f64>,
}

/// Counters of one kind of process and one kind of object (pg_stat_io), since the start of the
/// server or between two readings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServerIo {
    /// Kind of process: `client backend`, `checkpointer` (backend_type of pg_stat_io).
    pub backend: String,
    /// `relation`, `temp relation` or `wal`.
    pub object: String,
    /// The server's word for the reason: `normal`, `vacuum`, `bulkread`, `bulkwrite`, `init`.
    pub context: String,
    /// Reads that the server requested from the kernel.
    pub read_ops: u64,
    /// Bytes of these reads.
    pub read_bytes: u64,
    /// Time spent in them, where the server measures it (track_io_timing).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ns: Option<u64>,
    /// Writes that the server passed to the kernel, which sends them to the disk later.
    pub write_ops: u64,
    /// Bytes of these writes.
    pub write_bytes: u64,
    /// Time spent in them, where the server measures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_ns: Option<u64>,
    /// Extensions of a table or an index.
    pub extend_ops: u64,
    /// Bytes of these extensions.
    pub extend_bytes: u64,
    /// Syncs of files; absent where the server does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsyncs: Option<u64>,
    /// Pages that were in the server's buffers; absent where it does not count them here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<u64>,
    /// Pages that left the buffers for others; absent where it does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evictions: Option<u64>,
}

/// The object that holds the write-ahead log in pg_stat_io since PostgreSQL 18.
pub const WAL_OBJECT: &str = "wal";

impl ServerIo {
    /// Bytes of writes and extensions.
    pub fn written_bytes(&self) -> u64 {
        self.write_bytes.saturating_add(self.extend_bytes)
    }

    /// Bytes in both directions.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.written_bytes())
    }

    /// True of the write-ahead log.
    pub fn is_wal(&self) -> bool {
        self.object == WAL_OBJECT
    }

    /// True if nothing was counted.
    pub fn is_idle(&self) -> bool {
        let counts = [self.read_ops, self.write_ops, self.extend_ops];
        let others = [self.fsyncs, self.hits, self.evictions];
        counts.iter().all(|count| *count == 0)
            && others
                .iter()
                .all(|count| count.is_none_or(|count| count == 0))
    }
}

/// Counters of the write-ahead log (pg_stat_wal).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServerWal {
    /// Bytes of log records.
    pub generated_bytes: u64,
    /// Bytes that the server wrote for them: whole pages, some of them several times. Before
    /// PostgreSQL 18 at least these.
    pub write_bytes: u64,
    /// Writes; absent where the server does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_ops: Option<u64>,
    /// Syncs; absent where the server does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syncs: Option<u64>,
    /// Time spent in syncs, where the server measures it (track_wal_io_timing).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_ns: Option<u64>,
}

/// All counters of a server at one moment, or between two.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerCounters {
    /// One row for each kind of process and object; rows without any I/O are left out.
    pub io: Vec<ServerIo>,
    /// Counters of the write-ahead log.
    pub wal: ServerWal,
    /// Bytes of temporary files, counted when a file is closed.
    pub temp_bytes: u64,
    /// Bytes of a page of tables (block_size); `None` where it is not known.
    pub page_bytes: Option<u64>,
    /// The times that the server measured when it was read, also those of rows without any I/O.
    pub timed: MeasuredTimes,
}

/// The times that a server measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeasuredTimes {
    /// Those of reads and writes of tables (track_io_timing).
    pub io: bool,
    /// Those of writes and syncs of the write-ahead log (track_wal_io_timing).
    pub wal: bool,
}

impl MeasuredTimes {
    /// True if the times of this row are measured.
    pub fn of_row(self, row: &ServerIo) -> bool {
        if row.is_wal() { self.wal } else { self.io }
    }
}

impl ServerCounters {
    /// Bytes that the server requested from the kernel.
    pub fn read_bytes(&self) -> u64 {
        total(self.io.iter().map(|io| io.read_bytes))
    }

    /// Returns the share of the pages that were in the server's buffers, from 0 to 1, over all
    /// processes for which it counts such pages. `None` without one, or where the size of a page is
    /// not known: since PostgreSQL 18 one read can be of several pages.
    pub fn hit_share(&self) -> Option<f64> {
        let page_bytes = self.page_bytes.filter(|bytes| *bytes > 0)?;
        let mut hits: u64 = 0;
        let mut read_bytes: u64 = 0;
        for io in &self.io {
            if let Some(pages) = io.hits {
                hits = hits.saturating_add(pages);
                read_bytes = read_bytes.saturating_add(io.read_bytes);
            }
        }
        if hits == 0 {
            return None;
        }
        let pages_read = read_bytes as f64 / page_bytes as f64;
        Some(hits as f64 / (hits as f64 + pages_read))
    }

    /// Bytes that it passed to the kernel: tables, log and temporary files.
    pub fn write_bytes(&self) -> u64 {
        let tables = self.io.iter().filter(|io| !io.is_wal());
        total(tables.map(ServerIo::written_bytes))
            .saturating_add(self.wal.write_bytes)
            .saturating_add(self.temp_bytes)
    }
}

/// The sum, or the largest number where the sum of counts from outside is larger.
fn total(parts: impl Iterator<Item = u64>) -> u64 {
    parts.fold(0, u64::saturating_add)
}

/// Bytes that the server moved, beside those that its devices moved in the same time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedLoad {
    /// Kernel names of the devices below the server's data.
    pub devices: Vec<String>,
    /// The time of both, in nanoseconds.
    pub wall_ns: u64,
    /// Bytes that the server requested.
    pub read_bytes: u64,
    /// Bytes that the devices read.
    pub device_read_bytes: u64,
    /// Bytes that the server passed on.
    pub write_bytes: u64,
    /// Bytes that the devices wrote.
    pub device_write_bytes: u64,
}

/// Counters of the server over one step of watching.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerStep {
    /// Length of the step in nanoseconds.
    pub length_ns: u64,
    /// Counters of the step alone; the rows with most bytes first.
    pub counters: ServerCounters,
    /// Alongside the devices, over the latest steps; `None` where they are not known.
    pub explained: Option<ExplainedLoad>,
}

/// The server in a step of `watch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerView {
    /// Connected; two readings are needed for a rate.
    Waiting,
    /// The latest step that was read.
    Step(ServerStep),
    /// There is no answer.
    Lost {
        /// A clause with the reason.
        why: String,
        /// True if the server is asked again.
        is_retried: bool,
    },
}

/// Counters of a server over the time in which its disks were watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedServer {
    /// The address at which it was reached: a socket's directory, or host and port.
    pub address: String,
    /// The server's version, such as `18.4`.
    pub version: String,
    /// The time that its counters cover, in nanoseconds.
    pub wall_ns: u64,
    /// Counters of each kind of process, the most bytes first.
    pub io: Vec<ServerIo>,
    /// Counters of the write-ahead log.
    pub wal: ServerWal,
    /// Bytes of temporary files.
    pub temp_bytes: u64,
    /// Bytes of a page of tables; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_bytes: Option<u64>,
    /// Alongside the devices; absent where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<ExplainedLoad>,
    /// Reads and their bytes over time.
    pub reads: TimeSeries,
    /// Writes and their bytes over time, with the log and temporary files.
    pub writes: TimeSeries,
    /// Syncs of the log and its written bytes over time.
    pub wal_writes: TimeSeries,
    /// Things that could not be seen, with the reason, each a clause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}
