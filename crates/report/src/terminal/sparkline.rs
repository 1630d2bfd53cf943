//! Graphs of one line.

use crate::chart::{Range, Scale};

/// Bars of a one-line graph.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Values as bars of one line, from zero to the largest; each of at most `width` bars is the mean
/// of its part. Empty without values.
pub(super) fn sparkline(values: &[f64], width: usize) -> String {
    let parts = values.len().min(width);
    if parts == 0 {
        return String::new();
    }
    let part = |k: usize| &values[k * values.len() / parts..(k + 1) * values.len() / parts];
    let means: Vec<f64> = (0..parts)
        .map(|k| part(k).iter().sum::<f64>() / part(k).len() as f64)
        .collect();
    bars(&means)
}

/// As [`sparkline`], but each bar is the largest of its part, on a logarithmic scale. For
/// latencies, whose longest values are rare but important.
pub(super) fn worst_line(values: &[f64], width: usize) -> String {
    let parts = values.len().min(width);
    let part = |k: usize| {
        values[k * values.len() / parts..(k + 1) * values.len() / parts]
            .iter()
            .copied()
            .fold(0.0, f64::max)
    };
    let worst: Vec<f64> = (0..parts).map(part).collect();
    let least = worst
        .iter()
        .copied()
        .filter(|value| *value > 0.0)
        .fold(f64::INFINITY, f64::min);
    let scale = Range {
        scale: Scale::Log,
        low: least / 2.0,
        high: worst.iter().copied().fold(0.0, f64::max).max(least * 4.0),
        ticks: Vec::new(),
    };
    bars(
        &worst
            .iter()
            .map(|value| {
                if *value > 0.0 && least.is_finite() {
                    scale.place(*value)
                } else {
                    0.0
                }
            })
            .collect::<Vec<_>>(),
    )
}

fn bars(values: &[f64]) -> String {
    let largest = values
        .iter()
        .copied()
        .filter(|value| value.is_finite())
        .fold(0.0, f64::max);
    let bar = |value: &f64| match value / largest {
        part if part > 0.0 => {
            BARS[((part * BARS.len() as f64).ceil() as usize).clamp(1, BARS.len()) - 1]
        }
        _ => ' ',
    };
    values.iter().map(bar).collect()
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
        assert_eq!(worst_line(&[1.0, 1.0, 1.0, 100.0, 1.0, 1.0], 3), "▂█▂");
        assert_eq!(worst_line(&[], 3), "");
        assert_eq!(worst_line(&[0.0], 3), " ");
    }
}
