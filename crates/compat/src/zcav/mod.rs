//! zcav of the bonnie++ suite.
//!
//! Arguments of zcav to a survey.

mod print;
#[cfg(test)]
mod tests;

use crate::command::CommandLine;
use crate::drop_in::{DropIn, Started};
use crate::error::DropInError;
use crate::getopt::GivenArguments;
use crate::load::{DropInLoad, LoadTarget, NextLoad, NextPrinter, PlanContext};
use crate::plan::part;
use crate::printer::ToolPrinter;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{EngineChoice, Plan};
use diskproof_model::surface::{Coverage, CurvePlan, Survey};
use diskproof_model::target::TargetIdentity;
use print::{BlocksPrinter, BlocksSettings, Device};
use std::path::PathBuf;
use std::sync::LazyLock;

/// The registry's line.
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("zcav.txt"), start));

const MIB: u64 = 1 << 20;
const BLOCK_MIB: u64 = 512;
const BLOCK_MIB_MAX: u64 = 1 << 20;
const LOOPS_MAX: u64 = 100;
/// A survey keeps so many points.
const POINTS_MAX: u64 = 100_000;

/// What the arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BlocksLoad {
    /// The devices from this one on.
    devices: Vec<Device>,
    block_bytes: u64,
    writes: bool,
    /// Passes over each device.
    loops: u32,
    /// The passes over this device from this one on.
    loops_left: u32,
    start_bytes: u64,
    end_bytes: Option<u64>,
    skip: u64,
    notes: Vec<String>,
}

/// Reads the arguments.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let command = CommandLine::with_help_after_errors(DROP_IN.usage);
    DROP_IN.start_load(arguments, command, read)
}

fn read(given: &GivenArguments) -> Result<BlocksLoad, String> {
    let devices = devices(given)?;
    let mut notes = given.notes.clone();
    let block_mib = given.read("b", |text| {
        let Some((block, chunk)) = text.split_once(':') else {
            return mib("-b", text);
        };
        mib("-b", chunk)?;
        notes.push("the chunk size has no effect: the engine chooses it".to_owned());
        mib("-b", block)
    })?;
    let block_mib = block_mib.unwrap_or(BLOCK_MIB);
    if !(1..=BLOCK_MIB_MAX).contains(&block_mib) {
        return Err(format!("-b {block_mib}: use from 1 to {BLOCK_MIB_MAX} MiB"));
    }
    notes.push("requests bypass the page cache; the lines come at the end".to_owned());
    if devices.len() > 1 {
        notes.push("the devices are measured one after the other, not together".to_owned());
    }
    let range = given.read("r", |text| {
        let (start, end) = text.split_once(':').unwrap_or(("0", text));
        Ok::<_, String>((mib("-r", start)?, mib("-r", end)?))
    })?;
    let whole = |mib: u64| mib / block_mib * block_mib * MIB;
    let loops = given.number("c", 1..=LOOPS_MAX)?.unwrap_or(1) as u32;
    Ok(BlocksLoad {
        devices,
        block_bytes: block_mib * MIB,
        writes: given.has("w"),
        loops,
        loops_left: loops,
        start_bytes: range.map_or(0, |(start, _)| whole(start)),
        end_bytes: range.map(|(_, end)| whole(end)),
        skip: given.number("s", 2..=20)?.unwrap_or(1),
        notes,
    })
}

/// Files in order. As in zcav, a log belongs to the file that follows it.
fn devices(given: &GivenArguments) -> Result<Vec<Device>, String> {
    let (mut devices, mut log) = (Vec::new(), None);
    for option in &given.options {
        let text = option.value.as_deref().unwrap_or_default();
        match (option.name, text) {
            ("l", path) => log = Some(PathBuf::from(path)),
            ("" | "f", "-") => {
                return Err("standard input has no positions; name a device".to_owned());
            }
            ("" | "f", path) => {
                let (path, log) = (path.to_owned(), log.take());
                devices.push(Device { path, log });
            }
            _ => {}
        }
    }
    match (devices.is_empty(), log) {
        (true, _) => Err("no file name".to_owned()),
        (false, Some(log)) => Err(format!("-l {}: name its device after it", log.display())),
        (false, None) => Ok(devices),
    }
}

fn mib(option: &str, text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|mib| *mib <= u64::MAX / MIB);
    number.ok_or_else(|| format!("{option} {text}: not a number of MiB"))
}

impl DropInLoad for BlocksLoad {
    fn target(&self) -> LoadTarget {
        LoadTarget::Existing(PathBuf::from(&self.devices[0].path))
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        let (path, block_bytes) = (&self.devices[0].path, self.block_bytes);
        let error = |text: &str| DROP_IN.target_error(&format!("{path}: {text}"));
        DROP_IN.refuse_directory(path, context)?;
        let (end, target) = (self.end_bytes.unwrap_or(u64::MAX), context.target);
        let bytes = end.min(target.size_bytes).saturating_sub(self.start_bytes);
        let points = (bytes / block_bytes).div_ceil(self.skip);
        if points == 0 {
            let text = format!("Data file/device \"{path}\" too small.\n");
            return Err(DropInError::Code(2, text));
        }
        if points > POINTS_MAX {
            return Err(error("more than 100,000 blocks; use a larger -b"));
        }
        let coverage = match self.skip {
            1 => Coverage::Full,
            _ => Coverage::Sampled {
                sample_bytes: Some(block_bytes),
            },
        };
        // The last block read ends the span.
        let span_bytes = ((points - 1) * self.skip + 1) * block_bytes;
        let survey = Survey {
            operation: if self.writes {
                OpKind::Write
            } else {
                OpKind::Read
            },
            span: part(self.start_bytes, span_bytes),
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
            ..DROP_IN.plan(context, None, Vec::new())
        })
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn writes(&self) -> bool {
        self.writes
    }

    fn next(&self) -> Option<NextLoad> {
        let mut load = self.clone();
        load.notes.clear();
        load.loops_left -= 1;
        let mut printer = NextPrinter::SamePrinter;
        if load.loops_left == 0 {
            load.devices.remove(0);
            load.loops_left = load.loops;
            printer = NextPrinter::OwnPrinter;
        }
        (!load.devices.is_empty()).then(|| NextLoad::new(load, printer))
    }

    fn printer(&self, _plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(BlocksPrinter::new(BlocksSettings {
            device: self.devices[0].clone(),
            block_bytes: self.block_bytes,
            writes: self.writes,
            loops: self.loops,
        }))
    }
}
