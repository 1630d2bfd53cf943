//! Completes the order of fio's requests for a placed job: its files, and how many requests it
//! makes. Pure.

use super::file_names::first_path_text;
use super::jobs::{FioJob, RequestAmount};
use super::placement::FilePart;
use diskproof_compat::fio_values::Amount;
use diskproof_engine::pattern::fio::{
    FioAmount, FioLimits, has_requests, mean_bytes, seed_of_places,
};
use diskproof_model::op::OpKind;
use diskproof_model::shape::{FIO_FILES_MAX, FioFiles, FioOrder, FioSeed};
use std::cell::OnceCell;

/// A job whose copies make more requests is not counted before it runs: that takes a second. It
/// ends after the bytes that its options say.
const COUNTED_MAX: u64 = 1 << 22;
/// More requests do not change a mean. Chosen, not measured.
const AVERAGED_MAX: u64 = 1 << 18;

/// A copy of a job that makes its requests in the order of fio.
pub(crate) struct OrderedCopy {
    /// The order, with its files and its random numbers.
    pub order: FioOrder,
    /// The first byte of the target that it may use.
    pub span_start: u64,
    /// The byte behind the last one.
    pub span_end: u64,
    /// Its requests; `None` where only time ends it, or where they are too many to be counted.
    pub amount: Option<FioAmount>,
    /// False where a lap has no request.
    pub moves_something: bool,
}

impl OrderedCopy {
    /// The copy in this part of a target. `None` where the job has no order of fio. Fails where its
    /// requests cannot be made in it, and tells why: the other keys of the order are gone by then.
    pub(crate) fn new(
        job: &FioJob,
        numbers: CopyNumbers,
        part: FilePart,
        is_device: bool,
    ) -> Option<Result<Self, &'static str>> {
        let CopyNumbers {
            among_all,
            in_section,
            run_seed,
        } = numbers;
        let fio_amount = job.requests.fio_amount?;
        let mut order = (**job.flags.shape.order.fio.as_ref()?).clone();
        order.draws.job = u32::try_from(among_all + 1).unwrap_or(u32::MAX);
        // fio forgets in the first copy that a job with `randseed` repeats its places.
        order.draws.seeds_places |= in_section > 0 && matches!(order.draws.seed, FioSeed::Given(_));
        let extents = FileExtents::new(job, in_section, part, order.unit_bytes, is_device);
        if extents.count > u64::from(FIO_FILES_MAX) {
            return Some(Err("more files than can be chosen from"));
        }
        order.files = extents.placed_files(&order.files);
        if let Some(law) = &mut order.places.law {
            let bytes = extents.lap_bytes.min(extents.file_bytes);
            law.places = bytes.div_ceil(fio_amount.place_bytes.max(1)).max(1);
            law.seed = match order.draws.seed {
                FioSeed::Repeated => {
                    hash_of_name(&first_path_text(job, in_section)).wrapping_mul(order.draws.job)
                }
                // `__init_rand_distribution` of filesetup.c.
                FioSeed::Given(_) | FioSeed::OfRun => {
                    seed_of_places(order.draws, run_seed as u32) as u32
                }
            };
        }
        if let Some(fault) = order.fault() {
            return Some(Err(fault));
        }
        let limits = limits_of(job, fio_amount, &extents, &order);
        order.lap_bytes = lap_limit(fio_amount, limits, &order);
        let amount = if job.extent.is_time_based {
            None
        } else {
            let counted_max = COUNTED_MAX / job.copies.count.max(1);
            FioAmount::count(&order, limits, counted_max, run_seed)
        };
        let moves_something = match &amount {
            Some(amount) => amount.steps() > 0,
            None => has_requests(&order),
        };
        Some(Ok(Self {
            span_start: extents.span_start,
            span_end: extents.span_end,
            amount,
            moves_something,
            order,
        }))
    }

    /// The mean size of its requests, which move so many bytes per second in their time. The
    /// first copy sets the one of all copies whose time is long: their requests differ by their
    /// random numbers only.
    pub(crate) fn mean_bytes(
        &self,
        job: &FioJob,
        byte_rate: f64,
        run_seed: u64,
        of_long_copies: &OnceCell<Option<f64>>,
    ) -> f64 {
        let bytes_max = match job.flags.time {
            Some(time) => byte_rate * time.0 as f64 / 1e9,
            None => f64::INFINITY,
        };
        let smallest = job.smallest_block();
        let averaged_max = AVERAGED_MAX / job.copies.count.max(1);
        let mean = if bytes_max <= (averaged_max * smallest) as f64 {
            mean_bytes(&self.order, bytes_max as u64, averaged_max, run_seed)
        } else {
            *of_long_copies.get_or_init(|| {
                let sample = LapSample::new(&self.order, bytes_max, smallest);
                mean_bytes(&sample.order, sample.bytes, AVERAGED_MAX, run_seed)
            })
        };
        mean.unwrap_or(smallest as f64)
    }
}

/// Requests whose mean size is that of many. fio's map shortens large blocks the more of a lap has
/// been visited, so that the first requests of a lap are larger than its last ones.
struct LapSample {
    order: FioOrder,
    /// The bytes that the requests move.
    bytes: u64,
}

impl LapSample {
    /// Whole laps of an order, or as much of one as a job that moves `bytes_max` comes to. A lap of
    /// more requests than are averaged is that of a smaller file.
    fn new(order: &FioOrder, bytes_max: f64, smallest_block: u64) -> Self {
        let mut order = order.clone();
        let averaged_bytes = AVERAGED_MAX * smallest_block;
        let mut bytes = bytes_max.min(u64::MAX as f64);
        let files = &mut order.files;
        let has_one_law = order.places.law.is_none()
            && order.places.zones.is_none()
            && order.kinds.iter().all(|kind| kind.zones.is_empty());
        if files.count == 1 && has_one_law && files.lap_bytes > averaged_bytes {
            bytes *= averaged_bytes as f64 / files.lap_bytes as f64;
            files.lap_bytes = averaged_bytes;
            files.file_bytes = averaged_bytes + files.start.max(files.first_start);
        }
        let lap_bytes = files.lap_bytes.saturating_mul(u64::from(files.count));
        let laps = averaged_bytes / lap_bytes.max(1);
        if bytes > averaged_bytes as f64 && laps > 0 {
            bytes = (laps * lap_bytes) as f64;
        }
        Self {
            order,
            bytes: bytes as u64,
        }
    }
}

/// The numbers of a copy, on which its random numbers depend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyNumbers {
    /// Its number among the copies of all jobs, from 0.
    pub among_all: u64,
    /// Its number among those of its section, from 0.
    pub in_section: u64,
    /// The seed of the run.
    pub run_seed: u64,
}

/// Where fio begins to hash a name (`GOLDEN_RATIO_32`).
const HASH_START: u32 = 0x61C8_8647;
/// The bytes of a name that its hash takes at a time.
const HASHED_BYTES: usize = 12;
/// The rotations of Jenkins' lookup3: between parts of a name, and behind the last one.
const MIX_ROTATIONS: [u32; 6] = [4, 6, 8, 16, 19, 4];
const FINAL_ROTATIONS: [u32; 7] = [14, 11, 25, 16, 4, 14, 24];

/// The hash of the name of a file, from which fio makes a seed: lookup3 by Bob Jenkins, but for the
/// parts before the last one, of which fio takes every fourth byte only.
fn hash_of_name(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let mut words = [HASH_START.wrapping_add(bytes.len() as u32); 3];
    let mut rest = bytes;
    while rest.len() > HASHED_BYTES {
        for (index, word) in words.iter_mut().enumerate() {
            *word = word.wrapping_add(u32::from(rest[index * 4]));
        }
        for (step, rotation) in MIX_ROTATIONS.into_iter().enumerate() {
            let (to, from, moved) = (step % 3, (step + 2) % 3, (step + 1) % 3);
            words[to] = words[to].wrapping_sub(words[from]) ^ words[from].rotate_left(rotation);
            words[from] = words[from].wrapping_add(words[moved]);
        }
        rest = &rest[HASHED_BYTES..];
    }
    for (index, byte) in rest.iter().enumerate() {
        let shifted = u32::from(*byte) << (index % 4 * 8);
        words[index / 4] = words[index / 4].wrapping_add(shifted);
    }
    if rest.is_empty() {
        return words[2];
    }
    for (step, rotation) in FINAL_ROTATIONS.into_iter().enumerate() {
        let (to, from) = ((step + 2) % 3, (step + 1) % 3);
        words[to] ^= words[from];
        words[to] = words[to].wrapping_sub(words[from].rotate_left(rotation));
    }
    words[2]
}

/// The files of a copy, all of the same size.
struct FileExtents {
    /// The number of files.
    count: u64,
    /// Where the first lap begins in each file.
    first_start: u64,
    /// Where the later laps begin in each file, whose size is known by then.
    start: u64,
    /// The bytes of a lap in each file.
    lap_bytes: u64,
    /// The size of each file.
    file_bytes: u64,
    /// The first byte of each file that the target holds.
    part_start: u64,
    /// The bytes of each file that the target holds.
    part_bytes: u64,
    /// The first byte of the target that the copy may use.
    span_start: u64,
    /// The byte behind the last one.
    span_end: u64,
}

impl FileExtents {
    /// The files of an order, with the places and sizes of these. How fio chooses among them stays.
    fn placed_files(&self, chosen: &FioFiles) -> FioFiles {
        let count = self.count.max(1) as u32;
        FioFiles {
            count,
            part_start: self.part_start,
            part_bytes: self.part_bytes,
            first_start: self.first_start,
            start: self.start,
            lap_bytes: self.lap_bytes,
            file_bytes: self.file_bytes,
            service: chosen.service,
            turn_ops: chosen.turn_ops,
            open_max: chosen.open_max.min(count),
        }
    }

    fn new(job: &FioJob, copy: u64, part: FilePart, unit_bytes: u64, is_device: bool) -> Self {
        let count = job.file_set.count.max(1);
        let extent = &job.extent;
        let found = part.found_bytes.unwrap_or(0);
        let first_start = start_in(job, copy, found);
        let set_bytes = extent.file_bytes.map(|bytes| bytes / count);
        let mut lap_bytes = match (set_bytes, extent.size) {
            (Some(bytes), _) if bytes != found => bytes.saturating_sub(first_start),
            (None, Some(Amount::Bytes(size))) => size / count,
            _ => found.saturating_sub(first_start),
        };
        if let Some(Amount::Percent(percent)) = extent.size {
            let whole = lap_bytes.saturating_add(first_start);
            lap_bytes = Amount::Percent(percent)
                .bytes(whole)
                .min(whole - first_start);
            lap_bytes -= lap_bytes % unit_bytes.max(1);
        }
        lap_bytes = lap_bytes.min(job.bytes_behind(first_start));
        let file_bytes = if is_device {
            found
        } else {
            found.max(first_start.saturating_add(lap_bytes))
        };
        // A job that begins behind the end of its file looks for that end anew (`get_start_offset`
        // of filesetup.c), so that no further lap begins, and blocks that reach behind the end are
        // drawn, with which fio ends the file.
        let start = if job.file_set.appends {
            file_bytes
        } else {
            start_in(job, copy, file_bytes)
        };
        if count > 1 {
            let part_bytes = part.length / count;
            return Self {
                count,
                first_start,
                start,
                lap_bytes,
                file_bytes,
                part_start: job.start_in_each_file(),
                part_bytes,
                span_start: part.start,
                span_end: part.start.saturating_add(part.length),
            };
        }
        let part_start = first_start.min(start);
        Self {
            count,
            first_start,
            start,
            lap_bytes,
            file_bytes,
            part_start,
            part_bytes: file_bytes.saturating_sub(part_start),
            span_start: part.file_start.saturating_add(part_start),
            span_end: part.file_start.saturating_add(file_bytes),
        }
    }
}

/// Where a copy begins in a file of so many bytes. As in fio, only a percentage is rounded up to
/// blocks.
fn start_in(job: &FioJob, copy: u64, file_bytes: u64) -> u64 {
    job.start_of_copy(copy, Some(file_bytes)).unwrap_or(0)
}

/// The amount of work of the job.
fn limits_of(
    job: &FioJob,
    amount: RequestAmount,
    extents: &FileExtents,
    order: &FioOrder,
) -> FioLimits {
    let extent = &job.extent;
    let mut total = extents.lap_bytes.saturating_mul(extents.count);
    if let Some(percent) = amount.io_percent {
        total = total / 100 * percent + total % 100 * percent / 100;
    }
    let size_bytes = match extent.size {
        Some(Amount::Bytes(size)) => size.min(total),
        _ => total,
    };
    FioLimits {
        size_bytes,
        io_bytes: match extent.io_size {
            Some(Amount::Bytes(bytes)) => Some(bytes),
            _ => None,
        },
        loops: extent.loops,
        ops: extent.ops.map(|ops| ops / extent.loops.max(1)),
        reads_back: job.reads_back() && order.draws.verifies,
        largest_bytes: amount.largest_bytes,
    }
}

/// The bytes after whose start a lap ends; `None` where fio does not count them.
fn lap_limit(amount: RequestAmount, limits: FioLimits, order: &FioOrder) -> Option<u64> {
    if !amount.has_queue {
        return None;
    }
    let writes = order.kinds.iter().any(|kind| kind.does == OpKind::Write);
    let may_repeat = order.places.is_random && !order.places.is_mapped;
    if writes && may_repeat {
        let io_bytes = limits.io_bytes.unwrap_or(0);
        return Some(limits.size_bytes.max(io_bytes));
    }
    Some(limits.size_bytes)
}
