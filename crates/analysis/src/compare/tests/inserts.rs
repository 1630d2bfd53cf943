//! INSERTs of PostgreSQL servers are compared load by load; the settings that they tried are named.

use super::*;
use diskproof_model::postgres::{
    LoadFigures, LoadMeasurement, LoadRow, PlannedTrial, PostgresLoad, PostgresRecord,
    TrialFigures, TrialLoad, TrialMeasurement, TrialOutcome, TrialRow,
};
use diskproof_model::record::Estimate;
use std::collections::BTreeMap;

/// INSERTs at this rate, known to 5 %.
fn inserts(name: &str, rate: f64) -> LoadRow {
    LoadRow {
        data: LoadMeasurement {
            load: PostgresLoad {
                name: name.to_owned(),
                clients: 4,
                synchronous_commit: true,
                wal_sync_method: "fdatasync".to_owned(),
                pgbench: false,
            },
            slices: Vec::new(),
            latency: LatencyHistogram::new(),
        },
        figures: LoadFigures {
            iops: Estimate::new(20, rate, Some(0.05 * rate), "1/s"),
            latency_p50_ns: None,
            latency_p99_ns: None,
            latency_max_ns: None,
            wal_bytes_per_commit: 300.0,
            commits_per_sync: None,
            client_cpu_ns: None,
            own: None,
            parts: None,
        },
    }
}

fn trial() -> TrialRow {
    TrialRow {
        data: TrialMeasurement {
            trial: PlannedTrial {
                setting: "wal_compression".to_owned(),
                default: "off".to_owned(),
                candidate: Some("on".to_owned()),
                load: TrialLoad::Inserts,
                clients: 4,
            },
            pairs: Vec::new(),
            untested: None,
            asked_bytes: 0,
            disk_bytes: None,
            plans: None,
        },
        figures: TrialFigures {
            outcome: TrialOutcome::Undecided,
            gain: None,
            read_share: None,
        },
    }
}

fn served(version: &str, loads: Vec<LoadRow>, trials: Vec<TrialRow>) -> Record {
    let mut record = fixture::record();
    record.run_id = version.to_owned();
    record.measurements.clear();
    record.results = vec![TaskResult::Inserts(PostgresRecord {
        version: version.to_owned(),
        loads,
        trials,
        end_ns: None,
        errors: BTreeMap::new(),
        silence_before_ns: 0,
    })];
    record
}

#[test]
fn inserts_are_compared_load_by_load() {
    let a = served(
        "15.8",
        vec![inserts("c1", 100.0), inserts("c4", 300.0)],
        Vec::new(),
    );
    let b = served("16.2", vec![inserts("c4", 600.0)], vec![trial()]);
    let candidate = held(&[&a], &[&b]);
    assert_eq!(names(&candidate), ["postgres-c4.iops"]);
    let rate = metric(&candidate, "postgres-c4.iops");
    assert!((rate.ratio.unwrap().value - 2.0).abs() < 1e-9);
    assert_eq!((rate.verdict, rate.headline), (Verdict::FasterOnce, true));
    let alone: Vec<(&str, Holder)> = candidate
        .unmatched
        .iter()
        .map(|entry| (entry.subject.as_str(), entry.only))
        .collect();
    assert_eq!(
        alone,
        [
            ("postgres-c1", Holder::A),
            ("the settings that PostgreSQL tried", Holder::B)
        ]
    );
    let version = candidate
        .differences
        .iter()
        .find(|fact| fact.what == "PostgreSQL");
    assert_eq!(version.map(|fact| fact.a.as_str()), Some("15.8"));
}

#[test]
fn settings_that_both_sides_tried_are_not_compared() {
    let tried = |version| served(version, vec![inserts("c4", 300.0)], vec![trial()]);
    let candidate = held(&[&tried("15.8")], &[&tried("15.9")]);
    assert_eq!(candidate.unmatched[0].only, Holder::Both);
}

#[test]
fn inserts_of_other_sessions_are_not_comparable() {
    let a = served("15.8", vec![inserts("c4", 300.0)], Vec::new());
    let mut load = inserts("c4", 300.0);
    load.data.load.clients = 8;
    let candidate = held(&[&a], &[&served("15.9", vec![load], Vec::new())]);
    assert_eq!(
        reasons(metric(&candidate, "postgres-c4.iops")),
        ["load-differs"]
    );
}
