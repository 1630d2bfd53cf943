//! pg_test_fsync of PostgreSQL, from the arguments to the lines: each label before its test, each
//! figure after it.

mod rows;
#[cfg(test)]
mod tests;

use crate::command::{CommandLine, GivenArguments};
use crate::drop_in::{DropIn, Started};
use crate::load::{DropInLoad, LoadHead, LoadTarget, PlanContext};
use crate::printer::{DropInError, ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::Plan;
use diskproof_model::target::TargetIdentity;
use rows::{RowFigures, SEGMENT_BYTES, TestRow, rows};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

/// The registry's line.
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("pg_test_fsync.txt"), start));

const DEFAULT_FILE: &str = "./pg_test_fsync.out";
const DEFAULT_SECONDS: u32 = 5;
const HINT: &str = "pg_test_fsync: hint: Try \"pg_test_fsync --help\" for more information.\n";
const NOT_DIRECT: &str = "* This file system and its mount options do not support direct
  I/O, e.g. ext4 in journaled mode.
";
const OPEN_FILE: &str =
    "'write, fsync, close' and 'write, close, fsync' keep the file open, without open and close";

/// What the arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FsyncLoad {
    head: LoadHead,
    seconds: u32,
}

/// Reads the arguments.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let command = CommandLine {
        after_option_error: HINT,
        ..CommandLine::new(DROP_IN.usage)
    };
    DROP_IN.start_load(arguments, command, read)
}

fn read(given: &GivenArguments) -> Result<FsyncLoad, String> {
    let with_hint = |text: &str| format!("error: {text}\n{}", HINT.trim_end());
    if let Some(first) = given.operands.first() {
        let text = format!("too many command-line arguments (first is \"{first}\")");
        return Err(with_hint(&text));
    }
    let seconds = given.read("s", |text| match text.trim_start().parse::<u32>() {
        Ok(0) => Err("error: --secs-per-test must be in range 1..4294967295".to_owned()),
        Ok(seconds) => Ok(seconds),
        Err(_) => Err(with_hint("invalid argument for option --secs-per-test")),
    })?;
    let file = given.value("f").unwrap_or(DEFAULT_FILE);
    let mut notes = vec![OPEN_FILE.to_owned()];
    if Path::new(file) != Path::new(DEFAULT_FILE) {
        let text = format!("the test file has no name; {file} is neither written nor removed");
        notes.insert(0, text);
    }
    Ok(FsyncLoad {
        head: LoadHead {
            fills_scratch_file: true,
            ..LoadHead::new(LoadTarget::directory_of(Path::new(file)), notes)
        },
        seconds: seconds.unwrap_or(DEFAULT_SECONDS),
    })
}

impl FsyncLoad {
    fn rows(&self, target: &TargetIdentity) -> Vec<TestRow> {
        let sectors = target.layers.iter().map(|layer| layer.logical_block_bytes);
        rows(sectors.flatten().max().unwrap_or(0))
    }
}

impl DropInLoad for FsyncLoad {
    fn head(&self) -> &LoadHead {
        &self.head
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        let rows = self.rows(context.target);
        let workloads = rows.iter().filter_map(|row| row.workload(self.seconds));
        let scratch_bytes = Some(SEGMENT_BYTES);
        Ok(DROP_IN.plan(context, scratch_bytes, workloads.collect()))
    }

    fn printer(&self, _plan: &Plan, target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(FsyncPrinter {
            rows: self.rows(target),
            seconds: self.seconds,
            current: 0,
            has_gap: false,
        })
    }
}

/// Prints line by line.
#[derive(Debug)]
struct FsyncPrinter {
    rows: Vec<TestRow>,
    seconds: u32,
    /// The row whose label was printed last.
    current: usize,
    /// Whether the current table has a row without direct I/O.
    has_gap: bool,
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
