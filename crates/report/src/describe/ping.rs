//! What single requests add up to, in words.

use crate::labels;
use crate::text::{glue, list};
use diskproof_model::block::{Block, Tone};
use diskproof_model::digits::figure_text;
use diskproof_model::measurement::OpKind;
use diskproof_model::ping::{PingFigures, PingLatency};
use diskproof_model::row::{LatencySummary, OpRow, Row};
use diskproof_model::units::{counted, format_bytes, format_duration, format_latency};

/// Two lines for each operation.
pub(crate) fn digest(m: &Row, ping: &PingFigures) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (kind, op) in shown_ops(m) {
        let known = ping.latency.get(&kind).filter(|_| op.data.count > 0);
        let mean = known.map(|latency| format!(", {}", mean_text(op.data.count, latency)));
        let title = title(m, kind, op) + &mean.unwrap_or_default();
        blocks.push(Block::text(Tone::Bold, title));
        let errors = errors(m, kind, op);
        let failed = (!errors.is_empty()).then(|| format!("failed: {errors}"));
        blocks.extend(failed.map(|text| Block::text(Tone::Error, text)));
        let percentiles = known.map(|_| percentiles(&op.figures.latency));
        blocks.extend(percentiles.map(|text| Block::text(Tone::Plain, text)));
    }
    blocks
}

/// `reads of 4 KiB: 4 requests in 4.0 s`.
pub(crate) fn title(m: &Row, kind: OpKind, op: OpRow<'_>) -> String {
    let operations = match kind {
        OpKind::Commit => "durable writes",
        kind => kind.plural(),
    };
    let block = format_bytes(u64::from(m.data.workload.block_bytes));
    let (count, time) = (
        counted(op.data.count, "request"),
        format_duration(m.data.wall_ns),
    );
    format!("{operations} of {block}: {count} in {time}")
}

/// The errors of an operation; empty for none. A durable write fails in one of its two calls.
pub(crate) fn errors(m: &Row, kind: OpKind, op: OpRow<'_>) -> String {
    let parts = [OpKind::Write, OpKind::Sync].into_iter();
    let parts = parts.filter(|_| kind == OpKind::Commit);
    let parts = parts.filter_map(|part| m.op(part)).chain([op]);
    let errors = parts.flat_map(|op| &op.data.errors);
    list(errors.map(|(name, n)| format!("{n} × {name}")))
}

/// Reads, and writes with what makes them durable.
pub(crate) fn shown_ops(m: &Row) -> impl Iterator<Item = (OpKind, OpRow<'_>)> {
    let commits = m.data.ops.contains_key(&OpKind::Commit);
    // A failed sync counts as a durable write.
    let is_shown = move |kind| matches!(kind, OpKind::Read | OpKind::Commit) || !commits;
    let ops = m.ops();
    ops.filter(move |(kind, _)| is_shown(*kind))
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
pub(crate) fn percentiles(latency: &LatencySummary) -> String {
    let of = |name: &str, ns| glue(&format!("{name} {}", labels::latency(ns)));
    [
        of("min", Some(latency.min)),
        of("p50", latency.p50),
        of("p90", latency.p90),
        of("p99", latency.p99),
        of("p99.9", latency.p99_9),
        of("max", Some(latency.max)),
    ]
    .join(" · ")
}
