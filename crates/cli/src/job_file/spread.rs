//! Divides jobs by their files. A job on several existing files or disks becomes one job for each,
//! which share its depth, and whose figures are added again; several directories divide the copies
//! of a job among them, as in fio. A file that an earlier run left grows with a job that goes
//! beyond its end, and no other does. Opens nothing.

use super::environment::PathKind;
use super::file_names::{all_paths, directory_of_copy, first_paths, name_of_file, path_of};
use super::jobs::{FioJob, GivenNames, copy_numbers};
use super::translation::{FILES, IN_ORDER, Translated, Translation};
use crate::output_sink::directory_of;
use crate::plan_file::quoted;
use crate::workload::{Count, Rate};
use diskproof_compat::StartFailure;
use diskproof_compat::fio_values::Amount;
use diskproof_model::op::OpKind;
use diskproof_model::plan::EngineKind;
use diskproof_model::shell;
use diskproof_model::units::format_bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Direct I/O takes a page on every filesystem.
const PAGE_BYTES: u64 = 4096;
/// A sentence for errors about names that lead nowhere: a colon in one is the usual cause.
const COLON_SEPARATES: &str = "A colon separates names; write \\: for one in a name";

/// Marks the jobs whose several files stay, each under its own name. Where jobs share some files
/// but not all, and where a request could not be the same in each file, they are parts of one
/// scratch file.
pub(crate) fn mark_kept_files(jobs: &mut [FioJob], translation: &Translation<'_>) {
    let paths: Vec<Vec<PathBuf>> = jobs.iter().map(|job| all_paths(job, translation)).collect();
    for (index, job) in jobs.iter_mut().enumerate() {
        if let Some(bytes) = bytes_of_own_files(job, &paths[index], translation) {
            job.resolve_on_files(bytes);
        }
    }
    let mut can_keep = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        can_keep.push(
            !shares_some(&paths[index], &paths) && can_keep_files(job, &paths[index], translation),
        );
    }
    let mut keep = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        // Those with the same files do so together, and have the same part of them.
        keep.push(
            (0..paths.len())
                .filter(|other| paths[*other] == paths[index])
                .all(|other| can_keep[other] && has_same_parts(job, &jobs[other])),
        );
    }
    for (job, keeps) in jobs.iter_mut().zip(keep) {
        job.file_set.are_kept = keeps;
    }
}

/// Marks the jobs that have no size, or may make no file (`allow_file_create=0`), and have none. As
/// in fio, a job finds the files that those before it make.
pub(crate) fn mark_jobs_without_files(jobs: &mut [FioJob], translation: &Translation<'_>) {
    if !translation.is_as_fio() || !translation.overrides.targets.is_empty() {
        return;
    }
    let mut made: BTreeSet<PathBuf> = BTreeSet::new();
    for job in jobs {
        let paths = all_paths(job, translation);
        let mut has_none = true;
        let mut has_no_bytes = true;
        for path in &paths {
            let kind = translation.path_kind(path);
            has_none &= kind == PathKind::Nothing && !made.contains(path);
            has_no_bytes &=
                matches!(kind, PathKind::Nothing | PathKind::File(0)) && !made.contains(path);
        }
        if has_no_bytes && has_no_size(job) {
            job.start_failure = Some(StartFailure::NoSize);
            continue;
        }
        if job.file_set.makes_none && has_none && !job.moves_nothing {
            job.start_failure = Some(StartFailure::NoFileAllowed);
        }
        job.file_set.makes_none &= !paths.iter().all(|path| made.contains(path));
        if !job.file_set.makes_none {
            made.extend(paths);
        }
    }
}

/// True if a job has no size of its own, also where it has a share of what it would find: in fio
/// that fails as a new file has no size.
fn has_no_size(job: &FioJob) -> bool {
    let extent = &job.extent;
    matches!(extent.size, None | Some(Amount::Percent(_)))
        && extent.file_bytes.is_none()
        && !extent.fills
        && !job.moves_nothing
        && job.engine() != EngineKind::Null
}

/// Lets jobs and copies that append to one file begin where those before them end: as in fio, each
/// makes the file longer before any of them runs. Refuses them where that end is not known.
pub(crate) fn settle_appends(jobs: &mut [FioJob], translation: &Translation<'_>) -> Translated<()> {
    // The end of each file that several jobs or copies have; `None` where it is not known.
    let mut ends: BTreeMap<PathBuf, Option<u64>> = BTreeMap::new();
    for path in shared_paths(jobs, translation) {
        let found_bytes = match translation.path_kind(&path) {
            PathKind::File(bytes) => bytes,
            _ => 0,
        };
        ends.insert(path, Some(found_bytes));
    }
    for job in jobs {
        for path in all_paths(job, translation) {
            let Some(end) = ends.get_mut(&path) else {
                continue;
            };
            if job.file_set.appends {
                let Some(start) = *end else {
                    return Err(job.error_without_options(UNKNOWN_END));
                };
                append_at(job, start)?;
            }
            let found_bytes = *end;
            *end = match (found_bytes, end_of(job, None)) {
                (Some(bytes), _) if job.file_set.keeps_length => Some(bytes),
                (Some(bytes), Some(job_end)) => Some(bytes.max(job_end)),
                _ => None,
            };
        }
    }
    Ok(())
}

/// The error of a job that would append to a file whose end is not known.
const UNKNOWN_END: &str = "file_append: other jobs have the file, too, and where the job would \
                           begin is known only with sizes in bytes; write one, or use an offset";

/// Refuses a job whose requests would wait for those of others to its file.
pub(crate) fn check_locks(jobs: &[FioJob], translation: &Translation<'_>) -> Translated<()> {
    if !jobs.iter().any(|job| job.file_set.locks) {
        return Ok(());
    }
    let shared = shared_paths(jobs, translation);
    for job in jobs {
        let mut paths = all_paths(job, translation).into_iter();
        if job.file_set.locks && paths.any(|path| shared.contains(&path)) {
            return Err(job.error_without_options(
                "lockfile: several jobs or copies have the file, and their requests do not wait \
                 for each other here; give each its own, or remove the option",
            ));
        }
    }
    Ok(())
}

/// The files that several jobs or copies have.
fn shared_paths(jobs: &[FioJob], translation: &Translation<'_>) -> BTreeSet<PathBuf> {
    let mut seen = BTreeSet::new();
    let mut shared = BTreeSet::new();
    for job in jobs {
        let has_copies = job.file_set.filename.is_some() && job.copies.count > 1;
        for path in all_paths(job, translation) {
            if has_copies || !seen.insert(path.clone()) {
                shared.insert(path);
            }
        }
    }
    shared
}

/// Lets a job begin at the end of its file, and each of its copies behind the one before.
fn append_at(job: &mut FioJob, start: u64) -> Translated<()> {
    let has_one_file = job.file_count() == 1;
    let Some(Amount::Bytes(size)) = job.extent.size.filter(|_| has_one_file) else {
        return Err(job.error_without_options(UNKNOWN_END));
    };
    job.extent.offset = Amount::Bytes(start);
    if !job.file_set.keeps_length {
        job.extent.increment = Amount::Bytes(size);
    }
    Ok(())
}

/// The bytes of each of the several files of a job; `None` unless all exist, were made by diskproof
/// and have one size.
fn bytes_of_own_files(
    job: &FioJob,
    paths: &[PathBuf],
    translation: &Translation<'_>,
) -> Option<u64> {
    let has_targets = !translation.overrides.targets.is_empty();
    if job.file_count() <= 1 || has_targets || !translation.is_as_fio() {
        return None;
    }
    let mut found = None;
    for path in paths {
        let PathKind::File(bytes) = translation.path_kind(path) else {
            return None;
        };
        if !is_ours(path, translation) || found.is_some_and(|other| other != bytes) {
            return None;
        }
        found = Some(bytes);
    }
    found
}

/// True if two jobs have the same part of each of several files.
fn has_same_parts(job: &FioJob, other: &FioJob) -> bool {
    let kept = as_kept(job);
    let other_kept = as_kept(other);
    kept.kept_bytes() == other_kept.kept_bytes()
        && kept.start_in_each_file() == other_kept.start_in_each_file()
}

/// True if another job has some of these files, but not all.
fn shares_some(paths: &[PathBuf], paths_of_jobs: &[Vec<PathBuf>]) -> bool {
    paths_of_jobs
        .iter()
        .any(|other| other != paths && other.iter().any(|path| paths.contains(path)))
}

/// True if the several files of a job can stay.
fn can_keep_files(job: &FioJob, paths: &[PathBuf], translation: &Translation<'_>) -> bool {
    if !translation.is_as_fio() || !translation.overrides.targets.is_empty() {
        return false;
    }
    let has_own_names = job.file_set.filename.is_none();
    let is_one_part = has_own_names || job.extent.increment == Amount::ZERO || has_known_steps(job);
    let is_in_one_directory = paths.iter().all(|path| path.parent() == paths[0].parent());
    paths.len() > 1
        && job.file_count() > 1
        && job.engine() != EngineKind::Null
        && !job.file_set.unlinks
        && !job.extent.fills
        && !job.rw().makes(OpKind::Trim)
        && is_one_part
        && has_known_start(job, paths, translation)
        && has_whole_pages(job)
        && (job.is_uniform() || job.goes_onward() || job.requests.fio_amount.is_some())
        && paths.iter().all(|path| is_ours(path, translation))
        && (is_in_one_directory || has_own_names)
}

/// True if copies that share several files begin at known places of each, one behind another.
/// Files that are there and do not reach behind the last of them are used as they are: to make them
/// longer would write to files that a job only reads.
fn has_known_steps(job: &FioJob) -> bool {
    let is_in_bytes = matches!(job.extent.increment, Amount::Bytes(_));
    let is_known =
        is_in_bytes && job.requests.fio_amount.is_some() && job.extent.file_bytes.is_none();
    match (job.file_set.found_bytes, as_kept(job).bytes_of_each_file()) {
        (None, _) => is_known,
        (Some(found), Some(end)) => is_known && end <= found,
        (Some(_), None) => false,
    }
}

/// A copy of the job whose several files stay.
fn as_kept(job: &FioJob) -> FioJob {
    let mut kept = job.clone();
    kept.file_set.count = job.file_count();
    kept.file_set.are_kept = true;
    kept
}

/// True if the part of each file begins at a page and has whole ones, and at least one.
fn has_whole_pages(job: &FioJob) -> bool {
    let kept = as_kept(job);
    let starts_at_page = [job.extent.offset, job.extent.increment]
        .iter()
        .all(|place| place.bytes(0).is_multiple_of(PAGE_BYTES));
    match kept.kept_bytes() {
        Some(bytes) => {
            bytes > 0 && (bytes / kept.file_set.count).is_multiple_of(PAGE_BYTES) && starts_at_page
        }
        None => false,
    }
}

/// True if it is known where a job begins in its several files: an offset in percent is that of a
/// file, which the first lap of the first job makes.
fn has_known_start(job: &FioJob, paths: &[PathBuf], translation: &Translation<'_>) -> bool {
    let extent = &job.extent;
    let is_in_bytes = [extent.offset, extent.increment]
        .iter()
        .all(|place| matches!(place, Amount::Bytes(_)));
    let fits_in_lap = match (extent.io_size, as_kept(job).kept_bytes()) {
        (None, _) => true,
        (Some(io_size), Some(bytes)) => io_size.bytes(bytes) <= bytes,
        (Some(_), None) => false,
    };
    let has_one_lap = extent.loops == 1 && !extent.is_time_based && fits_in_lap;
    let are_new = paths
        .iter()
        .all(|path| translation.path_kind(path) == PathKind::Nothing);
    is_in_bytes || (are_new && (has_one_lap || job.requests.fio_amount.is_some()))
}

/// True if a path leads to nothing, or to a file that diskproof made.
fn is_ours(path: &Path, translation: &Translation<'_>) -> bool {
    match translation.path_kind(path) {
        PathKind::Nothing => true,
        PathKind::File(_) => translation.environment.is_made_by_us(path),
        _ => false,
    }
}

/// The names of the several files of a job with one copy, or of those that its copies share.
pub(crate) fn kept_names(job: &FioJob) -> Vec<String> {
    match &job.file_set.filename {
        Some(given) => given.names.iter().map(|name| last_part(name)).collect(),
        None => (0..job.file_set.count)
            .map(|file| last_part(&name_of_file(job, 0, file)))
            .collect(),
    }
}

/// The name without the directories before it.
fn last_part(name: &str) -> String {
    match name.rsplit_once('/') {
        Some((_, name)) => name.to_owned(),
        None => name.to_owned(),
    }
}

/// Divides a job into parts with one file or directory each.
pub(crate) fn spread(job: &FioJob, translation: &Translation<'_>) -> Translated<Vec<FioJob>> {
    check_file_size(job, translation)?;
    match &job.file_set.filename {
        // The targets of the command line replace them.
        _ if !translation.overrides.targets.is_empty() => Ok(vec![job.clone()]),
        Some(given) if given.names.len() > 1 => divide_by_files(job, given, translation),
        // As in fio, a job with file names takes the first directory.
        Some(_) => Ok(vec![job.clone()]),
        None => {
            if job.file_set.count > 1 && !job.file_set.are_kept {
                check_offset(job, translation)?;
                check_files_stay(job, translation)?;
                translation.note(FILES, &job.section);
            }
            // A log names the file of each copy, which has a part of its own then.
            let has_free_places = !leaves_files(job, translation) && !job.flags.shape.logs_requests;
            if job.file_set.directories.len() > 1 && has_free_places {
                return divide_by_directories(job);
            }
            Ok(divide_by_places(job, translation))
        }
    }
}

/// Divides a job into one for each of its files, or joins new files to one.
fn divide_by_files(
    job: &FioJob,
    given: &GivenNames,
    translation: &Translation<'_>,
) -> Translated<Vec<FioJob>> {
    let paths: Vec<PathBuf> = given.names.iter().map(|name| path_of(job, name)).collect();
    let missing: Vec<&PathBuf> = paths
        .iter()
        .filter(|path| translation.path_kind(path) == PathKind::Nothing)
        .collect();
    let has_own_files = leaves_files(job, translation) && depth(job) >= paths.len() as u64;
    if job.file_set.are_kept {
        return Ok(vec![joined_files(job, paths.len(), translation)]);
    }
    if missing.len() == paths.len() && !has_own_files {
        let job = &with_plain_increment(job);
        if let Err(why) = check_new_files(job, &paths) {
            return Err(given.source.error(format!("{why}. {COLON_SEPARATES}")));
        }
        check_offset(job, translation)?;
        check_files_stay(job, translation)?;
        translation.note(FILES, &job.section);
        let mut joined = joined_files(job, paths.len(), translation);
        joined.file_set.filename = Some(GivenNames {
            names: given.names[..1].to_vec(),
            source: given.source.clone(),
        });
        return Ok(vec![joined]);
    }
    if let Some(path) = missing.first()
        && !has_own_files
    {
        return Err(given.source.error(format!(
            "{} does not exist, but other files do; create it, or write a section for each. \
             {COLON_SEPARATES}",
            quoted(&path.display().to_string())
        )));
    }
    let shares = shares_of_files(job, given)?;
    translation.note(
        "each file or disk of a job has its own queue with a share of iodepth; fio fills one queue \
         from all of them in turn, so the slowest delays the others",
        &job.section,
    );
    let mut parts = Vec::new();
    for (name, mut part) in given.names.iter().zip(shares) {
        part.copies.are_of_part_before = !parts.is_empty() && part.copies.count == job.copies.count;
        part.file_set.filename = Some(GivenNames {
            names: vec![name.clone()],
            source: given.source.clone(),
        });
        parts.push(part);
    }
    Ok(concurrent(parts))
}

/// The job with an increment in bytes in place of percent: copies begin at different places of the
/// files that the first one makes, wherever those lie.
fn with_plain_increment(job: &FioJob) -> FioJob {
    let mut plain = job.clone();
    let extent = &mut plain.extent;
    if let (Amount::Percent(_), Amount::ZERO, Some(Amount::Bytes(size)), None) = (
        extent.increment,
        extent.offset,
        extent.size,
        extent.file_bytes,
    ) {
        let increment = extent.increment.bytes(size / job.file_count());
        let block = job.smallest_block().max(1);
        extent.increment = Amount::Bytes(increment.next_multiple_of(block));
    }
    plain
}

/// Refuses several files that are each smaller than a block.
fn check_file_size(job: &FioJob, translation: &Translation<'_>) -> Translated<()> {
    if !translation.is_as_fio() || job.file_count() <= 1 {
        return Ok(());
    }
    match as_kept(job).bytes_in_each_file() {
        Some(bytes) if bytes < job.smallest_block() => Err(job.error_without_options(
            "each of the job's files is smaller than a block, so fio moves nothing; use a larger \
             size, fewer files, or a smaller bs",
        )),
        _ => Ok(()),
    }
}

/// Refuses several new files that become parts of one, where fio would leave them behind.
fn check_files_stay(job: &FioJob, translation: &Translation<'_>) -> Translated<()> {
    let are_new = all_paths(job, translation)
        .iter()
        .all(|path| translation.path_kind(path) == PathKind::Nothing);
    let is_left =
        translation.is_as_fio() && job.engine() != EngineKind::Null && !job.file_set.unlinks;
    if !is_left || !are_new {
        return Ok(());
    }
    Err(job.error_without_options(
        "its files cannot stay as fio leaves them: another job has some of them or another part of \
         them, or a part begins between two pages or has less than one; use the same size and \
         offset in both jobs, in multiples of 4k, or unlink=1",
    ))
}

/// Refuses an offset that moves other bytes in one file of the total size than in each of several.
fn check_offset(job: &FioJob, translation: &Translation<'_>) -> Translated<()> {
    let extent = &job.extent;
    let places = [extent.offset, extent.increment];
    let is_at_start = places.iter().all(|place| *place == Amount::ZERO);
    let is_in_percent = places
        .iter()
        .any(|place| matches!(place, Amount::Percent(_)));
    if !translation.is_as_fio() || is_at_start || !(is_in_percent || extent.file_bytes.is_some()) {
        return Ok(());
    }
    Err(job.error(
        "these files become one, in which the offset is another place than in each; use an offset \
         in bytes that is a multiple of 4k, or a section for each file",
    ))
}

/// The requests of a copy in flight, in all of its files together.
fn depth(job: &FioJob) -> u64 {
    match job.flags.depth {
        Some(depth) => depth.0,
        None => 1,
    }
}

/// A job whose several files are parts of one.
fn joined_files(job: &FioJob, files: usize, translation: &Translation<'_>) -> FioJob {
    let alternates = job.may_alternate();
    if !job.is_random() && !alternates && job.requests.fio_amount.is_none() {
        translation.note(IN_ORDER, &job.section);
    }
    let mut joined = job.clone();
    joined.file_set.count = files as u64;
    joined.file_set.alternate = alternates;
    joined
}

/// The part of a job that each of its files gets: a share of the depth, or of the copies. Fails
/// where neither can be divided.
fn shares_of_files(job: &FioJob, given: &GivenNames) -> Translated<Vec<FioJob>> {
    let files = given.names.len() as u64;
    let job_depth = depth(job);
    let mut share = job.clone();
    share.file_set.are_kept = false;
    share.extent.size = amount_share(job.extent.size, files);
    share.extent.file_bytes = job.extent.file_bytes.map(|bytes| bytes / files);
    if job_depth >= files {
        share.extent.io_size = amount_share(job.extent.io_size, files);
        share.flags.rate = job.flags.rate.map(|rate| Rate(rate.0 / files as f64));
        share.requests.byte_rate = job.requests.byte_rate.map(|rate| rate / files as f64);
        if let Some(rate) = &mut share.flags.shape.starts.kind_rate {
            rate.per_second /= files as f64;
        }
    } else if job.copies.count.is_multiple_of(files) {
        share.copies.count = job.copies.count / files;
        // A copy does all of its work in one file.
        share.extent.io_size = job.extent.io_size.or(job.extent.size);
    } else {
        return Err(given.source.error(format!(
            "[{}]: fio visits the {files} files in turn from one queue. Here each file has its own \
             queue, but iodepth={job_depth} is less, and numjobs={} is no multiple of {files}. Use \
             a larger depth (ioengine=libaio iodepth={files}), or a section with stonewall for \
             each file",
            job.section, job.copies.count
        )));
    }
    let mut shares = vec![share; given.names.len()];
    if job_depth >= files {
        for (share, file) in shares.iter_mut().zip(0..) {
            share.flags.depth = Some(Count(share_of_file(job_depth, file, files)));
            if let Some(ops) = job.extent.ops {
                // Each file is a workload, which makes one request at least.
                share.extent.ops = Some(share_of_file(ops, file, files).max(1));
            }
        }
    }
    Ok(shares)
}

/// The share of a number for one of `files`. The first ones have what cannot be divided.
fn share_of_file(number: u64, file: u64, files: u64) -> u64 {
    number / files + u64::from(file < number % files)
}

/// The share of an amount for one of `files`; a percentage is already that of each file.
fn amount_share(amount: Option<Amount>, files: u64) -> Option<Amount> {
    match amount {
        Some(Amount::Bytes(bytes)) => Some(Amount::Bytes(bytes / files)),
        undivided => undivided,
    }
}

/// Refuses new files that cannot become one of their total size, because the load would differ.
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

/// Divides the copies of a job among its directories, which fio gives to them in turn.
fn divide_by_directories(job: &FioJob) -> Translated<Vec<FioJob>> {
    let count = job.file_set.directories.len() as u64;
    // With fewer copies the last directories stay unused.
    let used = count.min(job.copies.count);
    if !job.copies.count.is_multiple_of(used) {
        return Err(job.error(format!(
            "numjobs={} copies cannot be divided among {count} directories; use a multiple, or \
             write a section for each",
            job.copies.count
        )));
    }
    let mut parts = Vec::new();
    for directory in job.file_set.directories.iter().take(used as usize) {
        let mut part = job.clone();
        part.copies.count = job.copies.count / used;
        part.file_set.directories = vec![directory.clone()];
        parts.push(part);
    }
    Ok(concurrent(parts))
}

/// Divides a job into one for each copy, where their files are on several disks or in several
/// directories, or stay under their names.
fn divide_by_places(job: &FioJob, translation: &Translation<'_>) -> Vec<FioJob> {
    let places: Vec<PathBuf> = first_paths(job, translation)
        .iter()
        .map(|path| place_of(path, job, translation))
        .collect();
    if places.iter().all(|place| *place == places[0]) {
        return vec![job.clone()];
    }
    let mut copies = Vec::new();
    for copy in copy_numbers(job.copies.count) {
        let mut part = job.clone();
        part.copies.count = 1;
        part.file_set.directories = directory_of_copy(job, copy).into_iter().cloned().collect();
        part.file_set.filename_format = job
            .file_set
            .filename_format
            .replace("$jobnum", &copy.to_string());
        part.copies.first_in_section = copy;
        copies.push(part);
    }
    concurrent(copies)
}

/// The place of a file: its device, the directory of a scratch file, or itself where it stays.
fn place_of(path: &Path, job: &FioJob, translation: &Translation<'_>) -> PathBuf {
    let is_device = matches!(translation.path_kind(path), PathKind::Device(_));
    if is_device || leaves_files(job, translation) {
        path.to_path_buf()
    } else {
        directory_of(path).to_path_buf()
    }
}

/// Makes jobs run together: only the first one waits for others.
fn concurrent(mut parts: Vec<FioJob>) -> Vec<FioJob> {
    for part in parts.iter_mut().skip(1) {
        part.turn.waits = false;
        part.turn.waits_for = None;
        part.shown.begins_group = false;
    }
    parts
}

/// True if a job leaves its files behind, each under its own name.
fn leaves_files(job: &FioJob, translation: &Translation<'_>) -> bool {
    translation.is_as_fio() && !job.vanishes()
}

/// The files of jobs that leave none behind.
pub(crate) fn vanishing_files<'a>(
    jobs: &[FioJob],
    paths: &'a [Vec<PathBuf>],
) -> BTreeSet<&'a PathBuf> {
    let mut vanishing = BTreeSet::new();
    for (index, job) in jobs.iter().enumerate() {
        if job.vanishes() {
            vanishing.extend(&paths[index]);
        }
    }
    vanishing
}

/// The bytes of each file that its jobs use, as far as they say so.
pub(crate) fn needed_bytes<'a>(
    jobs: &[FioJob],
    paths: &'a [Vec<PathBuf>],
    translation: &Translation<'_>,
) -> BTreeMap<&'a PathBuf, u64> {
    let mut needed = BTreeMap::new();
    for (index, job) in jobs.iter().enumerate() {
        let Some(path) = paths[index].first() else {
            continue;
        };
        let found_bytes = match translation.path_kind(path) {
            PathKind::File(bytes) => Some(bytes),
            _ => None,
        };
        if let Some(end) = end_of(job, found_bytes) {
            let bytes = needed.entry(path).or_insert(0);
            *bytes = end.max(*bytes);
        }
    }
    needed
}

/// Where the last copy of a job ends; `None` where that follows from the size of the file. A
/// percentage is of the file as it was found.
fn end_of(job: &FioJob, found_bytes: Option<u64>) -> Option<u64> {
    let extent = &job.extent;
    let Some(Amount::Bytes(size)) = extent.size else {
        return None;
    };
    let last_copy = job.copies.first_in_section + job.copies.count - 1;
    let start = job.start_of_copy(last_copy, found_bytes)?;
    let end = start.checked_add(size)?;
    Some(end.min(extent.file_bytes.unwrap_or(u64::MAX)))
}

/// Refuses a job that ends beyond the end of an existing file or device, which has `bytes`.
pub(crate) fn check_end(
    job: &FioJob,
    end: u64,
    path: &Path,
    bytes: u64,
    translation: &Translation<'_>,
) -> Translated<()> {
    if end <= bytes {
        return Ok(());
    }
    let shown = translation.shown(path);
    let remedy = match translation.path_kind(path) {
        // It would begin at the new end of a file that was made longer.
        PathKind::File(_) if job.file_set.appends => "remove it, or use offset".to_owned(),
        PathKind::File(_) => format!(
            "fio would make the file longer, and diskproof does that only with one that \
             'diskproof as fio' made and nothing else changed. Remove it, or: truncate -s {end} {}",
            shell::quoted(&shown)
        ),
        _ => "use a smaller size or offset".to_owned(),
    };
    Err(job.error(format!(
        "the job ends at {}, but {} has only {}; {remedy}",
        format_bytes(end),
        quoted(&shown),
        format_bytes(bytes)
    )))
}
