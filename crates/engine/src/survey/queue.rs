//! Blocks of a target moved in order through a [`Sampler`], each with the part of the time that was
//! its own. Curve, burst, access times and scan are built on it. Knows no statistics and no disk.

use crate::io::clock::Clock;
use crate::io::{Backend, Op};
use crate::measure::sampler::{Completion, SampleRequest, Sampler};
use diskproof_model::measurement::{Interruption, OpKind};
use diskproof_model::plan::SyncCall;
use std::io;

/// A part of the target, moved by one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockRequest {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// The caller's own mark.
    pub tag: u32,
}

/// A block that was moved, or failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockCompletion {
    /// The request.
    pub request: BlockRequest,
    /// 0, or an errno; [`crate::io::errno::END_OF_FILE`] where the target ended inside the block.
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
    /// When the request was submitted.
    pub(crate) fn submitted_ns(&self) -> u64 {
        self.at_ns.saturating_sub(self.latency_ns)
    }
}

/// A sampler for requests of one kind.
pub(crate) struct RequestQueue<B, C> {
    sampler: Sampler<B, C>,
    op: Op,
}

impl<B: Backend, C: Clock> RequestQueue<B, C> {
    /// Reads or writes through `sampler`.
    pub(crate) fn new(sampler: Sampler<B, C>, operation: OpKind) -> Self {
        let op = if operation == OpKind::Write {
            Op::Write
        } else {
            Op::Read
        };
        Self { sampler, op }
    }

    /// The time now.
    pub(crate) fn now(&self) -> u64 {
        self.sampler.now()
    }

    /// The sampler's clock.
    pub(crate) fn clock(&self) -> C {
        self.sampler.clock()
    }

    /// How long this thread was ready to run and got no processor so far, in nanoseconds.
    pub(crate) fn starved_ns(&self) -> u64 {
        self.sampler.starved_ns()
    }

    /// Interruptions of this process since the last call; their starts on CLOCK_MONOTONIC.
    pub(crate) fn take_interruptions(&mut self) -> Vec<Interruption> {
        self.sampler.take_interruptions()
    }

    /// Drops the target's pages from the page cache.
    pub(crate) fn drop_cache(&mut self) {
        self.sampler.drop_cache();
    }

    /// Keeps the queue full until `next` returns `None`, and calls `on_completion` for each block.
    pub(crate) fn run(
        &mut self,
        mut next: impl FnMut() -> Option<BlockRequest>,
        mut on_completion: impl FnMut(&BlockCompletion),
    ) -> io::Result<()> {
        let mut batch = Vec::new();
        let mut before_ns = self.sampler.resync_clock();
        loop {
            while self.sampler.has_room()
                && let Some(request) = next()
            {
                self.sampler.submit(SampleRequest {
                    op: self.op,
                    offset: request.offset,
                    len: request.len,
                    tag: request.tag,
                })?;
            }
            if self.sampler.in_flight() == 0 {
                return Ok(());
            }
            self.sampler.wait(&mut batch)?;
            before_ns = share_time(&batch, before_ns, &mut on_completion);
        }
    }

    /// Moves one block while nothing else is in flight.
    pub(crate) fn read_one(&mut self, request: BlockRequest) -> io::Result<BlockCompletion> {
        let (mut left, mut completed) = (Some(request), None);
        self.run(|| left.take(), |completion| completed = Some(*completion))?;
        completed.ok_or_else(|| io::Error::other("a request was lost"))
    }

    /// Makes what was written durable; the time it took, in nanoseconds.
    pub(crate) fn flush(&mut self) -> io::Result<u64> {
        if self.op != Op::Write {
            return Ok(0);
        }
        self.sampler.submit(SampleRequest {
            op: Op::Sync(SyncCall::Fdatasync),
            offset: 0,
            len: 0,
            tag: 0,
        })?;
        let flushed = self.sampler.next_completion()?;
        Ok(flushed.map_or(0, |completion| completion.latency_ns()))
    }
}

/// Divides the time since `before_ns` among the blocks of a batch; when the last of them completed.
fn share_time(
    batch: &[Completion],
    before_ns: u64,
    on_completion: &mut impl FnMut(&BlockCompletion),
) -> u64 {
    let Some(last) = batch.last() else {
        return before_ns;
    };
    let count = batch.len() as u64;
    let span_ns = last.completed_ns.saturating_sub(before_ns);
    for (index, completion) in batch.iter().enumerate() {
        let index = index as u64;
        on_completion(&BlockCompletion {
            request: BlockRequest {
                offset: completion.request.offset,
                len: completion.request.len,
                tag: completion.request.tag,
            },
            errno: completion.result.err().unwrap_or(0),
            at_ns: completion.completed_ns,
            latency_ns: completion.latency_ns(),
            share_ns: span_ns * (index + 1) / count - span_ns * index / count,
            gap_ns: span_ns,
            interrupted: completion.interrupted,
        });
    }
    last.completed_ns.max(before_ns)
}
