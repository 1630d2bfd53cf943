//! The one table of what can be said about a workload. clap fills it from flags and serde from the
//! keys of a plan file, through the same parsers. Form only: whether the words fit together is
//! judged where they become a workload.

use super::words::{
    BlockSize, BlockSplit, Bytes, Count, Direction, Likelihood, Name, Part, Precision, Rate,
    ReadShare, Rw, Time, Zones, written,
};
use crate::flags::EngineName;
use serde::Deserialize;

/// What was said about a workload; `None` where nothing was.
#[derive(Debug, Clone, Default, PartialEq, clap::Args, Deserialize)]
#[command(next_help_heading = "Workload")]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct WorkloadFlags {
    /// Its name in results and in --expect [default: the word of --rw]
    #[arg(long, value_name = "NAME")]
    #[serde(deserialize_with = "written")]
    pub name: Option<Name>,
    /// What to do, in fio's words: read, write, randread, randwrite, rw (or readwrite), randrw
    /// [default: randread]
    #[arg(long, visible_alias = "readwrite", value_name = "WORD")]
    #[serde(deserialize_with = "written", alias = "readwrite")]
    pub rw: Option<Rw>,
    /// Block size [default: 8k]
    #[arg(long, visible_alias = "blocksize", value_name = "BYTES")]
    #[serde(deserialize_with = "written", alias = "blocksize")]
    pub bs: Option<BlockSize>,
    /// Block sizes and their shares of the operations in percent, such as 4k/60:64k/40
    #[arg(long, value_name = "MIX")]
    #[serde(deserialize_with = "written")]
    pub bssplit: Option<BlockSplit>,
    /// Requests in flight per job [default: 1]
    #[arg(long, visible_alias = "iodepth", value_name = "N")]
    #[serde(deserialize_with = "written", alias = "iodepth")]
    pub depth: Option<Count>,
    /// Workers, each with a thread and a queue of its own [default: 1]
    #[arg(long, visible_alias = "numjobs", value_name = "N")]
    #[serde(deserialize_with = "written", alias = "numjobs")]
    pub jobs: Option<Count>,
    /// Share of reads in a mixed --rw, in percent [default: 50]
    #[arg(long, value_name = "PERCENT")]
    #[serde(deserialize_with = "written")]
    pub rwmixread: Option<ReadShare>,
    /// Start so many operations per second, over all jobs (fio: per job), whether earlier ones are
    /// done or not (open loop); latency counts from the intended start
    #[arg(long, visible_alias = "rate_iops", value_name = "OPS")]
    #[serde(deserialize_with = "written", alias = "rate_iops")]
    pub rate: Option<Rate>,
    /// End once the rate is known this well, such as 2% (half the 95 % interval)
    #[arg(long, value_name = "PERCENT")]
    #[serde(deserialize_with = "written")]
    pub precision: Option<Precision>,
    /// End after this time, warm-up not counted
    #[arg(long, visible_alias = "runtime", value_name = "DURATION")]
    #[serde(deserialize_with = "written", alias = "runtime")]
    pub time: Option<Time>,
    /// End after so many bytes, over all jobs (fio: per job), warm-up included
    #[arg(long, visible_alias = "io_size", value_name = "BYTES")]
    #[serde(deserialize_with = "written", alias = "io_size")]
    pub bytes: Option<Bytes>,
    /// End after so many operations, over all jobs (fio: per job), warm-up included
    #[arg(long, visible_alias = "number_ios", value_name = "N")]
    #[serde(deserialize_with = "written", alias = "number_ios")]
    pub ops: Option<Count>,
    /// Time before the measured time [default: 5 % of --time, at most 1s; none with --bytes or
    /// --ops]
    #[arg(long, visible_alias = "ramp_time", value_name = "DURATION")]
    #[serde(deserialize_with = "written", alias = "ramp_time")]
    pub warmup: Option<Time>,
    /// Part of the target that is used, such as 10%, 0-50% or 100GB-200GB (short stroke)
    #[arg(long, value_name = "PART")]
    #[serde(deserialize_with = "written")]
    pub span: Option<Part>,
    /// Random only: zones of the span as access%/size% pairs, such as 60/10:30/20:10/70
    #[arg(long, value_name = "ZONES")]
    #[serde(deserialize_with = "written")]
    pub zones: Option<Zones>,
    /// Random only: uniform, zipf:THETA, or hot:ACCESS/SIZE such as hot:80/20 (80 % of the
    /// accesses to the first 20 %) [default: uniform]
    #[arg(long, visible_alias = "random_distribution", value_name = "LAW")]
    #[serde(deserialize_with = "written", alias = "random_distribution")]
    pub distribution: Option<Likelihood>,
    /// Sequential only: from the end to the start
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub backward: Option<bool>,
    /// Sequential only: from block to block in steps of so many bytes
    #[arg(long, value_name = "BYTES")]
    #[serde(deserialize_with = "written")]
    pub stride: Option<Bytes>,
    /// fsync after every N-th write of a job
    #[arg(long, value_name = "N")]
    #[serde(deserialize_with = "written")]
    pub fsync: Option<Count>,
    /// fdatasync after every N-th write of a job
    #[arg(long, value_name = "N")]
    #[serde(deserialize_with = "written")]
    pub fdatasync: Option<Count>,
    /// Sync once after the last write; its time counts
    #[arg(
        long,
        visible_alias = "end_fsync",
        num_args = 0,
        default_missing_value = "true"
    )]
    #[serde(alias = "end_fsync")]
    pub end_fsync: Option<bool>,
    /// Through the page cache, which is emptied as it goes and written back before the end
    /// [default: past it, O_DIRECT]
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub buffered: Option<bool>,
    /// Through the page cache, left alone: it may answer instead of the disk
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub cached: Option<bool>,
    /// Write blocks with checksums, read them back at the end, and name every bad one
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub verify: Option<bool>,
    /// The kernel interface: a key of plan files; as a flag it belongs to the whole run.
    #[arg(skip)]
    #[serde(deserialize_with = "written", alias = "ioengine")]
    pub engine: Option<EngineName>,
    /// Whether it runs at the same time as the workload before it: a key of plan files, since
    /// flags make one workload.
    #[arg(skip)]
    pub together: Option<bool>,
}

impl WorkloadFlags {
    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether any operation writes.
    pub fn writes(&self) -> bool {
        self.rw.is_some_and(|rw| rw.direction != Direction::Read)
            && self.rwmixread.is_none_or(|share| share.0 < 1000)
    }

    /// Whether it is said when the workload ends.
    pub fn says_its_end(&self) -> bool {
        self.precision.is_some()
            || self.time.is_some()
            || self.bytes.is_some()
            || self.ops.is_some()
    }

    /// These, and the others where nothing was said. What excludes each other is taken from one
    /// side only: a workload's own `bssplit` also sets aside the others' `bs`.
    pub fn or(self, others: &Self) -> Self {
        let blocks = self.bs.is_some() || self.bssplit.is_some();
        let access = self.zones.is_some()
            || self.distribution.is_some()
            || self.backward.is_some()
            || self.stride.is_some();
        let syncs = self.fsync.is_some() || self.fdatasync.is_some() || self.end_fsync.is_some();
        let cache = self.buffered.is_some() || self.cached.is_some();
        let unless = |said: bool| {
            if said {
                Self::default()
            } else {
                others.clone()
            }
        };
        let (blocks, access, syncs, cache) =
            (unless(blocks), unless(access), unless(syncs), unless(cache));
        Self {
            name: self.name,
            rw: self.rw.or(others.rw),
            bs: self.bs.or(blocks.bs),
            bssplit: self.bssplit.or(blocks.bssplit),
            depth: self.depth.or(others.depth),
            jobs: self.jobs.or(others.jobs),
            rwmixread: self.rwmixread.or(others.rwmixread),
            rate: self.rate.or(others.rate),
            precision: self.precision.or(others.precision),
            time: self.time.or(others.time),
            bytes: self.bytes.or(others.bytes),
            ops: self.ops.or(others.ops),
            warmup: self.warmup.or(others.warmup),
            span: self.span.or(others.span),
            zones: self.zones.or(access.zones),
            distribution: self.distribution.or(access.distribution),
            backward: self.backward.or(access.backward),
            stride: self.stride.or(access.stride),
            fsync: self.fsync.or(syncs.fsync),
            fdatasync: self.fdatasync.or(syncs.fdatasync),
            end_fsync: self.end_fsync.or(syncs.end_fsync),
            buffered: self.buffered.or(cache.buffered),
            cached: self.cached.or(cache.cached),
            verify: self.verify.or(others.verify),
            engine: self.engine.or(others.engine),
            together: self.together,
        }
    }
}
