//! The fit of a rate search: the rate at which the promised share of requests is late, with its
//! 95 % interval. The likelihood of the late requests weighs a grid of rates and slopes. Late
//! requests come in clusters, so their counts are over-dispersed.

use super::cell::MeasuredRate;
use std::ops::Range;

/// Over-dispersion of the late requests: the variance of their counts over that of independent
/// ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dispersion {
    /// In cells at or below the border.
    pub(super) below: f64,
    /// In cells above the border.
    pub(super) above: f64,
    /// In cells below the border, without the addition for heavy traffic.
    pub(super) seen: f64,
    /// Just above the guess of the wanted rate.
    pub(super) border: f64,
}

impl Dispersion {
    fn near_rate(&self, rate: f64) -> f64 {
        if rate > self.border {
            self.above
        } else {
            self.below
        }
    }

    fn widened(&self, factor: f64) -> Self {
        Self {
            below: self.below * factor,
            above: self.above * factor,
            seen: self.seen * factor,
            border: self.border,
        }
    }
}

/// The wanted rate, and how fast lateness grows there.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateInterval {
    /// Lower end of the 95 % interval.
    pub(super) low: f64,
    /// The median.
    pub(super) rate: f64,
    /// Upper end.
    pub(super) high: f64,
    /// The elasticity of the late share: the derivative of its logarithm by the logarithm of the
    /// rate.
    pub(super) slope: f64,
}

/// The result of a fit to some cells.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    pub(super) interval: RateInterval,
    pub(super) dispersion: Dispersion,
    /// Indices of the cells that are near enough to the wanted rate to show the slope.
    pub(super) used: Vec<usize>,
    /// The number of independent late episodes in these cells.
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
                slope: FIRST_SLOPE,
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

/// The slope until cells show one.
pub(super) const FIRST_SLOPE: f64 = 10.0;

/// The inputs of a fit besides the cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// The share of requests that may be late.
    pub(super) late_share: f64,
    /// The rate that the target served when it was saturated, per second.
    pub(super) saturated: f64,
    /// The first guess of the wanted rate.
    pub(super) rate: f64,
    /// The first guess of the slope.
    pub(super) slope: f64,
}

/// Cells within this multiple of 1/slope around the guess show the slope. The others only show
/// that the wanted rate is above or below theirs.
const NEAR: f64 = 1.6;
/// The width of that range is at least this share of the rate.
const NEAR_MIN: f64 = 0.01;
/// It is at most this share of the rate.
const NEAR_MAX: f64 = 0.28;
/// The fit is repeated this often, each time from the guess of the one before.
const ROUNDS: usize = 3;
/// The dispersion below the wanted rate is at least this share of that just above it.
const SEEN_ABOVE: f64 = 0.5;
/// Any queue clusters its late requests by this over the square of its idle share near saturation,
/// found by simulation of M/M/c, M/D/c and M/G/c (1.4 to 2.3).
const HEAVY_TRAFFIC: f64 = 1.5;
/// A target with a higher use counts as saturated.
const USE_MAX: f64 = 0.985;
/// The interval is wider by this over the number of independent episodes, similar to Student's t.
const STUDENT: f64 = 2.0;
/// The grid begins at this share of the saturated rate.
const GRID_FROM: f64 = 0.03;
/// It ends above the saturated rate by this many standard deviations of a count of one second.
const GRID_TO_DEVIATIONS: f64 = 0.3;
/// Cells up to this multiple of the guess count as below it.
const BORDER: f64 = 1.005;
/// Cells above the guess are just above it up to this multiple of the promised late share.
const JUST_ABOVE_TIMES: f64 = 4.0;

/// Fits the wanted rate to these cells.
pub(super) fn fit(cells: &[MeasuredRate], known: Known) -> Fit {
    let lowest = GRID_FROM * known.saturated;
    let highest = known.saturated * (1.0 + GRID_TO_DEVIATIONS / known.saturated.sqrt());
    let mut guess = known;
    let mut used = Vec::new();
    let mut dispersion = Dispersion {
        below: 1.0,
        above: 1.0,
        seen: 1.0,
        border: known.rate,
    };
    for _ in 0..ROUNDS {
        used = near_cells(cells, &guess);
        dispersion = dispersion_of(cells, &used, &guess);
        let interval = refined(cells, &used, &guess, dispersion, lowest..highest);
        guess.rate = interval.rate;
        guess.slope = interval.slope;
    }
    let (misfit, episodes) = misfit(cells, &used, &guess, dispersion);
    let widened = dispersion.widened(misfit * (1.0 + STUDENT / episodes.max(1.0)));
    Fit {
        interval: refined(cells, &used, &guess, widened, lowest..highest),
        dispersion,
        used,
        episodes,
    }
}

fn near_cells(cells: &[MeasuredRate], guess: &Known) -> Vec<usize> {
    let width = (NEAR / guess.slope).clamp(NEAR_MIN, NEAR_MAX);
    let mut near = Vec::new();
    for (number, cell) in cells.iter().enumerate() {
        let is_near = (cell.rate() / guess.rate - 1.0).abs() <= width;
        if is_near && cell.measures_the_limit() && !cell.is_saturated(guess.late_share) {
            near.push(number);
        }
    }
    near
}

fn dispersion_of(cells: &[MeasuredRate], used: &[usize], guess: &Known) -> Dispersion {
    let border = BORDER * guess.rate;
    let (mut below, mut above, mut just_above) = (Vec::new(), Vec::new(), Vec::new());
    for number in used {
        let cell = &cells[*number];
        if cell.is_over {
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
    let idle = 1.0 - (guess.rate / guess.saturated).min(USE_MAX);
    let expected = seen.max(HEAVY_TRAFFIC / (idle * idle));
    Dispersion {
        below: expected,
        above: expected.max(over_dispersion(&above)),
        seen,
        border,
    }
}

/// With fewer late requests their variance is unknown.
const LATE_MIN: f64 = 3.0;

/// The variance of late requests in batches over that of independent ones; at least 1. Batches are
/// taken singly, in twos and in fours, and the largest ratio counts.
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
            let mut own = 0.0;
            for together in batches.chunks(merged) {
                let seen: f64 = together.iter().map(|batch| batch.late).sum();
                let offered: f64 = together.iter().map(|batch| batch.requests).sum();
                own += (seen - share * offered).powi(2);
            }
            squares += own * count as f64 / (count - 1) as f64;
            late_total += late;
        }
        if late_total >= LATE_MIN {
            largest = largest.max(squares / late_total);
        }
    }
    largest
}

/// How many times worse the cells fit than chance explains, and the number of independent late
/// episodes.
fn misfit(
    cells: &[MeasuredRate],
    used: &[usize],
    guess: &Known,
    dispersion: Dispersion,
) -> (f64, f64) {
    let (mut squares, mut expected_total, mut episodes) = (0.0, 0.0, 0.0);
    let mut count = 0;
    for number in used {
        let cell = &cells[*number];
        if cell.is_over {
            continue;
        }
        let growth = (guess.slope * (cell.rate() / guess.rate - 1.0)).clamp(-30.0, 4.0);
        let expected = cell.requests() * (guess.late_share * growth.exp()).min(0.9);
        let phi = dispersion.near_rate(cell.rate());
        squares += (cell.late() - expected).powi(2) / phi;
        expected_total += expected;
        episodes += cell.late() / phi;
        count += 1;
    }
    if count < 6 {
        return (1.0, episodes);
    }
    let freedom = f64::from(count) / f64::from(count - 2);
    let misfit = (squares / expected_total.max(1.0) * freedom).max(1.0);
    (misfit, episodes / misfit)
}

/// The finer grid begins at this multiple of the lower end of the coarse interval.
const FINER_FROM: f64 = 0.8;
/// It ends at this multiple of the upper end.
const FINER_TO: f64 = 1.25;

/// The interval on the whole range of rates, then on a finer grid around the result.
fn refined(
    cells: &[MeasuredRate],
    used: &[usize],
    guess: &Known,
    dispersion: Dispersion,
    rates: Range<f64>,
) -> RateInterval {
    let evidence = Evidence {
        cells,
        used,
        known: guess,
        dispersion,
    };
    let coarse = evidence.interval(rates.start, rates.end);
    evidence.interval(
        (coarse.low * FINER_FROM).max(rates.start),
        (coarse.high * FINER_TO).min(rates.end),
    )
}

/// Rates of the grid.
const RATES: usize = 161;
/// Slopes of the grid.
const SLOPES: usize = 31;
/// The lowest slope of the grid: lateness that hardly grows with the rate.
const SLOPE_MIN: f64 = 0.15;
/// The highest slope of the grid: lateness that begins at a step.
const SLOPE_MAX: f64 = 600.0;
/// The prior expects this multiple of the slope of a queue, which grows with the use of the target.
const SLOPE_PRIOR: f64 = 0.65;
/// The standard deviation of that prior, in e-folds.
const SLOPE_SPREAD: f64 = 0.6;
/// A cell far from the wanted rate weighs at most this much, in natural logarithms.
const FAR_MAX: f64 = 8.0;

/// The cells of a fit, with what is assumed about them.
pub(super) struct Evidence<'a> {
    pub(super) cells: &'a [MeasuredRate],
    /// Indices of the cells that show the slope.
    pub(super) used: &'a [usize],
    pub(super) known: &'a Known,
    pub(super) dispersion: Dispersion,
}

impl Evidence<'_> {
    /// The posterior 95 % interval of the wanted rate between two rates.
    pub(super) fn interval(&self, lowest: f64, highest: f64) -> RateInterval {
        let rates = log_spaced(lowest, highest, RATES);
        let slopes = log_spaced(SLOPE_MIN, SLOPE_MAX, SLOPES);
        let (near, far) = (self.near(), self.far());
        let mut grid = Vec::with_capacity(RATES * SLOPES);
        for rate in &rates {
            let sides = self.sides(&far, *rate);
            for slope in &slopes {
                let likelihood = self.likelihood(&near, *rate, *slope);
                grid.push(self.prior(*rate, *slope) + sides + likelihood);
            }
        }
        let best = grid.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut by_rate = vec![0.0; RATES];
        let mut by_slope = vec![0.0; SLOPES];
        for (index, log_weight) in grid.iter().enumerate() {
            let weight = (log_weight - best).exp();
            by_rate[index / SLOPES] += weight;
            by_slope[index % SLOPES] += weight;
        }
        RateInterval {
            low: rates[quantile(&by_rate, 0.025)],
            rate: rates[quantile(&by_rate, 0.5)],
            high: rates[quantile(&by_rate, 0.975)],
            slope: slopes[quantile(&by_slope, 0.5)],
        }
    }

    fn prior(&self, rate: f64, slope: f64) -> f64 {
        let used = (rate / self.known.saturated).clamp(0.05, USE_MAX);
        let usual = SLOPE_PRIOR * -self.known.late_share.ln() * used / (1.0 - used);
        rate.ln() - 0.5 * ((slope / usual).ln() / SLOPE_SPREAD).powi(2)
    }

    /// The cells that show the slope, each added up once for the whole grid.
    fn near(&self) -> Vec<WeighedCell> {
        let mut near = Vec::new();
        for number in self.used {
            let cell = &self.cells[*number];
            if !cell.is_over {
                let phi = self.dispersion.near_rate(cell.rate());
                near.push(WeighedCell::new(cell, phi));
            }
        }
        near
    }

    /// The other cells: those that ended early, and those that show no slope.
    fn far(&self) -> Vec<WeighedCell> {
        let mut far = Vec::new();
        for (number, cell) in self.cells.iter().enumerate() {
            if cell.is_over || !self.used.contains(&number) {
                far.push(WeighedCell::new(cell, self.dispersion.seen));
            }
        }
        far
    }

    /// The log-likelihood of the late requests in the cells near the wanted rate.
    fn likelihood(&self, near: &[WeighedCell], rate: f64, slope: f64) -> f64 {
        let mut sum = 0.0;
        for cell in near {
            let share_log = (self.known.late_share.ln() + slope * (cell.rate / rate - 1.0))
                .clamp(-40.0, 0.9f64.ln());
            sum += (cell.late * share_log - cell.requests * share_log.exp()) / cell.phi;
        }
        sum
    }

    /// The log-weight of the other cells, which show that the wanted rate is above or below theirs.
    fn sides(&self, far: &[WeighedCell], rate: f64) -> f64 {
        let mut sum = 0.0;
        for cell in far {
            if cell.is_over {
                sum -= if rate > cell.rate { FAR_MAX } else { 0.0 };
            } else if cell.requests > 0.0 {
                sum -= self.penalty(cell, rate);
            }
        }
        sum
    }

    fn penalty(&self, cell: &WeighedCell, rate: f64) -> f64 {
        let (late, requests, promised) = (cell.late, cell.requests, self.known.late_share);
        let share = late / requests;
        let is_contradicted = (share > promised) == (rate > cell.rate);
        if !is_contradicted {
            return 0.0;
        }
        let surprise = if late > 0.0 {
            late * (share / promised).ln()
        } else {
            0.0
        };
        ((surprise - late + requests * promised) / cell.phi).min(FAR_MAX)
    }
}

/// A cell as the grid weighs it.
struct WeighedCell {
    rate: f64,
    requests: f64,
    late: f64,
    /// The over-dispersion of its late requests.
    phi: f64,
    is_over: bool,
}

impl WeighedCell {
    fn new(cell: &MeasuredRate, phi: f64) -> Self {
        Self {
            rate: cell.rate(),
            requests: cell.requests(),
            late: cell.late(),
            phi,
            is_over: cell.is_over,
        }
    }
}

fn log_spaced(lowest: f64, highest: f64, count: usize) -> Vec<f64> {
    let step = (highest / lowest).ln() / (count - 1) as f64;
    (0..count)
        .map(|index| lowest * (step * index as f64).exp())
        .collect()
}

/// The first index up to which at least this share of the weights lies.
fn quantile(weights: &[f64], share: f64) -> usize {
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    for (index, weight) in weights.iter().enumerate() {
        sum += weight;
        if sum >= share * total {
            return index;
        }
    }
    weights.len() - 1
}
