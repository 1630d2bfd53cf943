//! The files that a command line writes: opened before the run, written after it. No front end
//! opens an output elsewhere.

use crate::failure::Failure;
pub(crate) use crate::output_sink::{OutputError, Trial, save_file, temporary_path};
use crate::output_sink::{OutputSink, check_standard_streams};
use crate::saved::register_history;
use crate::stdio::{Verbosity, eprint_line};
use anyhow::{Context as _, Result};
use diskproof_model::record::Record;
use diskproof_model::units::{counted, format_file_size};
use diskproof_report::format::{Format, OutputFile};
use diskproof_report::formats::{extensions, format_of};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A file that is written at the end. Its directory is held open from the start, so that no
/// exchange of the path meanwhile leads elsewhere.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    sink: OutputSink,
}

impl Output {
    /// Finds the file, and checks that it can be written. Leaves nothing behind.
    pub(crate) fn open(path: &Path, trial: Trial) -> Result<Self, OutputError> {
        let sink = if is_folder(path) {
            OutputSink::find(&path.join(FOLDER_RECORD_NAME))?
        } else {
            OutputSink::find(path)?
        };
        sink.check(trial)?;
        Ok(Self {
            path: path.to_owned(),
            sink,
        })
    }

    /// The path as the user named it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The format that the extension selects; `None` for an unknown one.
    pub(crate) fn format(&self) -> Option<&'static Format> {
        format_of_output(&self.path)
    }

    /// The output of this record in a folder, under a name of its own.
    fn in_folder(&self, record: &Record) -> io::Result<Self> {
        let name = file_name(record);
        Ok(Self {
            sink: self.sink.renamed(&name)?,
            path: self.path.join(&name),
        })
    }

    /// The one of these outputs that is the same file.
    pub(crate) fn same_file_among<'a>(&self, others: &'a [Self]) -> Option<&'a Self> {
        others.iter().find(|other| other.sink.is_same(&self.sink))
    }

    /// True if a document goes to a pipe, whose reader may be late.
    pub(crate) fn is_pipe(&self) -> bool {
        self.sink.is_pipe()
    }

    /// Writes the file, or another one of the same format that has a path of its own. Returns its
    /// size in bytes.
    pub(crate) fn save(&self, file: &OutputFile<'_>) -> io::Result<u64> {
        if file.path == self.path {
            self.sink.save(&file.write)
        } else {
            save_file(file)
        }
    }
}

/// The name with which a folder is tried: each record gets another one, of the same format.
const FOLDER_RECORD_NAME: &str = "diskproof-record.json";

/// True if an output names a folder, in which each record gets a name of its own: `-o results/`.
fn is_folder(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}

fn format_of_output(path: &Path) -> Option<&'static Format> {
    if is_folder(path) {
        format_of(Path::new(FOLDER_RECORD_NAME))
    } else {
        format_of(path)
    }
}

/// Longer names of hosts and runs are cut, so that all of them fit into the name of a file. Linux
/// has no longer ones of hosts (HOST_NAME_MAX), and a run id of ours is shorter.
const PART_CHARS_MAX: usize = 64;

/// The name of a record in a folder: `db17-3-4f2a91c0….json`. No two runs of diskproof
/// have the same.
fn file_name(record: &Record) -> String {
    let host = part_of_name(&record.host.name);
    // A record is a file that anybody may have written.
    let run_id = part_of_name(&record.run_id);
    match record.host.rank {
        Some(rank) => format!("{host}-{}-{run_id}.json", rank.rank),
        None => format!("{host}-{run_id}.json"),
    }
}

/// A text as a part of the name of a file: it leads to no other directory.
fn part_of_name(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            letter if letter.is_ascii_alphanumeric() || "-_.".contains(letter) => letter,
            _ => '_',
        })
        .take(PART_CHARS_MAX)
        .collect()
}

/// Opens the files of a record: before the run, so that a wrong path is an error at once and not
/// after an hour. `history` is the value of --history. Leaves nothing behind.
pub(crate) fn open_outputs(
    paths: &[PathBuf],
    history: Option<&Path>,
    trial: Trial,
) -> Result<Vec<Output>, Failure> {
    let why = "this is a directory. Name a file in it, such as run.json, or end it with / for a \
               name of its own";
    refuse_output(paths, |path| !is_folder(path) && path.is_dir(), why)?;
    let formats = extensions(|_| true);
    let why = format!("unknown format. The format follows the extension; use one of {formats}.");
    refuse_output(paths, |path| format_of_output(path).is_none(), &why)?;
    open_all(paths, history, trial)
}

/// Opens the files of a document, such as `a comparison`. Fails for formats that cannot hold one.
pub(crate) fn open_documents(
    document: &str,
    can_hold: fn(&Format) -> bool,
    paths: &[PathBuf],
    history: Option<&Path>,
) -> Result<Vec<Output>, Failure> {
    let why = format!("{document} can be written only as {}", extensions(can_hold));
    refuse_output(paths, |path| !format_of(path).is_some_and(can_hold), &why)?;
    open_all(paths, history, Trial::Create)
}

/// Refuses the first file of which `is_wrong` is true, for this reason.
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

/// Opens every path for a run or a document. The files that the command line reads, the history and
/// the standard streams are no outputs.
fn open_all(
    paths: &[PathBuf],
    history: Option<&Path>,
    trial: Trial,
) -> Result<Vec<Output>, Failure> {
    register_history(history);
    check_standard_streams().map_err(Failure::Usage)?;
    match open_distinct(paths, trial) {
        Ok(outputs) => Ok(outputs),
        Err(unopened) => {
            let name = unopened.path.display();
            Err(Failure::Usage(format!("-o {name}: {}", unopened.error.why)))
        }
    }
}

/// An output that cannot be opened.
pub(crate) struct UnopenedOutput {
    /// The path as the user named it.
    pub path: PathBuf,
    pub error: OutputError,
}

impl UnopenedOutput {
    fn new(path: &Path, error: OutputError) -> Self {
        Self {
            path: path.to_owned(),
            error,
        }
    }
}

/// Opens every path. Fails at the first one that cannot be written, or that is the same file as one
/// before it, which it would replace.
pub(crate) fn open_distinct(
    paths: &[PathBuf],
    trial: Trial,
) -> Result<Vec<Output>, UnopenedOutput> {
    let mut outputs = Vec::new();
    for path in paths {
        let output = match Output::open(path, trial) {
            Ok(output) => output,
            Err(error) => return Err(UnopenedOutput::new(path, error)),
        };
        if let Some(other) = output.same_file_among(&outputs) {
            let error = OutputError::same_file(&other.path);
            return Err(UnopenedOutput::new(path, error));
        }
        outputs.push(output);
    }
    Ok(outputs)
}

/// Saves the record to every file. A failure does not keep the others from being saved; the first
/// one is returned.
pub(crate) fn save_records(
    record: &Record,
    outputs: &[Output],
    verbosity: Verbosity,
) -> Result<()> {
    let mut first_error = Ok(());
    for output in outputs {
        let saved = save_record(record, output, verbosity);
        if first_error.is_ok() {
            first_error = saved;
        }
    }
    first_error
}

/// Saves the record to one file, in the format of its extension.
pub(crate) fn save_record(record: &Record, output: &Output, verbosity: Verbosity) -> Result<()> {
    save_as_format(record, output, verbosity)
        .with_context(|| format!("-o {}: cannot save the record", output.path.display()))
}

fn save_as_format(record: &Record, output: &Output, verbosity: Verbosity) -> Result<()> {
    if is_folder(&output.path) {
        return save_as_format(record, &output.in_folder(record)?, verbosity);
    }
    let format = output.format().context("unknown format")?;
    let files = format.files(record, &output.path);
    if files.is_empty() {
        return Err(missing_data(record, format));
    }
    warn_of_left_out(record, format);
    let mut written = Vec::new();
    for file in &files {
        let saved = output.save(file);
        let bytes = if file.path == output.path {
            saved?
        } else {
            saved.with_context(|| file.path.display().to_string())?
        };
        written.push(written_text(&file.path, bytes));
    }
    verbosity.note(&format!("wrote {}", written.join(", ")));
    Ok(())
}

/// The error of a format that has nothing to write of this record.
fn missing_data(record: &Record, format: &Format) -> anyhow::Error {
    let text = format.requires.missing_text(record);
    if format.requires.is_undecided_by(record) {
        Failure::Undecided(text).into()
    } else {
        anyhow::Error::msg(text)
    }
}

/// Warns on stderr of figures that a format leaves out because they are not the disk's, or lack the
/// requests that it never answered.
pub(crate) fn warn_of_left_out(record: &Record, format: &Format) {
    let left_out = match format.count_left_out {
        Some(count) => count(record),
        None => 0,
    };
    if left_out > 0 {
        eprint_line(&format!(
            "{} leaves out {}, because a finding says that they are not the disk's, or because \
             requests had no answer",
            format.extension,
            counted(left_out as u64, "figure")
        ));
    }
}

/// Notes on stderr that a file was written, and how large it is.
pub(crate) fn note_written(path: &Path, bytes: u64, verbosity: Verbosity) {
    verbosity.note(&format!("wrote {}", written_text(path, bytes)));
}

fn written_text(path: &Path, bytes: u64) -> String {
    format!("{} ({})", path.display(), format_file_size(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_record_leads_to_no_other_directory() {
        let mut record = diskproof_analysis::fixture::record();
        let ours = record.run_id.clone();
        assert!(file_name(&record).ends_with(&format!("-{ours}.json")));
        record.host.name = "../db".to_owned();
        record.run_id = "results/../../../evil".to_owned();
        let name = file_name(&record);
        assert!(
            !name.contains('/') && name.ends_with("-results_.._.._.._evil.json"),
            "{name}"
        );
        record.run_id = "x".repeat(10_000);
        assert!(file_name(&record).len() < 255);
    }

    #[test]
    fn outputs_are_distinct_files_however_their_paths_are_spelt() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let [one, other] = ["one.json", "other.json"].map(|name| folder.path().join(name));
        let same = folder.path().join("./one.json");
        assert!(open_distinct(&[one.clone(), other], Trial::Create).is_ok());
        let refused = open_distinct(&[one.clone(), same.clone()], Trial::Create);
        assert_eq!(refused.err().map(|unopened| unopened.path), Some(same));
        assert!(!one.exists(), "a trial leaves nothing behind");
    }

    #[test]
    fn directory_is_an_output_only_with_a_slash() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().to_path_buf();
        let with_slash = PathBuf::from(format!("{}/", path.display()));
        assert!(open_outputs(&[path], None, Trial::Create).is_err());
        assert!(open_outputs(&[with_slash], None, Trial::Create).is_ok());
        let unknown = folder.path().join("run.unknown");
        assert!(open_outputs(&[unknown], None, Trial::Create).is_err());
    }

    #[test]
    fn failure_of_one_file_does_not_keep_the_others_from_being_saved() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let vanishing = folder.path().join("vanishing");
        std::fs::create_dir(&vanishing).unwrap();
        let paths = [vanishing.join("one.json"), folder.path().join("two.json")];
        let outputs = open_distinct(&paths, Trial::Create).ok().unwrap();
        std::fs::remove_dir(&vanishing).unwrap();
        let record = diskproof_analysis::fixture::record();
        let saved = save_records(&record, &outputs, Verbosity::Quiet);
        assert!(saved.is_err());
        assert!(paths[1].exists());
    }
}
