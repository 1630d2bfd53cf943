//! The page that is printed without `-v`: one screen of a quick run, two of a longer one.

use crate::fixture;
use crate::{PLAIN_80, assert_shows, record_page, written};
use diskproof_model::digits::rounded;
use diskproof_model::finding::Severity;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::OpKind;
use diskproof_model::ping::{PingFigures, PingLatency};
use diskproof_model::postgres::{
    LoadFigures, LoadMeasurement, LoadRow, PostgresLoad, PostgresRecord,
};
use diskproof_model::record::{Estimate, Record, TaskResult};
use diskproof_report::terminal::{self, Detail};
use std::collections::BTreeMap;

fn short(record: &Record) -> String {
    terminal::record_page(record, Detail::Short, &PLAIN_80)
}

fn lines(record: &Record) -> usize {
    short(record).lines().count()
}

/// With findings of every severity, each three times, and settings to change.
fn alarming(mut record: Record) -> Record {
    let findings = fixture::every_severity().findings;
    record.findings = (0..3).flat_map(|_| findings.clone()).collect();
    for finding in &mut record.findings {
        finding.title = Some("A title of at most eight words is here".to_owned());
    }
    fixture::graded(record)
}

fn quick(mut record: Record) -> Record {
    record.plan.time_limit_ns = Some(20_000_000_000);
    record
}

/// The answer about a database is a promise, so its page says what was not tested; that of a quick
/// run leaves it to `-v`.
#[test]
fn caveats_stand_on_the_brief_page_of_a_profile_alone() {
    let mut record = fixture::healthy();
    if let Some(verdict) = &mut record.verdict {
        verdict.caveats = vec!["Bursts would-not-show.".to_owned()];
    }
    assert!(short(&record).contains("would-not-show"));
    record.plan.questions.fit_for = Some("sqlite".to_owned());
    assert!(short(&record).contains("would-not-show"));
    record.plan.questions.fit_for = None;
    assert!(!short(&quick(record)).contains("would-not-show"));
}

/// A run of `commit` with as many rows as that verb has at most.
fn commit() -> Record {
    let mut record = fixture::healthy();
    record.plan.origin.verb = "commit".to_owned();
    let mut measurements = record.measurements.iter();
    let like = measurements.find(|measurement| measurement.data.ops.contains_key(&OpKind::Commit));
    let like = like.cloned().expect("a check commits");
    let names = [
        "fdatasync",
        "fsync",
        "open_datasync",
        "open_sync",
        "group-c16",
    ];
    let numbered = (names.len()..39).map(|number| format!("fdatasync-x{number}"));
    let names = names.map(str::to_owned).into_iter().chain(numbered);
    let named = |name| {
        let mut m = like.clone();
        m.data.workload.name = name;
        m
    };
    record.measurements = names.map(named).collect();
    record.plan.tasks.clear();
    record
        .verdict
        .iter_mut()
        .for_each(|verdict| verdict.caveats.clear());
    record
}

fn rate(value: f64, share: f64) -> Estimate {
    Estimate {
        n: 40,
        value,
        half_width_95: Some(value * share),
        unit: "1/s".to_owned(),
    }
}

/// The same with the INSERTs of a server, all rates known to this share of themselves.
fn with_server(mut record: Record, share: f64) -> Record {
    let methods = ["fdatasync", "fsync", "open_datasync", "open_sync", "async"];
    let load = |method: &str, clients| {
        let method_of_server = if method == "async" {
            "fdatasync"
        } else {
            method
        };
        let load = PostgresLoad {
            name: format!("{method}-c{clients}"),
            clients,
            synchronous_commit: method != "async",
            wal_sync_method: method_of_server.to_owned(),
            pgbench: false,
        };
        LoadRow {
            data: LoadMeasurement {
                load,
                slices: Vec::new(),
                latency: LatencyHistogram::new(),
            },
            figures: LoadFigures {
                iops: rate(1000.0, share),
                latency_p50_ns: Some(500_000),
                latency_p99_ns: Some(900_000),
                latency_max_ns: Some(9_000_000),
                wal_bytes_per_commit: 200.0,
                commits_per_sync: Some(1.0),
                client_cpu_ns: Some(6_000.0),
                own: None,
                parts: None,
            },
        }
    };
    let loads = methods
        .iter()
        .flat_map(|method| [1, 4, 16].map(|clients| load(method, clients)));
    record.results.push(TaskResult::Inserts(PostgresRecord {
        version: "15.18".to_owned(),
        loads: loads.collect(),
        trials: Vec::new(),
        end_ns: None,
        errors: BTreeMap::new(),
        silence_before_ns: 0,
    }));
    for measurement in &mut record.measurements {
        for op in measurement.figures.ops.values_mut() {
            op.iops = rate(3000.0, share);
        }
    }
    record
}

#[test]
fn commits_with_a_server_fit_the_screen_of_commits() {
    let page = short(&with_server(alarming(commit()), 0.05));
    assert!(page.lines().count() <= 45, "{page}");
    assert_shows(&page, &["fdatasync-c1 ", "fdatasync-c4 ", "async-c16 "]);
    assert_shows(&page, &["32 more rows: -v", "8 more rows: -v"]);
}

#[test]
fn methods_are_not_listed_where_noise_hides_them() {
    let noisy = with_server(commit(), 0.9);
    let page = short(&noisy);
    assert_eq!(page.matches("known to ±40 % or").count(), 2, "{page}");
    assert!(!page.contains("fsync-c4 "), "{page}");
    assert!(record_page(&noisy, &PLAIN_80).contains("fsync-c4 "));
    // One row of commits compares no methods.
    let mut check = fixture::healthy();
    for measurement in &mut check.measurements {
        for op in measurement.figures.ops.values_mut() {
            op.iops = rate(3000.0, 0.9);
        }
    }
    assert!(!short(&check).contains("Too noisy"));
}

fn ping() -> Record {
    let mut record = fixture::healthy();
    record.plan.origin.verb = "ping".to_owned();
    record.measurements.drain(..2);
    record.measurements.truncate(1);
    record.plan.tasks.clear();
    record.advice.clear();
    record
        .verdict
        .iter_mut()
        .for_each(|verdict| verdict.caveats.clear());
    let latency = PingLatency {
        mean: Estimate {
            n: 40,
            value: 82_000.0,
            half_width_95: Some(4000.0),
            unit: "ns".to_owned(),
        },
        deviation_ns: 4450.0,
    };
    record.measurements[0].figures.ping = Some(PingFigures {
        latency: [(OpKind::Read, latency)].into(),
        after_idle: Vec::new(),
        slow_from_ns: None,
    });
    record
}

#[test]
fn short_pages_fit_their_screens() {
    let check = fixture::healthy();
    for record in [check.clone(), alarming(check.clone())] {
        assert!(lines(&record) <= 45, "{}", short(&record));
        let quick = quick(record);
        // With the plan, where the run was saved and the prompt, 24.
        assert!(lines(&quick) <= 20, "{}", short(&quick));
    }
    let partial = fixture::graded(fixture::partial());
    assert!(lines(&partial) <= 45, "{}", short(&partial));
    let mut commits = alarming(commit());
    commits
        .verdict
        .iter_mut()
        .for_each(|verdict| verdict.caveats.clear());
    for record in [commit(), commits] {
        assert!(lines(&record) <= 45, "{}", short(&record));
    }
    for record in [ping(), alarming(ping())] {
        assert!(lines(&record) <= 12, "{}", short(&record));
    }
}

#[test]
fn short_pages_count_what_they_leave_out() {
    let page = short(&alarming(commit()));
    assert_eq!(page.matches("more rows: -v").count(), 1, "{page}");
    assert_eq!(page.matches("6 more findings: -v").count(), 1, "{page}");
    let rows = |page: &str| page.lines().filter(|line| line.ends_with("15.5")).count();
    assert_eq!(rows(&page), 16, "{page}");
    let whole = record_page(&alarming(commit()), &PLAIN_80);
    assert_eq!(rows(&whole), 39, "{whole}");
    let page = short(&fixture::every_severity());
    assert!(page.contains("1 more note: -v"), "{page}");
}

#[test]
fn what_limits_the_disk_is_part_of_the_verdict() {
    let mut record = fixture::healthy();
    let claim = format!(
        "random-read-d32 ran at {}/s: the control group /a allows it. The disk may be faster.",
        rounded(1500.0, None)
    );
    let starved = fixture::finding(Severity::Warning, "starved", "It was busy.", "Wait.");
    let limited = fixture::finding(Severity::Note, "rate-limited", &claim, "Raise it.");
    record.findings = vec![starved, limited];
    for page in [short(&record), record_page(&record, &PLAIN_80)] {
        let verdict = page.split("\n\n").nth(1).unwrap();
        let limit = verdict.lines().find(|line| line.starts_with("limit "));
        assert!(limit.is_some_and(|line| line.contains("1500")), "{page}");
    }
    assert!(!short(&record).contains("Raise it."), "{}", short(&record));
    let again = written(|out| terminal::write_verdict_again(&record, &PLAIN_80, out));
    assert!(again.contains("\nlimit "), "{again}");
}

#[test]
fn answer_is_repeated_with_its_figures() {
    let record = fixture::graded(fixture::healthy());
    let grade = record.verdict.as_ref().unwrap().grades[0]
        .figure
        .value_text();
    let again = written(|out| terminal::write_verdict_again(&record, &PLAIN_80, out));
    assert!(again.contains(&grade), "{again}");
    assert!(again.lines().count() <= 8, "{again}");
}
