//! Arguments of iozone to a plan.

use super::options::{EMULATES, NAME, OPTIONS};
use super::pairs::{Column, SizePair, Sizes, doubling};
use super::print::{FigureUnit, MatrixPrinter};
use crate::drop_in::{Started, Treatment};
use crate::error::DropInError;
use crate::getopt::{GivenArguments, OptionForms, parse};
use crate::load::{DropInLoad, LoadTarget, PlanContext};
use crate::plan::plan_of;
use crate::printer::{ToolPrinter, ToolText};
use diskproof_model::plan::{
    Access, CachePolicy, Distribution, EngineChoice, EngineKind, Layout, Plan, Span, Stop,
    SyncPolicy, Workload, WriteFlag,
};
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

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
pub(super) struct PairsLoad {
    directory: PathBuf,
    sizes: Sizes,
    columns: Vec<Column>,
    sync: SyncPolicy,
    cache: CachePolicy,
    stride: u64,
    unit: FigureUnit,
    prints_excel: bool,
    head: String,
    notes: Vec<String>,
}

/// Reads the arguments.
pub(super) fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let usage = |text: String| DropInError::Usage(format!("iozone: {text}\n{}", help()));
    let first = arguments.first().map(String::as_str);
    if matches!(first, Some("--version" | "-v")) {
        return Ok(Started::version(EMULATES));
    }
    let mut extended = Vec::new();
    let mut plain = Vec::new();
    for word in arguments {
        match word.starts_with("-+") {
            true => extended.push(word.as_str()),
            false => plain.push(word.clone()),
        }
    }
    let mut notes = check_extended(&extended).map_err(usage)?;
    let given = parse(OPTIONS, &plain, OptionForms::Long).map_err(usage)?;
    if given.has("h") {
        return Ok(Started::Text(ToolText {
            stdout: help(),
            stderr: String::new(),
        }));
    }
    notes.extend(given.notes.iter().cloned());
    let mut load = read(&given, &extended).map_err(usage)?;
    load.head = head(&load, &given, arguments);
    load.notes.extend(notes);
    Ok(Started::Load(Box::new(load)))
}

fn help() -> String {
    let mut text = "Usage: iozone [options]\n\n".to_owned();
    for option in OPTIONS {
        if option.treatment == Treatment::Carried {
            let form = format!("{} {}", option.short, option.value);
            let _ = writeln!(text, "  {form:<14} {}", option.help);
        }
    }
    text
}

/// Options of the form `-+n`, which getopt does not know. Those without effect become notes.
fn check_extended(words: &[&str]) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    for word in words {
        let option = OPTIONS.iter().find(|option| option.short == *word);
        let option = option.ok_or_else(|| format!("unknown option {word}"))?;
        match option.treatment {
            Treatment::Carried => {}
            Treatment::Ignored(why) => notes.push(format!("{word} has no effect: {why}")),
            Treatment::Refused(instead) => {
                return Err(format!("{word} is not supported; {instead}"));
            }
        }
    }
    Ok(notes)
}

/// Numbers of KiB, or with `k`, `m`, `g`, of every time that an option was given.
fn kibibytes(given: &GivenArguments, name: &str, most: u64) -> Result<Vec<u64>, String> {
    let mut sizes = Vec::new();
    for option in given.options.iter().filter(|given| given.name == name) {
        let text = option.value.as_deref().unwrap_or_default();
        let (digits, factor) = match text.as_bytes().last() {
            Some(b'k' | b'K') => (&text[..text.len() - 1], 1),
            Some(b'm' | b'M') => (&text[..text.len() - 1], KIB),
            Some(b'g' | b'G') => (&text[..text.len() - 1], KIB * KIB),
            _ => (text, 1),
        };
        let number: Option<u64> = digits.parse().ok();
        let kib = number.and_then(|number| number.checked_mul(factor));
        let kib = kib.filter(|kib| (1..=most).contains(kib));
        sizes.push(kib.ok_or_else(|| format!("-{name} {text}: not a size in kB"))?);
    }
    Ok(sizes)
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
    let all_files = doubling(
        limit("n", FILE_KIB_MAX, 64)?,
        limit("g", FILE_KIB_MAX, 512 * KIB)?,
    );
    let all_records = doubling(
        limit("y", RECORD_KIB_MAX, RECORD_KIB)?,
        limit("q", RECORD_KIB_MAX, 16 * KIB)?,
    );
    let sizes = Sizes {
        files: chosen(files, all_files, FILE_KIB),
        records: chosen(records, all_records, RECORD_KIB),
        skips_small,
    };
    match sizes.pairs().is_empty() {
        true => Err("no record fits into a file".to_owned()),
        false => Ok(sizes),
    }
}

/// The columns of the tests that -i names, or of all.
fn columns(given: &GivenArguments, repeats: bool) -> Result<Vec<Column>, String> {
    let mut tests = Vec::new();
    for option in given.options.iter().filter(|given| given.name == "i") {
        let text = option.value.as_deref().unwrap_or_default();
        tests.push(match text.parse() {
            Ok(test) if test < TESTS => test,
            Ok(6..=12) => {
                return Err(format!("-i {text} is not supported; use -i 0 to -i 5"));
            }
            _ => return Err(format!("-i {text}: not a test")),
        });
    }
    let is_wanted = |column: &Column| {
        (tests.is_empty() || tests.contains(&column.test())) && (repeats || !column.is_repeat())
    };
    Ok(Column::ALL.into_iter().filter(is_wanted).collect())
}

fn read(given: &GivenArguments, extended: &[&str]) -> Result<PairsLoad, String> {
    if let Some(operand) = given.operands.first() {
        return Err(format!("unexpected argument {operand}"));
    }
    let syncs = given.has("o") || extended.contains(&"-+r");
    let stride = given.value("j").map_or(Ok(STRIDE), str::parse);
    let stride = stride
        .ok()
        .filter(|records| (1..=1 << 20).contains(records));
    let mut notes = Vec::new();
    if !given.has("I") {
        notes.push("the page cache answers; use -I to reach the disk".to_owned());
    }
    if !given.has("i") {
        notes.push("tests 6 to 12 do not run; their fields are empty".to_owned());
    }
    Ok(PairsLoad {
        directory: directory_of(given.value("f")),
        sizes: read_sizes(given)?,
        columns: columns(given, !extended.contains(&"-+n"))?,
        sync: match (syncs, extended.contains(&"-+D"), given.has("e")) {
            (true, _, _) => SyncPolicy::WithWrite {
                flag: WriteFlag::OpenSync,
            },
            (_, true, _) => SyncPolicy::WithWrite {
                flag: WriteFlag::OpenDsync,
            },
            (_, _, true) => SyncPolicy::AtEnd,
            _ => SyncPolicy::None,
        },
        cache: match given.has("I") {
            true => CachePolicy::Direct,
            false => CachePolicy::Cached,
        },
        stride: stride.ok_or("-j: use a number of records")?,
        unit: match (given.has("O"), given.has("N")) {
            (true, _) => FigureUnit::Operations,
            (false, true) => FigureUnit::Microseconds,
            (false, false) => FigureUnit::Kilobytes,
        },
        prints_excel: given.has("R"),
        head: String::new(),
        notes,
    })
}

/// The directory in which the tool would make its file.
fn directory_of(file: Option<&str>) -> PathBuf {
    let parent = file.and_then(|file| Path::new(file).parent());
    let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// The lines before the table.
fn head(load: &PairsLoad, given: &GivenArguments, arguments: &[String]) -> String {
    let mut lines = Vec::new();
    let sizes = &load.sizes;
    if given.has("a") {
        lines.push("Auto Mode".to_owned());
    }
    if load.prints_excel {
        lines.push("Excel chart generation enabled".to_owned());
    }
    match load.unit {
        FigureUnit::Operations => {
            lines.push("OPS Mode. Output is in operations per second.".to_owned());
        }
        FigureUnit::Microseconds => {
            let text = "Microseconds/op Mode. Output is in microseconds per operation.";
            lines.push(text.to_owned());
        }
        FigureUnit::Kilobytes => {}
    }
    if !given.has("a") {
        for kib in &sizes.files {
            lines.push(format!("File size set to {kib} kB"));
        }
        for kib in &sizes.records {
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
    lines.push(format!("Command line used: iozone {}", arguments.join(" ")));
    if load.unit == FigureUnit::Kilobytes {
        lines.push("Output is in kBytes/sec".to_owned());
    }
    lines.push("Time Resolution = 0.000000001 seconds.".to_owned());
    lines.push(format!(
        "File stride size set to {} * record size.",
        load.stride
    ));
    let mut text = format!(
        "\tIozone: Performance Test of File I/O\n\t        Version $Revision: 3.508 $ (emulated \
         by diskproof {})\n\n",
        env!("CARGO_PKG_VERSION")
    );
    for line in lines {
        let _ = writeln!(text, "\t{line}");
    }
    text
}

impl PairsLoad {
    fn workload(&self, pair: SizePair, column: Column, start_bytes: u64) -> Workload {
        let record_bytes = pair.record_kib * KIB;
        let bytes = pair.bytes();
        let stop = Stop {
            bytes: Some(bytes),
            ..Stop::default()
        };
        // The record in the middle.
        let records = bytes / record_bytes;
        let (offset_bytes, length_bytes) = match column {
            Column::Record => (records / 2 * record_bytes, record_bytes),
            _ => (0, bytes),
        };
        Workload {
            read_permille: if column.writes() { 0 } else { 1000 },
            access: match column {
                Column::RandomRead | Column::RandomWrite => Access::Random {
                    distribution: Distribution::Uniform,
                },
                Column::Backward => Access::Backward,
                Column::Stride if self.stride < records => Access::Stride {
                    stride_bytes: self.stride * record_bytes,
                },
                _ => Access::Sequential,
            },
            block_bytes: record_bytes as u32,
            span: Span {
                start_bytes: start_bytes + offset_bytes,
                length_bytes: Some(length_bytes),
            },
            stop,
            sync: match column.writes() {
                true => self.sync,
                false => SyncPolicy::None,
            },
            cache: self.cache,
            engine: EngineChoice::Fixed(EngineKind::Sync),
            layout: match column {
                Column::Write => Layout::Provides,
                _ => Layout::Needed,
            },
            ..Workload::named(&format!(
                "{}-{}k-{}k",
                column.name(),
                pair.file_kib,
                pair.record_kib
            ))
        }
    }

    /// The workloads in the parts of the file, and its size.
    fn workloads(&self) -> (Vec<Workload>, u64) {
        let (mut workloads, mut start_bytes) = (Vec::new(), 0);
        for pair in self.sizes.pairs() {
            for column in &self.columns {
                workloads.push(self.workload(pair, *column, start_bytes));
            }
            start_bytes += pair.bytes().next_multiple_of(MIB);
        }
        (workloads, start_bytes)
    }
}

impl DropInLoad for PairsLoad {
    fn target(&self) -> LoadTarget {
        LoadTarget::Existing(self.directory.clone())
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        if context.target.kind != TargetKind::Directory {
            let path = self.directory.display();
            return Err(DropInError::Target(format!(
                "iozone: {path}: no directory\n"
            )));
        }
        let (workloads, bytes) = self.workloads();
        Ok(plan_of(NAME, context, Some(bytes), workloads))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn printer(&self, _plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(MatrixPrinter::new(
            self.head.clone(),
            self.sizes.clone(),
            self.columns.clone(),
            self.unit,
            self.prints_excel,
        ))
    }
}
