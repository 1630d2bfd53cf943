//! What the engine measured of many small files.

use crate::files::{CacheDrop, FileRound, FileStep, FileSyncTime};
use crate::measurement::{ByteCount, CpuTime, OpMeasurement, StopReason};
use serde::{Deserialize, Serialize};

/// What the engine measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesMeasurement {
    /// The steps that began, in order.
    pub steps: Vec<FileStepMeasurement>,
    /// What came of dropping caches.
    pub caches: CacheDrop,
    /// Files of an earlier run that were found and removed before the first step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leftover_files: Option<u64>,
}

/// One step, all rounds together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileStepMeasurement {
    /// What was done.
    pub step: FileStep,
    /// Measured time in nanoseconds.
    pub wall_ns: u64,
    /// CPU time of this program meanwhile.
    pub cpu: CpuTime,
    /// Operations, latencies and errors. The series counts measured time only.
    pub op: OpMeasurement,
    /// The part of the latencies that is fsync.
    pub sync: FileSyncTime,
    /// The rounds.
    pub rounds: Vec<FileRound>,
    /// Bytes that the disks below moved meanwhile; `None` where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<ByteCount>,
    /// Why its last round ended.
    pub stopped: StopReason,
}
