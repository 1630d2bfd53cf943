//! A run from its plan to its exit code: prepared, carried out under a watchdog, concluded.

use super::carry_out::{Means, carry_out};
use super::conclude::conclude;
use super::inserts::admit_server;
use super::prepare::{MeasuringJob, prepare, refuse_targets_as_outputs, rehearse};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::output_files::{Trial, check_outputs};
use crate::stall_timeout::stall_timeout;
use crate::stdout::print_plan;
use diskproof_model::plan::Plan;
use diskproof_report::formats::format_of;
use std::path::PathBuf;

/// Prepares, measures by these means, and concludes; or only shows the plan.
pub(crate) fn measure(job: MeasuringJob<'_>, mut means: Means) -> anyhow::Result<Exit> {
    if means.server.is_some() {
        admit_server(&job)?;
    }
    let flags = job.flags;
    let outputs = flags.files();
    refuse_format_of_sweep(&job.plan, &outputs)?;
    let consent = flags.destructive.consent(&job.identities)?;
    let trial = if flags.dry_run {
        Trial::Permission
    } else {
        Trial::Create
    };
    check_outputs(&outputs, trial)?;
    refuse_targets_as_outputs(&outputs, &job.identities)?;
    if flags.dry_run {
        return dry_run(&job);
    }
    let kept_name = means.tool.as_ref().and_then(|tool| tool.kept_name.clone());
    means.tool.take_if(|_| flags.prints_json());
    let (interrupt, stall_timeout) = (Interrupt::listen()?, stall_timeout()?);
    let ready = prepare(job, consent, stall_timeout, kept_name.as_deref(), interrupt)?;
    let mut end = carry_out(ready, &mut means)?;
    let not_restored = end.results.not_restored.take();
    let exit = conclude(end, flags, &outputs, &means)?;
    // However else the run ended.
    match not_restored {
        Some(error) => Err(Failure::WriteCache(error).into()),
        None => Ok(exit),
    }
}

/// Checks what a run would refuse, and shows the plan.
pub(crate) fn dry_run(job: &MeasuringJob<'_>) -> anyhow::Result<Exit> {
    let consent = job.flags.destructive.consent(&job.identities)?;
    stall_timeout()?;
    rehearse(job, &consent)?;
    print_plan(&job.plan, &job.identities, job.flags)?;
    Ok(Exit::Done)
}

/// Refuses an output that would stay empty: only a sweep fills it.
fn refuse_format_of_sweep(plan: &Plan, outputs: &[PathBuf]) -> Result<(), Failure> {
    let is_of_sweep =
        |path: &&PathBuf| format_of(path).is_some_and(|format| format.requires.is_of_sweep());
    match outputs.iter().find(is_of_sweep) {
        Some(path) if plan.sweep.is_none() => Err(Failure::Usage(format!(
            "-o {}: this format needs the figures of 'diskproof sweep'",
            path.display()
        ))),
        _ => Ok(()),
    }
}
