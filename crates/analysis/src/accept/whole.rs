//! The whole pass: every chunk is written in one random order, then read in another one. Where
//! the last writes seem to lie in a cache beyond the real end, that is emptied, and they are read
//! again.

use super::cells::cell_of;
use super::lowest::lowest_bad;
use super::progress::TestProgress;
use diskproof_model::accept::{
    AcceptMeasurement, Batch, Edge, MovedBytes, MovedPiece, Pass, Piece, PieceState, PieceStates,
    PositionCell, chunks, shuffled,
};

/// Parts of the device whose rates are kept.
const CELLS_MAX: u64 = 1024;
/// Parts of the writes, in their order, whose rates are kept.
const COURSE_CELLS: usize = 256;
/// Chunks of one batch: the engine stops earlier where its time is over.
const BATCH_PIECES: usize = 512;
/// Written places that a run reads before it goes on.
const PLACES: u64 = 64;
const PLACE_BYTES: u64 = 4096;
/// A cache that holds more than this part of the claimed size is none.
const CACHE_PARTS: u64 = 4;
/// What is written to empty a cache: twice what it holds, and this much.
const EMPTYING_BYTES: u64 = 64 << 20;

/// The pass.
#[derive(Debug, Clone)]
pub(super) struct WholePass {
    /// In the order of the writes.
    pieces: Vec<Piece>,
    /// Numbers of the pieces in the order of the reads.
    read_order: Vec<u64>,
    /// What is done after the pass.
    settling: Settling,
}

/// The end of a pass: a cache is emptied, and what it held is read again.
#[derive(Debug, Clone)]
enum Settling {
    /// It was not considered yet.
    Open,
    /// Pieces that are written, then pieces that are read.
    Under {
        emptying: Vec<Piece>,
        again: Vec<Piece>,
        lowest_bad_bytes: u64,
    },
    /// It is over.
    Done,
}

impl WholePass {
    pub(super) fn start(measured: &mut AcceptMeasurement) -> Self {
        let plan = measured.plan;
        let pieces = chunks(plan.size_bytes, measured.chunk_bytes, plan.salt);
        let count = pieces.len();
        if measured.states.0.len() != count {
            measured.states = PieceStates::pending(count);
            let cells = (count as u64).min(CELLS_MAX) as usize;
            measured.cells = vec![PositionCell::default(); cells];
            measured.write_course = vec![MovedBytes::default(); COURSE_CELLS.min(count)];
        }
        Self {
            read_order: shuffled(count as u64, plan.salt, Pass::Read),
            pieces,
            settling: Settling::Open,
        }
    }

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
            let numbers = &self.read_order[read..end];
            let pieces = numbers
                .iter()
                .map(|number| self.pieces[*number as usize])
                .collect();
            return Some(Batch {
                pass: Pass::Read,
                pieces,
            });
        }
        self.next_settling(measured)
    }

    fn next_settling(&mut self, measured: &mut AcceptMeasurement) -> Option<Batch> {
        if let Settling::Open = self.settling {
            self.settling = self.settling_of(measured);
        }
        if let Settling::Under {
            emptying, again, ..
        } = &self.settling
        {
            if !emptying.is_empty() {
                return Some(Batch {
                    pass: Pass::Write,
                    pieces: emptying.clone(),
                });
            }
            if !again.is_empty() {
                return Some(Batch {
                    pass: Pass::Read,
                    pieces: again.clone(),
                });
            }
        }
        if let Settling::Under {
            lowest_bad_bytes, ..
        } = self.settling
        {
            measured.edge = Some(Edge {
                right_to_bytes: lowest_bad_bytes,
                bad_from_bytes: lowest_bad_bytes,
            });
        }
        self.settling = Settling::Done;
        measured.finished = true;
        None
    }

    /// What is left to do once everything was read: nothing, unless chunks beyond the first lost
    /// one came back, and those are few.
    fn settling_of(&self, measured: &AcceptMeasurement) -> Settling {
        let Some(lowest_bad) = lowest_bad(&measured.bad) else {
            return Settling::Done;
        };
        let lowest_bad_bytes = lowest_bad.start_bytes;
        let mut lost = Vec::new();
        let mut again = Vec::new();
        let mut again_bytes = 0;
        for (piece, state) in self.pieces.iter().zip(&measured.states.0) {
            if piece.offset_bytes < lowest_bad_bytes {
                continue;
            }
            match state {
                PieceState::Right => {
                    again.push(*piece);
                    again_bytes += piece.length_bytes;
                }
                PieceState::Lost => lost.push(*piece),
                _ => {}
            }
        }
        if again.is_empty() || again_bytes > measured.plan.size_bytes / CACHE_PARTS {
            return Settling::Done;
        }
        let mut emptying = Vec::new();
        let mut emptying_bytes = 0;
        for piece in lost {
            if emptying_bytes >= 2 * again_bytes + EMPTYING_BYTES {
                break;
            }
            emptying_bytes += piece.length_bytes;
            emptying.push(Piece {
                order: (self.pieces.len() + emptying.len()) as u64,
                ..piece
            });
        }
        if emptying.is_empty() {
            return Settling::Done;
        }
        Settling::Under {
            emptying,
            again,
            lowest_bad_bytes,
        }
    }

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
                course.add(piece.length_bytes, moved.ns);
                let cell = cell_of(measured, piece);
                cell.write.add(piece.length_bytes, moved.ns);
                measured.written += 1;
            }
            Pass::Read if measured.read < count => {
                let cell = cell_of(measured, piece);
                cell.read.add(piece.length_bytes, moved.ns);
                measured.states.0[piece.order as usize] = moved.bad_bytes.state(piece.length_bytes);
                measured.add_bad(moved);
                measured.read += 1;
            }
            Pass::Write => {
                if let Settling::Under { emptying, .. } = &mut self.settling {
                    emptying.remove(0);
                }
            }
            Pass::Read => {
                if let Settling::Under {
                    again,
                    lowest_bad_bytes,
                    ..
                } = &mut self.settling
                {
                    again.retain(|other| *other != piece);
                    if let Some(first) = moved.bad.first() {
                        *lowest_bad_bytes = (*lowest_bad_bytes).min(first.offset_bytes);
                    }
                }
            }
        }
    }

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

    pub(super) fn written_places(&self, measured: &AcceptMeasurement) -> Vec<Piece> {
        let written = measured.written;
        let step = written.div_ceil(PLACES).max(1);
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
