//! Input that users of other tools type: several values for a flag, device names, flags of fio,
//! short flags and thresholds.

use crate::program::{self, Ran, SHORT, argv, names, needs, program};
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{Loop, TempDir, can_run, place};
use diskproof_simdisk::{SimDisk, spec};
use std::path::Path;

const SHORT_RUN: [&str; 5] = ["--size", "16M", "--ops", "200", "--json"];

/// The program with these words, standing in a directory.
fn run_in(directory: &Path, words: &[&str]) -> Ran {
    let mut command = program(words);
    command.current_dir(directory).output().unwrap().into()
}

fn folder() -> (TempDir, std::path::PathBuf) {
    let place = place();
    let path = place.path().to_owned();
    (place, path)
}

fn workload_names(record: &Record) -> Vec<&str> {
    let measurements = record.measurements.iter();
    measurements
        .map(|m| m.data.workload.name.as_str())
        .collect()
}

#[test]
fn several_values_measure_a_workload_for_each_combination() {
    let (_place, here) = folder();
    let words = ["run", ".", "--depth", "1,4", "--bs", "4k,64k", "--quiet"];
    let ran = run_in(&here, &[&words[..], &SHORT_RUN].concat());
    ran.exits(0);
    let record = ran.record();
    assert_eq!(
        workload_names(&record),
        argv("randread-bs4k-d1 randread-bs4k-d4 randread-bs64k-d1 randread-bs64k-d4")
    );
    let shapes = record.measurements.iter();
    let shapes: Vec<(u32, u32)> = shapes
        .map(|m| (m.data.workload.block_bytes, m.data.workload.depth))
        .collect();
    assert_eq!(shapes, [(4096, 1), (4096, 4), (65536, 1), (65536, 4)]);
}

#[test]
fn flags_of_fio_without_effect_are_accepted_with_one_note() {
    let (_place, here) = folder();
    let words = "run --time_based --group_reporting --direct=1 --filename=. --rw=randread \
                 --iodepth=2 --numjobs=1";
    let words = argv(words);
    let ran = run_in(&here, &[&words[..], &SHORT].concat());
    ran.exits(0);
    let notes = ran.err.matches("change nothing").count();
    assert_eq!(notes, 1, "{}", ran.err);
    let ran = run_in(&here, &["run", "--direct=0", "--dry-run"]);
    ran.exits(2).tells("--buffered");
    let ran = run_in(&here, &["run", "--filename=a", "b", "--dry-run"]);
    ran.exits(2).tells("both name the target");
}

#[test]
fn device_names_stand_for_devices_unless_a_file_has_the_name() {
    needs!("losetup");
    let (_place, here) = folder();
    let device = Loop::sparse(&here.join("image"), 64 << 20, &["--direct-io=on"]);
    let (name, node) = (device.name(), device.node.display().to_string());
    let ran = run_in(&here, &["check", name, "--dry-run"]);
    ran.exits(0).tells(&format!("is {node}")).shows(&node);
    // The gate decides on the device: it is not written without its name.
    let ran = run_in(&here, &["run", name, "--rw", "randwrite", "--dry-run"]);
    ran.exits(3);
    std::fs::write(here.join(name), [0; 8192]).unwrap();
    let ran = run_in(&here, &["check", name, "--dry-run"]);
    ran.tells_not("the target is").shows_not(&node);
}

#[test]
fn sectors_of_512_bytes_are_measured_over_fuse() {
    let test = "sectors_of_512_bytes_are_measured_over_fuse";
    if !can_run(test, &["losetup"]) || !Path::new("/dev/fuse").exists() {
        return;
    }
    let (_place, here) = folder();
    let model = spec::parse("latency=100us,channels=4").unwrap();
    let disk = SimDisk::serve(model, 64 << 20, &here.join("disk")).unwrap();
    let path = disk.path().to_str().unwrap();
    let words = ["run", path, "--bs", "512", "--ops", "200", "--json"];
    let ran = program::run(words);
    ran.exits(0);
    let record = ran.record();
    let m = &record.measurements[0];
    assert_eq!((m.data.workload.block_bytes, m.errors_total()), (512, 0));
}

#[test]
fn only_and_skip_select_workloads() {
    let (_place, here) = folder();
    let only = argv("check --only random-read-d1,commit-fdatasync --json");
    let ran = run_in(&here, &[&only[..], &SHORT].concat());
    ran.exits(0);
    let record = ran.record();
    assert_eq!(
        workload_names(&record),
        ["random-read-d1", "commit-fdatasync"]
    );
    // Both share the time of all.
    for workload in record.plan.workloads() {
        let planned_ns = workload.stop.time_ns.unwrap() + workload.warmup_ns;
        let name = &workload.name;
        assert!(
            planned_ns * 5 > 2 * record.plan.time_limit_ns.unwrap(),
            "{name}: {planned_ns}"
        );
    }
    let ran = run_in(&here, &["check", "--skip", "random-write-d32", "--dry-run"]);
    ran.exits(0).shows("random-write-d32: --skip");
    let ran = run_in(&here, &["check", "--only", "random-reads", "--dry-run"]);
    ran.exits(2).tells("random-read-d32");
    let nothing = ["--only", "random-write-d32", "--read-only", "--dry-run"];
    let ran = run_in(&here, &[&["check"][..], &nothing].concat());
    ran.exits(2).tells("nothing is left");
}

#[test]
fn json_on_stdout_and_pages_have_short_forms() {
    let (_place, here) = folder();
    let words = ["run", "-q", "-o", "-", "--html", "page.html"];
    let ran = run_in(&here, &[&words[..], &SHORT_RUN[..4]].concat());
    ran.exits(0).tells_nothing();
    assert_eq!(workload_names(&ran.record()), ["randread"]);
    assert_eq!(names(&here), ["page.html"]);
    let ran = run_in(&here, &["run", "--html", "page", "--dry-run"]);
    ran.exits(2).tells("page.html");
    let ran = run_in(&here, &[&["run", "-v"], &SHORT_RUN[..4]].concat());
    ran.shows("fio --name=randread");
}

#[test]
fn help_and_list_are_verbs() {
    let (_place, here) = folder();
    let ran = run_in(&here, &["help"]);
    ran.exits(0).shows("check");
    let ran = run_in(&here, &["help", "run"]);
    ran.shows("--depth");
    let ran = run_in(&here, &["list", "--limit", "1"]);
    ran.exits(0);
}

#[test]
fn dry_run_rejects_what_the_run_would_reject() {
    let (_place, here) = folder();
    std::fs::write(here.join("data"), vec![0; 1 << 20]).unwrap();
    for (words, code, why) in [
        (
            &["-o", "/nonexistent/a.json"][..],
            2,
            "mkdir -p /nonexistent",
        ),
        (&["-o", "a.docx"], 2, "unknown format"),
        (&["-o", "a.json", "-o", "./a.json"], 2, "same file"),
    ] {
        let ran = run_in(&here, &[&["check", "--dry-run"], words].concat());
        ran.exits(code).tells(why);
    }
    std::fs::write(here.join("data.json"), vec![0; 1 << 20]).unwrap();
    let itself = ["check", "data.json", "-o", "data.json", "--dry-run"];
    let ran = run_in(&here, &itself);
    ran.exits(2);
    assert_eq!(names(&here), ["data", "data.json"], "nothing is left");
}

#[test]
fn undecided_expectations_have_an_exit_code_of_their_own() {
    let (_place, here) = folder();
    // Ten operations leave no ten samples beyond any percentile.
    let base = ["run", "--size", "16M", "--ops", "10", "--quiet"];
    let expect = ["--expect", "randread.p99<=100s"];
    for (flags, code) in [
        (&[][..], 5),
        (&["--undecided", "pass"], 0),
        (&["--undecided", "fail"], 1),
        (&["--expect", "randread.max<=1ns"], 1),
    ] {
        let ran = run_in(&here, &[&base[..], &expect, flags].concat());
        ran.exits(code);
        let line = "UNDECIDED  randread.p99<=100s";
        ran.shows(line);
    }
}

#[test]
fn findings_may_be_an_expectation() {
    let (_place, here) = folder();
    let base = ["run", "--size", "16M", "--ops", "100", "--quiet"];
    let ran = run_in(&here, &[&base[..], &["--expect", "findings<=100"]].concat());
    ran.exits(0).shows("met");
}

#[test]
fn page_of_the_documentation_is_a_topic_of_help() {
    let (_place, here) = folder();
    let page = include_str!("../../../../docs/fitness.md");
    for topic in ["fitness", "docs/fitness.md"] {
        let ran = run_in(&here, &["help", topic]);
        ran.exits(0).tells_nothing();
        assert_eq!(ran.out, page, "{topic}");
    }
    let ran = run_in(&here, &["help", "nonsense"]);
    ran.exits(2).shows_nothing().tells("fitness");
    // A plan that help prints is one that runs.
    let plan = run_in(&here, &["help", "postgresql-cookbook.toml"]).out;
    std::fs::write(here.join("cookbook.toml"), plan).unwrap();
    let ran = run_in(&here, &["run", "cookbook.toml", ".", "--dry-run"]);
    ran.exits(0);
}

#[test]
fn run_without_words_starts_nothing() {
    let (_place, here) = folder();
    let ran = run_in(&here, &["run"]);
    ran.exits(2).shows_nothing().tells("diskproof run .");
    let ran = run_in(&here, &["run", "--json", "--no-history"]);
    ran.exits(2).shows_nothing();
    assert_eq!(names(&here), [""; 0]);
    let ran = run_in(&here, &["run", "--dry-run"]);
    ran.exits(0);
}

#[test]
fn folder_never_hides_a_profile() {
    let (_place, here) = folder();
    std::fs::create_dir(here.join("pg")).unwrap();
    let ran = run_in(&here, &["check", ".", "--for", "pg", "--dry-run"]);
    ran.exits(0).shows("postgresql");
}

#[test]
fn document_in_the_place_of_a_target_is_refused() {
    let (_place, here) = folder();
    std::fs::write(here.join("f.json"), "{\"fio version\" : \"fio-3.39\"}").unwrap();
    std::fs::write(here.join("j.fio"), "[global]\n").unwrap();
    for words in [
        &["run", "f.json", "."][..],
        &["run", ".", "f.json", "--time", "1s"],
        &["check", "f.json"],
        &["ping", "j.fio"],
        &["run", ".", "--overwrite", "f.json", "--rw", "write"],
    ] {
        let ran = run_in(&here, words);
        ran.exits(2).shows_nothing().tells("is not a target");
    }
}

#[test]
fn words_for_flags_lead_to_flags() {
    let (_place, here) = folder();
    for (words, part) in [
        (&["check", "--duration", "5s"][..], "--time"),
        (&["check", "--csv"], "-o FILE"),
        (&["check", "--junit", "x.xml"], "-o FILE"),
        (&["check", "--force"], "--overwrite"),
        (&["check", "--every", "1h"], "diskproof help monitoring"),
        (&["sweep", "--depth", "1-64"], "1,2,4,8,16,32,64"),
        (&["run", ".", "--depth", "1-8"], "1,2,4,8"),
        (&["sweep", "--bs", "4k-32k"], "4k,8k,16k,32k"),
        (&["history", "--format", "json"], "--json"),
        (
            &["check", "--expect", "iops>1000"],
            "random-read-d32.iops>1000",
        ),
    ] {
        let ran = run_in(&here, words);
        ran.exits(2).shows_nothing().tells(part);
        assert!(!ran.err.contains("as a value"), "{}", ran.err);
        assert!(!ran.err.contains("--quiet"), "{}", ran.err);
    }
}
