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
    let count = |workload: &str, metric: &str| {
        rows.iter()
            .filter(|row| row[6] == workload && row[8] == metric)
            .count()
    };
    assert_eq!(
        (
            count("curve", "throughput_at"),
            count("access-random", "latency_at"),
            count("scan", "slow_block_at")
        ),
        (200, 300, 2)
    );
    let place = rows
        .iter()
        .find(|row| row[6] == "access-random" && row[8] == "latency_at")
        .unwrap();
    assert!(
        place[13].parse::<u64>().is_ok() && place[14].parse::<u64>().is_ok(),
        "offset and distance: {place:?}"
    );
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
            let texts = row[..9].iter().chain([&row[12], &row[16]]);
            assert!(
                texts
                    .clone()
                    .all(|cell| !cell.starts_with(['=', '+', '-', '@', '\t', '\r'])),
                "{name}: {row:?}"
            );
        }
    }
    let mut record = fixture::depths();
    record.measurements[0].workload.name = "=cmd|' /C calc'!A0, \"x\"".to_owned();
    let rows = cells(&csv_text(&record));
    assert!(
        rows.iter()
            .any(|row| row[6] == "'=cmd|' /C calc'!A0, \"x\""),
        "{:?}",
        rows[1]
    );
}

#[test]
fn csv_and_prom_name_concurrent_workloads() {
    let mut record = fixture::depths();
    record.measurements[0].workload.together_with =
        vec!["=backup".to_owned(), "commits, \"b\"".to_owned()];
    let (company, alone) = (
        record.measurements[0].workload.name.clone(),
        record.measurements[1].workload.name.clone(),
    );
    let rows = cells(&csv_text(&record));
    assert_eq!(
        (rows[0][15].as_str(), rows[0][16].as_str()),
        ("time_s", "together_with")
    );
    let of = |name: &str| {
        rows.iter()
            .filter(|row| row[6] == name)
            .map(|row| row[16].as_str())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(
        (of(&company), of(&alone)),
        (
            BTreeSet::from(["'=backup; commits, \"b\""]),
            BTreeSet::from([""])
        )
    );
    let metrics = written(|out| openmetrics::write_record(&record, out));
    let label = r#",together_with="=backup; commits, \"b\"""#;
    let named: Vec<&str> = metrics
        .lines()
        .filter(|line| line.contains(&format!("workload=\"{company}\"")))
        .collect();
    assert!(
        !named.is_empty() && named.iter().all(|line| line.contains(label)),
        "{named:?}"
    );
    assert_eq!(
        metrics.matches("together_with").count(),
        named.len(),
        "no label where it ran alone"
    );
}

#[test]
fn hlog_is_read_by_its_own_library() {
    for (name, record) in &*RECORDS {
        let log = written(|out| hlog::write_record(record, out));
        assert!(log.chars().all(is_harmless), "{name}");
        let entries: Vec<LogEntry<'_>> = IntervalLogIterator::new(log.as_bytes())
            .map(|entry| entry.expect("the log can be read"))
            .collect();
        let mut intervals = entries.iter().filter_map(|entry| {
            if let LogEntry::Interval(interval) = entry {
                Some(interval)
            } else {
                None
            }
        });
        for m in &record.measurements {
            for (kind, op) in &m.ops {
                let interval = intervals
                    .next()
                    .unwrap_or_else(|| panic!("{name}: {} is missing", m.workload.name));
                assert!(
                    interval
                        .tag()
                        .is_some_and(|tag| tag.as_str().contains(&format!(".{}", kind.as_str()))),
                    "{name}"
                );
                assert_eq!(interval.encoded_histogram(), op.latency.hdr);
                assert_eq!(
                    interval.duration().as_millis(),
                    u128::from(m.wall_ns / 1_000_000)
                );
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
    insta::assert_snapshot!(
        "prom_surveyed",
        written(|out| openmetrics::write_record(&fixture::surveyed(), out))
    );
    let mut record = fixture::two_targets();
    record.measurements.truncate(2);
    insta::assert_snapshot!(
        "prom_two_targets",
        written(|out| openmetrics::write_record(&record, out))
    );
}

#[test]
fn prom_has_no_duplicate_series() {
    let mut twice = fixture::depths();
    twice
        .measurements
        .iter_mut()
        .for_each(|m| m.workload.name = "a \"quoted\" \\ name".to_owned());
    for (name, record) in RECORDS
        .iter()
        .map(|(name, record)| (*name, record))
        .chain([("twice", &twice)])
    {
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
            assert!(
                labelled.starts_with("diskproof_") && series.insert(labelled.to_owned()),
                "{name}: {line}"
            );
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
        assert!(
            ran.status.success() && ran.stderr.is_empty(),
            "{name}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        let mut expected: Vec<String> = charts(record)
            .iter()
            .map(|chart| format!("aid-{}.png", chart.id))
            .collect();
        expected.push("x.gnuplot".to_owned());
        expected.sort();
        let mut found: Vec<String> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        found.sort();
        assert_eq!(found, expected, "{name}");
        for picture in found.iter().filter(|file| file.ends_with(".png")) {
            let bytes = std::fs::read(folder.path().join(picture)).unwrap();
            assert!(
                bytes.starts_with(b"\x89PNG") && bytes.len() > 5_000,
                "{name}: {picture} has {} bytes",
                bytes.len()
            );
        }
    }
}
