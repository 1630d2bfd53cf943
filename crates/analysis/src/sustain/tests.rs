//! Steady state by rounds, and how far a rate fell.

use super::*;
use crate::again::{Rejudged, judged_again};
use crate::expect::Expected;
use crate::fixture::{self, FixtureRun};
use crate::judge::{RunFacts, judge};
use diskproof_model::data::RunData;
use diskproof_model::expectation::ExpectationOutcome;
use diskproof_model::finding::Severity;
use diskproof_model::health::{DiskCounters, ExceededLimits};
use diskproof_model::measurement::{Measurement, SERIES_INTERVAL_NS};
use diskproof_model::plan::Decide;
use diskproof_model::record::TaskResult;
use diskproof_model::series::Cell;
use diskproof_model::target::Link;

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn steady_state_follows_the_limits_of_snia() {
    let even = [100.0; 5];
    let state = steady_state(SECOND_NS, &even, 1e6);
    assert_eq!((state.is_steady, state.reached_at), (true, Some(5)));
    assert_eq!((state.more_ns, state.more_bytes), (None, None));
    // A range of 19 % without a slope, and of 21 %.
    for (low, is_steady) in [(90.5, true), (89.4, false)] {
        let rates = [109.5, low, 100.0, low, 109.5];
        assert_eq!(steady_state(SECOND_NS, &rates, 1e6).is_steady, is_steady);
    }
    // A line that falls by 9 % and by 11 % of its mean.
    for (step, is_steady) in [(2.25, true), (2.75, false)] {
        let mut rates = Vec::new();
        for number in 0..5 {
            rates.push(100.0 - step * f64::from(number));
        }
        let state = steady_state(SECOND_NS, &rates, 1e6);
        assert_eq!(state.is_steady, is_steady, "{state:?}");
    }
}

/// 26 rounds on the credit of a limiter, and 27 after it: the state in which the load ended begins
/// after the fall, whose window is the first without a round before it.
#[test]
fn steady_state_is_the_one_after_the_last_fall() {
    let mut rates = vec![2000.0; 26];
    rates.extend([600.0; 27]);
    let state = steady_state(SECOND_NS, &rates, 1e6);
    assert_eq!((state.is_steady, state.reached_at), (true, Some(31)));
    // A fall in the last rounds ends the state, and no other is reached.
    rates.truncate(28);
    let state = steady_state(SECOND_NS, &rates, 1e6);
    assert_eq!((state.is_steady, state.reached_at), (false, None));
}

#[test]
fn steady_state_says_how_much_longer() {
    let stopped = steady_state(SECOND_NS, &[0.0; 5], 0.0);
    assert!(!stopped.is_steady, "nothing is no state");
    assert_eq!((stopped.range, stopped.slope), (None, None));
    let state = steady_state(60 * SECOND_NS, &[100.0, 100.0], 1e6);
    assert_eq!(state.range, None);
    assert_eq!(state.more_ns, Some(180 * SECOND_NS));
    assert_eq!(state.more_bytes, Some(180_000_000));
    let falling: Vec<f64> = (0..10)
        .map(|number| 1000.0 / f64::from(1 + number))
        .collect();
    let state = steady_state(60 * SECOND_NS, &falling, 1e6);
    assert_eq!((state.is_steady, state.reached_at), (false, None));
    assert_eq!(state.more_ns, Some(300 * SECOND_NS));
}

#[test]
fn drop_share_of_few_or_noisy_rounds_decides_nothing() {
    assert_eq!(drop_share(&[100.0, 90.0], None), None);
    let noisy = drop_share(&[150.0, 60.0, 90.0, 60.0, 120.0, 50.0], None).unwrap();
    assert!(noisy.low() < 0.2 && noisy.high() > 0.2, "{noisy:?}");
    let even = drop_share(&[100.0, 101.0, 99.0, 100.0, 99.0, 101.0], None).unwrap();
    assert!(even.high() < 0.1, "{even:?}");
    let fallen = drop_share(&[100.0, 101.0, 99.0, 50.0, 49.0, 51.0], None).unwrap();
    assert!(fallen.low() > 0.4, "{fallen:?}");
}

/// The sequential writes of the fixture, which fall to a fourth after half of their time.
fn falling_writes() -> FixtureRun {
    let mut run = fixture::filled(fixture::run());
    run.measurements
        .retain(|m| m.workload.name == "sequential-write");
    for m in &mut run.measurements {
        for op in m.ops.values_mut() {
            let cells = (m.wall_ns / 2 / SERIES_INTERVAL_NS) as usize;
            for cell in &mut op.series.cells[..cells] {
                (cell.ops, cell.bytes) = (cell.ops * 4, cell.bytes * 4);
            }
            let total = op.series.total();
            (op.count, op.bytes) = (total.ops, total.bytes);
        }
    }
    run
}

/// A run whose load is the writes that fall, and what the disks counted.
fn run_that_falls(counted: Vec<CountedDisk>) -> Record {
    let FixtureRun {
        mut facts,
        measurements,
    } = falling_writes();
    sustain_only(&mut facts, &measurements);
    let data = RunData {
        counted,
        ..RunData::from_measurements(measurements)
    };
    judge(facts, &data, &[])
}

/// The same writes without pauses after them.
fn fallen_in_check() -> Record {
    let run = falling_writes();
    judge(
        run.facts,
        &RunData::from_measurements(run.measurements),
        &[],
    )
}

fn sustain_only(facts: &mut RunFacts, measurements: &[Measurement]) {
    let workloads = facts.plan.workload_task_mut().unwrap();
    let name = &measurements[0].workload.name;
    workloads.list.retain(|workload| workload.name == *name);
    workloads.decide = Decide::Until(SustainPlan {
        round_ns: SECOND_NS,
        pauses_ns: Vec::new(),
        precondition_bytes: None,
        stop_at_drop: Some(0.2),
        budget_bytes: None,
    });
}

fn counters(throttles: u64, link: u64) -> DiskCounters {
    DiskCounters {
        throttles: Some(throttles),
        link_bytes_per_second: Some(link),
        ..DiskCounters::default()
    }
}

#[test]
fn fall_has_its_moment_its_factor_and_a_cause_only_where_one_is_proved() {
    let cause_of = |before, after| {
        let record = run_that_falls(vec![CountedDisk {
            disk: "sda".to_owned(),
            before,
            after,
        }]);
        record.sustain().unwrap().drop.as_ref().unwrap().cause
    };
    assert_eq!(
        cause_of(counters(2, 600), counters(2, 600)),
        DropCause::Unknown
    );
    assert_eq!(
        cause_of(counters(2, 600), counters(3, 600)),
        DropCause::Heat
    );
    assert_eq!(
        cause_of(counters(2, 600), counters(3, 300)),
        DropCause::Link
    );
    let record = run_that_falls(Vec::new());
    let found = record.sustain().unwrap();
    let drop = found.drop.as_ref().unwrap();
    assert_eq!(drop.cause, DropCause::Unknown);
    assert!(
        (drop.factor().unwrap() / 4.0 - 1.0).abs() < 0.05,
        "{drop:?}"
    );
    assert!(
        (drop.at_ns as f64 / found.time_ns as f64 - 0.5).abs() < 0.03,
        "{drop:?}"
    );
    let expectation = &record.expectations[0];
    assert!(
        !expectation.met && !expectation.undecided,
        "{expectation:?}"
    );
    assert_eq!(judged_again(record.clone()).1, Rejudged::Same);
}

/// Writes that fell, and no pause after which they were fast again: the result names no cause, so
/// no finding does. `check` has no pauses, and keeps the finding.
#[test]
fn findings_state_no_other_cause_than_the_result() {
    let codes = |record: &Record| -> Vec<String> {
        let mut codes: Vec<String> = Vec::new();
        for finding in &record.findings {
            if rules::cause_stated_by(&finding.code).is_some() {
                codes.push(finding.code.clone());
            }
        }
        codes
    };
    let record = run_that_falls(Vec::new());
    let cause = record.sustain().unwrap().drop.as_ref().unwrap().cause;
    assert_eq!(cause, DropCause::Unknown);
    assert_eq!(codes(&record), Vec::<String>::new());
    assert_eq!(codes(&fallen_in_check()), ["cache-cliff"]);
}

#[test]
fn healthy_load_has_no_fall() {
    let FixtureRun {
        mut facts,
        mut measurements,
    } = fixture::filled(fixture::run());
    measurements.retain(|m| m.workload.name == "sequential-write");
    sustain_only(&mut facts, &measurements);
    let mut filled = measurements.clone();
    let record = judge(
        facts.clone(),
        &RunData::from_measurements(measurements),
        &[],
    );
    let found = record.sustain().unwrap();
    assert_eq!((&found.drop, &found.bucket), (&None, &None));
    // What filled the scratch file used up a credit, too.
    let load_bytes = found.tested_credit().bytes;
    filled[0].laid_out = Some(MovedTotal {
        requests: 1000,
        bytes: 1000 << 20,
    });
    let record = judge(facts, &RunData::from_measurements(filled), &[]);
    let found = record.sustain().unwrap();
    assert_eq!(found.tested_credit().bytes, load_bytes + (1000 << 20));
}

/// Numbers below 1 that look random.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The truth of a simulated limiter, and how uneven the disk behind it is.
struct TrueBucket {
    base: f64,
    burst: f64,
    credit: f64,
    /// Half-width of the rate of a cell while there is credit, as a share.
    uneven: f64,
}

/// A limiter in bytes lets a third of the requests of eight times the size through: the lasting
/// rate in requests is its base in bytes over the size of one.
#[test]
fn lasting_rate_of_a_limiter_in_bytes_is_its_base() {
    let mut noise = Noise(7);
    let bucket = TrueBucket {
        base: 84.0,
        burst: 381.0,
        credit: 13_300.0,
        uneven: 0.05,
    };
    let record = run_through_with_blocks(&bucket, &mut noise, 256 << 10);
    let found = record.sustain().unwrap();
    let figures = found.bucket.as_ref().unwrap();
    assert_eq!(figures.base.unit, "B/s");
    assert_eq!(found.lasting.unit, "1/s");
    let requests = figures.base.value / f64::from(256 << 10);
    assert!(
        (found.lasting.value / requests - 1.0).abs() < 1e-9,
        "{found:?}"
    );
    assert!(holds(&found.lasting, 84.0), "{:?}", found.lasting);
    assert!(found.lasting.half_width_95.unwrap() < 0.02 * 84.0);
}

/// One block size tells no unit: the rate is stated in both.
#[test]
fn limiter_that_one_block_size_met_has_both_units() {
    let mut noise = Noise(7);
    let bucket = TrueBucket {
        base: 500.0,
        burst: 2000.0,
        credit: 30_000.0,
        uneven: 0.05,
    };
    let record = run_through_with_blocks(&bucket, &mut noise, 32 << 10);
    let headline = record.verdict.as_ref().unwrap().headline.clone();
    crate::fixture::states(&headline, &["500/s", "16.4 MB/s", "32 KiB"]);
    let exhausted = record
        .findings
        .iter()
        .find(|finding| finding.code == "burst-exhausted")
        .unwrap();
    crate::fixture::states(&exhausted.claim, &["16.4 MB/s"]);
    assert_eq!(record.only_request_bytes(0), Some(32 << 10));
    assert_eq!(fixture::record().only_request_bytes(0), None);
}

/// A run whose load reads through this limiter for two minutes.
fn run_through(bucket: &TrueBucket, noise: &mut Noise) -> Record {
    run_through_with_blocks(bucket, noise, 8 << 10)
}

/// The same with requests of this size.
fn run_through_with_blocks(bucket: &TrueBucket, noise: &mut Noise, block_bytes: u32) -> Record {
    let FixtureRun {
        mut facts,
        mut measurements,
    } = fixture::run();
    measurements.retain(|m| m.workload.name == "random-read-d32");
    measurements[0].workload.block_bytes = block_bytes;
    sustain_only(&mut facts, &measurements);
    let m = &mut measurements[0];
    m.wall_ns = 120 * SECOND_NS;
    m.windows = fixture::windows(m.wall_ns, 32);
    let cell_s = SERIES_INTERVAL_NS as f64 / 1e9;
    let (mut tokens, mut part) = (bucket.credit, noise.next());
    for op in m.ops.values_mut() {
        op.series.cells.clear();
        for _ in 0..m.wall_ns / SERIES_INTERVAL_NS {
            tokens = (tokens + bucket.base * cell_s).min(bucket.credit);
            let uneven = 1.0 + bucket.uneven * (2.0 * noise.next() - 1.0);
            let passed = (bucket.burst * uneven * cell_s).min(tokens);
            tokens -= passed;
            // Requests are whole.
            part += passed;
            let ops = part.floor();
            part -= ops;
            op.series.cells.push(Cell {
                ops: ops as u64,
                bytes: ops as u64 * u64::from(m.workload.block_bytes),
                ..Cell::default()
            });
        }
        let total = op.series.total();
        (op.count, op.bytes) = (total.ops, total.bytes);
    }
    let run = fixture::filled(FixtureRun {
        facts,
        measurements,
    });
    judge(
        run.facts,
        &RunData::from_measurements(run.measurements),
        &[],
    )
}

fn holds(estimate: &Estimate, truth: f64) -> bool {
    (estimate.value - truth).abs() <= estimate.half_width_95.unwrap()
}

#[test]
fn intervals_of_buckets_hold_the_truth_whatever_the_noise() {
    let mut noise = Noise(0x5eed);
    let (mut found, mut held, mut widest) = (0, [0; 3], [0.0f64; 3]);
    for number in 0..100 {
        let base = 100.0 + 900.0 * noise.next();
        let burst = base * (3.0 + 9.0 * noise.next());
        let bucket = TrueBucket {
            base,
            burst,
            credit: (burst - base) * (10.0 + 40.0 * noise.next()),
            uneven: f64::from(number % 5) * 0.1,
        };
        let record = run_through(&bucket, &mut noise);
        let Some(figures) = &record.sustain().unwrap().bucket else {
            continue;
        };
        found += 1;
        let truths = [
            (&figures.base, bucket.base),
            (&figures.burst, bucket.burst),
            (&figures.credit, bucket.credit),
        ];
        for (place, (estimate, truth)) in truths.into_iter().enumerate() {
            held[place] += u32::from(holds(estimate, truth));
            let width = estimate.half_width_95.unwrap() / estimate.value;
            widest[place] = widest[place].max(width);
        }
    }
    println!("{found} found, held {held:?}, widest {widest:?}");
    assert!(found >= 90, "{found}");
    for count in held {
        assert!(
            f64::from(count) >= 0.9 * f64::from(found),
            "{held:?} of {found}"
        );
    }
    // An interval that holds everything says nothing.
    assert!(widest.iter().all(|width| *width < 0.1), "{widest:?}");
}

#[test]
fn fall_while_others_use_the_disk_is_no_rate_that_lasts_and_accuses_nobody() {
    let FixtureRun {
        mut facts,
        mut measurements,
    } = fixture::run();
    measurements.retain(|m| m.workload.name == "sequential-write");
    sustain_only(&mut facts, &measurements);
    for m in &mut measurements {
        m.device.read_bytes += 20 << 30;
        for op in m.ops.values_mut() {
            let cells = (m.wall_ns / 2 / SERIES_INTERVAL_NS) as usize;
            for cell in &mut op.series.cells[..cells] {
                (cell.ops, cell.bytes) = (cell.ops * 4, cell.bytes * 4);
            }
            let total = op.series.total();
            (op.count, op.bytes) = (total.ops, total.bytes);
        }
    }
    let run = fixture::filled(FixtureRun {
        facts,
        measurements,
    });
    let record = judge(
        run.facts,
        &RunData::from_measurements(run.measurements),
        &[],
    );
    let found = record.sustain().unwrap();
    assert_eq!(found.drop, None);
    let doubtful = found.doubtful_drop.as_ref().unwrap();
    assert!(
        (doubtful.factor().unwrap() / 4.0 - 1.0).abs() < 0.05,
        "{doubtful:?}"
    );
    // Not the mean of both.
    let after = found.lasting.value / doubtful.after;
    assert!((after - 1.0).abs() < 0.05, "{found:?}");
    // Nor does it miss the limit of the gate, although it is much larger.
    let gate = &record.expectations[0];
    assert_eq!((gate.met, gate.undecided), (false, true), "{gate:?}");
    assert!(
        gate.objection.is_some() && gate.observed.unwrap() > 70.0,
        "{gate:?}"
    );
}

/// Each write with a sync is counted as a write and as a commit: the same bytes.
#[test]
fn bytes_that_a_steady_state_still_needs_count_each_write_once() {
    let more_bytes = |has_commits: bool| {
        let FixtureRun {
            mut facts,
            mut measurements,
        } = fixture::filled(fixture::run());
        measurements.retain(|m| m.workload.name == "sequential-write");
        sustain_only(&mut facts, &measurements);
        for slice in &mut measurements[0].slices {
            let writes = slice.ops[&OpKind::Write];
            if has_commits {
                slice.ops.insert(OpKind::Commit, writes);
            }
        }
        let record = judge(facts, &RunData::from_measurements(measurements), &[]);
        let sustained = record.sustain().unwrap();
        sustained.steady_state.more_bytes
    };
    assert!(more_bytes(false).is_some());
    assert_eq!(more_bytes(false), more_bytes(true));
}

#[test]
fn load_that_is_not_steady_yet_meets_no_threshold() {
    let FixtureRun {
        mut facts,
        mut measurements,
    } = fixture::filled(fixture::run());
    measurements.retain(|m| m.workload.name == "sequential-write");
    sustain_only(&mut facts, &measurements);
    let mut record = judge(facts, &RunData::from_measurements(measurements), &[]);
    let judged = |record: &Record, text: &str| {
        let expected: Expected = text.parse().unwrap();
        expected.evaluate(record)
    };
    assert!(!record.sustain().unwrap().steady_state.is_steady);
    let met = judged(&record, "sequential-write.iops>=1");
    assert_eq!(met.outcome(), ExpectationOutcome::Undecided, "{met:?}");
    assert!(met.objection.is_some());
    // A load that is too slow before its credit ends is so after it.
    let missed = judged(&record, "sequential-write.iops>=1000000000");
    assert_eq!(missed.outcome(), ExpectationOutcome::Missed, "{missed:?}");
    for result in &mut record.results {
        if let TaskResult::Sustain(sustained) = result {
            sustained.steady_state.is_steady = true;
        }
    }
    assert!(judged(&record, "sequential-write.iops>=1").met);
}

/// The stream of a rotating disk comes to slower zones: that is no fall of its rate.
#[test]
fn stream_along_the_zones_of_a_platter_is_doubtful() {
    let found_of = |disk_bytes: u64, factor: u64| {
        let FixtureRun {
            mut facts,
            mut measurements,
        } = fixture::filled(fixture::run());
        measurements.retain(|m| m.workload.name == "sequential-write");
        sustain_only(&mut facts, &measurements);
        facts.host.hypervisor = None;
        for layer in &mut facts.targets[0].layers {
            layer.rotational = Some(true);
            layer.size_bytes = disk_bytes;
            layer.link = Some(Link {
                bus: "SATA".to_owned(),
                ..Link::default()
            });
        }
        for m in &mut measurements {
            for op in m.ops.values_mut() {
                let cells = (m.wall_ns / 2 / SERIES_INTERVAL_NS) as usize;
                for cell in &mut op.series.cells[..cells] {
                    (cell.ops, cell.bytes) = (cell.ops * factor, cell.bytes * factor);
                }
                let total = op.series.total();
                (op.count, op.bytes) = (total.ops, total.bytes);
            }
        }
        let record = judge(facts, &RunData::from_measurements(measurements), &[]);
        let sustained = record.sustain().unwrap();
        (sustained.drop.is_some(), sustained.doubtful_drop.is_some())
    };
    // The load moves a gigabyte: all of a small disk, and hardly anything of a large one.
    assert_eq!(found_of(1_000_000_000, 2), (false, true));
    assert_eq!(found_of(16_000_000_000, 2), (true, false));
    assert_eq!(found_of(16_000_000_000_000, 2), (true, false));
    // No disk has zones that are six times as fast as others.
    assert_eq!(found_of(1_000_000_000, 6), (true, false));
}

/// An EBS volume whose limits were exceeded for so long during the run.
fn exceeded_during(limits: ExceededLimits) -> CountedDisk {
    let before = ExceededLimits {
        volume_iops_us: 7,
        volume_throughput_us: 7,
        instance_iops_us: 7,
        instance_throughput_us: 7,
    };
    let after = ExceededLimits {
        volume_iops_us: 7 + limits.volume_iops_us,
        volume_throughput_us: 7 + limits.volume_throughput_us,
        instance_iops_us: 7 + limits.instance_iops_us,
        instance_throughput_us: 7 + limits.instance_throughput_us,
    };
    CountedDisk {
        disk: "nvme1n1".to_owned(),
        before: counters_of_limits(before),
        after: counters_of_limits(after),
    }
}

fn counters_of_limits(exceeded: ExceededLimits) -> DiskCounters {
    DiskCounters {
        exceeded: Some(exceeded),
        ..DiskCounters::default()
    }
}

/// What the instance limits, each of its volumes may count as well: it is the nearer cause.
#[test]
fn exceeded_limit_explains_a_fall_from_a_tenth_of_the_run_on() {
    let tenth_us = run_that_falls(Vec::new()).elapsed_ns() / 10_000;
    let none = ExceededLimits::default();
    let of_volume = ExceededLimits {
        volume_iops_us: tenth_us,
        ..none
    };
    for (limits, expected) in [
        (of_volume, DropCause::VolumeLimit),
        (
            ExceededLimits {
                volume_throughput_us: tenth_us,
                ..none
            },
            DropCause::VolumeLimit,
        ),
        (
            ExceededLimits {
                volume_iops_us: tenth_us - 1,
                instance_throughput_us: tenth_us - 1,
                ..none
            },
            DropCause::Unknown,
        ),
        (
            ExceededLimits {
                instance_iops_us: tenth_us,
                ..of_volume
            },
            DropCause::InstanceLimit,
        ),
        (
            ExceededLimits {
                instance_throughput_us: tenth_us,
                ..of_volume
            },
            DropCause::InstanceLimit,
        ),
    ] {
        let record = run_that_falls(vec![exceeded_during(limits)]);
        let drop = record.sustain().unwrap().drop.as_ref().unwrap();
        assert_eq!(drop.cause, expected, "{limits:?}");
    }
}

/// A group's limit is certain, so it comes before what the disks count. A plateau is no group.
#[test]
fn limit_of_a_control_group_comes_before_the_heat_of_the_disk() {
    let hot = [CountedDisk {
        disk: "sda".to_owned(),
        before: counters(2, 600),
        after: counters(3, 600),
    }];
    let mut record = run_that_falls(Vec::new());
    let mut limited = fixture::finding("rate-limited", Severity::Note, "/measurements/0/data");
    record.findings = vec![limited.clone()];
    assert_eq!(cause_outside_of_cache(&record, &hot, 0), DropCause::Heat);
    let group = fixture::finding("", Severity::Note, "/host/io_limits/0/write_iops");
    limited.evidence.extend(group.evidence);
    record.findings = vec![limited];
    let cause = cause_outside_of_cache(&record, &hot, 0);
    assert_eq!(cause, DropCause::ControlGroup);
    // It limits another workload.
    record.findings[0].evidence[0].path = "/measurements/1/data".to_owned();
    assert_eq!(cause_outside_of_cache(&record, &hot, 0), DropCause::Heat);
}

/// A limiter of 100 requests per second with a credit of 9000, which lasts for ten seconds.
fn credit_of_requests() -> BurstCredit {
    BurstCredit {
        target: 0,
        unit: "1/s".to_owned(),
        base: 100.0,
        burst: 1000.0,
        credit: 9000.0,
        credit_is_lower_bound: false,
        burst_ns: 10 * SECOND_NS,
        refill_ns: 90 * SECOND_NS,
        at_base: Vec::new(),
        in_burst: Vec::new(),
        has_reads: false,
        has_refilled: false,
    }
}

/// The fall at the end of that credit, after so many bytes.
fn fall_after(bytes: u64) -> RateDrop {
    RateDrop {
        at_ns: 10 * SECOND_NS,
        moved: MovedTotal {
            requests: 10_000,
            bytes,
        },
        before: 1000.0,
        after: 100.0,
        cause: DropCause::Unknown,
    }
}

/// The rate after a pause of so many seconds, which was back for so many requests.
fn after_pause(seconds: u64, lasted: Option<u64>) -> Recovery {
    Recovery {
        workload: String::new(),
        pause_ns: seconds * SECOND_NS,
        iops: 0.0,
        is_back: lasted.is_some(),
        lasted: lasted.map(|requests| MovedTotal { requests, bytes: 0 }),
    }
}

/// A workload of the fixture.
fn row_of(name: &str) -> Row {
    fixture::measured(&mut fixture::record(), name).clone()
}

/// A pause of a minute refills 6000 requests, which last for 6667 while 100 per second are added.
#[test]
fn limiter_is_refuted_by_a_pause_that_gave_nothing() {
    let (credit, reads) = (credit_of_requests(), row_of("random-read-d32"));
    for (pauses, expected) in [
        (Vec::new(), true),
        (vec![after_pause(60, Some(6667))], true),
        (vec![after_pause(60, None)], false),
        (
            vec![after_pause(60, Some(6667)), after_pause(60, None)],
            false,
        ),
        // It refilled less than the first two seconds need, or more.
        (vec![after_pause(17, None)], true),
        (vec![after_pause(19, None)], false),
    ] {
        let found = is_limiter(&reads, &credit, &fall_after(1 << 30), &pauses);
        assert_eq!(found, expected, "{pauses:?}");
    }
}

/// The writes that fill a cache look like those that use up a credit.
#[test]
fn limiter_of_writes_alone_is_confirmed_by_what_a_pause_refilled() {
    let writes = row_of("random-write-d32");
    let cache_bytes = rules::CLIFF_BYTES_MIN as u64;
    for (bytes, pauses, expected) in [
        (cache_bytes - 1, Vec::new(), true),
        (cache_bytes, Vec::new(), false),
        (cache_bytes, vec![after_pause(60, Some(6667))], true),
        (cache_bytes, vec![after_pause(60, Some(8600))], true),
        (cache_bytes, vec![after_pause(60, Some(8700))], false),
        (cache_bytes, vec![after_pause(60, Some(4600))], false),
        // A pause refills the credit, and no more than that.
        (cache_bytes, vec![after_pause(1000, Some(10_000))], true),
    ] {
        let found = is_limiter(&writes, &credit_of_requests(), &fall_after(bytes), &pauses);
        assert_eq!(found, expected, "{bytes} {pauses:?}");
    }
    let refilled = BurstCredit {
        has_refilled: true,
        ..credit_of_requests()
    };
    assert!(is_limiter(
        &writes,
        &refilled,
        &fall_after(cache_bytes),
        &[]
    ));
}

#[test]
fn cache_explains_a_fall_of_writes_that_a_pause_took_back() {
    let cache_bytes = rules::CLIFF_BYTES_MIN as u64;
    let (back, slow) = (after_pause(60, Some(1)), after_pause(60, None));
    for (workload, bytes, pauses, expected) in [
        (
            "random-write-d32",
            cache_bytes,
            vec![slow.clone(), back.clone()],
            true,
        ),
        (
            "random-write-d32",
            cache_bytes - 1,
            vec![back.clone()],
            false,
        ),
        ("random-write-d32", cache_bytes, vec![slow], false),
        ("random-read-d32", cache_bytes, vec![back.clone()], false),
        ("mixed-random", cache_bytes, vec![back], false),
    ] {
        let found = is_cache(&fall_after(bytes), &row_of(workload), &pauses);
        assert_eq!(found, expected, "{workload} {bytes} {pauses:?}");
    }
}

/// The reads of the fixture, 2000 per second, lie between the rates of a fall at its geometric
/// mean.
#[test]
fn rate_after_a_pause_is_back_from_the_middle_of_the_fall_on() {
    let mut record = fixture::record();
    for (after, is_back) in [(490.0, true), (510.0, false)] {
        let drop = RateDrop {
            before: 8000.0,
            after,
            ..fall_after(0)
        };
        let found = recovery(&record, "random-read-d1", SECOND_NS, &drop).unwrap();
        assert_eq!((found.is_back, found.lasted), (is_back, None), "{after}");
        assert!((found.iops - 2000.0).abs() < 1.0, "{found:?}");
        assert_eq!(recovery(&record, "not-measured", SECOND_NS, &drop), None);
    }
    // They fall again after three seconds.
    let reads = fixture::measured(&mut record, "random-read-d1");
    let series = &mut reads.data.ops.get_mut(&OpKind::Read).unwrap().series;
    for cell in &mut series.cells[(3 * SECOND_NS / SERIES_INTERVAL_NS) as usize..] {
        *cell = Cell::default();
    }
    let found = recovery(&record, "random-read-d1", SECOND_NS, &fall_after(0)).unwrap();
    assert_eq!(found.lasted.map(|moved| moved.requests), Some(6000));
}

/// A disk that counted so many bytes, or counts none.
fn wrote(written_bytes: Option<u64>) -> CountedDisk {
    CountedDisk {
        disk: "sda".to_owned(),
        before: DiskCounters {
            written_bytes: Some(0),
            ..DiskCounters::default()
        },
        after: DiskCounters {
            written_bytes,
            ..DiskCounters::default()
        },
    }
}

#[test]
fn bytes_that_disks_counted_are_known_only_of_all_of_them() {
    assert_eq!(counted_bytes(&[wrote(Some(5)), wrote(Some(7))]), Some(12));
    assert_eq!(counted_bytes(&[wrote(Some(5)), wrote(None)]), None);
    assert_eq!(counted_bytes(&[]), None);
}
