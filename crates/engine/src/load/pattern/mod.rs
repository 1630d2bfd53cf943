//! Where the next operation goes, and what it does. Pure and reproducible; allocates only while it
//! is made.

mod each_once;
mod skewed;
mod walk;

use crate::io::Extent;
use crate::random::Random;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{Access, Workload};
use diskproof_model::stream::{STREAMS_MAX, Stream};
pub(crate) use each_once::Permutation;
use each_once::VisitMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use walk::{OffsetWalk, RandomRuns, UniformBlocks, WalkPosition, ZoneWalk};

/// One operation to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The operation on the block; the first one, where that is a chain.
    pub kind: OpKind,
    /// Offset of the block in the target.
    pub offset: u64,
    /// Length of the block in bytes.
    pub len: u32,
}

/// Positions that several threads share, one for each stream.
#[derive(Debug, Clone, Default)]
pub struct SharedCursors([Arc<AtomicU64>; STREAMS_MAX]);

/// An endless series of steps inside one extent.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// At least one.
    streams: Vec<StreamWalk>,
    /// The steps, where they are uniform reads: asked for with every batch.
    plain: Option<(u32, UniformBlocks)>,
    random: Random,
    /// The visited units, where blocks of several sizes visit each once.
    map: Option<Box<VisitMap>>,
    /// The share of the first stream that the steps so far have not made up, as a fraction of
    /// 2⁶⁴, where two streams alternate.
    turns: Option<u64>,
}

/// The steps of one stream.
#[derive(Debug, Clone)]
struct StreamWalk {
    kind: OpKind,
    /// It is the next one when 64 random bits, taken as a fraction, lie below this one, and not
    /// below that of a stream before.
    below: u64,
    walk: OffsetWalk,
    sizes: BlockSizes,
    /// Up to where [`Pattern::take_passed`] has reported.
    reported: WalkPosition,
}

/// The key of a random order that no other stream has.
pub(crate) fn order_key(seed: u64, stream: u64) -> u64 {
    Random::new(seed, !stream).bits()
}

/// A map of the units of a workload that visits each once, with blocks of several sizes. A verified
/// workload has one size.
fn visit_map(workload: &Workload, extent: Extent) -> Option<Box<VisitMap>> {
    let (smallest, largest) = block_range(workload);
    let order = &workload.shape.order;
    let is_needed = order.each_block_once
        && order.random_run.is_none()
        && order.align_bytes.is_none()
        && smallest < largest;
    if !is_needed {
        return None;
    }
    let map = VisitMap::new(extent.start, extent.length, u64::from(smallest))?;
    Some(Box::new(map))
}

/// The blocks of a uniformly random walk, each once per lap.
fn each_once(walk: &OffsetWalk, next: &Arc<AtomicU64>, seed: u64) -> Option<OffsetWalk> {
    let all = match walk {
        OffsetWalk::Runs(runs) => {
            let mut own = runs.clone();
            own.walk = each_once(&own.walk, next, seed)?;
            return Some(OffsetWalk::Runs(own));
        }
        OffsetWalk::Uniform(all) | OffsetWalk::EachOnce { all, .. } => *all,
        _ => return None,
    };
    Some(OffsetWalk::EachOnce {
        all,
        order: Permutation::new(all.blocks, seed),
        next: Arc::clone(next),
    })
}

/// Reads of one size at uniformly random, aligned offsets.
#[derive(Debug, Clone)]
pub struct UniformReads {
    len: u32,
    blocks: UniformBlocks,
    random: Random,
}

impl UniformReads {
    /// The offset of the next read.
    #[inline(always)]
    pub fn offset(&mut self) -> u64 {
        self.blocks.draw(&mut self.random)
    }

    /// Length of each read in bytes.
    #[inline(always)]
    pub fn block_bytes(&self) -> u32 {
        self.len
    }
}

/// A size that is drawn where the weight that was drawn lies below its end, and not below that of
/// the size before.
#[derive(Debug, Clone, Copy)]
struct WeightedSize {
    weights_end: u64,
    bytes: u32,
}

/// One size, or sizes drawn by weight.
#[derive(Debug, Clone)]
struct BlockSizes {
    /// One entry means no draw.
    sizes: Vec<WeightedSize>,
    weights: u64,
    /// The size, where there is only one; otherwise 0.
    only: u32,
}

impl BlockSizes {
    /// The sizes of a stream of a workload.
    fn for_stream(stream: &Stream, workload: &Workload) -> Self {
        let mix = if stream.sizes.is_empty() {
            &workload.block_mix
        } else {
            &stream.sizes
        };
        let mut weights = 0;
        let mut sizes = Vec::new();
        for share in mix {
            if share.weight > 0 {
                weights += u64::from(share.weight);
                sizes.push(WeightedSize {
                    weights_end: weights,
                    bytes: share.block_bytes,
                });
            }
        }
        if sizes.is_empty() {
            sizes.push(WeightedSize {
                weights_end: 1,
                bytes: workload.block_bytes,
            });
        }
        let only = if sizes.len() == 1 { sizes[0].bytes } else { 0 };
        Self {
            sizes,
            weights,
            only,
        }
    }

    /// Smallest size.
    fn smallest(&self) -> u32 {
        self.sizes.iter().map(|size| size.bytes).min().unwrap_or(1)
    }

    /// Largest size.
    fn largest(&self) -> u32 {
        self.sizes.iter().map(|size| size.bytes).max().unwrap_or(1)
    }

    /// The next size.
    #[inline(always)]
    fn draw(&self, random: &mut Random) -> u32 {
        if self.only != 0 {
            return self.only;
        }
        let drawn = random.below(self.weights);
        self.sizes
            .iter()
            .find(|size| drawn < size.weights_end)
            .map_or(self.sizes[0].bytes, |size| size.bytes)
    }
}

/// Bytes of the shortest and of the longest step of `workload`.
pub fn block_range(workload: &Workload) -> (u32, u32) {
    let mut range: Option<(u32, u32)> = None;
    for stream in workload.streams.iter() {
        let sizes = BlockSizes::for_stream(stream, workload);
        range = match range {
            Some((smallest, largest)) => {
                Some((smallest.min(sizes.smallest()), largest.max(sizes.largest())))
            }
            None => Some((sizes.smallest(), sizes.largest())),
        };
    }
    range.unwrap_or((1, 1))
}

/// A share of the steps in permille, as a fraction of 2⁶⁴.
fn fraction(permille: u16) -> u64 {
    ((u128::from(permille.min(1000)) << 64) / 1000).min(u128::from(u64::MAX)) as u64
}

/// The size of the only stream and its blocks, where it reads blocks of one size at uniformly
/// random offsets.
fn uniform_reads(streams: &[StreamWalk]) -> Option<(u32, UniformBlocks)> {
    let [only] = streams else {
        return None;
    };
    match only.walk {
        OffsetWalk::Uniform(blocks) if only.kind == OpKind::Read && only.sizes.only != 0 => {
            Some((only.sizes.only, blocks))
        }
        _ => None,
    }
}

/// The walk of the operations of a kind, without runs.
fn plain_walk(workload: &Workload, extent: Extent, sizes: &BlockSizes, kind: OpKind) -> OffsetWalk {
    let order = &workload.shape.order;
    let access = if order.in_order.contains(&kind) {
        &Access::Sequential
    } else {
        &workload.access
    };
    if let Access::Sequential = access
        && let Some(stride) = order.zone_stride
    {
        return OffsetWalk::ZonesInTurn(Box::new(ZoneWalk::new(extent, stride)));
    }
    let align = match (access, order.align_bytes) {
        (Access::Random { .. } | Access::Zoned { .. }, Some(bytes)) => bytes,
        _ => sizes.smallest(),
    };
    OffsetWalk::new(access, extent, align, sizes.largest())
}

impl Pattern {
    /// The steps of `workload` inside `extent`, which must hold at least one block. Workers and
    /// targets have different values of `stream`.
    pub fn new(workload: &Workload, extent: Extent, seed: u64, stream: u64) -> Self {
        let countdown = Arc::default();
        let mut permille_so_far = 0;
        let mut streams = Vec::new();
        for (stream, (kind, permille)) in workload.streams.iter().zip(workload.streams.firsts()) {
            permille_so_far += permille;
            let sizes = BlockSizes::for_stream(stream, workload);
            let mut walk = plain_walk(workload, extent, &sizes, kind);
            if let Some(run) = workload.shape.order.random_run {
                let runs = RandomRuns::new(walk, run, extent, Arc::clone(&countdown));
                walk = OffsetWalk::Runs(Box::new(runs));
            }
            streams.push(StreamWalk {
                kind,
                below: fraction(permille_so_far),
                walk,
                sizes,
                reported: WalkPosition::default(),
            });
        }
        let mut turns = None;
        if workload.shape.order.even_mix && workload.streams.is_mix() {
            // The first stream begins.
            turns = Some(u64::MAX);
        }
        let pattern = Self {
            plain: uniform_reads(&streams),
            streams,
            random: Random::new(seed, stream),
            map: visit_map(workload, extent),
            turns,
        };
        if workload.shape.order.each_block_once {
            pattern.with_each_block_once(&SharedCursors::default(), order_key(seed, stream))
        } else {
            pattern
        }
    }

    /// Extents that the accesses since the last call have left in the page cache; some may be
    /// empty. `None` where that can be anywhere. The data ahead of a sequential pattern is
    /// excluded: the kernel has read it ahead and would have to read it twice.
    pub fn take_passed(&mut self) -> Option<[Extent; STREAMS_MAX]> {
        let mut passed = [Extent::default(); STREAMS_MAX];
        let mut reported = [WalkPosition::default(); STREAMS_MAX];
        for (index, stream) in self.streams.iter().enumerate() {
            reported[index] = stream.reported;
            passed[index] = stream.walk.take_passed(&mut reported[index])?;
        }
        for (stream, reported) in self.streams.iter_mut().zip(reported) {
            stream.reported = reported;
        }
        Some(passed)
    }

    /// Takes ordered steps, and those that visit each block once, from cursors that other threads
    /// use, too: together they walk as one worker would. They have the same `key`.
    pub fn with_cursors(mut self, cursors: &SharedCursors, extent: Extent, key: u64) -> Self {
        let first = &self.streams[0];
        if matches!(first.walk, OffsetWalk::EachOnce { .. }) {
            return self.with_each_block_once(cursors, key);
        }
        let len = first.sizes.only;
        let are_shared = self.streams.iter().all(|stream| {
            matches!(stream.walk, OffsetWalk::Sequential(_)) && stream.sizes.only == len
        });
        if len == 0 || !are_shared {
            return self;
        }
        let block_bytes = u64::from(len);
        for (stream, cursor) in self.streams.iter_mut().zip(&cursors.0) {
            let all = UniformBlocks {
                start: extent.start,
                blocks: extent.length / block_bytes,
                align: block_bytes,
            };
            // The walk may have skipped some blocks.
            let passed_blocks = stream.walk.passed(extent) / block_bytes;
            cursor.store(passed_blocks, Ordering::Relaxed);
            stream.walk = OffsetWalk::Shared {
                all,
                next: Arc::clone(cursor),
            };
        }
        self
    }

    /// Begins this many bytes further on, where the steps are sequential; each stream by an equal
    /// part of them.
    pub fn skip(&mut self, bytes: u64) {
        let part_bytes = bytes / self.streams.len() as u64;
        let len = u64::from(self.streams[0].sizes.largest());
        for stream in &mut self.streams {
            stream.walk.skip(part_bytes, len);
        }
    }

    /// Writes each block of a uniformly random pattern once before it writes one again, together
    /// with all patterns that share the cursors and the seed.
    pub fn with_each_write_once(mut self, cursors: &SharedCursors, seed: u64) -> Self {
        for (stream, next) in self.streams.iter_mut().zip(&cursors.0) {
            if stream.kind.changes_blocks()
                && let Some(walk) = each_once(&stream.walk, next, seed)
            {
                stream.walk = walk;
            }
        }
        self.plain = uniform_reads(&self.streams);
        self
    }

    /// Visits each block of a uniformly random pattern once before it visits one again, together
    /// with all patterns that share the cursors and the seed. All streams share one lap.
    pub fn with_each_block_once(mut self, cursors: &SharedCursors, seed: u64) -> Self {
        let walks: Option<Vec<OffsetWalk>> = self
            .streams
            .iter()
            .map(|stream| each_once(&stream.walk, &cursors.0[0], seed))
            .collect();
        if let Some(walks) = walks {
            for (stream, walk) in self.streams.iter_mut().zip(walks) {
                stream.walk = walk;
            }
        }
        self.plain = uniform_reads(&self.streams);
        self
    }

    /// A number that changes with the first step of each lap over the extent but the first.
    #[inline(always)]
    pub fn lap(&self) -> u64 {
        match &self.map {
            Some(map) => map.lap,
            None => self
                .streams
                .iter()
                .fold(0, |laps, stream| laps.wrapping_add(stream.walk.lap())),
        }
    }

    /// The next step of a walk with a map, whose block may be shortened.
    #[cold]
    fn mapped_step(&mut self, index: usize) -> Step {
        let stream = &mut self.streams[index];
        let random = &mut self.random;
        let len = stream.sizes.draw(random);
        let (offset, len) = match &mut self.map {
            Some(map) => map.visit(len, random),
            None => (stream.walk.next(len, random), len),
        };
        Step {
            kind: stream.kind,
            offset,
            len,
        }
    }

    /// The steps from here on, where they are uniform reads.
    #[inline(always)]
    pub fn plain(&self) -> Option<UniformReads> {
        self.plain.map(|(len, blocks)| UniformReads {
            len,
            blocks,
            random: self.random.clone(),
        })
    }

    /// Continues after the reads of `plain`.
    #[inline(always)]
    pub fn resume_from(&mut self, plain: &UniformReads) {
        self.random = plain.random.clone();
    }

    /// The next step. There is always one.
    #[inline(always)]
    pub fn step(&mut self) -> Step {
        let last = self.streams.len() - 1;
        let index = if last == 0 {
            0
        } else if let Some(turns) = &mut self.turns {
            let (next, is_first) = turns.overflowing_add(self.streams[0].below);
            *turns = next;
            usize::from(!is_first)
        } else {
            let drawn = self.random.bits();
            let mut streams = self.streams[..last].iter();
            streams
                .position(|stream| drawn < stream.below)
                .unwrap_or(last)
        };
        if self.map.is_some() {
            return self.mapped_step(index);
        }
        let stream = &mut self.streams[index];
        let len = stream.sizes.draw(&mut self.random);
        Step {
            kind: stream.kind,
            offset: stream.walk.next(len, &mut self.random),
            len,
        }
    }
}

#[cfg(test)]
mod tests;
