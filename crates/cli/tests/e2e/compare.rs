//! `compare`: on two disks that differ by a known share, measured in virtual time by the real
//! pipeline, does it find what is true and never the reverse; and the command as its users call it.

use crate::program::{Ran, Unwatched, diskproof, run};
use diskproof_analysis::compare::{MARGIN, Question, Run, RunGroup, compare};
use diskproof_analysis::judge::{RunFacts, RunVariation, judge};
use diskproof_engine::{FakeDisk, simulate};
use diskproof_model::comparison::{Candidate, Comparison, Verdict};
use diskproof_model::data::RunData;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Plan, Stop, Workload};
use diskproof_model::record::{ClockFacts, Record, Tool};
use diskproof_model::target::{HostFacts, TargetIdentity, TargetKind};
use diskproof_report::style::{Color, Style};
use diskproof_report::terminal::{MetricDetail, write_comparison};
use diskproof_simdisk::testbed::place;
use std::collections::BTreeMap;
use std::path::Path;

fn tool() -> Tool {
    Tool {
        name: "diskproof".to_owned(),
        version: "0.0.0".to_owned(),
    }
}

fn workload(name: &str, depth: u32, seconds: u64) -> Workload {
    let stop = Stop {
        time_ns: Some(seconds * 1_000_000_000),
        ..Stop::default()
    };
    Workload {
        depth,
        stop,
        warmup_ns: 100_000_000,
        ..Workload::named(name)
    }
}

/// Four requests at a time, each 1.5 ms and up to as long again at speed 1.
fn disk(speed: f64) -> FakeDisk {
    let service_ns = (1_500_000.0 / speed) as u64;
    FakeDisk {
        service_ns,
        jitter_ns: service_ns,
        channels: 4,
        size_bytes: 1 << 30,
    }
}

/// What a run of these workloads gives on a disk of this speed.
fn record(workloads: Vec<Workload>, speed: f64, seed: u64) -> Record {
    let simulated = |w| {
        simulate(
            w,
            disk(speed),
            seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            &mut Unwatched,
        )
        .unwrap()
    };
    let measurements: Vec<_> = workloads.iter().map(simulated).collect();
    let plan = Plan {
        seed,
        targets: vec!["/data".to_owned()],
        workloads,
        ..Plan::of("run", Vec::new())
    };
    let facts = RunFacts {
        tool: tool(),
        run_id: format!("{:032x}", seed * 1000 + (speed * 100.0) as u64),
        started: "2026-11-20T10:00:00Z".to_owned(),
        partial: false,
        ended_early: None,
        stalled: None,
        note: None,
        host: HostFacts {
            name: "db1".to_owned(),
            kernel: "6.18.0".to_owned(),
            ..HostFacts::default()
        },
        clock: ClockFacts {
            source: "virtual".to_owned(),
            resolution_ns: 1,
            cost_ns: 0.0,
        },
        plan,
        targets: vec![TargetIdentity {
            path: "/data".to_owned(),
            kind: TargetKind::Directory,
            size_bytes: 0,
            free_bytes: None,
            device: "0:0".to_owned(),
            inode: 0,
            filesystem: None,
            layers: Vec::new(),
            unresolved: None,
        }],
        health: Vec::new(),
        variation: RunVariation::Earlier(Vec::new()),
    };
    judge(facts, &RunData::of(measurements), &[])
}

fn held(a: &Record, b: &Record) -> Comparison {
    let group = |label: &str, record| RunGroup {
        label: label.to_owned(),
        runs: vec![Run {
            name: label.to_owned(),
            record,
        }],
    };
    let limits = Vec::new();
    let question = Question {
        tool: tool(),
        margin: MARGIN,
        baseline: group("before.json", a),
        candidates: vec![group("after.json", b)],
        history: Vec::new(),
        limits,
    };
    compare(&question).unwrap()
}

#[test]
fn what_is_true_is_found_in_95_of_100_pairs_and_the_reverse_never() {
    const PAIRS: u64 = 100;
    // Depth 1 gives some 440 requests a second, depth 8 some 1770.
    let record = |speed, seed| {
        record(
            vec![workload("d1", 1, 20), workload("d8", 8, 8)],
            speed,
            seed,
        )
    };
    let baselines: Vec<Record> = (0..PAIRS).map(|seed| record(1.0, seed)).collect();
    for (speed, truth, reverse) in [
        (1.0, Verdict::Same, None),
        (1.03, Verdict::FasterOnce, Some(Verdict::SlowerOnce)),
        (1.1, Verdict::FasterOnce, Some(Verdict::SlowerOnce)),
    ] {
        let mut counts: BTreeMap<(String, Verdict), u64> = BTreeMap::new();
        for (a, seed) in baselines.iter().zip(1000..) {
            let Candidate { metrics, .. } = held(a, &record(speed, seed)).candidates.remove(0);
            metrics
                .into_iter()
                .for_each(|m| *counts.entry((m.metric, m.verdict)).or_default() += 1);
        }
        for rate in ["d1.iops", "d8.iops"] {
            let found = counts.get(&(rate.to_owned(), truth)).copied().unwrap_or(0);
            assert!(
                found >= 95,
                "{speed}: {found} of {PAIRS} {truth:?} in {rate}: {counts:#?}"
            );
        }
        // In no pair and no metric, not even one percentile.
        assert!(
            counts.keys().all(|(_, verdict)| Some(*verdict) != reverse),
            "{speed}: {counts:#?}"
        );
        let wrong: u64 = counts
            .iter()
            .filter(|((_, v), _)| matches!(v, Verdict::FasterOnce | Verdict::SlowerOnce))
            .map(|(_, n)| n)
            .sum();
        assert!(truth != Verdict::Same || wrong <= 5, "{counts:#?}");
    }
}

/// A comparison with every verdict.
fn varied() -> Comparison {
    let workloads = || {
        vec![
            workload("random-read-d1", 1, 6),
            workload("random-read-d8", 8, 6),
            workload("random-read-d4", 4, 6),
        ]
    };
    let (a, mut b) = (record(workloads(), 1.0, 1), record(workloads(), 1.06, 2));
    b.measurements[1].workload.depth = 16;
    b.measurements[2] = record(workloads(), 0.98, 3).measurements.remove(2);
    (b.host.name, b.host.kernel, b.note) = (
        "db2".to_owned(),
        "6.19.0".to_owned(),
        Some("new \u{1b}[31mkernel".to_owned()),
    );
    held(&a, &b)
}

fn page(comparison: &Comparison, width: usize) -> String {
    let mut out = Vec::new();
    write_comparison(
        comparison,
        MetricDetail::Independent,
        &Style {
            width,
            color: Color::Plain,
        },
        &mut out,
    )
    .unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn page_of_a_comparison() {
    insta::assert_snapshot!(page(&varied(), 80));
}

#[test]
fn pages_keep_to_their_width_and_never_act_on_the_terminal() {
    for width in [60, 80, 120] {
        let page = page(&varied(), width);
        assert!(
            page.lines().all(|line| line.chars().count() <= width),
            "{width}:\n{page}"
        );
        assert!(!page.contains('\u{1b}'), "{page}");
    }
}

/// Saves records for the program to read.
fn save(place: &Path, name: &str, record: &Record) -> String {
    let path = place.join(name);
    std::fs::write(&path, serde_json::to_string(record).unwrap()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// `compare` with its own history, which is empty.
fn compared(place: &Path, arguments: &[&str]) -> Ran {
    let history = place.join("history.db");
    run(["compare", "--history", history.to_str().unwrap()]
        .iter()
        .chain(arguments))
}

/// Saves three runs of a disk and three of one that is slower by a tenth.
fn save_two(place: &Path) -> [String; 2] {
    [("a", 1.0), ("b", 0.9)].map(|(name, speed)| {
        let files = (1..=3).map(|seed| {
            let record = record(vec![workload("d8", 8, 3)], speed, seed);
            save(place, &format!("{name}{seed}.json"), &record)
        });
        files.collect::<Vec<_>>().join(",")
    })
}

/// The first of the runs of a side.
fn first(side: &str) -> &str {
    side.split(',').next().unwrap()
}

#[test]
fn compare_decides_a_pair_by_earlier_runs_of_the_history() {
    let place = place();
    let [a, slower] = save_two(place.path());
    let pair = [
        first(&a),
        first(&slower),
        "--fail-on",
        "d8.iops<-5%",
        "--fail-on-undecided",
    ];
    let once = compared(place.path(), &pair);
    once.exits(5);
    once.shows_first("B is slower-once in d8.iops.")
        .shows("about 3 runs per side")
        .tells("in one run per side");
    compared(place.path(), &pair[..4]).exits(0);

    let history = place.path().join("history.db");
    for seed in 11..15 {
        let earlier = record(vec![workload("d8", 8, 3)], 1.0, seed);
        let file = save(place.path(), "earlier.json", &earlier);
        let ran = diskproof!("history import {file} --history {}", history.display());
        ran.exits(0);
    }
    let decided = compared(place.path(), &pair);
    decided.exits(1).shows_first("B is worse in d8.iops.");
    let json = compared(place.path(), &[first(&a), first(&slower), "--json"]);
    let comparison: Comparison = serde_json::from_str(&json.out).unwrap();
    let variation = comparison.candidates[0].metrics[0].variation.unwrap();
    assert_eq!((variation.earlier_runs, variation.freedom), (4, 3.0));
}

#[test]
fn compare_fails_a_build_on_its_conditions() {
    let place = place();
    let [a, slower] = save_two(place.path());
    let ran = compared(place.path(), &[&a, &slower]);
    ran.exits(0).tells_nothing();
    ran.shows_first("B is worse in d8.iops.");

    let exit = |arguments: &[&str]| {
        compared(
            place.path(),
            &[&[a.as_str(), slower.as_str()], arguments].concat(),
        )
        .code
    };
    assert_eq!(exit(&["--fail-on", "d8.iops<-5%"]), Some(1));
    assert_eq!(exit(&["--fail-on", "d8.iops<-15%"]), Some(0));
    assert_eq!(
        exit(&["--fail-on", "d8.iops<-15%", "--fail-on", "d8.p50>5%"]),
        Some(1)
    );
    assert_eq!(
        exit(&["--fail-on", "d9.iops<-5%"]),
        Some(2),
        "a misspelt one must not pass"
    );
    assert_eq!(exit(&["--fail-on", "d8.iops"]), Some(2));
    assert_eq!(
        exit(&["--margin", "15%", "--fail-on", "d8.iops<-5%"]),
        Some(1),
        "the margin is for verdicts"
    );
    assert_eq!(exit(&["--margin", "0%"]), Some(2));
}

#[test]
fn compare_fails_a_build_where_a_condition_is_not_comparable() {
    let place = place();
    let [a, _] = save_two(place.path());
    let a = first(&a);
    let deeper = save(
        place.path(),
        "c.json",
        &record(vec![workload("d8", 4, 3)], 1.0, 3),
    );
    let ran = compared(place.path(), &[a, &deeper, "--fail-on", "d8.iops<-5%"]);
    ran.exits(4).shows("not comparable").tells("depth 8");
}

#[test]
fn compare_writes_one_comparison_to_stdout_and_file() {
    let place = place();
    let sides = save_two(place.path());
    let [a, slower] = [first(&sides[0]), first(&sides[1])];
    let file = place.path().join("out.json");
    let ran = compared(
        place.path(),
        &[
            a,
            &format!("{slower},{slower}"),
            a,
            "--json",
            "-o",
            file.to_str().unwrap(),
        ],
    );
    let comparison: Comparison = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        serde_json::from_str::<Comparison>(&std::fs::read_to_string(&file).unwrap()).unwrap(),
        comparison
    );
    assert_eq!(
        comparison
            .candidates
            .iter()
            .map(|c| c.side.runs.len())
            .collect::<Vec<_>>(),
        [2, 1]
    );
    compared(place.path(), &[a, a, "-o", "x.hlog"]).exits(2);
}

#[test]
fn a_page_of_a_comparison_reads_back() {
    let place = place();
    let (a, b) = (
        save(
            place.path(),
            "a.json",
            &record(vec![workload("d8", 8, 1)], 1.0, 1),
        ),
        save(
            place.path(),
            "b.json",
            &record(vec![workload("d8", 8, 1)], 0.8, 2),
        ),
    );
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (page, json, again) = (path("c.html"), path("c.json"), path("again.html"));
    let ran = compared(place.path(), &[&a, &b, "-o", &page, "-o", &json]);
    ran.exits(0);
    for file in [&page, &json] {
        let shown = run(["show", file]);
        assert_eq!(
            (shown.code, &shown.out),
            (Some(0), &ran.out),
            "{file}: {}",
            shown.err
        );
        assert_eq!(
            run(["show", file, "--json"]).out,
            std::fs::read_to_string(&json).unwrap(),
            "{file}"
        );
    }
    run(["show", &json, "-o", &again]).exits(0);
    assert_eq!(
        std::fs::read_to_string(&again).unwrap(),
        std::fs::read_to_string(&page).unwrap()
    );
    std::fs::remove_file(&again).unwrap();
    run(["export", &page, &again]).exits(0);
    assert_eq!(
        std::fs::read_to_string(&again).unwrap(),
        std::fs::read_to_string(&page).unwrap()
    );

    let refused = compared(place.path(), &[&a, &page]);
    refused.exits(2).tells("is a comparison, not a run");
    run(["show", &page, "--commands"]).exits(2);
    run(["export", &page, &path("c.hlog")]).exits(2);
}

#[test]
fn labels_are_sides_of_several_runs() {
    let place = place();
    let import = |label: &str, seeds: std::ops::Range<u64>, speed: f64| {
        for seed in seeds {
            let file = save(
                place.path(),
                "r.json",
                &record(vec![workload("d8", 8, 3)], speed, seed),
            );
            let history = place.path().join("history.db");
            let ran = diskproof!(
                "history import {file} --label {label} --history {}",
                history.display()
            );
            ran.exits(0);
        }
    };
    import("before", 0..4, 1.0);
    import("after", 4..8, 1.1);
    let ran = compared(place.path(), &["before", "after"]);
    ran.shows_first("B is better in d8.iops.")
        .shows("before (A) and after (B)");
    let against_latest = compared(place.path(), &["--baseline", "before", "--json"]);
    let comparison: Comparison = serde_json::from_str(&against_latest.out).unwrap();
    assert_eq!(
        (
            comparison.baseline.runs.len(),
            comparison.candidates[0].side.label.as_str()
        ),
        (4, "latest")
    );
    compared(place.path(), &["--baseline", "before", "nowhere"]).exits(2);
}

#[test]
fn what_is_no_record_is_refused_in_words() {
    let place = place();
    let good = save(
        place.path(),
        "a.json",
        &record(vec![workload("d8", 8, 1)], 1.0, 1),
    );
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for (name, text, says) in [
        ("x.json", "{}", "not a diskproof record"),
        ("y.json", "not JSON", "not a diskproof record"),
        (
            "z.json",
            "{\"schema\":\"diskproof.record/9\"}",
            "diskproof.record/9",
        ),
        (
            "w.json",
            "{\"schema\":\"diskproof.comparison/1\"}",
            "the comparison is damaged",
        ),
        (
            "u.json",
            "{\"schema\":\"diskproof.comparison/2\"}",
            "diskproof.comparison/2",
        ),
        ("v.json", "{\"schema\":\"diskproof.record/2\"}", "damaged"),
    ] {
        let ran = compared(place.path(), &[&good, &file(name, text)]);
        ran.exits(2).tells(says).tells(name);
    }
    for arguments in [
        &[][..],
        &["a.json"],
        &["latest", "latest~1"],
        &["none.json", "none.json"],
    ] {
        compared(place.path(), arguments).exits(2);
    }
    let empty = Record {
        measurements: Vec::new(),
        ..record(Vec::new(), 1.0, 1)
    };
    let ran = compared(
        place.path(),
        &[&good, &save(place.path(), "e.json", &empty)],
    );
    ran.exits(0).shows("nothing in common");
}

#[test]
fn a_forged_record_is_named_and_not_believed() {
    let place = place();
    let mut forged = record(vec![workload("d8", 8, 3)], 1.0, 5);
    let honest = save(place.path(), "honest.json", &forged);
    let read = forged.measurements[0].ops.get_mut(&OpKind::Read).unwrap();
    read.iops.value *= 10.0;
    let forged = save(place.path(), "forged.json", &forged);
    let (honest, forged) = (run(["show", &honest]), run(["show", &forged]));
    honest.exits(0).tells_nothing();
    assert_eq!((forged.code, &forged.out), (Some(0), &honest.out));
    let place = "/measurements/0/ops/read/iops/value";
    forged.tells(place);
}
