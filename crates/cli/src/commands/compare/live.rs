//! The live comparison: several targets, or several settings of one, measured in random
//! alternation. The campaign decides what is measured.

mod conclusion;
mod plan;
mod sides;

use super::flags::CompareFlags;
use crate::failure::{Exit, Failure};
use crate::flags::SCRATCH_BYTES_LEAST;
use crate::session::{Filling, MeasuringJob, dry_run, measure_campaign};
use crate::standard_workloads::of_all_sides;
use conclusion::Conclusion;
use diskproof_analysis::campaign::{LiveComparison, LiveSetup};
use diskproof_analysis::compare::Limit;
use diskproof_model::comparison::Comparison;
use diskproof_model::plan::Plan;
use plan::live_plan;
use sides::check_kinds;
use std::path::Path;

pub(super) use sides::live_targets;

/// Measures these targets, or settings of the only one, and compares. The exit code is that of a
/// run which did not come to its end.
pub(super) fn run(
    compare: &CompareFlags,
    targets: &[String],
) -> anyhow::Result<(Option<Comparison>, Option<Exit>)> {
    let (live_flags, measuring) = (&compare.live, &compare.measuring());
    let mut identities = Vec::new();
    for target in targets {
        identities.push(measuring.probe(Path::new(target))?);
    }
    check_kinds(&identities, live_flags)?;
    let labels = if live_flags.prepare.is_empty() {
        targets
    } else {
        &live_flags.prepare
    };
    let count = labels.len();
    let (of_side, layout_ns, cells_ns) = live_plan(live_flags, measuring, &identities, count)?;
    check_limits(&compare.limits, &of_side)?;
    let plan = Plan {
        targets: identities.iter().map(|one| one.path.clone()).collect(),
        workloads: of_all_sides(&of_side.workloads, count),
        ..of_side.clone()
    };
    let filling = if live_flags.reopen {
        Filling::Span
    } else {
        Filling::Within {
            bytes_min: SCRATCH_BYTES_LEAST,
            time_ns: layout_ns,
        }
    };
    let job = MeasuringJob::new(plan, identities, filling, measuring);
    if live_flags.dry_run {
        return Ok((None, Some(dry_run(&job)?)));
    }
    let setup = LiveSetup {
        workloads: of_side.workloads.clone(),
        sides: count,
        margin: compare.margin,
        time_ns: cells_ns,
        seed: of_side.seed,
    };
    let (settings, cleanup) = (&live_flags.prepare, live_flags.cleanup.as_deref());
    let campaign = LiveComparison::new(setup);
    let outcome = measure_campaign(job, settings, live_flags.reopen, cleanup, campaign)?;
    let conclusion = Conclusion {
        compare,
        measuring,
        labels,
        plan: &of_side,
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
