//! Computes mean, variance and order of a few values.

/// The arithmetic mean; NaN of no values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample variance, with n − 1 in its denominator; NaN of one value or none.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    squares / (values.len() as f64 - 1.0)
}

/// The item with the largest value, the last of several; `None` of no items.
pub(crate) fn largest_by<T>(
    items: impl IntoIterator<Item = T>,
    value: impl Fn(&T) -> f64,
) -> Option<T> {
    items
        .into_iter()
        .max_by(|a, b| value(a).total_cmp(&value(b)))
}

/// The item with the smallest value, the first of several; `None` of no items.
pub(crate) fn smallest_by<T>(
    items: impl IntoIterator<Item = T>,
    value: impl Fn(&T) -> f64,
) -> Option<T> {
    items
        .into_iter()
        .min_by(|a, b| value(a).total_cmp(&value(b)))
}

/// The median, the upper one of an even number of values. Panics where there is none.
pub(super) fn median(values: &[f64]) -> f64 {
    sorted(values)[values.len() / 2]
}

/// The largest of values that are not negative; 0 where there is none.
pub(super) fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// The values in ascending order.
pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}
