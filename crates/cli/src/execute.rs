//! From a plan to a record: gate, run, judge. The same for every verb that measures.

use crate::failure::Failure;
use crate::health::{HealthFlags, ask_health, warn_of_failing};
use crate::interrupt::Interrupt;
use crate::live::Live;
use crate::output::Voice;
use crate::supervise::{Ending, carry_out};
use crate::work::{Harvest, SharedHarvest, Work};
use diskproof_analysis::expect::{Expected, SurfaceStep};
use diskproof_analysis::judge::{RunFacts, judge};
use diskproof_device::{Admission, Consent, Intent, OpenTarget, admit, host_facts};
use diskproof_engine::{STALL_NS, Session, measure_clock};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Plan, SyncPolicy};
use diskproof_model::record::{Record, Tool};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::parse_duration;
use diskproof_report::terminal::budget_line;
use std::sync::Arc;
use std::time::Duration;

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
    /// How long a target may leave requests without an answer.
    pub patience: Duration,
}

/// How far scratch files are filled beside the measured workloads, so that reads find data and
/// writes do not make the file grow.
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

/// Runs the plan. An error before the first workload is an `Err`; a later one is part of the
/// outcome, with everything measured before.
pub fn execute(run: Run<'_>, interrupt: &Interrupt) -> Result<Outcome, Failure> {
    let Run {
        plan,
        identities,
        consent,
        filling,
        expected,
        note,
        health,
        voice,
        patience,
    } = run;
    let admissions = vet(&plan, &identities, expected, consent)?;
    admissions
        .iter()
        .filter_map(Admission::hint)
        .for_each(|hint| voice.say(&hint));
    let targets = admissions
        .into_iter()
        .map(OpenTarget::open)
        .collect::<Result<Vec<_>, _>>()?;
    // Before the measuring, so that the asking does not disturb it.
    let health = ask_health(&identities, health);
    warn_of_failing(&health, voice);
    voice.say(&budget_line(&plan, &identities));
    let (clock, host, started) = (measure_clock(), host_facts(), timestamp());
    let run_id = run_id();
    let live = Live::new(&plan, voice, interrupt.clone());
    let session = Session::new(plan.seed)
        .giving_up_after(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
    let work = Work {
        session,
        plan: Arc::new(plan.clone()),
        filling,
        targets,
        harvest: SharedHarvest::default(),
    };
    let Ending {
        harvest,
        ended,
        hung,
        stalled,
    } = carry_out(work, live, &identities, (voice, patience))?;
    let Harvest {
        measurements,
        surface,
        ..
    } = harvest;
    let ended_early = match &ended {
        Ok(None) => None,
        Ok(Some(why)) => Some(why.clone()),
        Err(error) => Some(error.to_string()),
    };
    let tool = Tool {
        name: "diskproof".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let partial = ended_early.is_some();
    let facts = RunFacts {
        tool,
        run_id,
        started,
        partial,
        ended_early,
        stalled,
        note,
        host,
        clock,
        plan: plan.clone(),
        targets: identities,
        health,
    };
    Ok(Outcome {
        record: judge(facts, &measurements, surface.as_ref(), expected),
        failure: ended.err().map(Failure::Run),
        hung,
    })
}

const GIVE_UP_AFTER: &str = "DISKPROOF_GIVE_UP_AFTER";

/// How long a target may leave requests without an answer after the end of a workload. A multipath
/// that queues while it has no path, say, needs longer.
pub fn patience() -> Result<Duration, Failure> {
    let text = std::env::var_os(GIVE_UP_AFTER).filter(|text| !text.is_empty());
    let Some(text) = text else {
        return Ok(Duration::from_nanos(STALL_NS));
    };
    let text = text.to_string_lossy();
    parse_duration(&text)
        .map(Duration::from_nanos)
        .map_err(|error| Failure::Usage(format!("{GIVE_UP_AFTER}={text}: {error}")))
}

/// Everything that can be said against a plan before it begins: thresholds that it cannot answer,
/// targets that the gate refuses. Opens nothing for writing.
pub fn vet(
    plan: &Plan,
    identities: &[TargetIdentity],
    expected: &[Expected],
    consent: &Consent,
) -> Result<Vec<Admission>, Failure> {
    expected
        .iter()
        .try_for_each(|expected| answerable(plan, expected))?;
    let enter = |identity: &TargetIdentity| {
        let intent = match plan.scratch_bytes {
            Some(size_bytes) if identity.kind == TargetKind::Directory => {
                Intent::Scratch { size_bytes }
            }
            _ if plan.writes() => Intent::Overwrite(consent),
            _ => Intent::Read,
        };
        Ok(admit(identity.clone(), intent)?)
    };
    identities.iter().map(enter).collect()
}

/// A misspelt workload would be found missing only after the run.
fn answerable(plan: &Plan, expected: &Expected) -> Result<(), Failure> {
    let wrong = |why: String| {
        Err(Failure::Usage(format!(
            "--expect '{}': {why}",
            expected.expression
        )))
    };
    if let Some(step) = expected.surface_step() {
        let steps = plan.survey.as_ref();
        let is_planned = match step {
            SurfaceStep::Curve => steps.is_some_and(|survey| survey.curve.is_some()),
            SurfaceStep::Access => steps.is_some_and(|survey| survey.access.is_some()),
            SurfaceStep::Burst => steps.is_some_and(|survey| survey.burst.is_some()),
        };
        return if is_planned {
            Ok(())
        } else {
            wrong(format!("no {} is measured here", step.as_str()))
        };
    }
    if let Some(skipped) = plan
        .skipped
        .iter()
        .find(|skipped| skipped.workload == expected.workload)
    {
        return wrong(format!(
            "{} is not measured here: {}",
            skipped.workload, skipped.why
        ));
    }
    let Some(workload) = plan
        .workloads
        .iter()
        .find(|workload| workload.name == expected.workload)
    else {
        let names: Vec<&str> = plan
            .workloads
            .iter()
            .map(|workload| workload.name.as_str())
            .collect();
        return wrong(format!(
            "there is no workload '{}'; there are {}",
            expected.workload,
            names.join(", ")
        ));
    };
    let done = match expected.op {
        None => true,
        Some(OpKind::Read) => workload.reads(),
        Some(OpKind::Write) => workload.writes(),
        Some(OpKind::Sync) => workload.sync != SyncPolicy::None,
        Some(OpKind::Commit) => workload.commits(),
    };
    if done {
        Ok(())
    } else {
        wrong(format!("{} has no such operations", workload.name))
    }
}

fn timestamp() -> String {
    jiff::Timestamp::now()
        .round(jiff::Unit::Second)
        .map_or_else(|_| jiff::Timestamp::now().to_string(), |t| t.to_string())
}

/// 128 random bits in hex: unique among all runs on all machines.
fn run_id() -> String {
    random_bytes::<16>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The command line as given; what is no UTF-8 with replacement characters, since records hold text
/// only.
pub fn command_line() -> Vec<String> {
    std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect()
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
        let now =
            jiff::Timestamp::now().as_nanosecond() as u64 ^ u64::from(std::process::id()) << 32;
        bytes
            .iter_mut()
            .zip(now.to_le_bytes().into_iter().cycle())
            .for_each(|(byte, value)| *byte = value);
    }
    bytes
}
