//! The units of axes, by the values that they have to show.

/// The name of a unit of an axis, and its size in the unit of the record: `("ms", 1e6)` for
/// nanoseconds.
pub(crate) type Unit = (&'static str, f64);

/// Decimal units, as in data sheets of disks.
pub(crate) fn position_unit(bytes_max: f64) -> Unit {
    match bytes_max {
        1e9.. => ("GB", 1e9),
        _ => ("MB", 1e6),
    }
}

/// Milliseconds, or microseconds if all values are below two milliseconds.
pub(super) fn latency_unit(ns_largest: f64) -> Unit {
    match ns_largest {
        2e6.. => ("ms", 1e6),
        _ => ("µs", 1e3),
    }
}

/// A logarithmic axis has the unit that fits values this many times shorter than the longest one.
/// With 1, a single long request would decide the unit of all others.
const LONGEST_OVER_MIDDLE: f64 = 5.0;

/// The unit of a logarithmic axis of latencies: it fits the middle and not the longest one.
pub(super) fn latency_unit_of_log_axis(longest_ns: u64) -> Unit {
    latency_unit(longest_ns as f64 / LONGEST_OVER_MIDDLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_fits_the_largest_value() {
        assert_eq!(position_unit(999e6), ("MB", 1e6));
        assert_eq!(position_unit(1e9), ("GB", 1e9));
        assert_eq!(latency_unit(1_999_999.0), ("µs", 1e3));
        assert_eq!(latency_unit(2e6), ("ms", 1e6));
    }

    /// Latencies of 200 µs with a single one of 9 ms are shown in microseconds.
    #[test]
    fn longest_latency_does_not_decide_the_unit_of_a_log_axis() {
        assert_eq!(latency_unit_of_log_axis(9_000_000), ("µs", 1e3));
        assert_eq!(latency_unit_of_log_axis(10_000_000), ("ms", 1e6));
    }
}
