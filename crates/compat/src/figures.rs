//! Figures that several tools print: the operations of a measurement by kind, and amounts per
//! second.

use diskproof_model::measurement::{Measurement, OpKind, OpMeasurement};

/// The number of operations of a kind; 0 where the workload has none.
pub(crate) fn ops_of_kind(measurement: &Measurement, kind: OpKind) -> u64 {
    match measurement.ops.get(&kind) {
        Some(op) => op.count,
        None => 0,
    }
}

/// The bytes that operations of a kind moved; 0 where the workload has none.
pub(crate) fn bytes_of_kind(measurement: &Measurement, kind: OpKind) -> u64 {
    match measurement.ops.get(&kind) {
        Some(op) => op.bytes,
        None => 0,
    }
}

/// The writes of a measurement with the latencies that a tool reports; `None` where the workload
/// has no writes. A tool that syncs after each write times both together: that is a commit.
pub(crate) fn timed_writes(measurement: &Measurement) -> Option<&OpMeasurement> {
    let ops = &measurement.ops;
    ops.get(&OpKind::Commit).or_else(|| ops.get(&OpKind::Write))
}

/// The reads and the writes of a measurement, with the latencies that a tool reports.
pub(crate) fn timed_requests(measurement: &Measurement) -> impl Iterator<Item = &OpMeasurement> {
    let reads = measurement.ops.get(&OpKind::Read);
    reads.into_iter().chain(timed_writes(measurement))
}

/// Converts nanoseconds to seconds.
pub(crate) fn as_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The rate of an amount in this time; 0 where no time passed.
pub(crate) fn per_second(amount: f64, ns: u64) -> f64 {
    if ns == 0 {
        0.0
    } else {
        amount / as_seconds(ns)
    }
}
