//! INSERTs of a PostgreSQL server alongside this run's own commits: their rates, and where the time
//! of an INSERT goes. Pure; knows no server and no printer.

use crate::estimate::mean_rate;
use crate::trials::trial_record;
use diskproof_model::measurement::OpKind;
use diskproof_model::postgres::{
    InsertTime, LoadMeasurement, LoadRecord, OwnCommits, PostgresLoad, PostgresMeasurement,
    PostgresRecord,
};
use diskproof_model::record::MeasurementRecord;

const SECOND_NS: f64 = 1e9;

/// What the record says of the server, if there was one. Loads that were not measured are absent.
pub(crate) fn postgres_record(
    measured: Option<&PostgresMeasurement>,
    own: &[MeasurementRecord],
) -> Option<PostgresRecord> {
    let measured = measured?;
    let mut loads: Vec<LoadRecord> = measured
        .loads
        .iter()
        .filter(|load| !load.slices.is_empty())
        .map(|load| load_record(load, own))
        .collect();
    let server_ns = insert_ns(&loads, |load| {
        !load.synchronous_commit && load.clients == 1 && !load.pgbench
    });
    for load in &mut loads {
        let is_alone = load.load.clients == 1 && !load.load.pgbench;
        let Some((own, server_ns)) = load.own.as_ref().zip(server_ns).filter(|_| is_alone) else {
            continue;
        };
        if own.iops.value > 0.0 && load.iops.value > 0.0 {
            let insert_ns = SECOND_NS / load.iops.value;
            let disk_ns = SECOND_NS / own.iops.value;
            load.parts = Some(InsertTime {
                insert_ns,
                disk_ns,
                server_ns,
                explained: (disk_ns + server_ns) / insert_ns,
            });
        }
    }
    Some(PostgresRecord {
        version: measured.version.clone(),
        loads,
        trials: measured.trials.iter().map(trial_record).collect(),
    })
}

fn insert_ns(loads: &[LoadRecord], is_it: fn(&PostgresLoad) -> bool) -> Option<f64> {
    let found = loads.iter().find(|load| is_it(&load.load))?;
    (found.iops.value > 0.0).then(|| SECOND_NS / found.iops.value)
}

fn load_record(measured: &LoadMeasurement, own: &[MeasurementRecord]) -> LoadRecord {
    let slices = &measured.slices;
    let rates: Vec<f64> = slices.iter().map(|slice| slice.rate).collect();
    let commits: u64 = slices.iter().map(|slice| slice.commits).sum();
    let wal_bytes: u64 = slices.iter().map(|slice| slice.wal_bytes).sum();
    let cpu_ns: Option<u64> = slices.iter().map(|slice| slice.client_cpu_ns).sum();
    let syncs: Option<u64> = slices.iter().map(|slice| slice.wal_syncs).sum();
    let cpu_ns = cpu_ns.filter(|_| commits > 0);
    let syncs = syncs.filter(|syncs| *syncs > 0 && measured.load.synchronous_commit);
    let latency = Some(&measured.latency).filter(|latency| latency.count() > 0);
    LoadRecord {
        iops: mean_rate(&rates),
        latency_p50_ns: latency.and_then(|latency| latency.percentile(0.5)),
        latency_p99_ns: latency.and_then(|latency| latency.percentile(0.99)),
        latency_max_ns: latency.map(|latency| latency.max_ns()),
        hdr: latency.map(|latency| latency.to_hdr_base64()),
        wal_bytes_per_commit: wal_bytes as f64 / commits.max(1) as f64,
        commits_per_sync: syncs.map(|syncs| commits as f64 / syncs as f64),
        client_cpu_ns: cpu_ns.map(|ns| ns as f64 / commits as f64),
        own: own_commits(&measured.load, own),
        parts: None,
        slices: slices.clone(),
        load: measured.load.clone(),
    }
}

/// The row of `commit` that does the same without a server: the method with one session, shared
/// syncs with several.
fn own_commits(load: &PostgresLoad, own: &[MeasurementRecord]) -> Option<OwnCommits> {
    let workload = match load.clients {
        _ if !load.synchronous_commit => return None,
        1 => load.wal_sync_method.clone(),
        clients if load.wal_sync_method == "fdatasync" => format!("group-c{clients}"),
        _ => return None,
    };
    let found = own.iter().find(|m| m.workload.name == workload)?;
    let commits = found.ops.get(&OpKind::Commit).filter(|op| op.count > 0)?;
    Some(OwnCommits {
        workload,
        iops: commits.iops.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::histogram::LatencyHistogram;
    use diskproof_model::postgres::PostgresSlice;

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
        let mut own = fixture::record().measurements;
        let index = own
            .iter()
            .position(|m| m.workload.name == "commit-fdatasync")
            .unwrap();
        own[index].workload.name = "fdatasync".to_owned();
        let measured = PostgresMeasurement {
            version: "15.8".to_owned(),
            loads: vec![
                load("insert-fdatasync-c1", 1, true, 400.0),
                load("insert-fdatasync-c4", 4, true, 1200.0),
                load("insert-async-c1", 1, false, 10_000.0),
            ],
            trials: Vec::new(),
        };
        let record = postgres_record(Some(&measured), &own).unwrap();
        let [alone, several, without_sync] = &record.loads[..] else {
            panic!("{record:?}");
        };
        let own_rate = alone.own.as_ref().unwrap().iops.value;
        let parts = alone.parts.as_ref().unwrap();
        assert!((parts.insert_ns - 2.5e6).abs() < 1.0 && (parts.server_ns - 1e5).abs() < 1.0);
        let explained = (1e9 / own_rate + 1e5) / 2.5e6;
        assert!((parts.explained - explained).abs() < 1e-9);
        assert!(alone.iops.half_width_95.is_some_and(|width| width > 0.0));
        assert_eq!(alone.wal_bytes_per_commit, 150.0);
        assert_eq!(alone.client_cpu_ns, Some(5000.0));
        assert_eq!(several.commits_per_sync, Some(4.0));
        assert!(
            several.parts.is_none() && several.own.is_none(),
            "no row group-c4"
        );
        assert!(without_sync.commits_per_sync.is_none() && without_sync.parts.is_none());
        assert!(alone.latency_p50_ns.is_some() && alone.hdr.is_some());
    }
}
