//! An observed load in words: what programs requested of each device, and what a server did.

use super::run::{short_run_id, start_text};
use super::server;
use crate::labels;
use crate::text::{glue, joined};
use diskproof_model::block::{Block, Tone};
use diskproof_model::digits::rounded;
use diskproof_model::measurement::OpKind;
use diskproof_model::observed::{
    MeasuredCapacity, ObservedDevice, ObservedOps, ObservedRecord, ObservedSize,
};
use diskproof_model::units::{
    format_bytes, format_duration, format_percent, format_rate, format_throughput,
};
use diskproof_model::watch::SeekMethod;
use std::cmp::Reverse;

/// A line names at most this many request sizes, and adds up the shares of the others.
const SIZES_MAX: usize = 4;
/// A line names at most this many processes, the busiest; the record has all.
const PROCESSES_MAX: usize = 3;
/// Capacities print with three to four digits, those of this relative half-width.
const CAPACITY_WIDTH: f64 = 1e-2;

/// Columns of the table.
const COLUMNS: &str = "device |  | requests/s | ± 95 % | throughput | mean | mean size | seeks";

/// Describes an observed load: a table with a row for each device and direction, then facts on each
/// device and on a server.
pub(crate) fn blocks(observed: &ObservedRecord) -> Vec<Block> {
    let mut rows = Vec::new();
    for device in &observed.devices {
        for (kind, op) in &device.ops {
            rows.push(direction_row(device, *kind, op));
        }
    }
    let mut blocks = Vec::new();
    if rows.is_empty() {
        blocks.push(Block::text(Tone::Plain, "no requests"));
    } else {
        let columns = COLUMNS.split(" | ");
        blocks.push(Block::table("Observed load", columns, rows));
    }
    for device in &observed.devices {
        blocks.extend(device_facts(device));
    }
    if observed.devices.iter().any(has_estimated_seeks) {
        let text = "~ is an estimate from request sizes and merges";
        blocks.push(Block::fact("seeks", text));
    }
    for what in &observed.hidden {
        blocks.push(Block::fact("hidden", what));
    }
    if let Some(server) = &observed.server {
        blocks.extend(server::blocks(server));
    }
    blocks
}

fn has_estimated_seeks(device: &ObservedDevice) -> bool {
    device.seeks == Some(SeekMethod::Estimated)
}

fn direction_row(device: &ObservedDevice, kind: OpKind, op: &ObservedOps) -> Vec<String> {
    let estimated = if has_estimated_seeks(device) { "~" } else { "" };
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

/// `100 % is 12,000 reads/s or 500 MB/s, from check 01234567 on …`: the most that a disk can do,
/// and the run that measured it.
pub(crate) fn capacity_text(capacity: &MeasuredCapacity) -> String {
    let mut limits = Vec::new();
    limits.extend(direction_capacity_text(
        "reads",
        capacity.read_iops,
        capacity.read_bytes_per_second,
    ));
    limits.extend(direction_capacity_text(
        "writes",
        capacity.write_iops,
        capacity.write_bytes_per_second,
    ));
    format!(
        "100 % is {}, from {} {} on {}",
        limits.join(" and "),
        capacity.verb,
        short_run_id(&capacity.run_id),
        glue(&start_text(&capacity.started)),
    )
}

/// `12,000 reads/s or 500 MB/s`: the most that one direction can do. `None` where either figure is
/// unknown.
fn direction_capacity_text(
    direction: &str,
    iops: Option<f64>,
    bytes_per_second: Option<f64>,
) -> Option<String> {
    let iops = iops?;
    let rate = rounded(iops, Some(iops * CAPACITY_WIDTH));
    let throughput = format_throughput(bytes_per_second?);
    Some(glue(&format!("{rate} {direction}/s or {throughput}")))
}

/// Facts on a device below the table: its queue, its sizes, its processes, its load. Empty for an
/// idle one.
fn device_facts(device: &ObservedDevice) -> Vec<Block> {
    if device.requests() == 0 {
        return Vec::new();
    }
    let name = &device.name;
    let queue = format!("{name}: {}", queue_text(device));
    let mut facts = vec![Block::fact("queue", queue)];
    for (kind, op) in &device.ops {
        let text = format!("{name}, {}: {}", kind.plural(), sizes_text(&op.sizes));
        facts.push(Block::fact("sizes", text));
    }
    if let Some(processes) = processes_text(device) {
        facts.push(Block::fact("by", format!("{name}: {processes}")));
    }
    let load = match (&device.capacity, device.load_share) {
        (Some(capacity), Some(share)) => {
            format!("{}; {}", format_percent(share), capacity_text(capacity))
        }
        (Some(capacity), None) => {
            let unmeasured = match capacity.read_iops.and(capacity.read_bytes_per_second) {
                Some(_) => "writes",
                None => "reads",
            };
            format!(
                "unknown, as no run measured its {unmeasured}; {}",
                capacity_text(capacity)
            )
        }
        (None, _) => "unknown; no run measured its capacity".to_owned(),
    };
    facts.push(Block::fact("load", format!("{name}: {load}")));
    facts
}

fn queue_text(device: &ObservedDevice) -> String {
    let flushes = match device.flush_ops {
        None | Some(0) => String::new(),
        Some(count) => {
            let rate = count as f64 * 1e9 / device.wall_ns.max(1) as f64;
            format!(", {}/s flushes", format_rate(rate))
        }
    };
    format!(
        "{:.1} requests in flight on average, at most {:.0}{flushes}, in {}",
        device.queue_depth,
        device.queue_depth_max.ceil(),
        glue(&format_duration(device.wall_ns)),
    )
}

/// `8 KiB 92 %, 64 KiB 5 %, others 3 %`.
fn sizes_text(sizes: &[ObservedSize]) -> String {
    let sum: u64 = sizes.iter().map(requests_of_size).sum();
    let mut by_count: Vec<&ObservedSize> = sizes.iter().collect();
    by_count.sort_by_key(|size| Reverse(requests_of_size(size)));
    let mut texts = Vec::new();
    let mut others = 0;
    for (rank, size) in by_count.into_iter().enumerate() {
        let count = requests_of_size(size);
        if rank < SIZES_MAX {
            let bytes = format_bytes(u64::from(size.block_bytes));
            texts.push(glue(&format!("{bytes} {}", share_text(count, sum))));
        } else {
            others += count;
        }
    }
    if others > 0 {
        texts.push(glue(&format!("others {}", share_text(others, sum))));
    }
    texts.join(", ")
}

fn requests_of_size(size: &ObservedSize) -> u64 {
    size.random.saturating_add(size.sequential)
}

fn share_text(part: u64, sum: u64) -> String {
    format_percent(part as f64 / sum.max(1) as f64)
}

fn processes_text(device: &ObservedDevice) -> Option<String> {
    let busiest_requests: u64 = device
        .processes
        .iter()
        .map(|process| process.requests)
        .sum();
    // Only the busiest are known by name; the shares are of all requests.
    let device_requests: u64 = device.ops.values().map(|ops| ops.count).sum();
    // They are traced, while the device counts, so that either sum may be a few requests larger.
    let sum = device_requests.max(busiest_requests);
    let mut texts = Vec::new();
    for process in device.processes.iter().take(PROCESSES_MAX) {
        let share = share_text(process.requests, sum);
        let text = format!("{} ({}) {share}", process.name, process.pid);
        texts.push(glue(&text));
    }
    joined(texts, ", ")
}
