//! Chooses the pieces of a full pass: every chunk is written in one random order, then read in
//! another one.
//!
//! A fake disk may hold its last writes in a cache, so that some chunks beyond its real end come
//! back right. Where that seems so, a *cache check* follows: more is written to empty the cache,
//! and these chunks are read again.

use super::accepted_bytes::accepted_bytes;
use super::cells::cell_of;
use super::lowest::lowest_bad;
use super::progress::TestProgress;
use diskproof_model::accept::{
    AcceptMeasurement, Batch, Edge, MovedBytes, MovedPiece, Pass, Piece, PieceState, PieceStates,
    PositionCell, chunks, shuffled,
};

/// The device has at most this many cells for which rates are recorded. More show smaller slow
/// parts, and make the record larger.
const CELLS_MAX: u64 = 1024;
/// The rate of the writes over time is recorded in at most this many cells, for the same reason.
const COURSE_CELLS_MAX: usize = 256;
/// The number of chunks of one batch, so that a list of chunks stays small. The engine stops
/// earlier where its time is over.
const BATCH_PIECES: usize = 512;
/// A run that continues a test reads at most this many written places before it goes on: a second
/// of seeks on a rotating disk.
const PLACES_MAX: u64 = 64;
/// The bytes that it reads at each of them.
const PLACE_BYTES: u64 = 4096;
/// No cache is assumed to hold more than one of this many parts of the claimed size, or of the
/// places beyond the real end: a disk that keeps more is judged by what it keeps.
pub(super) const CACHE_PARTS_MIN: u64 = 4;
/// A cache is emptied by writing twice what it seems to hold, and this many bytes more. Chosen, not
/// measured.
const EMPTYING_BYTES: u64 = 64 << 20;

/// A full pass while it is carried out.
#[derive(Debug, Clone)]
pub(super) struct WholePass {
    /// All chunks in the order of the writes.
    pieces: Vec<Piece>,
    /// Indices of the pieces in the order of the reads.
    read_order: Vec<u64>,
    cache_check: CacheCheck,
}

/// The check for a cache after the reads.
#[derive(Debug, Clone)]
enum CacheCheck {
    /// The reads are not complete, so that it is not known whether a check is needed.
    NotDecided,
    /// The check is carried out.
    Running {
        /// Pieces that are still to be written; first, because they push others out of the cache.
        emptying: Vec<Piece>,
        /// Pieces that are still to be read again.
        rereads: Vec<Piece>,
        /// The lowest address that came back wrong, in the pass or in this check.
        lowest_bad_bytes: u64,
    },
    /// The check is over, or was not needed.
    Done,
}

impl WholePass {
    /// Begins the pass, or continues it from earlier results.
    pub(super) fn start(measured: &mut AcceptMeasurement) -> Self {
        let plan = measured.plan;
        let pieces = chunks(plan.size_bytes, measured.chunk_bytes, plan.salt);
        let count = pieces.len();
        if measured.states.0.len() != count {
            measured.states = PieceStates::pending(count);
            let cells = (count as u64).min(CELLS_MAX) as usize;
            measured.cells = vec![PositionCell::default(); cells];
            measured.write_course = vec![MovedBytes::default(); COURSE_CELLS_MAX.min(count)];
        }
        Self {
            read_order: shuffled(count as u64, plan.salt, Pass::Read),
            pieces,
            cache_check: CacheCheck::NotDecided,
        }
    }

    /// The pieces to move next: writes, then reads, then those of the cache check. `None` once the
    /// pass is over; `measured` is then finished.
    pub(super) fn next_batch(&mut self, measured: &mut AcceptMeasurement) -> Option<Batch> {
        if measured.finished {
            return None;
        }
        let written = measured.written as usize;
        if written < self.pieces.len() {
            let end = self.pieces.len().min(written + BATCH_PIECES);
            return Some(Batch {
                pass: Pass::Write,
                pieces: self.pieces[written..end].to_vec(),
            });
        }
        let read = measured.read as usize;
        if read < self.pieces.len() {
            let end = self.pieces.len().min(read + BATCH_PIECES);
            let pieces = self.read_order[read..end]
                .iter()
                .map(|index| self.pieces[*index as usize])
                .collect();
            return Some(Batch {
                pass: Pass::Read,
                pieces,
            });
        }
        self.next_of_cache_check(measured)
    }

    /// The next pieces of the cache check. When it is over, the edge is known and the test
    /// finished.
    fn next_of_cache_check(&mut self, measured: &mut AcceptMeasurement) -> Option<Batch> {
        if let CacheCheck::NotDecided = self.cache_check {
            self.cache_check = self.plan_cache_check(measured);
        }
        if let CacheCheck::Running {
            emptying,
            rereads,
            lowest_bad_bytes,
        } = &self.cache_check
        {
            if !emptying.is_empty() {
                return Some(Batch {
                    pass: Pass::Write,
                    pieces: emptying.clone(),
                });
            }
            if !rereads.is_empty() {
                return Some(Batch {
                    pass: Pass::Read,
                    pieces: rereads.clone(),
                });
            }
            measured.edge = Some(Edge {
                right_to_bytes: *lowest_bad_bytes,
                bad_from_bytes: *lowest_bad_bytes,
            });
        }
        self.cache_check = CacheCheck::Done;
        measured.finished = true;
        None
    }

    /// Plans the cache check once everything was read. It is needed only if chunks beyond the
    /// lowest bad address came back right, and these are so few that a cache may have held them.
    fn plan_cache_check(&self, measured: &AcceptMeasurement) -> CacheCheck {
        let Some(lowest_bad) = lowest_bad(&measured.bad) else {
            return CacheCheck::Done;
        };
        let lowest_bad_bytes = lowest_bad.start_bytes;
        let mut lost = Vec::new();
        let mut rereads = Vec::new();
        let mut reread_bytes = 0;
        for (piece, state) in self.pieces.iter().zip(&measured.states.0) {
            if piece.offset_bytes < lowest_bad_bytes {
                continue;
            }
            match state {
                PieceState::Right => {
                    rereads.push(*piece);
                    reread_bytes += piece.length_bytes;
                }
                PieceState::Lost => lost.push(*piece),
                _ => {}
            }
        }
        if rereads.is_empty() || reread_bytes > measured.plan.size_bytes / CACHE_PARTS_MIN {
            return CacheCheck::Done;
        }
        let mut emptying = Vec::new();
        let mut emptying_bytes = 0;
        for piece in lost {
            if emptying_bytes >= 2 * reread_bytes + EMPTYING_BYTES {
                break;
            }
            emptying_bytes += piece.length_bytes;
            emptying.push(Piece {
                order: (self.pieces.len() + emptying.len()) as u64,
                ..piece
            });
        }
        if emptying.is_empty() {
            return CacheCheck::Done;
        }
        CacheCheck::Running {
            emptying,
            rereads,
            lowest_bad_bytes,
        }
    }

    /// Adds the result of a piece. A piece after the last one of the pass is one of the cache
    /// check.
    pub(super) fn add(
        &mut self,
        measured: &mut AcceptMeasurement,
        pass: Pass,
        piece: Piece,
        moved: &MovedPiece,
    ) {
        let count = self.pieces.len() as u64;
        match pass {
            Pass::Write if measured.written < count => {
                let cells = measured.write_course.len() as u64;
                let course =
                    &mut measured.write_course[(measured.written * cells / count) as usize];
                let accepted = accepted_bytes(piece, moved);
                course.add(accepted.bytes, accepted.ns);
                let cell = cell_of(measured, piece);
                cell.write.add(accepted.bytes, accepted.ns);
                measured.written += 1;
            }
            Pass::Read if measured.read < count => {
                let cell = cell_of(measured, piece);
                cell.read.add(piece.length_bytes, moved.ns);
                measured.states.0[piece.order as usize] = moved.bad_bytes.state(piece.length_bytes);
                if measured.has_stop_between(piece.order, measured.read) {
                    measured.lost_over_stop_bytes += moved.bad_bytes.lost;
                }
                measured.add_bad(moved);
                measured.read += 1;
            }
            Pass::Write => {
                if let CacheCheck::Running { emptying, .. } = &mut self.cache_check {
                    // Results come in the order of the batch, which is a copy of this list.
                    debug_assert_eq!(emptying.first(), Some(&piece));
                    emptying.remove(0);
                }
            }
            Pass::Read => {
                if let CacheCheck::Running {
                    rereads,
                    lowest_bad_bytes,
                    ..
                } = &mut self.cache_check
                {
                    rereads.retain(|other| *other != piece);
                    if let Some(first) = moved.bad.first() {
                        *lowest_bad_bytes = (*lowest_bad_bytes).min(first.offset_bytes);
                    }
                }
            }
        }
    }

    /// The share and the bytes that are left count each chunk twice, and no cache check: most disks
    /// need none.
    pub(super) fn progress(&self, measured: &AcceptMeasurement) -> TestProgress {
        let count = self.pieces.len() as u64;
        let done = measured.written + measured.read;
        let step = if measured.written < count {
            "writing"
        } else if measured.read < count {
            "reading"
        } else {
            "looking for a cache"
        };
        TestProgress {
            step,
            share: done as f64 / (2 * count).max(1) as f64,
            left_bytes: (2 * count - done) * measured.chunk_bytes,
        }
    }

    /// Places that were written, spread over the writes so far.
    pub(super) fn written_places(&self, measured: &AcceptMeasurement) -> Vec<Piece> {
        let written = measured.written;
        let step = written.div_ceil(PLACES_MAX).max(1);
        let mut places = Vec::new();
        for index in (0..written).step_by(step as usize) {
            let piece = self.pieces[index as usize];
            places.push(Piece {
                length_bytes: PLACE_BYTES.min(piece.length_bytes),
                ..piece
            });
        }
        places
    }
}
