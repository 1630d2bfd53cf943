//! Cells near the limit: each refits the interval, until it is narrow or the time is over. If the
//! target became slower meanwhile, the search forgets what it knew and begins this phase anew.

use super::answer::{EPISODES_MIN, PRINTED_SHARE};
use super::cell::{MeasuredRate, RateCell};
use super::evidence::{Growth, RateInterval};
use super::stalls::OBSERVED_USE_MAX;
use super::{
    BATCH_S, CONTROL_S, CONTROLS_MAX, NEAR_RATE_MIN, Phase, RateSearch, SERVED_MIN, SearchStep,
    TRIALS_MAX,
};
use diskproof_model::rate::RateCellKind;

/// The length of a near cell in a search of the usual time, in seconds.
pub(super) const NEAR_S: f64 = 10.0;
/// The distances of near cells from the rate of the fit, in units of 1/slope.
/// Both sides of it take turns, because cells on both sides show the slope.
const NEAR_DISTANCES: [f64; 6] = [-0.8, 0.8, 0.0, 0.8, -0.8, 0.0];
/// One unit is at least this share of the rate: where lateness begins at a step, closer rates would
/// not differ.
const UNIT_MIN: f64 = 0.005;
/// One unit is at most this share of the rate: the curve is straight only so far.
const UNIT_MAX: f64 = 0.18;
/// The highest rate of a near cell, as a multiple of the saturated rate: above it a cell only shows
/// overload.
const NEAR_RATE_MAX: f64 = 1.2;
/// At least this many near cells come before the first hold: each distance once, and two more.
const NEAR_CELLS_MIN: usize = 8;
/// At least this many near cells come between a failed hold and the next one, so that the lower end
/// can move.
const NEAR_CELLS_AGAIN_MIN: usize = 4;
/// An overloaded near cell below the interval is repeated, but only after this many near cells:
/// before that the interval is only a guess. One at a rate that the target served when it was
/// saturated is repeated in any case.
const REPEATED_AFTER: usize = 2;
/// After so many trials the search holds what it knows: what it measures then has to stay within
/// [`TRIALS_MAX`].
const TRIALS_BEFORE_HOLD: usize = TRIALS_MAX - 10;
/// The length of a repeated cell, in seconds: half a near cell shows whether a rate is served.
const REPEATED_S: f64 = 5.0;
/// After an overloaded cell the saturated rate is at most this multiple of its rate: what is served
/// is known to some two percent.
const GAVE_UP_TIMES: f64 = 1.02;
/// A rate of at least this share of another counts as the same or a higher one.
const SAME_RATE_SHARE: f64 = 0.995;
/// The length of the cell that saturates a target which became slower, in seconds. The credit is
/// used up already, so that one cell does for the two of the start.
const FALLEN_S: f64 = 6.0;
/// The warm-up of that cell, in seconds.
const FALLEN_WARMUP_S: f64 = 2.0;
/// That cell ends when a request has waited for this long, in seconds.
const FALLEN_GIVE_UP_S: f64 = 4.0;
/// It offers this multiple of the earlier saturated rate, more than a slower target can serve.
const FALLEN_TIMES: f64 = 1.1;
/// The rate that it serves counts as at least this share of the earlier one, in case that it met a
/// stall.
const FALLEN_SHARE_MIN: f64 = 0.01;
/// The guess after it, as a share of the rate that it served, fixed by simulation of credits that
/// end.
const FALLEN_GUESS_SHARE: f64 = 0.85;

impl RateSearch {
    /// The time of a cell that counts for so many seconds, with the gap before it and its warm-up.
    pub(super) fn whole_cell_s(&self, counted_s: f64) -> f64 {
        self.between_s + self.warmup_s() + counted_s
    }

    /// The time that is kept for the hold and its controls, in seconds. Long warm-ups leave time
    /// for fewer controls, because half of the search finds the rate that is held.
    pub(super) fn reserve_s(&self) -> f64 {
        let hold_s = self.whole_cell_s(self.times.hold_s);
        let control_s = self.whole_cell_s(self.scaled_s(CONTROL_S));
        let half_s = self.times.hold_s + (self.times.total_s - self.times.hold_s) / 2.0;
        (hold_s + CONTROLS_MAX as f64 * control_s)
            .min(half_s)
            .max(hold_s + control_s)
    }

    /// The next near cell, or the hold where the time or the trials for another one are used up.
    pub(super) fn next_near(&mut self) -> SearchStep {
        let near_end_s = self.now_s + self.whole_cell_s(self.scaled_s(NEAR_S));
        if near_end_s >= self.times.total_s - self.reserve_s()
            || self.served_cells.len() >= TRIALS_BEFORE_HOLD
        {
            return self.begin_hold();
        }
        self.phase = Phase::Near;
        let interval = &self.fit.interval;
        let unit = (1.0 / interval.growth.elasticity()).clamp(UNIT_MIN, UNIT_MAX);
        let distance = NEAR_DISTANCES[self.near_cells % NEAR_DISTANCES.len()];
        let rate = (interval.rate * (1.0 + distance * unit)).clamp(
            NEAR_RATE_MIN * self.saturated,
            NEAR_RATE_MAX * self.saturated,
        );
        SearchStep::Cell(self.cell_at(RateCellKind::Near, rate, self.scaled_s(NEAR_S)))
    }

    pub(super) fn after_near(&mut self, measured: MeasuredRate) -> SearchStep {
        let rate = measured.rate();
        let is_overloaded = measured.is_overloaded(self.promise.late_share);
        let is_below = self.is_below_the_interval(rate);
        let is_served = rate <= OBSERVED_USE_MAX * self.saturated;
        self.cells.push(measured);
        if is_overloaded && (is_below || is_served) {
            self.phase = Phase::Repeated;
            return SearchStep::Cell(self.cell_at(
                RateCellKind::Repeated,
                rate,
                self.scaled_s(REPEATED_S),
            ));
        }
        self.refit_after_near()
    }

    fn is_below_the_interval(&self, rate: f64) -> bool {
        self.near_cells >= REPEATED_AFTER && rate < self.fit.interval.low
    }

    /// Refits with the last near cell, and chooses the next step. If that cell is saturated, cells
    /// that kept the promise at such a rate did so by credit or luck, and are dropped before the
    /// fit.
    pub(super) fn refit_after_near(&mut self) -> SearchStep {
        let promised = self.promise.late_share;
        if let Some(index) = self.last_near_index() {
            let last = &self.cells[index];
            let rate = last.rate();
            let is_overloaded = last.is_overloaded(promised);
            let is_saturated = is_overloaded || last.is_saturated(promised);
            if is_overloaded {
                self.saturated = self.saturated.min(GAVE_UP_TIMES * rate);
            }
            if is_saturated {
                self.cells.retain(|cell| {
                    cell.cell.kind == RateCellKind::Saturation
                        || cell.rate() < SAME_RATE_SHARE * rate
                        || cell.late() > promised * cell.requests()
                });
            }
        }
        self.refit_and_choose()
    }

    fn last_near_index(&self) -> Option<usize> {
        self.cells
            .iter()
            .rposition(|cell| cell.cell.kind == RateCellKind::Near)
    }

    fn refit_and_choose(&mut self) -> SearchStep {
        self.refit();
        self.near_cells += 1;
        let interval = &self.fit.interval;
        let cells_min = if self.holds == 0 {
            NEAR_CELLS_MIN
        } else {
            self.near_cells_at_hold + NEAR_CELLS_AGAIN_MIN
        };
        let is_narrow = (interval.high - interval.low) / 2.0 / interval.rate < PRINTED_SHARE;
        let has_episodes = self.fit.episodes >= EPISODES_MIN;
        if self.near_cells >= cells_min && is_narrow && has_episodes {
            return self.begin_hold();
        }
        self.next_near()
    }

    /// Decides whether the target became slower, after an overloaded near cell. If the repeated
    /// cell keeps the rate, the near cell met a single stall: it says nothing about higher rates,
    /// and is dropped from the fit. As a stall it counts.
    pub(super) fn after_repeated(&mut self, measured: MeasuredRate) -> SearchStep {
        let is_overloaded = measured.is_overloaded(self.promise.late_share);
        let is_saturated = measured.is_saturated(self.promise.late_share);
        let is_below = self.is_below_the_interval(measured.rate());
        self.cells.push(measured);
        if is_overloaded && is_below {
            return self.begin_fallen();
        }
        if is_overloaded || is_saturated {
            return self.refit_after_near();
        }
        if let Some(stalled) = self.last_near_index() {
            self.cells.remove(stalled);
        }
        self.refit_and_choose()
    }

    /// The target became slower: the next cell saturates it anew.
    fn begin_fallen(&mut self) -> SearchStep {
        self.falls += 1;
        self.phase = Phase::Fallen;
        SearchStep::Cell(RateCell {
            warmup_s: self.scaled_s(FALLEN_WARMUP_S),
            batch_s: self.scaled_s(BATCH_S),
            give_up_s: FALLEN_GIVE_UP_S,
            ..self.cell_at(
                RateCellKind::Saturation,
                FALLEN_TIMES * self.saturated,
                self.scaled_s(FALLEN_S),
            )
        })
    }

    /// Forgets all cells from before the target became slower.
    pub(super) fn after_fallen(&mut self, measured: MeasuredRate) -> SearchStep {
        self.saturated = measured
            .served
            .max(FALLEN_SHARE_MIN * self.saturated)
            .max(SERVED_MIN);
        self.cells = vec![measured];
        self.since_fall.clear();
        self.near_cells = 0;
        self.near_cells_at_hold = 0;
        self.fit.interval = RateInterval {
            low: 0.0,
            rate: FALLEN_GUESS_SHARE * self.saturated,
            high: f64::INFINITY,
            growth: Growth::FIRST,
        };
        self.next_near()
    }
}
