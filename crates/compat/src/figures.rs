//! Figures of a measurement that several tools print, and numbers as C prints them.

use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{Measurement, OpKind};

/// Operations of a kind.
pub(crate) fn count(measurement: &Measurement, kind: OpKind) -> u64 {
    measurement.ops.get(&kind).map_or(0, |op| op.count)
}

/// Bytes that operations of a kind moved.
pub(crate) fn bytes(measurement: &Measurement, kind: OpKind) -> u64 {
    measurement.ops.get(&kind).map_or(0, |op| op.bytes)
}

/// Operations since the start, of which the lines of an interval are the difference.
#[derive(Debug, Default)]
pub(crate) struct OpsSoFar {
    pub at_ns: u64,
    pub reads: u64,
    pub writes: u64,
    pub syncs: u64,
    /// Of reads and writes.
    pub latency: LatencyHistogram,
}

impl OpsSoFar {
    /// Of all workloads, up to this time.
    pub(crate) fn of(measurements: &[Measurement], at_ns: u64) -> Self {
        let sum = |kind| measurements.iter().map(|one| count(one, kind)).sum();
        // Where every write is synced, the sync has its own operation alongside the write.
        let mut latency = LatencyHistogram::new();
        for kind in [OpKind::Read, OpKind::Write] {
            let ops = measurements.iter().filter_map(|one| one.ops.get(&kind));
            ops.for_each(|op| latency.merge(&op.latency));
        }
        Self {
            at_ns,
            reads: sum(OpKind::Read),
            writes: sum(OpKind::Write),
            syncs: sum(OpKind::Sync),
            latency,
        }
    }
}

/// Nanoseconds as seconds.
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The rate of an amount in this time; 0 where no time passed.
pub(crate) fn per_second(amount: f64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { amount / seconds(ns) }
}

/// `%g`: six significant digits, without trailing zeros.
pub(crate) fn general(value: f64) -> String {
    const DIGITS: i32 = 6;
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let scientific = format!("{:.*e}", DIGITS as usize - 1, value);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let places = (DIGITS - 1 - exponent).max(0) as usize;
        return trimmed(&format!("{value:.places$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_prints_as_c_does() {
        let cases = [
            (0.001_234_567, "0.00123457"),
            (1.5, "1.5"),
            (100.0, "100"),
            (3.000_001_9, "3"),
            (0.000_056_789, "5.6789e-05"),
            (1_234_567.0, "1.23457e+06"),
            (12.345_678, "12.3457"),
        ];
        for (value, text) in cases {
            assert_eq!(general(value), text);
        }
    }
}
