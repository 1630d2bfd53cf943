//! The random numbers of a run: the content of pages, the pauses of the schedule, and the choices
//! of the rehearsal. They depend on their seed alone, so that a run can be repeated.

/// 2^64 divided by the golden ratio: SplitMix64 adds it at each step. Multiplying by it spreads
/// numbers that follow each other over all bits.
pub(crate) const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): content that no layer can compress, and the
/// choices of the rehearsal.
#[derive(Debug, Clone)]
pub(crate) struct Splitmix(pub u64);

impl Splitmix {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`, and 0 for a limit of 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}
