//! What a plan contains decides how it is carried out: single requests, many small files, a search
//! for a depth, the INSERTs of a server around workloads, or workloads alone.

use super::campaign::supervise_on_targets;
use super::inserts;
use super::ping::PingLines;
use super::prepare::MeasuringJob;
use super::ready::ReadyRun;
use super::run::{Steps, TargetRun};
use super::watchdog::WatchdogResult;
use crate::failure::Failure;
use crate::tool_lines::ToolLines;
use diskproof_analysis::campaign::{Campaign, LatencySearchCampaign};
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
    /// What decides which workload is measured next, and for how long, in place of the plan.
    pub campaign: Option<ByCampaign>,
}

/// Carries out a run as its campaign decides.
type ByCampaign = Box<dyn FnOnce(ReadyRun<'_>) -> Result<WatchdogResult, Failure>>;

impl Means {
    /// Those of a run whose cells this campaign decides; its sides are the targets.
    pub(crate) fn by<C>(campaign: C) -> Self
    where
        C: Campaign + Send + 'static,
        C::Answer: Send + 'static,
    {
        Self {
            campaign: Some(Box::new(|ready| supervise_on_targets(ready, campaign))),
            ..Self::default()
        }
    }

    /// Asks the gate for what they need beside the plan.
    pub(super) fn admit(&self, job: &MeasuringJob<'_>) -> Result<(), Failure> {
        match self.server {
            Some(_) => inserts::admit_server(job),
            None => Ok(()),
        }
    }
}

/// Carries out a plan on its targets.
pub(super) fn carry_out(mut ready: ReadyRun<'_>, means: Means) -> Result<WatchdogResult, Failure> {
    let tool = ready.tool.take();
    let lines = tool.map(ToolLines::start).transpose().map_err(failed)?;
    if let Some(switch) = means.write_cache {
        let guarded = GuardedWriteCache::start(switch).map_err(Failure::WriteCache)?;
        ready.work.write_cache = Some(guarded);
    }
    if let Some(programs) = means.server {
        return inserts::carry_out(ready, programs);
    }
    if let Some(campaign) = means.campaign {
        return campaign(ready);
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
