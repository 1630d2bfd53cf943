//! What a scan has found so far: slow blocks, unreadable ranges, a map of latencies.

use super::slow_blocks::slow_from_ns;
use super::target::SurveyTarget;
use crate::io::Extent;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::progress::Found;
use diskproof_model::surface::{Scan, ScanCell, SlowBlock, UnreadableRange};

/// Entries of each list in a record.
const LIST_MAX: usize = 1000;
/// Cells of the map.
const CELLS_MAX: u64 = 1000;
/// Results so far.
#[derive(Debug, Default)]
pub(crate) struct ScanLog {
    block_bytes: u32,
    lba_bytes: u64,
    from: u64,
    /// Everything before is judged.
    pub judged_to: u64,
    /// Whether it reached the end of the span.
    pub finished: bool,
    blocks: u64,
    latencies: LatencyHistogram,
    slow_blocks: u64,
    slow: Vec<SlowBlock>,
    unreadable_bytes: u64,
    unreadable: Vec<UnreadableRange>,
    /// The last block that was read without an error.
    read_at: u64,
    /// How many slow blocks and unreadable ranges the watcher has been told.
    reported: (usize, usize),
    map: Vec<MapCell>,
    map_start: u64,
    cell_bytes: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct MapCell {
    blocks: u64,
    read: u64,
    sum_ns: u64,
    max_ns: u64,
    errors: u64,
}

impl ScanLog {
    /// An empty log of a scan that starts at `from`.
    pub(crate) fn new(target: &SurveyTarget, block_bytes: u64, from: u64) -> Self {
        let Extent { start, length } = target.extent;
        let cell_bytes = length.div_ceil(CELLS_MAX).next_multiple_of(block_bytes);
        Self {
            block_bytes: block_bytes as u32,
            lba_bytes: target.lba_bytes,
            from,
            judged_to: from,
            read_at: from,
            map: vec![MapCell::default(); length.div_ceil(cell_bytes) as usize],
            map_start: start,
            cell_bytes,
            ..Self::default()
        }
    }

    fn cell(&mut self, offset: u64) -> Option<&mut MapCell> {
        self.map
            .get_mut(((offset - self.map_start) / self.cell_bytes) as usize)
    }

    /// A block was read.
    pub(crate) fn read(&mut self, offset: u64, latency_ns: u64) {
        self.blocks += 1;
        self.read_at = offset;
        self.latencies.record(latency_ns);
        if let Some(cell) = self.cell(offset) {
            (cell.blocks, cell.read, cell.sum_ns) =
                (cell.blocks + 1, cell.read + 1, cell.sum_ns + latency_ns);
            cell.max_ns = cell.max_ns.max(latency_ns);
        }
    }

    /// Parts of a block cannot be read.
    pub(crate) fn failed(&mut self, offset: u64, ranges: Vec<UnreadableRange>) {
        self.blocks += 1;
        if let Some(cell) = self.cell(offset) {
            (cell.blocks, cell.errors) = (cell.blocks + 1, cell.errors + 1);
        }
        ranges.into_iter().for_each(|bad| self.add_bad(bad));
    }

    fn add_bad(&mut self, bad: UnreadableRange) {
        self.unreadable_bytes += bad.length_bytes;
        let has_room = self.unreadable.len() < LIST_MAX;
        match self.unreadable.last_mut() {
            Some(last)
                if last.offset_bytes + last.length_bytes == bad.offset_bytes
                    && last.errno == bad.errno =>
            {
                last.length_bytes += bad.length_bytes
            }
            _ if has_room => self.unreadable.push(bad),
            _ => {}
        }
    }

    /// A block is slow, also when it is read again.
    pub(crate) fn add_slow(&mut self, offset: u64, latency_ns: u64) {
        self.slow_blocks += 1;
        self.slow.push(SlowBlock {
            offset_bytes: offset,
            lba: offset / self.lba_bytes,
            latency_ns,
        });
        if self.slow.len() > LIST_MAX
            && let Some(fastest) = self
                .slow
                .iter()
                .enumerate()
                .min_by_key(|(_, slow)| slow.latency_ns)
                .map(|(index, _)| index)
        {
            self.slow.swap_remove(fastest);
        }
    }

    /// Slow and unreadable places found since the last call, as far as a record lists them.
    pub(crate) fn take_found(&mut self) -> Vec<Found> {
        // Once the list of slow blocks is full, its entries move.
        let slow = if self.slow_blocks > LIST_MAX as u64 {
            &[]
        } else {
            &self.slow[self.reported.0..]
        };
        // The last range may continue in the next block.
        let whole =
            |range: &UnreadableRange| range.offset_bytes + range.length_bytes <= self.read_at;
        let whole = self.unreadable.len()
            - usize::from(self.unreadable.last().is_some_and(|last| !whole(last)));
        let unreadable = &self.unreadable[self.reported.1.min(whole)..whole];
        let found = slow
            .iter()
            .copied()
            .map(Found::Slow)
            .chain(unreadable.iter().cloned().map(Found::Unreadable))
            .collect();
        self.reported = (self.reported.0 + slow.len(), whole);
        found
    }

    /// The scan as a record holds it.
    pub(crate) fn scan(mut self) -> Scan {
        self.slow.sort_by_key(|block| block.offset_bytes);
        // A resumed scan finds again what lies behind the border.
        let is_judged = |bad: &UnreadableRange| bad.offset_bytes < self.judged_to;
        let (unreadable, again): (Vec<_>, Vec<_>) =
            self.unreadable.into_iter().partition(is_judged);
        let again: u64 = again.iter().map(|bad| bad.length_bytes).sum();
        let latency_p50_ns = if self.latencies.count() == 0 {
            0
        } else {
            self.latencies.value_at(0.5)
        };
        let cells = self
            .map
            .iter()
            .enumerate()
            .filter(|(_, cell)| cell.blocks > 0);
        let map = cells.map(|(index, cell)| ScanCell {
            offset_bytes: self.map_start + index as u64 * self.cell_bytes,
            blocks: cell.blocks,
            latency_mean_ns: cell.sum_ns / cell.read.max(1),
            latency_max_ns: cell.max_ns,
            errors: cell.errors,
        });
        Scan {
            block_bytes: self.block_bytes,
            from_bytes: self.from,
            to_bytes: self.judged_to,
            finished: self.finished,
            blocks: self.blocks,
            latency_p50_ns,
            slow_from_ns: slow_from_ns(latency_p50_ns),
            slow_blocks: self.slow_blocks,
            slow: self.slow,
            unreadable_bytes: self.unreadable_bytes - again,
            unreadable,
            map: map.collect(),
        }
    }
}
