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

mod cell;
mod fit;
#[cfg(any(test, feature = "studies"))]
pub mod station;
#[cfg(test)]
mod tests;

use super::decision::RandomOrder;
pub use cell::{Batch, MeasuredRate, RateCell};
use diskproof_model::rate::{LoadOutcome, RateCellKind};
use fit::{Dispersion, Evidence, Fit, Known, RateInterval, fit, over_dispersion};

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
    /// How much may be said of the rate.
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

const FIRST_RATE: f64 = 20.0;
const LAST_RATE: f64 = 300_000.0;
const DOUBLING_S: f64 = 2.0;
/// A shorter cell has so many requests at least.
const DOUBLING_REQUESTS: f64 = 40.0;
/// Standard deviations of a Poisson process by which fewer come than were to.
const DOUBLING_DEVIATIONS: f64 = 2.0;
/// A rate of which less is served is too high, if the target does not serve more than before.
const SERVED_SHARE: f64 = 0.9;
const GAIN: f64 = 1.05;
/// A target that answers nothing counts as one that answers so many a second.
const SERVED_MIN: f64 = 0.001;
const SATURATION_S: f64 = 10.0;
/// What is offered to saturate, over the best that was served.
const SATURATION_TIMES: f64 = 1.3;
/// Two cells: the first uses up short credits.
const SATURATIONS: u32 = 2;
const CURVE_POINTS: u32 = 10;
const CURVE_ROUNDS: u32 = 2;
const CURVE_S: f64 = 2.0;
/// Longer where fewer are served.
const CURVE_SLOW_RATE: f64 = 250.0;
const CURVE_SLOW_S: f64 = 4.0;
const NEAR_S: f64 = 10.0;
/// Where near cells lie, in units of the distance that the slope allows.
const NEAR_PLACES: [f64; 6] = [-0.8, 0.8, 0.0, 0.8, -0.8, 0.0];
const DISTANCE_MIN: f64 = 0.005;
const DISTANCE_MAX: f64 = 0.18;
/// Rates of near cells, over what was served when saturated.
const NEAR_RATE_MIN: f64 = 0.05;
const NEAR_RATE_MAX: f64 = 1.2;
/// Near cells before the search may end; after a hold that failed.
const NEAR_MIN: usize = 8;
const NEAR_AGAIN_MIN: usize = 4;
/// Half of the interval over the rate that is narrow enough, and the narrowest that is printed.
const NARROW: f64 = 0.015;
const HOLDS_MAX: u32 = 2;
/// A hold at less than this share of the lower end, as it is known afterwards, is repeated there.
const HELD_SHARE: f64 = 0.95;
const REPEATED_S: f64 = 5.0;
const FALLEN_S: f64 = 6.0;
const FALLEN_WARMUP_S: f64 = 2.0;
const FALLEN_GIVE_UP_S: f64 = 4.0;
const CONTROLS_MAX: usize = 3;
const CONTROL_S: f64 = 12.0;
const CONTROL_FACTORS: [f64; 5] = [1.15, 1.3, 1.5, 2.0, 3.0];
/// Standard deviations by which more requests are late than promised: in a hold, in a control.
const HOLD_DEVIATIONS: f64 = 2.33;
const CONTROL_DEVIATIONS: f64 = 1.64;
/// A hold with so many times the promised share did not hold, whatever chance explains.
const HOLD_SHARE_TIMES: f64 = 3.0;
/// Below this share of what is served when saturated, a rate may be none.
const NONE_SHARE: f64 = 0.12;
const EPISODES_MIN: f64 = 6.0;

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
    /// What was served in all cells, for the credit that would not have shown.
    all: Vec<ServedCell>,
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
    near: usize,
    near_at_hold: usize,
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
            all: Vec::new(),
            now_s: 0.0,
            between_s: 0.0,
            best_served: 0.0,
            saturated: 0.0,
            fit: Fit::unknown(),
            near: 0,
            near_at_hold: 0,
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
            return SearchStep::Cell(self.doubling(FIRST_RATE));
        };
        self.between_s = self.between_s.max(measured.start_s - self.now_s);
        self.now_s = measured.end_s;
        self.all.push(ServedCell {
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
    fn paced_s(&self, usual_s: f64) -> f64 {
        self.times.pace * usual_s
    }

    /// A batch is at least a second of a search of the usual time, so that it holds several
    /// requests.
    fn batch_s(&self) -> f64 {
        (10.0 * self.promise.limit_s).max(self.paced_s(1.0))
    }

    fn warmup_s(&self) -> f64 {
        (10.0 * self.promise.limit_s).max(self.paced_s(0.5))
    }

    /// A request that waits for so long shows that more is offered than is served.
    fn give_up_s(&self) -> f64 {
        (10.0 * self.promise.limit_s).max(1.0)
    }

    /// A cell at a rate near the limit.
    fn paced(&self, kind: RateCellKind, rate: f64, time_s: f64) -> RateCell {
        RateCell {
            kind,
            rate,
            warmup_s: self.warmup_s(),
            time_s,
            batch_s: self.batch_s(),
            give_up_s: self.give_up_s(),
        }
    }

    fn doubling(&self, rate: f64) -> RateCell {
        RateCell {
            warmup_s: 0.0,
            batch_s: self.paced_s(1.0),
            ..self.paced(
                RateCellKind::Doubling,
                rate,
                self.paced_s(DOUBLING_S)
                    .max(DOUBLING_REQUESTS / rate)
                    .min(DOUBLING_S),
            )
        }
    }

    fn after_doubling(&mut self, measured: &MeasuredRate) -> SearchStep {
        let (rate, served) = (measured.rate(), measured.served);
        // So few requests may come by chance alone.
        let by_chance = DOUBLING_DEVIATIONS * (rate / measured.cell.time_s).sqrt();
        let is_missed = served < SERVED_SHARE * rate - by_chance;
        let has_no_gain = is_missed && rate > FIRST_RATE && served < GAIN * self.best_served;
        if !measured.is_over && !has_no_gain {
            self.best_served = self.best_served.max(served);
            if rate < LAST_RATE {
                return SearchStep::Cell(self.doubling(2.0 * rate));
            }
        }
        self.phase = Phase::Saturation { left: SATURATIONS };
        let offered = rate.max(SATURATION_TIMES * self.best_served);
        SearchStep::Cell(RateCell {
            warmup_s: 0.0,
            batch_s: self.paced_s(1.0),
            give_up_s: SATURATION_S,
            ..self.paced(
                RateCellKind::Saturation,
                offered,
                self.paced_s(SATURATION_S),
            )
        })
    }

    fn after_saturation(&mut self, measured: MeasuredRate, left: u32) -> SearchStep {
        let cell = measured.cell;
        self.saturated = measured.served.max(0.1 * self.best_served).max(SERVED_MIN);
        self.cells.push(measured);
        if left > 1 {
            self.phase = Phase::Saturation { left: left - 1 };
            return SearchStep::Cell(cell);
        }
        let mut points = Vec::new();
        for _ in 0..CURVE_ROUNDS {
            let mut round: Vec<u32> = (1..=CURVE_POINTS).collect();
            self.order.shuffle(&mut round);
            for point in round {
                points.push(f64::from(point) / f64::from(CURVE_POINTS) * self.saturated);
            }
        }
        self.next_of_curve(points)
    }

    fn next_of_curve(&mut self, mut left: Vec<f64>) -> SearchStep {
        let Some(rate) = left.pop() else {
            self.fit.interval = RateInterval {
                low: 0.0,
                rate: self.first_guess(),
                high: f64::INFINITY,
                slope: 10.0,
            };
            return self.next_near();
        };
        self.phase = Phase::Curve { left };
        let time_s = if self.saturated >= CURVE_SLOW_RATE {
            self.paced_s(CURVE_S)
        } else {
            self.paced_s(CURVE_SLOW_S)
        };
        SearchStep::Cell(RateCell {
            warmup_s: self.warmup_s().min(self.paced_s(0.5)),
            batch_s: time_s / 2.0,
            ..self.paced(RateCellKind::Curve, rate, time_s)
        })
    }

    fn after_curve(&mut self, measured: MeasuredRate, left: Vec<f64>) -> SearchStep {
        self.cells.push(measured);
        self.next_of_curve(left)
    }

    /// The rate at which the curve changes most probably from few late requests to many.
    fn first_guess(&self) -> f64 {
        let mut curve: Vec<&MeasuredRate> = self
            .cells
            .iter()
            .filter(|cell| cell.cell.kind == RateCellKind::Curve)
            .collect();
        curve.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
        let few = self.promise.late_share / 3.0;
        let many = (5.0 * self.promise.late_share).min(0.5);
        let mut best = (f64::NEG_INFINITY, 0);
        for change in 0..=curve.len() {
            let mut log_likelihood = 0.0;
            for (place, cell) in curve.iter().enumerate() {
                let share = if place < change { few } else { many };
                log_likelihood += cell.late() * share.ln() - cell.requests().max(1.0) * share;
            }
            if log_likelihood > best.0 {
                best = (log_likelihood, change);
            }
        }
        match best.1 {
            0 => 0.08 * self.saturated,
            last if last == curve.len() => self.saturated,
            change => (curve[change - 1].rate() * curve[change].rate()).sqrt(),
        }
    }

    /// What the hold and the control need.
    fn reserve_s(&self) -> f64 {
        let between_s = (CONTROLS_MAX + 1) as f64 * self.between_s;
        self.times.hold_s
            + self.warmup_s()
            + CONTROLS_MAX as f64 * self.paced_s(CONTROL_S)
            + between_s
    }

    fn next_near(&mut self) -> SearchStep {
        if self.now_s + self.paced_s(NEAR_S) + self.warmup_s()
            >= self.times.total_s - self.reserve_s()
        {
            return self.hold();
        }
        self.phase = Phase::Near;
        let interval = &self.fit.interval;
        let distance = (1.0 / interval.slope).clamp(DISTANCE_MIN, DISTANCE_MAX);
        let place = NEAR_PLACES[self.near % NEAR_PLACES.len()];
        let rate = (interval.rate * (1.0 + place * distance)).clamp(
            NEAR_RATE_MIN * self.saturated,
            NEAR_RATE_MAX * self.saturated,
        );
        SearchStep::Cell(self.paced(RateCellKind::Near, rate, self.paced_s(NEAR_S)))
    }

    fn after_near(&mut self, measured: MeasuredRate) -> SearchStep {
        let is_below = measured.rate() < self.fit.interval.low;
        let (is_over, rate) = (measured.is_over, measured.rate());
        self.cells.push(measured);
        if is_over && self.near >= 2 && is_below {
            self.phase = Phase::Repeated;
            return SearchStep::Cell(self.paced(
                RateCellKind::Near,
                rate,
                self.paced_s(REPEATED_S),
            ));
        }
        self.learn_near()
    }

    /// Takes the last near cell into account. What passed at such a rate before was credit or luck.
    fn learn_near(&mut self) -> SearchStep {
        let promised = self.promise.late_share;
        if let Some(last) = self.cells.iter().rev().find(|cell| {
            cell.cell.kind == RateCellKind::Near && cell.cell.time_s > self.paced_s(REPEATED_S)
        }) {
            let (rate, is_over) = (last.rate(), last.is_over);
            let is_saturated = is_over || last.is_saturated(promised);
            if is_over {
                self.saturated = self.saturated.min(1.02 * rate);
            }
            if is_saturated {
                self.cells.retain(|cell| {
                    cell.cell.kind == RateCellKind::Saturation
                        || cell.rate() < 0.995 * rate
                        || cell.late() > promised * cell.requests()
                });
            }
        }
        self.refit();
        self.near += 1;
        let interval = &self.fit.interval;
        let least = if self.holds == 0 {
            NEAR_MIN
        } else {
            self.near_at_hold + NEAR_AGAIN_MIN
        };
        let is_narrow = (interval.high - interval.low) / 2.0 / interval.rate < NARROW;
        if self.near >= least && is_narrow {
            return self.hold();
        }
        self.next_near()
    }

    fn after_repeated(&mut self, measured: MeasuredRate) -> SearchStep {
        let is_over = measured.is_over;
        self.cells.push(measured);
        if !is_over {
            return self.learn_near();
        }
        self.falls += 1;
        self.phase = Phase::Fallen;
        SearchStep::Cell(RateCell {
            warmup_s: self.paced_s(FALLEN_WARMUP_S),
            batch_s: self.paced_s(1.0),
            give_up_s: FALLEN_GIVE_UP_S,
            ..self.paced(
                RateCellKind::Saturation,
                1.1 * self.saturated,
                self.paced_s(FALLEN_S),
            )
        })
    }

    /// The target is slower than it was: forgets all that was before.
    fn after_fallen(&mut self, measured: MeasuredRate) -> SearchStep {
        self.saturated = measured.served.max(0.01 * self.saturated).max(SERVED_MIN);
        self.cells = vec![measured];
        self.near = 0;
        self.near_at_hold = 0;
        self.fit.interval = RateInterval {
            low: 0.0,
            rate: 0.85 * self.saturated,
            high: f64::INFINITY,
            slope: 10.0,
        };
        self.next_near()
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

    fn hold(&mut self) -> SearchStep {
        self.phase = Phase::Hold;
        let rate = self.fit.interval.low.max(NEAR_RATE_MIN * self.saturated);
        SearchStep::Cell(self.paced(RateCellKind::Hold, rate, self.times.hold_s))
    }

    fn after_hold(&mut self, measured: MeasuredRate) -> SearchStep {
        let promised = self.promise.late_share;
        let is_held = !measured.is_over
            && !self.more_are_late(&[&measured], HOLD_DEVIATIONS, 1.0)
            && measured.late() <= HOLD_SHARE_TIMES * promised * measured.requests();
        self.held = if is_held { Some(measured.rate()) } else { None };
        self.holds += 1;
        self.near_at_hold = self.near;
        self.cells.push(measured);
        self.refit();
        let once_more_s =
            self.times.hold_s + self.paced_s(2.0 * NEAR_S + CONTROLS_MAX as f64 * CONTROL_S + 4.0);
        let has_time = self.now_s + once_more_s <= self.times.total_s;
        if self.holds < HOLDS_MAX && has_time {
            match self.held {
                None => return self.next_near(),
                Some(held) if held < HELD_SHARE * self.fit.interval.low => return self.hold(),
                Some(_) => {}
            }
        }
        self.begin_control()
    }

    /// Whether more requests of these cells are late than promised, by so many standard deviations.
    fn more_are_late(&self, cells: &[&MeasuredRate], deviations: f64, least_phi: f64) -> bool {
        let requests: f64 = cells.iter().map(|cell| cell.requests()).sum();
        let late: f64 = cells.iter().map(|cell| cell.late()).sum();
        let phi = over_dispersion(cells).max(least_phi);
        late - deviations * (late.max(1.0) * phi).sqrt() > requests * self.promise.late_share
    }

    /// The smallest factor above the interval that must show within the controls.
    fn begin_control(&mut self) -> SearchStep {
        let interval = self.fit.interval;
        for factor in CONTROL_FACTORS {
            let rate = factor * interval.rate;
            let expected =
                self.paced_s(CONTROL_S) * CONTROLS_MAX as f64 * rate * self.promise.late_share;
            let growth = (interval.slope * (factor - 1.0)).min(5.0).exp();
            let chance = (self.fit.dispersion.above * expected * growth).sqrt();
            let shows = rate > 1.08 * self.saturated || expected * (growth - 1.0) > 2.5 * chance;
            self.control_factor = Some(factor);
            if rate >= interval.high && shows {
                break;
            }
        }
        self.next_control(0)
    }

    fn next_control(&mut self, tried: usize) -> SearchStep {
        let factor = self.control_factor.unwrap_or(CONTROL_FACTORS[0]);
        self.phase = Phase::Control { tried };
        let rate = factor * self.fit.interval.rate;
        SearchStep::Cell(self.paced(RateCellKind::Control, rate, self.paced_s(CONTROL_S)))
    }

    fn after_control(&mut self, measured: MeasuredRate, tried: usize) -> SearchStep {
        let is_over = measured.is_over;
        self.cells.push(measured);
        let controls: Vec<&MeasuredRate> = self
            .cells
            .iter()
            .filter(|cell| cell.cell.kind == RateCellKind::Control)
            .collect();
        let failed =
            is_over || self.more_are_late(&controls, CONTROL_DEVIATIONS, self.fit.dispersion.below);
        let requests: f64 = controls.iter().map(|cell| cell.requests()).sum();
        let late: f64 = controls.iter().map(|cell| cell.late()).sum();
        self.control = Some(RateControl {
            factor: self.control_factor.unwrap_or(CONTROL_FACTORS[0]),
            late_share: if is_over {
                None
            } else {
                Some(late / requests.max(1.0))
            },
            failed,
        });
        if !failed && tried + 1 < CONTROLS_MAX {
            return self.next_control(tried + 1);
        }
        SearchStep::Answer(self.answer())
    }

    /// What the cells so far say, where the search does not go on.
    pub fn unfinished(&self) -> RateAnswer {
        let interval = self.fit.interval;
        let is_known = self.near > 0;
        RateAnswer {
            outcome: LoadOutcome::Unfinished,
            low: if is_known { interval.low } else { 0.0 },
            rate: if is_known { interval.rate } else { 0.0 },
            high: if is_known {
                interval.high
            } else {
                self.saturated.max(self.best_served)
            },
            saturated: self.saturated,
            slope: interval.slope,
            episodes: self.fit.episodes,
            control: None,
            drift: None,
            falls: self.falls,
            unseen_credit: self.unseen_credit(interval.rate / 2.0),
        }
    }

    fn answer(&self) -> RateAnswer {
        let interval = self.fit.interval;
        let (mut low, mut high) = (interval.low, interval.high);
        let drift = self.drift();
        if let Some(drift) = &drift {
            low = low.min(drift.later.low);
            high = high.max(drift.later.high);
        }
        low = low.min((1.0 - NARROW) * interval.rate);
        high = high.max((1.0 + NARROW) * interval.rate);
        let is_perhaps_none = low <= NONE_SHARE * self.saturated;
        if let Some(held) = self.held {
            low = low.min(held);
        }
        let has_failed = self.control.is_some_and(|control| control.failed);
        let outcome = if is_perhaps_none {
            LoadOutcome::PerhapsNone
        } else if self.held.is_none() {
            LoadOutcome::NotHeld
        } else if self.fit.episodes < EPISODES_MIN {
            LoadOutcome::FewEpisodes
        } else if has_failed {
            LoadOutcome::Sustained
        } else {
            LoadOutcome::AtLeast
        };
        RateAnswer {
            outcome,
            low: if is_perhaps_none { 0.0 } else { low },
            rate: interval.rate,
            high,
            saturated: self.saturated,
            slope: interval.slope,
            episodes: self.fit.episodes,
            control: self.control,
            drift: drift.map(|drift| drift.share),
            falls: self.falls,
            unseen_credit: self.unseen_credit(interval.rate / 2.0),
        }
    }

    /// The change between the first and the second half of the cells, where it is no chance.
    fn drift(&self) -> Option<Drift> {
        let near: Vec<usize> = self
            .fit
            .used
            .iter()
            .copied()
            .filter(|number| {
                let kind = self.cells[*number].cell.kind;
                kind == RateCellKind::Near || kind == RateCellKind::Hold
            })
            .collect();
        if near.len() < DRIFT_CELLS_MIN {
            return None;
        }
        let (first, second) = near.split_at(near.len() / 2);
        let rate = self.fit.interval.rate;
        let range = (0.6 * rate, (1.6 * rate).min(1.3 * self.saturated));
        let earlier = self.interval_of(first, range);
        let later = self.interval_of(second, range);
        let share = later.rate / earlier.rate - 1.0;
        let widths = (later.high - later.low).hypot(earlier.high - earlier.low);
        let error = widths / (2.0 * 1.96) / rate;
        if share.abs() > DRIFT_ERRORS * error && share.abs() > NARROW {
            Some(Drift { share, later })
        } else {
            None
        }
    }

    fn interval_of(&self, used: &[usize], (lowest, highest): (f64, f64)) -> RateInterval {
        let cells: Vec<MeasuredRate> = used
            .iter()
            .map(|number| self.cells[*number].clone())
            .collect();
        let all: Vec<usize> = (0..cells.len()).collect();
        let known = self.known();
        Evidence {
            cells: &cells,
            used: &all,
            known: &known,
            dispersion: self.fit.dispersion,
        }
        .interval(lowest, highest)
    }

    /// What all cells used of a credit over a base, in the order of time.
    fn unseen_credit(&self, base: f64) -> f64 {
        let mut used: f64 = 0.0;
        for cell in &self.all {
            used = (used + (cell.served - base) * cell.time_s).max(0.0);
        }
        used
    }
}

const DRIFT_CELLS_MIN: usize = 6;
const DRIFT_ERRORS: f64 = 2.3;

/// A change of the rate while it was measured.
struct Drift {
    /// By this share.
    share: f64,
    /// The interval of the second half.
    later: RateInterval,
}

impl Fit {
    fn unknown() -> Self {
        Self {
            interval: RateInterval {
                low: 0.0,
                rate: 0.0,
                high: f64::INFINITY,
                slope: 10.0,
            },
            dispersion: Dispersion {
                below: 1.0,
                above: 1.0,
                seen: 1.0,
                border: 0.0,
            },
            used: Vec::new(),
            episodes: 0.0,
        }
    }
}
