//! What makes writes durable: which call, or which flag, and after how many of them. Public as part
//! of `plan`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How writes are made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "policy")]
pub enum SyncPolicy {
    /// Never.
    #[default]
    None,
    /// Once, after the last write; its time counts towards the throughput.
    AtEnd,
    /// After every n-th write of a worker.
    Every {
        /// n; 1 syncs each write.
        writes: u32,
        /// Which call.
        call: SyncCall,
    },
    /// The write itself returns when its data is durable.
    WithWrite {
        /// What asks for it.
        flag: WriteFlag,
    },
    /// After each write, by a sync that serves every write that ended before it started (group
    /// commit).
    Shared {
        /// Which call.
        call: SyncCall,
    },
    /// After each write, through another open file description.
    OtherDescriptor {
        /// Which call.
        call: SyncCall,
    },
}

impl SyncPolicy {
    /// Whether each write is durable when its operation ends.
    pub fn is_per_write(self) -> bool {
        match self {
            Self::None | Self::AtEnd => false,
            Self::Every { writes, .. } => writes <= 1,
            Self::WithWrite { .. } | Self::Shared { .. } | Self::OtherDescriptor { .. } => true,
        }
    }

    /// Whether only requests that block a thread of their own can do it.
    pub fn needs_threads(self) -> bool {
        match self {
            Self::None | Self::AtEnd | Self::Every { .. } => false,
            Self::WithWrite { flag } => flag == WriteFlag::RwfDsync,
            Self::Shared { .. } | Self::OtherDescriptor { .. } => true,
        }
    }
}

/// The call that makes writes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SyncCall {
    /// fsync(2).
    Fsync,
    /// fdatasync(2).
    Fdatasync,
}

impl SyncCall {
    /// The name of the call.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
        }
    }
}

/// What makes a write return only when its data is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WriteFlag {
    /// O_DSYNC of open(2): the data, and what is needed to read it. PostgreSQL's open_datasync.
    OpenDsync,
    /// O_SYNC of open(2): the data and all that describes the file. PostgreSQL's open_sync.
    OpenSync,
    /// RWF_DSYNC of pwritev2(2): as O_DSYNC, for one write.
    RwfDsync,
}

impl WriteFlag {
    /// The name under which the field knows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenDsync => "O_DSYNC",
            Self::OpenSync => "O_SYNC",
            Self::RwfDsync => "RWF_DSYNC",
        }
    }
}
