//! A volume with a credit as whole runs show it, from what was measured to the verdict.

use super::*;
use crate::fixture::{self, FixtureRun, states};
use diskproof_model::campaign::DroppedSlice;
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::measurement::MovedTotal;
use diskproof_model::plan::CachePolicy;
use diskproof_model::record::Record;
use diskproof_model::window::SliceOp;

const SECOND_NS: u64 = 1_000_000_000;
/// Of a workload of the fixture, its pause before it included.
const TURN_NS: u64 = 6 * SECOND_NS;

/// Lets all operations of a measurement pass at these counts per cell of 10 ms.
fn set_pace(m: &mut Measurement, per_cell: impl Fn(u64) -> u64) {
    let kinds = [OpKind::Read, OpKind::Write];
    let shares = kinds.iter().filter(|kind| m.ops.contains_key(kind)).count() as u64;
    let mut place = 0;
    for kind in kinds {
        let Some(op) = m.ops.get_mut(&kind) else {
            continue;
        };
        for (number, cell) in (0u64..).zip(&mut op.series.cells) {
            let all = per_cell(number);
            // The odd one alternates between reads and writes.
            let odd = all % shares * u64::from((number + place) % shares == 0);
            cell.ops = all / shares + odd;
            cell.bytes = cell.ops * u64::from(m.workload.block_bytes);
        }
        let total = op.series.total();
        (op.count, op.bytes) = (total.ops, total.bytes);
        place += 1;
    }
}

/// The workloads of the fixture one after the other on a volume of 1500/s, in a burst 3000/s. The
/// credit ends two seconds after the deep reads begin; the streams before the random mix refill it.
fn on_volume(run: &mut FixtureRun) {
    for (number, m) in (0u64..).zip(&mut run.measurements) {
        m.start_ns = number * TURN_NS + SECOND_NS;
        match m.workload.name.as_str() {
            "random-read-d32" => set_pace(m, |cell| if cell < 200 { 30 } else { 15 }),
            "random-write-d32" => set_pace(m, |_| 15),
            "mixed-random" => set_pace(m, |cell| if cell < 300 { 30 } else { 15 }),
            _ => {}
        }
    }
}

fn finding<'a>(record: &'a Record, code: &str) -> Option<&'a Finding> {
    record.findings.iter().find(|finding| finding.code == code)
}

#[test]
fn run_that_ends_a_credit_states_both_rates() {
    let record = fixture::changed(on_volume);
    let [credit] = &record.burst_credits[..] else {
        panic!("{:?}", record.burst_credits)
    };
    assert!((credit.base / 1500.0 - 1.0).abs() < 0.01, "{credit:?}");
    assert!((credit.burst / 3000.0 - 1.0).abs() < 0.01, "{credit:?}");
    assert_eq!(
        (&credit.at_base[..], &credit.in_burst[..]),
        (&[3, 4, 6][..], &[2][..])
    );
    for index in [3, 4, 6] {
        let rate = record.measurements[index].total_iops();
        assert!((rate / 1500.0 - 1.0).abs() < 0.02, "{index}: {rate}");
    }
    let ended = finding(&record, "burst-exhausted").unwrap();
    states(&ended.claim, &["1500/s for ever; 3000/s for"]);
    assert!(ended.concerns(3) && !ended.concerns(2));
    let figure = finding(&record, "burst-figure").unwrap();
    assert!(figure.concerns(2) && !figure.concerns(3));
    assert_eq!(figure.severity, Severity::Warning);
    assert_eq!(finding(&record, "imprecise"), None);
}

/// The deep reads are the last workload, and fall in the last 0.6 s.
#[test]
fn figure_before_a_fall_in_the_last_second_is_undecided() {
    let falls_at = |fall_ns: u64| {
        fixture::changed(|run| {
            run.measurements.truncate(4);
            let list = &mut run.facts.plan.workload_task_mut().unwrap().list;
            list.truncate(4);
            for (number, m) in (0u64..).zip(&mut run.measurements) {
                m.start_ns = number * TURN_NS + SECOND_NS;
                let end = (m.wall_ns - fall_ns) / 10_000_000;
                if m.workload.name == "random-read-d32" {
                    set_pace(m, |cell| if cell < end { 30 } else { 15 });
                }
            }
        })
    };
    let late = falls_at(600_000_000);
    assert_eq!(late.burst_credits, []);
    let figure = finding(&late, "burst-figure").unwrap();
    assert!(figure.concerns(3), "{}", figure.claim);
    states(&figure.claim, &["1500/s"]);
    assert!(finding(&falls_at(0), "burst-figure").is_none());
}

/// A busy machine does not make the rate of a limiter even.
#[test]
fn busy_machine_does_not_hide_a_credit() {
    let record = fixture::changed(|run| {
        on_volume(run);
        for m in &mut run.measurements {
            (m.starved.share, m.starved.mean_wait_ns) = (0.3, 1e6);
        }
    });
    assert!(finding(&record, "starved").is_some());
    assert!(finding(&record, "burst-exhausted").is_some());
}

/// Two directories of one volume share its credit; of two volumes each has its own.
#[test]
fn targets_on_one_disk_share_its_credit() {
    let alone = fixture::changed(on_volume);
    let split = |second_disk: &str| {
        fixture::changed(|run| {
            on_volume(run);
            let mut other = run.facts.targets[0].clone();
            other.path.push_str("/other");
            for layer in &mut other.layers {
                layer.device = second_disk.to_owned();
            }
            run.facts.targets.push(other);
            run.measurements[0].target = 1;
            run.measurements[1].target = 1;
            run.measurements[2].target = 1;
        })
    };
    let device = alone.targets[0].disks().next().unwrap().device.clone();
    let together = split(&device);
    let credit = |record: &Record| record.burst_credits[0].credit;
    assert!((credit(&together) / credit(&alone) - 1.0).abs() < 0.01);
    assert!(split("99:0").burst_credits.is_empty() || credit(&split("99:0")) < credit(&alone));
}

#[test]
fn dropped_slices_show_the_burst_of_a_campaign() {
    let mut run = fixture::run();
    on_volume(&mut run);
    let run = fixture::filled(run);
    let mut measurements = run.measurements;
    let burst = measurements.remove(3);
    let mut kept = burst.clone();
    set_pace(&mut kept, |_| 15);
    kept.start_ns += 5 * SECOND_NS;
    let dropped = DroppedSlice {
        target: 0,
        workload: burst.workload.name.clone(),
        start_ns: burst.start_ns,
        warmup_ns: 0,
        moved: requests_of(&burst),
        pause: None,
    };
    let data = RunData {
        dropped: vec![dropped],
        ..RunData::from_measurements(vec![kept])
    };
    let found = found_credits(&data, &run.facts.plan, &run.facts.targets);
    assert_eq!(found.len(), 1);
    assert!((found[0].bucket.burst / 3000.0 - 1.0).abs() < 0.01);
    assert_eq!(
        found[0].sustained_from_ns(0),
        None,
        "all of the row is at the base"
    );
}

/// A search of a depth ran on the credit first, dropped the depths of the burst, and has rows of
/// others. What it dropped is of workloads without a row.
#[test]
fn dropped_workloads_without_a_row_show_the_burst_of_a_search() {
    let searched = |cached_burst: bool| {
        let mut run = fixture::run();
        on_volume(&mut run);
        let mut run = fixture::filled(run);
        let mut row = run.measurements.remove(3);
        let moved = requests_of(&row);
        let start_ns = row.start_ns;
        let mut burst = row.workload.clone();
        burst.name = "depth-8".to_owned();
        burst.depth = 8;
        if cached_burst {
            burst.cache = CachePolicy::Cached;
        }
        let list = &mut run.facts.plan.workload_task_mut().unwrap().list;
        *list = vec![row.workload.clone(), burst.clone()];
        set_pace(&mut row, |_| 15);
        row.start_ns += 6 * SECOND_NS;
        let mut other = row.clone();
        other.workload.name = "depth-16".to_owned();
        other.workload.depth = 16;
        other.start_ns += 6 * SECOND_NS;
        let dropped = DroppedSlice {
            target: 0,
            workload: burst.name.clone(),
            start_ns,
            warmup_ns: 0,
            moved,
            pause: None,
        };
        let data = RunData {
            dropped: vec![dropped],
            ..RunData::from_measurements(vec![row, other])
        };
        crate::judge::judge(run.facts, &data, &[])
    };
    let record = searched(false);
    let [credit] = &record.burst_credits[..] else {
        panic!("{:?}", record.burst_credits)
    };
    assert_eq!(
        (&credit.at_base[..], credit.in_burst.len()),
        (&[0, 1][..], 0)
    );
    assert!((credit.burst / 3000.0 - 1.0).abs() < 0.01, "{credit:?}");
    assert!(finding(&record, "burst-exhausted").is_some());
    assert_eq!(finding(&record, "burst-untested"), None);
    assert_eq!(
        searched(true).burst_credits,
        [],
        "nobody knows what answered"
    );
}

/// Bulk writes at an even rate on a volume whose credit in requests ends may run on one in bytes:
/// nobody grades them. Those that vary as a medium does are the disk's, and those that the limiter
/// of requests holds are known.
#[test]
fn even_rate_in_the_unit_without_an_end_is_not_graded() {
    // In turns of a quarter of a second.
    const UNEVEN: fn(u64) -> u64 = |cell| 4 + cell / 25 % 2;
    let with_writes = |per_cell: fn(u64) -> u64| {
        fixture::changed(|run| {
            on_volume(run);
            for m in &mut run.measurements {
                match m.workload.name.as_str() {
                    "sequential-write" => set_pace(m, per_cell),
                    "sequential-read" | "mixed-sequential" => set_pace(m, UNEVEN),
                    _ => {}
                }
            }
        })
    };
    let bulk_load = |record: &Record| {
        let verdict = record.verdict.as_ref().unwrap();
        let grade = verdict.grades.iter().find(|one| one.measurement == 0);
        grade.unwrap().not_graded.clone()
    };
    let even = with_writes(|_| 2);
    assert_eq!(even.burst_credits.len(), 1);
    let untested = finding(&even, "burst-untested").unwrap();
    assert!(untested.concerns(0) && !untested.concerns(3));
    assert!(bulk_load(&even).is_some());
    let uneven = with_writes(UNEVEN);
    assert_eq!(uneven.burst_credits.len(), 1);
    assert!(finding(&uneven, "burst-untested").is_none_or(|one| !one.concerns(0)));
    assert_eq!(bulk_load(&uneven), None);
    // Too few to tell: 50/s of 1 MiB.
    let few = with_writes(|cell| cell % 2);
    assert_eq!(few.burst_credits.len(), 1);
    let untested = finding(&few, "burst-untested").unwrap();
    assert!(untested.concerns(0) && !untested.concerns(3));
    assert!(bulk_load(&few).is_some());
    let healthy = fixture::changed(|run| {
        for m in &mut run.measurements {
            if m.workload.name == "sequential-write" {
                set_pace(m, |cell| cell % 2);
            }
        }
    });
    assert_eq!(finding(&healthy, "burst-untested"), None);
    assert_eq!(bulk_load(&healthy), None);
    let limited = with_writes(|_| 15);
    assert!(finding(&limited, "burst-untested").is_none_or(|one| !one.concerns(0)));
}

/// A filling in the middle of the run uses the credit that was refilled by then, and none of that
/// before it.
#[test]
fn second_filling_lies_between_the_rows_around_it() {
    let mut run = fixture::run();
    on_volume(&mut run);
    let run = fixture::filled(run);
    let mut measurements = run.measurements;
    let filled = MovedTotal {
        requests: 1234,
        bytes: 1234 * 8192,
    };
    measurements[0].laid_out = Some(filled);
    measurements[3].laid_out = Some(filled);
    let before = &measurements[2];
    let (from_ns, to_ns) = (before.start_ns + before.wall_ns, measurements[3].start_ns);
    let data = RunData::from_measurements(measurements);
    let stretches = stretches_of(
        &data,
        &run.facts.plan,
        &TargetsOfDisk::new(0, &run.facts.targets),
    );
    let fillings: Vec<&Stretch> = stretches
        .iter()
        .filter(|stretch| stretch.requests == [1234.0])
        .collect();
    let [first, second] = &fillings[..] else {
        panic!("{fillings:?}");
    };
    assert_eq!(first.start_ns, 0.0);
    assert_eq!(second.start_ns, from_ns as f64);
    assert!(second.end_ns() <= to_ns as f64, "{second:?}");
}

/// Requests until a moment of the measured time: 2500/s for 33.3 s, then 700/s.
fn passed_until(ns: u64) -> u64 {
    const SPENT_NS: u64 = 33_300_000_000;
    let burst_ns = ns.min(SPENT_NS) as u128;
    let base_ns = ns.saturating_sub(SPENT_NS) as u128;
    ((2500 * burst_ns + 700 * base_ns) / u128::from(SECOND_NS)) as u64
}

/// Rounds of five seconds, whose borders lie within cells of 1.28 s, as in a long run.
fn rounds_with_long_cells(rounds: u64) -> Vec<Stretch> {
    const ROUND_NS: u64 = 5 * SECOND_NS;
    let block_bytes = 4096;
    let mut series = TimeSeries::new(1_280_000_000);
    while series.cells.len() as u64 * series.interval_ns < rounds * ROUND_NS {
        let start_ns = series.cells.len() as u64 * series.interval_ns;
        let end_ns = (start_ns + series.interval_ns).min(rounds * ROUND_NS);
        let ops = passed_until(end_ns) - passed_until(start_ns);
        series.cells.push(Cell {
            ops,
            bytes: ops * block_bytes,
            ..Cell::default()
        });
    }
    let mut slices = Vec::new();
    for round in 0..rounds {
        let start_ns = round * ROUND_NS;
        let count = passed_until(start_ns + ROUND_NS) - passed_until(start_ns);
        let reads = SliceOp {
            count,
            bytes: count * block_bytes,
            ..SliceOp::default()
        };
        slices.push(TimeSlice {
            start_ns,
            wall_ns: ROUND_NS,
            ops: [(OpKind::Read, reads)].into_iter().collect(),
            slot: None,
        });
    }
    let kind = RowKind::new(0, &Workload::named("sustained"), Role::Closed);
    let times = RowTimes {
        start_ns: 0,
        wall_ns: rounds * ROUND_NS,
        slices: &slices,
        warmup_ns: 0,
    };
    kind.stretches(&times, &series)
}

#[test]
fn credit_counts_what_lies_between_whole_cells_of_its_rounds() {
    let stretches = rounds_with_long_cells(40);
    let moved: f64 = stretches.iter().flat_map(|one| &one.requests).sum();
    assert!(
        (moved - passed_until(200 * SECOND_NS) as f64).abs() <= 40.0,
        "{moved}"
    );
    let found = find_bucket(&stretches).unwrap();
    // 1800/s above the base for 33.3 s; the round in which it ends shows its end to a cell.
    let credit = 1800.0 * 33.3;
    assert!((found.credit / credit - 1.0).abs() < 0.03, "{found:?}");
    assert!((found.base / 700.0 - 1.0).abs() < 0.01, "{found:?}");
}

/// Reads that the page cache answered are no burst of the volume, whatever their rate.
#[test]
fn rows_that_do_not_wait_for_the_disk_use_no_credit() {
    let record = fixture::changed(|run| {
        for (number, m) in (0u64..).zip(&mut run.measurements) {
            m.start_ns = number * TURN_NS + SECOND_NS;
            match m.workload.name.as_str() {
                "random-read-d1" => {
                    set_pace(m, |_| 3000);
                    m.cache.used = CachePolicy::Cached;
                }
                "random-read-d32" | "random-write-d32" | "mixed-random" => set_pace(m, |_| 30),
                _ => {}
            }
        }
    });
    assert!(
        record.burst_credits.is_empty(),
        "{:?}",
        record.burst_credits
    );
    assert_eq!(finding(&record, "burst-exhausted"), None);
    let held = held_by_rows(&record, 0, Unit::Requests).unwrap();
    assert!((held.rate / 3000.0 - 1.0).abs() < 0.02, "{}", held.rate);
}
