//! One fio job, read from a section: its load, in numbers. Independent of targets and of other
//! jobs.

use super::numbers::Amount;
use super::sections::SourceLine;
use crate::flags::EngineName;
use crate::workload::Rw;
use diskproof_model::latency_target::LatencyTarget;
use diskproof_model::plan::{BlockShare, Verify};
use diskproof_model::shape::LoadShape;

/// One job.
#[derive(Debug, Clone)]
pub(crate) struct FioJob {
    /// Where its section begins.
    pub source: SourceLine,
    /// Name of its section.
    pub section: String,
    /// Name in results.
    pub name: String,
    /// The author's description.
    pub description: Option<String>,
    /// Order and direction.
    pub rw: Rw,
    /// How sequential operations proceed.
    pub walk_order: WalkOrder,
    /// Bytes per operation; of reads, where writes have others (`shape.write_mix`).
    pub blocks: JobBlocks,
    /// What shapes the load beyond that.
    pub shape: LoadShape,
    /// The latency that its requests must meet.
    pub latency_target: Option<LatencyTarget>,
    /// Requests in flight.
    pub depth: u64,
    /// I/O engine.
    pub engine: EngineName,
    /// Number of copies.
    pub numjobs: u64,
    /// Use of the page cache.
    pub cache: Cache,
    /// Part of the file, and amount of I/O.
    pub extent: JobExtent,
    /// Distribution of random offsets.
    pub distribution: JobDistribution,
    /// Whether fio visits every block once before it visits one again.
    pub is_mapped: bool,
    /// Reads in percent.
    pub read_share: Option<u64>,
    /// Operations per second of each copy.
    pub rate: Option<f64>,
    /// Writes per fsync; 0 for never.
    pub fsync: u64,
    /// Writes per fdatasync; 0 for never.
    pub fdatasync: u64,
    /// Whether it syncs at the end.
    pub syncs_at_end: bool,
    /// How its blocks are verified.
    pub verify: Verify,
    /// Measured time; 0 for no limit.
    pub time_ns: u64,
    /// Warm-up.
    pub ramp_ns: u64,
    /// Whether fio writes the file before a job that only writes.
    pub overwrites: bool,
    /// Whether it starts after the jobs before it have ended.
    pub waits: bool,
    /// The job after whose end it starts (`wait_for`).
    pub waits_for: Option<WaitsFor>,
    /// Whether its end also ends the jobs that run together with it (`exitall`).
    pub exits_all: bool,
    /// Whether its figures are those of all copies and of its group (`group_reporting`).
    pub reports_together: bool,
    /// Whether its figures begin a group of their own (`new_group`).
    pub begins_group: bool,
    /// The flag that the file is opened with, where it has one (`sync`).
    pub sync: Option<&'static str>,
    /// `exit_what=all`.
    pub ends_everything: bool,
    /// `filename`.
    pub filename: Option<Filename>,
    /// `directory`; several of them separated by colons.
    pub directories: Vec<String>,
    /// Pattern of file names, for jobs without `filename`.
    pub filename_format: String,
}

/// The value of `wait_for`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WaitsFor {
    /// The section.
    pub section: String,
    /// The line that gives it.
    pub source: SourceLine,
}

impl FioJob {
    /// The size of all operations, where they have one.
    pub(crate) fn one_block(&self) -> Option<u64> {
        match self.blocks {
            JobBlocks::One(bytes) if self.shape.write_mix.is_empty() => Some(bytes),
            _ => None,
        }
    }

    /// Whether all operations have the same size.
    pub(crate) fn has_one_size(&self) -> bool {
        matches!(self.blocks, JobBlocks::One(_)) && self.shape.write_mix.is_empty()
    }

    /// The smallest size of any operation.
    pub(crate) fn smallest_block(&self) -> u64 {
        let writes = self.shape.write_mix.iter();
        let writes = writes.map(|share| u64::from(share.block_bytes));
        writes.fold(self.blocks.smallest(), u64::min)
    }
}

/// The value of `filename`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filename {
    /// The names, one or more.
    pub names: Vec<String>,
    /// The line that gives the last of them.
    pub source: SourceLine,
}

/// How sequential operations proceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkOrder {
    /// Block after block.
    Plain,
    /// From the end to the start.
    Backward,
    /// In steps of this many bytes.
    Stride(u64),
}

/// Bytes per operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobBlocks {
    /// One size.
    One(u64),
    /// A mix of sizes by weight.
    Mix(Vec<BlockShare>),
}

impl JobBlocks {
    /// The smallest size.
    pub(crate) fn smallest(&self) -> u64 {
        let sizes = self.shares();
        let sizes = sizes.iter().map(|share| u64::from(share.block_bytes));
        sizes.min().unwrap_or(1)
    }

    /// The sizes by weight.
    pub(crate) fn shares(&self) -> Vec<BlockShare> {
        match self {
            Self::One(bytes) => vec![BlockShare {
                block_bytes: *bytes as u32,
                weight: 1,
            }],
            Self::Mix(shares) => shares.clone(),
        }
    }
}

/// Use of the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cache {
    /// None: `direct=1`.
    Direct,
    /// Emptied first: `direct=0` with `invalidate=1`, fio's default.
    Emptied,
    /// Not emptied: `invalidate=0`.
    Kept,
}

/// The part of the file, and the amount of I/O in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobExtent {
    /// Its start.
    pub offset: Amount,
    /// Distance between the starts of consecutive copies.
    pub increment: u64,
    /// Its length.
    pub size: Option<Amount>,
    /// Whether it goes on until there is no space (`fill_device`).
    pub fills: bool,
    /// Size of the file, where the job sets it: no copy goes beyond its end.
    pub file_bytes: Option<u64>,
    /// Bytes that each copy transfers, where that is not the whole part.
    pub io_size: Option<Amount>,
    /// Number of passes.
    pub loops: u64,
    /// Operations of each copy.
    pub ops: Option<u64>,
    /// Whether only time ends it.
    pub is_time_based: bool,
}

/// Distribution of random offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobDistribution {
    /// All blocks alike.
    Uniform,
    /// By popularity, in the syntax of the key `distribution`.
    Skewed(String),
    /// In the syntax of the key `zones`.
    Zones(String),
}
