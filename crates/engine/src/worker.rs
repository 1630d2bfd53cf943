//! The hot loop: take the next steps, start them, wait, record what is done. One worker, one thread, one queue.
//! In the loop there is no allocation, no lock and no system call but the I/O and one reading of the clock per batch. Every 10 ms the worker rolls
//! over to a new cell, and only then looks at the stop flag and publishes its counts.

use crate::backend::{Backend, Op, Patience, Request};
use crate::buffers::Buffers;
use crate::clock::Clock;
use crate::pacer::Pacer;
use crate::pattern::{Direction, Pattern};
use crate::slots::{Slot, Slots, Stage};
use crate::tally::Tally;
use diskproof_model::measurement::{ByteCount, OpKind, OpMeasurement, SERIES_CELLS_MAX, SERIES_INTERVAL_NS, ZeroSample};
use diskproof_model::plan::SyncCall;
use diskproof_model::series::TimeSeries;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A wait shorter than this is polled, because a sleeping thread wakes up later than that.
const POLL_NS: u64 = 100_000;
/// An open-loop operation that starts this much after its time counts as missed; less is the batching of completions.
const LATE_NS: u64 = 1_000_000;
/// A target that fails this often without a success between is given up.
const FAILURES_MAX: u32 = 1000;

/// What follows each write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterWrite {
    /// Nothing: the write is done when it is done.
    Nothing,
    /// The page cache hands it to the device; the write is done only then.
    WriteBack,
    /// A sync; the two together are a commit.
    Sync(SyncCall),
    /// A sync after every n-th write.
    SyncEvery(u32, SyncCall),
}

/// When a worker starts, measures and ends; on its clock.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// End of the warm-up.
    pub measure_ns: u64,
    /// No request starts at or after this.
    pub end_ns: u64,
}

/// What a worker may use up.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    /// Operations.
    pub ops: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Makes requests out of steps.
#[derive(Debug)]
pub struct Feed {
    pattern: Pattern,
    slots: Slots,
    /// Follow-ups of requests whose slots are still taken: the rest of a short transfer, the sync after a write.
    again: Vec<Request>,
    allowance: Allowance,
    block_bytes: u64,
    ended: bool,
    pacer: Option<Pacer>,
    after_write: AfterWrite,
    writes_unsynced: u32,
    write_buffer_shift: u32,
    unique: u64,
    late: u64,
}

impl Feed {
    /// The steps of `pattern` through `depth` slots. `block_bytes` is the longest step; `unique` begins the numbers that make written blocks unique.
    pub fn new(pattern: Pattern, depth: u32, block_bytes: u32, after_write: AfterWrite, allowance: Allowance) -> Self {
        Self {
            pattern,
            slots: Slots::new(depth),
            again: Vec::with_capacity(depth as usize),
            allowance,
            block_bytes: u64::from(block_bytes),
            ended: false,
            pacer: None,
            after_write,
            writes_unsynced: 0,
            write_buffer_shift: 0,
            unique: 0,
            late: 0,
        }
    }

    /// Starts steps at the pacer's times.
    pub fn paced(mut self, pacer: Option<Pacer>) -> Self {
        self.pacer = pacer;
        self
    }

    /// Writes from other buffers than reads go to, so that what was read is never written; `unique` begins this worker's stamps.
    pub fn with_buffers(mut self, write_buffer_shift: u32, unique: u64) -> Self {
        self.write_buffer_shift = write_buffer_shift;
        self.unique = unique;
        self
    }

    #[inline(always)]
    fn next(&mut self, now: u64, buffers: &mut Buffers) -> Option<Request> {
        if let Some(request) = self.again.pop() {
            return Some(request);
        }
        let index = self.slots.peek()?;
        if self.ended {
            return None;
        }
        if let AfterWrite::SyncEvery(writes, call) = self.after_write
            && self.writes_unsynced >= writes
        {
            self.writes_unsynced = 0;
            let stage = Stage::Sync;
            self.slots.take(Slot { stage, start_ns: now, intended_ns: now, sync_start_ns: now, offset: 0, len: 0, moved: 0 });
            return Some(Request { slot: index, buffer: index, op: Op::Sync(call), offset: 0, len: 0, skip: 0 });
        }
        if self.allowance.ops == 0 || self.allowance.bytes < self.block_bytes {
            self.ended = true;
            return None;
        }
        let intended_ns = match &self.pacer {
            None => now,
            Some(pacer) => {
                let due = pacer.take_due(now)?;
                self.late += u64::from(now - due > LATE_NS);
                due
            }
        };
        let step = self.pattern.step();
        self.allowance.ops -= 1;
        self.allowance.bytes -= u64::from(step.len);
        let stage = Stage::Transfer(step.direction);
        self.slots.take(Slot { stage, start_ns: now, intended_ns, sync_start_ns: 0, offset: step.offset, len: step.len, moved: 0 });
        let (op, buffer) = match step.direction {
            Direction::Read => (Op::Read, index),
            Direction::Write => {
                let buffer = index + self.write_buffer_shift;
                self.unique = self.unique.wrapping_add(1);
                buffers.stamp(buffer as usize, step.len as usize, self.unique);
                (Op::Write, buffer)
            }
        };
        Some(Request { slot: index, buffer, op, offset: step.offset, len: step.len, skip: 0 })
    }

    fn patience(&self, now: u64) -> Patience {
        match &self.pacer {
            Some(pacer) if !self.ended && self.slots.peek().is_some() => match pacer.next_due_ns().saturating_sub(now) {
                0..POLL_NS => Patience::Poll,
                wait => Patience::AtMost(wait - POLL_NS / 2),
            },
            _ => Patience::Completion,
        }
    }
}

/// Whether a worker has more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A cell is over.
    Running,
    /// Everything is over, and nothing is in flight.
    Done,
}

/// Why a worker ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Its time was over.
    Time,
    /// It was told to.
    Told,
    /// Its operations or bytes were used up.
    Allowance,
    /// The target failed too often; the last errno.
    Errors(i32),
}

/// What a worker brings home.
#[derive(Debug)]
pub struct Yield {
    /// Per kind of operation.
    pub ops: BTreeMap<OpKind, OpMeasurement>,
    /// Bytes moved, warm-up included.
    pub asked: ByteCount,
    /// When it stopped starting requests.
    pub stop_ns: u64,
    /// When its last request was done.
    pub last_ns: u64,
    /// A look at what was read.
    pub zero_blocks: ZeroSample,
    /// Open-loop operations that started late.
    pub late: u64,
    /// Why it ended.
    pub ending: Ending,
}

/// A worker with its queue.
pub struct Worker<B, C> {
    backend: B,
    clock: C,
    feed: Feed,
    tally: Tally,
    schedule: Schedule,
    cell_end_ns: u64,
    stop: Arc<AtomicBool>,
    published: Arc<Mutex<TimeSeries>>,
    caching: Caching,
    zero_blocks: ZeroSample,
    ending: Option<(Ending, u64)>,
}

/// What a worker does about the page cache at the end of each cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Nothing: direct I/O, or a cache that may serve.
    LeftAlone,
    /// Drops what it holds of the target.
    Dropped,
}

impl<B: Backend, C: Clock> Worker<B, C> {
    /// A worker that has not begun.
    pub fn new(backend: B, clock: C, feed: Feed, schedule: Schedule, stop: Arc<AtomicBool>, published: Arc<Mutex<TimeSeries>>) -> Self {
        let intended = if feed.pacer.is_some() { crate::tally::Intended::Kept } else { crate::tally::Intended::SameAsStart };
        Self {
            backend,
            clock,
            tally: Tally::new(schedule.measure_ns, intended),
            feed,
            schedule,
            cell_end_ns: 0,
            stop,
            published,
            caching: Caching::LeftAlone,
            zero_blocks: ZeroSample::default(),
            ending: None,
        }
    }

    /// Treats the page cache so at the end of each cell.
    pub fn caching(mut self, caching: Caching) -> Self {
        self.caching = caching;
        self
    }

    /// Works until a cell is over, or everything is.
    pub fn advance(&mut self) -> io::Result<State> {
        let mut now = self.clock.now();
        loop {
            let feed = &mut self.feed;
            self.backend.enqueue(&mut |buffers| feed.next(now, buffers))?;
            if self.feed.slots.in_flight() == 0 {
                if self.feed.ended {
                    self.end(Ending::Allowance, now);
                    return Ok(State::Done);
                }
                // An open loop with nothing due: idle, but not past the end of the cell.
                let due = self.feed.pacer.as_ref().map_or(now, Pacer::next_due_ns);
                self.clock.wait_until(due.min(self.cell_end_ns.max(now)));
                now = self.clock.now();
            } else {
                let patience = self.feed.patience(now);
                self.backend.wait(patience)?;
                now = self.clock.now();
            }
            let rolled = now >= self.cell_end_ns;
            if rolled {
                self.roll(now);
            }
            let (feed, tally) = (&mut self.feed, &mut self.tally);
            self.backend.reap(&mut |slot, result| tally.complete(feed, slot, result, now));
            if rolled {
                self.look_around(now);
                return Ok(State::Running);
            }
        }
    }

    /// Ends a cell: what was counted belongs to the time before `now`.
    #[cold]
    fn roll(&mut self, now: u64) {
        self.tally.roll(now, &self.published);
        let next = if now < self.schedule.measure_ns {
            (now + SERIES_INTERVAL_NS).min(self.schedule.measure_ns)
        } else {
            let cells = (now - self.schedule.measure_ns) / SERIES_INTERVAL_NS + 1;
            self.schedule.measure_ns + cells * SERIES_INTERVAL_NS
        };
        self.cell_end_ns = if self.ending.is_none() { next.min(self.schedule.end_ns.max(now + 1)) } else { next };
        if now >= self.schedule.end_ns {
            self.end(Ending::Time, now);
        } else if self.stop.load(Ordering::Relaxed) {
            self.end(Ending::Told, now);
        }
    }

    /// After the completions of the last batch: the slots that they freed are not yet in use again.
    #[cold]
    fn look_around(&mut self, now: u64) {
        if let Some((slot, len)) = self.tally.take_last_read()
            && self.feed.slots.peek() == Some(slot)
        {
            self.zero_blocks.sampled += 1;
            self.zero_blocks.zero += u64::from(self.backend.buffers().is_zero(slot as usize, len as usize));
        }
        if let Some(errno) = self.tally.hopeless(FAILURES_MAX) {
            self.end(Ending::Errors(errno), now);
        }
        if self.caching == Caching::Dropped {
            self.backend.drop_cache();
        }
    }

    fn end(&mut self, ending: Ending, now: u64) {
        self.feed.ended = true;
        if self.ending.is_none() {
            self.ending = Some((ending, now));
            // What is drained after an end that cuts the flow short still counts, but not towards the rate.
            if ending != Ending::Allowance {
                self.tally.close_series(now);
            }
        }
    }

    /// What was measured. Only after [`State::Done`].
    pub fn finish(mut self) -> Yield {
        let now = self.clock.now();
        let (ending, stop_ns) = self.ending.unwrap_or((Ending::Told, now));
        self.tally.roll(now, &self.published);
        let last_ns = self.tally.last_ns().max(self.schedule.measure_ns);
        let stop_ns = stop_ns.max(self.schedule.measure_ns);
        let (ops, asked) = self.tally.finish();
        Yield { ops, asked, stop_ns, last_ns, zero_blocks: self.zero_blocks, late: self.feed.late, ending }
    }
}

impl Tally {
    /// Books one completion, and starts what follows it in the same slot.
    #[inline(always)]
    fn complete(&mut self, feed: &mut Feed, index: u32, result: i32, now: u64) {
        let slot = feed.slots.get(index);
        if result < 0 {
            let kind = kind_of(slot.stage);
            feed.slots.free(index);
            self.fail(kind, -result, now);
            return;
        }
        match slot.stage {
            Stage::Transfer(direction) => {
                let moved = result as u32;
                if slot.moved + moved < slot.len {
                    self.shorten(feed, index, moved, now);
                    return;
                }
                if direction == Direction::Write && feed.after_write != AfterWrite::Nothing {
                    self.follow_write(feed, index, now);
                    return;
                }
                self.record(kind_of(slot.stage), u64::from(slot.len), now - slot.start_ns, slot.start_ns - slot.intended_ns, now);
                if direction == Direction::Read {
                    self.note_read(index, slot.len);
                }
            }
            Stage::WriteBack => {
                self.record(OpKind::Write, u64::from(slot.len), now - slot.start_ns, slot.start_ns - slot.intended_ns, now);
            }
            Stage::Sync => {
                self.record(OpKind::Sync, 0, now - slot.sync_start_ns, 0, now);
                if slot.len > 0 {
                    let waited = slot.start_ns - slot.intended_ns;
                    self.record(OpKind::Commit, u64::from(slot.len), now - slot.start_ns, waited, now);
                }
            }
        }
        feed.slots.free(index);
    }

    /// A transfer moved less than asked: the rest follows in the same slot, with the same start.
    #[cold]
    fn shorten(&mut self, feed: &mut Feed, index: u32, moved: u32, now: u64) {
        let shift = feed.write_buffer_shift;
        let slot = feed.slots.get(index);
        let kind = kind_of(slot.stage);
        if moved == 0 {
            feed.slots.free(index);
            self.fail(kind, crate::tally::END_OF_FILE, now);
            return;
        }
        slot.moved += moved;
        let (op, buffer) = if kind == OpKind::Read { (Op::Read, index) } else { (Op::Write, index + shift) };
        let rest =
            Request { slot: index, buffer, op, offset: slot.offset + u64::from(slot.moved), len: slot.len - slot.moved, skip: slot.moved };
        self.count_short(kind);
        feed.again.push(rest);
    }

    /// A write is done: what makes it reach the device, or durable, follows.
    #[inline(always)]
    fn follow_write(&mut self, feed: &mut Feed, index: u32, now: u64) {
        let slot = feed.slots.get(index);
        let op = match feed.after_write {
            AfterWrite::WriteBack => {
                slot.stage = Stage::WriteBack;
                Op::WriteBack
            }
            AfterWrite::Sync(call) => {
                self.record(OpKind::Write, u64::from(slot.len), now - slot.start_ns, slot.start_ns - slot.intended_ns, now);
                slot.stage = Stage::Sync;
                slot.sync_start_ns = now;
                Op::Sync(call)
            }
            AfterWrite::Nothing | AfterWrite::SyncEvery(..) => {
                self.record(OpKind::Write, u64::from(slot.len), now - slot.start_ns, slot.start_ns - slot.intended_ns, now);
                feed.writes_unsynced += 1;
                feed.slots.free(index);
                return;
            }
        };
        let (offset, len) = (slot.offset, slot.len);
        feed.again.push(Request { slot: index, buffer: index, op, offset, len, skip: 0 });
    }
}

fn kind_of(stage: Stage) -> OpKind {
    match stage {
        Stage::Transfer(Direction::Read) => OpKind::Read,
        Stage::Transfer(Direction::Write) | Stage::WriteBack => OpKind::Write,
        Stage::Sync => OpKind::Sync,
    }
}

/// Adds a cell to the series that the controller looks at.
pub fn publish(published: &Mutex<TimeSeries>, at_ns: u64, cell: &diskproof_model::series::Cell) {
    published.lock().unwrap_or_else(PoisonError::into_inner).add(at_ns, cell, SERIES_CELLS_MAX);
}
