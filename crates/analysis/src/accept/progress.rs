//! How far an acceptance test is.

/// How far a test is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestProgress {
    /// What is done now, such as `writing`.
    pub step: &'static str,
    /// The share of all bytes that is done, 0 to 1.
    pub share: f64,
    /// Bytes that are left.
    pub left_bytes: u64,
}
