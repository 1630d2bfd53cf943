//! Finds the places from which `merge` reads records.

use crate::failure::Failure;
use crate::input_files::{InputRole, register, register_stdin};
use crate::saved::find_within_limit;
use std::io;
use std::path::{Path, PathBuf};

/// Files of a folder that may hold records: those that this program writes, and logs of launchers.
const RECORD_FILES: [&str; 5] = [".json", ".html", ".out", ".log", ".txt"];

/// A place that has records.
pub(super) enum Source {
    Stdin,
    File(PathBuf),
    /// A file that lies in a folder which the user named: it need not have a record.
    FileOfFolder(PathBuf),
    /// A label, or the id of a run.
    History(String),
}

impl Source {
    /// The sources that an argument names. No output replaces one of them from here on.
    pub(super) fn find(reference: &str) -> Result<Vec<Self>, Failure> {
        if reference == "-" {
            register_stdin();
            return Ok(vec![Self::Stdin]);
        }
        let name = reference.to_owned();
        let found = find_within_limit(move || files_named(&name))
            .map_err(|error| Failure::Usage(format!("cannot read {reference}: {error}")))?;
        Ok(match found {
            Some(Named::File(path)) => vec![Self::File(path)],
            Some(Named::Folder(paths)) => paths.into_iter().map(Self::FileOfFolder).collect(),
            None => vec![Self::History(reference.to_owned())],
        })
    }
}

/// What a path names.
enum Named {
    File(PathBuf),
    /// The files of a folder that may hold records.
    Folder(Vec<PathBuf>),
}

/// The file that an argument names, or the files of the folder that it names; `None` where it is no
/// path.
fn files_named(reference: &str) -> io::Result<Option<Named>> {
    let path = Path::new(reference);
    if path.is_dir() {
        let files = record_files(path)?;
        for file in &files {
            register(file, InputRole::Document);
        }
        return Ok(Some(Named::Folder(files)));
    }
    if path.exists() || reference.contains('/') || reference.ends_with(".json") {
        register(path, InputRole::Document);
        return Ok(Some(Named::File(path.to_owned())));
    }
    Ok(None)
}

/// The files of a folder that may hold records, in the order of their names.
fn record_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let has_records = RECORD_FILES.iter().any(|end| name.ends_with(end));
        // A record that is being written has a hidden name.
        if has_records && !name.starts_with('.') && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_gives_its_own_files_that_may_hold_records() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.log", "a.json", ".a.json", "c.png", "d.json.gz"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("e.json")).unwrap();
        let text = folder.path().to_str().unwrap();
        let Ok(Some(Named::Folder(files))) = files_named(text) else {
            panic!("{text} is a folder");
        };
        let expected = ["a.json", "b.log"].map(|name| folder.path().join(name));
        assert_eq!(files, expected);
    }

    /// A mistyped file is one that is missing, not a label that the history does not have.
    #[test]
    fn path_that_does_not_exist_is_a_file_and_a_word_is_not() {
        for (reference, is_file) in [
            ("missing.json", true),
            ("./nightly", true),
            ("nightly", false),
            ("3f2a90c4", false),
        ] {
            let named = files_named(reference).unwrap();
            assert_eq!(
                matches!(named, Some(Named::File(_))),
                is_file,
                "{reference}"
            );
        }
    }
}
