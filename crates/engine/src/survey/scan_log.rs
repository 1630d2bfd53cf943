//! Collects what a scan finds: slow blocks, which take longer than their neighbours, unreadable
//! ranges, a map of latencies.

use crate::io::Extent;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::progress::Found;
use diskproof_model::surface::{Scan, ScanCell, SlowBlock, UnreadableRange};
use std::collections::VecDeque;

/// At most so many entries of each list are in a record. Chosen: a record stays small, and a disk
/// with more needs no longer list to be replaced.
const LIST_MAX: usize = 1000;
/// At most so many cells are in the map of latencies. Chosen: more than a page has columns.
const CELLS_MAX: u64 = 1000;

/// The results of a scan so far.
#[derive(Debug, Clone)]
pub(crate) struct ScanLog {
    /// The results as a record holds them, with two exceptions: the figures of all latencies are
    /// missing, and the mean of a cell is the sum of its latencies. Everything before its end is
    /// judged.
    pub found: Scan,
    lba_bytes: u64,
    latencies: LatencyHistogram,
    /// The last block that was read without an error.
    read_at: u64,
    /// The last unreadable range, also where the list is full.
    last_bad: Option<UnreadableRange>,
    /// The number of slow blocks that the watcher has got.
    reported_slow: usize,
    /// The number of unreadable ranges that the watcher has got.
    reported_unreadable: usize,
    map_start: u64,
    cell_bytes: u64,
}

impl ScanLog {
    /// An empty log of a scan that starts at `from`.
    pub(crate) fn new(extent: Extent, lba_bytes: u64, block_bytes: u64, from: u64) -> Self {
        let Extent { start, length } = extent;
        let cell_bytes = length.div_ceil(CELLS_MAX).next_multiple_of(block_bytes);
        let mut map = Vec::new();
        for index in 0..length.div_ceil(cell_bytes) {
            map.push(ScanCell {
                offset_bytes: start + index * cell_bytes,
                blocks: 0,
                latency_mean_ns: 0,
                latency_max_ns: 0,
                errors: 0,
            });
        }
        Self {
            found: Scan {
                block_bytes: block_bytes as u32,
                from_bytes: from,
                to_bytes: from,
                finished: false,
                blocks: 0,
                latency_p50_ns: None,
                slow_from_ns: 0,
                slow_blocks: 0,
                slow: Vec::new(),
                unreadable_bytes: 0,
                unreadable: Vec::new(),
                ended_at: None,
                map,
            },
            lba_bytes,
            latencies: LatencyHistogram::default(),
            read_at: from,
            last_bad: None,
            reported_slow: 0,
            reported_unreadable: 0,
            map_start: start,
            cell_bytes,
        }
    }

    /// Counts a block, and returns its cell of the map.
    fn count(&mut self, offset: u64) -> Option<&mut ScanCell> {
        self.found.blocks += 1;
        let index = (offset - self.map_start) / self.cell_bytes;
        let cell = self.found.map.get_mut(index as usize)?;
        cell.blocks += 1;
        Some(cell)
    }

    /// Adds a block that was read. The caller adds blocks in their order.
    pub(crate) fn add_read(&mut self, offset: u64, latency_ns: u64) {
        self.read_at = offset;
        self.latencies.record(latency_ns);
        if let Some(cell) = self.count(offset) {
            cell.latency_mean_ns += latency_ns;
            cell.latency_max_ns = cell.latency_max_ns.max(latency_ns);
        }
    }

    /// Adds a block of which these parts cannot be read.
    pub(crate) fn add_failed(&mut self, offset: u64, ranges: Vec<UnreadableRange>) {
        if let Some(cell) = self.count(offset) {
            cell.errors += 1;
        }
        for bad in ranges {
            self.add_bad(bad);
        }
    }

    fn add_bad(&mut self, bad: UnreadableRange) {
        self.found.unreadable_bytes += bad.length_bytes;
        let has_room = self.found.unreadable.len() < LIST_MAX;
        match self.found.unreadable.last_mut() {
            Some(last) if goes_on(last, &bad) => last.length_bytes += bad.length_bytes,
            _ if has_room => self.found.unreadable.push(bad.clone()),
            _ => {}
        }
        match &mut self.last_bad {
            Some(last) if goes_on(last, &bad) => last.length_bytes += bad.length_bytes,
            Some(_) | None => self.last_bad = Some(bad),
        }
    }

    /// Notes that the scan ends because of the last unreadable range.
    pub(crate) fn end_at_unreadable(&mut self) {
        self.found.ended_at.clone_from(&self.last_bad);
    }

    /// Adds a slow block, which was slow also when it was read again.
    pub(crate) fn add_slow(&mut self, offset: u64, latency_ns: u64) {
        self.found.slow_blocks += 1;
        let slow = &mut self.found.slow;
        slow.push(SlowBlock {
            offset_bytes: offset,
            lba: offset / self.lba_bytes,
            latency_ns,
        });
        if slow.len() > LIST_MAX
            && let Some(fastest) = (0..slow.len()).min_by_key(|index| slow[*index].latency_ns)
        {
            slow.swap_remove(fastest);
        }
    }

    /// Slow and unreadable places found since the last call, as far as a record lists them.
    pub(crate) fn take_found(&mut self) -> Vec<Found> {
        let mut found = Vec::new();
        // Once the list of slow blocks is full, its entries move.
        if self.found.slow_blocks <= LIST_MAX as u64 {
            for slow in &self.found.slow[self.reported_slow..] {
                found.push(Found::Slow(*slow));
            }
            self.reported_slow = self.found.slow.len();
        }
        let unreadable = &self.found.unreadable;
        let mut ended = unreadable.len();
        // The last range may continue in the next block.
        if let Some(last) = unreadable.last()
            && last.offset_bytes + last.length_bytes > self.read_at
        {
            ended -= 1;
        }
        for range in &unreadable[self.reported_unreadable.min(ended)..ended] {
            found.push(Found::Unreadable(range.clone()));
        }
        self.reported_unreadable = ended;
        found
    }

    /// The scan as a record holds it.
    pub(crate) fn scan(self) -> Scan {
        let mut scan = self.found;
        // The range that ended the scan is worth more than the last of a thousand.
        if let (Some(ended_at), Some(last)) = (&scan.ended_at, scan.unreadable.last_mut())
            && last.offset_bytes < ended_at.offset_bytes
        {
            last.clone_from(ended_at);
        }
        scan.slow.sort_by_key(|block| block.offset_bytes);
        // A resumed scan finds again what lies behind the border.
        for bad in &scan.unreadable {
            if bad.offset_bytes >= scan.to_bytes {
                scan.unreadable_bytes -= bad.length_bytes;
            }
        }
        scan.unreadable
            .retain(|bad| bad.offset_bytes < scan.to_bytes);
        if self.latencies.count() > 0 {
            scan.latency_p50_ns = Some(self.latencies.value_at(0.5));
        }
        scan.slow_from_ns = slow_from_ns(scan.latency_p50_ns.unwrap_or(0));
        scan.map.retain(|cell| cell.blocks > 0);
        for cell in &mut scan.map {
            cell.latency_mean_ns /= (cell.blocks - cell.errors).max(1);
        }
        scan
    }
}

/// True if an unreadable range begins where another ends, with the same error.
fn goes_on(last: &UnreadableRange, next: &UnreadableRange) -> bool {
    last.offset_bytes + last.length_bytes == next.offset_bytes && last.errno == next.errno
}

/// Number of neighbours, with the block in question in the middle: at 1 MiB each far less than a
/// zone of a rotating disk, and enough for a median that a few slow ones cannot move. Chosen, not
/// measured.
const WINDOW: usize = 65;
/// A block is slow when it takes twice as long as its neighbours, and at least this much longer:
/// more than one turn at 7200 rpm, so that a sector read at the second try shows, and on an SSD
/// more than any regular retry.
const LONGER_NS_MIN: u64 = 10_000_000;

/// A block is also slow when it takes so many times as long as the blocks of the whole scan so far,
/// whatever its neighbours take: a slow stretch that is longer than half of the window sets their
/// median. The innermost zone of a rotating disk takes up to 2.5 times as long as the outermost.
const FAR_TIMES: u64 = 4;
/// The first blocks, of which so many are judged again at the end: until then they had nothing but
/// themselves to be compared with. Chosen, not measured: a gigabyte at 1 MiB each.
const EARLY_BLOCKS: usize = 1024;

/// The latency from which on a block among neighbours of this median is slow.
pub(crate) fn slow_from_ns(median_ns: u64) -> u64 {
    median_ns + median_ns.max(LONGER_NS_MIN)
}

/// The latency from which on a block is slow in a scan with this median.
fn far_from_ns(median_ns: u64) -> u64 {
    (FAR_TIMES * median_ns).max(slow_from_ns(median_ns))
}

/// A block with its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlowCandidate {
    /// Offset in the target, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
    /// The latency of the first reading.
    pub latency_ns: u64,
    /// The latency from which on it is slow.
    pub limit_ns: u64,
    /// True if it is slow only beside the scan as a whole: its neighbours are slow, too. Then the
    /// whole device may have become slower, which a reading elsewhere shows.
    pub has_slow_neighbours: bool,
}

/// Finds slow blocks among those that are read one after the other.
#[derive(Debug, Default)]
pub(crate) struct SlowBlockDetector {
    /// The last blocks that were read.
    recent: VecDeque<SlowCandidate>,
    /// The number of blocks, from the front, that have been judged.
    judged: usize,
    /// The latencies of all blocks that were not slow.
    usual: LatencyHistogram,
    /// The first blocks that were not slow.
    early: Vec<SlowCandidate>,
}

impl SlowBlockDetector {
    /// Adds the next block; returns those that prove to be slow.
    pub(crate) fn add(&mut self, block: SlowCandidate) -> Vec<SlowCandidate> {
        self.recent.push_back(block);
        if self.recent.len() < WINDOW {
            return Vec::new();
        }
        let slow = self.judge(WINDOW / 2 + 1);
        self.recent.pop_front();
        self.judged -= 1;
        slow
    }

    /// Judges what is left, once there are no more blocks.
    pub(crate) fn take_rest(&mut self) -> Vec<SlowCandidate> {
        let mut slow = self.judge(self.recent.len());
        // Where most blocks are early ones, the usual latency is unknown.
        if self.usual.count() > 2 * self.early.len() as u64 {
            let limit_ns = far_from_ns(self.usual.value_at(0.5));
            for block in &self.early {
                if block.latency_ns >= limit_ns {
                    slow.push(SlowCandidate {
                        limit_ns,
                        has_slow_neighbours: true,
                        ..*block
                    });
                }
            }
        }
        *self = Self::default();
        slow
    }

    /// The first block that was not judged yet.
    pub(crate) fn first_waiting(&self) -> Option<u64> {
        self.recent.get(self.judged).map(|block| block.offset)
    }

    /// Judges the blocks up to the index `upto`, and returns those that are slow.
    fn judge(&mut self, upto: usize) -> Vec<SlowCandidate> {
        let mut latencies: Vec<u64> = self.recent.iter().map(|block| block.latency_ns).collect();
        if latencies.is_empty() {
            return Vec::new();
        }
        let middle = latencies.len() / 2;
        let near_ns = slow_from_ns(*latencies.select_nth_unstable(middle).1);
        let mut limit_ns = near_ns;
        if self.usual.count() >= WINDOW as u64 {
            limit_ns = limit_ns.min(far_from_ns(self.usual.value_at(0.5)));
        }
        let judged_to = upto.max(self.judged);
        let mut slow = Vec::new();
        for block in self.recent.range(self.judged..judged_to) {
            if block.latency_ns >= limit_ns {
                slow.push(SlowCandidate {
                    limit_ns,
                    has_slow_neighbours: block.latency_ns < near_ns,
                    ..*block
                });
                continue;
            }
            self.usual.record(block.latency_ns);
            if self.early.len() < EARLY_BLOCKS {
                self.early.push(*block);
            }
        }
        self.judged = judged_to;
        slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(index: u64, latency_ns: u64) -> SlowCandidate {
        SlowCandidate {
            offset: index << 20,
            len: 1 << 20,
            latency_ns,
            limit_ns: u64::MAX,
            has_slow_neighbours: false,
        }
    }

    /// More lone sectors than the list takes, then a tail that cannot be read.
    #[test]
    fn range_that_ends_a_scan_is_kept_where_the_list_is_full() {
        const BLOCK: u64 = 1 << 20;
        let bad = |offset_bytes, length_bytes| UnreadableRange {
            offset_bytes,
            length_bytes,
            lba: offset_bytes / 512,
            errno: "EIO".to_owned(),
        };
        let mut log = ScanLog::new(Extent::new(0, 2000 * BLOCK), 512, BLOCK, 0);
        for index in 0..1280 {
            log.add_failed(index * BLOCK, vec![bad(index * BLOCK, 4096)]);
        }
        for index in 1280..1536 {
            log.add_failed(index * BLOCK, vec![bad(index * BLOCK, BLOCK)]);
        }
        log.found.to_bytes = 1536 * BLOCK;
        assert_eq!(log.clone().scan().ended_at, None);
        log.end_at_unreadable();
        let scan = log.scan();
        let tail = bad(1280 * BLOCK, 256 * BLOCK);
        assert_eq!(scan.ended_at, Some(tail.clone()));
        assert_eq!(
            (scan.unreadable.len(), scan.unreadable.last()),
            (LIST_MAX, Some(&tail))
        );
        assert_eq!(scan.unreadable_bytes, 1280 * 4096 + 256 * BLOCK);
    }

    #[test]
    fn slow_block_detector_finds_each_slow_block_once() {
        let slow = [0u64, 1, 31, 32, 33, 64, 65, 500, 998, 999];
        let mut detector = SlowBlockDetector::default();
        let mut found = Vec::new();
        for index in 0..1000 {
            let is_slow = slow.contains(&index);
            let latency_ns = if is_slow {
                40_000_000
            } else {
                11_000_000 + index * 5_000
            };
            found.extend(detector.add(block(index, latency_ns)));
            let oldest = index.saturating_sub(64) << 20;
            assert!(detector.first_waiting().is_none_or(|first| first >= oldest));
        }
        found.extend(detector.take_rest());
        assert!(
            found
                .iter()
                .map(|candidate| candidate.offset >> 20)
                .eq(slow)
        );
    }

    #[test]
    fn slow_block_detector_ignores_slower_zone() {
        let mut detector = SlowBlockDetector::default();
        let zones =
            (0..400).map(|index| block(index, if index < 200 { 11_000_000 } else { 20_500_000 }));
        let found: Vec<SlowCandidate> = zones.flat_map(|block| detector.add(block)).collect();
        assert_eq!((found, detector.take_rest()), (Vec::new(), Vec::new()));
    }

    /// Of blocks of 5 ms, those in this range take 400 ms; the number of those found.
    fn found_of_stretch(stretch: std::ops::Range<u64>) -> u64 {
        let mut detector = SlowBlockDetector::default();
        let mut found = Vec::new();
        for index in 0..5000 {
            let latency_ns = if stretch.contains(&index) {
                400_000_000
            } else {
                5_000_000
            };
            found.extend(detector.add(block(index, latency_ns)));
        }
        found.extend(detector.take_rest());
        assert!(
            found
                .iter()
                .all(|slow| stretch.contains(&(slow.offset >> 20)))
        );
        found.len() as u64
    }

    #[test]
    fn slow_stretch_of_any_length_is_found() {
        for length in [1, 32, 33, 64, 1000] {
            assert_eq!(found_of_stretch(2000..2000 + length), length);
            assert_eq!(found_of_stretch(0..length), length, "at the start");
            assert_eq!(found_of_stretch(5000 - length..5000), length, "at the end");
        }
    }
}
