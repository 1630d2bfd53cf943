//! hdparm: its two timings.
//!
//! Arguments of hdparm to a plan.

mod print;
#[cfg(test)]
mod tests;

use crate::command::CommandLine;
use crate::drop_in::{DropIn, DropInOption, Started};
use crate::error::DropInError;
use crate::getopt::GivenArguments;
use crate::load::{DropInLoad, LoadTarget, NextLoad, NextPrinter, PlanContext};
use crate::plan::{SECOND, blocking, direct_or, part, until_ns};
use crate::printer::ToolPrinter;
use diskproof_model::plan::{Access, CachePolicy, Plan, Stop, Workload};
use diskproof_model::target::{TargetIdentity, TargetKind};
use print::TimingPrinter;
use std::path::PathBuf;
use std::sync::LazyLock;

/// The registry's line.
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("hdparm.txt"), start));

/// TIMING_BUF_MB.
const BLOCK_BYTES: u32 = 2 << 20;
const CACHE_NS: u64 = 2 * SECOND;
const DEVICE_NS: u64 = 3 * SECOND;
const GIB: u64 = 1 << 30;

/// What the arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TimingLoad {
    path: String,
    /// The devices that follow.
    others: Vec<String>,
    is_quiet: bool,
    times_cache: bool,
    times_device: bool,
    is_direct: bool,
    offset_gib: Option<u64>,
    notes: Vec<String>,
}

/// Reads the arguments.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let help = DROP_IN.help(19, |option: &DropInOption| format!(" {}", option.written()));
    if arguments.is_empty() {
        return Err(DropInError::Usage(help));
    }
    DROP_IN.start_load(arguments, CommandLine::new(&help), read)
}

fn read(given: &GivenArguments) -> Result<TimingLoad, String> {
    let (times_cache, times_device) = (given.has("T"), given.has("t"));
    if !times_cache && !times_device {
        return Err(
            "only -t and -T are supported; use 'diskproof info DEVICE' to identify a disk, and the \
             real hdparm for its settings"
                .to_owned(),
        );
    }
    let Some((path, others)) = given.operands.split_first() else {
        return Err("no device specified".to_owned());
    };
    Ok(TimingLoad {
        path: path.clone(),
        others: others.to_vec(),
        is_quiet: given.has("q"),
        times_cache,
        times_device,
        is_direct: given.has("direct"),
        offset_gib: given.number("offset", 0..=1 << 33)?,
        notes: given.notes.clone(),
    })
}

impl DropInLoad for TimingLoad {
    fn target(&self) -> LoadTarget {
        LoadTarget::Existing(PathBuf::from(&self.path))
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        let target = context.target;
        let error = |text: &str| DropInError::Target(format!("{}: {text}\n", self.path));
        if target.kind == TargetKind::Directory {
            return Err(error("is a directory; name a device or a file"));
        }
        let block = u64::from(BLOCK_BYTES);
        let start_bytes = self.offset_gib.unwrap_or(0).saturating_mul(GIB);
        let bytes = target.size_bytes.saturating_sub(start_bytes) / block * block;
        if bytes == 0 || target.size_bytes < block {
            return Err(error("has fewer than 2 MiB to read"));
        }
        let mut workloads = Vec::new();
        if self.times_cache {
            workloads.push(Workload {
                cache: direct_or(self.is_direct, CachePolicy::Cached),
                span: part(0, block),
                stop: until_ns(CACHE_NS),
                ..blocking("cached-reads", Access::Sequential, BLOCK_BYTES)
            });
        }
        if self.times_device {
            workloads.push(Workload {
                cache: direct_or(self.is_direct, CachePolicy::Buffered),
                span: part(start_bytes, bytes),
                stop: Stop {
                    bytes: Some(bytes),
                    ..until_ns(DEVICE_NS)
                },
                ..blocking("device-reads", Access::Sequential, BLOCK_BYTES)
            });
        }
        Ok(DROP_IN.plan(context, None, workloads))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn next(&self) -> Option<NextLoad> {
        let (path, others) = self.others.split_first()?;
        let load = Self {
            path: path.clone(),
            others: others.to_vec(),
            notes: Vec::new(),
            ..self.clone()
        };
        Some(NextLoad::new(load, NextPrinter::OwnPrinter))
    }

    fn printer(&self, plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        let path = (!self.is_quiet).then_some(self.path.as_str());
        let (is_direct, offset_gib) = (self.is_direct, self.offset_gib);
        Box::new(TimingPrinter::new(plan, path, is_direct, offset_gib))
    }
}
