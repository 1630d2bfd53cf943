//! Marks every sector that diskproof writes, so that a later run recognises its own data on a
//! device. Pure.
//!
//! The mark is a relation between two words of a sector: word 6 XOR word 7 is a constant. It is
//! part of the data from the first write on, so a killed run leaves marked sectors only. It
//! survives when every word is XORed with the same key, which is how the engine makes blocks
//! unique, so it costs nothing per request. The words before it are free: a verified block keeps
//! its header there.

use crate::units::SECTOR_BYTES;

/// Bytes of a sector before the mark.
const MARK_START: usize = 48;
/// Bytes of each of the two words whose relation is the mark.
const WORD_BYTES: usize = 8;
/// An arbitrary constant: foreign data has it here by chance once in 2⁶⁴ sectors.
const MARK: [u8; WORD_BYTES] = *b"\xd1\x5c\x9f\x00\xf5\xa4\x1e\x83";
/// The rest of a sector is random. 448 random bytes have about 211 different values, and never
/// fewer than this many; a sector that was changed in part by hand or with text has fewer.
const VALUES_MIN: usize = 128;

/// Marks every whole sector of a buffer. Bytes outside of the mark stay.
pub fn mark_sectors(buffer: &mut [u8]) {
    for sector in buffer.chunks_exact_mut(SECTOR_BYTES as usize) {
        for (index, mark) in MARK.iter().enumerate() {
            let first = sector[MARK_START + index];
            sector[MARK_START + WORD_BYTES + index] = first ^ mark;
        }
    }
}

/// True of a sector that holds data of diskproof, of this or any earlier run.
pub fn is_marked(sector: &[u8]) -> bool {
    let Some(words) = sector.get(MARK_START..MARK_START + 2 * WORD_BYTES) else {
        return false;
    };
    let (first, second) = words.split_at(WORD_BYTES);
    let has_mark = (0..WORD_BYTES).all(|index| first[index] ^ second[index] == MARK[index]);
    has_mark && distinct_values(&sector[MARK_START + 2 * WORD_BYTES..]) >= VALUES_MIN
}

/// The number of different values that these bytes have.
fn distinct_values(bytes: &[u8]) -> usize {
    let mut occurs = [false; 256];
    for byte in bytes {
        occurs[usize::from(*byte)] = true;
    }
    occurs.iter().filter(|does_occur| **does_occur).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes without a pattern, by a linear congruential generator.
    fn random(length: usize) -> Vec<u8> {
        let mut state = 7u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn mark_survives_xor_with_one_key_and_a_header_before_it() {
        let mut sector = random(SECTOR_BYTES as usize);
        assert!(!is_marked(&sector));
        mark_sectors(&mut sector);
        assert!(is_marked(&sector));
        let key = *b"\x01\x80\xff\x00\x13\x57\x9b\xdf";
        for (at, byte) in sector.iter_mut().enumerate() {
            *byte ^= key[at % WORD_BYTES];
        }
        sector[..MARK_START].fill(0);
        assert!(is_marked(&sector));
    }

    #[test]
    fn mark_is_absent_from_zeros_text_and_partly_overwritten_sectors() {
        let mut zeros = vec![0; SECTOR_BYTES as usize];
        assert!(!is_marked(&zeros) && !is_marked(&[]));
        mark_sectors(&mut zeros);
        assert!(!is_marked(&zeros), "the mark alone is not enough");
        let mut sector = random(SECTOR_BYTES as usize);
        mark_sectors(&mut sector);
        sector[160..].fill(b' ');
        assert!(!is_marked(&sector));
    }
}
