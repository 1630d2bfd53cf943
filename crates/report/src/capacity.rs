//! What a disk can do at most in one direction, from the matrices of a sweep: bandwidth, and 4 KiB
//! operations per second at random and in order. What schedulers of other systems are set by.

use diskproof_model::record::Record;
use diskproof_model::sweep::{CellState, SweepMatrix, SweepOperation};

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
        let busy_depth = knee.depth.saturating_mul(2);
        for cell in &self.random.cells {
            if cell.block_bytes == knee.block_bytes
                && cell.depth >= busy_depth
                && cell.latency_p99_ns.is_some()
            {
                return cell.latency_p99_ns;
            }
        }
        None
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
    let random_matrix = matrix_of(matrices, random)?;
    let mut throughputs = Vec::new();
    throughputs.extend(best_throughput(random_matrix));
    let mut sequential_iops = None;
    if let Some(matrix) = matrix_of(matrices, sequential) {
        throughputs.extend(best_throughput(matrix));
        sequential_iops = page_iops(matrix);
    }
    Some(DiskCapacity {
        bytes_per_second: throughputs.into_iter().reduce(f64::max)?,
        random_iops: page_iops(random_matrix)?,
        sequential_iops,
        random: random_matrix,
    })
}

fn matrix_of(matrices: &[SweepMatrix], operation: SweepOperation) -> Option<&SweepMatrix> {
    matrices.iter().find(|matrix| matrix.operation == operation)
}

/// The most bytes per second of a matrix.
fn best_throughput(matrix: &SweepMatrix) -> Option<f64> {
    Some(matrix.best_throughput()?.throughput.as_ref()?.value)
}

/// The most operations of 4 KiB per second: measured, or what the cost model predicts.
fn page_iops(matrix: &SweepMatrix) -> Option<f64> {
    let measured = matrix
        .cells
        .iter()
        .filter(|cell| cell.block_bytes == PAGE_BYTES && cell.state == CellState::Measured)
        .flat_map(|cell| &cell.iops)
        .max_by(|a, b| a.cmp_certain(b));
    let iops = match measured {
        Some(rate) => rate.value,
        None => predicted_page_iops(matrix)?,
    };
    if iops.is_finite() && iops > 0.0 {
        Some(iops)
    } else {
        None
    }
}

fn predicted_page_iops(matrix: &SweepMatrix) -> Option<f64> {
    let occupancy_ns = matrix.cost_model?.occupancy_ns(PAGE_BYTES);
    if occupancy_ns > 0.0 {
        Some(1e9 / occupancy_ns)
    } else {
        None
    }
}
