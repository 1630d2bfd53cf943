//! Generates the requests of a worker: the steps of the pattern and the follow-ups of completed
//! requests, each at the time that the pacer says, until the budget is used up.

mod chain;
mod transactions;

use crate::io::buffers::Buffers;
use crate::io::{Op, Request, WaitMode};
use crate::load::block_calls::BlockCalls;
use crate::load::budget::{Budget, ByteBudget};
use crate::load::content::ContentWriter;
use crate::load::dispatch::{Dispatch, SpareSlots};
use crate::load::group_sync::GroupSync;
use crate::load::holds::{FlowMember, Pauses};
use crate::load::lead::Lead;
use crate::load::pacer::Pacer;
use crate::load::pattern::{Pattern, PatternAction, Step};
use crate::load::slots::{ReadBatch, Slot, SlotTiming, Slots, Stage};
use crate::load::transaction::Transactions;
use crate::load::write_journal::WriteJournal;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{RangeSync, SyncCall};
use diskproof_model::shape::FioSyncCall;
use std::ops::Range;
use std::sync::Arc;

/// An open-loop operation that starts this late counts as late. Smaller delays come from batched
/// completions. Chosen, not measured.
pub(crate) const LATE_NS: u64 = 1_000_000;

/// The follow-up of each write, in the same slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterWrite {
    /// Nothing: the write is complete with its own completion.
    Nothing,
    /// The page cache writes it to the device; the write is complete only then.
    WriteBack,
    /// Nothing: the write is a commit by itself.
    Durable,
    /// A sync; the two together are a commit.
    Sync(SyncCall),
    /// A sync after every n-th write.
    SyncEvery(u32, SyncCall),
}

/// Turns the steps of a pattern into requests.
#[derive(Debug)]
pub(crate) struct RequestGenerator {
    /// Steps that may still start before the next portion.
    left: u64,
    /// Steps of all portions so far.
    taken: u64,
    /// The source of portions; `None` once the worker has ended.
    budget: Option<Budget>,
    /// The requests in flight.
    pub slots: Slots,
    /// Says where the steps go and what they do.
    pub pattern: Pattern,
    /// Follow-ups of requests whose slots are still taken: the rest of a short transfer, the sync
    /// after a write.
    pub follow_ups: Vec<Request>,
    /// Added to a slot's number to get the buffer of its writes.
    pub write_buffer_shift: u32,
    /// The stamp of the newest write.
    unique: u64,
    /// True where syncs may come between the steps, and the steps may end.
    is_in_fio_order: bool,
    /// The follow-up of each write.
    pub after_write: AfterWrite,
    options: Option<Box<GeneratorOptions>>,
}

/// Options that only some workloads need, kept apart from the others.
#[derive(Debug, Default)]
pub(crate) struct GeneratorOptions {
    /// Steps start at its times.
    pub pacer: Option<Pacer>,
    /// The schedule of the steps of one kind. Where none is due, a step of another kind starts.
    pub kind_pacer: Option<(OpKind, Pacer)>,
    /// Late steps are counted from here on.
    pub measure_ns: u64,
    /// Steps that started late.
    pub late: u64,
    /// This program's own delays, and the operations that are late by them.
    pub dispatch: Dispatch,
    /// The longest time that an operation should take from its intended start, where the user set
    /// one.
    pub limit_ns: Option<u64>,
    /// The slots that were free before the worker looked for completions the last time.
    pub spare: SpareSlots,
    /// The time between waking up and a start.
    pub lead: Lead,
    /// A start that has been due for so long ends the worker.
    pub overload_ns: Option<u64>,
    /// The transactions that the steps are.
    pub transactions: Option<Transactions>,
    /// The syncs that the slots share, where they do.
    pub group_sync: Option<GroupSync>,
    /// A start that this worker has taken from the schedule and not made yet. It waits for its
    /// time, or for a block that no request is writing.
    pub reserved_ns: Option<u64>,
    /// Writes since the last sync, where one follows several of them.
    pub writes_unsynced: u32,
    /// The bytes that all workers may still move, where blocks differ in length.
    pub byte_budget: Option<ByteBudget>,
    /// The journal of a verified workload, whose blocks are signed.
    pub journal: Option<Arc<WriteJournal>>,
    /// Pauses between steps.
    pub pauses: Option<Pauses>,
    /// Makes the data of writes, where it is not new random data.
    pub content: Option<ContentWriter>,
    /// The share of the operations of several workloads.
    pub flow: Option<FlowMember>,
    /// The calls that carry out operations without data of their own.
    pub calls: Option<BlockCalls>,
    /// A step in the order of fio that this worker has taken and not made yet.
    pub pending_step: Option<Step>,
    /// In the order of fio, the bytes of the target that were written since the last sync.
    pub written_since_sync: Option<Range<u64>>,
}

/// A worker draws at most so many steps because the blocks of earlier ones are being written. After
/// that it waits for a completion. Chosen, not measured: it only bounds the loop.
const CLAIMS_MAX: u32 = 64;

impl RequestGenerator {
    /// The steps of `pattern` through `depth` slots.
    pub(crate) fn new(
        pattern: Pattern,
        depth: u32,
        after_write: AfterWrite,
        budget: Budget,
    ) -> Self {
        let byte_budget = budget.bytes.clone();
        let is_in_fio_order = pattern.is_in_fio_order();
        let needs_options = matches!(after_write, AfterWrite::SyncEvery(..)) || is_in_fio_order;
        let mut options = None;
        if byte_budget.is_some() || needs_options {
            options = Some(Box::new(GeneratorOptions {
                byte_budget,
                ..GeneratorOptions::default()
            }));
        }
        let left = budget.take_portion();
        Self {
            left,
            taken: left,
            budget: Some(budget),
            slots: Slots::new(depth),
            pattern,
            follow_ups: Vec::with_capacity(depth as usize),
            write_buffer_shift: 0,
            unique: 0,
            is_in_fio_order,
            after_write,
            options,
        }
    }

    /// Takes these options, those of the budget apart, where any of them is set.
    pub(crate) fn with_options(mut self, wanted: GeneratorOptions) -> Self {
        // Every field by name, so that none that is new is left out.
        let GeneratorOptions {
            pacer,
            journal,
            pauses,
            content,
            flow,
            calls,
            transactions,
            group_sync,
            kind_pacer,
            measure_ns: _,
            late: _,
            dispatch: _,
            limit_ns: _,
            spare: _,
            // Only with a pacer.
            lead: _,
            overload_ns: _,
            reserved_ns: _,
            writes_unsynced,
            byte_budget: _,
            pending_step: _,
            written_since_sync: _,
        } = &wanted;
        let is_set = pacer.is_some()
            || journal.is_some()
            || pauses.is_some()
            || content.is_some()
            || flow.is_some()
            || calls.is_some()
            || kind_pacer.is_some()
            || transactions.is_some()
            || group_sync.is_some()
            || *writes_unsynced > 0;
        if is_set {
            let own = self.options.get_or_insert_default();
            **own = GeneratorOptions {
                byte_budget: own.byte_budget.take(),
                ..wanted
            };
        }
        self
    }

    /// Writes from other buffers than reads use, so that data that was read is never written. The
    /// first stamp of this worker is `unique`.
    pub(crate) fn with_buffers(mut self, write_buffer_shift: u32, unique: u64) -> Self {
        self.write_buffer_shift = write_buffer_shift;
        self.unique = unique;
        self
    }

    /// Turns batches of reads off: the loop then sees every completion by itself.
    pub(crate) fn without_batches(mut self) -> Self {
        self.options.get_or_insert_default();
        self
    }

    /// True where the workload needs more than plain steps.
    #[inline(always)]
    pub(crate) fn has_options(&self) -> bool {
        self.options.is_some()
    }

    /// The requests that [`RequestGenerator::next`] would give, for plain reads only. The batch
    /// keeps its state in locals, so that the compiler holds it in registers; that saves a third of
    /// the loop's own time. `None` for other workloads, and while follow-ups wait.
    #[inline(always)]
    pub(crate) fn read_batch(&mut self, now: u64) -> Option<ReadBatch<'_>> {
        let plain = self
            .pattern
            .plain()
            .filter(|_| self.options.is_none() && self.follow_ups.is_empty())
            .filter(|_| !self.slots.has_interrupted())?;
        let parts = self.slots.parts();
        Some(ReadBatch {
            now,
            plain,
            steps_left: self.left,
            slots: parts.slots,
            free_list: parts.free_list,
            free_len: *parts.free_len,
            kept_steps_left: &mut self.left,
            kept_free_len: parts.free_len,
            kept_pattern: &mut self.pattern,
        })
    }

    /// Open-loop operations that started late.
    pub(crate) fn late(&self) -> u64 {
        self.options.as_ref().map_or(0, |options| options.late)
    }

    /// Takes the delays so far of this program itself.
    pub(crate) fn take_dispatch(&mut self) -> Dispatch {
        match &mut self.options {
            Some(options) => std::mem::take(&mut options.dispatch),
            None => Dispatch::default(),
        }
    }

    /// True if a start has been due for too long at `now`: more is offered than the target serves.
    pub(crate) fn is_overloaded(&self, now: u64) -> bool {
        let Some(options) = &self.options else {
            return false;
        };
        match (&options.pacer, options.overload_ns) {
            (Some(pacer), Some(overload_ns)) => {
                pacer.next_due_ns().saturating_add(overload_ns) < now
            }
            _ => false,
        }
    }

    /// True where starts follow a schedule.
    pub(crate) fn is_paced(&self) -> bool {
        self.options
            .as_ref()
            .is_some_and(|options| options.pacer.is_some())
    }

    /// When a worker with nothing in flight starts next. It reserves that start now. Otherwise all
    /// idle workers would wake up together for the same start, and only one could make it.
    pub(crate) fn reserve(&mut self) -> Option<u64> {
        let options = self.options.as_mut()?;
        let pause_ns = options.pauses.as_ref().and_then(Pauses::until_ns);
        let hold_ns = options.flow.as_ref().and_then(FlowMember::until_ns);
        if let Some(until_ns) = pause_ns.or(hold_ns) {
            return Some(until_ns);
        }
        let pacer = options.pacer.as_ref()?;
        Some(*options.reserved_ns.get_or_insert_with(|| pacer.take_next()))
    }

    /// True if no more steps start. Valid after [`RequestGenerator::next`] returned `None` with a
    /// free slot; before that there may be another portion.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// Starts no more steps. The rest of the portion is not returned: a worker ends before its
    /// budget only where all workers do, or where the target fails.
    pub(crate) fn end(&mut self) {
        (self.left, self.budget) = (0, None);
    }

    /// Counts its steps from now on: it may start those again that it has started.
    #[cold]
    pub(crate) fn restart_budget(&mut self) {
        if self.budget.is_some() {
            self.left = self.taken;
        }
    }

    /// Takes the next portion. Returns false where there is none.
    #[cold]
    fn take_next_portion(&mut self) -> bool {
        self.left = self.budget.as_ref().map_or(0, Budget::take_portion);
        self.taken = self.taken.saturating_add(self.left);
        self.left > 0
    }

    /// The next request, if one may start at `now` and a slot is free.
    #[inline(always)]
    pub(crate) fn next(&mut self, now: u64, buffers: &mut Buffers) -> Option<Request> {
        if let Some(request) = self.follow_ups.pop() {
            if self.options.is_some() {
                self.fill_follow_up(&request, buffers);
                self.note_sync(&request);
            }
            return Some(request);
        }
        let index = self.slots.peek()?;
        if self.left == 0 && !self.take_next_portion() {
            return None;
        }
        if self.options.is_some() {
            match self.check_options(now, index) {
                StepDecision::Step => {}
                StepDecision::Instead(request) => return Some(request),
                StepDecision::Wait => return None,
            }
        }
        let Some(mut step) = self.claim_step(index, now) else {
            self.return_bytes(0);
            return None;
        };
        self.left -= 1;
        if self.options.is_some() {
            self.note_start(index, now);
            step = self.begin_transaction(index, step, now);
        }
        self.slots
            .take(Slot::transfer(now, step.kind, step.offset, step.len));
        let (op, buffer) = match step.kind {
            OpKind::Read => (Op::Read, index),
            OpKind::Write => {
                let buffer = index + self.write_buffer_shift;
                self.unique = self.unique.wrapping_add(1);
                match &mut self.options {
                    None => buffers.stamp(buffer as usize, step.len as usize, self.unique),
                    Some(_) => self.fill(buffers, buffer, index, step),
                }
                (Op::Write, buffer)
            }
            // A kind that moves data needs an arm of its own: as a call it would never be sent.
            OpKind::Trim | OpKind::Sync | OpKind::Commit | OpKind::Transaction => {
                return self.call(index, step, buffers);
            }
        };
        Some(Request {
            buffer,
            ..Request::new(index, op, step.offset, step.len)
        })
    }

    /// The next step; in a verified workload one whose block no request is writing.
    #[inline(always)]
    fn claim_step(&mut self, index: u32, now: u64) -> Option<Step> {
        let Some(options) = &mut self.options else {
            return Some(self.pattern.step());
        };
        let step = match options.pending_step.take() {
            Some(step) => step,
            None => match &options.kind_pacer {
                Some((kind, pacer)) => paced_step(&mut self.pattern, *kind, pacer, now),
                None => self.pattern.step(),
            },
        };
        if options.journal.is_some() {
            self.claim(step, index)
        } else {
            Some(step)
        }
    }

    /// Claims the block of `step`, or of a later step, in the journal; `None` where the worker has
    /// to wait for a completion first.
    fn claim(&mut self, mut step: Step, index: u32) -> Option<Step> {
        let journal = self.options.as_ref()?.journal.clone()?;
        for _ in 0..CLAIMS_MAX {
            if step.kind == OpKind::Read {
                self.slots.timing(index).generation = 0;
                return Some(step);
            }
            if let Some(generation) = journal.claim(step.offset, step.len) {
                self.slots.timing(index).generation = generation;
                return Some(step);
            }
            if self.is_in_fio_order {
                // The steps were counted before the run, so none may be skipped.
                self.options.as_mut()?.pending_step = Some(step);
                return None;
            }
            step = self.pattern.step();
        }
        None
    }

    /// The data of a write from `buffer` in slot `index`, where there are options.
    fn fill(&mut self, buffers: &mut Buffers, buffer: u32, index: u32, step: Step) {
        let buffer = buffer as usize;
        let len = step.len as usize;
        let Some(options) = &mut self.options else {
            return;
        };
        match &mut options.content {
            Some(content) => content.fill(buffers.bytes_mut(buffer, len)),
            None => buffers.stamp(buffer, len, self.unique),
        }
        if let Some(journal) = &options.journal {
            let generation = self.slots.timing(index).generation;
            journal.sign(buffers.bytes_mut(buffer, len), step.offset, generation);
        }
    }

    /// Notes that a block was written, or failed to be.
    pub(crate) fn record_write(&mut self, index: u32, offset: u64, outcome: WriteOutcome) {
        if self.is_in_fio_order && outcome == WriteOutcome::Done {
            self.extend_written(index);
        }
        if let Some(options) = &self.options
            && let Some(journal) = &options.journal
            && let generation @ 1.. = self.slots.timing(index).generation
        {
            let len = self.slots.get(index).len;
            match outcome {
                WriteOutcome::Done => journal.confirm(offset, len, generation),
                WriteOutcome::Failed => journal.mark_unknown(offset, len, generation),
            }
            self.slots.timing(index).generation = 0;
        }
    }

    /// Adds the block in a slot to those that were written since the last sync.
    fn extend_written(&mut self, index: u32) {
        let Slot {
            offset, len, stage, ..
        } = *self.slots.get(index);
        if stage != Stage::Transfer(OpKind::Write) {
            return;
        }
        let Some(options) = &mut self.options else {
            return;
        };
        let end = offset + u64::from(len);
        options.written_since_sync = Some(match options.written_since_sync.take() {
            Some(before) => before.start.min(offset)..before.end.max(end),
            None => offset..end,
        });
    }

    /// Decides whether the options allow a step in slot `index`.
    fn check_options(&mut self, now: u64, index: u32) -> StepDecision {
        if let Some(call) = self.due_sync() {
            return StepDecision::Instead(self.sync_alone(index, call, now));
        }
        if self.left == 0 {
            return StepDecision::Wait;
        }
        let Some(options) = &mut self.options else {
            return StepDecision::Step;
        };
        let slots = &self.slots;
        let (pauses, flow) = (options.pauses.as_mut(), options.flow.as_mut());
        if pauses.is_some_and(|pauses| pauses.must_wait(now, slots.in_flight() as u64))
            || flow.is_some_and(|flow| flow.must_wait(now, slots.in_flight() as u64))
        {
            return StepDecision::Wait;
        }
        // The step may be shorter; the difference is returned with its completion.
        if let Some(bytes) = &options.byte_budget
            && !bytes.left.try_take(bytes.longest_step)
        {
            if self.slots.in_flight() == 0 {
                self.end();
            }
            return StepDecision::Wait;
        }
        if let Some(pacer) = &options.pacer {
            let Some(due) = options
                .reserved_ns
                .or_else(|| pacer.take_due(now))
                .filter(|due| *due <= now)
            else {
                if let Some(bytes) = &options.byte_budget {
                    bytes.left.give_back(bytes.longest_step);
                }
                return StepDecision::Wait;
            };
            options.reserved_ns = Some(due);
            self.slots.timing(index).waited_ns = now - due;
        }
        StepDecision::Step
    }

    /// The sync that comes before the next step, if one does. One of the pattern is a step itself.
    fn due_sync(&mut self) -> Option<FioSyncCall> {
        let options = self.options.as_mut()?;
        if self.is_in_fio_order && options.pending_step.is_none() {
            match self.pattern.next_action() {
                PatternAction::Step(step) => options.pending_step = Some(step),
                PatternAction::Sync(call) => {
                    self.left -= 1;
                    return Some(call);
                }
                PatternAction::End => {
                    self.end();
                    return None;
                }
            }
        }
        match self.after_write {
            AfterWrite::SyncEvery(writes, call) if options.writes_unsynced >= writes => {
                options.writes_unsynced = 0;
                Some(call.into())
            }
            _ => None,
        }
    }

    /// A sync in a slot of its own.
    fn sync_alone(&mut self, index: u32, call: FioSyncCall, now: u64) -> Request {
        self.slots.take(Slot {
            start_ns: now,
            offset: 0,
            len: 0,
            bytes_left: 0,
            stage: Stage::Sync,
        });
        *self.slots.timing(index) = SlotTiming {
            sync_start_ns: now,
            ..SlotTiming::default()
        };
        let written = match &mut self.options {
            Some(options) => options.written_since_sync.take(),
            None => None,
        };
        match call {
            FioSyncCall::Fsync => Request::new(index, Op::Sync(SyncCall::Fsync), 0, 0),
            FioSyncCall::Fdatasync => Request::new(index, Op::Sync(SyncCall::Fdatasync), 0, 0),
            FioSyncCall::FileRange(steps) => sync_of_range(index, steps, written),
        }
    }

    /// Notes that the step that was allowed has started in this slot.
    fn note_start(&mut self, index: u32, now: u64) {
        let Some(options) = &mut self.options else {
            return;
        };
        if let Some(pauses) = &mut options.pauses {
            pauses.count_start();
        }
        if let Some(flow) = &mut options.flow {
            flow.count_start();
        }
        if let Some(due) = options.reserved_ns.take() {
            // A start delayed by the backlog of the warm-up counts as late, too.
            options.late += u64::from(now - due > LATE_NS && now >= options.measure_ns);
            let mut delay_ns = 0;
            let found_slot_free = options.spare.take(now, self.slots.free_slots());
            if found_slot_free && now >= options.measure_ns {
                delay_ns = now - due;
                options.dispatch.delays.record(delay_ns);
            }
            self.slots.timing(index).delay_ns = delay_ns;
        }
    }

    /// Notes that the operation in a slot is done, `total_ns` after its intended start.
    pub(crate) fn note_answer(&mut self, index: u32, kind: OpKind, total_ns: u64) {
        let Some(options) = &mut self.options else {
            return;
        };
        // Only transactions have intended starts, not their parts.
        if options.transactions.is_some() && kind != OpKind::Transaction {
            return;
        }
        let delay_ns = std::mem::take(&mut self.slots.timing(index).delay_ns);
        if let Some(limit_ns) = options.limit_ns {
            options.dispatch.count_late(delay_ns, total_ns, limit_ns);
        }
    }

    /// Returns to the byte budget what a completed step of `len` bytes has not used of the longest
    /// step. Not to be called for a sync, which took nothing.
    #[inline(always)]
    pub(crate) fn return_bytes(&mut self, len: u32) {
        if let Some(options) = &self.options
            && let Some(bytes) = &options.byte_budget
        {
            let unused = bytes.longest_step.saturating_sub(u64::from(len));
            bytes.left.give_back(unused);
        }
    }

    /// Frees a slot in which everything is done at `now`.
    pub(crate) fn finish(&mut self, index: u32, now: u64) {
        let Slot { offset, len, .. } = *self.slots.get(index);
        if len > 0 {
            self.record_write(index, offset, WriteOutcome::Done);
            self.return_bytes(len);
        }
        self.free(index, now);
    }

    /// Frees a slot at `now`.
    #[inline(always)]
    pub(crate) fn free(&mut self, index: u32, now: u64) {
        if let Some(options) = &mut self.options {
            options.spare.look(now, self.slots.free_slots());
        }
        self.slots.free(index);
    }

    /// Lets `op` follow a write in the same slot, from `now` on: a sync or a write-back. In a group
    /// the sync of another slot may serve this one.
    pub(crate) fn follow(&mut self, index: u32, stage: Stage, op: Op, now: u64) {
        let slot = self.slots.get(index);
        (slot.stage, slot.bytes_left) = (stage, 0);
        let Slot { offset, len, .. } = *slot;
        self.slots.timing(index).sync_start_ns = now;
        if stage == Stage::Sync
            && let Some(group) = self.group_sync()
            && !group.join(index)
        {
            return;
        }
        self.follow_ups.push(Request::new(index, op, offset, len));
    }

    fn group_sync(&mut self) -> Option<&mut GroupSync> {
        self.options.as_mut()?.group_sync.as_mut()
    }

    /// Notes that a follow-up is sent. A sync of a group serves all whose writes have ended by now.
    fn note_sync(&mut self, request: &Request) {
        if matches!(request.op, Op::Sync(_))
            && let Some(group) = self.group_sync()
        {
            group.send();
        }
    }

    /// Notes that the sync in a slot has returned, and returns the other slots that it served.
    /// Sends the next sync, if any slot waits for one.
    #[cold]
    pub(crate) fn end_sync(&mut self, index: u32) -> Vec<u32> {
        let AfterWrite::Sync(call) = self.after_write else {
            return Vec::new();
        };
        let Some(group) = self.group_sync() else {
            return Vec::new();
        };
        let Some(ended) = group.end(index) else {
            return Vec::new();
        };
        if let Some(next) = ended.next {
            let Slot { offset, len, .. } = *self.slots.get(next);
            let sync = Request::new(next, Op::Sync(call), offset, len);
            self.follow_ups.push(sync);
        }
        ended.served
    }

    /// Counts a completed write without an immediate sync.
    pub(crate) fn count_unsynced(&mut self) {
        if let Some(options) = &mut self.options {
            options.writes_unsynced += 1;
        }
    }

    /// The time between waking up and a start, in nanoseconds.
    pub(crate) fn lead_ns(&self) -> u64 {
        match &self.options {
            Some(options) => options.lead.ns(),
            None => 0,
        }
    }

    /// Notes that the worker wanted to wake up at `wanted_ns`, and did at `woke_ns`.
    pub(crate) fn note_wake_up(&mut self, wanted_ns: u64, woke_ns: u64) {
        if let Some(options) = &mut self.options {
            options.lead.note_wake_up(wanted_ns, woke_ns);
        }
    }

    /// The wait of a worker with nothing to start.
    pub(crate) fn wait_mode(&self, now: u64) -> WaitMode {
        let Some(options) = &self.options else {
            return WaitMode::Completion;
        };
        let hold_ns = options.flow.as_ref().and_then(FlowMember::until_ns);
        let is_blocked = hold_ns.is_none() && options.reserved_ns.is_some_and(|due| due <= now);
        if is_blocked || options.pauses.as_ref().is_some_and(Pauses::is_waiting) {
            return WaitMode::Completion;
        }
        let start_ns = hold_ns.or(options.reserved_ns);
        let due = start_ns.or_else(|| options.pacer.as_ref().map(Pacer::next_due_ns));
        match due {
            Some(due) if !self.is_exhausted() && self.slots.peek().is_some() => {
                match due.saturating_sub(now).checked_sub(options.lead.ns()) {
                    None | Some(0) => WaitMode::Poll,
                    Some(left_ns) => WaitMode::AtMost(left_ns),
                }
            }
            _ => WaitMode::Completion,
        }
    }
}

/// The next step of the pattern; one of another kind than `kind` while its pacer has no start due.
fn paced_step(pattern: &mut Pattern, kind: OpKind, pacer: &Pacer, now: u64) -> Step {
    if pacer.next_due_ns() > now {
        return pattern.step_without(kind);
    }
    let step = pattern.step();
    if step.kind == kind {
        pacer.take_due(now);
    }
    step
}

/// The sync of what was written. As in fio it does nothing where no write has ended since the last
/// one. Of a range too long for a request, the file is synced up to its end.
fn sync_of_range(index: u32, steps: RangeSync, written: Option<Range<u64>>) -> Request {
    match written {
        Some(range) => {
            let len = u32::try_from(range.end - range.start).unwrap_or(0);
            Request::new(index, Op::SyncRange(steps), range.start, len)
        }
        None => Request::new(index, Op::SyncRange(RangeSync::NOTHING), 0, 0),
    }
}

/// The end of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// The target has taken the data.
    Done,
    /// The content of the block is unknown.
    Failed,
}

/// Says when the next step starts.
enum StepDecision {
    /// Now.
    Step,
    /// After this request.
    Instead(Request),
    /// Later, or never.
    Wait,
}

#[cfg(test)]
mod tests;
