//! The fit of a rate search: the rate at which the promised share of requests is late, with its
//! 95 % interval. `evidence` weighs the possible rates. Late requests come in clusters, so that
//! their counts are over-dispersed: this file estimates by how much.
//!
//! *Near* cells are so close to the wanted rate that they show the slope. The others are *far*:
//! they only show that the wanted rate is above or below theirs.

use super::cell::MeasuredRate;
use super::evidence::{
    Dispersion, EXPECTED_SHARE_MAX, Evidence, FitInputs, Growth, RateInterval, USE_MAX,
};
use std::ops::Range;

/// The result of a fit to some cells.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    pub(super) interval: RateInterval,
    pub(super) dispersion: Dispersion,
    /// Indices of the near cells.
    pub(super) near: Vec<usize>,
    /// The number of independent late episodes in the near cells.
    pub(super) episodes: f64,
}

impl Fit {
    /// The state before the first cell.
    pub(super) fn unknown() -> Self {
        Self {
            interval: RateInterval {
                low: 0.0,
                rate: 0.0,
                high: f64::INFINITY,
                growth: Growth::FIRST,
            },
            dispersion: Dispersion {
                below: 1.0,
                above: 1.0,
                seen: 1.0,
                border: 0.0,
            },
            near: Vec::new(),
            episodes: 0.0,
        }
    }
}

/// Near cells are within this multiple of 1/elasticity around the guess, as a share of it.
const NEAR_WIDTH: f64 = 1.6;
/// That width is at least this share of the guess.
const NEAR_WIDTH_MIN: f64 = 0.01;
/// It is at most this share of the guess.
const NEAR_WIDTH_MAX: f64 = 0.28;
/// The fit is repeated this often, each time from the guess of the one before: as often as in the
/// simulation that fixed the constants.
const FIT_ROUNDS: usize = 3;
/// The dispersion below the wanted rate is at least this share of that just above it: clusters are
/// smaller below, and too few are seen there to know by how much.
const SEEN_ABOVE: f64 = 0.5;
/// Near saturation any queue clusters its late requests. Their dispersion is this over the square
/// of the idle share, found by simulation of M/M/c, M/D/c and M/G/c (1.4 to 2.3).
const HEAVY_TRAFFIC: f64 = 1.5;
/// The interval is wider by this over the number of independent episodes, similar to Student's t.
const FEW_EPISODES_WIDENING: f64 = 2.0;
/// The grid begins at this share of the saturated rate, below all that is offered near the limit.
const GRID_MIN_SHARE: f64 = 0.03;
/// It ends above the saturated rate by this many standard deviations of a count of one second.
const GRID_MAX_DEVIATIONS: f64 = 0.3;
/// Cells up to this multiple of the guess count as below it: those at the guess itself.
const BORDER_TIMES: f64 = 1.005;
/// A cell above the guess is just above it if at most this many times the promised share of its
/// requests is late.
const JUST_ABOVE_TIMES: f64 = 4.0;

/// Fits the wanted rate to these cells.
pub(super) fn fit(cells: &[MeasuredRate], inputs: FitInputs) -> Fit {
    let lowest = GRID_MIN_SHARE * inputs.saturated;
    let highest = inputs.saturated * (1.0 + GRID_MAX_DEVIATIONS / inputs.saturated.sqrt());
    let mut guess = inputs;
    let mut near = Vec::new();
    let mut dispersion = Dispersion {
        below: 1.0,
        above: 1.0,
        seen: 1.0,
        border: inputs.rate,
    };
    for _ in 0..FIT_ROUNDS {
        near = near_indices(cells, &guess);
        dispersion = dispersion_of(cells, &near, &guess);
        let interval = refined_interval(cells, &near, &guess, dispersion, lowest..highest);
        guess.rate = interval.rate;
        guess.growth = interval.growth;
    }
    let Misfit { factor, episodes } = misfit(cells, &near, &guess, dispersion);
    let widened = dispersion.widened(factor * (1.0 + FEW_EPISODES_WIDENING / episodes.max(1.0)));
    Fit {
        interval: refined_interval(cells, &near, &guess, widened, lowest..highest),
        dispersion,
        near,
        episodes,
    }
}

/// The indices of the near cells around a guess.
fn near_indices(cells: &[MeasuredRate], guess: &FitInputs) -> Vec<usize> {
    let width = (NEAR_WIDTH / guess.growth.elasticity()).clamp(NEAR_WIDTH_MIN, NEAR_WIDTH_MAX);
    let mut near = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let is_near = (cell.rate() / guess.rate - 1.0).abs() <= width;
        if is_near && cell.measures_the_limit() && !cell.is_saturated(guess.late_share) {
            near.push(index);
        }
    }
    near
}

fn dispersion_of(cells: &[MeasuredRate], near: &[usize], guess: &FitInputs) -> Dispersion {
    let border = BORDER_TIMES * guess.rate;
    let mut below = Vec::new();
    let mut above = Vec::new();
    let mut just_above = Vec::new();
    for index in near {
        let cell = &cells[*index];
        if cell.gave_up {
            continue;
        }
        if cell.rate() <= border {
            below.push(cell);
            continue;
        }
        above.push(cell);
        if cell.late() <= JUST_ABOVE_TIMES * guess.late_share * cell.requests() {
            just_above.push(cell);
        }
    }
    let seen = over_dispersion(&below).max(SEEN_ABOVE * over_dispersion(&just_above));
    let expected = seen.max(heavy_traffic(guess.rate / guess.saturated));
    Dispersion {
        below: expected,
        above: expected.max(over_dispersion(&above)),
        seen,
        border,
    }
}

/// The dispersion of the late requests of any queue at this use of the target.
pub(super) fn heavy_traffic(usage: f64) -> f64 {
    HEAVY_TRAFFIC / (1.0 - usage.min(USE_MAX)).powi(2)
}

/// With fewer late requests their variance is unknown.
const LATE_MIN: f64 = 3.0;

/// The variance of late requests in batches over that of independent ones; at least 1. Batches are
/// taken singly, in twos and in fours, because a cluster may be longer than a batch. The largest
/// ratio counts.
pub(super) fn over_dispersion(cells: &[&MeasuredRate]) -> f64 {
    let mut largest: f64 = 1.0;
    for merged in [1, 2, 4] {
        let (mut squares, mut late_total) = (0.0, 0.0);
        for cell in cells {
            let count = cell.batches.len() / merged;
            if count < 2 {
                continue;
            }
            let batches = &cell.batches[..count * merged];
            let late: f64 = batches.iter().map(|batch| batch.late).sum();
            let requests: f64 = batches.iter().map(|batch| batch.requests).sum();
            let share = late / requests.max(1.0);
            let mut cell_squares = 0.0;
            for group in batches.chunks(merged) {
                let group_late: f64 = group.iter().map(|batch| batch.late).sum();
                let group_requests: f64 = group.iter().map(|batch| batch.requests).sum();
                cell_squares += (group_late - share * group_requests).powi(2);
            }
            squares += cell_squares * count as f64 / (count - 1) as f64;
            late_total += late;
        }
        if late_total >= LATE_MIN {
            largest = largest.max(squares / late_total);
        }
    }
    largest
}

/// The agreement of the near cells with the fitted curve.
struct Misfit {
    /// The variance about the curve over that which chance explains; at least 1.
    factor: f64,
    /// The number of independent late episodes.
    episodes: f64,
}

/// With fewer near cells their misfit is unknown, and counts as 1.
const MISFIT_CELLS_MIN: i32 = 6;
/// Late shares are expected to be at most this multiple of the promised one, e to the power of 4: a
/// cell so far above the wanted rate says nothing about the curve.
const TIMES_MAX: f64 = 54.6;

/// Compares the near cells with the curve of the guess.
fn misfit(
    cells: &[MeasuredRate],
    near: &[usize],
    guess: &FitInputs,
    dispersion: Dispersion,
) -> Misfit {
    let (mut squares, mut expected_total, mut episodes) = (0.0, 0.0, 0.0);
    let mut count = 0;
    for index in near {
        let cell = &cells[*index];
        if cell.gave_up {
            continue;
        }
        let times = guess.growth.times(cell.rate() / guess.rate);
        let expected_share = (guess.late_share * times.min(TIMES_MAX)).min(EXPECTED_SHARE_MAX);
        let expected = cell.requests() * expected_share;
        let phi = dispersion.at_rate(cell.rate());
        squares += (cell.late() - expected).powi(2) / phi;
        expected_total += expected;
        episodes += cell.late() / phi;
        count += 1;
    }
    if count < MISFIT_CELLS_MIN {
        return Misfit {
            factor: 1.0,
            episodes,
        };
    }
    // The curve has two parameters besides its floor, its rate and its slope.
    let freedom = f64::from(count) / f64::from(count - 2);
    let factor = (squares / expected_total.max(1.0) * freedom).max(1.0);
    Misfit {
        factor,
        episodes: episodes / factor,
    }
}

/// The finer grid begins at this multiple of the lower end of the coarse interval.
const FINER_FROM: f64 = 0.8;
/// It ends at this multiple of the upper end.
const FINER_TO: f64 = 1.25;

/// The interval on the whole range of rates, then on a finer grid around the result.
fn refined_interval(
    cells: &[MeasuredRate],
    near: &[usize],
    guess: &FitInputs,
    dispersion: Dispersion,
    rates: Range<f64>,
) -> RateInterval {
    let evidence = Evidence {
        cells,
        near,
        inputs: guess,
        dispersion,
    };
    let coarse = evidence.interval(rates.start, rates.end);
    evidence.interval(
        (coarse.low * FINER_FROM).max(rates.start),
        (coarse.high * FINER_TO).min(rates.end),
    )
}
