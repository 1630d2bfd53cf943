//! Graphs and bars of one line.

use crate::chart::{Range, Scale};

/// Bars of a one-line graph.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Values as bars of one line, from zero to the largest; each of at most `width` bars is the mean
/// of its part. Empty without values.
pub(super) fn sparkline(values: &[f64], width: usize) -> String {
    let mut means = Vec::new();
    for part in even_parts(values, width) {
        means.push(part.iter().sum::<f64>() / part.len() as f64);
    }
    bar_characters(&means)
}

/// The values in at most `width` parts of about the same length.
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
    let high = largest_or_zero(&worst).max(least * 4.0);
    let scale = Range::new(Scale::Log, least / 2.0, high, Vec::new());
    for value in &mut worst {
        if *value > 0.0 {
            *value = scale.place(*value);
        }
    }
    bar_characters(&worst)
}

/// The largest value, or 0.
fn largest_or_zero(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

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

/// The bar of this share of the highest one; a blank for what is no share.
fn bar_of_share(share: f64) -> char {
    if share > 0.0 {
        let eighths = (share * BARS.len() as f64).ceil() as usize;
        BARS[eighths.clamp(1, BARS.len()) - 1]
    } else {
        ' '
    }
}

/// Parts of a column, from an eighth to seven.
const PARTS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
const EIGHTHS: usize = 8;

/// A bar over this share of `columns`; what is not zero shows.
pub(super) fn bar(share: f64, columns: usize) -> String {
    if columns == 0 || share.is_nan() || share <= 0.0 {
        return String::new();
    }
    let width = share.min(1.0) * (columns * EIGHTHS) as f64;
    let eighths = width.round().max(1.0) as usize;
    let mut bar = "█".repeat(eighths / EIGHTHS);
    if let Some(part) = (eighths % EIGHTHS).checked_sub(1) {
        bar.push(PARTS[part]);
    }
    bar
}

/// Returns where a value lies on a logarithmic scale between these ends, from 0 to 1.
pub(super) fn log_share(value: f64, ends: (f64, f64)) -> f64 {
    let (low, high) = ends;
    ((value.max(low) / low).ln() / (high / low).ln()).min(1.0)
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
    fn log_share_is_even_by_decades() {
        let ends = (1e3, 1e9);
        assert_eq!((log_share(1.0, ends), log_share(1e12, ends)), (0.0, 1.0));
        assert!((log_share(1e6, ends) - 0.5).abs() < 1e-12);
    }
}
