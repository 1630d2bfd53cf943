//! A target that hangs: what its workers have in flight, and the results that they leave. Knows no
//! plans.

use crate::load::slots::PendingRequest;
use crate::lock::lock;
use crate::measure::result::{StuckWorker, WorkerResult, WorkerSnapshot};
use diskproof_model::measurement::{Hang, OpKind};
use diskproof_model::plan::EngineKind;
use diskproof_model::stream::Streams;
use std::ops::Deref;
use std::sync::Mutex;

/// The result of a worker whose target hangs, and what it waits for at `now`.
pub(crate) fn time_out(
    snapshot: &Mutex<WorkerSnapshot>,
    asked: StuckWorker<'_>,
    now: u64,
) -> (WorkerResult, Hang) {
    let mut snapshot = lock(snapshot);
    let in_flight = in_flight(&snapshot, asked);
    let since_ns = in_flight.iter().map(|request| request.since_ns).min();
    let since_ns = since_ns.unwrap_or(asked.start_ns);
    let hang = Hang {
        since_ns,
        lasted_ns: now.saturating_sub(since_ns),
        requests: in_flight.len() as u64,
        late: asked.late,
    };
    (snapshot.take_unanswered(&in_flight, asked), hang)
}

/// A worker that has ended no cell for this long waits in a system call: cells last 10 ms, and a
/// wait for the queue ends after 200 ms.
const WITHIN_CALL_NS: u64 = 1_000_000_000;

/// How long the workers of a target, started at `start_ns`, have waited without any completion.
/// `None` where no worker waits: an open loop with nothing due has no request in flight.
pub(crate) fn silence_ns(
    workers: impl Iterator<Item = impl Deref<Target = WorkerSnapshot>>,
    start_ns: u64,
    now: u64,
) -> Option<u64> {
    let (mut asked_ns, mut answered_ns): (Option<u64>, u64) = (None, start_ns);
    for snapshot in workers {
        let within_call = now.saturating_sub(snapshot.rolled_ns.max(start_ns)) > WITHIN_CALL_NS;
        let waiting = snapshot.in_flight.iter().map(|request| request.since_ns);
        let waiting = waiting.chain(within_call.then_some(snapshot.rolled_ns));
        asked_ns = asked_ns.into_iter().chain(waiting).min();
        answered_ns = answered_ns.max(snapshot.so_far.last_ns);
    }
    asked_ns.map(|asked_ns| now.saturating_sub(asked_ns.max(answered_ns)))
}

/// A hang on the clock as one after the start of the run.
pub(crate) fn since(hang: Hang, origin_ns: u64) -> Hang {
    Hang {
        since_ns: hang.since_ns.saturating_sub(origin_ns),
        ..hang
    }
}

/// Combines two hangs of one target.
pub(crate) fn join(one: Option<Hang>, other: Hang) -> Hang {
    let Some(one) = one else { return other };
    let (since_ns, end_ns) = (
        one.since_ns.min(other.since_ns),
        (one.since_ns + one.lasted_ns).max(other.since_ns + other.lasted_ns),
    );
    Hang {
        since_ns,
        lasted_ns: end_ns - since_ns,
        requests: one.requests + other.requests,
        late: one.late && other.late,
    }
}

/// Queue-based workers publish their requests in flight periodically. A worker blocked in a system
/// call entered it after its last cell, so the pending operation is inferred.
fn in_flight(snapshot: &WorkerSnapshot, asked: StuckWorker<'_>) -> Vec<PendingRequest> {
    let called = snapshot
        .thread
        .and_then(|thread| system_call(thread, &asked.workload.streams));
    let waits_within_call = matches!(asked.engine, EngineKind::Sync | EngineKind::Mmap);
    let since_ns = snapshot.rolled_ns.max(asked.start_ns);
    if !waits_within_call && !snapshot.in_flight.is_empty() {
        let mut in_flight = snapshot.in_flight.clone();
        // Linux AIO does not queue some syncs: such a sync came after the last published request.
        let sync = called.map(|kind| PendingRequest { kind, since_ns });
        if let (Some(latest), Some(sync)) = (
            in_flight.iter_mut().max_by_key(|request| request.since_ns),
            sync,
        ) {
            *latest = sync;
        }
        return in_flight;
    }
    let first = asked.workload.streams.firsts().next();
    let only = first.map_or(OpKind::Read, |(kind, _)| kind);
    let before = snapshot.in_flight.first().map(|request| request.kind);
    let kind = called.or(before).unwrap_or(only);
    vec![PendingRequest { kind, since_ns }]
}

/// The operation of these streams whose system call a thread is in (/proc/PID/task/TID/syscall in
/// proc(5), Linux 2.6.27).
fn system_call(thread: i32, streams: &Streams) -> Option<OpKind> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
    match text.split_whitespace().next()?.parse().ok()? {
        libc::SYS_pread64 => Some(OpKind::Read),
        libc::SYS_pwrite64 | libc::SYS_sync_file_range => Some(OpKind::Write),
        libc::SYS_ioctl | libc::SYS_fallocate => {
            let kinds = streams.iter().flat_map(|stream| &stream.does);
            kinds.copied().find(|kind| !kind.moves_data())
        }
        libc::SYS_fsync | libc::SYS_fdatasync => Some(OpKind::Sync),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::result::EndReason;
    use diskproof_model::plan::Workload;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn late_worker_keeps_its_own_end_and_has_no_errors() {
        let mut snapshot = WorkerSnapshot {
            ended: Some((EndReason::Time, 9 * SECOND, 3)),
            in_flight: vec![PendingRequest {
                kind: OpKind::Read,
                since_ns: 4 * SECOND,
            }],
            ..WorkerSnapshot::default()
        };
        snapshot.so_far.ops.entry(OpKind::Read).or_default().count = 1;
        let asked = StuckWorker {
            workload: &Workload::named("reads"),
            engine: EngineKind::Uring,
            start_ns: 0,
            measure_ns: SECOND,
            ending: (EndReason::Time, 5 * SECOND),
            late: true,
        };
        let (done, hang) = time_out(&Mutex::new(snapshot), asked, 12 * SECOND);
        assert_eq!((done.stop_ns, done.busy_ns), (9 * SECOND, 3));
        let read = &done.ops[&OpKind::Read];
        assert!(read.count == 1 && read.errors.is_empty(), "{read:?}");
        assert_eq!((hang.lasted_ns, hang.late), (8 * SECOND, true));
        let hung = StuckWorker {
            late: false,
            ..asked
        };
        let (done, _) = time_out(&Mutex::default(), hung, 12 * SECOND);
        assert_eq!(done.stop_ns, 5 * SECOND);
        assert_eq!(done.ops[&OpKind::Read].errors["ETIMEDOUT"], 1);
    }

    #[test]
    fn silence_needs_a_request_in_flight() {
        let worker = |rolled_ns, last_ns, since: &[u64]| {
            let kind = OpKind::Read;
            let pending = |since_ns: &u64| PendingRequest {
                kind,
                since_ns: *since_ns,
            };
            let in_flight = since.iter().map(pending).collect();
            WorkerSnapshot {
                rolled_ns,
                so_far: WorkerResult {
                    last_ns,
                    ..WorkerResult::default()
                },
                in_flight,
                ..WorkerSnapshot::default()
            }
        };
        let worker =
            |rolled_s, last_s, since: &[u64]| worker(rolled_s * SECOND, last_s * SECOND, since);
        let silence = |workers: &[WorkerSnapshot]| silence_ns(workers.iter(), SECOND, 10 * SECOND);
        // An open loop between two starts.
        assert_eq!(silence(&[worker(10, 4, &[])]), None);
        // Its next start, long after the last answer.
        let next = worker(10, 4, &[10 * SECOND - 7]);
        assert_eq!(silence(&[next]), Some(7));
        // A queue that was never answered, and one that was a second ago.
        let queue = [2 * SECOND, 3 * SECOND];
        assert_eq!(silence(&[worker(10, 0, &queue)]), Some(8 * SECOND));
        assert_eq!(silence(&[worker(10, 9, &queue)]), Some(SECOND));
        // Within a system call since the last cell; another worker had an answer since.
        assert_eq!(silence(&[worker(4, 4, &[])]), Some(6 * SECOND));
        let both = [worker(4, 4, &[]), worker(10, 6, &[])];
        assert_eq!(silence(&both), Some(4 * SECOND));
        // No worker has ended a cell yet.
        assert_eq!(silence(&[worker(0, 0, &[])]), Some(9 * SECOND));
        assert_eq!(silence(&[]), None);
    }
}
