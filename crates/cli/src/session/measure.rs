//! A run from its plan to its exit code: prepared, carried out under a watchdog, concluded.

use super::carry_out::{Means, carry_out};
use super::conclude::{Page, ResultOutputs, Then, conclude};
use super::prepare::{MeasuringJob, refuse_target_as_output, rehearse};
use super::ready::{Conditions, measure_prepared};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::output_files::OutputFiles;
use crate::stall_timeout::stall_timeout;
use crate::stdout::print_plan;
use crate::tool_lines::SharedPrinter;
use diskproof_model::plan::Plan;
use diskproof_model::target::TargetIdentity;
use diskproof_report::formats::format_of;
use std::path::PathBuf;

/// How the result of a run is shown.
#[derive(Default)]
pub(crate) struct Presentation {
    /// The tool whose text is printed instead of our page.
    pub tool: Option<ToolRun>,
    /// Whether our page is printed where there is no text of a tool.
    pub page: Page,
    /// What follows the page.
    pub then: Option<Then>,
}

/// A run whose output is that of another tool.
pub(crate) struct ToolRun {
    /// Its output.
    pub printer: SharedPrinter,
    /// The name under which the scratch file stays in its directory.
    pub kept_name: Option<String>,
}

/// Prepares, measures and concludes; or only shows the plan.
pub(crate) fn measure(job: MeasuringJob<'_>) -> anyhow::Result<Exit> {
    measure_by(job, Means::default(), Presentation::default())
}

/// As [`measure`], by these means and with this presentation.
pub(crate) fn measure_by(
    job: MeasuringJob<'_>,
    means: Means,
    presentation: Presentation,
) -> anyhow::Result<Exit> {
    means.admit(&job)?;
    let flags = job.flags;
    let outputs = flags.files();
    refuse_format_of_sweep(&job.plan, &outputs)?;
    let consent = flags.destructive.consent(&job.identities)?;
    if flags.dry_run {
        check_outputs(OutputFiles::check(&outputs), &outputs, &job.identities)?;
        return dry_run(&job);
    }
    let interrupt = Interrupt::listen()?;
    let stall_timeout = stall_timeout()?;
    let files = OutputFiles::prepare(&outputs);
    let files = check_outputs(files, &outputs, &job.identities)?;
    let (tool, kept_name) = match presentation.tool {
        Some(tool) => (Some(tool.printer), tool.kept_name),
        None => (None, None),
    };
    let tool = tool.filter(|_| !flags.prints_json());
    let conditions = Conditions {
        consent,
        stall_timeout,
        interrupt: &interrupt,
        tool: tool.clone(),
        kept_name: kept_name.as_deref(),
    };
    let (facts, mut end) = measure_prepared(job, conditions, |ready| carry_out(ready, means))?;
    let not_restored = end.results.not_restored.take();
    let exit = conclude(
        facts,
        end,
        &ResultOutputs {
            files: &files,
            flags,
            tool,
            page: presentation.page,
            then: presentation.then,
            stall_timeout,
            interrupt: &interrupt,
        },
    )?;
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
