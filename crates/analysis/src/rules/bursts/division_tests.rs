//! Holds which findings on bursts speak for which volume, from what was measured in virtual
//! time to the findings: the list in the head of `bursts.rs`.

use crate::fixture::{self, FixtureRun};
use diskproof_model::measurement::{Measurement, OpKind, SERIES_INTERVAL_NS};
use diskproof_model::record::Record;

const SECOND: u64 = 1_000_000_000;
/// A workload of the fixture runs for five seconds, after a pause of one.
const TURN_NS: u64 = 6 * SECOND;
const CELLS_PER_SECOND: f64 = (SECOND / SERIES_INTERVAL_NS) as f64;

/// The findings that divide the cases of the table between them.
const BURST_FINDINGS: [&str; 6] = [
    "burst-exhausted",
    "burst-figure",
    "burst-untested",
    "cache-cliff",
    "rate-limited",
    "reads-fell",
];

/// A limiter in requests: a bucket that is full at first.
#[derive(Clone, Copy)]
struct Limiter {
    /// Requests per second for ever.
    base: f64,
    /// Requests per second while there is credit.
    burst: f64,
    /// Requests beyond the base.
    credit: f64,
}

/// A limiter without a burst.
fn constant(base: f64) -> Limiter {
    Limiter {
        base,
        burst: base,
        credit: 0.0,
    }
}

/// The requests of a measurement in a cell, before a volume delays them.
fn natural_requests(measurement: &Measurement, cell: usize) -> u64 {
    let mut requests = 0;
    for kind in OpKind::TRANSFERS {
        if let Some(op) = measurement.ops.get(&kind) {
            requests += op.series.cells[cell].ops;
        }
    }
    requests
}

/// Lets so many requests pass in each cell, divided equally among the kinds of operation. The odd
/// one alternates between them.
fn set_requests(measurement: &mut Measurement, requests: &[u64]) {
    let block_bytes = u64::from(measurement.workload.block_bytes);
    let kinds = measurement.ops.len() as u64;
    for (place, op) in (0..).zip(measurement.ops.values_mut()) {
        for (number, (cell, all)) in (0..).zip(op.series.cells.iter_mut().zip(requests)) {
            let odd = all % kinds * u64::from((number + place) % kinds == 0);
            cell.ops = all / kinds + odd;
            cell.bytes = cell.ops * block_bytes;
        }
        let total = op.series.total();
        (op.count, op.bytes) = (total.ops, total.bytes);
    }
}

/// The workloads of the fixture one after the other on a volume with this limiter. Commits wait for
/// more than it, and stay as they are.
fn behind(limiter: Limiter, run: &mut FixtureRun) {
    let mut tokens = limiter.credit;
    for (turn, measurement) in (0..).zip(&mut run.measurements) {
        measurement.start_ns = turn * TURN_NS + SECOND;
        tokens = (tokens + limiter.base).min(limiter.credit);
        let Some(series) = measurement
            .ops
            .iter()
            .find(|(kind, _)| OpKind::TRANSFERS.contains(kind))
            .map(|(_, op)| op.series.cells.len())
        else {
            continue;
        };
        let (mut sum, mut counted) = (0.0, 0);
        let mut requests = Vec::new();
        for cell in 0..series {
            let available = tokens + limiter.base / CELLS_PER_SECOND;
            let passed = (natural_requests(measurement, cell) as f64)
                .min(limiter.burst / CELLS_PER_SECOND)
                .min(available);
            tokens = (available - passed).min(limiter.credit);
            sum += passed;
            requests.push((sum + 1e-6) as u64 - counted);
            counted += requests[cell];
        }
        set_requests(measurement, &requests);
    }
}

/// The workload of this name is so many times as fast for its first two seconds and a half.
fn faster_at_first(run: &mut FixtureRun, name: &str, times: u64) {
    for (turn, measurement) in (0..).zip(&mut run.measurements) {
        measurement.start_ns = turn * TURN_NS + SECOND;
        if measurement.workload.name == name {
            super::tests::fast_until(measurement, 2 * SECOND + SECOND / 2, times);
        }
    }
}

/// Adds the noise of a medium to each cell of a workload.
fn add_noise(run: &mut FixtureRun, name: &str) {
    for measurement in &mut run.measurements {
        if measurement.workload.name == name {
            let mut requests = Vec::new();
            let cells = (fixture::WALL_NS / SERIES_INTERVAL_NS) as usize;
            for cell in 0..cells {
                let even = natural_requests(measurement, cell);
                requests.push(even + even * (cell as u64 * 7919 % 13) / 100);
            }
            set_requests(measurement, &requests);
        }
    }
}

/// The findings on bursts in a record, in the order of their codes.
fn speaking(record: &Record) -> Vec<&'static str> {
    BURST_FINDINGS
        .into_iter()
        .filter(|code| record.findings.iter().any(|finding| finding.code == *code))
        .collect()
}

#[test]
fn findings_on_bursts_divide_the_volumes_between_them() {
    type Case = (&'static str, fn(&mut FixtureRun), &'static [&'static str]);
    let cases: [Case; 7] = [
        ("healthy disk", |_| {}, &[]),
        (
            "limiter without a burst",
            |run| behind(constant(3000.0), run),
            &["burst-untested", "rate-limited"],
        ),
        (
            "credit that outlasts the run",
            |run| {
                let limiter = Limiter {
                    base: 1500.0,
                    burst: 3000.0,
                    credit: 1e6,
                };
                behind(limiter, run);
            },
            &["burst-untested", "rate-limited"],
        ),
        (
            "credit that ends during the deep reads",
            |run| {
                let limiter = Limiter {
                    base: 1500.0,
                    burst: 3000.0,
                    credit: 5000.0,
                };
                behind(limiter, run);
            },
            &["burst-exhausted", "burst-figure", "rate-limited"],
        ),
        (
            "credit that one workload alone shows",
            |run| faster_at_first(run, "random-read-d32", 6),
            &["burst-exhausted"],
        ),
        (
            "write cache that fills up",
            |run| faster_at_first(run, "sequential-write", 4),
            &["cache-cliff"],
        ),
        (
            "disk whose reads become slower",
            |run| {
                faster_at_first(run, "random-read-d32", 6);
                add_noise(run, "random-read-d32");
            },
            &["reads-fell"],
        ),
    ];
    for (volume, change, expected) in cases {
        let record = fixture::changed(change);
        let claims: Vec<&str> = record
            .findings
            .iter()
            .map(|finding| finding.claim.as_str())
            .collect();
        assert_eq!(speaking(&record), expected, "{volume}: {claims:#?}");
    }
}
