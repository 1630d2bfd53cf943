//! ioping 1.3: its arguments, and the plan that they stand for.

mod print;
mod suffix;
#[cfg(test)]
mod tests;

use crate::command::{CommandLine, GivenArguments, LongDashes};
use crate::drop_in::{DropIn, DropInOption, Started};
use crate::load::{DropInLoad, LoadHead, LoadTarget, PlanContext};
use crate::plan::{OPEN_DSYNC, OPEN_SYNC, RANDOM, SECOND, span_of, sync_every};
use crate::printer::{DropInError, ToolPrinter, ToolText};
use diskproof_model::measurement::OpKind;
use diskproof_model::ping::PingPlan;
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, Ping, Plan, Span, Stop, SyncCall, SyncPolicy,
    Task, Workload,
};
use diskproof_model::shape::AccessAdvice;
use diskproof_model::stream::Streams;
use diskproof_model::target::{TargetIdentity, TargetKind};
use print::{IopingPrinter, OutputForm, ShownTarget};
use std::sync::LazyLock;
use suffix::{count, rate, size, time};

/// The entry of ioping in [`crate::drop_ins`].
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("ioping.txt"), start));

/// ioping's default of -s.
const BLOCK_BYTES: u64 = 4096;
/// ioping's default of -s with -L.
const LINEAR_BLOCK_BYTES: u64 = 256 << 10;
/// ioping's default of -S.
const WORK_BYTES: u64 = 1 << 20;
/// ioping's default of -S with -R.
const RAPID_WORK_BYTES: u64 = 64 << 20;
/// ioping's default of -w with -R.
const RAPID_NS: u64 = 3 * SECOND;
/// The kernel splits larger requests (MAX_RW_COUNT).
const BLOCK_BYTES_MAX: u64 = 1 << 30;
/// A file or a device is overwritten only if writing was requested this often, as in ioping.
const WRITE_FLAGS_NEEDED: usize = 3;
/// Scratch files are made of pages.
const PAGE_BYTES: u64 = 4096;

/// The load that a command line requests.
#[derive(Debug, Clone, PartialEq)]
struct IopingLoad {
    head: LoadHead,
    /// The workload, without its span.
    workload: Workload,
    /// The span begins here, in bytes (-o).
    offset_bytes: u64,
    /// The length of the span (-S); `None` where the target decides.
    work_bytes: Option<u64>,
    /// The length of the span in a directory without -S.
    default_work_bytes: u64,
    /// The first requests, which are not counted (-a).
    warmup_requests: u64,
    seed: Option<u64>,
    /// The number of times that writing was requested: a file or a device needs three (-WWW).
    write_flags: usize,
    form: OutputForm,
}

/// Turns the arguments into a load, or into the text or error that ioping prints.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let help = DROP_IN.help(33, form);
    if arguments.is_empty() {
        return Err(DropInError::Printed(ToolText::out(help)));
    }
    let command = CommandLine {
        long_dashes: LongDashes::OneOrTwo,
        after_option_error: &format!("\n{help}"),
        ..CommandLine::new(&help)
    };
    DROP_IN.start_load(arguments, command, read)
}

fn form(option: &DropInOption) -> String {
    let value = match option.value {
        "" => String::new(),
        value if value.starts_with('[') => format!(" {value}"),
        value => format!(" <{value}>"),
    };
    format!("      {}, -{}{value}", option.short, option.long)
}

fn read(given: &GivenArguments) -> Result<IopingLoad, String> {
    let path = match given.operands.as_slice() {
        [] => return Err("no destination specified".to_owned()),
        [path] => path,
        _ => return Err("more than one destination specified".to_owned()),
    };
    let is_linear = given.has("L");
    let is_rapid = given.has("R");
    let default_block_bytes = if is_linear {
        LINEAR_BLOCK_BYTES
    } else {
        BLOCK_BYTES
    };
    let block_bytes = above_zero(given, "s", size)?.unwrap_or(default_block_bytes);
    if block_bytes > BLOCK_BYTES_MAX {
        let text = format!("this platform supports requests {BLOCK_BYTES_MAX} bytes at most");
        return Err(text);
    }
    let default_work_bytes = if is_rapid {
        RAPID_WORK_BYTES
    } else {
        WORK_BYTES
    };
    if given.read("b", count)?.unwrap_or(0) > 1 {
        return Err("-b above 1 is not supported; use -i 0 -c COUNT for one burst".to_owned());
    }
    let deadline_ns = match given.read("w", time)? {
        Some(0) => None,
        None if is_rapid => Some(RAPID_NS),
        deadline_ns => deadline_ns,
    };
    let interval_ns = read_interval_ns(given, block_bytes, is_rapid)?;
    let write_flags = given.count("W") + given.count("G");
    let work_bytes = above_zero(given, "S", size)?;
    let offset_bytes = given.read("o", size)?.unwrap_or(0);
    let stop = Stop {
        time_ns: deadline_ns,
        ops: above_zero(given, "c", count)?,
        ..Stop::default()
    };
    Ok(IopingLoad {
        head: LoadHead {
            writes_target: write_flags > 0,
            ..LoadHead::new(LoadTarget::Existing(path.into()), notes(given))
        },
        workload: workload(given, block_bytes as u32, interval_ns, stop),
        offset_bytes,
        work_bytes,
        default_work_bytes: default_work_bytes.max(block_bytes),
        warmup_requests: given.read("a", count)?.unwrap_or(1),
        seed: above_zero(given, "e", read_seed)?,
        write_flags,
        form: read_output_form(given, interval_ns)?,
    })
}

fn read_output_form(given: &GivenArguments, interval_ns: u64) -> Result<OutputForm, String> {
    Ok(OutputForm {
        is_quiet: given.has("R") || given.has("q") || given.has("B"),
        is_batch: given.has("B"),
        is_json: given.has("J"),
        time_format: time_format(given),
        period_requests: above_zero(given, "p", count)?,
        period_ns: above_zero(given, "P", time)?,
        interval_ns,
        valid_min_ns: given.read("t", time)?.unwrap_or(0),
        valid_max_ns: given.read("T", time)?.unwrap_or(u64::MAX),
    })
}

/// The requests, until these limits.
fn workload(
    given: &GivenArguments,
    block_bytes: u32,
    interval_ns: u64,
    mut stop: Stop,
) -> Workload {
    let read_permille = if given.has("G") {
        500
    } else if given.has("W") {
        0
    } else {
        1000
    };
    let mut rate = None;
    if interval_ns > 0 {
        rate = Some(1e9 / interval_ns as f64);
        // As in ioping, no wait follows the last request that is due in time.
        if let Some(time_ns) = stop.time_ns {
            let in_time = time_ns.div_ceil(interval_ns);
            stop.ops = Some(in_time.min(stop.ops.unwrap_or(u64::MAX)));
        }
    }
    // The most that is written, which the gate announces.
    if let Some(requests) = stop.ops
        && read_permille < 1000
    {
        stop.bytes = Some(requests.saturating_mul(u64::from(block_bytes)));
    }
    Workload {
        streams: Streams::with_reads(read_permille),
        access: if given.has("L") {
            Access::Sequential
        } else {
            RANDOM
        },
        block_bytes,
        stop,
        rate,
        sync: if read_permille == 1000 {
            SyncPolicy::None
        } else {
            sync_of_writes(given)
        },
        cache: cache_policy(given),
        engine: if given.has("A") {
            EngineChoice::Fixed(EngineKind::Aio)
        } else {
            EngineChoice::Auto
        },
        ..Workload::named("ping")
    }
}

/// How writes are made durable: by fdatasync, unless a flag of the file does it or the page cache
/// is wanted.
fn sync_of_writes(given: &GivenArguments) -> SyncPolicy {
    if given.has("Y") {
        OPEN_SYNC
    } else if given.has("y") {
        OPEN_DSYNC
    } else if given.has("C") {
        SyncPolicy::None
    } else {
        sync_every(1, SyncCall::Fdatasync)
    }
}

fn cache_policy(given: &GivenArguments) -> CachePolicy {
    if given.has("D") {
        CachePolicy::Direct
    } else if given.has("C") {
        CachePolicy::Cached
    } else {
        CachePolicy::Buffered
    }
}

/// The value that `read` makes of an option; `None` for 0, which means the same as no option.
fn above_zero(
    given: &GivenArguments,
    name: &str,
    read: fn(&str) -> Result<u64, String>,
) -> Result<Option<u64>, String> {
    match given.read(name, read)? {
        None | Some(0) => Ok(None),
        number => Ok(number),
    }
}

/// Reads a seed as strtoull(3) with base 0 does: a text that is no number is 0.
fn read_seed(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    Ok(number.unwrap_or(0))
}

/// The time from request to request: the longest that one of the options asks for.
fn read_interval_ns(
    given: &GivenArguments,
    block_bytes: u64,
    is_rapid: bool,
) -> Result<u64, String> {
    let speed_ns = match above_zero(given, "l", size)? {
        Some(speed) => (block_bytes as f64 * 1e9 / speed as f64) as u64,
        None => 0,
    };
    let rate_ns = match given.read("r", rate)? {
        Some(rate) if rate > 0.0 => (1e9 / rate) as u64,
        _ => 0,
    };
    let is_limited = given.has("l") || given.has("r");
    let base_ns = match given.read("i", time)? {
        Some(ns) => ns,
        None if is_rapid || is_limited => 0,
        None => SECOND,
    };
    Ok(base_ns.max(speed_ns).max(rate_ns))
}

fn time_format(given: &GivenArguments) -> Option<String> {
    if given.has("J") {
        Some("%FT%T%z".to_owned())
    } else if given.has("I") {
        Some(given.value("I").unwrap_or("%b %d %T").to_owned())
    } else {
        None
    }
}

fn notes(given: &GivenArguments) -> Vec<String> {
    let mut notes = given.notes.clone();
    if given.has("G") {
        notes.push("the first request is a read; ioping starts with a write".to_owned());
    }
    let writes = given.has("W") || given.has("G");
    if writes && (given.has("Y") || given.has("y")) && !given.has("C") {
        notes.push("the time of a write includes no fdatasync after O_SYNC or O_DSYNC".to_owned());
    }
    notes
}

impl IopingLoad {
    /// The part of the target that requests go to.
    fn place(&self, target: &TargetIdentity) -> Result<RequestPlace, DropInError> {
        let is_directory = target.kind == TargetKind::Directory;
        let work_bytes = match self.work_bytes {
            Some(bytes) => bytes,
            None if is_directory => self.default_work_bytes,
            None => target.size_bytes.saturating_sub(self.offset_bytes),
        };
        let end = self.offset_bytes.saturating_add(work_bytes);
        if !is_directory && end > target.size_bytes {
            return Err(DROP_IN.target_error("target is too small for this"));
        }
        if u64::from(self.workload.block_bytes) > work_bytes {
            let text = "request size is too big for this target";
            return Err(DROP_IN.target_error(text));
        }
        let mut scratch_bytes = None;
        if is_directory {
            scratch_bytes = Some(end.next_multiple_of(PAGE_BYTES));
        }
        Ok(RequestPlace {
            span: span_of(self.offset_bytes, work_bytes),
            scratch_bytes,
        })
    }
}

/// The span of the target that requests go to.
struct RequestPlace {
    span: Span,
    /// The size of the scratch file; `None` on an existing target.
    scratch_bytes: Option<u64>,
}

impl DropInLoad for IopingLoad {
    fn head(&self) -> &LoadHead {
        &self.head
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        let is_directory = context.target.kind == TargetKind::Directory;
        if !is_directory && (1..WRITE_FLAGS_NEEDED).contains(&self.write_flags) {
            let text = "think twice, then use -WWW to shred this target";
            return Err(DROP_IN.target_error(text));
        }
        let place = self.place(context.target)?;
        let seeded = context.seeded(self.seed);
        let mut workload = Workload {
            span: place.span,
            ..self.workload.clone()
        };
        workload.shape.threads.ordinary_pages = true;
        // As the tool does, also with -L: nothing is read ahead, but in files with -C.
        let is_device = context.target.kind == TargetKind::BlockDevice;
        let keeps_order = workload.cache == CachePolicy::Cached && !is_device;
        workload.shape.threads.advice = Some(if keeps_order {
            AccessAdvice::Normal
        } else {
            AccessAdvice::Random
        });
        let requests = PingPlan {
            interval_ns: self.form.interval_ns,
            warmup_requests: self.warmup_requests,
            abort_above_ns: None,
            idle_ns: Vec::new(),
        };
        Ok(Plan {
            tasks: vec![Task::Ping(Box::new(Ping { workload, requests }))],
            ..DROP_IN.plan(&seeded, place.scratch_bytes, Vec::new())
        })
    }

    fn printer(&self, _plan: &Plan, target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        let direction = match self.workload.streams.permille(OpKind::Read) {
            0 => " written",
            1000 => " read",
            _ => "",
        };
        Box::new(IopingPrinter {
            form: self.form.clone(),
            target: ShownTarget::new(&self.head.path().to_string(), target),
            direction,
            block_bytes: u64::from(self.workload.block_bytes),
            ..IopingPrinter::default()
        })
    }
}
