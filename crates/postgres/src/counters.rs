//! The counters of a server that the user runs: a session that only reads its statistics views.

use crate::client::{PostgresClient, ResultRow};
use crate::conninfo::{ConnectInfo, ServerHost, ServerPlace};
use crate::error::PostgresError;
use crate::stream::{ServerStream, StopCheck, TurnSocket};
use crate::user::become_user_of;
use diskproof_model::postgres::{ServerCounters, ServerIo, ServerWal};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The oldest version with the views that are read.
const VERSION_MIN: u32 = 130_000;
/// The first with pg_stat_wal.
const VERSION_WAL: u32 = 140_000;
/// The first with pg_stat_io.
const VERSION_IO: u32 = 160_000;
/// The first with bytes and the write-ahead log in pg_stat_io.
const VERSION_IO_BYTES: u32 = 180_000;
/// A view is read within milliseconds; a server that takes longer is overloaded or stopped.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

// Facts about the server, asked once when a session begins.
const VERSION: &str = "SELECT current_setting('server_version_num'), \
    split_part(current_setting('server_version'), ' ', 1)";
/// No row where the role may not see it.
const DATA_DIRECTORY: &str = "SELECT setting FROM pg_settings WHERE name = 'data_directory'";
const TABLESPACES: &str = "SELECT pg_tablespace_location(oid) FROM pg_tablespace \
    WHERE pg_tablespace_location(oid) <> ''";
const TIMING: &str = "SELECT current_setting('track_io_timing'), \
    current_setting('track_wal_io_timing', true)";
const PAGES: &str = "SELECT current_setting('block_size'), current_setting('wal_block_size')";

// The counters. Words in capitals are replaced by what the server's version has.
const IO: &str = "SELECT backend_type, object, context, reads, READ_BYTES, read_time, writes, \
    WRITE_BYTES, write_time, extends, EXTEND_BYTES, fsyncs, hits, evictions FROM pg_stat_io";
const WAL_18: &str = "SELECT wal_bytes FROM pg_stat_wal";
const WAL_14: &str = "SELECT wal_bytes, wal_write, wal_sync, wal_sync_time FROM pg_stat_wal";
const WAL_13: &str = "SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() \
    THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END, '0/0')";
const TEMPORARY: &str = "SELECT sum(temp_bytes) FROM pg_stat_database";
const DATABASES: &str = "SELECT sum(blks_read), sum(blks_hit), sum(blk_read_time) \
    FROM pg_stat_database";
const WRITERS: &str = "SELECT buffers_checkpoint, buffers_clean, buffers_backend, \
    buffers_backend_fsync FROM pg_stat_bgwriter";

/// The most that one answer may count: 64 PiB. More is no counter.
const COUNTER_MAX: u64 = 1 << 56;
/// pg_stat_io has about 80 rows.
const ROWS_MAX: usize = 1000;

/// A server, as far as it stays the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedServer {
    /// The session reached the server here.
    pub address: String,
    /// The version of the server, such as `18.4`.
    pub version: String,
    /// True if the server runs on this machine.
    pub is_local: bool,
    /// The data directory; `None` where the role may not see it.
    pub data_directory: Option<PathBuf>,
    /// The directories of the tablespaces.
    pub tablespaces: Vec<PathBuf>,
    /// Clauses, each with something that the server does not count.
    pub missing: Vec<String>,
}

/// A session that reads counters.
#[derive(Debug)]
pub struct StatSession {
    client: PostgresClient,
    server: WatchedServer,
    version: u32,
    page_bytes: u64,
    wal_page_bytes: u64,
}

impl StatSession {
    /// Connects to the first host that answers. A thread of root becomes the user of the role for a
    /// Unix socket, and stays it: call it in a separate thread.
    pub fn connect(info: &ConnectInfo, stop: &StopCheck) -> Result<Self, PostgresError> {
        if info.uses_socket() {
            become_user_of(&info.user);
        }
        let mut last = PostgresError::TimedOut;
        for host in &info.hosts {
            match Self::connect_to(info, host, stop) {
                Ok(session) => return Ok(session),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn connect_to(
        info: &ConnectInfo,
        host: &ServerHost,
        stop: &StopCheck,
    ) -> Result<Self, PostgresError> {
        let deadline = Instant::now() + info.connect_within;
        let attempts = match host.place {
            ServerPlace::Socket { .. } => &[SslMode::Disable],
            ServerPlace::Address { .. } => info.tls.attempts,
        };
        let mut first = None;
        for mode in attempts {
            match Self::attempt(info, host, *mode, stop, deadline) {
                Ok(session) => return Ok(session),
                Err(error) if error.is_of_encryption() => first.get_or_insert(error),
                Err(error) => return Err(first.unwrap_or(error)),
            };
        }
        Err(first.unwrap_or(PostgresError::TimedOut))
    }

    fn attempt(
        info: &ConnectInfo,
        host: &ServerHost,
        mode: SslMode,
        stop: &StopCheck,
        deadline: Instant,
    ) -> Result<Self, PostgresError> {
        let stream = ServerStream::open(host, deadline)?;
        let is_local = stream.is_local;
        let config = info.config(host, mode);
        let name = host.place.name();
        let mut connector = MakeRustlsConnect::new(info.tls.config.clone());
        let Ok(tls) = MakeTlsConnect::<TurnSocket>::make_tls_connect(&mut connector, &name);
        let stop = StopCheck::clone(stop);
        let mut client = PostgresClient::log_in(stream, stop, Some(deadline), &config, tls)
            .map_err(|error| info.with_password_remedy(error))?;
        client.set_deadline(Instant::now() + ANSWER_WITHIN);
        Self::describe(client, host.text(), is_local)
    }

    fn describe(
        mut client: PostgresClient,
        address: String,
        is_local: bool,
    ) -> Result<Self, PostgresError> {
        let [number, name] = first_row(client.query(VERSION)?);
        let version = number.unwrap_or_default().parse().unwrap_or(0);
        let version_name = name.unwrap_or_default();
        if version < VERSION_MIN {
            return Err(PostgresError::TooOld(version_name));
        }
        let server = WatchedServer {
            address,
            version: version_name,
            is_local,
            data_directory: paths(client.query(DATA_DIRECTORY)?).into_iter().next(),
            tablespaces: paths(client.query(TABLESPACES)?),
            missing: missing(version, first_row(client.query(TIMING)?)),
        };
        let [page_bytes, wal_page_bytes] = first_numbers(client.query(PAGES)?);
        Ok(Self {
            client,
            server,
            version,
            page_bytes,
            wal_page_bytes,
        })
    }

    /// The server as it was when the session began.
    pub fn server(&self) -> &WatchedServer {
        &self.server
    }

    /// Reads all counters. After an error the session is of no use.
    pub fn read(&mut self) -> Result<ServerCounters, PostgresError> {
        self.client.set_deadline(Instant::now() + ANSWER_WITHIN);
        let [io_timing, wal_timing] = first_row(self.client.query(TIMING)?);
        let (is_io_timed, is_wal_timed) = (is_on(&io_timing), is_on(&wal_timing));
        let io = if self.version >= VERSION_IO {
            self.io(is_io_timed, is_wal_timed)?
        } else {
            self.io_before_16(is_io_timed)?
        };
        let wal = self.wal(&io, is_wal_timed)?;
        let [temp_bytes] = first_numbers(self.client.query(TEMPORARY)?);
        Ok(ServerCounters {
            io: io.into_iter().filter(|row| !row.is_idle()).collect(),
            wal,
            temp_bytes,
        })
    }

    fn io(&mut self, is_timed: bool, is_wal_timed: bool) -> Result<Vec<ServerIo>, PostgresError> {
        let [read_bytes, write_bytes, extend_bytes] = if self.version >= VERSION_IO_BYTES {
            ["read_bytes", "write_bytes", "extend_bytes"]
        } else {
            [
                "reads * op_bytes",
                "writes * op_bytes",
                "extends * op_bytes",
            ]
        };
        let statement = IO
            .replace("READ_BYTES", read_bytes)
            .replace("WRITE_BYTES", write_bytes)
            .replace("EXTEND_BYTES", extend_bytes);
        let mut rows = Vec::new();
        for row in self.client.query(&statement)?.into_iter().take(ROWS_MAX) {
            let Some(mut io) = io_of_row(row) else {
                continue;
            };
            let has_times = if io.is_wal() { is_wal_timed } else { is_timed };
            if !has_times {
                io.read_ns = None;
                io.write_ns = None;
            }
            rows.push(io);
        }
        Ok(rows)
    }

    /// Processes without pg_stat_io: who wrote is known, who read is not.
    fn io_before_16(&mut self, is_timed: bool) -> Result<Vec<ServerIo>, PostgresError> {
        let [read, hits, read_ms] = first_row(self.client.query(DATABASES)?);
        let [checkpointer, cleaner, backends, fsyncs] = first_numbers(self.client.query(WRITERS)?);
        let reads = number_of(read.as_ref());
        Ok(vec![
            self.written_pages("checkpointer", checkpointer),
            self.written_pages("background writer", cleaner),
            ServerIo {
                read_ops: reads,
                read_bytes: bytes_of(reads, self.page_bytes),
                read_ns: time_ns(read_ms.as_deref(), is_timed),
                fsyncs: Some(fsyncs),
                hits: Some(number_of(hits.as_ref())),
                ..self.written_pages("all backends", backends)
            },
        ])
    }

    /// The row of a process that has written so many pages of tables.
    fn written_pages(&self, backend: &str, pages: u64) -> ServerIo {
        ServerIo {
            backend: backend.to_owned(),
            object: "relation".to_owned(),
            context: "normal".to_owned(),
            write_ops: pages,
            write_bytes: bytes_of(pages, self.page_bytes),
            ..ServerIo::default()
        }
    }

    fn wal(&mut self, io: &[ServerIo], is_timed: bool) -> Result<ServerWal, PostgresError> {
        if self.version >= VERSION_IO_BYTES {
            let [generated_bytes] = first_numbers(self.client.query(WAL_18)?);
            return Ok(written_wal(generated_bytes, io));
        }
        if self.version >= VERSION_WAL {
            let [generated, writes, syncs, sync_ms] = first_row(self.client.query(WAL_14)?);
            let (generated, writes) = (number_of(generated.as_ref()), number_of(writes.as_ref()));
            return Ok(ServerWal {
                generated_bytes: generated,
                // Each write is at least a page.
                write_bytes: bytes_of(writes, self.wal_page_bytes),
                write_ops: Some(writes),
                syncs: Some(number_of(syncs.as_ref())),
                sync_ns: time_ns(sync_ms.as_deref(), is_timed),
            });
        }
        let [bytes] = first_numbers(self.client.query(WAL_13)?);
        Ok(ServerWal {
            generated_bytes: bytes,
            write_bytes: bytes,
            ..ServerWal::default()
        })
    }
}

/// The WAL as the rows of pg_stat_io count it.
fn written_wal(generated_bytes: u64, io: &[ServerIo]) -> ServerWal {
    let (mut write_bytes, mut write_ops, mut syncs) = (0, 0, 0);
    for row in io {
        if row.is_wal() {
            write_bytes += row.written_bytes();
            write_ops += row.write_ops;
            syncs += row.fsyncs.unwrap_or(0);
        }
    }
    ServerWal {
        generated_bytes,
        write_bytes,
        write_ops: Some(write_ops),
        syncs: Some(syncs),
        sync_ns: None,
    }
}

/// The first value of each row; NULL is no path.
fn paths(rows: Vec<ResultRow>) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for row in rows {
        if let Some(Some(path)) = row.into_iter().next() {
            paths.push(PathBuf::from(path));
        }
    }
    paths
}

/// The first values of the first row; `None` for those that are not there.
fn first_row<const N: usize>(rows: Vec<ResultRow>) -> [Option<String>; N] {
    let mut values = rows.into_iter().next().unwrap_or_default().into_iter();
    std::array::from_fn(|_| values.next().flatten())
}

fn first_numbers<const N: usize>(rows: Vec<ResultRow>) -> [u64; N] {
    first_row(rows).map(|value| number_of(value.as_ref()))
}

fn number_of(value: Option<&String>) -> u64 {
    match value {
        Some(text) => text.parse().unwrap_or(0).min(COUNTER_MAX),
        None => 0,
    }
}

fn bytes_of(pages: u64, page_bytes: u64) -> u64 {
    pages.saturating_mul(page_bytes).min(COUNTER_MAX)
}

fn is_on(value: &Option<String>) -> bool {
    value.as_deref() == Some("on")
}

/// Milliseconds as nanoseconds; `None` where the server does not measure them.
fn time_ns(ms: Option<&str>, is_timed: bool) -> Option<u64> {
    if is_timed { ns_of(ms?) } else { None }
}

/// Reads milliseconds, and returns nanoseconds.
fn ns_of(text: &str) -> Option<u64> {
    let ms: f64 = text.parse().ok()?;
    if ms.is_finite() {
        Some((ms.max(0.0) * 1e6) as u64)
    } else {
        None
    }
}

fn io_of_row(row: ResultRow) -> Option<ServerIo> {
    let mut values = row.into_iter();
    let names: [String; 3] = [values.next()??, values.next()??, values.next()??];
    let [backend, object, context] = names;
    let counters: [Option<String>; 11] = std::array::from_fn(|_| values.next().flatten());
    let [
        reads,
        read_bytes,
        read_ms,
        writes,
        write_bytes,
        write_ms,
        extends,
        extend_bytes,
        fsyncs,
        hits,
        evictions,
    ] = counters.each_ref().map(Option::as_ref);
    Some(ServerIo {
        backend,
        object,
        context,
        read_ops: number_of(reads),
        read_bytes: number_of(read_bytes),
        read_ns: read_ms.and_then(|ms| ns_of(ms)),
        write_ops: number_of(writes),
        write_bytes: number_of(write_bytes),
        write_ns: write_ms.and_then(|ms| ns_of(ms)),
        extend_ops: number_of(extends),
        extend_bytes: number_of(extend_bytes),
        fsyncs: counted(fsyncs),
        hits: counted(hits),
        evictions: counted(evictions),
    })
}

/// A counter that NULL leaves unknown.
fn counted(value: Option<&String>) -> Option<u64> {
    value.map(|value| number_of(Some(value)))
}

/// Clauses with what a server of this version and these settings does not count.
fn missing(version: u32, [io_timing, wal_timing]: [Option<String>; 2]) -> Vec<String> {
    let has_own_wal_timing = (VERSION_WAL..VERSION_IO_BYTES).contains(&version);
    let mut clauses = Vec::new();
    if version < VERSION_IO {
        clauses.push(
            "before version 16 there is no pg_stat_io: the reads of all processes are one row, and \
             table syncs and evictions are unknown",
        );
    }
    if version < VERSION_WAL {
        clauses.push(
            "before version 14 there is no pg_stat_wal: writes and syncs of the WAL are unknown",
        );
    }
    if version < VERSION_IO_BYTES {
        clauses.push(
            "before version 18 the server does not count the bytes that it writes for the WAL; the \
             figure is a lower bound",
        );
    }
    if !is_on(&io_timing) {
        clauses.push("track_io_timing is off: the times of reads and writes are unknown");
    }
    if has_own_wal_timing && !is_on(&wal_timing) {
        clauses.push("track_wal_io_timing is off: the time of WAL syncs is unknown");
    }
    clauses.push(
        "a statement reports its I/O when it ends; base backups, COPY files and server logs are \
         not counted",
    );
    clauses.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[&str]) -> ResultRow {
        let value = |value: &&str| (*value != "NULL").then(|| (*value).to_owned());
        values.iter().map(value).collect()
    }

    #[test]
    fn row_of_pg_stat_io_is_read_with_its_nulls() {
        let text = "client_backend relation normal 10 81920 2.5 3 24576 0 NULL NULL NULL 900 7";
        let values: Vec<&str> = text.split(' ').collect();
        let io = io_of_row(row(&values)).unwrap();
        assert_eq!(io.read_ops, 10);
        assert_eq!(io.read_bytes, 81_920);
        assert_eq!(io.read_ns, Some(2_500_000));
        assert_eq!((io.extend_ops, io.fsyncs, io.hits), (0, None, Some(900)));
        assert_eq!(io.evictions, Some(7));
        assert_eq!(io_of_row(row(&["a", "NULL"])), None);
    }

    #[test]
    fn what_a_version_does_not_count_is_named() {
        let off = || [Some("off".to_owned()), None];
        let on = || [Some("on".to_owned()), Some("on".to_owned())];
        let text = |version, timing| missing(version, timing).join("; ");
        assert!(text(130_000, off()).contains("pg_stat_wal"));
        assert!(text(150_004, on()).contains("pg_stat_io"));
        assert!(text(170_000, off()).contains("track_io_timing"));
        let newest = text(180_004, on());
        for view in ["pg_stat_wal", "pg_stat_io", "track_io_timing"] {
            assert!(!newest.contains(view), "{newest}");
        }
    }

    #[test]
    fn values_that_are_no_numbers_count_as_nothing() {
        let short = first_row::<2>(vec![row(&["1"])]);
        assert_eq!(short, [Some("1".to_owned()), None]);
        assert_eq!(first_row::<1>(Vec::new()), [None]);
        assert_eq!((number_of(Some(&"x".to_owned())), ns_of("NaN")), (0, None));
    }
}
