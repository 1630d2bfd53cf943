//! fio's logs: rates and latencies at intervals (`write_bw_log`, `write_iops_log`, `write_lat_log`
//! with `log_avg_msec`), and distributions of latencies (`write_hist_log`).

use super::stats::{hides, write_kind};
use crate::jobs::{DescribedJob, DescribedJobs};
use crate::printer::ToolFile;
use diskproof_model::fio_bins::{BINS, bin_index};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::series::Cell;
use std::fmt::Write as _;

/// What a log has at each interval.
#[derive(Debug, Clone, Copy)]
enum LogKind {
    Kib,
    Ops,
    /// The mean latency in nanoseconds.
    Latency,
    /// How many latencies are in each of fio's bins.
    Bins,
    /// The time of a submission. fio has none for an engine that blocks, and leaves an empty file;
    /// for others there is no log, because the time is not measured.
    Submission,
}

/// fio's options, the names of their files and what these contain.
const LOGS: [(&str, &str, LogKind); 6] = [
    ("write_bw_log", "bw", LogKind::Kib),
    ("write_iops_log", "iops", LogKind::Ops),
    ("write_lat_log", "lat", LogKind::Latency),
    ("write_lat_log", "clat", LogKind::Latency),
    ("write_lat_log", "slat", LogKind::Submission),
    ("write_hist_log", "clat_hist", LogKind::Bins),
];

/// Logs that a job does not have when it turns their times off.
const LEFT_OUT: [(&str, &str); 3] = [
    ("lat", "disable_lat"),
    ("clat", "disable_clat"),
    ("slat", "disable_slat"),
];

/// The logs of all jobs. As in fio, each copy of a job has a number, and its own log; copies that
/// ran as one workload share that of the first.
pub(super) fn logs(described: &DescribedJobs, measurements: &[Measurement]) -> Vec<ToolFile> {
    let (mut files, mut number) = (Vec::new(), 0);
    for job in &described.jobs {
        for workload in &job.workloads {
            number += 1;
            let is_own = |one: &&Measurement| {
                one.workload.name == workload.name && one.target == workload.target
            };
            let own: Vec<&Measurement> = measurements.iter().filter(is_own).collect();
            for (option, suffix, kind) in LOGS {
                if LEFT_OUT
                    .iter()
                    .any(|(log, by)| *log == suffix && hides(described, job, by))
                {
                    continue;
                }
                if matches!(kind, LogKind::Submission) && !blocks(described, job) {
                    continue;
                }
                let prefix = match described.value(job, option) {
                    None => continue,
                    Some(prefix) if prefix.is_empty() => job.name.replace('/', "."),
                    Some(prefix) => prefix,
                };
                let is_numbered = described.is_on(job, "per_job_logs", true);
                let number = is_numbered.then(|| format!(".{number}"));
                let path = format!("{prefix}_{suffix}{}.log", number.unwrap_or_default());
                let text = LogOptions::of(described, job).rows(&own, kind);
                add(&mut files, path, text);
            }
        }
        number += job.copies.saturating_sub(job.workloads.len() as u64);
    }
    files
}

/// Whether the requests of a job are blocking calls in fio.
fn blocks(described: &DescribedJobs, job: &DescribedJob) -> bool {
    let engine = described.value(job, "ioengine").unwrap_or_default();
    !matches!(engine.as_str(), "libaio" | "io_uring" | "posixaio")
}

/// Jobs with `per_job_logs=0` share a file.
fn add(files: &mut Vec<ToolFile>, path: String, text: String) {
    match files.iter_mut().find(|file| *file.path == *path) {
        Some(file) => file.text.push_str(&text),
        None => files.push(ToolFile {
            path: path.into(),
            text,
        }),
    }
}

/// Of a line where the job sets none.
const INTERVAL_MS_DEFAULT: u64 = 100;

/// How the logs of a job are written.
#[derive(Debug, Clone, Copy)]
struct LogOptions {
    /// Of a line.
    interval_ns: u64,
    /// Whether the job sets it (`log_avg_msec`).
    has_interval: bool,
    /// Of a line of bins; 0: there is none.
    bins_interval_ns: u64,
    /// How many bins are one.
    bins_merged: usize,
}

impl LogOptions {
    fn of(described: &DescribedJobs, job: &DescribedJob) -> Self {
        let number = |key: &str| -> Option<u64> {
            let value = described.value(job, key);
            value.and_then(|value| value.parse().ok())
        };
        let ns = |ms: u64| ms.saturating_mul(1_000_000);
        let interval_ms = number("log_avg_msec").filter(|ms| *ms > 0);
        Self {
            interval_ns: ns(interval_ms.unwrap_or(INTERVAL_MS_DEFAULT)),
            has_interval: interval_ms.is_some(),
            bins_interval_ns: ns(number("log_hist_msec").unwrap_or(0)),
            bins_merged: 1 << number("log_hist_coarseness").unwrap_or(0).min(6),
        }
    }

    fn rows(self, members: &[&Measurement], kind: LogKind) -> String {
        match kind {
            LogKind::Submission => String::new(),
            LogKind::Bins if self.bins_interval_ns == 0 => String::new(),
            LogKind::Bins => self.rows_of_bins(members),
            LogKind::Kib | LogKind::Ops | LogKind::Latency => self.rows_of_values(members, kind),
        }
    }

    /// Lines of time in ms, value, direction, block size and offset; the last two are 0, as of
    /// averages in fio.
    fn rows_of_values(self, members: &[&Measurement], kind: LogKind) -> String {
        let mut text = String::new();
        let ops = members.iter().flat_map(|one| one.ops.values());
        // Cells are not divided.
        let cell_ns = ops.map(|op| op.series.interval_ns).max().unwrap_or(1);
        let step_ns = self.interval_ns.div_ceil(cell_ns).saturating_mul(cell_ns);
        let wall_ns = members.iter().map(|one| one.wall_ns).max().unwrap_or(0);
        let mut start = 0;
        while start < wall_ns {
            let is_whole = start + step_ns <= wall_ns;
            if !is_whole && !self.logs_rest(kind) {
                break;
            }
            let end = (start + step_ns).min(wall_ns);
            for number in DIRECTIONS {
                let ops = members.iter();
                let ops = ops.filter_map(|one| one.ops.get(&kind_of(number, one)));
                let mut found: Option<Cell> = None;
                for op in ops.filter(|op| op.count > 0) {
                    let cell = op.series.total_between(start, start + step_ns);
                    found.get_or_insert_default().merge(&cell);
                }
                // The rest of a job may have no operation of a direction.
                let found = found.filter(|cell| is_whole || cell.ops > 0);
                let value = found.and_then(|cell| value_of(&cell, kind, end - start));
                if let Some(value) = value {
                    let _ = writeln!(text, "{}, {value}, {number}, 0, 0", end / 1_000_000);
                }
            }
            start = end;
        }
        text
    }

    /// Whether what is behind the last whole interval of a job has a line. As in fio, rates at
    /// intervals end with the last whole one, and latencies do not. Without an interval fio logs
    /// each request, so a short job has a line, too.
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
        let windows = members.iter().map(|one| one.windows.len()).max();
        let mut parts = DIRECTIONS.map(|_| LatencyHistogram::new());
        let mut start_ns = 0;
        for index in 0..windows.unwrap_or(0) {
            let mut end_ns = start_ns;
            for member in members {
                let Some(window) = member.windows.get(index) else {
                    continue;
                };
                end_ns = end_ns.max(window.end_ns);
                for (part, number) in parts.iter_mut().zip(DIRECTIONS) {
                    if let Some(op) = window.ops.get(&kind_of(number, member)) {
                        part.add_part(&op.latency);
                    }
                }
            }
            if end_ns / self.bins_interval_ns == start_ns / self.bins_interval_ns {
                continue;
            }
            let block = members.iter().map(|one| one.workload.block_bytes).max();
            for (part, number) in parts.iter_mut().zip(DIRECTIONS) {
                let part = std::mem::take(part);
                if part.count() > 0 {
                    let (ms, block) = (end_ns / 1_000_000, block.unwrap_or(0));
                    let _ = write!(text, "{ms}, {number}, {block}");
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

    fn bins_of(self, latency: &LatencyHistogram) -> Vec<u64> {
        let mut bins = vec![0; BINS / self.bins_merged];
        for (low_ns, _, count) in latency.buckets() {
            bins[bin_index(low_ns) / self.bins_merged] += count;
        }
        bins
    }
}

/// fio's numbers of reads, writes and trims.
const DIRECTIONS: [u32; 3] = [0, 1, 2];

/// The operations of a direction.
fn kind_of(direction: u32, measurement: &Measurement) -> OpKind {
    match direction {
        0 => OpKind::Read,
        1 => write_kind(measurement),
        _ => OpKind::Trim,
    }
}

/// The value of a line about this time; `None` where it has none.
fn value_of(cell: &Cell, kind: LogKind, length_ns: u64) -> Option<u64> {
    let per_second =
        |amount: u64| (u128::from(amount) * 1_000_000_000 / u128::from(length_ns)) as u64;
    match kind {
        LogKind::Kib => Some(per_second(cell.bytes >> 10)),
        LogKind::Ops => Some(per_second(cell.ops)),
        LogKind::Latency => cell.latency_sum_ns.checked_div(cell.ops),
        LogKind::Bins | LogKind::Submission => None,
    }
}
