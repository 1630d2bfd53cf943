//! Arguments of bonnie++ to a plan.

use super::names::{
    CHUNK_BYTES, CsvFormat, EMULATES, FilesLabels, NAME, READ, REWRITE, RunLabels, SEEKS, WRITE,
    name_in_run,
};
use super::print::TablePrinter;
use crate::drop_in::Treatment::{self, Carried, Ignored, Refused};
use crate::drop_in::{DropInOption, Started, long_option};
use crate::error::DropInError;
use crate::getopt::{GivenArguments, OptionForms, parse};
use crate::load::{DropInLoad, LoadTarget, NextLoad, NextPrinter, PlanContext};
use crate::plan::plan_of;
use crate::printer::ToolPrinter;
use diskproof_model::files::{FileCaches, FileOrder, FileSync, FilesPlan};
use diskproof_model::plan::{
    Access, CachePolicy, Distribution, EngineChoice, EngineKind, Layout, Plan, Span, Stop,
    SyncCall, SyncPolicy, Workload,
};
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::path::PathBuf;

const MIB: u64 = 1 << 20;
/// bonnie++ needs twice the memory, because it does not empty the page cache.
const SIZE_MIB: u64 = 1024;
const SEEKS_DEFAULT: u64 = 8192;
const SEEKERS: u32 = 5;
const CONCURRENCY_MAX: u64 = 64;
const RUNS_MAX: u64 = 100;
/// In units of 1024.
const FILES_MAX: u64 = 9765;
const FILE_BYTES_MAX: u64 = 64 << 20;
const DIRECTORIES_MAX: u64 = 10_000;
/// bonnie++ has no limit of time.
const FILES_NS: u64 = 86_400 * 1_000_000_000;

const USAGE: &str = "\
usage:
bonnie++ [-d scratch-dir] [-c concurrency] [-s size(MiB)[:chunk-size(b)[:seeks[:seekers]]]]
      [-m machine-name] [-r ram-size-in-MiB] [-n number-of-files(*1024)] [-q]
      [-f] [-b] [-D] [-z seed]
";

const fn option(
    short: &'static str,
    value: &'static str,
    help: &'static str,
    treatment: Treatment,
) -> DropInOption {
    DropInOption {
        short,
        long: "",
        value,
        help,
        treatment,
    }
}

const NO_USER: Treatment = Ignored("the scratch file has no name that another user could see");
const ALONE: Treatment = Refused("use -c for concurrent copies");

pub(super) const OPTIONS: &[DropInOption] = &[
    option("-d", "directory", "measure this directory (.)", Carried),
    option(
        "-c",
        "concurrency",
        "number of concurrent copies of each test (1)",
        Carried,
    ),
    option(
        "-s",
        "MiB:chunk:seeks:seekers",
        "file (1024, or twice -r), bytes of a request (8192), seeks (8192), seekers (5)",
        Carried,
    ),
    option(
        "-n",
        "files",
        "files in units of 1024 (16; 0: none), and max:min:dirs of their sizes in bytes",
        Carried,
    ),
    option("-m", "name", "name of the machine in the report", Carried),
    option("-r", "MiB", "memory; the file is twice as large", Carried),
    option(
        "-x",
        "runs",
        "number of runs (1); the CSV lines below a header, no table",
        Carried,
    ),
    option("-u", "user", "run as this user", NO_USER),
    option("-g", "group", "run as this group", NO_USER),
    option(
        "-q",
        "",
        "the CSV line on stdout, the table on stderr",
        Carried,
    ),
    option(
        "-f",
        "[size]",
        "skip the character tests, which never run here",
        Carried,
    ),
    option("-b", "", "fsync after each write", Carried),
    option("-p", "processes", "serve semaphores", ALONE),
    option("-y", "mode", "wait for others", ALONE),
    option("-z", "seed", "seed of the random offsets", Carried),
    option(
        "-Z",
        "file",
        "random data",
        Ignored("the data is always random"),
    ),
    option("-D", "", "direct I/O", Carried),
    long_option(
        "csv",
        "version",
        "format of the CSV line: 1.03, 1.96 or 1.98 (1.98); an option of diskproof",
        Carried,
    ),
];

pub(super) const DIFFERENCES: &[&str] = &[
    "The character tests do not run. Their fields stay empty.",
    "The file tests follow those of the large file and are a separate run in the history; with -x \
     above 1 they do not run. A read is a stat if the files are empty, and otherwise an open, a \
     read and a close.",
    "Every test has a figure; bonnie++ prints +++++ if a test takes less than half a second.",
    "Block reads and seeks drop the file from the page cache as they proceed, so the file need not \
     be twice as large as the memory; it has 1 GiB without -s and -r. Writes and rewrites stay in \
     the page cache until the timed fsync, as in the tool. If the file fits into memory, a rewrite \
     reads it from there.",
    "A rewrite alternates reads and writes at two positions that advance together, instead of \
     writing back the block that it has read. A tenth of the seeks write, also without writing \
     back.",
    "-D also applies to reads. -c runs this many copies of each test concurrently.",
    "Each run of -x writes a different part of one scratch file, so every run allocates space, and \
     the file needs the space of all runs. The header of -x names all 50 fields; that of 2.00a \
     names 48.",
    "The CSV line has the chunk size, which 2.00a leaves empty, and the 50 fields of 1.98.",
];

/// What a run measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BonniePart {
    LargeFile,
    ManyFiles(FilesLabels),
}

/// What the arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BonnieLoad {
    part: BonniePart,
    directory: String,
    labels: RunLabels,
    is_direct: bool,
    syncs_each: bool,
    has_seed: bool,
    notes: Vec<String>,
}

/// Reads the arguments.
pub(super) fn start(arguments: &[String]) -> Result<Started, DropInError> {
    if arguments.first().is_some_and(|word| word == "--version") {
        return Ok(Started::version(EMULATES));
    }
    let usage = |text: String| DropInError::Usage(format!("bonnie++: {text}\n{USAGE}"));
    let given = parse(OPTIONS, arguments, OptionForms::Long).map_err(usage)?;
    Ok(Started::Load(Box::new(read(given).map_err(usage)?)))
}

fn read(given: GivenArguments) -> Result<BonnieLoad, String> {
    if let Some(operand) = given.operands.first() {
        return Err(format!("unexpected argument {operand}"));
    }
    let number = |name: &str, text: &str, most: u64| {
        let number = scaled(text).filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| format!("-{name} {text}: use a number from 1 to {most}"))
    };
    let runs = given
        .value("x")
        .map_or(Ok(1), |text| number("x", text, RUNS_MAX))?;
    let memory_mib = match given.value("r") {
        None | Some("0") => None,
        Some(text) => Some(number("r", text, 1 << 30)?),
    };
    let sizes = given.value("s").unwrap_or_default();
    let mut parts = sizes.split(':');
    let size_mib = match parts.next().filter(|text| !text.is_empty()) {
        None => memory_mib.map_or(SIZE_MIB, |mib| 2 * mib),
        Some("0") => 0,
        Some(text) => megabytes(text).ok_or_else(|| format!("-s {text}: not a size in MiB"))?,
    };
    let files = files_wanted(given.value("n"), size_mib, runs)?;
    let mut part = |default: u64, most: u64| match parts.next().filter(|text| !text.is_empty()) {
        None => Ok(default),
        Some(text) => number("s", text, most),
    };
    let chunk_bytes = part(u64::from(CHUNK_BYTES), MIB)? as u32;
    let seeks = part(SEEKS_DEFAULT, 1 << 40)?;
    let seekers = part(u64::from(SEEKERS), 1024)? as u32;
    let concurrency = given
        .value("c")
        .map_or(Ok(1), |text| number("c", text, CONCURRENCY_MAX))?;
    let csv = csv_format(given.value("csv"))?;
    let mut notes = given.notes.clone();
    if size_mib > 0 {
        notes.extend(notes_of_large_file(&given, runs));
    }
    if files.is_some() {
        notes.push("see 'diskproof files' for intervals and durable files".to_owned());
    }
    let seed = given.value("z").and_then(|text| text.parse().ok());
    Ok(BonnieLoad {
        part: match (size_mib, files) {
            (0, Some(files)) => BonniePart::ManyFiles(files),
            _ => BonniePart::LargeFile,
        },
        directory: given.value("d").unwrap_or(".").to_owned(),
        labels: RunLabels {
            machine: given.value("m").map(str::to_owned),
            concurrency: concurrency as u32,
            size_mib,
            chunk_bytes,
            seeks,
            seekers,
            seed: seed.unwrap_or(0),
            is_quiet: given.has("q"),
            runs: runs as u32,
            csv,
            files,
        },
        is_direct: given.has("D"),
        syncs_each: given.has("b"),
        has_seed: seed.is_some(),
        notes,
    })
}

fn files_wanted(
    text: Option<&str>,
    size_mib: u64,
    runs: u64,
) -> Result<Option<FilesLabels>, String> {
    match (size_mib, text) {
        (0, Some("0")) => Err("-s 0 -n 0 leaves no test".to_owned()),
        (_, Some("0")) => Ok(None),
        (0, _) if runs > 1 => Err("-x above 1 needs -s above 0; run it again".to_owned()),
        (_, _) if runs > 1 => Ok(None),
        (_, text) => files_of(text.unwrap_or("16")).map(Some),
    }
}

fn csv_format(text: Option<&str>) -> Result<CsvFormat, String> {
    match text {
        Some("1.03") => Ok(CsvFormat::V103),
        Some("1.96") => Ok(CsvFormat::V196),
        None | Some("1.98") => Ok(CsvFormat::V198),
        Some(other) => Err(format!("--csv {other}: use 1.03, 1.96 or 1.98")),
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
    notes.push("rewrites and seeks write at places of their own (docs/drop-in.md)".to_owned());
    notes
}

/// `16`, `16:100k:10k:4`: 1024 files each, sizes, directories.
fn files_of(text: &str) -> Result<FilesLabels, String> {
    let mut parts = text.split(':');
    let mut part = |default: u64, range: std::ops::RangeInclusive<u64>| {
        let given = parts.next().filter(|text| !text.is_empty());
        let number = given.map_or(Some(default), scaled);
        let number = number.filter(|number| range.contains(number));
        number.ok_or_else(|| {
            format!(
                "-n {text}: use up to {} as in files:max:min:dirs",
                range.end()
            )
        })
    };
    let count = part(16, 1..=FILES_MAX)?;
    let bytes_max = part(0, 0..=FILE_BYTES_MAX)?;
    let bytes_min = part(0, 0..=bytes_max)?;
    let directories = part(1, 1..=DIRECTORIES_MAX)? as u32;
    match parts.next() {
        None => Ok(FilesLabels {
            count,
            bytes_max,
            bytes_min,
            directories,
        }),
        Some(_) => Err("-n: a chunk size is not supported; omit it".to_owned()),
    }
}

/// A number, perhaps with `k`.
fn scaled(text: &str) -> Option<u64> {
    match text.strip_suffix(['k', 'K']) {
        Some(number) => number.parse::<u64>().ok()?.checked_mul(1024),
        None => text.parse().ok(),
    }
}

/// A number of MiB, perhaps with `g`.
fn megabytes(text: &str) -> Option<u64> {
    let mib = match text.strip_suffix(['g', 'G']) {
        Some(number) => number.parse::<u64>().ok()?.checked_mul(1024)?,
        None => text.trim_end_matches(['m', 'M']).parse().ok()?,
    };
    (1..=1 << 30).contains(&mib).then_some(mib)
}

impl BonnieLoad {
    fn test(&self, name: &str, read_permille: u16, run: u32) -> Workload {
        let writes = read_permille < 1000;
        Workload {
            read_permille,
            access: Access::Sequential,
            block_bytes: self.labels.chunk_bytes,
            workers: self.labels.concurrency,
            span: Span {
                start_bytes: u64::from(run) * self.labels.size_mib * MIB,
                length_bytes: Some(self.labels.size_mib * MIB),
            },
            sync: match (writes, self.syncs_each) {
                (false, _) => SyncPolicy::None,
                (true, false) => SyncPolicy::AtEnd,
                (true, true) => SyncPolicy::Every {
                    writes: 1,
                    call: SyncCall::Fsync,
                },
            },
            // Writes gather in the page cache until the fsync at the end, which is timed; what is
            // only read comes from the disk.
            cache: match (self.is_direct, name) {
                (true, _) => CachePolicy::Direct,
                (false, WRITE | REWRITE) => CachePolicy::Cached,
                (false, _) => CachePolicy::Buffered,
            },
            engine: EngineChoice::Fixed(EngineKind::Sync),
            ..Workload::named(&name_in_run(name, run))
        }
    }

    fn files_plan(&self, files: FilesLabels) -> FilesPlan {
        FilesPlan {
            count: files.count * 1024,
            file_bytes_min: files.bytes_min,
            file_bytes_max: files.bytes_max,
            directories: files.directories,
            threads: self.labels.concurrency,
            sync: match self.syncs_each {
                true => FileSync::Both,
                false => FileSync::None,
            },
            caches: FileCaches::DropOwnPages,
            orders: vec![FileOrder::Sequential, FileOrder::Random],
            rounds: 1,
            time_ns: FILES_NS,
        }
    }

    /// The tests of a run, in order.
    fn tests(&self, run: u32) -> Vec<Workload> {
        let bytes = self.labels.size_mib * MIB;
        let until = |bytes| Stop {
            bytes: Some(bytes),
            ..Stop::default()
        };
        vec![
            Workload {
                layout: Layout::Provides,
                stop: until(bytes),
                ..self.test(WRITE, 0, run)
            },
            Workload {
                stop: until(2 * bytes),
                ..self.test(REWRITE, 500, run)
            },
            Workload {
                stop: until(bytes),
                ..self.test(READ, 1000, run)
            },
            Workload {
                access: Access::Random {
                    distribution: Distribution::Uniform,
                },
                workers: self.labels.seekers * self.labels.concurrency,
                sync: SyncPolicy::None,
                stop: until(self.labels.seeks * u64::from(self.labels.chunk_bytes)),
                ..self.test(SEEKS, 900, run)
            },
        ]
    }
}

impl DropInLoad for BonnieLoad {
    fn target(&self) -> LoadTarget {
        LoadTarget::Existing(PathBuf::from(&self.directory))
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        if context.target.kind != TargetKind::Directory {
            let text = format!("Can't chdir to {}\n", self.directory);
            return Err(DropInError::Target(text));
        }
        if let BonniePart::ManyFiles(files) = self.part {
            return Ok(Plan {
                files: Some(self.files_plan(files)),
                ..plan_of(NAME, context, None, Vec::new())
            });
        }
        let mut workloads = Vec::new();
        for run in 0..self.labels.runs {
            workloads.extend(self.tests(run));
        }
        let bytes = u64::from(self.labels.runs) * self.labels.size_mib * MIB;
        let seed = match self.has_seed {
            true => self.labels.seed,
            false => context.seed,
        };
        let context = PlanContext { seed, ..*context };
        Ok(plan_of(NAME, &context, Some(bytes), workloads))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn next(&self) -> Option<NextLoad> {
        let files = self.labels.files?;
        let load = Self {
            part: BonniePart::ManyFiles(files),
            notes: Vec::new(),
            ..self.clone()
        };
        (self.part == BonniePart::LargeFile).then_some(NextLoad {
            load: Box::new(load),
            printer: NextPrinter::SamePrinter,
        })
    }

    fn printer(&self, plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        let labels = RunLabels {
            seed: plan.seed,
            ..self.labels.clone()
        };
        Box::new(TablePrinter::new(labels))
    }
}
