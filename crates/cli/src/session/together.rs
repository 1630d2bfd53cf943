//! Measures workloads in slots at the same instants on all hosts. A slot that the run is not ready
//! for is skipped whole; the timetable never moves.

use super::bench::Bench;
use super::running::{Running, Stepped};
use super::sink::{EarlyEnd, Sink};
use super::slices::is_much_less;
use crate::interrupt;
use crate::progress_display::AfterSlice;
use diskproof_engine::RunError;
use diskproof_model::group::Group;
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::Plan;
use diskproof_model::slice::{EarlierSlices, SliceSpan, add_slice};
use diskproof_model::timetable::Slot;
use diskproof_model::together::{SkippedSlot, SliceSlot, TogetherRecord};
use diskproof_model::window::TimeSlice;
use std::time::{Duration, Instant};

/// A workload is prepared at most this long before its slot, so that its threads do not wait idle
/// for longer.
const PREPARED_BEFORE_NS: i64 = 1_000_000_000;
/// The interval at which a wait looks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Workloads while they are measured in slots: the first step fills the scratch files, each further
/// one is a slot.
pub(super) struct TogetherRun<'p> {
    groups: Vec<GroupInSlots<'p>>,
    slots: Vec<Slot>,
    /// The index of the next slot.
    next: usize,
    is_filled: bool,
}

/// A group, and what its slots so far have shown.
struct GroupInSlots<'p> {
    group: Group<'p>,
    /// What its slots so far have done on each target, if it is a single workload.
    earlier: Vec<EarlierSlices>,
}

impl<'p> TogetherRun<'p> {
    /// The run of the slots in this plan's timetable.
    pub(super) fn new(plan: &'p Plan) -> Self {
        let mut groups = Vec::new();
        for group in plan.groups() {
            groups.push(GroupInSlots {
                group,
                earlier: Vec::new(),
            });
        }
        Self {
            groups,
            slots: plan.timetable().unwrap_or_default(),
            next: 0,
            is_filled: false,
        }
    }

    /// Fills the scratch files for all workloads, so that no slot waits for it.
    fn fill(&mut self, bench: &mut Bench, sink: &mut Sink) -> Result<(), EarlyEnd> {
        self.is_filled = true;
        let record = bench.together.clone();
        let first_slot_ns = record.as_ref().map_or(0, |record| record.first_slot_ns);
        sink.results().data.together = record;
        let wait_ns = first_slot_ns - bench.session.elapsed_ns() as i64;
        // The wait is part of the announced time only where it follows a fence.
        sink.progress
            .extend_deadline(Duration::from_nanos(wait_ns.max(0).unsigned_abs()));
        for in_slots in &self.groups {
            sink.progress.begin(in_slots.group, None);
            for workload in in_slots.group.workloads {
                sink.begin_step(&workload.name);
                bench.lay_out(workload, sink)?;
            }
        }
        let ready_ns = bench.session.elapsed_ns();
        update_record(sink, |together| together.ready_ns = Some(ready_ns));
        Ok(())
    }

    /// Measures a slot, or skips it.
    fn measure(&mut self, slot: Slot, bench: &mut Bench, sink: &mut Sink) -> Result<(), EarlyEnd> {
        let first_slot_ns = (bench.together.as_ref()).map_or(0, |record| record.first_slot_ns);
        let start_ns = first_slot_ns.saturating_add_unsigned(slot.start_ns);
        let group = self.groups[slot.group].group;
        sink.progress
            .begin(group, Some(slot.warmup_ns + slot.time_ns));
        sink.begin_step(&group.workloads[0].name);
        wait_until(start_ns - PREPARED_BEFORE_NS, bench, sink)?;
        let late_ns = bench.session.elapsed_ns() as i64 - start_ns;
        if late_ns > 0 {
            self.skip(slot, late_ns.unsigned_abs(), sink);
            return Ok(());
        }
        let session = bench
            .session
            .for_slice(slot.part)
            .starting_at(start_ns.unsigned_abs());
        let spans = self.spans(slot);
        let measured = match session.run_slices(
            group,
            &spans,
            &self.groups[slot.group].earlier,
            &mut bench.targets,
            &mut sink.progress,
        ) {
            Ok(measured) => measured,
            Err(RunError::NotReady { late_ns }) => {
                self.skip(slot, late_ns, sink);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.keep(slot, measured, bench, sink)
    }

    /// Keeps what a slot has measured.
    fn keep(
        &mut self,
        slot: Slot,
        mut measured: Vec<Measurement>,
        bench: &mut Bench,
        sink: &mut Sink,
    ) -> Result<(), EarlyEnd> {
        bench.attach_first_writes(&mut measured);
        let ended = bench.check_can_continue(&measured);
        let in_slots = &mut self.groups[slot.group];
        if let [only] = in_slots.group.workloads {
            let warmup_ns = only.warmup_ns.min(slot.warmup_ns);
            add_slice(&mut in_slots.earlier, warmup_ns, &measured);
        }
        for measurement in &mut measured {
            let mut slice = TimeSlice::from_measurement(measurement);
            slice.slot = Some(SliceSlot {
                number: slot.number,
                began_ns: measurement.began_ns.unwrap_or(measurement.start_ns),
            });
            measurement.slices.push(slice);
        }
        let so_far = sink.add(measured);
        self.show_end(slot, &so_far, sink);
        ended
    }

    /// Notes a slot that was not measured.
    fn skip(&self, slot: Slot, late_ns: u64, sink: &mut Sink) {
        let skipped = SkippedSlot {
            slot: slot.number,
            workload: self.groups[slot.group].group.workloads[0].name.clone(),
            late_ns,
        };
        update_record(sink, |together| together.skipped.push(skipped));
        self.show_end(slot, &[], sink);
    }

    /// Shows that a slot has ended, and with the last one its group.
    fn show_end(&self, slot: Slot, so_far: &[Measurement], sink: &mut Sink) {
        if slot.part + 1 < slot.parts {
            sink.progress.end_slice(AfterSlice::GoesOn);
        } else {
            sink.progress.end_slice(AfterSlice::Over);
            sink.progress.end(so_far);
        }
    }

    /// What each workload of a slot measures in it.
    fn spans(&self, slot: Slot) -> Vec<SliceSpan> {
        let in_slots = &self.groups[slot.group];
        let mut spans = Vec::new();
        for workload in in_slots.group.workloads {
            let whole = SliceSpan::whole(workload);
            if slot.parts == 1 {
                spans.push(whole);
                continue;
            }
            let block = u64::from(workload.block_bytes);
            spans.push(SliceSpan {
                time_ns: Some(slot.time_ns),
                warmup_ns: slot.warmup_ns,
                bytes: workload
                    .stop
                    .bytes
                    .map(|bytes| (bytes / slot.parts / block).max(1) * block),
                ..whole
            });
        }
        spans
    }
}

impl Running for TogetherRun<'_> {
    fn step(&mut self, bench: &mut Bench, sink: &mut Sink) -> Result<Stepped, EarlyEnd> {
        if !self.is_filled {
            self.fill(bench, sink)?;
            return Ok(Stepped::More);
        }
        let Some(slot) = self.slots.get(self.next).copied() else {
            return Ok(Stepped::Over);
        };
        self.next += 1;
        self.measure(slot, bench, sink)?;
        Ok(Stepped::More)
    }

    /// Says of every workload whose slots were not over how much time it was to get.
    fn end(
        self: Box<Self>,
        ended: Result<(), EarlyEnd>,
        _bench: &mut Bench,
        sink: &mut Sink,
    ) -> Result<(), EarlyEnd> {
        if ended.is_err() {
            for measurement in &mut sink.results().data.measurements {
                if let Some(planned_ns) = measurement.workload.stop.time_ns
                    && is_much_less(measurement.wall_ns, planned_ns)
                {
                    measurement.shortened_from_ns = Some(planned_ns);
                }
            }
            sink.keep_results();
        }
        ended
    }
}

/// Changes what is recorded of the run together with others.
fn update_record(sink: &Sink, update: impl FnOnce(&mut TogetherRecord)) {
    if let Some(together) = &mut sink.results().data.together {
        update(together);
    }
}

/// Waits until this time after the start of the run, unless the user ends the run.
fn wait_until(instant_ns: i64, bench: &Bench, sink: &Sink) -> Result<(), EarlyEnd> {
    let left_ns = instant_ns - bench.session.elapsed_ns() as i64;
    let end = Instant::now() + Duration::from_nanos(left_ns.max(0).unsigned_abs());
    let heartbeat = sink.progress.heartbeat();
    loop {
        heartbeat.beat();
        if interrupt::signal().is_some() {
            return Err(EarlyEnd::interrupted());
        }
        let time_left = end.saturating_duration_since(Instant::now());
        if time_left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(time_left.min(POLL_INTERVAL));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::plan::{Task, Workload, Workloads};

    const BLOCK_BYTES: u64 = 4096;

    /// What a workload that moves so many bytes measures in one of so many slots.
    fn span(bytes: u64, parts: u64) -> SliceSpan {
        let mut reads = Workload::named("reads");
        reads.block_bytes = BLOCK_BYTES as u32;
        reads.stop.bytes = Some(bytes);
        reads.stop.time_ns = Some(60);
        reads.warmup_ns = 6;
        let plan = Plan {
            tasks: vec![Task::Workloads(Workloads::as_planned(vec![reads]))],
            ..Plan::default()
        };
        let run = TogetherRun::new(&plan);
        let slot = Slot {
            number: 0,
            group: 0,
            part: 0,
            parts,
            start_ns: 0,
            warmup_ns: 1,
            time_ns: 20,
        };
        run.spans(slot).remove(0)
    }

    /// Each slot has an equal part of the bytes in whole blocks: a host that moved more in one than
    /// the others would measure alone there.
    #[test]
    fn slots_share_the_bytes_of_a_workload() {
        for (bytes, parts, expected) in [
            (30 * BLOCK_BYTES, 3, 10 * BLOCK_BYTES),
            (32 * BLOCK_BYTES, 3, 10 * BLOCK_BYTES),
            (BLOCK_BYTES, 3, BLOCK_BYTES),
        ] {
            let span = span(bytes, parts);
            assert_eq!(span.bytes, Some(expected), "{bytes} in {parts}");
            assert_eq!((span.time_ns, span.warmup_ns), (Some(20), 1));
        }
        // A single slot is all of the workload.
        let whole = span(BLOCK_BYTES, 1);
        assert_eq!(
            (whole.bytes, whole.time_ns, whole.warmup_ns),
            (Some(BLOCK_BYTES), Some(60), 6)
        );
    }
}
