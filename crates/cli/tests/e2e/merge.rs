//! `merge`: fleets of simulated disks whose truth is known, through files, folders and streams; and
//! records that real launchers bring back.

use crate::program::{Ran, Unwatched, check, needs, program, random_file, run, saved_record};
use diskproof_analysis::judge::{RunFacts, RunVariation, judge};
use diskproof_engine::{FakeDisk, simulate};
use diskproof_model::data::RunData;
use diskproof_model::plan::{Plan, Stop, Task, Workload, Workloads};
use diskproof_model::record::{ClockFacts, Record, Tool};
use diskproof_model::target::{HostFacts, Rank, TargetIdentity, TargetKind};
use diskproof_simdisk::testbed::{TempDir, place};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn workload(name: &str, depth: u32) -> Workload {
    Workload {
        depth,
        stop: Stop {
            time_ns: Some(500_000_000),
            ..Stop::default()
        },
        ..Workload::named(name)
    }
}

/// The record of a host whose disk has this speed, in virtual time.
fn record(number: usize, speed: f64) -> Record {
    let service_ns = (1_500_000.0 / speed) as u64;
    let disk = FakeDisk {
        service_ns,
        jitter_ns: service_ns,
        channels: 4,
        size_bytes: 1 << 30,
    };
    let workloads = vec![workload("one", 1), workload("four", 4)];
    let mut measurements = Vec::new();
    for workload in &workloads {
        let seed = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        measurements.push(simulate(workload, disk, seed, &mut Unwatched).unwrap());
    }
    let facts = RunFacts {
        tool: Tool {
            name: "diskproof".to_owned(),
            version: "0.0.0".to_owned(),
        },
        run_id: format!("{number:032x}"),
        started: "2026-11-20T10:00:00Z".to_owned(),
        partial: false,
        ended_early: None,
        stalled: None,
        failed: None,
        note: None,
        host: HostFacts {
            name: format!("db{number:02}"),
            kernel: "6.18.0".to_owned(),
            ..HostFacts::default()
        },
        silences: Vec::new(),
        first_answers: Vec::new(),
        clock: ClockFacts {
            source: "virtual".to_owned(),
            resolution_ns: 1,
            cost_ns: 0.0,
            wall: None,
        },
        plan: Plan {
            seed: number as u64,
            targets: vec!["/data".to_owned()],
            tasks: vec![Task::Workloads(Workloads::as_planned(workloads))],
            ..Plan::new("run", Vec::new())
        },
        targets: vec![TargetIdentity {
            path: "/data".to_owned(),
            kind: TargetKind::Directory,
            size_bytes: 0,
            free_bytes: None,
            device: "0:0".to_owned(),
            inode: number as u64,
            filesystem: None,
            layers: Vec::new(),
            unresolved: None,
        }],
        health: Vec::new(),
        variation: RunVariation::Earlier(Vec::new()),
    };
    judge(facts, &RunData::from_measurements(measurements), &[])
}

/// Speeds of healthy hosts, within 2 % of each other.
fn healthy(number: usize) -> f64 {
    1.0 + 0.02 * ((number as f64 * 0.618_034).fract() - 0.5)
}

/// Files of so many hosts, of which single ones have another speed.
fn fleet(folder: &Path, count: usize, others: &[(usize, f64)]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for number in 0..count {
        let other = others.iter().find(|(odd, _)| *odd == number);
        let speed = other.map_or(healthy(number), |(_, speed)| *speed);
        let path = folder.join(format!("db{number:02}.json"));
        write(&path, &record(number, speed));
        paths.push(path);
    }
    paths
}

fn write(path: &Path, record: &Record) {
    std::fs::write(path, serde_json::to_string_pretty(record).unwrap()).unwrap();
}

fn merge(arguments: &[&str]) -> Ran {
    run([&["merge"], arguments].concat())
}

/// Hands text to `merge -`.
fn merge_stream(text: &str, arguments: &[&str]) -> Ran {
    let place = place();
    let file = place.path().join("stream");
    std::fs::write(&file, text).unwrap();
    let mut command = program([&["merge", "-"], arguments].concat());
    command.stdin(std::fs::File::open(&file).unwrap());
    Ran::of(command)
}

/// Names of the rows in this state.
fn names(fleet: &Value, state: &str) -> Vec<String> {
    let rows = fleet["rows"].as_array().unwrap();
    let found = rows.iter().filter(|row| row["state"] == state);
    found
        .map(|row| row["name"].as_str().unwrap().to_owned())
        .collect()
}

fn folder() -> (TempDir, String) {
    let place = place();
    let folder = place.path().to_str().unwrap().to_owned();
    (place, folder)
}

#[test]
fn merge_names_the_slow_disk_and_nobody_else() {
    let (place, folder) = folder();
    fleet(place.path(), 12, &[(7, 0.5)]);
    let ran = merge(&[&folder]);
    ran.exits(1).fits_80_columns().shows("db07");
    let json = merge(&[&folder, "--json"]).json();
    assert_eq!(names(&json, "slower"), ["db07"]);
    assert_eq!(names(&json, "alike").len(), 11);
}

#[test]
fn merge_finds_a_healthy_fleet_alike() {
    let (place, folder) = folder();
    let paths = fleet(place.path(), 6, &[]);
    merge(&[&folder]).exits(0);
    let three: Vec<&str> = paths[..3]
        .iter()
        .map(|path| path.to_str().unwrap())
        .collect();
    merge(&three).exits(0);
    merge(&three[..2]).exits(5);
    // The same run twice is one run.
    merge(&[three[0], three[0], three[1]]).exits(5);
}

#[test]
fn merge_writes_every_format_and_show_prints_it() {
    let (place, folder) = folder();
    fleet(place.path(), 6, &[(2, 0.5)]);
    let out = place.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let name = |end: &str| out.join(format!("fleet{end}")).to_str().unwrap().to_owned();
    let files = [name(".json"), name(".html"), name(".csv"), name(".md")];
    let mut arguments = vec![folder.as_str()];
    for file in &files {
        arguments.extend(["-o", file]);
    }
    merge(&arguments).exits(1);
    for file in &files[..2] {
        run(["show", file]).exits(0).shows("db02").fits_80_columns();
    }
    let csv = std::fs::read_to_string(&files[2]).unwrap();
    assert_eq!(csv.lines().count(), 1 + 6 * 2, "{csv}");
    let fresh = record(40, 0.5);
    let path = out.join("new.json");
    write(&path, &fresh);
    let new = path.to_str().unwrap();
    merge(&["--reference", &files[0], new])
        .exits(1)
        .shows("scontrol update NodeName=db40");
    write(&path, &record(41, healthy(41)));
    merge(&["--reference", &files[0], new]).exits(0);
    merge(&["--reference", new, new]).exits(2);
}

#[test]
fn merge_names_what_is_missing_truncated_and_foreign() {
    let (place, folder) = folder();
    let paths = fleet(place.path(), 5, &[]);
    let hosts = place.path().join("hosts");
    std::fs::write(
        &hosts,
        "db00 slots=2\ndb01\ndb02.example.org # a comment\ndb03\ndb04\n",
    )
    .unwrap();
    let hosts_file = hosts.to_str().unwrap();
    merge(&[&folder, "--expect", hosts_file]).exits(0);
    std::fs::write(&hosts, "db00\ndb77\n").unwrap();
    merge(&[&folder, "--expect", hosts_file])
        .exits(1)
        .shows("db77");
    merge(&[&folder, "--expect", "6"])
        .exits(1)
        .shows("1 of 6 hosts");
    std::fs::write(
        place.path().join("package.json"),
        "{\"name\": \"a package\"}",
    )
    .unwrap();
    merge(&[&folder]).exits(0).shows("package.json");
    let text = std::fs::read_to_string(&paths[4]).unwrap();
    std::fs::write(&paths[4], &text[..text.len() / 2]).unwrap();
    let json = merge(&[&folder, "--json"]).exits(1).json();
    assert_eq!(names(&json, "alike").len(), 4);
    assert_eq!(json["refused"].as_array().unwrap().len(), 2);
    std::fs::write(&paths[4], "").unwrap();
    merge(&[&folder]).exits(1).shows("db04.json");
    merge(&[hosts_file]).exits(2);
    merge(&["/nonexistent/a.json"]).exits(2);
    merge(&[]).exits(2);
}

#[test]
fn merge_finds_no_host_alike_that_measured_nothing_or_half() {
    let (place, folder) = folder();
    fleet(place.path(), 5, &[]);
    let path = place.path().join("db04.json");
    let whole = record(4, healthy(4));
    let mut partial = whole.clone();
    partial.partial = true;
    partial.ended_early = Some("no answer for 30 s".to_owned());
    partial.measurements.truncate(1);
    write(&path, &partial);
    merge(&[&folder]).exits(5).shows("db04");
    partial.measurements.clear();
    write(&path, &partial);
    let json = merge(&[&folder, "--json", "--expect", "5"]).exits(1).json();
    assert_eq!(names(&json, "alike").len(), 4);
    assert_eq!(json["missing"].as_array().unwrap().len(), 1);
    assert_eq!(json["missing"][0]["name"], "db04");
    // Of nothing but such runs, the answer is theirs.
    merge(&[path.to_str().unwrap()]).exits(1).shows("db04");
}

/// A pipe without a writer is a record that did not come, and the others are judged.
#[test]
fn merge_waits_for_no_pipe_without_a_writer() {
    let (place, folder) = folder();
    fleet(place.path(), 4, &[]);
    let pipe = place.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
    let pipe = pipe.to_str().unwrap();
    let json = merge(&[pipe, &folder, "--json"]).exits(1).json();
    assert_eq!(names(&json, "alike").len(), 4);
    assert_eq!(json["refused"].as_array().unwrap().len(), 1);
}

#[test]
fn merge_tells_rows_of_equal_hosts_apart() {
    let (place, folder) = folder();
    for number in 0..8 {
        let speed = if number == 5 { 0.5 } else { healthy(number) };
        let mut record = record(number, speed);
        record.host.name = "pod".to_owned();
        record.host.rank = Some(Rank {
            rank: number as u32,
            size: Some(9),
        });
        write(&place.path().join(format!("{number}.json")), &record);
    }
    let json = merge(&[&folder, "--json", "--expect", "9"]).exits(1).json();
    assert_eq!(names(&json, "slower"), ["pod #5"]);
    assert_eq!(json["missing"][0]["name"], "rank 8");
}

#[test]
fn merge_reads_documents_one_after_the_other() {
    let mut text = String::from("pdsh: a note\n");
    for number in 0..4 {
        let record = record(number, healthy(number));
        text.push_str(&match number % 2 {
            0 => serde_json::to_string(&record).unwrap(),
            _ => serde_json::to_string_pretty(&record).unwrap(),
        });
        text.push('\n');
    }
    let json = merge_stream(&text, &["--json"]).exits(0).json();
    assert_eq!(names(&json, "alike").len(), 4);
}

/// What `--pieces` prints of a short run on a file.
fn pieces(place: &TempDir) -> String {
    let file = place.path().join("data");
    random_file(&file, 4 << 20);
    let ran = check(&file, &["--time", "1s", "--pieces", "--no-history"]);
    ran.exits(0);
    ran.out.clone()
}

#[test]
fn pieces_are_short_lines_that_begin_with_a_hello() {
    let place = place();
    let text = pieces(&place);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() > 3);
    for line in &lines {
        assert!(
            line.starts_with("diskproof1 ") && line.len() < 900,
            "{line}"
        );
    }
    assert!(lines[0].contains(" 0001/0001 "));
    let whole = merge_stream(&text, &["--json"]).exits(5).json();
    assert_eq!(whole["rows"].as_array().unwrap().len(), 1);
    // A rank that dies leaves its hello.
    let hello = merge_stream(lines[0], &["--json"]).exits(1).json();
    assert_eq!(hello["missing"].as_array().unwrap().len(), 1);
    // A line that was lost.
    let cut = [&lines[..3], &lines[4..]].concat().join("\n");
    let json = merge_stream(&cut, &["--json"]).exits(1).json();
    assert_eq!(json["refused"].as_array().unwrap().len(), 1);
}

#[test]
fn folder_output_names_each_record() {
    let place = place();
    let file = place.path().join("data");
    random_file(&file, 4 << 20);
    let results = place.path().join("results");
    std::fs::create_dir(&results).unwrap();
    let folder = format!("{}/", results.to_str().unwrap());
    for rank in ["0", "1"] {
        let arguments = ["check", file.to_str().unwrap(), "--time", "1s"];
        let mut command = program(arguments);
        command
            .args(["-o", &folder])
            .env("PMI_RANK", rank)
            .env("PMI_SIZE", "2");
        Ran::of(command).exits(0);
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(&results)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert_eq!(files.len(), 2, "{files:?}");
    let record = saved_record(&files[1]);
    let end = format!("-1-{}.json", record.run_id);
    assert!(files[1].to_str().unwrap().ends_with(&end), "{files:?}");
    assert_eq!(
        record.host.rank,
        Some(Rank {
            rank: 1,
            size: Some(2)
        })
    );
    let missing = format!("{}/none/", place.path().to_str().unwrap());
    check(&file, &["--quick", "-o", &missing]).exits(2);
}

/// Hydra starts ranks without a daemon, so this takes no longer than the runs.
#[test]
fn pieces_survive_hydra() {
    needs!("mpiexec.hydra");
    let place = place();
    let file = place.path().join("data");
    random_file(&file, 4 << 20);
    let binary = crate::program::program_path();
    let target = file.to_str().unwrap();
    let mut command = Command::new("mpiexec.hydra");
    command
        .args(["-n", "3", "-launcher", "fork", &binary, "check", target])
        .args(["--time", "1s", "--pieces", "--no-history", "-q"])
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let json = merge_stream(&text, &["--json", "--expect", "3"]).json();
    assert_eq!(json["rows"].as_array().unwrap().len(), 3, "{text}");
    assert!(json.get("missing").is_none() && json.get("refused").is_none());
}

/// clush's worker `exec` starts the command here, once for each name; -b prints each output whole.
#[test]
fn pieces_survive_clush() {
    needs!("clush");
    let place = place();
    let target = targets_of_hosts(&place);
    let command = format!(
        "{} check {target}/%h --time 1s --pieces --no-history -q",
        crate::program::program_path()
    );
    let mut clush = Command::new("clush");
    clush
        .args(["-b", "-R", "exec", "-w", "a,b,c", &command])
        .env("HOME", place.path())
        .stdin(Stdio::null());
    assert_three_whole_records(&mut clush);
}

/// Ansible with local connections, in both of its outputs; without -o it appends stderr to stdout.
#[test]
fn pieces_survive_ansible() {
    needs!("ansible");
    let place = place();
    let target = targets_of_hosts(&place);
    let inventory = place.path().join("inventory");
    std::fs::write(&inventory, "a\nb\nc\n").unwrap();
    let command = format!(
        "{} check {target}/{{{{ inventory_hostname }}}} --time 1s --pieces --no-history",
        crate::program::program_path()
    );
    for output in [["-f", "3"].as_slice(), &["-f", "3", "-o"]] {
        let mut ansible = Command::new("ansible");
        ansible
            .args(["all", "-c", "local", "-i", inventory.to_str().unwrap()])
            .args(["-e", "ansible_python_interpreter=auto_silent"])
            .args(output)
            .args(["-a", &command])
            .env("HOME", place.path())
            .env("ANSIBLE_NOCOLOR", "1")
            .stdin(Stdio::null());
        assert_three_whole_records(&mut ansible);
    }
}

/// The folder of the files `a`, `b` and `c`, which stand for the disks of three hosts.
fn targets_of_hosts(place: &TempDir) -> String {
    for name in ["a", "b", "c"] {
        random_file(&place.path().join(name), 4 << 20);
    }
    place.path().to_str().unwrap().to_owned()
}

fn assert_three_whole_records(launcher: &mut Command) {
    let output = launcher.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let json = merge_stream(&text, &["--json"]).json();
    assert_eq!(json["rows"].as_array().unwrap().len(), 3, "{text} {stderr}");
    assert!(json.get("missing").is_none() && json.get("refused").is_none());
}

/// pdsh's module `exec` starts the command here, once for each name, without a daemon.
#[test]
fn pieces_survive_pdsh() {
    needs!("pdsh");
    let place = place();
    for name in ["a", "b", "c"] {
        random_file(&place.path().join(name), 4 << 20);
    }
    let binary = crate::program::program_path();
    let target = format!("{}/%h", place.path().to_str().unwrap());
    let mut command = Command::new("pdsh");
    command
        .args(["-R", "exec", "-w", "a,b,c", &binary, "check", &target])
        .args(["--time", "1s", "--pieces", "--no-history", "-q"])
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let json = merge_stream(&text, &["--json"]).json();
    assert_eq!(json["rows"].as_array().unwrap().len(), 3, "{text}");
    assert!(json.get("missing").is_none() && json.get("refused").is_none());
}
