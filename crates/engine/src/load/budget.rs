//! Divides the budget of a workload among its workers, exact to the last operation. Each takes a
//! portion, and another when that is used up, so that all end at about the same time and the queue
//! depth holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A portion is at most one part in this many of a worker's even share of the rest. A worker that
/// is sixty times slower than the others still ends its last portion before they have used up the
/// rest.
const PORTION_PARTS: u64 = 64;
/// The largest portion. The workers touch the counter once for this many operations, which is
/// negligible. A worker that stalls keeps no more than this from the others. Chosen, not measured.
const PORTION_MAX: u64 = 1024;

/// An amount that several workers share.
#[derive(Debug)]
pub(crate) struct SharedBudget {
    left: AtomicU64,
    sharers: u64,
}

impl SharedBudget {
    /// `amount` for `sharers` workers.
    pub(crate) fn new(amount: u64, sharers: u64) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicU64::new(amount),
            sharers: sharers.max(1),
        })
    }

    /// The part that no worker has taken yet.
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// The next portion of a worker: everything for a single worker, otherwise less and less
    /// towards the end.
    fn portion(&self) -> u64 {
        let left = self.left();
        if self.sharers == 1 {
            left
        } else {
            (left / (PORTION_PARTS * self.sharers)).clamp(1, PORTION_MAX)
        }
    }

    /// Only the amount itself is shared, so the order in which other memory is seen does not
    /// matter.
    fn update(&self, left: impl FnMut(u64) -> Option<u64>) -> Result<u64, u64> {
        let relaxed = Ordering::Relaxed;
        self.left.fetch_update(relaxed, relaxed, left)
    }

    /// Takes `wanted`, or what is left of it.
    fn take_up_to(&self, wanted: u64) -> u64 {
        let before = self.update(|left| Some(left - left.min(wanted)));
        before.unwrap_or_default().min(wanted)
    }

    /// Takes `amount` or nothing; returns whether it did.
    pub(crate) fn try_take(&self, amount: u64) -> bool {
        self.update(|left| left.checked_sub(amount)).is_ok()
    }

    /// Returns what was taken and not used: never more than that, or the workload does more than
    /// its budget.
    pub(crate) fn give_back(&self, amount: u64) {
        self.left.fetch_add(amount, Ordering::Relaxed);
    }
}

/// The limits of a worker; nothing is limited by default.
#[derive(Debug, Clone, Default)]
pub(crate) struct Budget {
    /// Steps of all workers.
    pub steps: Option<Arc<SharedBudget>>,
    /// Steps within this worker's own part of an ordered pattern: no more laps than all workers
    /// together would make of the whole. Otherwise a fast worker would start its part again and
    /// leave the part of a slow one unread.
    pub part: Option<Arc<SharedBudget>>,
    /// Set where steps differ in length.
    pub bytes: Option<ByteBudget>,
}

/// Bytes that all workers may move together. A step takes as many as the longest one has before it
/// starts, and returns the difference when it is done.
#[derive(Debug, Clone)]
pub(crate) struct ByteBudget {
    /// The bytes that are left.
    pub left: Arc<SharedBudget>,
    /// Length of the longest step, in bytes.
    pub longest_step: u64,
}

impl Budget {
    /// This many steps for a single worker.
    #[cfg(test)]
    pub(crate) fn with_steps(steps: u64) -> Self {
        Self {
            steps: Some(SharedBudget::new(steps, 1)),
            ..Self::default()
        }
    }

    /// The next portion of steps; 0 when there are no more.
    pub(crate) fn take_portion(&self) -> u64 {
        let Some(steps) = &self.steps else {
            return u64::MAX;
        };
        let Some(part) = &self.part else {
            return steps.take_up_to(steps.portion());
        };
        // From the part first. What a worker takes from the shared budget it uses for certain, so
        // that no other worker finds that budget empty too early.
        let offered = part.take_up_to(steps.portion());
        let taken = steps.take_up_to(offered);
        part.give_back(offered - taken);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(amount: u64, sharers: u64) -> Budget {
        Budget {
            steps: Some(SharedBudget::new(amount, sharers)),
            ..Budget::default()
        }
    }

    /// Steps of each worker, and when its last one is done; worker `i` takes `pace[i]` for a step.
    fn race(budgets: &[Budget], pace: &[u64]) -> Vec<(u64, u64)> {
        let mut done = vec![(0, 0); pace.len()];
        let mut hands: Vec<u64> = budgets.iter().map(Budget::take_portion).collect();
        // The worker that is done first continues first.
        while let Some(next) = (0..pace.len())
            .filter(|i| hands[*i] > 0)
            .min_by_key(|i| done[*i].1 + pace[*i])
        {
            done[next] = (done[next].0 + 1, done[next].1 + pace[next]);
            hands[next] -= 1;
            if hands[next] == 0 {
                hands[next] = budgets[next].take_portion();
            }
        }
        done
    }

    #[test]
    fn budget_is_exact_and_workers_end_together() {
        for total in [0, 1, 7, 1000, 99_991] {
            let paces: [&[u64]; 4] = [
                &[10, 10],
                &[10, 300],
                &[10, 11, 470],
                &[1, 1, 1, 1, 1, 1, 1, 40],
            ];
            for pace in paces {
                let budget = shared(total, pace.len() as u64);
                let done = race(&vec![budget; pace.len()], pace);
                assert_eq!(done.iter().map(|d| d.0).sum::<u64>(), total, "{pace:?}");
                let last = done.iter().map(|d| d.1).max().unwrap();
                // The slowest may be one step behind. It started its last step before the others
                // had ended.
                let slowest = pace.iter().max().unwrap();
                let is_close = |d: &(u64, u64)| total < 1000 || d.1 + 2 * slowest >= last;
                assert!(done.iter().all(is_close), "{total} at {pace:?}: {done:?}");
            }
        }
    }

    #[test]
    fn budget_of_one_worker_is_one_portion_and_no_budget_never_ends() {
        let alone = Budget::with_steps(99_991);
        assert_eq!((alone.take_portion(), alone.take_portion()), (99_991, 0));
        assert_eq!(Budget::default().take_portion(), u64::MAX);
        assert_eq!(Budget::default().take_portion(), u64::MAX);
    }

    #[test]
    fn budget_keeps_each_part_with_its_worker() {
        // Two parts of 500 steps; one worker is nine times faster, and the budget is 1000.
        let race_for = |total| {
            let of_all = shared(total, 2);
            let with_part = |part| Budget {
                part: Some(SharedBudget::new(part, 1)),
                ..of_all.clone()
            };
            race(&[with_part(500), with_part(500)], &[1, 9])
        };
        let done = race_for(1000);
        assert_eq!([done[0].0, done[1].0], [500, 500]);
        // Half of a pass: no worker has to wait.
        let done = race_for(500);
        assert_eq!(done[0].0 + done[1].0, 500);
        assert!((40..60).contains(&done[1].0), "{done:?}");
    }

    #[test]
    fn budget_is_exact_across_threads() {
        let budget = shared(100_003, 8);
        let bytes = SharedBudget::new(100_003, 8);
        let take = || {
            let portions = std::iter::from_fn(|| Some(budget.take_portion()).filter(|n| *n > 0));
            let steps: u64 = portions.sum();
            let mut kept = 0;
            while bytes.try_take(16) {
                bytes.give_back(9);
                kept += 7;
            }
            (steps, kept)
        };
        let taken = std::thread::scope(|scope| {
            let threads = [(); 8].map(|()| scope.spawn(take));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(taken.iter().map(|one| one.0).sum::<u64>(), 100_003);
        let kept: u64 = taken.iter().map(|one| one.1).sum();
        assert!((100_003 - 8 * 16 + 1..=100_003).contains(&kept), "{kept}");
    }
}
