//! Rates by position and over the writes: a cliff, slow parts, and a border beyond which a device
//! is many times slower.

use super::whole::cell_offset;
use diskproof_model::accept::{
    AcceptMeasurement, MovedBytes, PositionCell, RateByPosition, SlowPart, WriteCliff,
};

/// What is behind a border is at least so many times slower. Zones of a rotating disk differ by
/// two, and its parts by less.
const SLOWER: f64 = 4.0;
/// Nearly all of one side is at least so many times slower than nearly all of the other one.
const APART: f64 = 2.0;
/// A cliff: a fall by this factor.
const CLIFF: f64 = 2.0;
const CLIFF_APART: f64 = 1.3;
/// Values on each side of a border.
const SIDE_MIN: usize = 4;
/// A part that is slower than its neighbours by this factor is slow.
const SLOW_PART: f64 = 2.5;
/// Neighbours on each side that say what is usual.
const NEIGHBOURS: usize = 8;
/// Slow parts that are kept.
const SLOW_PARTS_MAX: usize = 20;
/// A single slow cell may be a pause.
const SLOW_CELLS_MIN: usize = 2;

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
pub(super) struct Border {
    /// The number of the first value behind it.
    pub at: usize,
    pub before: f64,
    pub behind: f64,
}

/// The border at which a series falls by this factor, with nearly all values on each side apart by
/// `apart`.
pub(super) fn border(rates: &[f64], factor: f64, apart: f64) -> Option<Border> {
    let at = change_point(rates)?;
    let (before, behind) = (sorted(&rates[..at]), sorted(&rates[at..]));
    let found = Border {
        at,
        before: quantile(&before, 0.5),
        behind: quantile(&behind, 0.5),
    };
    let is_steep = found.before >= factor * found.behind;
    let is_apart = quantile(&before, 0.1) >= apart * quantile(&behind, 0.9);
    if is_steep && is_apart { Some(found) } else { None }
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
        let is_within = index + 1 >= SIDE_MIN && logs.len() - index - 1 >= SIDE_MIN;
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

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let place = (last as f64 * share).round() as usize;
    sorted.get(place).copied().unwrap_or(0.0)
}

/// The rates of all cells; `None` unless every one has been moved.
fn cell_rates(measured: &AcceptMeasurement, direction: Direction) -> Option<Vec<f64>> {
    let mut rates = Vec::new();
    for cell in &measured.cells {
        rates.push(direction.moved(cell).bytes_per_second()?);
    }
    Some(rates)
}

/// The address beyond which the device is many times slower, in one direction at least.
pub(super) fn slow_from(measured: &AcceptMeasurement) -> Option<u64> {
    for direction in [Direction::Write, Direction::Read] {
        if let Some(rates) = cell_rates(measured, direction)
            && let Some(found) = border(&rates, SLOWER, APART)
        {
            return Some(cell_offset(measured, found.at));
        }
    }
    None
}

/// Slowest, average and fastest rate by position.
pub(super) fn rate_by_position(measured: &AcceptMeasurement, direction: Direction) -> Option<RateByPosition> {
    let mut all = MovedBytes::default();
    let mut rates = Vec::new();
    for cell in &measured.cells {
        let moved = direction.moved(cell);
        all.add(moved.bytes, moved.ns);
        rates.extend(moved.bytes_per_second());
    }
    let average = all.bytes_per_second()?;
    let by_rate = sorted(&rates);
    Some(RateByPosition {
        min: quantile(&by_rate, 0.01),
        average,
        max: quantile(&by_rate, 0.99),
    })
}

/// Where the rate of the writes fell for good.
pub(super) fn cliff(course: &[MovedBytes]) -> Option<WriteCliff> {
    let mut rates = Vec::new();
    for cell in course {
        rates.push(cell.bytes_per_second()?);
    }
    let found = border(&rates, CLIFF, CLIFF_APART)?;
    Some(WriteCliff {
        after_bytes: course[..found.at].iter().map(|cell| cell.bytes).sum(),
        before: found.before,
        behind: found.behind,
    })
}

/// Parts that are read much more slowly than what lies beside them.
pub(super) fn slow_parts(measured: &AcceptMeasurement) -> Vec<SlowPart> {
    let Some(rates) = cell_rates(measured, Direction::Read) else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    let mut from = None;
    for number in 0..=rates.len() {
        let is_slow = number < rates.len() && rates[number] * SLOW_PART < usual(&rates, number);
        match (is_slow, from) {
            (true, None) => from = Some(number),
            (false, Some(first)) => {
                if number - first >= SLOW_CELLS_MIN {
                    parts.push(slow_part(measured, &rates, first, number));
                }
                from = None;
            }
            _ => {}
        }
    }
    parts.truncate(SLOW_PARTS_MAX);
    parts
}

fn usual(rates: &[f64], number: usize) -> f64 {
    let from = number.saturating_sub(NEIGHBOURS);
    let to = rates.len().min(number + NEIGHBOURS + 1);
    quantile(&sorted(&rates[from..to]), 0.5)
}

fn slow_part(measured: &AcceptMeasurement, rates: &[f64], first: usize, end: usize) -> SlowPart {
    let offset_bytes = cell_offset(measured, first);
    SlowPart {
        offset_bytes,
        length_bytes: cell_offset(measured, end) - offset_bytes,
        bytes_per_second: quantile(&sorted(&rates[first..end]), 0.5),
        usual: usual(rates, first),
    }
}
