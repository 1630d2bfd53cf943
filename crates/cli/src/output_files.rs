//! The files that `-o` names: tried out before the run, written after it.

use crate::failure::Failure;
use crate::formats::{Document, Format};
use crate::stderr::Verbosity;
use anyhow::Context as _;
use diskproof_model::record::Record;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// The files that a record is saved to. All are tried out before the run, so that a wrong path is
/// an error at once and not after an hour.
#[derive(Debug)]
pub struct OutputFiles<'a> {
    paths: &'a [PathBuf],
}

impl<'a> OutputFiles<'a> {
    /// Tries each path out, and leaves nothing behind.
    pub fn prepare(paths: &'a [PathBuf]) -> Result<Self, Failure> {
        for path in paths {
            if Format::of(path).is_none() {
                return Err(Failure::Usage(format!(
                    "-o {}: unknown format. The format follows the extension; use one of {}.",
                    path.display(),
                    Format::known()
                )));
            }
            try_out(path)?;
        }
        Ok(Self { paths })
    }

    /// The paths, as given.
    pub fn paths(&self) -> &'a [PathBuf] {
        self.paths
    }

    /// Saves the record to every file. A failure does not keep the others from being saved; the
    /// first one is returned.
    pub fn save(&self, record: &Record, verbosity: Verbosity) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        for path in self.paths {
            outcome = outcome.and(save_record(record, path, verbosity));
        }
        outcome
    }
}

/// Saves the record to one file, in the format of its extension.
pub fn save_record(record: &Record, path: &Path, verbosity: Verbosity) -> anyhow::Result<()> {
    save_as_format(record, path, verbosity)
        .with_context(|| format!("-o {}: cannot save the record", path.display()))
}

fn save_as_format(record: &Record, path: &Path, verbosity: Verbosity) -> anyhow::Result<()> {
    let format = Format::of(path).context("unknown format")?;
    let documents = format.documents(record, path);
    anyhow::ensure!(!documents.is_empty(), format.why_none());
    let mut others = Vec::new();
    for document in &documents {
        let saved = save_document(document);
        if document.path == path {
            saved?;
        } else {
            let name = document.path.display().to_string();
            saved.with_context(|| name.clone())?;
            others.push(name);
        }
    }
    if !others.is_empty() {
        verbosity.note(&format!("wrote {}", others.join(", ")));
    }
    Ok(())
}

/// Creates the temporary file of a path, and removes it.
pub fn try_out(path: &Path) -> Result<(), Failure> {
    let name = path.display();
    if path.is_dir() {
        return Err(Failure::Usage(format!(
            "-o {name}: is a directory; name a file"
        )));
    }
    let tried = create_temporary(path).and_then(|(temporary, _)| std::fs::remove_file(temporary));
    tried.map_err(|error| {
        let folder = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        Failure::Usage(format!(
            "-o {name}: cannot create a file in {}: {error}; name a writable directory",
            folder.display()
        ))
    })
}

/// Writes to a temporary file first and renames it: a file of this name is complete at every
/// moment.
pub fn save_document(document: &Document<'_>) -> io::Result<()> {
    let path = &document.path;
    let (temporary, file) = create_temporary(path)?;
    let mut out = BufWriter::new(&file);
    let written = (document.write)(&mut out)
        .and_then(|()| out.flush())
        .and_then(|()| file.sync_all());
    let saved = written.and_then(|()| std::fs::rename(&temporary, path));
    if saved.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    saved
}

/// The name under which a file is written before it gets its own.
pub fn temporary_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.unfinished", std::process::id()));
    path.with_file_name(name)
}

fn create_temporary(path: &Path) -> io::Result<(PathBuf, File)> {
    let temporary = temporary_path(path);
    let file = File::options()
        .write(true)
        .create_new(true)
        .open(&temporary)?;
    Ok((temporary, file))
}
