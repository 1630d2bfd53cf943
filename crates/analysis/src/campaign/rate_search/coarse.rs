//! The first steps of a search: the rate doubles until it is not served, then more than that is
//! offered, and a coarse curve gives a first guess.

use super::cell::{MeasuredRate, RateCell};
use super::evidence::{Growth, RateInterval};
use super::{BATCH_S, Phase, RateSearch, SATURATION_TIMES, SERVED_MIN, SearchStep, WARMUP_S};
use diskproof_model::rate::RateCellKind;

/// The first rate of the doubling, per second, which hard disks serve.
const FIRST_RATE: f64 = 20.0;
/// The doubling ends at this rate in any case, per second: three times the highest one that was
/// simulated.
const LAST_RATE: f64 = 300_000.0;
/// The length of a cell of the doubling, in seconds.
const DOUBLING_S: f64 = 2.0;
/// A cell of the doubling may be shorter if it still has this many requests.
const DOUBLING_REQUESTS: f64 = 40.0;
/// By chance, arrivals may be fewer by this many standard deviations of a Poisson process: in one
/// cell of forty.
const DOUBLING_DEVIATIONS: f64 = 2.0;
/// A rate is not served if less than this share of it is. The doubling ends there if
/// [`GAIN_MIN`] is missed, too.
const SERVED_SHARE: f64 = 0.9;
/// A doubled rate is worth another doubling if at least this multiple of the best rate so far is
/// served.
const GAIN_MIN: f64 = 1.05;
/// The length of a saturated cell, in seconds.
const SATURATION_S: f64 = 10.0;
/// The number of saturated cells: the first uses up short credits.
const SATURATIONS: u32 = 2;
/// The saturated rate counts as at least this share of the best rate of the doubling, in case that
/// the cell met a stall.
const SATURATED_SHARE_MIN: f64 = 0.1;
/// A round of the curve has this many rates, with equal distances up to the saturated rate.
const CURVE_POINTS: u32 = 10;
/// The number of rounds of the curve.
const CURVE_ROUNDS: u32 = 2;
/// The length of a cell of the curve, in seconds.
const CURVE_S: f64 = 2.0;
/// The length of a cell of the curve on a slow target, in seconds.
const CURVE_SLOW_S: f64 = 4.0;
/// A target that serves fewer requests per second is slow: a cell of the usual length would have
/// too few.
const CURVE_SLOW_RATE: f64 = 250.0;
/// The assumed late share below the first guess, as a multiple of the promised one, fixed by
/// simulation together with [`MANY_LATE`].
const FEW_LATE: f64 = 1.0 / 3.0;
/// The assumed late share above the first guess, as a multiple of the promised one.
const MANY_LATE: f64 = 5.0;
/// The late share above the first guess is at most this, for promises of less than p90.
const MANY_LATE_MAX: f64 = 0.5;
/// If even the lowest rate of the curve, a tenth of the saturated one, was too high, the first
/// guess is this share of the saturated rate.
const GUESS_SHARE_MIN: f64 = 0.08;

impl RateSearch {
    pub(super) fn first_cell(&self) -> RateCell {
        self.doubling_cell(FIRST_RATE)
    }

    fn doubling_cell(&self, rate: f64) -> RateCell {
        RateCell {
            warmup_s: 0.0,
            batch_s: self.scaled_s(BATCH_S),
            ..self.cell_at(
                RateCellKind::Doubling,
                rate,
                self.scaled_s(DOUBLING_S)
                    .max(DOUBLING_REQUESTS / rate)
                    .min(DOUBLING_S),
            )
        }
    }

    pub(super) fn after_doubling(&mut self, measured: &MeasuredRate) -> SearchStep {
        let rate = measured.rate();
        let served = measured.served;
        // By chance alone, so many requests per second fewer may arrive.
        let chance = DOUBLING_DEVIATIONS * (rate / measured.cell.time_s).sqrt();
        let is_missed = served < SERVED_SHARE * rate - chance;
        let has_no_gain = is_missed && rate > FIRST_RATE && served < GAIN_MIN * self.best_served;
        // Where nothing was served, a higher rate is not either.
        let is_unserved = served <= 0.0 && measured.is_overloaded(self.promise.late_share);
        if !measured.gave_up && !has_no_gain && !is_unserved {
            self.best_served = self.best_served.max(served);
            if rate < LAST_RATE {
                return SearchStep::Cell(self.doubling_cell(2.0 * rate));
            }
        }
        self.phase = Phase::Saturation { left: SATURATIONS };
        let offered = rate.max(SATURATION_TIMES * self.best_served);
        SearchStep::Cell(RateCell {
            warmup_s: 0.0,
            batch_s: self.scaled_s(BATCH_S),
            give_up_s: SATURATION_S,
            ..self.cell_at(
                RateCellKind::Saturation,
                offered,
                self.scaled_s(SATURATION_S),
            )
        })
    }

    /// Takes a cell that should saturate the target. If the target served it, only a hiccup ended
    /// the doubling, which then goes on from this rate.
    pub(super) fn after_saturation(&mut self, measured: MeasuredRate, left: u32) -> SearchStep {
        let cell = measured.cell;
        let was_served = !measured.gave_up && measured.served >= SERVED_SHARE * cell.rate;
        if was_served && cell.rate < LAST_RATE {
            self.best_served = self.best_served.max(measured.served);
            self.phase = Phase::Doubling;
            return SearchStep::Cell(self.doubling_cell(2.0 * cell.rate));
        }
        self.saturated = measured
            .served
            .max(SATURATED_SHARE_MIN * self.best_served)
            .max(SERVED_MIN);
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

    pub(super) fn next_of_curve(&mut self, mut left: Vec<f64>) -> SearchStep {
        let Some(rate) = left.pop() else {
            self.fit.interval = RateInterval {
                low: 0.0,
                rate: self.first_guess(),
                high: f64::INFINITY,
                growth: Growth::FIRST,
            };
            return self.next_near();
        };
        self.phase = Phase::Curve { left };
        let time_s = if self.saturated >= CURVE_SLOW_RATE {
            self.scaled_s(CURVE_S)
        } else {
            self.scaled_s(CURVE_SLOW_S)
        };
        SearchStep::Cell(RateCell {
            warmup_s: self.scaled_s(WARMUP_S),
            batch_s: time_s / 2.0,
            ..self.cell_at(RateCellKind::Curve, rate, time_s)
        })
    }

    pub(super) fn after_curve(&mut self, measured: MeasuredRate, left: Vec<f64>) -> SearchStep {
        self.cells.push(measured);
        self.next_of_curve(left)
    }

    /// The rate at which the curve most probably changes from few late requests to many: every
    /// place between two rates of the curve is tried.
    pub(super) fn first_guess(&self) -> f64 {
        let mut curve: Vec<&MeasuredRate> = self
            .cells
            .iter()
            .filter(|cell| cell.cell.kind == RateCellKind::Curve)
            .collect();
        curve.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
        let few = self.promise.late_share * FEW_LATE;
        let many = (self.promise.late_share * MANY_LATE).min(MANY_LATE_MAX);
        let mut best_log_likelihood = f64::NEG_INFINITY;
        let mut best_change = 0;
        for change in 0..=curve.len() {
            let mut log_likelihood = 0.0;
            for (index, cell) in curve.iter().enumerate() {
                let share = if index < change { few } else { many };
                log_likelihood += cell.late() * share.ln() - cell.requests().max(1.0) * share;
            }
            if log_likelihood > best_log_likelihood {
                best_log_likelihood = log_likelihood;
                best_change = change;
            }
        }
        match best_change {
            0 => GUESS_SHARE_MIN * self.saturated,
            last if last == curve.len() => self.saturated,
            change => (curve[change - 1].rate() * curve[change].rate()).sqrt(),
        }
    }
}
