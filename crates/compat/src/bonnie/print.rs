//! The table and the CSV line of bonnie++ 2.00.

use super::names::{READ, REWRITE, RunLabels, SEEKS, WRITE};
use crate::printer::{ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{Measurement, OpKind};

const KIB: f64 = 1024.0;
/// Fields of format 1.98 behind the last seek: files, their sizes and their rates.
const FILE_FIELDS: usize = 17;
/// Latencies of the tests of many files.
const FILE_LATENCIES: usize = 6;
const HEAD: &str = "\
Version 2.00a       ------Sequential Output------ --Sequential Input- --Random-
CONCURRENCY         -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--
Name:Size etc        /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP
";

/// A test in the report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct TestFigures {
    /// As in the CSV line: KiB per second, or seeks per second.
    rate: String,
    /// As in the table.
    short: String,
    cpu: String,
    latency: String,
}

/// Prints at the end.
#[derive(Debug)]
pub(super) struct TablePrinter {
    labels: RunLabels,
}

impl TablePrinter {
    pub(super) fn new(labels: RunLabels) -> Self {
        Self { labels }
    }

    /// Both rows of the table.
    fn table(&self, tests: &[TestFigures; 6]) -> String {
        let size = format!("{}M", self.labels.size_mib);
        let name = &self.labels.machine;
        let width = 19usize.saturating_sub(name.len());
        let mut row = format!("{name}{size:>width$}");
        let mut latency = format!("{:<17}", "Latency");
        for test in tests {
            row.push_str(&format!("{:>6}{:>4}", test.short, test.cpu));
            latency.push_str(&format!("{:>10}", test.latency));
        }
        let concurrency = match self.labels.concurrency {
            1 => " ".repeat(11),
            n => format!("Concurrency{n:>4}").chars().take(19).collect(),
        };
        let head = HEAD.replace("CONCURRENCY        ", &format!("{concurrency:<19}"));
        format!("{head}{}\n{}\n", row.trim_end(), latency.trim_end())
    }

    /// The 50 fields of format 1.98.
    fn csv(&self, tests: &[TestFigures; 6]) -> String {
        let labels = &self.labels;
        let mut fields = vec![
            "1.98".to_owned(),
            "2.00a".to_owned(),
            labels.machine.clone(),
            labels.concurrency.to_string(),
            labels.seed.to_string(),
            format!("{}M", labels.size_mib),
            labels.chunk_bytes.to_string(),
            labels.seeks.to_string(),
            labels.seekers.to_string(),
        ];
        for test in tests {
            fields.extend([test.rate.clone(), test.cpu.clone()]);
        }
        fields.extend(vec![String::new(); FILE_FIELDS]);
        fields.extend(tests.iter().map(|test| test.latency.clone()));
        fields.extend(vec![String::new(); FILE_LATENCIES]);
        fields.join(",")
    }
}

/// The figures of the test of this name; empty where it was not measured.
fn figures(measurements: &[Measurement], name: &str, counted: &[OpKind]) -> TestFigures {
    let found = measurements.iter().find(|one| one.workload.name == name);
    let Some(measurement) = found.filter(|one| one.wall_ns > 0) else {
        return TestFigures::default();
    };
    let seconds = measurement.wall_ns as f64 / 1e9;
    let ops = || counted.iter().filter_map(|kind| measurement.ops.get(kind));
    let (rate, short) = if name == SEEKS {
        let rate = ops().map(|op| op.count).sum::<u64>() as f64 / seconds;
        (rate, format!("{rate:.0}"))
    } else {
        let rate = ops().map(|op| op.bytes).sum::<u64>() as f64 / KIB / seconds;
        (rate, short_rate(rate))
    };
    let all = measurement.ops.values();
    let worst_ns = all.map(|op| op.latency.max_ns()).max().unwrap_or(0);
    let cpu_ns = measurement.cpu.user_ns + measurement.cpu.system_ns;
    TestFigures {
        rate: format!("{rate:.0}"),
        short,
        cpu: format!("{:.0}", cpu_ns as f64 / measurement.wall_ns as f64 * 100.0),
        latency: latency_text(worst_ns),
    }
}

/// KiB per second as `9500k`, `246m` or `12g`.
fn short_rate(kib: f64) -> String {
    const LARGE: f64 = 9999.5;
    if kib < LARGE {
        format!("{kib:.0}k")
    } else if kib / KIB < LARGE {
        format!("{:.0}m", kib / KIB)
    } else {
        format!("{:.0}g", kib / KIB / KIB)
    }
}

/// Up to 99999us, then up to 99999ms, then seconds.
fn latency_text(ns: u64) -> String {
    match (ns / 1000, ns / 1_000_000) {
        (us @ 0..=99_999, _) => format!("{us}us"),
        (_, ms @ 0..=99_999) => format!("{ms}ms"),
        (_, ms) => format!("{}s", ms / 1000),
    }
}

impl ToolPrinter for TablePrinter {
    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let of = |name, counted: &[OpKind]| figures(result.measurements, name, counted);
        let tests = [
            TestFigures::default(),
            of(WRITE, &[OpKind::Write]),
            of(REWRITE, &[OpKind::Write]),
            TestFigures::default(),
            of(READ, &[OpKind::Read]),
            of(SEEKS, &[OpKind::Read, OpKind::Write]),
        ];
        let (table, csv) = (self.table(&tests), self.csv(&tests));
        match self.labels.is_quiet {
            true => ToolText {
                stdout: format!("{csv}\n"),
                stderr: table,
            },
            false => ToolText {
                stdout: format!("{table}\n{csv}\n"),
                stderr: String::new(),
            },
        }
    }
}
