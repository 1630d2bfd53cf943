//! Jobs that name several files or directories. A job on several existing files or disks becomes
//! one job for each, which share its depth, and whose figures are added again; several directories
//! divide the copies of a job among them, as in fio. Opens nothing.

use super::environment::{CliOverrides, Environment, PathKind};
use super::error::{JobFileError, quoted};
use super::jobs::{Filename, FioJob, JobDistribution};
use super::notes::{TranslationNote, TranslationNotes};
use super::numbers::Amount;
use crate::workload::Order;
use diskproof_compat::JobWorkload;
use std::path::{Path, PathBuf};

/// Jobs with one file or directory each.
pub(crate) struct SpreadJobs {
    /// The jobs.
    pub jobs: Vec<FioJob>,
    /// For each of them, the index of the job that it is a part of.
    origins: Vec<usize>,
    /// For each original job, the existing files that it visits in turn; 1 for all others.
    pub files: Vec<usize>,
}

impl SpreadJobs {
    /// The workloads of the parts, for each of this many original jobs.
    pub(crate) fn gathered(
        &self,
        of_parts: Vec<Vec<JobWorkload>>,
        jobs: usize,
    ) -> Vec<Vec<JobWorkload>> {
        let mut gathered = vec![Vec::new(); jobs];
        for (origin, workloads) in self.origins.iter().zip(of_parts) {
            gathered[*origin].extend(workloads);
        }
        gathered
    }
}

/// Divides the jobs.
pub(crate) fn spread(
    jobs: &[FioJob],
    overrides: CliOverrides<'_>,
    environment: &dyn Environment,
    notes: &mut TranslationNotes,
) -> Result<SpreadJobs, JobFileError> {
    let mut all = SpreadJobs {
        jobs: Vec::new(),
        origins: Vec::new(),
        files: Vec::new(),
    };
    for (origin, job) in jobs.iter().enumerate() {
        let parts = match &job.filename {
            // The targets of the command line replace them.
            _ if !overrides.targets.is_empty() => vec![job.clone()],
            Some(file) if file.names.len() > 1 => over_files(job, file, environment, notes)?,
            // As in fio, a job with file names takes the first directory.
            Some(_) => vec![job.clone()],
            None if job.directories.len() > 1 => over_directories(job)?,
            None => over_places(job, environment)?,
        };
        let over_files = job.filename.is_some();
        all.files.push(if over_files { parts.len() } else { 1 });
        all.origins.extend(parts.iter().map(|_| origin));
        all.jobs.extend(parts);
    }
    Ok(all)
}

/// The path of a file of the job.
fn path_of(job: &FioJob, name: &str) -> PathBuf {
    match job.directories.first() {
        // As in fio, the directory precedes even an absolute name.
        Some(directory) => PathBuf::from(format!("{}/{name}", directory.trim_end_matches('/'))),
        None => PathBuf::from(name),
    }
}

/// The file of each copy of a job, as fio names it.
pub(crate) fn paths_of(job: &FioJob, environment: &dyn Environment) -> Vec<PathBuf> {
    let copies = |path: PathBuf| vec![path; job.numjobs as usize];
    if let Some(file) = &job.filename {
        return copies(path_of(job, &file.names[0]));
    }
    // fio takes the name of a section for a device where there is one.
    let device = path_of(job, &job.section);
    if job.section.contains('/') && matches!(environment.found(&device), PathKind::Device(_)) {
        return copies(device);
    }
    let name = |copy: u64| {
        let format = job
            .filename_format
            .replace("$jobnum", &copy.to_string())
            .replace("$filenum", "0")
            .replace("$clientuid", "");
        path_of(job, &format.replace("$jobname", &job.section))
    };
    (0..job.numjobs).map(name).collect()
}

/// The directory that a file of this path is in.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn over_files(
    job: &FioJob,
    file: &Filename,
    environment: &dyn Environment,
    notes: &mut TranslationNotes,
) -> Result<Vec<FioJob>, JobFileError> {
    let paths: Vec<PathBuf> = file.names.iter().map(|name| path_of(job, name)).collect();
    let is_new = |path: &PathBuf| environment.found(path) == PathKind::Nothing;
    if paths.iter().all(is_new) {
        return Ok(vec![over_new_files(job, file, &paths, notes)?]);
    }
    if let Some(missing) = paths.iter().find(|path| is_new(path)) {
        let shown = quoted(&missing.display().to_string());
        return Err(file.source.error(format!(
            "{shown} does not exist, but other files do; create it, or write a section for each"
        )));
    }
    let parts = paths.len() as u64;
    let mut shared = job.clone();
    let of_bytes = |amount: Option<Amount>| match amount {
        Some(Amount::Bytes(bytes)) => Some(Amount::Bytes(bytes / parts)),
        other => other,
    };
    // All requests in flight together are those of the job.
    match (job.depth % parts, job.numjobs % parts) {
        (0, _) => shared.depth /= parts,
        (_, 0) => shared.numjobs /= parts,
        _ => {
            return Err(file.source.error(format!(
                "[{}]: each of the {parts} files gets its own queue, but neither iodepth={} nor \
                 numjobs={} is a multiple of {parts}; use a multiple, or write a section for each",
                job.section, job.depth, job.numjobs
            )));
        }
    }
    shared.extent.size = of_bytes(job.extent.size);
    shared.extent.io_size = of_bytes(job.extent.io_size);
    shared.extent.ops = job.extent.ops.map(|ops| ops.div_ceil(parts));
    shared.rate = job.rate.map(|rate| rate / parts as f64);
    notes.add(TranslationNote::Spread, &job.section);
    Ok(parts_of(
        &shared,
        file.names.iter().map(|name| {
            let file = Some(Filename {
                names: vec![name.clone()],
                source: file.source.clone(),
            });
            move |part: &mut FioJob| part.filename = file
        }),
    ))
}

/// Files that do not exist become one of their total size, where that is the same load.
fn over_new_files(
    job: &FioJob,
    file: &Filename,
    paths: &[PathBuf],
    notes: &mut TranslationNotes,
) -> Result<FioJob, JobFileError> {
    let parents: Vec<Option<&Path>> = paths.iter().map(|path| path.parent()).collect();
    if parents.iter().any(|parent| *parent != parents[0]) {
        return Err(file.source.error(
            "new files in several directories are not supported; write a section for each",
        ));
    }
    let is_uniform = job.rw.order == Order::Random && job.distribution == JobDistribution::Uniform;
    if !is_uniform {
        return Err(file.source.error(
            "several new files for one job are supported only with uniformly random requests, \
             because they become one file; write a section for each",
        ));
    }
    notes.add(TranslationNote::Files, &job.section);
    let mut single = job.clone();
    if let Some(file) = &mut single.filename {
        file.names.truncate(1);
    }
    Ok(single)
}

/// fio gives the directories to the copies of a job in turn.
fn over_directories(job: &FioJob) -> Result<Vec<FioJob>, JobFileError> {
    let count = job.directories.len() as u64;
    // With fewer copies the last directories stay unused.
    let used = count.min(job.numjobs);
    if !job.numjobs.is_multiple_of(used) {
        return Err(job.source.error(format!(
            "[{}]: numjobs={} copies cannot be divided among {count} directories; use a multiple, \
             or write a section for each",
            job.section, job.numjobs
        )));
    }
    let shared = FioJob {
        numjobs: job.numjobs / used,
        ..job.clone()
    };
    let directories = job.directories.iter().take(used as usize);
    Ok(parts_of(
        &shared,
        directories.map(|directory| {
            let directories = vec![directory.clone()];
            move |part: &mut FioJob| part.directories = directories
        }),
    ))
}

/// Copies whose files are on several disks, or in several directories, become a job each.
fn over_places(job: &FioJob, environment: &dyn Environment) -> Result<Vec<FioJob>, JobFileError> {
    let paths = paths_of(job, environment);
    let place = |path: &PathBuf| match environment.found(path) {
        PathKind::Device(_) => path.clone(),
        _ => directory_of(path).to_path_buf(),
    };
    let first = place(&paths[0]);
    if paths.iter().all(|path| place(path) == first) {
        return Ok(vec![job.clone()]);
    }
    if job.extent.increment > 0 {
        return Err(job.source.error(format!(
            "[{}]: offset_increment with files in several directories is not supported; write a \
             section for each",
            job.section
        )));
    }
    let shared = FioJob {
        numjobs: 1,
        ..job.clone()
    };
    let copies = (0..paths.len()).map(|copy| {
        let format = job.filename_format.replace("$jobnum", &copy.to_string());
        move |part: &mut FioJob| part.filename_format = format
    });
    Ok(parts_of(&shared, copies))
}

/// A part for each change; they run together.
fn parts_of<Change: FnOnce(&mut FioJob)>(
    shared: &FioJob,
    changes: impl Iterator<Item = Change>,
) -> Vec<FioJob> {
    let mut parts = Vec::new();
    for (index, change) in changes.enumerate() {
        let mut part = shared.clone();
        change(&mut part);
        if index > 0 {
            (part.waits, part.waits_for, part.begins_group) = (false, None, false);
        }
        parts.push(part);
    }
    parts
}
