//! What a workload means for a target and one thread: when it ends, its budget, and what follows
//! its writes.

use crate::io::Extent;
use crate::load::budget::{Budget, SharedBudget};
use crate::load::generator::AfterWrite;
use crate::load::pattern::block_range;
use crate::measure::turnover::MeasureGate;
use crate::measure::worker::WorkerSchedule;
use diskproof_model::group::Group;
use diskproof_model::plan::{Access, CachePolicy, EngineKind, Span, Stop, SyncPolicy, Workload};
use std::sync::Arc;

/// The longest operation of a workload, in bytes.
pub(crate) fn largest_block(workload: &Workload) -> u32 {
    workload.block_sizes().fold(workload.block_bytes, u32::max)
}

/// A span within `limit` bytes.
pub(crate) fn extent_of(span: Span, limit: u64) -> Extent {
    let start = span.start_bytes.min(limit);
    let length = span
        .length_bytes
        .map_or(limit - start, |length| length.min(limit - start));
    Extent { start, length }
}

/// Requests of a group in flight on so many targets together.
pub(crate) fn in_flight_max(group: Group<'_>, targets: usize) -> u64 {
    let of_one = |workload: &Workload| {
        let places = (0..targets).filter(|target| workload.runs_on(*target));
        u64::from(workload.workers) * u64::from(workload.depth) * places.count() as u64
    };
    group.workloads.iter().map(of_one).sum()
}

/// Threads of each worker: an I/O engine with one request at a time gets its depth from threads.
pub(crate) fn threads_per_worker(depth: u32, kind: EngineKind) -> u32 {
    if matches!(kind, EngineKind::Sync | EngineKind::Mmap) {
        depth
    } else {
        1
    }
}

/// So many queues must fit into the limit of a workload whose measured time waits for the first
/// one: half a gigabyte with eight blocks of 1 MiB.
const TURNOVERS_MIN: u64 = 64;

/// Number of parts of the span, each of which must hold a block.
pub(crate) fn parts_of(workload: &Workload, kind: EngineKind) -> u64 {
    let workers = u64::from(workload.workers);
    match workload.access {
        Access::Random { .. } | Access::Zoned { .. } => 1,
        // The threads of a worker go through its part together.
        Access::Sequential => workers,
        Access::Backward | Access::Stride { .. } => {
            workers * u64::from(threads_per_worker(workload.depth, kind))
        }
    }
}

/// The schedule of workloads that start together at `start_ns`.
pub(crate) fn schedule_of(group: Group<'_>, start_ns: u64) -> WorkerSchedule {
    let measure_ns = start_ns + group.warmup_ns();
    WorkerSchedule {
        start_ns,
        measure_ns,
        end_ns: group
            .time_ns()
            .map_or(u64::MAX / 2, |time| measure_ns.saturating_add(time)),
    }
}

/// Whether and when the workers decide the start of the measured time themselves: after a warm-up,
/// in which closed loops fill their queues.
pub(crate) fn gate_of(
    group: Group<'_>,
    schedule: WorkerSchedule,
    workers: usize,
) -> Option<Arc<MeasureGate>> {
    let is_filling = |workload: &Workload| {
        workload.rate.is_none() && workload.shape.start_delay_ns == 0 && has_room(workload)
    };
    let is_gated = group.warmup_ns() > 0 && group.workloads.iter().all(is_filling);
    let gate = || MeasureGate::new(workers, schedule.measure_ns, group.time_ns());
    is_gated.then(|| Arc::new(gate()))
}

/// Whether the limits of a workload leave enough to measure after a full turnover of its queues,
/// which a fast disk notices only some milliseconds later.
fn has_room(workload: &Workload) -> bool {
    let queued = u64::from(workload.depth) * u64::from(workload.workers);
    steps_max(workload, block_range(workload).1).is_none_or(|limit| limit >= queued * TURNOVERS_MIN)
}

/// The most steps of a workload, whose longest block is this long; `None` without a limit.
fn steps_max(workload: &Workload, longest: u32) -> Option<u64> {
    let Stop { ops, bytes, .. } = workload.stop;
    let by_bytes = bytes.map(|bytes| bytes / u64::from(longest));
    ops.into_iter().chain(by_bytes).min()
}

/// The budget that the `threads` of a workload share. In whole blocks: a rest of less than one
/// block stays unused, of the longest where they differ.
pub(crate) fn budget_of(workload: &Workload, threads: u64) -> Budget {
    let Stop { ops, bytes, .. } = workload.stop;
    let pot = |amount: u64| SharedBudget::new(amount, threads);
    let (shortest, longest) = block_range(workload);
    if shortest != longest {
        return Budget {
            steps: ops.map(pot),
            bytes: bytes.map(|bytes| (pot(bytes), u64::from(longest))),
            part: None,
        };
    }
    Budget {
        steps: steps_max(workload, longest).map(pot),
        ..Budget::default()
    }
}

/// `budget`, of which nothing is used up yet, limited to as many laps of `part` as `workload`
/// may make of all of its span, `whole`; where its steps have an order.
pub(crate) fn within_part(
    budget: &Budget,
    workload: &Workload,
    part: Extent,
    whole: Extent,
) -> Budget {
    let (shortest, longest) = block_range(workload);
    let is_ordered = matches!(
        workload.access,
        Access::Sequential | Access::Backward | Access::Stride { .. }
    );
    let steps = budget
        .steps
        .as_ref()
        .filter(|_| is_ordered && shortest == longest && part != whole);
    let steps_in = |extent: Extent| extent.length / u64::from(longest);
    let most = |steps: &Arc<SharedBudget>| {
        steps
            .left()
            .div_ceil(steps_in(whole).max(1))
            .saturating_mul(steps_in(part))
    };
    Budget {
        part: steps.map(|steps| SharedBudget::new(most(steps), 1)),
        ..budget.clone()
    }
}

/// What follows each write, given the cache mode that holds.
pub(crate) fn after_write_of(workload: &Workload, cache: CachePolicy) -> AfterWrite {
    match workload.sync {
        SyncPolicy::Every {
            writes: 0 | 1,
            call,
        } => AfterWrite::Sync(call),
        SyncPolicy::Every { writes, call } => AfterWrite::SyncEvery(writes, call),
        SyncPolicy::Shared { call } | SyncPolicy::OtherDescriptor { call } => {
            AfterWrite::Sync(call)
        }
        SyncPolicy::WithWrite { .. } => AfterWrite::Durable,
        SyncPolicy::None | SyncPolicy::AtEnd if cache == CachePolicy::Buffered => {
            AfterWrite::WriteBack
        }
        SyncPolicy::None | SyncPolicy::AtEnd => AfterWrite::Nothing,
    }
}
