//! The result of a test of many small files: its steps with their figures.

use crate::files::{CacheDrop, FileStepMeasurement};
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
}
