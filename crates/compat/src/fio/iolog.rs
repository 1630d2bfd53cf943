//! Writes fio's log of each request (`write_iolog`), from which its `read_iolog` repeats a load.

use crate::jobs::{DescribedJobs, JobWorkload, WorkloadFile};
use crate::printer::ToolFile;
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::SyncPolicy;
use diskproof_model::request_log::{LoggedCall, LoggedRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The version that fio 3.33 writes: with a time in microseconds before each action.
const FIRST_LINE: &str = "fio version 3 iolog";

/// The logs of all jobs. In fio each copy of a job appends a log of its own to the file; here the
/// requests of all that name a file are one log, in the order of their times, so that fio can read
/// it.
pub(super) fn iologs(described: &DescribedJobs, measurements: &[Measurement]) -> Vec<ToolFile> {
    let mut logs: Vec<IoLog<'_>> = Vec::new();
    for job in &described.jobs {
        let path = match described.value(job, "write_iolog") {
            Some(path) if !path.is_empty() => path,
            _ => continue,
        };
        for workload in &job.workloads {
            if !logs.iter().any(|log| log.path == path) {
                logs.push(IoLog::new(path.clone()));
            }
            for log in logs.iter_mut().filter(|log| log.path == path) {
                log.add(workload, measurements);
            }
        }
    }
    logs.into_iter().map(IoLog::into_file).collect()
}

/// A line for each workload with more requests than a log takes.
pub(super) fn cut_notes(measurements: &[Measurement]) -> String {
    let mut text = String::new();
    for measurement in measurements {
        let Some(log) = &measurement.request_log else {
            continue;
        };
        if log.left_out > 0 {
            let name = &measurement.workload.name;
            let _ = writeln!(
                text,
                "fio: {name}: the iolog has the first {} requests; {} are left out",
                log.requests.len(),
                log.left_out
            );
        }
    }
    text
}

/// The requests of the jobs that name one file.
struct IoLog<'a> {
    path: String,
    /// The files that the jobs use.
    files: Vec<&'a str>,
    /// The places of the files in that list.
    indices: BTreeMap<&'a str, usize>,
    lines: Vec<LogLine>,
    /// The end of the last job, in nanoseconds after the start of the run.
    end_ns: u64,
}

/// A request in a log.
struct LogLine {
    /// The index of its file.
    file: usize,
    /// The request, with its offset in the file.
    request: LoggedRequest,
}

impl<'a> IoLog<'a> {
    fn new(path: String) -> Self {
        Self {
            path,
            files: Vec::new(),
            indices: BTreeMap::new(),
            lines: Vec::new(),
            end_ns: 0,
        }
    }

    /// Adds the requests of a workload.
    fn add(&mut self, workload: &'a JobWorkload, measurements: &[Measurement]) {
        for file in &workload.files {
            self.index_of(&file.name);
        }
        let Some(first) = workload.files.first() else {
            return;
        };
        for measurement in measurements {
            if !workload.is_measured_by(measurement) {
                continue;
            }
            let mut file = first;
            for request in measurement.request_log.iter().flat_map(|log| &log.requests) {
                // As in fio, a sync is one of the file whose turn it is.
                if request.len > 0 {
                    file = workload.file_at(request.offset).unwrap_or(first);
                }
                self.add_line(file, *request);
            }
            if let Some(sync) = final_sync(measurement) {
                self.add_line(file, sync);
            }
            self.end_ns = self.end_ns.max(measurement.start_ns + measurement.wall_ns);
        }
    }

    fn add_line(&mut self, file: &'a WorkloadFile, request: LoggedRequest) {
        let mut offset = request.offset;
        if request.len > 0 {
            offset = (offset + file.file_start).saturating_sub(file.target_start);
        }
        let line = LogLine {
            file: self.index_of(&file.name),
            request: LoggedRequest { offset, ..request },
        };
        self.lines.push(line);
    }

    fn index_of(&mut self, name: &'a str) -> usize {
        if let Some(index) = self.indices.get(name) {
            return *index;
        }
        let index = self.files.len();
        self.files.push(name);
        self.indices.insert(name, index);
        index
    }

    /// The file. Its times count from the first request.
    fn into_file(mut self) -> ToolFile {
        self.lines.sort_by_key(|line| line.request.sent_ns);
        let first_ns = self.lines.first().map_or(0, |line| line.request.sent_ns);
        let mut text = format!("{FIRST_LINE}\n");
        for name in &self.files {
            let _ = writeln!(text, "0 {name} add");
        }
        let mut opened = BTreeSet::new();
        let mut last_us = 0;
        for LogLine { file, request } in &self.lines {
            let name = self.files[*file];
            last_us = (request.sent_ns - first_ns) / 1000;
            if opened.insert(*file) {
                let _ = writeln!(text, "{last_us} {name} open");
            }
            let LoggedRequest { offset, len, .. } = request;
            let word = word(request.call);
            let _ = writeln!(text, "{last_us} {name} {word} {offset} {len}");
        }
        let end_us = self.end_ns.saturating_sub(first_ns) / 1000;
        for file in opened {
            let name = self.files[file];
            let _ = writeln!(text, "{} {name} close", end_us.max(last_us));
        }
        ToolFile {
            path: self.path.into(),
            text,
        }
    }
}

/// fio's word for a call.
fn word(call: LoggedCall) -> &'static str {
    match call {
        LoggedCall::Read => "read",
        LoggedCall::Write => "write",
        LoggedCall::Trim => "trim",
        LoggedCall::Fsync => "sync",
        LoggedCall::Fdatasync => "datasync",
        LoggedCall::SyncRange => "sync_file_range",
    }
}

/// The sync after the last write, which no worker makes; `None` without one.
fn final_sync(measurement: &Measurement) -> Option<LoggedRequest> {
    if measurement.workload.sync != SyncPolicy::AtEnd {
        return None;
    }
    let sync = measurement.ops.get(&OpKind::Sync)?;
    let end_ns = measurement.start_ns + measurement.wall_ns;
    Some(LoggedRequest {
        sent_ns: end_ns.saturating_sub(u64::try_from(sync.latency.sum_ns()).unwrap_or(0)),
        offset: 0,
        len: 0,
        call: LoggedCall::Fsync,
    })
}
