//! iops of Benjamin Schweizer, from the arguments to the lines, one for each block size.

#[cfg(test)]
mod tests;

use crate::command::{CommandLine, GivenArguments};
use crate::drop_in::{DropIn, Started};
use crate::figures::{ops_of_kind, per_second};
use crate::load::{DropInLoad, LoadHead, LoadTarget, PlanContext};
use crate::plan::{RequestOrder, SECOND, THREADS_MAX, blocking_workload, until_ns};
use crate::printer::{DropInError, ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::{CachePolicy, Plan, Workload};
use diskproof_model::target::TargetIdentity;
use std::sync::LazyLock;

/// The entry of iops in [`crate::drop_ins`].
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("iops.txt"), start));

/// The number of threads of iops.
const THREADS_DEFAULT: u64 = 32;

/// The seconds for which iops measures each size.
const SECONDS_DEFAULT: u64 = 2;
/// The most seconds for each size: a day.
const SECONDS_MAX: u64 = 86_400;
/// The sector of a disk that does not report its own, in bytes.
const SECTOR_BYTES: u32 = 512;
/// The most that the buffers of all threads hold together, in bytes. Larger sizes are skipped.
/// Chosen, not measured.
const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// The words of -p, and their meaning. The first is the default.
const PATTERNS: [(&str, RequestOrder); 2] = [
    ("random", RequestOrder::Random),
    ("sequential", RequestOrder::Sequential),
];

/// The load that a command line requests.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SizesLoad {
    head: LoadHead,
    threads: u32,
    seconds: u64,
    block_bytes: Option<u32>,
    sector_bytes: Option<u32>,
    /// The order of -p.
    order: RequestOrder,
    units: SpellingUnits,
}

/// Turns the arguments into a load, or into the text or error that iops prints.
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
    let threads_by_old_name = given.number("num_threads", 1..=THREADS_MAX)?;
    let units = if given.has("m") {
        SpellingUnits::Plain
    } else if threads_by_old_name.is_some() {
        SpellingUnits::Binary
    } else {
        SpellingUnits::Decimal
    };
    let threads = given.number("n", 1..=THREADS_MAX)?.or(threads_by_old_name);
    let note = "each block is dropped from the page cache before it is read";
    Ok(SizesLoad {
        head: LoadHead::new(LoadTarget::Existing(path.into()), vec![note.to_owned()]),
        threads: threads.unwrap_or(THREADS_DEFAULT) as u32,
        seconds: given
            .number("t", 1..=SECONDS_MAX)?
            .unwrap_or(SECONDS_DEFAULT),
        block_bytes: read_size(given, "b")?,
        sector_bytes: read_size(given, "override-sector-size")?,
        order: given
            .choice("p", &PATTERNS)
            .map_err(|other| format!("pattern {other}: use random or sequential"))?,
        units,
    })
}

fn read_size(given: &GivenArguments, name: &str) -> Result<Option<u32>, String> {
    let bytes = given.number(name, u64::from(SECTOR_BYTES)..=MEMORY_BYTES_MAX)?;
    Ok(bytes.map(|bytes| bytes as u32))
}

impl SizesLoad {
    /// The sector that the output names and the sizes begin with, in bytes.
    fn sector_bytes(&self, target: &TargetIdentity) -> u32 {
        if let Some(bytes) = self.sector_bytes {
            return bytes;
        }
        // The versions with binary units begin with 512 bytes.
        if self.units == SpellingUnits::Binary {
            return SECTOR_BYTES;
        }
        match target.layers.first() {
            Some(disk) => disk.logical_block_bytes.unwrap_or(SECTOR_BYTES),
            None => SECTOR_BYTES,
        }
    }

    /// The block sizes to measure: that of -b, or those from a sector on, each twice the one
    /// before.
    fn block_sizes(&self, target: &TargetIdentity) -> Vec<u32> {
        if let Some(bytes) = self.block_bytes {
            return vec![bytes];
        }
        let most = MEMORY_BYTES_MAX / u64::from(self.threads);
        let mut sizes = Vec::new();
        let mut bytes = u64::from(self.sector_bytes(target));
        while bytes < target.size_bytes && bytes <= most {
            sizes.push(bytes as u32);
            bytes *= 2;
        }
        sizes
    }

    fn workload(&self, block_bytes: u32) -> Workload {
        let name = format!("read-{block_bytes}");
        Workload {
            workers: self.threads,
            stop: until_ns(self.seconds * SECOND),
            cache: CachePolicy::Buffered,
            ..blocking_workload(&name, self.order.access(), block_bytes)
        }
    }
}

impl DropInLoad for SizesLoad {
    fn head(&self) -> &LoadHead {
        &self.head
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        DROP_IN.refuse_directory(&self.head, context)?;
        let sizes = self.block_sizes(context.target);
        if sizes.is_empty() {
            let text = format!("{}: smaller than a block", self.head.path());
            return Err(DROP_IN.target_error(&text));
        }
        let workloads = sizes.iter().map(|bytes| self.workload(*bytes)).collect();
        Ok(DROP_IN.plan(context, None, workloads))
    }

    fn printer(&self, _plan: &Plan, target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        let threads = self.threads;
        let (path, size) = (self.head.path(), target.size_bytes as f64);
        let head = match self.units {
            SpellingUnits::Binary => format!(
                "{path}, {}B, {threads} threads:\n",
                SpellingUnits::Decimal.text(size, 2)
            ),
            units => format!(
                "{path}, {}, sectorsize={}B, #threads={threads}, pattern={}:\n",
                units.text(size, 2),
                self.sector_bytes(target),
                match self.order {
                    RequestOrder::Random => "random",
                    RequestOrder::Sequential => "sequential",
                }
            ),
        };
        Box::new(SizesPrinter {
            head,
            units: self.units,
            threads,
            is_complete: false,
        })
    }
}

/// The units of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpellingUnits {
    /// `1 KiB`, the versions until 2013.
    Binary,
    /// Powers of 1000: `1 kB`.
    Decimal,
    /// `1024  B`, for programs.
    Plain,
}

impl SpellingUnits {
    /// A number with its prefix, as wide as iops prints it.
    fn text(self, value: f64, places: usize) -> String {
        let (base, prefixes, none): (f64, [&str; 5], &str) = match self {
            Self::Binary => (1024.0, ["Ki", "Mi", "Gi", "Ti", "Pi"], "  "),
            Self::Decimal => (1000.0, ["k", "M", "G", "T", "P"], " "),
            Self::Plain => (f64::INFINITY, [""; 5], " "),
        };
        let (mut scaled, mut prefix) = (value, none);
        for larger in prefixes {
            if scaled < base {
                break;
            }
            scaled /= base;
            prefix = larger;
        }
        match places {
            0 => format!("{:3} {prefix}", scaled as u64),
            places => format!("{scaled:width$.places$} {prefix}", width = places + 4),
        }
    }
}

/// Prints line by line.
#[derive(Debug)]
struct SizesPrinter {
    head: String,
    units: SpellingUnits,
    threads: u32,
    /// True once a size was so slow that iops measures no larger one.
    is_complete: bool,
}

impl ToolPrinter for SizesPrinter {
    fn begin(&mut self) -> String {
        std::mem::take(&mut self.head)
    }

    fn measured(&mut self, measurement: &Measurement) -> String {
        let reads = ops_of_kind(measurement, OpKind::Read);
        // It looks at the clock after its last read.
        let iops = per_second(reads as f64, measurement.time_to_last_done_ns());
        // Versions until 2013 end below one operation per second and thread, later ones below a
        // quarter of that.
        let slowest = match self.units {
            SpellingUnits::Binary => self.threads,
            SpellingUnits::Decimal | SpellingUnits::Plain => (self.threads / 4).max(1),
        };
        self.is_complete = iops <= f64::from(slowest);
        if reads == 0 {
            return String::new();
        }
        let block_bytes = f64::from(measurement.workload.block_bytes);
        let bytes_per_second = block_bytes * iops;
        let bit_units = match self.units {
            SpellingUnits::Plain => SpellingUnits::Plain,
            _ => SpellingUnits::Decimal,
        };
        format!(
            " {}B blocks: {iops:6.1} IO/s, {}B/s ({}bit/s)\n",
            self.units.text(block_bytes, 0),
            self.units.text(bytes_per_second, 1),
            bit_units.text(8.0 * bytes_per_second, 1)
        )
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        if result.interrupted {
            ToolText::out("caught ctrl-c, bye.\n")
        } else {
            ToolText::default()
        }
    }
}
