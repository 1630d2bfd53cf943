//! Reads the counters of a server that the user runs, in a session that only reads its statistics
//! views.

use crate::client::{PostgresClient, ResultRow};
use crate::conninfo::{ConnectInfo, ServerHost, ServerPlace};
use crate::error::PostgresError;
use crate::stream::{ServerStream, StopCheck, TurnSocket};
use crate::user::become_user_of;
use diskproof_model::postgres::{MeasuredTimes, ServerCounters, ServerIo, ServerWal};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The oldest version with the views that are read: 13. Versions are numbered as in
/// server_version_num.
const VERSION_MIN: u32 = 130_000;
/// The first version with pg_stat_wal: 14.
const VERSION_WAL: u32 = 140_000;
/// The first version with pg_stat_io: 16.
const VERSION_IO: u32 = 160_000;
/// The first version with bytes and the write-ahead log in pg_stat_io: 18.
const VERSION_IO_BYTES: u32 = 180_000;
/// The longest that a server may take for the views. It takes milliseconds unless it is overloaded
/// or stopped.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The version as a number and as a text.
const VERSION: &str = "SELECT current_setting('server_version_num'), \
    split_part(current_setting('server_version'), ' ', 1)";
/// The data directory. There is no row where the role may not see it.
const DATA_DIRECTORY: &str = "SELECT setting FROM pg_settings WHERE name = 'data_directory'";
/// The directories of the tablespaces outside of the data directory.
const TABLESPACES: &str = "SELECT pg_tablespace_location(oid) FROM pg_tablespace \
    WHERE pg_tablespace_location(oid) <> ''";
/// The settings by which the server measures times; the second is NULL before version 14.
const TIMING: &str = "SELECT current_setting('track_io_timing'), \
    current_setting('track_wal_io_timing', true)";
/// The bytes of a page of tables, and of a page of the write-ahead log.
const PAGES: &str = "SELECT current_setting('block_size'), current_setting('wal_block_size')";

/// The rows of pg_stat_io. Words in capitals are replaced by columns that the server's version has.
const IO: &str = "SELECT backend_type, object, context, reads, READ_BYTES, read_time, writes, \
    WRITE_BYTES, write_time, extends, EXTEND_BYTES, fsyncs, hits, evictions FROM pg_stat_io";
/// The write-ahead log from version 18 on, whose writes and syncs are in pg_stat_io.
const WAL_18: &str = "SELECT wal_bytes FROM pg_stat_wal";
/// The write-ahead log from version 14 to 17.
const WAL_14: &str = "SELECT wal_bytes, wal_write, wal_sync, wal_sync_time FROM pg_stat_wal";
/// The position in the write-ahead log, the only counter of it in version 13.
const WAL_13: &str = "SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() \
    THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END, '0/0')";
/// The bytes of temporary files.
const TEMPORARY: &str = "SELECT sum(temp_bytes) FROM pg_stat_database";
/// The pages read, those found in the cache and the time of the reads, before pg_stat_io.
const DATABASES: &str = "SELECT sum(blks_read), sum(blks_hit), sum(blk_read_time) \
    FROM pg_stat_database";
/// The pages that each kind of process wrote, and the syncs of the backends, before pg_stat_io.
const WRITERS: &str = "SELECT buffers_checkpoint, buffers_clean, buffers_backend, \
    buffers_backend_fsync FROM pg_stat_bgwriter";

/// The most that one answer may count: 64 PiB. More is no counter.
const COUNTER_MAX: u64 = 1 << 56;
/// The most rows that are kept of pg_stat_io, which has about 80. Bounds what a foreign server can
/// make this program hold.
const ROWS_MAX: usize = 1000;

/// The facts about a server that stay the same during a session.
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
    /// The version as in server_version_num: 180004 is 18.4.
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

    /// Connects to a host, by each way of TLS in turn that the settings allow. Only an error that
    /// may depend on TLS leads to the next way; the first error is then the one that is returned.
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
        let mut first_error = None;
        for mode in attempts {
            match Self::attempt(info, host, *mode, stop, deadline) {
                Ok(session) => return Ok(session),
                Err(error) if error.may_depend_on_tls() => {
                    first_error.get_or_insert(error);
                }
                Err(error) => return Err(first_error.unwrap_or(error)),
            }
        }
        Err(first_error.unwrap_or(PostgresError::TimedOut))
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
        client.set_deadline(Instant::now() + ANSWER_TIMEOUT);
        Self::describe(client, host.address_text(), is_local)
    }

    /// Reads the facts that stay the same, once when a session begins.
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
            missing: uncounted_clauses(
                version,
                ServerTiming::from_row(first_row(client.query(TIMING)?)),
            ),
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
        self.client.set_deadline(Instant::now() + ANSWER_TIMEOUT);
        let timing = ServerTiming::from_row(first_row(self.client.query(TIMING)?));
        let io = if self.version >= VERSION_IO {
            self.read_io(timing)?
        } else {
            self.read_io_before_16(timing)?
        };
        let wal = self.read_wal(&io, timing)?;
        let [temp_bytes] = first_numbers(self.client.query(TEMPORARY)?);
        Ok(ServerCounters {
            io: io.into_iter().filter(|row| !row.is_idle()).collect(),
            wal,
            temp_bytes,
            page_bytes: Some(self.page_bytes).filter(|bytes| *bytes > 0),
            timed: MeasuredTimes {
                io: timing.io == Timing::On,
                wal: timing.wal == Timing::On,
            },
        })
    }

    /// The rows of pg_stat_io. Times that the server does not measure are unknown instead of 0.
    fn read_io(&mut self, timing: ServerTiming) -> Result<Vec<ServerIo>, PostgresError> {
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
            let timing_of_row = if io.is_wal() { timing.wal } else { timing.io };
            if timing_of_row == Timing::Off {
                io.read_ns = None;
                io.write_ns = None;
            }
            rows.push(io);
        }
        Ok(rows)
    }

    /// The same counters before pg_stat_io: they are apart for each kind of process that wrote, but
    /// not for each that read.
    fn read_io_before_16(&mut self, timing: ServerTiming) -> Result<Vec<ServerIo>, PostgresError> {
        let [read, hits, read_ms] = first_row(self.client.query(DATABASES)?);
        let [checkpointer, cleaner, backends, fsyncs] = first_numbers(self.client.query(WRITERS)?);
        let reads = number_of(read.as_ref());
        Ok(vec![
            self.written_pages("checkpointer", checkpointer),
            self.written_pages("background writer", cleaner),
            ServerIo {
                read_ops: reads,
                read_bytes: bytes_of(reads, self.page_bytes),
                read_ns: timing.io.time_ns(read_ms.as_deref()),
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

    /// The counters of the write-ahead log. From version 18 on they are those of pg_stat_io, in
    /// `io`.
    fn read_wal(
        &mut self,
        io: &[ServerIo],
        timing: ServerTiming,
    ) -> Result<ServerWal, PostgresError> {
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
                sync_ns: timing.wal.time_ns(sync_ms.as_deref()),
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

/// The first counters of the first row; 0 for those that are not there.
fn first_numbers<const N: usize>(rows: Vec<ResultRow>) -> [u64; N] {
    first_row(rows).map(|value| number_of(value.as_ref()))
}

/// A counter; 0 of NULL and of what is no number.
fn number_of(value: Option<&String>) -> u64 {
    match value {
        Some(text) => text.parse().unwrap_or(0).min(COUNTER_MAX),
        None => 0,
    }
}

fn bytes_of(pages: u64, page_bytes: u64) -> u64 {
    pages.saturating_mul(page_bytes).min(COUNTER_MAX)
}

/// The state of a setting by which the server measures times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timing {
    On,
    /// The server's times stay 0, and mean nothing.
    Off,
}

impl Timing {
    /// The state by the value of the setting. It is off where `value` is `None`, in a version of
    /// the server that does not have the setting.
    fn from_setting(value: Option<&str>) -> Self {
        match value {
            Some("on") => Self::On,
            _ => Self::Off,
        }
    }

    /// A time that the server gives in milliseconds, in nanoseconds; `None` where it is off.
    fn time_ns(self, ms: Option<&str>) -> Option<u64> {
        match self {
            Self::On => ns_of(ms?),
            Self::Off => None,
        }
    }
}

/// The times that a server measures.
#[derive(Debug, Clone, Copy)]
struct ServerTiming {
    /// track_io_timing: reads and writes of tables.
    io: Timing,
    /// track_wal_io_timing: writes and syncs of the write-ahead log.
    wal: Timing,
}

impl ServerTiming {
    /// From the row of [`TIMING`].
    fn from_row([io, wal]: [Option<String>; 2]) -> Self {
        Self {
            io: Timing::from_setting(io.as_deref()),
            wal: Timing::from_setting(wal.as_deref()),
        }
    }
}

/// Converts milliseconds to nanoseconds; `None` of a text that is no finite number.
fn ns_of(text: &str) -> Option<u64> {
    let ms: f64 = text.parse().ok()?;
    if ms.is_finite() {
        Some((ms.max(0.0) * 1e6) as u64)
    } else {
        None
    }
}

/// A row of [`IO`]; `None` where one of its names is NULL.
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
fn uncounted_clauses(version: u32, timing: ServerTiming) -> Vec<String> {
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
    if timing.io == Timing::Off {
        clauses.push("track_io_timing is off: the times of reads and writes are unknown");
    }
    if has_own_wal_timing && timing.wal == Timing::Off {
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
        let off = || ServerTiming::from_row([Some("off".to_owned()), None]);
        let on = || ServerTiming::from_row([Some("on".to_owned()), Some("on".to_owned())]);
        let text = |version, timing| uncounted_clauses(version, timing).join("; ");
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
