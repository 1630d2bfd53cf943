//! Whether the rate or the latency of a worker has become steady, by the tests that fio knows.
//! Checked at the end of a cell.

use diskproof_model::measurement::SteadyOutcome;
use diskproof_model::series::Cell;
use diskproof_model::shape::{SteadyEnd, SteadyFigure, SteadyTest};
use std::collections::VecDeque;

/// The newest rates of a worker.
#[derive(Debug)]
pub(crate) struct SteadyWatch {
    end: SteadyEnd,
    /// No rate is taken before.
    settled_ns: u64,
    /// The last sample: when, and what was done until then.
    last: (u64, WorkDone),
    /// Rates and mean latencies, the oldest first.
    samples: VecDeque<WorkDone>,
    criterion: Option<f64>,
    is_attained: bool,
}

/// What a worker has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WorkDone {
    /// Reads and writes.
    pub ops: u64,
    /// That they moved.
    pub bytes: u64,
    /// Their latencies, summed, in nanoseconds.
    pub latency_ns: u64,
}

impl WorkDone {
    /// Adds a cell.
    pub(crate) fn add(&mut self, cell: &Cell) {
        self.ops += cell.ops;
        self.bytes += cell.bytes;
        self.latency_ns = self.latency_ns.saturating_add(cell.latency_sum_ns);
    }

    /// Both together.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            ops: self.ops + other.ops,
            bytes: self.bytes + other.bytes,
            latency_ns: self.latency_ns.saturating_add(other.latency_ns),
        }
    }
}

/// The rates of a part of the time, and its mean latency.
fn rates(before: WorkDone, done: WorkDone, elapsed_ns: u64) -> WorkDone {
    let rate = |from: u64, to: u64| {
        (u128::from(to - from) * 1_000_000_000 / u128::from(elapsed_ns)) as u64
    };
    let latency_ns = done.latency_ns - before.latency_ns;
    WorkDone {
        ops: rate(before.ops, done.ops),
        bytes: rate(before.bytes, done.bytes),
        latency_ns: latency_ns.checked_div(done.ops - before.ops).unwrap_or(0),
    }
}

impl SteadyWatch {
    /// For a worker that starts at `start_ns`.
    pub(crate) fn new(end: SteadyEnd, start_ns: u64) -> Self {
        Self {
            end,
            settled_ns: start_ns.saturating_add(end.settle_ns),
            last: (start_ns, WorkDone::default()),
            samples: VecDeque::new(),
            criterion: None,
            is_attained: false,
        }
    }

    /// Whether the rate is steady at `now`, after so much was done.
    pub(crate) fn check(&mut self, done: WorkDone, now: u64) -> bool {
        let (at_ns, before) = self.last;
        let elapsed_ns = now.saturating_sub(at_ns);
        if now < self.settled_ns {
            self.last = (now, done);
            return false;
        }
        if elapsed_ns < self.end.every_ns.max(1) {
            return false;
        }
        self.last = (now, done);
        self.samples.push_back(rates(before, done, elapsed_ns));
        let wanted = self.end.samples();
        if self.samples.len() > wanted {
            self.samples.pop_front();
        }
        self.criterion = (self.samples.len() == wanted)
            .then(|| self.judge())
            .flatten();
        self.is_attained = self
            .criterion
            .is_some_and(|found| found.abs() < self.end.limit);
        self.is_attained
    }

    fn judge(&self) -> Option<f64> {
        let value = |sample: &WorkDone| match self.end.figure {
            SteadyFigure::Ops => sample.ops as f64,
            SteadyFigure::Bytes => sample.bytes as f64,
            SteadyFigure::Latency => sample.latency_ns as f64,
        };
        let values: Vec<f64> = self.samples.iter().map(value).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let found = match self.end.test {
            SteadyTest::Deviation => values
                .iter()
                .map(|value| (value - mean).abs())
                .fold(0.0, f64::max),
            SteadyTest::Slope => {
                let middle = (count - 1.0) / 2.0;
                let at = |index: usize| index as f64 - middle;
                let products = values.iter().enumerate();
                let products: f64 = products.map(|(i, value)| at(i) * (value - mean)).sum();
                let squares: f64 = (0..values.len()).map(|i| at(i).powi(2)).sum();
                products / squares
            }
        };
        let found = if self.end.is_percent {
            100.0 * found / mean
        } else {
            found
        };
        found.is_finite().then_some(found)
    }

    /// What was found last.
    pub(crate) fn outcome(&self) -> SteadyOutcome {
        SteadyOutcome {
            is_attained: self.is_attained,
            criterion: self.criterion,
            iops_samples: self.samples.iter().map(|sample| sample.ops).collect(),
            rate_samples: self.samples.iter().map(|sample| sample.bytes).collect(),
            latency_samples: self
                .samples
                .iter()
                .map(|sample| sample.latency_ns)
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn end(test: SteadyTest, limit: f64) -> SteadyEnd {
        SteadyEnd {
            figure: SteadyFigure::Ops,
            test,
            limit,
            is_percent: true,
            over_ns: 4 * SECOND,
            settle_ns: 2 * SECOND,
            every_ns: SECOND,
        }
    }

    /// The second after which these rates, one each second, are steady, and the criterion.
    fn steady_after(end: SteadyEnd, rates: &[u64]) -> (Option<usize>, Option<f64>) {
        let (mut watch, mut ops) = (SteadyWatch::new(end, 0), 0);
        for (second, rate) in rates.iter().enumerate() {
            for cell in 1..=100 {
                ops += rate / 100;
                let now = second as u64 * SECOND + cell * SECOND / 100;
                let done = WorkDone {
                    ops,
                    bytes: ops * 4096,
                    // A fixed depth of one.
                    latency_ns: now,
                };
                if watch.check(done, now) {
                    return (Some(second + 1), watch.outcome().criterion);
                }
            }
        }
        (None, watch.outcome().criterion)
    }

    #[test]
    fn rate_is_steady_once_no_sample_deviates_too_far() {
        // The two seconds of settling do not count, nor does the jump between them.
        let rates = [100, 900, 1000, 1000, 1100, 900, 1000, 1000];
        let (after, criterion) = steady_after(end(SteadyTest::Deviation, 10.5), &rates);
        assert_eq!(after, Some(6));
        assert!((criterion.unwrap() - 10.0).abs() < 0.5, "{criterion:?}");
        assert_eq!(
            steady_after(end(SteadyTest::Deviation, 5.0), &rates).0,
            None
        );
        assert_eq!(
            steady_after(end(SteadyTest::Deviation, 99.0), &rates[..5]).0,
            None
        );
    }

    #[test]
    fn rate_is_steady_once_its_slope_is_small() {
        let rising = [0, 0, 1000, 1100, 1200, 1300, 1300, 1300, 1300];
        let (after, criterion) = steady_after(end(SteadyTest::Slope, 1.0), &rising);
        assert_eq!(after, Some(9), "{criterion:?}");
        // A step of 100 in each second, of a mean of 1150.
        let (after, criterion) = steady_after(end(SteadyTest::Slope, 9.0), &rising);
        assert_eq!(after, Some(6));
        assert!((criterion.unwrap() - 100.0 * 100.0 / 1150.0).abs() < 0.5);
    }

    #[test]
    fn latency_is_steady_like_a_rate() {
        // Latencies of 909 to 1111 us around 1005 us, at rates of 900 to 1100 around 1000.
        let rates = [100, 900, 1000, 1000, 1100, 900, 1000, 1000];
        let after = |figure, limit| {
            let end = SteadyEnd {
                figure,
                ..end(SteadyTest::Deviation, limit)
            };
            steady_after(end, &rates).0
        };
        assert_eq!(after(SteadyFigure::Ops, 10.2), Some(6));
        assert_eq!(after(SteadyFigure::Latency, 10.2), None);
        assert_eq!(after(SteadyFigure::Latency, 11.0), Some(6));
    }

    #[test]
    fn idle_worker_is_not_steady() {
        let idle = steady_after(end(SteadyTest::Deviation, 50.0), &[0; 9]);
        assert_eq!(idle, (None, None));
    }
}
