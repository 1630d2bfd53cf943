//! Plans a temporary PostgreSQL server: its flags, its INSERTs, and the settings that it tries.
//! Starts no server.

mod installed;

pub(crate) use installed::postgres_version;

use crate::failure::Failure;
use crate::flags::SelectionFlags;
use diskproof_model::postgres::{
    DEFAULT_SYNC_METHOD, PlannedTrial, PostgresLoad, PostgresPlan, TrialLoad, TrialPlan,
    server_room_bytes,
};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_postgres::{Programs, find_programs};
use std::path::PathBuf;

/// Values of wal_sync_method that Linux has.
const METHODS: [&str; 4] = [DEFAULT_SYNC_METHOD, "fsync", "open_datasync", "open_sync"];
/// Sessions that insert at the same time.
const CLIENTS: [u32; 3] = [1, 4, 16];
/// Sessions of pgbench, which confirms the fewest and the most.
const PGBENCH_CLIENTS: [u32; 2] = [1, 16];
/// Rounds before the workloads, and as many after them: with fewer than three in all a rate has no
/// interval.
const ROUNDS: u32 = 2;
/// The INSERTs take half of the time of all rows, in addition to it.
const TIME_DIVISOR: u64 = 2;

/// Names of INSERTs in `--only` and `--skip` begin with it.
const NAME_PREFIX: &str = "insert-";

/// The rows and INSERTs that a run measures, unless the user selects some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breadth {
    /// Each method with each number of sessions.
    All,
    /// The most important ones, for `--quick`.
    Quick,
}

/// The INSERTs that the user asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InsertRequest<'a> {
    pub breadth: Breadth,
    /// The time of the rows of `commit`, which the INSERTs extend.
    pub rows_ns: u64,
    /// True if settings of the server are tried, too.
    pub tries_settings: bool,
    pub selection: &'a SelectionFlags,
}

/// Flags on a temporary server.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ServerFlags {
    /// Also measure INSERTs on a temporary PostgreSQL server in the target directory (Unix socket
    /// only); takes two thirds longer
    #[arg(long, conflicts_with = "fit_for")]
    pub postgres: bool,
    /// Directory of the programs postgres and initdb [default: the first in PATH, or the newest
    /// installed server]
    #[arg(long, value_name = "DIR", requires = "postgres")]
    #[arg(conflicts_with_all = ["fit_for", "write_cache", "yes"])]
    pub pg_bin: Option<PathBuf>,
    /// Also compare server settings with their defaults, using scans of a table larger than the
    /// server's cache and INSERTs; takes about --time in addition
    #[arg(long, requires = "postgres", conflicts_with_all = ["fit_for", "write_cache", "yes"])]
    pub try_settings: bool,
}

impl ServerFlags {
    /// Room that the server needs in the target, in bytes; 0 without --postgres.
    pub(crate) fn room_bytes(&self) -> u64 {
        if self.postgres {
            server_room_bytes(self.try_settings)
        } else {
            0
        }
    }

    /// The programs of the server; `None` without --postgres. Fails where they are not found, or
    /// the target is not a directory.
    pub(crate) fn programs(&self, identity: &TargetIdentity) -> Result<Option<Programs>, Failure> {
        if !self.postgres {
            return Ok(None);
        }
        if identity.kind != TargetKind::Directory {
            return Err(Failure::Usage(format!(
                "--postgres needs a directory, but {} is not one; name a directory on it",
                identity.path
            )));
        }
        let path = std::env::var_os("PATH");
        let programs = find_programs(self.pg_bin.as_deref(), path.as_deref())?;
        Ok(Some(programs))
    }
}

/// The name by which `--only` and `--skip` select INSERTs, whose rows have those of commits.
fn selected_name(load: &PostgresLoad) -> String {
    format!("{NAME_PREFIX}{}", load.name)
}

/// The names of all INSERTs of these programs.
pub(crate) fn insert_names(breadth: Breadth, programs: &Programs) -> Vec<String> {
    loads(breadth, pgbench_of(programs))
        .iter()
        .map(selected_name)
        .collect()
}

/// The INSERTs that the user selected: all, unless `--only` names some.
fn retain_selected(mut loads: Vec<PostgresLoad>, selection: &SelectionFlags) -> Vec<PostgresLoad> {
    let names_some = selection
        .only
        .iter()
        .any(|name| name.starts_with(NAME_PREFIX));
    loads.retain(|load| match selection.excludes(&selected_name(load)) {
        Some("--only") => !names_some,
        excluded => excluded.is_none(),
    });
    loads
}

/// The plan of a temporary server. Fails where the user's selection leaves no INSERT.
pub(crate) fn postgres_plan(
    programs: &Programs,
    request: &InsertRequest<'_>,
) -> Result<PostgresPlan, Failure> {
    let all_loads = loads(request.breadth, pgbench_of(programs));
    let loads = retain_selected(all_loads, request.selection);
    if loads.is_empty() {
        return Err(Failure::Usage(
            "no INSERT is left to measure; omit --postgres, or select one".to_owned(),
        ));
    }
    let slices = loads.len() as u64 * u64::from(2 * ROUNDS);
    let trial = if request.tries_settings {
        Some(trial_plan(programs.version, request.rows_ns))
    } else {
        None
    };
    Ok(PostgresPlan {
        programs: programs.folder.display().to_string(),
        version: programs.version_text.clone(),
        slice_ns: request.rows_ns / TIME_DIVISOR / slices,
        loads,
        rounds: ROUNDS,
        trial,
    })
}

/// The presence of pgbench beside the server's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pgbench {
    Installed,
    Missing,
}

fn pgbench_of(programs: &Programs) -> Pgbench {
    if programs.has_pgbench() {
        Pgbench::Installed
    } else {
        Pgbench::Missing
    }
}

/// The loads of INSERTs: each method, commits that are not waited for, and pgbench.
fn loads(breadth: Breadth, pgbench: Pgbench) -> Vec<PostgresLoad> {
    let is_complete = breadth == Breadth::All;
    let mut loads = Vec::new();
    for method in METHODS {
        for clients in CLIENTS {
            if is_complete || method == DEFAULT_SYNC_METHOD || clients == 1 {
                loads.push(load(method, method, clients));
            }
        }
    }
    for clients in CLIENTS {
        if is_complete || clients == 1 {
            loads.push(PostgresLoad {
                synchronous_commit: false,
                ..load("async", DEFAULT_SYNC_METHOD, clients)
            });
        }
    }
    if is_complete && pgbench == Pgbench::Installed {
        for clients in PGBENCH_CLIENTS {
            loads.push(PostgresLoad {
                pgbench: true,
                ..load("pgbench", DEFAULT_SYNC_METHOD, clients)
            });
        }
    }
    loads
}

fn load(prefix: &str, method: &str, clients: u32) -> PostgresLoad {
    PostgresLoad {
        name: format!("{prefix}-c{clients}"),
        clients,
        synchronous_commit: true,
        wal_sync_method: method.to_owned(),
        pgbench: false,
    }
}

/// With eight pairs of slices the interval is narrow enough to be of use; more shrink it slowly.
const PAIRS_MAX: u32 = 8;
/// Four times the server's cache.
const TABLE_BYTES: u64 = 256 << 20;
/// The first version whose ANALYZE prefetches by maintenance_io_concurrency (release notes of 14).
const PREFETCH_FROM: u32 = 14;
/// The first version with io_combine_limit (release notes of 17).
const COMBINES_FROM: u32 = 17;
/// The first version with asynchronous I/O, io_method and other defaults (release notes of 18).
const ASYNCHRONOUS_FROM: u32 = 18;
/// The first version whose io_workers is called io_max_workers and grows on demand.
const GROWING_WORKERS_FROM: u32 = 19;

/// The settings that a server of this version tries, within this time.
pub(crate) fn trial_plan(version: u32, time_ns: u64) -> TrialPlan {
    let bitmap = TrialLoad::BitmapScan;
    let is_asynchronous = version >= ASYNCHRONOUS_FROM;
    let mut trials = Vec::new();
    // First, while the server's cache is empty, so that ANALYZE finds few pages there.
    if version >= PREFETCH_FROM {
        let setting = "maintenance_io_concurrency";
        trials.push(if is_asynchronous {
            scan_trial(setting, "16", "64", TrialLoad::Analyze)
        } else {
            scan_trial(setting, "10", "32", TrialLoad::Analyze)
        });
    }
    trials.push(if is_asynchronous {
        scan_trial("effective_io_concurrency", "16", "64", bitmap)
    } else {
        scan_trial("effective_io_concurrency", "1", "16", bitmap)
    });
    trials.push(scan_trial("random_page_cost", "4", "1.1", TrialLoad::Join));
    trials.push(insert_trial("wal_sync_method", DEFAULT_SYNC_METHOD, 4));
    trials.push(insert_trial("commit_delay", "0", 16));
    if version >= COMBINES_FROM {
        let sequential = TrialLoad::SequentialScan;
        trials.push(scan_trial("io_combine_limit", "128kB", "256kB", sequential));
    }
    if is_asynchronous {
        trials.push(if version >= GROWING_WORKERS_FROM {
            scan_trial("io_max_workers", "8", "32", bitmap)
        } else {
            scan_trial("io_workers", "3", "12", bitmap)
        });
        // The last one: a server that does not start with it has nothing else to try.
        trials.push(scan_trial("io_method", "worker", "io_uring", bitmap));
    }
    TrialPlan {
        trials,
        time_ns,
        pairs_max: PAIRS_MAX,
        table_bytes: TABLE_BYTES,
    }
}

fn scan_trial(setting: &str, default: &str, candidate: &str, load: TrialLoad) -> PlannedTrial {
    PlannedTrial {
        setting: setting.to_owned(),
        default: default.to_owned(),
        candidate: Some(candidate.to_owned()),
        load,
        clients: 1,
    }
}

/// A setting whose candidate is chosen by what the INSERTs before have measured.
fn insert_trial(setting: &str, default: &str, clients: u32) -> PlannedTrial {
    PlannedTrial {
        setting: setting.to_owned(),
        default: default.to_owned(),
        candidate: None,
        load: TrialLoad::Inserts,
        clients,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn load_names(loads: Vec<PostgresLoad>) -> Vec<String> {
        loads.into_iter().map(|load| load.name).collect()
    }

    fn selected_names(only: &[&str], skip: &[&str]) -> Vec<String> {
        let selection = SelectionFlags {
            only: only.iter().map(|name| (*name).to_owned()).collect(),
            skip: skip.iter().map(|name| (*name).to_owned()).collect(),
        };
        load_names(retain_selected(
            loads(Breadth::Quick, Pgbench::Missing),
            &selection,
        ))
    }

    #[test]
    fn inserts_are_selected_by_names_of_their_own() {
        assert_eq!(selected_names(&["fdatasync"], &[]).len(), 7);
        let named = selected_names(&["fdatasync", "insert-fsync-c1"], &[]);
        assert_eq!(named, ["fsync-c1"]);
        let not_skipped = selected_names(&[], &["insert-async-c1", "fdatasync-c16"]);
        assert_eq!(not_skipped.len(), 6);
        assert!(
            !not_skipped.contains(&"async-c1".to_owned()),
            "{not_skipped:?}"
        );
    }

    #[test]
    fn every_method_and_number_of_sessions_has_a_load() {
        let all = load_names(loads(Breadth::All, Pgbench::Installed));
        assert_eq!(all.len(), 4 * 3 + 3 + 2);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(loads(Breadth::All, Pgbench::Missing).len(), 15);
        assert_eq!(
            load_names(loads(Breadth::Quick, Pgbench::Installed)),
            [
                "fdatasync-c1",
                "fdatasync-c4",
                "fdatasync-c16",
                "fsync-c1",
                "open_datasync-c1",
                "open_sync-c1",
                "async-c1"
            ]
        );
    }

    fn tried_settings(version: u32) -> Vec<String> {
        trial_plan(version, 0)
            .trials
            .into_iter()
            .map(|trial| trial.setting)
            .collect()
    }

    #[test]
    fn settings_follow_the_version() {
        let always = ["wal_sync_method", "commit_delay"];
        assert_eq!(tried_settings(13)[2..], always);
        assert_eq!(tried_settings(15)[3..], always);
        let since_18 = ["io_combine_limit", "io_workers", "io_method"];
        assert_eq!(tried_settings(18)[5..], since_18);
        let since_19 = ["io_combine_limit", "io_max_workers", "io_method"];
        assert_eq!(tried_settings(19)[5..], since_19);
        assert_eq!(trial_plan(17, 0).trials[1].default, "1");
        assert_eq!(trial_plan(18, 0).trials[1].default, "16");
        assert_eq!(tried_settings(15)[0], "maintenance_io_concurrency");
    }
}
