//! Where what came back wrong begins.

use diskproof_model::accept::BadRange;

/// The lowest address that came back wrong, and up to where that goes on without a gap.
pub(super) fn lowest_bad(bad: &[BadRange]) -> Option<(u64, u64)> {
    let first = bad.first()?;
    let mut end_bytes = first.end_bytes();
    for range in &bad[1..] {
        if range.offset_bytes > end_bytes {
            break;
        }
        end_bytes = end_bytes.max(range.end_bytes());
    }
    Some((first.offset_bytes, end_bytes))
}
