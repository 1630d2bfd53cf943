//! Moves blocks of a target in order through a [`Sampler`], and gives each the part of the time
//! that was its own. Curve, burst, access times and scan are built on it.

use super::log::SurveyLog;
use super::target::SurveyTarget;
use crate::io::clock::Clock;
use crate::io::{Backend, Op, errno_name};
use crate::measure::sampler::{Completion, SampleRequest, Sampler};
use diskproof_model::measurement::{Hang, OpKind};
use diskproof_model::plan::{CachePolicy, SyncCall};
use diskproof_model::surface::CurvePoint;
use std::io;

/// A request for a part of the target, of less than 4 GiB. [`RequestQueue`] makes it a read or a
/// write.
pub(crate) fn block_at(offset: u64, bytes: u64) -> SampleRequest {
    debug_assert!(bytes <= u64::from(u32::MAX));
    SampleRequest::new(Op::Read, offset, bytes as u32)
}

/// A block that was moved, or failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockCompletion {
    /// The request.
    pub request: SampleRequest,
    /// 0, or an errno; [`crate::io::END_OF_FILE`] where the target ended inside the block.
    pub errno: i32,
    /// When the completion was received.
    pub at_ns: u64,
    /// From submission to completion, in nanoseconds.
    pub latency_ns: u64,
    /// Time since the completion before, or since the start of the batch, in nanoseconds. Blocks
    /// that complete together share their time evenly: the order in which they completed is
    /// unknown, and giving all of it to the first would tear the border between two samples.
    pub share_ns: u64,
    /// Time since any block completed before the batch that this one belongs to, or since the queue
    /// was filled, in nanoseconds.
    pub gap_ns: u64,
    /// The process was stopped or suspended meanwhile: its times are meaningless.
    pub interrupted: bool,
}

impl BlockCompletion {
    /// Bytes that it moved.
    fn moved_bytes(&self) -> u64 {
        if self.errno == 0 {
            u64::from(self.request.len)
        } else {
            0
        }
    }

    /// Adds the pause of a stream to the list: several requests were in flight, and none completed.
    fn add_pause_to(&self, stalls: &mut Vec<Hang>) {
        let has_room = stalls.len() < STALLS_MAX;
        let submitted_ns = self.at_ns.saturating_sub(self.latency_ns);
        match stalls.last_mut() {
            // Those that completed together, or right after the first.
            Some(stall) if submitted_ns <= stall.since_ns + stall.lasted_ns => {
                stall.requests += 1;
            }
            _ if self.gap_ns >= STALL_NS_MIN && has_room => {
                stalls.push(Hang {
                    since_ns: self.at_ns - self.gap_ns,
                    lasted_ns: self.gap_ns,
                    requests: 1,
                    late: false,
                });
            }
            _ => {}
        }
    }
}

/// A stream without a completion for so long has paused. Its requests in flight, at most 8 MiB,
/// take about a sixteenth of this on a rotating disk of 270 MB/s.
const STALL_NS_MIN: u64 = 500_000_000;
/// At most so many pauses are kept; later ones are ignored. Chosen: a record stays small.
const STALLS_MAX: usize = 100;

/// Keeps reads, or writes, of a target in flight, and gives each its part of the time.
pub(crate) struct RequestQueue<'a, B, C> {
    /// Carries the requests.
    pub sampler: Sampler<B, C>,
    /// A read or a write.
    op: Op,
    /// The target of the requests.
    pub target: SurveyTarget,
    /// Counts the requests, and receives the results.
    pub log: &'a SurveyLog,
}

impl<'a, B: Backend, C: Clock> RequestQueue<'a, B, C> {
    /// Reads or writes `target` through `sampler`.
    pub(crate) fn new(sampler: Sampler<B, C>, target: SurveyTarget, log: &'a SurveyLog) -> Self {
        Self {
            sampler,
            op: if target.operation == OpKind::Write {
                Op::Write
            } else {
                Op::Read
            },
            target,
            log,
        }
    }

    /// Ends a step: logs its interruptions, its wait for processors and the content that it saw.
    pub(crate) fn conclude_step(&mut self) {
        let mut results = self.log.results();
        results.starved_ns = self.sampler.starved_ns();
        results.zero_blocks.merge(self.sampler.take_zero_blocks());
        results
            .interruptions
            .extend(self.sampler.take_interruptions());
    }

    /// Drops the target's pages from the page cache for buffered I/O: what earlier steps left there
    /// must not serve later reads.
    pub(crate) fn drop_if_buffered(&mut self) {
        if self.target.cache == CachePolicy::Buffered {
            self.sampler.drop_cache();
        }
    }

    /// Keeps the queue full until `next` returns `None`, and calls `on_completion` for each block.
    /// Logs where the stream pauses.
    pub(crate) fn run(
        &mut self,
        next: impl FnMut() -> Option<SampleRequest>,
        mut on_completion: impl FnMut(&BlockCompletion),
    ) -> io::Result<()> {
        let log = self.log;
        self.run_unwatched(next, |completion| {
            let is_good = completion.errno == 0 && !completion.interrupted;
            if is_good && completion.latency_ns >= STALL_NS_MIN {
                completion.add_pause_to(&mut log.results().stalls);
            }
            on_completion(completion);
        })
    }

    /// As [`RequestQueue::run`], but a pause does not matter.
    pub(crate) fn run_unwatched(
        &mut self,
        next: impl FnMut() -> Option<SampleRequest>,
        mut on_completion: impl FnMut(&BlockCompletion),
    ) -> io::Result<()> {
        let log = self.log;
        self.carry_out(next, |completion| {
            if completion.errno != 0 {
                log.count_error(completion.errno);
            }
            on_completion(completion);
        })
    }

    /// As [`RequestQueue::run_unwatched`], but the caller keeps the errors.
    fn carry_out(
        &mut self,
        mut next: impl FnMut() -> Option<SampleRequest>,
        mut on_completion: impl FnMut(&BlockCompletion),
    ) -> io::Result<()> {
        let log = self.log;
        let mut batch = Vec::new();
        let mut last_completed_ns = self.sampler.resync_clock();
        loop {
            while self.sampler.has_room()
                && let Some(request) = next()
            {
                self.sampler.submit(SampleRequest {
                    op: self.op,
                    ..request
                })?;
            }
            if self.sampler.in_flight() == 0 {
                return Ok(());
            }
            self.sampler.wait(&mut batch)?;
            last_completed_ns = share_time(&batch, last_completed_ns, |completion| {
                log.count(completion.moved_bytes());
                on_completion(completion);
            });
        }
    }

    /// Reads or writes one block while nothing else is in flight.
    pub(crate) fn move_one(&mut self, request: SampleRequest) -> io::Result<BlockCompletion> {
        let completion = self.try_one(request)?;
        if completion.errno != 0 {
            self.log.count_error(completion.errno);
        }
        Ok(completion)
    }

    /// As [`RequestQueue::move_one`], but the caller keeps an error.
    pub(crate) fn try_one(&mut self, request: SampleRequest) -> io::Result<BlockCompletion> {
        let mut unsent = Some(request);
        let mut completed = None;
        self.carry_out(|| unsent.take(), |completion| completed = Some(*completion))?;
        completed.ok_or_else(lost_request)
    }

    /// Makes what was written durable; `None` where the queue only reads.
    pub(crate) fn flush(&mut self) -> io::Result<Option<FlushCompletion>> {
        if self.op != Op::Write {
            return Ok(None);
        }
        let flush = Op::Sync(SyncCall::Fdatasync);
        self.sampler.submit(SampleRequest::new(flush, 0, 0))?;
        let Some(completion) = self.sampler.next_completion()? else {
            return Err(lost_request());
        };
        let errno = completion.result.err();
        if let Some(errno) = errno {
            self.log.count_error(errno);
        }
        Ok(Some(FlushCompletion {
            latency_ns: completion.latency_ns(),
            errno,
            interrupted: completion.interrupted,
        }))
    }
}

/// The error of a request that was submitted and never completed: a fault of this program.
fn lost_request() -> io::Error {
    io::Error::other("a request was lost")
}

/// A flush of what was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlushCompletion {
    /// The duration of the call, in nanoseconds.
    pub latency_ns: u64,
    /// The errno of a flush that failed: nothing that was written before is durable then.
    pub errno: Option<i32>,
    /// True if the process did not run during a part of it.
    pub interrupted: bool,
}

/// Adds a flush to the point whose bytes it made durable. Bytes that are not durable were not
/// written, so a failed one leaves none, and no rate.
pub(crate) fn add_flush(point: &mut CurvePoint, flushed: &FlushCompletion) {
    match flushed.errno {
        None => point.busy_ns += flushed.latency_ns,
        Some(errno) => {
            point.errors += 1;
            *point.errnos.entry(errno_name(errno)).or_default() += 1;
            point.bytes = 0;
            point.busy_ns = 0;
        }
    }
    point.bytes_per_second = point.bytes as f64 * 1e9 / point.busy_ns.max(1) as f64;
}

/// Divides the time since the last completion before a batch among its blocks. Returns when the
/// last of these completed.
fn share_time(
    batch: &[Completion],
    last_completed_ns: u64,
    mut on_completion: impl FnMut(&BlockCompletion),
) -> u64 {
    let Some(last) = batch.last() else {
        return last_completed_ns;
    };
    let count = batch.len() as u64;
    let span_ns = last.completed_ns.saturating_sub(last_completed_ns);
    for (index, completion) in batch.iter().enumerate() {
        let index = index as u64;
        on_completion(&BlockCompletion {
            request: completion.request,
            errno: completion.result.err().unwrap_or(0),
            at_ns: completion.completed_ns,
            latency_ns: completion.latency_ns(),
            share_ns: span_ns * (index + 1) / count - span_ns * index / count,
            gap_ns: span_ns,
            interrupted: completion.interrupted,
        });
    }
    last.completed_ns.max(last_completed_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flush_counts_in_the_time_and_a_failed_one_leaves_no_rate() {
        let written = CurvePoint::read_once(0, 8 << 20, 40_000_000);
        let flushed = FlushCompletion {
            latency_ns: 10_000_000,
            errno: None,
            interrupted: false,
        };
        let mut point = written.clone();
        add_flush(&mut point, &flushed);
        assert_eq!((point.bytes, point.busy_ns), (8 << 20, 50_000_000));
        assert!((point.bytes_per_second - f64::from(8 << 20) / 0.05).abs() < 1.0);
        let failed = FlushCompletion {
            errno: Some(libc::EIO),
            ..flushed
        };
        let mut point = written;
        add_flush(&mut point, &failed);
        assert_eq!((point.errors, point.errnos["EIO"]), (1, 1));
        assert_eq!((point.bytes, point.bytes_per_second), (0, 0.0));
    }

    /// A block that completed at `at_ms`, after a gap and with a latency in milliseconds.
    fn completion(at_ms: u64, latency_ms: u64, gap_ms: u64) -> BlockCompletion {
        BlockCompletion {
            request: block_at(0, 4096),
            errno: 0,
            at_ns: at_ms * 1_000_000,
            latency_ns: latency_ms * 1_000_000,
            share_ns: 0,
            gap_ns: gap_ms * 1_000_000,
            interrupted: false,
        }
    }

    #[test]
    fn requests_that_waited_through_one_pause_are_one_stall() {
        let mut stalls = Vec::new();
        completion(1000, 499, 499).add_pause_to(&mut stalls);
        assert_eq!(stalls, []);
        // Two that waited together, and one that was submitted when the first of them completed.
        completion(2000, 610, 600).add_pause_to(&mut stalls);
        completion(2000, 605, 600).add_pause_to(&mut stalls);
        completion(2510, 510, 510).add_pause_to(&mut stalls);
        let stall = Hang {
            since_ns: 1_400_000_000,
            lasted_ns: 600_000_000,
            requests: 3,
            late: false,
        };
        assert_eq!(stalls, [stall]);
        completion(9000, 700, 700).add_pause_to(&mut stalls);
        assert_eq!(stalls.len(), 2);
    }
}
