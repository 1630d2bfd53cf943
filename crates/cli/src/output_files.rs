//! The files that `-o` names: checked before the run, written after it.

use crate::failure::Failure;
use crate::output_sink::Sink;
pub(crate) use crate::output_sink::{Trial, is_pipe, save_file, temporary_path};
use crate::stdio::Verbosity;
use anyhow::{Context as _, Result};
use diskproof_model::record::Record;
use diskproof_report::format::Format;
use diskproof_report::formats::{extensions, format_of};
use std::path::{Path, PathBuf};

/// Checks the files that a record is saved to, before the run, so that a wrong path is an error at
/// once and not after an hour. Leaves nothing behind.
pub(crate) fn check_outputs(paths: &[PathBuf], trial: Trial) -> Result<(), Failure> {
    let formats = extensions(|_| true);
    let why = format!("unknown format. The format follows the extension; use one of {formats}.");
    refuse_output(paths, |path| format_of(path).is_none(), &why)?;
    check_writable(paths, trial)
}

/// Checks the files for a document that only some formats can hold.
pub(crate) fn check_documents(
    document: &str,
    can_hold: fn(&Format) -> bool,
    paths: &[PathBuf],
) -> Result<(), Failure> {
    let why = format!("{document} can be written only as {}", extensions(can_hold));
    refuse_output(paths, |path| !format_of(path).is_some_and(can_hold), &why)?;
    check_writable(paths, Trial::Create)
}

/// Refuses the first file of which this is true.
pub(crate) fn refuse_output(
    paths: &[PathBuf],
    is_wrong: impl Fn(&Path) -> bool,
    why: &str,
) -> Result<(), Failure> {
    match paths.iter().find(|path| is_wrong(path)) {
        None => Ok(()),
        Some(path) => Err(Failure::Usage(format!("-o {}: {why}", path.display()))),
    }
}

/// Saves the record to every file. A failure does not keep the others from being saved; the first
/// one is returned.
pub(crate) fn save_records(record: &Record, paths: &[PathBuf], verbosity: Verbosity) -> Result<()> {
    let saved = paths
        .iter()
        .map(|path| save_record(record, path, verbosity));
    saved.fold(Ok(()), Result::and)
}

/// Saves the record to one file, in the format of its extension.
pub(crate) fn save_record(record: &Record, path: &Path, verbosity: Verbosity) -> Result<()> {
    save_as_format(record, path, verbosity)
        .with_context(|| format!("-o {}: cannot save the record", path.display()))
}

fn save_as_format(record: &Record, path: &Path, verbosity: Verbosity) -> Result<()> {
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

/// Checks that every path can be written, and that no two of them are the same file.
pub(crate) fn check_writable(paths: &[PathBuf], trial: Trial) -> Result<(), Failure> {
    let mut seen: Vec<(&PathBuf, Sink)> = Vec::new();
    for path in paths {
        let sink = Sink::of(path)
            .and_then(|sink| sink.check(trial).map(|()| sink))
            .map_err(|why| Failure::Usage(format!("-o {}: {why}", path.display())))?;
        if let Some((other, _)) = seen.iter().find(|(_, other)| other.is_same(&sink)) {
            return Err(Failure::Usage(format!(
                "-o {}: this is the same file as -o {}; name each file once",
                path.display(),
                other.display()
            )));
        }
        seen.push((path, sink));
    }
    Ok(())
}
