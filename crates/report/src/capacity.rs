//! What a disk can do at most in one direction, from the matrices of a sweep: bandwidth, and 4 KiB
//! operations per second at random and in order. What schedulers of other systems are set by.

use diskproof_model::record::Record;
use diskproof_model::sweep::{CellState, SweepCell, SweepMatrix, SweepOperation};

/// The size for which schedulers state operations per second.
const PAGE_BYTES: u32 = 4096;

/// The most that a disk can do in one direction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DiskCapacity<'a> {
    /// Bytes per second.
    pub(crate) bytes_per_second: f64,
    /// Random operations of 4 KiB per second.
    pub(crate) random_iops: f64,
    /// Sequential operations of 4 KiB per second; `None` where they were not measured.
    pub(crate) sequential_iops: Option<f64>,
    /// The matrix of the random operations.
    pub(crate) random: &'a SweepMatrix,
}

impl DiskCapacity<'_> {
    /// The 99th percentile of the latency where the disk is busy: at twice the depth of the knee or
    /// more, in nanoseconds.
    pub(crate) fn busy_p99_ns(&self) -> Option<u64> {
        let knee = self.random.knee.as_ref()?;
        let is_busy = |cell: &&SweepCell| {
            cell.block_bytes == knee.block_bytes && cell.depth >= knee.depth.saturating_mul(2)
        };
        let mut busy = self.random.cells.iter().filter(is_busy);
        busy.find_map(|cell| cell.latency_p99_ns)
    }
}

/// What it can read at most; `None` where no random reads were swept.
pub(crate) fn reads(record: &Record) -> Option<DiskCapacity<'_>> {
    capacity(record, SweepOperation::RandRead, SweepOperation::Read)
}

/// What it can write at most; `None` where no random writes were swept.
pub(crate) fn writes(record: &Record) -> Option<DiskCapacity<'_>> {
    capacity(record, SweepOperation::RandWrite, SweepOperation::Write)
}

fn capacity(
    record: &Record,
    random: SweepOperation,
    sequential: SweepOperation,
) -> Option<DiskCapacity<'_>> {
    let matrices = &record.sweep()?.matrices;
    let of = |operation| matrices.iter().find(|matrix| matrix.operation == operation);
    let (random, sequential) = (of(random)?, of(sequential));
    let throughput =
        |matrix: &SweepMatrix| Some(matrix.best_throughput()?.throughput.as_ref()?.value);
    let rates = std::iter::once(random)
        .chain(sequential)
        .filter_map(throughput);
    Some(DiskCapacity {
        bytes_per_second: rates.reduce(f64::max)?,
        random_iops: page_iops(random)?,
        sequential_iops: sequential.and_then(page_iops),
        random,
    })
}

/// The most operations of 4 KiB per second: measured, or what the cost model predicts.
fn page_iops(matrix: &SweepMatrix) -> Option<f64> {
    let is_page =
        |cell: &&SweepCell| cell.block_bytes == PAGE_BYTES && cell.state == CellState::Measured;
    let pages = matrix.cells.iter().filter(is_page);
    let rates = pages.filter_map(|cell| cell.iops.as_ref());
    let measured = rates.max_by(|a, b| a.cmp_certain(b));
    let predicted = || {
        let occupancy_ns = matrix.cost_model?.occupancy_ns(PAGE_BYTES);
        (occupancy_ns > 0.0).then(|| 1e9 / occupancy_ns)
    };
    let iops = measured.map(|rate| rate.value).or_else(predicted)?;
    (iops.is_finite() && iops > 0.0).then_some(iops)
}
