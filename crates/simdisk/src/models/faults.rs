//! Faults of a disk: errors by place and by volume, and transfers that end early. A failed request
//! takes the time of a good one.

use super::timing::{Operation, overlaps};
use std::ops::Range;

/// The operations that a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultDirection {
    /// Reads alone fail.
    Read,
    /// Writes alone fail.
    Write,
    /// Reads and writes fail.
    Both,
}

/// A fault of the medium or of its electronics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaFault {
    /// EIO for each request that touches the bytes.
    Broken {
        /// Bytes of the disk.
        span: Range<u64>,
        /// The operations that fail.
        direction: FaultDirection,
    },
    /// EIO for everything once this many bytes were read and written; the request that would cross
    /// it fails too.
    EioAfter {
        /// Bytes moved before it.
        bytes: u64,
    },
    /// ENOSPC for writes once this many bytes were written; the write that crosses it ends early,
    /// as in write(2).
    EnospcAfter {
        /// Bytes written before it.
        bytes: u64,
    },
    /// Requests that touch the bytes transfer at most so many.
    Short {
        /// Bytes of the disk.
        span: Range<u64>,
        /// The operations that are cut short.
        direction: FaultDirection,
        /// The most that one request transfers.
        max_bytes: u64,
    },
}

/// The faults of one disk, and what it has transferred so far.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    faults: Vec<MediaFault>,
    read_bytes: u64,
    written_bytes: u64,
    /// True if the disk was pulled out.
    is_gone: bool,
}

impl FaultDirection {
    fn hits(self, operation: Operation) -> bool {
        match self {
            Self::Read => operation == Operation::Read,
            Self::Write => operation == Operation::Write,
            Self::Both => matches!(operation, Operation::Read | Operation::Write),
        }
    }
}

impl Faults {
    /// Nothing is transferred yet.
    pub fn new(faults: Vec<MediaFault>) -> Self {
        Self {
            faults,
            ..Self::default()
        }
    }

    /// Pulls the disk out: every request fails until [`Self::put_back`].
    pub fn pull_out(&mut self) {
        self.is_gone = true;
    }

    /// Puts the disk back, with the counts that it had.
    pub fn put_back(&mut self) {
        self.is_gone = false;
    }

    /// Returns the bytes of a request that are transferred, or its errno, and counts them.
    pub fn transfer(&mut self, operation: Operation, span: &Range<u64>) -> Result<u64, i32> {
        if self.is_gone {
            return Err(libc::EIO);
        }
        let mut length_bytes = span.end - span.start;
        for fault in &self.faults {
            length_bytes =
                self.allowed_bytes(fault, operation, &(span.start..span.start + length_bytes))?;
        }
        match operation {
            Operation::Read => self.read_bytes += length_bytes,
            Operation::Write => self.written_bytes += length_bytes,
            Operation::Trim | Operation::Flush => {}
        }
        Ok(length_bytes)
    }

    /// Returns the bytes of a request that this fault lets pass, or its errno.
    fn allowed_bytes(
        &self,
        fault: &MediaFault,
        operation: Operation,
        span: &Range<u64>,
    ) -> Result<u64, i32> {
        let length_bytes = span.end - span.start;
        match fault {
            MediaFault::Broken {
                span: broken,
                direction,
            } if direction.hits(operation) && overlaps(broken, span) => Err(libc::EIO),
            MediaFault::EioAfter { bytes }
                if self.read_bytes + self.written_bytes + length_bytes > *bytes =>
            {
                Err(libc::EIO)
            }
            MediaFault::EnospcAfter { bytes } if operation == Operation::Write => {
                match bytes.saturating_sub(self.written_bytes) {
                    0 => Err(libc::ENOSPC),
                    left_bytes => Ok(length_bytes.min(left_bytes)),
                }
            }
            MediaFault::Short {
                span: short,
                direction,
                max_bytes,
            } if direction.hits(operation) && overlaps(short, span) => {
                Ok(length_bytes.min(*max_bytes))
            }
            _ => Ok(length_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Operation::{Read, Write};

    #[test]
    fn broken_range_fails_overlapping_requests() {
        let mut faults = Faults::new(vec![MediaFault::Broken {
            span: 4096..8192,
            direction: FaultDirection::Read,
        }]);
        assert_eq!(faults.transfer(Read, &(0..4096)), Ok(4096));
        assert_eq!(faults.transfer(Read, &(4095..4097)), Err(libc::EIO));
        assert_eq!(faults.transfer(Read, &(8192..8193)), Ok(1));
        assert_eq!(faults.transfer(Write, &(4096..8192)), Ok(4096));
        let mut both = Faults::new(vec![MediaFault::Broken {
            span: 0..1,
            direction: FaultDirection::Both,
        }]);
        assert_eq!(both.transfer(Read, &(0..1)), Err(libc::EIO));
        assert_eq!(both.transfer(Write, &(0..1)), Err(libc::EIO));
        assert_eq!(both.transfer(Operation::Flush, &(0..0)), Ok(0));
    }

    #[test]
    fn eio_after_counts_successful_reads_and_writes() {
        let mut faults = Faults::new(vec![MediaFault::EioAfter { bytes: 100 }]);
        assert_eq!(faults.transfer(Read, &(0..60)), Ok(60));
        assert_eq!(faults.transfer(Write, &(0..41)), Err(libc::EIO));
        assert_eq!(faults.transfer(Write, &(0..40)), Ok(40));
        assert_eq!(faults.transfer(Read, &(0..1)), Err(libc::EIO));
    }

    #[test]
    fn full_disk_accepts_remaining_bytes_and_reads() {
        let mut faults = Faults::new(vec![MediaFault::EnospcAfter { bytes: 100 }]);
        assert_eq!(faults.transfer(Write, &(0..60)), Ok(60));
        assert_eq!(faults.transfer(Write, &(60..120)), Ok(40));
        assert_eq!(faults.transfer(Write, &(100..101)), Err(libc::ENOSPC));
        assert_eq!(faults.transfer(Read, &(0..500)), Ok(500));
    }

    #[test]
    fn short_fault_truncates_transfer() {
        let mut faults = Faults::new(vec![MediaFault::Short {
            span: 0..1000,
            direction: FaultDirection::Write,
            max_bytes: 512,
        }]);
        assert_eq!(faults.transfer(Write, &(0..4096)), Ok(512));
        assert_eq!(faults.transfer(Write, &(2000..6096)), Ok(4096));
        assert_eq!(faults.transfer(Read, &(0..4096)), Ok(4096));
    }
}
