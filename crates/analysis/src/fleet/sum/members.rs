//! Decides which runs are in a sum: those whose slots surely overlap in time.

use super::run_in_slots::{Member, RunInSlots, reason};
use crate::estimate::mean;
use crate::fleet::clock::ClockOffset;
use diskproof_model::comparison::Reason;
use diskproof_model::fleet_sum::LeftOut;
use diskproof_model::units::format_duration;

/// A run is part of the sum if its slots overlap with those of the first member by at least this
/// share on average. Chosen, not measured: a sum over less is of too short a time.
const OVERLAP_MIN: f64 = 0.5;

/// The runs whose slots overlap with those of the first member, which comes first. The others are
/// added to `left_out` with the reason.
pub(super) fn members<'r>(
    candidates: &[&'r RunInSlots],
    left_out: &mut Vec<LeftOut>,
) -> Vec<Member<'r>> {
    let Some(first) = first_member(candidates) else {
        return Vec::new();
    };
    let mut members = Vec::new();
    for run in candidates {
        match clock_offset_in_sum(first, run) {
            Ok(clock_offset) => members.push(Member { run, clock_offset }),
            Err(reason) => left_out.push(LeftOut {
                name: run.name.clone(),
                reason,
            }),
        }
    }
    // Members are placed by the clock of the first one.
    if let Some(index) = members
        .iter()
        .position(|member| member.run.run_id == first.run_id)
    {
        members[..=index].rotate_right(1);
    }
    members
}

/// The run whose clock all others are compared with: the one with the shortest fence. Without
/// fences, it is the one that began its slots in the middle among those whose wall clock has at
/// most twice the smallest known error. Where no error is known, a clock is wrong at least by its
/// distance from that of the kernel.
fn first_member<'r>(candidates: &[&'r RunInSlots]) -> Option<&'r RunInSlots> {
    let with_fences = candidates
        .iter()
        .filter(|run| run.clock.shortest_fence_ns().is_some())
        .min_by_key(|run| run.clock.shortest_fence_ns());
    if let Some(run) = with_fences {
        return Some(run);
    }
    let mut ordered = candidates.to_vec();
    ordered.sort_by_key(|run| run.clock.started_ns + i128::from(run.together.first_slot_ns));
    let smallest_ns = ordered
        .iter()
        .filter_map(|run| run.clock.stated_bound_ns())
        .min();
    if let Some(smallest_ns) = smallest_ns {
        ordered.retain(|run| match run.clock.stated_bound_ns() {
            Some(bound_ns) => bound_ns <= smallest_ns.saturating_mul(2),
            None => false,
        });
    } else if let Some(nearest_ns) = ordered
        .iter()
        .filter_map(|run| run.clock.distance_from_kernel_ns())
        .min()
    {
        ordered.retain(|run| match run.clock.distance_from_kernel_ns() {
            Some(apart_ns) => apart_ns <= nearest_ns.saturating_mul(2),
            None => false,
        });
    }
    ordered.get(ordered.len() / 2).copied()
}

/// The offset of a run's clock from that of the first member, or why the run is not in the sum.
fn clock_offset_in_sum(first: &RunInSlots, run: &RunInSlots) -> Result<ClockOffset, Reason> {
    if run.run_id == first.run_id {
        return Ok(ClockOffset::ITSELF);
    }
    let Some(offset) = run.clock.offset_to(&first.clock) else {
        return Err(reason(
            "clock-unknown",
            "nothing tells how wrong its clock may be. Use a launcher with fences, a time service, \
             or --clock-bound",
        ));
    };
    let overlaps = overlaps_of_slots(first, run, &offset);
    if overlap_enough(&overlaps.sure_shares) {
        return Ok(offset);
    }
    if overlap_enough(&overlaps.stated_shares) {
        let bound = format_duration(offset.bound_ns);
        return Err(reason(
            "clock-bound",
            &format!(
                "its clock may be wrong by {bound}, which leaves no slot that surely overlaps with \
                 those of {}. Use a launcher with fences, or a better time service",
                first.name
            ),
        ));
    }
    let apart_ns = overlaps.start_apart_ns.unwrap_or(0);
    let apart = u64::try_from(apart_ns.unsigned_abs()).unwrap_or(u64::MAX);
    let order = if apart_ns < 0 { "before" } else { "after" };
    Err(reason(
        "other-time",
        &format!(
            "it did not measure at the same time: its slots began {} {order} those of {}",
            format_duration(apart),
            first.name
        ),
    ))
}

/// How far the slots of a run overlap with those of the first member.
#[derive(Default)]
struct SlotOverlaps {
    /// The share of each slot that overlaps for certain.
    sure_shares: Vec<f64>,
    /// The share of each slot that overlaps if the clocks have no error.
    stated_shares: Vec<f64>,
    /// The least time by which a slot of the run began after that of the first member, in
    /// nanoseconds; negative before it, `None` without a common slot.
    start_apart_ns: Option<i128>,
}

fn overlaps_of_slots(first: &RunInSlots, run: &RunInSlots, offset: &ClockOffset) -> SlotOverlaps {
    let mut overlaps = SlotOverlaps::default();
    for number in run.whole_slots() {
        let (Some(slot_of_first), Some(slot)) = (first.slot(number), run.slot(number)) else {
            continue;
        };
        let longest_ns = slot_of_first.wall_ns.max(slot.wall_ns).max(1) as f64;
        let time_of_first = first.sure_time(&ClockOffset::ITSELF, slot_of_first);
        let sure_time = run.sure_time(offset, slot).within(time_of_first);
        overlaps
            .sure_shares
            .push(sure_time.length_ns() as f64 / longest_ns);
        let stated_time = run
            .sure_time(&offset.without_bound(), slot)
            .within(time_of_first);
        overlaps
            .stated_shares
            .push(stated_time.length_ns() as f64 / longest_ns);
        let apart_ns = run.shared_time_ns(offset, slot.start_ns)
            - first.shared_time_ns(&ClockOffset::ITSELF, slot_of_first.start_ns);
        overlaps.start_apart_ns = Some(match overlaps.start_apart_ns {
            Some(least_ns) => apart_ns.min(least_ns),
            None => apart_ns,
        });
    }
    overlaps
}

/// Returns `true` if slots overlap by enough on average. `shares` has one value for each slot.
fn overlap_enough(shares: &[f64]) -> bool {
    !shares.is_empty() && mean(shares) >= OVERLAP_MIN
}
