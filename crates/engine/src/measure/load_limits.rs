//! Decides whether a worker ends early: as failed, by limits on latency and rate, or because its
//! rate or latency has become steady, by the tests that fio knows. Checked at the end of a cell.

use crate::measure::result::EndReason;
use diskproof_model::measurement::{OpKind, SteadyOutcome};
use diskproof_model::series::Cell;
use diskproof_model::shape::{
    EarlyEnds, FloorUnit, RateFloor, SteadyEnd, SteadyFigure, SteadyTest,
};
use std::collections::VecDeque;

/// The rate may settle for this long, as in fio.
const SETTLE_NS: u64 = 2_000_000_000;

/// The limits of a worker, and what it did so far.
#[derive(Debug)]
pub(crate) struct LoadLimits {
    latency_ns: Option<u64>,
    floors: Vec<FloorWatch>,
    start_ns: u64,
    reads: Cell,
    /// The kind of operation that stands for the writes: of a write and its sync, or of a trim and
    /// its write, only one counts.
    write_kind: OpKind,
    writes: Cell,
    steady: Option<SteadyWatch>,
}

impl LoadLimits {
    /// The limits of a thread of a workload that starts at `start_ns`; `None` without any.
    /// Operations of `write_kind` stand for its writes. Rates are limited for each worker: each of
    /// its threads must reach its share of them.
    pub(crate) fn from_ends(
        ends: &EarlyEnds,
        write_kind: OpKind,
        start_ns: u64,
        threads_per_worker: u64,
    ) -> Option<Box<Self>> {
        if ends.latency_limit_ns.is_none() && ends.rate_floors.is_empty() && ends.steady.is_none() {
            return None;
        }
        let mut floors = Vec::new();
        for floor in &ends.rate_floors {
            let own_floor = RateFloor {
                floor: floor.floor / threads_per_worker as f64,
                ..*floor
            };
            floors.push(FloorWatch {
                floor: own_floor,
                checked_ns: start_ns,
                checked: Cell::default(),
            });
        }
        Some(Box::new(Self {
            latency_ns: ends.latency_limit_ns,
            floors,
            start_ns,
            reads: Cell::default(),
            write_kind,
            writes: Cell::default(),
            steady: ends.steady.map(|end| {
                SteadyWatch::new(steady_end_of_thread(end, threads_per_worker), start_ns)
            }),
        }))
    }

    /// The reason why the worker ends at `now`, after a cell with these events of each kind; `None`
    /// to go on.
    pub(crate) fn check(&mut self, cell: impl Fn(OpKind) -> Cell, now: u64) -> Option<EndReason> {
        let reads = cell(OpKind::Read);
        let writes = cell(self.write_kind);
        self.reads.merge(&reads);
        self.writes.merge(&writes);
        let mut done = self.reads;
        done.merge(&self.writes);
        if let Some(steady) = &mut self.steady
            && steady.check(done, now)
        {
            return Some(EndReason::Steady);
        }
        if now < self.start_ns.saturating_add(SETTLE_NS) {
            return None;
        }
        for watch in &mut self.floors {
            let (new, done) = if watch.floor.of_writes {
                (writes, self.writes)
            } else {
                (reads, self.reads)
            };
            // As in fio, which checks when a request ends: a slow rate may be less than one each
            // time.
            if new.ops > 0 && watch.check(done, self.start_ns, now) {
                return Some(EndReason::BelowFloor);
            }
        }
        None
    }

    /// True if the latency of single requests is limited.
    pub(crate) fn limits_latency(&self) -> bool {
        self.latency_ns.is_some()
    }

    /// True if a request of a cell with these events of each kind took longer than it may.
    pub(crate) fn is_too_slow(&self, cell: impl Fn(OpKind) -> Cell) -> bool {
        let Some(most_ns) = self.latency_ns else {
            return false;
        };
        // As in fio, syncs may take as long as they do.
        let mut longest_ns = 0;
        for kind in OpKind::REQUESTS {
            longest_ns = longest_ns.max(cell(kind).latency_max_ns);
        }
        longest_ns > most_ns
    }

    /// The newest outcome of the test for a steady rate; `None` where no such test ends the worker.
    pub(crate) fn steady(&self) -> Option<SteadyOutcome> {
        self.steady.as_ref().map(SteadyWatch::outcome)
    }
}

/// The condition for a thread, of which a worker has so many: a rate that is no percentage is
/// shared among them.
fn steady_end_of_thread(worker: SteadyEnd, threads_per_worker: u64) -> SteadyEnd {
    let mut own = worker;
    let is_rate = match worker.figure {
        SteadyFigure::Ops | SteadyFigure::Bytes => true,
        SteadyFigure::Latency => false,
    };
    if is_rate && !worker.is_percent {
        own.limit /= threads_per_worker as f64;
    }
    own
}

/// A floor of the rate.
#[derive(Debug)]
struct FloorWatch {
    floor: RateFloor,
    /// When the rate was checked last.
    checked_ns: u64,
    /// The operations until then.
    checked: Cell,
}

impl FloorWatch {
    /// Returns true if the rate since the last check is too low at `now`, after so much was done.
    /// Before the time of the floor is over it returns false.
    fn check(&mut self, done: Cell, start_ns: u64, now: u64) -> bool {
        // The first check after settling only sets the base.
        let is_base = self.checked_ns == start_ns;
        if !is_base && now < self.checked_ns.saturating_add(self.floor.over_ns) {
            return false;
        }
        let moved = match self.floor.unit {
            FloorUnit::Ops => done.ops - self.checked.ops,
            FloorUnit::Bytes => done.bytes - self.checked.bytes,
        };
        let elapsed_ns = now - self.checked_ns;
        self.checked_ns = now;
        self.checked = done;
        !is_base && (moved as f64 * 1e9 / elapsed_ns as f64) < self.floor.floor
    }
}

/// The newest rates of a worker.
#[derive(Debug)]
pub(crate) struct SteadyWatch {
    end: SteadyEnd,
    /// No rate is taken before.
    settle_end_ns: u64,
    /// When the last sample was taken.
    sampled_ns: u64,
    /// The operations until then.
    sampled: Cell,
    /// Rates and mean latencies, the oldest first.
    samples: VecDeque<Cell>,
    /// The figure of the last check that is compared with the limit.
    criterion: Option<f64>,
    is_attained: bool,
}

/// A sample of a part of the time: operations and bytes per second, and in place of the sum of the
/// latencies their mean.
fn rates(before: Cell, done: Cell, elapsed_ns: u64) -> Cell {
    let latency_ns = done.latency_sum_ns - before.latency_sum_ns;
    Cell {
        ops: per_second(done.ops - before.ops, elapsed_ns),
        bytes: per_second(done.bytes - before.bytes, elapsed_ns),
        latency_sum_ns: latency_ns.checked_div(done.ops - before.ops).unwrap_or(0),
        ..Cell::default()
    }
}

fn per_second(amount: u64, elapsed_ns: u64) -> u64 {
    (u128::from(amount) * 1_000_000_000 / u128::from(elapsed_ns)) as u64
}

impl SteadyWatch {
    /// For a worker that starts at `start_ns`.
    pub(crate) fn new(end: SteadyEnd, start_ns: u64) -> Self {
        Self {
            end,
            settle_end_ns: start_ns.saturating_add(end.settle_ns),
            sampled_ns: start_ns,
            sampled: Cell::default(),
            samples: VecDeque::new(),
            criterion: None,
            is_attained: false,
        }
    }

    /// Returns true if the rate is steady at `now`, after so much was done.
    pub(crate) fn check(&mut self, done: Cell, now: u64) -> bool {
        let elapsed_ns = now.saturating_sub(self.sampled_ns);
        let is_settling = now < self.settle_end_ns;
        if !is_settling && elapsed_ns < self.end.every_ns.max(1) {
            return false;
        }
        let before = std::mem::replace(&mut self.sampled, done);
        self.sampled_ns = now;
        if is_settling {
            return false;
        }
        self.samples.push_back(rates(before, done, elapsed_ns));
        let wanted = self.end.samples();
        if self.samples.len() > wanted {
            self.samples.pop_front();
        }
        self.criterion = None;
        if self.samples.len() == wanted {
            self.criterion = self.judge();
        }
        self.is_attained = match self.criterion {
            Some(criterion) => criterion.abs() < self.end.limit,
            None => false,
        };
        self.is_attained
    }

    /// The criterion of the test; `None` where it has none, as with a mean of 0.
    fn judge(&self) -> Option<f64> {
        let values: Vec<f64> = self
            .samples
            .iter()
            .map(|sample| self.figure(sample))
            .collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let absolute = match self.end.test {
            SteadyTest::Deviation => largest_deviation(&values, mean),
            SteadyTest::Slope => slope(&values, mean),
        };
        let criterion = if self.end.is_percent {
            100.0 * absolute / mean
        } else {
            absolute
        };
        if criterion.is_finite() {
            Some(criterion)
        } else {
            None
        }
    }

    fn figure(&self, sample: &Cell) -> f64 {
        match self.end.figure {
            SteadyFigure::Ops => sample.ops as f64,
            SteadyFigure::Bytes => sample.bytes as f64,
            SteadyFigure::Latency => sample.latency_sum_ns as f64,
        }
    }

    /// The outcome of the last check, with the samples that it used.
    pub(crate) fn outcome(&self) -> SteadyOutcome {
        let mut outcome = SteadyOutcome {
            is_attained: self.is_attained,
            criterion: self.criterion,
            iops_samples: Vec::new(),
            rate_samples: Vec::new(),
            latency_samples: Vec::new(),
        };
        for sample in &self.samples {
            outcome.iops_samples.push(sample.ops);
            outcome.rate_samples.push(sample.bytes);
            outcome.latency_samples.push(sample.latency_sum_ns);
        }
        outcome
    }
}

/// The largest distance of a value from the mean.
fn largest_deviation(values: &[f64], mean: f64) -> f64 {
    values
        .iter()
        .map(|value| (value - mean).abs())
        .fold(0.0, f64::max)
}

/// The slope of the line through the values by least squares, for each step from one to the next.
fn slope(values: &[f64], mean: f64) -> f64 {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let (mut products, mut squares) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let x = index as f64 - middle;
        products += x * (value - mean);
        squares += x.powi(2);
    }
    products / squares
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn cell(ops: u64, latency_max_ns: u64) -> impl Fn(OpKind) -> Cell {
        move |kind| match kind {
            OpKind::Write => Cell {
                ops,
                bytes: ops * 4096,
                latency_max_ns,
                ..Cell::default()
            },
            _ => Cell::default(),
        }
    }

    #[test]
    fn one_latency_beyond_the_limit_ends_the_worker() {
        let ends = EarlyEnds {
            latency_limit_ns: Some(5000),
            ..EarlyEnds::default()
        };
        let limits = LoadLimits::from_ends(&ends, OpKind::Write, SECOND_NS, 1).unwrap();
        assert!(limits.limits_latency());
        assert!(!limits.is_too_slow(cell(1, 5000)));
        assert!(limits.is_too_slow(cell(1, 5001)));
        assert!(LoadLimits::from_ends(&EarlyEnds::default(), OpKind::Write, 0, 1).is_none());
    }

    /// A sync ends in a later cell than its write.
    #[test]
    fn synced_write_counts_once_and_its_sync_is_no_late_request() {
        let ends = EarlyEnds {
            latency_limit_ns: Some(5000),
            rate_floors: vec![floor(FloorUnit::Ops, 0.75)],
            ..EarlyEnds::default()
        };
        let mut limits = LoadLimits::from_ends(&ends, OpKind::Write, 0, 1).unwrap();
        let commit = |kind| match kind {
            OpKind::Commit | OpKind::Sync => cell(1, 9000)(OpKind::Write),
            _ => Cell::default(),
        };
        assert!(!limits.is_too_slow(commit));
        let mut ending = None;
        // A write and its commit in turn: half an operation each second.
        for second in 3..12 {
            let now = second * SECOND_NS;
            ending = ending.or(match second % 2 {
                0 => limits.check(cell(1, 1000), now),
                _ => limits.check(commit, now),
            });
        }
        assert_eq!(ending, Some(EndReason::BelowFloor));
    }

    fn floor(unit: FloorUnit, floor: f64) -> RateFloor {
        RateFloor {
            of_writes: true,
            floor,
            unit,
            over_ns: SECOND_NS,
        }
    }

    /// `rate=1250` and `ratemin=1024` of requests of 4 KiB, as in an example of fio.
    #[test]
    fn a_rate_of_less_than_a_request_each_time_is_not_too_low() {
        for (pause, ending) in [(3, None), (5, Some(EndReason::BelowFloor))] {
            let ends = EarlyEnds {
                rate_floors: vec![floor(FloorUnit::Bytes, 1024.0)],
                ..EarlyEnds::default()
            };
            let mut limits = LoadLimits::from_ends(&ends, OpKind::Write, 0, 1).unwrap();
            let mut seen = None;
            for second in 1..20 {
                let ops = u64::from(second % pause == 0);
                seen = seen.or(limits.check(cell(ops, 0), second * SECOND_NS));
            }
            assert_eq!(seen, ending, "{pause}");
        }
    }

    /// Four threads do together what their worker is to reach.
    #[test]
    fn thread_of_a_worker_is_held_to_its_share_of_the_rates() {
        let mut steady = end(SteadyTest::Deviation, 40.0);
        steady.is_percent = false;
        let ends = EarlyEnds {
            rate_floors: vec![floor(FloorUnit::Ops, 400.0)],
            steady: Some(steady),
            ..EarlyEnds::default()
        };
        let limits = LoadLimits::from_ends(&ends, OpKind::Write, 0, 4).unwrap();
        assert_eq!(limits.floors[0].floor.floor, 100.0);
        assert_eq!(limits.steady.unwrap().end.limit, 10.0);
        let share = end(SteadyTest::Deviation, 40.0);
        assert_eq!(steady_end_of_thread(share, 4), share);
    }

    #[test]
    fn rate_is_checked_over_its_time_after_it_has_settled() {
        for (unit, least, over) in [
            (FloorUnit::Ops, 100.0, 101.0),
            (FloorUnit::Bytes, 409_600.0, 409_601.0),
        ] {
            for (least, ending) in [(least, None), (over, Some(EndReason::BelowFloor))] {
                let ends = EarlyEnds {
                    rate_floors: vec![floor(unit, least)],
                    ..EarlyEnds::default()
                };
                let mut limits =
                    LoadLimits::from_ends(&ends, OpKind::Write, 10 * SECOND_NS, 1).unwrap();
                // Nothing at all in the first two seconds; then one write each 10 ms.
                assert_eq!(limits.check(cell(0, 0), 12 * SECOND_NS - 1), None);
                assert_eq!(limits.check(cell(1, 0), 12 * SECOND_NS), None);
                let mut seen = None;
                for tick in 1..=100 {
                    seen = limits.check(cell(1, 0), 12 * SECOND_NS + tick * SECOND_NS / 100);
                    assert!(tick == 100 || seen.is_none());
                }
                assert_eq!(seen, ending, "{unit:?} {least}");
            }
        }
    }

    fn end(test: SteadyTest, limit: f64) -> SteadyEnd {
        SteadyEnd {
            figure: SteadyFigure::Ops,
            test,
            limit,
            is_percent: true,
            over_ns: 4 * SECOND_NS,
            settle_ns: 2 * SECOND_NS,
            every_ns: SECOND_NS,
        }
    }

    /// The second after which these rates, one each second, are steady, and the criterion.
    fn steady_after(end: SteadyEnd, rates: &[u64]) -> (Option<usize>, Option<f64>) {
        let (mut watch, mut ops) = (SteadyWatch::new(end, 0), 0);
        for (second, rate) in rates.iter().enumerate() {
            for cell in 1..=100 {
                ops += rate / 100;
                let now = second as u64 * SECOND_NS + cell * SECOND_NS / 100;
                let done = Cell {
                    ops,
                    bytes: ops * 4096,
                    // A fixed depth of one.
                    latency_sum_ns: now,
                    ..Cell::default()
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
        let after = |limit, rates| steady_after(end(SteadyTest::Deviation, limit), rates).0;
        assert_eq!(after(5.0, &rates), None);
        assert_eq!(after(99.0, &rates[..5]), None);
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
