//! A target that does not answer: what the threads that wait for it have in flight, and what is
//! kept of them. Knows nothing of plans.

use crate::load::slots::PendingRequest;
use crate::measure::result::{EndReason, WorkerResult};
use crate::measure::snapshot::{WorkerSnapshot, lock_snapshot};
use diskproof_model::measurement::{Hang, OpKind};
use diskproof_model::plan::{EngineKind, Workload};
use std::ops::Deref;
use std::sync::Mutex;

/// What was asked of a worker that is given up.
#[derive(Debug, Clone, Copy)]
pub struct StuckWorker<'a> {
    /// Its workload.
    pub workload: &'a Workload,
    /// What carries it.
    pub engine: EngineKind,
    /// When it started.
    pub start_ns: u64,
    /// From when on it measured.
    pub measure_ns: u64,
    /// Why it should have ended, and when.
    pub ending: (EndReason, u64),
}

/// What comes home of a worker that waits for its target for good, and what it waits for at `now`.
pub fn time_out(
    snapshot: &Mutex<WorkerSnapshot>,
    asked: StuckWorker<'_>,
    now: u64,
) -> (WorkerResult, Hang) {
    let mut snapshot = lock_snapshot(snapshot);
    let in_flight = in_flight(&snapshot, asked);
    let since_ns = in_flight
        .iter()
        .map(|request| request.since_ns)
        .min()
        .unwrap_or(asked.start_ns);
    let hang = Hang {
        since_ns,
        lasted_ns: now.saturating_sub(since_ns),
        requests: in_flight.len() as u64,
    };
    (
        snapshot.take_timed_out(&in_flight, asked.measure_ns, asked.ending),
        hang,
    )
}

/// A worker that has ended no cell for so long waits in a system call: cells last 10 ms, and one
/// that waits for a queue looks up every 200 ms.
const WITHIN_CALL_NS: u64 = 1_000_000_000;

/// For how long the workers of a target, which started at `start_ns`, have waited for it without
/// any answer; `None` where none of them waits: an open loop with nothing due has asked for
/// nothing.
pub fn silence_ns(
    workers: impl Iterator<Item = impl Deref<Target = WorkerSnapshot>>,
    start_ns: u64,
    now: u64,
) -> Option<u64> {
    let (mut asked_ns, mut answered_ns): (Option<u64>, u64) = (None, start_ns);
    for snapshot in workers {
        let within_call = now.saturating_sub(snapshot.rolled_ns.max(start_ns)) > WITHIN_CALL_NS;
        let waiting = snapshot
            .in_flight
            .iter()
            .map(|request| request.since_ns)
            .chain(within_call.then_some(snapshot.rolled_ns));
        asked_ns = asked_ns.into_iter().chain(waiting).min();
        answered_ns = answered_ns.max(snapshot.last_ns);
    }
    asked_ns.map(|asked_ns| now.saturating_sub(asked_ns.max(answered_ns)))
}

/// Two of the same target as one.
pub fn join(one: Option<Hang>, other: Hang) -> Hang {
    let Some(one) = one else { return other };
    let (since_ns, end_ns) = (
        one.since_ns.min(other.since_ns),
        (one.since_ns + one.lasted_ns).max(other.since_ns + other.lasted_ns),
    );
    Hang {
        since_ns,
        lasted_ns: end_ns - since_ns,
        requests: one.requests + other.requests,
    }
}

/// A worker with a queue wakes up now and then, and shows it. One that waits in a system call has
/// begun that after its last cell: in it is whatever it did next.
fn in_flight(snapshot: &WorkerSnapshot, asked: StuckWorker<'_>) -> Vec<PendingRequest> {
    let waits_within_call = matches!(asked.engine, EngineKind::Sync | EngineKind::Mmap);
    let since_ns = snapshot.rolled_ns.max(asked.start_ns);
    if !waits_within_call && !snapshot.in_flight.is_empty() {
        let mut in_flight = snapshot.in_flight.clone();
        // Syncs have no place in the queue of Linux AIO: one of them came after what was shown
        // last.
        let sync = snapshot
            .thread
            .and_then(system_call)
            .map(|kind| PendingRequest { kind, since_ns });
        if let (Some(latest), Some(sync)) = (
            in_flight.iter_mut().max_by_key(|request| request.since_ns),
            sync,
        ) {
            *latest = sync;
        }
        return in_flight;
    }
    let only = if asked.workload.reads() {
        OpKind::Read
    } else {
        OpKind::Write
    };
    let before = snapshot.in_flight.first().map(|request| request.kind);
    let kind = snapshot
        .thread
        .and_then(system_call)
        .or(before)
        .unwrap_or(only);
    vec![PendingRequest { kind, since_ns }]
}

/// The operation in whose system call a thread is (/proc/PID/task/TID/syscall in proc(5), Linux
/// 2.6.27).
fn system_call(thread: i32) -> Option<OpKind> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
    match text.split_whitespace().next()?.parse().ok()? {
        libc::SYS_pread64 => Some(OpKind::Read),
        libc::SYS_pwrite64 | libc::SYS_sync_file_range => Some(OpKind::Write),
        libc::SYS_fsync | libc::SYS_fdatasync => Some(OpKind::Sync),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn only_who_was_asked_can_be_silent() {
        let worker = |rolled_ns, last_ns, since: &[u64]| {
            let in_flight = since
                .iter()
                .map(|since_ns| PendingRequest {
                    kind: OpKind::Read,
                    since_ns: *since_ns,
                })
                .collect();
            WorkerSnapshot {
                rolled_ns,
                last_ns,
                in_flight,
                ..WorkerSnapshot::default()
            }
        };
        let silence = |workers: &[WorkerSnapshot]| silence_ns(workers.iter(), SECOND, 10 * SECOND);
        // An open loop between two starts.
        assert_eq!(silence(&[worker(10 * SECOND - 5, 4 * SECOND, &[])]), None);
        // Its next start, long after the last answer.
        assert_eq!(
            silence(&[worker(10 * SECOND - 5, 4 * SECOND, &[10 * SECOND - 7])]),
            Some(7)
        );
        // A queue that was never answered, and one that was a second ago.
        assert_eq!(
            silence(&[worker(10 * SECOND - 5, 0, &[2 * SECOND, 3 * SECOND])]),
            Some(8 * SECOND)
        );
        assert_eq!(
            silence(&[worker(
                10 * SECOND - 5,
                9 * SECOND,
                &[2 * SECOND, 3 * SECOND]
            )]),
            Some(SECOND)
        );
        // Within a system call since the last cell; another worker had an answer since.
        let stuck = || worker(4 * SECOND, 4 * SECOND, &[]);
        assert_eq!(silence(&[stuck()]), Some(6 * SECOND));
        assert_eq!(
            silence(&[stuck(), worker(10 * SECOND, 6 * SECOND, &[])]),
            Some(4 * SECOND)
        );
        // Nobody has rolled yet.
        assert_eq!(silence(&[worker(0, 0, &[])]), Some(9 * SECOND));
        assert_eq!(silence(&[]), None);
    }
}
