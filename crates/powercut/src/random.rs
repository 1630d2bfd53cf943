//! Generates the random numbers of a run: for the content of pages, the pauses of the schedule, and
//! the choices of the rehearsal. They depend on their seed alone, so that a run can be repeated.
//! Pages are not compared with these numbers, so that another generator would change no verdict.

/// 2^64 divided by the golden ratio: SplitMix64 adds it at each step. Multiplying by it spreads
/// numbers that follow each other over all bits.
pub(crate) const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): content that no layer can compress, and the
/// choices of the rehearsal.
#[derive(Debug, Clone)]
pub(crate) struct Splitmix(
    /// The seed, and from the first number on the state.
    pub u64,
);

impl Splitmix {
    /// Returns the next number, any of 64 bits.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`, and 0 for a limit of 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next_number() % limit.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page of SplitMix64 at rosettacode.org has these numbers.
    #[test]
    fn numbers_are_those_of_splitmix64() {
        let mut random = Splitmix(1_234_567);
        let numbers = [(); 3].map(|()| random.next_number());
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(numbers, expected);
        assert_eq!(Splitmix(1).below(0), 0);
    }
}
