//! Formats for other programs, read back with those programs' own readers where there are any, and
//! tested with hostile names.

use crate::{RECORDS, fixture, is_harmless, written};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::record::Record;
use diskproof_report::chart::charts;
use diskproof_report::{csv, gnuplot, hlog, openmetrics};
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::collections::BTreeSet;
use std::process::Command;

fn csv_text(record: &Record) -> String {
    written(|out| csv::write_record(record, out))
}

/// The cells of a table as RFC 4180 reads them.
fn cells(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let (mut quoted, mut chars) = (false, text.chars().peekable());
    while let Some(c) = chars.next() {
        let row = rows.last_mut().expect("starts with one");
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => row
                .last_mut()
                .expect("starts with one")
                .push(chars.next().expect("peeked")),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            c => row.last_mut().expect("starts with one").push(c),
        }
    }
    rows.pop();
    rows
}

#[test]
fn csv_of_a_survey_snapshot() {
    let text = csv_text(&fixture::surveyed());
    let figures: Vec<&str> = text.lines().filter(|line| !line.contains("_at,")).collect();
    insta::assert_snapshot!("csv_surveyed", figures.join("\n"));
    let rows = cells(&text);
    let of = |workload: &str, metric: &str| -> Vec<&Vec<String>> {
        rows.iter()
            .filter(|row| row[6] == workload && row[8] == metric)
            .collect()
    };
    assert_eq!(of("curve", "throughput_at").len(), 200);
    assert_eq!(of("scan", "slow_block_at").len(), 2);
    let accesses = of("access-random", "latency_at");
    assert_eq!(accesses.len(), 300);
    // Offset and distance.
    for cell in &accesses[0][13..15] {
        assert!(cell.parse::<u64>().is_ok(), "{:?}", accesses[0]);
    }
}

#[test]
fn csv_rows_are_complete_and_no_formulas() {
    for (name, record) in &*RECORDS {
        let text = csv_text(record);
        assert!(text.chars().all(is_harmless), "{name}");
        for row in cells(&text).iter().skip(1) {
            assert_eq!(row.len(), 17, "{name}: {row:?}");
            assert!(
                row[9].parse::<f64>().is_ok_and(f64::is_finite),
                "{name}: {row:?}"
            );
            let mut texts = row[..9].iter().chain([&row[12], &row[16]]);
            let is_formula = |cell: &String| cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
            assert!(!texts.any(is_formula), "{name}: {row:?}");
        }
    }
    let mut record = fixture::depths();
    let formula = "=cmd|' /C calc'!A0, \"x\"";
    record.measurements[0].data.workload.name = formula.to_owned();
    let rows = cells(&csv_text(&record));
    assert!(
        rows.iter().any(|row| row[6] == format!("'{formula}")),
        "{:?}",
        rows[1]
    );
}

#[test]
fn csv_and_prom_name_concurrent_workloads() {
    let mut record = fixture::depths();
    record.measurements[0].figures.together_with =
        vec!["=backup".to_owned(), "commits, \"b\"".to_owned()];
    let [company, alone] =
        [0, 1].map(|index| record.measurements[index].data.workload.name.clone());
    let rows = cells(&csv_text(&record));
    assert_eq!(rows[0][15..], ["time_s", "together_with"]);
    let of = |name: &str| {
        let own = rows.iter().filter(|row| row[6] == name);
        own.map(|row| row[16].as_str()).collect::<BTreeSet<_>>()
    };
    assert_eq!(of(&company), BTreeSet::from(["'=backup; commits, \"b\""]));
    assert_eq!(of(&alone), BTreeSet::from([""]));
    let metrics = written(|out| openmetrics::write_record(&record, out));
    let label = r#",together_with="=backup; commits, \"b\"""#;
    let workload = format!("workload=\"{company}\"");
    let named: Vec<&str> = metrics
        .lines()
        .filter(|line| line.contains(&workload))
        .collect();
    assert!(
        !named.is_empty() && named.iter().all(|line| line.contains(label)),
        "{named:?}"
    );
    // No label where it ran alone.
    assert_eq!(metrics.matches("together_with").count(), named.len());
}

#[test]
fn hlog_is_read_by_its_own_library() {
    for (name, record) in &*RECORDS {
        let log = written(|out| hlog::write_record(record, out));
        assert!(log.chars().all(is_harmless), "{name}");
        let entries = IntervalLogIterator::new(log.as_bytes());
        let entries: Vec<LogEntry<'_>> = entries.map(|entry| entry.expect("readable")).collect();
        let mut intervals = entries.iter().filter_map(|entry| match entry {
            LogEntry::Interval(interval) => Some(interval),
            _ => None,
        });
        for measurement in &record.measurements {
            for (kind, op) in measurement.ops() {
                let Some(interval) = intervals.next() else {
                    panic!("{name}: {}", measurement.data.workload.name);
                };
                let tag = interval
                    .tag()
                    .map_or(String::new(), |tag| tag.as_str().to_owned());
                assert!(
                    tag.contains(&format!(".{}", kind.as_str())),
                    "{name}: {tag}"
                );
                assert_eq!(
                    interval.encoded_histogram(),
                    op.data.latency.to_hdr_base64()
                );
                let ms = u128::from(measurement.data.wall_ns / 1_000_000);
                assert_eq!(interval.duration().as_millis(), ms);
                assert!(LatencyHistogram::from_hdr_base64(interval.encoded_histogram()).is_ok());
            }
        }
        assert!(intervals.next().is_none(), "{name}");
        let is_start = |entry: &LogEntry| match entry {
            LogEntry::StartTime(time) => time.as_secs() == 1_795_168_800,
            _ => false,
        };
        assert!(entries.iter().any(is_start), "{name}");
    }
}

#[test]
fn hlog_starts_with_the_expected_header() {
    let log = written(|out| hlog::write_record(&fixture::two_targets(), out));
    let lines: Vec<String> = log
        .lines()
        .map(|line| line.split(",HIST").next().unwrap_or_default().to_owned())
        .collect();
    insta::assert_snapshot!("hlog_two_targets", lines.join("\n"));
}

#[test]
fn prom_snapshot() {
    let metrics = |record: &Record| written(|out| openmetrics::write_record(record, out));
    insta::assert_snapshot!("prom_surveyed", metrics(&fixture::surveyed()));
    let mut record = fixture::two_targets();
    record.measurements.truncate(2);
    insta::assert_snapshot!("prom_two_targets", metrics(&record));
}

#[test]
fn prom_has_no_duplicate_series() {
    let mut twice = fixture::depths();
    for measurement in &mut twice.measurements {
        measurement.data.workload.name = "a \"quoted\" \\ name".to_owned();
    }
    let records = RECORDS.iter().map(|(name, record)| (*name, record));
    for (name, record) in records.chain([("twice", &twice)]) {
        let text = written(|out| openmetrics::write_record(record, out));
        assert!(
            text.ends_with("\n# EOF\n") && text.chars().all(is_harmless),
            "{name}"
        );
        let mut series = BTreeSet::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (labelled, value) = line.rsplit_once(' ').unwrap();
            assert!(
                value.parse::<f64>().is_ok_and(f64::is_finite),
                "{name}: {line}"
            );
            assert!(labelled.starts_with("diskproof_"), "{name}: {line}");
            assert!(series.insert(labelled.to_owned()), "{name}: {line}");
        }
    }
}

/// gnuplot draws every record, hostile ones too, writes a file for each chart and nothing else, and
/// complains of nothing.
#[test]
fn gnuplot_accepts_the_script() {
    if Command::new("gnuplot").arg("--version").output().is_err() {
        eprintln!("SKIPPED: gnuplot_accepts_the_script: gnuplot is missing");
        return;
    }
    for (name, record) in RECORDS
        .iter()
        .filter(|(name, _)| ["surveyed", "hostile", "partial"].contains(name))
    {
        let folder = tempfile::tempdir().unwrap();
        let script = written(|out| gnuplot::write_record(record, "../a `id`", out));
        assert!(script.chars().all(is_harmless), "{name}");
        std::fs::write(folder.path().join("x.gnuplot"), script).unwrap();
        let ran = Command::new("gnuplot")
            .args(["-p", "x.gnuplot"])
            .env_remove("DISPLAY")
            .current_dir(folder.path())
            .output()
            .unwrap();
        let complaints = String::from_utf8_lossy(&ran.stderr);
        assert!(
            ran.status.success() && complaints.is_empty(),
            "{name}: {complaints}"
        );
        let charts = charts(record);
        let pictures = charts.iter().map(|chart| format!("aid-{}.png", chart.id));
        let expected: BTreeSet<String> = pictures.chain(["x.gnuplot".to_owned()]).collect();
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let found: BTreeSet<String> = names.collect();
        assert_eq!(found, expected, "{name}");
        for picture in found.iter().filter(|file| file.ends_with(".png")) {
            let bytes = std::fs::read(folder.path().join(picture)).unwrap();
            let is_drawn = bytes.starts_with(b"\x89PNG") && bytes.len() > 5_000;
            assert!(is_drawn, "{name}: {picture} has {} bytes", bytes.len());
        }
    }
}
