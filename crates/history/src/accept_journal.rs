//! The state of an acceptance test, in a file beside the history, so that a test of a day that was
//! killed goes on. The name of the file follows from the disk. It is synced: after a power cut it
//! must not be older than it says.

use crate::error::{HistoryError, WithPath as _, folder_of};
use crate::journal::{new_file, remove_if_there};
use crate::place::{HistoryPlace, open_own, with_suffix};
use diskproof_model::limits::DOCUMENT_BYTES_MAX;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Follows the name of the history; the id of the device comes behind it. Part of a file's name, so
/// a change loses the tests that were killed before it.
const INFIX: &str = ".accept-";
/// Ends the name of the file that takes the journal's place once it is complete.
const NEXT: &str = ".next";

/// The journal of the acceptance test of a disk.
#[derive(Debug)]
pub struct AcceptJournal {
    path: PathBuf,
}

impl AcceptJournal {
    /// The journal of the disk of this name, which has letters, digits, `-` and `_` only.
    pub fn for_disk(place: &HistoryPlace, disk_name: &str) -> Result<Self, HistoryError> {
        let path = with_suffix(&place.resolved()?, &format!("{INFIX}{disk_name}.json"));
        Ok(Self { path })
    }

    /// The file, which need not exist.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text that was written last; `None` where there is no journal. Of damaged bytes it has
    /// replacement characters, which no test has written. A file that is longer than a document may
    /// be is cut, and so no document either.
    pub fn read(&self) -> Result<Option<String>, HistoryError> {
        let Some(file) = open_own(&self.path, File::options().read(true))? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        file.take(DOCUMENT_BYTES_MAX as u64)
            .read_to_end(&mut bytes)
            .with_path(&self.path)?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Replaces the text of the journal. Where that fails before the rename, the journal holds the
    /// text before it; where it fails after it, the new text may not be durable.
    pub fn replace(&self, text: &str) -> Result<(), HistoryError> {
        if let Err(error) = self.write_and_rename(text) {
            // The error of the write says why. A part of the text is of no use.
            let _ = remove_if_there(&with_suffix(&self.path, NEXT));
            return Err(HistoryError::kernel(&self.path, error));
        }
        Ok(())
    }

    fn write_and_rename(&self, text: &str) -> io::Result<()> {
        let next = with_suffix(&self.path, NEXT);
        remove_if_there(&next)?;
        let mut file = new_file(&next)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&next, &self.path)?;
        File::open(folder_of(&self.path))?.sync_all()
    }

    /// Removes the journal: the test is over, or begins anew.
    pub fn end(&self) -> Result<(), HistoryError> {
        for path in [with_suffix(&self.path, NEXT), self.path.clone()] {
            remove_if_there(&path).with_path(&path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Folders;

    #[test]
    fn accept_journal_keeps_the_last_text_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let place = HistoryPlace {
            path: folder.path().join("history.db"),
            folders: Folders::Expected,
        };
        let journal = AcceptJournal::for_disk(&place, "S1-1000").unwrap();
        assert_eq!(journal.read().unwrap(), None);
        journal.replace("one").unwrap();
        journal.replace("two").unwrap();
        assert_eq!(journal.read().unwrap().as_deref(), Some("two"));
        let other = AcceptJournal::for_disk(&place, "S2-1000").unwrap();
        assert_eq!(other.read().unwrap(), None);
        std::fs::write(journal.path(), b"on\xffe").unwrap();
        assert_eq!(journal.read().unwrap().as_deref(), Some("on\u{fffd}e"));
        journal.end().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn accept_journal_that_cannot_be_replaced_holds_the_text_before() {
        let folder = tempfile::tempdir().unwrap();
        let place = HistoryPlace {
            path: folder.path().join("history.db"),
            folders: Folders::Expected,
        };
        let journal = AcceptJournal::for_disk(&place, "S1-1000").unwrap();
        journal.replace("two").unwrap();
        let next = with_suffix(journal.path(), NEXT);
        std::fs::create_dir(&next).unwrap();
        std::fs::write(next.join("kept"), "").unwrap();
        assert!(journal.replace("three").is_err());
        assert_eq!(journal.read().unwrap().as_deref(), Some("two"));
    }

    #[test]
    fn accept_journal_is_read_up_to_the_size_of_a_document() {
        let folder = tempfile::tempdir().unwrap();
        let place = HistoryPlace {
            path: folder.path().join("history.db"),
            folders: Folders::Expected,
        };
        let journal = AcceptJournal::for_disk(&place, "S1-1000").unwrap();
        journal.replace("").unwrap();
        let file = File::options().write(true).open(journal.path()).unwrap();
        file.set_len(DOCUMENT_BYTES_MAX as u64 + 1).unwrap();
        let text = journal.read().unwrap().unwrap();
        assert_eq!(text.len(), DOCUMENT_BYTES_MAX);
    }
}
