//! States how far an acceptance test has come, for display.

/// The progress of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestProgress {
    /// The current step, such as `writing`.
    pub step: &'static str,
    /// The share of all bytes that were moved, 0 to 1.
    pub share: f64,
    /// The bytes that are still to be moved.
    pub left_bytes: u64,
}
