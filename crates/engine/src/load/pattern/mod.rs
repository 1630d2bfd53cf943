//! Where the next operation goes, and whether it reads, writes or trims. Pure and reproducible;
//! allocates only while it is made. Knows no file, time or result.

mod block_sizes;
mod permutation;
mod skewed;
mod visit_map;
mod walk;
mod zipf;
mod zone_walk;

use crate::io::Extent;
use crate::random::Random;
use block_sizes::BlockSizes;
use diskproof_model::plan::{Access, Workload};
pub(crate) use permutation::Permutation;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use visit_map::VisitMap;
use walk::{OffsetWalk, RandomRuns, WalkPosition};
use zone_walk::ZoneWalk;

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferDirection {
    /// From the target.
    Read,
    /// To the target.
    Write,
    /// Nowhere: the target drops the content.
    Trim,
}

/// One operation to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Which way.
    pub direction: TransferDirection,
    /// First byte in the target.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

/// Positions that several threads share, separate for reads and writes.
#[derive(Debug, Clone, Default)]
pub struct SharedCursors {
    reads: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
}

/// An endless series of steps inside one extent.
#[derive(Debug, Clone)]
pub struct Pattern {
    reads: OffsetWalk,
    writes: OffsetWalk,
    blocks: BlockSizes,
    /// The sizes of writes, where they differ.
    write_blocks: Option<Box<BlockSizes>>,
    /// A step reads when 64 random bits, taken as a fraction, lie below this one.
    read_below: u64,
    mix: Mix,
    /// What a step does that does not read.
    write_direction: TransferDirection,
    random: Random,
    /// The visited units, where blocks of several sizes visit each once.
    map: Option<Box<VisitMap>>,
    /// Up to where [`Pattern::take_passed`] has reported, separate for reads and writes.
    reported: [WalkPosition; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mix {
    Reads,
    Writes,
    Both,
}

/// The shared cursor, at the place of a walk that may have skipped some blocks.
fn cursor(shared: &Arc<AtomicU64>, walk: &OffsetWalk, extent: Extent, len: u64) -> Arc<AtomicU64> {
    shared.store(walk.passed(extent) / len, Ordering::Relaxed);
    Arc::clone(shared)
}

/// The key of a random order that no other stream has.
pub(crate) fn order_key(seed: u64, stream: u64) -> u64 {
    Random::new(seed, !stream).bits()
}

/// A map of the units of a workload that visits each once, with blocks of several sizes. A verified
/// workload has one size.
fn visit_map(workload: &Workload, extent: Extent) -> Option<Box<VisitMap>> {
    let (smallest, largest) = block_range(workload);
    let shape = &workload.shape;
    let is_needed = shape.each_block_once
        && shape.random_run.is_none()
        && shape.align_bytes.is_none()
        && smallest < largest;
    is_needed
        .then(|| VisitMap::new(extent.start, extent.length, u64::from(smallest)))?
        .map(Box::new)
}

/// The blocks of a uniformly random walk, each once per lap.
fn each_once(walk: &OffsetWalk, next: &Arc<AtomicU64>, seed: u64) -> Option<OffsetWalk> {
    let (start, blocks, align) = match walk {
        OffsetWalk::Runs(runs) => {
            let walk = each_once(runs.drawn(), next, seed)?;
            return Some(OffsetWalk::Runs(Box::new(runs.drawing_from(walk))));
        }
        OffsetWalk::Uniform {
            start,
            blocks,
            align,
        } => (*start, *blocks, *align),
        OffsetWalk::EachOnce {
            start,
            align,
            order,
            ..
        } => (*start, order.len(), *align),
        _ => return None,
    };
    Some(OffsetWalk::EachOnce {
        start,
        align,
        order: Permutation::new(blocks, seed),
        next: Arc::clone(next),
    })
}

/// Reads of one size at uniformly random, aligned offsets.
#[derive(Debug, Clone)]
pub struct UniformReads {
    /// Bytes of each.
    pub len: u32,
    start: u64,
    blocks: u64,
    align: u64,
    random: Random,
}

impl UniformReads {
    /// The offset of the next read.
    #[inline(always)]
    pub fn offset(&mut self) -> u64 {
        self.start + self.random.below(self.blocks) * self.align
    }
}

/// Bytes of the shortest and of the longest step of `workload`.
pub fn block_range(workload: &Workload) -> (u32, u32) {
    let blocks = BlockSizes::new(workload);
    let writes = BlockSizes::of_writes(workload);
    let writes = writes.as_ref().unwrap_or(&blocks);
    (
        blocks.smallest().min(writes.smallest()),
        blocks.largest().max(writes.largest()),
    )
}

impl Pattern {
    /// The steps of `workload` inside `extent`, which must hold at least one block. Workers and
    /// targets have different values of `stream`.
    pub fn new(workload: &Workload, extent: Extent, seed: u64, stream: u64) -> Self {
        let blocks = BlockSizes::new(workload);
        let write_blocks = BlockSizes::of_writes(workload).map(Box::new);
        let countdown = Arc::default();
        let walk = |sizes: &BlockSizes| {
            let align = match workload.access {
                Access::Random { .. } | Access::Zoned { .. } => workload.shape.align_bytes,
                _ => None,
            };
            let align = align.unwrap_or(sizes.smallest());
            let walk = match (&workload.access, workload.shape.zone_stride) {
                (Access::Sequential, Some(stride)) => {
                    OffsetWalk::ZonesInTurn(Box::new(ZoneWalk::new(extent, stride)))
                }
                (access, _) => OffsetWalk::new(access, extent, align, sizes.largest()),
            };
            match workload.shape.random_run {
                Some(run) => OffsetWalk::Runs(Box::new(RandomRuns::new(
                    walk,
                    run,
                    extent,
                    Arc::clone(&countdown),
                ))),
                None => walk,
            }
        };
        let mix = match workload.read_permille {
            1000.. => Mix::Reads,
            0 => Mix::Writes,
            _ => Mix::Both,
        };
        let read_below = ((u128::from(workload.read_permille.min(1000)) << 64) / 1000)
            .min(u128::from(u64::MAX)) as u64;
        let pattern = Self {
            reads: walk(&blocks),
            writes: walk(write_blocks.as_deref().unwrap_or(&blocks)),
            blocks,
            write_blocks,
            read_below,
            mix,
            write_direction: match workload.trims() {
                true => TransferDirection::Trim,
                false => TransferDirection::Write,
            },
            random: Random::new(seed, stream),
            map: visit_map(workload, extent),
            reported: [WalkPosition::default(); 2],
        };
        match workload.shape.each_block_once {
            true => {
                pattern.with_each_block_once(&SharedCursors::default(), order_key(seed, stream))
            }
            false => pattern,
        }
    }

    /// Extents that the accesses since the last call have left in the page cache; some may be
    /// empty. `None` where that can be anywhere. The data ahead of a sequential pattern is
    /// excluded: the kernel has read it ahead and would have to read it twice.
    pub fn take_passed(&mut self) -> Option<[Extent; 2]> {
        let mut reported = self.reported;
        let reads = if self.mix == Mix::Writes {
            Extent::default()
        } else {
            self.reads.take_passed(&mut reported[0])?
        };
        let writes = if self.mix == Mix::Reads {
            Extent::default()
        } else {
            self.writes.take_passed(&mut reported[1])?
        };
        self.reported = reported;
        Some([reads, writes])
    }

    /// Takes ordered steps, and those that visit each block once, from cursors that other threads
    /// use, too: together they walk as one worker would. They have the same `key`.
    pub fn with_cursors(mut self, cursors: &SharedCursors, extent: Extent, key: u64) -> Self {
        if matches!(self.reads, OffsetWalk::EachOnce { .. }) {
            return self.with_each_block_once(cursors, key);
        }
        if let (OffsetWalk::Sequential { .. }, len) =
            (&self.reads, u64::from(self.blocks.largest()))
            && self.blocks.smallest() == self.blocks.largest()
            && self.write_blocks.is_none()
        {
            let blocks = extent.length / len;
            self.reads = OffsetWalk::Shared {
                start: extent.start,
                blocks,
                len,
                next: cursor(&cursors.reads, &self.reads, extent, len),
            };
            self.writes = OffsetWalk::Shared {
                start: extent.start,
                blocks,
                len,
                next: cursor(&cursors.writes, &self.writes, extent, len),
            };
        }
        self
    }

    /// Begins this many bytes further on, where the steps are sequential; each direction of a mix
    /// by half of them.
    pub fn skip(&mut self, bytes: u64) {
        let bytes = if self.mix == Mix::Both {
            bytes / 2
        } else {
            bytes
        };
        let len = u64::from(self.blocks.largest());
        self.reads.skip(bytes, len);
        self.writes.skip(bytes, len);
    }

    /// Writes each block of a uniformly random pattern once before it writes one again, together
    /// with all patterns that share the cursors and the seed.
    pub fn with_each_write_once(mut self, cursors: &SharedCursors, seed: u64) -> Self {
        if let Some(walk) = each_once(&self.writes, &cursors.writes, seed) {
            self.writes = walk;
        }
        self
    }

    /// Visits each block of a uniformly random pattern once before it visits one again, together
    /// with all patterns that share the cursors and the seed. Reads and writes share one lap.
    pub fn with_each_block_once(mut self, cursors: &SharedCursors, seed: u64) -> Self {
        if let (Some(reads), Some(writes)) = (
            each_once(&self.reads, &cursors.reads, seed),
            each_once(&self.writes, &cursors.reads, seed),
        ) {
            (self.reads, self.writes) = (reads, writes);
        }
        self
    }

    /// A number that changes with the first step of each lap over the extent but the first.
    #[inline(always)]
    pub fn lap(&self) -> u64 {
        match &self.map {
            Some(map) => map.lap(),
            None => self.reads.lap().wrapping_add(self.writes.lap()),
        }
    }

    /// The next step of a walk with a map, whose block may be shortened.
    #[cold]
    fn mapped_step(&mut self, reads: bool, len: u32) -> Step {
        let len = match &self.write_blocks {
            Some(blocks) if !reads => blocks.draw(&mut self.random),
            _ => len,
        };
        let random = &mut self.random;
        let (offset, len) = match &mut self.map {
            Some(map) => map.visit(len, random),
            None => (self.reads.next(len, random), len),
        };
        let direction = match reads {
            true => TransferDirection::Read,
            false => self.write_direction,
        };
        Step {
            direction,
            offset,
            len,
        }
    }

    /// The steps from here on, where they are uniform reads.
    #[inline(always)]
    pub fn plain(&self) -> Option<UniformReads> {
        match self.reads {
            OffsetWalk::Uniform {
                start,
                blocks,
                align,
            } if self.mix == Mix::Reads && self.blocks.only() != 0 => Some(UniformReads {
                len: self.blocks.only(),
                start,
                blocks,
                align,
                random: self.random.clone(),
            }),
            _ => None,
        }
    }

    /// Continues after the reads of `plain`.
    #[inline(always)]
    pub fn resume_from(&mut self, plain: &UniformReads) {
        self.random = plain.random.clone();
    }

    /// The next step. There is always one.
    #[inline(always)]
    pub fn step(&mut self) -> Step {
        let len = self.blocks.draw(&mut self.random);
        let reads = match self.mix {
            Mix::Reads => true,
            Mix::Writes => false,
            Mix::Both => self.random.bits() < self.read_below,
        };
        if self.map.is_some() {
            return self.mapped_step(reads, len);
        }
        if reads {
            Step {
                direction: TransferDirection::Read,
                offset: self.reads.next(len, &mut self.random),
                len,
            }
        } else {
            let len = match &self.write_blocks {
                Some(blocks) => blocks.draw(&mut self.random),
                None => len,
            };
            Step {
                direction: self.write_direction,
                offset: self.writes.next(len, &mut self.random),
                len,
            }
        }
    }
}

#[cfg(test)]
mod tests;
