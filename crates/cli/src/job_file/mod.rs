//! Job files of fio, translated into the structure that a plan file in TOML gives; the code behind
//! it does not know fio. An option that would change the load is refused with its line; other
//! differences are reported. Pure: facts about the machine and its files come from [`Environment`].

mod environment;
mod jobs;
mod placement;
mod reading;
mod sections;
mod spread;
mod translation;
mod workloads;

pub use environment::{Environment, Keywords, PathKind, System, read_text};
pub use sections::JobText;
pub use translation::{CliOverrides, Closeness, JobFileError};

use crate::plan_file::{PlanFile, quoted};
use crate::workload::{Count, WorkloadFlags};
use diskproof_compat::{DescribedJob, DescribedJobs, JobWorkload};
use diskproof_model::rw::Rw;
use jobs::FioJob;
use sections::{Scope, Section, Setting};
use std::path::Path;
use std::rc::Rc;
use translation::{Translated, Translation};

/// Jobs times their copies: more threads than any machine gains from.
const COPIES_MAX: u64 = 4096;
/// An error about an unknown section lists this many.
const SECTIONS_LISTED: usize = 12;

/// A translated job file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobFile {
    /// The structure of a plan file.
    pub plan: PlanFile,
    /// Differences from fio, one sentence each.
    pub notes: Vec<String>,
    /// The jobs, with the workloads that carry them out.
    pub jobs: DescribedJobs,
}

impl JobFile {
    /// Translates `text`, the content of the job file at `path`.
    pub fn translate(
        text: &str,
        path: &Path,
        overrides: CliOverrides<'_>,
        environment: &dyn Environment,
    ) -> Result<Self, JobFileError> {
        let text = text.into();
        Self::translate_all(&[JobText::File { text, path }], overrides, environment)
    }

    /// Translates several texts with jobs as one.
    pub fn translate_all(
        texts: &[JobText<'_>],
        overrides: CliOverrides<'_>,
        environment: &dyn Environment,
    ) -> Result<Self, JobFileError> {
        let read = sections::read_sections(texts, environment)?;
        let (sections, global) = (select(read.sections, overrides.sections)?, read.global);
        let translation = Translation::new(overrides, environment);
        if let Some(unset) = read.unset {
            // Setting the variable would not help where the engine is not supported.
            for section in &sections {
                reading::check_engine(section, &translation)?;
            }
            return Err(unset);
        }
        let jobs = sections.iter();
        let jobs = jobs.map(|section| reading::read_job(section, &translation));
        let mut jobs = jobs.collect::<Translated<Vec<_>>>()?;
        check_copies(&jobs)?;
        make_only(&mut jobs)?;
        if overrides.only_options {
            let files = vec![FileCounts::default(); jobs.len()];
            let workloads = vec![Vec::new(); jobs.len()];
            return Ok(Self {
                jobs: describe(&jobs, &files, &sections, &global, workloads),
                ..Self::default()
            });
        }
        spread::mark_kept_files(&mut jobs, &translation);
        let parts = jobs.iter().map(|job| spread::spread(job, &translation));
        let parts = parts.collect::<Translated<Vec<_>>>()?;
        let mut files: Vec<FileCounts> = Vec::new();
        for (job, parts) in jobs.iter().zip(&parts) {
            files.push(FileCounts {
                visited: visited_files(job, parts),
                of_copy: parts.first().map_or(1, |part| part.files),
            });
        }
        let mut all = parts.concat();
        let mut copies = 0;
        for job in &mut all {
            job.first_copy = copies;
            copies += job.numjobs;
        }
        let placements = placement::place(&all, &translation)?;
        let (plan, of_parts) = workloads::plan(&all, &placements, &translation)?;
        let mut of_parts = of_parts.into_iter();
        let of_job = |parts: &Vec<FioJob>| of_parts.by_ref().take(parts.len()).flatten().collect();
        let mut of_jobs: Vec<Vec<JobWorkload>> = parts.iter().map(of_job).collect();
        if jobs[0].only_creates {
            // The read that a plan needs is none of the job.
            of_jobs.iter_mut().for_each(Vec::clear);
        }
        Ok(Self {
            plan,
            notes: translation.into_notes(jobs.len()),
            jobs: describe(&jobs, &files, &sections, &global, of_jobs),
        })
    }
}

/// The files of a job.
#[derive(Debug, Clone, Copy)]
struct FileCounts {
    /// How many existing files each copy visits in turn.
    visited: usize,
    /// How many new ones each copy has.
    of_copy: u64,
}

impl Default for FileCounts {
    fn default() -> Self {
        Self {
            visited: 1,
            of_copy: 1,
        }
    }
}

/// The number of existing files that each copy of a job visits in turn. Where the copies are
/// divided among the files, each has one.
fn visited_files(job: &FioJob, parts: &[FioJob]) -> usize {
    let has_all = parts.first().is_none_or(|part| part.numjobs == job.numjobs);
    if job.filename.is_some() && has_all {
        parts.len()
    } else {
        1
    }
}

fn check_copies(jobs: &[FioJob]) -> Translated<()> {
    let mut copies = 0;
    for job in jobs {
        copies += job.numjobs;
        if copies > COPIES_MAX {
            return Err(job.source.error(format!(
                "the file has more than {COPIES_MAX} jobs, copies (numjobs) included; use fewer"
            )));
        }
    }
    Ok(())
}

/// Jobs that only make their files (`create_only`) become reads of one block, because a plan has at
/// least one workload; the scratch file is filled before.
fn make_only(jobs: &mut [FioJob]) -> Translated<()> {
    if jobs.iter().all(|job| !job.only_creates) {
        return Ok(());
    }
    if let Some(job) = jobs.iter().find(|job| !job.only_creates) {
        return Err(job.error(
            "other jobs have create_only, which is supported only for all jobs of a run; run them \
             one after the other",
        ));
    }
    for job in jobs {
        job.extent.ops = Some(1);
        job.extent.is_time_based = false;
        job.numjobs = 1;
        job.flags = WorkloadFlags {
            rw: Some(Rw::RANDREAD),
            bs: job.flags.bs,
            engine: job.flags.engine,
            depth: Some(Count(1)),
            ..WorkloadFlags::default()
        };
    }
    Ok(())
}

/// Jobs as their output shows them. `workloads` has those of each.
fn describe(
    jobs: &[FioJob],
    files: &[FileCounts],
    sections: &[Section],
    global: &[Rc<Setting>],
    workloads: Vec<Vec<JobWorkload>>,
) -> DescribedJobs {
    let is_own = |one: &&Rc<Setting>| one.scope == Scope::Own;
    let mut described = Vec::new();
    let mut group = 0;
    for (index, (job, workloads)) in jobs.iter().zip(workloads).enumerate() {
        group += usize::from(index > 0 && (job.waits || job.begins_group));
        let own = sections[index].settings.iter().filter(is_own);
        described.push(DescribedJob {
            name: job.name.clone(),
            group,
            options: own.map(|one| one.option.clone()).collect(),
            workloads,
            copies: job.numjobs,
            files: files[index].visited,
            new_files: files[index].of_copy,
        });
    }
    DescribedJobs {
        global: global.iter().map(|one| one.option.clone()).collect(),
        jobs: described,
    }
}

/// The sections with these names, in the order of the file; all of them without names.
fn select(mut sections: Vec<Section>, names: &[String]) -> Translated<Vec<Section>> {
    for name in names {
        if sections.iter().all(|section| section.name != *name) {
            let listed = sections.iter().take(SECTIONS_LISTED);
            let listed: Vec<String> = listed.map(|section| quoted(&section.name)).collect();
            let more = match sections.len() {
                0..=SECTIONS_LISTED => "",
                _ => " and others",
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
