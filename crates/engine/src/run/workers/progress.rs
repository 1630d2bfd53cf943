//! What the watcher sees of a run: how far each workload is, how long its target is silent, and the
//! results so far, from the snapshots of the workers.

use super::{Assignment, WorkerGroup, WorkerState};
use crate::lock::lock;
use crate::measure::worker::WorkerSchedule;
use crate::run::assemble::{RunContext, assemble};
use crate::run::counter_log::CounterLog;
use crate::run::hang::silence_ns;
use crate::run::totals::share_out;
use diskproof_model::measurement::{CpuTime, Measurement};
use diskproof_model::progress::{Control, Phase, Progress, Silence, Watch};

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
    /// Shows the watcher every workload, and combines its answers.
    pub(super) fn tick(
        &self,
        phase: Phase,
        schedule: WorkerSchedule,
        now: u64,
        known: &mut [bool],
        watch: &mut dyn Watch,
    ) -> Control {
        let silence = self.silence(schedule, now);
        for (member, known) in known.iter_mut().enumerate() {
            match self.tick_one(member, (phase, silence), schedule, now, watch) {
                Control::Interrupt => return Control::Interrupt,
                Control::Enough => *known = true,
                Control::Continue => {}
            }
        }
        if self.group.is_known(known) {
            Control::Enough
        } else {
            Control::Continue
        }
    }

    /// How long requests of a target have been in flight without any completion; 0 where none is in
    /// flight.
    pub(super) fn silence_of(&self, target: usize, schedule: WorkerSchedule, now: u64) -> u64 {
        let handles = self.handles.iter().filter(|handle| {
            self.states[handle.assignment].working > 0
                && self.assignments[handle.assignment].target == target
        });
        silence_ns(
            handles.map(|handle| lock(&handle.snapshot)),
            schedule.start_ns,
            now,
        )
        .unwrap_or(0)
    }

    /// The target with the longest silence.
    fn silence(&self, schedule: WorkerSchedule, now: u64) -> Option<Silence> {
        let of_target = |target| Silence {
            target,
            length_ns: self.silence_of(target, schedule, now),
        };
        (0..self.stops.len())
            .map(of_target)
            .filter(|silence| silence.length_ns > 0)
            .max_by_key(|silence| silence.length_ns)
    }

    fn tick_one(
        &self,
        member: usize,
        (phase, silence): (Phase, Option<Silence>),
        schedule: WorkerSchedule,
        now: u64,
        watch: &mut dyn Watch,
    ) -> Control {
        let workload = &self.group.workloads[member];
        let series = lock(&self.published[member]).clone();
        let (phase, since) = match phase {
            Phase::Measure if now < schedule.measure_ns => (Phase::Warmup, schedule.start_ns),
            other => (other, schedule.measure_ns),
        };
        let elapsed_ns = now.saturating_sub(since);
        let total = series.total();
        let share =
            |part: u64, whole: Option<u64>| whole.map(|whole| part as f64 / whole.max(1) as f64);
        // Bytes and operations are counted over all targets, but limited for each.
        let all = |each: Option<u64>| each.map(|each| each.saturating_mul(self.stops.len() as u64));
        let limits = [
            share(elapsed_ns, self.group.time_ns()),
            share(total.bytes, all(workload.stop.bytes)),
            share(total.ops, all(workload.stop.ops)),
        ];
        let done = limits
            .into_iter()
            .flatten()
            .reduce(f64::max)
            .map(|share| share.min(1.0));
        watch.tick(&Progress {
            name: &workload.name,
            phase,
            elapsed_ns,
            done,
            series: &series,
            silence,
            resume_bytes: None,
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
                lock(&self.handles[number].snapshot).result_so_far(context.measure_ns)
            });
            let ended = self.states[index].results.iter().cloned().map(Some);
            let results = ended.chain(so_far).collect::<Option<Vec<_>>>()?;
            Some(assemble(context, results))
        });
        measured.collect()
    }
}
