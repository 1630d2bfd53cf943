//! The search for the highest rate that keeps a promise: at most a given share of the requests
//! takes longer than the limit, counted from their intended start. The search takes the measurement
//! of a cell and returns the next cell, and at the end an answer with an interval. It proves the
//! answer twice. A *hold* at the lower end of the interval must keep the promise, and a *control*
//! above the interval must break it.
//!
//! `stalls` bounds what rare stalls do to the promise: a search that met some for how often they
//! may come, and one that met none by those that it can have missed.
//!
//! `coarse` has the first steps, `near` those near the limit, `proof` the hold and the control,
//! `fit` the interval, `answer` the answer. `station` simulates targets for tests.
//!
//! The constants were fixed by simulation of queues, stalls and credits. In 98 of 100 simulated
//! runs the interval holds the truth. Bisection with a test at each rate was simulated, too: its
//! interval holds the truth in 40 of 100, because late requests come in clusters. The search was
//! then tried on other stations than those that fixed the constants (`rate_study`, 50 runs each).
//! The interval holds the truth in 48 to 50 of them, with credits of a minute or two in 42, and
//! none promises more than the truth, but for stalls of a second that come once in minutes: a
//! search that sees none of them promises what the target keeps between them. A credit that
//! outlasts the search looks like capacity: the answer states how large a credit would not have
//! shown.

mod answer;
mod cell;
mod coarse;
mod evidence;
mod fit;
mod near;
mod proof;
mod stalls;
#[cfg(any(test, feature = "studies"))]
pub mod station;
#[cfg(test)]
mod tests;

use super::random_order::RandomOrder;
pub use cell::{Batch, MeasuredRate, RateCell};
use diskproof_model::rate::{LoadOutcome, RateCellKind};
use evidence::FitInputs;
use fit::{Fit, fit};
pub use stalls::StallEvidence;

/// The promise that the rate has to keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePromise {
    /// The share of requests that may be late: 0.01 promises a 99th percentile.
    pub late_share: f64,
    /// Requests that take longer than this are late, in seconds.
    pub limit_s: f64,
}

/// The lengths of a search and its cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSearchTimes {
    /// The whole search, in seconds.
    pub total_s: f64,
    /// The hold at the lower end of the interval, in seconds.
    pub hold_s: f64,
    /// The length of every other cell as a multiple of its usual length; at most 1.
    pub pace: f64,
}

/// A record with more trials than this gets no answer. The time to read a record grows with the
/// square of their number, and many more would take minutes. A search of an hour has some 350.
pub(super) const TRIALS_MAX: usize = 1000;
/// The time for which the lengths of the cells were fixed, in seconds.
const USUAL_TOTAL_S: f64 = 420.0;
/// The length of the hold in a search of that time, in seconds.
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

    /// The times of a search of so many seconds with a hold of this length, which is taken from
    /// them: a long hold makes the other cells no longer. `gaps_share` of the rest is kept for the
    /// gaps between cells.
    pub fn with_hold(total_s: f64, hold_s: f64, gaps_share: f64) -> Self {
        let others_s = (total_s - hold_s).max(0.0);
        // A short search holds the same share as one of the usual time, a longer one the same time.
        let usual_s = (others_s * USUAL_TOTAL_S / (USUAL_TOTAL_S - USUAL_HOLD_S))
            .min(others_s + USUAL_HOLD_S);
        let usual = Self::within(usual_s);
        Self {
            total_s: hold_s + others_s - gaps_share * usual_s,
            hold_s,
            ..usual
        }
    }
}

impl Default for RateSearchTimes {
    fn default() -> Self {
        Self::within(USUAL_TOTAL_S)
    }
}

/// The next step of a search.
#[derive(Debug, Clone, PartialEq)]
pub enum SearchStep {
    /// Measure this cell next.
    Cell(RateCell),
    /// The search is over, with this answer.
    Answer(RateAnswer),
}

/// The answer of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct RateAnswer {
    /// Proof of the rate, or the reason why it is not proven.
    pub outcome: LoadOutcome,
    /// Lower end of the 95 % interval, per second.
    pub low: f64,
    /// The rate at which exactly the promised share is late.
    pub rate: f64,
    /// Upper end of the 95 % interval, per second.
    pub high: f64,
    /// The rate that the target served when it was offered more, per second.
    pub saturated: f64,
    /// The elasticity of the late share: the derivative of its logarithm by the logarithm of the
    /// rate.
    pub slope: f64,
    /// Independent late episodes that the interval rests on.
    pub episodes: f64,
    /// The control; `None` where no control was measured.
    pub control: Option<RateControl>,
    /// The change of the rate during the search, as a share; `None` where chance explains it.
    pub drift: Option<f64>,
    /// The number of times that the target became slower for good, as when a credit is used up.
    pub falls: u32,
    /// A credit of more requests than this, over a base of half the rate, would not have shown.
    pub unseen_credit: f64,
    /// The stalls that were met, and the time in which they would have shown.
    pub stalls: StallEvidence,
    /// Stalls of this length, in seconds, that come as rarely as they can be missed would break the
    /// promise at the lower end; `None` where stalls were met.
    pub unseen_stall_s: Option<f64>,
}

/// A rate above the interval, at which the promise must break.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateControl {
    /// Its rate as a multiple of the rate of the answer.
    pub factor: f64,
    /// The share of late requests; `None` where a request waited for too long.
    pub late_share: Option<f64>,
    /// True if the promise broke, as it should.
    pub failed: bool,
}

/// The length of a batch in a search of the usual time, in seconds.
const BATCH_S: f64 = 1.0;
/// The length of a warm-up in a search of the usual time, in seconds.
const WARMUP_S: f64 = 0.5;
/// Batch, warm-up and the longest wait last at least this many times the latency limit. With fewer
/// a batch would have few requests that could be late or not.
pub const LIMITS_MIN: u32 = 10;
/// A cell near the limit goes on through a stall of up to this share of its time: of a longer one
/// nothing is left to see.
const STALL_SHARE_MAX: f64 = 0.5;
/// A cell ends when a request has waited for this long, in seconds: no queue that is served lets
/// one wait so long.
const GIVE_UP_S: f64 = 1.0;
/// This multiple of the best served rate is offered to saturate the target. The doubling is exact
/// to a factor of two, and gains of less than a twentieth end it.
const SATURATION_TIMES: f64 = 1.3;
/// A target that answers nothing counts as one that answers this many requests per second.
const SERVED_MIN: f64 = 0.001;
/// The lowest rate of a near cell or a hold, as a share of the saturated rate: half of the lowest
/// one of the curve.
const NEAR_RATE_MIN: f64 = 0.05;
/// The most cells of a control: a break of 1.15 times the rate shows in 36 s from some 1,000/s on.
const CONTROLS_MAX: usize = 3;
/// The length of a cell of the control, in a search of the usual time, in seconds.
const CONTROL_S: f64 = 12.0;

/// The phase to which the cell belongs that is measured now. Phases follow each other in this
/// order, with two exceptions. `Saturation` leads back to `Doubling` if a hiccup of the target had
/// ended the doubling too early. `Repeated` follows an overloaded near cell; it and `Fallen` lead
/// back to `Near`.
#[derive(Debug, Clone)]
enum Phase {
    /// The rate doubles until it is not served.
    Doubling,
    /// More is offered than is served.
    Saturation {
        /// Cells of this phase that are left, the present one included.
        left: u32,
    },
    /// Rates up to the saturated one give a first guess.
    Curve {
        /// Rates that are left after the present one, the next one last.
        left: Vec<f64>,
    },
    /// Rates near the limit make the interval narrow.
    Near,
    /// A near cell was overloaded at a rate that should be served. It is measured once more,
    /// because that may have been a single stall.
    Repeated,
    /// It was too high again: the target became slower, and is saturated anew.
    Fallen,
    /// The lower end of the interval must keep the promise.
    Hold,
    /// A rate above the interval must break the promise.
    Control {
        /// Cells of the control before the present one.
        tried: usize,
    },
}

/// A search, driven by [`RateSearch::next`].
#[derive(Debug, Clone)]
pub struct RateSearch {
    promise: RatePromise,
    times: RateSearchTimes,
    order: RandomOrder,
    phase: Phase,
    /// Cells that the fit uses; those from before a fall are dropped.
    cells: Vec<MeasuredRate>,
    /// All cells since the target last became slower, for the stalls that they met.
    since_fall: Vec<MeasuredRate>,
    /// The served rate of every cell, for the credit that would not have shown.
    served_cells: Vec<ServedCell>,
    /// Seconds since the start of the search.
    now_s: f64,
    /// The longest gap between two cells, in seconds.
    between_s: f64,
    /// The highest rate that was served while the rate doubled.
    best_served: f64,
    /// The rate that was served when more was offered; 0 before that.
    saturated: f64,
    fit: Fit,
    /// Near cells since the target last became slower.
    near_cells: usize,
    /// The same number at the last hold.
    near_cells_at_hold: usize,
    /// Holds so far.
    holds: u32,
    /// The rate of the last hold, unless that hold broke the promise.
    held: Option<f64>,
    /// That hold alone shows that its rate keeps the promise.
    is_held_clearly: bool,
    /// The number of times that the target became slower.
    falls: u32,
    /// The rate of the controls, as a multiple of the rate of the answer.
    control_factor: Option<f64>,
    control: Option<RateControl>,
    /// A control met a stall, and was measured again.
    has_stalled_control: bool,
}

/// The rate that a cell served, and for how long.
#[derive(Debug, Clone, Copy)]
struct ServedCell {
    served: f64,
    time_s: f64,
}

impl RateSearch {
    /// A search before its first cell. `seed` decides the order of the curve.
    pub fn new(promise: RatePromise, times: RateSearchTimes, seed: u64) -> Self {
        Self {
            promise,
            times,
            order: RandomOrder::new(seed),
            phase: Phase::Doubling,
            cells: Vec::new(),
            since_fall: Vec::new(),
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
            is_held_clearly: false,
            falls: 0,
            control_factor: None,
            control: None,
            has_stalled_control: false,
        }
    }

    /// Takes the measurement of the cell that was last asked for, and returns the next step. The
    /// first call passes `None`.
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
        self.since_fall.push(measured.clone());
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

    /// Scales a length that was fixed for a search of the usual time.
    fn scaled_s(&self, usual_s: f64) -> f64 {
        self.times.pace * usual_s
    }

    /// The length of a batch, in seconds. A batch has to hold several requests.
    fn batch_s(&self) -> f64 {
        (f64::from(LIMITS_MIN) * self.promise.limit_s).max(self.scaled_s(BATCH_S))
    }

    fn warmup_s(&self) -> f64 {
        (f64::from(LIMITS_MIN) * self.promise.limit_s).max(self.scaled_s(WARMUP_S))
    }

    /// A request that waits for this many seconds in a cell of so many shows that more is offered
    /// than is served. Near the limit a cell goes on through a stall, whose late requests count,
    /// and a hold through all that its promise allows.
    fn give_up_s(&self, kind: RateCellKind, time_s: f64) -> f64 {
        let usual_s = (f64::from(LIMITS_MIN) * self.promise.limit_s).max(GIVE_UP_S);
        match kind {
            RateCellKind::Near | RateCellKind::Repeated => usual_s.max(STALL_SHARE_MAX * time_s),
            RateCellKind::Hold => usual_s.max(self.promise.late_share * time_s),
            RateCellKind::Doubling
            | RateCellKind::Saturation
            | RateCellKind::Curve
            | RateCellKind::Control => usual_s,
        }
    }

    /// A cell with the usual warm-up, batches and longest wait.
    fn cell_at(&self, kind: RateCellKind, rate: f64, time_s: f64) -> RateCell {
        RateCell {
            kind,
            rate,
            warmup_s: self.warmup_s(),
            time_s,
            batch_s: self.batch_s(),
            give_up_s: self.give_up_s(kind, time_s),
        }
    }

    fn fit_inputs(&self) -> FitInputs {
        FitInputs {
            late_share: self.promise.late_share,
            saturated: self.saturated,
            rate: self.fit.interval.rate,
            growth: self.fit.interval.growth,
        }
    }

    fn refit(&mut self) {
        self.fit = fit(&self.cells, self.fit_inputs());
    }
}
