//! Arguments of zcav to a survey.

use super::print::{BlocksPrinter, BlocksSettings};
use crate::drop_in::{DropInOption, Started, Treatment};
use crate::error::DropInError;
use crate::getopt::{GivenArguments, OptionForms, parse};
use crate::load::{DropInLoad, LoadTarget, NextLoad, NextPrinter, PlanContext};
use crate::plan::plan_of;
use crate::printer::ToolPrinter;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{EngineChoice, Plan, Span};
use diskproof_model::surface::{Coverage, CurvePlan, Survey};
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::path::PathBuf;

pub(super) const NAME: &str = "zcav";
pub(super) const EMULATES: &str = "zcav 2.00a (bonnie++)";
const MIB: u64 = 1 << 20;
const BLOCK_MIB: u64 = 512;
const BLOCK_MIB_MAX: u64 = 1 << 20;
const LOOPS_MAX: u32 = 100;
/// A survey keeps so many points.
const POINTS_MAX: u64 = 100_000;

const USAGE: &str = "\
Usage: zcav [-b block-size[:chunk-size]] [-c count]
            [-r [start offset:]end offset] [-w]
            [-s skip rate]
            [-l log-file] [-f] file-name

Block size and offsets are in MiB.
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

const NO_USER: Treatment = Treatment::Ignored("the user does not change");

pub(super) const OPTIONS: &[DropInOption] = &[
    option(
        "-b",
        "MiB[:chunk]",
        "size of a block (512)",
        Treatment::Carried,
    ),
    option(
        "-c",
        "count",
        "passes over the device, up to 100 (1)",
        Treatment::Carried,
    ),
    option(
        "-r",
        "start:end",
        "part to read, in MiB",
        Treatment::Carried,
    ),
    option(
        "-s",
        "rate",
        "read one block of every N, from 2 to 20",
        Treatment::Carried,
    ),
    option("-f", "file-name", "the device or file", Treatment::Carried),
    option(
        "-w",
        "",
        "write instead of reading: destroys the content",
        Treatment::Carried,
    ),
    option(
        "-l",
        "log-file",
        "write the output to this file",
        Treatment::Carried,
    ),
    option("-u", "user:group", "run as this user", NO_USER),
    option("-g", "group", "run as this group", NO_USER),
];

pub(super) const DIFFERENCES: &[&str] = &[
    "Every block has a figure; zcav prints ++++ for a block that it reads in less than a second.",
    "Requests bypass the page cache, with the best size for the device and several in flight. zcav \
     uses the page cache; its chunk size has no effect here.",
    "-w writes random data within the target, and its last line says Wrote. zcav writes zeros, and \
     extends a file until the disk is full. -w needs 'diskproof as --destroy NAME zcav -w …', or \
     --overwrite for a file.",
    "All lines are printed at the end of the run, and written to the log file of -l.",
    "Each pass of -c is a separate run in the history. A line has the mean time of a block \
     without the fastest and the slowest third of the passes, as in zcav.",
];

/// What the arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlocksLoad {
    path: String,
    block_bytes: u64,
    start_bytes: u64,
    end_bytes: Option<u64>,
    skip: u64,
    writes: bool,
    /// Passes from this one on.
    loops: u32,
    log: Option<PathBuf>,
    notes: Vec<String>,
}

/// Reads the arguments.
pub(super) fn start(arguments: &[String]) -> Result<Started, DropInError> {
    if arguments.first().is_some_and(|word| word == "--version") {
        return Ok(Started::version(EMULATES));
    }
    let usage = |text: String| DropInError::Usage(format!("zcav: {text}\n{USAGE}"));
    let given = parse(OPTIONS, arguments, OptionForms::Long).map_err(usage)?;
    Ok(Started::Load(Box::new(read(given).map_err(usage)?)))
}

fn read(given: GivenArguments) -> Result<BlocksLoad, String> {
    let mut paths: Vec<&str> = given.operands.iter().map(String::as_str).collect();
    paths.extend(given.value("f"));
    let path = match paths.as_slice() {
        [] => return Err("no file name".to_owned()),
        ["-"] => return Err("standard input has no positions; name a device".to_owned()),
        [path] => (*path).to_owned(),
        _ => return Err("one device at a time; run it once for each".to_owned()),
    };
    let mut notes = given.notes.clone();
    let block_mib = match given.value("b") {
        None => BLOCK_MIB,
        Some(text) => {
            let (block, chunk) = text
                .split_once(':')
                .map_or((text, None), |(block, chunk)| (block, Some(chunk)));
            if let Some(chunk) = chunk {
                mib("-b", chunk)?;
                notes.push("the chunk size has no effect: the engine chooses it".to_owned());
            }
            mib("-b", block)?
        }
    };
    if !(1..=BLOCK_MIB_MAX).contains(&block_mib) {
        return Err(format!("-b {block_mib}: use from 1 to {BLOCK_MIB_MAX} MiB"));
    }
    let loops = match given.value("c") {
        None => 1,
        Some(text) => match text.parse() {
            Ok(loops @ 1..=LOOPS_MAX) => loops,
            _ => return Err(format!("-c {text}: use from 1 to {LOOPS_MAX}")),
        },
    };
    notes.push("requests bypass the page cache; the lines come at the end".to_owned());
    let (start, end) = match given.value("r") {
        None => (0, None),
        Some(text) => match text.split_once(':') {
            Some((start, end)) => (mib("-r", start)?, Some(mib("-r", end)?)),
            None => (0, Some(mib("-r", text)?)),
        },
    };
    let skip = match given.value("s") {
        None => 1,
        Some(text) => match text.parse() {
            Ok(skip @ 2..=20) => skip,
            _ => return Err(format!("-s {text}: use from 2 to 20")),
        },
    };
    let whole = |mib: u64| mib / block_mib * block_mib * MIB;
    Ok(BlocksLoad {
        path,
        block_bytes: block_mib * MIB,
        start_bytes: whole(start),
        end_bytes: end.map(whole),
        skip,
        writes: given.has("w"),
        loops,
        log: given.value("l").map(PathBuf::from),
        notes,
    })
}

fn mib(option: &str, text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|mib| *mib <= u64::MAX / MIB);
    number.ok_or_else(|| format!("{option} {text}: not a number of MiB"))
}

impl BlocksLoad {
    fn operation(&self) -> OpKind {
        match self.writes {
            true => OpKind::Write,
            false => OpKind::Read,
        }
    }

    /// The blocks to read or to write.
    fn blocks(&self, target: &TargetIdentity) -> u64 {
        let end = self.end_bytes.unwrap_or(u64::MAX).min(target.size_bytes);
        end.saturating_sub(self.start_bytes) / self.block_bytes
    }
}

impl DropInLoad for BlocksLoad {
    fn target(&self) -> LoadTarget {
        LoadTarget::Existing(PathBuf::from(&self.path))
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        let error = |text: &str| DropInError::Target(format!("zcav: {}: {text}\n", self.path));
        if context.target.kind == TargetKind::Directory {
            return Err(error("is a directory; name a device or a file"));
        }
        let blocks = self.blocks(context.target);
        let points = blocks.div_ceil(self.skip);
        if points == 0 {
            return Err(error("smaller than a block; use a smaller -b"));
        }
        if points > POINTS_MAX {
            return Err(error("more than 100,000 blocks; use a larger -b"));
        }
        let coverage = match self.skip {
            1 => Coverage::Full,
            _ => Coverage::Sampled {
                sample_bytes: Some(self.block_bytes),
            },
        };
        let survey = Survey {
            operation: self.operation(),
            span: Span {
                start_bytes: self.start_bytes,
                // The last block read ends the span.
                length_bytes: Some(((points - 1) * self.skip + 1) * self.block_bytes),
            },
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
            survey: Some(survey),
            ..plan_of(NAME, context, None, Vec::new())
        })
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn writes(&self) -> bool {
        self.writes
    }

    fn next(&self) -> Option<NextLoad> {
        let load = Self {
            loops: self.loops - 1,
            notes: Vec::new(),
            ..self.clone()
        };
        (load.loops > 0).then_some(NextLoad {
            load: Box::new(load),
            printer: NextPrinter::SamePrinter,
        })
    }

    fn printer(&self, _plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(BlocksPrinter::new(BlocksSettings {
            path: self.path.clone(),
            block_bytes: self.block_bytes,
            writes: self.writes,
            loops: self.loops,
            log: self.log.clone(),
        }))
    }
}
