//! Arguments of pgiosim to a plan.

use super::options::{EMULATES, NAME, OPTIONS};
use super::print::{BlocksSoFar, IntervalPrinter};
use crate::drop_in::Started;
use crate::error::DropInError;
use crate::getopt::{GivenArguments, OptionForms, parse};
use crate::load::{DropInLoad, LoadTarget, PlanContext};
use crate::plan::plan_of;
use crate::printer::{ToolPrinter, ToolText};
use diskproof_model::plan::{
    Access, CachePolicy, Distribution, EngineChoice, EngineKind, Plan, Span, Stop, SyncCall,
    SyncPolicy, Workload,
};
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::fmt::Write as _;
use std::path::PathBuf;

const BLOCK_BYTES: u32 = 8192;
const THREADS_MAX: u32 = 1024;
const FILES_MAX: usize = 64;
/// 8 EiB.
const BLOCKS_MAX: u64 = 1 << 50;

const USAGE: &str = "\
usage: pgiosim -b blocks (8kb) or xxxM xxxK xxxG
\t-c - drop the files from the page cache first
\t-s - seq scan
\t-y - fsync after writes
\t-w percentage - we will rewrite this percentage of blocks
\t-t threads - threads that read
\t-o startblock - start at block startblock
\t-a seconds(float) alert when a write stalls longer than n seconds
\t file1 ... file2 - files to use as input
";

/// What the arguments say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScanLoad {
    files: Vec<PathBuf>,
    blocks: u64,
    is_sequential: bool,
    drops_cache: bool,
    write_percent: Option<u32>,
    syncs: bool,
    stall_seconds: Option<f64>,
    threads: u32,
    start_block: u64,
    notes: Vec<String>,
}

/// Reads the arguments.
pub(super) fn start(arguments: &[String]) -> Result<Started, DropInError> {
    if arguments.first().is_some_and(|word| word == "--version") {
        return Ok(Started::version(EMULATES));
    }
    let usage = |text: String| DropInError::Usage(format!("pgiosim: {text}\n{USAGE}"));
    let given = parse(OPTIONS, arguments, OptionForms::Long).map_err(usage)?;
    if given.has("h") {
        return Ok(Started::Text(ToolText {
            stdout: USAGE.to_owned(),
            stderr: String::new(),
        }));
    }
    Ok(Started::Load(Box::new(read(&given).map_err(usage)?)))
}

fn read(given: &GivenArguments) -> Result<ScanLoad, String> {
    let files: Vec<PathBuf> = given.operands.iter().map(PathBuf::from).collect();
    if files.is_empty() {
        return Err("name a file".to_owned());
    }
    if files.len() > FILES_MAX {
        return Err(format!("more than {FILES_MAX} files"));
    }
    let blocks = given.value("b").ok_or("-b is missing")?;
    let blocks = blocks_of(blocks).filter(|blocks| *blocks > 0);
    let blocks = blocks.ok_or("-b: use a number of blocks, or of bytes with k, m or g")?;
    let number = |name: &str, most: u32| match given.value(name) {
        None => Ok(None),
        Some(text) => match text.parse::<u32>() {
            Ok(number) if number <= most => Ok(Some(number)),
            _ => Err(format!("-{name} {text}: use a number up to {most}")),
        },
    };
    let stall_seconds = match given.value("a") {
        None => None,
        Some(text) => {
            let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
            Some(seconds.ok_or_else(|| format!("-a {text}: not a number of seconds"))?)
        }
    };
    let start_block = match given.value("o") {
        None => 0,
        Some(text) => blocks_of(text).ok_or_else(|| format!("-o {text}: not a block"))?,
    };
    let write_percent = number("w", 100)?.filter(|percent| *percent > 0);
    let threads = number("t", THREADS_MAX)?.unwrap_or(1).max(1);
    let mut load = ScanLoad {
        files,
        blocks,
        is_sequential: given.has("s"),
        drops_cache: given.has("c"),
        write_percent,
        syncs: given.has("y"),
        stall_seconds,
        threads,
        start_block,
        notes: given.notes.clone(),
    };
    load.notes.extend(notes(&load));
    Ok(load)
}

fn notes(load: &ScanLoad) -> Vec<String> {
    let mut notes = Vec::new();
    if !load.drops_cache {
        notes.push("the page cache may answer; use -c to drop the files from it first".to_owned());
    }
    if load.write_percent.is_some() {
        notes.push("writes go to other blocks than reads, with random data".to_owned());
    }
    if load.files.len() > 1 {
        notes.push(format!(
            "each file has its own threads: {} per file",
            load.threads_of_a_file()
        ));
    }
    notes
}

/// Blocks of 8 KiB: a number of them, or of bytes with a unit.
fn blocks_of(text: &str) -> Option<u64> {
    let (digits, numerator, denominator) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1, 8),
        b'm' | b'M' => (&text[..text.len() - 1], 128, 1),
        b'g' | b'G' => (&text[..text.len() - 1], 131_072, 1),
        _ => (text, 1, 1),
    };
    let number: u64 = digits.parse().ok()?;
    let blocks = number.checked_mul(numerator)? / denominator;
    Some(blocks).filter(|blocks| *blocks <= BLOCKS_MAX)
}

impl ScanLoad {
    fn threads_of_a_file(&self) -> u32 {
        self.threads.div_ceil(self.files.len() as u32)
    }

    /// For each file.
    fn workload(&self) -> Workload {
        let percent = u64::from(self.write_percent.unwrap_or(0));
        let blocks = self.blocks.div_ceil(self.files.len() as u64);
        Workload {
            read_permille: (100_000.0 / (100 + percent) as f64).round() as u16,
            access: match self.is_sequential {
                true => Access::Sequential,
                false => Access::Random {
                    distribution: Distribution::Uniform,
                },
            },
            block_bytes: BLOCK_BYTES,
            workers: self.threads_of_a_file(),
            span: Span {
                start_bytes: self.start_block * u64::from(BLOCK_BYTES),
                length_bytes: None,
            },
            stop: Stop {
                ops: Some(blocks + blocks * percent / 100),
                ..Stop::default()
            },
            sync: match (self.write_percent, self.syncs) {
                (Some(_), true) => SyncPolicy::Every {
                    writes: 1,
                    call: SyncCall::Fsync,
                },
                _ => SyncPolicy::None,
            },
            cache: CachePolicy::Cached,
            drops_cache_first: self.drops_cache,
            engine: EngineChoice::Fixed(EngineKind::Sync),
            ..Workload::named("blocks")
        }
    }

    fn head(&self) -> String {
        let mut text = String::new();
        if self.is_sequential {
            text.push_str("Seq Scan\n");
        }
        if self.syncs {
            text.push_str("fsync after each write\n");
        }
        if let Some(percent) = self.write_percent {
            let _ = writeln!(text, "Write Mode: {percent}%");
        }
        if let Some(seconds) = self.stall_seconds {
            let _ = writeln!(text, "Stallcheck at {seconds:.6}");
        }
        if self.start_block > 0 {
            let _ = writeln!(text, "Set start block {}", self.start_block);
        }
        let _ = writeln!(
            text,
            "Arg: {}\nRead {} blocks",
            self.files.len(),
            self.blocks
        );
        for file in &self.files {
            let _ = writeln!(text, "Added {}", file.display());
        }
        text
    }
}

impl DropInLoad for ScanLoad {
    fn target(&self) -> LoadTarget {
        LoadTarget::Existing(self.files[0].clone())
    }

    fn further_targets(&self) -> &[PathBuf] {
        &self.files[1..]
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        if context.target.kind == TargetKind::Directory {
            let path = &context.target.path;
            let text = format!("pgiosim: {path}: a directory; name the files in it\n");
            return Err(DropInError::Target(text));
        }
        Ok(plan_of(NAME, context, None, vec![self.workload()]))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn writes(&self) -> bool {
        self.write_percent.is_some()
    }

    fn printer(&self, _plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(IntervalPrinter {
            head: self.head(),
            files: self.files.clone(),
            blocks: self.blocks,
            stall_ns: self.stall_seconds.map(|seconds| (seconds * 1e9) as u64),
            reported: BlocksSoFar::default(),
        })
    }
}
