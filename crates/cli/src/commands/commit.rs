//! `diskproof commit`: how many transactions a second a disk makes durable, by each method that the
//! platform has, with one and several sessions, alone and alongside other load.

use crate::failure::{Exit, Failure};
use crate::fitness::measure_fitness;
use crate::flags::{MeasuringFlags, SECOND, SelectionFlags};
use crate::postgres::{
    Breadth, InsertRequest, ServerFlags, insert_names, postgres_plan, postgres_version,
};
use crate::session::{Agreed, MeasuringJob, measure};
use crate::standard_workloads::{READS_ONLY_PERMILLE, WRITES_ONLY_PERMILLE};
use crate::write_cache::{CacheStates, WriteCacheFlags};
use diskproof_device::scratch_bytes_max;
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, Inserts, Order, Plan, Questions, Scratch,
    SkipCause, Skipped, Span, Start, Stop, SyncCall, SyncPolicy, Task, Workload, Workloads,
    WriteFlag,
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
/// With --quick, a disk of 80 MB/s fills the file in the tenth of the time that it has.
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
/// Sessions that commit at the same time, with --quick and in both states of the write cache.
const COMMITTERS_QUICK: [u32; 1] = [16];
/// Sizes of writes by open_sync, alongside a page and those of [`PAGES`].
const SIZES: [u32; 4] = [1 << 10, 2 << 10, 4 << 10, 32 << 10];
/// A filesystem's block: a smaller write needs the rest of its block in memory, as a server has it.
const WHOLE_BLOCK_BYTES: u32 = 4096;
/// Writes below a block go round in this part of the segment, because all of it is brought into
/// memory again after a row that empties the page cache.
const SMALL_SPAN_BYTES: u64 = 1 << 20;
/// Reads in flight alongside commits: some sessions that look pages up.
const READS_ALONGSIDE: u32 = 8;
/// Writes in flight alongside commits: what the kernel keeps up when a checkpoint is written back.
const WRITES_ALONGSIDE: u32 = 32;
/// A row ends early once its rate is known to ± 2 %.
const PRECISION: f64 = 0.02;
/// The help promises a minute. Laying the file out and what is in flight at the end of each slice
/// need the rest.
const TIME_NS: u64 = 50 * SECOND;
/// The help promises 20 s with --quick.
const TIME_NS_QUICK: u64 = 16 * SECOND;
/// The scratch file gets its content in a tenth of the rows' time, beyond that time.
const LAYOUT_DIVISOR: u64 = 10;
/// A row warms up for a twentieth of its time, and for a second at most.
const WARMUP_DIVISOR: u64 = 20;

/// Rows of at least half a second are measured in slices: a commit is a few milliseconds at most,
/// unless the disk rotates.
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
    #[arg(long = "for", value_name = "PROFILE",
        conflicts_with_all = ["only", "skip", "rewrite", "pg_version"])]
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

/// Measures commits, or with `--for` whether the target is fit for a database.
pub fn run(commit: &CommitFlags) -> anyhow::Result<Exit> {
    let mut identity = commit.measuring.probe(&commit.target)?;
    if let Some(profile) = &commit.fit_for {
        return measure_fitness(
            profile,
            "commit",
            ORDER,
            identity,
            total_ns(commit),
            &commit.measuring,
        );
    }
    let programs = commit.server.programs(&identity)?;
    let plan = commit_plan(commit, &identity, programs.as_ref())?;
    let switch = commit.cache.switch(&identity)?;
    crate::targets::note_write_caches(&mut identity);
    if let Some(switch) = &switch
        && !commit.measuring.dry_run
    {
        commit.cache.ask(switch, commit.measuring.verbosity())?;
    }
    let mut job = MeasuringJob::new(plan, vec![identity], &commit.measuring);
    job.agreed = Agreed::server_or_cache(programs, switch);
    measure(job)?.exit()
}

/// The time of all rows together.
fn total_ns(commit: &CommitFlags) -> u64 {
    let default = if commit.quick { TIME_NS_QUICK } else { TIME_NS };
    commit.time.unwrap_or(default)
}

/// The plan of `commit` for this target, and for a server of these programs with `--postgres`.
/// Fails for a target smaller than a segment, and where the flags leave nothing to measure.
pub fn commit_plan(
    commit: &CommitFlags,
    identity: &TargetIdentity,
    programs: Option<&Programs>,
) -> Result<Plan, Failure> {
    let measuring = &commit.measuring;
    let time_ns = total_ns(commit);
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
    let inserts = match programs {
        Some(programs) => insert_names(breadth, programs),
        None => Vec::new(),
    };
    let selected = select_rows(commit, breadth, file_bytes, &inserts)?;
    let workloads = Workloads {
        order: ORDER,
        ..Workloads::as_planned(timed_workloads(selected.rows, commit, time_ns))
    };
    let layout_ns = time_ns / LAYOUT_DIVISOR;
    let (task, time_limit_ns, server_version) = match programs {
        None => (Task::Workloads(workloads), Some(time_ns + layout_ns), None),
        Some(programs) => {
            let request = InsertRequest {
                breadth,
                rows_ns: time_ns,
                tries_settings: commit.server.try_settings,
                selection: &commit.selection,
            };
            let inserts = Inserts {
                server: postgres_plan(programs, &request)?,
                between: workloads,
            };
            (Task::Inserts(inserts), None, Some(programs.version))
        }
    };
    let scratch = match scratch_bytes {
        Some(bytes) => {
            let filled_min = SEGMENT_BYTES + DATA_BYTES_LEAST;
            Some(Scratch::of_size(bytes).filled_within(filled_min, layout_ns))
        }
        None => None,
    };
    let named_version = commit.pg_version.or(server_version);
    Ok(Plan {
        scratch,
        time_limit_ns,
        tasks: vec![task],
        questions: Questions {
            postgres_version: postgres_version(named_version, &commit.target),
            ..Questions::default()
        },
        skipped: selected.skipped,
        ..measuring.plan("commit", std::slice::from_ref(identity))
    })
}

/// The workloads of the rows, in each state of the write cache, which share the time.
fn timed_workloads(rows: Vec<CommitRow>, commit: &CommitFlags, time_ns: u64) -> Vec<Workload> {
    let mut measured = Vec::new();
    for row in rows {
        measured.extend(row.in_states(&commit.cache));
    }
    let weights: u64 = measured.iter().map(|row| row.weight).sum();
    let mut workloads = Vec::new();
    for row in measured {
        workloads.extend(row.timed(time_ns / weights, commit.measuring.engine));
    }
    workloads
}

/// The rows that fit and that the user selected, and the workloads of the others.
#[derive(Default)]
struct SelectedRows {
    rows: Vec<CommitRow>,
    skipped: Vec<Skipped>,
}

impl SelectedRows {
    fn skip(&mut self, row: CommitRow, why: &str, cause: SkipCause) {
        for workload in row.workloads {
            self.skipped.push(Skipped {
                cause,
                ..Skipped::new(workload.name, why)
            });
        }
    }
}

fn select_rows(
    commit: &CommitFlags,
    breadth: Breadth,
    file_bytes: u64,
    inserts: &[String],
) -> Result<SelectedRows, Failure> {
    let selection = &commit.selection;
    let mut alone = rows_alone(breadth);
    let mut under_load = rows_under_load(file_bytes);
    if commit.cache.write_cache == Some(CacheStates::Both) {
        alone.retain(CommitRow::shows_write_cache);
        under_load.clear();
    }
    if commit.rewrite {
        alone.iter_mut().for_each(CommitRow::rewrite);
    }
    let mut known_names: Vec<&str> = Vec::new();
    for row in alone.iter().chain(&under_load) {
        known_names.extend(row.workloads.iter().map(|workload| workload.name.as_str()));
    }
    known_names.extend(inserts.iter().map(String::as_str));
    selection.check_names(&known_names)?;
    let mut selected = SelectedRows::default();
    for row in alone {
        match row.excluded(selection) {
            None => selected.rows.push(row),
            Some(flag) => selected.skip(row, flag, SkipCause::User),
        }
    }
    let has_room = file_bytes >= SEGMENT_BYTES + DATA_BYTES_LEAST;
    for row in under_load {
        match row.excluded(selection) {
            None if has_room => selected.rows.push(row),
            None => {
                let least = format_bytes(DATA_BYTES_LEAST);
                let why = format!("less than {least} beside the segment");
                selected.skip(row, &why, SkipCause::Target);
            }
            Some(flag) => selected.skip(row, flag, SkipCause::User),
        }
    }
    let has_inserts = inserts
        .iter()
        .any(|name| selection.excludes(name).is_none());
    if selected.rows.is_empty() && !has_inserts {
        return Err(Failure::Usage(
            "nothing is left to measure; select at least one row".to_owned(),
        ));
    }
    Ok(selected)
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
    let free_bytes = scratch_bytes_max(identity);
    let room = free_bytes.saturating_sub(commit.server.room_bytes());
    let default_bytes = SEGMENT_BYTES + data_bytes;
    let wanted = match commit.measuring.size {
        Some(size) => size,
        None => default_bytes.min(room).max(SEGMENT_BYTES),
    };
    if wanted < SEGMENT_BYTES {
        return Err(Failure::Usage(format!(
            "--size {}: smaller than a segment; use at least {}",
            format_bytes(wanted),
            format_bytes(SEGMENT_BYTES)
        )));
    }
    Ok(Some(wanted / SEGMENT_BYTES * SEGMENT_BYTES))
}

/// Workloads that are measured at the same time, mostly one.
#[derive(Debug)]
struct CommitRow {
    /// The row's time relative to those of the others.
    weight: u64,
    workloads: Vec<Workload>,
}

impl CommitRow {
    /// The flag that excludes the row. One name selects or excludes all that is measured at the
    /// same time.
    fn excluded(&self, selection: &SelectionFlags) -> Option<&'static str> {
        let mut is_selected = false;
        for workload in &self.workloads {
            match selection.excludes(&workload.name) {
                Some("--skip") => return Some("--skip"),
                Some(_) => {}
                None => is_selected = true,
            }
        }
        if is_selected { None } else { Some("--only") }
    }

    /// Has each workload write the same blocks again and again, those of one commit.
    fn rewrite(&mut self) {
        for workload in &mut self.workloads {
            let bytes = workload.block_bytes * workload.depth;
            workload.span.length_bytes = Some(u64::from(bytes));
        }
    }

    /// Whether the row is measured in both states of the write cache: fewer rows get more turns
    /// each.
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

    /// The workloads of the row with their limits. `unit_ns` is the time of a row of weight 1, of
    /// which a part is the warm-up.
    fn timed(self, unit_ns: u64, engine: Option<EngineChoice>) -> Vec<Workload> {
        let time_ns = unit_ns * self.weight;
        let warmup_ns = (time_ns / WARMUP_DIVISOR).min(SECOND);
        let mut timed = self.workloads;
        for workload in &mut timed {
            workload.stop = Stop {
                precision: None,
                time_ns: Some(time_ns - warmup_ns),
                bytes: None,
                ops: None,
            };
            if workload.start != Start::WithPrevious {
                workload.stop.precision = Some(PRECISION);
            }
            if workload.writes() {
                workload.stop.bytes = Some(ROW_BYTES_MAX);
            }
            workload.warmup_ns = warmup_ns;
            // Each session is a thread that waits for its own commit, as the processes of a server
            // do.
            workload.engine = match engine {
                Some(engine) if !workload.sync.needs_threads() => engine,
                _ if workload.sync == SyncPolicy::None => EngineChoice::Auto,
                _ => EngineChoice::Fixed(EngineKind::Sync),
            };
        }
        timed
    }
}

/// A method of making a page durable.
#[derive(Debug, Clone, Copy)]
struct Method {
    name: &'static str,
    sync: SyncPolicy,
}

/// The method that calls `call` after each write.
const fn calls(name: &'static str, call: SyncCall) -> Method {
    let sync = SyncPolicy::Every { writes: 1, call };
    Method { name, sync }
}

/// The method whose writes are durable by a flag of theirs or of the open file.
const fn flagged(name: &'static str, flag: WriteFlag) -> Method {
    let sync = SyncPolicy::WithWrite { flag };
    Method { name, sync }
}

const FDATASYNC: Method = calls("fdatasync", SyncCall::Fdatasync);
const FSYNC: Method = calls("fsync", SyncCall::Fsync);
const OPEN_DATASYNC: Method = flagged("open_datasync", WriteFlag::OpenDsync);
const OPEN_SYNC: Method = flagged("open_sync", WriteFlag::OpenSync);
const RWF_DSYNC: Method = flagged("rwf_dsync", WriteFlag::RwfDsync);
/// PostgreSQL's values of wal_sync_method on Linux.
const SERVER_METHODS: [Method; 4] = [FDATASYNC, FSYNC, OPEN_DATASYNC, OPEN_SYNC];
/// Those, and the flag of one write, which PostgreSQL does not use.
const METHODS: [Method; 5] = [FDATASYNC, FSYNC, OPEN_DATASYNC, OPEN_SYNC, RWF_DSYNC];

impl Method {
    /// Commits of one session, one page each, through the page cache as the server writes its WAL
    /// (debug_io_direct is off).
    fn commits(self) -> Workload {
        Workload {
            streams: Streams::with_reads(WRITES_ONLY_PERMILLE),
            access: Access::Sequential,
            block_bytes: PAGE_BYTES,
            span: Span::new(0, Some(SEGMENT_BYTES)),
            sync: self.sync,
            cache: CachePolicy::Cached,
            ..Workload::named(self.name)
        }
    }

    /// Commits of another size, each of one write. The workload is named after the method and the
    /// suffix.
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

    /// Commits of one session past the page cache, as pg_test_fsync does with its open methods.
    fn direct(self, name: &str) -> Workload {
        Workload {
            name: name.to_owned(),
            cache: CachePolicy::Direct,
            ..self.commits()
        }
    }
}

/// A row of one workload.
fn row(weight: u64, workload: Workload) -> CommitRow {
    CommitRow {
        weight,
        workloads: vec![workload],
    }
}

/// Commits of a page with this sync, by `sessions` at the same time.
fn synced_row(name: &str, sync: SyncPolicy, sessions: u32) -> CommitRow {
    let commits = Workload {
        name: name.to_owned(),
        sync,
        depth: sessions,
        ..FDATASYNC.commits()
    };
    row(1, commits)
}

/// Commits without other load.
fn rows_alone(breadth: Breadth) -> Vec<CommitRow> {
    let mut rows = Vec::new();
    for method in METHODS {
        rows.push(row(2, method.commits()));
    }
    let [two, eight] = PAGES;
    match breadth {
        Breadth::All => {
            rows.extend(rows_of_pages(two, &METHODS));
            rows.extend(rows_of_pages(eight, &METHODS));
        }
        Breadth::Quick => rows.extend(rows_of_pages(eight, &SERVER_METHODS)),
    }
    rows.push(row(1, OPEN_DATASYNC.direct("dsync-direct")));
    rows.push(row(1, FDATASYNC.direct("fdatasync-direct")));
    let committers: &[u32] = match breadth {
        Breadth::All => &COMMITTERS,
        Breadth::Quick => &COMMITTERS_QUICK,
    };
    let shared = SyncPolicy::Shared {
        call: SyncCall::Fdatasync,
    };
    for &sessions in committers {
        let own_name = format!("fdatasync-c{sessions}");
        rows.push(synced_row(&own_name, FDATASYNC.sync, sessions));
        let group_name = format!("group-c{sessions}");
        rows.push(synced_row(&group_name, shared, sessions));
    }
    if breadth == Breadth::All {
        for bytes in SIZES {
            let suffix = format!("{}k", bytes >> 10);
            rows.push(row(1, OPEN_SYNC.sized(suffix, bytes)));
        }
        let elsewhere = SyncPolicy::OtherDescriptor {
            call: SyncCall::Fsync,
        };
        rows.push(synced_row("fsync-elsewhere", elsewhere, 1));
    }
    rows.push(synced_row("unsynced", SyncPolicy::None, 1));
    rows
}

/// Commits of several pages, by each of the methods.
fn rows_of_pages(pages: u32, methods: &[Method]) -> Vec<CommitRow> {
    methods
        .iter()
        .map(|method| row(1, method.sized(format!("x{pages}"), pages * PAGE_BYTES)))
        .collect()
}

/// Commits alongside other load on the rest of the target: random reads, and the writes of a
/// checkpoint as they reach the disk. Those are direct, because they belong to other files than the
/// WAL: a sync of the WAL does not write them.
fn rows_under_load(file_bytes: u64) -> Vec<CommitRow> {
    let reads = Workload {
        streams: Streams::with_reads(READS_ONLY_PERMILLE),
        depth: READS_ALONGSIDE,
        ..load_alongside("reads", file_bytes)
    };
    let checkpoint = Workload {
        streams: Streams::with_reads(WRITES_ONLY_PERMILLE),
        depth: WRITES_ALONGSIDE,
        ..load_alongside("checkpoint", file_bytes)
    };
    vec![
        row_under_load("with-reads", reads),
        row_under_load("with-checkpoint", checkpoint),
    ]
}

/// Commits by fdatasync, measured together with the load.
fn row_under_load(name: &str, load: Workload) -> CommitRow {
    let commits = Workload {
        name: name.to_owned(),
        ..FDATASYNC.commits()
    };
    CommitRow {
        weight: 2,
        workloads: vec![commits, load],
    }
}

/// A load of pages on the data behind the segment, which runs while the row's commits do.
fn load_alongside(name: &str, file_bytes: u64) -> Workload {
    let data_bytes = file_bytes.saturating_sub(SEGMENT_BYTES);
    Workload {
        block_bytes: PAGE_BYTES,
        span: Span {
            start_bytes: SEGMENT_BYTES,
            length_bytes: Some(data_bytes.min(DATA_BYTES)),
        },
        start: Start::WithPrevious,
        ..Workload::named(name)
    }
}
