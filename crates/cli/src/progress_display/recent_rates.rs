//! Computes the rates that a progress line shows: those of the newest cells of a series.

use crate::flags::SECOND_NS;
use diskproof_model::progress::Progress;
use diskproof_model::series::{Cell, TimeSeries};
use std::time::Duration;

/// Rates of the newest cells of a series.
pub(crate) struct RecentRates {
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

impl RecentRates {
    /// The rates of the newest cells, which cover `length`; of one cell at least.
    pub(crate) fn over(series: &TimeSeries, length: Duration) -> Self {
        let interval_ns = series.interval_ns.max(1);
        let cells = (length.as_nanos() as u64 / interval_ns).max(1) as usize;
        let newest = series.cells.len().saturating_sub(cells);
        Self::in_cells(&series.cells[newest..], interval_ns)
    }

    /// The rates in at most this many of the newest cells that are complete.
    pub(super) fn in_newest(progress: &Progress<'_>, cells: usize) -> Self {
        let newest = newest_complete(&progress.series.cells, cells);
        Self::in_cells(newest, progress.series.interval_ns)
    }

    fn in_cells(cells: &[Cell], interval_ns: u64) -> Self {
        let seconds = (cells.len().max(1) as u64 * interval_ns) as f64 / SECOND_NS as f64;
        let mut ops: u64 = 0;
        let mut bytes: u64 = 0;
        for cell in cells {
            ops += cell.ops;
            bytes += cell.bytes;
        }
        Self {
            iops: ops as f64 / seconds,
            bytes_per_second: bytes as f64 / seconds,
        }
    }
}

/// The longest latency in nanoseconds in at most this many of the newest cells that are complete;
/// `None` where nothing ended in them.
pub(super) fn recent_latency_max_ns(progress: &Progress<'_>, cells: usize) -> Option<u64> {
    newest_complete(&progress.series.cells, cells)
        .iter()
        .filter(|cell| cell.ops > 0)
        .map(|cell| cell.latency_max_ns)
        .max()
}

/// At most `count` of the newest cells. The last one is left out, because it is not over yet.
fn newest_complete(cells: &[Cell], count: usize) -> &[Cell] {
    let complete = match cells.split_last() {
        Some((_, complete)) => complete,
        None => &[],
    };
    &complete[complete.len().saturating_sub(count)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_complete_cells_lack_the_one_that_is_not_over() {
        let mut cells = Vec::new();
        for ops in 1..=4 {
            cells.push(Cell {
                ops,
                ..Cell::default()
            });
        }
        assert_eq!(newest_complete(&cells, 2), &cells[1..3]);
        assert_eq!(newest_complete(&cells, 9), &cells[..3]);
        assert!(newest_complete(&[], 2).is_empty());
    }
}
