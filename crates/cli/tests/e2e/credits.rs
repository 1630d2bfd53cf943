//! Volumes with burst credit: what is promised of them is what lasts.

use crate::program::{diskproof, needs};
use diskproof_model::record::Record;
use diskproof_simdisk::SimDisk;
use diskproof_simdisk::spec::parse;
use diskproof_simdisk::testbed::place;
use std::fs::File;
use std::io::{Read as _, Write as _};

/// 200/s for ever, 400/s for two seconds after a pause.
const REQUESTS: &str = "read-latency=2500us,channels=64,credits=400@400/200";
/// 20 MB/s for ever, 40 MB/s for two seconds after a pause.
const BYTES: &str = "read-latency=2500us,channels=64,byte-credits=40MB@40MB/20MB";
/// A credit that no test spends.
const LARGE: &str = "latency=2500us,channels=64,credits=1000000@400/200";

fn codes(record: &Record) -> Vec<&str> {
    record.findings.iter().map(|f| f.code.as_str()).collect()
}

/// The machine may be too slow for the burst; it never makes the lasting rate faster.
#[test]
fn promised_depth_has_the_rate_that_lasts() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(REQUESTS).unwrap(), 64 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    let ran = diskproof!(
        "run {target} --rw randread --bs 4k --depth 16 --latency-target 26ms \
         --latency-percentile 90 --latency-window 1s --json"
    );
    // No counters prove that the disk answered.
    ran.exits(5);
    let record = ran.record();
    let search = record.latency_search().unwrap();
    let found = search.found().unwrap();
    let m = record
        .measurements
        .iter()
        .find(|m| m.data.workload.name == found.workload)
        .unwrap();
    let rate = m.total_iops();
    assert!(rate <= 1.1 * 200.0 && found.depth <= 6, "{rate} {search:?}");
    for credit in &record.burst_credits {
        assert!((credit.base / 200.0 - 1.0).abs() < 0.05, "{credit:?}");
        assert!(codes(&record).contains(&"burst-exhausted"));
    }
}

#[test]
fn credit_in_bytes_is_found() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(BYTES).unwrap(), 256 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    let ran = diskproof!("run {target} --rw read --bs 128k --depth 16 --time 8s --json");
    ran.exits(0);
    let record = ran.record();
    let rate = record.measurements[0].headline_ops()[0]
        .1
        .figures
        .throughput
        .value;
    assert!(rate <= 1.1 * 20e6, "{rate}");
    for credit in &record.burst_credits {
        let base = match credit.unit.as_str() {
            "B/s" => credit.base,
            _ => credit.base * 131_072.0,
        };
        assert!((base / 20e6 - 1.0).abs() < 0.05, "{credit:?}");
    }
}

#[test]
fn untested_credit_names_the_command_that_tests_it() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(LARGE).unwrap(), 64 << 20, &disk).unwrap();
    // Blocks without content are another finding.
    let mut content = vec![0; 64 << 20];
    File::open("/dev/urandom")
        .unwrap()
        .read_exact(&mut content)
        .unwrap();
    let mut medium = File::options().write(true).open(&disk).unwrap();
    medium.write_all(&content).unwrap();
    drop(medium);
    let target = disk.to_str().unwrap();
    let ran = diskproof!(
        "run {target} --rw randread --bs 4k --depth 4 --latency-target 1s --latency-window 500ms \
         --json"
    );
    // No counters prove that the disk answered.
    ran.exits(5);
    let record = ran.record();
    assert_eq!(record.burst_credits, []);
    let caveats = &record.verdict.as_ref().unwrap().caveats;
    let command = format!("'diskproof run {target} --rw randread --bs 8k --depth 32 --time ");
    assert!(
        caveats.iter().any(|one| one.contains(&command)),
        "{caveats:?}"
    );
}
