//! What limited the rate of a workload. `analysis` decides, printers show it.

use crate::finding::Evidence;
use serde::{Deserialize, Serialize};

/// The limit of a rate, with what shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitedBy {
    /// The limit.
    pub limit: RateLimit,
    /// What shows it, in a few words.
    pub why: String,
    /// The observations; empty where the limit is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// What can limit a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RateLimit {
    /// The device: more requests in flight do not raise the rate.
    Device,
    /// Making writes durable.
    Flush,
    /// The link to the device.
    Link,
    /// CPU time.
    Cpu,
    /// A cap of the volume, the hypervisor or a control group.
    Cap,
    /// The number of requests in flight: more of them raise the rate.
    QueueDepth,
    /// The filesystem passes on one request at a time.
    FilesystemLock,
    /// The program itself.
    Program,
    /// The rate that was requested.
    RequestedRate,
    /// Nothing shows it.
    Unknown,
}

impl RateLimit {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Flush => "flush",
            Self::Link => "link",
            Self::Cpu => "CPU",
            Self::Cap => "cap of the volume or control group",
            Self::QueueDepth => "queue depth",
            Self::FilesystemLock => "filesystem lock",
            Self::Program => "the program itself",
            Self::RequestedRate => "requested rate",
            Self::Unknown => "unknown",
        }
    }
}
