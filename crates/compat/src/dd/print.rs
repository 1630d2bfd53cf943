//! Sizes as dd reads and prints them, and its status, on stderr.

use crate::c_format::format_general;
use crate::figures::{as_seconds, bytes_of_kind, ops_of_kind};
use crate::printer::{ResultsSoFar, ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{Measurement, OpKind};

/// Prefixes of units, from 10³ or 2¹⁰ on.
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
    /// The line above the report, where dd has one.
    pub(super) warning: String,
    /// The line of the write behind the end of a device, where dd ends with it.
    pub(super) end_error: Option<String>,
    /// True once that write has failed.
    pub(super) has_failed: bool,
}

impl CopyPrinter {
    /// The report: requests of whole blocks and of parts of one, then bytes, time and rate.
    fn report_text(&self, measurements: &[Measurement]) -> ToolText {
        let mut blocks = 0;
        let mut parts = 0;
        let mut moved = 0;
        let mut wall_ns = 0;
        for measurement in measurements {
            let requests =
                ops_of_kind(measurement, OpKind::Read) + ops_of_kind(measurement, OpKind::Write);
            if u64::from(measurement.workload.block_bytes) < self.block_bytes {
                parts += requests;
            } else {
                blocks += requests;
            }
            moved += bytes_of_kind(measurement, OpKind::Read)
                + bytes_of_kind(measurement, OpKind::Write);
            wall_ns += measurement.wall_ns;
        }
        let mut stderr = String::new();
        if self.status != StatusLevel::None {
            if self.has_failed {
                // It has read a whole block for each write, also for the one that was cut short.
                let blocks_read = blocks + 1;
                stderr = format!("{blocks_read}+0 records in\n{blocks}+0 records out\n");
            } else {
                stderr = format!("{blocks}+{parts} records in\n{blocks}+{parts} records out\n");
            }
        }
        if self.status == StatusLevel::All {
            stderr.push_str(&transfer_line(moved, as_seconds(wall_ns)));
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
        self.report_text(results.measurements)
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let is_whole = !result.interrupted && result.error.is_none();
        self.has_failed = is_whole && self.end_error.is_some();
        let mut text = self.report_text(result.measurements);
        text.stderr.insert_str(0, &self.warning);
        if let Some(error) = &self.end_error
            && self.has_failed
        {
            text.stderr.insert_str(0, error);
        }
        text
    }
}

/// The line of a copy: `8388608 bytes (8.4 MB, 8.0 MiB) copied, 0.00123 s, 6.8 GB/s`.
pub(super) fn transfer_line(bytes: u64, seconds: f64) -> String {
    let decimal = shortened(bytes as f64, Steps::Decimal);
    let binary = shortened(bytes as f64, Steps::Binary);
    // A size without a prefix is the number of bytes itself.
    let sizes = match (&decimal.prefix, &binary.prefix) {
        (None, _) => String::new(),
        (Some(_), None) => format!(" ({})", decimal.text),
        (Some(_), Some(_)) => format!(" ({}, {})", decimal.text, binary.text),
    };
    let plural = if bytes == 1 { "" } else { "s" };
    let rate = if bytes == 0 {
        // As dd prints it.
        "0.0 kB".to_owned()
    } else if seconds > 0.0 {
        shortened(bytes as f64 / seconds, Steps::Decimal).text
    } else {
        "Infinity B".to_owned()
    };
    // As dd prints the seconds.
    const TIME_DIGITS: usize = 6;
    let time = format_general(seconds, TIME_DIGITS);
    format!("{bytes} byte{plural}{sizes} copied, {time} s, {rate}/s\n")
}

/// Reads a number of bytes such as `8k`, `1M`, `1MB`, `2x1024` or `512c`.
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let mut product: u64 = 1;
    for part in text.split('x') {
        product = product.checked_mul(factor_bytes(part)?)?;
    }
    Some(product)
}

/// The number of bytes of a factor such as `512c`.
fn factor_bytes(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    // A suffix by itself stands for one of its unit.
    let number: u64 = match &text[..text.len() - unit.len()] {
        "" if !unit.is_empty() => 1,
        digits => digits.parse().ok()?,
    };
    number.checked_mul(suffix_bytes(unit)?)
}

/// The bytes that a suffix stands for, as dd's manual lists them; `None` of an unknown one.
fn suffix_bytes(text: &str) -> Option<u64> {
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

/// The steps between two prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Steps {
    /// 1000: `8.4 MB`.
    Decimal,
    /// 1024: `8.0 MiB`.
    Binary,
}

impl Steps {
    fn factor(self) -> f64 {
        match self {
            Self::Decimal => 1000.0,
            Self::Binary => 1024.0,
        }
    }

    fn unit(self, prefix: char) -> String {
        match self {
            Self::Decimal => format!("{prefix}B"),
            Self::Binary => format!("{}iB", prefix.to_ascii_uppercase()),
        }
    }
}

/// A number of bytes in few digits.
struct ShortenedBytes {
    text: String,
    /// The prefix of the unit; `None` of plain bytes.
    prefix: Option<char>,
}

/// Bytes with the prefix that leaves a number below a step: `8.4 MB`.
fn shortened(bytes: f64, steps: Steps) -> ShortenedBytes {
    let mut value = bytes;
    let mut prefix = None;
    for letter in PREFIXES {
        let shown = match prefix {
            None => value.round(),
            Some(_) => rounded_as_printed(value),
        };
        if shown < steps.factor() {
            break;
        }
        value /= steps.factor();
        prefix = Some(letter);
    }
    let text = match prefix {
        None => format!("{value:.0} B"),
        Some(letter) if rounded_as_printed(value) < 10.0 => {
            format!("{value:.1} {}", steps.unit(letter))
        }
        Some(letter) => format!("{value:.0} {}", steps.unit(letter)),
    };
    ShortenedBytes { text, prefix }
}

/// A value with a prefix as it is printed: with one decimal below 10, else without any.
fn rounded_as_printed(value: f64) -> f64 {
    /// The least value that rounds to 10 with one decimal.
    const TEN_FROM: f64 = 9.95;
    if value < TEN_FROM {
        (value * 10.0).round() / 10.0
    } else {
        value.round()
    }
}
