//! Figures of a measurement that several tools print, and numbers as C prints them.

use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{Measurement, OpKind, OpMeasurement};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// The number of operations of a kind; 0 where the workload has none.
pub(crate) fn count(measurement: &Measurement, kind: OpKind) -> u64 {
    match measurement.ops.get(&kind) {
        Some(op) => op.count,
        None => 0,
    }
}

/// The bytes that operations of a kind moved; 0 where the workload has none.
pub(crate) fn bytes(measurement: &Measurement, kind: OpKind) -> u64 {
    match measurement.ops.get(&kind) {
        Some(op) => op.bytes,
        None => 0,
    }
}

/// The writes of a measurement with the latencies that a tool reports: where it syncs after each
/// write, it times both together. `None` where the workload has no writes.
pub(crate) fn timed_writes(measurement: &Measurement) -> Option<&OpMeasurement> {
    let ops = &measurement.ops;
    ops.get(&OpKind::Commit).or_else(|| ops.get(&OpKind::Write))
}

/// The reads and the writes of a measurement, with the latencies that a tool reports.
pub(crate) fn timed_requests(measurement: &Measurement) -> impl Iterator<Item = &OpMeasurement> {
    let reads = measurement.ops.get(&OpKind::Read);
    reads.into_iter().chain(timed_writes(measurement))
}

/// A time in the zone of this machine, as localtime(3) gives it.
pub(crate) fn local_time(unix_ns: u64) -> Zoned {
    let time = Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or(Timestamp::UNIX_EPOCH);
    time.to_zoned(TimeZone::system())
}

/// Operations since the start, of which the lines of an interval are the difference.
#[derive(Debug, Default)]
pub(crate) struct OpsSoFar {
    /// The time of the sums, in nanoseconds of measured time.
    pub at_ns: u64,
    pub reads: u64,
    pub writes: u64,
    pub syncs: u64,
    /// Latencies of reads and writes together, each with the sync that follows it, and with the
    /// time for which it waited for its turn where a rate is given.
    pub latency: LatencyHistogram,
}

impl OpsSoFar {
    /// Reads and writes together.
    pub(crate) fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// The sum over all workloads, up to this time.
    pub(crate) fn sum(measurements: &[Measurement], at_ns: u64) -> Self {
        let mut sum = Self {
            at_ns,
            ..Self::default()
        };
        for measurement in measurements {
            sum.reads += count(measurement, OpKind::Read);
            sum.writes += count(measurement, OpKind::Write);
            sum.syncs += count(measurement, OpKind::Sync);
            for op in timed_requests(measurement) {
                let latency = op.latency_intended.as_ref().unwrap_or(&op.latency);
                sum.latency.merge(latency);
            }
        }
        sum
    }
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

/// A number as C prints it with `%.6g`, or another number of significant digits, without trailing
/// zeros.
pub(crate) fn general(value: f64, significant: usize) -> String {
    let most = significant as i32;
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let scientific = format!("{:.*e}", significant - 1, value);
    let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = power.parse().unwrap_or(0);
    if (-4..most).contains(&exponent) {
        let places = (most - 1 - exponent).max(0) as usize;
        return without_trailing_zeros(&format!("{value:.places$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let mantissa = without_trailing_zeros(digits);
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn without_trailing_zeros(text: &str) -> &str {
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
            assert_eq!(general(value, 6), text);
        }
        assert_eq!(general(2.666_666_7, 5), "2.6667");
        assert_eq!(general(976.5625, 5), "976.56");
        assert_eq!(general(100_000.0, 5), "1e+05");
    }
}
