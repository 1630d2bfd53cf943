//! Makes the data of writes that is not new and random each time: compressible, repeated or a
//! pattern.

use crate::io::buffers::Buffers;
use crate::random::Random;
use diskproof_model::shape::WriteContent;

/// Makes the data of one worker's writes.
#[derive(Debug, Clone)]
pub(crate) struct ContentWriter {
    content: WriteContent,
    /// The seed of data that no other worker writes.
    own_seed: u64,
    /// The seed of data that is repeated.
    repeated_seed: u64,
    /// Decides which blocks repeat others.
    choice: Random,
    /// The newest data that was not repeated.
    newest: u64,
}

impl ContentWriter {
    /// For a worker with this stream of random numbers; all workers have the same `seed`.
    pub(crate) fn new(content: WriteContent, seed: u64, stream: u64) -> Self {
        let own_seed = Random::new(seed, stream).bits();
        // As in fio, the blocks that a worker repeats are the first ones that it makes.
        let repeated_seed = if content.shares_repeated {
            Random::new(seed, u64::MAX).bits()
        } else {
            own_seed
        };
        Self {
            content,
            own_seed,
            repeated_seed,
            choice: Random::new(seed, !stream),
            newest: 0,
        }
    }

    /// Fills every buffer before the first write.
    pub(crate) fn fill_all(&mut self, buffers: &mut Buffers, slots: usize) {
        if self.content.filler_percent < 100 {
            return;
        }
        for slot in 0..slots {
            let bytes = buffers.slot_bytes();
            fill(&self.content, buffers.bytes_mut(slot, bytes), 0);
        }
    }

    /// The data of the next write.
    pub(crate) fn fill(&mut self, block: &mut [u8]) {
        // Blocks keep what [`ContentWriter::fill_all`] has put into them.
        if self.content.keeps_buffers || self.content.filler_percent >= 100 {
            return;
        }
        let seed = self.next_seed();
        fill(&self.content, block, seed);
    }

    /// The seed of the next block: that of an earlier one, in the share that repeats, or a new one.
    fn next_seed(&mut self) -> u64 {
        let repeat = u64::from(self.content.repeat_percent);
        if repeat > 0 && self.choice.below(100) < repeat {
            return match self.content.repeated_blocks {
                0 => self.own_seed ^ self.newest,
                blocks => self.repeated_seed ^ (1 + self.choice.below(blocks)),
            };
        }
        // With 100 % every block is the same one.
        self.newest += u64::from(repeat < 100);
        self.own_seed ^ self.newest
    }
}

/// Fills a block with chunks, each of random data and then filler. The same seed makes the same
/// block.
fn fill(content: &WriteContent, block: &mut [u8], seed: u64) {
    let chunk_bytes = (content.chunk_bytes.max(1) as usize).min(block.len().max(1));
    let mut random = Random::new(seed, 0);
    for chunk in block.chunks_mut(chunk_bytes) {
        let random_share = 100 - usize::from(content.filler_percent.min(100));
        let (data, filler) = chunk.split_at_mut(chunk_bytes.min(chunk.len()) * random_share / 100);
        let mut words = data.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&random.bits().to_le_bytes());
        }
        let rest = words.into_remainder();
        rest.copy_from_slice(&random.bits().to_le_bytes()[..rest.len()]);
        match content.filler.as_slice() {
            [] => filler.fill(0),
            pattern => filler
                .chunks_mut(pattern.len())
                .for_each(|part| part.copy_from_slice(&pattern[..part.len()])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const BLOCKS: usize = 4000;

    fn blocks(content: WriteContent) -> Vec<Vec<u8>> {
        let mut writer = ContentWriter::new(content, 7, 1);
        let block = |_| {
            let mut block = vec![0xff; 512];
            writer.fill(&mut block);
            block
        };
        (0..BLOCKS).map(block).collect()
    }

    fn unique(blocks: &[Vec<u8>]) -> f64 {
        blocks.iter().collect::<BTreeSet<_>>().len() as f64 / blocks.len() as f64
    }

    #[test]
    fn compressible_share_of_each_chunk_is_filler() {
        let content = WriteContent {
            filler_percent: 60,
            chunk_bytes: 128,
            ..WriteContent::default()
        };
        let written = blocks(content);
        assert!(unique(&written) > 0.999);
        for chunk in written.iter().flat_map(|block| block.chunks(128)) {
            // 40 % of 128 bytes are random.
            assert!(chunk[51..].iter().all(|byte| *byte == 0));
            assert!(chunk[..51].iter().filter(|byte| **byte == 0).count() < 12);
        }
    }

    #[test]
    fn repeated_share_of_blocks_stands_elsewhere_too() {
        for repeated_blocks in [0, 50] {
            let written = blocks(WriteContent {
                repeat_percent: 30,
                repeated_blocks,
                chunk_bytes: 512,
                ..WriteContent::default()
            });
            assert!((unique(&written) - 0.7).abs() < 0.04);
        }
        let content = WriteContent {
            repeat_percent: 100,
            chunk_bytes: 512,
            ..WriteContent::default()
        };
        assert_eq!(blocks(content).iter().collect::<BTreeSet<_>>().len(), 1);
    }

    #[test]
    fn workers_share_repeated_blocks_only_where_the_content_says_so() {
        for shares_repeated in [true, false] {
            let content = WriteContent {
                repeat_percent: 50,
                repeated_blocks: 4,
                shares_repeated,
                chunk_bytes: 512,
                ..WriteContent::default()
            };
            let of = |stream| -> BTreeSet<Vec<u8>> {
                let mut writer = ContentWriter::new(content.clone(), 7, stream);
                let block = |_| {
                    let mut block = vec![0; 512];
                    writer.fill(&mut block);
                    block
                };
                (0..200).map(block).collect()
            };
            let has_common = of(1).intersection(&of(2)).next().is_some();
            assert_eq!(has_common, shares_repeated);
        }
    }

    #[test]
    fn constant_content_fills_buffers_once() {
        let content = WriteContent {
            filler_percent: 100,
            filler: vec![1, 2, 3],
            chunk_bytes: 4096,
            ..WriteContent::default()
        };
        let mut writer = ContentWriter::new(content, 7, 1);
        let mut buffers = Buffers::new(2, 4096).unwrap();
        writer.fill_all(&mut buffers, 2);
        writer.fill(buffers.bytes_mut(1, 4096));
        assert_eq!(buffers.bytes(1, 4096)[..4], [1, 2, 3, 1]);
        assert_eq!(buffers.bytes(1, 4096)[4095], 1);
    }
}
