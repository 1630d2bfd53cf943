//! An observed load in words, for every page, and how closely a run matched one.

use super::run::{run_id, start_text};
use super::server;
use crate::labels;
use crate::text::{glue, joined};
use diskproof_model::block::{Block, Tone};
use diskproof_model::digits::rounded;
use diskproof_model::measurement::OpKind;
use diskproof_model::observed::{
    MeasuredCapacity, ObservedDevice, ObservedOps, ObservedRecord, ObservedSize,
};
use diskproof_model::plan::Access;
use diskproof_model::record::Record;
use diskproof_model::row::{OpRow, Row};
use diskproof_model::units::{
    format_bytes, format_duration, format_percent, format_rate, format_throughput,
};
use diskproof_model::watch::SeekMethod;

/// Sizes that are named.
const SIZES_MAX: usize = 4;
/// Threads that are named.
const PROCESSES_MAX: usize = 3;

/// Columns of the table.
const COLUMNS: &str = "device |  | requests/s | ± 95 % | throughput | mean | mean size | seeks";

/// A row per device and direction, and what the devices and a server did.
pub(crate) fn blocks(observed: &ObservedRecord) -> Vec<Block> {
    let devices = observed.devices.iter();
    let rows =
        devices.flat_map(|device| device.ops.iter().map(|(kind, op)| row(device, *kind, op)));
    let rows: Vec<Vec<String>> = rows.collect();
    let mut blocks = vec![if rows.is_empty() {
        Block::text(Tone::Plain, "no requests")
    } else {
        Block::table("Observed load", COLUMNS.split(" | "), rows)
    }];
    blocks.extend(Block::facts(facts(observed)));
    blocks.extend(observed.server.iter().flat_map(server::blocks));
    blocks
}

fn row(device: &ObservedDevice, kind: OpKind, op: &ObservedOps) -> Vec<String> {
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
        labels::latency(op.latency_mean_ns.map(|ns| ns.round() as u64)),
        format_bytes(op.bytes / op.count.max(1)),
        format!("{estimated}{}", format_percent(op.seek_share)),
    ]
}

/// What a disk can do, and by which run.
pub(crate) fn capacity_text(capacity: &MeasuredCapacity) -> String {
    let figure = |name: &str, iops: Option<f64>, bytes: Option<f64>| {
        let (iops, bytes) = (iops?, format_throughput(bytes?));
        // Their intervals are those of the run; three digits suffice here.
        let rate = rounded(iops, Some(iops * 1e-2));
        Some(glue(&format!("{rate} {name}/s or {bytes}")))
    };
    let reads = figure("reads", capacity.read_iops, capacity.read_bytes_per_second);
    let rate = capacity.write_bytes_per_second;
    let writes = figure("writes", capacity.write_iops, rate);
    format!(
        "100 % is {}, from {} {} on {}",
        joined(reads.into_iter().chain(writes), " and ").unwrap_or_default(),
        capacity.verb,
        run_id(&capacity.run_id),
        glue(&start_text(&capacity.started)),
    )
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
        let by = processes_text(device).map(|text| format!("{name}: {text}"));
        facts.extend(by.map(|text| ("by", text)));
        let load = match (&device.capacity, device.load_share) {
            (Some(capacity), Some(share)) => {
                format!("{}; {}", format_percent(share), capacity_text(capacity))
            }
            _ => "unknown; no run measured its capacity".to_owned(),
        };
        facts.push(("load", format!("{name}: {load}")));
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
    let flushes = device.flush_ops.filter(|flushes| *flushes > 0);
    let flushes = flushes.map_or(String::new(), |flushes| {
        let rate = flushes as f64 * 1e9 / device.wall_ns.max(1) as f64;
        format!(", {}/s flushes", format_rate(rate))
    });
    format!(
        "{:.1} requests in flight on average, at most {:.0}{flushes}, in {}",
        device.queue_depth,
        device.queue_depth_max.ceil(),
        glue(&format_duration(device.wall_ns)),
    )
}

/// `8 KiB 92 %, 64 KiB 5 %, others 3 %`.
fn sizes_text(sizes: &[ObservedSize]) -> String {
    let count = |of: &ObservedSize| of.random.saturating_add(of.sequential);
    let counts = sizes.iter().map(|of| (count(of), of.block_bytes));
    let mut counts: Vec<(u64, u32)> = counts.collect();
    let sum: u64 = counts.iter().map(|(count, _)| count).sum();
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let share = |count: u64| format_percent(count as f64 / sum.max(1) as f64);
    let (shown, rest) = counts.split_at(counts.len().min(SIZES_MAX));
    let size = |(count, bytes): &(u64, u32)| {
        let (bytes, share) = (format_bytes(u64::from(*bytes)), share(*count));
        glue(&format!("{bytes} {share}"))
    };
    let others: u64 = rest.iter().map(|(count, _)| count).sum();
    let others = (others > 0).then(|| glue(&format!("others {}", share(others))));
    joined(shown.iter().map(size).chain(others), ", ").unwrap_or_default()
}

fn processes_text(device: &ObservedDevice) -> Option<String> {
    let all = || device.processes.iter();
    let sum: u64 = all().map(|process| process.requests).sum();
    let known = all().take(PROCESSES_MAX).map(|process| {
        let share = format_percent(process.requests as f64 / sum.max(1) as f64);
        glue(&format!("{} ({}) {share}", process.name, process.pid))
    });
    joined(known, ", ")
}

/// How closely a run matched the load that it repeats; nothing for other runs.
pub(crate) fn likeness(record: &Record) -> Vec<Block> {
    let Some(like) = record.plan.like() else {
        return Vec::new();
    };
    // Sums over the workloads that ran together, per second. `sum` of no numbers is −0.
    let all = || record.measurements.iter();
    let ops = || all().flat_map(|m| m.ops().map(move |(kind, op)| (m, kind, op)));
    let transfers = || ops().filter(|(_, kind, _)| matches!(kind, OpKind::Read | OpKind::Write));
    let sum = |of: fn(&Row, OpKind, OpRow<'_>) -> f64| -> f64 {
        transfers().fold(0.0, |sum, (m, kind, op)| sum + of(m, kind, op))
    };
    let total = sum(|_, _, op| op.figures.iops.value);
    let reads = sum(|_, kind, op| {
        if kind == OpKind::Read {
            op.figures.iops.value
        } else {
            0.0
        }
    });
    let seeks = sum(|m, _, op| match m.data.workload.access {
        Access::Random { .. } => op.figures.iops.value,
        _ => 0.0,
    });
    let bytes = sum(|_, _, op| op.figures.throughput.value);
    let depth = all().fold(0.0, |sum, m| sum + m.data.achieved_depth);
    let rate_text = |value: f64| format!("{}/s", format_rate(value));
    let bytes_text = |value: f64| format_bytes(value.round() as u64);
    let depth_text = |value: f64| format!("{value:.1}");
    let mean_bytes = like.block_mean_bytes;
    let share = |part: f64| part / total.max(1e-9);
    let both = |name: &str, show: &dyn Fn(f64) -> String, wanted: f64, measured: f64| {
        vec![name.to_owned(), show(wanted), show(measured)]
    };
    let rows = vec![
        both("rate", &rate_text, like.rate, total),
        both("reads", &format_percent, like.read_share, share(reads)),
        both("seeks", &format_percent, like.seek_share, share(seeks)),
        both("mean size", &bytes_text, mean_bytes, share(bytes)),
        both("in flight", &depth_text, like.queue_depth, depth),
    ];
    let (device, run) = (&like.device, run_id(&like.run_id));
    vec![
        Block::Heading(format!("compared with the load of {device} in run {run}")),
        Block::table("Likeness", ["", "observed", "this run"], rows),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::observed::LikePlan;

    #[test]
    fn run_that_measured_nothing_has_no_negative_figures() {
        let mut record = crate::fixture::record();
        record.measurements.clear();
        record.plan.workload_task_mut().unwrap().like = Some(LikePlan {
            run_id: "01234567".to_owned(),
            device: "sda".to_owned(),
            rate: 100.0,
            read_share: 0.5,
            seek_share: 0.5,
            block_mean_bytes: 8192.0,
            queue_depth: 1.0,
        });
        let blocks = likeness(&record);
        let Block::Table(table) = &blocks[1] else {
            panic!("{blocks:?}");
        };
        let measured: Vec<&str> = table.rows.iter().map(|row| &*row.cells[2].text).collect();
        assert_eq!(measured, ["0/s", "0 %", "0 %", "0 B", "0.0"]);
    }
}
