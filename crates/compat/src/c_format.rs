//! Numbers and times as the C library prints them.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A time in the zone of this machine, as localtime(3) gives it.
pub(crate) fn local_time(unix_ns: u64) -> Zoned {
    let time = Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or(Timestamp::UNIX_EPOCH);
    time.to_zoned(TimeZone::system())
}

/// A number as C prints it with `%.6g`, or another number of significant digits (at least one),
/// without trailing zeros. Infinities and NaN appear as Rust prints them.
pub(crate) fn format_general(value: f64, significant: usize) -> String {
    debug_assert!(significant > 0);
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
    fn general_format_prints_as_c_does() {
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
            assert_eq!(format_general(value, 6), text);
        }
        assert_eq!(format_general(2.666_666_7, 5), "2.6667");
        assert_eq!(format_general(976.5625, 5), "976.56");
        assert_eq!(format_general(100_000.0, 5), "1e+05");
    }
}
