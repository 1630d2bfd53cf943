//! INSERTs that commit, from several sessions at the same time, and what the server wrote for them.

use crate::client::PostgresClient;
use crate::cluster::Cluster;
use crate::commit_load::{CommitLoad, INSERT};
use crate::error::PostgresError;
use crate::pgbench;
use crate::prepared::PreparedRun;
use crate::stream::StopCheck;
use diskproof_model::histogram::LatencyHistogram;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

const CREATE: &str = "CREATE TABLE commits (session int, at timestamptz, filler char(22))";
/// WAL segments that are written and recycled before anything is measured, so that no commit waits
/// for a new file. Most disks write less than one of 16 MiB during a slice.
const SEGMENTS: usize = 6;
/// A new session may start before the server has read a changed setting.
const SETTING_WITHIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a slice of a load measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadResult {
    /// INSERTs that were acknowledged.
    pub commits: u64,
    /// Their rate per second.
    pub rate: f64,
    /// Their latency; empty for pgbench, which prints no distribution.
    pub latency: LatencyHistogram,
    /// Bytes of WAL that the server made for them.
    pub wal_bytes: u64,
    /// Syncs of the WAL, where the server counts them.
    pub wal_syncs: Option<u64>,
    /// CPU time that the sessions used in this process, in nanoseconds; `None` of pgbench.
    pub client_cpu_ns: Option<u64>,
}

/// What the server counts.
struct WalCounters {
    bytes: u64,
    syncs: Option<u64>,
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
        self.tidy_up(&mut session)
    }

    /// Empties the table and recycles WAL segments, between measurements.
    pub fn recycle(&self, stop: &StopCheck) -> Result<(), PostgresError> {
        let mut session = self.connect(stop)?;
        session.query("TRUNCATE commits")?;
        self.tidy_up(&mut session)
    }

    /// The second checkpoint recycles what the first one still needed.
    fn tidy_up(&self, session: &mut PostgresClient) -> Result<(), PostgresError> {
        session.query("CHECKPOINT")?;
        session.query("CHECKPOINT").map(drop)
    }

    /// Runs a load for some time. `progress` gets the number of commits so far, many times a
    /// second.
    pub fn run_load(
        &self,
        load: &CommitLoad,
        time: Duration,
        stop: &StopCheck,
        progress: &mut dyn FnMut(u64),
    ) -> Result<LoadResult, PostgresError> {
        let mut session = self.connect(stop)?;
        self.set_method(&mut session, &load.method)?;
        let before = self.wal_counters(&mut session)?;
        let mut result = if load.by_pgbench {
            let (commits, rate) = pgbench::run(self, load, time, stop, progress)?;
            LoadResult {
                commits,
                rate,
                ..LoadResult::default()
            }
        } else {
            let sessions = self.sessions(load, stop)?;
            run_sessions(sessions, time, stop, progress)?
        };
        wait_for_end_of_sessions(&mut session)?;
        let after = self.wal_counters(&mut session)?;
        result.wal_bytes = after.bytes.saturating_sub(before.bytes);
        let counts_syncs = ["fdatasync", "fsync"].contains(&load.method.as_str());
        let syncs = after.syncs.zip(before.syncs).filter(|_| counts_syncs);
        result.wal_syncs = syncs.map(|(after, before)| after.saturating_sub(before));
        Ok(result)
    }

    fn set_method(&self, session: &mut PostgresClient, method: &str) -> Result<(), PostgresError> {
        if session.value("SHOW wal_sync_method")? == method {
            return Ok(());
        }
        session.query(&format!("ALTER SYSTEM SET wal_sync_method = {method}"))?;
        session.query("SELECT pg_reload_conf()").map(drop)
    }

    /// Sessions that are ready to insert. Each has inserted once.
    fn sessions(
        &self,
        load: &CommitLoad,
        stop: &StopCheck,
    ) -> Result<Vec<(PostgresClient, PreparedRun)>, PostgresError> {
        let mut sessions = Vec::new();
        for _ in 0..load.clients {
            let mut session = self.connect(stop)?;
            let begun = Instant::now();
            while session.value("SHOW wal_sync_method")? != load.method {
                if begun.elapsed() > SETTING_WITHIN {
                    let what = format!("wal_sync_method did not become {}", load.method);
                    return Err(PostgresError::Protocol(what));
                }
                std::thread::sleep(POLL);
                session = self.connect(stop)?;
            }
            let synchronous = if load.synchronous { "on" } else { "off" };
            session.query(&format!("SET synchronous_commit = {synchronous}"))?;
            if let Some(delay_us) = load.commit_delay_us {
                session.query(&format!("SET commit_delay = {delay_us}"))?;
            }
            let mut insert = session.prepare(INSERT)?;
            insert.run()?;
            sessions.push((session, insert));
        }
        Ok(sessions)
    }

    fn wal_counters(&self, session: &mut PostgresClient) -> Result<WalCounters, PostgresError> {
        let bytes = session.value("SELECT pg_current_wal_insert_lsn() - '0/0'")?;
        let syncs = match self.programs().version {
            ..14 => None,
            14..18 => Some(session.value("SELECT wal_sync FROM pg_stat_wal")?),
            18.. => Some(session.value(
                "SELECT coalesce(sum(fsyncs), 0)::bigint FROM pg_stat_io WHERE object = 'wal'",
            )?),
        };
        let number = |text: String| {
            let what = || PostgresError::Protocol(format!("'{text}' is no count"));
            text.parse::<u64>().map_err(|_| what())
        };
        Ok(WalCounters {
            bytes: number(bytes)?,
            syncs: syncs.map(number).transpose()?,
        })
    }
}

/// A session reports its counters when it ends.
fn wait_for_end_of_sessions(session: &mut PostgresClient) -> Result<(), PostgresError> {
    let begun = Instant::now();
    let others = "SELECT count(*) FROM pg_stat_activity \
                  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    while session.value(others)? != "0" && begun.elapsed() < SETTING_WITHIN {
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// What one session did.
#[derive(Default)]
struct SessionResult {
    commits: u64,
    elapsed: Duration,
    cpu_ns: u64,
    latency: LatencyHistogram,
}

fn run_sessions(
    sessions: Vec<(PostgresClient, PreparedRun)>,
    time: Duration,
    stop: &StopCheck,
    progress: &mut dyn FnMut(u64),
) -> Result<LoadResult, PostgresError> {
    let (is_complete, count) = (RwLock::new(false), AtomicU64::new(0));
    let results = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        // Sessions wait for this lock, and end at once where one of them cannot start.
        let mut starting = is_complete.write().unwrap_or_else(PoisonError::into_inner);
        for (session, insert) in sessions {
            let (is_complete, count) = (&is_complete, &count);
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
                if *is_complete.read().unwrap_or_else(PoisonError::into_inner) {
                    insert_until((session, insert), time, stop, count)
                } else {
                    Err(PostgresError::Stopped)
                }
            });
            threads.push(thread.map_err(|error| PostgresError::Program {
                program: "a thread for each session".to_owned(),
                why: error.to_string(),
            })?);
        }
        *starting = true;
        drop(starting);
        while threads.iter().any(|thread| !thread.is_finished()) {
            progress(count.load(Ordering::Relaxed));
            std::thread::sleep(LOOK_EVERY.min(time));
        }
        let joined = threads.into_iter().map(|thread| thread.join());
        let panicked = || PostgresError::Server("a session of the load panicked".to_owned());
        joined
            .map(|result| result.unwrap_or_else(|_| Err(panicked())))
            .collect::<Result<Vec<SessionResult>, PostgresError>>()
    })?;
    let mut total = LoadResult {
        client_cpu_ns: Some(results.iter().map(|result| result.cpu_ns).sum()),
        ..LoadResult::default()
    };
    for result in results {
        total.commits += result.commits;
        let seconds = result.elapsed.as_secs_f64();
        if seconds > 0.0 {
            total.rate += result.commits as f64 / seconds;
        }
        total.latency.merge(&result.latency);
    }
    Ok(total)
}

/// Inserts one row after the other. The time of a session ends with its last commit, so that its
/// rate has no error at the end.
fn insert_until(
    (_session, mut insert): (PostgresClient, PreparedRun),
    time: Duration,
    stop: &StopCheck,
    count: &AtomicU64,
) -> Result<SessionResult, PostgresError> {
    let cpu_before_ns = thread_cpu_ns();
    let begin = Instant::now();
    let mut result = SessionResult::default();
    while result.elapsed < time && !stop() {
        insert.run()?;
        let now = begin.elapsed();
        let latency = now - result.elapsed;
        result.latency.record(latency.as_nanos() as u64);
        result.elapsed = now;
        result.commits += 1;
        count.fetch_add(1, Ordering::Relaxed);
    }
    result.cpu_ns = thread_cpu_ns().saturating_sub(cpu_before_ns);
    Ok(result)
}

/// CPU time of this thread so far.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64
}
