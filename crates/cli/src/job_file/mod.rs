//! Job files of fio: translated into what a plan file in TOML gives, so that nothing behind it
//! knows of fio. What would be another load is refused with its line; what a user has to know is
//! told. Pure: what the machine and its files say comes from [`Environment`].

mod jobs;
mod numbers;
mod options;
mod places;
mod reading;
mod remarks;
mod sections;
mod surroundings;
mod workloads;

pub use surroundings::{System, read_text};

use crate::plan_file::PlanFile;
use remarks::TranslationNotes;
use sections::Section;
use std::path::{Path, PathBuf};

/// What is quoted of a wrong line, so that what is said about it is still seen.
const QUOTED_CHARS_MAX: usize = 60;
/// Jobs with their copies: more threads than any machine gains from.
const COPIES_MAX: u64 = 4096;
/// So many sections are named to somebody who misspelt one.
const SECTIONS_NAMED: usize = 12;

/// What a job file became.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobFile {
    /// The same as a plan file gives.
    pub plan: PlanFile,
    /// What differs from fio or would be a surprise, a sentence each.
    pub remarks: Vec<String>,
}

/// Why a job file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: line {line}: {text}")]
pub struct JobFileError {
    /// The file, which may be an included one.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub text: String,
}

/// Flags that belong to a job file.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Job file of fio")]
pub struct JobFileFlags {
    /// Only this section of the job file (repeatable) [default: all]
    #[arg(long = "section", value_name = "NAME")]
    pub sections: Vec<String>,
}

/// What the command line says beside the file.
#[derive(Debug, Clone, Copy, Default)]
pub struct CliOverrides<'a> {
    /// The sections that are wanted; all of them where it names none.
    pub sections: &'a [String],
    /// Targets, which take the place of those in the file.
    pub targets: &'a [PathBuf],
    /// Size of the scratch file in bytes.
    pub size: Option<u64>,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing.
    Nothing,
    /// A directory.
    Directory,
    /// A regular file of so many bytes.
    File(u64),
    /// A block device of so many bytes.
    Device(u64),
    /// Something that cannot be measured, and why.
    Other(String),
}

/// What fio's keywords stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineFacts {
    /// `$pagesize`
    pub page_bytes: u64,
    /// `$mb_memory`
    pub memory_mib: u64,
    /// `$ncpus`
    pub cpus: u64,
}

/// The machine and its files, as far as a job file asks for them. Nothing is written, and nothing
/// is run.
pub trait Environment {
    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;
    /// What keywords stand for.
    fn machine(&self) -> MachineFacts;
    /// Text of a file that is included, or why it cannot be had.
    fn text(&self, path: &Path) -> Result<String, String>;
    /// What stands at a path.
    fn found(&self, path: &Path) -> PathKind;
}

impl JobFile {
    /// Translates `text`, the content of the job file at `path`.
    pub fn translate(
        text: &str,
        path: &Path,
        beside: CliOverrides<'_>,
        surroundings: &dyn Environment,
    ) -> Result<Self, JobFileError> {
        let sections = wanted(
            sections::read_sections(text, path, surroundings)?,
            beside.sections,
        )?;
        let mut remarks = TranslationNotes::default();
        let jobs = sections
            .iter()
            .map(|section| reading::read_job(section, &mut remarks))
            .collect::<Result<Vec<_>, _>>()?;
        let copies = jobs
            .iter()
            .try_fold(0, |copies, job| match copies + job.numjobs {
                copies if copies > COPIES_MAX => Err(job.spot.error(format!(
                    "with their copies (numjobs) there are more than {COPIES_MAX} jobs; make them \
                     fewer"
                ))),
                copies => Ok(copies),
            });
        copies?;
        let places = places::place(&jobs, beside, surroundings, &mut remarks)?;
        let plan = workloads::plan(&jobs, &places, &mut remarks)?;
        Ok(Self {
            plan,
            remarks: remarks.lines(jobs.len()),
        })
    }
}

/// The sections of these names, in the order of the file.
fn wanted(mut sections: Vec<Section>, names: &[String]) -> Result<Vec<Section>, JobFileError> {
    for name in names {
        if sections.iter().all(|section| section.name != *name) {
            let there: Vec<String> = sections
                .iter()
                .take(SECTIONS_NAMED)
                .map(|section| quoted(&section.name))
                .collect();
            let more = if sections.len() > SECTIONS_NAMED {
                " and others"
            } else {
                ""
            };
            return Err(sections[0].spot.error(format!(
                "there is no section '{name}'; there are {}{more}",
                there.join(", ")
            )));
        }
    }
    sections.retain(|section| names.is_empty() || names.contains(&section.name));
    Ok(sections)
}

/// Text of a line, cut where it is long.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
