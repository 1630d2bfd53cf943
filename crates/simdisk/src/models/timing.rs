//! A request, its completion, and the interface of every part that decides when a request ends.

use std::ops::Range;

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Data from the disk.
    Read,
    /// Data to the disk.
    Write,
    /// A hole: the disk drops the content. It moves no data.
    Trim,
    /// fsync, fdatasync, or a flush of the block device above.
    Flush,
}

/// One request, in virtual time (ns since the disk was switched on).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRequest {
    /// Names the request in its `DiskCompletion`.
    pub ticket: u64,
    /// The time at which the disk received it.
    pub arrival_ns: u64,
    /// The kind of request.
    pub operation: Operation,
    /// First byte of the request.
    pub offset_bytes: u64,
    /// Bytes; 0 for a flush.
    pub length_bytes: u64,
    /// Time the mechanism loses on top, in its own service time (bad sectors and the like).
    pub extra_ns: u64,
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiskCompletion {
    /// The time at which the answer leaves the disk.
    pub at_ns: u64,
    /// The number that the request was submitted with.
    pub ticket: u64,
}

/// A state machine that says when requests end. It never waits: the caller passes the time.
pub trait TimingModel: Send {
    /// A request arrives. Arrivals may be a little out of order, as those of a real queue.
    fn submit(&mut self, request: DiskRequest);
    /// The next request that ends at or before `now_ns`, in order of ending; `None` when there is
    /// none (yet).
    fn take_done(&mut self, now_ns: u64) -> Option<DiskCompletion>;
    /// The time at which to call `take_done` next; `None` when nothing is in flight.
    fn next_ns(&self) -> Option<u64>;
}

impl DiskRequest {
    /// The bytes it touches.
    pub fn span(&self) -> Range<u64> {
        self.offset_bytes..self.offset_bytes + self.length_bytes
    }
}

/// The time that `bytes` take at `bytes_per_s`, rounded up. A rate of 0 counts as 1 B/s; callers
/// have `None` for a disk without a limit.
pub fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_s.max(1))) as u64
}

/// True if two byte ranges share a byte.
pub fn overlaps(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_time_rounds_up_without_overflow() {
        assert_eq!(transfer_ns(1_000_000, 100_000_000), 10_000_000);
        assert_eq!(transfer_ns(1, 3_000_000_000), 1);
        assert_eq!(
            transfer_ns(u64::MAX / 1000, 1_000_000_000),
            u64::MAX / 1000 + 1 - 1
        );
    }

    #[test]
    fn adjacent_ranges_do_not_overlap() {
        assert!(overlaps(&(0..10), &(9..20)));
        assert!(!overlaps(&(0..10), &(10..20)));
    }
}
