//! Sizes as dd reads and prints them.

/// Prefixes from 10³ or 2¹⁰ on.
const PREFIXES: [char; 8] = ['k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'];

/// `8k`, `1M`, `1MB`, `2x1024`, `512c`: bytes.
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let mut factors = text.split('x').map(factor);
    factors.try_fold(1u64, |product, factor| product.checked_mul(factor?))
}

fn factor(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().ok()?;
    number.checked_mul(suffix(unit)?)
}

fn suffix(text: &str) -> Option<u64> {
    let one = match text {
        "" | "c" | "B" => return Some(1),
        "w" => return Some(2),
        "b" => return Some(512),
        other => other,
    };
    let (letter, rest) = one.split_at_checked(1)?;
    let index = "kMGTPE".find(&letter.replace('K', "k"))?;
    let base: u64 = match rest {
        "" | "iB" => 1024,
        "B" => 1000,
        _ => return None,
    };
    base.checked_pow(index as u32 + 1)
}

/// Whether a number counts bytes instead of blocks, as in `count=4096B`.
pub(super) fn counts_bytes(text: &str) -> bool {
    text.strip_suffix('B')
        .is_some_and(|number| number.ends_with(|c: char| c.is_ascii_digit()))
}

/// `8.4 MB` by steps of 1000, `8.0 MiB` by steps of 1024.
pub(super) fn human(bytes: f64, base: f64) -> String {
    let (mut value, mut prefix) = (bytes, None);
    for letter in PREFIXES {
        if rounded(value, prefix.is_some()) < base {
            break;
        }
        value /= base;
        prefix = Some(letter);
    }
    let Some(letter) = prefix else {
        return format!("{:.0} B", value);
    };
    let unit = if base == 1024.0 {
        format!("{}iB", letter.to_ascii_uppercase())
    } else {
        format!("{letter}B")
    };
    if rounded(value, true) < 10.0 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

/// As it is printed: with one digit below 10, where there is a prefix.
fn rounded(value: f64, has_prefix: bool) -> f64 {
    if has_prefix && value < 9.95 {
        (value * 10.0).round() / 10.0
    } else {
        value.round()
    }
}

/// Whether a text of [`human`] has no prefix.
pub(super) fn lacks_prefix(text: &str) -> bool {
    text.ends_with(" B")
}
