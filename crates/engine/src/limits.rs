//! What a workload's words mean to one thread: when it ends, what it may use up, what follows its writes.

use crate::feed::{AfterWrite, Allowance};
use crate::worker::Schedule;
use diskproof_model::group::Group;
use diskproof_model::plan::{CachePolicy, SyncPolicy, Workload};

/// The longest operation of a workload, in bytes.
pub fn largest_block(workload: &Workload) -> u32 {
    workload.block_mix.iter().map(|share| share.block_bytes).fold(workload.block_bytes, u32::max)
}

/// When workloads that start together at `start_ns` measure and end: all alike.
pub fn schedule_of(group: Group<'_>, start_ns: u64) -> Schedule {
    let measure_ns = start_ns + group.warmup_ns();
    Schedule { measure_ns, end_ns: group.time_ns().map_or(u64::MAX / 2, |time| measure_ns.saturating_add(time)) }
}

/// The share of thread `index` of `threads` in the workload's limits.
pub fn allowance_of(workload: &Workload, index: u64, threads: u64) -> Allowance {
    let share = |total: Option<u64>, unit: u64| match total {
        None => u64::MAX / 2,
        // In whole units, the remainder to the first threads.
        Some(total) => (total / unit / threads + u64::from(index < total / unit % threads)) * unit,
    };
    Allowance { ops: share(workload.stop.ops, 1), bytes: share(workload.stop.bytes, u64::from(largest_block(workload))) }
}

/// What follows each write, given the cache mode that holds.
pub fn after_write_of(workload: &Workload, cache: CachePolicy) -> AfterWrite {
    match workload.sync {
        SyncPolicy::Every { writes: 0 | 1, call } => AfterWrite::Sync(call),
        SyncPolicy::Every { writes, call } => AfterWrite::SyncEvery(writes, call),
        SyncPolicy::None | SyncPolicy::AtEnd if cache == CachePolicy::Buffered => AfterWrite::WriteBack,
        SyncPolicy::None | SyncPolicy::AtEnd => AfterWrite::Nothing,
    }
}
