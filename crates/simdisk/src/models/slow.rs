//! Places on the disk that take longer: sectors the drive reads repeatedly.

use super::timing::overlaps;
use std::ops::Range;

/// A place where the disk is slow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowRange {
    /// Bytes of the disk.
    pub span: Range<u64>,
    /// Time lost by each request that touches them.
    pub extra_ns: u64,
}

/// Nanoseconds that a request over `span` loses.
pub fn extra_ns(ranges: &[SlowRange], span: &Range<u64>) -> u64 {
    ranges
        .iter()
        .filter(|r| overlaps(&r.span, span))
        .map(|r| r.extra_ns)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::drive::{read, total_ns};
    use crate::models::{DiskMachine, Model};

    #[test]
    fn slow_range_delays_only_overlapping_requests() {
        let slow = vec![SlowRange {
            span: 8192..8704,
            extra_ns: 1_000_000,
        }];
        let total = |offset| {
            total_ns(
                &mut DiskMachine::start(
                    &Model {
                        slow: slow.clone(),
                        ..Model::default()
                    },
                    1 << 20,
                ),
                1,
                &[read(offset, 4096)],
            )
        };
        assert_eq!((total(4096), total(8192), total(12_288)), (0, 1_000_000, 0));
    }
}
