//! The places from which `merge` reads records.

use crate::failure::Failure;
use crate::input_files::{InputRole, register, register_stdin};
use std::io;
use std::path::{Path, PathBuf};

/// Files of a folder that may hold records: those that this program writes, and logs of launchers.
const RECORD_FILES: [&str; 5] = [".json", ".html", ".out", ".log", ".txt"];

/// A place that has records.
pub(super) enum Source {
    Stdin,
    File(PathBuf),
    /// A label, or the id of a run.
    History(String),
}

impl Source {
    /// The sources that an argument names. No output replaces one of them from here on.
    pub(super) fn find(reference: &str) -> Result<Vec<Self>, Failure> {
        let path = Path::new(reference);
        if reference == "-" {
            register_stdin();
            return Ok(vec![Self::Stdin]);
        }
        let paths = if path.is_dir() {
            record_files(path)?
        } else if path.exists() || reference.contains('/') || reference.ends_with(".json") {
            vec![path.to_owned()]
        } else {
            return Ok(vec![Self::History(reference.to_owned())]);
        };
        for file in &paths {
            register(file, InputRole::Document);
        }
        Ok(paths.into_iter().map(Self::File).collect())
    }
}

/// The files of a folder that may hold records, in the order of their names.
fn record_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(|error| unreadable_folder(folder, &error))?;
    for entry in entries {
        let path = match entry {
            Ok(entry) => entry.path(),
            Err(error) => return Err(unreadable_folder(folder, &error)),
        };
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

fn unreadable_folder(folder: &Path, error: &io::Error) -> Failure {
    let name = folder.display();
    Failure::Usage(format!("cannot read the folder {name}: {error}"))
}
