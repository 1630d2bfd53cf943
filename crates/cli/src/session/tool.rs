//! A run whose output is that of another tool: its text as the run goes on, on stdout.

use super::campaign::supervise_on_targets;
use super::measure::{Presentation, measure_with};
use super::ping::PingLines;
use super::prepare::MeasuringJob;
use super::run::Steps;
use super::watchdog::{WatchdogResult, run};
use crate::failure::{Exit, Failure};
use crate::tool_lines::{SharedPrinter, ToolLines};
use diskproof_analysis::campaign::LatencySearchCampaign;
use diskproof_engine::RunError;

/// What a tool needs beyond its plan.
pub(crate) struct ToolRun {
    /// Its output.
    pub printer: SharedPrinter,
    /// The name under which the scratch file stays in its directory.
    pub kept_name: Option<String>,
}

/// Measures, with the output of a tool, or only shows the plan.
pub(crate) fn measure_tool(job: MeasuringJob<'_>, tool: ToolRun) -> anyhow::Result<Exit> {
    let prints_text = !job.flags.prints_json();
    let is_ping = job.plan.ping.is_some();
    let presentation = Presentation {
        tool: Some(tool.printer.clone()).filter(|_| prints_text),
        kept_name: tool.kept_name,
        ..Presentation::default()
    };
    let has_files = job.plan.files.is_some();
    let search = LatencySearchCampaign::of(&job.plan);
    let consent = job.flags.destructive.consent(&job.identities)?;
    measure_with(job, presentation, move |mut measuring| {
        let failed = |error| Failure::Run(RunError::Thread(error));
        let lines = match prints_text {
            true => Some(ToolLines::start(tool.printer.clone()).map_err(failed)?),
            false => None,
        };
        let interrupt = measuring.interrupt.clone();
        if let Some(search) = search {
            let heartbeat = measuring.live.heartbeat();
            let end = supervise_on_targets(measuring, consent, search);
            if let Some(lines) = lines {
                lines.finish(&interrupt, &heartbeat);
            }
            return end;
        }
        let steps: Steps = if is_ping {
            let output = PingLines {
                lines: None,
                verbosity: measuring.deadline.verbosity,
            };
            let mut output = output.start(measuring.interrupt).map_err(failed)?;
            if let Some(lines) = lines {
                let (printer, lines) = lines.into_parts();
                output.follow_tool(printer, lines);
            }
            Box::new(|run, live| run.ping(live, output))
        } else if has_files {
            let verbosity = measuring.deadline.verbosity;
            let Some(started) = measuring.work.start_files(&measuring.live, verbosity)? else {
                let (on, by) = (measuring.identities, measuring.interrupt);
                return Ok(WatchdogResult::without_files(on, verbosity, by));
            };
            Box::new(move |run, live| {
                let ended = run.files(live, started, verbosity);
                if let Some(lines) = lines {
                    lines.finish(&interrupt, &live.heartbeat());
                }
                ended
            })
        } else {
            Box::new(move |run, live| {
                live.follow_tool(lines);
                let ended = run.run(live);
                if let Some(lines) = live.take_tool() {
                    lines.finish(&interrupt, &live.heartbeat());
                }
                ended
            })
        };
        run(
            (measuring.work, steps),
            measuring.live,
            measuring.identities,
            measuring.deadline,
        )
    })
}
