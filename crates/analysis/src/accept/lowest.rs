//! Finds the lowest address that came back wrong, and how far the damage there reaches.

use diskproof_model::accept::BadRange;

/// Bytes that came back wrong without a gap between them.
pub(super) struct BadStretch {
    pub start_bytes: u64,
    pub end_bytes: u64,
}

/// The stretch of wrong bytes at the lowest address; `None` where nothing is wrong. `bad` must be
/// sorted by offset, as the record keeps it.
pub(super) fn lowest_bad(bad: &[BadRange]) -> Option<BadStretch> {
    let first = bad.first()?;
    let mut end_bytes = first.end_bytes();
    for range in &bad[1..] {
        if range.offset_bytes > end_bytes {
            break;
        }
        end_bytes = end_bytes.max(range.end_bytes());
    }
    Some(BadStretch {
        start_bytes: first.offset_bytes,
        end_bytes,
    })
}
