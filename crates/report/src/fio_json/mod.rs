//! A record as the JSON that fio prints with `--output-format=json+`: names, order, units and types
//! are those of `show_thread_status_json()` in stat.c of fio 3.42. A value that was not measured
//! has no key, or fio's own form (`"N": 0`). docs/fio-json.md lists the source of each field.

mod disks;
mod latencies;
mod object;
mod rates;

use crate::json::{JsonLayout, laid_out, write_document};
use crate::labels::severity;
use diskproof_model::errno;
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;
use diskproof_model::row::{OpRow, Row};
use diskproof_model::rw::FIO_DIRECTIONS;
use diskproof_model::shell;
use disks::disk_objects;
use latencies::{Latency, latency_shares, latency_without_samples};
use object::{Object, object, whole_ms};
use rates::{rate_object, rate_object_without_samples};
use serde_json::Value;
use std::io::{self, Write};

// Requests of another kind would be in no job.
const _: () = assert!(
    OpKind::REQUESTS.len() == FIO_DIRECTIONS.len(),
    "a kind of request has no place in fio's JSON"
);

/// Writes the record: a job for each workload and target, in the order of the record.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    write_document(&laid_out(&document(record), JsonLayout::Fio)?, out)
}

fn document(record: &Record) -> Value {
    let start_ms = run_start_ms(record);
    let elapsed_ms = whole_ms(record.elapsed_ns());
    let end_ms = start_ms.map(|start| start.saturating_add_unsigned(elapsed_ms));
    let end = end_ms.and_then(|end| jiff::Timestamp::from_millisecond(end).ok());
    // The form of ctime(3), in UTC.
    let time = end.map(|end| end.strftime("%a %b %e %H:%M:%S %Y").to_string());
    let mut jobs = Vec::new();
    for (index, row) in record.measurements.iter().enumerate() {
        jobs.push(job_object(record, index, row, start_ms));
    }
    let version = format!("{}-{}", record.tool.name, record.tool.version);
    let mut document = object([
        ("fio version", version.into()),
        ("timestamp", end.map(|end| end.as_second()).into()),
        ("timestamp_ms", end_ms.into()),
        ("time", time.into()),
        ("jobs", jobs.into()),
    ]);
    let disks = disk_objects(record);
    if !disks.is_empty() {
        document.insert("disk_util".to_owned(), disks.into());
    }
    document.into()
}

/// When the run began, in milliseconds since 1970; `None` where the record states no time.
fn run_start_ms(record: &Record) -> Option<i64> {
    let start: jiff::Timestamp = record.started.parse().ok()?;
    Some(start.as_millisecond())
}

/// A measurement as a job.
fn job_object(record: &Record, index: usize, row: &Row, start_ms: Option<i64>) -> Value {
    let options = own_options(row);
    let threads = thread_count(row, &options);
    let job_start =
        start_ms.map(|start| start.saturating_add_unsigned(whole_ms(row.steady_start_ns())));
    let end_ns = row.data.start_ns.saturating_add(row.data.wall_ns);
    let runtime = whole_ms(row.steady_ns()).saturating_mul(threads);
    let mut job = object([
        ("jobname", job_name(row).into()),
        ("groupid", index.into()),
        ("job_start", job_start.into()),
        ("error", first_error(row).into()),
        ("eta", 0.into()),
        ("elapsed", end_ns.div_ceil(1_000_000_000).into()),
        ("job options", options.into()),
        ("read", direction_object(row, OpKind::Read)),
        ("write", direction_object(row, OpKind::Write)),
        ("trim", direction_object(row, OpKind::Trim)),
        ("sync", sync_object(row)),
        ("job_runtime", runtime.into()),
        (
            "usr_cpu",
            cpu_percent(row, threads, row.data.cpu.user_ns).into(),
        ),
        (
            "sys_cpu",
            cpu_percent(row, threads, row.data.cpu.system_ns).into(),
        ),
    ]);
    let mut transfers = Vec::new();
    for kind in FIO_DIRECTIONS {
        if let Some(op) = row.op(kind) {
            transfers.push(&op.data.latency);
        }
    }
    job.extend(latency_shares(&transfers));
    let errors = row.errors_total();
    if errors > 0 {
        job.insert("total_err".to_owned(), errors.into());
    }
    job.insert("desc".to_owned(), description(record, index, row).into());
    job.into()
}

/// The threads of a job as fio counts them. It adds up the time of all threads of a group, and
/// relates CPU time to that sum.
fn thread_count(row: &Row, options: &Object) -> u64 {
    let jobs: Option<u64> = match options.get("numjobs") {
        Some(Value::String(jobs)) => jobs.parse().ok(),
        _ => None,
    };
    let workers = u64::from(row.data.workload.workers);
    jobs.unwrap_or(workers).max(1)
}

fn cpu_percent(row: &Row, threads: u64, cpu_ns: u64) -> f64 {
    match row.steady_ns() {
        0 => 0.0,
        steady_ns => cpu_ns as f64 * 100.0 / steady_ns as f64 / threads as f64,
    }
}

/// The workload's name, from the second target on with the target's number, as in the histogram
/// log: scripts use these names as keys.
fn job_name(row: &Row) -> String {
    let workload = &row.data.workload.name;
    match row.data.target {
        0 => workload.clone(),
        index => format!("{workload}.target{}", index + 1),
    }
}

/// The number of the most frequent error; 0 without one. Scripts check it for failed jobs, so an
/// unknown error counts as EIO.
fn first_error(row: &Row) -> u32 {
    const EIO: u32 = 5;
    let most_frequent = row
        .errors_by_name()
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .max_by_key(|(_, count)| *count);
    match most_frequent {
        Some((name, _)) => errno::number(name).unwrap_or(EIO),
        None => 0,
    }
}

/// The options of the fio command that repeats the workload, as fio prints them. If others ran
/// together with it, only the options of its own job.
fn own_options(row: &Row) -> Object {
    let mut options = Object::new();
    let mut is_own = false;
    for word in shell::words(&row.figures.reproduce) {
        if let Some(name) = word.strip_prefix("--name=") {
            if is_own {
                break;
            }
            is_own = name == row.data.workload.name;
        }
        if let Some(option) = word.strip_prefix("--")
            && is_own
        {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            options.insert(key.to_owned(), value.into());
        }
    }
    options
}

/// The figures of one kind of transfer; 0 without any, as fio prints it.
#[derive(Default)]
struct Transfers {
    bytes: u64,
    bytes_per_second: f64,
    iops: f64,
    runtime_ms: u64,
    count: u64,
    /// Transfers that moved fewer bytes than requested.
    short: u64,
}

impl Transfers {
    fn new(row: &Row, op: OpRow<'_>) -> Self {
        Self {
            bytes: op.data.bytes,
            bytes_per_second: op.figures.throughput.value,
            iops: op.figures.iops.value,
            runtime_ms: whole_ms(row.steady_ns()),
            count: op.data.count,
            short: op.data.short,
        }
    }

    /// The rate as an integer; `None` for infinity, which JSON does not have.
    fn whole_bytes_per_second(&self) -> Option<u64> {
        if self.bytes_per_second.is_finite() {
            Some(self.bytes_per_second.round() as u64)
        } else {
            None
        }
    }
}

/// The figures of `read`, `write` or `trim`.
fn direction_object(row: &Row, kind: OpKind) -> Value {
    let mut transfers = Transfers::default();
    let mut latency = latency_without_samples();
    let mut rate_fields = rate_object_without_samples();
    if let Some(op) = row.op(kind) {
        transfers = Transfers::new(row, op);
        latency = Latency::from_op(op).object();
        rate_fields = rate_object(row, op);
    }
    let bytes_per_second = transfers.whole_bytes_per_second();
    let mut direction = object([
        ("io_bytes", transfers.bytes.into()),
        ("io_kbytes", (transfers.bytes >> 10).into()),
        ("bw_bytes", bytes_per_second.into()),
        ("bw", bytes_per_second.map(|rate| rate >> 10).into()),
        ("iops", transfers.iops.into()),
        ("runtime", transfers.runtime_ms.into()),
        ("total_ios", transfers.count.into()),
        ("short_ios", transfers.short.into()),
        ("drop_ios", 0.into()),
        ("slat_ns", latency_without_samples()),
        ("clat_ns", latency.clone()),
        ("lat_ns", latency),
    ]);
    direction.extend(rate_fields);
    direction.into()
}

/// The figures of `sync`.
fn sync_object(row: &Row) -> Value {
    let mut count = 0;
    let mut latency = latency_without_samples();
    if let Some(op) = row.op(OpKind::Sync) {
        count = op.data.count;
        latency = Latency::from_op(op).object();
    }
    object([("total_ios", count.into()), ("lat_ns", latency)]).into()
}

/// The text of `desc`: facts without a field of their own in fio's JSON, such as the target, the
/// run and the findings about the figures.
fn description(record: &Record, index: usize, row: &Row) -> String {
    let name = &row.data.workload.name;
    let path = match record.targets.get(row.data.target) {
        Some(target) => &target.path,
        None => "an unknown target",
    };
    let mut parts = vec![format!("{name} on {path}, run {}", record.run_id)];
    let others = &row.figures.together_with;
    if !others.is_empty() {
        parts.push(format!("together with {}", others.join(", ")));
    }
    if record.partial {
        parts.push("partial: the run ended before its plan did".to_owned());
    }
    for finding in &record.findings {
        if finding.severity > Severity::Note && is_about_measurement_or_run(finding, index) {
            let claim = finding.claim.trim_end_matches('.');
            let weight = severity(finding.severity);
            parts.push(format!("{weight} {}: {claim}", finding.code));
        }
    }
    parts.join("; ")
}

/// True if the evidence of a finding is about this measurement, or about none and so the whole run.
fn is_about_measurement_or_run(finding: &Finding, index: usize) -> bool {
    let mut is_about_run = true;
    for evidence in &finding.evidence {
        if let Some(measurement) = measurement_in(&evidence.path) {
            if measurement == index.to_string() {
                return true;
            }
            is_about_run = false;
        }
    }
    is_about_run
}

/// The index of the measurement that a JSON pointer leads into.
fn measurement_in(path: &str) -> Option<&str> {
    path.strip_prefix("/measurements/")?.split('/').next()
}
