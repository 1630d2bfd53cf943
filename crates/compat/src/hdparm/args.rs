//! Arguments of hdparm to a plan.

use super::options::OPTIONS;
use super::print::TimingPrinter;
use crate::drop_in::{Started, Treatment};
use crate::error::DropInError;
use crate::getopt::{GivenArguments, OptionForms, parse};
use crate::load::{DropInLoad, LoadTarget, NextLoad, NextPrinter, PlanContext};
use crate::plan::plan_of;
use crate::printer::{ToolPrinter, ToolText};
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, Plan, Span, Stop, Workload,
};
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::fmt::Write as _;
use std::path::PathBuf;

pub(super) const NAME: &str = "hdparm";
pub(super) const EMULATES: &str = "hdparm v9.65";
/// TIMING_BUF_MB.
const BLOCK_BYTES: u32 = 2 << 20;
const SECOND: u64 = 1_000_000_000;
const CACHE_NS: u64 = 2 * SECOND;
const DEVICE_NS: u64 = 3 * SECOND;
const GIB: u64 = 1 << 30;

/// What the arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimingLoad {
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
pub(super) fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let given = parse(OPTIONS, arguments, OptionForms::Long)
        .map_err(|error| DropInError::Usage(format!("hdparm: {error}\n")))?;
    if given.has("V") {
        return Ok(Started::version(EMULATES));
    }
    if arguments.is_empty() {
        return Err(DropInError::Usage(help()));
    }
    if given.has("h") {
        return Ok(Started::Text(ToolText {
            stdout: help(),
            stderr: String::new(),
        }));
    }
    let load = read(given).map_err(|text| DropInError::Usage(format!("hdparm: {text}\n")))?;
    Ok(Started::Load(Box::new(load)))
}

fn help() -> String {
    let mut text =
        "\nhdparm - time reads of a disk\n\nUsage:  hdparm  -t|-T [options] device ...\n\n\
                    Options:\n"
            .to_owned();
    for option in OPTIONS {
        if option.treatment == Treatment::Carried {
            let form = match option.short {
                "" => format!("--{}", option.long),
                short => short.to_owned(),
            };
            let _ = writeln!(text, " {form:<18}{}", option.help);
        }
    }
    text
}

fn read(given: GivenArguments) -> Result<TimingLoad, String> {
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
    let offset_gib = match given.value("offset") {
        None => None,
        Some(text) => {
            let number = text.parse::<u64>();
            Some(number.map_err(|_| format!("--offset {text}: not a number of GiB"))?)
        }
    };
    Ok(TimingLoad {
        path: path.clone(),
        others: others.to_vec(),
        is_quiet: given.has("q"),
        times_cache,
        times_device,
        is_direct: given.has("direct"),
        offset_gib,
        notes: given.notes,
    })
}

impl TimingLoad {
    fn timing(&self, name: &str, start_bytes: u64, bytes: u64) -> Workload {
        Workload {
            access: Access::Sequential,
            block_bytes: BLOCK_BYTES,
            span: Span {
                start_bytes,
                length_bytes: Some(bytes),
            },
            engine: EngineChoice::Fixed(EngineKind::Sync),
            ..Workload::named(name)
        }
    }
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
        let cached = Workload {
            cache: match self.is_direct {
                true => CachePolicy::Direct,
                false => CachePolicy::Cached,
            },
            stop: Stop {
                time_ns: Some(CACHE_NS),
                ..Stop::default()
            },
            ..self.timing("cached-reads", 0, block)
        };
        let device = Workload {
            cache: match self.is_direct {
                true => CachePolicy::Direct,
                false => CachePolicy::Buffered,
            },
            stop: Stop {
                time_ns: Some(DEVICE_NS),
                bytes: Some(bytes),
                ..Stop::default()
            },
            ..self.timing("device-reads", start_bytes, bytes)
        };
        let wanted = [(self.times_cache, cached), (self.times_device, device)];
        let workloads = wanted.into_iter().filter(|(is_wanted, _)| *is_wanted);
        let workloads = workloads.map(|(_, workload)| workload).collect();
        Ok(plan_of(NAME, context, None, workloads))
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
        Some(NextLoad {
            load: Box::new(load),
            printer: NextPrinter::OwnPrinter,
        })
    }

    fn printer(&self, plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        let path = (!self.is_quiet).then_some(self.path.as_str());
        Box::new(TimingPrinter::new(
            plan,
            path,
            self.is_direct,
            self.offset_gib,
        ))
    }
}
