//! Prints a run of jobs in the chosen forms of output, one after the other as fio does.

use super::described::command_word;
use super::entries::{entries, failed_jobs};
use super::frame::{EMULATES, RunFrame};
use super::iolog::{cut_notes, iologs};
use super::json::{JsonForm, document};
use super::logs::logs;
use super::normal::{disk_lines, entry_text, group_text, shortened};
use super::stats::{JobEntry, JobError};
use super::terse::{TerseVersion, entry_line};
use super::values::{Base, NumberForm, bytes};
use crate::c_format::local_time;
use crate::command::GivenArguments;
use crate::job_command::JobCommand;
use crate::jobs::{DescribedJob, DescribedJobs, SizeRange, StartFailure};
use crate::printer::{ResultsSoFar, ToolFile, ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{DiskTotals, Measurement};
use diskproof_model::plan::{EngineChoice, EngineKind};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The forms of output that were chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FioOutput {
    /// True if the output for people is one of them.
    pub(super) has_normal: bool,
    terse: Option<TerseVersion>,
    json: Option<JsonForm>,
}

impl FioOutput {
    /// Reads `--output-format` and its relatives.
    pub(super) fn read(general: &GivenArguments) -> Result<Self, String> {
        let version_text = general.value("terse-version").unwrap_or("3");
        let Some(version) = TerseVersion::from_number(version_text) else {
            return Err(format!("bad terse version format: {version_text}"));
        };
        let mut chosen = Self::default();
        let formats = general.value("output-format");
        for format in formats.unwrap_or("normal").split(',').map(str::trim) {
            match format {
                "normal" => chosen.has_normal = true,
                "terse" | "minimal" => chosen.terse = Some(version),
                // With both forms, fio prints json+.
                "json" => chosen.json = chosen.json.or(Some(JsonForm::Plain)),
                "json+" => chosen.json = Some(JsonForm::WithBins),
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
    /// The file of `--output`. The front end writes the text of [`ToolPrinter::end`] to it, so
    /// every earlier text is kept until then.
    pub(super) saved_to: Option<PathBuf>,
    /// Nanoseconds after which the output is repeated while jobs run; `None`: never.
    pub(super) status_interval_ns: Option<u64>,
    /// Measurements that ended before the current jobs.
    pub(super) finished: Vec<Measurement>,
    /// The text that goes to that file at the end; empty without one.
    pub(super) unsaved_text: String,
    /// Jobs that failed, once the run is over.
    pub(super) failed_jobs: u64,
}

impl FioPrinter {
    /// A line for each copy of a job that fails before it begins, as in fio.
    fn failure_lines(&self) -> String {
        let mut text = String::new();
        for job in &self.described.jobs {
            let line = match job.start_failure {
                Some(StartFailure::NoSize) => format!("{}: you need to specify size=\n", job.name),
                Some(StartFailure::NoFileAllowed) => {
                    "fio: file creation disallowed by allow_file_create=0\n".to_owned()
                }
                None => continue,
            };
            for _ in 0..job.copies {
                text.push_str(&line);
            }
        }
        text
    }

    /// The logs of all kinds.
    fn logs(&self, measurements: &[Measurement]) -> Vec<ToolFile> {
        let mut files = logs(&self.described, measurements);
        files.extend(iologs(&self.described, measurements));
        files
    }

    /// Returns a text for stdout; with a file for the output, keeps it for the end and returns
    /// nothing.
    fn print_or_keep(&mut self, text: String) -> String {
        if self.saved_to.is_none() {
            return text;
        }
        self.unsaved_text.push_str(&text);
        String::new()
    }

    /// The lines about the jobs, before the run.
    fn jobs_text(&self) -> String {
        let mut text = String::new();
        let mut threads = 0;
        let mut processes = 0;
        for job in &self.described.jobs {
            // fio says so while it reads the option, whatever its output is.
            if let Some(files) = job.opendir_files {
                let _ = writeln!(text, "fio: opendir added {files} files");
            }
            if !self.output.has_normal {
                continue;
            }
            let (name, group) = (&job.name, job.group);
            let rw_option = self.value_or(job, "rw", "read");
            let rw = shown_rw(&rw_option);
            let form = self.described.number_form(job);
            let [reads, writes, trims] = job.block_sizes.map(|sizes| shown_sizes(sizes, form));
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
            if self.described.is_switched_on(job, "thread") {
                threads += job.copies;
            } else {
                processes += job.copies;
            }
        }
        if self.output.has_normal {
            let started = threads_and_processes(threads, processes);
            let _ = writeln!(text, "{EMULATES}\nStarting {started}");
        }
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
        if jobs.any(|job| self.described.is_not_switched_off(job, "disk_util")) {
            disks
        } else {
            &[]
        }
    }

    /// A line for each job that ended with an error, which comes before all results.
    fn failures_text(&self, measurements: &[Measurement]) -> String {
        let mut text = String::new();
        if !self.output.has_normal {
            return text;
        }
        for entry in entries(&self.described, measurements) {
            if let Some(JobError { number, name }) = &entry.error {
                let pid = std::process::id();
                let _ = writeln!(text, "fio: pid={pid}, err={number}/{name}");
            }
        }
        text
    }

    /// The results in every form that was chosen. A job that did not run has the error of the run.
    fn results_text(&self, measurements: &[Measurement], state: &RunState<'_>) -> String {
        let mut entries = entries(&self.described, measurements);
        for entry in &mut entries {
            if let Some(name) = state.error
                && !entry.is_blank
                && entry.runtime_ms == 0
                && entry.error.is_none()
            {
                entry.error = Some(JobError::named(name));
            }
        }
        let frame = RunFrame {
            unix_ns: state.unix_ns,
            time: time_line(state.unix_ns),
            elapsed_s: elapsed_s(measurements),
            global: &self.described.global,
            disks: self.shown_disks(state.disks),
            entries: &entries,
        };
        let mut text = String::new();
        if let Some(version) = self.output.terse {
            for entry in &entries {
                text.push_str(&entry_line(entry, &frame, version));
            }
        }
        if let Some(form) = self.output.json {
            text.push_str(&document(&frame, form));
        }
        if self.output.has_normal {
            text.push_str(&self.normal_text(&frame));
        }
        text
    }

    /// The results for people: the entries, the groups, the disks.
    fn normal_text(&self, frame: &RunFrame<'_>) -> String {
        let mut text = "\n".to_owned();
        let pid = std::process::id();
        for entry in frame.entries {
            if !entry.is_blank && (entry.runtime_ms > 0 || entry.error.is_some()) {
                text.push_str(&entry_text(entry, frame, pid));
            }
        }
        // A group without figures has its line, too.
        for jobs in self
            .described
            .jobs
            .chunk_by(|job, next| job.group == next.group)
        {
            let group = jobs[0].group;
            let entries_of_group: Vec<&JobEntry> = frame
                .entries
                .iter()
                .filter(|entry| !entry.is_blank && entry.group == group)
                .collect();
            text.push_str(&group_text(group, &entries_of_group));
        }
        text.push_str(&disk_lines(frame.disks));
        text
    }
}

impl ToolPrinter for FioPrinter {
    fn begin(&mut self) -> String {
        self.print_or_keep(self.jobs_text())
    }

    fn laying_out(&mut self, workload: &str, bytes: u64) -> String {
        if !self.output.has_normal {
            return String::new();
        }
        let mib = bytes >> 20;
        let job = self.described.job_of(workload);
        let name = job.map_or(workload, |job| job.name.as_str());
        let line = match job.map_or(1, |job| job.new_files) {
            0 | 1 => format!("{name}: Laying out IO file (1 file / {mib}MiB)\n"),
            files => format!("{name}: Laying out IO files ({files} files / total {mib}MiB)\n"),
        };
        self.print_or_keep(line)
    }

    fn runs_command(&mut self, command: &JobCommand) -> String {
        self.print_or_keep(format!(
            "{} : Saving output of {} in {}\n",
            command.job,
            command_word(command.time),
            command.output.display()
        ))
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
        let text = self.results_text(&measurements, &state);
        self.print_or_keep(text)
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
        let mut paths: Vec<PathBuf> = self.logs(&[]).into_iter().map(|file| file.path).collect();
        for command in self.described.commands() {
            // Jobs of one name share the file.
            if !paths.contains(&command.output) {
                paths.push(command.output);
            }
        }
        paths
    }

    fn cannot_open(&self, path: &Path, error: &str) -> String {
        if self.saved_to.as_deref() == Some(path) {
            format!("fio: output file open error: {error}\n")
        } else {
            format!("fopen log: {error}\n")
        }
    }

    fn files(&mut self, result: &ToolResult<'_>) -> Vec<ToolFile> {
        self.logs(result.measurements)
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let state = RunState {
            error: result.error,
            unix_ns: result.unix_ns,
            disks: result.disks,
        };
        let mut text = self.failures_text(result.measurements);
        text.push_str(&self.results_text(result.measurements, &state));
        self.failed_jobs = failed_jobs(&self.described, result.measurements);
        ToolText {
            stdout: self.unsaved_text.clone() + &text,
            stderr: self.failure_lines()
                + &engine_notes(result.measurements)
                + &cut_notes(result.measurements),
        }
    }

    /// As in fio, the number of the jobs that failed.
    fn failed_code(&self) -> Option<u8> {
        match self.failed_jobs {
            0 => None,
            jobs => Some(u8::try_from(jobs).unwrap_or(u8::MAX)),
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

/// A line for each job that ran with another engine than it asked for.
fn engine_notes(measurements: &[Measurement]) -> String {
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

/// The number of jobs: `2 threads and 1 process`.
fn threads_and_processes(threads: u64, processes: u64) -> String {
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
fn shown_sizes(sizes: SizeRange, form: NumberForm) -> String {
    let smallest = shortened(sizes.least, form.digits, form.base, "B");
    let largest = shortened(sizes.most, form.digits, form.base, "B");
    format!("{smallest}-{largest}")
}

/// A local time as ctime(3) writes it.
fn time_line(unix_ns: u64) -> String {
    local_time(unix_ns)
        .strftime("%a %b %e %H:%M:%S %Y")
        .to_string()
}

/// The seconds until the last measurement ended, with the one that has begun.
fn elapsed_s(measurements: &[Measurement]) -> u64 {
    let ends_ns = measurements
        .iter()
        .map(|measurement| measurement.start_ns + measurement.wall_ns);
    ends_ns.max().unwrap_or(0) / 1_000_000_000 + 1
}
