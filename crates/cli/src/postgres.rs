//! PostgreSQL: the version of the server whose settings are advised, and the flags and the plan of
//! a temporary server, with its INSERTs and the settings that it tries. Starts no server.

use crate::failure::Failure;
use crate::flags::SelectionFlags;
use diskproof_device::read_small_file;
use diskproof_model::postgres::{
    PlannedTrial, PostgresLoad, PostgresPlan, TrialLoad, TrialPlan, server_room_bytes,
};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_postgres::{Programs, find_programs};
use std::path::{Path, PathBuf};

/// Where Debian and Red Hat install servers, one directory for each major version.
const INSTALLED: [(&str, &str); 2] = [("/usr/lib/postgresql", ""), ("/usr", "pgsql-")];
/// The first version whose numbers have one part, and one that no release will reach soon.
const VERSIONS: std::ops::RangeInclusive<u32> = 10..=99;
/// `17` and a newline, or `9.6`.
const VERSION_BYTES_MAX: u64 = 64;
/// A data directory, its mount point and the directory of a cluster above it.
const ANCESTORS: usize = 3;

/// The major version; `None` where none is found, or several are.
pub(crate) fn postgres_version(asked: Option<u32>, target: &Path) -> Option<u32> {
    asked
        .or_else(|| of_data_directory(target))
        .or_else(|| installed(&INSTALLED.map(|(folder, prefix)| (Path::new(folder), prefix))))
}

fn of_data_directory(target: &Path) -> Option<u32> {
    target.ancestors().take(ANCESTORS).find_map(|folder| {
        let file = read_small_file(&folder.join("PG_VERSION"), VERSION_BYTES_MAX).ok()?;
        let text = file.into_text().ok()?;
        parse_version(text.trim())
    })
}

fn installed(folders: &[(&Path, &str)]) -> Option<u32> {
    let mut found = Vec::new();
    for (folder, prefix) in folders {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let has_server = entry.path().join("bin/postgres").exists();
            let name = entry.file_name().to_string_lossy().into_owned();
            let version = name.strip_prefix(prefix).and_then(parse_version);
            found.extend(version.filter(|_| has_server));
        }
    }
    match found.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

fn parse_version(text: &str) -> Option<u32> {
    let version = text.parse().ok();
    version.filter(|version| VERSIONS.contains(version))
}

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
        if self.postgres {
            server_room_bytes(self.try_settings)
        } else {
            0
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

/// Of these pairs the interval has a width of use; more shrink it slowly.
const PAIRS_MAX: u32 = 8;
/// Four times the server's cache.
const TABLE_BYTES: u64 = 256 << 20;
/// Versions whose defaults or names differ (release notes).
const PREFETCH_FROM: u32 = 14;
const COMBINES_FROM: u32 = 17;
const ASYNCHRONOUS_FROM: u32 = 18;
const GROWING_WORKERS_FROM: u32 = 19;

/// The settings that a server of this version tries, within this time.
pub(crate) fn trial_plan(version: u32, time_ns: u64) -> TrialPlan {
    let trial = |setting: &str, values: (&str, Option<&str>), load, clients| PlannedTrial {
        setting: setting.to_owned(),
        default: values.0.to_owned(),
        candidate: values.1.map(str::to_owned),
        load,
        clients,
    };
    let scan = |setting: &str, default: &str, candidate: &str, load| {
        trial(setting, (default, Some(candidate)), load, 1)
    };
    let bitmap = TrialLoad::BitmapScan;
    let [(reads, more_reads), (others, more_others)] = match version {
        ASYNCHRONOUS_FROM.. => [("16", "64"), ("16", "64")],
        _ => [("1", "16"), ("10", "32")],
    };
    let mut trials = Vec::new();
    // First, while the server's cache is empty, so that ANALYZE finds few pages there.
    if version >= PREFETCH_FROM {
        let setting = "maintenance_io_concurrency";
        trials.push(scan(setting, others, more_others, TrialLoad::Analyze));
    }
    trials.push(scan("effective_io_concurrency", reads, more_reads, bitmap));
    trials.push(scan("random_page_cost", "4", "1.1", TrialLoad::Join));
    let inserts = TrialLoad::Inserts;
    trials.push(trial("wal_sync_method", ("fdatasync", None), inserts, 4));
    trials.push(trial("commit_delay", ("0", None), inserts, 16));
    if version >= COMBINES_FROM {
        let sequential = TrialLoad::SequentialScan;
        trials.push(scan("io_combine_limit", "128kB", "256kB", sequential));
    }
    if version >= ASYNCHRONOUS_FROM {
        trials.push(match version {
            GROWING_WORKERS_FROM.. => scan("io_max_workers", "8", "32", bitmap),
            _ => scan("io_workers", "3", "12", bitmap),
        });
        // The last one: a server that does not start with it has nothing else to try.
        trials.push(scan("io_method", "worker", "io_uring", bitmap));
    }
    TrialPlan {
        trials,
        time_ns,
        pairs_max: PAIRS_MAX,
        table_bytes: TABLE_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn install(folder: &Path, version: &str) {
        let bin = folder.join(version).join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("postgres"), "").unwrap();
    }

    #[test]
    fn data_directory_above_the_target_names_its_version() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("base/1");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(place.path().join("PG_VERSION"), "17\n").unwrap();
        assert_eq!(of_data_directory(&inner), Some(17));
        assert_eq!(postgres_version(Some(13), &inner), Some(13));
        std::fs::write(place.path().join("PG_VERSION"), "9.6\n").unwrap();
        assert_eq!(of_data_directory(&inner), None);
    }

    #[test]
    fn only_installed_server_counts_and_two_are_ambiguous() {
        let place = tempfile::tempdir().unwrap();
        let folders = [(place.path(), "")];
        assert_eq!(installed(&folders), None);
        install(place.path(), "16");
        std::fs::create_dir_all(place.path().join("18/doc")).unwrap();
        assert_eq!(installed(&folders), Some(16));
        install(place.path(), "18");
        assert_eq!(installed(&folders), None);
    }

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

    #[test]
    fn settings_follow_the_version() {
        let names = |version| -> Vec<String> {
            let trials = trial_plan(version, 0).trials;
            trials.into_iter().map(|trial| trial.setting).collect()
        };
        let always = ["wal_sync_method", "commit_delay"];
        assert_eq!(names(13)[2..], always);
        assert_eq!(names(15)[3..], always);
        let of_18 = ["io_combine_limit", "io_workers", "io_method"];
        assert_eq!(names(18)[5..], of_18);
        let of_19 = ["io_combine_limit", "io_max_workers", "io_method"];
        assert_eq!(names(19)[5..], of_19);
        assert_eq!(trial_plan(17, 0).trials[1].default, "1");
        assert_eq!(trial_plan(18, 0).trials[1].default, "16");
        assert_eq!(names(15)[0], "maintenance_io_concurrency");
    }
}
