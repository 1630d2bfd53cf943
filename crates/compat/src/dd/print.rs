//! Sizes as dd reads and prints them, and its status, on stderr.

use crate::figures::{as_seconds, bytes, count, general};
use crate::printer::{ResultsSoFar, ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{Measurement, OpKind};

/// Prefixes from 10³ or 2¹⁰ on.
const PREFIXES: [char; 8] = ['k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'];

/// The part of the report that is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusLevel {
    All,
    /// The counts of blocks, without the rate.
    Records,
    None,
}

/// Prints at the end, and at SIGUSR1.
#[derive(Debug)]
pub(super) struct CopyPrinter {
    pub(super) status: StatusLevel,
    /// Bytes of a whole block.
    pub(super) block_bytes: u64,
}

impl CopyPrinter {
    fn text(&self, measurements: &[Measurement]) -> ToolText {
        let (mut blocks, mut parts) = (0, 0);
        let (mut moved, mut wall_ns) = (0, 0);
        for measurement in measurements {
            let requests = count(measurement, OpKind::Read) + count(measurement, OpKind::Write);
            if u64::from(measurement.workload.block_bytes) < self.block_bytes {
                parts += requests;
            } else {
                blocks += requests;
            }
            moved += bytes(measurement, OpKind::Read) + bytes(measurement, OpKind::Write);
            wall_ns += measurement.wall_ns;
        }
        let mut stderr = String::new();
        if self.status != StatusLevel::None {
            stderr = format!("{blocks}+{parts} records in\n{blocks}+{parts} records out\n");
        }
        if self.status == StatusLevel::All {
            stderr.push_str(&transfer(moved, as_seconds(wall_ns)));
        }
        ToolText::err(stderr)
    }
}

impl ToolPrinter for CopyPrinter {
    fn prints_failed(&self) -> bool {
        true
    }

    fn survives_usr1(&self) -> bool {
        true
    }

    fn status(&mut self, results: &ResultsSoFar<'_>) -> ToolText {
        self.text(results.measurements)
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        self.text(result.measurements)
    }
}

/// `8388608 bytes (8.4 MB, 8.0 MiB) copied, 0.00123 s, 6.8 GB/s`.
pub(super) fn transfer(bytes: u64, seconds: f64) -> String {
    let (si, iec) = (human(bytes as f64, 1000.0), human(bytes as f64, 1024.0));
    let sizes = if lacks_prefix(&si) {
        String::new()
    } else if lacks_prefix(&iec) {
        format!(" ({si})")
    } else {
        format!(" ({si}, {iec})")
    };
    let plural = if bytes == 1 { "" } else { "s" };
    let rate = if bytes == 0 {
        // As dd prints it.
        "0.0 kB".to_owned()
    } else if seconds > 0.0 {
        human(bytes as f64 / seconds, 1000.0)
    } else {
        "Infinity B".to_owned()
    };
    let time = general(seconds);
    format!("{bytes} byte{plural}{sizes} copied, {time} s, {rate}/s\n")
}

/// `8k`, `1M`, `1MB`, `2x1024`, `512c`: bytes.
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let mut product: u64 = 1;
    for part in text.split('x') {
        product = product.checked_mul(factor(part)?)?;
    }
    Some(product)
}

fn factor(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().ok()?;
    number.checked_mul(suffix(unit)?)
}

fn suffix(text: &str) -> Option<u64> {
    match text {
        "" | "c" | "B" => return Some(1),
        "w" => return Some(2),
        "b" => return Some(512),
        _ => {}
    }
    let (letter, rest) = text.split_at_checked(1)?;
    let index = "kMGTPE".find(&letter.replace('K', "k"))?;
    let base: u64 = match rest {
        "" | "iB" => 1024,
        "B" => 1000,
        _ => return None,
    };
    base.checked_pow(index as u32 + 1)
}

/// True of a number that counts bytes instead of blocks, as in `count=4096B`.
pub(super) fn counts_bytes(text: &str) -> bool {
    match text.strip_suffix('B') {
        Some(number) => number.ends_with(|c: char| c.is_ascii_digit()),
        None => false,
    }
}

/// `8.4 MB` by steps of 1000, `8.0 MiB` by steps of 1024.
fn human(bytes: f64, base: f64) -> String {
    let mut value = bytes;
    let mut prefix = None;
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

/// True of a text of [`human`] without a prefix.
fn lacks_prefix(text: &str) -> bool {
    text.ends_with(" B")
}
