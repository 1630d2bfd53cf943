//! Rates by position and over the writes: a cliff, and slow parts.

use super::cells::cell_offset;
use diskproof_model::accept::{
    AcceptMeasurement, MovedBytes, PositionCell, RateByPosition, SlowPart, WriteCliff,
};

/// A cliff: a fall by this factor.
const CLIFF: f64 = 2.0;
/// Nearly all writes before a cliff are faster by this factor than nearly all behind it.
const CLIFF_APART: f64 = 1.3;
/// Values on each side of a border.
const SIDE_MIN: usize = 4;
/// A part that is slower than its neighbours by this factor is slow.
const SLOW_PART: f64 = 2.5;
/// Neighbours on each side that say what is usual.
const NEIGHBOURS: usize = 8;
/// Slow parts that are kept.
const SLOW_PARTS_MAX: usize = 20;
/// A part takes so long at least, in nanoseconds: a pause of some milliseconds is no part of it.
const PART_NS: u64 = 250_000_000;
const PARTS_MIN: usize = 8;
const PARTS_MAX: u64 = 100;

/// The rates of one direction.
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

/// A border in a series: before and behind it the medians differ.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Border {
    /// The number of the first value behind it.
    at: usize,
    before: f64,
    behind: f64,
}

/// The border at which a series falls by the factor of a cliff, with nearly all values on each side
/// apart.
fn border(rates: &[f64]) -> Option<Border> {
    let at = change_point(rates)?;
    let (before, behind) = (sorted(&rates[..at]), sorted(&rates[at..]));
    let found = Border {
        at,
        before: quantile(&before, 0.5),
        behind: quantile(&behind, 0.5),
    };
    let is_steep = found.before >= CLIFF * found.behind;
    let is_apart = quantile(&before, 0.1) >= CLIFF_APART * quantile(&behind, 0.9);
    if is_steep && is_apart {
        Some(found)
    } else {
        None
    }
}

/// Where two constants describe the logarithms best.
fn change_point(rates: &[f64]) -> Option<usize> {
    if rates.len() < 2 * SIDE_MIN {
        return None;
    }
    let logs: Vec<f64> = rates.iter().map(|rate| rate.max(1.0).ln()).collect();
    let whole: f64 = logs.iter().sum();
    let count = logs.len() as f64;
    let mut best = (0.0, None);
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
        if explained > best.0 {
            best = (explained, Some(index + 1));
        }
    }
    best.1
}

pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let place = (last as f64 * share).round() as usize;
    sorted.get(place).copied().unwrap_or(0.0)
}

/// The rates of all cells; `None` unless every one has been moved.
pub(super) fn cell_rates(measured: &AcceptMeasurement, direction: Direction) -> Option<Vec<f64>> {
    let mut rates = Vec::new();
    for cell in &measured.cells {
        rates.push(direction.moved(cell).bytes_per_second()?);
    }
    Some(rates)
}

/// Average rate, and that of the slowest and of the fastest part.
pub(super) fn rate_by_position(
    measured: &AcceptMeasurement,
    direction: Direction,
) -> Option<RateByPosition> {
    let mut all = MovedBytes::default();
    for cell in &measured.cells {
        let moved = direction.moved(cell);
        all.add(moved.bytes, moved.ns);
    }
    let mut found = RateByPosition {
        min: None,
        average: all.bytes_per_second()?,
        max: None,
    };
    if let Some(parts) = parts(measured, direction) {
        let rates = sorted(&parts.rates);
        found.min = rates.first().copied();
        found.max = rates.last().copied();
    }
    Some(found)
}

/// Rates of neighbouring cells together.
struct Parts {
    /// Cells of a part.
    cells: usize,
    rates: Vec<f64>,
}

/// The device in parts that are large enough for their rates to mean something; `None` where it has
/// too few of them, or was not moved whole.
fn parts(measured: &AcceptMeasurement, direction: Direction) -> Option<Parts> {
    let mut all_ns = 0;
    for cell in &measured.cells {
        all_ns += direction.moved(cell).ns;
    }
    let count = (all_ns / PART_NS).min(PARTS_MAX) as usize;
    if count < PARTS_MIN {
        return None;
    }
    let cells = measured.cells.len().div_ceil(count);
    let mut rates = Vec::new();
    for part in measured.cells.chunks(cells) {
        let mut moved = MovedBytes::default();
        for cell in part {
            let one = direction.moved(cell);
            one.bytes_per_second()?;
            moved.add(one.bytes, one.ns);
        }
        rates.push(moved.bytes_per_second()?);
    }
    Some(Parts { cells, rates })
}

/// Where the rate of the writes fell for good.
pub(super) fn cliff(course: &[MovedBytes]) -> Option<WriteCliff> {
    let mut rates = Vec::new();
    for cell in course {
        rates.push(cell.bytes_per_second()?);
    }
    let found = border(&rates)?;
    Some(WriteCliff {
        after_bytes: course[..found.at].iter().map(|cell| cell.bytes).sum(),
        before: found.before,
        behind: found.behind,
    })
}

/// Parts that are read much more slowly than what lies beside them.
pub(super) fn slow_parts(measured: &AcceptMeasurement) -> Vec<SlowPart> {
    let Some(parts) = parts(measured, Direction::Read) else {
        return Vec::new();
    };
    let rates = &parts.rates;
    let mut found: Vec<SlowPart> = Vec::new();
    for (number, rate) in rates.iter().enumerate() {
        let usual = usual(rates, number);
        if rate * SLOW_PART >= usual {
            continue;
        }
        let offset_bytes = cell_offset(measured, number * parts.cells);
        let end_bytes = cell_offset(measured, (number + 1) * parts.cells);
        match found.last_mut() {
            Some(last) if last.offset_bytes + last.length_bytes == offset_bytes => {
                last.length_bytes = end_bytes - last.offset_bytes;
                last.bytes_per_second = last.bytes_per_second.min(*rate);
            }
            _ => found.push(SlowPart {
                offset_bytes,
                length_bytes: end_bytes - offset_bytes,
                bytes_per_second: *rate,
                usual,
            }),
        }
    }
    found.truncate(SLOW_PARTS_MAX);
    found
}

/// The median of a part and its neighbours.
fn usual(rates: &[f64], number: usize) -> f64 {
    let from = number.saturating_sub(NEIGHBOURS);
    let to = rates.len().min(number + NEIGHBOURS + 1);
    quantile(&sorted(&rates[from..to]), 0.5)
}
