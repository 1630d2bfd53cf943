//! Says why a test of the power cut cannot begin or go on, and what to do.

use crate::client::LogError;
use diskproof_device::OpenError;
use std::io;

/// The reason why the test cannot begin or go on, in words for the user.
#[derive(Debug, thiserror::Error)]
pub enum CutError {
    /// The target cannot be opened or prepared.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log cannot be reached or used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The target is too small.
    #[error("{path}: {bytes} bytes are too few; the test writes {needed} bytes. {remedy}")]
    TooSmall {
        /// Path of the target.
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
        /// Path of the target.
        path: String,
        /// The step that failed, as a participle.
        doing: &'static str,
        /// The kernel's error.
        error: io::Error,
    },
    /// The target failed during the test.
    #[error(
        "{path}: {doing} failed: {error}. If you cut the power of this disk only, reconnect it and \
         verify"
    )]
    Target {
        /// Path of the target.
        path: String,
        /// The step that failed, as a participle.
        doing: &'static str,
        /// The kernel's error.
        error: io::Error,
    },
    /// The run ended without a stop in its log, so its files are still there.
    #[error(
        "{error}. The files of the run stay in {directory}, because the log does not know that it \
         ended. Verify the run, then remove them"
    )]
    FilesStay {
        /// The failure that ended the run.
        error: Box<CutError>,
        /// Path of the directory that the run made.
        directory: String,
    },
    /// The content of the target cannot be read; the path, and the kernel's error.
    #[error("{0}: cannot read it: {1}")]
    Read(String, io::Error),
    /// Nothing of the target can be read now; the path, and the kernel's error.
    #[error(
        "{0}: it cannot be read ({1}), so nothing is known about its writes. Reconnect the disk, \
         or restore the path to it, and verify again"
    )]
    NotReadable(String, io::Error),
    /// The system refused a thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
