//! Places runs that measured in common slots in time, so that each of their launches has a sum of
//! its own.

use super::run_in_slots::RunInSlots;
use crate::fleet::launches::{Begins, Launched};
use diskproof_model::fleet_sum::EarlierLaunch;

impl Launched for RunInSlots {
    type Place = String;

    fn place(&self) -> &String {
        &self.name
    }

    fn start_ns(&self) -> Option<i128> {
        Some(first_slot_ns(self))
    }

    fn end_ns(&self) -> Option<i128> {
        Some(last_slot_end_ns(self))
    }

    fn begins(&self) -> Begins {
        Begins::Together
    }
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
