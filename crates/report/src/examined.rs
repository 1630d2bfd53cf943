//! What `info` knows of a target without measuring it.

use diskproof_model::finding::Finding;
use diskproof_model::health::DiskHealth;
use diskproof_model::target::{HostFacts, TargetIdentity};

/// A target, its machine, its health.
#[derive(Debug, Clone, Copy)]
pub struct Examined<'a> {
    /// The machine.
    pub host: &'a HostFacts,
    /// The target.
    pub identity: &'a TargetIdentity,
    /// The health that its disks report.
    pub health: &'a [DiskHealth],
    /// Findings, the most severe first.
    pub findings: &'a [Finding],
}
