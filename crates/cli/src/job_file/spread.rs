//! The files of jobs. A job on several existing files or disks becomes one job for each, which
//! share its depth, and whose figures are added again; several directories divide the copies of a
//! job among them, as in fio. A file that an earlier run left grows with a job that goes beyond its
//! end, and no other does. Opens nothing.

use super::environment::PathKind;
use super::jobs::{FioJob, GivenNames};
use super::translation::{FILES, IN_ORDER, Translated, Translation};
use crate::output_sink::directory_of;
use crate::plan_file::quoted;
use crate::workload::{Count, Rate};
use diskproof_compat::fio_values::Amount;
use diskproof_model::op::OpKind;
use diskproof_model::plan::EngineKind;
use diskproof_model::shell;
use diskproof_model::units::format_bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Direct I/O takes a page on every filesystem.
const PAGE_BYTES: u64 = 4096;
/// The cause of most names that lead nowhere.
const COLON_SEPARATES: &str = "A colon separates names; write \\: for one in a name";

/// Marks the jobs whose several files stay, each under its own name. Blocking calls go to each of
/// them; for other engines, and where jobs share some files but not all, they are parts of one
/// scratch file.
pub(crate) fn mark_kept_files(jobs: &mut [FioJob], translation: &Translation<'_>) {
    let files: Vec<Vec<PathBuf>> = jobs.iter().map(|job| all_paths(job, translation)).collect();
    let mut kept = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        let shares_some = files.iter().any(|other| {
            *other != files[index] && other.iter().any(|path| files[index].contains(path))
        });
        kept.push(!shares_some && can_keep_files(job, &files[index], translation));
    }
    for index in 0..jobs.len() {
        // Those with the same files do so together.
        let same = (0..jobs.len()).filter(|other| files[*other] == files[index]);
        jobs[index].keeps_files = same.clone().count() > 0 && same.clone().all(|one| kept[one]);
    }
}

/// The files of all copies of a job.
fn all_paths(job: &FioJob, translation: &Translation<'_>) -> Vec<PathBuf> {
    match &job.filename {
        Some(given) => given.names.iter().map(|name| path_of(job, name)).collect(),
        None if job.files > 1 => {
            let mut all = Vec::new();
            for copy in 0..job.numjobs {
                let one = FioJob {
                    directories: directory_of_copy(job, copy),
                    ..job.clone()
                };
                let names = (0..job.files).map(|file| name_of_file(job, copy, file));
                all.extend(names.map(|name| path_of(&one, &name)));
            }
            all
        }
        None => paths_of(job, translation),
    }
}

/// Whether the several files of a job can stay.
fn can_keep_files(job: &FioJob, paths: &[PathBuf], translation: &Translation<'_>) -> bool {
    let named = job
        .filename
        .as_ref()
        .map_or(0, |given| given.names.len() as u64);
    let files = job.files.max(named);
    let is_blocking = job.engine() == EngineKind::Sync;
    let is_checked = job.flags.verify.is_some() || job.flags.signs_only;
    let starts_at_zero = job.extent.offset == Amount::ZERO && job.extent.increment == Amount::ZERO;
    let is_ours = |path: &PathBuf| match translation.found(path) {
        PathKind::Nothing => true,
        PathKind::File(_) => translation.environment.is_own(path),
        _ => false,
    };
    let has_whole_pages = FioJob {
        files,
        keeps_files: true,
        ..job.clone()
    }
    .kept_bytes()
    .is_some_and(|bytes| bytes > 0 && (bytes / files).is_multiple_of(PAGE_BYTES));
    translation.is_as_fio()
        && translation.overrides.targets.is_empty()
        && files > 1
        && is_blocking
        && !is_checked
        && !job.unlinks
        && !job.extent.fills
        && !job.rw().makes(OpKind::Trim)
        && starts_at_zero
        && has_whole_pages
        && (job.is_uniform() || job.goes_onward())
        && paths.iter().all(is_ours)
        && paths
            .iter()
            .all(|path| path.parent() == paths[0].parent() || job.filename.is_none())
}

/// The names of the several files of a job with one copy, or of those that its copies share.
pub(crate) fn kept_names(job: &FioJob) -> Vec<String> {
    let names: Vec<String> = match &job.filename {
        Some(given) => given.names.clone(),
        None => (0..job.files)
            .map(|file| name_of_file(job, 0, file))
            .collect(),
    };
    let last_part = |name: String| match name.rsplit_once('/') {
        Some((_, name)) => name.to_owned(),
        None => name,
    };
    names.into_iter().map(last_part).collect()
}

/// Divides a job into parts with one file or directory each.
pub(crate) fn spread(job: &FioJob, translation: &Translation<'_>) -> Translated<Vec<FioJob>> {
    match &job.filename {
        // The targets of the command line replace them.
        _ if !translation.overrides.targets.is_empty() => Ok(vec![job.clone()]),
        Some(file) if file.names.len() > 1 => over_files(job, file, translation),
        // As in fio, a job with file names takes the first directory.
        Some(_) => Ok(vec![job.clone()]),
        None if job.directories.len() > 1 && !leaves_files(job, translation) => {
            over_directories(job)
        }
        None => {
            if job.files > 1 && !job.keeps_files {
                translation.note(FILES, &job.section);
            }
            over_places(job, translation)
        }
    }
}

/// The directory of a copy: as in fio, they take turns.
fn directory_of_copy(job: &FioJob, copy: u64) -> Vec<String> {
    let all = job.directories.iter().cycle();
    let place = copy as usize % job.directories.len().max(1);
    all.skip(place).take(1).cloned().collect()
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
pub(crate) fn paths_of(job: &FioJob, translation: &Translation<'_>) -> Vec<PathBuf> {
    let copies = |path: PathBuf| vec![path; job.numjobs as usize];
    if let Some(given) = &job.filename {
        return copies(path_of(job, &given.names[0]));
    }
    // fio takes the name of a section for a device where there is one.
    let device = path_of(job, &job.section);
    if job.section.contains('/') && matches!(translation.found(&device), PathKind::Device(_)) {
        return copies(device);
    }
    let name = |copy: u64| {
        let job = &FioJob {
            directories: directory_of_copy(job, copy),
            ..job.clone()
        };
        path_of(job, &name_of_file(job, copy, 0))
    };
    (0..job.numjobs).map(name).collect()
}

/// The name of a file of a copy of a job without file names.
fn name_of_file(job: &FioJob, copy: u64, file: u64) -> String {
    job.filename_format
        .replace("$jobnum", &copy.to_string())
        .replace("$filenum", &file.to_string())
        .replace("$clientuid", "")
        .replace("$jobname", &job.section)
}

fn over_files(
    job: &FioJob,
    GivenNames { names, source }: &GivenNames,
    translation: &Translation<'_>,
) -> Translated<Vec<FioJob>> {
    let paths: Vec<PathBuf> = names.iter().map(|name| path_of(job, name)).collect();
    let is_new = |path: &PathBuf| translation.found(path) == PathKind::Nothing;
    let parts = paths.len() as u64;
    // All requests in flight together are those of the job.
    let depth = job.flags.depth.map_or(1, |depth| depth.0);
    let divides_depth = depth.is_multiple_of(parts);
    let has_own = leaves_files(job, translation) && divides_depth;
    if !divides_depth && job.keeps_files {
        let mut one = job.clone();
        one.files = parts;
        one.alternates = job.may_alternate();
        note_order(&one, translation);
        return Ok(vec![one]);
    }
    if paths.iter().all(is_new) && !has_own {
        check_new_files(job, &paths)
            .map_err(|why| source.error(format!("{why}. {COLON_SEPARATES}")))?;
        translation.note(FILES, &job.section);
        let mut one = job.clone();
        one.filename = Some(GivenNames {
            names: names[..1].to_vec(),
            source: source.clone(),
        });
        one.files = parts;
        one.alternates = job.may_alternate();
        note_order(&one, translation);
        return Ok(vec![one]);
    }
    if let Some(missing) = paths.iter().find(|path| is_new(path) && !has_own) {
        let shown = quoted(&missing.display().to_string());
        return Err(source.error(format!(
            "{shown} does not exist, but other files do; create it, or write a section for each. \
             {COLON_SEPARATES}"
        )));
    }
    let mut shared = FioJob {
        keeps_files: false,
        ..job.clone()
    };
    let of_bytes = |amount: Option<Amount>| match amount {
        Some(Amount::Bytes(bytes)) => Some(Amount::Bytes(bytes / parts)),
        other => other,
    };
    match (depth % parts, job.numjobs % parts) {
        (0, _) => shared.flags.depth = Some(Count(depth / parts)),
        (_, 0) => shared.numjobs /= parts,
        _ => {
            return Err(source.error(format!(
                "[{}]: fio visits the {parts} files in turn from one queue. Here each file has its \
                 own queue, but neither iodepth={depth} nor numjobs={} is a multiple of {parts}. \
                 Use a multiple (ioengine=libaio iodepth={parts}), or a section with stonewall for \
                 each file",
                job.section, job.numjobs
            )));
        }
    }
    shared.extent.size = of_bytes(job.extent.size);
    shared.extent.file_bytes = job.extent.file_bytes.map(|bytes| bytes / parts);
    if divides_depth {
        shared.extent.io_size = of_bytes(job.extent.io_size);
        shared.extent.ops = job.extent.ops.map(|ops| ops.div_ceil(parts));
        shared.flags.rate = job.flags.rate.map(|rate| Rate(rate.0 / parts as f64));
    } else {
        // A copy does all of its work in one file.
        shared.extent.io_size = job.extent.io_size.or(job.extent.size);
    }
    translation.note(
        "each file or disk of a job has its own queue with a share of iodepth; fio fills one queue \
         from all of them in turn, so the slowest delays the others",
        &job.section,
    );
    Ok(concurrent(names.iter().map(|name| FioJob {
        filename: Some(GivenNames {
            names: vec![name.clone()],
            source: source.clone(),
        }),
        ..shared.clone()
    })))
}

fn note_order(job: &FioJob, translation: &Translation<'_>) {
    if !job.is_random() && !job.alternates {
        translation.note(IN_ORDER, &job.section);
    }
}

/// Files that do not exist become one of their total size, where that is the same load.
fn check_new_files(job: &FioJob, paths: &[PathBuf]) -> Result<(), &'static str> {
    if paths.iter().any(|path| path.parent() != paths[0].parent()) {
        return Err("new files in several directories are not supported; write a section for each");
    }
    if job.is_uniform() || job.goes_onward() {
        Ok(())
    } else {
        Err(
            "several new files for one job become one file, which is supported with uniformly \
             random requests, and with sequential ones without gaps; write a section for each",
        )
    }
}

/// fio gives the directories to the copies of a job in turn.
fn over_directories(job: &FioJob) -> Translated<Vec<FioJob>> {
    let count = job.directories.len() as u64;
    // With fewer copies the last directories stay unused.
    let used = count.min(job.numjobs);
    if !job.numjobs.is_multiple_of(used) {
        return Err(job.error(format!(
            "numjobs={} copies cannot be divided among {count} directories; use a multiple, or \
             write a section for each",
            job.numjobs
        )));
    }
    let directories = job.directories.iter().take(used as usize);
    Ok(concurrent(directories.map(|directory| FioJob {
        numjobs: job.numjobs / used,
        directories: vec![directory.clone()],
        ..job.clone()
    })))
}

/// Copies become a job each where their files are on several disks or in several directories, or
/// stay under their names.
fn over_places(job: &FioJob, translation: &Translation<'_>) -> Translated<Vec<FioJob>> {
    let paths = paths_of(job, translation);
    let stays = leaves_files(job, translation);
    let place = |path: &PathBuf| match translation.found(path) {
        PathKind::Device(_) => path.clone(),
        _ if stays => path.clone(),
        _ => directory_of(path).to_path_buf(),
    };
    let first = place(&paths[0]);
    if paths.iter().all(|path| place(path) == first) {
        return Ok(vec![job.clone()]);
    }
    let mut copies = Vec::new();
    for copy in 0..job.numjobs {
        let mut one = job.clone();
        one.numjobs = 1;
        one.directories = directory_of_copy(job, copy);
        one.filename_format = job.filename_format.replace("$jobnum", &copy.to_string());
        one.first_in_section = copy;
        copies.push(one);
    }
    Ok(concurrent(copies.into_iter()))
}

/// Jobs that run together: only the first one waits for others.
fn concurrent(parts: impl Iterator<Item = FioJob>) -> Vec<FioJob> {
    let joined = |(index, part)| match index {
        0 => part,
        _ => FioJob {
            waits: false,
            waits_for: None,
            begins_group: false,
            ..part
        },
    };
    parts.enumerate().map(joined).collect()
}

/// Whether a job leaves its files behind, each under its own name.
fn leaves_files(job: &FioJob, translation: &Translation<'_>) -> bool {
    translation.is_as_fio() && !job.vanishes()
}

/// The files of jobs that leave none behind.
pub(crate) fn vanishing_files<'a>(
    jobs: &[FioJob],
    paths: &'a [Vec<PathBuf>],
) -> BTreeSet<&'a PathBuf> {
    let of_jobs = jobs.iter().zip(paths).filter(|(job, _)| job.vanishes());
    of_jobs.flat_map(|(_, paths)| paths).collect()
}

/// The bytes of each file that its jobs use, as far as they say so.
pub(crate) fn needed_bytes<'a>(
    jobs: &[FioJob],
    paths: &'a [Vec<PathBuf>],
) -> BTreeMap<&'a PathBuf, u64> {
    let mut needed = BTreeMap::new();
    for (job, paths) in jobs.iter().zip(paths) {
        if let (Some(end), Some(path)) = (end_of(job), paths.first()) {
            let bytes = needed.entry(path).or_insert(0);
            *bytes = end.max(*bytes);
        }
    }
    needed
}

/// Where the last copy of a job ends; `None` where that follows from the size of the file.
fn end_of(job: &FioJob) -> Option<u64> {
    let extent = &job.extent;
    let (Amount::Bytes(offset), Amount::Bytes(increment), Some(Amount::Bytes(size))) =
        (extent.offset, extent.increment, extent.size)
    else {
        return None;
    };
    let last_copy = job.first_in_section + job.numjobs - 1;
    let last = increment.checked_mul(last_copy)?;
    let end = offset.checked_add(last)?.checked_add(size)?;
    Some(end.min(extent.file_bytes.unwrap_or(u64::MAX)))
}

/// Refuses a job that ends beyond the end of an existing file or device.
pub(crate) fn check_end(
    job: &FioJob,
    end: u64,
    (path, bytes): (&Path, u64),
    translation: &Translation<'_>,
) -> Translated<()> {
    if end <= bytes {
        return Ok(());
    }
    let shown = translation.shown(path);
    let remedy = match translation.found(path) {
        PathKind::File(_) => format!(
            "fio would make the file longer, and diskproof does that only with one that \
             'diskproof as fio' made and nothing else changed. Remove it, or: truncate -s {end} {}",
            shell::quoted(&shown)
        ),
        _ => "use a smaller size or offset".to_owned(),
    };
    let (end, bytes) = (format_bytes(end), format_bytes(bytes));
    let shown = quoted(&shown);
    Err(job.error(format!(
        "the job ends at {end}, but {shown} has only {bytes}; {remedy}"
    )))
}
