//! The evidence of some cells for a wanted rate: the likelihood of their late requests weighs a
//! grid of rates and slopes. The weights give the interval.

use super::cell::MeasuredRate;

/// Over-dispersion of the late requests: the variance of their counts over that of independent
/// ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dispersion {
    /// That of near cells at or below the border.
    pub(super) below: f64,
    /// That of near cells above the border.
    pub(super) above: f64,
    /// That of far cells: the measured one, without the addition for heavy traffic.
    pub(super) seen: f64,
    /// The rate that separates `below` and `above`: just above the guess of the wanted rate.
    pub(super) border: f64,
}

impl Dispersion {
    /// That of a near cell of this rate.
    pub(super) fn at_rate(&self, rate: f64) -> f64 {
        if rate > self.border {
            self.above
        } else {
            self.below
        }
    }

    pub(super) fn widened(&self, factor: f64) -> Self {
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
    /// The growth of the late share around it.
    pub(super) growth: Growth,
}

/// The growth of the late share with the rate: a part of it is late at any rate, and the rest grows
/// exponentially.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth {
    /// The part of the promised share that is late at any rate: services that vary much, or stalls
    /// that are too short to be told apart.
    pub(super) floor: f64,
    /// The elasticity of the rest: the derivative of its logarithm by the logarithm of the rate.
    pub(super) slope: f64,
}

impl Growth {
    /// What is taken for granted until cells show more: what the prior expects of a target that is
    /// used by three quarters, at p99.
    pub(super) const FIRST: Self = Self {
        floor: 0.0,
        slope: 10.0,
    };

    /// The late share at this multiple of the wanted rate, over the promised share.
    pub(super) fn times(self, rate_times: f64) -> f64 {
        self.floor + (1.0 - self.floor) * grown(self.slope, rate_times)
    }

    /// The elasticity of the whole late share at the wanted rate.
    pub(super) fn elasticity(self) -> f64 {
        self.slope * (1.0 - self.floor)
    }
}

/// The inputs of a fit besides the cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct FitInputs {
    /// The share of requests that may be late.
    pub(super) late_share: f64,
    /// The rate that the target served when it was saturated, per second.
    pub(super) saturated: f64,
    /// The first guess of the wanted rate.
    pub(super) rate: f64,
    /// The first guess of the growth.
    pub(super) growth: Growth,
}

/// The use of a target counts as at most this: the slope and the dispersion of a queue are infinite
/// at 1.
pub(super) const USE_MAX: f64 = 0.985;
/// The number of rates of the grid. More would narrow its steps and take longer.
const GRID_RATES: usize = 161;
/// The number of slopes of the grid. It is smaller, because the slope is known less precisely.
const GRID_SLOPES: usize = 31;
/// The lowest slope of the grid: lateness that hardly grows with the rate.
const SLOPE_MIN: f64 = 0.15;
/// The highest slope of the grid: lateness that begins at a step.
const SLOPE_MAX: f64 = 600.0;
/// The floors of the grid, each with its weight before a cell was measured. Without the second one
/// the curve of a target that has 0.7 of the promised 1 late request in 100 at any rate lies too
/// low: in a simulation of its own the interval held its rate in 71 of 100 searches. With it, it
/// does in 20 of 20 (`rate_study`). More floors changed nothing there, and each takes the time of
/// the whole grid. Weights chosen, so that few cells do not suggest a floor.
const FLOORS: [(f64, f64); 2] = [(0.0, 0.9), (0.65, 0.1)];
/// The prior expects this multiple of the slope of a queue, which grows with the use of the target.
const PRIOR_SLOPE_TIMES: f64 = 0.65;
/// The standard deviation of that prior, in e-folds: the larger, the less the prior decides.
const PRIOR_SLOPE_SPREAD: f64 = 0.6;
/// The prior takes no target for less used than this: its slope would approach 0.
const USE_MIN: f64 = 0.05;
/// A cell far from the wanted rate weighs at most this much, in natural logarithms. More would let
/// a single disturbed cell exclude rates.
const FAR_WEIGHT_MAX: f64 = 8.0;
/// No late share is expected to be above this. The curve has no upper end of its own.
pub(super) const EXPECTED_SHARE_MAX: f64 = 0.9;
/// The exponent of the growth is at least this, and at most as much above 0: a late share far from
/// the wanted rate is as good as 0 or 1, and its logarithm must stay finite.
const EXPONENT_MIN: f64 = -40.0;

/// The cells of a fit, with what is assumed about them.
pub(super) struct Evidence<'a> {
    pub(super) cells: &'a [MeasuredRate],
    /// Indices of the cells that show the slope.
    pub(super) near: &'a [usize],
    pub(super) inputs: &'a FitInputs,
    pub(super) dispersion: Dispersion,
}

impl Evidence<'_> {
    /// The posterior 95 % interval of the wanted rate between two rates.
    pub(super) fn interval(&self, lowest: f64, highest: f64) -> RateInterval {
        let rates = log_spaced(lowest, highest, GRID_RATES);
        let slopes = log_spaced(SLOPE_MIN, SLOPE_MAX, GRID_SLOPES);
        let near = self.near_cells();
        let far = self.far_cells();
        // For each rate and slope a row of floors.
        let mut log_weights = Vec::with_capacity(GRID_RATES * GRID_SLOPES * FLOORS.len());
        for rate in &rates {
            let far_log_weight = self.far_log_weight(&far, *rate);
            for slope in &slopes {
                let log_prior = self.log_prior(*rate, *slope);
                let grown = grown_at_cells(&near, *rate, *slope);
                for (floor, weight) in FLOORS {
                    let log_likelihood = self.near_log_likelihood(&near, &grown, floor);
                    log_weights.push(log_prior + weight.ln() + far_log_weight + log_likelihood);
                }
            }
        }
        let largest = log_weights
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        let mut by_rate = vec![0.0; GRID_RATES];
        let mut by_floor = [0.0; FLOORS.len()];
        let mut by_slope = [[0.0; GRID_SLOPES]; FLOORS.len()];
        for (index, log_weight) in log_weights.iter().enumerate() {
            let weight = (log_weight - largest).exp();
            let (row, floor) = (index / FLOORS.len(), index % FLOORS.len());
            by_rate[row / GRID_SLOPES] += weight;
            by_floor[floor] += weight;
            by_slope[floor][row % GRID_SLOPES] += weight;
        }
        let likeliest = index_of_largest(&by_floor);
        RateInterval {
            low: rates[quantile(&by_rate, 0.025)],
            rate: rates[quantile(&by_rate, 0.5)],
            high: rates[quantile(&by_rate, 0.975)],
            growth: Growth {
                floor: FLOORS[likeliest].0,
                slope: slopes[quantile(&by_slope[likeliest], 0.5)],
            },
        }
    }

    fn log_prior(&self, rate: f64, slope: f64) -> f64 {
        let usage = (rate / self.inputs.saturated).clamp(USE_MIN, USE_MAX);
        let usual_slope = PRIOR_SLOPE_TIMES * -self.inputs.late_share.ln() * usage / (1.0 - usage);
        rate.ln() - 0.5 * ((slope / usual_slope).ln() / PRIOR_SLOPE_SPREAD).powi(2)
    }

    /// The cells that show the slope. Their batches are added up once for the whole grid.
    fn near_cells(&self) -> Vec<WeighedCell> {
        let mut near = Vec::new();
        for number in self.near {
            let cell = &self.cells[*number];
            if !cell.gave_up {
                let phi = self.dispersion.at_rate(cell.rate());
                near.push(WeighedCell::new(cell, phi));
            }
        }
        near
    }

    /// The other cells: those that ended early, and those that show no slope.
    fn far_cells(&self) -> Vec<WeighedCell> {
        let mut far = Vec::new();
        for (number, cell) in self.cells.iter().enumerate() {
            if cell.gave_up || !self.near.contains(&number) {
                far.push(WeighedCell::new(cell, self.dispersion.seen));
            }
        }
        far
    }

    /// The log-likelihood of the late requests in the cells near the wanted rate, whose late shares
    /// have grown to these multiples above the floor.
    fn near_log_likelihood(&self, near: &[WeighedCell], grown: &[f64], floor: f64) -> f64 {
        let mut sum = 0.0;
        for (cell, grown) in near.iter().zip(grown) {
            let times = floor + (1.0 - floor) * grown;
            let share = (self.inputs.late_share * times).min(EXPECTED_SHARE_MAX);
            sum += (cell.late * share.ln() - cell.requests * share) / cell.phi;
        }
        sum
    }

    /// The log-weight of the other cells, which show that the wanted rate is above or below theirs.
    fn far_log_weight(&self, far: &[WeighedCell], rate: f64) -> f64 {
        let mut sum = 0.0;
        for cell in far {
            if cell.gave_up {
                sum -= if rate > cell.rate {
                    FAR_WEIGHT_MAX
                } else {
                    0.0
                };
            } else if cell.requests > 0.0 {
                sum -= self.penalty(cell, rate);
            }
        }
        sum
    }

    /// The surprise of a far cell, if the wanted rate were this one: 0 unless the cell contradicts
    /// it.
    fn penalty(&self, cell: &WeighedCell, rate: f64) -> f64 {
        let WeighedCell { late, requests, .. } = *cell;
        let promised = self.inputs.late_share;
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
        ((surprise - late + requests * promised) / cell.phi).min(FAR_WEIGHT_MAX)
    }
}

/// A cell as the grid weighs it.
struct WeighedCell {
    rate: f64,
    requests: f64,
    late: f64,
    /// The over-dispersion of its late requests.
    phi: f64,
    gave_up: bool,
}

impl WeighedCell {
    fn new(cell: &MeasuredRate, phi: f64) -> Self {
        Self {
            rate: cell.rate(),
            requests: cell.requests(),
            late: cell.late(),
            phi,
            gave_up: cell.gave_up,
        }
    }
}

/// The multiple to which a share with this elasticity grows at a multiple of the rate.
fn grown(slope: f64, rate_times: f64) -> f64 {
    let exponent = slope * (rate_times - 1.0);
    exponent.clamp(EXPONENT_MIN, -EXPONENT_MIN).exp()
}

/// The growth at each cell, if the wanted rate and the slope were these.
fn grown_at_cells(cells: &[WeighedCell], rate: f64, slope: f64) -> Vec<f64> {
    cells
        .iter()
        .map(|cell| grown(slope, cell.rate / rate))
        .collect()
}

/// So many values from `lowest` to `highest` with equal ratios between neighbours.
fn log_spaced(lowest: f64, highest: f64, count: usize) -> Vec<f64> {
    let step = (highest / lowest).ln() / (count - 1) as f64;
    (0..count)
        .map(|index| lowest * (step * index as f64).exp())
        .collect()
}

/// The index of the largest weight, of several the first.
fn index_of_largest(weights: &[f64]) -> usize {
    let mut largest = 0;
    for (index, weight) in weights.iter().enumerate() {
        if *weight > weights[largest] {
            largest = index;
        }
    }
    largest
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispersion_changes_above_the_border() {
        let dispersion = Dispersion {
            below: 2.0,
            above: 5.0,
            seen: 1.0,
            border: 500.0,
        };
        assert_eq!(dispersion.at_rate(500.0), 2.0);
        assert_eq!(dispersion.at_rate(500.1), 5.0);
        let wider = dispersion.widened(3.0);
        assert_eq!((wider.below, wider.above, wider.seen), (6.0, 15.0, 3.0));
        assert_eq!(wider.border, 500.0);
    }

    #[test]
    fn quantile_is_the_first_index_that_reaches_the_share() {
        let weights = [1.0, 2.0, 1.0];
        for (share, index) in [(0.25, 0), (0.26, 1), (0.75, 1), (0.76, 2), (1.0, 2)] {
            assert_eq!(quantile(&weights, share), index, "{share}");
        }
    }

    #[test]
    fn grid_has_equal_ratios_from_end_to_end() {
        let rates = log_spaced(1.0, 100.0, 3);
        assert_eq!(rates.len(), 3);
        for (rate, expected) in rates.iter().zip([1.0, 10.0, 100.0]) {
            assert!((rate / expected - 1.0).abs() < 1e-9, "{rates:?}");
        }
    }
}
