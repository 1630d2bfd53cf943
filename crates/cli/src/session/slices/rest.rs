//! Decides which share of its planned time the next slice gets of what is left of a run.

use super::schedule::{Rotation, SliceSchedule};

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
        let mean_ns = mean_overhead_ns(rotations);
        let mut rest_of_run = Self::default();
        for schedule in rotations.iter().flatten() {
            if schedule.left > 0 {
                rest_of_run.planned_ns += schedule.left_ns;
                rest_of_run.overhead_ns += schedule.left_overhead_ns(mean_ns);
            }
        }
        rest_of_run
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

/// The mean of the known overheads of a slice, in nanoseconds. A group without slices ends with its
/// own sync, and does not count.
fn mean_overhead_ns(rotations: &[Rotation<'_>]) -> u64 {
    let mut sum_ns: u64 = 0;
    let mut overhead_count: u64 = 0;
    for schedule in rotations.iter().flatten() {
        if let Some(overhead_ns) = schedule.overhead_ns
            && schedule.done > 0
        {
            sum_ns += overhead_ns;
            overhead_count += 1;
        }
    }
    sum_ns / overhead_count.max(1)
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
}
