//! Visits each block of a file once in an order that looks random, by a linear feedback shift
//! register, as fio does with `random_generator=lfsr`.

/// The bits of a register that are mixed, from registers of [`LEAST_BITS`] on. A mask has the bit
/// n − 1 for tap n. The taps are those of fio (lib/lfsr.c), which are those of Xilinx' XAPP 052 but
/// for 32 bits.
const TAPS: [u32; 30] = [
    taps(&[3, 2]),
    taps(&[4, 3]),
    taps(&[5, 3]),
    taps(&[6, 5]),
    taps(&[7, 6]),
    taps(&[8, 6, 5, 4]),
    taps(&[9, 5]),
    taps(&[10, 7]),
    taps(&[11, 9]),
    taps(&[12, 6, 4, 1]),
    taps(&[13, 4, 3, 1]),
    taps(&[14, 5, 3, 1]),
    taps(&[15, 14]),
    taps(&[16, 15, 13, 4]),
    taps(&[17, 14]),
    taps(&[18, 11]),
    taps(&[19, 6, 2, 1]),
    taps(&[20, 17]),
    taps(&[21, 19]),
    taps(&[22, 21]),
    taps(&[23, 18]),
    taps(&[24, 23, 22, 17]),
    taps(&[25, 22]),
    taps(&[26, 6, 2, 1]),
    taps(&[27, 5, 2, 1]),
    taps(&[28, 25]),
    taps(&[29, 27]),
    taps(&[30, 6, 4, 1]),
    taps(&[31, 28]),
    taps(&[32, 31, 29, 1]),
];
/// The bits of the smallest register.
const LEAST_BITS: u32 = 3;

const fn taps(numbers: &[u32]) -> u32 {
    let mut mask = 0;
    let mut index = 0;
    while index < numbers.len() {
        mask |= 1 << (numbers[index] - 1);
        index += 1;
    }
    mask
}

/// A register that draws the blocks of a file.
#[derive(Debug, Clone)]
pub(super) struct ShiftRegister {
    blocks: u64,
    seed: u64,
    taps: u64,
    top_bit: u64,
    state: u64,
    /// Blocks drawn since it was reset.
    drawn: u64,
    /// False until the first draw: as in fio, that one skips a state, but only once, whether the
    /// register is reset or not (`prepare_spin` counts a cycle too many).
    has_drawn: bool,
}

impl ShiftRegister {
    /// The register for so many blocks; `None` where there are none, or more than 32 bits say.
    pub(super) fn new(blocks: u64, seed: u64) -> Option<Self> {
        // All ones are no state, so a register has more states than there are blocks.
        let bits = (u64::BITS - blocks.leading_zeros()).max(LEAST_BITS);
        let taps = *TAPS.get((bits - LEAST_BITS) as usize)?;
        let top_bit = 1 << (bits - 1);
        if blocks == 0 {
            return None;
        }
        let mut register = Self {
            blocks,
            seed,
            taps: u64::from(taps),
            top_bit,
            state: 0,
            drawn: 0,
            has_drawn: false,
        };
        register.reset();
        Some(register)
    }

    /// Begins again at the seed. Where that is no state, fio ends the job; this register begins
    /// at 0.
    pub(super) fn reset(&mut self) {
        let all_ones = (self.top_bit << 1) - 1;
        self.drawn = 0;
        self.state = self.seed & all_ones;
        if self.state == all_ones {
            self.state = 0;
        }
    }

    /// The next block; `None` after all of them.
    pub(super) fn next(&mut self) -> Option<u64> {
        if self.drawn == self.blocks {
            return None;
        }
        self.drawn += 1;
        if !self.has_drawn {
            self.has_drawn = true;
            self.step();
        }
        self.step();
        while self.state >= self.blocks {
            self.step();
        }
        Some(self.state)
    }

    fn step(&mut self) {
        let mixed = if self.state & 1 == 0 { self.taps } else { 0 };
        self.state = ((self.state >> 1) | self.top_bit) ^ mixed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_register_visits_each_block_once() {
        for blocks in [1, 2, 7, 8, 100, 255, 256, 1000, 4095, 70_000, 1 << 20] {
            let mut register = ShiftRegister::new(blocks, 0xb189_9bed).unwrap();
            for _ in 0..2 {
                let mut visited = BTreeSet::new();
                while let Some(block) = register.next() {
                    visited.insert(block);
                }
                assert_eq!(visited.len() as u64, blocks);
                assert_eq!(visited.last(), Some(&(blocks - 1)));
                register.reset();
            }
        }
        assert!(ShiftRegister::new(0, 1).is_none());
        assert!(ShiftRegister::new(u64::from(u32::MAX), 1).is_some());
        assert!(ShiftRegister::new(1 << 32, 1).is_none());
    }
}
