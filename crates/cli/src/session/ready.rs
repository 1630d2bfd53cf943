//! A run that is ready to be carried out: prepared, with its supervisor and what it shows.

use super::prepare::{MeasuringJob, prepare};
use super::run::{Steps, TargetRun};
use super::watchdog::{Deadline, WatchdogResult, run};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::live::Live;
use crate::tool_lines::SharedPrinter;
use diskproof_analysis::judge::RunFacts;
use diskproof_device::{Consent, MachineCpuTime, OpenTarget};
use diskproof_engine::watchdog::Deferred;
use diskproof_model::target::TargetIdentity;
use std::time::Duration;

/// An extended attribute takes microseconds.
const MARKED_WITHIN: Duration = Duration::from_secs(1);

/// A run that is ready to be carried out.
pub(crate) struct ReadyRun<'a> {
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

/// Under which conditions a run is carried out.
pub(super) struct Conditions<'a> {
    /// What the user released.
    pub consent: Consent,
    /// The longest silence of a target.
    pub stall_timeout: Duration,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
    /// Prints the text of another tool, where that is the output.
    pub tool: Option<SharedPrinter>,
    /// The name under which the scratch file stays in its directory.
    pub kept_name: Option<&'a str>,
}

/// Prepares, and lets `carry_out` measure: the facts of the run, and how it ended.
pub(super) fn measure_prepared(
    job: MeasuringJob<'_>,
    conditions: Conditions<'_>,
    carry_out: impl FnOnce(ReadyRun<'_>) -> Result<WatchdogResult, Failure>,
) -> Result<(RunFacts, WatchdogResult), Failure> {
    let Conditions {
        consent,
        stall_timeout,
        interrupt,
        tool,
        kept_name,
    } = conditions;
    let verbosity = job.flags.verbosity();
    let mut prepared = prepare(job, &consent, stall_timeout, kept_name)?;
    interrupt.end_cleanly();
    let live = Live::new(
        (&prepared.facts.plan, &prepared.facts.targets),
        verbosity,
        interrupt.clone(),
    );
    let start = MachineCpuTime::now();
    let end = carry_out(ReadyRun {
        work: prepared.work,
        live,
        identities: &prepared.facts.targets,
        deadline: Deadline {
            stall_timeout,
            verbosity,
        },
        interrupt,
        tool,
        consent,
    })?;
    mark_own(prepared.own_files);
    prepared.facts.host.stolen_share = stolen_share_since(start);
    Ok((prepared.facts, end))
}

/// A target that hangs keeps its files unmarked, and later runs refuse to overwrite them.
fn mark_own(files: Vec<OpenTarget>) {
    if !files.is_empty() {
        let mark = move || files.iter().for_each(OpenTarget::mark_own);
        Deferred::start_or_run("diskproof-mark", mark).wait(MARKED_WITHIN);
    }
}

/// The share of the machine's CPU time that its hypervisor gave to others since `start`.
fn stolen_share_since(start: Option<MachineCpuTime>) -> Option<f64> {
    MachineCpuTime::now()?.stolen_share_since(start?)
}
