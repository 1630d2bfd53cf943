//! Arguments of iops to a plan.

use super::print::{SizesPrinter, SpellingUnits};
use crate::drop_in::{DropInOption, Started, Treatment};
use crate::error::DropInError;
use crate::getopt::{GivenArguments, OptionForms, parse};
use crate::load::{DropInLoad, LoadTarget, PlanContext};
use crate::plan::plan_of;
use crate::printer::{ToolPrinter, ToolText};
use diskproof_model::plan::{
    Access, CachePolicy, Distribution, EngineChoice, EngineKind, Plan, Stop, Workload,
};
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::path::PathBuf;

pub(super) const NAME: &str = "iops";
pub(super) const EMULATES: &str = "iops 2013-04-19";
const THREADS: u32 = 32;
const THREADS_MAX: u32 = 1024;
const SECONDS: u64 = 2;
const SECOND: u64 = 1_000_000_000;
const SECTOR_BYTES: u32 = 512;
/// All threads together hold this much in memory at most.
const MEMORY_BYTES_MAX: u64 = 1 << 30;

const USAGE: &str = "\
usage:

    iops [-n|--num-threads threads] [-t|--time time] [-m|--machine-readable]
         [-b|--block-size size] [-p|--pattern random|sequential] <device>

    threads := number of concurrent io threads, default 32
    time    := time in seconds, default 2
    size    := only this block size, in bytes
    device  := a block device or a file
";

const fn option(
    short: &'static str,
    long: &'static str,
    value: &'static str,
    help: &'static str,
    treatment: Treatment,
) -> DropInOption {
    DropInOption {
        short,
        long,
        value,
        help,
        treatment,
    }
}

pub(super) const OPTIONS: &[DropInOption] = &[
    option(
        "-n",
        "num-threads",
        "N",
        "threads that read (32)",
        Treatment::Carried,
    ),
    option(
        "",
        "num_threads",
        "N",
        "the same in the spelling of 2010, with binary units",
        Treatment::Carried,
    ),
    option(
        "-t",
        "time",
        "SECONDS",
        "time of each block size (2)",
        Treatment::Carried,
    ),
    option(
        "-b",
        "block-size",
        "BYTES",
        "measure only this block size",
        Treatment::Carried,
    ),
    option(
        "-p",
        "pattern",
        "NAME",
        "random or sequential",
        Treatment::Carried,
    ),
    option(
        "-m",
        "machine-readable",
        "",
        "bytes and bits without k, M and G",
        Treatment::Carried,
    ),
    option(
        "",
        "override-sector-size",
        "BYTES",
        "first block size",
        Treatment::Carried,
    ),
    option(
        "",
        "override-media-size",
        "BYTES",
        "size of the device",
        Treatment::Refused("the size always comes from the device"),
    ),
    option("-h", "help", "", "print the usage", Treatment::Carried),
    option("", "version", "", "print the version", Treatment::Carried),
];

pub(super) const DIFFERENCES: &[&str] = &[
    "Each block is dropped from the page cache before it is read; iops reads repeated blocks from \
     memory.",
    "The spelling --num_threads prints binary units, as versions until 2010 did; the other \
     spellings print decimal units.",
    "It stops before the blocks of all threads together need more than 1 GiB of memory.",
];

/// What the arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SizesLoad {
    path: String,
    threads: u32,
    seconds: u64,
    block_bytes: Option<u32>,
    sector_bytes: Option<u32>,
    is_random: bool,
    units: SpellingUnits,
}

/// Reads the arguments.
pub(super) fn start(arguments: &[String]) -> Result<Started, DropInError> {
    if arguments.is_empty() {
        return Err(DropInError::Usage(USAGE.to_owned()));
    }
    let usage = |text: String| DropInError::Usage(format!("iops: {text}\n"));
    let given = parse(OPTIONS, arguments, OptionForms::Long).map_err(usage)?;
    if given.has("h") {
        return Ok(Started::Text(ToolText {
            stdout: USAGE.to_owned(),
            stderr: String::new(),
        }));
    }
    if given.has("version") {
        return Ok(Started::version(EMULATES));
    }
    Ok(Started::Load(Box::new(read(&given).map_err(usage)?)))
}

fn read(given: &GivenArguments) -> Result<SizesLoad, String> {
    let number = |name: &str, range: std::ops::RangeInclusive<u64>| match given.value(name) {
        None => Ok(None),
        Some(text) => match text.parse::<u64>() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(format!(
                "{name} {text}: use a number from {} to {}",
                range.start(),
                range.end()
            )),
        },
    };
    let [path] = given.operands.as_slice() else {
        return Err("name one device".to_owned());
    };
    let threads = 1..=u64::from(THREADS_MAX);
    let old = number("num_threads", threads.clone())?;
    let units = match (given.has("m"), old) {
        (true, _) => SpellingUnits::Plain,
        (false, Some(_)) => SpellingUnits::Binary,
        (false, None) => SpellingUnits::Decimal,
    };
    let bytes = u64::from(SECTOR_BYTES)..=MEMORY_BYTES_MAX;
    let is_random = match given.value("p") {
        None | Some("random") => true,
        Some("sequential") => false,
        Some(other) => return Err(format!("pattern {other}: use random or sequential")),
    };
    Ok(SizesLoad {
        path: path.clone(),
        threads: number("n", threads)?.or(old).map_or(THREADS, |n| n as u32),
        seconds: number("t", 1..=86_400)?.unwrap_or(SECONDS),
        block_bytes: number("b", bytes.clone())?.map(|bytes| bytes as u32),
        sector_bytes: number("override-sector-size", bytes)?.map(|bytes| bytes as u32),
        is_random,
        units,
    })
}

impl SizesLoad {
    fn sector_bytes(&self, target: &TargetIdentity) -> u32 {
        let disk = target.layers.first();
        let known = disk.and_then(|layer| layer.logical_block_bytes);
        match (self.sector_bytes, self.units) {
            (Some(bytes), _) => bytes,
            // The versions until 2010 begin with 512 bytes.
            (None, SpellingUnits::Binary) => SECTOR_BYTES,
            (None, SpellingUnits::Decimal | SpellingUnits::Plain) => known.unwrap_or(SECTOR_BYTES),
        }
    }

    fn sizes(&self, target: &TargetIdentity) -> Vec<u32> {
        if let Some(bytes) = self.block_bytes {
            return vec![bytes];
        }
        let most = MEMORY_BYTES_MAX / u64::from(self.threads);
        let first = u64::from(self.sector_bytes(target));
        std::iter::successors(Some(first), |bytes| Some(bytes * 2))
            .take_while(|bytes| *bytes < target.size_bytes && *bytes <= most)
            .map(|bytes| bytes as u32)
            .collect()
    }

    fn workload(&self, block_bytes: u32) -> Workload {
        Workload {
            access: match self.is_random {
                true => Access::Random {
                    distribution: Distribution::Uniform,
                },
                false => Access::Sequential,
            },
            block_bytes,
            workers: self.threads,
            stop: Stop {
                time_ns: Some(self.seconds * SECOND),
                ..Stop::default()
            },
            cache: CachePolicy::Buffered,
            engine: EngineChoice::Fixed(EngineKind::Sync),
            ..Workload::named(&format!("read-{block_bytes}"))
        }
    }
}

impl DropInLoad for SizesLoad {
    fn target(&self) -> LoadTarget {
        LoadTarget::Existing(PathBuf::from(&self.path))
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        if context.target.kind == TargetKind::Directory {
            let text = format!(
                "iops: {}: is a directory; name a device or a file\n",
                self.path
            );
            return Err(DropInError::Target(text));
        }
        let sizes = self.sizes(context.target);
        if sizes.is_empty() {
            let text = format!("iops: {}: smaller than a block\n", self.path);
            return Err(DropInError::Target(text));
        }
        let workloads = sizes.iter().map(|bytes| self.workload(*bytes)).collect();
        Ok(plan_of(NAME, context, None, workloads))
    }

    fn notes(&self) -> Vec<String> {
        vec!["each block is dropped from the page cache before it is read".to_owned()]
    }

    fn printer(&self, _plan: &Plan, target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        let threads = self.threads;
        let head = match self.units {
            SpellingUnits::Binary => {
                let size = SpellingUnits::Decimal.text(target.size_bytes as f64, 2);
                format!("{}, {size}B, {threads} threads:\n", self.path)
            }
            SpellingUnits::Decimal | SpellingUnits::Plain => format!(
                "{}, {}, sectorsize={}B, #threads={threads}, pattern={}:\n",
                self.path,
                self.units.text(target.size_bytes as f64, 2),
                self.sector_bytes(target),
                if self.is_random {
                    "random"
                } else {
                    "sequential"
                }
            ),
        };
        Box::new(SizesPrinter::new(head, self.units, threads))
    }
}
