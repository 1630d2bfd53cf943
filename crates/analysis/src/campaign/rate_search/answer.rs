//! The answer of a search, with what limits it: a drift of the target meanwhile, and the credit
//! that would not have shown.

use super::cell::MeasuredRate;
use super::evidence::{Evidence, RateInterval};
use super::stalls::{FittedLateness, StallEvidence};
use super::{RateAnswer, RateSearch, SATURATION_TIMES};
use diskproof_model::rate::{LoadOutcome, RateCellKind};
use std::ops::Range;

/// On each side, the printed interval is at least this share of the rate.
const PRINTED_SHARE: f64 = 0.015;
/// If the lower end is at most this share of the saturated rate, perhaps no rate keeps the promise.
const NO_RATE_SHARE: f64 = 0.12;
/// With fewer independent late episodes nothing is promised.
pub(super) const EPISODES_MIN: f64 = 6.0;
/// With fewer cells a drift cannot be seen.
const DRIFT_CELLS_MIN: usize = 6;
/// A change of more standard errors than this is not chance.
const DRIFT_ERRORS: f64 = 2.3;
/// Half-width of a 95 % interval in standard errors (normal distribution).
const NORMAL_95: f64 = 1.96;
/// The rate of each half of the cells is searched from this multiple of the answer on.
const DRIFT_RATE_MIN: f64 = 0.6;
/// The rate of each half is searched up to this multiple of the answer.
const DRIFT_RATE_MAX: f64 = 1.6;

/// The ends of the interval that is printed, in transactions per second.
struct AnswerEnds {
    low: f64,
    high: f64,
}

impl RateSearch {
    /// The answer by the cells so far, for a search that does not go on.
    pub fn unfinished(&self) -> RateAnswer {
        let interval = self.fit.interval;
        let is_known = self.near_cells > 0;
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
            stalls: StallEvidence::seen(&self.since_fall, &self.fitted()),
            unseen_stall_s: None,
        }
    }

    /// The lateness that the fit expects of the target.
    fn fitted(&self) -> FittedLateness {
        let interval = self.fit.interval;
        FittedLateness {
            promised: self.promise.late_share,
            rate: interval.rate,
            slope: interval.slope,
            served: self.saturated,
        }
    }

    /// The answer of a search that came to its end.
    ///
    /// A hold that alone shows that its rate keeps the promise is a lower end whatever the fit
    /// says, unless stalls that were met may break it.
    pub(super) fn answer(&self) -> RateAnswer {
        let interval = self.fit.interval;
        let fitted = self.fitted();
        let stalls = StallEvidence::seen(&self.since_fall, &fitted);
        let low_by_stalls = stalls.lowest_rate(&fitted);
        let stalls_leave_a_rate = low_by_stalls > self.no_rate();
        let drift = self.drift();
        let ends = self.widened_ends(drift.as_ref());
        let outcome_of_fit = if stalls.met > 0 && !stalls_leave_a_rate && ends.low > self.no_rate()
        {
            LoadOutcome::FewEpisodes
        } else {
            self.outcome_of_fit(ends.low <= self.no_rate())
        };
        let is_by_hold_alone =
            self.is_held_clearly && stalls_leave_a_rate && !outcome_of_fit.is_promise();
        let low_without_stalls = match (outcome_of_fit, self.held) {
            (_, Some(held)) if is_by_hold_alone => held,
            (LoadOutcome::PerhapsNone, _) => 0.0,
            (_, Some(held)) => ends.low.min(held),
            (_, None) => ends.low,
        };
        let low = if stalls_leave_a_rate {
            low_without_stalls.min(low_by_stalls)
        } else {
            0.0
        };
        let (outcome, high) = if is_by_hold_alone {
            (LoadOutcome::AtLeast, ends.high.max(self.saturated))
        } else {
            (outcome_of_fit, ends.high)
        };
        debug_assert!(low <= high, "{low} to {high}");
        debug_assert!(low > 0.0 || !outcome.is_promise(), "{outcome:?}");
        RateAnswer {
            outcome,
            low,
            rate: interval.rate.max(low),
            high,
            saturated: self.saturated,
            slope: interval.slope,
            episodes: self.fit.episodes,
            control: self.control,
            drift: drift.map(|drift| drift.share),
            falls: self.falls,
            unseen_credit: self.unseen_credit(interval.rate / 2.0),
            stalls,
            unseen_stall_s: stalls.unseen_length_s(&fitted, low),
        }
    }

    /// If the lower end is at most this rate, perhaps none keeps the promise.
    fn no_rate(&self) -> f64 {
        NO_RATE_SHARE * self.saturated
    }

    /// The interval of the fit, with what it does not know: a drift of the target, and a control
    /// that kept the promise.
    fn widened_ends(&self, drift: Option<&Drift>) -> AnswerEnds {
        let interval = self.fit.interval;
        let mut ends = AnswerEnds {
            low: interval.low.min((1.0 - PRINTED_SHARE) * interval.rate),
            high: interval.high.max((1.0 + PRINTED_SHARE) * interval.rate),
        };
        if let Some(drift) = drift {
            ends.low = ends.low.min(drift.later.low);
            ends.high = ends.high.max(drift.later.high);
        }
        // A rate that kept the promise is no bound, whatever the saturation cell served.
        if let Some(control) = &self.control
            && !control.failed
        {
            ends.high = ends.high.max(control.factor * interval.rate);
        }
        ends
    }

    /// The outcome without regard to stalls, in the order of importance: that perhaps no rate keeps
    /// the promise, that the hold broke it, that the interval rests on too few episodes. The
    /// control only decides whether the rate is the highest one.
    fn outcome_of_fit(&self, is_perhaps_none: bool) -> LoadOutcome {
        if is_perhaps_none {
            LoadOutcome::PerhapsNone
        } else if self.held.is_none() {
            LoadOutcome::NotHeld
        } else if self.fit.episodes < EPISODES_MIN {
            LoadOutcome::FewEpisodes
        } else if self.control.is_some_and(|control| control.failed) {
            LoadOutcome::Sustained
        } else {
            LoadOutcome::AtLeast
        }
    }

    /// The change between the first and the second half of the near cells; `None` where chance
    /// explains it.
    pub(super) fn drift(&self) -> Option<Drift> {
        let mut near = Vec::new();
        for index in &self.fit.near {
            match self.cells[*index].cell.kind {
                RateCellKind::Near | RateCellKind::Repeated | RateCellKind::Hold => {
                    near.push(*index);
                }
                RateCellKind::Doubling
                | RateCellKind::Saturation
                | RateCellKind::Curve
                | RateCellKind::Control => {}
            }
        }
        if near.len() < DRIFT_CELLS_MIN {
            return None;
        }
        let (first, second) = near.split_at(near.len() / 2);
        let rate = self.fit.interval.rate;
        let lowest = DRIFT_RATE_MIN * rate;
        let highest = (DRIFT_RATE_MAX * rate).min(SATURATION_TIMES * self.saturated);
        let earlier = self.interval_of(first, lowest..highest);
        let later = self.interval_of(second, lowest..highest);
        let share = later.rate / earlier.rate - 1.0;
        let widths = (later.high - later.low).hypot(earlier.high - earlier.low);
        let error = widths / (2.0 * NORMAL_95) / rate;
        if share.abs() > DRIFT_ERRORS * error && share.abs() > PRINTED_SHARE {
            Some(Drift { share, later })
        } else {
            None
        }
    }

    /// The interval that the cells with these indices alone allow, between two rates.
    fn interval_of(&self, indices: &[usize], rates: Range<f64>) -> RateInterval {
        let cells: Vec<MeasuredRate> = indices
            .iter()
            .map(|index| self.cells[*index].clone())
            .collect();
        let all: Vec<usize> = (0..cells.len()).collect();
        let inputs = self.fit_inputs();
        Evidence {
            cells: &cells,
            near: &all,
            inputs: &inputs,
            dispersion: self.fit.dispersion,
        }
        .interval(rates.start, rates.end)
    }

    /// The most requests over a base rate that the target served in any stretch of time. A larger
    /// credit would not have shown.
    pub(super) fn unseen_credit(&self, base: f64) -> f64 {
        let mut used: f64 = 0.0;
        for cell in &self.served_cells {
            used = (used + (cell.served - base) * cell.time_s).max(0.0);
        }
        used
    }
}

/// A change of the rate while it was measured.
pub(super) struct Drift {
    /// The later rate over the earlier one, minus one.
    share: f64,
    /// The interval of the second half.
    later: RateInterval,
}
