//! The files that `-o` names: tried out before the run, written after it.

use crate::failure::Failure;
use crate::stderr::Verbosity;
use anyhow::Context as _;
use diskproof_model::record::Record;
use diskproof_report::format::OutputFile;
use diskproof_report::formats::{extensions, format_of};
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
            if format_of(path).is_none() {
                return Err(Failure::Usage(format!(
                    "-o {}: unknown format. The format follows the extension; use one of {}.",
                    path.display(),
                    extensions(|_| true)
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
    let format = format_of(path).context("unknown format")?;
    let files = format.files(record, path);
    anyhow::ensure!(!files.is_empty(), format.requires.missing_text());
    let mut others = Vec::new();
    for file in &files {
        let saved = save_file(file);
        if file.path == path {
            saved?;
        } else {
            let name = file.path.display().to_string();
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
pub fn save_file(output: &OutputFile<'_>) -> io::Result<()> {
    let path = &output.path;
    let (temporary, file) = create_temporary(path)?;
    let mut out = BufWriter::new(&file);
    let written = (output.write)(&mut out)
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
