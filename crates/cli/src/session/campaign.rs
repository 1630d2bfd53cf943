//! Carries out any campaign on prepared targets: opened and laid out once, then one cell after the
//! other, as the campaign decides. Also runs the commands that change a setting between two cells.

use super::prepare::{MeasuringJob, admit_all, refuse_target_as_output};
use super::prepare_command::{self, CommandEnd, CommandWait};
use super::ready::{Conditions, ReadyRun, measure_prepared};
use super::run::{EndedEarly, INTERRUPTED, TargetRun};
use super::watchdog::WatchdogResult;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::live::Live;
use crate::stall_timeout::stall_timeout;
use crate::stderr::{Verbosity, eprint_line};
use diskproof_analysis::campaign::{Campaign, CampaignCell, MeasuredCell, Next};
use diskproof_analysis::judge::RunFacts;
use diskproof_device::{Consent, OpenTarget, probe};
use diskproof_engine::RunError;
use diskproof_engine::watchdog::Heartbeat;
use diskproof_model::group::Group;
use diskproof_model::measurement::{EngineUse, Measurement, StopReason};
use diskproof_model::plan::{EngineChoice, Layout, Span, Workload};
use diskproof_model::progress::Control;
use diskproof_model::record::Stalled;
use diskproof_model::slice::TimeSlice;
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A campaign and what it needs to run.
pub(crate) struct CampaignJob<'a> {
    /// All targets, and the workloads with their time on all sides together.
    pub job: MeasuringJob<'a>,
    /// The sides.
    pub sides: Vec<CampaignSide>,
    /// Whether the target stays open while a command runs.
    pub reopening: Reopening,
    /// The command that runs after the last cell.
    pub cleanup: Option<String>,
}

/// A side of a campaign.
#[derive(Debug, Clone)]
pub(crate) struct CampaignSide {
    /// Index of its target.
    pub target: usize,
    /// The command that runs before each of its cells.
    pub prepare: Option<String>,
}

/// Whether a target stays open while a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reopening {
    /// It stays open.
    Never,
    /// It is closed before each command and opened again afterwards.
    BeforeEachCell,
}

/// What a campaign gave.
pub(crate) struct CampaignOutcome<Answer> {
    /// What all sides have in common.
    pub facts: RunFacts,
    /// The target of each side, as it was in its first cell.
    pub identities: Vec<TargetIdentity>,
    /// Measurements, with the number of the side as their target.
    pub measurements: Vec<Measurement>,
    /// Its answer; `None` where it ended early.
    pub answer: Option<Answer>,
    /// Why it ended early, or the error that ended it.
    pub ended: Result<EndedEarly, RunError>,
    /// Paths of the targets that hang.
    pub hung: Vec<String>,
    /// Where targets hung between two cells.
    pub stalled: Option<Stalled>,
    /// The signals.
    pub interrupt: Interrupt,
}

/// Measures the cells of a campaign.
pub(super) trait MeasureCell {
    /// Measures one of them.
    fn measure(&mut self, cell: &CampaignCell) -> Result<CellOutcome, RunError>;
}

/// How a cell ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CellOutcome {
    /// As planned.
    Measured(TimeSlice),
    /// And with it the campaign: why, in a sentence.
    Ended(String),
}

/// Measures what the campaign asks for, until it is over; also returns its answer.
pub(super) fn carry_out<C: Campaign>(
    campaign: &mut C,
    cells: &mut impl MeasureCell,
) -> Result<(EndedEarly, Option<C::Answer>), RunError> {
    let mut done = Vec::new();
    loop {
        let cell = match campaign.next(&done) {
            Next::Done(answer) => return Ok((None, Some(answer))),
            Next::Run(cell) => cell,
        };
        match cells.measure(&cell)? {
            CellOutcome::Measured(slice) => done.push(MeasuredCell { cell: *cell, slice }),
            CellOutcome::Ended(why) => return Ok((Some(why), None)),
        }
    }
}

/// What the thread of a campaign leaves behind.
struct Findings<Answer> {
    answer: Option<Answer>,
    identities: Vec<Option<TargetIdentity>>,
}

type SharedFindings<Answer> = Arc<Mutex<Findings<Answer>>>;

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the targets and carries out the campaign on them.
pub(crate) fn measure_campaign<C>(
    job: CampaignJob<'_>,
    campaign: C,
) -> anyhow::Result<CampaignOutcome<C::Answer>>
where
    C: Campaign + Send + 'static,
    C::Answer: Send + 'static,
{
    let CampaignJob {
        job,
        sides,
        reopening,
        cleanup,
    } = job;
    let verbosity = job.flags.verbosity();
    for path in &job.flags.files() {
        refuse_target_as_output(path, &job.identities)?;
    }
    let interrupt = Interrupt::listen()?;
    let own_target = |side: &CampaignSide| job.identities[side.target].clone();
    let own_targets: Vec<TargetIdentity> = sides.iter().map(own_target).collect();
    let shared: SharedFindings<C::Answer> = Arc::new(Mutex::new(Findings {
        answer: None,
        identities: vec![None; sides.len()],
    }));
    let conditions = Conditions {
        consent: job.flags.destructive.consent(&job.identities)?,
        stall_timeout: stall_timeout()?,
        interrupt: &interrupt,
        tool: None,
        kept_name: None,
    };
    let cells = CellConditions {
        sides,
        reopening,
        engines: EngineSharing::OfEachWorkload,
    };
    let (facts, end) = measure_prepared(job, conditions, |ready| {
        let end = supervise(ready, cells, Arc::clone(&shared), campaign);
        if let Some(command) = cleanup {
            clean_up(&command, &interrupt, verbosity);
        }
        end
    })?;
    Ok(outcome(facts, end, &shared, own_targets, interrupt))
}

/// Carries out a campaign whose sides are the targets.
pub(super) fn supervise_on_targets<C>(
    ready: ReadyRun<'_>,
    campaign: C,
) -> Result<WatchdogResult, Failure>
where
    C: Campaign + Send + 'static,
    C::Answer: Send + 'static,
{
    let side = |target| CampaignSide {
        target,
        prepare: None,
    };
    let sides: Vec<CampaignSide> = (0..ready.identities.len()).map(side).collect();
    let findings = Findings {
        answer: None,
        identities: vec![None; sides.len()],
    };
    let conditions = CellConditions {
        sides,
        reopening: Reopening::Never,
        engines: EngineSharing::OfAllWorkloads,
    };
    supervise(ready, conditions, Arc::new(Mutex::new(findings)), campaign)
}

/// Under which conditions the cells of a campaign are measured.
struct CellConditions {
    sides: Vec<CampaignSide>,
    reopening: Reopening,
    engines: EngineSharing,
}

/// Which cells are measured by the engine that the first of them chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EngineSharing {
    /// Those of the same workload.
    OfEachWorkload,
    /// All that need a queue, and all that need none: trying engines takes time.
    OfAllWorkloads,
}

impl EngineSharing {
    fn key(self, workload: &Workload) -> String {
        match self {
            Self::OfEachWorkload => workload.name.clone(),
            Self::OfAllWorkloads if workload.depth == 1 => "single".to_owned(),
            Self::OfAllWorkloads => "queue".to_owned(),
        }
    }
}

/// Carries out a campaign on a separate thread.
fn supervise<C>(
    ready: ReadyRun<'_>,
    conditions: CellConditions,
    findings: SharedFindings<C::Answer>,
    mut campaign: C,
) -> Result<WatchdogResult, Failure>
where
    C: Campaign + Send + 'static,
    C::Answer: Send + 'static,
{
    let (interrupt, consent) = (ready.interrupt.clone(), ready.consent.clone());
    ready.run(Box::new(move |run, live| {
        let mut cells = PreparedCells {
            run,
            conditions: &conditions,
            consent: &consent,
            live,
            interrupt: &interrupt,
            findings: &findings,
            span_bytes: None,
            spans: Vec::new(),
            engines: BTreeMap::new(),
            moved: BTreeMap::new(),
            slices: 0,
        };
        cells.run(&mut campaign)
    }))
}

fn outcome<Answer>(
    facts: RunFacts,
    end: WatchdogResult,
    shared: &Mutex<Findings<Answer>>,
    planned: Vec<TargetIdentity>,
    interrupt: Interrupt,
) -> CampaignOutcome<Answer> {
    let mut findings = locked(shared);
    let seen = std::mem::take(&mut findings.identities)
        .into_iter()
        .zip(planned);
    CampaignOutcome {
        facts,
        identities: seen
            .map(|(seen, planned)| seen.unwrap_or(planned))
            .collect(),
        measurements: end.results.data.measurements,
        answer: findings.answer.take(),
        ended: end.ended,
        hung: end.hung,
        stalled: end.stalled,
        interrupt,
    }
}

/// Runs the command after the last cell, however the run ended: it restores a setting. Only a
/// signal that comes meanwhile ends it.
fn clean_up(command: &str, interrupt: &Interrupt, verbosity: Verbosity) {
    let wait = CommandWait {
        interrupt: interrupt.signal().is_none().then_some(interrupt),
        heartbeat: &Heartbeat::default(),
    };
    match prepare_command::run("--cleanup", command, &wait) {
        CommandEnd::Done => verbosity.note(&format!("ran --cleanup '{command}'")),
        CommandEnd::Failed(why) => eprint_line(&format!("warning: {why}")),
        CommandEnd::Interrupted => eprint_line(&format!(
            "warning: --cleanup '{command}' was interrupted, and may not have restored the setting"
        )),
    }
}

/// Cells on open targets.
struct PreparedCells<'a, Answer> {
    run: &'a mut TargetRun,
    conditions: &'a CellConditions,
    consent: &'a Consent,
    live: &'a mut Live,
    interrupt: &'a Interrupt,
    findings: &'a SharedFindings<Answer>,
    /// The span of all workloads, where the targets differ in what was laid out.
    span_bytes: Option<u64>,
    /// The span of each side, where the sides are layers of one target.
    spans: Vec<Span>,
    /// The engines, as the first cell that each serves chose it.
    engines: BTreeMap<String, EngineUse>,
    /// Bytes that each workload has moved on each target.
    moved: BTreeMap<(usize, String), u64>,
    /// Cells so far.
    slices: u64,
}

impl<Answer> PreparedCells<'_, Answer> {
    /// The layout, then the campaign.
    fn run<C: Campaign<Answer = Answer>>(
        &mut self,
        campaign: &mut C,
    ) -> Result<EndedEarly, RunError> {
        if self.conditions.reopening == Reopening::Never && self.lay_out()? == Control::Interrupt {
            return Ok(Some(INTERRUPTED.to_owned()));
        }
        let (ended, answer) = carry_out(campaign, self)?;
        locked(self.findings).answer = answer;
        Ok(ended)
    }

    /// Fills all scratch files, and takes the span that all targets have.
    fn lay_out(&mut self) -> Result<Control, RunError> {
        let plan = Arc::clone(&self.run.plan);
        let Some(first) = plan.workloads.iter().find(|w| w.layout == Layout::Needed) else {
            return Ok(Control::Continue);
        };
        self.live.begin(Group::alone(first), Some(0));
        let control = self.run.lay_out(first, self.live)?;
        self.run.first_writes.clear();
        let targets = &self.run.targets;
        let is_device = |target: &OpenTarget| target.identity().kind == TargetKind::BlockDevice;
        // Devices are compared as a whole.
        if !targets.iter().all(is_device) {
            self.span_bytes = targets.iter().map(OpenTarget::usable_bytes).min();
        }
        if let Some(layers) = plan
            .layers
            .as_ref()
            .filter(|_| control == Control::Continue)
        {
            self.spans = self.run.find_layers(layers)?;
        }
        Ok(control)
    }

    /// Makes the setting of a side effective. Returns why the campaign cannot go on.
    fn switch_to(&mut self, number: usize, command: &str) -> Result<Option<String>, RunError> {
        let path = self.run.plan.targets[self.conditions.sides[number].target].clone();
        let before = self
            .run
            .targets
            .first()
            .map(|target| target.identity().clone());
        if self.conditions.reopening == Reopening::BeforeEachCell {
            self.run.targets.clear();
        }
        let wait = CommandWait {
            interrupt: Some(self.interrupt),
            heartbeat: &self.live.heartbeat(),
        };
        let begin = Instant::now();
        let end = prepare_command::run("--prepare", command, &wait);
        self.live.put_off(begin.elapsed());
        match end {
            CommandEnd::Done => {}
            CommandEnd::Interrupted => return Ok(Some(INTERRUPTED.to_owned())),
            // What umount says of a filesystem with an open file.
            CommandEnd::Failed(why)
                if self.conditions.reopening == Reopening::Never && why.contains("busy") =>
            {
                return Ok(Some(format!(
                    "{why}. diskproof keeps the target open while the command runs; --reopen \
                     closes it first"
                )));
            }
            CommandEnd::Failed(why) => return Ok(Some(why)),
        }
        let identity = match probe(Path::new(&path)) {
            Ok(identity) => identity,
            Err(error) => return Ok(Some(format!("after --prepare '{command}': {error}"))),
        };
        let is_same = before.is_none_or(|before| before.is_same(&identity));
        if self.conditions.reopening == Reopening::BeforeEachCell {
            // A scratch file overwrites nothing, wherever it is. What the user released is the file
            // or device that the path named at the start.
            if !is_same && self.run.plan.writes() && identity.kind != TargetKind::Directory {
                return Ok(Some(format!(
                    "--prepare '{command}' replaced {path} with a file or device that was not \
                     released; nothing was written to it"
                )));
            }
            if let Err(error) = self.open_again(&identity) {
                return Ok(Some(format!("after --prepare '{command}': {error}")));
            }
            if self.lay_out()? == Control::Interrupt {
                return Ok(Some(INTERRUPTED.to_owned()));
            }
        } else if !is_same {
            return Ok(Some(format!(
                "--prepare '{command}' replaced {path}; use --reopen to measure the new target"
            )));
        }
        locked(self.findings).identities[number].get_or_insert(identity);
        Ok(None)
    }

    fn open_again(&mut self, identity: &TargetIdentity) -> Result<(), Failure> {
        let identities = std::slice::from_ref(identity);
        for admission in admit_all(&self.run.plan, identities, &[], self.consent)? {
            self.run.targets.push(OpenTarget::open(admission)?);
        }
        Ok(())
    }

    /// The workload of a cell as it runs here.
    fn prepared(&self, cell: &CampaignCell) -> Workload {
        let mut workload = cell.workload.clone();
        if let Some(span) = self.spans.get(cell.side) {
            workload.span = *span;
        }
        if workload.span.length_bytes.is_none() {
            workload.span.length_bytes = self.span_bytes;
        }
        // Another engine on one side would measure the engine.
        if let Some(engine) = self.engines.get(&self.conditions.engines.key(&workload)) {
            workload.engine = EngineChoice::Fixed(engine.used);
        }
        workload
    }

    /// Adds what a cell gave to the results of its side.
    fn add(&mut self, cell: &CampaignCell, workload: &Workload, mut measurement: Measurement) {
        let name = workload.name.clone();
        let key = self.conditions.engines.key(&cell.workload);
        let bytes: u64 = measurement.ops.values().map(|op| op.bytes).sum();
        let warmup = workload.warmup_ns as f64 / measurement.wall_ns.max(1) as f64;
        let target = self.conditions.sides[cell.side].target;
        let moved = self.moved.entry((target, name)).or_default();
        *moved += (bytes as f64 * (1.0 + warmup)) as u64;
        measurement.target = cell.side;
        measurement.engine.asked = cell.workload.engine;
        let first = self.engines.entry(key);
        let first = first.or_insert_with(|| measurement.engine.clone());
        if measurement.engine.fallbacks.is_empty() {
            measurement.engine.fallbacks.clone_from(&first.fallbacks);
        }
        let plan = Arc::clone(&self.run.plan);
        let asked = plan.workloads.iter().find(|one| one.name == workload.name);
        if let Some(asked) = asked {
            measurement.workload = asked.clone();
        }
        self.run.add(vec![measurement]);
    }
}

impl<Answer> MeasureCell for PreparedCells<'_, Answer> {
    fn measure(&mut self, cell: &CampaignCell) -> Result<CellOutcome, RunError> {
        let side = self.conditions.sides[cell.side].clone();
        self.run.results().step = Some(cell.workload.name.clone());
        if let Some(command) = &side.prepare
            && let Some(why) = self.switch_to(cell.side, command)?
        {
            return Ok(CellOutcome::Ended(why));
        }
        let workload = self.prepared(cell);
        let time_ns = workload.stop.time_ns.unwrap_or(0) + workload.warmup_ns;
        let plan = Arc::clone(&self.run.plan);
        let place = plan.workloads.iter().position(|w| w.name == workload.name);
        let group = Group {
            first: place.unwrap_or(0),
            workloads: std::slice::from_ref(&workload),
        };
        self.live.begin(group, Some(time_ns));
        let key = (side.target, workload.name.clone());
        let moved = self.moved.get(&key).copied().unwrap_or_default();
        let session = self.run.session.for_slice(self.slices, moved);
        self.slices += 1;
        let target = &mut self.run.targets[side.target..=side.target];
        let measured = match session.run_together(group, target, self.live) {
            Err(RunError::Interrupted { .. }) => {
                return Ok(CellOutcome::Ended(INTERRUPTED.to_owned()));
            }
            other => other?,
        };
        self.live.end_slice(false);
        let Some(mut measurement) = measured.into_iter().next() else {
            return Ok(CellOutcome::Ended(INTERRUPTED.to_owned()));
        };
        // A part of a slice has no counterpart on the other side.
        if measurement.stopped == StopReason::Interrupted {
            return Ok(CellOutcome::Ended(INTERRUPTED.to_owned()));
        }
        measurement.target = side.target;
        let ended = self.run.ended_early(std::slice::from_ref(&measurement));
        let slice = TimeSlice::of(&measurement);
        self.add(cell, &workload, measurement);
        Ok(ended.map_or(CellOutcome::Measured(slice), CellOutcome::Ended))
    }
}

#[cfg(test)]
mod tests;
