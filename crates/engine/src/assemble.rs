//! What the workers of one target brought home, summed up. Pure: the same in real and in virtual time.

use crate::pattern::Extent;
use crate::tally::errno_name;
use crate::worker::{Ending, Yield};
use diskproof_model::measurement::{
    ByteCount, CacheUse, CpuTime, DeviceUse, EngineUse, Measurement, OpKind, OpMeasurement, SERIES_CELLS_MAX, StopReason, ZeroSample,
};
use diskproof_model::plan::{Layout, Workload};
use diskproof_model::progress::Control;
use diskproof_model::series::Cell;
use std::collections::BTreeMap;

/// Everything about a workload that its workers do not know.
pub struct Closing {
    /// Index of the target.
    pub target: usize,
    /// What was asked.
    pub workload: Workload,
    /// The span that was used.
    pub extent: Extent,
    /// What carried it.
    pub engine: EngineUse,
    /// How the cache was treated.
    pub cache: CacheUse,
    /// End of the warm-up, on the clock.
    pub measure_ns: u64,
    /// Start of the run, on the clock.
    pub origin_ns: u64,
    /// CPU time used.
    pub cpu: CpuTime,
    /// What the counters say; may be filled in later.
    pub device: DeviceUse,
    /// The sync after the last write.
    pub final_sync: Option<(u64, i32)>,
    /// Whether io_uring hands the I/O to worker threads.
    pub punted: Option<bool>,
    /// Unwritten bytes in the span before.
    pub unwritten_bytes: Option<u64>,
    /// What the watcher said last.
    pub told: Control,
}

/// Sums up what the workers of one target brought home.
pub fn assemble(closing: Closing, yields: Vec<Yield>) -> Measurement {
    let Closing { workload, extent, measure_ns, .. } = closing;
    let mut ops: BTreeMap<OpKind, OpMeasurement> = BTreeMap::new();
    let (mut asked, mut zero_blocks, mut late) = (ByteCount::default(), ZeroSample::default(), 0);
    let (mut stop_ns, mut last_ns) = (measure_ns, measure_ns);
    let stopped = stop_reason(&workload, closing.told, &yields);
    let used_up = yields.iter().any(|y| y.ending == Ending::Allowance);
    for part in yields {
        part.ops.into_iter().for_each(|(kind, op)| merge_op(ops.entry(kind).or_default(), op));
        asked.read_bytes += part.asked.read_bytes;
        asked.write_bytes += part.asked.write_bytes;
        zero_blocks.sampled += part.zero_blocks.sampled;
        zero_blocks.zero += part.zero_blocks.zero;
        late += part.late;
        (stop_ns, last_ns) = (stop_ns.max(part.stop_ns), last_ns.max(part.last_ns));
    }
    let busy_ns: u128 = ops.iter().filter(|(kind, _)| **kind != OpKind::Commit).map(|(_, op)| op.latency.sum_ns()).sum();
    // What is in flight when the time is over is waited for, but that wait is not part of the flow.
    let flow_ns = if used_up { stop_ns.max(last_ns) } else { stop_ns } - measure_ns;
    let done: u64 = ops.iter().filter(|(kind, _)| **kind != OpKind::Commit).map(|(_, op)| op.latency.count()).sum();
    let alone = workload.depth * workload.workers == 1 && workload.rate.is_none() && done > 0;
    let dead_time_ns = alone.then(|| ((last_ns - measure_ns) as f64 - busy_ns as f64).max(0.0) / done as f64);
    let wall_ns = flow_ns + closing.final_sync.map_or(0, |(ns, _)| ns);
    if let Some((ns, errno)) = closing.final_sync {
        add_final_sync(&mut ops, flow_ns, ns, errno);
    }
    Measurement {
        target: closing.target,
        span_start_bytes: extent.start,
        // A layout that ran out of time covered what it wrote, not what it was meant to.
        span_bytes: if workload.layout == Layout::Provides { extent.length.min(asked.write_bytes) } else { extent.length },
        engine: closing.engine,
        cache: closing.cache,
        start_ns: measure_ns - closing.origin_ns,
        wall_ns,
        cpu: closing.cpu,
        ops,
        asked,
        device: closing.device,
        achieved_depth: busy_ns as f64 / flow_ns.max(1) as f64,
        dead_time_ns,
        ceiling_iops: None,
        zero_blocks,
        unwritten_bytes: closing.unwritten_bytes,
        missed_starts: workload.rate.map(|_| late),
        punted: closing.punted,
        verify: None,
        stopped,
        workload,
    }
}

fn merge_op(sum: &mut OpMeasurement, part: OpMeasurement) {
    sum.count += part.count;
    sum.bytes += part.bytes;
    sum.short += part.short;
    part.errors.into_iter().for_each(|(errno, n)| *sum.errors.entry(errno).or_default() += n);
    sum.latency.merge(&part.latency);
    match (&mut sum.latency_intended, part.latency_intended) {
        (Some(mine), Some(theirs)) => mine.merge(&theirs),
        (mine @ None, theirs) => *mine = theirs,
        (Some(_), None) => {}
    }
    sum.series.merge(&part.series);
}

/// The final sync belongs to the writes' time: their series goes on to its end, empty.
fn add_final_sync(ops: &mut BTreeMap<OpKind, OpMeasurement>, flow_ns: u64, sync_ns: u64, errno: i32) {
    if let Some(writes) = ops.get_mut(&OpKind::Write) {
        writes.series.add(flow_ns + sync_ns, &Cell::default(), SERIES_CELLS_MAX);
    }
    let sync = ops.entry(OpKind::Sync).or_default();
    if errno == 0 {
        sync.count += 1;
        sync.latency.record(sync_ns);
        sync.series.add(flow_ns + sync_ns, &Cell { ops: 1, bytes: 0, errors: 0, latency_max_ns: sync_ns }, SERIES_CELLS_MAX);
    } else {
        *sync.errors.entry(errno_name(errno)).or_default() += 1;
    }
}

fn stop_reason(workload: &Workload, told: Control, yields: &[Yield]) -> StopReason {
    let any = |wanted: fn(&Ending) -> bool| yields.iter().any(|y| wanted(&y.ending));
    match told {
        Control::Interrupt => StopReason::Interrupted,
        _ if any(|e| matches!(e, Ending::Errors(_))) => StopReason::Errors,
        _ if any(|e| matches!(e, Ending::Time)) => StopReason::Time,
        Control::Enough if any(|e| matches!(e, Ending::Told)) => StopReason::Precision,
        _ if workload.stop.ops.is_some() && workload.stop.bytes.is_none() => StopReason::Ops,
        _ => StopReason::Bytes,
    }
}
