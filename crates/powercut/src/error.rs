//! Why a test of the power cut cannot begin or go on.

use crate::client::LogError;
use diskproof_device::OpenError;
use std::io;

/// Why the test cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum CutError {
    /// The target cannot be opened or prepared.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The target is too small.
    #[error("{path}: {bytes} bytes are too few; the test writes {needed} bytes. {remedy}")]
    TooSmall {
        /// The target.
        path: String,
        /// The size of the target.
        bytes: u64,
        /// Bytes that the test covers.
        needed: u64,
        /// This sentence says what to do.
        remedy: &'static str,
    },
    /// The first pages cannot be written.
    #[error("{path}: {doing} failed: {error}; see dmesg")]
    Layout {
        /// The target.
        path: String,
        /// This step failed.
        doing: &'static str,
        /// The error.
        error: io::Error,
    },
    /// The target failed during the test.
    #[error(
        "{path}: {doing} failed: {error}. If you cut the power of this disk only, reconnect it and \
         verify"
    )]
    Target {
        /// The target.
        path: String,
        /// This step failed.
        doing: &'static str,
        /// The error.
        error: io::Error,
    },
    /// What the run wrote cannot be read.
    #[error("{0}: cannot read it: {1}")]
    Read(String, io::Error),
    /// The system refused a thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
