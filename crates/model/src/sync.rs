//! The call or the flag that makes writes durable, and the number of writes that each call covers.
//! Public as part of `plan`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The way in which writes are made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "policy")]
pub enum SyncPolicy {
    /// Writes are not made durable.
    #[default]
    None,
    /// Once, after the last write; its time counts towards the throughput.
    AtEnd,
    /// A sync after every n-th write of a worker.
    Every {
        /// n; 1 syncs each write.
        writes: u32,
        /// The system call.
        call: SyncCall,
    },
    /// The write itself returns when its data is durable.
    WithWrite {
        /// The flag that asks for it.
        flag: WriteFlag,
    },
    /// A sync after each write, which serves every write that ended before it started (group
    /// commit).
    Shared {
        /// The system call.
        call: SyncCall,
    },
    /// A sync after each write, through another open file description.
    OtherDescriptor {
        /// The system call.
        call: SyncCall,
    },
}

impl SyncPolicy {
    /// True if each write is durable when its operation ends.
    pub fn is_per_write(self) -> bool {
        match self {
            Self::None | Self::AtEnd => false,
            Self::Every { writes, .. } => writes <= 1,
            Self::WithWrite { .. } | Self::Shared { .. } | Self::OtherDescriptor { .. } => true,
        }
    }

    /// True if writes are made durable as they go, not only at the end or never.
    pub fn is_ongoing(self) -> bool {
        !matches!(self, Self::None | Self::AtEnd)
    }

    /// True if only requests that block a thread of their own can do it.
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

/// The steps of sync_file_range(2), which writes a part of a file back. It makes nothing durable:
/// the disk flushes no cache, and the file system records no new blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RangeSync {
    /// It waits for the pages that are being written back already.
    pub wait_before: bool,
    /// It writes the changed pages back.
    pub write: bool,
    /// It waits for those.
    pub wait_after: bool,
}

impl RangeSync {
    /// Every changed page has reached the device when the call returns.
    pub const COMPLETE: Self = Self {
        wait_before: true,
        write: true,
        wait_after: true,
    };
    /// The call does nothing.
    pub const NOTHING: Self = Self {
        wait_before: false,
        write: false,
        wait_after: false,
    };
}

/// The flag with which a write returns only when its data is durable.
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
