//! A run from its plan to its exit code: prepared, carried out under a watchdog, concluded.

use super::conclude::{Page, ResultOutputs, Then, conclude};
use super::prepare::{MeasuringJob, prepare, refuse_target_as_output, rehearse};
use super::run::{Steps, TargetRun};
use super::watchdog::{Deadline, WatchdogResult, run};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::live::Live;
use crate::output_files::OutputFiles;
use crate::stall_timeout::stall_timeout;
use crate::stdout::print_plan;
use crate::tool_lines::SharedPrinter;
use diskproof_device::{Consent, MachineCpuTime, OpenTarget};
use diskproof_engine::watchdog::Deferred;
use diskproof_model::plan::Plan;
use diskproof_model::target::TargetIdentity;
use diskproof_report::formats::format_of;
use std::path::PathBuf;
use std::time::Duration;

/// An extended attribute takes microseconds.
const MARKED_WITHIN: Duration = Duration::from_secs(1);

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

/// A run that is ready to be carried out.
pub(super) struct ReadyRun<'a> {
    pub work: TargetRun,
    pub live: Live,
    pub identities: &'a [TargetIdentity],
    pub deadline: Deadline,
    pub interrupt: &'a Interrupt,
    /// Prints the text of another tool, where that is the output.
    pub tool: Option<SharedPrinter>,
    /// What the user released.
    pub consent: Consent,
}

impl ReadyRun<'_> {
    /// Carries it out on a separate thread, and waits for its end.
    pub(super) fn run(self, steps: Steps) -> Result<WatchdogResult, Failure> {
        run(
            (self.work, steps),
            self.live,
            self.identities,
            self.deadline,
        )
    }
}

/// Prepares, lets `carry_out` measure, and concludes; or only shows the plan.
pub(super) fn measure_as(
    job: MeasuringJob<'_>,
    presentation: Presentation,
    carry_out: impl FnOnce(ReadyRun<'_>) -> Result<WatchdogResult, Failure>,
) -> anyhow::Result<Exit> {
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
    let mut prepared = prepare(job, &consent, stall_timeout, kept_name.as_deref())?;
    interrupt.end_cleanly();
    let live = Live::new(
        (&prepared.facts.plan, &prepared.facts.targets),
        flags.verbosity(),
        interrupt.clone(),
    );
    let start = MachineCpuTime::now();
    let mut end = carry_out(ReadyRun {
        work: prepared.work,
        live,
        identities: &prepared.facts.targets,
        deadline: Deadline {
            stall_timeout,
            verbosity: flags.verbosity(),
        },
        interrupt: &interrupt,
        tool: tool.clone(),
        consent,
    })?;
    mark_own(prepared.own_files);
    prepared.facts.host.stolen_share = stolen_share_since(start);
    let not_restored = end.results.not_restored.take();
    let exit = conclude(
        prepared.facts,
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

/// A target that hangs keeps its files unmarked, and later runs refuse to overwrite them.
fn mark_own(files: Vec<OpenTarget>) {
    if !files.is_empty() {
        let mark = move || files.iter().for_each(OpenTarget::mark_own);
        Deferred::start_or_run("diskproof-mark", mark).wait(MARKED_WITHIN);
    }
}

/// The share of the machine's CPU time that its hypervisor gave to others since `start`.
pub(super) fn stolen_share_since(start: Option<MachineCpuTime>) -> Option<f64> {
    MachineCpuTime::now()?.stolen_share_since(start?)
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
