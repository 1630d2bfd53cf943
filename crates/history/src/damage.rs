//! What becomes of a damaged history: it is moved aside with everything that belongs to it, and
//! never deleted. Must be sure before it moves anything.

use crate::error::HistoryError;
use crate::lock::PlaceLock;
use crate::migrations::APPLICATION_ID;
use crate::place::exists;
use rusqlite::{Connection, OpenFlags};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// First bytes of every SQLite file, and the length of its header: <https://www.sqlite.org/fileformat.html#the_database_header>.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const HEADER_BYTES: usize = 100;
/// Where the header holds the application id, big-endian.
const APPLICATION_ID_AT: std::ops::Range<usize> = 68..72;
/// A file that is no database is moved only if its name is one of a database: `--history notes.txt`
/// is a mistake, not a damaged history.
const EXTENSIONS: [&str; 3] = ["db", "sqlite", "sqlite3"];

/// A damaged history that was moved aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Where it is now; its log and its shared memory lie beside it.
    pub path: PathBuf,
    /// What is wrong with it, in SQLite's words.
    pub what: String,
}

/// Moves the file aside if it is damaged indeed. `None` when it is not, because somebody else was
/// faster.
pub(crate) fn set_aside(path: &Path) -> Result<Option<SetAside>, HistoryError> {
    let _alone = PlaceLock::exclusive(path)?;
    if !exists(path)? {
        return Ok(None);
    }
    let Some(what) = damage(path)? else {
        return Ok(None);
    };
    may_be_moved(path)?;
    let stamp = jiff::Timestamp::now()
        .strftime("%Y%m%dT%H%M%SZ")
        .to_string();
    let aside = (0..).map(|n| {
        beside(
            path,
            &if n == 0 {
                format!(".corrupt-{stamp}")
            } else {
                format!(".corrupt-{stamp}.{n}")
            },
        )
    });
    let aside = aside
        .into_iter()
        .find(|aside| aside.symlink_metadata().is_err())
        .expect("the numbers do not end");
    // The file goes last: as long as it is there its log still belongs to it, should this be the
    // end of the program.
    for suffix in ["-journal", "-shm", "-wal", ""] {
        match std::fs::rename(beside(path, suffix), beside(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(HistoryError::kernel(path, error));
            }
            _ => {}
        }
    }
    Ok(Some(SetAside { path: aside, what }))
}

/// What is wrong with the file, looked at with fresh eyes and without changing it; an error when
/// that cannot be told now.
fn damage(path: &Path) -> Result<Option<String>, HistoryError> {
    let look = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        // The longer one also holds tables against their indexes.
        first_fault(&connection, "integrity_check")
    };
    match look().map_err(|error| HistoryError::sqlite(path, &error)) {
        Err(HistoryError::Damaged { what, .. }) => Ok(Some(what)),
        other => other,
    }
}

/// The first thing that one of SQLite's own checks finds, as one line; `None` where there is none.
pub(crate) fn first_fault(
    connection: &Connection,
    check: &str,
) -> rusqlite::Result<Option<String>> {
    let verdict: String =
        connection.query_row(&format!("PRAGMA {check}(1)"), [], |row| row.get(0))?;
    // A line in front of the fault says in which database.
    let fault = verdict
        .lines()
        .find(|line| !line.starts_with("***"))
        .unwrap_or(&verdict)
        .trim();
    Ok((fault != "ok").then(|| fault.to_owned()))
}

/// Another program's database is not moved, however damaged, nor is a file that has nothing to do
/// with databases.
fn may_be_moved(path: &Path) -> Result<(), HistoryError> {
    let mut header = Vec::with_capacity(HEADER_BYTES);
    let read =
        File::open(path).and_then(|file| file.take(HEADER_BYTES as u64).read_to_end(&mut header));
    read.map_err(|error| HistoryError::kernel(path, error))?;
    let is_database = header.starts_with(MAGIC);
    let is_ours = header
        .get(APPLICATION_ID_AT)
        .is_some_and(|id| id == (APPLICATION_ID as u32).to_be_bytes());
    let is_named_so = path
        .extension()
        .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known));
    if if is_database { is_ours } else { is_named_so } {
        Ok(())
    } else {
        Err(HistoryError::Foreign {
            path: path.to_owned(),
        })
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
