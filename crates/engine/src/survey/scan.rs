//! Every block once, in order: slow ones against their neighbourhood, unreadable ones narrowed down
//! to sectors. Knows nothing of the other parts of a survey.

use super::Ground;
use super::journal::Journal;
use super::queue::{Lane, Piece};
use super::slow_blocks::{Neighbourhood, Suspect, slow_from_ns};
use crate::io::Backend;
use crate::io::Extent;
use crate::io::clock::Clock;
use crate::measure::counters::errno_name;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::plan::CachePolicy;
use diskproof_model::progress::Found;
use diskproof_model::surface::{Scan, ScanCell, ScanPlan, SlowBlock, UnreadableRange};
use std::io;

/// Entries of each list in a record.
const LIST_MAX: usize = 1000;
/// Cells of the map.
const CELLS_MAX: u64 = 1000;
/// A failed block is first read in pieces of this size, then the failed ones of these by sectors: a
/// lone bad sector then costs three failed reads, each of which may take a disk many seconds;
/// halving would cost eleven.
const NARROW_BYTES: u64 = 64 << 10;
/// The kernel and the drive have tried several times before a read fails; a sector that fails twice
/// is unreadable.
const SECTOR_TRIES: u32 = 2;
/// The longest that one block is narrowed down: what is left then counts as unreadable as a whole.
const NARROW_NS_MAX: u64 = 60_000_000_000;
/// After so many blocks in a row of which nothing could be read it is not a matter of sectors any
/// more: the scan ends and says where.
const HOPELESS_BLOCKS: u32 = 256;
/// What a disk has just read may sit in its cache: suspects are read again once the scan is this
/// far away.
const AWAY_BYTES: u64 = 64 << 20;
/// And no later than this, so that an interrupted scan has little to repeat.
const LATEST_BYTES: u64 = 512 << 20;

/// Results so far.
#[derive(Debug)]
pub struct ScanLog {
    block_bytes: u32,
    lba_bytes: u64,
    from: u64,
    /// Everything before is judged.
    judged_to: u64,
    finished: bool,
    blocks: u64,
    latencies: LatencyHistogram,
    slow_blocks: u64,
    slow: Vec<SlowBlock>,
    unreadable_bytes: u64,
    unreadable: Vec<UnreadableRange>,
    /// The block that was read well last.
    read_at: u64,
    /// How many of each list the watcher was told.
    told: (usize, usize),
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
    fn new(ground: &Ground, block_bytes: u64, from: u64) -> Self {
        let Extent { start, length } = ground.extent;
        let cell_bytes = length.div_ceil(CELLS_MAX).next_multiple_of(block_bytes);
        Self {
            block_bytes: block_bytes as u32,
            lba_bytes: ground.lba_bytes,
            from,
            judged_to: from,
            finished: false,
            blocks: 0,
            latencies: LatencyHistogram::new(),
            slow_blocks: 0,
            slow: Vec::new(),
            unreadable_bytes: 0,
            unreadable: Vec::new(),
            read_at: from,
            told: (0, 0),
            map: vec![MapCell::default(); length.div_ceil(cell_bytes) as usize],
            map_start: start,
            cell_bytes,
        }
    }

    /// Everything before is judged.
    pub fn judged_to(&self) -> u64 {
        self.judged_to
    }

    fn cell(&mut self, offset: u64) -> Option<&mut MapCell> {
        self.map
            .get_mut(((offset - self.map_start) / self.cell_bytes) as usize)
    }

    fn read(&mut self, offset: u64, latency_ns: u64) {
        self.blocks += 1;
        self.read_at = offset;
        self.latencies.record(latency_ns);
        if let Some(cell) = self.cell(offset) {
            (cell.blocks, cell.read, cell.sum_ns) =
                (cell.blocks + 1, cell.read + 1, cell.sum_ns + latency_ns);
            cell.max_ns = cell.max_ns.max(latency_ns);
        }
    }

    fn failed(&mut self, offset: u64, ranges: &[Bad]) {
        self.blocks += 1;
        if let Some(cell) = self.cell(offset) {
            (cell.blocks, cell.errors) = (cell.blocks + 1, cell.errors + 1);
        }
        ranges.iter().for_each(|bad| self.add_bad(bad));
    }

    fn add_bad(&mut self, bad: &Bad) {
        self.unreadable_bytes += bad.length;
        let (errno, has_room) = (errno_name(bad.errno), self.unreadable.len() < LIST_MAX);
        match self.unreadable.last_mut() {
            Some(last)
                if last.offset_bytes + last.length_bytes == bad.offset && last.errno == errno =>
            {
                last.length_bytes += bad.length
            }
            _ if has_room => {
                let lba = bad.offset / self.lba_bytes;
                self.unreadable.push(UnreadableRange {
                    offset_bytes: bad.offset,
                    length_bytes: bad.length,
                    lba,
                    errno,
                });
            }
            _ => {}
        }
    }

    fn add_slow(&mut self, offset: u64, latency_ns: u64) {
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

    /// Places that were found since the last call, as far as a record would list them.
    pub fn take_found(&mut self) -> Vec<Found> {
        // Once the list of slow blocks is full its entries change places.
        let slow = if self.slow_blocks > LIST_MAX as u64 {
            &[]
        } else {
            &self.slow[self.told.0..]
        };
        // The last range may go on in the next block.
        let whole =
            |range: &UnreadableRange| range.offset_bytes + range.length_bytes <= self.read_at;
        let whole = self.unreadable.len()
            - usize::from(self.unreadable.last().is_some_and(|last| !whole(last)));
        let unreadable = &self.unreadable[self.told.1.min(whole)..whole];
        let found = slow
            .iter()
            .copied()
            .map(Found::Slow)
            .chain(unreadable.iter().cloned().map(Found::Unreadable))
            .collect();
        self.told = (self.told.0 + slow.len(), whole);
        found
    }

    /// What a record says of it.
    pub fn scan(&self) -> Scan {
        let mut slow = self.slow.clone();
        slow.sort_by_key(|block| block.offset_bytes);
        // What lies behind the border will be found again by whoever goes on there.
        let unreadable: Vec<UnreadableRange> = self
            .unreadable
            .iter()
            .filter(|bad| bad.offset_bytes < self.judged_to)
            .cloned()
            .collect();
        let again: u64 = self
            .unreadable
            .iter()
            .filter(|bad| bad.offset_bytes >= self.judged_to)
            .map(|bad| bad.length_bytes)
            .sum();
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
            slow,
            unreadable_bytes: self.unreadable_bytes - again,
            unreadable,
            map: map.collect(),
        }
    }
}

/// Bytes that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bad {
    offset: u64,
    length: u64,
    errno: i32,
}

/// Reads everything and leaves what was found in the journal.
pub fn measure<B: Backend, C: Clock>(
    lane: &mut Lane<B, C>,
    ground: &Ground,
    plan: &ScanPlan,
    journal: &Journal,
) -> io::Result<()> {
    journal.begin("scan");
    let block = ground.fitting(u64::from(plan.block_bytes));
    let Extent { start, length } = ground.extent;
    // Blocks lie where they lay in the run that is continued.
    let from = start
        + plan
            .resume_bytes
            .clamp(start, start + length)
            .saturating_sub(start)
            / block
            * block;
    journal.seen().scan = Some(ScanLog::new(ground, block, from));
    Scanner {
        lane,
        ground,
        journal,
        neighbourhood: Neighbourhood::default(),
        suspects: Vec::new(),
        block,
        hopeless: 0,
    }
    .run(from)
}

struct Scanner<'a, B, C> {
    lane: &'a mut Lane<B, C>,
    ground: &'a Ground,
    journal: &'a Journal,
    neighbourhood: Neighbourhood,
    /// Slow at the first reading.
    suspects: Vec<Suspect>,
    block: u64,
    /// Blocks in a row of which nothing could be read.
    hopeless: u32,
}

impl<B: Backend, C: Clock> Scanner<'_, B, C> {
    fn run(&mut self, from: u64) -> io::Result<()> {
        let end = self.ground.extent.start + self.ground.extent.length;
        let mut at = from;
        while at < end && self.hopeless < HOPELESS_BLOCKS && self.read(at, end)? {
            at = (at + self.block).min(end);
            self.check_suspects(at, AWAY_BYTES, LATEST_BYTES)?;
            self.border(at);
            self.journal
                .done((at - from) as f64 / (end - from).max(1) as f64);
        }
        if self.journal.is_stopped() {
            return Ok(());
        }
        let rest = self.neighbourhood.take_rest();
        self.suspects.extend(rest);
        if !self.suspects.is_empty() {
            self.go_away(at)?;
            self.check_suspects(at, 0, 0)?;
        }
        self.border(at);
        if !self.journal.is_stopped()
            && let Some(log) = &mut self.journal.seen().scan
        {
            log.finished = at >= end;
        }
        Ok(())
    }

    /// Everything before the first block that is not judged yet is done.
    fn border(&self, at: u64) {
        let first = self
            .suspects
            .iter()
            .map(|suspect| suspect.offset)
            .min()
            .unwrap_or(at);
        let border = first.min(self.neighbourhood.first_waiting().unwrap_or(at));
        self.log(|log| log.judged_to = border);
    }

    fn log(&self, note: impl FnOnce(&mut ScanLog)) {
        if let Some(log) = &mut self.journal.seen().scan {
            note(log);
        }
    }

    /// Reads the block at `at`. Whether it is done: not when the user ended it meanwhile.
    fn read(&mut self, at: u64, end: u64) -> io::Result<bool> {
        if self.journal.is_stopped() {
            return Ok(false);
        }
        if self.ground.cache == CachePolicy::Buffered && at % AWAY_BYTES < self.block {
            self.lane.drop_cache();
        }
        let piece = Piece {
            offset: at,
            len: self.block.min(end - at) as u32,
            tag: 0,
        };
        let landing = self.lane.single(piece)?;
        self.journal.count(&landing);
        if landing.errno == 0 {
            self.hopeless = 0;
            self.log(|log| log.read(at, landing.latency_ns));
            // The last block may be shorter, and is then no neighbour of the others.
            let latency_ns = landing.latency_ns;
            let found = self.neighbourhood.add(Suspect {
                offset: at,
                len: piece.len,
                latency_ns,
                limit_ns: u64::MAX,
            });
            self.suspects.extend(found);
            return Ok(true);
        }
        let Some(ranges) = self.narrow(piece, landing.errno)? else {
            return Ok(false);
        };
        let lost: u64 = ranges.iter().map(|bad| bad.length).sum();
        self.hopeless = if lost == u64::from(piece.len) {
            self.hopeless + 1
        } else {
            0
        };
        self.log(|log| log.failed(at, &ranges));
        Ok(true)
    }

    /// Which parts of a failed block cannot be read; `None` when the user ended it meanwhile.
    fn narrow(&mut self, block: Piece, errno: i32) -> io::Result<Option<Vec<Bad>>> {
        let end_ns = self.lane.now() + NARROW_NS_MAX;
        let mut bad = Vec::new();
        for part in parts(block.offset, u64::from(block.len), NARROW_BYTES) {
            let Some(failed) = self.fails(part, 1, end_ns, errno)? else {
                return Ok(None);
            };
            if failed == 0 {
                continue;
            }
            for sector in parts(part.offset, u64::from(part.len), self.ground.sector_bytes) {
                let Some(errno) = self.fails(sector, SECTOR_TRIES, end_ns, failed)? else {
                    return Ok(None);
                };
                if errno != 0 {
                    bad.push(Bad {
                        offset: sector.offset,
                        length: u64::from(sector.len),
                        errno,
                    });
                }
            }
        }
        Ok(Some(bad))
    }

    /// The errno of a piece that fails each time, 0 when it is read once; `errno` unread when the
    /// time is over. `None` when the user ended it.
    fn fails(
        &mut self,
        piece: Piece,
        tries: u32,
        end_ns: u64,
        errno: i32,
    ) -> io::Result<Option<i32>> {
        let mut last = errno;
        for _ in 0..tries {
            if self.journal.is_stopped() {
                return Ok(None);
            }
            if self.lane.now() >= end_ns {
                return Ok(Some(errno));
            }
            let landing = self.lane.single(piece)?;
            self.journal.count(&landing);
            last = landing.errno;
            if last == 0 {
                break;
            }
        }
        Ok(Some(last))
    }

    /// Once the first suspect lies `latest` behind: reads those that lie `away` behind again.
    fn check_suspects(&mut self, at: u64, away: u64, latest: u64) -> io::Result<()> {
        let due = |suspect: &Suspect, behind: u64| suspect.offset + behind <= at;
        if !self.suspects.iter().any(|suspect| due(suspect, latest)) {
            return Ok(());
        }
        let (now, later): (Vec<Suspect>, Vec<Suspect>) = self
            .suspects
            .drain(..)
            .partition(|suspect| due(suspect, away));
        self.suspects = later;
        for suspect in now {
            match self.again(suspect)? {
                None => self.suspects.push(suspect),
                Some(latency_ns) if latency_ns >= suspect.limit_ns => {
                    self.log(|log| log.add_slow(suspect.offset, latency_ns))
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// The shorter latency of a suspect; `None` when the user ended it. It is read in the stream of
    /// the block before, as the first time; and only once, because the disk's cache would
    /// answer the next time.
    fn again(&mut self, suspect: Suspect) -> io::Result<Option<u64>> {
        if self.journal.is_stopped() {
            return Ok(None);
        }
        let before = suspect
            .offset
            .saturating_sub(self.block)
            .max(self.ground.extent.start);
        if before < suspect.offset {
            let lead = self.lane.single(Piece {
                offset: before,
                len: (suspect.offset - before) as u32,
                tag: 0,
            })?;
            self.journal.count(&lead);
        }
        let starved_ns = self.lane.starved_ns();
        let landing = self.lane.single(Piece {
            offset: suspect.offset,
            len: suspect.len,
            tag: 0,
        })?;
        self.journal.count(&landing);
        // What we waited for a processor is not the block's.
        let latency_ns = landing
            .latency_ns
            .saturating_sub(self.lane.starved_ns() - starved_ns);
        Ok(Some(if landing.errno == 0 {
            latency_ns.min(suspect.latency_ns)
        } else {
            suspect.latency_ns
        }))
    }

    /// Reads elsewhere for a while, so that the last blocks leave the disk's cache.
    fn go_away(&mut self, at: u64) -> io::Result<()> {
        let Extent { start, length } = self.ground.extent;
        if length < 4 * AWAY_BYTES {
            return Ok(());
        }
        let from = if at - start > length / 2 {
            start
        } else {
            start + length - AWAY_BYTES
        };
        for part in parts(from, AWAY_BYTES, self.block) {
            if self.journal.is_stopped() {
                break;
            }
            let landing = self.lane.single(part)?;
            self.journal.count(&landing);
        }
        Ok(())
    }
}

/// A range in pieces of `step`, the last one shorter.
fn parts(offset: u64, length: u64, step: u64) -> impl Iterator<Item = Piece> {
    (0..length.div_ceil(step)).map(move |index| {
        let at = index * step;
        Piece {
            offset: offset + at,
            len: step.min(length - at) as u32,
            tag: 0,
        }
    })
}
