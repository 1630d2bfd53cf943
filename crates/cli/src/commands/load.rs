//! `diskproof load`: the highest rate at which a promise about latency is kept.

use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, SCRATCH_BYTES_MIN, SECOND};
use crate::job_file::read_text;
use crate::observed_load::ObservedLoad;
use crate::session::{MeasuringJob, measure};
use crate::standard_workloads::{HALF_READS_PERMILLE, READS_ONLY_PERMILLE, WRITES_ONLY_PERMILLE};
use crate::workload::{BlockSize, Bytes, Time, ValueError};
use diskproof_analysis::watch::like_transaction;
use diskproof_model::plan::{
    Access, Decide, Distribution, EngineChoice, Plan, Scratch, SyncCall, SyncPolicy, Task,
    Workload, Workloads,
};
use diskproof_model::rate::RatePlan;
use diskproof_model::rays::{
    SEQUENTIAL_MIXED, SEQUENTIAL_READ, SEQUENTIAL_READ_PAGES, SEQUENTIAL_WRITE,
    SEQUENTIAL_WRITE_PAGES,
};
use diskproof_model::rw::{Order, Rw, RwError};
use diskproof_model::stream::Streams;
use diskproof_model::target::TargetIdentity;
use diskproof_model::transaction::{LOG_BYTES_MAX, TRANSACTION_PARTS_MAX, Transaction};
use diskproof_model::units::{format_duration, format_latency, parse_duration};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The help promises 7 min.
const TIME_NS: u64 = 420 * SECOND;
/// The time for which the answer is held, within the time of the search.
const HOLD_NS: u64 = 60 * SECOND;
/// A shorter search holds its answer for this part of its time: a seventh, as the usual one does.
const HOLD_DIVISOR: u64 = TIME_NS / HOLD_NS;
/// A shorter search has cells of less than half a second.
const TIME_NS_MIN: u64 = 20 * SECOND;
/// The scratch file gets its content in a tenth of the search's time, beyond that time.
const LAYOUT_DIVISOR: u64 = 10;
/// A scratch file of four times the largest cache of a drive, 1 GiB.
const SCRATCH_BYTES: u64 = 4 << 30;
/// PostgreSQL keeps as much of its log at least (min_wal_size).
const LOG_SPAN_BYTES: u64 = 80 << 20;
/// Of a small target, at most an eighth is log.
const LOG_SPAN_DIVISOR: u64 = 8;
/// Transactions at the same time: the sessions that a server has open (max_connections is 100).
const SESSIONS: u32 = 100;
/// Requests in flight at most, for a load of plain requests.
const DEPTH: u32 = 256;
/// Schedulers are set by rates of operations of this size.
const RAY_BYTES: u32 = 4096;
/// Requests in flight of a sequential workload: as many as SATA has.
const SEQUENTIAL_DEPTH: u32 = 32;
/// A tenth of a sequential workload's time does not count: queues fill.
const SEQUENTIAL_WARMUP_DIVISOR: u64 = 10;
/// Each sequential workload gets a hundredth of the whole time, within two limits.
const SEQUENTIAL_DIVISOR: u64 = 100;
/// A sequential workload gets no less time.
const SEQUENTIAL_NS_MIN: u64 = SECOND / 2;
/// A sequential workload gets no more time.
const SEQUENTIAL_NS_MAX: u64 = 10 * SECOND;
/// Requests large enough to reach all of a disk's bandwidth.
const SEQUENTIAL_BYTES: u32 = 1 << 20;
/// Warm-ups are whole cells of the series, which are 10 ms long.
const CELL_NS: u64 = 10_000_000;
/// Share of reads of a `--rw` that mixes, unless `--rwmixread` says otherwise.
const READ_PERCENT: u16 = 50;
/// Log records and blocks are whole sectors.
const SECTOR_BYTES: u64 = 512;

const HELP: &str = "\
The answer is the highest rate of transactions whose latency keeps the promise
of --slo, with its 95 % interval. They arrive at random times (Poisson), and
latency counts from the intended start. The search doubles the rate, saturates
the disk, measures around the rate in question, holds the lower end of the
interval for a minute, and then offers more: that must break the promise.

A transaction of --mix oltp is 4 random reads of 8 KiB, a log record of 8 KiB
made durable by fdatasync, which sessions share (group commit), and one random
write after it. etcd is a log record of 4 KiB. FILE is a TOML file:

  reads = 4
  block = '8k'
  log = '8k'
  writes = 1

--rw offers plain requests in place of transactions. --rays searches the rate of
random reads and writes of 4 KiB in seven mixes, from writes alone to reads
alone: the boundary of what the disk keeps the promise at. Seven searches take
49 min; --time is shared out. Their exports set schedulers: .iocost (Linux),
.yaml (Seastar), .ceph, .cockroach. In a directory, load
measures a scratch file without a name. A file or a block device is only read
unless --overwrite or --destroy releases it: then use --rw randread.

A burst credit of up to two minutes does not pass for capacity; of a longer one,
the page says how much would not have shown ('diskproof help load.md').

Exit codes: 0 done, 1 a threshold was missed, 2 usage, 3 refused for safety,
4 the run failed or the disk returned errors, 5 undecided, 130 Ctrl-C.

Examples:
  diskproof load /data                          # 99 % within 5 ms, in 7 min
  diskproof load /data --slo 'p99.9<=20ms'      # another promise
  diskproof load /data --mix etcd               # log records alone
  diskproof load /data --like latest            # a load that watch recorded
  diskproof load /data --prove 10m              # holds the answer for 10 min
  diskproof load /data --time 30m               # a narrower interval
  diskproof load /data --jobs 4                 # a disk too fast for one thread
  diskproof load /data --rays -o io-properties.yaml     # reads against writes
  sudo diskproof load /dev/sdb --rw randread --slo 'p99<=2ms'";

/// Find the highest rate at which a promise about latency is kept
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct LoadFlags {
    /// Directory, regular file or block device
    #[arg(default_value = ".")]
    pub target: PathBuf,
    /// What is promised: the share of transactions that take no longer than a limit
    #[arg(long, value_name = "PROMISE", default_value = "p99<=5ms")]
    pub slo: Promise,
    /// The transaction: oltp, etcd, or a TOML file that describes one
    #[arg(long, value_name = "MIX", default_value = "oltp", conflicts_with_all = ["rw", "bs"])]
    pub mix: String,
    /// Offer the transaction of a load that 'watch --record' saved: 'latest', an id, or a file. A
    /// flush stands for a commit
    #[arg(long, value_name = "RUN", conflicts_with_all = ["rw", "bs", "mix"])]
    pub like: Option<String>,
    /// Device whose load --like repeats [default: the busiest]
    #[arg(long, value_name = "NAME", requires = "like")]
    pub like_device: Option<String>,
    /// Offer plain requests: randread, randwrite, randrw, read, write or rw
    #[arg(long, visible_alias = "readwrite", value_name = "OPERATION", value_parser = parse_rw)]
    pub rw: Option<Rw>,
    /// Search the boundary of random reads and writes, in N mixes from 3 to 21 [default: 7]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "7", conflicts_with_all = ["mix", "like", "rw"])]
    #[arg(value_parser = clap::value_parser!(u16).range(3..=21))]
    pub rays: Option<u16>,
    /// Bytes of each request of --rw [default: 8k], or of --rays [default: 4k]
    #[arg(long, visible_alias = "blocksize", value_name = "BYTES")]
    pub bs: Option<BlockSize>,
    /// Share of reads of a --rw that mixes, in percent [default: 50]
    #[arg(long, value_name = "PERCENT", requires = "rw")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=99))]
    pub rwmixread: Option<u16>,
    /// Sessions, or requests in flight at most [default: 100 sessions, 256 requests]
    #[arg(long, visible_alias = "iodepth", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub depth: Option<u32>,
    /// Threads that share --depth, for a disk that serves more than one thread can send
    #[arg(long, visible_alias = "numjobs", value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: u32,
    /// Time for all searches, at least 20s for each [default: 7m for each]
    #[arg(long, value_name = "DURATION")]
    pub time: Option<Time>,
    /// Hold the answer for so long; the search takes that much longer [default: 1m of 7m]
    #[arg(long, value_name = "DURATION")]
    pub prove: Option<Time>,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: MeasuringFlags,
}

/// A promise about latency, such as `p99<=5ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Promise {
    /// The share of requests that keep to the limit, in percent.
    percent: f64,
    /// The limit in nanoseconds.
    limit_ns: u64,
}

impl FromStr for Promise {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((percentile, limit)) = text.split_once("<=") else {
            return Err(no_promise(text));
        };
        let Some(digits) = percentile.trim().strip_prefix('p') else {
            return Err(no_promise(text));
        };
        let Ok(percent) = digits.parse::<f64>() else {
            return Err(no_promise(text));
        };
        if !PERCENTS.contains(&percent) {
            return Err(format!(
                "p{percent} cannot be promised after some minutes; use p50 to p99.99"
            ));
        }
        let limit_ns = parse_duration(limit.trim()).map_err(|error| error.to_string())?;
        if !(LIMIT_NS_MIN..=LIMIT_NS_MAX).contains(&limit_ns) {
            return Err(format!(
                "a limit of {} is out of range; use {} to {}",
                format_latency(limit_ns),
                format_latency(LIMIT_NS_MIN),
                format_latency(LIMIT_NS_MAX)
            ));
        }
        Ok(Self { percent, limit_ns })
    }
}

fn no_promise(text: &str) -> String {
    format!("'{text}' is no promise; write one such as 'p99<=5ms'")
}

/// Shares that can be promised, in percent: some minutes have too few requests for a larger one.
const PERCENTS: RangeInclusive<f64> = 50.0..=99.99;
/// The shortest limit: below it, delays of timers and processors are a part of every latency.
const LIMIT_NS_MIN: u64 = 50_000;
/// The longest limit: the warm-up of each cell is ten times as long.
const LIMIT_NS_MAX: u64 = 2 * SECOND;

/// A transaction as a file describes it.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct MixFile {
    #[serde(default)]
    reads: u32,
    #[serde(default = "default_block")]
    block: String,
    log: String,
    #[serde(default)]
    writes: u32,
}

/// PostgreSQL's page, as a file writes it.
fn default_block() -> String {
    "8k".to_owned()
}

/// A transaction, before the size of the target is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mix {
    /// Random reads before the commit.
    reads: u32,
    /// Size of each read and each write.
    block_bytes: u32,
    /// Size of the log record that the commit makes durable.
    log_bytes: u32,
    /// Random writes after the commit.
    writes: u32,
}

/// Some index pages and a heap page, its record in the log, and the page that a checkpoint or an
/// eviction writes later: the ratio of pgbench's TPC-B beyond the cache.
const OLTP: Mix = Mix {
    reads: 4,
    block_bytes: 8192,
    log_bytes: 8192,
    writes: 1,
};
/// etcd appends some 2 kB to its log, which the kernel writes as a page.
const ETCD: Mix = Mix {
    reads: 0,
    block_bytes: 4096,
    log_bytes: 4096,
    writes: 0,
};

impl Mix {
    /// The mix of this name, or that of the file of this name.
    fn named(name: &str) -> Result<Self, Failure> {
        match name {
            "oltp" => Ok(OLTP),
            "etcd" => Ok(ETCD),
            _ => Self::read_file(Path::new(name)),
        }
    }

    /// The transaction of a load that `watch` recorded. Fails where its device was never flushed.
    fn observed(load: &LoadFlags, reference: &str) -> Result<Self, Failure> {
        let history = load.measuring.history.history.as_deref();
        let observed = ObservedLoad::find(reference, load.like_device.as_deref(), history)?;
        if let Some(note) = &observed.note {
            load.measuring.verbosity().note(note);
        }
        let Some(transaction) = like_transaction(&observed.device) else {
            return Err(Failure::Usage(format!(
                "--like {reference}: {} was not flushed while it was watched, so that nothing \
                 tells its transactions apart; use --mix",
                observed.device.name
            )));
        };
        Ok(Self {
            reads: transaction.reads,
            block_bytes: transaction.block_bytes,
            log_bytes: transaction.log_bytes,
            writes: transaction.writes,
        })
    }

    fn read_file(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = read_text(path).map_err(|why| {
            Failure::Usage(format!(
                "--mix {shown}: {why}. Name oltp, etcd or a TOML file"
            ))
        })?;
        let file: MixFile = toml::from_str(&text)
            .map_err(|error| Failure::Usage(format!("--mix {shown}: {error}")))?;
        let mix = Self {
            reads: file.reads,
            block_bytes: size_in_file(path, "block", &file.block)?,
            log_bytes: size_in_file(path, "log", &file.log)?,
            writes: file.writes,
        };
        let parts = mix.reads.max(mix.writes);
        if parts > TRANSACTION_PARTS_MAX {
            return Err(Failure::Usage(format!(
                "--mix {shown}: {parts} in one transaction are too many; use at most \
                 {TRANSACTION_PARTS_MAX} reads and writes"
            )));
        }
        Ok(mix)
    }
}

/// Reads the size of a key in the file of a mix. `path` and `key` are for the error.
fn size_in_file(path: &Path, key: &str, text: &str) -> Result<u32, Failure> {
    parse_mix_size(text).map_err(|why| {
        let file = path.display();
        Failure::Usage(format!("--mix {file}: {key} = '{text}': {why}"))
    })
}

fn parse_mix_size(text: &str) -> Result<u32, String> {
    let Bytes(bytes) = text
        .parse()
        .map_err(|error: ValueError| error.to_string())?;
    let is_whole = bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES);
    if !is_whole || bytes > u64::from(LOG_BYTES_MAX) {
        return Err("use whole sectors of 512 bytes, up to 64 MiB".to_owned());
    }
    Ok(bytes as u32)
}

/// Reads the operation of `--rw`. Trims are refused: a load moves data.
fn parse_rw(word: &str) -> Result<Rw, String> {
    let rw: Rw = word.parse().map_err(|error: RwError| error.to_string())?;
    if rw.drops_blocks() {
        return Err(format!("'{word}' moves no data; use reads or writes"));
    }
    Ok(rw)
}

/// Searches the highest rate that keeps the promise, or one for each ray, and then proves it.
pub fn run(load: &LoadFlags) -> anyhow::Result<Exit> {
    let identity = load.measuring.probe(&load.target)?;
    let plan = load_plan(load, &identity)?;
    measure(MeasuringJob::new(plan, vec![identity], &load.measuring))?.exit()
}

/// The plan of `load` for this target. Fails where the time is too short, or the target too small.
fn load_plan(load: &LoadFlags, identity: &TargetIdentity) -> Result<Plan, Failure> {
    if load.bs.is_some() && load.rw.is_none() && load.rays.is_none() {
        return Err(Failure::Usage(
            "--bs is the size of plain requests; it needs --rw or --rays".to_owned(),
        ));
    }
    let search = planned_search(load)?;
    let measuring = &load.measuring;
    let layout_ns = total_ns(load) / LAYOUT_DIVISOR;
    let mut scratch = None;
    let mut target_bytes = identity.size_bytes;
    if let Some(bytes) = measuring.scratch_bytes(identity, SCRATCH_BYTES)? {
        scratch = Some(Scratch::of_size(bytes).filled_within(SCRATCH_BYTES_MIN, layout_ns));
        target_bytes = bytes;
    }
    let workloads = match load.rays {
        Some(rays) => {
            let mut workloads = sequential_requests(load, sequential_ns(total_ns(load)));
            workloads.extend(ray_requests(load, rays)?);
            workloads
        }
        None => {
            let offered = offered_workload(load, target_bytes)?;
            let remedy = if scratch.is_some() {
                "use a larger --size"
            } else {
                "use a larger target"
            };
            refuse_small_target(&offered, target_bytes, remedy)?;
            vec![offered]
        }
    };
    Ok(Plan {
        scratch,
        tasks: vec![Task::Workloads(Workloads {
            decide: Decide::Rate(search),
            ..Workloads::as_planned(workloads)
        })],
        ..measuring.plan("load", std::slice::from_ref(identity))
    })
}

/// The number of searches that the time is shared out to: one for each ray.
fn search_count(load: &LoadFlags) -> u64 {
    u64::from(load.rays.unwrap_or(1))
}

/// The time of all searches, without what --prove adds.
fn total_ns(load: &LoadFlags) -> u64 {
    match load.time {
        Some(Time(ns)) => ns,
        None => search_count(load) * TIME_NS,
    }
}

/// The time of each of the sequential workloads before the rays.
fn sequential_ns(total_ns: u64) -> u64 {
    (total_ns / SEQUENTIAL_DIVISOR).clamp(SEQUENTIAL_NS_MIN, SEQUENTIAL_NS_MAX)
}

/// The promise, and the times of each search. Fails where they are too short.
fn planned_search(load: &LoadFlags) -> Result<RatePlan, Failure> {
    let time_ns = total_ns(load);
    let searches = search_count(load);
    let time_ns_min = searches * TIME_NS_MIN;
    if time_ns < time_ns_min {
        return Err(Failure::Usage(format!(
            "--time {}: too short for {}; use at least {}",
            format_duration(time_ns),
            counted_searches(searches),
            format_duration(time_ns_min)
        )));
    }
    let before_ns = match load.rays {
        Some(_) => SEQUENTIAL.len() as u64 * sequential_ns(time_ns),
        None => 0,
    };
    let searched_ns = (time_ns - before_ns) / searches;
    let usual_hold_ns = HOLD_NS.min(searched_ns / HOLD_DIVISOR);
    let hold_ns = match load.prove {
        Some(Time(ns)) => ns,
        None => usual_hold_ns,
    };
    if hold_ns < usual_hold_ns {
        return Err(Failure::Usage(format!(
            "--prove {}: a search of this --time holds the answer for {}; name more, or omit \
             --prove",
            format_duration(hold_ns),
            format_duration(usual_hold_ns)
        )));
    }
    Ok(RatePlan {
        percent: load.slo.percent,
        limit_ns: load.slo.limit_ns,
        time_ns: searched_ns + (hold_ns - usual_hold_ns),
        hold_ns,
    })
}

fn counted_searches(searches: u64) -> String {
    match searches {
        1 => "the search of a rate".to_owned(),
        several => format!("{several} searches"),
    }
}

/// A sequential workload before the rays, for exports that need its rate.
struct SequentialRequests {
    name: &'static str,
    read_permille: u16,
    block_bytes: u32,
}

/// Bandwidth by large requests (the kernel's iocost_coef_gen.py sends 128 MB), and sequential
/// operations by those of 4 KiB. The mix says what reads and writes move together.
const SEQUENTIAL: [SequentialRequests; 5] = [
    SequentialRequests {
        name: SEQUENTIAL_READ,
        read_permille: READS_ONLY_PERMILLE,
        block_bytes: SEQUENTIAL_BYTES,
    },
    SequentialRequests {
        name: SEQUENTIAL_WRITE,
        read_permille: WRITES_ONLY_PERMILLE,
        block_bytes: SEQUENTIAL_BYTES,
    },
    SequentialRequests {
        name: SEQUENTIAL_MIXED,
        read_permille: HALF_READS_PERMILLE,
        block_bytes: SEQUENTIAL_BYTES,
    },
    SequentialRequests {
        name: SEQUENTIAL_READ_PAGES,
        read_permille: READS_ONLY_PERMILLE,
        block_bytes: RAY_BYTES,
    },
    SequentialRequests {
        name: SEQUENTIAL_WRITE_PAGES,
        read_permille: WRITES_ONLY_PERMILLE,
        block_bytes: RAY_BYTES,
    },
];

/// The sequential workloads, each for this time.
fn sequential_requests(load: &LoadFlags, time_ns: u64) -> Vec<Workload> {
    let mut workloads = Vec::new();
    for requests in &SEQUENTIAL {
        let mut workload = Workload {
            streams: Streams::with_reads(requests.read_permille),
            access: Access::Sequential,
            block_bytes: requests.block_bytes,
            depth: SEQUENTIAL_DEPTH,
            warmup_ns: time_ns / SEQUENTIAL_WARMUP_DIVISOR / CELL_NS * CELL_NS,
            engine: load.measuring.engine.unwrap_or(EngineChoice::Auto),
            ..Workload::named(requests.name)
        };
        workload.stop.time_ns = Some(time_ns - workload.warmup_ns);
        workloads.push(workload);
    }
    workloads
}

/// Requests or sessions at the same time, on the threads that share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InFlight {
    /// The number of threads.
    workers: u32,
    /// Of each thread.
    depth: u32,
}

/// Shares `--depth`, or `usual_depth` without it, among the threads of `--jobs`. They take their
/// starts from one queue. Fails where a thread would have none.
fn in_flight(load: &LoadFlags, usual_depth: u32) -> Result<InFlight, Failure> {
    let depth = load.depth.unwrap_or(usual_depth);
    if load.jobs > depth {
        return Err(Failure::Usage(format!(
            "--jobs {}: more threads than requests at the same time (--depth {depth})",
            load.jobs
        )));
    }
    Ok(InFlight {
        workers: load.jobs,
        depth: depth.div_ceil(load.jobs),
    })
}

/// Random requests, one workload for each ray: its share of reads is that of the ray, from writes
/// alone to reads alone.
fn ray_requests(load: &LoadFlags, rays: u16) -> Result<Vec<Workload>, Failure> {
    let InFlight { workers, depth } = in_flight(load, DEPTH)?;
    let mut workloads = Vec::new();
    for ray in 0..rays {
        let read_share = f64::from(ray) / f64::from(rays - 1);
        let percent = (read_share * 100.0).round();
        let named = Workload::named(&format!("reads-{percent}"));
        workloads.push(Workload {
            streams: Streams::with_reads((read_share * 1000.0).round() as u16),
            block_bytes: load.bs.map_or(RAY_BYTES, |size| size.0),
            workers,
            depth,
            engine: load.measuring.engine.unwrap_or(EngineChoice::Auto),
            ..named
        });
    }
    Ok(workloads)
}

/// The workload whose rate is searched: transactions, or plain requests.
fn offered_workload(load: &LoadFlags, target_bytes: u64) -> Result<Workload, Failure> {
    let workload = match load.rw {
        Some(rw) => plain_requests(load, rw)?,
        None => transactions(load, target_bytes)?,
    };
    Ok(Workload {
        engine: load.measuring.engine.unwrap_or(workload.engine),
        ..workload
    })
}

/// Refuses a target that has no room for the log and one block. `remedy` ends the error.
fn refuse_small_target(
    workload: &Workload,
    target_bytes: u64,
    remedy: &str,
) -> Result<(), Failure> {
    let needed_bytes = match workload.transaction {
        Some(transaction) => transaction.log_span_bytes,
        None => 0,
    };
    if target_bytes < needed_bytes + u64::from(workload.block_bytes) {
        let what = match workload.transaction {
            Some(_) => "log and data of these transactions",
            None => "block of these requests",
        };
        return Err(Failure::Usage(format!(
            "{target_bytes} bytes hold no {what}; {remedy}"
        )));
    }
    Ok(())
}

fn plain_requests(load: &LoadFlags, rw: Rw) -> Result<Workload, Failure> {
    let InFlight { workers, depth } = in_flight(load, DEPTH)?;
    let named = Workload::named(rw.as_str());
    let access = match rw.order {
        Order::Sequential => Access::Sequential,
        Order::Random => named.access.clone(),
    };
    Ok(Workload {
        streams: rw.streams(load.rwmixread.unwrap_or(READ_PERCENT) * 10, &[]),
        access,
        block_bytes: load.bs.map_or(named.block_bytes, |size| size.0),
        workers,
        depth,
        ..named
    })
}

fn transactions(load: &LoadFlags, target_bytes: u64) -> Result<Workload, Failure> {
    let mix = match &load.like {
        Some(reference) => Mix::observed(load, reference)?,
        None => Mix::named(&load.mix)?,
    };
    let log_bytes = u64::from(mix.log_bytes);
    let span_bytes = LOG_SPAN_BYTES
        .min(target_bytes / LOG_SPAN_DIVISOR)
        .max(log_bytes);
    let transaction = Transaction {
        reads: mix.reads,
        log_bytes: mix.log_bytes,
        // A record more than what holds whole ones: it begins at a multiple of its length.
        log_span_bytes: span_bytes.next_multiple_of(log_bytes) + log_bytes,
        writes: mix.writes,
    };
    let name = match load.mix.as_str() {
        known @ ("oltp" | "etcd") if load.like.is_none() => known,
        _ => "transactions",
    };
    let InFlight { workers, depth } = in_flight(load, SESSIONS)?;
    Ok(Workload {
        streams: Streams::with_reads(transaction.read_permille()),
        access: Access::Random {
            distribution: Distribution::Uniform,
        },
        block_bytes: mix.block_bytes,
        workers,
        depth,
        sync: SyncPolicy::Shared {
            call: SyncCall::Fdatasync,
        },
        transaction: Some(transaction),
        ..Workload::named(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promise_is_a_percentile_and_a_limit() {
        let promise: Promise = "p99.9<=20ms".parse().unwrap();
        assert_eq!((promise.percent, promise.limit_ns), (99.9, 20_000_000));
        let spaced: Promise = "p99 <= 500us".parse().unwrap();
        assert_eq!(spaced.limit_ns, 500_000);
        for wrong in [
            "p99<5ms",
            "99<=5ms",
            "p100<=5ms",
            "p99<=5",
            "p99<=1us",
            "p10<=5ms",
        ] {
            assert!(wrong.parse::<Promise>().is_err(), "{wrong}");
        }
        let refusal = "p99<=1us".parse::<Promise>().unwrap_err();
        assert!(refusal.contains(&format_latency(LIMIT_NS_MIN)), "{refusal}");
    }

    #[test]
    fn mix_of_a_file_says_which_key_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mix.toml");
        for (text, key) in [
            ("reads = 2", "log"),
            ("log = '700'", "log"),
            ("log = '8k'\nreads = 1001", "1001"),
            ("log = '8k'\nread = 1", "read"),
        ] {
            std::fs::write(&path, text).unwrap();
            let failure = Mix::read_file(&path).unwrap_err();
            assert!(failure.to_string().contains(key), "{failure}");
        }
        std::fs::write(&path, "log = '16k'\nreads = 2").unwrap();
        let mix = Mix::read_file(&path).unwrap();
        assert_eq!((mix.reads, mix.log_bytes, mix.writes), (2, 16384, 0));
    }
}
