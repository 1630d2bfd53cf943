//! Decides where the next operation goes, and what it does. Pure and reproducible; allocates only
//! while a pattern is made, and where a lap in the order of fio begins.
//!
//! [`Pattern::new`] makes a pattern of a workload in three choices, none of which depends on the
//! order of the others:
//!
//! | choice | type | alternatives |
//! |---|---|---|
//! | the stream of the next step | `StreamChoice` | the only one, by its share, in turn |
//! | the offsets of a stream | `OffsetWalk` (`walk`) | in order, at random, in runs, in zones |
//! | steps that walks cannot say | `SpecialSteps` | each unit once, as fio, of another thread |
//!
//! The caller then makes threads share what they visit: [`Pattern::with_cursors`] the threads of
//! one worker, [`Pattern::with_each_write_once`] and [`Pattern::with_each_block_once`] all that
//! verify. These replace walks, and the last call counts.
//!
//! Invariants, and the tests that hold them (`tests`): steps stay inside the extent and aligned
//! (`pattern_steps_stay_inside_and_aligned`); ordered walks cover the extent once a lap
//! (`ordered_pattern_covers_…`), mapped ones too (`mapped_…`); threads of a worker visit each block
//! once together (`threads_of_a_worker_…`); a mix keeps its shares (`pattern_mix_…`); the orders of
//! fio count as fio does (`fio_counts` in the crate `cli`).

mod block_sizes;
mod each_once;
pub mod fio;
mod skewed;
mod step;
mod unit_map;
mod walk;

use crate::io::Extent;
use crate::lock::lock;
use crate::random::Random;
use block_sizes::BlockSizes;
pub use block_sizes::block_range;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{Access, Workload};
use diskproof_model::stream::STREAMS_MAX;
pub(crate) use each_once::Permutation;
use each_once::VisitMap;
use fio::FioSteps;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
pub use step::{PatternAction, Step};
use walk::{OffsetWalk, RandomRuns, UniformBlocks, WalkPosition, ZoneWalk};

/// The positions that the threads of a worker share.
#[derive(Debug, Clone, Default)]
pub struct SharedCursors {
    /// Positions, one for each stream.
    positions: [Arc<AtomicU64>; STREAMS_MAX],
    /// The pattern from which all take their steps, where positions cannot say what is left.
    pattern: Arc<OnceLock<Arc<Mutex<Pattern>>>>,
}

impl SharedCursors {
    /// Cursors of streams that share one lap, in which so many blocks were visited before.
    pub(crate) fn after(visited_blocks: u64) -> Self {
        let cursors = Self::default();
        cursors.positions[0].store(visited_blocks, Ordering::Relaxed);
        cursors
    }
}

/// An endless series of steps inside one extent.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// At least one.
    streams: Vec<StreamWalk>,
    choice: StreamChoice,
    /// The steps, where they are uniform reads: asked for with every batch.
    plain: Option<(u32, UniformBlocks)>,
    random: Random,
    /// The source of the steps, where it is not a walk for each stream.
    special: Option<SpecialSteps>,
}

/// The choice of the stream of the next step.
#[derive(Debug, Clone, Copy)]
enum StreamChoice {
    /// There is one stream.
    Only,
    /// At random, by the shares.
    Drawn,
    /// Two streams in proportion to their shares. It holds the share of the first one that the
    /// steps so far have not made up, as a fraction of 2⁶⁴.
    InTurn(u64),
}

/// Steps that a walk for each stream cannot say.
#[derive(Debug, Clone)]
enum SpecialSteps {
    /// Blocks of several sizes visit each unit once; a block may be shortened.
    EachUnitOnce(Box<VisitMap>),
    /// In the order of fio.
    AsFio(Box<FioSteps>),
    /// A pattern that several threads use. Only these wait for each other.
    Shared(Arc<Mutex<Pattern>>),
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

/// The steps that walks cannot say, where a workload has such: the order of fio, or blocks of
/// several sizes that visit each unit once. A verified workload has one size.
fn special_steps(workload: &Workload, extent: Extent, seed: u64) -> Option<SpecialSteps> {
    let (smallest, largest) = block_range(workload);
    let order = &workload.shape.order;
    if let Some(fio) = &order.fio {
        let steps = FioSteps::new((**fio).clone(), extent, seed);
        return Some(SpecialSteps::AsFio(Box::new(steps)));
    }
    let is_needed = order.each_block_once
        && order.random_run.is_none()
        && order.align_bytes.is_none()
        && smallest < largest;
    if !is_needed {
        return None;
    }
    let map = VisitMap::new(extent.start, extent.length, u64::from(smallest))?;
    Some(SpecialSteps::EachUnitOnce(Box::new(map)))
}

/// The walk over the blocks of a uniformly random walk, each once per lap; `None` of other walks.
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

/// A share of the steps in permille, as a fraction of 2⁶⁴.
fn fraction(permille: u16) -> u64 {
    ((u128::from(permille.min(1000)) << 64) / 1000).min(u128::from(u64::MAX)) as u64
}

/// The size of the only stream and its blocks, where it reads blocks of one size at uniformly
/// random offsets.
fn uniform_reads(
    streams: &[StreamWalk],
    special: &Option<SpecialSteps>,
) -> Option<(u32, UniformBlocks)> {
    let ([only], None) = (streams, special) else {
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
        let special = special_steps(workload, extent, seed);
        let pattern = Self {
            plain: uniform_reads(&streams, &special),
            choice: StreamChoice::for_workload(workload),
            streams,
            random: Random::new(seed, stream),
            special,
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
        match &self.special {
            Some(SpecialSteps::Shared(pattern)) => return lock(pattern).take_passed(),
            Some(SpecialSteps::EachUnitOnce(_) | SpecialSteps::AsFio(_)) => return None,
            None => {}
        }
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

    /// Makes the threads of a worker share their steps: together they walk as one thread would.
    /// They have the same `key`. Random offsets that may repeat are each thread's own.
    pub fn with_cursors(self, cursors: &SharedCursors, extent: Extent, key: u64) -> Self {
        if self.special.is_some() {
            return self.with_shared_steps(cursors);
        }
        let has_one_size = self.only_size().is_some();
        match &self.streams[0].walk {
            OffsetWalk::EachOnce { .. } => self.with_each_block_once(cursors, key),
            OffsetWalk::Sequential(_) if has_one_size && self.are_all_sequential() => {
                self.with_positions(cursors, extent)
            }
            OffsetWalk::Sequential(_) | OffsetWalk::ZonesInTurn(_) => {
                self.with_shared_steps(cursors)
            }
            OffsetWalk::Runs(runs) if matches!(runs.walk, OffsetWalk::EachOnce { .. }) => {
                self.with_shared_steps(cursors)
            }
            _ => self,
        }
    }

    /// The size of all steps, where they have one.
    fn only_size(&self) -> Option<u32> {
        let len = self.streams[0].sizes.only;
        if len > 0 && self.streams.iter().all(|stream| stream.sizes.only == len) {
            Some(len)
        } else {
            None
        }
    }

    fn are_all_sequential(&self) -> bool {
        self.streams
            .iter()
            .all(|stream| matches!(stream.walk, OffsetWalk::Sequential(_)))
    }

    /// Takes sequential steps of one size from positions that other threads use, too.
    fn with_positions(mut self, cursors: &SharedCursors, extent: Extent) -> Self {
        let block_bytes = u64::from(self.streams[0].sizes.only);
        for (stream, cursor) in self.streams.iter_mut().zip(&cursors.positions) {
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

    /// Takes all steps from the pattern of the first thread that comes here.
    fn with_shared_steps(mut self, cursors: &SharedCursors) -> Self {
        let shared = cursors
            .pattern
            .get_or_init(|| Arc::new(Mutex::new(self.clone())));
        self.special = Some(SpecialSteps::Shared(Arc::clone(shared)));
        self.plain = None;
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
        for (stream, next) in self.streams.iter_mut().zip(&cursors.positions) {
            if stream.kind.changes_blocks()
                && let Some(walk) = each_once(&stream.walk, next, seed)
            {
                stream.walk = walk;
            }
        }
        self.plain = uniform_reads(&self.streams, &self.special);
        self
    }

    /// Visits each block of a uniformly random pattern once before it visits one again, together
    /// with all patterns that share the cursors and the seed. All streams share one lap.
    pub fn with_each_block_once(mut self, cursors: &SharedCursors, seed: u64) -> Self {
        let walks: Option<Vec<OffsetWalk>> = self
            .streams
            .iter()
            .map(|stream| each_once(&stream.walk, &cursors.positions[0], seed))
            .collect();
        if let Some(walks) = walks {
            for (stream, walk) in self.streams.iter_mut().zip(walks) {
                stream.walk = walk;
            }
        }
        self.plain = uniform_reads(&self.streams, &self.special);
        self
    }

    /// A number that changes with the first step of each lap over the extent but the first.
    #[inline(always)]
    pub fn lap(&self) -> u64 {
        match &self.special {
            Some(special) => special.lap(),
            None => self
                .streams
                .iter()
                .fold(0, |laps, stream| laps.wrapping_add(stream.walk.lap())),
        }
    }

    /// True if syncs may come between the steps, and the steps may end: [`Pattern::next_action`]
    /// says so.
    pub(crate) fn is_in_fio_order(&self) -> bool {
        match &self.special {
            Some(SpecialSteps::AsFio(_)) => true,
            Some(SpecialSteps::Shared(pattern)) => lock(pattern).is_in_fio_order(),
            Some(SpecialSteps::EachUnitOnce(_)) | None => false,
        }
    }

    /// The next step, or the sync before it. It counts as made.
    pub fn next_action(&mut self) -> PatternAction {
        match &mut self.special {
            Some(SpecialSteps::AsFio(steps)) => steps.next_action(),
            Some(SpecialSteps::Shared(pattern)) => lock(pattern).next_action(),
            Some(SpecialSteps::EachUnitOnce(_)) | None => PatternAction::Step(self.step()),
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

    /// The next step. There is always one: where the order of fio has none left, a plain one.
    #[inline(always)]
    pub fn step(&mut self) -> Step {
        if self.special.is_some() {
            return self.special_step();
        }
        let index = self.next_stream();
        let stream = &mut self.streams[index];
        let len = stream.sizes.draw(&mut self.random);
        Step {
            kind: stream.kind,
            offset: stream.walk.next(len, &mut self.random),
            len,
        }
    }

    /// The index of the stream of the next step.
    #[inline(always)]
    fn next_stream(&mut self) -> usize {
        match &mut self.choice {
            StreamChoice::Only => 0,
            StreamChoice::InTurn(turns) => {
                let (next, is_first) = turns.overflowing_add(self.streams[0].below);
                *turns = next;
                usize::from(!is_first)
            }
            StreamChoice::Drawn => {
                let drawn = self.random.bits();
                let last = self.streams.len() - 1;
                let mut streams = self.streams[..last].iter();
                streams
                    .position(|stream| drawn < stream.below)
                    .unwrap_or(last)
            }
        }
    }

    /// The next step, where walks cannot say it.
    #[cold]
    fn special_step(&mut self) -> Step {
        match &mut self.special {
            Some(SpecialSteps::AsFio(steps)) => {
                if let Some(step) = steps.step() {
                    return step;
                }
            }
            Some(SpecialSteps::Shared(pattern)) => return lock(pattern).step(),
            Some(SpecialSteps::EachUnitOnce(_)) | None => {}
        }
        let index = self.next_stream();
        self.step_of_stream(index)
    }

    /// The next step that does anything else than this, where one of the streams does.
    #[cold]
    pub(crate) fn step_without(&mut self, kind: OpKind) -> Step {
        if let Some(SpecialSteps::Shared(pattern)) = &self.special {
            return lock(pattern).step_without(kind);
        }
        let other = self.streams.iter().position(|stream| stream.kind != kind);
        self.step_of_stream(other.unwrap_or(0))
    }

    /// The next step of a stream.
    fn step_of_stream(&mut self, index: usize) -> Step {
        let stream = &mut self.streams[index];
        let random = &mut self.random;
        let len = stream.sizes.draw(random);
        let (offset, len) = match &mut self.special {
            Some(SpecialSteps::EachUnitOnce(map)) => map.visit(len, random),
            _ => (stream.walk.next(len, random), len),
        };
        Step {
            kind: stream.kind,
            offset,
            len,
        }
    }
}

impl StreamChoice {
    fn for_workload(workload: &Workload) -> Self {
        if !workload.streams.is_mix() {
            Self::Only
        } else if workload.shape.order.even_mix {
            // The first stream begins.
            Self::InTurn(u64::MAX)
        } else {
            Self::Drawn
        }
    }
}

impl SpecialSteps {
    /// A number that changes with the first step of each lap but the first.
    fn lap(&self) -> u64 {
        match self {
            Self::EachUnitOnce(map) => map.lap,
            Self::AsFio(steps) => steps.laps(),
            Self::Shared(pattern) => lock(pattern).lap(),
        }
    }
}

#[cfg(test)]
mod tests;
