//! Sustained loads on disks whose truth is known: the limiter and the cache that end their rate,
//! and what a killed, full or healthy disk leaves behind.

use crate::program::{diskproof, needs};
use diskproof_model::record::Record;
use diskproof_model::sustain::DropCause;
use diskproof_simdisk::SimDisk;
use diskproof_simdisk::spec::parse;
use diskproof_simdisk::testbed::place;

/// 100/s for ever, 700/s for five seconds after a pause.
const CREDIT: &str = "latency=2500us,channels=64,credits=3000@700/100";
const SAVED: f64 = 3000.0;
/// 144 MB at 24 MB/s, then 6 MB/s; slow enough for a busy machine.
const CLIFF: &str = "latency=100us,write-bandwidth=24MB,cliff=144MB@6MB";
/// A disk without limits that any machine reaches.
const HEALTHY: &str = "iops=400,channels=8";

/// Whether the machine was too busy to accuse a disk.
fn is_busy(record: &Record) -> bool {
    record
        .findings
        .iter()
        .any(|finding| ["starved", "disturbed", "cpu-stolen"].contains(&finding.code.as_str()))
}

#[test]
fn credit_of_a_limiter_is_found_within_five_percent() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(CREDIT).unwrap(), 64 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    let ran = diskproof!("sustain {target} --time 30s --json");
    ran.exits(0);
    let record = ran.record();
    let found = record.sustain().unwrap();
    let Some(drop) = &found.drop else {
        assert!(is_busy(&record), "{found:?}");
        return;
    };
    assert_eq!(drop.cause, DropCause::BurstCredit, "{drop:?}");
    let bucket = found.bucket.as_ref().unwrap();
    assert!((bucket.base.value / 100.0 - 1.0).abs() < 0.05, "{bucket:?}");
    assert!(
        (bucket.credit.value / SAVED - 1.0).abs() < 0.05,
        "{bucket:?}"
    );
    assert!(
        (found.lasting.value / 100.0 - 1.0).abs() < 0.05,
        "{found:?}"
    );
    let backs: Vec<bool> = found.recoveries.iter().map(|one| one.is_back).collect();
    assert_eq!(backs.len(), 2, "{found:?}");
}

#[test]
fn end_of_a_cache_is_found_within_five_percent_and_its_cause_is_unknown() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(CLIFF).unwrap(), 64 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    let ran = diskproof!(
        "sustain {target} --overwrite --rw randwrite --bs 64k --depth 4 --time 30s --json"
    );
    ran.exits(0);
    let record = ran.record();
    let found = record.sustain().unwrap();
    let drop = found.drop.as_ref().unwrap();
    assert!(
        (drop.moved.bytes as f64 / 144e6 - 1.0).abs() < 0.05,
        "{drop:?}"
    );
    // It never recovers, so nothing proves a cache.
    assert!(found.recoveries.iter().all(|one| !one.is_back), "{found:?}");
    assert_ne!(drop.cause, DropCause::WriteCache);
}

#[test]
fn healthy_disk_is_not_accused() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(HEALTHY).unwrap(), 64 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    let ran = diskproof!("sustain {target} --time 12s --stop-at-drop 90% --json");
    ran.exits(0);
    let record = ran.record();
    let found = record.sustain().unwrap();
    assert_eq!((&found.drop, found.recoveries.len()), (&None, 0));
    assert_eq!(record.expectations.len(), 1);
    assert!(record.expectations[0].met, "{:?}", record.expectations);
}

#[test]
fn gate_ends_the_load_at_a_fall_with_code_1() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(CREDIT).unwrap(), 64 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    let ran = diskproof!("sustain {target} --time 60s --stop-at-drop 20% --json");
    let record = ran.record();
    let found = record.sustain().unwrap();
    if found.drop.is_none() {
        assert!(is_busy(&record), "{found:?}");
        return;
    }
    ran.exits(1);
    assert!(found.time_ns < 40_000_000_000, "{found:?}");
    assert_eq!(record.expectations[0].expression, "sustain.drop<=20%");
}

#[test]
fn budget_limits_what_is_written() {
    let here = place();
    let target = here.path().to_str().unwrap();
    let ran = diskproof!(
        "sustain {target} --size 16MiB --time 10s --budget-bytes 4MiB --rate 100 --json"
    );
    let record = ran.record();
    let written: u64 = record
        .measurements
        .iter()
        .flat_map(|row| row.data.ops.values())
        .map(|op| op.series.total().bytes)
        .sum();
    assert!(written <= 4 << 20, "{written}");
}

#[test]
fn contradictions_are_usage_errors() {
    let here = place();
    let target = here.path().to_str().unwrap();
    for flags in [
        "--time 1s",
        "--bs 4k,8k",
        "--precision 2%",
        "--bytes 1G",
        "--precondition",
        "--stop-at-drop 0%",
        "--stop-at-drop x",
        "--every 1h",
        "--every 10s --rate 100",
        "--every 1h --rate 100 --no-history",
        "--for 7d",
    ] {
        diskproof!("sustain {target} {flags}").exits(2);
    }
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
}
