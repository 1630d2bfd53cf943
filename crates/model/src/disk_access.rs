//! What an earlier run knows of a rotating disk: how long an access takes across all of it.

use crate::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// Random accesses across a whole disk, measured by an earlier run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskAccess {
    /// The run that measured it.
    pub run_id: String,
    /// Its start in UTC, RFC 3339.
    pub started: String,
    /// Kernel name of the disk in this run.
    pub disk: String,
    /// Mean time of a random access, in nanoseconds.
    pub mean: Estimate,
}
