//! Generates the requests of transactions: in each slot the steps of one, one after the other.

use super::RequestGenerator;
use crate::io::buffers::Buffers;
use crate::io::{Op, Request};
use crate::load::generator::AfterWrite;
use crate::load::pattern::Step;
use crate::load::slots::{Slot, Stage};
use crate::load::transaction::Answered;
use diskproof_model::op::OpKind;

impl RequestGenerator {
    /// The first step of the transaction that begins in a slot; the step itself where the workload
    /// has none.
    pub(super) fn begin_transaction(&mut self, index: u32, step: Step, now: u64) -> Step {
        let Some(options) = &mut self.options else {
            return step;
        };
        let Some(transactions) = &mut options.transactions else {
            return step;
        };
        // The wait is that of the transaction, not of its first request.
        let waited_ns = std::mem::take(&mut self.slots.timing(index).waited_ns);
        transactions.begin(index, now, waited_ns, step)
    }

    /// Queues the next request of a transaction in its slot, from `now` on. Returns false where the
    /// transaction is over.
    pub(crate) fn continue_transaction(&mut self, index: u32, now: u64) -> bool {
        let Some(options) = &mut self.options else {
            return false;
        };
        let Some(transactions) = &mut options.transactions else {
            return false;
        };
        let Some(step) = transactions.next(index, self.pattern.step()) else {
            return false;
        };
        *self.slots.get(index) = Slot::transfer(now, step.kind, step.offset, step.len);
        let (op, buffer) = match step.kind {
            OpKind::Read => (Op::Read, index),
            _ => (Op::Write, index + self.write_buffer_shift),
        };
        self.follow_ups.push(Request {
            buffer,
            ..Request::new(index, op, step.offset, step.len)
        });
        true
    }

    /// Makes the data of a write of a transaction. The rest of a short write goes on with its data.
    pub(super) fn fill_follow_up(&mut self, request: &Request, buffers: &mut Buffers) {
        let has_transactions = match &self.options {
            Some(options) => options.transactions.is_some(),
            None => false,
        };
        if !has_transactions || request.op != Op::Write || request.skip > 0 {
            return;
        }
        self.unique = self.unique.wrapping_add(1);
        let step = Step {
            kind: OpKind::Write,
            offset: request.offset,
            len: request.len,
        };
        self.fill(buffers, request.buffer, request.slot, step);
    }

    /// True where a follow-up has to end before the write in a slot is complete.
    #[inline(always)]
    pub(crate) fn write_is_followed(&self, index: u32) -> bool {
        if self.after_write == AfterWrite::Nothing {
            return false;
        }
        let Some(options) = &self.options else {
            return true;
        };
        match &options.transactions {
            Some(transactions) => !transactions.is_answered(index),
            None => true,
        }
    }

    /// The transaction whose sync has returned in a slot; `None` where the workload has none.
    pub(crate) fn answered_transaction(&self, index: u32, now: u64) -> Option<Answered> {
        let transactions = self.options.as_ref()?.transactions.as_ref()?;
        if self.slots.stage(index) == Stage::Sync {
            Some(transactions.answered(index, now))
        } else {
            None
        }
    }
}
