//! A batch of plain reads, whose state the compiler can hold in registers. Knows neither options
//! nor follow-ups.

use crate::io::{Op, Request};
use crate::load::pattern::{Pattern, UniformReads};
use crate::load::slots::Slot;
use diskproof_model::op::OpKind;

/// Consecutive plain reads; see `RequestGenerator::read_batch`.
#[derive(Debug)]
pub(crate) struct ReadBatch<'a> {
    /// When the next ones start.
    pub now: u64,
    pub(super) plain: UniformReads,
    pub(super) left: u64,
    pub(super) slots: &'a mut [Slot],
    pub(super) free: &'a mut [u32],
    pub(super) free_len: usize,
    // Where the generator keeps what changed.
    pub(super) left_to: &'a mut u64,
    pub(super) free_to: &'a mut usize,
    pub(super) pattern: &'a mut Pattern,
}

impl ReadBatch<'_> {
    /// The next request, if a slot is free.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Request> {
        if self.left == 0 {
            return None;
        }
        let index = *self.free.get(self.free_len.wrapping_sub(1))?;
        self.free_len -= 1;
        self.left -= 1;
        let (offset, len) = (self.plain.offset(), self.plain.block_bytes());
        self.slots[index as usize] = Slot::transfer(self.now, OpKind::Read, offset, len);
        Some(Request::new(index, Op::Read, offset, len))
    }

    /// Frees the slot of a complete read; returns its start.
    #[inline(always)]
    pub(crate) fn free(&mut self, index: u32) -> u64 {
        self.free[self.free_len] = index;
        self.free_len += 1;
        self.slots[index as usize].start_ns
    }

    /// Bytes of each read.
    #[inline(always)]
    pub(crate) fn len(&self) -> u32 {
        self.plain.block_bytes()
    }

    /// Whether a slot stayed free because the steps are used up.
    #[inline(always)]
    pub(crate) fn is_short(&self) -> bool {
        self.free_len != 0 && self.left == 0
    }

    /// Hands the state back to the generator.
    #[inline(always)]
    pub(crate) fn end(self) {
        *self.left_to = self.left;
        *self.free_to = self.free_len;
        self.pattern.resume_from(&self.plain);
    }
}
