//! Reads every block once, in order. Compares each with its neighbours to find slow ones, and
//! narrows unreadable ones down to sectors.

use super::queue::{BlockCompletion, RequestQueue, block_at};
use super::scan_log::{ScanLog, SlowBlockDetector, SlowCandidate, slow_from_ns};
use crate::io::clock::Clock;
use crate::io::{Backend, Extent, errno_name};
use crate::measure::sampler::SampleRequest;
use diskproof_model::plan::CachePolicy;
use diskproof_model::surface::{ScanPlan, UnreadableRange};
use std::io;

/// The name of the step.
pub(super) const SCAN: &str = "scan";
/// A failed block is read in parts of this size, then the failed parts by sectors. A lone bad
/// sector costs three failed reads, each of which may take a disk many seconds; halving would cost
/// eleven.
const NARROW_BYTES: u64 = 64 << 10;
/// The kernel and the drive have tried several times before a read fails; a sector that fails twice
/// is unreadable.
const SECTOR_TRIES: u32 = 2;
/// Longest time to narrow one block down; the rest then counts as unreadable as a whole. Chosen,
/// not measured: a handful of reads that a disk retries for ten seconds each.
const NARROW_NS_MAX: u64 = 60_000_000_000;
/// After this many entirely unreadable blocks in a row the failure is not a matter of sectors: the
/// scan ends and reports where. Chosen, not measured.
const UNREADABLE_IN_ROW_MAX: u32 = 256;
/// The disk's cache may hold what it has just read: slow blocks are read again once the scan is
/// this far away. Chosen: what a rotating disk may keep of one stream.
const AWAY_BYTES: u64 = 64 << 20;
/// Blocks that show what the whole device does at present: enough for a median.
const ELSEWHERE_BLOCKS: u64 = 9;
/// Slow blocks are read again at the latest once the scan is this far away, so that an interrupted
/// scan has little to repeat. Chosen: a few seconds of a rotating disk.
const LATEST_BYTES: u64 = 512 << 20;

impl<B: Backend, C: Clock> RequestQueue<'_, B, C> {
    /// Reads everything and puts the results into the log.
    pub(crate) fn measure_scan(&mut self, plan: &ScanPlan) -> io::Result<()> {
        let (target, log) = (self.target, self.log);
        log.begin_step(SCAN);
        let block = target.rounded_request_bytes(u64::from(plan.block_bytes));
        let Extent { start, length } = target.extent;
        // A resumed run uses the same block borders.
        let passed = plan.resume_bytes.clamp(start, start + length) - start;
        let from = start + passed / block * block;
        log.results().scan = Some(ScanLog::new(target.extent, target.lba_bytes, block, from));
        Scanner {
            queue: self,
            detector: SlowBlockDetector::default(),
            candidates: Vec::new(),
            block,
            unreadable_in_row: 0,
        }
        .run(from)
    }
}

/// A scan under way.
struct Scanner<'a, 'l, B, C> {
    queue: &'a mut RequestQueue<'l, B, C>,
    detector: SlowBlockDetector,
    /// Slow at the first reading.
    candidates: Vec<SlowCandidate>,
    block: u64,
    /// Blocks in a row of which nothing could be read.
    unreadable_in_row: u32,
}

impl<B: Backend, C: Clock> Scanner<'_, '_, B, C> {
    fn run(&mut self, from: u64) -> io::Result<()> {
        let end = self.queue.target.extent.end();
        let mut offset = from;
        while offset < end
            && self.unreadable_in_row < UNREADABLE_IN_ROW_MAX
            && self.read(offset, end)?
        {
            offset = (offset + self.block).min(end);
            self.check_candidates(offset, AWAY_BYTES, LATEST_BYTES)?;
            self.log_border(offset);
            self.queue
                .log
                .report_share((offset - from) as f64 / (end - from).max(1) as f64);
        }
        if self.queue.log.is_stopped() {
            return Ok(());
        }
        let rest = self.detector.take_rest();
        self.candidates.extend(rest);
        if !self.candidates.is_empty() {
            self.read_elsewhere(offset)?;
            self.check_candidates(offset, 0, 0)?;
        }
        self.log_border(offset);
        if !self.queue.log.is_stopped()
            && let Some(log) = &mut self.queue.log.results().scan
        {
            log.found.finished = offset >= end;
            if offset < end {
                log.end_at_unreadable();
            }
        }
        Ok(())
    }

    /// Logs that everything before the first block without a verdict is done; the scan is at
    /// `offset`.
    fn log_border(&self, offset: u64) {
        let mut border = offset;
        for candidate in &self.candidates {
            border = border.min(candidate.offset);
        }
        if let Some(waiting) = self.detector.first_waiting() {
            border = border.min(waiting);
        }
        self.log(|log| log.found.to_bytes = border);
    }

    fn log(&self, note: impl FnOnce(&mut ScanLog)) {
        if let Some(log) = &mut self.queue.log.results().scan {
            note(log);
        }
    }

    /// Reads the block at an offset; `false` where the user stopped the scan meanwhile.
    fn read(&mut self, offset: u64, end: u64) -> io::Result<bool> {
        if self.queue.log.is_stopped() {
            return Ok(false);
        }
        if self.queue.target.cache == CachePolicy::Buffered && offset % AWAY_BYTES < self.block {
            self.queue.sampler.drop_cache();
        }
        let request = block_at(offset, self.block.min(end - offset));
        let completion = self.read_uninterrupted(request)?;
        if completion.errno == 0 {
            self.unreadable_in_row = 0;
            self.log(|log| log.add_read(offset, completion.latency_ns));
            // The last block may be shorter, and is then not comparable with the others.
            let latency_ns = completion.latency_ns;
            let slow = self.detector.add(SlowCandidate {
                offset,
                len: request.len,
                latency_ns,
                limit_ns: u64::MAX,
                has_slow_neighbours: false,
            });
            self.candidates.extend(slow);
            return Ok(true);
        }
        let Some(ranges) = self.narrow(request, completion.errno)? else {
            self.queue.log.count_error(completion.errno);
            return Ok(false);
        };
        if ranges.is_empty() {
            // Each part could be read the second time.
            self.queue.log.count_error(completion.errno);
        }
        let lost: u64 = ranges.iter().map(|bad| bad.length_bytes).sum();
        self.unreadable_in_row = if lost == u64::from(request.len) {
            self.unreadable_in_row + 1
        } else {
            0
        };
        self.log(|log| log.add_failed(offset, ranges));
        Ok(true)
    }

    /// Reads once more what was in flight while the process did not run: its latency is unknown.
    /// The caller keeps an error.
    fn read_uninterrupted(&mut self, request: SampleRequest) -> io::Result<BlockCompletion> {
        loop {
            let completion = self.queue.try_one(request)?;
            if !completion.interrupted || completion.errno != 0 {
                return Ok(completion);
            }
        }
    }

    /// Reads a block that the scan has read before. No range holds an error of it, so it is
    /// counted.
    fn read_again(&mut self, request: SampleRequest) -> io::Result<BlockCompletion> {
        let completion = self.read_uninterrupted(request)?;
        if completion.errno != 0 {
            self.queue.log.count_error(completion.errno);
        }
        Ok(completion)
    }

    /// The unreadable parts of a failed block; `None` where the user stopped the scan meanwhile.
    fn narrow(
        &mut self,
        block: SampleRequest,
        errno: i32,
    ) -> io::Result<Option<Vec<UnreadableRange>>> {
        let end_ns = self.queue.sampler.now() + NARROW_NS_MAX;
        let mut bad = Vec::new();
        for part in requests_for(block.offset, u64::from(block.len), NARROW_BYTES) {
            let Some(part_errno) = self.try_reading(part, 1, end_ns, errno)? else {
                return Ok(None);
            };
            if part_errno == 0 {
                continue;
            }
            for sector in requests_for(
                part.offset,
                u64::from(part.len),
                self.queue.target.sector_bytes,
            ) {
                let sector_errno = self.try_reading(sector, SECTOR_TRIES, end_ns, part_errno)?;
                let Some(sector_errno) = sector_errno else {
                    return Ok(None);
                };
                if sector_errno != 0 {
                    bad.push(UnreadableRange {
                        offset_bytes: sector.offset,
                        length_bytes: u64::from(sector.len),
                        lba: sector.offset / self.queue.target.lba_bytes,
                        errno: errno_name(sector_errno),
                    });
                }
            }
        }
        Ok(Some(bad))
    }

    /// Reads a part up to so many times. Returns the errno of a part that fails each time; 0 where
    /// one read succeeds; `errno`, without reading, when time is up. `None` where the user stopped
    /// the scan.
    fn try_reading(
        &mut self,
        request: SampleRequest,
        tries: u32,
        end_ns: u64,
        errno: i32,
    ) -> io::Result<Option<i32>> {
        let mut last = errno;
        for _ in 0..tries {
            if self.queue.log.is_stopped() {
                return Ok(None);
            }
            if self.queue.sampler.now() >= end_ns {
                return Ok(Some(errno));
            }
            let completion = self.queue.try_one(request)?;
            last = completion.errno;
            if last == 0 {
                break;
            }
        }
        Ok(Some(last))
    }

    /// Once the first slow block lies `latest` bytes before `offset`, reads those again that lie
    /// `away` bytes before it.
    fn check_candidates(&mut self, offset: u64, away: u64, latest: u64) -> io::Result<()> {
        let is_due = self
            .candidates
            .iter()
            .any(|candidate| candidate.offset + latest <= offset);
        if !is_due {
            return Ok(());
        }
        for candidate in std::mem::take(&mut self.candidates) {
            if candidate.offset + away > offset {
                self.candidates.push(candidate);
                continue;
            }
            let Some(latency_ns) = self.reread(candidate)? else {
                self.candidates.push(candidate);
                continue;
            };
            let mut limit_ns = candidate.limit_ns;
            if candidate.has_slow_neighbours {
                limit_ns = limit_ns.max(slow_from_ns(self.latency_elsewhere(candidate.offset)?));
            }
            if latency_ns >= limit_ns {
                self.log(|log| log.add_slow(candidate.offset, latency_ns));
            }
        }
        Ok(())
    }

    /// The median latency of some blocks at the opposite side of the target: what the whole device
    /// does at present. 0 where it is too small to have such a side.
    fn latency_elsewhere(&mut self, offset: u64) -> io::Result<u64> {
        let Extent { start, length } = self.queue.target.extent;
        let bytes = ELSEWHERE_BLOCKS * self.block;
        if length < 4 * bytes {
            return Ok(0);
        }
        let opposite = (offset - start + length / 2) % length;
        let from = start + opposite.min(length - bytes) / self.block * self.block;
        let mut latencies = Vec::new();
        for part in requests_for(from, bytes, self.block) {
            if self.queue.log.is_stopped() {
                break;
            }
            latencies.push(self.read_again(part)?.latency_ns);
        }
        latencies.sort_unstable();
        Ok(latencies.get(latencies.len() / 2).copied().unwrap_or(0))
    }

    /// The shorter latency of a slow block; `None` where the user stopped the scan. It is read
    /// after the block before it, as the first time, and only once, because the disk's cache would
    /// serve the next read.
    fn reread(&mut self, candidate: SlowCandidate) -> io::Result<Option<u64>> {
        if self.queue.log.is_stopped() {
            return Ok(None);
        }
        let before = candidate
            .offset
            .saturating_sub(self.block)
            .max(self.queue.target.extent.start);
        if before < candidate.offset {
            let lead = block_at(before, candidate.offset - before);
            self.queue.move_one(lead)?;
        }
        let starved_ns = self.queue.sampler.starved_ns();
        let block = block_at(candidate.offset, u64::from(candidate.len));
        let completion = self.read_again(block)?;
        // Waiting for a processor is not the block's latency.
        let latency_ns = completion
            .latency_ns
            .saturating_sub(self.queue.sampler.starved_ns().saturating_sub(starved_ns));
        Ok(Some(if completion.errno == 0 {
            latency_ns.min(candidate.latency_ns)
        } else {
            candidate.latency_ns
        }))
    }

    /// Reads elsewhere for a while, so that the last blocks leave the disk's cache.
    fn read_elsewhere(&mut self, offset: u64) -> io::Result<()> {
        let Extent { start, length } = self.queue.target.extent;
        if length < 4 * AWAY_BYTES {
            return Ok(());
        }
        let from = if offset - start > length / 2 {
            start
        } else {
            start + length - AWAY_BYTES
        };
        for part in requests_for(from, AWAY_BYTES, self.block) {
            if self.queue.log.is_stopped() {
                break;
            }
            self.queue.move_one(part)?;
        }
        Ok(())
    }
}

/// Requests for a range, of `step` bytes each, the last one shorter.
fn requests_for(offset: u64, length: u64, step: u64) -> impl Iterator<Item = SampleRequest> {
    (0..length.div_ceil(step)).map(move |index| {
        let done = index * step;
        block_at(offset + done, step.min(length - done))
    })
}
