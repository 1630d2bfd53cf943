//! Decides what a campaign measures next: a series of short measurements in which the results so
//! far decide. Each kind of campaign has its own file, and all have the interface of `decision`.
//! The program measures the cells on the disk, tests in virtual time.

mod compare_live;
mod decision;
mod gaps;
mod latency_search;
mod random_order;
mod rate;
pub mod rate_search;
mod side_credit;
mod sustain;
mod sweep;
#[cfg(test)]
mod volume;

pub use crate::limiter::moved_by_side;
pub use compare_live::{LiveComparison, LiveSetup};
pub use decision::{
    Campaign, CampaignCell, CampaignFacts, CampaignRow, CampaignStep, CellPurpose, MeasuredCell,
};
pub use gaps::{IDLE_TIMES_NS, gap_round_ns, gap_schedule};
pub use latency_search::{LatencySearchCampaign, search_depths};
pub use rate::{RateCampaign, answer_of_trials};
pub use rate_search::{RateAnswer, RateControl};
pub use side_credit::SideDisks;
pub use sustain::SustainCampaign;
pub use sweep::{Sweep, SweepCellSetup, SweepPass, SweepSetup};

use diskproof_model::plan::Decide;

/// The campaign that decides which workload of a plan is measured next on its targets; `None` where
/// the plan itself lists them in order.
pub fn planned_campaign(facts: &CampaignFacts<'_>) -> Option<Box<dyn Campaign>> {
    let plan = facts.plan;
    let workloads = plan.workload_task()?;
    match &workloads.decide {
        Decide::AsPlanned => None,
        Decide::Sweep(spec) => {
            let setup = SweepSetup::planned(plan, &workloads.list, spec);
            Some(Box::new(Sweep::new(&setup)))
        }
        Decide::Depth => {
            let search = LatencySearchCampaign::planned(plan)?;
            Some(Box::new(search))
        }
        Decide::Until(_) => {
            let sustained = SustainCampaign::planned(facts)?;
            Some(Box::new(sustained))
        }
        Decide::Rate(search) => Some(Box::new(RateCampaign::new(workloads, *search, plan.seed))),
        Decide::Compare(live) => {
            let setup = LiveSetup::planned(plan, &workloads.list, live, facts.targets);
            Some(Box::new(LiveComparison::new(setup)))
        }
    }
}
