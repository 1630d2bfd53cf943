//! CPU time and bytes. Public as part of `measurement`; its windows need them too.

use serde::{Deserialize, Serialize};

/// CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuTime {
    /// In user mode, nanoseconds.
    pub user_ns: u64,
    /// In the kernel, nanoseconds.
    pub system_ns: u64,
}

/// Bytes by direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ByteCount {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

impl ByteCount {
    /// Both directions.
    pub fn total(self) -> u64 {
        self.read_bytes + self.write_bytes
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
