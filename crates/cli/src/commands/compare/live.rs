//! The live comparison: several targets, or several settings of one, measured in random
//! alternation. The campaign decides what is measured.

mod conclusion;
mod plan;
mod request;
mod sides;

use crate::failure::Failure;
use crate::session::{MeasuringJob, Reopening, dry_run, measure_campaign};
use conclusion::Conclusion;
use diskproof_analysis::campaign::{LiveComparison, LiveSetup};
use diskproof_analysis::compare::Limit;
use diskproof_model::plan::Plan;
use plan::LivePlan;
use sides::check_kinds;

pub use request::LiveFlags;
pub(super) use request::{LiveEnd, LiveRequest};
pub(super) use sides::LiveSides;

/// Measures and compares.
pub(super) fn run(request: &LiveRequest<'_>, sides: &LiveSides) -> anyhow::Result<LiveEnd> {
    let measuring = &request.measuring;
    let mut identities = Vec::new();
    for target in &sides.targets {
        identities.push(measuring.probe(target)?);
    }
    check_kinds(&identities, request.flags)?;
    let count = sides.sides.len();
    let live = LivePlan::new(request.flags, measuring, &identities, count)?;
    check_limits(request.limits, &live.plan)?;
    let plan = live.joint(&identities, count as u64);
    let job = MeasuringJob::new(plan, identities, live.filling, measuring);
    if request.flags.dry_run {
        return Ok(LiveEnd::Ended(dry_run(&job)?));
    }
    let setup = LiveSetup {
        workloads: live.plan.workloads.clone(),
        sides: count,
        margin: request.margin,
        time_ns: live.time_ns,
        seed: live.plan.seed,
    };
    let reopening = match request.flags.reopen {
        true => Reopening::BeforeEachCell,
        false => Reopening::Never,
    };
    let (cleanup, campaign) = (request.flags.cleanup.as_deref(), LiveComparison::new(setup));
    let outcome = measure_campaign(job, &sides.sides, reopening, cleanup, campaign)?;
    let conclusion = Conclusion {
        request,
        sides,
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
