//! `diskproof commit` from the outside.

use crate::program::{content_hash, counts, names, needs, random_file, run};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{CachePolicy, SyncPolicy};
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{Disk, can_run, place};
use diskproof_simdisk::{SimDisk, spec};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

const MIB: u64 = 1 << 20;

/// The rows of `--quick`, in order.
const QUICK: [&str; 18] = [
    "fdatasync",
    "fsync",
    "open_datasync",
    "open_sync",
    "rwf_dsync",
    "fdatasync-x8",
    "fsync-x8",
    "open_datasync-x8",
    "open_sync-x8",
    "dsync-direct",
    "fdatasync-direct",
    "fdatasync-c16",
    "group-c16",
    "unsynced",
    "with-reads",
    "reads",
    "with-checkpoint",
    "checkpoint",
];

fn commit(target: &Path, flags: &[&str]) -> crate::program::Ran {
    let verb = [OsStr::new("commit"), target.as_os_str()];
    run(verb.into_iter().chain(flags.iter().map(OsStr::new)))
}

fn count(record: &Record, name: &str, kind: OpKind) -> u64 {
    let found = record
        .measurements
        .iter()
        .find(|m| m.data.workload.name == name);
    let m = found.unwrap_or_else(|| panic!("{name} is missing"));
    counts(m, kind).0
}

/// Latency distributions have memory only where latencies fall. They took 260 MB otherwise.
#[test]
fn a_run_of_many_workloads_takes_little_memory() {
    const NAME: &str = "a_run_of_many_workloads_takes_little_memory";
    if !can_run(NAME, &["python3", "losetup", "mkfs.ext4"]) {
        return;
    }
    let disk = Disk::in_memory("ext4", 512 * MIB);
    let script = "import resource, subprocess, sys\n\
                  code = subprocess.run(sys.argv[1:]).returncode\n\
                  print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n\
                  sys.exit(code)";
    let flags = ["--time", "4s", "--size", "64M", "-q", "-o", "run.json"];
    let ran = Command::new("python3")
        .args(["-c", script])
        .arg(crate::program::program_path())
        .args(["commit", ".", "--no-history"])
        .args(flags)
        .current_dir(disk.path())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let text = String::from_utf8(ran.stdout).unwrap();
    let kilobytes: u64 = text.lines().last().unwrap().parse().unwrap();
    assert!(kilobytes < 128 << 10, "{kilobytes} kB");
}

#[test]
fn every_method_is_measured_and_nothing_stays() {
    needs!("losetup", "mkfs.ext4");
    let disk = Disk::in_memory("ext4", 512 * MIB);
    let here = disk.path().join("here");
    std::fs::create_dir(&here).unwrap();
    let flags = ["--quick", "--time", "2s", "--size", "64M", "--json", "-q"];
    let ran = commit(&here, &flags);
    ran.exits(0);
    let record = ran.record();
    let measured: Vec<&str> = record
        .measurements
        .iter()
        .map(|m| m.data.workload.name.as_str())
        .collect();
    assert_eq!(measured, QUICK);
    for m in &record.measurements {
        let (name, workload) = (m.data.workload.name.as_str(), &m.data.workload);
        let is_load = ["reads", "checkpoint"].contains(&name);
        let is_direct = is_load || name.ends_with("-direct");
        let cache = if is_direct {
            CachePolicy::Direct
        } else {
            CachePolicy::Cached
        };
        assert_eq!(m.data.cache.used, cache, "{name}");
        // The segment, and what lies behind it.
        let span = (m.data.span_start_bytes, m.data.span_bytes);
        let expected = if is_load {
            (16 * MIB, 48 * MIB)
        } else {
            (0, 16 * MIB)
        };
        assert_eq!(span, expected, "{name}");
        let is_commit = !is_load && name != "unsynced";
        assert_eq!(
            m.data.ops.contains_key(&OpKind::Commit),
            is_commit,
            "{name}"
        );
        assert_eq!(workload.sync.is_per_write(), is_commit, "{name}");
    }
    assert!(
        QUICK[..13]
            .iter()
            .all(|name| count(&record, name, OpKind::Commit) > 0)
    );
    let shared = record
        .measurements
        .iter()
        .find(|m| m.data.workload.name == "group-c16");
    let shared = &shared.unwrap().data.workload;
    assert!(matches!(shared.sync, SyncPolicy::Shared { .. }) && shared.depth == 16);
    assert!(names(&here).is_empty());
}

#[test]
fn rates_are_those_of_the_disk_and_every_commit_reaches_it() {
    needs!("fusermount3");
    let here = place();
    let model = spec::parse("latency=200us,flush=4ms,channels=64").unwrap();
    let disk = SimDisk::serve(model, 64 * MIB, &here.path().join("disk")).unwrap();
    let refused = commit(disk.path(), &["--quick"]);
    refused.exits(3).tells("--overwrite");
    assert_eq!(disk.stats().written_bytes, 0, "the gate must not write");

    let flags = ["--overwrite", "--quick", "--time", "6s", "--json", "-q"];
    let ran = commit(disk.path(), &flags);
    ran.exits(0);
    let record = ran.record();
    // No commit is faster than a write and a flush, and none is lost: what a slow machine adds
    // only makes it slower.
    for m in &record.measurements {
        if let Some(commits) = m.op(OpKind::Commit) {
            let name = &m.data.workload.name;
            assert!(commits.figures.latency.min >= 4_000_000, "{name}");
            let most = f64::from(m.data.workload.depth) / 0.004;
            assert!(
                commits.figures.iops.value <= most * 1.05,
                "{name}: {:?}",
                commits.figures.iops
            );
        }
    }
    let syncs: u64 = QUICK[..5]
        .iter()
        .map(|name| count(&record, name, OpKind::Commit))
        .sum();
    assert!(syncs > 0 && disk.stats().flushes >= syncs);
}

#[test]
fn only_the_selected_rows_are_measured() {
    needs!("losetup", "mkfs.ext4");
    let disk = Disk::in_memory("ext4", 512 * MIB);
    let measured = |flags: &[&str]| {
        let common = ["--quick", "--time", "1s", "--size", "64M", "--json", "-q"];
        let ran = commit(disk.path(), &[&common[..], flags].concat());
        ran.exits(0);
        let record = ran.record();
        let names = record.measurements.iter().map(|m| &m.data.workload.name);
        let names: Vec<String> = names.cloned().collect();
        assert_eq!(names.len() + record.plan.skipped.len(), QUICK.len());
        names
    };
    // What is measured at the same time stays together.
    let chosen = measured(&["--only", "group-c16,with-reads"]);
    assert_eq!(chosen, ["group-c16", "with-reads", "reads"]);
    let others = measured(&["--skip", "checkpoint,fsync"]);
    let is_left = |name: &&str| !["fsync", "with-checkpoint", "checkpoint"].contains(name);
    let expected: Vec<&str> = QUICK.into_iter().filter(is_left).collect();
    assert_eq!(others, expected);
    let ran = commit(disk.path(), &["--only", "fdatsync"]);
    ran.exits(2).tells("--only fdatsync: ");
}

#[test]
fn targets_without_room_for_a_segment_are_refused() {
    let here = place();
    let small = here.path().join("small");
    random_file(&small, 8 * MIB);
    let before = content_hash(&small);
    let ran = commit(&small, &["--overwrite"]);
    ran.exits(2).shows_nothing().tells("16 MiB");
    let ran = commit(here.path(), &["--size", "8M"]);
    ran.exits(2).shows_nothing();
    assert_eq!(content_hash(&small), before);
    // A segment alone has no room for the loads alongside commits.
    let ran = commit(here.path(), &["--size", "16M", "--dry-run"]);
    ran.exits(0);
    let words: Vec<&str> = ran.out.split_whitespace().collect();
    let why = "with-reads, reads, with-checkpoint, checkpoint: less than 16 MiB";
    assert!(words.join(" ").contains(why), "{}", ran.out);
}

#[test]
fn flushes_that_a_mount_option_drops_are_found() {
    needs!("losetup", "mkfs.ext4");
    let findings = |options: &str| {
        let disk = Disk::new("ext4", 4096 * MIB, options);
        let flags = ["--quick", "--time", "10s", "--size", "64M", "--json", "-q"];
        let ran = commit(disk.path(), &flags);
        ran.exits(0);
        ran.findings()
    };
    let code = "flush-not-sent".to_owned();
    assert!(findings("barrier=0").contains(&code));
    assert!(!findings("barrier=1").contains(&code));
}
