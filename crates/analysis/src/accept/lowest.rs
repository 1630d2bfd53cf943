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

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::accept::BadContent;

    fn range(offset_bytes: u64, length_bytes: u64) -> BadRange {
        BadRange {
            offset_bytes,
            length_bytes,
            content: BadContent::Blank,
        }
    }

    #[test]
    fn stretch_ends_at_the_first_gap() {
        assert!(lowest_bad(&[]).is_none());
        let bad = [
            range(512, 1024),
            range(1024, 512),
            range(1536, 512),
            range(4096, 512),
        ];
        let lowest = lowest_bad(&bad).unwrap();
        assert_eq!((lowest.start_bytes, lowest.end_bytes), (512, 2048));
    }
}
