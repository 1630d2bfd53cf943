//! Copies the readable runs of a damaged history to the new one. Only reads the damaged file.

use crate::add::NewRun;
use crate::query::{StoredRun, inflate, unpack};
use crate::store::History;
use rusqlite::config::DbConfig;
use rusqlite::types::FromSql;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// Most rows to look for, the newest first. Looking for a missing row takes microseconds.
const RUNS_MAX: i64 = 100_000;

/// Runs in one transaction: fewer syncs than one each, and other processes still get their turn.
const SAVED_AT_ONCE: usize = 16;

/// Copies every intact run and returns how many. zlib's checksum tells which are intact.
pub(crate) fn rescue(damaged: &Path, history: &Path) -> usize {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let (Ok(from), Ok(mut to)) = (
        Connection::open_with_flags(damaged, flags),
        History::open_or_make(history),
    ) else {
        return 0;
    };
    // Without this SQLite reads nothing of a truncated file (lockBtree of SQLite 3.53). The
    // connection is read-only either way.
    if from
        .set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)
        .is_err()
    {
        return 0;
    }
    let last = from.query_row("SELECT max(seq) FROM runs", [], |row| {
        row.get::<_, Option<i64>>(0)
    });
    let last = last.map_or(RUNS_MAX, |last| last.unwrap_or(0));
    // Row by row: a scan would end at the first damaged page.
    let rows: Vec<i64> = (1.max(last.saturating_sub(RUNS_MAX))..=last).collect();
    let mut rescued = 0;
    for group in rows.chunks(SAVED_AT_ONCE) {
        let runs: Vec<StoredRun> = group.iter().filter_map(|row| read(&from, *row)).collect();
        if !runs.is_empty() {
            rescued += add(&mut to, &runs);
        }
    }
    rescued
}

fn read(from: &Connection, seq: i64) -> Option<StoredRun> {
    let record = unpack(&column::<Vec<u8>>(from, "record", seq)?).ok()?;
    // The page and the label may be damaged where the record is not.
    let page = column::<Vec<u8>>(from, "page", seq).and_then(|page| inflate(&page).ok());
    Some(StoredRun {
        record,
        page,
        label: column(from, "label", seq),
    })
}

fn add(to: &mut History, group: &[StoredRun]) -> usize {
    let runs = group.iter().map(|run| NewRun {
        record: &run.record,
        page: run.page.as_deref(),
        label: run.label.as_deref(),
    });
    to.add_all(&runs.collect::<Vec<_>>()).unwrap_or(0)
}

/// `None` where the value cannot be read or is NULL.
fn column<T: FromSql>(from: &Connection, name: &str, seq: i64) -> Option<T> {
    from.query_row(
        &format!("SELECT {name} FROM runs WHERE seq = ?1"),
        [seq],
        |row| row.get(0),
    )
    .ok()
}
