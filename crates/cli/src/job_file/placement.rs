//! Assigns the jobs of a file to targets: existing files and devices become targets, and files that
//! do not exist become parts of one scratch file. Opens nothing.

use super::environment::PathKind;
use super::jobs::FioJob;
use super::reading::FILENAME_FORMAT_DEFAULT;
use super::spread::{check_end, growing_file, paths_of};
use super::translation::{Translated, Translation};
use crate::output_sink::directory_of;
use crate::plan_file::quoted;
use diskproof_compat::fio_values::Amount;
use diskproof_model::op::OpKind;
use diskproof_model::units::format_bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Parts of different jobs begin at multiples of this, which is a multiple of every sector, page
/// and flash block.
const PART_BYTES: u64 = 1 << 20;

/// A part of a target that a copy of a job uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilePart {
    /// First byte.
    pub start: u64,
    /// Its bytes; in a file of the copy's own, rounded down to whole blocks.
    pub length: u64,
    /// Its bytes as the job sets them.
    pub job_bytes: u64,
    /// Whether it is the whole file.
    pub is_whole_file: bool,
}

impl FilePart {
    fn end(self) -> u64 {
        self.start.saturating_add(self.length)
    }
}

/// The target of a job, and its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobPlacement {
    /// Index of the target.
    pub target: usize,
    /// The part of each copy.
    pub parts: Vec<FilePart>,
    /// Whether the job would be the first writer of a new file in fio.
    pub is_first_to_write: bool,
}

/// The targets of a job file, and the parts of its jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Placements {
    /// The targets, unless the command line names them.
    pub targets: Vec<PathBuf>,
    /// The size of each target. The targets of the command line share one entry, which is 0 when
    /// they differ in kind.
    pub total_bytes: Vec<u64>,
    /// Size of the scratch file.
    pub scratch_bytes: Option<u64>,
    /// The placement of each job.
    pub by_job: Vec<JobPlacement>,
    /// The name under which fio would leave the only new file.
    pub kept_name: Option<String>,
}

/// The target that holds a job's files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct TargetRoot {
    /// An existing file or device, or the directory of a scratch file; `None` for the targets of
    /// the command line.
    path: Option<PathBuf>,
    /// Its size, where it is known; the smallest of several.
    bytes: Option<u64>,
    /// Whether its files are scratch files.
    is_scratch: bool,
    /// Whether its file exists, and grows.
    grows: bool,
}

/// A job with its files, one for each copy.
struct JobFiles<'a> {
    job: &'a FioJob,
    root: TargetRoot,
    paths: &'a [PathBuf],
    /// Whether each copy has its own file.
    is_own: bool,
}

/// Places all jobs.
pub(crate) fn place(jobs: &[FioJob], translation: &Translation<'_>) -> Translated<Placements> {
    let targets = translation.overrides.targets;
    let paths: Vec<Vec<PathBuf>> = jobs.iter().map(|job| paths_of(job, translation)).collect();
    let of_jobs = jobs.iter().zip(&paths);
    let writing = of_jobs.clone().filter(|(job, _)| job.rw().changes_blocks());
    let places = Places {
        given: (!targets.is_empty()).then(|| given(translation)),
        written: writing.flat_map(|(_, paths)| paths).collect(),
        growing: growing_file(jobs, &paths, translation),
        translation,
    };
    let files = of_jobs.map(|(job, paths)| places.files(job, paths));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let mut roots: Vec<&TargetRoot> = Vec::new();
    for files in &files {
        check_scheduler(files, translation)?;
        if !roots.contains(&&files.root) {
            roots.push(&files.root);
        }
    }
    let mut placements = Placements::default();
    let mut by_job = BTreeMap::new();
    for (target, root) in roots.iter().enumerate() {
        let here = files.iter().enumerate();
        let here = here.filter(|(_, files)| files.root == **root);
        let (here, members): (Vec<usize>, Vec<&JobFiles<'_>>) = here.unzip();
        let (parts, total) = allocate(&members, root.bytes)?;
        if let (Some(path), Some(bytes), false) = (&root.path, root.bytes, root.is_scratch) {
            for (member, parts) in members.iter().zip(&parts) {
                let ends = parts.iter().map(|part| part.end());
                let end = ends.max().unwrap_or(0);
                check_end(member.job, end, (path, bytes), translation)?;
            }
        }
        for (index, parts) in parts.into_iter().enumerate() {
            let (member, earlier) = (members[index], &members[..index]);
            let is_used = earlier
                .iter()
                .any(|one| one.paths.contains(&member.paths[0]));
            let is_first_to_write = root.is_scratch
                && !root.grows
                && member.job.rw().is_only(OpKind::Write)
                && !member.job.overwrites
                && !is_used;
            let placement = JobPlacement {
                target,
                parts,
                is_first_to_write,
            };
            by_job.insert(here[index], placement);
        }
        placements.add_target(root, root.bytes.unwrap_or(total), &members, translation)?;
    }
    placements.by_job = by_job.into_values().collect();
    Ok(placements)
}

impl Placements {
    /// Adds a target, and a note where scratch files replace files of the job file.
    fn add_target(
        &mut self,
        root: &TargetRoot,
        total: u64,
        members: &[&JobFiles<'_>],
        translation: &Translation<'_>,
    ) -> Translated<()> {
        note_trimmed_files(root, members, translation);
        let mut paths: Vec<&PathBuf> = members.iter().flat_map(|one| one.paths).collect();
        paths.sort();
        paths.dedup();
        // A device and a directory have different sizes: no span covers both.
        let is_known = root.path.is_some() || root.bytes.is_some() || root.is_scratch;
        self.total_bytes.push(if is_known { total } else { 0 });
        self.targets.extend(root.path.clone());
        match &root.path {
            Some(_) if !root.is_scratch => return Ok(()),
            None if paths.len() > 1 => translation.note_line(format!(
                "the {} files of the jobs become adjacent parts of the target",
                paths.len()
            )),
            None => {}
            Some(directory) => {
                self.kept_name = kept_name(members, &paths, root.grows, translation);
                if self.scratch_bytes.is_some_and(|other| other != total) {
                    return Err(members[0].job.error(DIFFERENT_WORKLOADS));
                }
                let kept = self.kept_name.as_ref().filter(|_| translation.is_as_fio());
                let directory = translation.shown(directory);
                translation.note_line(match (paths.as_slice(), kept) {
                    ([path], Some(_)) => {
                        let what = if root.grows { "grows" } else { "is filled" };
                        let path = translation.shown(path);
                        format!("{path} {what} before its first use, and stays")
                    }
                    (paths, _) => replaced_text(paths, total, &directory, translation),
                });
            }
        }
        self.scratch_bytes = Some(total);
        Ok(())
    }
}

/// That a scratch file of so many bytes in a directory replaces files.
fn replaced_text(
    paths: &[&PathBuf],
    bytes: u64,
    directory: &str,
    translation: &Translation<'_>,
) -> String {
    let place = format!("{} in {directory}", format_bytes(bytes));
    let what = match paths {
        [path] => {
            let state = match translation.found(path) {
                PathKind::Nothing => "does not exist",
                _ => "stays unchanged",
            };
            let path = translation.shown(path);
            format!("{path} {state}: a scratch file of {place} replaces it")
        }
        several => {
            let files = several.len();
            format!("the {files} files of the jobs become parts of one scratch file of {place}")
        }
    };
    format!("{what}. The scratch file is filled before its first use and vanishes at the end")
}

/// Notes that jobs trim files.
fn note_trimmed_files(root: &TargetRoot, members: &[&JobFiles<'_>], translation: &Translation<'_>) {
    let is_device = |path: &PathBuf| matches!(translation.found(path), PathKind::Device(_));
    let is_file = root.is_scratch || root.path.as_ref().is_some_and(|path| !is_device(path));
    let trims = |job: &&FioJob| is_file && job.rw().makes(OpKind::Trim);
    for job in members.iter().map(|one| one.job).filter(trims) {
        translation.note(
            "fio trims block devices only, and fails on files (ENOTTY); here a trim punches a \
             hole into the file",
            &job.section,
        );
    }
}

/// The name of the only file, a new or growing one, that the jobs name and do not remove.
fn kept_name(
    members: &[&JobFiles<'_>],
    paths: &[&PathBuf],
    grows: bool,
    translation: &Translation<'_>,
) -> Option<String> {
    let [path] = paths else {
        return None;
    };
    let keeps = |one: &&JobFiles<'_>| one.job.filename.is_some() && !one.job.unlinks;
    let is_new = grows || translation.found(path) == PathKind::Nothing;
    let is_kept = is_new && members.iter().all(keeps);
    let name = path.file_name().filter(|_| is_kept);
    name.and_then(|name| name.to_str()).map(str::to_owned)
}

/// Refuses a scheduler that the disk does not have.
fn check_scheduler(files: &JobFiles<'_>, translation: &Translation<'_>) -> Translated<()> {
    let Some((wanted, source)) = &files.job.scheduler else {
        return Ok(());
    };
    let own = files.root.path.as_ref().map(std::slice::from_ref);
    for path in own.unwrap_or(translation.overrides.targets) {
        let present = translation.environment.scheduler(path);
        if present.as_ref() != Some(wanted) {
            let present = present.as_deref().unwrap_or("unknown");
            return Err(source.error(format!(
                "[{}]: ioscheduler={wanted}: the scheduler of {} is {present}, and diskproof \
                 changes no settings; write {wanted} to the disk's queue/scheduler in /sys/block, \
                 or remove the option",
                files.job.section,
                path.display()
            )));
        }
    }
    translation.ignore_option("ioscheduler", "the disk already has this scheduler");
    Ok(())
}

/// The error of jobs that differ between targets.
pub(crate) const DIFFERENT_WORKLOADS: &str = concat!(
    "the jobs differ between their disks or directories, and a plan runs the same workloads on ",
    "each target; run the sections one by one (--section NAME), or name the targets on the ",
    "command line"
);

/// The targets of the command line. The size of a directory is that of --size.
fn given(translation: &Translation<'_>) -> TargetRoot {
    let targets = translation.overrides.targets.iter();
    let found: Vec<PathKind> = targets.map(|target| translation.found(target)).collect();
    let bytes = found.iter().map(|found| match found {
        PathKind::File(bytes) | PathKind::Device(bytes) => Some(*bytes),
        // The probe of the targets reports what is wrong with the others.
        PathKind::Directory | PathKind::Nothing | PathKind::Other(_) => translation.overrides.size,
    });
    TargetRoot {
        // None, where one of them is.
        bytes: bytes.min().flatten(),
        is_scratch: found.iter().all(|found| *found == PathKind::Directory),
        ..TargetRoot::default()
    }
}

/// What decides where the files of jobs are.
struct Places<'a> {
    given: Option<TargetRoot>,
    /// The files that a job writes or trims.
    written: BTreeSet<&'a PathBuf>,
    /// The file that grows, and its bytes.
    growing: Option<(PathBuf, u64)>,
    translation: &'a Translation<'a>,
}

impl Places<'_> {
    /// The files of a job, and their target.
    fn files<'j>(&self, job: &'j FioJob, paths: &'j [PathBuf]) -> Translated<JobFiles<'j>> {
        let filename = job.filename.as_ref();
        let source = filename.map_or(&job.source, |(_, source)| source);
        let wrong = |why: String| source.error(format!("[{}]: {why}", job.section));
        let is_device = matches!(self.translation.found(&paths[0]), PathKind::Device(_));
        let root = match &self.given {
            Some(given) => given.clone(),
            None => self.root(job, paths, &paths[0]).map_err(wrong)?,
        };
        for path in paths.iter().skip(1).filter(|path| **path != paths[0]) {
            if self.given.is_none() && self.root(job, paths, path).map_err(wrong)? != root {
                return Err(wrong(
                    "its copies have files in several places; write a section for each".to_owned(),
                ));
            }
        }
        Ok(JobFiles {
            job,
            root,
            paths,
            is_own: job.filename.is_none() && !is_device,
        })
    }

    /// The target that holds one of the job's files.
    fn root(&self, job: &FioJob, paths: &[PathBuf], path: &PathBuf) -> Result<TargetRoot, String> {
        let shown = quoted(&self.translation.shown(path));
        if let Some((_, bytes)) = self.growing.as_ref().filter(|one| one.0 == *path) {
            return Ok(TargetRoot {
                bytes: Some(bytes.next_multiple_of(PART_BYTES)),
                grows: true,
                ..self.scratch_beside(path)?
            });
        }
        match self.translation.found(path) {
            PathKind::File(bytes) if self.is_replaced(job, paths, path, bytes) => {
                self.scratch_beside(path)
            }
            PathKind::File(bytes) | PathKind::Device(bytes) => Ok(TargetRoot {
                path: Some(path.clone()),
                bytes: Some(bytes),
                ..TargetRoot::default()
            }),
            PathKind::Directory => Err(format!(
                "{shown} is a directory; write it as directory, or name it on the command line"
            )),
            PathKind::Other(why) => Err(why),
            // A file in /dev would be made of memory.
            PathKind::Nothing if path.starts_with("/dev") && !path.starts_with("/dev/shm") => {
                Err(format!(
                    "{shown} does not exist; write the disk's name here, or name it on the command \
                     line"
                ))
            }
            PathKind::Nothing => self.scratch_beside(path),
        }
    }

    /// Whether a scratch file replaces an existing file. A file that the author names is used. One
    /// that fio names, and made in an earlier run, stays as it is, and so does one that
    /// `filename_format` names, unless it only needs to be read.
    fn is_replaced(&self, job: &FioJob, paths: &[PathBuf], path: &PathBuf, bytes: u64) -> bool {
        let is_too_small = matches!(job.extent.size, Some(Amount::Bytes(size)) if size > bytes);
        let is_one = paths.iter().all(|other| other == path);
        let is_named = job.filename_format != FILENAME_FORMAT_DEFAULT;
        let is_read = is_named && is_one && !is_too_small && !self.written.contains(path);
        job.filename.is_none() && !is_read
    }

    /// A scratch file in the directory of this path.
    fn scratch_beside(&self, path: &Path) -> Result<TargetRoot, String> {
        let directory = directory_of(path);
        match self.translation.found(directory) {
            PathKind::Directory => Ok(TargetRoot {
                path: Some(directory.to_path_buf()),
                bytes: self.translation.overrides.size,
                is_scratch: true,
                grows: false,
            }),
            PathKind::Other(why) => Err(why),
            _ => {
                let shown = quoted(&self.translation.shown(directory));
                Err(format!(
                    "the directory {shown} does not exist; create it, or name a target on the \
                     command line"
                ))
            }
        }
    }
}

/// The parts of each job's copies, and the bytes of all files together. A single file begins at 0
/// and may be as large as its target.
fn allocate(
    members: &[&JobFiles<'_>],
    whole: Option<u64>,
) -> Translated<(Vec<Vec<FilePart>>, u64)> {
    let mut paths = members.iter().flat_map(|one| one.paths);
    let is_single = paths.all(|path| *path == members[0].paths[0]);
    let whole = whole.filter(|_| is_single);
    let mut inside: Vec<Vec<FilePart>> = Vec::new();
    for files in members {
        let job = files.job;
        // A job without a size takes that of the file which an earlier one makes.
        let made = extents_of(members, &inside);
        let made = made.get(files.paths[0].as_path()).copied();
        let known = whole.or(made.filter(|_| job.extent.size.is_none()));
        let unit = job.smallest_block();
        let has_file = |other: &&&JobFiles<'_>| other.paths.contains(&files.paths[0]);
        let is_shared = members.iter().filter(has_file).count() > 1;
        let parts = (0..job.numjobs).map(|copy| {
            let mut part = part(job, copy, known)?;
            // The job visits neither the bytes behind the last whole block of its own file nor
            // those before its offset; unless another job visits the latter, the file need not
            // hold them.
            if files.is_own {
                part.length = part.length / unit * unit;
                if whole.is_none() && !is_shared {
                    part.start = 0;
                }
            }
            Ok(part)
        });
        inside.push(parts.collect::<Result<Vec<_>, _>>()?);
    }
    let extents = extents_of(members, &inside);
    let (mut starts, mut end): (BTreeMap<&Path, u64>, u64) = (BTreeMap::new(), 0);
    for files in members {
        // The copies of a job are adjacent, so that they can be one workload.
        end = end.checked_next_multiple_of(PART_BYTES).unwrap_or(u64::MAX);
        for path in files.paths {
            if !starts.contains_key(path.as_path()) {
                starts.insert(path, end);
                end = end.saturating_add(extents[path.as_path()]);
            }
        }
    }
    for (files, parts) in members.iter().zip(&mut inside) {
        for (path, part) in files.paths.iter().zip(parts) {
            let file_bytes = whole.unwrap_or(extents[path.as_path()]);
            part.is_whole_file &= part.length == file_bytes;
            part.start = part.start.saturating_add(starts[path.as_path()]);
        }
    }
    let end = end.checked_next_multiple_of(PART_BYTES);
    Ok((inside, end.unwrap_or(u64::MAX)))
}

/// The bytes that the first jobs, whose parts are known, use of each file.
fn extents_of<'a>(members: &[&JobFiles<'a>], inside: &[Vec<FilePart>]) -> BTreeMap<&'a Path, u64> {
    let mut extents: BTreeMap<&Path, u64> = BTreeMap::new();
    for (files, parts) in members.iter().zip(inside) {
        for (path, part) in files.paths.iter().zip(parts) {
            let extent = extents.entry(path).or_default();
            *extent = (*extent).max(part.end());
        }
    }
    extents
}

/// The part of its file that a copy of a job uses. `whole` is the size of the file, if it exists.
fn part(job: &FioJob, copy: u64, whole: Option<u64>) -> Translated<FilePart> {
    let of = |amount: Amount| match (amount, whole) {
        (Amount::Percent(_), None) => Err(job.error_without_options(
            "a value in percent needs an existing file or device; write it in bytes",
        )),
        (amount, whole) => Ok(amount.of(whole.unwrap_or(0))),
    };
    let (offset, increment) = (job.extent.offset, job.extent.increment);
    let start = of(offset)?.saturating_add(of(increment)?.saturating_mul(copy));
    // As in fio, only an offset in percent is moved to the next block.
    let start = match (offset, increment) {
        (Amount::Bytes(_), Amount::Bytes(_)) => start,
        _ => start.next_multiple_of(job.smallest_block().max(1)),
    };
    let rest = whole.map(|whole| whole.saturating_sub(start));
    let length = match (job.extent.size, rest) {
        (Some(size @ Amount::Percent(_)), Some(rest)) => of(size)?.min(rest),
        (Some(size), _) => of(size)?,
        (None, Some(rest)) => rest,
        (None, None) if job.extent.fills => {
            return Err(job.error_without_options(
                "fill_device on a new file would leave no free space in the filesystem; set size, \
                 or name an existing file or device",
            ));
        }
        (None, None) => {
            return Err(job.error_without_options(
                "the job has no size; add one such as size=1g, or set that of the scratch file \
                 with --size",
            ));
        }
    };
    // As in fio, a copy that begins inside the file ends at its end.
    let length = job.extent.file_bytes.map_or(length, |file_bytes| {
        length.min(file_bytes.saturating_sub(start))
    });
    if length < job.smallest_block() {
        return Err(job.error_without_options(
            "the job's part of the file is smaller than a block, or starts after the end of the \
             file; use a larger size, or a smaller bs or offset",
        ));
    }
    Ok(FilePart {
        start,
        // Zones go on to the end of the file.
        length: match (job.flags.shape.zone_stride, rest) {
            (Some(_), Some(rest)) => rest,
            _ => length,
        },
        job_bytes: length,
        is_whole_file: start == 0,
    })
}
