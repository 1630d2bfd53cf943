//! What a search answers, and what it says of itself: drift, and the credit that would not have
//! shown.

use super::cell::MeasuredRate;
use super::fit::{Evidence, RateInterval};
use super::{RateAnswer, RateSearch, SATURATION_TIMES};
use diskproof_model::rate::{LoadOutcome, RateCellKind};
use std::ops::Range;

/// The interval that is printed is no narrower than this, over the rate, on each side.
const PRINTED_SHARE: f64 = 0.015;
/// Below this share of what is served when saturated, a rate may be none.
const NO_RATE_SHARE: f64 = 0.12;
/// Independent late episodes below which nothing is promised.
pub(super) const EPISODES_MIN: f64 = 6.0;
/// Cells in which a change of the rate can be seen.
const DRIFT_CELLS_MIN: usize = 6;
/// A change by so many standard errors is no chance.
const DRIFT_ERRORS: f64 = 2.3;
/// The lowest rate that half of the cells may give, over that of all.
const DRIFT_RATE_MIN: f64 = 0.6;
/// The highest one.
const DRIFT_RATE_MAX: f64 = 1.6;

impl RateSearch {
    /// What the cells so far say, where the search does not go on.
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
        }
    }

    pub(super) fn answer(&self) -> RateAnswer {
        let interval = self.fit.interval;
        let mut low = interval.low;
        let mut high = interval.high;
        let drift = self.drift();
        if let Some(drift) = &drift {
            low = low.min(drift.later.low);
            high = high.max(drift.later.high);
        }
        low = low.min((1.0 - PRINTED_SHARE) * interval.rate);
        high = high.max((1.0 + PRINTED_SHARE) * interval.rate);
        let is_perhaps_none = low <= NO_RATE_SHARE * self.saturated;
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
    pub(super) fn drift(&self) -> Option<Drift> {
        let near: Vec<usize> = self
            .fit
            .used
            .iter()
            .copied()
            .filter(|number| {
                matches!(
                    self.cells[*number].cell.kind,
                    RateCellKind::Near | RateCellKind::Repeated | RateCellKind::Hold
                )
            })
            .collect();
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
        let error = widths / (2.0 * 1.96) / rate;
        if share.abs() > DRIFT_ERRORS * error && share.abs() > PRINTED_SHARE {
            Some(Drift { share, later })
        } else {
            None
        }
    }

    pub(super) fn interval_of(&self, used: &[usize], rates: Range<f64>) -> RateInterval {
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
        .interval(rates.start, rates.end)
    }

    /// What all cells used of a credit over a base, in the order of time.
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
    /// By this share.
    share: f64,
    /// The interval of the second half.
    later: RateInterval,
}
