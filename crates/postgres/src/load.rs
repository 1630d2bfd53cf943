//! Runs INSERTs that commit, from several sessions at the same time, and measures what the server
//! wrote for them.

use crate::client::PostgresClient;
use crate::cluster::Cluster;
use crate::commit_load::{CommitLoad, INSERT};
use crate::error::PostgresError;
use crate::pgbench::run_pgbench;
use crate::prepared::PreparedRun;
use crate::settings::{ServerSetting, SettingScope};
use crate::stream::StopCheck;
use diskproof_model::histogram::LatencyHistogram;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Makes the table of the load. Its filler is as long as that of pgbench's history.
const CREATE: &str = "CREATE TABLE commits (session int, at timestamptz, filler char(22))";
/// The WAL segments that are written and recycled before anything is measured, so that no commit
/// waits for a new file. Most disks write less than one of 16 MiB during a slice. Chosen, not
/// measured.
const SEGMENTS: usize = 6;
/// The longest that the server may take to end the sessions of a load. Chosen: it takes
/// milliseconds unless the disk hangs.
const SESSIONS_END_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause before the number of sessions is read again.
const SESSIONS_POLL: Duration = Duration::from_millis(5);
/// The first version in which a session can be made to report its counters: 15, with
/// pg_stat_force_next_flush.
const VERSION_FORCED_REPORT: u32 = 15;
/// Makes a session report its counters when this statement ends.
const FORCE_REPORT: &str = "SELECT pg_stat_force_next_flush()";
/// The time between two reports of a load's progress: as often as other measurements report.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// The result of one slice of a load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadResult {
    /// INSERTs that were acknowledged.
    pub commits: u64,
    /// The rate of the INSERTs per second.
    pub rate: f64,
    /// Latency of these INSERTs; empty for pgbench, which prints no distribution.
    pub latency: LatencyHistogram,
    /// Bytes of WAL that the server made for them.
    pub wal_bytes: u64,
    /// Syncs of the WAL, where the server counts them.
    pub wal_syncs: Option<u64>,
    /// CPU time that the sessions used in this process, in nanoseconds; `None` of pgbench.
    pub client_cpu_ns: Option<u64>,
}

impl Cluster {
    /// Makes the table, and WAL segments to be recycled.
    pub fn lay_out(&self, stop: &StopCheck) -> Result<(), PostgresError> {
        let mut session = self.connect(stop)?;
        session.query(CREATE)?;
        for _ in 0..SEGMENTS {
            session.query(INSERT)?;
            session.query("SELECT pg_switch_wal()")?;
        }
        recycle_segments(&mut session)
    }

    /// Empties the table and recycles WAL segments, between measurements.
    pub fn recycle(&self, stop: &StopCheck) -> Result<(), PostgresError> {
        let mut session = self.connect(stop)?;
        session.query("TRUNCATE commits")?;
        recycle_segments(&mut session)
    }

    /// Runs a load for some time. `progress` gets the number of commits so far, many times a
    /// second.
    ///
    /// The WAL is counted when the sessions are ready and again after their end, because a session
    /// reports all its counters only when it ends.
    pub fn run_load(
        &self,
        load: &CommitLoad,
        time: Duration,
        stop: &StopCheck,
        progress: &mut dyn FnMut(u64),
    ) -> Result<LoadResult, PostgresError> {
        let mut session = self.connect(stop)?;
        let method = ServerSetting {
            name: "wal_sync_method".to_owned(),
            scope: SettingScope::Reload,
            words: None,
        };
        self.change(&method, &load.method, stop)?;
        let ReadyLoad { sessions, before } = self.prepare_load(load, &mut session, stop)?;
        let mut result = if load.by_pgbench {
            let printed = run_pgbench(self, load, time, stop, progress)?;
            LoadResult {
                commits: printed.commits,
                rate: printed.rate,
                ..LoadResult::default()
            }
        } else {
            run_sessions(sessions, time, stop, progress)?
        };
        wait_for_end_of_sessions(&mut session)?;
        let after = self.wal_counters(&mut session)?;
        result.wal_bytes = after.bytes.saturating_sub(before.bytes);
        if let (Some(after), Some(before)) = (after.syncs, before.syncs)
            && ["fdatasync", "fsync"].contains(&load.method.as_str())
        {
            result.wal_syncs = Some(after.saturating_sub(before));
        }
        Ok(result)
    }

    /// Opens the sessions of a load, and counts the WAL up to then, that of their warm-up included.
    ///
    /// A session reports the syncs of its warm-up at a time of its own, at the latest when it ends.
    /// Before version 15 nothing makes it do so: the syncs are counted before the warm-up, and one
    /// for each of its commits is added.
    fn prepare_load(
        &self,
        load: &CommitLoad,
        session: &mut PostgresClient,
        stop: &StopCheck,
    ) -> Result<ReadyLoad, PostgresError> {
        if load.by_pgbench {
            return Ok(ReadyLoad {
                sessions: Vec::new(),
                before: self.wal_counters(session)?,
            });
        }
        let before_warm_up = self.wal_counters(session)?;
        let sessions = self.open_sessions(load, stop)?;
        let mut before = self.wal_counters(session)?;
        if self.programs().version < VERSION_FORCED_REPORT
            && let Some(syncs) = before_warm_up.syncs
        {
            // The commits come one after the other. The WAL writer syncs those that do not wait.
            let warm_up_syncs = if load.synchronous { sessions.len() } else { 0 };
            before.syncs = Some(syncs + warm_up_syncs as u64);
        }
        Ok(ReadyLoad { sessions, before })
    }

    /// Opens the sessions of a load. Each has inserted once, so that the first insert that is
    /// measured is like the others, and has reported that where the server's version can.
    fn open_sessions(
        &self,
        load: &CommitLoad,
        stop: &StopCheck,
    ) -> Result<Vec<LoadSession>, PostgresError> {
        let mut sessions = Vec::new();
        for _ in 0..load.clients {
            let mut client = self.connect(stop)?;
            let synchronous = if load.synchronous { "on" } else { "off" };
            client.query(&format!("SET synchronous_commit = {synchronous}"))?;
            if let Some(delay_us) = load.commit_delay_us {
                client.query(&format!("SET commit_delay = {delay_us}"))?;
            }
            let mut insert = client.prepare(INSERT)?;
            insert.run()?;
            if self.programs().version >= VERSION_FORCED_REPORT {
                client.query(FORCE_REPORT)?;
            }
            sessions.push(LoadSession {
                insert,
                _client: client,
            });
        }
        Ok(sessions)
    }

    fn wal_counters(&self, session: &mut PostgresClient) -> Result<WalCounters, PostgresError> {
        let position = session.value("SELECT pg_current_wal_insert_lsn() - '0/0'")?;
        let bytes = count_of(&position)?;
        let syncs = match self.programs().version {
            ..14 => return Ok(WalCounters { bytes, syncs: None }),
            14..18 => session.value("SELECT wal_sync FROM pg_stat_wal")?,
            18.. => session.value(
                "SELECT coalesce(sum(fsyncs), 0)::bigint FROM pg_stat_io WHERE object = 'wal'",
            )?,
        };
        Ok(WalCounters {
            bytes,
            syncs: Some(count_of(&syncs)?),
        })
    }
}

/// Recycles the WAL segments by two checkpoints: the second one recycles what the first one needed.
fn recycle_segments(session: &mut PostgresClient) -> Result<(), PostgresError> {
    session.query("CHECKPOINT")?;
    session.query("CHECKPOINT").map(drop)
}

/// A load that can begin.
struct ReadyLoad {
    /// Its sessions; none of pgbench, which opens its own.
    sessions: Vec<LoadSession>,
    /// The WAL that is no part of the load.
    before: WalCounters,
}

/// A session of a load.
struct LoadSession {
    insert: PreparedRun,
    /// Keeps the session open. The end of the load ends it.
    _client: PostgresClient,
}

/// The WAL that a server has written since it was made.
struct WalCounters {
    bytes: u64,
    /// `None` where the server does not count them.
    syncs: Option<u64>,
}

/// The number that a counter of the server has.
fn count_of(text: &str) -> Result<u64, PostgresError> {
    text.parse()
        .map_err(|_| PostgresError::Protocol(format!("'{text}' is no count")))
}

/// Waits until the server has ended all other sessions. Each of them reports its counters then.
fn wait_for_end_of_sessions(session: &mut PostgresClient) -> Result<(), PostgresError> {
    let begun = Instant::now();
    let others = "SELECT count(*) FROM pg_stat_activity \
                  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    while session.value(others)? != "0" && begun.elapsed() < SESSIONS_END_TIMEOUT {
        std::thread::sleep(SESSIONS_POLL);
    }
    Ok(())
}

/// Runs all sessions at the same time, each in its thread, and returns their sum. Either all of
/// them start or none inserts.
fn run_sessions(
    sessions: Vec<LoadSession>,
    time: Duration,
    stop: &StopCheck,
    progress: &mut dyn FnMut(u64),
) -> Result<LoadResult, PostgresError> {
    // True once every thread was started. The threads wait for the lock until that is decided.
    let all_started = RwLock::new(false);
    let count = AtomicU64::new(0);
    let results = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        // Where a thread cannot start, the lock is left with `false`, and the others end at once.
        let mut starting = all_started.write().unwrap_or_else(PoisonError::into_inner);
        for session in sessions {
            let (all_started, count) = (&all_started, &count);
            let thread = std::thread::Builder::new()
                .spawn_scoped(scope, move || {
                    if *all_started.read().unwrap_or_else(PoisonError::into_inner) {
                        insert_repeatedly(session, time, stop, count)
                    } else {
                        Err(PostgresError::Stopped)
                    }
                })
                .map_err(|error| PostgresError::program("a thread for each session", error))?;
            threads.push(thread);
        }
        *starting = true;
        drop(starting);
        while threads.iter().any(|thread| !thread.is_finished()) {
            progress(count.load(Ordering::Relaxed));
            std::thread::sleep(PROGRESS_INTERVAL.min(time));
        }
        let mut results = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(result) => results.push(result?),
                Err(_) => {
                    let why = "a session of the load panicked".to_owned();
                    return Err(PostgresError::Server(why));
                }
            }
        }
        Ok(results)
    })?;
    let mut total = LoadResult {
        client_cpu_ns: results.iter().map(|result| result.client_cpu_ns).sum(),
        ..LoadResult::default()
    };
    for result in results {
        total.commits += result.commits;
        total.rate += result.rate;
        total.latency.merge(&result.latency);
    }
    Ok(total)
}

/// Inserts one row after the other. The time of a session ends with its last commit, so that its
/// rate has no error at the end.
fn insert_repeatedly(
    mut session: LoadSession,
    time: Duration,
    stop: &StopCheck,
    count: &AtomicU64,
) -> Result<LoadResult, PostgresError> {
    let cpu_before_ns = thread_cpu_ns();
    let begin = Instant::now();
    let mut elapsed = Duration::ZERO;
    let mut result = LoadResult::default();
    while elapsed < time && !stop() {
        session.insert.run()?;
        let now = begin.elapsed();
        result.latency.record((now - elapsed).as_nanos() as u64);
        elapsed = now;
        result.commits += 1;
        count.fetch_add(1, Ordering::Relaxed);
    }
    if !elapsed.is_zero() {
        result.rate = result.commits as f64 / elapsed.as_secs_f64();
    }
    result.client_cpu_ns = Some(thread_cpu_ns().saturating_sub(cpu_before_ns));
    Ok(result)
}

/// CPU time of this thread so far.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64
}
