//! Schedules the starts of an open loop: operation k starts at start + k / rate, or at random times
//! with the same mean distance, on any free worker.

use crate::lock::lock;
use crate::random::Random;
use diskproof_model::plan::Workload;
use diskproof_model::shape::Arrivals;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// At most this many groups of starts that no worker made: an error of a millionth of a run does
/// not distort a latency.
const MISSED_GROUPS_MAX: u64 = 1_000_000;

/// Starts that were due and that no worker has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MissedStarts {
    /// The time since they were due.
    pub waited_ns: u64,
    /// The number of starts in the group.
    pub count: u64,
}

/// A schedule shared by all workers of a workload.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    start_ns: u64,
    interval_ns: f64,
    starts: Starts,
}

/// The starts that no worker has taken yet.
#[derive(Debug, Clone)]
enum Starts {
    /// At equal intervals: the number of the next one.
    Even(Arc<AtomicU64>),
    /// A Poisson process.
    Poisson(Arc<Mutex<PoissonStarts>>),
}

/// Starts at independent, exponentially distributed distances.
#[derive(Debug, Clone)]
struct PoissonStarts {
    /// The next one, in nanoseconds after the start of the schedule.
    next_ns: f64,
    random: Random,
}

impl PoissonStarts {
    /// The next start; advances to the one after it.
    fn take(&mut self, interval_ns: f64) -> u64 {
        let taken = self.next_ns as u64;
        // 53 random bits, which a float holds exactly, in (0, 1], so that the logarithm is finite.
        let drawn = ((self.random.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        self.next_ns -= interval_ns * drawn.ln();
        taken
    }
}

impl Pacer {
    /// `rate` operations per second from `start_ns` on; `seed` decides random distances.
    pub(crate) fn new(start_ns: u64, rate: f64, arrivals: Arrivals, seed: u64) -> Self {
        let starts = match arrivals {
            Arrivals::Even => Starts::Even(Arc::default()),
            Arrivals::Poisson => Starts::Poisson(Arc::new(Mutex::new(PoissonStarts {
                next_ns: 0.0,
                random: Random::new(seed, u64::MAX),
            }))),
        };
        Self {
            start_ns,
            interval_ns: 1e9 / rate,
            starts,
        }
    }

    /// The schedule of a workload, from time zero on; `None` in a closed loop.
    pub(crate) fn for_workload(workload: &Workload, seed: u64) -> Option<Self> {
        let rate = workload.rate?;
        Some(Self::new(0, rate, workload.shape.starts.arrivals, seed))
    }

    /// The schedule, counted from another start. Only before the first operation.
    pub(crate) fn starting_at(mut self, start_ns: u64) -> Self {
        self.start_ns = start_ns;
        self
    }

    /// The start of the operation with this number, at equal intervals.
    fn intended_start_ns(&self, ticket: u64) -> u64 {
        self.start_ns + (ticket as f64 * self.interval_ns) as u64
    }

    /// The intended start of the next operation, when it is due; taken by the caller.
    pub(crate) fn take_due(&self, now_ns: u64) -> Option<u64> {
        let next = match &self.starts {
            Starts::Even(next) => next,
            Starts::Poisson(starts) => {
                let mut starts = lock(starts);
                let is_due = self.start_ns + starts.next_ns as u64 <= now_ns;
                return is_due.then(|| self.start_ns + starts.take(self.interval_ns));
            }
        };
        let mut ticket = next.load(Ordering::Relaxed);
        loop {
            let intended = self.intended_start_ns(ticket);
            if intended > now_ns {
                return None;
            }
            match next.compare_exchange_weak(
                ticket,
                ticket + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(intended),
                Err(seen) => ticket = seen,
            }
        }
    }

    /// The intended start of the next operation, due or not; taken by the caller.
    pub(crate) fn take_next(&self) -> u64 {
        match &self.starts {
            Starts::Even(next) => self.intended_start_ns(next.fetch_add(1, Ordering::Relaxed)),
            Starts::Poisson(starts) => self.start_ns + lock(starts).take(self.interval_ns),
        }
    }

    /// The starts from `from_ns` to `until_ns` that no worker has taken, in groups that were due at
    /// about the same time.
    pub(crate) fn missed_starts(&self, from_ns: u64, until_ns: u64) -> Vec<MissedStarts> {
        match &self.starts {
            Starts::Even(next) => {
                let first = next.load(Ordering::Relaxed).max(self.ticket_at(from_ns));
                let end = self.ticket_at(until_ns);
                missed_in_groups(first..end, until_ns, |ticket| {
                    self.intended_start_ns(ticket)
                })
            }
            Starts::Poisson(starts) => {
                let starts = lock(starts).clone();
                self.missed_at_random(starts, from_ns, until_ns)
            }
        }
    }

    /// The first ticket of a schedule at equal intervals that is due at this time or later.
    fn ticket_at(&self, ns: u64) -> u64 {
        (ns.saturating_sub(self.start_ns) as f64 / self.interval_ns).ceil() as u64
    }

    /// As [`Self::missed_starts`], of a Poisson process: `starts` is a copy, which is advanced.
    fn missed_at_random(
        &self,
        mut starts: PoissonStarts,
        from_ns: u64,
        until_ns: u64,
    ) -> Vec<MissedStarts> {
        let mut due_ns = self.start_ns + starts.next_ns as u64;
        let expected = until_ns.saturating_sub(due_ns) as f64 / self.interval_ns;
        if expected > MISSED_GROUPS_MAX as f64 {
            // Of so many, the distances are as good as equal.
            let first_ns = due_ns.max(from_ns);
            let count = until_ns.saturating_sub(first_ns) as f64 / self.interval_ns;
            return missed_in_groups(0..count as u64, until_ns, |number| {
                first_ns + (number as f64 * self.interval_ns) as u64
            });
        }
        let mut missed = Vec::new();
        while due_ns < until_ns {
            if due_ns >= from_ns {
                missed.push(MissedStarts {
                    waited_ns: until_ns - due_ns,
                    count: 1,
                });
            }
            starts.take(self.interval_ns);
            due_ns = self.start_ns + starts.next_ns as u64;
        }
        missed
    }

    /// When the next operation is due.
    pub(crate) fn next_due_ns(&self) -> u64 {
        match &self.starts {
            Starts::Even(next) => self.intended_start_ns(next.load(Ordering::Relaxed)),
            Starts::Poisson(starts) => self.start_ns + lock(starts).next_ns as u64,
        }
    }
}

/// Starts with these numbers, in [`MISSED_GROUPS_MAX`] groups at most. The start in the middle of a
/// group stands for it.
fn missed_in_groups(
    numbers: Range<u64>,
    until_ns: u64,
    intended_start_ns: impl Fn(u64) -> u64,
) -> Vec<MissedStarts> {
    let total = numbers.end.saturating_sub(numbers.start);
    let group = total.div_ceil(MISSED_GROUPS_MAX).max(1);
    let mut missed = Vec::new();
    let mut first = numbers.start;
    while first < numbers.end {
        let count = group.min(numbers.end - first);
        missed.push(MissedStarts {
            waited_ns: until_ns.saturating_sub(intended_start_ns(first + count / 2)),
            count,
        });
        first += count;
    }
    missed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(start_ns: u64, rate: f64) -> Pacer {
        Pacer::new(start_ns, rate, Arrivals::Even, 1)
    }

    fn single(waited_ns: u64) -> MissedStarts {
        MissedStarts {
            waited_ns,
            count: 1,
        }
    }

    #[test]
    fn poisson_starts_have_exponential_distances_and_no_drift() {
        let pacer = Pacer::new(5, 1000.0, Arrivals::Poisson, 7);
        let starts: Vec<u64> = (0..100_000).map(|_| pacer.take_next()).collect();
        assert_eq!(starts[0], 5);
        let distances = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64);
        let distances: Vec<f64> = distances.collect();
        let count = distances.len() as f64;
        let mean = distances.iter().sum::<f64>() / count;
        let deviation = (distances.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / count).sqrt();
        let beyond = |limit: f64| distances.iter().filter(|d| **d > limit).count() as f64 / count;
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean}");
        assert!((deviation / mean - 1.0).abs() < 0.02, "{deviation}");
        assert!((beyond(1e6) - 0.3679).abs() < 0.01 && (beyond(3e6) - 0.0498).abs() < 0.005);
        // Workers share it, and it repeats with its seed.
        let again = Pacer::new(5, 1000.0, Arrivals::Poisson, 7);
        let other = again.clone();
        let mut pacers = [&again, &other].into_iter().cycle();
        let taken: Vec<u64> = (0..10)
            .map(|_| pacers.next().unwrap().take_next())
            .collect();
        assert_eq!(taken, starts[..10]);
        assert_eq!(again.take_due(starts[10] - 1), None);
        assert_eq!(again.next_due_ns(), starts[10]);
        assert_eq!(again.take_due(starts[10]), Some(starts[10]));
        let missed = again.missed_starts(starts[12], starts[14]);
        let waited = [starts[14] - starts[12], starts[14] - starts[13]];
        assert_eq!(missed, waited.map(single));
    }

    #[test]
    fn pacer_schedule_does_not_drift_and_is_shared() {
        let pacer = even(1_000, 3.0);
        let other = pacer.clone();
        assert_eq!(pacer.take_due(999), None);
        assert_eq!(pacer.take_due(1_000), Some(1_000));
        assert_eq!(other.take_due(1_000), None);
        assert_eq!(other.next_due_ns(), 1_000 + 333_333_333);
        // After a stall the pacer still returns every missed start, with its intended time.
        assert_eq!(pacer.clone().take_next(), 333_334_333);
        let late: Vec<u64> = std::iter::from_fn(|| other.take_due(1_000_001_000)).collect();
        assert_eq!(late, [666_667_666, 1_000_001_000]);
    }

    #[test]
    fn pacer_reports_starts_no_worker_made() {
        let pacer = even(1_000, 1e9);
        assert_eq!([(); 3].map(|()| pacer.take_next()), [1_000, 1_001, 1_002]);
        // Starts 0 to 2 are taken, 3 is before the measured time, 8 is not due yet.
        let waited = [4, 3, 2, 1].map(single);
        assert_eq!(pacer.missed_starts(1_004, 1_008), waited);
        assert_eq!(pacer.missed_starts(0, 1_003), []);
    }

    #[test]
    fn pacer_groups_missed_starts_and_loses_none() {
        let pacer = even(1_000, 1e9);
        let many = pacer.missed_starts(0, 3_000_001_000);
        let count: u64 = many.iter().map(|starts| starts.count).sum();
        assert_eq!(count, 3_000_000_000);
        assert!(many.len() <= 1_000_000);
        assert!(many.is_sorted_by(|a, b| a.waited_ns > b.waited_ns));
    }

    /// A rate that nobody can offer must not fill the memory.
    #[test]
    fn pacer_groups_missed_starts_at_random_times() {
        let pacer = Pacer::new(1_000, 1e9, Arrivals::Poisson, 3);
        let many = pacer.missed_starts(1_000_001_000, 3_000_001_000);
        let count: u64 = many.iter().map(|starts| starts.count).sum();
        assert_eq!(count, 2_000_000_000);
        assert!(many.len() <= 1_000_000);
        assert_eq!(many[0].waited_ns / 1_000_000, 1999);
        // As many groups as starts where those are few.
        let few = Pacer::new(0, 1000.0, Arrivals::Poisson, 3).missed_starts(0, 1_000_000_000);
        assert!(few.iter().all(|starts| starts.count == 1));
        assert!((900..1100).contains(&few.len()), "{}", few.len());
    }
}
