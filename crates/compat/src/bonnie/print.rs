//! The table and the CSV line of bonnie++ 2.00. Programs read the CSV fields by their position, so
//! a test that did not run has empty fields.

use crate::figures::{as_seconds, bytes_of_kind, ops_of_kind, timed_requests};
use crate::printer::{ToolPrinter, ToolResult, ToolText};
use diskproof_model::files::{
    FileOperation, FileOrder, FileStep, FileStepMeasurement, FilesMeasurement, FilesPlan,
};
use diskproof_model::measurement::{CpuTime, Measurement, OpKind};

const KIB: f64 = 1024.0;
/// The number of tests of the large file in a run: those by character do not run here.
pub(super) const LARGE_FILE_TESTS: usize = 4;
/// The number of fields from `num_files` to `ran_del_cpu`, which are empty without many files.
const FILE_FIELDS: usize = 17;
/// The names of the fields of format 1.98, in their order. The other formats lack some of them.
const FIELDS: &str = "\
format_version,bonnie_version,name,concurrency,seed,file_size,io_chunk_size,seeks_count,seekers,\
putc,putc_cpu,put_block,put_block_cpu,rewrite,rewrite_cpu,getc,getc_cpu,get_block,get_block_cpu,\
seeks,seeks_cpu,num_files,max_size,min_size,num_dirs,file_chunk_size,seq_create,seq_create_cpu,\
seq_stat,seq_stat_cpu,seq_del,seq_del_cpu,ran_create,ran_create_cpu,ran_stat,ran_stat_cpu,ran_del,\
ran_del_cpu,putc_latency,put_block_latency,rewrite_latency,getc_latency,get_block_latency,\
seeks_latency,seq_create_latency,seq_stat_latency,seq_del_latency,ran_create_latency,\
ran_stat_latency,ran_del_latency";
/// The fields that format 1.96 lacks.
const NOT_IN_196: [&str; 2] = ["seeks_count", "seekers"];
/// The fields that format 1.03 lacks, besides the latencies.
const NOT_IN_103: [&str; 11] = [
    "format_version",
    "bonnie_version",
    "concurrency",
    "seed",
    "io_chunk_size",
    "seeks_count",
    "seekers",
    "max_size",
    "min_size",
    "num_dirs",
    "file_chunk_size",
];
/// The end of the names of latencies.
const LATENCY_END: &str = "_latency";
/// The lines above the table of the large file.
const HEAD: &str = "\
Version 2.00a       ------Sequential Output------ --Sequential Input- --Random-
                    -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--
Name:Size etc        /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP
";

/// The columns of a table's first field, to which a longer name of the machine is cut.
const NAME_COLUMNS: usize = 19;

/// Bytes of a chunk, unless the user sets another size.
pub(super) const CHUNK_BYTES: u32 = 8192;

/// The unit in which bonnie++ counts small files.
pub(super) const FILES_UNIT: u64 = 1024;

/// The name of the test that writes the large file.
pub(super) const WRITE: &str = "block-write";
/// The name of the test that reads each chunk and writes it back.
pub(super) const REWRITE: &str = "rewrite";
/// The name of the test that reads the large file.
pub(super) const READ: &str = "block-read";
/// The name of the test of random blocks, which counts seeks instead of bytes.
pub(super) const SEEKS: &str = "seeks";

/// The settings as the report shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunLabels {
    /// The name that the user gave the machine.
    pub(super) machine: Option<String>,
    /// The number of copies that run at the same time (-c).
    pub(super) concurrency: u32,
    /// The size of the large file; 0 where its tests do not run, as with -s 0.
    pub(super) size_mib: u64,
    /// Bytes of a request to the large file.
    pub(super) chunk_bytes: u32,
    /// The number of seeks.
    pub(super) seeks: u64,
    /// The number of processes that seek.
    pub(super) seekers: u32,
    /// The seed of the plan.
    pub(super) seed: u64,
    /// True if only the CSV line goes to stdout, and the table to stderr (-q).
    pub(super) is_quiet: bool,
    /// The number of runs (-x). Of several runs, only the CSV lines are printed.
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

/// The name of the workload of a test in one of several runs, which count from 0.
pub(super) fn name_in_run(test: &str, run: u32) -> String {
    match run {
        0 => test.to_owned(),
        _ => format!("{test}-{}", run + 1),
    }
}

/// The figures of a test as texts; all empty where it did not run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct TestFigures {
    /// The rate in the CSV line: KiB per second, or seeks or files per second.
    rate: String,
    /// The rate in the table, which has five columns for it.
    short_rate: String,
    /// The processor time in percent of the wall time.
    cpu: String,
    /// The longest latency.
    latency: String,
}

/// The figures of a table's six tests. Of the large file: writes by character, writes, rewrites,
/// reads by character, reads, seeks. Of many files: create, read or stat, and delete, in order and
/// at random.
type TableFigures = [TestFigures; 6];

/// Prints at the end of the last run.
#[derive(Debug)]
pub(super) struct TablePrinter {
    labels: RunLabels,
    large_file: TableFigures,
    many_files: TableFigures,
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
            large_file: Default::default(),
            many_files: Default::default(),
            progress: TableProgress::Measuring,
        }
    }

    /// The table of the tests of many files.
    fn many_files_table(&self, files: &FilesPlan, machine: &str) -> String {
        let count = files.count / FILES_UNIT;
        let (max, min) = (files.file_bytes_max, files.file_bytes_min);
        let directories = files.directories;
        let (label, number) = if max == 0 && directories == 1 {
            ("              files", count.to_string())
        } else if min == 0 && directories == 1 {
            ("files:max          ", format!("{count}:{max}:0"))
        } else {
            (
                "files:max:min      ",
                format!("{count}:{max}:{min}/{directories}"),
            )
        };
        let name = format!("{machine:<NAME_COLUMNS$.NAME_COLUMNS$}");
        format!(
            "Version 2.00a       ------Sequential Create------ --------Random Create--------\n\
             {name} -Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--\n\
             {label}  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP\n{}",
            rows(format!("{number:>19}"), &self.many_files)
        )
    }

    /// The table of the tests of the large file. The machine's name takes room from the size.
    fn large_file_table(&self, tests: &TableFigures, name: &str) -> String {
        let mut size = size_text(self.labels.size_mib, &["M", "G"]);
        let chunk = chunk_text(self.labels.chunk_bytes);
        let copies = self.labels.concurrency;
        if copies > 1 {
            size = format!("{size}:{chunk}:{copies}");
        } else if !chunk.is_empty() {
            size = format!("{size}:{chunk}");
        }
        let width = NAME_COLUMNS.saturating_sub(size.chars().count() + 1);
        HEAD.to_owned() + &rows(format!("{name:<width$.width$} {size}"), tests)
    }

    /// The CSV line with the figures of all tests.
    fn csv_line(&self, tests: &TableFigures, machine: &str) -> String {
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
                add_rates(&mut fields, &self.many_files);
            }
        }
        add_latencies(&mut fields, tests);
        add_latencies(&mut fields, &self.many_files);
        labels.csv.join(&fields)
    }

    /// The CSV lines of several runs, below the names of the fields.
    fn csv_of_runs(&self, measurements: &[Measurement], machine: &str) -> String {
        let names: Vec<String> = FIELDS.split(',').map(str::to_owned).collect();
        let mut text = self.labels.csv.join(&names) + "\n";
        for run in 0..self.labels.runs {
            text.push_str(&self.csv_line(&large_file_figures(measurements, run), machine));
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
    // One directory is an empty field, as no directory is in the tool. 2.00a writes their number
    // into the field of the chunk, behind an empty one.
    let directories = match files.directories {
        1 => String::new(),
        number => number.to_string(),
    };
    [
        (files.count / FILES_UNIT).to_string(),
        text_unless_zero(files.file_bytes_max),
        text_unless_zero(files.file_bytes_min),
        String::new(),
        directories,
    ]
}

fn text_unless_zero(number: u64) -> String {
    match number {
        0 => String::new(),
        _ => number.to_string(),
    }
}

fn add_rates(fields: &mut Vec<String>, tests: &TableFigures) {
    for test in tests {
        fields.push(test.rate.clone());
        fields.push(test.cpu.clone());
    }
}

fn add_latencies(fields: &mut Vec<String>, tests: &TableFigures) {
    for test in tests {
        fields.push(test.latency.clone());
    }
}

/// The row of the rates, which begins with this label, and the row of the latencies.
fn rows(label: String, tests: &TableFigures) -> String {
    let (mut rates, mut latencies) = (label, format!("{:<17}", "Latency"));
    for test in tests {
        rates.push_str(&format!("{:>6}{:>4}", test.short_rate, test.cpu));
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

    /// Joins those of the values of all 50 [`FIELDS`] whose fields the format has.
    fn join(self, values: &[String]) -> String {
        debug_assert_eq!(values.len(), FIELDS.split(',').count(), "a value a field");
        let mut known = Vec::new();
        for (name, value) in FIELDS.split(',').zip(values) {
            if self.has_field(name) {
                known.push(value.as_str());
            }
        }
        known.join(",")
    }

    /// True if the format has this one of the [`FIELDS`].
    fn has_field(self, name: &str) -> bool {
        match self {
            Self::V103 => !NOT_IN_103.contains(&name) && !name.ends_with(LATENCY_END),
            Self::V196 => !NOT_IN_196.contains(&name),
            Self::V198 => true,
        }
    }
}

/// The figures of a test of the large file in one of several runs; empty where it was not measured.
/// `counted` are the kinds of operations that its rate counts.
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
            SEEKS => ops_of_kind(measurement, *kind) as f64,
            _ => bytes_of_kind(measurement, *kind) as f64 / KIB,
        };
    }
    let rate = moved / as_seconds(measurement.wall_ns);
    let short_rate = match test {
        SEEKS => format!("{rate:.0}"),
        _ => short_kib_rate(rate),
    };
    TestFigures {
        rate: format!("{rate:.0}"),
        short_rate,
        cpu: cpu_text(measurement.cpu, measurement.wall_ns),
        latency: latency_text(worst_call_ns(measurement)),
    }
}

/// The longest read or write of a measurement, with the sync that -b adds to each write. As in
/// bonnie++, the sync at the end of a test counts in its rate only.
fn worst_call_ns(measurement: &Measurement) -> u64 {
    timed_requests(measurement)
        .map(|op| op.latency.max_ns())
        .max()
        .unwrap_or(0)
}

fn cpu_text(cpu: CpuTime, wall_ns: u64) -> String {
    let busy_ns = cpu.user_ns + cpu.system_ns;
    format!("{:.0}", busy_ns as f64 / wall_ns as f64 * 100.0)
}

/// KiB per second in five columns: `9500k`, `24.6m`, `246m` or `1.2g`.
fn short_kib_rate(kib: f64) -> String {
    let mib = kib / KIB;
    if kib < 10_000.0 {
        format!("{:.0}k", kib.floor())
    } else if mib < 100.0 {
        format!("{mib:.1}m")
    } else if mib < 1000.0 {
        format!("{mib:.0}m")
    } else {
        format!("{:.1}g", mib / KIB)
    }
}

/// A number in the largest of these units that shows it exactly. Each unit is 1024 of the one
/// before.
fn size_text(mut number: u64, units: &[&str]) -> String {
    let mut unit = 0;
    while number > 0 && number.is_multiple_of(1024) && unit + 1 < units.len() {
        number /= 1024;
        unit += 1;
    }
    format!("{number}{}", units[unit])
}

/// The size of a chunk as `64k`; empty for the tool's own size.
fn chunk_text(bytes: u32) -> String {
    match bytes {
        CHUNK_BYTES => String::new(),
        bytes => size_text(u64::from(bytes), &["", "k", "m"]),
    }
}

/// A latency in the smallest of these units in which it has at most five digits: `99999us`,
/// `99999ms`, else seconds.
fn latency_text(ns: u64) -> String {
    /// The largest number of five digits.
    const NUMBER_MAX: u64 = 99_999;
    let us = ns / 1000;
    let ms = us / 1000;
    if us <= NUMBER_MAX {
        format!("{us}us")
    } else if ms <= NUMBER_MAX {
        format!("{ms}ms")
    } else {
        format!("{}s", ms / 1000)
    }
}

impl ToolPrinter for TablePrinter {
    fn files_measured(&mut self, files: &FilesMeasurement) {
        self.progress = TableProgress::FilesMeasured;
        // bonnie++ reads files that have content, and only looks up empty ones.
        let read_or_stat = match &self.labels.files {
            Some(plan) if plan.file_bytes_max > 0 => FileOperation::Read,
            _ => FileOperation::Stat,
        };
        let operations = [FileOperation::Create, read_or_stat, FileOperation::Delete];
        let mut column = 0;
        for order in [FileOrder::Sequential, FileOrder::Random] {
            for operation in operations {
                let step = FileStep { operation, order };
                self.many_files[column] =
                    match files.steps.iter().find(|measured| measured.step == step) {
                        Some(measured) => step_figures(measured),
                        None => TestFigures::default(),
                    };
                column += 1;
            }
        }
    }

    /// The end of each of the two loads: of the large file, then of many files. The figures of the
    /// first are kept until the second has ended, and printed once.
    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let machine = match &self.labels.machine {
            Some(machine) => machine.clone(),
            None => result.host_name.to_owned(),
        };
        if self.labels.runs > 1 {
            return ToolText::out(self.csv_of_runs(result.measurements, &machine));
        }
        if !result.measurements.is_empty() {
            self.large_file = large_file_figures(result.measurements, 0);
        }
        if self.progress == TableProgress::Printed || self.has_second_load(result) {
            return ToolText::default();
        }
        self.progress = TableProgress::Printed;
        self.report_text(&machine)
    }
}

impl TablePrinter {
    /// True if the load that has ended is the first one, and the one of many files follows. It does
    /// not after a signal or a failed test.
    fn has_second_load(&self, result: &ToolResult<'_>) -> bool {
        self.labels.files.is_some()
            && self.progress == TableProgress::Measuring
            && result.measurements.len() == LARGE_FILE_TESTS
            && !result.interrupted
    }

    /// The tables of both loads and the CSV line.
    fn report_text(&self, machine: &str) -> ToolText {
        let mut tables = match self.labels.size_mib {
            0 => String::new(),
            _ => self.large_file_table(&self.large_file, machine),
        };
        match &self.labels.files {
            Some(files) => tables.push_str(&self.many_files_table(files, machine)),
            None => tables.push('\n'),
        }
        let csv = self.csv_line(&self.large_file, machine);
        if self.labels.is_quiet {
            ToolText {
                stdout: format!("{csv}\n"),
                stderr: tables,
            }
        } else {
            ToolText::out(format!("{tables}{csv}\n"))
        }
    }
}

/// The figures of a test of many files; empty where it failed or did nothing.
fn step_figures(measured: &FileStepMeasurement) -> TestFigures {
    if measured.wall_ns == 0 || measured.op.count == 0 || !measured.op.errors.is_empty() {
        return TestFigures::default();
    }
    let rate = measured.op.count as f64 / as_seconds(measured.wall_ns);
    TestFigures {
        rate: format!("{rate:.0}"),
        short_rate: short_file_rate(rate),
        cpu: cpu_text(measured.cpu, measured.wall_ns),
        latency: latency_text(measured.op.latency.max_ns()),
    }
}

/// Files per second in five columns.
fn short_file_rate(rate: f64) -> String {
    /// The least rate that would round to six digits.
    const SIX_DIGITS_FROM: f64 = 99_999.5;
    if rate < SIX_DIGITS_FROM {
        format!("{rate:.0}")
    } else {
        format!("{:.0}k", rate / 1000.0)
    }
}

/// The figures of the large file in one of several runs.
fn large_file_figures(measurements: &[Measurement], run: u32) -> TableFigures {
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
    use crate::fixture::measurement;
    use diskproof_model::plan::Workload;

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
            assert_eq!(short_kib_rate(kib), text, "{kib}");
        }
        let size = |mib| size_text(mib, &["M", "G"]);
        assert_eq!([1024, 4018, 1 << 20].map(size), ["1G", "4018M", "1024G"]);
        assert_eq!([8192, 65536].map(chunk_text), ["", "64k"]);
    }

    #[test]
    fn latency_is_that_of_a_call_and_not_of_the_sync_at_the_end() {
        let mut test = measurement(&Workload::named("w"), OpKind::Write, 1, 1_000_000_000);
        let mut sync = test.ops[&OpKind::Write].clone();
        test.ops
            .get_mut(&OpKind::Write)
            .unwrap()
            .latency
            .record(6_000_000);
        sync.latency.record(177_000_000);
        test.ops.insert(OpKind::Sync, sync);
        let worst_ns = worst_call_ns(&test);
        assert!((5_900_000..6_100_000).contains(&worst_ns), "{worst_ns}");
        // With -b the sync follows each write.
        let committed = test.ops.remove(&OpKind::Sync).unwrap();
        test.ops.insert(OpKind::Commit, committed);
        let worst_ns = worst_call_ns(&test);
        assert!((174_000_000..180_000_000).contains(&worst_ns), "{worst_ns}");
    }
}
