//! Figures of known runs, frozen: what CSV and OpenMetrics print, the codes of findings, grades,
//! thresholds and commands, each in a sorted dump. Wording is not in them, so a dump changes only
//! where a figure does. `UPDATE_FROZEN=1` writes them anew; the commit that does so explains each
//! difference.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod virtual_time;

use diskproof_analysis::expect::Expected;
use diskproof_analysis::fixture::surveyed::SurveyedDisk;
use diskproof_analysis::fixture::{self, FixtureRun, files, ping};
use diskproof_analysis::judge::judge;
use diskproof_model::data::RunData;
use diskproof_model::files::FileOperation;
use diskproof_model::measurement::{Hang, Interruption, InterruptionKind, StopReason};
use diskproof_model::record::Record;
use diskproof_report::{csv, openmetrics};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Digits that a dump keeps: more than any page prints, fewer than the order of a sum changes.
const DIGITS: usize = 6;
/// Places of columns in the CSV.
const WORKLOAD: usize = 6;
const METRIC: usize = 8;
const OFFSET: usize = 13;
const SECOND_NS: u64 = 1_000_000_000;
/// Every name of a metric that a threshold can have.
const METRICS: [&str; 11] = [
    "iops",
    "throughput",
    "mean",
    "p50",
    "p90",
    "p95",
    "p99",
    "p99.9",
    "p99.99",
    "max",
    "cpu",
];

/// Numbers with a fraction or an exponent, rounded to [`DIGITS`].
fn rounded(field: &str) -> String {
    match field.parse::<f64>() {
        Ok(number) if field.contains(['.', 'e']) && number != 0.0 => {
            format!("{number:.*e}", DIGITS - 1)
        }
        _ => field.to_owned(),
    }
}

fn csv_lines(record: &Record) -> Vec<String> {
    let mut text = Vec::new();
    csv::write_record(record, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    // Points of series, curves and accesses are data, not figures.
    let is_point = |fields: &[&str]| fields[METRIC].ends_with("_at") || !fields[OFFSET].is_empty();
    let fields = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    fields
        .filter(|fields| !is_point(fields))
        .map(|fields| {
            let shown: Vec<String> = fields[WORKLOAD..]
                .iter()
                .map(|field| rounded(field))
                .collect();
            shown.join(",")
        })
        .collect()
}

fn metric_lines(record: &Record) -> Vec<String> {
    let mut text = Vec::new();
    openmetrics::write_record(record, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let is_series =
        |line: &&str| !line.starts_with('#') && !line.starts_with("diskproof_verdict_info");
    let round = |line: &str| match line.rsplit_once(' ') {
        Some((name, value)) => format!("{name} {}", rounded(value)),
        None => line.to_owned(),
    };
    text.lines().filter(is_series).map(round).collect()
}

/// Everything about a record that a program may rely on, a line each.
fn dump(record: &Record) -> String {
    let mut lines = BTreeSet::new();
    lines.extend(
        csv_lines(record)
            .into_iter()
            .map(|line| format!("csv {line}")),
    );
    lines.extend(
        metric_lines(record)
            .into_iter()
            .map(|line| format!("prom {line}")),
    );
    for finding in &record.findings {
        lines.insert(format!("finding {} {:?}", finding.code, finding.severity));
    }
    for advice in &record.advice {
        let value = (&advice.value, advice.range);
        lines.insert(format!("advice {} {value:?}", advice.setting));
    }
    for m in &record.measurements {
        lines.insert(format!(
            "reproduce {} {}",
            m.data.workload.name, m.figures.reproduce
        ));
        let limit = m
            .figures
            .limited_by
            .as_ref()
            .map(|limited| limited.limit.as_str());
        let state = (m.figures.settled, m.data.stopped, limit);
        lines.insert(format!("state {} {state:?}", m.data.workload.name));
    }
    for expectation in &record.expectations {
        let observed = expectation
            .observed
            .map(|value| rounded(&format!("{value:?}")));
        let outcome = expectation.outcome().as_str();
        lines.insert(format!(
            "expect {} {outcome} {observed:?}",
            expectation.expression
        ));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Compares the dump of a record with the frozen one.
fn check(name: &str, record: &Record) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/frozen/dumps")
        .join(format!("{name}.txt"));
    let now = dump(record);
    if std::env::var_os("UPDATE_FROZEN").is_some() {
        std::fs::write(&path, now).unwrap();
        return;
    }
    let frozen = std::fs::read_to_string(&path).unwrap();
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) =
        (frozen.lines().collect(), now.lines().collect());
    let gone: Vec<_> = old
        .difference(&new)
        .map(|line| format!("- {line}"))
        .collect();
    let come: Vec<_> = new
        .difference(&old)
        .map(|line| format!("+ {line}"))
        .collect();
    assert!(
        gone.is_empty() && come.is_empty(),
        "{name}: {} lines went, {} came\n{}\n{}",
        gone.len(),
        come.len(),
        gone[..gone.len().min(20)].join("\n"),
        come[..come.len().min(20)].join("\n")
    );
}

/// A value in the unit of a metric.
fn threshold(metric: &str) -> &'static str {
    match metric {
        "iops" => "1",
        "cpu" => "1%",
        "throughput" => "1MB/s",
        _ => "1ms",
    }
}

/// A run judged with a threshold for each metric of each of its workloads.
fn judged(run: FixtureRun) -> Record {
    let names: Vec<String> = run
        .measurements
        .iter()
        .map(|m| m.workload.name.clone())
        .collect();
    let expressions = names
        .iter()
        .flat_map(|name| METRICS.map(|metric| format!("{name}.{metric}>={}", threshold(metric))));
    let expected: Vec<Expected> = expressions.map(|text| text.parse().unwrap()).collect();
    judge(
        run.facts,
        &RunData::from_measurements(run.measurements),
        &expected,
    )
}

#[test]
fn figures_of_a_check_are_frozen() {
    let run = fixture::filled(fixture::run());
    check("check", &judged(run));
    let together = fixture::filled(fixture::together(&["sequential-read", "random-read-d1"]));
    check("check-together", &judged(together));
    for is_known in [false, true] {
        let name = format!("check-rotating-{is_known}");
        check(&name, &fixture::on_rotating_disk(is_known));
    }
}

#[test]
fn figures_of_a_check_that_ended_early_are_frozen() {
    let hung = fixture::faulty("random-read-d32", |m| {
        m.hang = Some(Hang {
            since_ns: 2 * SECOND_NS,
            lasted_ns: 45 * SECOND_NS,
            requests: 32,
            late: false,
        });
        m.stopped = StopReason::Hung;
    });
    check("check-hung", &hung);
    let stopped = fixture::faulty("random-read-d32", |m| {
        m.interruptions = vec![Interruption {
            start_ns: SECOND_NS,
            length_ns: 3 * SECOND_NS,
            kind: InterruptionKind::Stopped,
            requests: 32,
        }];
    });
    check("check-sigstop", &stopped);
    let interrupted = fixture::faulty("random-read-d32", |m| m.stopped = StopReason::Interrupted);
    check("check-interrupted", &interrupted);
}

#[test]
fn figures_of_files_are_frozen() {
    let steps = [
        FileOperation::Create,
        FileOperation::Stat,
        FileOperation::Read,
        FileOperation::Delete,
    ];
    let steps = steps.map(|operation| files::file_step(operation, &[1000, 1100, 950]));
    let record = files::files_record("files", files::files_plan(), steps.to_vec());
    check("files", &record);
}

#[test]
fn figures_of_single_requests_are_frozen() {
    let samples: Vec<(u64, u64)> = (0..200)
        .map(|index| (index % 4 * 50_000_000, 90_000 + index * 37 % 5000))
        .collect();
    check("ping", &fixture::judge(ping::ping_run(&samples)));
}

#[test]
fn figures_of_surveys_are_frozen() {
    check("surveyed-rotating", &SurveyedDisk::rotating().record(1));
    check("surveyed-solid", &SurveyedDisk::solid().record(1));
}

#[test]
fn figures_in_virtual_time_are_frozen() {
    for (name, run) in virtual_time::runs() {
        check(&format!("virtual-{name}"), &judged(run));
    }
}
