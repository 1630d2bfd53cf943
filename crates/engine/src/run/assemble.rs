//! Combines the results of the workers of one target into its measurement. Pure: the same in real
//! and in virtual time.

use crate::io::errno_name;
use crate::load::dispatch::Dispatch;
use crate::load::generator::LATE_NS;
use crate::load::pacer::{MissedStarts, Pacer};
use crate::measure::read_check::ReadVerdict;
use crate::measure::result::{EndReason, WorkerResult};
use crate::measure::windows::add_up;
use crate::measure::worker::WorkerSchedule;
use crate::run::hang::{merge_hangs, relative_to_origin};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{
    Hang, Interruption, Measurement, OpKind, OpMeasurement, PerOp, SERIES_CELLS_MAX,
    SERIES_INTERVAL_NS, Starvation, StopReason,
};
use diskproof_model::plan::{Layout, Workload};
use diskproof_model::progress::Control;
use diskproof_model::request_log::RequestLog;
use diskproof_model::series::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A workload and what its workers do not know of it.
pub(crate) struct RunContext {
    /// The facts known before: target, workload, span, I/O engine and cache. The counters of the
    /// device may be filled in later.
    pub known: Measurement,
    /// End of the warm-up, on the clock.
    pub measure_ns: u64,
    /// The schedule, in an open loop.
    pub pacer: Option<Pacer>,
    /// Start of the run, on the clock.
    pub origin_ns: u64,
    /// The sync after the last write.
    pub final_sync: Option<FinalSync>,
    /// The watcher's last answer.
    pub control: Control,
    /// Requests of the workers that never completed.
    pub hang: Option<Hang>,
    /// The first end of a workload on the same target, in nanoseconds after the warm-up of this
    /// one. `None` where no other workload limits it.
    pub companions_end_ns: Option<u64>,
}

impl RunContext {
    /// The context of a workload that runs alone in a closed loop, without a final sync and without
    /// a hang.
    pub(crate) fn new(
        known: Measurement,
        measure_ns: u64,
        origin_ns: u64,
        control: Control,
    ) -> Self {
        Self {
            known,
            measure_ns,
            pacer: None,
            origin_ns,
            final_sync: None,
            control,
            hang: None,
            companions_end_ns: None,
        }
    }
}

/// The sync after the last write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FinalSync {
    /// The duration of the call, in nanoseconds.
    pub ns: u64,
    /// 0, or the errno.
    pub errno: i32,
    /// The hang, where it never returned; on the clock.
    pub hang: Option<Hang>,
    /// The time during the call in which the process did not run; its start is on the clock. `ns`
    /// does not contain it.
    pub interruption: Option<Interruption>,
}

impl FinalSync {
    /// True if the call had not returned when the run ended, but did afterwards.
    fn is_late(&self) -> bool {
        match self.hang {
            Some(hang) => hang.late,
            None => false,
        }
    }
}

/// The percentile of this program's own delays that a measurement keeps.
const DISPATCH_PERCENTILE: f64 = 0.99;

/// Adds `results`, which measured together for `common_ns` from `measure_ns` on. Returns the number
/// of starts that were made late.
fn add_results(
    sum: &mut Measurement,
    results: Vec<WorkerResult>,
    measure_ns: u64,
    common_ns: u64,
) -> u64 {
    let mut verdict: Option<ReadVerdict> = None;
    let mut late = 0;
    // Time with nothing in flight, of the last worker: used only where it is the only one.
    let mut dead_ns: f64 = 0.0;
    sum.engine.done_before_wait = results
        .iter()
        .flat_map(|part| part.done_before_wait)
        .reduce(f64::min);
    let mut windows = Vec::new();
    let mut dispatch = Dispatch::default();
    for part in results {
        dispatch.merge(&part.dispatch);
        // A worker that ended earlier had nothing in flight for the rest of the time.
        let window_ns = (part.stop_ns - measure_ns).max(common_ns).max(1) as f64;
        sum.achieved_depth += part.busy_ns as f64 / window_ns;
        dead_ns = (window_ns - part.busy_ns as f64).max(0.0);
        for (kind, op) in part.ops {
            sum.ops.entry(kind).or_default().merge(op, 0);
        }
        sum.asked += part.moved;
        sum.zero_blocks.sampled += part.zero_blocks.sampled;
        sum.zero_blocks.zero += part.zero_blocks.zero;
        if let Some(own_verdict) = part.read_verdict {
            verdict.get_or_insert_default().merge(own_verdict);
        }
        late += part.late;
        windows.push(part.windows);
        // Of the last worker: used only where it is the only one.
        sum.steady = part.steady;
    }
    sum.windows = add_up(windows, common_ns);
    sum.dispatch_p99_ns = dispatch.delays.percentile(DISPATCH_PERCENTILE);
    sum.dispatch_late = dispatch.late;
    sum.verify = verdict.map(ReadVerdict::result);
    sum.dead_time_ns = dead_time_ns(sum, dead_ns);
    late
}

/// Time between two requests of a worker with one request in flight, in nanoseconds.
fn dead_time_ns(sum: &Measurement, dead_ns: f64) -> Option<f64> {
    let workload = &sum.workload;
    if workload.total_depth() != 1 || workload.rate.is_some() {
        return None;
    }
    let mut done = 0;
    for (kind, op) in &sum.ops {
        if !kind.is_made_of_others() {
            done += op.count;
        }
    }
    if done == 0 {
        return None;
    }
    Some(dead_ns / done as f64)
}

/// Combines the results of the workers of one target. The caller fills in the CPU time and the IOPS
/// limit of the program.
pub(crate) fn assemble(context: RunContext, results: Vec<WorkerResult>) -> Measurement {
    let RunContext {
        known: mut sum,
        measure_ns,
        origin_ns,
        final_sync,
        ..
    } = context;
    let mut hang = context.hang;
    if let Some(sync) = final_sync
        && let Some(sync_hang) = sync.hang
    {
        hang = Some(merge_hangs(hang, sync_hang));
    }
    sum.start_ns = measure_ns - origin_ns;
    sum.stopped = match hang {
        Some(hang) if context.control != Control::Interrupt && !hang.late => StopReason::Hung,
        _ => stop_reason(&sum.workload, context.control, &results),
    };
    let own_time = common_time(&results, measure_ns);
    let common = limit_common_time(own_time, context.companions_end_ns, &results);
    sum.starved = starvation(&results, measure_ns);
    let interrupted = results
        .iter()
        .flat_map(|part| &part.interruptions)
        .chain(final_sync.iter().flat_map(|sync| &sync.interruption));
    sum.interruptions = join_interruptions(interrupted.copied(), origin_ns);
    sum.request_log = join_logs(&results, origin_ns).map(Arc::new);
    if common.end == CommonEnd::Aligned {
        sum.overrun_ns = last_answer_ns(&results, measure_ns).saturating_sub(common.ns);
    }
    let mut late = add_results(&mut sum, results, measure_ns, common.ns);
    let common_ns = match common.end {
        CommonEnd::Ragged => cut_at_cell(&mut sum, common.ns),
        CommonEnd::Aligned => common.ns,
    };
    if let Some(pacer) = &context.pacer
        && !matches!(sum.stopped, StopReason::Ops | StopReason::Bytes)
    {
        let missed = pacer
            .missed_starts(measure_ns, measure_ns + common_ns)
            .into_iter()
            .filter(|starts| starts.waited_ns > LATE_NS);
        late += add_missed_starts(&mut sum, missed);
    }
    sum.wall_ns = common_ns;
    if let Some(sync) = final_sync
        && !sync.is_late()
    {
        add_final_sync(&mut sum, common_ns, sync.ns, sync.errno);
        sum.wall_ns += sync.ns;
    }
    // A layout that ran out of time covers only what it wrote.
    if sum.workload.layout == Layout::Provides {
        sum.span_bytes = sum.span_bytes.min(sum.asked.write_bytes);
    }
    sum.missed_starts = sum.workload.rate.map(|_| late);
    sum.hang = hang.map(|hang| relative_to_origin(hang, origin_ns));
    sum
}

/// The requests of all workers, from the start of the run on; `None` where none keeps them.
fn join_logs(results: &[WorkerResult], origin_ns: u64) -> Option<RequestLog> {
    let mut joined: Option<RequestLog> = None;
    for result in results {
        if let Some(log) = &result.request_log {
            joined.get_or_insert_default().merge(log);
        }
    }
    for request in joined.iter_mut().flat_map(|log| &mut log.requests) {
        request.sent_ns = request.sent_ns.saturating_sub(origin_ns);
    }
    joined
}

/// Each interruption once, with the requests of all workers, from the start of the run on.
pub(crate) fn join_interruptions(
    interruptions: impl Iterator<Item = Interruption>,
    origin_ns: u64,
) -> Vec<Interruption> {
    let mut joined: BTreeMap<u64, Interruption> = BTreeMap::new();
    for interruption in interruptions {
        let start_ns = interruption.start_ns.saturating_sub(origin_ns);
        joined
            .entry(start_ns)
            .and_modify(|known| known.requests += interruption.requests)
            .or_insert(Interruption {
                start_ns,
                ..interruption
            });
    }
    joined.into_values().collect()
}

/// The end of the time in which all workers measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommonEnd {
    /// Every worker counted up to it and no further.
    Aligned,
    /// Some workers counted beyond it.
    Ragged,
}

/// The time in which all workers measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommonTime {
    /// Nanoseconds from the start of the measured time to its end.
    pub ns: u64,
    pub end: CommonEnd,
}

impl CommonTime {
    fn aligned(ns: u64) -> Self {
        Self {
            ns,
            end: CommonEnd::Aligned,
        }
    }

    fn ragged(ns: u64) -> Self {
        Self {
            ns,
            end: CommonEnd::Ragged,
        }
    }
}

/// The schedule of the measured time of an assignment. Where its workers used up all that they were
/// to do in the warm-up, that is what they measured; otherwise what some of them did there does not
/// count, except for its errors.
pub(crate) fn measured_schedule(
    schedule: WorkerSchedule,
    results: &mut [WorkerResult],
) -> WorkerSchedule {
    if !results.is_empty() && results.iter().all(|result| result.is_warmup) {
        return schedule.measuring_from(schedule.start_ns);
    }
    for result in results.iter_mut() {
        if !result.is_warmup {
            continue;
        }
        *result = WorkerResult {
            ops: errors_alone(&result.ops),
            moved: result.moved,
            stop_ns: schedule.measure_ns,
            last_ns: schedule.measure_ns,
            ending: result.ending,
            ..WorkerResult::default()
        };
    }
    schedule
}

/// The errors of operations that do not count otherwise, by kind.
fn errors_alone(ops: &PerOp<OpMeasurement>) -> PerOp<OpMeasurement> {
    let mut failed = PerOp::new();
    for (kind, op) in ops {
        if !op.errors.is_empty() {
            let errors = OpMeasurement {
                errors: op.errors.clone(),
                ..OpMeasurement::default()
            };
            failed.insert(*kind, errors);
        }
    }
    failed
}

/// The time in which the workers measured together, from `measure_ns` on. The wait for the last
/// requests in flight is excluded, unless the workload ends by bytes or operations. A stopped
/// worker notices with its next completion, on a slow disk later than the others; the common time
/// ends with the first.
pub(crate) fn common_time(results: &[WorkerResult], measure_ns: u64) -> CommonTime {
    let mut last_end_ns = 0;
    let mut last_in_time_ns = None;
    let mut first_stopped_ns = None;
    let mut has_budget = false;
    for result in results {
        let end_ns = result.stop_ns - measure_ns;
        last_end_ns = last_end_ns.max(end_ns);
        match result.ending {
            EndReason::Budget => has_budget = true,
            EndReason::Stopped => {
                first_stopped_ns = Some(end_ns.min(first_stopped_ns.unwrap_or(end_ns)));
            }
            EndReason::Time => {
                last_in_time_ns = Some(end_ns.max(last_in_time_ns.unwrap_or(end_ns)));
            }
            EndReason::Errors(_)
            | EndReason::TooSlow
            | EndReason::BelowFloor
            | EndReason::Overloaded
            | EndReason::Steady => {}
        }
    }
    if has_budget {
        CommonTime::aligned(last_answer_ns(results, measure_ns))
    } else if let Some(first_ns) = first_stopped_ns {
        CommonTime::ragged(first_ns)
    } else {
        // A worker that ended with errors does not limit the time of the others.
        CommonTime::aligned(last_in_time_ns.unwrap_or(last_end_ns))
    }
}

/// The time from `measure_ns` until the last request of the workers was done, in nanoseconds.
fn last_answer_ns(results: &[WorkerResult], measure_ns: u64) -> u64 {
    let mut last_ns = measure_ns;
    for result in results {
        last_ns = last_ns.max(result.stop_ns).max(result.last_ns);
    }
    last_ns - measure_ns
}

/// Limits the time to the first end among workloads that run together. A budget in bytes or
/// operations stays whole, overtime too, and less than a cell cannot be cut.
fn limit_common_time(
    common: CommonTime,
    companions_end_ns: Option<u64>,
    results: &[WorkerResult],
) -> CommonTime {
    let stays_whole = results
        .iter()
        .any(|result| result.ending == EndReason::Budget || result.ended_in_overtime);
    match companions_end_ns {
        Some(end_ns) if !stays_whole && (SERIES_INTERVAL_NS..common.ns).contains(&end_ns) => {
            CommonTime::ragged(end_ns)
        }
        Some(_) | None => common,
    }
}

/// The waiting of the workers for processors in their measured time.
fn starvation(results: &[WorkerResult], measure_ns: u64) -> Starvation {
    let (mut waited_ns, mut turns, mut measured_ns) = (0, 0, 0);
    for result in results {
        waited_ns += result.processor_wait.ns;
        turns += result.processor_wait.turns;
        measured_ns += result.stop_ns - measure_ns;
    }
    Starvation {
        share: (waited_ns as f64 / measured_ns.max(1) as f64).min(1.0),
        mean_wait_ns: waited_ns as f64 / turns.max(1) as f64,
    }
}

/// Cuts the counts at the last full cell within the common time, and returns its end.
fn cut_at_cell(sum: &mut Measurement, common_ns: u64) -> u64 {
    let interval_ns = sum
        .ops
        .values()
        .map(|op| op.series.interval_ns)
        .max()
        .unwrap_or(SERIES_INTERVAL_NS);
    let whole_ns = common_ns / interval_ns * interval_ns;
    if whole_ns == 0 {
        return common_ns;
    }
    if let Some(last) = sum.windows.last_mut() {
        last.end_at(whole_ns);
    }
    for op in sum.ops.values_mut() {
        op.series
            .cells
            .truncate((whole_ns / op.series.interval_ns) as usize);
        let total = op.series.total();
        (op.count, op.bytes) = (total.ops, total.bytes);
    }
    whole_ns
}

/// The part of the missed starts that belongs to one kind of operation.
struct MissedShare {
    kind: OpKind,
    permille: u16,
    /// The starts that the kind has got so far.
    given: u64,
}

impl MissedShare {
    fn new(kind: OpKind, permille: u16) -> Self {
        Self {
            kind,
            permille,
            given: 0,
        }
    }
}

/// Adds starts that were due and that no worker made, because every slot was busy to the end.
/// Without them a disk that stalls up to the end would seem to have delayed hardly any. Their wait
/// so far is a lower bound of their latency. Returns their number.
fn add_missed_starts(sum: &mut Measurement, missed: impl Iterator<Item = MissedStarts>) -> u64 {
    // In the shares of the streams; the last has what is left. No part of a transaction is due by
    // itself.
    let is_transaction = sum.workload.transaction.is_some();
    let commits = sum.workload.commits() && !is_transaction;
    let mut shares = Vec::new();
    if is_transaction {
        shares.push(MissedShare::new(OpKind::Transaction, 1000));
    } else {
        for (kind, permille) in sum.workload.streams.firsts() {
            shares.push(MissedShare::new(kind, permille));
        }
    }
    if let Some(last) = shares.last_mut() {
        last.permille = 1000;
    }
    let mut total = 0;
    for MissedStarts { waited_ns, count } in missed {
        total += count;
        let mut left = count;
        for share in &mut shares {
            let due = (u128::from(total) * u128::from(share.permille) / 1000) as u64;
            let own_count = (due - share.given).min(left);
            share.given += own_count;
            left -= own_count;
            add_intended(sum, share.kind, waited_ns, own_count);
            if commits && share.kind.changes_blocks() {
                add_intended(sum, OpKind::Commit, waited_ns, own_count);
            }
        }
    }
    total
}

/// Adds so many latencies from the intended start on, also to the last window.
fn add_intended(sum: &mut Measurement, kind: OpKind, waited_ns: u64, count: u64) {
    if count == 0 {
        return;
    }
    let intended = &mut sum.ops.entry(kind).or_default().latency_intended;
    intended
        .get_or_insert_with(LatencyHistogram::new)
        .record_many(waited_ns, count);
    if let Some(window) = sum.windows.last_mut() {
        let latency = window.ops.entry(kind).or_default();
        latency.intended.record_many(waited_ns, count);
    }
}

/// The final sync belongs to the time of the writes: their series is padded to its end.
fn add_final_sync(sum: &mut Measurement, common_ns: u64, sync_ns: u64, errno: i32) {
    let ops = &mut sum.ops;
    if let Some(writes) = ops.get_mut(&OpKind::Write) {
        writes
            .series
            .add(common_ns + sync_ns, &Cell::default(), SERIES_CELLS_MAX);
    }
    let sync = ops.entry(OpKind::Sync).or_default();
    if let Some(last) = sum.windows.last_mut() {
        last.end_ns += sync_ns;
        if errno == 0 {
            let latency = &mut last.ops.entry(OpKind::Sync).or_default().latency;
            latency.record_many(sync_ns, 1);
        }
    }
    if errno == 0 {
        sync.count += 1;
        sync.latency.record(sync_ns);
        let cell = Cell::single(0, sync_ns);
        sync.series
            .add(common_ns + sync_ns, &cell, SERIES_CELLS_MAX);
    } else {
        *sync.errors.entry(errno_name(errno)).or_default() += 1;
    }
}

/// The reason why the workers of a target ended. Where they had several, an error counts more than
/// a limit, and a limit more than the order to stop.
fn stop_reason(workload: &Workload, control: Control, results: &[WorkerResult]) -> StopReason {
    if control == Control::Interrupt {
        return StopReason::Interrupted;
    }
    let endings: Vec<EndReason> = results.iter().map(|result| result.ending).collect();
    if endings
        .iter()
        .any(|ending| matches!(ending, EndReason::Errors(_)))
    {
        StopReason::Errors
    } else if endings.contains(&EndReason::TooSlow) {
        StopReason::TooSlow
    } else if endings.contains(&EndReason::BelowFloor) {
        StopReason::BelowFloor
    } else if endings.contains(&EndReason::Overloaded) {
        StopReason::Overloaded
    } else if endings.contains(&EndReason::Steady) {
        StopReason::Steady
    } else if endings.contains(&EndReason::Time) {
        StopReason::Time
    } else if endings.contains(&EndReason::Stopped) {
        match control {
            Control::Enough => StopReason::Precision,
            // Only the end of another workload stopped it.
            Control::Continue | Control::Interrupt => StopReason::Companion,
        }
    } else if workload.stop.ops.is_some() && workload.stop.bytes.is_none() {
        StopReason::Ops
    } else {
        StopReason::Bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Extent;
    use crate::io::clock::ProcessorWait;
    use crate::testing::simulate::simulated;
    use diskproof_model::merge::MergeKind;
    use diskproof_model::window::Window;

    const CELL: u64 = SERIES_INTERVAL_NS;

    /// A worker that did one operation in each of its cells.
    fn done(ending: EndReason, stop_ns: u64) -> WorkerResult {
        let mut op = OpMeasurement::default();
        let cell = Cell {
            ops: 1,
            bytes: 512,
            ..Cell::default()
        };
        (0..stop_ns / CELL).for_each(|index| op.series.add(index * CELL, &cell, SERIES_CELLS_MAX));
        (op.count, op.bytes) = (op.series.total().ops, op.series.total().bytes);
        let ops = BTreeMap::from([(OpKind::Read, op)]);
        WorkerResult {
            ops,
            stop_ns,
            last_ns: stop_ns + CELL,
            processor_wait: ProcessorWait {
                ns: stop_ns / 8,
                turns: 10,
            },
            ending,
            ..WorkerResult::default()
        }
    }

    #[test]
    fn processor_wait_is_a_share_of_the_measured_time() {
        let one = || done(EndReason::Time, 10 * CELL);
        let both = starvation(&[one(), one()], 0);
        assert_eq!((both.share, both.mean_wait_ns), (0.125, CELL as f64 / 8.0));
        assert_eq!(starvation(&[], 0), Starvation::default());
    }

    #[test]
    fn common_time_ends_with_the_first_worker() {
        use EndReason::{Budget, Errors, Stopped, Time};
        // The ends of workers, in cells, and the common one. A worker with a slow request notices
        // the stop late, maybe after its time; a budget is done with its last request.
        for (ends, cells, end) in [
            (vec![(Time, 90), (Time, 90)], 90, CommonEnd::Aligned),
            (
                vec![(Stopped, 50), (Stopped, 66), (Time, 90)],
                50,
                CommonEnd::Ragged,
            ),
            (vec![(Errors(5), 3), (Time, 90)], 90, CommonEnd::Aligned),
            (vec![(Errors(5), 3), (Errors(5), 4)], 4, CommonEnd::Aligned),
            (vec![(Budget, 50), (Budget, 66)], 67, CommonEnd::Aligned),
        ] {
            let worker = |(ending, cells): &(EndReason, u64)| done(*ending, cells * CELL);
            let workers: Vec<_> = ends.iter().map(worker).collect();
            let ns = cells * CELL;
            assert_eq!(common_time(&workers, 0), CommonTime { ns, end }, "{ends:?}");
        }
    }

    /// A request that was sent within the time is waited for, and counts.
    #[test]
    fn wait_for_the_last_request_is_known() {
        let mut late = done(EndReason::Time, 90 * CELL);
        late.last_ns = 900 * CELL;
        let workers = [done(EndReason::Time, 90 * CELL), late];
        assert_eq!(common_time(&workers, 0).ns, 90 * CELL);
        assert_eq!(last_answer_ns(&workers, 0), 900 * CELL);
    }

    #[test]
    fn common_time_ends_with_the_first_workload() {
        use EndReason::{Budget, Stopped};
        let control = [done(Stopped, 50 * CELL)];
        let own = common_time(&control, 0);
        let limited = |until_ns| limit_common_time(own, until_ns, &control);
        assert_eq!(limited(None), CommonTime::ragged(50 * CELL));
        assert_eq!(limited(Some(40 * CELL)), CommonTime::ragged(40 * CELL));
        // It was over first; nothing would be left; what was asked for was done.
        assert_eq!(limited(Some(60 * CELL)).ns, 50 * CELL);
        assert_eq!(limited(Some(CELL / 2)).ns, 50 * CELL);
        let counted = [done(Budget, 50 * CELL)];
        let whole = limit_common_time(common_time(&counted, 0), Some(40 * CELL), &counted);
        assert_eq!(whole.ns, 51 * CELL);
        let workload = Workload::named("w");
        let reason = |said| stop_reason(&workload, said, &control);
        assert_eq!(reason(Control::Continue), StopReason::Companion);
        assert_eq!(reason(Control::Enough), StopReason::Precision);
    }

    #[test]
    fn worker_that_ended_in_the_warm_up_leaves_only_its_errors() {
        let schedule = WorkerSchedule {
            start_ns: 0,
            measure_ns: CELL,
            end_ns: 10 * CELL,
        };
        let mut results = [
            WorkerResult {
                is_warmup: true,
                ..measured(2_000)
            },
            measured(2_000),
        ];
        assert_eq!(measured_schedule(schedule, &mut results).measure_ns, CELL);
        let [ended, other] = results;
        let read = &ended.ops[&OpKind::Read];
        assert_eq!((read.count, read.latency.count()), (0, 0));
        assert_eq!(read.errors, other.ops[&OpKind::Read].errors);
    }

    #[test]
    fn operations_after_the_common_time_are_cut() {
        let mut sum = simulated(&Workload::named("w"), Extent::default());
        sum.ops = done(EndReason::Stopped, 66 * CELL).ops;
        assert_eq!(cut_at_cell(&mut sum, 50 * CELL + 7), 50 * CELL);
        let read = &sum.ops[&OpKind::Read];
        assert_eq!(read.count, 50);
        assert_eq!(read.bytes, 50 * 512);
        assert_eq!(read.series.cells.len(), 50);
        assert_eq!(
            cut_at_cell(&mut sum, CELL - 1),
            CELL - 1,
            "too short to cut"
        );
        assert_eq!(sum.ops[&OpKind::Read].count, 50);
    }

    /// A worker with a latency, a window and its own pace.
    fn measured(ns: u64) -> WorkerResult {
        let mut worker = done(EndReason::Time, 100 * CELL);
        let read = worker.ops.get_mut(&OpKind::Read).unwrap();
        read.latency.record_many(ns, read.count);
        read.errors.insert("EIO".to_owned(), ns / 1000);
        worker.busy_ns = 100 * u128::from(ns);
        worker.moved.read_bytes = read.bytes;
        worker.windows = vec![Window {
            end_ns: 100 * CELL,
            busy_ns: 100 * ns,
            threads: 1,
            ..Window::default()
        }];
        worker
    }

    /// What one process with these workers measured.
    fn process(workers: &[u64]) -> Measurement {
        let workload = Workload {
            workers: workers.len() as u32,
            ..Workload::named("w")
        };
        let known = simulated(&workload, Extent::default());
        let context = RunContext::new(known, 0, 0, Control::Continue);
        let mut all = assemble(context, workers.iter().map(|ns| measured(*ns)).collect());
        // The disk did what all processes of the host asked of it.
        all.device.read_bytes = 5 * 100 * 512;
        all.dead_time_ns = None;
        all
    }

    #[test]
    fn processes_of_one_host_add_to_the_process_with_all_workers() {
        let mut sum = process(&[2_000, 9_000]);
        sum.merge(process(&[4_000, 5_000, 7_000]), MergeKind::SameHost);
        assert_eq!(sum, process(&[2_000, 9_000, 4_000, 5_000, 7_000]));
    }

    #[test]
    fn hosts_add_to_their_sum() {
        let one = process(&[2_000]);
        let mut both = one.clone();
        both.merge(process(&[4_000]), MergeKind::OtherHost);
        assert_eq!(both.ops, process(&[2_000, 4_000]).ops);
        assert_eq!(both.device.read_bytes, 2 * one.device.read_bytes);
        assert_eq!((both.wall_ns, both.workload.workers), (one.wall_ns, 2));
    }
}
