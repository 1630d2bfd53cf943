//! The lines of iops, one for each block size.

use crate::figures::{count, per_second};
use crate::printer::{ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{Measurement, OpKind};

/// How sizes are spelt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpellingUnits {
    /// `1 KiB`, the versions until 2010.
    Binary,
    /// `1 kB`.
    Decimal,
    /// `1024  B`, for programs.
    Plain,
}

impl SpellingUnits {
    /// Those of bits per second.
    fn bits(self) -> Self {
        match self {
            Self::Binary | Self::Decimal => Self::Decimal,
            Self::Plain => Self::Plain,
        }
    }

    /// A number with its prefix, as wide as iops prints it.
    pub(super) fn text(self, value: f64, places: usize) -> String {
        let (base, prefixes, none): (f64, [&str; 5], &str) = match self {
            Self::Binary => (1024.0, ["Ki", "Mi", "Gi", "Ti", "Pi"], "  "),
            Self::Decimal => (1000.0, ["k", "M", "G", "T", "P"], " "),
            Self::Plain => (f64::INFINITY, [""; 5], " "),
        };
        let (mut value, mut prefix) = (value, none);
        for larger in prefixes {
            if value < base {
                break;
            }
            value /= base;
            prefix = larger;
        }
        match places {
            0 => format!("{:3} {prefix}", value as u64),
            places => format!("{value:width$.places$} {prefix}", width = places + 4),
        }
    }
}

/// Prints line by line.
#[derive(Debug)]
pub(super) struct SizesPrinter {
    pub(super) head: String,
    pub(super) units: SpellingUnits,
    pub(super) threads: u32,
    pub(super) is_complete: bool,
}

impl ToolPrinter for SizesPrinter {
    fn begin(&mut self) -> String {
        std::mem::take(&mut self.head)
    }

    fn measured(&mut self, measurement: &Measurement) -> String {
        let count = count(measurement, OpKind::Read);
        let iops = per_second(count as f64, measurement.wall_ns);
        // As iops of 2013 ends; later ones go on to a quarter of that.
        self.is_complete = iops <= f64::from(self.threads);
        if count == 0 {
            return String::new();
        }
        let block_bytes = f64::from(measurement.workload.block_bytes);
        let (units, rate) = (self.units, block_bytes * iops);
        let (size, bits) = (units.text(block_bytes, 0), units.bits().text(8.0 * rate, 1));
        let rate = units.text(rate, 1);
        format!(" {size}B blocks: {iops:6.1} IO/s, {rate}B/s ({bits}bit/s)\n")
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        ToolText::out(if result.interrupted {
            "caught ctrl-c, bye.\n"
        } else {
            ""
        })
    }
}
