//! Derives the rates of an acceptance test by position and over the writes: averages, the cliff
//! where a cache was full, and slow parts. Whether a disk is rejected for its rates is decided in
//! `slow_end.rs`.
//!
//! A *cell* is one of up to a thousand equal parts of the device, as the record keeps it. A *part*
//! has several cells, so many that its rate is meaningful.

use diskproof_model::accept::{
    AcceptMeasurement, MovedBytes, PositionCell, RateByPosition, SlowPart, WriteCliff,
};
use std::ops::Range;

/// A cliff is a fall of the write rate by at least this factor. The zones of a rotating disk differ
/// by two, but a pass in random order mixes them.
const CLIFF_MIN: f64 = 2.0;
/// Nearly all values before a cliff are at least this many times those after it. Chosen, not
/// measured: less is the variation within one level.
const CLIFF_APART_MIN: f64 = 1.3;
/// A border has at least this many values on each side.
const SIDE_MIN: usize = 4;
/// A part is slow if its neighbours are faster by this factor, more than the two of a rotating
/// disk's zones. Chosen, not measured.
const SLOW_PART_MIN: f64 = 2.5;
/// The usual rate is that of so many neighbours on each side.
const NEIGHBOURS: usize = 8;
/// At most this many slow parts are kept, so that a record and its page stay short.
const SLOW_PARTS_MAX: usize = 20;
/// Moving a part takes at least this time, so that a pause of some milliseconds does not show.
const PART_NS_MIN: u64 = 250_000_000;
/// Fewer parts do not show which is usual: slowest and fastest are then not named.
const PARTS_MIN: usize = 8;
/// The device has at most this many parts: a part is then a hundredth of the disk or more.
const PARTS_MAX: u64 = 100;

/// The direction of the rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Write,
    Read,
}

impl Direction {
    fn moved(self, cell: &PositionCell) -> MovedBytes {
        match self {
            Self::Write => cell.write,
            Self::Read => cell.read,
        }
    }
}

/// A border in a series, between two levels with different medians.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Border {
    /// The index of the first value beyond it.
    first_behind: usize,
    before: f64,
    behind: f64,
}

/// The border at which a series falls by the factor of a cliff; `None` where values of both sides
/// overlap.
fn cliff_border(rates: &[f64]) -> Option<Border> {
    let first_behind = change_point(rates)?;
    let before = sorted(&rates[..first_behind]);
    let behind = sorted(&rates[first_behind..]);
    let border = Border {
        first_behind,
        before: quantile(&before, 0.5),
        behind: quantile(&behind, 0.5),
    };
    let is_steep = border.before >= CLIFF_MIN * border.behind;
    let is_apart = quantile(&before, 0.1) >= CLIFF_APART_MIN * quantile(&behind, 0.9);
    if is_steep && is_apart {
        Some(border)
    } else {
        None
    }
}

/// The index at which two constants describe the logarithms of a series best.
fn change_point(rates: &[f64]) -> Option<usize> {
    if rates.len() < 2 * SIDE_MIN {
        return None;
    }
    let logs: Vec<f64> = rates.iter().map(|rate| rate.max(1.0).ln()).collect();
    let whole: f64 = logs.iter().sum();
    let count = logs.len() as f64;
    let mut most_explained = 0.0;
    let mut best_index = None;
    let mut sum = 0.0;
    for (index, log) in logs.iter().enumerate() {
        sum += log;
        let before = (index + 1) as f64;
        let is_within = index + 1 >= SIDE_MIN && logs.len() - index > SIDE_MIN;
        if !is_within {
            continue;
        }
        let difference = sum / before - (whole - sum) / (count - before);
        let explained = difference * difference * before * (count - before);
        if explained > most_explained {
            most_explained = explained;
            best_index = Some(index + 1);
        }
    }
    best_index
}

/// The values in ascending order.
pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The value at this share of a sorted list; 0 of an empty one.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let place = (last as f64 * share).round() as usize;
    sorted.get(place).copied().unwrap_or(0.0)
}

/// The rates of all cells; `None` unless every cell was moved.
pub(super) fn cell_rates(measured: &AcceptMeasurement, direction: Direction) -> Option<Vec<f64>> {
    let mut rates = Vec::new();
    for cell in &measured.cells {
        rates.push(direction.moved(cell).bytes_per_second()?);
    }
    Some(rates)
}

/// The average rate in bytes per second, and those of the slowest and the fastest part; `None`
/// where nothing was moved in this direction.
pub(super) fn rate_by_position(
    measured: &AcceptMeasurement,
    direction: Direction,
) -> Option<RateByPosition> {
    let mut total = MovedBytes::default();
    for cell in &measured.cells {
        let moved = direction.moved(cell);
        total.add(moved.bytes, moved.ns);
    }
    let mut summary = RateByPosition {
        min: None,
        average: total.bytes_per_second()?,
        max: None,
    };
    if let Some(parts) = rates_of_parts(measured, direction) {
        let rates = sorted(&parts.rates);
        summary.min = rates.first().copied();
        summary.max = rates.last().copied();
    }
    Some(summary)
}

/// The rates of parts of the device, each of several neighbouring cells.
struct Parts {
    /// The number of cells of each part.
    cells: usize,
    /// Bytes per second of each part.
    rates: Vec<f64>,
}

/// The device in parts that are large enough for meaningful rates; `None` where there are too few,
/// or the device was not moved whole.
fn rates_of_parts(measured: &AcceptMeasurement, direction: Direction) -> Option<Parts> {
    let mut total_ns = 0;
    for cell in &measured.cells {
        total_ns += direction.moved(cell).ns;
    }
    let count = (total_ns / PART_NS_MIN).min(PARTS_MAX) as usize;
    if count < PARTS_MIN {
        return None;
    }
    let cells = measured.cells.len().div_ceil(count);
    let mut rates = Vec::new();
    for part in measured.cells.chunks(cells) {
        let mut moved = MovedBytes::default();
        for cell in part {
            let own = direction.moved(cell);
            own.bytes_per_second()?;
            moved.add(own.bytes, own.ns);
        }
        rates.push(moved.bytes_per_second()?);
    }
    Some(Parts { cells, rates })
}

/// The lasting fall of the write rate, if there is one. `course` has the writes in their order.
pub(super) fn cliff(course: &[MovedBytes]) -> Option<WriteCliff> {
    let mut rates = Vec::new();
    for cell in course {
        rates.push(cell.bytes_per_second()?);
    }
    let border = cliff_border(&rates)?;
    let before = &course[..border.first_behind];
    Some(WriteCliff {
        after_bytes: before.iter().map(|cell| cell.bytes).sum(),
        before: border.before,
        behind: border.behind,
    })
}

/// Neighbouring parts that are slow.
struct SlowRun {
    /// The number of the first one.
    first: usize,
    /// The number of the first part behind them.
    behind: usize,
    /// The usual rate there, in bytes per second.
    usual: f64,
}

/// The places that are read much more slowly than their neighbours. Parts show that they are slow;
/// their cells show where.
pub(super) fn slow_parts(measured: &AcceptMeasurement) -> Vec<SlowPart> {
    let Some(parts) = rates_of_parts(measured, Direction::Read) else {
        return Vec::new();
    };
    let mut slow = Vec::new();
    let mut from = 0;
    for run in slow_runs(&parts.rates) {
        // A slow place that begins or ends within a part makes the next one slower, but less so.
        from = from.max(run.first.saturating_sub(1) * parts.cells);
        let to = measured.cells.len().min((run.behind + 1) * parts.cells);
        let Some(stretch) = slow_stretch(&measured.cells[from..to], run.usual) else {
            continue;
        };
        let (first, behind) = (from + stretch.start, from + stretch.end);
        let mut moved = MovedBytes::default();
        for cell in &measured.cells[first..behind] {
            moved.add(cell.read.bytes, cell.read.ns);
        }
        let offset_bytes = measured.cell_offset(first);
        slow.push(SlowPart {
            offset_bytes,
            length_bytes: measured.cell_offset(behind) - offset_bytes,
            bytes_per_second: moved.bytes_per_second().unwrap_or(0.0),
            usual: run.usual,
        });
        from = behind;
    }
    slow.truncate(SLOW_PARTS_MAX);
    slow
}

/// The parts that are much slower than usual, neighbours together.
fn slow_runs(rates: &[f64]) -> Vec<SlowRun> {
    let mut runs: Vec<SlowRun> = Vec::new();
    for (number, rate) in rates.iter().enumerate() {
        let usual = usual_rate(rates, number);
        if rate * SLOW_PART_MIN >= usual {
            continue;
        }
        match runs.last_mut() {
            Some(last) if last.behind == number => last.behind = number + 1,
            _ => runs.push(SlowRun {
                first: number,
                behind: number + 1,
                usual,
            }),
        }
    }
    runs
}

/// The neighbouring cells among which those that are slow outnumber the others most; `None`
/// without a slow one.
fn slow_stretch(cells: &[PositionCell], usual: f64) -> Option<Range<usize>> {
    let mut excess_max = 0;
    let mut stretch = None;
    let mut excess = 0;
    let mut first = 0;
    for (index, cell) in cells.iter().enumerate() {
        let is_slow = match cell.read.bytes_per_second() {
            Some(rate) => rate * SLOW_PART_MIN < usual,
            None => false,
        };
        if excess == 0 {
            first = index;
        }
        excess = if is_slow {
            excess + 1
        } else {
            (excess - 1_i64).max(0)
        };
        if excess > excess_max {
            excess_max = excess;
            stretch = Some(first..index + 1);
        }
    }
    stretch
}

/// The rate that is usual at a part: the median of it and its neighbours.
fn usual_rate(rates: &[f64], number: usize) -> f64 {
    let from = number.saturating_sub(NEIGHBOURS);
    let to = rates.len().min(number + NEIGHBOURS + 1);
    quantile(&sorted(&rates[from..to]), 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cliff_is_a_factor_of_two_between_levels_that_do_not_overlap() {
        let mut rates = [100.0; 12];
        rates[8..].fill(50.0);
        let border = cliff_border(&rates).unwrap();
        assert_eq!(
            (border.first_behind, border.before, border.behind),
            (8, 100.0, 50.0)
        );
        rates[8..].fill(50.1);
        assert_eq!(cliff_border(&rates), None);
        // Three values behind are too few.
        let mut late = [100.0; 12];
        late[9..].fill(10.0);
        assert_eq!(cliff_border(&late), None);
    }

    /// Cells of 1 MB, which are read at 100 MB/s, or at 20 MB/s.
    fn cells(slow: &[(usize, usize)]) -> Vec<PositionCell> {
        let mut cells = Vec::new();
        for index in 0..60 {
            let is_slow = slow.iter().any(|(from, to)| (*from..*to).contains(&index));
            let ns = if is_slow { 50_000_000 } else { 10_000_000 };
            let mut cell = PositionCell::default();
            cell.read.add(1_000_000, ns);
            cells.push(cell);
        }
        cells
    }

    /// A place that is slow from the 10th to the 30th cell, whatever the borders of parts are. One
    /// slow cell apart from it does not belong to it.
    #[test]
    fn slow_place_begins_and_ends_with_its_cells() {
        let found = |slow: &[(usize, usize)]| slow_stretch(&cells(slow), 100e6);
        assert_eq!(found(&[(10, 30)]), Some(10..30));
        assert_eq!(found(&[(10, 30), (33, 34)]), Some(10..30));
        assert_eq!(found(&[(10, 19), (20, 30)]), Some(10..30));
        assert_eq!(found(&[(0, 3)]), Some(0..3));
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn usual_rate_is_the_median_of_eight_neighbours_on_each_side() {
        let rates: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(usual_rate(&rates, 50), 50.0);
        assert_eq!(usual_rate(&rates, 0), 4.0);
        assert_eq!(usual_rate(&rates, 99), 95.0);
    }
}
