//! Numbers with suffixes, as ioping reads and prints them.

/// A suffix and its factor; the first that fits is printed.
type Suffixes = [(&'static str, f64)];

const COUNTS: &Suffixes = &[
    ("T", 1e12),
    ("G", 1e9),
    ("M", 1e6),
    ("k", 1e3),
    ("", 1.0),
    ("da", 10.0),
    ("P", 1e15),
    ("E", 1e18),
];
const KIB: f64 = 1024.0;
const SIZES: &Suffixes = &[
    ("PiB", KIB * KIB * KIB * KIB * KIB),
    ("TiB", KIB * KIB * KIB * KIB),
    ("GiB", KIB * KIB * KIB),
    ("MiB", KIB * KIB),
    ("KiB", KIB),
    ("B", 1.0),
    ("", 1.0),
    ("k", KIB),
    ("kb", KIB),
    ("m", KIB * KIB),
    ("mb", KIB * KIB),
    ("g", KIB * KIB * KIB),
    ("gb", KIB * KIB * KIB),
    ("t", KIB * KIB * KIB * KIB),
    ("tb", KIB * KIB * KIB * KIB),
    ("pb", KIB * KIB * KIB * KIB * KIB),
    ("eb", KIB * KIB * KIB * KIB * KIB * KIB),
    ("sector", 512.0),
    ("page", 4096.0),
];
const TIMES: &Suffixes = &[
    ("hour", 3600e9),
    ("min", 60e9),
    ("s", 1e9),
    ("ms", 1e6),
    ("us", 1e3),
    ("ns", 1.0),
    ("nsec", 1.0),
    ("usec", 1e3),
    ("msec", 1e6),
    ("", 1e9),
    ("sec", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];
/// Above this, a whole number in a f64 is not exact.
const MAX: f64 = 9_007_199_254_740_992.0;

/// A number of requests.
pub(super) fn count(text: &str) -> Result<u64, String> {
    Ok(number(text, COUNTS)? as u64)
}

/// A rate in requests per second.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    number(text, COUNTS)
}

/// A size in bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    Ok(number(text, SIZES)? as u64)
}

/// A time in nanoseconds.
pub(super) fn time(text: &str) -> Result<u64, String> {
    Ok(number(text, TIMES)? as u64)
}

/// `1.5m`, `1/4s`: a number or a quotient, and a suffix in either case.
fn number(text: &str, suffixes: &Suffixes) -> Result<f64, String> {
    let (mut value, mut rest) = leading(text);
    if let Some(behind) = rest.strip_prefix('/') {
        let (divisor, behind) = leading(behind);
        let dividend = value.unwrap_or(1.0);
        let divisor = divisor.filter(|divisor| *divisor != 0.0);
        let divisor =
            divisor.ok_or_else(|| format!("division by zero in parsing argument: {text}"))?;
        (value, rest) = (Some(dividend / divisor), behind);
    }
    let mut known = suffixes.iter();
    let found = known.find(|(suffix, _)| suffix.eq_ignore_ascii_case(rest));
    let Some((_, factor)) = found else {
        return Err(format!("invalid suffix: \"{rest}\""));
    };
    let number = value.unwrap_or(0.0) * factor;
    if (0.0..=MAX).contains(&number) {
        Ok(number)
    } else {
        Err(format!("integer overflow at parsing argument: {text}"))
    }
}

/// The number at the start of a text, and what follows it.
fn leading(text: &str) -> (Option<f64>, &str) {
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '-' || c == '+';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    (text[..end].parse().ok(), &text[end..])
}

/// `4.11 k`.
pub(super) fn count_text(value: f64) -> String {
    text_of(value, COUNTS)
}

/// `29.6 MiB`.
pub(super) fn size_text(value: f64) -> String {
    text_of(value, SIZES)
}

/// `527.6 us`.
pub(super) fn time_text(value: f64) -> String {
    text_of(value, TIMES)
}

fn text_of(value: f64, suffixes: &Suffixes) -> String {
    let value = value.trunc();
    let fits = |(_, factor): &&(&str, f64)| value >= *factor || *factor <= 1.0;
    let (suffix, factor) = suffixes.iter().find(fits).copied().unwrap_or(("", 1.0));
    let places = match value {
        value if value % factor == 0.0 => 0,
        value if value >= factor * 10.0 => 1,
        _ => 2,
    };
    let separator = if suffix.is_empty() { "" } else { " " };
    format!("{:.places$}{separator}{suffix}", value / factor)
}
