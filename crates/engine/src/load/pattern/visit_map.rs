//! Which units of an extent have been visited in this lap: as the random map of fio, for blocks of
//! several sizes. A block that would reach a visited unit is shortened.

use crate::random::Random;

const BITS: u64 = u64::BITS as u64;
/// 512 MiB of bits; a larger extent has no map.
const UNITS_MAX: u64 = 1 << 32;

/// A bit for each unit.
#[derive(Debug, Clone)]
pub(crate) struct VisitMap {
    start: u64,
    /// Bytes of a unit: the smallest block.
    unit: u64,
    units: u64,
    /// Units that are not visited yet.
    left: u64,
    visited: Vec<u64>,
    /// Words of `visited` in which every bit is set.
    full: Vec<u64>,
    /// Laps that are over.
    pub lap: u64,
}

impl VisitMap {
    /// A map of `length` bytes; `None` where it would be too large.
    pub(crate) fn new(start: u64, length: u64, unit: u64) -> Option<Self> {
        let units = length / unit;
        if units == 0 || units > UNITS_MAX {
            return None;
        }
        let words = units.div_ceil(BITS);
        let mut map = Self {
            start,
            unit,
            units,
            left: 0,
            visited: vec![0; words as usize],
            full: vec![0; words.div_ceil(BITS) as usize],
            lap: 0,
        };
        map.clear();
        Some(map)
    }

    /// Forgets the visits. What lies behind the last unit counts as visited.
    fn clear(&mut self) {
        self.visited.fill(0);
        self.full.fill(0);
        self.left = self.units;
        for unit in self.units..self.visited.len() as u64 * BITS {
            self.visited[(unit / BITS) as usize] |= 1 << (unit % BITS);
        }
        for word in self.visited.len() as u64..self.full.len() as u64 * BITS {
            self.full[(word / BITS) as usize] |= 1 << (word % BITS);
        }
    }

    /// A random unit that is not visited yet, and at most `len` bytes of such units behind it; they
    /// count as visited now.
    #[cold]
    pub(crate) fn visit(&mut self, len: u32, random: &mut Random) -> (u64, u32) {
        if self.left == 0 {
            self.clear();
            self.lap += 1;
        }
        let first = self.next_free(random.below(self.units));
        let wanted = (u64::from(len) / self.unit).max(1);
        let mut taken = 0;
        while taken < wanted && first + taken < self.units && self.take(first + taken) {
            taken += 1;
        }
        self.left -= taken;
        (self.start + first * self.unit, (taken * self.unit) as u32)
    }

    /// Marks a unit; whether it was free.
    fn take(&mut self, unit: u64) -> bool {
        let (word, bit) = (unit / BITS, 1 << (unit % BITS));
        let visited = &mut self.visited[word as usize];
        if *visited & bit != 0 {
            return false;
        }
        *visited |= bit;
        if *visited == u64::MAX {
            self.full[(word / BITS) as usize] |= 1 << (word % BITS);
        }
        true
    }

    /// The first free unit from `unit` on, or else from the start on. There is one.
    fn next_free(&self, unit: u64) -> u64 {
        let word = unit / BITS;
        let rest = !self.visited[word as usize] & (u64::MAX << (unit % BITS));
        if rest != 0 {
            return word * BITS + u64::from(rest.trailing_zeros());
        }
        let word = free_word(&self.full, word + 1).or_else(|| free_word(&self.full, 0));
        let word = word.unwrap_or(0);
        word * BITS + u64::from((!self.visited[word as usize]).trailing_zeros())
    }
}

/// The first word from `word` on that is not full.
fn free_word(full: &[u64], word: u64) -> Option<u64> {
    let first = (word / BITS) as usize;
    let mut mask = u64::MAX << (word % BITS);
    for (index, bits) in full.iter().enumerate().skip(first) {
        let rest = !bits & mask;
        if rest != 0 {
            return Some(index as u64 * BITS + u64::from(rest.trailing_zeros()));
        }
        mask = u64::MAX;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_visits_every_unit_once_per_lap_and_shortens_blocks() {
        for units in [1_u64, 63, 64, 65, 5000] {
            let mut map = VisitMap::new(8192, units * 4096 + 100, 4096).unwrap();
            let mut random = Random::new(3, units);
            for lap in 0..3 {
                let mut seen = vec![false; units as usize];
                while seen.contains(&false) {
                    let (offset, len) = map.visit(16384, &mut random);
                    assert_eq!(map.lap, lap);
                    let first = (offset - 8192) / 4096;
                    assert!(len >= 4096 && len.is_multiple_of(4096) && len <= 16384);
                    for unit in first..first + u64::from(len) / 4096 {
                        assert!(
                            !std::mem::replace(&mut seen[unit as usize], true),
                            "{units}"
                        );
                    }
                }
            }
        }
        assert!(VisitMap::new(0, 100, 4096).is_none());
    }
}
