//! The result of a test of many small files: its steps with their figures.

use crate::files::{CacheDrop, FileOperation, FileStepMeasurement, FileSyncTime, FilesStall};
use crate::row::{OpFigures, OpRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Many small files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilesRecord {
    /// The steps that began, in order.
    pub steps: Vec<FileStepRow>,
    /// The outcome of dropping caches.
    pub caches: CacheDrop,
    /// Files of an earlier run that was killed; they were removed before the first step. Absent
    /// where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leftover_files: Option<u64>,
    /// Times of 2 s or longer without an answer of the disk; the 100 longest, the longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<FilesStall>,
}

/// A step on many small files: what was measured, and its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileStepRow {
    /// The measurement of the step.
    pub data: FileStepMeasurement,
    /// The figures that follow from it: files per second as `iops`, and latencies of single files.
    /// The interval of the rate covers how much the rounds differ.
    pub figures: OpFigures,
}

impl FileStepRow {
    /// The operation of the step, with its figures.
    pub fn op(&self) -> OpRow<'_> {
        OpRow {
            data: &self.data.op,
            figures: &self.figures,
        }
    }

    /// The time of its latencies that is fsync; `None` where nothing was synced.
    pub fn sync_time(&self) -> Option<FileSyncTime> {
        if self.data.sync.total_ns() > 0 {
            Some(self.data.sync)
        } else {
            None
        }
    }

    /// CPU time of this program over the measured time; 1.0 is one CPU fully used.
    pub fn cpu_share(&self) -> f64 {
        (self.data.cpu.user_ns + self.data.cpu.system_ns) as f64 / self.data.wall_ns.max(1) as f64
    }
}

impl FilesRecord {
    /// The part of an operation's time that is fsync, over all its steps, whatever the order of
    /// their files; `None` where nothing was synced.
    pub fn sync_share(&self, operation: FileOperation) -> Option<FileSyncShare> {
        let mut sync = None;
        let mut busy_ns = 0.0;
        for step in &self.steps {
            if step.data.step.operation == operation {
                busy_ns += step.figures.latency.mean * step.data.op.count as f64;
                if let Some(own) = step.sync_time() {
                    let mut sum = sync.unwrap_or_default();
                    sum += own;
                    sync = Some(sum);
                }
            }
        }
        let sync: FileSyncTime = sync?;
        // Calls whose operation failed later are in no latency.
        let busy_ns = busy_ns.max(sync.total_ns() as f64).max(1.0);
        Some(FileSyncShare {
            file: sync.file_sync_ns as f64 / busy_ns,
            directory: sync.directory_sync_ns as f64 / busy_ns,
        })
    }
}

/// Parts of the time of an operation that are fsync; 1.0 is all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileSyncShare {
    /// The part of syncs of files.
    pub file: f64,
    /// The part of syncs of directories.
    pub directory: f64,
}
