//! A run as a forum post (`.share.txt`): at most ten lines with what was measured, on which disk,
//! the figures, whether to trust them, and the checksum of the record. Names neither host, path nor
//! serial number. Names of workloads, which a job file may choose, stay as in `export --anonymous`:
//! they say what was measured.

use crate::describe::figures::{conditions_text, shown_ops};
use crate::labels;
use crate::text::{clean, shortened};
use diskproof_model::finding::Severity;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;
use diskproof_model::row::{OpRow, Row};
use diskproof_model::units::{format_bytes, format_latency};
use diskproof_model::verdict::UseGrade;
use sha2::{Digest as _, Sha256};
use std::io::{self, Write};

/// Lines of figures: those of the ten that remain after two for the heading and three at the end.
const ROWS_MAX: usize = 5;
/// Longer lines are cut, because forums and mail wrap them.
const COLUMNS_MAX: usize = 72;

/// Writes at most ten lines. The last one is the checksum of the record, of the bytes that
/// `-o FILE.json` writes.
pub(crate) fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let verb = &record.plan.origin.verb;
    let day = record.started.get(..10).unwrap_or(&record.started);
    let partial = if record.partial { " · PARTIAL" } else { "" };
    let mut lines = vec![
        format!(
            "diskproof {} · {verb} · {day}{partial}",
            record.tool.version
        ),
        machine_line(record),
    ];
    lines.extend(answer_rows(record));
    if let Some(verdict) = &record.verdict {
        lines.push(verdict.trust.why.clone());
    }
    let codes: Vec<&str> = record
        .findings
        .iter()
        .filter(|finding| finding.severity != Severity::Note)
        .map(|finding| finding.code.as_str())
        .collect();
    if !codes.is_empty() {
        lines.push(format!("findings: {}", codes.join(", ")));
    }
    for line in lines {
        writeln!(out, "{}", shortened(&clean(&line), COLUMNS_MAX))?;
    }
    // The whole checksum, which alone may be longer than a line.
    writeln!(out, "record sha256 {}", checksum(record)?)
}

/// `SAMSUNG MZ7L3 894 GiB · ext4 · Linux 6.8`: the disks, the filesystem and the system.
fn machine_line(record: &Record) -> String {
    let mut parts: Vec<String> = Vec::new();
    for target in &record.targets {
        for disk in target.disks() {
            // A volume has no model, and its label may say whose it is: the kernel's name does not.
            let model = disk.hardware_model().unwrap_or(&disk.name);
            parts.push(format!("{model} {}", format_bytes(disk.size_bytes)));
        }
        if let Some(filesystem) = &target.filesystem {
            parts.push(filesystem.kind.clone());
        }
    }
    let host = &record.host;
    parts.push(format!("Linux {}", host.kernel));
    parts.extend(host.hypervisor.clone());
    parts.dedup();
    parts.join(" · ")
}

/// A line for each grade; without grades, for each operation of a workload; without those, the
/// headline.
fn answer_rows(record: &Record) -> Vec<String> {
    let mut rows = Vec::new();
    if let Some(verdict) = &record.verdict {
        for grade in verdict.grades.iter().take(ROWS_MAX) {
            rows.push(grade_row(grade));
        }
    }
    if rows.is_empty() {
        rows = workload_rows(record);
    }
    if rows.is_empty()
        && let Some(verdict) = &record.verdict
    {
        rows.push(verdict.headline.clone());
    }
    rows
}

fn grade_row(grade: &UseGrade) -> String {
    let name = &grade.name;
    let value = grade.figure.value_text();
    let interval = labels::interval(&grade.figure);
    format!("{name:<11}{value:>10}  {interval:<8} {}", grade.words())
}

/// A line for each operation. Where there are too many, the last one counts the others.
fn workload_rows(record: &Record) -> Vec<String> {
    let mut rows = Vec::new();
    for row in &record.measurements {
        for (kind, op) in shown_ops(row) {
            rows.push(op_row(row, kind, op));
        }
    }
    if rows.len() > ROWS_MAX {
        let more = rows.len() - (ROWS_MAX - 1);
        rows.truncate(ROWS_MAX - 1);
        rows.push(format!("and {more} more"));
    }
    rows
}

fn op_row(row: &Row, kind: OpKind, op: OpRow<'_>) -> String {
    let iops = &op.figures.iops;
    let mut figures = format!("{} {}", iops.value_text(), labels::interval(iops));
    if let Some(p99_ns) = op.figures.seen_latency().p99 {
        figures += &format!(", p99 {}", format_latency(p99_ns));
    }
    let name = &row.data.workload.name;
    format!(
        "{name} {}: {figures} ({})",
        kind.as_str(),
        conditions_text(row)
    )
}

/// The SHA-256 in hexadecimal digits.
fn checksum(record: &Record) -> io::Result<String> {
    let mut json = Vec::new();
    crate::json::write_record(record, &mut json)?;
    let digest = Sha256::digest(&json);
    Ok(digest.iter().map(hex_byte).collect())
}

fn hex_byte(byte: &u8) -> String {
    format!("{byte:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::columns;
    use diskproof_model::target::LayerKind;

    fn shared(record: &Record) -> String {
        crate::fixture::written(|out| write_record(record, out))
    }

    #[test]
    fn ten_lines_without_the_names_of_the_machine() {
        let mut record = crate::fixture::record();
        record.host.name = "secret-host".to_owned();
        record.targets[0].path = "/srv/secret-path".to_owned();
        record.targets[0].layers[0].serial = Some("SECRET-SERIAL".to_owned());
        let mut graded = record.clone();
        let grades = ["bulk load", "scans", "look-ups", "commits"].map(good_grade);
        let verdict = serde_json::json!({
            "headline": "Good.", "grades": grades,
            "trust": { "level": "reliable", "why": "Reliable." },
        });
        graded.verdict = Some(serde_json::from_value(verdict).unwrap());
        for record in [record, graded] {
            let text = shared(&record);
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.len() <= 10, "{text}");
            let (last, rest) = lines.split_last().unwrap();
            assert_eq!(last.len(), "record sha256 ".len() + 64);
            assert!(
                rest.iter().all(|line| columns(line) <= COLUMNS_MAX),
                "{text}"
            );
            assert!(!text.to_lowercase().contains("secret"), "{text}");
        }
    }

    fn good_grade(name: &str) -> serde_json::Value {
        serde_json::json!({
            "name": name, "measurement": 0, "grade": "good",
            "figure": { "n": 9, "value": 3e9, "half_width_95": 3e7, "unit": "B/s" },
            "thresholds": { "limited_from": 1e8, "good_from": 5e8, "source": "a disk" },
        })
    }

    #[test]
    fn volume_is_named_by_the_kernel_alone() {
        let mut record = crate::fixture::record();
        for layer in &mut record.targets[0].layers {
            layer.kind = LayerKind::DeviceMapper;
            layer.model = Some("LVM secret-volume".to_owned());
        }
        let text = shared(&record);
        let disk = record.targets[0].disks().next().unwrap();
        assert!(!text.contains("secret"), "{text}");
        assert!(text.contains(&disk.name), "{text}");
    }

    #[test]
    fn wide_characters_do_not_widen_a_line() {
        let mut record = crate::fixture::record();
        for layer in &mut record.targets[0].layers {
            layer.model = Some("硬盘".repeat(40));
        }
        let text = shared(&record);
        let mut lines = text.lines().rev().skip(1);
        assert!(text.contains("硬盘"), "{text}");
        assert!(lines.all(|line| columns(line) <= COLUMNS_MAX), "{text}");
    }
}
