//! The lines of pgiosim, one for each 10 s.

use crate::figures::{count, per_second, seconds};
use crate::printer::{ResultsSoFar, ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{Measurement, OpKind};
use std::fmt::Write as _;
use std::path::PathBuf;

const INTERVAL_NS: u64 = 10_000_000_000;

/// Prints the head first, then the lines.
#[derive(Debug)]
pub(super) struct IntervalPrinter {
    pub(super) head: String,
    pub(super) files: Vec<PathBuf>,
    /// To be read.
    pub(super) blocks: u64,
    /// Slower writes are reported.
    pub(super) stall_ns: Option<u64>,
    /// What the lines have shown.
    pub(super) reported: BlocksSoFar,
}

impl IntervalPrinter {
    /// The writes that took too long, by file and time.
    fn stalls(&self, result: &ToolResult<'_>) -> String {
        let mut text = String::new();
        let Some(limit_ns) = self.stall_ns else {
            return text;
        };
        for measurement in result.measurements {
            let name = self.files.get(measurement.target);
            let name = name.map_or(String::new(), |path| path.display().to_string());
            let writes = measurement.ops.get(&OpKind::Write).into_iter();
            let cells = writes.flat_map(|op| &op.series.cells);
            for cell in cells.filter(|cell| cell.latency_max_ns > limit_ns) {
                let seconds = seconds(cell.latency_max_ns);
                let _ = writeln!(text, "**WRITE STALL: {name} {seconds:.4}");
            }
        }
        text
    }

    /// A line, up to this time.
    fn line(&mut self, measurements: &[Measurement], end_ns: u64) -> String {
        let (now, before) = (BlocksSoFar::of(measurements, end_ns), &self.reported);
        let read = now.read.saturating_sub(before.read);
        let written = now.written.saturating_sub(before.written);
        let rate = per_second(read as f64, end_ns.saturating_sub(before.at_ns).max(1));
        let line = format!(
            "{:3.2}%, {read:6} read, {written:6} written, {:7.2}kB/sec {rate:7.2} iops\n",
            now.read as f64 / self.blocks as f64 * 100.0,
            rate * 8.0
        );
        self.reported = now;
        line
    }
}

/// Blocks since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BlocksSoFar {
    at_ns: u64,
    read: u64,
    written: u64,
}

impl BlocksSoFar {
    fn of(measurements: &[Measurement], at_ns: u64) -> Self {
        let sum = |kind| measurements.iter().map(|one| count(one, kind)).sum();
        Self {
            at_ns,
            read: sum(OpKind::Read),
            written: sum(OpKind::Write),
        }
    }
}

impl ToolPrinter for IntervalPrinter {
    fn begin(&mut self) -> String {
        std::mem::take(&mut self.head)
    }

    fn interval_ns(&self) -> Option<u64> {
        Some(INTERVAL_NS)
    }

    fn so_far(&mut self, results: &ResultsSoFar<'_>) -> String {
        self.line(results.measurements, results.elapsed_ns)
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let mut stdout = self.stalls(result);
        let wall_ns = result.measurements.iter().map(|one| one.wall_ns).max();
        if let Some(wall_ns) = wall_ns.filter(|ns| *ns > self.reported.at_ns) {
            stdout.push_str(&self.line(result.measurements, wall_ns));
        }
        if result.interrupted {
            stdout.push_str("CTRL-C Interrupt - stopping\n");
        }
        ToolText::out(stdout)
    }
}
