//! Turns neighbouring numbers into numbers without a pattern, always the same ones: splitmix64 of
//! Steele, Lea and Flood (Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).

/// The distance between two states of splitmix64: 2⁶⁴ divided by the golden ratio, rounded down to
/// an odd number.
const STATE_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The number that splitmix64 returns in this state: a bijection that scatters neighbouring
/// numbers. Saved acceptance tests depend on it, so it must not change.
pub(crate) fn scattered(state: u64) -> u64 {
    let mut bits = state.wrapping_add(STATE_STEP);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// The number at this place, from 0, of those that splitmix64 returns from a seed on.
pub fn mixed(seed: u64, place: u64) -> u64 {
    scattered(seed.wrapping_add(place.wrapping_mul(STATE_STEP)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Timetables of all hosts and saved acceptance tests follow from these numbers. The first
    /// three are those of Java's SplittableRandom with the seed 0.
    #[test]
    fn numbers_are_those_of_splitmix64() {
        let first = [0, 1, 2].map(|place| mixed(0, place));
        let expected = [
            0xE220_A839_7B1D_CDAF,
            0x6E78_9E6A_A1B9_65F4,
            0x06C4_5D18_8009_454F,
        ];
        assert_eq!(first, expected);
        assert_eq!(scattered(0), expected[0]);
    }
}
