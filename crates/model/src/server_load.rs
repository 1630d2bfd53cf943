//! What a PostgreSQL server counts of its own I/O, and how much of a disk's load that explains.

use crate::series::TimeSeries;
use serde::{Deserialize, Serialize};

/// What one kind of process did with one kind of object, since the start of the server or between
/// two readings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerIo {
    /// Kind of process: `client backend`, `checkpointer` (backend_type of pg_stat_io).
    pub backend: String,
    /// `relation`, `temp relation` or `wal`.
    pub object: String,
    /// Why: `normal`, `vacuum`, `bulkread`, `bulkwrite`, `init`.
    pub context: String,
    /// Reads that the server requested from the kernel.
    pub read_ops: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Time spent in them, where the server measures it (track_io_timing).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ns: Option<u64>,
    /// Writes that the server passed to the kernel, which sends them to the disk later.
    pub write_ops: u64,
    /// Their bytes.
    pub write_bytes: u64,
    /// Time spent in them, where the server measures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_ns: Option<u64>,
    /// Extensions of a table or an index.
    pub extend_ops: u64,
    /// Their bytes.
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
    /// Writes and extensions.
    pub fn written_bytes(&self) -> u64 {
        self.write_bytes.saturating_add(self.extend_bytes)
    }

    /// Bytes in both directions.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.written_bytes())
    }

    /// Whether it is the write-ahead log.
    pub fn is_wal(&self) -> bool {
        self.object == WAL_OBJECT
    }

    /// Whether anything was counted.
    pub fn is_idle(&self) -> bool {
        let counts = [self.read_ops, self.write_ops, self.extend_ops];
        let others = [self.fsyncs, self.hits, self.evictions];
        counts.iter().all(|count| *count == 0)
            && others
                .iter()
                .all(|count| count.is_none_or(|count| count == 0))
    }
}

/// The write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Without idle rows.
    pub io: Vec<ServerIo>,
    /// The write-ahead log.
    pub wal: ServerWal,
    /// Bytes of temporary files, counted when a file is closed.
    pub temp_bytes: u64,
}

impl ServerCounters {
    /// Bytes that the server requested from the kernel.
    pub fn read_bytes(&self) -> u64 {
        total(self.io.iter().map(|io| io.read_bytes))
    }

    /// Bytes that it passed to the kernel: tables, log and temporary files.
    pub fn write_bytes(&self) -> u64 {
        let tables = self.io.iter().filter(|io| !io.is_wal());
        total(tables.map(ServerIo::written_bytes))
            .saturating_add(self.wal.write_bytes)
            .saturating_add(self.temp_bytes)
    }
}

fn total(parts: impl Iterator<Item = u64>) -> u64 {
    parts.fold(0, u64::saturating_add)
}

/// What the server moved, alongside what its devices moved in the same time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// What the server did in a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerStep {
    /// Its length in nanoseconds.
    pub length_ns: u64,
    /// What was counted in it; the rows with most bytes first.
    pub counters: ServerCounters,
    /// Alongside the devices, over the latest steps; `None` where they are not known.
    pub explained: Option<ExplainedLoad>,
}

/// The server in a step of `watch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerView {
    /// Connected; two readings are needed for a rate.
    Waiting,
    /// The latest step.
    Step(ServerStep),
    /// There is no answer.
    Lost {
        /// Why.
        why: String,
        /// Whether it is asked again.
        is_retried: bool,
    },
}

/// What a server did while its disks were watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObservedServer {
    /// Where it was reached.
    pub address: String,
    /// Its version, such as `18.4`.
    pub version: String,
    /// The time that its counters cover, in nanoseconds.
    pub wall_ns: u64,
    /// What each kind of process did, the most bytes first.
    pub io: Vec<ServerIo>,
    /// The write-ahead log.
    pub wal: ServerWal,
    /// Bytes of temporary files.
    pub temp_bytes: u64,
    /// Alongside the devices; absent where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<ExplainedLoad>,
    /// Reads and their bytes over time.
    pub reads: TimeSeries,
    /// Writes and their bytes over time, with the log and temporary files.
    pub writes: TimeSeries,
    /// Syncs of the log and its written bytes over time.
    pub wal_writes: TimeSeries,
    /// What could not be seen, and why, each a clause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}
