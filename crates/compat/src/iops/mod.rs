//! iops of Benjamin Schweizer.
//!
//! Arguments of iops to a plan.

mod print;
#[cfg(test)]
mod tests;

use crate::command::CommandLine;
use crate::drop_in::{DropIn, Started};
use crate::error::DropInError;
use crate::getopt::GivenArguments;
use crate::load::{DropInLoad, LoadTarget, PlanContext};
use crate::plan::{SECOND, blocking, random_or_sequential, until_ns};
use crate::printer::ToolPrinter;
use diskproof_model::plan::{CachePolicy, Plan, Workload};
use diskproof_model::target::TargetIdentity;
use print::{SizesPrinter, SpellingUnits};
use std::path::PathBuf;
use std::sync::LazyLock;

/// The registry's line.
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("iops.txt"), start));

const THREADS: u64 = 32;
const THREADS_MAX: u64 = 1024;
const SECONDS: u64 = 2;
const SECTOR_BYTES: u32 = 512;
/// All threads together hold this much in memory at most.
const MEMORY_BYTES_MAX: u64 = 1 << 30;

/// What the arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SizesLoad {
    path: String,
    threads: u32,
    seconds: u64,
    block_bytes: Option<u32>,
    sector_bytes: Option<u32>,
    is_random: bool,
    units: SpellingUnits,
}

/// Reads the arguments.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    if arguments.is_empty() {
        return Err(DropInError::Usage(DROP_IN.usage.to_owned()));
    }
    DROP_IN.start_load(arguments, CommandLine::new(DROP_IN.usage), read)
}

fn read(given: &GivenArguments) -> Result<SizesLoad, String> {
    let [path] = given.operands.as_slice() else {
        return Err("name one device".to_owned());
    };
    let old = given.number("num_threads", 1..=THREADS_MAX)?;
    let units = match (given.has("m"), old) {
        (true, _) => SpellingUnits::Plain,
        (false, Some(_)) => SpellingUnits::Binary,
        (false, None) => SpellingUnits::Decimal,
    };
    let threads = given.number("n", 1..=THREADS_MAX)?.or(old);
    let size = |name| given.number(name, u64::from(SECTOR_BYTES)..=MEMORY_BYTES_MAX);
    Ok(SizesLoad {
        path: path.clone(),
        threads: threads.unwrap_or(THREADS) as u32,
        seconds: given.number("t", 1..=86_400)?.unwrap_or(SECONDS),
        block_bytes: size("b")?.map(|bytes| bytes as u32),
        sector_bytes: size("override-sector-size")?.map(|bytes| bytes as u32),
        is_random: given
            .choice("p", &[("random", true), ("sequential", false)])
            .map_err(|other| format!("pattern {other}: use random or sequential"))?,
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
        let doubling = std::iter::successors(Some(first), |bytes| Some(bytes * 2));
        let fitting = doubling.take_while(|bytes| *bytes < target.size_bytes && *bytes <= most);
        fitting.map(|bytes| bytes as u32).collect()
    }

    fn workload(&self, block_bytes: u32) -> Workload {
        let name = format!("read-{block_bytes}");
        Workload {
            workers: self.threads,
            stop: until_ns(self.seconds * SECOND),
            cache: CachePolicy::Buffered,
            ..blocking(&name, random_or_sequential(self.is_random), block_bytes)
        }
    }
}

impl DropInLoad for SizesLoad {
    fn target(&self) -> LoadTarget {
        LoadTarget::Existing(PathBuf::from(&self.path))
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        DROP_IN.refuse_directory(&self.path, context)?;
        let sizes = self.sizes(context.target);
        if sizes.is_empty() {
            let text = format!("{}: smaller than a block", self.path);
            return Err(DROP_IN.target_error(&text));
        }
        let workloads = sizes.iter().map(|bytes| self.workload(*bytes)).collect();
        Ok(DROP_IN.plan(context, None, workloads))
    }

    fn notes(&self) -> Vec<String> {
        vec!["each block is dropped from the page cache before it is read".to_owned()]
    }

    fn printer(&self, _plan: &Plan, target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        let threads = self.threads;
        let (path, size) = (&self.path, target.size_bytes as f64);
        let head = match self.units {
            SpellingUnits::Binary => {
                let size = SpellingUnits::Decimal.text(size, 2);
                format!("{path}, {size}B, {threads} threads:\n")
            }
            units => {
                let (size, sector) = (units.text(size, 2), self.sector_bytes(target));
                let is_random = self.is_random;
                let pattern = if is_random { "random" } else { "sequential" };
                format!(
                    "{path}, {size}, sectorsize={sector}B, #threads={threads}, \
                     pattern={pattern}:\n"
                )
            }
        };
        Box::new(SizesPrinter {
            head,
            units: self.units,
            threads,
            is_complete: false,
        })
    }
}
