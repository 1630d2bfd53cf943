//! The test cpu: primes, and its report.

use super::print::{Fairness, HeadSettings, general_statistics, head, histogram};
use crate::primes::PrimePrinter;
use diskproof_model::primes::{PrimeInterval, PrimeResult, PrimeThread};

/// Prints the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CpuPrinter {
    pub(super) threads: u64,
    pub(super) max_prime: u64,
    pub(super) interval_ns: Option<u64>,
    pub(super) seed: Option<u64>,
    pub(super) percentile: u64,
    pub(super) histogram: bool,
}

impl PrimePrinter for CpuPrinter {
    fn begin(&self) -> String {
        format!(
            "{}Prime numbers limit: {}\n\nInitializing worker threads...\n\nThreads started!\n\n",
            head(&HeadSettings {
                threads: self.threads,
                rate: None,
                interval_ns: self.interval_ns,
                seed: self.seed,
            }),
            self.max_prime
        )
    }

    fn interval(&self, interval: &PrimeInterval) -> String {
        let seconds = (interval.end_ns - interval.start_ns) as f64 / 1e9;
        let quantile = self.percentile as f64 / 100.0;
        format!(
            "[ {:.0}s ] thds: {} eps: {:.2} lat (ms,{}%): {:.2}\n",
            interval.end_ns as f64 / 1e9,
            self.threads,
            interval.latency.count() as f64 / seconds,
            self.percentile,
            interval.latency.value_at(quantile) as f64 / 1e6
        )
    }

    fn end(&self, result: &PrimeResult) -> String {
        let seconds = result.wall_ns as f64 / 1e9;
        let spread = |value: fn(&PrimeThread) -> f64| {
            let threads = result.threads.len().max(1) as f64;
            let mean = result.threads.iter().map(value).sum::<f64>() / threads;
            let squares = result
                .threads
                .iter()
                .map(|one| (value(one) - mean).powi(2))
                .sum::<f64>();
            (mean, (squares / threads).sqrt())
        };
        let (events, events_deviation) = spread(|one| one.events as f64);
        let (busy_seconds, seconds_deviation) = spread(|one| one.busy_ns as f64 / 1e9);
        let fairness = Fairness {
            events,
            events_deviation,
            seconds: busy_seconds,
            seconds_deviation,
        };
        let distribution = match self.histogram {
            true => histogram(&result.latency),
            false => String::new(),
        };
        let rate = result.latency.count() as f64 / seconds;
        format!(
            "{distribution}CPU speed:\n    events per second: {rate:8.2}\n{}{}",
            general_statistics(seconds, &result.latency, self.percentile),
            fairness.text()
        )
    }
}
