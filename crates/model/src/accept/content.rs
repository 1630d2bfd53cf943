//! Makes and checks the content of a sector of an acceptance test: the salt of the run, its own
//! address, the order number of its write, and incompressible filler that follows from the three. A
//! sector that comes back thus proves where and when it was written. Pure.

use super::data::{BadContent, BadRange};
use crate::own_data::mark_sectors;
use crate::scatter::scattered;
use crate::units::SECTOR_BYTES;

/// Bytes of a sector.
const SECTOR: usize = SECTOR_BYTES as usize;
/// Bytes of a number in a sector, the lowest first.
const WORD: usize = 8;
/// Numbers of a sector.
const WORDS: usize = SECTOR / WORD;
/// Words of the header: salt, address, order, and the key that follows from them.
const HEADER_WORDS: usize = 4;
/// A sector with at most so many wrong bits of 4096 is the right one, damaged: unrelated data
/// differs in about 2048.
const FLIPPED_BITS_MAX: u32 = 256;

/// Makes and checks the sectors of a run.
#[derive(Debug, Clone)]
pub struct SectorContent {
    salt: u64,
    /// Random words; each sector has them XORed with its key, so that no two sectors share eight
    /// bytes and nothing can be compressed or deduplicated.
    table: [u64; WORDS],
}

impl SectorContent {
    /// The sectors of the run with this salt.
    pub fn new(salt: u64) -> Self {
        let mut table = [0; WORDS];
        for (index, word) in table.iter_mut().enumerate() {
            *word = scattered(salt ^ scattered(index as u64 + 1));
        }
        Self { salt, table }
    }

    /// Fills a buffer, which is written at this offset as the write of this number. Both are
    /// multiples of a sector.
    pub fn fill(&self, offset_bytes: u64, order: u64, buffer: &mut [u8]) {
        for (index, sector) in buffer.chunks_exact_mut(SECTOR).enumerate() {
            self.fill_sector(offset_bytes + (index * SECTOR) as u64, order, sector);
        }
    }

    /// Makes one sector, which is written at this address as the write of this number.
    fn fill_sector(&self, address: u64, order: u64, sector: &mut [u8]) {
        let key = self.key(address, order);
        for (word, random) in sector.chunks_exact_mut(WORD).zip(self.table) {
            word.copy_from_slice(&(random ^ key).to_le_bytes());
        }
        let header = [self.salt, address, order, key];
        for (word, value) in sector.chunks_exact_mut(WORD).zip(header) {
            word.copy_from_slice(&value.to_le_bytes());
        }
        mark_sectors(sector);
    }

    /// The key of a sector, which follows from the salt and from where and when it is written.
    fn key(&self, address: u64, order: u64) -> u64 {
        scattered(scattered(self.salt ^ scattered(address)) ^ order)
    }

    /// Checks what was read at this offset against the write of this number. Returns what is wrong,
    /// in order; neighbouring sectors with the same fault are one range.
    pub fn check(&self, offset_bytes: u64, order: u64, buffer: &[u8]) -> Vec<BadRange> {
        let mut bad: Vec<BadRange> = Vec::new();
        let mut expected = [0; SECTOR];
        for (index, sector) in buffer.chunks_exact(SECTOR).enumerate() {
            let address = offset_bytes + (index * SECTOR) as u64;
            self.fill_sector(address, order, &mut expected);
            if sector == expected {
                continue;
            }
            let range = BadRange {
                offset_bytes: address,
                length_bytes: SECTOR_BYTES,
                content: self.fault(address, sector, &expected),
            };
            match bad.last_mut() {
                Some(last) if last.goes_on_with(&range) => last.append(&range),
                _ => bad.push(range),
            }
        }
        bad
    }

    /// The fault of a sector that was read at this address and is not the expected one.
    fn fault(&self, address: u64, sector: &[u8], expected: &[u8]) -> BadContent {
        let first = sector[0];
        if (first == 0 || first == 0xff) && sector.iter().all(|byte| *byte == first) {
            return BadContent::Blank;
        }
        let bits = differing_bits(sector, expected);
        if bits <= FLIPPED_BITS_MAX {
            return BadContent::Flipped { bits };
        }
        let mut header = [0; HEADER_WORDS];
        for (value, word) in header.iter_mut().zip(sector.chunks_exact(WORD)) {
            let mut bytes = [0; WORD];
            bytes.copy_from_slice(word);
            *value = u64::from_le_bytes(bytes);
        }
        let [salt, from_bytes, order, key] = header;
        if salt != self.salt || key != self.key(from_bytes, order) {
            return BadContent::Foreign;
        }
        let mut other = [0; SECTOR];
        self.fill_sector(from_bytes, order, &mut other);
        if differing_bits(sector, &other) > FLIPPED_BITS_MAX {
            BadContent::Foreign
        } else if from_bytes == address {
            BadContent::Stale { order }
        } else {
            BadContent::Displaced { from_bytes, order }
        }
    }

    /// True of a sector that the run wrote, wherever and whenever: it begins with the run's salt.
    pub fn is_of_run(&self, sector: &[u8]) -> bool {
        sector.starts_with(&self.salt.to_le_bytes())
    }
}

/// The number of bits in which two sectors differ.
fn differing_bits(one: &[u8], other: &[u8]) -> u32 {
    let mut bits = 0;
    for (one_byte, other_byte) in one.iter().zip(other) {
        bits += (one_byte ^ other_byte).count_ones();
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_data::is_marked;

    const SALT: u64 = 0x5eed;

    fn written(offset_bytes: u64, order: u64) -> Vec<u8> {
        let mut buffer = vec![0; 8 * SECTOR];
        SectorContent::new(SALT).fill(offset_bytes, order, &mut buffer);
        buffer
    }

    fn checked(offset_bytes: u64, order: u64, buffer: &[u8]) -> Vec<BadRange> {
        SectorContent::new(SALT).check(offset_bytes, order, buffer)
    }

    #[test]
    fn sectors_come_back_right_and_are_marked_as_own_data() {
        let buffer = written(1 << 40, 7);
        assert_eq!(checked(1 << 40, 7, &buffer), []);
        assert!(buffer.chunks(SECTOR).all(is_marked));
        assert!(SectorContent::new(SALT).is_of_run(&buffer));
        assert!(!SectorContent::new(1).is_of_run(&buffer));
    }

    #[test]
    fn sector_of_another_address_names_that_address() {
        let buffer = written(1 << 30, 9);
        let from_bytes = 1 << 30;
        let expected = BadRange {
            offset_bytes: 4096,
            length_bytes: 4096,
            content: BadContent::Displaced {
                from_bytes,
                order: 9,
            },
        };
        assert_eq!(checked(4096, 2, &buffer), [expected]);
    }

    #[test]
    fn damaged_lost_old_and_foreign_sectors_are_told_apart() {
        let mut buffer = written(0, 3);
        buffer[100] ^= 0x11;
        buffer[SECTOR..2 * SECTOR].fill(0);
        let older = written(0, 1);
        buffer[2 * SECTOR..3 * SECTOR].copy_from_slice(&older[2 * SECTOR..3 * SECTOR]);
        SectorContent::new(1).fill_sector(1536, 3, &mut buffer[3 * SECTOR..4 * SECTOR]);
        let contents: Vec<BadContent> = checked(0, 3, &buffer)
            .into_iter()
            .map(|range| range.content)
            .collect();
        let expected = [
            BadContent::Flipped { bits: 2 },
            BadContent::Blank,
            BadContent::Stale { order: 1 },
            BadContent::Foreign,
        ];
        assert_eq!(contents, expected);
    }
}
