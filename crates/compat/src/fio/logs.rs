//! fio's logs of rates at intervals (`write_bw_log`, `write_iops_log` with `log_avg_msec`).

use crate::jobs::{DescribedJob, DescribedJobs};
use crate::printer::ToolFile;
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::series::Cell;
use std::fmt::Write as _;

/// Whether a log counts KiB or operations.
#[derive(Debug, Clone, Copy)]
enum LogKind {
    Kib,
    Ops,
}

/// The logs of all jobs. As in fio, each copy of a job has a number, and a log of its own; copies
/// that ran as one workload share that of the first.
pub(super) fn logs(described: &DescribedJobs, measurements: &[Measurement]) -> Vec<ToolFile> {
    let (mut files, mut number) = (Vec::new(), 0);
    for job in &described.jobs {
        for workload in &job.workloads {
            number += 1;
            let own: Vec<&Measurement> = measurements
                .iter()
                .filter(|one| one.workload.name == workload.name && one.target == workload.target)
                .collect();
            for (option, suffix, kind) in [
                ("write_bw_log", "bw", LogKind::Kib),
                ("write_iops_log", "iops", LogKind::Ops),
            ] {
                if let Some(prefix) = described.value(job, option) {
                    let prefix = match prefix.as_str() {
                        "" => job.name.replace('/', "."),
                        _ => prefix,
                    };
                    let path = match described.is_on(job, "per_job_logs", true) {
                        true => format!("{prefix}_{suffix}.{number}.log"),
                        false => format!("{prefix}_{suffix}.log"),
                    };
                    let text = rows(&own, interval_ns(described, job), kind);
                    add(&mut files, path, text);
                }
            }
        }
        number += job.copies.saturating_sub(job.workloads.len() as u64);
    }
    files
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

fn interval_ns(described: &DescribedJobs, job: &DescribedJob) -> u64 {
    let value = described.value(job, "log_avg_msec");
    let ms: Option<u64> = value.and_then(|value| value.parse().ok());
    ms.unwrap_or(100).max(1) * 1_000_000
}

/// Lines of time in ms, value, direction, block size and offset; the last two are 0, as of averages
/// in fio.
fn rows(members: &[&Measurement], wanted_ns: u64, kind: LogKind) -> String {
    let mut text = String::new();
    let series = || {
        members
            .iter()
            .flat_map(|one| one.ops.values())
            .map(|op| &op.series)
    };
    // Cells are not divided.
    let cell_ns = series().map(|series| series.interval_ns).max().unwrap_or(1);
    let step_ns = wanted_ns.div_ceil(cell_ns) * cell_ns;
    let wall_ns = members.iter().map(|one| one.wall_ns).max().unwrap_or(0);
    for index in 0..wall_ns / step_ns {
        let (start, end) = (index * step_ns, (index + 1) * step_ns);
        for (number, kinds) in [
            (0, &[OpKind::Read][..]),
            (1, &[OpKind::Write, OpKind::Commit]),
        ] {
            let ops = members
                .iter()
                .flat_map(|one| kinds.iter().filter_map(|kind| one.ops.get(kind)))
                .filter(|op| op.count > 0);
            let mut found: Option<Cell> = None;
            for op in ops {
                let cell = op.series.total_between(start, end);
                found.get_or_insert_default().merge(&cell);
            }
            if let Some(cell) = found {
                let amount = match kind {
                    LogKind::Kib => cell.bytes >> 10,
                    LogKind::Ops => cell.ops,
                };
                let value = u128::from(amount) * 1_000_000_000 / u128::from(step_ns);
                let _ = writeln!(text, "{}, {value}, {number}, 0, 0", end / 1_000_000);
            }
        }
    }
    text
}
