//! What the watcher sees of a run: how far each workload is, and how long its target is silent.

use super::WorkerGroup;
use crate::measure::snapshot::lock_snapshot;
use crate::measure::worker::WorkerSchedule;
use crate::run::hang::silence_ns;
use diskproof_model::progress::{Control, Phase, Progress, Silence, Watch};
use std::sync::PoisonError;

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
            self.working[handle.assignment] > 0
                && self.assignments[handle.assignment].target == target
        });
        silence_ns(
            handles.map(|handle| lock_snapshot(&handle.snapshot)),
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
        let series = self.published[member]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
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
}
