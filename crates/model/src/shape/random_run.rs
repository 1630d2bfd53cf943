//! Runs of operations at or behind a random offset.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Several operations for each random offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RandomRun {
    /// Operations for each offset, above 1.
    pub run_ops: u32,
    /// The place of the operations after the random one.
    pub follow: RunFollow,
}

/// The place of the operations after a random one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunFollow {
    /// Each directly behind the one before.
    Sequential,
    /// Each to the same offset.
    Identical,
}
