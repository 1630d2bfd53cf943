//! The table of iozone, and its matrices for Excel.

use super::pairs::{Column, SizePair, Sizes};
use crate::printer::{ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{Measurement, OpKind};
use std::fmt::Write as _;

const KIB: f64 = 1024.0;
const COLUMNS: &str = concat!(
    "                                                                    random    random      ",
    "bkwd     record     stride\n",
    "              kB  reclen    write    rewrite      read    reread      read     write      ",
    "read    rewrite       read    fwrite  frewrite     fread   freread\n",
);

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FigureUnit {
    /// KiB per second.
    Kilobytes,
    /// Operations per second.
    Operations,
    /// Microseconds per operation.
    Microseconds,
}

impl FigureUnit {
    /// The figure of a workload.
    fn figure(self, measurement: &Measurement) -> u64 {
        let (mut count, mut bytes, mut busy_ns) = (0, 0, 0);
        for (kind, op) in &measurement.ops {
            busy_ns += op.latency.sum_ns();
            if *kind != OpKind::Sync {
                count += op.count;
                bytes += op.bytes;
            }
        }
        // One request at a time: their sum excludes the start of the thread, which takes longer
        // than a small file.
        let seconds = busy_ns as f64 / 1e9;
        if seconds <= 0.0 || count == 0 {
            return 0;
        }
        let figure = match self {
            Self::Kilobytes => bytes as f64 / KIB / seconds,
            Self::Operations => count as f64 / seconds,
            Self::Microseconds => seconds * 1e6 / count as f64,
        };
        figure.round() as u64
    }
}

/// A figure of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PairFigure {
    pair: SizePair,
    column: Column,
    value: u64,
}

/// Prints a row when its last test is over, and the matrices at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MatrixPrinter {
    pub(super) head: String,
    pub(super) sizes: Sizes,
    pub(super) pairs: Vec<SizePair>,
    pub(super) columns: Vec<Column>,
    pub(super) unit: FigureUnit,
    pub(super) prints_excel: bool,
    pub(super) figures: Vec<PairFigure>,
}

impl MatrixPrinter {
    fn value(&self, pair: SizePair, column: Column) -> Option<u64> {
        let mut figures = self.figures.iter();
        let found = figures.find(|figure| figure.pair == pair && figure.column == column)?;
        Some(found.value)
    }

    fn row(&self, pair: SizePair) -> String {
        let mut row = format!("{:>16}{:>8}", pair.file_kib, pair.record_kib);
        for column in Column::ALL {
            let value = self.value(pair, column);
            let text = value.map_or(String::new(), |value| value.to_string());
            let _ = write!(row, "{text:>width$}", width = column.width());
        }
        format!("{}\n", row.trim_end())
    }

    fn matrix(&self, column: Column) -> String {
        let mut text = format!("\n\"{} report\"\n      ", column.title());
        for kib in &self.sizes.records {
            let _ = write!(text, "  \"{kib}\"");
        }
        text.push('\n');
        for &file_kib in &self.sizes.files {
            let _ = write!(text, "\"{file_kib}\"  ");
            for &record_kib in self.sizes.records.iter().filter(|kib| **kib <= file_kib) {
                let pair = SizePair {
                    file_kib,
                    record_kib,
                };
                let _ = write!(text, " {} ", self.value(pair, column).unwrap_or(0));
            }
            text.push('\n');
        }
        text
    }
}

impl ToolPrinter for MatrixPrinter {
    fn begin(&mut self) -> String {
        std::mem::take(&mut self.head) + COLUMNS
    }

    fn measured(&mut self, measurement: &Measurement) -> String {
        let index = self.figures.len();
        let per_pair = self.columns.len();
        let Some(&pair) = self.pairs.get(index / per_pair) else {
            return String::new();
        };
        self.figures.push(PairFigure {
            pair,
            column: self.columns[index % per_pair],
            value: self.unit.figure(measurement),
        });
        match (index + 1) % per_pair {
            0 => self.row(pair),
            _ => String::new(),
        }
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let mut stdout = String::new();
        if !result.interrupted && result.error.is_none() {
            stdout.push_str("\niozone test complete.\n");
        }
        if self.prints_excel {
            stdout.push_str("Excel output is below:\n");
            for column in &self.columns {
                stdout.push_str(&self.matrix(*column));
            }
        }
        ToolText::out(stdout)
    }
}
