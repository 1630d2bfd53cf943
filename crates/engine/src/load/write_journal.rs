//! Records what a verified workload has written where, and judges the blocks that are read back.
//! The header of each block says which run wrote it, where it belongs and its generation, with a
//! checksum over all of it; the journal knows which generation must be there. A read therefore
//! distinguishes lost, torn, misdirected and corrupted writes. Does not move blocks.

use diskproof_model::measurement::BadBlock;
use diskproof_model::shape::BlockPattern;
use std::sync::atomic::{AtomicU32, Ordering};

/// Marks our blocks: "diskprov" as a number. With the header it stays on targets: later versions
/// verify what this one has written.
const MAGIC: u64 = 0x6469_736B_7072_6F76;
/// Words before the payload, in little endian: magic, seed, offset, generation (its upper half is
/// the size of the block), checksum.
const HEADER_WORDS: usize = 5;

/// The content of a block's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockSignature {
    /// Seed of the run that wrote it.
    pub seed: u64,
    /// The offset in the target where the block belongs, in bytes.
    pub offset: u64,
    /// 1 for the first write of the block by the run, and one more with each later write.
    pub generation: u64,
}

/// The reason why a block has no signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureFault {
    /// The block holds nothing but zeros.
    Zero,
    /// The block holds data of another program.
    Foreign,
    /// The checksum does not fit the content.
    Checksum,
    /// Written in blocks of this many bytes.
    OtherSize(u32),
}

impl BlockSignature {
    /// Writes the header of a block. The payload may be anything.
    pub(crate) fn sign(self, block: &mut [u8]) {
        // The upper half is the size of the block; blocks of older versions have none.
        let generation = self.generation | (block.len() as u64) << 32;
        let header = [
            MAGIC,
            self.seed,
            self.offset,
            generation,
            self.checksum(generation, &block[HEADER_WORDS * 8..]),
        ];
        block
            .chunks_exact_mut(8)
            .zip(header)
            .for_each(|(word, value)| word.copy_from_slice(&value.to_le_bytes()));
    }

    /// The signature of a block.
    pub(crate) fn read(block: &[u8]) -> Result<Self, SignatureFault> {
        let generation = header_word(block, 3);
        let signature = Self {
            seed: header_word(block, 1),
            offset: header_word(block, 2),
            generation: generation & u64::from(u32::MAX),
        };
        let size = (generation >> 32) as usize;
        // A flipped bit of the header is damage, too: the checksum covers it.
        if header_word(block, 0) != MAGIC {
            if block.iter().all(|byte| *byte == 0) {
                Err(SignatureFault::Zero)
            } else if signature.has_checksum_of(block) {
                // Only the mark is damaged.
                Err(SignatureFault::Checksum)
            } else {
                Err(SignatureFault::Foreign)
            }
        } else if size != 0 && size != block.len() {
            match block.get(..size) {
                Some(smaller) if !signature.has_checksum_of(smaller) => {
                    Err(SignatureFault::Checksum)
                }
                // Of a larger block, only the header is here.
                _ => Err(SignatureFault::OtherSize(size as u32)),
            }
        } else if signature.has_checksum_of(block) {
            Ok(signature)
        } else {
            Err(SignatureFault::Checksum)
        }
    }

    /// True if the checksum in the header of a block is that of its content.
    fn has_checksum_of(self, block: &[u8]) -> bool {
        let payload = block.get(HEADER_WORDS * 8..).unwrap_or_default();
        header_word(block, 4) == self.checksum(header_word(block, 3), payload)
    }

    fn checksum(self, generation: u64, payload: &[u8]) -> u64 {
        checksum(payload) ^ self.seed ^ self.offset ^ generation
    }
}

/// A word of the header; 0 where the block ends before.
fn header_word(block: &[u8], index: usize) -> u64 {
    match block.get(index * 8..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => 0,
    }
}

/// Four independent lanes of multiply and rotate, so that the CPU works on them side by side; any
/// changed bit changes the sum.
fn checksum(bytes: &[u8]) -> u64 {
    /// Odd, so that a multiplication loses no bit: 2⁶⁴ divided by the golden ratio.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut lanes = [1u64, 2, 3, 4];
    let mut quads = bytes.chunks_exact(32);
    for quad in &mut quads {
        for (lane, word) in lanes.iter_mut().zip(quad.chunks_exact(8)) {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            *lane = (*lane ^ word).wrapping_mul(FACTOR).rotate_left(29);
        }
    }
    let rest = quads.remainder().iter().fold(0u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(FACTOR)
    });
    lanes.iter().fold(rest, |sum, lane| {
        (sum ^ lane).wrapping_mul(FACTOR).rotate_left(31)
    })
}

// The entry of a block in the journal: its generation, and these flags above it. 0 is a block that
// was never written.

/// A block that is being written.
const BUSY: u32 = 1 << 31;
/// A block whose last write failed: anything may be there. Its generation stays, so that the next
/// write does not repeat one that may be on the disk.
const UNKNOWN: u32 = 1 << 30;
/// The first block of a write, where a write has several.
const FIRST: u32 = 1 << 29;
/// The last block of a write.
const LAST: u32 = 1 << 28;
/// The bits of the generation.
const GENERATION: u32 = LAST - 1;
/// More blocks than this need more than a GiB of memory for the journal.
pub(crate) const BLOCKS_MAX: u64 = 1 << 28;

/// A written block whose content is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrittenBlock {
    /// Its offset in the target.
    pub offset: u64,
    /// The generation that must be there.
    pub generation: u32,
    /// True if its write began with it.
    pub is_first: bool,
    /// True if its write ended with it.
    pub is_last: bool,
}

/// Generations of all blocks of a span, shared by all workers. A write of several sizes covers
/// several blocks, each with a signature of its own.
#[derive(Debug)]
pub(crate) struct WriteJournal {
    seed: u64,
    start: u64,
    /// The greatest size of which the size of each write is a multiple.
    pub(crate) block_bytes: u64,
    generations: Vec<AtomicU32>,
    /// The content of the blocks, where they hold a pattern in place of signatures.
    pattern: Option<BlockPattern>,
    /// True if other workloads write to the blocks, too.
    is_shared: bool,
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
            pattern: None,
            is_shared: false,
        }
    }

    /// A journal of blocks to which other workloads of the run may write, too: then any intact
    /// block of the run is right that belongs to its place.
    pub(crate) fn with_other_writers(self, is_shared: bool) -> Self {
        Self { is_shared, ..self }
    }

    /// A journal of blocks that hold a pattern, where there is one, in place of signatures.
    pub(crate) fn with_pattern(self, pattern: Option<BlockPattern>) -> Self {
        Self { pattern, ..self }
    }

    /// The entries of the blocks of a write.
    fn entries(&self, offset: u64, len: u32) -> Option<&[AtomicU32]> {
        let from_start = offset - self.start;
        debug_assert!(
            from_start.is_multiple_of(self.block_bytes)
                && u64::from(len).is_multiple_of(self.block_bytes),
            "{len} bytes at {offset} are no whole blocks"
        );
        let first = (from_start / self.block_bytes) as usize;
        let count = (u64::from(len) / self.block_bytes) as usize;
        self.generations.get(first..first + count)
    }

    /// Claims the blocks of a write and returns the generation to write; `None` while another write
    /// of any of them is in flight.
    pub(crate) fn claim(&self, offset: u64, len: u32) -> Option<u32> {
        let entries = self.entries(offset, len)?;
        let mut last = 0;
        for (index, entry) in entries.iter().enumerate() {
            let before = entry.fetch_or(BUSY, Ordering::Relaxed);
            if before & BUSY != 0 {
                for claimed in &entries[..index] {
                    claimed.fetch_and(!BUSY, Ordering::Relaxed);
                }
                return None;
            }
            last = last.max(before & GENERATION);
        }
        // After the last generation comes 1; 0 is a block that was never written.
        Some(if last == GENERATION { 1 } else { last + 1 })
    }

    /// Notes that the write of this generation, which [`Self::claim`] gave, has completed.
    pub(crate) fn confirm(&self, offset: u64, len: u32, generation: u32) {
        let entries = self.entries(offset, len).unwrap_or_default();
        let mut first = FIRST;
        for (index, entry) in entries.iter().enumerate() {
            let last = if index + 1 == entries.len() { LAST } else { 0 };
            entry.store(generation | first | last, Ordering::Relaxed);
            first = 0;
        }
    }

    /// Notes that the write of this generation failed: the content is unknown.
    pub(crate) fn mark_unknown(&self, offset: u64, len: u32, generation: u32) {
        self.confirm(offset, len, generation | UNKNOWN);
    }

    /// All blocks that were written and whose content is known, ascending.
    pub(crate) fn written(&self) -> impl Iterator<Item = WrittenBlock> + '_ {
        let mut offset = self.start;
        self.generations.iter().filter_map(move |entry| {
            let block_offset = offset;
            offset += self.block_bytes;
            match entry.load(Ordering::Relaxed) & !BUSY {
                0 | UNKNOWN.. => None,
                state => Some(WrittenBlock {
                    offset: block_offset,
                    generation: state & GENERATION,
                    is_first: state & FIRST != 0,
                    is_last: state & LAST != 0,
                }),
            }
        })
    }

    /// Writes the header of each block of a write, whose payload may be anything; or the pattern.
    pub(crate) fn sign(&self, data: &mut [u8], offset: u64, generation: u32) {
        let mut block_offset = offset;
        for block in data.chunks_mut(self.block_bytes as usize) {
            match &self.pattern {
                Some(pattern) => pattern.fill(block, block_offset),
                None => BlockSignature {
                    seed: self.seed,
                    offset: block_offset,
                    generation: u64::from(generation),
                }
                .sign(block),
            }
            block_offset += self.block_bytes;
        }
    }

    /// The damage of a block that should hold `generation` of `offset`; `None` where it is intact.
    pub(crate) fn find_damage(
        &self,
        block: &[u8],
        offset: u64,
        generation: u32,
    ) -> Option<BadBlock> {
        if let Some(pattern) = &self.pattern {
            let why = pattern.difference(block, offset)?;
            return Some(BadBlock {
                offset_bytes: offset,
                why,
                written_to_bytes: None,
            });
        }
        let signature = BlockSignature::read(block);
        let why = match signature {
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
            Ok(found) if self.is_shared && found.offset == offset => return None,
            Ok(found) if found.offset != offset => misdirected(found.offset),
            Ok(found) if found.generation != u64::from(generation) => format!(
                "generation {} instead of {generation}: the last write is lost",
                found.generation
            ),
            Ok(_) => return None,
        };
        let written_to_bytes = match signature {
            Ok(found) if found.seed == self.seed && found.offset != offset => Some(found.offset),
            _ => None,
        };
        Some(BadBlock {
            offset_bytes: offset,
            why,
            written_to_bytes,
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
    use std::collections::BTreeSet;

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
            let found = journal.find_damage(block, offset, generation);
            found.map(|damage| damage.why).unwrap_or_default()
        };
        let stale = why(&block, 12288, 4);
        assert!(
            stale.contains("generation 3") && stale.contains('4'),
            "{stale}"
        );
        let misdirected = why(&block, 16384, 3);
        assert!(misdirected.contains("offset 12288"), "{misdirected}");
        let zeros = why(&vec![0; 4096], 12288, 3);
        let not_ours = why(&vec![5; 4096], 12288, 3);
        let mut torn = block.clone();
        torn[4000] ^= 1;
        let torn = why(&torn, 12288, 3);
        // A flipped bit in the header is no lost or misdirected write.
        for at in [8, 16, 24, 32] {
            let mut flipped = block.clone();
            flipped[at] ^= 4;
            assert_eq!(why(&flipped, 12288, 3), torn, "byte {at}");
        }
        let mut foreign = block;
        WriteJournal::new(8, 8192, 10 * 4096, 4096).sign(&mut foreign, 12288, 3);
        let foreign = why(&foreign, 12288, 3);
        for (why, word) in [
            (&zeros, "zeros"),
            (&not_ours, "not written"),
            (&torn, "checksum"),
            (&foreign, "another run"),
        ] {
            assert!(why.contains(word), "{word}: {why}");
        }
        let kinds = BTreeSet::from([stale, misdirected, zeros, not_ours, torn, foreign]);
        assert!(kinds.len() == 6 && !kinds.contains(""), "{kinds:?}");
    }

    #[test]
    fn write_of_several_blocks_has_a_signature_for_each() {
        let journal = journal();
        assert_eq!(journal.claim(12288, 4096), Some(1));
        // A block of it is being written.
        assert_eq!(journal.claim(8192, 12288), None);
        journal.confirm(12288, 4096, 1);
        let generation = journal.claim(8192, 12288).unwrap();
        assert_eq!(generation, 2);
        let mut data = vec![9u8; 12288];
        journal.sign(&mut data, 8192, generation);
        journal.confirm(8192, 12288, generation);
        let written: Vec<WrittenBlock> = journal.written().collect();
        let begins: Vec<bool> = written.iter().map(|block| block.is_first).collect();
        assert_eq!(begins, [true, false, false]);
        let ends: Vec<bool> = written.iter().map(|block| block.is_last).collect();
        assert_eq!(ends, [false, false, true]);
        for (index, block) in written.iter().enumerate() {
            let content = &data[index * 4096..][..4096];
            assert_eq!(journal.find_damage(content, block.offset, 2), None);
        }
    }

    #[test]
    fn journal_takes_blocks_of_other_writers_only_where_they_belong() {
        let shared = journal().with_other_writers(true);
        let mut block = vec![9u8; 4096];
        journal().sign(&mut block, 12288, 3);
        assert_eq!(shared.find_damage(&block, 12288, 1), None);
        assert!(shared.find_damage(&block, 16384, 1).is_some());
        assert!(journal().find_damage(&block, 12288, 1).is_some());
        block[4000] ^= 1;
        assert!(shared.find_damage(&block, 12288, 1).is_some());
        // What an earlier run has left is no write of this one.
        WriteJournal::new(8, 8192, 10 * 4096, 4096).sign(&mut block, 12288, 1);
        assert!(shared.find_damage(&block, 12288, 1).is_some());
    }

    #[test]
    fn journal_claims_block_in_flight_once() {
        let journal = journal();
        assert_eq!(journal.claim(8192, 4096), Some(1));
        assert_eq!(journal.claim(8192, 4096), None);
        journal.confirm(8192, 4096, 1);
        assert_eq!(journal.claim(8192, 4096), Some(2));
        journal.mark_unknown(8192, 4096, 2);
        // A failed write may leave any content.
        assert_eq!(journal.written().count(), 0);
        assert_eq!(journal.claim(8192, 4096), Some(3));
        assert_eq!(journal.claim(8192, 4096), None);
        journal.confirm(8192, 4096, 3);
        let only = WrittenBlock {
            offset: 8192,
            generation: 3,
            is_first: true,
            is_last: true,
        };
        assert_eq!(journal.written().collect::<Vec<_>>(), [only]);
        // After the last generation comes the first, not none.
        for end in [WriteJournal::confirm, WriteJournal::mark_unknown] {
            end(&journal, 8192, 4096, GENERATION);
            assert_eq!(journal.claim(8192, 4096), Some(1));
        }
    }

    #[test]
    fn journal_finds_write_that_was_lost_after_a_failed_one() {
        let journal = journal();
        let mut on_disk = vec![9u8; 4096];
        let acknowledged = journal.claim(8192, 4096).unwrap();
        journal.sign(&mut on_disk, 8192, acknowledged);
        journal.confirm(8192, 4096, acknowledged);
        let failed = journal.claim(8192, 4096).unwrap();
        journal.mark_unknown(8192, 4096, failed);
        let lost = journal.claim(8192, 4096).unwrap();
        journal.confirm(8192, 4096, lost);
        let damage = journal.find_damage(&on_disk, 8192, lost).unwrap();
        assert!(damage.why.contains("the last write is lost"), "{damage:?}");
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
