//! The names of bonnie++'s tests, and what a report says of a run.

pub(super) const NAME: &str = "bonnie++";
pub(super) const EMULATES: &str = "bonnie++ 2.00a";
pub(super) const WRITE: &str = "block-write";
pub(super) const REWRITE: &str = "rewrite";
pub(super) const READ: &str = "block-read";
pub(super) const SEEKS: &str = "seeks";

/// The settings as the report shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunLabels {
    pub(super) machine: String,
    pub(super) concurrency: u32,
    pub(super) size_mib: u64,
    pub(super) chunk_bytes: u32,
    pub(super) seeks: u64,
    pub(super) seekers: u32,
    pub(super) seed: u64,
    pub(super) is_quiet: bool,
}
