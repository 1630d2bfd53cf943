//! Names a run's files in its directory, and recognises them among anything else there. A verifier
//! of another build must find the files of a run: with other names it would take them for lost.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The name of the file that holds the pages of the region.
pub const PAGES_FILE: &str = "pages";

/// Returns the name of the small file of a slot.
pub(crate) fn file_name(slot: u32) -> String {
    format!("{FILE_PREFIX}{slot}")
}

/// The beginning of the name of a small file.
const FILE_PREFIX: &str = "file-";

/// The beginning of the name of an entry.
pub(crate) const ENTRY_PREFIX: &str = "entry-";

/// Returns the name of the entry that this write makes.
pub(crate) fn entry_name(number: u64) -> String {
    format!("{ENTRY_PREFIX}{number}")
}

/// The names that a directory of ours gives to a file before it gets its own one. A cut may leave
/// such a file (`KeptDirectory::replace_file`).
const FIRST_NAMES: [&str; 2] = ["unfinished", "trial"];

/// True if every entry of a directory is a regular file with a name that runs use, so that removing
/// the directory removes nothing else. False where it cannot be read.
pub fn holds_only_files_of_run(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return false;
    };
    for entry in entries {
        let Ok(entry) = entry else {
            return false;
        };
        let Ok(kind) = entry.file_type() else {
            return false;
        };
        let name = entry.file_name();
        let is_first_name = FIRST_NAMES.iter().any(|first| *first == name);
        if !kind.is_file() || !(is_first_name || is_run_name(name.as_bytes())) {
            return false;
        }
    }
    true
}

/// True if a run gives this name to a file.
pub(crate) fn is_run_name(name: &[u8]) -> bool {
    name == PAGES_FILE.as_bytes()
        || is_numbered(name, FILE_PREFIX)
        || is_numbered(name, ENTRY_PREFIX)
}

/// True if a name consists of this prefix and a number.
fn is_numbered(name: &[u8], prefix: &str) -> bool {
    match name.strip_prefix(prefix.as_bytes()) {
        Some(number) => !number.is_empty() && number.iter().all(u8::is_ascii_digit),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_device::{Intent, KeptDirectory, admit, probe};

    #[test]
    fn file_that_a_cut_kept_from_its_rename_is_one_of_the_run() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let size_bytes = 1 << 20;
        let identity = probe(place.path()).unwrap();
        let admitted = admit(identity, Intent::Scratch { size_bytes }).unwrap();
        let directory = KeptDirectory::create(admitted, "kept").unwrap();
        directory.create_target(PAGES_FILE).unwrap();
        // Another program's file of this name keeps the new one from its rename.
        std::fs::write(directory.path().join(file_name(0)), "").unwrap();
        directory
            .replace_file(&file_name(0), &[0; 512])
            .unwrap_err();
        let entries = std::fs::read_dir(directory.path()).unwrap();
        assert_eq!(entries.count(), 3);
        assert!(holds_only_files_of_run(&directory.path()));
        std::fs::write(directory.path().join("notes"), "").unwrap();
        assert!(!holds_only_files_of_run(&directory.path()));
    }
}
