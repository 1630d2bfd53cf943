//! Decides what one completion means: it counts, its follow-up starts in the same slot, or it
//! failed, came short or was interrupted.

use crate::io::{END_OF_FILE, Op, Request};
use crate::load::generator::{AfterWrite, RequestGenerator, WriteOutcome};
use crate::load::slots::{Slot, SlotTiming, Stage, counted_kind};
use crate::measure::counters::Counters;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::RangeSync;

impl Counters {
    /// Counts one completion, and starts its follow-up in the same slot.
    #[inline(always)]
    pub(super) fn complete(
        &mut self,
        generator: &mut RequestGenerator,
        index: u32,
        result: i32,
        now: u64,
    ) {
        let slot = generator.slots.get(index);
        let (stage, len, latency_ns) = (slot.stage, slot.len, now - slot.start_ns);
        // Follow-ups of a write move no data and complete with 0.
        if result != slot.bytes_left as i32 {
            self.complete_short(generator, index, result, now);
            return;
        }
        match stage {
            Stage::Transfer(OpKind::Read) => {
                self.record(OpKind::Read, len, latency_ns, now);
                self.note_read(index);
            }
            Stage::Transfer(OpKind::Write) if !generator.write_is_followed(index) => {
                self.record(OpKind::Write, len, latency_ns, now)
            }
            _ => {
                self.complete_durable(generator, index, now);
                return;
            }
        }
        if generator.has_options() {
            let offset = generator.slots.get(index).offset;
            let waited_ns = generator.slots.timing(index).waited_ns;
            self.record_waited(counted_kind(stage), latency_ns, waited_ns);
            generator.note_answer(index, counted_kind(stage), latency_ns + waited_ns);
            generator.record_write(index, offset, WriteOutcome::Done);
            generator.return_bytes(len);
            if generator.continue_transaction(index, now) {
                return;
            }
        }
        generator.free(index, now);
    }

    /// Counts an operation without data, a write with a follow-up, or the follow-up itself, and
    /// starts what follows.
    fn complete_durable(&mut self, generator: &mut RequestGenerator, index: u32, now: u64) {
        use OpKind::{Commit, Read, Sync, Transaction, Trim};
        let Slot {
            start_ns,
            len,
            stage,
            ..
        } = *generator.slots.get(index);
        let SlotTiming {
            waited_ns,
            sync_start_ns,
            ..
        } = *generator.slots.timing(index);
        let latency_ns = now - start_ns;
        let follow = match (stage, generator.after_write) {
            // `complete` counts reads. What moves no data is followed by the next of its step only.
            (Stage::Transfer(kind @ (Read | Trim | Sync | Commit | Transaction)), _) => {
                self.record_both(kind, len, latency_ns, waited_ns, now);
                if generator.continue_step(index, kind, now) {
                    return;
                }
                None
            }
            (Stage::Transfer(OpKind::Write), AfterWrite::WriteBack) => {
                Some((Stage::WriteBack, Op::SyncRange(RangeSync::COMPLETE)))
            }
            (Stage::Transfer(OpKind::Write), AfterWrite::Durable) => {
                self.record_both(OpKind::Write, len, latency_ns, waited_ns, now);
                self.record_both(OpKind::Commit, len, latency_ns, waited_ns, now);
                generator.note_answer(index, OpKind::Commit, latency_ns + waited_ns);
                None
            }
            (Stage::Transfer(OpKind::Write), after) => {
                self.record_both(OpKind::Write, len, latency_ns, waited_ns, now);
                generator.count_unsynced();
                if let AfterWrite::Sync(call) = after {
                    Some((Stage::Sync, Op::Sync(call)))
                } else {
                    None
                }
            }
            (Stage::WriteBack, _) => {
                self.record_both(OpKind::Write, len, latency_ns, waited_ns, now);
                generator.note_answer(index, OpKind::Write, latency_ns + waited_ns);
                None
            }
            (Stage::Sync, _) => {
                self.record(OpKind::Sync, 0, now - sync_start_ns, now);
                if len > 0 {
                    self.record_both(OpKind::Commit, len, latency_ns, waited_ns, now);
                    generator.note_answer(index, OpKind::Commit, latency_ns + waited_ns);
                }
                if let Some(answered) = generator.answered_transaction(index, now) {
                    let (latency_ns, waited_ns) = (answered.latency_ns, answered.waited_ns);
                    let kind = OpKind::Transaction;
                    self.record_both(kind, answered.bytes, latency_ns, waited_ns, now);
                    generator.note_answer(index, kind, latency_ns + waited_ns);
                }
                None
            }
        };
        match follow {
            Some((stage, op)) => generator.follow(index, stage, op, now),
            None if generator.continue_transaction(index, now) => {}
            None => generator.finish(index, now),
        }
        if stage == Stage::Sync {
            self.complete_served(generator, index, 0, now);
        }
    }

    /// Completes the slots that the sync in this slot served besides its own.
    fn complete_served(
        &mut self,
        generator: &mut RequestGenerator,
        index: u32,
        result: i32,
        now: u64,
    ) {
        for served in generator.end_sync(index) {
            self.complete(generator, served, result, now);
        }
    }

    /// Completes a request that was in flight while the process did not run: it does not count.
    /// What follows it in its slot does not count either, except the write after a trim, which
    /// starts anew.
    #[cold]
    fn complete_interrupted(&mut self, generator: &mut RequestGenerator, index: u32, now: u64) {
        let Slot { len, stage, .. } = *generator.slots.get(index);
        let began_ns = generator.slots.began_ns(index);
        let follow = match (stage, generator.after_write) {
            (Stage::Transfer(OpKind::Write), AfterWrite::WriteBack) => {
                Some((Stage::WriteBack, Op::SyncRange(RangeSync::COMPLETE)))
            }
            (Stage::Transfer(OpKind::Write), AfterWrite::Sync(call)) => {
                Some((Stage::Sync, Op::Sync(call)))
            }
            _ => None,
        };
        // With its write-back a write is one operation.
        if !matches!(follow, Some((Stage::WriteBack, _))) {
            self.skip(counted_kind(stage), len, now - began_ns, now);
        }
        let needs_sync = matches!(
            generator.after_write,
            AfterWrite::Sync(_) | AfterWrite::SyncEvery(..)
        );
        if stage == Stage::Transfer(OpKind::Write) && needs_sync {
            generator.count_unsynced();
        }
        if let Stage::Transfer(kind) = stage
            && generator.continue_step(index, kind, now)
        {
            return;
        }
        match follow {
            Some((stage, op)) => {
                generator.follow(index, stage, op, now);
                generator.slots.mark_interrupted(index);
            }
            None => generator.finish(index, now),
        }
    }

    /// Completes a request whose result is not the number of bytes that were left: an interrupted
    /// one, an error, the end of the file, or a short transfer.
    #[cold]
    fn complete_short(
        &mut self,
        generator: &mut RequestGenerator,
        index: u32,
        result: i32,
        now: u64,
    ) {
        let is_interrupted = generator.slots.take_interrupted(index);
        let Slot {
            stage, bytes_left, ..
        } = *generator.slots.get(index);
        if is_interrupted && result == bytes_left as i32 {
            self.complete_interrupted(generator, index, now);
        } else if result <= 0 {
            self.complete_failed(generator, index, result, now);
        } else {
            self.continue_transfer(generator, index, result as u32);
            if is_interrupted {
                generator.slots.mark_interrupted(index);
            }
            return;
        }
        if stage == Stage::Sync {
            self.complete_served(generator, index, result, now);
        }
    }

    /// Counts an error, or the end of the file, and frees the slot.
    fn complete_failed(
        &mut self,
        generator: &mut RequestGenerator,
        index: u32,
        result: i32,
        now: u64,
    ) {
        let errno = if result == 0 { END_OF_FILE } else { -result };
        let Slot {
            len, offset, stage, ..
        } = *generator.slots.get(index);
        let began_ns = generator.slots.began_ns(index);
        generator.record_write(index, offset, WriteOutcome::Failed);
        if len > 0 {
            generator.return_bytes(len);
        }
        generator.free(index, now);
        self.fail(counted_kind(stage), errno, now - began_ns, now);
    }

    /// Sends the rest of a short transfer in the same slot, with the same start.
    fn continue_transfer(
        &mut self,
        generator: &mut RequestGenerator,
        index: u32,
        moved_bytes: u32,
    ) {
        let shift = generator.write_buffer_shift;
        let slot = generator.slots.get(index);
        let kind = counted_kind(slot.stage);
        slot.bytes_left = slot.bytes_left.saturating_sub(moved_bytes);
        let done = slot.len - slot.bytes_left;
        let (op, buffer) = if kind == OpKind::Read {
            (Op::Read, index)
        } else {
            (Op::Write, index + shift)
        };
        let rest = Request {
            buffer,
            skip: done,
            ..Request::new(index, op, slot.offset + u64::from(done), slot.bytes_left)
        };
        self.count_short(kind);
        generator.follow_ups.push(rest);
    }
}
