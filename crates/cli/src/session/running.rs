//! The steps by which the driver measures a task.

use super::bench::Bench;
use super::sink::{EarlyEnd, Sink};

/// A task while it is measured.
pub(super) trait Running {
    /// Measures the next part: a slice, a group of workloads, a cell of a campaign, a round of
    /// INSERTs. The task itself decides which part is next.
    fn step(&mut self, bench: &mut Bench, sink: &mut Sink) -> Result<Stepped, EarlyEnd>;

    /// Removes what the task has made on the target. Called after the last step, however the task
    /// ended; returns how it ended, together with what could not be removed.
    fn end(
        self: Box<Self>,
        ended: Result<(), EarlyEnd>,
        _bench: &mut Bench,
        _sink: &mut Sink,
    ) -> Result<(), EarlyEnd> {
        ended
    }
}

/// The state of a task after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stepped {
    /// Something is left to measure.
    More,
    /// Nothing is left to measure.
    Over,
}
