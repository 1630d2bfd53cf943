//! Translates the parts of a workload that several options of fio need: jobs, depth, sizes, shares
//! in percent.

use diskproof_model::measurement::Measurement;
use diskproof_model::plan::{EngineKind, Workload, WriteFlag};

/// The number of fio's jobs. An interface that has one request per thread needs as many jobs as
/// requests must be in flight.
pub(super) fn job_count(ran: &Measurement) -> u32 {
    let workers = ran.workload.workers;
    if is_blocking(ran.engine.used) {
        workers * depth(ran)
    } else {
        workers
    }
}

/// The requests in flight per worker: fewer than planned where the first ones were too slow.
pub(super) fn depth(ran: &Measurement) -> u32 {
    ran.limited_depth().unwrap_or(ran.workload.depth)
}

/// True if a worker of this engine has one request in flight, like a job of fio with `psync`.
pub(super) fn is_blocking(engine: EngineKind) -> bool {
    matches!(engine, EngineKind::Sync | EngineKind::Mmap)
}

/// Bytes of the largest request.
pub(super) fn largest_block_bytes(workload: &Workload) -> u64 {
    workload
        .block_mix
        .iter()
        .chain(workload.streams.other_sizes())
        .map(|share| u64::from(share.block_bytes))
        .fold(u64::from(workload.block_bytes), u64::max)
}

/// The weights as whole percents, because fio takes no fractions. They add up to 100: cumulative
/// shares are rounded, so that no error piles up. No percent is zero, which fio would take for no
/// value. The largest one becomes smaller instead.
pub(super) fn whole_percents(weights: &[f64]) -> Vec<u32> {
    let total: f64 = weights.iter().sum();
    let (mut sum, mut before) = (0.0, 0);
    let mut percents: Vec<u32> = Vec::new();
    for weight in weights {
        sum += weight;
        let here = (sum / total * 100.0).round() as u32;
        percents.push(here.saturating_sub(before).max(1));
        before = here;
    }
    let excess = percents.iter().sum::<u32>().saturating_sub(100);
    if let Some(largest) = percents.iter_mut().max() {
        *largest = largest.saturating_sub(excess).max(1);
    }
    percents
}

/// The value of `sync` for this flag of writes.
pub(super) fn sync_value(flag: WriteFlag) -> &'static str {
    match flag {
        // fio has no RWF_DSYNC; the kernel treats a write with it as one with O_DSYNC
        // (iocb_flags() and kiocb_set_rw_flags() in Linux's include/linux/fs.h).
        WriteFlag::OpenDsync | WriteFlag::RwfDsync => "dsync",
        WriteFlag::OpenSync => "sync",
    }
}
