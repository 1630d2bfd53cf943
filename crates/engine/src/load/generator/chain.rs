//! Generates the calls that change blocks without data, such as trims, and the write that may
//! follow each of them in the same slot.

use super::RequestGenerator;
use crate::io::buffers::Buffers;
use crate::io::{Op, Request};
use crate::load::block_calls::BlockCalls;
use crate::load::pattern::Step;
use crate::load::slots::{Slot, Stage};
use diskproof_model::op::OpKind;

impl RequestGenerator {
    /// The call of `step` in slot `index`, which the caller has taken. The data of the write that
    /// may follow it is made now, before its latency begins.
    ///
    /// `None` of a kind without a call, which `RunError` refuses before a run: the slot is free
    /// again and the worker ends, since it would otherwise wait for ever for a request that is
    /// never sent.
    // Cold, because it would make the loop of reads and writes longer.
    #[cold]
    pub(super) fn call(
        &mut self,
        index: u32,
        step: Step,
        buffers: &mut Buffers,
    ) -> Option<Request> {
        let Some(call) = self.calls().and_then(|calls| calls.call(step.kind)) else {
            self.return_bytes(0);
            self.slots.free(index);
            self.end();
            return None;
        };
        // It moves no data and completes with 0.
        self.slots.get(index).bytes_left = 0;
        if self.following_kind(step.kind) == Some(OpKind::Write) {
            self.unique = self.unique.wrapping_add(1);
            self.fill(buffers, index + self.write_buffer_shift, index, step);
        }
        Some(Request::new(index, Op::Call(call), step.offset, step.len))
    }

    fn calls(&self) -> Option<&BlockCalls> {
        self.options.as_ref()?.calls.as_ref()
    }

    fn following_kind(&self, kind: OpKind) -> Option<OpKind> {
        self.calls()?.following_kind(kind)
    }

    /// Queues the write of the same block that follows an operation of `kind`, in the same slot and
    /// from `now` on. Returns false where no write follows.
    pub(crate) fn continue_step(&mut self, index: u32, kind: OpKind, now: u64) -> bool {
        if self.following_kind(kind) != Some(OpKind::Write) {
            return false;
        }
        self.slots.timing(index).waited_ns = 0;
        let slot = self.slots.get(index);
        (slot.start_ns, slot.bytes_left) = (now, slot.len);
        slot.stage = Stage::Transfer(OpKind::Write);
        let Slot { offset, len, .. } = *slot;
        self.follow_ups.push(Request {
            buffer: index + self.write_buffer_shift,
            ..Request::new(index, Op::Write, offset, len)
        });
        true
    }
}
