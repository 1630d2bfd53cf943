//! bonnie++ 2.00, which tests one large file and many small ones: its arguments, and the plan that
//! they stand for.

mod print;
#[cfg(test)]
mod tests;

use crate::command::{self, CommandLine, GivenArguments};
use crate::drop_in::{DropIn, Started};
use crate::load::{DropInLoad, LoadHead, LoadTarget, NextLoad, NextPrinter, PlanContext};
use crate::plan::{RANDOM, blocking_workload, span_of, sync_every, until_bytes};
use crate::printer::{DropInError, ToolPrinter};
use diskproof_model::files::{FileCaches, FileOrder, FileSync, FilesPlan};
use diskproof_model::plan::{
    Access, CachePolicy, Layout, Plan, SyncCall, SyncPolicy, Task, Workload,
};
use diskproof_model::stream::Streams;
use diskproof_model::target::{TargetIdentity, TargetKind};
use print::{
    CHUNK_BYTES, CsvFormat, FILES_UNIT, LARGE_FILE_TESTS, READ, REWRITE, RunLabels, SEEKS,
    TablePrinter, WRITE, name_in_run,
};
use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// The entry of bonnie++ in [`crate::drop_ins`].
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("bonnie.txt"), start));

const MIB: u64 = 1 << 20;
/// The size of the file without -s and -r. bonnie++ takes twice the memory, because it does not
/// empty the page cache.
const SIZE_MIB_DEFAULT: u64 = 1024;
/// bonnie++'s number of seeks.
const SEEKS_DEFAULT: u64 = 8192;
/// bonnie++'s number of processes that seek.
const SEEKERS_DEFAULT: u64 = 5;
/// The most copies that run at the same time here. Each is a thread, and in the seeks as many as -s
/// names. Chosen.
const CONCURRENCY_MAX: u64 = 200;
/// The smallest size that bonnie++ takes for a file without -s, in MiB.
const SIZE_MIB_MIN: u64 = 300;
/// bonnie++ rounds the size for a memory to multiples of this, in MiB.
const ROUNDED_TO_MIB: u64 = 1024;
/// The largest size of -r and -s, in MiB: a PiB.
const SIZE_MIB_MAX: u64 = 1 << 30;
/// The smallest chunk of bonnie++.
const CHUNK_BYTES_MIN: u64 = 256;
/// The most seeks that -s may request: with the largest chunk their bytes fit 64 bits.
const SEEKS_MAX: u64 = 1 << 40;
/// The most processes that seek. Chosen, as [`crate::plan::THREADS_MAX`].
const SEEKERS_MAX: u64 = 1024;
/// The most runs of -x. Each has its part of the file, and four workloads. Chosen.
const RUNS_MAX: u64 = 100;
/// bonnie++'s number of files, in units of 1024.
const FILES_DEFAULT: u64 = 16;
/// The most files, in units of 1024: the ten million that a plan may have.
const FILES_MAX: u64 = 9765;
/// The largest of many files. Chosen.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// The most directories of many files. Chosen.
const DIRECTORIES_MAX: u64 = 10_000;
/// A day stands in for the limit of time that bonnie++ does not have.
const FILES_NS: u64 = 86_400 * 1_000_000_000;
/// Permille of reads in a rewrite, which reads each chunk and writes it back.
const REWRITE_READ_PERMILLE: u16 = 500;
/// Permille of reads in the seeks: bonnie++ writes back one block of ten.
const SEEKS_READ_PERMILLE: u16 = 900;

/// The load that a command line requests.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BonnieLoad {
    head: LoadHead,
    /// True if this load measures many files, and false if it measures a large one.
    measures_files: bool,
    labels: RunLabels,
    /// True if the file is created with O_DIRECT (-D).
    is_direct: bool,
    /// True if each write of a seek is synced (-b).
    syncs_each: bool,
    /// The seed of -z.
    seed: Option<u64>,
}

/// Turns the arguments into a load, or into the text or error that bonnie++ prints.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let command = CommandLine::with_help_after_errors(DROP_IN.usage);
    DROP_IN.start_load(arguments, command, read)
}

fn read(given: &GivenArguments) -> Result<BonnieLoad, String> {
    if let Some(operand) = given.operands.first() {
        return Err(format!("unexpected argument {operand}"));
    }
    let runs = in_range("x", given.value("x"), "", 1..=RUNS_MAX)?.unwrap_or(1);
    let concurrency = in_range("c", given.value("c"), "", 1..=CONCURRENCY_MAX)?.unwrap_or(1);
    let LargeFile {
        size_mib,
        chunk_bytes,
        seeks,
        seekers,
    } = large_file(given, concurrency)?;
    let files = many_files(given, size_mib, runs)?;
    let mut notes = given.notes.clone();
    if size_mib > 0 {
        notes.extend(notes_of_large_file(given, runs));
    }
    if files.is_some() {
        notes.push("see 'diskproof files' for intervals and durable files".to_owned());
    }
    let directory = given.value("d").unwrap_or(".");
    Ok(BonnieLoad {
        head: LoadHead::new(LoadTarget::Existing(directory.into()), notes),
        measures_files: size_mib == 0 && files.is_some(),
        labels: RunLabels {
            machine: given.value("m").map(str::to_owned),
            concurrency: concurrency as u32,
            size_mib,
            chunk_bytes,
            seeks,
            seekers,
            seed: 0,
            is_quiet: given.has("q"),
            runs: runs as u32,
            csv: csv_format(given)?,
            files,
        },
        is_direct: given.has("D"),
        syncs_each: given.has("b"),
        seed: seed(given),
    })
}

/// The tests of many files; `None` where they do not run. Of several runs, bonnie++ has none.
fn many_files(
    given: &GivenArguments,
    size_mib: u64,
    runs: u64,
) -> Result<Option<FilesPlan>, String> {
    match (size_mib, given.value("n")) {
        (0, Some("0")) => Err("-s 0 -n 0 leaves no test".to_owned()),
        (_, Some("0")) => Ok(None),
        (0, _) if runs > 1 => Err("-x above 1 needs -s above 0; run it again".to_owned()),
        (_, _) if runs > 1 => Ok(None),
        (_, text) => {
            let files = read_files(text.unwrap_or_default(), sync_of_files(given))?;
            Ok(Some(files))
        }
    }
}

fn csv_format(given: &GivenArguments) -> Result<CsvFormat, String> {
    let formats = [
        ("1.98", CsvFormat::V198),
        ("1.96", CsvFormat::V196),
        ("1.03", CsvFormat::V103),
    ];
    given
        .choice("csv", &formats)
        .map_err(|other| format!("--csv {other}: use 1.03, 1.96 or 1.98"))
}

fn seed(given: &GivenArguments) -> Option<u64> {
    given.value("z")?.parse().ok()
}

/// The large file and its seeks, from -s and -r.
struct LargeFile {
    size_mib: u64,
    chunk_bytes: u32,
    seeks: u64,
    seekers: u32,
}

/// Reads the value of -s, such as `1800:64k:8192:5`: the size in MiB, the size of a chunk, the
/// number of seeks and that of the processes that seek. Each has a default, which for the size is
/// that of -r.
fn large_file(given: &GivenArguments, concurrency: u64) -> Result<LargeFile, String> {
    let memory_mib = in_range("r", given.value("r"), "", 0..=SIZE_MIB_MAX)?;
    let mut parts = ValueParts::new("s", given.value("s").unwrap_or_default());
    let size_mib = match parts.next_number("gt", 0..=SIZE_MIB_MAX)? {
        Some(mib) => mib,
        None => size_for_memory(memory_mib),
    };
    let chunk_bytes = parts
        .next_number("k", CHUNK_BYTES_MIN..=MIB)?
        .unwrap_or(u64::from(CHUNK_BYTES));
    if !chunk_bytes.is_power_of_two() {
        return Err(format!(
            "-s: the chunk of {chunk_bytes} bytes is not a power of two"
        ));
    }
    let seeks = parts
        .next_number("k", 1..=SEEKS_MAX)?
        .unwrap_or(SEEKS_DEFAULT);
    let seekers = parts
        .next_number("", 1..=SEEKERS_MAX)?
        .unwrap_or(SEEKERS_DEFAULT);
    let used_mib = memory_mib.unwrap_or(0);
    if size_mib > 0 && size_mib.saturating_mul(concurrency) < 2 * used_mib {
        return Err(format!(
            "File size should be double RAM for good results, RAM is {used_mib}M."
        ));
    }
    Ok(LargeFile {
        size_mib,
        chunk_bytes: chunk_bytes as u32,
        seeks,
        seekers: seekers as u32,
    })
}

/// The value of an option that has several numbers, as in `16:100k:10k:4`.
struct ValueParts<'a> {
    /// The name of the option.
    name: &'static str,
    parts: std::str::Split<'a, char>,
}

impl<'a> ValueParts<'a> {
    fn new(name: &'static str, value: &'a str) -> Self {
        Self {
            name,
            parts: value.split(':'),
        }
    }

    /// The next number; `None` where it is omitted.
    fn next_number(
        &mut self,
        units: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, String> {
        match self.parts.next() {
            None | Some("") => Ok(None),
            part => in_range(self.name, part, units, range),
        }
    }
}

/// A number as bonnie++ reads it: the digits that the text begins with, times 1024 for each place
/// of its last letter in `units`. Another letter counts for nothing, so 32M is 32.
fn in_range(
    name: &str,
    text: Option<&str>,
    units: &str,
    range: RangeInclusive<u64>,
) -> Result<Option<u64>, String> {
    let Some(text) = text else {
        return Ok(None);
    };
    let behind_digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - behind_digits.len()];
    let letter = text.chars().last().unwrap_or(' ').to_ascii_lowercase();
    let factor: u64 = match units.find(letter) {
        Some(place) => 1 << (10 * (place + 1)),
        None => 1,
    };
    let number = match digits.parse::<u64>() {
        Ok(number) => number.checked_mul(factor),
        Err(_) => None,
    };
    Ok(Some(command::in_range(name, text, number, &range)?))
}

/// The size of the file without -s, in MiB: twice the memory that -r names, rounded up to a GiB
/// from half of one on, as bonnie++ does.
fn size_for_memory(memory_mib: Option<u64>) -> u64 {
    let Some(memory_mib) = memory_mib else {
        return SIZE_MIB_DEFAULT;
    };
    let size_mib = SIZE_MIB_MIN.max(2 * memory_mib);
    if size_mib % ROUNDED_TO_MIB > ROUNDED_TO_MIB / 2 {
        size_mib.next_multiple_of(ROUNDED_TO_MIB)
    } else {
        size_mib
    }
}

fn notes_of_large_file(given: &GivenArguments, runs: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if runs > 1 && given.value("n") != Some("0") {
        let text = "the tests of many files do not run with -x above 1; their fields are empty";
        notes.push(text.to_owned());
    }
    if !given.has("f") {
        notes.push("the tests by character do not run; their fields are empty".to_owned());
    }
    let places = "rewrites and seeks write at places of their own (diskproof help drop-in)";
    notes.push(places.to_owned());
    notes
}

/// The syncs of new files and of their directories, which -b asks for.
fn sync_of_files(given: &GivenArguments) -> FileSync {
    if given.has("b") {
        FileSync::Both
    } else {
        FileSync::None
    }
}

/// Reads the value of -n, such as `16:100k:10k:4`: the number of files in units of 1024, their
/// largest and smallest size, and the number of directories. Each has a default.
fn read_files(text: &str, sync: FileSync) -> Result<FilesPlan, String> {
    let mut parts = ValueParts::new("n", text);
    let count = parts
        .next_number("m", 1..=FILES_MAX)?
        .unwrap_or(FILES_DEFAULT);
    let bytes_max = parts.next_number("kmg", 0..=FILE_BYTES_MAX)?.unwrap_or(0);
    let bytes_min = parts.next_number("kmg", 0..=bytes_max)?.unwrap_or(0);
    let directories = parts.next_number("k", 1..=DIRECTORIES_MAX)?.unwrap_or(1);
    if parts.parts.next().is_some() {
        return Err("-n: a chunk size is not supported; omit it".to_owned());
    }
    Ok(FilesPlan {
        count: count * FILES_UNIT,
        file_bytes_min: bytes_min,
        file_bytes_max: bytes_max,
        directories: directories as u32,
        threads: 1,
        sync,
        caches: FileCaches::DropOwnPages,
        orders: vec![FileOrder::Sequential, FileOrder::Random],
        rounds: 1,
        time_ns: FILES_NS,
    })
}

impl BonnieLoad {
    /// The workload of a test of the large file in one of several runs. The caller adds when it
    /// ends.
    fn large_file_workload(&self, name: &str, read_permille: u16, run: u32) -> Workload {
        let size = self.labels.size_mib * MIB;
        // Writes gather in the page cache until the fsync at the end, which is timed; what is only
        // read comes from the disk.
        // bonnie++ opens the file with O_DIRECT only to create it.
        let cache = match name {
            WRITE if self.is_direct => CachePolicy::Direct,
            WRITE | REWRITE => CachePolicy::Cached,
            _ => CachePolicy::Buffered,
        };
        Workload {
            streams: Streams::with_reads(read_permille),
            workers: self.labels.concurrency,
            span: span_of(u64::from(run) * size, size),
            // bonnie++ syncs each file that it closes; -b adds one after each writing seek.
            sync: if read_permille == 1000 {
                SyncPolicy::None
            } else if self.syncs_each && name == SEEKS {
                sync_every(1, SyncCall::Fsync)
            } else {
                SyncPolicy::AtEnd
            },
            cache,
            ..blocking_workload(
                &name_in_run(name, run),
                Access::Sequential,
                self.labels.chunk_bytes,
            )
        }
    }

    /// The workloads of the large file in a run, in the order of bonnie++'s tests.
    fn large_file_workloads(&self, run: u32) -> [Workload; LARGE_FILE_TESTS] {
        let bytes = self.labels.size_mib * MIB;
        [
            Workload {
                layout: Layout::Provides,
                stop: until_bytes(bytes),
                ..self.large_file_workload(WRITE, 0, run)
            },
            Workload {
                stop: until_bytes(2 * bytes),
                ..self.large_file_workload(REWRITE, REWRITE_READ_PERMILLE, run)
            },
            Workload {
                stop: until_bytes(bytes),
                ..self.large_file_workload(READ, 1000, run)
            },
            Workload {
                access: RANDOM,
                workers: self.labels.seekers * self.labels.concurrency,
                stop: until_bytes(self.labels.seeks * u64::from(self.labels.chunk_bytes)),
                ..self.large_file_workload(SEEKS, SEEKS_READ_PERMILLE, run)
            },
        ]
    }
}

impl DropInLoad for BonnieLoad {
    fn head(&self) -> &LoadHead {
        &self.head
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        if context.target.kind != TargetKind::Directory {
            let directory = self.head.path();
            let text = format!("Can't chdir to {directory}\n");
            return Err(DropInError::Target(text));
        }
        if self.measures_files
            && let Some(files) = &self.labels.files
        {
            let with_threads = FilesPlan {
                threads: self.labels.concurrency,
                ..files.clone()
            };
            return Ok(Plan {
                tasks: vec![Task::Files(with_threads)],
                ..DROP_IN.plan(context, None, Vec::new())
            });
        }
        let workloads = (0..self.labels.runs)
            .flat_map(|run| self.large_file_workloads(run))
            .collect();
        let bytes = u64::from(self.labels.runs) * self.labels.size_mib * MIB;
        let seeded = context.seeded(self.seed);
        Ok(DROP_IN.plan(&seeded, Some(bytes), workloads))
    }

    fn next(&self) -> Option<NextLoad> {
        if self.labels.files.is_none() || self.measures_files {
            return None;
        }
        let load = Self {
            head: LoadHead::new(self.head.target.clone(), Vec::new()),
            measures_files: true,
            ..self.clone()
        };
        Some(NextLoad::new(load, NextPrinter::SamePrinter))
    }

    fn printer(&self, plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        let labels = RunLabels {
            seed: plan.seed,
            ..self.labels.clone()
        };
        Box::new(TablePrinter::new(labels))
    }
}
