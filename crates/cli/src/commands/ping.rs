//! `diskproof ping`: single requests at a gentle pace, each printed with its time as it ends, and
//! the cost of waking a disk up that was idle.

use crate::failure::{Exit, Failure};
use crate::flags::{
    Choice, MeasuringFlags, SCRATCH_BYTES_UNIT, SECOND_NS, choices, one_of, parse_from_one,
};
use crate::plan_file::sector_bytes;
use crate::scratch_sizes::{directories, refuse_overfull_filesystem, room_for_each};
use crate::session::{MeasuringJob, measure};
use crate::standard_workloads::{HALF_READS_PERMILLE, READS_ONLY_PERMILLE, WRITES_ONLY_PERMILLE};
use crate::workload::{BLOCK_BYTES_MAX, SpanBounds, parse_time, part_of, sector_error};
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
use diskproof_model::units::{counted, format_bytes, format_duration, parse_latency, parse_size};
use std::path::PathBuf;

/// Name of the only workload.
const PING: &str = "ping";
/// ioping's interval.
const INTERVAL_NS: u64 = SECOND_NS;
/// ioping's request.
const BLOCK_BYTES: u64 = 4096;
/// ioping's request with `-L`.
const SEQUENTIAL_BLOCK_BYTES: u64 = 256 << 10;
/// ioping's time with `-R`.
const RAPID_NS: u64 = 3 * SECOND_NS;
/// ioping does not count the first request either.
const WARMUP_REQUESTS: u64 = 1;
/// Larger than the caches of most drives' channels, and written in less than a second by most. A
/// smaller file would show a cache of the disk.
const SCRATCH_BYTES: u64 = 64 << 20;
/// Requests after each idle time. With six, the shortest and the longest of them enclose the median
/// with a probability of 97 %.
const ROUNDS: u64 = 6;
/// A record keeps the whole schedule, which has two entries for each idle time of a round.
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
    #[arg(short = 'i', long, value_name = "DURATION", value_parser = parse_time)]
    pub interval: Option<u64>,
    /// End after this many requests to each target, warm-up included; with --gaps: requests after
    /// each idle time [default: 6]
    #[arg(short = 'c', long, value_name = "N", value_parser = parse_from_one)]
    pub count: Option<u64>,
    /// Start no request after this time; with --gaps: as many rounds as fit
    #[arg(short = 'w', long, visible_alias = "time", value_name = "DURATION",
        value_parser = parse_deadline)]
    pub deadline: Option<u64>,
    /// Bytes of each request [default: 4k; 256k with --sequential]
    #[arg(short = 's', long, value_name = "BYTES",
        value_parser = parse_size)]
    pub bs: Option<u64>,
    /// Part of the target to use, such as 1G, 10% or 100GB-200GB [default: all of it]
    #[arg(short = 'S', long, value_name = "PART")]
    pub span: Option<SpanBounds>,
    /// Requests at the start that do not count [default: 1; 0 of a single request]
    #[arg(short = 'a', long, value_name = "N")]
    pub warmup: Option<u64>,
    /// Write instead of reading, to a scratch file or a released target
    #[arg(short = 'W', long, group = "writes")]
    pub write: bool,
    /// Alternate reads and writes
    #[arg(short = 'G', long, group = "writes")]
    pub alternate: bool,
    /// Request neighbouring blocks in order instead of random ones
    #[arg(short = 'L', long)]
    pub sequential: bool,
    /// What makes each write durable; its time counts [default: fdatasync; none with --cached]
    #[arg(long, value_name = "METHOD", value_parser = one_of(SYNCS), requires = "writes")]
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
    #[arg(long, value_name = "DURATION", value_parser = parse_latency)]
    pub abort_above: Option<u64>,
    /// Measure the first request after idle times of 1 ms to 10 s
    #[arg(long, conflicts_with_all = ["interval", "rate", "speed", "rapid", "cached", "warmup"])]
    pub gaps: bool,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: MeasuringFlags,
}

const fn after_each_write(call: SyncCall) -> SyncPolicy {
    SyncPolicy::Every { writes: 1, call }
}

const fn with_flag(flag: WriteFlag) -> SyncPolicy {
    SyncPolicy::WithWrite { flag }
}

/// The values of `--sync`.
const SYNCS: &[Choice<SyncPolicy>] = choices! {
    "none" SyncPolicy::None, "Nothing";
    "fdatasync" after_each_write(SyncCall::Fdatasync), "fdatasync after each write";
    "fsync" after_each_write(SyncCall::Fsync), "fsync after each write";
    "dsync" with_flag(WriteFlag::OpenDsync), "O_DSYNC: the write returns when its data is durable";
    "sync" with_flag(WriteFlag::OpenSync), "O_SYNC: also the data that describes the file";
};

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err(format!(
            "'{text}' is not a number of requests per second above 0"
        )),
    }
}

/// Reads the time after which no request starts. With 0 it would be none at all, and ioping takes 0
/// for a ping without an end.
fn parse_deadline(text: &str) -> Result<u64, String> {
    match parse_time(text) {
        Ok(0) => Err("no request starts within 0 s; omit -w to ping without an end".to_owned()),
        Ok(deadline_ns) => Ok(deadline_ns),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads bytes per second. At 0, the next request would never be sent.
fn parse_speed(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(0) => Err("no request moves 0 bytes a second; use more, such as 1MB".to_owned()),
        Ok(speed) => Ok(speed),
        Err(error) => Err(error.to_string()),
    }
}

/// Measures, and holds the run to `--abort-above`.
pub fn run(ping: &PingFlags) -> anyhow::Result<Exit> {
    let identities = ping.measuring.probe_all(&ping.targets)?;
    let plan = ping_plan(ping, &identities)?;
    let mut flags = ping.measuring.clone();
    if let Some(planned) = plan.ping() {
        flags.expected.extend(abort_thresholds(planned)?);
    }
    measure(MeasuringJob::new(plan, identities, &flags))?.exit()
}

/// The thresholds of `--abort-above`, one for each kind of operation; none without the flag.
pub(crate) fn abort_thresholds(ping: &Ping) -> Result<Vec<Expected>, Failure> {
    let workload = &ping.workload;
    let Some(limit_ns) = ping.requests.abort_above_ns else {
        return Ok(Vec::new());
    };
    let mut thresholds = Vec::new();
    if workload.reads() {
        thresholds.push(latency_threshold(OpKind::Read, limit_ns)?);
    }
    if workload.writes() {
        let kind = if workload.commits() {
            OpKind::Commit
        } else {
            OpKind::Write
        };
        thresholds.push(latency_threshold(kind, limit_ns)?);
    }
    Ok(thresholds)
}

fn latency_threshold(kind: OpKind, limit_ns: u64) -> Result<Expected, Failure> {
    let metric = format!("{PING}.{}.max", kind.as_str());
    let threshold: Expected = format!("{metric}<={limit_ns}ns")
        .parse()
        .map_err(|error| Failure::Usage(format!("--abort-above: {error}")))?;
    Ok(Expected {
        expression: format!("{metric}<={}", shortest_duration(limit_ns)),
        ..threshold
    })
}

/// The duration in the largest unit that needs no fraction.
fn shortest_duration(ns: u64) -> String {
    for (unit_ns, unit) in [(SECOND_NS, "s"), (1_000_000, "ms"), (1000, "us")] {
        if ns.is_multiple_of(unit_ns) {
            return format!("{}{unit}", ns / unit_ns);
        }
    }
    format!("{ns}ns")
}

/// The plan of `ping` for these targets. Fails for flags that do not fit each other or the targets.
pub fn ping_plan(ping: &PingFlags, identities: &[TargetIdentity]) -> Result<Plan, Failure> {
    crate::targets::refuse_duplicates(identities)?;
    let plan = ping.measuring.plan("ping", identities);
    let block_bytes = request_bytes(ping)?;
    let scratch_bytes = scratch_size(ping, identities, u64::from(block_bytes))?;
    let smallest_bytes = identities
        .iter()
        .map(|identity| match scratch_bytes {
            Some(bytes) if identity.kind == TargetKind::Directory => bytes,
            _ => identity.size_bytes,
        })
        .min()
        .unwrap_or(0);
    let span = span_of_requests(ping, smallest_bytes, block_bytes)?;
    let requests = pacing(ping, block_bytes, plan.seed)?;
    let workload = request_workload(ping, block_bytes, span, &requests);
    if let Some(why) = sector_error(&workload, sector_bytes(identities)) {
        return Err(Failure::Usage(why));
    }
    Ok(Plan {
        scratch: scratch_bytes.map(Scratch::of_size),
        tasks: vec![Task::Ping(Box::new(Ping { workload, requests }))],
        ..plan
    })
}

fn request_bytes(ping: &PingFlags) -> Result<u32, Failure> {
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

/// The times of the requests. `seed` decides the order of the idle times of `--gaps`.
fn pacing(ping: &PingFlags, block_bytes: u32, seed: u64) -> Result<PingPlan, Failure> {
    let (interval_ns, idle_ns) = if ping.gaps {
        (0, gap_schedule(rounds(ping)?, seed))
    } else {
        (interval_ns(ping, block_bytes), Vec::new())
    };
    Ok(PingPlan {
        interval_ns,
        warmup_requests: warmup_requests(ping, interval_ns)?,
        abort_above_ns: ping.abort_above,
        idle_ns,
    })
}

/// Time from the start of one request to the start of the next. A limit alone sets the pace;
/// alongside an interval the slower of both counts.
fn interval_ns(ping: &PingFlags, block_bytes: u32) -> u64 {
    let default_ns = if ping.rapid { 0 } else { INTERVAL_NS };
    match (ping.interval, limit_interval_ns(ping, block_bytes)) {
        (Some(interval_ns), Some(limit_ns)) => interval_ns.max(limit_ns),
        (Some(only_ns), None) | (None, Some(only_ns)) => only_ns,
        (None, None) => default_ns,
    }
}

/// The interval that keeps both `--rate` and `--speed`; `None` without either.
fn limit_interval_ns(ping: &PingFlags, block_bytes: u32) -> Option<u64> {
    let mut limit_ns = None;
    if let Some(rate) = ping.rate {
        limit_ns = Some((SECOND_NS as f64 / rate).ceil() as u64);
    }
    if let Some(speed) = ping.speed {
        let request_ns = (f64::from(block_bytes) * SECOND_NS as f64 / speed as f64).ceil() as u64;
        limit_ns = limit_ns.max(Some(request_ns));
    }
    limit_ns
}

/// Requests to each target; `None` without an end, and with --gaps, where rounds count.
fn request_count(ping: &PingFlags) -> Option<u64> {
    if ping.gaps { None } else { ping.count }
}

/// The number of requests at this interval that do not count. Fails where none is left that does.
fn warmup_requests(ping: &PingFlags, interval_ns: u64) -> Result<u64, Failure> {
    let by_count = request_count(ping);
    let count = requests_within(deadline_ns(ping), interval_ns, by_count).unwrap_or(u64::MAX);
    match ping.warmup {
        None => Ok(WARMUP_REQUESTS.min(count - 1)),
        Some(warmup) if warmup < count => Ok(warmup),
        Some(warmup) => Err(Failure::Usage(format!(
            "-a {warmup} leaves none of the {} to measure; use a larger -c or -w",
            counted(count, "request")
        ))),
    }
}

/// The number of requests after each idle time. Fails where the deadline has no room for one, or a
/// record none for so many.
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
    let rounds = match (ping.count, fitting) {
        (Some(count), Some(fitting)) => count.min(fitting),
        (Some(count), None) => count,
        (None, Some(fitting)) => fitting,
        (None, None) => ROUNDS,
    };
    match rounds {
        1..=ROUNDS_MAX => Ok(rounds),
        _ => Err(Failure::Usage(format!(
            "--gaps allows at most {ROUNDS_MAX} requests after each idle time; use a smaller -c"
        ))),
    }
}

fn request_workload(
    ping: &PingFlags,
    block_bytes: u32,
    span: Span,
    requests: &PingPlan,
) -> Workload {
    let read_permille = if ping.write {
        WRITES_ONLY_PERMILLE
    } else if ping.alternate {
        HALF_READS_PERMILLE
    } else {
        READS_ONLY_PERMILLE
    };
    let cache = if ping.cached {
        CachePolicy::Cached
    } else if ping.buffered {
        CachePolicy::Buffered
    } else {
        CachePolicy::Direct
    };
    let writes = ping.write || ping.alternate;
    let sync = match ping.sync {
        _ if !writes => SyncPolicy::None,
        Some(sync) => sync,
        None if ping.cached => SyncPolicy::None,
        None => after_each_write(SyncCall::Fdatasync),
    };
    let mut stop = Stop {
        precision: None,
        time_ns: deadline_ns(ping),
        bytes: None,
        ops: request_count(ping),
    };
    if writes && let Some(count) = requests_max(&stop, requests) {
        stop.bytes = Some(count.saturating_mul(u64::from(block_bytes)));
    }
    let mut workload = Workload {
        streams: Streams::with_reads(read_permille),
        block_bytes,
        span,
        stop,
        sync,
        cache,
        engine: ping.measuring.engine.unwrap_or(EngineChoice::Auto),
        ..Workload::named(PING)
    };
    if ping.sequential {
        workload.access = Access::Sequential;
    }
    if requests.interval_ns > 0 {
        workload.rate = Some(SECOND_NS as f64 / requests.interval_ns as f64);
    }
    workload
}

/// The time after which no request starts; `None` without an end, and with --gaps, where rounds
/// count.
fn deadline_ns(ping: &PingFlags) -> Option<u64> {
    if ping.gaps {
        return None;
    }
    if ping.deadline.is_none() && ping.rapid && ping.count.is_none() {
        return Some(RAPID_NS);
    }
    ping.deadline
}

/// The most requests that one target gets; `None` where the flags set no limit.
fn requests_max(stop: &Stop, requests: &PingPlan) -> Option<u64> {
    if !requests.idle_ns.is_empty() {
        return Some(requests.idle_ns.len() as u64);
    }
    requests_within(stop.time_ns, requests.interval_ns, stop.ops)
}

/// The most requests at this interval that start before the deadline, and at most `count`; `None`
/// where nothing limits them.
fn requests_within(deadline_ns: Option<u64>, interval_ns: u64, count: Option<u64>) -> Option<u64> {
    let Some(deadline_ns) = deadline_ns else {
        return count;
    };
    if interval_ns == 0 {
        return count;
    }
    let fitting = deadline_ns.div_ceil(interval_ns);
    match count {
        Some(count) => Some(count.min(fitting)),
        None => Some(fitting),
    }
}

/// The part of every target that requests go to.
fn span_of_requests(
    ping: &PingFlags,
    target_bytes: u64,
    block_bytes: u32,
) -> Result<Span, Failure> {
    let Some(bounds) = ping.span else {
        return Ok(Span::default());
    };
    let least_bytes = u64::from(block_bytes);
    let least = format!("a request of {}", format_bytes(least_bytes));
    part_of(target_bytes, bounds, 1, least_bytes, &least).map_err(Failure::Usage)
}

/// Size of the scratch file in each directory; `None` without a directory.
fn scratch_size(
    ping: &PingFlags,
    identities: &[TargetIdentity],
    block_bytes: u64,
) -> Result<Option<u64>, Failure> {
    let directories = directories(identities);
    if directories.is_empty() {
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
        let file_bytes = size.next_multiple_of(SCRATCH_BYTES_UNIT);
        refuse_overfull_filesystem(file_bytes, &directories)?;
        return Ok(Some(file_bytes));
    }
    let room = room_for_each(&directories);
    let fitting = room / SCRATCH_BYTES_UNIT * SCRATCH_BYTES_UNIT;
    let least = block_bytes.next_multiple_of(SCRATCH_BYTES_UNIT);
    let wanted = SCRATCH_BYTES
        .max(block_bytes)
        .next_multiple_of(SCRATCH_BYTES_UNIT);
    // Without room for this much, the gate explains its refusal.
    Ok(Some(wanted.min(fitting).max(least)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{Args, Verb};
    use crate::session::admit_all;
    use clap::Parser as _;
    use diskproof_device::{Consent, probe};
    use diskproof_model::target::Layer;
    use std::path::Path;

    const GIB: u64 = 1 << 30;

    fn ping_flags(line: &[&str]) -> PingFlags {
        let args = Args::try_parse_from(["diskproof", "ping"].iter().chain(line)).unwrap();
        match args.verb {
            Verb::Ping(ping) => *ping,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn deadline_of_zero_is_refused() {
        for deadline in ["0", "0s", "0ms"] {
            let line = ["diskproof", "ping", "-w", deadline];
            assert!(Args::try_parse_from(line).is_err(), "{deadline}");
        }
    }

    #[test]
    fn request_must_fit_the_sectors_of_the_target() {
        let mut identity = directory("/a", 1, 6 * GIB);
        identity.layers = vec![Layer {
            logical_block_bytes: Some(4096),
            ..identity.layers.first().cloned().unwrap_or_default()
        }];
        let identities = [identity];
        for (line, is_possible) in [
            (&["-s", "512"][..], false),
            (&["-s", "4k"], true),
            (&["-s", "512", "--buffered"], true),
            (&["-s", "3", "--cached"], true),
            (&["-S", "512B-1M"], false),
        ] {
            let plan = ping_plan(&ping_flags(line), &identities);
            assert_eq!(plan.is_ok(), is_possible, "{line:?}");
        }
    }

    /// A deadline has room for a request at each interval.
    #[test]
    fn single_request_is_measured_and_no_warm_up() {
        let warmup = |line: &[&str]| {
            let identities = [directory("/a", 1, 6 * GIB)];
            let plan = ping_plan(&ping_flags(line), &identities)?;
            Ok::<u64, Failure>(plan.ping().map_or(0, |ping| ping.requests.warmup_requests))
        };
        for (line, expected) in [
            (&["-w", "1s"][..], 0),
            (&["-w", "1500ms"], 1),
            (&["-w", "5s", "-i", "10s"], 0),
            (&["-w", "1s", "-i", "0"], 1),
            (&["-c", "1"], 0),
            (&["-w", "30s", "-c", "2"], 1),
            (&["-R"], 1),
        ] {
            assert_eq!(warmup(line).unwrap(), expected, "{line:?}");
        }
        for line in [&["-a", "1", "-w", "1s"][..], &["-a", "3", "-c", "3"]] {
            let failure = warmup(line).expect_err("nothing left");
            assert_eq!(failure.exit(), Exit::Usage);
        }
    }

    /// A directory on a filesystem with this room for scratch files.
    fn directory(path: &str, inode: u64, room_bytes: u64) -> TargetIdentity {
        let mut identity = probe(Path::new("/")).unwrap();
        identity.path = path.to_owned();
        identity.inode = inode;
        let filesystem = identity.filesystem.as_mut().unwrap();
        filesystem.size_bytes = 100 * GIB;
        filesystem.free_bytes = room_bytes + 2 * GIB;
        identity
    }

    #[test]
    fn scratch_files_on_one_filesystem_fit_together() {
        let identities = [directory("/a", 1, 6 * GIB), directory("/b", 2, 6 * GIB)];
        let plan = ping_plan(&ping_flags(&["--size", "3G"]), &identities).unwrap();
        assert_eq!(plan.scratch_bytes(), Some(3 * GIB));
        let failure =
            ping_plan(&ping_flags(&["--size", "5G"]), &identities).expect_err("too large");
        assert_eq!(failure.exit(), Exit::Refused);
        assert!(failure.to_string().contains("at most 3 GiB"), "{failure}");
    }

    #[test]
    fn gate_refuses_default_scratch_files_without_room_for_all() {
        // Each request would fit into the room for one file.
        let narrow = |path, inode| directory(path, inode, 16 << 20);
        let flags = ping_flags(&["--bs", "16M"]);
        let one = [narrow("/", 1)];
        let plan = ping_plan(&flags, &one).unwrap();
        assert!(admit_all(&plan, &one, &Consent::default()).is_ok());
        let two = [narrow("/", 1), narrow("/", 2)];
        let plan = ping_plan(&flags, &two).unwrap();
        let mut subvolume = narrow("/", 2);
        "0:99".clone_into(&mut subvolume.device);
        for both in [two, [narrow("/", 1), subvolume]] {
            let failure = admit_all(&plan, &both, &Consent::default()).expect_err("no room");
            assert_eq!(failure.exit(), Exit::Refused);
            assert!(failure.to_string().contains("free space"), "{failure}");
        }
    }
}
