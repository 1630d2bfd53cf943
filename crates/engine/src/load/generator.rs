//! What a worker starts next: steps of the pattern, follow-ups of what is done, at the pacer's
//! times, within the allowance. Knows slots and requests; nothing of backends, clocks or counts.

use crate::io::Extent;
use crate::io::buffers::Buffers;
use crate::io::{Op, Patience, Request};
use crate::load::budget::{Allowance, Pot};
use crate::load::pacer::Pacer;
use crate::load::pattern::{Direction, Pattern, Plain, Step};
use crate::load::slots::{Slot, Slots, Stage, Timing};
use crate::load::write_journal::Ledger;
use diskproof_model::plan::SyncCall;
use std::sync::Arc;

/// A wait shorter than this is polled, because a sleeping thread wakes up later than that.
const POLL_NS: u64 = 100_000;
/// An open-loop operation that starts this much after its time counts as missed; less is the
/// batching of completions.
pub const LATE_NS: u64 = 1_000_000;

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

/// Makes requests out of steps.
#[derive(Debug)]
pub struct Feed {
    /// Steps that may still start before the next portion.
    left: u64,
    /// Where portions come from; `None` once the worker has ended.
    allowance: Option<Allowance>,
    /// The requests in flight.
    pub slots: Slots,
    pattern: Pattern,
    /// Follow-ups of requests whose slots are still taken: the rest of a short transfer, the sync
    /// after a write.
    pub again: Vec<Request>,
    /// Added to a slot's number to get the buffer of its writes.
    pub write_buffer_shift: u32,
    unique: u64,
    /// What follows each write.
    pub after_write: AfterWrite,
    extras: Option<Box<Extras>>,
}

/// What most workloads lack, out of the way of those.
#[derive(Debug)]
struct Extras {
    pacer: Option<Pacer>,
    measure_ns: u64,
    late: u64,
    /// The start that this worker has taken from the schedule and not made yet: it waits for its
    /// time, or for a block that nobody is writing.
    owed_ns: Option<u64>,
    /// Sync after so many writes.
    sync_every: Option<(u32, SyncCall)>,
    writes_unsynced: u32,
    /// Bytes left to all workers, where blocks differ in length, and the longest block.
    bytes_left: Option<(Arc<Pot>, u64)>,
    /// Who wrote what where, in verified workloads.
    ledger: Option<Arc<Ledger>>,
}

impl Extras {
    const NONE: Self = Self {
        pacer: None,
        measure_ns: 0,
        late: 0,
        owed_ns: None,
        sync_every: None,
        writes_unsynced: 0,
        bytes_left: None,
        ledger: None,
    };
}

/// How often a step is drawn anew because its block is being written, before the worker waits for a
/// completion instead.
const CLAIMS_MAX: u32 = 64;

impl Feed {
    /// The steps of `pattern` through `depth` slots.
    pub fn new(
        pattern: Pattern,
        depth: u32,
        after_write: AfterWrite,
        allowance: Allowance,
    ) -> Self {
        let bytes_left = allowance.bytes.clone();
        let sync_every = if let AfterWrite::SyncEvery(writes, call) = after_write {
            Some((writes, call))
        } else {
            None
        };
        let extras = (bytes_left.is_some() || sync_every.is_some()).then(|| {
            Box::new(Extras {
                sync_every,
                bytes_left,
                ..Extras::NONE
            })
        });
        Self {
            left: allowance.take_portion(),
            allowance: Some(allowance),
            slots: Slots::new(depth),
            pattern,
            again: Vec::with_capacity(depth as usize),
            write_buffer_shift: 0,
            unique: 0,
            after_write,
            extras,
        }
    }

    /// Starts steps at the pacer's times; late ones are counted from `measure_ns` on.
    pub fn paced(mut self, pacer: Option<Pacer>, measure_ns: u64) -> Self {
        if pacer.is_some() {
            let extras = self.extras.get_or_insert_with(|| Box::new(Extras::NONE));
            (extras.pacer, extras.measure_ns) = (pacer, measure_ns);
        }
        self
    }

    /// Signs every block written, and books it.
    pub fn verified(mut self, ledger: Option<Arc<Ledger>>) -> Self {
        if ledger.is_some() {
            self.extras
                .get_or_insert_with(|| Box::new(Extras::NONE))
                .ledger = ledger;
        }
        self
    }

    /// Writes from other buffers than reads go to, so that what was read is never written; `unique`
    /// begins this worker's stamps.
    pub fn with_buffers(mut self, write_buffer_shift: u32, unique: u64) -> Self {
        self.write_buffer_shift = write_buffer_shift;
        self.unique = unique;
        self
    }

    /// Takes no steps together, so that a test can hold the loop of plain reads against the general
    /// one.
    #[cfg(test)]
    pub fn one_by_one(mut self) -> Self {
        self.extras.get_or_insert_with(|| Box::new(Extras::NONE));
        self
    }

    /// Whether the workload has anything beyond plain steps.
    #[inline(always)]
    pub fn has_extras(&self) -> bool {
        self.extras.is_some()
    }

    /// The same requests as by [`Feed::next`], where they are plain reads: what these need is held
    /// apart meanwhile, so that the compiler keeps it in registers, which saves a third of the
    /// loop's own time. `None` for anything else, and where something must be done again first.
    #[inline(always)]
    pub fn burst(&mut self, now: u64) -> Option<Burst<'_>> {
        let plain = self
            .pattern
            .plain()
            .filter(|_| self.extras.is_none() && self.again.is_empty())?;
        let (slots, free, free_to) = self.slots.parts();
        let free_len = *free_to;
        Some(Burst {
            now,
            plain,
            left: self.left,
            left_to: &mut self.left,
            pattern: &mut self.pattern,
            slots,
            free,
            free_len,
            free_to,
        })
    }

    /// [`Pattern::left_behind`].
    pub fn left_behind(&mut self) -> Option<[Extent; 2]> {
        self.pattern.left_behind()
    }

    /// Open-loop operations that started late.
    pub fn late(&self) -> u64 {
        self.extras.as_ref().map_or(0, |extras| extras.late)
    }

    /// Whether starts follow a schedule.
    pub fn is_paced(&self) -> bool {
        self.extras
            .as_ref()
            .is_some_and(|extras| extras.pacer.is_some())
    }

    /// When a worker with nothing in flight starts next. It takes that start from the schedule now:
    /// idle workers that all waited for the same one would wake up together, and all but one
    /// for nothing.
    pub fn reserve(&mut self) -> Option<u64> {
        let extras = self.extras.as_mut()?;
        let pacer = extras.pacer.as_ref()?;
        Some(*extras.owed_ns.get_or_insert_with(|| pacer.take_next()))
    }

    /// Whether no more steps start. Only after [`Feed::next`] had none with a slot free: before
    /// that there may be another portion.
    pub fn ended(&self) -> bool {
        self.left == 0
    }

    /// Starts no more steps. What is left of a portion is not handed on: a worker ends before its
    /// allowance only where all do, or where the target fails.
    pub fn end(&mut self) {
        (self.left, self.allowance) = (0, None);
    }

    /// Takes the next portion; whether there was one.
    #[cold]
    fn refill(&mut self) -> bool {
        self.left = self.allowance.as_ref().map_or(0, Allowance::take_portion);
        self.left > 0
    }

    /// The next request, if one may start at `now` and a slot is free.
    #[inline(always)]
    pub fn next(&mut self, now: u64, buffers: &mut Buffers) -> Option<Request> {
        if !self.again.is_empty() {
            return self.again.pop();
        }
        let index = self.slots.peek()?;
        if self.left == 0 && !self.refill() {
            return None;
        }
        if self.extras.is_some() {
            match self.consult(now, index) {
                Consent::Step => {}
                Consent::Instead(request) => return Some(request),
                Consent::NotNow => return None,
            }
        }
        let step = self.claim_step(index)?;
        self.left -= 1;
        if self.extras.is_some() {
            self.settle(now);
        }
        let stage = Stage::Transfer(step.direction);
        self.slots.take(Slot {
            start_ns: now,
            offset: step.offset,
            len: step.len,
            left: step.len,
            stage,
        });
        let (op, buffer) = match step.direction {
            Direction::Read => (Op::Read, index),
            Direction::Write => {
                let buffer = index + self.write_buffer_shift;
                self.unique = self.unique.wrapping_add(1);
                buffers.stamp(buffer as usize, step.len as usize, self.unique);
                if self.extras.is_some() {
                    self.sign(
                        buffers.bytes_mut(buffer as usize, step.len as usize),
                        step.offset,
                        index,
                    );
                }
                (Op::Write, buffer)
            }
        };
        Some(Request {
            slot: index,
            buffer,
            op,
            offset: step.offset,
            len: step.len,
            skip: 0,
        })
    }

    /// The next step; in verified workloads one whose block nobody else is writing.
    #[inline(always)]
    fn claim_step(&mut self, index: u32) -> Option<Step> {
        let step = self.pattern.step();
        match &self.extras {
            Some(extras) if extras.ledger.is_some() => self.claim(step, index),
            _ => Some(step),
        }
    }

    fn claim(&mut self, mut step: Step, index: u32) -> Option<Step> {
        let ledger = self.extras.as_ref()?.ledger.clone()?;
        for _ in 0..CLAIMS_MAX {
            if step.direction == Direction::Read {
                self.slots.timing(index).generation = 0;
                return Some(step);
            }
            if let Some(generation) = ledger.claim(step.offset) {
                self.slots.timing(index).generation = generation;
                return Some(step);
            }
            step = self.pattern.step();
        }
        None
    }

    fn sign(&mut self, block: &mut [u8], offset: u64, index: u32) {
        let generation = self.slots.timing(index).generation;
        if let Some(ledger) = self
            .extras
            .as_ref()
            .and_then(|extras| extras.ledger.as_ref())
        {
            ledger.sign(block, offset, generation);
        }
    }

    /// A write to a verified block is done, or has failed.
    pub fn book(&mut self, index: u32, offset: u64, fate: Fate) {
        let generation = self.slots.timing(index).generation;
        if let Some(ledger) = self
            .extras
            .as_ref()
            .and_then(|extras| extras.ledger.as_ref())
            && generation > 0
        {
            match fate {
                Fate::Done => ledger.confirm(offset, generation),
                Fate::Failed => ledger.spoil(offset),
            }
            self.slots.timing(index).generation = 0;
        }
    }

    /// What the extras say to a step in slot `index`.
    fn consult(&mut self, now: u64, index: u32) -> Consent {
        let Some(extras) = &mut self.extras else {
            return Consent::Step;
        };
        if let Some((writes, call)) = extras.sync_every
            && extras.writes_unsynced >= writes
        {
            extras.writes_unsynced = 0;
            self.slots.take(Slot {
                start_ns: now,
                offset: 0,
                len: 0,
                left: 0,
                stage: Stage::Sync,
            });
            *self.slots.timing(index) = Timing {
                waited_ns: 0,
                sync_start_ns: now,
                generation: 0,
            };
            return Consent::Instead(Request {
                slot: index,
                buffer: index,
                op: Op::Sync(call),
                offset: 0,
                len: 0,
                skip: 0,
            });
        }
        // The step may be shorter: what it leaves over is given back when it is done.
        if let Some((bytes, longest)) = &extras.bytes_left
            && !bytes.take(*longest)
        {
            if self.slots.in_flight() == 0 {
                self.end();
            }
            return Consent::NotNow;
        }
        if let Some(pacer) = &extras.pacer {
            let Some(due) = extras
                .owed_ns
                .or_else(|| pacer.take_due(now))
                .filter(|due| *due <= now)
            else {
                extras
                    .bytes_left
                    .iter()
                    .for_each(|(bytes, longest)| bytes.give_back(*longest));
                return Consent::NotNow;
            };
            extras.owed_ns = Some(due);
            self.slots.timing(index).waited_ns = now - due;
        }
        Consent::Step
    }

    /// The step that consent was given to has begun.
    fn settle(&mut self, now: u64) {
        if let Some(extras) = &mut self.extras
            && let Some(due) = extras.owed_ns.take()
        {
            // Late by the backlog of the warm-up is late all the same.
            extras.late += u64::from(now - due > LATE_NS && now >= extras.measure_ns);
        }
    }

    /// A step of `len` bytes is done: the difference to the longest may be used again. Only of a
    /// step, which took the longest; a sync took nothing.
    #[inline(always)]
    pub fn give_back(&mut self, len: u32) {
        if let Some(extras) = &self.extras
            && let Some((bytes, longest)) = &extras.bytes_left
        {
            bytes.give_back(*longest - u64::from(len));
        }
    }

    /// A write that no sync follows at once is done.
    pub fn count_unsynced(&mut self) {
        if let Some(extras) = &mut self.extras {
            extras.writes_unsynced += 1;
        }
    }

    /// How long a worker with nothing to start may wait.
    pub fn patience(&self, now: u64) -> Patience {
        let due = match self.extras.as_deref() {
            Some(Extras {
                owed_ns: Some(due), ..
            }) if *due <= now => return Patience::Completion,
            Some(Extras {
                owed_ns: Some(due), ..
            }) => Some(*due),
            Some(extras) => extras.pacer.as_ref().map(Pacer::next_due_ns),
            None => None,
        };
        match due {
            Some(due) if !self.ended() && self.slots.peek().is_some() => {
                match due.saturating_sub(now) {
                    0..POLL_NS => Patience::Poll,
                    wait => Patience::AtMost(wait - POLL_NS / 2),
                }
            }
            _ => Patience::Completion,
        }
    }
}

/// Plain reads one after the other; see [`Feed::burst`].
#[derive(Debug)]
pub struct Burst<'a> {
    /// When the next ones start.
    pub now: u64,
    plain: Plain,
    left: u64,
    slots: &'a mut [Slot],
    free: &'a mut [u32],
    free_len: usize,
    // Where the feed keeps what changed.
    left_to: &'a mut u64,
    free_to: &'a mut usize,
    pattern: &'a mut Pattern,
}

impl Burst<'_> {
    /// The next request, if a slot is free.
    #[inline(always)]
    pub fn next(&mut self) -> Option<Request> {
        if self.left == 0 {
            return None;
        }
        let index = *self.free.get(self.free_len.wrapping_sub(1))?;
        self.free_len -= 1;
        self.left -= 1;
        let (offset, len) = (self.plain.offset(), self.plain.len);
        self.slots[index as usize] = Slot {
            start_ns: self.now,
            offset,
            len,
            left: len,
            stage: Stage::Transfer(Direction::Read),
        };
        Some(Request {
            slot: index,
            buffer: index,
            op: Op::Read,
            offset,
            len,
            skip: 0,
        })
    }

    /// Frees the slot of a read that moved all of its bytes; gives its start.
    #[inline(always)]
    pub fn free(&mut self, index: u32) -> u64 {
        self.free[self.free_len] = index;
        self.free_len += 1;
        self.slots[index as usize].start_ns
    }

    /// Bytes of each read.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.plain.len
    }

    /// Whether a slot stayed free because the steps are used up.
    #[inline(always)]
    pub fn is_short(&self) -> bool {
        self.free_len != 0 && self.left == 0
    }

    /// Tells the feed how far it came.
    #[inline(always)]
    pub fn end(self) {
        *self.left_to = self.left;
        *self.free_to = self.free_len;
        self.pattern.go_on(&self.plain);
    }
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is on the target.
    Done,
    /// Nobody knows.
    Failed,
}

/// Whether a step may start.
enum Consent {
    /// Now.
    Step,
    /// This first.
    Instead(Request),
    /// Later, or never.
    NotNow,
}

#[cfg(test)]
mod tests {
    use super::*;

    use diskproof_model::plan::{Access, Distribution, Workload};

    const BLOCK: u32 = 4096;

    #[test]
    fn a_due_start_whose_block_is_being_written_is_made_later_and_not_dropped() {
        let access = Access::Random {
            distribution: Distribution::Uniform,
        };
        let workload = Workload {
            read_permille: 0,
            access,
            block_bytes: BLOCK,
            depth: 4,
            ..Workload::named("small")
        };
        let pattern = Pattern::new(
            &workload,
            Extent {
                start: 0,
                length: u64::from(BLOCK),
            },
            1,
            0,
        );
        let pacer = Pacer::new(0, 1000.0);
        let ledger = Arc::new(Ledger::new(1, 0, u64::from(BLOCK), BLOCK));
        let mut feed = Feed::new(pattern, 4, AfterWrite::Nothing, Allowance::default())
            .paced(Some(pacer.clone()), 0)
            .verified(Some(ledger));
        let mut buffers = Buffers::new(4, BLOCK as usize).unwrap();
        let first = feed.next(2_500_000, &mut buffers).unwrap();
        // The only block is being written: the start at 1 ms is owed, and the one at 2 ms not even
        // taken.
        assert!((0..3).all(|_| feed.next(2_500_000, &mut buffers).is_none()));
        assert_eq!(
            (pacer.next_due_ns(), feed.patience(2_500_000)),
            (2_000_000, Patience::Completion)
        );
        feed.book(first.slot, first.offset, Fate::Done);
        feed.slots.free(first.slot);
        let second = feed.next(3_000_000, &mut buffers).unwrap();
        assert_eq!(
            (feed.slots.timing(second.slot).waited_ns, feed.late()),
            (2_000_000, 2)
        );
    }

    #[test]
    fn a_burst_gives_what_one_by_one_would() {
        let feed_of = |read_permille| {
            let access = Access::Random {
                distribution: Distribution::Uniform,
            };
            let workload = Workload {
                read_permille,
                access,
                block_bytes: BLOCK,
                depth: 4,
                ..Workload::named("plain")
            };
            let pattern = Pattern::new(
                &workload,
                Extent {
                    start: 4096,
                    length: 1 << 30,
                },
                7,
                3,
            );
            Feed::new(pattern, 4, AfterWrite::Nothing, Allowance::of_steps(10))
        };
        let (mut one, mut other) = (feed_of(1000), feed_of(1000));
        let mut buffers = Buffers::new(4, BLOCK as usize).unwrap();
        for (now, expected) in [(5, 4), (9, 4), (11, 2), (12, 0)] {
            let mut burst = one.burst(now).unwrap();
            let together: Vec<Request> = std::iter::from_fn(|| burst.next()).collect();
            burst.end();
            let apart: Vec<Request> =
                std::iter::from_fn(|| other.next(now, &mut buffers)).collect();
            assert_eq!(together, apart);
            assert_eq!(together.len(), expected);
            for request in together {
                assert_eq!(
                    (
                        one.slots.get(request.slot).start_ns,
                        one.slots.get(request.slot).left
                    ),
                    (now, BLOCK)
                );
                one.slots.free(request.slot);
                other.slots.free(request.slot);
            }
            assert_eq!((one.left, one.ended()), (other.left, other.ended()));
        }
        // What is to be done again comes first, and writes are not plain.
        one.again.push(Request {
            slot: 0,
            buffer: 0,
            op: Op::Read,
            offset: 0,
            len: 1,
            skip: 0,
        });
        assert!(one.burst(13).is_none() && feed_of(999).burst(0).is_none());
    }
}
