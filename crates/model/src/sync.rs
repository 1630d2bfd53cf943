//! Says how writes are made durable: by which call or flag, and for how many writes at once. Public
//! as part of `plan`.

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
    /// It waits for the pages that this call writes back.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a policy says of itself.
    #[derive(Debug, PartialEq, Eq)]
    struct Answers {
        is_per_write: bool,
        is_ongoing: bool,
        needs_threads: bool,
    }

    fn assert_answers(policy: SyncPolicy, expected: [bool; 3]) {
        let [is_per_write, is_ongoing, needs_threads] = expected;
        let expected = Answers {
            is_per_write,
            is_ongoing,
            needs_threads,
        };
        let answers = Answers {
            is_per_write: policy.is_per_write(),
            is_ongoing: policy.is_ongoing(),
            needs_threads: policy.needs_threads(),
        };
        assert_eq!(answers, expected, "{policy:?}");
    }

    /// A queue cannot make a single write durable (RWF_DSYNC), nor share a sync among threads.
    #[test]
    fn policies_differ_in_when_writes_are_durable_and_in_what_can_do_it() {
        let call = SyncCall::Fdatasync;
        assert_answers(SyncPolicy::None, [false, false, false]);
        assert_answers(SyncPolicy::AtEnd, [false, false, false]);
        assert_answers(SyncPolicy::Every { writes: 1, call }, [true, true, false]);
        assert_answers(SyncPolicy::Every { writes: 2, call }, [false, true, false]);
        for (flag, needs_threads) in [
            (WriteFlag::OpenDsync, false),
            (WriteFlag::OpenSync, false),
            (WriteFlag::RwfDsync, true),
        ] {
            assert_answers(SyncPolicy::WithWrite { flag }, [true, true, needs_threads]);
        }
        assert_answers(SyncPolicy::Shared { call }, [true, true, true]);
        assert_answers(SyncPolicy::OtherDescriptor { call }, [true, true, true]);
    }
}
