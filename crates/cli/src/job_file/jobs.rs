//! One job of fio as it stands behind a section: what it asks of the disk, in numbers. Knows no
//! target, and nothing of the other jobs.

use super::numbers::Amount;
use super::sections::SourceLine;
use crate::flags::EngineName;
use crate::workload::Rw;

/// One job.
#[derive(Debug, Clone)]
pub struct FioJob {
    /// Where its section begins.
    pub spot: SourceLine,
    /// Name of its section.
    pub section: String,
    /// Name in results.
    pub name: String,
    /// What the author says of it.
    pub description: Option<String>,
    /// What it does.
    pub rw: Rw,
    /// How an ordered walk goes on.
    pub gait: WalkOrder,
    /// Bytes per operation.
    pub blocks: JobBlocks,
    /// Requests in flight.
    pub depth: u64,
    /// Kernel interface.
    pub engine: EngineName,
    /// Copies of it.
    pub numjobs: u64,
    /// What the page cache does.
    pub cache: Cache,
    /// The part of the file, and what is done.
    pub extent: JobExtent,
    /// How likely each block is.
    pub law: OffsetLaw,
    /// Whether fio meets each of its blocks once before it meets one again.
    pub is_mapped: bool,
    /// Share of reads as it is written.
    pub read_share: Option<u64>,
    /// Operations per second of each copy.
    pub rate: Option<f64>,
    /// fsync after so many writes; 0 for never.
    pub fsync: u64,
    /// fdatasync after so many writes; 0 for never.
    pub fdatasync: u64,
    /// Whether it syncs at the end.
    pub syncs_at_end: bool,
    /// Whether it reads back what it wrote.
    pub verifies: bool,
    /// Measured time; 0 for no limit.
    pub time_ns: u64,
    /// Warm-up.
    pub ramp_ns: u64,
    /// Whether its file is to be written before it, where it only writes.
    pub overwrites: bool,
    /// Whether it waits for what is before it.
    pub waits: bool,
    /// Whether its end is that of all that run with it, by its own words.
    pub exits_all: bool,
    /// `exit_what=all`.
    pub ends_everything: bool,
    /// Files by name.
    pub filename: Option<Filename>,
    /// Where they lie.
    pub directory: Option<String>,
    /// Names of files that have none.
    pub filename_format: String,
}

/// A file that is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filename {
    /// The name.
    pub name: String,
    /// Where it is given.
    pub spot: SourceLine,
}

/// How an ordered walk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkOrder {
    /// Block after block.
    Plain,
    /// From the end to the start.
    Backward,
    /// In steps of so many bytes.
    Stride(u64),
}

/// Bytes per operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobBlocks {
    /// One size.
    One(u64),
    /// A mix, as `bssplit` has it, with bytes; and the smallest.
    Mix(String, u64),
}

impl JobBlocks {
    /// The smallest.
    pub fn smallest(&self) -> u64 {
        match self {
            Self::One(bytes) | Self::Mix(_, bytes) => *bytes,
        }
    }
}

/// What the page cache does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// Nothing: `direct=1`.
    Past,
    /// It is emptied before: `direct=0` with `invalidate=1`, fio's default.
    Emptied,
    /// It is left alone: `invalidate=0`.
    Kept,
}

/// The part of the file, and how much is done in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobExtent {
    /// Where it begins.
    pub offset: Amount,
    /// How much further each copy begins.
    pub increment: u64,
    /// How long it is.
    pub size: Option<Amount>,
    /// Bytes that each copy does, where that is not all of it.
    pub io_size: Option<Amount>,
    /// How often.
    pub loops: u64,
    /// Operations that each copy does.
    pub ops: Option<u64>,
    /// Whether time alone ends it.
    pub is_time_based: bool,
}

/// How likely each block is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OffsetLaw {
    /// All alike.
    Uniform,
    /// With this exponent.
    Zipf(String),
    /// `zones` as they are written here.
    Zones(String),
}
