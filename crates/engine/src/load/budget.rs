//! What the workers of a workload may use up together, to the last operation: each takes a portion
//! when it has used up its last, so that none is done long before the others and leaves them to
//! work at another depth. Knows nothing of steps, slots or time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A portion is at most one part in this many of what every worker would get if the rest were
/// shared out evenly: also one that is sixty times slower than the others is done with its last
/// portion by the time that they have used up the rest.
const PORTION_PARTS: u64 = 64;
/// The largest portion. The counter is touched once for so many operations: that is lost in what
/// one of them takes, and a worker that stalls for long holds no more than this back from the
/// others.
const PORTION_MAX: u64 = 1024;

/// An amount that several take from.
#[derive(Debug)]
pub struct SharedBudget {
    left: AtomicU64,
    sharers: u64,
}

impl SharedBudget {
    /// `amount` for `sharers` workers.
    pub fn new(amount: u64, sharers: u64) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicU64::new(amount),
            sharers: sharers.max(1),
        })
    }

    /// What nobody has taken yet.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// What a worker should take next: all of it where it is the only one, else less and less
    /// towards the end.
    fn portion(&self) -> u64 {
        let left = self.left();
        if self.sharers == 1 {
            left
        } else {
            (left / (PORTION_PARTS * self.sharers)).clamp(1, PORTION_MAX)
        }
    }

    /// Takes `wanted`, or what is left of it.
    fn take_up_to(&self, wanted: u64) -> u64 {
        // Only the amount itself is shared, so the order in which other memory is seen does not
        // matter.
        let before = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                Some(left - left.min(wanted))
            });
        before.unwrap_or_default().min(wanted)
    }

    /// Takes `amount` or nothing; whether it did.
    pub fn take(&self, amount: u64) -> bool {
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(amount)
            })
            .is_ok()
    }

    /// What was taken and not used is there for all again.
    pub fn give_back(&self, amount: u64) {
        self.left.fetch_add(amount, Ordering::Relaxed);
    }
}

/// What a worker may use up; nothing is limited by default.
#[derive(Debug, Clone, Default)]
pub struct Budget {
    /// Steps of all workers.
    pub steps: Option<Arc<SharedBudget>>,
    /// Steps within this worker's own part of an ordered walk: no more laps than all workers
    /// together would make of the whole. A fast one would else begin its part anew and leave a
    /// slow one's unread.
    pub part: Option<Arc<SharedBudget>>,
    /// Bytes of all workers, where steps differ in length, and the longest step.
    pub bytes: Option<(Arc<SharedBudget>, u64)>,
}

impl Budget {
    /// So many steps for a single worker.
    #[cfg(test)]
    pub fn of_steps(steps: u64) -> Self {
        Self {
            steps: Some(SharedBudget::new(steps, 1)),
            ..Self::default()
        }
    }

    /// The next portion of steps; 0 when there are no more.
    pub fn take_portion(&self) -> u64 {
        let Some(steps) = &self.steps else {
            return u64::MAX;
        };
        let Some(part) = &self.part else {
            return steps.take_up_to(steps.portion());
        };
        // First from the part: what is taken from the common pot is used for certain, so that
        // nobody finds that empty who could have gone on.
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

    /// Steps that each of the workers makes, and when the last of each is done, where worker `i`
    /// takes `pace[i]` for a step.
    fn race(allowances: &[Budget], pace: &[u64]) -> Vec<(u64, u64)> {
        let mut done = vec![(0, 0); pace.len()];
        let mut hands: Vec<u64> = allowances.iter().map(Budget::take_portion).collect();
        // Whoever is done first goes on first.
        while let Some(next) = (0..pace.len())
            .filter(|i| hands[*i] > 0)
            .min_by_key(|i| done[*i].1 + pace[*i])
        {
            done[next] = (done[next].0 + 1, done[next].1 + pace[next]);
            hands[next] -= 1;
            if hands[next] == 0 {
                hands[next] = allowances[next].take_portion();
            }
        }
        done
    }

    #[test]
    fn all_end_together_however_slow_one_is_and_the_total_is_exact() {
        for total in [0, 1, 7, 1000, 99_991] {
            for pace in [
                &[10, 10][..],
                &[10, 300],
                &[10, 11, 470],
                &[1, 1, 1, 1, 1, 1, 1, 40],
            ] {
                let budget = shared(total, pace.len() as u64);
                let done = race(&vec![budget; pace.len()], pace);
                assert_eq!(done.iter().map(|d| d.0).sum::<u64>(), total, "{pace:?}");
                let last = done.iter().map(|d| d.1).max().unwrap();
                // The slowest may be one step behind; its step before that was not its own choice
                // where all had ended.
                let slowest = pace.iter().max().unwrap();
                assert!(
                    done.iter()
                        .all(|d| total < 1000 || d.1 + 2 * slowest >= last),
                    "{total} at {pace:?}: {done:?}"
                );
            }
        }
    }

    #[test]
    fn one_worker_takes_all_at_once_and_no_limit_never_ends() {
        let alone = Budget::of_steps(99_991);
        assert_eq!((alone.take_portion(), alone.take_portion()), (99_991, 0));
        assert_eq!(
            (
                Budget::default().take_portion(),
                Budget::default().take_portion()
            ),
            (u64::MAX, u64::MAX)
        );
    }

    #[test]
    fn a_part_of_an_ordered_walk_is_done_once_by_its_own_worker() {
        // Two parts of 500; one worker is nine times faster, and all 1000 are wanted.
        let of_all = shared(1000, 2);
        let with_part = |part| Budget {
            part: Some(SharedBudget::new(part, 1)),
            ..of_all.clone()
        };
        let done = race(&[with_part(500), with_part(500)], &[1, 9]);
        assert_eq!([done[0].0, done[1].0], [500, 500]);
        // Half of a pass: nobody has to wait.
        let of_all = shared(500, 2);
        let with_part = |part| Budget {
            part: Some(SharedBudget::new(part, 1)),
            ..of_all.clone()
        };
        let done = race(&[with_part(500), with_part(500)], &[1, 9]);
        assert_eq!(done[0].0 + done[1].0, 500);
        assert!((40..60).contains(&done[1].0), "{done:?}");
    }

    #[test]
    fn threads_take_exactly_what_is_there() {
        let budget = shared(100_003, 8);
        let bytes = SharedBudget::new(100_003, 8);
        let taken: (u64, u64) = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let steps =
                            std::iter::from_fn(|| Some(budget.take_portion()).filter(|n| *n > 0))
                                .sum::<u64>();
                        let mut kept = 0;
                        while bytes.take(16) {
                            bytes.give_back(9);
                            kept += 7;
                        }
                        (steps, kept)
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
        });
        assert_eq!(taken.0, 100_003);
        assert!(
            taken.1 > 100_003 - 8 * 16 && taken.1 <= 100_003,
            "{}",
            taken.1
        );
    }
}
