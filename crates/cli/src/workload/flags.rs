//! Lists the options of a workload. clap fills the table from flags, serde from the keys of a plan
//! file, with the same parsers. Only their form is checked here; `resolve` checks whether they fit
//! together.
//!
//! Options of `run` that take several values make a workload for each combination. Options of fio
//! that change nothing here are accepted, hidden from help, and named in one note, so that a pasted
//! command of fio runs; its other options are hints.

use super::parsers::{
    BlockSize, BlockSplit, Bytes, Count, Latency, LatencyPercentile, OffsetDistribution, Precision,
    Rate, ReadShare, SpanBounds, SyncedWrites, Time, WorkloadName, Zones, parse_key,
    parse_listed_count, parse_listed_size,
};
use crate::flags::{ENGINES, chosen};
use diskproof_model::op::OpKind;
use diskproof_model::plan::{BlockShare, EngineChoice, WORKLOADS_MAX};
use diskproof_model::rw::Rw;
use diskproof_model::shape::LoadShape;
use serde::{Deserialize, Deserializer, de::Error};
use std::path::PathBuf;

const LATENCY_HEADING: &str = "Latency target";

/// The options of a workload; `None` where the user set nothing.
#[derive(Debug, Clone, Default, PartialEq, clap::Args, Deserialize)]
#[command(next_help_heading = "Workload")]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct WorkloadFlags {
    /// Name of the workload in results and in --expect [default: the value of --rw]
    #[arg(long, value_name = "NAME")]
    #[serde(deserialize_with = "parse_key")]
    pub name: Option<WorkloadName>,
    /// Order and direction: read, write, randread, randwrite, rw (or readwrite), randrw; trim,
    /// randtrim (discards of a device, holes in a file), trimwrite, randtrimwrite (each block is
    /// trimmed, then written) [default: randread]
    #[arg(long, visible_alias = "readwrite", value_name = "PATTERN")]
    #[serde(deserialize_with = "parse_key", alias = "readwrite")]
    pub rw: Option<Rw>,
    /// Block size [default: 8k]. A key of plan files; [`super::WorkloadAxes`] holds the flag.
    #[arg(skip)]
    #[serde(deserialize_with = "parse_key", alias = "blocksize")]
    pub bs: Option<BlockSize>,
    /// Mix of block sizes with their percentages of the operations, such as 4k/60:64k/40
    #[arg(long, value_name = "MIX")]
    #[serde(deserialize_with = "parse_key")]
    pub bssplit: Option<BlockSplit>,
    /// Requests in flight per job [default: 1]. A key, like `bs`.
    #[arg(skip)]
    #[serde(deserialize_with = "parse_key", alias = "iodepth")]
    pub depth: Option<Count>,
    /// Number of workers, each with a thread and a queue [default: 1]. A key, like `bs`.
    #[arg(skip)]
    #[serde(deserialize_with = "parse_key", alias = "numjobs")]
    pub jobs: Option<Count>,
    /// Share of reads in a mixed --rw, in percent [default: 50]
    #[arg(long, value_name = "PERCENT")]
    #[serde(deserialize_with = "parse_key")]
    pub rwmixread: Option<ReadShare>,
    /// Start this many operations per second over all jobs (fio: per job), even while earlier ones
    /// are in flight (open loop); latency counts from the intended start
    #[arg(long, visible_alias = "rate_iops", value_name = "OPS")]
    #[serde(deserialize_with = "parse_key", alias = "rate_iops")]
    pub rate: Option<Rate>,
    /// End when half the rate's 95 % interval is this narrow, such as 2%
    #[arg(long, value_name = "PERCENT")]
    #[serde(deserialize_with = "parse_key")]
    pub precision: Option<Precision>,
    /// End after this time, without the warm-up
    #[arg(long, visible_alias = "runtime", value_name = "DURATION")]
    #[serde(deserialize_with = "parse_key", alias = "runtime")]
    pub time: Option<Time>,
    /// End after this many bytes over all jobs (fio: per job), including the warm-up
    #[arg(long, visible_alias = "io_size", value_name = "BYTES")]
    #[serde(deserialize_with = "parse_key", alias = "io_size")]
    pub bytes: Option<Bytes>,
    /// End after this many operations over all jobs (fio: per job), including the warm-up
    #[arg(long, visible_alias = "number_ios", value_name = "N")]
    #[serde(deserialize_with = "parse_key", alias = "number_ios")]
    pub ops: Option<Count>,
    /// Find the greatest depth up to --depth at which requests meet this latency
    #[arg(long, visible_alias = "latency_target", value_name = "DURATION",
        help_heading = LATENCY_HEADING)]
    #[serde(deserialize_with = "parse_key", alias = "latency_target")]
    pub latency_target: Option<Latency>,
    /// Percentage of the requests that must meet it [default: 99]
    #[arg(long, visible_alias = "latency_percentile", value_name = "PERCENT",
        help_heading = LATENCY_HEADING)]
    #[serde(deserialize_with = "parse_key", alias = "latency_percentile")]
    pub latency_percentile: Option<LatencyPercentile>,
    /// Duration of one measurement of a depth [default: 5s]
    #[arg(long, visible_alias = "latency_window", value_name = "DURATION",
        help_heading = LATENCY_HEADING)]
    #[serde(deserialize_with = "parse_key", alias = "latency_window")]
    pub latency_window: Option<Time>,
    /// Warm-up before the measured time [default: 5 % of --time, at most 1s; none with --bytes or
    /// --ops]
    #[arg(long, visible_alias = "ramp_time", value_name = "DURATION")]
    #[serde(deserialize_with = "parse_key", alias = "ramp_time")]
    pub warmup: Option<Time>,
    /// Part of the target to use, such as 10%, 0-50% or 100GB-200GB (short stroke)
    #[arg(long, value_name = "PART")]
    #[serde(deserialize_with = "parse_key")]
    pub span: Option<SpanBounds>,
    /// Random only: zones of the span, as access%/size% pairs such as 60/10:30/20:10/70
    #[arg(long, value_name = "ZONES")]
    #[serde(deserialize_with = "parse_key")]
    pub zones: Option<Zones>,
    /// Random only: distribution of the offsets: uniform, zipf:THETA, pareto:SHARE,
    /// normal:PERCENT, or hot:ACCESS/SIZE such as hot:80/20 (80 % of the accesses to the first
    /// 20 %) [default: uniform]
    #[arg(long, visible_alias = "random_distribution", value_name = "NAME")]
    #[serde(deserialize_with = "parse_key", alias = "random_distribution")]
    pub distribution: Option<OffsetDistribution>,
    /// Sequential only: go from the end to the start
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub backward: Option<bool>,
    /// Sequential only: distance in bytes from one block to the next, leaving gaps
    #[arg(long, value_name = "BYTES")]
    #[serde(deserialize_with = "parse_key")]
    pub stride: Option<Bytes>,
    /// Call fsync after every N-th write of a job
    #[arg(long, value_name = "N")]
    #[serde(deserialize_with = "parse_key")]
    pub fsync: Option<Count>,
    /// Call fdatasync after every N-th write of a job
    #[arg(long, value_name = "N")]
    #[serde(deserialize_with = "parse_key")]
    pub fdatasync: Option<Count>,
    /// Sync once after the last write; the time of the sync counts
    #[arg(long, visible_alias = "end_fsync", num_args = 0)]
    #[arg(default_missing_value = "true")]
    #[serde(alias = "end_fsync")]
    pub end_fsync: Option<bool>,
    /// Open the target so that each write is durable when it ends: sync (O_SYNC) or dsync
    /// (O_DSYNC), as PostgreSQL's open_sync and open_datasync
    #[arg(long, value_name = "FLAG")]
    #[serde(deserialize_with = "parse_key")]
    pub sync: Option<SyncedWrites>,
    /// Use the page cache, but empty it during the run and write it back before the end [default:
    /// bypass it with O_DIRECT]
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub buffered: Option<bool>,
    /// Use the page cache without emptying it, so it may answer instead of the disk
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub cached: Option<bool>,
    /// Write blocks with checksums, read them back at the end and report bad blocks. Without
    /// writes: check the blocks that an earlier run wrote with --verify
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub verify: Option<bool>,
    /// The I/O engine. A key of plan files; the flag of this name applies to the whole run.
    #[arg(skip)]
    #[serde(deserialize_with = "parse_engine", alias = "ioengine")]
    pub engine: Option<EngineChoice>,
    /// Whether it runs together with the workload before it. A key of plan files only, because
    /// flags describe one workload.
    #[arg(skip)]
    pub together: Option<bool>,
    /// Whether its end leaves those that run together with it alone. A key of plan files only.
    #[arg(skip)]
    pub ends_alone: Option<bool>,
    /// Whether the target's pages are dropped before it starts, with `cached`. A key of plan files
    /// only.
    #[arg(skip)]
    pub drops_cache_first: Option<bool>,
    /// The place of its only target. fio jobs set it.
    #[arg(skip)]
    #[serde(skip)]
    pub target: Option<usize>,
    /// Whether it writes blocks with checksums and leaves them for a later workload to check. fio
    /// jobs set it.
    #[arg(skip)]
    #[serde(skip)]
    pub signs_only: bool,
    /// Block sizes of all operations but the first kind of a mix, where they differ. fio jobs set
    /// it.
    #[arg(skip)]
    #[serde(skip)]
    pub other_sizes: Vec<BlockShare>,
    /// What shapes the load beyond that. fio jobs set it.
    #[arg(skip)]
    #[serde(skip)]
    pub shape: LoadShape,
}

fn parse_engine<'de, D: Deserializer<'de>>(key: D) -> Result<Option<EngineChoice>, D::Error> {
    let word = String::deserialize(key)?;
    if let Some(engine) = chosen(ENGINES, &word) {
        return Ok(Some(engine));
    }
    let mut names = Vec::new();
    for engine in ENGINES {
        names.extend(engine.words.split('/').next());
    }
    Err(D::Error::custom(format!(
        "'{word}' is not an engine; use one of {}",
        names.join(", ")
    )))
}

impl WorkloadFlags {
    /// True if no option is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The block sizes that are set, without those that only writes have.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = u32> {
        let split_sizes = self
            .bssplit
            .iter()
            .flat_map(|split| &split.0)
            .map(|share| share.block_bytes);
        self.bs.into_iter().map(|size| size.0).chain(split_sizes)
    }

    /// True if any operation writes data; a trim does not.
    pub(crate) fn writes_data(&self) -> bool {
        match self.rw {
            Some(rw) => self.writes() && rw.makes(OpKind::Write),
            None => false,
        }
    }

    /// True if any operation writes or trims.
    pub fn writes(&self) -> bool {
        let only_reads = match self.rwmixread {
            Some(ReadShare(permille)) => permille >= 1000,
            None => false,
        };
        match self.rw {
            Some(rw) => rw.changes_blocks() && !only_reads,
            None => false,
        }
    }

    /// True if an option decides when the workload ends.
    pub fn has_limit(&self) -> bool {
        self.precision.is_some()
            || self.time.is_some()
            || self.bytes.is_some()
            || self.ops.is_some()
    }

    /// These options, with `defaults` where none is set. Options that exclude each other come from
    /// one side only: with an own `bssplit`, the `bs` of the defaults does not apply.
    pub fn or(mut self, defaults: &Self) -> Self {
        /// Fills in keys, of which none is set.
        macro_rules! fill {
            ($($($key:ident)+;)*) => {$(
                if true $(&& self.$key.is_none())+ {
                    $(self.$key.clone_from(&defaults.$key);)+
                }
            )*};
        }
        fill! {
            bs bssplit; zones distribution backward stride; buffered cached;
            fsync fdatasync end_fsync sync;
            rw; depth; jobs; rwmixread; rate; precision; time; bytes; ops; warmup; span; verify;
            latency_target; latency_percentile; latency_window; engine; ends_alone;
            drops_cache_first;
        }
        self
    }
}

/// Block sizes, depths and numbers of workers. Empty where the user set nothing.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadAxes {
    /// Block size; with several, such as 4k,64k, each makes a workload [default: 8k]
    #[arg(long, visible_alias = "blocksize", value_name = "BYTES")]
    #[arg(value_delimiter = ',', value_parser = parse_listed_size)]
    pub bs: Vec<BlockSize>,
    /// Requests in flight per job; with several, such as 1,4,16, each makes a workload [default:
    /// 1]
    #[arg(long, visible_alias = "iodepth", value_name = "N")]
    #[arg(value_delimiter = ',', value_parser = parse_listed_count)]
    pub depth: Vec<Count>,
    /// Number of workers, each with a thread and a queue; with several, each makes a workload
    /// [default: 1]
    #[arg(long, visible_alias = "numjobs", value_name = "N")]
    #[arg(value_delimiter = ',', value_parser = parse_listed_count)]
    pub jobs: Vec<Count>,
}

impl WorkloadAxes {
    /// True if no option is set.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// One workload for each combination, in the order of the values. An axis with several values
    /// appears in the names: `randread-bs4k-d16-j2`.
    pub(crate) fn expand(&self, flags: &WorkloadFlags) -> Result<Vec<WorkloadFlags>, String> {
        let sizes = axis("bs", "-bs", &self.bs, |size| size_word(size.0))?;
        let depths = axis("depth", "-d", &self.depth, |depth| depth.0.to_string())?;
        let jobs = axis("jobs", "-j", &self.jobs, |jobs| jobs.0.to_string())?;
        let count = sizes.len() * depths.len() * jobs.len();
        if count > WORKLOADS_MAX {
            return Err(format!(
                "--bs, --depth and --jobs make {count} workloads; a run has at most \
                 {WORKLOADS_MAX}"
            ));
        }
        let base = match &flags.name {
            Some(name) => name.0.clone(),
            None => flags.rw.unwrap_or(Rw::RANDREAD).as_str().to_owned(),
        };
        let mut workloads = Vec::new();
        for size in &sizes {
            for depth in &depths {
                for jobs in &jobs {
                    let suffix = format!("{}{}{}", size.suffix, depth.suffix, jobs.suffix);
                    workloads.push(WorkloadFlags {
                        name: match suffix.as_str() {
                            "" => flags.name.clone(),
                            suffix => Some(WorkloadName(format!("{base}{suffix}"))),
                        },
                        bs: size.value,
                        depth: depth.value,
                        jobs: jobs.value,
                        ..flags.clone()
                    });
                }
            }
        }
        Ok(workloads)
    }
}

/// A value of an option that makes a workload for each of its values.
struct AxisPoint<T> {
    /// `None` for the default.
    value: Option<T>,
    /// The end of the workloads' names; empty where the axis has only one point.
    suffix: String,
}

/// The points of an axis, at least one.
fn axis<T: Copy + PartialEq>(
    key: &str,
    prefix: &str,
    values: &[T],
    word: impl Fn(&T) -> String,
) -> Result<Vec<AxisPoint<T>>, String> {
    refuse_repeated(key, values, &word)?;
    if values.len() <= 1 {
        return Ok(vec![AxisPoint {
            value: values.first().copied(),
            suffix: String::new(),
        }]);
    }
    let mut points = Vec::new();
    for value in values {
        points.push(AxisPoint {
            value: Some(*value),
            suffix: format!("{prefix}{}", word(value)),
        });
    }
    Ok(points)
}

/// Refuses a value that a flag has twice.
pub(crate) fn refuse_repeated<T: PartialEq>(
    key: &str,
    values: &[T],
    word: impl Fn(&T) -> String,
) -> Result<(), String> {
    for (index, value) in values.iter().enumerate() {
        if values[..index].contains(value) {
            return Err(format!(
                "--{key} has the value {} twice; name each value once",
                word(value)
            ));
        }
    }
    Ok(())
}

/// `512`, `8k`, `1m`.
fn size_word(bytes: u32) -> String {
    match bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

/// Options of fio that change nothing. A value of 0 asks for what is not the default, and is an
/// error.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct FioFlags {
    /// Workloads run until their time is over.
    #[arg(long = "time_based", hide = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = parse_switch,
          conflicts_with_all = ["bytes", "ops"])]
    pub time_based: Option<bool>,
    /// Figures cover all jobs.
    #[arg(long = "group_reporting", hide = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = parse_switch)]
    pub group_reporting: Option<bool>,
    /// Workers are threads.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = parse_switch)]
    pub thread: Option<bool>,
    /// Requests bypass the page cache.
    #[arg(long, hide = true, value_name = "0|1", value_parser = parse_switch,
          conflicts_with_all = ["buffered", "cached"])]
    pub direct: Option<bool>,
    /// The target.
    #[arg(long, hide = true, alias = "directory", value_name = "TARGET")]
    pub filename: Option<PathBuf>,
}

fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err("write 1 or 0".to_owned()),
    }
}

impl FioFlags {
    /// The note that names what changes nothing; `None` without such an option.
    pub(crate) fn note(&self) -> Result<Option<String>, String> {
        let amount = "use --bytes or --ops to limit the amount";
        let figures = "figures always cover all jobs; use a plan file for separate figures";
        let cache = "use --buffered, which empties the page cache, or --cached";
        let mut ignored = Vec::new();
        if is_default("--time_based", self.time_based, amount)? {
            ignored.push("--time_based");
        }
        if is_default("--group_reporting", self.group_reporting, figures)? {
            ignored.push("--group_reporting");
        }
        if is_default("--thread", self.thread, "workers are always threads")? {
            ignored.push("--thread");
        }
        if is_default("--direct", self.direct, cache)? {
            ignored.push("--direct");
        }
        Ok(match ignored.as_slice() {
            [] => None,
            [one] => Some(format!("{one} is the default and changes nothing")),
            several => Some(format!(
                "{} are the default and change nothing",
                several.join(", ")
            )),
        })
    }
}

/// True if the switch is given, and on. The error for one that is off says what to do instead.
fn is_default(flag: &str, switch: Option<bool>, instead: &str) -> Result<bool, String> {
    match switch {
        None => Ok(false),
        Some(true) => Ok(true),
        Some(false) => Err(format!("{flag}=0: {instead}")),
    }
}

#[cfg(test)]
mod tests;
