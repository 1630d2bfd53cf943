//! The search for the highest rate that keeps a promise: at most this share of requests takes
//! longer than the limit, from their intended start. Cells in, the next cell out, and at the end
//! an answer with its interval, a hold at its lower end and a control above it that must fail.
//!
//! The constants were fixed by simulation of queues, stalls and credits. Bisection with a test at
//! each rate was simulated, too: its interval holds the truth in 40 of 100 runs, because late
//! requests come in clusters; that of this search in 98. On stations that they were not fixed on
//! (`rate_study`, 50 runs each) the interval holds the truth in 48 to 50, with credits of a minute
//! or two in 42, and none promises more than the truth. A credit that outlasts the search passes
//! for capacity: the answer says how much of one would not have shown.

mod answer;
mod cell;
mod coarse;
mod fit;
mod near;
mod proof;
#[cfg(any(test, feature = "studies"))]
pub mod station;
#[cfg(test)]
mod tests;

use super::decision::RandomOrder;
pub use cell::{Batch, MeasuredRate, RateCell};
use diskproof_model::rate::{LoadOutcome, RateCellKind};
use fit::{Fit, Known, fit};

/// What is promised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePromise {
    /// The share of requests that may be late: 0.01 of a p99.
    pub late_share: f64,
    /// A request is late that takes longer than this, in seconds.
    pub limit_s: f64,
}

/// How long a search takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSearchTimes {
    /// Everything, in seconds.
    pub total_s: f64,
    /// The hold at the lower end.
    pub hold_s: f64,
    /// The length of every other cell over its usual one.
    pub pace: f64,
}

/// The time for which the lengths of the cells were fixed, in seconds.
const USUAL_TOTAL_S: f64 = 420.0;
/// The hold in it.
const USUAL_HOLD_S: f64 = 60.0;

impl RateSearchTimes {
    /// The times of a search of so many seconds: a shorter one has shorter cells, and a longer one
    /// more of them.
    pub fn within(total_s: f64) -> Self {
        let pace = (total_s / USUAL_TOTAL_S).min(1.0);
        Self {
            total_s,
            hold_s: pace * USUAL_HOLD_S,
            pace,
        }
    }
}

impl Default for RateSearchTimes {
    fn default() -> Self {
        Self::within(USUAL_TOTAL_S)
    }
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum SearchStep {
    /// This is to be measured.
    Cell(RateCell),
    /// The search is over.
    Answer(RateAnswer),
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct RateAnswer {
    /// How reliable the rate is.
    pub outcome: LoadOutcome,
    /// Lower end of the 95 % interval, per second.
    pub low: f64,
    /// The rate at which exactly the promised share is late.
    pub rate: f64,
    /// Upper end.
    pub high: f64,
    /// What the target served when it was offered more than it could, per second.
    pub saturated: f64,
    /// The derivative of the logarithm of the late share by that of the rate.
    pub slope: f64,
    /// Independent late episodes that the interval rests on.
    pub episodes: f64,
    /// The control; `None` where nothing above the interval can be told from it.
    pub control: Option<RateControl>,
    /// By which share the rate changed while it was measured, where that is no chance.
    pub drift: Option<f64>,
    /// How often the target fell for good, as when a credit is used up.
    pub falls: u32,
    /// A credit of more requests than this, over a base of half the rate, would not have shown.
    pub unseen_credit: f64,
}

/// A rate above the interval, at which the promise must break.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateControl {
    /// Over the rate of the answer.
    pub factor: f64,
    /// Share of late requests there; `None` where a request waited for too long.
    pub late_share: Option<f64>,
    /// Whether the promise broke.
    pub failed: bool,
}

/// Length of a batch, in a search of the usual time.
const BATCH_S: f64 = 1.0;
/// Length of a warm-up, in a search of the usual time.
const WARMUP_S: f64 = 0.5;
/// Batch, warm-up and the longest wait last so many times the limit at least.
const LIMITS: f64 = 10.0;
/// A request waits for so long before a cell gives up.
const GIVE_UP_S: f64 = 1.0;
/// What is offered to saturate, over the best that was served.
const SATURATION_TIMES: f64 = 1.3;
/// A target that answers nothing counts as one that answers so many a second.
const SERVED_MIN: f64 = 0.001;
/// The lowest rate near the limit, over what is served when saturated.
const NEAR_RATE_MIN: f64 = 0.05;
/// Cells of a control.
const CONTROLS_MAX: usize = 3;
/// Length of one.
const CONTROL_S: f64 = 12.0;

/// Where a search stands: what it measures now.
#[derive(Debug, Clone)]
enum Phase {
    Doubling,
    Saturation {
        left: u32,
    },
    Curve {
        left: Vec<f64>,
    },
    Near,
    /// A rate below the interval was too high: once more.
    Repeated,
    /// It was too high again: the target is slower now.
    Fallen,
    Hold,
    Control {
        tried: usize,
    },
}

/// A search.
#[derive(Debug, Clone)]
pub struct RateSearch {
    promise: RatePromise,
    times: RateSearchTimes,
    order: RandomOrder,
    phase: Phase,
    /// Cells that count.
    cells: Vec<MeasuredRate>,
    /// What every cell served, for the credit that would not have shown.
    served_cells: Vec<ServedCell>,
    /// Seconds since the start of the search.
    now_s: f64,
    /// The longest time between two cells: what was in flight at the end of the one before, and
    /// what it takes to begin another.
    between_s: f64,
    /// The most that was served while the rate doubled.
    best_served: f64,
    saturated: f64,
    fit: Fit,
    /// Near cells since the target fell last, and at the last hold.
    near_cells: usize,
    near_cells_at_hold: usize,
    holds: u32,
    /// The rate of the last hold, where that did not break the promise.
    held: Option<f64>,
    falls: u32,
    control_factor: Option<f64>,
    control: Option<RateControl>,
}

/// What a cell served, for how long.
#[derive(Debug, Clone, Copy)]
struct ServedCell {
    served: f64,
    time_s: f64,
}

impl RateSearch {
    /// Nothing is measured yet.
    pub fn new(promise: RatePromise, times: RateSearchTimes, seed: u64) -> Self {
        Self {
            promise,
            times,
            order: RandomOrder::new(seed),
            phase: Phase::Doubling,
            cells: Vec::new(),
            served_cells: Vec::new(),
            now_s: 0.0,
            between_s: 0.0,
            best_served: 0.0,
            saturated: 0.0,
            fit: Fit::unknown(),
            near_cells: 0,
            near_cells_at_hold: 0,
            holds: 0,
            held: None,
            falls: 0,
            control_factor: None,
            control: None,
        }
    }

    /// What comes after the cell that was asked for last; `None` before the first.
    pub fn next(&mut self, measured: Option<MeasuredRate>) -> SearchStep {
        let Some(measured) = measured else {
            return SearchStep::Cell(self.first_cell());
        };
        self.between_s = self.between_s.max(measured.start_s - self.now_s);
        self.now_s = measured.end_s;
        self.served_cells.push(ServedCell {
            served: measured.served,
            time_s: measured.end_s - measured.start_s,
        });
        match self.phase.clone() {
            Phase::Doubling => self.after_doubling(&measured),
            Phase::Saturation { left } => self.after_saturation(measured, left),
            Phase::Curve { left } => self.after_curve(measured, left),
            Phase::Near => self.after_near(measured),
            Phase::Repeated => self.after_repeated(measured),
            Phase::Fallen => self.after_fallen(measured),
            Phase::Hold => self.after_hold(measured),
            Phase::Control { tried } => self.after_control(measured, tried),
        }
    }

    /// So many seconds in a search of the usual time.
    fn scaled_s(&self, usual_s: f64) -> f64 {
        self.times.pace * usual_s
    }

    /// A batch is at least a second of a search of the usual time, so that it holds several
    /// requests.
    fn batch_s(&self) -> f64 {
        (LIMITS * self.promise.limit_s).max(self.scaled_s(BATCH_S))
    }

    fn warmup_s(&self) -> f64 {
        (LIMITS * self.promise.limit_s).max(self.scaled_s(WARMUP_S))
    }

    /// A request that waits for so long shows that more is offered than is served.
    fn give_up_s(&self) -> f64 {
        (LIMITS * self.promise.limit_s).max(GIVE_UP_S)
    }

    /// A cell at a rate near the limit.
    fn cell_at(&self, kind: RateCellKind, rate: f64, time_s: f64) -> RateCell {
        RateCell {
            kind,
            rate,
            warmup_s: self.warmup_s(),
            time_s,
            batch_s: self.batch_s(),
            give_up_s: self.give_up_s(),
        }
    }

    fn known(&self) -> Known {
        Known {
            late_share: self.promise.late_share,
            saturated: self.saturated,
            rate: self.fit.interval.rate,
            slope: self.fit.interval.slope,
        }
    }

    fn refit(&mut self) {
        self.fit = fit(&self.cells, self.known());
    }
}
