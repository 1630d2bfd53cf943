//! What a run has measured so far, in files beside the history. A run that is killed leaves them
//! behind, and the next reader of the history makes a partial run of them. Nothing is synced: a
//! power cut may take the journal, a kill does not.

use crate::error::{HistoryError, WithPath as _, folder_of};
use crate::place::{HistoryPlace, open_own, with_suffix};
use diskproof_model::document::DocumentError;
use diskproof_model::limits::DOCUMENT_BYTES_MAX;
use diskproof_model::record::Record;
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Follows the name of the history in the names of its journals; the id of the run comes behind it.
/// Other versions of the program look for these names: a change of one of them, or of the ends
/// below, leaves the journals of killed runs unread.
const INFIX: &str = ".run-";
/// Ends the name of the file that the run holds locked: a free lock shows that it was killed. The
/// file holds the label that the run is to have.
const LOCK: &str = ".lock";
/// Ends the name of the lock's file until it is locked.
const NEW_LOCK: &str = ".lock-new";
/// Ends the name of the file with the record so far.
const RECORD: &str = ".json";
/// Ends the name of the file that takes the record's place once it is complete.
const NEXT: &str = ".next";
/// No more of a label is read: a power cut may leave any bytes. A label of a user is far shorter.
const LABEL_BYTES_MAX: u64 = 4096;

/// The journal of a run. Its lock is held until the process ends.
#[derive(Debug)]
pub struct Journal {
    /// The paths of its files without their ends.
    base: PathBuf,
    _lock: File,
}

/// A run that did not come to its end.
#[derive(Debug)]
pub struct LeftRun {
    /// The id of the run.
    pub run_id: String,
    /// The label that its user gave it.
    pub label: Option<String>,
    /// The journal keeps what the run had measured.
    pub measured: LeftRecord,
    journal: Journal,
}

/// The record of a run that was killed, as far as it was written.
#[derive(Debug)]
pub enum LeftRecord {
    /// No slice had ended, so that there are no results.
    Nothing,
    /// The record contains the results up to the last slice that ended.
    Record(Box<Record>),
    /// The journal cannot be read, by this program at least.
    Unreadable(DocumentError),
}

impl Journal {
    /// Begins the journal of the run with this id and label. Its lock is taken before it gets the
    /// name by which other processes find it: to them a free lock means that the run was killed.
    pub fn start(
        place: &HistoryPlace,
        run_id: &str,
        label: Option<&str>,
    ) -> Result<Self, HistoryError> {
        let base = with_suffix(&place.resolved()?, &format!("{INFIX}{run_id}"));
        let path = with_suffix(&base, LOCK);
        let unnamed = with_suffix(&base, NEW_LOCK);
        let lock = new_file(&unnamed).with_path(&unnamed)?;
        let written_label = label.unwrap_or_default();
        let begun = (&lock)
            .write_all(written_label.as_bytes())
            .with_path(&unnamed)
            .and_then(|()| lock_and_rename(&lock, &unnamed, &path));
        if let Err(error) = begun {
            // The first error is the one that matters.
            let _ = std::fs::remove_file(&unnamed);
            return Err(error);
        }
        Ok(Self { base, _lock: lock })
    }

    /// Replaces the record in the journal. Where that fails, the journal holds the record before
    /// it.
    pub fn keep(&self, record: &Record) -> Result<(), HistoryError> {
        let next = with_suffix(&self.base, NEXT);
        let replaced = self.replace_record(&next, record);
        if replaced.is_err() {
            // The error of the write says why. A part of the record is of no use.
            let _ = remove_if_there(&next);
        }
        replaced.with_path(&next)
    }

    /// Leaves the record of a run that could not be saved to the next reader of the history. A
    /// journal that holds nothing is removed.
    pub fn leave(&self, record: &Record) -> Result<(), HistoryError> {
        let kept = self.keep(record);
        if self.kept_file().is_none() {
            self.end()?;
        }
        kept
    }

    /// The file with what was measured; `None` where the journal holds nothing.
    pub fn kept_file(&self) -> Option<PathBuf> {
        let path = with_suffix(&self.base, RECORD);
        if path.exists() { Some(path) } else { None }
    }

    /// Writes the record to the file `next`, which then takes the place of the last one. A record
    /// that no reader would take is an error.
    fn replace_record(&self, next: &Path, record: &Record) -> io::Result<()> {
        remove_if_there(next)?;
        let mut file = BufWriter::new(new_file(next)?);
        serde_json::to_writer(&mut file, record)?;
        file.flush()?;
        if file.get_ref().metadata()?.len() > DOCUMENT_BYTES_MAX as u64 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        std::fs::rename(next, with_suffix(&self.base, RECORD))
    }

    /// Removes the journal: the run is in the history, or is not to be there.
    pub fn end(&self) -> Result<(), HistoryError> {
        // The lock goes last: without it nobody would find the other files.
        for end in [NEXT, RECORD, LOCK] {
            let path = with_suffix(&self.base, end);
            remove_if_there(&path).with_path(&path)?;
        }
        Ok(())
    }

    /// Takes over what a run that was killed has left here; `None` where the run goes on, or
    /// another process has just taken it over.
    fn take_over(base: PathBuf, run_id: String) -> Result<Option<LeftRun>, HistoryError> {
        let path = with_suffix(&base, LOCK);
        let Some(lock) = open_lock(&path)? else {
            return Ok(None);
        };
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(HistoryError::kernel(&path, error)),
        }
        // The lock became free, too, when the other process had removed the journal.
        if !is_still_named(&lock, &path).with_path(&path)? {
            return Ok(None);
        }
        let measured = read_record(&with_suffix(&base, RECORD))?;
        let label = read_label(&lock);
        let journal = Self { base, _lock: lock };
        Ok(Some(LeftRun {
            run_id,
            label,
            measured,
            journal,
        }))
    }
}

impl LeftRun {
    /// The file with what the run had measured, which need not exist.
    pub fn path(&self) -> PathBuf {
        with_suffix(&self.journal.base, RECORD)
    }

    /// Removes what was left: the run is in the history now.
    pub fn end(&self) -> Result<(), HistoryError> {
        self.journal.end()
    }
}

/// Opens a lock; `None` where there is none. NFSv4 gives an exclusive one only to a file that is
/// open for writing. A filesystem that is mounted read-only has locks as well.
fn open_lock(path: &Path) -> Result<Option<File>, HistoryError> {
    match open_own(path, File::options().read(true).write(true)) {
        Err(HistoryError::Unreachable { source, .. })
            if source.kind() == io::ErrorKind::ReadOnlyFilesystem =>
        {
            open_own(path, File::options().read(true))
        }
        opened => opened,
    }
}

/// Locks a new file, then gives it the name of a lock.
fn lock_and_rename(lock: &File, unnamed: &Path, path: &Path) -> Result<(), HistoryError> {
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(HistoryError::Busy(unnamed.to_owned())),
        Err(TryLockError::Error(error)) => return Err(HistoryError::kernel(unnamed, error)),
    }
    std::fs::rename(unnamed, path).with_path(path)
}

/// The journals that lie beside a history.
#[derive(Debug, Default)]
pub struct LeftRuns {
    /// Those of runs that were killed or could not be saved.
    pub runs: Vec<LeftRun>,
    /// The errors of those that cannot be taken over.
    pub errors: Vec<HistoryError>,
}

/// The runs that were killed, whose journals lie beside this history.
pub fn runs_left_behind(place: &HistoryPlace) -> Result<LeftRuns, HistoryError> {
    let mut left = LeftRuns::default();
    if !folder_of(&place.path).is_dir() {
        return Ok(left);
    }
    let history = place.resolved()?;
    let (Some(folder), Some(history_name)) = (history.parent(), history.file_name()) else {
        return Ok(left);
    };
    let mut prefix = history_name.to_owned();
    prefix.push(INFIX);
    let entries = std::fs::read_dir(folder).with_path(folder)?;
    for entry in entries {
        let name = entry.with_path(folder)?.file_name();
        if let Some(run_id) = run_of_lock(&name, &prefix) {
            let base = with_suffix(&history, &format!("{INFIX}{run_id}"));
            match Journal::take_over(base, run_id) {
                Ok(run) => left.runs.extend(run),
                Err(error) => left.errors.push(error),
            }
        }
    }
    Ok(left)
}

/// The id of the run whose lock has this name; `None` for other files. The name of the history may
/// be any bytes.
fn run_of_lock(name: &OsStr, prefix: &OsString) -> Option<String> {
    let run_id = name
        .as_bytes()
        .strip_prefix(prefix.as_bytes())?
        .strip_suffix(LOCK.as_bytes())?;
    String::from_utf8(run_id.to_vec()).ok()
}

/// True if the path leads to the open file: nobody has removed or replaced it.
fn is_still_named(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    let named = match std::fs::symlink_metadata(path) {
        Ok(named) => named,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let is_same_device = named.dev() == opened.dev();
    let is_same_file = named.ino() == opened.ino();
    Ok(is_same_device && is_same_file)
}

/// A new file that only this user may read; an error where there is one already.
pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The label in a lock's file; `None` where there is none, or it cannot be read.
fn read_label(lock: &File) -> Option<String> {
    let mut bytes = Vec::new();
    lock.take(LABEL_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let label = String::from_utf8(bytes).ok()?;
    if label.is_empty() { None } else { Some(label) }
}

/// The record in a journal.
fn read_record(path: &Path) -> Result<LeftRecord, HistoryError> {
    let Some(file) = open_own(path, File::options().read(true))? else {
        return Ok(LeftRecord::Nothing);
    };
    let mut bytes = Vec::new();
    file.take(DOCUMENT_BYTES_MAX as u64)
        .read_to_end(&mut bytes)
        .with_path(path)?;
    // A power cut may leave any bytes; what is no text is no JSON either.
    let text = String::from_utf8_lossy(&bytes);
    Ok(match Record::from_json(&text) {
        Ok(record) => LeftRecord::Record(Box::new(record)),
        Err(error) => LeftRecord::Unreadable(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Folders;

    fn place_in(folder: &Path, name: &OsStr) -> HistoryPlace {
        HistoryPlace {
            path: folder.join(name),
            folders: Folders::Expected,
        }
    }

    #[test]
    fn journal_is_found_by_its_lock_only_after_its_run_ended() {
        let folder = tempfile::tempdir().unwrap();
        // A name may be any bytes.
        for name in [OsStr::new("history.db"), OsStr::from_bytes(b"h\xff.db")] {
            let place = place_in(folder.path(), name);
            let journal = Journal::start(&place, "1234", Some("nightly")).unwrap();
            assert!(runs_left_behind(&place).unwrap().runs.is_empty());
            // What the kernel does when a process is killed.
            drop(journal);
            let left = runs_left_behind(&place).unwrap().runs;
            assert_eq!(left.len(), 1);
            assert_eq!(left[0].run_id, "1234");
            assert_eq!(left[0].label.as_deref(), Some("nightly"));
            assert!(
                runs_left_behind(&place).unwrap().runs.is_empty(),
                "taken over"
            );
            left[0].end().unwrap();
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn journal_without_a_locked_name_yet_is_nobodys() {
        let folder = tempfile::tempdir().unwrap();
        let place = place_in(folder.path(), OsStr::new("history.db"));
        std::fs::write(folder.path().join("history.db.run-1234.lock-new"), "").unwrap();
        assert!(runs_left_behind(&place).unwrap().runs.is_empty());
    }

    #[test]
    fn lock_of_a_removed_journal_is_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let file = new_file(&path).unwrap();
        assert!(is_still_named(&file, &path).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(!is_still_named(&file, &path).unwrap());
        let _other = new_file(&path).unwrap();
        assert!(!is_still_named(&file, &path).unwrap());
    }

    #[test]
    fn journal_of_any_bytes_is_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        std::fs::write(&path, b"{\"schema\": \"\xff").unwrap();
        assert!(matches!(read_record(&path), Ok(LeftRecord::Unreadable(_))));
    }

    #[test]
    fn journal_of_another_version_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        std::fs::write(&path, "{\"schema\": \"diskproof.record/999\"}").unwrap();
        assert!(matches!(
            read_record(&path),
            Ok(LeftRecord::Unreadable(DocumentError::OtherVersion { .. }))
        ));
    }
}
