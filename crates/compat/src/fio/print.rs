//! What a run of jobs prints: the forms of output, in fio's order.

use super::frame::{EMULATES, RunFrame, lines};
use super::json::document;
use super::logs::logs;
use super::normal::{entry as entry_text, group as group_text, short};
use super::stats::{entries, error_number};
use super::terse::line;
use super::values::{Base, bytes};
use crate::command::GivenArguments;
use crate::jobs::{DescribedJob, DescribedJobs, SizeRange};
use crate::printer::{ResultsSoFar, ToolFile, ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{DiskTotals, Measurement};
use diskproof_model::plan::{EngineChoice, EngineKind};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The forms of output that were chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FioOutput {
    /// True of the output for people.
    pub(super) normal: bool,
    terse: Option<u32>,
    json: bool,
    json_plus: bool,
}

impl FioOutput {
    /// Reads `--output-format` and its relatives.
    pub(super) fn read(general: &GivenArguments) -> Result<Self, String> {
        let version = general.value("terse-version").unwrap_or("3");
        let version = match version.parse() {
            Ok(version @ 2..=5) => version,
            _ => return Err(format!("bad terse version format: {version}")),
        };
        let mut chosen = Self::default();
        let formats = general.value("output-format");
        for format in formats.unwrap_or("normal").split(',').map(str::trim) {
            match format {
                "normal" => chosen.normal = true,
                "terse" | "minimal" => chosen.terse = Some(version),
                "json" => chosen.json = true,
                "json+" => (chosen.json, chosen.json_plus) = (true, true),
                other => {
                    return Err(format!(
                        "failed parsing --output-format {other}; there are normal, json, json+ \
                         and terse"
                    ));
                }
            }
        }
        if general.has("minimal") {
            chosen = Self {
                terse: Some(version),
                ..Self::default()
            };
        }
        if general.has("append-terse") {
            chosen.terse = Some(version);
        }
        Ok(chosen)
    }
}

/// Prints the jobs first, and the results at the end.
pub(super) struct FioPrinter {
    pub(super) output: FioOutput,
    pub(super) described: DescribedJobs,
    /// The file that everything goes to, in one piece.
    pub(super) saved_to: Option<PathBuf>,
    /// Nanoseconds after which the output is repeated while jobs run; `None`: never.
    pub(super) status_interval_ns: Option<u64>,
    /// Measurements that ended before the current jobs.
    pub(super) finished: Vec<Measurement>,
    /// The text printed so far, where it goes to a file.
    pub(super) status: String,
}

impl FioPrinter {
    /// Text for stdout now, or for the file at the end.
    fn say(&mut self, text: String) -> String {
        if self.saved_to.is_none() {
            return text;
        }
        self.status.push_str(&text);
        String::new()
    }

    fn head(&self) -> String {
        if !self.output.normal {
            return String::new();
        }
        let mut text = String::new();
        let (mut threads, mut processes) = (0, 0);
        for job in &self.described.jobs {
            let (name, group) = (&job.name, job.group);
            let rw = self.value_or(job, "rw", "read");
            let [reads, writes, trims] = job.block_sizes.map(|sizes| shown_sizes(sizes, job.base));
            let rw = shown_rw(&rw);
            let engine = self.value_or(job, "ioengine", "psync");
            let depth = bytes(&self.value_or(job, "iodepth", "1"), Base::Binary).unwrap_or(1);
            let _ = writeln!(
                text,
                "{name}: (g={group}): rw={rw}, bs=(R) {reads}, (W) {writes}, (T) {trims}, \
                 ioengine={engine}, iodepth={depth}"
            );
            if job.copies > 1 {
                text.push_str("...\n");
            }
            if self.described.is_on(job, "thread", false) {
                threads += job.copies;
            } else {
                processes += job.copies;
            }
        }
        let _ = writeln!(text, "{EMULATES}\nStarting {}", counted(threads, processes));
        text
    }

    /// The value of an option of a job, or fio's default.
    fn value_or(&self, job: &DescribedJob, key: &str, default: &str) -> String {
        match self.described.value(job, key) {
            Some(value) => value,
            None => default.to_owned(),
        }
    }

    /// The disks, unless every job turns their figures off.
    fn shown_disks<'a>(&self, disks: &'a [DiskTotals]) -> &'a [DiskTotals] {
        let mut jobs = self.described.jobs.iter();
        if jobs.any(|job| self.described.is_on(job, "disk_util", true)) {
            disks
        } else {
            &[]
        }
    }

    fn text(&self, measurements: &[Measurement], so_far: &RunState<'_>) -> String {
        let mut entries = entries(&self.described, measurements);
        for entry in entries.iter_mut().filter(|entry| entry.runtime_ms == 0) {
            let failed = so_far
                .error
                .map(|name| (error_number(name), name.to_owned()));
            entry.error = entry.error.take().or(failed);
        }
        let frame = RunFrame {
            unix_ns: so_far.unix_ns,
            time: local_time(so_far.unix_ns),
            elapsed_s: elapsed_s(measurements),
            global: &self.described.global,
            disks: self.shown_disks(so_far.disks),
            entries: &entries,
        };
        let mut text = String::new();
        if let Some(version) = self.output.terse {
            text.extend(entries.iter().map(|entry| line(entry, &frame, version)));
        }
        if self.output.json {
            text.push_str(&document(&frame, self.output.json_plus));
        }
        if self.output.normal {
            text.push('\n');
            let pid = std::process::id();
            for entry in &entries {
                if entry.runtime_ms > 0 || entry.error.is_some() {
                    text.push_str(&entry_text(entry, &frame, pid));
                }
            }
            let groups = entries.chunk_by(|entry, next| entry.group == next.group);
            text.extend(groups.map(group_text));
            text.push_str(&lines(frame.disks));
        }
        text
    }
}

impl ToolPrinter for FioPrinter {
    fn begin(&mut self) -> String {
        self.say(self.head())
    }

    fn laying_out(&mut self, workload: &str, bytes: u64) -> String {
        if !self.output.normal {
            return String::new();
        }
        let mib = bytes >> 20;
        let job = self.described.job_of(workload);
        let name = job.map_or(workload, |job| job.name.as_str());
        let line = match job.map_or(1, |job| job.new_files) {
            0 | 1 => format!("{name}: Laying out IO file (1 file / {mib}MiB)\n"),
            files => format!("{name}: Laying out IO files ({files} files / total {mib}MiB)\n"),
        };
        self.say(line)
    }

    fn prints_failed(&self) -> bool {
        true
    }

    fn interval_ns(&self) -> Option<u64> {
        self.status_interval_ns
    }

    fn so_far(&mut self, results: &ResultsSoFar<'_>) -> String {
        let measurements = [&self.finished, results.measurements].concat();
        let state = RunState {
            error: None,
            unix_ns: results.unix_ns,
            disks: results.disks,
        };
        let text = self.text(&measurements, &state);
        self.say(text)
    }

    fn survives_usr1(&self) -> bool {
        true
    }

    fn status(&mut self, results: &ResultsSoFar<'_>) -> ToolText {
        ToolText::out(self.so_far(results))
    }

    fn measured(&mut self, measurement: &Measurement) -> String {
        self.finished.push(measurement.clone());
        String::new()
    }

    fn file_paths(&self) -> Vec<PathBuf> {
        let files = logs(&self.described, &[]).into_iter();
        files.map(|file| file.path).collect()
    }

    fn cannot_open(&self, path: &Path, error: &str) -> String {
        if self.saved_to.as_deref() == Some(path) {
            format!("fio: output file open error: {error}\n")
        } else {
            format!("fopen log: {error}\n")
        }
    }

    fn files(&mut self, result: &ToolResult<'_>) -> Vec<ToolFile> {
        logs(&self.described, result.measurements)
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let state = RunState {
            error: result.error,
            unix_ns: result.unix_ns,
            disks: result.disks,
        };
        let text = self.text(result.measurements, &state);
        ToolText {
            stdout: self.status.clone() + &text,
            stderr: notes(result.measurements),
        }
    }
}

/// The state of a run that the output has besides measurements.
struct RunState<'a> {
    /// The error that ended the run, by its name.
    error: Option<&'a str>,
    unix_ns: u64,
    disks: &'a [DiskTotals],
}

/// Remarks on what the figures do not say.
fn notes(measurements: &[Measurement]) -> String {
    let mut text = String::new();
    for measurement in measurements {
        let (asked, used) = (measurement.engine.asked, measurement.engine.used);
        if matches!(asked, EngineChoice::Fixed(kind) if kind != used && kind != EngineKind::Null) {
            let (name, used) = (&measurement.workload.name, used.as_str());
            let _ = writeln!(text, "fio: {name}: ran with the engine {used}");
        }
    }
    text
}

/// fio's name for what a job does.
fn shown_rw(value: &str) -> &str {
    match value.split(':').next().unwrap_or_default() {
        "readwrite" => "rw",
        other => other,
    }
}

/// `2 threads and 1 process`.
fn counted(threads: u64, processes: u64) -> String {
    let threads = match threads {
        0 => String::new(),
        1 => "1 thread".to_owned(),
        several => format!("{several} threads"),
    };
    let processes = match processes {
        0 => String::new(),
        1 => "1 process".to_owned(),
        several => format!("{several} processes"),
    };
    if threads.is_empty() || processes.is_empty() {
        threads + &processes
    } else {
        format!("{threads} and {processes}")
    }
}

/// The smallest and the largest size of one direction.
fn shown_sizes(sizes: SizeRange, base: Base) -> String {
    let least = short(sizes.least, 4, base, "B");
    let most = short(sizes.most, 4, base, "B");
    format!("{least}-{most}")
}

/// As ctime(3) writes it.
fn local_time(unix_ns: u64) -> String {
    let time = Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or(Timestamp::UNIX_EPOCH);
    let zoned = time.to_zoned(TimeZone::system());
    zoned.strftime("%a %b %e %H:%M:%S %Y").to_string()
}

fn elapsed_s(measurements: &[Measurement]) -> u64 {
    let ends_ns = measurements
        .iter()
        .map(|measurement| measurement.start_ns + measurement.wall_ns);
    ends_ns.max().unwrap_or(0) / 1_000_000_000 + 1
}
