//! Assigns the jobs of a file to targets: existing files and devices become targets, and files that
//! do not exist become parts of one scratch file. Opens nothing.

use super::environment::PathKind;
use super::jobs::{FILENAME_FORMAT_DEFAULT, FioJob, GivenName};
use super::spread::{check_end, kept_names, needed_bytes, paths_of, vanishing_files};
use super::translation::{Translated, Translation};
use crate::output_sink::directory_of;
use crate::plan_file::{KeptFile, ScratchFile, quoted};
use diskproof_compat::fio_values::Amount;
use diskproof_model::op::OpKind;
use diskproof_model::units::format_bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Parts of different jobs begin at multiples of this, which is a multiple of every sector, page
/// and flash block.
const PART_BYTES: u64 = 1 << 20;
/// Direct I/O takes a page on every filesystem.
const PAGE_BYTES: u64 = 4096;

/// A part of a target that a copy of a job uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilePart {
    /// First byte.
    pub start: u64,
    /// Its bytes; in a file of the copy's own, rounded down to whole blocks.
    pub length: u64,
    /// Its bytes as the job sets them. They may be more than lie in the file: then the job starts
    /// again.
    pub job_bytes: u64,
    /// The bytes of a file that stays.
    pub file_bytes: u64,
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
    /// The scratch file of each target, unless the command line names the targets.
    pub scratch_files: Vec<ScratchFile>,
    /// The size of the scratch file in each target of the command line.
    given_bytes: Option<u64>,
    /// The placement of each job.
    pub by_job: Vec<JobPlacement>,
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
    /// The names under which its file, or its files, stay; none of one that vanishes.
    names: Vec<String>,
    /// Whether it is a block device, which ends where it ends.
    is_device: bool,
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
        needed: needed_bytes(jobs, &paths),
        vanishing: vanishing_files(jobs, &paths),
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
        let (parts, total) = allocate(&members, root)?;
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
        placements.add_target(root, root.bytes.unwrap_or(total), &members, translation);
    }
    placements.by_job = by_job.into_values().collect();
    note_kept(&roots, translation);
    Ok(placements)
}

impl Placements {
    /// The size of the largest scratch file.
    pub(crate) fn scratch_bytes(&self) -> Option<u64> {
        let sizes = self.scratch_files.iter().map(|file| file.bytes);
        sizes.filter(|bytes| *bytes > 0).max().or(self.given_bytes)
    }

    /// The scratch files, where they are not all of the same size and without a name.
    pub(crate) fn named_files(&self) -> Vec<ScratchFile> {
        let mut files = self.scratch_files.iter().filter(|file| file.bytes > 0);
        let is_alike = match files.next() {
            Some(first) => first.kept.is_none() && files.all(|file| file == first),
            None => true,
        };
        if is_alike {
            Vec::new()
        } else {
            self.scratch_files.clone()
        }
    }

    /// Adds a target, and a note where scratch files replace files of the job file.
    fn add_target(
        &mut self,
        root: &TargetRoot,
        total: u64,
        members: &[&JobFiles<'_>],
        translation: &Translation<'_>,
    ) {
        note_trimmed_files(root, members, translation);
        let mut paths: Vec<&PathBuf> = members.iter().flat_map(|one| one.paths).collect();
        paths.sort();
        paths.dedup();
        // A device and a directory have different sizes: no span covers both.
        let is_known = root.path.is_some() || root.bytes.is_some() || root.is_scratch;
        self.total_bytes.push(if is_known { total } else { 0 });
        self.targets.extend(root.path.clone());
        let file = match &root.path {
            Some(_) if root.is_scratch => ScratchFile {
                bytes: total,
                kept: kept_file(root, members),
            },
            _ => ScratchFile::default(),
        };
        self.scratch_files.push(file);
        if root.path.is_none() {
            self.given_bytes = Some(total);
        }
        match (&root.path, root.names.as_slice()) {
            (None, _) if paths.len() > 1 => translation.note_line(format!(
                "the {} files of the jobs become adjacent parts of the target",
                paths.len()
            )),
            (Some(directory), []) if root.is_scratch => {
                let directory = translation.shown(directory);
                translation.note_line(replaced_text(&paths, total, &directory, translation));
            }
            _ => {}
        }
    }
}

/// The file, or the files, under which a scratch file stays.
fn kept_file(root: &TargetRoot, members: &[&JobFiles<'_>]) -> Option<KeptFile> {
    let each = members.iter().map(|one| one.job.bytes_of_each_file());
    let file_bytes = each.max().flatten().unwrap_or(0);
    (!root.names.is_empty()).then(|| KeptFile {
        names: root.names.clone(),
        file_bytes,
    })
}

/// Notes the files that stay.
fn note_kept(roots: &[&TargetRoot], translation: &Translation<'_>) {
    let kept: Vec<(&TargetRoot, &String)> = roots
        .iter()
        .flat_map(|root| root.names.iter().map(|name| (*root, name)))
        .collect();
    match kept.as_slice() {
        [] => {}
        [(root, name)] => {
            let directory = root.path.clone().unwrap_or_default();
            let path = directory.join(name);
            let what = if root.grows { "grows" } else { "is filled" };
            let path = translation.shown(&path);
            translation.note_line(format!("{path} {what} before its first use, and stays"));
        }
        several => translation.note_line(format!(
            "the {} new files of the jobs are filled before their first use, and stay",
            several.len()
        )),
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

/// The last part of a path.
fn file_name(path: &Path) -> Option<String> {
    path.file_name()
        .and_then(|name| name.to_str())
        .map(str::to_owned)
}

/// Refuses a scheduler that the disk does not have.
fn check_scheduler(files: &JobFiles<'_>, translation: &Translation<'_>) -> Translated<()> {
    let Some(GivenName {
        name: wanted,
        source,
    }) = &files.job.scheduler
    else {
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
        is_device: found
            .iter()
            .all(|found| matches!(found, PathKind::Device(_))),
        ..TargetRoot::default()
    }
}

/// What decides where the files of jobs are.
struct Places<'a> {
    given: Option<TargetRoot>,
    /// The files that a job writes or trims.
    written: BTreeSet<&'a PathBuf>,
    /// The bytes of each file that its jobs use, as far as they say so.
    needed: BTreeMap<&'a PathBuf, u64>,
    /// The files of jobs that leave none behind.
    vanishing: BTreeSet<&'a PathBuf>,
    translation: &'a Translation<'a>,
}

impl Places<'_> {
    /// The files of a job, and their target.
    fn files<'j>(&self, job: &'j FioJob, paths: &'j [PathBuf]) -> Translated<JobFiles<'j>> {
        let filename = job.filename.as_ref();
        let source = filename.map_or(&job.source, |given| &given.source);
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
        let found = self.translation.found(path);
        if job.keeps_files {
            return Ok(TargetRoot {
                names: kept_names(job),
                ..self.scratch_beside(path)?
            });
        }
        match found {
            PathKind::File(bytes) if self.grows(path, bytes) => Ok(TargetRoot {
                bytes: self
                    .needed
                    .get(path)
                    .map(|bytes| bytes.next_multiple_of(PAGE_BYTES)),
                grows: true,
                names: file_name(path).into_iter().collect(),
                ..self.scratch_beside(path)?
            }),
            PathKind::File(bytes) if self.is_replaced(job, paths, path, bytes) => {
                self.scratch_beside(path)
            }
            PathKind::File(bytes) | PathKind::Device(bytes) => Ok(TargetRoot {
                path: Some(path.clone()),
                bytes: Some(bytes),
                is_device: matches!(found, PathKind::Device(_)),
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
            PathKind::Nothing => Ok(TargetRoot {
                names: file_name(path)
                    .filter(|_| self.stays(path))
                    .into_iter()
                    .collect(),
                ..self.scratch_beside(path)?
            }),
        }
    }

    /// Whether a file stays where fio leaves it.
    fn stays(&self, path: &PathBuf) -> bool {
        self.translation.is_as_fio() && !self.vanishing.contains(path)
    }

    /// Whether an existing file grows: one of our own that stays, beyond whose end a job goes. fio
    /// makes every such file longer; here others keep their size.
    fn grows(&self, path: &PathBuf, bytes: u64) -> bool {
        self.stays(path)
            && self.needed.get(path).is_some_and(|needed| *needed > bytes)
            && self.translation.environment.is_own(path)
    }

    /// Whether a scratch file replaces an existing file. A file that the author names is used. One
    /// that fio names, and made in an earlier run, stays as it is, and so does one that
    /// `filename_format` names, unless it only needs to be read.
    fn is_replaced(&self, job: &FioJob, paths: &[PathBuf], path: &PathBuf, bytes: u64) -> bool {
        let is_too_small = matches!(job.extent.size, Some(Amount::Bytes(size)) if size > bytes);
        let is_one = paths.iter().all(|other| other == path);
        let is_named = job.filename_format != FILENAME_FORMAT_DEFAULT;
        let stays = self.stays(path);
        let is_read =
            (is_named || stays) && is_one && !is_too_small && !self.written.contains(path);
        let is_own = stays && self.translation.environment.is_own(path);
        job.filename.is_none() && !is_read && !is_own
    }

    /// A scratch file in the directory of this path.
    fn scratch_beside(&self, path: &Path) -> Result<TargetRoot, String> {
        let directory = directory_of(path);
        match self.translation.found(directory) {
            PathKind::Directory => Ok(TargetRoot {
                path: Some(directory.to_path_buf()),
                bytes: self.translation.overrides.size,
                is_scratch: true,
                ..TargetRoot::default()
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
fn allocate(members: &[&JobFiles<'_>], root: &TargetRoot) -> Translated<(Vec<Vec<FilePart>>, u64)> {
    let whole = root.bytes;
    let mut paths = members.iter().flat_map(|one| one.paths);
    let is_single = paths.all(|path| *path == members[0].paths[0]);
    let whole = whole.filter(|_| is_single);
    let mut inside: Vec<Vec<FilePart>> = Vec::new();
    for files in members {
        let job = files.job;
        // A job without a size takes that of the file which an earlier one makes.
        let made = extents_of(members, &inside, root);
        let made = made.get(files.paths[0].as_path()).copied();
        let known = whole.or(made.filter(|_| job.extent.size.is_none()));
        let unit = job.smallest_block();
        let has_file = |other: &&&JobFiles<'_>| other.paths.contains(&files.paths[0]);
        let is_shared = members.iter().filter(has_file).count() > 1;
        let parts = (0..job.numjobs).map(|copy| {
            let copy = job.first_in_section + copy;
            let mut part = part(job, copy, known, root)?;
            if known.is_none() && !is_shared && (files.is_own || job.numjobs == 1) {
                fit_new_file(job, copy, &mut part);
            }
            if let Some(bytes) = job.kept_bytes() {
                (part.start, part.length, part.is_whole_file) = (0, bytes, true);
                return Ok(part);
            }
            // The job visits neither the bytes behind the last whole block of its own file nor
            // those before its offset; unless another job visits the latter, the file need not
            // hold them.
            if files.is_own {
                part.length = part.length / unit * unit;
                if whole.is_none() && !is_shared && root.names.is_empty() {
                    part.start = 0;
                }
            }
            Ok(part)
        });
        inside.push(parts.collect::<Result<Vec<_>, _>>()?);
    }
    if let Some(bytes) = members[0].job.kept_bytes() {
        return Ok((inside, bytes));
    }
    let extents = extents_of(members, &inside, root);
    let (mut starts, mut end): (BTreeMap<&Path, u64>, u64) = (BTreeMap::new(), 0);
    for files in members {
        // The copies of a job are adjacent, so that they can be one workload.
        if root.names.is_empty() {
            end = end.checked_next_multiple_of(PART_BYTES).unwrap_or(u64::MAX);
        }
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
            let block = files.job.smallest_block().max(1);
            part.is_whole_file &= part.length / block == file_bytes / block;
            part.start = part.start.saturating_add(starts[path.as_path()]);
        }
    }
    // A file that stays is as long as in fio, but for less than a page.
    let unit = if !root.names.is_empty() {
        PAGE_BYTES
    } else {
        PART_BYTES
    };
    let end = end.checked_next_multiple_of(unit);
    Ok((inside, end.unwrap_or(u64::MAX)))
}

/// The bytes that the first jobs, whose parts are known, use of each file.
fn extents_of<'a>(
    members: &[&JobFiles<'a>],
    inside: &[Vec<FilePart>],
    root: &TargetRoot,
) -> BTreeMap<&'a Path, u64> {
    let mut extents: BTreeMap<&Path, u64> = BTreeMap::new();
    for (files, parts) in members.iter().zip(inside) {
        for (path, part) in files.paths.iter().zip(parts) {
            // A file that stays has also what is behind its last whole block.
            let file_bytes = if !root.names.is_empty() {
                part.file_bytes
            } else {
                files.job.extent.file_bytes.unwrap_or(0)
            };
            let extent = extents.entry(path).or_default();
            *extent = (*extent).max(part.end()).max(file_bytes);
        }
    }
    extents
}

/// Gives the new file of a copy the size that fio gives it. There is no file yet of which fio could
/// take a percentage, so an offset in percent is 0 in the first lap and does not make the file
/// longer. The copy moves as much, and starts again from its offset where that is less.
fn fit_new_file(job: &FioJob, copy: u64, part: &mut FilePart) {
    let (extent, block) = (&job.extent, job.smallest_block());
    let offset =
        bytes_of(extent.offset).saturating_add(bytes_of(extent.increment).saturating_mul(copy));
    let file_bytes = match (extent.file_bytes, extent.size) {
        (Some(bytes), Some(size @ Amount::Percent(_))) => {
            let share = size.of(bytes).min(bytes.saturating_sub(offset));
            offset.saturating_add(share / block * block)
        }
        (Some(bytes), _) => bytes,
        (None, Some(Amount::Bytes(size))) => offset.saturating_add(size),
        (None, _) => return,
    };
    if file_bytes.saturating_sub(part.start) < block {
        // No later lap has a block.
        part.start = offset;
        part.is_whole_file = offset == 0;
    }
    let left = file_bytes.saturating_sub(part.start);
    let behind = file_bytes.saturating_sub(offset);
    part.job_bytes = match extent.size {
        Some(Amount::Bytes(size)) => size.min(behind),
        _ => behind,
    };
    part.length = if job.is_random() || job.laps_have_whole_file() {
        left
    } else {
        job.whole_blocks(part.job_bytes).min(left)
    };
    part.file_bytes = file_bytes;
}

/// The bytes of an amount that is no percentage.
fn bytes_of(amount: Amount) -> u64 {
    match amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Percent(_) => 0,
    }
}

/// The part of its file that a copy of a job uses. `whole` is the size of the file, if it exists.
fn part(job: &FioJob, copy: u64, whole: Option<u64>, root: &TargetRoot) -> Translated<FilePart> {
    // As in fio, a new file has the size of the job.
    let new_bytes = match (job.extent.file_bytes, job.extent.size) {
        (Some(bytes), _) | (None, Some(Amount::Bytes(bytes))) => Some(bytes),
        _ => None,
    };
    let of = |amount: Amount| match (amount, whole.or(new_bytes)) {
        (Amount::Percent(_), None) => Err(job.error_without_options(
            "a value in percent needs an existing file or device, or a size in bytes",
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
        // As in fio, a job ends with the device.
        (Some(size), Some(rest)) if root.is_device => of(size)?.min(rest),
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
    let in_file = job
        .extent
        .file_bytes
        .map(|bytes| bytes.saturating_sub(start));
    let job_bytes = length.min(in_file.unwrap_or(u64::MAX));
    let length = span_bytes(job, job_bytes, in_file, rest);
    if job_bytes < job.smallest_block() {
        return Err(job.error_without_options(
            "the job's part of the file is smaller than a block, or starts after the end of the \
             file; use a larger size, or a smaller bs or offset",
        ));
    }
    Ok(FilePart {
        start,
        // Zones go on to the end of the file.
        length: match (job.flags.shape.zone_stride, rest) {
            (Some(_), Some(rest)) if job.gap_step_bytes.is_none() => rest,
            _ => length,
        },
        job_bytes,
        file_bytes: match (job.extent.file_bytes, job.extent.size) {
            (Some(bytes), Some(Amount::Bytes(_)) | None) => {
                bytes.max(start.saturating_add(job_bytes))
            }
            _ => start.saturating_add(job_bytes),
        },
        is_whole_file: start == 0,
    })
}

/// The bytes in which a copy works that moves `job_bytes`, with so many behind its start in a file
/// whose size the job sets, and in one that exists. As in fio, random requests go anywhere in the
/// file, and each of several files ends with its last whole block.
fn span_bytes(job: &FioJob, job_bytes: u64, in_file: Option<u64>, rest: Option<u64>) -> u64 {
    let block = job.smallest_block().max(1);
    let length = match in_file {
        Some(in_file) => {
            let room = in_file.min(rest.unwrap_or(u64::MAX));
            if job.is_random() || job.laps_have_whole_file() {
                room
            } else {
                job.whole_blocks(job_bytes).min(room)
            }
        }
        None => job_bytes,
    };
    match job.files {
        0 | 1 => length,
        files => length / files / block * block * files,
    }
}
