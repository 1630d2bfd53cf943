//! The requests that a worker may have in flight, and which of them are free.

use crate::pattern::Direction;

/// What a slot is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Moving data.
    Transfer(Direction),
    /// Making the write of the same slot reach the device; counts towards that write's latency.
    WriteBack,
    /// Making writes durable.
    Sync,
}

/// One request and its past.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// What it is doing.
    pub stage: Stage,
    /// Before the submission.
    pub start_ns: u64,
    /// When it should have started (open loop); else `start_ns`.
    pub intended_ns: u64,
    /// Before the submission of the sync that follows a write.
    pub sync_start_ns: u64,
    /// First byte of the transfer.
    pub offset: u64,
    /// Bytes of the transfer.
    pub len: u32,
    /// Bytes done by short transfers.
    pub moved: u32,
}

/// All slots of a worker; the one freed last is used next, while it is in the CPU's cache.
#[derive(Debug)]
pub struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    /// `depth` free slots.
    pub fn new(depth: u32) -> Self {
        let idle = Slot { stage: Stage::Sync, start_ns: 0, intended_ns: 0, sync_start_ns: 0, offset: 0, len: 0, moved: 0 };
        Self { slots: vec![idle; depth as usize], free: (0..depth).rev().collect() }
    }

    /// A free slot, if there is one; it stays free until [`Slots::take`].
    #[inline(always)]
    pub fn peek(&self) -> Option<u32> {
        self.free.last().copied()
    }

    /// Puts the slot that `peek` showed to use.
    #[inline(always)]
    pub fn take(&mut self, slot: Slot) {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = slot;
        }
    }

    /// The slot with this number.
    #[inline(always)]
    pub fn get(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    /// Frees a slot.
    #[inline(always)]
    pub fn free(&mut self, index: u32) {
        self.free.push(index);
    }

    /// Slots in flight.
    #[inline(always)]
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
