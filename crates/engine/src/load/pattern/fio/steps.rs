//! The steps of a worker: the requests of all laps.

use super::walk::{FioAction, FioWalk};
use crate::io::Extent;
use crate::load::pattern::step::Step;
use diskproof_model::plan::SyncCall;
use diskproof_model::shape::FioOrder;

/// The steps of a job, lap after lap.
#[derive(Debug, Clone)]
pub(crate) struct FioSteps {
    walk: FioWalk,
    /// An action that was looked at, and not made yet.
    next: Option<FioAction>,
}

impl FioSteps {
    /// The steps of a worker in an extent; `seed` is that of the run.
    pub(crate) fn new(order: FioOrder, extent: Extent, seed: u64) -> Self {
        Self {
            walk: FioWalk::new(order, extent.start, seed as u32),
            next: None,
        }
    }

    /// Laps that are over.
    pub(crate) fn laps(&self) -> u64 {
        self.walk.laps()
    }

    /// True if there are syncs between the steps.
    pub(crate) fn has_syncs(&self) -> bool {
        self.walk.has_syncs()
    }

    /// The sync that comes before the next step, if one does. It counts as made.
    pub(crate) fn take_sync(&mut self) -> Option<SyncCall> {
        let next = self.look();
        if let FioAction::Sync(call) = next {
            self.next = None;
            return Some(call);
        }
        None
    }

    /// The next step. Syncs before it are left out.
    pub(crate) fn step(&mut self) -> Step {
        loop {
            let action = self.look();
            self.next = None;
            if let FioAction::Request(step) = action {
                return step;
            }
        }
    }

    /// The next action that is no end of a lap.
    fn look(&mut self) -> FioAction {
        if let Some(next) = self.next {
            return next;
        }
        let mut next = self.walk.next();
        while next == FioAction::EndLap {
            self.walk.begin_next_lap();
            next = self.walk.next();
        }
        self.next = Some(next);
        next
    }
}
