//! Visits all blocks of an extent in random order, each once in a lap, as fio does with its random
//! map: a verified workload needs that to reach every block. Where blocks have one size this needs
//! no table. Otherwise there is a bit for each unit, and a block that would reach a visited unit is
//! shortened.

use super::unit_map::{UNITS_MAX, UnitMap};
use crate::random::{Random, splitmix64};

/// Rounds of the network; four make its outputs look independent of its inputs (Luby & Rackoff,
/// "How to construct pseudorandom permutations from pseudorandom functions", 1988).
const ROUNDS: u64 = 4;

/// A random order of the numbers below `n`, and another one for each lap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Permutation {
    /// Numbers in a lap.
    pub n: u64,
    key: u64,
    /// Bits of each half of a number.
    half_bits: u32,
}

impl Permutation {
    /// A permutation of the numbers below `n`, which is at least one.
    pub(crate) fn new(n: u64, key: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        Self {
            n: n.max(1),
            key,
            half_bits: bits.div_ceil(2).max(1),
        }
    }

    /// The number at `index`; every `n` indices make a lap.
    pub(crate) fn place(&self, index: u64) -> u64 {
        let (lap, mut value) = (index / self.n, index % self.n);
        // The network orders the numbers below a power of four; what is beyond `n` goes through it
        // again until it is not. That takes four passes on average at most.
        loop {
            value = self.pass(value, lap);
            if value < self.n {
                return value;
            }
        }
    }

    /// One pass of the network, a bijection of the numbers below a power of four.
    fn pass(&self, value: u64, lap: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..ROUNDS {
            let mut state = self.key ^ lap.rotate_left(32) ^ (right << 3) ^ round;
            (left, right) = (right, left ^ (splitmix64(&mut state) & mask));
        }
        left << self.half_bits | right
    }
}

/// The blocks of an extent that a lap has visited, in units of the smallest one.
#[derive(Debug, Clone)]
pub(crate) struct VisitMap {
    start: u64,
    /// Bytes of a unit: the smallest block.
    unit: u64,
    units: u64,
    /// Units that are not visited yet.
    left: u64,
    visited: UnitMap,
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
        Some(Self {
            start,
            unit,
            units,
            left: units,
            visited: UnitMap::new(units),
            lap: 0,
        })
    }

    /// The offset of a random unit that is not visited yet, and the length of the block that begins
    /// there: at most `len` bytes of such units. They count as visited now.
    #[cold]
    pub(crate) fn visit(&mut self, len: u32, random: &mut Random) -> (u64, u32) {
        if self.left == 0 {
            self.visited.clear();
            self.left = self.units;
            self.lap += 1;
        }
        // One is there, since some are left.
        let drawn = random.below(self.units);
        let first = self.visited.next_free(drawn).unwrap_or(drawn);
        let wanted = (u64::from(len) / self.unit).max(1);
        let mut taken = 0;
        while taken < wanted && self.visited.take(first + taken) {
            taken += 1;
        }
        self.left -= taken;
        (self.start + first * self.unit, (taken * self.unit) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutation_has_every_number_once_per_lap_in_another_order() {
        for n in [1, 2, 3, 64, 65, 1000, 4097] {
            let order = Permutation::new(n, 7);
            let mut laps = Vec::new();
            for lap in 0..2 {
                let numbers: Vec<u64> = (lap * n..(lap + 1) * n).map(|i| order.place(i)).collect();
                let mut sorted = numbers.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..n), "{n}");
                laps.push(numbers);
            }
            assert!(n < 64 || laps[0] != laps[1], "{n}");
            let steps = laps[0].windows(2).filter(|pair| pair[0] < pair[1]).count() as f64;
            let is_even = (steps / n as f64 - 0.5).abs() < 0.05;
            assert!(n < 1000 || is_even, "{n}: {steps}");
        }
    }

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
                        let seen = &mut seen[unit as usize];
                        assert!(!std::mem::replace(seen, true), "{units}");
                    }
                }
            }
        }
        assert!(VisitMap::new(0, 100, 4096).is_none());
    }
}
