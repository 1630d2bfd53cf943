//! Translates job files of fio into the structure that a plan file in TOML gives; the code behind
//! it does not know fio. An option that would change the load is refused with its line; other
//! differences are reported. Pure: facts about the machine and its files come from [`Environment`].

mod amounts;
mod environment;
mod file_names;
mod found_files;
mod groups;
mod jobs;
mod logged_files;
mod placement;
mod reading;
mod request_order;
mod sections;
mod spread;
mod translation;
mod workloads;

pub use environment::{Environment, Keywords, PathKind, System, read_text};
pub use sections::JobText;
pub use translation::{CliOverrides, Closeness, JobFileError};

use crate::plan_file::{PlanFile, quoted};
use crate::workload::{Count, WorkloadFlags};
use diskproof_compat::{DescribedJob, DescribedJobs, JobAction, JobOption, JobWorkload};
use diskproof_model::rw::Rw;
use found_files::{finds_no_file, opendir_files, with_found_files};
use jobs::FioJob;
use sections::{Scope, Section, Setting};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use translation::{Translated, Translation};

/// The most copies of all jobs together: more threads than any machine gains from. Chosen, not
/// measured.
const COPIES_MAX: u64 = 4096;
/// An error about an unknown section lists this many. Chosen, not measured.
const SECTIONS_LISTED: usize = 12;

/// A translated job file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobFile {
    /// The workloads and targets, as a plan file would set them.
    pub plan: PlanFile,
    /// Differences from fio, one sentence each.
    pub notes: Vec<String>,
    /// The jobs, with the workloads that carry them out.
    pub jobs: DescribedJobs,
    /// Files that no job names: they were found in a directory.
    pub found_files: Vec<PathBuf>,
}

impl JobFile {
    /// Translates `text`, the content of the job file at `path`.
    pub fn translate(
        text: &str,
        path: &Path,
        overrides: CliOverrides<'_>,
        environment: &dyn Environment,
    ) -> Result<Self, JobFileError> {
        let file = JobText::File {
            text: text.into(),
            path,
        };
        Self::translate_all(&[file], overrides, environment)
    }

    /// Translates several texts, the jobs of one file after those of the file before it. Fails for
    /// options that would change the load, with their line.
    pub fn translate_all(
        texts: &[JobText<'_>],
        overrides: CliOverrides<'_>,
        environment: &dyn Environment,
    ) -> Result<Self, JobFileError> {
        let read = sections::read_sections(texts, environment)?;
        let sections = match read.no_job {
            // As in fio, nothing is wrong with jobs that are only checked or shown.
            Some(_) if overrides.action != JobAction::Run => Vec::new(),
            Some(why) => return Err(why),
            None => named_sections(read.sections, overrides.sections)?,
        };
        let translation = Translation::new(overrides, environment);
        for missing in read.missing_includes {
            // fio goes on without the options of the file.
            if !translation.is_as_fio() {
                return Err(missing);
            }
            translation.note_line(missing.to_string());
        }
        if let Some(unset) = read.unset {
            // Setting the variable would not help where the engine is not supported.
            for section in &sections {
                reading::check_engine(section, &translation)?;
            }
            return Err(unset);
        }
        let jobs = read_jobs(&sections, &translation)?;
        let written = WrittenJobs {
            sections: &sections,
            global: &read.global,
        };
        if overrides.action != JobAction::Run {
            let executions = vec![JobExecution::default(); jobs.len()];
            return Ok(Self {
                jobs: written.describe(&jobs, executions),
                ..Self::default()
            });
        }
        let PlacedJobs { plan, executions } = place_jobs(&jobs, &translation)?;
        Ok(Self {
            plan,
            found_files: translation.found_files(),
            notes: translation.into_notes(jobs.len()),
            jobs: written.describe(&jobs, executions),
        })
    }
}

/// Reads the sections as jobs, and then applies what concerns all jobs of a run.
fn read_jobs(sections: &[Section], translation: &Translation<'_>) -> Translated<Vec<FioJob>> {
    let mut jobs = Vec::new();
    let mut copies = 0;
    for section in sections {
        let job = match translation.overrides.action {
            JobAction::Run | JobAction::Check => {
                let expanded = with_found_files(section, translation)?;
                let mut job = reading::read_job(&expanded, copies, translation)?;
                job.shown.opendir_files = opendir_files(section, &expanded);
                if finds_no_file(section, &expanded) {
                    check_moves_nothing(&job, translation)?;
                    job.moves_nothing = true;
                }
                job
            }
            JobAction::ShowCommand => {
                reading::read_job(&reading::without_refused(section), copies, translation)?
            }
        };
        copies += job.copies.count;
        jobs.push(job);
    }
    for (index, section) in sections.iter().enumerate().skip(1) {
        // As in fio, the jobs of a file wait for those of the file before it.
        jobs[index].turn.waits |= section.file != sections[index - 1].file;
    }
    check_copies(&jobs)?;
    share_exitall(&mut jobs);
    replace_creating_jobs(&mut jobs);
    if translation.overrides.action == JobAction::Run {
        spread::mark_jobs_without_files(&mut jobs, translation);
        spread::mark_kept_files(&mut jobs, translation);
        spread::settle_appends(&mut jobs, translation)?;
        spread::check_locks(&jobs, translation)?;
    }
    Ok(jobs)
}

/// The plan of jobs, and how it carries them out.
struct PlacedJobs {
    plan: PlanFile,
    /// By job.
    executions: Vec<JobExecution>,
}

/// Divides the jobs into parts of one file or directory each, and plans the workloads of all parts.
/// The copies get their numbers once all parts are known.
fn place_jobs(jobs: &[FioJob], translation: &Translation<'_>) -> Translated<PlacedJobs> {
    let mut executions = Vec::new();
    let mut all_parts: Vec<FioJob> = Vec::new();
    let mut copies = 0;
    let mut waits = false;
    // Sections of jobs that are over before they begin.
    let mut over: Vec<&str> = Vec::new();
    for job in jobs {
        waits |= job.turn.waits;
        let mut parts = Vec::new();
        if job.moves_nothing || job.start_failure.is_some() {
            over.push(&job.section);
        } else {
            parts = spread::spread(job, translation)?;
        }
        for part in &mut parts {
            // As in fio, nothing waits for them.
            part.turn.waits_for = match part.turn.waits_for.take() {
                Some(awaited) if over.contains(&awaited.name.as_str()) => None,
                awaited => awaited,
            };
        }
        number_copies(&mut parts, copies);
        copies += job.copies.count;
        executions.push(JobExecution::from_parts(job, &parts));
        if let Some(first) = parts.first_mut() {
            // Also where the job that waits is one that moves nothing.
            first.turn.waits |= waits && !all_parts.is_empty();
            waits = false;
        }
        all_parts.extend(parts);
    }
    if all_parts.is_empty() {
        return Ok(PlacedJobs {
            plan: PlanFile::default(),
            executions,
        });
    }
    let placements = placement::place(&all_parts, translation)?;
    let planned = workloads::plan_jobs(&all_parts, &placements, translation)?;
    let mut workloads_by_part = planned.workloads.into_iter();
    for (job, execution) in jobs.iter().zip(&mut executions) {
        for workloads in workloads_by_part.by_ref().take(execution.part_count) {
            // A job that only creates its files has no workload. Its plan has one, a read.
            if job.file_set.only_creates {
                let names = workloads.into_iter().map(|workload| workload.name);
                execution.layout_workloads.extend(names);
            } else {
                execution.workloads.extend(workloads);
            }
        }
    }
    Ok(PlacedJobs {
        plan: planned.plan,
        executions,
    })
}

/// The parts and workloads that carry out a job.
#[derive(Debug, Clone)]
struct JobExecution {
    /// The number of parts that the job was divided into.
    part_count: usize,
    /// The existing files that each copy visits in turn.
    visited_files: usize,
    /// The new files that each copy has.
    new_files: u64,
    workloads: Vec<JobWorkload>,
    /// Names of the workloads before which the files of a job are made that does nothing else.
    layout_workloads: Vec<String>,
}

impl Default for JobExecution {
    fn default() -> Self {
        Self {
            part_count: 1,
            visited_files: 1,
            new_files: 1,
            workloads: Vec::new(),
            layout_workloads: Vec::new(),
        }
    }
}

impl JobExecution {
    /// The job that was divided into these; their workloads are not known yet.
    fn from_parts(job: &FioJob, parts: &[FioJob]) -> Self {
        let Some(first) = parts.first() else {
            return Self {
                part_count: 0,
                ..Self::default()
            };
        };
        // Where the copies are divided among the files, each has one.
        let has_all_copies = first.copies.count == job.copies.count;
        Self {
            part_count: parts.len(),
            visited_files: if job.file_set.filename.is_some() && has_all_copies {
                parts.len()
            } else {
                1
            },
            new_files: first.file_set.count,
            workloads: Vec::new(),
            layout_workloads: Vec::new(),
        }
    }
}

/// Gives each part of a job the number of its first copy among those of all jobs. `copies_before`
/// are those of the jobs before it.
fn number_copies(parts: &mut [FioJob], copies_before: u64) {
    let mut first_copy = copies_before;
    let mut copies = copies_before;
    for job in parts {
        if !job.copies.are_of_part_before {
            first_copy = copies;
            copies += job.copies.count;
        }
        job.copies.first = first_copy;
    }
}

/// Refuses a job that moves nothing where its end would end others, and where the jobs measure the
/// disk.
fn check_moves_nothing(job: &FioJob, translation: &Translation<'_>) -> Translated<()> {
    if job.shown.error_block_bytes.is_some() {
        return Err(job.error_without_options(
            "fio counts errors of blocks (block_error_percentiles) only in a single file",
        ));
    }
    if translation.is_as_fio() && !job.turn.exits_all {
        return Ok(());
    }
    Err(job.error_without_options(
        "fio moves nothing where opendir finds no file; name files, or remove opendir",
    ))
}

/// As in fio, `exitall` of one job is that of all. Without it, `exit_what` of a job has no effect.
fn share_exitall(jobs: &mut [FioJob]) {
    let exits_all = jobs.iter().any(|job| job.turn.exits_all);
    for job in jobs {
        job.turn.exits_all = exits_all;
        job.turn.ends_everything &= exits_all;
    }
}

/// Refuses more jobs and copies than [`COPIES_MAX`].
fn check_copies(jobs: &[FioJob]) -> Translated<()> {
    let mut copies = 0;
    for job in jobs {
        copies += job.copies.count;
        if copies > COPIES_MAX {
            return Err(job.source.error(format!(
                "the file has more than {COPIES_MAX} jobs, copies (numjobs) included; use fewer"
            )));
        }
    }
    Ok(())
}

/// Makes jobs that only create their files (`create_only`) reads of one block, because a file is
/// filled for a workload.
fn replace_creating_jobs(jobs: &mut [FioJob]) {
    for job in jobs {
        if !job.file_set.only_creates {
            continue;
        }
        job.extent.ops = Some(1);
        job.extent.is_time_based = false;
        job.flags = WorkloadFlags {
            rw: Some(Rw::RANDREAD),
            bs: job.flags.bs,
            engine: job.flags.engine,
            depth: Some(Count(1)),
            ..WorkloadFlags::default()
        };
    }
}

/// Jobs as their author wrote them.
struct WrittenJobs<'a> {
    sections: &'a [Section],
    global: &'a [Rc<Setting>],
}

impl WrittenJobs<'_> {
    /// The jobs with their options and workloads, for fio's output.
    fn describe(&self, jobs: &[FioJob], executions: Vec<JobExecution>) -> DescribedJobs {
        let mut described = Vec::new();
        let mut group = 0;
        for (index, execution) in executions.into_iter().enumerate() {
            let job = &jobs[index];
            if index > 0 && (job.turn.waits || job.shown.begins_group) {
                group += 1;
            }
            described.push(DescribedJob {
                name: job.name.clone(),
                group,
                options: own_options(&self.sections[index]),
                workloads: execution.workloads,
                layout_workloads: execution.layout_workloads,
                copies: job.copies.count,
                start_failure: job.start_failure,
                opendir_files: job.shown.opendir_files,
                files: execution.visited_files,
                new_files: execution.new_files,
                block_sizes: job.shown.sizes,
                base: job.shown.base,
            });
        }
        DescribedJobs {
            global: self
                .global
                .iter()
                .map(|setting| setting.option.clone())
                .collect(),
            jobs: described,
        }
    }
}

/// The options that the section itself sets, without those of `[global]`.
fn own_options(section: &Section) -> Vec<JobOption> {
    section
        .settings
        .iter()
        .filter(|setting| setting.scope == Scope::Own)
        .map(|setting| setting.option.clone())
        .collect()
}

/// The sections with these names, in the order of the file; all of them without names.
fn named_sections(mut sections: Vec<Section>, names: &[String]) -> Translated<Vec<Section>> {
    for name in names {
        if sections.iter().all(|section| section.name != *name) {
            let listed: Vec<String> = sections
                .iter()
                .take(SECTIONS_LISTED)
                .map(|section| quoted(&section.name))
                .collect();
            let more = if sections.len() > SECTIONS_LISTED {
                " and others"
            } else {
                ""
            };
            return Err(sections[0].source.error(format!(
                "there is no section '{name}'; the file has {}{more}",
                listed.join(", ")
            )));
        }
    }
    sections.retain(|section| names.is_empty() || names.contains(&section.name));
    Ok(sections)
}

#[cfg(test)]
mod tests;
