//! Jobs that go beyond the end of an existing file, which fio makes longer. So does diskproof with
//! a file that an earlier run left, and with no other.

use super::environment::PathKind;
use super::jobs::FioJob;
use super::translation::{JobFileError, Translation};
use crate::plan_file::quoted;
use diskproof_compat::fio_values::Amount;
use diskproof_model::shell;
use diskproof_model::units::format_bytes;
use std::path::{Path, PathBuf};

/// A file of our own that grows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GrowingFile {
    /// Its path.
    pub path: PathBuf,
    /// The bytes that it needs.
    pub bytes: u64,
}

/// The only file of all jobs, where it is our own and one of them goes beyond its end. Other files
/// keep their size.
pub(crate) fn growing_file(
    jobs: &[FioJob],
    paths: &[Vec<PathBuf>],
    translation: &Translation<'_>,
) -> Option<GrowingFile> {
    let path = paths.first()?.first()?;
    let is_only = paths.iter().flatten().all(|other| other == path);
    let stays = |job: &FioJob| job.filename.is_some() && !job.unlinks;
    let PathKind::File(bytes) = translation.found(path) else {
        return None;
    };
    let may_grow = translation.is_as_fio()
        && translation.overrides.targets.is_empty()
        && is_only
        && jobs.iter().all(stays)
        && translation.environment.is_own(path);
    let needed = jobs.iter().filter_map(end_of).max()?;
    (may_grow && needed > bytes).then(|| GrowingFile {
        path: path.clone(),
        bytes: needed,
    })
}

/// Where the last copy of a job ends; `None` where that follows from the size of the file.
fn end_of(job: &FioJob) -> Option<u64> {
    let extent = &job.extent;
    let (Amount::Bytes(offset), Amount::Bytes(increment), Some(Amount::Bytes(size))) =
        (extent.offset, extent.increment, extent.size)
    else {
        return None;
    };
    let last = increment.checked_mul(job.numjobs - 1)?;
    let end = offset.checked_add(last)?.checked_add(size)?;
    Some(end.min(extent.file_bytes.unwrap_or(u64::MAX)))
}

/// Refuses a job that ends beyond the end of an existing file or device.
pub(crate) fn check_end(
    job: &FioJob,
    end: u64,
    (path, bytes): (&Path, u64),
    translation: &Translation<'_>,
) -> Result<(), JobFileError> {
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
