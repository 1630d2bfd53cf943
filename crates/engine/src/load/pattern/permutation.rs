//! All blocks of an extent in random order, each once, without a table: as the random map of fio,
//! which a verified workload needs to reach every block.

use crate::random::splitmix64;

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
    /// Of the numbers below `n`, at least one.
    pub(crate) fn new(n: u64, key: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        Self {
            n: n.max(1),
            key,
            half_bits: bits.div_ceil(2).max(1),
        }
    }

    /// The number at `index`; every `n` indices make a lap.
    pub(crate) fn at(&self, index: u64) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutation_has_every_number_once_per_lap_in_another_order() {
        for n in [1, 2, 3, 64, 65, 1000, 4097] {
            let order = Permutation::new(n, 7);
            let mut laps = Vec::new();
            for lap in 0..2 {
                let numbers: Vec<u64> = (lap * n..(lap + 1) * n).map(|i| order.at(i)).collect();
                let mut sorted = numbers.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..n), "{n}");
                laps.push(numbers);
            }
            assert!(n < 64 || laps[0] != laps[1], "{n}");
            let steps = laps[0].windows(2).filter(|pair| pair[0] < pair[1]).count() as f64;
            assert!(
                n < 1000 || (steps / n as f64 - 0.5).abs() < 0.05,
                "{n}: {steps}"
            );
        }
    }
}
