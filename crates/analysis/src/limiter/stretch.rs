//! Holds what a target moved over time: a stretch is a time without a break in which one row ran.
//! And the unit in which a limiter counts, with the rates of rows and slices in it.

use crate::estimate::mean;
use diskproof_model::limiter::BurstCredit;
use diskproof_model::measurement::OpKind;
use diskproof_model::row::Row;
use diskproof_model::window::TimeSlice;

/// The unit in which a limiter counts its credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Reads and writes.
    Requests,
    /// Their bytes.
    Bytes,
}

/// From this block size on, bandwidth is what volumes limit: EBS counts a request of up to 256 KiB
/// on its SSD volumes as one.
pub(crate) const LARGE_BLOCK_BYTES: u32 = 256 << 10;

impl Unit {
    /// Every unit, for searches that try each.
    pub(crate) const ALL: [Self; 2] = [Self::Requests, Self::Bytes];

    /// The unit of a recorded credit, whose field `unit` is that of its rates.
    pub(crate) fn of_credit(credit: &BurstCredit) -> Self {
        if credit.unit == Self::Bytes.per_second() {
            Self::Bytes
        } else {
            Self::Requests
        }
    }

    /// The unit in which volumes usually limit requests of this size.
    pub(crate) fn usual(block_bytes: f64) -> Self {
        if block_bytes >= f64::from(LARGE_BLOCK_BYTES) {
            Self::Bytes
        } else {
            Self::Requests
        }
    }

    /// The other one of the two.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Requests => Self::Bytes,
            Self::Bytes => Self::Requests,
        }
    }

    /// The unit of a rate, as figures spell it.
    pub(crate) fn per_second(self) -> &'static str {
        match self {
            Self::Requests => "1/s",
            Self::Bytes => "B/s",
        }
    }
}

/// The evidence about a limiter that the rate of a stretch can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Measured, and the next request waits for nothing but the disk.
    Closed,
    /// Measured, but paced, together with others, or at the edge of a slice: it only uses credit.
    Shared,
    /// Not measured: a warm-up, or the filling of a scratch file. It only uses credit.
    Unmeasured,
}

/// A time without a break in which one row ran, with what it moved in equal cells.
#[derive(Debug, Clone)]
pub(crate) struct Stretch {
    /// The number of the row; several stretches may belong to one.
    pub(crate) row: usize,
    /// Equal in rows that differ only in the number of requests in flight.
    pub(crate) family: String,
    /// Requests in flight over all workers.
    pub(crate) depth: f64,
    /// True if its row writes or syncs: a full write cache then looks like a limiter.
    pub(crate) has_writes: bool,
    /// The largest size of its requests.
    pub(crate) block_bytes: f64,
    /// Decides whether the stretch can show a base rate or only use credit.
    pub(crate) role: Role,
    /// True if the figures of its row count it: not a warm-up, nor a slice that was dropped.
    pub(crate) is_in_row: bool,
    /// In nanoseconds after the start of the run.
    pub(crate) start_ns: f64,
    /// The length of each cell, in nanoseconds.
    pub(crate) cell_ns: f64,
    /// Reads and writes of each cell.
    pub(crate) requests: Vec<f64>,
    /// Their bytes, one value for each cell.
    pub(crate) bytes: Vec<f64>,
}

impl Stretch {
    /// What its cells moved, in this unit.
    pub(super) fn moved(&self, unit: Unit) -> &[f64] {
        match unit {
            Unit::Requests => &self.requests,
            Unit::Bytes => &self.bytes,
        }
    }

    /// The counts that a limiter in this unit makes even.
    pub(super) fn evenness_counts(&self, unit: Unit) -> Vec<f64> {
        evenness_counts_in(unit, &self.requests, &self.bytes)
    }

    /// Counts only this share of its requests.
    pub(super) fn scale_requests(&mut self, share: f64) {
        for requests in &mut self.requests {
            *requests *= share;
        }
    }

    pub(super) fn length_ns(&self) -> f64 {
        self.requests.len() as f64 * self.cell_ns
    }

    /// Its end, in nanoseconds after the start of the run.
    pub(crate) fn end_ns(&self) -> f64 {
        self.start_ns + self.length_ns()
    }

    /// The mean rate per second over the whole stretch.
    pub(super) fn rate(&self, unit: Unit) -> f64 {
        per_second(self.moved(unit), self.cell_ns)
    }
}

/// The stretches by their start.
pub(super) fn in_order(mut stretches: Vec<Stretch>) -> Vec<Stretch> {
    stretches.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
    stretches
}

/// The counts of cells that a limiter in this unit makes even: requests, or bytes as requests of
/// the mean size. Only where sizes are mixed do the two differ.
pub(crate) fn evenness_counts_in(unit: Unit, requests: &[f64], bytes: &[f64]) -> Vec<f64> {
    let request_bytes = bytes.iter().sum::<f64>() / requests.iter().sum::<f64>();
    match unit {
        Unit::Bytes if request_bytes > 0.0 => {
            bytes.iter().map(|cell| cell / request_bytes).collect()
        }
        Unit::Bytes | Unit::Requests => requests.to_vec(),
    }
}

/// The mean rate per second of cells of this length; 0 without cells.
pub(super) fn per_second(cells: &[f64], cell_ns: f64) -> f64 {
    if cells.is_empty() {
        return 0.0;
    }
    mean(cells) * 1e9 / cell_ns
}

/// The amount of one request in the unit: 1, or its bytes.
pub(super) fn request_amount(stretch: &Stretch, unit: Unit) -> f64 {
    match unit {
        Unit::Requests => 1.0,
        Unit::Bytes => stretch.block_bytes,
    }
}

/// Reads and writes of a row per second, in requests or in bytes.
pub(crate) fn rate_of(row: &Row, unit: Unit) -> f64 {
    let ops = OpKind::TRANSFERS.iter().filter_map(|kind| row.op(*kind));
    match unit {
        Unit::Requests => ops.map(|op| op.figures.iops.value).sum(),
        Unit::Bytes => ops.map(|op| op.figures.throughput.value).sum(),
    }
}

/// Reads and writes of a slice per second, in requests or in bytes.
pub(crate) fn slice_rate(slice: &TimeSlice, unit: Unit) -> f64 {
    let ops = OpKind::TRANSFERS
        .iter()
        .filter_map(|kind| slice.ops.get(kind));
    match unit {
        Unit::Requests => ops.map(|op| op.iops).sum(),
        Unit::Bytes => ops.map(|op| op.bytes_per_second).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EBS counts a request of up to 256 KiB as one: from there on bytes are what ends first.
    #[test]
    fn volumes_limit_bytes_from_256_kib_on() {
        assert_eq!(Unit::usual(262_143.0), Unit::Requests);
        assert_eq!(Unit::usual(262_144.0), Unit::Bytes);
        for unit in Unit::ALL {
            assert_ne!(unit.other(), unit);
            assert_eq!(unit.other().other(), unit);
        }
    }

    /// Cells of 10 requests of 8 KiB, and of 80 of 1 KiB: a limiter of bytes makes them equal.
    #[test]
    fn counts_in_bytes_are_requests_of_the_mean_size() {
        let (requests, bytes) = ([10.0, 80.0], [81_920.0, 81_920.0]);
        assert_eq!(
            evenness_counts_in(Unit::Requests, &requests, &bytes),
            requests
        );
        assert_eq!(
            evenness_counts_in(Unit::Bytes, &requests, &bytes),
            [45.0, 45.0]
        );
        // Without any bytes there is only the number of requests.
        assert_eq!(
            evenness_counts_in(Unit::Bytes, &requests, &[0.0, 0.0]),
            requests
        );
        // A NaN would pass every comparison with a bound.
        assert_eq!(evenness_counts_in(Unit::Bytes, &[0.0], &[0.0]), [0.0]);
    }

    /// The unit of a credit stands in the record as text.
    #[test]
    fn unit_of_a_recorded_credit_is_that_of_its_rates() {
        for unit in Unit::ALL {
            let credit = BurstCredit {
                target: 0,
                unit: unit.per_second().to_owned(),
                base: 1.0,
                burst: 2.0,
                credit: 1.0,
                credit_is_lower_bound: false,
                burst_ns: 1,
                refill_ns: 1,
                at_base: Vec::new(),
                in_burst: Vec::new(),
                has_reads: true,
                has_refilled: false,
            };
            assert_eq!(Unit::of_credit(&credit), unit);
        }
        assert_eq!(Unit::Bytes.per_second(), "B/s");
        assert_eq!(Unit::Requests.per_second(), "1/s");
    }
}
