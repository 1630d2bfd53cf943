//! `diskproof commit`: how many transactions a second a disk makes durable, by each method that the
//! platform has, with one and several sessions, alone and alongside other load.

use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, SECOND, SelectionFlags};
use crate::postgres::{Breadth, ServerFlags, insert_names, postgres_plan, postgres_version};
use crate::session::{Agreed, MeasuringJob, measure};
use crate::write_cache::{CacheStates, WriteCacheFlags};
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, Inserts, Order, Plan, Questions, Scratch,
    Skipped, Span, Start, Stop, SyncCall, SyncPolicy, Task, Workload, Workloads, WriteFlag,
};
use diskproof_model::stream::Streams;
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{format_bytes, parse_duration};
use diskproof_postgres::Programs;
use std::path::PathBuf;

/// PostgreSQL's WAL page (XLOG_BLCKSZ).
const PAGE_BYTES: u32 = 8192;
/// PostgreSQL's WAL segment (wal_segment_size), which it recycles: its blocks are allocated and
/// written before.
const SEGMENT_BYTES: u64 = 16 << 20;
/// With less alongside the segment, reads would find the disk's cache.
const DATA_BYTES: u64 = (1 << 30) - SEGMENT_BYTES;
const DATA_BYTES_QUICK: u64 = (128 << 20) - SEGMENT_BYTES;
/// The loads alongside commits need at least this much.
const DATA_BYTES_LEAST: u64 = 16 << 20;
/// Only a disk in RAM reaches this limit of a row.
const ROW_BYTES_MAX: u64 = 1 << 30;
/// Pages in a commit alongside the usual one: a transaction of two pages, and one with some
/// full-page images.
const PAGES: [u32; 2] = [2, 8];
/// Sessions that commit at the same time, alongside one.
const COMMITTERS: [u32; 6] = [2, 4, 8, 16, 32, 64];
const COMMITTERS_QUICK: [u32; 1] = [16];
/// Sizes of writes by open_sync, alongside a page and those of [`PAGES`].
const SIZES: [u32; 4] = [1 << 10, 2 << 10, 4 << 10, 32 << 10];
/// Smaller writes find their blocks in memory, as a server's do. They go round in this part of the
/// segment, because all of it is brought into memory again after a row that empties the page cache.
const WHOLE_BLOCK_BYTES: u32 = 4096;
const SMALL_SPAN_BYTES: u64 = 1 << 20;
/// Reads in flight alongside commits: some sessions that look pages up.
const READS_BESIDE: u32 = 8;
/// Writes in flight alongside commits: what the kernel keeps up when a checkpoint is written back.
const WRITES_BESIDE: u32 = 32;
const PRECISION: f64 = 0.02;
/// The help promises 60 s and 20 s. Laying the file out and what is in flight at the end of each
/// slice need the rest.
const TIME_NS: u64 = 50 * SECOND;
const TIME_NS_QUICK: u64 = 16 * SECOND;
/// Share of the time in which the scratch file gets its content, beyond the time of the rows.
const LAYOUT_SHARE: u64 = 10;

/// Many rows are short: a commit is a few milliseconds at most, unless the disk rotates.
const ORDER: Order = Order::InTurns {
    slices_from_ns: 500_000_000,
};

const HELP: &str = "\
Each row appends 8 kB records to a recycled 16 MiB segment, as PostgreSQL writes
its WAL, and makes each durable before the next. The methods are those of
wal_sync_method. The slices of all rows are measured in random order.

  fdatasync-x8      commits of 8 pages, written at once
  fdatasync-c16     16 sessions, each with its own syncs
  group-c16         16 sessions that share syncs (group commit)
  dsync-direct      O_DSYNC with direct I/O, as in pg_test_fsync
  fsync-elsewhere   sync through another descriptor
  with-reads        fdatasync while random reads are in flight
  with-checkpoint   fdatasync while random writes are in flight
  unsynced          writes without a sync: the upper limit
  insert-fsync-c4   with --postgres: INSERTs of 4 sessions by fsync

In a directory, commit measures a scratch file. The file has no name and
vanishes even after kill -9. --overwrite releases a file, and --destroy NAME (its
serial, model or kernel name) a device.

Exit codes: 0 done, 1 a threshold was missed, 2 usage, 3 refused for safety,
4 the run failed or the disk returned errors, 5 a threshold is undecided,
130 Ctrl-C.

Examples:
  diskproof commit /var/lib/postgresql     # every method, in a minute
  diskproof commit /data --quick           # the most important ones, in 20 s
  diskproof commit /data --rewrite         # the same blocks, like pg_test_fsync
  diskproof commit /data --only fdatasync,group-c16
  diskproof commit /data --postgres        # also INSERTs on a temporary server
  diskproof commit /data --postgres --try-settings # also the gain of settings
  diskproof commit /data --expect 'fdatasync.p99<=10ms'";

/// Measure how many transactions per second a disk makes durable, with each method
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct CommitFlags {
    /// Directory, regular file or block device
    #[arg(default_value = ".")]
    pub target: PathBuf,
    /// Measure only the most important rows, in at most 20 seconds
    #[arg(long)]
    pub quick: bool,
    /// Time limit for all rows together, at least 1s
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub time: Option<u64>,
    /// Decide whether the target is fit for a database: postgresql, etcd, mysql, sqlite, or the
    /// path of a profile with limits; measures only its workloads (diskproof help fitness)
    #[arg(long = "for", value_name = "PROFILE", conflicts_with_all = ["only", "skip", "rewrite"])]
    pub fit_for: Option<String>,
    /// What is measured.
    #[command(flatten)]
    pub selection: SelectionFlags,
    /// Rewrite the same blocks for each commit instead of advancing
    #[arg(long)]
    pub rewrite: bool,
    /// The write cache of the disk.
    #[command(flatten)]
    pub cache: WriteCacheFlags,
    /// A temporary PostgreSQL server.
    #[command(flatten)]
    pub server: ServerFlags,
    /// Major version of PostgreSQL for the recommended settings [default: that of the data
    /// directory on the target, or of the only installed server]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=99))]
    pub pg_version: Option<u32>,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: MeasuringFlags,
}

/// Measures.
pub fn run(commit: &CommitFlags) -> anyhow::Result<Exit> {
    let mut identity = commit.measuring.probe(&commit.target)?;
    if let Some(profile) = &commit.fit_for {
        let time_ns = time_ns(commit);
        return crate::fitness::measure_fitness(
            profile,
            "commit",
            ORDER,
            identity,
            time_ns,
            &commit.measuring,
        );
    }
    let programs = commit.server.programs(&identity)?;
    let plan = plan(commit, &identity, programs.as_ref())?;
    let switch = commit.cache.switch(&identity)?;
    crate::targets::note_write_caches(&mut identity);
    if let Some(switch) = switch.as_ref().filter(|_| !commit.measuring.dry_run) {
        commit.cache.ask(switch, commit.measuring.verbosity())?;
    }
    let mut job = MeasuringJob::new(plan, vec![identity], &commit.measuring);
    job.agreed = Agreed::server_or_cache(programs, switch);
    measure(job)?.exit()
}

fn time_ns(commit: &CommitFlags) -> u64 {
    let default = if commit.quick { TIME_NS_QUICK } else { TIME_NS };
    commit.time.unwrap_or(default)
}

/// The plan of `commit` for this target, and for this server.
pub fn plan(
    commit: &CommitFlags,
    identity: &TargetIdentity,
    programs: Option<&Programs>,
) -> Result<Plan, Failure> {
    let (measuring, time_ns) = (&commit.measuring, time_ns(commit));
    Failure::check_time(time_ns)?;
    let scratch_bytes = scratch_size(commit, identity)?;
    let file_bytes = scratch_bytes.unwrap_or(identity.size_bytes);
    if file_bytes < SEGMENT_BYTES {
        return Err(Failure::Usage(format!(
            "{}: {} cannot hold a segment of {}; use a larger target",
            identity.path,
            format_bytes(file_bytes),
            format_bytes(SEGMENT_BYTES)
        )));
    }
    let breadth = if commit.quick {
        Breadth::Quick
    } else {
        Breadth::All
    };
    let inserts = programs.map(|programs| insert_names(breadth, programs));
    let (rows, skipped) = rows(commit, breadth, file_bytes, &inserts.unwrap_or_default())?;
    let rows = rows
        .into_iter()
        .flat_map(|row| row.in_states(&commit.cache));
    let rows: Vec<CommitRow> = rows.collect();
    let unit_ns = time_ns / rows.iter().map(|row| row.weight).sum::<u64>();
    let list = rows
        .into_iter()
        .flat_map(|row| row.timed(unit_ns, measuring.engine))
        .collect();
    let workloads = Workloads {
        order: ORDER,
        ..Workloads::as_planned(list)
    };
    let layout_ns = time_ns / LAYOUT_SHARE;
    let task = match programs {
        None => Task::Workloads(workloads),
        Some(programs) => Task::Inserts(Inserts {
            server: postgres_plan(
                programs,
                breadth,
                time_ns,
                (commit.server.try_settings, &commit.selection),
            )?,
            between: workloads,
        }),
    };
    let server_version = programs.map(|programs| programs.version);
    let filled_min = SEGMENT_BYTES + DATA_BYTES_LEAST;
    Ok(Plan {
        scratch: scratch_bytes
            .map(|bytes| Scratch::of_size(bytes).filled_within(filled_min, layout_ns)),
        time_limit_ns: match programs {
            None => Some(time_ns + layout_ns),
            Some(_) => None,
        },
        tasks: vec![task],
        questions: Questions {
            postgres_version: postgres_version(
                commit.pg_version.or(server_version),
                &commit.target,
            ),
            ..Questions::default()
        },
        skipped,
        ..measuring.plan("commit", std::slice::from_ref(identity))
    })
}

/// The rows that fit and that the user selected, and the workloads of the others.
fn rows(
    commit: &CommitFlags,
    breadth: Breadth,
    file_bytes: u64,
    inserts: &[String],
) -> Result<(Vec<CommitRow>, Vec<Skipped>), Failure> {
    let (mut alone, mut beside) = (alone(breadth), beside(file_bytes));
    if commit.cache.write_cache == Some(CacheStates::Both) {
        alone.retain(CommitRow::shows_write_cache);
        beside.clear();
    }
    if commit.rewrite {
        alone.iter_mut().for_each(CommitRow::rewrite);
    }
    let least = format_bytes(DATA_BYTES_LEAST);
    let no_room = (file_bytes < SEGMENT_BYTES + DATA_BYTES_LEAST)
        .then(|| format!("less than {least} beside the segment"));
    let all = || alone.iter().chain(&beside).flat_map(|row| &row.workloads);
    let mut known: Vec<&str> = all().map(|workload| workload.name.as_str()).collect();
    known.extend(inserts.iter().map(String::as_str));
    commit.selection.check_names(&known)?;
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    let of_alone = alone.into_iter().map(|row| (row, None));
    for (row, no_room) in of_alone.chain(beside.into_iter().map(|row| (row, no_room.clone()))) {
        let excluded = row.excluded(&commit.selection).map(str::to_owned);
        match excluded.or(no_room) {
            None => rows.push(row),
            Some(why) => {
                let names = row.workloads.into_iter().map(|workload| workload.name);
                skipped.extend(names.map(|name| Skipped::new(name, &why)));
            }
        }
    }
    if rows.is_empty() {
        return Err(Failure::Usage(
            "nothing is left to measure; select at least one row".to_owned(),
        ));
    }
    Ok((rows, skipped))
}

/// The size of the scratch file of a directory, in whole segments; other targets have none.
fn scratch_size(commit: &CommitFlags, identity: &TargetIdentity) -> Result<Option<u64>, Failure> {
    if !commit.measuring.needs_scratch(identity, "omit it")? {
        return Ok(None);
    }
    let data_bytes = if commit.quick {
        DATA_BYTES_QUICK
    } else {
        DATA_BYTES
    };
    let room = diskproof_device::scratch_bytes_max(identity).saturating_sub(commit.server.bytes());
    let most = (SEGMENT_BYTES + data_bytes).min(room).max(SEGMENT_BYTES);
    let wanted = commit.measuring.size.unwrap_or(most);
    if wanted < SEGMENT_BYTES {
        return Err(Failure::Usage(format!(
            "--size {}: smaller than a segment; use at least {}",
            format_bytes(wanted),
            format_bytes(SEGMENT_BYTES)
        )));
    }
    Ok(Some(wanted / SEGMENT_BYTES * SEGMENT_BYTES))
}

/// Workloads that are measured at the same time, mostly one, and their share of the time.
#[derive(Debug)]
struct CommitRow {
    weight: u64,
    workloads: Vec<Workload>,
}

impl CommitRow {
    /// The flag that excludes it. One name selects or excludes all that is measured at the same
    /// time.
    fn excluded(&self, selection: &SelectionFlags) -> Option<&'static str> {
        let workloads = self.workloads.iter();
        let each = workloads.map(|workload| selection.excludes(&workload.name));
        if each.clone().any(|flag| flag == Some("--skip")) {
            Some("--skip")
        } else {
            each.clone().all(|flag| flag.is_some()).then_some("--only")
        }
    }

    fn rewrite(&mut self) {
        for workload in &mut self.workloads {
            let bytes = workload.block_bytes * workload.depth;
            workload.span.length_bytes = Some(u64::from(bytes));
        }
    }

    /// Whether it is measured in both states of the write cache: fewer rows get more turns each.
    fn shows_write_cache(&self) -> bool {
        self.workloads.iter().all(|workload| {
            workload.block_bytes == PAGE_BYTES
                && workload.cache == CachePolicy::Cached
                && workload.sync != SyncPolicy::None
                && !matches!(workload.sync, SyncPolicy::OtherDescriptor { .. })
                && [1, COMMITTERS_QUICK[0]].contains(&workload.depth)
        })
    }

    /// The row in each state of the write cache that was requested.
    fn in_states(self, cache: &WriteCacheFlags) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        for workload in self.workloads {
            for (index, workload) in cache.states_of(workload).into_iter().enumerate() {
                match rows.get_mut(index) {
                    Some(row) => row.workloads.push(workload),
                    None => rows.push(row(self.weight, workload)),
                }
            }
        }
        rows
    }

    /// Its workloads with their limits. A part of the time is the warm-up.
    fn timed(self, unit_ns: u64, engine: Option<EngineChoice>) -> impl Iterator<Item = Workload> {
        let time_ns = unit_ns * self.weight;
        let warmup_ns = (time_ns / 20).min(SECOND);
        self.workloads.into_iter().map(move |workload| {
            let is_beside = workload.start == Start::WithPrevious;
            Workload {
                stop: Stop {
                    precision: (!is_beside).then_some(PRECISION),
                    time_ns: Some(time_ns - warmup_ns),
                    bytes: workload.writes().then_some(ROW_BYTES_MAX),
                    ops: None,
                },
                warmup_ns,
                // Each session is a thread that waits for its own commit, as the processes of a
                // server do.
                engine: match engine {
                    Some(engine) if !workload.sync.needs_threads() => engine,
                    _ if workload.sync == SyncPolicy::None => EngineChoice::Auto,
                    _ => EngineChoice::Fixed(EngineKind::Sync),
                },
                ..workload
            }
        })
    }
}

/// A method of making a page durable.
#[derive(Debug, Clone, Copy)]
struct Method {
    name: &'static str,
    sync: SyncPolicy,
}

const fn each(name: &'static str, call: SyncCall) -> Method {
    let sync = SyncPolicy::Every { writes: 1, call };
    Method { name, sync }
}

const fn opened(name: &'static str, flag: WriteFlag) -> Method {
    let sync = SyncPolicy::WithWrite { flag };
    Method { name, sync }
}

const FDATASYNC: Method = each("fdatasync", SyncCall::Fdatasync);
const FSYNC: Method = each("fsync", SyncCall::Fsync);
const OPEN_DATASYNC: Method = opened("open_datasync", WriteFlag::OpenDsync);
const OPEN_SYNC: Method = opened("open_sync", WriteFlag::OpenSync);
const RWF_DSYNC: Method = opened("rwf_dsync", WriteFlag::RwfDsync);
/// PostgreSQL's values of wal_sync_method on Linux, and the flag of one write, which it does not
/// use.
const METHODS: [Method; 5] = [FDATASYNC, FSYNC, OPEN_DATASYNC, OPEN_SYNC, RWF_DSYNC];

impl Method {
    /// Commits of one session, one page each, through the page cache as the server writes its WAL
    /// (debug_io_direct is off).
    fn commits(self) -> Workload {
        Workload {
            streams: Streams::with_reads(0),
            access: Access::Sequential,
            block_bytes: PAGE_BYTES,
            span: Span::new(0, Some(SEGMENT_BYTES)),
            sync: self.sync,
            cache: CachePolicy::Cached,
            ..Workload::named(self.name)
        }
    }

    /// Commits of another size, written at once.
    fn sized(self, suffix: String, block_bytes: u32) -> Workload {
        let span_bytes = if block_bytes < WHOLE_BLOCK_BYTES {
            SMALL_SPAN_BYTES
        } else {
            SEGMENT_BYTES
        };
        Workload {
            name: format!("{}-{suffix}", self.name),
            block_bytes,
            span: Span::new(0, Some(span_bytes)),
            ..self.commits()
        }
    }

    /// The same past the page cache, as pg_test_fsync does with its open methods.
    fn direct(self, name: &str) -> Workload {
        Workload {
            name: name.to_owned(),
            cache: CachePolicy::Direct,
            ..self.commits()
        }
    }
}

fn row(weight: u64, workload: Workload) -> CommitRow {
    CommitRow {
        weight,
        workloads: vec![workload],
    }
}

/// Commits without other load.
fn alone(breadth: Breadth) -> Vec<CommitRow> {
    let all = breadth == Breadth::All;
    let mut rows: Vec<CommitRow> = METHODS.map(|method| row(2, method.commits())).into();
    let pages: &[u32] = if all { &PAGES } else { &PAGES[1..] };
    for pages in pages {
        let bytes = pages * PAGE_BYTES;
        let several = METHODS.map(|method| row(1, method.sized(format!("x{pages}"), bytes)));
        rows.extend(several.into_iter().take(if all { 5 } else { 4 }));
    }
    rows.push(row(1, OPEN_DATASYNC.direct("dsync-direct")));
    rows.push(row(1, FDATASYNC.direct("fdatasync-direct")));
    let committers: &[u32] = if all { &COMMITTERS } else { &COMMITTERS_QUICK };
    let other = |name: String, sync, depth| {
        let commits = Workload {
            name,
            sync,
            depth,
            ..FDATASYNC.commits()
        };
        row(1, commits)
    };
    for &depth in committers {
        let call = SyncCall::Fdatasync;
        rows.push(other(format!("fdatasync-c{depth}"), FDATASYNC.sync, depth));
        let shared = SyncPolicy::Shared { call };
        rows.push(other(format!("group-c{depth}"), shared, depth));
    }
    if all {
        rows.extend(SIZES.map(|bytes| row(1, OPEN_SYNC.sized(format!("{}k", bytes >> 10), bytes))));
        let call = SyncCall::Fsync;
        let elsewhere = SyncPolicy::OtherDescriptor { call };
        rows.push(other("fsync-elsewhere".to_owned(), elsewhere, 1));
    }
    rows.push(other("unsynced".to_owned(), SyncPolicy::None, 1));
    rows
}

/// Commits alongside other load on the rest of the target: random reads, and the writes of a
/// checkpoint as they reach the disk. Those are direct, because they belong to other files than the
/// WAL: a sync of the WAL does not write them.
fn beside(file_bytes: u64) -> Vec<CommitRow> {
    let load = |name: &str, read_permille, depth| Workload {
        streams: Streams::with_reads(read_permille),
        depth,
        block_bytes: PAGE_BYTES,
        span: Span {
            start_bytes: SEGMENT_BYTES,
            length_bytes: Some((file_bytes - SEGMENT_BYTES.min(file_bytes)).min(DATA_BYTES)),
        },
        start: Start::WithPrevious,
        ..Workload::named(name)
    };
    let with = |name: &str, load: Workload| CommitRow {
        weight: 2,
        workloads: vec![
            Workload {
                name: name.to_owned(),
                ..FDATASYNC.commits()
            },
            load,
        ],
    };
    vec![
        with("with-reads", load("reads", 1000, READS_BESIDE)),
        with("with-checkpoint", load("checkpoint", 0, WRITES_BESIDE)),
    ]
}
