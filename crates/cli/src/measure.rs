//! What every verb that measures does with its plan: shows it, or runs it, prints and saves what
//! came of it, and says how it ended.

use crate::args::Measuring;
use crate::execute::{Filling, Outcome, Run, execute, patience, vet};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::output::{Delivery, Savings, Voice, complain, deliver, leave_stdout, show_plan};
use diskproof_engine::RunError;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

/// A plan and its surroundings.
pub struct Job<'a> {
    /// What to do.
    pub plan: Plan,
    /// The targets, probed.
    pub identities: Vec<TargetIdentity>,
    /// How far scratch files are filled beside the measured workloads.
    pub filling: Filling,
    /// The user's words.
    pub note: Option<String>,
    /// The common flags.
    pub measuring: &'a Measuring,
}

/// Measures, or only shows the plan.
pub fn measure(job: Job<'_>, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let Job {
        plan,
        identities,
        filling,
        note,
        measuring,
    } = job;
    let consent = measuring.giving_up.consent(&identities)?;
    if measuring.dry_run {
        vet(&plan, &identities, &measuring.expected, &consent)?;
        show_plan(&plan, &identities, measuring)?;
        return Ok(Exit::Done);
    }
    let patience = patience()?;
    let savings = Savings::prepare(&measuring.outputs)?;
    measuring
        .outputs
        .iter()
        .try_for_each(|output| keep_target(output, &identities))?;
    allow_descriptors();
    let voice = Voice::of(measuring);
    let (expected, health) = (&measuring.expected, &measuring.health);
    let run = Run {
        plan,
        identities,
        consent: &consent,
        filling,
        expected,
        note,
        health,
        voice,
        patience,
    };
    let Outcome {
        record,
        failure,
        hung,
    } = execute(run, interrupt)?;
    let record = Arc::new(record);
    let Delivery {
        outcome: delivered,
        hung: unsaved,
    } = deliver(&record, &savings, measuring, patience);
    let waiting = [&hung[..], &unsaved].concat();
    if !waiting.is_empty() {
        voice.say(&may_stay(&waiting, &record.plan));
        leave_stdout();
    }
    let ended = conclude(&record, failure, &hung, interrupt);
    match (delivered, ended) {
        (Ok(()), ended) => ended,
        (Err(error), Ok(exit)) if !matches!(exit, Exit::Signal(_)) => Err(error),
        // How the run ended decides.
        (Err(error), ended) => {
            complain(&format!("error: {error:#}"));
            ended
        }
    }
}

/// As many descriptors as the system lets this process have: each of many jobs has one, and the
/// usual limit of 1024 is for programs that use select(2).
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // Where that is refused, the limit stays what it was.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}

/// A record takes the place of what has its name: never that of what is measured.
pub fn keep_target(output: &Path, identities: &[TargetIdentity]) -> Result<(), Failure> {
    let Ok(found) = std::fs::metadata(output) else {
        return Ok(());
    };
    let device = format!(
        "{}:{}",
        rustix::fs::major(found.dev()),
        rustix::fs::minor(found.dev())
    );
    let is_target = |identity: &TargetIdentity| {
        identity.kind == TargetKind::File
            && (identity.inode, &identity.device) == (found.ino(), &device)
    };
    match identities.iter().any(is_target) {
        true => Err(Failure::Usage(format!(
            "-o {}: is the target itself, which would be lost; name another file",
            output.display()
        ))),
        false => Ok(()),
    }
}

/// The program is done, and is seen all the same.
fn may_stay(hung: &[String], plan: &Plan) -> String {
    let scratch = if plan.scratch_bytes.is_some() {
        " Its scratch file has no name and goes away with it."
    } else {
        ""
    };
    format!(
        "{} has not answered yet. Nothing is lost by that, but this process may stay until it \
         does: while the kernel waits for the disk (state D of ps) not even kill -9 ends a \
         process.{scratch}",
        hung.join(", ")
    )
}

/// The exit code of a run that has been printed.
fn conclude(
    record: &Record,
    failure: Option<Failure>,
    hung: &[String],
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    match (failure, interrupt.signal()) {
        (None, _) => {}
        // The user did not wait for it, and that is why it ended.
        (Some(failure @ Failure::Run(RunError::Stalled { .. })), Some(signal)) => {
            complain(&format!("error: {failure}"));
            return Ok(Exit::Signal(signal));
        }
        (Some(failure), _) => return Err(failure.into()),
    }
    let is_bad = |m: &diskproof_model::record::MeasurementRecord| {
        m.errors_total() > 0 || m.verify.as_ref().is_some_and(|v| v.bad_blocks > 0)
    };
    Ok(match interrupt.signal() {
        Some(signal) if record.partial => Exit::Signal(signal),
        _ if record.partial
            || record.measurements.iter().any(is_bad)
            || has_bad_surface(record) =>
        {
            Exit::Failed
        }
        _ if !hung.is_empty() => Exit::Failed,
        _ if record.expectations.iter().any(|e| !e.met) => Exit::ThresholdMissed,
        _ => Exit::Done,
    })
}

/// Whether the survey met errors of the disk.
fn has_bad_surface(record: &Record) -> bool {
    let scanned = record
        .surface
        .as_ref()
        .and_then(|surface| surface.scan.as_ref());
    record.curve.iter().any(|point| point.errors > 0)
        || record
            .surface
            .as_ref()
            .is_some_and(|surface| !surface.access_errors.is_empty())
        || scanned.is_some_and(|scan| scan.unreadable_bytes > 0)
}
