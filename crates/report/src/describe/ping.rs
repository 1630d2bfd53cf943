//! The figures of single requests in words.

use crate::labels;
use crate::text::{glue, list};
use diskproof_model::block::{Block, Tone};
use diskproof_model::digits::figure_text;
use diskproof_model::measurement::OpKind;
use diskproof_model::ping::{PingFigures, PingLatency};
use diskproof_model::row::{LatencySummary, OpRow, Row};
use diskproof_model::units::{counted, format_bytes, format_duration, format_latency};

/// Describes single requests on a short page: two lines for each operation, and one for its errors.
pub(crate) fn digest_blocks(measurement: &Row, ping: &PingFigures) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (kind, op) in shown_ops(measurement) {
        let count = op.data.count;
        let mut title_line = title_text(measurement, kind, op);
        let mut percentiles_line = None;
        if let Some(latency) = ping.latency.get(&kind)
            && count > 0
        {
            title_line.push_str(&format!(", {}", mean_text(count, latency)));
            percentiles_line = Some(percentiles_text(&op.figures.latency));
        }
        blocks.push(Block::text(Tone::Bold, title_line));
        let errors_text = errors_text(measurement, kind, op);
        if !errors_text.is_empty() {
            let line = format!("failed: {errors_text}");
            blocks.push(Block::text(Tone::Error, line));
        }
        if let Some(line) = percentiles_line {
            blocks.push(Block::text(Tone::Plain, line));
        }
    }
    blocks
}

/// `reads of 4 KiB: 4 requests in 4.0 s`.
pub(crate) fn title_text(measurement: &Row, kind: OpKind, op: OpRow<'_>) -> String {
    let operations = match kind {
        OpKind::Commit => "durable writes",
        kind => kind.plural(),
    };
    let block = format_bytes(u64::from(measurement.data.workload.block_bytes));
    let count = counted(op.data.count, "request");
    let time = format_duration(measurement.data.wall_ns);
    format!("{operations} of {block}: {count} in {time}")
}

/// `3 × EIO`: the errors of an operation, empty without any. Those of a durable write include the
/// errors of its two calls.
pub(crate) fn errors_text(measurement: &Row, kind: OpKind, op: OpRow<'_>) -> String {
    let mut parts = Vec::new();
    if kind == OpKind::Commit {
        parts.extend(measurement.op(OpKind::Write));
        parts.extend(measurement.op(OpKind::Sync));
    }
    parts.push(op);
    let mut errors = Vec::new();
    for part in parts {
        for (name, count) in &part.data.errors {
            errors.push(format!("{count} × {name}"));
        }
    }
    list(errors)
}

/// The operations that a page shows: reads, and durable writes in place of the writes and syncs of
/// which they consist.
pub(crate) fn shown_ops(measurement: &Row) -> impl Iterator<Item = (OpKind, OpRow<'_>)> {
    let commits = measurement.data.ops.contains_key(&OpKind::Commit);
    // A failed sync counts as a durable write.
    measurement
        .ops()
        .filter(move |(kind, _)| matches!(kind, OpKind::Read | OpKind::Commit) || !commits)
}

/// `mean 131 µs ±4 %, deviation 12.1 µs`. One request is its own mean, and does not deviate.
pub(crate) fn mean_text(count: u64, latency: &PingLatency) -> String {
    let mean = &latency.mean;
    if count < 2 {
        return format!("mean {}", format_latency(mean.value as u64));
    }
    let deviation_ns = latency.deviation_ns;
    let deviation = figure_text(deviation_ns, Some(deviation_ns * 1e-2), "ns");
    format!("mean {}, deviation {deviation}", mean.text())
}

/// `min 119 µs · p50 130 µs · p99 – · max 146 µs`.
pub(crate) fn percentiles_text(latency: &LatencySummary) -> String {
    [
        named_latency("min", Some(latency.min)),
        named_latency("p50", latency.p50),
        named_latency("p90", latency.p90),
        named_latency("p99", latency.p99),
        named_latency("p99.9", latency.p99_9),
        named_latency("max", Some(latency.max)),
    ]
    .join(" · ")
}

fn named_latency(name: &str, ns: Option<u64>) -> String {
    glue(&format!("{name} {}", labels::latency(ns)))
}
