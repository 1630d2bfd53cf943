//! INSERTs that commit, from several sessions at the same time, and what the server wrote for them.
//! And the same INSERTs by pgbench, whose figures every PostgreSQL user knows.

use crate::client::PostgresClient;
use crate::cluster::{Cluster, ServerSetting, SettingScope};
use crate::cluster_files::SUPER_USER;
use crate::error::PostgresError;
use crate::guard::{inherited, path_of};
use crate::prepared::PreparedRun;
use crate::programs::ProgramLog;
use crate::stream::StopCheck;
use diskproof_device::ProgramGroup;
use diskproof_model::histogram::LatencyHistogram;
use rustix::time::{ClockId, clock_gettime};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The filler is as long as that of pgbench's history.
const CREATE: &str = "CREATE TABLE commits (session int, at timestamptz, filler char(22))";
/// WAL segments that are written and recycled before anything is measured, so that no commit waits
/// for a new file. Most disks write less than one of 16 MiB during a slice.
const SEGMENTS: usize = 6;
/// A session that has ended counts for some moments.
const SESSIONS_WITHIN: Duration = Duration::from_secs(10);
/// Their number is asked again after this time.
const POLL: Duration = Duration::from_millis(5);
/// A slice looks after this time whether the user wants it to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

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
        let method = ServerSetting {
            name: "wal_sync_method".to_owned(),
            scope: SettingScope::Reload,
            words: None,
        };
        self.change(&method, &load.method, stop)?;
        let before = self.wal_counters(&mut session)?;
        let mut result = if load.by_pgbench {
            let printed = run_pgbench(self, load, time, stop, progress)?;
            LoadResult {
                commits: printed.commits,
                rate: printed.rate,
                ..LoadResult::default()
            }
        } else {
            let sessions = self.sessions(load, stop)?;
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

    /// Sessions that are ready to insert. Each has inserted once.
    fn sessions(
        &self,
        load: &CommitLoad,
        stop: &StopCheck,
    ) -> Result<Vec<(PostgresClient, PreparedRun)>, PostgresError> {
        let mut sessions = Vec::new();
        for _ in 0..load.clients {
            let mut session = self.connect(stop)?;
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

/// A session reports its counters when it ends.
fn wait_for_end_of_sessions(session: &mut PostgresClient) -> Result<(), PostgresError> {
    let begun = Instant::now();
    let others = "SELECT count(*) FROM pg_stat_activity \
                  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    while session.value(others)? != "0" && begun.elapsed() < SESSIONS_WITHIN {
        std::thread::sleep(POLL);
    }
    Ok(())
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
            let thread = std::thread::Builder::new()
                .spawn_scoped(scope, move || {
                    if *is_complete.read().unwrap_or_else(PoisonError::into_inner) {
                        insert_until((session, insert), time, stop, count)
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
            std::thread::sleep(LOOK_EVERY.min(time));
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
fn insert_until(
    (_session, mut insert): (PostgresClient, PreparedRun),
    time: Duration,
    stop: &StopCheck,
    count: &AtomicU64,
) -> Result<LoadResult, PostgresError> {
    let cpu_before_ns = thread_cpu_ns();
    let (begin, mut elapsed) = (Instant::now(), Duration::ZERO);
    let mut result = LoadResult::default();
    while elapsed < time && !stop() {
        insert.run()?;
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

/// One row, as a separate transaction. pgbench runs the same.
pub(crate) const INSERT: &str = "INSERT INTO commits VALUES (1, now(), 'diskproof')";

/// A load of INSERTs.
#[derive(Debug, Clone)]
pub struct CommitLoad {
    /// Sessions at the same time.
    pub clients: u32,
    /// True if a commit waits until its WAL is durable.
    pub synchronous: bool,
    /// The server's wal_sync_method while it runs.
    pub method: String,
    /// True if pgbench makes the load.
    pub by_pgbench: bool,
    /// The delay of a commit that waits for others (commit_delay), in microseconds.
    pub commit_delay_us: Option<u32>,
}

/// The end of pgbench is noticed within this time.
const PGBENCH_POLL: Duration = Duration::from_millis(20);
/// Threads of pgbench; each serves several sessions.
const THREADS_MAX: u32 = 4;

/// The figures that pgbench prints at its end.
#[derive(Debug, PartialEq)]
struct PgbenchResult {
    commits: u64,
    /// Commits per second, without the time of connecting.
    rate: f64,
}

/// Runs pgbench for whole seconds, at least one.
fn run_pgbench(
    cluster: &Cluster,
    load: &CommitLoad,
    time: Duration,
    stop: &StopCheck,
    progress: &mut dyn FnMut(u64),
) -> Result<PgbenchResult, PostgresError> {
    let path = cluster.programs().path("pgbench");
    let (out, log) = (ProgramLog::new()?, ProgramLog::new()?);
    let (clients, threads) = (load.clients.to_string(), load.clients.min(THREADS_MAX));
    let synchronous = if load.synchronous { "on" } else { "off" };
    let socket_directory = inherited(cluster.data()).map_err(std::io::Error::from)?;
    let mut command = Command::new(&path);
    command
        .args(["-p", "5432", "-U", SUPER_USER, "-n", "-M", "prepared"])
        .arg("-h")
        .arg(path_of(&socket_directory))
        .current_dir("/")
        .args(["-c", &clients, "-j", &threads.to_string(), "-f", "-"])
        .args(["-T", &time.as_secs().max(1).to_string(), "postgres"])
        .env_clear()
        .env("LC_ALL", "C")
        .env("PGOPTIONS", format!("-c synchronous_commit={synchronous}"))
        .stdin(Stdio::piped())
        .stdout(out.output()?)
        .stderr(log.output()?);
    if let Some(user) = cluster.user() {
        command.uid(user.uid).gid(user.gid);
    }
    let begun = Instant::now();
    let mut program = ProgramGroup::start(&mut command)
        .map_err(|error| PostgresError::program(path.display(), error))?;
    if let Some(mut script) = program.child().stdin.take() {
        script.write_all(format!("{INSERT};\n").as_bytes())?;
    }
    let status = loop {
        if let Some(status) = program.try_wait()? {
            break status;
        }
        if stop() {
            return Err(PostgresError::Stopped);
        }
        // It prints nothing on the way; its whole time counts as progress.
        progress(begun.elapsed().min(time).as_millis() as u64);
        std::thread::sleep(PGBENCH_POLL);
    };
    if !status.success() {
        let why = format!("it failed ({status}){}", log.quoted());
        return Err(PostgresError::program(path.display(), why));
    }
    let text = out.text();
    read_pgbench(&text).ok_or_else(|| {
        let why = format!("it printed no rate: {}", text.trim());
        PostgresError::program(path.display(), why)
    })
}

/// Reads the figures; `None` of any other text. Before version 14 it prints the rate twice; the one
/// that counts is the one without the time of connecting.
fn read_pgbench(text: &str) -> Option<PgbenchResult> {
    let rate_line = text.lines().find(|line| {
        line.starts_with("tps =") && (line.contains("without") || line.contains("excluding"))
    })?;
    let count_line = text
        .lines()
        .find(|line| line.starts_with("number of transactions actually processed"))?;
    Some(PgbenchResult {
        commits: first_number(count_line)? as u64,
        rate: first_number(rate_line)?,
    })
}

/// The first word of a line that is a number.
fn first_number(line: &str) -> Option<f64> {
    line.split_whitespace().find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_without_connecting_is_read_from_every_version() {
        let of_15 = "number of transactions actually processed: 5210\n\
                     latency average = 0.19 ms\n\
                     tps = 5208.123 (without initial connection time)\n";
        let of_12 = "number of transactions actually processed: 5210\n\
                     tps = 5100.5 (including connections establishing)\n\
                     tps = 5208.123 (excluding connections establishing)\n";
        for text in [of_15, of_12] {
            let printed = PgbenchResult {
                commits: 5210,
                rate: 5208.123,
            };
            assert_eq!(read_pgbench(text), Some(printed));
        }
        assert_eq!(read_pgbench("nothing"), None);
    }
}
