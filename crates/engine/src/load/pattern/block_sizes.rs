//! Chooses the size of each block: always the same, or several drawn by weight.

use crate::random::Random;
use diskproof_model::plan::Workload;
use diskproof_model::stream::Stream;

/// A size that is drawn where the weight that was drawn lies below its end, and not below that of
/// the size before.
#[derive(Debug, Clone, Copy)]
struct WeightedSize {
    weights_end: u64,
    bytes: u32,
}

/// One size, or sizes drawn by weight.
#[derive(Debug, Clone)]
pub(super) struct BlockSizes {
    /// One entry means no draw.
    sizes: Vec<WeightedSize>,
    weights: u64,
    /// The size, where there is only one; otherwise 0.
    pub(super) only: u32,
}

impl BlockSizes {
    /// The sizes of a stream of a workload.
    pub(super) fn for_stream(stream: &Stream, workload: &Workload) -> Self {
        let mix = if stream.sizes.is_empty() {
            &workload.block_mix
        } else {
            &stream.sizes
        };
        let mut weights = 0;
        let mut sizes = Vec::new();
        for share in mix {
            if share.weight > 0 {
                weights += u64::from(share.weight);
                sizes.push(WeightedSize {
                    weights_end: weights,
                    bytes: share.block_bytes,
                });
            }
        }
        if sizes.is_empty() {
            sizes.push(WeightedSize {
                weights_end: 1,
                bytes: workload.block_bytes,
            });
        }
        let only = if sizes.len() == 1 { sizes[0].bytes } else { 0 };
        Self {
            sizes,
            weights,
            only,
        }
    }

    /// Smallest size.
    pub(super) fn smallest(&self) -> u32 {
        self.sizes.iter().map(|size| size.bytes).min().unwrap_or(1)
    }

    /// Largest size.
    pub(super) fn largest(&self) -> u32 {
        self.sizes.iter().map(|size| size.bytes).max().unwrap_or(1)
    }

    /// The next size.
    #[inline(always)]
    pub(super) fn draw(&self, random: &mut Random) -> u32 {
        if self.only != 0 {
            return self.only;
        }
        let drawn = random.below(self.weights);
        self.sizes
            .iter()
            .find(|size| drawn < size.weights_end)
            .map_or(self.sizes[0].bytes, |size| size.bytes)
    }
}

/// Bytes of the shortest and of the longest step of `workload`.
pub fn block_range(workload: &Workload) -> (u32, u32) {
    let mut range: Option<(u32, u32)> = None;
    for stream in workload.streams.iter() {
        let sizes = BlockSizes::for_stream(stream, workload);
        range = match range {
            Some((smallest, largest)) => {
                Some((smallest.min(sizes.smallest()), largest.max(sizes.largest())))
            }
            None => Some((sizes.smallest(), sizes.largest())),
        };
    }
    range.unwrap_or((1, 1))
}
