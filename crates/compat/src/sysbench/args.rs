//! Arguments of sysbench to a plan.

use super::cpu::CpuPrinter;
use super::modes::{EMULATES, MODES, ModeKind, NAME, TestMode};
use super::options::OPTIONS;
use super::print::{FileioPrinter, ShownSettings};
use crate::drop_in::{Started, Treatment};
use crate::error::DropInError;
use crate::getopt::{GivenArguments, OptionForms, parse};
use crate::load::{DropInLoad, LoadTarget, PlanContext};
use crate::plan::plan_of;
use crate::primes::PrimeRequest;
use crate::printer::{ToolPrinter, ToolText};
use diskproof_model::plan::{
    Access, CachePolicy, Distribution, EngineChoice, EngineKind, Layout, Plan, Span, Stop,
    SyncCall, SyncPolicy, Workload, WriteFlag,
};
use diskproof_model::primes::PrimeLoad;
use diskproof_model::target::TargetIdentity;
use std::fmt::Write as _;
use std::path::PathBuf;

const SECOND: u64 = 1_000_000_000;
const THREADS_MAX: u64 = 1024;
const BLOCK_BYTES_MAX: u64 = 1 << 30;
const TIME_MAX: u64 = 100 * 86_400;
const PRIME_MAX: u64 = 1 << 40;
const ENDLESS: &str = "--time=0 without --events never ends; set one of them";

/// What the arguments say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FileioLoad {
    mode: TestMode,
    threads: u32,
    depth: u32,
    block_bytes: u32,
    total_bytes: u64,
    limits: Limits,
    read_permille: u16,
    sync: SyncPolicy,
    cache: CachePolicy,
    engine: EngineKind,
    seed: Option<u64>,
    shown: ShownSettings,
    notes: Vec<String>,
}

/// Reads the arguments.
pub(super) fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let usage = |text: String| DropInError::Usage(format!("FATAL: {text}\n"));
    let given = parse(OPTIONS, arguments, OptionForms::Long).map_err(usage)?;
    if given.has("version") {
        return Ok(Started::version(EMULATES));
    }
    let mut words: Vec<&str> = given.value("test").into_iter().collect();
    words.extend(given.operands.iter().map(String::as_str));
    match words.as_slice() {
        _ if given.has("help") => Ok(text_only(help())),
        ["fileio", "help"] => Ok(text_only(help())),
        ["fileio", step @ ("prepare" | "cleanup")] => Ok(text_only(format!(
            "{EMULATES} ({step}: nothing to do, 'run' makes and removes its own file)\n\n"
        ))),
        ["fileio", "run"] => Ok(Started::Load(Box::new(read(&given).map_err(usage)?))),
        ["fileio", ..] => Err(usage("use prepare, run, cleanup or help".to_owned())),
        ["cpu", "run"] => Ok(Started::Primes(Box::new(read_cpu(&given).map_err(usage)?))),
        ["cpu", "help"] => Ok(text_only(help())),
        ["cpu", step @ ("prepare" | "cleanup")] => Err(usage(format!(
            "'cpu' test does not implement the '{step}' command."
        ))),
        ["cpu"] => Err(usage(
            "The 'cpu' test requires a command argument. See 'sysbench cpu help'".to_owned(),
        )),
        ["cpu", other, ..] => Err(usage(format!("Unknown command: {other}"))),
        [] => Err(DropInError::Usage(help())),
        [other, ..] => Err(usage(format!(
            "the test '{other}' measures no disk and is not supported; use the real sysbench"
        ))),
    }
}

fn text_only(stdout: String) -> Started {
    Started::Text(ToolText {
        stdout,
        stderr: String::new(),
    })
}

fn help() -> String {
    let mut text = "Usage:\n  sysbench [options]... fileio [prepare|run|cleanup]\n  sysbench \
                    [options]... cpu run\n\n"
        .to_owned();
    for option in OPTIONS {
        if option.treatment == Treatment::Carried {
            let form = format!("--{}={}", option.long, option.value);
            let _ = writeln!(text, "  {form:<29} {}", option.help);
        }
    }
    text
}

fn number(
    given: &GivenArguments,
    names: &[&str],
    range: std::ops::RangeInclusive<u64>,
) -> Result<Option<u64>, String> {
    for name in names {
        if let Some(text) = given.value(name) {
            let number = bytes(text).filter(|number| range.contains(number));
            return number.map(Some).ok_or_else(|| {
                let (least, most) = (range.start(), range.end());
                format!("--{name}={text}: use a number from {least} to {most}")
            });
        }
    }
    Ok(None)
}

/// `4G`, `8K`, `16384`.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match &text[digits.len()..] {
        "" | "B" | "b" => 1,
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        "T" | "t" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// A switch such as `--file-fsync-end=no`.
fn switch(given: &GivenArguments, name: &str, default: bool) -> Result<bool, String> {
    match (given.has(name), given.value(name)) {
        (false, _) => Ok(default),
        (true, None | Some("on" | "yes" | "1")) => Ok(true),
        (true, Some("off" | "no" | "0")) => Ok(false),
        (true, Some(other)) => Err(format!("invalid option: --{name}={other}")),
    }
}

fn read(given: &GivenArguments) -> Result<FileioLoad, String> {
    let mode = given
        .value("file-test-mode")
        .ok_or("Missing required argument: --file-test-mode")?;
    let mode = MODES.iter().find(|known| known.name == mode).copied();
    let mode =
        mode.ok_or("Invalid IO operations mode; use seqwr, seqrewr, seqrd, rndrd, rndwr, rndrw")?;
    let threads = number(given, &["threads", "num-threads"], 1..=THREADS_MAX)?.unwrap_or(1);
    let files = SysbenchFiles::read(given)?;
    let backlog = number(given, &["file-async-backlog"], 1..=65_536)?.unwrap_or(128);
    let (engine, depth, io_mode) = match given.value("file-io-mode") {
        None | Some("sync") => (EngineKind::Sync, 1, "synchronous"),
        Some("async") => (EngineKind::Aio, backlog, "asynchronous"),
        Some("mmap") => (EngineKind::Mmap, 1, "fast mmaped"),
        Some(other) => return Err(format!("unknown I/O mode: {other}")),
    };
    let flags = ExtraFlags::read(given.value("file-extra-flags").unwrap_or_default())?;
    let ratio = ratio(given)?;
    let read_permille = match mode.kind {
        ModeKind::Read => 1000,
        ModeKind::Create | ModeKind::Write => 0,
        ModeKind::Mix => (1000.0 * ratio / (1.0 + ratio)).round() as u16,
    };
    let syncs = Syncs::read(given)?;
    let limits = Limits::read(given)?;
    if limits.is_endless() {
        return Err(ENDLESS.to_owned());
    }
    let seed = above_zero(number(given, &["rand-seed"], 0..=1 << 53)?);
    Ok(FileioLoad {
        mode,
        threads: threads as u32,
        depth: depth as u32,
        block_bytes: files.block_bytes as u32,
        total_bytes: files.total_bytes / files.block_bytes * files.block_bytes,
        limits,
        read_permille,
        sync: match (read_permille, flags.sync) {
            (1000, _) => SyncPolicy::None,
            (_, Some(flag)) => SyncPolicy::WithWrite { flag },
            (_, None) => syncs.policy(read_permille),
        },
        cache: match flags.is_direct {
            true => CachePolicy::Direct,
            false => CachePolicy::Cached,
        },
        engine,
        seed,
        shown: ShownSettings {
            mode,
            threads,
            seed,
            flags: flags.text,
            files: files.count,
            file_bytes: files.total_bytes / files.count,
            total_bytes: files.total_bytes / files.count * files.count,
            block_bytes: files.block_bytes,
            events: limits.events.unwrap_or(0),
            rate: limits.rate,
            ratio,
            syncs: syncs.text(),
            io_mode,
            percentile: percentile(given)?,
            histogram: switch(given, "histogram", false)?,
            interval_ns: interval_ns(given)?,
        },
        notes: notes(given, flags.is_direct, read_permille, threads),
    })
}

/// The test cpu.
fn read_cpu(given: &GivenArguments) -> Result<PrimeRequest, String> {
    if let Some(option) = given
        .options
        .iter()
        .find(|given| given.name.starts_with("file-"))
    {
        return Err(format!("invalid option: --{}", option.name));
    }
    if above_zero(number(given, &["rate", "tx-rate"], 0..=1 << 40)?).is_some() {
        return Err("--rate does not apply to the test cpu; omit it".to_owned());
    }
    let threads = number(given, &["threads", "num-threads"], 1..=THREADS_MAX)?.unwrap_or(1);
    let max_prime = number(given, &["cpu-max-prime"], 1..=PRIME_MAX)?.unwrap_or(10_000);
    let limits = Limits::read(given)?;
    if limits.is_endless() {
        return Err(ENDLESS.to_owned());
    }
    let interval_ns = interval_ns(given)?;
    let printer = CpuPrinter {
        threads,
        max_prime,
        interval_ns,
        seed: above_zero(number(given, &["rand-seed"], 0..=1 << 53)?),
        percentile: percentile(given)?,
        histogram: switch(given, "histogram", false)?,
    };
    let mut notes = given.notes.clone();
    notes.push("the test cpu uses no disk, so it is not saved in the history".to_owned());
    Ok(PrimeRequest {
        load: PrimeLoad {
            threads: threads as u32,
            max_prime,
            time_ns: limits.time_ns,
            events: limits.events,
            interval_ns,
        },
        printer: Box::new(printer),
        notes,
    })
}

fn percentile(given: &GivenArguments) -> Result<u64, String> {
    Ok(number(given, &["percentile"], 0..=100)?.unwrap_or(95))
}

fn interval_ns(given: &GivenArguments) -> Result<Option<u64>, String> {
    let seconds = above_zero(number(given, &["report-interval"], 0..=TIME_MAX)?);
    Ok(seconds.map(|seconds| seconds * SECOND))
}

fn above_zero(number: Option<u64>) -> Option<u64> {
    number.filter(|number| *number > 0)
}

/// Reads per write.
fn ratio(given: &GivenArguments) -> Result<f64, String> {
    let Some(text) = given.value("file-rw-ratio") else {
        return Ok(1.5);
    };
    let ratio = text.parse().ok().filter(|ratio| *ratio >= 0.0);
    ratio.ok_or_else(|| format!("--file-rw-ratio={text}: not a ratio"))
}

/// The files that sysbench would use.
struct SysbenchFiles {
    count: u64,
    block_bytes: u64,
    total_bytes: u64,
}

impl SysbenchFiles {
    fn read(given: &GivenArguments) -> Result<Self, String> {
        let block_bytes = number(given, &["file-block-size"], 1..=BLOCK_BYTES_MAX)?;
        let sizes = Self {
            count: number(given, &["file-num"], 1..=1_000_000)?.unwrap_or(128),
            block_bytes: block_bytes.unwrap_or(16_384),
            total_bytes: number(given, &["file-total-size"], 1..=1 << 50)?.unwrap_or(2 << 30),
        };
        match sizes.total_bytes / sizes.count < sizes.block_bytes {
            true => Err("a file is smaller than a block; use fewer files".to_owned()),
            false => Ok(sizes),
        }
    }
}

/// When a run ends, and how fast it may be.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Limits {
    time_ns: Option<u64>,
    events: Option<u64>,
    rate: Option<f64>,
}

impl Limits {
    fn read(given: &GivenArguments) -> Result<Self, String> {
        let seconds = number(given, &["time", "max-time"], 0..=TIME_MAX)?.unwrap_or(10);
        let events = above_zero(number(given, &["events", "max-requests"], 0..=1 << 53)?);
        let rate = above_zero(number(given, &["rate", "tx-rate"], 0..=1 << 40)?);
        Ok(Self {
            time_ns: above_zero(Some(seconds)).map(|seconds| seconds * SECOND),
            events,
            rate: rate.map(|rate| rate as f64),
        })
    }
}

impl Limits {
    fn is_endless(&self) -> bool {
        self.time_ns.is_none() && self.events.is_none()
    }
}

fn notes(given: &GivenArguments, is_direct: bool, read_permille: u16, threads: u64) -> Vec<String> {
    let mut notes = given.notes.clone();
    notes.push("one unnamed file replaces the prepared ones".to_owned());
    if !is_direct {
        let text = "the page cache may answer; add --file-extra-flags=direct to reach the disk";
        notes.push(text.to_owned());
    }
    if read_permille < 1000 {
        notes.push("each sync covers the one file, and syncs do not count as events".to_owned());
    }
    if threads > 1 {
        notes.push("standard deviations between threads (nan) are not measured".to_owned());
    }
    notes
}

/// --file-extra-flags.
struct ExtraFlags {
    is_direct: bool,
    sync: Option<WriteFlag>,
    text: String,
}

impl ExtraFlags {
    fn read(list: &str) -> Result<Self, String> {
        let (mut is_direct, mut sync, mut shown) = (false, None, Vec::new());
        for flag in list.split(',').filter(|flag| !flag.is_empty()) {
            match flag {
                "direct" => {
                    is_direct = true;
                    shown.push("directio");
                }
                "sync" => {
                    sync = Some(WriteFlag::OpenSync);
                    shown.push("sync");
                }
                "dsync" => {
                    sync = Some(WriteFlag::OpenDsync);
                    shown.push("dsync");
                }
                other => return Err(format!("Invalid value for file-extra-flags: '{other}'")),
            }
        }
        Ok(Self {
            is_direct,
            sync,
            text: match shown.is_empty() {
                true => "(none)".to_owned(),
                false => shown.join(" "),
            },
        })
    }
}

/// When writes are made durable.
struct Syncs {
    every: u64,
    all: bool,
    at_end: bool,
    call: SyncCall,
}

impl Syncs {
    fn read(given: &GivenArguments) -> Result<Self, String> {
        Ok(Self {
            every: number(given, &["file-fsync-freq"], 0..=1_000_000_000)?.unwrap_or(100),
            all: switch(given, "file-fsync-all", false)?,
            at_end: switch(given, "file-fsync-end", true)?,
            call: match given.value("file-fsync-mode") {
                None | Some("fsync") => SyncCall::Fsync,
                Some("fdatasync") => SyncCall::Fdatasync,
                Some(other) => return Err(format!("invalid fsync mode: {other}")),
            },
        })
    }

    /// sysbench counts reads and writes; the engine counts writes.
    fn policy(&self, read_permille: u16) -> SyncPolicy {
        let share = f64::from(1000 - read_permille) / 1000.0;
        let writes = (self.every as f64 * share).round().max(1.0) as u32;
        match (self.all, self.every, self.at_end) {
            (true, _, _) => SyncPolicy::Every {
                writes: 1,
                call: self.call,
            },
            (false, 0, false) => SyncPolicy::None,
            (false, 0, true) => SyncPolicy::AtEnd,
            (false, _, _) => SyncPolicy::Every {
                writes,
                call: self.call,
            },
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if self.all {
            text.push_str("Calling fsync() after each write operation.\n");
        } else if self.every > 0 {
            let _ = writeln!(
                text,
                "Periodic FSYNC enabled, calling fsync() each {} requests.",
                self.every
            );
        }
        if self.at_end && !self.all {
            text.push_str("Calling fsync() at the end of test, Enabled.\n");
        }
        text
    }
}

impl DropInLoad for FileioLoad {
    fn target(&self) -> LoadTarget {
        LoadTarget::Existing(PathBuf::from("."))
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        let block_bytes = u64::from(self.block_bytes);
        let by_events = self
            .limits
            .events
            .map(|events| events.saturating_mul(block_bytes));
        let workload = Workload {
            read_permille: self.read_permille,
            access: match self.mode.is_random {
                true => Access::Random {
                    distribution: Distribution::Uniform,
                },
                false => Access::Sequential,
            },
            block_bytes: self.block_bytes,
            depth: self.depth,
            workers: self.threads,
            span: Span {
                start_bytes: 0,
                length_bytes: Some(self.total_bytes),
            },
            stop: Stop {
                time_ns: self.limits.time_ns,
                bytes: by_events,
                ..Stop::default()
            },
            rate: self.limits.rate,
            sync: self.sync,
            cache: self.cache,
            engine: EngineChoice::Fixed(self.engine),
            layout: match self.mode.kind {
                ModeKind::Create => Layout::Provides,
                _ => Layout::Needed,
            },
            ..Workload::named(self.mode.name)
        };
        let context = PlanContext {
            seed: self.seed.unwrap_or(context.seed),
            ..*context
        };
        Ok(plan_of(
            NAME,
            &context,
            Some(self.total_bytes),
            vec![workload],
        ))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn printer(&self, _plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(FileioPrinter::new(self.shown.clone()))
    }
}
