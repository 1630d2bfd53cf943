//! pgiosim 0.5: random blocks of files, as an index scan reads them, from the arguments to the
//! lines, one for each 10 s.

#[cfg(test)]
mod tests;

use crate::command::{CommandLine, GivenArguments, scaled};
use crate::drop_in::{DropIn, Started};
use crate::figures::{as_seconds, per_second, timed_writes};
use crate::load::{DropInLoad, LoadHead, LoadTarget, PlanContext};
use crate::plan::{RANDOM, THREADS_MAX, blocking_workload, sync_every};
use crate::printer::{DropInError, ResultsSoFar, ToolPrinter, ToolResult, ToolText};
use crate::tool_totals::OpsSoFar;
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::{
    Access, CachePolicy, Plan, Span, Stop, SyncCall, SyncPolicy, Workload,
};
use diskproof_model::stream::Streams;
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::LazyLock;

/// The entry of pgiosim in [`crate::drop_ins`].
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("pgiosim.txt"), start));

/// PostgreSQL's page, which pgiosim reads.
const BLOCK_BYTES: u32 = 8192;
/// Time between two lines of pgiosim.
const INTERVAL_NS: u64 = 10_000_000_000;
/// The most files that are accepted here: each is a target with threads of its own. Chosen.
const FILES_MAX: usize = 64;
/// The most blocks of a file: 8 EiB, beyond which an offset has no 63 bits.
const BLOCKS_MAX: u64 = 1 << 50;

/// The load that a command line requests.
#[derive(Debug, Clone, PartialEq)]
struct ScanLoad {
    head: LoadHead,
    files: Vec<PathBuf>,
    /// The blocks to read, of all files together (-b).
    blocks: u64,
    /// True if blocks are read in order (-s).
    is_sequential: bool,
    /// True if the files are dropped from the page cache first (-c).
    drops_cache: bool,
    /// Writes, in percent of the reads (-w); `None` without writes.
    write_percent: Option<u64>,
    /// True if each write is synced (-y).
    syncs_writes: bool,
    /// Writes that take longer are printed (-a).
    stall_seconds: Option<f64>,
    /// The threads of all files together (-t).
    threads: u32,
    /// The first block of each file that is read (-o).
    start_block: u64,
}

/// Turns the arguments into a load, or into the text or error that pgiosim prints.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let command = CommandLine::with_help_after_errors(DROP_IN.usage);
    DROP_IN.start_load(arguments, command, read)
}

fn read(given: &GivenArguments) -> Result<ScanLoad, String> {
    let files: Vec<PathBuf> = given.operands.iter().map(PathBuf::from).collect();
    if files.is_empty() {
        return Err("name a file".to_owned());
    }
    if files.len() > FILES_MAX {
        return Err(format!("more than {FILES_MAX} files"));
    }
    let blocks = read_blocks(given)?;
    let stall_seconds = given.read("a", read_stall_seconds)?;
    let start_block = given.read("o", read_start_block)?;
    let write_percent = match given.number("w", 0..=100)? {
        Some(0) => None,
        percent => percent,
    };
    let threads = given.number("t", 0..=THREADS_MAX)?.unwrap_or(1).max(1);
    let target = LoadTarget::Existing(files[0].clone());
    let mut load = ScanLoad {
        head: LoadHead {
            further_targets: files[1..].to_vec(),
            writes_target: write_percent.is_some(),
            ..LoadHead::new(target, given.notes.clone())
        },
        files,
        blocks,
        is_sequential: given.has("s"),
        drops_cache: given.has("c"),
        write_percent,
        syncs_writes: given.has("y"),
        stall_seconds,
        threads: threads as u32,
        start_block: start_block.unwrap_or(0),
    };
    load.add_notes();
    Ok(load)
}

fn read_blocks(given: &GivenArguments) -> Result<u64, String> {
    let Some(text) = given.value("b") else {
        return Err("-b is missing".to_owned());
    };
    match parse_blocks(text) {
        None | Some(0) => Err("-b: use a number of blocks, or of bytes with k, m or g".to_owned()),
        Some(blocks) => Ok(blocks),
    }
}

fn read_stall_seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 => Ok(seconds),
        _ => Err(format!("-a {text}: not a number of seconds")),
    }
}

fn read_start_block(text: &str) -> Result<u64, String> {
    match parse_blocks(text) {
        Some(block) => Ok(block),
        None => Err(format!("-o {text}: not a block")),
    }
}

/// Blocks of 8 KiB: a number of them, or of bytes with a unit.
fn parse_blocks(text: &str) -> Option<u64> {
    let block = u64::from(BLOCK_BYTES);
    let units = [("", block), ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30)];
    let blocks = scaled(text, &units)? / block;
    if blocks > BLOCKS_MAX {
        return None;
    }
    Some(blocks)
}

impl ScanLoad {
    fn add_notes(&mut self) {
        let threads = self.threads_per_file();
        let notes = &mut self.head.notes;
        if !self.drops_cache {
            let text = "the page cache may answer; use -c to drop the files from it first";
            notes.push(text.to_owned());
        }
        if self.write_percent.is_some() {
            notes.push("writes go to other blocks than reads, with random data".to_owned());
        }
        if self.files.len() > 1 {
            notes.push(format!("each file has its own threads: {threads} per file"));
        }
    }

    fn threads_per_file(&self) -> u32 {
        self.threads.div_ceil(self.files.len() as u32)
    }

    /// The workload of each file.
    fn workload(&self) -> Workload {
        let percent = self.write_percent.unwrap_or(0);
        // For 100 reads there are so many percent of writes.
        let read_permille = (1000.0 * 100.0 / (100 + percent) as f64).round() as u16;
        let blocks = self.blocks.div_ceil(self.files.len() as u64);
        let access = if self.is_sequential {
            Access::Sequential
        } else {
            RANDOM
        };
        Workload {
            streams: Streams::with_reads(read_permille),
            workers: self.threads_per_file(),
            span: Span {
                start_bytes: self.start_block * u64::from(BLOCK_BYTES),
                length_bytes: None,
            },
            stop: Stop {
                ops: Some(blocks + blocks * percent / 100),
                ..Stop::default()
            },
            sync: if self.write_percent.is_some() && self.syncs_writes {
                sync_every(1, SyncCall::Fsync)
            } else {
                SyncPolicy::None
            },
            cache: CachePolicy::Cached,
            drops_cache_first: self.drops_cache,
            ..blocking_workload("blocks", access, BLOCK_BYTES)
        }
    }

    /// The lines before the first interval: the settings, and the files.
    fn settings_text(&self) -> String {
        let mut text = String::new();
        if self.is_sequential {
            text.push_str("Seq Scan\n");
        }
        if self.syncs_writes {
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
        let (files, blocks) = (self.files.len(), self.blocks);
        let _ = writeln!(text, "Arg: {files}\nRead {blocks} blocks");
        for file in &self.files {
            let _ = writeln!(text, "Added {}", file.display());
        }
        text
    }
}

impl DropInLoad for ScanLoad {
    fn head(&self) -> &LoadHead {
        &self.head
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        if context.target.kind == TargetKind::Directory {
            let path = &context.target.path;
            let text = format!("{path}: a directory; name the files in it");
            return Err(DROP_IN.target_error(&text));
        }
        Ok(DROP_IN.plan(context, None, vec![self.workload()]))
    }

    fn printer(&self, _plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(IntervalPrinter {
            load: self.clone(),
            reported: OpsSoFar::default(),
        })
    }
}

/// Prints the head first, then the lines.
#[derive(Debug)]
struct IntervalPrinter {
    load: ScanLoad,
    /// Operations that the lines so far have shown.
    reported: OpsSoFar,
}

impl IntervalPrinter {
    /// The writes that took too long, by file and time, each with its fsync.
    fn stalls(&self, result: &ToolResult<'_>) -> String {
        let mut text = String::new();
        let Some(limit_seconds) = self.load.stall_seconds else {
            return text;
        };
        let limit_ns = (limit_seconds * 1e9) as u64;
        for measurement in result.measurements {
            let name = match self.load.files.get(measurement.target) {
                Some(path) => path.display().to_string(),
                None => String::new(),
            };
            let Some(writes) = timed_writes(measurement) else {
                continue;
            };
            for cell in &writes.series.cells {
                if cell.latency_max_ns > limit_ns {
                    let time = as_seconds(cell.latency_max_ns);
                    let _ = writeln!(text, "**WRITE STALL: {name} {time:.4}");
                }
            }
        }
        text
    }

    /// The line of the interval from the last line to this time.
    fn interval_line(&mut self, measurements: &[Measurement], end_ns: u64) -> String {
        let now = OpsSoFar::up_to(measurements, end_ns);
        let before = &self.reported;
        let read = now.reads.saturating_sub(before.reads);
        let written = now.writes.saturating_sub(before.writes);
        let rate = per_second(read as f64, end_ns.saturating_sub(before.at_ns).max(1));
        let line = format!(
            "{:3.2}%, {read:6} read, {written:6} written, {:7.2}kB/sec {rate:7.2} iops\n",
            now.reads as f64 / self.load.blocks as f64 * 100.0,
            rate * f64::from(BLOCK_BYTES) / 1024.0
        );
        self.reported = now;
        line
    }
}

impl ToolPrinter for IntervalPrinter {
    fn begin(&mut self) -> String {
        self.load.settings_text()
    }

    fn interval_ns(&self) -> Option<u64> {
        Some(INTERVAL_NS)
    }

    fn so_far(&mut self, results: &ResultsSoFar<'_>) -> String {
        self.interval_line(results.measurements, results.elapsed_ns)
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let mut stdout = self.stalls(result);
        let wall_ns = result
            .measurements
            .iter()
            .map(|measurement| measurement.wall_ns)
            .max()
            .unwrap_or(0);
        if wall_ns > self.reported.at_ns {
            stdout.push_str(&self.interval_line(result.measurements, wall_ns));
        }
        if result.interrupted {
            stdout.push_str("CTRL-C Interrupt - stopping\n");
        }
        ToolText::out(stdout)
    }
}
