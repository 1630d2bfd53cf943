//! The output of pg_test_fsync: each label before its test, each figure after it.

use super::rows::{RowFigures, TestRow};
use crate::printer::{ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::Measurement;
use std::fmt::Write as _;

const NOT_DIRECT: &str = "* This file system and its mount options do not support direct
  I/O, e.g. ext4 in journaled mode.
";

/// Prints line by line.
#[derive(Debug)]
pub(super) struct FsyncPrinter {
    pub(super) rows: Vec<TestRow>,
    pub(super) seconds: u32,
    /// The row whose label was printed last.
    pub(super) current: usize,
    /// Whether the current table has a row without direct I/O.
    pub(super) has_gap: bool,
}

impl FsyncPrinter {
    /// The label of the current row, and all rows that need no measurement.
    fn advance(&mut self, text: &mut String) {
        while let Some(row) = self.rows.get(self.current) {
            let _ = write!(text, "{}        {:<30}", row.heading, row.label);
            let figures = row.figures(None);
            if figures == RowFigures::Unknown {
                return;
            }
            self.finish_row(figures, text);
        }
    }

    /// The figures of the current row, and the footnote at the end of a table.
    fn finish_row(&mut self, figures: RowFigures, text: &mut String) {
        let _ = match figures {
            RowFigures::Rate(rate) => {
                writeln!(text, "{rate:13.3} ops/sec  {:6.0} usecs/op", 1e6 / rate)
            }
            RowFigures::Missing | RowFigures::Unknown => writeln!(text, "{:>21}", "n/a"),
            RowFigures::NotDirect => writeln!(text, "{:>21}", "n/a*"),
        };
        // pg_test_fsync has no footnote below the table of sizes.
        let row = self.rows.get(self.current);
        let has_footnote = row.is_some_and(|row| !row.label.contains("kB"));
        self.has_gap |= figures == RowFigures::NotDirect && has_footnote;
        self.current += 1;
        let next = self.rows.get(self.current);
        let is_last = next.is_none_or(|row| !row.heading.is_empty());
        if is_last && std::mem::take(&mut self.has_gap) {
            text.push_str(NOT_DIRECT);
        }
    }
}

impl ToolPrinter for FsyncPrinter {
    fn begin(&mut self) -> String {
        let plural = if self.seconds == 1 { "" } else { "s" };
        let mut text = format!(
            "{} second{plural} per test\n\
             O_DIRECT supported on this platform for open_datasync and open_sync.\n",
            self.seconds
        );
        self.advance(&mut text);
        text
    }

    fn measured(&mut self, measurement: &Measurement) -> String {
        let mut text = String::new();
        if let Some(row) = self.rows.get(self.current) {
            let figures = row.figures(Some(measurement));
            self.finish_row(figures, &mut text);
            self.advance(&mut text);
        }
        text
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let is_cut = result.interrupted || self.current < self.rows.len();
        ToolText::out(if is_cut { "\n" } else { "" })
    }
}
