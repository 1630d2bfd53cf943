//! Refuses a history with a file that diskproof did not make: the database or one of the files that
//! SQLite and this crate put beside it (`X.lock`, `X-wal`, `X-shm`, `X-journal`). SQLite itself
//! replaces or deletes whatever has such a name.

use crate::error::HistoryError;
use crate::lock::read_mark;
use crate::migrations::{APPLICATION_ID, SCHEMA_VERSION};
use crate::place::{Folders, HistoryPlace, SQLITE_SUFFIXES, exists, start_of, with_suffix};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// First bytes of every SQLite file:
/// <https://www.sqlite.org/fileformat.html#the_database_header>.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Bytes of the header that hold the version of the format (`user_version`), big-endian.
const FORMAT_AT: std::ops::Range<usize> = 60..64;
/// Bytes of the header that hold the application id, big-endian.
const APPLICATION_ID_AT: std::ops::Range<usize> = 68..72;

/// The histories that this process has open, each with the number of its [`Checked`].
static OPEN: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

/// A history whose files were checked. Held while it is open: the check reads the files, and
/// closing any descriptor of a file drops all POSIX locks that this process has on it, those of
/// another thread's SQLite included (<https://www.sqlite.org/howtocorrupt.html>, 2.2). So only
/// the first of several threads checks.
#[derive(Debug)]
pub(crate) struct Checked {
    path: PathBuf,
}

impl Checked {
    /// Refuses the history if one of its files was not made by diskproof.
    pub(crate) fn new(path: &Path) -> Result<Self, HistoryError> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if !open.contains_key(path) {
            check(path)?;
        }
        *open.entry(path.to_owned()).or_default() += 1;
        Ok(Self {
            path: path.to_owned(),
        })
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&self.path) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.remove(&self.path)),
        }
    }
}

/// Checks, before anything is measured, that a run can be saved in a file that the user named
/// without changing one that diskproof did not make.
pub fn refuse_foreign(place: &HistoryPlace) -> Result<(), HistoryError> {
    if place.folders == Folders::Made {
        return Ok(());
    }
    Checked::new(&place.resolved()?).map(drop)
}

/// Checks the files of a history. A file whose header is destroyed counts as ours by the mark in
/// its lock file; the name of a file proves nothing.
pub(crate) fn check(history: &Path) -> Result<(), HistoryError> {
    // In the reverse of the order in which another process may be making them at this moment.
    let mut side_files = Vec::new();
    for suffix in SQLITE_SUFFIXES {
        let path = with_suffix(history, suffix);
        if let Some(start) = start_of(&path)? {
            side_files.push(SideFile {
                suffix,
                path,
                start,
            });
        }
    }
    let header = if exists(history)? {
        start_of(history)?
    } else {
        None
    };
    let is_marked = read_mark(history)?;
    if let Some(header) = &header
        && !is_our_header(header, is_marked)
    {
        return Err(HistoryError::Foreign(history.to_owned()));
    }
    if let Some(header) = &header {
        refuse_newer(history, header)?;
    }
    // Without a database and its mark, even a file of SQLite belongs to another program.
    let may_be_there = header.is_some() || is_marked;
    for side_file in side_files {
        if !may_be_there || !side_file.is_of_sqlite() {
            return Err(HistoryError::made_by_others(&side_file.path));
        }
    }
    Ok(())
}

/// True if the header of a database shows that diskproof made it. Where it shows no maker, the mark
/// decides.
fn is_our_header(header: &[u8], is_marked: bool) -> bool {
    if !header.starts_with(MAGIC) {
        return is_marked;
    }
    match header.get(APPLICATION_ID_AT) {
        // SQLite writes the header first, and the id with the tables.
        Some([0, 0, 0, 0]) => is_marked,
        Some(id) => *id == (APPLICATION_ID as u32).to_be_bytes(),
        None => false,
    }
}

/// Refuses a history whose header has a later format than this program knows. One whose log has it
/// is refused when it is opened.
fn refuse_newer(history: &Path, header: &[u8]) -> Result<(), HistoryError> {
    let Some(Ok(bytes)) = header.get(FORMAT_AT).map(<[u8; 4]>::try_from) else {
        return Ok(());
    };
    let found = i64::from(i32::from_be_bytes(bytes));
    if header.starts_with(MAGIC) && found > SCHEMA_VERSION {
        return Err(HistoryError::Newer {
            path: history.to_owned(),
            found,
            known: SCHEMA_VERSION,
        });
    }
    Ok(())
}

/// A file that SQLite puts beside a database.
struct SideFile {
    suffix: &'static str,
    path: PathBuf,
    /// The first bytes of the file, at most a header.
    start: Vec<u8>,
}

/// The first bytes of a write-ahead log whose checksums are little-endian.
const WAL_MAGIC_LITTLE_ENDIAN: [u8; 4] = [0x37, 0x7f, 6, 0x82];
/// The same with big-endian checksums.
const WAL_MAGIC_BIG_ENDIAN: [u8; 4] = [0x37, 0x7f, 6, 0x83];
/// The version at the start of the shared memory of a log, in the machine's byte order.
const SHM_VERSION: u32 = 3_007_000;
/// The first bytes of a rollback journal.
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

impl SideFile {
    /// True if the file begins like one that SQLite wrote
    /// (<https://www.sqlite.org/fileformat.html>, "the rollback journal", "the WAL format";
    /// <https://www.sqlite.org/walformat.html>, "the WAL-index header"). The header is zero until
    /// the first sync, and may be zero after a power cut.
    fn is_of_sqlite(&self) -> bool {
        let version_of_shm = SHM_VERSION.to_ne_bytes();
        let (magics, header_bytes): (&[&[u8]], usize) = match self.suffix {
            // The header of the log.
            "-wal" => (&[&WAL_MAGIC_LITTLE_ENDIAN, &WAL_MAGIC_BIG_ENDIAN], 32),
            // The first of the two copies of the index's header.
            "-shm" => (&[&version_of_shm], 48),
            // The magic and the number of records.
            "-journal" => (&[&JOURNAL_MAGIC], 12),
            other => unreachable!("SQLite has no file with the suffix {other}"),
        };
        let is_empty_header = self.start.iter().take(header_bytes).all(|byte| *byte == 0);
        is_empty_header || magics.iter().any(|magic| self.start.starts_with(magic))
    }
}
