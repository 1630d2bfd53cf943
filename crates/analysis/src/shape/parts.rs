//! The parts of a shape: points and what their neighbours suggest for them, dips, and the partition
//! of a curve into stretches of one level.

use std::ops::Range;

/// A point, or a group of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ShapePoint {
    /// The index in the curve; of a group that of its slowest point.
    pub index: usize,
    /// The start of the sample; of a group that of its first point.
    pub offset_bytes: u64,
    /// The natural logarithm of the rate in bytes per second; of a group the mean.
    pub ln_rate: f64,
}

/// A stretch that is slower than what lies on both sides of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dip {
    /// First of its points, as an index into `points`.
    pub first: usize,
    /// Last of its points.
    pub last: usize,
    /// Its rate, in bytes per second.
    pub rate: f64,
    /// The rate of its neighbourhood, in bytes per second.
    pub neighbours_rate: f64,
}

impl Dip {
    /// True if a point, as an index into `points`, is one of the dip's.
    pub(crate) fn contains(&self, point: usize) -> bool {
        (self.first..=self.last).contains(&point)
    }
}

/// A stretch of one rate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    /// Indices into `points`.
    pub members: Vec<usize>,
    /// Mean logarithm of the rate.
    pub ln_rate: f64,
}

impl Level {
    /// Its rate, in bytes per second.
    pub(crate) fn rate(&self) -> f64 {
        self.ln_rate.exp()
    }
}

/// A point and what its neighbours suggest for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stray {
    /// Index into `points`.
    pub point: usize,
    /// Its rate, in bytes per second.
    pub rate: f64,
    /// The nearest rate that would fit between its neighbours.
    pub expected: f64,
}

impl Stray {
    /// How far it is off, as a share of what is expected.
    pub(crate) fn distance(&self) -> f64 {
        (self.rate / self.expected - 1.0).abs()
    }
}

/// How much of the surface a curve covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All of it, or nearly.
    Whole,
    /// A part.
    Part,
}

/// Neighbours on each side of a point. Three make a median that one outlier does not move.
pub(super) const NEIGHBOURS: usize = 3;
/// The upper quartile of the distances that `scatter` takes, for normally distributed noise of
/// standard deviation 1; found by simulation (a test holds it).
const NORMAL_DISTANCE_QUARTILE: f64 = 0.934;

/// The scatter of a curve, as a standard deviation of logarithms: how far points lie outside of
/// what their neighbours on the left and on the right suggest. On a staircase that only falls this
/// is 0, however steep it is; outliers and dips up to a quarter of the points do not change it.
pub(super) fn scatter(values: &[f64]) -> f64 {
    let mut distances: Vec<f64> = outside(values).map(|(_, distance)| distance).collect();
    distances.sort_by(f64::total_cmp);
    let quartile = distances.get(distances.len() * 3 / 4);
    quartile.map_or(0.0, |quartile| quartile / NORMAL_DISTANCE_QUARTILE)
}

/// Each inner point and its distance from the interval between the medians of its neighbours on
/// both sides.
pub(super) fn outside(values: &[f64]) -> impl Iterator<Item = (usize, f64)> {
    let inner = NEIGHBOURS..values.len().saturating_sub(NEIGHBOURS);
    inner.map(|i| {
        let left = median(&values[i - NEIGHBOURS..i]);
        let right = median(&values[i + 1..=i + NEIGHBOURS]);
        let distance = (values[i] - left.max(right)).max(left.min(right) - values[i]);
        (i, distance.max(0.0))
    })
}

/// The mean; 0 without values.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = values.fold((0, 0.0), |(n, sum), value| (n + 1, sum + value));
    if n == 0 { 0.0 } else { sum / f64::from(n) }
}

/// The middle value, or the mean of both where there are two; 0 without values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Penalty of a further level, in units of scatter² × ln(points): 2 is Schwarz's criterion for a
/// new mean; half as much again makes noise that is not normal break levels rarely.
const LEVEL_PENALTY: f64 = 3.0;

/// Sums of the deviations of the values up to a point from their common mean, and of the squares.
#[derive(Clone, Copy, Default)]
struct RunningSum {
    sum: f64,
    squares: f64,
}

/// The squared deviations of the values of a stretch from their own mean.
fn cost(sums: &[RunningSum], stretch: Range<usize>) -> f64 {
    let (begin, end) = (sums[stretch.start], sums[stretch.end]);
    let sum = end.sum - begin.sum;
    let squares = end.squares - begin.squares;
    (squares - sum * sum / stretch.len() as f64).max(0.0)
}

/// The partition into stretches of one level that costs least: squared deviations plus a penalty
/// for each stretch (optimal partitioning; Jackson et al.,
/// "An algorithm for optimal partitioning of data on an interval", 2005), with the starts that can
/// no longer win dropped (Killick et al., "Optimal detection of changepoints with a linear
/// computational cost", 2012). `prices[end]` is the least cost of the values before `end`, and
/// `starts[end]` the start of the last stretch that gives it.
pub(super) fn stretches(values: &[f64], scatter: f64) -> Vec<Range<usize>> {
    let n = values.len();
    let penalty = LEVEL_PENALTY * scatter * scatter * (n.max(2) as f64).ln();
    let centre = mean(values.iter().copied());
    let mut sums = vec![RunningSum::default()];
    for value in values {
        let last = sums[sums.len() - 1];
        sums.push(RunningSum {
            sum: last.sum + (value - centre),
            squares: last.squares + (value - centre).powi(2),
        });
    }
    let (mut prices, mut starts, mut candidates) = (vec![-penalty], vec![0], vec![0usize]);
    for end in 1..=n {
        let mut start = 0;
        let mut price = f64::INFINITY;
        for candidate in &candidates {
            let through = prices[*candidate] + cost(&sums, *candidate..end);
            if through < price {
                start = *candidate;
                price = through;
            }
        }
        candidates.retain(|candidate| {
            prices[*candidate] + cost(&sums, *candidate..end) <= price + penalty
        });
        candidates.push(end);
        prices.push(price + penalty);
        starts.push(start);
    }
    let mut ends = vec![];
    let mut end = n;
    while end > 0 {
        ends.push(starts[end]..end);
        end = starts[end];
    }
    ends.reverse();
    ends
}
