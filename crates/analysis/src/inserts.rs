//! Makes the result of a temporary PostgreSQL server: the rates of INSERTs and the parts of their
//! time, next to this program's own commits. The outcomes of its trials come from
//! [`trials`](crate::trials).

use crate::estimate::mean_rate;
use crate::trials::trial_row;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::group_name;
use diskproof_model::postgres::{
    DEFAULT_SYNC_METHOD, InsertTime, LoadFigures, LoadMeasurement, LoadRow, OwnCommits,
    PostgresLoad, PostgresMeasurement, PostgresRecord,
};
use diskproof_model::row::Row;

/// A second in nanoseconds.
const SECOND_NS: f64 = 1e9;

/// The record of the server; `None` without one. Loads that were not measured are absent. `own` are
/// the rows of this program.
pub(crate) fn postgres_record(
    measured: Option<&PostgresMeasurement>,
    own: &[Row],
) -> Option<PostgresRecord> {
    let measured = measured?;
    let mut loads: Vec<LoadRow> = measured
        .loads
        .iter()
        .filter(|load| !load.slices.is_empty())
        .map(|load| load_row(load, own))
        .collect();
    let server_ns = insert_ns_without_disk(&loads);
    if let Some(server_ns) = server_ns {
        for load in &mut loads {
            load.figures.parts = insert_time(load, server_ns);
        }
    }
    Some(PostgresRecord {
        version: measured.version.clone(),
        loads,
        trials: measured.trials.iter().map(trial_row).collect(),
        end_ns: measured.end_ns,
        errors: measured.errors.clone(),
        silence_before_ns: measured.silence_before_ns,
    })
}

/// The time of an INSERT with its commit, as that of the disk and that of the server. `None` of
/// several clients, whose commits share syncs, and where one of the rates is unknown.
fn insert_time(load: &LoadRow, server_ns: f64) -> Option<InsertTime> {
    let planned = &load.data.load;
    let own = load.figures.own.as_ref()?;
    let rate = load.figures.iops.value;
    if planned.clients > 1 || planned.pgbench || own.iops.value <= 0.0 || rate <= 0.0 {
        return None;
    }
    let insert_ns = SECOND_NS / rate;
    let disk_ns = SECOND_NS / own.iops.value;
    Some(InsertTime {
        insert_ns,
        disk_ns,
        server_ns,
        explained: (disk_ns + server_ns) / insert_ns,
    })
}

/// The time of an INSERT whose session does not wait for its commit, in nanoseconds: that of the
/// server without the disk. `None` where no such load was measured.
fn insert_ns_without_disk(loads: &[LoadRow]) -> Option<f64> {
    let asynchronous = loads.iter().find(|row| {
        let load = &row.data.load;
        !load.synchronous_commit && load.clients == 1 && !load.pgbench
    })?;
    let rate = asynchronous.figures.iops.value;
    if rate > 0.0 {
        Some(SECOND_NS / rate)
    } else {
        None
    }
}

/// The figures of a load, with what diskproof itself measured of its commits on the same disk.
fn load_row(measured: &LoadMeasurement, own: &[Row]) -> LoadRow {
    let slices = &measured.slices;
    let rates: Vec<f64> = slices.iter().map(|slice| slice.rate).collect();
    let commits: u64 = slices.iter().map(|slice| slice.commits).sum();
    let wal_bytes: u64 = slices.iter().map(|slice| slice.wal_bytes).sum();
    let cpu_ns: Option<u64> = slices.iter().map(|slice| slice.client_cpu_ns).sum();
    let syncs: Option<u64> = slices.iter().map(|slice| slice.wal_syncs).sum();
    let mut figures = LoadFigures {
        iops: mean_rate(&rates),
        latency_p50_ns: None,
        latency_p99_ns: None,
        latency_max_ns: None,
        wal_bytes_per_commit: wal_bytes as f64 / commits.max(1) as f64,
        commits_per_sync: None,
        client_cpu_ns: None,
        own: own_commits(&measured.load, own),
        parts: None,
    };
    if measured.latency.count() > 0 {
        figures.latency_p50_ns = measured.latency.percentile(0.5);
        figures.latency_p99_ns = measured.latency.percentile(0.99);
        figures.latency_max_ns = Some(measured.latency.max_ns());
    }
    if let Some(syncs) = syncs
        && syncs > 0
        && measured.load.synchronous_commit
    {
        figures.commits_per_sync = Some(commits as f64 / syncs as f64);
    }
    if let Some(cpu_ns) = cpu_ns
        && commits > 0
    {
        figures.client_cpu_ns = Some(cpu_ns as f64 / commits as f64);
    }
    LoadRow {
        data: measured.clone(),
        figures,
    }
}

/// The commits of this program that do the same without a server: those with the same method for
/// one session, and those with shared syncs for several. `None` where there are none.
fn own_commits(load: &PostgresLoad, own: &[Row]) -> Option<OwnCommits> {
    let workload = match load.clients {
        _ if !load.synchronous_commit => return None,
        1 => load.wal_sync_method.clone(),
        clients if load.wal_sync_method == DEFAULT_SYNC_METHOD => group_name(clients),
        _ => return None,
    };
    let found = own.iter().find(|m| m.data.workload.name == workload)?;
    let commits = found.op(OpKind::Commit)?;
    if commits.data.count == 0 {
        return None;
    }
    Some(OwnCommits {
        workload,
        iops: commits.figures.iops.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::histogram::LatencyHistogram;
    use diskproof_model::postgres::PostgresSlice;
    use std::collections::BTreeMap;

    fn load(name: &str, clients: u32, synchronous_commit: bool, rate: f64) -> LoadMeasurement {
        let mut latency = LatencyHistogram::new();
        latency.record_many((1e9 / rate) as u64, 1000);
        let slice = |share: f64| PostgresSlice {
            commits: 1000,
            rate: rate * share,
            wal_bytes: 150_000,
            wal_syncs: Some(1000 / u64::from(clients)),
            client_cpu_ns: Some(5_000_000),
        };
        LoadMeasurement {
            load: PostgresLoad {
                name: name.to_owned(),
                clients,
                synchronous_commit,
                wal_sync_method: "fdatasync".to_owned(),
                pgbench: false,
            },
            slices: vec![slice(0.98), slice(1.0), slice(1.02)],
            latency,
        }
    }

    #[test]
    fn time_of_an_insert_is_the_disk_and_the_server() {
        // Own commits take 1/500 s in the fixture.
        let mut record = fixture::record();
        fixture::measured(&mut record, "commit-fdatasync")
            .data
            .workload
            .name = "fdatasync".to_owned();
        let own = record.measurements;
        let measured = PostgresMeasurement {
            version: "15.8".to_owned(),
            loads: vec![
                load("insert-fdatasync-c1", 1, true, 400.0),
                load("insert-fdatasync-c4", 4, true, 1200.0),
                load("insert-async-c1", 1, false, 10_000.0),
            ],
            trials: Vec::new(),
            end_ns: None,
            errors: BTreeMap::new(),
            silence_before_ns: 0,
        };
        let record = postgres_record(Some(&measured), &own).unwrap();
        let [alone, several, without_sync] = &record.loads[..] else {
            panic!("{record:?}");
        };
        let own_rate = alone.figures.own.as_ref().unwrap().iops.value;
        let parts = alone.figures.parts.as_ref().unwrap();
        assert!((parts.insert_ns - 2.5e6).abs() < 1.0 && (parts.server_ns - 1e5).abs() < 1.0);
        let explained = (1e9 / own_rate + 1e5) / 2.5e6;
        assert!((parts.explained - explained).abs() < 1e-9);
        assert!(
            alone
                .figures
                .iops
                .half_width_95
                .is_some_and(|width| width > 0.0)
        );
        assert_eq!(alone.figures.wal_bytes_per_commit, 150.0);
        assert_eq!(alone.figures.client_cpu_ns, Some(5000.0));
        assert_eq!(several.figures.commits_per_sync, Some(4.0));
        assert!(
            several.figures.parts.is_none() && several.figures.own.is_none(),
            "no row group-c4"
        );
        assert!(
            without_sync.figures.commits_per_sync.is_none() && without_sync.figures.parts.is_none()
        );
        assert!(alone.figures.latency_p50_ns.is_some() && alone.data.latency.count() > 0);
    }

    /// The own commits of a load, where this program committed alone and in a group of four.
    fn own_of(change: impl FnOnce(&mut PostgresLoad)) -> Option<String> {
        let mut record = fixture::record();
        let alone = fixture::measured(&mut record, "commit-fdatasync");
        alone.data.workload.name = "fdatasync".to_owned();
        let mut group = alone.clone();
        group.data.workload.name = group_name(4);
        let mut measured = load("insert-fdatasync-c1", 1, true, 400.0);
        change(&mut measured.load);
        let found = own_commits(&measured.load, &[alone.clone(), group])?;
        Some(found.workload)
    }

    /// Commits that do something else would explain nothing.
    #[test]
    fn own_commits_are_those_of_the_same_method_and_sessions() {
        assert_eq!(own_of(|_| {}), Some("fdatasync".to_owned()));
        assert_eq!(own_of(|load| load.clients = 4), Some(group_name(4)));
        assert_eq!(own_of(|load| load.clients = 8), None);
        assert_eq!(own_of(|load| load.synchronous_commit = false), None);
        assert_eq!(
            own_of(|load| load.wal_sync_method = "fsync".to_owned()),
            None
        );
        let other_method = own_of(|load| {
            load.clients = 4;
            load.wal_sync_method = "open_datasync".to_owned();
        });
        assert_eq!(other_method, None, "the group syncs by fdatasync");
    }

    /// pgbench's own time is in its rate, too.
    #[test]
    fn time_of_an_insert_by_pgbench_is_not_divided() {
        let mut record = fixture::record();
        let alone = fixture::measured(&mut record, "commit-fdatasync");
        alone.data.workload.name = "fdatasync".to_owned();
        let mut row = load_row(&load("c1", 1, true, 400.0), &record.measurements);
        assert!(insert_time(&row, 1e5).is_some());
        row.data.load.pgbench = true;
        assert_eq!(insert_time(&row, 1e5), None);
    }
}
