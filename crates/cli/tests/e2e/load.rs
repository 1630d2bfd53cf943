//! `load` on disks whose truth is known. The machine may disturb a search of some seconds; it never
//! makes a disk serve more than it can.

use crate::program::{diskproof, needs};
use diskproof_model::measurement::OpKind;
use diskproof_model::rate::{LoadOutcome, RateCellKind};
use diskproof_model::record::Record;
use diskproof_simdisk::SimDisk;
use diskproof_simdisk::spec::parse;
use diskproof_simdisk::testbed::place;
use std::ffi::OsStr;
use std::process::Command;

/// Two requests at a time, of 5 ms each: 400/s.
const DISK: &str = "read-latency=5ms,channels=2";

/// Nothing is promised that the disk does not serve.
fn promises_no_more_than(record: &Record, served: f64) {
    let figures = &record.load().unwrap().figures;
    if figures.outcome.is_promise() {
        assert!(figures.low <= served, "{figures:?}");
    }
    assert!(figures.saturated <= 1.05 * served, "{figures:?}");
}

#[test]
fn search_promises_no_more_than_the_disk_serves() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(DISK).unwrap(), 64 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    let ran = diskproof!(
        "load {target} --rw randread --bs 4k --depth 32 --slo p90<=30ms --time 40s --json"
    );
    let record = ran.record();
    promises_no_more_than(&record, 400.0);
    let load = record.load().unwrap();
    ran.exits(if load.figures.outcome.is_promise() {
        0
    } else {
        5
    });
    let kinds: Vec<RateCellKind> = load.data.trials.iter().map(|trial| trial.kind).collect();
    for kind in [
        RateCellKind::Doubling,
        RateCellKind::Saturation,
        RateCellKind::Curve,
        RateCellKind::Near,
        RateCellKind::Hold,
    ] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let held = &load.data.trials[load.figures.held.unwrap()];
    let row = &record.measurements[0];
    assert_eq!(row.data.workload.name, "randread-held");
    assert_eq!(row.data.workload.rate, Some(held.rate));
    // What is held against it is named.
    if load.figures.outcome == LoadOutcome::NotTheDisk {
        let verdict = record.verdict.as_ref().unwrap();
        assert!(
            verdict.headline.contains("(unwritten-blocks)"),
            "{verdict:?}"
        );
    }
    // Whoever reads the record finds the same answer.
    let (again, _) = diskproof_analysis::again::judged_again(record.clone());
    assert_eq!(again.load(), record.load());
}

/// Threads take their starts from one queue, so that two of them offer no more than one.
#[test]
fn threads_share_the_offered_rate_and_the_depth() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(DISK).unwrap(), 64 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    diskproof!("load {target} --rw randread --jobs 9 --depth 8").exits(2);
    let search = "--rw randread --bs 4k --depth 33 --jobs 2 --slo p90<=30ms --time 20s";
    let record = diskproof!("load {target} {search} --json").record();
    promises_no_more_than(&record, 400.0);
    let row = &record.measurements[0];
    let workload = &row.data.workload;
    assert_eq!((workload.workers, workload.depth), (2, 16));
    let rate = workload.rate.unwrap();
    let started = row.data.ops[&OpKind::Read].latency.count() as f64;
    let wanted = rate * row.data.wall_ns as f64 / 1e9;
    assert!(
        started <= wanted + 5.0 * wanted.sqrt() + 34.0,
        "{started} {wanted}"
    );
}

#[test]
fn transactions_of_a_directory_leave_nothing_and_count_their_parts() {
    let here = place();
    let target = here.path().to_str().unwrap();
    let ran = diskproof!("load {target} --size 64M --slo p90<=100ms --time 20s --depth 8 --json");
    let record = ran.record();
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
    let row = &record.measurements[0];
    let count = |kind: OpKind| row.data.ops[&kind].latency.count();
    let transactions = count(OpKind::Transaction);
    assert!(transactions > 0);
    // Those in flight when it began and ended have only some of their parts in the measured time.
    let in_flight = 8 * 6;
    assert!(count(OpKind::Read).abs_diff(4 * transactions) <= in_flight);
    assert!(count(OpKind::Commit).abs_diff(transactions) <= in_flight);
    assert!(count(OpKind::Sync).abs_diff(transactions) <= in_flight);
    assert!(count(OpKind::Write).abs_diff(2 * transactions) <= in_flight);
    assert_eq!(row.headline_ops()[0].0, OpKind::Transaction);
    refuses_transactions_that_nothing_makes_durable(&record, target);
}

/// A record is a file from anybody.
fn refuses_transactions_that_nothing_makes_durable(record: &Record, target: &str) {
    let mut changed = serde_json::to_value(record).unwrap();
    let workload = &mut changed["plan"]["tasks"][0]["list"][0];
    assert_eq!(workload["sync"]["policy"], "shared", "{workload}");
    workload["sync"] = serde_json::json!({"policy": "none"});
    let elsewhere = place();
    let saved = elsewhere.path().join("changed.json");
    std::fs::write(&saved, changed.to_string()).unwrap();
    let saved = saved.to_str().unwrap();
    diskproof!("run {saved} {target} --json")
        .exits(4)
        .tells("sync after each log record");
}

#[test]
fn target_that_was_not_released_is_not_written() {
    let here = place();
    let file = here.path().join("file");
    std::fs::write(&file, vec![7; 128 << 20]).unwrap();
    let target = file.to_str().unwrap();
    diskproof!("load {target} --time 20s").exits(3);
    assert!(std::fs::read(&file).unwrap().iter().all(|byte| *byte == 7));
}

#[test]
fn search_that_is_cut_short_answers_nothing() {
    let here = place();
    let target = here.path().to_str().unwrap();
    let planned = diskproof!("load {target} --size 64M --time 20s --dry-run");
    planned.exits(0);
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
    for wrong in [
        "--slo p99<5ms",
        "--time 19s",
        "--time 367d",
        "--prove 9000h",
        "--mix oltp --rw read",
        "--mix none.toml",
    ] {
        diskproof!("load {target} {wrong}").exits(2);
    }
}

#[test]
fn repeated_search_is_that_of_the_record() {
    let here = place();
    let target = here.path().to_str().unwrap();
    let first =
        diskproof!("load {target} --rw randread --size 64M --slo p90<=100ms --time 20s --json");
    let record = first.record();
    let elsewhere = place();
    let saved = elsewhere.path().join("first.json");
    std::fs::write(&saved, serde_json::to_vec(&record).unwrap()).unwrap();
    let saved = saved.to_str().unwrap();
    let planned = diskproof!("run {saved} {target} --dry-run --json");
    planned.exits(0);
    let again: serde_json::Value = serde_json::from_str(&planned.out).unwrap();
    let decide = &again["plan"]["tasks"][0]["decide"];
    assert_eq!(decide["by"], "rate", "{again}");
    assert_ne!(
        record.load().unwrap().figures.outcome,
        LoadOutcome::Unfinished
    );
}

/// Three rays are the fewest; the machine may leave some undecided, and then nothing is exported.
#[test]
fn rays_make_a_boundary_or_no_export() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served =
        SimDisk::serve(parse("latency=5ms,channels=2").unwrap(), 64 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    let files: Vec<std::path::PathBuf> = ["x.iocost", "x.yaml", "x.ceph", "x.cockroach"]
        .iter()
        .map(|name| here.path().join(name))
        .collect();
    let outputs: String = files
        .iter()
        .map(|path| format!(" -o {}", path.display()))
        .collect();
    let ran = diskproof!(
        "load {target} --overwrite --rays=3 --depth 32 --slo p90<=30ms --time 75s --json{outputs}"
    );
    let record = ran.record();
    let rays = record.rays().unwrap();
    assert_eq!(rays.figures.rays.len(), 3);
    for (number, ray) in rays.figures.rays.iter().enumerate() {
        assert!(!rays.data.rays[number].trials.is_empty());
        assert!(ray.load.saturated <= 1.05 * 400.0, "{ray:?}");
        if ray.is_decided() {
            assert!(ray.load.low <= 400.0, "{ray:?}");
        }
    }
    let is_decided = rays.figures.boundary.is_some();
    ran.exits(if is_decided { 0 } else { 5 });
    for file in &files {
        assert_eq!(file.exists(), is_decided, "{}", file.display());
    }
    let (again, _) = diskproof_analysis::again::judged_again(record.clone());
    assert_eq!(again.rays(), record.rays());
}

#[test]
fn rays_and_exports_without_their_data_are_refused() {
    let here = place();
    let target = here.path().to_str().unwrap();
    for wrong in [
        "--rays --time 139s",
        "--rays=2",
        "--rays --rw randread",
        "--rays --mix etcd",
        "--bs 4k",
        "--rw randread -o x.yaml",
        "--rays --bs 8k -o x.ceph",
        "--rays --expect load.rate>=1",
        "--prove 1s",
    ] {
        diskproof!("load {target} --size 64M {wrong} --dry-run").exits(2);
    }
    diskproof!("load {target} --size 64M --rays --time 140s --dry-run").exits(0);
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
}

/// A stream goes on behind the cells before it: what these have read is in the caches of
/// controllers, hypervisors and arrays.
#[test]
fn cells_of_a_stream_do_not_begin_at_the_start_again() {
    needs!("fusermount3", "strace");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse("read-latency=1ms").unwrap(), 4 << 30, &disk).unwrap();
    let log = here.path().join("log");
    let words =
        "load DISK --rw read --bs 64k --engine sync --depth 1 --slo p90<=30ms --time 20s -q";
    let words = words.split(' ').map(|word| {
        if word == "DISK" {
            disk.as_os_str()
        } else {
            OsStr::new(word)
        }
    });
    let ended = Command::new("strace")
        .args(["-f", "-e", "trace=pread64", "-o"])
        .arg(&log)
        .arg(env!("CARGO_BIN_EXE_diskproof"))
        .args(words)
        .env("DISKPROOF_NO_HISTORY", "1")
        .output()
        .unwrap();
    let traced = std::fs::read_to_string(&log).unwrap();
    let is_first = |line: &&str| line.contains(", 65536, 0) ");
    let first = traced.lines().filter(is_first).count();
    let requests = traced.matches(", 65536, ").count();
    assert!(requests > 1000, "{ended:?}");
    // The survey of the gate and a test of direct I/O may read it, and some thirty cells do not.
    assert!(first < 10, "{first} of {requests}");
}
