//! `diskproof ping`: single requests at a gentle pace, each printed with its time as it ends, and
//! the cost of waking a disk up that was idle.

use crate::failure::{Exit, Failure};
use crate::flags::{Choice, MeasuringFlags, SCRATCH_BYTES_UNIT, SECOND, choices, one_of};
use crate::session::{MeasuringJob, measure};
use crate::workload::{BLOCK_BYTES_MAX, SpanBounds, part_of};

use diskproof_analysis::campaign::{gap_round_ns, gap_schedule};
use diskproof_analysis::expect::Expected;
use diskproof_model::measurement::OpKind;
use diskproof_model::ping::PingPlan;
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, Ping, Plan, Scratch, Span, Stop, SyncCall, SyncPolicy, Task,
    Workload, WriteFlag,
};
use diskproof_model::stream::Streams;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{format_bytes, format_duration, parse_duration, parse_size};
use std::path::PathBuf;

/// Name of the only workload.
const PING: &str = "ping";
/// ioping's defaults.
const INTERVAL_NS: u64 = SECOND;
const BLOCK_BYTES: u64 = 4096;
const SEQUENTIAL_BLOCK_BYTES: u64 = 256 << 10;
const RAPID_NS: u64 = 3 * SECOND;
const WARMUP_REQUESTS: u64 = 1;
/// Larger than the caches of most drives' channels, and written in less than a second by most. A
/// smaller file would show a cache of the disk.
const SCRATCH_BYTES: u64 = 64 << 20;
/// Requests after each idle time. With six, the shortest and the longest of them enclose the median
/// with a probability of 97 %.
const ROUNDS: u64 = 6;
/// A longer schedule would not fit into a record.
const ROUNDS_MAX: u64 = 100;

const HELP: &str = "\
Each line is one request: size, direction (<<< read, >>> write), target, number,
time, and a bar on a logarithmic scale. 'slow' took more than twice the mean so
far, 'fast' less than half of it. The summary has percentiles and a histogram.
Ctrl-C ends the run and prints the summary.

The load is announced first and never exceeded: a request that takes longer than
the interval delays the next one.

In a directory, ping uses a scratch file (64 MiB, --size), which has no name and
vanishes even after kill -9. A file or device is only read unless you release it
with --overwrite or --destroy NAME. Direct I/O is the default; --cached measures
the page cache.

--gaps measures the first request after idle times of 1 ms to 10 s, in random
order. It reveals power states, link power management and spin-down. It takes
about 2 minutes; -c sets the number of requests after each idle time.

Exit codes: 0 done, 1 a threshold was missed (--abort-above, --expect), 2 usage,
3 refused for safety, 4 the run failed or the disk returned errors, 5 a
threshold is undecided, 130 Ctrl-C.

Examples:
  diskproof ping                            # one read per second, until Ctrl-C
  diskproof ping /data /backup -c 60        # two targets, a minute
  sudo diskproof ping /dev/sda -w 30s       # reads of a device
  diskproof ping /data -G                   # reads and durable writes in turn
  diskproof ping /data -R                   # no pauses, for 3 s
  diskproof ping /data --abort-above 100ms  # exit with 1 after a slow request
  diskproof ping /data --gaps               # the cost of waking the disk up";

/// Send single requests and print the time of each, or measure the cost of waking the disk (--gaps)
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct PingFlags {
    /// Directories, regular files or block devices
    #[arg(value_name = "TARGET", default_value = ".")]
    pub targets: Vec<PathBuf>,
    /// Time from the start of one request to the start of the next [default: 1s]
    #[arg(short = 'i', long, value_name = "DURATION", value_parser = parse_duration)]
    pub interval: Option<u64>,
    /// End after this many requests to each target, warm-up included; with --gaps: requests after
    /// each idle time [default: 6]
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Start no request after this time; with --gaps: as many rounds as fit
    #[arg(short = 'w', long, visible_alias = "time", value_name = "DURATION",
        value_parser = parse_duration)]
    pub deadline: Option<u64>,
    /// Bytes of each request [default: 4k; 256k with --sequential]
    #[arg(short = 's', long, value_name = "BYTES",
        value_parser = parse_size)]
    pub bs: Option<u64>,
    /// Part of the target to use, such as 1G, 10% or 100GB-200GB [default: all of it]
    #[arg(short = 'S', long, value_name = "PART")]
    pub span: Option<SpanBounds>,
    /// Requests at the start that do not count [default: 1; 0 with -c 1]
    #[arg(short = 'a', long, value_name = "N")]
    pub warmup: Option<u64>,
    /// Write instead of reading, to a scratch file or a released target
    #[arg(short = 'W', long)]
    pub write: bool,
    /// Alternate reads and writes
    #[arg(short = 'G', long, conflicts_with = "write")]
    pub alternate: bool,
    /// Request neighbouring blocks in order instead of random ones
    #[arg(short = 'L', long)]
    pub sequential: bool,
    /// What makes each write durable; its time counts [default: fdatasync; none with --cached]
    #[arg(long, value_name = "METHOD", value_parser = one_of(SYNCS))]
    pub sync: Option<SyncPolicy>,
    /// Bypass the page cache with O_DIRECT (the default)
    #[arg(short = 'D', long, conflicts_with_all = ["cached", "buffered"])]
    pub direct: bool,
    /// Use the page cache, but drop each block from it before it is read
    #[arg(long, conflicts_with = "cached")]
    pub buffered: bool,
    /// Use the page cache, which may answer instead of the disk
    #[arg(short = 'C', long)]
    pub cached: bool,
    /// Send at most this many requests per second to each target
    #[arg(short = 'r', long, value_name = "N", value_parser = parse_rate)]
    pub rate: Option<f64>,
    /// Request at most this many bytes per second of each target
    #[arg(short = 'l', long, value_name = "BYTES", value_parser = parse_speed)]
    pub speed: Option<u64>,
    /// No pauses and no lines, for 3 seconds: like -q -i 0 -w 3s
    #[arg(short = 'R', long)]
    pub rapid: bool,
    /// End with exit code 1 if a request takes longer than this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub abort_above: Option<u64>,
    /// Measure the first request after idle times of 1 ms to 10 s
    #[arg(long, conflicts_with_all = ["interval", "rate", "speed", "rapid", "cached", "warmup"])]
    pub gaps: bool,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: MeasuringFlags,
}

const fn each(call: SyncCall) -> SyncPolicy {
    SyncPolicy::Every { writes: 1, call }
}

const fn opened(flag: WriteFlag) -> SyncPolicy {
    SyncPolicy::WithWrite { flag }
}

/// What makes a write durable.
const SYNCS: &[Choice<SyncPolicy>] = choices! {
    "none" SyncPolicy::None, "Nothing";
    "fdatasync" each(SyncCall::Fdatasync), "fdatasync after each write";
    "fsync" each(SyncCall::Fsync), "fsync after each write";
    "dsync" opened(WriteFlag::OpenDsync), "O_DSYNC: the write returns when its data is durable";
    "sync" opened(WriteFlag::OpenSync), "O_SYNC: also the data that describes the file";
};

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok();
    let rate = rate.filter(|rate| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| format!("'{text}' is not a number of requests per second above 0"))
}

/// Bytes per second. At none, the next request would never be sent.
fn parse_speed(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(0) => Err("no request moves 0 bytes a second; use more, such as 1MB".to_owned()),
        Ok(speed) => Ok(speed),
        Err(error) => Err(error.to_string()),
    }
}

/// Measures.
pub fn run(ping: &PingFlags) -> anyhow::Result<Exit> {
    let identities = ping.measuring.probe_all(&ping.targets)?;
    let plan = plan(ping, &identities)?;
    let mut flags = ping.measuring.clone();
    if let Some(planned) = plan.ping() {
        flags.expected.extend(stop_rule(planned)?);
    }
    measure(MeasuringJob::new(plan, identities, &flags))?.exit()
}

/// The thresholds of `--abort-above`.
pub(crate) fn stop_rule(ping: &Ping) -> Result<Vec<Expected>, Failure> {
    let workload = &ping.workload;
    let mut all = Vec::new();
    let Some(limit_ns) = ping.requests.abort_above_ns else {
        return Ok(all);
    };
    let written = if workload.commits() {
        OpKind::Commit
    } else {
        OpKind::Write
    };
    let kinds = [
        workload.reads().then_some(OpKind::Read),
        workload.writes().then_some(written),
    ];
    for kind in kinds.into_iter().flatten() {
        let (kind, shown) = (kind.as_str(), shortest_duration(limit_ns));
        let one: Expected = format!("{PING}.{kind}.max<={limit_ns}ns")
            .parse()
            .map_err(|error| Failure::Usage(format!("--abort-above: {error}")))?;
        all.push(Expected {
            expression: format!("{PING}.{kind}.max<={shown}"),
            ..one
        });
    }
    Ok(all)
}

/// In the largest unit that needs no fraction.
fn shortest_duration(ns: u64) -> String {
    let units = [(SECOND, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")];
    let fits = |(unit_ns, _): &(u64, &str)| ns.is_multiple_of(*unit_ns);
    let (unit_ns, unit) = units.into_iter().find(fits).unwrap_or((1, "ns"));
    format!("{}{unit}", ns / unit_ns)
}

/// The plan of `ping` for these targets.
pub fn plan(ping: &PingFlags, identities: &[TargetIdentity]) -> Result<Plan, Failure> {
    crate::targets::refuse_duplicates(identities)?;
    let plan = ping.measuring.plan("ping", identities);
    let block_bytes = block_bytes(ping)?;
    let scratch_bytes = scratch_size(ping, identities, u64::from(block_bytes))?;
    let sizes = identities.iter().map(|identity| {
        scratch_bytes
            .filter(|_| identity.kind == TargetKind::Directory)
            .unwrap_or(identity.size_bytes)
    });
    let span = span(ping, sizes.min().unwrap_or(0), block_bytes)?;
    let requests = ping_plan(ping, block_bytes, plan.seed)?;
    let workload = workload(ping, (block_bytes, span), &requests);
    Ok(Plan {
        scratch: scratch_bytes.map(Scratch::of_size),
        tasks: vec![Task::Ping(Box::new(Ping { workload, requests }))],
        ..plan
    })
}

fn block_bytes(ping: &PingFlags) -> Result<u32, Failure> {
    let default = if ping.sequential {
        SEQUENTIAL_BLOCK_BYTES
    } else {
        BLOCK_BYTES
    };
    let bytes = ping.bs.unwrap_or(default);
    match bytes {
        1..=BLOCK_BYTES_MAX => Ok(bytes as u32),
        _ => Err(Failure::Usage(format!(
            "--bs {}: use a size from 1 byte to {}",
            format_bytes(bytes),
            format_bytes(BLOCK_BYTES_MAX)
        ))),
    }
}

/// How the requests follow each other.
fn ping_plan(ping: &PingFlags, block_bytes: u32, seed: u64) -> Result<PingPlan, Failure> {
    let idle_ns = if ping.gaps {
        gap_schedule(rounds(ping)?, seed)
    } else {
        Vec::new()
    };
    let default_ns = if ping.rapid { 0 } else { INTERVAL_NS };
    let by_rate = ping.rate.map(|rate| (1e9 / rate).ceil() as u64);
    let by_speed = ping
        .speed
        .map(|speed| (f64::from(block_bytes) * 1e9 / speed as f64).ceil() as u64);
    // A limit alone sets the pace; alongside an interval the slower of both counts.
    let limits = by_rate.into_iter().chain(by_speed).max();
    let interval_ns = match (ping.interval, limits) {
        (None, Some(limit_ns)) => limit_ns,
        (interval, limits) => interval.unwrap_or(default_ns).max(limits.unwrap_or(0)),
    };
    Ok(PingPlan {
        interval_ns: if ping.gaps { 0 } else { interval_ns },
        warmup_requests: warmup_requests(ping)?,
        abort_above_ns: ping.abort_above,
        idle_ns,
    })
}

/// Requests that do not count; at least one must.
fn warmup_requests(ping: &PingFlags) -> Result<u64, Failure> {
    let count = ping.count.filter(|_| !ping.gaps).unwrap_or(u64::MAX);
    match ping.warmup {
        None => Ok(WARMUP_REQUESTS.min(count - 1)),
        Some(warmup) if warmup < count => Ok(warmup),
        Some(warmup) => Err(Failure::Usage(format!(
            "-a {warmup} leaves none of the {count} requests to measure; use a larger -c"
        ))),
    }
}

/// Requests after each idle time.
fn rounds(ping: &PingFlags) -> Result<u64, Failure> {
    let round_ns = gap_round_ns();
    let fitting = ping.deadline.map(|ns| ns / round_ns);
    if fitting == Some(0) {
        return Err(Failure::Usage(format!(
            "--gaps needs {} for one request after each idle time; use a --deadline of at least \
             that",
            format_duration(round_ns)
        )));
    }
    let wanted = ping.count.or(fitting).unwrap_or(ROUNDS);
    let rounds = fitting.map_or(wanted, |fitting| wanted.min(fitting));
    match rounds {
        1..=ROUNDS_MAX => Ok(rounds),
        _ => Err(Failure::Usage(format!(
            "--gaps allows at most {ROUNDS_MAX} requests after each idle time; use a smaller -c"
        ))),
    }
}

fn workload(ping: &PingFlags, (block_bytes, span): (u32, Span), requests: &PingPlan) -> Workload {
    let read_permille = match (ping.write, ping.alternate) {
        (true, _) => 0,
        (false, true) => 500,
        (false, false) => 1000,
    };
    let cache = match (ping.cached, ping.buffered) {
        (true, _) => CachePolicy::Cached,
        (false, true) => CachePolicy::Buffered,
        (false, false) => CachePolicy::Direct,
    };
    let default_sync = if ping.cached {
        SyncPolicy::None
    } else {
        each(SyncCall::Fdatasync)
    };
    let sync = match read_permille {
        1000 => SyncPolicy::None,
        _ => ping.sync.unwrap_or(default_sync),
    };
    let ops = ping.count.filter(|_| !ping.gaps);
    let rapid_ns = (ping.rapid && ops.is_none()).then_some(RAPID_NS);
    let time_ns = ping.deadline.or(rapid_ns).filter(|_| !ping.gaps);
    let requests_max = match requests.idle_ns.len() as u64 {
        0 if requests.interval_ns == 0 => ops,
        0 => {
            let by_time = time_ns.map(|ns| ns.div_ceil(requests.interval_ns));
            ops.into_iter().chain(by_time).min()
        }
        n => Some(n),
    };
    let random = Workload::named(PING);
    Workload {
        streams: Streams::with_reads(read_permille),
        access: if ping.sequential {
            Access::Sequential
        } else {
            random.access
        },
        block_bytes,
        span,
        stop: Stop {
            precision: None,
            time_ns,
            bytes: requests_max
                .filter(|_| read_permille < 1000)
                .map(|n| n.saturating_mul(u64::from(block_bytes))),
            ops,
        },
        rate: (requests.interval_ns > 0).then(|| 1e9 / requests.interval_ns as f64),
        sync,
        cache,
        engine: ping.measuring.engine.unwrap_or(EngineChoice::Auto),
        ..random
    }
}

/// The part of every target that requests go to.
fn span(ping: &PingFlags, target_bytes: u64, block_bytes: u32) -> Result<Span, Failure> {
    let Some(bounds) = ping.span else {
        return Ok(Span::default());
    };
    let least_bytes = u64::from(block_bytes);
    let least = format!("a request of {}", format_bytes(least_bytes));
    part_of(target_bytes, bounds, 1, (least_bytes, &least)).map_err(Failure::Usage)
}

/// Size of the scratch file in each directory; `None` without a directory.
fn scratch_size(
    ping: &PingFlags,
    identities: &[TargetIdentity],
    block_bytes: u64,
) -> Result<Option<u64>, Failure> {
    let directories = || {
        let all = identities.iter();
        all.filter(|identity| identity.kind == TargetKind::Directory)
    };
    let whole = |bytes: u64| bytes.next_multiple_of(SCRATCH_BYTES_UNIT);
    if directories().next().is_none() {
        return match (ping.measuring.size, identities.first()) {
            (Some(_), Some(identity)) => Err(Failure::no_scratch_file(
                &identity.path,
                "use --span to request a part of it",
            )),
            _ => Ok(None),
        };
    }
    if let Some(size) = ping.measuring.size {
        if size < block_bytes {
            return Err(Failure::Usage(format!(
                "--size {} does not hold a request of {}; use a larger file",
                format_bytes(size),
                format_bytes(block_bytes)
            )));
        }
        return Ok(Some(whole(size)));
    }
    // Scratch files on one filesystem share its free space.
    let files = directories().count() as u64;
    let room = directories()
        .map(diskproof_device::scratch_bytes_max)
        .min()
        .unwrap_or(0)
        / files;
    let wanted = whole(SCRATCH_BYTES.max(block_bytes));
    let least = whole(block_bytes);
    let fitting = room / SCRATCH_BYTES_UNIT * SCRATCH_BYTES_UNIT;
    // Without room for this much, the gate explains its refusal.
    let size = wanted.min(fitting).max(least);
    Ok(Some(size))
}
