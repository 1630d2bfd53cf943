//! Counts primes on several threads, as the test cpu of sysbench does: a load of processors that
//! touches no disk.
#![allow(unsafe_code)]

use crate::load::budget::SharedBudget;
use crate::lock::lock;
use crate::run::supervise::{Event, Inbox, Supervisor, WaitLimits};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::primes::{PrimeInterval, PrimeLoad, PrimeResult, PrimeThread};
use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Runs the load. `on_interval` gets the figures of each interval when it is over.
pub fn measure_primes(
    load: &PrimeLoad,
    on_interval: &mut dyn FnMut(&PrimeInterval),
) -> io::Result<PrimeResult> {
    let latencies: Vec<Mutex<LatencyHistogram>> =
        (0..load.threads).map(|_| Mutex::default()).collect();
    let budget = EventBudget {
        left: load.events.map(|events| SharedBudget::new(events, 1)),
        time: load.time_ns.map(Duration::from_nanos),
        start: Instant::now(),
        is_over: AtomicBool::new(false),
    };
    let (ended, all_ended) = channel();
    let wall_ns = std::thread::scope(|scope| {
        for latency in &latencies {
            let (budget_of_thread, ended) = (&budget, ended.clone());
            let thread = std::thread::Builder::new().name("primes".to_owned());
            let started = thread.spawn_scoped(scope, move || {
                count_events(load.max_prime, budget_of_thread, latency);
                // The receiver lives until all threads have ended.
                let _ = ended.send(());
            });
            if let Err(error) = started {
                // The scope waits for the threads that run.
                budget.is_over.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        drop(ended);
        let threads = EndedThreads {
            ended: &all_ended,
            start: budget.start,
        };
        report_intervals(load, &latencies, &threads, on_interval);
        Ok::<u64, io::Error>(nanoseconds(budget.start.elapsed()))
    })?;
    let mut result = PrimeResult {
        wall_ns,
        threads: Vec::new(),
        latency: merged(&latencies),
    };
    for latency in &latencies {
        let latency = lock(latency);
        result.threads.push(PrimeThread {
            events: latency.count(),
            busy_ns: u64::try_from(latency.sum_ns()).unwrap_or(u64::MAX),
        });
    }
    Ok(result)
}

/// The limits of a load, by events and by time.
struct EventBudget {
    left: Option<Arc<SharedBudget>>,
    time: Option<Duration>,
    start: Instant,
    /// Set where the threads must end before that.
    is_over: AtomicBool,
}

impl EventBudget {
    /// Takes an event. Returns false where no further one may start.
    fn take(&self) -> bool {
        let is_late = self.time.is_some_and(|time| self.start.elapsed() >= time);
        if is_late || self.is_over.load(Ordering::Relaxed) {
            return false;
        }
        self.left.as_ref().is_none_or(|left| left.try_take(1))
    }
}

fn count_events(max_prime: u64, budget: &EventBudget, latency: &Mutex<LatencyHistogram>) {
    while budget.take() {
        let start = Instant::now();
        black_box(primes_below(black_box(max_prime)));
        let ns = nanoseconds(start.elapsed());
        lock(latency).record(ns);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn merged(latencies: &[Mutex<LatencyHistogram>]) -> LatencyHistogram {
    let mut sum = LatencyHistogram::new();
    for latency in latencies {
        sum.merge(&lock(latency));
    }
    sum
}

/// The threads that have ended, by the time since the start.
struct EndedThreads<'a> {
    ended: &'a Receiver<()>,
    start: Instant,
}

impl Inbox<()> for EndedThreads<'_> {
    fn now(&self) -> u64 {
        nanoseconds(self.start.elapsed())
    }

    fn receive(&self, at_most: Duration) -> Result<(), RecvTimeoutError> {
        self.ended.recv_timeout(at_most)
    }
}

/// Reports each interval, until all threads have ended.
fn report_intervals(
    load: &PrimeLoad,
    latencies: &[Mutex<LatencyHistogram>],
    threads: &EndedThreads<'_>,
    on_interval: &mut dyn FnMut(&PrimeInterval),
) {
    // No thread waits for a disk, and only the intervals need a look at them.
    let mut supervisor = Supervisor::checking_every(Duration::MAX, 0, 0, WaitLimits::default());
    if let Some(interval_ns) = load.interval_ns {
        supervisor.check_at(interval_ns);
    }
    let mut known = LatencyHistogram::new();
    let (mut running, mut start_ns) = (load.threads, 0);
    while running > 0 {
        match supervisor.next(threads) {
            Event::Report(()) => running -= 1,
            Event::Lost => return,
            Event::Check(end_ns) => {
                let mut latency = LatencyHistogram::new();
                latency.add_part(&known.take_since(&merged(latencies)));
                on_interval(&PrimeInterval {
                    start_ns,
                    end_ns,
                    latency,
                });
                start_ns = end_ns;
                // An interval that was missed is not made up for.
                if let Some(interval_ns) = load.interval_ns {
                    let passed = end_ns / interval_ns.max(1);
                    supervisor.check_at((passed + 1) * interval_ns);
                }
            }
            Event::Overdue(_) => {}
        }
    }
}

/// Counts the primes from 3 to below `limit`, by trial division by every number up to the square
/// root. sysbench divides 64-bit integers and compares the divisor as a floating-point number, so
/// that its figures hold these two costs.
fn primes_below(limit: u64) -> u64 {
    let mut count = 0;
    for number in 3..limit {
        let root = (number as f64).sqrt();
        let mut divisor = 2;
        while divisor as f64 <= root && remainder(number, divisor) != 0 {
            divisor += 1;
        }
        if divisor as f64 > root {
            count += 1;
        }
    }
    count
}

/// The compiler would divide 32-bit numbers where both fit, which is several times as fast on
/// processors before Intel's Ice Lake.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn remainder(number: u64, divisor: u64) -> u64 {
    let rest;
    // SAFETY: `divisor` is at least 2 and the upper half of the dividend is 0, so that the
    // quotient fits; memory and stack are not touched.
    unsafe {
        std::arch::asm!(
            "div {divisor}",
            divisor = in(reg) divisor,
            inout("rax") number => _,
            inout("rdx") 0u64 => rest,
            options(pure, nomem, nostack),
        );
    }
    rest
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn remainder(number: u64, divisor: u64) -> u64 {
    number % divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_counted_from_three() {
        for (limit, count) in [(0, 0), (3, 0), (4, 1), (12, 4), (100, 24), (10_000, 1228)] {
            assert_eq!(primes_below(limit), count, "{limit}");
        }
    }

    #[test]
    fn events_are_shared_by_threads_and_reported_by_interval() {
        let load = PrimeLoad {
            threads: 3,
            max_prime: 2000,
            time_ns: None,
            events: Some(500),
            interval_ns: Some(1_000_000),
        };
        let (mut reported, mut end_ns) = (0, 0);
        let result = measure_primes(&load, &mut |interval| {
            assert_eq!(interval.start_ns, end_ns);
            end_ns = interval.end_ns;
            reported += interval.latency.count();
        });
        let result = result.unwrap_or_else(|error| panic!("{error}"));
        assert!(reported <= 500, "{reported}");
        assert_eq!(result.latency.count(), 500);
        assert_eq!(result.threads.len(), 3);
        let events: u64 = result.threads.iter().map(|one| one.events).sum();
        assert_eq!(events, 500);
        assert!(result.wall_ns >= end_ns);
    }

    #[test]
    fn no_event_starts_after_the_time() {
        let load = PrimeLoad {
            threads: 1,
            max_prime: 1000,
            time_ns: Some(0),
            events: Some(10),
            interval_ns: None,
        };
        let result = measure_primes(&load, &mut |_| {});
        assert!(result.is_ok_and(|result| result.latency.count() == 0));
    }
}
