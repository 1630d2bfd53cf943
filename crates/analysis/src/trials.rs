//! Chooses the value of a PostgreSQL setting to try, and decides whether that value is faster.

use crate::estimate::{PairedDifference, largest_by, mean};
use diskproof_model::postgres::{
    LoadMeasurement, PlannedTrial, TrialFigures, TrialGain, TrialMeasurement, TrialOutcome,
    TrialPair, TrialRow,
};

/// `commit_delay` is in microseconds.
const MICROSECONDS_PER_SECOND: f64 = 1e6;

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

    /// The outcome of a gain with this interval.
    fn outcome_between(low_95: f64, high_95: f64) -> TrialOutcome {
        outcome_of_gain(TrialGain {
            value: (low_95 * high_95).sqrt(),
            low_95,
            high_95,
        })
    }

    /// A twentieth is worth advice, and a tenth either way is no difference.
    #[test]
    fn outcome_is_that_of_the_whole_interval() {
        for (low_95, high_95, expected) in [
            (1.06, 1.2, TrialOutcome::Faster),
            (1.04, 1.2, TrialOutcome::Undecided),
            (0.8, 0.95, TrialOutcome::Slower),
            (0.8, 0.96, TrialOutcome::Undecided),
            (0.92, 1.09, TrialOutcome::Same),
            (0.92, 1.11, TrialOutcome::Undecided),
            (0.90, 1.09, TrialOutcome::Undecided),
            // Surely faster, though not by as much as the values of the same differ.
            (1.06, 1.09, TrialOutcome::Faster),
        ] {
            assert_eq!(
                outcome_between(low_95, high_95),
                expected,
                "{low_95}–{high_95}"
            );
        }
    }

    #[test]
    fn scan_is_proven_if_the_disk_read_nine_tenths_of_what_was_asked() {
        let fast = [180.0, 182.0, 178.0, 181.0];
        for (disk_bytes, expected) in [(900, TrialOutcome::Faster), (899, TrialOutcome::Unproven)] {
            let found = outcome(fast, TrialLoad::BitmapScan, Some(disk_bytes));
            assert_eq!(found, expected, "{disk_bytes}");
        }
    }

    /// INSERTs of one session at this rate.
    fn one_session(rate: f64) -> LoadMeasurement {
        LoadMeasurement {
            load: PostgresLoad {
                name: "c1".to_owned(),
                clients: 1,
                synchronous_commit: true,
                wal_sync_method: "fdatasync".to_owned(),
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
        }
    }

    /// Half of a commit at 50,000 per second is 10 µs.
    #[test]
    fn delay_is_between_what_has_an_effect_and_what_postgresql_takes() {
        let delay = trial("commit_delay", None, TrialLoad::Inserts);
        for (rate, expected) in [
            (
                50_100.0,
                Err("commits on this disk are too fast for a delay to help"),
            ),
            (49_900.0, Ok("10".to_owned())),
            (5.1, Ok("98039".to_owned())),
            (4.9, Ok("100000".to_owned())),
        ] {
            assert_eq!(
                candidate_value(&delay, &[one_session(rate)]),
                expected,
                "{rate}"
            );
        }
    }

    /// Their commits share syncs, do not wait, or are counted by another program.
    #[test]
    fn only_one_session_that_waits_shows_the_rate_of_a_method() {
        let changes: [fn(&mut PostgresLoad); 3] = [
            |load| load.clients = 2,
            |load| load.synchronous_commit = false,
            |load| load.pgbench = true,
        ];
        assert_eq!(method_rates(&[one_session(100.0)]).len(), 1);
        for (number, change) in changes.into_iter().enumerate() {
            let mut measured = one_session(100.0);
            change(&mut measured.load);
            assert!(method_rates(&[measured]).is_empty(), "{number}");
        }
        assert!(
            method_rates(&[one_session(0.0)]).is_empty(),
            "nothing was committed"
        );
    }
}
