//! The test cpu: primes, and its report.

use super::modes::RunSettings;
use super::print::{Fairness, distribution, general_statistics, head};
use crate::figures::seconds;
use crate::primes::PrimePrinter;
use diskproof_model::primes::{PrimeInterval, PrimeResult, PrimeThread};

/// Prints the report.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CpuPrinter {
    pub(super) settings: RunSettings,
    pub(super) max_prime: u64,
}

impl PrimePrinter for CpuPrinter {
    fn begin(&self) -> String {
        format!(
            "{}Prime numbers limit: {}\n\nInitializing worker threads...\n\nThreads started!\n\n",
            head(&self.settings),
            self.max_prime
        )
    }

    fn interval(&self, interval: &PrimeInterval) -> String {
        let percentile = self.settings.percentile;
        format!(
            "[ {:.0}s ] thds: {} eps: {:.2} lat (ms,{}%): {:.2}\n",
            seconds(interval.end_ns),
            self.settings.threads,
            interval.latency.count() as f64 / seconds(interval.end_ns - interval.start_ns),
            percentile,
            interval.latency.value_at(percentile as f64 / 100.0) as f64 / 1e6
        )
    }

    fn end(&self, result: &PrimeResult) -> String {
        let spread = |value: fn(&PrimeThread) -> f64| {
            let threads = result.threads.len().max(1) as f64;
            let mean = result.threads.iter().map(value).sum::<f64>() / threads;
            let squares = result.threads.iter().map(|one| (value(one) - mean).powi(2));
            (mean, (squares.sum::<f64>() / threads).sqrt())
        };
        let fairness = Fairness {
            events: spread(|one| one.events as f64),
            seconds: spread(|one| seconds(one.busy_ns)),
        };
        let wall = seconds(result.wall_ns);
        format!(
            "{}CPU speed:\n    events per second: {:8.2}\n{}{}",
            distribution(&self.settings, &result.latency),
            result.latency.count() as f64 / wall,
            general_statistics(wall, &result.latency, self.settings.percentile),
            fairness.text()
        )
    }
}
