//! Makes the steps of a worker in the order of fio: the requests of all laps, until one has none.

use super::walk::{ANYWHERE, FioAction, FioWalk};
use crate::io::Extent;
use crate::load::pattern::step::{PatternAction, Step};
use diskproof_model::shape::FioOrder;

/// After so many laps without a request the steps are over: no later one has any. One lap may have
/// none by chance, where the size that is drawn first does not fit.
const EMPTY_LAPS_MAX: u32 = 64;

/// The steps of a job, lap after lap.
#[derive(Debug, Clone)]
pub(crate) struct FioSteps {
    walk: FioWalk,
    /// Laps that have ended since the last request.
    empty_laps: u32,
}

impl FioSteps {
    /// The steps of a worker in an extent; `seed` is that of the run.
    pub(crate) fn new(order: FioOrder, extent: Extent, seed: u64) -> Self {
        Self {
            walk: FioWalk::new(order, extent, seed as u32),
            empty_laps: 0,
        }
    }

    /// Laps that are over.
    pub(crate) fn laps(&self) -> u64 {
        self.walk.laps()
    }

    /// The next step, or the sync before it. It counts as made.
    pub(crate) fn next_action(&mut self) -> PatternAction {
        while self.empty_laps <= EMPTY_LAPS_MAX {
            match self.walk.next() {
                FioAction::Request(step) => {
                    self.empty_laps = 0;
                    return PatternAction::Step(step);
                }
                FioAction::Sync(call) => return PatternAction::Sync(call),
                FioAction::EndLap => {
                    self.empty_laps += 1;
                    self.walk.begin_next_lap();
                }
            }
        }
        PatternAction::End
    }

    /// The next step, without the syncs before it; `None` where there is no further one.
    pub(crate) fn step(&mut self) -> Option<Step> {
        loop {
            match self.next_action() {
                PatternAction::Step(step) => return Some(step),
                PatternAction::Sync(_) => {}
                PatternAction::End => return None,
            }
        }
    }
}

/// The mean size of the first requests of a job in a run with this seed, until they have moved so
/// many bytes, or are so many; `None` where it makes none.
pub fn mean_bytes(order: &FioOrder, bytes_max: u64, ops_max: u64, seed: u64) -> Option<f64> {
    let mut steps = FioSteps::new(order.clone(), ANYWHERE, seed);
    let mut bytes = 0;
    let mut ops = 0;
    while bytes < bytes_max && ops < ops_max {
        let Some(step) = steps.step() else {
            break;
        };
        bytes += u64::from(step.len);
        ops += 1;
    }
    (ops > 0).then(|| bytes as f64 / ops as f64)
}

/// True if each lap of the job makes a request: the first one, and those that begin elsewhere.
pub fn has_requests(order: &FioOrder) -> bool {
    let files = &order.files;
    let mut has_some = begins_with_request(order.clone());
    if has_some && files.start != files.first_start {
        let mut later = order.clone();
        later.files.first_start = files.start;
        has_some = begins_with_request(later);
    }
    has_some
}

fn begins_with_request(order: FioOrder) -> bool {
    FioSteps::new(order, ANYWHERE, 1).step().is_some()
}
