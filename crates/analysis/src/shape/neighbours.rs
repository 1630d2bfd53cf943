//! What the neighbours of a point suggest for it, and how far points scatter around that.

/// Neighbours on each side of a point. Three make a median that one outlier does not move.
pub(super) const NEIGHBOURS: usize = 3;
/// The upper quartile of the distances that `scatter` takes, for normally distributed noise of
/// standard deviation 1; found by simulation (a test holds it).
const NORMAL_QUARTILE: f64 = 0.934;

/// How far points lie outside of what their neighbours on the left and on the right suggest. On a
/// staircase that only falls this is 0, however steep it is; outliers and dips up to a quarter of
/// the points do not move it.
pub(super) fn scatter(values: &[f64]) -> f64 {
    let mut distances: Vec<f64> = outside(values).map(|(_, distance)| distance).collect();
    distances.sort_by(f64::total_cmp);
    let quartile = distances.get(distances.len() * 3 / 4);
    quartile.map_or(0.0, |quartile| quartile / NORMAL_QUARTILE)
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

pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = values.fold((0, 0.0), |(n, sum), value| (n + 1, sum + value));
    if n == 0 { 0.0 } else { sum / f64::from(n) }
}

/// The middle value; the mean of both where there are two.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}
