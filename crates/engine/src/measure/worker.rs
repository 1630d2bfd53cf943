//! The hot loop: take the next steps, start them, wait, record what is done. One worker, one
//! thread, one queue. In the loop there is no allocation, no lock and no system call but the I/O
//! and one reading of the clock per batch. Every 10 ms the worker rolls over to a new cell, and
//! only then looks at the stop flag and publishes its counts.

use crate::io::clock::{Clock, ProcessorWait};
use crate::io::{Backend, Op, Patience, Request};
use crate::load::generator::{AfterWrite, Fate, Feed};
use crate::load::pattern::Direction;
use crate::load::slots::{Slot, Stage, Timing, kind_of};
use crate::measure::counters::Tally;
use crate::measure::snapshot::{SHOW_NS, SharedInterim, look_into};
use diskproof_model::measurement::{
    ByteCount, OpKind, OpMeasurement, SERIES_CELLS_MAX, SERIES_INTERVAL_NS, ZeroSample,
};
use diskproof_model::series::TimeSeries;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A target that fails this often without a success between is given up.
const FAILURES_MAX: u32 = 1000;

/// When a worker starts, measures and ends; on its clock.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// End of the warm-up.
    pub measure_ns: u64,
    /// No request starts at or after this.
    pub end_ns: u64,
}

/// Whether a worker has more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A cell is over.
    Running,
    /// Everything is over, and nothing is in flight.
    Done,
}

/// How plain reads stopped, and when.
enum Readings {
    /// After a wait; what that brought is not reaped yet, where the cell is over.
    Waited(u64),
    /// There is nothing for them to do, or their portion is used up.
    Idle(u64),
}
use Readings::{Idle, Waited};

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
    /// Up to when it measured: until it started no more requests.
    pub stop_ns: u64,
    /// Requests in flight, summed over the measured time: their number times nanoseconds.
    pub busy_ns: u128,
    /// When its last request was done.
    pub last_ns: u64,
    /// A look at what was read.
    pub zero_blocks: ZeroSample,
    /// Open-loop operations that started late.
    pub late: u64,
    /// [`Backend::done_before_wait`].
    pub done_before_wait: Option<f64>,
    /// From the end of the warm-up to [`Yield::stop_ns`].
    pub processor_wait: ProcessorWait,
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
    last_now_ns: u64,
    stop: Arc<AtomicBool>,
    published: Arc<Mutex<TimeSeries>>,
    interim: SharedInterim,
    caching: Caching,
    zero_blocks: ZeroSample,
    /// How long the requests in flight at the end of the warm-up had already taken.
    warm_ns: u64,
    ending: Option<(Ending, u64)>,
    /// [`Yield::busy_ns`], once that is known.
    busy_ns: Option<u128>,
    /// [`Clock::processor_wait`]: until the warm-up was over, and from there to the end.
    processor_wait: (ProcessorWait, ProcessorWait),
}

/// What a worker does about the page cache at the end of each cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Nothing: direct I/O, or a cache that may serve.
    LeftAlone,
    /// Drops what was read and written.
    Dropped,
}

impl<B: Backend, C: Clock> Worker<B, C> {
    /// A worker that has not begun.
    pub fn new(
        backend: B,
        clock: C,
        feed: Feed,
        schedule: Schedule,
        stop: Arc<AtomicBool>,
        published: Arc<Mutex<TimeSeries>>,
    ) -> Self {
        let intended = if feed.is_paced() {
            crate::measure::counters::Intended::Kept
        } else {
            crate::measure::counters::Intended::SameAsStart
        };
        Self {
            backend,
            clock,
            tally: Tally::new(schedule.measure_ns, intended),
            feed,
            schedule,
            cell_end_ns: 0,
            last_now_ns: 0,
            stop,
            published,
            interim: SharedInterim::default(),
            caching: Caching::LeftAlone,
            zero_blocks: ZeroSample::default(),
            warm_ns: 0,
            ending: None,
            busy_ns: None,
            processor_wait: Default::default(),
        }
    }

    /// Treats the page cache so at the end of each cell.
    pub fn caching(mut self, caching: Caching) -> Self {
        self.caching = caching;
        self
    }

    /// Shows what it has measured so far there.
    pub fn showing(mut self, interim: SharedInterim) -> Self {
        self.interim = interim;
        self
    }

    /// Works until a cell is over, or everything is.
    pub fn advance(&mut self) -> io::Result<State> {
        let mut now = self.clock.now().max(self.last_now_ns);
        if now >= self.cell_end_ns {
            now = self.set_right(now);
        }
        loop {
            now = match self.read_on(now)? {
                Waited(now) => now,
                Idle(now) => match self.take_turn(now)? {
                    Some(now) => now,
                    None => return Ok(State::Done),
                },
            };
            let rolled = now >= self.cell_end_ns;
            if rolled {
                now = self.set_right(now);
                self.roll(now);
            }
            let (feed, tally) = (&mut self.feed, &mut self.tally);
            self.backend
                .reap(&mut |slot, result| tally.complete(feed, slot, result, now));
            if rolled {
                self.look_around(now);
                self.last_now_ns = now;
                return Ok(State::Running);
            }
        }
    }

    /// Plain reads, until the cell is over or one of them did not do what it should: the loop of
    /// [`Worker::advance`] without everything that they do not need. A function of its own,
    /// because after each system call its code comes from the CPU's slower caches: the shorter, the
    /// better.
    #[inline(never)]
    fn read_on(&mut self, now: u64) -> io::Result<Readings> {
        let Some(mut burst) = self.feed.burst(now) else {
            return Ok(Idle(now));
        };
        let (tally, mut odd) = (&mut self.tally, Vec::new());
        loop {
            self.backend.enqueue(&mut |_| burst.next())?;
            if burst.is_short() {
                let now = burst.now;
                burst.end();
                return Ok(Idle(now));
            }
            self.backend.wait(Patience::Completion)?;
            burst.now = self.clock.now().max(burst.now);
            if burst.now >= self.cell_end_ns {
                break;
            }
            let (len, now) = (burst.len(), burst.now);
            let (mut start_ns, mut reads) = (now, 0);
            self.backend.reap(&mut |slot, result| {
                if result != len as i32 {
                    odd.push((slot, result));
                    return;
                }
                let began_ns = burst.free(slot);
                if began_ns != start_ns {
                    tally.record_reads(len, now - start_ns, reads, now);
                    (start_ns, reads) = (began_ns, 0);
                }
                reads += 1;
            });
            tally.record_reads(len, now - start_ns, reads, now);
            if !odd.is_empty() {
                break;
            }
        }
        let now = burst.now;
        burst.end();
        odd.into_iter()
            .for_each(|(slot, result)| tally.complete(&mut self.feed, slot, result, now));
        Ok(Waited(now))
    }

    /// Starts what may start, and waits for completions or for the next start. The time then;
    /// `None` when everything is over.
    #[inline(always)]
    fn take_turn(&mut self, now: u64) -> io::Result<Option<u64>> {
        let feed = &mut self.feed;
        self.backend
            .enqueue(&mut |buffers| feed.next(now, buffers))?;
        if self.feed.slots.in_flight() == 0 {
            if self.feed.ended() {
                self.end(Ending::Allowance, now);
                return Ok(None);
            }
            // An open loop with nothing due: idle, but not past the end of the cell.
            let due = self.feed.reserve().unwrap_or(now);
            self.clock.wait_until(due.min(self.cell_end_ns.max(now)));
        } else {
            let patience = if self.feed.has_extras() {
                self.feed.patience(now)
            } else {
                Patience::Completion
            };
            self.backend.wait(patience)?;
        }
        // An anchored clock may step back by nanoseconds; time does not.
        Ok(Some(self.clock.now().max(now)))
    }

    /// The time `now`, which lies beyond the cell, held against the clock's reference: another one
    /// where the clock has jumped, but none before the start of what is in flight.
    #[cold]
    fn set_right(&mut self, now: u64) -> u64 {
        match self.clock.anchor(now) {
            right if right == now => now,
            right => right
                .max(self.last_now_ns)
                .max(self.feed.slots.last_began_ns()),
        }
    }

    /// Ends a cell: what was counted belongs to the time before `now`.
    #[cold]
    fn roll(&mut self, now: u64) {
        let was_measuring = self.tally.is_measuring();
        self.tally
            .roll(now, &self.published, &mut look_into(&self.interim));
        if !was_measuring && self.tally.is_measuring() {
            self.warm_ns = self.feed.slots.in_flight_ns(self.schedule.measure_ns);
            self.processor_wait.0 = self.clock.processor_wait();
        }
        let next = if now < self.schedule.measure_ns {
            (now + SERIES_INTERVAL_NS).min(self.schedule.measure_ns)
        } else {
            let cells = (now - self.schedule.measure_ns) / SERIES_INTERVAL_NS + 1;
            self.schedule.measure_ns + cells * SERIES_INTERVAL_NS
        };
        self.cell_end_ns = if self.ending.is_none() {
            next.min(self.schedule.end_ns.max(now + 1))
        } else {
            next
        };
        if now >= self.schedule.end_ns {
            // Not now: that is when the next completion woke the worker up, which does not count
            // any more.
            self.end(Ending::Time, self.schedule.end_ns);
        } else if self.stop.load(Ordering::Relaxed) {
            self.end(Ending::Told, now);
        }
        self.show(now);
    }

    /// For whoever would have to do without this worker, should the next request never be answered.
    #[cold]
    fn show(&self, now: u64) {
        let mut interim = look_into(&self.interim);
        interim.rolled_ns = now;
        interim.last_ns = self.tally.last_ns();
        interim.asked = self.tally.asked();
        if self.tally.is_measuring() {
            interim.busy_ns = self
                .tally
                .busy_ns()
                .saturating_sub(u128::from(self.warm_ns));
        }
        if interim.shown_ns.is_some_and(|shown| now < shown + SHOW_NS) {
            return;
        }
        interim.shown_ns = self.tally.is_measuring().then_some(now);
        interim.in_flight = self.feed.slots.all_in_flight();
        interim.zero_blocks = self.zero_blocks;
        interim.late = self.feed.late();
        interim.done_before_wait = self.backend.done_before_wait();
        interim.processor_wait = match self.ending {
            None if self.tally.is_measuring() => {
                self.clock.processor_wait().since(self.processor_wait.0)
            }
            _ => self.processor_wait.1,
        };
        self.tally.show(&mut interim);
    }

    /// After the completions of the last batch: the slots that they freed are not yet in use again.
    #[cold]
    fn look_around(&mut self, now: u64) {
        if let Some(slot) = self.tally.take_last_read()
            && self.feed.slots.peek() == Some(slot)
        {
            let len = self.feed.slots.get(slot).len;
            self.zero_blocks.sampled += 1;
            self.zero_blocks.zero +=
                u64::from(self.backend.buffers().is_zero(slot as usize, len as usize));
        }
        if let Some(errno) = self.tally.hopeless(FAILURES_MAX) {
            self.end(Ending::Errors(errno), now);
        }
        if self.caching == Caching::Dropped {
            match self.feed.left_behind() {
                Some(pieces) => pieces
                    .iter()
                    .filter(|piece| piece.length > 0)
                    .for_each(|piece| self.backend.drop_cache(Some(*piece))),
                None => self.backend.drop_cache(None),
            }
        }
    }

    fn end(&mut self, ending: Ending, at_ns: u64) {
        self.feed.end();
        if self.ending.is_none() {
            self.ending = Some((ending, at_ns));
            if self.tally.is_measuring() {
                self.processor_wait.1 = self.clock.processor_wait().since(self.processor_wait.0);
            }
            // What is drained after an end that cuts the flow short still counts, but not towards
            // the rate.
            if ending != Ending::Allowance {
                self.busy_ns = Some(self.busy_until(at_ns));
                self.tally
                    .close_series(at_ns, &mut look_into(&self.interim));
            }
        }
    }

    /// Requests in flight, summed from the end of the warm-up to `at_ns`: what the latencies say,
    /// less what of them lies before, and what of those in flight lies within.
    fn busy_until(&self, at_ns: u64) -> u128 {
        if !self.tally.is_measuring() {
            return 0;
        }
        (self.tally.busy_ns() + u128::from(self.feed.slots.in_flight_ns(at_ns)))
            .saturating_sub(u128::from(self.warm_ns))
    }

    /// What was measured. Only after [`State::Done`].
    pub fn finish(mut self) -> Yield {
        let now = self.clock.now().max(self.last_now_ns);
        let (ending, stop_ns) = self.ending.unwrap_or((Ending::Told, now));
        let mut interim = look_into(&self.interim);
        self.tally.roll(now, &self.published, &mut interim);
        let last_ns = self.tally.last_ns().max(self.schedule.measure_ns);
        let stop_ns = stop_ns.max(self.schedule.measure_ns);
        let late = self.feed.late();
        let busy_ns = self.busy_ns.unwrap_or_else(|| self.busy_until(last_ns));
        let (ops, asked) = self.tally.finish(ending, &mut interim);
        drop(interim);
        let done_before_wait = self.backend.done_before_wait();
        let (zero_blocks, processor_wait) = (self.zero_blocks, self.processor_wait.1);
        Yield {
            ops,
            asked,
            stop_ns,
            busy_ns,
            last_ns,
            zero_blocks,
            late,
            done_before_wait,
            processor_wait,
            ending,
        }
    }
}

impl Tally {
    /// Books one completion, and starts what follows it in the same slot.
    #[inline(always)]
    fn complete(&mut self, feed: &mut Feed, index: u32, result: i32, now: u64) {
        let slot = feed.slots.get(index);
        let (stage, len, latency_ns) = (slot.stage, slot.len, now - slot.start_ns);
        // What only follows a write has nothing left to move, and answers with 0.
        if result != slot.left as i32 {
            self.fall_short(feed, index, result, now);
            return;
        }
        match stage {
            Stage::Transfer(Direction::Read) => {
                self.record(OpKind::Read, len, latency_ns, now);
                self.note_read(index);
            }
            Stage::Transfer(Direction::Write) if feed.after_write == AfterWrite::Nothing => {
                self.record(OpKind::Write, len, latency_ns, now)
            }
            _ => {
                self.complete_durable(feed, index, now);
                return;
            }
        }
        if feed.has_extras() {
            let offset = feed.slots.get(index).offset;
            self.record_waited(
                kind_of(stage),
                latency_ns,
                feed.slots.timing(index).waited_ns,
            );
            feed.book(index, offset, Fate::Done);
            feed.give_back(len);
        }
        feed.slots.free(index);
    }

    /// A write that is followed by something, or what followed it.
    fn complete_durable(&mut self, feed: &mut Feed, index: u32, now: u64) {
        let Slot {
            start_ns,
            offset,
            len,
            stage,
            ..
        } = *feed.slots.get(index);
        let Timing {
            waited_ns,
            sync_start_ns,
            ..
        } = *feed.slots.timing(index);
        let follow = match (stage, feed.after_write) {
            (Stage::Transfer(_), AfterWrite::WriteBack) => Some((Stage::WriteBack, Op::WriteBack)),
            (Stage::Transfer(_), after) => {
                self.record(OpKind::Write, len, now - start_ns, now);
                self.record_waited(OpKind::Write, now - start_ns, waited_ns);
                feed.count_unsynced();
                if let AfterWrite::Sync(call) = after {
                    Some((Stage::Sync, Op::Sync(call)))
                } else {
                    None
                }
            }
            (Stage::WriteBack, _) => {
                self.record(OpKind::Write, len, now - start_ns, now);
                self.record_waited(OpKind::Write, now - start_ns, waited_ns);
                None
            }
            (Stage::Sync, _) => {
                self.record(OpKind::Sync, 0, now - sync_start_ns, now);
                if len > 0 {
                    self.record(OpKind::Commit, len, now - start_ns, now);
                    self.record_waited(OpKind::Commit, now - start_ns, waited_ns);
                }
                None
            }
        };
        let Some((stage, op)) = follow else {
            if len > 0 {
                feed.book(index, offset, Fate::Done);
                feed.give_back(len);
            }
            feed.slots.free(index);
            return;
        };
        let slot = feed.slots.get(index);
        (slot.stage, slot.left) = (stage, 0);
        feed.slots.timing(index).sync_start_ns = now;
        feed.again.push(Request {
            slot: index,
            buffer: index,
            op,
            offset,
            len,
            skip: 0,
        });
    }

    /// An error, the end of the file, or a transfer that moved less than asked: then the rest
    /// follows in the same slot, with the same start.
    #[cold]
    fn fall_short(&mut self, feed: &mut Feed, index: u32, result: i32, now: u64) {
        let shift = feed.write_buffer_shift;
        let slot = feed.slots.get(index);
        let kind = kind_of(slot.stage);
        if result <= 0 {
            let errno = if result == 0 {
                crate::measure::counters::END_OF_FILE
            } else {
                -result
            };
            let Slot {
                len,
                offset,
                start_ns,
                stage,
                ..
            } = *slot;
            let began_ns = if stage == Stage::Sync {
                feed.slots.timing(index).sync_start_ns
            } else {
                start_ns
            };
            feed.book(index, offset, Fate::Failed);
            if len > 0 {
                feed.give_back(len);
            }
            feed.slots.free(index);
            self.fail(kind, errno, now - began_ns, now);
            return;
        }
        slot.left = slot.left.saturating_sub(result as u32);
        let done = slot.len - slot.left;
        let (op, buffer) = if kind == OpKind::Read {
            (Op::Read, index)
        } else {
            (Op::Write, index + shift)
        };
        let rest = Request {
            slot: index,
            buffer,
            op,
            offset: slot.offset + u64::from(done),
            len: slot.left,
            skip: done,
        };
        self.count_short(kind);
        feed.again.push(rest);
    }
}

/// Adds a cell to the series that the controller looks at.
pub fn publish(published: &Mutex<TimeSeries>, at_ns: u64, cell: &diskproof_model::series::Cell) {
    published
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .add(at_ns, cell, SERIES_CELLS_MAX);
}

#[cfg(test)]
mod tests;
