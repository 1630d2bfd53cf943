//! Defines the eight workloads that matter to a database, with their shares of a run's time.
//! `check` measures them, `compare` some of them on several targets.

use crate::flags::{MeasuringFlags, SECOND_NS};
use diskproof_analysis::campaign::LiveSetup;
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, Layout, Stop, SyncCall, SyncPolicy, Workload,
};
use diskproof_model::stream::Streams;
use diskproof_model::units::format_duration;

/// PostgreSQL's page (BLCKSZ).
const PAGE_BYTES: u32 = 8192;
/// Request size of sequential scans, bulk loads and backups at the disk.
pub(crate) const LARGE_BYTES: u32 = 1 << 20;
/// Large requests in flight. Chosen, not measured: enough for a disk to answer without a pause.
pub(crate) const LARGE_DEPTH: u32 = 8;
/// Enough to keep an SSD's channels busy, and what the PostgreSQL cookbook uses.
const DEPTH: u32 = 32;
/// A workload ends early once its rate is known to ± 2 % (docs/compare.md).
const PRECISION: f64 = 0.02;
/// Commits are slow: only a disk in RAM reaches this limit.
const COMMIT_BYTES_MAX: u64 = 1 << 30;
/// Four lanes of PCI Express 5.0 (15.75 GB/s): no disk moves more, so that a warm-up leaves at
/// least half of the bytes that a workload may move.
const LINK_BYTES_PER_SECOND_MAX: u128 = 16_000_000_000;
/// The longest warm-up of a workload's first cell on a side. Chosen, not measured.
const SIDE_WARMUP_NS: u64 = SECOND_NS / 2;
/// The time has this many parts: 7 for each of seven workloads, and 9 for the sequential writes.
pub(crate) const TIME_PARTS: u64 = 58;
/// Parts of the time of each workload but the sequential writes.
pub(crate) const WORKLOAD_PARTS: u64 = 7;
/// A workload warms up for a twentieth of its time, and for a second at most. Chosen, not measured.
const WARMUP_DIVISOR: u64 = 20;
/// The share of reads of a workload that only reads, for `Streams::with_reads`.
pub(crate) const READS_ONLY_PERMILLE: u16 = 1000;
/// The share of reads of a workload that reads and writes alike.
pub(crate) const HALF_READS_PERMILLE: u16 = 500;
/// The share of reads of a workload that only writes.
pub(crate) const WRITES_ONLY_PERMILLE: u16 = 0;

/// The eight workloads with their shares of the time, that of the sequential writes in parts of
/// [`TIME_PARTS`]. The bytes that each may write are a multiple of `write_bytes`. The first one
/// overwrites the file, which was written for the first time just before: the blocks of a new file
/// are allocated as they are written, which is another task. Reads come before the writes that
/// would disturb them.
pub(crate) fn standard_workloads(
    measuring: &MeasuringFlags,
    time_ns: u64,
    write_bytes: u64,
    sequential_parts: u64,
) -> Vec<Workload> {
    let sequential_write = Workload {
        block_bytes: LARGE_BYTES,
        sync: SyncPolicy::AtEnd,
        ..sequential_pages("sequential-write", WRITES_ONLY_PERMILLE, LARGE_DEPTH)
    };
    let sequential_read = Workload {
        block_bytes: LARGE_BYTES,
        ..sequential_pages("sequential-read", READS_ONLY_PERMILLE, LARGE_DEPTH)
    };
    // PostgreSQL writes its WAL through the page cache (debug_io_direct is off) and makes it
    // durable by fdatasync.
    let commit = Workload {
        sync: SyncPolicy::Every {
            writes: 1,
            call: SyncCall::Fdatasync,
        },
        cache: CachePolicy::Cached,
        ..sequential_pages("commit-fdatasync", WRITES_ONLY_PERMILLE, 1)
    };
    let random_read = random_pages("random-read-d1", READS_ONLY_PERMILLE, 1);
    let deep_random_read = random_pages("random-read-d32", READS_ONLY_PERMILLE, DEPTH);
    let mixed_sequential = sequential_pages("mixed-sequential", HALF_READS_PERMILLE, DEPTH);
    let mixed_random = random_pages("mixed-random", HALF_READS_PERMILLE, DEPTH);
    let random_write = random_pages("random-write-d32", WRITES_ONLY_PERMILLE, DEPTH);

    let sequential_write_ns = time_ns / TIME_PARTS * sequential_parts;
    let other_ns = time_ns / TIME_PARTS * WORKLOAD_PARTS;
    let twice = write_bytes.saturating_mul(2);
    let commit_bytes = COMMIT_BYTES_MAX.min(write_bytes);
    let mut workloads = vec![
        timed(sequential_write, sequential_write_ns, Some(twice)),
        timed(sequential_read, other_ns, None),
        timed(random_read, other_ns, None),
        timed(deep_random_read, other_ns, None),
        timed(commit, other_ns, Some(commit_bytes)),
        timed(mixed_sequential, other_ns, Some(twice)),
        timed(mixed_random, other_ns, Some(write_bytes)),
        timed(random_write, other_ns, Some(write_bytes)),
    ];
    for workload in &mut workloads {
        workload.engine = measuring.engine.unwrap_or(EngineChoice::Auto);
    }
    workloads
}

fn sequential_pages(name: &str, read_permille: u16, depth: u32) -> Workload {
    Workload {
        access: Access::Sequential,
        ..random_pages(name, read_permille, depth)
    }
}

fn random_pages(name: &str, read_permille: u16, depth: u32) -> Workload {
    Workload {
        streams: Streams::with_reads(read_permille),
        depth,
        block_bytes: PAGE_BYTES,
        layout: Layout::Needed,
        ..Workload::named(name)
    }
}

/// Shares the time of all cells, `cells_ns`, out to workloads on several sides, which errors call
/// `side_noun`. Fails if that is too short, and names the `--time` that would do.
pub(crate) fn share_among_sides(
    mut workloads: Vec<Workload>,
    sides: usize,
    side_noun: &str,
    time_ns: u64,
    cells_ns: u64,
) -> Result<Vec<Workload>, String> {
    let least_ns = LiveSetup::time_ns_min(workloads.len(), sides);
    if cells_ns < least_ns {
        // As a share of --time, the cells keep what they have of it now.
        let needed = least_ns as f64 * time_ns as f64 / cells_ns.max(1) as f64;
        let needed_ns = (needed / SECOND_NS as f64).ceil() as u64 * SECOND_NS;
        return Err(format!(
            "--time {}: too short for {} workloads on {sides} {side_noun}; use at least {}",
            format_duration(time_ns),
            workloads.len(),
            format_duration(needed_ns)
        ));
    }
    let each_ns = cells_ns / (workloads.len() * sides) as u64;
    for workload in &mut workloads {
        workload.warmup_ns = SIDE_WARMUP_NS.min(each_ns / 4);
        workload.stop.time_ns = Some(each_ns - workload.warmup_ns);
        workload.stop.precision = None;
    }
    Ok(workloads)
}

/// The workloads of one side with the time of all sides together.
pub(crate) fn of_all_sides(workloads: &[Workload], sides: usize) -> Vec<Workload> {
    let mut joint_workloads = workloads.to_vec();
    for workload in &mut joint_workloads {
        let each_ns = workload.stop.time_ns.unwrap_or(0) + workload.warmup_ns;
        workload.stop.time_ns = Some(each_ns * sides as u64 - workload.warmup_ns);
    }
    joint_workloads
}

/// Limits a workload to this time, of which a part is the warm-up, and to this many bytes.
fn timed(workload: Workload, time_ns: u64, bytes: Option<u64>) -> Workload {
    let mut warmup_ns = (time_ns / WARMUP_DIVISOR).min(SECOND_NS);
    if let Some(bytes) = bytes {
        let half_ns = u128::from(bytes / 2) * u128::from(SECOND_NS) / LINK_BYTES_PER_SECOND_MAX;
        warmup_ns = warmup_ns.min(half_ns as u64);
    }
    Workload {
        stop: Stop {
            precision: Some(PRECISION),
            time_ns: Some(time_ns - warmup_ns),
            bytes,
            ops: None,
        },
        warmup_ns,
        ..workload
    }
}
