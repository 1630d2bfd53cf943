//! Drives a run: begins the tasks of a plan one after the other, and carries each out step by step.

use super::accept::AcceptRun;
use super::bench::Bench;
use super::campaign::CampaignRun;
use super::files::FilesRun;
use super::inserts::InsertsRun;
use super::ping::PingRun;
use super::running::{Running, Stepped};
use super::sink::{EarlyEnd, Sink};
use super::survey::SurveyRun;
use super::together::TogetherRun;
use super::workloads::WorkloadsRun;
use diskproof_analysis::campaign::{CampaignFacts, planned_campaign};
use diskproof_model::plan::{Order, Plan, Task};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Measures everything that the plan has, task by task, or until the command line of another tool
/// has what it needs. What ended is saved after each step.
pub(super) fn drive(bench: &mut Bench, sink: &mut Sink) -> Result<(), EarlyEnd> {
    let facts = Arc::clone(&bench.facts);
    if let Some(limit_ns) = facts.plan.time_limit_ns {
        let expected_ns = bench.budget.expected_ns.unwrap_or(limit_ns);
        bench.limit_end = Some(Instant::now() + Duration::from_nanos(expected_ns));
    }
    for task in &facts.plan.tasks {
        let mut running = start(task, &facts.plan, bench, sink)?;
        let ended = loop {
            let stepped = running.step(bench, sink);
            sink.keep_results();
            match stepped {
                Ok(Stepped::More) if !sink.progress.is_tool_over() => {}
                Ok(Stepped::More | Stepped::Over) => break Ok(()),
                Err(early) => break Err(early),
            }
        };
        running.end(ended, bench, sink)?;
    }
    Ok(())
}

/// Begins a task on the open targets, so that it can be carried out step by step.
fn start<'p>(
    task: &'p Task,
    plan: &'p Plan,
    bench: &mut Bench,
    sink: &mut Sink,
) -> Result<Box<dyn Running + 'p>, EarlyEnd> {
    Ok(match task {
        Task::Survey(survey) => Box::new(SurveyRun { survey }),
        Task::Workloads(workloads) if matches!(workloads.order, Order::InSlots(_)) => {
            Box::new(TogetherRun::new(plan))
        }
        Task::Workloads(_) => match planned_campaign(&CampaignFacts {
            plan,
            targets: &bench.facts.targets,
            host: &bench.facts.host,
            health: &bench.facts.health,
        }) {
            Some(campaign) => Box::new(CampaignRun::start(plan, campaign, bench, sink)?),
            None => Box::new(WorkloadsRun::new(plan)),
        },
        Task::Ping(ping) => Box::new(PingRun::start(plan, ping, sink)?),
        Task::Files(files) => Box::new(FilesRun::start(files, bench, sink)?),
        Task::Accept(accept) => Box::new(AcceptRun::start(accept, bench, sink)?),
        Task::Inserts(inserts) => Box::new(InsertsRun::start(plan, inserts, bench, sink)?),
    })
}
