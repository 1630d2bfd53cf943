//! How long each operation is.

use crate::random::Random;
use diskproof_model::plan::Workload;
use diskproof_model::stream::Stream;

/// One size, or sizes drawn by weight.
#[derive(Debug, Clone)]
pub(crate) struct BlockSizes {
    /// (upper end of the weights so far, bytes); one entry means no draw.
    sizes: Vec<(u64, u32)>,
    total: u64,
    /// The size, where there is only one; otherwise 0.
    pub only: u32,
}

impl BlockSizes {
    /// The sizes of a stream of a workload.
    pub(crate) fn of(stream: &Stream, workload: &Workload) -> Self {
        let mix = if stream.sizes.is_empty() {
            &workload.block_mix
        } else {
            &stream.sizes
        };
        let mut total = 0;
        let weighted = mix.iter().filter(|share| share.weight > 0);
        let mut sizes: Vec<(u64, u32)> = weighted
            .map(|share| {
                total += u64::from(share.weight);
                (total, share.block_bytes)
            })
            .collect();
        if sizes.is_empty() {
            sizes.push((1, workload.block_bytes));
        }
        let only = if sizes.len() == 1 { sizes[0].1 } else { 0 };
        Self { sizes, total, only }
    }

    /// Smallest size.
    pub(crate) fn smallest(&self) -> u32 {
        self.sizes.iter().map(|s| s.1).min().unwrap_or(1)
    }

    /// Largest size.
    pub(crate) fn largest(&self) -> u32 {
        self.sizes.iter().map(|s| s.1).max().unwrap_or(1)
    }

    /// The next size.
    #[inline(always)]
    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        if self.only != 0 {
            return self.only;
        }
        let drawn = random.below(self.total);
        self.sizes
            .iter()
            .find(|(end, _)| drawn < *end)
            .map_or(self.sizes[0].1, |s| s.1)
    }
}
