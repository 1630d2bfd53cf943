//! A record as the JSON that fio prints with `--output-format=json+`: names, order, units and types
//! are those of `show_thread_status_json()` in stat.c of fio 3.42. A value that was not measured
//! has no key, or fio's own form (`"N": 0`). docs/fio-json.md lists the source of each field.

mod parts;

use crate::json::{laid_out, write_document};
use crate::labels::severity;
use diskproof_model::errno;
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::measurement::{OpKind, PerOp};
use diskproof_model::record::Record;
use diskproof_model::row::{OpRow, Row};
use diskproof_model::shell;
use parts::{
    Latency, Object, disk_util, ms, object, rates, rates_without_samples, shares_by_latency,
    without_samples,
};
use serde_json::Value;
use std::io::{self, Write};

/// Writes the record: a job for each workload and target, in the order of the record.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    write_document(&laid_out(&document(record), true)?, out)
}

fn document(record: &Record) -> Value {
    let start = record.started.parse::<jiff::Timestamp>();
    let start_ms = start.map(|start| start.as_millisecond()).ok();
    let end_ms = start_ms.map(|start| start.saturating_add_unsigned(ms(record.elapsed_ns())));
    let end = end_ms.and_then(|end| jiff::Timestamp::from_millisecond(end).ok());
    // The form of ctime(3), in UTC.
    let time = end.map(|end| end.strftime("%a %b %e %H:%M:%S %Y").to_string());
    let mut jobs = Vec::new();
    for (index, m) in record.measurements.iter().enumerate() {
        jobs.push(job(record, index, m, start_ms));
    }
    let version = format!("{}-{}", record.tool.name, record.tool.version);
    let disks = Some(disk_util(record)).filter(|disks| !disks.is_empty());
    object([
        ("fio version", version.into()),
        ("timestamp", end.map(|end| end.as_second()).into()),
        ("timestamp_ms", end_ms.into()),
        ("time", time.into()),
        ("jobs", jobs.into()),
        ("disk_util", disks.into()),
    ])
    .into()
}

fn job(record: &Record, index: usize, m: &Row, start_ms: Option<i64>) -> Value {
    let options = options(m);
    // fio adds up the time of all threads of a group, and relates CPU time to that sum.
    let threads = options
        .get("numjobs")
        .and_then(|jobs| jobs.as_str()?.parse().ok())
        .unwrap_or(u64::from(m.data.workload.workers))
        .max(1);
    let latencies: PerOp<Latency<'_>> = m
        .ops()
        .map(|(kind, op)| (kind, Latency::of(&op.figures.latency, &op.data.latency)))
        .collect();
    let measured = |kind: OpKind| m.op(kind).zip(latencies.get(&kind));
    let direction = |kind: OpKind| direction(m, measured(kind));
    let cpu = |ns: u64| match m.steady_ns() {
        0 => 0.0,
        steady_ns => ns as f64 * 100.0 / steady_ns as f64 / threads as f64,
    };
    let start = start_ms.map(|start| start.saturating_add_unsigned(ms(m.steady_start_ns())));
    let elapsed = m
        .data
        .start_ns
        .saturating_add(m.data.wall_ns)
        .div_ceil(1_000_000_000);
    let runtime = ms(m.steady_ns()).saturating_mul(threads);
    let errors = m.errors_total();
    let mut job = object([
        ("jobname", name(m).into()),
        ("groupid", index.into()),
        ("job_start", start.into()),
        ("error", first_error(m).into()),
        ("eta", 0.into()),
        ("elapsed", elapsed.into()),
        ("job options", options.into()),
        ("read", direction(OpKind::Read)),
        ("write", direction(OpKind::Write)),
        ("trim", direction(OpKind::Trim)),
        ("sync", syncs(measured(OpKind::Sync))),
        ("job_runtime", runtime.into()),
        ("usr_cpu", cpu(m.data.cpu.user_ns).into()),
        ("sys_cpu", cpu(m.data.cpu.system_ns).into()),
    ]);
    let transfers = OpKind::REQUESTS
        .iter()
        .filter_map(|kind| latencies.get(kind));
    job.extend(shares_by_latency(transfers));
    if errors > 0 {
        job.insert("total_err".to_owned(), errors.into());
    }
    job.insert("desc".to_owned(), description(record, index, m).into());
    job.into()
}

/// The workload's name, from the second target on with the target's number, as in the histogram
/// log: scripts use these names as keys.
fn name(m: &Row) -> String {
    match m.data.target {
        0 => m.data.workload.name.clone(),
        index => format!("{}.target{}", m.data.workload.name, index + 1),
    }
}

/// The number of the most frequent error; 0 without one. Scripts check it for failed jobs, so an
/// unknown error counts as EIO.
fn first_error(m: &Row) -> u32 {
    const EIO: u32 = 5;
    let most = m
        .errors_by_name()
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .max_by_key(|(_, count)| *count);
    match most {
        Some((name, _)) => errno::number(name).unwrap_or(EIO),
        None => 0,
    }
}

/// The options of the fio command that repeats the workload, as fio prints them. If others ran
/// together with it, only the options of its own job.
fn options(m: &Row) -> Object {
    let words = shell::words(&m.figures.reproduce);
    let name = |word: &String| word.strip_prefix("--name=").map(str::to_owned);
    let is_other = |word: &&String| name(word).as_ref() != Some(&m.data.workload.name);
    let mut own = words.iter().skip_while(is_other);
    let first = own.next().into_iter();
    let own = first.chain(own.take_while(|word| name(word).is_none()));
    let options = own.filter_map(|word| word.strip_prefix("--"));
    let options = options.map(|option| option.split_once('=').unwrap_or((option, "")));
    let pairs = options.map(|(option, value)| (option.to_owned(), value.into()));
    pairs.collect()
}

fn direction(m: &Row, measured: Option<(OpRow<'_>, &Latency<'_>)>) -> Value {
    // Without operations everything is 0, as fio prints it.
    let op = measured.map(|(op, _)| op);
    let count = |of: fn(OpRow<'_>) -> u64| op.map_or(0, of);
    let rate = |of: fn(OpRow<'_>) -> f64| op.map_or(0.0, of);
    let bytes = count(|op| op.data.bytes);
    // JSON has no infinity.
    let bytes_per_second = rate(|op| op.figures.throughput.value);
    let whole = bytes_per_second.is_finite();
    let bytes_per_second = whole.then_some(bytes_per_second.round() as u64);
    let latency = || measured.map_or_else(without_samples, |(_, latency)| latency.object());
    let mut direction = object([
        ("io_bytes", bytes.into()),
        ("io_kbytes", (bytes >> 10).into()),
        ("bw_bytes", bytes_per_second.into()),
        ("bw", bytes_per_second.map(|rate| rate >> 10).into()),
        ("iops", rate(|op| op.figures.iops.value).into()),
        ("runtime", op.map_or(0, |_| ms(m.steady_ns())).into()),
        ("total_ios", count(|op| op.data.count).into()),
        ("short_ios", count(|op| op.data.short).into()),
        ("drop_ios", 0.into()),
        ("slat_ns", without_samples()),
        ("clat_ns", latency()),
        ("lat_ns", latency()),
    ]);
    direction.extend(op.map_or_else(rates_without_samples, |op| rates(m, op)));
    direction.into()
}

fn syncs(measured: Option<(OpRow<'_>, &Latency<'_>)>) -> Value {
    let count = measured.map_or(0, |(op, _)| op.data.count);
    let latency = measured.map_or_else(without_samples, |(_, latency)| latency.object());
    object([("total_ios", count.into()), ("lat_ns", latency)]).into()
}

/// Facts without a field in fio's JSON: disk, run, and the findings about the figures.
fn description(record: &Record, index: usize, m: &Row) -> String {
    let target = record.targets.get(m.data.target);
    let path = target.map_or("an unknown target", |target| &target.path);
    let (name, others) = (&m.data.workload.name, &m.figures.together_with);
    let mut parts = vec![format!("{name} on {path}, run {}", record.run_id)];
    let has_others = !others.is_empty();
    parts.extend(has_others.then(|| format!("together with {}", others.join(", "))));
    let partial = "partial: the run ended before its plan did";
    parts.extend(record.partial.then(|| partial.to_owned()));
    let is_told = |of: &&Finding| of.severity > Severity::Note && concerns(of, index);
    parts.extend(record.findings.iter().filter(is_told).map(|finding| {
        let weight = severity(finding.severity);
        let (code, claim) = (&finding.code, finding.claim.trim_end_matches('.'));
        format!("{weight} {code}: {claim}")
    }));
    parts.join("; ")
}

/// Whether a finding with evidence at these places concerns this measurement, or the whole run.
fn concerns(finding: &Finding, index: usize) -> bool {
    let evidence = || finding.evidence.iter();
    let places = || evidence().map(|evidence| evidence.path.as_str());
    let measurement = |place: &'_ str| {
        let rest = place.strip_prefix("/measurements/")?;
        Some(rest.split('/').next() == Some(&index.to_string()))
    };
    places().any(|place| measurement(place) == Some(true))
        || places().all(|place| measurement(place).is_none())
}
