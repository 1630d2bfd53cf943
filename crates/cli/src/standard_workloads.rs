//! The eight workloads that matter to a database, with their shares of a run's time. `check`
//! measures them, `compare` some of them on several targets.

use crate::flags::{MeasuringFlags, SECOND};
use diskproof_analysis::campaign::LiveSetup;
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, Layout, Stop, SyncCall, SyncPolicy, Workload,
};
use diskproof_model::stream::Streams;
use diskproof_model::units::format_duration;

/// PostgreSQL's page.
const PAGE_BYTES: u32 = 8192;
/// Request size of sequential scans, bulk loads and backups at the disk.
pub(crate) const LARGE_BYTES: u32 = 1 << 20;
/// Large requests in flight.
pub(crate) const LARGE_DEPTH: u32 = 8;
/// Enough to keep an SSD's channels busy, and what the PostgreSQL cookbook uses.
const DEPTH: u32 = 32;
/// Relative half-width of the interval that ends a workload.
const PRECISION: f64 = 0.02;
/// Commits are slow: only a disk in RAM reaches this limit.
const COMMIT_BYTES_MAX: u64 = 1 << 30;
/// Four lanes of PCI Express 5.0 (15.75 GB/s): no disk moves more, so that a warm-up leaves at
/// least half of the bytes that a workload may move.
const LINK_BYTES_PER_SECOND_MAX: u128 = 16_000_000_000;
/// The longest warm-up of a workload's first cell on a side.
const SIDE_WARMUP_NS: u64 = SECOND / 2;

/// The eight workloads with their shares of the time, that of the sequential writes in 58ths. The
/// bytes that each may write are a multiple of `write_bytes`. The first one overwrites the file,
/// which was written for the first time just before: the blocks of a new file are allocated as they
/// are written, which is another task. Reads come before the writes that would disturb them.
pub(crate) fn standard_workloads(
    measuring: &MeasuringFlags,
    time_ns: u64,
    write_bytes: u64,
    sequential_share: u64,
) -> Vec<Workload> {
    let twice = write_bytes.saturating_mul(2);
    let pages = |name: &str, access, read_permille, depth| Workload {
        access,
        streams: Streams::with_reads(read_permille),
        depth,
        block_bytes: PAGE_BYTES,
        layout: Layout::Needed,
        ..Workload::named(name)
    };
    let sequential = |name, reads, depth| pages(name, Access::Sequential, reads, depth);
    let uniform = || Workload::named("").access;
    let random = |name, reads, depth| pages(name, uniform(), reads, depth);
    let sequential_write = Workload {
        block_bytes: LARGE_BYTES,
        sync: SyncPolicy::AtEnd,
        ..sequential("sequential-write", 0, LARGE_DEPTH)
    };
    let sequential_read = Workload {
        block_bytes: LARGE_BYTES,
        ..sequential("sequential-read", 1000, LARGE_DEPTH)
    };
    // PostgreSQL writes its WAL through the page cache (debug_io_direct is off) and makes it
    // durable by fdatasync.
    let commit = Workload {
        sync: SyncPolicy::Every {
            writes: 1,
            call: SyncCall::Fdatasync,
        },
        cache: CachePolicy::Cached,
        ..sequential("commit-fdatasync", 0, 1)
    };
    let share = |share: u64, bytes, workload| Workload {
        engine: measuring.engine.unwrap_or(EngineChoice::Auto),
        ..timed(workload, time_ns / 58 * share, bytes)
    };
    vec![
        share(sequential_share, Some(twice), sequential_write),
        share(7, None, sequential_read),
        share(7, None, random("random-read-d1", 1000, 1)),
        share(7, None, random("random-read-d32", 1000, DEPTH)),
        share(7, Some(COMMIT_BYTES_MAX.min(write_bytes)), commit),
        share(7, Some(twice), sequential("mixed-sequential", 500, DEPTH)),
        share(7, Some(write_bytes), random("mixed-random", 500, DEPTH)),
        share(7, Some(write_bytes), random("random-write-d32", 0, DEPTH)),
    ]
}

/// Shares the time of all cells out to workloads on several sides. Fails if that is too short.
pub(crate) fn share_among_sides(
    mut workloads: Vec<Workload>,
    sides: usize,
    called: &str,
    time_ns: u64,
    cells_ns: u64,
) -> Result<Vec<Workload>, String> {
    let least_ns = LiveSetup::time_ns_min(workloads.len(), sides);
    if cells_ns < least_ns {
        let needed = least_ns as f64 * time_ns as f64 / cells_ns.max(1) as f64;
        let needed_ns = (needed / SECOND as f64).ceil() as u64 * SECOND;
        return Err(format!(
            "--time {}: too short for {} workloads on {sides} {called}; use at least {}",
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
    let joint = |workload: &Workload| {
        let mut joint = workload.clone();
        let each_ns = workload.stop.time_ns.unwrap_or(0) + workload.warmup_ns;
        joint.stop.time_ns = Some(each_ns * sides as u64 - workload.warmup_ns);
        joint
    };
    workloads.iter().map(joint).collect()
}

/// The workload for so long, or until it has moved `bytes`. A part of the time is the warm-up.
fn timed(workload: Workload, time_ns: u64, bytes: Option<u64>) -> Workload {
    let unspent_ns = bytes.map_or(u64::MAX, |bytes| {
        (u128::from(bytes / 2) * u128::from(SECOND) / LINK_BYTES_PER_SECOND_MAX) as u64
    });
    let warmup_ns = (time_ns / 20).min(SECOND).min(unspent_ns);
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
