//! `diskproof sweep`: what a disk does at each block size, depth and operation, coarse to fine.

mod matrix;

use crate::failure::{Exit, Failure};
use crate::flags::{Choice, MeasuringFlags, SCRATCH_BYTES_MIN, SECOND, choices, one_of};
use crate::plan_file::sector_bytes;
use crate::postgres::postgres_version;
use crate::session::{MeasuringJob, measure};
use crate::workload::{
    BlockSize, Bytes, Count, parse_listed_count, parse_listed_size, refuse_repeated,
};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use diskproof_model::plan::{Decide, Plan, Questions, Scratch, Task, Workloads};
use diskproof_model::rw::Rw;
use diskproof_model::sweep::{SweepOperation, SweepPlan, SweepView};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{format_bytes, parse_duration};
use matrix::{Matrix, MatrixLimits};
use std::path::PathBuf;

/// The help promises 3 min and 20 s.
const TIME_NS: u64 = 180 * SECOND;
const TIME_NS_QUICK: u64 = 20 * SECOND;
/// Share of the time for the first write of the scratch file.
const LAYOUT_PARTS: u64 = 10;
/// Relative half-width of the interval that ends a cell.
const PRECISION: f64 = 0.02;
/// Drives have up to 1 GiB of cache.
const SCRATCH_BYTES: u64 = 4 << 30;
const SCRATCH_BYTES_QUICK: u64 = 1 << 30;
/// Together the writing cells write about so much, which wears a disk as little as a few scratch
/// files do.
const WRITE_BYTES: u64 = 32 << 30;
const WRITE_BYTES_QUICK: u64 = 8 << 30;
/// From a page of the kernel to what no disk splits further; among them PostgreSQL's page and its
/// largest combined read, 128 KiB by default.
const SIZES: [u32; 7] = [
    4 << 10,
    8 << 10,
    32 << 10,
    128 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
];
const SIZES_QUICK: [u32; 3] = [8 << 10, 128 << 10, 1 << 20];
const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
const DEPTHS_QUICK: [u32; 4] = [1, 4, 16, 64];
const DEPTH_MAX: u64 = 256;
/// The smallest of `--spans`, and the factor between two.
const SPAN_BYTES_MIN: u64 = 1 << 20;
const SPAN_STEP: u64 = 4;

const HELP: &str = "\
Each cell is a block size at a depth (requests in flight). The default matrix
has 7 sizes from 4 KiB to 4 MiB, 7 depths from 1 to 64, and random reads and
writes, or random and sequential reads if the target is only read. It takes at
most 3 min: first a coarse matrix, then all cells in random order, then more time
for the least certain cells. After Ctrl-C, a cost model predicts the cells that
were not measured, marked with ~.

The first lines show the best figures, the knee (the depth beyond which requests
mostly wait) and the block size beyond which bandwidth is the limit.

In a directory, sweep measures a scratch file. The file has no name and vanishes
even after kill -9. A file or a block device is only read unless --overwrite or
--destroy releases it.

Exit codes: 0 done, 1 a threshold was missed, 2 usage, 3 refused for safety,
4 the run failed or the disk returned errors, 5 a threshold is undecided,
130 Ctrl-C.

Examples:
  diskproof sweep /data                      # the default matrix
  diskproof sweep /data --quick              # a coarse one, in 20 s
  sudo diskproof sweep /dev/sdb -o sdb.html  # reads only, as a page
  diskproof sweep /data --bs 8k,64k,1M --depth 1,32,256 --rw read,write
  sudo diskproof sweep /dev/sdb --spans      # caches and the short stroke
  diskproof sweep /data -o io-properties.yaml -o disk.iocost
  diskproof sweep /data --expect 'randread-8k-d32.iops>=20000'";

/// Measure the disk at each block size, depth and operation, and find the knee
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct SweepFlags {
    /// Directory, regular file or block device
    #[arg(default_value = ".")]
    pub target: PathBuf,
    /// Measure only a coarse matrix, in at most 20 seconds
    #[arg(long)]
    pub quick: bool,
    /// Time for the whole run, at least 1s [default: 3m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub time: Option<u64>,
    /// Block sizes, from 512 to 1G [default: 4k,8k,32k,128k,256k,1M,4M]
    #[arg(long, visible_alias = "blocksize", value_name = "BYTES")]
    #[arg(value_delimiter = ',', value_parser = parse_listed_size)]
    pub bs: Vec<BlockSize>,
    /// Requests in flight, from 1 to 256 [default: 1,2,4,8,16,32,64]
    #[arg(long, visible_alias = "iodepth", value_name = "N", value_delimiter = ',',
        value_parser = parse_depth)]
    pub depth: Vec<u32>,
    /// Operations; half of a mix are reads, stride reads every sixteenth block, reread and rewrite
    /// repeat the same 16 MiB [default: randread,randwrite; randread,read if the target is only
    /// read]
    #[arg(long, visible_alias = "readwrite", value_name = "OPERATIONS", value_delimiter = ',',
        value_parser = operation_parser())]
    pub rw: Vec<SweepOperation>,
    /// Skip the writing operations; a scratch file is still filled
    #[arg(long)]
    pub read_only: bool,
    /// Also measure single random reads over parts of the target, to show caches and the gain of a
    /// short stroke: from 1 MiB to the whole target in steps of four, or over these sizes
    #[arg(long, value_name = "BYTES", value_delimiter = ',', num_args = 0..=1,
        default_missing_value = "")]
    pub spans: Option<Vec<String>>,
    /// Measure and print what an older tool does: random-access (HD Tune), iops, iozone
    #[arg(long, value_name = "NAME", value_parser = one_of(VIEWS))]
    pub view: Option<SweepView>,
    /// Major version of PostgreSQL for the recommended settings [default: that of the data
    /// directory on the target, or of the only installed server]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=99))]
    pub pg_version: Option<u32>,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: MeasuringFlags,
}

/// The operations of `--rw`, under the names that results have.
fn operation_parser() -> impl TypedValueParser<Value = SweepOperation> {
    let value = |one: SweepOperation| {
        let both = (one == SweepOperation::Rw).then_some("readwrite");
        PossibleValue::new(one.as_str())
            .aliases(both)
            .help(one.words())
    };
    PossibleValuesParser::new(SweepOperation::ALL.map(value)).try_map(|word| {
        let both: Option<Rw> = word.parse().ok();
        let name = both.map_or(word.as_str(), |rw| rw.as_str());
        let mut all = SweepOperation::ALL.into_iter();
        all.find(|one| one.as_str() == name)
            .ok_or("no such operation")
    })
}

/// The tables of `--view`.
const VIEWS: &[Choice<SweepView>] = choices! {
    "random-access" SweepView::RandomAccess,
        "HD Tune: random accesses of 512 B, 4 KiB, 64 KiB and 1 MiB, one at a time";
    "iops" SweepView::Iops, "iops(1): random reads at doubling sizes, 32 in flight";
    "iozone" SweepView::Iozone, "iozone: kB/s by record size and operation, one at a time";
};

/// A depth of the matrix.
fn parse_depth(text: &str) -> Result<u32, String> {
    let Count(depth) = parse_listed_count(text).map_err(|error| error.to_string())?;
    match u32::try_from(depth) {
        Ok(fitting) if (1..=DEPTH_MAX).contains(&depth) => Ok(fitting),
        _ => Err(format!("{depth} is not in 1..={DEPTH_MAX}")),
    }
}

/// What an older tool measures where the user names nothing else: sizes, depth, operations.
fn axes_of(view: SweepView) -> (Vec<u32>, u32, Vec<SweepOperation>) {
    use SweepOperation as Op;
    let doubling = |from: u32, upto: u32| {
        let sizes = std::iter::successors(Some(from), |bytes| bytes.checked_mul(2));
        sizes.take_while(|bytes| *bytes <= upto).collect()
    };
    match view {
        SweepView::RandomAccess => {
            let sizes = vec![512, 4 << 10, 64 << 10, 1 << 20];
            (sizes, 1, vec![Op::RandRead, Op::RandWrite])
        }
        SweepView::Iops => (doubling(512, 4 << 20), 32, vec![Op::RandRead]),
        SweepView::Iozone => {
            let first = [Op::Write, Op::Rewrite, Op::Read, Op::Reread];
            let second = [Op::RandRead, Op::RandWrite, Op::Backward, Op::Stride];
            (doubling(4 << 10, 16 << 20), 1, [first, second].concat())
        }
    }
}

/// Measures.
pub fn run(sweep: &SweepFlags) -> anyhow::Result<Exit> {
    let identity = sweep.measuring.probe(&sweep.target)?;
    let plan = plan(sweep, &identity)?;
    measure(MeasuringJob::new(plan, vec![identity], &sweep.measuring))?.exit()
}

fn time_ns(sweep: &SweepFlags) -> u64 {
    let default = if sweep.quick { TIME_NS_QUICK } else { TIME_NS };
    sweep.time.unwrap_or(default)
}

/// The plan of `sweep` for this target.
fn plan(sweep: &SweepFlags, identity: &TargetIdentity) -> Result<Plan, Failure> {
    let (measuring, time_ns) = (&sweep.measuring, time_ns(sweep));
    Failure::check_time(time_ns)?;
    let scratch_bytes = if sweep.quick {
        SCRATCH_BYTES_QUICK
    } else {
        SCRATCH_BYTES
    };
    let scratch_bytes = measuring.scratch_bytes(identity, scratch_bytes)?;
    let target_bytes = scratch_bytes.unwrap_or(identity.size_bytes);
    let mut spec = axes(sweep, identity)?;
    spec.span_bytes = spans(sweep, target_bytes)?;
    let limits = MatrixLimits {
        target_bytes,
        sector_bytes: sector_bytes(std::slice::from_ref(identity)),
        memory_bytes: diskproof_device::memory_free_bytes().unwrap_or(u64::MAX),
        write_bytes: if sweep.quick {
            WRITE_BYTES_QUICK
        } else {
            WRITE_BYTES
        },
        time_ns: time_ns - scratch_bytes.map_or(0, |_| time_ns / LAYOUT_PARTS),
        precision: PRECISION,
        engine: measuring.engine,
        why_not_written: measuring
            .destructive
            .why_not_written(sweep.read_only, identity.kind),
    };
    let matrix = Matrix::of(&spec, &limits);
    if matrix.cells.is_empty() {
        let why = matrix.skipped.first().map_or(String::new(), |one| {
            format!(" {}: {}", one.workload, one.why)
        });
        return Err(Failure::Usage(format!("nothing can be measured.{why}")));
    }
    Ok(Plan {
        scratch: scratch_bytes.map(|bytes| {
            Scratch::of_size(bytes).filled_within(SCRATCH_BYTES_MIN, time_ns / LAYOUT_PARTS)
        }),
        time_limit_ns: Some(time_ns),
        tasks: vec![Task::Workloads(Workloads {
            decide: Decide::Sweep(spec),
            ..Workloads::as_planned(matrix.cells)
        })],
        questions: Questions {
            postgres_version: postgres_version(sweep.pg_version, &sweep.target),
            ..Questions::default()
        },
        skipped: matrix.skipped,
        ..measuring.plan("sweep", std::slice::from_ref(identity))
    })
}

/// What is measured: the axes of the flags, those of the view, or the default ones.
fn axes(sweep: &SweepFlags, identity: &TargetIdentity) -> Result<SweepPlan, Failure> {
    let destructive = &sweep.measuring.destructive;
    let why_not_written = destructive.why_not_written(sweep.read_only, identity.kind);
    let can_write = why_not_written.is_none();
    let second = if can_write {
        SweepOperation::RandWrite
    } else {
        SweepOperation::Read
    };
    let (mut block_bytes, mut depths, mut operations) = match sweep.view.map(axes_of) {
        Some((sizes, depth, operations)) => (sizes, vec![depth], operations),
        None => {
            let (sizes, depths) = if sweep.quick {
                (SIZES_QUICK.to_vec(), DEPTHS_QUICK.to_vec())
            } else {
                (SIZES.to_vec(), DEPTHS.to_vec())
            };
            (sizes, depths, vec![SweepOperation::RandRead, second])
        }
    };
    if !can_write {
        operations.retain(|operation| !operation.writes());
    }
    let sizes = sweep.bs.iter().map(|BlockSize(bytes)| *bytes).collect();
    replace("bs", &mut block_bytes, sizes, |bytes| {
        format_bytes(u64::from(*bytes))
    })?;
    replace(
        "depth",
        &mut depths,
        sweep.depth.clone(),
        ToString::to_string,
    )?;
    replace("rw", &mut operations, sweep.rw.clone(), |one| {
        one.as_str().to_owned()
    })?;
    block_bytes.sort_unstable();
    depths.sort_unstable();
    if let Some(small) = block_bytes.iter().find(|bytes| **bytes < 512) {
        return Err(Failure::Usage(format!(
            "--bs {small}: no disk has smaller sectors than 512 bytes; use at least 512"
        )));
    }
    Ok(SweepPlan {
        operations,
        block_bytes,
        depths,
        span_bytes: Vec::new(),
        view: sweep.view,
    })
}

/// Replaces the values of an axis by those of its flag, if it has any.
fn replace<T: PartialEq>(
    key: &str,
    values: &mut Vec<T>,
    given: Vec<T>,
    word: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    if !given.is_empty() {
        *values = given;
    }
    refuse_repeated(key, values, word).map_err(Failure::Usage)
}

fn spans(sweep: &SweepFlags, target_bytes: u64) -> Result<Vec<u64>, Failure> {
    let Some(given) = &sweep.spans else {
        return Ok(Vec::new());
    };
    let mut spans = Vec::new();
    for text in given.iter().filter(|text| !text.is_empty()) {
        let Bytes(bytes) = text
            .parse()
            .map_err(|error| Failure::Usage(format!("--spans {text}: {error}")))?;
        if !(SPAN_BYTES_MIN..=target_bytes).contains(&bytes) {
            return Err(Failure::Usage(format!(
                "--spans {text}: use sizes from {} to that of the target, {}",
                format_bytes(SPAN_BYTES_MIN),
                format_bytes(target_bytes)
            )));
        }
        spans.push(bytes / SPAN_BYTES_MIN * SPAN_BYTES_MIN);
    }
    if spans.is_empty() {
        let all = std::iter::successors(Some(SPAN_BYTES_MIN), |bytes| bytes.checked_mul(SPAN_STEP));
        spans.extend(all.take_while(|bytes| *bytes < target_bytes));
    }
    spans.push(target_bytes);
    spans.sort_unstable();
    spans.dedup();
    Ok(spans)
}
