//! What happened when: cells of equal length, thinned by merging neighbours so that memory stays constant and no maximum is lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One cell of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Operations that completed in the cell.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Operations that failed in the cell.
    pub errors: u64,
    /// The longest latency among them, in nanoseconds.
    pub latency_max_ns: u64,
}

impl Cell {
    /// Adds another cell's events to this one.
    pub fn merge(&mut self, other: &Self) {
        // Records come from files, too, where nobody vouches for their figures.
        self.ops = self.ops.saturating_add(other.ops);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.errors = self.errors.saturating_add(other.errors);
        self.latency_max_ns = self.latency_max_ns.max(other.latency_max_ns);
    }
}

/// Events over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeSeries {
    /// Start of the first cell, in nanoseconds after the start of the measured time.
    pub start_ns: u64,
    /// Length of each cell in nanoseconds.
    pub interval_ns: u64,
    /// The cells, without gaps.
    pub cells: Vec<Cell>,
}

impl TimeSeries {
    /// An empty series with cells of `interval_ns`.
    pub fn new(interval_ns: u64) -> Self {
        Self { start_ns: 0, interval_ns: interval_ns.max(1), cells: Vec::new() }
    }

    /// Adds a cell's events at the time `at_ns` after the start. When the series would exceed `cells_max`, neighbours are merged and the
    /// interval doubles.
    pub fn add(&mut self, at_ns: u64, cell: &Cell, cells_max: usize) {
        while (at_ns / self.interval_ns) as usize >= cells_max.max(2) {
            *self = self.coarser(2);
        }
        let index = (at_ns / self.interval_ns) as usize;
        if index >= self.cells.len() {
            self.cells.resize(index + 1, Cell::default());
        }
        self.cells[index].merge(cell);
    }

    /// Adds another series over the same time; the coarser interval wins.
    pub fn merge(&mut self, other: &Self) {
        let interval = self.interval_ns.max(other.interval_ns);
        while self.interval_ns < interval {
            *self = self.coarser(2);
        }
        let other = if other.interval_ns < interval { other.coarser((interval / other.interval_ns) as usize) } else { other.clone() };
        if other.cells.len() > self.cells.len() {
            self.cells.resize(other.cells.len(), Cell::default());
        }
        for (mine, theirs) in self.cells.iter_mut().zip(&other.cells) {
            mine.merge(theirs);
        }
    }

    /// The same events in cells `factor` times as long.
    pub fn coarser(&self, factor: usize) -> Self {
        let factor = factor.max(1);
        let cells = self.cells.chunks(factor).map(|chunk| {
            chunk.iter().fold(Cell::default(), |mut sum, cell| {
                sum.merge(cell);
                sum
            })
        });
        Self { start_ns: self.start_ns, interval_ns: self.interval_ns.saturating_mul(factor as u64), cells: cells.collect() }
    }

    /// The same events in cells of at least `interval_ns` and at most `cells_max` cells.
    pub fn thinned(&self, interval_ns: u64, cells_max: usize) -> Self {
        let by_time = interval_ns.div_ceil(self.interval_ns.max(1)).max(1) as usize;
        let by_count = self.cells.len().div_ceil(cells_max.max(1)).max(1);
        self.coarser(by_time.max(by_count))
    }

    /// All events as one cell.
    pub fn total(&self) -> Cell {
        self.cells.iter().fold(Cell::default(), |mut sum, cell| {
            sum.merge(cell);
            sum
        })
    }
}
