//! The table of iozone, and its matrices for Excel: sizes of files and records, tests on each pair
//! of them, figures.

use crate::figures::timed_requests;
use crate::printer::{ToolPrinter, ToolResult, ToolText};
use DataDirection::{Read, Write};
use diskproof_model::measurement::{Measurement, OpKind};
use std::fmt::Write as _;

const KIB: f64 = 1024.0;
/// The two lines above the table, as IOzone has them.
const HEADING: &str = concat!(
    "                                                                    random    random      ",
    "bkwd     record     stride\n",
    "              kB  reclen    write    rewrite      read    reread      read     write      ",
    "read    rewrite       read    fwrite  frewrite     fread   freread\n",
);

/// The size above which a file is large: -a then omits records of less than [`LARGE_RECORD_KIB`].
const LARGE_FILE_KIB: u64 = 16_384;
/// The smallest record on a large file.
const LARGE_RECORD_KIB: u64 = 64;

/// A figure of a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// The number of its test, as of -i ([`test_number`]).
    pub(super) test: u32,
    pub(super) direction: DataDirection,
    /// The test's name at the beginning of the names of its workloads.
    pub(super) name: &'static str,
    /// The title of its matrix for Excel.
    title: &'static str,
    /// Characters of its field in the table.
    width: usize,
}

/// The direction of a test's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DataDirection {
    Read,
    Write,
}

/// IOzone's numbers of its tests.
pub(super) mod test_number {
    pub(crate) const WRITE: u32 = 0;
    pub(crate) const READ: u32 = 1;
    pub(crate) const RANDOM: u32 = 2;
    pub(crate) const BACKWARD: u32 = 3;
    pub(crate) const RECORD_REWRITE: u32 = 4;
    pub(crate) const STRIDE: u32 = 5;
}

/// A column; IOzone's fields are wider from the test of record rewrites on.
const fn column(
    test: u32,
    direction: DataDirection,
    name: &'static str,
    title: &'static str,
) -> Column {
    Column {
        test,
        direction,
        name,
        title,
        width: if test < test_number::RECORD_REWRITE {
            10
        } else {
            11
        },
    }
}

/// All columns, in the order of the table.
pub(super) static COLUMNS: [Column; 9] = [
    column(test_number::WRITE, Write, "write", "Writer"),
    column(test_number::WRITE, Write, "rewrite", "Re-writer"),
    column(test_number::READ, Read, "read", "Reader"),
    column(test_number::READ, Read, "reread", "Re-Reader"),
    column(test_number::RANDOM, Read, "random-read", "Random read"),
    column(test_number::RANDOM, Write, "random-write", "Random write"),
    column(
        test_number::BACKWARD,
        Read,
        "backward-read",
        "Backward read",
    ),
    column(
        test_number::RECORD_REWRITE,
        Write,
        "record-rewrite",
        "Record rewrite",
    ),
    column(test_number::STRIDE, Read, "stride-read", "Stride read"),
];

impl Column {
    /// True if it repeats the test before it.
    pub(super) fn is_repeat(&self) -> bool {
        matches!(self.name, "rewrite" | "reread")
    }
}

/// A file size and a record size, in KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SizePair {
    pub(super) file_kib: u64,
    pub(super) record_kib: u64,
}

impl SizePair {
    /// Bytes of the records that fit into the file.
    pub(super) fn bytes(self) -> u64 {
        (self.file_kib / self.record_kib * self.record_kib) << 10
    }
}

/// The sizes of a command line, in KiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) files: Vec<u64>,
    pub(super) records: Vec<u64>,
    /// True if large files skip small records.
    pub(super) skips_small: bool,
}

impl Sizes {
    /// The pairs in the order of the tests: by file, then by record.
    pub(super) fn pairs(&self) -> Vec<SizePair> {
        let mut pairs = Vec::new();
        for &file_kib in &self.files {
            let is_large = self.skips_small && file_kib > LARGE_FILE_KIB;
            let least_kib = if is_large { LARGE_RECORD_KIB } else { 0 };
            for &record_kib in &self.records {
                if (least_kib..=file_kib).contains(&record_kib) {
                    pairs.push(SizePair {
                        file_kib,
                        record_kib,
                    });
                }
            }
        }
        pairs
    }
}

/// Doubling sizes from `least` to `most`.
pub(super) fn doubling(least: u64, most: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut kib = least;
    while kib <= most {
        sizes.push(kib);
        kib *= 2;
    }
    sizes
}

/// The unit of figures.
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
        let mut busy_ns = 0;
        let (mut count, mut bytes) = (0, 0);
        for op in timed_requests(measurement) {
            busy_ns += op.latency.sum_ns();
            count += op.count;
            bytes += op.bytes;
        }
        // The fsync of -e is part of the time.
        if let Some(syncs) = measurement.ops.get(&OpKind::Sync) {
            busy_ns += syncs.latency.sum_ns();
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

/// Prints a row when its last test is over, and the matrices at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MatrixPrinter {
    /// The lines before the table.
    pub(super) head: String,
    pub(super) sizes: Sizes,
    pub(super) columns: Vec<&'static Column>,
    pub(super) unit: FigureUnit,
    /// True if the matrices for Excel are printed (-R).
    pub(super) prints_excel: bool,
    /// Figures of each column for each pair, as far as they were measured.
    pub(super) figures: Vec<u64>,
}

impl MatrixPrinter {
    /// The figure of a pair in a column; `None` where it was not measured.
    fn figure(&self, pair: SizePair, column: &Column) -> Option<u64> {
        let pairs = self.sizes.pairs();
        let row = pairs.iter().position(|measured| *measured == pair)?;
        let mut columns = self.columns.iter();
        let index = columns.position(|measured| *measured == column)?;
        self.figures.get(row * self.columns.len() + index).copied()
    }

    /// The row of a pair in the table.
    fn row(&self, pair: SizePair) -> String {
        let mut row = format!("{:>16}{:>8}", pair.file_kib, pair.record_kib);
        for column in &COLUMNS {
            let width = column.width;
            let _ = match self.figure(pair, column) {
                Some(value) => write!(row, "{value:>width$}"),
                None => write!(row, "{:>width$}", ""),
            };
        }
        format!("{}\n", row.trim_end())
    }

    /// The matrix of a column for Excel: a line for each file size, a field for each record size.
    fn matrix(&self, column: &Column) -> String {
        let mut text = format!("\n\"{} report\"\n      ", column.title);
        for kib in &self.sizes.records {
            let _ = write!(text, "  \"{kib}\"");
        }
        text.push('\n');
        for &file_kib in &self.sizes.files {
            let _ = write!(text, "\"{file_kib}\"  ");
            for &record_kib in &self.sizes.records {
                if record_kib > file_kib {
                    continue;
                }
                let pair = SizePair {
                    file_kib,
                    record_kib,
                };
                let _ = write!(text, " {} ", self.figure(pair, column).unwrap_or(0));
            }
            text.push('\n');
        }
        text
    }
}

impl ToolPrinter for MatrixPrinter {
    fn begin(&mut self) -> String {
        std::mem::take(&mut self.head) + HEADING
    }

    fn measured(&mut self, measurement: &Measurement) -> String {
        self.figures.push(self.unit.figure(measurement));
        let (measured, columns) = (self.figures.len(), self.columns.len());
        if !measured.is_multiple_of(columns) {
            return String::new();
        }
        match self.sizes.pairs().get(measured / columns - 1) {
            Some(pair) => self.row(*pair),
            None => String::new(),
        }
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let mut stdout = String::new();
        if !result.interrupted && result.error.is_none() {
            stdout.push_str("\niozone test complete.\n");
        }
        if self.prints_excel {
            stdout.push_str("Excel output is below:\n");
            stdout.extend(self.columns.iter().map(|column| self.matrix(column)));
        }
        ToolText::out(stdout)
    }
}
