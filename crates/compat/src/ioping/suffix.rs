//! Numbers with suffixes, as ioping reads and prints them.

/// A suffix and its factor; the first that fits is printed.
type Suffixes = [(&'static str, f64)];

/// Suffixes of counts; those that are only read stand last.
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
/// Suffixes of bytes; those that are only read stand last.
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
/// Suffixes of nanoseconds; those that are only read stand last.
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
/// The largest number that is read: 2^53, above which a whole number in a f64 is not exact.
const NUMBER_MAX: f64 = 9_007_199_254_740_992.0;

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
    let (first, mut suffix) = leading_number(text);
    let mut value = first.unwrap_or(0.0);
    if let Some(behind_slash) = suffix.strip_prefix('/') {
        let (divisor, behind) = leading_number(behind_slash);
        value = match divisor {
            None | Some(0.0) => {
                return Err(format!("division by zero in parsing argument: {text}"));
            }
            Some(divisor) => first.unwrap_or(1.0) / divisor,
        };
        suffix = behind;
    }
    let Some(factor) = factor_of(suffix, suffixes) else {
        return Err(format!("invalid suffix: \"{suffix}\""));
    };
    let number = value * factor;
    if (0.0..=NUMBER_MAX).contains(&number) {
        Ok(number)
    } else {
        Err(format!("integer overflow at parsing argument: {text}"))
    }
}

fn factor_of(suffix: &str, suffixes: &Suffixes) -> Option<f64> {
    for (known, factor) in suffixes {
        if known.eq_ignore_ascii_case(suffix) {
            return Some(*factor);
        }
    }
    None
}

/// The number at the start of a text as strtod(3) reads it, and what follows it.
fn leading_number(text: &str) -> (Option<f64>, &str) {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let suffix = digits.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        if let Ok(number) = u64::from_str_radix(text_before(digits, suffix), 16) {
            return (Some(number as f64), suffix);
        }
    }
    let suffix = after_exponent(text.trim_start_matches(is_part_of_number));
    (text_before(text, suffix).parse().ok(), suffix)
}

/// The part of a text before this end of it.
fn text_before<'t>(text: &'t str, end: &str) -> &'t str {
    &text[..text.len() - end.len()]
}

/// What follows an exponent at the start of a text; the text where there is none. An exponent has a
/// digit: that of `1e3`, but not that of `1eb`.
fn after_exponent(text: &str) -> &str {
    let Some(exponent) = text.strip_prefix(['e', 'E']) else {
        return text;
    };
    let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let suffix = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    if suffix.len() < digits.len() {
        suffix
    } else {
        text
    }
}

fn is_part_of_number(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '.' | '-' | '+')
}

/// A count with its suffix: `4.11 k`.
pub(super) fn count_text(value: f64) -> String {
    with_suffix(value, COUNTS)
}

/// A number of bytes with its suffix: `29.6 MiB`.
pub(super) fn size_text(value: f64) -> String {
    with_suffix(value, SIZES)
}

/// A time with its suffix: `527.6 us`.
pub(super) fn time_text(value: f64) -> String {
    with_suffix(value, TIMES)
}

fn with_suffix(value: f64, suffixes: &Suffixes) -> String {
    let whole = value.trunc();
    let (suffix, factor) = fitting_suffix(whole, suffixes);
    let places = if whole % factor == 0.0 {
        0
    } else if whole >= factor * 10.0 {
        1
    } else {
        2
    };
    let separator = if suffix.is_empty() { "" } else { " " };
    format!("{:.places$}{separator}{suffix}", whole / factor)
}

/// The first suffix that leaves a number of at least 1, and its factor.
fn fitting_suffix(value: f64, suffixes: &Suffixes) -> (&'static str, f64) {
    for (suffix, factor) in suffixes {
        if value >= *factor || *factor <= 1.0 {
            return (suffix, *factor);
        }
    }
    ("", 1.0)
}
