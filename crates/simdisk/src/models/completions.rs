//! Requests whose end is already known, in order of ending.

use super::timing::DiskCompletion;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The completions still to come.
#[derive(Debug, Clone, Default)]
pub struct CompletionQueue(BinaryHeap<Reverse<DiskCompletion>>);

impl CompletionQueue {
    /// Adds a request that will end.
    pub fn push(&mut self, completion: DiskCompletion) {
        self.0.push(Reverse(completion));
    }

    /// Takes the next one that ended at or before `now_ns`; `None` when there is none.
    pub fn take(&mut self, now_ns: u64) -> Option<DiskCompletion> {
        if self.next_ns()? <= now_ns {
            self.0.pop().map(|c| c.0)
        } else {
            None
        }
    }

    /// The time at which the next one ends; `None` when none is in flight.
    pub fn next_ns(&self) -> Option<u64> {
        self.0.peek().map(|c| c.0.at_ns)
    }
}
