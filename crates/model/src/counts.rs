//! CPU time and bytes. Public as part of `measurement`; its windows need them too.

use crate::op::{BlockUse, OpKind};
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuTime {
    /// In user mode, nanoseconds.
    pub user_ns: u64,
    /// In the kernel, nanoseconds.
    pub system_ns: u64,
}

impl AddAssign for CpuTime {
    fn add_assign(&mut self, other: Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
    }
}

/// Bytes by direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ByteCount {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes trimmed. A trim moves no data.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub trim_bytes: u64,
}

impl ByteCount {
    /// Adds the bytes of operations of this kind.
    pub fn add(&mut self, kind: OpKind, bytes: u64) {
        match kind.blocks() {
            BlockUse::Reads => self.read_bytes += bytes,
            BlockUse::Writes => self.write_bytes += bytes,
            BlockUse::Drops => self.trim_bytes += bytes,
            BlockUse::Keeps => {}
        }
    }

    /// Bytes moved and trimmed.
    pub fn with_trims(self) -> u64 {
        self.total() + self.trim_bytes
    }

    /// Bytes moved in both directions.
    pub fn total(self) -> u64 {
        self.read_bytes + self.write_bytes
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.write_bytes = self.write_bytes.saturating_add(other.write_bytes);
        self.trim_bytes = self.trim_bytes.saturating_add(other.trim_bytes);
    }
}

/// Requests and the bytes that they moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MovedTotal {
    /// Requests, as this program sent them.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
}
