//! iozone 3, which measures rates by size of the file and of the record: its arguments, and the
//! plan that they stand for.

mod print;
#[cfg(test)]
mod tests;

use crate::command::{CommandLine, GivenArguments, scaled};
use crate::drop_in::{DropIn, Started};
use crate::load::{DropInLoad, LoadHead, LoadTarget, PlanContext};
use crate::plan::{OPEN_DSYNC, OPEN_SYNC, RANDOM, blocking_workload, span_of, until_bytes};
use crate::printer::{DropInError, ToolPrinter};
use diskproof_model::plan::{Access, CachePolicy, Layout, Plan, SyncPolicy, Workload};
use diskproof_model::stream::Streams;
use diskproof_model::target::{TargetIdentity, TargetKind};
use print::{
    COLUMNS, Column, DataDirection, FigureUnit, MatrixPrinter, SizePair, Sizes, doubling,
    test_number,
};
use std::sync::LazyLock;

/// The entry of IOzone in [`crate::drop_ins`].
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("iozone.txt"), start));

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;
/// IOzone's default of -s.
const FILE_KIB_DEFAULT: u64 = 512;
/// IOzone's default of -r, and of -y with -a.
const RECORD_KIB_DEFAULT: u64 = 4;
/// IOzone's default of -f.
const DEFAULT_FILE: &str = "iozone.tmp";
/// IOzone's default of -n: the smallest file of -a.
const AUTO_FILE_KIB_MIN: u64 = 64;
/// IOzone's default of -g: the largest file of -a.
const AUTO_FILE_KIB_MAX: u64 = 512 * KIB;
/// IOzone's default of -q: the largest record of -a.
const AUTO_RECORD_KIB_MAX: u64 = 16 * KIB;
/// The largest file that is accepted here: a PiB.
const FILE_KIB_MAX: u64 = 1 << 40;
/// The largest record that is accepted here: a GiB, which fits into a buffer.
const RECORD_KIB_MAX: u64 = 1 << 20;
/// IOzone's default of -j, in records.
const STRIDE_DEFAULT: u64 = 17;
/// The largest stride that is accepted here, in records: with the largest record its bytes fit 64
/// bits.
const STRIDE_MAX: u64 = 1 << 20;
/// The number of the first test that does not run here. Tests count from 0.
const FIRST_MISSING_TEST: u32 = 6;

/// The load that a command line requests.
#[derive(Debug, Clone, PartialEq)]
struct PairsLoad {
    head: LoadHead,
    printer: MatrixPrinter,
    sync: SyncPolicy,
    cache: CachePolicy,
    stride: u64,
}

/// Turns the arguments into a load, or into the text or error that IOzone prints.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let help = DROP_IN.help(17, |option| format!("  {} {}", option.short, option.value));
    let command = CommandLine::with_help_after_errors(&help);
    DROP_IN.start_load(arguments, command, |given| {
        let mut load = read(given)?;
        load.printer.head = head(&load, given, arguments);
        Ok(load)
    })
}

/// Numbers of KiB, or with `k`, `m`, `g`, of every time that an option was given.
fn kibibytes(given: &GivenArguments, name: &str, most: u64) -> Result<Vec<u64>, String> {
    let units = [("", 1), ("k", 1), ("m", KIB), ("g", KIB * KIB)];
    let mut sizes = Vec::new();
    for text in given.values(name) {
        match scaled(text, &units) {
            Some(kib) if (1..=most).contains(&kib) => sizes.push(kib),
            _ => return Err(format!("-{name} {text}: not a size in kB")),
        }
    }
    Ok(sizes)
}

/// The last size that an option was given, in KiB.
fn last_size(given: &GivenArguments, name: &str, most: u64, default: u64) -> Result<u64, String> {
    let sizes = kibibytes(given, name, most)?;
    Ok(sizes.last().copied().unwrap_or(default))
}

/// Refuses a size that is given twice: its figures would stand in both rows.
fn refuse_repeated(sizes_kib: &[u64], option: &str) -> Result<(), String> {
    for (index, kib) in sizes_kib.iter().enumerate() {
        if sizes_kib[..index].contains(kib) {
            return Err(format!("-{option} {kib}: this size is given twice"));
        }
    }
    Ok(())
}

fn read_sizes(given: &GivenArguments) -> Result<Sizes, String> {
    let mut files = kibibytes(given, "s", FILE_KIB_MAX)?;
    let mut records = kibibytes(given, "r", RECORD_KIB_MAX)?;
    refuse_repeated(&files, "s")?;
    refuse_repeated(&records, "r")?;
    let is_auto = given.has("a");
    for limit in ["n", "g", "y", "q"] {
        if given.has(limit) && !is_auto {
            return Err(format!("-{limit} needs -a"));
        }
    }
    let skips_small = is_auto && !given.has("z") && records.is_empty();
    let file_min = last_size(given, "n", FILE_KIB_MAX, AUTO_FILE_KIB_MIN)?;
    let file_max = last_size(given, "g", FILE_KIB_MAX, AUTO_FILE_KIB_MAX)?;
    let record_min = last_size(given, "y", RECORD_KIB_MAX, RECORD_KIB_DEFAULT)?;
    let record_max = last_size(given, "q", RECORD_KIB_MAX, AUTO_RECORD_KIB_MAX)?;
    if files.is_empty() && is_auto {
        files = doubling(file_min, file_max);
    } else if files.is_empty() {
        files = vec![FILE_KIB_DEFAULT];
    }
    if records.is_empty() && is_auto {
        records = doubling(record_min, record_max);
    } else if records.is_empty() {
        records = vec![RECORD_KIB_DEFAULT];
    }
    let sizes = Sizes {
        files,
        records,
        skips_small,
    };
    if sizes.pairs().is_empty() {
        return Err("no record fits into a file".to_owned());
    }
    Ok(sizes)
}

/// The columns of the tests that -i names, or of all; with -+n without those that repeat a test.
fn columns(given: &GivenArguments) -> Result<Vec<&'static Column>, String> {
    let mut tests = Vec::new();
    for text in given.values("i") {
        match text.parse() {
            Ok(test) if test < FIRST_MISSING_TEST => tests.push(test),
            Ok(FIRST_MISSING_TEST..=12) => {
                return Err(format!("-i {text} is not supported; use -i 0 to -i 5"));
            }
            _ => return Err(format!("-i {text}: not a test")),
        }
    }
    let skips_repeats = given.has("+n");
    let mut columns = Vec::new();
    for column in &COLUMNS {
        let is_chosen = tests.is_empty() || tests.contains(&column.test);
        if is_chosen && !(skips_repeats && column.is_repeat()) {
            columns.push(column);
        }
    }
    Ok(columns)
}

fn read(given: &GivenArguments) -> Result<PairsLoad, String> {
    if let Some(operand) = given.operands.first() {
        return Err(format!("unexpected argument {operand}"));
    }
    let stride = given.number("j", 1..=STRIDE_MAX)?;
    let mut notes = Vec::new();
    if !given.has("I") {
        notes.push("the page cache answers; use -I to reach the disk".to_owned());
    }
    if !given.has("i") {
        notes.push("tests 6 to 12 do not run; their fields are empty".to_owned());
    }
    notes.extend(given.notes.iter().cloned());
    let sizes = read_sizes(given)?;
    let file = given.value("f").unwrap_or(DEFAULT_FILE);
    Ok(PairsLoad {
        head: LoadHead::new(LoadTarget::Nameless(file.into()), notes),
        printer: MatrixPrinter {
            head: String::new(),
            sizes,
            columns: columns(given)?,
            unit: if given.has("O") {
                FigureUnit::Operations
            } else if given.has("N") {
                FigureUnit::Microseconds
            } else {
                FigureUnit::Kilobytes
            },
            prints_excel: given.has("R"),
            figures: Vec::new(),
        },
        sync: if given.has("o") || given.has("+r") {
            OPEN_SYNC
        } else if given.has("+D") {
            OPEN_DSYNC
        } else if given.has("e") {
            SyncPolicy::AtEnd
        } else {
            SyncPolicy::None
        },
        cache: if given.has("I") {
            CachePolicy::Direct
        } else {
            CachePolicy::Cached
        },
        stride: stride.unwrap_or(STRIDE_DEFAULT),
    })
}

/// The lines before the table.
fn head(load: &PairsLoad, given: &GivenArguments, arguments: &[String]) -> String {
    let mut lines = settings_lines(load, given);
    lines.push(format!("Command line used: iozone {}", arguments.join(" ")));
    if load.printer.unit == FigureUnit::Kilobytes {
        lines.push("Output is in kBytes/sec".to_owned());
    }
    lines.push("Time Resolution = 0.000000001 seconds.".to_owned());
    let stride = load.stride;
    lines.push(format!("File stride size set to {stride} * record size."));
    let mut text = format!(
        "\tIozone: Performance Test of File I/O\n\t        Version $Revision: 3.508 $ (emulated \
         by diskproof {})\n\n",
        env!("CARGO_PKG_VERSION")
    );
    for line in lines {
        text += &format!("\t{line}\n");
    }
    text
}

/// A line for each setting that the command line changes.
fn settings_lines(load: &PairsLoad, given: &GivenArguments) -> Vec<String> {
    let is_auto = given.has("a");
    let mut lines: Vec<String> = Vec::new();
    if is_auto {
        lines.push("Auto Mode".to_owned());
    }
    if load.printer.prints_excel {
        lines.push("Excel chart generation enabled".to_owned());
    }
    match load.printer.unit {
        FigureUnit::Kilobytes => {}
        FigureUnit::Operations => {
            lines.push("OPS Mode. Output is in operations per second.".to_owned());
        }
        FigureUnit::Microseconds => {
            let text = "Microseconds/op Mode. Output is in microseconds per operation.";
            lines.push(text.to_owned());
        }
    }
    if !is_auto {
        for kib in &load.printer.sizes.files {
            lines.push(format!("File size set to {kib} kB"));
        }
        for kib in &load.printer.sizes.records {
            lines.push(format!("Record Size {kib} kB"));
        }
    }
    if given.has("e") {
        lines.push("Include fsync in write timing".to_owned());
    }
    if given.has("I") {
        lines.push("O_DIRECT feature enabled".to_owned());
    }
    if given.has("o") {
        lines.push("SYNC Mode. ".to_owned());
    }
    lines
}

impl PairsLoad {
    fn workload(&self, pair: SizePair, column: &Column, start_bytes: u64) -> Workload {
        let record_bytes = pair.record_kib * KIB;
        let bytes = pair.bytes();
        // The test of rewriting uses the record in the middle.
        let records = bytes / record_bytes;
        let (offset_bytes, length_bytes) = match column.test {
            test_number::RECORD_REWRITE => (records / 2 * record_bytes, record_bytes),
            _ => (0, bytes),
        };
        let access = match column.test {
            test_number::RANDOM => RANDOM,
            test_number::BACKWARD => Access::Backward,
            test_number::STRIDE if self.stride < records => Access::Stride {
                stride_bytes: self.stride * record_bytes,
            },
            _ => Access::Sequential,
        };
        let name = format!("{}-{}k-{}k", column.name, pair.file_kib, pair.record_kib);
        let (read_permille, sync) = match column.direction {
            DataDirection::Read => (1000, SyncPolicy::None),
            DataDirection::Write => (0, self.sync),
        };
        Workload {
            streams: Streams::with_reads(read_permille),
            span: span_of(start_bytes + offset_bytes, length_bytes),
            stop: until_bytes(bytes),
            sync,
            cache: self.cache,
            layout: match column.name {
                "write" => Layout::Provides,
                _ => Layout::Needed,
            },
            ..blocking_workload(&name, access, record_bytes as u32)
        }
    }

    /// The workloads of all pairs, each pair in a part of the file.
    fn file_parts(&self) -> FileParts {
        let mut workloads = Vec::new();
        let mut start_bytes = 0;
        for pair in self.printer.sizes.pairs() {
            for column in &self.printer.columns {
                workloads.push(self.workload(pair, column, start_bytes));
            }
            start_bytes += pair.bytes().next_multiple_of(MIB);
        }
        FileParts {
            workloads,
            file_bytes: start_bytes,
        }
    }
}

/// The parts of a file, each with its workloads.
struct FileParts {
    workloads: Vec<Workload>,
    /// The size of the whole file.
    file_bytes: u64,
}

impl DropInLoad for PairsLoad {
    fn head(&self) -> &LoadHead {
        &self.head
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        if context.target.kind != TargetKind::Directory {
            let path = self.head.path();
            return Err(DROP_IN.target_error(&format!("{path}: no directory")));
        }
        let parts = self.file_parts();
        Ok(DROP_IN.plan(context, Some(parts.file_bytes), parts.workloads))
    }

    fn printer(&self, _plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(self.printer.clone())
    }
}
