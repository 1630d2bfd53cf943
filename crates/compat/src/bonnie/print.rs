//! The table and the CSV line of bonnie++ 2.00: the names of its tests, and what a report says of a
//! run.

use crate::figures::{as_seconds, bytes, count};
use crate::printer::{ToolPrinter, ToolResult, ToolText};
use diskproof_model::files::{
    FileOperation, FileOrder, FileStep, FileStepMeasurement, FilesMeasurement, FilesPlan,
};
use diskproof_model::measurement::{CpuTime, Measurement, OpKind};

const KIB: f64 = 1024.0;
/// The tests of a run on the large file.
const LARGE_FILE_TESTS: usize = 4;
/// Fields of format 1.98 behind the last seek: files, their sizes and their rates.
const FILE_FIELDS: usize = 17;
/// The fields of format 1.98. The other formats lack some of them.
const FIELDS: &str = "\
format_version,bonnie_version,name,concurrency,seed,file_size,io_chunk_size,seeks_count,seekers,\
putc,putc_cpu,put_block,put_block_cpu,rewrite,rewrite_cpu,getc,getc_cpu,get_block,get_block_cpu,\
seeks,seeks_cpu,num_files,max_size,min_size,num_dirs,file_chunk_size,seq_create,seq_create_cpu,\
seq_stat,seq_stat_cpu,seq_del,seq_del_cpu,ran_create,ran_create_cpu,ran_stat,ran_stat_cpu,ran_del,\
ran_del_cpu,putc_latency,put_block_latency,rewrite_latency,getc_latency,get_block_latency,\
seeks_latency,seq_create_latency,seq_stat_latency,seq_del_latency,ran_create_latency,\
ran_stat_latency,ran_del_latency";
const HEAD: &str = "\
Version 2.00a       ------Sequential Output------ --Sequential Input- --Random-
                    -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--
Name:Size etc        /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP
";

/// Bytes of a chunk, unless the user sets another size.
pub(super) const CHUNK_BYTES: u32 = 8192;

/// bonnie++ counts small files in this unit.
pub(super) const FILES_UNIT: u64 = 1024;

pub(super) const WRITE: &str = "block-write";
pub(super) const REWRITE: &str = "rewrite";
pub(super) const READ: &str = "block-read";
pub(super) const SEEKS: &str = "seeks";

/// The settings as the report shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunLabels {
    /// The name that the user gave the machine.
    pub(super) machine: Option<String>,
    pub(super) concurrency: u32,
    /// 0: the tests of the large file do not run.
    pub(super) size_mib: u64,
    pub(super) chunk_bytes: u32,
    pub(super) seeks: u64,
    pub(super) seekers: u32,
    /// That of the plan.
    pub(super) seed: u64,
    pub(super) is_quiet: bool,
    pub(super) runs: u32,
    pub(super) csv: CsvFormat,
    /// The tests of many files, where they run.
    pub(super) files: Option<FilesPlan>,
}

/// The formats of the CSV line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CsvFormat {
    /// The line of 1.03, with 27 fields.
    V103,
    /// The line of 1.96, with 48 fields.
    V196,
    /// The line of 1.98, with 50 fields.
    V198,
}

/// The workload of a test in one of several runs.
pub(super) fn name_in_run(test: &str, run: u32) -> String {
    match run {
        0 => test.to_owned(),
        _ => format!("{test}-{}", run + 1),
    }
}

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

/// Prints at the end of the last run.
#[derive(Debug)]
pub(super) struct TablePrinter {
    labels: RunLabels,
    /// Figures of the large file, in the order of the table.
    tests: [TestFigures; 6],
    /// Figures of many files, in the order of the table.
    files: [TestFigures; 6],
    progress: TableProgress,
}

/// The tests that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TableProgress {
    Measuring,
    /// The tests of many files, which are the last, were measured.
    FilesMeasured,
    Printed,
}

impl TablePrinter {
    pub(super) fn new(labels: RunLabels) -> Self {
        Self {
            labels,
            tests: Default::default(),
            files: Default::default(),
            progress: TableProgress::Measuring,
        }
    }

    /// The table of the tests of many files.
    fn files_table(&self, files: &FilesPlan, machine: &str) -> String {
        let count = files.count / FILES_UNIT;
        let (max, min) = (files.file_bytes_max, files.file_bytes_min);
        let (label, number) = match (max, min, files.directories) {
            (0, _, 1) => ("              files", count.to_string()),
            (_, 0, 1) => ("files:max          ", format!("{count}:{max}:0")),
            (_, _, dirs) => ("files:max:min      ", format!("{count}:{max}:{min}/{dirs}")),
        };
        format!(
            "Version 2.00a       ------Sequential Create------ --------Random Create--------\n\
             {machine:<19} -Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--\n\
             {label}  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP\n{}",
            rows(format!("{number:>19}"), &self.files)
        )
    }

    /// The table of the tests of the large file.
    fn table(&self, tests: &[TestFigures; 6], name: &str) -> String {
        let mut size = size_text(self.labels.size_mib, &["M", "G"]);
        let chunk = chunk_text(self.labels.chunk_bytes);
        match (self.labels.concurrency, chunk.as_str()) {
            (1, "") => {}
            (1, chunk) => size = format!("{size}:{chunk}"),
            (copies, chunk) => size = format!("{size}:{chunk}:{copies}"),
        }
        let width = 19usize.saturating_sub(name.len());
        HEAD.to_owned() + &rows(format!("{name}{size:>width$}"), tests)
    }

    /// The CSV line with the figures of all tests.
    fn csv(&self, tests: &[TestFigures; 6], machine: &str) -> String {
        let labels = &self.labels;
        let mut fields = labels.csv.versions().to_vec();
        fields.push(machine.to_owned());
        fields.push(labels.concurrency.to_string());
        fields.push(labels.seed.to_string());
        fields.extend(labels.large_file_fields());
        add_rates(&mut fields, tests);
        match &labels.files {
            None => fields.extend(vec![String::new(); FILE_FIELDS]),
            Some(files) => {
                fields.extend(small_file_fields(files));
                add_rates(&mut fields, &self.files);
            }
        }
        add_latencies(&mut fields, tests);
        add_latencies(&mut fields, &self.files);
        labels.csv.line(&fields)
    }

    /// The CSV lines of several runs, below the names of the fields.
    fn csv_of_runs(&self, measurements: &[Measurement], machine: &str) -> String {
        let names: Vec<String> = FIELDS.split(',').map(str::to_owned).collect();
        let mut text = self.labels.csv.line(&names) + "\n";
        for run in 0..self.labels.runs {
            text.push_str(&self.csv(&tests(measurements, run), machine));
            text.push('\n');
        }
        text
    }
}

impl RunLabels {
    /// The CSV fields that say how the large file is tested.
    fn large_file_fields(&self) -> Vec<String> {
        if self.size_mib == 0 {
            return vec![String::new(); 4];
        }
        vec![
            size_text(self.size_mib, &["M", "G"]),
            chunk_text(self.chunk_bytes),
            self.seeks.to_string(),
            self.seekers.to_string(),
        ]
    }
}

/// The CSV fields that say how many files are tested.
fn small_file_fields(files: &FilesPlan) -> [String; 5] {
    // One directory is an empty field, as no directory is in the tool.
    let directories = match files.directories {
        1 => String::new(),
        number => number.to_string(),
    };
    let chunk_bytes = String::new();
    [
        (files.count / FILES_UNIT).to_string(),
        text_unless_zero(files.file_bytes_max),
        text_unless_zero(files.file_bytes_min),
        directories,
        chunk_bytes,
    ]
}

fn text_unless_zero(number: u64) -> String {
    match number {
        0 => String::new(),
        _ => number.to_string(),
    }
}

fn add_rates(fields: &mut Vec<String>, tests: &[TestFigures; 6]) {
    for test in tests {
        fields.push(test.rate.clone());
        fields.push(test.cpu.clone());
    }
}

fn add_latencies(fields: &mut Vec<String>, tests: &[TestFigures; 6]) {
    for test in tests {
        fields.push(test.latency.clone());
    }
}

/// The row of the rates, which begins with this label, and the row of the latencies.
fn rows(label: String, tests: &[TestFigures; 6]) -> String {
    let (mut rates, mut latencies) = (label, format!("{:<17}", "Latency"));
    for test in tests {
        rates.push_str(&format!("{:>6}{:>4}", test.short, test.cpu));
        latencies.push_str(&format!("{:>10}", test.latency));
    }
    format!("{}\n{}\n", rates.trim_end(), latencies.trim_end())
}

impl CsvFormat {
    /// The version of the format, and that of the bonnie++ that writes it.
    fn versions(self) -> [String; 2] {
        match self {
            Self::V103 => ["1.03", "1.03"],
            Self::V196 => ["1.96", "1.96"],
            Self::V198 => ["1.98", "2.00a"],
        }
        .map(str::to_owned)
    }

    /// The line that has those of the 50 fields which the format knows.
    fn line(self, fields: &[String]) -> String {
        let mut known = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            if self.has_field(index) {
                known.push(field.as_str());
            }
        }
        known.join(",")
    }

    /// True if the format has the field of this index in format 1.98.
    fn has_field(self, index: usize) -> bool {
        match self {
            // Name, size, rates of the file; number of files, their rates.
            Self::V103 => matches!(index, 2 | 5 | 9..=21 | 26..=37),
            // Without the number of seeks and of seekers.
            Self::V196 => !matches!(index, 7 | 8),
            Self::V198 => true,
        }
    }
}

/// The figures of a test in one of several runs; empty where it was not measured.
fn figures(measurements: &[Measurement], test: &str, run: u32, counted: &[OpKind]) -> TestFigures {
    let name = name_in_run(test, run);
    let Some(measurement) = measurements
        .iter()
        .find(|measurement| measurement.workload.name == name && measurement.wall_ns > 0)
    else {
        return TestFigures::default();
    };
    let mut moved = 0.0;
    for kind in counted {
        moved += match test {
            SEEKS => count(measurement, *kind) as f64,
            _ => bytes(measurement, *kind) as f64 / KIB,
        };
    }
    let rate = moved / as_seconds(measurement.wall_ns);
    let short = match test {
        SEEKS => format!("{rate:.0}"),
        _ => short_rate(rate),
    };
    let worst_ns = measurement
        .ops
        .values()
        .map(|op| op.latency.max_ns())
        .max()
        .unwrap_or(0);
    TestFigures {
        rate: format!("{rate:.0}"),
        short,
        cpu: cpu_text(measurement.cpu, measurement.wall_ns),
        latency: latency_text(worst_ns),
    }
}

fn cpu_text(cpu: CpuTime, wall_ns: u64) -> String {
    let busy_ns = cpu.user_ns + cpu.system_ns;
    format!("{:.0}", busy_ns as f64 / wall_ns as f64 * 100.0)
}

/// KiB per second as `9500k`, `24.6m`, `246m` or `1.2g`.
fn short_rate(kib: f64) -> String {
    match (kib, kib / KIB) {
        (..10_000.0, _) => format!("{:.0}k", kib.floor()),
        (_, mib @ ..100.0) => format!("{mib:.1}m"),
        (_, mib @ ..1000.0) => format!("{mib:.0}m"),
        (_, mib) => format!("{:.1}g", mib / KIB),
    }
}

/// A number in the largest of these units, each of which is 1024 of the one before, that shows it
/// exactly.
fn size_text(mut number: u64, units: &[&str]) -> String {
    let mut unit = 0;
    while number > 0 && number.is_multiple_of(1024) && unit + 1 < units.len() {
        (number, unit) = (number / 1024, unit + 1);
    }
    format!("{number}{}", units[unit])
}

/// The size of a chunk; nothing where it is that of the tool.
fn chunk_text(bytes: u32) -> String {
    match bytes {
        CHUNK_BYTES => String::new(),
        bytes => size_text(u64::from(bytes), &["", "k", "m"]),
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
    fn files_measured(&mut self, files: &FilesMeasurement) {
        self.progress = TableProgress::FilesMeasured;
        let looked_up = match &self.labels.files {
            Some(plan) if plan.file_bytes_max > 0 => FileOperation::Read,
            _ => FileOperation::Stat,
        };
        let operations = [FileOperation::Create, looked_up, FileOperation::Delete];
        let mut column = 0;
        for order in [FileOrder::Sequential, FileOrder::Random] {
            for operation in operations {
                let step = FileStep { operation, order };
                self.files[column] = match files.steps.iter().find(|measured| measured.step == step)
                {
                    Some(measured) => step_figures(measured),
                    None => TestFigures::default(),
                };
                column += 1;
            }
        }
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let machine = match &self.labels.machine {
            Some(machine) => machine.clone(),
            None => result.host_name.to_owned(),
        };
        if self.labels.runs > 1 {
            return ToolText::out(self.csv_of_runs(result.measurements, &machine));
        }
        if !result.measurements.is_empty() {
            self.tests = tests(result.measurements, 0);
        }
        let is_measured = result.measurements.len() == LARGE_FILE_TESTS;
        let files_follow = self.labels.files.is_some()
            && self.progress == TableProgress::Measuring
            && is_measured
            && !result.interrupted;
        if files_follow || self.progress == TableProgress::Printed {
            return ToolText::default();
        }
        self.progress = TableProgress::Printed;
        let mut table = match self.labels.size_mib {
            0 => String::new(),
            _ => self.table(&self.tests, &machine),
        };
        match &self.labels.files {
            Some(files) => table.push_str(&self.files_table(files, &machine)),
            None => table.push('\n'),
        }
        let csv = self.csv(&self.tests, &machine);
        if self.labels.is_quiet {
            ToolText {
                stdout: format!("{csv}\n"),
                stderr: table,
            }
        } else {
            ToolText::out(format!("{table}{csv}\n"))
        }
    }
}

/// The figures of a test of many files; empty where it failed.
fn step_figures(measured: &FileStepMeasurement) -> TestFigures {
    if measured.wall_ns == 0 || measured.op.count == 0 || !measured.op.errors.is_empty() {
        return TestFigures::default();
    }
    let rate = measured.op.count as f64 / as_seconds(measured.wall_ns);
    TestFigures {
        rate: format!("{rate:.0}"),
        // Five columns.
        short: if rate < 99_999.5 {
            format!("{rate:.0}")
        } else {
            format!("{:.0}k", rate / 1000.0)
        },
        cpu: cpu_text(measured.cpu, measured.wall_ns),
        latency: latency_text(measured.op.latency.max_ns()),
    }
}

/// The tests of a run in the order of the report.
fn tests(measurements: &[Measurement], run: u32) -> [TestFigures; 6] {
    [
        TestFigures::default(),
        figures(measurements, WRITE, run, &[OpKind::Write]),
        figures(measurements, REWRITE, run, &[OpKind::Write]),
        TestFigures::default(),
        figures(measurements, READ, run, &[OpKind::Read]),
        figures(measurements, SEEKS, run, &[OpKind::Read, OpKind::Write]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As bonnie++ 2.00a prints them.
    #[test]
    fn rates_and_sizes_have_the_units_of_the_tool() {
        for (kib, text) in [
            (9_999.9, "9999k"),
            (10_000.0, "9.8m"),
            (102_399.0, "100.0m"),
            (251_836.0, "246m"),
            (1_248_254.0, "1.2g"),
            (1_608_149.0, "1.5g"),
        ] {
            assert_eq!(short_rate(kib), text, "{kib}");
        }
        let size = |mib| size_text(mib, &["M", "G"]);
        assert_eq!([1024, 4018, 1 << 20].map(size), ["1G", "4018M", "1024G"]);
        assert_eq!([8192, 65536].map(chunk_text), ["", "64k"]);
    }
}
