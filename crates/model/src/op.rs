//! The kinds of operation. Public as part of `measurement`; plans need them too.

use serde::{Deserialize, Serialize};

/// Kinds of operation; every measurement has figures for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OpKind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A trim: the target may forget the content of a block (discard, hole punch).
    Trim,
    /// An fsync or fdatasync.
    Sync,
    /// A write and the sync that made it durable, from before the write to the return of the sync.
    /// Only where every write is synced.
    Commit,
}

impl OpKind {
    /// The word used in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Sync => "sync",
            Self::Commit => "commit",
        }
    }
}
