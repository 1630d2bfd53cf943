//! Divides a target into the parts that the copies of jobs use.
//!
//! Each copy has a part of its file: where it starts, and how long it is. Then the files lie one
//! behind another in the target. These sizes decide:
//!
//! | name | bytes of |
//! |---|---|
//! | `whole` | the target, where it is one file that all jobs use and its size is known |
//! | `FileSizes::existing` | a file, as it exists or as an earlier job makes it |
//! | `FileSizes::percent_of` | the file of which fio takes percentages |
//! | `FilePart::length` | the span in which a copy works |
//! | `FilePart::job_bytes` | the part as the job sets it, which may be more than the span |
//! | `FilePart::file_bytes` | the file that a copy leaves, where it stays |

use super::roots::{JobFiles, PAGE_BYTES, TargetRoot};
use crate::job_file::jobs::{FioJob, copy_numbers};
use crate::job_file::translation::{JobFileError, Translated};
use diskproof_compat::fio_values::Amount;
use std::collections::BTreeMap;
use std::path::Path;

/// Parts of different jobs begin at multiples of this, which is a multiple of every sector, page
/// and flash block.
const PART_BYTES: u64 = 1 << 20;

/// A part of a target that a copy of a job uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilePart {
    /// The first byte of the part in its target.
    pub start: u64,
    /// The bytes of the part. Where each copy has its own file, they are whole blocks.
    pub length: u64,
    /// The bytes of the part as the job sets them. They may be more than the file has: then the job
    /// starts again.
    pub job_bytes: u64,
    /// The bytes of a file that stays.
    pub file_bytes: u64,
    /// True if the part begins where its file begins.
    pub begins_file: bool,
    /// True if the part is the whole file, but for less than a block.
    pub is_whole_file: bool,
    /// The bytes of the file as the job finds it; `None` where it is new.
    pub found_bytes: Option<u64>,
    /// Where the file begins in the target.
    pub file_start: u64,
}

impl FilePart {
    pub(super) fn end(self) -> u64 {
        self.start.saturating_add(self.length)
    }

    /// True if it begins where another part of the same length ends.
    pub(crate) fn follows(self, before: Self) -> bool {
        let end = before.start.checked_add(before.length);
        self.length == before.length && end == Some(self.start)
    }
}

/// A target that is divided among jobs.
pub(super) struct Allocation {
    /// The parts by job, then by copy.
    pub(super) parts: Vec<Vec<FilePart>>,
    /// The end of the last file in the target, at the end of a page or of more.
    pub(super) bytes: u64,
    /// The end of the last file as the jobs set it.
    pub(super) file_end: u64,
}

/// Divides a target among the jobs that use it. A single file begins at 0 and may be as large as
/// its target.
pub(super) fn allocate(members: &[&JobFiles<'_>], root: &TargetRoot) -> Translated<Allocation> {
    let first_path = &members[0].paths[0];
    let is_single = members
        .iter()
        .all(|files| files.paths.iter().all(|path| path == first_path));
    let whole = if is_single { root.bytes() } else { None };
    let mut parts: Vec<Vec<FilePart>> = Vec::new();
    for files in members {
        parts.push(parts_in_files(files, members, &parts, whole, root)?);
    }
    // Jobs with the same files that stay keep all of them, and have the same part of each
    // (`mark_kept_files`): all parts begin at 0.
    if let Some(bytes) = members[0].job.kept_bytes() {
        return Ok(Allocation {
            parts,
            bytes,
            file_end: bytes,
        });
    }
    let extents = file_extents(members, &parts, root);
    let layout = FileLayout::new(members, &extents, root);
    for (index, files) in members.iter().enumerate() {
        let block = files.job.smallest_block();
        for (copy, part) in parts[index].iter_mut().enumerate() {
            let path = files.paths[copy].as_path();
            let file_bytes = whole.unwrap_or(extents[path]);
            let has_all_blocks = part.length / block == file_bytes / block;
            part.is_whole_file = part.begins_file && has_all_blocks;
            part.start = part.start.saturating_add(layout.starts[path]);
            part.file_start = layout.starts[path];
        }
    }
    // A file that stays has whole pages until its end, and its length afterwards.
    let unit = if root.kept_names().is_empty() {
        PART_BYTES
    } else {
        PAGE_BYTES
    };
    Ok(Allocation {
        parts,
        bytes: rounded_up(layout.end, unit),
        file_end: layout.end,
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
    if let Some(part) = kept_part(job) {
        return Ok(parts_of_kept(job, part));
    }
    let users = members
        .iter()
        .filter(|other| other.paths.contains(&files.paths[0]))
        .count();
    let is_shared = users > 1;
    let made_bytes = first_file_bytes(files, members, earlier, root);
    let mut sizes = FileSizes::before_copies(files, whole, made_bytes, root);
    let is_new_file = sizes.existing.is_none() && !is_shared && has_own_files(files);
    let mut parts: BTreeMap<u64, FilePart> = BTreeMap::new();
    for number in copy_numbers(job.copies.count) {
        let copy = job.copies.first_in_section + number;
        let mut part = copy_part(job, copy, &sizes, root)?;
        if is_new_file {
            fit_new_file(job, copy, &mut part);
        }
        part.found_bytes = sizes.found_by_next_copy();
        reach_last_block(job, &mut part);
        if files.has_file_per_copy && job.requests.fio_amount.is_none() {
            let block = job.smallest_block();
            // The job visits neither the bytes behind the last whole block of its own file nor
            // those before its offset; unless another job visits the latter, the file need not
            // hold them.
            part.length = part.length / block * block;
            if whole.is_none() && !is_shared && root.kept_names().is_empty() {
                part.start = 0;
            }
        }
        sizes.add_copy(&part);
        parts.insert(copy, part);
    }
    Ok(parts.into_values().collect())
}

/// True if no two copies of a job use one file.
fn has_own_files(files: &JobFiles<'_>) -> bool {
    files.has_file_per_copy || files.job.copies.count == 1
}

/// The sizes of the file that a copy of a job uses, in bytes. Each is `None` where nothing tells it
/// yet.
#[derive(Debug, Clone, Copy)]
struct FileSizes {
    /// The file as it exists. For a job without a size, also as an earlier job makes it: the job
    /// takes that size.
    existing: Option<u64>,
    /// The file of which fio takes percentages, unless `grown` is known.
    percent_of: Option<u64>,
    /// The file as the first copy finds it.
    found: Option<u64>,
    /// The file as the copies so far leave it, where each takes a percentage of that; `None` where
    /// none does.
    grown: Option<u64>,
}

impl FileSizes {
    /// The sizes before the first copy. `whole` is the size of the target, if that is a single
    /// file, and `made_bytes` that of the job's file as earlier jobs make it.
    fn before_copies(
        files: &JobFiles<'_>,
        whole: Option<u64>,
        made_bytes: Option<u64>,
        root: &TargetRoot,
    ) -> Self {
        let job = files.job;
        let existing = match whole {
            None if job.extent.size.is_none() => made_bytes,
            whole => whole,
        };
        // As in fio, a copy takes a percentage of the file as those before it leave it. The first
        // one makes a new file, of which it takes nothing.
        let grown = if existing.is_none() && !has_own_files(files) && job.grows_by_percent() {
            Some(root.found_bytes().or(made_bytes).unwrap_or(0))
        } else {
            None
        };
        Self {
            existing,
            percent_of: root
                .found_bytes()
                .or(existing)
                .or(job.extent.new_file_bytes()),
            found: root.found_bytes().or(whole).or(made_bytes),
            grown,
        }
    }

    /// The file of which the next copy takes percentages.
    fn percent_of_next_copy(&self) -> Option<u64> {
        self.grown.or(self.percent_of)
    }

    /// The file as the next copy finds it.
    fn found_by_next_copy(&self) -> Option<u64> {
        self.grown.or(self.found)
    }

    /// Counts the part of a copy, which leaves the file at least as long.
    fn add_copy(&mut self, part: &FilePart) {
        self.grown = self.grown.map(|bytes| bytes.max(part.file_bytes));
    }
}

/// The part of each copy of a job whose several files stay: all of them; `None` for another job.
fn kept_part(job: &FioJob) -> Option<FilePart> {
    let bytes = job.kept_bytes()?;
    Some(FilePart {
        start: 0,
        length: bytes,
        job_bytes: job.requested_bytes().unwrap_or(bytes),
        file_bytes: bytes,
        begins_file: true,
        is_whole_file: true,
        found_bytes: job.file_set.found_bytes,
        file_start: 0,
    })
}

/// The part of each copy of a job whose several files stay. A copy finds new ones as those before
/// it leave them, where it takes a percentage of them.
fn parts_of_kept(job: &FioJob, part: FilePart) -> Vec<FilePart> {
    let mut parts = Vec::new();
    for copy in 0..job.copies.count {
        parts.push(FilePart {
            found_bytes: part.found_bytes.or_else(|| job.bytes_before_copy(copy)),
            ..part
        });
    }
    parts
}

/// The bytes of a job's first file, as it exists or as the jobs with the `earlier` parts leave it;
/// `None` where none of them uses it.
fn first_file_bytes(
    files: &JobFiles<'_>,
    members: &[&JobFiles<'_>],
    earlier: &[Vec<FilePart>],
    root: &TargetRoot,
) -> Option<u64> {
    file_extents(members, earlier, root)
        .get(files.paths[0].as_path())
        .copied()
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
            if root.kept_names().is_empty() {
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
            let file_bytes = if root.kept_names().is_empty() {
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
/// longer, except that with a percentage fio rounds the place up (`get_start_offset` of its
/// filesetup.c). The copy moves as much, and starts again from its offset where that is less.
fn fit_new_file(job: &FioJob, copy: u64, part: &mut FilePart) {
    let extent = &job.extent;
    let block = job.smallest_block();
    let increment = bytes_or_zero(extent.increment).saturating_mul(copy);
    let mut offset = bytes_or_zero(extent.offset).saturating_add(increment);
    if matches!(extent.offset, Amount::Percent(_)) || matches!(extent.increment, Amount::Percent(_))
    {
        offset = rounded_up(offset, job.start_unit());
    }
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
        part.begins_file = offset == 0;
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

/// Lets a job end with a whole block where the file that it finds goes on: as in fio, the last of
/// its sequential requests begins in its part.
fn reach_last_block(job: &FioJob, part: &mut FilePart) {
    let Some(found_bytes) = part.found_bytes else {
        return;
    };
    if !job.is_random() && job.file_set.count == 1 {
        let behind_start = found_bytes.saturating_sub(part.start);
        let whole_blocks = job.whole_blocks(part.job_bytes).min(behind_start);
        part.length = part.length.max(whole_blocks);
    }
}

/// The bytes of an amount; 0 of a percentage.
fn bytes_or_zero(amount: Amount) -> u64 {
    match amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Percent(_) => 0,
    }
}

/// The part of its file that a copy of a job uses.
fn copy_part(
    job: &FioJob,
    copy: u64,
    sizes: &FileSizes,
    root: &TargetRoot,
) -> Translated<FilePart> {
    let extent = &job.extent;
    let base = sizes.existing.or(extent.new_file_bytes());
    let Some(start) = job.start_of_copy(copy, sizes.percent_of_next_copy()) else {
        return Err(percent_of_nothing(job));
    };
    let left_bytes = sizes.existing.map(|bytes| bytes.saturating_sub(start));
    let length = match (extent.size, left_bytes) {
        (Some(size @ Amount::Percent(_)), Some(left)) => known_bytes(job, size, base)?.min(left),
        // As in fio, a job ends with the device.
        (Some(size), Some(left)) if root.is_device() => known_bytes(job, size, base)?.min(left),
        (Some(size), _) => known_bytes(job, size, base)?,
        (None, Some(left)) => left,
        (None, None) => return Err(missing_size(job)),
    };
    // As in fio, a copy that begins inside the file ends at its end.
    let left_of_set_size = extent.file_bytes.map(|bytes| bytes.saturating_sub(start));
    let job_bytes = length.min(left_of_set_size.unwrap_or(u64::MAX));
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
        length: match left_bytes {
            Some(left) if has_zones(job) => left,
            _ => span_bytes(job, job_bytes, left_of_set_size, left_bytes),
        },
        job_bytes,
        file_bytes: match (extent.file_bytes, extent.size) {
            (Some(bytes), Some(Amount::Bytes(_)) | None) => bytes.max(end),
            _ => end,
        },
        begins_file: start == 0,
        // Decided once the sizes of all files are known.
        is_whole_file: false,
        found_bytes: sizes.existing,
        file_start: 0,
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

/// True if a job has zones that are not the gaps of its requests.
fn has_zones(job: &FioJob) -> bool {
    job.flags.shape.order.zone_stride.is_some() && job.requests.gap_step_bytes.is_none()
}

/// The bytes in which a copy works that moves `job_bytes`. `left_of_set_size` are those behind its
/// start in a file whose size the job sets, and `left_bytes` those in a file that exists. As in
/// fio, random requests go anywhere in the file, and each of several files ends with its last whole
/// block.
fn span_bytes(
    job: &FioJob,
    job_bytes: u64,
    left_of_set_size: Option<u64>,
    left_bytes: Option<u64>,
) -> u64 {
    let block = job.smallest_block();
    let length = match left_of_set_size {
        Some(left) => {
            let room = left.min(left_bytes.unwrap_or(u64::MAX));
            if job.is_random() || job.laps_have_whole_file() {
                room
            } else {
                job.whole_blocks(job_bytes).min(room)
            }
        }
        None => job_bytes,
    };
    if job.file_set.count > 1 {
        length / job.file_set.count / block * block * job.file_set.count
    } else {
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_file::environment::System;
    use crate::job_file::sections::{JobText, read_sections};
    use diskproof_model::rw::Rw;

    const BLOCK: u64 = 4096;

    /// A job without options: sequential reads of 4 KiB.
    fn job() -> FioJob {
        let text = JobText::File {
            text: "[a]\n".into(),
            path: Path::new("a.fio"),
        };
        let section = read_sections(&[text], &System).unwrap().sections.remove(0);
        let job = FioJob::from_section(&section);
        assert_eq!(job.smallest_block(), BLOCK);
        job
    }

    fn part(start: u64, length: u64) -> FilePart {
        FilePart {
            start,
            length,
            job_bytes: length,
            file_bytes: length,
            begins_file: false,
            is_whole_file: false,
            found_bytes: None,
            file_start: 0,
        }
    }

    #[test]
    fn part_follows_one_of_its_length_that_ends_where_it_begins() {
        for (before, after, follows) in [
            (part(0, 4096), part(4096, 4096), true),
            (part(0, 4096), part(8192, 4096), false),
            (part(0, 8192), part(8192, 4096), false),
            (part(4096, 4096), part(0, 4096), false),
            (part(u64::MAX, 4096), part(4095, 4096), false),
        ] {
            assert_eq!(after.follows(before), follows, "{before:?} {after:?}");
        }
        assert_eq!(part(u64::MAX, 4096).end(), u64::MAX);
    }

    #[test]
    fn places_are_rounded_up_to_a_unit_as_far_as_there_are_any() {
        assert_eq!(rounded_up(1, PART_BYTES), PART_BYTES);
        assert_eq!(rounded_up(PART_BYTES, PART_BYTES), PART_BYTES);
        assert_eq!(rounded_up(u64::MAX - 1, PAGE_BYTES), u64::MAX);
    }

    #[test]
    fn sequential_job_ends_with_a_whole_block_if_the_one_file_that_it_finds_goes_on() {
        let reached = |job: &FioJob, found_bytes: u64| {
            let mut last = FilePart {
                found_bytes: Some(found_bytes),
                ..part(0, 2 * BLOCK + 100)
            };
            reach_last_block(job, &mut last);
            last.length
        };
        assert_eq!(reached(&job(), 1 << 20), 3 * BLOCK);
        assert_eq!(reached(&job(), 2 * BLOCK + 200), 2 * BLOCK + 200);
        assert_eq!(reached(&job(), BLOCK), 2 * BLOCK + 100, "never shorter");
        let mut random = job();
        random.flags.rw = Some(Rw::RANDREAD);
        assert_eq!(reached(&random, 1 << 20), 2 * BLOCK + 100);
        // Each of several files ends with its last whole block.
        let mut several = job();
        several.file_set.count = 2;
        assert_eq!(reached(&several, 1 << 20), 2 * BLOCK + 100);
    }

    #[test]
    fn later_laps_on_a_new_file_start_at_its_offset_unless_one_block_is_left() {
        for (file_bytes, start) in [(3 * BLOCK, 2 * BLOCK), (3 * BLOCK - 1, 0), (2 * BLOCK, 0)] {
            let mut job = job();
            job.extent.file_bytes = Some(file_bytes);
            let mut new = part(2 * BLOCK, BLOCK);
            fit_new_file(&job, 0, &mut new);
            assert_eq!(
                (new.start, new.begins_file),
                (start, start == 0),
                "{file_bytes}"
            );
        }
    }

    /// A percentage of a file that grows is taken of what the copies before left.
    #[test]
    fn next_copy_finds_the_file_as_the_longest_part_so_far_leaves_it() {
        let known = FileSizes {
            existing: None,
            percent_of: Some(100),
            found: Some(70),
            grown: None,
        };
        let mut growing = FileSizes {
            grown: Some(0),
            ..known
        };
        for (bytes, grown_bytes) in [(50, 50), (80, 80), (60, 80)] {
            growing.add_copy(&part(0, bytes));
            assert_eq!(growing.percent_of_next_copy(), Some(grown_bytes));
            assert_eq!(growing.found_by_next_copy(), Some(grown_bytes));
        }
        let mut constant = known;
        constant.add_copy(&part(0, 500));
        assert_eq!(constant.percent_of_next_copy(), Some(100));
        assert_eq!(constant.found_by_next_copy(), Some(70));
    }
}
