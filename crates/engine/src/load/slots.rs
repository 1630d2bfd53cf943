//! Keeps the slots of a worker, one for each request that may be in flight. A batch of plain reads
//! takes and frees them with its state in registers.

use crate::io::{Op, Request};
use crate::load::pattern::{Pattern, UniformReads};
use diskproof_model::op::OpKind;

/// The work that a slot is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Carrying out a request for a block.
    Transfer(OpKind),
    /// Making the write of the same slot reach the device; counts towards that write's latency.
    WriteBack,
    /// Making writes durable.
    Sync,
}

/// In [`Slot::bytes_left`] of a request that was in flight while the process did not run: no result
/// equals it, so that the hot path takes none of them for a good one.
const INTERRUPTED: u32 = 1 << 31;

/// One request: what every completion needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    /// The time just before the submission.
    pub start_ns: u64,
    /// First byte of the transfer.
    pub offset: u64,
    /// Bytes of the transfer.
    pub len: u32,
    /// Bytes not moved yet; 0 for what moves no data.
    pub bytes_left: u32,
    /// The work under way.
    pub stage: Stage,
}

impl Slot {
    /// A request for a block that starts now.
    #[inline(always)]
    pub(crate) fn transfer(start_ns: u64, kind: OpKind, offset: u64, len: u32) -> Self {
        Self {
            start_ns,
            offset,
            len,
            bytes_left: len,
            stage: Stage::Transfer(kind),
        }
    }
}

/// Times that only some workloads need of a slot, kept apart so that the others do not move them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SlotTiming {
    /// The time from the intended start of the operation to its real one (open loop).
    pub waited_ns: u64,
    /// The part of it in which a slot was free.
    pub delay_ns: u64,
    /// The time just before the submission of the sync that follows a write.
    pub sync_start_ns: u64,
    /// Generation of the block that is being written (verified workloads); 0 where there is none.
    pub generation: u32,
}

/// A request in flight, for the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingRequest {
    /// The kind that counts it.
    pub kind: OpKind,
    /// The time just before its submission.
    pub since_ns: u64,
}

/// A slot that is not free.
struct UsedSlot<'a> {
    slot: &'a Slot,
    /// The start of the work that it does now.
    began_ns: u64,
}

/// The start of the work that a slot does now: a sync that follows a write began after it.
fn began_ns(slot: &Slot, timing: &SlotTiming) -> u64 {
    if slot.stage == Stage::Sync {
        timing.sync_start_ns
    } else {
        slot.start_ns
    }
}

/// The kind of operation that counts a request in this stage.
pub(crate) fn counted_kind(stage: Stage) -> OpKind {
    match stage {
        Stage::Transfer(kind) => kind,
        Stage::WriteBack => OpKind::Write,
        Stage::Sync => OpKind::Sync,
    }
}

/// The state of [`Slots`], borrowed apart.
pub(crate) struct SlotParts<'a> {
    pub slots: &'a mut [Slot],
    pub free_list: &'a mut [u32],
    pub free_len: &'a mut usize,
}

/// The slots of a worker. The slot freed last is used next, while it is in the CPU's cache.
#[derive(Debug)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    timings: Vec<SlotTiming>,
    /// Numbers of free slots. Only the first `free_len` count; the last of these is used next.
    free_list: Box<[u32]>,
    free_len: usize,
    /// Slots in flight that are marked as interrupted.
    interrupted: u32,
}

impl Slots {
    /// `depth` free slots.
    pub(crate) fn new(depth: u32) -> Self {
        let idle = Slot {
            start_ns: 0,
            offset: 0,
            len: 0,
            bytes_left: 0,
            stage: Stage::Sync,
        };
        let timings = vec![SlotTiming::default(); depth as usize];
        Self {
            slots: vec![idle; depth as usize],
            timings,
            free_list: (0..depth).rev().collect(),
            free_len: depth as usize,
            interrupted: 0,
        }
    }

    /// The offset and the bytes of a read that `result` completes; `None` for anything else.
    pub(crate) fn read_completed(&self, index: u32, result: i32) -> Option<(u64, u32)> {
        let slot = self.slots.get(index as usize)?;
        let is_read = slot.stage == Stage::Transfer(OpKind::Read);
        if is_read && u32::try_from(result) == Ok(slot.bytes_left & !INTERRUPTED) {
            Some((slot.offset, slot.len))
        } else {
            None
        }
    }

    /// Marks the requests in flight as interrupted; returns their number.
    pub(crate) fn mark_all_interrupted(&mut self) -> u64 {
        let free_marks = self.free_marks();
        for (slot, is_free) in self.slots.iter_mut().zip(free_marks) {
            if !is_free {
                self.interrupted += u32::from(slot.bytes_left & INTERRUPTED == 0);
                slot.bytes_left |= INTERRUPTED;
            }
        }
        self.in_flight() as u64
    }

    /// Marks a request in flight as interrupted, because it continues one that was.
    pub(crate) fn mark_interrupted(&mut self, index: u32) {
        let slot = self.get(index);
        let is_new = slot.bytes_left & INTERRUPTED == 0;
        slot.bytes_left |= INTERRUPTED;
        self.interrupted += u32::from(is_new);
    }

    /// True if the request was in flight during an interruption. Removes the mark.
    pub(crate) fn take_interrupted(&mut self, index: u32) -> bool {
        let slot = self.get(index);
        let is_marked = slot.bytes_left & INTERRUPTED != 0;
        slot.bytes_left &= !INTERRUPTED;
        self.interrupted -= u32::from(is_marked);
        is_marked
    }

    /// True while any request in flight is marked as interrupted.
    pub(crate) fn has_interrupted(&self) -> bool {
        self.interrupted > 0
    }

    /// A free slot, if there is one; it stays free until [`Slots::take`].
    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<u32> {
        self.free_list.get(self.free_len.wrapping_sub(1)).copied()
    }

    /// Uses the slot that `peek` returned; without one the request would be lost.
    #[inline(always)]
    pub(crate) fn take(&mut self, slot: Slot) {
        debug_assert!(self.peek().is_some(), "no slot is free");
        if let Some(index) = self.peek() {
            self.free_len -= 1;
            self.slots[index as usize] = slot;
        }
    }

    /// The state of the slots, for a loop that keeps it in locals.
    #[inline(always)]
    pub(crate) fn parts(&mut self) -> SlotParts<'_> {
        SlotParts {
            slots: &mut self.slots,
            free_list: &mut self.free_list,
            free_len: &mut self.free_len,
        }
    }

    /// The slot with this number.
    #[inline(always)]
    pub(crate) fn get(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    /// The work of the slot with this number.
    pub(crate) fn stage(&self, index: u32) -> Stage {
        self.slots[index as usize].stage
    }

    /// The timing of the slot with this number.
    #[inline(always)]
    pub(crate) fn timing(&mut self, index: u32) -> &mut SlotTiming {
        &mut self.timings[index as usize]
    }

    /// The start of the work that the slot does now.
    pub(crate) fn began_ns(&self, index: u32) -> u64 {
        let index = index as usize;
        began_ns(&self.slots[index], &self.timings[index])
    }

    /// Frees a slot that is in use: one that is free already would be given out twice.
    #[inline(always)]
    pub(crate) fn free(&mut self, index: u32) {
        debug_assert!(self.free_len < self.free_list.len(), "all slots are free");
        self.free_list[self.free_len] = index;
        self.free_len += 1;
    }

    /// The requests in flight.
    pub(crate) fn pending_requests(&self) -> Vec<PendingRequest> {
        self.used_slots()
            .map(|used| PendingRequest {
                kind: counted_kind(used.slot.stage),
                since_ns: used.began_ns,
            })
            .collect()
    }

    /// Sum of the times in flight up to `at_ns`. A sync counts from its own start, as the write
    /// before it is complete.
    pub(crate) fn in_flight_ns(&self, at_ns: u64) -> u64 {
        self.used_slots()
            .map(|used| at_ns.saturating_sub(used.began_ns))
            .sum()
    }

    /// Start of the oldest operation in flight, if there is one.
    pub(crate) fn first_began_ns(&self) -> Option<u64> {
        self.used_slots().map(|used| used.began_ns).min()
    }

    /// Start of the newest operation in flight; 0 where there is none.
    pub(crate) fn last_began_ns(&self) -> u64 {
        self.used_slots()
            .map(|used| used.began_ns)
            .max()
            .unwrap_or(0)
    }

    fn used_slots(&self) -> impl Iterator<Item = UsedSlot<'_>> {
        self.free_marks()
            .into_iter()
            .enumerate()
            .filter(|(_, is_free)| !is_free)
            .map(|(index, _)| UsedSlot {
                slot: &self.slots[index],
                began_ns: began_ns(&self.slots[index], &self.timings[index]),
            })
    }

    /// One mark for each slot: true where it is free.
    fn free_marks(&self) -> Vec<bool> {
        let mut marks = vec![false; self.slots.len()];
        for index in &self.free_list[..self.free_len] {
            marks[*index as usize] = true;
        }
        marks
    }

    /// Slots that are free.
    #[inline(always)]
    pub(crate) fn free_slots(&self) -> usize {
        self.free_len
    }

    /// Slots in flight.
    #[inline(always)]
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len() - self.free_len
    }
}

/// Consecutive plain reads, whose state the compiler can hold in registers; see
/// `RequestGenerator::read_batch`. [`ReadBatch::end`] hands the state back. A worker whose backend
/// fails drops the batch without it: the generator then counts the batch's requests in flight as
/// not begun, and must generate nothing more.
#[derive(Debug)]
pub(crate) struct ReadBatch<'a> {
    /// The start of the next reads.
    pub now: u64,
    pub(super) plain: UniformReads,
    pub(super) steps_left: u64,
    pub(super) slots: &'a mut [Slot],
    pub(super) free_list: &'a mut [u32],
    pub(super) free_len: usize,
    // The generator's own copies, which `end` brings up to date.
    pub(super) kept_steps_left: &'a mut u64,
    pub(super) kept_free_len: &'a mut usize,
    pub(super) kept_pattern: &'a mut Pattern,
}

impl ReadBatch<'_> {
    /// The next request, if a slot is free.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Request> {
        if self.steps_left == 0 {
            return None;
        }
        let index = *self.free_list.get(self.free_len.wrapping_sub(1))?;
        self.free_len -= 1;
        self.steps_left -= 1;
        let (offset, len) = (self.plain.offset(), self.plain.block_bytes());
        self.slots[index as usize] = Slot::transfer(self.now, OpKind::Read, offset, len);
        Some(Request::new(index, Op::Read, offset, len))
    }

    /// Frees the slot of a complete read; returns its start.
    #[inline(always)]
    pub(crate) fn free(&mut self, index: u32) -> u64 {
        debug_assert!(self.free_len < self.free_list.len(), "all slots are free");
        self.free_list[self.free_len] = index;
        self.free_len += 1;
        self.slots[index as usize].start_ns
    }

    /// Bytes of each read.
    #[inline(always)]
    pub(crate) fn len(&self) -> u32 {
        self.plain.block_bytes()
    }

    /// True if a slot stayed free because the steps are used up.
    #[inline(always)]
    pub(crate) fn is_short(&self) -> bool {
        self.free_len != 0 && self.steps_left == 0
    }

    /// Hands the state back to the generator.
    #[inline(always)]
    pub(crate) fn end(self) {
        *self.kept_steps_left = self.steps_left;
        *self.kept_free_len = self.free_len;
        self.kept_pattern.resume_from(&self.plain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u32 = 4096;

    fn read(start_ns: u64) -> Slot {
        Slot::transfer(start_ns, OpKind::Read, 0, BLOCK)
    }

    #[test]
    fn slot_freed_last_is_used_next() {
        let mut slots = Slots::new(3);
        for start_ns in [10, 20, 30] {
            slots.take(read(start_ns));
        }
        assert_eq!((slots.peek(), slots.in_flight()), (None, 3));
        slots.free(2);
        slots.free(0);
        assert_eq!((slots.peek(), slots.free_slots()), (Some(0), 2));
    }

    #[test]
    fn only_slots_in_flight_are_pending() {
        let mut slots = Slots::new(3);
        slots.take(read(10));
        slots.take(read(30));
        assert_eq!(slots.first_began_ns(), Some(10));
        assert_eq!(slots.last_began_ns(), 30);
        assert_eq!(slots.in_flight_ns(50), 40 + 20);
        slots.free(0);
        let pending = PendingRequest {
            kind: OpKind::Read,
            since_ns: 30,
        };
        assert_eq!(slots.pending_requests(), [pending]);
    }

    #[test]
    fn sync_after_a_write_began_when_it_was_submitted() {
        let mut slots = Slots::new(1);
        slots.take(Slot::transfer(10, OpKind::Write, 0, BLOCK));
        slots.get(0).stage = Stage::Sync;
        slots.timing(0).sync_start_ns = 25;
        assert_eq!((slots.began_ns(0), slots.in_flight_ns(30)), (25, 5));
    }

    #[test]
    fn interrupted_requests_are_marked_once_and_still_complete() {
        let mut slots = Slots::new(3);
        slots.take(read(10));
        slots.take(read(20));
        assert_eq!(slots.mark_all_interrupted(), 2);
        slots.mark_interrupted(1);
        assert_eq!(slots.read_completed(1, BLOCK as i32), Some((0, BLOCK)));
        assert!(slots.take_interrupted(0) && !slots.take_interrupted(0));
        assert!(slots.has_interrupted());
        assert!(slots.take_interrupted(1) && !slots.has_interrupted());
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "no slot is free")]
    fn request_without_a_free_slot_is_a_bug() {
        let mut slots = Slots::new(1);
        slots.take(read(10));
        slots.take(read(20));
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "all slots are free")]
    fn slot_freed_twice_is_a_bug() {
        Slots::new(1).free(0);
    }
}
