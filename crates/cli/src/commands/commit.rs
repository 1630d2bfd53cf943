//! `diskproof commit`: how many transactions a second a disk makes durable, by each method that the
//! platform has, with one and several sessions, alone and alongside other load.

mod rows;

use crate::failure::{Exit, Failure};
use crate::fitness::measure_fitness;
use crate::flags::{MeasuringFlags, SECOND_NS, SelectionFlags};
use crate::postgres::{
    Breadth, InsertRequest, ServerFlags, insert_names, postgres_plan, postgres_version,
};
use crate::session::{AgreedChanges, MeasuringJob, measure};
use crate::workload::parse_time;
use crate::write_cache::{CacheStates, WriteCacheFlags};
use diskproof_device::scratch_bytes_max;
use diskproof_model::plan::{
    Inserts, Order, Plan, Questions, Scratch, SkipCause, Skipped, Task, Workload, Workloads,
};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_bytes;
use diskproof_postgres::Programs;
use rows::{CommitRow, DATA_BYTES, SEGMENT_BYTES, rows_alone, rows_under_load};
use std::path::PathBuf;

/// With --quick, a disk of 80 MB/s fills the file in the tenth of the time that it has.
const DATA_BYTES_QUICK: u64 = (128 << 20) - SEGMENT_BYTES;
/// The loads alongside commits need at least this much. Chosen, not measured.
const DATA_BYTES_LEAST: u64 = 16 << 20;
/// The help promises a minute. Laying the file out and what is in flight at the end of each slice
/// need the rest.
const TIME_NS: u64 = 50 * SECOND_NS;
/// The help promises 20 s with --quick.
const TIME_NS_QUICK: u64 = 16 * SECOND_NS;
/// The scratch file gets its content in a tenth of the rows' time, beyond that time.
const LAYOUT_DIVISOR: u64 = 10;

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
vanishes even after kill -9. --overwrite releases a file, and --destroy NAME
(its serial, model or kernel name) a device.

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
    #[arg(long, value_name = "DURATION", value_parser = parse_time)]
    pub time: Option<u64>,
    /// Decide whether the target is fit for a database: postgresql, etcd, mysql, mysql-8.0 (also
    /// mariadb), sqlite, or the path of a profile with limits; measures only its workloads
    /// (diskproof help fitness)
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
    job.agreed = AgreedChanges::server_or_cache(programs, switch);
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
    let CommitTask {
        task,
        time_limit_ns,
        server_version,
    } = commit_task(commit, breadth, workloads, programs)?;
    let scratch = match scratch_bytes {
        Some(bytes) => {
            let filled_min = SEGMENT_BYTES + DATA_BYTES_LEAST;
            Some(Scratch::of_size(bytes).filled_within(filled_min, layout_ns))
        }
        None => None,
    };
    Ok(Plan {
        scratch,
        time_limit_ns,
        tasks: vec![task],
        questions: Questions {
            postgres_version: postgres_version(commit.pg_version, &commit.target, server_version),
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

/// The only task of a plan, and what follows from its kind.
struct CommitTask {
    task: Task,
    /// `None` with a server, which takes a time of its own to start and to end.
    time_limit_ns: Option<u64>,
    /// The major version of the server; `None` without one.
    server_version: Option<u32>,
}

/// The task that measures these workloads, with INSERTs around them where there is a server.
fn commit_task(
    commit: &CommitFlags,
    breadth: Breadth,
    workloads: Workloads,
    programs: Option<&Programs>,
) -> Result<CommitTask, Failure> {
    let time_ns = total_ns(commit);
    let Some(programs) = programs else {
        return Ok(CommitTask {
            task: Task::Workloads(workloads),
            time_limit_ns: Some(time_ns + time_ns / LAYOUT_DIVISOR),
            server_version: None,
        });
    };
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
    Ok(CommitTask {
        task: Task::Inserts(inserts),
        time_limit_ns: None,
        server_version: Some(programs.version),
    })
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
        match row.excluding_flag(selection) {
            None => selected.rows.push(row),
            Some(flag) => selected.skip(row, flag, SkipCause::User),
        }
    }
    let has_room = file_bytes >= SEGMENT_BYTES + DATA_BYTES_LEAST;
    for row in under_load {
        match row.excluding_flag(selection) {
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
