//! The page that is printed without `-v`: one screen of a quick run, two of a longer one.

use crate::fixture;
use crate::{PLAIN_80, record_page, written};
use diskproof_model::digits::rounded;
use diskproof_model::finding::Severity;
use diskproof_model::measurement::OpKind;
use diskproof_model::ping::{PingLatency, PingRecord};
use diskproof_model::record::{Estimate, Record};
use diskproof_report::terminal::{self, Detail};

fn short(record: &Record) -> String {
    written(|out| terminal::write_record(record, Detail::Short, &PLAIN_80, out))
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

/// A run of `commit` with as many rows as that verb has at most.
fn commit() -> Record {
    let mut record = fixture::healthy();
    record.plan.origin.verb = "commit".to_owned();
    let mut measured = record.measurements.iter();
    let like = measured.find(|m| m.ops.contains_key(&OpKind::Commit));
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
    record.measurements = names
        .map(|name| {
            let mut m = like.clone();
            m.workload.name = name;
            m
        })
        .collect();
    record.plan.workloads.clear();
    record.verdict.iter_mut().for_each(|of| of.caveats.clear());
    record
}

fn ping() -> Record {
    let mut record = fixture::healthy();
    record.plan.origin.verb = "ping".to_owned();
    record.measurements.drain(..2);
    record.measurements.truncate(1);
    record.plan.workloads.clear();
    record.advice.clear();
    record.verdict.iter_mut().for_each(|of| of.caveats.clear());
    let latency = PingLatency {
        mean: Estimate {
            n: 40,
            value: 82_000.0,
            half_width_95: Some(4000.0),
            unit: "ns".to_owned(),
        },
        deviation_ns: 4450.0,
    };
    record.measurements[0].ping = Some(PingRecord {
        latency: [(OpKind::Read, latency)].into(),
        requests: Vec::new(),
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
        assert!(lines(&quick) <= 24, "{}", short(&quick));
    }
    let partial = fixture::graded(fixture::partial());
    assert!(lines(&partial) <= 45, "{}", short(&partial));
    let mut commits = alarming(commit());
    commits.verdict.iter_mut().for_each(|of| of.caveats.clear());
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
    record.findings = vec![
        fixture::finding(
            Severity::Warning,
            "starved",
            "The machine was busy.",
            "Wait.",
        ),
        fixture::finding(Severity::Note, "rate-limited", &claim, "Raise it."),
    ];
    for page in [short(&record), record_page(&record, &PLAIN_80)] {
        let verdict = page.split("\n\n").nth(1).unwrap();
        let limit = verdict.lines().find(|line| line.starts_with("limit "));
        assert!(limit.is_some_and(|line| line.contains("1500")), "{page}");
    }
    assert!(!short(&record).contains("Raise it."), "{}", short(&record));
    let again = written(|out| terminal::write_verdict_again(&record, &PLAIN_80, out));
    assert!(again.contains("\nlimit "), "{again}");
}
