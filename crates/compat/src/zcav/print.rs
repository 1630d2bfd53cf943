//! The lines of zcav, one for each block.

use crate::printer::{ToolPrinter, ToolResult, ToolText};
use std::fmt::Write as _;

const MIB: f64 = 1_048_576.0;
const GIB: f64 = 1_073_741_824.0;

/// Prints at the end.
#[derive(Debug)]
pub(super) struct BlocksPrinter {
    path: String,
    block_bytes: u64,
    writes: bool,
}

impl BlocksPrinter {
    pub(super) fn new(path: &str, block_bytes: u64, writes: bool) -> Self {
        Self {
            path: path.to_owned(),
            block_bytes,
            writes,
        }
    }
}

impl ToolPrinter for BlocksPrinter {
    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let Some(surface) = result.surface else {
            return ToolText::default();
        };
        let seconds_of_day = result.unix_ns / 1_000_000_000 % 86_400;
        let (hours, minutes) = (seconds_of_day / 3600, seconds_of_day / 60 % 60);
        let mut stdout = format!(
            "# Finished loop 1, on device {} at {hours}:{minutes:02}:{:02}\n\
             #block offset (GiB), MiB/s, time\n",
            self.path,
            seconds_of_day % 60
        );
        let (mut bytes, mut busy_ns) = (0.0, 0.0);
        for point in surface.curve.iter().filter(|point| point.bytes > 0) {
            // The first request of a survey is not timed, so its point begins behind it.
            let block = point.offset_bytes / self.block_bytes * self.block_bytes;
            let offset = block as f64 / GIB;
            let rate = point.bytes_per_second / MIB;
            let seconds = point.bytes as f64 / point.bytes_per_second;
            let _ = writeln!(stdout, "{offset:.2} {rate:.2} {seconds:.3}");
            bytes += point.bytes as f64;
            busy_ns += point.busy_ns as f64;
        }
        if busy_ns > 0.0 {
            let mib = bytes / MIB;
            let _ = writeln!(
                stdout,
                "# {} {mib:.0} megs in {:.0} seconds, {:.0} megabytes per second.",
                if self.writes { "Wrote" } else { "Read" },
                (busy_ns / 1e9).floor(),
                mib / (busy_ns / 1e9)
            );
        }
        ToolText {
            stdout,
            stderr: String::new(),
        }
    }
}
