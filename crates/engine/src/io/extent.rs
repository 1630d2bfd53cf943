//! A contiguous part of a target. Knows no pattern and no file.

use diskproof_model::plan::Access;

/// A contiguous part of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub length: u64,
}

impl Extent {
    /// The part of a worker: workers divide an ordered pattern and do not repeat each other. Random
    /// patterns use the whole extent.
    pub fn share(self, access: &Access, worker: u64, workers: u64, block_bytes: u64) -> Self {
        if matches!(access, Access::Random { .. } | Access::Zoned { .. }) || workers <= 1 {
            return self;
        }
        let blocks = self.length / block_bytes;
        let (first, end) = (blocks * worker / workers, blocks * (worker + 1) / workers);
        Self {
            start: self.start + first * block_bytes,
            length: (end - first) * block_bytes,
        }
    }
}
