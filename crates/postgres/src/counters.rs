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

const VERSION: &str = "SELECT current_setting('server_version_num'), \
    split_part(current_setting('server_version'), ' ', 1)";
/// No row where the role may not see it.
const DATA_DIRECTORY: &str = "SELECT setting FROM pg_settings WHERE name = 'data_directory'";
const TABLESPACES: &str = "SELECT pg_tablespace_location(oid) FROM pg_tablespace \
    WHERE pg_tablespace_location(oid) <> ''";
const TIMING: &str = "SELECT current_setting('track_io_timing'), \
    current_setting('track_wal_io_timing', true)";
const PAGES: &str = "SELECT current_setting('block_size'), current_setting('wal_block_size')";

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

/// What one answer may count: 64 PiB. More is no counter.
const COUNTER_MAX: u64 = 1 << 56;
/// pg_stat_io has about 80 rows.
const ROWS_MAX: usize = 1000;

/// A server, as far as it stays the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedServer {
    /// Where it was reached.
    pub address: String,
    /// Its version, such as `18.4`.
    pub version: String,
    /// Whether it runs on this machine.
    pub is_local: bool,
    /// Where its data is; `None` where the role may not see it.
    pub data_directory: Option<PathBuf>,
    /// Where its tablespaces are.
    pub tablespaces: Vec<PathBuf>,
    /// What it does not count, each a clause.
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
            match Self::attempt(info, host, *mode, (stop, deadline)) {
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
        (stop, deadline): (&StopCheck, Instant),
    ) -> Result<Self, PostgresError> {
        let stream = ServerStream::open(host, deadline)?;
        let is_local = stream.is_local;
        let config = info.config(host, mode);
        let name = host.place.name();
        let tls = MakeRustlsConnect::new(info.tls.config.clone());
        let Ok(tls) = MakeTlsConnect::<TurnSocket>::make_tls_connect(&mut { tls }, &name);
        let stream = (stream, StopCheck::clone(stop));
        let logged_in = PostgresClient::log_in(stream, Some(deadline), &config, tls);
        let mut client = logged_in.map_err(|error| info.with_password_remedy(error))?;
        client.set_deadline(Instant::now() + ANSWER_WITHIN);
        Self::describe(client, host.text(), is_local)
    }

    fn describe(
        mut client: PostgresClient,
        address: String,
        is_local: bool,
    ) -> Result<Self, PostgresError> {
        let [number, text] = first_row(client.query(VERSION)?);
        let version = number.and_then(|number| number.parse().ok()).unwrap_or(0);
        let text = text.unwrap_or_default();
        if version < VERSION_MIN {
            return Err(PostgresError::TooOld(text));
        }
        let paths = |rows: Vec<ResultRow>| -> Vec<PathBuf> {
            rows.into_iter()
                .filter_map(|row| row.into_iter().next()?.map(PathBuf::from))
                .collect()
        };
        let server = WatchedServer {
            address,
            version: text,
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

    /// The server.
    pub fn server(&self) -> &WatchedServer {
        &self.server
    }

    /// All counters now. After an error the session is of no use.
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
        let has_bytes = self.version >= VERSION_IO_BYTES;
        let bytes = |name: &str| {
            if has_bytes {
                format!("{name}_bytes")
            } else {
                format!("{name}s * op_bytes")
            }
        };
        let statement = IO
            .replace("READ_BYTES", &bytes("read"))
            .replace("WRITE_BYTES", &bytes("write"))
            .replace("EXTEND_BYTES", &bytes("extend"));
        let rows = self.client.query(&statement)?.into_iter();
        let mut all: Vec<ServerIo> = rows.take(ROWS_MAX).filter_map(io_of_row).collect();
        for io in &mut all {
            let is_timed = if io.is_wal() { is_wal_timed } else { is_timed };
            if !is_timed {
                (io.read_ns, io.write_ns) = (None, None);
            }
        }
        Ok(all)
    }

    /// Processes without pg_stat_io: who wrote is known, who read is not.
    fn io_before_16(&mut self, is_timed: bool) -> Result<Vec<ServerIo>, PostgresError> {
        let [read, hits, read_ms] = first_row(self.client.query(DATABASES)?);
        let [checkpointer, cleaner, backends, fsyncs] = first_numbers(self.client.query(WRITERS)?);
        let of = |backend: &str, writes: u64| ServerIo {
            backend: backend.to_owned(),
            object: "relation".to_owned(),
            context: "normal".to_owned(),
            write_ops: writes,
            write_bytes: bytes_of(writes, self.page_bytes),
            ..ServerIo::default()
        };
        let reads = number_of(read.as_ref());
        Ok(vec![
            of("checkpointer", checkpointer),
            of("background writer", cleaner),
            ServerIo {
                read_ops: reads,
                read_bytes: bytes_of(reads, self.page_bytes),
                read_ns: read_ms.filter(|_| is_timed).and_then(|ms| ns_of(&ms)),
                fsyncs: Some(fsyncs),
                hits: Some(number_of(hits.as_ref())),
                ..of("all backends", backends)
            },
        ])
    }

    fn wal(&mut self, io: &[ServerIo], is_timed: bool) -> Result<ServerWal, PostgresError> {
        if self.version >= VERSION_IO_BYTES {
            let [generated_bytes] = first_numbers(self.client.query(WAL_18)?);
            let rows = || io.iter().filter(|row| row.is_wal());
            return Ok(ServerWal {
                generated_bytes,
                write_bytes: rows().map(ServerIo::written_bytes).sum(),
                write_ops: Some(rows().map(|row| row.write_ops).sum()),
                syncs: Some(rows().filter_map(|row| row.fsyncs).sum()),
                sync_ns: None,
            });
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
                sync_ns: sync_ms.filter(|_| is_timed).and_then(|ms| ns_of(&ms)),
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

/// The first values of the first row; `None` for those that are not there.
fn first_row<const N: usize>(rows: Vec<ResultRow>) -> [Option<String>; N] {
    let mut values = rows.into_iter().next().unwrap_or_default().into_iter();
    std::array::from_fn(|_| values.next().flatten())
}

fn first_numbers<const N: usize>(rows: Vec<ResultRow>) -> [u64; N] {
    first_row(rows).map(|value| number_of(value.as_ref()))
}

fn number_of(value: Option<&String>) -> u64 {
    let number = value.and_then(|value| value.parse().ok()).unwrap_or(0);
    COUNTER_MAX.min(number)
}

fn bytes_of(pages: u64, page_bytes: u64) -> u64 {
    pages.saturating_mul(page_bytes).min(COUNTER_MAX)
}

fn is_on(value: &Option<String>) -> bool {
    value.as_deref() == Some("on")
}

/// Milliseconds as nanoseconds.
fn ns_of(ms: &str) -> Option<u64> {
    let ms: f64 = ms.parse().ok()?;
    ms.is_finite().then_some((ms.max(0.0) * 1e6) as u64)
}

fn io_of_row(row: ResultRow) -> Option<ServerIo> {
    let mut values = row.into_iter();
    let names: [String; 3] = [values.next()??, values.next()??, values.next()??];
    let [backend, object, context] = names;
    let rest: [Option<String>; 11] = std::array::from_fn(|_| values.next().flatten());
    let count = |index: usize| number_of(rest[index].as_ref());
    let known = |index: usize| rest[index].as_ref().map(|_| count(index));
    let time = |index: usize| rest[index].as_deref().and_then(ns_of);
    Some(ServerIo {
        backend,
        object,
        context,
        read_ops: count(0),
        read_bytes: count(1),
        read_ns: time(2),
        write_ops: count(3),
        write_bytes: count(4),
        write_ns: time(5),
        extend_ops: count(6),
        extend_bytes: count(7),
        fsyncs: known(8),
        hits: known(9),
        evictions: known(10),
    })
}

/// What a server of this version and these settings does not count.
fn missing(version: u32, [io_timing, wal_timing]: [Option<String>; 2]) -> Vec<String> {
    let has_own_wal_timing = (VERSION_WAL..VERSION_IO_BYTES).contains(&version);
    let clauses = [
        (
            version < VERSION_IO,
            "before version 16 there is no pg_stat_io: the reads of all processes are one row, and \
             table syncs and evictions are unknown",
        ),
        (
            version < VERSION_WAL,
            "before version 14 there is no pg_stat_wal: writes and syncs of the WAL are unknown",
        ),
        (
            version < VERSION_IO_BYTES,
            "before version 18 the server does not count the bytes that it writes for the WAL; the \
             figure is a lower bound",
        ),
        (
            !is_on(&io_timing),
            "track_io_timing is off: the times of reads and writes are unknown",
        ),
        (
            has_own_wal_timing && !is_on(&wal_timing),
            "track_wal_io_timing is off: the time of WAL syncs is unknown",
        ),
        (
            true,
            "a statement reports its I/O when it ends; base backups, COPY files and server logs \
             are not counted",
        ),
    ];
    let missing = clauses.into_iter().filter(|(is_so, _)| *is_so);
    missing.map(|(_, clause)| clause.to_owned()).collect()
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
