//! Judgements in plain words, with the evidence that they rest on: findings, and what limited the
//! rate of a workload. `analysis` decides, printers show them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a finding weighs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know; the figures are valid.
    Note,
    /// The figures may not mean what they seem to.
    Warning,
    /// The figures are wrong, or the disk is.
    Failure,
}

/// A judgement on a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable name, such as `served-from-cache`.
    pub code: String,
    /// What was found, in at most eight words; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its weight.
    pub severity: Severity,
    /// One or two sentences a database administrator understands, with the figures.
    pub claim: String,
    /// What was observed; never empty.
    pub evidence: Vec<Evidence>,
    /// What to do about it.
    pub remedy: String,
    /// A command that shows the same thing, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproduce: Option<String>,
}

/// One observation that a finding rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Where in the record it stands, as a JSON pointer: `/measurements/2/device/accounted`.
    pub path: String,
    /// The value seen.
    pub observed: f64,
    /// The value it was compared with.
    pub threshold: f64,
    /// Unit of both; `1` for a ratio.
    pub unit: String,
}

impl Finding {
    /// The title, or the code where an earlier version gave none.
    pub fn heading(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.code)
    }

    /// Whether it rests on figures that were measured, and not on the disk's health alone.
    pub fn concerns_figures(&self) -> bool {
        let mut paths = self.evidence.iter().map(|evidence| &evidence.path);
        paths.any(|path| !path.starts_with("/health/"))
    }

    /// Whether its evidence points into a measurement.
    pub fn concerns(&self, measurement: usize) -> bool {
        let root = format!("/measurements/{measurement}");
        let rests = self.evidence.iter();
        let mut rests = rests.filter_map(|evidence| evidence.path.strip_prefix(&root));
        rests.any(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// The limit of a rate, with what shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
