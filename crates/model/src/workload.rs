//! One workload of a plan: which operations, where, how many at a time, until when. Its types are
//! public in `plan`, whose JSON has them.

use crate::op::OpKind;
use crate::shape::LoadShape;
use crate::stream::{BlockShare, Stream, Streams};
use crate::sync::SyncPolicy;
use crate::target::WriteCache;
use crate::transaction::Transaction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The end of the name of a workload that is measured with the write cache off, alongside the same
/// one with the cache on.
pub const OFF_SUFFIX: &str = "-off";

/// The beginning of the name of a workload whose sessions share syncs.
const GROUP_PREFIX: &str = "group-c";

/// The name of the workload in which so many sessions share syncs: `group-c16`.
pub fn group_name(sessions: u32) -> String {
    format!("{GROUP_PREFIX}{sessions}")
}

/// The number of sessions of a workload whose sessions share syncs, by its name; `None` of others.
pub fn sessions_of_group(name: &str) -> Option<u32> {
    name.strip_prefix(GROUP_PREFIX)?.parse().ok()
}

/// The kernel completes a block of the page cache that a write covers only in part. Filesystems and
/// block devices of Linux use blocks of at most this size, but for rare ones with larger blocks.
const CACHE_BLOCK_BYTES: u64 = 4096;
/// More than this is not brought into the page cache beside the workloads: it would take seconds,
/// and may not fit.
pub const HELD_BYTES_MAX: u64 = 64 << 20;

/// One load of blocks on one target or on each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Name, unique within the plan, such as `random-read-d32`.
    pub name: String,
    /// The relation of its start to that of the workload before it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub start: Start,
    /// The place of its only target among those of the plan, from 0; absent where it runs on each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<usize>,
    /// The operations on blocks, with their shares.
    #[serde(flatten)]
    pub streams: Streams,
    /// The places of the operations.
    pub access: Access,
    /// Bytes per operation (the largest of the mix, where there is one).
    pub block_bytes: u32,
    /// Other block sizes drawn by weight; empty when every operation has `block_bytes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block_mix: Vec<BlockShare>,
    /// Requests in flight per worker.
    pub depth: u32,
    /// Workers, each with its own thread and queue.
    pub workers: u32,
    /// The part of the target that is used.
    pub span: Span,
    /// The limits, of which the first that is reached ends it.
    pub stop: Stop,
    /// Time at the start whose operations are not measured, in nanoseconds.
    pub warmup_ns: u64,
    /// Offered load in operations per second over all workers of a target (open loop); `None`: the
    /// next starts when one ends (closed loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The way in which writes are made durable.
    pub sync: SyncPolicy,
    /// The use of the page cache.
    pub cache: CachePolicy,
    /// The I/O engine that carries the operations.
    pub engine: EngineChoice,
    /// The relation to the content of the scratch file. Operations of one workload may extend the
    /// file; all others find it written.
    #[serde(default)]
    pub layout: Layout,
    /// The check of content that is read.
    #[serde(default)]
    pub verify: Verify,
    /// True if its end leaves the workloads that run together with it alone; otherwise they end
    /// with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_alone: bool,
    /// True if the page cache drops the target's clean pages before it starts. Only where `cache`
    /// is `cached`: direct and buffered workloads drop them anyway.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drops_cache_first: bool,
    /// Everything else that shapes its load.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub shape: LoadShape,
    /// The transaction that one of its steps is; absent where a step is a chain of requests. Its
    /// shares and its block size are those of the reads and writes in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<Transaction>,
    /// The state that the disk's write cache is switched to for it; `None` leaves it as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<WriteCache>,
}

impl Workload {
    /// True if a rate or pauses hold its requests back. Its rate is then no figure of what the
    /// target can do.
    pub fn is_paced(&self) -> bool {
        let starts = &self.shape.starts;
        self.rate.is_some() || starts.think.is_some() || starts.flow.is_some()
    }

    /// The requests that all its workers together keep in flight.
    pub fn total_depth(&self) -> u64 {
        u64::from(self.depth) * u64::from(self.workers)
    }

    /// The bytes of its span that hold the log of its transactions; 0 without transactions.
    pub fn log_bytes(&self) -> u64 {
        match &self.transaction {
            Some(transaction) => transaction.log_span_bytes,
            None => 0,
        }
    }

    /// Random reads of 8 KiB, one at a time, direct, over the whole target, without limits: what
    /// others are made from.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            start: Start::AfterPrevious,
            target: None,
            streams: Streams::with_reads(1000),
            access: Access::Random {
                distribution: Distribution::Uniform,
            },
            block_bytes: 8192,
            block_mix: Vec::new(),
            depth: 1,
            workers: 1,
            span: Span::default(),
            stop: Stop::default(),
            warmup_ns: 0,
            rate: None,
            sync: SyncPolicy::None,
            cache: CachePolicy::Direct,
            engine: EngineChoice::Auto,
            layout: Layout::Needed,
            verify: Verify::Off,
            ends_alone: false,
            drops_cache_first: false,
            shape: LoadShape::default(),
            transaction: None,
            write_cache: None,
        }
    }

    /// True if it runs on the target with this place in the plan.
    pub fn runs_on(&self, target: usize) -> bool {
        self.target.is_none_or(|only| only == target)
    }

    /// True if it runs on a target of the other one.
    pub fn shares_target(&self, other: &Self) -> bool {
        self.target.is_none() || other.target.is_none() || self.target == other.target
    }

    /// True if any operation changes the content of blocks.
    pub fn writes(&self) -> bool {
        self.streams.changes_blocks()
    }

    /// True if any operation makes the target store something.
    pub fn fills_blocks(&self) -> bool {
        self.streams.fills_blocks()
    }

    /// True if any of its operations is of this kind.
    pub fn makes(&self, kind: OpKind) -> bool {
        match kind {
            OpKind::Sync => self.sync != SyncPolicy::None,
            OpKind::Commit => self.commits(),
            OpKind::Transaction => self.transaction.is_some(),
            request => self.streams.makes(request),
        }
    }

    /// True if the blocks that it visits have no content afterwards.
    pub fn leaves_no_content(&self) -> bool {
        self.streams.leaves_no_content()
    }

    /// True if each block that it reads must carry what an earlier workload wrote there.
    pub fn checks_reads(&self) -> bool {
        self.verify == Verify::Checksum && !self.writes()
    }

    /// True if any operation reads.
    pub fn reads(&self) -> bool {
        self.streams.makes(OpKind::Read)
    }

    /// True if it only writes, and nothing that it writes is checked later.
    pub fn writes_unchecked(&self) -> bool {
        self.makes(OpKind::Write) && !self.reads() && self.verify == Verify::Off
    }

    /// True if it only writes, and covers blocks of the page cache in part where it uses the cache
    /// as `cache` says. Before such a write the kernel reads the rest of the block from the disk,
    /// unless the block is new or in memory. A memory mapping reads every page that it touches.
    pub fn writes_partial_blocks(&self, cache: CachePolicy) -> bool {
        if self.reads() || !self.makes(OpKind::Write) {
            return false;
        }
        if self.engine == EngineChoice::Fixed(EngineKind::Mmap) {
            return true;
        }
        cache != CachePolicy::Direct && !self.covers_whole_blocks()
    }

    /// Bytes of a scratch file that are written once more before it, of a span of so many, where
    /// the file was filled for another workload: it finds the blocks that it writes in part in the
    /// page cache.
    pub fn held_bytes(&self, span_bytes: u64) -> u64 {
        let is_held = self.layout == Layout::Needed && self.writes_partial_blocks(self.cache);
        if is_held && span_bytes <= HELD_BYTES_MAX {
            span_bytes
        } else {
            0
        }
    }

    /// True if every write begins and ends at a block of the page cache.
    fn covers_whole_blocks(&self) -> bool {
        let is_stride_whole = match self.access {
            Access::Stride { stride_bytes } => is_whole_cache_blocks(stride_bytes),
            Access::Sequential
            | Access::Backward
            | Access::Random { .. }
            | Access::Zoned { .. } => true,
        };
        let is_zone_whole = match self.shape.order.zone_stride {
            Some(zone) => {
                is_whole_cache_blocks(zone.zone_bytes) && is_whole_cache_blocks(zone.skip_bytes)
            }
            None => true,
        };
        is_stride_whole
            && is_zone_whole
            && is_whole_cache_blocks(self.span.start_bytes)
            && is_whole_cache_blocks(self.shape.order.align_bytes.unwrap_or(0).into())
            && self
                .block_sizes()
                .all(|bytes| is_whole_cache_blocks(bytes.into()))
    }

    /// Every block size that an operation may have; some may stand twice.
    pub fn block_sizes(&self) -> impl Iterator<Item = u32> + '_ {
        let mixes = self.block_mix.iter().chain(self.streams.other_sizes());
        let log_bytes = self.transaction.iter().map(|one| one.log_bytes);
        mixes
            .map(|share| share.block_bytes)
            .chain([self.block_bytes])
            .chain(log_bytes)
    }

    /// True if only requests that block a thread of their own can do it. Transactions share their
    /// syncs among the slots of one thread.
    pub fn needs_threads(&self) -> bool {
        match self.sync {
            SyncPolicy::Shared { .. } if self.transaction.is_some() => false,
            sync => sync.needs_threads(),
        }
    }

    /// True if each write is durable when its operation ends.
    pub fn commits(&self) -> bool {
        self.sync.is_per_write()
    }

    /// The most bytes that this workload may write; `None` without a byte limit. The limit counts
    /// the reads of a mix too. The kind and the size of each step are drawn at random, so more may
    /// be written than the mean share: the result allows for that.
    pub fn write_bytes_max(&self) -> Option<u64> {
        let limit_bytes = self.stop.bytes?;
        let step = self.step_bytes();
        if step.changed == 0.0 {
            return Some(0);
        }
        if step.changed >= step.moved {
            return Some(limit_bytes);
        }
        let share = step.changed / step.moved;
        let mean = limit_bytes as f64 * share;
        // The standard deviation of a sum of steps is largest where all have the largest size.
        let deviation = (limit_bytes as f64 * step.moved_max * share * (1.0 - share)).sqrt();
        // A few rare writes scatter more than a normal distribution with that deviation.
        let changed_bytes_max = (mean + WRITE_DEVIATIONS * (deviation + step.moved_max)).ceil();
        Some((changed_bytes_max as u64).min(limit_bytes))
    }

    /// The bytes of a step, from the transaction or from the streams of the workload.
    fn step_bytes(&self) -> StepBytes {
        if let Some(transaction) = &self.transaction {
            let block_bytes = f64::from(self.block_bytes);
            let changed =
                f64::from(transaction.log_bytes) + f64::from(transaction.writes) * block_bytes;
            let moved = changed + f64::from(transaction.reads) * block_bytes;
            return StepBytes {
                changed,
                moved,
                moved_max: moved,
            };
        }
        let mut bytes = StepBytes {
            changed: 0.0,
            moved: 0.0,
            moved_max: 0.0,
        };
        for stream in self.streams.iter() {
            let sizes = self.sizes_of(stream);
            let mean = f64::from(stream.permille) / 1000.0 * mean_size(&sizes);
            bytes.moved += mean;
            if !stream.does.contains(&OpKind::Read) {
                bytes.changed += mean;
            }
            for size in sizes {
                bytes.moved_max = bytes.moved_max.max(f64::from(size.block_bytes));
            }
        }
        bytes
    }

    /// The sizes of the stream's operations; never empty.
    fn sizes_of(&self, stream: &Stream) -> Vec<BlockShare> {
        if !stream.sizes.is_empty() {
            stream.sizes.clone()
        } else if !self.block_mix.is_empty() {
            self.block_mix.clone()
        } else {
            vec![BlockShare::new(self.block_bytes, 1)]
        }
    }
}

/// More standard deviations than a run of a mix is above the mean of what it writes, but for one
/// run in three million. As many writes more cover mixes with so few writes that their number is
/// Poisson's: of 1000 steps with 1 ‰ of writes, one run in 12,000 makes seven.
const WRITE_DEVIATIONS: f64 = 5.0;

/// The bytes of one step of a workload. A step that both trims and writes a block counts it once,
/// as the limit of bytes does.
struct StepBytes {
    /// The mean of what it writes or trims.
    changed: f64,
    /// The mean of what it reads, writes or trims.
    moved: f64,
    /// The most that one step moves.
    moved_max: f64,
}

/// The mean size by weight; 0 where all weights are 0.
fn mean_size(sizes: &[BlockShare]) -> f64 {
    let mut weights = 0.0;
    let mut bytes = 0.0;
    for size in sizes {
        weights += f64::from(size.weight);
        bytes += f64::from(size.weight) * f64::from(size.block_bytes);
    }
    if weights > 0.0 { bytes / weights } else { 0.0 }
}

fn is_whole_cache_blocks(bytes: u64) -> bool {
    bytes.is_multiple_of(CACHE_BLOCK_BYTES)
}

/// The relation of a workload's start to that of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Once the workload before it is over.
    #[default]
    AfterPrevious,
    /// Together with the workload before it; they also end together.
    WithPrevious,
}

/// The places of operations inside the span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "pattern")]
pub enum Access {
    /// Upwards, block after block, from the start of the span; wraps. Reads and writes of a mix
    /// advance separately.
    Sequential,
    /// Downwards, block after block, from the end of the span; wraps.
    Backward,
    /// Upwards in steps of `stride_bytes` from start to start.
    Stride {
        /// Distance from the start of one block to the start of the next.
        stride_bytes: u64,
    },
    /// Block-aligned offsets, each drawn independently.
    Random {
        /// The chance of each block.
        distribution: Distribution,
    },
    /// Random offsets whose density differs by zone of the span.
    Zoned {
        /// The zones, in order of position; sizes and accesses each add up to 100 %.
        zones: Vec<Zone>,
    },
}

/// The chance of each block of the span.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "shape")]
pub enum Distribution {
    /// Every block has the same chance.
    Uniform,
    /// Zipf: the k-th most popular block is drawn in proportion to k^−theta. Popular blocks are
    /// scattered over the span.
    Zipf {
        /// Exponent, above 0 and not 1; about 1.1 is a skewed database.
        theta: f64,
    },
    /// Pareto: `share` of the blocks get all other operations than their share, at every scale.
    /// Popular blocks are scattered over the span.
    Pareto {
        /// Between 0 and 1: with 0.2, 80 % of the operations go to 20 % of the blocks.
        share: f64,
    },
    /// Normal: blocks near the middle of a scattered order are popular. The rank is the mean of
    /// twelve uniform numbers, moved by a uniform number.
    Normal {
        /// Width of the move, in percent of the blocks; below 100.
        spread_percent: f64,
    },
    /// A hot set: `access_percent` of the operations go to the first `size_percent` of the span.
    HotCold {
        /// Share of the operations that go to the hot set, in percent.
        access_percent: f64,
        /// Size of the hot set in percent of the span.
        size_percent: f64,
    },
}

impl Distribution {
    /// The largest exponent of `Zipf`: a steeper one visits only one block.
    pub const THETA_MAX: f64 = 10.0;

    /// True if its numbers are in their ranges.
    pub fn can_be_drawn(&self) -> bool {
        match *self {
            Self::Uniform => true,
            Self::Zipf { theta } => theta > 0.0 && theta <= Self::THETA_MAX && theta != 1.0,
            Self::Pareto { share } => share > 0.0 && share < 1.0,
            Self::Normal { spread_percent } => (0.0..100.0).contains(&spread_percent),
            Self::HotCold {
                access_percent,
                size_percent,
            } => {
                let are_positive = access_percent > 0.0 && size_percent > 0.0;
                are_positive && access_percent < 100.0 && size_percent < 100.0
            }
        }
    }
}

/// A part of the span and its share of the operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Zone {
    /// Share of the operations, in percent.
    pub access_percent: f64,
    /// Share of the span, in percent.
    pub size_percent: f64,
}

/// The part of the target that a workload uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// First byte.
    pub start_bytes: u64,
    /// Length in bytes; `None`: to the end of what the target holds when the workload starts.
    pub length_bytes: Option<u64>,
}

impl Span {
    /// The span that begins at this byte and has this length.
    pub const fn new(start_bytes: u64, length_bytes: Option<u64>) -> Self {
        Self {
            start_bytes,
            length_bytes,
        }
    }
}

/// The limits of a workload; the first that is reached ends it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stop {
    /// Relative 95 % half-width of the operation rate, such as 0.02.
    pub precision: Option<f64>,
    /// Measured time, in nanoseconds.
    pub time_ns: Option<u64>,
    /// Bytes moved by all workers together, warm-up included; in whole blocks.
    pub bytes: Option<u64>,
    /// Operations done by all workers together, warm-up included.
    pub ops: Option<u64>,
}

/// The use of the page cache by operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CachePolicy {
    /// O_DIRECT: past the page cache.
    Direct,
    /// Through the page cache, which is emptied of the target as the workload goes and written back
    /// before the clock stops.
    Buffered,
    /// Through the page cache, which is left alone.
    Cached,
}

impl CachePolicy {
    /// The word used in records and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Buffered => "buffered",
            Self::Cached => "cached",
        }
    }
}

/// An I/O engine, or the choice of one per workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EngineChoice {
    /// Chosen per workload: pread/pwrite at depth 1, else io_uring, else Linux AIO, else threads.
    Auto,
    /// Exactly this one, or an error.
    #[serde(untagged)]
    Fixed(EngineKind),
}

/// An interface of the kernel for I/O.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// io_uring.
    Uring,
    /// Linux native AIO (io_submit).
    Aio,
    /// pread/pwrite, one thread per request in flight.
    Sync,
    /// A shared memory mapping.
    Mmap,
    /// No I/O at all: every request completes at once. Measures the program itself.
    Null,
}

impl EngineKind {
    /// The word used in records and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Uring => "uring",
            Self::Aio => "aio",
            Self::Sync => "sync",
            Self::Mmap => "mmap",
            Self::Null => "null",
        }
    }
}

/// The relation of a workload to the content of the scratch file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// The span must hold written data before the first operation.
    #[default]
    Needed,
    /// The workload itself writes the span for the first time.
    Provides,
}

/// The check of content that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// Content is not checked.
    #[default]
    Off,
    /// Every block written carries a checksum, its offset and the seed, and is read back and
    /// checked after the workload. Where the workload only reads, every block that it reads must
    /// carry what an earlier run wrote there.
    Checksum,
    /// Every block written carries the same, and is left for a later workload to check.
    SignOnly,
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn limited(streams: Streams) -> Workload {
        Workload {
            streams,
            stop: Stop {
                bytes: Some(GIB),
                ..Stop::default()
            },
            ..Workload::named("mix")
        }
    }

    /// The most that is written, as a share of the limit.
    fn most_written(workload: &Workload) -> f64 {
        workload.write_bytes_max().unwrap() as f64 / GIB as f64
    }

    #[test]
    fn write_limit_is_exact_without_a_mix() {
        assert_eq!(most_written(&limited(Streams::with_reads(0))), 1.0);
        assert_eq!(most_written(&limited(Streams::with_reads(1000))), 0.0);
        let trims_and_writes = Streams::doing(&[OpKind::Trim, OpKind::Write]);
        assert_eq!(most_written(&limited(trims_and_writes)), 1.0);
        assert_eq!(Workload::named("free").write_bytes_max(), None);
    }

    #[test]
    fn write_limit_of_a_mix_allows_for_chance() {
        let mut mix = limited(Streams::with_reads(500));
        let most = most_written(&mix);
        assert!(most > 0.5 && most < 0.51, "{most}");
        // Eight requests may all be writes.
        mix.stop.bytes = Some(8 * 8192);
        assert_eq!(mix.write_bytes_max(), Some(8 * 8192));
    }

    #[test]
    fn write_limit_of_rare_writes_is_that_of_a_poisson_distribution() {
        let mut mix = limited(Streams::with_reads(999));
        let block = u64::from(mix.block_bytes);
        mix.stop.bytes = Some(1000 * block);
        // One write on average; eleven or more come in one run of a hundred million.
        assert_eq!(mix.write_bytes_max().unwrap() / block, 10);
    }

    #[test]
    fn write_limit_counts_the_sizes_of_the_writes() {
        let chains: [&[OpKind]; 2] = [&[OpKind::Read], &[OpKind::Write]];
        let sizes = [BlockShare::new(1 << 20, 1)];
        let mut mix = limited(Streams::from_chains(&chains, 990, &sizes));
        mix.block_bytes = 4096;
        // 1 % of writes of 1 MiB: 72 % of the bytes on average.
        let most = most_written(&mix);
        assert!(most > 0.75 && most < 0.85, "{most}");
    }

    #[test]
    fn write_limit_of_transactions_counts_the_log() {
        let mut load = limited(Streams::with_reads(0));
        load.block_bytes = 8192;
        load.transaction = Some(Transaction {
            reads: 3,
            log_bytes: 4096,
            log_span_bytes: 1 << 24,
            writes: 1,
        });
        let most = most_written(&load);
        assert!(most > 1.5 / 4.5 && most < 0.36, "{most}");
    }
}
