//! Lists the rows of `commit`: what each measures, and for how long.

use crate::flags::{SECOND_NS, SelectionFlags};
use crate::postgres::Breadth;
use crate::standard_workloads::{READS_ONLY_PERMILLE, WRITES_ONLY_PERMILLE};
use crate::write_cache::WriteCacheFlags;
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, Span, Start, Stop, SyncCall, SyncPolicy,
    Workload, WriteFlag, group_name,
};
use diskproof_model::stream::Streams;

/// PostgreSQL's WAL page (XLOG_BLCKSZ).
const PAGE_BYTES: u32 = 8192;
/// PostgreSQL's WAL segment (wal_segment_size), which it recycles: its blocks are allocated and
/// written before.
pub(super) const SEGMENT_BYTES: u64 = 16 << 20;
/// With less alongside the segment, reads would find the disk's cache.
pub(super) const DATA_BYTES: u64 = (1 << 30) - SEGMENT_BYTES;
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
/// Only a disk in RAM reaches this limit of a row.
const ROW_BYTES_MAX: u64 = 1 << 30;
/// A row warms up for a twentieth of its time, and for a second at most.
const WARMUP_DIVISOR: u64 = 20;

/// Workloads that are measured at the same time, mostly one.
#[derive(Debug)]
pub(super) struct CommitRow {
    /// The row's time relative to those of the others.
    pub(super) weight: u64,
    pub(super) workloads: Vec<Workload>,
}

impl CommitRow {
    /// The flag that excludes the row. One name selects or excludes all that is measured at the
    /// same time.
    pub(super) fn excluding_flag(&self, selection: &SelectionFlags) -> Option<&'static str> {
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
    pub(super) fn rewrite(&mut self) {
        for workload in &mut self.workloads {
            let bytes = workload.block_bytes * workload.depth;
            workload.span.length_bytes = Some(u64::from(bytes));
        }
    }

    /// True for the rows that are measured in both states of the write cache. They are few, so that
    /// each gets more turns.
    pub(super) fn shows_write_cache(&self) -> bool {
        self.workloads.iter().all(|workload| {
            workload.block_bytes == PAGE_BYTES
                && workload.cache == CachePolicy::Cached
                && workload.sync != SyncPolicy::None
                && !matches!(workload.sync, SyncPolicy::OtherDescriptor { .. })
                && [1, COMMITTERS_QUICK[0]].contains(&workload.depth)
        })
    }

    /// The row in each state of the write cache that was requested.
    pub(super) fn in_states(self, cache: &WriteCacheFlags) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        for workload in self.workloads {
            for (index, workload) in cache.states_of(workload).into_iter().enumerate() {
                match rows.get_mut(index) {
                    Some(row) => row.workloads.push(workload),
                    None => rows.push(single_row(self.weight, workload)),
                }
            }
        }
        rows
    }

    /// The workloads of the row with their limits. `unit_ns` is the time of a row of weight 1, of
    /// which a part is the warm-up.
    pub(super) fn timed(self, unit_ns: u64, engine: Option<EngineChoice>) -> Vec<Workload> {
        let time_ns = unit_ns * self.weight;
        let warmup_ns = (time_ns / WARMUP_DIVISOR).min(SECOND_NS);
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
const fn synced_method(name: &'static str, call: SyncCall) -> Method {
    let sync = SyncPolicy::Every { writes: 1, call };
    Method { name, sync }
}

/// The method whose writes are durable by a flag of theirs or of the open file.
const fn flagged_method(name: &'static str, flag: WriteFlag) -> Method {
    let sync = SyncPolicy::WithWrite { flag };
    Method { name, sync }
}

const FDATASYNC: Method = synced_method("fdatasync", SyncCall::Fdatasync);
const FSYNC: Method = synced_method("fsync", SyncCall::Fsync);
const OPEN_DATASYNC: Method = flagged_method("open_datasync", WriteFlag::OpenDsync);
const OPEN_SYNC: Method = flagged_method("open_sync", WriteFlag::OpenSync);
const RWF_DSYNC: Method = flagged_method("rwf_dsync", WriteFlag::RwfDsync);
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
fn single_row(weight: u64, workload: Workload) -> CommitRow {
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
    single_row(1, commits)
}

/// Commits without other load.
pub(super) fn rows_alone(breadth: Breadth) -> Vec<CommitRow> {
    let mut rows = Vec::new();
    for method in METHODS {
        rows.push(single_row(2, method.commits()));
    }
    let [two, eight] = PAGES;
    match breadth {
        Breadth::All => {
            rows.extend(rows_of_pages(two, &METHODS));
            rows.extend(rows_of_pages(eight, &METHODS));
        }
        Breadth::Quick => rows.extend(rows_of_pages(eight, &SERVER_METHODS)),
    }
    rows.push(single_row(1, OPEN_DATASYNC.direct("dsync-direct")));
    rows.push(single_row(1, FDATASYNC.direct("fdatasync-direct")));
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
        rows.push(synced_row(&group_name(sessions), shared, sessions));
    }
    if breadth == Breadth::All {
        for bytes in SIZES {
            let suffix = format!("{}k", bytes >> 10);
            rows.push(single_row(1, OPEN_SYNC.sized(suffix, bytes)));
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
        .map(|method| single_row(1, method.sized(format!("x{pages}"), pages * PAGE_BYTES)))
        .collect()
}

/// Commits alongside other load on the rest of the target: random reads, and the writes of a
/// checkpoint as they reach the disk. Those are direct, because they belong to other files than the
/// WAL: a sync of the WAL does not write them.
pub(super) fn rows_under_load(file_bytes: u64) -> Vec<CommitRow> {
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
