//! Chooses the places of a probe's filler that are read again.

use diskproof_model::accept::{AcceptMeasurement, BLOCK_BYTES};

/// At most this many places of the filler are read: enough to show the size of a cache to a
/// thousandth of the filler. Records keep one state a place, in this order, so that another number
/// would give the states of older records other places.
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

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::accept::{AcceptPlan, Procedure};

    /// Saved answers belong to these places.
    #[test]
    fn places_of_the_filler_stay_where_records_have_them() {
        let mut measured = AcceptMeasurement::new(AcceptPlan {
            procedure: Procedure::Whole,
            size_bytes: 1 << 30,
            salt: 7,
        });
        measured.filler_start_bytes = 1 << 20;
        measured.filler_bytes = 3000 * BLOCK_BYTES;
        let offsets = filler_offsets(&measured);
        assert_eq!(offsets.len(), 1000);
        let blocks = [0, 1, 999].map(|place| (offsets[place] - (1 << 20)) / BLOCK_BYTES);
        assert_eq!(blocks, [0, 3, 2997]);
    }
}
