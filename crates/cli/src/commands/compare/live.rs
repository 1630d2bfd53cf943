//! The live comparison: several targets, or several settings of one, measured in random
//! alternation. The campaign decides what is measured.

mod conclusion;
mod plan;
mod sides;

use super::flags::CompareFlags;
use crate::failure::Failure;
use crate::session::{MeasuringJob, dry_run, measure_campaign};
use conclusion::Conclusion;
use diskproof_analysis::campaign::{LiveComparison, LiveSetup};
use diskproof_analysis::compare::Limit;
use diskproof_model::plan::Plan;
use plan::LivePlan;
use sides::check_kinds;
use std::path::Path;

pub(super) use conclusion::LiveEnd;
pub(super) use sides::live_targets;

/// Measures these targets, or settings of the only one, and compares.
pub(super) fn run(compare: &CompareFlags, targets: &[String]) -> anyhow::Result<LiveEnd> {
    let (live_flags, measuring) = (&compare.live, &compare.measuring());
    let mut identities = Vec::new();
    for target in targets {
        identities.push(measuring.probe(Path::new(target))?);
    }
    check_kinds(&identities, live_flags)?;
    let labels = match live_flags.prepare.is_empty() {
        true => targets,
        false => &live_flags.prepare,
    };
    let count = labels.len();
    let live = LivePlan::new(live_flags, measuring, &identities, count)?;
    check_limits(&compare.limits, &live.plan)?;
    let plan = live.joint(&identities, count);
    let job = MeasuringJob::new(plan, identities, live.filling, measuring);
    if live_flags.dry_run {
        return Ok(LiveEnd::Ended(dry_run(&job)?));
    }
    let setup = LiveSetup {
        workloads: live.plan.workloads.clone(),
        sides: count,
        margin: compare.margin,
        time_ns: live.time_ns,
        seed: live.plan.seed,
    };
    let (settings, cleanup) = (&live_flags.prepare, live_flags.cleanup.as_deref());
    let campaign = LiveComparison::new(setup);
    let outcome = measure_campaign(job, settings, live_flags.reopen, cleanup, campaign)?;
    let conclusion = Conclusion {
        compare,
        measuring,
        labels,
        plan: &live.plan,
    };
    conclusion.conclude(&outcome)
}

/// A condition on a workload that is not measured would be noticed only after the run.
fn check_limits(limits: &[Limit], plan: &Plan) -> Result<(), Failure> {
    let is_known = |metric: &str| {
        plan.workloads.iter().any(|workload| {
            let rest = metric.strip_prefix(workload.name.as_str());
            rest.is_some_and(|rest| rest.starts_with('.'))
        })
    };
    match limits.iter().find(|limit| !is_known(&limit.metric)) {
        None => Ok(()),
        Some(limit) => {
            let names: Vec<&str> = plan.workloads.iter().map(|w| w.name.as_str()).collect();
            Err(Failure::Usage(format!(
                "--fail-on '{}': this comparison measures {}",
                limit.expression,
                names.join(", ")
            )))
        }
    }
}
