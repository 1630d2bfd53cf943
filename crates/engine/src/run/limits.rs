//! Derives from a workload what one thread on a target may do: when it ends, its budget, and what
//! follows its writes.

use crate::io::Extent;
use crate::load::budget::{Budget, ByteBudget, SharedBudget};
use crate::load::generator::AfterWrite;
use crate::load::pattern::block_range;
use crate::measure::turnover::MeasureStart;
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
    let length = match span.length_bytes {
        Some(length) => length.min(limit - start),
        None => limit - start,
    };
    Extent { start, length }
}

/// Requests of a group in flight on so many targets together.
pub(crate) fn in_flight_max(group: Group<'_>, targets: usize) -> u64 {
    let mut in_flight = 0;
    for workload in group.workloads {
        let places = (0..targets)
            .filter(|target| workload.runs_on(*target))
            .count();
        in_flight += workload.total_depth() * places as u64;
    }
    in_flight
}

/// Threads of each worker: an I/O engine with one request at a time gets its depth from threads.
pub(crate) fn threads_per_worker(depth: u32, kind: EngineKind) -> u32 {
    if matches!(kind, EngineKind::Sync | EngineKind::Mmap) {
        depth
    } else {
        1
    }
}

/// The limit of a workload must hold so many of its queues, if its measured time is to wait for the
/// first one: half a gigabyte with eight blocks of 1 MiB. Chosen, not measured.
const TURNOVERS_MIN: u64 = 64;

/// Number of parts of the span, each of which must hold a block.
pub(crate) fn parts_of(workload: &Workload, kind: EngineKind) -> u64 {
    let workers = u64::from(workload.workers);
    if workload.shape.order.fio.is_some() {
        // The order says the places of all threads.
        return workers;
    }
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
        end_ns: match group.time_ns() {
            Some(time_ns) => measure_ns.saturating_add(time_ns),
            None => u64::MAX / 2,
        },
    }
}

/// Lets the workers decide together when the measured time starts, after a warm-up in which closed
/// loops fill their queues; `None` where the schedule decides it.
pub(crate) fn shared_measure_start(
    group: Group<'_>,
    schedule: WorkerSchedule,
    workers: usize,
) -> Option<Arc<MeasureStart>> {
    if group.warmup_ns() == 0 || !group.workloads.iter().all(fills_queues) {
        return None;
    }
    let measure_start = MeasureStart::new(workers, schedule.measure_ns, group.shortest_ns());
    Some(Arc::new(measure_start))
}

/// True if a workload fills its queues in its warm-up, and has enough left to do afterwards.
fn fills_queues(workload: &Workload) -> bool {
    let starts = &workload.shape.starts;
    let starts_with_group = starts.delay_ns == 0 && !starts.own_warmup;
    workload.rate.is_none() && starts_with_group && has_room(workload)
}

/// True if the limits of a workload leave enough to measure after a full turnover of its queues,
/// which a fast disk notices only some milliseconds later.
fn has_room(workload: &Workload) -> bool {
    let queued = workload.total_depth();
    let (_, longest) = block_range(workload);
    match steps_max(workload, longest) {
        Some(limit) => limit >= queued * TURNOVERS_MIN,
        None => true,
    }
}

/// The most steps of a workload, whose longest block is this long; `None` without a limit.
fn steps_max(workload: &Workload, longest: u32) -> Option<u64> {
    let by_ops = workload.stop.ops;
    let by_bytes = workload.stop.bytes.map(|bytes| bytes / u64::from(longest));
    match (by_ops, by_bytes) {
        (Some(ops), Some(blocks)) => Some(ops.min(blocks)),
        (only, None) | (None, only) => only,
    }
}

/// The budget that the `threads` of a workload share. In whole blocks: a rest of less than one
/// block stays unused, of the longest where they differ.
pub(crate) fn budget_of(workload: &Workload, threads: u64) -> Budget {
    let Stop { ops, bytes, .. } = workload.stop;
    if workload.shape.order.fio.is_some() && ops.is_some() {
        // Its steps were counted, syncs and shortened blocks with them.
        return Budget {
            steps: ops.map(|ops| SharedBudget::new(ops, threads)),
            ..Budget::default()
        };
    }
    let (shortest, longest) = block_range(workload);
    if shortest != longest {
        return Budget {
            steps: ops.map(|ops| SharedBudget::new(ops, threads)),
            bytes: bytes.map(|bytes| ByteBudget {
                left: SharedBudget::new(bytes, threads),
                longest_step: u64::from(longest),
            }),
            part: None,
        };
    }
    Budget {
        steps: steps_max(workload, longest).map(|steps| SharedBudget::new(steps, threads)),
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
    let mut limited = Budget {
        part: None,
        ..budget.clone()
    };
    if let Some(steps) = &budget.steps
        && is_ordered
        && shortest == longest
        && part != whole
    {
        let block_bytes = u64::from(longest);
        let steps_of_lap = (whole.length / block_bytes).max(1);
        let laps = steps.left().div_ceil(steps_of_lap);
        let steps_of_part = laps.saturating_mul(part.length / block_bytes);
        limited.part = Some(SharedBudget::new(steps_of_part, 1));
    }
    limited
}

/// The follow-up of each write, given the cache mode that holds.
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
