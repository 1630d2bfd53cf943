//! Holds what the jobs of one translation share: the flags and the machine that change it, its
//! notes, and its error.

use super::environment::{Environment, PathKind};
use diskproof_compat::JobAction;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The flags and operands of the command line that change the translation.
#[derive(Debug, Clone, Copy, Default)]
pub struct CliOverrides<'a> {
    /// The sections to run; all of them when empty.
    pub sections: &'a [String],
    /// Targets that replace those of the file.
    pub targets: &'a [PathBuf],
    /// Size of the scratch file in bytes.
    pub size: Option<u64>,
    /// What becomes of the jobs. Of those that do not run only the options are read: no file
    /// matters then, and the plan stays empty. Those that are shown may have options and engines
    /// that fio has and diskproof refuses.
    pub action: JobAction,
    /// The aim of the run: to measure the disk, or to do as fio does.
    pub closeness: Closeness,
    /// True if the jobs may make no file and write to none (`--readonly`).
    pub is_read_only: bool,
    /// The seed of the run. A job whose requests differ from run to run (`randrepeat=0`) ends
    /// after as many as this seed gives.
    pub seed: u64,
    /// The directory of the output, where it goes to a file.
    pub output: Option<&'a Path>,
}

/// The model of jobs: a measurement of the disk, or fio.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Closeness {
    /// As a measurement of the disk: what the page cache answers does not count.
    #[default]
    Disk,
    /// As in fio: through the page cache unless the job has `direct=1`, and with figures for each
    /// copy unless it has `group_reporting`.
    Fio,
}

/// A note names up to this many jobs, and counts the others.
const JOBS_NAMED_MAX: usize = 3;

/// The note about several files of a job.
pub(crate) const FILES: &str = "the files of a job (nrfiles) become one of their total size; fio \
                                opens each and switches files after each request";

/// The note about several files of a sequential job that does not alternate between them.
pub(crate) const IN_ORDER: &str = "sequential requests of a mix of directions or of sizes go \
                                   through the files of a job one after the other; fio changes the \
                                   file after each request";

/// A translation, with its notes so far.
pub(crate) struct Translation<'a> {
    /// The flags and operands of the command line.
    pub overrides: CliOverrides<'a>,
    /// The machine and its files.
    pub environment: &'a dyn Environment,
    /// Differences from fio, with the jobs that they concern.
    job_notes: RefCell<Vec<NotedJobs>>,
    /// Options that are ignored, by the reason.
    ignored: RefCell<BTreeMap<&'static str, Vec<&'static str>>>,
    /// Sentences about the whole file.
    lines: RefCell<Vec<String>>,
    /// Files that no job names.
    found_files: RefCell<Vec<PathBuf>>,
}

impl<'a> Translation<'a> {
    /// A translation without notes.
    pub(crate) fn new(overrides: CliOverrides<'a>, environment: &'a dyn Environment) -> Self {
        Self {
            overrides,
            environment,
            job_notes: RefCell::default(),
            ignored: RefCell::default(),
            lines: RefCell::default(),
            found_files: RefCell::default(),
        }
    }

    /// True if the jobs run as in fio.
    pub(crate) fn is_as_fio(&self) -> bool {
        self.overrides.closeness == Closeness::Fio
    }

    /// The kind of thing that a path leads to.
    pub(crate) fn path_kind(&self, path: &Path) -> PathKind {
        self.environment.path_kind(path)
    }

    /// A path from the root, as errors and notes show it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        self.environment.absolute(path).display().to_string()
    }

    /// Adds a note about the job of a section.
    pub(crate) fn note(&self, note: &'static str, section: &str) {
        let mut job_notes = self.job_notes.borrow_mut();
        let Some(noted) = job_notes.iter_mut().find(|noted| noted.note == note) else {
            job_notes.push(NotedJobs {
                note,
                sections: vec![section.to_owned()],
            });
            return;
        };
        if noted.sections.iter().all(|other| other != section) {
            noted.sections.push(section.to_owned());
        }
    }

    /// Adds a sentence about the whole file.
    pub(crate) fn note_line(&self, line: String) {
        self.lines.borrow_mut().push(line);
    }

    /// Adds files that a job found in a directory.
    pub(crate) fn add_found_files(&self, files: Vec<PathBuf>) {
        self.found_files.borrow_mut().extend(files);
    }

    /// The files that jobs found in directories.
    pub(crate) fn found_files(&self) -> Vec<PathBuf> {
        self.found_files.borrow().clone()
    }

    /// Adds an option that is ignored, and why it changes nothing.
    pub(crate) fn ignore_option(&self, option: &'static str, why: &'static str) {
        let mut ignored = self.ignored.borrow_mut();
        let options = ignored.entry(why).or_default();
        if !options.contains(&option) {
            options.push(option);
        }
    }

    /// All notes as lines. One that concerns all jobs names none of them; `count` is their number.
    pub(crate) fn into_notes(self, count: usize) -> Vec<String> {
        let mut lines = self.lines.into_inner();
        for noted in self.job_notes.into_inner() {
            lines.push(noted.line(count));
        }
        let reasons: Vec<String> = self
            .ignored
            .into_inner()
            .into_iter()
            .map(|(why, options)| format!("{} ({why})", options.join(", ")))
            .collect();
        if !reasons.is_empty() {
            lines.push(format!(
                "ignored, because they do not change the load: {}",
                reasons.join("; ")
            ));
        }
        lines
    }
}

/// A note, and the jobs that it concerns.
struct NotedJobs {
    note: &'static str,
    sections: Vec<String>,
}

impl NotedJobs {
    /// The note as a line; `count` is the number of all jobs.
    fn line(&self, count: usize) -> String {
        let concerned = self.sections.len();
        if concerned == count {
            return self.note.to_owned();
        }
        if concerned <= JOBS_NAMED_MAX {
            return format!("{}: {}", self.sections.join(", "), self.note);
        }
        format!(
            "{} and {} more: {}",
            self.sections[..JOBS_NAMED_MAX].join(", "),
            concerned - JOBS_NAMED_MAX,
            self.note
        )
    }
}

/// The reason why a job file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {text}", at_line(*.line))]
pub struct JobFileError {
    /// The file, which may be an included one.
    pub file: String,
    /// The number of the line, from 1; 0 for an option of the command line.
    pub line: usize,
    /// A clause that says what is wrong, and what to do.
    pub text: String,
}

fn at_line(line: usize) -> String {
    if line == 0 {
        return String::new();
    }
    format!(": line {line}")
}

/// The result of a part of a translation.
pub(crate) type Translated<T> = Result<T, JobFileError>;
