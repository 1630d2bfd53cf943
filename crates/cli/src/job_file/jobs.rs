//! Describes one fio job, read from a section: its load, in the keys of a workload. Independent of
//! targets and of other jobs.

use super::sections::{Section, SourceLine};
use super::translation::JobFileError;
use crate::workload::{BlockSize, Count, Time, WorkloadFlags};
use diskproof_compat::fio_values::{Amount, Base};
use diskproof_compat::{SizeRange, StartFailure};
use diskproof_model::op::OpKind;
use diskproof_model::plan::{EngineChoice, EngineKind};
use diskproof_model::rw::{Order, Rw};
use diskproof_model::shape::{LoadShape, ThreadSetup};

/// The names of files without `filename` and `filename_format`.
pub(crate) const FILENAME_FORMAT_DEFAULT: &str = "$jobname.$jobnum.$filenum";
/// The block size of a job without `bs`.
pub(crate) const BLOCK_BYTES_DEFAULT: u32 = 4096;

/// A name that a job file sets, with its place for errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GivenName {
    /// The name as the file spells it.
    pub name: String,
    /// The line that sets it.
    pub source: SourceLine,
}

/// Names of files that a job file sets, with their place for errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GivenNames {
    /// The names, at least one.
    pub names: Vec<String>,
    /// The line that sets the last of them.
    pub source: SourceLine,
}

/// A job: fio runs `numjobs` copies of it. Options about one matter are set together, and have a
/// struct together.
#[derive(Debug, Clone)]
pub(crate) struct FioJob {
    /// Where its section begins.
    pub source: SourceLine,
    /// The name of its section, by which errors and `wait_for` know it.
    pub section: String,
    /// Its name in results.
    pub name: String,
    /// The keys of each copy that depend neither on its part of the file nor on the page cache.
    pub flags: WorkloadFlags,
    /// What the keys of a workload cannot say about its requests.
    pub requests: JobRequests,
    /// Part of the file, and amount of I/O.
    pub extent: JobExtent,
    /// Use of the page cache.
    pub cache: Cache,
    /// True if its part of the file is read into the page cache first (`pre_read`).
    pub pre_reads: bool,
    /// Its copies.
    pub copies: JobCopies,
    /// Its turn among the jobs.
    pub turn: JobTurn,
    /// The files of its copies.
    pub file_set: JobFiles,
    /// The look of its results.
    pub shown: JobOutput,
    /// The scheduler that the disk is to have (`ioscheduler`).
    pub scheduler: Option<GivenName>,
    /// True if it has no file, so that fio moves nothing.
    pub moves_nothing: bool,
    /// Why it fails before it begins; other jobs run. `None` where it does not.
    pub start_failure: Option<StartFailure>,
}

/// What the keys of a workload cannot say about the requests of a job.
#[derive(Debug, Clone, Default)]
pub(crate) struct JobRequests {
    /// The distance between the starts of its requests, where gaps between them are zones.
    pub gap_step_bytes: Option<u64>,
    /// What decides about the amount of its requests besides its part of the file, where it makes
    /// them in the order of fio.
    pub fio_amount: Option<RequestAmount>,
    /// The bytes per second of each copy, where its requests have several sizes and even starts.
    pub byte_rate: Option<f64>,
    /// True if fio keeps a map of the blocks that random offsets have visited.
    pub is_mapped: bool,
}

/// The copies of a job. A section is divided into several jobs where its copies differ; their
/// numbers go on from one to the next.
#[derive(Debug, Clone)]
pub(crate) struct JobCopies {
    /// Number of the copies (`numjobs`), which fio calls jobs, too.
    pub count: u64,
    /// The number of the first copy among those of all jobs.
    pub first: u64,
    /// The number of the first copy among those of its section.
    pub first_in_section: u64,
    /// True if they are those of the part before it, on another of the job's files.
    pub are_of_part_before: bool,
    /// True if each copy has one of the processors for itself, in turn.
    pub split_cpus: bool,
}

/// When a job starts, and what ends with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct JobTurn {
    /// True if it starts after the jobs before it have ended.
    pub waits: bool,
    /// The section of the job after whose end it starts (`wait_for`).
    pub waits_for: Option<GivenName>,
    /// True if its end also ends the jobs that run together with it (`exitall`).
    pub exits_all: bool,
    /// True if its end also ends the jobs that have not begun (`exit_what=all`).
    pub ends_everything: bool,
}

/// The files of each copy of a job: their names, their number, and what fio does to them besides
/// the requests.
#[derive(Debug, Clone)]
pub(crate) struct JobFiles {
    /// The files that the author names (`filename`).
    pub filename: Option<GivenNames>,
    /// Pattern of file names, for jobs without `filename`.
    pub filename_format: String,
    /// `directory`; several of them separated by colons.
    pub directories: Vec<String>,
    /// Number of files of each copy (`nrfiles`).
    pub count: u64,
    /// True if sequential requests go to the files in turn.
    pub alternate: bool,
    /// True if several files stay, each under its own name.
    pub are_kept: bool,
    /// The bytes of each of several files as they were found; `None` where they are new.
    pub found_bytes: Option<u64>,
    /// True if the job's part of each of them is a share of what was found: no copy goes beyond its
    /// end.
    pub bound_parts: bool,
    /// True if fio writes the file before a job that only writes.
    pub overwrites: bool,
    /// True if the job begins where its files end (`file_append`).
    pub appends: bool,
    /// True if fio makes them no longer before the job runs (`fallocate=none`, in a job that only
    /// writes).
    pub keeps_length: bool,
    /// True if each request locks its file (`lockfile`).
    pub locks: bool,
    /// True if fio removes them (`unlink`).
    pub unlinks: bool,
    /// True if the job only makes them (`create_only`).
    pub only_creates: bool,
    /// True if the job may make none (`allow_file_create=0`).
    pub makes_none: bool,
    /// True if fio makes them empty, when it opens them (`create_on_open`).
    pub start_empty: bool,
}

/// How the output shows the results of a job.
#[derive(Debug, Clone, Default)]
pub(crate) struct JobOutput {
    /// The author's description.
    pub description: Option<String>,
    /// The sizes of reads, writes and trims.
    pub sizes: [SizeRange; 3],
    /// The unit in which sizes are shown first.
    pub base: Base,
    /// True if its figures are those of all copies and of its group (`group_reporting`).
    pub reports_together: bool,
    /// True if its figures begin a group of their own (`new_group`).
    pub begins_group: bool,
    /// True if each copy has logs of its own (`write_bw_log` and others).
    pub logs_rates: bool,
    /// The files that the `opendir` of the job's own section has added; `None` without it.
    pub opendir_files: Option<u64>,
    /// The size of the blocks whose errors fio counts (`block_error_percentiles`); `None` where it
    /// counts none.
    pub error_block_bytes: Option<u64>,
}

/// The numbers of a job's copies in the order in which fio starts and shows them: behind the first
/// one it counts down from the last.
pub(crate) fn copy_numbers(copies: u64) -> impl Iterator<Item = u64> {
    (0..copies.min(1)).chain((1..copies).rev())
}

impl FioJob {
    /// The job that fio makes of a section without options.
    pub(crate) fn from_section(section: &Section) -> Self {
        let flags = WorkloadFlags {
            rw: Some(Rw::READ),
            bs: Some(BlockSize(BLOCK_BYTES_DEFAULT)),
            depth: Some(Count(1)),
            engine: Some(EngineChoice::Fixed(EngineKind::Sync)),
            warmup: Some(Time(0)),
            shape: LoadShape {
                threads: ThreadSetup {
                    ordinary_pages: true,
                    ..ThreadSetup::default()
                },
                ..LoadShape::default()
            },
            ..WorkloadFlags::default()
        };
        Self {
            source: section.source.clone(),
            section: section.name.clone(),
            name: section.name.clone(),
            flags,
            requests: JobRequests::default(),
            extent: JobExtent::WHOLE_FILE,
            cache: Cache::Emptied,
            pre_reads: false,
            copies: JobCopies {
                count: 1,
                first: 0,
                first_in_section: 0,
                are_of_part_before: false,
                split_cpus: false,
            },
            turn: JobTurn::default(),
            file_set: JobFiles {
                filename: None,
                filename_format: FILENAME_FORMAT_DEFAULT.to_owned(),
                directories: Vec::new(),
                count: 1,
                alternate: false,
                are_kept: false,
                found_bytes: None,
                bound_parts: false,
                overwrites: false,
                appends: false,
                keeps_length: false,
                locks: false,
                unlinks: false,
                only_creates: false,
                makes_none: false,
                start_empty: false,
            },
            shown: JobOutput::default(),
            scheduler: None,
            moves_nothing: false,
            start_failure: None,
        }
    }

    /// The direction and order of its requests.
    pub(crate) fn rw(&self) -> Rw {
        self.flags.rw.unwrap_or(Rw::RANDREAD)
    }

    /// The engine that makes its requests.
    pub(crate) fn engine(&self) -> EngineKind {
        match self.flags.engine {
            Some(EngineChoice::Fixed(engine)) => engine,
            _ => EngineKind::Sync,
        }
    }

    /// The number of files of each copy.
    pub(crate) fn file_count(&self) -> u64 {
        match &self.file_set.filename {
            Some(given) => given.names.len() as u64,
            None => self.file_set.count,
        }
    }

    /// True if its files have one name together, and vanish at the end.
    pub(crate) fn vanishes(&self) -> bool {
        self.file_set.unlinks || (self.file_set.count > 1 && !self.file_set.are_kept)
    }

    /// Where a copy begins in a file of so many bytes; `None` for a percentage of an unknown size.
    pub(crate) fn start_of_copy(&self, copy: u64, file_bytes: Option<u64>) -> Option<u64> {
        let JobExtent {
            offset, increment, ..
        } = self.extent;
        if let (Amount::Bytes(offset), Amount::Bytes(increment)) = (offset, increment) {
            return Some(offset.saturating_add(increment.saturating_mul(copy)));
        }
        // As in fio, only an offset in percent is moved to the next block, or to `offset_align`.
        let file_bytes = file_bytes?;
        let before = increment.bytes(file_bytes).saturating_mul(copy);
        let place = offset.bytes(file_bytes).saturating_add(before);
        place.checked_next_multiple_of(self.start_unit())
    }

    /// A start in percent is rounded up to a multiple of these bytes.
    pub(crate) fn start_unit(&self) -> u64 {
        let unit = self.extent.align_bytes;
        unit.unwrap_or_else(|| self.smallest_block()).max(1)
    }

    /// Takes its percentages, and its size if it has none, from its several files, which are there
    /// and have so many bytes each.
    pub(crate) fn resolve_on_files(&mut self, file_bytes: u64) {
        let block = self.smallest_block();
        let start_unit = self.start_unit();
        self.file_set.found_bytes = Some(file_bytes);
        let extent = &mut self.extent;
        if let Amount::Percent(_) = extent.offset {
            let start = extent.offset.bytes(file_bytes);
            extent.offset = Amount::Bytes(start.next_multiple_of(start_unit));
        }
        extent.increment = Amount::Bytes(extent.increment.bytes(file_bytes));
        let behind = file_bytes.saturating_sub(extent.offset.bytes(file_bytes));
        let each = match extent.size {
            _ if extent.file_bytes.is_some() => return,
            Some(Amount::Bytes(_)) => return,
            Some(share) => share.bytes(file_bytes).min(behind) / block * block,
            None => behind,
        };
        self.extent.size = Some(Amount::Bytes(each.saturating_mul(self.file_count())));
        self.file_set.bound_parts = true;
    }

    /// Where it begins in each of its several new files. There is no file yet of which fio could
    /// take a percentage, so an offset in percent is 0.
    pub(crate) fn start_in_each_file(&self) -> u64 {
        let increment = self.extent.increment.bytes(0);
        let before = increment.saturating_mul(self.copies.first_in_section);
        self.extent.offset.bytes(0).saturating_add(before)
    }

    /// The bytes that it uses in each of its several new files; `None` where that follows from
    /// other files.
    pub(crate) fn bytes_in_each_file(&self) -> Option<u64> {
        let files = self.file_set.count.max(1);
        match (self.extent.file_bytes, self.extent.size) {
            (Some(total), size) => {
                let file = total / files;
                let behind_start = file.saturating_sub(self.start_in_each_file());
                match size {
                    Some(share @ Amount::Percent(_)) => Some(share.bytes(file).min(behind_start)),
                    _ => Some(behind_start),
                }
            }
            (None, Some(Amount::Bytes(size))) => Some(size / files),
            (None, _) => None,
        }
    }

    /// The size of each of its several new files; `None` where that follows from other files.
    pub(crate) fn bytes_of_each_file(&self) -> Option<u64> {
        if self.file_set.bound_parts {
            return self.file_set.found_bytes;
        }
        match (self.extent.file_bytes, self.extent.size) {
            (Some(total), Some(Amount::Bytes(_)) | None) => {
                Some(total / self.file_set.count.max(1))
            }
            _ => {
                let last_start = self
                    .start_in_each_file()
                    .saturating_add(self.steps_in_each_file());
                Some(last_start.saturating_add(self.bytes_in_each_file()?))
            }
        }
    }

    /// The bytes between the starts of its first and of its last copy, where they share its several
    /// files.
    fn steps_in_each_file(&self) -> u64 {
        if self.file_set.filename.is_none() {
            return 0;
        }
        if let Some(bytes) = self.grown_bytes(self.copies.count)
            && let Some(each) = self.bytes_in_each_file()
        {
            let behind_start = bytes.saturating_sub(self.start_in_each_file());
            return behind_start.saturating_sub(each);
        }
        let increment = self.extent.increment.bytes(0);
        increment.saturating_mul(self.copies.count.saturating_sub(1))
    }

    /// True if each of its copies may make the files that they share longer: it begins at a
    /// percentage of what it finds, and moves its bytes from there on.
    pub(crate) fn grows_by_percent(&self) -> bool {
        let extent = &self.extent;
        let is_in_percent = [extent.offset, extent.increment]
            .iter()
            .any(|place| matches!(place, Amount::Percent(_)));
        let has_bytes = matches!(extent.size, Some(Amount::Bytes(_)));
        is_in_percent && has_bytes && extent.file_bytes.is_none() && self.copies.count > 1
    }

    /// The bytes of each of its several new files as this copy finds it; `None` where its place
    /// does not depend on that.
    pub(crate) fn bytes_before_copy(&self, copy: u64) -> Option<u64> {
        let place = copy_numbers(self.copies.count).position(|number| number == copy)?;
        self.grown_bytes(place as u64)
    }

    /// The bytes of each of its several new files once so many of its copies have made it, in the
    /// order of fio.
    fn grown_bytes(&self, copies: u64) -> Option<u64> {
        if !self.grows_by_percent() || self.file_set.found_bytes.is_some() {
            return None;
        }
        let each = self.bytes_in_each_file()?;
        let mut bytes = 0;
        for number in copy_numbers(self.copies.count).take(copies as usize) {
            let start = self.start_of_copy(number, Some(bytes))?;
            bytes = bytes.max(start.saturating_add(each));
        }
        Some(bytes)
    }

    /// The bytes of the whole blocks in all of its several files that stay.
    pub(crate) fn kept_bytes(&self) -> Option<u64> {
        if !self.file_set.are_kept {
            return None;
        }
        let each = self.bytes_in_each_file()?;
        let block = self.smallest_block();
        let in_file = self
            .steps_in_each_file()
            .saturating_add(each / block * block)
            .min(self.bytes_behind(self.start_in_each_file()));
        Some(in_file.saturating_mul(self.file_set.count))
    }

    /// The most bytes that a copy which begins here may use in each of its several files.
    pub(crate) fn bytes_behind(&self, start: u64) -> u64 {
        match self.file_set.found_bytes {
            Some(found) if self.file_set.bound_parts => found.saturating_sub(start),
            _ => u64::MAX,
        }
    }

    /// The bytes of all of its several files that stay, as the job sets them.
    pub(crate) fn requested_bytes(&self) -> Option<u64> {
        let in_files = self
            .bytes_in_each_file()?
            .saturating_mul(self.file_set.count);
        match self.extent.size {
            Some(Amount::Bytes(size)) if self.extent.file_bytes.is_some() => {
                Some(size.min(in_files))
            }
            Some(Amount::Bytes(size)) => Some(size),
            _ => Some(in_files),
        }
    }

    /// True if it reads back what it writes.
    pub(crate) fn reads_back(&self) -> bool {
        self.flags.verify == Some(true) && self.rw().makes(OpKind::Write)
    }

    /// True if its offsets are random.
    pub(crate) fn is_random(&self) -> bool {
        self.rw().order == Order::Random
    }

    /// True if a lap goes on behind its size where its file is larger. fio counts what it issues
    /// only for engines that queue requests (`bytes_issued` in its backend.c), so with others the
    /// end of the file ends a lap.
    pub(crate) fn laps_have_whole_file(&self) -> bool {
        let is_blocking = matches!(self.engine(), EngineKind::Sync | EngineKind::Mmap);
        is_blocking && (self.extent.loops > 1 || self.extent.io_size.is_some())
    }

    /// The bytes rounded up to whole blocks.
    pub(crate) fn whole_blocks(&self, bytes: u64) -> u64 {
        let block = self.smallest_block();
        bytes.div_ceil(block).saturating_mul(block)
    }

    /// True if it visits every block once before it visits one again. The blocks behind a random
    /// offset (`randread:8`) do not count in fio's map.
    pub(crate) fn visits_each_once(&self) -> bool {
        self.requests.is_mapped && self.flags.shape.order.random_run.is_none()
    }

    /// True if its offsets are random, and all equally likely.
    pub(crate) fn is_uniform(&self) -> bool {
        let is_plain = self.flags.zones.is_none() && self.flags.distribution.is_none();
        self.is_random() && is_plain
    }

    /// True if its requests are sequential, block after block.
    pub(crate) fn goes_onward(&self) -> bool {
        !self.is_random()
            && self.flags.stride.is_none()
            && self.flags.backward.is_none()
            && self.flags.shape.order.zone_stride.is_none()
    }

    /// True if its requests can go to the parts of one file in turn.
    pub(crate) fn may_alternate(&self) -> bool {
        self.requests.fio_amount.is_none()
            && self.goes_onward()
            && !self.rw().is_mix()
            && self.one_block().is_some()
    }

    /// fio's word for direction and order.
    pub(crate) fn word(&self) -> &'static str {
        self.rw().as_str()
    }

    /// The size of all operations, where they have one.
    pub(crate) fn one_block(&self) -> Option<u64> {
        match self.flags.bs {
            Some(bs) if self.flags.other_sizes.is_empty() => Some(u64::from(bs.0)),
            _ => None,
        }
    }

    /// The sizes of all operations.
    fn block_sizes(&self) -> impl Iterator<Item = u64> {
        let write_sizes = self.flags.other_sizes.iter().map(|share| share.block_bytes);
        self.flags.sizes().chain(write_sizes).map(u64::from)
    }

    /// The smallest size of any operation, at least 1 byte.
    pub(crate) fn smallest_block(&self) -> u64 {
        self.block_sizes().min().unwrap_or(1)
    }

    /// The largest size of any operation.
    pub(crate) fn largest_block(&self) -> u64 {
        self.block_sizes().max().unwrap_or(1)
    }

    /// An error about the whole job that quotes no option, so it may be shown whatever the job
    /// includes.
    pub(crate) fn error_without_options(&self, why: &'static str) -> JobFileError {
        self.source.named_error(&self.section, why)
    }

    /// An error about the whole job.
    pub(crate) fn error(&self, why: impl std::fmt::Display) -> JobFileError {
        self.source.error(format!("[{}]: {why}", self.section))
    }
}

/// What decides how many requests fio makes of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestAmount {
    /// The largest size of any kind of operation, also of those that the job does not make.
    pub largest_bytes: u64,
    /// The smallest size of reads and writes, in which places are counted that follow a law.
    pub place_bytes: u64,
    /// True if the engine takes several requests before one has ended.
    pub has_queue: bool,
    /// `io_size` in percent.
    pub io_percent: Option<u64>,
}

/// Use of the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cache {
    /// Not used: `direct=1`.
    Direct,
    /// Emptied first: `direct=0` with `invalidate=1`, fio's default.
    Emptied,
    /// Not emptied: `invalidate=0`.
    Kept,
}

/// The part of the file that a job uses, and the amount of its I/O there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobExtent {
    /// Where the part of the first copy starts.
    pub offset: Amount,
    /// Distance between the starts of consecutive copies.
    pub increment: Amount,
    /// The multiple of bytes at which a start in percent lies (`offset_align`); the smallest block
    /// without it.
    pub align_bytes: Option<u64>,
    /// The length of the part; `None` up to the end of the file.
    pub size: Option<Amount>,
    /// True if it goes on until there is no space (`fill_device`).
    pub fills: bool,
    /// Size of the file, where the job sets it: no copy goes beyond its end.
    pub file_bytes: Option<u64>,
    /// Bytes that each copy transfers, where that is not the whole part.
    pub io_size: Option<Amount>,
    /// Number of passes.
    pub loops: u64,
    /// Operations of each copy.
    pub ops: Option<u64>,
    /// True if only time ends it.
    pub is_time_based: bool,
}

impl JobExtent {
    /// One pass over the file.
    const WHOLE_FILE: Self = Self {
        offset: Amount::ZERO,
        increment: Amount::ZERO,
        align_bytes: None,
        size: None,
        fills: false,
        file_bytes: None,
        io_size: None,
        loops: 1,
        ops: None,
        is_time_based: false,
    };

    /// The bytes of a new file, which has the size of the job unless `filesize` sets another.
    pub(crate) fn new_file_bytes(&self) -> Option<u64> {
        match (self.file_bytes, self.size) {
            (Some(bytes), _) | (None, Some(Amount::Bytes(bytes))) => Some(bytes),
            _ => None,
        }
    }
}
