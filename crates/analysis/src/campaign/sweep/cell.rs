//! Keeps what the slices of a cell of the matrix showed so far, and decides whether it needs more.

use super::setup::SweepCellSetup;
use crate::campaign::decision::MeasuredCell;
use crate::checked::PAGE_BYTES;
use crate::estimate::student::multiple_95;
use crate::estimate::{mean, variance};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Workload;
use diskproof_model::window::SLICES_MIN;

/// A cell of the matrix, with the slices that count so far.
#[derive(Debug, Clone)]
pub(super) struct SweptCell {
    pub(super) workload: Workload,
    /// Operations per second of each slice.
    pub(super) rates: Vec<f64>,
    /// Operations of all slices together.
    operations: u64,
    /// Mean latency of the latest slice, in nanoseconds; `None` before the first slice.
    pub(super) latency_ns: Option<f64>,
    /// The bytes that the cell may still move; `None` without a limit.
    left_bytes: Option<u64>,
    /// True if it needs no further slice, or may have none.
    pub(super) is_over: bool,
    /// True if a slice was measured in a burst. The cell is measured again as soon as time allows.
    pub(super) is_burst: bool,
    /// The number of times that its slices were dropped.
    drops: usize,
}

/// The most slices of a cell: one more hardly narrows the interval of a rate that varies so much.
pub(super) const SLICES_MAX: usize = 12;
/// The slices of a cell are dropped at most this often, so that a sweep of a disk whose rate keeps
/// falling still ends.
const DROPS_MAX: usize = 3;
/// Half-width of a 95 % interval in standard errors (normal distribution).
const NORMAL_MULTIPLE_95: f64 = 1.96;

impl SweptCell {
    /// A cell before its first slice.
    pub(super) fn new(setup: &SweepCellSetup) -> Self {
        Self {
            left_bytes: setup.workload.stop.bytes,
            workload: setup.workload.clone(),
            rates: Vec::new(),
            operations: 0,
            latency_ns: None,
            is_over: false,
            is_burst: false,
            drops: 0,
        }
    }

    /// Mean operations per second over its slices; 0 before the first.
    pub(super) fn rate(&self) -> f64 {
        if self.rates.is_empty() {
            0.0
        } else {
            mean(&self.rates)
        }
    }

    /// Marks it as measured in a burst, wholly or partly, and opens it again.
    pub(super) fn mark_burst(&mut self) {
        if self.drops < DROPS_MAX {
            self.is_burst = true;
            self.is_over = match self.left_bytes {
                Some(left) => left < u64::from(self.workload.block_bytes),
                None => false,
            };
        }
    }

    /// Forgets its slices, which were measured in a burst.
    pub(super) fn drop_slices(&mut self) {
        self.rates.clear();
        self.operations = 0;
        self.is_burst = false;
        self.drops += 1;
    }

    /// The bytes that the next slice may move; `None` where the cell has no limit.
    pub(super) fn slice_bytes(&self) -> Option<u64> {
        let left_bytes = self.left_bytes?;
        let missing_slices = SLICES_MIN.saturating_sub(self.rates.len()).max(1) as u64;
        let block_bytes = u64::from(self.workload.block_bytes);
        Some((left_bytes / missing_slices / block_bytes).max(1) * block_bytes)
    }

    /// The distance of its block size from that of a page: the absolute logarithm of their ratio.
    pub(super) fn distance_to_page(&self) -> f64 {
        let size = f64::from(self.workload.block_bytes.max(1));
        (size / f64::from(PAGE_BYTES)).ln().abs()
    }

    /// Kleinrock's power: throughput over response time. It is highest at the knee.
    pub(super) fn power(&self) -> f64 {
        self.rate().powi(2) / f64::from(self.workload.depth.max(1))
    }

    /// Returns `true` if it has too few slices for an interval.
    pub(super) fn lacks_interval(&self) -> bool {
        self.rates.len() < SLICES_MIN
    }

    /// Returns `true` if both cells do the same operation with the same access.
    pub(super) fn has_same_operation(&self, other: &Self) -> bool {
        let (own, other) = (&self.workload, &other.workload);
        other.access == own.access && other.streams == own.streams
    }

    /// Relative half-width of the 95 % interval of its rate. A cell with too few slices, or with
    /// slices of a burst, has no interval. It gets more than 1, which is wider than any useful
    /// interval, and the more the fewer operations it has.
    pub(super) fn relative_half_width(&self) -> f64 {
        let count = self.rates.len() as f64;
        let rate = self.rate();
        let operations = self.operations.max(1) as f64;
        if self.lacks_interval() || self.is_burst || rate <= 0.0 {
            return 1.0 + NORMAL_MULTIPLE_95 / operations.sqrt();
        }
        let half_width = multiple_95(count - 1.0) * (variance(&self.rates) / count).sqrt();
        (half_width / rate).max(1.0 / operations)
    }

    /// Adds a slice. Ends the cell if its rate is then known to `precision`, or its slices or bytes
    /// are used up.
    pub(super) fn add_slice(&mut self, measured: &MeasuredCell, precision: f64) {
        let mut rate = 0.0;
        let mut latency_ns: Option<f64> = None;
        for kind in OpKind::TRANSFERS {
            let Some(op) = measured.slice.ops.get(&kind) else {
                continue;
            };
            rate += op.iops;
            self.operations += op.count;
            if let Some(latency) = op.latency {
                latency_ns = Some(latency.mean_ns.max(latency_ns.unwrap_or(0.0)));
            }
        }
        self.rates.push(rate);
        // No request completed: the latency is longer than the slice. Twice its time is assumed.
        let unanswered_ns = 2.0 * measured.slice.wall_ns as f64;
        self.latency_ns = Some(latency_ns.unwrap_or(unanswered_ns));
        if let Some(left) = &mut self.left_bytes {
            *left = left.saturating_sub(measured.asked_bytes);
            self.is_over |= *left < u64::from(self.workload.block_bytes);
        }
        let is_known = self.relative_half_width() <= precision;
        let has_all_slices = self.rates.len() >= SLICES_MAX;
        self.is_over |= (is_known || has_all_slices) && !self.is_burst;
    }
}
