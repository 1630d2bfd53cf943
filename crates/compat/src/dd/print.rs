//! The status of dd, on stderr.

use super::human::{human, lacks_prefix};
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
    status: StatusLevel,
}

impl CopyPrinter {
    pub(super) fn new(status: StatusLevel) -> Self {
        Self { status }
    }

    fn text(&self, measurements: &[Measurement]) -> ToolText {
        let (mut blocks, mut bytes, mut wall_ns) = (0, 0, 0);
        if let Some(measurement) = measurements.first() {
            wall_ns = measurement.wall_ns;
            let kinds = [OpKind::Read, OpKind::Write];
            for op in kinds.iter().filter_map(|kind| measurement.ops.get(kind)) {
                blocks += op.count;
                bytes += op.bytes;
            }
        }
        let mut stderr = String::new();
        if self.status != StatusLevel::None {
            stderr = format!("{blocks}+0 records in\n{blocks}+0 records out\n");
        }
        if self.status == StatusLevel::All {
            stderr.push_str(&transfer(bytes, wall_ns as f64 / 1e9));
        }
        ToolText {
            stdout: String::new(),
            stderr,
        }
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
    let rate = match seconds > 0.0 {
        true => human(bytes as f64 / seconds, 1000.0),
        false => "Infinity B".to_owned(),
    };
    let seconds = general(seconds);
    format!("{bytes} byte{plural}{sizes} copied, {seconds} s, {rate}/s\n")
}
