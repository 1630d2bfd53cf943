//! Scans a table that is larger than the server's cache, and counts the pages that the server had
//! to read from files. The page cache is emptied of the table before the reads count. Whether the
//! reads reached a disk, the caller counts.

use crate::client::PostgresClient;
use crate::cluster::Cluster;
use crate::error::PostgresError;
use crate::stream::StopCheck;
use diskproof_device::drop_cached_pages;
use diskproof_model::postgres::TrialLoad;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// A page of the server (BLCKSZ).
pub const PAGE_BYTES: u64 = 8192;
/// The rows that are made in one statement: 16 MiB of pages. After each, the time is looked at.
const CHUNK_ROWS: u64 = 2048;
/// The fewest rows of a table that is of use: 128 MiB. Of a smaller one, much would stay in the
/// server's cache of 64 MB.
const ROWS_MIN: u64 = 16_384;
/// The rows of a bitmap heap scan: enough for any number of requests in flight. Chosen, not
/// measured.
const BITMAP_ROWS: u64 = 256;
/// The first version in which a session can have its counters published (pg_stat_force_next_flush).
const COUNTS_AT_ONCE_FROM: u32 = 15;
/// The setting default_statistics_target. With it ANALYZE samples 1500 pages, fewer than the table
/// has. Chosen, not measured.
const STATISTICS_TARGET: u64 = 5;
/// The pages that ANALYZE samples for each step of the setting (std_typanalyze in PostgreSQL's
/// src/backend/commands/analyze.c).
const PAGES_PER_STATISTICS_STEP: u64 = 300;
/// A join reads the number of keys divided by this. For that share of the rows the planner finds an
/// index too expensive with the default random_page_cost, and not with 1.1.
const JOIN_DIVISOR: u64 = 2;

/// Makes the table, before its rows. One row fills a page, so that a range of keys is as many
/// pages, in random order. The filler is cut from a text of digits at random places, so that no
/// layer below compresses it to nothing. Tables without WAL are written once; the restart at the
/// end writes their pages to the disk.
const CREATE: [&str; 7] = [
    "CREATE UNLOGGED TABLE tried (k int, filler bytea)",
    "ALTER TABLE tried ALTER filler SET STORAGE PLAIN",
    "CREATE UNLOGGED TABLE digits (pool bytea)",
    // Parts of bytes are read without the whole; of characters in UTF8 they are not.
    "ALTER TABLE digits ALTER pool SET STORAGE EXTERNAL",
    "INSERT INTO digits SELECT string_agg(md5(i::text)::bytea, '') FROM generate_series(1, 4000) i",
    "CREATE UNLOGGED TABLE numbers AS \
     SELECT i, (row_number() OVER (ORDER BY md5(i::text)))::int AS k \
     FROM generate_series(0, ROWS - 1) i",
    "CREATE INDEX ON numbers (i)",
];
/// Statements after the last row.
const FINISH: [&str; 2] = ["CREATE INDEX tried_k ON tried (k)", "VACUUM ANALYZE tried"];

/// The table that settings are tried on.
#[derive(Debug)]
pub struct TrialTable {
    /// Keys go from 1 to this number.
    keys: u64,
    /// Rows, each a page.
    rows: u64,
    /// The file of the table in the data directory.
    file: String,
    /// The next key that was not read since the page cache was emptied.
    next: Cell<u64>,
}

/// The scans of one slice, and what they read.
#[derive(Debug, Clone, Default)]
pub struct TableScans {
    /// The number of scans.
    pub scans: u64,
    /// Pages that the server read from files.
    pub pages: u64,
    /// Time of the scans alone.
    pub elapsed: Duration,
    /// The methods of the last join, as `join_methods` gives them.
    pub join: Option<String>,
}

impl Cluster {
    /// Makes the table, of at most this many bytes; a smaller one where the time is over before.
    /// `None` where it would not be larger than the server's cache.
    pub fn make_trial_table(
        &self,
        bytes_max: u64,
        time: Duration,
        stop: &StopCheck,
        progress: &mut dyn FnMut(),
    ) -> Result<Option<TrialTable>, PostgresError> {
        let (begun, keys) = (Instant::now(), bytes_max / PAGE_BYTES);
        let mut session = self.connect(stop)?;
        for statement in CREATE {
            session.query(&statement.replace("ROWS", &keys.to_string()))?;
            progress();
        }
        let mut rows = 0;
        while rows < keys && begun.elapsed() < time {
            let end = (rows + CHUNK_ROWS).min(keys);
            session.query(&format!(
                "INSERT INTO tried SELECT k, substr(pool, 1 + (random() * 100000)::int, 7000) \
                 FROM numbers, digits WHERE i >= {rows} AND i < {end}"
            ))?;
            rows = end;
            progress();
        }
        if rows < ROWS_MIN {
            return Ok(None);
        }
        for statement in FINISH {
            session.query(statement)?;
            progress();
        }
        let file = session.value("SELECT pg_relation_filepath('tried')")?;
        drop(session);
        self.restart(stop)?;
        progress();
        Ok(Some(TrialTable {
            keys,
            rows,
            file,
            next: Cell::new(1),
        }))
    }

    /// Drops the table's clean pages from the page cache; all are clean after the restart.
    fn evict(&self, table: &TrialTable) -> Result<(), PostgresError> {
        Ok(drop_cached_pages(self.data(), &table.file).map_err(std::io::Error::from)?)
    }

    /// A session for scans of one kind. A statement that takes longer than `limit` fails.
    pub fn scan_session(
        &self,
        load: TrialLoad,
        limit: Duration,
        stop: &StopCheck,
    ) -> Result<PostgresClient, PostgresError> {
        let mut session = self.connect(stop)?;
        let timeout = format!("SET statement_timeout = {}", limit.as_millis().max(1));
        let target = format!("SET default_statistics_target = {STATISTICS_TARGET}");
        let common = [
            "SET max_parallel_workers_per_gather = 0",
            "SET jit = off",
            "SET synchronize_seqscans = off",
            &timeout,
            &target,
        ];
        let of_load: &[&str] = match load {
            TrialLoad::BitmapScan => &["SET enable_seqscan = off", "SET enable_indexscan = off"],
            // A merge join reads the table by its index, too, up to the last key.
            TrialLoad::Join => &["SET enable_mergejoin = off"],
            _ => &[],
        };
        for statement in common.iter().chain(of_load) {
            session.query(statement)?;
        }
        Ok(session)
    }

    /// Scans until the time is over, once at least.
    pub fn run_scans(
        &self,
        session: &mut PostgresClient,
        table: &TrialTable,
        load: TrialLoad,
        time: Duration,
        progress: &mut dyn FnMut(),
    ) -> Result<TableScans, PostgresError> {
        let mut result = TableScans::default();
        self.evict(table)?;
        let mut pages_before = match load {
            TrialLoad::Analyze => self.table_pages_read(session)?,
            _ => None,
        };
        while result.scans == 0 || result.elapsed < time {
            let statement = self.prepare_scan(load, table, result.scans)?;
            let begun = Instant::now();
            let rows = session.query(&statement)?;
            result.elapsed += begun.elapsed();
            result.scans += 1;
            let lines: Vec<String> = rows.into_iter().flatten().flatten().collect();
            result.pages += match load {
                TrialLoad::Analyze => {
                    let pages_now = self.table_pages_read(session)?;
                    let read = match (pages_now, pages_before) {
                        (Some(now), Some(before)) => now.saturating_sub(before),
                        _ => (PAGES_PER_STATISTICS_STEP * STATISTICS_TARGET).min(table.rows),
                    };
                    pages_before = pages_now;
                    read
                }
                _ => pages_read(&lines).ok_or_else(|| {
                    PostgresError::Protocol("EXPLAIN names no buffers".to_owned())
                })?,
            };
            if load == TrialLoad::Join {
                result.join = join_methods(&lines);
            }
            progress();
        }
        Ok(result)
    }

    /// Pages of the table that the server has read from files since it started. `None` before
    /// version 15, in which a statement may be counted only after the next one.
    fn table_pages_read(&self, session: &mut PostgresClient) -> Result<Option<u64>, PostgresError> {
        if self.programs().version < COUNTS_AT_ONCE_FROM {
            return Ok(None);
        }
        session.query("SELECT pg_stat_force_next_flush()")?;
        let count = session
            .value("SELECT heap_blks_read FROM pg_statio_user_tables WHERE relname = 'tried'")?;
        Ok(count.parse().ok())
    }

    /// Returns the statement of the next scan, and moves the table's next key behind its rows.
    /// Where the scan reads pages that an earlier one has read, they are dropped from the page
    /// cache first.
    fn prepare_scan(
        &self,
        load: TrialLoad,
        table: &TrialTable,
        scans: u64,
    ) -> Result<String, PostgresError> {
        let explain = "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) SELECT count(filler)";
        let count = match load {
            TrialLoad::BitmapScan => BITMAP_ROWS,
            _ => table.keys / JOIN_DIVISOR,
        };
        let has_unread_keys = table.next.get() + count <= table.keys + 1;
        // Only bitmap scans leave the pages of the keys that follow unread.
        if scans > 0 && !(load == TrialLoad::BitmapScan && has_unread_keys) {
            self.evict(table)?;
        }
        if !has_unread_keys {
            table.next.set(1);
        }
        let from = table.next.get();
        let to = from + count - 1;
        if matches!(load, TrialLoad::BitmapScan | TrialLoad::Join) {
            table.next.set(to + 1);
        }
        Ok(match load {
            TrialLoad::BitmapScan => {
                format!("{explain} FROM tried WHERE k BETWEEN {from} AND {to}")
            }
            TrialLoad::Join => {
                format!("{explain} FROM generate_series({from}, {to}) g JOIN tried ON k = g")
            }
            TrialLoad::SequentialScan => format!("{explain} FROM tried"),
            TrialLoad::Analyze | TrialLoad::Inserts => "ANALYZE tried".to_owned(),
        })
    }
}

/// Returns the pages of tables and indexes read by a plan: those of the first node, `Buffers:
/// shared hit=7 read=256, temp read=3 written=3`, which counts those below it. Temporary files of a
/// sort or a hash are no pages of the table. `None` where the plan has no such line, or no number
/// in it.
fn pages_read(lines: &[String]) -> Option<u64> {
    let line = lines.iter().find(|line| line.contains("Buffers: "))?;
    let (_, buffers) = line.split_once("Buffers: ")?;
    for part in buffers.split(',') {
        let mut words = part.split_whitespace();
        if words.next() != Some("shared") {
            continue;
        }
        for word in words {
            if let Some(count) = word.strip_prefix("read=") {
                return count.parse().ok();
            }
        }
    }
    Some(0)
}

/// Returns the node that joins and the one that reads the table: `Nested Loop with Index Scan`.
/// `None` of a plan without a join.
fn join_methods(lines: &[String]) -> Option<String> {
    let mut join = None;
    let mut scan = None;
    for line in lines {
        let node = node_name(line);
        if join.is_none() && ["Nested Loop", "Hash Join", "Merge Join"].contains(&node) {
            join = Some(node);
        }
        // `Index Scan using tried_k on tried`
        if scan.is_none()
            && node.contains(" on tried")
            && let Some((before, _)) = node.split_once(" on ")
        {
            scan = before.split(" using ").next();
        }
    }
    match (join?, scan) {
        (join, Some(scan)) => Some(format!("{join} with {scan}")),
        (join, None) => Some(join.to_owned()),
    }
}

/// Returns the text of the node in a line of a plan, without its figures.
fn node_name(line: &str) -> &str {
    let text = line.trim().trim_start_matches("->").trim();
    text.split(" (").next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_the_way_of_a_join_are_read_from_a_plan() {
        let plan = "Aggregate (actual rows=1 loops=1)\n  Buffers: shared hit=70 read=256\n  \
                    ->  Nested Loop (actual rows=9 loops=1)\n      Buffers: shared hit=1\n        \
                    ->  Function Scan on generate_series g (actual rows=9 loops=1)\n        \
                    ->  Index Scan using tried_k on tried (actual rows=1 loops=9)\n";
        let lines: Vec<String> = plan.lines().map(str::to_owned).collect();
        assert_eq!(pages_read(&lines), Some(256));
        assert_eq!(join_methods(&lines).unwrap(), "Nested Loop with Index Scan");
        for (line, pages) in [
            ("Buffers: shared hit=7", Some(0)),
            ("Buffers: shared hit=7, temp read=3 written=3", Some(0)),
            ("Buffers: temp read=3 written=3", Some(0)),
            (
                "  Buffers: shared hit=7 read=256, temp read=3 written=3",
                Some(256),
            ),
            ("Buffers: shared read=9, local read=2", Some(9)),
            ("Buffers: shared read=many", None),
        ] {
            assert_eq!(pages_read(&[line.to_owned()]), pages, "{line}");
        }
        assert_eq!(pages_read(&[]), None);
        // Printed by PostgreSQL 15 where work_mem is small.
        for (counters, pages) in [
            ("shared hit=46 read=47, temp read=224 written=224", Some(47)),
            ("shared hit=7, temp read=12 written=12", Some(0)),
            ("temp read=12 written=12", Some(0)),
            ("shared hit=7 read=x", None),
        ] {
            assert_eq!(pages_read(&[format!("  Buffers: {counters}")]), pages);
        }
    }
}
