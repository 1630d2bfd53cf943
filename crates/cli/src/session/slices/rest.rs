//! Decides which share of its planned time the next slice gets of what is left of a run.

use super::schedule::{Rotation, SliceSchedule};
use diskproof_model::window::SLICES_MIN;

/// The least share of its planned time that a slice should get. Where less is left, slices are
/// joined. Chosen, not measured.
const SHARE_UNJOINED_MIN: f64 = 0.5;
/// The smallest share of its planned time that a slice gets: it is measured, however late the run
/// is. Chosen, not measured.
pub(crate) const SHARE_MIN: f64 = 0.1;

/// What is left of a run, as planned.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct RestOfRun {
    /// Time of all slices that are left, in nanoseconds.
    pub planned_ns: u64,
    /// Time that they are expected to take beyond it: to fill the queue, and to complete what is
    /// in flight at the end.
    pub overhead_ns: u64,
}

impl RestOfRun {
    /// What the slices so far have left.
    pub(super) fn after(rotations: &[Rotation<'_>]) -> Self {
        Self::with_slices(rotations, u64::MAX, mean_overhead_ns(rotations))
    }

    /// The same where each group has at most so many slices left, and each slice of a group that is
    /// not measured yet takes `unknown_ns` beyond its time.
    fn with_slices(rotations: &[Rotation<'_>], slices_max: u64, unknown_ns: u64) -> Self {
        let mut rest_of_run = Self::default();
        for schedule in rotations.iter().flatten() {
            if schedule.left > 0 {
                rest_of_run.planned_ns += schedule.left_ns;
                rest_of_run.overhead_ns +=
                    schedule.left.min(slices_max) * schedule.slice_overhead_ns(unknown_ns);
            }
        }
        rest_of_run
    }

    /// True if not even half of the planned time fits into what is left: of many methods that each
    /// get a slice of 60 ms none would have a figure.
    fn is_hopeless(self, left_ns: u64) -> bool {
        let least_ns = self.overhead_ns as f64 + self.planned_ns as f64 * SHARE_UNJOINED_MIN;
        least_ns > left_ns as f64
    }

    /// The share of its planned time that the next slice gets while so much time is left; `None`
    /// when none is left.
    pub(super) fn share_of(self, left_ns: u64) -> Option<f64> {
        if left_ns == 0 {
            return None;
        }
        let free_ns = left_ns.saturating_sub(self.overhead_ns) as f64;
        let share = free_ns / self.planned_ns.max(1) as f64;
        Some(share.clamp(SHARE_MIN, 1.0))
    }
}

/// The known overheads of a slice, in nanoseconds. A group without slices ends with its own sync,
/// and does not count.
fn known_overheads_ns(rotations: &[Rotation<'_>]) -> Vec<u64> {
    let mut known = Vec::new();
    for schedule in rotations.iter().flatten() {
        if let Some(overhead_ns) = schedule.overhead_ns
            && schedule.done > 0
        {
            known.push(overhead_ns);
        }
    }
    known
}

/// The mean of the known overheads of a slice.
fn mean_overhead_ns(rotations: &[Rotation<'_>]) -> u64 {
    let known = known_overheads_ns(rotations);
    known.iter().sum::<u64>() / known.len().max(1) as u64
}

/// The median of overheads, the lower one of two: one stall says nothing of the other methods.
fn median_ns(mut overheads_ns: Vec<u64>) -> u64 {
    overheads_ns.sort_unstable();
    let middle = overheads_ns.len().saturating_sub(1) / 2;
    overheads_ns.get(middle).copied().unwrap_or(0)
}

/// Joins the remaining slices until each gets at least half of its planned time in what is left. On
/// a disk that has become slow, short slices only measure how a queue fills.
pub(super) fn join_slices(rotations: &mut [Rotation<'_>], left_ns: u64) {
    while let Some(share) = RestOfRun::after(rotations).share_of(left_ns)
        && share < SHARE_UNJOINED_MIN
    {
        let Some(most_delayed) = most_delayed(rotations) else {
            return;
        };
        most_delayed.left -= 1;
    }
}

/// So many slices show how slow a target is. Chosen, not measured.
const SLICES_KNOWN_MIN: usize = 4;
/// So many methods of committing are measured however slow the target is: the first ones of a plan
/// are those that a database uses. Chosen, not measured.
const METHODS_MIN: usize = 8;

/// Leaves out methods of committing that are not measured yet, the last ones of the plan first,
/// where not even half of the planned time fits into the rest of the run: on a memory card all 39
/// would share half a minute, and none would have a figure. Those that stay have time for as many
/// slices as an interval needs. `next` is measured now. Returns the workloads that are left out.
pub(super) fn leave_out_methods(
    rotations: &mut [Rotation<'_>],
    next: (usize, usize),
    left_ns: u64,
) -> Vec<String> {
    let mut left_out = Vec::new();
    let known = rotations
        .iter()
        .flatten()
        .filter(|schedule| schedule.done > 0)
        .count();
    let middle_ns = median_ns(known_overheads_ns(rotations));
    if known < SLICES_KNOWN_MIN
        || !RestOfRun::with_slices(rotations, 1, middle_ns).is_hopeless(left_ns)
    {
        return left_out;
    }
    let slices_max = SLICES_MIN as u64;
    while let Some(share) =
        RestOfRun::with_slices(rotations, slices_max, middle_ns).share_of(left_ns)
        && share < SHARE_UNJOINED_MIN
        && count_methods(rotations) > METHODS_MIN
    {
        let Some(last) = last_unmeasured_method(rotations, next) else {
            break;
        };
        for workload in last.group.workloads {
            left_out.push(workload.name.clone());
        }
        last.drop_rest();
    }
    left_out
}

/// The methods of committing that are measured, or will be.
fn count_methods(rotations: &[Rotation<'_>]) -> usize {
    let schedules = rotations.iter().flatten();
    schedules
        .filter(|schedule| schedule.commits() && (schedule.done > 0 || schedule.left > 0))
        .count()
}

/// The last method that is not measured yet, other than the next one.
fn last_unmeasured_method<'a, 'p>(
    rotations: &'a mut [Rotation<'p>],
    next: (usize, usize),
) -> Option<&'a mut SliceSchedule<'p>> {
    for (rotation, members) in rotations.iter_mut().enumerate().rev() {
        for (member, schedule) in members.iter_mut().enumerate().rev() {
            let is_next = (rotation, member) == next;
            if schedule.commits() && schedule.done == 0 && schedule.left > 0 && !is_next {
                return Some(schedule);
            }
        }
    }
    None
}

/// The group that loses most time between its slices, of those that can have one slice less.
fn most_delayed<'a, 'p>(rotations: &'a mut [Rotation<'p>]) -> Option<&'a mut SliceSchedule<'p>> {
    rotations
        .iter_mut()
        .flatten()
        .filter(|schedule| schedule.is_joinable())
        .max_by_key(|schedule| schedule.left_overhead_ns(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: of 100 s that are planned, 10 s more are expected for overheads. With 60 s left the
    /// slices get 50 s, which is half of their time.
    #[test]
    fn share_is_what_the_overheads_leave() {
        let rest = RestOfRun {
            planned_ns: 100,
            overhead_ns: 10,
        };
        assert_eq!(rest.share_of(60), Some(0.5));
        // More than planned is not used, and each slice gets a tenth however late the run is.
        assert_eq!(rest.share_of(200), Some(1.0));
        assert_eq!(rest.share_of(1), Some(SHARE_MIN));
        assert_eq!(rest.share_of(0), None);
    }

    #[test]
    fn one_stall_does_not_move_the_median() {
        assert_eq!(median_ns(vec![5, 4000, 5, 5]), 5);
        assert_eq!(median_ns(vec![800; 4]), 800);
        assert_eq!(median_ns(Vec::new()), 0);
    }
}
