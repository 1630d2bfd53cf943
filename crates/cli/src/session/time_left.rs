//! The time that is left of a run with a limit: what a step takes longer than planned, the later
//! slices get less. Knows neither workloads nor targets.

use std::time::{Duration, Instant};

/// Smallest share of its planned time that a slice gets.
pub(super) const SHARE_MIN: f64 = 0.1;

/// What is planned for the rest of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct RestOfRun {
    /// Time of all slices that are left, in nanoseconds.
    pub planned_ns: u64,
    /// Time that they are expected to take beyond it: to fill the queue, and to complete what is
    /// in flight at the end.
    pub overhead_ns: u64,
}

/// When a run ends at the latest.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeLeft {
    end: Option<Instant>,
}

impl TimeLeft {
    /// Of a run that begins now; `None` has no limit.
    pub(super) fn from_now(limit_ns: Option<u64>) -> Self {
        Self {
            end: limit_ns.map(|ns| Instant::now() + Duration::from_nanos(ns)),
        }
    }

    /// The share of its planned time that the next slice gets; `None` when no time is left.
    pub(super) fn share(self, rest: RestOfRun) -> Option<f64> {
        let Some(end) = self.end else {
            return Some(1.0);
        };
        let left = end.saturating_duration_since(Instant::now());
        share_of(left.as_nanos() as u64, rest)
    }
}

fn share_of(left_ns: u64, rest: RestOfRun) -> Option<f64> {
    let free_ns = left_ns.saturating_sub(rest.overhead_ns) as f64;
    let share = free_ns / rest.planned_ns.max(1) as f64;
    (left_ns > 0).then(|| share.clamp(SHARE_MIN, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn share(left: u64, planned: u64, overhead: u64) -> Option<f64> {
        share_of(
            left * SECOND,
            RestOfRun {
                planned_ns: planned * SECOND,
                overhead_ns: overhead * SECOND,
            },
        )
    }

    #[test]
    fn slices_share_the_time_that_is_left() {
        assert_eq!(share(8, 8, 0), Some(1.0));
        assert_eq!(share(100, 8, 0), Some(1.0), "no slice gets more");
        assert_eq!(share(6, 8, 0), Some(0.75));
        assert_eq!(share(6, 8, 2), Some(0.5));
        assert_eq!(share(1, 8, 2), Some(SHARE_MIN));
        assert_eq!(share(0, 8, 0), None);
        assert_eq!(share(5, 0, 0), Some(1.0));
    }

    #[test]
    fn a_run_without_a_limit_never_shortens() {
        let rest = RestOfRun {
            planned_ns: u64::MAX,
            overhead_ns: u64::MAX,
        };
        assert_eq!(TimeLeft::from_now(None).share(rest), Some(1.0));
        assert_eq!(TimeLeft::from_now(Some(0)).share(rest), None);
    }
}
