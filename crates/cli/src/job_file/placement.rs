//! Assigns the jobs of a file to targets: existing files and devices become targets, and files that
//! do not exist become parts of one scratch file. Opens nothing.
//!
//! Each job has a root, the target that holds its files (`roots`). The jobs of a root divide it
//! among their copies (`parts`).

mod notes;
mod parts;
mod roots;

use super::file_names::first_paths;
use super::jobs::FioJob;
use super::spread::{check_end, needed_bytes, vanishing_files};
use super::translation::{Translated, Translation};
use crate::plan_file::{KeptFile, ScratchFile};
use diskproof_model::op::OpKind;
use notes::{note_kept_files, note_replaced_files, note_spared_files, note_trimmed_files};
pub(crate) use parts::FilePart;
use parts::{Allocation, allocate};
use roots::{GivenTargets, JobFiles, RootFinder, TargetRoot};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The most blocks of which fio counts errors (`MAX_NR_BLOCK_INFOS`).
const ERROR_BLOCKS_MAX: u64 = 8192;

/// The target of a job, and its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobPlacement {
    /// The index of the target among those of the job file.
    pub target: usize,
    /// The part of each copy, in the order of the copies.
    pub parts: Vec<FilePart>,
    /// True if fio would create the job's file anew when the job begins to write it.
    pub is_first_to_write: bool,
    /// True if the target is a block device.
    pub is_device: bool,
}

/// The targets of a job file, and the parts of its jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Placements {
    /// The targets, unless the command line names them.
    pub targets: Vec<PathBuf>,
    /// The size of each target. The targets of the command line share one entry, which is 0 when
    /// they differ in kind.
    pub total_bytes: Vec<u64>,
    /// The scratch file of each target, unless the command line names the targets.
    pub scratch_files: Vec<ScratchFile>,
    /// The size of the scratch file in each target of the command line.
    given_bytes: Option<u64>,
    /// The placement of each job, in the order of the file.
    pub by_job: Vec<JobPlacement>,
}

/// Assigns the files of all jobs to targets, and their copies to parts of these. Fails where a job
/// does not fit.
pub(crate) fn place(jobs: &[FioJob], translation: &Translation<'_>) -> Translated<Placements> {
    let paths: Vec<Vec<PathBuf>> = jobs
        .iter()
        .map(|job| first_paths(job, translation))
        .collect();
    let root_finder = RootFinder {
        given: GivenTargets::find(translation),
        written: written_files(jobs, &paths),
        needed: needed_bytes(jobs, &paths, translation),
        vanishing: vanishing_files(jobs, &paths),
        translation,
    };
    let mut files = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        files.push(root_finder.job_files(job, &paths[index])?);
    }
    for job_files in &files {
        check_scheduler(job_files, translation)?;
    }
    let roots = distinct_roots(&files);
    let mut placements = Placements::default();
    let mut by_job = BTreeMap::new();
    for (target, root) in roots.iter().enumerate() {
        let RootMembers { indexes, members } = RootMembers::find(root, &files);
        let allocation = allocate(&members, root)?;
        check_ends(&members, &allocation, root, translation)?;
        check_error_blocks(&members, &allocation, translation)?;
        for (member, parts) in allocation.parts.into_iter().enumerate() {
            let placement = JobPlacement {
                target,
                parts,
                is_first_to_write: is_first_to_write(root, members[member], &members[..member]),
                is_device: root.is_device(),
            };
            by_job.insert(indexes[member], placement);
        }
        let target_bytes = root.bytes().unwrap_or(allocation.bytes);
        note_trimmed_files(root, &members, translation);
        note_spared_files(root, &members, translation);
        note_replaced_files(root, target_bytes, &members, translation);
        let file_end = allocation.file_end;
        placements.add_target(root, target_bytes, kept_file(root, &members, file_end));
    }
    placements.by_job = by_job.into_values().collect();
    note_kept_files(&roots, translation);
    Ok(placements)
}

/// The roots of all jobs, each once, in the order of the jobs.
fn distinct_roots<'f>(files: &'f [JobFiles<'_>]) -> Vec<&'f TargetRoot> {
    let mut roots: Vec<&TargetRoot> = Vec::new();
    for job_files in files {
        if !roots.contains(&&job_files.root) {
            roots.push(&job_files.root);
        }
    }
    roots
}

/// The jobs that share a root, in the order of the file.
struct RootMembers<'f, 'j> {
    /// The index of each among all jobs.
    indexes: Vec<usize>,
    members: Vec<&'f JobFiles<'j>>,
}

impl<'f, 'j> RootMembers<'f, 'j> {
    fn find(root: &TargetRoot, files: &'f [JobFiles<'j>]) -> Self {
        let mut found = Self {
            indexes: Vec::new(),
            members: Vec::new(),
        };
        for (index, job_files) in files.iter().enumerate() {
            if job_files.root == *root {
                found.indexes.push(index);
                found.members.push(job_files);
            }
        }
        found
    }
}

/// The files that a job writes or trims.
fn written_files<'a>(jobs: &[FioJob], paths: &'a [Vec<PathBuf>]) -> BTreeSet<&'a PathBuf> {
    let mut written = BTreeSet::new();
    for (index, job) in jobs.iter().enumerate() {
        if job.rw().changes_blocks() {
            written.extend(&paths[index]);
        }
    }
    written
}

/// Refuses jobs that end beyond the end of an existing file or device.
fn check_ends(
    members: &[&JobFiles<'_>],
    allocation: &Allocation,
    root: &TargetRoot,
    translation: &Translation<'_>,
) -> Translated<()> {
    let (TargetRoot::File { path, bytes } | TargetRoot::Device { path, bytes }) = root else {
        return Ok(());
    };
    for (member, parts) in allocation.parts.iter().enumerate() {
        let end = parts.iter().map(|part| part.end()).max().unwrap_or(0);
        check_end(members[member].job, end, path, *bytes, translation)?;
    }
    Ok(())
}

/// Refuses jobs of more blocks than fio can count errors of.
fn check_error_blocks(
    members: &[&JobFiles<'_>],
    allocation: &Allocation,
    translation: &Translation<'_>,
) -> Translated<()> {
    if !translation.is_as_fio() {
        return Ok(());
    }
    for (member, parts) in allocation.parts.iter().enumerate() {
        let job = members[member].job;
        let Some(block_bytes) = job.shown.error_block_bytes else {
            continue;
        };
        let bytes = parts.iter().map(|part| part.job_bytes).max().unwrap_or(0);
        let blocks = bytes / block_bytes.max(1);
        if !(1..=ERROR_BLOCKS_MAX).contains(&blocks) {
            return Err(job.error(format!(
                "block_error_percentiles: fio cannot calculate the block histogram of {blocks} \
                 blocks of the size of a trim, at most of {ERROR_BLOCKS_MAX}; remove the option"
            )));
        }
    }
    Ok(())
}

/// True if fio would create a job's file anew when the job begins to write it: no job before it has
/// used the file, and the job only writes, without `overwrite`.
fn is_first_to_write(root: &TargetRoot, member: &JobFiles<'_>, earlier: &[&JobFiles<'_>]) -> bool {
    let file = &member.paths[0];
    root.is_scratch()
        && !root.grows()
        && member.job.rw().is_only(OpKind::Write)
        && !member.job.file_set.overwrites
        && !earlier.iter().any(|other| other.paths.contains(file))
}

impl Placements {
    /// The size of the largest scratch file.
    pub(crate) fn scratch_bytes(&self) -> Option<u64> {
        let largest = self.scratch_files.iter().map(|file| file.bytes).max();
        match largest {
            None | Some(0) => self.given_bytes,
            Some(bytes) => Some(bytes),
        }
    }

    /// The scratch files, where they are not all of the same size and without a name.
    pub(crate) fn named_files(&self) -> Vec<ScratchFile> {
        let files: Vec<&ScratchFile> = self
            .scratch_files
            .iter()
            .filter(|file| file.bytes > 0)
            .collect();
        let are_alike = files
            .iter()
            .all(|file| file.kept.is_none() && *file == files[0]);
        if are_alike {
            Vec::new()
        } else {
            self.scratch_files.clone()
        }
    }

    /// Adds a target of `target_bytes`, or the targets of the command line.
    fn add_target(&mut self, root: &TargetRoot, target_bytes: u64, kept: Option<KeptFile>) {
        let Some(path) = root.path() else {
            // A device and a directory have different sizes: no span covers both.
            let is_known = root.bytes().is_some() || root.is_scratch();
            self.total_bytes
                .push(if is_known { target_bytes } else { 0 });
            self.scratch_files.push(ScratchFile::default());
            self.given_bytes = Some(target_bytes);
            return;
        };
        self.targets.push(path.to_path_buf());
        self.total_bytes.push(target_bytes);
        self.scratch_files.push(if root.is_scratch() {
            ScratchFile {
                bytes: target_bytes,
                kept,
            }
        } else {
            ScratchFile::default()
        });
    }
}

/// The file, or the files, under which a scratch file stays. A single one ends at `file_end`.
fn kept_file(root: &TargetRoot, members: &[&JobFiles<'_>], file_end: u64) -> Option<KeptFile> {
    let names = root.kept_names();
    if names.is_empty() {
        return None;
    }
    let mut file_bytes = file_end;
    let mut part_start = 0;
    if names.len() > 1 {
        file_bytes = 0;
        for member in members {
            part_start = member.job.start_in_each_file();
            file_bytes = file_bytes.max(member.job.bytes_of_each_file().unwrap_or(0));
        }
    }
    Some(KeptFile {
        names: names.to_vec(),
        file_bytes,
        part_start,
        is_complete: root.is_complete(),
    })
}

/// Refuses a scheduler that the disk does not have.
fn check_scheduler(files: &JobFiles<'_>, translation: &Translation<'_>) -> Translated<()> {
    let Some(wanted) = &files.job.scheduler else {
        return Ok(());
    };
    let paths: Vec<&Path> = match files.root.path() {
        Some(path) => vec![path],
        None => translation
            .overrides
            .targets
            .iter()
            .map(PathBuf::as_path)
            .collect(),
    };
    for path in paths {
        let present = translation.environment.scheduler(path);
        if present.as_ref() != Some(&wanted.name) {
            return Err(wanted.source.error(format!(
                "[{}]: ioscheduler={}: the scheduler of {} is {}, and diskproof changes no \
                 settings; write {} to the disk's queue/scheduler in /sys/block, or remove the \
                 option",
                files.job.section,
                wanted.name,
                path.display(),
                present.as_deref().unwrap_or("unknown"),
                wanted.name
            )));
        }
    }
    translation.ignore_option("ioscheduler", "the disk already has this scheduler");
    Ok(())
}
