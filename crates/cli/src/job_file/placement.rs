//! Assigns the jobs of a file to targets: existing files and devices become targets, and files that
//! do not exist become parts of one scratch file. Opens nothing.

use super::environment::PathKind;
use super::jobs::{FILENAME_FORMAT_DEFAULT, FioJob};
use super::spread::{check_end, kept_names, needed_bytes, paths_of, vanishing_files};
use super::translation::{JobFileError, Translated, Translation};
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
    /// The first byte of the part in its target.
    pub start: u64,
    /// The bytes of the part; in a file of the copy's own, rounded down to whole blocks.
    pub length: u64,
    /// The bytes of the part as the job sets them. They may be more than lie in the file: then the
    /// job starts again.
    pub job_bytes: u64,
    /// The bytes of a file that stays.
    pub file_bytes: u64,
    /// Whether the part is the whole file.
    pub is_whole_file: bool,
}

impl FilePart {
    fn end(self) -> u64 {
        self.start.saturating_add(self.length)
    }

    /// Whether it begins where another part of the same length ends.
    pub(crate) fn follows(self, before: Self) -> bool {
        let end = before.start.checked_add(before.length);
        self.length == before.length && end == Some(self.start)
    }
}

/// The target of a job, and its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobPlacement {
    /// The index of the target among those of the job file.
    pub target: usize,
    /// The part of each copy, in the order of the copies.
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
    /// The placement of each job, in the order of the file.
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
    /// The size that its file has before it grows.
    found_bytes: Option<u64>,
    /// Whether its files are scratch files.
    is_scratch: bool,
    /// Whether its file exists, and grows.
    grows: bool,
    /// The names under which its file, or its files, stay; none of one that vanishes.
    names: Vec<String>,
    /// Whether its several files are there already, as long as the job needs them.
    is_complete: bool,
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

/// Assigns the files of all jobs to targets, and their copies to parts of these. Fails where a job
/// does not fit.
pub(crate) fn place(jobs: &[FioJob], translation: &Translation<'_>) -> Translated<Placements> {
    let paths: Vec<Vec<PathBuf>> = jobs.iter().map(|job| paths_of(job, translation)).collect();
    let root_finder = RootFinder {
        given: given_root(translation),
        written: written_files(jobs, &paths),
        needed: needed_bytes(jobs, &paths, translation),
        vanishing: vanishing_files(jobs, &paths),
        translation,
    };
    let mut files = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        files.push(root_finder.job_files(job, &paths[index])?);
    }
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
        let mut indexes = Vec::new();
        let mut members: Vec<&JobFiles<'_>> = Vec::new();
        for (index, files) in files.iter().enumerate() {
            if files.root == **root {
                indexes.push(index);
                members.push(files);
            }
        }
        let allocation = allocate(&members, root)?;
        check_ends(&members, &allocation, root, translation)?;
        for (member, parts) in allocation.parts.into_iter().enumerate() {
            let placement = JobPlacement {
                target,
                parts,
                is_first_to_write: is_first_to_write(root, members[member], &members[..member]),
            };
            by_job.insert(indexes[member], placement);
        }
        let total_bytes = root.bytes.unwrap_or(allocation.bytes);
        placements.add_target(root, total_bytes, &members, translation);
    }
    placements.by_job = by_job.into_values().collect();
    note_kept(&roots, translation);
    Ok(placements)
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
    let (Some(path), Some(bytes)) = (&root.path, root.bytes) else {
        return Ok(());
    };
    if root.is_scratch {
        return Ok(());
    }
    for (member, parts) in allocation.parts.iter().enumerate() {
        let end = parts.iter().map(|part| part.end()).max().unwrap_or(0);
        check_end(members[member].job, end, path, bytes, translation)?;
    }
    Ok(())
}

/// Whether fio would make a job's file anew when the job begins to write it.
fn is_first_to_write(root: &TargetRoot, member: &JobFiles<'_>, earlier: &[&JobFiles<'_>]) -> bool {
    let file = &member.paths[0];
    root.is_scratch
        && !root.grows
        && member.job.rw().is_only(OpKind::Write)
        && !member.job.overwrites
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

    /// Adds a target, and a note where scratch files replace files of the job file.
    fn add_target(
        &mut self,
        root: &TargetRoot,
        total: u64,
        members: &[&JobFiles<'_>],
        translation: &Translation<'_>,
    ) {
        note_trimmed_files(root, members, translation);
        let mut paths: Vec<&PathBuf> = members.iter().flat_map(|member| member.paths).collect();
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
    if root.names.is_empty() {
        return None;
    }
    let mut file_bytes = 0;
    let mut part_start = 0;
    for member in members {
        if root.names.len() > 1 {
            part_start = member.job.start_in_each_file();
        }
        file_bytes = file_bytes.max(member.job.bytes_of_each_file().unwrap_or(0));
    }
    Some(KeptFile {
        names: root.names.clone(),
        file_bytes,
        part_start,
        is_complete: root.is_complete,
    })
}

/// Notes the files that stay.
fn note_kept(roots: &[&TargetRoot], translation: &Translation<'_>) {
    let new: Vec<&TargetRoot> = roots
        .iter()
        .copied()
        .filter(|root| !root.is_complete)
        .collect();
    let kept: usize = new.iter().map(|root| root.names.len()).sum();
    if kept > 1 {
        translation.note_line(format!(
            "the {kept} new files of the jobs are filled before their first use, and stay"
        ));
        return;
    }
    for root in new {
        for name in &root.names {
            let directory = root.path.clone().unwrap_or_default();
            let path = translation.shown(&directory.join(name));
            let change = if root.grows { "grows" } else { "is filled" };
            translation.note_line(format!("{path} {change} before its first use, and stays"));
        }
    }
}

/// The sentence that a scratch file of this size in a directory replaces the files of jobs.
fn replaced_text(
    paths: &[&PathBuf],
    bytes: u64,
    directory: &str,
    translation: &Translation<'_>,
) -> String {
    let scratch_file = format!("{} in {directory}", format_bytes(bytes));
    let replacement = match paths {
        [path] => {
            let state = match translation.path_kind(path) {
                PathKind::Nothing => "does not exist",
                _ => "stays unchanged",
            };
            let path = translation.shown(path);
            format!("{path} {state}: a scratch file of {scratch_file} replaces it")
        }
        several => {
            let files = several.len();
            format!(
                "the {files} files of the jobs become parts of one scratch file of {scratch_file}"
            )
        }
    };
    format!(
        "{replacement}. The scratch file is filled before its first use and vanishes at the end"
    )
}

/// Notes that jobs trim files.
fn note_trimmed_files(root: &TargetRoot, members: &[&JobFiles<'_>], translation: &Translation<'_>) {
    let is_file = match &root.path {
        _ if root.is_scratch => true,
        Some(path) => !matches!(translation.path_kind(path), PathKind::Device(_)),
        None => false,
    };
    if !is_file {
        return;
    }
    for member in members {
        if member.job.rw().makes(OpKind::Trim) {
            translation.note(
                "fio trims block devices only, and fails on files (ENOTTY); here a trim punches a \
                 hole into the file",
                &member.job.section,
            );
        }
    }
}

/// The name of a file in its directory; none where it is no text.
fn file_names(path: &Path) -> Vec<String> {
    match path.file_name().map(|name| name.to_str()) {
        Some(Some(name)) => vec![name.to_owned()],
        _ => Vec::new(),
    }
}

/// Refuses a scheduler that the disk does not have.
fn check_scheduler(files: &JobFiles<'_>, translation: &Translation<'_>) -> Translated<()> {
    let Some(wanted) = &files.job.scheduler else {
        return Ok(());
    };
    let paths = match &files.root.path {
        Some(path) => std::slice::from_ref(path),
        None => translation.overrides.targets,
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

/// The targets of the command line, if it has any.
fn given_root(translation: &Translation<'_>) -> Option<TargetRoot> {
    let targets = translation.overrides.targets;
    if targets.is_empty() {
        return None;
    }
    let kinds: Vec<PathKind> = targets
        .iter()
        .map(|target| translation.path_kind(target))
        .collect();
    let bytes = kinds.iter().map(|kind| match kind {
        PathKind::File(bytes) | PathKind::Device(bytes) => Some(*bytes),
        // The size of a directory is that of --size. The probe of the targets reports what is wrong
        // with the others.
        PathKind::Directory | PathKind::Nothing | PathKind::Other(_) => translation.overrides.size,
    });
    Some(TargetRoot {
        // `None` is less than any size: one unknown size makes the smallest unknown.
        bytes: bytes.min().flatten(),
        is_scratch: kinds.iter().all(|kind| *kind == PathKind::Directory),
        is_device: kinds.iter().all(|kind| matches!(kind, PathKind::Device(_))),
        ..TargetRoot::default()
    })
}

/// Finds the targets that hold the files of jobs.
struct RootFinder<'a> {
    /// The targets of the command line; `None` where the job file names them.
    given: Option<TargetRoot>,
    /// The files that a job writes or trims.
    written: BTreeSet<&'a PathBuf>,
    /// The bytes of each file that its jobs use, as far as they say so.
    needed: BTreeMap<&'a PathBuf, u64>,
    /// The files of jobs that leave none behind.
    vanishing: BTreeSet<&'a PathBuf>,
    translation: &'a Translation<'a>,
}

impl RootFinder<'_> {
    /// The files of a job, and their target.
    fn job_files<'j>(&self, job: &'j FioJob, paths: &'j [PathBuf]) -> Translated<JobFiles<'j>> {
        let is_device = matches!(self.translation.path_kind(&paths[0]), PathKind::Device(_));
        let root = match self.root_of_all(job, paths) {
            Ok(root) => root,
            Err(why) => {
                let source = match &job.filename {
                    Some(given) => &given.source,
                    None => &job.source,
                };
                return Err(source.error(format!("[{}]: {why}", job.section)));
            }
        };
        Ok(JobFiles {
            job,
            root,
            paths,
            is_own: job.filename.is_none() && !is_device,
        })
    }

    /// The target that holds all files of a job.
    fn root_of_all(&self, job: &FioJob, paths: &[PathBuf]) -> Result<TargetRoot, String> {
        if let Some(given) = &self.given {
            return Ok(given.clone());
        }
        let root = self.root(job, paths, &paths[0])?;
        for path in paths {
            if *path != paths[0] && self.root(job, paths, path)? != root {
                let why = "its copies have files in several places; write a section for each";
                return Err(why.to_owned());
            }
        }
        Ok(root)
    }

    /// The target that holds one of the job's files.
    fn root(&self, job: &FioJob, paths: &[PathBuf], path: &PathBuf) -> Result<TargetRoot, String> {
        let shown = quoted(&self.translation.shown(path));
        let kind = self.translation.path_kind(path);
        if job.keeps_files {
            let names = kept_names(job);
            return Ok(TargetRoot {
                is_complete: self.has_files(job, directory_of(path), &names),
                names,
                ..self.scratch_beside(path)?
            });
        }
        match kind {
            PathKind::File(bytes) if self.grows(path, bytes) => {
                let needed = self.needed.get(path);
                Ok(TargetRoot {
                    bytes: needed.map(|bytes| bytes.next_multiple_of(PAGE_BYTES)),
                    found_bytes: Some(bytes),
                    grows: true,
                    names: file_names(path),
                    ..self.scratch_beside(path)?
                })
            }
            PathKind::File(bytes) if self.is_replaced(job, paths, path, bytes) => {
                self.scratch_beside(path)
            }
            PathKind::File(bytes) | PathKind::Device(bytes) => Ok(TargetRoot {
                path: Some(path.clone()),
                bytes: Some(bytes),
                is_device: matches!(kind, PathKind::Device(_)),
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
            PathKind::Nothing if self.stays(path) => Ok(TargetRoot {
                names: file_names(path),
                ..self.scratch_beside(path)?
            }),
            PathKind::Nothing => self.scratch_beside(path),
        }
    }

    /// Whether several files of a job are there, as long as it needs them.
    fn has_files(&self, job: &FioJob, directory: &Path, names: &[String]) -> bool {
        let Some(needed_bytes) = job.bytes_of_each_file() else {
            return false;
        };
        names.iter().all(
            |name| match self.translation.path_kind(&directory.join(name)) {
                PathKind::File(bytes) => bytes >= needed_bytes,
                _ => false,
            },
        )
    }

    /// Whether a file stays where fio leaves it.
    fn stays(&self, path: &PathBuf) -> bool {
        self.translation.is_as_fio() && !self.vanishing.contains(path)
    }

    /// Whether an existing file grows: one of our own that stays, beyond whose end a job goes. fio
    /// makes every such file longer; here others keep their size.
    fn grows(&self, path: &PathBuf, bytes: u64) -> bool {
        let needed = self.needed.get(path).copied().unwrap_or(0);
        needed > bytes && self.stays(path) && self.translation.environment.is_own(path)
    }

    /// Whether a scratch file replaces an existing file. A file that the author names is used. One
    /// that fio names, and made in an earlier run, stays as it is, and so does one that
    /// `filename_format` names, unless it only needs to be read.
    fn is_replaced(&self, job: &FioJob, paths: &[PathBuf], path: &PathBuf, bytes: u64) -> bool {
        let is_too_small = matches!(job.extent.size, Some(Amount::Bytes(size)) if size > bytes);
        let is_only_file = paths.iter().all(|other| other == path);
        let is_named = job.filename_format != FILENAME_FORMAT_DEFAULT;
        let stays = self.stays(path);
        let is_read =
            (is_named || stays) && is_only_file && !is_too_small && !self.written.contains(path);
        let is_own = stays && self.translation.environment.is_own(path);
        job.filename.is_none() && !is_read && !is_own
    }

    /// A scratch file in the directory of this path.
    fn scratch_beside(&self, path: &Path) -> Result<TargetRoot, String> {
        let directory = directory_of(path);
        match self.translation.path_kind(directory) {
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

/// The parts of each job's copies, and the bytes of all files together.
struct Allocation {
    parts: Vec<Vec<FilePart>>,
    bytes: u64,
}

/// Divides a target among the jobs that use it. A single file begins at 0 and may be as large as
/// its target.
fn allocate(members: &[&JobFiles<'_>], root: &TargetRoot) -> Translated<Allocation> {
    let first_path = &members[0].paths[0];
    let is_single = members
        .iter()
        .all(|files| files.paths.iter().all(|path| path == first_path));
    let whole = if is_single { root.bytes } else { None };
    let mut parts: Vec<Vec<FilePart>> = Vec::new();
    for files in members {
        parts.push(parts_in_files(files, members, &parts, whole, root)?);
    }
    if let Some(bytes) = members[0].job.kept_bytes() {
        return Ok(Allocation { parts, bytes });
    }
    let extents = file_extents(members, &parts, root);
    let layout = FileLayout::new(members, &extents, root);
    for (index, files) in members.iter().enumerate() {
        let block = files.job.smallest_block().max(1);
        for (copy, part) in parts[index].iter_mut().enumerate() {
            let path = files.paths[copy].as_path();
            let file_bytes = whole.unwrap_or(extents[path]);
            part.is_whole_file &= part.length / block == file_bytes / block;
            part.start = part.start.saturating_add(layout.starts[path]);
        }
    }
    // A file that stays is as long as in fio, but for less than a page.
    let unit = if root.names.is_empty() {
        PART_BYTES
    } else {
        PAGE_BYTES
    };
    Ok(Allocation {
        parts,
        bytes: rounded_up(layout.end, unit),
    })
}

/// The parts of a job's copies in their files. `earlier` has those of the jobs before it; `whole`
/// is the size of the target, if that is a single file.
fn parts_in_files(
    files: &JobFiles<'_>,
    members: &[&JobFiles<'_>],
    earlier: &[Vec<FilePart>],
    whole: Option<u64>,
    root: &TargetRoot,
) -> Translated<Vec<FilePart>> {
    let job = files.job;
    let block = job.smallest_block();
    let users = members
        .iter()
        .filter(|other| other.paths.contains(&files.paths[0]))
        .count();
    let is_shared = users > 1;
    // A job without a size takes that of the file which an earlier one makes.
    let file_bytes = match whole {
        None if job.extent.size.is_none() => file_extents(members, earlier, root)
            .get(files.paths[0].as_path())
            .copied(),
        whole => whole,
    };
    let mut parts = Vec::new();
    // As in fio, all copies take a percentage of the file as it was found, or as the first one
    // makes it.
    let percent_of = root
        .found_bytes
        .or(file_bytes)
        .or(job.extent.new_file_bytes());
    for copy in job.first_in_section..job.first_in_section + job.numjobs {
        if let Some(bytes) = job.kept_bytes() {
            parts.push(FilePart {
                start: 0,
                length: bytes,
                job_bytes: job.asked_bytes().unwrap_or(bytes),
                file_bytes: bytes,
                is_whole_file: true,
            });
            continue;
        }
        let mut part = copy_part(job, copy, file_bytes, percent_of, root)?;
        if file_bytes.is_none() && !is_shared && (files.is_own || job.numjobs == 1) {
            fit_new_file(job, copy, &mut part);
        }
        if files.is_own {
            // The job visits neither the bytes behind the last whole block of its own file nor
            // those before its offset; unless another job visits the latter, the file need not
            // hold them.
            part.length = part.length / block * block;
            if whole.is_none() && !is_shared && root.names.is_empty() {
                part.start = 0;
            }
        }
        parts.push(part);
    }
    Ok(parts)
}

/// Where the files begin in their target.
struct FileLayout<'a> {
    starts: BTreeMap<&'a Path, u64>,
    /// The end of the last file.
    end: u64,
}

impl<'a> FileLayout<'a> {
    /// Puts the files of the jobs behind one another. The copies of a job are adjacent, so that
    /// they can be one workload.
    fn new(
        members: &[&JobFiles<'a>],
        extents: &BTreeMap<&'a Path, u64>,
        root: &TargetRoot,
    ) -> Self {
        let mut layout = Self {
            starts: BTreeMap::new(),
            end: 0,
        };
        for files in members {
            if root.names.is_empty() {
                layout.end = rounded_up(layout.end, PART_BYTES);
            }
            for path in files.paths {
                if !layout.starts.contains_key(path.as_path()) {
                    layout.starts.insert(path, layout.end);
                    layout.end = layout.end.saturating_add(extents[path.as_path()]);
                }
            }
        }
        layout
    }
}

fn rounded_up(bytes: u64, unit: u64) -> u64 {
    bytes.checked_next_multiple_of(unit).unwrap_or(u64::MAX)
}

/// The bytes of each file that jobs use. `parts` are those of the first jobs; the others are not
/// known yet.
fn file_extents<'a>(
    members: &[&JobFiles<'a>],
    parts: &[Vec<FilePart>],
    root: &TargetRoot,
) -> BTreeMap<&'a Path, u64> {
    let mut extents: BTreeMap<&Path, u64> = BTreeMap::new();
    for (index, parts) in parts.iter().enumerate() {
        let files = members[index];
        for (copy, part) in parts.iter().enumerate() {
            // A file that stays has also what is behind its last whole block.
            let file_bytes = if root.names.is_empty() {
                files.job.extent.file_bytes.unwrap_or(0)
            } else {
                part.file_bytes
            };
            let extent = extents.entry(&files.paths[copy]).or_default();
            *extent = (*extent).max(part.end()).max(file_bytes);
        }
    }
    extents
}

/// Gives the new file of a copy the size that fio gives it. There is no file yet of which fio could
/// take a percentage, so an offset in percent is 0 in the first lap and does not make the file
/// longer. The copy moves as much, and starts again from its offset where that is less.
fn fit_new_file(job: &FioJob, copy: u64, part: &mut FilePart) {
    let extent = &job.extent;
    let block = job.smallest_block();
    let increment = bytes_or_zero(extent.increment).saturating_mul(copy);
    let offset = bytes_or_zero(extent.offset).saturating_add(increment);
    let file_bytes = match (extent.file_bytes, extent.size) {
        (Some(bytes), Some(size @ Amount::Percent(_))) => {
            let share = size.bytes(bytes).min(bytes.saturating_sub(offset));
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

/// The bytes of an amount; 0 of a percentage.
fn bytes_or_zero(amount: Amount) -> u64 {
    match amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Percent(_) => 0,
    }
}

/// The part of its file that a copy of a job uses. `whole` is the size of the file, if it exists;
/// places in percent are those of `percent_of`.
fn copy_part(
    job: &FioJob,
    copy: u64,
    whole: Option<u64>,
    percent_of: Option<u64>,
    root: &TargetRoot,
) -> Translated<FilePart> {
    let extent = &job.extent;
    let base = whole.or(extent.new_file_bytes());
    let Some(start) = job.start_of_copy(copy, percent_of) else {
        return Err(percent_of_nothing(job));
    };
    let rest = whole.map(|whole| whole.saturating_sub(start));
    let length = match (extent.size, rest) {
        (Some(size @ Amount::Percent(_)), Some(rest)) => known_bytes(job, size, base)?.min(rest),
        // As in fio, a job ends with the device.
        (Some(size), Some(rest)) if root.is_device => known_bytes(job, size, base)?.min(rest),
        (Some(size), _) => known_bytes(job, size, base)?,
        (None, Some(rest)) => rest,
        (None, None) => return Err(missing_size(job)),
    };
    // As in fio, a copy that begins inside the file ends at its end.
    let in_file = extent.file_bytes.map(|bytes| bytes.saturating_sub(start));
    let job_bytes = length.min(in_file.unwrap_or(u64::MAX));
    if job_bytes < job.smallest_block() {
        return Err(job.error_without_options(
            "the job's part of the file is smaller than a block, or starts after the end of the \
             file; use a larger size, or a smaller bs or offset",
        ));
    }
    let end = start.saturating_add(job_bytes);
    Ok(FilePart {
        start,
        // Zones go on to the end of the file.
        length: match rest {
            Some(rest) if has_zones(job) => rest,
            _ => span_bytes(job, job_bytes, in_file, rest),
        },
        job_bytes,
        file_bytes: match (extent.file_bytes, extent.size) {
            (Some(bytes), Some(Amount::Bytes(_)) | None) => bytes.max(end),
            _ => end,
        },
        is_whole_file: start == 0,
    })
}

/// An amount in bytes, if it is no percentage of a file whose size is unknown.
fn known_bytes(job: &FioJob, amount: Amount, whole: Option<u64>) -> Translated<u64> {
    match (amount, whole) {
        (Amount::Bytes(bytes), _) => Ok(bytes),
        (percent, Some(whole)) => Ok(percent.bytes(whole)),
        (Amount::Percent(_), None) => Err(percent_of_nothing(job)),
    }
}

fn percent_of_nothing(job: &FioJob) -> JobFileError {
    job.error_without_options(
        "a value in percent needs an existing file or device, or a size in bytes",
    )
}

/// The error of a job on a new file whose size nothing tells.
fn missing_size(job: &FioJob) -> JobFileError {
    if job.extent.fills {
        return job.error_without_options(
            "fill_device on a new file would leave no free space in the filesystem; set size, or \
             name an existing file or device",
        );
    }
    job.error_without_options(
        "the job has no size; add one such as size=1g, or set that of the scratch file with --size",
    )
}

/// Whether a job has zones that are not the gaps of its requests.
fn has_zones(job: &FioJob) -> bool {
    job.flags.shape.order.zone_stride.is_some() && job.gap_step_bytes.is_none()
}

/// The bytes in which a copy works that moves `job_bytes`. `in_file` are those behind its start in
/// a file whose size the job sets, and `rest` those in a file that exists. As in fio, random
/// requests go anywhere in the file, and each of several files ends with its last whole block.
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
    if job.files > 1 {
        length / job.files / block * block * job.files
    } else {
        length
    }
}
