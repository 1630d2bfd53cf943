//! Ascends through parts of an extent, and skips what is between them.

use crate::io::Extent;
use diskproof_model::shape::ZoneStride;

/// The position of such a walk.
#[derive(Debug, Clone)]
pub(crate) struct ZoneWalk {
    start: u64,
    end: u64,
    at: u64,
    /// Laps that have begun after the first.
    pub lap: u64,
    /// Where the current part begins.
    zone: u64,
    stride: ZoneStride,
}

impl ZoneWalk {
    /// From the start of `extent` on.
    pub(crate) fn new(extent: Extent, stride: ZoneStride) -> Self {
        Self {
            start: extent.start,
            end: extent.start + extent.length,
            at: extent.start,
            lap: 0,
            zone: extent.start,
            stride,
        }
    }

    /// The next offset. Not inlined: the other walks share the loop that calls it.
    #[inline(never)]
    pub(crate) fn next(&mut self, len: u64) -> u64 {
        if self.at >= self.zone + self.stride.zone_bytes {
            self.zone += self.stride.zone_bytes + self.stride.skip_bytes;
            self.at = self.zone;
        }
        if self.at + len > self.end {
            (self.at, self.zone, self.lap) = (self.start, self.start, self.lap + 1);
        }
        self.at += len;
        self.at - len
    }
}
