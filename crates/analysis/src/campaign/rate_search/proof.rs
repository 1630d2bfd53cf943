//! The proof of a search: a hold at the lower end of the interval that must keep the promise, and a
//! control above the upper end that must break it.

use super::answer::EPISODES_MIN;
use super::cell::MeasuredRate;
use super::fit::{heavy_traffic, over_dispersion};
use super::near::NEAR_S;
use super::stalls::{OBSERVED_USE_MAX, count_at_most};
use super::{CONTROL_S, CONTROLS_MAX, NEAR_RATE_MIN, Phase, RateControl, RateSearch, SearchStep};
use diskproof_model::rate::RateCellKind;

/// No more than this share of the saturated rate is held: the queue of a target that is used more
/// is as long by chance as by what is offered.
const HELD_USE_MAX: f64 = 0.95;
/// With few late episodes, this share of the rate of the fit is held. The fit knows no lower end
/// there, and the saturated rate, which bounds it, is known to a few percent.
const QUIET_SHARE: f64 = 0.9;
/// The most holds of a search: a third one would take the time of the cells that make it better.
const HOLDS_MAX: u32 = 2;
/// A hold is repeated if its rate was less than this share of the lower end after the refit: the
/// promise can then be a higher one.
const HELD_SHARE: f64 = 0.95;
/// A hold breaks the promise if late requests exceed the promised share by this many standard
/// deviations: 99 % one-sided.
const HOLD_DEVIATIONS: f64 = 2.33;
/// A hold or a control also breaks it with more than this many times the promised share, whatever
/// chance explains. On a busy machine late requests come in few large clusters, which explain any
/// share: a control with half of its requests late has not kept the promise.
const BROKEN_SHARE_TIMES: f64 = 3.0;
/// Near cells for which there has to be time between two holds: one on each side of the rate.
const NEAR_BETWEEN_HOLDS: f64 = 2.0;
/// The rates of a control, as multiples of the rate of the answer. The smallest one that should
/// show a break says most about the upper end.
const CONTROL_FACTORS: [f64; 5] = [1.15, 1.3, 1.5, 2.0, 3.0];
/// A control breaks the promise if late requests exceed the promised share by this many standard
/// deviations: 95 % one-sided.
const CONTROL_DEVIATIONS: f64 = 1.64;
/// A control at this multiple of the saturated rate breaks the promise in any case: its queue grows
/// by a second in thirteen.
const ABOVE_SATURATED_TIMES: f64 = 1.08;
/// A control is worth measuring if it should make more requests late by this many standard
/// deviations: then it shows a break ([`CONTROL_DEVIATIONS`]) in four of five searches.
const SHOWN_DEVIATIONS: f64 = 2.5;
/// Lateness is assumed to grow at most to this multiple, e to the power of 5: then all requests are
/// late at p99.
const GROWTH_MAX: f64 = 148.4;

impl RateSearch {
    pub(super) fn begin_hold(&mut self) -> SearchStep {
        self.phase = Phase::Hold;
        let mut rate = self.fit.interval.low.max(NEAR_RATE_MIN * self.saturated);
        if self.holds == 0 && self.fit.episodes < EPISODES_MIN {
            rate = rate.max(self.quiet_rate());
        }
        rate = rate.min(HELD_USE_MAX * self.saturated);
        SearchStep::Cell(self.cell_at(RateCellKind::Hold, rate, self.times.hold_s))
    }

    /// A rate just below that of the fit, and below all that were late. Where the promise is kept
    /// nearly up to saturation, few late episodes are seen below it, and the fit knows no lower
    /// end: the hold has to find one.
    fn quiet_rate(&self) -> f64 {
        let mut border = self.fit.interval.rate.min(self.saturated);
        for cell in &self.cells {
            let is_late = cell.late() > self.promise.late_share * cell.requests();
            if cell.measures_the_limit() && (cell.gave_up || is_late) {
                border = border.min(cell.rate());
            }
        }
        QUIET_SHARE * border
    }

    /// Returns `true` if a hold alone shows that its rate keeps the promise: with 97.5 %, a queue
    /// that is used so much has fewer late requests than promised.
    fn keeps_clearly(&self, hold: &MeasuredRate) -> bool {
        let phi = over_dispersion(&[hold]).max(heavy_traffic(hold.rate() / self.saturated));
        let most_late = phi * count_at_most(hold.late() / phi);
        most_late <= self.promise.late_share * hold.requests()
    }

    pub(super) fn after_hold(&mut self, measured: MeasuredRate) -> SearchStep {
        let is_held = !measured.gave_up && !self.breaks_promise(&[&measured], HOLD_DEVIATIONS, 1.0);
        self.held = if is_held { Some(measured.rate()) } else { None };
        self.is_held_clearly = is_held && self.keeps_clearly(&measured);
        self.holds += 1;
        self.near_cells_at_hold = self.near_cells;
        self.cells.push(measured);
        self.refit();
        let near_s = self.whole_cell_s(self.scaled_s(NEAR_S));
        let once_more_s = NEAR_BETWEEN_HOLDS * near_s + self.reserve_s();
        let has_time = self.now_s + once_more_s <= self.times.total_s;
        if self.holds < HOLDS_MAX && has_time {
            match self.held {
                None => return self.next_near(),
                Some(held) if held < HELD_SHARE * self.fit.interval.low => {
                    return self.begin_hold();
                }
                Some(_) => {}
            }
        }
        self.begin_control()
    }

    /// Returns `true` if clearly more requests of these cells are late than promised: by more than
    /// `deviations` standard deviations, or by a multiple that no cluster excuses. The
    /// over-dispersion of their counts is assumed to be at least `dispersion_min`.
    pub(super) fn breaks_promise(
        &self,
        cells: &[&MeasuredRate],
        deviations: f64,
        dispersion_min: f64,
    ) -> bool {
        let requests: f64 = cells.iter().map(|cell| cell.requests()).sum();
        let late: f64 = cells.iter().map(|cell| cell.late()).sum();
        let phi = over_dispersion(cells).max(dispersion_min);
        let promised = requests * self.promise.late_share;
        let beyond_chance = late - deviations * (late.max(1.0) * phi).sqrt();
        beyond_chance > promised || late > BROKEN_SHARE_TIMES * promised
    }

    /// Chooses the smallest factor above the interval at which the controls should break the
    /// promise.
    pub(super) fn begin_control(&mut self) -> SearchStep {
        let interval = self.fit.interval;
        for factor in CONTROL_FACTORS {
            let rate = factor * interval.rate;
            let expected =
                self.scaled_s(CONTROL_S) * CONTROLS_MAX as f64 * rate * self.promise.late_share;
            let growth = interval.growth.times(factor).min(GROWTH_MAX);
            let chance = (self.fit.dispersion.above * expected * growth).sqrt();
            let shows = rate > ABOVE_SATURATED_TIMES * self.saturated
                || expected * (growth - 1.0) > SHOWN_DEVIATIONS * chance;
            self.control_factor = Some(factor);
            if rate >= interval.high && shows {
                break;
            }
        }
        self.next_control(0)
    }

    pub(super) fn next_control(&mut self, tried: usize) -> SearchStep {
        let factor = self.control_factor.unwrap_or(CONTROL_FACTORS[0]);
        self.phase = Phase::Control { tried };
        let rate = factor * self.fit.interval.rate;
        SearchStep::Cell(self.cell_at(RateCellKind::Control, rate, self.scaled_s(CONTROL_S)))
    }

    pub(super) fn after_control(&mut self, measured: MeasuredRate, tried: usize) -> SearchStep {
        let gave_up = measured.gave_up;
        // Less than is served does not overload the target: it stalled, unless it gives up again.
        if gave_up
            && !self.has_stalled_control
            && measured.rate() <= OBSERVED_USE_MAX * self.saturated
            && self.has_time_for_control()
        {
            self.has_stalled_control = true;
            return self.next_control(tried);
        }
        self.cells.push(measured);
        let controls: Vec<&MeasuredRate> = self
            .cells
            .iter()
            .filter(|cell| cell.cell.kind == RateCellKind::Control)
            .collect();
        let dispersion_min = self.fit.dispersion.below;
        let failed = gave_up || self.breaks_promise(&controls, CONTROL_DEVIATIONS, dispersion_min);
        let requests: f64 = controls.iter().map(|cell| cell.requests()).sum();
        let late: f64 = controls.iter().map(|cell| cell.late()).sum();
        self.control = Some(RateControl {
            factor: self.control_factor.unwrap_or(CONTROL_FACTORS[0]),
            late_share: if gave_up {
                None
            } else {
                Some(late / requests.max(1.0))
            },
            failed,
        });
        if !failed && tried + 1 < CONTROLS_MAX && self.has_time_for_control() {
            return self.next_control(tried + 1);
        }
        SearchStep::Answer(self.answer())
    }

    fn has_time_for_control(&self) -> bool {
        self.now_s + self.whole_cell_s(self.scaled_s(CONTROL_S)) <= self.times.total_s
    }
}
