//! Computes the bytes that a job transfers, as observed with fio 3.42. Pure.

use super::jobs::FioJob;
use super::placement::FilePart;
use super::translation::Translated;
use crate::workload::Bytes;
use diskproof_compat::fio_values::Amount;
use diskproof_model::shape::ZoneStride;

/// With fio's seed, a sequential mix of fewer whole blocks has them all in one direction.
const MIXED_BLOCKS_MIN: u64 = 3;
/// Shares of a mix are thousandths.
const PERMILLE: u64 = 1000;

/// The bytes that a copy transfers in its part of the file.
pub(crate) fn work_bytes(job: &FioJob, part: FilePart) -> Translated<u64> {
    let loops = job.extent.loops;
    let lap_bytes = match job.extent.io_size {
        Some(percent @ Amount::Percent(_)) => Some(percent_of_file(job, percent, part)),
        Some(bytes) => Some(bytes.bytes(part.job_bytes)),
        None => None,
    };
    let io_size = lap_bytes.map(|bytes| job.whole_blocks(bytes.saturating_mul(loops)));
    let gap_step = match job.flags.stride {
        Some(Bytes(step)) => Some(step),
        None => job.requests.gap_step_bytes,
    };
    if let Some(zones) = job.flags.shape.order.zone_stride
        && gap_step.is_none()
    {
        return match io_size {
            Some(bytes) => Ok(bytes),
            None => Ok(zone_bytes(job, zones, part).saturating_mul(loops)),
        };
    }
    let is_backward = job.flags.backward.is_some();
    if !is_backward && gap_step.is_none() {
        return Ok(bytes_of_laps(job, part, lap_bytes));
    }
    if is_backward && !part.is_whole_file && job.extent.offset != Amount::Bytes(0) {
        return Err(job.error(
            "fio ends a backward job with an offset after one or two requests; remove the offset, \
             or write a plan file with backward and span",
        ));
    }
    let pass = match gap_step {
        Some(step) if !is_backward => gap_pass_bytes(job, part, step),
        _ => job.whole_blocks(part.job_bytes),
    };
    let limit = job.whole_blocks(part.job_bytes.saturating_mul(loops));
    let total = pass.saturating_mul(loops).min(limit);
    match io_size {
        Some(bytes) if bytes > total && is_backward => Err(job.error(
            "a backward job transfers less than io_size in one pass; use loops, or time_based \
             with a runtime",
        )),
        Some(bytes) => {
            let more_bytes = bytes_of_more_laps(job, pass, lap_bytes.unwrap_or(0));
            Ok(bytes.min(more_bytes))
        }
        None => Ok(total),
    }
}

/// The bytes of `io_size` in percent. As in fio it is a share of what the job may use of its file,
/// and limits the size.
fn percent_of_file(job: &FioJob, percent: Amount, part: FilePart) -> u64 {
    let in_file = match (job.extent.file_bytes, job.extent.size) {
        (Some(_), Some(Amount::Bytes(_))) => part.length,
        _ => part.job_bytes,
    };
    percent.bytes(in_file).min(part.job_bytes)
}

/// The bytes of one pass with gaps: a job ends when a block reaches or crosses the end of its file,
/// and starts another pass when the next block lies behind the end.
fn gap_pass_bytes(job: &FioJob, part: FilePart, step: u64) -> u64 {
    let block = job.smallest_block();
    let last_step = part.job_bytes % step;
    if !part.is_whole_file || (last_step > 0 && last_step <= block) {
        (part.job_bytes.saturating_sub(block) / step + 1) * block
    } else {
        job.whole_blocks(part.job_bytes)
    }
}

/// The bytes of a job without gaps. `io_size_bytes` is its `io_size`, which takes the place of its
/// size. It ends with the block that reaches them, or with its last lap.
fn bytes_of_laps(job: &FioJob, part: FilePart, io_size_bytes: Option<u64>) -> u64 {
    let block = job.smallest_block();
    let loops = job.extent.loops;
    let lap = lap_bytes(job, part, io_size_bytes.unwrap_or(0));
    // If the file has less than the job, the last lap starts again; several files end it.
    let restarted = if job.file_set.count > 1 {
        0
    } else {
        part.job_bytes.saturating_sub(lap) / block * block
    };
    let laps = lap.saturating_mul(loops).saturating_add(restarted);
    let Some(io_size_bytes) = io_size_bytes else {
        let limit = job.whole_blocks(part.job_bytes.saturating_mul(loops));
        return limit.min(laps);
    };
    let limit = job.whole_blocks(io_size_bytes.saturating_mul(loops));
    // The reads that verify a lap count, too, and both operations on a block.
    let ops_of_block = job.rw().chains.iter().map(|chain| chain.len()).max();
    let passes_in_lap = match ops_of_block {
        _ if job.reads_back() => 2,
        Some(ops) => ops as u64,
        None => 1,
    };
    let counted_bytes = lap.saturating_mul(passes_in_lap);
    let more = bytes_of_more_laps(job, counted_bytes, io_size_bytes) / passes_in_lap;
    limit.min(laps.max(more))
}

/// The most bytes of a lap, after which it ends.
fn lap_bytes(job: &FioJob, part: FilePart, io_size_bytes: u64) -> u64 {
    let block = job.smallest_block();
    let size = job.whole_blocks(part.job_bytes);
    let in_file = part.length / block * block;
    if job.visits_each_once() || !(job.is_random() || job.rw().is_mix()) {
        // Ends with the last whole block of the file.
        return if job.laps_have_whole_file() {
            in_file
        } else {
            size.min(in_file)
        };
    }
    if job.is_random() {
        return if job.laps_have_whole_file() {
            job.whole_blocks(
                io_size_bytes
                    .max(part.job_bytes)
                    .saturating_mul(job.extent.loops),
            )
        } else if job.rw().changes_blocks() && !job.requests.is_mapped {
            size.max(job.whole_blocks(io_size_bytes))
        } else {
            size
        };
    }
    // Each direction has its own place in the file. In a short one, the first to reach the end ends
    // the job; in a longer one, the size does.
    if part.job_bytes / block < MIXED_BLOCKS_MIN {
        size.min(in_file)
    } else if job.laps_have_whole_file() {
        let larger = larger_direction_permille(job);
        job.whole_blocks(in_file.saturating_mul(PERMILLE) / larger)
    } else {
        size
    }
}

/// The share of the direction of a mix that has more requests, and so reaches the end first, in
/// thousandths.
fn larger_direction_permille(job: &FioJob) -> u64 {
    let reads = match job.flags.rwmixread {
        Some(share) => u64::from(share.0),
        None => PERMILLE / 2,
    };
    let writes = PERMILLE.saturating_sub(reads);
    reads.max(writes).max(1)
}

/// The bytes of whole laps with which a job with `io_size` ends: it makes its loops, and then
/// further laps until less than a block is missing.
fn bytes_of_more_laps(job: &FioJob, lap: u64, io_size: u64) -> u64 {
    let loops = job.extent.loops;
    let missing = io_size.saturating_sub(lap.saturating_mul(loops));
    let more = (missing + 1)
        .saturating_sub(job.smallest_block())
        .div_ceil(lap.max(1));
    lap.saturating_mul(loops.saturating_add(more))
}

/// The bytes of a job with zones: those of its size, in several laps where they need them. As in
/// fio, it ends where the end of the file cuts a zone short.
fn zone_bytes(job: &FioJob, zones: ZoneStride, part: FilePart) -> u64 {
    let block = job.smallest_block();
    let size = job.whole_blocks(part.job_bytes);
    let period = zones.zone_bytes.saturating_add(zones.skip_bytes).max(1);
    let whole_zones = part.length / period;
    let cut_zone = part.length % period;
    if cut_zone > 0 && cut_zone < zones.zone_bytes {
        size.min((whole_zones * zones.zone_bytes + cut_zone) / block * block)
    } else {
        size
    }
}
