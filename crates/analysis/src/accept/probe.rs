//! Chooses the pieces of a probe, which writes little, but enough to find a false capacity.
//!
//! It writes a *sample* and then *filler*, which pushes the sample out of caches, and reads both.
//! The sample consists of the *window*, which is the first part of the device as a whole, and of
//! single blocks: one in each step of the window's size ("giant steps"), a random one in each
//! *stratum*, which is a stretch of that size, and the last block. For every real size R one giant
//! step lies within one window beyond R. It overwrites part of the window, or is lost. No power of
//! two is assumed. Where a fraud is found, blocks near its *edge* find the real capacity.

use super::accepted_bytes::accepted_bytes;
use super::filler::filler_offsets;
use super::fraud::Places;
use super::progress::TestProgress;
use diskproof_model::accept::{
    AcceptMeasurement, BLOCK_BYTES, Batch, Edge, MovedBytes, MovedPiece, Pass, Piece, PieceStates,
    salted, shuffled,
};

/// A mebibyte in bytes.
const MIB: u64 = 1 << 20;
/// A gibibyte in bytes.
const GIB: u64 = 1 << 30;
/// The window has at least this size. On a disk of 4 TB with 20 MB/s and 200 writes/s, windows of
/// 512 MiB and 1 GiB take the least time by calculation.
const WINDOW_BYTES_MIN: u64 = 256 * MIB;
/// The window has at most this size. Chosen, not measured: it takes a minute at 150 MB/s.
const WINDOW_BYTES_MAX: u64 = 8 * GIB;
/// A device has at least this many windows: the window of a small one is smaller.
const WINDOWS_MIN: u64 = 16;
/// The filler takes at most this time, in seconds, so that a probe takes minutes. More filler finds
/// larger caches. Chosen, not measured.
const FILLER_S: f64 = 215.0;
/// The filler has at most this size, which it reaches in its time at 320 MB/s. Chosen, not
/// measured.
const FILLER_BYTES_MAX: u64 = 64 * GIB;
/// The filler takes at most one of this many parts of the device: a probe of a small device must
/// not write all of it.
const FILLER_PARTS: u64 = 20;
/// The speed of single writes is measured with this many random blocks: half a second at 8 ms each.
const TRIED_BLOCKS: u64 = 64;
/// The speed of long writes is measured with this many bytes: less than a second at 20 MB/s.
const TRIED_BYTES: u64 = 16 * MIB;
/// Long writes have at least this size. The test waits for each.
const WRITE_BYTES_MIN: u64 = MIB;
/// Long writes have at most this size. Chosen, not measured.
const WRITE_BYTES_MAX: u64 = 16 * MIB;
/// The window is written in this many parts, each of which has a state of its own.
const WINDOW_PARTS: u64 = 16;
/// The edge is searched in each MiB between the last right and the first wrong place, but with at
/// most this many blocks.
const EDGE_BLOCKS_MAX: u64 = 16_384;
/// A batch has at most this many pieces, so that a list of pieces stays small.
const BATCH_PIECES: usize = 4096;
/// The rate of the filler is recorded in this many cells: enough to show where it falls.
const COURSE_CELLS: u64 = 64;

// The salts keep the random numbers of a probe apart. A changed one gives other places, so that
// `sample` of a saved record would not be what its probe read.

/// Random numbers of the tried blocks begin here.
const SALT_TRIED: u64 = 1 << 60;
/// The random number of the giant steps' phase.
const SALT_PHASE: u64 = 2 << 60;
/// Random numbers of the strata begin here.
const SALT_STRATUM: u64 = 3 << 60;

/// The steps of a probe, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Writes single blocks to measure their rate.
    TryBlocks,
    /// Writes one long piece to measure its rate.
    TryBytes,
    WriteSample,
    WriteFiller,
    ReadSample,
    ReadFiller,
    /// Writes blocks near the edge; this and the following steps only where a fraud was found.
    WriteEdge,
    /// Writes the filler once more, so that no cache answers the reads of the edge.
    EmptyCache,
    ReadEdge,
    Done,
}

/// A probe while it is carried out.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    /// The size of the filler that the user requested; `None` where the speed decides.
    requested_filler_bytes: Option<u64>,
    step: Step,
    /// The pieces that the step moves.
    pieces: Vec<Piece>,
    /// The number of these that were moved.
    moved_count: usize,
    /// The writes of single blocks by which the speed is measured.
    block_writes: MovedBytes,
    /// The long write by which it is measured.
    bulk_write: MovedBytes,
    /// Blocks near the end of the real capacity, ascending; empty until a fraud is found.
    edge_blocks: Vec<Piece>,
    /// For each of these that was read, true if it came back right.
    edge_right: Vec<bool>,
}

impl Probe {
    /// A probe before its first write.
    pub(super) fn start(measured: &AcceptMeasurement, requested_filler_bytes: Option<u64>) -> Self {
        Self {
            requested_filler_bytes,
            step: Step::TryBlocks,
            pieces: tried_blocks(measured),
            moved_count: 0,
            block_writes: MovedBytes::default(),
            bulk_write: MovedBytes::default(),
            edge_blocks: Vec::new(),
            edge_right: Vec::new(),
        }
    }

    /// The pieces to move next; `None` once the probe is over. `measured` is then finished.
    pub(super) fn next_batch(&mut self, measured: &mut AcceptMeasurement) -> Option<Batch> {
        while self.moved_count == self.pieces.len() {
            if self.step == Step::Done {
                return None;
            }
            self.advance(measured);
        }
        let end = self.pieces.len().min(self.moved_count + BATCH_PIECES);
        let pass = match self.step {
            Step::ReadSample | Step::ReadFiller | Step::ReadEdge => Pass::Read,
            _ => Pass::Write,
        };
        Some(Batch {
            pass,
            pieces: self.pieces[self.moved_count..end].to_vec(),
        })
    }

    /// Ends the present step and begins the next one, which may have no pieces. The choice of the
    /// step may change sizes and edge, on which the pieces of the new step depend.
    fn advance(&mut self, measured: &mut AcceptMeasurement) {
        self.moved_count = 0;
        self.step = match self.step {
            Step::TryBlocks => Step::TryBytes,
            Step::TryBytes => {
                self.lay_out(measured);
                Step::WriteSample
            }
            Step::WriteSample => Step::WriteFiller,
            Step::WriteFiller => Step::ReadSample,
            Step::ReadSample => Step::ReadFiller,
            Step::ReadFiller => {
                self.edge_blocks = blocks_near_edge(measured);
                if self.edge_blocks.is_empty() {
                    Step::Done
                } else {
                    Step::WriteEdge
                }
            }
            Step::WriteEdge => Step::EmptyCache,
            Step::EmptyCache => Step::ReadEdge,
            Step::ReadEdge => {
                measured.edge = edge_of_blocks(&self.edge_blocks, &self.edge_right);
                Step::Done
            }
            Step::Done => Step::Done,
        };
        self.pieces = match self.step {
            Step::TryBlocks | Step::Done => Vec::new(),
            Step::TryBytes => vec![tried_write(measured)],
            Step::WriteSample => sample(measured),
            Step::WriteFiller => filler_pieces(measured),
            Step::ReadSample => in_reading_order(sample(measured), measured),
            Step::ReadFiller => filler_places(measured),
            Step::WriteEdge | Step::ReadEdge => self.edge_blocks.clone(),
            Step::EmptyCache => filler_outside(&self.edge_blocks, measured),
        };
        if self.step == Step::Done {
            measured.finished = true;
        }
    }

    /// Chooses the sizes of window and filler, now that the speed of the device is known.
    fn lay_out(&self, measured: &mut AcceptMeasurement) {
        let plan = measured.plan;
        let size_bytes = plan.size_bytes;
        // A device whose writes all failed has no rate: the slowest one gives the least filler.
        let rate = self.bulk_write.bytes_per_second().unwrap_or(1.0);
        let block_rate = self.block_writes.bytes_per_second().unwrap_or(1.0);
        let blocks_per_s = block_rate / BLOCK_BYTES as f64;
        measured.chunk_bytes = best_window_bytes(size_bytes, rate, blocks_per_s.max(1.0));
        measured.filler_bytes = best_filler_bytes(size_bytes, rate, self.requested_filler_bytes);
        measured.filler_start_bytes = filler_start_bytes(size_bytes, measured.filler_bytes);
        measured.states = PieceStates::pending(sample(measured).len());
        let cells = (measured.filler_bytes / WRITE_BYTES_MIN).clamp(1, COURSE_CELLS);
        measured.write_course = vec![MovedBytes::default(); cells as usize];
    }

    /// Adds the result of the next piece of the present step. Results must come in the order of
    /// [`Probe::next_batch`].
    pub(super) fn add(
        &mut self,
        measured: &mut AcceptMeasurement,
        pass: Pass,
        piece: Piece,
        moved: &MovedPiece,
    ) {
        debug_assert_eq!(self.pieces.get(self.moved_count), Some(&piece));
        match pass {
            Pass::Write => measured.written += 1,
            Pass::Read => measured.read += 1,
        }
        let MovedBytes { bytes, ns } = accepted_bytes(piece, moved);
        match self.step {
            Step::TryBlocks => self.block_writes.add(bytes, ns),
            Step::TryBytes => self.bulk_write.add(bytes, ns),
            Step::WriteFiller => {
                let cells = measured.write_course.len();
                let cell = self.moved_count * cells / self.pieces.len().max(1);
                measured.write_course[cell].add(bytes, ns);
            }
            Step::ReadSample => {
                let number = (piece.order - first_order()) as usize;
                measured.states.0[number] = moved.bad_bytes.state(piece.length_bytes);
                measured.add_bad(moved);
            }
            Step::ReadFiller => {
                measured.filler.push(moved.bad.is_empty());
                measured.add_bad(moved);
            }
            Step::ReadEdge => self.edge_right.push(moved.bad.is_empty()),
            Step::WriteSample | Step::WriteEdge | Step::EmptyCache | Step::Done => {}
        }
        self.moved_count += 1;
    }

    pub(super) fn progress(&self, measured: &AcceptMeasurement) -> TestProgress {
        // The share of the whole probe at the start and at the end of each step, as a guess.
        let (step, from, to) = match self.step {
            Step::TryBlocks | Step::TryBytes => ("measuring the speed", 0.0, 0.02),
            Step::WriteSample => ("writing the sample", 0.02, 0.25),
            Step::WriteFiller => ("writing filler", 0.25, 0.6),
            Step::ReadSample => ("reading the sample", 0.6, 0.9),
            Step::ReadFiller => ("reading filler", 0.9, 1.0),
            Step::WriteEdge | Step::EmptyCache | Step::ReadEdge | Step::Done => {
                ("looking for the end", 1.0, 1.0)
            }
        };
        let done = self.moved_count as f64 / self.pieces.len().max(1) as f64;
        let mut left_bytes = 0;
        for piece in &self.pieces[self.moved_count..] {
            left_bytes += piece.length_bytes;
        }
        if self.step == Step::WriteSample {
            left_bytes += measured.filler_bytes;
        }
        TestProgress {
            step,
            share: from + (to - from) * done,
            left_bytes,
        }
    }
}

/// The size of the window, which the measurement keeps as its chunk.
fn window_bytes(measured: &AcceptMeasurement) -> u64 {
    measured.chunk_bytes
}

/// The size at which writing the whole window and writing the giant steps take equally long,
/// rounded to a power of two. `rate` is that of long writes in bytes per second.
fn best_window_bytes(size_bytes: u64, rate: f64, blocks_per_s: f64) -> u64 {
    let best_bytes = (size_bytes as f64 * rate / blocks_per_s).sqrt();
    let rounded_bytes = 2f64.powf(best_bytes.max(1.0).log2().round()) as u64;
    let largest_bytes = (size_bytes / WINDOWS_MIN / WRITE_BYTES_MIN).max(1) * WRITE_BYTES_MIN;
    rounded_bytes
        .clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX)
        .min(largest_bytes)
}

/// The size of the filler at this rate of long writes, in whole long writes.
fn best_filler_bytes(size_bytes: u64, rate: f64, requested_bytes: Option<u64>) -> u64 {
    let usual_bytes = ((FILLER_S * rate) as u64)
        .min(FILLER_BYTES_MAX)
        .min(size_bytes / FILLER_PARTS);
    let wanted_bytes = requested_bytes.unwrap_or(usual_bytes).min(size_bytes / 2);
    (wanted_bytes / WRITE_BYTES_MIN).max(1) * WRITE_BYTES_MIN
}

/// The offset of the filler, in whole MiB. It ends before the last block, so that it lies beyond
/// the real end of a fake, or shows that end.
fn filler_start_bytes(size_bytes: u64, filler_bytes: u64) -> u64 {
    (size_bytes - BLOCK_BYTES).saturating_sub(filler_bytes) / MIB * MIB
}

/// The first order number of the sample: the pieces by which the speed is measured come before it.
fn first_order() -> u64 {
    TRIED_BLOCKS + 1
}

/// The blocks at random places by which the speed of single writes is measured, before all others.
pub(super) fn tried_blocks(measured: &AcceptMeasurement) -> Vec<Piece> {
    let plan = measured.plan;
    let blocks = plan.size_bytes / BLOCK_BYTES;
    let mut pieces = Vec::new();
    for index in 0..TRIED_BLOCKS {
        pieces.push(Piece {
            offset_bytes: salted(plan.salt, SALT_TRIED + index, blocks) * BLOCK_BYTES,
            length_bytes: BLOCK_BYTES,
            order: index,
        });
    }
    pieces
}

/// The long write by which the speed is measured. It has whole blocks: direct I/O refuses others,
/// and the disk would get the blame.
fn tried_write(measured: &AcceptMeasurement) -> Piece {
    let window_bytes = measured.plan.size_bytes / WINDOWS_MIN / BLOCK_BYTES * BLOCK_BYTES;
    Piece {
        offset_bytes: 0,
        length_bytes: TRIED_BYTES.min(window_bytes),
        order: TRIED_BLOCKS,
    }
}

/// The size of one of `parts` parts of a range, in whole MiB.
fn part_bytes(length_bytes: u64, parts: u64) -> u64 {
    let whole = length_bytes / parts / WRITE_BYTES_MIN * WRITE_BYTES_MIN;
    whole.clamp(WRITE_BYTES_MIN, WRITE_BYTES_MAX)
}

/// A range in pieces of `size_bytes`, with order numbers from `first` on.
fn divided_range(start_bytes: u64, length_bytes: u64, size_bytes: u64, first: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for index in 0..length_bytes.div_ceil(size_bytes) {
        let distance_bytes = index * size_bytes;
        pieces.push(Piece {
            offset_bytes: start_bytes + distance_bytes,
            length_bytes: size_bytes.min(length_bytes - distance_bytes),
            order: first + index,
        });
    }
    pieces
}

/// The pieces of the sample: the whole window, then the single blocks in random order. Places that
/// the filler overwrites are omitted. `measured` must have the sizes that the layout chose; the
/// pieces of one record are always the same, and its states are in their order.
pub(super) fn sample(measured: &AcceptMeasurement) -> Vec<Piece> {
    let plan = measured.plan;
    let window = window_bytes(measured);
    let part_bytes = part_bytes(window, WINDOW_PARTS);
    let mut pieces = divided_range(0, window, part_bytes, first_order());
    let offsets = single_offsets(measured);
    for number in shuffled(offsets.len() as u64, plan.salt, Pass::Write) {
        pieces.push(Piece {
            offset_bytes: offsets[number as usize],
            length_bytes: BLOCK_BYTES,
            order: first_order() + pieces.len() as u64,
        });
    }
    pieces
}

/// Offsets of the giant steps, of a random block in each stratum, and of the last block.
fn single_offsets(measured: &AcceptMeasurement) -> Vec<u64> {
    let plan = measured.plan;
    let window = window_bytes(measured);
    let blocks = window / BLOCK_BYTES;
    let phase = salted(plan.salt, SALT_PHASE, blocks) * BLOCK_BYTES;
    let last = plan.size_bytes - BLOCK_BYTES;
    let filler = measured.filler_start_bytes..measured.filler_start_bytes + measured.filler_bytes;
    let mut offsets = vec![last];
    for stratum in 1..plan.size_bytes.div_ceil(window) {
        let start = stratum * window;
        let random = salted(plan.salt, SALT_STRATUM + stratum, blocks) * BLOCK_BYTES;
        for offset in [start + phase, start + random] {
            if offset < last && !filler.contains(&offset) {
                offsets.push(offset);
            }
        }
    }
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

/// The number of random blocks of a probe, one in each stratum.
pub(super) fn random_block_count(measured: &AcceptMeasurement) -> u64 {
    let strata = measured.plan.size_bytes / window_bytes(measured).max(1);
    strata.saturating_sub(1)
}

/// The pieces of the filler, which are written after the sample.
fn filler_pieces(measured: &AcceptMeasurement) -> Vec<Piece> {
    let first = first_order() + sample(measured).len() as u64;
    let size_bytes = part_bytes(measured.filler_bytes, COURSE_CELLS);
    divided_range(
        measured.filler_start_bytes,
        measured.filler_bytes,
        size_bytes,
        first,
    )
}

/// The filler without the pieces that would overwrite these blocks.
fn filler_outside(blocks: &[Piece], measured: &AcceptMeasurement) -> Vec<Piece> {
    let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
        return Vec::new();
    };
    let mut pieces = filler_pieces(measured);
    pieces.retain(|piece| {
        piece.offset_bytes > last.offset_bytes
            || piece.offset_bytes + piece.length_bytes <= first.offset_bytes
    });
    pieces
}

/// The window in order, then the single blocks in a random order other than that of the writes.
fn in_reading_order(pieces: Vec<Piece>, measured: &AcceptMeasurement) -> Vec<Piece> {
    let window_bytes = window_bytes(measured);
    let part_bytes = part_bytes(window_bytes, WINDOW_PARTS);
    let window_pieces = window_bytes.div_ceil(part_bytes) as usize;
    let (window, singles) = pieces.split_at(window_pieces);
    let mut ordered = window.to_vec();
    for number in shuffled(singles.len() as u64, measured.plan.salt, Pass::Read) {
        ordered.push(singles[number as usize]);
    }
    ordered
}

/// The blocks of the filler that are read.
fn filler_places(measured: &AcceptMeasurement) -> Vec<Piece> {
    let pieces = filler_pieces(measured);
    let size_bytes = part_bytes(measured.filler_bytes, COURSE_CELLS);
    let mut places = Vec::new();
    for offset_bytes in filler_offsets(measured) {
        let within_bytes = offset_bytes - measured.filler_start_bytes;
        let piece = pieces[(within_bytes / size_bytes) as usize];
        places.push(Piece {
            offset_bytes,
            length_bytes: BLOCK_BYTES,
            order: piece.order,
        });
    }
    places
}

/// Blocks between the last right and the first wrong place; empty where no fraud ends between them.
fn blocks_near_edge(measured: &AcceptMeasurement) -> Vec<Piece> {
    let places = Places {
        measured,
        pieces: sample(measured),
    };
    let Some(fraud) = places.fraud() else {
        return Vec::new();
    };
    let Some(lowest) = measured.bad.first().map(|range| range.offset_bytes) else {
        return Vec::new();
    };
    // A wrap that reaches the beginning has its size from the addresses.
    if fraud.first_bad_bytes != lowest {
        return Vec::new();
    }
    let right_to = places.right_to_bytes(lowest);
    let step = MIB.max((lowest - right_to).div_ceil(EDGE_BLOCKS_MAX) / BLOCK_BYTES * BLOCK_BYTES);
    let first = measured.written + first_order();
    let mut blocks = Vec::new();
    let mut offset_bytes = right_to;
    while offset_bytes < lowest {
        blocks.push(Piece {
            offset_bytes,
            length_bytes: BLOCK_BYTES,
            order: first + blocks.len() as u64,
        });
        offset_bytes += step;
    }
    blocks.push(Piece {
        offset_bytes: lowest,
        length_bytes: BLOCK_BYTES,
        order: first + blocks.len() as u64,
    });
    blocks
}

/// The border between the right blocks and the first wrong one; `None` where all are right. `right`
/// has the answers of the first of these blocks, in their order.
fn edge_of_blocks(blocks: &[Piece], right: &[bool]) -> Option<Edge> {
    let first_bad = right.iter().position(|is_right| !is_right)?;
    let bad_from_bytes = blocks.get(first_bad)?.offset_bytes;
    let right_to_bytes = match first_bad.checked_sub(1) {
        Some(last_right) => blocks[last_right].offset_bytes + BLOCK_BYTES,
        None => bad_from_bytes,
    };
    Some(Edge {
        right_to_bytes,
        bad_from_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_BYTES, GIB, MIB, best_filler_bytes, best_window_bytes, edge_of_blocks};
    use diskproof_model::accept::{Edge, Piece};

    const TB: u64 = 1_000_000_000_000;

    /// √(4 TB × 20 MB/s ÷ 200/s) is 632 MB, which lies nearest to 512 MiB.
    #[test]
    fn window_takes_as_long_as_the_giant_steps() {
        assert_eq!(best_window_bytes(4 * TB, 20e6, 200.0), 512 * MIB);
        assert_eq!(best_window_bytes(4 * TB, 20e6, 1e6), 256 * MIB);
        assert_eq!(best_window_bytes(20 * TB, 500e6, 1.0), 8 * GIB);
        assert_eq!(best_window_bytes(256 * MIB, 20e6, 200.0), 16 * MIB);
    }

    #[test]
    fn filler_takes_its_time_a_twentieth_or_what_was_requested() {
        assert_eq!(best_filler_bytes(4 * TB, 20e6, None), 4100 * MIB);
        assert_eq!(best_filler_bytes(4 * TB, 1e9, None), 64 * GIB);
        assert_eq!(best_filler_bytes(20 * GIB, 20e6, None), GIB);
        assert_eq!(best_filler_bytes(20 * GIB, 20e6, Some(3 * GIB)), 3 * GIB);
        assert_eq!(best_filler_bytes(20 * GIB, 20e6, Some(30 * GIB)), 10 * GIB);
        assert_eq!(best_filler_bytes(4 * TB, 1.0, None), MIB);
    }

    #[test]
    fn edge_lies_between_the_last_right_and_the_first_wrong_block() {
        let blocks = [0, MIB, 2 * MIB].map(|offset_bytes| Piece {
            offset_bytes,
            length_bytes: BLOCK_BYTES,
            order: 0,
        });
        let last_is_wrong = Edge {
            right_to_bytes: MIB + BLOCK_BYTES,
            bad_from_bytes: 2 * MIB,
        };
        let first_is_wrong = Edge {
            right_to_bytes: 0,
            bad_from_bytes: 0,
        };
        assert_eq!(
            edge_of_blocks(&blocks, &[true, true, false]),
            Some(last_is_wrong)
        );
        assert_eq!(
            edge_of_blocks(&blocks, &[false, true, false]),
            Some(first_is_wrong)
        );
        assert_eq!(edge_of_blocks(&blocks, &[true, true, true]), None);
    }
}
