//! Sends the requests of a ping to one target: decides when each starts, where it goes, and what
//! follows it. Runs alike in real and in virtual time.

use crate::io::clock::Clock;
use crate::io::{Backend, Extent, Op, errno_name};
use crate::load::generator::AfterWrite;
use crate::load::pattern::{Pattern, Step};
use crate::measure::counters::FATAL_ERRNOS;
use crate::measure::result::EndReason;
use crate::measure::sampler::{Completion, SampleRequest, Sampler};
use crate::run::limits::after_write_of;
use diskproof_model::measurement::{Interruption, Measurement, OpKind, ZeroSample};
use diskproof_model::ping::{IgnoredBecause, PingPlan, SingleRequest};
use diskproof_model::plan::{CachePolicy, RangeSync, Workload};
use diskproof_model::stream::Streams;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A target whose requests fail so often in a row gets no further request. Chosen: a path that
/// fails over loses fewer.
const FAILURES_MAX: u32 = 100;
/// A pinger sleeps for at most this long before it looks at its signals: a user does not notice the
/// delay.
const SLEEP_NS_MAX: u64 = 50_000_000;
/// A request does not count if its idle time was longer than planned by one part in so many, and
/// by [`LATE_NS`] besides: it then measures another idle time. Chosen, not measured.
const LATE_PARTS: u64 = 4;
/// The delay that even a short idle time may have. Chosen: a few time slices of a busy scheduler.
const LATE_NS: u64 = 10_000_000;
const NO_ANSWER: &str = "a request was lost";

/// The signals between a pinger and its supervisor.
#[derive(Debug, Default)]
pub(crate) struct PingSignals {
    stop: AtomicBool,
    /// When the request in flight was sent, on the pinger's clock; 0 without one.
    since_ns: AtomicU64,
}

impl PingSignals {
    /// Sets the time of the request that is about to be sent.
    pub(crate) fn begin(&self, now: u64) {
        self.since_ns.store(now.max(1), Ordering::Relaxed);
    }

    /// Clears the time of the request, which has ended.
    pub(crate) fn end(&self) {
        self.since_ns.store(0, Ordering::Relaxed);
    }

    /// Tells the pinger to end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// True once the pinger must end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// When the request in flight was sent, on the pinger's clock; `None` without one.
    pub(crate) fn in_flight_since(&self) -> Option<u64> {
        match self.since_ns.load(Ordering::Relaxed) {
            0 => None,
            since_ns => Some(since_ns),
        }
    }
}

/// The task of a pinger.
pub(crate) struct PingOrders {
    /// The workload and its target: size, cache and sync of the requests, their limits, and the I/O
    /// engine.
    pub known: Measurement,
    /// The pace of the requests.
    pub plan: PingPlan,
    /// The part of the target that they go to.
    pub extent: Extent,
    /// Seed of offsets and data.
    pub seed: u64,
}

/// A request that has ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PingAnswer {
    /// The request; its time is on the clock.
    pub request: SingleRequest,
    /// When it ended, on the clock.
    pub completed_ns: u64,
    /// The bytes that it was to move.
    pub bytes: u32,
    /// A look at the content of its block, where it was a read.
    pub zero_blocks: ZeroSample,
    /// Set for a write with a sync behind it.
    pub parts: Option<CommitParts>,
    /// The call that failed, where one did.
    pub failed: Option<FailedCall>,
}

/// A call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FailedCall {
    /// The kind of operation under which it counts.
    pub kind: OpKind,
    pub errno: i32,
}

/// The times of a write and of the sync behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitParts {
    /// The time of the write, in nanoseconds.
    pub write_ns: u64,
    /// The time of the sync, in nanoseconds.
    pub sync_ns: u64,
}

/// The times of the request before the next one, on the clock.
#[derive(Debug, Clone, Copy)]
struct PreviousRequest {
    started_ns: u64,
    ended_ns: u64,
}

/// The next request, and the time from which on it may start.
#[derive(Debug, Clone, Copy)]
struct NextRequest {
    number: u64,
    due_ns: u64,
    idle_ns: Option<u64>,
}

impl NextRequest {
    /// True if the idle time before it, where one was planned, became another one.
    fn is_late(&self, submitted_ns: u64) -> bool {
        match self.idle_ns {
            Some(idle_ns) => submitted_ns > self.due_ns + idle_ns / LATE_PARTS + LATE_NS,
            None => false,
        }
    }
}

impl PingOrders {
    /// The offsets of the requests in one direction.
    fn pattern(&self, read_permille: u16) -> Pattern {
        let one_way = Workload {
            streams: Streams::with_reads(read_permille),
            ..self.known.workload.clone()
        };
        let stream = self.known.target as u64;
        Pattern::new(&one_way, self.extent, self.seed, stream)
    }
}

/// Sends the requests.
pub(crate) struct Pinger<B, C> {
    sampler: Sampler<B, C>,
    orders: PingOrders,
    reads: Pattern,
    writes: Pattern,
    failures_in_row: u32,
}

impl<B: Backend, C: Clock> Pinger<B, C> {
    /// Nothing is sent yet.
    pub(crate) fn new(sampler: Sampler<B, C>, orders: PingOrders) -> Self {
        Self {
            reads: orders.pattern(1000),
            writes: orders.pattern(0),
            sampler,
            orders,
            failures_in_row: 0,
        }
    }

    /// Sends requests until a limit, or until the signals say stop.
    pub(crate) fn run(
        &mut self,
        signals: &PingSignals,
        mut on_answer: impl FnMut(PingAnswer) -> io::Result<()>,
    ) -> io::Result<EndReason> {
        let Workload {
            stop, block_bytes, ..
        } = self.orders.known.workload;
        let begin_ns = self.sampler.resync_clock();
        let end_ns = begin_ns.saturating_add(stop.time_ns.unwrap_or(u64::MAX / 2));
        let mut previous = None;
        let mut number = 1u64;
        loop {
            let bytes = number.saturating_mul(u64::from(block_bytes));
            if stop.ops.is_some_and(|ops| number > ops)
                || stop.bytes.is_some_and(|limit| bytes > limit)
            {
                return Ok(EndReason::Budget);
            }
            let Some(next) = self.plan_request(number, begin_ns, previous) else {
                return Ok(EndReason::Budget);
            };
            if let Some(ending) = self.wait_until_due(next.due_ns, end_ns, signals) {
                return Ok(ending);
            }
            let answer = self.send(next, signals)?;
            let fatal = self.count_failure(&answer);
            previous = Some(PreviousRequest {
                started_ns: answer.request.at_ns,
                ended_ns: answer.completed_ns,
            });
            on_answer(answer)?;
            if let Some(errno) = fatal {
                return Ok(EndReason::Errors(errno));
            }
            number += 1;
        }
    }

    /// Takes the times in which the process did not run; their starts are on CLOCK_MONOTONIC.
    pub(crate) fn take_interruptions(&mut self) -> Vec<Interruption> {
        self.sampler.take_interruptions()
    }

    /// The request with this number, from 1; `None` after the last planned one.
    fn plan_request(
        &self,
        number: u64,
        begin_ns: u64,
        previous: Option<PreviousRequest>,
    ) -> Option<NextRequest> {
        let plan = &self.orders.plan;
        let idle_ns = match plan.idle_ns.as_slice() {
            [] => None,
            idle_ns => Some(*idle_ns.get(number as usize - 1)?),
        };
        let due_ns = match (previous, idle_ns) {
            (None, _) => begin_ns,
            (Some(previous), Some(idle_ns)) => previous.ended_ns + idle_ns,
            (Some(previous), None) => previous
                .started_ns
                .saturating_add(plan.interval_ns)
                .max(previous.ended_ns),
        };
        Some(NextRequest {
            number,
            due_ns,
            idle_ns,
        })
    }

    /// Sleeps until the next request may start. Returns the end of the ping where that comes first.
    fn wait_until_due(&self, due_ns: u64, end_ns: u64, signals: &PingSignals) -> Option<EndReason> {
        let clock = self.sampler.clock();
        loop {
            let now = clock.now();
            if signals.is_stopped() {
                return Some(EndReason::Stopped);
            }
            if now.max(due_ns) >= end_ns {
                return Some(EndReason::Time);
            }
            if now >= due_ns {
                return None;
            }
            clock.sleep_until(due_ns.min(now + SLEEP_NS_MAX));
        }
    }

    /// Reads and writes alternate, where there are both; a read comes first.
    fn next_step(&mut self, number: u64) -> Step {
        let workload = &self.orders.known.workload;
        let is_read = if workload.reads() && workload.writes() {
            number % 2 == 1
        } else {
            workload.reads()
        };
        let (kind, pattern) = if is_read {
            (OpKind::Read, &mut self.reads)
        } else {
            (OpKind::Write, &mut self.writes)
        };
        Step {
            kind,
            ..pattern.step()
        }
    }

    /// Sends a request, and after a write what makes it durable. Waits for both.
    fn send(&mut self, next: NextRequest, signals: &PingSignals) -> io::Result<PingAnswer> {
        let step = self.next_step(next.number);
        let cache = self.orders.known.cache.used;
        if cache == CachePolicy::Buffered {
            self.sampler
                .drop_cache_of(Extent::new(step.offset, u64::from(step.len)));
        }
        let now = self.sampler.resync_clock();
        signals.begin(now);
        // The steps of a ping are reads and writes only.
        let op = if step.kind == OpKind::Read {
            Op::Read
        } else {
            Op::Write
        };
        let first = self.complete(op, &step)?;
        let after_write = after_write_of(&self.orders.known.workload, cache);
        let mut second = None;
        if step.kind == OpKind::Write && first.result.is_ok() {
            second = match after_write {
                AfterWrite::Sync(call) => Some(self.complete(Op::Sync(call), &step)?),
                AfterWrite::WriteBack => {
                    Some(self.complete(Op::SyncRange(RangeSync::COMPLETE), &step)?)
                }
                AfterWrite::Nothing | AfterWrite::Durable | AfterWrite::SyncEvery(..) => None,
            };
        }
        signals.end();
        Ok(self.answer(&step, next, first, second))
    }

    /// Submits an operation of a step, and waits for it.
    fn complete(&mut self, op: Op, step: &Step) -> io::Result<Completion> {
        let (offset, len) = match op {
            Op::Sync(_) => (0, 0),
            _ => (step.offset, step.len),
        };
        self.sampler.submit(SampleRequest::new(op, offset, len))?;
        let completion = self.sampler.next_completion()?;
        completion.ok_or_else(|| io::Error::other(NO_ANSWER))
    }

    /// Returns the answer that the completions of a step's operations make together.
    fn answer(
        &mut self,
        step: &Step,
        next: NextRequest,
        first: Completion,
        second: Option<Completion>,
    ) -> PingAnswer {
        let kind = step.kind;
        let commits = kind == OpKind::Write && self.orders.known.workload.commits();
        let last = second.unwrap_or(first);
        let failed = if let Err(errno) = first.result {
            Some(FailedCall { kind, errno })
        } else if let Some(second) = second
            && let Err(errno) = second.result
        {
            let kind = if commits { OpKind::Sync } else { kind };
            Some(FailedCall { kind, errno })
        } else {
            None
        };
        let ignored = if first.interrupted || last.interrupted {
            Some(IgnoredBecause::Interrupted)
        } else if next.number <= self.orders.plan.warmup_requests {
            Some(IgnoredBecause::Warmup)
        } else if next.is_late(first.submitted_ns) {
            Some(IgnoredBecause::Late)
        } else {
            None
        };
        let parts = match second {
            Some(second) if commits => Some(CommitParts {
                write_ns: first.latency_ns(),
                sync_ns: second.latency_ns(),
            }),
            _ => None,
        };
        PingAnswer {
            request: SingleRequest {
                number: next.number,
                at_ns: first.submitted_ns,
                op: if commits { OpKind::Commit } else { kind },
                offset_bytes: step.offset,
                latency_ns: last.completed_ns.saturating_sub(first.submitted_ns),
                idle_ns: next.idle_ns,
                error: failed.map(|failed| errno_name(failed.errno)),
                ignored,
            },
            completed_ns: last.completed_ns,
            bytes: step.len,
            zero_blocks: self.sampler.take_zero_blocks(),
            parts,
            failed,
        }
    }

    /// Counts failures in a row. Returns the errno that ends the ping, because the target is gone
    /// or has failed too often.
    fn count_failure(&mut self, answer: &PingAnswer) -> Option<i32> {
        let Some(FailedCall { errno, .. }) = answer.failed else {
            self.failures_in_row = 0;
            return None;
        };
        self.failures_in_row += 1;
        let is_fatal = FATAL_ERRNOS.contains(&errno) || self.failures_in_row >= FAILURES_MAX;
        if is_fatal { Some(errno) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_far_beyond_the_planned_one_is_late() {
        let next = |idle_ns| NextRequest {
            number: 2,
            due_ns: 5_000_000_000,
            idle_ns,
        };
        let second = next(Some(1_000_000_000));
        assert!(!second.is_late(5_260_000_000));
        assert!(second.is_late(5_260_000_001));
        assert!(next(Some(0)).is_late(5_010_000_001));
        assert!(!next(None).is_late(9_000_000_000));
    }
}
