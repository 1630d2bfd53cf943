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
use crate::live::Live;
use crate::output_files::{Output, Trial, open_outputs, refuse_output};
use crate::stdio::{print_document, style};
use crate::tool_lines::{RequestPrinter, ToolLines};
use crate::write_cache::planned_states;
use campaign::supervise_on_targets;
use conclude::conclude;
use diskproof_analysis::campaign::{Campaign, planned_campaign};
use diskproof_device::GuardedWriteCache;
use diskproof_engine::RunError;
use diskproof_model::files::FilesPlan;
use diskproof_model::plan::{Plan, Task};
use diskproof_report::formats::format_of;
use diskproof_report::terminal::RequestLines;
use diskproof_report::{json, terminal};
use ping::request_lines;
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

/// Carries out a job on its targets, as its last task asks for. A survey before it is part of that.
fn carry_out(mut ready: ReadyRun, job: &mut MeasuringJob<'_>) -> Result<EndedRun, Failure> {
    let tool = match job.tool.clone() {
        Some(tool) => Some(ToolLines::start(tool).map_err(failed)?),
        None => None,
    };
    if let Some(switch) = job.write_cache.take() {
        let guarded = GuardedWriteCache::start(switch).map_err(Failure::WriteCache)?;
        ready.work.write_cache = Some(guarded);
    }
    let plan = Arc::clone(&ready.work.plan);
    match plan.tasks.last() {
        Some(Task::Inserts(_)) => inserts::carry_out(ready, job.server.take()),
        Some(Task::Ping(ping)) => {
            let lines = match tool {
                Some(_) => None,
                None => request_lines(ping, &job.identities, job.flags),
            };
            carry_out_requests(ready, lines, tool)
        }
        Some(Task::Files(files)) => carry_out_files(ready, files, tool),
        Some(Task::Survey(_)) | None => carry_out_workloads(ready, tool),
        Some(Task::Workloads(_)) => match planned_campaign(&plan) {
            Some(campaign) => carry_out_campaign(ready, campaign, tool),
            None => carry_out_workloads(ready, tool),
        },
    }
}

fn carry_out_workloads(ready: ReadyRun, tool: Option<ToolLines>) -> Result<EndedRun, Failure> {
    ready.run(move |run, live| {
        live.tool = tool;
        let ended = run.run(live);
        finish_tool(live);
        ended
    })
}

fn carry_out_campaign(
    ready: ReadyRun,
    campaign: Box<dyn Campaign>,
    tool: Option<ToolLines>,
) -> Result<EndedRun, Failure> {
    let heartbeat = ready.live.heartbeat();
    let end = supervise_on_targets(ready, campaign);
    if let Some(tool) = tool {
        tool.finish(&heartbeat);
    }
    end
}

fn carry_out_requests(
    ready: ReadyRun,
    lines: Option<RequestLines>,
    tool: Option<ToolLines>,
) -> Result<EndedRun, Failure> {
    let (tool, printer) = match tool {
        Some(tool) => (Some(tool.printer), tool.lines),
        None => (None, RequestPrinter::start().map_err(failed)?),
    };
    ready.run(move |run, live| run.ping(live, (lines, tool), printer))
}

fn carry_out_files(
    mut ready: ReadyRun,
    files: &FilesPlan,
    tool: Option<ToolLines>,
) -> Result<EndedRun, Failure> {
    let started = ready.work.start_files(files, &ready.live)?;
    ready.run(move |run, live| {
        live.tool = tool;
        let ended = match started {
            Some(started) => run.files(live, started),
            None => {
                live.look_at_end();
                Err(EarlyEnd::interrupted())
            }
        };
        finish_tool(live);
        ended
    })
}

/// Prints what is left of the lines of a tool.
fn finish_tool(live: &mut Live) {
    if let Some(tool) = live.tool.take() {
        tool.finish(&live.heartbeat());
    }
}

fn failed(error: std::io::Error) -> Failure {
    Failure::Run(RunError::Thread(error))
}
