//! The threads that carry out the operations of a workload.

use crate::sync::WriteFlag;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The set-up of the threads of a workload.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSetup {
    /// Priority and processors of its threads; the system's where nothing is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<ThreadScheduling>,
    /// The flag with which the target is opened, where syncs follow writes that are durable
    /// already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_with: Option<WriteFlag>,
    /// The order of accesses that the kernel is told to expect; that of the workload without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<AccessAdvice>,
    /// The time for which written data is expected to stay; unknown without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_life: Option<WriteLife>,
    /// True if its buffers lie in ordinary pages, as those of the tool that it stands for.
    /// Otherwise they lie in huge pages where the kernel has them, which speeds up large requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ordinary_pages: bool,
}

impl ThreadSetup {
    /// The settings in words: conditions of every figure.
    pub(super) fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        if let Some(flag) = self.opened_with {
            facts.push(format!("opened with {}", flag.as_str()));
        }
        if let Some(advice) = self.advice {
            facts.push(format!("{} access advised", advice.as_str()));
        }
        if let Some(life) = self.write_life {
            facts.push(format!("{} life of data expected", life.as_str()));
        }
        if let Some(scheduling) = &self.scheduling {
            facts.extend(scheduling.facts());
        }
        if self.ordinary_pages {
            facts.push("buffers in ordinary pages".to_owned());
        }
        facts
    }
}

/// An order of accesses that the kernel is told to expect (posix_fadvise(2)). It decides how far
/// the kernel reads ahead into the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccessAdvice {
    /// The kernel finds out by itself.
    Normal,
    /// No read-ahead.
    Random,
    /// Double read-ahead.
    Sequential,
}

impl AccessAdvice {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Random => "random",
            Self::Sequential => "sequential",
        }
    }
}

/// The time for which written data is expected to stay (fcntl(2), F_SET_RW_HINT), which tells a
/// disk what to put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WriteLife {
    /// The shortest.
    Short,
    /// Longer.
    Medium,
    /// Longer still.
    Long,
    /// The longest.
    Extreme,
}

impl WriteLife {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Medium => "medium",
            Self::Long => "long",
            Self::Extreme => "extreme",
        }
    }
}

/// Priority and processors of threads.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ThreadScheduling {
    /// The processors that they may use; all without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u16>,
    /// The priority of their requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_priority: Option<IoPriority>,
    /// Added to their nice value.
    pub nice: i8,
}

impl ThreadScheduling {
    fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        if !self.cpus.is_empty() {
            let cpus: Vec<String> = self.cpus.iter().map(u16::to_string).collect();
            facts.push(format!("on the processors {}", cpus.join(", ")));
        }
        if let Some(IoPriority { class, level }) = self.io_priority {
            facts.push(format!("I/O priority {level} of class {class}"));
        }
        if self.nice != 0 {
            facts.push(format!("nice {}", self.nice));
        }
        facts
    }
}

/// The priority of requests, as ionice(1) sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoPriority {
    /// 1 real time, 2 best effort, 3 idle.
    pub class: u8,
    /// 0 to 7; the lowest comes first.
    pub level: u8,
}
