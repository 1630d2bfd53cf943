//! The results of a run that goes on, from the snapshots of its workers.

use super::{Assignment, WorkerGroup, WorkerState};
use crate::measure::snapshot::lock_snapshot;
use crate::measure::worker::WorkerSchedule;
use crate::run::assemble::{RunContext, assemble};
use crate::run::counter_log::CounterLog;
use crate::run::totals::share_out;
use diskproof_model::measurement::{CpuTime, Measurement};
use diskproof_model::progress::{Control, Phase, Watch};

impl Assignment<'_> {
    /// What is known of it before its workers have ended.
    pub(crate) fn context(
        &self,
        schedule: WorkerSchedule,
        origin_ns: u64,
        control: Control,
    ) -> RunContext {
        let measure_ns = schedule.delayed(self.workload).measure_ns;
        let known = self.prepared.unmeasured(self.target, self.workload);
        RunContext::new(known, measure_ns, origin_ns, control)
    }
}

impl WorkerGroup<'_> {
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
                let of_threads = vec![CpuTime::default(); measurements.len()];
                share_out(&mut measurements, &of_threads, total);
            }
            watch.results_so_far(elapsed_ns, &measurements);
        }
    }

    /// `None` while the result of a worker that has ended is on its way.
    fn results_so_far(&self, schedule: WorkerSchedule) -> Option<Vec<Measurement>> {
        let each = self.assignments.iter().enumerate();
        let measured = each.map(|(index, assignment)| {
            let context = assignment.context(schedule, self.origin_ns, Control::Continue);
            let is_running = |number: &usize| {
                let handle = &self.handles[*number];
                handle.assignment == index && handle.state == WorkerState::Running
            };
            let running = (0..self.handles.len()).filter(is_running);
            let so_far = running.map(|number| {
                lock_snapshot(&self.handles[number].snapshot).result_so_far(context.measure_ns)
            });
            let ended = self.results[index].iter().cloned().map(Some);
            let results = ended.chain(so_far).collect::<Option<Vec<_>>>()?;
            Some(assemble(context, results))
        });
        measured.collect()
    }
}
