//! Measures the workloads of a plan, slice by slice.

use super::bench::Bench;
use super::job_commands::{run_commands_after, run_commands_before};
use super::running::{Running, Stepped};
use super::sink::{EarlyEnd, Sink};
use super::slices::{SHARE_MIN, SliceOrder, SliceSchedule};
use crate::progress_display::AfterSlice;
use diskproof_analysis::slices::may_end;
use diskproof_engine::RunError;
use diskproof_model::group::Group;
use diskproof_model::measurement::{Measurement, StopReason};
use diskproof_model::plan::{Layout, Plan};
use diskproof_model::slice::SliceSpan;
use std::time::Instant;

/// Workloads while they are measured: a step is a slice, or a group that has no slices.
pub(super) struct WorkloadsRun<'p> {
    order: SliceOrder<'p>,
}

impl<'p> WorkloadsRun<'p> {
    /// The run of this plan's workloads.
    pub(super) fn new(plan: &'p Plan) -> Self {
        Self {
            order: SliceOrder::new(plan),
        }
    }
}

impl Running for WorkloadsRun<'_> {
    fn step(&mut self, bench: &mut Bench, sink: &mut Sink) -> Result<Stepped, EarlyEnd> {
        let Some(turn) = self.order.next_turn() else {
            return match left_out_text(self.order.left_out()) {
                Some(why) => Err(why.into()),
                None => Ok(Stepped::Over),
            };
        };
        lay_out_for(turn.group, bench, sink)?;
        if self.order.schedule(&turn).done == 0 {
            run_commands_before(turn.group, &bench.job_commands, sink)?;
        }
        // Laying out takes a part of the time.
        let known = self.order.left_out().len();
        let share = self.order.share_until(&turn, bench.limit_end);
        if let Some(names) = self.order.left_out().get(known..)
            && !names.is_empty()
        {
            sink.verbosity.note(&format!(
                "the target is too slow for all methods in this time; not measured: {}",
                names.join(", ")
            ));
        }
        let schedule = self.order.schedule(&turn);
        let measured = match share {
            None if schedule.done > 0 => {
                end_without_rest(schedule, sink);
                Ok(())
            }
            None => measure_slice(schedule, SHARE_MIN, bench, sink),
            Some(share) => measure_slice(schedule, share, bench, sink),
        };
        if schedule.left == 0 || measured.is_err() {
            sink.keep_results();
            // A disk that hangs would hold what the command does to it, too.
            let hangs = matches!(
                measured,
                Err(EarlyEnd::Error(RunError::Stalled { .. }) | EarlyEnd::Unanswered { .. })
            );
            let undone = if hangs {
                Ok(())
            } else {
                run_commands_after(turn.group, &bench.job_commands, sink)
            };
            measured.and(undone)?;
        }
        Ok(Stepped::More)
    }

    /// Says of every workload whose turns were not over how much time it was to get.
    fn end(
        mut self: Box<Self>,
        ended: Result<(), EarlyEnd>,
        _bench: &mut Bench,
        sink: &mut Sink,
    ) -> Result<(), EarlyEnd> {
        if ended.is_err() {
            for schedule in self.order.unfinished() {
                schedule.drop_rest();
                mark_shortened(schedule, sink);
            }
            sink.keep_results();
        }
        ended
    }
}

/// Why a run is not whole that left these workloads out; `None` of one without any.
fn left_out_text(names: &[String]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    Some(format!(
        "the target, or this machine, is too slow for all methods in this time: {} not measured. \
         Measure longer (--time), or select methods (--only of commit)",
        match names.len() {
            1 => "1 is".to_owned(),
            count => format!("{count} are"),
        }
    ))
}

/// Ends a group that has been measured, because the time of the run is over.
fn end_without_rest(schedule: &mut SliceSchedule<'_>, sink: &mut Sink) {
    schedule.drop_rest();
    sink.progress.begin(schedule.group, Some(0));
    sink.progress.end_slice(AfterSlice::Over);
    let measured = mark_shortened(schedule, sink);
    sink.progress.end(&measured);
}

/// Notes whether a group which is over got less time than planned. Returns its measurements.
fn mark_shortened(schedule: &SliceSchedule<'_>, sink: &Sink) -> Vec<Measurement> {
    let mut measured = Vec::new();
    let workloads = schedule.group.workloads;
    for measurement in &mut sink.results().data.measurements {
        if !workloads
            .iter()
            .any(|workload| workload.name == measurement.workload.name)
        {
            continue;
        }
        measurement.shortened_from_ns = if schedule.is_shortened() {
            measurement.workload.stop.time_ns
        } else {
            None
        };
        measured.push(measurement.clone());
    }
    measured
}

/// Fills the scratch files that the next slice of a group needs.
fn lay_out_for(group: Group<'_>, bench: &mut Bench, sink: &mut Sink) -> Result<(), EarlyEnd> {
    sink.progress.begin(group, None);
    for workload in group.workloads {
        sink.begin_step(&workload.name);
        if workload.layout == Layout::Needed {
            bench.lay_out(workload, sink)?;
        }
    }
    Ok(())
}

/// Measures the next slice of a group in this share of its planned time; all of a group that has no
/// slices.
fn measure_slice(
    schedule: &mut SliceSchedule<'_>,
    share: f64,
    bench: &mut Bench,
    sink: &mut Sink,
) -> Result<(), EarlyEnd> {
    let group = schedule.group;
    let slices = schedule.next_slices(share);
    let slice_ns = if schedule.is_whole() {
        None
    } else {
        Some(slices[0].whole_ns())
    };
    sink.progress.begin(group, slice_ns);
    sink.begin_step(&group.workloads[0].name);
    if let (Some(cache), Some(state)) = (&mut bench.write_cache, group.workloads[0].write_cache) {
        cache.set(state).map_err(|error| error.to_string())?;
    }
    bench.check_own_targets(group.workloads)?;
    let session = bench.session.for_slice(schedule.done);
    let begin = Instant::now();
    let ran = session.run_slices(
        group,
        &slices,
        &schedule.earlier,
        &mut bench.targets,
        &mut sink.progress,
    );
    bench.mark_written_by(group.workloads);
    let mut measured = ran?;
    schedule.note_time(share, begin.elapsed());
    bench.attach_first_writes(&mut measured);
    if sink.progress.is_late() {
        for measurement in &mut measured {
            mark_complete_if_whole(measurement, group, &slices);
        }
    }
    let ended = bench.check_can_continue(&measured);
    schedule.note_measured(&slices[0], &measured);
    let so_far = sink.add(measured);
    if schedule.left > 0 && schedule.may_end() && so_far.iter().all(has_reached_precision) {
        schedule.left = 0;
    }
    if schedule.left > 0 && ended.is_ok() {
        sink.progress.end_slice(AfterSlice::GoesOn);
        return Ok(());
    }
    sink.progress.end_slice(AfterSlice::Over);
    let measured = if schedule.is_shortened() {
        mark_shortened(schedule, sink)
    } else {
        so_far
    };
    sink.progress.end(&measured);
    ended
}

/// True if a measurement has reached the precision goal of its workload; false without a goal.
fn has_reached_precision(measurement: &Measurement) -> bool {
    match measurement.workload.stop.precision {
        Some(goal) => may_end(measurement, goal),
        None => false,
    }
}

/// Marks a workload as complete that had the whole time of its slice when the run became late: the
/// interruption then took nothing from it.
fn mark_complete_if_whole(measured: &mut Measurement, group: Group<'_>, slices: &[SliceSpan]) {
    if measured.stopped != StopReason::Interrupted {
        return;
    }
    for (workload, slice) in group.workloads.iter().zip(slices) {
        if let Some(time_ns) = slice.time_ns
            && workload.name == measured.workload.name
            && measured.wall_ns >= time_ns
        {
            measured.stopped = StopReason::Time;
        }
    }
}
