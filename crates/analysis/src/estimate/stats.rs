//! Mean, variance and order of a few values.

/// Arithmetic mean.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sample variance.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// The item with the largest value, the last of several.
pub(crate) fn largest_by<T>(
    items: impl IntoIterator<Item = T>,
    value: impl Fn(&T) -> f64,
) -> Option<T> {
    items
        .into_iter()
        .max_by(|a, b| value(a).total_cmp(&value(b)))
}

/// The item with the smallest value, the first of several.
pub(crate) fn smallest_by<T>(
    items: impl IntoIterator<Item = T>,
    value: impl Fn(&T) -> f64,
) -> Option<T> {
    items
        .into_iter()
        .min_by(|a, b| value(a).total_cmp(&value(b)))
}

/// Of values that are not empty.
pub(super) fn median(values: &[f64]) -> f64 {
    sorted(values)[values.len() / 2]
}

pub(super) fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}
