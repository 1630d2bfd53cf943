//! iozone 3: rates by size of the file and of the record.
//!
//! Arguments of iozone to a plan.

mod print;
#[cfg(test)]
mod tests;

use crate::command::{CommandLine, GivenArguments, scaled};
use crate::drop_in::{DropIn, Started};
use crate::load::{DropInLoad, LoadHead, LoadTarget, PlanContext};
use crate::plan::{OPEN_DSYNC, OPEN_SYNC, RANDOM, blocking, direct_or, part, until_bytes};
use crate::printer::{DropInError, ToolPrinter};
use diskproof_model::plan::{Access, CachePolicy, Layout, Plan, SyncPolicy, Workload};
use diskproof_model::stream::Streams;
use diskproof_model::target::{TargetIdentity, TargetKind};
use print::{COLUMNS, Column, FigureUnit, MatrixPrinter, SizePair, Sizes, doubling};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

/// The registry's line.
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("iozone.txt"), start));

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;
const FILE_KIB: u64 = 512;
const RECORD_KIB: u64 = 4;
const FILE_KIB_MAX: u64 = 1 << 40;
const RECORD_KIB_MAX: u64 = 1 << 20;
const STRIDE: u64 = 17;
const TESTS: u32 = 6;

/// What the arguments say.
#[derive(Debug, Clone, PartialEq)]
struct PairsLoad {
    head: LoadHead,
    printer: MatrixPrinter,
    sync: SyncPolicy,
    cache: CachePolicy,
    stride: u64,
}

/// Reads the arguments.
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
    let size = |text: &str| {
        let kib = scaled(text, &units).filter(|kib| (1..=most).contains(kib));
        kib.ok_or_else(|| format!("-{name} {text}: not a size in kB"))
    };
    given.values(name).map(size).collect()
}

fn read_sizes(given: &GivenArguments) -> Result<Sizes, String> {
    let files = kibibytes(given, "s", FILE_KIB_MAX)?;
    let records = kibibytes(given, "r", RECORD_KIB_MAX)?;
    let limit = |name, most, default| {
        let given = kibibytes(given, name, most)?;
        Ok::<u64, String>(given.last().copied().unwrap_or(default))
    };
    let is_auto = given.has("a");
    let limited = ["n", "g", "y", "q"].iter().find(|name| given.has(name));
    if let (Some(name), false) = (limited, is_auto) {
        return Err(format!("-{name} needs -a"));
    }
    let chosen = |given: Vec<u64>, all: Vec<u64>, default| match (given.is_empty(), is_auto) {
        (false, _) => given,
        (true, true) => all,
        (true, false) => vec![default],
    };
    let skips_small = is_auto && !given.has("z") && records.is_empty();
    let least = limit("n", FILE_KIB_MAX, 64)?;
    let all_files = doubling(least, limit("g", FILE_KIB_MAX, 512 * KIB)?);
    let least = limit("y", RECORD_KIB_MAX, RECORD_KIB)?;
    let all_records = doubling(least, limit("q", RECORD_KIB_MAX, 16 * KIB)?);
    let sizes = Sizes {
        files: chosen(files, all_files, FILE_KIB),
        records: chosen(records, all_records, RECORD_KIB),
        skips_small,
    };
    if sizes.pairs().is_empty() {
        Err("no record fits into a file".to_owned())
    } else {
        Ok(sizes)
    }
}

/// The columns of the tests that -i names, or of all.
fn columns(given: &GivenArguments, repeats: bool) -> Result<Vec<&'static Column>, String> {
    let mut tests = Vec::new();
    for text in given.values("i") {
        tests.push(match text.parse() {
            Ok(test) if test < TESTS => test,
            Ok(6..=12) => return Err(format!("-i {text} is not supported; use -i 0 to -i 5")),
            _ => return Err(format!("-i {text}: not a test")),
        });
    }
    let is_wanted = |column: &&Column| {
        (tests.is_empty() || tests.contains(&column.test)) && (repeats || !column.is_repeat())
    };
    Ok(COLUMNS.iter().filter(is_wanted).collect())
}

fn read(given: &GivenArguments) -> Result<PairsLoad, String> {
    if let Some(operand) = given.operands.first() {
        return Err(format!("unexpected argument {operand}"));
    }
    let stride = given.number("j", 1..=1 << 20)?;
    let mut notes = Vec::new();
    if !given.has("I") {
        notes.push("the page cache answers; use -I to reach the disk".to_owned());
    }
    if !given.has("i") {
        notes.push("tests 6 to 12 do not run; their fields are empty".to_owned());
    }
    notes.extend(given.notes.iter().cloned());
    let sizes = read_sizes(given)?;
    let file = Path::new(given.value("f").unwrap_or_default());
    Ok(PairsLoad {
        head: LoadHead::new(LoadTarget::directory_of(file), notes),
        printer: MatrixPrinter {
            head: String::new(),
            sizes,
            columns: columns(given, !given.has("+n"))?,
            unit: match (given.has("O"), given.has("N")) {
                (true, _) => FigureUnit::Operations,
                (false, true) => FigureUnit::Microseconds,
                (false, false) => FigureUnit::Kilobytes,
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
        cache: direct_or(given.has("I"), CachePolicy::Cached),
        stride: stride.unwrap_or(STRIDE),
    })
}

/// The lines before the table.
fn head(load: &PairsLoad, given: &GivenArguments, arguments: &[String]) -> String {
    let is_auto = given.has("a");
    let mut text = format!(
        "\tIozone: Performance Test of File I/O\n\t        Version $Revision: 3.508 $ (emulated \
         by diskproof {})\n\n",
        env!("CARGO_PKG_VERSION")
    );
    let mut line = |is_shown: bool, line: &str| {
        if is_shown {
            let _ = writeln!(text, "\t{line}");
        }
    };
    line(is_auto, "Auto Mode");
    line(load.printer.prints_excel, "Excel chart generation enabled");
    let unit = load.printer.unit;
    let of_time = "Microseconds/op Mode. Output is in microseconds per operation.";
    let of_count = "OPS Mode. Output is in operations per second.";
    line(unit == FigureUnit::Operations, of_count);
    line(unit == FigureUnit::Microseconds, of_time);
    for kib in &load.printer.sizes.files {
        line(!is_auto, &format!("File size set to {kib} kB"));
    }
    for kib in &load.printer.sizes.records {
        line(!is_auto, &format!("Record Size {kib} kB"));
    }
    line(given.has("e"), "Include fsync in write timing");
    line(given.has("I"), "O_DIRECT feature enabled");
    line(given.has("o"), "SYNC Mode. ");
    let command = arguments.join(" ");
    line(true, &format!("Command line used: iozone {command}"));
    line(unit == FigureUnit::Kilobytes, "Output is in kBytes/sec");
    line(true, "Time Resolution = 0.000000001 seconds.");
    let stride = format!("File stride size set to {} * record size.", load.stride);
    line(true, &stride);
    text
}

impl PairsLoad {
    fn workload(&self, pair: SizePair, column: &Column, start_bytes: u64) -> Workload {
        let record_bytes = pair.record_kib * KIB;
        let bytes = pair.bytes();
        // The record in the middle.
        let records = bytes / record_bytes;
        let (offset_bytes, length_bytes) = match column.test {
            4 => (records / 2 * record_bytes, record_bytes),
            _ => (0, bytes),
        };
        let access = match column.test {
            2 => RANDOM,
            3 => Access::Backward,
            5 if self.stride < records => Access::Stride {
                stride_bytes: self.stride * record_bytes,
            },
            _ => Access::Sequential,
        };
        let name = format!("{}-{}k-{}k", column.name, pair.file_kib, pair.record_kib);
        let writes = column.writes;
        Workload {
            streams: Streams::with_reads(if writes { 0 } else { 1000 }),
            span: part(start_bytes + offset_bytes, length_bytes),
            stop: until_bytes(bytes),
            sync: if writes { self.sync } else { SyncPolicy::None },
            cache: self.cache,
            layout: match column.name {
                "write" => Layout::Provides,
                _ => Layout::Needed,
            },
            ..blocking(&name, access, record_bytes as u32)
        }
    }

    /// The workloads in the parts of the file, and its size.
    fn workloads(&self) -> (Vec<Workload>, u64) {
        let (mut workloads, mut start_bytes) = (Vec::new(), 0);
        for pair in self.printer.sizes.pairs() {
            for column in &self.printer.columns {
                workloads.push(self.workload(pair, column, start_bytes));
            }
            start_bytes += pair.bytes().next_multiple_of(MIB);
        }
        (workloads, start_bytes)
    }
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
        let (workloads, bytes) = self.workloads();
        Ok(DROP_IN.plan(context, Some(bytes), workloads))
    }

    fn printer(&self, _plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(self.printer.clone())
    }
}
