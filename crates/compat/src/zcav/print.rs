//! The lines of zcav, one for each block.

use crate::printer::{ToolFile, ToolPrinter, ToolResult, ToolText};
use diskproof_model::surface::SurfaceMeasurement;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

const MIB: f64 = 1_048_576.0;
const GIB: f64 = 1_073_741_824.0;

/// A device, or a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) path: String,
    /// The file that its lines go to, in place of stdout.
    pub(super) log: Option<PathBuf>,
}

/// What the lines show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct BlocksSettings {
    pub(super) device: Device,
    pub(super) block_bytes: u64,
    pub(super) writes: bool,
    /// Passes over the device.
    pub(super) loops: u32,
}

/// Prints at the end of the last pass.
#[derive(Debug, Default)]
pub(super) struct BlocksPrinter {
    settings: BlocksSettings,
    /// Passes that were measured.
    loops: u32,
    /// A line for each pass.
    totals: String,
    /// By the number of the block.
    blocks: BTreeMap<u64, MeasuredBlock>,
    /// The content of the log file, once it is complete.
    logged: Option<String>,
    is_printed: bool,
}

/// A block in all passes.
#[derive(Debug, Default)]
struct MeasuredBlock {
    /// Bytes that were moved in the last pass.
    bytes: u64,
    /// Seconds for a byte, one for each pass.
    seconds: Vec<f64>,
}

impl MeasuredBlock {
    /// The mean without the fastest and the slowest third.
    fn mean_seconds(&mut self) -> f64 {
        self.seconds.sort_by(f64::total_cmp);
        let third = self.seconds.len() / 3;
        let kept = &self.seconds[third..self.seconds.len() - third];
        kept.iter().sum::<f64>() / kept.len() as f64
    }
}

impl BlocksPrinter {
    pub(super) fn new(settings: BlocksSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Takes the figures of a pass.
    fn add(&mut self, surface: &SurfaceMeasurement, interrupted: bool) {
        self.loops += 1;
        let block_bytes = self.settings.block_bytes;
        let (mut bytes, mut busy_ns) = (0.0, 0.0);
        for point in surface.curve.iter().filter(|point| point.bytes > 0) {
            let number = point.offset_bytes / block_bytes;
            let untimed = point.offset_bytes % block_bytes;
            let block = self.blocks.entry(number).or_default();
            // A survey does not time its first and last requests, but zcav counts all of them: they
            // pass as moved at the rate of the rest.
            block.bytes = if interrupted || point.errors > 0 {
                untimed + point.bytes
            } else {
                block_bytes
            };
            block.seconds.push(1.0 / point.bytes_per_second);
            let all = block.bytes as f64 / point.bytes as f64;
            bytes += block.bytes as f64;
            busy_ns += point.busy_ns as f64 * all;
        }
        if busy_ns > 0.0 {
            let (mib, seconds) = (bytes / MIB, busy_ns / 1e9);
            let is_write = self.settings.writes;
            let done = if is_write { "Wrote" } else { "Read" };
            let (whole, rate) = (seconds.floor(), mib / seconds);
            let _ = writeln!(
                self.totals,
                "# {done} {mib:.0} megs in {whole:.0} seconds, {rate:.0} megabytes per second."
            );
        }
    }

    /// Of several passes, the totals come first.
    fn lines(&mut self) -> String {
        let mut lines = "#block offset (GiB), MiB/s, time\n".to_owned();
        let block_bytes = self.settings.block_bytes;
        for (number, block) in &mut self.blocks {
            let offset = (number * block_bytes) as f64 / GIB;
            let seconds = block.mean_seconds() * block.bytes as f64;
            let rate = block.bytes as f64 / MIB / seconds;
            let _ = writeln!(lines, "{offset:.2} {rate:.2} {seconds:.3}");
        }
        match self.settings.loops {
            1 => lines + &self.totals,
            _ => format!("{}#loops: {}\n{lines}", self.totals, self.loops),
        }
    }
}

impl ToolPrinter for BlocksPrinter {
    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let mut text = ToolText::default();
        if let Some(surface) = result.surface {
            self.add(surface, result.interrupted);
            let seconds = result.unix_ns / 1_000_000_000;
            let (h, m, s) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
            let (loops, path) = (self.loops, &self.settings.device.path);
            text.stderr =
                format!("# Finished loop {loops}, on device {path} at {h}:{m:02}:{s:02}\n");
        }
        let is_last = self.loops >= self.settings.loops || result.interrupted;
        if !is_last || self.loops == 0 || self.is_printed {
            return text;
        }
        self.is_printed = true;
        let lines = self.lines();
        match self.settings.device.log {
            Some(_) => self.logged = Some(lines),
            None => text.stdout = lines,
        }
        text
    }

    fn files(&mut self, _result: &ToolResult<'_>) -> Vec<ToolFile> {
        let file = self.logged.take().zip(self.settings.device.log.clone());
        let file = file.map(|(text, path)| ToolFile { path, text });
        file.into_iter().collect()
    }
}
