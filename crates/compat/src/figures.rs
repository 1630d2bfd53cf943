//! Figures of a measurement that several tools print.

use diskproof_model::measurement::{Measurement, OpKind};

/// Operations of a kind.
pub(crate) fn count(measurement: &Measurement, kind: OpKind) -> u64 {
    measurement.ops.get(&kind).map_or(0, |op| op.count)
}

/// Bytes that operations of a kind moved.
pub(crate) fn bytes(measurement: &Measurement, kind: OpKind) -> u64 {
    measurement.ops.get(&kind).map_or(0, |op| op.bytes)
}

/// Nanoseconds as seconds.
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The rate of an amount in this time; 0 where no time passed.
pub(crate) fn per_second(amount: f64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { amount / seconds(ns) }
}
