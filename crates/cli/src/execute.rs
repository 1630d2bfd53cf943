//! From a plan to a record: gate, run, judge. The same for every verb that measures.

use crate::failure::Failure;
use crate::health::{HealthFlags, ask_health, warn_of_failing};
use crate::interrupt::Interrupt;
use crate::live::Live;
use crate::output::Voice;
use crate::resume;
use diskproof_analysis::expect::{Expected, SurfaceStep};
use diskproof_analysis::judge::{RunFacts, judge};
use diskproof_engine::{RunError, Session, measure_clock};
use diskproof_model::errno::remedy;
use diskproof_model::measurement::{Measurement, OpKind, StopReason};
use diskproof_model::plan::{Layout, Plan, SyncPolicy, Workload};
use diskproof_model::progress::Control;
use diskproof_model::record::{Record, Tool};
use diskproof_model::surface::SurfaceMeasurement;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{format_duration, parse_duration};
use diskproof_report::terminal::budget_line;
use diskproof_target::{Admission, Consent, Intent, OpenTarget, admit, host_facts};

/// What the run needs besides the plan.
pub struct Run<'a> {
    /// What to do.
    pub plan: Plan,
    /// The targets, probed.
    pub identities: Vec<TargetIdentity>,
    /// What the user gives up.
    pub consent: &'a Consent,
    /// How far scratch files are filled beside the measured workloads.
    pub filling: Filling,
    /// Thresholds.
    pub expected: &'a [Expected],
    /// The user's words.
    pub note: Option<String>,
    /// Whether the disks are asked of their health.
    pub health: &'a HealthFlags,
    /// Where progress goes.
    pub voice: Voice,
}

/// How far scratch files are filled beside the measured workloads, so that reads find data and writes do not make the file grow.
#[derive(Debug, Clone, Copy)]
pub enum Filling {
    /// Each workload finds its whole span written, however long that takes.
    Span,
    /// Within limits; the file is then as large as what it holds.
    Within(LayoutLimits),
}

/// Limits of laying out a scratch file beside the measured workloads.
#[derive(Debug, Clone, Copy)]
pub struct LayoutLimits {
    /// A smaller file would sit in small caches.
    pub bytes_min: u64,
    /// But no longer than this.
    pub time_ns: u64,
}

/// What came of a run.
pub struct Outcome {
    /// The record; partial when the run ended early.
    pub record: Record,
    /// Why it ended early, if by an error.
    pub failure: Option<Failure>,
    /// Paths of the targets that do not answer, and may hold up the end of this process.
    pub hung: Vec<String>,
}

/// Runs the plan. An error before the first workload is an `Err`; a later one is part of the outcome, with everything measured before.
pub fn execute(run: Run<'_>, interrupt: &Interrupt) -> Result<Outcome, Failure> {
    let give_up_after_ns = give_up_after_ns()?;
    let Run { plan, identities, consent, filling, expected, note, health, voice } = run;
    let admissions = vet(&plan, &identities, expected, consent)?;
    admissions.iter().filter_map(Admission::hint).for_each(|hint| voice.say(&hint));
    let mut targets = admissions.into_iter().map(OpenTarget::open).collect::<Result<Vec<_>, _>>()?;
    // Before the measuring, so that the asking does not disturb it.
    let health = ask_health(&identities, health);
    warn_of_failing(&health, voice);
    voice.say(&budget_line(&plan, &identities));
    let (clock, host, started) = (measure_clock(), host_facts(), timestamp());
    let run_id = run_id();
    let mut live = Live::new(&plan, voice, interrupt.clone());
    let session = Session::new(plan.seed);
    let session = give_up_after_ns.map_or(session, |ns| session.giving_up_after(ns));
    let mut work = Work { session, plan: &plan, filling, targets: &mut targets, measurements: Vec::new(), surface: None };
    let ended = work.all(&mut live);
    live.finish();
    let Work { measurements, surface, .. } = work;
    settle(&targets, voice);
    let hung = targets.iter().filter(|target| target.is_left_open()).map(|target| target.identity().path.clone()).collect();
    let ended_early = match &ended {
        Ok(None) => None,
        Ok(Some(why)) => Some(why.clone()),
        Err(error) => Some(error.to_string()),
    };
    let tool = Tool { name: "diskproof".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let partial = ended_early.is_some();
    let facts =
        RunFacts { tool, run_id, started, partial, ended_early, note, host, clock, plan: plan.clone(), targets: identities, health };
    Ok(Outcome { record: judge(facts, &measurements, surface.as_ref(), expected), failure: ended.err().map(Failure::Run), hung })
}

/// What was given up is made durable before it is let go, so that nothing of ours is still on its way when somebody else takes it. A target that
/// hangs would hang this too.
fn settle(targets: &[OpenTarget], voice: Voice) {
    let answering = targets.iter().filter(|target| !target.is_scratch() && !target.is_left_open());
    answering.filter_map(|target| target.write_back().err()).for_each(|error| voice.say(&error.to_string()));
}

/// How long a target may leave requests without an answer after the end of a workload. A multipath that queues while it has no path, say, needs longer.
const GIVE_UP_AFTER: &str = "DISKPROOF_GIVE_UP_AFTER";
fn give_up_after_ns() -> Result<Option<u64>, Failure> {
    let Some(text) = std::env::var_os(GIVE_UP_AFTER).filter(|text| !text.is_empty()) else { return Ok(None) };
    let text = text.to_string_lossy();
    parse_duration(&text).map(Some).map_err(|error| Failure::Usage(format!("{GIVE_UP_AFTER}={text}: {error}")))
}

/// Everything that can be said against a plan before it begins: thresholds that it cannot answer, targets that the gate refuses. Opens nothing for
/// writing.
pub fn vet(plan: &Plan, identities: &[TargetIdentity], expected: &[Expected], consent: &Consent) -> Result<Vec<Admission>, Failure> {
    expected.iter().try_for_each(|expected| answerable(plan, expected))?;
    let enter = |identity: &TargetIdentity| {
        let intent = match plan.scratch_bytes {
            Some(size_bytes) if identity.kind == TargetKind::Directory => Intent::Scratch { size_bytes },
            _ if plan.writes() => Intent::Overwrite(consent),
            _ => Intent::Read,
        };
        Ok(admit(identity.clone(), intent)?)
    };
    identities.iter().map(enter).collect()
}

/// A misspelt workload would be found missing only after the run.
fn answerable(plan: &Plan, expected: &Expected) -> Result<(), Failure> {
    let wrong = |why: String| Err(Failure::Usage(format!("--expect '{}': {why}", expected.expression)));
    if let Some(step) = expected.surface_step() {
        let steps = plan.survey.as_ref();
        let is_planned = match step {
            SurfaceStep::Curve => steps.is_some_and(|survey| survey.curve.is_some()),
            SurfaceStep::Access => steps.is_some_and(|survey| survey.access.is_some()),
            SurfaceStep::Burst => steps.is_some_and(|survey| survey.burst.is_some()),
        };
        return if is_planned { Ok(()) } else { wrong(format!("no {} is measured here", step.as_str())) };
    }
    if let Some(skipped) = plan.skipped.iter().find(|skipped| skipped.workload == expected.workload) {
        return wrong(format!("{} is not measured here: {}", skipped.workload, skipped.why));
    }
    let Some(workload) = plan.workloads.iter().find(|workload| workload.name == expected.workload) else {
        let names: Vec<&str> = plan.workloads.iter().map(|workload| workload.name.as_str()).collect();
        return wrong(format!("there is no workload '{}'; there are {}", expected.workload, names.join(", ")));
    };
    let done = match expected.op {
        None => true,
        Some(OpKind::Read) => workload.reads(),
        Some(OpKind::Write) => workload.writes(),
        Some(OpKind::Sync) => workload.sync != SyncPolicy::None,
        Some(OpKind::Commit) => workload.commits(),
    };
    if done { Ok(()) } else { wrong(format!("{} has no such operations", workload.name)) }
}

struct Work<'a> {
    session: Session,
    plan: &'a Plan,
    filling: Filling,
    targets: &'a mut [OpenTarget],
    measurements: Vec<Measurement>,
    surface: Option<SurfaceMeasurement>,
}

impl Work<'_> {
    /// The survey of the first target. `Some` sentence when the rest makes no sense any more.
    fn survey(&mut self, live: &mut Live) -> Result<Option<String>, RunError> {
        let (Some(survey), Some(target)) = (&self.plan.survey, self.targets.first_mut()) else { return Ok(None) };
        let surface = match self.session.survey(survey, (0, target), live) {
            Err(RunError::Interrupted { .. }) => return Ok(Some(INTERRUPTED.to_owned())),
            other => other?,
        };
        live.surveyed(&surface);
        let ended = resume::ended_early(&surface, target.identity(), INTERRUPTED);
        self.surface = Some(surface);
        Ok(ended)
    }

    /// The survey, then all workloads. `Some` sentence when the rest makes no sense any more.
    fn all(&mut self, live: &mut Live) -> Result<Option<String>, RunError> {
        if let Some(ended) = self.survey(live)? {
            return Ok(Some(ended));
        }
        for group in self.plan.groups() {
            live.begin(group);
            for workload in group.workloads.iter().filter(|workload| workload.layout == Layout::Needed) {
                if self.fill(workload, live)? == Control::Interrupt {
                    return Ok(Some(INTERRUPTED.to_owned()));
                }
            }
            let measured = match self.session.run_together(group, self.targets, live) {
                Err(RunError::Interrupted { .. }) => return Ok(Some(INTERRUPTED.to_owned())),
                other => other?,
            };
            live.end(&measured);
            let ended = self.ended_early(&measured);
            self.measurements.extend(measured);
            if ended.is_some() {
                return Ok(ended);
            }
        }
        Ok(None)
    }

    /// Before a workload that needs content. Within limits, what the layout workload could not write in its time is written now, up to the least
    /// size that makes sense; then the file is as large as what it holds.
    fn fill(&mut self, workload: &Workload, live: &mut Live) -> Result<Control, RunError> {
        for target in self.targets.iter_mut().filter(|t| t.is_scratch() && t.usable_bytes() < t.capacity_bytes()) {
            let capacity = target.capacity_bytes();
            let (wanted, time_ns) = match self.filling {
                Filling::Span => (workload.span.length_bytes.map_or(capacity, |length| workload.span.start_bytes + length), None),
                Filling::Within(limits) if target.usable_bytes() == 0 => (capacity, Some(limits.time_ns)),
                Filling::Within(limits) => (limits.bytes_min, Some(limits.time_ns)),
            };
            if self.session.lay_out(target, wanted.min(capacity), time_ns, live)? == Control::Interrupt {
                return Ok(Control::Interrupt);
            }
            if matches!(self.filling, Filling::Within(_)) {
                target.trim_to_written()?;
            }
        }
        Ok(Control::Continue)
    }

    fn ended_early(&self, measured: &[Measurement]) -> Option<String> {
        let path = |m: &Measurement| self.targets.get(m.target).map_or("", |t| t.identity().path.as_str());
        let hung = |m: &Measurement| {
            let (path, name, lasted) = (path(m), &m.workload.name, format_duration(m.hang?.lasted_ns));
            Some(format!("{path} did not answer any more while '{name}' ran and was given up after {lasted}; see the kernel log (dmesg)"))
        };
        measured.iter().find_map(hung).or_else(|| {
            measured.iter().find_map(|m| match m.stopped {
                StopReason::Interrupted => Some(INTERRUPTED.to_owned()),
                StopReason::Errors => {
                    let errors: Vec<String> =
                        m.ops.values().flat_map(|op| op.errors.iter()).map(|(errno, n)| format!("{n} × {errno}")).collect();
                    let names = m.ops.values().flat_map(|op| op.errors.keys()).map(String::as_str);
                    let (path, name) = (path(m), &m.workload.name);
                    Some(format!("{path} failed too often while '{name}' ran ({}); {}", errors.join(", "), remedy(names)))
                }
                _ => None,
            })
        })
    }
}

const INTERRUPTED: &str = "interrupted by the user; what was measured before stands";

fn timestamp() -> String {
    jiff::Timestamp::now().round(jiff::Unit::Second).map_or_else(|_| jiff::Timestamp::now().to_string(), |t| t.to_string())
}

/// 128 random bits in hex: unique among all runs on all machines.
fn run_id() -> String {
    random_bytes::<16>().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The command line as given; what is no UTF-8 with replacement characters, since records hold text only.
pub fn command_line() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// A seed nobody chose.
pub fn random_seed() -> u64 {
    // Below 2⁵³, so that readers of JSON in every language keep it exact.
    u64::from_le_bytes(random_bytes::<8>()) >> 11
}

fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).is_err() {
        // Before Linux 3.17, or blocked: the clock and the process id still tell runs apart.
        let now = jiff::Timestamp::now().as_nanosecond() as u64 ^ u64::from(std::process::id()) << 32;
        bytes.iter_mut().zip(now.to_le_bytes().into_iter().cycle()).for_each(|(byte, value)| *byte = value);
    }
    bytes
}
