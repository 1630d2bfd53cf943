//! Describes a target as a survey needs it, the span, the engines and the units of requests, and
//! fits requests to those units.

use crate::io::Extent;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{CachePolicy, EngineKind};

/// Alignment of samples and blocks: the unit of most media, and a multiple of every sector.
pub(crate) const UNIT_BYTES: u64 = 4096;
/// Sector size of files, and where the target does not report one: the unit of logical block
/// addresses of most disks.
pub(crate) const SECTOR_BYTES: u32 = 512;

/// A target as it is surveyed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SurveyTarget {
    /// The span, aligned to whole units.
    pub extent: Extent,
    /// Requests in flight during the curve.
    pub depth: u32,
    /// The I/O engine of curve and burst.
    pub stream: EngineKind,
    /// The I/O engine for one request at a time.
    pub read_one: EngineKind,
    /// Offsets and lengths of requests must be multiples of it.
    pub alignment_bytes: u64,
    /// The smallest part that can be unreadable alone.
    pub sector_bytes: u64,
    /// Unit of logical block addresses.
    pub lba_bytes: u64,
    /// The treatment of the page cache.
    pub cache: CachePolicy,
    /// The operation of the curve: reads or writes.
    pub operation: OpKind,
    /// Seed of every random choice.
    pub seed: u64,
}

impl SurveyTarget {
    /// A length that the target takes: rounded up to its unit, and no longer than the span. 0 where
    /// the span is shorter than a unit, which a prepared survey refuses.
    pub(crate) fn rounded_request_bytes(&self, bytes: u64) -> u64 {
        bytes
            .max(1)
            .next_multiple_of(self.alignment_bytes)
            .min(self.extent.length / self.alignment_bytes * self.alignment_bytes)
    }

    /// The aligned offset at or before `offset`.
    pub(crate) fn aligned(&self, offset: u64) -> u64 {
        let unit = UNIT_BYTES.max(self.alignment_bytes);
        offset / unit * unit
    }
}
