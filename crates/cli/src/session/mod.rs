//! What every verb that measures does with its plan: prepare, run under a watchdog, conclude.

mod campaign;
mod conclude;
mod ping;
mod prepare;
mod prepare_command;
mod run;
mod slices;
mod time_left;
mod watchdog;

pub(crate) use campaign::{
    CampaignJob, CampaignOutcome, CampaignSide, Reopening, measure_campaign,
};
pub(crate) use conclude::{has_errors, process_may_stay};
pub(crate) use ping::PingLines;
#[cfg(test)]
pub(crate) use prepare::admit_all;
pub(crate) use prepare::{MeasuringJob, refuse_target_as_output};
pub(crate) use run::{Filling, LayoutLimits};

use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::live::Live;
use crate::output_files::OutputFiles;
use crate::stdout::print_plan;
use anyhow::Context as _;
use diskproof_model::target::TargetIdentity;
use run::{Steps, TargetRun};
use std::io;
use std::path::PathBuf;

/// Measures, or only shows the plan.
pub(crate) fn measure(job: MeasuringJob<'_>) -> anyhow::Result<Exit> {
    measure_by(job, |_| Ok(Box::new(TargetRun::run)))
}

/// Sends single requests and prints each, or only shows the plan.
pub(crate) fn measure_pings(job: MeasuringJob<'_>, lines: PingLines) -> anyhow::Result<Exit> {
    measure_by(job, |interrupt| {
        let output = lines.start(interrupt)?;
        Ok(Box::new(|run, live| run.ping(live, output)))
    })
}

/// Measures in the way that `steps` makes, or only shows the plan.
fn measure_by(
    job: MeasuringJob<'_>,
    steps: impl FnOnce(&Interrupt) -> io::Result<Steps>,
) -> anyhow::Result<Exit> {
    let flags = job.flags;
    let outputs = flags.files();
    let consent = flags.destructive.consent(&job.identities)?;
    if flags.dry_run {
        check_outputs(OutputFiles::check(&outputs), &outputs, &job.identities)?;
        return dry_run(&job);
    }
    let interrupt = Interrupt::listen().context("cannot catch signals")?;
    let stall_timeout = prepare::stall_timeout()?;
    let files = OutputFiles::prepare(&outputs);
    let files = check_outputs(files, &outputs, &job.identities)?;
    let prepared = prepare::prepare(job, &consent, stall_timeout)?;
    interrupt.end_cleanly();
    let live = Live::new(&prepared.facts.plan, flags.verbosity(), interrupt.clone());
    let steps = steps(&interrupt).context("cannot start the thread that prints")?;
    let end = watchdog::run(
        (prepared.work, steps),
        live,
        &prepared.facts.targets,
        watchdog::Deadline {
            stall_timeout,
            verbosity: flags.verbosity(),
        },
    )?;
    conclude::conclude(
        prepared.facts,
        end,
        &files,
        flags,
        stall_timeout,
        &interrupt,
    )
}

/// Checks what a run would refuse, and shows the plan.
pub(crate) fn dry_run(job: &MeasuringJob<'_>) -> anyhow::Result<Exit> {
    let consent = job.flags.destructive.consent(&job.identities)?;
    prepare::stall_timeout()?;
    prepare::rehearse(job, &consent)?;
    print_plan(&job.plan, &job.identities, job.flags)?;
    Ok(Exit::Done)
}

/// Refuses outputs that cannot be written, and those that are a target.
fn check_outputs<T>(
    checked: Result<T, Failure>,
    outputs: &[PathBuf],
    identities: &[TargetIdentity],
) -> Result<T, Failure> {
    let checked = checked?;
    for path in outputs {
        refuse_target_as_output(path, identities)?;
    }
    Ok(checked)
}
