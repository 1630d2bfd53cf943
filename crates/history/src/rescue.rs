//! What can still be read of a damaged history is taken over into the new one, run by run. Only
//! reads the damaged file.

use crate::query::{Stored, inflate, unpack};
use crate::save::NewRun;
use crate::store::History;
use rusqlite::config::DbConfig;
use rusqlite::types::FromSql;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// Runs that are looked for at the most, the newest where there are more. Looking for one that is
/// not there takes microseconds.
const RUNS_MAX: i64 = 100_000;

/// Runs in one transaction, so that not each of them waits for the disk, and others need not wait
/// for all.
const SAVED_AT_ONCE: usize = 16;

/// Copies every run whose record is whole: unpacking checks a sum over it. How many there were.
pub(crate) fn rescue(damaged: &Path, history: &Path) -> usize {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let (Ok(from), Ok(mut to)) = (
        Connection::open_with_flags(damaged, flags),
        History::open_or_make(history),
    ) else {
        return 0;
    };
    // Without it SQLite reads nothing at all of a file that was cut off (lockBtree of SQLite 3.53);
    // nothing is written either way.
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
    // One by one: a scan would end at the first page that is damaged.
    let places: Vec<i64> = (1.max(last.saturating_sub(RUNS_MAX))..=last).collect();
    let groups = places.chunks(SAVED_AT_ONCE).map(|seqs| {
        seqs.iter()
            .filter_map(|seq| read(&from, *seq))
            .collect::<Vec<Stored>>()
    });
    groups
        .filter(|group| !group.is_empty())
        .map(|group| add(&mut to, &group))
        .sum()
}

fn read(from: &Connection, seq: i64) -> Option<Stored> {
    let record = unpack(&column::<Vec<u8>>(from, "record", seq)?).ok()?;
    // Its page and its label may lie elsewhere, and a record without them is still worth having.
    let page = column::<Vec<u8>>(from, "page", seq).and_then(|page| inflate(&page).ok());
    Some(Stored {
        record,
        page,
        label: column(from, "label", seq),
    })
}

fn add(to: &mut History, group: &[Stored]) -> usize {
    let runs = group.iter().map(|run| NewRun {
        record: &run.record,
        page: run.page.as_deref(),
        label: run.label.as_deref(),
    });
    to.add_all(&runs.collect::<Vec<_>>()).unwrap_or(0)
}

/// `None` where it cannot be read or is empty.
fn column<T: FromSql>(from: &Connection, name: &str, seq: i64) -> Option<T> {
    from.query_row(
        &format!("SELECT {name} FROM runs WHERE seq = ?1"),
        [seq],
        |row| row.get(0),
    )
    .ok()
}
