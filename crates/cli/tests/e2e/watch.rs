//! `diskproof watch` and `run --like` from the outside.

use crate::program::{Ran, needs, program, program_path, run};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::{Record, TaskResult};
use diskproof_simdisk::testbed::place;
use std::path::Path;
use std::process::Command;

fn record_of(path: &Path) -> Record {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn watch_prints_steps_and_states_its_method() {
    let ran = run(["watch", "-i", "100ms", "-c", "3"]);
    ran.exits(0);
    assert!(ran.out.contains("seeks      traced:") || ran.out.contains("estimated (~)"));
    ran.shows(" time device    read/s");
}

/// As in a container without sysfs: the counters of /proc/diskstats alone do not tell disks from
/// their partitions.
#[test]
fn machine_without_sysfs_is_no_machine_without_load() {
    needs!("unshare");
    let script = "mount --make-rprivate / && mount -t tmpfs none /sys && exec \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(program_path())
        .args(["watch", "-i", "100ms", "-c", "1"]);
    let ran = Ran::of(command);
    ran.exits(4);
    assert!(ran.out.is_empty(), "{}", ran.out);
}

#[test]
fn load_is_saved_even_if_the_view_cannot_be_written() {
    let here = place();
    let file = here.path().join("load.json");
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let ended = program(["watch", "--plain", "-i", "100ms", "-c", "2", "-o"])
        .arg(&file)
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(4));
    let is_observed = |result: &TaskResult| matches!(result, TaskResult::Observed(_));
    assert!(record_of(&file).results.iter().any(is_observed));
}

/// Three programs with long names write: the line that names them has more than 80 columns.
#[test]
fn plain_lines_in_a_file_are_whole() {
    if !Path::new("/proc/self/io").exists() {
        println!("SKIPPED: plain_lines_in_a_file_are_whole: the kernel counts no I/O of processes");
        return;
    }
    let here = place();
    let names = ["first-long-name", "other-long-name", "third-long-name"];
    let writers: Vec<_> = names
        .iter()
        .map(|name| {
            let program = here.path().join(name);
            diskproof_simdisk::testbed::run("cp", &["/bin/dd", program.to_str().unwrap()]);
            let output = here.path().join(format!("{name}.out"));
            Command::new(program)
                .args(["if=/dev/zero", "bs=16k", "count=20000", "oflag=dsync"])
                .arg(format!("of={}", output.display()))
                .arg("status=none")
                .spawn()
                .unwrap()
        })
        .collect();
    let path = here.path().join("watch.txt");
    let status = program(["watch", "--plain", "-i", "300ms", "-c", "4"])
        .stdout(std::fs::File::create(&path).unwrap())
        .status();
    for mut writer in writers {
        writer.kill().unwrap();
        writer.wait().unwrap();
    }
    assert_eq!(status.unwrap().code(), Some(0));
    let text = std::fs::read_to_string(&path).unwrap();
    let long: Vec<&str> = text.lines().filter(|line| line.len() > 80).collect();
    // Each entry ends with its rate, also the last one.
    let is_whole = |line: &&str| line.matches("; ").count() >= 2 && line.ends_with("/s");
    assert!(long.iter().any(is_whole), "{text}");
    assert!(!text.contains('…') && !text.contains('\x1b'), "{text}");
}

#[test]
fn unknown_device_is_a_clear_error() {
    let ran = run(["watch", "no-such-disk"]);
    ran.exits(2).shows_nothing().tells("no-such-disk");
    let ran = run(["watch", "-i", "1ms"]);
    ran.tells("100 ms to 1 h");
    let ran = run(["run", "--like", "no-such-run", "--no-history"]);
    ran.exits(2);
}

/// The load of a recorded device, by hand: a test must not depend on what the machine does.
fn recorded(here: &Path) -> String {
    let path = here.join("empty.json");
    let text = path.to_str().unwrap().to_owned();
    let ran = run(["watch", "-i", "100ms", "-c", "1", "-q", "-o", &text]);
    ran.exits(0);
    let mut record = record_of(&path);
    let json = r#"{"interval_ns": 1000000000, "devices": [{"target": 0, "name": "sdz",
        "wall_ns": 10000000000, "queue_depth": 0.5, "queue_depth_max": 4, "seeks": "traced",
        "ops": {"read": {"count": 2000, "bytes": 16384000, "merges": 0,
            "iops": {"n": 1, "value": 200, "half_width_95": null, "unit": "1/s"},
            "throughput": {"n": 1, "value": 1638400, "half_width_95": null, "unit": "B/s"},
            "seek_share": 0.75,
            "sizes": [{"block_bytes": 8192, "random": 1500, "sequential": 500}],
            "series": {"start_ns": 0, "interval_ns": 1000000000, "cells": []}}}}]}"#;
    let observed = serde_json::from_str(json).unwrap();
    record.results = vec![TaskResult::Observed(Box::new(observed))];
    // The record's reader checks that the index of a target is one of its list.
    let identity = diskproof_device::probe(here).unwrap();
    record.targets = vec![identity];
    let path = here.join("load.json");
    std::fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn recorded_load_is_shown_and_repeated() {
    let here = place();
    let load = recorded(here.path());
    let shown = run(["show", &load]);
    shown.shows("sdz").shows("8 KiB 100 %");
    let page = here.path().join("load.html");
    let ran = run(["show", &load, "-q", "-o", page.to_str().unwrap()]);
    ran.exits(0);
    assert!(
        std::fs::read_to_string(&page)
            .unwrap()
            .contains("Observed load")
    );
    let repeated = here.path().join("repeated.json");
    let target = here.path().to_str().unwrap();
    let saving = ["--size", "64M", "--time", "2s", "--no-history", "-o"];
    let words = [&["run", "--like", &load, target][..], &saving].concat();
    let ran = run([&words[..], &[repeated.to_str().unwrap()]].concat());
    ran.exits(0).shows("load of sdz");
    let record = record_of(&repeated);
    let names: Vec<&str> = record
        .measurements
        .iter()
        .map(|m| m.data.workload.name.as_str())
        .collect();
    assert_eq!(names, ["read-random", "read-sequential"]);
    let rates: Vec<Option<f64>> = record
        .measurements
        .iter()
        .map(|m| m.data.workload.rate)
        .collect();
    assert_eq!(rates, [Some(150.0), Some(50.0)]);
    assert!(
        record
            .measurements
            .iter()
            .all(|m| m.data.ops.contains_key(&OpKind::Read))
    );
    let wrong = run(["run", "--like", &load, target, "--rw", "write"]);
    wrong.tells("--like");
}

#[test]
fn closed_stdout_ends_the_view_quietly() {
    use std::process::Stdio;
    let mut child = program(["watch", "-i", "100ms", "-c", "100"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let prefix = format!("diskproof-{}-", child.id());
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // Where tracefs is not mounted, nothing shows the instance.
    for instance in std::fs::read_dir("/sys/kernel/tracing/instances")
        .into_iter()
        .flatten()
    {
        let name = instance.unwrap().file_name().into_string().unwrap();
        assert!(!name.starts_with(&prefix), "{name}");
    }
}
