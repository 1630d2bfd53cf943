//! Horizontal bars of one line.

/// Parts of a column, from an eighth to seven.
const PARTS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
const EIGHTHS: usize = 8;

/// A bar over this share of `columns`; what is not zero shows.
pub(super) fn bar(share: f64, columns: usize) -> String {
    if columns == 0 || share.is_nan() || share <= 0.0 {
        return String::new();
    }
    let eighths = (share.min(1.0) * (columns * EIGHTHS) as f64)
        .round()
        .max(1.0) as usize;
    let mut bar = "█".repeat(eighths / EIGHTHS);
    bar.extend((eighths % EIGHTHS).checked_sub(1).map(|part| PARTS[part]));
    bar
}

/// Where a value lies on a logarithmic scale between these ends, 0 to 1.
pub(super) fn log_share(value: f64, (low, high): (f64, f64)) -> f64 {
    ((value.max(low) / low).ln() / (high / low).ln()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
