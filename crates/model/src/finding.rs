//! Judgements in plain words, with the evidence that they rest on: findings, and what limited the
//! rate of a workload. `analysis` decides, printers show them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The weight of a finding.
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

/// The consequence of a finding for the figures that it concerns. Grades, thresholds, promises of a
/// data sheet, settings, limits, comparisons, trends and the monitoring plugin ask this, so that
/// all of them agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Meaning {
    /// The figures are not the disk's.
    NotTheDisk {
        /// The thing that the figures show instead.
        cause: Cause,
    },
    /// The figures are right, and the finding names what limited the rate.
    Limit {
        /// The thing that limited the rate.
        limit: RateLimit,
    },
    /// The measurement ended before its plan did.
    EndedEarly,
    /// Other programs used the disk or the processors meanwhile.
    OtherLoad {
        /// The thing that other programs used, too.
        used: SharedResource,
    },
    /// The figures are the disk's, but less certain than they look. A record that does not say what
    /// a finding means is read as this.
    #[default]
    Doubtful,
    /// The figures are right, and show a property of the disk.
    Disk,
    /// The disk reports it about itself; its figures are right.
    Health,
    /// The figures are right; the finding says how they came about.
    Note,
}

/// The thing that a figure shows where it does not show the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A cache above or below the counted disks answered.
    Cache,
    /// The kernel's page cache stood between the program and the disk.
    PageCache,
    /// The blocks had no content, which needs no access to the medium.
    EmptyBlocks,
    /// No counter of a disk confirms that it had the requests.
    Unconfirmed,
    /// Acknowledged writes may not be durable.
    NotDurable,
    /// A burst credit that ended paid for them: the sustained rate is lower.
    Burst,
    /// Operations failed, or returned other data than was written.
    Failed,
}

impl Cause {
    /// The reason in a few words, for the cell of a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::Cache => "a cache answered",
            Self::PageCache => "the page cache answered",
            Self::EmptyBlocks => "some blocks were empty",
            Self::Unconfirmed => "no disk counter confirms it",
            Self::NotDurable => "commits may not be durable",
            Self::Burst => "a burst that ended",
            Self::Failed => "operations failed",
        }
    }
}

/// A thing that several programs share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SharedResource {
    /// The disk itself.
    Disk,
    /// The processors, on this machine or on its host.
    Processors,
}

impl Meaning {
    /// The meaning in a few words, for a table.
    pub fn text(self) -> String {
        match self {
            Self::NotTheDisk { cause } => format!("not the disk's: {}", cause.words()),
            Self::Limit { limit } => format!("limit: {}", limit.as_str()),
            Self::EndedEarly => "ended early".to_owned(),
            Self::OtherLoad {
                used: SharedResource::Disk,
            } => "other load on the disk".to_owned(),
            Self::OtherLoad {
                used: SharedResource::Processors,
            } => "other load on the processors".to_owned(),
            Self::Doubtful => "doubtful".to_owned(),
            Self::Disk => "property of the disk".to_owned(),
            Self::Health => "health of the disk".to_owned(),
            Self::Note => "note".to_owned(),
        }
    }

    /// The reason why the figures may not decide anything: no grade, threshold, promise or setting.
    /// `None` where they may.
    pub fn objection(self) -> Option<Cause> {
        match self {
            Self::NotTheDisk { cause } => Some(cause),
            Self::Limit { .. }
            | Self::EndedEarly
            | Self::OtherLoad { .. }
            | Self::Doubtful
            | Self::Disk
            | Self::Health
            | Self::Note => None,
        }
    }

    /// True if the figures may be compared with those of another run. Two disks whose figures are
    /// both unconfirmed, or both of commits that may be lost, can still be told apart.
    pub fn allows_comparison(self) -> bool {
        match self {
            Self::NotTheDisk { cause } => match cause {
                Cause::Cache | Cause::EmptyBlocks | Cause::Burst | Cause::Failed => false,
                Cause::PageCache | Cause::Unconfirmed | Cause::NotDurable => true,
            },
            Self::Limit { limit } => !limit.is_of_the_program(),
            Self::OtherLoad { used } => used == SharedResource::Processors,
            Self::EndedEarly | Self::Doubtful | Self::Disk | Self::Health | Self::Note => true,
        }
    }

    /// True if the figures are less certain than their intervals.
    pub fn makes_doubtful(self) -> bool {
        match self {
            Self::EndedEarly | Self::OtherLoad { .. } | Self::Doubtful => true,
            Self::Limit { limit } => limit.is_of_the_program(),
            // Nothing shows that they are wrong.
            Self::NotTheDisk { cause } => cause == Cause::Unconfirmed,
            Self::Disk | Self::Health | Self::Note => false,
        }
    }
}

/// A judgement on a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable name, such as `served-from-cache`.
    pub code: String,
    /// The observation in at most eight words; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The weight, which decides the place in the list.
    pub severity: Severity,
    /// The consequence for the figures that it concerns.
    #[serde(default)]
    pub says: Meaning,
    /// One or two sentences a database administrator understands, with the figures.
    pub claim: String,
    /// Observations in the record; never empty.
    pub evidence: Vec<Evidence>,
    /// A sentence that says what to do about it.
    pub remedy: String,
    /// A command that shows the same thing, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproduce: Option<String>,
}

/// One observation that a finding rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// A place of the record as a JSON pointer: `/measurements/2/data/device/accounted`.
    pub path: String,
    /// The value at that place.
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

    /// True if its evidence points into the measurement with this index.
    pub fn concerns(&self, measurement: usize) -> bool {
        self.rests_on(&format!("/measurements/{measurement}"))
    }

    /// True if some of its evidence is at a place of the record, or below it.
    pub fn rests_on(&self, place: &str) -> bool {
        self.evidence
            .iter()
            .any(|evidence| match evidence.path.strip_prefix(place) {
                Some(rest) => rest.is_empty() || rest.starts_with('/'),
                None => false,
            })
    }

    /// True if it says that the disk failed: operations failed, it stopped answering, sectors or
    /// their content are lost, or it reports that it is failing. Such a disk is like no other,
    /// whatever its figures.
    pub fn is_failure_of_disk(&self) -> bool {
        let is_about_disk = match self.says {
            Meaning::NotTheDisk { cause } => cause == Cause::Failed,
            Meaning::EndedEarly | Meaning::Disk | Meaning::Health => true,
            Meaning::Limit { .. }
            | Meaning::OtherLoad { .. }
            | Meaning::Doubtful
            | Meaning::Note => false,
        };
        is_about_disk && self.severity == Severity::Failure
    }

    /// True if it is about the disk itself, and weighs enough to be named beside any figure: a
    /// failure, or a warning of its health, its stalls or its sectors.
    pub fn is_trouble_of_disk(&self) -> bool {
        let is_about_disk = match self.says {
            Meaning::EndedEarly | Meaning::Disk | Meaning::Health => true,
            // A full filesystem fails operations with a warning, and is no failing disk.
            Meaning::NotTheDisk { cause } => {
                cause == Cause::Failed && self.severity == Severity::Failure
            }
            Meaning::Limit { .. }
            | Meaning::OtherLoad { .. }
            | Meaning::Doubtful
            | Meaning::Note => false,
        };
        is_about_disk && self.is_serious()
    }

    /// True if it weighs enough to matter to the figures.
    pub fn is_serious(&self) -> bool {
        self.severity >= Severity::Warning
    }
}

/// The limit of a rate, with what shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitedBy {
    /// The thing that was the limit.
    pub limit: RateLimit,
    /// The observation that shows it, in a few words.
    pub why: String,
    /// The observations; empty where the limit is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// A thing that can limit a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateLimit {
    /// The device: more requests in flight do not raise the rate.
    Device,
    /// Syncs, which make writes durable.
    Flush,
    /// The link to the device.
    Link,
    /// Processor time.
    Cpu,
    /// A cap of the volume, the hypervisor or a control group.
    Cap,
    /// The number of requests in flight: more of them raise the rate.
    QueueDepth,
    /// The filesystem passes on one request at a time.
    FilesystemLock,
    /// This program.
    Program,
    /// The rate that was requested.
    RequestedRate,
    /// The record does not show it.
    Unknown,
}

impl RateLimit {
    /// True if the program or its processors were the limit, so that the disk can do more.
    pub fn is_of_the_program(self) -> bool {
        match self {
            Self::Cpu | Self::Program => true,
            Self::Device
            | Self::Flush
            | Self::Link
            | Self::Cap
            | Self::QueueDepth
            | Self::FilesystemLock
            | Self::RequestedRate
            | Self::Unknown => false,
        }
    }

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
