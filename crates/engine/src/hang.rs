//! A target that does not answer: what the threads that wait for it have in flight, and what is kept of them. Knows nothing of plans.

use crate::interim::{Interim, look_into};
use crate::slots::InFlight;
use crate::worker::{Ending, Yield};
use diskproof_model::measurement::{Hang, OpKind};
use diskproof_model::plan::{EngineKind, Workload};
use std::sync::Mutex;

/// A target that does not answer for this long after everything was told to end is given up. Longer than the kernel's own timeout for SCSI
/// commands (30 s), so that its error arrives first.
pub const STALL_NS: u64 = 45_000_000_000;

/// What was asked of a worker that is given up.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Its workload.
    pub workload: &'a Workload,
    /// What carries it.
    pub engine: EngineKind,
    /// When it started.
    pub start_ns: u64,
    /// From when on it measured.
    pub measure_ns: u64,
    /// Why it should have ended, and when.
    pub ending: (Ending, u64),
}

/// What comes home of a worker that waits for its target for good, and what it waits for at `now`.
pub fn give_up(interim: &Mutex<Interim>, asked: Asked<'_>, now: u64) -> (Yield, Hang) {
    let mut interim = look_into(interim);
    let in_flight = in_flight(&interim, asked);
    let since_ns = in_flight.iter().map(|request| request.since_ns).min().unwrap_or(asked.start_ns);
    let hang = Hang { since_ns, lasted_ns: now.saturating_sub(since_ns), requests: in_flight.len() as u64 };
    (interim.give_up(&in_flight, asked.measure_ns, asked.ending), hang)
}

/// Two of the same target as one.
pub fn join(one: Option<Hang>, other: Hang) -> Hang {
    let Some(one) = one else { return other };
    let (since_ns, end_ns) = (one.since_ns.min(other.since_ns), (one.since_ns + one.lasted_ns).max(other.since_ns + other.lasted_ns));
    Hang { since_ns, lasted_ns: end_ns - since_ns, requests: one.requests + other.requests }
}

/// A worker with a queue wakes up now and then, and shows it. One that waits in a system call has begun that after its last cell: in it is whatever it did
/// next.
fn in_flight(interim: &Interim, asked: Asked<'_>) -> Vec<InFlight> {
    let waits_within_call = matches!(asked.engine, EngineKind::Sync | EngineKind::Mmap);
    if !waits_within_call && !interim.in_flight.is_empty() {
        return interim.in_flight.clone();
    }
    let only = if asked.workload.reads() { OpKind::Read } else { OpKind::Write };
    let before = interim.in_flight.first().map(|request| request.kind);
    let kind = interim.thread.and_then(system_call).or(before).unwrap_or(only);
    vec![InFlight { kind, since_ns: interim.rolled_ns.max(asked.start_ns) }]
}

/// The operation in whose system call a thread is (/proc/PID/task/TID/syscall in proc(5), Linux 2.6.27).
fn system_call(thread: i32) -> Option<OpKind> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
    match text.split_whitespace().next()?.parse().ok()? {
        libc::SYS_pread64 => Some(OpKind::Read),
        libc::SYS_pwrite64 | libc::SYS_sync_file_range => Some(OpKind::Write),
        libc::SYS_fsync | libc::SYS_fdatasync => Some(OpKind::Sync),
        _ => None,
    }
}
