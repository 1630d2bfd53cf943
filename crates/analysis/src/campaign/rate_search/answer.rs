//! Turns the cells of a search into its answer. The interval of the fit is widened by a drift of
//! the target and by a control that kept the promise, and stalls that were met lower its lower end.
//! The outcome says what was proven.

use super::cell::MeasuredRate;
use super::evidence::{Evidence, RateInterval};
use super::stalls::{FittedLateness, StallEvidence};
use super::{RateAnswer, RateSearch, SATURATION_TIMES};
use diskproof_model::rate::{LoadOutcome, RateCellKind};
use std::ops::Range;

/// On each side, the printed interval is at least this share of the rate. The search ends when it
/// is that narrow, so that no narrower one was tried.
pub(super) const PRINTED_SHARE: f64 = 0.015;
/// If the lower end is at most this share of the saturated rate, perhaps no rate keeps the promise:
/// the curve begins at a tenth of it, and what lies below was not measured.
const NO_RATE_SHARE: f64 = 0.12;
/// With fewer independent late episodes nothing is promised: with fewer, the interval held the
/// truth in only 65 to 90 of 100 simulated searches.
pub(super) const EPISODES_MIN: f64 = 6.0;
/// With fewer cells a drift cannot be seen: each half has a rate and a slope, and one more cell
/// that may contradict them.
const DRIFT_CELLS_MIN: usize = 6;
/// A change of more standard errors than this is not chance: it comes in one of fifty searches of a
/// steady target.
const DRIFT_ERRORS: f64 = 2.3;
/// Half-width of a 95 % interval in standard errors (normal distribution).
const NORMAL_95: f64 = 1.96;
/// The rate of each half of the cells is searched from this multiple of the answer on. Near cells
/// are closer to it, so that a half cannot have another rate.
const DRIFT_RATE_MIN: f64 = 0.6;
/// The rate of each half is searched up to this multiple of the answer: the same distance, as a
/// ratio.
const DRIFT_RATE_MAX: f64 = 1.6;

/// The ends of the interval that is printed, in transactions per second.
struct AnswerEnds {
    low: f64,
    high: f64,
}

/// The outcome of a search with the ends of its interval.
struct ProvenInterval {
    outcome: LoadOutcome,
    ends: AnswerEnds,
}

impl RateSearch {
    /// The answer by the cells so far, for a search that does not go on.
    pub fn unfinished_answer(&self) -> RateAnswer {
        let is_known = self.near_cells > 0;
        let interval = self.fit.interval;
        RateAnswer {
            rate: if is_known { interval.rate } else { 0.0 },
            control: None,
            ..self.answer_with(ProvenInterval {
                outcome: LoadOutcome::Unfinished,
                ends: if is_known {
                    AnswerEnds {
                        low: interval.low,
                        high: interval.high,
                    }
                } else {
                    AnswerEnds {
                        low: 0.0,
                        high: self.saturated.max(self.best_served),
                    }
                },
            })
        }
    }

    /// The answer of a search that came to its end.
    pub(super) fn answer(&self) -> RateAnswer {
        let drift = self.drift();
        let answer = RateAnswer {
            drift: drift.as_ref().map(|drift| drift.share),
            ..self.answer_with(self.proven_interval(drift.as_ref()))
        };
        debug_assert!(answer.low <= answer.rate, "{answer:?}");
        debug_assert!(answer.rate <= answer.high, "{answer:?}");
        debug_assert!(
            answer.low > 0.0 || !answer.outcome.is_promise(),
            "{answer:?}"
        );
        answer
    }

    /// An answer with this interval, and what the cells show besides.
    fn answer_with(&self, proven: ProvenInterval) -> RateAnswer {
        let interval = self.fit.interval;
        let fitted = self.fitted_lateness();
        let stalls = StallEvidence::seen(&self.since_fall, &fitted);
        let AnswerEnds { low, high } = proven.ends;
        RateAnswer {
            outcome: proven.outcome,
            low,
            rate: interval.rate.max(low),
            high,
            saturated: self.saturated,
            slope: interval.growth.elasticity(),
            episodes: self.fit.episodes,
            control: self.control,
            drift: None,
            falls: self.falls,
            unseen_credit: self.unseen_credit(interval.rate / 2.0),
            stalls,
            unseen_stall_s: match proven.outcome {
                LoadOutcome::Unfinished => None,
                _ => stalls.unseen_length_s(&fitted, low),
            },
        }
    }

    /// The lateness that the fit expects of the target.
    fn fitted_lateness(&self) -> FittedLateness {
        let interval = self.fit.interval;
        FittedLateness {
            promised: self.promise.late_share,
            limit_s: self.promise.limit_s,
            rate: interval.rate,
            growth: interval.growth,
            served: self.saturated,
        }
    }

    /// The outcome of a search that came to its end, and its interval.
    ///
    /// A hold that alone shows that its rate keeps the promise is a lower end whatever the fit
    /// says, unless stalls that were met may break it.
    fn proven_interval(&self, drift: Option<&Drift>) -> ProvenInterval {
        let ends = self.widened_ends(drift);
        let fitted = self.fitted_lateness();
        let stalls = StallEvidence::seen(&self.since_fall, &fitted);
        let low_despite_stalls = stalls.lowest_rate(&fitted);
        let stalls_leave_a_rate = low_despite_stalls > self.no_rate_below();
        let is_perhaps_none = ends.low <= self.no_rate_below();
        let outcome = if stalls.met > 0 && !stalls_leave_a_rate && !is_perhaps_none {
            LoadOutcome::FewEpisodes
        } else {
            self.outcome_of_fit(is_perhaps_none)
        };
        if !stalls_leave_a_rate {
            // Nothing is known to be kept if they come as often as they may.
            return ProvenInterval {
                outcome,
                ends: AnswerEnds { low: 0.0, ..ends },
            };
        }
        match self.held {
            Some(held) if self.is_held_clearly && !outcome.is_promise() => ProvenInterval {
                outcome: LoadOutcome::AtLeast,
                ends: AnswerEnds {
                    low: held.min(low_despite_stalls),
                    high: ends.high.max(self.saturated),
                },
            },
            held => {
                let low_of_fit = match outcome {
                    LoadOutcome::PerhapsNone => 0.0,
                    _ => ends.low.min(held.unwrap_or(f64::INFINITY)),
                };
                ProvenInterval {
                    outcome,
                    ends: AnswerEnds {
                        low: low_of_fit.min(low_despite_stalls),
                        ..ends
                    },
                }
            }
        }
    }

    /// If the lower end is at most this rate, perhaps none keeps the promise.
    fn no_rate_below(&self) -> f64 {
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
        let earlier = self.interval_of_cells(first, lowest..highest);
        let later = self.interval_of_cells(second, lowest..highest);
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
    fn interval_of_cells(&self, indices: &[usize], rates: Range<f64>) -> RateInterval {
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
