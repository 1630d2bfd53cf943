//! What a plan contains decides how it is carried out: single requests, many small files, a search
//! for a depth, the INSERTs of a server around workloads, or workloads alone.

use super::campaign::supervise_on_targets;
use super::inserts;
use super::measure::{Presentation, ReadyRun, measure_as};
use super::ping::PingLines;
use super::prepare::MeasuringJob;
use super::run::{Steps, TargetRun};
use super::watchdog::WatchdogResult;
use crate::failure::{Exit, Failure};
use crate::tool_lines::ToolLines;
use diskproof_analysis::campaign::LatencySearchCampaign;
use diskproof_device::{GuardedWriteCache, WriteCacheSwitch};
use diskproof_engine::RunError;
use diskproof_postgres::Programs;
use diskproof_report::terminal::RequestLines;
use std::io;

/// What a plan does not contain: programs, disks' settings, and what is printed meanwhile.
#[derive(Default)]
pub(crate) struct Means {
    /// Prints each single request.
    pub lines: Option<RequestLines>,
    /// The server of the plan's INSERTs.
    pub server: Option<Programs>,
    /// The switch of the write cache, where workloads name its state. It is restored at the end.
    pub write_cache: Option<WriteCacheSwitch>,
}

/// Measures, or only shows the plan.
pub(crate) fn measure(job: MeasuringJob<'_>) -> anyhow::Result<Exit> {
    measure_by(job, Means::default(), Presentation::default())
}

/// As [`measure`], by these means and with this presentation.
pub(crate) fn measure_by(
    job: MeasuringJob<'_>,
    means: Means,
    presentation: Presentation,
) -> anyhow::Result<Exit> {
    if means.server.is_some() {
        inserts::admit_server(&job)?;
    }
    measure_as(job, presentation, |ready| carry_out(ready, means))
}

/// Carries out a plan on its targets.
fn carry_out(mut ready: ReadyRun<'_>, means: Means) -> Result<WatchdogResult, Failure> {
    let tool = ready.tool.take();
    let lines = tool.map(ToolLines::start).transpose().map_err(failed)?;
    if let Some(switch) = means.write_cache {
        let guarded = GuardedWriteCache::start(switch).map_err(Failure::WriteCache)?;
        ready.work.write_cache = Some(guarded);
    }
    if let Some(programs) = means.server {
        return inserts::carry_out(ready, programs);
    }
    if let Some(search) = LatencySearchCampaign::of(&ready.work.plan) {
        let (interrupt, heartbeat) = (ready.interrupt.clone(), ready.live.heartbeat());
        let end = supervise_on_targets(ready, search);
        if let Some(lines) = lines {
            lines.finish(&interrupt, &heartbeat);
        }
        return end;
    }
    if ready.work.plan.ping.is_some() {
        let steps = pings(&ready, means.lines, lines)?;
        return ready.run(steps);
    }
    if ready.work.plan.files.is_some() {
        return files(ready, lines);
    }
    let interrupt = ready.interrupt.clone();
    ready.run(Box::new(move |run, live| {
        live.follow_tool(lines);
        let ended = TargetRun::run(run, live);
        if let Some(lines) = live.take_tool() {
            lines.finish(&interrupt, &live.heartbeat());
        }
        ended
    }))
}

fn pings(
    ready: &ReadyRun<'_>,
    lines: Option<RequestLines>,
    tool: Option<ToolLines>,
) -> Result<Steps, Failure> {
    let verbosity = ready.deadline.verbosity;
    let output = PingLines { lines, verbosity };
    let mut output = output.start(ready.interrupt).map_err(failed)?;
    if let Some(tool) = tool {
        let (printer, lines) = tool.into_parts();
        output.follow_tool(printer, lines);
    }
    Ok(Box::new(|run, live| run.ping(live, output)))
}

fn files(mut ready: ReadyRun<'_>, tool: Option<ToolLines>) -> Result<WatchdogResult, Failure> {
    let (verbosity, interrupt) = (ready.deadline.verbosity, ready.interrupt.clone());
    let Some(started) = ready.work.start_files(&ready.live, verbosity)? else {
        let (on, by) = (ready.identities, ready.interrupt);
        return Ok(WatchdogResult::without_files(on, verbosity, by));
    };
    ready.run(Box::new(move |run, live| {
        let ended = run.files(live, started, verbosity);
        if let Some(lines) = tool {
            lines.finish(&interrupt, &live.heartbeat());
        }
        ended
    }))
}

fn failed(error: io::Error) -> Failure {
    Failure::Run(RunError::Thread(error))
}
