//! Chooses the places of a probe's filler that are read again.

use diskproof_model::accept::{AcceptMeasurement, BLOCK_BYTES};

/// At most this many places of the filler are read: enough to show the size of a cache to a
/// thousandth of the filler.
const FILLER_PLACES: u64 = 1000;

/// The offsets of the blocks that are read, evenly spaced from the oldest to the newest.
pub(super) fn filler_offsets(measured: &AcceptMeasurement) -> Vec<u64> {
    let blocks = measured.filler_bytes / BLOCK_BYTES;
    let count = blocks.min(FILLER_PLACES);
    let mut offsets = Vec::new();
    for number in 0..count {
        let block = (u128::from(blocks) * u128::from(number) / u128::from(count.max(1))) as u64;
        offsets.push(measured.filler_start_bytes + block * BLOCK_BYTES);
    }
    offsets
}
