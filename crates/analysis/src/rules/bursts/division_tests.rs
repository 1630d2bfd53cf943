//! Holds which findings on bursts speak for which volume, from what was measured in virtual
//! time to the findings: the list in the head of `bursts.rs`.

use crate::fixture::test_rng::TestRng;
use crate::fixture::{self, FixtureRun};
use diskproof_model::measurement::{Measurement, OpKind, SERIES_INTERVAL_NS};
use diskproof_model::record::Record;

const SECOND_NS: u64 = 1_000_000_000;
/// A workload of the fixture runs for five seconds, after a pause of one.
const TURN_NS: u64 = 6 * SECOND_NS;
const CELLS_PER_SECOND: f64 = (SECOND_NS / SERIES_INTERVAL_NS) as f64;

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
        measurement.start_ns = turn * TURN_NS + SECOND_NS;
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
        measurement.start_ns = turn * TURN_NS + SECOND_NS;
        if measurement.workload.name == name {
            super::tests::fast_until(measurement, 2 * SECOND_NS + SECOND_NS / 2, times);
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

/// A volume behind token buckets, on a medium that answers unevenly.
struct Volume {
    requests: Option<Limiter>,
    bytes: Option<Limiter>,
    /// Single small requests, many of them, and large ones, per second.
    single: f64,
    deep: f64,
    streams: f64,
    /// The rate of writes as a share of that of reads.
    write_share: f64,
    /// Standard deviation of a tenth of a second.
    noise: f64,
}

/// The rate of a medium varies from one tenth of a second to the next.
const NOISE_CELLS: usize = 10;

/// A number between two others, each order of magnitude as often.
fn between(rng: &mut TestRng, low: f64, high: f64) -> f64 {
    (low.ln() + rng.share() * (high / low).ln()).exp()
}

/// The block size with which a limiter in bytes has the same rate as one in requests.
const EQUAL_BYTES: f64 = 65_536.0;

impl Volume {
    /// A volume of 500 to 16,000/s whose credit of 1000 to 5,400,000 refills in 1 s to 30 min,
    /// limited in requests, in bytes or in both.
    fn limited(rng: &mut TestRng, kind: u64) -> Self {
        let base = between(rng, 500.0, 16_000.0);
        let refill_s = between(rng, 1.0, 1800.0);
        let limiter = Limiter {
            base,
            burst: base * between(rng, 1.3, 6.0),
            credit: (base * refill_s).clamp(1000.0, 5_400_000.0),
        };
        let in_bytes = Limiter {
            base: limiter.base * EQUAL_BYTES,
            burst: limiter.burst * EQUAL_BYTES,
            credit: limiter.credit * EQUAL_BYTES,
        };
        Self {
            requests: (kind != 1).then_some(limiter),
            bytes: (kind != 0).then_some(in_bytes),
            ..Self::healthy(rng)
        }
    }

    /// A disk without a limiter.
    fn healthy(rng: &mut TestRng) -> Self {
        let single = between(rng, 80.0, 12_000.0);
        Self {
            requests: None,
            bytes: None,
            single,
            deep: single * between(rng, 2.0, 20.0),
            streams: between(rng, 80.0, 4000.0),
            write_share: between(rng, 0.3, 3.0),
            noise: between(rng, 0.03, 0.15),
        }
    }

    /// What the medium answers per second.
    fn natural(&self, measurement: &Measurement) -> f64 {
        let workload = &measurement.workload;
        let reads = match (workload.block_bytes >= 256 << 10, workload.depth) {
            (true, _) => self.streams,
            (false, 1) => self.single,
            (false, _) => self.deep,
        };
        if workload.streams.is_only(OpKind::Read) {
            reads
        } else if workload.streams.is_only(OpKind::Write) {
            reads * self.write_share
        } else {
            reads * (1.0 + self.write_share) / 2.0
        }
    }

    /// The requests of this workload that the volume lets pass per second for ever.
    fn lasting(&self, measurement: &Measurement) -> f64 {
        let mut rate = self.natural(measurement);
        if let Some(limiter) = self.requests {
            rate = rate.min(limiter.base);
        }
        if let Some(limiter) = self.bytes {
            rate = rate.min(limiter.base / f64::from(measurement.workload.block_bytes));
        }
        rate
    }

    /// The workloads of the fixture but its commits, one after the other.
    fn carry_out(&self, rng: &mut TestRng, run: &mut FixtureRun) {
        run.facts.host.hypervisor = Some("kvm".to_owned());
        run.measurements
            .retain(|measurement| !measurement.workload.commits());
        let limiters = [self.requests, self.bytes];
        let mut tokens = limiters.map(|limiter| limiter.map_or(0.0, |one| one.credit));
        for (turn, measurement) in (0..).zip(&mut run.measurements) {
            measurement.start_ns = turn * TURN_NS + SECOND_NS;
            let each = [1.0, f64::from(measurement.workload.block_bytes)];
            let natural = self.natural(measurement) / CELLS_PER_SECOND;
            let cells = (fixture::WALL_NS / SERIES_INTERVAL_NS) as usize;
            let mut requests: Vec<u64> = Vec::new();
            let (mut sum, mut counted) = (0.0, 0);
            let mut deviation = 0.0;
            for cell in 0..cells {
                if cell % NOISE_CELLS == 0 {
                    deviation = self.noise * rng.normal();
                }
                let mut passed = (natural * (1.0 + deviation)).max(0.0);
                for (place, limiter) in limiters.iter().enumerate() {
                    let Some(limiter) = limiter else { continue };
                    // A turn begins after a pause of a second.
                    let refilled = if cell == 0 {
                        1.0
                    } else {
                        1.0 / CELLS_PER_SECOND
                    };
                    let full = limiter.credit + limiter.base / CELLS_PER_SECOND;
                    tokens[place] = (tokens[place] + limiter.base * refilled).min(full);
                    passed = passed
                        .min(limiter.burst / CELLS_PER_SECOND / each[place])
                        .min(tokens[place] / each[place]);
                }
                for place in 0..limiters.len() {
                    tokens[place] -= passed * each[place];
                }
                sum += passed;
                requests.push((sum + 1e-6) as u64 - counted);
                counted += requests[cell];
            }
            set_requests(measurement, &requests);
            let (reads, writes) = (
                counted_ops(measurement, OpKind::Read),
                counted_ops(measurement, OpKind::Write),
            );
            (measurement.device.read_ops, measurement.device.write_ops) = (reads, writes);
        }
    }
}

fn counted_ops(measurement: &Measurement, kind: OpKind) -> u64 {
    match measurement.ops.get(&kind) {
        Some(op) => op.count,
        None => 0,
    }
}

/// True if a record says of a row that its rate may not last: by a finding, or by the command that
/// tests for a credit with such blocks.
fn doubts_row(record: &Record, index: usize) -> bool {
    let is_found = record.findings.iter().any(|finding| {
        let is_of_burst = [
            "burst-figure",
            "burst-untested",
            "burst-exhausted",
            "cache-cliff",
        ]
        .contains(&finding.code.as_str());
        is_of_burst && finding.concerns(index)
    });
    let block_bytes = record.measurements[index].data.workload.block_bytes;
    let test = if block_bytes >= 256 << 10 {
        "--bs 1M"
    } else {
        "--bs 8k"
    };
    let caveats = &record.verdict.as_ref().unwrap().caveats;
    is_found
        || caveats
            .iter()
            .any(|caveat| caveat.contains("would not have shown") && caveat.contains(test))
}

/// Sixty volumes: no rate of a burst stands without a word, and a credit that ended has its base.
#[test]
fn no_rate_of_a_burst_stands_without_a_word() {
    let mut wrong = Vec::new();
    let (mut bursts, mut ended) = (0, 0);
    for seed in 1..=60u64 {
        let mut rng = TestRng(seed * 104_729);
        let volume = Volume::limited(&mut rng, seed % 3);
        let mut run = fixture::run();
        volume.carry_out(&mut rng, &mut run);
        let lasting: Vec<f64> = run
            .measurements
            .iter()
            .map(|measurement| volume.lasting(measurement))
            .collect();
        let record = fixture::judge(run);
        for (index, row) in record.measurements.iter().enumerate() {
            if row.total_iops() > 1.15 * lasting[index] {
                bursts += 1;
                if !doubts_row(&record, index) {
                    wrong.push(format!("{seed}: {}", row.data.workload.name));
                }
            }
        }
        for credit in &record.burst_credits {
            ended += 1;
            // Rows of one size make the same statement in both units.
            let block = record.measurements[credit.at_base[0]]
                .data
                .workload
                .block_bytes;
            let in_requests = if credit.unit == "1/s" {
                credit.base
            } else {
                credit.base / f64::from(block)
            };
            let bases = [
                volume.requests.map(|one| one.base),
                volume.bytes.map(|one| one.base / f64::from(block)),
            ];
            let is_true = bases
                .into_iter()
                .flatten()
                .any(|base| (in_requests / base - 1.0).abs() <= 0.03);
            if !is_true {
                wrong.push(format!("{seed}: {credit:?}, not {bases:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?} of {bursts}, {ended} ended");
    assert!(bursts >= 60 && ended >= 3, "{bursts} {ended}");
}

/// Forty disks without a limiter: none is accused of one.
#[test]
fn disk_without_a_limiter_is_not_accused() {
    let mut wrong = Vec::new();
    for seed in 1..=40u64 {
        let mut rng = TestRng(seed * 15_485_863);
        let disk = Volume::healthy(&mut rng);
        let mut run = fixture::run();
        disk.carry_out(&mut rng, &mut run);
        let record = fixture::judge(run);
        if !speaking(&record).is_empty() {
            wrong.push(format!("{seed}: {:?}", speaking(&record)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
