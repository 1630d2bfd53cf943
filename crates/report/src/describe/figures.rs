//! The figures of a measurement in words: their conditions, the operations with their own row, the
//! meaning of signs in a table.

use crate::labels;
use crate::text::list;
use diskproof_model::limited_by::{LimitedBy, RateLimit};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{OFF_SUFFIX, SyncPolicy};
use diskproof_model::record::{LatencySummary, MeasurementRecord, OpRecord, WorkloadRecord};
use diskproof_model::target::WriteCache;

/// Block size, depth, span and cache mode: a figure has no meaning without them.
pub(crate) fn conditions(workload: &WorkloadRecord) -> String {
    let mut facts = vec![labels::block(workload.block_bytes, &workload.block_mix)];
    facts.extend(labels::mix(workload.read_permille));
    facts.extend(labels::sync(workload.sync));
    let depth = labels::depth(workload.depth, workload.workers);
    facts.push(format!("depth {depth}"));
    facts.push(span(workload));
    facts.extend(labels::offered(workload.rate));
    facts.extend(workload.shape.facts());
    facts.push(labels::cache(workload.cache).to_owned());
    let switched = workload.write_cache.map(labels::switched_write_cache);
    facts.extend(switched.map(str::to_owned));
    facts.extend(labels::together(&workload.together_with));
    list(facts)
}

/// `random over 4 GiB`
fn span(workload: &WorkloadRecord) -> String {
    format!(
        "{} {}",
        labels::access(&workload.access),
        labels::span(workload.span_start_bytes, workload.span_bytes)
    )
}

/// Span and cache mode if all measurements share them, so that a table need not repeat them.
pub(crate) fn common_conditions(measurements: &[&MeasurementRecord]) -> Option<String> {
    let common = |m: &MeasurementRecord| {
        let w = &m.workload;
        let span = labels::span(w.span_start_bytes, w.span_bytes);
        format!("{span}, {}", labels::cache(w.cache))
    };
    let first = common(measurements.first()?);
    measurements
        .iter()
        .all(|m| common(m) == first)
        .then_some(first)
}

/// One request of a row, in fio's words: `read 8k`, `write 1M×8`.
pub(crate) fn request(kind: OpKind, workload: &WorkloadRecord) -> String {
    let block = labels::short_block(workload.block_bytes, &workload.block_mix);
    let in_flight = u64::from(workload.depth) * u64::from(workload.workers);
    match (kind, in_flight) {
        (OpKind::Sync, _) => kind.as_str().to_owned(),
        (_, 1) => format!("{} {block}", kind.as_str()),
        (_, n) => format!("{} {block}×{n}", kind.as_str()),
    }
}

/// The headline operations, and the syncs if one follows several writes: then neither the writes
/// nor a commit contain its time.
pub(crate) fn shown_ops(measurement: &MeasurementRecord) -> Vec<(OpKind, &OpRecord)> {
    let mut ops = measurement.headline_ops();
    let sync = measurement.ops.get(&OpKind::Sync);
    if let (SyncPolicy::Every { writes: 2.., .. }, Some(sync)) = (measurement.workload.sync, sync) {
        ops.push((OpKind::Sync, sync));
    }
    ops
}

/// Under an offered load the latency of a request begins at its intended start, not when a free
/// slot admitted it (coordinated omission).
pub(crate) fn shown_latency(op: &OpRecord) -> &LatencySummary {
    op.latency_intended.as_ref().unwrap_or(&op.latency)
}

/// What the intervals of a table know of: a single run cannot know how the next one differs.
fn basis(measurements: &[&MeasurementRecord]) -> String {
    let runs = measurements.iter().filter_map(|m| m.run_to_run);
    let earlier = runs.map(|runs| runs.earlier_runs).max();
    let is_sliced = measurements.iter().any(|m| m.slices.len() > 1);
    match earlier {
        Some(earlier) => format!("from run to run ({earlier} earlier runs)"),
        None if is_sliced => "from slices of this run; from run to run unknown".to_owned(),
        None => "within this run; from run to run unknown".to_owned(),
    }
}

/// The meaning of the signs that occur in a table.
pub(crate) fn legend(measurements: &[&MeasurementRecord]) -> String {
    let ops: Vec<&OpRecord> = measurements
        .iter()
        .flat_map(|m| shown_ops(m))
        .map(|(_, op)| op)
        .collect();
    let basis = basis(measurements);
    let mut legend = format!("±: half of the 95 % interval of the rate, {basis}.");
    if ops.iter().any(|op| op.iops.relative_half_width().is_none()) {
        legend.push_str(" ±?: measured too briefly for an interval.");
    }
    let has_unknown = |op: &&OpRecord| {
        let latency = shown_latency(op);
        [latency.p50, latency.p99, latency.p99_9].contains(&None)
    };
    if ops.iter().any(has_unknown) {
        legend.push_str(" –:\u{a0}fewer than ten samples beyond it.");
    }
    let names = |state| {
        let of_state = measurements
            .iter()
            .filter(move |m| m.workload.write_cache == Some(state));
        of_state.map(|m| m.workload.name.as_str())
    };
    let with_cache: Vec<&str> = names(WriteCache::WriteBack).collect();
    let is_off = |name: &str| {
        with_cache
            .iter()
            .any(|on| name.strip_suffix(OFF_SUFFIX) == Some(on))
    };
    if names(WriteCache::WriteThrough).any(is_off) {
        legend.push_str(" -off: with the disk's write cache off.");
    }
    if ops.iter().any(|op| op.latency_intended.is_some()) {
        legend.push_str(" Latencies under an offered load count from the intended start.");
    }
    legend
}

/// `limited by queue depth: 32 in flight reach 5.0 times the rate of 1`.
pub(crate) fn limited_by_text(limited: &LimitedBy) -> String {
    match limited.limit {
        RateLimit::Unknown => format!("limit unknown: {}", limited.why),
        known => format!("limited by {}: {}", known.as_str(), limited.why),
    }
}
