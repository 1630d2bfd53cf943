//! What a verified workload has written where. Each block carries a signature, and the journal
//! knows which generation must be there. A read therefore distinguishes lost, torn, misdirected and
//! corrupted writes. Does not move blocks.

use crate::load::signed_block::{BlockSignature, SignatureFault};
use diskproof_model::measurement::BadBlock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A block that is being written.
const BUSY: u32 = 1 << 31;
/// A block whose last write failed: anything may be there.
const UNKNOWN: u32 = BUSY - 1;
/// More blocks than this need more than a GiB of memory for the journal.
pub(crate) const BLOCKS_MAX: u64 = 1 << 28;

/// Generations of all blocks of a span, shared by all workers.
#[derive(Debug)]
pub(crate) struct WriteJournal {
    seed: u64,
    start: u64,
    block_bytes: u64,
    generations: Vec<AtomicU32>,
}

impl WriteJournal {
    /// Nothing is written yet.
    pub(crate) fn new(seed: u64, start: u64, length: u64, block_bytes: u32) -> Self {
        let blocks = length / u64::from(block_bytes);
        let generations = (0..blocks).map(|_| AtomicU32::new(0)).collect();
        Self {
            seed,
            start,
            block_bytes: u64::from(block_bytes),
            generations,
        }
    }

    fn entry(&self, offset: u64) -> Option<&AtomicU32> {
        self.generations
            .get(((offset - self.start) / self.block_bytes) as usize)
    }

    /// Claims a block for writing and returns the generation to write; `None` while another write
    /// of it is in flight.
    pub(crate) fn claim(&self, offset: u64) -> Option<u32> {
        let entry = self.entry(offset)?;
        let before = entry.fetch_or(BUSY, Ordering::Relaxed);
        if before & BUSY != 0 {
            return None;
        }
        // After the last generation comes 1; 0 is a block that was never written.
        Some(if before >= UNKNOWN - 1 { 1 } else { before + 1 })
    }

    /// The write completed.
    pub(crate) fn confirm(&self, offset: u64, generation: u32) {
        if let Some(entry) = self.entry(offset) {
            entry.store(generation, Ordering::Relaxed);
        }
    }

    /// The write failed: the content is unknown.
    pub(crate) fn mark_unknown(&self, offset: u64) {
        self.confirm(offset, UNKNOWN);
    }

    /// Offsets of all blocks that were written and whose content is known, with their generation;
    /// ascending.
    pub(crate) fn written(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.generations
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| {
                let generation = entry.load(Ordering::Relaxed) & !BUSY;
                (generation != 0 && generation != UNKNOWN)
                    .then_some((self.start + index as u64 * self.block_bytes, generation))
            })
    }

    /// Writes the header of a block. The payload may be anything.
    pub(crate) fn sign(&self, block: &mut [u8], offset: u64, generation: u32) {
        let signature = BlockSignature {
            seed: self.seed,
            offset,
            generation: u64::from(generation),
        };
        signature.sign(block);
    }

    /// The damage of a block that should hold `generation` of `offset`; `None` where it is intact.
    pub(crate) fn find_damage(
        &self,
        block: &[u8],
        offset: u64,
        generation: u32,
    ) -> Option<BadBlock> {
        let why = match BlockSignature::of(block) {
            Err(SignatureFault::Zero) => "only zeros: the write is lost".to_owned(),
            Err(SignatureFault::Foreign) => {
                "not written by diskproof: overwritten or corrupted".to_owned()
            }
            Err(SignatureFault::Checksum | SignatureFault::OtherSize(_)) => {
                "wrong checksum: torn or corrupted".to_owned()
            }
            Ok(found) if found.seed != self.seed => {
                "a block of another run: the write is lost".to_owned()
            }
            Ok(found) if found.offset != offset => misdirected(found.offset),
            Ok(found) if found.generation != u64::from(generation) => format!(
                "generation {} instead of {generation}: the last write is lost",
                found.generation
            ),
            Ok(_) => return None,
        };
        Some(BadBlock {
            offset_bytes: offset,
            why,
        })
    }
}

/// Says that a block belongs to another offset.
pub(crate) fn misdirected(belongs_at: u64) -> String {
    format!("the block written to offset {belongs_at}: misdirected")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn journal() -> WriteJournal {
        WriteJournal::new(7, 8192, 10 * 4096, 4096)
    }

    #[test]
    fn journal_names_every_kind_of_damage() {
        let journal = journal();
        let mut block = vec![9u8; 4096];
        journal.sign(&mut block, 12288, 3);
        assert_eq!(journal.find_damage(&block, 12288, 3), None);
        let why = |block: &[u8], offset, generation| {
            journal
                .find_damage(block, offset, generation)
                .map(|b| b.why)
                .unwrap_or_default()
        };
        assert!(why(&block, 12288, 4).contains("generation 3 instead of 4"));
        assert!(why(&block, 16384, 3).contains("misdirected"));
        assert!(why(&vec![0; 4096], 12288, 3).contains("zeros"));
        assert!(why(&vec![5; 4096], 12288, 3).contains("not written by diskproof"));
        let mut torn = block.clone();
        torn[4000] ^= 1;
        assert!(why(&torn, 12288, 3).contains("checksum"));
        // A flipped bit in the header is no lost or misdirected write.
        for at in [8, 16, 24, 32] {
            let mut flipped = block.clone();
            flipped[at] ^= 4;
            assert!(why(&flipped, 12288, 3).contains("checksum"), "byte {at}");
        }
        let mut foreign = block;
        WriteJournal::new(8, 8192, 10 * 4096, 4096).sign(&mut foreign, 12288, 3);
        assert!(why(&foreign, 12288, 3).contains("another run"));
    }

    #[test]
    fn journal_claims_block_in_flight_once() {
        let journal = journal();
        assert_eq!(journal.claim(8192), Some(1));
        assert_eq!(journal.claim(8192), None);
        journal.confirm(8192, 1);
        assert_eq!(journal.claim(8192), Some(2));
        journal.mark_unknown(8192);
        assert_eq!(
            journal.written().count(),
            0,
            "a failed write may leave any content"
        );
        assert_eq!(journal.claim(8192), Some(1));
        journal.confirm(8192, 1);
        assert_eq!(journal.written().collect::<Vec<_>>(), [(8192, 1)]);
        journal.confirm(8192, UNKNOWN - 1);
        assert_eq!(
            journal.claim(8192),
            Some(1),
            "after the last generation comes the first, not none"
        );
    }

    proptest! {
        #[test]
        fn journal_detects_any_changed_byte(at in 0usize..4096, change in 1u8..) {
            let journal = journal();
            let mut block: Vec<u8> = (0..4096u32).map(|i| (i * 31) as u8).collect();
            journal.sign(&mut block, 8192, 1);
            block[at] ^= change;
            prop_assert!(journal.find_damage(&block, 8192, 1).is_some());
        }
    }
}
