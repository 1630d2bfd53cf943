//! Reads sizes, rates and times from the user, and prints them the same way everywhere: throughput
//! in MB/s (10⁶), sizes in KiB/MiB/GiB, latency in ns/µs/ms/s. The unit always stands next to the
//! number.

/// The smallest sector of a disk, and the unit in which Linux counts sectors everywhere.
pub const SECTOR_BYTES: u64 = 512;

/// A quantity that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {what}")]
pub struct UnitError {
    text: String,
    what: &'static str,
}

impl UnitError {
    fn new(text: &str, what: &'static str) -> Self {
        Self {
            text: text.to_owned(),
            what,
        }
    }
}

/// What a size is, and how to write it: the end of an error.
const SIZE: &str = "a size; write bytes with k, M, G or T (steps of 1024), kB/MB/GB/TB (steps of \
                    1000) or KiB/MiB/GiB/TiB, such as 8k, 100MB or 4GiB";
/// As [`SIZE`], of a latency.
const LATENCY: &str = "a latency; write it with ns, us, ms or s, such as 200us or 5ms";
/// As [`SIZE`], of a duration.
const DURATION: &str = "a duration; write a number with ms, s, m, h or d, such as 500ms, 30s or 2m";
/// The largest error of a product of two rounded numbers, as a share of it.
const PRODUCT_ROUNDING: f64 = 2.0 * f64::EPSILON;

/// A count of things that have a plural in s: `1 point`, `200 points`.
pub fn counted(n: u64, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        _ => format!("{n} {one}s"),
    }
}

/// Reads a size in bytes: `8k` = 8 KiB = 8192, `8kB` = 8000, `1.5G`, `4096`.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let Some((number, unit)) = split(text) else {
        return Err(UnitError::new(text, SIZE));
    };
    let (letter, rest) = match unit.chars().next() {
        None => ('b', ""),
        Some(c) => (c.to_ascii_lowercase(), &unit[c.len_utf8()..]),
    };
    let power = match letter {
        'b' => 0,
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        _ => return Err(UnitError::new(text, SIZE)),
    };
    let step: f64 = match (power, rest) {
        (0, "") | (1.., "" | "iB" | "ib" | "i") => 1024.0,
        (1.., "B" | "b") => 1000.0,
        _ => return Err(UnitError::new(text, SIZE)),
    };
    let exact = number * step.powi(power);
    // A decimal fraction such as 8.2 is rounded before and after it is multiplied.
    let bytes = exact.round();
    let is_whole = (exact - bytes).abs() <= PRODUCT_ROUNDING * exact;
    if is_whole && bytes < u64::MAX as f64 {
        Ok(bytes as u64)
    } else {
        Err(UnitError::new(text, SIZE))
    }
}

/// Reads a latency in nanoseconds: `200us`, `5ms`, `1.5s`. It needs its unit, and none above
/// seconds: a bare number, or an `m` in place of `ms`, would be a limit that every disk keeps.
pub fn parse_latency(text: &str) -> Result<u64, UnitError> {
    match split(text) {
        Some((_, "ns" | "us" | "µs" | "ms" | "s")) => {
            parse_duration(text).map_err(|_| UnitError::new(text, LATENCY))
        }
        _ => Err(UnitError::new(text, LATENCY)),
    }
}

/// Reads a duration in nanoseconds: `500ms`, `30s`, `2m`, `1h`, `1.5s`; a bare number is seconds.
pub fn parse_duration(text: &str) -> Result<u64, UnitError> {
    let Some((number, unit)) = split(text) else {
        return Err(UnitError::new(text, DURATION));
    };
    let unit_ns = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" | "" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "d" => 86_400e9,
        _ => return Err(UnitError::new(text, DURATION)),
    };
    let ns = unit_ns * number;
    if ns < u64::MAX as f64 {
        Ok(ns.round() as u64)
    } else {
        Err(UnitError::new(text, DURATION))
    }
}

/// The number at the start of a text, and the unit behind it.
fn split(text: &str) -> Option<(f64, &str)> {
    let trimmed = text.trim();
    let unit = trimmed.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number: f64 = trimmed[..trimmed.len() - unit.len()].parse().ok()?;
    if number.is_finite() && number >= 0.0 {
        Some((number, unit.trim_start()))
    } else {
        None
    }
}

/// Prints bytes in binary units: `512 B`, `8 KiB`, `1.5 GiB`.
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value >= 99.95 {
        return format!("{value:.0} {}", UNITS[unit]);
    }
    // 54.97 and 55.02 are both 55.
    let rounded = format!("{value:.1}");
    let shown = rounded.strip_suffix(".0").unwrap_or(&rounded);
    format!("{shown} {}", UNITS[unit])
}

/// Prints the size of a file in decimal units, three significant digits: `850 B`, `225 kB`, `1.20
/// MB`.
pub fn format_file_size(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..999_500 => format!("{} kB", significant(value / 1e3)),
        999_500..999_500_000 => format!("{} MB", significant(value / 1e6)),
        _ => format!("{} GB", significant(value / 1e9)),
    }
}

/// Prints a rate in MB/s (10⁶ bytes), three significant digits or whole numbers: `0.52 MB/s`, `61.3
/// MB/s`, `1234 MB/s`.
pub fn format_throughput(bytes_per_second: f64) -> String {
    format!("{} MB/s", significant(bytes_per_second / 1e6))
}

/// Prints operations per second without a unit: `82.7`, `1234`; from a million on in millions,
/// `1.28M`.
pub fn format_rate(per_second: f64) -> String {
    if per_second >= 999_500.0 {
        format!("{}M", significant(per_second / 1e6))
    } else {
        significant(per_second)
    }
}

/// Prints a latency with its unit: `850 ns`, `61.3 µs`, `8.21 ms`, `1.50 s`.
pub fn format_latency(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..999_500 => format!("{} µs", significant(value / 1e3)),
        999_500..999_500_000 => format!("{} ms", significant(value / 1e6)),
        _ => format!("{} s", significant(value / 1e9)),
    }
}

/// Prints a duration for people: `350 ms`, `8.0 s`, `1 min 15 s`, `2 h 5 min`.
pub fn format_duration(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    let whole = seconds.round() as u64;
    match seconds {
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 59.5 => format!("{s:.0} s"),
        s if s < 3599.5 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Prints a share in percent, one decimal below 10 %: `0.4 %`, `2 %`, `12 %`; `<0.1 %` for less
/// than that, and never `100 %` for less than all.
pub fn format_percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 0.05 => "<0.1 %".to_owned(),
        p if (99.0..100.0).contains(&p) => "99 %".to_owned(),
        p if p < 9.95 && (p * 10.0).round() % 10.0 != 0.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// Three significant digits below 1000, two below 0.1, whole numbers above.
fn significant(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        v if v < 0.0995 => (1.0 - v.log10().floor()).min(9.0) as usize,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn file_sizes_have_three_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.00 kB"),
            (225_049, "225 kB"),
            (999_499, "999 kB"),
            (1_204_000, "1.20 MB"),
            (3_000_000_000, "3.00 GB"),
        ] {
            assert_eq!(format_file_size(bytes), text);
        }
    }

    #[test]
    fn sizes_read_as_fio_users_expect() {
        for (text, bytes) in [
            ("4096", 4096),
            ("8k", 8192),
            ("8K", 8192),
            ("8KiB", 8192),
            ("8kB", 8000),
            ("1M", 1 << 20),
            ("1MB", 1_000_000),
            ("1.5GiB", 3 << 29),
            ("2T", 2 << 40),
            ("512B", 512),
            ("10 GB", 10_000_000_000),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        let wrong = [
            "",
            "k",
            "8x",
            "-1",
            "8kk",
            "1e400",
            "0.3",
            "99999999T",
            "8 kB s",
            "inf",
            "NaN",
        ];
        for text in wrong {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_with_decimal_fractions_are_read() {
        for (unit, bytes_of_a_hundredth) in [("kB", 10), ("MB", 10_000), ("TB", 10_000_000_000)] {
            for hundredths in 1..10_000_u64 {
                let text = format!("{}.{:02}{unit}", hundredths / 100, hundredths % 100);
                let bytes = hundredths * bytes_of_a_hundredth;
                assert_eq!(parse_size(&text), Ok(bytes), "{text}");
            }
        }
        assert!(parse_size("1.5").is_err());
        assert!(parse_size("1.0001kB").is_err());
    }

    #[test]
    fn latency_has_a_unit_of_at_most_a_second() {
        for (text, ns) in [
            ("5ms", 5_000_000),
            ("200 us", 200_000),
            ("1.5s", 1_500_000_000),
        ] {
            assert_eq!(parse_latency(text), Ok(ns), "{text}");
        }
        for text in ["5", "5m", "0.5min", "1h", "2d", "ms", ""] {
            assert!(parse_latency(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_read() {
        let cases = [
            ("500ms", 500_000_000),
            ("30s", 30_000_000_000),
            ("30", 30_000_000_000),
            ("2m", 120_000_000_000),
            ("1.5s", 1_500_000_000),
            ("7d", 604_800_000_000_000),
        ];
        for (text, ns) in cases {
            assert_eq!(parse_duration(text), Ok(ns), "{text}");
        }
        for text in ["", "s", "5 days", "-3s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_print_in_percent() {
        let cases = [
            (0.0, "0 %"),
            (0.0001, "<0.1 %"),
            (0.012, "1.2 %"),
            (0.02, "2 %"),
            (0.124, "12 %"),
            (0.9999, "99 %"),
            (1.0, "100 %"),
        ];
        for (share, text) in cases {
            assert_eq!(format_percent(share), text);
        }
    }

    #[test]
    fn quantities_print_with_their_unit() {
        assert_eq!(format_bytes(8192), "8 KiB");
        assert_eq!(format_bytes(3 << 29), "1.5 GiB");
        assert_eq!(format_bytes(512), "512 B");
        let gib = |value: f64| format_bytes((value * f64::from(1 << 30)) as u64);
        assert_eq!(
            (gib(54.97), gib(55.02)),
            ("55 GiB".to_owned(), "55 GiB".to_owned())
        );
        assert_eq!(format_throughput(523_000.0), "0.52 MB/s");
        assert_eq!(format_throughput(4_096.0), "0.0041 MB/s");
        assert_eq!(format_rate(0.004), "0.0040");
        assert_eq!(format_throughput(1.2344e9), "1234 MB/s");
        assert_eq!(format_latency(999), "999 ns");
        assert_eq!(format_latency(61_320), "61.3 µs");
        assert_eq!(format_latency(999_700), "1.00 ms");
        assert_eq!(format_latency(1_503_000_000), "1.50 s");
        assert_eq!(format_rate(1_283_000.0), "1.28M");
        assert_eq!(format_duration(75_000_000_000), "1 min 15 s");
    }

    proptest! {
        #[test]
        fn whole_sizes_round_trip(n in 1u64..1023, power in 0u32..5) {
            let bytes = n << (10 * power);
            prop_assert_eq!(parse_size(&format_bytes(bytes)), Ok(bytes));
        }
    }
}
