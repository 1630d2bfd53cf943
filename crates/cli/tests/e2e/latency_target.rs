//! `run --latency-target` and fio jobs with `latency_target`, on a disk with known properties.

use crate::program::{diskproof, names, needs, run};
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::record::Record;
use diskproof_simdisk::SimDisk;
use diskproof_simdisk::spec::parse;
use diskproof_simdisk::testbed::place;
use std::io::Write as _;

/// Four requests at a time, 2 ms each: half of them are within 11.4 ms up to a depth of 22.
const MODEL: &str = "read-latency=2ms,channels=4";
const DEPTH_TRUE: u32 = 22;

fn answer(record: &Record) -> &LatencySearch {
    record.latency_search().unwrap()
}

#[test]
fn the_greatest_depth_within_a_latency_is_found() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(MODEL).unwrap(), 64 << 20, &disk).unwrap();
    // Of blocks that were never written no depth is named.
    let mut written = std::fs::File::options().write(true).open(&disk).unwrap();
    written.write_all(&vec![0x5A; 64 << 20]).unwrap();
    drop(written);
    let target = disk.to_str().unwrap();
    let ran = diskproof!(
        "run {target} --bs 4k --depth 64 --latency-target 11.4ms --latency-percentile 50 \
         --latency-window 500ms --json"
    );
    // No counters show what a filesystem of a process does: the answer is not the disk's for sure.
    ran.exits(5);
    let record = ran.record();
    let found = answer(&record);
    // No machine serves requests faster than the disk does; a slow one serves them later.
    let depth = found.depth.unwrap();
    assert!((2..=DEPTH_TRUE).contains(&depth), "{found:?}");
    assert!(found.is_settled && found.depth_max == 64, "{found:?}");
    let measured: Vec<(&str, u32)> = record
        .measurements
        .iter()
        .map(|m| (m.data.workload.name.as_str(), m.data.workload.depth))
        .collect();
    assert!(
        measured.contains(&(&format!("randread-d{depth}"), depth)),
        "{measured:?}"
    );
    let miss = found.first_miss().unwrap();
    assert!(
        miss.depth > depth && miss.late * 2 > miss.requests,
        "{found:?}"
    );
    assert!(found.objection.is_some());
    let headline = &record.verdict.as_ref().unwrap().headline;
    assert!(headline.ends_with("(unproven)."), "{headline}");
}

#[test]
fn jobs_of_fio_find_the_same_depth() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(MODEL).unwrap(), 64 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    let as_fio = |form: &str| {
        let ran = run([
            "as",
            "fio",
            "--name=a",
            "--rw=randread",
            "--bs=4k",
            "--direct=1",
            "--ioengine=libaio",
            "--iodepth=32",
            "--latency_target=11400",
            "--latency_window=500000",
            "--latency_percentile=50",
            &format!("--filename={target}"),
            &format!("--output-format={form}"),
        ]);
        ran.exits(0);
        ran.out
    };
    let text = as_fio("normal");
    let line = text
        .lines()
        .find(|line| line.contains("latency   :"))
        .unwrap();
    let depth = line
        .strip_prefix("     latency   : target=11400000, window=500000, percentile=50.00%, depth=")
        .and_then(|depth| depth.parse().ok());
    assert!(
        depth.is_some_and(|depth| (2..=DEPTH_TRUE).contains(&depth)),
        "{line}"
    );
    let json: serde_json::Value = serde_json::from_str(&as_fio("json")).unwrap();
    let job = &json["jobs"][0];
    assert_eq!(job["latency_target"].as_u64(), Some(11_400_000));
    assert_eq!(job["latency_window"].as_u64(), Some(500_000));
    assert_eq!(job["latency_percentile"].as_f64(), Some(50.0));
    let depth = job["latency_depth"].as_u64().unwrap();
    assert!((2..=u64::from(DEPTH_TRUE)).contains(&depth), "{depth}");
    assert!(job["read"]["total_ios"].as_u64().unwrap() > 0);
}

#[test]
fn a_search_in_a_directory_leaves_nothing_and_says_where_no_depth_does() {
    let here = place();
    let target = here.path().to_str().unwrap();
    let flags = ["--size", "1M", "--depth", "8", "--latency-window", "100ms"];
    // No disk answers within a nanosecond.
    let ran = run(["run", target, "--latency-target", "1ns"]
        .iter()
        .chain(&flags));
    ran.exits(0).shows("99 % of the requests within 1 ns");
    ran.shows_not("not run:");
    assert_eq!(names(here.path()), [] as [&str; 0]);
    // And all within an hour.
    let ran = run(["run", target, "--latency-target", "3600s", "--json"]
        .iter()
        .chain(&flags));
    let record = ran.record();
    let found = answer(&record);
    assert_eq!(
        (found.depth, found.is_settled, found.depth_max),
        (Some(8), true, 8)
    );
    let depths: Vec<u32> = found.trials.iter().map(|trial| trial.depth).collect();
    assert_eq!(depths, [1, 2, 4, 8]);
}

#[test]
fn a_search_excludes_what_contradicts_it() {
    let here = place();
    let target = here.path().to_str().unwrap();
    for (flags, part) in [
        (
            "--latency-window 2s",
            "--latency-window needs --latency-target",
        ),
        ("--latency-target 0ms", "--latency-target 0"),
        (
            "--latency-target 5ms --latency-window 1ms",
            "--latency-window 1",
        ),
        (
            "--latency-target 5ms --rate 100",
            "--latency-target excludes --rate",
        ),
        (
            "--latency-target 5ms --ops 100",
            "--latency-target excludes --ops",
        ),
        ("--latency-target 5ms --time 1s", "window"),
        ("--latency-target 5ms --depth 1,2", "other workloads"),
        (&format!("--latency-target 5ms {target}"), "named twice"),
        ("--latency-target 5ms --latency-percentile 0", "1 to 100"),
    ] {
        let ran = diskproof!("run {target} {flags}");
        ran.exits(2).shows_nothing().tells(part);
    }
    let profile = here.path().join("profile.toml");
    let text = "[[workload]]\nname = \"a\"\nlatency-target = \"5ms\"\n[[limit]]\nname = \"a\"\n\
                source = \"a test\"\nexpect = \"a.iops>=1\"\n";
    std::fs::write(&profile, text).unwrap();
    let ran = diskproof!("check {target} --for {}", profile.display());
    ran.exits(2).tells("fixed depth").tells("'a.read.p99<=5ms'");
}
