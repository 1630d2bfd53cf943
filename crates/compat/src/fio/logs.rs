//! Writes fio's logs: rates and latencies at intervals (`write_bw_log`, `write_iops_log`,
//! `write_lat_log` with `log_avg_msec`), and distributions of latencies (`write_hist_log`).
//! Programs such as fiologparser.py read their columns by position.

use super::counted_ops::write_kind;
use crate::jobs::{DescribedJob, DescribedJobs};
use crate::printer::ToolFile;
use diskproof_model::fio_bins::{BINS, bin_index};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::series::Cell;
use std::fmt::Write as _;

/// The figures that a log has of each interval.
#[derive(Debug, Clone, Copy)]
enum LogKind {
    Kib,
    Ops,
    /// The mean latency in nanoseconds.
    Latency,
    /// The number of latencies in each of fio's bins.
    Bins,
    /// The time of a submission, which is not measured: the file is empty, as fio's is for an
    /// engine that blocks.
    Submission,
}

/// A log of fio.
#[derive(Debug, Clone, Copy)]
struct Log {
    /// The option that asks for it. Its value begins the name of the file.
    option: &'static str,
    /// The end of the file's name.
    suffix: &'static str,
    kind: LogKind,
    /// The option that turns its times off, and the log with them.
    disabled_by: Option<&'static str>,
}

const fn log(
    option: &'static str,
    suffix: &'static str,
    kind: LogKind,
    disabled_by: Option<&'static str>,
) -> Log {
    Log {
        option,
        suffix,
        kind,
        disabled_by,
    }
}

/// All logs of fio that can be written here. Names of files are made of the suffixes; tools look
/// for them.
const LOGS: [Log; 6] = [
    log("write_bw_log", "bw", LogKind::Kib, None),
    log("write_iops_log", "iops", LogKind::Ops, None),
    log(
        "write_lat_log",
        "lat",
        LogKind::Latency,
        Some("disable_lat"),
    ),
    log(
        "write_lat_log",
        "clat",
        LogKind::Latency,
        Some("disable_clat"),
    ),
    log(
        "write_lat_log",
        "slat",
        LogKind::Submission,
        Some("disable_slat"),
    ),
    log("write_hist_log", "clat_hist", LogKind::Bins, None),
];

/// The logs of all jobs. As in fio, each copy of a job has a number, and its own log; copies that
/// ran as one workload share that of the first. Those of a copy that moves nothing are empty.
pub(super) fn logs(described: &DescribedJobs, measurements: &[Measurement]) -> Vec<ToolFile> {
    let mut files = Vec::new();
    let mut number = 0;
    for job in &described.jobs {
        for workload in &job.workloads {
            number += 1;
            let measurements_of_copy: Vec<&Measurement> = measurements
                .iter()
                .filter(|measurement| workload.is_measured_by(measurement))
                .collect();
            add_logs(&mut files, described, job, number, &measurements_of_copy);
        }
        for _ in job.workloads.len() as u64..job.copies {
            number += 1;
            // One that fails to begin writes none.
            if job.workloads.is_empty() && job.start_failure.is_none() {
                add_logs(&mut files, described, job, number, &[]);
            }
        }
    }
    files
}

/// Adds the logs of the copy with this number.
fn add_logs(
    files: &mut Vec<ToolFile>,
    described: &DescribedJobs,
    job: &DescribedJob,
    number: u64,
    measurements_of_copy: &[&Measurement],
) {
    for log in LOGS {
        if !is_possible(log, described, job) {
            continue;
        }
        let suffix = log.suffix;
        let prefix = match described.value(job, log.option) {
            None => continue,
            Some(prefix) if prefix.is_empty() => job.name.replace('/', "."),
            Some(prefix) => prefix,
        };
        let path = if described.is_not_switched_off(job, "per_job_logs") {
            format!("{prefix}_{suffix}.{number}.log")
        } else {
            format!("{prefix}_{suffix}.log")
        };
        let text = LogOptions::read(described, job).rows(measurements_of_copy, log.kind);
        add_or_append(files, path, text);
    }
}

/// True unless the job turns the times of a log off.
fn is_possible(log: Log, described: &DescribedJobs, job: &DescribedJob) -> bool {
    match log.disabled_by {
        Some(option) => !described.is_time_disabled(job, option),
        None => true,
    }
}

/// Adds a file, or appends to the one of the same path: jobs with `per_job_logs=0` share a file.
fn add_or_append(files: &mut Vec<ToolFile>, path: String, text: String) {
    match files.iter_mut().find(|file| *file.path == *path) {
        Some(file) => file.text.push_str(&text),
        None => files.push(ToolFile {
            path: path.into(),
            text,
        }),
    }
}

/// The interval of a line where the job sets none, in milliseconds. fio then logs each request,
/// which is not kept here.
const INTERVAL_MS_DEFAULT: u64 = 100;

/// The largest `log_hist_coarseness` of fio: it merges all bins of a power of two.
const COARSENESS_MAX: u64 = 6;

/// The options of a job that decide the lines and columns of its logs.
#[derive(Debug, Clone, Copy)]
struct LogOptions {
    /// Nanoseconds of a line.
    interval_ns: u64,
    /// True if the job sets it (`log_avg_msec`).
    has_interval: bool,
    /// Nanoseconds of a line of bins; 0: there is none.
    bins_interval_ns: u64,
    /// The number of bins that are written as one.
    bins_merged: usize,
    /// The columns of a value behind its direction.
    last_columns: &'static str,
}

impl LogOptions {
    fn read(described: &DescribedJobs, job: &DescribedJob) -> Self {
        let given_ms = number(described, job, "log_avg_msec");
        let interval_ms = if given_ms == 0 {
            INTERVAL_MS_DEFAULT
        } else {
            given_ms
        };
        Self {
            interval_ns: nanoseconds(interval_ms),
            has_interval: given_ms > 0,
            bins_interval_ns: nanoseconds(number(described, job, "log_hist_msec")),
            bins_merged: 1 << number(described, job, "log_hist_coarseness").min(COARSENESS_MAX),
            last_columns: last_columns(
                described.is_switched_on(job, "log_offset"),
                described.is_switched_on(job, "log_prio"),
            ),
        }
    }

    /// The content of a log.
    fn rows(self, members: &[&Measurement], kind: LogKind) -> String {
        match kind {
            LogKind::Submission => String::new(),
            LogKind::Bins if self.bins_interval_ns == 0 => String::new(),
            LogKind::Bins => self.rows_of_bins(members),
            LogKind::Kib | LogKind::Ops | LogKind::Latency => self.rows_of_values(members, kind),
        }
    }

    /// Lines of time in ms, value, direction and the columns that are 0 of averages.
    fn rows_of_values(self, members: &[&Measurement], kind: LogKind) -> String {
        let mut text = String::new();
        let ops = members.iter().flat_map(|member| member.ops.values());
        // A line covers whole cells of the series, which cannot be divided.
        let cell_ns = ops.map(|op| op.series.interval_ns).max().unwrap_or(1);
        let step_ns = self.interval_ns.div_ceil(cell_ns).saturating_mul(cell_ns);
        let walls_ns = members.iter().map(|member| member.wall_ns);
        let wall_ns = walls_ns.max().unwrap_or(0);
        let mut start = 0;
        while start < wall_ns {
            let is_whole = start + step_ns <= wall_ns;
            if !is_whole && !self.logs_rest(kind) {
                break;
            }
            let end = (start + step_ns).min(wall_ns);
            for direction in DIRECTIONS {
                let Some(cell) = cell_of(direction, members, start, start + step_ns) else {
                    continue;
                };
                // The rest of a job may have no operation of a direction.
                if !is_whole && cell.ops == 0 {
                    continue;
                }
                if let Some(value) = value_of(&cell, kind, end - start) {
                    let ms = end / 1_000_000;
                    let number = direction.number();
                    let _ = writeln!(text, "{ms}, {value}, {number}, {}", self.last_columns);
                }
            }
            start = end;
        }
        text
    }

    /// True if the rest of a job after its last whole interval has a line. As in fio, rates at
    /// intervals end with the last whole one, and latencies do not. Without an interval fio logs
    /// each request, so that a job shorter than ours has a line, too.
    fn logs_rest(self, kind: LogKind) -> bool {
        match kind {
            LogKind::Latency => true,
            LogKind::Kib | LogKind::Ops => !self.has_interval,
            LogKind::Bins | LogKind::Submission => false,
        }
    }

    /// Lines of time in ms, direction, block size and the counts of the bins. A long run has
    /// windows that are longer than a short interval.
    fn rows_of_bins(self, members: &[&Measurement]) -> String {
        let mut text = String::new();
        let windows = members.iter().map(|member| member.windows.len()).max();
        let mut parts = DIRECTIONS.map(|_| LatencyHistogram::new());
        let mut start_ns = 0;
        for index in 0..windows.unwrap_or(0) {
            let mut end_ns = start_ns;
            for member in members {
                let Some(window) = member.windows.get(index) else {
                    continue;
                };
                end_ns = end_ns.max(window.end_ns);
                for (part, direction) in parts.iter_mut().zip(DIRECTIONS) {
                    if let Some(op) = window.ops.get(&direction.kind(member)) {
                        part.add_part(&op.latency);
                    }
                }
            }
            if end_ns / self.bins_interval_ns == start_ns / self.bins_interval_ns {
                continue;
            }
            let blocks = members.iter().map(|member| member.workload.block_bytes);
            let block = blocks.max();
            for (part, direction) in parts.iter_mut().zip(DIRECTIONS) {
                let part = std::mem::take(part);
                if part.count() > 0 {
                    let (ms, block) = (end_ns / 1_000_000, block.unwrap_or(0));
                    let _ = write!(text, "{ms}, {}, {block}", direction.number());
                    for count in self.bins_of(&part) {
                        let _ = write!(text, ", {count}");
                    }
                    text.push('\n');
                }
            }
            start_ns = end_ns;
        }
        text
    }

    /// The counts of latencies in fio's bins, with `bins_merged` of them as one.
    fn bins_of(self, latency: &LatencyHistogram) -> Vec<u64> {
        let mut bins = vec![0; BINS / self.bins_merged];
        for bucket in latency.buckets() {
            bins[bin_index(bucket.low_ns) / self.bins_merged] += bucket.count;
        }
        bins
    }
}

/// The number in the value of an option; 0 without one.
fn number(described: &DescribedJobs, job: &DescribedJob, option: &str) -> u64 {
    match described.value(job, option) {
        Some(value) => value.parse().unwrap_or(0),
        None => 0,
    }
}

fn nanoseconds(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}

/// The columns block size, offset (with `log_offset`) and priority of an average. Where the job
/// logs priorities, fio writes them in hexadecimal (`flush_samples` of its iolog.c).
fn last_columns(has_offset: bool, has_priority: bool) -> &'static str {
    match (has_offset, has_priority) {
        (false, false) => "0, 0",
        (false, true) => "0, 0x0000",
        (true, false) => "0, 0, 0",
        (true, true) => "0, 0, 0x0000",
    }
}

/// The directions of a log, in the order of their lines.
const DIRECTIONS: [Direction; 3] = [Direction::Reads, Direction::Writes, Direction::Trims];

#[derive(Debug, Clone, Copy)]
enum Direction {
    Reads,
    Writes,
    Trims,
}

impl Direction {
    /// fio's number of it.
    fn number(self) -> u32 {
        match self {
            Self::Reads => 0,
            Self::Writes => 1,
            Self::Trims => 2,
        }
    }

    /// The kind of its operations.
    fn kind(self, measurement: &Measurement) -> OpKind {
        match self {
            Self::Reads => OpKind::Read,
            Self::Writes => write_kind(measurement),
            Self::Trims => OpKind::Trim,
        }
    }
}

/// The operations of a direction between two times; `None` where the job has none at any time.
fn cell_of(
    direction: Direction,
    members: &[&Measurement],
    start_ns: u64,
    end_ns: u64,
) -> Option<Cell> {
    let mut total: Option<Cell> = None;
    for member in members {
        let Some(op) = member.ops.get(&direction.kind(member)) else {
            continue;
        };
        if op.count > 0 {
            let cell = op.series.total_between(start_ns, end_ns);
            total.get_or_insert_default().merge(&cell);
        }
    }
    total
}

/// The value of a line about a time of this length: KiB or operations per second, or nanoseconds.
/// `None` where it has none.
fn value_of(cell: &Cell, kind: LogKind, length_ns: u64) -> Option<u64> {
    match kind {
        LogKind::Kib => Some(per_second(cell.bytes >> 10, length_ns)),
        LogKind::Ops => Some(per_second(cell.ops, length_ns)),
        LogKind::Latency => cell.latency_sum_ns.checked_div(cell.ops),
        LogKind::Bins | LogKind::Submission => None,
    }
}

fn per_second(amount: u64, length_ns: u64) -> u64 {
    (u128::from(amount) * 1_000_000_000 / u128::from(length_ns)) as u64
}
