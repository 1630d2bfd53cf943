//! zcav of the bonnie++ suite, from the arguments to a survey and its lines, one for each block.

#[cfg(test)]
mod tests;

use crate::c_format::local_time;
use crate::command::{CommandLine, GivenArguments};
use crate::drop_in::{DropIn, Started};
use crate::load::{DropInLoad, LoadHead, LoadTarget, NextLoad, NextPrinter, PlanContext};
use crate::plan::span_of;
use crate::printer::{DropInError, ToolFile, ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{EngineChoice, Plan, Task};
use diskproof_model::surface::{Coverage, CurvePlan, SurfaceMeasurement, Survey};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::counted;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The entry of zcav in [`crate::drop_ins`].
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("zcav.txt"), start));

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// zcav's default of -b.
const BLOCK_MIB: u64 = 512;
/// The largest block that is accepted here, a TiB.
const BLOCK_MIB_MAX: u64 = 1 << 20;
/// The most passes that are made here. Chosen.
const LOOPS_MAX: u64 = 100;
/// zcav's first line.
const HEADING: &str = "#block offset (GiB), MiB/s, time\n";
/// zcav's exit code where no block fits into a device.
const TOO_SMALL_CODE: u8 = 2;
/// The most points that a survey keeps.
const POINTS_MAX: u64 = 100_000;

/// A device or a file that is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Device {
    path: String,
    /// The file that its lines go to, in place of stdout.
    log: Option<PathBuf>,
}

/// The load that a command line requests.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BlocksLoad {
    head: LoadHead,
    /// The devices from this one on.
    devices: Vec<Device>,
    block_bytes: u64,
    /// Passes over each device.
    loops: u32,
    /// The passes over this device from this one on.
    loops_left: u32,
    start_bytes: u64,
    end_bytes: Option<u64>,
    /// One of so many blocks is read (-s); 1 reads all.
    skip: u64,
}

/// Turns the arguments into a load, or into the text or error that zcav prints.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let command = CommandLine::with_help_after_errors(DROP_IN.usage);
    DROP_IN.start_load(arguments, command, read)
}

fn read(given: &GivenArguments) -> Result<BlocksLoad, String> {
    let devices = read_devices(given)?;
    let mut notes = given.notes.clone();
    let block_mib = read_block_mib(given, &mut notes)?;
    notes.push("requests bypass the page cache; the lines come at the end".to_owned());
    if devices.len() > 1 {
        notes.push("the devices are measured one after the other, not together".to_owned());
    }
    let block_bytes = block_mib * MIB;
    let mut start_bytes = 0;
    let mut end_bytes = None;
    if let Some(text) = given.value("r") {
        let (start, end) = text.split_once(':').unwrap_or(("0", text));
        let (start_mib, end_mib) = (mib("-r", start)?, mib("-r", end)?);
        start_bytes = start_mib / block_mib * block_bytes;
        end_bytes = Some(end_mib / block_mib * block_bytes);
    }
    let loops = given.number("c", 1..=LOOPS_MAX)?.unwrap_or(1) as u32;
    let target = LoadTarget::Existing(PathBuf::from(&devices[0].path));
    Ok(BlocksLoad {
        head: LoadHead {
            writes_target: given.has("w"),
            ..LoadHead::new(target, notes)
        },
        devices,
        block_bytes,
        loops,
        loops_left: loops,
        start_bytes,
        end_bytes,
        skip: given.number("s", 2..=20)?.unwrap_or(1),
    })
}

/// Reads the value of -b, such as `512` or `512:1`: the size of a block, and that of a chunk, which
/// has no effect here.
fn read_block_mib(given: &GivenArguments, notes: &mut Vec<String>) -> Result<u64, String> {
    let Some(text) = given.value("b") else {
        return Ok(BLOCK_MIB);
    };
    let block_mib = match text.split_once(':') {
        Some((block, chunk)) => {
            mib("-b", chunk)?;
            notes.push("the chunk size has no effect: the engine chooses it".to_owned());
            mib("-b", block)?
        }
        None => mib("-b", text)?,
    };
    if (1..=BLOCK_MIB_MAX).contains(&block_mib) {
        Ok(block_mib)
    } else {
        Err(format!("-b {block_mib}: use from 1 to {BLOCK_MIB_MAX} MiB"))
    }
}

/// Files in order. As in zcav, a log belongs to the file that follows it.
fn read_devices(given: &GivenArguments) -> Result<Vec<Device>, String> {
    let mut devices = Vec::new();
    let mut log = None;
    for option in &given.options {
        let text = option.value.as_deref().unwrap_or_default();
        match (option.name, text) {
            ("l", path) => log = Some(PathBuf::from(path)),
            ("" | "f", "-") => {
                return Err("standard input has no positions; name a device".to_owned());
            }
            ("" | "f", path) => devices.push(Device {
                path: path.to_owned(),
                log: log.take(),
            }),
            _ => {}
        }
    }
    if devices.is_empty() {
        return Err("no file name".to_owned());
    }
    match log {
        Some(path) => Err(format!("-l {}: name its device after it", path.display())),
        None => Ok(devices),
    }
}

fn mib(option: &str, text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(mib) if mib <= u64::MAX / MIB => Ok(mib),
        _ => Err(format!("{option} {text}: not a number of MiB")),
    }
}

impl BlocksLoad {
    /// The number of the first block that is read. zcav skips blocks before each one that it reads,
    /// except for the first one of the device.
    fn first_block(&self) -> u64 {
        match self.start_bytes / self.block_bytes {
            0 => 0,
            start => start + self.skip - 1,
        }
    }

    /// The number of blocks that are read. The end of -r limits it: zcav does not count the skipped
    /// ones, and reads on until that many are read or the device ends.
    fn points(&self, size_bytes: u64) -> u64 {
        let end_bytes = self.end_bytes.unwrap_or(u64::MAX);
        let most = end_bytes.saturating_sub(self.start_bytes) / self.block_bytes;
        let blocks = (size_bytes / self.block_bytes).saturating_sub(self.first_block());
        blocks.div_ceil(self.skip).min(most)
    }

    /// The error where no block fits: before a single pass, zcav has printed the heading by then.
    fn too_small(&self) -> DropInError {
        let path = &self.devices[0].path;
        let stdout = if self.loops == 1 { HEADING } else { "" };
        DropInError::Code(
            TOO_SMALL_CODE,
            ToolText {
                stdout: stdout.to_owned(),
                stderr: format!("Data file/device \"{path}\" too small.\n"),
            },
        )
    }
}

impl DropInLoad for BlocksLoad {
    fn head(&self) -> &LoadHead {
        &self.head
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        DROP_IN.refuse_directory(&self.head, context)?;
        let block_bytes = self.block_bytes;
        let points = self.points(context.target.size_bytes);
        if points == 0 {
            return Err(self.too_small());
        }
        if points > POINTS_MAX {
            let path = &self.devices[0].path;
            let text = format!("{path}: more than 100,000 blocks; use a larger -b");
            return Err(DROP_IN.target_error(&text));
        }
        let coverage = match self.skip {
            1 => Coverage::Full,
            _ => Coverage::Blocks { block_bytes },
        };
        // The last block read ends the span.
        let span_bytes = ((points - 1) * self.skip + 1) * block_bytes;
        let survey = Survey {
            operation: if self.head.writes_target {
                OpKind::Write
            } else {
                OpKind::Read
            },
            span: span_of(self.first_block() * block_bytes, span_bytes),
            engine: EngineChoice::Auto,
            curve: Some(CurvePlan {
                points: points as u32,
                coverage,
                time_ns: None,
            }),
            burst: None,
            access: None,
            scan: None,
        };
        Ok(Plan {
            tasks: vec![Task::Survey(survey)],
            ..DROP_IN.plan(context, None, Vec::new())
        })
    }

    fn next(&self) -> Option<NextLoad> {
        let mut load = self.clone();
        load.loops_left -= 1;
        let mut printer = NextPrinter::SamePrinter;
        if load.loops_left == 0 {
            load.devices.remove(0);
            load.loops_left = load.loops;
            printer = NextPrinter::OwnPrinter;
        }
        load.head = self.head.again_on(&load.devices.first()?.path);
        Some(NextLoad::new(load, printer))
    }

    fn printer(&self, _plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(BlocksPrinter {
            load: self.clone(),
            loops: 0,
            totals: String::new(),
            blocks: BTreeMap::new(),
            failed: BTreeSet::new(),
            logged: None,
            is_printed: false,
        })
    }
}

/// Prints at the end of the last pass.
#[derive(Debug)]
struct BlocksPrinter {
    load: BlocksLoad,
    /// Passes that were measured.
    loops: u32,
    /// A line for each pass.
    totals: String,
    /// The blocks by their numbers.
    blocks: BTreeMap<u64, MeasuredBlock>,
    /// The numbers of the blocks of which requests failed.
    failed: BTreeSet<u64>,
    /// The content of the log file, once it is complete.
    logged: Option<String>,
    /// True once the lines were printed: the end of each pass asks for them.
    is_printed: bool,
}

/// A block in all passes.
#[derive(Debug, Default)]
struct MeasuredBlock {
    /// Bytes that were moved in the last pass.
    bytes: u64,
    /// Seconds for a byte, one for each pass.
    seconds: Vec<f64>,
}

impl MeasuredBlock {
    /// The mean without the fastest and the slowest third, which are rounded down: of two passes it
    /// has both.
    fn mean_seconds(&mut self) -> f64 {
        debug_assert!(
            !self.seconds.is_empty(),
            "a block is made by its first pass"
        );
        self.seconds.sort_by(f64::total_cmp);
        let third = self.seconds.len() / 3;
        let kept = &self.seconds[third..self.seconds.len() - third];
        kept.iter().sum::<f64>() / kept.len() as f64
    }
}

impl BlocksPrinter {
    /// Takes the figures of a pass, which is the last one if a signal ended it.
    fn add_pass(&mut self, surface: &SurfaceMeasurement, result: &ToolResult<'_>) {
        self.loops += 1;
        let block_bytes = self.load.block_bytes;
        // Of all blocks of the pass.
        let mut bytes = 0.0;
        let mut busy_ns = 0.0;
        for point in &surface.curve {
            let number = point.offset_bytes / block_bytes;
            // What came before its first error is the rate of no block.
            if point.errors > 0 {
                self.failed.insert(number);
                continue;
            }
            if point.bytes == 0 {
                continue;
            }
            let untimed = point.offset_bytes % block_bytes;
            let block = self.blocks.entry(number).or_default();
            // A survey does not time its first and last requests, but zcav counts all of them: they
            // pass as moved at the rate of the rest.
            block.bytes = if result.interrupted {
                untimed + point.bytes
            } else {
                block_bytes
            };
            block.seconds.push(1.0 / point.bytes_per_second);
            let whole_of_timed = block.bytes as f64 / point.bytes as f64;
            bytes += block.bytes as f64;
            busy_ns += point.busy_ns as f64 * whole_of_timed;
        }
        if busy_ns > 0.0 {
            let mib = bytes / MIB as f64;
            let seconds = busy_ns / 1e9;
            let whole_seconds = seconds.floor();
            let rate = mib / seconds;
            let is_write = self.load.head.writes_target;
            let done = if is_write { "Wrote" } else { "Read" };
            let _ = writeln!(
                self.totals,
                "# {done} {mib:.0} megs in {whole_seconds:.0} seconds, {rate:.0} megabytes per \
                 second."
            );
        }
    }

    /// The line on the blocks that have no rate because their requests failed; empty without any.
    fn failed_line(&self) -> String {
        let Some(first) = self.failed.first() else {
            return String::new();
        };
        let kind = if self.load.head.writes_target {
            OpKind::Write
        } else {
            OpKind::Read
        };
        format!(
            "# {} could not be {}, the first at {:.2} GiB\n",
            counted(self.failed.len() as u64, "block"),
            kind.done(),
            (first * self.load.block_bytes) as f64 / GIB as f64
        )
    }

    /// The lines of the output; of several passes, the totals come first.
    fn lines(&mut self) -> String {
        let mut lines = HEADING.to_owned();
        let block_bytes = self.load.block_bytes;
        for (number, block) in &mut self.blocks {
            let offset = (number * block_bytes) as f64 / GIB as f64;
            let seconds = block.mean_seconds() * block.bytes as f64;
            let rate = block.bytes as f64 / MIB as f64 / seconds;
            let _ = writeln!(lines, "{offset:.2} {rate:.2} {seconds:.3}");
        }
        match self.load.loops {
            1 => lines + &self.totals,
            _ => format!("{}#loops: {}\n{lines}", self.totals, self.loops),
        }
    }
}

impl ToolPrinter for BlocksPrinter {
    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let mut text = ToolText::default();
        if let Some(surface) = result.surface {
            self.add_pass(surface, result);
            let time = local_time(result.unix_ns);
            text.stderr = format!(
                "# Finished loop {}, on device {} at {}:{:02}:{:02}\n",
                self.loops,
                self.load.devices[0].path,
                time.hour(),
                time.minute(),
                time.second()
            );
        }
        let is_last = self.loops >= self.load.loops || result.interrupted;
        if !is_last || self.loops == 0 || self.is_printed {
            return text;
        }
        self.is_printed = true;
        text.stderr.push_str(&self.failed_line());
        let lines = self.lines();
        match self.load.devices[0].log {
            Some(_) => self.logged = Some(lines),
            None => text.stdout = lines,
        }
        text
    }

    fn file_paths(&self) -> Vec<PathBuf> {
        // Also those of the devices that follow: they have printers of their own, but may not have
        // the same log.
        let mut paths = Vec::new();
        for device in &self.load.devices {
            paths.extend(device.log.clone());
        }
        paths
    }

    fn cannot_open(&self, path: &Path, _error: &str) -> String {
        format!("Can't open {}\n", path.display())
    }

    fn files(&mut self, _result: &ToolResult<'_>) -> Vec<ToolFile> {
        match (self.logged.take(), &self.load.devices[0].log) {
            (Some(text), Some(path)) => vec![ToolFile {
                path: path.clone(),
                text,
            }],
            _ => Vec::new(),
        }
    }
}
