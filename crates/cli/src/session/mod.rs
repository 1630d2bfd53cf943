//! What every verb that measures does with its plan: prepares it, carries it out under a watchdog,
//! and concludes; or only shows it.

mod campaign;
mod conclude;
mod files;
mod inserts;
mod journal;
mod ping;
mod prepare;
mod prepare_command;
mod run;
mod slices;
mod trials;
mod watchdog;

pub(crate) use campaign::measure_campaign;
pub(crate) use conclude::{has_errors, process_may_stay};
pub(crate) use prepare::{MeasuringJob, admit_all, run_facts};
pub(crate) use run::EarlyEnd;
pub(crate) use watchdog::EndedRun;

use crate::failure::{Exit, Failure};
use crate::output_files::{Output, Trial, open_outputs, refuse_output};
use crate::stdio::{print_document, style};
use crate::tool_lines::{RequestPrinter, ToolLines};
use crate::write_cache::planned_states;
use campaign::supervise_on_targets;
use conclude::conclude;
use diskproof_analysis::campaign::planned_campaign;
use diskproof_device::GuardedWriteCache;
use diskproof_engine::RunError;
use diskproof_model::plan::Plan;
use diskproof_report::formats::format_of;
use diskproof_report::{json, terminal};
use prepare::{ReadyRun, prepare, rehearse};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Prepares, measures and concludes; or only shows the plan.
pub(crate) fn measure(mut job: MeasuringJob<'_>) -> anyhow::Result<Exit> {
    if job.server.is_some() {
        inserts::admit_server(&job)?;
    }
    let flags = job.flags;
    refuse_unswitched(&job)?;
    let paths = flags.files();
    refuse_format_of_sweep(&job.plan, &paths)?;
    flags.destructive.consent(&job.identities)?;
    let trial = if flags.dry_run {
        Trial::Permission
    } else {
        Trial::Create
    };
    let opened = open_outputs(&paths, flags.history.file(), trial)?;
    let outputs: Vec<Arc<Output>> = opened.into_iter().map(Arc::new).collect();
    if flags.dry_run {
        return dry_run(&job);
    }
    let ready = prepare(&job)?;
    job.tool.take_if(|_| flags.prints_json());
    let mut end = carry_out(ready, &mut job)?;
    let not_restored = end.results.not_restored.take();
    let exit = conclude(end, &outputs, &job)?;
    // However else the run ended.
    match not_restored {
        Some(error) => Err(Failure::WriteCache(error).into()),
        None => Ok(exit),
    }
}

/// Checks what a run would refuse, and shows the plan.
pub(crate) fn dry_run(job: &MeasuringJob<'_>) -> anyhow::Result<Exit> {
    rehearse(job)?;
    let (plan, identities, flags) = (&job.plan, &job.identities, job.flags);
    print_document(
        flags.prints_json(),
        |out| json::write_plan(plan, identities, out),
        |page| terminal::write_plan(plan, identities, &style(flags.color), page),
    )?;
    Ok(Exit::Done)
}

/// Refuses a plan that names states of the write cache where nothing can switch it: its rows would
/// state what was never set.
fn refuse_unswitched(job: &MeasuringJob<'_>) -> Result<(), Failure> {
    let is_switched = job.write_cache.is_some() && planned_campaign(&job.plan).is_none();
    match planned_states(&job.plan) {
        Some(_) if !is_switched => Err(Failure::Usage(
            "the plan switches the disk's write cache, which this command cannot do; use \
             'diskproof commit --write-cache'"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Refuses an output that would stay empty: only a sweep fills it.
fn refuse_format_of_sweep(plan: &Plan, outputs: &[PathBuf]) -> Result<(), Failure> {
    let is_empty = |path: &Path| {
        let format = format_of(path).filter(|_| plan.sweep().is_none());
        format.is_some_and(|format| format.requires.is_of_sweep())
    };
    let why = "this format needs the figures of 'diskproof sweep'";
    refuse_output(outputs, is_empty, why)
}

/// Carries out a job on its targets. What the plan contains decides how: single requests, many
/// small files, a search for a depth, the INSERTs of a server around workloads, or workloads alone.
fn carry_out(mut ready: ReadyRun, job: &mut MeasuringJob<'_>) -> Result<EndedRun, Failure> {
    let tool = job.tool.clone().map(ToolLines::start);
    let tool = tool.transpose().map_err(failed)?;
    if let Some(switch) = job.write_cache.take() {
        let guarded = GuardedWriteCache::start(switch).map_err(Failure::WriteCache)?;
        ready.work.write_cache = Some(guarded);
    }
    if let Some(programs) = job.server.take() {
        return inserts::carry_out(ready, programs);
    }
    if let Some(campaign) = planned_campaign(&ready.work.plan) {
        let heartbeat = ready.live.heartbeat();
        let end = supervise_on_targets(ready, campaign);
        if let Some(tool) = tool {
            tool.finish(&heartbeat);
        }
        return end;
    }
    if ready.work.plan.ping().is_some() {
        let lines = job.lines.take();
        let (tool, printer) = match tool {
            Some(tool) => (Some(tool.printer), tool.lines),
            None => (None, RequestPrinter::start().map_err(failed)?),
        };
        return ready.run(move |run, live| run.ping(live, (lines, tool), printer));
    }
    let files = job.plan.files();
    let files = files.map(|plan| ready.work.start_files(plan, &ready.live));
    let files = files.transpose()?;
    ready.run(move |run, live| {
        live.tool = tool;
        let ended = match files {
            None => run.run(live),
            Some(Some(started)) => run.files(live, started),
            Some(None) => {
                live.look_at_end();
                Err(EarlyEnd::interrupted())
            }
        };
        if let Some(tool) = live.tool.take() {
            tool.finish(&live.heartbeat());
        }
        ended
    })
}

fn failed(error: std::io::Error) -> Failure {
    Failure::Run(RunError::Thread(error))
}
