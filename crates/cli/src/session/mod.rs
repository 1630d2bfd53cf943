//! What every verb that measures does with its plan: prepare, run under a watchdog, conclude.

mod conclude;
mod prepare;
mod run;
mod watchdog;

pub(crate) use prepare::{MeasuringJob, admit_all, refuse_target_as_output};
pub(crate) use run::{Filling, LayoutLimits};

use crate::failure::Exit;
use crate::interrupt::Interrupt;
use crate::live::Live;
use crate::output_files::OutputFiles;
use crate::stdout::print_plan;
use anyhow::Context as _;

/// Measures, or only shows the plan.
pub(crate) fn measure(job: MeasuringJob<'_>) -> anyhow::Result<Exit> {
    let flags = job.flags;
    let consent = flags.destructive.consent(&job.identities)?;
    if flags.dry_run {
        admit_all(&job.plan, &job.identities, &flags.expected, &consent)?;
        print_plan(&job.plan, &job.identities, flags)?;
        return Ok(Exit::Done);
    }
    let interrupt = Interrupt::listen().context("cannot catch signals")?;
    let stall_timeout = prepare::stall_timeout()?;
    let files = OutputFiles::prepare(&flags.outputs)?;
    for path in &flags.outputs {
        refuse_target_as_output(path, &job.identities)?;
    }
    let prepared = prepare::prepare(job, &consent, stall_timeout)?;
    interrupt.end_cleanly();
    let live = Live::new(&prepared.facts.plan, flags.verbosity(), interrupt.clone());
    let end = watchdog::run(
        prepared.work,
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
