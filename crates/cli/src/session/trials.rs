//! Tries settings on a temporary PostgreSQL server: each with its default and with another value,
//! in random alternation. Reads count where the kernel's counters of the disks confirm them.

use super::sink::Sink;
use crate::interrupt;
use crate::stdio::ProgressLine;
use diskproof_analysis::trials::candidate_value;
use diskproof_device::Snapshot;
use diskproof_engine::random::Random;
use diskproof_engine::watchdog::Heartbeat;
use diskproof_model::postgres::{PlannedTrial, TrialLoad, TrialMeasurement, TrialPair, TrialPlan};
use diskproof_model::target::TargetIdentity;
use diskproof_postgres::{
    Cluster, CommitLoad, LoadResult, PAGE_BYTES, PostgresClient, PostgresError, ServerSetting,
    SettingScope, StopCheck, TrialTable,
};
use std::time::{Duration, Instant};

/// The random stream for the order of pairs. The value is arbitrary; neither loads nor workloads
/// use it.
pub(super) const ORDER_STREAM: u64 = 0x5452_0000;
/// The share of the time in which the table is made. Chosen, not measured.
const TABLE_SHARE: f64 = 0.4;
/// The share of a slice that the load itself gets: sessions, emptied caches and restarts need the
/// rest. Chosen, not measured.
const LOAD_SHARE: f64 = 0.7;
/// Shorter slices measure the first requests only.
const SLICE_MIN: Duration = Duration::from_millis(50);
/// A statement may take this long, however short the time of its setting is. Chosen, not measured.
const STATEMENT_MIN: Duration = Duration::from_secs(1);
/// Until version 18 the server keeps io_combine_limit below this one, which counts from its start.
const COMBINE_LIMIT_MAX: &str = "io_max_combine_limit";
/// Why the last settings were not tried.
const NO_TIME: &str = "the time of the run was over before (--time)";
/// The value of io_method to try where a server cannot use io_uring.
const WITHOUT_IO_URING: &str = "sync";

/// A running server, and what shows that it works.
pub(super) struct ServerBench {
    pub cluster: Cluster,
    pub stop: StopCheck,
    pub heartbeat: Heartbeat,
    pub line: ProgressLine,
}

impl ServerBench {
    /// Runs a load for this time; `shown` is the progress line meanwhile.
    pub(super) fn run_load(
        &mut self,
        load: &CommitLoad,
        time: Duration,
        shown: &str,
    ) -> Result<LoadResult, PostgresError> {
        let mut last_count = 0;
        let result = self
            .cluster
            .run_load(load, time, &self.stop, &mut |count| {
                if count != last_count {
                    show_alive(&self.heartbeat, &mut self.line, shown);
                }
                last_count = count;
            })?;
        self.heartbeat.beat();
        if (self.stop)() {
            Err(PostgresError::Stopped)
        } else {
            Ok(result)
        }
    }
}

/// The settings of a plan while they are tried.
pub(super) struct Trials<'a> {
    pub plan: TrialPlan,
    /// Decides which value of a pair runs first.
    pub order: Random,
    pub bench: &'a mut ServerBench,
    pub identity: &'a TargetIdentity,
}

/// The result of one slice.
struct TrialSlice {
    /// Commits, pages or joins a second.
    rate: f64,
    /// The bytes of the pages that a scan read.
    scanned_bytes: u64,
    /// The bytes that the disks read meanwhile; `None` where they cannot be counted.
    disk_bytes: Option<u64>,
    /// The plan of a join.
    join_plan: Option<String>,
}

/// A setting while it is tried.
struct RunningTrial<'a> {
    trial: &'a PlannedTrial,
    setting: &'a ServerSetting,
    /// The table that scans read; `None` where there is none.
    table: Option<&'a TrialTable>,
    /// The time of a load with one value.
    slice: Duration,
    /// The longest that a statement may take.
    limit: Duration,
}

impl Trials<'_> {
    /// Tries all settings within the time of the plan.
    pub(super) fn run(&mut self, sink: &Sink) -> Result<(), PostgresError> {
        let begun = Instant::now();
        let time = Duration::from_nanos(self.plan.time_ns);
        sink.results().step = Some("settings of PostgreSQL".to_owned());
        let table = match self.make_table(time.mul_f64(TABLE_SHARE)) {
            Err(PostgresError::Stopped) if interrupt::signal().is_none() => None,
            made => made?,
        };
        let trials = self.plan.trials.clone();
        for (number, trial) in trials.iter().enumerate() {
            let time_left = time.saturating_sub(begun.elapsed());
            let time_of_trial = time_left / (trials.len() - number) as u32;
            let mut measured = TrialMeasurement {
                trial: trial.clone(),
                pairs: Vec::new(),
                untested: None,
                asked_bytes: 0,
                disk_bytes: Some(0),
                plans: None,
            };
            let tried = self.try_one(&mut measured, table.as_ref(), time_of_trial, sink);
            self.bench.line.clear();
            let ended = note_early_end(&mut measured, tried);
            if let Some(results) = &mut sink.results().data.postgres {
                results.trials.push(measured);
            }
            ended?;
        }
        Ok(())
    }

    /// Makes the table that scans read, where there are scans, in this time.
    fn make_table(&mut self, time: Duration) -> Result<Option<TrialTable>, PostgresError> {
        if !self.plan.trials.iter().any(|trial| trial.load.is_scan()) {
            return Ok(None);
        }
        let bytes = self.plan.table_bytes;
        let shown = "PostgreSQL: creating a table";
        let bench = &mut *self.bench;
        bench
            .cluster
            .make_trial_table(bytes, time, &bench.stop, &mut || {
                show_alive(&bench.heartbeat, &mut bench.line, shown);
            })
    }

    /// Tries one setting for its share of the time.
    fn try_one(
        &mut self,
        measured: &mut TrialMeasurement,
        table: Option<&TrialTable>,
        time: Duration,
        sink: &Sink,
    ) -> Result<(), PostgresError> {
        let begun = Instant::now();
        let stop = StopCheck::clone(&self.bench.stop);
        if measured.trial.load.is_scan() && table.is_none() {
            let why = "creating a table larger than the server's cache takes longer than --time";
            measured.untested = Some(why.to_owned());
            return Ok(());
        }
        let Some(setting) = self.bench.cluster.setting(&measured.trial.setting, &stop)? else {
            measured.untested = Some("this server has no such setting".to_owned());
            return Ok(());
        };
        let candidate = match value_to_try(&measured.trial, &setting, sink) {
            Ok(value) => value,
            Err(why) => {
                measured.untested = Some(why.to_owned());
                return Ok(());
            }
        };
        measured.trial.candidate = Some(candidate.clone());
        let trial = measured.trial.clone();
        if trial.load == TrialLoad::SequentialScan
            && let Some(limit) = self.bench.cluster.setting(COMBINE_LIMIT_MAX, &stop)?
        {
            self.bench.cluster.change(&limit, &candidate, &stop)?;
        }
        let slice = (time / (2 * self.plan.pairs_max)).mul_f64(LOAD_SHARE);
        let running = RunningTrial {
            trial: &trial,
            setting: &setting,
            table,
            slice: slice.max(SLICE_MIN),
            limit: time.max(STATEMENT_MIN),
        };
        let tried = self.measure_pairs(measured, &running, &candidate, begun + time);
        match setting.scope {
            SettingScope::Reload => {
                let cluster = &self.bench.cluster;
                end_of_trial(tried, cluster.put_back(&setting, &trial.default, &stop))
            }
            // A session takes its value with it.
            SettingScope::Session => tried,
            SettingScope::Restart => end_of_last_trial(measured, tried),
        }
    }

    /// Measures the default and the candidate in pairs until there are enough or the time is over.
    fn measure_pairs(
        &mut self,
        measured: &mut TrialMeasurement,
        running: &RunningTrial<'_>,
        candidate: &str,
        end: Instant,
    ) -> Result<(), PostgresError> {
        let default_value = &running.trial.default;
        while measured.pairs.len() < self.plan.pairs_max as usize && Instant::now() < end {
            if self.order.below(2) == 0 {
                let default = self.measure_slice(running, default_value)?;
                let other = self.measure_slice(running, candidate)?;
                add_pair(measured, default, other);
            } else {
                let other = self.measure_slice(running, candidate)?;
                let default = self.measure_slice(running, default_value)?;
                add_pair(measured, default, other);
            }
        }
        Ok(())
    }

    /// Measures the load with one value.
    fn measure_slice(
        &mut self,
        running: &RunningTrial<'_>,
        value: &str,
    ) -> Result<TrialSlice, PostgresError> {
        let stop = StopCheck::clone(&self.bench.stop);
        self.bench.cluster.change(running.setting, value, &stop)?;
        let slice = match running.table {
            Some(table) if running.trial.load.is_scan() => {
                self.measure_scans(running, table, value)
            }
            _ => self.measure_commits(running, value),
        };
        match slice {
            // What ends by the end of its time may fail in many ways; a disk fails in its own.
            Err(error) if error.disk_errno().is_some() => Err(error),
            _ if stop() => Err(PostgresError::Stopped),
            slice => slice,
        }
    }

    /// Measures scans of the table with one value.
    fn measure_scans(
        &mut self,
        running: &RunningTrial<'_>,
        table: &TrialTable,
        value: &str,
    ) -> Result<TrialSlice, PostgresError> {
        let load = running.trial.load;
        let bench = &mut *self.bench;
        let mut session: PostgresClient =
            bench
                .cluster
                .scan_session(load, running.limit, &bench.stop)?;
        running.setting.set(&mut session, value)?;
        let disks = Snapshot::take(self.identity);
        let shown = format!("PostgreSQL: trying {}", running.trial.setting);
        let result =
            bench
                .cluster
                .run_scans(&mut session, table, load, running.slice, &mut || {
                    show_alive(&bench.heartbeat, &mut bench.line, &shown);
                })?;
        let seconds = result.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let count = if load == TrialLoad::Join {
            result.scans
        } else {
            result.pages
        };
        Ok(TrialSlice {
            rate: count as f64 / seconds,
            scanned_bytes: result.pages * PAGE_BYTES,
            disk_bytes: disks.counts().map(|counts| counts.read_bytes),
            join_plan: result.join,
        })
    }

    /// Measures commits with one value.
    fn measure_commits(
        &mut self,
        running: &RunningTrial<'_>,
        value: &str,
    ) -> Result<TrialSlice, PostgresError> {
        let trial = running.trial;
        let mut load = CommitLoad {
            clients: trial.clients,
            synchronous: true,
            method: "fdatasync".to_owned(),
            by_pgbench: false,
            commit_delay_us: None,
        };
        if trial.setting == "wal_sync_method" {
            value.clone_into(&mut load.method);
        } else {
            load.commit_delay_us = value.parse().ok();
        }
        let shown = format!("PostgreSQL: trying {}", trial.setting);
        let result = self.bench.run_load(&load, running.slice, &shown)?;
        Ok(TrialSlice {
            rate: result.rate,
            scanned_bytes: 0,
            disk_bytes: None,
            join_plan: None,
        })
    }
}

/// How a trial ended whose setting was put back afterwards, also where the trial failed. A setting
/// that stays ends all trials: the next ones would call the candidate their default.
fn end_of_trial(
    tried: Result<(), PostgresError>,
    put_back: Result<(), PostgresError>,
) -> Result<(), PostgresError> {
    match (tried, put_back) {
        (tried, Ok(())) => tried,
        // A server that has ended has no setting to put back.
        (Err(PostgresError::Server(why)), Err(_)) => Err(PostgresError::Server(why)),
        (_, Err(error)) => Err(error),
    }
}

/// How a trial ended that restarts the server, which is the last one: all else has been measured,
/// so a server that does not start costs nothing. One that its disk failed has failed.
fn end_of_last_trial(
    measured: &mut TrialMeasurement,
    tried: Result<(), PostgresError>,
) -> Result<(), PostgresError> {
    match tried {
        Err(error) if error.disk_errno().is_some() => Err(error),
        Err(PostgresError::Server(why)) => {
            measured.untested = Some(format!("the server does not start: {why}"));
            Ok(())
        }
        tried => tried,
    }
}

/// The value to try alongside the default; the error says why no value fits.
fn value_to_try(
    trial: &PlannedTrial,
    setting: &ServerSetting,
    sink: &Sink,
) -> Result<String, &'static str> {
    let results = sink.results();
    let value = match &results.data.postgres {
        Some(postgres) => candidate_value(trial, &postgres.loads)?,
        None => candidate_value(trial, &[])?,
    };
    if accepts(setting, &value) {
        Ok(value)
    } else if accepts(setting, WITHOUT_IO_URING) {
        Ok(WITHOUT_IO_URING.to_owned())
    } else {
        Err("this server was built without it")
    }
}

/// True if the server knows the value. One without a list of words takes any.
fn accepts(setting: &ServerSetting, value: &str) -> bool {
    match &setting.words {
        Some(words) => words.iter().any(|word| word == value),
        None => true,
    }
}

/// Notes why a setting was not tried. Returns the errors that end all trials.
fn note_early_end(
    measured: &mut TrialMeasurement,
    tried: Result<(), PostgresError>,
) -> Result<(), PostgresError> {
    let disk_error = tried.as_ref().err().and_then(PostgresError::disk_errno);
    match tried {
        Ok(()) => {}
        Err(PostgresError::Statement { message, .. }) if disk_error.is_none() => {
            measured.untested = Some(if message.contains("statement timeout") {
                "a statement exceeds its time (--time)".to_owned()
            } else {
                format!("the server reports '{message}'")
            });
        }
        // The time is over, and the settings are what was left to do.
        Err(PostgresError::Stopped) if interrupt::signal().is_none() => {
            if measured.pairs.is_empty() {
                measured.untested = Some(NO_TIME.to_owned());
            }
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Shows that the run goes on.
fn show_alive(heartbeat: &Heartbeat, line: &mut ProgressLine, shown: &str) {
    heartbeat.beat();
    if line.is_due() {
        line.show(shown);
    }
}

/// Adds what the two values of a setting have reached one after the other.
fn add_pair(measured: &mut TrialMeasurement, default: TrialSlice, other: TrialSlice) {
    measured.pairs.push(TrialPair {
        default_rate: default.rate,
        candidate_rate: other.rate,
    });
    for slice in [&default, &other] {
        measured.asked_bytes += slice.scanned_bytes;
        measured.disk_bytes = match (measured.disk_bytes, slice.disk_bytes) {
            (Some(sum), Some(bytes)) => Some(sum + bytes),
            _ => None,
        };
    }
    measured.plans = match (default.join_plan, other.join_plan) {
        (Some(default), Some(other)) => Some([default, other]),
        _ => None,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed_out() -> PostgresError {
        PostgresError::Statement {
            statement: "SELECT".to_owned(),
            code: "57014".to_owned(),
            message: "canceling statement due to statement timeout".to_owned(),
        }
    }

    fn not_put_back() -> PostgresError {
        PostgresError::NotPutBack {
            setting: "commit_delay".to_owned(),
            default: "0".to_owned(),
            cause: Box::new(timed_out()),
        }
    }

    fn unmeasured() -> TrialMeasurement {
        TrialMeasurement {
            trial: PlannedTrial {
                setting: "commit_delay".to_owned(),
                default: "0".to_owned(),
                candidate: Some("100".to_owned()),
                load: TrialLoad::Inserts,
                clients: 4,
            },
            pairs: Vec::new(),
            untested: None,
            asked_bytes: 0,
            disk_bytes: None,
            plans: None,
        }
    }

    fn scan(rate: f64, disk_bytes: Option<u64>) -> TrialSlice {
        TrialSlice {
            rate,
            scanned_bytes: 100,
            disk_bytes,
            join_plan: None,
        }
    }

    #[test]
    fn bytes_of_the_disk_are_unknown_once_a_slice_cannot_count_them() {
        let mut measured = unmeasured();
        measured.disk_bytes = Some(0);
        add_pair(&mut measured, scan(2.0, Some(60)), scan(3.0, Some(70)));
        assert_eq!(
            (measured.asked_bytes, measured.disk_bytes),
            (200, Some(130))
        );
        add_pair(&mut measured, scan(2.0, None), scan(3.0, Some(70)));
        assert_eq!((measured.asked_bytes, measured.disk_bytes), (400, None));
        assert_eq!(measured.pairs[0].default_rate, 2.0);
        assert_eq!(measured.pairs[0].candidate_rate, 3.0);
    }

    #[test]
    fn trial_ends_as_it_did_where_its_setting_was_put_back() {
        for tried in [Ok(()), Err(timed_out()), Err(PostgresError::Stopped)] {
            let shown = format!("{tried:?}");
            assert_eq!(format!("{:?}", end_of_trial(tried, Ok(()))), shown);
        }
    }

    /// The server fails by a PANIC in whatever trial is under way.
    #[test]
    fn server_that_its_disk_failed_is_no_untested_setting() {
        let server = |why: &str| Err(PostgresError::Server(why.to_owned()));
        let panic = "it ended unexpectedly: PANIC:  could not fdatasync file \"x\": Input/output \
                     error";
        let mut measured = unmeasured();
        let ended = end_of_last_trial(&mut measured, server(panic));
        assert_eq!(ended.unwrap_err().disk_errno(), Some("EIO"));
        assert_eq!(measured.untested, None);
        let statement = PostgresError::Statement {
            statement: "INSERT".to_owned(),
            message: "ERROR: could not extend file \"base/1\": Input/output error".to_owned(),
            code: "58030".to_owned(),
        };
        assert!(note_early_end(&mut measured, Err(statement)).is_err());
        assert_eq!(measured.untested, None);
        end_of_last_trial(&mut measured, server("FATAL:  invalid value")).unwrap();
        assert!(measured.untested.is_some());
    }

    #[test]
    fn setting_that_stays_ends_the_trials() {
        for tried in [Ok(()), Err(timed_out()), Err(PostgresError::Stopped)] {
            let mut measured = unmeasured();
            let ended = end_of_trial(tried, Err(not_put_back()));
            let noted = note_early_end(&mut measured, ended);
            assert!(matches!(noted, Err(PostgresError::NotPutBack { .. })));
        }
    }
}
