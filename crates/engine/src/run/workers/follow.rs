//! Waits for the workers of a run, stops them early, and replaces those that hang by their
//! snapshots. Shows the watcher how far each workload is, how long its target is silent, and the
//! results so far.

use super::{Assignment, WorkerGroup, abandon_target};
use crate::io::clock::ActiveClock;
use crate::lock::lock;
use crate::measure::result::{EndReason, StuckWorker, WorkerEnding, WorkerResult};
use crate::measure::worker::WorkerSchedule;
use crate::run::assemble::{RunContext, assemble};
use crate::run::error::RunError;
use crate::run::hang::{merge_hangs, silence_ns, time_out_worker};
use crate::run::silence_log::{Drain, SilenceNow};
use crate::run::spawn::WorkerReport;
use crate::run::supervise::{ChannelInbox, Event, Overdue, Supervisor, WaitLimits};
use crate::run::totals::{CounterLog, divide_cpu_time};
use diskproof_model::measurement::{CpuTime, Measurement};
use diskproof_model::progress::{Control, Phase, Progress, Silence, Watch};
use std::sync::atomic::Ordering;

impl WorkerGroup<'_> {
    /// Waits for all workers and calls the watcher meanwhile. Returns the watcher's last answer.
    pub(crate) fn follow(
        &mut self,
        phase: Phase,
        schedule: WorkerSchedule,
        clock: &ActiveClock,
        counter_log: &mut CounterLog<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Control, RunError> {
        let limits = self.wait_limits();
        let mut supervisor = Supervisor::new(clock.now(), self.stops.len(), limits);
        let mut control = Control::Continue;
        let mut failure = None;
        // For each workload, whether its results suffice the watcher.
        let mut is_known = vec![false; self.group.workloads.len()];
        while self.states.iter().any(|state| state.working > 0) {
            let before_ns = clock.now();
            let decided = self.schedule_decided_by(schedule, before_ns);
            supervisor.check_at(before_ns + counter_log.due_in_ns(decided.measure_ns, before_ns));
            supervisor.end_at(self.latest(decided).end_ns);
            let inbox = ChannelInbox {
                reports: &self.reports,
                clock,
            };
            match supervisor.next(&inbox) {
                Event::Report(report) => {
                    if let Err(error) = self.on_report(report) {
                        failure.get_or_insert(error);
                    }
                }
                Event::Check(now) => {
                    self.note_silences(decided, now, &mut supervisor);
                    self.log_silences(phase, decided, now);
                }
                Event::Overdue(overdue) => {
                    self.end_stalled(overdue, decided, clock.now());
                    continue;
                }
                // The results of the others are not the whole result.
                Event::Lost => return Err(failure.unwrap_or_else(|| self.lost_worker())),
            }
            let now = clock.now();
            let decided = self.schedule_decided_by(schedule, now);
            counter_log.read_if_due(decided.measure_ns, now);
            self.report_results(phase, decided, now, counter_log, watch);
            // Also after the stop: the user should see what the end waits for.
            let wanted = self.tick(phase, decided, now, &mut is_known, watch);
            if control == Control::Continue && wanted != Control::Continue {
                control = wanted;
                self.stop_all();
            }
            if wanted == Control::Interrupt {
                let after_order = WaitLimits {
                    end_ns: Some(self.stall_timeout.ended().ns()),
                    ..limits
                };
                supervisor.cut_short(after_order, now);
            }
            self.note_stops(now, &mut supervisor);
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(control),
        }
    }

    /// Time ends the workers, whatever their target answers. Where only a budget of operations or
    /// bytes does, a target may be silent for a limited time.
    fn wait_limits(&self) -> WaitLimits {
        let silence_ns = match self.group.time_ns() {
            Some(_) => None,
            None => Some(self.stall_timeout.without_deadline_ns()),
        };
        WaitLimits {
            silence_ns,
            silence_at_end_ns: None,
            end_ns: Some(self.stall_timeout.ns()),
        }
    }

    /// Returns the error of a worker that failed, which ends the others.
    fn on_report(&mut self, report: WorkerReport) -> Result<(), RunError> {
        match report {
            // A report after the timeout is too late.
            WorkerReport::Done { thread, .. } | WorkerReport::Failed { thread, .. }
                if !self.handles[thread].is_running => {}
            WorkerReport::Done {
                thread,
                result,
                cpu,
            } => self.on_finished(thread, *result, cpu),
            WorkerReport::Failed { thread, error } => {
                let error = self.thread_error(thread, error);
                self.mark_finished(thread);
                self.stop_all();
                return Err(error);
            }
            // Every thread was ready before the start.
            WorkerReport::Ready { .. } => {}
        }
        Ok(())
    }

    /// Passes to the supervisor when each target has completed something last.
    fn note_silences(&self, schedule: WorkerSchedule, now: u64, supervisor: &mut Supervisor) {
        // Looking takes the locks of the workers: only where it counts.
        if self.group.time_ns().is_some() {
            return;
        }
        for target in 0..self.stops.len() {
            supervisor.heard(target, now - self.silence_of(target, schedule, now));
        }
    }

    /// Looks for silences outside of the measured time, which a layout does not have.
    fn log_silences(&mut self, phase: Phase, decided: WorkerSchedule, now: u64) {
        let schedule = match phase {
            Phase::Layout => decided.measuring_from(u64::MAX),
            Phase::WakeUp
            | Phase::FirstRequests
            | Phase::SetUp
            | Phase::Warmup
            | Phase::Measure
            | Phase::Verify
            | Phase::Survey => decided,
        };
        for index in 0..self.silences.len() {
            let target = self.silences[index].target;
            let seen = SilenceNow {
                length_ns: self.silence_of(target, schedule, now),
                is_answered: self.has_answered(target),
                now_ns: now,
                schedule: self.latest(schedule),
                is_ending: self.stops[target].load(Ordering::Relaxed),
                drain: self.drain_of(target),
            };
            self.silences[index].look(seen);
        }
    }

    /// True if a worker of a target has had an answer since its counting began.
    fn has_answered(&self, target: usize) -> bool {
        self.handles.iter().any(|handle| {
            self.assignments[handle.assignment].target == target
                && lock(&handle.snapshot).so_far.last_ns > 0
        })
    }

    /// The drain of a target: full where one of its workloads has no pace.
    fn drain_of(&self, target: usize) -> Drain {
        let is_paced = self
            .assignments
            .iter()
            .filter(|assignment| assignment.target == target)
            .all(|assignment| assignment.workload.rate.is_some());
        if is_paced { Drain::Paced } else { Drain::Full }
    }

    /// Passes to the supervisor which targets have the order to end.
    fn note_stops(&self, now: u64, supervisor: &mut Supervisor) {
        for (target, stop) in self.stops.iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                supervisor.end(target, now);
            }
        }
    }

    /// The schedule with the end of the workload that ends last.
    fn latest(&self, schedule: WorkerSchedule) -> WorkerSchedule {
        let end_ns = self
            .group
            .workloads
            .iter()
            .map(|workload| schedule.for_workload(workload, self.group).end_ns)
            .max()
            .unwrap_or(schedule.end_ns);
        WorkerSchedule { end_ns, ..schedule }
    }

    fn stop_all(&self) {
        for stop in &self.stops {
            stop.store(true, Ordering::Relaxed);
        }
    }

    /// Marks a thread as finished; returns the index of its assignment.
    fn mark_finished(&mut self, thread: usize) -> usize {
        let handle = &mut self.handles[thread];
        handle.is_running = false;
        self.states[handle.assignment].working -= 1;
        handle.assignment
    }

    /// An assignment is over with its last thread. If it ended before its time, by budget or
    /// errors, the other workloads on its target end, too, unless its plan says otherwise: their
    /// figures would belong to another load from here on. Its plan may also end all targets.
    fn on_finished(&mut self, thread: usize, result: WorkerResult, cpu: CpuTime) {
        let assignment = self.mark_finished(thread);
        let state = &mut self.states[assignment];
        state.results.push(result);
        state.cpu += cpu;
        let is_over = state.working == 0 && state.results.iter().all(ended_early);
        let Assignment {
            workload, target, ..
        } = self.assignments[assignment];
        let ends = &workload.shape.ends;
        let has_failed = state
            .results
            .iter()
            .any(|result| result.ending.is_failure());
        if (is_over && ends.ends_group) || (has_failed && ends.failure_ends_group) {
            self.stop_all();
        } else if is_over && !workload.ends_alone && !self.group.is_alone() {
            self.stops[target].store(true, Ordering::Relaxed);
        }
    }

    /// Ends the workers of a target that hangs, and takes their last snapshots as their results. No
    /// further request goes to it.
    fn end_stalled(&mut self, overdue: Overdue, schedule: WorkerSchedule, now: u64) {
        let target = overdue.target;
        let mut stuck = Vec::new();
        for (thread, handle) in self.handles.iter().enumerate() {
            if handle.is_running && self.assignments[handle.assignment].target == target {
                stuck.push(thread);
            }
        }
        if stuck.is_empty() {
            return;
        }
        let silence_ns = self.silence_of(target, schedule, now);
        let late = self.stall_timeout.is_late(silence_ns);
        self.stops[target].store(true, Ordering::Relaxed);
        abandon_target(self.assignments, target);
        for thread in stuck {
            let assignment = self.mark_finished(thread);
            let Assignment {
                workload, prepared, ..
            } = self.assignments[assignment];
            let own_schedule = schedule.for_workload(workload, self.group);
            let worker = StuckWorker {
                workload,
                engine: prepared.known.engine.used,
                start_ns: own_schedule.start_ns,
                measure_ns: own_schedule.measure_ns,
                ending: ending_by(own_schedule, overdue.ending_since_ns),
                is_late: late,
            };
            let timed_out = time_out_worker(&self.handles[thread].snapshot, worker, now);
            let state = &mut self.states[assignment];
            state.hang = Some(merge_hangs(state.hang, timed_out.hang));
            state.results.push(timed_out.result);
        }
    }
}

/// The end of a worker that does not answer, of a target that got the order to end at `order_ns`:
/// its own time, where that was over by then. The workload that ends last may end later.
fn ending_by(schedule: WorkerSchedule, order_ns: u64) -> WorkerEnding {
    if order_ns >= schedule.end_ns {
        WorkerEnding {
            reason: EndReason::Time,
            at_ns: schedule.end_ns,
        }
    } else {
        WorkerEnding {
            reason: EndReason::Stopped,
            at_ns: order_ns,
        }
    }
}

/// True if a worker ended before its time, without an order.
fn ended_early(result: &WorkerResult) -> bool {
    !matches!(result.ending, EndReason::Time | EndReason::Stopped)
}

impl Assignment<'_> {
    /// The context in which its results are assembled, as far as it is known before its workers
    /// have ended.
    pub(crate) fn context(
        &self,
        schedule: WorkerSchedule,
        origin_ns: u64,
        control: Control,
    ) -> RunContext {
        let delay_ns = self.workload.shape.starts.delay_ns;
        let measure_ns = schedule.measure_ns.saturating_add(delay_ns);
        RunContext::new(self.prepared.known.clone(), measure_ns, origin_ns, control)
    }
}

impl WorkerGroup<'_> {
    /// Shows the watcher every workload, and combines its answers. Sets `is_known` for each
    /// workload whose results suffice the watcher.
    pub(super) fn tick(
        &self,
        phase: Phase,
        schedule: WorkerSchedule,
        now: u64,
        is_known: &mut [bool],
        watch: &mut dyn Watch,
    ) -> Control {
        let silence = self.longest_silence(schedule, now);
        for (member, is_member_known) in is_known.iter_mut().enumerate() {
            match self.tick_workload(member, phase, silence, schedule, now, watch) {
                Control::Interrupt => return Control::Interrupt,
                Control::Enough => *is_member_known = true,
                Control::Continue => {}
            }
        }
        if self.group.may_end(is_known) {
            Control::Enough
        } else {
            Control::Continue
        }
    }

    /// The time, in nanoseconds, for which requests of a target have been in flight without any
    /// completion; 0 where none is in flight.
    pub(super) fn silence_of(&self, target: usize, schedule: WorkerSchedule, now: u64) -> u64 {
        let snapshots = self
            .handles
            .iter()
            .filter(|handle| {
                self.states[handle.assignment].working > 0
                    && self.assignments[handle.assignment].target == target
            })
            .map(|handle| lock(&handle.snapshot));
        silence_ns(snapshots, schedule.start_ns, now).unwrap_or(0)
    }

    /// The silence of the target that has been silent longest; `None` where none is silent.
    fn longest_silence(&self, schedule: WorkerSchedule, now: u64) -> Option<Silence> {
        let mut longest: Option<Silence> = None;
        for target in 0..self.stops.len() {
            let length_ns = self.silence_of(target, schedule, now);
            let is_longest = match &longest {
                Some(other) => length_ns >= other.length_ns,
                None => length_ns > 0,
            };
            if is_longest {
                longest = Some(Silence { target, length_ns });
            }
        }
        longest
    }

    /// Shows the watcher the progress of one workload, over all its targets.
    fn tick_workload(
        &self,
        member: usize,
        phase: Phase,
        silence: Option<Silence>,
        schedule: WorkerSchedule,
        now: u64,
        watch: &mut dyn Watch,
    ) -> Control {
        let workload = &self.group.workloads[member];
        let series = lock(&self.published[member]).clone();
        let (shown_phase, since_ns) = match phase {
            Phase::Measure if now < schedule.measure_ns => (Phase::Warmup, schedule.start_ns),
            other => (other, schedule.measure_ns),
        };
        let elapsed_ns = now.saturating_sub(since_ns);
        let total = series.total();
        // Bytes and operations are counted over all targets, but limited for each.
        let targets = self
            .assignments
            .iter()
            .filter(|assignment| assignment.member == member)
            .count() as u64;
        let shares = [
            share_done(elapsed_ns, self.group.time_of(workload), 1),
            share_done(total.bytes, workload.stop.bytes, targets),
            share_done(total.ops, workload.stop.ops, targets),
        ];
        let done = shares
            .into_iter()
            .flatten()
            .reduce(f64::max)
            .map(|share| share.min(1.0));
        watch.tick(&Progress {
            done,
            silence,
            ..Progress::new(&workload.name, shown_phase, elapsed_ns, &series)
        })
    }

    /// Gives the watcher the results so far, where it wants them.
    pub(super) fn report_results(
        &self,
        phase: Phase,
        schedule: WorkerSchedule,
        now: u64,
        counter_log: &CounterLog<'_>,
        watch: &mut dyn Watch,
    ) {
        let elapsed_ns = now.saturating_sub(schedule.measure_ns);
        if phase == Phase::Measure
            && elapsed_ns > 0
            && watch.wants_results(elapsed_ns)
            && let Some(mut measurements) = self.results_so_far(schedule)
        {
            if let Some(total) = counter_log.process_so_far(now) {
                // The threads report their own times only at their end.
                let thread_times = vec![CpuTime::default(); measurements.len()];
                divide_cpu_time(&mut measurements, &thread_times, total);
            }
            watch.results_so_far(elapsed_ns, &measurements);
        }
    }

    /// The results so far; `None` while the result of a worker that has ended is on its way.
    fn results_so_far(&self, schedule: WorkerSchedule) -> Option<Vec<Measurement>> {
        let mut measurements = Vec::new();
        for (index, assignment) in self.assignments.iter().enumerate() {
            let context = assignment.context(schedule, self.origin_ns, Control::Continue);
            let mut results = self.states[index].results.clone();
            for handle in &self.handles {
                if handle.assignment == index && handle.is_running {
                    let snapshot = lock(&handle.snapshot);
                    results.push(snapshot.result_so_far(context.measure_ns)?);
                }
            }
            measurements.push(assemble(context, results));
        }
        Some(measurements)
    }
}

/// The share of a limit that is done, where each of the targets has the limit; `None` without one.
fn share_done(done: u64, limit: Option<u64>, targets: u64) -> Option<f64> {
    let whole = limit?.saturating_mul(targets);
    Some(done as f64 / whole.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stuck_worker_ends_with_its_own_time_and_not_with_the_longest() {
        let schedule = WorkerSchedule {
            start_ns: 0,
            measure_ns: 1,
            end_ns: 10,
        };
        let by_time = ending_by(schedule, 70);
        assert_eq!((by_time.reason, by_time.at_ns), (EndReason::Time, 10));
        let by_order = ending_by(schedule, 8);
        assert_eq!((by_order.reason, by_order.at_ns), (EndReason::Stopped, 8));
    }
}
