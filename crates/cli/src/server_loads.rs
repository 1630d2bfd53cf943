//! Flags on a temporary PostgreSQL server, and the INSERTs that it is measured with. Starts no
//! server.

use crate::failure::Failure;
use crate::selection::SelectionFlags;
use crate::server_trials::trial_plan;
use diskproof_model::postgres::{PostgresLoad, PostgresPlan};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_postgres::{CLUSTER_BYTES, Programs, TRIAL_BYTES, find_programs};
use std::path::PathBuf;

/// Values of wal_sync_method that Linux has, the default first.
const METHODS: [&str; 4] = ["fdatasync", "fsync", "open_datasync", "open_sync"];
/// Sessions at the same time.
const CLIENTS: [u32; 3] = [1, 4, 16];
/// pgbench confirms the fewest and the most.
const PGBENCH_CLIENTS: [u32; 2] = [1, 16];
/// Rounds before the workloads, and as many after them: with fewer than three in all a rate has no
/// interval.
const ROUNDS: u32 = 2;
/// The INSERTs take this share of the time of all rows, in addition to it.
const TIME_SHARE: u64 = 2;

/// What the name of an INSERT begins with in `--only` and `--skip`.
const SELECTED: &str = "insert-";

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breadth {
    /// Everything.
    All,
    /// The most important rows.
    Quick,
}

/// Flags on a temporary server.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ServerFlags {
    /// Also measure INSERTs on a temporary PostgreSQL server in the target directory (Unix socket
    /// only); takes half as long again
    #[arg(long, conflicts_with = "fit_for")]
    pub postgres: bool,
    /// Directory of the programs postgres and initdb [default: the first in PATH, or the newest
    /// installed server]
    #[arg(long, value_name = "DIR", requires = "postgres")]
    pub pg_bin: Option<PathBuf>,
    /// Also compare server settings with their defaults, using scans of a table larger than the
    /// server's cache and INSERTs; takes about --time in addition
    #[arg(long, requires = "postgres")]
    pub try_settings: bool,
}

impl ServerFlags {
    /// Room that the server needs in the target; none without --postgres.
    pub(crate) fn bytes(&self) -> u64 {
        match (self.postgres, self.try_settings) {
            (false, _) => 0,
            (true, false) => CLUSTER_BYTES,
            (true, true) => CLUSTER_BYTES + TRIAL_BYTES,
        }
    }

    /// The programs of the server; `None` without --postgres.
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
        let found = find_programs(self.pg_bin.as_deref(), path.as_deref())?;
        Ok(Some(found))
    }
}

/// The name by which `--only` and `--skip` select INSERTs, whose rows have those of commits.
fn selected_name(load: &PostgresLoad) -> String {
    format!("{SELECTED}{}", load.name)
}

/// The names of all INSERTs of these programs.
pub(crate) fn insert_names(breadth: Breadth, programs: &Programs) -> Vec<String> {
    let all = loads(breadth, programs.has_pgbench());
    all.iter().map(selected_name).collect()
}

/// The INSERTs that the user selected: all, unless `--only` names some.
fn selected(mut loads: Vec<PostgresLoad>, selection: &SelectionFlags) -> Vec<PostgresLoad> {
    let names_some = selection.only.iter().any(|name| name.starts_with(SELECTED));
    loads.retain(|load| match selection.excludes(&selected_name(load)) {
        Some("--only") => !names_some,
        excluded => excluded.is_none(),
    });
    loads
}

/// What a server measures, with this time for the rows of `commit`.
pub(crate) fn postgres_plan(
    programs: &Programs,
    breadth: Breadth,
    time_ns: u64,
    (tries_settings, selection): (bool, &SelectionFlags),
) -> Result<PostgresPlan, Failure> {
    let loads = selected(loads(breadth, programs.has_pgbench()), selection);
    if loads.is_empty() {
        return Err(Failure::Usage(
            "no INSERT is left to measure; omit --postgres, or select one".to_owned(),
        ));
    }
    let slices = loads.len() as u64 * u64::from(2 * ROUNDS);
    Ok(PostgresPlan {
        programs: programs.folder.display().to_string(),
        version: programs.version_text.clone(),
        slice_ns: time_ns / TIME_SHARE / slices,
        loads,
        rounds: ROUNDS,
        trial: tries_settings.then(|| trial_plan(programs.version, time_ns)),
    })
}

fn loads(breadth: Breadth, has_pgbench: bool) -> Vec<PostgresLoad> {
    let all = breadth == Breadth::All;
    let load = |prefix: &str, method: &str, clients: u32| PostgresLoad {
        name: format!("{prefix}-c{clients}"),
        clients,
        synchronous_commit: true,
        wal_sync_method: method.to_owned(),
        pgbench: false,
    };
    let mut loads = Vec::new();
    for method in METHODS {
        let is_default = method == METHODS[0];
        let is_chosen = |clients: &&u32| all || is_default || **clients == 1;
        let clients = CLIENTS.iter().filter(is_chosen);
        loads.extend(clients.map(|clients| load(method, method, *clients)));
    }
    let without_sync = CLIENTS.iter().filter(|clients| all || **clients == 1);
    loads.extend(without_sync.map(|clients| PostgresLoad {
        synchronous_commit: false,
        ..load("async", METHODS[0], *clients)
    }));
    if all && has_pgbench {
        loads.extend(PGBENCH_CLIENTS.map(|clients| PostgresLoad {
            pgbench: true,
            ..load("pgbench", METHODS[0], clients)
        }));
    }
    loads
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn inserts_are_selected_by_names_of_their_own() {
        let left = |only: &[&str], skip: &[&str]| -> Vec<String> {
            let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
            let selection = SelectionFlags {
                only: names(only),
                skip: names(skip),
            };
            let left = selected(loads(Breadth::Quick, false), &selection);
            left.into_iter().map(|load| load.name).collect()
        };
        assert_eq!(left(&["fdatasync"], &[]).len(), 7);
        assert_eq!(left(&["fdatasync", "insert-fsync-c1"], &[]), ["fsync-c1"]);
        let skipped = left(&[], &["insert-async-c1", "fdatasync-c16"]);
        assert_eq!(skipped.len(), 6);
        assert!(!skipped.contains(&"async-c1".to_owned()), "{skipped:?}");
    }

    #[test]
    fn every_method_and_number_of_sessions_has_a_load() {
        let names = |breadth, has_pgbench| -> Vec<String> {
            let loads = loads(breadth, has_pgbench);
            loads.into_iter().map(|load| load.name).collect()
        };
        let all = names(Breadth::All, true);
        assert_eq!(all.len(), 4 * 3 + 3 + 2);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(names(Breadth::All, false).len(), 15);
        assert_eq!(
            names(Breadth::Quick, true),
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
}
