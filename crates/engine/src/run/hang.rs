//! Notices that a target is silent, and takes from its workers what they have in flight and the
//! results that they leave.

use crate::load::slots::PendingRequest;
use crate::lock::lock;
use crate::measure::result::{StuckWorker, WorkerResult, WorkerSnapshot};
use diskproof_model::measurement::{Hang, OpKind};
use diskproof_model::plan::EngineKind;
use diskproof_model::stream::Streams;
use std::ops::Deref;
use std::sync::Mutex;

/// A worker that is no longer waited for.
pub(crate) struct TimedOutWorker {
    /// The result up to its last snapshot.
    pub result: WorkerResult,
    /// The hang as it was when the wait ended, on the clock.
    pub hang: Hang,
}

/// Takes the last snapshot of a worker whose target hangs at `now` as its result.
pub(crate) fn time_out_worker(
    snapshot: &Mutex<WorkerSnapshot>,
    stuck: StuckWorker<'_>,
    now: u64,
) -> TimedOutWorker {
    let mut snapshot = lock(snapshot);
    let unanswered = unanswered_requests(&snapshot, stuck);
    let since_ns = unanswered
        .iter()
        .map(|request| request.since_ns)
        .min()
        .unwrap_or(stuck.start_ns);
    let hang = Hang {
        since_ns,
        lasted_ns: now.saturating_sub(since_ns),
        requests: unanswered.len() as u64,
        late: stuck.is_late,
    };
    TimedOutWorker {
        result: snapshot.take_unanswered(&unanswered, stuck),
        hang,
    }
}

/// A worker that has ended no cell for this long waits in a system call: cells last 10 ms, and a
/// wait for the queue ends after 200 ms. Chosen: a few such waits.
const WITHIN_CALL_NS: u64 = 1_000_000_000;

/// The time, in nanoseconds, for which the workers of a target, started at `start_ns`, have waited
/// without any completion. `None` where no worker waits: an open loop with nothing due has no
/// request in flight.
pub(crate) fn silence_ns(
    workers: impl Iterator<Item = impl Deref<Target = WorkerSnapshot>>,
    start_ns: u64,
    now: u64,
) -> Option<u64> {
    let mut is_waiting = false;
    let mut oldest_ns = u64::MAX;
    let mut answered_ns = start_ns;
    for snapshot in workers {
        for request in &snapshot.in_flight {
            is_waiting = true;
            oldest_ns = oldest_ns.min(request.since_ns);
        }
        if now.saturating_sub(snapshot.rolled_ns.max(start_ns)) > WITHIN_CALL_NS {
            is_waiting = true;
            oldest_ns = oldest_ns.min(snapshot.rolled_ns);
        }
        answered_ns = answered_ns.max(snapshot.so_far.last_ns);
    }
    if !is_waiting {
        return None;
    }
    Some(now.saturating_sub(oldest_ns.max(answered_ns)))
}

/// Makes the start of a hang on the clock one in nanoseconds after the start of the run, as the
/// record has it.
pub(crate) fn relative_to_origin(hang: Hang, origin_ns: u64) -> Hang {
    Hang {
        since_ns: hang.since_ns.saturating_sub(origin_ns),
        ..hang
    }
}

/// Combines two hangs of one target: from the earlier start to the later end, with the requests of
/// both. Late only where both are: an answer in time that is missing ends the workload.
pub(crate) fn merge_hangs(one: Option<Hang>, other: Hang) -> Hang {
    let Some(one) = one else { return other };
    let since_ns = one.since_ns.min(other.since_ns);
    let end_ns = (one.since_ns + one.lasted_ns).max(other.since_ns + other.lasted_ns);
    Hang {
        since_ns,
        lasted_ns: end_ns - since_ns,
        requests: one.requests + other.requests,
        late: one.late && other.late,
    }
}

/// The requests of a worker that have no answer; at least one. Queue-based workers publish their
/// requests in flight periodically. A worker blocked in a system call entered it after its last
/// cell, so the pending operation is inferred.
fn unanswered_requests(snapshot: &WorkerSnapshot, stuck: StuckWorker<'_>) -> Vec<PendingRequest> {
    let streams = &stuck.workload.streams;
    let called = match snapshot.thread {
        Some(thread) => operation_in_system_call(thread, streams),
        None => None,
    };
    let waits_within_call = matches!(stuck.engine, EngineKind::Sync | EngineKind::Mmap);
    let since_ns = snapshot.rolled_ns.max(stuck.start_ns);
    if !waits_within_call && !snapshot.in_flight.is_empty() {
        let mut in_flight = snapshot.in_flight.clone();
        // Linux AIO does not queue some syncs: such a sync came after the last published request.
        if let Some(kind) = called
            && let Some(latest) = in_flight.iter_mut().max_by_key(|request| request.since_ns)
        {
            *latest = PendingRequest { kind, since_ns };
        }
        return in_flight;
    }
    let kind = if let Some(kind) = called {
        kind
    } else if let Some(request) = snapshot.in_flight.first() {
        request.kind
    } else if let Some((kind, _)) = streams.firsts().next() {
        kind
    } else {
        OpKind::Read
    };
    vec![PendingRequest { kind, since_ns }]
}

/// The operation of these streams whose system call a thread is in (/proc/PID/task/TID/syscall in
/// proc(5), Linux 2.6.27). `None` where the kernel hides the call or the call is another one, such
/// as the wait for a queue.
fn operation_in_system_call(thread: i32, streams: &Streams) -> Option<OpKind> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
    match text.split_whitespace().next()?.parse().ok()? {
        libc::SYS_pread64 => Some(OpKind::Read),
        libc::SYS_pwrite64 | libc::SYS_pwritev2 | libc::SYS_sync_file_range => Some(OpKind::Write),
        libc::SYS_ioctl | libc::SYS_fallocate => streams
            .iter()
            .flat_map(|stream| &stream.does)
            .copied()
            .find(|kind| !kind.moves_data()),
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_msync => Some(OpKind::Sync),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::result::{EndReason, EndedTime, WorkerEnding};
    use diskproof_model::plan::Workload;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn late_worker_keeps_its_own_end_and_has_no_errors() {
        let mut snapshot = WorkerSnapshot {
            ended: Some(EndedTime {
                ending: WorkerEnding {
                    reason: EndReason::Time,
                    at_ns: 9 * SECOND,
                },
                busy_ns: 3,
            }),
            in_flight: vec![PendingRequest {
                kind: OpKind::Read,
                since_ns: 4 * SECOND,
            }],
            ..WorkerSnapshot::default()
        };
        snapshot.so_far.ops.entry(OpKind::Read).or_default().count = 1;
        let late = StuckWorker {
            workload: &Workload::named("reads"),
            engine: EngineKind::Uring,
            start_ns: 0,
            measure_ns: SECOND,
            ending: WorkerEnding {
                reason: EndReason::Time,
                at_ns: 5 * SECOND,
            },
            is_late: true,
        };
        let timed_out = time_out_worker(&Mutex::new(snapshot), late, 12 * SECOND);
        let TimedOutWorker { result, hang } = timed_out;
        assert_eq!((result.stop_ns, result.busy_ns), (9 * SECOND, 3));
        let read = &result.ops[&OpKind::Read];
        assert!(read.count == 1 && read.errors.is_empty(), "{read:?}");
        assert_eq!((hang.lasted_ns, hang.late), (8 * SECOND, true));
        let hung = StuckWorker {
            is_late: false,
            ..late
        };
        let result = time_out_worker(&Mutex::default(), hung, 12 * SECOND).result;
        assert_eq!(result.stop_ns, 5 * SECOND);
        assert_eq!(result.ops[&OpKind::Read].errors["ETIMEDOUT"], 1);
    }

    /// A worker whose last cell and last completion were at these seconds, with reads in flight
    /// since these nanoseconds.
    fn worker(last_cell_s: u64, last_s: u64, since: &[u64]) -> WorkerSnapshot {
        let mut in_flight = Vec::new();
        for since_ns in since {
            in_flight.push(PendingRequest {
                kind: OpKind::Read,
                since_ns: *since_ns,
            });
        }
        WorkerSnapshot {
            rolled_ns: last_cell_s * SECOND,
            so_far: WorkerResult {
                last_ns: last_s * SECOND,
                ..WorkerResult::default()
            },
            in_flight,
            ..WorkerSnapshot::default()
        }
    }

    #[test]
    fn silence_needs_a_request_in_flight() {
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
