//! The header of a verified block: who wrote it, where it belongs, its generation, and a checksum
//! over all of it. Knows neither what must be there nor who reads it.

/// Marks our blocks: "diskprov" as a number.
const MAGIC: u64 = 0x6469_736B_7072_6F76;
/// Words before the payload: magic, seed, offset, generation, checksum.
const HEADER_WORDS: usize = 5;

/// What the header of a block says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockSignature {
    /// Seed of the run that wrote it.
    pub seed: u64,
    /// Where it belongs: an offset in the target, in bytes.
    pub offset: u64,
    /// How often the run had written it then.
    pub generation: u64,
}

/// Why a block has no signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureFault {
    /// Nothing but zeros.
    Zero,
    /// The data of something else.
    Foreign,
    /// The checksum is another.
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
    pub(crate) fn of(block: &[u8]) -> Result<Self, SignatureFault> {
        let word = |index: usize| {
            block
                .get(index * 8..index * 8 + 8)
                .and_then(|bytes| bytes.try_into().ok())
                .map_or(0, u64::from_le_bytes)
        };
        let found = Self {
            seed: word(1),
            offset: word(2),
            generation: word(3) & u64::from(u32::MAX),
        };
        let size = (word(3) >> 32) as usize;
        let is_sum_of = |block: &[u8]| {
            word(4) == found.checksum(word(3), block.get(HEADER_WORDS * 8..).unwrap_or_default())
        };
        // A flipped bit of the header is damage, too: the checksum covers it.
        if word(0) != MAGIC {
            match block.iter().all(|byte| *byte == 0) {
                true => Err(SignatureFault::Zero),
                // Only the mark is damaged.
                false if is_sum_of(block) => Err(SignatureFault::Checksum),
                false => Err(SignatureFault::Foreign),
            }
        } else if size != 0 && size != block.len() {
            // Of a larger block, only the header is here.
            if block.get(..size).is_none_or(is_sum_of) {
                Err(SignatureFault::OtherSize(size as u32))
            } else {
                Err(SignatureFault::Checksum)
            }
        } else if is_sum_of(block) {
            Ok(found)
        } else {
            Err(SignatureFault::Checksum)
        }
    }

    fn checksum(self, generation: u64, payload: &[u8]) -> u64 {
        checksum(payload) ^ self.seed ^ self.offset ^ generation
    }
}

/// Four independent lanes of multiply and rotate, so that the CPU works on them side by side; any
/// changed bit changes the sum.
fn checksum(bytes: &[u8]) -> u64 {
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
