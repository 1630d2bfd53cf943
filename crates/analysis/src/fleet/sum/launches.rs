//! Divides runs that measured in common slots into their launches: a folder may have the records of
//! several nights, and each night has a sum of its own.

use super::run_in_slots::RunInSlots;
use diskproof_model::fleet_sum::EarlierLaunch;
use std::collections::BTreeSet;

/// The launches of these runs, the oldest first. A launcher starts a host or rank once, so those
/// that come again are of another launch, if they are at least half of all; fewer are runs that
/// were repeated. Launches are split at the longest time between two starts, where the earlier one
/// had ended: what measures at the same time is one launch, and machines may share a name.
pub(super) fn launches(runs: &[RunInSlots]) -> Vec<Vec<&RunInSlots>> {
    let mut ordered: Vec<&RunInSlots> = runs.iter().collect();
    ordered.sort_by_key(|run| first_slot_ns(run));
    let mut launches = Vec::new();
    divide(ordered, &mut launches);
    launches
}

fn divide<'r>(runs: Vec<&'r RunInSlots>, launches: &mut Vec<Vec<&'r RunInSlots>>) {
    let names = names_of(&runs).len();
    let has_repeated = names < runs.len();
    let Some(cut) = longest_gap(&runs).filter(|_| has_repeated) else {
        launches.push(runs);
        return;
    };
    let (earlier, later) = runs.split_at(cut);
    let are_launches = names_of(earlier).len() * 2 >= names && names_of(later).len() * 2 >= names;
    if are_launches && all_ended_before(earlier, later[0]) {
        divide(earlier.to_vec(), launches);
        divide(later.to_vec(), launches);
    } else {
        launches.push(runs);
    }
}

/// Returns `true` if all of these runs had ended when another one began.
fn all_ended_before(earlier: &[&RunInSlots], next: &RunInSlots) -> bool {
    let next_ns = first_slot_ns(next);
    earlier.iter().all(|run| last_slot_end_ns(run) <= next_ns)
}

fn names_of<'r>(runs: &[&'r RunInSlots]) -> BTreeSet<&'r str> {
    runs.iter().map(|run| run.name.as_str()).collect()
}

/// The index of the run after the longest time without a start; `None` of fewer than two runs.
fn longest_gap(runs: &[&RunInSlots]) -> Option<usize> {
    let mut longest: Option<Gap> = None;
    for (index, pair) in runs.windows(2).enumerate() {
        let length_ns = first_slot_ns(pair[1]) - first_slot_ns(pair[0]);
        if longest.as_ref().is_none_or(|gap| length_ns > gap.length_ns) {
            longest = Some(Gap {
                length_ns,
                next_run: index + 1,
            });
        }
    }
    longest.map(|gap| gap.next_run)
}

/// The time between the first slots of two runs that follow each other.
struct Gap {
    length_ns: i128,
    /// The index of the later run.
    next_run: usize,
}

/// The first slot of the timetable by the clock of the run, in nanoseconds since 1970. Runs of one
/// launch have the same, but for the errors of their clocks.
fn first_slot_ns(run: &RunInSlots) -> i128 {
    run.clock.started_ns + i128::from(run.together.first_slot_ns)
}

/// The end of the last slot that a run measured, in nanoseconds since 1970; the start of the first
/// one where it measured none.
fn last_slot_end_ns(run: &RunInSlots) -> i128 {
    let mut end_ns = first_slot_ns(run);
    for row in &run.rows {
        for slot in &row.slots {
            let slot_end_ns = slot.start_ns.saturating_add(slot.wall_ns);
            end_ns = end_ns.max(run.clock.started_ns + i128::from(slot_end_ns));
        }
    }
    end_ns
}

/// A launch before the newest, as the document has it.
pub(super) fn earlier_launch(runs: &[&RunInSlots]) -> EarlierLaunch {
    let first_ns = runs.iter().map(|run| run.clock.started_ns).min();
    let first = first_ns.and_then(|ns| jiff::Timestamp::from_nanosecond(ns).ok());
    EarlierLaunch {
        started: match first {
            Some(first) => format!("{first:.0}"),
            None => String::new(),
        },
        runs: runs.len(),
    }
}
