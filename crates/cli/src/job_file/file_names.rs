//! Names the files of a job: those that its author names, and those that fio names after the job,
//! its copies and its files.

use super::environment::PathKind;
use super::jobs::FioJob;
use super::translation::Translation;
use std::path::PathBuf;

/// The files of all copies of a job.
pub(crate) fn all_paths(job: &FioJob, translation: &Translation<'_>) -> Vec<PathBuf> {
    if let Some(given) = &job.file_set.filename {
        return given.names.iter().map(|name| path_of(job, name)).collect();
    }
    if job.file_set.count <= 1 {
        return first_paths(job, translation);
    }
    let mut paths = Vec::new();
    for copy in 0..job.copies.count {
        for file in 0..job.file_set.count {
            paths.push(path_of_file(job, copy, file));
        }
    }
    paths
}

/// The directory of a copy: as in fio, they take turns.
pub(super) fn directory_of_copy(job: &FioJob, copy: u64) -> Option<&String> {
    let turn = copy as usize % job.file_set.directories.len().max(1);
    job.file_set.directories.get(turn)
}

/// The path of a file that the author names.
pub(super) fn path_of(job: &FioJob, name: &str) -> PathBuf {
    path_in(job.file_set.directories.first(), name)
}

/// The path of a file of a copy that fio names.
fn path_of_file(job: &FioJob, copy: u64, file: u64) -> PathBuf {
    path_in(directory_of_copy(job, copy), &name_of_file(job, copy, file))
}

/// The path of a file in a directory. As in fio, that precedes even an absolute name.
fn path_in(directory: Option<&String>, name: &str) -> PathBuf {
    match directory {
        Some(directory) => PathBuf::from(format!("{}/{name}", directory.trim_end_matches('/'))),
        None => PathBuf::from(name),
    }
}

/// The files of a copy of a job, as fio names them.
pub(crate) fn paths_of_copy(
    job: &FioJob,
    copy: u64,
    translation: &Translation<'_>,
) -> Vec<PathBuf> {
    match &job.file_set.filename {
        Some(given) => given.names.iter().map(|name| path_of(job, name)).collect(),
        None if job.file_set.count <= 1 => {
            vec![first_paths(job, translation)[copy as usize].clone()]
        }
        None => (0..job.file_set.count)
            .map(|file| path_of_file(job, copy, file))
            .collect(),
    }
}

/// The first file of each copy of a job, as fio names it.
pub(crate) fn first_paths(job: &FioJob, translation: &Translation<'_>) -> Vec<PathBuf> {
    let copies = job.copies.count as usize;
    if let Some(given) = &job.file_set.filename {
        return vec![path_of(job, &given.names[0]); copies];
    }
    // fio takes the name of a section for a device where there is one.
    let device = path_of(job, &job.section);
    if job.section.contains('/') && matches!(translation.path_kind(&device), PathKind::Device(_)) {
        return vec![device; copies];
    }
    (0..job.copies.count)
        .map(|copy| path_of_file(job, copy, 0))
        .collect()
}

/// The path of the first file of a copy, as fio spells it.
pub(crate) fn first_path_text(job: &FioJob, copy: u64) -> String {
    let path = match &job.file_set.filename {
        Some(given) => path_of(job, &given.names[0]),
        None => path_of_file(job, copy, 0),
    };
    path.to_string_lossy().into_owned()
}

/// The name of a file of a copy of a job without file names.
pub(super) fn name_of_file(job: &FioJob, copy: u64, file: u64) -> String {
    job.file_set
        .filename_format
        .replace("$jobnum", &copy.to_string())
        .replace("$filenum", &file.to_string())
        .replace("$clientuid", "")
        .replace("$jobname", &job.section)
}
