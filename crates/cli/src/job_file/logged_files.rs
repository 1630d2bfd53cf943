//! Finds the places of a job's files in the target of a workload, for a log that names the file of
//! each request. Pure.

use super::file_names::paths_of_copy;
use super::jobs::FioJob;
use super::placement::FilePart;
use super::translation::{Translated, Translation};
use crate::workload::{Position, WorkloadFlags};
use diskproof_compat::WorkloadFile;
use diskproof_model::shape::FioFiles;

/// The files of a workload that carries out these copies of a job, where it logs its requests.
pub(crate) fn logged_files(
    job: &FioJob,
    copies: &[(u64, FilePart)],
    flags: &WorkloadFlags,
    translation: &Translation<'_>,
) -> Translated<Vec<WorkloadFile>> {
    let mut files = Vec::new();
    if !flags.shape.logs_requests {
        return Ok(files);
    }
    for (copy, part) in copies {
        let names = paths_of_copy(job, *copy, translation);
        if job.file_set.count > 1 && !job.file_set.are_kept {
            return Err(job.error(
                "write_iolog: the files of this job are parts of one, in which no request has the \
                 place of fio; write a section for each, or remove write_iolog",
            ));
        }
        let places = match &flags.shape.order.fio {
            Some(order) => places_in_order(&order.files, flags),
            None => places_in_part(job, *copy, *part),
        };
        for (name, place) in names.iter().zip(places) {
            files.push(WorkloadFile {
                name: name.display().to_string(),
                target_start: place.target_start,
                file_start: place.file_start,
            });
        }
    }
    files.sort_by_key(|file| file.target_start);
    Ok(files)
}

/// Where a file begins.
struct FilePlace {
    target_start: u64,
    file_start: u64,
}

/// The places of the files of a job in the order of fio.
fn places_in_order(files: &FioFiles, flags: &WorkloadFlags) -> Vec<FilePlace> {
    let mut target_start = match flags.span.map(|span| span.start) {
        Some(Position::Bytes(start)) => start,
        Some(Position::Percent(_)) | None => 0,
    };
    let mut places = Vec::new();
    for _ in 0..files.count {
        places.push(FilePlace {
            target_start,
            file_start: files.part_start,
        });
        target_start = target_start.saturating_add(files.part_bytes);
    }
    places
}

/// The places of the files of a copy in its part of the target.
fn places_in_part(job: &FioJob, copy: u64, part: FilePart) -> Vec<FilePlace> {
    let count = job.file_set.count.max(1);
    if count == 1 {
        // Of a file that vanishes, the bytes before the first request may be left out.
        let mut file_start = part.start - part.file_start;
        if file_start == 0 && job.vanishes() {
            let before = job.extent.increment.bytes(0).saturating_mul(copy);
            file_start = job.start_in_each_file().saturating_add(before);
        }
        return vec![FilePlace {
            target_start: part.start,
            file_start,
        }];
    }
    let bytes = part.length / count;
    let mut places = Vec::new();
    for file in 0..count {
        places.push(FilePlace {
            target_start: part.start + file * bytes,
            file_start: job.start_in_each_file(),
        });
    }
    places
}
