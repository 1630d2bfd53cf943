//! The lines of pgiosim, one for each 10 s.

use crate::printer::{ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{Measurement, OpKind};
use std::fmt::Write as _;
use std::path::PathBuf;

const INTERVAL_NS: u64 = 10_000_000_000;

/// Prints the head first, and the lines at the end.
#[derive(Debug)]
pub(super) struct IntervalPrinter {
    pub(super) head: String,
    pub(super) files: Vec<PathBuf>,
    /// To be read.
    pub(super) blocks: u64,
    /// Slower writes are reported.
    pub(super) stall_ns: Option<u64>,
}

impl IntervalPrinter {
    /// The writes that took too long, by file and time.
    fn stalls(&self, result: &ToolResult<'_>) -> String {
        let mut text = String::new();
        let Some(limit_ns) = self.stall_ns else {
            return text;
        };
        for measurement in result.measurements {
            let Some(writes) = measurement.ops.get(&OpKind::Write) else {
                continue;
            };
            let name = self.files.get(measurement.target);
            let name = name.map_or(String::new(), |path| path.display().to_string());
            for cell in &writes.series.cells {
                if cell.latency_max_ns > limit_ns {
                    let seconds = cell.latency_max_ns as f64 / 1e9;
                    let _ = writeln!(text, "**WRITE STALL: {name} {seconds:.4}");
                }
            }
        }
        text
    }

    fn lines(&self, measurements: &[Measurement]) -> String {
        let wall_ns = measurements.iter().map(|one| one.wall_ns).max();
        let wall_ns = wall_ns.unwrap_or(0);
        let mut text = String::new();
        let mut done = Totals::default();
        let mut start_ns = 0;
        while start_ns < wall_ns {
            let end_ns = (start_ns + INTERVAL_NS).min(wall_ns);
            let until = match end_ns == wall_ns {
                true => Totals::all(measurements),
                false => Totals::before(measurements, end_ns),
            };
            let (read, written) = (
                until.read.saturating_sub(done.read),
                until.written.saturating_sub(done.written),
            );
            let rate = read as f64 / ((end_ns - start_ns) as f64 / 1e9);
            let _ = writeln!(
                text,
                "{:3.2}%, {read:6} read, {written:6} written, {:7.2}kB/sec {rate:7.2} iops",
                until.read as f64 / self.blocks as f64 * 100.0,
                rate * 8.0
            );
            (done, start_ns) = (until, end_ns);
        }
        text
    }
}

/// Blocks since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Totals {
    read: u64,
    written: u64,
}

impl Totals {
    fn all(measurements: &[Measurement]) -> Self {
        Self::of(measurements, |measurement, kind| {
            measurement.ops.get(&kind).map_or(0, |op| op.count)
        })
    }

    fn before(measurements: &[Measurement], end_ns: u64) -> Self {
        Self::of(measurements, |measurement, kind| {
            let op = measurement.ops.get(&kind);
            op.map_or(0, |op| op.series.total_between(0, end_ns).ops)
        })
    }

    fn of(measurements: &[Measurement], count: impl Fn(&Measurement, OpKind) -> u64) -> Self {
        let sum = |kind| measurements.iter().map(|one| count(one, kind)).sum();
        Self {
            read: sum(OpKind::Read),
            written: sum(OpKind::Write),
        }
    }
}

impl ToolPrinter for IntervalPrinter {
    fn begin(&mut self) -> String {
        std::mem::take(&mut self.head)
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let mut stdout = self.stalls(result);
        stdout.push_str(&self.lines(result.measurements));
        if result.interrupted {
            stdout.push_str("CTRL-C Interrupt - stopping\n");
        }
        ToolText {
            stdout,
            stderr: String::new(),
        }
    }
}
