//! Makes the result of a temporary PostgreSQL server: the rates of INSERTs and the parts of their
//! time, next to this program's own commits. It also chooses the value of a setting to try, and
//! decides whether that value is faster.

use crate::estimate::{PairedDifference, largest_by, mean, mean_rate};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::group_name;
use diskproof_model::postgres::{
    DEFAULT_SYNC_METHOD, InsertTime, LoadFigures, LoadMeasurement, LoadRow, OwnCommits,
    PlannedTrial, PostgresLoad, PostgresMeasurement, PostgresRecord, TrialFigures, TrialGain,
    TrialMeasurement, TrialOutcome, TrialPair, TrialRow,
};
use diskproof_model::row::Row;

/// A second in nanoseconds.
const SECOND_NS: f64 = 1e9;
/// `commit_delay` is in microseconds.
const MICROSECONDS_PER_SECOND: f64 = 1e6;

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

/// The confidence of the interval of a gain.
const CONFIDENCE: f64 = 0.95;
/// A value is faster if its gain surely exceeds this factor, and slower if it surely loses as much.
/// Smaller gains are not worth advice. This and the next two limits were chosen, not measured.
const GAIN_MIN: f64 = 1.05;
/// Two values are the same if the whole interval is within this factor both ways.
const SAME_MAX: f64 = 1.10;
/// If the disk read less than this share of what the server read, a cache answered the rest.
const READ_SHARE_MIN: f64 = 0.9;
/// A shorter commit_delay, in microseconds, has no effect: the scheduling of processes takes as
/// long.
pub(crate) const COMMIT_DELAY_USEFUL_US: f64 = 10.0;
/// Largest value of commit_delay, in microseconds (PostgreSQL's documentation of commit_delay).
pub(crate) const COMMIT_DELAY_MAX_US: f64 = 100_000.0;

/// The value to try: as planned, else the one that the INSERTs suggest. The error is the reason why
/// no value fits.
pub fn candidate_value(
    trial: &PlannedTrial,
    loads: &[LoadMeasurement],
) -> Result<String, &'static str> {
    if let Some(candidate) = &trial.candidate {
        return Ok(candidate.clone());
    }
    let rates = method_rates(loads);
    if trial.setting == "wal_sync_method" {
        let others = rates.iter().filter(|one| one.method != trial.default);
        return match largest_by(others, |one| one.rate) {
            Some(best) => Ok(best.method.to_owned()),
            None => Err("no other method was measured"),
        };
    }
    let Some(first) = rates.first() else {
        return Err("no INSERTs were measured");
    };
    // PostgreSQL's documentation recommends half of the time of a sync as commit_delay.
    let half_commit_us = MICROSECONDS_PER_SECOND / first.rate / 2.0;
    let delay_us = half_commit_us.min(COMMIT_DELAY_MAX_US);
    if delay_us < COMMIT_DELAY_USEFUL_US {
        return Err("commits on this disk are too fast for a delay to help");
    }
    Ok(format!("{delay_us:.0}"))
}

/// The rate at which one session committed INSERTs with a method.
struct InsertRate<'a> {
    method: &'a str,
    rate: f64,
}

/// The rates of one session that waits for its commits, by method.
fn method_rates(loads: &[LoadMeasurement]) -> Vec<InsertRate<'_>> {
    let mut found = Vec::new();
    for measured in loads {
        let load = &measured.load;
        if load.clients != 1 || !load.synchronous_commit || load.pgbench {
            continue;
        }
        let rates: Vec<f64> = measured.slices.iter().map(|slice| slice.rate).collect();
        let rate = mean(&rates);
        if rate > 0.0 {
            let method = load.wal_sync_method.as_str();
            found.push(InsertRate { method, rate });
        }
    }
    found
}

/// The row of a trial: whether the value is faster, and by how much.
pub(crate) fn trial_row(measured: &TrialMeasurement) -> TrialRow {
    let gain = gain_of_pairs(&measured.pairs);
    let is_scan = measured.trial.load.is_scan();
    let read_share = match measured.disk_bytes {
        Some(bytes) if is_scan && measured.asked_bytes > 0 => {
            Some(bytes as f64 / measured.asked_bytes as f64)
        }
        _ => None,
    };
    let is_read = match read_share {
        Some(share) => share >= READ_SHARE_MIN,
        None => false,
    };
    let outcome = match gain {
        _ if measured.untested.is_some() => TrialOutcome::Untested,
        None => TrialOutcome::Undecided,
        Some(_) if is_scan && !is_read => TrialOutcome::Unproven,
        Some(gain) => outcome_of_gain(gain),
    };
    let figures = TrialFigures {
        outcome,
        gain,
        read_share,
    };
    TrialRow {
        data: measured.clone(),
        figures,
    }
}

/// The outcome of a trial whose gain is that of the disk.
fn outcome_of_gain(gain: TrialGain) -> TrialOutcome {
    if gain.low_95 > GAIN_MIN {
        TrialOutcome::Faster
    } else if gain.high_95 < 1.0 / GAIN_MIN {
        TrialOutcome::Slower
    } else if gain.low_95 > 1.0 / SAME_MAX && gain.high_95 < SAME_MAX {
        TrialOutcome::Same
    } else {
        TrialOutcome::Undecided
    }
}

/// The ratio of the rates; `None` of fewer than three pairs. Logarithms make twice as fast and half
/// as fast opposites.
fn gain_of_pairs(pairs: &[TrialPair]) -> Option<TrialGain> {
    let ratios: Vec<f64> = pairs
        .iter()
        .map(|pair| (pair.candidate_rate / pair.default_rate).ln())
        .collect();
    let difference = PairedDifference::from_sample(&ratios)?;
    let half_width = difference.half_width(CONFIDENCE);
    Some(TrialGain {
        value: difference.mean.exp(),
        low_95: (difference.mean - half_width).exp(),
        high_95: (difference.mean + half_width).exp(),
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
}

#[cfg(test)]
mod trials_tests {
    use super::*;
    use diskproof_model::histogram::LatencyHistogram;
    use diskproof_model::postgres::{PostgresLoad, PostgresSlice, TrialLoad};

    fn trial(setting: &str, candidate: Option<&str>, load: TrialLoad) -> PlannedTrial {
        PlannedTrial {
            setting: setting.to_owned(),
            default: "fdatasync".to_owned(),
            candidate: candidate.map(str::to_owned),
            load,
            clients: 1,
        }
    }

    fn outcome(rates: [f64; 4], load: TrialLoad, disk_bytes: Option<u64>) -> TrialOutcome {
        let pair = |candidate_rate| TrialPair {
            default_rate: 100.0,
            candidate_rate,
        };
        let measured = TrialMeasurement {
            trial: trial("effective_io_concurrency", Some("16"), load),
            pairs: rates.map(pair).to_vec(),
            untested: None,
            asked_bytes: 1000,
            disk_bytes,
            plans: None,
        };
        trial_row(&measured).figures.outcome
    }

    #[test]
    fn outcome_follows_from_the_interval_and_from_what_the_disk_read() {
        let scan = |rates, disk_bytes| outcome(rates, TrialLoad::BitmapScan, disk_bytes);
        let fast = [180.0, 182.0, 178.0, 181.0];
        assert_eq!(scan(fast, Some(1000)), TrialOutcome::Faster);
        assert_eq!(scan(fast, Some(800)), TrialOutcome::Unproven);
        assert_eq!(scan(fast, None), TrialOutcome::Unproven);
        assert_eq!(
            outcome(fast, TrialLoad::Inserts, None),
            TrialOutcome::Faster
        );
        let same = [99.0, 101.0, 100.0, 100.5];
        assert_eq!(scan(same, Some(1000)), TrialOutcome::Same);
        let slow = [50.0, 51.0, 52.0, 50.5];
        assert_eq!(scan(slow, Some(1000)), TrialOutcome::Slower);
        let wild = [50.0, 200.0, 90.0, 120.0];
        assert_eq!(scan(wild, Some(1000)), TrialOutcome::Undecided);
    }

    #[test]
    fn gain_is_the_geometric_mean_and_needs_three_pairs() {
        let pair = |default_rate, candidate_rate| TrialPair {
            default_rate,
            candidate_rate,
        };
        let pairs = [pair(1.0, 2.0), pair(1.0, 8.0), pair(1.0, 4.0)];
        let of_three = gain_of_pairs(&pairs).unwrap();
        assert!((of_three.value - 4.0).abs() < 1e-12, "{of_three:?}");
        assert!(of_three.low_95 < 2.0 && of_three.high_95 > 8.0);
        assert_eq!(gain_of_pairs(&pairs[..2]), None);
    }

    #[test]
    fn candidate_is_the_fastest_other_method_or_half_of_a_commit() {
        let load = |method: &str, rate| LoadMeasurement {
            load: PostgresLoad {
                name: method.to_owned(),
                clients: 1,
                synchronous_commit: true,
                wal_sync_method: method.to_owned(),
                pgbench: false,
            },
            slices: vec![PostgresSlice {
                commits: 10,
                rate,
                wal_bytes: 0,
                wal_syncs: None,
                client_cpu_ns: None,
            }],
            latency: LatencyHistogram::new(),
        };
        let loads = [
            ("fdatasync", 500.0),
            ("fsync", 300.0),
            ("open_datasync", 900.0),
        ];
        let loads = loads.map(|(method, rate)| load(method, rate));
        let of = |setting| candidate_value(&trial(setting, None, TrialLoad::Inserts), &loads);
        assert_eq!(of("wal_sync_method").unwrap(), "open_datasync");
        assert_eq!(of("commit_delay").unwrap(), "1000");
        let fast = [load("fdatasync", 1e6)];
        let delay = trial("commit_delay", None, TrialLoad::Inserts);
        assert!(candidate_value(&delay, &fast).is_err());
        assert!(candidate_value(&delay, &[]).is_err());
    }
}
