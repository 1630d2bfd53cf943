//! Graphs and bars that fit one line of text.

use crate::chart::{Range, Scale};

/// Bars of a graph, from the lowest to the highest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws values as bars from zero to the largest, in at most `width` columns. Each bar is the mean
/// of the values in its part. Empty without values.
pub(super) fn sparkline(values: &[f64], width: usize) -> String {
    let mut means = Vec::new();
    for part in even_parts(values, width) {
        means.push(part.iter().sum::<f64>() / part.len() as f64);
    }
    bar_characters(&means)
}

/// Divides the values into at most `width` parts of about the same length, none of them empty.
pub(super) fn even_parts<T>(values: &[T], width: usize) -> impl Iterator<Item = &[T]> {
    let count = values.len().min(width);
    (0..count).map(move |index| {
        let start = index * values.len() / count;
        let end = (index + 1) * values.len() / count;
        &values[start..end]
    })
}

/// Draws like [`sparkline`], but each bar is the largest of its part, on a logarithmic scale. For
/// latencies, whose longest values are rare but important.
pub(super) fn worst_sparkline(values: &[f64], width: usize) -> String {
    let mut worst: Vec<f64> = even_parts(values, width).map(largest_or_zero).collect();
    let mut least = f64::INFINITY;
    for value in &worst {
        if *value > 0.0 {
            least = least.min(*value);
        }
    }
    // The scale begins at half of the least value, which so has a bar, and has three doublings or
    // more, so that small differences do not fill its height.
    let high = largest_or_zero(&worst).max(least * 4.0);
    let scale = Range::new(Scale::Log, least / 2.0, high, Vec::new());
    for value in &mut worst {
        if *value > 0.0 {
            *value = scale.position(*value);
        }
    }
    bar_characters(&worst)
}

/// The largest value, or 0.
fn largest_or_zero(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// A bar for each value, relative to the largest finite one.
fn bar_characters(values: &[f64]) -> String {
    let mut largest = 0.0_f64;
    for value in values {
        if value.is_finite() {
            largest = largest.max(*value);
        }
    }
    values
        .iter()
        .map(|value| bar_of_share(value / largest))
        .collect()
}

/// The bar of this share of the highest one; a blank for 0, negative values and NaN.
fn bar_of_share(share: f64) -> char {
    if share > 0.0 {
        let eighths = (share * BARS.len() as f64).ceil() as usize;
        BARS[eighths.clamp(1, BARS.len()) - 1]
    } else {
        ' '
    }
}

/// The ends of bars that fill a part of a column, from one eighth to seven.
const PARTIAL_BARS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
/// A column has as many steps.
const EIGHTHS: usize = 8;

/// A bar over this share of `columns`. Every share above 0 has at least an eighth of a column, so
/// that it shows.
pub(super) fn bar(share: f64, columns: usize) -> String {
    if columns == 0 || share.is_nan() || share <= 0.0 {
        return String::new();
    }
    let width = share.min(1.0) * (columns * EIGHTHS) as f64;
    let eighths = width.round().max(1.0) as usize;
    let mut bar = "█".repeat(eighths / EIGHTHS);
    if let Some(part) = (eighths % EIGHTHS).checked_sub(1) {
        bar.push(PARTIAL_BARS[part]);
    }
    bar
}

/// A logarithmic scale for bars.
pub(super) struct LogScale {
    /// The value without a bar; above 0.
    pub(super) low: f64,
    /// The value with the longest bar; above `low`.
    pub(super) high: f64,
}

impl LogScale {
    /// The share of the longest bar that a value has, from 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        debug_assert!(self.low > 0.0 && self.high > self.low);
        let distance = (value.max(self.low) / self.low).ln();
        let length = (self.high / self.low).ln();
        (distance / length).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparkline_begins_at_zero() {
        assert_eq!(sparkline(&[100.0, 99.0, 100.0, 30.0, 0.0], 80), "███▃ ");
        assert_eq!(sparkline(&[1.0, 1.0, 3.0, 3.0], 2), "▃█");
        assert_eq!(sparkline(&[], 80), "");
        assert_eq!(sparkline(&[0.0, 0.0], 80), "  ");
        assert_eq!(sparkline(&[f64::INFINITY, 1.0], 80).chars().count(), 2);
    }

    #[test]
    fn worst_line_keeps_the_largest_of_each_part() {
        assert_eq!(worst_sparkline(&[1.0, 1.0, 1.0, 100.0, 1.0, 1.0], 3), "▂█▂");
        assert_eq!(worst_sparkline(&[], 3), "");
        assert_eq!(worst_sparkline(&[0.0], 3), " ");
    }

    #[test]
    fn bar_shows_eighths_and_everything_above_zero() {
        assert_eq!(bar(1.0, 3), "███");
        assert_eq!(bar(0.5, 3), "█▌");
        assert_eq!(bar(1e-9, 3), "▏");
        assert_eq!((bar(0.0, 3), bar(0.5, 0)), (String::new(), String::new()));
        assert_eq!(bar(7.0, 2), "██");
    }

    #[test]
    fn log_scale_is_even_by_decades() {
        let scale = LogScale {
            low: 1e3,
            high: 1e9,
        };
        assert_eq!((scale.share(1.0), scale.share(1e12)), (0.0, 1.0));
        assert!((scale.share(1e6) - 0.5).abs() < 1e-12);
    }
}
