//! The names of a run's files in its directory, which tell them from anything else there.

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
        if !kind.is_file() || !is_run_name(entry.file_name().as_bytes()) {
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
