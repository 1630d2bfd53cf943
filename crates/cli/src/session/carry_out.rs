//! What a plan contains decides how it is carried out: single requests, many small files, a search
//! for a depth, the INSERTs of a server around workloads, or workloads alone.

use super::campaign::supervise_on_targets;
use super::inserts;
use super::ping::PingOutput;
use super::prepare::ReadyRun;
use super::run::{EarlyEnd, TargetRun};
use super::watchdog::EndedRun;
use crate::failure::Failure;
use crate::tool_lines::{SharedPrinter, ToolLines};
use diskproof_analysis::campaign::{Campaign, LatencySearchCampaign};
use diskproof_device::{GuardedWriteCache, WriteCacheSwitch};
use diskproof_engine::RunError;
use diskproof_model::record::Record;
use diskproof_postgres::Programs;
use diskproof_report::terminal::RequestLines;
use std::io;

/// What a plan does not contain: programs, disks' settings, what is printed.
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
    /// The tool whose text is printed instead of our page.
    pub tool: Option<ToolRun>,
    /// Whether our page is printed where there is no text of a tool.
    pub page: Page,
    /// What follows the page.
    pub then: Option<Then>,
}

/// Carries out a run as its campaign decides.
type ByCampaign = Box<dyn FnOnce(ReadyRun) -> Result<EndedRun, Failure>>;

/// Prints what follows the page of a record.
type Then = Box<dyn Fn(&Record) -> anyhow::Result<()>>;

/// A run whose output is that of another tool.
pub(crate) struct ToolRun {
    /// Its output.
    pub printer: SharedPrinter,
    /// The name under which the scratch file stays in its directory.
    pub kept_name: Option<String>,
}

/// Whether a record's page is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Page {
    /// It is.
    #[default]
    Printed,
    /// Somebody else prints the result.
    Omitted,
}

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
}

/// Carries out a plan on its targets.
pub(super) fn carry_out(mut ready: ReadyRun, means: &mut Means) -> Result<EndedRun, Failure> {
    let tool = means.tool.as_ref().map(|tool| tool.printer.clone());
    let tool = tool.map(ToolLines::start).transpose().map_err(failed)?;
    if let Some(switch) = means.write_cache.take() {
        let guarded = GuardedWriteCache::start(switch).map_err(Failure::WriteCache)?;
        ready.work.write_cache = Some(guarded);
    }
    if let Some(programs) = means.server.take() {
        return inserts::carry_out(ready, programs);
    }
    if let Some(campaign) = means.campaign.take() {
        return campaign(ready);
    }
    let interrupt = ready.interrupt.clone();
    if let Some(search) = LatencySearchCampaign::of(&ready.work.plan) {
        let heartbeat = ready.live.heartbeat();
        let end = supervise_on_targets(ready, search);
        if let Some(tool) = tool {
            tool.finish(&interrupt, &heartbeat);
        }
        return end;
    }
    if ready.work.plan.ping.is_some() {
        let output = PingOutput::start(means.lines.take(), tool, interrupt).map_err(failed)?;
        return ready.run(|run, live| run.ping(live, output));
    }
    if ready.work.plan.files.is_some() {
        let started = ready.work.start_files(&ready.live)?;
        return ready.run(move |run, live| {
            let ended = match started {
                Some(started) => run.files(live, started),
                None => {
                    live.look_at_end();
                    Err(EarlyEnd::interrupted())
                }
            };
            if let Some(tool) = tool {
                tool.finish(&interrupt, &live.heartbeat());
            }
            ended
        });
    }
    ready.run(move |run, live| {
        live.tool = tool;
        let ended = TargetRun::run(run, live);
        if let Some(tool) = live.tool.take() {
            tool.finish(&interrupt, &live.heartbeat());
        }
        ended
    })
}

fn failed(error: io::Error) -> Failure {
    Failure::Run(RunError::Thread(error))
}
