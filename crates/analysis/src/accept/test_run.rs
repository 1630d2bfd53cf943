//! Chooses what an acceptance test moves next, for the full pass and for the probe.

use super::accepted_bytes::accepted_bytes;
use super::probe::Probe;
use super::progress::TestProgress;
use super::whole::WholePass;
use diskproof_model::accept::{AcceptMeasurement, Batch, MovedPiece, Pass, Piece, Procedure};

/// An acceptance test in progress: the caller moves the pieces of [`AcceptTest::next_batch`] and
/// passes what came of them to [`AcceptTest::add`], in turn. The test depends only on the plan's
/// salt and the results so far, so that a full pass that was stopped can go on.
#[derive(Debug, Clone)]
pub struct AcceptTest {
    /// The results so far.
    pub measured: AcceptMeasurement,
    steps: Steps,
}

/// The steps of a procedure.
#[derive(Debug, Clone)]
enum Steps {
    Whole(WholePass),
    Probe(Probe),
}

impl AcceptTest {
    /// A test that begins, or continues from earlier results.
    pub fn new(measured: AcceptMeasurement) -> Self {
        let mut measured = measured;
        let steps = match measured.plan.procedure {
            Procedure::Whole => Steps::Whole(WholePass::start(&mut measured)),
            Procedure::Probe { filler_bytes } => {
                Steps::Probe(Probe::start(&measured, filler_bytes))
            }
        };
        Self { measured, steps }
    }

    /// The pieces to move next; `None` once the test is over.
    pub fn next_batch(&mut self) -> Option<Batch> {
        match &mut self.steps {
            Steps::Whole(pass) => pass.next_batch(&mut self.measured),
            Steps::Probe(probe) => probe.next_batch(&mut self.measured),
        }
    }

    /// Adds the results of a batch. `moved` has those of its first pieces, in order: the engine may
    /// end a batch early. `batch` must be the last one that [`AcceptTest::next_batch`] returned, or
    /// its beginning.
    pub fn add(&mut self, batch: &Batch, moved: &[MovedPiece]) {
        debug_assert!(moved.len() <= batch.pieces.len(), "results of no piece");
        for (piece, result) in batch.pieces.iter().zip(moved) {
            self.measured.wall_ns += result.ns;
            self.measured.run_ns += result.ns;
            let counted = match batch.pass {
                Pass::Write => {
                    let accepted = accepted_bytes(*piece, result);
                    self.measured.writes.add(accepted.bytes, accepted.ns);
                    self.measured.add_write(*piece, &result.bad);
                    for range in &result.bad {
                        self.measured.add_failed_write(range);
                    }
                    result.clone()
                }
                Pass::Read => {
                    self.measured.reads.add(piece.length_bytes, result.ns);
                    self.measured.without_unwritten(*piece, result)
                }
            };
            match &mut self.steps {
                Steps::Whole(pass) => pass.add(&mut self.measured, batch.pass, *piece, &counted),
                Steps::Probe(probe) => probe.add(&mut self.measured, batch.pass, *piece, &counted),
            }
        }
    }

    /// The progress, for display.
    pub fn progress(&self) -> TestProgress {
        match &self.steps {
            Steps::Whole(pass) => pass.progress(&self.measured),
            Steps::Probe(probe) => probe.progress(&self.measured),
        }
    }

    /// Some of the places that were written. A run that continues a full pass reads them to see
    /// whether the disk still has the content of the test. Empty for a probe.
    pub fn written_places(&self) -> Vec<Piece> {
        match &self.steps {
            Steps::Whole(pass) => pass.written_places(&self.measured),
            Steps::Probe(_) => Vec::new(),
        }
    }
}
