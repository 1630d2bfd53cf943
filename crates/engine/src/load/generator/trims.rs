//! Trims, and the write that may follow each of them in the same slot.

use super::{GeneratorOptions, RequestGenerator, Trims};
use crate::io::buffers::Buffers;
use crate::io::{Op, Request};
use crate::load::pattern::{Step, TransferDirection};
use crate::load::slots::{Slot, Stage};
use diskproof_model::shape::TrimMode;

impl RequestGenerator {
    /// Trims in this way. The steps of its pattern are trims.
    pub(crate) fn trimming(mut self, trims: Option<Trims>) -> Self {
        if trims.is_some() {
            self.options
                .get_or_insert_with(|| Box::new(GeneratorOptions::NONE))
                .trims = trims;
        }
        self
    }

    /// The trim of `step` in slot `index`. The data of the write that may follow it is made now,
    /// before its latency begins.
    #[cold]
    pub(super) fn trim(
        &mut self,
        index: u32,
        step: Step,
        buffers: &mut Buffers,
    ) -> Option<Request> {
        let Trims { call, mode } = self.trims()?;
        // A trim moves no data and completes with 0.
        self.slots.get(index).left = 0;
        if mode == TrimMode::BeforeWrite {
            self.unique = self.unique.wrapping_add(1);
            self.fill(buffers, (index + self.write_buffer_shift, index), step);
        }
        Some(Request {
            slot: index,
            buffer: index,
            op: Op::Trim(call),
            offset: step.offset,
            len: step.len,
            skip: 0,
        })
    }

    /// How blocks are trimmed; `None` where they are not.
    fn trims(&self) -> Option<Trims> {
        self.options.as_ref()?.trims
    }

    /// After a trim, in the same slot: the write of the same block, from `now` on. Whether there is
    /// one.
    pub(crate) fn follow_trim(&mut self, index: u32, now: u64) -> bool {
        let is_written = self
            .trims()
            .is_some_and(|trims| trims.mode == TrimMode::BeforeWrite);
        if is_written {
            self.slots.timing(index).waited_ns = 0;
            let slot = self.slots.get(index);
            (slot.start_ns, slot.left) = (now, slot.len);
            slot.stage = Stage::Transfer(TransferDirection::Write);
            let Slot { offset, len, .. } = *slot;
            self.follow_ups.push(Request {
                slot: index,
                buffer: index + self.write_buffer_shift,
                op: Op::Write,
                offset,
                len,
                skip: 0,
            });
        }
        is_written
    }
}
