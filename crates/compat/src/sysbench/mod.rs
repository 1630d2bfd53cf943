//! The tests fileio and cpu of sysbench 1.0: their arguments, and the load that they stand for.

mod print;
#[cfg(test)]
mod tests;

use crate::command::{GivenArguments, LongDashes, parse};
use crate::drop_in::{DropIn, DropInOption, PrintedText, Started};
use crate::load::{DropInLoad, LoadHead, LoadTarget, PlanContext, PrimeRequest};
use crate::plan::{
    OPEN_DSYNC, OPEN_SYNC, SECOND, THREADS_MAX, blocking_workload, span_of, sync_every,
};
use crate::printer::{DropInError, ToolPrinter, ToolText};
use crate::tool_totals::OpsSoFar;
use diskproof_model::plan::{
    CachePolicy, EngineChoice, EngineKind, Layout, Plan, Stop, SyncCall, SyncPolicy, Workload,
};
use diskproof_model::primes::PrimeLoad;
use diskproof_model::shape::LoadShape;
use diskproof_model::stream::Streams;
use diskproof_model::target::TargetIdentity;
use print::{CpuPrinter, FileioPrinter, MODES, ModeKind, RunSettings, ShownSettings};
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// The entry of sysbench in [`crate::drop_ins`].
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("sysbench.txt"), start));

/// The largest block of --file-block-size: it has to fit into a buffer of each thread.
const BLOCK_BYTES_MAX: u64 = 1 << 30;
/// The longest time in seconds: 100 days, which in nanoseconds is far from the end of 64 bits.
const TIME_MAX: u64 = 100 * 86_400;
/// The largest number of --cpu-max-prime. A single event takes hours long before it.
const PRIME_MAX: u64 = 1 << 40;
/// The largest count and seed: a JSON number beyond it is not exact.
const COUNT_MAX: u64 = 1 << 53;
/// The most events per second of --rate: more than any machine starts.
const RATE_MAX: u64 = 1 << 40;
/// The largest sum of the files: a PiB.
const TOTAL_BYTES_MAX: u64 = 1 << 50;
/// The unit in which the scratch file is filled, for which any filesystem has room.
const PAGE_BYTES: u64 = 4096;
/// The most files. One file of ours replaces them.
const FILES_MAX: u64 = 1_000_000;

/// The load that a command line requests.
#[derive(Debug, Clone, PartialEq)]
struct FileioLoad {
    head: LoadHead,
    workload: Workload,
    total_bytes: u64,
    shown: ShownSettings,
}

/// Turns the arguments into a load, or into the text or error that sysbench prints.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let given = parse(DROP_IN.options, arguments, LongDashes::Two).map_err(fatal)?;
    if given.has("version") {
        return Ok(Started::version(DROP_IN.emulates));
    }
    let mut words: Vec<&str> = given.value("test").into_iter().collect();
    words.extend(given.operands.iter().map(String::as_str));
    match words.as_slice() {
        _ if given.prints == Some(PrintedText::Help) => Ok(Started::help(&help())),
        ["fileio" | "cpu", "help"] => Ok(Started::help(&help())),
        ["fileio", step @ ("prepare" | "cleanup")] => Ok(Started::text(format!(
            "{} ({step}: nothing to do, 'run' makes and removes its own file)\n\n",
            DROP_IN.emulates
        ))),
        ["fileio", "run"] if !given.has("file-test-mode") => Err(fatal(format!(
            "Missing required argument: --file-test-mode\n\n{}",
            help()
        ))),
        ["fileio", "run"] => match read(&given) {
            Ok(load) => Ok(Started::Load(Box::new(load))),
            Err(why) => Err(fatal(why)),
        },
        ["cpu", "run"] => match read_cpu(&given) {
            Ok(request) => Ok(Started::Primes(Box::new(request))),
            Err(why) => Err(fatal(why)),
        },
        ["cpu", step @ ("prepare" | "cleanup")] => Err(command_error(&format!(
            "'cpu' test does not implement the '{step}' command."
        ))),
        [test @ ("fileio" | "cpu")] => Err(command_error(&format!(
            "The '{test}' test requires a command argument. See 'sysbench {test} help'"
        ))),
        ["fileio" | "cpu", other, ..] => Err(command_error(&format!("Unknown command: {other}"))),
        // The tool then reads a script from stdin, and an empty one is no error.
        [] => Ok(Started::help(&help())),
        [other, ..] => Err(fatal(format!(
            "the test '{other}' measures no disk and is not supported; use the real sysbench"
        ))),
    }
}

fn fatal(why: String) -> DropInError {
    let text = format!("{}\n\nFATAL: {why}\n", DROP_IN.emulates);
    DropInError::Printed(ToolText::out(text))
}

/// The errors of sysbench's commands are on stderr, and its name on stdout.
fn command_error(text: &str) -> DropInError {
    DropInError::Printed(ToolText {
        stdout: format!("{}\n\n", DROP_IN.emulates),
        stderr: format!("{text}\n"),
    })
}

fn help() -> String {
    DROP_IN.help(32, |option: &DropInOption| {
        format!("  --{}={}", option.long, option.value)
    })
}

/// The value of an option, or the default.
fn number(
    given: &GivenArguments,
    name: &str,
    range: RangeInclusive<u64>,
    default: u64,
) -> Result<u64, String> {
    let kib = 1 << 10;
    let units = [
        ("", 1),
        ("b", 1),
        ("k", kib),
        ("m", kib * kib),
        ("g", kib * kib * kib),
        ("t", kib * kib * kib * kib),
    ];
    Ok(given.scaled(name, &units, range)?.unwrap_or(default))
}

/// An option whose old name still works.
struct RenamedOption {
    old: &'static str,
    name: &'static str,
    /// The value of the old name by default, and the least of both.
    unset: u64,
    /// The value of the new name by default.
    default: u64,
    most: u64,
}

const THREADS: RenamedOption = RenamedOption {
    old: "num-threads",
    name: "threads",
    unset: 1,
    default: 1,
    most: THREADS_MAX,
};
const EVENTS: RenamedOption = RenamedOption {
    old: "max-requests",
    name: "events",
    unset: 0,
    default: 0,
    most: COUNT_MAX,
};
const TIME: RenamedOption = RenamedOption {
    old: "max-time",
    name: "time",
    unset: 0,
    default: 10,
    most: TIME_MAX,
};
const RATE: RenamedOption = RenamedOption {
    old: "tx-rate",
    name: "rate",
    unset: 0,
    default: 0,
    most: RATE_MAX,
};

impl RenamedOption {
    /// The value. As in sysbench, the old name wins over the new one, unless its value is the one
    /// that it has by default. A warning is added where the old name wins.
    fn read(&self, given: &GivenArguments, warnings: &mut String) -> Result<u64, String> {
        let (old, name) = (self.old, self.name);
        let number_of_old = number(given, old, self.unset..=self.most, self.unset)?;
        if number_of_old == self.unset {
            return number(given, name, self.unset..=self.most, self.default);
        }
        let _ = writeln!(
            warnings,
            "WARNING: --{old} is deprecated, use --{name} instead"
        );
        Ok(number_of_old)
    }
}

/// The position of a switch such as `--file-fsync-end=no`; `None` where it was not given.
fn switch(given: &GivenArguments, name: &str) -> Result<Option<SwitchPosition>, String> {
    if !given.has(name) {
        return Ok(None);
    }
    match given.value(name) {
        None | Some("on" | "yes" | "1") => Ok(Some(SwitchPosition::On)),
        Some("off" | "no" | "0") => Ok(Some(SwitchPosition::Off)),
        Some(other) => Err(format!("invalid option: --{name}={other}")),
    }
}

/// The position of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SwitchPosition {
    On,
    Off,
}

fn run_settings(given: &GivenArguments) -> Result<RunSettings, String> {
    // sysbench prints its warnings in this order.
    let mut warnings = String::new();
    let threads = THREADS.read(given, &mut warnings)?;
    let events = EVENTS.read(given, &mut warnings)?;
    let seconds = TIME.read(given, &mut warnings)?;
    let rate = RATE.read(given, &mut warnings)?;
    let interval_s = number(given, "report-interval", 0..=TIME_MAX, 0)?;
    let settings = RunSettings {
        warnings,
        threads,
        seed: above_zero(number(given, "rand-seed", 0..=COUNT_MAX, 0)?),
        time_ns: above_zero(seconds * SECOND),
        events: above_zero(events),
        rate: above_zero(rate),
        interval_ns: above_zero(interval_s * SECOND),
        percentile: number(given, "percentile", 0..=100, 95)?,
        prints_histogram: switch(given, "histogram")? == Some(SwitchPosition::On),
    };
    if settings.time_ns.is_none() && settings.events.is_none() {
        return Err("--time=0 without --events never ends; set one of them".to_owned());
    }
    Ok(settings)
}

/// The number; `None` for 0, with which sysbench means that there is no limit.
fn above_zero(number: u64) -> Option<u64> {
    if number > 0 { Some(number) } else { None }
}

/// The files of a test, and its requests to them.
struct TestFiles {
    count: u64,
    file_bytes: u64,
    /// The block size of the command line.
    block_bytes: u64,
    /// The size of a request: sysbench cuts it at the end of its file.
    request_bytes: u64,
    /// Bytes of the whole requests that fit into all files together.
    used_bytes: u64,
}

fn read_test_files(given: &GivenArguments) -> Result<TestFiles, String> {
    let block_bytes = number(given, "file-block-size", 1..=BLOCK_BYTES_MAX, 16_384)?;
    let count = number(given, "file-num", 1..=FILES_MAX, 128)?;
    let total_bytes = number(given, "file-total-size", 1..=TOTAL_BYTES_MAX, 2 << 30)?;
    let file_bytes = total_bytes / count;
    if file_bytes == 0 {
        let text = format!("--file-total-size={total_bytes}: {count} files have no bytes each");
        return Err(text);
    }
    let request_bytes = block_bytes.min(file_bytes);
    Ok(TestFiles {
        count,
        file_bytes,
        block_bytes,
        request_bytes,
        used_bytes: total_bytes / request_bytes * request_bytes,
    })
}

fn read(given: &GivenArguments) -> Result<FileioLoad, String> {
    let name = given.value("file-test-mode").unwrap_or_default();
    let Some(mode) = MODES.iter().find(|known| known.name == name).copied() else {
        return Err(format!("Invalid IO operations mode: {name}."));
    };
    let settings = run_settings(given)?;
    let files = read_test_files(given)?;
    let io_mode = read_io_mode(given)?;
    let flags = read_extra_flags(given)?;
    let ratio = read_ratio(given)?;
    let read_permille = read_permille(mode.kind, ratio);
    let asked_syncs = read_syncs(given, read_permille)?;
    let syncs = flags.sync.map_or(asked_syncs, FileSyncs::with_flag);
    let notes = notes(given, &flags, io_mode, read_permille, settings.threads);
    Ok(FileioLoad {
        head: LoadHead::new(LoadTarget::Existing(".".into()), notes),
        total_bytes: files.used_bytes,
        workload: Workload {
            streams: Streams::with_reads(read_permille),
            depth: io_mode.depth as u32,
            workers: settings.threads as u32,
            span: span_of(0, files.used_bytes),
            stop: Stop {
                time_ns: settings.time_ns,
                bytes: settings
                    .events
                    .map(|events| events.saturating_mul(files.request_bytes)),
                ..Stop::default()
            },
            rate: settings.rate.map(|rate| rate as f64),
            sync: match read_permille {
                1000 => SyncPolicy::None,
                _ => syncs.policy,
            },
            cache: flags.cache,
            shape: LoadShape {
                final_sync: syncs.has_final,
                ..LoadShape::default()
            },
            engine: EngineChoice::Fixed(io_mode.engine),
            layout: match mode.kind {
                ModeKind::Create => Layout::Provides,
                _ => Layout::Needed,
            },
            ..blocking_workload(mode.name, mode.order.access(), files.request_bytes as u32)
        },
        shown: ShownSettings {
            settings,
            mode,
            flags: flags.text,
            files: files.count,
            file_bytes: files.file_bytes,
            block_bytes: files.block_bytes,
            request_bytes: files.request_bytes,
            ratio,
            syncs: syncs.text,
            io_mode: io_mode.text,
            depth: io_mode.depth,
        },
    })
}

/// The meaning of --file-io-mode.
#[derive(Debug, Clone, Copy)]
struct IoMode {
    engine: EngineKind,
    depth: u64,
    /// The name in the report.
    text: &'static str,
}

fn read_io_mode(given: &GivenArguments) -> Result<IoMode, String> {
    let synchronous = IoMode {
        engine: EngineKind::Sync,
        depth: 1,
        text: "synchronous",
    };
    let asynchronous = IoMode {
        engine: EngineKind::Aio,
        depth: number(given, "file-async-backlog", 1..=65_536, 128)?,
        text: "asynchronous",
    };
    let mapped = IoMode {
        engine: EngineKind::Mmap,
        depth: 1,
        text: "fast mmaped",
    };
    let io_modes = [
        ("sync", synchronous),
        ("async", asynchronous),
        ("mmap", mapped),
    ];
    given
        .choice("file-io-mode", &io_modes)
        .map_err(|other| format!("unknown I/O mode: {other}"))
}

/// Reads the arguments of the test cpu.
fn read_cpu(given: &GivenArguments) -> Result<PrimeRequest, String> {
    let mut options = given.options.iter();
    if let Some(option) = options.find(|given| given.name.starts_with("file-")) {
        return Err(format!("invalid option: --{}", option.name));
    }
    let max_prime = number(given, "cpu-max-prime", 1..=PRIME_MAX, 10_000)?;
    let settings = run_settings(given)?;
    if settings.rate.is_some() {
        return Err("--rate does not apply to the test cpu; omit it".to_owned());
    }
    let mut notes = given.notes.clone();
    notes.extend(warning_of_test(given));
    notes.push("the test cpu uses no disk, so it is not saved in the history".to_owned());
    Ok(PrimeRequest {
        load: PrimeLoad {
            threads: settings.threads as u32,
            max_prime,
            time_ns: settings.time_ns,
            events: settings.events,
            interval_ns: settings.interval_ns,
        },
        printer: Box::new(CpuPrinter {
            settings,
            max_prime,
        }),
        notes,
    })
}

/// The reads of a test in thousandths of its requests; `ratio` is that of reads to writes of a mix.
fn read_permille(kind: ModeKind, ratio: f64) -> u16 {
    match kind {
        ModeKind::Read => 1000,
        ModeKind::Create | ModeKind::Write => 0,
        ModeKind::Mix => (1000.0 * ratio / (1.0 + ratio)).round() as u16,
    }
}

/// Reads the number of reads per write.
fn read_ratio(given: &GivenArguments) -> Result<f64, String> {
    let text = given.value("file-rw-ratio").unwrap_or("1.5");
    match text.parse::<f64>() {
        Ok(ratio) if ratio >= 0.0 && ratio.is_finite() => Ok(ratio),
        _ => Err(format!("--file-rw-ratio={text}: not a ratio")),
    }
}

/// The warning of sysbench about the old way to name a test; `None` where it was not used.
fn warning_of_test(given: &GivenArguments) -> Option<String> {
    if !given.has("test") {
        return None;
    }
    let text = "WARNING: the --test option is deprecated. You can pass a script name or path on \
                the command line without any options.";
    Some(text.to_owned())
}

fn notes(
    given: &GivenArguments,
    flags: &ExtraFlags,
    io_mode: IoMode,
    read_permille: u16,
    threads: u64,
) -> Vec<String> {
    let mut notes = given.notes.clone();
    notes.extend(warning_of_test(given));
    notes.push("one unnamed file replaces the prepared ones".to_owned());
    if flags.cache != CachePolicy::Direct {
        let text = "the page cache may answer; add --file-extra-flags=direct to reach the disk";
        notes.push(text.to_owned());
    }
    if read_permille < 1000 {
        notes.push("each sync covers the one file, and syncs do not count as events".to_owned());
    }
    if read_permille < 1000 && flags.sync.is_some() {
        let text = "--file-extra-flags makes each write durable, so fsync() is not called";
        notes.push(text.to_owned());
    }
    if io_mode.depth > 1 {
        let text = "with --file-io-mode=async a latency is that of the request until it completes";
        notes.push(text.to_owned());
    }
    if threads > 1 {
        notes.push("standard deviations between threads (nan) are not measured".to_owned());
    }
    notes
}

/// The meaning of --file-extra-flags.
struct ExtraFlags {
    cache: CachePolicy,
    /// The sync of writes by these flags, where one of them syncs.
    sync: Option<SyncPolicy>,
    /// The flags in the report.
    text: String,
}

fn read_extra_flags(given: &GivenArguments) -> Result<ExtraFlags, String> {
    let mut cache = CachePolicy::Cached;
    let mut sync = None;
    let mut shown = Vec::new();
    let list = given.value("file-extra-flags").unwrap_or_default();
    for flag in list.split(',') {
        match flag {
            "" => continue,
            "direct" => cache = CachePolicy::Direct,
            "sync" => sync = Some(OPEN_SYNC),
            "dsync" => sync = Some(OPEN_DSYNC),
            other => return Err(format!("Invalid value for file-extra-flags: '{other}'")),
        }
        shown.push(if flag == "direct" { "directio" } else { flag });
    }
    if shown.is_empty() {
        shown.push("(none)");
    }
    Ok(ExtraFlags {
        cache,
        sync,
        text: shown.join(" "),
    })
}

/// The syncs of a test, for its workload and for its report.
struct FileSyncs {
    policy: SyncPolicy,
    /// True if a sync at the end follows those of the policy.
    has_final: bool,
    /// The lines of the report.
    text: String,
}

impl FileSyncs {
    /// Each write is durable by a flag of the file; nothing calls fsync().
    fn with_flag(policy: SyncPolicy) -> Self {
        Self {
            policy,
            has_final: false,
            text: String::new(),
        }
    }
}

fn read_syncs(given: &GivenArguments, read_permille: u16) -> Result<FileSyncs, String> {
    let frequency = number(given, "file-fsync-freq", 0..=1_000_000_000, 100)?;
    let syncs_all = switch(given, "file-fsync-all")? == Some(SwitchPosition::On);
    let at_end = switch(given, "file-fsync-end")? != Some(SwitchPosition::Off);
    let calls = [
        ("fsync", SyncCall::Fsync),
        ("fdatasync", SyncCall::Fdatasync),
    ];
    let call = given
        .choice("file-fsync-mode", &calls)
        .map_err(|other| format!("invalid fsync mode: {other}"))?;
    // sysbench counts reads and writes; the engine counts writes.
    let share = f64::from(1000 - read_permille) / 1000.0;
    let writes = (frequency as f64 * share).round().max(1.0) as u32;
    let policy = if syncs_all {
        sync_every(1, call)
    } else if frequency > 0 {
        sync_every(writes, call)
    } else if at_end {
        SyncPolicy::AtEnd
    } else {
        SyncPolicy::None
    };
    let mut text = String::new();
    if syncs_all {
        text.push_str("Calling fsync() after each write operation.\n");
    } else if frequency > 0 {
        let _ = writeln!(
            text,
            "Periodic FSYNC enabled, calling fsync() each {frequency} requests."
        );
    }
    if at_end && !syncs_all {
        text.push_str("Calling fsync() at the end of test, Enabled.\n");
    }
    Ok(FileSyncs {
        policy,
        has_final: at_end && !syncs_all && frequency > 0 && share > 0.0,
        text,
    })
}

impl DropInLoad for FileioLoad {
    fn head(&self) -> &LoadHead {
        &self.head
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        let seeded = context.seeded(self.shown.settings.seed);
        let workloads = vec![self.workload.clone()];
        // Filled in whole pages; the workload ends before the rest of the last one.
        let scratch_bytes = self.total_bytes.next_multiple_of(PAGE_BYTES);
        Ok(DROP_IN.plan(&seeded, Some(scratch_bytes), workloads))
    }

    fn printer(&self, _plan: &Plan, _target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(FileioPrinter {
            shown: self.shown.clone(),
            reported: OpsSoFar::default(),
        })
    }
}
