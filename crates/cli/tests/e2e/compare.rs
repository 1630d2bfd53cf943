//! `compare`: on two disks that differ by a known share, measured in virtual time by the real
//! pipeline, does it find what is true and never the reverse; and the command as its users call it.

use crate::program::{Ran, Unwatched, diskproof, run};
use diskproof_analysis::compare::{MARGIN, Question, Run, RunGroup, compare};
use diskproof_analysis::judge::{RunFacts, RunVariation, judge};
use diskproof_engine::{FakeDisk, simulate};
use diskproof_model::comparison::{Candidate, Comparison, Verdict};
use diskproof_model::data::RunData;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Plan, Stop, Task, Workload, Workloads};
use diskproof_model::record::{ClockFacts, Record, Tool};
use diskproof_model::target::{HostFacts, TargetIdentity, TargetKind};
use diskproof_report::style::{Color, Style};
use diskproof_report::terminal::{MetricDetail, write_comparison};
use diskproof_simdisk::testbed::{TempDir, place};
use std::collections::BTreeMap;

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
        tasks: vec![Task::Workloads(Workloads::as_planned(workloads))],
        ..Plan::new("run", Vec::new())
    };
    let facts = RunFacts {
        tool: tool(),
        run_id: format!("{:032x}", seed * 1000 + (speed * 100.0) as u64),
        started: "2026-11-20T10:00:00Z".to_owned(),
        partial: false,
        ended_early: None,
        stalled: None,
        failed: None,
        note: None,
        host: HostFacts {
            name: "db1".to_owned(),
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
    judge(facts, &RunData::from_measurements(measurements), &[])
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
    b.measurements[1].data.workload.depth = 16;
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
    let color = Color::Plain;
    let style = Style { width, color };
    write_comparison(comparison, MetricDetail::Independent, &style, &mut out).unwrap();
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

/// A directory of saved records, and a history, empty at first.
struct Records {
    place: TempDir,
}

impl Records {
    fn new() -> Self {
        Self { place: place() }
    }

    fn path(&self, name: &str) -> String {
        self.place.path().join(name).display().to_string()
    }

    fn save(&self, name: &str, record: &Record) -> String {
        let path = self.path(name);
        std::fs::write(&path, serde_json::to_string(record).unwrap()).unwrap();
        path
    }

    /// Saves a run of some seconds at depth 8.
    fn save_d8(&self, name: &str, seconds: u64, speed: f64, seed: u64) -> String {
        let run = record(vec![workload("d8", 8, seconds)], speed, seed);
        self.save(name, &run)
    }

    /// Saves three runs of a disk and three of one that is slower by a tenth.
    fn save_two(&self) -> [[String; 3]; 2] {
        [("a", 1.0), ("b", 0.9)].map(|(name, speed)| {
            [1, 2, 3].map(|seed| self.save_d8(&format!("{name}{seed}.json"), 3, speed, seed))
        })
    }

    /// `compare` with a command line.
    fn compared(&self, line: &str) -> Ran {
        let history = self.path("history.db");
        diskproof!("compare --history {history} {line}")
    }

    fn import(&self, seed: u64, speed: f64, flags: &str) {
        let file = self.save_d8("r.json", 3, speed, seed);
        let history = self.path("history.db");
        diskproof!("history import {file} --history {history} {flags}").exits(0);
    }
}

fn comparison(ran: &Ran) -> Comparison {
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn compare_decides_a_pair_by_earlier_runs_of_the_history() {
    let records = Records::new();
    let [[a, ..], [slower, ..]] = records.save_two();
    let limited = format!("{a} {slower} --fail-on d8.iops<-5%");
    let decided = format!("{limited} --fail-on-undecided");
    let once = records.compared(&decided);
    once.exits(5).shows("3 runs").tells("d8.iops");
    once.shows_first("B is slower-once in d8.iops.");
    records.compared(&limited).exits(0);

    for seed in 11..15 {
        records.import(seed, 1.0, "");
    }
    let worse = records.compared(&decided);
    worse.exits(1).shows_first("B is worse in d8.iops.");
    let json = records.compared(&format!("{a} {slower} --json"));
    let variation = comparison(&json).candidates[0].metrics[0]
        .variation
        .unwrap();
    assert_eq!((variation.earlier_runs, variation.freedom), (4, 3.0));
}

#[test]
fn compare_reports_a_damaged_file_whose_name_has_a_comma() {
    let records = Records::new();
    let other = records.save_d8("other.json", 3, 1.0, 1);
    let damaged = records.path("a,b.json");
    std::fs::write(&damaged, "{").unwrap();
    let ran = records.compared(&format!("{damaged} {other}"));
    ran.exits(2).tells("a,b.json");
}

#[test]
fn compare_fails_a_build_on_its_conditions() {
    let records = Records::new();
    let sides = records.save_two().map(|side| side.join(",")).join(" ");
    let ran = records.compared(&sides);
    ran.exits(0).tells_nothing();
    ran.shows_first("B is worse in d8.iops.");
    for (flags, code) in [
        ("--fail-on d8.iops<-5%", 1),
        ("--fail-on d8.iops<-15%", 0),
        ("--fail-on d8.iops<-15% --fail-on d8.p50>5%", 1),
        // A misspelt one must not pass.
        ("--fail-on d9.iops<-5%", 2),
        ("--fail-on d8.iops", 2),
        // The margin is for verdicts.
        ("--margin 15% --fail-on d8.iops<-5%", 1),
        ("--margin 0%", 2),
    ] {
        records.compared(&format!("{sides} {flags}")).exits(code);
    }
}

#[test]
fn compare_fails_a_build_where_a_condition_is_not_comparable() {
    let records = Records::new();
    let a = records.save_d8("a.json", 3, 1.0, 1);
    let deeper = record(vec![workload("d8", 4, 3)], 1.0, 3);
    let deeper = records.save("c.json", &deeper);
    let ran = records.compared(&format!("{a} {deeper} --fail-on d8.iops<-5%"));
    ran.exits(4).shows("not comparable").tells("depth 8");
}

#[test]
fn compare_writes_one_comparison_to_stdout_and_file() {
    let records = Records::new();
    let [[a, ..], [b, ..]] = records.save_two();
    let file = records.path("out.json");
    let ran = records.compared(&format!("{a} {b},{b} {a} --json -o {file}"));
    let printed = comparison(&ran);
    let saved = std::fs::read_to_string(&file).unwrap();
    assert_eq!(serde_json::from_str::<Comparison>(&saved).unwrap(), printed);
    let runs = printed.candidates.iter().map(|one| one.side.runs.len());
    assert_eq!(runs.collect::<Vec<_>>(), [2, 1]);
    records.compared(&format!("{a} {a} -o x.hlog")).exits(2);
}

#[test]
fn a_page_of_a_comparison_reads_back() {
    let records = Records::new();
    let a = records.save_d8("a.json", 1, 1.0, 1);
    let b = records.save_d8("b.json", 1, 0.8, 2);
    let [page, json, again] = ["c.html", "c.json", "again.html"].map(|name| records.path(name));
    let text = |path: &str| std::fs::read_to_string(path).unwrap();
    let ran = records.compared(&format!("{a} {b} -o {page} -o {json}"));
    ran.exits(0);
    for file in [&page, &json] {
        let shown = run(["show", file]);
        shown.exits(0);
        assert_eq!(shown.out, ran.out, "{file}");
        assert_eq!(run(["show", file, "--json"]).out, text(&json), "{file}");
    }
    for line in [
        format!("show {json} -o {again}"),
        format!("export {page} {again}"),
    ] {
        diskproof!("{line}").exits(0);
        assert_eq!(text(&again), text(&page), "{line}");
        std::fs::remove_file(&again).unwrap();
    }
    let refused = records.compared(&format!("{a} {page}"));
    refused.exits(2).tells("a comparison");
    run(["show", &page, "--commands"]).exits(2);
    run(["export", &page, &records.path("c.hlog")]).exits(2);
}

#[test]
fn labels_are_sides_of_several_runs() {
    let records = Records::new();
    (0..4).for_each(|seed| records.import(seed, 1.0, "--label before"));
    (4..8).for_each(|seed| records.import(seed, 1.1, "--label after"));
    let ran = records.compared("before after");
    ran.shows_first("B is better in d8.iops.");
    ran.shows("before (A) and after (B)");
    let against_latest = comparison(&records.compared("--baseline before --json"));
    assert_eq!(against_latest.baseline.runs.len(), 4);
    assert_eq!(against_latest.candidates[0].side.label, "latest");
    records.compared("--baseline before nowhere").exits(2);
}

#[test]
fn what_is_no_record_is_refused_in_words() {
    let records = Records::new();
    let good = records.save_d8("a.json", 1, 1.0, 1);
    for (text, part) in [
        ("{}", "diskproof record"),
        ("not JSON", "diskproof record"),
        ("{\"schema\":\"diskproof.record/9\"}", "diskproof.record/9"),
        ("{\"schema\":\"diskproof.comparison/1\"}", "damaged"),
        (
            "{\"schema\":\"diskproof.comparison/2\"}",
            "diskproof.comparison/2",
        ),
        ("{\"schema\":\"diskproof.record/3\"}", "damaged"),
    ] {
        let bad = records.path("bad.json");
        std::fs::write(&bad, text).unwrap();
        let ran = records.compared(&format!("{good} {bad}"));
        ran.exits(2).tells(part).tells("bad.json");
    }
    for line in ["", "a.json", "latest latest~1", "none.json none.json"] {
        records.compared(line).exits(2);
    }
    let empty = Record {
        measurements: Vec::new(),
        ..record(Vec::new(), 1.0, 1)
    };
    let empty = records.save("e.json", &empty);
    let ran = records.compared(&format!("{good} {empty}"));
    ran.exits(0).shows("nothing in common");
}

#[test]
fn a_forged_record_is_named_and_not_believed() {
    let records = Records::new();
    let mut forged = record(vec![workload("d8", 8, 3)], 1.0, 5);
    let honest = records.save("honest.json", &forged);
    let read = forged.measurements[0]
        .figures
        .ops
        .get_mut(&OpKind::Read)
        .unwrap();
    read.iops.value *= 10.0;
    let forged = records.save("forged.json", &forged);
    let (honest, forged) = (run(["show", &honest]), run(["show", &forged]));
    honest.exits(0).tells_nothing();
    forged
        .exits(0)
        .tells("/measurements/0/figures/ops/read/iops/value");
    assert_eq!(forged.out, honest.out);
}
