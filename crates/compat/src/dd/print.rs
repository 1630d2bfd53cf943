//! The status of dd, on stderr.

use super::human::{human, lacks_prefix};
use crate::figures::{bytes, count, seconds};
use crate::number::general;
use crate::printer::{ResultsSoFar, ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{Measurement, OpKind};

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusLevel {
    All,
    /// Without the rate.
    Records,
    None,
}

/// Prints at the end, and at SIGUSR1.
#[derive(Debug)]
pub(super) struct CopyPrinter {
    pub(super) status: StatusLevel,
    /// Of whole blocks.
    pub(super) block_bytes: u64,
}

impl CopyPrinter {
    fn text(&self, measurements: &[Measurement]) -> ToolText {
        let sum = |of: fn(&Measurement, OpKind) -> u64, is_part: bool| -> u64 {
            let is_wanted = |one: &&Measurement| {
                (u64::from(one.workload.block_bytes) < self.block_bytes) == is_part
            };
            let wanted = measurements.iter().filter(is_wanted);
            wanted
                .map(|one| of(one, OpKind::Read) + of(one, OpKind::Write))
                .sum()
        };
        let (blocks, parts) = (sum(count, false), sum(count, true));
        let wall_ns = measurements.iter().map(|one| one.wall_ns).sum();
        let mut stderr = String::new();
        if self.status != StatusLevel::None {
            stderr = format!("{blocks}+{parts} records in\n{blocks}+{parts} records out\n");
        }
        if self.status == StatusLevel::All {
            let moved = sum(bytes, false) + sum(bytes, true);
            stderr.push_str(&transfer(moved, seconds(wall_ns)));
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
    let sizes = match (lacks_prefix(&si), lacks_prefix(&iec)) {
        (true, _) => String::new(),
        (false, true) => format!(" ({si})"),
        (false, false) => format!(" ({si}, {iec})"),
    };
    let plural = if bytes == 1 { "" } else { "s" };
    let rate = if seconds > 0.0 {
        human(bytes as f64 / seconds, 1000.0)
    } else {
        "Infinity B".to_owned()
    };
    let seconds = general(seconds);
    format!("{bytes} byte{plural}{sizes} copied, {seconds} s, {rate}/s\n")
}
