//! Decides when a run that takes longer than announced is ended.

use crate::flags::SECOND_NS;
use diskproof_model::budget::Budget;
use diskproof_model::measurement::WAKE_UP_NS;
use diskproof_model::plan::Plan;
use diskproof_model::progress::Phase;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Every run may be this late. What is in flight at its end gets four more seconds, so that no run
/// of up to fifty workloads takes ten seconds more than announced.
const LATE_NS: u64 = 4 * SECOND_NS;
/// A few groups of workloads may each be this late.
const FEW_GROUPS_LATE_NS: u64 = SECOND_NS / 10;
/// Many groups may each be this late, or all together a second: each begins and ends with some
/// milliseconds that are not announced. 39 took 0.6 s on a busy machine.
const MANY_GROUPS_LATE_NS: u64 = SECOND_NS / 50;
/// Filling may take this much longer than its limit, so that a layout that keeps to the same limit
/// by itself is not ended as late: what it has in flight at its end, and the write-back behind it,
/// get the same time as those of a workload.
const FILL_TOLERANCE: Duration = Duration::from_secs(4);

/// The end of a run, which several threads read and move; `None` where it has no limit.
pub(crate) type SharedDeadline = Arc<Mutex<Option<Instant>>>;

/// Locks a deadline, also where a thread that held it has panicked.
pub(crate) fn lock_deadline(deadline: &SharedDeadline) -> MutexGuard<'_, Option<Instant>> {
    deadline.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The deadline of a run: its announced time, and a grace. The time of a layout without limit is
/// not announced, nor is that between the steps of many small files, nor that of the user's
/// commands: they move the deadline.
pub(super) struct RunDeadline {
    end: SharedDeadline,
    /// The end is this much later than announced.
    grace_ns: u64,
    /// The longest that scratch files may be filled at a time; `None` where filling counts as
    /// announced time.
    fill_max: Option<Duration>,
    /// Filling for longer ends the run. Without it, the rest is announced time.
    fill_ends: bool,
    /// The time for which scratch files were filled, or got their first requests, since the last
    /// measurement.
    filled: Duration,
    /// The disks that sleep may still take so long, in all, for their very first requests.
    wake_up_left: Duration,
    /// The last call of [`RunDeadline::update`].
    updated: Instant,
    is_late: bool,
}

/// The deadline of a run while its announced time stands still.
#[must_use]
pub(crate) struct PausedDeadline {
    end: Option<Instant>,
    since: Instant,
}

impl RunDeadline {
    /// The deadline of a run that starts at `now`.
    pub(super) fn new(plan: &Plan, budget: &Budget, now: Instant) -> Self {
        let grace_ns = late_ns(plan.groups().count() as u64);
        let end = budget
            .deadline_ns
            .map(|ns| now + Duration::from_nanos(ns + grace_ns));
        // The targets are filled in turn. A survey fills without a limit of its own; a target that
        // is opened again is filled again. What the log of transactions needs beyond an announced
        // first write has a limit of its own, which moves the deadline by itself.
        let targets = plan.targets.len() as u64;
        let fill_max = match budget.fill_ns {
            Some(target_ns) if plan.first_write_ns().is_none() => {
                let limit = Duration::from_nanos(target_ns.saturating_mul(targets));
                Some(limit.saturating_add(FILL_TOLERANCE))
            }
            Some(_) | None => None,
        };
        Self {
            end: Arc::new(Mutex::new(end)),
            grace_ns,
            fill_max,
            fill_ends: plan.files().is_none(),
            filled: Duration::ZERO,
            wake_up_left: Duration::from_nanos(WAKE_UP_NS.saturating_mul(targets)),
            updated: now,
            is_late: false,
        }
    }

    /// Counts the time in which a target wakes up as announced time.
    pub(super) fn count_wake_up(&mut self) {
        self.wake_up_left = Duration::ZERO;
    }

    /// The deadline as it is known now; `None` for a run without one.
    pub(super) fn end(&self) -> Option<Instant> {
        *lock_deadline(&self.end)
    }

    /// The deadline for other threads. It moves while the run goes on.
    pub(super) fn shared(&self) -> SharedDeadline {
        Arc::clone(&self.end)
    }

    /// The time until the announced end of the run, in nanoseconds; `None` where it has none.
    pub(super) fn announced_left_ns(&self) -> Option<u64> {
        let left = self.end()?.saturating_duration_since(Instant::now());
        Some((left.as_nanos() as u64).saturating_sub(self.grace_ns))
    }

    /// Stops the announced time until [`Self::resume`]. Nothing ends the run as late meanwhile.
    pub(super) fn pause(&mut self) -> PausedDeadline {
        PausedDeadline {
            end: lock_deadline(&self.end).take(),
            since: Instant::now(),
        }
    }

    /// Lets the announced time go on.
    pub(super) fn resume(&mut self, paused: PausedDeadline) {
        let passed = paused.since.elapsed();
        *lock_deadline(&self.end) = paused.end.map(|end| end + passed);
    }

    /// Moves the deadline by a time that was not announced.
    pub(super) fn extend(&mut self, time: Duration) {
        if let Some(end) = &mut *lock_deadline(&self.end) {
            *end += time;
        }
    }

    /// Ends the run as late now. Other threads see the deadline as passed.
    pub(super) fn end_late(&mut self) {
        self.is_late = true;
        let now = Instant::now();
        let mut end = lock_deadline(&self.end);
        *end = match *end {
            Some(earlier) => Some(earlier.min(now)),
            None => Some(now),
        };
    }

    /// Accounts for the time since the last call, which passed in this phase. A phase that is not
    /// announced moves the deadline, until filling takes too long.
    pub(super) fn update(&mut self, phase: Phase) {
        let passed = self.updated.elapsed();
        self.updated += passed;
        if phase == Phase::SetUp {
            // No target is waited for, and the memory is finite.
            self.extend(passed);
        } else if !precedes_measured_time(phase) {
            self.filled = Duration::ZERO;
        } else if !self.is_late
            && let Some(fill_max) = self.fill_max
        {
            self.extend(passed.min(fill_max.saturating_sub(self.filled)));
            self.filled = self.filled.saturating_add(passed);
            if self.fill_ends && self.filled > fill_max {
                self.end_late();
            }
        } else if phase == Phase::WakeUp && !self.is_late {
            // A disk in standby starts its motor for the first request.
            let waking = passed.min(self.wake_up_left);
            self.extend(waking);
            self.wake_up_left -= waking;
        }
        if let Some(end) = self.end() {
            self.is_late |= self.updated >= end;
        }
    }

    /// Marks the run as late if the deadline has passed.
    pub(super) fn look_at_clock(&mut self) {
        self.is_late |= self.has_passed();
    }

    pub(super) fn has_passed(&self) -> bool {
        match self.end() {
            Some(end) => Instant::now() >= end,
            None => false,
        }
    }

    /// True once the run was found to be late, also where the deadline was moved since.
    pub(super) fn is_late(&self) -> bool {
        self.is_late
    }
}

/// A run of this many groups that is so late is ended.
fn late_ns(groups: u64) -> u64 {
    let many_ns = SECOND_NS.max(groups * MANY_GROUPS_LATE_NS);
    LATE_NS + (groups * FEW_GROUPS_LATE_NS).min(many_ns)
}

/// Before its measured time, a run fills scratch files and sends first requests. That has no rate
/// to show, and its time is not the announced one.
pub(super) fn precedes_measured_time(phase: Phase) -> bool {
    match phase {
        Phase::Layout | Phase::WakeUp | Phase::FirstRequests | Phase::SetUp => true,
        Phase::Warmup | Phase::Measure | Phase::Verify | Phase::Survey => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_of_fifty_workloads_ends_within_ten_seconds_of_its_announced_time() {
        for groups in 1..=50 {
            assert!(late_ns(groups) + 4_900_000_000 < 10_000_000_000);
        }
        assert_eq!(late_ns(1000), 24_000_000_000);
    }

    /// Gigabytes of buffers take longer to touch than some runs.
    #[test]
    fn set_up_of_workers_is_no_time_of_the_run() {
        let start = Instant::now();
        let mut deadline = RunDeadline {
            end: Arc::new(Mutex::new(Some(start + Duration::from_secs(1)))),
            grace_ns: 0,
            fill_max: None,
            fill_ends: true,
            filled: Duration::ZERO,
            wake_up_left: Duration::ZERO,
            updated: start - Duration::from_secs(10),
            is_late: false,
        };
        deadline.update(Phase::SetUp);
        assert!(!deadline.is_late());
        assert!(deadline.end() >= Some(start + Duration::from_secs(11)));
    }

    /// A disk in standby needs eight seconds for the first request.
    #[test]
    fn wake_up_of_a_disk_is_no_time_of_the_run() {
        let start = Instant::now();
        let mut deadline = RunDeadline {
            end: Arc::new(Mutex::new(Some(start + Duration::from_secs(7)))),
            grace_ns: 0,
            fill_max: None,
            fill_ends: true,
            filled: Duration::ZERO,
            wake_up_left: Duration::from_secs(15),
            updated: start - Duration::from_secs(8),
            is_late: false,
        };
        deadline.update(Phase::WakeUp);
        assert!(!deadline.is_late());
        assert!(deadline.end() >= Some(start + Duration::from_secs(15)));
        // No disk that is healthy takes longer than that in all.
        deadline.updated -= Duration::from_secs(30);
        deadline.update(Phase::WakeUp);
        assert!(deadline.end() < Some(start + Duration::from_secs(23)));
        let end = deadline.end();
        deadline.wake_up_left = Duration::from_secs(15);
        deadline.updated -= Duration::from_secs(5);
        deadline.update(Phase::FirstRequests);
        assert_eq!(deadline.end(), end);
    }

    #[test]
    fn deadline_moves_by_a_layout_and_ends_a_layout_that_takes_too_long() {
        let start = Instant::now();
        let mut deadline = RunDeadline {
            end: Arc::new(Mutex::new(Some(start + Duration::from_secs(60)))),
            grace_ns: 0,
            fill_max: Some(Duration::from_secs(20)),
            fill_ends: true,
            filled: Duration::ZERO,
            wake_up_left: Duration::ZERO,
            updated: start - Duration::from_secs(10),
            is_late: false,
        };
        deadline.update(Phase::Layout);
        assert!(!deadline.is_late());
        assert!(deadline.end() >= Some(start + Duration::from_secs(70)));
        deadline.updated -= Duration::from_secs(15);
        deadline.update(Phase::Layout);
        assert!(deadline.is_late() && deadline.has_passed());
    }

    /// What is between the steps of many files takes announced time once it takes too long, and a
    /// run that has much of it goes on.
    #[test]
    fn writing_back_of_files_ends_no_run_that_has_time() {
        let start = Instant::now();
        let mut deadline = RunDeadline {
            end: Arc::new(Mutex::new(Some(start + Duration::from_secs(600)))),
            grace_ns: 0,
            fill_max: Some(Duration::from_secs(20)),
            fill_ends: false,
            filled: Duration::ZERO,
            wake_up_left: Duration::ZERO,
            updated: start - Duration::from_secs(200),
            is_late: false,
        };
        deadline.update(Phase::Layout);
        assert!(!deadline.is_late());
        assert!(deadline.end() >= Some(start + Duration::from_secs(620)));
        assert!(deadline.end() < Some(start + Duration::from_secs(630)));
    }
}
