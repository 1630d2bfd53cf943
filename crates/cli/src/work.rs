//! What a run does with its targets once they are open, step by step. Knows nothing of who waits
//! for it.

use crate::execute::Filling;
use crate::output::Voice;
use crate::resume;
use crate::supervise::Watcher;
use diskproof_device::OpenTarget;
use diskproof_engine::{RunError, Session};
use diskproof_model::errno::remedy;
use diskproof_model::measurement::{Measurement, StopReason};
use diskproof_model::plan::{Layout, Plan, Workload};
use diskproof_model::progress::Control;
use diskproof_model::surface::SurfaceMeasurement;
use diskproof_model::units::format_duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What was measured so far.
#[derive(Default)]
pub struct Harvest {
    /// Workloads that are over.
    pub measurements: Vec<Measurement>,
    /// The survey.
    pub surface: Option<SurfaceMeasurement>,
    /// What is under way, or was last.
    pub under_way: Option<String>,
}

/// Shared with whoever waits for the run.
pub type SharedHarvest = Arc<Mutex<Harvest>>;

/// A run on open targets.
pub struct Work {
    /// The engine.
    pub session: Session,
    /// What to do.
    pub plan: Arc<Plan>,
    /// How far scratch files are filled.
    pub filling: Filling,
    /// The targets, in the order of the plan.
    pub targets: Vec<OpenTarget>,
    /// Where results go.
    pub harvest: SharedHarvest,
}

impl Work {
    /// The survey of the first target. `Some` sentence when the rest makes no sense any more.
    fn survey(&mut self, watch: &mut Watcher) -> Result<Option<String>, RunError> {
        let (Some(survey), Some(target)) = (&self.plan.survey, self.targets.first_mut()) else {
            return Ok(None);
        };
        self.harvest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .under_way = Some("the survey".to_owned());
        let surface = match self.session.survey(survey, (0, target), watch) {
            Err(RunError::Interrupted { .. }) => return Ok(Some(INTERRUPTED.to_owned())),
            other => other?,
        };
        watch.live.surveyed(&surface);
        let ended = resume::ended_early(&surface, target.identity(), INTERRUPTED);
        self.harvest().surface = Some(surface);
        Ok(ended)
    }

    fn harvest(&self) -> MutexGuard<'_, Harvest> {
        self.harvest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The survey, then all workloads. `Some` sentence when the rest makes no sense any more.
    pub fn all(&mut self, watch: &mut Watcher) -> Result<Option<String>, RunError> {
        if let Some(ended) = self.survey(watch)? {
            return Ok(Some(ended));
        }
        let plan = Arc::clone(&self.plan);
        for group in plan.groups() {
            watch.live.begin(group);
            self.harvest().under_way = group
                .workloads
                .first()
                .map(|workload| workload.name.clone());
            for workload in group
                .workloads
                .iter()
                .filter(|workload| workload.layout == Layout::Needed)
            {
                if self.fill(workload, watch)? == Control::Interrupt {
                    return Ok(Some(INTERRUPTED.to_owned()));
                }
            }
            let measured = match self.session.run_together(group, &mut self.targets, watch) {
                Err(RunError::Interrupted { .. }) => return Ok(Some(INTERRUPTED.to_owned())),
                other => other?,
            };
            watch.live.end(&measured);
            let ended = self.ended_early(&measured);
            self.harvest().measurements.extend(measured);
            if ended.is_some() {
                return Ok(ended);
            }
        }
        Ok(None)
    }

    /// Before a workload that needs content. Within limits, what the layout workload could not
    /// write in its time is written now, up to the least size that makes sense; then the file
    /// is as large as what it holds.
    fn fill(&mut self, workload: &Workload, watch: &mut Watcher) -> Result<Control, RunError> {
        for target in self
            .targets
            .iter_mut()
            .filter(|t| t.is_scratch() && t.usable_bytes() < t.capacity_bytes())
        {
            let capacity = target.capacity_bytes();
            let (wanted, time_ns) = match self.filling {
                Filling::Span => (
                    workload
                        .span
                        .length_bytes
                        .map_or(capacity, |length| workload.span.start_bytes + length),
                    None,
                ),
                Filling::Within(limits) if target.usable_bytes() == 0 => {
                    (capacity, Some(limits.time_ns))
                }
                Filling::Within(limits) => (limits.bytes_min, Some(limits.time_ns)),
            };
            if self
                .session
                .lay_out(target, wanted.min(capacity), time_ns, watch)?
                == Control::Interrupt
            {
                return Ok(Control::Interrupt);
            }
            if matches!(self.filling, Filling::Within(_)) {
                target.trim_to_written()?;
            }
        }
        Ok(Control::Continue)
    }

    /// Closes the targets. What was given up is made durable before it is let go, so that nothing
    /// of ours is still on its way when somebody else takes it. A target that hangs would hang
    /// this too: the paths of those.
    pub fn close(self, voice: Voice) -> Vec<String> {
        let answering = self
            .targets
            .iter()
            .filter(|target| !target.is_scratch() && !target.is_left_open());
        answering
            .filter_map(|target| target.write_back().err())
            .for_each(|error| voice.say(&error.to_string()));
        self.targets
            .iter()
            .filter(|target| target.is_left_open())
            .map(|target| target.identity().path.clone())
            .collect()
    }

    fn ended_early(&self, measured: &[Measurement]) -> Option<String> {
        let path = |m: &Measurement| {
            self.targets
                .get(m.target)
                .map_or("", |t| t.identity().path.as_str())
        };
        let hung = |m: &Measurement| {
            let (path, name, lasted) = (
                path(m),
                &m.workload.name,
                format_duration(m.hang?.lasted_ns),
            );
            Some(format!(
                "{path} did not answer any more while '{name}' ran and was given up after \
                 {lasted}; see the kernel log (dmesg)"
            ))
        };
        measured.iter().find_map(hung).or_else(|| {
            measured.iter().find_map(|m| match m.stopped {
                StopReason::Interrupted => Some(INTERRUPTED.to_owned()),
                StopReason::Errors => {
                    let errors: Vec<String> = m
                        .ops
                        .values()
                        .flat_map(|op| op.errors.iter())
                        .map(|(errno, n)| format!("{n} × {errno}"))
                        .collect();
                    let names = m
                        .ops
                        .values()
                        .flat_map(|op| op.errors.keys())
                        .map(String::as_str);
                    let (path, name) = (path(m), &m.workload.name);
                    Some(format!(
                        "{path} failed too often while '{name}' ran ({}); {}",
                        errors.join(", "),
                        remedy(names)
                    ))
                }
                _ => None,
            })
        })
    }
}

const INTERRUPTED: &str = "interrupted by the user; what was measured before stands";
