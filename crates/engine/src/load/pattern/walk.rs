//! Walks through an extent: gives one offset after another, in order, at random, in runs or in
//! zones.

use super::each_once::Permutation;
use super::skewed::SkewedBlocks;
use crate::io::Extent;
use crate::random::Random;
use diskproof_model::plan::{Access, Distribution, Zone};
use diskproof_model::shape::{RandomRun, RunFollow, ZoneStride};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The place of an ordered walk in an extent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderedWalk {
    start: u64,
    end: u64,
    /// Offset of the next operation, or of the last one where the walk descends.
    position: u64,
    /// Laps that are over.
    lap: u64,
}

impl OrderedWalk {
    fn new(extent: Extent) -> Self {
        Self {
            start: extent.start,
            end: extent.end(),
            position: extent.start,
            lap: 0,
        }
    }

    /// The next offset, ascending.
    #[inline(always)]
    fn next(&mut self, len: u64) -> u64 {
        if self.position + len > self.end {
            (self.position, self.lap) = (self.start, self.lap + 1);
        }
        self.position += len;
        self.position - len
    }
}

/// Uniformly random, aligned offsets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UniformBlocks {
    /// The lowest offset.
    pub start: u64,
    /// The number of offsets.
    pub blocks: u64,
    /// The distance between neighbours, in bytes.
    pub align: u64,
}

impl UniformBlocks {
    /// The next offset.
    #[inline(always)]
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        self.block_offset(random.below(self.blocks))
    }

    #[inline(always)]
    fn block_offset(&self, block: u64) -> u64 {
        self.start + block * self.align
    }
}

/// A zone of an extent, for random accesses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ZoneBlocks {
    /// The upper end of the shares of this zone and those before it, as a fraction of 2⁶⁴.
    share_end: u64,
    blocks: UniformBlocks,
}

/// An order of offsets through an extent.
#[derive(Debug, Clone)]
pub(crate) enum OffsetWalk {
    /// Ascending; wraps.
    Sequential(OrderedWalk),
    /// Ascending, shared with other threads; wraps.
    Shared {
        all: UniformBlocks,
        next: Arc<AtomicU64>,
    },
    /// Ascending through parts of the extent; wraps.
    ZonesInTurn(Box<ZoneWalk>),
    /// Descending; wraps.
    Backward(OrderedWalk),
    /// Ascending in strides; each lap begins one block later.
    Stride {
        walk: OrderedWalk,
        stride: u64,
        align: u64,
    },
    /// Uniformly random.
    Uniform(UniformBlocks),
    /// Random, shared with other threads; each block once per lap.
    EachOnce {
        all: UniformBlocks,
        order: Permutation,
        next: Arc<AtomicU64>,
    },
    /// A random zone by its share, then a random block in it.
    Zones(Vec<ZoneBlocks>),
    /// A random popularity rank, scattered over the extent.
    Skewed {
        all: UniformBlocks,
        law: SkewedBlocks,
    },
    /// Several operations for each offset of another walk.
    Runs(Box<RandomRuns>),
}

impl OffsetWalk {
    /// The order of `access`. Offsets are aligned to the smallest block; the largest fits
    /// everywhere.
    pub(crate) fn new(access: &Access, extent: Extent, smallest: u32, largest: u32) -> Self {
        let (align, largest) = (u64::from(smallest), u64::from(largest));
        let blocks = blocks_in(extent.length, align, largest);
        let walk = OrderedWalk::new(extent);
        match access {
            Access::Sequential => Self::Sequential(walk),
            Access::Backward => {
                let end = extent.end() - extent.length % align;
                Self::Backward(OrderedWalk {
                    end,
                    position: end,
                    ..walk
                })
            }
            Access::Stride { stride_bytes } => {
                let stride = (*stride_bytes).max(align).next_multiple_of(align);
                Self::Stride {
                    walk,
                    stride,
                    align,
                }
            }
            Access::Random {
                distribution:
                    Distribution::HotCold {
                        access_percent,
                        size_percent,
                    },
            } => {
                let (access_percent, size_percent) = (*access_percent, *size_percent);
                let hot = Zone {
                    access_percent,
                    size_percent,
                };
                let cold = Zone {
                    access_percent: 100.0 - access_percent,
                    size_percent: 100.0 - size_percent,
                };
                Self::zones(&[hot, cold], extent, align, largest)
            }
            Access::Random { distribution } => {
                let all = UniformBlocks {
                    start: extent.start,
                    blocks,
                    align,
                };
                match SkewedBlocks::new(*distribution, blocks) {
                    Some(law) => Self::Skewed { all, law },
                    None => Self::Uniform(all),
                }
            }
            Access::Zoned { zones } => Self::zones(zones, extent, align, largest),
        }
    }

    /// Begins this many bytes further on, to whole blocks of `len`, where it is sequential; wraps.
    pub(crate) fn skip(&mut self, bytes: u64, len: u64) {
        if let Self::Sequential(walk) = self {
            let blocks = ((walk.end - walk.start) / len).max(1);
            walk.position = walk.start + bytes / len % blocks * len;
        }
    }

    /// A number that changes with the first offset of each lap but the first; constant where a
    /// walk has no laps.
    pub(crate) fn lap(&self) -> u64 {
        match self {
            Self::Sequential(walk) | Self::Backward(walk) | Self::Stride { walk, .. } => walk.lap,
            Self::Shared { all, next } | Self::EachOnce { all, next, .. } => {
                let taken = next.load(Ordering::Relaxed);
                taken.saturating_sub(1) / all.blocks.max(1)
            }
            Self::ZonesInTurn(zones) => zones.walk.lap,
            Self::Runs(runs) => runs.lap(),
            Self::Uniform(_) | Self::Zones(_) | Self::Skewed { .. } => 0,
        }
    }

    /// Bytes before the next offset of a sequential walk.
    pub(crate) fn passed(&self, extent: Extent) -> u64 {
        match self {
            Self::Sequential(walk) => walk.position.saturating_sub(extent.start),
            _ => 0,
        }
    }

    /// The walk through zones, whose sizes and shares are taken in proportion to their sums.
    fn zones(zones: &[Zone], extent: Extent, align: u64, largest: u64) -> Self {
        let access_total: f64 = zones.iter().map(|zone| zone.access_percent).sum();
        let size_total: f64 = zones.iter().map(|zone| zone.size_percent).sum();
        // A zone that is too small for a block, or at the very end, begins where a block fits.
        let last_start = extent.length.saturating_sub(largest) / align * align;
        let mut access_so_far = 0.0;
        let mut size_so_far = 0.0;
        let mut end = 0;
        let mut walks: Vec<ZoneBlocks> = Vec::new();
        for zone in zones {
            let first = end.min(last_start);
            access_so_far += zone.access_percent;
            size_so_far += zone.size_percent;
            // From 2^53 bytes on (8 PiB) a float may round up to beyond the end.
            let end_bytes = (extent.length as f64 * size_so_far / size_total) as u64;
            end = end_bytes.min(extent.length) / align * align;
            let blocks = UniformBlocks {
                start: extent.start + first,
                blocks: blocks_in(end.max(first) - first, align, largest),
                align,
            };
            let share_end = (access_so_far / access_total * u64::MAX as f64) as u64;
            walks.push(ZoneBlocks { share_end, blocks });
        }
        if let Some(last) = walks.last_mut() {
            last.share_end = u64::MAX;
        }
        Self::Zones(walks)
    }

    /// The next offset for an operation of `len` bytes.
    #[inline(always)]
    pub(crate) fn next(&mut self, len: u32, random: &mut Random) -> u64 {
        let len = u64::from(len);
        match self {
            Self::Sequential(walk) => walk.next(len),
            Self::Uniform(blocks) => blocks.draw(random),
            Self::Shared { all, next } => {
                all.block_offset(next.fetch_add(1, Ordering::Relaxed) % all.blocks)
            }
            Self::EachOnce { all, order, next } => {
                all.block_offset(order.place(next.fetch_add(1, Ordering::Relaxed)))
            }
            Self::Backward(walk) => {
                let is_over = walk.position < walk.start + len;
                walk.lap += u64::from(is_over);
                walk.position = if is_over { walk.end } else { walk.position } - len;
                walk.position
            }
            Self::Stride {
                walk,
                stride,
                align,
            } => {
                if walk.position + len > walk.end {
                    walk.lap = (walk.lap + *align) % *stride;
                    let begin = walk.start + walk.lap;
                    walk.position = if begin + len > walk.end {
                        walk.start
                    } else {
                        begin
                    };
                }
                let offset = walk.position;
                walk.position += *stride;
                offset
            }
            Self::Zones(zones) => zone_at(zones, random.bits()).draw(random),
            Self::Skewed { all, law } => all.block_offset(law.block(random)),
            Self::ZonesInTurn(walk) => walk.next(len),
            Self::Runs(runs) => runs.next(len, random),
        }
    }
}

/// The zone whose share of the fractions of 2⁶⁴ holds this one.
#[inline(always)]
fn zone_at(zones: &[ZoneBlocks], drawn: u64) -> UniformBlocks {
    for zone in zones {
        if drawn <= zone.share_end {
            return zone.blocks;
        }
    }
    // Not reached: the share of the last zone ends with the largest number.
    zones[0].blocks
}

/// The position of an ascending walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WalkPosition {
    lap: u64,
    position: u64,
}

impl OffsetWalk {
    /// The extent passed since the position `seen`, which is updated; the whole extent when a lap
    /// is over. `None` where the walk does not ascend block by block.
    pub(crate) fn take_passed(&self, seen: &mut WalkPosition) -> Option<Extent> {
        let OrderedWalk {
            start,
            end,
            position,
            lap,
        } = match self {
            Self::Sequential(walk) => *walk,
            Self::Shared { all, next } => {
                let next = next.load(Ordering::Relaxed);
                OrderedWalk {
                    start: all.start,
                    end: all.block_offset(all.blocks),
                    position: all.block_offset(next % all.blocks),
                    lap: next / all.blocks,
                }
            }
            _ => return None,
        };
        let before = std::mem::replace(seen, WalkPosition { lap, position });
        Some(if before.lap == lap {
            let from = before.position.max(start);
            Extent::new(from, position.saturating_sub(from))
        } else {
            Extent::new(start, end - start)
        })
    }
}

/// A walk whose offsets are used several times. As in fio, reads and writes share one count, and
/// each direction goes on from its own last operation.
#[derive(Debug, Clone)]
pub(crate) struct RandomRuns {
    /// Draws the offsets.
    pub walk: OffsetWalk,
    run: RandomRun,
    extent: Extent,
    /// The bytes of the last operation in this direction; empty before the first one.
    last: Extent,
    /// Operations of both directions so far.
    done: Arc<AtomicU64>,
}

impl RandomRuns {
    /// The offsets of `walk` inside `extent`, counted in `done`.
    pub(crate) fn new(
        walk: OffsetWalk,
        run: RandomRun,
        extent: Extent,
        done: Arc<AtomicU64>,
    ) -> Self {
        Self {
            walk,
            run,
            extent,
            last: Extent::new(extent.start, 0),
            done,
        }
    }

    /// As in fio, a lap ends when as many bytes have moved as the extent has.
    fn lap(&self) -> u64 {
        let operations = (self.extent.length / self.last.length.max(1)).max(1);
        self.done.load(Ordering::Relaxed).saturating_sub(1) / operations
    }

    /// The next offset for an operation of `len` bytes.
    pub(crate) fn next(&mut self, len: u64, random: &mut Random) -> u64 {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let is_drawn = done.is_multiple_of(u64::from(self.run.run_ops.max(1)));
        let mut offset = if is_drawn {
            self.walk.next(len as u32, random)
        } else {
            match self.run.follow {
                RunFollow::Identical => self.last.start,
                RunFollow::Sequential => self.last.end(),
            }
        };
        // A run that reaches the end goes on at another place.
        if offset + len > self.extent.end() {
            offset = self.walk.next(len as u32, random);
        } else {
            offset = offset.max(self.extent.start);
        }
        self.last = Extent::new(offset, len);
        offset
    }
}

/// Aligned starts in `length` bytes from which the largest block still fits; at least one.
fn blocks_in(length: u64, align: u64, largest: u64) -> u64 {
    (length.saturating_sub(largest) / align) + 1
}

/// Ascends through parts of an extent, and skips what is between them.
#[derive(Debug, Clone)]
pub(crate) struct ZoneWalk {
    walk: OrderedWalk,
    /// First byte of the current part.
    zone: u64,
    stride: ZoneStride,
}

impl ZoneWalk {
    /// From the start of `extent` on.
    pub(crate) fn new(extent: Extent, stride: ZoneStride) -> Self {
        Self {
            walk: OrderedWalk::new(extent),
            zone: extent.start,
            stride,
        }
    }

    /// The next offset. Not inlined: the other walks share the loop that calls it.
    #[inline(never)]
    pub(crate) fn next(&mut self, len: u64) -> u64 {
        if self.walk.position >= self.zone + self.stride.zone_bytes {
            self.zone += self.stride.zone_bytes + self.stride.skip_bytes;
            self.walk.position = self.zone;
        }
        if self.walk.position + len > self.walk.end {
            self.zone = self.walk.start;
        }
        self.walk.next(len)
    }
}
