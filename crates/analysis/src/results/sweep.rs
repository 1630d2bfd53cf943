//! Writes the clauses of the headline on the matrices of a sweep.

use diskproof_model::sweep::{SweepMatrix, SweepRecord};
use diskproof_model::units::format_bytes;

/// Operations in the headline: the answers of all follow.
const MATRICES_MAX: usize = 2;

/// The highest rates and where they end, of the first operations.
pub(super) fn sweep_clauses(sweep: &SweepRecord) -> Vec<String> {
    sweep
        .matrices
        .iter()
        .take(MATRICES_MAX)
        .flat_map(matrix_clause)
        .collect()
}

/// `random read up to 66,400/s and 3070 MB/s, knee at depth 8, bandwidth limits from 128 KiB`
fn matrix_clause(matrix: &SweepMatrix) -> Option<String> {
    let iops = matrix.best_iops()?.iops.as_ref()?.value_text();
    let throughput = matrix.best_throughput()?.throughput.as_ref()?.value_text();
    let mut clause = format!("{} up to {iops} and {throughput}", matrix.operation.words());
    if let Some(knee) = &matrix.knee {
        let (low, high) = (knee.depth_low, knee.depth_high);
        let depths = match high {
            Some(high) if high == low => knee.depth.to_string(),
            Some(high) => format!("{low} to {high}"),
            None => format!("{low} or more"),
        };
        clause.push_str(&format!(", knee at depth {depths}"));
    }
    if let Some(limit) = &matrix.bandwidth_limit {
        let from = format_bytes(u64::from(limit.block_bytes));
        let low = format_bytes(u64::from(limit.block_bytes_low));
        let range = match limit.block_bytes_high {
            Some(high) if high == limit.block_bytes_low => String::new(),
            Some(high) => format!(" ({low} to {})", format_bytes(u64::from(high))),
            None => format!(" ({low} or more)"),
        };
        clause.push_str(&format!(", bandwidth limits from {from} on{range}"));
    }
    Some(clause)
}
