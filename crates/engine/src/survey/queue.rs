//! Pieces of a target carried in order through a backend, each told by when it landed and how much
//! of the time was its own. What the curve, the burst, the access times and the scan are made of.
//! Knows no statistics and no disk.

use crate::io::clock::Clock;
use crate::io::errno::END_OF_FILE;
use crate::io::{Backend, Op, Request, WaitMode};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::SyncCall;
use std::io;

/// A part of the target, moved by one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRequest {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// The caller's own mark.
    pub tag: u32,
}

/// A piece that is done.
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// Which.
    pub request: BlockRequest,
    /// 0, or an errno; [`END_OF_FILE`] where the target ended before it should.
    pub errno: i32,
    /// When it was reaped.
    pub at_ns: u64,
    /// From before the submission to the reaping, in nanoseconds.
    pub latency_ns: u64,
    /// Time since the landing before, or since the start of the batch, in nanoseconds. Pieces
    /// reaped together share their time evenly: which of them ended when is not known, and
    /// giving all of it to the first would tear the border between two samples.
    pub share_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct InFlight {
    request: BlockRequest,
    done: u32,
    start_ns: u64,
}

/// A backend with its free slots.
pub struct RequestQueue<B, C> {
    backend: B,
    clock: C,
    op: Op,
    in_flight: Vec<InFlight>,
    free: Vec<u32>,
    reaped: Vec<(u32, i32)>,
    unique: u64,
}

impl<B: Backend, C: Clock> RequestQueue<B, C> {
    /// Up to `depth` requests in flight. `unique` begins the stamps of what is written.
    pub fn new(backend: B, clock: C, operation: OpKind, depth: u32, unique: u64) -> Self {
        let op = if operation == OpKind::Write {
            Op::Write
        } else {
            Op::Read
        };
        let idle = InFlight {
            request: BlockRequest {
                offset: 0,
                len: 0,
                tag: 0,
            },
            done: 0,
            start_ns: 0,
        };
        let slots = depth as usize;
        Self {
            backend,
            clock,
            op,
            in_flight: vec![idle; slots],
            free: (0..depth).rev().collect(),
            reaped: Vec::with_capacity(slots),
            unique,
        }
    }

    /// The time now.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Its clock.
    pub fn clock(&self) -> C {
        self.clock.clone()
    }

    /// How long this thread was ready and got no processor so far, in nanoseconds.
    pub fn starved_ns(&self) -> u64 {
        self.clock.starved_ns()
    }

    /// Empties the page cache of the target.
    pub fn drop_cache(&mut self) {
        self.backend.drop_cache(None);
    }

    /// Keeps as many pieces in flight as there are slots until `next` gives no more, and hands each
    /// over when it is done. Short transfers are continued.
    pub fn run(
        &mut self,
        mut next: impl FnMut() -> Option<BlockRequest>,
        mut on_completion: impl FnMut(&Completion),
    ) -> io::Result<()> {
        let mut again: Vec<u32> = Vec::new();
        let now = self.clock.now();
        let mut before_ns = self.clock.anchor(now);
        loop {
            self.submit(&mut again, &mut next)?;
            if self.free.len() == self.in_flight.len() {
                return Ok(());
            }
            self.backend.wait(WaitMode::Completion)?;
            let now = self.clock.now();
            self.backend
                .reap(&mut |slot, result| self.reaped.push((slot, result)));
            before_ns = self.complete(before_ns, now, &mut again, &mut on_completion);
        }
    }

    /// One piece alone.
    pub fn read_one(&mut self, request: BlockRequest) -> io::Result<Completion> {
        let (mut left, mut landed) = (Some(request), None);
        self.run(|| left.take(), |completion| landed = Some(*completion))?;
        landed.ok_or_else(|| io::Error::other("a request was lost"))
    }

    /// Makes what was written durable; the time it took.
    pub fn flush(&mut self) -> io::Result<u64> {
        if self.op != Op::Write {
            return Ok(0);
        }
        let start_ns = self.clock.now();
        let mut request = Some(Request {
            slot: 0,
            buffer: 0,
            op: Op::Sync(SyncCall::Fdatasync),
            offset: 0,
            len: 0,
            skip: 0,
        });
        self.backend.enqueue(&mut |_| request.take())?;
        let mut result = None;
        while result.is_none() {
            self.backend.wait(WaitMode::Completion)?;
            self.backend.reap(&mut |_, outcome| result = Some(outcome));
        }
        Ok(self.clock.now() - start_ns)
    }

    fn submit(
        &mut self,
        again: &mut Vec<u32>,
        next: &mut impl FnMut() -> Option<BlockRequest>,
    ) -> io::Result<()> {
        let Self {
            backend,
            clock,
            op,
            in_flight,
            free,
            unique,
            ..
        } = self;
        backend.enqueue(&mut |buffers| {
            if let Some(slot) = again.pop() {
                let in_flight = in_flight[slot as usize];
                let (offset, len) = (
                    in_flight.request.offset + u64::from(in_flight.done),
                    in_flight.request.len - in_flight.done,
                );
                return Some(Request {
                    slot,
                    buffer: slot,
                    op: *op,
                    offset,
                    len,
                    skip: in_flight.done,
                });
            }
            let slot = *free.last()?;
            let request = next()?;
            free.pop();
            if *op == Op::Write {
                *unique = unique.wrapping_add(1);
                buffers.stamp(slot as usize, request.len as usize, *unique);
            }
            in_flight[slot as usize] = InFlight {
                request,
                done: 0,
                start_ns: clock.now(),
            };
            Some(Request {
                slot,
                buffer: slot,
                op: *op,
                offset: request.offset,
                len: request.len,
                skip: 0,
            })
        })
    }

    /// Hands over what was reaped at `now`, the first after `before_ns`; when the last of it
    /// landed.
    fn complete(
        &mut self,
        before_ns: u64,
        now: u64,
        again: &mut Vec<u32>,
        on_completion: &mut impl FnMut(&Completion),
    ) -> u64 {
        let Self {
            in_flight,
            free,
            reaped,
            ..
        } = self;
        // A short transfer that goes on has not landed.
        reaped.retain(|(slot, result)| {
            let in_flight = &mut in_flight[*slot as usize];
            let goes_on = *result > 0 && in_flight.done + (*result as u32) < in_flight.request.len;
            if goes_on {
                in_flight.done += *result as u32;
                again.push(*slot);
            }
            !goes_on
        });
        let (count, span_ns) = (reaped.len() as u64, now.saturating_sub(before_ns));
        if count == 0 {
            return before_ns;
        }
        for (index, (slot, result)) in reaped.drain(..).enumerate() {
            let in_flight = in_flight[slot as usize];
            let index = index as u64;
            let errno = match result {
                0 => END_OF_FILE,
                negative if negative < 0 => -negative,
                _ => 0,
            };
            free.push(slot);
            on_completion(&Completion {
                request: in_flight.request,
                errno,
                at_ns: now,
                latency_ns: now.saturating_sub(in_flight.start_ns),
                share_ns: span_ns * (index + 1) / count - span_ns * index / count,
            });
        }
        now.max(before_ns)
    }
}
