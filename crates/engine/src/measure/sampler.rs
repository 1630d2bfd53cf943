//! Measures a device in the smallest way: submits a request, and returns its completion with the
//! times of both. The survey is built on it. Keeps no statistics.

use crate::io::any_backend::{AnyBackend, QueueConfig};
use crate::io::clock::{Clock, WorkerClock};
use crate::io::{Backend, END_OF_FILE, Extent, Op, Request, WaitMode};
use diskproof_model::measurement::{Interruption, ZeroSample};
use diskproof_model::plan::EngineKind;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRequest {
    /// Read, write, or sync.
    pub op: Op,
    /// Offset of the first byte in the target.
    pub offset: u64,
    /// Length in bytes; 0 for a sync.
    pub len: u32,
    /// The caller's own mark, returned with the completion.
    pub tag: u32,
}

impl SampleRequest {
    /// Without a mark.
    pub(crate) fn new(op: Op, offset: u64, len: u32) -> Self {
        Self {
            op,
            offset,
            len,
            tag: 0,
        }
    }
}

/// A completed request. Times are nanoseconds on the sampler's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The request.
    pub request: SampleRequest,
    /// The time just before the request went to the kernel.
    pub submitted_ns: u64,
    /// When the completion was received. Completions received together have the same time.
    pub completed_ns: u64,
    /// Bytes moved, or the errno; -1 where the target ended inside the request.
    pub result: Result<u32, i32>,
    /// The process was stopped or suspended while the request was in flight: its times are
    /// meaningless.
    pub interrupted: bool,
}

impl Completion {
    /// From submission to completion, in nanoseconds.
    pub fn latency_ns(&self) -> u64 {
        self.completed_ns.saturating_sub(self.submitted_ns)
    }
}

/// After a look at the content of a block, at least this time passes before the next one, for each
/// byte. A look takes a tenth of that where all bytes are zero, and ends at the first word with
/// content: so looks take at most a tenth of the time.
const LOOK_NS_PER_BYTE: u64 = 1;

/// A request in the queue.
#[derive(Debug, Clone, Copy)]
struct RequestSlot {
    request: SampleRequest,
    /// Bytes that earlier, short transfers have moved.
    moved: u32,
    submitted_ns: u64,
}

impl RequestSlot {
    fn new(request: SampleRequest) -> Self {
        Self {
            request,
            moved: 0,
            submitted_ns: 0,
        }
    }
}

/// The newest start of a request in these slots.
fn last_submitted_ns(slots: &[RequestSlot]) -> u64 {
    slots
        .iter()
        .map(|slot| slot.submitted_ns)
        .max()
        .unwrap_or(0)
}

/// A queue of requests on one backend. Belongs to the thread that made it.
///
/// A slot is free, then unsent (`submit`), in the kernel (`send`), reaped, and free again (`wait`).
/// A short transfer goes from reaped back to unsent, for its rest. The buffer of a slot belongs to
/// the kernel from `send` to the reap. It keeps what was read until the slot is sent again, so that
/// content is sampled at the end of `wait`: later the caller may have submitted into that slot.
#[derive(Debug)]
pub struct Sampler<B, C> {
    backend: B,
    clock: C,
    slots: Vec<RequestSlot>,
    free: Vec<u32>,
    /// Slots whose requests the backend has not taken yet.
    unsent: VecDeque<u32>,
    /// Slots and results of one reap.
    reaped: Vec<(u32, i32)>,
    /// Completions for [`Self::next_completion`] that were received with an earlier one.
    ready: VecDeque<Completion>,
    /// Makes each written block unique.
    stamp: u64,
    /// Added to a slot's number to get the buffer of its writes.
    write_buffer_offset: u32,
    /// The end of a request that was over when its submission returned
    /// ([`Backend::ends_in_enqueue`]), read there and not at the next wait. After an idle second
    /// the processor's caches have lost the code in between, which would add several microseconds.
    ended_in_enqueue_ns: Option<u64>,
    /// When completions were received last.
    last_received_ns: u64,
    interruptions: Vec<Interruption>,
    zero_blocks: ZeroSample,
    /// The content of no block is looked at before this time.
    next_look_ns: u64,
    /// End of the last interruption.
    resumed_ns: Option<u64>,
}

/// A sampler on an open file, in real time.
pub type FileSampler = Sampler<AnyBackend, WorkerClock>;

impl FileSampler {
    /// A sampler on `fd`, which must be open for what is requested. Fails where this I/O engine
    /// does not work here.
    pub fn open(fd: OwnedFd, engine: EngineKind, config: QueueConfig) -> io::Result<Self> {
        let backend = AnyBackend::new(engine, fd, config)?;
        Ok(Self {
            write_buffer_offset: config.write_shift,
            ..Self::new(backend, WorkerClock::new(), config.depth, config.seed)
        })
    }
}

impl<B: Backend, C: Clock> Sampler<B, C> {
    /// For up to `depth` requests in flight; `stamp` begins the stamps of written blocks.
    pub fn new(backend: B, clock: C, depth: u32, stamp: u64) -> Self {
        let idle = RequestSlot::new(SampleRequest::new(Op::Read, 0, 0));
        Self {
            backend,
            clock,
            slots: vec![idle; depth as usize],
            free: (0..depth).rev().collect(),
            unsent: VecDeque::with_capacity(depth as usize),
            reaped: Vec::with_capacity(depth as usize),
            ready: VecDeque::new(),
            stamp,
            write_buffer_offset: 0,
            ended_in_enqueue_ns: None,
            last_received_ns: 0,
            interruptions: Vec::new(),
            zero_blocks: ZeroSample::default(),
            next_look_ns: 0,
            resumed_ns: None,
        }
    }

    /// The time now.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The sampler's clock.
    pub fn clock(&self) -> C {
        self.clock.clone()
    }

    /// Compares the clock with its reference. Returns the time now.
    pub fn resync_clock(&mut self) -> u64 {
        let now = self.clock.now();
        self.last_received_ns = self.clock.anchor(now);
        self.last_received_ns
    }

    /// The time, in nanoseconds, in which this thread was ready to run and got no processor so far.
    pub fn starved_ns(&self) -> u64 {
        self.clock.starved_ns()
    }

    /// Drops the target's pages from the page cache.
    pub fn drop_cache(&mut self) {
        self.backend.drop_cache(None);
    }

    /// Drops a part of the target from the page cache.
    pub(crate) fn drop_cache_of(&mut self, extent: Extent) {
        self.backend.drop_cache(Some(extent));
    }

    /// Interruptions of this process since the last call; their starts on CLOCK_MONOTONIC.
    pub fn take_interruptions(&mut self) -> Vec<Interruption> {
        std::mem::take(&mut self.interruptions)
    }

    /// The blocks since the last call whose content was looked at.
    pub fn take_zero_blocks(&mut self) -> ZeroSample {
        std::mem::take(&mut self.zero_blocks)
    }

    /// Samples the content of the read in a slot that was reaped and not sent again.
    fn sample_content(&mut self, index: u32, now: u64) {
        let request = self.slots[index as usize].request;
        if request.op != Op::Read || now < self.next_look_ns {
            return;
        }
        self.next_look_ns = now + u64::from(request.len) * LOOK_NS_PER_BYTE;
        let is_zero = self
            .backend
            .buffers()
            .is_zero(index as usize, request.len as usize);
        self.zero_blocks.sampled += 1;
        self.zero_blocks.zero += u64::from(is_zero);
    }

    /// Excludes the times before `now` in which the process did not run. Returns the time then.
    fn exclude_interruptions(&mut self, now: u64) -> u64 {
        let (slots, last_received_ns) = (&self.slots, self.last_received_ns);
        let mut interruptions = self
            .clock
            .interruptions(now, || last_received_ns.max(last_submitted_ns(slots)));
        if interruptions.is_empty() {
            return now;
        }
        let requests = (self.slots.len() - self.free.len()) as u64;
        for interruption in &mut interruptions {
            interruption.requests = requests;
        }
        self.interruptions.append(&mut interruptions);
        let resumed_ns = self.clock.now().max(last_submitted_ns(&self.slots));
        self.resumed_ns = Some(resumed_ns);
        resumed_ns
    }

    /// True while another request fits into the queue.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Requests submitted and not completed.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Submits a request, now or with the next wait. Fails with `WouldBlock` where the queue is
    /// full, and with `InvalidInput` where the request is longer than the buffers.
    pub fn submit(&mut self, request: SampleRequest) -> io::Result<()> {
        if request.len as usize > self.backend.buffers().slot_bytes() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let slot = self.free.pop().ok_or(io::ErrorKind::WouldBlock)?;
        self.slots[slot as usize] = RequestSlot::new(request);
        self.unsent.push_back(slot);
        self.send()
    }

    /// The next completion; `None` where nothing is in flight.
    pub fn next_completion(&mut self) -> io::Result<Option<Completion>> {
        let mut batch = Vec::new();
        while self.ready.is_empty() && self.in_flight() > 0 {
            self.wait(&mut batch)?;
            self.ready.extend(batch.drain(..));
        }
        Ok(self.ready.pop_front())
    }

    /// Waits for completions and puts those that are there into `completions`. None where nothing
    /// is in flight, where a transfer was short and goes on, or where the wait timed out.
    pub fn wait(&mut self, completions: &mut Vec<Completion>) -> io::Result<()> {
        completions.clear();
        self.send()?;
        if self.in_flight() == 0 {
            return Ok(());
        }
        self.backend.wait(WaitMode::Completion)?;
        let ended_ns = match self.ended_in_enqueue_ns.take() {
            Some(ended_ns) => ended_ns,
            None => self.clock.now(),
        };
        let completed_ns = self.exclude_interruptions(ended_ns);
        self.last_received_ns = completed_ns;
        let reaped = &mut self.reaped;
        self.backend
            .reap(&mut |slot, result| reaped.push((slot, result)));
        let mut last_moved = None;
        for (index, result) in self.reaped.drain(..) {
            let slot = &mut self.slots[index as usize];
            let request = slot.request;
            if result > 0 && slot.moved + (result as u32) < request.len {
                slot.moved += result as u32;
                self.unsent.push_front(index);
                continue;
            }
            self.free.push(index);
            if result > 0 {
                last_moved = Some(index);
            }
            completions.push(Completion {
                request,
                submitted_ns: slot.submitted_ns,
                completed_ns,
                result: match result {
                    0 if request.op.moves_data() && request.len > 0 => Err(END_OF_FILE),
                    0.. => Ok(request.len),
                    negative => Err(-negative),
                },
                interrupted: self
                    .resumed_ns
                    .is_some_and(|resumed_ns| slot.submitted_ns <= resumed_ns),
            });
        }
        if let Some(index) = last_moved {
            self.sample_content(index, completed_ns);
        }
        Ok(())
    }

    /// Hands the backend as many unsent requests as it takes.
    fn send(&mut self) -> io::Result<()> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        let Self {
            backend,
            clock,
            slots,
            unsent,
            stamp,
            write_buffer_offset,
            ended_in_enqueue_ns,
            ..
        } = self;
        backend.enqueue(&mut |buffers| {
            let index = unsent.pop_front()?;
            let slot = &mut slots[index as usize];
            let request = slot.request;
            let buffer = match request.op {
                Op::Write => index + *write_buffer_offset,
                _ => index,
            };
            if slot.moved == 0 {
                if request.op == Op::Write {
                    *stamp = stamp.wrapping_add(1);
                    buffers.stamp(buffer as usize, request.len as usize, *stamp);
                }
                slot.submitted_ns = clock.now();
            }
            Some(Request {
                slot: index,
                buffer,
                op: request.op,
                offset: request.offset + u64::from(slot.moved),
                len: request.len - slot.moved,
                skip: slot.moved,
            })
        })?;
        if backend.ends_in_enqueue() && ended_in_enqueue_ns.is_none() {
            *ended_in_enqueue_ns = Some(clock.now());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
