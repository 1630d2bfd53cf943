//! An observed load in words, for every page, and how closely a run matched one.

use super::run::start_text;
use super::server;
use crate::labels;
use crate::text::glue;
use diskproof_model::block::{Block, Tone};
use diskproof_model::digits::rounded;
use diskproof_model::measurement::OpKind;
use diskproof_model::observed::{
    LikePlan, MeasuredCapacity, ObservedDevice, ObservedOps, ObservedRecord, ObservedSize,
};
use diskproof_model::plan::Access;
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::units::{
    format_bytes, format_duration, format_latency, format_percent, format_rate, format_throughput,
};
use diskproof_model::watch::SeekMethod;

/// Sizes that are named.
const SIZES_MAX: usize = 4;
/// Threads that are named.
const PROCESSES_MAX: usize = 3;
/// Digits of a shortened run id.
const SHORT_ID: usize = 8;

/// Columns of the table.
const COLUMNS: [&str; 8] = [
    "device",
    "",
    "requests/s",
    "± 95 %",
    "throughput",
    "mean",
    "mean size",
    "seeks",
];

/// A row per device and direction, and what the devices and a server did.
pub(crate) fn blocks(observed: &ObservedRecord) -> Vec<Block> {
    let devices = observed.devices.iter();
    let rows: Vec<Vec<String>> = devices
        .flat_map(|device| device.ops.iter().map(|(kind, op)| row(device, *kind, op)))
        .collect();
    let table = if rows.is_empty() {
        Block::text(Tone::Plain, "no requests")
    } else {
        Block::table("Observed load", COLUMNS, rows)
    };
    let server = observed.server.iter().flat_map(server::blocks);
    std::iter::once(table)
        .chain(Block::facts(facts(observed)))
        .chain(server)
        .collect()
}

fn row(device: &ObservedDevice, kind: OpKind, op: &ObservedOps) -> Vec<String> {
    let latency = op
        .latency_mean_ns
        .map(|ns| format_latency(ns.round() as u64));
    let estimated = match device.seeks {
        Some(SeekMethod::Estimated) => "~",
        _ => "",
    };
    vec![
        device.name.clone(),
        kind.plural().to_owned(),
        rounded(op.iops.value, op.iops.half_width_95),
        op.iops.width_text().unwrap_or_default(),
        format_throughput(op.throughput.value),
        latency.unwrap_or_else(|| labels::UNKNOWN.to_owned()),
        format_bytes(op.bytes / op.count.max(1)),
        format!("{estimated}{}", format_percent(op.seek_share)),
    ]
}

/// What a disk can do, and by which run.
pub(crate) fn capacity_text(capacity: &MeasuredCapacity) -> String {
    let figure = |name: &str, iops: Option<f64>, bytes: Option<f64>| {
        let (iops, bytes) = (iops?, bytes?);
        // Their intervals are those of the run; three digits suffice here.
        let rate = rounded(iops, Some(iops * 1e-2));
        Some(glue(&format!(
            "{rate} {name}/s or {}",
            format_throughput(bytes)
        )))
    };
    let known = [
        figure("reads", capacity.read_iops, capacity.read_bytes_per_second),
        figure(
            "writes",
            capacity.write_iops,
            capacity.write_bytes_per_second,
        ),
    ];
    let known: Vec<String> = known.into_iter().flatten().collect();
    format!(
        "100 % is {}, from {} {} on {}",
        known.join(" and "),
        capacity.verb,
        short_id(&capacity.run_id),
        glue(&start_text(&capacity.started)),
    )
}

fn short_id(run_id: &str) -> &str {
    run_id.get(..SHORT_ID).unwrap_or(run_id)
}

/// Label and text of each fact below the table.
fn facts(observed: &ObservedRecord) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    for device in &observed.devices {
        if device.requests() == 0 {
            continue;
        }
        let name = &device.name;
        facts.push(("queue", format!("{name}: {}", queue_text(device))));
        for (kind, op) in &device.ops {
            let sizes = sizes_text(&op.sizes);
            facts.push(("sizes", format!("{name}, {}: {sizes}", kind.plural())));
        }
        if let Some(text) = processes_text(device) {
            facts.push(("by", format!("{name}: {text}")));
        }
        match (&device.capacity, device.load_share) {
            (Some(capacity), Some(share)) => facts.push((
                "load",
                format!(
                    "{name}: {}; {}",
                    format_percent(share),
                    capacity_text(capacity)
                ),
            )),
            _ => facts.push((
                "load",
                format!("{name}: unknown; no run measured its capacity"),
            )),
        }
    }
    let estimated = |device: &ObservedDevice| device.seeks == Some(SeekMethod::Estimated);
    if observed.devices.iter().any(estimated) {
        let how = "~ is an estimate from request sizes and merges";
        facts.push(("seeks", how.to_owned()));
    }
    facts.extend(observed.hidden.iter().map(|what| ("hidden", what.clone())));
    facts
}

fn queue_text(device: &ObservedDevice) -> String {
    let flushes = device
        .flush_ops
        .filter(|flushes| *flushes > 0)
        .map(|flushes| {
            let rate = flushes as f64 * 1e9 / device.wall_ns.max(1) as f64;
            format!(", {}/s flushes", format_rate(rate))
        });
    format!(
        "{:.1} requests in flight on average, at most {:.0}{}, in {}",
        device.queue_depth,
        device.queue_depth_max.ceil(),
        flushes.unwrap_or_default(),
        glue(&format_duration(device.wall_ns)),
    )
}

/// `8 KiB 92 %, 64 KiB 5 %, others 3 %`.
fn sizes_text(sizes: &[ObservedSize]) -> String {
    let count = |size: &ObservedSize| size.random.saturating_add(size.sequential);
    let sum: u64 = sizes.iter().map(count).sum();
    let mut sizes: Vec<&ObservedSize> = sizes.iter().collect();
    sizes.sort_by_key(|size| std::cmp::Reverse(count(size)));
    let share = |count: u64| format_percent(count as f64 / sum.max(1) as f64);
    let mut parts: Vec<String> = sizes
        .iter()
        .take(SIZES_MAX)
        .map(|size| {
            let bytes = format_bytes(u64::from(size.block_bytes));
            glue(&format!("{bytes} {}", share(count(size))))
        })
        .collect();
    let others: u64 = sizes.iter().skip(SIZES_MAX).map(|size| count(size)).sum();
    if others > 0 {
        parts.push(glue(&format!("others {}", share(others))));
    }
    parts.join(", ")
}

fn processes_text(device: &ObservedDevice) -> Option<String> {
    let sum: u64 = device
        .processes
        .iter()
        .map(|process| process.requests)
        .sum();
    let known: Vec<String> = device
        .processes
        .iter()
        .take(PROCESSES_MAX)
        .map(|process| {
            let share = format_percent(process.requests as f64 / sum.max(1) as f64);
            glue(&format!("{} ({}) {share}", process.name, process.pid))
        })
        .collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// How closely a run matched the load that it repeats; nothing for other runs.
pub(crate) fn likeness(record: &Record) -> Vec<Block> {
    let Some(like) = &record.plan.like else {
        return Vec::new();
    };
    let run = MatchedLoad::of(&record.measurements);
    let both = |name: &str, show: &dyn Fn(f64) -> String, wanted: f64, measured: f64| {
        vec![name.to_owned(), show(wanted), show(measured)]
    };
    let rate = |value: f64| format!("{}/s", format_rate(value));
    let bytes = |value: f64| format_bytes(value.round() as u64);
    let depth = |value: f64| format!("{value:.1}");
    let rows = vec![
        both("rate", &rate, like.rate, run.rate),
        both(
            "reads",
            &format_percent,
            like.read_share,
            run.share(run.reads),
        ),
        both(
            "seeks",
            &format_percent,
            like.seek_share,
            run.share(run.seeks),
        ),
        both(
            "mean size",
            &bytes,
            like.block_mean_bytes,
            run.bytes / run.rate.max(1e-9),
        ),
        both("in flight", &depth, like.queue_depth, run.depth),
    ];
    vec![
        Block::Heading(format!("compared with {}", source_text(like))),
        Block::table("Likeness", ["", "observed", "this run"], rows),
    ]
}

fn source_text(like: &LikePlan) -> String {
    format!(
        "the load of {} in run {}",
        like.device,
        short_id(&like.run_id)
    )
}

/// Sums over the workloads that ran together, per second.
#[derive(Default)]
struct MatchedLoad {
    rate: f64,
    reads: f64,
    seeks: f64,
    bytes: f64,
    depth: f64,
}

impl MatchedLoad {
    fn of(measurements: &[MeasurementRecord]) -> Self {
        let mut sum = Self::default();
        for m in measurements {
            let ops = m
                .ops
                .iter()
                .filter(|(kind, _)| matches!(kind, OpKind::Read | OpKind::Write));
            for (kind, op) in ops {
                let rate = op.iops.value;
                sum.rate += rate;
                sum.bytes += op.throughput.value;
                if *kind == OpKind::Read {
                    sum.reads += rate;
                }
                if matches!(m.workload.access, Access::Random { .. }) {
                    sum.seeks += rate;
                }
            }
            sum.depth += m.achieved_depth;
        }
        sum
    }

    fn share(&self, part: f64) -> f64 {
        part / self.rate.max(1e-9)
    }
}
