//! `diskproof load`: the highest rate at which a promise about latency is kept.

mod flags;
mod mix;
mod promise;
mod workloads;

use crate::failure::{Exit, Failure};
use crate::flags::{SCRATCH_BYTES_MIN, SECOND_NS};
use crate::session::{MeasuringJob, measure};
use crate::workload::Time;
use diskproof_analysis::campaign::rate_search::LIMITS_MIN;
use diskproof_model::plan::{Decide, Plan, Scratch, Task, Workload, Workloads};
use diskproof_model::rate::RatePlan;
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_duration;
pub use flags::LoadFlags;
pub use promise::Promise;
use workloads::{SEQUENTIAL, offered_workload, ray_requests, sequential_requests};

/// The help promises 7 min of cells.
const TIME_NS: u64 = 420 * SECOND_NS;
/// The time for which the answer is held, within the time of the search.
const HOLD_NS: u64 = 60 * SECOND_NS;
/// A shorter search holds its answer for this part of its time: a seventh, as the usual one does.
const HOLD_DIVISOR: u64 = TIME_NS / HOLD_NS;
/// A shorter search has cells of less than half a second.
const TIME_NS_MIN: u64 = 20 * SECOND_NS;
/// The scratch file gets its content in a tenth of the search's time, beyond that time.
const LAYOUT_DIVISOR: u64 = 10;
/// A scratch file of four times the largest cache of a drive, 1 GiB.
const SCRATCH_BYTES: u64 = 4 << 30;
/// Each sequential workload gets a hundredth of the whole time, within two limits.
const SEQUENTIAL_DIVISOR: u64 = 100;
/// A sequential workload gets no less time.
const SEQUENTIAL_NS_MIN: u64 = SECOND_NS / 2;
/// A sequential workload gets no more time.
const SEQUENTIAL_NS_MAX: u64 = 10 * SECOND_NS;

/// Searches the highest rate that keeps the promise, or one for each ray, and then proves it.
pub fn run(load: &LoadFlags) -> anyhow::Result<Exit> {
    let identity = load.measuring.probe(&load.target)?;
    let plan = load_plan(load, &identity)?;
    measure(MeasuringJob::new(plan, vec![identity], &load.measuring))?.exit()
}

/// The plan of `load` for this target. Fails where the time is too short, or the target too small.
fn load_plan(load: &LoadFlags, identity: &TargetIdentity) -> Result<Plan, Failure> {
    if load.bs.is_some() && load.rw.is_none() && load.rays.is_none() {
        return Err(Failure::Usage(
            "--bs is the size of plain requests; it needs --rw or --rays".to_owned(),
        ));
    }
    let search = planned_search(load)?;
    let measuring = &load.measuring;
    let layout_ns = total_ns(load) / LAYOUT_DIVISOR;
    let mut scratch = None;
    let mut target_bytes = identity.size_bytes;
    if let Some(bytes) = measuring.scratch_bytes(identity, SCRATCH_BYTES)? {
        scratch = Some(Scratch::of_size(bytes).filled_within(SCRATCH_BYTES_MIN, layout_ns));
        target_bytes = bytes;
    }
    let workloads = match load.rays {
        Some(rays) => {
            let mut workloads = sequential_requests(load, sequential_ns(total_ns(load)));
            workloads.extend(ray_requests(load, rays)?);
            workloads
        }
        None => {
            let offered = offered_workload(load, target_bytes)?;
            let remedy = if scratch.is_some() {
                "use a larger --size"
            } else {
                "use a larger target"
            };
            refuse_small_target(&offered, target_bytes, remedy)?;
            vec![offered]
        }
    };
    Ok(Plan {
        scratch,
        tasks: vec![Task::Workloads(Workloads {
            decide: Decide::Rate(search),
            ..Workloads::as_planned(workloads)
        })],
        ..measuring.plan("load", std::slice::from_ref(identity))
    })
}

/// The number of searches that the time is shared out to: one for each ray.
fn search_count(load: &LoadFlags) -> u64 {
    u64::from(load.rays.unwrap_or(1))
}

/// The time of all searches, without what --prove adds.
fn total_ns(load: &LoadFlags) -> u64 {
    match load.time {
        Some(Time(ns)) => ns,
        None => search_count(load) * TIME_NS,
    }
}

/// The time of each of the sequential workloads before the rays.
fn sequential_ns(total_ns: u64) -> u64 {
    (total_ns / SEQUENTIAL_DIVISOR).clamp(SEQUENTIAL_NS_MIN, SEQUENTIAL_NS_MAX)
}

/// The promise, and the times of each search. Fails where they are too short.
fn planned_search(load: &LoadFlags) -> Result<RatePlan, Failure> {
    let time_ns = total_ns(load);
    let searches = search_count(load);
    let time_ns_min = searches * TIME_NS_MIN;
    if time_ns < time_ns_min {
        return Err(Failure::Usage(format!(
            "--time {}: too short for {}; use at least {}",
            format_duration(time_ns),
            counted_searches(searches),
            format_duration(time_ns_min)
        )));
    }
    let before_ns = match load.rays {
        Some(_) => SEQUENTIAL.len() as u64 * sequential_ns(time_ns),
        None => 0,
    };
    let searched_ns = (time_ns - before_ns) / searches;
    let searched_ns_min = searched_ns_min(load.slo.limit_ns);
    if searched_ns < searched_ns_min {
        let mut least_ns = searches.saturating_mul(searched_ns_min);
        if load.rays.is_some() {
            least_ns = least_ns.saturating_add(SEQUENTIAL.len() as u64 * SEQUENTIAL_NS_MAX);
        }
        return Err(Failure::Usage(format!(
            "--time {}: too short for a limit of {}, because each part of a search begins with {} \
             that do not count; use at least {}",
            format_duration(time_ns),
            format_duration(load.slo.limit_ns),
            format_duration(u64::from(LIMITS_MIN) * load.slo.limit_ns),
            format_duration(least_ns.next_multiple_of(SECOND_NS))
        )));
    }
    let usual_hold_ns = HOLD_NS.min(searched_ns / HOLD_DIVISOR);
    let hold_ns = match load.prove {
        Some(Time(ns)) => ns,
        None => usual_hold_ns,
    };
    if hold_ns < usual_hold_ns {
        return Err(Failure::Usage(format!(
            "--prove {}: a search of this --time holds the answer for {}; name more, or omit \
             --prove",
            format_duration(hold_ns),
            format_duration(usual_hold_ns)
        )));
    }
    Ok(RatePlan {
        percent: load.slo.percent,
        limit_ns: load.slo.limit_ns,
        time_ns: searched_ns + (hold_ns - usual_hold_ns),
        hold_ns,
    })
}

/// The least time of a search with this limit: half of it has room for the answer that is held, and
/// for the warm-ups of two cells. A search without it would only warm up at its end.
fn searched_ns_min(limit_ns: u64) -> u64 {
    let warmups_ns = limit_ns.saturating_mul(2 * u64::from(LIMITS_MIN));
    // Of half a short search, its share of HOLD_DIVISOR is held: the rest is this part of it.
    let short_ns = warmups_ns.saturating_mul(2 * HOLD_DIVISOR) / (HOLD_DIVISOR - 2);
    short_ns.min(warmups_ns.saturating_add(HOLD_NS).saturating_mul(2))
}

fn counted_searches(searches: u64) -> String {
    match searches {
        1 => "the search of a rate".to_owned(),
        several => format!("{several} searches"),
    }
}

/// Refuses a target that has no room for the log and one block. `remedy` ends the error.
fn refuse_small_target(
    workload: &Workload,
    target_bytes: u64,
    remedy: &str,
) -> Result<(), Failure> {
    let needed_bytes = match workload.transaction {
        Some(transaction) => transaction.log_span_bytes,
        None => 0,
    };
    if target_bytes < needed_bytes + u64::from(workload.block_bytes) {
        let what = match workload.transaction {
            Some(_) => "log and data of these transactions",
            None => "block of these requests",
        };
        return Err(Failure::Usage(format!(
            "{target_bytes} bytes hold no {what}; {remedy}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use promise::LIMIT_NS_MAX;

    #[test]
    fn search_has_room_for_the_warm_ups_of_its_limit() {
        let limit_ns_max = |time_ns: u64| {
            let mut limit_ns = SECOND_NS / 100;
            while searched_ns_min(limit_ns) <= time_ns {
                limit_ns += SECOND_NS / 100;
            }
            limit_ns - SECOND_NS / 100
        };
        // Half of 20 s: 2.86 s are held, and the warm-ups take 7.1 s.
        assert_eq!(limit_ns_max(20 * SECOND_NS) / 1_000_000, 350);
        // Half of 7 min: 60 s are held.
        assert_eq!(limit_ns_max(TIME_NS) / 1_000_000, 7500);
        assert!(searched_ns_min(LIMIT_NS_MAX) <= TIME_NS);
    }
}
