//! Which files a history may use: the database and the files that SQLite and this crate put beside
//! it (`X.lock`, `X-wal`, `X-shm`, `X-journal`). All of them must be files that diskproof made.
//! SQLite itself replaces or deletes whatever has such a name.

use crate::error::HistoryError;
use crate::lock::read_mark;
use crate::migrations::APPLICATION_ID;
use crate::place::{Folders, HistoryPlace, exists, with_suffix};
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// First bytes of every SQLite file, and the length of its header:
/// <https://www.sqlite.org/fileformat.html#the_database_header>.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const HEADER_BYTES: u64 = 100;
/// Where the header holds the application id, big-endian.
const APPLICATION_ID_AT: std::ops::Range<usize> = 68..72;
/// The files that SQLite puts beside a database.
const SQLITE_SUFFIXES: [&str; 3] = ["-journal", "-shm", "-wal"];

/// The histories that this process has open, and how often.
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
    let sides = SQLITE_SUFFIXES.map(|suffix| with_suffix(history, suffix));
    let [journal, shm, wal] = sides.each_ref().map(|path| start_of(path));
    let starts = [journal?, shm?, wal?];
    let header = match exists(history)? {
        true => start_of(history)?,
        false => None,
    };
    let is_marked = read_mark(history)?;
    let is_ours = header
        .as_ref()
        .map(|header| match header.strip_prefix(MAGIC) {
            Some(_) => match header.get(APPLICATION_ID_AT) {
                // SQLite writes the header first, and the id with the tables.
                Some([0, 0, 0, 0]) => is_marked,
                id => id == Some(&(APPLICATION_ID as u32).to_be_bytes()),
            },
            None => is_marked,
        });
    if is_ours == Some(false) {
        return Err(HistoryError::Foreign {
            path: history.to_owned(),
        });
    }
    // Without a database and its mark, even a file of SQLite belongs to another program.
    let may_be_there = is_ours.is_some() || is_marked;
    for ((path, suffix), start) in sides.into_iter().zip(SQLITE_SUFFIXES).zip(starts) {
        if start.is_some_and(|start| !may_be_there || !is_of_sqlite(suffix, &start)) {
            return Err(HistoryError::NotOurs {
                path,
                why: "exists, but was not made by diskproof",
            });
        }
    }
    Ok(())
}

/// The first bytes of a file of the history; `None` where there is no file.
pub(crate) fn start_of(path: &Path) -> Result<Option<Vec<u8>>, HistoryError> {
    let Some(file) = open_own(path, File::options().read(true))? else {
        return Ok(None);
    };
    let mut start = Vec::new();
    file.take(HEADER_BYTES)
        .read_to_end(&mut start)
        .map_err(|error| HistoryError::kernel(path, error))?;
    Ok(Some(start))
}

/// Opens a file of the history; `None` where there is none. Refuses a symlink, and everything but
/// a regular file of this user with one name.
pub(crate) fn open_own(
    path: &Path,
    options: &std::fs::OpenOptions,
) -> Result<Option<File>, HistoryError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match options
        .clone()
        .custom_flags(flags.bits().cast_signed())
        .open(path)
    {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(HistoryError::NotOurs {
                path: path.to_owned(),
                why: "is a symbolic link",
            });
        }
        result => result.map_err(|error| HistoryError::kernel(path, error))?,
    };
    let facts = file
        .metadata()
        .map_err(|error| HistoryError::kernel(path, error))?;
    match why_foreign(&facts) {
        None => Ok(Some(file)),
        Some(why) => Err(HistoryError::NotOurs {
            path: path.to_owned(),
            why,
        }),
    }
}

fn why_foreign(facts: &Metadata) -> Option<&'static str> {
    if !facts.is_file() {
        return Some("is not a regular file");
    }
    if facts.uid() != geteuid().as_raw() {
        return Some("belongs to another user");
    }
    (facts.nlink() > 1).then_some("has more than one name (hard links)")
}

/// Whether SQLite wrote the file (<https://www.sqlite.org/fileformat.html>, "the rollback journal",
/// "the WAL format"; <https://www.sqlite.org/walformat.html>, "the WAL-index header"). Its header is
/// zero until the first sync, and may be zero after a power cut.
fn is_of_sqlite(suffix: &str, start: &[u8]) -> bool {
    let (magics, header_bytes): (&[&[u8]], usize) = match suffix {
        "-wal" => (&[&[0x37, 0x7f, 6, 0x82], &[0x37, 0x7f, 6, 0x83]], 32),
        "-shm" => (&[&3_007_000_u32.to_ne_bytes()], 48),
        // The magic and the number of records.
        _ => (&[&[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]], 12),
    };
    magics.iter().any(|magic| start.starts_with(magic))
        || start.iter().take(header_bytes).all(|byte| *byte == 0)
}
