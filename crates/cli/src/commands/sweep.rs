//! `diskproof sweep`: what a disk does at each block size, depth and operation, coarse to fine.

mod matrix;

use crate::failure::{Exit, Failure};
use crate::flags::{
    Choice, MeasuringFlags, SCRATCH_BYTES_MIN, SECOND_NS, WriteBan, choices, one_of,
};
use crate::plan_file::sector_bytes;
use crate::postgres::postgres_version;
use crate::session::{MeasuringJob, measure};
use crate::workload::{
    BlockSize, Bytes, Count, parse_listed_count, parse_listed_size, parse_time, refuse_repeated,
};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use diskproof_model::plan::{Decide, Plan, Questions, Scratch, Task, Workloads};
use diskproof_model::rw::Rw;
use diskproof_model::sweep::{SweepOperation, SweepPlan, SweepView};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_bytes;
use matrix::{Matrix, MatrixLimits};
use std::path::PathBuf;

/// The help promises 3 min.
const DEFAULT_TIME_NS: u64 = 180 * SECOND_NS;
/// The help promises 20 s with --quick.
const QUICK_TIME_NS: u64 = 20 * SECOND_NS;
/// The first write of the scratch file may take a tenth of the time.
const LAYOUT_DIVISOR: u64 = 10;
/// A cell ends early once its rate is known to ± 2 %.
const PRECISION: f64 = 0.02;
/// A scratch file of four times the largest cache of a drive, 1 GiB.
const DEFAULT_SCRATCH_BYTES: u64 = 4 << 30;
/// The scratch file with --quick: not smaller than the largest cache of a drive.
const QUICK_SCRATCH_BYTES: u64 = 1 << 30;
/// Together the writing cells write about so much, which wears a disk as little as eight scratch
/// files do.
const DEFAULT_WRITE_BYTES: u64 = 32 << 30;
/// The bytes that writing cells write with --quick: as much as eight of its scratch files.
const QUICK_WRITE_BYTES: u64 = 8 << 30;
/// Block sizes from a page of the kernel to what no disk splits further. Among them are the page of
/// PostgreSQL and its largest combined read, 128 KiB by default.
const DEFAULT_BLOCK_BYTES: [u32; 7] = [
    4 << 10,
    8 << 10,
    32 << 10,
    128 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
];
/// The block sizes with --quick: PostgreSQL's page, its largest combined read, and the request of a
/// scan.
const QUICK_BLOCK_BYTES: [u32; 3] = [8 << 10, 128 << 10, 1 << 20];
/// Doubling depths, so that the knee is known to a factor of two.
const DEFAULT_DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Every other depth, with --quick.
const QUICK_DEPTHS: [u32; 4] = [1, 4, 16, 64];
/// The most that `--depth` accepts.
const DEPTH_MAX: u64 = 256;
/// No disk has smaller sectors.
const BLOCK_BYTES_MIN: u32 = 512;
/// The smallest of `--spans`. All are multiples of it, but for that of the whole target.
const SPAN_BYTES_MIN: u64 = 1 << 20;
/// Each span of `--spans` without a value is this many times as large as the one before.
const SPAN_FACTOR: u64 = 4;

const HELP: &str = "\
Each cell is a block size at a depth (requests in flight). The default matrix
has 7 sizes from 4 KiB to 4 MiB, 7 depths from 1 to 64, and random reads and
writes, or random and sequential reads if the target is only read. It takes at
most 3 min: first a coarse matrix, then all cells in random order, then more
time for the least certain cells. After Ctrl-C, a cost model predicts the cells
that were not measured, marked with ~.

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
    #[arg(long, value_name = "DURATION", value_parser = parse_time)]
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
        default_missing_value = SPANS_WITHOUT_VALUE, value_parser = parse_span)]
    pub spans: Option<Vec<SpanSize>>,
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

/// What clap puts in place of the value of `--spans` without one.
const SPANS_WITHOUT_VALUE: &str = "";

/// A value of `--spans`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanSize {
    /// The flag without a value: factors of four from 1 MiB on.
    Growing,
    /// A size in bytes.
    Bytes(u64),
}

fn parse_span(text: &str) -> Result<SpanSize, String> {
    if text == SPANS_WITHOUT_VALUE {
        return Ok(SpanSize::Growing);
    }
    match text.parse() {
        Ok(Bytes(bytes)) => Ok(SpanSize::Bytes(bytes)),
        Err(error) => Err(error.to_string()),
    }
}

/// The operations of `--rw`, under the names that results have.
fn operation_parser() -> impl TypedValueParser<Value = SweepOperation> {
    PossibleValuesParser::new(SweepOperation::ALL.map(possible_value))
        .try_map(|word| parse_operation(&word))
}

fn possible_value(operation: SweepOperation) -> PossibleValue {
    let value = PossibleValue::new(operation.as_str()).help(operation.words());
    match operation {
        SweepOperation::Rw => value.alias("readwrite"),
        _ => value,
    }
}

fn parse_operation(word: &str) -> Result<SweepOperation, &'static str> {
    // fio has two names for some operations.
    let name = match word.parse::<Rw>() {
        Ok(rw) => rw.as_str(),
        Err(_) => word,
    };
    for operation in SweepOperation::ALL {
        if operation.as_str() == name {
            return Ok(operation);
        }
    }
    Err("no such operation")
}

/// The tables of `--view`.
const VIEWS: &[Choice<SweepView>] = choices! {
    "random-access" SweepView::RandomAccess,
        "HD Tune: random accesses of 512 B, 4 KiB, 64 KiB and 1 MiB, one at a time";
    "iops" SweepView::Iops, "iops(1): random reads at doubling sizes, 32 in flight";
    "iozone" SweepView::Iozone, "iozone: kB/s by record size and operation, one at a time";
};

/// Reads a depth of the matrix.
fn parse_depth(text: &str) -> Result<u32, String> {
    let Count(depth) = parse_listed_count(text).map_err(|error| error.to_string())?;
    match u32::try_from(depth) {
        Ok(fitting) if (1..=DEPTH_MAX).contains(&depth) => Ok(fitting),
        _ => Err(format!("{depth} is not in 1..={DEPTH_MAX}")),
    }
}

/// The axes of the matrix that the flags do not set.
struct DefaultAxes {
    block_bytes: Vec<u32>,
    depths: Vec<u32>,
    operations: Vec<SweepOperation>,
}

/// The axes that an older tool measures.
fn view_axes(view: SweepView) -> DefaultAxes {
    use SweepOperation as Op;
    match view {
        SweepView::RandomAccess => DefaultAxes {
            block_bytes: vec![512, 4 << 10, 64 << 10, 1 << 20],
            depths: vec![1],
            operations: vec![Op::RandRead, Op::RandWrite],
        },
        SweepView::Iops => DefaultAxes {
            block_bytes: doubling_sizes(BLOCK_BYTES_MIN, 4 << 20),
            depths: vec![32],
            operations: vec![Op::RandRead],
        },
        SweepView::Iozone => DefaultAxes {
            block_bytes: doubling_sizes(4 << 10, 16 << 20),
            depths: vec![1],
            operations: vec![
                Op::Write,
                Op::Rewrite,
                Op::Read,
                Op::Reread,
                Op::RandRead,
                Op::RandWrite,
                Op::Backward,
                Op::Stride,
            ],
        },
    }
}

/// The sizes from the smallest, each twice the one before, up to the largest.
fn doubling_sizes(smallest: u32, largest: u32) -> Vec<u32> {
    let mut sizes = Vec::new();
    let mut bytes = smallest;
    while bytes <= largest {
        sizes.push(bytes);
        bytes *= 2;
    }
    sizes
}

/// Measures the cells of the matrix, and the spans.
pub fn run(sweep: &SweepFlags) -> anyhow::Result<Exit> {
    let identity = sweep.measuring.probe(&sweep.target)?;
    let plan = sweep_plan(sweep, &identity)?;
    measure(MeasuringJob::new(plan, vec![identity], &sweep.measuring))?.exit()
}

/// The time of the whole run.
fn total_ns(sweep: &SweepFlags) -> u64 {
    let default_ns = if sweep.quick {
        QUICK_TIME_NS
    } else {
        DEFAULT_TIME_NS
    };
    sweep.time.unwrap_or(default_ns)
}

/// The plan of `sweep` for this target. Fails where the target can do none of the cells.
fn sweep_plan(sweep: &SweepFlags, identity: &TargetIdentity) -> Result<Plan, Failure> {
    let measuring = &sweep.measuring;
    let time_ns = total_ns(sweep);
    Failure::check_time(time_ns)?;
    let scratch = sweep_scratch(sweep, identity, time_ns)?;
    let target_bytes = match &scratch {
        Some(scratch) => scratch.size_bytes,
        None => identity.size_bytes,
    };
    let write_ban = measuring
        .destructive
        .write_ban(sweep.read_only, identity.kind);
    let mut axes = matrix_axes(sweep, write_ban)?;
    axes.span_bytes = span_sizes(sweep.spans.as_deref(), target_bytes)?;
    let limits = MatrixLimits {
        target_bytes,
        sector_bytes: sector_bytes(std::slice::from_ref(identity)),
        memory_bytes: diskproof_device::memory_free_bytes().unwrap_or(u64::MAX),
        write_bytes: if sweep.quick {
            QUICK_WRITE_BYTES
        } else {
            DEFAULT_WRITE_BYTES
        },
        time_ns: if scratch.is_some() {
            time_ns - layout_ns(time_ns)
        } else {
            time_ns
        },
        precision: PRECISION,
        engine: measuring.engine,
        write_ban,
    };
    let matrix = Matrix::from_plan(&axes, &limits);
    if matrix.cells.is_empty() {
        return Err(nothing_to_measure(&matrix));
    }
    Ok(Plan {
        scratch,
        time_limit_ns: Some(time_ns),
        tasks: vec![Task::Workloads(Workloads {
            decide: Decide::Sweep(axes),
            ..Workloads::as_planned(matrix.cells)
        })],
        questions: Questions {
            postgres_version: postgres_version(sweep.pg_version, &sweep.target, None),
            ..Questions::default()
        },
        skipped: matrix.skipped,
        ..measuring.plan("sweep", std::slice::from_ref(identity))
    })
}

/// The scratch file in a directory; `None` where the target itself is measured.
fn sweep_scratch(
    sweep: &SweepFlags,
    identity: &TargetIdentity,
    time_ns: u64,
) -> Result<Option<Scratch>, Failure> {
    let default_bytes = if sweep.quick {
        QUICK_SCRATCH_BYTES
    } else {
        DEFAULT_SCRATCH_BYTES
    };
    let Some(bytes) = sweep.measuring.scratch_bytes(identity, default_bytes)? else {
        return Ok(None);
    };
    let scratch = Scratch::of_size(bytes).filled_within(SCRATCH_BYTES_MIN, layout_ns(time_ns));
    Ok(Some(scratch))
}

/// The part of the time in which the scratch file is filled.
fn layout_ns(time_ns: u64) -> u64 {
    time_ns / LAYOUT_DIVISOR
}

/// The error of a matrix without a cell: it says why the first one was skipped.
fn nothing_to_measure(matrix: &Matrix) -> Failure {
    let mut text = "nothing can be measured.".to_owned();
    if let Some(first) = matrix.skipped.first() {
        text.push_str(&format!(" {}: {}", first.workload, first.why));
    }
    Failure::Usage(text)
}

/// The axes of the matrix: those of the flags, of the view, or the default ones, without spans.
fn matrix_axes(sweep: &SweepFlags, write_ban: Option<WriteBan>) -> Result<SweepPlan, Failure> {
    let DefaultAxes {
        mut block_bytes,
        mut depths,
        mut operations,
    } = default_axes(sweep, write_ban);
    if !sweep.bs.is_empty() {
        block_bytes = sweep.bs.iter().map(|size| size.0).collect();
        refuse_repeated("bs", &block_bytes, |bytes| format_bytes(u64::from(*bytes)))
            .map_err(Failure::Usage)?;
    }
    if !sweep.depth.is_empty() {
        depths = sweep.depth.clone();
        refuse_repeated("depth", &depths, u32::to_string).map_err(Failure::Usage)?;
    }
    if !sweep.rw.is_empty() {
        operations = sweep.rw.clone();
        refuse_repeated("rw", &operations, |operation| operation.as_str().to_owned())
            .map_err(Failure::Usage)?;
    }
    block_bytes.sort_unstable();
    depths.sort_unstable();
    if let Some(small) = block_bytes.iter().find(|bytes| **bytes < BLOCK_BYTES_MIN) {
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

/// The axes without flags. Where nothing may be written, they have no writing operation.
fn default_axes(sweep: &SweepFlags, write_ban: Option<WriteBan>) -> DefaultAxes {
    let can_write = write_ban.is_none();
    if let Some(view) = sweep.view {
        let mut axes = view_axes(view);
        if !can_write {
            axes.operations.retain(|operation| !operation.writes());
        }
        return axes;
    }
    let second_operation = if can_write {
        SweepOperation::RandWrite
    } else {
        SweepOperation::Read
    };
    let operations = vec![SweepOperation::RandRead, second_operation];
    if sweep.quick {
        return DefaultAxes {
            block_bytes: QUICK_BLOCK_BYTES.to_vec(),
            depths: QUICK_DEPTHS.to_vec(),
            operations,
        };
    }
    DefaultAxes {
        block_bytes: DEFAULT_BLOCK_BYTES.to_vec(),
        depths: DEFAULT_DEPTHS.to_vec(),
        operations,
    }
}

/// The parts of the target that `--spans` gives, in whole MiB, ascending and each once. The last
/// one is the whole target. Empty without the flag.
fn span_sizes(given: Option<&[SpanSize]>, target_bytes: u64) -> Result<Vec<u64>, Failure> {
    let Some(given) = given else {
        return Ok(Vec::new());
    };
    let mut spans = Vec::new();
    for size in given {
        match *size {
            SpanSize::Bytes(bytes) if (SPAN_BYTES_MIN..=target_bytes).contains(&bytes) => {
                spans.push(bytes / SPAN_BYTES_MIN * SPAN_BYTES_MIN);
            }
            SpanSize::Bytes(bytes) => {
                return Err(Failure::Usage(format!(
                    "--spans {}: use sizes from {} to that of the target, {}",
                    format_bytes(bytes),
                    format_bytes(SPAN_BYTES_MIN),
                    format_bytes(target_bytes)
                )));
            }
            SpanSize::Growing => spans.extend(growing_spans(target_bytes)),
        }
    }
    spans.push(target_bytes);
    spans.sort_unstable();
    spans.dedup();
    Ok(spans)
}

/// Sizes from the smallest span on, each [`SPAN_FACTOR`] times the one before, below the target's.
fn growing_spans(target_bytes: u64) -> Vec<u64> {
    let mut spans = Vec::new();
    let mut bytes = SPAN_BYTES_MIN;
    while bytes < target_bytes {
        spans.push(bytes);
        bytes = bytes.saturating_mul(SPAN_FACTOR);
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn spans_without_value_grow_by_four_up_to_the_target() {
        let spans = span_sizes(Some(&[SpanSize::Growing]), 100 * MIB).unwrap();
        assert_eq!(spans, [MIB, 4 * MIB, 16 * MIB, 64 * MIB, 100 * MIB]);
        assert!(span_sizes(None, 100 * MIB).unwrap().is_empty());
    }

    #[test]
    fn spans_are_whole_mib_once_and_end_with_the_target() {
        let given = [9 * MIB + 5, 9 * MIB, 2 * MIB].map(SpanSize::Bytes);
        let spans = span_sizes(Some(&given), 100 * MIB + 3).unwrap();
        assert_eq!(spans, [2 * MIB, 9 * MIB, 100 * MIB + 3]);
    }

    #[test]
    fn spans_outside_of_the_target_are_refused() {
        for bytes in [MIB - 1, 100 * MIB + 1] {
            assert!(span_sizes(Some(&[SpanSize::Bytes(bytes)]), 100 * MIB).is_err());
        }
    }

    #[test]
    fn views_have_the_sizes_of_their_tools() {
        let iops = view_axes(SweepView::Iops).block_bytes;
        assert_eq!(
            (iops[0], iops.len(), iops.last()),
            (512, 14, Some(&(4 << 20)))
        );
        let iozone = view_axes(SweepView::Iozone).block_bytes;
        assert_eq!((iozone[0], iozone.last()), (4096, Some(&(16 << 20))));
    }
}
